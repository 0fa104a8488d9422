// SPDX-License-Identifier: Apache-2.0
// fft.c: Stockham's algorithm. For a length with the factors p1 p2 ... there is one stage per
// factor; each goes from one buffer to another and leaves its results in order. A length with a
// factor above LARGEST_FACTOR is Bluestein's: the transform is a convolution with a chirp, done by
// transforms of a longer length with small factors. Only forward transforms are computed; the
// backward one conjugates what goes in and what comes out.
#include "core/kernels/fft/fft.h"

#include <math.h>
#include "core/kernels/dense.h"
#include "core/tensor/convert.h"

enum { MAX_STAGES = 64, LARGEST_FACTOR = 61, BLOCK = 4096 };

typedef struct Stages { // of one length
        int64_t n;
        int count, factor[MAX_STAGES];
        ComplexF64 *roots; // n: exp(-2 pi i k / n)
} Stages;

typedef struct Fft {
        Stages stages; // of n, or of the chirp's length
        int64_t n;
        ComplexF64 *line, *buffer; // stages.n each: a transform goes back and forth between them
        ComplexF64 *chirp;         // n: exp(-pi i k^2 / n); NULL: not Bluestein's
        ComplexF64 *response;      // stages.n: the transformed conjugate chirp
} Fft;

static inline ComplexF64 times(ComplexF64 x, ComplexF64 y)
{
        return (ComplexF64){ x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re };
}

// ---- lengths ----
// false: a factor is too large for a stage.
static bool find_factors(int64_t n, Stages *stages)
{
        stages->n = n;
        stages->count = 0;
        for (; n % 4 == 0; n /= 4)
                stages->factor[stages->count++] = 4;
        for (int p = 2; n > 1 && p <= LARGEST_FACTOR; p++) {
                for (; n % p == 0; n /= p)
                        stages->factor[stages->count++] = p;
        }
        return n == 1;
}

// The least length from `least` on whose factors are 2, 3 and 5.
static int64_t smooth_length(int64_t least)
{
        int64_t best = INT64_MAX;
        for (int64_t fives = 1; fives < 5 * least; fives *= 5) {
                for (int64_t threes = fives; threes < 3 * least; threes *= 3) {
                        int64_t n = threes;
                        while (n < least)
                                n *= 2;
                        best = MIN(best, n);
                }
        }
        return best;
}

int64_t fft_flops(int64_t n)
{
        Stages stages;
        bool direct = find_factors(n, &stages);
        if (!direct && n > INT64_MAX / 64)
                return INT64_MAX;
        if (!direct)
                find_factors(smooth_length(2 * n - 1), &stages);
        int64_t per_point = 16;
        for (int i = 0; i < stages.count; i++)
                per_point += 8 * stages.factor[i];
        return saturating_product(saturating_product(stages.n, per_point), direct ? 1 : 3);
}

// ---- one stage ----
typedef double Pair __attribute__((vector_size(16))); // a complex number
typedef double LoosePair __attribute__((vector_size(16), aligned(8), may_alias));

// A factor, so that a product is two products of pairs and their sum.
typedef struct Turn {
        Pair re, im; // twice the real part; the imaginary one, and before it its negative
} Turn;

static inline Turn turn_of(ComplexF64 factor)
{
        return (Turn){ { factor.re, factor.re }, { -factor.im, factor.im } };
}

static inline Pair swapped(Pair x)
{
        return __builtin_shufflevector(x, x, 1, 0);
}

static inline Pair turned(Pair x, const Turn *by)
{
        return x * by->re + swapped(x) * by->im;
}

// The transform of p numbers by the p-th roots of one.
static inline __attribute__((always_inline)) void small_transform(const int p, Pair *a, const Turn *roots)
{
        Pair sums[LARGEST_FACTOR];
#pragma GCC unroll 5
        for (int t = 0; t < p; t++) {
                sums[t] = a[0];
#pragma GCC unroll 5
                for (int r = 1; r < p; r++)
                        sums[t] += turned(a[r], &roots[r * t % p]);
        }
#pragma GCC unroll 5
        for (int t = 0; t < p; t++)
                a[t] = sums[t];
}

static inline void transform_2(Pair *a)
{
        Pair sum = a[0] + a[1];
        a[1] = a[0] - a[1];
        a[0] = sum;
}

static inline void transform_4(Pair *a)
{
        Pair even = a[0] + a[2], odd = a[1] + a[3], even_less = a[0] - a[2], odd_less = a[1] - a[3];
        Pair quarter = swapped(odd_less) * (Pair){ 1, -1 };
        a[0] = even + odd;
        a[1] = even_less + quarter;
        a[2] = even - odd;
        a[3] = even_less - quarter;
}

// One stage: p numbers that lie `gap` apart become p that lie s apart.
typedef struct Stage {
        const Stages *stages;
        int p;
        int64_t s, gap; // s: the product of the factors before
        Turn roots[LARGEST_FACTOR], twiddle[LARGEST_FACTOR];
} Stage;

// `columns` of a group; p is stage->p, known to the compiler where that is worth it.
static inline __attribute__((always_inline)) void run_columns_of(const int p, const Stage *stage,
                                                                 const ComplexF64 *x, ComplexF64 *y,
                                                                 bool twiddles, int64_t columns)
{
        Pair a[LARGEST_FACTOR];
        for (int64_t k = 0; k < columns; k++) {
#pragma GCC unroll 5
                for (int r = 0; r < p; r++)
                        a[r] = *(const LoosePair *)&x[k + r * stage->gap];
                if (p == 4)
                        transform_4(a);
                else if (p == 2)
                        transform_2(a);
                else
                        small_transform(p, a, stage->roots);
                        // A product with 1 would make NaN of the zero beside an infinity.
#pragma GCC unroll 5
                for (int t = 0; t < p; t++)
                        *(LoosePair *)&y[k + t * stage->s] =
                                !twiddles || t == 0 ? a[t] : turned(a[t], &stage->twiddle[t]);
        }
}

static void run_columns(const Stage *stage, const ComplexF64 *x, ComplexF64 *y, bool twiddles,
                        int64_t columns)
{
        switch (stage->p) {
        case 2:
                run_columns_of(2, stage, x, y, twiddles, columns);
                break;
        case 3:
                run_columns_of(3, stage, x, y, twiddles, columns);
                break;
        case 4:
                run_columns_of(4, stage, x, y, twiddles, columns);
                break;
        case 5:
                run_columns_of(5, stage, x, y, twiddles, columns);
                break;
        default:
                run_columns_of(stage->p, stage, x, y, twiddles, columns);
                break;
        }
}

static void run_stage(Work *work, Stage *stage, const ComplexF64 *x, ComplexF64 *y)
{
        const int64_t s = stage->s, n = stage->stages->n, groups = n / (s * stage->p);
        const ComplexF64 *roots = stage->stages->roots;
        for (int t = 0; t < stage->p; t++)
                stage->roots[t] = turn_of(roots[n / stage->p * t]);
        for (int64_t j = 0; j < groups && !work->stops; j++) {
                for (int t = 0; t < stage->p; t++)
                        stage->twiddle[t] = turn_of(roots[j * t * s]);
                for (int64_t k = 0; k < s; k += BLOCK) {
                        int64_t columns = MIN(BLOCK, s - k);
                        if (work_stops(work, columns * stage->p * stage->p))
                                return;
                        run_columns(stage, x + s * j + k, y + s * stage->p * j + k, j != 0, columns);
                }
        }
}

// From fft->line to where the result is returned: the line or the buffer.
static ComplexF64 *run_stages(Work *work, const Fft *fft)
{
        ComplexF64 *from = fft->line, *to = fft->buffer;
        Stage stage;
        stage.stages = &fft->stages;
        int64_t s = 1;
        for (int i = 0; i < fft->stages.count && !work->stops; i++) {
                int p = fft->stages.factor[i];
                stage.p = p;
                stage.s = s;
                stage.gap = fft->stages.n / p;
                run_stage(work, &stage, from, to);
                s *= p;
                ComplexF64 *swap = from;
                from = to;
                to = swap;
        }
        return from;
}

// ---- any length ----
// From fft->line as run_stages. The convolution's inverse transform is a forward one of conjugates.
static ComplexF64 *run_transform(Work *work, Fft *fft)
{
        if (fft->chirp == NULL)
                return run_stages(work, fft);
        const int64_t n = fft->n, length = fft->stages.n;
        if (work_stops(work, 4 * length))
                return fft->line;
        for (int64_t k = 0; k < n; k++)
                fft->line[k] = times(fft->line[k], fft->chirp[k]);
        for (int64_t k = n; k < length; k++)
                fft->line[k] = (ComplexF64){ 0 };
        ComplexF64 *spectrum = run_stages(work, fft);
        for (int64_t k = 0; k < length; k++) {
                ComplexF64 product = times(spectrum[k], fft->response[k]);
                spectrum[k] = (ComplexF64){ product.re, -product.im };
        }
        ComplexF64 *line = fft->line;
        fft->line = spectrum;
        fft->buffer = spectrum == line ? fft->buffer : line;
        ComplexF64 *sums = run_stages(work, fft);
        for (int64_t k = 0; k < n; k++) {
                ComplexF64 sum = { sums[k].re / (double)length, -sums[k].im / (double)length };
                sums[k] = times(sum, fft->chirp[k]);
        }
        return sums;
}

static void make_roots(Work *work, Stages *stages)
{
        for (int64_t k = 0; k < stages->n && !work_stops(work, 32); k++) {
                double angle = -2 * M_PI * ((double)k / (double)stages->n);
                stages->roots[k] = (ComplexF64){ cos(angle), sin(angle) };
        }
}

static void make_chirp(Work *work, Fft *fft)
{
        const int64_t n = fft->n, length = fft->stages.n;
        int64_t square = 0; // k^2 modulo 2 n
        for (int64_t k = 0; k < length; k++)
                fft->line[k] = (ComplexF64){ 0 };
        for (int64_t k = 0; k < n && !work_stops(work, 32); k++) {
                double angle = -M_PI * ((double)square / (double)n);
                fft->chirp[k] = (ComplexF64){ cos(angle), sin(angle) };
                ComplexF64 back = { fft->chirp[k].re, -fft->chirp[k].im };
                fft->line[k] = back;
                fft->line[k == 0 ? 0 : length - k] = back;
                square = (square + 2 * k + 1) % (2 * n);
        }
        ComplexF64 *response = run_stages(work, fft);
        for (int64_t k = 0; k < length; k++)
                fft->response[k] = response[k];
}

// The scratch is the caller's to free, also after a failure.
static Status fft_init(Fft *fft, int64_t n, Work *work, Scratch *scratch)
{
        *fft = (Fft){ .n = n };
        bool direct = find_factors(n, &fft->stages);
        if (n > (int64_t)1 << 40)
                return fail(STATUS_TOO_LARGE, "a Fourier transform of %lld points", (long long)n);
        if (!direct)
                find_factors(smooth_length(2 * n - 1), &fft->stages);
        const int64_t length = fft->stages.n, total = direct ? 3 * length : 4 * length + n;
        TRY(scratch_init(scratch, work->ctx, total, sizeof(ComplexF64)));
        fft->stages.roots = scratch->data;
        fft->line = fft->stages.roots + length;
        fft->buffer = fft->line + length;
        make_roots(work, &fft->stages);
        if (!direct) {
                fft->response = fft->buffer + length;
                fft->chirp = fft->response + length;
                make_chirp(work, fft);
        }
        return STATUS_OK;
}

// ---- lines ----
static void conjugate(ComplexF64 *x, int64_t n)
{
        for (int64_t k = 0; k < n; k++)
                x[k].im = -x[k].im;
}

static void load_line(const FftLines *lines, const char *from, ComplexF64 *line)
{
        const TensorMeta *in = lines->in;
        const int64_t bytes = dtype_info[in->dtype].bytes, n = lines->n;
        tile_loaders[TILE_C128][in->dtype](from, in->stride[lines->dim] * bytes, (size_t)in->size[lines->dim],
                                           line);
        for (int64_t k = in->size[lines->dim]; k < n; k++)
                line[k] = (ComplexF64){ line[n - k].re, -line[n - k].im };
        if (!lines->forward)
                conjugate(line, n);
}

static void store_line(const FftLines *lines, ComplexF64 *results, char *to)
{
        const TensorMeta *out = lines->out;
        const int64_t bytes = dtype_info[out->dtype].bytes, n = out->size[lines->dim];
        if (!lines->forward)
                conjugate(results, n);
        for (int64_t k = 0; k < n; k++)
                results[k] = (ComplexF64){ results[k].re * lines->scale, results[k].im * lines->scale };
        tile_storers[TILE_C128][out->dtype](results, (size_t)n, to, out->stride[lines->dim] * bytes);
}

static void run_lines(Work *work, Fft *fft, const FftLines *lines, const char *in, char *out)
{
        const TensorMeta *a = lines->in, *b = lines->out;
        const int64_t in_bytes = dtype_info[a->dtype].bytes, out_bytes = dtype_info[b->dtype].bytes;
        int64_t index[MAX_RANK] = { 0 };
        for (;;) {
                load_line(lines, in, fft->line);
                ComplexF64 *results = run_transform(work, fft);
                if (work_stops(work, 4 * lines->n))
                        return;
                store_line(lines, results, out);
                int d = a->rank - 1;
                for (; d >= 0; d--) {
                        if (d == lines->dim)
                                continue;
                        in += a->stride[d] * in_bytes;
                        out += b->stride[d] * out_bytes;
                        if (++index[d] < a->size[d])
                                break;
                        in -= a->stride[d] * a->size[d] * in_bytes;
                        out -= b->stride[d] * a->size[d] * out_bytes;
                        index[d] = 0;
                }
                if (d < 0)
                        return;
        }
}

Status fft_lines_run(const RunContext *ctx, const FftLines *lines, const void *in, void *out)
{
        if (meta_numel(lines->out) == 0)
                return STATUS_OK;
        Work work = { .ctx = ctx };
        Scratch scratch = { 0 };
        Fft fft;
        Status status = fft_init(&fft, lines->n, &work, &scratch);
        if (status == STATUS_OK && !work.stops)
                run_lines(&work, &fft, lines, in, out);
        scratch_deinit(&scratch);
        return status == STATUS_OK ? run_poll(ctx) : status;
}
