# SPDX-License-Identifier: Apache-2.0
"""Writes core/kernels/pointwise/vector_math.inc: coefficients of the polynomials behind the float32
functions of vector_math.h.

    python tools/generate/make_vector_math.py

Each polynomial minimises the largest weighted error on its interval (Lawson's reweighted least
squares, 60 digits for the values). Coefficients are then rounded to float32 one by one, lowest
first, the rest being fitted again each time, so that rounding errors do not add up.
"""

import pathlib

import mpmath
import numpy

mpmath.mp.dps = 60
TARGET = (pathlib.Path(__file__).resolve().parent.parent.parent / "core" / "kernels" / "pointwise"
          / "vector_math.inc")
POINTS = 1500


def lawson(basis, values, weights):
    share = numpy.ones(len(values)) / len(values)
    best, best_error = None, numpy.inf
    for _ in range(150):
        scale = weights * numpy.sqrt(share)
        solution = numpy.linalg.lstsq(basis * scale[:, None], values * scale, rcond=None)[0]
        error = numpy.abs((basis @ solution - values) * weights)
        if error.max() < best_error:
            best, best_error = solution, error.max()
        share = share * (error + 1e-30)
        share /= share.sum()
    return best, best_error


def fit(function, weight, low, high, degree):
    """Polynomial of `degree` near function(x) on low..high; the error counts times weight(x)."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    nodes = [(low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (k + mpmath.mpf(1) / 2) / POINTS)
             for k in range(POINTS)]
    x = numpy.array([float(node) for node in nodes])
    values = numpy.array([float(function(node)) for node in nodes])
    weights = numpy.array([float(weight(node)) for node in nodes])
    scale = float(max(abs(low), abs(high)))
    basis = numpy.stack([(x / scale) ** k for k in range(degree + 1)], axis=1)
    left, fixed = values.copy(), []
    for k in range(degree + 1):
        solution, _ = lawson(basis[:, k:], left, weights)
        coefficient = numpy.float32(solution[0] / scale**k)
        fixed.append(coefficient)
        left = left - float(coefficient) * x**k
    return fixed, float(numpy.abs(left * weights).max())


def exp_rest(r):
    return (mpmath.expm1(r) - r) / r**2


def log_rest(f):
    return (mpmath.log1p(f) - f + f**2 / 2) / f**3


def erf_rest(s):
    x = mpmath.sqrt(s)
    return mpmath.erf(x) / x - 1


def erfc_log(t):
    return mpmath.log(mpmath.erfc(t))


def normal_tail(t):
    return mpmath.erfc(t / SQRT2) / 2


def sin_rest(s):
    x = mpmath.sqrt(s)
    return (mpmath.sin(x) - x) / (x * s)


def cos_rest(s):
    return (mpmath.cos(mpmath.sqrt(s)) - 1 + s / 2) / s**2


def atan_rest(s):
    x = mpmath.sqrt(s)
    return (mpmath.atan(x) - x) / (x * s)


def asin_rest(s):
    x = mpmath.sqrt(s)
    return (mpmath.asin(x) - x) / (x * s)


def erfinv_ratio(w):
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def erfinv_middle(t):
    return erfinv_ratio(t + mpmath.mpf(5) / 2)


def erfinv_tail(t):
    return erfinv_ratio((t + 3)**2)


HALF_LN2 = mpmath.log(2) / 2 * mpmath.mpf("1.0005")
QUARTER_PI = (mpmath.pi / 4 * mpmath.mpf("1.0005")) ** 2
SQRT2 = mpmath.sqrt(2)
ROWS = [
    ("EXP", "exp(r) = 1 + r + r^2 P(r)", exp_rest, lambda r: abs(r**2 / mpmath.expm1(r)), -HALF_LN2, HALF_LN2,
     4),
    ("EXP2", "2^f = P(f), 0 <= f <= 1", lambda f: mpmath.mpf(2)**f, lambda f: mpmath.mpf(2)**-f, 0, 1, 4),
    ("EXP2M", "2^f = P(f), -1/2 <= f <= 1/2", lambda f: mpmath.mpf(2)**f, lambda f: mpmath.mpf(2)**-f,
     -0.5, 0.5, 5),
    ("LOG", "log(1 + f) = f - f^2 / 2 + f^3 P(f)", log_rest, lambda f: abs(f**3 / mpmath.log1p(f)),
     1 / SQRT2 - 1, SQRT2 - 1, 7),
    ("ERF", "erf(x) = x + x P(x^2), |x| <= 0.921875", erf_rest,
     lambda s: mpmath.sqrt(s) / mpmath.erf(mpmath.sqrt(s)), 1e-12, 0.921875**2, 5),
    ("ERFC", "log(erfc(t)) = P(t), 0.921875 <= t <= 4", erfc_log,
     lambda t: mpmath.erfc(t) + mpmath.mpf(10)**-9, 0.921875, 4, 7),
    ("TAIL", "log2(normal cdf(-t)) = P(t), 0 <= t <= 6, for t 2^P(t)",
     lambda t: mpmath.log(normal_tail(t), 2), lambda t: t * normal_tail(t) + mpmath.mpf(10)**-9, 0, 6, 8),
    ("SIN", "sin(r) = r + r^3 P(r^2)", sin_rest, lambda s: s, 1e-12, QUARTER_PI, 2),
    ("COS", "cos(r) = 1 - r^2 / 2 + r^4 P(r^2)", cos_rest, lambda s: s**2, 1e-12, QUARTER_PI, 2),
    ("ATAN", "atan(t) = t + t^3 P(t^2), |t| <= tan(pi / 8)", atan_rest, lambda s: s, 1e-12,
     (SQRT2 - 1)**2 * mpmath.mpf("1.0005"), 3),
    ("ERFINV", "erfinv(x) = x P(w - 5/2), w = -log(1 - x^2) <= 5", erfinv_middle,
     lambda t: 1 / erfinv_middle(t), -2.5, 2.5, 8),
    ("ERFINVT", "erfinv(x) = x P(sqrt(w) - 3), 5 <= w <= 16", erfinv_tail, lambda t: 1 / erfinv_tail(t),
     mpmath.sqrt(5) - 3, 1, 8),
    ("ASIN", "asin(t) = t + t^3 P(t^2), |t| <= 1/2", asin_rest, lambda s: s, 1e-12, 0.25, 4),
]


def pieces(name, value, count, bits):
    """`value` as a sum of floats; all but the last have at most `bits` significant bits."""
    for k in range(count):
        if k < count - 1:
            mantissa, exponent = mpmath.frexp(value)
            part = mpmath.ldexp(mpmath.nint(mantissa * 2**bits), exponent - bits)
        else:
            part = mpmath.mpf(float(numpy.float32(float(value))))
        yield f"#define {name}_{k} {float(part).hex()}F"
        value -= part


def main():
    lines = ["// SPDX-License-Identifier: Apache-2.0",
             "// Made by tools/generate/make_vector_math.py. Errors are those of the polynomials alone, "
             "relative to the", "// function.", "// clang-format off"]
    for name, what, function, weight, low, high, degree in ROWS:
        coefficients, error = fit(function, weight, low, high, degree)
        print(f"{name:5} degree {degree}: error {error:.2e} = 2^{numpy.log2(error):.2f}")
        lines.append(f"// {what}; error {error:.1e}")
        lines += [f"#define {name}_P{k} {float(c).hex()}F" for k, c in enumerate(coefficients)]
    lines.append("// log(2) and pi / 2 as sums of floats; the first of log(2) has room for a "
                 "factor of 8 bits.")
    lines += list(pieces("LN2", mpmath.log(2), 2, 16))
    lines += list(pieces("HALF_PI", mpmath.pi / 2, 3, 24))
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
