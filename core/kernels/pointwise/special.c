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

// ---- inverses of the error function ----
// z with erfc(z) = y, 0 < y <= 1: Winitzki's approximation, then Halley's steps, which triple the
// number of right digits.
static double erfc_inverse(double y)
{
        const double a = 0.147, logs = log(y * (2 - y)), half = 2 / (M_PI * a) + logs / 2;
        double z = sqrt(fmax(sqrt(half * half - logs / a) - half, 0));
        for (int i = 0; i < 3; i++) {
                double slope = -2 / sqrt(M_PI) * exp(-z * z);
                if (slope == 0)
                        break;
                double step = (erfc(z) - y) / slope;
                z -= step / (1 + z * step);
        }
        return z;
}

double special_erfinv(double x)
{
        double size = fabs(x);
        if (!(size <= 1))
                return NAN;
        if (size == 1)
                return copysign(INFINITY, x);
        if (size > 0.5)
                return copysign(erfc_inverse(1 - size), x);
        double z = x * sqrt(M_PI) / 2;
        for (int i = 0; i < 4; i++) {
                double step = (erf(z) - x) / (2 / sqrt(M_PI) * exp(-z * z));
                z -= step / (1 + z * step);
        }
        return z;
}

double special_ndtri(double p)
{
        if (!(p >= 0 && p <= 1))
                return NAN;
        if (p == 0 || p == 1)
                return p == 0 ? -INFINITY : INFINITY;
        if (p > 0.25 && p < 0.75)
                return sqrt(2) * special_erfinv(2 * p - 1);
        return p < 0.5 ? -sqrt(2) * erfc_inverse(2 * p) : sqrt(2) * erfc_inverse(2 * (1 - p));
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
