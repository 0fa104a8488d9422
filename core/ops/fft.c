// SPDX-License-Identifier: Apache-2.0
// fft.c: the three Fourier transforms that all others are made of: complex to complex, real to
// complex, complex to real. Several dimensions are transformed one after the other.
#include "core/kernels/fft/fft.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/fft.h"
#include "core/ops/op.h"
#include "core/ops/view.h"

typedef struct FftCall {
        int n_dims, dim[MAX_RANK];
        double scale;
        bool forward;
        int64_t last_size; // of the last dimension in real numbers
} FftCall;

// ---- layouts ----
static void sort_by_stride(const TensorMeta *meta, int n, int *dims)
{
        for (int i = 1; i < n; i++) {
                for (int k = i; k > 0 && meta->stride[dims[k - 1]] < meta->stride[dims[k]]; k--) {
                        int swap = dims[k];
                        dims[k] = dims[k - 1];
                        dims[k - 1] = swap;
                }
        }
}

// PyTorch transforms a copy with the transformed dimensions innermost and the others in the order
// of their strides; the result keeps that order in memory.
static void set_strides(const TensorMeta *self, int n, const int *dims, TensorMeta *out)
{
        int order[MAX_RANK], n_batch = 0;
        for (int d = 0; d < self->rank; d++) {
                bool transformed = false;
                for (int i = 0; i < n; i++)
                        transformed |= dims[i] == d;
                if (!transformed)
                        order[n_batch++] = d;
        }
        sort_by_stride(self, n_batch, order);
        memcpy(order + n_batch, dims, (size_t)n * sizeof(*dims));
        int64_t stride = 1;
        for (int i = self->rank - 1; i >= 0; i--) {
                out->stride[order[i]] = stride;
                stride *= MAX(out->size[order[i]], 1);
        }
}

// ---- reading ----
static Status read_dims(const OpCall *call, FftCall *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t dims[MAX_RANK];
        TRY(arg_ints(call, FFT_DIM, MAX_RANK, dims, &out->n_dims));
        uint32_t seen = 0;
        for (int i = 0; i < out->n_dims; i++) {
                TRY(dim_wrap(dims[i], self->rank, &out->dim[i]));
                if (self->rank == 0 || (seen >> out->dim[i] & 1) != 0)
                        return fail(STATUS_VALUE, "FFT dims must be unique");
                seen |= 1u << out->dim[i];
        }
        return STATUS_OK;
}

static Status read_scale(const OpCall *call, double n, double *out)
{
        int64_t mode;
        TRY(arg_int(call, FFT_NORMALIZATION, &mode));
        if (mode < FFT_NORM_NONE || mode > FFT_NORM_BY_N)
                return fail(STATUS_VALUE, "%s: normalization is %" PRId64 ", which is none of 0, 1, 2",
                            call->schema->name, mode);
        *out = mode == FFT_NORM_NONE ? 1 : 1 / (mode == FFT_NORM_BY_ROOT_N ? sqrt(n) : n);
        return STATUS_OK;
}

static double signal_size(const FftCall *fft, const TensorMeta *meta)
{
        double n = 1;
        for (int i = 0; i < fft->n_dims; i++)
                n *= (double)meta->size[fft->dim[i]];
        return n;
}

static Status check_points(const OpCall *call, const FftCall *fft, const TensorMeta *meta)
{
        for (int i = 0; i < fft->n_dims; i++) {
                if (meta->size[fft->dim[i]] < 1)
                        return fail(STATUS_SHAPE, "%s: dimension %d has no points", call->schema->name,
                                    fft->dim[i]);
        }
        return STATUS_OK;
}

static Cost fft_cost(const OpCall *call)
{
        FftCall fft;
        const TensorMeta *self = arg_meta(call, SELF), *out = &call->outs[0].meta;
        int64_t flops = 0, n = MAX(meta_numel(self), meta_numel(out));
        if (read_dims(call, &fft) != STATUS_OK)
                return (Cost){ 0 };
        for (int i = 0; i < fft.n_dims; i++) {
                int64_t points = MAX(self->size[fft.dim[i]], out->size[fft.dim[i]]);
                int64_t part = saturating_product(fft_flops(MAX(points, 1)), n / MAX(points, 1));
                flops = flops > INT64_MAX - part ? INT64_MAX : flops + part;
        }
        return (Cost){ .flops = flops, .bytes = saturating_product(32, n) };
}

// ---- complex to complex ----
static Status c2c_read(const OpCall *call, FftCall *out)
{
        *out = (FftCall){ .forward = arg_bool(call, FFT_C2C_FORWARD, true) };
        TRY(read_dims(call, out));
        const TensorMeta *self = arg_meta(call, SELF);
        TRY(check_points(call, out, self));
        return read_scale(call, signal_size(out, self), &out->scale);
}

static Status c2c_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        FftCall fft;
        TRY(c2c_read(call, &fft));
        TensorMeta meta = *self;
        if (fft.n_dims == 0) {
                TRY(view_set_strides(&meta, MEMORY_FORMAT_PRESERVE, self));
        } else {
                sort_by_stride(self, fft.n_dims, fft.dim);
                set_strides(self, fft.n_dims, fft.dim, &meta);
        }
        return out_fresh(call, 0, &meta);
}

static Status c2c_prepare(const OpCall *call, void *out_state)
{
        return c2c_read(call, out_state);
}

typedef struct Part { // a tensor
        const TensorMeta *meta;
        void *data;
} Part;

// The first transform reads `in`, the others what it left in `out`.
static Status c2c_lines(const RunContext *ctx, const FftCall *fft, int n_dims, Part in, Part out)
{
        for (int i = n_dims - 1; i >= 0; i--) {
                bool first = i == n_dims - 1;
                FftLines lines = { .in = first ? in.meta : out.meta,
                                   .out = out.meta,
                                   .dim = fft->dim[i],
                                   .n = out.meta->size[fft->dim[i]],
                                   .forward = fft->forward,
                                   .scale = first ? fft->scale : 1 };
                TRY(fft_lines_run(ctx, &lines, first ? in.data : out.data, out.data));
        }
        return STATUS_OK;
}

static Part part_in(const OpRun *run)
{
        Part part = { .meta = run->in_meta[0] };
        memcpy(&part.data, &run->in[0], sizeof(part.data)); // only read
        return part;
}

static Part part_out(const OpRun *run)
{
        return (Part){ run->out_meta[0], run->out[0] };
}

static Status c2c_run(const OpRun *run)
{
        const FftCall *fft = run->state;
        if (fft->n_dims > 0)
                return c2c_lines(run->ctx, fft, fft->n_dims, part_in(run), part_out(run));
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        return copy_region(run->ctx, &from, &to);
}

// ---- real to complex ----
static Status r2c_read(const OpCall *call, FftCall *out)
{
        *out = (FftCall){ .forward = true };
        TRY(read_dims(call, out));
        const TensorMeta *self = arg_meta(call, SELF);
        if (out->n_dims == 0)
                return fail(STATUS_VALUE, "_fft_r2c: at least one dimension must be transformed");
        TRY(check_points(call, out, self));
        out->last_size = self->size[out->dim[out->n_dims - 1]];
        return read_scale(call, signal_size(out, self), &out->scale);
}

static Status r2c_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        FftCall fft;
        TRY(r2c_read(call, &fft));
        TensorMeta meta = *self;
        int last = fft.dim[fft.n_dims - 1];
        meta.dtype = self->dtype == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128;
        if (arg_bool(call, FFT_R2C_ONESIDED, true))
                meta.size[last] = meta.size[last] / 2 + 1;
        sort_by_stride(self, fft.n_dims - 1, fft.dim);
        set_strides(self, fft.n_dims, fft.dim, &meta);
        return out_fresh(call, 0, &meta);
}

static Status r2c_prepare(const OpCall *call, void *out_state)
{
        return r2c_read(call, out_state);
}

static Status r2c_run(const OpRun *run)
{
        const FftCall *fft = run->state;
        const TensorMeta *out = run->out_meta[0];
        FftLines lines = { .in = run->in_meta[0],
                           .out = out,
                           .dim = fft->dim[fft->n_dims - 1],
                           .n = fft->last_size,
                           .forward = true,
                           .scale = fft->scale };
        TRY(fft_lines_run(run->ctx, &lines, run->in[0], run->out[0]));
        FftCall others = *fft;
        others.scale = 1;
        return c2c_lines(run->ctx, &others, fft->n_dims - 1, part_out(run), part_out(run));
}

// ---- complex to real ----
static Status c2r_read(const OpCall *call, FftCall *out)
{
        *out = (FftCall){ .forward = false };
        TRY(read_dims(call, out));
        const TensorMeta *self = arg_meta(call, SELF);
        if (out->n_dims == 0)
                return fail(STATUS_VALUE, "_fft_c2r: at least one dimension must be transformed");
        TRY(check_points(call, out, self));
        TRY(arg_int(call, FFT_C2R_LAST_SIZE, &out->last_size));
        int last = out->dim[out->n_dims - 1];
        if (out->last_size < 1 || self->size[last] != out->last_size / 2 + 1)
                return fail(STATUS_SHAPE,
                            "_fft_c2r: %" PRId64 " real points are made of %" PRId64
                            " complex ones, but dimension %d has %" PRId64,
                            out->last_size, out->last_size / 2 + 1, last, self->size[last]);
        double n = signal_size(out, self) / (double)self->size[last] * (double)out->last_size;
        return read_scale(call, n, &out->scale);
}

// The layout between: of the complex transforms over all but the last dimension.
static void c2r_between(const TensorMeta *self, FftCall *fft, TensorMeta *out)
{
        *out = *self;
        if (fft->n_dims == 1)
                return;
        sort_by_stride(self, fft->n_dims - 1, fft->dim);
        set_strides(self, fft->n_dims - 1, fft->dim, out);
}

static Status c2r_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        FftCall fft;
        TensorMeta between;
        TRY(c2r_read(call, &fft));
        c2r_between(self, &fft, &between);
        TensorMeta meta = between;
        meta.dtype = self->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
        meta.size[fft.dim[fft.n_dims - 1]] = fft.last_size;
        set_strides(&between, 1, &fft.dim[fft.n_dims - 1], &meta);
        return out_fresh(call, 0, &meta);
}

static Status c2r_prepare(const OpCall *call, void *out_state)
{
        return c2r_read(call, out_state);
}

static Status c2r_last(const RunContext *ctx, const FftCall *fft, const TensorMeta *in_meta, const void *in,
                       const OpRun *run)
{
        FftLines lines = { .in = in_meta,
                           .out = run->out_meta[0],
                           .dim = fft->dim[fft->n_dims - 1],
                           .n = fft->last_size,
                           .forward = false,
                           .scale = fft->scale };
        return fft_lines_run(ctx, &lines, in, run->out[0]);
}

static Status c2r_run(const OpRun *run)
{
        FftCall fft = *(const FftCall *)run->state, others = fft;
        if (fft.n_dims == 1)
                return c2r_last(run->ctx, &fft, run->in_meta[0], run->in[0], run);
        TensorMeta between;
        Scratch scratch = { 0 };
        c2r_between(run->in_meta[0], &others, &between);
        others.scale = 1;
        TRY(scratch_init(&scratch, run->ctx, meta_numel(&between), dtype_info[between.dtype].bytes));
        Status status =
                c2c_lines(run->ctx, &others, fft.n_dims - 1, part_in(run), (Part){ &between, scratch.data });
        if (status == STATUS_OK)
                status = c2r_last(run->ctx, &fft, &between, scratch.data, run);
        scratch_deinit(&scratch);
        return status;
}

#define FFT(schema_, dtypes_, name)                                                                          \
        {                                                                                                    \
                .schema = "aten::" schema_, .dtypes = dtypes_, .infer = name##_infer,                        \
                .prepare = name##_prepare, .run = name##_run, .cost = fft_cost, .traits = TRAIT_FRESH        \
        }
const OpDef fft_ops[] = {
        FFT("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", DTYPES_COMPLEX,
            c2c),
        FFT("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
            DTYPE_BIT(DTYPE_F32) | DTYPE_BIT(DTYPE_F64), r2c),
        FFT("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
            DTYPES_COMPLEX, c2r),
};
OP_FILE(fft_ops);
