// SPDX-License-Identifier: Apache-2.0
// grid_sample.c: images and volumes sampled at given positions.
#include "core/kernels/dense.h"
#include "core/kernels/pool/grid_sample.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

static Status check_shapes(const TensorMeta *input, const TensorMeta *grid)
{
        char a[128], b[128];
        shape_text(input->rank, input->size, a, sizeof(a));
        shape_text(grid->rank, grid->size, b, sizeof(b));
        if (input->dtype != grid->dtype)
                return fail(STATUS_DTYPE,
                            "grid_sampler(): expected input and grid to have same dtype, but input has "
                            "%s and grid has %s",
                            dtype_words(input->dtype), dtype_words(grid->dtype));
        if ((input->rank != 4 && input->rank != 5) || input->rank != grid->rank)
                return fail(STATUS_SHAPE,
                            "grid_sampler(): expected 4D or 5D input and grid with same number of "
                            "dimensions, but got "
                            "input with sizes %s and grid with sizes %s",
                            a, b);
        if (input->size[0] != grid->size[0])
                return fail(
                        STATUS_SHAPE,
                        "grid_sampler(): expected grid and input to have same batch size, but got input with "
                        "sizes %s and grid with sizes %s",
                        a, b);
        if (grid->size[grid->rank - 1] != input->rank - 2)
                return fail(STATUS_SHAPE,
                            "grid_sampler(): expected grid to have size %d in last dimension, but got "
                            "grid with sizes %s",
                            input->rank - 2, b);
        for (int d = 2; d < input->rank; d++) {
                if (input->size[d] == 0)
                        return fail(STATUS_SHAPE,
                                    "grid_sampler(): expected input to have non-empty spatial dimensions, "
                                    "but input "
                                    "has sizes %s with dimension %d being empty",
                                    a, d);
        }
        if ((DTYPES_HALFS >> input->dtype & 1) != 0) // PyTorch rounds every step to the type
                return fail(STATUS_UNSUPPORTED,
                            "grid_sampler(): half types are not supported; cast to float32");
        return dtype_is_float(input->dtype)
                       ? STATUS_OK
                       : fail(STATUS_DTYPE, "\"grid_sampler_2d_cpu_kernel_impl\" not implemented for '%s'",
                              dtype_words(input->dtype));
}

static Status read_options(const OpCall *call, int rank, GridSample *out)
{
        int64_t mode, padding;
        TRY(arg_int(call, GRID_INTERPOLATION_MODE, &mode));
        TRY(arg_int(call, GRID_PADDING_MODE, &padding));
        if (mode < GRID_LINEAR || mode > GRID_CUBIC || padding < GRID_ZEROS || padding > GRID_REFLECTION)
                return fail(STATUS_VALUE,
                            "grid_sampler(): unknown interpolation_mode %ld or padding_mode %ld", (long)mode,
                            (long)padding);
        if (mode == GRID_CUBIC && rank == 5)
                return fail(STATUS_VALUE, "grid_sampler(): bicubic interpolation only supports 4D input");
        out->mode = (GridMode)mode;
        out->padding = (GridPadding)padding;
        out->corners = arg_bool(call, GRID_ALIGN_CORNERS, false);
        return STATUS_OK;
}

static Status grid_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *grid = arg_meta(call, GRID_GRID);
        GridSample task;
        TRY(check_shapes(input, grid));
        TRY(read_options(call, input->rank, &task));
        TensorMeta meta = *input;
        for (int d = 2; d < input->rank; d++)
                meta.size[d] = grid->size[d - 1];
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

static Status grid_run(const OpRun *run)
{
        const TensorMeta *input = run->in_meta[0], *grid = run->in_meta[1];
        Dtype as = dtype_compute(input->dtype);
        _cleanup_(dense_deinit) Dense image = { 0 }, positions = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&image, run->ctx, run->in[0], input, as));
        TRY(dense_init(&positions, run->ctx, run->in[1], grid, as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        GridSample task = { .dtype = as,
                            .rank = input->rank - 2,
                            .batch = input->size[0],
                            .channels = input->size[1],
                            .places = 1,
                            .size = { 1, input->size[input->rank - 2], input->size[input->rank - 1] },
                            .image = image.data,
                            .grid = positions.data,
                            .out = out.data };
        if (task.rank == 3)
                task.size[0] = input->size[2];
        for (int d = 1; d < grid->rank - 1; d++)
                task.places *= grid->size[d];
        TRY(read_options(run->call, input->rank, &task));
        TRY(grid_sample_run(run->ctx, &task));
        return dense_out_store(&out);
}

static Cost grid_cost(const OpCall *call)
{
        int64_t n = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = saturating_product(n, 8), .bytes = saturating_product(n, 20) };
}

#define GRID(name)                                                                                           \
        {                                                                                                    \
                "aten::" name "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "  \
                "align_corners) -> Tensor",                                                                  \
                        DTYPES_REAL, .infer = grid_infer, .run = grid_run, .cost = grid_cost,                \
                                     .traits = TRAIT_FRESH                                                   \
        }
const OpDef grid_sample_ops[] = {
        GRID("grid_sampler"),
        GRID("grid_sampler_2d"),
        GRID("grid_sampler_3d"),
};
OP_FILE(grid_sample_ops);
