// SPDX-License-Identifier: Apache-2.0
// pool_last.c: pooling of channels_last images. A window is a handful of pixels, each a run of
// channels, so that the inner loop is a vector loop; the order of additions is that of pool.c (down
// the rows of a column, then along the columns), and so are the bits.
#include <math.h>
#include <string.h>
#include "core/kernels/pool/pool.h"

typedef struct Row {
        const PoolAxis *columns;
        int64_t low, high, step;                  // rows of the window: floats from a plane
        int64_t front, back, plane_step;          // its planes: floats from `image`
        int64_t n_rows, channels, count, divisor; // n_rows: of all planes
        const float *image;
        float *out;
        Work *work;
} Row;

// Elements of window `o` in one channel.
static inline int64_t window_steps(const Row *row, int64_t o)
{
        return (row->columns->high[o] - row->columns->low[o]) * row->n_rows;
}

typedef void RowKernel(const Row *row);

#define LAST_TARGET
#define LAST_LANES 4
#define LAST(x)    plain_##x
#define LAST_LARGER(best, value)                                                                             \
        __extension__({                                                                                      \
                plain_Lane best_ = (best), value_ = (value);                                                 \
                plain_Choice take_ = (value_ > best_) | (value_ != value_);                                  \
                (plain_Lane)((take_ & (plain_Choice)value_) | (~take_ & (plain_Choice)best_));               \
        })
#include "core/kernels/pool/pool_last.inc"
#undef LAST_TARGET
#undef LAST_LANES
#undef LAST
#undef LAST_LARGER
#if defined(__x86_64__)
#include <immintrin.h>
// max(value, best) is best where either is NaN.
#define LAST_TARGET TARGET_AVX2
#define LAST_LANES  8
#define LAST(x)     avx2_##x
#define LAST_LARGER(best, value)                                                                             \
        __extension__({                                                                                      \
                __m256 value_ = (value);                                                                     \
                _mm256_blendv_ps(_mm256_max_ps(value_, (best)), value_,                                      \
                                 _mm256_cmp_ps(value_, value_, _CMP_UNORD_Q));                               \
        })
#include "core/kernels/pool/pool_last.inc"
#undef LAST_TARGET
#undef LAST_LANES
#undef LAST
#undef LAST_LARGER
#define LAST_TARGET TARGET_AVX512
#define LAST_LANES  16
#define LAST(x)     avx512_##x
#define LAST_LARGER(best, value)                                                                             \
        __extension__({                                                                                      \
                __m512 value_ = (value);                                                                     \
                _mm512_mask_mov_ps(_mm512_max_ps(value_, (best)),                                            \
                                   _mm512_cmp_ps_mask(value_, value_, _CMP_UNORD_Q), value_);                \
        })
#include "core/kernels/pool/pool_last.inc"
#endif

// ---- bytes ----
typedef struct ByteRun {
        const RunContext *ctx;
        const Pool *pool;
        int64_t channels;
        const uint8_t *in;
        uint8_t *out;
        // out[c] = max(out[c], from[c])
        void (*larger)(const void *from, int64_t n, void *out);
        uint8_t lowest;
} ByteRun;

#define LARGER_BYTES(name, type, target)                                                                     \
        target static void name(const void *from, int64_t n, void *out)                                      \
        {                                                                                                    \
                const type *restrict value = from;                                                           \
                type *restrict best = out;                                                                   \
                for (int64_t c = 0; c < n; c++)                                                              \
                        best[c] = value[c] > best[c] ? value[c] : best[c];                                   \
        }
LARGER_BYTES(plain_larger_signed, int8_t, )
LARGER_BYTES(plain_larger_unsigned, uint8_t, )
#if defined(__x86_64__)
LARGER_BYTES(avx2_larger_signed, int8_t, TARGET_AVX2)
LARGER_BYTES(avx2_larger_unsigned, uint8_t, TARGET_AVX2)
#endif

static void byte_rows(void *argument, int64_t begin, int64_t end)
{
        const ByteRun *run = argument;
        const PoolAxis *rows = &run->pool->axis[1], *columns = &run->pool->axis[2];
        int64_t channels = run->channels, row_step = columns->in_size * channels;
        Work work = { .ctx = run->ctx };
        for (int64_t r = begin; r < end; r++) {
                int64_t o = r % rows->out_size;
                const uint8_t *image = run->in + r / rows->out_size * rows->in_size * row_step;
                uint8_t *out = run->out + r * columns->out_size * channels;
                for (int64_t i = 0; i < columns->out_size; i++, out += channels) {
                        memset(out, run->lowest, (size_t)channels);
                        for (int64_t y = rows->low[o]; y < rows->high[o]; y += rows->step)
                                for (int64_t x = columns->low[i]; x < columns->high[i]; x += columns->step) {
                                        if (work_stops(&work, 2 + channels / 16))
                                                return;
                                        run->larger(image + y * row_step + x * channels, channels, out);
                                }
                }
        }
}

Status pool_bytes_channels_last(const RunContext *ctx, const Pool *pool, bool is_signed, int64_t channels,
                                const void *in, void *out)
{
        ByteRun run = { .ctx = ctx,
                        .pool = pool,
                        .channels = channels,
                        .in = in,
                        .out = out,
                        .larger = is_signed ? plain_larger_signed : plain_larger_unsigned,
                        .lowest = is_signed ? (uint8_t)INT8_MIN : 0 };
#if defined(__x86_64__)
        if (isa_level() >= ISA_AVX2)
                run.larger = is_signed ? avx2_larger_signed : avx2_larger_unsigned;
#endif
        int64_t n_rows = pool->planes / channels * pool->axis[1].out_size,
                work = pool->axis[2].in_size * channels;
        TRY(parallel_for(ctx, n_rows, MAX((int64_t)1, 200000 / MAX(work, (int64_t)1)), byte_rows, &run));
        return run_poll(ctx);
}

// ---- floats ----
typedef struct RowKernels {
        RowKernel *max, *average;
} RowKernels;

static const RowKernels plain_rows = { plain_max_row, plain_average_row };
#if defined(__x86_64__)
static const RowKernels avx2_rows = { avx2_max_row, avx2_average_row },
                        avx512_rows = { avx512_max_row, avx512_average_row };
#endif
static const KernelVariant pool_last_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &plain_rows },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &avx2_rows },
        { DTYPE_F32, ISA_AVX512, &avx512_rows },
#endif
};
const KernelFamily pool_last_family = { "pool_last", ARRAY_LENGTH(pool_last_variants), pool_last_variants };

typedef struct LastRun {
        const RunContext *ctx;
        const Pool *pool;
        int64_t channels;
        RowKernel *kernel;
        const float *in;
        float *out;
} LastRun;

// begin..end: rows of results, of all images.
static void last_rows(void *argument, int64_t begin, int64_t end)
{
        const LastRun *run = argument;
        const PoolAxis *planes = run->pool->axis, *rows = planes + 1, *columns = planes + 2;
        int64_t channels = run->channels, row_step = columns->in_size * channels,
                plane_step = rows->in_size * row_step;
        Work work = { .ctx = run->ctx };
        Row row = { .work = &work,
                    .columns = columns,
                    .step = rows->step * row_step,
                    .plane_step = planes->step * plane_step,
                    .channels = channels,
                    .divisor = run->pool->divisor };
        for (int64_t r = begin; r < end && !work.stops; r++) {
                int64_t y = r % rows->out_size, plane = r / rows->out_size, z = plane % planes->out_size;
                row.image = run->in + plane / planes->out_size * planes->in_size * plane_step;
                row.front = planes->low[z] * plane_step;
                row.back = planes->high[z] * plane_step;
                row.low = rows->low[y] * row_step;
                row.high = rows->high[y] * row_step;
                row.n_rows = (planes->high[z] - planes->low[z]) * (rows->high[y] - rows->low[y]);
                row.count = rows->count[y];
                row.out = run->out + r * columns->out_size * channels;
                run->kernel(&row);
        }
}

Status pool_channels_last(const RunContext *ctx, const Pool *pool, bool average, int64_t channels,
                          const float *in, float *out)
{
        const RowKernels *kernels = kernel_variant(&pool_last_family, DTYPE_F32);
        LastRun run = { .ctx = ctx,
                        .pool = pool,
                        .channels = channels,
                        .kernel = average ? kernels->average : kernels->max,
                        .in = in,
                        .out = out };
        int64_t n_rows = pool->planes / channels * pool->axis[0].out_size * pool->axis[1].out_size;
        int64_t work = pool->axis[2].in_size * channels;
        TRY(parallel_for(ctx, n_rows, MAX((int64_t)1, 50000 / MAX(work, (int64_t)1)), last_rows, &run));
        return run_poll(ctx);
}
