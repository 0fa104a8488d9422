// SPDX-License-Identifier: Apache-2.0
// Uploads on their way into the store and back: whatever the form of the file, and wherever its
// bytes come from, the weights stay the same, and lie in mapped files of their own.
#include <stdio.h>
#include <unistd.h>
#include "api/readers/upload.h"
#include "core/base/limits.h"
#include "core/engine/plan.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/api/formats/zip_maker.h"
#include "tests/engine/scratch.h"

static void init(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}
TestSuite(taking_in, .init = init);

static Engine *open_engine(const char *folder)
{
        Engine *engine = NULL;
        EngineOptions options = { .data_folder = folder, .loader = upload_loader };
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK, "%s", failure_current()->message);
        return engine;
}

static void read_file(const char *name, Text *out)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/models/%s", TESTS_FOLDER, name);
        FILE *file = fopen(path, "rb");
        cr_assert_not_null(file, "%s", path);
        char chunk[4096];
        for (size_t n; (n = fread(chunk, 1, sizeof(chunk), file)) > 0;)
                text_add_n(out, chunk, n);
        fclose(file);
}

// The members of `archive` again: deflated, or stored without regard to alignment.
static void zip_again(const Text *archive, bool deflated, Text *out)
{
        Zip *zip = NULL;
        ZipMember members[ZIP_MAKER_MEMBERS];
        ZipContent contents[ZIP_MAKER_MEMBERS];
        ZipPlaces places;
        cr_assert_eq(zip_open(span_of(archive), &zip), STATUS_OK);
        uint32_t n = zip_count(zip);
        for (uint32_t i = 0; i < n; i++) {
                cr_assert_eq(zip_read(zip, zip_entry(zip, i), SIZE_MAX, &contents[i]), STATUS_OK);
                members[i] = (ZipMember){ .name = zip_entry(zip, i)->name,
                                          .content = (const char *)contents[i].span.data,
                                          .n = contents[i].span.n,
                                          .deflated = deflated };
        }
        make_zip(members, n, false, out, &places);
        zip_free(zip);
}

static Storage *in_memory(const Text *body)
{
        Storage *bytes = NULL;
        cr_assert_eq(storage_new(body->n, false, NULL, &bytes), STATUS_OK);
        memcpy(bytes->data, body->data, body->n);
        return bytes;
}

static Storage *in_file(Engine *engine, const Text *body)
{
        Storage *bytes = NULL;
        int fd;
        cr_assert_eq(engine_temporary(engine, &fd), STATUS_OK);
        cr_assert_eq(write(fd, body->data, body->n), (ssize_t)body->n);
        cr_assert_eq(engine_map_temporary(fd, body->n, &bytes), STATUS_OK);
        close(fd);
        return bytes;
}

static Graph *decode(Storage *body, const char *content_type)
{
        Upload upload = { .n_parts = 0 };
        Graph *graph = NULL;
        cr_assert_eq(upload_split(body, content_type, &upload), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(upload_decode(upload.parts, upload.n_parts, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        upload_deinit(&upload);
        return graph;
}

static void put_body(Engine *engine, Storage *body, const char *content_type, Graph **out_graph)
{
        Upload upload = { .n_parts = 0 };
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        cr_assert_eq(upload_split(body, content_type, &upload), STATUS_OK);
        engine_collect(engine, upload.parts, upload.n_parts, upload.pieces);
        cr_assert_eq(upload_identify(upload.parts, upload.n_parts, NULL, upload.format, &identified),
                     STATUS_OK);
        cr_assert_eq(upload_decode(upload.parts, upload.n_parts, NULL, true, out_graph), STATUS_OK, "%s",
                     failure_current()->message);
        PutRequest put = { .name = "m",
                           .parts = upload.parts,
                           .n_parts = upload.n_parts,
                           .identified = &identified,
                           .graph = *out_graph };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK, "%s",
                     failure_current()->message);
        graph_version_unref(version);
        upload_deinit(&upload);
}

static Graph *load_again(Engine *engine)
{
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        cr_assert_eq(engine_find(engine, "m", 0, &version), STATUS_OK);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK, "%s", failure_current()->message);
        graph_version_unref(version);
        return graph;
}

static void check(const char *what, const Graph *graph, const Graph *wanted)
{
        cr_assert_eq(graph->n_state, wanted->n_state);
        for (uint32_t i = 0; i < graph->n_state; i++) {
                const Storage *storage = graph->state[i].tensor->storage,
                              *right = wanted->state[i].tensor->storage;
                cr_assert_eq(storage->n_bytes, right->n_bytes);
                cr_expect_eq(memcmp(storage->data, right->data, right->n_bytes), 0, "%s: %s", what,
                             graph->state[i].path);
                cr_expect_eq((uintptr_t)storage->data % dtype_info[graph->state[i].tensor->meta.dtype].bytes,
                             0, "%s: %s is not aligned", what, graph->state[i].path);
                cr_expect(storage->mapped || storage->n_bytes < PIECE_MIN_BYTES, "%s: %s is in memory", what,
                          graph->state[i].path);
        }
}

// Both ways of coming in, before and after a restart.
static void check_body(const char *what, const Text *body, const char *content_type)
{
        Storage *plain = in_memory(body);
        Graph *wanted = decode(plain, content_type);
        for (int from_file = 0; from_file < 2; from_file++) {
                char *folder = scratch_make();
                Graph *graph = NULL;
                Engine *engine = open_engine(folder);
                Storage *bytes = from_file ? in_file(engine, body) : in_memory(body);
                put_body(engine, bytes, content_type, &graph);
                if (!from_file)
                        memset(bytes->data, 0xee, bytes->n_bytes);
                cr_expect_eq(atomic_load(&bytes->ref.count), 1, "%s: something keeps the upload", what);
                storage_unref(bytes);
                check(what, graph, wanted);
                graph_unref(graph);
                engine_close(engine);
                engine = open_engine(folder);
                graph = load_again(engine);
                check(what, graph, wanted);
                graph_unref(graph);
                engine_close(engine);
                cr_expect_eq(scratch_count(folder, "tmp"), 0);
                scratch_remove(folder);
        }
        graph_unref(wanted);
        storage_unref(plain);
}

Test(taking_in, archives_keep_their_weights_stored_aligned_or_not_and_deflated)
{
        Text archive = { 0 }, other = { 0 };
        read_file("digits.pt2", &archive);
        check_body("as torch writes it", &archive, "");
        zip_again(&archive, false, &other);
        check_body("not aligned", &other, "");
        text_deinit(&other);
        zip_again(&archive, true, &other);
        check_body("deflated", &other, "");
        text_deinit(&other);
        text_deinit(&archive);
}

Test(taking_in, weights_of_a_form_lie_wherever_the_form_puts_them)
{
        enum { N_LARGE = 20000 };
        static const char graph[] = "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": "
                                    "\"x\", \"target\": \"x\"},"
                                    "{\"op\": \"get_attr\", \"name\": \"large\", \"target\": \"large\"}, "
                                    "{\"op\": \"get_attr\", \"name\": \"small\", "
                                    "\"target\": "
                                    "\"small\"}, {\"op\": \"call_function\", \"name\": \"add\", \"target\": "
                                    "\"torch.add\", \"args\": [\"%x\", \"%large\"]},"
                                    "{\"op\": \"call_function\", \"name\": \"add_1\", \"target\": "
                                    "\"torch.add\", \"args\": [\"%add\", \"%small\"]},"
                                    "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", "
                                    "\"args\": [\"%add_1\"]}]}";
        static const char header[] =
                "{\"large\": {\"dtype\": \"F32\", \"shape\": [20000], \"data_offsets\": [0, 80000]}, "
                "\"small\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [80000, 80004]}}";
        for (int shift = 0; shift < 5; shift++) {
                Text body = { 0 };
                text_addf(&body, "--b\r\nContent-Disposition: form-data; name=\"graph\"\r\n\r\n%s", graph);
                text_repeat(&body, ' ', (size_t)shift);
                text_add(&body, "\r\n--b\r\nContent-Disposition: form-data; name=\"weights\"\r\n\r\n");
                put(&body, sizeof(header) - 1, 8);
                text_add(&body, header);
                for (uint32_t i = 0; i <= N_LARGE; i++)
                        put(&body, 0x3f800000u + i, 4);
                text_add(&body, "\r\n--b--\r\n");
                cr_assert_eq(text_status(&body), STATUS_OK);
                check_body("a form", &body, "multipart/form-data; boundary=b");
                text_deinit(&body);
        }
}

Test(taking_in, limits_of_inflated_uploads_do_not_hold_for_files_of_this_machine)
{
        Text archive = { 0 }, body = { 0 };
        Upload upload = { .n_parts = 0 };
        Graph *graph = NULL;
        read_file("digits.pt2", &archive);
        zip_again(&archive, true, &body);
        Storage *bytes = in_memory(&body);
        cr_assert_eq(upload_split(bytes, "", &upload), STATUS_OK);
        limits.max_upload = (int64_t)body.n;
        limits.max_inflated = 10000;
        cr_expect_eq(upload_check_inflated(&upload), STATUS_TOO_LARGE);
        cr_expect_eq(upload_decode(upload.parts, 1, NULL, true, &graph), STATUS_TOO_LARGE);
        cr_expect_not_null(strstr(failure_current()->message, "(max_inflated in GET /v1)"));
        upload_mark_local(&upload);
        cr_assert_eq(upload_decode(upload.parts, 1, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        graph_unref(graph);
        limits.max_memory = 10000;
        cr_expect_eq(upload_decode(upload.parts, 1, NULL, true, &graph), STATUS_TOO_LARGE);
        cr_expect_not_null(strstr(failure_current()->message, "10000 bytes"));
        upload_deinit(&upload);
        storage_unref(bytes);
        text_deinit(&body);
        text_deinit(&archive);
}
