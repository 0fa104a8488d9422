// SPDX-License-Identifier: Apache-2.0
// swin3d_rows.c: functions of torchvision's video Swin that torch.fx.trace leaves whole.
#include <math.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/operators.h"

enum { DIMS = 3 }; // depth, height, width

static void three(Compose *c, const char *name, int64_t out[MAX_RANK])
{
        if (compose_int_list(c, name, out) != DIMS)
                compose_check(c, fail(STATUS_VALUE, "%s: %s must have three numbers", c->name, name));
}

static Value tuple_of(Compose *c, Value list)
{
        list.kind = compose_failed(c) ? list.kind : VALUE_TUPLE;
        return list;
}

// A window is no larger than the image; along such a dimension nothing is shifted.
static Status window_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t shift[MAX_RANK], size[MAX_RANK], window[MAX_RANK];
        compose_begin(&c, emitter, call);
        three(&c, "shift_size", shift);
        three(&c, "size_dhw", size);
        three(&c, "window_size", window);
        for (int d = 0; d < DIMS && !compose_failed(&c); d++) {
                if (size[d] > window[d])
                        continue;
                window[d] = size[d];
                shift[d] = 0;
        }
        Value pair[] = { compose_ints(&c, window, DIMS), compose_ints(&c, shift, DIMS) };
        return compose_end(&c, tuple_of(&c, compose_list(&c, pair, 2)), out);
}

static Status bias_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t window[MAX_RANK], volume = 1;
        compose_begin(&c, emitter, call);
        three(&c, "window_size", window);
        for (int d = 0; d < DIMS && !compose_failed(&c); d++)
                if (!mul_i64(volume, window[d], &volume))
                        compose_check(&c, fail(STATUS_VALUE, "%s: window_size is too large", c.name));
        Value index = NAMED(&c, "relative_position_index");
        for (int d = 0; d < 2; d++)
                index = OP(&c, "aten::slice.Tensor", index, value_int(d), value_int(0), value_int(volume));
        Value places = compose_list(&c, (Value[]){ OP(&c, "aten::flatten.using_ints", index) }, 1);
        Value bias = OP(&c, "aten::index.Tensor", NAMED(&c, "relative_position_bias_table"), places);
        bias = OP(&c, "aten::view", bias, INTS(&c, volume, volume, -1));
        bias = OP(&c, "aten::contiguous", OP(&c, "aten::permute", bias, INTS(&c, 2, 0, 1)));
        return compose_end(&c, OP(&c, "aten::unsqueeze", bias, value_int(0)), out);
}

static Status pad_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t size[MAX_RANK], patch[MAX_RANK], pad[DIMS] = { 0 };
        compose_begin(&c, emitter, call);
        three(&c, "size_dhw", size);
        three(&c, "patch_size", patch);
        for (int d = 0; d < DIMS && !compose_failed(&c); d++) {
                if (patch[d] <= 0 || size[d] < 0)
                        return fail(STATUS_VALUE, "_compute_pad_size_3d: %ld in patches of %ld",
                                    (long)size[d], (long)patch[d]);
                pad[d] = (patch[d] - size[d] % patch[d]) % patch[d];
        }
        return compose_end(&c, tuple_of(&c, compose_ints(&c, pad, DIMS)), out);
}

// ---- attention ----
// Of one call: the padded image, windows, their shift, heads.
typedef struct Volume {
        int64_t n, size[DIMS], padded[DIMS], window[DIMS], shift[DIMS], channels, heads;
        int64_t windows, voxels; // per image; per window
        bool shifted;
} Volume;

static Status volume_init(Compose *c, const TensorMeta *input, Volume *v)
{
        int64_t window[MAX_RANK], shift[MAX_RANK];
        three(c, "window_size", window);
        three(c, "shift_size", shift);
        v->heads = compose_int(c, "num_heads");
        if (compose_failed(c))
                return c->status;
        if (input->rank != 5 || v->heads <= 0 || input->size[4] % v->heads != 0)
                return fail(STATUS_SHAPE,
                            "shifted_window_attention_3d: expected an input of [B, T, H, W, C] and "
                            "heads that divide C");
        *v = (Volume){
                .n = input->size[0], .channels = input->size[4], .heads = v->heads, .windows = 1, .voxels = 1
        };
        for (int d = 0; d < DIMS; d++) {
                int64_t size = input->size[1 + d], step = window[d];
                if (step <= 0 || shift[d] < 0 || shift[d] > step || size > INT32_MAX || step > INT32_MAX)
                        return fail(STATUS_VALUE,
                                    "shifted_window_attention_3d: a window of %ld, shifted by %ld",
                                    (long)step, (long)shift[d]);
                v->size[d] = size;
                v->window[d] = step;
                v->shift[d] = shift[d];
                v->padded[d] = (size + step - 1) / step * step;
                v->shifted |= shift[d] != 0;
                if (!mul_i64(v->windows, v->padded[d] / step, &v->windows) ||
                    !mul_i64(v->voxels, step, &v->voxels))
                        return fail(STATUS_TOO_LARGE, "shifted_window_attention_3d: windows are too large");
        }
        return STATUS_OK;
}

static Value rolled(Compose *c, const Volume *v, Value x, int sign)
{
        if (!v->shifted)
                return x;
        return OP(c, "aten::roll", x, INTS(c, sign * v->shift[0], sign * v->shift[1], sign * v->shift[2]),
                  INTS(c, 1, 2, 3));
}

// [n, T, H, W, channels] to [n * windows, voxels of a window, channels].
static Value in_windows(Compose *c, const Volume *v, Value x, int64_t n, int64_t channels)
{
        const int64_t *step = v->window, *all = v->padded;
        Value parts = OP(c, "aten::view", x,
                         INTS(c, n, all[0] / step[0], step[0], all[1] / step[1], step[1], all[2] / step[2],
                              step[2], channels));
        return OP(c, "aten::reshape", OP(c, "aten::permute", parts, INTS(c, 0, 1, 3, 5, 2, 4, 6, 7)),
                  INTS(c, n * v->windows, v->voxels, channels));
}

static Value out_of_windows(Compose *c, const Volume *v, Value x)
{
        const int64_t *step = v->window, *all = v->padded;
        Value parts = OP(c, "aten::view", x,
                         INTS(c, v->n, all[0] / step[0], all[1] / step[1], all[2] / step[2], step[0], step[1],
                              step[2], v->channels));
        return OP(c, "aten::reshape", OP(c, "aten::permute", parts, INTS(c, 0, 1, 4, 2, 5, 3, 6, 7)),
                  INTS(c, v->n, all[0], all[1], all[2], v->channels));
}

// torchvision numbers the bands of each dimension as slices: [0, -window), [-window, -shift),
// [-shift, end); without a shift the last one is everything.
static Value bands(Compose *c, const int64_t *padded, const int64_t *window, const int64_t *shift, int d)
{
        if (shift[d] == 0)
                return OP(c, "aten::full", INTS(c, padded[d]), value_int(2), value_dtype(DTYPE_I64));
        Value at = OP(c, "aten::arange", value_int(padded[d]));
        Value last = OP(c, "aten::ge.Scalar", at, value_int(padded[d] - window[d]));
        Value around = OP(c, "aten::ge.Scalar", at, value_int(padded[d] - shift[d]));
        return OP(c, "aten::add.Tensor", OP(c, "aten::to.dtype", last, value_dtype(DTYPE_I64)),
                  OP(c, "aten::to.dtype", around, value_dtype(DTYPE_I64)));
}

// -100 between voxels of one window that were no neighbours before the shift, else 0:
// [windows, voxels, voxels].
static Value shift_mask(Compose *c, const Volume *v, Dtype dtype)
{
        Value part[DIMS], place = value_none();
        for (int d = 0; d < DIMS; d++) {
                int64_t shape[DIMS] = { 1, 1, 1 };
                shape[d] = v->padded[d];
                part[d] = OP(c, "aten::view", bands(c, v->padded, v->window, v->shift, d),
                             compose_ints(c, shape, DIMS));
                place = d == 0 ? part[0]
                               : OP(c, "aten::add.Tensor", OP(c, "aten::mul.Scalar", place, value_int(3)),
                                    part[d]);
        }
        const int64_t *all = v->padded;
        place = in_windows(c, v, OP(c, "aten::reshape", place, INTS(c, 1, all[0], all[1], all[2], 1)), 1, 1);
        place = OP(c, "aten::squeeze.dim", place, value_int(2));
        Value differs = OP(c, "aten::ne.Tensor", OP(c, "aten::unsqueeze", place, value_int(1)),
                           OP(c, "aten::unsqueeze", place, value_int(2)));
        return OP(c, "aten::mul.Scalar", OP(c, "aten::to.dtype", differs, value_dtype(dtype)),
                  value_float(-100));
}

static Status mask_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t size[MAX_RANK], window[MAX_RANK], shift[MAX_RANK];
        Volume v = { .windows = 1, .voxels = 1 };
        compose_begin(&c, emitter, call);
        three(&c, "size_dhw", size);
        three(&c, "window_size", window);
        three(&c, "shift_size", shift);
        for (int d = 0; d < DIMS && !compose_failed(&c); d++) {
                bool fits = window[d] > 0 && size[d] >= 0 && size[d] <= INT32_MAX &&
                            size[d] % window[d] == 0 && shift[d] >= 0 && shift[d] <= window[d];
                if (!fits || !mul_i64(v.windows, size[d] / window[d], &v.windows) ||
                    !mul_i64(v.voxels, window[d], &v.voxels))
                        return fail(STATUS_VALUE,
                                    "_compute_attention_mask_3d: %ld in windows of %ld, shifted "
                                    "by %ld",
                                    (long)size[d], (long)window[d], (long)shift[d]);
                v.padded[d] = size[d];
                v.window[d] = window[d];
                v.shift[d] = shift[d];
        }
        if (compose_failed(&c)) // no windows are known: nothing may be divided by them
                return compose_end(&c, value_none(), out);
        Value x = NAMED(&c, "x");
        return compose_end(&c, shift_mask(&c, &v, compose_meta(&c, x)->dtype), out);
}

static Value attention(Compose *c, const Volume *v, Value x)
{
        const int64_t head = v->channels / v->heads, voxels = v->voxels, rows = v->n * v->windows;
        Value all = OP(c, "aten::linear", x, NAMED(c, "qkv_weight"), NAMED(c, "qkv_bias")), part[3];
        all = OP(c, "aten::reshape", all, INTS(c, rows, voxels, 3, v->heads, head));
        all = OP(c, "aten::permute", all, INTS(c, 2, 0, 3, 1, 4));
        for (int i = 0; i < 3; i++)
                part[i] = OP(c, "aten::select.int", all, value_int(0), value_int(i));
        Value q = OP(c, "aten::mul.Scalar", part[0], value_float(pow((double)head, -0.5)));
        Value scores = OP(c, "aten::add.Tensor", OP(c, "aten::matmul", q, OP(c, "aten::mT", part[1])),
                          NAMED(c, "relative_position_bias"));
        if (v->shifted) {
                scores = OP(c, "aten::view", scores, INTS(c, v->n, v->windows, v->heads, voxels, voxels));
                Value mask = shift_mask(c, v, compose_meta(c, x)->dtype);
                mask = OP(c, "aten::unsqueeze", OP(c, "aten::unsqueeze", mask, value_int(1)), value_int(0));
                scores = OP(c, "aten::view", OP(c, "aten::add.Tensor", scores, mask),
                            INTS(c, rows, v->heads, voxels, voxels));
        }
        Value weights = OP(c, "aten::softmax.int", scores, value_int(-1));
        weights = OP(c, "aten::dropout", weights, NAMED(c, "attention_dropout"), NAMED(c, "training"));
        Value mixed = OP(c, "aten::transpose.int", OP(c, "aten::matmul", weights, part[2]), value_int(1),
                         value_int(2));
        mixed = OP(c, "aten::reshape", mixed, INTS(c, rows, voxels, v->channels));
        mixed = OP(c, "aten::linear", mixed, NAMED(c, "proj_weight"), NAMED(c, "proj_bias"));
        return OP(c, "aten::dropout", mixed, NAMED(c, "dropout"), NAMED(c, "training"));
}

static Status attention_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Volume v = { 0 };
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "input");
        TRY(volume_init(&c, compose_meta(&c, x), &v));
        x = OP(&c, "aten::constant_pad_nd", x,
               INTS(&c, 0, 0, 0, v.padded[2] - v.size[2], 0, v.padded[1] - v.size[1], 0,
                    v.padded[0] - v.size[0]),
               value_int(0));
        x = in_windows(&c, &v, rolled(&c, &v, x, -1), v.n, v.channels);
        x = rolled(&c, &v, out_of_windows(&c, &v, attention(&c, &v, x)), 1);
        for (int d = 0; d < DIMS; d++)
                x = OP(&c, "aten::slice.Tensor", x, value_int(1 + d), value_int(0), value_int(v.size[d]));
        return compose_end(&c, OP(&c, "aten::contiguous", x), out);
}

#define SWIN "torchvision.models.video.swin_transformer."
static const PyRow rows[] = {
        { SWIN "_get_window_and_shift_size",
          "py::get_window_and_shift_size(int[] shift_size, int[] size_dhw, int[] window_size) -> Any",
          .expand = window_expand },
        { SWIN "_get_relative_position_bias",
          "py::get_relative_position_bias_3d(Tensor relative_position_bias_table, Tensor "
          "relative_position_index, int[] window_size) -> Tensor",
          .expand = bias_expand },
        { SWIN "_compute_pad_size_3d", "py::compute_pad_size_3d(int[] size_dhw, int[] patch_size) -> Any",
          .expand = pad_expand },
        { SWIN "_compute_attention_mask_3d",
          "py::compute_attention_mask_3d(Tensor x, int[] size_dhw, int[] window_size, int[] shift_size) -> "
          "Tensor",
          .expand = mask_expand },
        { SWIN "shifted_window_attention_3d",
          "py::shifted_window_attention_3d(Tensor input, Tensor qkv_weight, Tensor proj_weight, Tensor "
          "relative_position_bias, int[] window_size, int num_heads, int[] shift_size, float "
          "attention_dropout=0.0, float dropout=0.0, Tensor? qkv_bias=None, Tensor? proj_bias=None, bool "
          "training=True) -> Tensor",
          .expand = attention_expand, .needs = "aten::roll" },
};
const PyTable py_swin3d_rows = PY_TABLE(rows);
