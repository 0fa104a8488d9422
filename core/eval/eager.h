// SPDX-License-Identifier: Apache-2.0
// The eager emitter: infers and runs at once on real tensors, with real storage sharing and real
// in-place writes, as torch.fx.Interpreter does. State is seen through per-run copy-on-write
// shells, so that writes never leak into other runs.
#pragma once
#include "core/eval/walk.h"

typedef struct EagerEmitter EagerEmitter;
// For one run of `graph` (counted until closed). `ctx` is borrowed.
Status eager_open(const Graph *graph, RunContext *ctx, EagerEmitter **out_eager);
EagerEmitter *eager_close(EagerEmitter *eager);
DEFINE_CLEANUP(EagerEmitter, eager_close)
Emitter *eager_emitter(EagerEmitter *eager);
// The storage by which this run sees `origin`, which other runs share: a copy-on-write shell, the
// same one every time, so that tied entries and views share it. Counted. `origin` must live as long
// as the emitter.
Status eager_shell(EagerEmitter *eager, Storage *origin, Storage **out_storage);
// After a run with ctx->state: what it wrote to the graph's state goes into state->after.
void eager_leave_state(const EagerEmitter *eager);
