// SPDX-License-Identifier: Apache-2.0
// fft_compose.c: the functions of torch.fft. Sizes are cut or padded, dtypes promoted, norms
// chosen; one of the three transforms of fft.c does the rest.
#include <inttypes.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/ops/fft.h"
#include "core/ops/pointwise.h"

typedef struct Axes {
        int n, dim[MAX_RANK];
        int64_t size[MAX_RANK]; // of the transforms' input
        int64_t last_size;      // real results along the last one (to_real)
} Axes;

typedef struct FftRow {
        const char *name;
        bool forward;
} FftRow;

static const FftRow *row_of(Compose *c)
{
        return c->call->op->row;
}

// ---- dtypes, norms ----
static Value promoted(Compose *c, Value x, bool to_complex)
{
        Dtype dtype = compose_meta(c, x)->dtype;
        if (point_is_complex(dtype))
                return x;
        if (!dtype_is_float(dtype))
                dtype = DTYPE_F32;
        if (dtype != DTYPE_F32 && dtype != DTYPE_F64)
                compose_check(c, fail(STATUS_DTYPE, "Unsupported dtype %s", dtype_words(dtype)));
        return compose_cast(c, x, !to_complex ? dtype : dtype == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128);
}

static void expect_real(Compose *c, Value x, const char *words)
{
        Dtype dtype = compose_meta(c, x)->dtype;
        if (point_is_complex(dtype))
                compose_check(c, fail(STATUS_DTYPE, "%s expects a %s input tensor, but got %s",
                                      row_of(c)->name, words, dtype_words(dtype)));
}

static Value norm_mode(Compose *c, bool forward)
{
        Value norm = NAMED(c, "norm");
        const char *text = norm.kind == VALUE_STR ? norm.str->text : "backward";
        if (strcmp(text, "ortho") == 0)
                return value_int(FFT_NORM_BY_ROOT_N);
        if (strcmp(text, "backward") == 0)
                return value_int(forward ? FFT_NORM_NONE : FFT_NORM_BY_N);
        if (strcmp(text, "forward") != 0)
                compose_check(c, fail(STATUS_VALUE, "Invalid normalization mode: \"%s\"", text));
        return value_int(forward ? FFT_NORM_BY_N : FFT_NORM_NONE);
}

// ---- axes ----
static void check_size(Compose *c, int64_t n)
{
        if (n < 1)
                compose_check(c,
                              fail(STATUS_VALUE, "Invalid number of data points (%" PRId64 ") specified", n));
}

static void one_axis(Compose *c, Value x, Axes *out)
{
        const TensorMeta *meta = compose_meta(c, x);
        *out = (Axes){ .n = 1 };
        if (meta->rank == 0)
                compose_check(c, fail(STATUS_INDEX,
                                      "Dimension specified as %" PRId64 " but tensor has no dimensions",
                                      compose_int(c, "dim")));
        out->dim[0] = compose_dim(c, "dim", meta->rank);
        out->size[0] = compose_has(c, "n") ? compose_int(c, "n") : meta->size[out->dim[0]];
        check_size(c, out->size[0]);
}

static void read_dims(Compose *c, int rank, Axes *out)
{
        int64_t dims[MAX_RANK];
        uint32_t seen = 0;
        out->n = compose_int_list(c, "dim", dims);
        for (int i = 0; i < out->n && !compose_failed(c); i++) {
                if (rank == 0)
                        compose_check(c,
                                      fail(STATUS_INDEX,
                                           "Dimension specified as %" PRId64 " but tensor has no dimensions",
                                           dims[i]));
                compose_check(c, dim_wrap(dims[i], rank, &out->dim[i]));
                if (!compose_failed(c) && (seen >> out->dim[i] & 1) != 0)
                        compose_check(c, fail(STATUS_VALUE, "FFT dims must be unique"));
                seen |= 1u << out->dim[i];
        }
}

static void several_axes(Compose *c, Value x, Axes *out)
{
        const TensorMeta *meta = compose_meta(c, x);
        int64_t given[MAX_RANK];
        bool has_sizes = compose_has(c, "s"), has_dims = compose_has(c, "dim");
        int n_given = has_sizes ? compose_int_list(c, "s", given) : 0;
        *out = (Axes){ 0 };
        if (has_dims)
                read_dims(c, meta->rank, out);
        if (has_dims && has_sizes && n_given != out->n)
                compose_check(c, fail(STATUS_VALUE,
                                      "When given, dim and shape arguments must have the same length"));
        if (n_given > meta->rank)
                compose_check(c, fail(STATUS_VALUE,
                                      "Got shape with %d values but input tensor only has %d dimensions.",
                                      n_given, meta->rank));
        if (compose_failed(c))
                return;
        if (!has_dims) {
                out->n = has_sizes ? n_given : meta->rank;
                for (int i = 0; i < out->n; i++)
                        out->dim[i] = meta->rank - out->n + i;
        }
        for (int i = 0; i < out->n; i++) {
                out->size[i] = has_sizes && given[i] != -1 ? given[i] : meta->size[out->dim[i]];
                check_size(c, out->size[i]);
        }
}

// The sizes given are those of the real result.
static void to_real(Compose *c, Value x, bool given, Axes *axes)
{
        if (axes->n == 0) {
                compose_check(c, fail(STATUS_VALUE, "%s must transform at least one axis", row_of(c)->name));
                return;
        }
        int last = axes->n - 1;
        axes->last_size = given ? axes->size[last] : 2 * (compose_meta(c, x)->size[axes->dim[last]] - 1);
        check_size(c, axes->last_size);
        axes->size[last] = axes->last_size / 2 + 1;
}

// Cut and padded with zeros at the ends.
static Value resized(Compose *c, Value x, const Axes *axes)
{
        const int rank = compose_meta(c, x)->rank;
        int64_t pad[2 * MAX_RANK] = { 0 };
        bool pads = false;
        for (int i = 0; i < axes->n && !compose_failed(c); i++) {
                int d = axes->dim[i];
                int64_t have = compose_meta(c, x)->size[d], want = axes->size[i];
                if (have < want) {
                        pad[2 * (rank - 1 - d) + 1] = want - have;
                        pads = true;
                } else if (have > want) {
                        x = OP(c, "aten::slice.Tensor", x, value_int(d), value_int(0), value_int(want));
                }
        }
        return pads ? OP(c, "aten::constant_pad_nd", x, compose_ints(c, pad, 2 * rank)) : x;
}

static Value dims_of(Compose *c, const Axes *axes, int n)
{
        int64_t dims[MAX_RANK];
        for (int i = 0; i < n; i++)
                dims[i] = axes->dim[i];
        return compose_ints(c, dims, n);
}

static Value last_dim(Compose *c, const Axes *axes)
{
        return INTS(c, axes->dim[MAX(axes->n - 1, 0)]);
}

// ---- one dimension ----
static Value c2c(Compose *c, Value x, const Axes *axes, bool forward)
{
        return OP(c, "aten::_fft_c2c", resized(c, x, axes), dims_of(c, axes, axes->n), norm_mode(c, forward),
                  value_bool(forward));
}

// The backward transform of real numbers is the conjugate of the forward one.
static Value r2c(Compose *c, Value x, const Axes *axes, bool forward, bool onesided)
{
        Value result = OP(c, "aten::_fft_r2c", resized(c, promoted(c, x, false), axes),
                          dims_of(c, axes, axes->n), norm_mode(c, forward), value_bool(onesided));
        return forward ? result : OP(c, "aten::conj_physical", result);
}

static Status fft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        bool forward = row_of(&c)->forward;
        Axes axes;
        one_axis(&c, x, &axes);
        if (point_is_complex(compose_meta(&c, x)->dtype))
                return compose_end(&c, c2c(&c, x, &axes, forward), out);
        return compose_end(&c, r2c(&c, x, &axes, forward, false), out);
}

static Status rfft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        Axes axes;
        expect_real(&c, x, "real");
        one_axis(&c, x, &axes);
        return compose_end(&c, r2c(&c, x, &axes, row_of(&c)->forward, true), out);
}

static Status irfft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        bool forward = row_of(&c)->forward;
        Value x = promoted(&c, NAMED(&c, "self"), true);
        Axes axes;
        one_axis(&c, x, &axes);
        if (compose_failed(&c))
                return compose_end(&c, x, out);
        to_real(&c, x, compose_has(&c, "n"), &axes);
        x = resized(&c, x, &axes);
        if (forward)
                x = OP(&c, "aten::conj_physical", x);
        return compose_end(&c,
                           OP(&c, "aten::_fft_c2r", x, last_dim(&c, &axes), norm_mode(&c, forward),
                              value_int(axes.last_size)),
                           out);
}

// ---- several dimensions ----
static Status fftn_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = promoted(&c, NAMED(&c, "self"), true);
        Axes axes;
        several_axes(&c, x, &axes);
        return compose_end(&c, c2c(&c, x, &axes, row_of(&c)->forward), out);
}

static void expect_axes(Compose *c, const Axes *axes)
{
        if (axes->n == 0)
                compose_check(c, fail(STATUS_VALUE, "%s must transform at least one axis", row_of(c)->name));
}

static Status rfftn_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        Axes axes;
        expect_real(&c, x, "real-valued");
        several_axes(&c, x, &axes);
        expect_axes(&c, &axes);
        return compose_end(&c, r2c(&c, x, &axes, true, true), out);
}

static bool last_size_given(Compose *c)
{
        int64_t given[MAX_RANK];
        int n = compose_has(c, "s") ? compose_int_list(c, "s", given) : 0;
        return n > 0 && given[n - 1] != -1;
}

static Status irfftn_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = promoted(&c, NAMED(&c, "self"), true);
        Axes axes;
        several_axes(&c, x, &axes);
        to_real(&c, x, last_size_given(&c), &axes);
        return compose_end(&c,
                           OP(&c, "aten::_fft_c2r", resized(&c, x, &axes), dims_of(&c, &axes, axes.n),
                              norm_mode(&c, false), value_int(axes.last_size)),
                           out);
}

// Forward over all dimensions but the last, then the real transform of the conjugate.
static Status hfftn_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = promoted(&c, NAMED(&c, "self"), true), norm = norm_mode(&c, true);
        Axes axes;
        several_axes(&c, x, &axes);
        to_real(&c, x, last_size_given(&c), &axes);
        x = resized(&c, x, &axes);
        if (axes.n > 1)
                x = OP(&c, "aten::_fft_c2c", x, dims_of(&c, &axes, axes.n - 1), norm, value_bool(true));
        return compose_end(&c,
                           OP(&c, "aten::_fft_c2r", OP(&c, "aten::conj_physical", x), last_dim(&c, &axes),
                              norm, value_int(axes.last_size)),
                           out);
}

static Status ihfftn_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self"), norm = norm_mode(&c, false);
        Axes axes;
        expect_real(&c, x, "real-valued");
        several_axes(&c, x, &axes);
        expect_axes(&c, &axes);
        x = resized(&c, promoted(&c, x, false), &axes);
        Value half = OP(&c, "aten::conj_physical",
                        OP(&c, "aten::_fft_r2c", x, last_dim(&c, &axes), norm, value_bool(true)));
        if (axes.n > 1)
                half = OP(&c, "aten::_fft_c2c", half, dims_of(&c, &axes, axes.n - 1), norm,
                          value_bool(false));
        return compose_end(&c, half, out);
}

// ---- frequencies, shifts ----
static Status frequencies(Emitter *emitter, const OpCall *call, bool onesided, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t n = compose_int(&c, "n");
        double step = 1 / ((double)n * compose_double(&c, "d"));
        Value dtype = compose_has(&c, "dtype") ? NAMED(&c, "dtype") : value_dtype(DTYPE_F32);
        if (!compose_failed(&c) && dtype.kind == VALUE_DTYPE && dtype_is_int(dtype.dtype))
                return fail(STATUS_DTYPE, "%s requires a floating point or complex dtype",
                            onesided ? "rfftfreq" : "fftfreq");
        Value none = value_none();
        Value first = OP(&c, "aten::arange.start", value_int(0), value_int(onesided ? n / 2 + 1 : n - n / 2),
                         dtype, none, none, none);
        if (!onesided) {
                Value second = OP(&c, "aten::arange.start", value_int(-(n / 2)), value_int(0), dtype, none,
                                  none, none);
                const Value parts[] = { first, second };
                first = OP(&c, "aten::cat", compose_list(&c, parts, 2));
        }
        return compose_end(&c, OP(&c, "aten::mul.Scalar", first, value_float(step)), out);
}

static Status fftfreq_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return frequencies(emitter, call, false, out);
}

static Status rfftfreq_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return frequencies(emitter, call, true, out);
}

// By half of the size: rounded down to shift, up to shift back.
static Status shift_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, x);
        bool has_dims = compose_has(&c, "dim");
        int64_t dims[MAX_RANK], shifts[MAX_RANK];
        int n = has_dims ? compose_int_list(&c, "dim", dims) : meta->rank;
        if (n == 0) // what roll says
                return fail(STATUS_VALUE, "`shifts` required");
        for (int i = 0; i < n && !compose_failed(&c); i++) {
                int d = i;
                if (has_dims)
                        compose_check(&c, dim_wrap(dims[i], meta->rank, &d));
                dims[i] = d;
                shifts[i] = (meta->size[d] + !row_of(&c)->forward) / 2;
        }
        return compose_end(
                &c, OP(&c, "aten::roll", x, compose_ints(&c, shifts, n), compose_ints(&c, dims, n)), out);
}

#define ONE     "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
#define TWO     "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor"
#define SEVERAL "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
#define STEPS                                                                                                \
        "(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "    \
        "pin_memory=None) -> Tensor"
#define FFT(name_, arguments, function, forward_)                                                            \
        {                                                                                                    \
                .schema = "aten::fft_" name_ arguments, .expand = function##_expand, .traits = TRAIT_FRESH,  \
                .row = &(const FftRow)                                                                       \
                {                                                                                            \
                        name_, forward_                                                                      \
                }                                                                                            \
        }
const OpDef fft_compose_ops[] = {
        FFT("fft", ONE, fft, true),
        FFT("ifft", ONE, fft, false),
        FFT("rfft", ONE, rfft, true),
        FFT("ihfft", ONE, rfft, false),
        FFT("irfft", ONE, irfft, false),
        FFT("hfft", ONE, irfft, true),
        FFT("fft2", TWO, fftn, true),
        FFT("ifft2", TWO, fftn, false),
        FFT("rfft2", TWO, rfftn, true),
        FFT("irfft2", TWO, irfftn, false),
        FFT("hfft2", TWO, hfftn, true),
        FFT("ihfft2", TWO, ihfftn, false),
        FFT("fftn", SEVERAL, fftn, true),
        FFT("ifftn", SEVERAL, fftn, false),
        FFT("rfftn", SEVERAL, rfftn, true),
        FFT("irfftn", SEVERAL, irfftn, false),
        FFT("hfftn", SEVERAL, hfftn, true),
        FFT("ihfftn", SEVERAL, ihfftn, false),
        FFT("fftfreq", STEPS, fftfreq, true),
        FFT("rfftfreq", STEPS, rfftfreq, true),
        FFT("fftshift", "(Tensor self, int[1]? dim=None) -> Tensor", shift, true),
        FFT("ifftshift", "(Tensor self, int[1]? dim=None) -> Tensor", shift, false),
};
OP_FILE(fft_compose_ops);
