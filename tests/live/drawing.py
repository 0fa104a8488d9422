# SPDX-License-Identifier: Apache-2.0
"""Random operators against PyTorch, bit for bit: drawing.py FXSERVE [--graphs N] [--seed S] [WORD].

Needs torch 2.13. Every graph runs with seeds in both modes and must give the bits of
torch.manual_seed(seed) followed by torch.fx's own run. First come tables of calls over sizes and
dtypes, then random graphs in which such calls, deterministic ones, unused ones and ones whose shapes
depend on numbers stand side by side. Where PyTorch draws with MKL's generators, which it does for
bernoulli and exponential on processors made by Intel, those rows are left out and counted.
"""
import argparse
import json
import pathlib
import sys
import warnings

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from export_fx import dumps, export_fx
from modules import received, sent
from service import Server, Tally

SEEDS = (0, 1, 42)
SIZES = (1, 15, 16, 17, 1000, 100003)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
MODES = ("eager", "compiled")


def uses_mkl():
    """Whether PyTorch takes MKL's generators on this processor."""
    torch.manual_seed(0)
    plain = (torch.rand(100, dtype=torch.float64) < 0.5).float()
    torch.manual_seed(0)
    return not torch.equal(torch.empty(100).bernoulli_(0.5), plain)


class Drawing:
    """A torch.fx graph under construction, and values for its inputs."""

    def __init__(self):
        self.graph, self.inputs = fx.Graph(), []

    def input(self, tensor):
        self.inputs.append(tensor)
        return self.graph.placeholder(f"x{len(self.inputs) - 1}")

    def __call__(self, function, *args, **kwargs):
        if isinstance(function, str):
            return self.graph.call_method(function, args, kwargs)
        return self.graph.call_function(function, args, kwargs)

    def close(self, outputs):
        self.graph.output(outputs)
        self.module = fx.GraphModule(nn.Module(), self.graph)
        return self

    def want(self, seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            return pytree.tree_leaves(self.module(*(tensor.clone() for tensor in self.inputs)))

    def body(self, seed, mode):
        document = json.loads(dumps(export_fx(self.module, inline=True)[0]))
        inputs = {f"x{i}": sent(tensor) for i, tensor in enumerate(self.inputs)}
        return json.dumps({"graph": document, "mode": mode, "encoding": "b64", "seed": seed,
                           "inputs": inputs}).encode()


# Tensors that are not contiguous; inputs arrive contiguous.
STRIDED = (
    lambda g: g("contiguous", g.input(torch.ones(2, 3, 4, 5)), memory_format=torch.channels_last),
    lambda g: g("t", g.input(torch.ones(4, 6))),
    lambda g: g("permute", g.input(torch.ones(3, 1, 7)), 2, 0, 1),
    lambda g: g("clone", g("t", g.input(torch.ones(40, 30)))),
    lambda g: g.input(torch.ones(())),
    lambda g: g.input(torch.ones(3, 0)),
)


# ---- tables ------------------------------------------------------------------------------------
# Each yields (name, drawing, whether PyTorch may use MKL's generators for it).


def factory_rows():
    for size in SIZES:
        for dtype in FLOATS + COMPLEX:
            for function in (torch.rand, torch.randn):
                g = Drawing()
                yield function.__name__, g.close(g(function, size, dtype=dtype)), False
        for function in (torch.rand_like, torch.randn_like):
            g = Drawing()
            yield function.__name__, g.close(g(function, g.input(torch.ones(size)))), False
    for function in (torch.rand_like, torch.randn_like):
        for strided in STRIDED:
            g = Drawing()
            yield function.__name__ + " strided", g.close(g(function, strided(g))), False


TABLES = (factory_rows,)


# ---- one graph ---------------------------------------------------------------------------------


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def problem_of(server, drawing, seed, mode):
    want = drawing.want(seed)
    reply = server.call("POST", "/v1/run", drawing.body(seed, mode))
    if reply.status != 200:
        return reply.short()
    document = reply.json()
    got = [received(entry) for entry in document["outputs"]]
    if document.get("seed") != seed:
        return f"the reply's seed is {document.get('seed')}"
    for at, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            if ours != theirs:
                return f"result {at}: {ours!r}, PyTorch has {theirs!r}"
        elif ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"result {at}: {ours.dtype} {ours.shape}, PyTorch has {theirs.dtype} {theirs.shape}"
        elif not torch.equal(bits(ours), bits(theirs)):
            a, b = ours.reshape(-1), theirs.reshape(-1)
            differs = (bits(ours).view(a.numel(), -1) != bits(theirs).view(a.numel(), -1)).any(1)
            first = int(differs.nonzero()[0])
            return (f"result {at}: {int(differs.sum())} of {a.numel()} elements differ, the first at "
                    f"{first}: {a[first]!r}, PyTorch has {b[first]!r}")
    return None


def try_row(server, tally, name, drawing, seeds):
    problems = [f"seed {seed}, {mode}: {problem}" for seed in seeds for mode in MODES
                if (problem := problem_of(server, drawing, seed, mode))]
    tally.check(f"{name}\n{drawing.module.code.strip()}" if problems else name, "; ".join(problems))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fxserve")
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    tally, mkl, left_out = Tally(), uses_mkl(), 0
    server = Server(options.fxserve, ["--data", "none", "--quiet"]).start()
    try:
        for table in TABLES:
            for name, drawing, may_use_mkl in table():
                if options.word not in name:
                    continue
                if mkl and may_use_mkl:
                    left_out += 1
                    continue
                try_row(server, tally, name, drawing, SEEDS)
    finally:
        server.stop()
    print(f"{left_out} rows left out: PyTorch draws them with MKL's generators here" if left_out else "",
          end="\n" if left_out else "")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
