// SPDX-License-Identifier: Apache-2.0
// Whether a call keeps the samples of a batch apart. The same call is looked at twice: as recorded
// for one run (`one`), and for `n` runs whose inputs lie one after the other along dimension 0
// (`many`). A tensor of `many` is one of
//   the same    as in `one`: shape and numbers
//   apart       along a dimension: `n` times as long there as in `one`, and its n-th part has the
//               numbers of the n-th run
//   places      as long along a dimension, and every element is its own index there: a table that
//               is apart along a dimension is read with it
//   mixed       anything else
#pragma once
#include "core/ops/op.h"

// Else the dimension; APART_PLACES - d: places along dimension d.
enum { APART_SAME = -1, APART_MIXED = -2, APART_PLACES = -3 };

typedef struct ApartOperand {         // a Tensor argument; lists are flattened
        const TensorMeta *one, *many; // NULL: absent
        int dim;
} ApartOperand;

typedef struct ApartCall {
        const OpCall *one, *many; // of one overload
        int64_t n;
        const ApartOperand *operands; // in schema order
        uint32_t n_operands;
} ApartCall;

// What a result with these metas is, made by a call that draws no random numbers and writes to
// nothing (or to itself, element by element). APART_MIXED also where it is not known.
int apart_result(const ApartCall *call, const TensorMeta *one, const TensorMeta *many);
// By shape alone; APART_MIXED: dtypes or other sizes differ.
int apart_shape(const TensorMeta *one, const TensorMeta *many, int64_t n);
