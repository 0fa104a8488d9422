// SPDX-License-Identifier: Apache-2.0
// What this program is: version, revision, torch level, CPU level, libraries.
#pragma once
#include "api/call.h"

ServerFacts version_facts(void);
// The libraries as they are loaded, and what cannot be had with them: lines for people, each ended.
void version_libraries(Text *out);
