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
import operator
import pathlib
import random
import sys
import warnings

import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from export_fx import dumps, export_fx
from modules import received, sent
from service import serving

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
        self.graph, self.inputs, self.root = fx.Graph(), [], nn.Module()

    def input(self, tensor):
        self.inputs.append(tensor)
        return self.graph.placeholder(f"x{len(self.inputs) - 1}")

    def __call__(self, function, *args, **kwargs):
        if isinstance(function, str):
            return self.graph.call_method(function, args, kwargs)
        return self.graph.call_function(function, args, kwargs)

    def close(self, outputs):
        self.graph.output(outputs)
        self.module = fx.GraphModule(self.root, self.graph)
        return self

    def want(self, seed):
        """PyTorch's results, and whether it drew anything."""
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        with torch.no_grad():
            leaves = pytree.tree_leaves(self.module(*(tensor.clone() for tensor in self.inputs)))
        return leaves, not torch.equal(before, torch.get_rng_state())

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


# Method, arguments, dtypes.
FILLS = (
    ("uniform_", (), FLOATS + COMPLEX),
    ("uniform_", (-3.5, 7.25), FLOATS),
    ("uniform_", (0.1, 0.7), FLOATS),
    ("normal_", (), FLOATS),
    ("normal_", (1.3, 0.7), FLOATS + COMPLEX),
    ("log_normal_", (), FLOATS),
    ("log_normal_", (0.1, 0.25), FLOATS),
    ("exponential_", (), FLOATS),
    ("exponential_", (2.5,), FLOATS),
    ("cauchy_", (), FLOATS),
    ("cauchy_", (0.3, 1.7), FLOATS),
    ("geometric_", (0.3,), FLOATS + INTS),
    ("random_", (), FLOATS + INTS + (torch.bool,)),
    ("random_", (17,), FLOATS + INTS),
    ("random_", (3, 100), FLOATS + INTS),
    ("random_", (5, None), FLOATS + INTS),
    ("random_", (-100, 1 << 40), FLOATS[:2] + (torch.bfloat16, torch.int64)),
    ("random_", (-(1 << 40) - 1, (1 << 62) + 5), FLOATS[:2] + (torch.bfloat16, torch.int64)),
    ("random_", (-(1 << 63), None), FLOATS[:2] + (torch.bfloat16, torch.int64)),
    ("random_", (1 << 28,), FLOATS[:2] + (torch.int64, torch.int32)),
    ("random_", (1 << 32,), FLOATS[:2] + (torch.int64,)),
    ("random_", (4097, 60000), FLOATS),
    ("bernoulli_", (), FLOATS + INTS + (torch.bool,)),
    ("bernoulli_", (0.3,), FLOATS + INTS + (torch.bool,)),
)


def fill_rows():
    for method, args, dtypes in FILLS:
        mkl = method in ("exponential_", "bernoulli_")
        for dtype in dtypes:
            for size in SIZES if dtype in FLOATS[:2] else SIZES[3:5]:
                g = Drawing()
                x = g(torch.zeros, size, dtype=dtype)
                yield f"{method}{args}", g.close((g(method, x, *args), x)), mkl
        for strided in STRIDED:
            g = Drawing()
            x = g("clone", strided(g))
            yield f"{method}{args} strided", g.close((g(method, x, *args), x)), mkl
        g = Drawing()
        x = g(torch.zeros, 6, 9)
        part = g("t", g(torch.narrow, x, 1, 2, 5))
        g(method, part, *args)
        yield f"{method}{args} of a view", g.close((x, part)), mkl


def integer_rows():
    for dtype in INTS + FLOATS:
        for size in SIZES:
            for args in ((100,), (3, 90)):
                g = Drawing()
                yield "randint", g.close(g(torch.randint, *args, (size,), dtype=dtype)), False
        g = Drawing()
        x = g(torch.zeros, 5, 7, dtype=dtype)
        yield "randint_like", g.close((g(torch.randint_like, x, 11), g(torch.randint_like, x, 3, 9),
                                       g(torch.randint_like, x, 5, dtype=torch.int64))), False
    for high in (1 << 28, (1 << 28) - 1, 1 << 31, 1 << 33, (1 << 63) - 1):
        g = Drawing()
        outputs = g(torch.randint, high, (20,)), g(torch.randint, -5, high, (20,))
        yield "randint wide", g.close(outputs), False


def probability_rows():
    for dtype in FLOATS:
        for size in SIZES:
            p = torch.linspace(0, 1, size).to(dtype)
            g = Drawing()
            x = g.input(p)
            y = g("bernoulli_", g(torch.zeros, size, dtype=torch.int32), x)
            outputs = g(torch.bernoulli, x), g(torch.bernoulli, x, 0.25), y
            yield "bernoulli of tensor", g.close(outputs), True
    for strided in STRIDED:
        g = Drawing()
        x = g(torch.mul, strided(g), 0.5)
        y = g(torch.ops.aten.bernoulli.Tensor, x, g.input(torch.tensor(0.3)))
        yield "bernoulli strided", g.close((g(torch.bernoulli, x), y)), False
    for p in (torch.rand(7, 1), torch.rand(1, 5).double(), torch.rand(5), torch.tensor(0.5)):
        g = Drawing()
        y = g("bernoulli_", g("t", g(torch.zeros, 5, 7)), g.input(p))
        yield "bernoulli_ repeated", g.close(y), False


def dropout_rows():
    inputs = [torch.linspace(-2, 3, size).to(dtype) for dtype in FLOATS for size in SIZES[:5]]
    for x in inputs:
        for p in (0.1, 0.5, 1.0):
            g = Drawing()
            y = g.input(x)
            native = g(torch.ops.aten.native_dropout.default, y, p, True)
            yield "dropout", g.close((g(F.dropout, y, p), native, g(F.alpha_dropout, y, p, True))), True
    shapes = ((2, 3, 4, 5), (3, 4, 5), (2, 6), (2, 3, 2, 3, 2))
    for shape in shapes:
        x = torch.linspace(-2, 3, torch.Size(shape).numel()).reshape(shape)
        for function in (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.feature_alpha_dropout,
                         F.alpha_dropout, F.rrelu):
            if function is F.dropout1d and len(shape) not in (2, 3):
                continue
            for inplace in (False, True):
                g = Drawing()
                y = g("clone", g.input(x))
                z = g(function, y, training=True, inplace=inplace)
                yield "dropout of features", g.close((z, y)), True
        g = Drawing()
        y = g("transpose", g.input(x), 0, 1)
        outputs = (g(torch.dropout, y, 0.3, True), g(F.rrelu, y, training=True),
                   g(torch.native_dropout, y, 0.3, True))
        yield "dropout strided", g.close(outputs), True
    g = Drawing()
    yield "gumbel_softmax", g.close(g(F.gumbel_softmax, g.input(x), 0.7, True)), False


def slope_rows():
    for dtype in FLOATS:
        for size in SIZES if dtype != torch.float16 else ():
            g = Drawing()
            x = g.input(torch.linspace(-2, 1, size).to(dtype))
            noise = g(torch.zeros_like, x)
            y = g(torch.ops.aten.rrelu_with_noise.default, x, noise, 0.1, 0.3, True)
            z = g(torch.ops.aten.rrelu_with_noise_functional.default, x, noise, 0.2, 0.7, True)
            yield "rrelu", g.close((g(torch.rrelu, x, 0.1, 0.9, True), y, noise, g(operator.getitem, z, 0),
                                    g(operator.getitem, z, 1), g(torch.rrelu, x))), False


def category_rows():
    for dtype in FLOATS:
        for n in (1, 2, 15, 17, 1000):
            weights = (torch.arange(n) * 7 % 11 + (n == 1)).to(dtype)
            rows = torch.stack([weights + 1, weights.flip(0) + 0.5, (weights - 3).abs() + 0.25])
            counts = [(1, False), (1, True), (40, True), (1000, True)]
            counts += [(n // 2, False)] if n > 2 else []
            for w in (weights, rows):
                for count, again in counts:
                    g = Drawing()
                    x = g.input(w)
                    y = g("t", g("contiguous", g("t", x)))
                    outputs = g(torch.multinomial, x, count, again), g(torch.multinomial, y, count, again)
                    yield "multinomial", g.close(outputs), not again or count == 1
    for n in (0, *SIZES):
        g = Drawing()
        short = g(torch.randperm, min(n, 120), dtype=torch.int8)
        yield "randperm", g.close((g(torch.randperm, n), short)), False
    for dtype in FLOATS + INTS:
        g = Drawing()
        yield "randperm", g.close(g(torch.randperm, 127, dtype=dtype)), False


def normal_rows():
    for dtype in FLOATS:
        for size in SIZES[:5]:
            mean, deviation = torch.linspace(-3, 3, size).to(dtype), torch.linspace(0, 2, size)
            g = Drawing()
            m, d = g.input(mean), g.input(deviation.to(dtype))
            yield "normal", g.close((g(torch.normal, m, 0.7), g(torch.normal, 0.3, d), g(torch.normal, m, d),
                                     g(torch.normal, 0.5, 1.5, (size,)))), False
    g = Drawing()
    m, d = g.input(torch.rand(4, 1)), g.input(torch.rand(5).double())
    yield "normal repeated", g.close((g(torch.normal, m, d), g(torch.normal, d, m))), False


MODULES = (nn.Dropout(0.3), nn.Dropout1d(0.4), nn.Dropout2d(0.4), nn.Dropout3d(0.4), nn.AlphaDropout(0.2),
           nn.FeatureAlphaDropout(0.3), nn.RReLU(0.1, 0.4), nn.Dropout(0.3, inplace=True), nn.Dropout(1.0),
           nn.RReLU(inplace=True), nn.Dropout(0.0))


def module_rows():
    for module in MODULES:
        for training in (True, False):
            for shape in ((3, 4, 5), (40, 10)):
                g = Drawing()
                values = torch.linspace(-2, 3, torch.Size(shape).numel())
                x = g("clone", g.input(values.reshape(shape)))
                y = g.graph.call_module("layer", (x,))
                g.root.layer = module.train(training)
                yield f"{module}", g.close((y, x, g(torch.rand, 2))), True


TABLES = (factory_rows, fill_rows, integer_rows, probability_rows, dropout_rows, slope_rows, category_rows,
          normal_rows, module_rows)


# ---- random graphs -----------------------------------------------------------------------------
# Each makes a new float tensor of one axis from an earlier one.


CALM = (
    lambda g, x, y: g(torch.clamp, x, 0, 1),
    lambda g, x, y: g(torch.mul, x, 1.5),
    lambda g, x, y: g(torch.cat, [x, y]),
    lambda g, x, y: g(operator.getitem, x, slice(None, None, 2)),
    lambda g, x, y: g(torch.masked_select, x, g(torch.gt, x, 0.3)),  # its size is known when it has run
    lambda g, x, y: g(torch.flip, x, [0]),
)
DRAWS = (
    lambda g, x, y: g(torch.rand_like, x),
    lambda g, x, y: g(torch.randn, g("size", x, 0)),
    lambda g, x, y: g("float", g(torch.randint_like, x, 3, 9)),
    lambda g, x, y: g("uniform_", g("clone", x), -1.0, 2.0),
    lambda g, x, y: g("normal_", g("clone", x), 0.2, 0.7),
    lambda g, x, y: g("float", g(torch.randperm, g("size", x, 0))),
    lambda g, x, y: g(torch.normal, x, 0.5),
    lambda g, x, y: g("float", g(torch.multinomial, g(torch.cat, [g(torch.abs, x), g(torch.ones, 2)]),
                                 5, True)),
)
MKL_DRAWS = (
    lambda g, x, y: g(torch.bernoulli, g(torch.clamp, x, 0, 1)),
    lambda g, x, y: g(F.dropout, x, 0.4),
    lambda g, x, y: g(F.rrelu, x, training=True),
    lambda g, x, y: g("exponential_", g("clone", x), 1.5),
)


def random_drawing(seed, mkl):
    """Draws between operators that draw nothing; a fifth of the results is read by nobody."""
    choose, g = random.Random(seed), Drawing()
    torch.manual_seed(seed)
    values = [g.input(torch.rand(choose.choice((1, 3, 17, 40)))) for _ in range(2)]
    draws = DRAWS if mkl else DRAWS + MKL_DRAWS
    for _ in range(choose.randint(2, 12)):
        make = choose.choice(draws if choose.random() < 0.6 else CALM)
        made = make(g, choose.choice(values), choose.choice(values))
        if choose.random() < 0.8:
            values.append(made)
    return g.close(tuple(values))


# ---- one graph ---------------------------------------------------------------------------------


def bits(tensor):
    return tensor.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)


def problem_of(server, drawing, seed, mode):
    want, draws = drawing.want(seed)
    reply = server.call("POST", "/v1/run", drawing.body(seed, mode))
    if reply.status != 200:
        return reply.short()
    document = reply.json()
    got = [received(entry) for entry in document["outputs"]]
    if document.get("seed") != (seed if draws else None):
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
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    mkl, left_out = uses_mkl(), 0
    with serving(options.fxserve) as (server, tally):
        for table in TABLES:
            for name, drawing, may_use_mkl in table():
                if options.word not in name:
                    continue
                if mkl and may_use_mkl:
                    left_out += 1
                    continue
                try_row(server, tally, name, drawing, SEEDS)
        for seed in range(options.seed * 1000003, options.seed * 1000003 + options.graphs):
            if options.word in f"graph {seed}":
                try_row(server, tally, f"graph {seed}", random_drawing(seed, mkl), SEEDS[:1])
    print(f"{left_out} rows left out: PyTorch draws them with MKL's generators here" if left_out else "",
          end="\n" if left_out else "")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
