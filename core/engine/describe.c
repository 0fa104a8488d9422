// SPDX-License-Identifier: Apache-2.0
// What is shown of programs and runs; recording runs.
#include <string.h>
#include "core/engine/private.h"

// ---- programs ----
static ProgramInfo info_of(CachedProgram *cached)
{
        const Program *program = cached->program;
        bool is_whole = program->n_fetch == 0 && program->recording->tail == NULL;
        return (ProgramInfo){ .program = program_ref(program),
                              .id = program->id.hex,
                              .signature = { program->signature, program->n_signature },
                              .result = is_whole ? &program->recording->result : NULL,
                              .n_instructions = program->n_code,
                              .arena_bytes = program->figures.arena_bytes,
                              .precision = program->precision,
                              .choice = program->choice,
                              .n_runs = atomic_load_explicit(&cached->n_runs, memory_order_relaxed),
                              .run_ns = atomic_load_explicit(&cached->run_ns, memory_order_relaxed),
                              .batch = atomic_load_explicit(&cached->batch, memory_order_relaxed) };
}

void program_info_deinit(ProgramInfo *info)
{
        program_unref(info->program);
        *info = (ProgramInfo){ .program = NULL };
}

uint32_t engine_programs(Engine *engine, const GraphVersion *version, ProgramInfo out[ENGINE_MAX_PROGRAMS])
{
        void *objects[ENGINE_MAX_PROGRAMS];
        uint32_t n = registry_group(engine->programs, &version->key, ENGINE_MAX_PROGRAMS, objects);
        for (uint32_t i = 0; i < n; i++) {
                out[i] = info_of(objects[i]);
                cached_program_unref(objects[i]);
        }
        return n;
}

Status engine_print_program(const ProgramInfo *info, ProgramView view, GraphForm form, Text *out)
{
        if (view != VIEW_LISTING)
                return program_print_stage(info->program, view == VIEW_ATEN ? STAGE_ATEN : STAGE_OPTIMISED,
                                           form, out);
        program_print(info->program, out);
        if (out->n > 0 && out->data[out->n - 1] == '\n')
                out->n--;
        return text_status(out);
}

void engine_note_program(Engine *engine, GraphVersion *version, const Program *program)
{
        if (version == NULL || program == NULL)
                return;
        pthread_mutex_lock(&engine->mutex);
        memcpy(version->latest_program, program->id.hex, sizeof(version->latest_program));
        pthread_mutex_unlock(&engine->mutex);
}

void engine_latest_program(Engine *engine, const GraphVersion *version, char out_id[65])
{
        pthread_mutex_lock(&engine->mutex);
        memcpy(out_id, version->latest_program, sizeof(version->latest_program));
        pthread_mutex_unlock(&engine->mutex);
}

// ---- runs ----
void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile)
{
        atomic_fetch_add(&engine->n_runs, 1u);
        engine_note_program(engine, version, profile->program);
        if (!run_profile_detach(profile))
                return;
        profile_ring_add(engine->profiles, profile);
        if (version != NULL)
                profile_stats_add(version->stats, profile);
}

ProfileRing *engine_profiles(Engine *engine)
{
        return engine->profiles;
}
