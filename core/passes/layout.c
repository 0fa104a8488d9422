// SPDX-License-Identifier: Apache-2.0
// layout.c: convolutions run on channels_last images, oneDNN's fastest layout. Match: a 2-d
// convolution on a contiguous image, then every call whose result follows the layout of its
// operands. Rewrite: the same call on the operands' twins (the same elements in the other layout).
// A value may have a twin beside it. Readers that need the value itself, results among them, get
// one copy, placed before the first of them.
#include "core/passes/passes.h"
#include "core/kernels/numeric_policy.h"

#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/passes/rewrite.h"

typedef struct Layout {
        Recording *recording;
        RecordedCall *at; // the call that is looked at: copies go in front of it; NULL: the results
        Recorded **twins; // by original value; NULL: none
        bool *missing;    // by original value: only the twin is computed
        uint32_t n_values;
} Layout;

static Recorded *twin_of(const Layout *layout, const Recorded *value)
{
        return value->index < layout->n_values ? layout->twins[value->index] : NULL;
}

// Images that are written once.
static bool can_have_twin(const Layout *layout, const Recorded *value)
{
        if (value == NULL || value->index >= layout->n_values || recorded_is_constant(value) ||
            value->tensor.meta.rank != 4 || meta_numel(&value->tensor.meta) == 0)
                return false;
        return !recorded_buffer(value)->written && meta_is_contiguous(&value->tensor.meta);
}

static bool is_image_conv(const RecordedCall *call)
{
        ConvArgs args;
        const Value *input = &call->call.args[SELF], *weight = &call->call.args[CONV_WEIGHT];
        OpRole role = op_role(&call->call);
        if ((role != ROLE_CONV && role != ROLE_FUSED_CONV) || input->kind != VALUE_TENSOR ||
            weight->kind != VALUE_TENSOR)
                return false;
        const Tensor *constant = weight->tensor;
        return input->tensor->meta.rank == 4 && is_packed_type(&input->tensor->meta) &&
               constant->meta.rank == 4 && recorded_is_constant(recorded_of(constant)) &&
               conv_args(&call->call, &args) == STATUS_OK && !args.transposed && args.batched;
}

// Calls whose result follows the layout of their operands, and whose kernels run on either.
static bool follows_layout(const RecordedCall *call)
{
        return op_has(&call->call, TRAIT_LAYOUT) || op_has(&call->call, TRAIT_LAYOUT_NEAR);
}

// ---- copies between the two ----
// A copy of `from` in another layout: `to`, or a new value where that is NULL.
static Status add_copy(const Layout *layout, const Recorded *from, MemoryFormat format, Recorded *to,
                       Recorded **out_value)
{
        Value args[] = { rewrite_tensor(from), { .kind = VALUE_MEMORY_FORMAT, .memory_format = format } };
        RecordedCall *maker = from->call, *copy;
        NewCall new_call = { .overload = op_for(ROLE_CLONE),
                             .take_args = args,
                             .outs = to == NULL ? NULL : &to,
                             .n_outs = 1,
                             .stands_for = &maker,
                             .n_stands_for = maker == NULL ? 0 : 1 };
        TRY(recording_insert(layout->recording, layout->at, &new_call, &copy));
        if (copy == NULL)
                return fail(STATUS_INTERNAL, "an image cannot be copied to another layout");
        *out_value = copy->outs[0];
        return STATUS_OK;
}

static Status ask_for_twin(const Layout *layout, Recorded *value)
{
        if (twin_of(layout, value) != NULL || !can_have_twin(layout, value))
                return STATUS_OK;
        return add_copy(layout, value, MEMORY_FORMAT_CHANNELS_LAST, NULL, &layout->twins[value->index]);
}

static Status ask_for_original(void *context, Recorded *value)
{
        Layout *layout = context;
        Recorded *copied;
        if (value == NULL || value->index >= layout->n_values || !layout->missing[value->index])
                return STATUS_OK;
        layout->missing[value->index] = false;
        return add_copy(layout, layout->twins[value->index], MEMORY_FORMAT_CONTIGUOUS, value, &copied);
}

// ---- calls on twins ----
typedef struct Operands {
        Layout *layout;
        const TensorMeta *like;
        bool any;
} Operands;

static Status look_for_twin(void *context, Recorded *value)
{
        Operands *operands = context;
        operands->any |= value != NULL && twin_of(operands->layout, value) != NULL;
        return STATUS_OK;
}

static Status ask_for_alike(void *context, Recorded *value)
{
        Operands *operands = context;
        if (value == NULL || value->tensor.meta.rank != 4 ||
            !meta_same_shape(&value->tensor.meta, operands->like))
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

static bool can_infer_again(const Layout *layout, const RecordedCall *call)
{
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                const Recorded *out = call->outs[k];
                if (out == NULL || out->call != call || out->index >= layout->n_values ||
                    recorded_is_constant(out) || recorded_buffer(out)->written ||
                    recorded_buffer(out)->kind != BUFFER_RUN || !meta_is_contiguous(&out->tensor.meta))
                        return false;
        }
        return call->computes && !call->call.inplace &&
               (call->call.op->flags & (OP_EFFECT | OP_RANDOM)) == 0 && call->call.n_outs > 0;
}

// The same operator on twins, if it accepts them. Results in the other layout become twins of the
// original results.
static Status infer_again(const Layout *layout, RecordedCall *old)
{
        Value args[SCHEMA_MAX_ARGS] = { 0 };
        RecordedCall *again;
        uint32_t n = old->call.n_args;
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
                status = value_map(old->call.args[i], take_twin, (void *)(uintptr_t)layout, &args[i]);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < n; i++)
                        value_unref(args[i]);
                return status;
        }
        NewCall new_call = { .overload = old->overload,
                             .take_args = args,
                             .given = old->call.given,
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
                layout->twins[old->outs[k]->index] = again->outs[k];
                layout->missing[old->outs[k]->index] = true;
        }
        return STATUS_OK;
}

static Status visit_call(Layout *layout, RecordedCall *call)
{
        layout->at = call;
        if (can_infer_again(layout, call)) {
                Operands operands = { .layout = layout, .like = &call->outs[0]->tensor.meta };
                if (is_image_conv(call))
                        TRY(ask_for_twin(layout, recorded_of(call->call.args[SELF].tensor)));
                TRY(recorded_visit_inputs(call, look_for_twin, &operands));
                if (operands.any && (is_image_conv(call) || follows_layout(call))) {
                        if ((call->call.op->flags & OP_ELEMENTWISE) != 0)
                                TRY(recorded_visit_inputs(call, ask_for_alike, &operands));
                        TRY(infer_again(layout, call));
                }
        }
        return call->removed ? STATUS_OK : recorded_visit_inputs(call, ask_for_original, layout);
}

// ---- whether it pays ----
enum { FEWEST_FLOPS = 100000 };

static bool is_worth_it(const Recording *recording)
{
        int64_t flops = 0;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                if (!call->removed && is_image_conv(call) &&
                    meta_is_contiguous(&call->call.args[SELF].tensor->meta))
                        flops += call->call.op->cost(&call->call).flops;
        }
        return flops >= FEWEST_FLOPS;
}

Status pass_choose_layout(Recording *recording, PassContext *context)
{
        if (!is_worth_it(recording))
                return STATUS_OK;
        Layout layout = { .recording = recording, .n_values = recording->n_values };
        _cleanup_(freep) Recorded **twins = new_array(recording->n_values, sizeof(Recorded *));
        _cleanup_(freep) bool *missing = new_array(recording->n_values, sizeof(bool));
        if (twins == NULL || missing == NULL)
                return fail_memory();
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
