// SPDX-License-Identifier: Apache-2.0
// layout.c: convolutions run on channels_last images and volumes. Match: a convolution of two or
// three dimensions, then every call whose result follows the layout of its operands, views of them,
// and calls that read any layout. Rewrite: the same call on the operands' twins (the same elements
// in another layout). A value may have a twin beside it. Readers that need the value itself,
// results among them, get one copy, placed before the first of them; views of it are made again
// behind the copy.
#include "core/passes/passes.h"
#include "core/kernels/copy.h"
#include "core/kernels/numeric_policy.h"

#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/product.h"
#include "core/ops/resample.h"
#include "core/passes/rewrite.h"

typedef struct Layout {
        Recording *recording;
        PassContext *context;
        RecordedCall *at;   // the call that is looked at: copies go in front of it; NULL: the results
        Recorded **twins;   // by original value; NULL: none
        bool *missing;      // by original value: only the twin is computed
        Recorded **weights; // by value: a weight that lies one after another; NULL: none
        Recorded **views;   // room for the views between a value and its image
        uint32_t n_values;
} Layout;

static Recorded *twin_of(const Layout *layout, const Recorded *value)
{
        return value->index < layout->n_values ? layout->twins[value->index] : NULL;
}

static bool is_image(const TensorMeta *meta)
{
        return meta->rank == 4 || meta->rank == 5;
}

static bool can_have_twin(const Layout *layout, const Recorded *value)
{
        return value != NULL && value->index < layout->n_values && !recorded_is_constant(value) &&
               is_image(&value->tensor.meta) && meta_numel(&value->tensor.meta) > 0 &&
               !meta_is_channels_last(&value->tensor.meta);
}

static bool is_image_conv(const RecordedCall *call)
{
        ConvArgs args;
        const Value *input = &call->call.args[SELF], *weight = &call->call.args[CONV_WEIGHT];
        OpRole role = op_role(&call->call);
        bool levels = role == ROLE_QUANTIZED_CONV;
        if ((role != ROLE_CONV && role != ROLE_FUSED_CONV && !levels) || input->kind != VALUE_TENSOR ||
            weight->kind != VALUE_TENSOR)
                return false;
        const Tensor *constant = weight->tensor;
        const TensorMeta *meta = &input->tensor->meta;
        if (!is_image(meta) || constant->meta.rank != meta->rank ||
            !recorded_is_constant(recorded_of(constant)) ||
            !(levels || is_packed_type(meta) || is_half_type(meta)) ||
            conv_args(&call->call, &args) != STATUS_OK || !args.batched)
                return false;
        if (meta->rank == 5 && (!is_packed_type(meta) || (args.transposed && args.groups != 1)))
                return false;
        return !args.transposed || (!is_half_type(meta) && conv_has_phases(&args, meta, &constant->meta));
}

static MemoryFormat channels_last_of(const Recorded *value)
{
        return value->tensor.meta.rank == 5 ? MEMORY_FORMAT_CHANNELS_LAST_3D : MEMORY_FORMAT_CHANNELS_LAST;
}

// Its kernel reads some channels of an image where they lie.
static bool is_depthwise(const RecordedCall *call)
{
        ConvArgs args;
        const TensorMeta *image = &call->call.args[SELF].tensor->meta;
        return op_role(&call->call) != ROLE_QUANTIZED_CONV && is_packed_type(image) &&
               conv_args(&call->call, &args) == STATUS_OK && !args.transposed &&
               args.groups == image->size[1] && args.out_size[1] == image->size[1];
}

// Calls whose result follows the layout of their operands, and whose kernels run on either.
static bool follows_layout(const RecordedCall *call)
{
        return (op_has(&call->call, TRAIT_LAYOUT) || op_has(&call->call, TRAIT_LAYOUT_NEAR)) &&
               (op_role(&call->call) != ROLE_RESAMPLE || resample_reads_the_same(&call->call));
}

// Whether the copy is the same for every layout of what it copies.
static bool copies_elements(const RecordedCall *call)
{
        const Value *format = &call->call.args[CLONE_MEMORY_FORMAT];
        return op_role(&call->call) == ROLE_CLONE && format->kind == VALUE_MEMORY_FORMAT &&
               format->memory_format == MEMORY_FORMAT_CONTIGUOUS;
}

// ---- copies between the two ----
static Status insert(const Layout *layout, const NewCall *new_call, Recorded **out_value)
{
        RecordedCall *made;
        TRY(recording_insert(layout->recording, layout->at, new_call, &made));
        if (made == NULL)
                return fail(STATUS_INTERNAL, "an image cannot be copied to another layout");
        *out_value = made->outs[0];
        return STATUS_OK;
}

// A copy of `from` in another layout: `to`, or a new value where that is NULL.
static Status add_copy(const Layout *layout, const Recorded *from, MemoryFormat format, Recorded *to,
                       Recorded **out_value)
{
        Value args[] = { rewrite_tensor(from), { .kind = VALUE_MEMORY_FORMAT, .memory_format = format } };
        RecordedCall *maker = from->call;
        NewCall new_call = { .overload = op_for(ROLE_CLONE),
                             .take_args = args,
                             .outs = to == NULL ? NULL : &to,
                             .n_outs = 1,
                             .stands_for = &maker,
                             .n_stands_for = maker == NULL ? 0 : 1 };
        return insert(layout, &new_call, out_value);
}

static Status add_view(const Layout *layout, const Recorded *from, const TensorMeta *meta, Recorded *to,
                       Recorded **out_value)
{
        return rewrite_view(layout->recording, layout->at, from, meta, to, out_value);
}

static Status ask_for_twin(const Layout *layout, Recorded *value)
{
        if (twin_of(layout, value) != NULL || !can_have_twin(layout, value))
                return STATUS_OK;
        Recorded **twin = &layout->twins[value->index];
        if (!meta_lies_channels_last(&value->tensor.meta))
                return recorded_buffer(value)->written
                               ? STATUS_OK // a copy would not see what is written later
                               : add_copy(layout, value, channels_last_of(value), NULL, twin);
        // only strides of dimensions of size 1 differ
        TensorMeta meta = value->tensor.meta;
        meta_set_channels_last(&meta);
        return add_view(layout, value, &meta, NULL, twin);
}

// The dimensions of a dense tensor, the one of the largest stride first.
static TensorMeta in_order(const TensorMeta *meta, const TensorMeta *by)
{
        TensorMeta out = *meta;
        bool taken[MAX_RANK] = { false };
        for (int i = 0; i < meta->rank; i++) {
                int next = -1;
                for (int d = 0; d < meta->rank; d++) {
                        if (!taken[d] && (next < 0 || by->stride[d] > by->stride[next]))
                                next = d;
                }
                taken[next] = true;
                out.size[i] = meta->size[next];
                out.stride[i] = meta->stride[next];
        }
        return out;
}

// Computes `value`, a dense one, from its twin. One that is not contiguous is a view of the copy of
// a view.
static Status copy_back(const Layout *layout, Recorded *value)
{
        const Recorded *twin = layout->twins[value->index];
        const TensorMeta *meta = &value->tensor.meta;
        Recorded *ordered, *copied, *made;
        if (meta_is_contiguous(meta))
                return add_copy(layout, twin, MEMORY_FORMAT_CONTIGUOUS, value, &made);
        TensorMeta from = in_order(&twin->tensor.meta, meta), to = in_order(meta, meta);
        meta_set_contiguous(&to);
        TRY(add_view(layout, twin, &from, NULL, &ordered));
        TRY(recording_add_value(layout->recording, FROM_CALL, value->tensor.storage, &to, 0, &copied));
        TRY(add_copy(layout, ordered, MEMORY_FORMAT_CONTIGUOUS, copied, &made));
        return add_view(layout, copied, meta, value, &made);
}

// The call that made the view `value`, again. Of several views (`split`), this one alone.
static Status view_again(const Layout *layout, Recorded *value)
{
        Value args[SCHEMA_MAX_ARGS];
        RecordedCall *old = value->call;
        Recorded *made;
        if (old->call.n_outs != 1)
                return add_view(layout, rewrite_arg(old, SELF), &value->tensor.meta, value, &made);
        for (uint32_t i = 0; i < old->call.n_args; i++)
                args[i] = value_ref(old->call.args[i]);
        NewCall new_call = { .overload = old->overload,
                             .take_args = args,
                             .given = old->call.given,
                             .outs = &value,
                             .n_outs = 1,
                             .stands_for = &old,
                             .n_stands_for = 1 };
        return insert(layout, &new_call, &made);
}

static bool is_missing(const Layout *layout, const Recorded *value)
{
        return value != NULL && value->index < layout->n_values && layout->missing[value->index];
}

static Status ask_for_original(void *context, Recorded *value)
{
        const Layout *layout = context;
        uint32_t n_views = 0;
        for (; is_missing(layout, value) && !value->call->computes; value = rewrite_arg(value->call, SELF))
                layout->views[n_views++] = value;
        if (is_missing(layout, value)) {
                layout->missing[value->index] = false;
                TRY(copy_back(layout, value));
        }
        while (n_views-- > 0) {
                layout->missing[layout->views[n_views]->index] = false;
                TRY(view_again(layout, layout->views[n_views]));
        }
        return STATUS_OK;
}

// ---- calls on twins ----
typedef struct Operands {
        Layout *layout;
        const TensorMeta *like, *first; // of the result; of the first operand of that shape
        bool any, mixed;
        int n_alike, n_alike_twins;
} Operands;

static Status look_for_twin(void *context, Recorded *value)
{
        Operands *operands = context;
        operands->any |= value != NULL && twin_of(operands->layout, value) != NULL;
        return STATUS_OK;
}

// What is expanded is broadcast: it has no layout of its own.
static bool is_alike(const Operands *operands, const Recorded *value)
{
        return value != NULL && meta_same_shape(&value->tensor.meta, operands->like) &&
               meta_is_non_overlapping_and_dense(&value->tensor.meta);
}

static Status count_alike(void *context, Recorded *value)
{
        Operands *operands = context;
        bool alike = is_alike(operands, value);
        operands->n_alike += alike;
        operands->n_alike_twins += alike && twin_of(operands->layout, value) != NULL;
        return STATUS_OK;
}

static Status ask_for_alike(void *context, Recorded *value)
{
        Operands *operands = context;
        if (!is_alike(operands, value) || !is_image(&value->tensor.meta))
                return STATUS_OK;
        return ask_for_twin(operands->layout, value);
}

static Status take_twin(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        Recorded *twin = leaf->kind == VALUE_TENSOR ? twin_of(context, recorded_of(leaf->tensor)) : NULL;
        if (twin != NULL)
                out->tensor = &twin->tensor;
        value_ref(*out);
        return STATUS_OK;
}

// All operands of the result's shape have its places now, and twins a place of their own.
static Status look_for_mixture(void *context, Recorded *value)
{
        Operands *operands = context;
        if (!is_alike(operands, value))
                return STATUS_OK;
        Recorded *twin = twin_of(operands->layout, value);
        const TensorMeta *meta = twin == NULL ? &value->tensor.meta : &twin->tensor.meta;
        operands->mixed |= operands->first != NULL && !meta_same_places(meta, operands->first) &&
                           !(meta_lies_by_pixels(meta) && meta_lies_by_pixels(operands->first));
        operands->first = meta;
        return STATUS_OK;
}

static bool can_infer_again(const Layout *layout, const RecordedCall *call)
{
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                const Recorded *out = call->outs[k];
                if (out == NULL || out->call != call || out->index >= layout->n_values ||
                    recorded_is_constant(out) || recorded_buffer(out)->written ||
                    recorded_buffer(out)->kind != BUFFER_RUN ||
                    (call->computes && !meta_is_non_overlapping_and_dense(&out->tensor.meta)))
                        return false;
        }
        return !call->call.inplace && (call->call.op->flags & (OP_EFFECT | OP_RANDOM)) == 0 &&
               call->call.n_outs > 0;
}

// A view of one sample that lies channels_last has the strides, too: those of dimensions of size 1
// are arbitrary, and its readers would take another layout than for several samples.
static Status settle_strides(const Layout *layout, Recorded **inout_twin)
{
        TensorMeta meta = (*inout_twin)->tensor.meta;
        if (!is_image(&meta) || meta_numel(&meta) == 0 || meta_is_channels_last(&meta) ||
            meta_is_contiguous(&meta) || !meta_lies_channels_last(&meta))
                return STATUS_OK;
        const Recorded *twin = *inout_twin;
        meta_set_channels_last(&meta);
        return add_view(layout, twin, &meta, NULL, inout_twin);
}

// Results of 3-d convolutions lie as PyTorch's kernels want them, those of these two as the input.
static const Overload *overload_of(const RecordedCall *call)
{
        ConvArgs args;
        if (!is_image_conv(call) || call->call.args[SELF].tensor->meta.rank != 5)
                return call->overload;
        bool transposed = conv_args(&call->call, &args) == STATUS_OK && args.transposed;
        return op_for(transposed ? ROLE_CONV_TRANSPOSE3D : ROLE_FUSED_CONV);
}

// Kernels want weights one after another. Those of a model in channels_last are copied.
static bool has_other_weight(const Layout *layout, const RecordedCall *call)
{
        const Recorded *weight = is_image_conv(call) ? rewrite_arg(call, CONV_WEIGHT) : NULL;
        return weight != NULL && weight->index < layout->n_values && weight->tensor.storage->data != NULL &&
               !meta_is_contiguous(&weight->tensor.meta);
}

// One copy for all that read the weight; none where constants have no room any more.
static Status copy_weight(const Layout *layout, const RecordedCall *call, Value *inout_weight)
{
        const Recorded *old = rewrite_arg(call, CONV_WEIGHT);
        Recorded **copy = &layout->weights[old->index];
        TensorMeta meta = old->tensor.meta;
        size_t n_bytes = (size_t)meta_numel(&meta) * dtype_info[meta.dtype].bytes;
        if (*copy == NULL && !passes_may_add(layout->recording, layout->context->folded_bytes, n_bytes))
                return STATUS_OK;
        if (*copy == NULL) {
                meta_set_contiguous(&meta);
                TRY(rewrite_constant(layout->recording, &meta, copy));
                layout->context->folded_bytes += n_bytes;
                Region from = region_of(&old->tensor.meta, tensor_data(&old->tensor)),
                       to = region_of(&meta, tensor_data(&(*copy)->tensor));
                TRY(copy_region(layout->context->poll, &from, &to));
        }
        value_unref(*inout_weight);
        *inout_weight = rewrite_tensor(*copy);
        return STATUS_OK;
}

static Status arguments_of(const Layout *layout, const RecordedCall *call, Value *out)
{
        ConvArgs args;
        if (overload_of(call) != call->overload) {
                TRY(conv_args(&call->call, &args));
                TRY(args.transposed ? rewrite_volume_transposed(call, &args, out)
                                    : rewrite_fused_conv(call, &args, out));
        } else {
                for (uint32_t i = 0; i < call->call.n_args; i++)
                        out[i] = value_ref(call->call.args[i]);
        }
        return has_other_weight(layout, call) ? copy_weight(layout, call, &out[CONV_WEIGHT]) : STATUS_OK;
}

// The same operator on twins, if it accepts them. Results in the other layout become twins of the
// original results.
static Status infer_again(const Layout *layout, RecordedCall *old)
{
        Value given[SCHEMA_MAX_ARGS] = { 0 }, args[SCHEMA_MAX_ARGS] = { 0 };
        RecordedCall *again;
        const Overload *overload = overload_of(old);
        uint32_t n = overload->schema.n_args;
        Status status = arguments_of(layout, old, given);
        for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
                status = value_map(given[i], take_twin, (void *)(uintptr_t)layout, &args[i]);
        for (uint32_t i = 0; i < n; i++)
                value_unref(given[i]);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < n; i++)
                        value_unref(args[i]);
                return status;
        }
        NewCall new_call = { .overload = overload,
                             .take_args = args,
                             .given = overload == old->overload ? old->call.given : 0,
                             .outs = old->outs,
                             .n_outs = old->call.n_outs,
                             .results = RESULTS_RESTRIDED,
                             .stands_for = &old,
                             .n_stands_for = 1,
                             .replaces = true };
        TRY(recording_insert(layout->recording, old, &new_call, &again));
        for (uint32_t k = 0; again != NULL && k < again->call.n_outs; k++) {
                if (again->outs[k] == old->outs[k])
                        continue;
                Recorded **twin = &layout->twins[old->outs[k]->index];
                *twin = again->outs[k];
                layout->missing[old->outs[k]->index] = true;
                TRY(settle_strides(layout, twin));
        }
        return STATUS_OK;
}

// Whether the call is to run on twins, some of its operands having one.
static Status goes_along(Operands *operands, const RecordedCall *call, bool *out_yes)
{
        const OpCall *op = &call->call;
        *out_yes = false;
        if (!call->computes) {
                // reads the twin's strides: else the view would be of the value
                *out_yes =
                        op_has(op, TRAIT_BY_SHAPE) && is_missing(operands->layout, rewrite_arg(call, SELF));
                return STATUS_OK;
        }
        if ((op->op->flags & OP_ELEMENTWISE) != 0 && follows_layout(call)) {
                TRY(recorded_visit_inputs(call, count_alike, operands));
                if (operands->n_alike > 0 && operands->n_alike_twins == 0)
                        return STATUS_OK; // what is broadcast does not move the others
                TRY(recorded_visit_inputs(call, ask_for_alike, operands));
                TRY(recorded_visit_inputs(call, look_for_mixture, operands));
        }
        *out_yes = (follows_layout(call) && !operands->mixed) || op_has(op, TRAIT_ANY_LAYOUT) ||
                   copies_elements(call) || is_image_conv(call);
        return STATUS_OK;
}

// Tokens seen as an image lie as a channels_last one does. A convolution, and whatever reads and
// keeps an image, is to know it.
static Status ask_for_image(const Layout *layout, const RecordedCall *call)
{
        Recorded *image = rewrite_arg(call, SELF);
        if (op_role(&call->call) == ROLE_QUANTIZED_CONV && rewrite_arg(call, CONV_LEVELS_RESIDUAL) != NULL)
                TRY(ask_for_twin(layout, rewrite_arg(call, CONV_LEVELS_RESIDUAL)));
        bool reads = is_image_conv(call) ||
                     (follows_layout(call) && (call->call.op->flags & OP_ELEMENTWISE) == 0 &&
                      can_have_twin(layout, image) && !meta_is_contiguous(&image->tensor.meta) &&
                      meta_lies_channels_last(&image->tensor.meta));
        TRY(reads ? ask_for_twin(layout, image) : STATUS_OK);
        Recorded *twin = is_image_conv(call) ? twin_of(layout, image) : NULL;
        if (twin == NULL || meta_is_channels_last(&twin->tensor.meta) || is_depthwise(call))
                return STATUS_OK;
        // some channels of an image: other kernels want them by themselves
        return add_copy(layout, twin, channels_last_of(twin), NULL, &layout->twins[image->index]);
}

// Whether tokens seen as an image, which lie channels_last, are copied to the other layout.
static bool copies_tokens(const Layout *layout, const RecordedCall *call)
{
        const Recorded *from = op_has(&call->call, TRAIT_COPIES) ? rewrite_arg(call, SELF) : NULL;
        return from != NULL && !is_missing(layout, from) && can_have_twin(layout, call->outs[0]) &&
               from->tensor.meta.dtype == call->outs[0]->tensor.meta.dtype && !recorded_is_constant(from) &&
               !recorded_buffer(from)->written && !meta_is_contiguous(&from->tensor.meta) &&
               meta_lies_channels_last(&from->tensor.meta);
}

// The copy's twin is what it copies. It is made only where it is read.
static Status put_off_copy(const Layout *layout, RecordedCall *call)
{
        const Recorded *copy = call->outs[0];
        layout->twins[copy->index] = rewrite_arg(call, SELF);
        layout->missing[copy->index] = true;
        call->removed = true;
        return settle_strides(layout, &layout->twins[copy->index]);
}

// Whether it has to be inferred again though it has no operand in another layout.
static bool is_to_change(const Layout *layout, const RecordedCall *call)
{
        return is_image_conv(call) &&
               (overload_of(call) != call->overload || has_other_weight(layout, call)) &&
               meta_is_channels_last(&call->call.args[SELF].tensor->meta);
}

static Status visit_call(Layout *layout, RecordedCall *call)
{
        layout->at = call;
        if (can_infer_again(layout, call)) {
                if (call->computes && copies_tokens(layout, call))
                        return put_off_copy(layout, call);
                Operands operands = { .layout = layout, .like = &call->outs[0]->tensor.meta };
                bool goes;
                TRY(ask_for_image(layout, call));
                TRY(recorded_visit_inputs(call, look_for_twin, &operands));
                if (operands.any || is_to_change(layout, call)) {
                        TRY(goes_along(&operands, call, &goes));
                        if (goes)
                                TRY(infer_again(layout, call));
                }
        }
        return call->removed ? STATUS_OK : recorded_visit_inputs(call, ask_for_original, layout);
}

// ---- whether it pays ----
// For one sample: a result's bits do not depend on how many there are.
enum { FEWEST_FLOPS = 100000 };

static bool is_worth_it(const Recording *recording)
{
        int64_t flops = 0;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                if (!call->removed && op_role(&call->call) == ROLE_QUANTIZED_CONV)
                        return true; // its kernel knows that layout alone
                if (call->removed || !is_image_conv(call))
                        continue;
                const TensorMeta *image = &call->call.args[SELF].tensor->meta;
                if (meta_lies_channels_last(image) && !meta_is_contiguous(image))
                        return true; // PyTorch's strides of one sample may not say so
                flops += call->call.op->cost(&call->call).flops / MAX(image->size[0], (int64_t)1);
        }
        return flops >= FEWEST_FLOPS;
}

Status pass_choose_layout(Recording *recording, PassContext *context)
{
        if (!is_worth_it(recording))
                return STATUS_OK;
        Layout layout = { .recording = recording, .context = context, .n_values = recording->n_values };
        _cleanup_(freep) Recorded **twins = new_array(recording->n_values, sizeof(Recorded *));
        _cleanup_(freep) bool *missing = new_array(recording->n_values, sizeof(bool));
        _cleanup_(freep) Recorded **views = new_array(recording->n_values, sizeof(Recorded *));
        _cleanup_(freep) Recorded **weights = new_array(recording->n_values, sizeof(Recorded *));
        if (twins == NULL || missing == NULL || views == NULL || weights == NULL)
                return fail_memory();
        layout.views = views;
        layout.weights = weights;
        layout.twins = twins;
        layout.missing = missing;
        uint32_t n = recording->n_calls; // copies for the results come last
        for (uint32_t i = 0; i < n; i++) {
                TRY(run_poll(context->poll));
                TRY(visit_call(&layout, recording->calls[i]));
        }
        layout.at = NULL;
        TRY(recording_visit_results(recording, ask_for_original, &layout));
        recording_compact(recording);
        return STATUS_OK;
}
