// SPDX-License-Identifier: Apache-2.0
// Heads and versions as files: their text, what a start makes of them, what a crash leaves, what is
// no file at all.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include "core/store/record.h"
#include "tests/engine/scratch.h"

static char log_text[4096];

static void log_line(void *context, const char *message)
{
        (void)context;
        strncat(log_text, message, sizeof(log_text) - strlen(log_text) - 2);
        strcat(log_text, "\n");
}

enum { MOST = 8 };
static struct Seen {
        int n;
        int64_t next_version, default_version;
        uint32_t n_aliases, n_versions;
        int64_t numbers[MOST];
        uint32_t n_parts[MOST];
} seen;

static Status see(void *context, Store *store, const StoreHead *head, const StoreVersion *versions,
                  uint32_t n_versions)
{
        (void)context;
        (void)store;
        seen = (struct Seen){ .n = seen.n + 1,
                              .next_version = head->next_version,
                              .default_version = head->default_version,
                              .n_aliases = head->n_aliases,
                              .n_versions = n_versions };
        for (uint32_t i = 0; i < n_versions; i++) {
                seen.numbers[i] = versions[i].version;
                seen.n_parts[i] = versions[i].n_parts;
        }
        return STATUS_OK;
}

static Store *open_store(const char *folder)
{
        Store *store = NULL;
        seen = (struct Seen){ .n = 0 };
        log_text[0] = '\0';
        cr_assert_eq(store_open(folder, log_line, NULL, see, NULL, &store), STATUS_OK, "%s",
                     failure_current()->message);
        return store;
}

static StoreVersion put_in(Store *store, const StoreHead *head, int64_t number)
{
        char content[32];
        snprintf(content, sizeof(content), "content %lld", (long long)number);
        StoreVersion version = {
                .version = number, .id = sha256_of(content, strlen(content)), .format = "fx", .n_parts = 1
        };
        version.parts[0].digest = version.id;
        version.parts[0].n_bytes = strlen(content);
        ByteSpan bytes = { (const uint8_t *)content, strlen(content) };
        cr_assert_eq(store_hold_part(store, bytes, NULL, 0, &version.parts[0]), STATUS_OK);
        cr_assert_eq(store_put_version(store, head, &version, NULL), STATUS_OK, "%s",
                     failure_current()->message);
        store_release_part(store, &version.parts[0]);
        return version;
}

static StoreVersion put(Store *store, int64_t number)
{
        return put_in(store,
                      &(StoreHead){ .name = "m", .next_version = number + 1, .default_version = number },
                      number);
}

// Rewrites a file's checksum line after its text was changed.
static void write_checked(const char *folder, const char *name, char *text)
{
        char *line = strstr(text, "checksum ");
        char whole[4096];
        *line = '\0';
        snprintf(whole, sizeof(whole), "%schecksum %s\n", text, sha256_of(text, strlen(text)).hex);
        scratch_write(folder, name, whole);
}

static void add_line(const char *folder, const char *name, const char *added)
{
        char *text = scratch_read(folder, name), more[4096];
        char *line = strstr(text, "checksum ");
        snprintf(more, sizeof(more), "%.*s%s%s", (int)(line - text), text, added, line);
        write_checked(folder, name, more);
        free(text);
}

// ---- text ----
static void fill_version(StoreVersion *version)
{
        StoreHoles *holes = calloc(1, sizeof(*holes) + 2 * sizeof(StoreHole));
        refcount_init(&holes->ref);
        holes->n = 2;
        holes->items[0] =
                (StoreHole){ .offset = 64, .n = 70000, .digest = sha256_of("x", 1), .n_bytes = 70000 };
        holes->items[1] =
                (StoreHole){ .offset = 80000, .n = 100, .digest = sha256_of("y", 1), .n_bytes = 90000 };
        *version = (StoreVersion){
                .version = 4, .id = sha256_of("b", 1), .format = "fx", .created_ms = 12345, .model = "encoder"
        };
        for (int role = 0; role < STORE_ROLES; role++)
                version->parts[version->n_parts++] = (StorePart){ .role = (StoreRole)role,
                                                                  .digest = sha256_of(&role, 1),
                                                                  .document = sha256_of(&role, 2),
                                                                  .n_bytes = 7 };
        version->parts[1].holes = holes;
}

Test(records, every_flipped_bit_and_every_truncation_of_a_version_is_noticed)
{
        Text text = { 0 };
        Head head = { .head = { .name = "digits" }, .incarnation = "0123456789abcdef" };
        StoreVersion version, read;
        bool foreign;
        fill_version(&version);
        cr_assert_eq(record_write_version(&head, &version, &text), STATUS_OK);
        cr_assert_eq(record_read_version(text.data, text.n, &head, 4, &read, &foreign), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_not(foreign);
        cr_assert_str_eq(read.model, "encoder");
        cr_assert_eq(read.n_parts, STORE_ROLES);
        cr_assert_eq(read.parts[4].role, STORE_RECIPE);
        cr_assert_eq(read.parts[1].holes->items[1].n_bytes, 90000);
        cr_assert_null(read.parts[0].holes);
        store_version_unref(&read);
        cr_assert_eq(record_read_version(text.data, text.n, &head, 5, &read, &foreign), STATUS_DAMAGED,
                     "another version's");
        for (size_t i = 0; i < text.n; i++) {
                for (int bit = 0; bit < 8; bit++) {
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                        cr_assert_eq(record_read_version(text.data, text.n, &head, 4, &read, &foreign),
                                     STATUS_DAMAGED, "byte %zu", i);
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                }
                cr_assert_eq(record_read_version(text.data, i, &head, 4, &read, &foreign), STATUS_DAMAGED,
                             "cut at %zu", i);
        }
        store_version_unref(&version);
        text_deinit(&text);
}

Test(records, every_flipped_bit_and_every_truncation_of_a_head_is_noticed)
{
        Text text = { 0 };
        StoreAlias aliases[] = { { "canary", 3 }, { "prod", 2 } };
        StoreSetting settings[] = { { SETTING_IMAGE, 1, "{\"size\": 3}" },
                                    { SETTING_IMAGE, 4, "" },
                                    { SETTING_PRECISION, 2, "int8" } };
        int64_t gone[] = { 1 };
        Head *read = NULL, head = { .head = { "digits", 5, 4, 2, aliases, 3, settings },
                                    .incarnation = "0123456789abcdef",
                                    .n_gone = 1,
                                    .gone = gone };
        cr_assert_eq(record_write_head(&head, &text), STATUS_OK);
        cr_assert_eq(record_read_head(text.data, text.n, &read), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(read->head.n_aliases, 2);
        cr_assert_str_eq(read->head.aliases[1].name, "prod");
        cr_assert_eq(read->head.aliases[1].version, 2);
        cr_assert_eq(read->gone[0], 1);
        cr_assert_str_eq(store_head_setting(&read->head, SETTING_IMAGE, 3), "{\"size\": 3}");
        cr_assert_str_eq(store_head_setting(&read->head, SETTING_IMAGE, 5), "");
        cr_assert_str_eq(store_head_setting(&read->head, SETTING_IMAGE, 0), "");
        cr_assert_str_eq(store_head_setting(&read->head, SETTING_PRECISION, 1), "");
        cr_assert_str_eq(store_head_setting(&read->head, SETTING_PRECISION, 9), "int8");
        read = head_free(read);
        for (size_t i = 0; i < text.n; i++) {
                for (int bit = 0; bit < 8; bit++) {
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                        cr_assert_eq(record_read_head(text.data, text.n, &read), STATUS_DAMAGED,
                                     "byte %zu bit %d", i, bit);
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                }
                cr_assert_eq(record_read_head(text.data, i, &read), STATUS_DAMAGED, "cut at %zu", i);
        }
        text_deinit(&text);
}

Test(records,
     attributes_of_a_newer_program_are_kept_in_heads_and_skipped_in_versions_and_other_lines_are_damage)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        put(store, 1);
        store_close(store);
        add_line(folder, "graphs/m", "attribute colour blue 0.01\n");
        add_line(folder, "versions/m@1", "attribute quantised int8\n");
        store = open_store(folder);
        cr_assert_eq(seen.n_parts[0], 1);
        cr_assert_eq(
                store_put_head(store, &(StoreHead){ .name = "m", .next_version = 2, .default_version = 1 }),
                STATUS_OK);
        store_close(store);
        char *text = scratch_read(folder, "graphs/m");
        cr_assert(strstr(text, "attribute colour blue 0.01\n") != NULL, "%s", text);
        free(text);
        add_line(folder, "versions/m@1", "news 1\n");
        store_close(open_store(folder));
        cr_assert_eq(seen.n_parts[0], 0);
        cr_assert(strstr(log_text, "a line is not understood") != NULL, "%s", log_text);
        scratch_remove(folder);
}

// ---- what a start makes of them ----
Test(records, a_version_more_leaves_the_head_alone_and_is_the_default_at_the_next_start)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        put(store, 1);
        char *before = scratch_read(folder, "graphs/m");
        put(store, 2);
        put(store, 3);
        char *after = scratch_read(folder, "graphs/m");
        cr_assert_str_eq(before, after);
        store_close(store);
        store_close(open_store(folder));
        cr_assert_eq(seen.n_versions, 3);
        cr_assert_eq(seen.default_version, 3);
        cr_assert_eq(seen.next_version, 4);
        free(before);
        free(after);
        scratch_remove(folder);
}

Test(records, a_removed_version_stays_removed_though_its_file_came_back_and_its_number_is_not_used_again)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        put(store, 1);
        StoreVersion second = put(store, 2);
        char *entry = scratch_read(folder, "versions/m@2");
        cr_assert_eq(
                store_remove_version(
                        store, &(StoreHead){ .name = "m", .next_version = 3, .default_version = 1 }, &second),
                STATUS_OK);
        cr_assert_eq(scratch_count(folder, "versions"), 1);
        store_close(store);
        scratch_write(folder, "versions/m@2", entry); // as if its removal had not reached the disk
        store_close(open_store(folder));
        cr_assert_eq(seen.n_versions, 1);
        cr_assert_eq(seen.default_version, 1);
        cr_assert_eq(seen.next_version, 3);
        cr_assert_eq(scratch_count(folder, "versions"), 1);
        free(entry);
        scratch_remove(folder);
}

Test(records, a_lower_number_may_come_later_even_one_that_was_removed_before)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        StoreHead head = { .name = "m", .next_version = 11, .default_version = 10 };
        put(store, 2);
        put(store, 10);
        StoreVersion fifth = put_in(store, &head, 5);
        char path[512];
        snprintf(path, sizeof(path), "%s/versions/m@5", folder);
        cr_assert(unlink(path) == 0 && mkdir(path, 0700) == 0); // so that its removal is not certain
        cr_assert_eq(store_remove_version(store, &head, &fifth), STATUS_OK);
        cr_assert_eq(rmdir(path), 0);
        put_in(store, &head, 5);
        store_close(store);
        store_close(open_store(folder));
        cr_assert_eq(seen.n_versions, 3);
        cr_assert_eq(seen.numbers[0], 2);
        cr_assert_eq(seen.numbers[1], 5);
        cr_assert_eq(seen.numbers[2], 10);
        cr_assert_eq(seen.default_version, 10);
        cr_assert_eq(seen.next_version, 11);
        scratch_remove(folder);
}

Test(records, files_of_a_name_that_was_removed_are_not_taken_for_a_later_ones)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        StoreVersion first = put(store, 1), second = put(store, 2);
        const StoreVersion *both[] = { &first, &second };
        char *entry = scratch_read(folder, "versions/m@2");
        cr_assert_eq(store_remove_name(store, "m", both, 2), STATUS_OK);
        scratch_write(folder, "versions/m@2", entry);
        put(store, 1);
        store_close(store);
        store_close(open_store(folder));
        cr_assert_eq(seen.n_versions, 1);
        cr_assert_eq(scratch_count(folder, "versions"), 1);
        free(entry);
        scratch_remove(folder);
}

Test(records, a_version_without_a_head_is_an_upload_that_never_finished)
{
        char *folder = scratch_make(), path[512];
        Store *store = open_store(folder);
        put(store, 1);
        store_close(store);
        snprintf(path, sizeof(path), "%s/graphs/m", folder);
        cr_assert_eq(unlink(path), 0);
        store_close(open_store(folder));
        cr_assert_eq(seen.n, 0);
        cr_assert_eq(scratch_count(folder, "versions") + scratch_count(folder, "blobs") +
                             scratch_count(folder, "quarantine"),
                     0);
        scratch_remove(folder);
}

Test(records, a_damaged_entry_is_a_damaged_version_whose_bytes_stay_and_no_other_replaces_a_missing_default)
{
        char *folder = scratch_make(), path[512];
        Store *store = open_store(folder);
        put(store, 1);
        put(store, 2);
        StoreVersion last = put(store, 3);
        cr_assert_eq(
                store_put_head(store, &(StoreHead){ .name = "m", .next_version = 4, .default_version = 3 }),
                STATUS_OK);
        store_close(store);
        char *text = scratch_read(folder, "versions/m@2");
        text[60] ^= 1;
        scratch_write(folder, "versions/m@2", text);
        snprintf(path, sizeof(path), "%s/versions/m@3", folder);
        cr_assert_eq(unlink(path), 0);
        store = open_store(folder);
        cr_assert_eq(seen.n_versions, 3);
        cr_assert_eq(seen.n_parts[0], 1);
        cr_assert_eq(seen.n_parts[1], 0);
        cr_assert_eq(seen.n_parts[2], 0);
        cr_assert_eq(seen.default_version, 3);
        cr_assert_eq(scratch_count(folder, "blobs"), 3);
        cr_assert_eq(store_check_version(store, &(StoreVersion){ .version = 3 }), STATUS_DAMAGED);
        StoreHead head = { .name = "m", .next_version = 4, .default_version = 1 };
        cr_assert_eq(store_remove_version(store, &head, &(StoreVersion){ .version = 2 }), STATUS_OK);
        last.n_parts = 0;
        cr_assert_eq(store_remove_version(store, &head, &last), STATUS_OK);
        store_close(store);
        store_close(open_store(folder));
        cr_assert_eq(seen.n_versions, 1);
        cr_assert_eq(seen.next_version, 4);
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        free(text);
        scratch_remove(folder);
}

// ---- what is no regular file ----
static void make_irregular(const char *folder, const char *name, int kind)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        cr_assert_eq(kind == 0   ? mkfifo(path, 0600)
                     : kind == 1 ? symlink("/etc/passwd", path)
                     : kind == 2 ? mkdir(path, 0700)
                                 : symlink(path, path),
                     0);
}

// A pipe would make who opens it wait for ever, a link leads elsewhere.
Test(records, pipes_links_and_folders_among_the_stored_files_are_set_aside, .timeout = 60)
{
        static const char *const places[] = { "graphs/x",   "versions/x@2", "versions/m@1x",
                                              "blobs/0123", "tunes/0123",   "passes/tidy" };
        for (int kind = 0; kind < 4; kind++) {
                char *folder = scratch_make();
                Store *store = open_store(folder);
                put(store, 1);
                store_close(store);
                for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
                        make_irregular(folder, places[i], kind);
                make_irregular(folder, "tmp/12-1", kind);
                make_irregular(folder, "quarantine/old", kind);
                store = open_store(folder);
                cr_assert_eq(seen.n, 1, "kind %d: %s", kind, log_text);
                cr_assert_eq(seen.n_versions, 1);
                cr_assert_eq(seen.n_parts[0], 1);
                cr_assert_eq(scratch_count(folder, "quarantine"), 1 + (int)ARRAY_LENGTH(places), "%s",
                             log_text);
                cr_assert_eq(scratch_count(folder, "tmp"), 0);
                cr_assert(strstr(log_text, "it is no regular file") != NULL, "%s", log_text);
                put(store, 2);
                store_close(store);
                scratch_remove(folder);
        }
}

// Its number must not be given to another content, nor must an older version answer in its place.
Test(records, a_version_whose_file_became_a_pipe_link_or_folder_is_damaged_and_keeps_its_number,
     .timeout = 60)
{
        for (int kind = 0; kind < 4; kind++) {
                char *folder = scratch_make(), path[512];
                Store *store = open_store(folder);
                put(store, 1);
                StoreVersion second = put(store, 2); // newer than the head, which knows the first only
                store_close(store);
                snprintf(path, sizeof(path), "%s/versions/m@2", folder);
                cr_assert_eq(unlink(path), 0);
                make_irregular(folder, "versions/m@2", kind);
                for (int start = 0; start < 2; start++) {
                        store = open_store(folder);
                        cr_assert_eq(seen.n_versions, 2, "kind %d: %s", kind, log_text);
                        cr_assert_eq(seen.n_parts[1], 0);
                        cr_assert_eq(seen.default_version, 2);
                        cr_assert_eq(seen.next_version, 3);
                        cr_assert_eq(scratch_count(folder, "blobs"), 2, "what it names is kept");
                        store_close(store);
                }
                store = open_store(folder);
                second.n_parts = 0;
                StoreHead head = { .name = "m", .next_version = 3, .default_version = 1 };
                cr_assert_eq(store_remove_version(store, &head, &second), STATUS_OK);
                store_close(store);
                store_close(open_store(folder));
                cr_assert_eq(seen.n_versions, 1);
                cr_assert_eq(seen.next_version, 3);
                scratch_remove(folder);
        }
}

Test(records, a_blob_that_became_a_pipe_after_the_start_is_damaged_and_mended_by_the_same_bytes,
     .timeout = 60)
{
        char *folder = scratch_make(), name[80], path[512];
        Store *store = open_store(folder);
        StoreVersion version = put(store, 1);
        Mapping *mapping = NULL;
        static const _Atomic bool go_on = false;
        store_close(store);
        store = open_store(folder);
        snprintf(name, sizeof(name), "blobs/%s", version.id.hex);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        cr_assert_eq(unlink(path), 0);
        make_irregular(folder, name, 0);
        cr_assert_eq(store_map_document(store, &version.parts[0], &mapping), STATUS_DAMAGED);
        cr_assert_eq(store_scrub_part(store, &version.parts[0], &go_on), STATUS_DAMAGED);
        put(store, 1);
        cr_assert_eq(store_map_document(store, &version.parts[0], &mapping), STATUS_OK);
        mapping_unref(mapping);
        store_close(store);
        scratch_remove(folder);
}

Test(records, a_pipe_or_link_in_place_of_a_folder_or_of_lock_or_format_is_refused, .timeout = 60)
{
        static const char *const places[] = { "FORMAT", "lock",  "graphs",     "versions", "blobs",
                                              "tmp",    "tunes", "quarantine", "passes" };
        for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
                for (int kind = 0; kind < 2; kind++) {
                        char *folder = scratch_make(), path[512];
                        Store *store = NULL;
                        store_close(open_store(folder));
                        snprintf(path, sizeof(path), "%s/%s", folder, places[i]);
                        cr_assert_eq(remove(path), 0);
                        make_irregular(folder, places[i], kind);
                        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_USAGE, "%s",
                                     places[i]);
                        cr_assert(strstr(failure_current()->message, places[i]) != NULL, "%s",
                                  failure_current()->message);
                        scratch_remove(folder);
                }
        }
}

// Root reads whatever it likes otherwise. In this test's process only.
static void obey_modes(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .effective = 0 } };
        cr_assert_eq(syscall(SYS_capset, &header, data), 0);
}

Test(records, a_start_that_cannot_read_a_file_says_which_and_that_it_is_about_reading)
{
        static const char *const files[] = { "graphs/m", "versions/m@1" };
        for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
                char *folder = scratch_make(), path[512];
                Store *store = open_store(folder);
                put(store, 1);
                store_close(store);
                snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
                cr_assert_eq(chmod(path, 0), 0);
                obey_modes();
                cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_IO);
                const char *message = failure_current()->message;
                cr_assert(strstr(message, "cannot be read") != NULL && strstr(message, files[i]) != NULL,
                          "%s", message);
                cr_assert(strstr(message, folder) == NULL, "%s", message);
                scratch_remove(folder);
        }
}

Test(records, a_format_of_any_length_that_is_none_is_refused_as_such)
{
        static const char *const texts[] = {
                "",    "3",    "3\n\n",
                "0\n", "-1\n", "3 junk that goes on for longer than a format can ever be; and on and on\n"
        };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                char *folder = scratch_make();
                Store *store = NULL;
                scratch_write(folder, "FORMAT", texts[i]);
                cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_USAGE, "%zu", i);
                cr_assert(strstr(failure_current()->message, "FORMAT file is not understood") != NULL, "%s",
                          failure_current()->message);
                scratch_remove(folder);
        }
}
