// SPDX-License-Identifier: Apache-2.0
// fold_padding.c. Match: a convolution with constant weights whose input is padded with zeros by a
// call that nobody else reads. Rewrite: a convolution that pads, on each side by its own number.
#include "core/passes/passes.h"
#include <string.h>
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/passes/rewrite.h"

// Adds the widths of `pad` to the padding of the convolution; false: they do not fit.
static bool add_widths(const RecordedCall *pad, ConvArgs *args)
{
        int64_t width[2 * MAX_RANK];
        double value = 0;
        int n;
        if (!arg_is_none(&pad->call, CONSTANT_PAD_VALUE) &&
            (arg_double(&pad->call, CONSTANT_PAD_VALUE, &value) != STATUS_OK || value != 0))
                return false;
        if (arg_ints(&pad->call, PADDING_WIDTHS, 2 * MAX_RANK, width, &n) != STATUS_OK ||
            n > 2 * args->spatial)
                return false;
        for (int i = 0; i < n; i++) {
                int64_t *side =
                        (i % 2 == 0 ? args->padding : args->padding_after) + args->spatial - 1 - i / 2;
                if (width[i] < 0 || !add_i64(*side, width[i], side))
                        return false;
        }
        return true;
}

// Fast kernels want every window to meet the input.
static bool windows_meet_input(const Recorded *weight, const ConvArgs *args)
{
        for (int i = 0; i < args->spatial; i++) {
                int64_t reach = args->dilation[i] * (weight->tensor.meta.size[2 + i] - 1) + 1;
                if (args->padding[i] >= reach || args->padding_after[i] >= reach)
                        return false;
        }
        return true;
}

static Status try_conv(Recording *recording, const Uses *uses, RecordedCall *conv)
{
        Recorded *input = rewrite_arg(conv, SELF), *weight = rewrite_arg(conv, CONV_WEIGHT);
        if (input == NULL || input->from != FROM_CALL || uses_only_reader(uses, input) != conv ||
            weight == NULL || !recorded_is_constant(weight) || !is_packed_type(&input->tensor.meta))
                return STATUS_OK;
        RecordedCall *pad = input->call;
        ConvArgs args;
        if (op_role(&pad->call) != ROLE_PAD || pad->removed || !call_is_movable(pad) ||
            conv_args(&conv->call, &args) != STATUS_OK || args.transposed || !args.batched ||
            !add_widths(pad, &args) || !windows_meet_input(weight, &args) || !rewrite_is_finite(weight))
                return STATUS_OK;
        const Overload *overload = op_for(ROLE_FUSED_CONV);
        Value values[SCHEMA_MAX_ARGS] = { 0 };
        Status status = rewrite_fused_conv(conv, &args, values);
        value_unref(values[SELF]);
        values[SELF] = value_ref(pad->call.args[SELF]);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < overload->schema.n_args; i++)
                        value_unref(values[i]);
                return status;
        }
        RecordedCall *chain[] = { conv, pad }, *folded;
        return recording_insert(recording, conv,
                                &(NewCall){ .overload = overload,
                                            .take_args = values,
                                            .outs = conv->outs,
                                            .n_outs = 1,
                                            .stands_for = chain,
                                            .n_stands_for = 2,
                                            .replaces = true },
                                &folded);
}

Status pass_fold_padding(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (call->removed || op_role(&call->call) != ROLE_CONV || call->call.n_outs != 1 ||
                    !call_is_movable(call))
                        continue;
                TRY(run_poll(context->poll));
                TRY(try_conv(recording, &uses, call));
        }
        recording_compact(recording);
        return STATUS_OK;
}
