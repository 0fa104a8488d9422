// SPDX-License-Identifier: Apache-2.0
// Weights of stored versions: one file, one mapping, one packed copy, whoever has them. Uploads are
// forms: a graph as JSON and safetensors.
#include <criterion/criterion.h>
#include <fcntl.h>
#include "api/readers/upload.h"
#include "core/engine/describe.h"
#include "core/engine/task.h"
#include "core/interp/interp.h"
#include "core/engine/private.h"
#include "core/targets/targets.h"
#include "tests/engine/scratch.h"

static Engine *engine;
static char *folder;

static void (*after_load)(void);

static Status load(void *context, const UploadPart *parts, uint32_t n_parts, const char *model,
                   Graph **out_graph)
{
        Status status = upload_loader.load(context, parts, n_parts, model, out_graph);
        void (*act)(void) = after_load;
        after_load = NULL;
        if (act != NULL)
                act();
        return status;
}

static void open_engine(void)
{
        EngineOptions options = { .data_folder = folder, .loader = { .load = load }, .no_warm_up = true };
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
        text_addf(&text,
                  "{\"w\": {\"dtype\": \"F32\", \"shape\": [%d, %d, 3, 3], \"data_offsets\": [0, %zu]}",
                  CHANNELS, CHANNELS, weight_bytes);
        size_t at = weight_bytes, vector = CHANNELS * sizeof(float);
        for (int i = 0; i < 4; i++, at += vector)
                text_addf(&text,
                          ", \"%s\": {\"dtype\": \"F32\", \"shape\": [%d], \"data_offsets\": [%zu, %zu]}",
                          names[i], CHANNELS, at, at + vector);
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
        text_add(out, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", "
                      "\"target\": \"x\"}");
        static const char *const states[] = { "w", "gamma", "beta", "mean", "var" };
        for (int i = 0; i < 5; i++)
                text_addf(out, ", {\"op\": \"get_attr\", \"name\": \"%s\", \"target\": \"%s\"}", states[i],
                          states[i]);
        text_add(out, ", {\"op\": \"call_function\", \"name\": \"c\", \"target\": "
                      "\"torch.nn.functional.conv2d\", \"args\": [\"%x\", "
                      "\"%w\", null, 1, 1]}");
        if (normed)
                text_add(out, ", {\"op\": \"call_function\", \"name\": \"n\", \"target\": "
                              "\"torch.nn.functional.batch_norm\", \"args\": "
                              "[\"%c\", \"%mean\", \"%var\", \"%gamma\", \"%beta\"]}");
        text_addf(out,
                  ", {\"op\": \"call_function\", \"name\": \"y\", \"target\": \"%s\", \"args\": [\"%%%s\"]}",
                  last, normed ? "n" : "c");
        text_add(
                out,
                ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%y\"]}]}");
}

static bool put(const char *name, bool normed, const char *last, float gain)
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
        cr_assert_eq(upload_decode(parts, 2, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        PutRequest put = {
                .name = name, .parts = parts, .n_parts = 2, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK, "%s",
                     failure_current()->message);
        graph_version_unref(version);
        graph_unref(graph);
        for (int i = 0; i < 2; i++) {
                pieces_deinit(&pieces[i]);
                storage_unref(parts[i].bytes);
        }
        text_deinit(&text);
        return created;
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

// The bound run of `graph` on one image of size x size, with its program.
static void plan_run(Graph *graph, int size, PlannedRun *plan)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[4] = { 1, CHANNELS, size, size };
        meta_init(&meta, DTYPE_F32, 4, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        Value input = value_tensor_take(tensor);
        RunRequest request = { .inputs = { &input, 1 }, .mode = RUN_MODE_COMPILED };
        *plan = (PlannedRun){ .n_threads = 1 };
        cr_assert_eq(engine_bind(graph, &request, plan), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(engine_plan_here(engine, plan), STATUS_OK, "%s", failure_current()->message);
        cr_assert_not_null(plan->program);
        value_clear(&input);
}

// Bytes of all programs once `graph` is compiled for it.
static size_t compiled_bytes(Graph *graph, int size)
{
        PlannedRun plan;
        plan_run(graph, size, &plan);
        planned_run_deinit(&plan);
        return engine_stats(engine).programs.bytes;
}

// ---- tests ----
static void check_one_copy(void)
{
        Graph *first = graph_of("m", 1), *second = graph_of("m", 2), *other = graph_of("other", 1);
        cr_assert(weight_of(first)->mapped);
        cr_assert_eq((const void *)weight_of(first)->data, (const void *)weight_of(second)->data,
                     "one mapping");
        cr_assert_eq((const void *)weight_of(first)->data, (const void *)weight_of(other)->data,
                     "of other names as well");
        size_t one = compiled_bytes(first, 32), two = compiled_bytes(second, 32),
               three = compiled_bytes(other, 32);
        cr_assert_geq(one, weight_bytes, "it is packed");
        cr_assert_lt(two - one, weight_bytes / 2, "once: %zu, then %zu", one, two);
        cr_assert_lt(three - two, weight_bytes / 2, "once: %zu, then %zu", two, three);
        graph_unref(first);
        graph_unref(second);
        graph_unref(other);
}

Test(weights, versions_with_the_same_weight_have_one_mapping_and_one_packed_copy_of_it)
{
        cr_assert(put("m", false, "torch.relu", 1.0f));
        cr_assert(put("m", false, "torch.neg", 1.0f));
        cr_assert(put("other", false, "torch.abs", 2.0f)); // another file, the same large weight
        check_one_copy();
        engine_close(engine);
        open_engine();
        check_one_copy();
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_geq(engine_stats(engine).programs.bytes, weight_bytes, "as long as one of them is there");
        cr_assert_eq(engine_delete(engine, "other", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0);
}

Test(weights,
     a_weight_into_which_a_norm_was_folded_is_shared_by_programs_and_versions_but_not_with_another_norm)
{
        cr_assert(put("m", true, "torch.relu", 1.5f));
        cr_assert(put("m", true, "torch.neg", 1.5f));
        cr_assert(put("other", true, "torch.relu", 2.0f));
        Graph *first = graph_of("m", 1), *second = graph_of("m", 2), *other = graph_of("other", 1);
        size_t one = compiled_bytes(first, 32), two = compiled_bytes(first, 40),
               three = compiled_bytes(second, 32);
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

// ---- damage ----
static GraphVersion *version_of(const char *name)
{
        GraphVersion *version = NULL;
        cr_assert_eq(engine_find(engine, name, 0, &version), STATUS_OK);
        return version;
}

static int open_weight(const char *name)
{
        char path[512];
        GraphVersion *version = version_of(name);
        snprintf(path, sizeof(path), "%s/blobs/%s", folder,
                 version->stored.parts[1].holes->items[0].digest.hex);
        graph_version_unref(version);
        chmod(path, 0600);
        int fd = open(path, O_RDWR);
        cr_assert_geq(fd, 0);
        return fd;
}

// The file of the large weight loses all but its first page.
static void cut_weight(const char *name)
{
        int fd = open_weight(name);
        cr_assert_eq(ftruncate(fd, 4096), 0);
        close(fd);
}

static void zero_last_number(const char *name)
{
        const float zero = 0.0f;
        int fd = open_weight(name);
        cr_assert_eq(pwrite(fd, &zero, sizeof(zero), (off_t)(weight_bytes - sizeof(zero))), sizeof(zero));
        close(fd);
}

static float last_number(const Graph *graph)
{
        return ((const volatile float *)(const void *)weight_of(graph)->data)[N_WEIGHT - 1];
}

static uint32_t n_programs(const char *name)
{
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        GraphVersion *version = version_of(name);
        uint32_t n = engine_programs(engine, version, programs);
        for (uint32_t i = 0; i < n; i++)
                program_unref(programs[i].program);
        graph_version_unref(version);
        return n;
}

Test(weights, a_weight_that_can_no_longer_be_read_ends_its_graph_and_its_programs)
{
        cr_assert(put("m", false, "torch.relu", 1.0f));
        Graph *graph = graph_of("m", 1);
        compiled_bytes(graph, 32);
        cr_assert_eq(n_programs("m"), 1);
        cut_weight("m");
        cr_assert_eq(engine_check_pages(engine, graph), STATUS_OK, "nobody has read it yet");
        cr_assert_eq(last_number(graph), 0.0f);
        cr_assert_eq(engine_check_pages(engine, graph), STATUS_DAMAGED);
        cr_assert_eq(n_programs("m"), 0);
        GraphVersion *version = version_of("m");
        cr_assert_eq(atomic_load(&version->state), GRAPH_STATE_DAMAGED);
        graph_version_unref(version);
        graph_unref(graph);
}

Test(weights, bytes_that_are_stored_anew_under_another_name_serve_both_names_and_no_program_of_the_old_ones)
{
        cr_assert(put("m", false, "torch.relu", 1.0f));
        Graph *before = graph_of("m", 1);
        float number = last_number(before);
        PlannedRun old, new;
        plan_run(before, 32, &old);
        cut_weight("m");
        cr_assert(put("n", false, "torch.relu", 1.0f));
        Graph *after = graph_of("n", 1), *other = graph_of("m", 1);
        cr_assert_eq(after, other, "one content, one graph");
        cr_assert_eq(last_number(after), number);
        plan_run(after, 32, &new);
        cr_assert_neq((const void *)new.program, (const void *)old.program);
        cr_assert_eq(engine_check_program(engine, &old), STATUS_OK);
        cr_assert_eq(last_number(before), 0.0f);
        cr_assert_eq(engine_check_pages(engine, after), STATUS_OK);
        cr_assert_eq(engine_check_program(engine, &new), STATUS_OK);
        // A run of the new graph by the old program is found out, too.
        old.graph = after;
        cr_assert_eq(engine_check_program(engine, &old), STATUS_DAMAGED);
        planned_run_deinit(&old);
        planned_run_deinit(&new);
        graph_unref(before);
        graph_unref(after);
        graph_unref(other);
}

static void store_anew(void)
{
        zero_last_number("m");
        cr_assert(put("n", false, "torch.relu", 1.0f));
}

Test(weights, a_program_of_bytes_that_are_stored_anew_while_their_graph_is_read_does_not_serve_the_new_ones)
{
        cr_assert(put("m", false, "torch.relu", 1.0f));
        engine_close(engine);
        open_engine();
        GraphVersion *version = version_of("m");
        Graph *before = NULL;
        PlannedRun old, new;
        after_load = store_anew;
        cr_assert_eq(engine_read_graph(engine, version, &before), STATUS_OK, "%s",
                     failure_current()->message);
        Graph *after = graph_of("n", 1);
        cr_assert_eq(last_number(before), 0.0f);
        cr_assert_neq(last_number(after), 0.0f);
        plan_run(before, 32, &old);
        plan_run(after, 32, &new);
        cr_assert_neq((const void *)new.program, (const void *)old.program);
        planned_run_deinit(&old);
        planned_run_deinit(&new);
        graph_unref(before);
        graph_unref(after);
        graph_version_unref(version);
}

Test(weights, graphs_that_are_read_after_some_damage_have_programs_that_are_listed_and_deleted_with_them)
{
        cr_assert(put("m", false, "torch.relu", 1.0f));
        cr_assert(put("d", false, "torch.neg", 2.0f));
        engine_close(engine);
        open_engine();
        Graph *graph = graph_of("d", 1);
        cut_weight("d");
        cr_assert_eq(last_number(graph), 0.0f);
        cr_assert_eq(engine_check_pages(engine, graph), STATUS_DAMAGED);
        graph_unref(graph);
        cr_assert_not(put("d", false, "torch.neg", 2.0f), "mended");
        graph = graph_of("m", 1);
        compiled_bytes(graph, 32);
        graph_unref(graph);
        cr_assert_eq(n_programs("m"), 1);
        cr_assert_eq(engine_delete(engine, "m", 0), STATUS_OK);
        cr_assert_eq(engine_stats(engine).programs.bytes, 0);
}
