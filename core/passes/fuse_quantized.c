// SPDX-License-Identifier: Apache-2.0
// fuse_quantized.c. Match: a product of dequantised levels with dequantised constant levels, with
// a scale for each of its columns or one for all; then perhaps a tensor that is added, relu or
// clamp, and quantising. Rewrite: one fxserve::quantized_linear, which sums levels. Likewise a 2-d
// convolution with one scale for each output channel: fxserve::quantized_convolution. Dequantised
// tensors that others read, too, stay; quantising elsewhere becomes one call. The pass comes before
// constants are folded: dequantised weights are never made.
#include <math.h>
#include <string.h>
#include "core/kernels/numeric_policy.h"
#include "core/kernels/product/levels.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/fused_conv.h"
#include "core/ops/matmul.h"
#include "core/passes/levels.h"
#include "core/passes/passes.h"

// A product, and which dimension of its weight has the columns of the result.
typedef struct Product {
        RecordedCall *call;
        const Recorded *input, *weight, *bias; // bias NULL: none
        int axis;
        bool is_conv;
        ConvArgs conv; // of a convolution
} Product;

// What the fused call computes.
typedef struct Chain {
        Product product;
        Dequantized input, weight;
        double low, high;    // of a clamp; -inf and inf: none
        Recorded *residual;  // NULL: none
        Dequantized levels;  // of a convolution's residual; levels NULL: it is no such tensor
        Quantized quantized; // levels NULL: the result is float32
        RecordedCall *calls[LEVELS_CHAIN + 3];
        uint32_t n_calls;
} Chain;

// ---- products ----
static bool is_bias(const Recorded *bias, const Product *product)
{
        const TensorMeta *meta = bias == NULL ? NULL : &bias->tensor.meta;
        return bias == NULL || (recorded_is_constant(bias) && bias->tensor.storage->data != NULL &&
                                is_packed_type(meta) && meta->rank == 1 && meta_is_contiguous(meta) &&
                                meta->size[0] == product->weight->tensor.meta.size[product->axis]);
}

// One group, or one for each channel.
static bool has_groups_of_levels(const Product *product)
{
        const int64_t *weight = product->weight == NULL ? NULL : product->weight->tensor.meta.size;
        return product->conv.groups == 1 ||
               (weight != NULL && product->conv.groups == weight[0] && weight[1] == 1);
}

static bool read_conv(const RecordedCall *call, Product *out)
{
        out->is_conv = true;
        out->axis = 0;
        out->input = rewrite_arg(call, SELF);
        out->weight = rewrite_arg(call, CONV_WEIGHT);
        out->bias = rewrite_arg(call, CONV_BIAS);
        return conv_args(&call->call, &out->conv) == STATUS_OK && out->conv.spatial == 2 &&
               out->conv.batched && !out->conv.transposed && has_groups_of_levels(out) &&
               !recorded_buffer(call->outs[0])->written;
}

static bool read_product(RecordedCall *call, Product *out)
{
        OpRole role = op_role(&call->call);
        *out = (Product){ .call = call, .axis = 1 };
        if (role == ROLE_CONV && !read_conv(call, out))
                return false;
        if (role == ROLE_LINEAR) {
                out->input = rewrite_arg(call, SELF);
                out->weight = rewrite_arg(call, LINEAR_WEIGHT);
                out->bias = rewrite_arg(call, LINEAR_BIAS);
                out->axis = 0;
        } else if (role == ROLE_ADDMM) {
                out->input = rewrite_arg(call, ADDMM_MAT1);
                out->weight = rewrite_arg(call, ADDMM_MAT2);
                out->bias = rewrite_arg(call, SELF);
                if (!value_is_one(call->call.args[ADDMM_BETA]) || !value_is_one(call->call.args[ADDMM_ALPHA]))
                        return false;
        } else if (role == ROLE_MATMUL || role == ROLE_MM) {
                out->input = rewrite_arg(call, SELF);
                out->weight = rewrite_arg(call, MM_OTHER);
        }
        return out->input != NULL && out->weight != NULL &&
               out->weight->tensor.meta.rank == (out->is_conv ? 4 : 2) && out->input->tensor.meta.rank >= 1 &&
               is_packed_type(&call->outs[0]->tensor.meta) && is_bias(out->bias, out);
}

// ---- the weight ----
// The dimension of the tensor that `weight` is a view of which has its columns; -1: it is another
// view than itself or its transpose.
static int columns_of(const Product *product, const Dequantized *weight)
{
        const TensorMeta *view = &product->weight->tensor.meta, *base = &weight->value->tensor.meta;
        if (base->rank != 2 || meta_numel(base) == 0 || meta_numel(view) != meta_numel(base) ||
            product->weight->tensor.offset != weight->value->tensor.offset || !meta_is_contiguous(base))
                return -1;
        TensorMeta turned = *base;
        turned.size[0] = base->size[1];
        turned.size[1] = base->size[0];
        turned.stride[0] = base->stride[1];
        turned.stride[1] = base->stride[0];
        return meta_same_places(view, base)      ? product->axis
               : meta_same_places(view, &turned) ? 1 - product->axis
                                                 : -1;
}

// Kernels lie one behind the other, in any order of their own.
static bool are_kernels(const Product *product, const Dequantized *weight)
{
        const TensorMeta *view = &product->weight->tensor.meta, *base = &weight->value->tensor.meta,
                         *levels = &weight->levels->tensor.meta;
        return base->rank == 4 && meta_numel(base) > 0 && meta_same_shape(view, base) &&
               meta_same_places(view, base) &&
               product->weight->tensor.offset == weight->value->tensor.offset &&
               meta_is_non_overlapping_and_dense(levels) &&
               (levels->size[0] == 1 || levels->stride[0] == meta_numel(levels) / levels->size[0]);
}

// How the levels of a column lie.
typedef struct Steps {
        int64_t n_columns, n_terms, column, term; // bytes from one column, and term, to the next
} Steps;

static Steps steps_of(const TensorMeta *levels, int axis)
{
        int64_t n = meta_numel(levels) / levels->size[0];
        return levels->rank == 4 ? (Steps){ levels->size[0], n, n, 1 }
                                 : (Steps){ levels->size[axis], levels->size[1 - axis], levels->stride[axis],
                                            levels->stride[1 - axis] };
}

static int64_t level_at(const Tensor *tensor, int64_t at)
{
        const uint8_t *data = tensor_data(tensor);
        return tensor->meta.dtype == DTYPE_U8 ? data[at] : (int8_t)data[at];
}

// [columns, terms], or kernels that lie as they did, with the zero points taken off; *out_value
// NULL: they do not fit int8.
static Status shifted_weight(Recording *recording, const Dequantized *weight, int axis, Recorded **out_value)
{
        const Tensor *levels = &weight->levels->tensor;
        Steps steps = steps_of(&levels->meta, axis);
        TensorMeta meta = levels->meta;
        Recorded *made;
        *out_value = NULL;
        meta.dtype = DTYPE_I8;
        if (meta.rank == 2)
                meta_init(&meta, DTYPE_I8, 2, (int64_t[]){ steps.n_columns, steps.n_terms });
        TRY(rewrite_constant(recording, &meta, &made));
        int8_t *to = (int8_t *)made->tensor.storage->data;
        for (int64_t n = 0; n < steps.n_columns; n++) {
                double zero = 0;
                if (weight->zero != NULL && (!levels_along(weight->zero, axis, levels->meta.rank, n, &zero) ||
                                             zero != rint(zero) || fabs(zero) > 255))
                        return STATUS_OK;
                for (int64_t k = 0; k < steps.n_terms; k++) {
                        int64_t level = level_at(levels, n * steps.column + k * steps.term);
                        level -= (int64_t)zero;
                        if (level < INT8_MIN || level > INT8_MAX)
                                return STATUS_OK;
                        *to++ = (int8_t)level;
                }
        }
        *out_value = made;
        return STATUS_OK;
}

static bool has_zeros(const Dequantized *weight, int axis)
{
        const TensorMeta *levels = &weight->levels->tensor.meta;
        double zero;
        for (int64_t n = 0; weight->zero != NULL && n < levels->size[axis]; n++)
                if (!levels_along(weight->zero, axis, levels->rank, n, &zero) || zero != 0)
                        return false;
        return true;
}

// The levels as [columns, terms] of int8: the graph's own bytes where they are that already.
static Status weight_levels(Recording *recording, const Dequantized *weight, int axis, Recorded **out_value)
{
        const Tensor *levels = &weight->levels->tensor;
        TensorMeta meta = levels->meta;
        if (meta.dtype != DTYPE_I8 || !has_zeros(weight, axis))
                return shifted_weight(recording, weight, axis, out_value);
        if (axis == 0) {
                *out_value = weight->levels;
                return STATUS_OK;
        }
        meta.size[0] = levels->meta.size[1];
        meta.size[1] = levels->meta.size[0];
        meta.stride[0] = levels->meta.stride[1];
        meta.stride[1] = levels->meta.stride[0];
        return recording_add_value(recording, FROM_LITERAL, levels->storage, &meta, levels->offset,
                                   out_value);
}

// *out_value NULL: one is not known, or too large.
static Status weight_scales(Recording *recording, const Dequantized *weight, int axis, Recorded **out_value)
{
        int64_t n_columns = weight->levels->tensor.meta.size[axis];
        TensorMeta meta;
        Recorded *made;
        *out_value = NULL;
        meta_init(&meta, PACKED_DTYPE, 1, &n_columns);
        TRY(rewrite_constant(recording, &meta, &made));
        for (int64_t n = 0; n < n_columns; n++) {
                double scale;
                if (!levels_along(weight->scale, axis, weight->levels->tensor.meta.rank, n, &scale) ||
                    !(fabs(scale) <= LEVELS_MOST_SCALE))
                        return STATUS_OK;
                ((float *)made->tensor.storage->data)[n] = (float)scale;
        }
        *out_value = made;
        return STATUS_OK;
}

// Products share what is made of a weight.
typedef struct MadeWeight {
        Recorded *levels, *scales; // NULL: it does not fit
        bool made;
} MadeWeight;

typedef struct Weights {
        Uses *uses;
        MadeWeight *made; // [buffer][axis]
        PassContext *context;
} Weights;

// Stays NULL where it does not fit or there is no room for its levels.
static Status make_weight(Recording *recording, PassContext *context, const Dequantized *weight, int axis,
                          MadeWeight *made)
{
        size_t n_bytes = (size_t)meta_numel(&weight->levels->tensor.meta);
        if (!passes_may_add(recording, context->folded_bytes, n_bytes))
                return STATUS_OK;
        TRY(weight_scales(recording, weight, axis, &made->scales));
        if (made->scales != NULL)
                TRY(weight_levels(recording, weight, axis, &made->levels));
        if (made->levels != NULL && made->levels->tensor.storage != weight->levels->tensor.storage)
                context->folded_bytes += n_bytes;
        return STATUS_OK;
}

static Status weight_of(Recording *recording, const Weights *weights, const Dequantized *weight, int axis,
                        const MadeWeight **out_made)
{
        static const MadeWeight none;
        uint32_t buffer = recorded_buffer(weight->value)->index;
        if (buffer >= weights->uses->n_buffers) {
                *out_made = &none;
                return STATUS_OK;
        }
        MadeWeight *made = &weights->made[2 * (size_t)buffer + (size_t)axis];
        if (!made->made) {
                made->made = true;
                TRY(make_weight(recording, weights->context, weight, axis, made));
        }
        *out_made = made;
        return STATUS_OK;
}

// ---- the input ----
// Products of terms that small are rounded one by one.
static bool is_plain_scale(const Value *value)
{
        double scale;
        return levels_number(value, &scale) &&
               (scale == 0 || (fabs(scale) >= LEVELS_LEAST_SCALE && fabs(scale) <= LEVELS_MOST_SCALE));
}

static bool image_fits(const Dequantized *input)
{
        double zero = 0;
        return is_plain_scale(input->scale) && (input->zero == NULL || levels_number(input->zero, &zero));
}

static bool input_fits(const Dequantized *input)
{
        double scale;
        const Value *value = input->scale;
        if (recorded_is_constant(input->levels) ||
            (input->zero != NULL && !levels_is_level(input->zero, input->levels->tensor.meta.dtype)))
                return false;
        return levels_number(value, &scale)
                       ? fabs(scale) <= LEVELS_MOST_SCALE
                       : value->kind == VALUE_TENSOR && value->tensor->meta.rank == 0 &&
                                 !tensor_is_known(value->tensor) && dtype_is_float(value->tensor->meta.dtype);
}

// The levels that lie where the product's input does; a view of them may have to be made.
// *out_value NULL: they do not lie so.
static Status input_levels(Recording *recording, const Chain *chain, Recorded **out_value)
{
        const Recorded *given = chain->product.input, *base = chain->input.value;
        Recorded *levels = chain->input.levels;
        const TensorMeta *view = &given->tensor.meta;
        *out_value = NULL;
        bool plain = meta_is_contiguous(&base->tensor.meta) && meta_is_contiguous(&levels->tensor.meta);
        if (!plain &&
            (!chain->product.is_conv || !meta_same_places(&base->tensor.meta, &levels->tensor.meta)))
                return STATUS_OK;
        if (meta_same_shape(view, &base->tensor.meta) && meta_same_places(view, &base->tensor.meta) &&
            given->tensor.offset == base->tensor.offset) {
                *out_value = levels;
                return STATUS_OK;
        }
        if (!plain)
                return STATUS_OK;
        Value args[] = { rewrite_tensor(levels), value_none(), value_none(),
                         value_int(given->tensor.offset - base->tensor.offset + levels->tensor.offset) };
        Status status = value_ints_new(VALUE_LIST, view->size, view->rank, &args[STRIDED_SIZE]);
        if (status == STATUS_OK)
                status = value_ints_new(VALUE_LIST, view->stride, view->rank, &args[STRIDED_STRIDE]);
        if (status != STATUS_OK) {
                for (size_t i = 0; i < ARRAY_LENGTH(args); i++)
                        value_unref(args[i]);
                return status;
        }
        RecordedCall *made;
        TRY(recording_insert(recording, chain->product.call,
                             &(NewCall){ .overload = op_for(ROLE_AS_STRIDED), .take_args = args }, &made));
        *out_value = made == NULL ? NULL : made->outs[0];
        return STATUS_OK;
}

// ---- what follows ----
static RecordedCall *only_reader(const Uses *uses, const Chain *chain)
{
        const Recorded *value = chain->calls[chain->n_calls - 1]->outs[0];
        RecordedCall *reader = uses_only_reader(uses, value);
        return reader != NULL && !reader->removed && !reader->call.inplace && reader->call.n_outs == 1 &&
                               reader->outs[0] != NULL && call_is_movable(reader) &&
                               is_packed_type(&reader->outs[0]->tensor.meta) &&
                               meta_same_shape(&reader->outs[0]->tensor.meta, &value->tensor.meta)
                       ? reader
                       : NULL;
}

// A dequantised residual is never made.
static void take_residual_levels(Chain *chain)
{
        Dequantized found;
        double number;
        if (levels_of(chain->residual, &found) && found.value == chain->residual &&
            !recorded_is_constant(found.levels) && levels_number(found.scale, &number) &&
            (found.zero == NULL || (levels_number(found.zero, &number) &&
                                    levels_is_level(found.zero, found.levels->tensor.meta.dtype))) &&
            meta_same_places(&found.levels->tensor.meta, &chain->residual->tensor.meta))
                chain->levels = found;
}

static void take_residual(const Uses *uses, Chain *chain)
{
        RecordedCall *add = only_reader(uses, chain);
        const Recorded *value = chain->calls[chain->n_calls - 1]->outs[0];
        if (add == NULL || op_role(&add->call) != ROLE_ADD || !value_is_one(add->call.args[ADD_ALPHA]))
                return;
        Recorded *other = rewrite_arg(add, rewrite_arg(add, SELF) == value ? BINARY_OTHER : SELF);
        if (other == NULL || other == value || recorded_is_constant(other) ||
            !is_packed_type(&other->tensor.meta) ||
            (!chain->product.is_conv && !meta_is_contiguous(&other->tensor.meta)) ||
            !meta_same_shape(&other->tensor.meta, &value->tensor.meta) ||
            !meta_same_places(&other->tensor.meta, &value->tensor.meta))
                return;
        chain->residual = other;
        if (chain->product.is_conv)
                take_residual_levels(chain);
        chain->calls[chain->n_calls++] = add;
}

static void take_activation(const Uses *uses, Chain *chain)
{
        FusedActivation found;
        RecordedCall *call = only_reader(uses, chain);
        if (call == NULL || !fused_activation(&call->call, &found) || !found.clamps)
                return;
        chain->low = found.low;
        chain->high = found.high;
        chain->calls[chain->n_calls++] = call;
}

static void take_quantizing(const Uses *uses, Chain *chain)
{
        Quantized found;
        RecordedCall *mul = only_reader(uses, chain);
        double inverse, zero;
        if (mul == NULL || !levels_made_by(uses, mul, &found) ||
            found.input != chain->calls[chain->n_calls - 1]->outs[0] ||
            !levels_number(found.inverse, &inverse) || !levels_number(found.zero, &zero) ||
            !isfinite((float)inverse) || !levels_is_level(found.zero, found.levels->tensor.meta.dtype))
                return;
        chain->quantized = found;
        for (uint32_t i = 0; i < found.n_calls; i++)
                chain->calls[chain->n_calls++] = found.calls[i];
}

// ---- the fused call ----
static double known_number(const Value *value) // NULL: 0
{
        double number;
        return value != NULL && levels_number(value, &number) ? number : 0;
}

// low, high, dtype, out_inverse, out_zero, quant_min, quant_max
static void fill_result(const Chain *chain, Value *out)
{
        const Quantized *quantized = &chain->quantized;
        *out++ = value_float(chain->low);
        *out++ = value_float(chain->high);
        *out++ = quantized->levels == NULL ? value_none() : value_dtype(quantized->levels->tensor.meta.dtype);
        *out++ = value_float(known_number(quantized->inverse));
        *out++ = value_int((int64_t)known_number(quantized->zero));
        *out++ = value_int(quantized->least);
        *out++ = value_int(quantized->most);
}

static Status fill_conv(const Chain *chain, const MadeWeight *weight, Recorded *levels, Value *out)
{
        const ConvArgs *conv = &chain->product.conv;
        const int64_t padding[] = { conv->padding[0], conv->padding[1], conv->padding_after[0],
                                    conv->padding_after[1] };
        const Dequantized *residual = &chain->levels;
        out[SELF] = rewrite_tensor(levels);
        out[CONV_WEIGHT] = rewrite_tensor(weight->levels);
        out[CONV_BIAS] = rewrite_tensor(chain->product.bias);
        TRY(value_ints_new(VALUE_LIST, conv->stride, 2, &out[CONV_STRIDE]));
        TRY(value_ints_new(VALUE_LIST, padding, 4, &out[CONV_PADDING]));
        TRY(value_ints_new(VALUE_LIST, conv->dilation, 2, &out[CONV_DILATION]));
        out[CONV_GROUPS] = value_int(conv->groups);
        out[CONV_LEVELS_WEIGHT_SCALE] = rewrite_tensor(weight->scales);
        out[CONV_LEVELS_SCALE] = value_float(known_number(chain->input.scale));
        out[CONV_LEVELS_ZERO_POINT] = value_int((int64_t)known_number(chain->input.zero));
        fill_result(chain, &out[CONV_LEVELS_LOW]);
        out[CONV_LEVELS_RESIDUAL] =
                rewrite_tensor(residual->levels == NULL ? chain->residual : residual->levels);
        out[CONV_LEVELS_RESIDUAL_SCALE] = value_float(known_number(residual->scale));
        out[CONV_LEVELS_RESIDUAL_ZERO] = value_int((int64_t)known_number(residual->zero));
        return STATUS_OK;
}

static Status fill_linear(Recording *recording, const Chain *chain, const MadeWeight *weight,
                          Recorded *levels, Value *out)
{
        out[SELF] = rewrite_tensor(levels);
        TRY(levels_scalar(recording, chain->input.scale, PACKED_DTYPE, &out[LEVELS_SCALE]));
        TRY(levels_scalar(recording, chain->input.zero, DTYPE_I64, &out[LEVELS_ZERO_POINT]));
        out[LEVELS_WEIGHT] = rewrite_tensor(weight->levels);
        out[LEVELS_WEIGHT_SCALE] = rewrite_tensor(weight->scales);
        out[LEVELS_BIAS] = rewrite_tensor(chain->product.bias);
        fill_result(chain, &out[LEVELS_LOW]);
        out[LEVELS_RESIDUAL] = rewrite_tensor(chain->residual);
        return STATUS_OK;
}

static Status insert(Recording *recording, Uses *uses, const Chain *chain, Value *take_args)
{
        RecordedCall *last = chain->calls[chain->n_calls - 1], *fused;
        TRY(recording_insert(recording, last,
                             &(NewCall){ .overload = op_for(chain->product.is_conv ? ROLE_QUANTIZED_CONV
                                                                                   : ROLE_QUANTIZED_LINEAR),
                                         .take_args = take_args,
                                         .outs = last->outs,
                                         .n_outs = 1,
                                         .stands_for = chain->calls,
                                         .n_stands_for = chain->n_calls,
                                         .replaces = true },
                             &fused));
        if (fused == NULL)
                return STATUS_OK;
        const Dequantized *sides[] = { &chain->input, &chain->weight, &chain->levels };
        for (int side = 0; side < 3; side++)
                for (uint32_t i = 0; i < sides[side]->n_calls; i++)
                        TRY(recording_add_nodes(recording, fused, sides[side]->calls[i]));
        uses_moved(uses, fused);
        return STATUS_OK;
}

static Status fuse(Recording *recording, const Weights *weights, const Chain *chain)
{
        const MadeWeight *weight;
        Recorded *levels;
        int axis = !chain->product.is_conv ? columns_of(&chain->product, &chain->weight)
                   : are_kernels(&chain->product, &chain->weight) ? 0
                                                                  : -1;
        if (axis < 0)
                return STATUS_OK;
        TRY(weight_of(recording, weights, &chain->weight, axis, &weight));
        if (weight->levels == NULL)
                return STATUS_OK;
        TRY(input_levels(recording, chain, &levels));
        if (levels == NULL)
                return STATUS_OK;
        Value args[SCHEMA_MAX_ARGS] = { 0 };
        Status status = chain->product.is_conv ? fill_conv(chain, weight, levels, args)
                                               : fill_linear(recording, chain, weight, levels, args);
        if (status == STATUS_OK)
                return insert(recording, weights->uses, chain, args);
        for (size_t i = 0; i < ARRAY_LENGTH(args); i++)
                value_unref(args[i]);
        return status;
}

static Status try_call(Recording *recording, const Weights *weights, RecordedCall *call)
{
        Chain chain = { .low = -INFINITY, .high = INFINITY, .calls = { call }, .n_calls = 1 };
        if (!read_product(call, &chain.product) || !levels_of(chain.product.input, &chain.input) ||
            !levels_of(chain.product.weight, &chain.weight) || !input_fits(&chain.input) ||
            (chain.product.is_conv && !image_fits(&chain.input)) ||
            !recorded_is_constant(chain.weight.levels) || chain.weight.levels->tensor.storage->data == NULL)
                return STATUS_OK;
        take_residual(weights->uses, &chain);
        take_activation(weights->uses, &chain);
        take_quantizing(weights->uses, &chain);
        return fuse(recording, weights, &chain);
}

// What is quantised for other readers.
static Status try_quantizing(Recording *recording, Uses *uses, RecordedCall *first)
{
        Quantized found;
        bool done;
        if (!levels_made_by(uses, first, &found) || recorded_is_constant(found.input))
                return STATUS_OK;
        TRY(levels_pool(recording, uses, &found, &done));
        if (done)
                return STATUS_OK;
        Value args[] = { rewrite_tensor(found.input),
                         value_none(),
                         value_none(),
                         value_int(found.least),
                         value_int(found.most),
                         value_dtype(found.levels->tensor.meta.dtype) };
        TRY(levels_scalar(recording, found.inverse, PACKED_DTYPE, &args[QUANTIZE_INVERSE]));
        TRY(levels_scalar(recording, found.zero, PACKED_DTYPE, &args[QUANTIZE_ZERO_POINT]));
        RecordedCall *last = found.calls[LEVELS_CHAIN - 1], *fused;
        TRY(recording_insert(recording, last,
                             &(NewCall){ .overload = op_for(ROLE_QUANTIZE),
                                         .take_args = args,
                                         .outs = last->outs,
                                         .n_outs = 1,
                                         .stands_for = found.calls,
                                         .n_stands_for = found.n_calls,
                                         .replaces = true },
                             &fused));
        if (fused != NULL)
                uses_moved(uses, fused);
        return STATUS_OK;
}

static bool may_begin(const RecordedCall *call)
{
        return !call->removed && !call->call.inplace && call->computes && call->call.n_outs == 1 &&
               call->outs[0] != NULL && !recorded_is_constant(call->outs[0]) && call_is_movable(call);
}

static Status fuse_products(Recording *recording, Uses *uses, PassContext *context)
{
        _cleanup_(freep) MadeWeight *made = new_array(2 * (size_t)uses->n_buffers, sizeof(*made));
        if (made == NULL)
                return fail_memory();
        const Weights weights = { uses, made, context };
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                TRY(run_poll(context->poll));
                if (may_begin(recording->calls[i]))
                        TRY(try_call(recording, &weights, recording->calls[i]));
        }
        return STATUS_OK;
}

Status pass_fuse_quantized(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        TRY(fuse_products(recording, &uses, context));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                TRY(run_poll(context->poll));
                if (may_begin(recording->calls[i]) && op_role(&recording->calls[i]->call) == ROLE_MUL)
                        TRY(try_quantizing(recording, &uses, recording->calls[i]));
        }
        recording_compact(recording);
        return STATUS_OK;
}
