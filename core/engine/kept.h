// SPDX-License-Identifier: Apache-2.0
// Values that earlier runs kept ("keep"), by the caller and the run's id, for runs that start or
// are patched with them. A bounded ring: the oldest run leaves first (limits.max_kept_runs,
// max_kept_bytes).
#pragma once
#include "core/engine/task.h"

typedef struct KeptRing KeptRing;
Status kept_ring_open(KeptRing **out_ring);
KeptRing *kept_ring_close(KeptRing *ring); // NULL-safe, returns NULL
KeptUse kept_ring_use(KeptRing *ring);
void kept_ring_clear(KeptRing *ring);

// Any thread. Copies the task's kept tensors (run_task_keep), under the profile's id; an earlier
// run of that caller and id leaves. `caller`: the name of its token, KEPT_CALLER_MAX bytes; ""
// without one. STATUS_TOO_LARGE over limits.max_kept_bytes.
enum { KEPT_CALLER_MAX = 64 };
Status engine_keep(Engine *engine, const char *caller, const RunTask *task);
// A copy-on-write view of the value, charged to `budget` if it is written; counted.
// STATUS_NOT_FOUND: the caller's run is not there (any more), or kept no tensor of that node.
Status engine_kept(Engine *engine, const char *caller, const char *run, const char *node, Budget *budget,
                   Tensor **out_tensor);
