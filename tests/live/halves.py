# SPDX-License-Identifier: Apache-2.0
"""Random layers whose weights are float16 or bfloat16, against PyTorch.

    .venv/bin/python tests/live/halves.py build/fxserve [--cases N] [--seed N]

Linear layers, products, convolutions and attention, uploaded as exports and run in both modes. A result is
no further from the exact one, computed in float64, than PyTorch's furthest by 30 %, or than a step of
the dtype at the largest result. Needs torch 2.13. The last line is `N passed, N failed`.
"""

import argparse
import io
import json
import pathlib
import random
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from random_graphs import encode_tensor
from safetensors.torch import save
from service import multipart, serving

HALVES = (torch.bfloat16, torch.float16)
STEP = {torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11}


class Product(nn.Module):
    """x by a constant matrix, as mm, addmm or a linear layer of turned tokens."""

    def __init__(self, kind, n_in, n_out):
        super().__init__()
        self.kind = kind
        shape = (n_out, n_in) if kind == "turned" else (n_in, n_out)
        self.weight = nn.Parameter(torch.randn(shape) / n_in ** 0.5)
        self.bias = nn.Parameter(torch.randn(n_out))

    def forward(self, x):
        if self.kind == "turned":
            return F.linear(x.transpose(0, 1), self.weight, self.bias)
        return x @ self.weight if self.kind == "mm" else torch.addmm(self.bias, x, self.weight)


class Attention(nn.Module):
    def __init__(self, heads, depth, causal):
        super().__init__()
        self.heads, self.depth, self.causal = heads, depth, causal

    def forward(self, x):
        queries, keys, values = (part.unflatten(-1, (self.heads, self.depth)).transpose(1, 2)
                                 for part in x.chunk(3, -1))
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=self.causal)


def linear(chance):
    n_in, n_out = chance.choice((1, 3, 16, 33, 64, 257, 512)), chance.choice((1, 7, 8, 33, 100, 130))
    shape = chance.choice(((1,), (5,), (64,), (2, 9)))
    return nn.Linear(n_in, n_out, chance.random() < 0.7), (*shape, n_in)


def product(chance):
    n_in, n_out, n = chance.choice((1, 16, 33, 100)), chance.choice((1, 8, 33, 75)), chance.choice((1, 5, 64))
    kind = chance.choice(("mm", "addmm", "turned"))
    return Product(kind, n_in, n_out), (n, 3, n_in) if kind == "turned" else (n, n_in)


def convolution(chance):
    rank, kernel = chance.choice((1, 2, 2, 2, 3)), chance.choice((1, 1, 3, 3, 5))
    dilation = chance.choice((1, 1, 2))
    n_in, n_out, groups = chance.choice((1, 3, 4, 8, 16, 33, 64)), chance.choice((1, 4, 8, 33, 64)), 1
    if chance.random() < 0.3:
        groups, n_out = n_in, n_in
    size = [chance.randint(max(6, kernel * dilation), max(6, kernel * dilation) + 12 // rank)
            for _ in range(rank)]
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
    layer = kind(n_in, n_out, kernel, chance.choice((1, 1, 2)), chance.choice((0, kernel // 2)), dilation,
                 groups, chance.random() < 0.7)
    return nn.Sequential(layer, nn.ReLU()), (chance.randint(1, 3), n_in, *size)


def attention(chance):
    heads, depth = chance.choice((1, 2, 4)), chance.choice((8, 32, 48, 64, 128))
    return (Attention(heads, depth, chance.random() < 0.4),
            (chance.randint(1, 2), chance.choice((1, 9, 33, 70, 130)), 3 * heads * depth))


MAKERS = (linear, linear, product, convolution, convolution, attention)


def problem(got, want, exact, dtype):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
    off, theirs = (got.double() - exact).abs().max(), (want.double() - exact).abs().max()
    allowed = max(1.3 * theirs, STEP[dtype] * exact.abs().max())
    return "" if off <= allowed else f"off by {off:.3g}, PyTorch by {theirs:.3g}, allowed {allowed:.3g}"


def run(server, x, mode):
    body = {"inputs": [encode_tensor(x)], "mode": mode, "encoding": "b64"}
    reply = server.call("POST", "/v1/graphs/m/run", json.dumps(body).encode())
    return reply.body[:300] if reply.status != 200 else reply.json()


def try_case(server, tally, chance, label):
    module, shape = chance.choice(MAKERS)(chance)
    dtype = chance.choice(HALVES)
    module, x = module.eval().to(dtype), torch.randn(shape).to(dtype)
    with torch.no_grad():
        want = module(x)
    archive = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,)), archive)
    with torch.no_grad():
        exact = module.double()(x.double())
    reply = server.call("PUT", "/v1/graphs/m", archive.getvalue())
    tally.check(f"{label}: uploaded", "" if reply.status in (200, 201) else reply.body[:300])
    for mode in ("eager", "compiled"):
        reply = run(server, x, mode)
        got = None if isinstance(reply, bytes) else decode_tensor(reply["outputs"][0])
        words = reply if got is None else problem(got, want, exact, dtype)
        tally.check(f"{label}: {type(module).__name__} {tuple(shape)}, {dtype}, {mode}", words)


def try_one_storage(server, tally):
    """The same bytes as weights of both dtypes: neither may be packed for the other."""
    given = torch.randn(7, 64).bfloat16()
    weights = {"w": given, "v": given.view(torch.float16)}
    state = {name: {"dtype": str(weight.dtype)[6:], "shape": [7, 64], "storage": "s", "stride": [64, 1],
                    "offset": 0} for name, weight in weights.items()}
    nodes = [{"op": "placeholder", "name": name, "target": name} for name in ("a", "b")]
    nodes += [{"op": "get_attr", "name": name, "target": name} for name in weights]
    nodes += [{"op": "call_function", "name": f"{name}l", "target": "torch.nn.functional.linear",
               "args": [f"%{x}", f"%{name}"]} for x, name in (("a", "w"), ("b", "v"))]
    nodes += [{"op": "output", "name": "output", "target": "output", "args": [{"$tuple": ["%wl", "%vl"]}]}]
    graph = json.dumps({"format": "fx/1", "nodes": nodes, "state": state}).encode()
    body, kind = multipart([("graph", graph), ("weights", save({"s": given.flatten()}))])
    reply = server.call("PUT", "/v1/graphs/two", body, [("Content-Type", kind)])
    tally.check("one storage: uploaded", "" if reply.status in (200, 201) else reply.body[:300])
    inputs = [torch.randn(5, 64).to(weight.dtype) for weight in weights.values()]
    for mode in ("eager", "compiled"):
        body = {"inputs": [encode_tensor(x) for x in inputs], "mode": mode, "encoding": "b64"}
        reply = server.call("POST", "/v1/graphs/two/run", json.dumps(body).encode())
        for x, (name, weight), at in zip(inputs, weights.items(), range(2)):
            words = reply.body[:300]
            if reply.status == 200:
                got = decode_tensor(reply.json()["outputs"][at])
                words = problem(got, F.linear(x, weight), F.linear(x.double(), weight.double()), x.dtype)
            tally.check(f"one storage: {name}, {mode}", words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server")
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    torch.manual_seed(options.seed)
    with serving(options.server) as (server, tally):
        for case in range(options.cases):
            try_case(server, tally, chance, f"case {case}")
        try_one_storage(server, tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
