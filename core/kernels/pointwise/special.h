// SPDX-License-Identifier: Apache-2.0
// Special functions that libm lacks, in double; callers that compute in float round the result.
// Relative error below 1e-12 away from zeros. NaN gives NaN.
#pragma once

double special_digamma(double x);        // copysign(inf, -x) at 0; NaN at negative integers
double special_zeta(double s, double q); // Hurwitz: the sum of (q + k)^-s; s > 1
// The n-th derivative of digamma; n >= 0.
double special_polygamma(int n, double x);
// The first derivative of digamma. Near its poles the digits depend on the type that it is computed
// in, so there are two.
double special_trigamma(double x);
float special_trigammaf(float x);
double special_erfinv(double x);
double special_ndtri(double p); // the inverse of the normal distribution's function
// Modified Bessel functions of the first kind, times exp(-|x|).
double special_i0e(double x);
double special_i1e(double x);
double special_erfcx(double x);    // exp(x^2) * erfc(x)
double special_log_ndtr(double x); // the logarithm of the normal distribution's function
// Modified Bessel functions of the second kind; `scaled`: times exp(x).
double special_k0(double x, int scaled);
double special_k1(double x, int scaled);
double special_spherical_j0(double x); // sin(x) / x
// The regularised incomplete gamma function: the part of gamma(a) below x, and the part above.
double special_gammainc(double a, double x);
double special_gammaincc(double a, double x);
