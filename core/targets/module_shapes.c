// SPDX-License-Identifier: Apache-2.0
// module_shapes.c: torch.nn classes that move elements about: padding, resizing, flattening,
// shuffling; and distances.
#include <string.h>
#include "core/targets/module_table.h"
#include "core/targets/shape_rows.h"

// ---- padding ----
// ZeroPad2d(1) pads every side of the last two dimensions.
static Status padding_list(Value padding, int n_spatial, Value *out)
{
        int64_t pads[6];
        if (!python_is_integral(padding)) {
                if (!value_is_sequence(padding) || padding.seq->n != 2 * (uint32_t)n_spatial)
                        return fail(STATUS_VALUE, "padding must be an int or %d ints", 2 * n_spatial);
                *out = value_ref(padding);
                return STATUS_OK;
        }
        for (int i = 0; i < 2 * n_spatial; i++)
                pads[i] = python_int(padding);
        return value_ints_new(VALUE_LIST, pads, (uint32_t)(2 * n_spatial), out);
}

static Status pad_run(Emitter *emitter, const ModuleCall *call, const char *mode, Value fill, Value *out)
{
        const char *type = call->module->type;
        _cleanup_(value_clear) Value pads = value_none();
        TRY(padding_list(call->config[NN_PAD_PADDING], type[strlen(type) - 2] - '0', &pads)); // "...Pad2d"
        return py_pad(emitter, call->args[SELF], pads, mode, fill, out);
}

static Status zero_pad_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return pad_run(emitter, call, "constant", value_none(), out);
}

static Status constant_pad_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return pad_run(emitter, call, "constant", call->config[NN_PAD_VALUE], out);
}

static Status reflection_pad_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return pad_run(emitter, call, "reflect", value_none(), out);
}

static Status replication_pad_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return pad_run(emitter, call, "replicate", value_none(), out);
}

static Status circular_pad_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return pad_run(emitter, call, "circular", value_none(), out);
}

// ---- resizing ----
static Status upsample(Emitter *emitter, const ModuleCall *call, Value mode, Value align, Value recompute,
                       Value *out)
{
        const Value args[] = { call->args[SELF],
                               call->config[NN_UPSAMPLE_SIZE],
                               call->config[NN_UPSAMPLE_SCALE],
                               mode,
                               align,
                               recompute,
                               value_bool(false) };
        return py_interpolate(emitter, args, out);
}

static Status upsample_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return upsample(emitter, call, call->config[NN_UPSAMPLE_MODE], call->config[NN_UPSAMPLE_ALIGN],
                        call->config[NN_UPSAMPLE_RECOMPUTE], out);
}

static Status upsampling_nearest_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        _cleanup_(value_clear) Value mode = value_none();
        TRY(text_value("nearest", &mode));
        return upsample(emitter, call, mode, value_none(), value_none(), out);
}

static Status upsampling_bilinear_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        _cleanup_(value_clear) Value mode = value_none();
        TRY(text_value("bilinear", &mode));
        return upsample(emitter, call, mode, value_bool(true), value_none(), out);
}

#define INPUT   "nn::forward(Tensor input) -> Tensor"
#define PADDING "(Any padding) -> ()"
#define FILLED  "(Any padding, float value) -> ()"
#define PADS    "aten::constant_pad_nd"
#define RESIZES "aten::upsample_nearest2d.vec|aten::upsample_bilinear2d.vec"
#define WINDOWS "(int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> ()"
static const ModuleClass rows[] = {
        { "torch.nn.Flatten", "nn::Flatten(int start_dim=1, int end_dim=-1) -> ()", "", INPUT,
          .emits = "aten::flatten a0 c0 c1" },
        { "torch.nn.Unflatten", "nn::Unflatten(int dim, int[] unflattened_size) -> ()", "", INPUT,
          .emits = "aten::unflatten a0 c0 c1" },
        { "torch.nn.Upsample",
          "nn::Upsample(Any size=None, Any scale_factor=None, str mode='nearest', bool? align_corners=None, "
          "bool? "
          "recompute_scale_factor=None) -> ()",
          "", INPUT, .run = upsample_run, .needs = RESIZES },
        { "torch.nn.UpsamplingNearest2d",
          "nn::UpsamplingNearest2d(Any size=None, Any scale_factor=None) -> ()", "", INPUT,
          .run = upsampling_nearest_run, .needs = "aten::upsample_nearest2d.vec" },
        { "torch.nn.UpsamplingBilinear2d",
          "nn::UpsamplingBilinear2d(Any size=None, Any scale_factor=None) -> ()", "", INPUT,
          .run = upsampling_bilinear_run, .needs = "aten::upsample_bilinear2d.vec" },
        { "torch.nn.ZeroPad1d", "nn::ZeroPad1d" PADDING, "", INPUT, .run = zero_pad_run, .needs = PADS },
        { "torch.nn.ZeroPad2d", "nn::ZeroPad2d" PADDING, "", INPUT, .run = zero_pad_run, .needs = PADS },
        { "torch.nn.ZeroPad3d", "nn::ZeroPad3d" PADDING, "", INPUT, .run = zero_pad_run, .needs = PADS },
        { "torch.nn.ConstantPad1d", "nn::ConstantPad1d" FILLED, "", INPUT, .run = constant_pad_run,
          .needs = PADS },
        { "torch.nn.ConstantPad2d", "nn::ConstantPad2d" FILLED, "", INPUT, .run = constant_pad_run,
          .needs = PADS },
        { "torch.nn.ConstantPad3d", "nn::ConstantPad3d" FILLED, "", INPUT, .run = constant_pad_run,
          .needs = PADS },
        { "torch.nn.ReflectionPad1d", "nn::ReflectionPad1d" PADDING, "", INPUT, .run = reflection_pad_run,
          .needs = "aten::reflection_pad1d|aten::pad" },
        { "torch.nn.ReflectionPad2d", "nn::ReflectionPad2d" PADDING, "", INPUT, .run = reflection_pad_run,
          .needs = "aten::reflection_pad2d|aten::pad" },
        { "torch.nn.ReflectionPad3d", "nn::ReflectionPad3d" PADDING, "", INPUT, .run = reflection_pad_run,
          .needs = "aten::reflection_pad3d|aten::pad" },
        { "torch.nn.ReplicationPad1d", "nn::ReplicationPad1d" PADDING, "", INPUT, .run = replication_pad_run,
          .needs = "aten::replication_pad1d|aten::pad" },
        { "torch.nn.ReplicationPad2d", "nn::ReplicationPad2d" PADDING, "", INPUT, .run = replication_pad_run,
          .needs = "aten::replication_pad2d|aten::pad" },
        { "torch.nn.ReplicationPad3d", "nn::ReplicationPad3d" PADDING, "", INPUT, .run = replication_pad_run,
          .needs = "aten::replication_pad3d|aten::pad" },
        { "torch.nn.CircularPad1d", "nn::CircularPad1d" PADDING, "", INPUT, .run = circular_pad_run,
          .needs = "aten::pad" },
        { "torch.nn.CircularPad2d", "nn::CircularPad2d" PADDING, "", INPUT, .run = circular_pad_run,
          .needs = "aten::pad" },
        { "torch.nn.CircularPad3d", "nn::CircularPad3d" PADDING, "", INPUT, .run = circular_pad_run,
          .needs = "aten::pad" },
        { "torch.nn.PixelShuffle", "nn::PixelShuffle(int upscale_factor) -> ()", "", INPUT,
          .emits = "aten::pixel_shuffle a0 c0 | F.pixel_shuffle a0 c0" },
        { "torch.nn.PixelUnshuffle", "nn::PixelUnshuffle(int downscale_factor) -> ()", "", INPUT,
          .emits = "aten::pixel_unshuffle a0 c0 | F.pixel_unshuffle a0 c0" },
        { "torch.nn.ChannelShuffle", "nn::ChannelShuffle(int groups) -> ()", "", INPUT,
          .emits = "aten::channel_shuffle a0 c0 | F.channel_shuffle a0 c0" },
        { "torch.nn.Unfold", "nn::Unfold" WINDOWS, "", INPUT, .emits = "aten::im2col a0 c0 c1 c2 c3" },
        { "torch.nn.Fold",
          "nn::Fold(int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] "
          "stride=1) -> ()",
          "", INPUT, .emits = "aten::col2im a0 c0 c1 c2 c3 c4" },
        { "torch.nn.CosineSimilarity", "nn::CosineSimilarity(int dim=1, float eps=1e-08) -> ()", "",
          "nn::forward(Tensor x1, Tensor x2) -> Tensor", .emits = "F.cosine_similarity a0 a1 c0 c1" },
        { "torch.nn.PairwiseDistance",
          "nn::PairwiseDistance(float p=2.0, float eps=1e-06, bool keepdim=False) -> ()", "",
          "nn::forward(Tensor x1, Tensor x2) -> Tensor", .emits = "aten::pairwise_distance a0 a1 c0 c1 c2" },
};
const ModuleTable shape_classes = MODULE_TABLE(rows);
