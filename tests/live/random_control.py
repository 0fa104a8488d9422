# SPDX-License-Identifier: Apache-2.0
"""Random graphs with cond, while_loop, scan and map against PyTorch.

    python tests/live/random_control.py build/fxserve [--seed 1] [--graphs 500] [--seconds 60]

Needs torch 2.13 and safetensors. Graphs are built node by node, with child graphs two levels deep that
write in place, return what they are given, transpose, and take weights; they run in both modes. Graphs
that give other numbers in float64 are left out. A graph that differs is printed. The last line is
`N passed, N failed`.
"""
import argparse
import copy
import operator
import random
import sys
import time
import warnings

import torch
from safetensors.torch import save as save_safetensors
from torch import fx, nn
from zoo import Bench, Miss, Tally, cloned, dumps, export_fx, multipart

warnings.filterwarnings("ignore")
HOPS = torch.ops.higher_order
UNARY = (torch.sin, torch.tanh, torch.neg, torch.abs, torch.sigmoid, torch.relu)
BINARY = (torch.add, torch.sub, torch.mul, torch.maximum)
ROWS, COLUMNS = 3, 4


class Making:
    """A graph being built: `values` are its nodes of shape (3, 4)."""

    def __init__(self, rng, owner, depth, n_values):
        self.rng, self.owner, self.depth = rng, owner, depth
        self.graph = fx.Graph()
        self.values = [self.graph.placeholder(f"v{i}") for i in range(n_values)]
        self.fresh = set()  # made here, so they may be written

    def pick(self):
        return self.rng.choice(self.values[-4:] + self.values[:2])

    def call(self, function, *args):
        return self.graph.call_function(function, args)

    def add(self, function, *args):
        node = self.call(function, *args)
        self.values.append(node)
        self.fresh.add(node)
        return node

    # ---- statements ----
    def unary(self):
        self.add(self.rng.choice(UNARY), self.pick())

    def binary(self):
        self.add(torch.tanh, self.call(self.rng.choice(BINARY), self.pick(), self.pick()))

    def product(self):
        self.add(torch.tanh, self.call(torch.matmul, self.pick(), self.owner.weight(self)))

    def written(self):
        node = self.add(torch.clone, self.pick())
        row = self.call(torch.ops.aten.select.int, node, 0, self.rng.randrange(ROWS))
        self.call(torch.ops.aten.mul_.Tensor, self.rng.choice([node, row]), 0.5)
        self.call(torch.ops.aten.add_.Tensor, node, self.pick())

    def turned(self):
        turned = self.call(torch.t, self.pick())
        self.add(torch.t, self.call(torch.sin, turned))

    def normed(self):
        self.add(torch.softmax, self.pick(), self.rng.randrange(2))

    def cond(self):
        n = self.rng.randint(1, 3)
        predicate = self.call(torch.gt, self.call(torch.sum, self.pick()), self.rng.choice([-1., 0., 1.]))
        operands = [self.pick() for _ in range(n)]
        n_results = self.rng.randint(1, 2)
        branches = [self.child(n, n_results) for _ in range(2)]
        self.take(self.call(HOPS.cond, predicate, *branches, operands), n_results)

    def loop(self):
        n, n_more = self.rng.randint(1, 3), self.rng.randint(0, 2)
        zero = self.call(torch.sum, self.call(torch.mul, self.pick(), 0.))
        count = self.call(torch.ops.aten.to.dtype, zero, torch.int64)
        most = self.rng.choice([0, 1, 2, 5])
        start = [self.call(torch.clone, self.pick()) for _ in range(n)]
        carried = self.call(HOPS.while_loop, self.until(n + n_more, most), self.child(n + n_more, n, True),
                            (count, *start), tuple(self.pick() for _ in range(n_more)))
        self.take(carried, n, 1)

    def scan(self):
        n, n_over, n_more = self.rng.randint(1, 2), self.rng.randint(1, 2), self.rng.randint(0, 1)
        start = [self.call(torch.clone, self.pick()) for _ in range(n)]
        columns, n_rows = self.rng.randint(0, 2), self.rng.choice([1, 3, 9, 12])
        result = self.call(HOPS.scan, self.child(n + n_over + n_more, n + columns), start,
                           [self.stack(n_rows) for _ in range(n_over)], [self.pick() for _ in range(n_more)])
        self.take(result, n)
        for k in range(n, n + columns):
            self.add(torch.sum, self.call(operator.getitem, result, k), 0)

    def map(self):
        n_more, columns = self.rng.randint(0, 1), self.rng.randint(1, 2)
        rows = self.stack(self.rng.choice([1, 3, 9, 12]))
        result = self.call(HOPS.map_impl, self.child(1 + n_more, columns), [rows],
                           [self.pick() for _ in range(n_more)])
        for k in range(columns):
            self.add(torch.sum, self.call(operator.getitem, result, k), 0)

    # ---- parts of statements ----
    def stack(self, n):
        """Rows to go over: (n, 3, 4)."""
        rows = self.call(torch.stack, [self.pick() for _ in range(n)], self.rng.choice([0, 0, 1]))
        if self.rng.random() < 0.3:
            return self.call(torch.stack, [self.pick() for _ in range(n)], 0)
        return self.call(torch.ops.aten.reshape.default, rows, [n, ROWS, COLUMNS])

    def take(self, result, n, first=0):
        for k in range(first, first + n):
            node = self.call(operator.getitem, result, k)
            self.values.append(node)

    def child(self, n_values, n_results, counts=False):
        making = Making(self.rng, self.owner, self.depth + 1, n_values + counts)
        count = making.values.pop(0) if counts else None
        for _ in range(self.rng.randint(1, 4)):
            making.statement()
        results = [self.rng.choice(making.values[n_values:] or making.values) for _ in range(n_results)]
        if self.rng.random() < 0.8:  # else results may be operands, or the same twice
            results = [making.call(torch.clone, node) for node in results]
        if counts:
            results.insert(0, making.call(torch.add, count, 1))
        return self.owner.keep(self, making, tuple(results))

    def until(self, n_values, most):
        making = Making(self.rng, self.owner, self.depth + 1, n_values + 1)
        goes_on = making.call(torch.lt, making.values[0], most)
        if self.rng.random() < 0.3:
            # not 3: that is what three rows of softmax add up to
            total = making.call(torch.lt, making.call(torch.sum, making.values[1]), 2.9)
            goes_on = making.call(torch.logical_and, goes_on, total)
        return self.owner.keep(self, making, goes_on)

    def statement(self):
        plain = [self.unary, self.binary, self.product, self.written, self.turned, self.normed]
        control = [self.cond, self.loop, self.scan, self.map] if self.depth < 2 else []
        self.rng.choice(plain * 2 + control * 3)()


class Owner:
    """Makes the modules that graphs fetch; every graph has its own weight."""

    def __init__(self, rng):
        self.rng, self.modules, self.n = rng, {}, 0

    def weight(self, making):
        root = self.modules.setdefault(making, nn.Module())
        if not hasattr(root, "weight"):
            root.weight = nn.Parameter(torch.randn(COLUMNS, COLUMNS))
        return making.graph.get_attr("weight")

    def keep(self, outer, making, result):
        module = self.finish(making, result)
        root = self.modules.setdefault(outer, nn.Module())
        self.n += 1
        setattr(root, f"part_{self.n}", module)
        return outer.graph.get_attr(f"part_{self.n}")

    def finish(self, making, result):
        making.graph.output(result)
        return fx.GraphModule(self.modules.get(making, nn.Module()), making.graph)


def random_module(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    owner = Owner(rng)
    making = Making(rng, owner, 0, 2)
    for _ in range(rng.randint(2, 6)):
        making.statement()
    rng.choice([making.cond, making.loop, making.scan, making.map])()
    return owner.finish(making, tuple(making.values[2:][-4:]))


def is_stable(module, inputs):
    """Whether rounding changes no branch and is not made larger: float64 gives the same numbers."""
    exact = copy.deepcopy(module).double()(*(x.double() for x in inputs))
    return all(torch.allclose(a, b.float(), rtol=3e-5, atol=3e-6)
               for a, b in zip(module(*cloned(inputs)), exact))


def check(bench, module):
    """False: left out."""
    inputs = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    if not is_stable(module, inputs):
        return False
    document, tensors = export_fx(module)
    weights = save_safetensors({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    parts = [("graph", dumps(document).encode())] + ([("weights", weights)] if tensors else [])
    body, kind = multipart(parts)
    bench.upload(body, [("Content-Type", kind)])
    bench.check(module, inputs, ["v0", "v1"])
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0, help="stop after that time (0: never)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"seed {options.seed}")
    bench, began = Bench(options.fxserve), time.time()
    tally, unstable = Tally(), 0
    try:
        for seed in range(options.seed, options.seed + options.graphs):
            if options.seconds and time.time() - began > options.seconds:
                print(f"stopped after {seed - options.seed} graphs")
                break
            module = random_module(seed)
            try:
                if check(bench, module):
                    tally.ok()
                else:
                    unstable += 1
            except Miss as miss:
                tally.bad(f"graph {seed}", f"{miss}\n{module.graph}")
        print(f"{unstable} graphs left out, in which rounding decides")
    finally:
        tally.check("the server's end", "\n".join(bench.server.stop()))
        bench.server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
