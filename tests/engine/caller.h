// SPDX-License-Identifier: Apache-2.0
// An engine without a store, graphs of FX JSON in it, and callers, which want to run them.
#pragma once
#include <criterion/criterion.h>
#include <stdio.h>
#include "core/engine/task.h"
#include "core/interp/interp.h"
#include "core/targets/targets.h"
#include "tests/engine/put.h"

static Engine *engine;

static inline void start(void)
{
        EngineOptions options = { .loader = upload_loader };
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK);
}

static inline void stop(void)
{
        engine_close(engine);
}

static inline GraphVersion *put_text(const char *name, Text *take_text)
{
        GraphVersion *version = put_graph(engine, name, take_text->data, NULL);
        text_deinit(take_text);
        return version;
}

// x, then `n` times torch.<function>, then out. Uploaded as `name`.
static inline GraphVersion *put_chain(const char *name, const char *function, int n)
{
        Text text = { 0 };
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"n0\", "
                        "\"target\": \"x\"}");
        for (int i = 1; i <= n; i++)
                text_addf(&text,
                          ", {\"op\": \"call_function\", \"name\": \"n%d\", \"target\": \"%s\", \"args\": "
                          "[\"%%n%d\"]}",
                          i, function, i - 1);
        text_addf(&text,
                  ", {\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": "
                  "[\"%%n%d\"]}]}",
                  n);
        return put_text(name, &text);
}

// A caller: what the server's job is.
typedef struct Caller {
        Ticket ticket;
        PlannedRun plan;
        Value input;
        Wait wait;
} Caller;

static inline void call_with(Caller *caller, Graph *graph, Value take_input, RunMode mode)
{
        *caller = (Caller){ .input = take_input };
        RunRequest request = { .inputs = { &caller->input, 1 }, .mode = mode };
        cr_assert_eq(engine_bind(graph, &request, &caller->plan), STATUS_OK);
        cr_assert_eq(engine_plan(engine, &caller->plan, &caller->ticket, &caller->wait), STATUS_OK);
}

static inline void call(Caller *caller, Graph *graph, int size, RunMode mode)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t sizes[1] = { size };
        meta_init(&meta, DTYPE_F32, 1, sizes);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int i = 0; i < size; i++)
                ((float *)tensor_data(tensor))[i] = (float)i - 1.5f;
        call_with(caller, graph, value_tensor_take(tensor), mode);
}

static inline void leave(Caller *caller)
{
        planned_run_deinit(&caller->plan);
        value_clear(&caller->input);
        ticket_drop(&caller->ticket);
}

static inline uint32_t count(const Ticket *tickets)
{
        uint32_t n = 0;
        for (; tickets != NULL; tickets = tickets->next)
                n++;
        return n;
}

static inline float run(Caller *caller)
{
        Frame frame;
        RunContext ctx;
        RunProfile *profile = NULL;
        RunResult result;
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(run_profile_new((Graph *)(uintptr_t)caller->plan.graph, caller->plan.graph->n_nodes,
                                     &profile),
                     STATUS_OK);
        cr_assert_eq(engine_execute(&caller->plan, &ctx, &frame, profile, &result), STATUS_OK, "%s",
                     failure_current()->message);
        float first = ((float *)tensor_data(result.value.tensor))[0];
        run_result_deinit(&result);
        run_profile_unref(profile);
        frame_deinit(&frame);
        return first;
}

static inline Graph *graph_of(GraphVersion *version)
{
        Graph *graph = NULL;
        cr_assert_eq(engine_graph(engine, version, &graph), STATUS_OK);
        return graph;
}
