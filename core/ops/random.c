// SPDX-License-Identifier: Apache-2.0
// random.c: tensors filled with random numbers, as results and in place. OP_RANDOM keeps the calls
// of a recording in authored order, none of them merged, folded or left out.
#include "core/kernels/random/draw.h"

#include <math.h>
#include <stdlib.h>
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/factory.h"

// The numbers of a row; those at an argument's position are read there.
typedef struct RandomRow {
        Draw draw;
        int8_t a_at, b_at; // 0: as in `draw`, since argument 0 is the tensor or the size
} RandomRow;

static int position_of(const OpCall *call, ArgType type)
{
        int at = 0;
        while (call->schema->args[at].type != type)
                at++;
        return at;
}

// ---- what is drawn ----
// Complex numbers are pairs of real ones.
static Dtype part_dtype(Dtype dtype)
{
        return dtype == DTYPE_C64 ? DTYPE_F32 : dtype == DTYPE_C128 ? DTYPE_F64 : dtype;
}

static Status fail_dtype(const char *kernel, Dtype dtype)
{
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", kernel, dtype_words(dtype));
}

static Status check_uniform(const Draw *draw, Dtype dtype)
{
        double most = dtype == DTYPE_F16    ? 65504
                      : dtype == DTYPE_BF16 ? 0x1.fep127
                      : dtype == DTYPE_F32  ? 0x1.fffffep127
                                            : 0x1.fffffffffffffp1023;
        if (!dtype_is_float(dtype))
                return fail_dtype("check_uniform_bounds", dtype);
        if (!(draw->a >= -most && draw->a <= most))
                return fail(STATUS_VALUE, "from is out of bounds for %s", dtype_words(dtype));
        if (!(draw->b >= -most && draw->b <= most))
                return fail(STATUS_VALUE, "to is out of bounds for %s", dtype_words(dtype));
        if (!(draw->a <= draw->b))
                return fail(STATUS_VALUE,
                            "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                            draw->a, draw->b);
        if (!(draw->b - draw->a <= most))
                return fail(STATUS_VALUE,
                            "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and "
                            "from=%g which result in to-from to exceed the limit",
                            dtype_words(dtype), draw->b, draw->a);
        return STATUS_OK;
}

static Status check_draw(const Draw *draw, Dtype dtype)
{
        if (draw->kind == DRAW_UNIFORM)
                return check_uniform(draw, dtype);
        if (!(draw->b >= 0))
                return fail(STATUS_VALUE, "normal expects std >= 0.0, but found std %g", draw->b);
        return dtype_is_float(dtype) ? STATUS_OK : fail_dtype("normal_kernel_cpu", dtype);
}

static Status draw_of(const OpCall *call, Draw *out)
{
        const RandomRow *row = call->op->row;
        *out = row->draw;
        if (row->a_at > 0)
                TRY(arg_double(call, row->a_at, &out->a));
        if (row->b_at > 0)
                TRY(arg_double(call, row->b_at, &out->b));
        return STATUS_OK;
}

static Status draw_prepare(const OpCall *call, void *out_state)
{
        return draw_of(call, out_state);
}

// Complex tensors as real ones of one more dimension.
static TensorMeta parts_of(const TensorMeta *meta)
{
        TensorMeta parts = *meta;
        if (dtype_info[meta->dtype].kind != DTYPE_KIND_COMPLEX)
                return parts;
        parts.dtype = part_dtype(meta->dtype);
        for (int d = 0; d < meta->rank; d++)
                parts.stride[d] = 2 * meta->stride[d];
        parts.size[parts.rank] = 2;
        parts.stride[parts.rank++] = 1;
        return parts;
}

static Status draw_run(const OpRun *run)
{
        TensorMeta parts = parts_of(run->out_meta[0]);
        Draw draw = *(const Draw *)run->state;
        // Both parts of a normal number are normal, each with half the variance.
        if (parts.dtype != run->out_meta[0]->dtype && draw.kind == DRAW_NORMAL)
                draw.b /= sqrt(2);
        return draw_fill(run->ctx, &draw, &parts, run->out[0]);
}

static Cost draw_cost(const OpCall *call)
{
        const RandomRow *row = call->op->row;
        const TensorMeta *meta = &call->outs[0].meta;
        const int64_t numel = meta_numel(meta);
        return (Cost){ .flops = numel * draw_steps(row->draw.kind),
                       .bytes = numel * dtype_info[meta->dtype].bytes };
}

// ---- shapes ----
static Status check_call(const OpCall *call)
{
        Draw draw;
        if (call->outs[0].meta.rank == MAX_RANK &&
            dtype_info[call->outs[0].meta.dtype].kind == DTYPE_KIND_COMPLEX)
                return fail(STATUS_UNSUPPORTED, "%s: complex tensors of %d dimensions are not supported",
                            call->schema->name, MAX_RANK);
        TRY(draw_of(call, &draw));
        return check_draw(&draw, part_dtype(call->outs[0].meta.dtype));
}

static Status sized_infer(OpCall *call)
{
        int size_at = 0;
        while (!call->schema->args[size_at].is_list)
                size_at++;
        TRY(factory_sized(call, size_at, arg_dtype(call, position_of(call, ARG_DTYPE), DTYPE_F32)));
        return check_call(call);
}

static Status like_infer(OpCall *call)
{
        TRY(factory_like(
                call, arg_dtype(call, position_of(call, ARG_DTYPE), arg_meta(call, SELF)->dtype),
                arg_memory_format(call, position_of(call, ARG_MEMORY_FORMAT), MEMORY_FORMAT_PRESERVE)));
        return check_call(call);
}

#define OPTIONS "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define RANDOM(schema_, infer_, ...)                                                                         \
        {                                                                                                    \
                .schema = "aten::" schema_ " -> Tensor", .flags = OP_RANDOM, .infer = infer_,                \
                .prepare = draw_prepare, .run = draw_run, .cost = draw_cost, .traits = TRAIT_FRESH,          \
                .row = &(const RandomRow)                                                                    \
                {                                                                                            \
                        __VA_ARGS__                                                                          \
                }                                                                                            \
        }
#define UNIFORM .draw = { .kind = DRAW_UNIFORM, .a = 0, .b = 1 }
#define NORMAL  .draw = { .kind = DRAW_NORMAL, .a = 0, .b = 1 }

const OpDef random_ops[] = {
        RANDOM("rand(SymInt[] size, " OPTIONS ")", sized_infer, UNIFORM),
        RANDOM("randn(SymInt[] size, " OPTIONS ")", sized_infer, NORMAL),
        RANDOM("rand_like(Tensor self, " OPTIONS ", MemoryFormat? memory_format=None)", like_infer, UNIFORM),
        RANDOM("randn_like(Tensor self, " OPTIONS ", MemoryFormat? memory_format=None)", like_infer, NORMAL),
};
OP_FILE(random_ops);
