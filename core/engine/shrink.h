// SPDX-License-Identifier: Apache-2.0
// Memory that can be given up: decoded graphs and programs that nobody uses, recorded runs, their
// statistics and kept values. Any thread.
#pragma once
#include "core/engine/engine.h"

// Called about once a second: what was used last before the call before this one counts as unused.
void engine_age(Engine *engine);
// Runs go on with what they hold; the next ones decode and build again.
void engine_shrink(Engine *engine);
