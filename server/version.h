// SPDX-License-Identifier: Apache-2.0
// What this program is: version, revision, torch level, CPU level, libraries.
#pragma once
#include "api/call.h"

ServerFacts version_facts(void);
// The loaded libraries, and the functions they lack: lines for people, each ended by a newline.
void version_libraries(Text *out);
