// SPDX-License-Identifier: Apache-2.0
// Fourier transforms against the sum that defines them, in long double. Errors are measured as
// numerical analysis does: the length of the difference in units of the length of the result.
#include "core/kernels/fft/fft.h"
#include <complex.h>
#include "core/kernels/dense.h"
#include "tests/kernels/sample.h"

enum { LINES = 19, LONGEST = 2048 };
// Radix 2 to 5 alone and mixed, other factors up to the largest with a stage of its own, primes
// and their doubles beyond it.
static const int64_t lengths[] = { 1,   2,   3,   4,   5,   6,   7,   8,    9,    10,   11,
                                   12,  15,  16,  17,  25,  30,  36,  49,   59,   61,   62,
                                   64,  67,  100, 120, 121, 122, 127, 134,  200,  243,  256,
                                   257, 360, 400, 480, 512, 625, 720, 1000, 1009, 1024, 2048 };

typedef enum Kind { COMPLEX, BACKWARD, REAL, REAL_WHOLE, TO_REAL, N_KINDS } Kind;

typedef struct Case {
        Kind kind;
        Dtype dtype; // of real numbers
        int64_t n, n_in, n_out, lines;
        bool turned; // lines lie along the first dimension
        TensorMeta from, to;
        FftLines task;
} Case;

static void case_init(Case *one)
{
        const Dtype is_complex = one->dtype == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128;
        const bool from_real = one->kind == REAL || one->kind == REAL_WHOLE;
        one->n_in = one->kind == TO_REAL ? one->n / 2 + 1 : one->n;
        one->n_out = one->kind == REAL ? one->n / 2 + 1 : one->n;
        int64_t from[] = { one->lines, one->n_in }, to[] = { one->lines, one->n_out };
        if (one->turned) {
                from[1] = to[1] = one->lines;
                from[0] = one->n_in;
                to[0] = one->n_out;
        }
        meta_init(&one->from, from_real ? one->dtype : is_complex, 2, from);
        meta_init(&one->to, one->kind == TO_REAL ? one->dtype : is_complex, 2, to);
        one->task = (FftLines){ &one->from,
                                &one->to,
                                one->turned ? 0 : 1,
                                one->n,
                                one->kind != BACKWARD && one->kind != TO_REAL,
                                0.5 };
}

static complex double number(const Case *one, const TensorMeta *meta, const void *data, int64_t line,
                             int64_t k)
{
        int64_t at = one->turned ? k * meta->stride[0] + line : line * meta->stride[0] + k;
        if (meta->dtype == one->dtype)
                return compute_as_f64(one->dtype, data, at);
        return compute_as_f64(one->dtype, data, 2 * at) + I * compute_as_f64(one->dtype, data, 2 * at + 1);
}

// The error of one line.
static double error_of(const Case *one, const void *in, const void *out, int64_t line)
{
        static complex long double roots[LONGEST], x[LONGEST];
        for (int64_t k = 0; k < one->n; k++) {
                long double angle = 2 * M_PIl * (long double)k / (long double)one->n;
                roots[k] = cosl(angle) + I * (one->task.forward ? -sinl(angle) : sinl(angle));
                x[k] = k < one->n_in ? number(one, &one->from, in, line, k)
                                     : conj(number(one, &one->from, in, line, one->n - k));
        }
        double error = 0, length = 0;
        for (int64_t k = 0; k < one->n_out; k++) {
                complex long double sum = 0;
                for (int64_t j = 0; j < one->n; j++)
                        sum += x[j] * roots[j * k % one->n];
                complex double want = (complex double)sum * one->task.scale;
                if (one->kind == TO_REAL)
                        want = creal(want);
                complex double less = number(one, &one->to, out, line, k) - want;
                error += creal(less * conj(less));
                length += creal(want * conj(want));
        }
        return sqrt(error / length);
}

static void run_case(Sample *sample, Case *one)
{
        case_init(one);
        size_t in_bytes = (size_t)(one->n_in * one->lines) * dtype_info[one->from.dtype].bytes,
               out_bytes = (size_t)(one->n_out * one->lines) * dtype_info[one->to.dtype].bytes;
        void *in = guarded_new(in_bytes), *out = guarded_new(out_bytes);
        sample_fill(sample, one->dtype, in, (int64_t)(in_bytes / dtype_info[one->dtype].bytes));
        cr_assert_eq(fft_lines_run(NULL, &one->task, in, out), STATUS_OK);
        double error = error_of(one, in, out, one->lines - 1);
        cr_assert_lt(error, one->dtype == DTYPE_F32 ? 6e-8 : 1e-15, "%ld points, kind %d, %s: %g",
                     (long)one->n, (int)one->kind, dtype_info[one->dtype].name, error);
        guarded_check(in, in_bytes);
        guarded_check(out, out_bytes);
}

Test(fft, every_length_and_kind_gives_the_sum_that_defines_it)
{
        Sample sample = { 91 };
        for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
                for (int kind = 0; kind < N_KINDS; kind++) {
                        for (int way = 0; way < 4; way++) {
                                Case one = { .kind = (Kind)kind,
                                             .dtype = way < 2 ? DTYPE_F32 : DTYPE_F64,
                                             .n = lengths[i],
                                             .lines = i % 3 == 0 ? 1 : LINES,
                                             .turned = way % 2 != 0 };
                                run_case(&sample, &one);
                        }
                }
        }
}

// Line 3 of many, on several threads, along either dimension, and alone.
Test(fft, the_bits_of_a_line_do_not_depend_on_other_lines_or_threads)
{
        Sample sample = { 92 };
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 3;
        for (int round = 0; round < 200; round++) {
                Case one = { .kind = (Kind)sample_int(&sample, 0, N_KINDS - 1),
                             .dtype = sample_int(&sample, 0, 1) == 0 ? DTYPE_F32 : DTYPE_F64,
                             .n = sample_int(&sample, 1, 400),
                             .lines = sample_int(&sample, 4, 60) };
                case_init(&one);
                Case alone = one, turned = one;
                alone.lines = 1;
                turned.turned = true;
                case_init(&alone);
                case_init(&turned);
                const size_t in_item = dtype_info[one.from.dtype].bytes,
                             out_item = dtype_info[one.to.dtype].bytes, in_line = (size_t)one.n_in * in_item,
                             out_line = (size_t)one.n_out * out_item;
                char *in = malloc(2 * in_line * (size_t)one.lines),
                     *in_turned = in + in_line * (size_t)one.lines;
                char *out = malloc((2 * (size_t)one.lines + 1) * out_line),
                     *out_turned = out + out_line * (size_t)one.lines,
                     *out_alone = out_turned + out_line * (size_t)one.lines;
                sample_fill(&sample, one.dtype, in,
                            (int64_t)(in_line / dtype_info[one.dtype].bytes) * one.lines);
                for (int64_t k = 0; k < one.n_in * one.lines; k++)
                        memcpy(in_turned + (k % one.n_in * one.lines + k / one.n_in) * (int64_t)in_item,
                               in + k * (int64_t)in_item, in_item);
                cr_assert_eq(fft_lines_run(&ctx, &one.task, in, out), STATUS_OK);
                cr_assert_eq(fft_lines_run(NULL, &turned.task, in_turned, out_turned), STATUS_OK);
                cr_assert_eq(fft_lines_run(NULL, &alone.task, in + 3 * in_line, out_alone), STATUS_OK);
                cr_assert(memcmp(out + 3 * out_line, out_alone, out_line) == 0, "%ld points", (long)one.n);
                for (int64_t k = 0; k < one.n_out; k++)
                        cr_assert(memcmp(out_turned + (k * one.lines + 3) * (int64_t)out_item,
                                         out_alone + k * (int64_t)out_item, out_item) == 0,
                                  "%ld points", (long)one.n);
                free(in);
                free(out);
        }
}

Test(fft, quarters_of_the_circle_are_exact)
{
        const double in[] = { 0, 1, 0, 0, 0, 0, 0, 0 };
        double out[16];
        Case one = { .kind = REAL_WHOLE, .dtype = DTYPE_F64, .n = 8, .lines = 1 };
        case_init(&one);
        cr_assert_eq(fft_lines_run(NULL, &one.task, in, out), STATUS_OK);
        for (int k = 0; k < 8; k += 2) {
                cr_assert_eq(out[2 * k], k == 0 ? 0.5 : k == 4 ? -0.5 : 0);
                cr_assert_eq(out[2 * k + 1], k == 2 ? -0.5 : k == 6 ? 0.5 : 0);
        }
}
