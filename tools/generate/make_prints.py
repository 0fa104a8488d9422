# SPDX-License-Identifier: Apache-2.0
"""Makes the printing corpus: graphs as FX JSON with the texts PyTorch prints for them.

    python tools/generate/make_prints.py [--out tests/print]          the committed corpus
    python tools/generate/make_prints.py --random 60 --seed 7 --out d   other graphs, made on the
    fly

Per graph: `<name>.fx.json`, and what PyTorch gives plus one newline each in `<name>.graph`
(str(gm.graph)), `<name>.code` (gm.code), `<name>.readable` (gm.print_readable(), the class called
GraphModule) and `<name>.tabular` (gm.graph.print_tabular(), where functions, whose repr holds an
address, stand by their qualified names). For the archives of tests/models: `<model>.pt2.graph`,
`.pt2.code` and `.pt2.readable`, of `torch.export.load(f)`. Needs the package tabulate.
"""

import argparse
import contextlib
import importlib
import math
import operator
import pathlib
import sys
import random
import typing

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.graph_module import _print_readable
from torch.fx.node import _get_qualified_name

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from export_fx import dumps, export_fx, import_fx

CORPUS = {}


def corpus(function):
    """Registers a function that returns what to trace, a Graph or a GraphModule."""
    CORPUS[function.__name__] = function
    return function


def graph_module(value):
    if isinstance(value, torch.fx.GraphModule):
        return value
    if isinstance(value, torch.fx.Graph):
        return torch.fx.GraphModule(nn.Module(), value)
    return torch.fx.symbolic_trace(value)


def module(**children):
    """A module with these children, parameters (tensors) and forward."""
    forward = children.pop("forward")
    holder = type("Holder", (nn.Module,), {"forward": forward})()
    for name, child in children.items():
        setattr(holder, name, nn.Parameter(child) if isinstance(child, torch.Tensor) else child)
    return holder


# ---- the committed corpus ----------------------------------------------------------------------


@corpus
def relu_neg_abs_methods():
    return lambda x: x.relu().neg().abs()


@corpus
def relu_neg_abs_functions():
    return lambda x: torch.abs(torch.neg(torch.relu(x)))


@corpus
def neg_sigmoid():
    return lambda x: torch.sigmoid(torch.neg(x))


@corpus
def containers():
    def forward(x):
        y = torch.relu(x)
        return y + y * 2, {"a": y[0], "b": (x, [y.shape[0], slice(None)])}

    return forward


@corpus
def misc_args():
    def forward(x, w=1.5, k=None):
        y = torch.cat([x, x], dim=1)[:, ::2, None, ...]
        y = y.view(x.size(0), -1).to(torch.float16) * math.inf - math.nan
        y = F.dropout(y, p=0.5, training=False).sum(dim=(0, 1), keepdim=True)
        return y + torch.tensor([1.0, 2.0]).mul(w)

    return forward


@corpus
def linear_in_a_module():
    return module(linear=nn.Linear(10, 20), forward=lambda self, x: self.linear(x))


@corpus
def linear_itself():
    return nn.Linear(10, 20)


@corpus
def nested_modules():
    def forward(self, x):
        y = self.features(x).mean([2, 3])
        return torch.relu(self.fc(y) * self.p + self.b)

    features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    return module(features=features, fc=nn.Linear(8, 4), p=torch.ones(4), b=torch.zeros(4), forward=forward)


@corpus
def sequential():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU())


@corpus
def docs_my_module():
    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)

    return module(param=torch.zeros(3, 4), linear=nn.Linear(4, 5), forward=forward)


@corpus
def manual_with_a_dead_node():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    negated = graph.call_method("neg", (relu,))
    result = graph.call_function(torch.abs, (negated,))
    graph.call_function(torch.sin, (x,))
    graph.output(result)
    return graph


@corpus
def placeholders():
    graph = torch.fx.Graph()
    x = graph.placeholder("input", torch.Tensor, default_value=None)
    graph.placeholder("*args")
    graph.placeholder("**kwargs")
    graph.output((x,))
    return graph


@corpus
def defaults_and_types():
    def forward(
        x: torch.Tensor,
        n: int = 3,
        scale: float = -0.5,
        name: str = "it's",
        mask: typing.Optional[torch.Tensor] = None,
        sizes: typing.List[int] = (1, 2),
        flag: bool = True,
    ) -> torch.Tensor:
        return x * n + scale

    return forward


@corpus
def attributes():
    def forward(x):
        shape = x.shape
        return x.view(shape[0], -1).T, x.dtype, x.device, getattr(x, "data"), x.ndim, x.mT.real

    return forward


@corpus
def operators():
    def forward(x, y):
        a = ((x + y) - (x * y)) / (x // 2) % 3 @ (x**2) << 1 >> 2
        b = (-x) & (~y) | (x ^ y)
        c = [x == y, x != y, x < y, x <= y, x > y, x >= y, +x]
        return a, b, c, 2 - x, 2 / x, 2**x, 3 // y, 5 % y, abs(x), x.__invert__()

    return forward


@corpus
def in_place_operators():
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior",
                 "ixor", "ilshift", "irshift"):
        x = graph.call_function(getattr(operator, name), (x, y))
    graph.output(x)
    return graph


@corpus
def item_assignment():
    graph = torch.fx.Graph()
    x, i = graph.placeholder("x"), graph.placeholder("i")
    graph.call_function(operator.setitem, (x, (slice(None), 0), 1.5))
    graph.call_function(operator.setitem, (x, i, graph.call_method("add_", (x, 1))))
    item = graph.call_function(operator.getitem, (x, (Ellipsis, slice(i, None, 2), None)))
    graph.output({"x": x, "item": item})
    return graph


@corpus
def names():
    graph = torch.fx.Graph()
    x = graph.placeholder("input")
    values = [graph.placeholder(name) for name in ("lambda_", "class_1", "torch", "inf", "nan", "device")]
    for name in ("abs", "sum", "max", "print", "len", "type", "id", "True_", "pytree", "NoneType", "x_1",
                 "x_1", "x_01", "_", "9", "a-b.c", "self"):
        values.append(graph.create_node("call_function", torch.relu, (x,), {}, name=name))
    for target in ("layerNorm", "XMLHttpRequest", "__dunder__", "A_B", "sin", "sin", "Abs"):
        values.append(graph.call_method(target, (x,)))
    graph.output(values)
    return graph


@corpus
def texts():
    def forward(x):
        a = torch.einsum("bij,bjk->bik", x, x)
        b = F.interpolate(a, scale_factor=2.0, mode="bilinear", align_corners=False)
        c = a.foo('double "quotes"', "it's", "both '\"", "tab\t, line\n, back\\slash",
                  "controls \x01 \x7f \x1f")
        d = a.bar("%percent", "$dollar", "%%", "", "ünïcode ☃ 🎉", "\u200b\ufeff\u00ad", kw="%x")
        return {"%key": b, "$key": c, "it's": d, "plain": "text"}

    return forward


@corpus
def numbers():
    def forward(x):
        y = x * 1e-05 + 1e16 - 1e15 * x + 0.1 + 1e22 + 123456789.123 + 5e-324 + 1.7976931348623157e308
        y = y.clamp(-0.0, -math.inf) + math.inf - math.nan
        y = y * (2 + 3j) - (-1j) + complex(0.0, -0.0) * complex(math.inf, math.nan) + 1.5j
        return (y, 9223372036854775807, -9223372036854775808, True, False, 1.0, 100000.0, 1e100,
                3.14159265358979)

    return forward


@corpus
def dtypes_and_devices():
    def forward(x):
        a = x.to(torch.bfloat16).to(device=torch.device("cpu"), dtype=torch.int64)
        b = torch.zeros_like(a, dtype=torch.bool, layout=torch.strided, device="cpu")
        c = b.contiguous(memory_format=torch.channels_last)
        return (c.clone(memory_format=torch.preserve_format), torch.device("cpu"), torch.complex64,
                torch.channels_last_3d)

    return forward


@corpus
def last_uses():
    def forward(x, y):
        a = x + x
        b = torch.cat([y, a, x, a])
        x.add_(y)  # nobody reads this
        c = b.split(2, dim=0)
        d = torch.where(c[0] > 0, c[1], a)
        return d + a, b

    return forward


@corpus
def slices_with_nodes():
    def forward(x, n):
        size = x.size(0)
        return x[:size], x[size - 1 : n : 2, ..., None], x[[0, 1]], x[n, 1:], x[(slice(n), (1, 2))]

    return forward


@corpus
def nested_arguments():
    def forward(x, y):
        return x.call([y, (x, [y]), {"k": (y,)}], a={"p": [x, None], "q": ()}, b=[], c={}, d=((),), e=(y,))

    return forward


@corpus
def nothing_returned():
    graph = torch.fx.Graph()
    graph.placeholder("x")
    graph.output(None)
    return graph


@corpus
def constants_returned():
    graph = torch.fx.Graph()
    graph.output((1, "a", [None, True], {"k": 2.5}))
    return graph


@corpus
def python_functions():
    def forward(x):
        n = x.size(0)
        graph_calls = [math.floor, math.sqrt, torch.Tensor.add, torch._assert, torch.sym_max]
        tracer = x.tracer
        made = [tracer.create_proxy("call_function", f, (n, 2)[: 1 + (f not in (math.floor, math.sqrt))], {})
                for f in graph_calls]
        made.append(tracer.create_proxy("call_function", len, (x,), {}))
        made.append(tracer.create_proxy("call_function", getattr, (x, "grad", None), {}))
        made.append(tracer.create_proxy("call_function", getattr, (x, "not an identifier"), {}))
        return made

    return forward


@corpus
def child_graph():
    from torch.fx.passes.split_module import split_module

    gm = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Sigmoid()))
    return split_module(gm, gm, lambda node: 0 if node.name in ("_0", "_1") else 1)


@corpus
def overloads():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    add = graph.call_function(torch.ops.aten.add.Tensor, (x, 2), {"alpha": 0.5})
    top = graph.call_function(torch.ops.aten.topk.default, (add, 3))
    first = graph.call_function(operator.getitem, (top, 0))
    to = graph.call_function(torch.ops.aten._to_copy.default, (first,),
                             {"dtype": torch.float64, "device": torch.device("cpu")})
    view = graph.call_function(torch.ops.aten.view.default, (to, [-1]))
    graph.output((view,))
    return graph


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        y = self.bn(self.conv(x)).relu().mean((2, 3))
        values, indices = torch.topk(self.fc(y) * self.scale, 2)
        return {"values": values, "indices": indices, "parts": y.split(2, 1)}


@corpus
def exported():
    batch = torch.export.Dim("batch")
    program = torch.export.export(Exported().eval(), (torch.zeros(2, 1, 6, 6),),
                                  dynamic_shapes={"x": {0: batch}})
    return torch.fx.GraphModule(nn.Module(), without_lines(program.graph))


@corpus
def exported_core():
    program = torch.export.export(Exported().eval(), (torch.zeros(2, 1, 6, 6),)).run_decompositions()
    return torch.fx.GraphModule(nn.Module(), without_lines(program.graph))


def without_lines(graph):
    """The lines of Python name the files of this machine."""
    for node in graph.nodes:
        node.meta.pop("stack_trace", None)
    return graph


@corpus
def lines_of_python():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    traces = (
        'File "m.py", line 3, in forward\n    y = self.lin(x)\n  File "linear.py", line 7, in forward\n    '
        "return F.linear(input)",
        'File "m.py", line 3, in forward\n    y = self.lin(x)\n  File "linear.py", line 7, in forward\n    '
        "return F.linear(input)",
        None,
        '  File "a", line 1, in b", line 22, in forward\n\tindented(x)  \n',
        'File "no line below.py", line 5, in forward',
        'File "m.py", line 9, in forward\n    z = (\n    y,\n  )',
        "what is this?\nand this",
        'File "m.py", line , in forward\n    a\nFile "m.py", line 10, in \n    b',
        "",
    )
    value = x
    for trace in traces:
        value = graph.call_function(torch.relu, (value,))
        value.meta["stack_trace"] = trace
        value.meta["tensor_meta"] = torch.zeros(2, 3)
    graph.output(value)
    graph.lint()
    return graph


# ---- graphs made on the fly --------------------------------------------------------------------

UNARY = [torch.relu, torch.neg, torch.abs, torch.sin, F.softmax, F.gelu, F.silu, math.floor, torch.sum,
         operator.neg, len, torch.ops.aten.relu.default, torch.ops.aten.sum.dim_IntList, F.hardswish,
         torch.fft.fft, torch.linalg.inv]
BINARY = [torch.add, operator.add, operator.mul, operator.getitem, operator.iadd, operator.eq, torch.matmul,
          F.linear, operator.matmul, operator.floordiv, torch.ops.aten.add.Tensor, torch.maximum,
          operator.pow, operator.and_]
METHODS = ["view", "relu", "sum", "max", "permute", "add_", "T", "__and__", "toString", "split", "squeeze_",
           "float", "type"]
WORDS = ["x", "y", "input", "self", "torch", "abs_1", "sum", "weight", "out_2", "Hidden", "layer.0", "class",
         "fn", "_", "a b", "x_1"]


def random_float(chance):
    return chance.choice([
        chance.uniform(-10, 10), float(chance.randint(-5, 5)), 10.0 ** chance.randint(-20, 20), math.inf,
        -math.inf, math.nan,
        -0.0, chance.random() * 10.0 ** chance.randint(-310, 300), float(chance.getrandbits(60)),
    ])


def random_text(chance):
    alphabet = "abcXYZ019 _.-%$'\"\\\n\t/äß☃\x01\x7f\u00a0🎉"
    return "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 9)))


def random_value(chance, nodes, depth=0):
    """A node argument: any kind, nested at most three deep."""
    kind = chance.randint(0, 16 if depth < 3 else 10)
    if kind <= 3 and nodes:
        return chance.choice(nodes)
    if kind in (0, 4):
        return chance.choice([0, 1, -1, 2, 7, -100, 2**31, -(2**63), 2**63 - 1])
    if kind in (1, 5):
        return random_float(chance)
    if kind in (2, 6):
        return random_text(chance)
    if kind in (3, 7):
        return chance.choice([None, True, False, Ellipsis])
    if kind == 8:
        return chance.choice([torch.float32, torch.bfloat16, torch.bool, torch.strided, torch.channels_last,
                              torch.int64])
    if kind == 9:
        return chance.choice([torch.device("cpu"), complex(random_float(chance), random_float(chance))])
    if kind == 10:
        bounds = [chance.choice([None, chance.randint(-5, 9), *nodes[-2:]]) for _ in range(3)]
        return slice(*bounds)
    items = [random_value(chance, nodes, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind <= 13:
        return tuple(items)
    if kind <= 15:
        return items
    return {random_text(chance): item for item in items}


def random_graph(seed):
    """A GraphModule with all opcodes and kinds of arguments. It prints; it need not run."""
    chance = random.Random(seed)
    root, graph = nn.Module(), torch.fx.Graph()
    root.features = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Tanh()))
    root.layerNorm, root.weight = nn.LayerNorm(2), nn.Parameter(torch.ones(2))
    root.register_buffer("running_mean", torch.zeros(1))
    nodes, taken = [], set()
    for _ in range(chance.randint(1, 5)):
        name = chance.choice(WORDS).replace(".", "_").replace(" ", "_") if nodes else "x"
        if name in taken or name in ("class", "self"):
            continue
        taken.add(name)
        types = [None, None, torch.Tensor, int, float, bool, str]
        node = graph.create_node("placeholder", name, (), {}, type_expr=chance.choice(types))
        if any(node.args for node in nodes):
            node.args = (random_float(chance),)
        elif chance.random() < 0.3:
            node.args = (chance.choice([None, 1.5, 2, "text", True, [1, 2], (1,), torch.float16]),)
        nodes.append(node)
    for _ in range(chance.randint(0, 14)):
        args = [random_value(chance, nodes) for _ in range(chance.randint(0, 2))]
        kwargs = {f"k{i}": random_value(chance, nodes) for i in range(chance.choice([0, 0, 1, 2]))}
        kind = chance.randint(0, 5)
        first = chance.choice(nodes)
        name = chance.choice(WORDS) if chance.random() < 0.2 else None
        type_expr = chance.choice([None] * 9 + [torch.Tensor, int])
        if kind == 0:
            target = chance.choice(["features.0.weight", "weight", "running_mean", "layerNorm.bias"])
            node = graph.create_node("get_attr", target, (), {}, name, type_expr)
        elif kind == 1:
            target = chance.choice(["features.0", "features.1", "features.2.0", "layerNorm", "features"])
            node = graph.create_node("call_module", target, (first, *args), kwargs, name, type_expr)
        elif kind == 2:
            node = graph.create_node("call_method", chance.choice(METHODS), (first, *args), kwargs,
                                     name, type_expr)
        elif kind == 3:
            second = random_value(chance, nodes)
            node = graph.create_node("call_function", chance.choice(BINARY), (first, second), {},
                                     name, type_expr)
        else:
            target = chance.choice(UNARY)
            more = () if target is operator.neg else args
            node = graph.create_node("call_function", target, (first, *more),
                                     {} if target is operator.neg else kwargs, name, type_expr)
        nodes.append(node)
    output = graph.output(random_value(chance, nodes))
    output.type = chance.choice([None, None, torch.Tensor])
    return torch.fx.GraphModule(root, graph)


def torch_modules():
    """Traced networks of torch.nn layers: (name, GraphModule)."""
    layers = {
        "autoencoder": nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8), nn.Sigmoid()),
        "norms": nn.Sequential(nn.BatchNorm1d(4), nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4)),
        "activations": nn.Sequential(*(cls() for cls in (nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish,
                                                         nn.Hardswish, nn.PReLU))),
        "pools": nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((1, None)),
                               nn.Flatten()),
        "upsampling": nn.Sequential(nn.ConvTranspose2d(2, 2, 2), nn.Upsample(scale_factor=2),
                                    nn.PixelShuffle(1)),
        "embedding": nn.Sequential(nn.Embedding(5, 3), nn.Dropout(0.1), nn.Linear(3, 2, bias=False)),
        "parallel": module(a=nn.Linear(2, 2), b=nn.Linear(2, 2),
                           forward=lambda self, x: torch.cat([self.a(x), self.b(x)], -1)),
        "gated": module(g=nn.Linear(2, 4),
                        forward=lambda self, x: (lambda y: y[..., :2] * y[..., 2:].sigmoid())(self.g(x))),
        "attention": module(q=nn.Linear(4, 4), forward=lambda self, x: F.scaled_dot_product_attention(
            self.q(x), x, x, is_causal=True)),
        "loop": module(cell=nn.Linear(2, 2), forward=lambda self, x: [
            x := torch.tanh(self.cell(x)) for _ in range(4)]),  # noqa: F841 (each round reads the x before)
        "functional": lambda x, w: F.layer_norm(F.conv2d(F.pad(x, (1, 1)), w, stride=2), [4], eps=1e-6),
        "statistics": lambda x: {"mean": x.mean(), "std": x.std(0, keepdim=True), "max": x.max(dim=1),
                                 "top": x.topk(2)},
    }
    return [(name, torch.fx.symbolic_trace(layer)) for name, layer in layers.items()]


def on_the_fly(count, seed):
    """`count` other GraphModules as (name, module): some traced networks, the rest random."""
    made = torch_modules()[:count]
    return made + [(f"random_{seed}_{index}", random_graph(f"{seed}/{index}"))
                   for index in range(count - len(made))]


# ---- texts -------------------------------------------------------------------------------------


def tabular(graph):
    from tabulate import tabulate

    def target(node):
        plain = isinstance(node.target, (str, torch._ops.OpOverload, torch._ops.HigherOrderOperator))
        return node.target if plain else _get_qualified_name(node.target)

    rows = [[node.op, node.name, target(node), node.args, node.kwargs] for node in graph.nodes]
    return tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"])


def texts_of(gm):
    """What PyTorch prints, by form; without "tabular" if the package tabulate is missing."""
    texts = {"graph": str(gm.graph), "code": gm.code,
             "readable": _print_readable(gm, "GraphModule", print_output=False)}
    with contextlib.suppress(ImportError):
        texts["tabular"] = tabular(gm.graph)
    return texts


def write(folder, name, gm):
    """Writes one graph with its texts, and checks that the JSON holds all that printing shows."""
    document = export_fx(gm, inline=True)[0]
    for form, text in texts_of(gm).items():
        (folder / f"{name}.{form}").write_text(text + "\n", encoding="utf-8", newline="")
    (folder / f"{name}.fx.json").write_text(dumps(document), encoding="utf-8")
    again = import_fx(document)
    if str(again.graph) != str(gm.graph) or again.code != gm.code:
        print(f"{name}: FX JSON does not give the same texts back")


def main():
    tests = pathlib.Path(__file__).resolve().parent.parent.parent / "tests"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=tests / "print")
    parser.add_argument("--random", type=int, metavar="N",
                        help="write N graphs made on the fly instead of the corpus")
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    importlib.import_module("tabulate")  # say at once if it is missing
    torch.manual_seed(0)
    if options.random:
        for name, gm in on_the_fly(options.random, options.seed):
            write(options.out, name, gm)
        return
    for name, make in CORPUS.items():
        write(options.out, name, graph_module(make()))
    archives = [path for path in sorted((tests / "models").glob("*.pt2")) if "_hf" not in path.name]
    for path in archives:
        program = torch.export.load(path)
        code = torch.fx.GraphModule(nn.Module(), program.graph).code
        readable = program.graph_module.print_readable(print_output=False)
        for form, text in (("graph", str(program.graph)), ("code", code), ("readable", readable)):
            (options.out / f"{path.name}.{form}").write_text(text + "\n", encoding="utf-8", newline="")
    print(f"{len(CORPUS)} graphs, {len(archives)} archives")


if __name__ == "__main__":
    main()
