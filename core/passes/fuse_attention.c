// SPDX-License-Identifier: Apache-2.0
// fuse_attention.c. Match: attention written out, softmax(q k^T * scale + mask) v over the last
// dimension, in float32, whose values in between nobody else reads; scale and mask may be absent.
// Rewrite: one call that stores no scores.
#include "core/passes/passes.h"
#include <math.h>
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/passes/rewrite.h"

enum { MOST_CALLS = 5 };

// The calls from the last product up to the first one.
typedef struct Chain {
        const Uses *uses;
        RecordedCall *calls[MOST_CALLS];
        uint32_t n;
        Recorded *mask; // NULL: none
        double scale;
} Chain;

static bool is_float32(const Recorded *value)
{
        return value != NULL && is_packed_type(&value->tensor.meta);
}

// The call that makes argument `index` of the chain's last one, if that is all it is for.
static RecordedCall *maker(const Chain *chain, int index)
{
        RecordedCall *reader = chain->calls[chain->n - 1];
        const Recorded *value = rewrite_arg(reader, index);
        if (!is_float32(value) || value->from != FROM_CALL || value->call->removed ||
            uses_only_reader(chain->uses, value) != reader)
                return NULL;
        RecordedCall *call = value->call;
        return call->call.n_outs == 1 && !call->call.inplace && call_is_movable(call) ? call : NULL;
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

// Takes `call` into the chain as the addition of a mask; *out_next is the call behind the scores.
static bool take_mask(Chain *chain, RecordedCall *call, RecordedCall **out_next)
{
        double alpha;
        if (arg_double(&call->call, ADD_ALPHA, &alpha) != STATUS_OK || alpha != 1 || !add_call(chain, call))
                return false;
        for (int at = SELF; at <= BINARY_OTHER; at++) {
                Recorded *mask = rewrite_arg(call, BINARY_OTHER - at);
                RecordedCall *next = maker(chain, at);
                if (!is_float32(mask) || next == NULL || !same_shape(next, call))
                        continue;
                OpRole role = op_role(&next->call);
                if (role != ROLE_MATMUL && role != ROLE_MUL && role != ROLE_DIV)
                        continue;
                chain->mask = mask;
                *out_next = next;
                return true;
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
                        return false;
        }
        // in the type that is computed in
        float scale = divides ? 1 / (float)number : (float)number;
        if (!isnormal(scale) || !add_call(chain, call))
                return false;
        chain->scale = (double)scale;
        *out_next = maker(chain, scores);
        return *out_next != NULL;
}

static bool match(Chain *chain, RecordedCall *last)
{
        RecordedCall *next;
        add_call(chain, last);
        next = maker(chain, SELF);
        if (next == NULL || !is_softmax(next) || !add_call(chain, next))
                return false;
        next = maker(chain, SELF);
        if (next != NULL && op_role(&next->call) == ROLE_ADD && !take_mask(chain, next, &next))
                return false;
        if (next != NULL && (op_role(&next->call) == ROLE_MUL || op_role(&next->call) == ROLE_DIV) &&
            !take_scale(chain, next, &next))
                return false;
        return next != NULL && op_role(&next->call) == ROLE_MATMUL && add_call(chain, next) &&
               is_float32(rewrite_arg(next, SELF)) && is_float32(rewrite_arg(next, MM_OTHER));
}

static Status try_product(Recording *recording, const Uses *uses, RecordedCall *last)
{
        Chain chain = { .uses = uses, .scale = 1 };
        if (!is_float32(rewrite_arg(last, SELF)) || !is_float32(rewrite_arg(last, MM_OTHER)) ||
            !match(&chain, last))
                return STATUS_OK;
        const RecordedCall *first = chain.calls[chain.n - 1];
        Value values[] = { value_ref(first->call.args[SELF]), value_ref(first->call.args[MM_OTHER]),
                           value_ref(last->call.args[MM_OTHER]), rewrite_tensor(chain.mask),
                           value_float(chain.scale) };
        RecordedCall *fused;
        return recording_insert(recording, last,
                                &(NewCall){ .overload = op_for(ROLE_FUSED_ATTENTION),
                                            .take_args = values,
                                            .outs = last->outs,
                                            .n_outs = 1,
                                            .stands_for = chain.calls,
                                            .n_stands_for = chain.n,
                                            .replaces = true },
                                &fused);
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
