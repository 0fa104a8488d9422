// SPDX-License-Identifier: Apache-2.0
// fft.c: Stockham's algorithm. For a length with the factors p1 p2 ... there is one stage per
// factor; each goes from one buffer to another and leaves its results in order. Several lines go
// through the stages side by side, one in each lane of a vector. A length with a factor above
// FFT_LARGEST_FACTOR is Bluestein's: the transform is a convolution with a chirp, done by
// transforms of a longer length with small factors. Only forward transforms are computed; the
// backward one exchanges real and imaginary parts of what goes in and what comes out.
#include "core/kernels/fft/fft.h"

#include <string.h>
#include "core/kernels/fft/task.h"
#include "core/kernels/turn.h"

// FFT_BLOCK: columns between polls. FFT_PAD: numbers between planes, so that they do not meet in
// the same lines of the cache. WIDE_BYTES: of buffers that stay in the cache.
enum { FFT_BLOCK = 4096, FFT_PAD = 80, WIDE_BYTES = 2 << 20, BESIDE_BYTES = 32 << 20 };

#define FFT_TARGET
#define FFT_BYTES 16
#define FFT(x)    x##_plain
#include "core/kernels/fft/stages.inc"
#include "core/kernels/fft/lines.inc"
#if defined(__x86_64__)
#undef FFT_TARGET
#undef FFT_BYTES
#undef FFT
#define FFT_TARGET TARGET_AVX2
#define FFT_BYTES  32
#define FFT(x)     x##_avx2
#include "core/kernels/fft/stages.inc"
#include "core/kernels/fft/lines.inc"
#undef FFT_TARGET
#undef FFT_BYTES
#undef FFT
#define FFT_TARGET TARGET_AVX512
#define FFT_BYTES  64
#define FFT(x)     x##_avx512
#include "core/kernels/fft/stages.inc"
#include "core/kernels/fft/lines.inc"
#endif

static const KernelVariant fft_variants[] = {
        { DTYPE_F64, ISA_PORTABLE, &kernels_plain },
#if defined(__x86_64__)
        { DTYPE_F64, ISA_AVX2, &kernels_avx2 },
        { DTYPE_F64, ISA_AVX512, &kernels_avx512 },
#endif
};
const KernelFamily fft_family = { "fft", ARRAY_LENGTH(fft_variants), fft_variants };

// ---- where lines lie ----
void fft_place(const FftTask *task, int64_t group, FftPlace *out)
{
        const int64_t first = group * task->lanes;
        const int64_t item = dtype_info[task->lines->in->dtype].bytes,
                      out_item = dtype_info[task->lines->out->dtype].bytes;
        out->count = (int)MIN(task->n_lines - first, (int64_t)task->lanes);
        out->in_beside = out->out_beside = out->count == task->lanes;
        for (int l = 0; l < task->lanes; l++) {
                int64_t rest = l < out->count ? first + l : first, in = 0, at = 0;
                for (int d = task->rank - 1; d >= 0; d--) {
                        in += rest % task->size[d] * task->in_bytes[d];
                        at += rest % task->size[d] * task->out_bytes[d];
                        rest /= task->size[d];
                }
                out->in[l] = task->in + in;
                out->out[l] = task->out + at;
                out->in_beside &= out->in[l] == out->in[0] + l * item;
                out->out_beside &= out->out[l] == out->out[0] + l * out_item;
        }
}

static FftView view_of(const TensorMeta *meta, int dim, bool half)
{
        const bool is_complex = meta->dtype == DTYPE_C64 || meta->dtype == DTYPE_C128;
        const int64_t stride = meta->stride[dim];
        return (FftView){ .single = meta->dtype == DTYPE_F32 || meta->dtype == DTYPE_C64,
                          .step = is_complex || half ? 2 * stride : stride,
                          .im = is_complex ? 1
                                : half     ? stride
                                           : 0,
                          .beside = is_complex ? 2 : 1 };
}

// The other dimensions, those with the longest strides first: neighbouring lines come together.
static void place_dims(FftTask *task)
{
        const TensorMeta *in = task->lines->in, *out = task->lines->out;
        task->n_lines = 1;
        for (int d = 0; d < in->rank; d++) {
                if (d == task->lines->dim || in->size[d] == 1)
                        continue;
                int64_t in_bytes = in->stride[d] * dtype_info[in->dtype].bytes,
                        out_bytes = out->stride[d] * dtype_info[out->dtype].bytes;
                int at = task->rank++;
                for (; at > 0 && task->in_bytes[at - 1] < in_bytes; at--) {
                        task->size[at] = task->size[at - 1];
                        task->in_bytes[at] = task->in_bytes[at - 1];
                        task->out_bytes[at] = task->out_bytes[at - 1];
                }
                task->size[at] = in->size[d];
                task->in_bytes[at] = in_bytes;
                task->out_bytes[at] = out_bytes;
                task->n_lines *= in->size[d];
        }
}

// As many as the kernels have, unless buffers would leave the cache, or there is one line. Lines
// that lie side by side are read together anyway.
static int lanes_of(const FftTask *task, const FftKernels *kernels)
{
        int64_t bytes = saturating_product(task->rows, 4 * kernels->lanes * (int64_t)sizeof(double));
        bool beside =
                task->rank > 0 && task->in_bytes[task->rank - 1] <= dtype_info[task->lines->in->dtype].bytes;
        return task->n_lines == 1 || bytes > (beside ? BESIDE_BYTES : WIDE_BYTES) ? 1 : kernels->lanes;
}

static bool is_real(const TensorMeta *meta)
{
        return meta->dtype == DTYPE_F32 || meta->dtype == DTYPE_F64;
}

// ---- a run ----
static Status make_plan(const RunContext *ctx, FftPlan *plan, Scratch *tables)
{
        Work work = { .ctx = ctx };
        Scratch planes = { 0 };
        const FftKernels *kernels = kernel_variant(&fft_family, DTYPE_F64);
        TRY(scratch_init(tables, ctx, fft_plan_numbers(plan), sizeof(ComplexF64)));
        fft_plan_fill(plan, tables->data, &work);
        if (plan->is_chirp && !work.stops) {
                TRY(scratch_init(&planes, ctx, plan->length, 4 * sizeof(double)));
                kernels->respond(&work, plan, planes.data);
                scratch_deinit(&planes);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static Status run_lines(FftTask *task)
{
        const FftPlan *plan = task->plan;
        const FftLines *lines = task->lines;
        const FftKernels *kernels = kernel_variant(&fft_family, DTYPE_F64);
        task->from_real = is_real(lines->in);
        task->to_real = is_real(lines->out);
        task->from = view_of(lines->in, lines->dim, plan->half);
        task->to = view_of(lines->out, lines->dim, plan->half);
        task->rows = MAX(plan->length, plan->half ? plan->n / 2 + 1 : plan->n);
        task->rows = MAX(task->rows, task->to_real ? 0 : lines->out->size[lines->dim]);
        place_dims(task);
        task->lanes = lanes_of(task, kernels);
        int64_t n_groups = (task->n_lines + task->lanes - 1) / task->lanes,
                least = MAX(65536 / (task->rows * task->lanes), (int64_t)1);
        TRY(parallel_for(task->ctx, n_groups, run_share(task->ctx, n_groups, least), kernels->run, task));
        if (task->failed)
                return fail(STATUS_TOO_LARGE, "a Fourier transform has no working memory left; send smaller "
                                              "inputs or start the server with a larger --max-run-memory");
        return run_poll(task->ctx);
}

Status fft_lines_run(const RunContext *ctx, const FftLines *lines, const void *in, void *out)
{
        if (meta_numel(lines->out) == 0)
                return STATUS_OK;
        FftPlan plan;
        Scratch tables = { 0 };
        FftTask task = { .ctx = ctx, .lines = lines, .plan = &plan, .in = in, .out = out };
        TRY(fft_plan_init(&plan, lines->n, is_real(lines->in) || is_real(lines->out)));
        Status status = make_plan(ctx, &plan, &tables);
        if (status == STATUS_OK)
                status = run_lines(&task);
        scratch_deinit(&tables);
        return status;
}
