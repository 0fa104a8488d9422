# SPDX-License-Identifier: Apache-2.0
"""Small .pt2 archives with what str(torch.export.load(f).graph) prints for them.

    python make_pt2_cases.py FOLDER [NAME ...]

`<name>.pt2` and `<name>.graph`: the graph, then per child graph a line `== path` and its graph,
then one newline. `<name>.readable`: its print_readable() and one newline. Names ending in
`_decomposed` went through run_decompositions(). Stack traces are left out: they name files.
"""

import collections
import dataclasses
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn
from torch._higher_order_ops import associative_scan, map as map_op, scan, while_loop
from torch.export import Dim, export, load, save

AUTO = Dim.AUTO
Pair = collections.namedtuple("Pair", "first second")
pytree._register_namedtuple(Pair, serialized_type_name="cases.Pair")


@dataclasses.dataclass
class Both:
    a: object
    b: object


pytree.register_dataclass(Both, serialized_type_name="cases.Both")

CASES = {}


def case(make_args, kwargs=None, dynamic=None, train=False, decomposed=False):
    """Registers the decorated module class with its example arguments."""

    def register(cls):
        CASES[cls.__name__] = (cls, make_args, kwargs or {}, dynamic, train, decomposed)
        return cls

    return register


@case(lambda: (torch.randn(3, 6),))
class cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x).sin(), lambda x: x.cos() - 1, (x,))


@case(lambda: (torch.randn(5, 6),), dynamic=({0: AUTO},))
class cond_on_size(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x * 2, (x,))


@case(lambda: (torch.randn(5, 6),))
class cond_in_cond(nn.Module):
    def forward(self, x):
        def inner(x):
            return torch.cond(x.mean() > 1, lambda x: x + 1, lambda x: x - 1, (x,))

        return (torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,)),
                torch.cond(x.sum() > 3, inner, lambda x: x * 2, (x,)))


@case(lambda: (torch.randn(2, 3),))
class while_loops(nn.Module):
    def forward(self, x):
        i, z = while_loop(lambda i, z: i < 4, lambda i, z: (i + 1, z * 1.25 + 0.1), (torch.tensor(0), x))
        return z, i


@case(lambda: (torch.randn(3, 4),))
class scans(nn.Module):
    def forward(self, x):
        return scan(lambda c, y: (c + y, (c * y).sin()), torch.zeros(4), x, dim=0)


@case(lambda: (torch.randn(3, 4),))
class maps(nn.Module):
    def forward(self, x):
        return map_op(lambda v, o: v * o, x, torch.ones(4))


@case(lambda: (torch.randn(3, 4),))
class vmapped_scan(nn.Module):
    def forward(self, x):
        return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


@case(lambda: (torch.randn(2, 3),))
class regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = x.sin() + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.a(x)
        return y, z.float()


@case(lambda: (torch.tensor(2), torch.randn(6)))
class sizes_from_data(nn.Module):
    def forward(self, n, x):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 4)
        return x[:k].sum(), torch.zeros(k), x.nonzero(), x[x > 0]


@case(lambda: (torch.randn(5, 7),), dynamic=({0: AUTO, 1: AUTO},))
class size_arithmetic(nn.Module):
    def forward(self, x):
        a, b = x.shape
        return x * a**0.5, max(a, 5), min(b, a), -a, a % 3, a * b // 2, 3


@case(lambda: (torch.randn(4, 6),))
class many_results(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.GRU(6, 2)  # noqa: E741 (its name is in the committed archive)

    def forward(self, x):
        o, _ = self.l(x)
        return (o, x.split(1)[0], x.topk(1)[1], x.unbind()[0], x.max(1)[0], x.max(0).indices,
                torch.aminmax(x)[0])


@case(lambda: (torch.randn(4, 6),), decomposed=True)
class counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(0))
        self.register_buffer("last", torch.zeros(6), persistent=False)
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        self.n.add_(1)
        self.last.copy_(x[0])
        return x.clone().mul_(2).view(4, 6).relu_() + self.last + (x * self.w).relu_()


@case(lambda: (torch.randn(4, 6),))
class views_written(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.zeros(8)
        self.register_buffer("left", base[:4])
        self.register_buffer("whole", base)
        self.register_buffer("apart", torch.zeros(4))

    def forward(self, x):
        self.left.view(2, 2).add_(1)
        return x + self.whole[:6] + self.apart.sum()


@case(lambda: (torch.randn(4, 6),), decomposed=True)
class input_written(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


@case(lambda: (torch.randn(4, 6),), train=True, decomposed=True)
class batch_norm_training(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.BatchNorm1d(6)
        self.c = nn.BatchNorm1d(6).eval()

    def forward(self, input):
        return self.b(input)


@case(lambda: (torch.randn(2, 3),), kwargs={"c": torch.ones(1), "b": 2.5})
class keywords(nn.Module):
    def forward(self, input, b=None, c=None):
        return input * b + c


@case(lambda: (torch.randn(2, 3), 3, 2.5, True, "mean", None))
class literals(nn.Module):
    def forward(self, input, n, f, flag, mode, none):
        return input * n + f if flag else input


@case(lambda: (torch.randn(2, 3), 4), dynamic=({0: AUTO}, AUTO))
class symbolic_input(nn.Module):
    def forward(self, x, n):
        return x + n, x.new_zeros(n)


@case(lambda: ({"a": torch.ones(2), "b": [torch.ones(2), (torch.ones(2),)]}, collections.OrderedDict(
    z=torch.ones(2)), Pair(torch.ones(2), torch.ones(2)), Both(torch.ones(2), None)))
class containers(nn.Module):
    def forward(self, d, o, pair, both):
        return {"h": d["a"] + o["z"], "pair": Pair(pair.first, [pair.second]),
                "both": Both(both.a + 1, d["b"][0]), "none": None, "k": 3}


@case(lambda: (torch.randn(2, 3),))
class weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(9.0).reshape(3, 3))
        self.tied = self.w
        base = torch.arange(64.0).reshape(8, 8)
        self.register_buffer("view", base[2:5, 1:4])
        self.register_buffer("full", base)
        self.register_buffer("exp", torch.ones(1).expand(3))
        self.register_buffer("cl",
                             torch.arange(12.0).reshape(1, 3, 2, 2).to(memory_format=torch.channels_last))
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("bf", torch.arange(3).to(torch.bfloat16))
        self.register_buffer("h", torch.arange(3).half())
        self.register_buffer("c", torch.arange(3).to(torch.complex64))
        self.register_buffer("flags", torch.tensor([True, False, True]))
        self.register_buffer("u16", torch.ones(3, dtype=torch.uint16))
        self.register_buffer("i8", torch.ones(3, dtype=torch.int8))
        self.register_buffer("d", torch.arange(3).double())
        self.register_buffer("unused", torch.ones(2))
        self.const = torch.tensor([1.0, 2, 3])

    def forward(self, x):
        y = (x @ self.w @ self.tied + self.view[0] + self.full[0, :3] + self.exp + self.cl.sum() + self.bf
             + self.h + self.c.real)
        return y + self.flags + self.i8 + self.d + self.empty.sum() + self.const + torch.tensor(7)


@case(lambda: (torch.randn(2, 3),))
class argument_kinds(nn.Module):
    def forward(self, x):
        y = x.to(torch.float16).to(memory_format=torch.contiguous_format)
        z = torch.full((2, 3), float("inf"), dtype=torch.float64) + torch.full((2, 3), float("nan"))
        items = x[:, [0, 1]], x[None, ..., 1:], torch.einsum("ij,kj->ik", x, x), torch.mul(x, 1j)
        made = (torch.arange(0, 10, 2, device="cpu"), torch.linspace(0, 1, 5),
                F.pad(x, (1, 1), mode="constant", value=-1.5))
        found = (torch.bucketize(x, torch.tensor([0.0, 1.0]), right=True), x.clamp(min=-1e-7, max=1e20),
                 x.std(dim=1, correction=0))
        shaped = (torch.div(x, 2, rounding_mode="floor"),
                  F.interpolate(x[None, None], scale_factor=2.0, mode="nearest"))
        last = (x[None, None].contiguous(memory_format=torch.channels_last),
                torch.zeros_like(x, memory_format=torch.preserve_format))
        return y, z, *items, *made, *found, *shaped, *last


@case(lambda: (torch.randn(3, 8), torch.randn(3, 8)), dynamic=({0: AUTO}, {0: AUTO}))
class shape_guards(nn.Module):
    def forward(self, x, y):
        return x + y, torch.cat([x, y]), x.reshape(-1), x.view(x.shape[0] * 2, -1)


@case(lambda: (torch.randn(3, 8),))
class reserved_names(nn.Module):
    def forward(self, input):
        return input.max() + input.sum(), input.abs().max(dim=0)[0], input.sum()


def graph_modules(program):
    return [("", program.graph_module)] + [
        (name, child) for name, child in program.graph_module.named_modules() if name
        and isinstance(child, torch.fx.GraphModule)
    ]


def make(folder, name, program):
    for _, module in graph_modules(program):
        for node in module.graph.nodes:
            node.meta.pop("stack_trace", None)
            node.meta.pop("from_node", None)
    save(program, folder / f"{name}.pt2")
    loaded = load(folder / f"{name}.pt2")
    text = "\n".join((f"== {path}\n" if path else "") + str(module.graph)
                     for path, module in graph_modules(loaded))
    (folder / f"{name}.graph").write_text(text + "\n")
    readable = loaded.graph_module.print_readable(print_output=False)
    if "FloatPow(" not in readable:  # printed as a**b here
        (folder / f"{name}.readable").write_text(readable + "\n")


def main():
    warnings.simplefilter("ignore")
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for name, (cls, make_args, kwargs, dynamic, train, decomposed) in CASES.items():
        if wanted and name not in wanted:
            continue
        torch.manual_seed(0)
        module = cls() if train else cls().eval()
        program = export(module, make_args(), kwargs, dynamic_shapes=dynamic, strict=False)
        if decomposed:
            make(folder, name + "_decomposed", program.run_decompositions())
        make(folder, name, program)


if __name__ == "__main__":
    main()
