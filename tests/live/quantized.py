# SPDX-License-Identifier: Apache-2.0
"""Graphs of quantised layers, as PyTorch's quantisation exports them, against PyTorch.

    .venv/bin/python tests/live/quantized.py build/fxserve [--cases N] [--seed N]

Random linear layers between quantize and dequantize: scales per tensor, of the run or per channel,
levels of uint8 and int8, zero points, levels of fewer values than their type has, weights transposed or
flattened inputs, dequantised tensors read elsewhere, biases, residuals, relu and clamps; float32
results or levels. And 2-d convolutions with any stride, padding and dilation, of all channels or a
kernel for each, pooled or not. A float32 result must be PyTorch's by assert_close, or as close to the
exact one as PyTorch's. A level may be another than PyTorch's by one, where the exact value lies no
further from the border of two levels than the rounding of a float32 sum. A sample must have the same
bits alone and in its batch, unless the run chooses the scale. Then a network of three layers whose
levels were calibrated. Needs torch 2.13 and numpy. The last line is `N passed, N failed`.
"""

import argparse
import io
import json
import math
import pathlib
import random
import sys
import warnings

import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving

Q = torch.ops.quantized_decomposed
RANGES = {torch.uint8: (0, 255), torch.int8: (-128, 127)}
HAS_KERNELS = " avx2 " in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")  # of levels


class Failed(Exception):
    pass


def put(server, name, module, inputs, dynamic):
    shapes = tuple({0: torch.export.Dim("n", min=1, max=64)} for _ in inputs) if dynamic else None
    archive = io.BytesIO()
    torch.export.save(torch.export.export(module, inputs, dynamic_shapes=shapes), archive)
    reply = server.call("PUT", f"/v1/graphs/{name}", archive.getvalue())
    if reply.status not in (200, 201):
        raise Failed(f"upload: {reply.status} {reply.body[:300]}")


def run(server, name, inputs, mode="compiled"):
    """(the outputs, names of the kernels)"""
    body = {"inputs": [encode_tensor(x) for x in inputs], "mode": mode, "profile": True, "encoding": "b64"}
    reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
    if reply.status != 200:
        raise Failed(f"{mode}: {reply.status} {reply.body[:300]}")
    reply = reply.json()
    return ([decode_tensor(output) for output in reply["outputs"]],
            [node.get("kernel") or "" for node in reply["profile"]["nodes"]])


def levels(chance, dtype):
    """(scale, zero point, least, most, dtype)"""
    least, most = RANGES[dtype]
    if chance.random() < 0.3:
        least, most = (0, 127) if dtype == torch.uint8 else (-127, 127)
    point = chance.choice((chance.randint(least, most), chance.randint(least, most), least, most))
    return 10 ** chance.uniform(-2.5, -1), point, least, most, dtype


class Layer(nn.Module):
    def __init__(self, chance, n_in, n_out):
        super().__init__()
        self.kind = chance.choice(("linear", "no bias", "transposed", "mm", "addmm", "flattened"))
        self.after = chance.choice(("nothing", "relu", "clamp", "residual", "residual relu"))
        self.given = levels(chance, chance.choice(tuple(RANGES)))
        self.chosen = chance.random() < 0.25
        self.made = levels(chance, chance.choice(tuple(RANGES))) if chance.random() < 0.5 else None
        self.elsewhere = chance.random() < 0.2
        self.stored = chance.choice((torch.int8, torch.int8, torch.uint8))
        self.per_channel = chance.random() < 0.7
        self.register_buffer("weight", torch.randint(*RANGES[self.stored], (n_out, n_in)).to(self.stored))
        points = 128 if self.stored == torch.uint8 else 0
        self.register_buffer("scales", torch.rand(n_out) * 0.01 + 1e-4)
        self.register_buffer("points", torch.full((n_out,), points))
        self.bias = None if self.kind in ("no bias", "mm") else nn.Parameter(torch.randn(n_out))

    def matrix(self):
        least, most = RANGES[self.stored]
        if not self.per_channel:
            return Q.dequantize_per_tensor(self.weight, 0.013, int(128 * (least == 0)), least, most,
                                           self.stored)
        return Q.dequantize_per_channel(self.weight, self.scales, self.points, 0, least, most, self.stored)

    def rounded(self, x):
        scale, point, least, most, dtype = self.given
        if self.chosen:
            scale, point = Q.choose_qparams.tensor(x, least, most, 1e-5, dtype)
            x = Q.quantize_per_tensor.tensor(x, scale, point, least, most, dtype)
            return Q.dequantize_per_tensor.tensor(x, scale, point, least, most, dtype)
        x = Q.quantize_per_tensor(x, scale, point, least, most, dtype)
        return Q.dequantize_per_tensor(x, scale, point, least, most, dtype)

    def product(self, x, matrix):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        if self.kind == "mm":
            return torch.mm(x, matrix.t())
        if self.kind == "addmm":
            return torch.addmm(bias, x, matrix.t())
        if self.kind == "flattened" and x.ndim > 2:
            return nn.functional.linear(x.flatten(0, -2), matrix, bias).view(*x.shape[:-1], -1)
        return nn.functional.linear(x, matrix, bias)

    def sizes(self, rows, matrix):
        """sums of what the terms are worth without their signs"""
        return rows.abs() @ matrix.abs().t()

    def place(self, values):
        """of each column, as results have them"""
        return values

    def finish(self, y, other):
        if self.after.startswith("residual"):
            y = y + other.to(y.dtype)
        if self.after.endswith("relu"):
            return torch.relu(y)
        return torch.clamp(y, -0.5, 1.5) if self.after == "clamp" else y

    def forward(self, x, other):
        rows = self.rounded(x)
        y = self.finish(self.product(rows, self.matrix()), other)
        if self.made is not None:
            scale, point, least, most, dtype = self.made
            y = Q.quantize_per_tensor(y, scale, point, least, most, dtype)
        return (y, rows) if self.elsewhere else (y,)


class Convolution(Layer):
    """relu, clamp, residuals of floats or of levels, then perhaps max pooling between levels"""

    def __init__(self, chance, n_in, n_out):
        super().__init__(chance, n_in, n_out)
        self.kind = chance.choice(("conv2d", "no bias"))
        self.chosen, self.elsewhere = False, chance.random() < 0.2
        self.kernel = [chance.randrange(1, 5), chance.randrange(1, 5)]
        self.windows = [[chance.randrange(1, 4) for _ in range(2)], [chance.randrange(4) for _ in range(2)],
                        [chance.choice((1, 1, 2, 3)) for _ in range(2)]]
        self.groups = chance.choice((1, 1, n_in))
        if self.groups > 1:
            n_out = n_in * chance.choice((1, 1, 1, 2))
        self.has_kernel = self.groups in (1, n_out)
        self.last = chance.random() < 0.3
        shape = (n_out, n_in // self.groups, *self.kernel)
        weight = torch.randint(*RANGES[self.stored], shape).to(self.stored)
        self.weight = weight.contiguous(memory_format=torch.channels_last) if self.last else weight
        self.scales, self.points = torch.rand(n_out) * 0.01 + 1e-4, self.points[:1].expand(n_out).clone()
        self.bias = None if self.kind == "no bias" else nn.Parameter(torch.randn(n_out))
        self.added = levels(chance, chance.choice(tuple(RANGES))) if chance.random() < 0.5 else None
        self.pools = self.made is not None and chance.random() < 0.3

    def product(self, x, matrix):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return nn.functional.conv2d(x, matrix, bias, *self.windows, self.groups)

    def sizes(self, rows, matrix):
        return nn.functional.conv2d(rows.abs(), matrix.abs(), None, *self.windows, self.groups)

    def place(self, values):
        return values[:, None, None]

    def finish(self, y, other):
        if self.added is not None:
            scale, point, least, most, dtype = self.added
            other = Q.quantize_per_tensor(other, scale, point, least, most, dtype)
            other = Q.dequantize_per_tensor(other, scale, point, least, most, dtype)
        return super().finish(y, other)

    def forward(self, x, other):
        y, *rows = super().forward(x, other)
        if self.pools:
            scale, point, least, most, dtype = self.made
            y = Q.dequantize_per_tensor(y, scale, point, least, most, dtype)
            y = nn.functional.max_pool2d(y, 2, 1, 1)
            y = Q.quantize_per_tensor(y, scale, point, least, most, dtype)
        return (y, *rows)


def check_levels(layer, x, other, got, want):
    """By how much a level may be off: see the head of this file."""
    scale, point, least, most, _ = layer.made
    rows, matrix = layer.rounded(x).double(), layer.matrix().double()
    exact = layer.finish(layer.product(rows, matrix), other)
    bias = 0 if layer.bias is None else layer.place(layer.bias.abs())
    size = layer.sizes(rows, matrix) + other.abs() + bias
    border = (exact / scale - torch.floor(exact / scale) - 0.5).abs()
    n_terms = matrix[0].numel()
    near = border <= (n_terms + 8) * 2.0 ** -24 * size / scale + exact.abs() / scale * 2.0 ** -22
    if getattr(layer, "pools", False):  # one that is near may be the largest
        near = nn.functional.max_pool2d(near.float(), 2, 1, 1) > 0
    away = (got.int() - want.int()).abs()
    if int(away.max()) > 1 or bool((away[~near] != 0).any()):
        raise Failed(f"levels are {int(away.max())} away, {int((away[~near] != 0).sum())} far from a border")


def check_floats(layer, x, other, got, want):
    """Where assert_close fails, no result may be further from the exact one than PyTorch's worst."""
    try:
        torch.testing.assert_close(got, want)
    except AssertionError:
        rows, matrix = layer.rounded(x).double(), layer.matrix().double()
        exact = layer.finish(layer.product(rows, matrix), other)
        if float((got - exact).abs().max()) > float((want - exact).abs().max()):
            raise


def check_layer(server, chance):
    n_in, n_out, batch = chance.randrange(1, 300), chance.randrange(1, 200), chance.choice((2, 5, 13, 40))
    layer = Layer(chance, n_in, n_out).eval()
    flat = layer.kind in ("mm", "addmm")
    shape = (batch, n_in) if flat or chance.random() < 0.5 else (batch, chance.randrange(1, 7), n_in)
    x, other = torch.randn(shape), torch.randn(*shape[:-1], n_out)
    words = (f"{layer.kind}, {layer.after}, {list(shape)} to {n_out}, levels {layer.given}, "
             f"{'chosen, ' if layer.chosen else ''}results {layer.made}")
    put(server, "layer", layer, (x, other), dynamic=not layer.chosen)
    with torch.no_grad():
        want = layer(x, other)
    try:
        got, kernels = run(server, "layer", (x, other))
        if not any(kernel.startswith(("levels:", "quantized_linear")) for kernel in kernels):
            raise Failed(f"no product of levels among {kernels}")
        for mine, theirs in zip(got[1:], want[1:]):
            torch.testing.assert_close(mine, theirs)
        with torch.no_grad():
            check = check_floats if got[0].dtype.is_floating_point else check_levels
            check(layer, x, other, got[0], want[0])
        at = chance.randrange(batch)
        if not layer.chosen:
            alone, _ = run(server, "layer", (x[at:at + 1].contiguous(), other[at:at + 1].contiguous()))
            if not all(torch.equal(one[0], many[at]) for one, many in zip(alone, got)):
                raise Failed("a sample has other bits in its batch")
    except (Failed, AssertionError) as problem:
        raise Failed(f"{words}: {problem}") from problem


def check_convolution(server, chance):
    n_in, n_out, batch = chance.randrange(1, 40), chance.randrange(1, 80), chance.choice((2, 3, 5))
    layer = Convolution(chance, n_in, n_out).eval()
    reach = [dilation * (kernel - 1) + 1 for dilation, kernel in zip(layer.windows[2], layer.kernel)]
    x = torch.randn(batch, n_in, reach[0] + chance.randrange(12), reach[1] + chance.randrange(20))
    if chance.random() < 0.3:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        other = torch.randn_like(layer.product(x, layer.matrix()))
        want = layer(x, other)
    words = (f"{layer.kind}, {layer.after}, {list(x.shape)} {list(layer.weight.shape)} {layer.windows}, "
             f"groups {layer.groups}, levels {layer.given}, added {layer.added}, results {layer.made}, "
             f"pools {layer.pools}")
    put(server, "conv", layer, (x, other), dynamic=True)
    try:
        got, kernels = run(server, "conv", (x, other))
        name = "levels:" + ("conv" if layer.groups == 1 else "depthwise") if HAS_KERNELS else "quantized_conv"
        if layer.has_kernel and not any(kernel.startswith(name) for kernel in kernels):
            raise Failed(f"no convolution of levels among {kernels}")
        for mine, theirs in zip(got[1:], want[1:]):
            torch.testing.assert_close(mine, theirs)
        with torch.no_grad():
            check = check_floats if got[0].dtype.is_floating_point else check_levels
            check(layer, x, other, got[0], want[0])
        at = chance.randrange(batch)
        alone, _ = run(server, "conv", (x[at:at + 1].contiguous(), other[at:at + 1].contiguous()))
        if not all(torch.equal(one[0], many[at]) for one, many in zip(alone, got)):
            raise Failed("a sample has other bits in its batch")
    except (Failed, AssertionError) as problem:
        raise Failed(f"{words}: {problem}") from problem


class Network(nn.Module):
    """Three layers; each step of the levels is worth what a few samples asked for."""

    def __init__(self, sizes):
        super().__init__()
        self.floats = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.steps = [0.0] * len(self.floats)

    def calibrate(self, x):
        for n, linear in enumerate(self.floats):
            self.steps[n] = float(x.abs().max()) / 127
            scales = linear.weight.detach().abs().amax(1) / 127
            self.register_buffer(f"scales{n}", scales)
            self.register_buffer(f"points{n}", torch.zeros(len(scales), dtype=torch.int64))
            rounded = torch.round(linear.weight.detach() / scales[:, None]).to(torch.int8)
            self.register_buffer(f"weight{n}", rounded)
            x = torch.relu(linear(x))

    def forward(self, x):
        for n, linear in enumerate(self.floats):
            x = Q.quantize_per_tensor(x, self.steps[n], 0, -128, 127, torch.int8)
            x = Q.dequantize_per_tensor(x, self.steps[n], 0, -128, 127, torch.int8)
            weight = Q.dequantize_per_channel(getattr(self, f"weight{n}"), getattr(self, f"scales{n}"),
                                              getattr(self, f"points{n}"), 0, -128, 127, torch.int8)
            x = nn.functional.linear(x, weight, linear.bias)
            x = torch.relu(x) if n + 1 < len(self.floats) else x
        return x


def check_network(server):
    """The whole is as close to PyTorch as levels at their borders allow, and as close to float32."""
    net = Network((96, 256, 256, 10)).eval()
    x = torch.randn(64, 96)
    with torch.no_grad():
        net.calibrate(x)
        want, floats = net(x), net.floats[2](torch.relu(net.floats[1](torch.relu(net.floats[0](x)))))
    put(server, "net", net, (x,), dynamic=True)
    (got,), kernels = run(server, "net", (x,))
    if sum(kernel.startswith(("levels:", "quantized_linear")) for kernel in kernels) != 3 or \
            sum(kernel == "quantize" for kernel in kernels) != 1:
        raise Failed(f"three products of levels and one rounding are not all of {kernels}")
    noise = [10 * math.log10(float((floats ** 2).sum() / ((y - floats) ** 2).sum())) for y in (got, want)]
    print(f"network: {noise[0]:.2f} dB from float32, PyTorch {noise[1]:.2f} dB")
    if abs(noise[0] - noise[1]) > 0.5:
        raise Failed(f"{noise[0]:.1f} dB from float32, where PyTorch is at {noise[1]:.1f} dB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    torch.manual_seed(args.seed)
    with serving(args.program) as (server, tally):
        checks = [(f"case {n}", lambda: check_layer(server, chance)) for n in range(args.cases)]
        checks += [(f"convolution {n}", lambda: check_convolution(server, chance)) for n in range(args.cases)]
        for name, check in [*checks, ("network", lambda: check_network(server))]:
            try:
                check()
                tally.ok()
            except Failed as problem:
                tally.bad(f"{name} (--seed {args.seed})", problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
