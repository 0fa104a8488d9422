// SPDX-License-Identifier: Apache-2.0
// Loss functions as expressions of other operators.
#pragma once
#include "core/ops/compose.h"

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };

// Kernels know three reductions; expressions take any other number for none.
void loss_check_reduction(Compose *c);

// A row of a table of operators.
#define LOSS_OF(dtypes_, schema, function)                                                                   \
        {                                                                                                    \
                "aten::" schema, dtypes_, .expand = function##_expand, .traits = TRAIT_FRESH                 \
        }
