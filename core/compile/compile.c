// SPDX-License-Identifier: Apache-2.0
// compile.c: record, passes, plan, emit. The stages in between are not kept: recording again costs less than keeping what is seldom
// printed.
#include "core/compile/compile.h"

static Status record_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage, const RunContext *poll,
                           PassContext *passed, Recording **out_recording)
{
        RecordOptions record = { .inputs = inputs, .fetch = options->fetch, .n_fetch = options->n_fetch };
        _cleanup_(recording_freep) Recording *recording = NULL;
        TRY(record_graph(graph, &record, poll, &recording));
        *passed = (PassContext){ .poll = poll, .n_threads = options->n_threads };
        if (stage == STAGE_OPTIMISED && !options->no_passes)
                TRY(passes_run(recording, passed));
        *out_recording = take_ptr(recording);
        return STATUS_OK;
}

// Programs keep the input values they were made for, tensors without their bytes, so that their stages can be shown later.
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

Status compile_graph(const Graph *graph, ValueSpan inputs, const CompileOptions *options, const RunContext *poll, Program **out_program)
{
        Recording *recording;
        PassContext passed;
        ProgramKey key;
        _cleanup_(program_unrefp) Program *program = NULL;
        EmitOptions emit = { .n_threads = options->n_threads, .cache = options->cache, .poll = poll };
        TRY(program_key(graph, inputs, options, &key));
        TRY(record_stage(graph, inputs, options, STAGE_OPTIMISED, poll, &passed, &recording));
        TRY(emit_program(recording, &emit, &program));
        program->figures.constant_bytes = passed.folded_bytes;
        program->id = program_key_id(&key);
        TRY(keep_signature(program, inputs, options));
        *out_program = take_ptr(program);
        return STATUS_OK;
}

Status compile_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage, Graph **out_graph)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        PassContext passed;
        TRY(record_stage(graph, inputs, options, stage, NULL, &passed, &recording));
        return recording_graph(recording, out_graph);
}

Status program_stage(const Program *program, ProgramStage stage, Graph **out_graph)
{
        CompileOptions options = { .n_threads = program->n_threads, .fetch = program->fetch, .n_fetch = program->n_fetch };
        return compile_stage(program->recording->graph, (ValueSpan){ program->signature, program->n_signature }, &options, stage,
                             out_graph);
}
