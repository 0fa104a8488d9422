// SPDX-License-Identifier: Apache-2.0
// control.c: calls of child graphs as a program has them. compile/child.c builds these calls,
// describes their results and gives them their kernels; nobody else may call them.
//
// `inputs` are the tensors among the values that the child graphs take. `plain` is the list of all
// these values, with Ellipsis where a tensor stands. `autocast` is the dtype of the region around
// the call.
#include "core/ops/op.h"

static Status refuse_infer(OpCall *call)
{
        return fail(STATUS_UNSUPPORTED, "%s is made by the compiler only", call->schema->name);
}

static Status refuse_run(const OpRun *run)
{
        return fail(STATUS_INTERNAL, "%s has no program", run->call->schema->name);
}

enum { CONTROL_FLAGS = OP_HIDDEN | OP_INTERNAL | OP_EFFECT };

const OpDef control_ops[] = {
        { .schema =
                  "fxserve::while_loop(Tensor[] inputs, Graph cond_fn, Any plain, int n_carried, ScalarType? "
                  "autocast, Graph body_fn) -> Tensor[]",
          .flags = CONTROL_FLAGS,
          .infer = refuse_infer,
          .run = refuse_run,
          .traits = TRAIT_FRESH,
          .role = ROLE_CHILD_LOOP },
        { .schema = "fxserve::cond(Tensor[] inputs, Graph true_fn, Any plain, int n_carried, ScalarType? "
                    "autocast, Graph false_fn, Tensor pred) -> Tensor[]",
          .flags = CONTROL_FLAGS,
          .infer = refuse_infer,
          .run = refuse_run,
          .traits = TRAIT_FRESH,
          .role = ROLE_CHILD_COND },
        { .schema = "fxserve::scan(Tensor[] inputs, Graph combine_fn, Any plain, int n_carried, ScalarType? "
                    "autocast, int n_rows, int n_over) -> Tensor[]",
          .flags = CONTROL_FLAGS,
          .infer = refuse_infer,
          .run = refuse_run,
          .traits = TRAIT_FRESH,
          .role = ROLE_CHILD_ROWS },
};
OP_FILE(control_ops);
