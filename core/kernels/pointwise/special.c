// SPDX-License-Identifier: Apache-2.0
// special.c: textbook series (Abramowitz and Stegun, chapters 6, 7, 9 and 23), with bounds on the
// number of terms that do not depend on the argument.
#include "core/kernels/pointwise/special.h"

#include <math.h>
#include <stdlib.h>

// Bernoulli numbers B2, B4, ... B16.
static const double bernoulli[] = { 1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                    5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510 };
enum { N_BERNOULLI = sizeof(bernoulli) / sizeof(bernoulli[0]) };

// ---- digamma and its derivatives ----
double special_digamma(double x)
{
        const double large = 12;
        double sum = 0, power = 1;
        if (x == 0)
                return copysign(INFINITY, -x);
        if (x < 0) { // the reflection formula; tan of the fraction keeps its digits
                double whole;
                if (trunc(x) == x)
                        return NAN;
                return special_digamma(1 - x) - M_PI / tan(M_PI * modf(x, &whole));
        }
        for (; x < large; x++)
                sum -= 1 / x;
        if (isinf(x))
                return x;
        for (int k = 0; k < N_BERNOULLI; k++) {
                power /= x * x;
                sum -= bernoulli[k] / (2 * (k + 1)) * power;
        }
        return sum + log(x) - 0.5 / x;
}

// q > 0: the first terms one by one, the rest by Euler and Maclaurin.
static double zeta_positive(double s, double q)
{
        const double large = 12;
        double sum = 0;
        for (; q < large; q++)
                sum += pow(q, -s);
        double power = pow(q, -s), term = s * power / q;
        sum += power * q / (s - 1) + power / 2;
        for (int k = 0; k < N_BERNOULLI; k++) { // B2k / (2k)! * s (s + 1) ... (s + 2k - 2) * q^-(s + 2k - 1)
                int n = 2 * (k + 1);
                term /= k == 0 ? 2 : (double)(n * (n - 1));
                sum += bernoulli[k] * term;
                term *= (s + n - 1) * (s + n) / (q * q);
        }
        return sum;
}

double special_zeta(double s, double q)
{
        if (s == 1)
                return INFINITY;
        if (s < 1 || isnan(q))
                return NAN;
        if (q <= 0 && q == floor(q))
                return INFINITY;
        if (isnan(s) || isinf(q))
                return NAN;
        if (isinf(s)) // as PyTorch's loop has it
                return q < 1 ? INFINITY : q > 1 ? NAN : 1;
        if (q > 0)
                return zeta_positive(s, q);
        if (s != floor(s))
                return NAN; // q^-s is not real
        // The terms below 0 are a sum of positive ones with a sign, which begins and ends.
        double n = ceil(-q), first = q + n, rest = 1 - first;
        double below = zeta_positive(s, rest) - zeta_positive(s, rest + n);
        return zeta_positive(s, first) + (fmod(s, 2) == 0 ? below : -below);
}

// The reflection formula below 1/2, six steps of the recurrence, the asymptotic series.
#define TRIGAMMA(T, x, SIN)                                                                                  \
        T sum = 0, sign = 1;                                                                                 \
        if (x < (T)0.5) {                                                                                    \
                T sine = SIN((T)M_PI * x);                                                                   \
                sum -= (T)M_PI * (T)M_PI / (sine * sine);                                                    \
                sign = -1;                                                                                   \
                x = 1 - x;                                                                                   \
        }                                                                                                    \
        for (int i = 0; i < 6; i++, x++)                                                                     \
                sum += 1 / (x * x);                                                                          \
        const T r = 1 / (x * x);                                                                             \
        sum += (1 + 1 / (2 * x) + r * ((T)bernoulli[0] + r * ((T)bernoulli[1] + r * (T)bernoulli[2]))) / x;  \
        return sign * sum

double special_trigamma(double x)
{
        TRIGAMMA(double, x, sin);
}

float special_trigammaf(float x)
{
        TRIGAMMA(float, x, sinf);
}

double special_polygamma(int n, double x)
{
        if (n == 0)
                return special_digamma(x);
        double sum = special_zeta(n + 1.0, x) * tgamma(n + 1.0);
        return n % 2 == 0 ? -sum : sum;
}

// ---- inverses of the error function and of the normal distribution ----
// Rational approximations by M. J. Wichura, algorithm AS 241 (Applied Statistics 37, 1988), whose
// relative error is 1e-16.
typedef struct Rational {
        double above[8], below[8]; // lowest degree first
} Rational;

static double rational(const Rational *of, double x)
{
        double above = of->above[7], below = of->below[7];
        for (int k = 6; k >= 0; k--) {
                above = above * x + of->above[k];
                below = below * x + of->below[k];
        }
        return above / below;
}

// z / q, where q + 1/2 is the part of the normal distribution below z, |q| <= 0.425; `square`: q^2.
static double normal_middle(double square)
{
        static const Rational middle = {
                { 3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                  1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                  3.3430575583588128105e4, 2.5090809287301226727e3 },
                { 1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
                  2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
                  5.2264952788528545610e3 },
        };
        return rational(&middle, 0.180625 - square);
}

// z of which the part `p` of the normal distribution lies above, p <= 0.075.
static double normal_tail(double p)
{
        static const Rational near = {
                { 1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                  3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                  2.27238449892691845833e-2, 7.74545014278341407640e-4 },
                { 1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                  1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                  1.05075007164441684324e-9 },
        };
        static const Rational far = {
                { 6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                  2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                  2.71155556874348757815e-5, 2.01033439929228813265e-7 },
                { 1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
                  7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                  2.04426310338993978564e-15 },
        };
        double r = sqrt(-log(p));
        return r <= 5 ? rational(&near, r - 1.6) : rational(&far, r - 5);
}

double special_erfinv(double x)
{
        double size = fabs(x);
        if (!(size <= 1))
                return NAN;
        if (size == 1)
                return copysign((double)INFINITY, x);
        if (size <= 0.85)
                return x * (normal_middle(x * x / 4) * (M_SQRT1_2 / 2));
        return copysign(normal_tail((1 - size) / 2) * M_SQRT1_2, x);
}

double special_ndtri(double p)
{
        if (!(p >= 0 && p <= 1))
                return NAN;
        if (p == 0 || p == 1)
                return p == 0 ? -INFINITY : INFINITY;
        double q = p - 0.5;
        if (fabs(q) <= 0.425)
                return q * normal_middle(q * q);
        return q < 0 ? -normal_tail(p) : normal_tail(1 - p);
}

// ---- Bessel functions ----
// exp(-x) I_order(x), x >= 0. All terms of the power series are positive, so no digits cancel; from
// 30 on the asymptotic series has double precision.
static double bessel_scaled(int order, double x)
{
        enum { LARGE = 30, TERMS = 120 };
        if (isnan(x))
                return x;
        if (x < (double)LARGE) {
                double term = order == 0 ? 1 : x / 2, sum = term;
                for (int k = 1; k < TERMS && term > sum * 1e-17; k++) {
                        term *= x * x / 4 / ((double)k * (k + order));
                        sum += term;
                }
                return sum * exp(-x);
        }
        double term = 1, sum = 1, mu = 4.0 * order;
        for (int k = 1; k < LARGE && fabs(term) > 1e-17; k++) {
                term *= -(mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
                sum += term;
        }
        return sum / sqrt(2 * M_PI * x);
}

double special_i0e(double x)
{
        return isinf(x) ? 0 : bessel_scaled(0, fabs(x));
}

double special_i1e(double x)
{
        return isinf(x) ? copysign(0, x) : copysign(bessel_scaled(1, fabs(x)), x);
}

// ---- the tail of the normal distribution ----
double special_erfcx(double x)
{
        enum { LARGE = 10, DEPTH = 40 };
        if (x < (double)LARGE)
                return exp(x * x) * erfc(x);
        if (isinf(x))
                return 0;
        double fraction = x; // continued fraction from its end
        for (int k = DEPTH; k > 0; k--)
                fraction = x + k * 0.5 / fraction;
        return 1 / (sqrt(M_PI) * fraction);
}

double special_log_ndtr(double x)
{
        double t = x * M_SQRT1_2;
        return x < -1 ? log(special_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

// K_order(x) is the integral of exp(-x cosh t) cosh(order t) over t > 0. The integrand falls doubly
// exponentially, so the trapezoid rule is exact to double precision with few points.
static double bessel_k(int order, double x, int scaled)
{
        enum { POINTS = 6000 }; // enough for the smallest number above 0
        if (isnan(x) || x <= 0)
                return x == 0 ? INFINITY : NAN;
        const double step = fmin(0.125, 0.7 / sqrt(x)); // the integrand's width is 1 / sqrt(x)
        double sum = 0.5;
        for (int k = 1; k < POINTS; k++) {
                const double t = k * step, s = sinh(t / 2), part = exp(-2 * x * s * s) * cosh(order * t);
                sum += part;
                if (part < sum * 1e-17)
                        break;
        }
        return isinf(x) ? 0 : sum * step * (scaled ? 1 : exp(-x));
}

double special_k0(double x, int scaled)
{
        return bessel_k(0, x, scaled);
}

double special_k1(double x, int scaled)
{
        return bessel_k(1, x, scaled);
}

double special_spherical_j0(double x)
{
        if (isinf(x))
                return 0;
        return fabs(x) < 1e-3 ? 1 - x * x / 6 : sin(x) / x;
}

// ---- the incomplete gamma function ----
enum { GAMMA_STEPS = 20000 };
static const double gamma_large = 1e6; // from here on the uniform expansion's first terms do

// x^a exp(-x) / gamma(a)
static double gamma_factor(double a, double x)
{
        return exp(a * log(x) - x - lgamma(a));
}

// Below, by its power series: x < a + 1.
static double gamma_series(double a, double x)
{
        double term = 1 / a, sum = term;
        for (int k = 1; k < GAMMA_STEPS && term > sum * 1e-17; k++) {
                term *= x / (a + k);
                sum += term;
        }
        return sum * gamma_factor(a, x);
}

// Above, by its continued fraction (modified Lentz): x >= a + 1.
static double gamma_fraction(double a, double x)
{
        const double tiny = 1e-300;
        double b = x + 1 - a, c = 1 / tiny, d = 1 / b, product = d;
        for (int k = 1; k < GAMMA_STEPS; k++) {
                const double an = -k * (k - a);
                b += 2;
                d = an * d + b;
                c = b + an / c;
                d = 1 / (fabs(d) < tiny ? tiny : d);
                c = fabs(c) < tiny ? tiny : c;
                product *= c * d;
                if (fabs(c * d - 1) < 1e-16)
                        break;
        }
        return product * gamma_factor(a, x);
}

// Temme's uniform expansion, two terms: the error is of order a^-3/2.
static double gamma_uniform(double a, double x, double side)
{
        const double lambda = x / a, mu = lambda - 1;
        const double eta = copysign(sqrt(2 * (mu - log1p(mu))), mu);
        const double rest = fabs(eta) < 1e-3 ? -1.0 / 3 + eta / 12 : 1 / mu - 1 / eta;
        return erfc(-side * eta * sqrt(a / 2)) / 2 -
               side * rest * exp(-a * eta * eta / 2) / sqrt(2 * M_PI * a);
}

// The ends, as PyTorch has them. True: *out is the part below.
static int gamma_ends(double a, double x, double *out)
{
        *out = NAN;
        if ((isnan(x) && !isinf(a)) || x < 0 || a < 0)
                return 1;
        if (a == 0) {
                *out = x > 0 ? 1 : NAN;
                return 1;
        }
        if (x == 0 || isinf(a)) {
                *out = isinf(a) && isinf(x) ? NAN : 0;
                return 1;
        }
        *out = isinf(x) ? 1 : NAN;
        return isinf(x) || isnan(a);
}

double special_gammainc(double a, double x)
{
        double end;
        if (gamma_ends(a, x, &end))
                return end;
        if (a > gamma_large)
                return gamma_uniform(a, x, 1);
        return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

double special_gammaincc(double a, double x)
{
        double end;
        if (gamma_ends(a, x, &end))
                return 1 - end;
        if (a > gamma_large)
                return gamma_uniform(a, x, -1);
        return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}
