// SPDX-License-Identifier: Apache-2.0
// torchvision_rows.c: functions of torchvision that torch.fx.trace leaves whole (torch.fx.wrap).
#include <math.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/operators.h"

// ---- branches that are dropped in training ----
static Status stochastic_depth_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input");
        double p = compose_double(&c, "p");
        const char *mode = NAMED(&c, "mode").str->text;
        bool by_row = strcmp(mode, "row") == 0;
        if (!(p >= 0 && p <= 1))
                return fail(STATUS_VALUE, "drop probability has to be between 0 and 1, but got %g", p);
        if (!by_row && strcmp(mode, "batch") != 0)
                return fail(STATUS_VALUE, "mode has to be either 'batch' or 'row', but got %.40s", mode);
        if (!compose_bool(&c, "training") || p == 0)
                return compose_end(&c, input, out);
        const TensorMeta *meta = compose_meta(&c, input);
        int64_t size[MAX_RANK];
        for (int d = 0; d < meta->rank; d++)
                size[d] = by_row && d == 0 ? meta->size[0] : 1;
        Value noise = OP(&c, "aten::zeros", compose_ints(&c, size, meta->rank), value_dtype(meta->dtype));
        noise = OP(&c, "aten::bernoulli.p", noise, value_float(1 - p));
        if (p < 1)
                noise = OP(&c, "aten::div.Scalar", noise, value_float(1 - p));
        return compose_end(&c, OP(&c, "aten::mul.Tensor", input, noise), out);
}

static Status drop_block_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (compose_bool(&c, "training") && compose_double(&c, "p") != 0)
                return fail(STATUS_UNSUPPORTED, "%s in training is not supported", c.name);
        return compose_end(&c, NAMED(&c, "input"), out);
}

// ---- Swin ----
// The four pixels of each square side by side in the last dimension, down first.
static Status patch_merging_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x"), corners[4];
        const TensorMeta *meta = compose_meta(&c, x);
        if (meta->rank < 3)
                return fail(STATUS_SHAPE, "_patch_merging_pad: expected [..., H, W, C]");
        int64_t height = meta->size[meta->rank - 3], width = meta->size[meta->rank - 2];
        x = OP(&c, "aten::constant_pad_nd", x, INTS(&c, 0, 0, 0, width % 2, 0, height % 2), value_int(0));
        for (int i = 0; i < 4; i++) {
                Value rows = OP(&c, "aten::slice.Tensor", x, value_int(-3), value_int(i % 2), value_none(),
                                value_int(2));
                corners[i] = OP(&c, "aten::slice.Tensor", rows, value_int(-2), value_int(i / 2), value_none(),
                                value_int(2));
        }
        return compose_end(&c, OP(&c, "aten::cat", compose_list(&c, corners, 4), value_int(-1)), out);
}

static Status position_bias_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t window[MAX_RANK], pixels;
        if (compose_int_list(&c, "window_size", window) != 2 || !mul_i64(window[0], window[1], &pixels))
                return fail(STATUS_VALUE, "_get_relative_position_bias: window_size must have two numbers");
        Value places = compose_list(&c, (Value[]){ NAMED(&c, "relative_position_index") }, 1);
        Value bias = OP(&c, "aten::index.Tensor", NAMED(&c, "relative_position_bias_table"), places);
        bias = OP(&c, "aten::view", bias, INTS(&c, pixels, pixels, -1));
        bias = OP(&c, "aten::contiguous", OP(&c, "aten::permute", bias, INTS(&c, 2, 0, 1)));
        return compose_end(&c, OP(&c, "aten::unsqueeze", bias, value_int(0)), out);
}

// Sizes of one call: of the image, of it padded to whole windows; windows, their shift, heads.
typedef struct Windows {
        int64_t n, size[2], padded[2], window[2], shift[2], channels, heads;
        bool shifted;
} Windows;

static Status windows_init(Compose *c, const TensorMeta *input, Windows *w)
{
        int64_t window[MAX_RANK], shift[MAX_RANK];
        int n_window = compose_int_list(c, "window_size", window),
            n_shift = compose_int_list(c, "shift_size", shift);
        w->heads = compose_int(c, "num_heads");
        if (input->rank != 4 || n_window != 2 || n_shift != 2 || w->heads <= 0 ||
            input->size[3] % w->heads != 0)
                return fail(STATUS_SHAPE, "shifted_window_attention: expected an input of [N, H, W, C], two "
                                          "sizes of windows and of shifts, and heads that divide C");
        w->n = input->size[0];
        w->channels = input->size[3];
        w->shifted = false;
        for (int d = 0; d < 2; d++) {
                int64_t size = input->size[1 + d], step = window[d];
                if (step <= 0 || shift[d] < 0 || shift[d] > step || size > INT32_MAX || step > INT32_MAX)
                        return fail(STATUS_VALUE, "shifted_window_attention: a window of %ld, shifted by %ld",
                                    (long)step, (long)shift[d]);
                w->size[d] = size;
                w->window[d] = step;
                w->padded[d] = (size + step - 1) / step * step;
                w->shift[d] = step >= w->padded[d] ? 0 : shift[d];
                w->shifted |= w->shift[d] != 0;
        }
        return STATUS_OK;
}

static Value rolled(Compose *c, const Windows *w, Value x, int sign)
{
        return !w->shifted ? x
                           : OP(c, "aten::roll", x, INTS(c, sign * w->shift[0], sign * w->shift[1]),
                                INTS(c, 1, 2));
}

// [n, H, W, channels] to [n * windows, pixels of a window, channels].
static Value in_windows(Compose *c, const Windows *w, Value x, int64_t n, int64_t channels)
{
        const int64_t *step = w->window;
        Value parts =
                OP(c, "aten::view", x,
                   INTS(c, n, w->padded[0] / step[0], step[0], w->padded[1] / step[1], step[1], channels));
        return OP(c, "aten::reshape", OP(c, "aten::permute", parts, INTS(c, 0, 1, 3, 2, 4, 5)),
                  INTS(c, -1, step[0] * step[1], channels));
}

static Value out_of_windows(Compose *c, const Windows *w, Value x)
{
        const int64_t *step = w->window;
        Value parts = OP(
                c, "aten::view", x,
                INTS(c, w->n, w->padded[0] / step[0], w->padded[1] / step[1], step[0], step[1], w->channels));
        return OP(c, "aten::reshape", OP(c, "aten::permute", parts, INTS(c, 0, 1, 3, 2, 4, 5)),
                  INTS(c, w->n, w->padded[0], w->padded[1], w->channels));
}

// Which of three bands along a dimension a place lies in: before the last window, in it before the
// pixels that came around, and those.
static Value bands(Compose *c, const Windows *w, int d)
{
        Value at = OP(c, "aten::arange", value_int(w->padded[d]));
        Value last = OP(c, "aten::ge.Scalar", at, value_int(w->padded[d] - w->window[d]));
        Value around = OP(c, "aten::ge.Scalar", at, value_int(w->padded[d] - w->shift[d]));
        if (w->shift[d] == 0) // PyTorch's slice [-0:] is everything
                return OP(c, "aten::full", INTS(c, w->padded[d]), value_int(2), value_dtype(DTYPE_I64));
        return OP(c, "aten::add.Tensor", OP(c, "aten::to.dtype", last, value_dtype(DTYPE_I64)),
                  OP(c, "aten::to.dtype", around, value_dtype(DTYPE_I64)));
}

// -100 between pixels of one window that were no neighbours before the shift, else 0:
// [windows, 1, pixels, pixels].
static Value shift_mask(Compose *c, const Windows *w, Dtype dtype)
{
        Value rows = OP(c, "aten::mul.Scalar", bands(c, w, 0), value_int(3));
        Value place = OP(c, "aten::add.Tensor", OP(c, "aten::unsqueeze", rows, value_int(1)), bands(c, w, 1));
        place = OP(c, "aten::squeeze.dim",
                   in_windows(c, w, OP(c, "aten::reshape", place, INTS(c, 1, w->padded[0], w->padded[1], 1)),
                              1, 1),
                   value_int(2));
        Value differs = OP(c, "aten::ne.Tensor", OP(c, "aten::unsqueeze", place, value_int(1)),
                           OP(c, "aten::unsqueeze", place, value_int(2)));
        Value mask = OP(c, "aten::mul.Scalar", OP(c, "aten::to.dtype", differs, value_dtype(dtype)),
                        value_float(-100));
        return OP(c, "aten::unsqueeze", mask, value_int(1));
}

static Value directions(Compose *c, Value x)
{
        Value size = OP(c, "aten::linalg_vector_norm", x, value_int(2), INTS(c, -1), value_bool(true));
        return OP(c, "aten::div.Tensor", x, OP(c, "aten::clamp_min", size, value_float(1e-12)));
}

static Value window_scores(Compose *c, const Windows *w, Value q, Value k)
{
        if (!compose_has(c, "logit_scale")) {
                double scale = pow((double)(w->channels / w->heads), -0.5);
                return OP(c, "aten::matmul", OP(c, "aten::mul.Scalar", q, value_float(scale)),
                          OP(c, "aten::mT", k));
        }
        Value scores = OP(c, "aten::matmul", directions(c, q), OP(c, "aten::mT", directions(c, k)));
        Value limit = value_float(log(100.0));
        return OP(c, "aten::mul.Tensor", scores,
                  OP(c, "aten::exp", OP(c, "aten::clamp_max", NAMED(c, "logit_scale"), limit)));
}

// With learned scales keys have no bias.
static Value window_bias(Compose *c)
{
        Value bias = NAMED(c, "qkv_bias");
        if (!compose_has(c, "logit_scale") || bias.kind == VALUE_NONE)
                return bias;
        int64_t third = meta_numel(compose_meta(c, bias)) / 3;
        Value parts[] = { OP(c, "aten::slice.Tensor", bias, value_int(0), value_int(0), value_int(third)),
                          OP(c, "aten::zeros", INTS(c, third), value_dtype(compose_meta(c, bias)->dtype)),
                          OP(c, "aten::slice.Tensor", bias, value_int(0), value_int(2 * third)) };
        return OP(c, "aten::cat", compose_list(c, parts, 3), value_int(0));
}

static Value window_attention(Compose *c, const Windows *w, Value x)
{
        const int64_t pixels = w->window[0] * w->window[1], head = w->channels / w->heads;
        Value all = OP(c, "aten::linear", x, NAMED(c, "qkv_weight"), window_bias(c)), part[3];
        all = OP(c, "aten::reshape", all, INTS(c, -1, pixels, 3, w->heads, head));
        all = OP(c, "aten::permute", all, INTS(c, 2, 0, 3, 1, 4));
        for (int i = 0; i < 3; i++)
                part[i] = OP(c, "aten::select.int", all, value_int(0), value_int(i));
        Value scores = OP(c, "aten::add.Tensor", window_scores(c, w, part[0], part[1]),
                          NAMED(c, "relative_position_bias"));
        if (w->shifted) {
                int64_t windows = w->padded[0] / w->window[0] * (w->padded[1] / w->window[1]);
                scores = OP(c, "aten::view", scores, INTS(c, -1, windows, w->heads, pixels, pixels));
                scores = OP(c, "aten::add.Tensor", scores,
                            shift_mask(c, w, compose_failed(c) ? DTYPE_F32 : compose_meta(c, x)->dtype));
                scores = OP(c, "aten::view", scores, INTS(c, -1, w->heads, pixels, pixels));
        }
        Value weights = OP(c, "aten::softmax.int", scores, value_int(-1));
        weights = OP(c, "aten::dropout", weights, NAMED(c, "attention_dropout"), NAMED(c, "training"));
        Value mixed = OP(c, "aten::transpose.int", OP(c, "aten::matmul", weights, part[2]), value_int(1),
                         value_int(2));
        mixed = OP(c, "aten::reshape", mixed, INTS(c, -1, pixels, w->channels));
        mixed = OP(c, "aten::linear", mixed, NAMED(c, "proj_weight"), NAMED(c, "proj_bias"));
        return OP(c, "aten::dropout", mixed, NAMED(c, "dropout"), NAMED(c, "training"));
}

static Status window_attention_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "input");
        Windows w;
        TRY(windows_init(&c, compose_meta(&c, x), &w));
        x = OP(&c, "aten::constant_pad_nd", x,
               INTS(&c, 0, 0, 0, w.padded[1] - w.size[1], 0, w.padded[0] - w.size[0]), value_int(0));
        x = in_windows(&c, &w, rolled(&c, &w, x, -1), w.n, w.channels);
        x = rolled(&c, &w, out_of_windows(&c, &w, window_attention(&c, &w, x)), 1);
        for (int d = 0; d < 2; d++)
                x = OP(&c, "aten::slice.Tensor", x, value_int(1 + d), value_int(0), value_int(w.size[d]));
        return compose_end(&c, OP(&c, "aten::contiguous", x), out);
}

#define BLOCKS                                                                                               \
        "(Tensor input, float p, int block_size, bool inplace=False, float eps=1e-06, bool training=True)"
static const PyRow rows[] = {
        { "torchvision.ops.stochastic_depth.stochastic_depth",
          "py::stochastic_depth(Tensor input, float p, str mode, bool training=True) -> Tensor",
          .expand = stochastic_depth_expand, .needs = "aten::bernoulli.p" },
        { "torchvision.ops.drop_block.drop_block2d", "py::drop_block2d" BLOCKS " -> Tensor",
          .expand = drop_block_expand },
        { "torchvision.ops.drop_block.drop_block3d", "py::drop_block3d" BLOCKS " -> Tensor",
          .expand = drop_block_expand },
        { "torchvision.models.swin_transformer._patch_merging_pad",
          "py::patch_merging_pad(Tensor x) -> Tensor", .expand = patch_merging_expand },
        { "torchvision.models.swin_transformer._get_relative_position_bias",
          "py::get_relative_position_bias(Tensor relative_position_bias_table, Tensor "
          "relative_position_index, "
          "int[] window_size) -> Tensor",
          .expand = position_bias_expand },
        { "torchvision.models.swin_transformer.shifted_window_attention",
          "py::shifted_window_attention(Tensor input, Tensor qkv_weight, Tensor proj_weight, Tensor "
          "relative_position_bias, int[] window_size, int num_heads, int[] shift_size, float "
          "attention_dropout=0.0, float dropout=0.0, Tensor? qkv_bias=None, Tensor? proj_bias=None, Tensor? "
          "logit_scale=None, bool training=True) -> Tensor",
          .expand = window_attention_expand, .needs = "aten::roll" },
};
const PyTable py_torchvision_rows = PY_TABLE(rows);
