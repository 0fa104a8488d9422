// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include "core/store/manifest.h"
#include "core/store/store.h"
#include "tests/engine/scratch.h"

static char log_text[2048];

static void log_line(void *context, const char *message)
{
        (void)context;
        strncat(log_text, message, sizeof(log_text) - strlen(log_text) - 2);
        strcat(log_text, "\n");
}

static Store *open_store(const char *folder)
{
        Store *store = NULL;
        cr_assert_eq(store_open(folder, log_line, NULL, &store), STATUS_OK, "%s", failure_current()->message);
        return store;
}

static ByteSpan span(const char *text)
{
        return (ByteSpan){ (const uint8_t *)text, strlen(text) };
}

static StoreVersion version_of(int64_t number, const char *bytes)
{
        HashHex digest = sha256_of(bytes, strlen(bytes));
        StoreVersion version = { .version = number, .id = digest, .created_ms = 12345, .format = "fx", .n_parts = 1 };
        version.parts[0].digest = digest;
        version.parts[0].n_bytes = strlen(bytes);
        return version;
}

static void put(Store *store, const char *name, const char *const *contents, uint32_t n)
{
        StoreVersion versions[8];
        StoreGraph graph = { .next_version = n + 1, .default_version = n, .n_versions = n, .versions = versions };
        snprintf(graph.name, sizeof(graph.name), "%s", name);
        for (uint32_t i = 0; i < n; i++) {
                versions[i] = version_of(i + 1, contents[i]);
                cr_assert_eq(store_hold_blob(store, span(contents[i]), &versions[i].parts[0].digest), STATUS_OK);
        }
        cr_assert_eq(store_put_graph(store, &graph), STATUS_OK, "%s", failure_current()->message);
        for (uint32_t i = 0; i < n; i++)
                store_release_blob(store, &versions[i].parts[0].digest);
}

static void remove_graph(Store *store, const char *name)
{
        StoreGraph graph = { .n_versions = 0 };
        snprintf(graph.name, sizeof(graph.name), "%s", name);
        cr_assert_eq(store_put_graph(store, &graph), STATUS_OK);
}

typedef struct Seen {
        int n;
        StoreGraph last;
        StoreVersion last_version;
} Seen;

static Status see(void *context, const StoreGraph *graph)
{
        Seen *seen = context;
        seen->n++;
        seen->last = *graph;
        seen->last_version = graph->versions[graph->n_versions - 1];
        return STATUS_OK;
}

Test(store, what_was_put_is_there_after_opening_again)
{
        char *folder = scratch_make();
        const char *contents[] = { "first bytes", "second bytes" };
        Store *store = open_store(folder);
        put(store, "digits", contents, 2);
        store = store_close(store);
        store = open_store(folder);
        Seen seen = { .n = 0 };
        store_each(store, see, &seen);
        cr_assert_eq(seen.n, 1);
        cr_assert_str_eq(seen.last.name, "digits");
        cr_assert_eq(seen.last.n_versions, 2);
        cr_assert_eq(seen.last.next_version, 3);
        char bytes[32] = "";
        cr_assert_eq(store_read_blob(store, &seen.last_version.parts[0], bytes), STATUS_OK);
        cr_assert_str_eq(bytes, "second bytes");
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
        remove_graph(store, "a");
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        remove_graph(store, "b");
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
        HashHex digest = sha256_of("held", 4);
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        cr_assert_eq(store_hold_blob(store, span("held"), &digest), STATUS_OK);
        remove_graph(store, "a");
        cr_assert_eq(scratch_count(folder, "blobs"), 1);
        store_release_blob(store, &digest);
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        store_close(store);
        scratch_remove(folder);
}

Test(store, blobs_without_a_manifest_and_unfinished_files_are_removed_at_the_next_start)
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

Test(store, a_damaged_manifest_moves_to_quarantine_and_the_others_are_served)
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
        Seen seen = { .n = 0 };
        store_each(store, see, &seen);
        cr_assert_eq(seen.n, 1);
        cr_assert_str_eq(seen.last.name, "good");
        cr_assert_eq(scratch_count(folder, "quarantine"), 1);
        cr_assert(strstr(log_text, "bad") != NULL && strstr(log_text, "checksum") != NULL, "%s", log_text);
        store_close(store);
        free(text);
        scratch_remove(folder);
}

Test(store, every_flipped_bit_and_every_truncation_of_a_manifest_is_noticed)
{
        Text text = { 0 };
        StoreVersion versions[2] = { version_of(1, "a"), version_of(4, "b") };
        StoreGraph graph = { .name = "digits", .next_version = 5, .default_version = 4, .n_versions = 2, .versions = versions }, read;
        snprintf(versions[1].model, sizeof(versions[1].model), "encoder");
        cr_assert_eq(manifest_write(&graph, &text), STATUS_OK);
        cr_assert_eq(manifest_read(text.data, text.n, &read), STATUS_OK);
        cr_assert_str_eq(read.versions[1].model, "encoder");
        cr_assert_eq(read.default_version, 4);
        manifest_deinit(&read);
        for (size_t i = 0; i < text.n; i++) {
                for (int bit = 0; bit < 8; bit++) {
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                        cr_assert_eq(manifest_read(text.data, text.n, &read), STATUS_DAMAGED, "byte %zu bit %d", i, bit);
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                }
                cr_assert_eq(manifest_read(text.data, i, &read), STATUS_DAMAGED, "cut at %zu", i);
        }
        text_deinit(&text);
}

Test(store, a_blob_whose_bytes_changed_is_damaged_not_served)
{
        char *folder = scratch_make();
        const char *contents[] = { "bytes" };
        StoreVersion version = version_of(1, "bytes");
        char bytes[8];
        char name[80];
        Store *store = open_store(folder);
        put(store, "a", contents, 1);
        snprintf(name, sizeof(name), "blobs/%s", version.parts[0].digest.hex);
        scratch_write(folder, name, "bytez");
        cr_assert_eq(store_read_blob(store, &version.parts[0], bytes), STATUS_DAMAGED);
        scratch_write(folder, name, "bytes and more");
        cr_assert_eq(store_read_blob(store, &version.parts[0], bytes), STATUS_DAMAGED);
        scratch_write(folder, name, "by");
        cr_assert_eq(store_read_blob(store, &version.parts[0], bytes), STATUS_DAMAGED);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_folder_in_use_is_refused_with_the_pid_that_has_it)
{
        char *folder = scratch_make();
        char pid[32];
        Store *store = open_store(folder), *second = NULL;
        cr_assert_eq(store_open(folder, NULL, NULL, &second), STATUS_CONFLICT);
        snprintf(pid, sizeof(pid), "by pid %ld", (long)getpid());
        cr_assert(strstr(failure_current()->message, pid) != NULL, "%s", failure_current()->message);
        store_close(store);
        store = open_store(folder);
        store_close(store);
        scratch_remove(folder);
}

Test(store, a_newer_format_is_refused_and_nothing_is_touched)
{
        char *folder = scratch_make();
        Store *store = NULL;
        scratch_write(folder, "FORMAT", "2\n");
        cr_assert_eq(store_open(folder, NULL, NULL, &store), STATUS_USAGE);
        cr_assert(strstr(failure_current()->message, "format 2") != NULL);
        char *text = scratch_read(folder, "FORMAT");
        cr_assert_str_eq(text, "2\n");
        cr_assert_eq(scratch_count(folder, "."), 1, "only FORMAT is there");
        free(text);
        scratch_remove(folder);
}
