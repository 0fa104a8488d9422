// SPDX-License-Identifier: Apache-2.0
// pointwise_complex.c: rows of complex numbers, and those that make them of real ones. complex64 is
// computed with float parts, complex128 with double. Compiled once: libm has no vector forms here.
#include <complex.h>
#include <math.h>
#undef I
#include "core/kernels/pointwise/pointwise.h"

#define PART     float
#define PAIR     ComplexF32
#define WIDE     float _Complex
#define FN(name) name##_f32
#define MATH(fn) fn##f
#include "core/kernels/pointwise/complex_formulas.inc"
#undef PART
#undef PAIR
#undef WIDE
#undef FN
#undef MATH

#define PART     double
#define PAIR     ComplexF64
#define WIDE     double _Complex
#define FN(name) name##_f64
#define MATH(fn) fn
#include "core/kernels/pointwise/complex_formulas.inc"

enum { SAME_OUT, REAL_OUT, MASK_OUT, COMPLEX_OUT };

#define ROW(name, in_, result, single, twice)                                                                \
        const PointKernel point_complex_##name = {                                                           \
                .label = #name,                                                                              \
                .in = in_,                                                                                   \
                .mask_out = result##_OUT == MASK_OUT,                                                        \
                .real_out = result##_OUT == REAL_OUT,                                                        \
                .complex_out = result##_OUT == COMPLEX_OUT,                                                  \
                .loop = { [single] = loop_##name##_f32, [twice] = loop_##name##_f64 },                       \
        };
#define POINT_C(name, in, result)  ROW(name, in, result, POINT_C64, POINT_C128)
#define POINT_CN(name, in, result) ROW(name, in, result, POINT_C64, POINT_C128)
#define POINT_R(name, in, result)  ROW(name, in, result, POINT_F32, POINT_F64)
#include "core/kernels/pointwise/pointwise_complex.def"
#undef POINT_C
#undef POINT_CN
#undef POINT_R

const PointKernel *point_complex_of(const PointKernel *kernel)
{
        static const struct {
                const PointKernel *of, *instead;
        } pairs[] = {
#define POINT_C(name, ...) { &point_##name, &point_complex_##name },
#define POINT_CN(...)
#define POINT_R(...)
#include "core/kernels/pointwise/pointwise_complex.def"
        };
        for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
                if (pairs[i].of == kernel)
                        return pairs[i].instead;
        }
        return kernel->loop[POINT_C64] != NULL ? kernel : NULL;
}
