# SPDX-License-Identifier: Apache-2.0
"""Random graphs of torch.nn layers, functions, methods and Python operators, for differential.py:
names as people write them, with the arguments that Python takes. random_graphs.py goes through the
overloads below them.
"""

import copy
import json
import random

import torch
import torch.nn.functional as F
from export_fx import dumps, export_fx
from random_graphs import FLOATS, encode_tensor, values
from torch import nn

ACTIVATIONS = [nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish,
               nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Hardshrink, nn.Softshrink, nn.Tanhshrink,
               nn.Softplus, nn.Softsign, nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.Dropout,
               nn.Identity, nn.Flatten]


def sizes(c, n):
    """A batch of 0 to 3, 4 channels, n sizes; sometimes without the batch."""
    shape = [c.choice([0, 1, 2, 3]), 4, *(c.randint(3, 9) for _ in range(n))]
    return shape[1:] if c.random() < 0.15 else shape


def conv(c, n):
    kind = [nn.Conv1d, nn.Conv2d, nn.Conv3d][n - 1]
    stride, padding = c.choice([1, 1, 2]), c.choice([0, 1, "valid", "same"])
    padding = 1 if padding == "same" and stride != 1 else padding
    layer = kind(4, c.choice([4, 8]), c.choice([1, 2, 3]), stride, padding, c.choice([1, 1, 2]),
                 c.choice([1, 2, 4]), c.random() < 0.7,
                 c.choice(["zeros", "zeros", "reflect", "replicate", "circular"]))
    return layer, [sizes(c, n)]


def conv_transpose(c, n):
    kind = [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d][n - 1]
    stride = c.choice([1, 2, 3])
    return (kind(4, 4, c.choice([1, 2, 3]), stride, c.choice([0, 1]), c.choice([0, 1]) if stride > 1 else 0,
                 c.choice([1, 2]), c.random() < 0.7), [sizes(c, n)])


def pool(c, n):
    kernel, stride = c.choice([2, 3]), c.choice([None, 1, 2])
    if c.random() < 0.5:
        layer = [nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d][n - 1](
            kernel, stride, c.choice([0, 1]), c.choice([1, 1, 2]), False, c.random() < 0.3)
    else:
        layer = [nn.AvgPool1d, nn.AvgPool2d,
                 nn.AvgPool3d][n - 1](kernel, stride, c.choice([0, 1]), c.random() < 0.3, c.random() < 0.5)
    return layer, [sizes(c, n)]


def adaptive(c, n):
    kinds = [[nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d],
             [nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d]]
    size = [c.choice([1, 2, 5]) if n == 1 or c.random() < 0.8 else None for _ in range(n)]
    return c.choice(kinds)[n - 1](size if n > 1 else size[0]), [sizes(c, n)]


def norm(c, n):
    batch, instance = [[nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d],
                       [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d]]
    if c.random() < 0.5:
        layer = batch[n - 1](4, eps=c.choice([1e-5, 0.1]), affine=c.random() < 0.7,
                             track_running_stats=c.random() < 0.8)
    else:
        layer = instance[n - 1](4, affine=c.random() < 0.5, track_running_stats=c.random() < 0.5)
    for buffer in layer.buffers():
        if buffer.is_floating_point():
            buffer.copy_(torch.rand(buffer.shape, generator=torch.Generator().manual_seed(c.getrandbits(32)))
                         + 0.2)
    return layer, [sizes(c, n)]


def pad(c, n):
    kinds = [[nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d],
             [nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d],
             [nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d],
             [nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d]]
    return c.choice(kinds)[n - 1]([c.choice([0, 1, 2, -1]) for _ in range(2 * n)]), [sizes(c, n)]


def upsample(c, n):
    modes = ["nearest", "nearest-exact",
             ["linear", "bilinear", "trilinear"][n - 1]] + (["bicubic"] if n == 2 else [])
    mode = c.choice(modes)
    align = c.choice([None, True, False]) if "near" not in mode else None
    how = ({"size": [c.randint(1, 11) for _ in range(n)]} if c.random() < 0.5
           else {"scale_factor": c.choice([0.5, 1.5, 2, 2.3])})
    return nn.Upsample(mode=mode, align_corners=align, **how), [sizes(c, n)]


def any_rank(c):
    return [c.choice([0, 1, 2, 3, 5]) for _ in range(c.randint(0, 4))]


def modules(c):
    """(a layer, its inputs' shapes)"""
    n = c.randint(1, 3)
    kind = c.randrange(16)
    if kind < 8:
        return (conv, conv_transpose, pool, adaptive, norm, pad, upsample, conv)[kind](c, n)
    if kind < 10:
        layer = c.choice(ACTIVATIONS)
        return layer(), [any_rank(c)]
    if kind == 10:
        return nn.Linear(6, c.choice([1, 5]), c.random() < 0.7), [[*any_rank(c)[:2], 6]]
    if kind == 11:
        return (c.choice([nn.LayerNorm, nn.RMSNorm])([3, 4], elementwise_affine=c.random() < 0.6),
                [[*any_rank(c)[:2], 3, 4]])
    if kind == 12:
        return nn.GroupNorm(c.choice([1, 2, 4]), 4, affine=c.random() < 0.6), [sizes(c, n)]
    if kind == 13:
        return c.choice([nn.Softmax, nn.LogSoftmax, nn.Softmin])(c.choice([0, 1, -1, -2])), [any_rank(c)]
    if kind == 14:
        return (c.choice([nn.PReLU(4), nn.PReLU(), nn.GLU(1), nn.PixelShuffle(2), nn.ChannelShuffle(2),
                          nn.LocalResponseNorm(c.choice([1, 3]))]), [sizes(c, 2)])
    return nn.CosineSimilarity(c.choice([0, 1, -1])), [[2, 4, 3], c.choice([[2, 4, 3], [4, 3], [2, 1, 3]])]


def functions(c):
    """(what to trace, the inputs' shapes)"""
    d, k, number = c.randint(-3, 2), c.randint(0, 3), c.choice([2, -1, 0, 0.5, -2.5, True, 3])
    reduction = c.choice(["mean", "sum", "none"])
    one = [
        lambda x: F.pad(x, [c.randint(-1, 2) for _ in range(2 * c.randint(1, 3))], "constant",
                        c.choice([0, 1.5])),
        lambda x: F.softmax(x, dim=d), lambda x: F.normalize(x, c.choice([1, 2.0, 3]), d),
        lambda x: x[..., k], lambda x: x[k:, None], lambda x: x[:, -k:],
        lambda x: x[::2, ..., ::3], lambda x: x[None, ..., None], lambda x: x[:, [0, 1]],
        lambda x: x[[0, -1]], lambda x: x[x > 0].sum(), lambda x: x[1:-1, k],
        lambda x: x + number, lambda x: number - x, lambda x: x * number, lambda x: number / x,
        lambda x: x // number, lambda x: x % number, lambda x: x**number,
        lambda x: number**x, lambda x: -x, lambda x: abs(x), lambda x: x > number,
        lambda x: (x > 0) & (x < 1), lambda x: ~(x == 0), lambda x: x.mean(d, keepdim=True),
        lambda x: x.sum(dtype=torch.float64), lambda x: x.amax((0, -1)), lambda x: x.max(d)[0],
        lambda x: x.min(d).values, lambda x: x.argmax(), lambda x: x.std(d),
        lambda x: x.var(unbiased=False), lambda x: torch.std_mean(x, d), lambda x: x.cumsum(d),
        lambda x: x.prod(d), lambda x: x.any(d), lambda x: x.all(),
        lambda x: x.norm(c.choice([1, 2, 3.5]), d), lambda x: torch.logsumexp(x, d), lambda x: x.view(-1),
        lambda x: x.reshape(x.shape[0], -1), lambda x: x.flatten(1),
        lambda x: x.permute(*range(x.dim())), lambda x: x.transpose(0, -1) * 2, lambda x: x.squeeze(),
        lambda x: x.unsqueeze(d), lambda x: x.repeat(2, 1, 1, 1),
        lambda x: x.expand(2, *x.shape), lambda x: torch.cat([x, x * 2], d), lambda x: torch.stack([x, x], d),
        lambda x: torch.chunk(x, 2, d)[0],
        lambda x: x.split(2, d)[0], lambda x: torch.roll(x, k, d), lambda x: x.flip(d),
        lambda x: torch.tril(x, k), lambda x: x.masked_fill(x > 0, number),
        lambda x: torch.where(x > 0, x, number), lambda x: x.clamp(number, 2), lambda x: x.clamp(max=0.5),
        lambda x: torch.round(x, decimals=k), lambda x: x.to(torch.float16),
        lambda x: x.type(torch.int32), lambda x: x.half().float(), lambda x: x.bool(), lambda x: x.sort(d)[0],
        lambda x: x.topk(1, d)[0], lambda x: x.size(0) * x,
        lambda x: x.new_zeros(2, k), lambda x: torch.zeros_like(x, dtype=torch.int64),
        lambda x: torch.full_like(x, number), lambda x: x.clone().fill_(number),
        lambda x: x.clone().add_(number).mul_(2), lambda x: F.gelu(x, approximate="tanh"),
        lambda x: F.glu(x, d), lambda x: F.leaky_relu(x, 0.2, inplace=False),
        lambda x: F.layer_norm(x, x.shape[-1:]), lambda x: F.threshold(x, 0.1, 20), lambda x: x.unbind(d)[0],
        lambda x: x.diagonal(k), lambda x: x.unfold(0, 2, 1),
        lambda x: torch.einsum("...i->...", x), lambda x: x.nan_to_num(), lambda x: x.logical_not(),
        lambda x: x.square().sqrt(), lambda x: F.hardtanh(x, -0.5, 0.25),
        lambda x: F.adaptive_avg_pool2d(x, (1, None)), lambda x: F.max_pool2d(x, 2),
        lambda x: F.interpolate(x, scale_factor=2), lambda x: F.unfold(x, 2),
        lambda x: F.one_hot(x.argmax(d)), lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0])),
        lambda x: x.T, lambda x: x.mT, lambda x: x.gather(d, x.argsort(d)),
        lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), lambda x: x.count_nonzero(d),
        lambda x: torch.diff(x, dim=d), lambda x: x.median(d)[0],
    ]
    two = [
        lambda x, y: x + y, lambda x, y: x - 2 * y, lambda x, y: x * y, lambda x, y: x / y,
        lambda x, y: x // y, lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x @ y,
        lambda x, y: torch.maximum(x, y), lambda x, y: torch.where(x > y, x, y),
        lambda x, y: x.masked_fill(y > 0, number), lambda x, y: torch.lerp(x, y, 0.3),
        lambda x, y: torch.addcmul(x, x, y, value=number), lambda x, y: torch.cat([x, y], d),
        lambda x, y: x.clone().add_(y, alpha=2), lambda x, y: x == y,
        lambda x, y: F.mse_loss(x, y, reduction=reduction), lambda x, y: F.l1_loss(x, y, reduction=reduction),
        lambda x, y: F.smooth_l1_loss(x, y, reduction, 0.5),
        lambda x, y: F.huber_loss(x, y, reduction=reduction), lambda x, y: F.cosine_similarity(x, y, d),
        lambda x, y: torch.copysign(x, y), lambda x, y: torch.hypot(x, y),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=reduction), lambda x, y: x.type_as(y),
        lambda x, y: x.expand_as(y), lambda x, y: x.view_as(y),
        lambda x, y: F.kl_div(x, y, reduction=reduction), lambda x, y: torch.outer(x.flatten(), y.flatten()),
        lambda x, y: torch.fmod(x, y), lambda x, y: torch.xlogy(x, y),
        lambda x, y: F.linear(x, y), lambda x, y: torch.bmm(x, y), lambda x, y: x.to(y),
        lambda x, y: torch.floor_divide(x, y), lambda x, y: torch.logaddexp(x, y),
    ]
    if c.random() < 0.7:
        return (c.choice(one), [c.choice([[3, 4], [2, 3, 4], [1, 4, 5, 6], [5], [], [0, 3], [4, 4], [2, 1, 3],
                                          [2, 4, 1, 6]])])
    return (c.choice(two), c.choice([[[3, 4], [3, 4]], [[3, 4], [4]], [[2, 3, 4], [2, 4, 3]], [[5], [5]],
                                     [[4, 4], [4, 4]], [[3, 1], [1, 4]], [[2, 3], []], [[0, 3], [3]]]))


class Traced(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class LayerCase:
    """A traced graph with its inputs; everything is written so that the same seed gives the same
    case."""

    def __init__(self, seed):
        c = random.Random(seed)
        torch.manual_seed(seed)
        made, shapes = modules(c) if c.random() < 0.4 else functions(c)
        dtypes = [c.choice([torch.float32, torch.float32, *FLOATS])] * len(shapes)
        if not isinstance(made, nn.Module) and c.random() < 0.3:
            dtypes = [c.choice([*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool])
                      for _ in shapes]
        self.inputs = {name: values(c, dtype, shape)
                       for name, dtype, shape in zip(("x", "y"), dtypes, shapes)}
        state = c.getstate()
        if isinstance(made, nn.Module):
            made = made.eval().to(dtypes[0])
            self.gm = torch.fx.symbolic_trace(nn.Sequential(made) if len(shapes) == 1 else made)
            names = [node.target for node in self.gm.graph.nodes if node.op == "placeholder"]
            self.inputs = dict(zip(names, self.inputs.values()))
        else:
            c.setstate(state)
            self.gm = torch.fx.symbolic_trace(made)
        self.name = " ".join(str(node.target) + (" " + type(self.gm.get_submodule(node.target)).__name__
                                                 if node.op == "call_module" else "")
                             for node in self.gm.graph.nodes if node.op.startswith("call"))

    def run(self, double=False):
        """The flat list of results; raises what PyTorch raises."""
        gm = self.gm
        inputs = [tensor.clone() for tensor in self.inputs.values()]
        if double:
            gm = copy.deepcopy(gm).double()
            inputs = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
        with torch.no_grad():
            return torch.utils._pytree.tree_leaves(gm(*inputs))

    def body(self, mode):
        inputs = {name: encode_tensor(tensor) for name, tensor in self.inputs.items()}
        return json.dumps({"graph": json.loads(dumps(export_fx(self.gm, inline=True)[0])), "inputs": inputs,
                           "mode": mode, "encoding": "b64"})

    def has_nodes(self):
        return any(node.op.startswith("call") for node in self.gm.graph.nodes)
