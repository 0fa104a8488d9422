// SPDX-License-Identifier: Apache-2.0
// What this program is: version, revision, torch level, CPU level.
#pragma once
#include "api/call.h"

ServerFacts version_facts(void);
