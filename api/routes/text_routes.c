// SPDX-License-Identifier: Apache-2.0
// text_routes.c: graphs and programs as text.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "core/base/limits.h"
#include "core/engine/describe.h"
#include "core/graph/print.h"

// The later stages belong to one program: ?program=ID, or the one that ran last.
static Status find_program(const Answer *answer, ProgramInfo *out_program)
{
        const char *wish = param_text(answer->call, PARAM_PROGRAM);
        char latest[65] = "";
        bool found = false;
        if (wish == NULL)
                engine_latest_program(answer->context->engine, answer->version, latest);
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        uint32_t n = engine_programs(answer->context->engine, answer->version, programs);
        for (uint32_t i = 0; i < n; i++) {
                if (!found && strcmp(programs[i].id, wish == NULL ? latest : wish) == 0) {
                        *out_program = programs[i];
                        found = true;
                } else {
                        program_info_deinit(&programs[i]);
                }
        }
        if (found)
                return STATUS_OK;
        if (wish != NULL)
                return fail(STATUS_NOT_FOUND,
                            "this graph has no program '%.64s'; replies name the program that ran", wish);
        return fail(STATUS_NOT_FOUND, "no program has run for this graph yet; run it twice with inputs of "
                                      "one shape, or once with \"mode\": \"compiled\"");
}

static Status print_stage(const Answer *answer, TextStage stage, GraphForm form, Text *out)
{
        static const ProgramView views[TEXT_STAGE_COUNT] = {
                [TEXT_ATEN] = VIEW_ATEN, [TEXT_OPTIMISED] = VIEW_OPTIMISED, [TEXT_OF_PROGRAM] = VIEW_LISTING
        };
        _cleanup_(program_info_deinit) ProgramInfo program = { .program = NULL };
        TRY(find_program(answer, &program));
        return engine_print_program(&program, views[stage], form, out);
}

// Of the run's time, by node; a row of several nodes counts for each in equal parts.
static void add_shares(const Graph *graph, const RunProfile *profile, double *share)
{
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                uint32_t n = row->nodes == NULL ? 1 : row->n_nodes;
                for (uint32_t k = 0; k < n && row->node != NULL && profile->run_ns > 0; k++) {
                        const Node *of = row->nodes == NULL ? row->node : row->nodes[k];
                        const Node *node = graph_node(graph, node_origin(of));
                        if (node != NULL)
                                share[node->index] +=
                                        (double)(row->end_ns - row->start_ns) / n / (double)profile->run_ns;
                }
        }
}

static Status print_times(const Answer *answer, const char *id, Text *out)
{
        _cleanup_(run_profile_unrefp) RunProfile *profile =
                profile_ring_find(engine_profiles(answer->context->engine), id);
        if (profile == NULL)
                return fail(STATUS_NOT_FOUND,
                            "there is no profile '%.200s'; the last %lld runs are kept (--max-profiles), GET "
                            "/v1/profiles lists them",
                            id, (long long)limits.max_profiles);
        if (strcmp(profile->graph_name, answer->version->name) != 0)
                return fail(STATUS_VALUE, "profile '%.200s' is of graph '%s'", id, profile->graph_name);
        if (profile->version != answer->version->stored.version)
                return fail(STATUS_VALUE,
                            "profile '%.200s' is of version %lld: "
                            "GET /v1/graphs/%s/versions/%lld/text?form=dot&profile=...",
                            id, (long long)profile->version, profile->graph_name,
                            (long long)profile->version);
        if (strcmp(profile->content_id, answer->version->stored.id.hex) != 0)
                return fail(STATUS_NOT_FOUND,
                            "profile '%.200s' is of an earlier graph '%s', which was deleted; run the one "
                            "that is there now, and name that run",
                            id, profile->graph_name);
        _cleanup_(freep) double *share = new_array(answer->graph->n_nodes, sizeof(double));
        if (share == NULL)
                return fail_memory();
        add_shares(answer->graph, profile, share);
        return graph_print_dot(answer->graph, share, out);
}

Status get_text(const Answer *answer)
{
        const char *profile = param_text(answer->call, PARAM_TEXT_PROFILE);
        int form, stage;
        bool unchanged = false;
        TRY(param_choice(answer->call, PARAM_TEXT_FORM, &form));
        TRY(param_choice(answer->call, PARAM_STAGE, &stage));
        if (stage == TEXT_AUTHORED && param_text(answer->call, PARAM_PROGRAM) != NULL)
                return fail(STATUS_VALUE, "\"program\" goes with stage=aten, optimised or program");
        if (profile != NULL && (form != GRAPH_FORM_DOT || stage != TEXT_AUTHORED))
                return fail(STATUS_VALUE, "\"profile\" goes with form=dot and stage=authored");
        if (stage == TEXT_AUTHORED && profile == NULL) // others depend on programs and runs
                TRY(answer_unchanged(answer, &unchanged));
        if (unchanged)
                return STATUS_OK;
        Text *out = answer_begin(answer, form == GRAPH_FORM_JSON ? json_type : text_type);
        TRY(profile != NULL          ? print_times(answer, profile, out)
            : stage == TEXT_AUTHORED ? graph_print(answer->graph, (GraphForm)form, out)
                                     : print_stage(answer, (TextStage)stage, (GraphForm)form, out));
        text_add_char(out, '\n');
        return STATUS_OK;
}
