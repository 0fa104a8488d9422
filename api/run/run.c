// SPDX-License-Identifier: Apache-2.0
// The steps of a run request on the wire. Options may stand in the query or in the body, not in
// both. An unknown option is refused with the list of known ones.
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "api/run/condition.h"
#include "api/run/oip.h"
#include "api/run/observed.h"
#include "api/readers/recognise.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/ops/choice.h"
#include "core/targets/targets.h"

void run_call_init(RunCall *run)
{
        memset(run, 0, offsetof(RunCall, task));
        run_task_init(&run->task);
        run->replies = codec_accepted("");
}

void run_call_deinit(RunCall *run)
{
        run_end_sequence(run);
        run_task_deinit(&run->task);
        string_map_deinit(&run->names);
        string_map_deinit(&run->keywords);
        session_unref(run->session);
        for (uint32_t i = 0; run->found_called && i < run->recipe.n_called; i++) {
                graph_version_unref(run->called[i]);
                graph_unref(run->called_graphs[i]);
        }
        free(run->called);
        free(run->called_graphs);
        run->oip = oip_run_free(run->oip);
        recipe_deinit(&run->recipe);
        recipe_deinit(&run->given);
}

// ---- options ----
Status run_take_choice(RunCall *run, ParameterId id, const char *name)
{
        int choice;
        TRY(param_choose(id, name, &choice));
        if (id == PARAM_MODE)
                run->task.mode = (RunMode)choice;
        else if (id == PARAM_PRECISION)
                run_take_precision(run, (Precision)choice);
        else if (id == PARAM_ENCODING)
                run->encoding = (RunEncoding)choice;
        else
                run->bare = choice != 0;
        return STATUS_OK;
}

void run_take_precision(RunCall *run, Precision precision)
{
        run->task.precision = precision;
        run->has_precision = true;
}

void run_take_tolerance(RunCall *run, double tolerance)
{
        run->task.bucket = tolerance_bucket(tolerance);
        run->has_tolerance = true;
}

Status run_read_nonnegative(JsonReader *reader, const char *key, double *out_number)
{
        NumberKind kind = NUMBER_NONE;
        int64_t whole;
        double number = 0;
        if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_number(reader, &kind, &whole, &number));
        if (kind == NUMBER_NONE || !isfinite(number) || number < 0)
                return fail(STATUS_VALUE, "\"%s\" is a number from 0 on", key);
        *out_number = number;
        return STATUS_OK;
}

Status run_read_tolerance(JsonReader *reader, RunCall *run)
{
        double tolerance;
        TRY(run_read_nonnegative(reader, "tolerance", &tolerance));
        run_take_tolerance(run, tolerance);
        return STATUS_OK;
}

Status run_take_outputs(const char *names, size_t n, RunCall *run)
{
        for (const char *at = names, *end = names + n; at <= end;) {
                const char *stop = memchr(at, ',', (size_t)(end - at));
                stop = stop == NULL ? end : stop;
                const Node *node = string_map_get_n(&run->task.graph->node_by_name, at, (size_t)(stop - at));
                if (node == NULL || node->op == OP_OUTPUT)
                        return fail(STATUS_VALUE,
                                    "\"outputs\" names \"%.*s\", but the graph has no such node; GET "
                                    ".../text?form=graph prints them",
                                    (int)MIN(stop - at, 64), at);
                TRY(run_task_fetch(&run->task, node));
                at = stop + 1;
        }
        return STATUS_OK;
}

static Status take_as(RunCall *run)
{
        int as = -1;
        TRY(param_choice(run->call, PARAM_RUN_AS, &as));
        run->replies = codec_of_route(run->call->route);
        if (run->replies == NULL && as < 0 && csv_accepted(run->call))
                run->replies = &csv_codec;
        if (run->replies == NULL)
                run->replies = codec_for_route(run->call->route,
                                               as < 0 ? codec_accepted(run->call->accept) : codec_at(as));
        return STATUS_OK;
}

void run_take_seed(RunCall *run, int64_t seed)
{
        generator_seed(&run->task.generator, (uint64_t)seed);
}

static Status take_query(RunCall *run)
{
        static const uint8_t choices[] = { PARAM_MODE, PARAM_PRECISION, PARAM_ENCODING, PARAM_REPLY };
        const ApiCall *call = run->call;
        int64_t seed = -1;
        double tolerance = -1;
        TRY(take_as(run));
        TRY(param_bool(call, PARAM_PROFILE, &run->profile_in_reply));
        TRY(param_int(call, PARAM_DEADLINE_MS, &run->task.deadline_ms));
        TRY(param_int(call, PARAM_SEED, &seed));
        TRY(param_int(call, PARAM_TOP, &run->top));
        TRY(param_int(call, PARAM_PRIORITY, &run->priority));
        TRY(param_number(call, PARAM_RUN_TOLERANCE, &tolerance));
        if (tolerance >= 0)
                run_take_tolerance(run, tolerance);
        if (seed >= 0)
                run_take_seed(run, seed);
        for (size_t i = 0; i < ARRAY_LENGTH(choices); i++)
                if (param_text(call, choices[i]) != NULL)
                        TRY(run_take_choice(run, choices[i], param_text(call, choices[i])));
        return STATUS_OK;
}

// ---- the request ----
Status run_take_graph(const ApiContext *context, const ApiCall *call, RunCall *run)
{
        run->call = call;
        if (call->body == NULL || call->body->n_bytes == 0)
                return fail(STATUS_INPUT, RUN_INLINE_WANTED);
        const Codec *codec = codec_of(call);
        if (codec->take_graph != NULL)
                return codec->take_graph(context, run);
        return recognise_run_body(body_span(call->body), fail(STATUS_INPUT, "this body holds arrays and no "
                                                                            "graph; " RUN_INLINE_WANTED));
}

bool run_is_bounded(const ApiCall *call)
{
        return !codec_of(call)->grows;
}

// What samples of a version can speak for.
static bool is_whole_run(const RunCall *run)
{
        return run->task.version != NULL && run->session == NULL && !run_has_recipe(run);
}

// Only programs compute in less than float32: whoever asks for it waits for the program. What the
// graph was set to holds for runs that name no precision and need not be eager.
static Status settle_precision(RunCall *run)
{
        RunTask *task = &run->task;
        if (run->has_precision && run->has_tolerance)
                return fail(STATUS_VALUE, "\"precision\" and \"tolerance\" exclude each other");
        if (!run->has_precision && !run->has_tolerance && task->version != NULL &&
            task->mode != RUN_MODE_EAGER) {
                task->precision = (Precision)atomic_load(&task->version->precision);
                task->bucket = is_whole_run(run) ? atomic_load(&task->version->bucket) : 0;
        }
        if (task->bucket != 0 && !is_whole_run(run))
                return fail(STATUS_VALUE, RUN_TOLERANCE_OF_WHOLE);
        bool is_f32 = task->precision == PRECISION_F32 && task->bucket == 0;
        if (!is_f32 && task->mode == RUN_MODE_EAGER)
                return fail(STATUS_VALUE, RUN_EAGER_IS_F32);
        if (!is_f32)
                task->mode = RUN_MODE_COMPILED;
        return STATUS_OK;
}

Status run_decode(const ApiCall *call, RunCall *run)
{
        RunTask *task = &run->task;
        run->call = call;
        if (task->version != NULL)
                TRY(condition_check(call, condition_tag(&task->version->stored).hex));
        TRY(take_query(run));
        TRY(run_task_open(task));
        const char *outputs = param_text(call, PARAM_OUTPUTS);
        if (outputs != NULL)
                TRY(run_take_outputs(outputs, strlen(outputs), run));
        bool empty = call->body == NULL || call->body->n_bytes == 0;
        if (empty && !route_has(call->route, AS_OIP))
                run->sent = RUN_SENT_NO_BODY;
        else
                TRY(codec_of(call)->decode(run));
        TRY(run_settle_partial(run));
        return settle_precision(run);
}

// ---- run ----
Status run_bind(RunCall *run)
{
        RunTask *task = &run->task;
        if (run->keep)
                TRY(run_task_keep(task, run->until != NULL ? run->until->index + 1
                                                           : run_task_authored(task)->n_nodes));
        if (run->session != NULL && task->authored != NULL)
                return fail(STATUS_VALUE, "a run in a session takes its graph as it is: send \"overrides\", "
                                          "\"until\", \"initial_env\" and \"leaf\" without a session");
        if (run->session != NULL)
                TRY(run_task_keep_state(task));
        if (run->mutations)
                TRY(run_task_mutations(task));
        Status status = run_task_bind(task);
        return status == STATUS_OK ? status : run_add_hints(run, status);
}

Status run_execute(RunCall *run, Frame *frame)
{
        TRY(observed_check_reply(run));
        Status status = run_task_execute(&run->task, frame);
        if (status == STATUS_HALTED)
                return observed_add_details(run, status);
        return status == STATUS_OK ? status : run_add_hints(run, status);
}

// ---- the reply ----
// A lower bound of the reply's size, checked before any text is made.
static Status check_numel(const OutputList *list)
{
        int64_t total = 0;
        for (uint32_t i = 0; i < list->n; i++)
                if (list->leaves[i].value.kind == VALUE_TENSOR)
                        total += meta_numel(&list->leaves[i].value.tensor->meta);
        if (total > limits.max_response)
                return fail(STATUS_TOO_LARGE,
                            "the outputs hold %lld values; a reply has at most %lld bytes (--max-response, "
                            "FXSERVE_MAX_RESPONSE)",
                            (long long)total, (long long)limits.max_response);
        return STATUS_OK;
}

Status run_check_reply(size_t n_bytes)
{
        if (n_bytes <= (size_t)limits.max_response)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "the reply is larger than %lld bytes (--max-response, FXSERVE_MAX_RESPONSE); ask for "
                    "fewer \"outputs\", or for a "
                    "binary form "
                    "(as=npz)",
                    (long long)limits.max_response);
}

void run_stamp(RunCall *run)
{
        int64_t now = clock_ns();
        RunProfile *profile = run->task.profile;
        profile->encode_ns = now - run->encode_began_ns;
        profile->total_ns = now - run->task.received_ns;
        profile->wall_ms = clock_wall_ms();
}

void run_add_headers(const RunCall *run, ApiReply *reply)
{
        const char *program = run_program_id(run->task.profile->labels);
        if (program != NULL)
                api_reply_header(reply, "Fxserve-Program", "%s", program);
        if (run->task.generator.started)
                api_reply_header(reply, "Fxserve-Seed", "%lld", (long long)run->task.generator.seed);
        if (run->profile_in_reply)
                api_reply_header(reply, "Fxserve-Profile", "/v1/profiles/%s", run->task.profile->id);
}

Status run_encode(RunCall *run, ApiReply *reply)
{
        const RunTask *task = &run->task;
        OutputList list;
        run->encode_began_ns = clock_ns();
        const Node **asked = task->asked != NULL ? task->asked : task->fetch;
        Status status = task->n_fetch == 0
                                ? output_list_of(run_task_authored(task), &task->result.value, &list)
                                : output_list_of_nodes(asked, task->result.fetched, task->n_fetch, &list);
        if (status == STATUS_OK)
                status = check_numel(&list);
        if (status == STATUS_OK && run->keep)
                status = run_task_check_kept(task);
        reply->status = 200;
        if (status == STATUS_OK)
                status = run->replies->encode(run, &list, reply);
        output_list_deinit(&list);
        return status;
}
