// SPDX-License-Identifier: Apache-2.0
// pointwise_unary.c: loops of one operand. float uses libm's float functions.
#include "core/kernels/pointwise/pointwise_loops.h"
#include "core/kernels/pointwise/special.h"

#define BY_TYPE(x, name) _Generic((x), float : name##_f32, double : name##_f64, default : name##_none)

// lgamma writes the global signgam; the reentrant forms do not.
static inline float lgamma_f32(float x)
{
        int sign;
        return lgammaf_r(x, &sign);
}
static inline double lgamma_f64(double x)
{
        int sign;
        return lgamma_r(x, &sign);
}
static inline int64_t lgamma_none(int64_t x)
{
        return x;
}
#define LGAMMA(x)        BY_TYPE(x, lgamma)(x)
#define SPECIAL(name, x) ((T)special_##name((double)(x)))
#ifdef POINT_SUFFIX
#define ERFINV(x) _Generic((x), float : vm_erfinv, default : special_erfinv)(x)
#else
#define ERFINV(x) SPECIAL(erfinv, x)
#endif
// Where exp overflows in the type, so does the product.
#define BESSEL(name, x) (exp(fabs(x)) * SPECIAL(name, x))
#define POLYGAMMA(n, x)                                                                                      \
        ((n) == K(1) ? (T) _Generic((x), float                                                               \
                                    : special_trigammaf, default                                             \
                                    : special_trigamma)(x)                                                   \
                     : (T)special_polygamma((int)(n), (double)(x)))
#define LOGIT(value) log(ROUND((value) / ROUND(K(1) - (value))))
#define SINC(x)      ((x) == K(0) ? K(1) : sin(K(M_PI) * (x)) / (K(M_PI) * (x)))

#include "core/kernels/pointwise/pointwise_unary.def"
