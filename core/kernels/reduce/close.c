// SPDX-License-Identifier: Apache-2.0
// close.c: torch.isclose and the statistics of assert_close, in the arithmetic of the tensors'
// dtype: each step is rounded to it, as PyTorch's kernels round. Integers are compared as float32
// when there is a tolerance, and their differences are exact.
#include "core/kernels/reduce/close.h"
#include <math.h>
#include <string.h>
#include "core/base/number.h"
#include "core/tensor/convert.h"

enum { CLOSE_TILE = 256 };

typedef struct Elements { // of one comparison
        Dtype dtype;
        double rtol, atol;
        bool equal_nan, has_tolerance;
} Elements;

// `error` and `relative` are of the element's dtype.
typedef struct Difference {
        bool close;
        double error, relative, size; // size: |b|
} Difference;

typedef struct Extreme { // the greatest so far; NaN is greater than everything
        double value;
        int64_t at;
} Extreme;

typedef struct Totals {
        Extreme worst_abs, worst_rel; // of elements that are not close
        double max_abs, max_rel, scale;
        int64_t n_mismatched;
} Totals;

// ---- tolerances ----
static void dtype_tolerances(Dtype dtype, double *out_rtol, double *out_atol)
{
        static const struct {
                double rtol, atol;
        } rows[DTYPE_COUNT] = {
                [DTYPE_F16] = { 1e-3, 1e-5 }, [DTYPE_BF16] = { 1.6e-2, 1e-5 }, [DTYPE_F32] = { 1.3e-6, 1e-5 },
                [DTYPE_F64] = { 1e-7, 1e-7 }, [DTYPE_C64] = { 1.3e-6, 1e-5 },  [DTYPE_C128] = { 1e-7, 1e-7 }
        };
        *out_rtol = rows[dtype].rtol;
        *out_atol = rows[dtype].atol;
}

void close_tolerances(Dtype a, Dtype b, const CloseRule *rule, double *out_rtol, double *out_atol)
{
        double rtol_b, atol_b;
        if (rule->given) {
                *out_rtol = rule->rtol;
                *out_atol = rule->atol;
                return;
        }
        dtype_tolerances(a, out_rtol, out_atol);
        dtype_tolerances(b, &rtol_b, &atol_b);
        *out_rtol = MAX(*out_rtol, rtol_b);
        *out_atol = MAX(*out_atol, atol_b);
}

// ---- one element ----
static float rounded(Dtype dtype, float value)
{
        if (dtype == DTYPE_F16)
                return f16_to_f32(f32_to_f16(value));
        return dtype == DTYPE_BF16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

static Difference differ_f32(const Elements *of, float a, float b)
{
        bool same = a == b || (of->equal_nan && isnan(a) && isnan(b));
        if (same)
                return (Difference){ .close = true, .size = fabsf(b) };
        float error = rounded(of->dtype, fabsf(a - b));
        float part = rounded(of->dtype, fabsf((float)of->rtol * b));
        float allowed = rounded(of->dtype, part + (float)of->atol);
        return (Difference){ .close = of->has_tolerance && isfinite(error) && error <= allowed,
                             .error = error,
                             .relative = rounded(of->dtype, error / fabsf(b)),
                             .size = fabsf(b) };
}

static Difference differ_f64(const Elements *of, double a, double b)
{
        bool same = a == b || (of->equal_nan && isnan(a) && isnan(b));
        if (same)
                return (Difference){ .close = true, .size = fabs(b) };
        double error = fabs(a - b), allowed = fabs(of->rtol * b) + of->atol;
        return (Difference){ .close = of->has_tolerance && isfinite(error) && error <= allowed,
                             .error = error,
                             .relative = error / fabs(b),
                             .size = fabs(b) };
}

static Difference differ_i64(const Elements *of, int64_t a, int64_t b)
{
        float wanted = (float)b;
        if (a == b)
                return (Difference){ .close = true, .size = fabsf(wanted) };
        int64_t error = (int64_t)((uint64_t)a - (uint64_t)b), size = b; // PyTorch's wrap, too
        error = error < 0 ? (int64_t)(0 - (uint64_t)error) : error;
        size = size < 0 ? (int64_t)(0 - (uint64_t)size) : size;
        float rough = fabsf((float)a - wanted), allowed = fabsf((float)of->rtol * wanted) + (float)of->atol;
        return (Difference){ .close = of->has_tolerance && isfinite(rough) && rough <= allowed,
                             .error = (double)error,
                             .relative = (float)error / (float)size,
                             .size = (double)size };
}

static double modulus(Dtype dtype, ComplexF64 value)
{
        return dtype == DTYPE_C64 ? hypotf((float)value.re, (float)value.im) : hypot(value.re, value.im);
}

static Difference differ_c128(const Elements *of, ComplexF64 a, ComplexF64 b)
{
        double size = modulus(of->dtype, b);
        bool nan_a = isnan(a.re) || isnan(a.im), nan_b = isnan(b.re) || isnan(b.im);
        if ((a.re == b.re && a.im == b.im) || (of->equal_nan && nan_a && nan_b))
                return (Difference){ .close = true, .size = size };
        double error = modulus(of->dtype, (ComplexF64){ a.re - b.re, a.im - b.im });
        double allowed = of->rtol * size + of->atol, relative = error / size;
        return (Difference){ .close = of->has_tolerance && isfinite(error) && error <= allowed,
                             .error = error,
                             .relative = of->dtype == DTYPE_C64 ? (float)relative : relative,
                             .size = size };
}

// ---- all elements ----
static void take_worse(Extreme *extreme, double value, int64_t at)
{
        if (!isnan(extreme->value) && !(value <= extreme->value))
                *extreme = (Extreme){ value, at };
}

static void add_difference(Totals *totals, const Difference *it, int64_t at)
{
        if (!(it->error <= totals->max_abs))
                totals->max_abs = isnan(totals->max_abs) ? NAN : it->error;
        if (!(it->relative <= totals->max_rel))
                totals->max_rel = isnan(totals->max_rel) ? NAN : it->relative;
        if (isfinite(it->size) && it->size > totals->scale)
                totals->scale = it->size;
        if (it->close)
                return;
        totals->n_mismatched++;
        take_worse(&totals->worst_abs, it->error, at);
        take_worse(&totals->worst_rel, it->relative, at);
}

typedef union Tile {
        float f[CLOSE_TILE];
        double d[CLOSE_TILE];
        int64_t i[CLOSE_TILE];
        ComplexF64 c[CLOSE_TILE];
} Tile;

static TileClass class_of(Dtype dtype)
{
        switch (dtype_info[dtype].kind) {
        case DTYPE_KIND_COMPLEX:
                return TILE_C128;
        case DTYPE_KIND_FLOAT:
                return dtype == DTYPE_F64 ? TILE_F64 : TILE_F32;
        default:
                return TILE_I64;
        }
}

static void add_tiles(const Elements *of, const Tile *a, const Tile *b, size_t n, int64_t at, Totals *totals)
{
        TileClass class = class_of(of->dtype);
        for (size_t k = 0; k < n; k++) {
                Difference it = class == TILE_F32   ? differ_f32(of, a->f[k], b->f[k])
                                : class == TILE_F64 ? differ_f64(of, a->d[k], b->d[k])
                                : class == TILE_I64 ? differ_i64(of, a->i[k], b->i[k])
                                                    : differ_c128(of, a->c[k], b->c[k]);
                add_difference(totals, &it, at + (int64_t)k);
        }
}

// Where row `row` of the last dimension begins, in elements.
static int64_t row_offset(const TensorMeta *meta, int64_t row)
{
        int64_t offset = 0;
        for (int dim = meta->rank - 2; dim >= 0; dim--) {
                offset += row % meta->size[dim] * meta->stride[dim];
                row /= meta->size[dim];
        }
        return offset;
}

static void load_part(const Tensor *tensor, int64_t offset, size_t n, Tile *out)
{
        const TensorMeta *meta = &tensor->meta;
        int64_t width = dtype_info[meta->dtype].bytes;
        int64_t stride = meta->rank == 0 ? 0 : meta->stride[meta->rank - 1];
        const char *from = (const char *)tensor_data(tensor) + offset * width;
        tile_loader(class_of(meta->dtype), meta->dtype)(from, stride * width, n, out);
}

static Status add_all(const Elements *of, const Tensor *a, const Tensor *b, const RunContext *ctx,
                      Totals *totals)
{
        const TensorMeta *meta = &a->meta;
        int64_t n = meta_numel(meta), last = meta->rank == 0 ? 1 : meta->size[meta->rank - 1];
        Work work = { .ctx = ctx };
        Tile tile_a, tile_b;
        for (int64_t at = 0; at < n;) {
                int64_t row = at / last, column = at % last, part = MIN(last - column, (int64_t)CLOSE_TILE);
                int64_t step_a = meta->rank == 0 ? 0 : a->meta.stride[meta->rank - 1];
                int64_t step_b = meta->rank == 0 ? 0 : b->meta.stride[meta->rank - 1];
                if (work_stops(&work, part * 16))
                        return run_poll(ctx);
                load_part(a, row_offset(&a->meta, row) + column * step_a, (size_t)part, &tile_a);
                load_part(b, row_offset(&b->meta, row) + column * step_b, (size_t)part, &tile_b);
                add_tiles(of, &tile_a, &tile_b, (size_t)part, at, totals);
                at += part;
        }
        return STATUS_OK;
}

// ---- messages ----
void text_add_python(Text *text, double value)
{
        char number[NUMBER_TEXT_MAX];
        text_add_n(text, number, number_print_python(value, number));
}

static void add_amount(Text *message, bool is_int, double value)
{
        if (is_int)
                text_add_int(message, (int64_t)value);
        else
                text_add_python(message, value);
}

static void add_allowed(Text *message, bool equality, double tolerance)
{
        if (equality)
                return;
        text_add(message, " (up to ");
        text_add_python(message, tolerance);
        text_add(message, " allowed)");
}

static void add_complex_part(Text *message, double value)
{
        char number[NUMBER_TEXT_MAX];
        size_t n = number_print_python(value, number);
        if (n > 2 && memcmp(number + n - 2, ".0", 2) == 0)
                n -= 2; // repr(complex) writes 1 and not 1.0
        text_add_n(message, number, n);
}

static void add_scalar(Text *message, const Scalar *scalar)
{
        if (scalar->kind == SCALAR_BOOL) {
                text_add(message, scalar->i != 0 ? "True" : "False");
        } else if (scalar->kind == SCALAR_INT) {
                text_add_int(message, scalar->i);
        } else if (scalar->kind == SCALAR_FLOAT) {
                text_add_python(message, scalar->re);
        } else if (scalar->re == 0 && !signbit(scalar->re)) {
                add_complex_part(message, scalar->im);
                text_add_char(message, 'j');
        } else {
                text_add_char(message, '(');
                add_complex_part(message, scalar->re);
                text_add(message, signbit(scalar->im) && !isnan(scalar->im) ? "" : "+");
                add_complex_part(message, scalar->im);
                text_add(message, "j)");
        }
}

static double scalar_size(const Scalar *scalar)
{
        return scalar->kind <= SCALAR_INT ? fabs((double)scalar->i) : hypot(scalar->re, scalar->im);
}

void scalar_mismatch(const Scalar *a, const Scalar *b, double rtol, double atol, Text *message)
{
        bool equality = rtol == 0 && atol == 0, is_int = a->kind <= SCALAR_INT && b->kind <= SCALAR_INT;
        Scalar gap = { SCALAR_FLOAT, 0, a->re - b->re, a->im - b->im };
        double difference = scalar_size(&gap), size = scalar_size(b);
        if (is_int)
                difference = a->i > b->i ? (double)((uint64_t)a->i - (uint64_t)b->i)
                                         : (double)((uint64_t)b->i - (uint64_t)a->i);
        text_addf(message, "Scalars are not %s!\n\nExpected ", equality ? "equal" : "close");
        add_scalar(message, b);
        text_add(message, " but got ");
        add_scalar(message, a);
        text_add(message, ".\nAbsolute difference: ");
        add_amount(message, is_int, difference);
        add_allowed(message, equality, atol);
        text_add(message, "\nRelative difference: ");
        text_add_python(message, size == 0 ? INFINITY : difference / size);
        add_allowed(message, equality, rtol);
}

static Scalar scalar_of(const Tensor *tensor)
{
        Dtype dtype = tensor->meta.dtype;
        Tile tile;
        load_part(tensor, 0, 1, &tile);
        switch (class_of(dtype)) {
        case TILE_C128:
                return (Scalar){ SCALAR_COMPLEX, 0, tile.c[0].re, tile.c[0].im };
        case TILE_I64:
                return (Scalar){ dtype == DTYPE_BOOL ? SCALAR_BOOL : SCALAR_INT, tile.i[0], (double)tile.i[0],
                                 0 };
        default:
                return (Scalar){ SCALAR_FLOAT, 0, dtype == DTYPE_F64 ? tile.d[0] : (double)tile.f[0], 0 };
        }
}

// "(0, 3)" of a flat index; "(3,)" where there is one dimension.
static void add_index(Text *message, const TensorMeta *meta, int64_t at)
{
        int64_t index[MAX_RANK] = { 0 };
        for (int dim = meta->rank - 1; dim >= 0; dim--) {
                index[dim] = at % meta->size[dim];
                at /= meta->size[dim];
        }
        text_add(message, " at index (");
        for (int dim = 0; dim < meta->rank; dim++)
                text_addf(message, "%s%lld", dim == 0 ? "" : ", ", (long long)index[dim]);
        text_add(message, meta->rank == 1 ? ",)" : ")");
}

static void tensor_mismatch(const Elements *of, const TensorMeta *meta, const Totals *totals, Text *message)
{
        bool equality = !of->has_tolerance;
        int64_t n = meta_numel(meta);
        text_addf(message, "Tensor-likes are not %s!\n\nMismatched elements: %lld / %lld (%.1f%%)\n",
                  equality ? "equal" : "close", (long long)totals->n_mismatched, (long long)n,
                  (double)totals->n_mismatched / (double)n * 100.0);
        text_add(message, "Greatest absolute difference: ");
        add_amount(message, class_of(of->dtype) == TILE_I64, totals->worst_abs.value);
        add_index(message, meta, totals->worst_abs.at);
        add_allowed(message, equality, of->atol);
        text_add(message, "\nGreatest relative difference: ");
        text_add_python(message, totals->worst_rel.value);
        add_index(message, meta, totals->worst_rel.at);
        add_allowed(message, equality, of->rtol);
}

// ---- attributes ----
static bool same_attributes(const TensorMeta *a, const TensorMeta *b, Text *message)
{
        char shape_a[256], shape_b[256];
        if (!meta_same_shape(a, b)) {
                text_addf(message,
                          "The values for attribute 'shape' do not match: torch.Size(%s) != torch.Size(%s).",
                          shape_text(a->rank, a->size, shape_a, sizeof(shape_a)),
                          shape_text(b->rank, b->size, shape_b, sizeof(shape_b)));
                return false;
        }
        if (a->dtype != b->dtype) {
                text_addf(message, "The values for attribute 'dtype' do not match: %s != %s.",
                          dtype_info[a->dtype].torch_name, dtype_info[b->dtype].torch_name);
                return false;
        }
        return true;
}

Status tensor_close(const Tensor *a, const Tensor *b, const CloseRule *rule, const RunContext *ctx,
                    Closeness *out_close, Text *message)
{
        const TensorMeta *meta = &a->meta;
        Totals totals = { .n_mismatched = 0 };
        Elements of = { .dtype = meta->dtype, .equal_nan = rule->equal_nan };
        if (!same_attributes(meta, &b->meta, message)) {
                *out_close = (Closeness){ .max_abs = NAN, .max_rel = NAN };
                return STATUS_OK;
        }
        close_tolerances(meta->dtype, meta->dtype, rule, &of.rtol, &of.atol);
        of.has_tolerance = of.rtol != 0 || of.atol != 0;
        TRY(add_all(&of, a, b, ctx, &totals));
        *out_close = (Closeness){ .close = totals.n_mismatched == 0,
                                  .max_abs = totals.max_abs,
                                  .max_rel = totals.max_rel,
                                  .n_mismatched = totals.n_mismatched,
                                  .n = meta_numel(meta),
                                  .scale = totals.scale };
        if (out_close->close)
                return STATUS_OK;
        if (meta->rank == 0) {
                Scalar actual = scalar_of(a), expected = scalar_of(b);
                scalar_mismatch(&actual, &expected, of.rtol, of.atol, message);
        } else {
                tensor_mismatch(&of, meta, &totals, message);
        }
        return STATUS_OK;
}
