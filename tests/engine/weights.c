// SPDX-License-Identifier: Apache-2.0
// Weights of stored versions: one file, one mapping, one packed copy, whoever has them. Uploads are forms: a graph as JSON and safetensors.
#include <criterion/criterion.h>
#include "api/upload.h"
#include "core/engine.h"
#include "core/targets/targets.h"
#include "tests/engine/scratch.h"

static Engine *engine;
static char *folder;

static void open_engine(void)
{
        EngineOptions options = { .data_folder = folder, .loader = upload_loader, .no_warm_up = true };
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK, "%s", failure_current()->message);
}

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        folder = scratch_make();
        open_engine();
}

static void stop(void)
{
        engine_close(engine);
        scratch_remove(folder);
}

TestSuite(weights, .init = start, .fini = stop);

// ---- uploads ----
enum { CHANNELS = 64, N_WEIGHT = CHANNELS * CHANNELS * 9 };
static const size_t weight_bytes = N_WEIGHT * sizeof(float);

static Storage *bytes_of(const void *data, size_t n)
{
        Storage *storage = NULL;
        cr_assert_eq(storage_new(n, false, NULL, &storage), STATUS_OK);
        memcpy(storage->data, data, n);
        return storage;
}

// w [64, 64, 3, 3] and four vectors for a batch norm; `gain` is the first vector's.
static Storage *weights_file(float gain)
{
        static const char *const names[] = { "gamma", "beta", "mean", "var" };
        Text text = { 0 };
        text_addf(&text, "{\"w\": {\"dtype\": \"F32\", \"shape\": [%d, %d, 3, 3], \"data_offsets\": [0, %zu]}", CHANNELS, CHANNELS,
                  weight_bytes);
        size_t at = weight_bytes, vector = CHANNELS * sizeof(float);
        for (int i = 0; i < 4; i++, at += vector)
                text_addf(&text, ", \"%s\": {\"dtype\": \"F32\", \"shape\": [%d], \"data_offsets\": [%zu, %zu]}", names[i], CHANNELS, at,
                          at + vector);
        text_add(&text, "}");
        while (text.n % 8 != 0)
                text_add(&text, " ");
        uint64_t n_header = text.n;
        Storage *storage = NULL;
        cr_assert_eq(storage_new(8 + text.n + at, false, NULL, &storage), STATUS_OK);
        memcpy(storage->data, &n_header, 8);
        memcpy(storage->data + 8, text.data, text.n);
        float *numbers = (float *)(void *)(storage->data + 8 + text.n);
        for (int i = 0; i < N_WEIGHT; i++)
                numbers[i] = (float)(i % 13) / 8.0f - 0.75f;
        for (int i = 0; i < 4 * CHANNELS; i++)
                numbers[N_WEIGHT + i] = i < CHANNELS ? gain : 1.0f;
        text_deinit(&text);
        return storage;
}

// conv2d(x, w), batch norm when `normed`, then torch.<last>.
static void graph_text(bool normed, const char *last, Text *out)
{
        text_add(out, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"}");
        static const char *const states[] = { "w", "gamma", "beta", "mean", "var" };
        for (int i = 0; i < 5; i++)
                text_addf(out, ", {\"op\": \"get_attr\", \"name\": \"%s\", \"target\": \"%s\"}", states[i], states[i]);
        text_add(out, ", {\"op\": \"call_function\", \"name\": \"c\", \"target\": \"torch.nn.functional.conv2d\", \"args\": [\"%x\", "
                      "\"%w\", null, 1, 1]}");
        if (normed)
                text_add(out, ", {\"op\": \"call_function\", \"name\": \"n\", \"target\": \"torch.nn.functional.batch_norm\", \"args\": "
                              "[\"%c\", \"%mean\", \"%var\", \"%gamma\", \"%beta\"]}");
        text_addf(out, ", {\"op\": \"call_function\", \"name\": \"y\", \"target\": \"%s\", \"args\": [\"%%%s\"]}", last,
                  normed ? "n" : "c");
        text_add(out, ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%y\"]}]}");
}

static void put(const char *name, bool normed, const char *last, float gain)
{
        Text text = { 0 };
        graph_text(normed, last, &text);
        UploadPart parts[2] = { { .name = "graph", .bytes = bytes_of(text.data, text.n) },
                                { .name = "weights", .bytes = weights_file(gain) } };
        Pieces pieces[2] = { { .items = NULL } };
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        engine_collect(engine, parts, 2, pieces);
        cr_assert_eq(upload_identify(parts, 2, NULL, "fx", &identified), STATUS_OK);
        cr_assert_eq(upload_decode(parts, 2, NULL, true, &graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(engine_put(engine, name, parts, 2, &identified, graph, &version, &created), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert(created);
        graph_version_unref(version);
        graph_unref(graph);
        for (int i = 0; i < 2; i++) {
                pieces_deinit(&pieces[i]);
                storage_unref(parts[i].bytes);
        }
        text_deinit(&text);
}

static Graph *graph_of(const char *name, int64_t number)
{
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        cr_assert_eq(engine_find(engine, name, number, &version), STATUS_OK);
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK, "%s", failure_current()->message);
        graph_version_unref(version);
        return graph;
}

static const Storage *weight_of(const Graph *graph)
{
        const State *state = graph_state(graph, "w");
        cr_assert_not_null(state);
        return state->tensor->storage;
}

// Bytes of all programs once `graph` is compiled for one image of size x size.
static size_t compiled_bytes(Graph *graph, int size)
{
        PlannedRun plan = { .n_threads = 1 };
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[4] = { 1, CHANNELS, size, size };
        meta_init(&meta, DTYPE_F32, 4, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        Value input = value_tensor_take(tensor);
        RunRequest request = { .inputs = { &input, 1 }, .mode = RUN_MODE_COMPILED };
        cr_assert_eq(engine_bind(graph, &request, &plan), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(engine_plan_here(engine, &plan), STATUS_OK, "%s", failure_current()->message);
        cr_assert_not_null(plan.program);
        planned_run_deinit(&plan);
        value_clear(&input);
        return engine_stats(engine).programs.bytes;
}

// ---- tests ----
static void check_one_copy(void)
{
        Graph *first = graph_of("m", 1), *second = graph_of("m", 2), *other = graph_of("other", 1);
        cr_assert(weight_of(first)->mapped);
        cr_assert_eq((const void *)weight_of(first)->data, (const void *)weight_of(second)->data, "one mapping");
        cr_assert_eq((const void *)weight_of(first)->data, (const void *)weight_of(other)->data, "of other names as well");
        size_t one = compiled_bytes(first, 32), two = compiled_bytes(second, 32), three = compiled_bytes(other, 32);
        cr_assert_geq(one, weight_bytes, "it is packed");
        cr_assert_lt(two - one, weight_bytes / 2, "once: %zu, then %zu", one, two);
        cr_assert_lt(three - two, weight_bytes / 2, "once: %zu, then %zu", two, three);
        graph_unref(first);
        graph_unref(second);
        graph_unref(other);
}

Test(weights, versions_with_the_same_weight_have_one_mapping_and_one_packed_copy_of_it)
{
        put("m", false, "torch.relu", 1.0f);
        put("m", false, "torch.neg", 1.0f);
        put("other", false, "torch.abs", 2.0f); // another file, the same large weight
        check_one_copy();
        engine_close(engine);
        open_engine();
        check_one_copy();
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_geq(engine_stats(engine).programs.bytes, weight_bytes, "as long as one of them is there");
        cr_assert_eq(engine_delete(engine, "other", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0);
}

Test(weights, a_weight_into_which_a_norm_was_folded_is_shared_by_programs_and_versions_but_not_with_another_norm)
{
        put("m", true, "torch.relu", 1.5f);
        put("m", true, "torch.neg", 1.5f);
        put("other", true, "torch.relu", 2.0f);
        Graph *first = graph_of("m", 1), *second = graph_of("m", 2), *other = graph_of("other", 1);
        size_t one = compiled_bytes(first, 32), two = compiled_bytes(first, 40), three = compiled_bytes(second, 32);
        cr_assert_geq(one, 2 * weight_bytes, "the folded one and the packed one");
        cr_assert_lt(two - one, weight_bytes / 2, "another size: %zu, then %zu", one, two);
        cr_assert_lt(three - two, weight_bytes / 2, "another version: %zu, then %zu", two, three);
        cr_assert_geq(compiled_bytes(other, 32) - three, 2 * weight_bytes, "another norm");
        graph_unref(first);
        graph_unref(second);
        graph_unref(other);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(engine_delete(engine, "other", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0, "and goes with the last of them");
}
