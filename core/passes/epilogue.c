// SPDX-License-Identifier: Apache-2.0
// epilogue.c. Match: a convolution or linear layer with constant weights whose only reader adds
// a tensor of the same layout, applies an activation, or both in this order. Rewrite: one fused
// convolution or linear in the place of the last call, where all operands are there.
#include "core/passes/passes.h"
#include "core/kernels/numeric_policy.h"

#include <math.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/fused_conv.h"
#include "core/passes/rewrite.h"

// What the calls add to a product.
typedef struct Addition {
        FusedActivation activation;
        Recorded *residual; // NULL: none
} Addition;

static bool is_constant(const Recorded *value)
{
        return value != NULL && recorded_is_constant(value) && value->tensor.storage->data != NULL &&
               is_packed_type(&value->tensor.meta);
}

// ---- products ----
typedef enum ProductKind { PRODUCT_NONE, PRODUCT_CONV, PRODUCT_LINEAR, PRODUCT_FUSED } ProductKind;

static ProductKind fused_kind(const RecordedCall *call, bool adds)
{
        int at = (int)call->call.n_args - 4;
        const char *activation = arg_text(&call->call, at);
        bool has_residual = call->call.args[at + 3].kind == VALUE_TENSOR;
        return activation == NULL || strcmp(activation, "none") != 0 || (adds && has_residual)
                       ? PRODUCT_NONE
                       : PRODUCT_FUSED;
}

// `adds`: a residual is to be added.
static ProductKind kind_of(const RecordedCall *call, bool adds)
{
        if (call == NULL || call->removed || call->call.inplace || call->call.n_outs != 1 ||
            !is_packed_type(&call->outs[0]->tensor.meta) || !call_is_movable(call))
                return PRODUCT_NONE;
        OpRole role = op_role(&call->call);
        if (role == ROLE_FUSED_CONV || role == ROLE_FUSED_LINEAR)
                return fused_kind(call, adds);
        if (role == ROLE_CONV) {
                ConvArgs args;
                bool plain = is_constant(rewrite_arg(call, CONV_WEIGHT)) &&
                             conv_args(&call->call, &args) == STATUS_OK && !args.transposed;
                return plain ? PRODUCT_CONV : PRODUCT_NONE;
        }
        bool plain = role == ROLE_LINEAR && is_constant(rewrite_arg(call, LINEAR_WEIGHT)) &&
                     rewrite_arg(call, LINEAR_WEIGHT)->tensor.meta.rank == 2;
        return plain ? PRODUCT_LINEAR : PRODUCT_NONE;
}

// ---- arguments of the fused call ----
// Fills all arguments; on failure the remaining ones are None.
static Status fill_arguments(const RecordedCall *call, ProductKind kind, const Addition *addition,
                             const Overload *overload, Value *out)
{
        uint32_t n = overload->schema.n_args, at = n - 4;
        if (kind == PRODUCT_FUSED) {
                for (uint32_t i = 0; i < n; i++)
                        out[i] = value_ref(call->call.args[i]);
        } else if (kind == PRODUCT_CONV) {
                ConvArgs args;
                TRY(conv_args(&call->call, &args));
                TRY(rewrite_fused_conv(call, &args, out));
        } else {
                for (int i = SELF; i <= LINEAR_BIAS; i++)
                        out[i] = value_ref(call->call.args[i]);
        }
        if (kind != PRODUCT_FUSED || addition->residual == NULL) {
                value_clear(&out[at]);
                TRY(value_str_new(addition->activation.name, strlen(addition->activation.name), &out[at]));
                out[at + 1] = value_float(addition->activation.alpha);
                out[at + 2] = value_float(addition->activation.beta);
        }
        if (addition->residual != NULL)
                out[at + 3] = rewrite_tensor(addition->residual);
        return STATUS_OK;
}

// `last` is the end of the chain that `product` begins.
static Status fuse(Recording *recording, Uses *uses, RecordedCall *last, RecordedCall *product,
                   const Overload *overload, Value *take_args)
{
        RecordedCall *chain[] = { last, product }, *fused;
        NewCall new_call = { .overload = overload,
                             .take_args = take_args,
                             .outs = last->outs,
                             .n_outs = 1,
                             .stands_for = chain,
                             .n_stands_for = 2,
                             .replaces = true };
        TRY(recording_insert(recording, last, &new_call, &fused));
        if (fused != NULL)
                uses_moved(uses, fused);
        return STATUS_OK;
}

// ---- readers ----
static Status try_input(Recording *recording, Uses *uses, RecordedCall *call, int position, Addition addition)
{
        Recorded *input = rewrite_arg(call, position);
        if (input == NULL || input->from != FROM_CALL || uses_only_reader(uses, input) != call ||
            input->tensor.meta.dtype != call->outs[0]->tensor.meta.dtype ||
            !meta_same_places(&input->tensor.meta, &call->outs[0]->tensor.meta))
                return STATUS_OK;
        RecordedCall *product = input->call;
        ProductKind kind = kind_of(product, addition.residual != NULL);
        if (kind == PRODUCT_NONE)
                return STATUS_OK;
        const Overload *overload =
                kind == PRODUCT_FUSED ? product->overload
                                      : op_for(kind == PRODUCT_CONV ? ROLE_FUSED_CONV : ROLE_FUSED_LINEAR);
        Value args[SCHEMA_MAX_ARGS] = { 0 };
        Status status = fill_arguments(product, kind, &addition, overload, args);
        if (status == STATUS_OK)
                return fuse(recording, uses, call, product, overload, args);
        for (uint32_t i = 0; i < overload->schema.n_args; i++)
                value_unref(args[i]);
        return status;
}

static Status try_call(Recording *recording, Uses *uses, RecordedCall *call)
{
        Addition addition = { .activation = { .name = "none" } };
        if (op_role(&call->call) != ROLE_ADD)
                return fused_activation(&call->call, &addition.activation)
                               ? try_input(recording, uses, call, SELF, addition)
                               : STATUS_OK;
        if (!value_is_one(call->call.args[ADD_ALPHA]) || !call_is_movable(call))
                return STATUS_OK;
        for (int position = SELF; position <= BINARY_OTHER && !call->removed; position++) {
                addition.residual = rewrite_arg(call, SELF + BINARY_OTHER - position);
                if (addition.residual != NULL && !recorded_is_constant(addition.residual) &&
                    addition.residual->tensor.meta.dtype == call->outs[0]->tensor.meta.dtype &&
                    meta_same_places(&addition.residual->tensor.meta, &call->outs[0]->tensor.meta))
                        TRY(try_input(recording, uses, call, position, addition));
        }
        return STATUS_OK;
}

Status pass_fuse_epilogues(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (call->removed || call->call.inplace || !call->computes || call->call.n_outs != 1 ||
                    call->outs[0] == NULL || call->outs[0]->call != call ||
                    recorded_is_constant(call->outs[0]))
                        continue;
                TRY(run_poll(context->poll));
                TRY(try_call(recording, &uses, call));
        }
        recording_compact(recording);
        return STATUS_OK;
}
