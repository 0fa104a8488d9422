// SPDX-License-Identifier: Apache-2.0
// resample.c: upsample_nearest*, _upsample_nearest_exact*, upsample_linear1d, _bilinear2d,
// _trilinear3d and _bicubic2d, and the antialiased _upsample_bilinear2d_aa, _bicubic2d_aa and
// _lanczos2d_aa, as .vec (sizes or scale factors) and default overloads. A scale factor that was
// given also places the samples. Results keep channels_last.
#include "core/kernels/pool/resample.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/resample.h"
#include <string.h>

typedef struct ResampleRow {
        ResampleKind kind;
        int spatial;
        bool vec;
} ResampleRow;

typedef struct ResampleArgs {
        int64_t out_size[3];
        double scale[3]; // 0: not given
        bool align_corners;
} ResampleArgs;

static bool has_corners(const ResampleRow *row)
{
        return row->kind >= RESAMPLE_LINEAR;
}

static Status read_size(const OpCall *call, const ResampleRow *row, int64_t *out)
{
        int n;
        int64_t given[16];
        TRY(arg_ints(call, UPSAMPLE_OUTPUT_SIZE, 16, given, &n));
        if (n != row->spatial)
                return fail(STATUS_VALUE, "It is expected output_size equals to %d, but got size %d",
                            row->spatial, n);
        memcpy(out, given, (size_t)n * sizeof(int64_t));
        return STATUS_OK;
}

// .vec: exactly one of output_size and scale_factors.
static Status read_scales(const OpCall *call, const ResampleRow *row, int scales_arg, const int64_t *in_size,
                          ResampleArgs *args)
{
        uint32_t n = arg_list_length(call, scales_arg);
        if (n != (uint32_t)row->spatial)
                return fail(STATUS_VALUE, "%s: scale_factors must hold %d numbers, not %u",
                            call->schema->name, row->spatial, n);
        for (int i = 0; i < row->spatial; i++) {
                Value item = call->args[scales_arg].seq->items[i];
                args->scale[i] = item.kind == VALUE_FLOAT  ? item.f
                                 : item.kind == VALUE_INT  ? (double)item.i
                                 : item.kind == VALUE_BOOL ? item.b
                                                           : 0;
                double size = (double)in_size[i] * args->scale[i];
                if (!(size >= 0 && size < 9e15))
                        return fail(STATUS_VALUE, "%s: scale factor %g is out of range", call->schema->name,
                                    args->scale[i]);
                args->out_size[i] = (int64_t)size;
        }
        return STATUS_OK;
}

static Status resample_args(const OpCall *call, ResampleArgs *out)
{
        const ResampleRow *row = call->op->row;
        const TensorMeta *input = arg_meta(call, SELF);
        char text[128];
        *out = (ResampleArgs){ .align_corners =
                                       has_corners(row) && arg_bool(call, UPSAMPLE_ALIGN_CORNERS, false) };
        if (input->rank != row->spatial + 2)
                return fail(STATUS_SHAPE, "It is expected input_size equals to %d, but got size %d",
                            row->spatial + 2, input->rank);
        const int64_t *in_size = input->size + 2;
        int next = has_corners(row) ? UPSAMPLE_ALIGN_CORNERS + 1 : UPSAMPLE_OUTPUT_SIZE + 1;
        if (!row->vec) {
                TRY(read_size(call, row, out->out_size));
                for (int i = 0; i < row->spatial; i++) {
                        if (!arg_is_none(call, next + i))
                                TRY(arg_double(call, next + i, &out->scale[i]));
                }
        } else if (arg_is_none(call, UPSAMPLE_OUTPUT_SIZE) == arg_is_none(call, next)) {
                return fail(STATUS_VALUE, "Must specify exactly one of output_size and scale_factors");
        } else if (!arg_is_none(call, UPSAMPLE_OUTPUT_SIZE)) {
                TRY(read_size(call, row, out->out_size));
        } else {
                TRY(read_scales(call, row, next, in_size, out));
        }
        for (int i = 0; i < row->spatial; i++) {
                if (in_size[i] <= 0 || out->out_size[i] <= 0)
                        return fail(STATUS_SHAPE,
                                    "Input and output sizes should be greater than 0, but got input size %ld "
                                    "and output size %ld",
                                    (long)in_size[i], (long)out->out_size[i]);
        }
        if (input->size[1] == 0)
                return fail(STATUS_SHAPE, "Non-empty %dD data tensor expected but got a tensor with sizes %s",
                            input->rank, shape_text(input->rank, input->size, text, sizeof(text)));
        return STATUS_OK;
}

static Status resample_infer(OpCall *call)
{
        const ResampleRow *row = call->op->row;
        ResampleArgs args;
        TRY(resample_args(call, &args));
        TensorMeta meta = *arg_meta(call, SELF);
        memcpy(meta.size + 2, args.out_size, (size_t)row->spatial * sizeof(int64_t));
        int64_t numel;
        TRY(shape_numel(meta.rank, meta.size, &numel));
        meta_set_contiguous(&meta);
        if (meta_suggests_channels_last(arg_meta(call, SELF)))
                meta_set_channels_last(&meta);
        return out_fresh(call, 0, &meta);
}

// PyTorch takes its channels_last kernels for that layout and for small images. Its general path
// rounds other intermediates.
static bool is_packed(const OpRun *run, const ResampleRow *row, const ResampleArgs *args)
{
        const TensorMeta *input = run->in_meta[0];
        bool small = row->spatial == 2 && args->out_size[0] + args->out_size[1] <= 128;
        return row->kind != RESAMPLE_CUBIC && row->spatial > 1 &&
               (small || (input->size[1] > 3 && meta_is_channels_last(input)));
}

bool resample_reads_the_same(const OpCall *call)
{
        const ResampleRow *row = call->op->row;
        ResampleArgs args;
        if (resample_args(call, &args) != STATUS_OK)
                return false;
        for (int i = 0; i < row->spatial && row->kind == RESAMPLE_NEAREST; i++) {
                int64_t in_size = arg_meta(call, SELF)->size[2 + i], times = args.out_size[i] / in_size;
                bool whole = args.out_size[i] == times * in_size && (times == 1 || times == 2);
                if (whole && args.scale[i] != 0 && args.scale[i] != (double)times)
                        return false;
        }
        return true;
}

// The general path rounds the weights of half images to their dtype.
static Dtype weight_precision(const OpRun *run, const ResampleRow *row, bool packed, Dtype computed)
{
        Dtype dtype = run->in_meta[0]->dtype;
        bool half = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
        return half && row->kind >= RESAMPLE_LINEAR && !packed ? dtype : computed;
}

static Status set_axes(const OpRun *run, const ResampleRow *row, const ResampleArgs *args, Resample *resample,
                       Scratch *taps)
{
        int lead = 3 - row->spatial;
        int64_t total = 0;
        bool packed = is_packed(run, row, args);
        Dtype precision = weight_precision(run, row, packed, resample->dtype);
        ResampleKind kind = row->kind == RESAMPLE_NEAREST && packed ? RESAMPLE_NEAREST_PACKED : row->kind;
        for (int i = 0; i < 3; i++) {
                resample->axis[i].in_size = i < lead ? 1 : run->in_meta[0]->size[2 + i - lead];
                resample->axis[i].out_size = i < lead ? 1 : args->out_size[i - lead];
                total += resample->axis[i].out_size;
        }
        TRY(scratch_init(taps, run->ctx, total, RESAMPLE_MAX_TAPS * (sizeof(int64_t) + sizeof(double))));
        int64_t *index = taps->data;
        double *weight = (double *)taps->data + RESAMPLE_MAX_TAPS * total;
        for (int i = 0; i < 3; i++) {
                ResampleAxis *axis = &resample->axis[i];
                axis->index = index;
                axis->weight = weight;
                index += RESAMPLE_MAX_TAPS * axis->out_size;
                weight += RESAMPLE_MAX_TAPS * axis->out_size;
                TRY(resample_axis(run->ctx, axis, i < lead ? RESAMPLE_NEAREST : kind, args->align_corners,
                                  i < lead ? 0 : args->scale[i - lead], precision));
        }
        return STATUS_OK;
}

// Both sides are images with channels innermost.
static bool channels_last(const OpRun *run, Dtype as)
{
        return run->in_meta[0]->dtype == as && meta_is_channels_last(run->in_meta[0]) &&
               meta_is_channels_last(run->out_meta[0]);
}

static Status resample_last(const OpRun *run, Resample *resample)
{
        resample->planes = run->in_meta[0]->size[0];
        resample->channels = run->in_meta[0]->size[1];
        return resample_run(run->ctx, resample, run->in[0], run->out[0]);
}

// uint8 that is mixed: filters of a few taps.
static Status bytes_run(const OpRun *run, const Resample *resample, const uint8_t *in, uint8_t *out)
{
        const ResampleAxis *axes = resample->axis + 1;
        FilterPlanes planes = { .dtype = DTYPE_U8, .planes = resample->planes };
        ResampleFilter *filters[] = { &planes.height, &planes.width };
        _cleanup_(scratch_deinit) Scratch places = { 0 };
        TRY(scratch_init(&places, run->ctx, axes[0].out_size + axes[1].out_size, 2 * sizeof(int64_t)));
        int64_t *next = places.data;
        for (int i = 0; i < 2; i++) {
                *filters[i] = (ResampleFilter){ .in_size = axes[i].in_size,
                                                .out_size = axes[i].out_size,
                                                .n_taps = axes[i].n_taps,
                                                .first = next,
                                                .count = next + axes[i].out_size,
                                                .weight = axes[i].weight };
                next += 2 * axes[i].out_size;
                TRY(resample_filter_merge(run->ctx, &axes[i], filters[i]));
        }
        return resample_filter_run(run->ctx, &planes, in, out);
}

static Status resample_op_run(const OpRun *run)
{
        const ResampleRow *row = run->call->op->row;
        const TensorMeta *input = run->in_meta[0];
        ResampleArgs args;
        TRY(resample_args(run->call, &args));
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        // Samples of uint8 that are only copied are exact in float32. Otherwise they are mixed in
        // fixed point with taps in float64.
        bool bytes = input->dtype == DTYPE_U8 && row->kind >= RESAMPLE_LINEAR;
        Resample resample = { .dtype = input->dtype == DTYPE_F64 || bytes ? DTYPE_F64 : DTYPE_F32,
                              .planes = input->size[0] * input->size[1],
                              .channels = 1 };
        _cleanup_(scratch_deinit) Scratch taps = { 0 };
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(set_axes(run, row, &args, &resample, &taps));
        Dtype as = bytes ? DTYPE_U8 : resample.dtype;
        if (!bytes && channels_last(run, as))
                return resample_last(run, &resample);
        TRY(dense_init(&in, run->ctx, run->in[0], input, as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        if (bytes)
                TRY(bytes_run(run, &resample, in.data, out.data));
        else
                TRY(resample_run(run->ctx, &resample, in.data, out.data));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

// Each result takes the taps of all its axes.
static Cost resample_cost(const OpCall *call)
{
        const ResampleRow *row = call->op->row;
        const TensorMeta *in = arg_meta(call, SELF), *out = &call->outs[0].meta;
        int64_t taps = 1;
        for (int d = 0; d < row->spatial; d++)
                taps *= row->kind == RESAMPLE_LINEAR ? 2 : row->kind == RESAMPLE_CUBIC ? 4 : 1;
        return (Cost){ .flops = saturating_product(2 * taps, meta_numel(out)),
                       .bytes = (meta_numel(in) + meta_numel(out)) * dtype_info[out->dtype].bytes };
}

// ---- antialiased ----
static int64_t filter_taps(const TensorMeta *input, const ResampleRow *row, const ResampleArgs *args, int i)
{
        return resample_filter_taps(row->kind, input->size[2 + i], args->out_size[i], args->align_corners,
                                    args->scale[i]);
}

static Status set_filters(const OpRun *run, const ResampleArgs *args, FilterPlanes *planes, Scratch *scratch)
{
        const ResampleRow *row = run->call->op->row;
        const TensorMeta *input = run->in_meta[0];
        ResampleFilter *filters[] = { &planes->height, &planes->width };
        int64_t total = 0;
        for (int i = 0; i < 2; i++) {
                *filters[i] = (ResampleFilter){ .in_size = input->size[2 + i],
                                                .out_size = args->out_size[i],
                                                .n_taps = filter_taps(input, row, args, i) };
                int64_t more = saturating_product(filters[i]->out_size, filters[i]->n_taps + 2);
                total = more > INT64_MAX - total ? INT64_MAX : total + more;
        }
        TRY(scratch_init(scratch, run->ctx, total, sizeof(int64_t)));
        int64_t *next = scratch->data;
        for (int i = 0; i < 2; i++) {
                int64_t n = filters[i]->out_size;
                filters[i]->first = next;
                filters[i]->count = next + n;
                filters[i]->weight = (double *)(next + 2 * n);
                next += n * (filters[i]->n_taps + 2);
                TRY(resample_filter_axis(run->ctx, filters[i], row->kind, args->align_corners, args->scale[i],
                                         planes->dtype));
        }
        return STATUS_OK;
}

static Status antialiased_run(const OpRun *run)
{
        const TensorMeta *input = run->in_meta[0];
        ResampleArgs args;
        TRY(resample_args(run->call, &args));
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        FilterPlanes planes = { .dtype = input->dtype, .planes = input->size[0] * input->size[1] };
        _cleanup_(scratch_deinit) Scratch scratch = { 0 };
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(set_filters(run, &args, &planes, &scratch));
        TRY(dense_init(&in, run->ctx, run->in[0], input, planes.dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], planes.dtype));
        TRY(resample_filter_run(run->ctx, &planes, in.data, out.data));
        return dense_out_store(&out);
}

static Cost antialiased_cost(const OpCall *call)
{
        const ResampleRow *row = call->op->row;
        const TensorMeta *in = arg_meta(call, SELF), *out = &call->outs[0].meta;
        ResampleArgs args;
        if (resample_args(call, &args) != STATUS_OK)
                return (Cost){ 0 };
        int64_t narrow = saturating_product(in->size[0] * in->size[1] * in->size[2], out->size[3]);
        int64_t width = saturating_product(narrow, filter_taps(in, row, &args, 1));
        int64_t height = saturating_product(meta_numel(out), filter_taps(in, row, &args, 0));
        return (Cost){ .flops =
                               saturating_product(2, width > INT64_MAX - height ? INT64_MAX : width + height),
                       .bytes = (meta_numel(in) + meta_numel(out)) * dtype_info[out->dtype].bytes };
}

enum { IMAGE_DTYPES = DTYPES_FLOATS | 1u << DTYPE_U8 };
static const ResampleRow nearest_1d = { RESAMPLE_NEAREST, 1, false },
                         nearest_1d_vec = { RESAMPLE_NEAREST, 1, true },
                         nearest_2d = { RESAMPLE_NEAREST, 2, false },
                         nearest_2d_vec = { RESAMPLE_NEAREST, 2, true },
                         nearest_3d = { RESAMPLE_NEAREST, 3, false },
                         nearest_3d_vec = { RESAMPLE_NEAREST, 3, true },
                         nearest_exact_1d = { RESAMPLE_NEAREST_EXACT, 1, false },
                         nearest_exact_1d_vec = { RESAMPLE_NEAREST_EXACT, 1, true },
                         nearest_exact_3d = { RESAMPLE_NEAREST_EXACT, 3, false },
                         nearest_exact_3d_vec = { RESAMPLE_NEAREST_EXACT, 3, true },
                         nearest_exact_2d = { RESAMPLE_NEAREST_EXACT, 2, false },
                         nearest_exact_2d_vec = { RESAMPLE_NEAREST_EXACT, 2, true },
                         linear_1d = { RESAMPLE_LINEAR, 1, false },
                         linear_1d_vec = { RESAMPLE_LINEAR, 1, true },
                         linear_2d = { RESAMPLE_LINEAR, 2, false },
                         linear_2d_vec = { RESAMPLE_LINEAR, 2, true },
                         cubic_2d = { RESAMPLE_CUBIC, 2, false }, cubic_2d_vec = { RESAMPLE_CUBIC, 2, true },
                         linear_3d = { RESAMPLE_LINEAR, 3, false },
                         linear_3d_vec = { RESAMPLE_LINEAR, 3, true },
                         linear_aa = { RESAMPLE_LINEAR_AA, 2, false },
                         linear_aa_vec = { RESAMPLE_LINEAR_AA, 2, true },
                         cubic_aa = { RESAMPLE_CUBIC_AA, 2, false },
                         cubic_aa_vec = { RESAMPLE_CUBIC_AA, 2, true },
                         lanczos_aa = { RESAMPLE_LANCZOS_AA, 2, false },
                         lanczos_aa_vec = { RESAMPLE_LANCZOS_AA, 2, true };
enum { ANTIALIASED_DTYPES = 1u << DTYPE_F32 | 1u << DTYPE_F64 | 1u << DTYPE_U8 };
#define RESAMPLE(schema, dtypes, row_, traits_)                                                              \
        {                                                                                                    \
                schema, dtypes, .infer = resample_infer, .run = resample_op_run, .cost = resample_cost,      \
                                .row = &(row_), .traits = TRAIT_FRESH | (traits_), .role = ROLE_RESAMPLE     \
        }
#define ANTIALIASED(name, row_)                                                                              \
        {                                                                                                    \
                "aten::" name "(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h="    \
                "None, float? scales_w=None) -> Tensor",                                                     \
                        ANTIALIASED_DTYPES, .infer = resample_infer, .run = antialiased_run,                 \
                                            .cost = antialiased_cost, .row = &(row_), .traits = TRAIT_FRESH  \
        }
#define ANTIALIASED_VEC(name, row_)                                                                          \
        {                                                                                                    \
                "aten::" name ".vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "      \
                "scale_factors) -> Tensor",                                                                  \
                        ANTIALIASED_DTYPES, .infer = resample_infer, .run = antialiased_run,                 \
                                            .cost = antialiased_cost, .row = &(row_), .traits = TRAIT_FRESH  \
        }

const OpDef resample_ops[] = {
        ANTIALIASED("_upsample_bilinear2d_aa", linear_aa),
        ANTIALIASED_VEC("_upsample_bilinear2d_aa", linear_aa_vec),
        ANTIALIASED("_upsample_bicubic2d_aa", cubic_aa),
        ANTIALIASED_VEC("_upsample_bicubic2d_aa", cubic_aa_vec),
        ANTIALIASED("_upsample_lanczos2d_aa", lanczos_aa),
        ANTIALIASED_VEC("_upsample_lanczos2d_aa", lanczos_aa_vec),
        RESAMPLE("aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
                 IMAGE_DTYPES, nearest_1d, 0),
        RESAMPLE("aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                 "-> Tensor",
                 IMAGE_DTYPES, nearest_1d_vec, 0),
        RESAMPLE("aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                 "scales_w=None) -> Tensor",
                 IMAGE_DTYPES, nearest_2d, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                 "-> Tensor",
                 IMAGE_DTYPES, nearest_2d_vec, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                 "scales_h=None, float? "
                 "scales_w=None) -> Tensor",
                 IMAGE_DTYPES, nearest_3d, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
                 "-> Tensor",
                 IMAGE_DTYPES, nearest_3d_vec, TRAIT_LAYOUT),
        RESAMPLE("aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> "
                 "Tensor",
                 IMAGE_DTYPES, nearest_exact_1d, 0),
        RESAMPLE("aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? "
                 "scale_factors) -> Tensor",
                 IMAGE_DTYPES, nearest_exact_1d_vec, 0),
        RESAMPLE("aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, "
                 "float? scales_h=None, float? "
                 "scales_w=None) -> Tensor",
                 IMAGE_DTYPES, nearest_exact_3d, TRAIT_LAYOUT),
        RESAMPLE("aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? "
                 "scale_factors) -> Tensor",
                 IMAGE_DTYPES, nearest_exact_3d_vec, TRAIT_LAYOUT),
        RESAMPLE("aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, "
                 "float? scales_w=None) -> Tensor",
                 IMAGE_DTYPES, nearest_exact_2d, TRAIT_LAYOUT),
        RESAMPLE("aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? "
                 "scale_factors) -> Tensor",
                 IMAGE_DTYPES, nearest_exact_2d_vec, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "
                 "scales=None) -> Tensor",
                 DTYPES_FLOATS, linear_1d, 0),
        RESAMPLE("aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                 "float[]? scale_factors) -> Tensor",
                 DTYPES_FLOATS, linear_1d_vec, 0),
        RESAMPLE("aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? "
                 "scales_w=None) -> Tensor",
                 IMAGE_DTYPES, linear_2d, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                 "float[]? scale_factors) -> Tensor",
                 IMAGE_DTYPES, linear_2d_vec, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? "
                 "scales_w=None) -> Tensor",
                 IMAGE_DTYPES, cubic_2d, 0),
        RESAMPLE("aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                 "float[]? scale_factors) -> Tensor",
                 IMAGE_DTYPES, cubic_2d_vec, 0),
        RESAMPLE("aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
                 "scales_d=None, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
                 DTYPES_FLOATS, linear_3d, TRAIT_LAYOUT),
        RESAMPLE("aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
                 "float[]? scale_factors) -> Tensor",
                 DTYPES_FLOATS, linear_3d_vec, TRAIT_LAYOUT),
};
OP_FILE(resample_ops);
