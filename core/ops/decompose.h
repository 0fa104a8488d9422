// SPDX-License-Identifier: Apache-2.0
// Operators written with those of PyTorch's core ATen set, as ExportedProgram.run_decompositions
// writes them. Runs do not decompose: a kernel that does all at once is faster. Sizes are those of
// the call, so results serve these sizes only.
#pragma once
#include "core/ops/op.h"

typedef enum Decompositions {
        DECOMPOSE_NOTHING,
        DECOMPOSE_VIEWS, // names of views that are other views: flatten, narrow
        DECOMPOSE_ALL,
} Decompositions;

// Emits what the call is made of. *out is owned by the caller.
typedef Status (*OpDecompose)(Emitter *emitter, const OpCall *call, Value *out);
// NULL: the operator stays. Any thread.
OpDecompose op_decomposition(const OpDef *op, Decompositions decompositions);

// ---- for functional graphs ----
extern const char target_copy[], target_fill[], target_full_like[];
// A view by a name that is other views: flatten, narrow.
bool op_is_named_view(const Overload *overload);
// An operator of the core set that is a composite here.
bool op_is_core_composite(const Overload *overload);
// How the operator that puts a part back is called: what it takes behind the part.
typedef enum ViewInverse {
        INVERSE_NONE,     // there is none
        INVERSE_SIZES,    // the sizes of the whole
        INVERSE_DIM,      // the view's dimension
        INVERSE_DIMS,     // the view's two dimensions
        INVERSE_ITSELF,   // nothing
        INVERSE_ORDER,    // the inverse order of the dimensions
        INVERSE_SELECT,   // in front of the part the whole; then dimension and index
        INVERSE_SLICE,    // the same with start, end and step
        INVERSE_DIAGONAL, // the same with offset and two dimensions
        INVERSE_ROW,      // as SELECT, for an item of a list of rows
        INVERSE_PART,     // as SLICE, for an item of a list of parts
        INVERSE_COUNT
} ViewInverse;
ViewInverse op_view_inverse(const Overload *overload, const char **out_target);
