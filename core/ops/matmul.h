// SPDX-License-Identifier: Apache-2.0
// aten::linear's functions, for rows elsewhere that do more after it.
#pragma once
#include "core/ops/op.h"

Status linear_infer(OpCall *call);
Status linear_run(const OpRun *run);
Cost product_cost(const OpCall *call);
