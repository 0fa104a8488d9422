// SPDX-License-Identifier: Apache-2.0
// module_pooling.c: torch.nn pooling classes. Their argument order is not that of the functions:
// return_indices stands before ceil_mode.
#include "core/targets/module_table.h"
#include "core/targets/shape_rows.h"

#include <stdio.h>

static Status max_pool_run(Emitter *emitter, const ModuleCall *call, int n_spatial, Value *out)
{
        const Value *config = call->config;
        char base[48];
        snprintf(base, sizeof(base), "aten::max_pool%dd%s", n_spatial,
                 config[NN_MAX_POOL_INDICES].b ? "_with_indices" : "");
        Value kernel = config[NN_MAX_POOL_KERNEL], stride = config[NN_MAX_POOL_STRIDE];
        return ATEN(emitter, base, out, call->args[SELF], kernel, stride.kind == VALUE_NONE ? kernel : stride,
                    config[NN_MAX_POOL_PADDING], config[NN_MAX_POOL_DILATION], config[NN_MAX_POOL_CEIL_MODE]);
}

static Status max_pool1d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return max_pool_run(emitter, call, 1, out);
}

static Status max_pool2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return max_pool_run(emitter, call, 2, out);
}

static Status max_pool3d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return max_pool_run(emitter, call, 3, out);
}

static Status adaptive_run(Emitter *emitter, const ModuleCall *call, const char *kind, int n_spatial,
                           Value *out)
{
        char base[48];
        snprintf(base, sizeof(base), "aten::adaptive_%s_pool%dd", kind, n_spatial);
        bool indices = kind[0] == 'm' && call->config[NN_ADAPTIVE_INDICES].b;
        return py_adaptive_pool(emitter, base, indices, call->args[SELF],
                                call->config[NN_ADAPTIVE_OUTPUT_SIZE], out);
}

#define ADAPTIVE(kind, n)                                                                                    \
        static Status adaptive_##kind##_pool##n##d_run(Emitter *emitter, const ModuleCall *call, Value *out) \
        {                                                                                                    \
                return adaptive_run(emitter, call, #kind, n, out);                                           \
        }
ADAPTIVE(avg, 1)
ADAPTIVE(avg, 2)
ADAPTIVE(avg, 3)
ADAPTIVE(max, 1)
ADAPTIVE(max, 2)
ADAPTIVE(max, 3)
#undef ADAPTIVE

#define INPUT "nn::forward(Tensor input) -> Any"
#define MAX_POOL(n)                                                                                          \
        "(int[" n "] kernel_size, int[" n "]? stride=None, int[" n "] padding=0, int[" n                     \
        "] dilation=1, bool return_indices=False, bool "                                                     \
        "ceil_mode=False) -> ()"
#define AVG_POOL(n)                                                                                          \
        "(int[" n "] kernel_size, int[" n "]? stride=None, int[" n                                           \
        "] padding=0, bool ceil_mode=False, bool count_include_pad=True"
#define LP_POOL(n)                                                                                           \
        "(float norm_type, int[" n "] kernel_size, int[" n "]? stride=None, bool ceil_mode=False) -> ()"
#define UNPOOL(n)    "(int[" n "] kernel_size, int[" n "]? stride=None, int[" n "] padding=0) -> ()"
#define BY_INDICES   "nn::forward(Tensor input, Tensor indices, int[]? output_size=None) -> Tensor"
#define ADAPTIVE_AVG "(Any output_size) -> ()"
#define ADAPTIVE_MAX "(Any output_size, bool return_indices=False) -> ()"
#define FRACTIONAL(n)                                                                                        \
        "(int[" n "] kernel_size, int[" n "]? output_size=None, Any output_ratio=None, bool "                \
        "return_indices=False, Any _random_samples=None) -> ()"
static const ModuleClass rows[] = {
        { "torch.nn.MaxPool1d", "nn::MaxPool1d" MAX_POOL("1"), "", INPUT, .run = max_pool1d_run,
          .needs = "aten::max_pool1d" },
        { "torch.nn.MaxPool2d", "nn::MaxPool2d" MAX_POOL("2"), "", INPUT, .run = max_pool2d_run,
          .needs = "aten::max_pool2d" },
        { "torch.nn.MaxPool3d", "nn::MaxPool3d" MAX_POOL("3"), "", INPUT, .run = max_pool3d_run,
          .needs = "aten::max_pool3d" },
        { "torch.nn.AvgPool1d", "nn::AvgPool1d" AVG_POOL("1") ") -> ()", "", INPUT,
          .emits = "aten::avg_pool1d a0 c0 ec1 c2 c3 c4" },
        { "torch.nn.AvgPool2d", "nn::AvgPool2d" AVG_POOL("2") ", int? divisor_override=None) -> ()", "",
          INPUT, .emits = "aten::avg_pool2d a0 c0 ec1 c2 c3 c4 c5" },
        { "torch.nn.AvgPool3d", "nn::AvgPool3d" AVG_POOL("3") ", int? divisor_override=None) -> ()", "",
          INPUT, .emits = "aten::avg_pool3d a0 c0 ec1 c2 c3 c4 c5" },
        { "torch.nn.AdaptiveAvgPool1d", "nn::AdaptiveAvgPool1d" ADAPTIVE_AVG, "", INPUT,
          .run = adaptive_avg_pool1d_run, .needs = "aten::adaptive_avg_pool1d" },
        { "torch.nn.AdaptiveAvgPool2d", "nn::AdaptiveAvgPool2d" ADAPTIVE_AVG, "", INPUT,
          .run = adaptive_avg_pool2d_run, .needs = "aten::adaptive_avg_pool2d" },
        { "torch.nn.AdaptiveAvgPool3d", "nn::AdaptiveAvgPool3d" ADAPTIVE_AVG, "", INPUT,
          .run = adaptive_avg_pool3d_run, .needs = "aten::adaptive_avg_pool3d" },
        { "torch.nn.AdaptiveMaxPool1d", "nn::AdaptiveMaxPool1d" ADAPTIVE_MAX, "", INPUT,
          .run = adaptive_max_pool1d_run, .needs = "aten::adaptive_max_pool1d" },
        { "torch.nn.AdaptiveMaxPool2d", "nn::AdaptiveMaxPool2d" ADAPTIVE_MAX, "", INPUT,
          .run = adaptive_max_pool2d_run, .needs = "aten::adaptive_max_pool2d" },
        { "torch.nn.AdaptiveMaxPool3d", "nn::AdaptiveMaxPool3d" ADAPTIVE_MAX, "", INPUT,
          .run = adaptive_max_pool3d_run, .needs = "aten::adaptive_max_pool3d" },
        { "torch.nn.LPPool1d", "nn::LPPool1d" LP_POOL("1"), "", INPUT,
          .emits = "F.lp_pool1d a0 c0 c1 c2 c3" },
        { "torch.nn.LPPool2d", "nn::LPPool2d" LP_POOL("2"), "", INPUT,
          .emits = "F.lp_pool2d a0 c0 c1 c2 c3" },
        { "torch.nn.LPPool3d", "nn::LPPool3d" LP_POOL("3"), "", INPUT,
          .emits = "F.lp_pool3d a0 c0 c1 c2 c3" },
        { "torch.nn.MaxUnpool1d", "nn::MaxUnpool1d" UNPOOL("1"), "", BY_INDICES,
          .emits = "F.max_unpool1d a0 a1 c0 c1 c2 a2" },
        { "torch.nn.MaxUnpool2d", "nn::MaxUnpool2d" UNPOOL("2"), "", BY_INDICES,
          .emits = "F.max_unpool2d a0 a1 c0 c1 c2 a2" },
        { "torch.nn.MaxUnpool3d", "nn::MaxUnpool3d" UNPOOL("3"), "", BY_INDICES,
          .emits = "F.max_unpool3d a0 a1 c0 c1 c2 a2" },
        { "torch.nn.FractionalMaxPool2d", "nn::FractionalMaxPool2d" FRACTIONAL("2"), "_random_samples??",
          INPUT, .emits = "F.fractional_max_pool2d a0 c0 c1 c2 c3 s0" },
        { "torch.nn.FractionalMaxPool3d", "nn::FractionalMaxPool3d" FRACTIONAL("3"), "_random_samples??",
          INPUT, .emits = "F.fractional_max_pool3d a0 c0 c1 c2 c3 s0" },
};
const ModuleTable pooling_classes = MODULE_TABLE(rows);
