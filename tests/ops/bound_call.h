// SPDX-License-Identifier: Apache-2.0
// bound_call.h: a call of an operator with its arguments bound, its tensors, copies of it in other
// layouts, and comparisons of results.
#pragma once
#include "core/ops/op.h"

enum { MAX_TENSORS = 64 };

typedef enum Layout { AS_IT_IS, CONTIGUOUS, CHANNELS_LAST, REVERSED } Layout;

// One call: arguments in schema order, owned.
typedef struct Bound {
        const Overload *overload;
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
} Bound;

typedef struct Tensors {
        Tensor *items[MAX_TENSORS];
        uint32_t n;
} Tensors;

// The tensors of a value or of a call, at most MAX_TENSORS, borrowed.
Tensors tensors_of(Value value);
Tensors tensors_of_call(const Bound *bound);
// The same call on tensors of their own bytes in a layout; drop_call ends it.
void copy_call(const Bound *bound, Layout layout, Bound *out);
void drop_call(Bound *bound);

typedef bool Compare(Dtype dtype, const char *a, const char *b, int64_t n);
Compare same_elements; // the same bits; any NaN equals any other
Compare near_elements; // within the rounding of sums in another order
bool tensors_equal(const Tensor *a, const Tensor *b, Compare *compare);
bool results_equal(Value a, Value b, Compare *compare);
