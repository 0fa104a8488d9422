// SPDX-License-Identifier: Apache-2.0
#include "core/engine/shrink.h"
#include "core/engine/kept.h"
#include "core/engine/private.h"

void engine_age(Engine *engine)
{
        registry_age(engine->programs);
        registry_age(engine->decoded);
}

// Programs first: they hold their graphs.
void engine_shrink(Engine *engine)
{
        registry_drop_unused(engine->programs);
        registry_drop_unused(engine->decoded);
        kept_ring_clear(engine->kept);
        profile_ring_clear(engine->profiles);
        stats_pool_clear(engine->statistics);
}
