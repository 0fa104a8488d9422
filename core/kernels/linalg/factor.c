// SPDX-License-Identifier: Apache-2.0
// factor.c: LU by partial pivoting, triangular systems, Cholesky, Householder's QR, and the
// exponential by scaling and squaring. Inner loops go along rows.
#include "core/kernels/linalg/factor.h"

#include <complex.h>
#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/isa.h"

// y -= f x
#define SUBTRACT_ROW(name, target, type)                                                                     \
        static target void name(type *restrict y, const type *restrict x, type f, int64_t n)                 \
        {                                                                                                    \
                for (int64_t i = 0; i < n; i++)                                                              \
                        y[i] -= f * x[i];                                                                    \
        }
SUBTRACT_ROW(subtract_row_portable, , double)
#if defined(__x86_64__)
SUBTRACT_ROW(subtract_row_avx2, TARGET_AVX2, double)
SUBTRACT_ROW(subtract_row_avx512, TARGET_AVX512, double)
#endif
static void subtract_row_real(double *restrict y, const double *restrict x, double f, int64_t n)
{
#if defined(__x86_64__)
        if (isa_level() >= ISA_AVX512)
                subtract_row_avx512(y, x, f, n);
        else if (isa_level() >= ISA_AVX2)
                subtract_row_avx2(y, x, f, n);
        else
#endif
                subtract_row_portable(y, x, f, n);
}

// NaN wins.
static double larger(double a, double b)
{
        return isnan(a) || a > b ? a : b;
}

#define OF(name)     name##_real
#define NUMBER       double
#define SIZE(x)      fabs(x)
#define ABS(x)       fabs(x)
#define SQUARE(x)    ((x) * (x))
#define SIGN(x)      ((double)(((x) > 0) - ((x) < 0)))
#define CONJ(x)      (x)
#define REAL(x)      (x)
#define IMAG(x)      0
#define NOT_A_NUMBER NAN
#include "core/kernels/linalg/factor.inc"
#undef OF
#undef NUMBER
#undef SIZE
#undef ABS
#undef SQUARE
#undef SIGN
#undef CONJ
#undef REAL
#undef IMAG
#undef NOT_A_NUMBER

typedef double complex Complex;
SUBTRACT_ROW(subtract_row_complex, , Complex)

// As LAPACK's izamax orders.
static double parts_sum(Complex x)
{
        return fabs(creal(x)) + fabs(cimag(x));
}

static double square(Complex x)
{
        return creal(x) * creal(x) + cimag(x) * cimag(x);
}

static Complex direction(Complex x)
{
        const double magnitude = cabs(x);
        return magnitude == 0 ? 0 : x / magnitude;
}

#define OF(name)     name##_complex
#define NUMBER       Complex
#define SIZE(x)      parts_sum(x)
#define ABS(x)       cabs(x)
#define SQUARE(x)    square(x)
#define SIGN(x)      direction(x)
#define CONJ(x)      conj(x)
#define REAL(x)      creal(x)
#define IMAG(x)      cimag(x)
#define NOT_A_NUMBER (NAN + NAN * I)
#include "core/kernels/linalg/factor.inc"
