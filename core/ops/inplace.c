// SPDX-License-Identifier: Apache-2.0
// inplace.c: overlap as PyTorch's MemoryOverlap has it. Byte ranges decide for dense tensors. For
// others, ranges that cross leave it undecided; a temporary is then used, without a refusal.
#include "core/ops/inplace.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

Overlap tensor_overlap(const Tensor *a, const Tensor *b)
{
        if (a == b)
                return OVERLAP_FULL;
        if (a->storage == NULL || a->storage != b->storage)
                return OVERLAP_NONE;
        int64_t span_a, span_b;
        if (meta_span(&a->meta, &span_a) != STATUS_OK || meta_span(&b->meta, &span_b) != STATUS_OK)
                return OVERLAP_MAYBE;
        if (span_a == 0 || span_b == 0)
                return OVERLAP_NONE;
        int64_t bytes_a = dtype_info[a->meta.dtype].bytes, bytes_b = dtype_info[b->meta.dtype].bytes;
        int64_t begin_a = a->offset * bytes_a, begin_b = b->offset * bytes_b;
        int64_t end_a = begin_a + span_a * bytes_a, end_b = begin_b + span_b * bytes_b;
        if (end_a <= begin_b || end_b <= begin_a)
                return OVERLAP_NONE;
        bool same = begin_a == begin_b && bytes_a == bytes_b && meta_same_shape(&a->meta, &b->meta);
        for (int i = 0; same && i < a->meta.rank; i++)
                same = a->meta.stride[i] == b->meta.stride[i] || a->meta.size[i] == 1;
        if (same && a->meta.dtype == b->meta.dtype)
                return OVERLAP_FULL;
        if (!meta_is_non_overlapping_and_dense(&a->meta) || !meta_is_non_overlapping_and_dense(&b->meta))
                return OVERLAP_MAYBE;
        return same ? OVERLAP_PUNNED : OVERLAP_PARTIAL;
}

static bool is_expanded(const TensorMeta *self, int dim)
{
        return self->stride[dim] == 0 && self->size[dim] > 1 && meta_numel(self) > 0;
}

static bool any_expanded(const TensorMeta *self)
{
        bool any = false;
        for (int i = 0; i < self->rank; i++)
                any |= is_expanded(self, i);
        return any;
}

Status inplace_check_internal_overlap(const TensorMeta *self)
{
        if (!any_expanded(self))
                return STATUS_OK;
        return fail(STATUS_RUN, "unsupported operation: more than one element of the written-to tensor "
                                "refers to a single memory location. Please clone() the tensor before "
                                "performing the operation.");
}

Status inplace_check_write(const Tensor *self, const TensorMeta *result)
{
        TRY(inplace_check_internal_overlap(&self->meta));
        if (!meta_same_shape(&self->meta, result)) {
                char have[160], want[160];
                return fail(STATUS_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                            shape_text(self->meta.rank, self->meta.size, have, sizeof(have)),
                            shape_text(result->rank, result->size, want, sizeof(want)));
        }
        if (!dtype_can_cast(result->dtype, self->meta.dtype))
                return fail(STATUS_DTYPE, "result type %s can't be cast to the desired output type %s",
                            dtype_words(result->dtype), dtype_words(self->meta.dtype));
        return STATUS_OK;
}

static Status fail_overlap(void)
{
        return fail(STATUS_RUN, "unsupported operation: some elements of the input tensor and the written-to "
                                "tensor refer to a single memory "
                                "location. Please clone() the tensor before performing the operation.");
}

Status inplace_check_copy(const Tensor *to, const Tensor *from)
{
        return to != from && tensor_overlap(to, from) == OVERLAP_PARTIAL ? fail_overlap() : STATUS_OK;
}

static Status check_apart(const Tensor *self, Value value)
{
        if (value.kind != VALUE_TENSOR)
                return STATUS_OK;
        Overlap overlap = tensor_overlap(self, value.tensor);
        return overlap != OVERLAP_NONE && overlap != OVERLAP_MAYBE ? fail_overlap() : STATUS_OK;
}

Status inplace_check_apart(const OpCall *call, uint32_t end)
{
        for (uint32_t i = 1; i < end; i++) {
                if (call->schema->args[i].type != ARG_TENSOR)
                        continue;
                TRY(check_apart(call->args[SELF].tensor, call->args[i]));
                for (uint32_t k = 0; value_is_sequence(call->args[i]) && k < call->args[i].seq->n; k++)
                        TRY(check_apart(call->args[SELF].tensor, call->args[i].seq->items[k]));
        }
        return STATUS_OK;
}

Status inplace_check_inputs(const OpCall *call, bool *inout_direct)
{
        const Tensor *self = call->args[SELF].tensor;
        for (uint32_t i = 1; i < call->n_args; i++) {
                if (call->args[i].kind != VALUE_TENSOR)
                        continue;
                switch (tensor_overlap(self, call->args[i].tensor)) {
                case OVERLAP_NONE:
                case OVERLAP_FULL:
                        break;
                case OVERLAP_PARTIAL:
                        return fail_overlap();
                case OVERLAP_PUNNED:
                case OVERLAP_MAYBE:
                        *inout_direct = false;
                        break;
                }
        }
        return STATUS_OK;
}

// ---- fills of expanded tensors ----
static bool writes_expanded(const OpCall *call)
{
        return call->inplace && call->args[SELF].kind == VALUE_TENSOR && any_expanded(arg_meta(call, SELF));
}

// Argument 0 with one element of each expanded dimension: all its memory, once.
static Value without_copies(Compose *c)
{
        Value self = c->call->args[SELF];
        const TensorMeta *meta = compose_meta(c, self);
        for (int i = 0; i < meta->rank && !compose_failed(c); i++) {
                if (is_expanded(&self.tensor->meta, i))
                        self = OP(c, "aten::slice.Tensor", self, value_int(i), value_int(0), value_int(1));
        }
        return self;
}

static Status end_with_self(Compose *c, Value *out)
{
        return compose_end(c, c->call->args[SELF], out);
}

static Status fill_expanded(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = without_copies(&c);
        if (call->n_args == 1)
                OP(&c, "aten::zero_", self);
        else
                OP(&c, "aten::fill_.Scalar", self, call->args[FILL_SCALAR_VALUE]);
        return end_with_self(&c, out);
}

OpExpand inplace_fill_form(const OpCall *call)
{
        return writes_expanded(call) ? fill_expanded : NULL;
}

// An element is filled where the mask is set at any of its places. The number is read first: it may
// be an element of self.
static Status mask_apart(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = arg_meta(call, SELF);
        Value mask = call->args[MASKED_FILL_MASK], number = call->args[MASKED_FILL_VALUE];
        const bool of_tensor = call->schema->args[MASKED_FILL_VALUE].type == ARG_TENSOR;
        if (any_expanded(meta))
                mask = OP(&c, "aten::expand", mask, compose_ints(&c, meta->size, meta->rank));
        for (int i = 0; i < meta->rank; i++) {
                if (is_expanded(meta, i))
                        mask = OP(&c, "aten::any.dim", mask, value_int(i), value_bool(true));
        }
        if (of_tensor)
                number = OP(&c, "aten::clone", number);
        OP(&c, of_tensor ? "aten::masked_fill_.Tensor" : "aten::masked_fill_.Scalar", without_copies(&c),
           mask, number);
        return end_with_self(&c, out);
}

OpExpand inplace_mask_form(const OpCall *call)
{
        const Value self = call->args[SELF], number = call->args[MASKED_FILL_VALUE];
        if (!call->inplace || self.kind != VALUE_TENSOR ||
            arg_meta(call, MASKED_FILL_MASK)->dtype != DTYPE_BOOL)
                return NULL;
        const bool crosses = number.kind == VALUE_TENSOR && number.tensor->meta.rank == 0 &&
                             tensor_overlap(self.tensor, number.tensor) > OVERLAP_FULL;
        return crosses || any_expanded(&self.tensor->meta) ? mask_apart : NULL;
}

static Status lines_expanded(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const bool of_tensor = call->schema->args[SCATTER_SOURCE].type == ARG_TENSOR;
        OP(&c, of_tensor ? "aten::index_fill_.int_Tensor" : "aten::index_fill_.int_Scalar",
           without_copies(&c), call->args[SCATTER_DIM], call->args[SCATTER_INDEX],
           call->args[SCATTER_SOURCE]);
        return end_with_self(&c, out);
}

OpExpand inplace_lines_form(const OpCall *call)
{
        int dim;
        const TensorMeta *self = arg_meta(call, SELF);
        return writes_expanded(call) && arg_dim(call, SCATTER_DIM, self->rank, &dim) == STATUS_OK &&
                               !is_expanded(self, dim)
                       ? lines_expanded
                       : NULL;
}
