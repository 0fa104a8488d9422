// SPDX-License-Identifier: Apache-2.0
// inplace.c: overlap as PyTorch's MemoryOverlap has it. Byte ranges decide for dense tensors. For
// others, ranges that cross leave it undecided; a temporary is then used, without a refusal.
#include "core/ops/inplace.h"
#include "core/ops/arguments.h"

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

Status inplace_check_internal_overlap(const TensorMeta *self)
{
        for (int i = 0; i < self->rank; i++) {
                if (self->stride[i] == 0 && self->size[i] > 1 && meta_numel(self) > 0)
                        return fail(STATUS_RUN, "unsupported operation: more than one element of the "
                                                "written-to tensor refers to a single memory location. "
                                                "Please clone() the tensor before performing the operation.");
        }
        return STATUS_OK;
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
