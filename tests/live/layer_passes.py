# SPDX-License-Identifier: Apache-2.0
"""Passes over modules, constants, parts and shapes against torch.fx: layer_passes.py FXSERVE [WORD].

Needs torch 2.13. remove_dropout, fuse and extract_subgraph against torch.fx.experimental.optimization,
constant_fold against torch.fx.experimental.const_fold, shape_prop against ShapeProp: the same text of
the graph, and for shape_prop the same dtype and shape of every node. Constants that become several
tensors are items of a list in PyTorch and tensors of their own here; such graphs are not compared.
"""
import copy
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.experimental import const_fold, optimization
from torch.fx.passes.shape_prop import ShapeProp

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from rewriting import text_of, trace, transform
from service import serving


class Layers(nn.Module):
    """Layers by name and what forward does with them."""

    def __init__(self, forward, **layers):
        super().__init__()
        self.does = forward
        for name, layer in layers.items():
            if isinstance(layer, nn.Parameter):
                self.register_parameter(name, layer)
            else:
                self.add_module(name, layer)

    def forward(self, x):
        return self.does(self, x)


def norm_of(norm):
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def weight(*shape):
    return nn.Parameter(torch.randn(*shape))


# ---- graphs ------------------------------------------------------------------------------------


def dropout_graphs():
    drop = nn.Dropout
    yield "none", Layers(lambda m, x: torch.relu(x))
    yield "one", Layers(lambda m, x: m.a(torch.relu(x)) + 1, a=drop())
    yield "two in a row", Layers(lambda m, x: m.b(m.a(x)).neg(), a=drop(), b=drop(0.1))
    yield "of an input", Layers(lambda m, x: m.a(x), a=drop())
    yield "called twice", Layers(lambda m, x: m.a(x) + m.a(x.neg()), a=drop())
    yield "with two readers", Layers(lambda m, x: (lambda y: y + y.neg())(m.a(torch.relu(x))), a=drop())
    yield "the result and an inner node", Layers(lambda m, x: (m.a(x), m.a(x).neg()), a=drop())
    yield "in a Sequential", Layers(lambda m, x: m.a(x), a=nn.Sequential(nn.Linear(4, 4), drop(), nn.ReLU()))
    yield "of no probability", Layers(lambda m, x: m.a(x.neg()), a=drop(0))
    yield "relatives of it stay", Layers(lambda m, x: m.a(x) + m.b(x), a=nn.Dropout1d(), b=nn.AlphaDropout())
    yield "functions stay", Layers(lambda m, x: F.dropout(m.a(x), 0.5, False), a=drop())
    yield "between layers", Layers(lambda m, x: m.c(m.a(m.b(x))), a=drop(), b=nn.Linear(4, 4), c=nn.ReLU())


def fuse_graphs():
    linear, norm = nn.Linear, lambda n: norm_of(nn.BatchNorm1d(n))
    conv, norm2 = nn.Conv2d, lambda n: norm_of(nn.BatchNorm2d(n))
    yield "nothing to fuse", Layers(lambda m, x: m.a(x), a=linear(4, 4))
    yield "a linear layer", Layers(lambda m, x: m.b(m.a(x)), a=linear(4, 4), b=norm(4))
    yield "without a bias", Layers(lambda m, x: m.b(m.a(x)), a=linear(4, 4, bias=False), b=norm(4))
    yield "a convolution", Layers(lambda m, x: m.b(m.a(x)).relu(), a=conv(4, 2, 1), b=norm2(2))
    yield "groups and strides", Layers(lambda m, x: m.b(m.a(x)), a=conv(4, 4, 1, 2, groups=2), b=norm2(4))
    yield "three dimensions", Layers(lambda m, x: m.b(m.a(x)), a=nn.Conv3d(4, 2, 1),
                                     b=norm_of(nn.BatchNorm3d(2)))
    yield "one dimension", Layers(lambda m, x: m.b(m.a(x)), a=nn.Conv1d(4, 2, 1), b=norm(2))
    yield "two pairs", Layers(lambda m, x: m.d(m.c(m.b(m.a(x)).relu())), a=linear(4, 4), b=norm(4),
                              c=linear(4, 3), d=norm(3))
    yield "a norm in front", Layers(lambda m, x: m.a(m.b(x)), a=linear(4, 4), b=norm(4))
    yield "a layer with another reader", Layers(lambda m, x: (lambda y: m.b(y) + y)(m.a(x)), a=linear(4, 4),
                                                b=norm(4))
    yield "a call in between", Layers(lambda m, x: m.b(m.a(x).relu()), a=linear(4, 4), b=norm(4))
    yield "a norm with two readers", Layers(lambda m, x: (lambda y: y + y.relu())(m.b(m.a(x))),
                                            a=linear(4, 4), b=norm(4))
    yield "in a Sequential", Layers(lambda m, x: m.a(x), a=nn.Sequential(linear(4, 4), norm(4), nn.ReLU()))
    yield "not affine", Layers(lambda m, x: m.b(m.a(x)), a=conv(4, 2, 1),
                               b=norm_of(nn.BatchNorm2d(2, affine=False)))


class Buffers(fx.Tracer):
    proxy_buffer_attributes = True


def not_to_fuse():
    """(name, graph, steps in front): torch.fx fuses these, and gets other numbers."""
    def graph(does):
        module = Layers(does, a=nn.Linear(4, 4), b=norm_of(nn.BatchNorm1d(4))).eval()
        return fx.GraphModule(module, Buffers().trace(module))

    yield "a Linear of three dimensions", graph(lambda m, x: m.b(m.a(x))), \
        [{"pass": "shape_prop", "shapes": {"x": [2, 4, 4]}}]
    yield "statistics that the graph writes", \
        graph(lambda m, x: x + (m.b.running_mean.add_(1), m.b(m.a(x)))[1]), []
    yield "a weight that the graph writes", \
        graph(lambda m, x: x + (m.b.weight.mul_(2), m.b(m.a(x)))[1]), []


def constant_graphs():
    def w(*shape):
        return weight(*(shape or (4, 4)))

    yield "none", Layers(lambda m, x: x + m.a, a=w())
    yield "one call", Layers(lambda m, x: x + m.a.neg(), a=w())
    yield "a chain", Layers(lambda m, x: x @ m.a.t().relu().neg(), a=w())
    yield "two parameters", Layers(lambda m, x: x + (m.a + m.b), a=w(), b=w())
    yield "one parameter twice", Layers(lambda m, x: x * (m.a * m.a), a=w())
    yield "a parameter with another reader", Layers(lambda m, x: x + m.a.neg() + m.a, a=w())
    yield "a constant with two readers", Layers(lambda m, x: (lambda c: x + c - c * x)(m.a.abs()), a=w())
    yield "functions with numbers", Layers(lambda m, x: x + torch.clamp(m.a * 2, 0, 1), a=w())
    yield "a module", Layers(lambda m, x: x + m.b(m.a), a=w(), b=nn.Linear(4, 4))
    yield "modules that read an input", Layers(lambda m, x: m.b(x) + m.a.neg(), a=w(), b=nn.Linear(4, 4))
    yield "a sum of a sum", Layers(lambda m, x: x + (m.a.sum(0) + m.b), a=w(), b=w(4))
    yield "parameters that calls of x read", Layers(lambda m, x: x.relu() * m.b + m.c.neg() + m.a,
                                                    a=w(), b=w(), c=w())
    yield "a list", Layers(lambda m, x: x + torch.cat([m.a, m.b])[:4], a=w(), b=w())


def shape_graphs():
    yield "calls of one tensor", Layers(lambda m, x: torch.relu(x).sigmoid().neg())
    yield "modules", Layers(lambda m, x: m.b(m.a(x)), a=nn.Linear(4, 3), b=nn.ReLU())
    yield "a Sequential", Layers(lambda m, x: m.a(x), a=nn.Sequential(nn.Linear(4, 8), nn.Tanh()))
    yield "views", Layers(lambda m, x: x.view(2, 8).t().unsqueeze(0).flatten())
    yield "reductions", Layers(lambda m, x: x.sum(0).mean() + x.amax(1, keepdim=True))
    yield "broadcasting", Layers(lambda m, x: x.unsqueeze(1) * x + 1)
    yield "dtypes", Layers(lambda m, x: (x > 0).to(torch.int32) + x.double().long())
    yield "parameters", Layers(lambda m, x: x @ m.a + m.b, a=weight(4, 7), b=weight(7))
    yield "lists", Layers(lambda m, x: torch.cat([x, x, x], 1).t())
    yield "items of lists", Layers(lambda m, x: x.split(2)[1] + x.chunk(2)[0])
    yield "indices", Layers(lambda m, x: x[1:, ::2] + x[0, 0])
    yield "arguments of the largest", Layers(lambda m, x: x.argmax(1) + x.topk(2)[1].sum())


def bounds():
    """(name, graph, names of inputs and outputs of the part)"""
    def chain(m, x):
        a = torch.relu(x)
        b = torch.neg(a)
        c = torch.tanh(b)
        return torch.abs(c + a)

    deep = {"lin": nn.Linear(4, 4), "act": nn.ReLU()}
    yield "the whole", chain, {}, ["x"], ["abs_1"]
    yield "the first calls", chain, {}, ["x"], ["neg"]
    yield "one call", chain, {}, ["neg"], ["tanh"]
    yield "the last calls", chain, {}, ["relu", "tanh"], ["abs_1"]
    yield "two results", chain, {}, ["x"], ["relu", "tanh"]
    yield "an input that is a result", chain, {}, ["relu"], ["relu", "neg"]
    yield "inputs in another order", chain, {}, ["tanh", "relu"], ["add"]
    yield "results in another order", chain, {}, ["x"], ["tanh", "relu"]
    yield "modules", lambda m, x: m.act(m.lin(x)).neg(), deep, ["x"], ["act"]
    yield "a module in the middle", lambda m, x: m.act(m.lin(x)).neg(), deep, ["lin"], ["act"]
    yield "a call with numbers", lambda m, x: torch.clamp(x * 2, 0, 1) + 1, {}, ["mul"], ["clamp"]
    yield "lists", lambda m, x: torch.cat([x, x.neg()]).t(), {}, ["x", "neg"], ["cat"]


# ---- checks ------------------------------------------------------------------------------------


def refused(tally, label, reply):
    if reply.status != 200:
        tally.bad(label, reply.short())
    return reply.status != 200


def check_text(server, tally, label, gm, steps, want):
    reply = transform(server, gm, steps)
    if refused(tally, label, reply):
        return
    got = text_of(reply.json()["graph"])
    tally.check(label, "" if got == str(want) else f"{got}\n  PyTorch has\n  {want}")


def folded(gm):
    return const_fold.split_const_subgraphs(copy.deepcopy(gm)).graph


def check_part(server, tally, row):
    name, function, layers, inputs, outputs = row
    gm = trace(Layers(function, **layers).eval())
    by_name = {node.name: node for node in gm.graph.nodes}
    wanted, todo = set(), [by_name[name] for name in outputs]
    while todo:
        node = todo.pop()
        if node.name not in inputs and node not in wanted:
            wanted.add(node)
            todo += node.all_input_nodes
    part = [node for node in gm.graph.nodes if node in wanted]
    want = optimization.extract_subgraph(gm, part, [by_name[name] for name in inputs],
                                         [by_name[name] for name in outputs])
    check_text(server, tally, f"extract_subgraph: {name}", gm,
               [{"pass": "extract_subgraph", "inputs": inputs, "outputs": outputs}], want.graph)


def check_shapes(server, tally, name, module):
    gm = trace(module.eval())
    reply = transform(server, gm, [{"pass": "shape_prop", "shapes": {"x": [4, 4]}}])
    if refused(tally, f"shape_prop: {name}", reply):
        return
    ShapeProp(gm).propagate(torch.randn(4, 4))
    metas = {node.name: node.meta.get("tensor_meta") for node in gm.graph.nodes if node.op != "output"}
    want = {name: {"dtype": str(meta.dtype)[6:], "shape": list(meta.shape)} for name, meta in metas.items()
            if hasattr(meta, "dtype")}
    document = reply.json()["graph"]
    got = {node["name"]: {key: node["meta"][key] for key in ("dtype", "shape") if key in node["meta"]}
           for node in document["nodes"] if "meta" in node}
    tally.check(f"shape_prop: {name}", "" if got == want else f"{got}, PyTorch has {want}")
    tally.check(f"shape_prop text: {name}", "" if text_of(document) == str(gm.graph) else text_of(document))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n", maxsplit=1)[0])
        return 2
    word = sys.argv[2] if len(sys.argv) == 3 else ""
    torch.manual_seed(0)
    with serving(sys.argv[1]) as (server, tally):
        passes = (("remove_dropout", dropout_graphs, lambda gm: optimization.remove_dropout(gm).graph),
                  ("fuse", fuse_graphs, lambda gm: optimization.fuse(gm).graph),
                  ("constant_fold", constant_graphs, folded))
        for kind, graphs, apply in passes:
            for name, module in graphs():
                if word in f"{kind}: {name}":
                    gm = trace(module.eval())
                    check_text(server, tally, f"{kind}: {name}", gm, [{"pass": kind}], apply(gm))
        for name, gm, before in not_to_fuse():
            if word in f"fuse: {name}":
                check_text(server, tally, f"fuse: {name}", gm, [*before, {"pass": "fuse"}], gm.graph)
        for row in bounds():
            if word in f"extract_subgraph: {row[0]}":
                check_part(server, tally, row)
        for name, module in shape_graphs():
            if word in f"shape_prop: {name}":
                check_shapes(server, tally, name, module)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
