// SPDX-License-Identifier: Apache-2.0
// Warm-ups that a graph declares (SETTING_WARM_UP): programs for inputs of these shapes are built
// as soon as the version is its name's default, after each start again. Until they are there, or
// have failed, the version is not ready, and neither is a server that has only started. Runs are
// served all the same. Any thread.
#pragma once
#include "core/engine/engine.h"

typedef enum WarmUpState { WARM_UP_NONE, WARM_UP_WAITING, WARM_UP_DONE, WARM_UP_FAILED } WarmUpState;
extern const char *const warm_up_state_names[]; // "not the default version", "waiting", "done", "failed"

// The line is a list of shapes of inputs as edit_read_shapes has them, with spaces in between; "-"
// stands for no shapes, which leaves the signature's own. They have to go with the signature.
Status warm_up_check(const Graph *graph, const char *line);
// Calls `write` for each entry of the line; *is_first for the first.
void warm_up_each(const char *line, void (*write)(void *context, const char *shapes, bool is_first),
                  void *context);
static inline WarmUpState warm_up_state(const GraphVersion *version)
{
        return (WarmUpState)atomic_load(&version->warming);
}
// False: those that were declared when it was asked first are still waited for.
bool engine_is_warm(Engine *engine);
