// SPDX-License-Identifier: Apache-2.0
// What a thread that executes tasks (task.h) brings: its memory for programs (Frame), and a way to
// put back how many threads its OpenMP regions have. api sees none of this.
#pragma once
#include "core/interp/interp.h"
#include "core/kernels/caller_threads.h"
