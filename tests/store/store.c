// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include "core/store/store.h"
#include "tests/engine/scratch.h"

static int lock_error;

// In place of libc's, for file systems that cannot lock.
int flock(int fd, int operation)
{
        errno = lock_error;
        return lock_error != 0 ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static char log_text[2048];

static void log_line(void *context, const char *message)
{
        (void)context;
        strncat(log_text, message, sizeof(log_text) - strlen(log_text) - 2);
        strcat(log_text, "\n");
}

// What the last store_open saw: how many names, and the last of them.
static struct Seen {
        int n;
        char name[STORE_NAME_MAX + 1];
        int64_t next_version, default_version;
        uint32_t n_versions;
        StoreVersion versions[8];
} seen;

static Status see(void *context, Store *store, const StoreHead *head, const StoreVersion *versions,
                  uint32_t n_versions)
{
        (void)context;
        (void)store;
        seen = (struct Seen){ .n = seen.n + 1,
                              .next_version = head->next_version,
                              .default_version = head->default_version };
        memcpy(seen.name, head->name, sizeof(seen.name));
        for (; seen.n_versions < n_versions; seen.n_versions++)
                seen.versions[seen.n_versions] = versions[seen.n_versions];
        return STATUS_OK;
}

static Store *open_store(const char *folder)
{
        Store *store = NULL;
        seen.n = 0;
        cr_assert_eq(store_open(folder, log_line, NULL, see, NULL, &store), STATUS_OK, "%s",
                     failure_current()->message);
        return store;
}

static ByteSpan span(const char *text)
{
        return (ByteSpan){ (const uint8_t *)text, strlen(text) };
}

static StoreVersion version_of(int64_t number, const char *bytes)
{
        HashHex digest = sha256_of(bytes, strlen(bytes));
        StoreVersion version = {
                .version = number, .id = digest, .created_ms = 12345, .format = "fx", .n_parts = 1
        };
        version.parts[0].digest = version.parts[0].document = digest;
        version.parts[0].n_bytes = strlen(bytes);
        return version;
}

static void put(Store *store, const char *name, const char *const *contents, uint32_t n)
{
        StoreHead head = { .aliases = NULL };
        snprintf(head.name, sizeof(head.name), "%s", name);
        for (uint32_t i = 0; i < n; i++) {
                StoreVersion version = version_of(i + 1, contents[i]);
                head.default_version = i + 1;
                head.next_version = i + 2;
                cr_assert_eq(store_hold_part(store, span(contents[i]), NULL, 0, &version.parts[0]),
                             STATUS_OK);
                cr_assert_eq(store_put_version(store, &head, &version, NULL), STATUS_OK, "%s",
                             failure_current()->message);
                store_release_part(store, &version.parts[0]);
        }
}

static void remove_graph(Store *store, const char *name, const char *content)
{
        StoreVersion version = version_of(1, content);
        const StoreVersion *versions[] = { &version };
        cr_assert_eq(store_remove_name(store, name, versions, 1), STATUS_OK);
        store_remove_tune(store, &version.id);
}

Test(store, what_was_put_is_there_after_opening_again)
{
        char *folder = scratch_make();
        const char *contents[] = { "first bytes", "second bytes" };
        Store *store = open_store(folder);
        put(store, "digits", contents, 2);
        store = store_close(store);
        store = open_store(folder);
        cr_assert_eq(seen.n, 1);
        cr_assert_str_eq(seen.name, "digits");
        cr_assert_eq(seen.n_versions, 2);
        cr_assert_eq(seen.next_version, 3);
        Mapping *bytes = NULL;
        cr_assert_eq(store_map_document(store, &seen.versions[seen.n_versions - 1].parts[0], &bytes),
                     STATUS_OK);
        cr_assert_arr_eq(bytes->data, "second bytes", 12);
        mapping_unref(bytes);
        store_close(store);
        scratch_remove(folder);
}

Test(store, two_graphs_with_the_same_bytes_share_one_blob_and_the_last_one_removes_it)
{
        char *folder = scratch_make();
        const char *contents[] = { "shared" };
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        put(store, "b", contents, 1);
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        remove_graph(store, "a", "shared");
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        remove_graph(store, "b", "shared");
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        cr_assert_eq(scratch_count(folder, "graphs"), 0);
        cr_assert_eq(scratch_count(folder, "tmp"), 0);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_held_blob_outlives_a_delete_of_the_graph_that_had_it)
{
        char *folder = scratch_make();
        const char *contents[] = { "held" };
        StorePart part = version_of(1, "held").parts[0];
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        cr_assert_eq(store_hold_part(store, span("held"), NULL, 0, &part), STATUS_OK);
        remove_graph(store, "a", "held");
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        store_release_part(store, &part);
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        store_close(store);
        scratch_remove(folder);
}

Test(store, blobs_without_a_version_and_unfinished_files_are_removed_at_the_next_start)
{
        char *folder = scratch_make();
        const char *contents[] = { "kept" };
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        store_close(store);
        scratch_write(folder, "blobs/0123", "an upload that never finished");
        scratch_write(folder, "tmp/77-1", "half");
        log_text[0] = '\0';
        store = open_store(folder);
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        cr_assert_eq(scratch_count(folder, "tmp"), 0);
        cr_assert(strstr(log_text, "never finished") != NULL);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_damaged_head_moves_to_quarantine_and_the_others_are_served)
{
        char *folder = scratch_make();
        const char *contents[] = { "one" };
        Store *store = open_store(folder);
        put(store, "good", contents, 1);
        put(store, "bad", contents, 1);
        store_close(store);
        char *text = scratch_read(folder, "graphs/bad");
        text[6] ^= 1;
        scratch_write(folder, "graphs/bad", text);
        log_text[0] = '\0';
        store = open_store(folder);
        cr_assert_eq(seen.n, 1);
        cr_assert_str_eq(seen.name, "good");
        cr_assert_eq(scratch_count(folder, "quarantine"), 2, "its head and its version");
        cr_assert(strstr(log_text, "bad") != NULL && strstr(log_text, "checksum") != NULL, "%s", log_text);
        store_close(store);
        free(text);
        scratch_remove(folder);
}

static void empty_quarantine(const char *folder)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/quarantine", folder);
        scratch_empty(path, 0);
}

Test(store, what_a_head_in_quarantine_names_is_kept_so_that_it_can_be_put_back)
{
        char *folder = scratch_make();
        const char *contents[] = { "one" };
        Mapping *bytes = NULL;
        Store *store = open_store(folder);
        put(store, "m", contents, 1);
        store_close(store);
        char *text = scratch_read(folder, "graphs/m"), *entry = scratch_read(folder, "versions/m@1");
        text[6] ^= 1;
        scratch_write(folder, "graphs/m", text);
        for (int start = 0; start < 2; start++) {
                store_close(open_store(folder));
                cr_assert_eq(scratch_count(folder, "quarantine"), 2);
                cr_assert_eq(scratch_count(folder, "blobs"), 1);
        }
        text[6] ^= 1;
        scratch_write(folder, "graphs/m", text);
        scratch_write(folder, "versions/m@1", entry);
        empty_quarantine(folder);
        scratch_write(folder, "blobs/0123", "nobody's");
        store = open_store(folder);
        cr_assert_eq(seen.n, 1);
        cr_assert_eq(store_map_document(store, &seen.versions[seen.n_versions - 1].parts[0], &bytes),
                     STATUS_OK);
        cr_assert_eq(scratch_count(folder, "blobs"), 1, "what nobody names goes");
        mapping_unref(bytes);
        store_close(store);
        free(text);
        free(entry);
        scratch_remove(folder);
}

Test(store, what_a_head_in_quarantine_may_name_outlives_the_graphs_that_share_it_and_what_came_later_does_not)
{
        char *folder = scratch_make();
        const char *contents[] = { "one" }, *later[] = { "two" };
        HashHex id = sha256_of("one", 3);
        Mapping *bytes = NULL;
        Store *store = open_store(folder);
        put(store, "m", contents, 1);
        put(store, "shares", contents, 1);
        cr_assert_eq(store_put_tune(store, &id, span("conv1 winograd\n")), STATUS_OK);
        store_close(store);
        char *text = scratch_read(folder, "graphs/m"), *entry = scratch_read(folder, "versions/m@1");
        text[6] ^= 1;
        scratch_write(folder, "graphs/m", text);
        store = open_store(folder);
        remove_graph(store, "shares", "one");
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        cr_assert_eq(scratch_count(folder, "tunes"), 1);
        put(store, "m", contents, 1);
        put(store, "later", later, 1);
        cr_assert_eq(scratch_count(folder, "blobs"), 2);
        remove_graph(store, "m", "one");
        remove_graph(store, "later", "two");
        cr_assert_eq(scratch_count(folder, "blobs"), 1, "what came after the start is in no entry of before");
        store_close(store);
        text[6] ^= 1;
        scratch_write(folder, "graphs/m", text);
        scratch_write(folder, "versions/m@1", entry);
        empty_quarantine(folder);
        store = open_store(folder);
        cr_assert_eq(store_map_document(store, &seen.versions[seen.n_versions - 1].parts[0], &bytes),
                     STATUS_OK);
        mapping_unref(bytes);
        remove_graph(store, "m", "one");
        cr_assert_eq(scratch_count(folder, "blobs") + scratch_count(folder, "tunes"), 0);
        store_close(store);
        free(text);
        free(entry);
        scratch_remove(folder);
}

Test(store, a_version_whose_file_is_missing_is_damaged_and_the_others_of_its_graph_are_not)
{
        char *folder = scratch_make(), name[80], path[512];
        const char *contents[] = { "one", "two" };
        Store *store = open_store(folder);
        put(store, "m", contents, 2);
        store_close(store);
        snprintf(name, sizeof(name), "blobs/%s", sha256_of("one", 3).hex);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        cr_assert_eq(unlink(path), 0);
        store = open_store(folder);
        cr_assert_eq(seen.n, 1);
        cr_assert_eq(scratch_count(folder, "quarantine"), 0);
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        cr_assert_eq(store_check_version(store, &seen.versions[0]), STATUS_DAMAGED);
        cr_assert_eq(store_check_version(store, &seen.versions[1]), STATUS_OK);
        // Something is there, whatever it is: not for this look to judge.
        cr_assert_eq(symlink(path, path), 0);
        cr_assert_eq(store_check_version(store, &seen.versions[0]), STATUS_OK);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_folder_with_files_of_another_program_is_refused_and_nothing_is_touched)
{
        static const char *const below[] = { "blobs", "graphs", "passes",  "quarantine",
                                             "tmp",   "tunes",  "versions" };
        for (size_t i = 0; i < ARRAY_LENGTH(below); i++) {
                char *folder = scratch_make(), path[512], name[32];
                Store *store = NULL;
                snprintf(path, sizeof(path), "%s/%s", folder, below[i]);
                mkdir(path, 0700);
                snprintf(name, sizeof(name), "%s/mine", below[i]);
                scratch_write(folder, name, "mine");
                cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_USAGE);
                cr_assert(strstr(failure_current()->message, below[i]) != NULL, "%s",
                          failure_current()->message);
                cr_assert_eq(scratch_count(folder, "."), 1);
                cr_assert_eq(scratch_count(folder, below[i]), 1);
                scratch_empty(path, 0);
                store_close(open_store(folder)); // empty, it may be anybody's
                cr_assert_eq(scratch_count(folder, "."), 9, "the seven, FORMAT and lock");
                scratch_remove(folder);
        }
}

// As a crash leaves it: of this process, as if the next one had its pid, which in a container it
// has.
static void leave_unfinished(const char *folder, const char *text)
{
        char name[64];
        for (int i = 0; i < 64; i++) {
                snprintf(name, sizeof(name), "tmp/%ld-%d", (long)getpid(), i);
                scratch_write(folder, name, text);
        }
}

Test(store, a_crash_in_the_very_first_write_leaves_a_folder_that_opens_and_nothing_beside_it)
{
        static const char *const foreign[][2] = {
                { "1234", "2" }, { "12-", "2" }, { "-12", "2" }, { "12-x", "2" }, { "12-3", "2\n\n" }
        };
        char *folder = scratch_make(), path[512], name[32];
        Store *store = NULL;
        snprintf(path, sizeof(path), "%s/tmp", folder);
        mkdir(path, 0700);
        for (size_t i = 0; i < 5; i++) {
                snprintf(name, sizeof(name), "tmp/%s", foreign[i][0]);
                scratch_write(folder, name, foreign[i][1]);
                cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_USAGE, "%s", name);
                cr_assert_eq(scratch_count(folder, "tmp"), 1);
                scratch_empty(path, 0);
        }
        for (int start = 0; start < 2; start++) {
                leave_unfinished(folder, start == 0 ? "2" : "2\n");
                if (start == 1)
                        scratch_write(folder, "FORMAT", "1\n");
                store_close(open_store(folder));
                char *text = scratch_read(folder, "FORMAT");
                cr_assert_str_eq(text, "3\n");
                cr_assert_eq(scratch_count(folder, "tmp"), 0);
                cr_assert_eq(scratch_count(folder, "."), 9, "the seven, FORMAT and lock");
                free(text);
        }
        scratch_remove(folder);
}

static int n_renames_in_place;

// In place of libc's: nothing unfinished may lie in the data folder itself.
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
        n_renames_in_place += from_folder == to_folder;
        return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

Test(store, the_first_file_of_a_folder_is_written_in_tmp_too)
{
        char *folder = scratch_make();
        store_close(open_store(folder));
        cr_assert_eq(n_renames_in_place, 0);
        scratch_remove(folder);
}

Test(store, a_blob_whose_bytes_changed_is_damaged_not_served)
{
        char *folder = scratch_make();
        const char *contents[] = { "bytes" };
        StoreVersion version = version_of(1, "bytes");
        Mapping *bytes = NULL;
        char name[80];
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        store_close(store);
        store = open_store(folder); // what was just written is known to be good
        snprintf(name, sizeof(name), "blobs/%s", version.parts[0].digest.hex);
        scratch_write(folder, name, "bytez");
        cr_assert_eq(store_map_document(store, &version.parts[0], &bytes), STATUS_DAMAGED);
        scratch_write(folder, name, "bytes and more");
        cr_assert_eq(store_map_document(store, &version.parts[0], &bytes), STATUS_DAMAGED);
        scratch_write(folder, name, "by");
        cr_assert_eq(store_map_document(store, &version.parts[0], &bytes), STATUS_DAMAGED);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_folder_in_use_is_refused_with_the_pid_that_has_it)
{
        char *folder = scratch_make();
        char pid[32];
        Store *store = open_store(folder), *second = NULL;
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &second), STATUS_CONFLICT);
        snprintf(pid, sizeof(pid), "by pid %ld", (long)getpid());
        cr_assert(strstr(failure_current()->message, pid) != NULL, "%s", failure_current()->message);
        store_close(store);
        store = open_store(folder);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_folder_that_cannot_be_locked_is_not_said_to_be_in_use)
{
        char *folder = scratch_make();
        Store *store = NULL;
        lock_error = ENOLCK;
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_IO);
        cr_assert(strstr(failure_current()->message, strerror(ENOLCK)) != NULL, "%s",
                  failure_current()->message);
        lock_error = 0;
        store_close(open_store(folder));
        scratch_remove(folder);
}

Test(store, a_newer_format_is_refused_and_nothing_is_touched)
{
        char *folder = scratch_make();
        Store *store = NULL;
        scratch_write(folder, "FORMAT", "4\n");
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_USAGE);
        cr_assert(strstr(failure_current()->message, "format 4") != NULL);
        char *text = scratch_read(folder, "FORMAT");
        cr_assert_str_eq(text, "4\n");
        cr_assert_eq(scratch_count(folder, "."), 1, "only FORMAT is there");
        free(text);
        scratch_remove(folder);
}

static void put_model(Store *store, const char *name, int64_t number, const char *model)
{
        StoreHead head = { .next_version = number + 1, .default_version = number };
        StoreVersion version = version_of(number, "one");
        snprintf(head.name, sizeof(head.name), "%s", name);
        snprintf(version.model, sizeof(version.model), "%s", model);
        cr_assert_eq(store_hold_part(store, span("one"), NULL, 0, &version.parts[0]), STATUS_OK);
        cr_assert_eq(store_put_version(store, &head, &version, NULL), STATUS_OK);
        store_release_part(store, &version.parts[0]);
        HashHex id = store_tune_id(&version);
        cr_assert_eq(store_put_tune(store, &id, span("conv1 winograd\n")), STATUS_OK);
}

Test(store, a_tune_record_is_its_models_and_is_kept_at_a_start_while_some_version_has_both)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        put_model(store, "a", 1, "");
        put_model(store, "a", 2, "encoder");
        put_model(store, "a", 3, "decoder");
        put_model(store, "b", 1, "encoder");
        cr_assert_eq(scratch_count(folder, "tunes"), 3);
        StoreHead head = { .name = "a", .next_version = 4, .default_version = 1 };
        StoreVersion encoder = version_of(2, "one"), decoder = version_of(3, "one");
        cr_assert_eq(store_remove_version(store, &head, &encoder), STATUS_OK);
        cr_assert_eq(store_remove_version(store, &head, &decoder), STATUS_OK);
        store_close(store);
        store = open_store(folder);
        cr_assert_eq(scratch_count(folder, "tunes"), 2, "the decoder's went, b has the encoder");
        store_close(store);
        scratch_remove(folder);
}

Test(store, tune_records_that_no_version_has_go_at_a_start_and_a_damaged_one_is_absent)
{
        char *folder = scratch_make(), name[80];
        const char *contents[] = { "one" };
        HashHex id = sha256_of("one", 3), other = sha256_of("two", 3);
        Store *store = open_store(folder);
        Text text = { 0 };
        put(store, "a", contents, 1);
        put(store, "b", contents, 1);
        cr_assert_eq(store_get_tune(store, &id, &text), STATUS_OK);
        cr_assert_eq(text.n, 0);
        cr_assert_eq(store_put_tune(store, &id, span("old")), STATUS_OK);
        cr_assert_eq(store_put_tune(store, &id, span("conv1 winograd\n")), STATUS_OK);
        cr_assert_eq(store_put_tune(store, &other, span("nobody's")), STATUS_OK);
        cr_assert_eq(scratch_count(folder, "tunes"), 2);
        store_close(store);
        scratch_write(folder, "tunes/0123", "nobody's");
        store = open_store(folder);
        cr_assert_eq(scratch_count(folder, "tunes"), 1);
        cr_assert_eq(store_get_tune(store, &id, &text), STATUS_OK);
        cr_assert_str_eq(text.data, "conv1 winograd\n");
        snprintf(name, sizeof(name), "tunes/%s", id.hex);
        char *record = scratch_read(folder, name);
        record[3] ^= 1;
        scratch_write(folder, name, record);
        text.n = 0;
        cr_assert_eq(store_get_tune(store, &id, &text), STATUS_OK);
        cr_assert_eq(text.n, 0);
        store_remove_tune(store, &id);
        cr_assert_eq(scratch_count(folder, "tunes"), 0);
        free(record);
        text_deinit(&text);
        store_close(store);
        scratch_remove(folder);
}

static Status note_pass(void *context, const char *name, ByteSpan text)
{
        Text *out = context;
        text_addf(out, "%s=%.*s ", name, (int)text.n, (const char *)text.data);
        return STATUS_OK;
}

static void passes_are(Store *store, const char *want)
{
        Text text = { 0 };
        cr_assert_eq(store_each_pass(store, note_pass, &text), STATUS_OK);
        cr_expect_str_eq(text.data == NULL ? "" : text.data, want);
        text_deinit(&text);
}

Test(store, saved_passes_stay_over_a_start_and_a_damaged_one_is_absent)
{
        char *folder = scratch_make();
        Store *store = open_store(folder);
        passes_are(store, "");
        cr_assert_eq(store_put_pass(store, "tidy", span("[1]")), STATUS_OK);
        cr_assert_eq(store_put_pass(store, "tidy", span("[2]")), STATUS_OK);
        passes_are(store, "tidy=[2] ");
        store_close(store);
        store = open_store(folder);
        passes_are(store, "tidy=[2] ");
        char *record = scratch_read(folder, "passes/tidy");
        record[1] ^= 1;
        scratch_write(folder, "passes/tidy", record);
        free(record);
        passes_are(store, "");
        cr_assert_eq(store_put_pass(store, "tidy", span("[3]")), STATUS_OK);
        passes_are(store, "tidy=[3] ");
        cr_assert_eq(store_remove_pass(store, "tidy"), STATUS_OK);
        cr_assert_eq(store_remove_pass(store, "tidy"), STATUS_OK);
        passes_are(store, "");
        store_close(store);
        scratch_remove(folder);
}
