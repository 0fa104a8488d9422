# SPDX-License-Identifier: Apache-2.0
"""Runs with less precision against what PyTorch gives for the rounded weights.

    .venv/bin/python tests/live/precision.py build/fxserve [--cases N] [--seed N]

Random linear layers (shapes, batches, transposed and shared weights, biases, what follows them) are run
as f32, bf16 and int8. A bf16 run must equal PyTorch's on weights rounded to bfloat16, and inputs where the
CPU multiplies bfloat16; an int8 run must stay within half a step of each weight and each row of the exact
result. A row's bits must not depend on
its batch. Recurrent steps must equal those on bfloat16 states and weights. Then a transformer,
convolutional networks and an LSTM: how far the whole is from float32, in
decibels. Needs torch 2.13 and numpy. The last line is `N passed, N failed`.
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
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving

HAS_BF16 = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii")
PRECISIONS = ("f32", "bf16", "int8")


class Failed(Exception):
    pass


def put(server, name, module, x, dynamic=True):
    shapes = ({0: torch.export.Dim("n", min=1, max=64)},) if dynamic else None
    archive = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=shapes), archive)
    reply = server.call("PUT", f"/v1/graphs/{name}", archive.getvalue())
    if reply.status not in (200, 201):
        raise Failed(f"upload: {reply.status} {reply.body[:300]}")


def run(server, name, x, precision):
    """(the output, names of the kernels)"""
    body = {"inputs": [encode_tensor(x)], "precision": precision, "mode": "compiled", "profile": True,
            "encoding": "b64"}
    reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
    if reply.status != 200:
        raise Failed(f"{precision}: {reply.status} {reply.body[:300]}")
    reply = reply.json()
    return (decode_tensor(reply["outputs"][0]),
            [node.get("kernel") or "" for node in reply["profile"]["nodes"]])


# ---- one layer ---------------------------------------------------------------------------------
class Layer(nn.Module):
    """A product with a constant, and what may be fused with it."""

    def __init__(self, chance, n_in, n_out):
        super().__init__()
        self.kind = chance.choice(("linear", "no bias", "transposed", "mm", "addmm"))
        self.after = chance.choice(("nothing", "relu", "clamp", "gelu", "residual", "residual relu"))
        scale = torch.exp(torch.randn(n_out, 1))
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * scale / math.sqrt(n_in))
        if self.kind in ("transposed", "mm", "addmm"):
            self.weight = nn.Parameter(self.weight.detach().t().contiguous())
        self.bias = nn.Parameter(torch.randn(n_out)) if self.kind in ("linear", "addmm") else None

    def matrix(self):
        return self.weight.t() if self.kind in ("transposed", "mm", "addmm") else self.weight

    def product(self, x, matrix):
        if self.kind == "mm":
            return torch.mm(x, matrix.t())
        if self.kind == "addmm":
            return torch.addmm(self.bias.to(x.dtype), x, matrix.t())
        return nn.functional.linear(x, matrix, None if self.bias is None else self.bias.to(x.dtype))

    def finish(self, y, x):
        if self.after.startswith("residual"):
            y = y + x.sum(-1, keepdim=True).expand(y.shape)
        if self.after.endswith("relu"):
            return torch.relu(y)
        if self.after == "clamp":
            return torch.clamp(y, -0.5, 1.5)
        return nn.functional.gelu(y) if self.after == "gelu" else y

    def forward(self, x):
        return self.finish(self.product(x, self.matrix()), x)


def row_steps(rows, eight_bits):
    """What a step of each row is worth: 255 between its least and greatest number, or as many of 16 bits
    as exact sums allow."""
    if eight_bits:
        return (rows.amax(-1, keepdim=True) - rows.amin(-1, keepdim=True)) / 255
    return rows.abs().amax(-1, keepdim=True) / min((2 ** 31 - 1) // 127 // rows.shape[-1], 32767)


def int8_bound(layer, x, eight_bits):
    """How far each result of the product may be from the exact one."""
    matrix, rows = layer.matrix().double(), x.double()
    column, row = matrix.abs().amax(1) / 127, row_steps(rows, eight_bits)
    return ((rows.abs().sum(-1, keepdim=True) + row * matrix.shape[1]) * column / 2
            + matrix.abs().sum(1) * row / 2) * 1.001 + 1e-5


def check_layer(server, chance):
    n_in, n_out = chance.randrange(16, 300), chance.randrange(8, 200)
    layer = Layer(chance, n_in, n_out).eval()
    flat = layer.kind in ("mm", "addmm")
    batch = chance.choice((1, 2, 5, 13, 40))
    shape = (batch, n_in) if flat or chance.random() < 0.5 else (batch, chance.randrange(1, 7), n_in)
    x = torch.randn(shape) * 10 ** chance.uniform(-3, 3)
    words = f"{layer.kind}, {layer.after}, {list(shape)} to {n_out}"
    put(server, "layer", layer, torch.randn((max(batch, 2), *shape[1:])))
    exact = layer.product(x.double(), layer.matrix().double())
    for precision in PRECISIONS:
        got, kernels = run(server, "layer", x, precision)
        if (precision != "f32") != any(kernel.startswith(precision) for kernel in kernels):
            raise Failed(f"{words}: kernels of {precision}: {kernels}")
        matrix, rows = layer.matrix().double(), x.double()
        if precision == "bf16":
            matrix = layer.matrix().bfloat16().double()
        if "bf16:avx512_bf16" in kernels:
            rows = x.bfloat16().double()
        if precision == "int8":
            bound = int8_bound(layer, x, "int8:avx512_vnni" in kernels)
            low, high = (layer.finish(exact + sign * bound, x.double()) for sign in (-1, 1))
            if layer.after == "gelu":  # not monotonous, slope at most 1.13
                low, high = (layer.finish(exact, x.double()) + sign * 1.13 * bound for sign in (-1, 1))
            slack = 1e-5 * max(1.0, float(exact.abs().max()))
            if not bool(((got >= low - slack) & (got <= high + slack)).all()):
                raise Failed(f"{words}: int8 is further from the exact result than its steps explain")
        else:
            want = layer.finish(layer.product(rows, matrix), x.double())
            limit = 3e-6 * n_in ** 0.5 * max(1e-3, float(exact.abs().max()))
            if not float((got - want).abs().max()) <= limit:
                raise Failed(f"{words}: {precision} is {float((got - want).abs().max()):.3g} away, "
                             f"allowed are {limit:.3g}")
        at = chance.randrange(batch)
        alone, _ = run(server, "layer", x[at:at + 1].contiguous(), precision)
        if not torch.equal(alone[0], got[at]):
            raise Failed(f"{words}: {precision}: a sample has other bits in its batch")


class Turned(nn.Module):
    """A layer whose rows do not lie one after another, but for a batch of one."""

    def __init__(self, how, n_in, n_out):
        super().__init__()
        self.how, self.linear = how, nn.Linear(n_in, n_out)

    def forward(self, x):
        x = x.t() if self.how == "columns" else x.transpose(0, 1)
        return torch.relu(self.linear(x)) if self.how == "relu" else self.linear(x)


def check_turned(server, chance):
    n_in, n_out, batch = chance.randrange(16, 200), chance.randrange(8, 100), chance.choice((2, 5, 13))
    how = chance.choice(("columns", "steps", "relu"))
    layer = Turned(how, n_in, n_out).eval()
    x = torch.randn((n_in, batch) if how == "columns" else (chance.randrange(2, 6), batch, n_in))
    archive = io.BytesIO()
    shapes = ({1: torch.export.Dim("n", min=1, max=64)},)
    torch.export.save(torch.export.export(layer, (x,), dynamic_shapes=shapes), archive)
    if server.call("PUT", "/v1/graphs/turned", archive.getvalue()).status not in (200, 201):
        raise Failed("upload")
    with torch.no_grad():
        want = layer(x)
    at = chance.randrange(batch)
    for precision in PRECISIONS:
        got, kernels = run(server, "turned", x, precision)
        alone, others = run(server, "turned", x[:, at:at + 1].contiguous(), precision)
        words = f"{how}, {list(x.shape)} to {n_out}, {precision}"
        if not torch.allclose(got, want, rtol=0.05, atol=0.05 if precision != "f32" else 1e-4):
            raise Failed(f"{words}: {float((got - want).abs().max()):.3g} away")
        if precision != "f32" and not any(kernel.startswith(precision) for kernel in kernels):
            raise Failed(f"{words}: kernels {kernels}")
        if precision != "f32" and not torch.equal(alone[0], got[at]):
            raise Failed(f"{words}: a sample has other bits in its batch: {kernels}, alone {others}")


# ---- recurrent layers ----
def rounded(x):
    return x.bfloat16().double()


def recurrent_steps(net, x, states, number):
    """One layer in one direction in float64: state and weights of its steps are bfloat16. `states`: h, c."""
    weights = {key: getattr(net, f"{key}_{number}").double() for key in ("weight_ih", "weight_hh")}
    biases = [getattr(net, f"bias_{key}_{number}").double() if net.bias else 0.0 for key in ("ih", "hh")]
    h, c = states
    outputs = []
    for row in (x.flip(0) if number.endswith("reverse") else x):
        a = row @ weights["weight_ih"].t() + biases[0]
        b = rounded(h.float()) @ rounded(weights["weight_hh"].float()).t() + biases[1]
        if isinstance(net, nn.LSTM):
            i, f, g, o = (a + b).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        elif isinstance(net, nn.GRU):
            (ar, az, an), (br, bz, bn) = a.chunk(3, -1), b.chunk(3, -1)
            z = torch.sigmoid(az + bz)
            h = (1 - z) * torch.tanh(an + torch.sigmoid(ar + br) * bn) + z * h
        else:
            h = torch.tanh(a + b) if net.nonlinearity == "tanh" else torch.relu(a + b)
        outputs.append(h)
    return torch.stack(outputs[::-1] if number.endswith("reverse") else outputs)


class Steps(nn.Module):
    """The input is what the products with it give, so that only the steps are of less precision."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)[0]


def check_recurrent(server, chance):
    kind = chance.choice((nn.LSTM, nn.LSTM, nn.GRU, nn.RNN))
    n_in, cells, steps = chance.randrange(1, 16), chance.choice((8, 64, 75, 150)), chance.randrange(1, 12)
    both, bias, batch = chance.random() < 0.4, chance.random() < 0.7, chance.choice((1, 1, 2, 5))
    more = {"nonlinearity": chance.choice(("tanh", "relu"))} if kind is nn.RNN else {}
    net = kind(n_in, cells, bias=bias, bidirectional=both, **more).eval()
    x = torch.randn(steps, batch, n_in)  # fewer inputs than products of less precision have
    put(server, "steps", Steps(net), x, dynamic=False)
    zeros = torch.zeros(batch, cells, dtype=torch.float64)
    with torch.no_grad():
        exact = net(x)[0]
        want = torch.cat([recurrent_steps(net, x.double(), (zeros, zeros), f"l0{end}")
                          for end in ["", "_reverse"][:1 + both]], -1)
    for precision in PRECISIONS:
        got, kernels = run(server, "steps", x, precision)
        narrow = any(kernel == "bf16:recurrent" for kernel in kernels)
        words = f"{kind.__name__} {n_in} to {cells}, {steps} steps of {batch}, {precision}"
        gates = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}[kind]
        if narrow != (precision != "f32" and HAS_BF16 and gates * cells * cells >= 16384):
            raise Failed(f"{words}: kernels {kernels}")
        limit, of = (2e-3, want) if narrow else (1e-5, exact)  # a state may be rounded the other way
        if not float((got - of).abs().max()) <= limit * max(1.0, float(of.abs().max())):
            raise Failed(f"{words}: {float((got - of).abs().max()):.3g} away")


# ---- networks ----------------------------------------------------------------------------------
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 48, batch_first=True), nn.Linear(48, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def networks():
    torch.manual_seed(5)
    block = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, activation="gelu")
    yield "transformer", nn.TransformerEncoder(block, 3).eval(), torch.randn(3, 17, 64)
    yield "convolutions", nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 6 * 6, 128), nn.ReLU(), nn.Linear(128, 10)).eval(), torch.randn(3, 3, 18, 18)
    yield "strided convolutions", nn.Sequential(
        nn.Conv2d(4, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).eval(), torch.randn(3, 4, 40, 40)
    yield "transposed convolutions", nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 40, 2, 2), nn.ReLU(),
        nn.ConvTranspose2d(40, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 8, 3, 2, 1, 1)
    ).eval(), torch.randn(3, 3, 17, 19)
    yield "LSTM", Recurrent().eval(), torch.randn(2, 9, 32)


DECIBELS = {"f32": 100, "bf16": 40, "int8": 35}


def check_network(server, name, module, x):
    put(server, "net", module, x, dynamic=False)
    with torch.no_grad():
        want = module(x).double()
    for precision in PRECISIONS:
        got, kernels = run(server, "net", x, precision)
        attends = any(kernel.startswith("bf16:attention") for kernel in kernels)
        if name == "transformer" and attends != (precision != "f32" and HAS_BF16):
            raise Failed(f"{name}, {precision}: attention of bfloat16 or not, in spite of {kernels}")
        if name == "transposed convolutions" and HAS_BF16 and precision != "f32":
            if sum(kernel.startswith(f"{precision}:direct") for kernel in kernels) != 4:
                raise Failed(f"{name}: not four convolutions of {precision} among {kernels}")
        if name == "strided convolutions" and "bf16:avx512_bf16" in kernels:
            if not any(kernel.startswith("bf16:direct") for kernel in kernels):
                raise Failed(f"{name}: no convolution of bfloat16 among {kernels}")
        if name == "strided convolutions" and "int8:avx512_vnni" in kernels:
            if sum(kernel.startswith("int8:direct") for kernel in kernels) != 3:
                raise Failed(f"{name}: not three convolutions of 8 bits among {kernels}")
            for at in range(len(x)):
                alone = x.clone()
                alone[:at], alone[at + 1:] = float("nan"), 1e30
                if not torch.equal(run(server, "net", alone, precision)[0][at], got[at]):
                    raise Failed(f"{name}: {precision}: a sample has other bits beside NaN and 1e30")
        noise = float(((got - want) ** 2).sum())
        decibels = 10 * math.log10(float((want ** 2).sum()) / max(noise, 1e-300))
        print(f"{name}, {precision}: {decibels:.1f} dB")
        if not decibels >= DECIBELS[precision]:
            raise Failed(f"{name}: {precision} is at {decibels:.1f} dB, wanted are {DECIBELS[precision]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    torch.manual_seed(args.seed)
    with serving(args.program) as (server, tally):
        checks = [(f"case {n}", lambda: check_layer(server, chance)) for n in range(args.cases)]
        checks += [(f"turned {n}", lambda: check_turned(server, chance)) for n in range(args.cases // 8)]
        checks += [(f"recurrent {n}", lambda: check_recurrent(server, chance))
                   for n in range(args.cases // 4)]
        checks += [(name, lambda name=name, module=module, x=x: check_network(server, name, module, x))
                   for name, module, x in networks()]
        for name, check in checks:
            try:
                check()
                tally.ok()
            except Failed as problem:
                tally.bad(f"{name} (--seed {args.seed})", problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
