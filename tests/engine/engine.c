// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <pthread.h>
#include "core/engine/plan.h"
#include "core/engine/put.h"
#include "tests/engine/scratch.h"

// A loader that makes an empty graph of any bytes but "broken" and "larger", and counts its calls.
// Bytes that are gone read as zeros.
static int n_loads;
static char cut_path[512]; // cut before it is read

static Status load(void *context, const UploadPart *parts, uint32_t n_parts, const char *model,
                   Graph **out_graph)
{
        (void)context;
        (void)model;
        n_loads++;
        if (n_parts == 1 && parts[0].bytes->n_bytes == 6 && memcmp(parts[0].bytes->data, "broken", 6) == 0)
                return fail(STATUS_MALFORMED, "broken bytes");
        if (n_parts == 1 && parts[0].bytes->n_bytes == 6 && memcmp(parts[0].bytes->data, "larger", 6) == 0)
                return fail(STATUS_TOO_LARGE, "over a limit");
        if (cut_path[0] != '\0') {
                cr_assert_eq(truncate(cut_path, 0), 0);
                cr_assert_eq(((const volatile uint8_t *)parts[0].bytes->data)[0], 0);
        }
        return graph_new(GRAPH_FX_JSON, out_graph);
}

static Engine *open_engine(const char *folder)
{
        Engine *engine = NULL;
        EngineOptions options = { .data_folder = folder, .loader = { .load = load } };
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK, "%s", failure_current()->message);
        return engine;
}

static Status put_if(Engine *engine, const char *name, const char *text, const PutCondition *only_if,
                     int64_t *out_number, bool *out_created)
{
        Storage *bytes = NULL;
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        storage_new(strlen(text), false, NULL, &bytes);
        memcpy(bytes->data, text, strlen(text));
        UploadPart part = { .name = "", .bytes = bytes };
        graph_new(GRAPH_FX_JSON, &graph);
        cr_assert_eq(upload_identify(&part, 1, NULL, "fx", &identified), STATUS_OK);
        PutRequest put = { .name = name,
                           .parts = &part,
                           .n_parts = 1,
                           .identified = &identified,
                           .graph = graph,
                           .only_if = only_if };
        Status status = engine_put(engine, &put, &version, out_created);
        if (status == STATUS_OK)
                *out_number = version->stored.version;
        graph_version_unref(version);
        graph_unref(graph);
        storage_unref(bytes);
        return status;
}

static bool put(Engine *engine, const char *name, const char *text, int64_t *out_number)
{
        bool created;
        cr_assert_eq(put_if(engine, name, text, NULL, out_number, &created), STATUS_OK, "%s",
                     failure_current()->message);
        return created;
}

static int64_t default_of(Engine *engine, const char *name)
{
        GraphVersion *version = NULL;
        if (engine_find(engine, name, 0, &version) != STATUS_OK)
                return -1;
        int64_t number = version->stored.version;
        graph_version_unref(version);
        return number;
}

// "Only if version 1 is the default." While it looks for the first time, another client's upload
// comes in behind its back.
typedef struct Looks {
        Engine *engine;
        const char *other;
        int n;
} Looks;

static Status only_if_first(void *context)
{
        Looks *looks = context;
        int64_t number;
        bool held = default_of(looks->engine, "m") == 1;
        if (looks->n++ == 0)
                put(looks->engine, "m", looks->other, &number);
        return held ? STATUS_OK : fail(STATUS_PRECONDITION, "it has changed");
}

Test(engine, a_condition_that_another_upload_breaks_while_the_weights_are_stored_is_noticed)
{
        char *folder = scratch_make();
        for (int stored = 0; stored < 2; stored++) {
                Engine *engine = open_engine(stored == 1 ? folder : NULL);
                Looks looks = { engine, "other", 0 };
                PutCondition only_if = { only_if_first, &looks };
                int64_t number;
                bool created;
                put(engine, "m", "first", &number);
                cr_assert_eq(put_if(engine, "m", "mine", &only_if, &number, &created), STATUS_PRECONDITION);
                cr_assert_eq(looks.n, 2);
                cr_assert_eq(default_of(engine, "m"), 2, "the other client's");
                cr_assert_eq(scratch_count(folder, "blobs"), stored == 1 ? 2 : 0,
                             "what was refused is not kept");
                cr_assert_not(put(engine, "m", "other", &number));
                engine_close(engine);
        }
        scratch_remove(folder);
}

Test(engine, the_same_content_again_is_no_new_version_but_a_b_a_is_version_three)
{
        Engine *engine = open_engine(NULL);
        int64_t number;
        cr_assert(put(engine, "m", "A", &number));
        cr_assert_eq(number, 1);
        cr_assert_not(put(engine, "m", "A", &number));
        cr_assert_eq(number, 1);
        cr_assert(put(engine, "m", "B", &number));
        cr_assert(put(engine, "m", "A", &number));
        cr_assert_eq(number, 3);
        cr_assert_eq(default_of(engine, "m"), 3);
        engine_close(engine);
}

Test(engine, version_numbers_are_not_used_again_while_the_name_exists)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        int64_t number;
        put(engine, "m", "A", &number);
        put(engine, "m", "B", &number);
        cr_assert_eq(engine_delete(engine, "m", 2), STATUS_OK);
        cr_assert_eq(default_of(engine, "m"), 1);
        engine = engine_close(engine);
        engine = open_engine(folder);
        put(engine, "m", "C", &number);
        cr_assert_eq(number, 3);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(default_of(engine, "m"), -1);
        put(engine, "m", "D", &number);
        cr_assert_eq(number, 1);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, an_older_version_can_be_the_default_again_and_stays_it_over_a_restart)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        int64_t number;
        put(engine, "m", "A", &number);
        put(engine, "m", "B", &number);
        cr_assert_eq(engine_change(engine, "m", &(HeadChange){ .default_version = 3 }), STATUS_NOT_FOUND);
        cr_assert_eq(engine_change(engine, "n", &(HeadChange){ .default_version = 1 }), STATUS_NOT_FOUND);
        cr_assert_eq(engine_change(engine, "m", &(HeadChange){ .default_version = 1 }), STATUS_OK);
        cr_assert_eq(default_of(engine, "m"), 1);
        engine = engine_close(engine);
        engine = open_engine(folder);
        cr_assert_eq(default_of(engine, "m"), 1);
        put(engine, "m", "C", &number);
        cr_assert_eq(number, 3);
        cr_assert_eq(default_of(engine, "m"), 3);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, stored_graphs_are_decoded_on_first_use_and_only_once)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "A", &number);
        engine = engine_close(engine);
        n_loads = 0;
        engine = open_engine(folder);
        cr_assert_eq(engine_find(engine, "m", 0, &version), STATUS_OK);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_UNREAD);
        cr_assert_eq(n_loads, 0);
        Ticket first = { .next = NULL }, second = { .next = NULL };
        Wait wait, other;
        cr_assert_eq(engine_acquire(engine, version, &first, &graph, &wait), STATUS_OK);
        cr_assert(wait.parked && wait.work != NULL && wait.at_once);
        cr_assert_eq(engine_acquire(engine, version, &second, &graph, &other), STATUS_OK);
        cr_assert(other.parked && other.work == NULL);
        int n_woken = 0;
        for (Ticket *ticket = engine_work_do(wait.work), *next; ticket != NULL; ticket = next, n_woken++) {
                next = ticket->next;
                ticket_drop(ticket);
        }
        cr_assert_eq(n_woken, 2);
        cr_assert_eq(n_loads, 1);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_READY);
        cr_assert_eq(engine_acquire(engine, version, &first, &graph, &wait), STATUS_OK);
        cr_assert_not(wait.parked);
        graph_unref(graph);
        cr_assert_eq(n_loads, 1);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_stored_graph_that_cannot_be_read_any_more_is_damaged_with_its_reason)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "broken", &number);
        engine = engine_close(engine);
        engine = open_engine(folder);
        engine_find(engine, "m", 0, &version);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_MALFORMED);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_DAMAGED);
        cr_assert_str_eq(version->reason, "broken bytes");
        Ticket ticket = { .next = NULL };
        Wait wait;
        cr_assert_eq(engine_acquire(engine, version, &ticket, &graph, &wait), STATUS_DAMAGED);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_graph_that_is_deleted_before_it_is_read_is_gone_not_damaged)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "A", &number);
        engine = engine_close(engine);
        engine = open_engine(folder);
        engine_find(engine, "m", 0, &version);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_NOT_FOUND, "%s",
                     failure_current()->message);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_UNREAD);
        Storage *bytes = NULL;
        cr_assert_eq(engine_part(engine, version, STORE_GRAPH, &bytes), STATUS_NOT_FOUND);
        cr_expect(strstr(failure_current()->message, "was deleted") != NULL);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

static void put_with_samples(Engine *engine, const char *samples)
{
        Storage *bytes[2] = { NULL, NULL };
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        storage_new(1, false, NULL, &bytes[0]);
        memcpy(bytes[0]->data, "A", 1);
        storage_new(strlen(samples), false, NULL, &bytes[1]);
        memcpy(bytes[1]->data, samples, strlen(samples));
        UploadPart parts[2] = { { .name = "graph", .bytes = bytes[0] },
                                { .name = "samples", .bytes = bytes[1] } };
        graph_new(GRAPH_FX_JSON, &graph);
        cr_assert_eq(upload_identify(parts, 2, NULL, "fx", &identified), STATUS_OK);
        PutRequest put = {
                .name = "m", .parts = parts, .n_parts = 2, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK);
        graph_version_unref(version);
        graph_unref(graph);
        storage_unref(bytes[0]);
        storage_unref(bytes[1]);
}

// Who found a version goes on with it, whoever gives it other samples meanwhile.
Test(engine, a_version_whose_samples_were_replaced_is_there_for_who_found_it_before)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        Storage *bytes = NULL;
        put_with_samples(engine, "first");
        engine_find(engine, "m", 0, &version);
        put_with_samples(engine, "second one");
        cr_assert_eq(engine_part(engine, version, STORE_SAMPLES, &bytes), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(bytes->n_bytes, 10, "those that are there now");
        bytes = storage_unref(bytes);
        engine_set_loaded(engine, "m", false);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK, "%s", failure_current()->message);
        graph_unref(graph);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(engine_part(engine, version, STORE_SAMPLES, &bytes), STATUS_NOT_FOUND);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_stored_graph_that_a_limit_refuses_now_is_not_damaged)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "larger", &number);
        engine = engine_close(engine);
        engine = open_engine(folder);
        engine_find(engine, "m", 0, &version);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_TOO_LARGE);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_UNREAD);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_document_whose_pages_are_gone_while_it_is_read_is_damaged)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "A", &number);
        engine = engine_close(engine);
        engine = open_engine(folder);
        engine_find(engine, "m", 0, &version);
        snprintf(cut_path, sizeof(cut_path), "%s/blobs/%s", folder, version->stored.parts[0].document.hex);
        chmod(cut_path, 0600);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_DAMAGED);
        cr_assert_null(graph);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_DAMAGED);
        cut_path[0] = '\0';
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, an_upload_whose_spooled_pages_are_gone_is_refused)
{
        char *folder = scratch_make();
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        StoreVersion identified;
        bool created;
        int fd;
        UploadPart part = { .name = "" };
        cr_assert_eq(engine_temporary(engine, &fd), STATUS_OK);
        cr_assert_eq(pwrite(fd, "A", 1, 0), 1);
        cr_assert_eq(engine_map_temporary(fd, 1, &part.bytes), STATUS_OK);
        cr_assert_eq(upload_identify(&part, 1, NULL, "fx", &identified), STATUS_OK);
        cr_assert_eq(ftruncate(fd, 0), 0);
        close(fd);
        cr_assert_eq(((const volatile uint8_t *)part.bytes->data)[0], 0, "the reader has met it");
        graph_new(GRAPH_FX_JSON, &graph);
        PutRequest put = {
                .name = "m", .parts = &part, .n_parts = 1, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_IO);
        cr_assert_eq(default_of(engine, "m"), -1);
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        graph_unref(graph);
        storage_unref(part.bytes);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_version_whose_bytes_are_missing_is_damaged_from_the_start_and_mended_by_the_same_upload)
{
        char *folder = scratch_make(), path[512];
        Engine *engine = open_engine(folder);
        GraphVersion *version = NULL;
        int64_t number;
        put(engine, "m", "A", &number);
        put(engine, "m", "B", &number);
        engine_find(engine, "m", 2, &version);
        snprintf(path, sizeof(path), "%s/blobs/%s", folder, version->stored.parts[0].document.hex);
        version = graph_version_unref(version);
        engine = engine_close(engine);
        unlink(path);
        engine = open_engine(folder);
        engine_find(engine, "m", 1, &version);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_UNREAD);
        version = graph_version_unref(version);
        engine_find(engine, "m", 2, &version);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_DAMAGED);
        version = graph_version_unref(version);
        cr_assert_not(put(engine, "m", "B", &number));
        cr_assert_eq(number, 2);
        engine_find(engine, "m", 2, &version);
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_READY);
        graph_version_unref(version);
        engine_close(engine);
        scratch_remove(folder);
}

Test(engine, a_version_in_use_outlives_its_deletion)
{
        Engine *engine = open_engine(NULL);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        int64_t number;
        put(engine, "m", "A", &number);
        engine_find(engine, "m", 0, &version);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_str_eq(version->name, "m");
        cr_assert_eq(atomic_load(&graph->ref.count), 1, "the registry let go");
        graph_unref(graph);
        graph_version_unref(version);
        engine_close(engine);
}

Test(engine, a_name_of_64_hex_digits_must_be_the_content_id)
{
        Engine *engine = open_engine(NULL);
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        StoreVersion identified;
        Storage *bytes = NULL;
        bool created;
        char wrong[65];
        memset(wrong, 'a', 64);
        wrong[64] = '\0';
        storage_new(1, true, NULL, &bytes);
        UploadPart part = { .name = "", .bytes = bytes };
        graph_new(GRAPH_FX_JSON, &graph);
        upload_identify(&part, 1, NULL, "fx", &identified);
        PutRequest put = {
                .name = wrong, .parts = &part, .n_parts = 1, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_CONFLICT);
        put.name = NULL;
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK);
        cr_assert_str_eq(version->name, identified.id.hex);
        graph_version_unref(version);
        graph_unref(graph);
        storage_unref(bytes);
        engine_close(engine);
}

Test(engine, the_id_of_two_parts_is_the_hash_of_their_digests_sorted_by_part_name)
{
        Storage *a = NULL, *b = NULL;
        StoreVersion forward, backward;
        storage_new(1, true, NULL, &a);
        storage_new(2, true, NULL, &b);
        UploadPart parts[2] = { { .name = "graph", .bytes = a }, { .name = "weights", .bytes = b } },
                   swapped[2] = { parts[1], parts[0] };
        upload_identify(parts, 2, NULL, "fx", &forward);
        upload_identify(swapped, 2, NULL, "fx", &backward);
        cr_assert_str_eq(forward.id.hex, backward.id.hex);
        char joined[129];
        snprintf(joined, sizeof(joined), "%s%s", sha256_of(a->data, 1).hex, sha256_of(b->data, 2).hex);
        cr_assert_str_eq(forward.id.hex, sha256_of(joined, 128).hex);
        storage_unref(a);
        storage_unref(b);
}

Test(engine, lists_are_sorted_by_name_and_paged)
{
        Engine *engine = open_engine(NULL);
        GraphVersion *rows[2];
        uint32_t n;
        bool more;
        int64_t number;
        put(engine, "c", "1", &number);
        put(engine, "a", "2", &number);
        put(engine, "b", "3", &number);
        engine_list(engine, NULL, 2, rows, &n, &more);
        cr_assert_eq(n, 2);
        cr_assert(more);
        cr_assert_str_eq(rows[0]->name, "a");
        cr_assert_str_eq(rows[1]->name, "b");
        graph_version_unref(rows[0]);
        graph_version_unref(rows[1]);
        engine_list(engine, "b", 2, rows, &n, &more);
        cr_assert_eq(n, 1);
        cr_assert_not(more);
        cr_assert_str_eq(rows[0]->name, "c");
        graph_version_unref(rows[0]);
        engine_close(engine);
}

Test(engine, a_page_holds_the_first_names_in_whatever_order_they_came)
{
        enum { N = 31, PAGE = 4 };
        Engine *engine = open_engine(NULL);
        GraphVersion *rows[PAGE];
        char after[8] = "", want[8];
        int64_t number;
        bool more = true;
        uint32_t n_all = 0, n;
        for (int i = 0; i < N; i++) {
                char name[8];
                snprintf(name, sizeof(name), "g%02d", i * 13 % N);
                put(engine, name, name, &number);
        }
        while (more) {
                cr_assert_eq(engine_list(engine, after, PAGE, rows, &n, &more), STATUS_OK);
                cr_assert_eq(more, n_all + n < N);
                for (uint32_t i = 0; i < n; i++) {
                        snprintf(want, sizeof(want), "g%02u", n_all++);
                        cr_expect_str_eq(rows[i]->name, want);
                        memcpy(after, want, sizeof(after));
                        graph_version_unref(rows[i]);
                }
        }
        cr_assert_eq(n_all, N);
        engine_close(engine);
}

static _Atomic int n_first;

// "Put it if it is not there": looking and putting are one change.
static void *put_if_absent(void *context)
{
        Engine *engine = context;
        int64_t number;
        engine_begin_change(engine);
        if (default_of(engine, "m") == -1) {
                put(engine, "m", "content", &number);
                atomic_fetch_add(&n_first, 1);
        }
        engine_end_change(engine);
        return NULL;
}

Test(engine, nobody_comes_between_looking_and_changing)
{
        for (int round = 0; round < 50; round++) {
                pthread_t threads[8];
                Engine *engine = open_engine(NULL);
                atomic_store(&n_first, 0);
                for (int i = 0; i < 8; i++)
                        cr_assert_eq(pthread_create(&threads[i], NULL, put_if_absent, engine), 0);
                for (int i = 0; i < 8; i++)
                        pthread_join(threads[i], NULL);
                cr_assert_eq(atomic_load(&n_first), 1);
                engine_close(engine);
        }
}

Test(engine, guards_that_cannot_be_checked_are_said_at_upload)
{
        static const char *guards[] = { "L['x'].size()[0] > 1" };
        Graph *graph = NULL;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_expect_eq(engine_check(graph), STATUS_OK);
        graph_unref(graph);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        graph->signature.guards = guards;
        graph->signature.n_guards = 1;
        cr_expect_eq(engine_check(graph), STATUS_UNSUPPORTED);
        graph->signature.guards = NULL;
        graph->signature.n_guards = 0;
        graph_unref(graph);
}
