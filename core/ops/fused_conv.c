// SPDX-License-Identifier: Apache-2.0
// fused_conv.c: convolution and linear with what follows them: a residual is added, then an
// activation. Passes make these calls out of chains. The activation is the very loop of the
// pointwise row, run over the product while it is in cache: oneDNN's own relu and clip lose NaN.
#include "core/ops/fused_conv.h"
#include "core/kernels/numeric_policy.h"

#include <math.h>
#include <string.h>
#include "core/kernels/pointwise/pointwise.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "core/ops/pack.h"

enum { CHUNK = 4096, GRAIN = 1 << 16, RESIDUAL_OPERAND = 3 };

typedef struct Epilogue {
        const PointKernel *kernel; // NULL: none
        PointParams params;
} Epilogue;

static const struct Activation {
        const char *name;
        const PointKernel *kernel;
} activations[] = {
        { "none", NULL },        { "relu", &point_relu },       { "clamp", &point_clamp },
        { "silu", &point_silu }, { "gelu", &point_gelu },       { "gelu_tanh", &point_gelu_tanh },
        { "tanh", &point_tanh }, { "sigmoid", &point_sigmoid }, { "hardswish", &point_hardswish },
};

// ---- which activations ----
static bool clamp_bound(const OpCall *call, int index, double if_none, double *out)
{
        *out = if_none;
        if (arg_is_none(call, index))
                return true;
        return arg_double(call, index, out) == STATUS_OK && !isnan(*out);
}

bool fused_activation(const OpCall *call, FusedActivation *out)
{
        const char *name = call->schema->text == call->op->schema ? call->op->activation : NULL;
        if (name == NULL)
                return false;
        *out = (FusedActivation){ .name = name };
        if (strcmp(name, "gelu") == 0 && arg_text(call, GELU_APPROXIMATE) != NULL &&
            strcmp(arg_text(call, GELU_APPROXIMATE), "tanh") == 0)
                out->name = "gelu_tanh";
        out->clamps = strcmp(name, "relu") == 0;
        out->high = INFINITY;
        if (strcmp(name, "clamp") != 0)
                return true;
        out->beta = 6; // relu6
        if (call->n_args > 1 && (!clamp_bound(call, CLAMP_LOW, -INFINITY, &out->alpha) ||
                                 !clamp_bound(call, CLAMP_HIGH, INFINITY, &out->beta)))
                return false;
        out->clamps = out->alpha <= out->beta;
        out->low = out->alpha;
        out->high = out->beta;
        return true;
}

// activation, alpha, beta and residual are the last four arguments.
static int first_of_epilogue(const OpCall *call)
{
        return (int)call->n_args - 4;
}

static Status read_epilogue(const OpCall *call, Epilogue *out)
{
        int at = first_of_epilogue(call);
        const char *name = arg_text(call, at);
        for (size_t i = 0; i < ARRAY_LENGTH(activations) && name != NULL; i++) {
                if (strcmp(name, activations[i].name) != 0)
                        continue;
                PointParams params = { 0 };
                TRY(arg_double(call, at + 1, &params.of[0].f));
                TRY(arg_double(call, at + 2, &params.of[1].f));
                *out = (Epilogue){ .kernel = activations[i].kernel,
                                   .params = point_params_for(&params, PACKED_DTYPE, false) };
                return STATUS_OK;
        }
        return fail(STATUS_VALUE, "%s: unknown activation '%s'", call->schema->name,
                    name == NULL ? "None" : name);
}

static Status check_residual(const OpCall *call)
{
        const TensorMeta *residual = arg_meta(call, (int)call->n_args - 1);
        Epilogue epilogue;
        if (residual != NULL &&
            (!is_packed_type(residual) || !meta_same_shape(residual, &call->outs[0].meta)))
                return fail(STATUS_SHAPE, "%s: the residual must have dtype and shape of the result",
                            call->schema->name);
        return read_epilogue(call, &epilogue);
}

// ---- after the product ----
typedef struct Pass {
        PointAfter after;
        float *out;
        const float *residual; // same places as out; NULL: none
} Pass;

static PointAfter after_of(const Epilogue *epilogue)
{
        if (epilogue->kernel == NULL)
                return (PointAfter){ 0 };
        return (PointAfter){ point_loop(epilogue->kernel, POINT_F32), epilogue->params };
}

static void finish_piece(void *argument, int64_t begin, int64_t end)
{
        const Pass *pass = argument;
        for (int64_t i = begin; i < end; i += CHUNK) {
                int64_t n = MIN(end - i, (int64_t)CHUNK);
                float *out = pass->out + i;
                const float *residual = pass->residual == NULL ? NULL : pass->residual + i;
                for (int64_t k = 0; residual != NULL && k < n; k++)
                        out[k] += residual[k];
                if (pass->after.loop != NULL)
                        point_after(&pass->after, out, n, 1, n);
        }
}

// `adds`: the residual is still to be added.
static Status finish(const OpRun *run, const Epilogue *epilogue, bool adds)
{
        const TensorMeta *out = run->out_meta[0], *residual = adds ? run->in_meta[RESIDUAL_OPERAND] : NULL;
        int64_t n = meta_numel(out);
        Pass pass = { .after = after_of(epilogue),
                      .out = run->out[0],
                      .residual = residual == NULL ? NULL : run->in[RESIDUAL_OPERAND] };
        if (residual != NULL && !meta_same_places(out, residual)) {
                PointParams one = { .of = { { .f = 1 } } };
                PointOperand operands[] = { { .data = run->out[0], .meta = out },
                                            { .data = run->in[RESIDUAL_OPERAND], .meta = residual } };
                TRY(pointwise_run(run->ctx, &(PointCall){ &point_add, PACKED_DTYPE, &one, operands },
                                  run->out[0], out));
                pass.residual = NULL;
        }
        if (pass.residual == NULL && pass.after.loop == NULL)
                return STATUS_OK;
        return parallel_for(run->ctx, n, GRAIN, finish_piece, &pass);
}

// ---- portable ----
static Status fused_conv_infer(OpCall *call)
{
        TRY(conv_infer(call));
        return check_residual(call);
}

static Status fused_conv_run(const OpRun *run)
{
        Epilogue epilogue;
        TRY(read_epilogue(run->call, &epilogue));
        TRY(conv_op_run(run));
        return finish(run, &epilogue, true);
}

static Status fused_linear_infer(OpCall *call)
{
        TRY(linear_infer(call));
        return check_residual(call);
}

static Status fused_linear_run(const OpRun *run)
{
        Epilogue epilogue;
        TRY(read_epilogue(run->call, &epilogue));
        TRY(linear_run(run));
        return finish(run, &epilogue, true);
}

// ---- packed ----
typedef struct FusedImpl {
        PackedProduct product;
        Epilogue epilogue;
        bool finished; // by the product, if its kind finishes
} FusedImpl;

static void fused_free(void *impl)
{
        FusedImpl *fused = impl;
        packed_product_deinit(&fused->product);
        free(fused);
}

static Status fused_run(const OpRun *run)
{
        const FusedImpl *fused = run->state;
        const float *residual = run->in_meta[RESIDUAL_OPERAND] == NULL ? NULL : run->in[RESIDUAL_OPERAND];
        if (!fused->product.kind->finishes ||
            (residual != NULL && !meta_same_places(run->out_meta[0], run->in_meta[RESIDUAL_OPERAND]))) {
                TRY(packed_product_run(&fused->product, run, NULL));
                return finish(run, &fused->epilogue, true);
        }
        TRY(packed_product_run(&fused->product, run, residual));
        return fused->finished ? STATUS_OK : finish(run, &fused->epilogue, false);
}

// A residual is added first, and one of another layout is not added by the product.
static bool can_finish(const OpCall *call)
{
        const TensorMeta *residual = arg_meta(call, (int)call->n_args - 1);
        return residual == NULL || meta_same_places(&call->outs[0].meta, residual);
}

// The clamp that a product can apply itself.
static DirectClamp clamp_of(const OpCall *call, const Epilogue *epilogue)
{
        if (!can_finish(call))
                return (DirectClamp){ 0 };
        if (epilogue->kernel == &point_relu)
                return (DirectClamp){ .on = true, .high = INFINITY };
        if (epilogue->kernel == &point_clamp)
                return (DirectClamp){ .on = true,
                                      .low = (float)epilogue->params.of[0].f,
                                      .high = (float)epilogue->params.of[1].f };
        return (DirectClamp){ 0 };
}

static Status fused_pack(PackedProduct *take_product, const OpCall *call, const Epilogue *epilogue,
                         Packed *out_packed)
{
        if (take_product->kind == NULL)
                return STATUS_OK;
        FusedImpl *fused = calloc(1, sizeof(*fused));
        if (fused == NULL) {
                packed_product_deinit(take_product);
                return fail_memory();
        }
        *fused = (FusedImpl){ .product = *take_product, .epilogue = *epilogue };
        fused->finished = epilogue->kernel == NULL || clamp_of(call, epilogue).on;
        if (!fused->finished && take_product->kind->then != NULL && can_finish(call)) {
                PointAfter after = after_of(epilogue);
                take_product->kind->then(take_product->impl, &after);
                fused->finished = true;
        }
        *out_packed = (Packed){ .run = fused_run,
                                .impl = fused,
                                .free_impl = fused_free,
                                .kernel = take_product->name,
                                .scratch_bytes = take_product->scratch_bytes,
                                .baked = take_product->baked };
        return STATUS_OK;
}

static Status fused_conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        PackedProduct product;
        Epilogue epilogue;
        TRY(read_epilogue(call, &epilogue));
        DirectClamp clamp = clamp_of(call, &epilogue);
        TRY(conv_product_new(call, context, &clamp, &product));
        return fused_pack(&product, call, &epilogue, out_packed);
}

static Status fused_linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        PackedProduct product;
        Epilogue epilogue;
        TRY(read_epilogue(call, &epilogue));
        DirectClamp clamp = clamp_of(call, &epilogue);
        TRY(linear_product_new(call, context, &clamp, &product));
        return fused_pack(&product, call, &epilogue, out_packed);
}

static const ConvRow fused_conv_row = { .dilation_arg = CONV_DILATION,
                                        .groups_arg = CONV_GROUPS,
                                        .pads_each_side = true,
                                        .volumes_follow = true };
const OpDef fused_conv_ops[] = {
        { .schema = "fxserve::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
                    "SymInt[] padding, SymInt[] dilation, "
                    "SymInt groups, str "
                    "activation=\"none\", float alpha=0., float beta=0., Tensor? residual=None) -> Tensor",
          .dtypes = 1u << PACKED_DTYPE,
          .flags = OP_HIDDEN,
          .infer = fused_conv_infer,
          .run = fused_conv_run,
          .pack = fused_conv_pack,
          .cost = conv_cost,
          .row = &fused_conv_row,
          .traits = TRAIT_FRESH,
          .role = ROLE_FUSED_CONV },
        { .schema = "fxserve::linear(Tensor input, Tensor weight, Tensor? bias, str activation=\"none\", "
                    "float alpha=0., float beta=0., "
                    "Tensor? residual=None) -> Tensor",
          .dtypes = 1u << PACKED_DTYPE,
          .flags = OP_HIDDEN,
          .infer = fused_linear_infer,
          .run = fused_linear_run,
          .pack = fused_linear_pack,
          .cost = product_cost,
          .traits = TRAIT_FRESH,
          .role = ROLE_FUSED_LINEAR },
};
OP_FILE(fused_conv_ops);
