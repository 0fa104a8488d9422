// SPDX-License-Identifier: Apache-2.0
// compile.c: compiling in four steps: record, run the passes, plan the memory, emit the program.
// Intermediate stages are not kept: they are seldom printed and can be recorded again.
#include "core/compile/compile.h"

// `optimise` NULL: as recorded.
static Status record_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options,
                           const RunContext *poll, PassContext *optimise, Recording **out_recording)
{
        RecordOptions record = { .inputs = inputs,
                                 .fetch = options->fetch,
                                 .n_fetch = options->n_fetch,
                                 .keeps_state = options->keeps_state };
        _cleanup_(recording_freep) Recording *recording = NULL;
        TRY(record_graph(graph, &record, poll, &recording));
        if (optimise != NULL && !options->no_passes)
                TRY(passes_run(recording, optimise));
        *out_recording = take_ptr(recording);
        return STATUS_OK;
}

// A program without calls before its tail would be slower than an eager run.
static Status check_worth(const Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                if (recording->calls[i]->computes)
                        return STATUS_OK;
        }
        return recording->tail == NULL
                       ? STATUS_OK
                       : fail(STATUS_DYNAMIC,
                              "all that the graph computes depends on numbers that only a run knows");
}

// Programs keep the input values they were made for, tensors without their bytes, so that their
// stages can be shown later.
static Status keep_signature(Program *program, ValueSpan inputs, const CompileOptions *options)
{
        program->signature = arena_array(&program->arena, inputs.n, sizeof(Value));
        program->fetch = arena_array(&program->arena, options->n_fetch, sizeof(Node *));
        if (program->signature == NULL || program->fetch == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < options->n_fetch; i++)
                program->fetch[program->n_fetch++] = options->fetch[i];
        for (uint32_t i = 0; i < inputs.n; i++) {
                TRY(signature_value(inputs.items[i], &program->signature[i]));
                program->n_signature++;
        }
        return STATUS_OK;
}

Status compile_graph(const Graph *graph, ValueSpan inputs, const CompileOptions *options,
                     const RunContext *poll, Program **out_program)
{
        Recording *recording;
        PassContext passed = { .poll = poll, .n_threads = options->n_threads, .cache = options->cache };
        ProgramKey key;
        _cleanup_(program_unrefp) Program *program = NULL;
        EmitOptions emit = { .n_threads = options->n_threads,
                             .cache = options->cache,
                             .tune = options->tune,
                             .poll = poll,
                             .precision = options->precision,
                             .choice = options->choice,
                             .forms = options->forms };
        TRY(record_stage(graph, inputs, options, poll, &passed, &recording));
        Status status = check_worth(recording);
        if (status != STATUS_OK) {
                recording_free(recording);
                return status;
        }
        TRY(emit_program(recording, &emit, &program));
        program->figures.constant_bytes = passed.folded_bytes;
        program->by_value = program->recording->by_value;
        program->precision = options->precision;
        program->choice = choice_ref(options->choice);
        // only now: the id includes what a learning record has learnt
        TRY(program_key(graph, inputs, options, program->by_value, &key));
        program->id = program_key_id(&key);
        TRY(keep_signature(program, inputs, options));
        *out_program = take_ptr(program);
        return STATUS_OK;
}

Status compile_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage,
                     Graph **out_graph)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        PassContext passed = { .n_threads = options->n_threads, .cache = options->cache };
        TRY(record_stage(graph, inputs, options, NULL, stage == STAGE_OPTIMISED ? &passed : NULL,
                         &recording));
        return recording_graph(recording, out_graph);
}

Status program_stage(const Program *program, ProgramStage stage, Graph **out_graph)
{
        CompileOptions options = { .n_threads = program->n_threads,
                                   .fetch = program->fetch,
                                   .n_fetch = program->n_fetch,
                                   .keeps_state = program->recording->keeps_state };
        return compile_stage(program->recording->graph,
                             (ValueSpan){ program->signature, program->n_signature }, &options, stage,
                             out_graph);
}

static Status print_bodies(const Graph *graph, GraphForm form, Text *out)
{
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph == NULL)
                        continue;
                text_addf(out, "\n\n%s:\n", graph->modules[i]->path);
                TRY(graph_print(graph->modules[i]->graph, form, out));
        }
        return STATUS_OK;
}

static void print_tail(const EagerTail *tail, Text *out)
{
        text_add(out, "\n\neager tail, on real tensors; what the graph above returns is what it takes:");
        for (uint32_t i = 0; i < tail->n_known; i++)
                text_addf(out, "%s %s", i == 0 ? "" : ",", tail->known[i]->name);
        for (uint32_t i = 0; i < tail->n_nodes; i++) {
                text_add(out, "\n    ");
                node_print(tail->nodes[i], out);
        }
}

Status program_print_stage(const Program *program, ProgramStage stage, GraphForm form, Text *out)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(program_stage(program, stage, &graph));
        TRY(graph_print(graph, form, out));
        if (form != GRAPH_FORM_GRAPH && form != GRAPH_FORM_CODE && form != GRAPH_FORM_TABULAR)
                return STATUS_OK;
        TRY(print_bodies(graph, form, out));
        if (program->recording->tail != NULL)
                print_tail(program->recording->tail, out);
        return text_status(out);
}
