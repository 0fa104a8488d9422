// SPDX-License-Identifier: Apache-2.0
// module_activations.c: torch.nn classes that apply one function to every element, or softmax along
// a dimension.
#include "core/targets/module_table.h"
#include "core/targets/operators.h"

static Status softmax2d_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        int rank = call->args[SELF].kind == VALUE_TENSOR ? call->args[SELF].tensor->meta.rank : 0;
        if (rank != 3 && rank != 4)
                return fail(STATUS_SHAPE, "Softmax2d: expected input to be 3D or 4D, got %dD instead", rank);
        return ATEN(emitter, "aten::softmax", out, call->args[SELF], value_int(-3));
}

static Status gelu_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return EMIT(emitter, "aten::gelu", out, call->args[SELF], call->config[NN_GELU_APPROXIMATE]);
}

static Status rrelu_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        const Value args[] = { call->args[SELF], call->config[NN_RRELU_LOWER], call->config[NN_RRELU_UPPER],
                               value_bool(call->module->training) };
        return call->config[NN_RRELU_INPLACE].b ? aten_inplace(emitter, "aten::rrelu", args, 4, out)
                                                : aten_call(emitter, "aten::rrelu", args, 4, out);
}

#define INPUT   "nn::forward(Tensor input) -> Tensor"
#define INPLACE "bool inplace=False) -> ()"
static const ModuleClass rows[] = {
        { "torch.nn.ReLU", "nn::ReLU(" INPLACE, "", INPUT, .emits = "aten::relu a0 !c0" },
        { "torch.nn.ReLU6", "nn::ReLU6(" INPLACE, "", INPUT,
          .emits = "aten::relu6 a0 !c0 | aten::hardtanh a0 0 6 !c0" },
        { "torch.nn.LeakyReLU", "nn::LeakyReLU(float negative_slope=0.01, " INPLACE, "", INPUT,
          .emits = "aten::leaky_relu a0 c0 !c1" },
        { "torch.nn.PReLU", "nn::PReLU(int num_parameters=1, float init=0.25) -> ()", "weight", INPUT,
          .emits = "aten::prelu a0 s0", .shapes = "num_parameters" },
        { "torch.nn.RReLU", "nn::RReLU(float lower=0.125, float upper=0.3333333333333333, " INPLACE, "",
          INPUT, .run = rrelu_run, .needs = "aten::rrelu" },
        { "torch.nn.ELU", "nn::ELU(float alpha=1.0, " INPLACE, "", INPUT, .emits = "aten::elu a0 c0 !c1" },
        { "torch.nn.SELU", "nn::SELU(" INPLACE, "", INPUT, .emits = "aten::selu a0 !c0" },
        { "torch.nn.CELU", "nn::CELU(float alpha=1.0, " INPLACE, "", INPUT, .emits = "aten::celu a0 c0 !c1" },
        { "torch.nn.GELU", "nn::GELU(str approximate='none') -> ()", "", INPUT, .run = gelu_run,
          .needs = "aten::gelu" },
        { "torch.nn.SiLU", "nn::SiLU(" INPLACE, "", INPUT, .emits = "aten::silu a0 !c0" },
        { "torch.nn.Mish", "nn::Mish(" INPLACE, "", INPUT, .emits = "aten::mish a0 !c0" },
        { "torch.nn.Hardswish", "nn::Hardswish(" INPLACE, "", INPUT, .emits = "aten::hardswish a0 !c0" },
        { "torch.nn.Hardsigmoid", "nn::Hardsigmoid(" INPLACE, "", INPUT,
          .emits = "aten::hardsigmoid a0 !c0" },
        { "torch.nn.Hardtanh", "nn::Hardtanh(Scalar min_val=-1.0, Scalar max_val=1.0, " INPLACE, "", INPUT,
          .emits = "aten::hardtanh a0 c0 c1 !c2" },
        { "torch.nn.Hardshrink", "nn::Hardshrink(float lambd=0.5) -> ()", "", INPUT,
          .emits = "aten::hardshrink a0 c0" },
        { "torch.nn.Softshrink", "nn::Softshrink(float lambd=0.5) -> ()", "", INPUT,
          .emits = "aten::softshrink a0 c0" },
        { "torch.nn.Tanhshrink", "nn::Tanhshrink() -> ()", "", INPUT, .emits = "F.tanhshrink a0" },
        { "torch.nn.Softplus", "nn::Softplus(float beta=1.0, float threshold=20.0) -> ()", "", INPUT,
          .emits = "aten::softplus a0 c0 c1" },
        { "torch.nn.Softsign", "nn::Softsign() -> ()", "", INPUT, .emits = "F.softsign a0" },
        { "torch.nn.Sigmoid", "nn::Sigmoid() -> ()", "", INPUT, .emits = "aten::sigmoid a0" },
        { "torch.nn.LogSigmoid", "nn::LogSigmoid() -> ()", "", INPUT, .emits = "aten::log_sigmoid a0" },
        { "torch.nn.Tanh", "nn::Tanh() -> ()", "", INPUT, .emits = "aten::tanh a0" },
        { "torch.nn.Threshold", "nn::Threshold(Scalar threshold, Scalar value, " INPLACE, "", INPUT,
          .emits = "aten::threshold a0 c0 c1 !c2" },
        { "torch.nn.GLU", "nn::GLU(int dim=-1) -> ()", "", INPUT, .emits = "aten::glu a0 c0" },
        { "torch.nn.Softmax", "nn::Softmax(int? dim=None) -> ()", "", INPUT, .emits = "F.softmax a0 c0" },
        { "torch.nn.LogSoftmax", "nn::LogSoftmax(int? dim=None) -> ()", "", INPUT,
          .emits = "F.log_softmax a0 c0" },
        { "torch.nn.Softmin", "nn::Softmin(int? dim=None) -> ()", "", INPUT, .emits = "F.softmin a0 c0" },
        { "torch.nn.Softmax2d", "nn::Softmax2d() -> ()", "", INPUT, .run = softmax2d_run,
          .needs = "aten::softmax" },
};
const ModuleTable activation_classes = MODULE_TABLE(rows);
