// SPDX-License-Identifier: Apache-2.0
#include "core/passes/levels.h"

#include <math.h>
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/fused_conv.h"

// ---- calls ----
static bool is_plain(const RecordedCall *call)
{
        return !call->removed && !call->call.inplace && call->call.n_outs == 1 && call->outs[0] != NULL &&
               call_is_movable(call);
}

// The call that makes `value`, of bytes that are written once.
static const RecordedCall *maker(const Recorded *value)
{
        if (value == NULL || recorded_is_constant(value) || value->from != FROM_CALL ||
            recorded_buffer(value)->written || !is_plain(value->call))
                return NULL;
        return value->call;
}

static bool is_cast(const RecordedCall *call)
{
        return op_has(&call->call, TRAIT_COPIES);
}

// ---- numbers ----
static bool plain_number(const Value *value, double *out)
{
        if (value->kind == VALUE_INT)
                *out = (double)value->i;
        else if (value->kind == VALUE_FLOAT)
                *out = value->f;
        else
                return false;
        return value->tag == 0;
}

// The cast gives the numbers that it is given, but for the rounding of float32.
static bool keeps_numbers(Dtype from, Dtype to)
{
        return from == to || to == PACKED_DTYPE || to == DTYPE_F64 || (to == DTYPE_I64 && dtype_is_int(from));
}

// A cast of a constant is not folded yet.
static const Tensor *known(const Value *value)
{
        const Recorded *recorded = recorded_of(value->tensor);
        const RecordedCall *cast = recorded == NULL ? NULL : maker(recorded);
        const Tensor *tensor = value->tensor;
        if (cast != NULL && is_cast(cast) && rewrite_arg(cast, SELF) != NULL &&
            keeps_numbers(rewrite_arg(cast, SELF)->tensor.meta.dtype, tensor->meta.dtype))
                tensor = &rewrite_arg(cast, SELF)->tensor;
        return tensor_is_known(tensor) && tensor->storage->data != NULL &&
                               dtype_info[tensor->meta.dtype].kind != DTYPE_KIND_COMPLEX
                       ? tensor
                       : NULL;
}

static double number_at(const Tensor *tensor, int64_t at)
{
        const uint8_t *data = tensor_data(tensor);
        return element_as_f64(tensor->meta.dtype, data + at * dtype_info[tensor->meta.dtype].bytes);
}

bool levels_number(const Value *value, double *out)
{
        return levels_along(value, 0, 0, 0, out);
}

bool levels_along(const Value *value, int axis, int rank, int64_t i, double *out)
{
        if (value->kind != VALUE_TENSOR)
                return plain_number(value, out);
        const Tensor *tensor = known(value);
        if (tensor == NULL || tensor->meta.rank > rank)
                return false;
        int64_t at = 0;
        for (int d = 0; d < tensor->meta.rank; d++) {
                if (tensor->meta.size[d] == 1)
                        continue;
                if (d + rank - tensor->meta.rank != axis || i >= tensor->meta.size[d])
                        return false;
                at = i * tensor->meta.stride[d];
        }
        *out = number_at(tensor, at);
        return true;
}

Status levels_scalar(Recording *recording, const Value *value, Dtype dtype, Value *out)
{
        double number = 0;
        TensorMeta meta;
        Recorded *made;
        if (value != NULL && !levels_number(value, &number)) {
                *out = value_ref(*value);
                return STATUS_OK;
        }
        meta_init(&meta, dtype, 0, NULL);
        TRY(rewrite_constant(recording, &meta, &made));
        if (dtype == PACKED_DTYPE)
                *(float *)made->tensor.storage->data = (float)number;
        else
                *(int64_t *)made->tensor.storage->data = (int64_t)number;
        *out = rewrite_tensor(made);
        return STATUS_OK;
}

static bool level_bounds(Dtype dtype, double *out_low, double *out_high)
{
        *out_low = dtype == DTYPE_U8 ? 0 : INT8_MIN;
        *out_high = dtype == DTYPE_U8 ? UINT8_MAX : INT8_MAX;
        return dtype == DTYPE_U8 || dtype == DTYPE_I8;
}

// Numbers from low to high stay what they are.
static bool holds(Dtype dtype, double low, double high)
{
        double least, most;
        return dtype == DTYPE_I16 || dtype == DTYPE_I32 || dtype == DTYPE_I64 ||
               (level_bounds(dtype, &least, &most) && low >= least && high <= most);
}

// Clamped to levels, then perhaps cast to other types of integers that have all of them.
static bool is_clamped(const Recorded *value, double low, double high)
{
        FusedActivation clamp;
        Recorded *base = recorded_buffer(value)->base;
        if (value->tensor.meta.rank > 1 || meta_numel(&value->tensor.meta) != 1 ||
            value->tensor.meta.dtype != base->tensor.meta.dtype) // a view of other numbers
                return false;
        const RecordedCall *call = maker(base);
        while (call != NULL && is_cast(call) && holds(call->outs[0]->tensor.meta.dtype, low, high))
                call = maker(rewrite_arg(call, SELF));
        return call != NULL && dtype_is_int(call->outs[0]->tensor.meta.dtype) &&
               fused_activation(&call->call, &clamp) && clamp.clamps && clamp.low >= low &&
               clamp.high <= high;
}

bool levels_is_level(const Value *value, Dtype dtype)
{
        double low, high, number;
        if (!level_bounds(dtype, &low, &high))
                return false;
        if (levels_number(value, &number))
                return number >= low && number <= high && number == rint(number);
        return value->kind == VALUE_TENSOR && value->tensor->meta.rank == 0 &&
               dtype_is_int(value->tensor->meta.dtype) && maker(recorded_of(value->tensor)) != NULL &&
               is_clamped(recorded_of(value->tensor), low, high);
}

// ---- dequantised ----
// Goes from `*value` to what the call makes it of.
static void pass_call(const RecordedCall *call, Recorded **value, Dequantized *out)
{
        out->calls[out->n_calls++] = call;
        *value = rewrite_arg(call, SELF);
}

bool levels_of(const Recorded *value, Dequantized *out)
{
        if (value == NULL || recorded_is_constant(value) || !is_packed_type(&value->tensor.meta))
                return false;
        Recorded *at = recorded_buffer(value)->base;
        const RecordedCall *call = maker(at);
        *out = (Dequantized){ .value = at };
        if (call == NULL || op_role(&call->call) != ROLE_MUL || !is_packed_type(&at->tensor.meta))
                return false;
        out->scale = &call->call.args[BINARY_OTHER];
        pass_call(call, &at, out);
        call = maker(at);
        if (call != NULL && op_role(&call->call) == ROLE_SUB && value_is_one(call->call.args[ADD_ALPHA]) &&
            dtype_info[at->tensor.meta.dtype].bytes > 1) { // differences of 8 bits wrap
                out->zero = &call->call.args[BINARY_OTHER];
                pass_call(call, &at, out);
                call = maker(at);
        }
        if (call != NULL && is_cast(call) && is_packed_type(&at->tensor.meta))
                pass_call(call, &at, out);
        out->levels = at;
        return at != NULL && (at->tensor.meta.dtype == DTYPE_U8 || at->tensor.meta.dtype == DTYPE_I8) &&
               (recorded_is_constant(at) || !recorded_buffer(at)->written) &&
               meta_same_shape(&at->tensor.meta, &out->value->tensor.meta);
}

// ---- quantised ----
static bool is_scalar(const Value *value)
{
        double number;
        return levels_number(value, &number) ||
               (value->kind == VALUE_TENSOR && value->tensor->meta.rank == 0 &&
                (dtype_is_float(value->tensor->meta.dtype) || dtype_is_int(value->tensor->meta.dtype)));
}

// Call i of a chain.
static bool is_link(const RecordedCall *call, uint32_t i)
{
        OpRole role = op_role(&call->call);
        FusedActivation clamp;
        bool fits = i == 0   ? role == ROLE_MUL
                    : i == 1 ? role == ROLE_ROUND
                    : i == 2 ? (role == ROLE_ADD || role == ROLE_ADD_NUMBER) &&
                                       value_is_one(call->call.args[ADD_ALPHA])
                    : i == 3 ? fused_activation(&call->call, &clamp) && clamp.clamps
                             : is_cast(call);
        return fits && (i + 1 == LEVELS_CHAIN || is_packed_type(&call->outs[0]->tensor.meta));
}

// A whole number from low to high.
static bool is_whole(double number, double low, double high, int64_t *out)
{
        if (!(number >= low && number <= high && number == rint(number)))
                return false;
        *out = (int64_t)number;
        return true;
}

bool levels_made_by(const Uses *uses, RecordedCall *first, Quantized *out)
{
        double low, high;
        FusedActivation clamp;
        *out = (Quantized){ .input = rewrite_arg(first, SELF) };
        if (out->input == NULL || !is_packed_type(&out->input->tensor.meta))
                return false;
        for (RecordedCall *call = first;;) {
                if (call == NULL || !is_plain(call) || !is_link(call, out->n_calls))
                        return false;
                out->calls[out->n_calls++] = call;
                if (out->n_calls == LEVELS_CHAIN)
                        break;
                RecordedCall *reader = uses_only_reader(uses, call->outs[0]);
                call = reader != NULL && rewrite_arg(reader, SELF) == call->outs[0] ? reader : NULL;
        }
        RecordedCall *const *calls = out->calls;
        out->levels = calls[4]->outs[0];
        out->inverse = &calls[0]->call.args[BINARY_OTHER];
        out->zero = &calls[2]->call.args[BINARY_OTHER];
        return level_bounds(out->levels->tensor.meta.dtype, &low, &high) && is_scalar(out->inverse) &&
               is_scalar(out->zero) && fused_activation(&calls[3]->call, &clamp) &&
               is_whole(clamp.low, low, high, &out->least) && is_whole(clamp.high, low, high, &out->most);
}
