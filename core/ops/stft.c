// SPDX-License-Identifier: Apache-2.0
// stft.c: the short-time Fourier transform, and its inverse: windows of a signal are transformed;
// what comes back is added up where windows overlap, and divided by the sum of squared windows.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/fft.h"
#include "core/ops/pointwise.h"

typedef struct Frames {
        int64_t n_fft, hop, win;
        Value window; // of n_fft points; None: all ones
} Frames;

static bool complex_tensor(Value value)
{
        return value.kind == VALUE_TENSOR && point_is_complex(value.tensor->meta.dtype);
}

static void read_frames(Compose *c, Frames *out)
{
        out->n_fft = compose_int(c, "n_fft");
        out->hop = compose_has(c, "hop_length") ? compose_int(c, "hop_length") : out->n_fft / 4;
        out->win = compose_has(c, "win_length") ? compose_int(c, "win_length") : out->n_fft;
        out->window = NAMED(c, "window");
        if (out->hop <= 0)
                compose_check(c, fail(STATUS_VALUE,
                                      "%s(...): expected hop_length > 0, but got hop_length=%" PRId64,
                                      c->call->schema->name, out->hop));
        if (out->win <= 0 || out->win > out->n_fft)
                compose_check(c,
                              fail(STATUS_VALUE,
                                   "%s(...): expected 0 < win_length <= n_fft, but got win_length=%" PRId64,
                                   c->call->schema->name, out->win));
        if (out->window.kind != VALUE_TENSOR || compose_failed(c))
                return;
        const TensorMeta *meta = compose_meta(c, out->window);
        if (meta->rank != 1 || meta->size[0] != out->win)
                compose_check(
                        c, fail(STATUS_SHAPE,
                                "%s(...): expected a 1D window tensor of size equal to win_length=%" PRId64,
                                c->call->schema->name, out->win));
}

// In the middle of n_fft points, zeros at both ends.
static void place_window(Compose *c, Frames *frames, Dtype dtype)
{
        if (frames->win == frames->n_fft)
                return;
        if (frames->window.kind != VALUE_TENSOR)
                frames->window = OP(c, "aten::ones", INTS(c, frames->win), value_dtype(dtype));
        int64_t left = (frames->n_fft - frames->win) / 2;
        frames->window = OP(c, "aten::constant_pad_nd", frames->window,
                            INTS(c, left, frames->n_fft - frames->win - left));
}

// ---- forwards ----
// Half a window more at both ends.
static Value centred(Compose *c, Value x, int64_t n_fft)
{
        const int rank = compose_meta(c, x)->rank;
        for (int i = rank; i < 3; i++)
                x = OP(c, "aten::unsqueeze", x, value_int(0));
        x = OP(c, "aten::pad", x, INTS(c, n_fft / 2, n_fft / 2), NAMED(c, "pad_mode"));
        for (int i = rank; i < 3; i++)
                x = OP(c, "aten::squeeze.dim", x, value_int(0));
        return x;
}

static void check_signal(Compose *c, Value x, int64_t n_fft)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (compose_failed(c))
                return;
        if (!dtype_is_float(meta->dtype) && !point_is_complex(meta->dtype))
                compose_check(c, fail(STATUS_DTYPE,
                                      "stft(...): expected a tensor of floating point or complex values"));
        else if (meta->rank != 1 && meta->rank != 2)
                compose_check(c, fail(STATUS_SHAPE, "stft(...): expected a 1D or 2D tensor"));
        else if (n_fft <= 0 || n_fft > meta->size[meta->rank - 1])
                compose_check(c, fail(STATUS_VALUE,
                                      "stft(...): expected 0 < n_fft < %" PRId64 ", but got n_fft=%" PRId64,
                                      meta->size[meta->rank - 1], n_fft));
}

// -1: not given
static int flag(Compose *c, const char *name)
{
        return compose_has(c, name) ? compose_bool(c, name) : -1;
}

static Value transformed(Compose *c, Value frames)
{
        bool whole = complex_tensor(frames);
        int onesided = flag(c, "onesided");
        Value norm = value_int(compose_bool(c, "normalized") ? FFT_NORM_BY_ROOT_N : FFT_NORM_NONE);
        if (whole && onesided == 1)
                compose_check(
                        c, fail(STATUS_VALUE, "Cannot have onesided output if window or input is complex"));
        if (whole)
                return OP(c, "aten::_fft_c2c", frames, INTS(c, 2), norm, value_bool(true));
        return OP(c, "aten::_fft_r2c", frames, INTS(c, 2), norm, value_bool(onesided != 0));
}

static Status stft(Emitter *emitter, const OpCall *call, bool centre, Value *out)
{
        Compose c;
        Frames frames;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        bool is_complex = complex_tensor(x) || complex_tensor(NAMED(&c, "window"));
        int return_complex = flag(&c, "return_complex");
        if (return_complex < 0 && !is_complex)
                compose_check(&c,
                              fail(STATUS_VALUE,
                                   "stft requires the return_complex parameter be given for real inputs, "
                                   "and will further require that return_complex=True in a future PyTorch "
                                   "release."));
        if (compose_has(&c, "align_to_window"))
                compose_check(&c, fail(STATUS_UNSUPPORTED, "stft: align_to_window is not supported"));
        read_frames(&c, &frames);
        if (compose_meta(&c, x)->rank == 0)
                compose_check(&c, fail(STATUS_SHAPE, "stft(...): expected a 1D or 2D tensor"));
        if (centre)
                x = centred(&c, x, frames.n_fft);
        check_signal(&c, x, frames.n_fft);
        if (compose_failed(&c))
                return compose_end(&c, x, out);
        bool single = compose_meta(&c, x)->rank == 1;
        place_window(&c, &frames, compose_meta(&c, x)->dtype);
        if (single)
                x = OP(&c, "aten::unsqueeze", x, value_int(0));
        x = OP(&c, "aten::unfold", x, value_int(-1), value_int(frames.n_fft), value_int(frames.hop));
        if (frames.window.kind == VALUE_TENSOR)
                x = OP(&c, "aten::mul.Tensor", x, frames.window);
        x = OP(&c, "aten::transpose.int", transformed(&c, x), value_int(1), value_int(2));
        if (single)
                x = OP(&c, "aten::squeeze.dim", x, value_int(0));
        return compose_end(&c, return_complex == 0 ? OP(&c, "aten::view_as_real", x) : x, out);
}

static Status stft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return stft(emitter, call, false, out);
}

static Status stft_center_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return stft(emitter, call, arg_bool(call, STFT_CENTER, true), out);
}

// ---- backwards ----
// (batch, frames, n_fft) added up to (batch, length).
static Value overlapped(Compose *c, Value frames, const Frames *how, int64_t length)
{
        Value columns = OP(c, "aten::transpose.int", frames, value_int(1), value_int(2));
        Value image = OP(c, "aten::col2im", columns, INTS(c, 1, length), INTS(c, 1, how->n_fft),
                         INTS(c, 1, 1), INTS(c, 0, 0), INTS(c, 1, how->hop));
        return OP(c, "aten::squeeze.dims", image, INTS(c, 1, 2));
}

static void check_spectrum(Compose *c, Value x, int64_t n_fft, bool onesided)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (compose_failed(c))
                return;
        if (!complex_tensor(x))
                compose_check(c,
                              fail(STATUS_DTYPE, "istft requires a complex-valued input tensor matching the "
                                                 "output from stft with return_complex=True."));
        else if (meta->rank != 2 && meta->rank != 3)
                compose_check(c, fail(STATUS_SHAPE,
                                      "istft(...): expected a tensor with 3 or 4 dimensions, but got %d",
                                      meta->rank + 1));
        else if (meta_numel(meta) == 0)
                compose_check(c, fail(STATUS_SHAPE, "istft(...): input tensor cannot be empty."));
        else if (meta->size[meta->rank - 2] != (onesided ? n_fft / 2 + 1 : n_fft))
                compose_check(c, fail(STATUS_SHAPE,
                                      "istft(...): expected the frequency dimension (3rd to the last) of the "
                                      "input tensor to match %s when onesided=%s, but got %" PRId64,
                                      onesided ? "n_fft / 2 + 1" : "n_fft", onesided ? "True" : "False",
                                      meta->size[meta->rank - 2]));
}

typedef struct Range {
        int64_t start, end, length; // of the signal kept, and of all frames
} Range;

static Range kept_range(Compose *c, const Frames *frames, int64_t n_frames)
{
        int64_t last = 0;
        Range range = { 0 };
        if (!mul_i64(n_frames - 1, frames->hop, &last) || !add_i64(last, frames->n_fft, &range.length))
                compose_check(c, fail(STATUS_TOO_LARGE, "istft(...): the signal is too long"));
        range.start = compose_bool(c, "center") ? frames->n_fft / 2 : 0;
        range.end = range.length - range.start;
        if (compose_has(c, "length") && !add_i64(range.start, compose_int(c, "length"), &range.end))
                compose_check(c, fail(STATUS_TOO_LARGE, "istft(...): the signal is too long"));
        return range;
}

// Signal and sum of squared windows, which must not vanish.
static Value divided(Compose *c, Value signal, Value squares, const Range *range)
{
        Value dim = value_int(1), start = value_int(range->start), end = value_int(range->end);
        signal = OP(c, "aten::slice.Tensor", signal, dim, start, end);
        squares = OP(c, "aten::slice.Tensor", squares, dim, start, end);
        Value least = OP(c, "aten::min", OP(c, "aten::abs", squares));
        Value good = OP(c, "aten::logical_not", OP(c, "aten::lt.Scalar", least, value_float(1e-11)));
        OP(c, "aten::_assert_async.msg", good,
           compose_text(c,
                        "istft(...): window overlap add min is below 1e-11: the window is zero somewhere"));
        signal = OP(c, "aten::div.Tensor", signal, squares);
        if (!compose_failed(c) && range->end > range->length)
                signal = OP(c, "aten::constant_pad_nd", signal, INTS(c, 0, range->end - range->length));
        return signal;
}

static Status istft_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Frames frames;
        compose_begin(&c, emitter, call);
        read_frames(&c, &frames);
        Value x = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, x);
        bool single = meta->rank == 2;
        int onesided = flag(&c, "onesided");
        if (onesided < 0)
                onesided = meta->rank >= 2 && meta->size[meta->rank - 2] != frames.n_fft;
        check_spectrum(&c, x, frames.n_fft, onesided != 0);
        if (compose_bool(&c, "return_complex") || complex_tensor(frames.window))
                compose_check(&c, fail(STATUS_UNSUPPORTED, "istft: complex signals are not supported"));
        if (compose_failed(&c))
                return compose_end(&c, x, out);
        int64_t n_frames = meta->size[meta->rank - 1];
        Dtype dtype = meta->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
        place_window(&c, &frames, dtype);
        if (frames.window.kind != VALUE_TENSOR)
                frames.window = OP(&c, "aten::ones", INTS(&c, frames.n_fft), value_dtype(dtype));
        Range range = kept_range(&c, &frames, n_frames);
        if (single)
                x = OP(&c, "aten::unsqueeze", x, value_int(0));
        x = OP(&c, "aten::transpose.int", x, value_int(1), value_int(2));
        if (onesided == 0)
                x = OP(&c, "aten::slice.Tensor", x, value_int(-1), value_int(0),
                       value_int(frames.n_fft / 2 + 1));
        int norm = compose_bool(&c, "normalized") ? FFT_NORM_BY_ROOT_N : FFT_NORM_BY_N;
        x = OP(&c, "aten::_fft_c2r", x, INTS(&c, 2), value_int(norm), value_int(frames.n_fft));
        Value signal = overlapped(&c, OP(&c, "aten::mul.Tensor", x, frames.window), &frames, range.length);
        Value squares = OP(&c, "aten::expand", OP(&c, "aten::mul.Tensor", frames.window, frames.window),
                           INTS(&c, 1, n_frames, frames.n_fft));
        x = divided(&c, signal, overlapped(&c, squares, &frames, range.length), &range);
        return compose_end(&c, single ? OP(&c, "aten::squeeze.dim", x, value_int(0)) : x, out);
}

const OpDef stft_ops[] = {
        { .schema =
                  "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                  "window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
                  "align_to_window=None) -> Tensor",
          .expand = stft_expand,
          .traits = TRAIT_FRESH },
        { .schema = "aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
                    "Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, "
                    "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
          .expand = stft_center_expand,
          .traits = TRAIT_FRESH },
        { .schema = "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                    "window=None, bool center=True, bool normalized=False, bool? onesided=None, int? "
                    "length=None, bool return_complex=False) -> Tensor",
          .expand = istft_expand,
          .traits = TRAIT_FRESH },
};
OP_FILE(stft_ops);
