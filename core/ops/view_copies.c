// SPDX-License-Identifier: Apache-2.0
// view_copies.c: the *_copy siblings of views, which graphs without aliases contain: the view, then
// a contiguous copy of it. A row's data is the name of the view.
#include "core/ops/compose.h"

static Value packed(Compose *c, Value view)
{
        return OP(c, "aten::clone", view,
                  (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS });
}

static Status view_copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, packed(&c, compose_emit(&c, call->op->row, call->args, call->n_args)), out);
}

// Views that are a list.
static Status parts_copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value parts = compose_emit(&c, call->op->row, call->args, call->n_args);
        const uint32_t n = compose_length(parts);
        _cleanup_(freep) Value *copies = new_array(n, sizeof(*copies));
        if (copies == NULL)
                compose_check(&c, fail_memory());
        for (uint32_t i = 0; i < n && !compose_failed(&c); i++)
                copies[i] = packed(&c, compose_item(&c, parts, i));
        return compose_end(&c, compose_failed(&c) ? value_none() : compose_list(&c, copies, n), out);
}

#define COPY_OF(schema, view)                                                                                \
        {                                                                                                    \
                "aten::" schema " -> Tensor", 0, .expand = view_copy_expand, .row = "aten::" view,           \
                                                 .traits = TRAIT_FRESH                                       \
        }
#define COPIES_OF(schema, view)                                                                              \
        {                                                                                                    \
                "aten::" schema " -> Tensor[]", 0, .expand = parts_copy_expand, .row = "aten::" view,        \
                                                   .traits = TRAIT_FRESH                                     \
        }
const OpDef view_copies_ops[] = {
        COPY_OF("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)",
                "as_strided"),
        COPY_OF("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1)", "diagonal"),
        COPY_OF("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False)", "expand"),
        COPY_OF("permute_copy(Tensor self, int[] dims)", "permute"),
        COPY_OF("select_copy.int(Tensor self, int dim, SymInt index)", "select.int"),
        COPY_OF("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                "step=1)",
                "slice.Tensor"),
        COPY_OF("squeeze_copy(Tensor self)", "squeeze"),
        COPY_OF("squeeze_copy.dim(Tensor self, int dim)", "squeeze.dim"),
        COPY_OF("squeeze_copy.dims(Tensor self, int[] dim)", "squeeze.dims"),
        COPY_OF("t_copy(Tensor self)", "t"),
        COPY_OF("transpose_copy.int(Tensor self, int dim0, int dim1)", "transpose.int"),
        COPY_OF("unsqueeze_copy(Tensor self, int dim)", "unsqueeze"),
        COPY_OF("view_as_complex_copy(Tensor self)", "view_as_complex"),
        COPY_OF("view_as_real_copy(Tensor self)", "view_as_real"),
        COPY_OF("view_copy(Tensor self, SymInt[] size)", "reshape"),
        COPY_OF("view_copy.dtype(Tensor self, ScalarType dtype)", "view.dtype"),
        COPIES_OF("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0)", "split.Tensor"),
        COPIES_OF("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0)", "split_with_sizes"),
        COPIES_OF("unbind_copy.int(Tensor self, int dim=0)", "unbind.int"),
};
OP_FILE(view_copies_ops);
