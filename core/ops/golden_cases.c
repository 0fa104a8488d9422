// SPDX-License-Identifier: Apache-2.0
// golden_cases.c: how many cases recorded from PyTorch the results of each overload are tested on.
#include <stdlib.h>
#include <string.h>
#include "core/ops/op.h"

typedef struct Cases {
        const char *op; // "aten.add.Tensor"
        uint32_t n;
} Cases;

static const Cases cases[] = {
#define CASES(op, n) { op, n },
#include "core/ops/golden_cases.def"
#undef CASES
};

static int by_op(const void *op, const void *row)
{
        return strcmp(op, ((const Cases *)row)->op);
}

uint32_t op_golden_cases(const Overload *overload)
{
        const char *op = overload->target + sizeof("torch.ops.") - 1;
        const Cases *row = bsearch(op, cases, ARRAY_LENGTH(cases), sizeof(*row), by_op);
        return row == NULL ? 0 : row->n;
}
