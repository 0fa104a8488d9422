// SPDX-License-Identifier: Apache-2.0
// fuse_attention.c. Match: attention written out, softmax(q k^T * scale + mask) v over the last
// dimension, in float32, whose values in between nobody else reads; scale and mask may be absent.
// There may be two masks, one of them added to a view of the scores whose first dimension is split
// into samples and windows. A factor may be a number, or one for each head.
// Rewrite: one call that stores no scores. Masks are added up before, factors of heads go into the
// query, and windows become a dimension of all operands.
#include "core/passes/passes.h"
#include <math.h>
#include <string.h>
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/passes/rewrite.h"

enum { MOST_CALLS = 6, MOST_MASKS = 2, MOST_VIEWS = 4 };

// The calls from the last product up to the first one.
typedef struct Chain {
        const Uses *uses;
        RecordedCall *calls[MOST_CALLS], *views[MOST_VIEWS];
        uint32_t n, n_views;
        Recorded *masks[MOST_MASKS], *factor; // NULL: none; of each head
        const Overload *multiply;             // by the factor
        int n_masks;
        double scale;
        TensorMeta windows; // scores whose first dimension is split; rank 0: they are not
} Chain;

static bool is_float32(const Recorded *value)
{
        return value != NULL && is_packed_type(&value->tensor.meta);
}

static bool is_reshape(const RecordedCall *call)
{
        const Recorded *from = rewrite_arg(call, SELF), *to = call->outs[0];
        return !call->computes && call->call.n_outs == 1 && from != NULL && to != NULL &&
               meta_is_contiguous(&from->tensor.meta) && meta_is_contiguous(&to->tensor.meta) &&
               meta_numel(&from->tensor.meta) == meta_numel(&to->tensor.meta);
}

// The call that makes argument `index` of the chain's last one, if that is all it is for. Views in
// between are taken into the chain.
static RecordedCall *maker(Chain *chain, int index)
{
        RecordedCall *reader = chain->calls[chain->n - 1];
        const Recorded *value = rewrite_arg(reader, index);
        uint32_t n_views = 0;
        if (!is_float32(value) || recorded_is_constant(value) ||
            recorded_buffer(value)->index >= chain->uses->n_buffers)
                return NULL;
        for (; value->from == FROM_CALL && is_reshape(value->call); value = rewrite_arg(value->call, SELF)) {
                if (chain->n_views + n_views == MOST_VIEWS)
                        return NULL;
                chain->views[chain->n_views + n_views++] = value->call;
        }
        const Buffer *buffer = recorded_buffer(value);
        if (value->from != FROM_CALL || value->call->removed || buffer->kind != BUFFER_RUN ||
            buffer->written || buffer->is_output || chain->uses->n[buffer->index] != n_views + 1)
                return NULL;
        RecordedCall *call = value->call;
        if (call->call.n_outs != 1 || call->call.inplace || !call->computes || !call_is_movable(call))
                return NULL;
        chain->n_views += n_views;
        return call;
}

static bool same_shape(const RecordedCall *call, const RecordedCall *other)
{
        return meta_same_shape(&call->outs[0]->tensor.meta, &other->outs[0]->tensor.meta);
}

static bool add_call(Chain *chain, RecordedCall *call)
{
        if (call == NULL || chain->n == MOST_CALLS)
                return false;
        chain->calls[chain->n++] = call;
        return true;
}

// Over the last dimension, without another type.
static bool is_softmax(const RecordedCall *call)
{
        int64_t dim, rank = call->outs[0]->tensor.meta.rank;
        Value other = call->call.args[SOFTMAX_INT_DTYPE];
        return op_role(&call->call) == ROLE_SOFTMAX && arg_int(&call->call, SOFTMAX_DIM, &dim) == STATUS_OK &&
               (dim == -1 || dim == rank - 1) &&
               (other.kind == VALUE_NONE || (other.kind == VALUE_BOOL && !other.b));
}

// A number, or a tensor of no dimensions whose number is known.
static bool number_of(const RecordedCall *call, int index, double *out)
{
        const Value *value = &call->call.args[index];
        if (value->kind != VALUE_TENSOR)
                return arg_double(&call->call, index, out) == STATUS_OK;
        const Tensor *tensor = value->tensor;
        if (!tensor_is_known(tensor) || tensor->meta.rank != 0 || tensor->storage->data == NULL ||
            dtype_info[tensor->meta.dtype].kind == DTYPE_KIND_COMPLEX)
                return false;
        *out = element_as_f64(tensor->meta.dtype, tensor_data(tensor));
        return true;
}

// Whether `split` has the dimensions of `scores`, the first one as two.
static bool splits_first(const TensorMeta *split, const TensorMeta *scores)
{
        return split->rank == scores->rank + 1 && scores->rank > 2 &&
               split->size[0] * split->size[1] == scores->size[0] &&
               memcmp(split->size + 2, scores->size + 1, (scores->rank - 1u) * sizeof(int64_t)) == 0;
}

// Takes `call` into the chain as the addition of a mask; *out_next is the call behind the scores.
static bool take_mask(Chain *chain, RecordedCall *call, RecordedCall **out_next)
{
        double alpha;
        if (chain->n_masks == MOST_MASKS || arg_double(&call->call, ADD_ALPHA, &alpha) != STATUS_OK ||
            alpha != 1 || !add_call(chain, call))
                return false;
        for (int at = SELF; at <= BINARY_OTHER; at++) {
                uint32_t n_views = chain->n_views;
                const Recorded *scores = rewrite_arg(call, at);
                Recorded *mask = rewrite_arg(call, BINARY_OTHER - at);
                if (!is_float32(mask) || !is_float32(scores) ||
                    !meta_same_shape(&scores->tensor.meta, &call->outs[0]->tensor.meta))
                        continue;
                RecordedCall *next = maker(chain, at);
                OpRole role = next == NULL ? ROLE_NONE : op_role(&next->call);
                if (role == ROLE_MATMUL || role == ROLE_MUL || role == ROLE_DIV || role == ROLE_ADD) {
                        chain->masks[chain->n_masks++] = mask;
                        *out_next = next;
                        return true;
                }
                chain->n_views = n_views;
        }
        return false;
}

// One number for each head: its last two dimensions are of size 1.
static bool is_by_head(const Recorded *factor, const RecordedCall *call)
{
        const TensorMeta *meta = factor == NULL ? NULL : &factor->tensor.meta;
        return is_float32(factor) && meta->rank > 2 && meta->rank <= call->outs[0]->tensor.meta.rank &&
               meta->size[meta->rank - 1] == 1 && meta->size[meta->rank - 2] == 1;
}

static bool take_factor(Chain *chain, RecordedCall *call, RecordedCall **out_next)
{
        for (int at = SELF; at <= BINARY_OTHER && op_role(&call->call) == ROLE_MUL; at++) {
                Recorded *factor = rewrite_arg(call, BINARY_OTHER - at);
                if (!is_by_head(factor, call) || !add_call(chain, call))
                        continue;
                chain->factor = factor;
                chain->multiply = call->overload;
                *out_next = maker(chain, at);
                return *out_next != NULL && same_shape(*out_next, call);
        }
        return false;
}

// The same for a factor or divisor.
static bool take_scale(Chain *chain, RecordedCall *call, RecordedCall **out_next)
{
        bool divides = op_role(&call->call) == ROLE_DIV;
        double number;
        int scores = SELF;
        if (!number_of(call, BINARY_OTHER, &number)) {
                scores = BINARY_OTHER;
                if (divides || !number_of(call, SELF, &number))
                        return take_factor(chain, call, out_next);
        }
        // in the type that is computed in
        float scale = divides ? 1 / (float)number : (float)number;
        if (!isnormal(scale) || !add_call(chain, call))
                return false;
        chain->scale = (double)scale;
        *out_next = maker(chain, scores);
        return *out_next != NULL;
}

// Values in between have the shape of the scores, or that with the first dimension split.
static bool has_shapes(Chain *chain)
{
        const TensorMeta *scores = &chain->calls[chain->n - 1]->outs[0]->tensor.meta;
        for (uint32_t i = 1; i < chain->n; i++) {
                const TensorMeta *meta = &chain->calls[i]->outs[0]->tensor.meta;
                if (meta_same_shape(meta, scores))
                        continue;
                if (op_role(&chain->calls[i]->call) != ROLE_ADD || !splits_first(meta, scores) ||
                    (chain->windows.rank > 0 && !meta_same_shape(meta, &chain->windows)))
                        return false;
                chain->windows = *meta;
        }
        const TensorMeta *result = &chain->calls[0]->outs[0]->tensor.meta;
        if (chain->windows.rank > 0 && (result->rank != scores->rank || result->size[0] != scores->size[0]))
                return false; // the values have more dimensions
        for (int i = 0; i < chain->n_masks && chain->windows.rank > 0; i++) {
                const TensorMeta *mask = &chain->masks[i]->tensor.meta;
                if (mask->rank == scores->rank && mask->size[0] != 1 &&
                    chain->calls[2 + i]->outs[0]->tensor.meta.rank == scores->rank)
                        return false; // for windows of all samples
        }
        return true;
}

static bool match(Chain *chain, RecordedCall *last)
{
        RecordedCall *next;
        add_call(chain, last);
        next = maker(chain, SELF);
        if (next == NULL || !is_softmax(next) || chain->n_views > 0 || !add_call(chain, next))
                return false;
        next = maker(chain, SELF);
        while (next != NULL && op_role(&next->call) == ROLE_ADD)
                if (!take_mask(chain, next, &next))
                        return false;
        if (next != NULL && (op_role(&next->call) == ROLE_MUL || op_role(&next->call) == ROLE_DIV) &&
            !take_scale(chain, next, &next))
                return false;
        return next != NULL && op_role(&next->call) == ROLE_MATMUL && add_call(chain, next) &&
               is_float32(rewrite_arg(next, SELF)) && is_float32(rewrite_arg(next, MM_OTHER)) &&
               has_shapes(chain);
}

// ---- calls ----
// A call of two operands in front of `last`. *out_value NULL: declined.
static Status insert(Recording *recording, RecordedCall *last, const Overload *overload, Value *take_args,
                     Recorded **out_value)
{
        RecordedCall *made;
        TRY(recording_insert(recording, last,
                             &(NewCall){ .overload = overload,
                                         .take_args = take_args,
                                         .n_outs = 1,
                                         .stands_for = &last,
                                         .n_stands_for = 1 },
                             &made));
        *out_value = made == NULL ? NULL : made->outs[0];
        return STATUS_OK;
}

// A view of `from` with the first dimension split as in chain->windows. What is broadcast along it
// stays as it is.
static Status split(Recording *recording, const Chain *chain, Recorded *from, Recorded **out_value)
{
        TensorMeta meta = from->tensor.meta;
        if (chain->windows.rank == 0 || meta.rank + 1 < chain->windows.rank ||
            meta.size[0] != chain->windows.size[0] * chain->windows.size[1]) {
                *out_value = from;
                return STATUS_OK;
        }
        memmove(meta.size + 1, meta.size, meta.rank * sizeof(int64_t));
        memmove(meta.stride + 1, meta.stride, meta.rank * sizeof(int64_t));
        meta.rank++;
        meta.size[0] = chain->windows.size[0];
        meta.size[1] = chain->windows.size[1];
        meta.stride[0] = meta.size[1] * meta.stride[1];
        return rewrite_view(recording, chain->calls[0], from, &meta, NULL, out_value);
}

// Query, key, value and mask of the one call. Any of the first three NULL: declined.
static Status operands_of(Recording *recording, const Chain *chain, Recorded *out[4])
{
        RecordedCall *last = chain->calls[0];
        const RecordedCall *first = chain->calls[chain->n - 1];
        Recorded *from[] = { rewrite_arg(first, SELF), rewrite_arg(first, MM_OTHER),
                             rewrite_arg(last, MM_OTHER) };
        if (chain->factor != NULL) {
                Value args[] = { rewrite_tensor(from[0]), rewrite_tensor(chain->factor) };
                TRY(insert(recording, last, chain->multiply, args, &from[0]));
        }
        for (int i = 0; i < 3; i++) {
                out[i] = NULL;
                if (from[i] != NULL)
                        TRY(split(recording, chain, from[i], &out[i]));
        }
        out[3] = chain->masks[0];
        if (chain->n_masks < 2)
                return STATUS_OK;
        Value args[] = { rewrite_tensor(chain->masks[0]), rewrite_tensor(chain->masks[1]), value_int(1) };
        return insert(recording, last, op_for(ROLE_ADD), args, &out[3]);
}

// The one call makes `last`'s result, or with windows a value on its buffer that the result views.
static Status result_of(Recording *recording, const Chain *chain, Recorded **out_result)
{
        Recorded *result = chain->calls[0]->outs[0];
        TensorMeta meta = result->tensor.meta;
        *out_result = result;
        if (chain->windows.rank == 0)
                return STATUS_OK;
        memmove(meta.size + 1, meta.size, meta.rank * sizeof(int64_t));
        meta.rank++;
        meta.size[0] = chain->windows.size[0];
        meta.size[1] = chain->windows.size[1];
        meta_set_contiguous(&meta);
        return recording_add_value(recording, FROM_CALL, result->tensor.storage, &meta, result->tensor.offset,
                                   out_result);
}

// The last call's result is a view of `result`; the chain is dropped.
static Status join_windows(Recording *recording, const Chain *chain, const Recorded *result)
{
        Recorded *joined = chain->calls[0]->outs[0], *made;
        TRY(rewrite_view(recording, chain->calls[0], result, &joined->tensor.meta, joined, &made));
        for (uint32_t i = 0; i < chain->n; i++)
                chain->calls[i]->removed = true;
        return STATUS_OK;
}

static Status try_product(Recording *recording, const Uses *uses, RecordedCall *last)
{
        Chain chain = { .uses = uses, .scale = 1 };
        Recorded *operands[4], *result;
        RecordedCall *fused;
        if (!is_float32(rewrite_arg(last, SELF)) || !is_float32(rewrite_arg(last, MM_OTHER)) ||
            !match(&chain, last))
                return STATUS_OK;
        TRY(operands_of(recording, &chain, operands));
        if (operands[0] == NULL || operands[1] == NULL || operands[2] == NULL ||
            (operands[3] == NULL && chain.n_masks > 0))
                return STATUS_OK;
        TRY(result_of(recording, &chain, &result));
        Value values[] = { rewrite_tensor(operands[0]), rewrite_tensor(operands[1]),
                           rewrite_tensor(operands[2]), rewrite_tensor(operands[3]),
                           value_float(chain.scale) };
        NewCall new_call = { .overload = op_for(ROLE_FUSED_ATTENTION),
                             .take_args = values,
                             .outs = &result,
                             .n_outs = 1,
                             .stands_for = chain.calls,
                             .n_stands_for = chain.n,
                             .replaces = chain.windows.rank == 0 };
        TRY(recording_insert(recording, last, &new_call, &fused));
        if (fused == NULL) {
                result->call = last; // nobody reads it
                return STATUS_OK;
        }
        if (chain.windows.rank > 0)
                TRY(join_windows(recording, &chain, result));
        for (uint32_t i = 0; i < chain.n_views; i++)
                chain.views[i]->removed = true;
        return STATUS_OK;
}

Status pass_fuse_attention(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (call->removed || op_role(&call->call) != ROLE_MATMUL || call->call.n_outs != 1 ||
                    call->call.inplace || !call_is_movable(call))
                        continue;
                TRY(run_poll(context->poll));
                TRY(try_product(recording, &uses, call));
        }
        recording_compact(recording);
        return STATUS_OK;
}
