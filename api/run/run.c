// SPDX-License-Identifier: Apache-2.0
// The steps of a run request. Options may stand in the query or in the body, not in both; what is
// not understood is refused with the list of what is.
#include <stdio.h>
#include <string.h>
#include "api/run/condition.h"
#include "api/readers/recognise.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/targets/targets.h"

void run_call_init(RunCall *run)
{
        memset(run, 0, sizeof(*run));
        run->deadline_ms = limits.run_deadline_ms;
        budget_init(&run->budget, (size_t)limits.max_run_memory);
        run_context_init(&run->ctx);
        run->ctx.budget = &run->budget;
}

void run_call_deinit(RunCall *run)
{
        run_result_deinit(&run->result);
        planned_run_deinit(&run->plan);
        for (uint32_t i = 0; i < run->n_inputs; i++)
                value_clear(&run->inputs[i]);
        free(run->inputs);
        free(run->user);
        string_map_deinit(&run->names);
        free(run->fetch);
        run_profile_unref(run->profile);
        graph_unref(run->graph);
        graph_version_unref(run->version);
}

// ---- options ----
Status run_take_encoding(const char *text, RunCall *run)
{
        static const char *const names[] = { "list", "flat", "b64" };
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
                if (strcmp(text, names[i]) == 0) {
                        run->encoding = (RunEncoding)i;
                        return STATUS_OK;
                }
        return fail(STATUS_VALUE, "\"encoding\" is \"list\", \"flat\" or \"b64\", not \"%s\"", text);
}

Status run_take_reply(const char *text, RunCall *run)
{
        run->bare = strcmp(text, "bare") == 0;
        if (!run->bare && strcmp(text, "full") != 0)
                return fail(STATUS_VALUE, "\"reply\" is \"full\" or \"bare\", not \"%s\"", text);
        return STATUS_OK;
}

Status run_take_mode(const char *text, RunCall *run)
{
        static const struct {
                const char *name;
                RunMode mode;
        } modes[] = { { "auto", RUN_MODE_AUTO },
                      { "compiled", RUN_MODE_COMPILED },
                      { "eager", RUN_MODE_EAGER } };
        for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
                if (strcmp(text, modes[i].name) == 0) {
                        run->mode = modes[i].mode;
                        return STATUS_OK;
                }
        return fail(STATUS_VALUE, "\"mode\" is \"auto\", \"compiled\" or \"eager\", not \"%s\"", text);
}

Status run_take_outputs(const char *names, size_t n, RunCall *run)
{
        for (const char *at = names, *end = names + n; at <= end;) {
                const char *stop = memchr(at, ',', (size_t)(end - at));
                stop = stop == NULL ? end : stop;
                const Node *node = string_map_get_n(&run->graph->node_by_name, at, (size_t)(stop - at));
                if (node == NULL || node->op == OP_OUTPUT)
                        return fail(STATUS_VALUE,
                                    "\"outputs\" names \"%.*s\", but the graph has no such node; GET "
                                    ".../text?form=graph prints them",
                                    (int)MIN(stop - at, 64), at);
                TRY(array_reserve(&run->fetch, &run->fetch_capacity, run->n_fetch + 1, sizeof(*run->fetch)));
                run->fetch[run->n_fetch++] = node;
                at = stop + 1;
        }
        return STATUS_OK;
}

static Status take_as(const ApiCall *call, RunCall *run)
{
        static const char *const names[RUN_AS_COUNT] = { "json", "npy", "npz", "safetensors" };
        const char *as = call_query(call, "as");
        if (as == NULL) {
                run->as = run_as_accepted(call->accept);
                return STATUS_OK;
        }
        for (int i = 0; i < RUN_AS_COUNT; i++)
                if (strcmp(as, names[i]) == 0) {
                        run->as = (RunAs)i;
                        return STATUS_OK;
                }
        return fail(STATUS_VALUE, "\"as\" is json, npy, npz or safetensors, not \"%s\"", as);
}

Status run_options(const ApiCall *call, RunCall *run)
{
        int64_t seed = -1;
        run->call = call;
        if (run->version != NULL)
                TRY(condition_check(call, condition_tag(&run->version->stored).hex));
        TRY(take_as(call, run));
        TRY(param_bool(call, PARAM_PROFILE, &run->profile_in_reply));
        TRY(param_int(call, PARAM_DEADLINE_MS, &run->deadline_ms));
        TRY(param_int(call, PARAM_SEED, &seed));
        if (seed >= 0) {
                run->seed = (uint64_t)seed;
                run->seeded = true;
        }
        if (call_query(call, "mode") != NULL)
                TRY(run_take_mode(call_query(call, "mode"), run));
        if (call_query(call, "encoding") != NULL)
                TRY(run_take_encoding(call_query(call, "encoding"), run));
        if (call_query(call, "reply") != NULL)
                TRY(run_take_reply(call_query(call, "reply"), run));
        return STATUS_OK;
}

// ---- the body ----
static Status list_inputs(RunCall *run)
{
        const Signature *signature = &run->graph->signature;
        uint32_t n = 0;
        run->inputs = new_array(signature->n_inputs, sizeof(*run->inputs));
        run->user = new_array(signature->n_inputs, sizeof(*run->user));
        if (run->inputs == NULL || run->user == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        run->user[n++] = &signature->inputs[i];
        for (uint32_t i = 0; i < n; i++)
                run->inputs[i].kind = VALUE_ABSENT;
        run->n_inputs = n;
        return STATUS_OK;
}

static Status open_body(const ApiCall *call, Arena *arena, JsonReader **out_reader)
{
        const char *text = (const char *)call->body->data;
        int64_t depth = route_has(call->route, BRINGS_GRAPH) ? limits.max_json_depth_model
                                                             : limits.max_json_depth_run + MAX_RANK;
        TRY(run_check_lists(text, call->body->n_bytes));
        return json_open(text, call->body->n_bytes, (int)depth, 0, arena, out_reader);
}

static Status decode_json(const ApiCall *call, RunCall *run)
{
        Arena arena;
        arena_init(&arena, (size_t)limits.max_envelope * 4);
        JsonReader *reader = NULL;
        Status status = open_body(call, &arena, &reader);
        if (status == STATUS_OK)
                status = run_read_body(reader, (ByteSpan){ call->body->data, call->body->n_bytes },
                                       route_has(call->route, BRINGS_GRAPH), run);
        if (status != STATUS_OK)
                run_add_list_hint(run, status);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

Status run_decode(const ApiCall *call, RunCall *run)
{
        TRY(list_inputs(run));
        const char *outputs = call_query(call, "outputs");
        if (outputs != NULL)
                TRY(run_take_outputs(outputs, strlen(outputs), run));
        if (call->body == NULL || call->body->n_bytes == 0)
                return run->n_inputs == 0 ? STATUS_OK
                                          : fail(STATUS_INPUT, "the body is empty; send {\"inputs\": {...}}");
        RunBody body = run_body_kind(call->body);
        Status status = body == RUN_BODY_JSON ? decode_json(call, run) : run_read_binary(call, body, run);
        return status == STATUS_OK || body == RUN_BODY_MULTIPART
                       ? status
                       : recognise_run_body((ByteSpan){ call->body->data, call->body->n_bytes }, status);
}

// ---- run ----
static void describe_inputs(RunCall *run)
{
        char *out = run->profile->signature;
        size_t capacity = sizeof(run->profile->signature), n = 0;
        for (uint32_t i = 0; i < run->n_inputs && n < capacity; i++) {
                const Value *value = &run->inputs[i];
                const char *separator = i == 0 ? "" : ", ", *name = run->user[i]->placeholder->name;
                char shape[128];
                if (value->kind == VALUE_TENSOR)
                        n += (size_t)snprintf(out + n, capacity - n, "%s%s: %s%s", separator, name,
                                              dtype_info[value->tensor->meta.dtype].name,
                                              shape_text(value->tensor->meta.rank, value->tensor->meta.size,
                                                         shape, sizeof(shape)));
                else if (value->kind != VALUE_ABSENT)
                        n += (size_t)snprintf(out + n, capacity - n, "%s%s: %s", separator, name,
                                              value_kind_name(value->kind));
        }
}

Status run_bind(RunCall *run)
{
        RunRequest request = { .inputs = { run->inputs, run->n_inputs },
                               .fetch = run->fetch,
                               .n_fetch = run->n_fetch,
                               .mode = run->mode };
        TRY(run_profile_new(run->graph, run->graph->n_nodes, &run->profile));
        describe_inputs(run);
        run->ctx.seed = run->seed;
        run->ctx.seeded = run->seeded;
        run->plan.n_threads = run->ctx.n_threads;
        Status status = engine_bind(run->graph, &request, &run->plan);
        return status == STATUS_OK ? status : run_add_hints(run, status);
}

Status run_execute(RunCall *run)
{
        if (run->plan.graph == NULL) {
                TRY(run_bind(run));
                if (run->engine != NULL)
                        TRY(engine_plan_here(run->engine, &run->plan));
        }
        Status status = engine_execute(&run->plan, &run->ctx, run->frame, run->profile, &run->result);
        return status == STATUS_OK ? status : run_add_hints(run, status);
}
