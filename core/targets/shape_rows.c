// SPDX-License-Identifier: Apache-2.0
// shape_rows.c: pooling, padding, resizing: functions of torch.nn.functional whose operator depends
// on the input's shape or on a mode.
#include "core/targets/refuse.h"
#include "core/targets/shape_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- pooling ----
static Status max_pool_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        char base[64];
        snprintf(base, sizeof(base), "aten::%s%s", call->schema->name,
                 arg_bool(call, PY_MAX_POOL_INDICES, false) ? "_with_indices" : "");
        // Without a stride argument the stride is the window's size.
        Value stride = arg_is_none(call, PY_MAX_POOL_STRIDE) ? call->args[PY_MAX_POOL_KERNEL]
                                                             : call->args[PY_MAX_POOL_STRIDE];
        return ATEN(emitter, base, out, call->args[SELF], call->args[PY_MAX_POOL_KERNEL], stride,
                    call->args[PY_MAX_POOL_PADDING], call->args[PY_MAX_POOL_DILATION],
                    call->args[PY_MAX_POOL_CEIL_MODE]);
}

// (7, None) -> (7, the input's own width).
static Status fill_output_size(Value input, Value output_size, Value *out)
{
        if (!value_is_sequence(output_size)) {
                *out = value_ref(output_size);
                return STATUS_OK;
        }
        const TensorMeta *meta = &input.tensor->meta;
        uint32_t n = output_size.seq->n;
        if (n >= meta->rank)
                return fail(STATUS_VALUE, "Input dimension should be at least %u", n + 1);
        Seq *seq;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++) {
                Value size = output_size.seq->items[i];
                seq->items[i] =
                        size.kind == VALUE_NONE ? value_int(meta->size[meta->rank - n + i]) : value_ref(size);
        }
        *out = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

Status py_adaptive_pool(Emitter *emitter, const char *base, bool with_indices, Value input, Value output_size,
                        Value *out)
{
        _cleanup_(value_clear) Value size = value_none();
        TRY(fill_output_size(input, output_size, &size));
        if (with_indices || strstr(base, "max") == NULL)
                return ATEN(emitter, base, out, input, size);
        _cleanup_(value_clear) Value both = value_none();
        TRY(ATEN(emitter, base, &both, input, size));
        *out = value_ref(both.seq->items[0]);
        return STATUS_OK;
}

static Status adaptive_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        char base[64];
        snprintf(base, sizeof(base), "aten::%s", call->schema->name);
        bool indices = call->n_args > PY_ADAPTIVE_INDICES && arg_bool(call, PY_ADAPTIVE_INDICES, false);
        return py_adaptive_pool(emitter, base, indices, call->args[SELF], call->args[PY_ADAPTIVE_OUTPUT_SIZE],
                                out);
}

// ---- padding ----
Status py_pad(Emitter *emitter, Value input, Value pad, const char *mode, Value value, Value *out)
{
        Value fill = value.kind == VALUE_NONE ? value_float(0)
                     : value_is_number(value) ? value_float(python_float(value))
                                              : value;
        if (strcmp(mode, "constant") == 0)
                return ATEN(emitter, "aten::constant_pad_nd", out, input, pad, fill);
        if (value.kind != VALUE_NONE && !(value.kind == VALUE_FLOAT && value.f == 0) &&
            !(value.kind == VALUE_INT && value.i == 0))
                return fail(STATUS_VALUE, "Padding mode \"%s\" doesn't take in value argument", mode);
        uint32_t n = value_is_sequence(pad) ? pad.seq->n / 2 : 0;
        int rank = input.kind == VALUE_TENSOR ? input.tensor->meta.rank : 0;
        bool fits = n >= 1 && n <= 3 && pad.seq->n % 2 == 0 && (rank == (int)n + 1 || rank == (int)n + 2);
        if (!fits)
                return fail(STATUS_UNSUPPORTED,
                            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now "
                            "(padding of %u dimensions, input "
                            "of %d)",
                            n, rank);
        if (ops_present("aten::pad")) {
                _cleanup_(value_clear) Value text = value_none();
                TRY(text_value(mode, &text));
                return ATEN(emitter, "aten::pad", out, input, pad, text);
        }
        const char *family = strcmp(mode, "reflect") == 0     ? "reflection"
                             : strcmp(mode, "replicate") == 0 ? "replication"
                                                              : NULL;
        if (family == NULL)
                return fail(STATUS_UNSUPPORTED,
                            "padding mode \"%.40s\" is not supported; constant, reflect and replicate are",
                            mode);
        char base[64];
        snprintf(base, sizeof(base), "aten::%s_pad%ud", family, n);
        return ATEN(emitter, base, out, input, pad);
}

static Status pad_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return py_pad(emitter, call->args[SELF], call->args[PY_PAD_PAD], arg_text(call, PY_PAD_MODE),
                      call->args[PY_PAD_VALUE], out);
}

// ---- resizing ----
typedef struct Resize {
        Value input, size, scale; // borrowed; size and scale as given
        const char *mode;
        Value align_corners;
        bool recompute, antialias;
        int n_spatial;
} Resize;

static Status spatial_ints(const Resize *resize, int64_t out_size[3])
{
        bool list = value_is_sequence(resize->size);
        if (list && (int)resize->size.seq->n != resize->n_spatial)
                return fail(STATUS_VALUE,
                            "Input and output must have the same number of spatial dimensions, but got input "
                            "with spatial dimensions of %d "
                            "and output size of %u",
                            resize->n_spatial, resize->size.seq->n);
        for (int d = 0; d < resize->n_spatial; d++) {
                Value item = list ? resize->size.seq->items[d] : resize->size;
                if (!python_is_integral(item))
                        return fail(STATUS_VALUE, "interpolate(): size must hold ints, not %s",
                                    value_kind_name(item.kind));
                out_size[d] = python_int(item);
        }
        return STATUS_OK;
}

static Status spatial_scales(const Resize *resize, double out_scale[3])
{
        bool list = value_is_sequence(resize->scale);
        if (list && (int)resize->scale.seq->n != resize->n_spatial)
                return fail(STATUS_VALUE,
                            "Input and scale_factor must have the same number of spatial dimensions, but got "
                            "input with spatial dimensions "
                            "of %d and scale_factor "
                            "of %u values",
                            resize->n_spatial, resize->scale.seq->n);
        for (int d = 0; d < resize->n_spatial; d++) {
                Value item = list ? resize->scale.seq->items[d] : resize->scale;
                if (!value_is_number(item) || item.kind == VALUE_COMPLEX)
                        return fail(STATUS_VALUE, "interpolate(): scale_factor must hold numbers, not %s",
                                    value_kind_name(item.kind));
                out_scale[d] = python_float(item);
        }
        return STATUS_OK;
}

// The `output_size` and `scale_factors` of the .vec overloads: exactly one is given.
static Status resize_targets(const Resize *resize, bool want_size, Value *out_size, Value *out_scale)
{
        int64_t size[3] = { 0 };
        double scale[3] = { 0 };
        if (resize->size.kind != VALUE_NONE) {
                TRY(spatial_ints(resize, size));
                return value_ints_new(VALUE_LIST, size, (uint32_t)resize->n_spatial, out_size);
        }
        TRY(spatial_scales(resize, scale));
        if (want_size || resize->recompute) {
                for (int d = 0; d < resize->n_spatial; d++) {
                        double wide = floor((double)resize->input.tensor->meta.size[2 + d] * scale[d]);
                        if (!(wide >= 0 && wide < 4294967296.0))
                                return fail(STATUS_VALUE,
                                            "interpolate(): scale_factor %g gives no valid size", scale[d]);
                        size[d] = (int64_t)wide;
                }
                return value_ints_new(VALUE_LIST, size, (uint32_t)resize->n_spatial, out_size);
        }
        Seq *seq;
        TRY(seq_new((uint32_t)resize->n_spatial, &seq));
        for (int d = 0; d < resize->n_spatial; d++)
                seq->items[d] = value_float(scale[d]);
        *out_scale = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

static const struct {
        const char *mode;
        const char *ops[3]; // by number of spatial dimensions
        const char *antialiased;
        bool aligns;
} resize_modes[] = {
        { "nearest",
          { "aten::upsample_nearest1d.vec", "aten::upsample_nearest2d.vec", "aten::upsample_nearest3d.vec" },
          NULL,
          false },
        { "nearest-exact",
          { "aten::_upsample_nearest_exact1d.vec", "aten::_upsample_nearest_exact2d.vec",
            "aten::_upsample_nearest_exact3d.vec" },
          NULL,
          false },
        { "linear", { "aten::upsample_linear1d.vec", NULL, NULL }, NULL, true },
        { "bilinear",
          { NULL, "aten::upsample_bilinear2d.vec", NULL },
          "aten::_upsample_bilinear2d_aa.vec",
          true },
        { "trilinear", { NULL, NULL, "aten::upsample_trilinear3d.vec" }, NULL, true },
        { "bicubic",
          { NULL, "aten::upsample_bicubic2d.vec", NULL },
          "aten::_upsample_bicubic2d_aa.vec",
          true },
        { "lanczos", { NULL, NULL, NULL }, "aten::_upsample_lanczos2d_aa.vec", true },
        { "area",
          { "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d" },
          NULL,
          false },
};

static Status resize_check(const Resize *resize, bool aligns)
{
        if (resize->n_spatial < 1 || resize->n_spatial > 3)
                return fail(STATUS_VALUE, "Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD)",
                            resize->n_spatial + 2);
        if ((resize->size.kind == VALUE_NONE) == (resize->scale.kind == VALUE_NONE))
                return fail(STATUS_VALUE, resize->size.kind == VALUE_NONE
                                                  ? "either size or scale_factor should be defined"
                                                  : "only one of size or scale_factor should be defined");
        if (!aligns && resize->align_corners.kind != VALUE_NONE)
                return fail(STATUS_VALUE, "align_corners option can only be set with the interpolating "
                                          "modes: linear | bilinear | bicubic | trilinear");
        if (strcmp(resize->mode, "lanczos") == 0 && resize->align_corners.kind == VALUE_BOOL &&
            resize->align_corners.b)
                return fail(STATUS_VALUE, "Lanczos mode does not support align_corners=True");
        if (strcmp(resize->mode, "lanczos") == 0 && !resize->antialias)
                return fail(STATUS_VALUE, "Lanczos mode requires antialias=True");
        if (resize->recompute && resize->size.kind != VALUE_NONE)
                return fail(STATUS_VALUE, "recompute_scale_factor is not meaningful with an explicit size.");
        return STATUS_OK;
}

static Status resize_run(Emitter *emitter, const Resize *resize, Value *out)
{
        size_t row = 0;
        while (row < ARRAY_LENGTH(resize_modes) && strcmp(resize_modes[row].mode, resize->mode) != 0)
                row++;
        if (row == ARRAY_LENGTH(resize_modes))
                return fail(STATUS_VALUE, "interpolate(): mode \"%.40s\" is not known", resize->mode);
        TRY(resize_check(resize, resize_modes[row].aligns));
        const char *op = resize->antialias ? resize_modes[row].antialiased
                                           : resize_modes[row].ops[resize->n_spatial - 1];
        if (resize->antialias && (op == NULL || resize->n_spatial != 2))
                return fail(STATUS_VALUE,
                            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and "
                            "requires a 4-D tensor as input");
        if (op == NULL)
                return fail(STATUS_VALUE, "Got %dD input, but %s mode needs another number of dimensions",
                            resize->n_spatial + 2, resize->mode);
        bool area = strcmp(resize->mode, "area") == 0;
        _cleanup_(value_clear) Value size = value_none();
        _cleanup_(value_clear) Value scale = value_none();
        TRY(resize_targets(resize, area, &size, &scale));
        if (area)
                return ATEN(emitter, op, out, resize->input, size);
        if (!resize_modes[row].aligns)
                return EMIT(emitter, op, out, resize->input, size, scale);
        Value align = resize->align_corners.kind == VALUE_NONE ? value_bool(false) : resize->align_corners;
        return EMIT(emitter, op, out, resize->input, size, align, scale);
}

Status py_interpolate(Emitter *emitter, const Value *args, Value *out)
{
        Resize resize = { .input = args[SELF],
                          .size = args[PY_RESIZE_SIZE],
                          .scale = args[PY_RESIZE_SCALE],
                          .mode = args[PY_RESIZE_MODE].str->text,
                          .align_corners = args[PY_RESIZE_ALIGN],
                          .recompute =
                                  args[PY_RESIZE_RECOMPUTE].kind == VALUE_BOOL && args[PY_RESIZE_RECOMPUTE].b,
                          .antialias =
                                  args[PY_RESIZE_ANTIALIAS].kind == VALUE_BOOL && args[PY_RESIZE_ANTIALIAS].b,
                          .n_spatial = args[SELF].tensor->meta.rank - 2 };
        return resize_run(emitter, &resize, out);
}

static Status interpolate_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return py_interpolate(emitter, call->args, out);
}

static Status upsample_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Value args[] = {
                call->args[SELF],           call->args[PY_RESIZE_SIZE],  call->args[PY_RESIZE_SCALE],
                call->args[PY_RESIZE_MODE], call->args[PY_RESIZE_ALIGN], value_none(),
                value_bool(false)
        };
        return py_interpolate(emitter, args, out);
}

// ---- sampling ----
static Status grid_sample_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const char *const modes[] = { "bilinear", "nearest", "bicubic" }, *const paddings[] = {
                "zeros", "border", "reflection"
        };
        int mode = 0, padding = 0;
        while (mode < 3 && strcmp(modes[mode], arg_text(call, PY_GRID_SAMPLE_MODE)) != 0)
                mode++;
        while (padding < 3 && strcmp(paddings[padding], arg_text(call, PY_GRID_SAMPLE_PADDING_MODE)) != 0)
                padding++;
        if (mode == 3 || padding == 3)
                return fail(STATUS_VALUE,
                            "grid_sample(): mode is bilinear, nearest or bicubic and padding_mode zeros, "
                            "border or reflection; got "
                            "\"%.40s\", \"%.40s\"",
                            arg_text(call, PY_GRID_SAMPLE_MODE), arg_text(call, PY_GRID_SAMPLE_PADDING_MODE));
        return ATEN(emitter, "aten::grid_sampler", out, call->args[SELF], call->args[PY_GRID_SAMPLE_GRID],
                    value_int(mode), value_int(padding),
                    value_bool(arg_bool(call, PY_GRID_SAMPLE_ALIGN, false)));
}

#define MAX_POOL(n)                                                                                          \
        "(Tensor input, int[" n "] kernel_size, int[" n "]? stride=None, int[" n "] padding=0, int[" n       \
        "] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Any"
#define AVG_POOL(n)                                                                                          \
        "(Tensor input, int[" n "] kernel_size, int[" n "]? stride=None, int[" n                             \
        "] padding=0, bool ceil_mode=False, bool count_include_pad=True"
static const PyRow rows[] = {
        { "F.max_pool1d torch.max_pool1d", "py::max_pool1d" MAX_POOL("1"), .expand = max_pool_expand,
          .needs = "aten::max_pool1d", .traits = TRAIT_FRESH },
        { "F.max_pool2d torch.max_pool2d", "py::max_pool2d" MAX_POOL("2"), .expand = max_pool_expand,
          .needs = "aten::max_pool2d", .traits = TRAIT_FRESH },
        { "F.max_pool3d torch.max_pool3d", "py::max_pool3d" MAX_POOL("3"), .expand = max_pool_expand,
          .needs = "aten::max_pool3d", .traits = TRAIT_FRESH },
        { "F.max_pool1d_with_indices", "py::max_pool1d_with_indices" MAX_POOL("1"),
          .emits = "aten::max_pool1d_with_indices a0 a1 ea2 a3 a4 a5", .traits = TRAIT_FRESH },
        { "F.max_pool2d_with_indices", "py::max_pool2d_with_indices" MAX_POOL("2"),
          .emits = "aten::max_pool2d_with_indices a0 a1 ea2 a3 a4 a5", .traits = TRAIT_FRESH },
        { "F.max_pool3d_with_indices", "py::max_pool3d_with_indices" MAX_POOL("3"),
          .emits = "aten::max_pool3d_with_indices a0 a1 ea2 a3 a4 a5", .traits = TRAIT_FRESH },
        { "F.avg_pool1d torch.avg_pool1d", "py::avg_pool1d" AVG_POOL("1") ") -> Tensor",
          .emits = "aten::avg_pool1d a0 a1 ea2 a3 a4 a5", .traits = TRAIT_FRESH },
        { "F.avg_pool2d torch._C._nn.avg_pool2d",
          "py::avg_pool2d" AVG_POOL("2") ", int? divisor_override=None) -> Tensor",
          .emits = "aten::avg_pool2d a0 a1 ea2 a3 a4 a5 a6", .traits = TRAIT_FRESH },
        { "F.avg_pool3d torch._C._nn.avg_pool3d",
          "py::avg_pool3d" AVG_POOL("3") ", int? divisor_override=None) -> Tensor",
          .emits = "aten::avg_pool3d a0 a1 ea2 a3 a4 a5 a6", .traits = TRAIT_FRESH },
        { "F.adaptive_avg_pool1d", "py::adaptive_avg_pool1d(Tensor input, Any output_size) -> Tensor",
          .expand = adaptive_expand, .needs = "aten::adaptive_avg_pool1d", .traits = TRAIT_FRESH },
        { "F.adaptive_avg_pool2d", "py::adaptive_avg_pool2d(Tensor input, Any output_size) -> Tensor",
          .expand = adaptive_expand, .needs = "aten::adaptive_avg_pool2d", .traits = TRAIT_FRESH },
        { "F.adaptive_avg_pool3d", "py::adaptive_avg_pool3d(Tensor input, Any output_size) -> Tensor",
          .expand = adaptive_expand, .needs = "aten::adaptive_avg_pool3d", .traits = TRAIT_FRESH },
        { "F.adaptive_max_pool1d F.adaptive_max_pool1d_with_indices",
          "py::adaptive_max_pool1d(Tensor input, Any output_size, bool return_indices=False) -> Any",
          .expand = adaptive_expand, .needs = "aten::adaptive_max_pool1d", .traits = TRAIT_FRESH },
        { "F.adaptive_max_pool2d F.adaptive_max_pool2d_with_indices",
          "py::adaptive_max_pool2d(Tensor input, Any output_size, bool return_indices=False) -> Any",
          .expand = adaptive_expand, .needs = "aten::adaptive_max_pool2d", .traits = TRAIT_FRESH },
        { "F.adaptive_max_pool3d F.adaptive_max_pool3d_with_indices",
          "py::adaptive_max_pool3d(Tensor input, Any output_size, bool return_indices=False) -> Any",
          .expand = adaptive_expand, .needs = "aten::adaptive_max_pool3d", .traits = TRAIT_FRESH },
        { "F.pad torch._C._nn.pad",
          "py::pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
          .expand = pad_expand, .needs = "aten::constant_pad_nd|aten::pad" },
        { "F.interpolate",
          "py::interpolate(Tensor input, Any size=None, Any scale_factor=None, str mode='nearest', bool? "
          "align_corners=None, "
          "bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
          .expand = interpolate_expand, .needs = "aten::upsample_nearest2d.vec|aten::upsample_bilinear2d.vec",
          .traits = TRAIT_FRESH },
        { "F.upsample F.upsample_nearest",
          "py::upsample(Tensor input, Any size=None, Any scale_factor=None, str mode='nearest', bool? "
          "align_corners=None) -> Tensor",
          .expand = upsample_expand, .needs = "aten::upsample_nearest2d.vec|aten::upsample_bilinear2d.vec" },
        { "F.upsample_bilinear",
          "py::upsample_bilinear(Tensor input, Any size=None, Any scale_factor=None, str mode='bilinear', "
          "bool? align_corners=True) -> "
          "Tensor",
          .expand = upsample_expand, .needs = "aten::upsample_bilinear2d.vec" },
        { "F.unfold",
          "py::unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] "
          "stride=1) -> Tensor",
          .emits = "aten::im2col a0 a1 a2 a3 a4" },
        { "F.fold",
          "py::fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] "
          "padding=0, int[2] stride=1) -> Tensor",
          .emits = "aten::col2im a0 a1 a2 a3 a4 a5" },
        { "F.grid_sample",
          "py::grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? "
          "align_corners=None) -> Tensor",
          .expand = grid_sample_expand, .needs = "aten::grid_sampler" },
        { "F.affine_grid", "py::affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
          .emits = "aten::affine_grid_generator a0 a1 za2" },
};
const PyTable py_shape_rows = PY_TABLE(rows);
