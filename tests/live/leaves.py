# SPDX-License-Identifier: Apache-2.0
""""leaf" against subclasses of torch.fx.Tracer that override is_leaf_module: leaves.py FXSERVE.

Needs torch 2.13. Each model is uploaded with a child graph for every module that is no class of
torch.nn: what a tracer gives that takes all modules for leaves. With a "leaf" the server must then
have the calls, in their order, that the tracer's subclass finds in the model itself; the handlers of
an Interpreter of that trace must see what a rule on the modules sees; and outputs must be the
model's.
"""
import json
import sys

import torch
from torch import fx, nn

from overrides import Block, Nested
from service import serving

from export_fx import dumps, export_fx


class Shared(nn.Module):
    """A block that is called twice, one within another class, a buffer, and a parameter."""

    def __init__(self):
        super().__init__()
        self.block, self.outer = Block(8, 8), nn.Sequential(Gate(), nn.Sequential(Block(8, 8), nn.Tanh()))
        self.scale = nn.Parameter(torch.randn(8))

    def forward(self, x):
        y = self.block(self.block(x * self.scale))
        return self.outer(y) + self.block(y)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.weight = Block(8, 8), nn.Parameter(torch.randn(8, 8) / 3)

    def forward(self, x):
        return torch.sigmoid(x @ self.weight) * self.inner(x)


def tracer(is_leaf):
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            default = super().is_leaf_module(m, module_qualified_name)
            return default or is_leaf(m, module_qualified_name)
    return Leaves()


def with_children(model):
    graph = tracer(lambda m, path: True).trace(model)
    gm = fx.GraphModule(model, graph, type(model).__name__)
    for node in graph.nodes:
        if node.op == "call_module":
            child = gm.get_submodule(node.target)
            if not (isinstance(child, fx.GraphModule) or fx.Tracer().is_leaf_module(child, node.target)):
                gm.set_submodule(node.target, with_children(child))
    return gm


# (the member, what is_leaf_module says)
LEAVES = [({}, lambda m, path: False),
          ({"types": ["Block"]}, lambda m, path: isinstance(m, Block)),
          ({"types": ["overrides.Block", "torch.nn.Sequential"]},
           lambda m, path: isinstance(m, (Block, nn.Sequential))),
          ({"types": ["torch.fx.GraphModule"]}, lambda m, path: True),
          ({"types": ["torch.nn.Linear"]}, lambda m, path: isinstance(m, nn.Linear))]
BY_MODEL = {"nested": [({"paths": ["encoder.2"]}, lambda m, path: path == "encoder.2"),
                       ({"paths": ["*.0"]}, lambda m, path: path.endswith(".0")),
                       ({"types": ["Block"], "paths": ["head"]},
                        lambda m, path: isinstance(m, Block) or path == "head")],
            "shared": [({"paths": ["block"]}, lambda m, path: path == "block"),
                       ({"paths": ["outer.*"]}, lambda m, path: path.startswith("outer.")),
                       ({"types": ["Gate"], "paths": ["*.1.0"]},
                        lambda m, path: isinstance(m, Gate) or path.endswith(".1.0"))]}


class Printer(fx.Interpreter):
    def __init__(self, gm):
        super().__init__(gm)
        self.seen = []

    def call_module(self, target, args, kwargs):
        self.seen.append((target, [list(a.shape) for a in args]))
        return super().call_module(target, args, kwargs)


def calls(document):
    return [(node["op"], node["target"]) for node in document["nodes"]
            if node["op"] not in ("placeholder", "output")]


def attempt(server, name, model, leaf, is_leaf):
    x = torch.randn(3, 8)
    with torch.no_grad():
        traced = fx.GraphModule(model, tracer(is_leaf).trace(model))
        printer, want = Printer(traced), model(x)
        printer.run(x)
    steps = json.dumps({"steps": [{"leaf": leaf}]})
    reply = server.call("POST", f"/v1/graphs/{name}/transform", steps.encode())
    assert reply.status == 200, reply.short()
    got, finds = calls(reply.json()["graph"]), calls(export_fx(traced)[0])
    assert got == finds, f"{got}, the tracer has {finds}"
    rules = [{"match": {"op": "call_module"}, "observe": ["call"]}]
    for mode in ("eager", "compiled"):
        body = {"inputs": [x.tolist()], "mode": mode, "leaf": leaf, "overrides": rules}
        reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
        assert reply.status == 200, reply.short()
        reply = reply.json()
        out = torch.tensor(reply["outputs"][0]["data"])
        torch.testing.assert_close(out, want, rtol=1e-5, atol=1e-5)
        seen = [(entry["call"]["target"], [a["shape"] for a in entry["call"]["args"]])
                for entry in reply["overrides"][0]["observed"]]
        assert seen == printer.seen, f"{mode}: {seen}, the interpreter has {printer.seen}"


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    with serving(sys.argv[1]) as (server, tally):
        for name, model in (("nested", Nested().eval()), ("shared", Shared().eval())):
            document = dumps(export_fx(with_children(model), inline=True)[0])
            reply = server.call("PUT", f"/v1/graphs/{name}", document.encode())
            assert reply.status == 201, reply.short()
            for leaf, is_leaf in LEAVES + BY_MODEL[name]:
                try:
                    attempt(server, name, model, leaf, is_leaf)
                    tally.ok()
                except AssertionError as error:
                    tally.bad(f"{name}, {json.dumps(leaf)}", str(error)[:800])
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
