// SPDX-License-Identifier: Apache-2.0
// Inside targets/: what no run can serve, told from constants alone (at upload), and by the rows
// themselves when they run.
#pragma once
#include "core/targets/py.h"

// STATUS_UNSUPPORTED if every run of this call would fail with it, whatever its nodes give. OK
// proves nothing: checks that depend on values or shapes are not made.
Status target_refuse(const Target *target, const Node *node);
// The same for a module whose class and configuration are resolved.
Status module_refuse(const Module *module);
// Why there is no operator of this name ("aten.foo.default"), where there is more to say than that;
// else NULL.
const char *refused_name(const char *name);

// Checks that rows also make when they run.
// Of torch.ops.higher_order.with_effects: what `op` ("aten._print.default") calls. Only operators
// that give no result are taken.
Status effect_target(Value op, const Target **out_target);
Status refuse_cuda(const OpCall *call);
// The row forwards to operators by a template (targets.c).
bool op_is_template(const OpDef *op);
