// SPDX-License-Identifier: Apache-2.0
// compare.c: a comparison from its body to its findings. Each side is a run: its body is made of
// the request's inputs and the side's rules, and goes the way of every run's body.
#include "api/run/compare.h"
#include <stdio.h>
#include <string.h>
#include "api/readers/steps.h"
#include "api/run/example.h"
#include "api/run/run_private.h"
#include "core/engine/derive.h"
#include "core/engine/put.h"
#include "core/engine/saved.h"

void compare_run_init(CompareRun *run, const ApiContext *context, const CompareBody *body)
{
        memset(run, 0, sizeof(*run));
        run->context = context;
        run->body = body;
        for (int i = 0; i < 2; i++) {
                run_call_init(&run->calls[i]);
                run->results[i] = value_none();
        }
}

void compare_run_deinit(CompareRun *run)
{
        for (uint32_t i = 0; i < run->n_output_rows; i++)
                free(run->output_rows[i].message);
        free(run->output_rows);
        comparison_deinit(&run->nodes);
        free(run->recorded[0]);
        free(run->recorded[1]);
        if (run->has_samples)
                samples_deinit(&run->samples);
        for (int i = 0; i < 2; i++) {
                output_list_deinit(&run->outputs[i]);
                value_clear(&run->results[i]);
                compare_close(&run->sides[i]);
                run_call_deinit(&run->calls[i]);
                api_call_deinit(&run->bodies[i]);
        }
}

// ---- sides ----
// How many sides are runs: the second one may be a sample.
static int n_sides(const CompareRun *run)
{
        return run->body->sides[1].sample >= 0 ? 1 : 2;
}

static Status find_graph(CompareRun *run, int at)
{
        const CompareWish *wish = &run->body->sides[at];
        RunTask *task = &run->calls[at].task;
        Engine *engine = run->context->engine;
        if (wish->alias != NULL)
                TRY(engine_find_alias(engine, wish->graph, wish->alias, &task->version));
        else
                TRY(engine_find(engine, wish->graph, wish->version, &task->version));
        return engine_graph(engine, task->version, &task->graph);
}

static int64_t deadline_of(const CompareRun *run)
{
        return run->context->deadline_ns == 0
                       ? 0
                       : MIN(run->context->deadline_ns,
                             run->context->received_ns + run->body->deadline_ms * 1000000);
}

static Status find_saved(void *context, const char *name, Text *out)
{
        return engine_get_pass(context, name, out);
}

// The graph that the side's steps make of `base`; `done` gets the steps, saved ones written out.
static Status make_graph(const CompareRun *run, const CompareWish *wish, const Graph *base, Text *done,
                         Graph **out_graph)
{
        const SavedSteps saved = { find_saved, run->context->engine };
        Steps steps = { .saved = &saved, .done = done };
        RunContext bounds;
        run_context_within(&bounds, run->context->ctx);
        bounds.deadline_ns = deadline_of(run);
        TRY(edit_new(base, &steps.edit));
        edit_set_poll(steps.edit, &bounds);
        Status status = steps_run(&steps, wish->steps, wish->n_steps);
        if (status == STATUS_OK)
                status = edit_finish(steps.edit, out_graph);
        edit_free(steps.edit);
        return status;
}

// Puts what the steps make in the graph's place. It is kept like what rules make, so that its
// programs are found again.
static Status take_steps(CompareRun *run, int at)
{
        RunTask *task = &run->calls[at].task;
        _cleanup_(text_deinit) Text done = { 0 };
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        RegistryKey key;
        DerivedFrom from = { .base = task->graph, .recipe = &done };
        if (run->body->sides[at].steps == NULL)
                return STATUS_OK;
        text_add(&done, "\"steps\":");
        TRY(make_graph(run, &run->body->sides[at], task->graph, &done, &graph));
        TRY(text_status(&done));
        TRY(engine_derived_key(run->context->engine, &from, &key));
        Graph *known = engine_find_derived(run->context->engine, &key);
        if (known == NULL)
                TRY(engine_keep_derived(run->context->engine, &from, &key, graph));
        graph_unref(task->graph);
        task->graph = known != NULL ? known : take_ptr(graph);
        return STATUS_OK;
}

static void add_member(const char *name, const char *raw, size_t n, Text *out)
{
        if (raw == NULL)
                return;
        text_addf(out, "%s\"%s\": ", out->data[out->n - 1] == '{' ? "" : ", ", name);
        text_add_n(out, raw, n);
}

// {"inputs": ..., "overrides": ..., "leaf": ...}
static Status write_body(CompareRun *run, int at, Text *out)
{
        const CompareBody *body = run->body;
        const CompareWish *wish = &body->sides[at];
        const RunTask *a = &run->calls[0].task;
        if (body->source == COMPARE_EXAMPLE) {
                TRY(example_write(a->graph, a->version->stats, out));
                while (out->n > 0 && out->data[out->n - 1] != '}')
                        out->n--;
                out->n -= out->n > 0;
        } else {
                text_add(out, body->source == COMPARE_GIVEN ? "{\"inputs\": " : "{");
                text_add_n(out, body->source == COMPARE_GIVEN ? body->inputs : "", body->n_inputs);
        }
        TRY(text_status(out));
        add_member("overrides", wish->overrides, wish->n_overrides, out);
        add_member("leaf", wish->leaf, wish->n_leaf, out);
        text_add_char(out, '}');
        return text_status(out);
}

static Status decode(CompareRun *run, int at)
{
        _cleanup_(text_deinit) Text text = { 0 };
        ApiCall *call = &run->bodies[at];
        TRY(write_body(run, at, &text));
        size_t n = text.n;
        char *body = text_take(&text);
        if (body == NULL)
                return fail_memory();
        Status status = storage_adopt(body, n, true, NULL, NULL, &call->body);
        if (status != STATUS_OK) {
                free(body);
                return status;
        }
        return run_decode(call, &run->calls[at]);
}

static Status derive(CompareRun *run, int at)
{
        RunCall *call = &run->calls[at];
        bool known = false;
        GraphVersion *version;
        if (!run_has_recipe(call))
                return STATUS_OK;
        TRY(run_derive_known(run->context, call, &known));
        if (known)
                return STATUS_OK;
        while ((version = run_next_called(call)) != NULL) {
                Graph *graph;
                TRY(engine_graph(run->context->engine, version, &graph));
                run_take_called(call, graph);
        }
        return run_derive(run->context, call);
}

// Both sides draw the same random numbers, with a seed of the request, that of samples, or one of
// the system.
static Status take_seed(CompareRun *run, int at)
{
        Generator *generator = &run->calls[0].task.generator;
        int64_t seed = run->body->seed < 0 && n_sides(run) == 1 ? SAMPLES_SEED : run->body->seed;
        if (at == 0 && seed >= 0)
                run_take_seed(&run->calls[0], seed);
        if (at == 0) {
                TRY(generator_start(generator));
                generator_rewind(generator);
        }
        run_take_seed(&run->calls[at], (int64_t)generator->seed);
        return STATUS_OK;
}

static Status open_side(CompareRun *run, int at)
{
        RunTask *task = &run->calls[at].task;
        const RunContext *outer = run->context->ctx;
        task->mode = run->body->sides[at].mode;
        if (run->body->sides[at].tolerance >= 0)
                run_take_tolerance(&run->calls[at], run->body->sides[at].tolerance);
        if (run->body->sides[at].tolerance < 0 || run->body->sides[at].precision != PRECISION_F32)
                run_take_precision(&run->calls[at], run->body->sides[at].precision);
        TRY(take_seed(run, at));
        task->ctx.within = outer;
        task->ctx.deadline_ns = deadline_of(run);
        TRY(take_steps(run, at));
        TRY(decode(run, at));
        if (run->body->source == COMPARE_SAMPLES)
                TRY(samples_give_inputs(&run->samples, MAX(run->body->sides[1].sample, 0), &run->calls[at]));
        TRY(derive(run, at));
        run->sides[at].task = task;
        return compare_open(run->context->engine, &run->sides[at]);
}

static Status at_side(Status status, int at)
{
        const char *name = at == 0 ? "a" : "b";
        if (status != STATUS_OK)
                failure_append(" (side \"%s\")", name);
        return failure_at_argument(status, name);
}

static Status read_samples(CompareRun *run)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        int64_t at = run->body->sides[1].sample;
        if (at < 0 && run->body->source != COMPARE_SAMPLES)
                return STATUS_OK;
        TRY(engine_part(run->context->engine, run->calls[0].task.version, STORE_SAMPLES, &bytes));
        TRY(samples_read(bytes, &run->samples));
        run->has_samples = true;
        if (at < 0)
                return STATUS_OK;
        if (at >= run->samples.n)
                return fail(STATUS_NOT_FOUND, "there are %lld samples, numbered from 0 on",
                            (long long)run->samples.n);
        TRY(samples_list(&run->samples, at, SAMPLE_OUTPUTS, &run->recorded[0], &run->n_recorded));
        TRY(samples_list(&run->samples, at, SAMPLE_NODES, &run->recorded[1], &run->sides[1].n_samples));
        run->sides[1].samples = run->recorded[1];
        return STATUS_OK;
}

static Status open_sides(CompareRun *run)
{
        for (int at = 0; at < n_sides(run); at++)
                TRY(at_side(find_graph(run, at), at));
        TRY(failure_at_argument(read_samples(run), "samples"));
        for (int at = 0; at < n_sides(run); at++)
                TRY(at_side(open_side(run, at), at));
        return STATUS_OK;
}

// ---- results ----
static Status run_sides(CompareRun *run)
{
        for (int at = 0; at < n_sides(run); at++) {
                Status status = compare_result(&run->sides[at], &run->results[at]);
                run->drew |= run->calls[at].task.generator.started;
                if (status == STATUS_OK)
                        status = output_list_of(run_task_authored(&run->calls[at].task), &run->results[at],
                                                &run->outputs[at]);
                if (status == STATUS_OK)
                        status = run_check_pages(run->context, &run->calls[at]);
                TRY(at_side(status, at));
        }
        return STATUS_OK;
}

static bool find_recorded(const CompareRun *run, OutputLeaf *out_leaf)
{
        for (uint32_t i = 0; i < run->n_recorded; i++)
                if (strcmp(run->recorded[0][i].name, out_leaf->name) == 0) {
                        out_leaf->value =
                                (Value){ .kind = VALUE_TENSOR, .tensor = run->recorded[0][i].tensor };
                        return true;
                }
        return false;
}

static Status compare_output(CompareRun *run, uint32_t at)
{
        const OutputLeaf *a = &run->outputs[0].leaves[at], *b = a;
        OutputLeaf recorded = *a;
        if (n_sides(run) == 2)
                b = &run->outputs[1].leaves[at];
        else if (find_recorded(run, &recorded))
                b = &recorded;
        else
                return fail(STATUS_NOT_FOUND, "the sample has no output \"%.64s\"", a->name);
        CompareRow *row = &run->output_rows[at];
        _cleanup_(text_deinit) Text message = { 0 };
        row->a = a->node;
        row->name = a->node == NULL ? NULL : node_origin(a->node);
        row->name_b = b->name;
        TRY(value_close(a->value, b->value, &run->body->rule, run->context->ctx, &row->close, &message));
        run->n_output_rows = at + 1;
        if (row->close.close)
                return STATUS_OK;
        row->message = text_take(&message);
        return row->message == NULL ? fail_memory() : STATUS_OK;
}

static Status compare_outputs(CompareRun *run)
{
        uint32_t n = run->outputs[0].n;
        if (n_sides(run) == 2 && n != run->outputs[1].n)
                return fail(STATUS_VALUE, "\"a\" returns %u values and \"b\" %u: they cannot be compared", n,
                            run->outputs[1].n);
        run->output_rows = new_array(n, sizeof(*run->output_rows));
        if (run->output_rows == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                TRY(compare_output(run, i));
        return STATUS_OK;
}

static bool outputs_close(const CompareRun *run)
{
        for (uint32_t i = 0; i < run->n_output_rows; i++)
                if (!run->output_rows[i].close.close)
                        return false;
        return true;
}

Status compare_run(CompareRun *run)
{
        TRY(open_sides(run));
        TRY(run_sides(run));
        TRY(compare_outputs(run));
        if (run->body->n_times > 0)
                TRY(compare_times(&run->sides[0], &run->sides[1], (uint32_t)run->body->n_times, run->times));
        run->walked = run->body->nodes || (!run->body->no_nodes && !outputs_close(run));
        if (!run->walked)
                return STATUS_OK;
        return compare_nodes(run->context->engine, &run->sides[0], &run->sides[1], &run->body->rule,
                             &run->nodes);
}
