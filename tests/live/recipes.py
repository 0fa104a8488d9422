# SPDX-License-Identifier: Apache-2.0
"""Random graphs and random recipes: recipes.py FXSERVE [--graphs 1000] [--seed N].

Needs torch 2.13. Steps that keep what a graph computes are put together at random; what they make
is stored, and run on the inputs of the graph it was made from. What must hold:

    made         the steps are carried out, or refused: a set of nodes that is no one call, or that
                 stands around a call that might write; a node that an earlier step took away
    lint         PyTorch's own lint has nothing against the graph of the reply
    equal        the outputs are those of the base: equal bits, or close where weights were folded
    idempotent   a pass that runs again changes nothing
    stored       after a restart the stored graph gives the same bits
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

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from export_fx import import_fx
from rewriting import document_of, with_data
from service import serving

UNARY = [torch.relu, torch.sigmoid, torch.tanh, torch.neg, torch.abs]
BINARY = [torch.add, torch.mul, torch.sub, torch.maximum, operator.add, operator.mul, operator.sub]
METHODS = ["relu", "neg", "sigmoid", "abs", "clone"]
PASSES = ["eliminate_dead_code", "cse", "remove_dropout", "constant_fold", "fuse", "normalise", "shape_prop",
          "functionalise", "decompose", "lint"]
SHAPED = ("shape_prop", "functionalise", "decompose")


def one_call(target):
    graph = fx.Graph()
    graph.output(graph.call_function(target, (graph.placeholder("a"),)))
    return document_of(fx.GraphModule(nn.Module(), graph))


def scaled(factor):
    graph = fx.Graph()
    graph.output(graph.call_function(torch.mul, (graph.placeholder("a"), factor)))
    return document_of(fx.GraphModule(nn.Module(), graph))


REWRITES = [(one_call(torch.relu), one_call(torch.nn.functional.relu)), (one_call(torch.neg), scaled(-1.0)),
            (one_call(torch.tanh), one_call(torch.ops.aten.tanh.default))]


class Maker:
    def __init__(self, rng):
        self.rng, self.graph, self.root = rng, fx.Graph(), nn.Module()
        self.nodes = [self.graph.placeholder("x"), self.graph.placeholder("y")]
        self.modules = []

    def module(self, made):
        name = f"m{len(self.modules)}"
        self.root.add_module(name, made)
        self.modules.append(name)
        return name

    def add(self):
        rng, graph, pick = self.rng, self.graph, lambda: self.rng.choice(self.nodes)
        kind = rng.random()
        if kind < 0.3:
            node = graph.call_function(rng.choice(UNARY), (pick(),))
        elif kind < 0.55:
            node = graph.call_function(rng.choice(BINARY), (pick(), pick()))
        elif kind < 0.65:
            node = graph.call_method(rng.choice(METHODS), (pick(),))
        elif kind < 0.75:
            name = f"w{len(self.nodes)}"
            self.root.register_parameter(name, nn.Parameter(torch.randn(4, 4)))
            node = graph.get_attr(name)
        elif kind < 0.85:
            linear = graph.call_module(self.module(nn.Linear(4, 4, bias=rng.random() < 0.5)), (pick(),))
            norm = nn.BatchNorm1d(4)
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            node = graph.call_module(self.module(norm), (linear,))
        elif kind < 0.95 or not self.modules:
            node = graph.call_module(self.module(rng.choice([nn.ReLU, nn.Dropout, nn.Tanh])()), (pick(),))
        else:
            node = graph.call_module(rng.choice(self.modules), (pick(),))
        self.nodes.append(node)

    def make(self):
        for _ in range(self.rng.randint(3, 14)):
            self.add()
        results = [self.rng.choice(self.nodes[2:]) for _ in range(self.rng.randint(1, 3))]
        self.graph.output(tuple(results))
        return fx.GraphModule(self.root, self.graph).eval()


def pass_step(name):
    return {"pass": name, **({"shapes": {"x": [4, 4], "y": [4, 4]}} if name in SHAPED else {})}


def random_step(rng, gm, at):
    calls = [node.name for node in gm.graph.nodes if node.op not in ("placeholder", "output")]
    kind = rng.random()
    if kind < 0.5:
        return [pass_step(rng.choice(PASSES))]
    if kind < 0.6:
        first = rng.randrange(len(calls))
        return [{"edit": "outline", "nodes": calls[first:first + rng.randint(1, 4)],
                 "path": "child" + "abcdef"[at]}]
    if kind < 0.7:
        first = rng.randrange(len(calls))
        path = "child" + "abcdef"[at]
        return [{"edit": "outline", "nodes": calls[first:first + rng.randint(1, 4)], "path": path},
                {"edit": "inline", "node": path}]
    if kind < 0.85:
        pattern, replacement = rng.choice(REWRITES)
        return [{"rewrite": {"pattern": pattern, "replacement": replacement}}]
    if kind < 0.93:
        return [{"edit": "insert_after", "node": "y", "new": {"op": "call_function", "target": "torch.sin",
                                                              "args": ["%y"]}}]
    return [{"edit": "rename", "node": "x", "name": "renamed"},
            {"edit": "rename", "node": "renamed", "name": "x"}]


def outputs(server, name, inputs):
    body = {"inputs": inputs, "mode": "eager", "reply": "bare", "encoding": "list"}
    reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
    if reply.status != 200:
        raise AssertionError(f"{name}: {reply.short()}")
    return reply.json()


class Trial:
    def __init__(self, server, rng, number):
        self.server, self.rng, self.number = server, rng, number
        self.gm = Maker(rng).make()
        self.steps = [step for at in range(rng.randint(1, 6)) for step in random_step(rng, self.gm, at)]
        self.inputs = [torch.randn(4, 4).tolist(), torch.randn(4, 4).tolist()]

    def call(self, steps, **more):
        return self.server.call("POST", "/v1/graphs/base/transform",
                                json.dumps({"steps": steps, **more}).encode())

    def run(self):
        """Whether the steps were carried out."""
        reply = self.server.call("PUT", "/v1/graphs/base", json.dumps(document_of(self.gm)).encode())
        assert reply.status in (200, 201), reply.short()
        reply = self.call(self.steps, store_as=f"made{self.number}")
        if reply.status in (400, 422):
            told = reply.json()["error"]
            assert "(outline)" in told or (reply.code() == "lint" and "no node" in told), reply.short()
            return False
        assert reply.status in (200, 201), reply.short()
        import_fx(with_data(reply.json()["graph"])).graph.lint()
        self.compare()
        self.again()
        return True

    def compare(self):
        want = outputs(self.server, "base", self.inputs)
        got = outputs(self.server, f"made{self.number}", self.inputs)
        folded = any(step.get("pass") in ("fuse", "constant_fold", "decompose") for step in self.steps)
        a, b = torch.tensor(want, dtype=torch.float64), torch.tensor(got, dtype=torch.float64)
        same = torch.allclose(a, b, rtol=1e-4, atol=1e-4) if folded else torch.equal(a, b)
        assert same, f"the outputs differ by {(a - b).abs().max()}"
        self.kept = got

    def again(self):
        names = [step["pass"] for step in self.steps if "pass" in step and step["pass"] != "shape_prop"]
        for name in set(names):
            reply = self.call([pass_step(name), pass_step(name)])
            assert reply.status == 200, reply.short()
            step = reply.json()["steps"][1]
            assert not step["changed"] and not step["erased"], f"{name} again: {step}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    carried_out = []
    with serving(options.binary, "--data", "stored") as (server, tally):
        for number in range(options.graphs):
            seed = options.seed * 1000003 + number
            torch.manual_seed(seed)
            trial = Trial(server, random.Random(seed), number)
            try:
                if trial.run():
                    carried_out.append(trial)
                tally.ok()
            except AssertionError as problem:
                tally.bad(f"seed {seed}", f"{problem}\n  {json.dumps(trial.steps)}\n  {trial.gm.graph}")
        tally.check("the server's end", "\n".join(server.stop()))
        server.start()
        for trial in carried_out[::10]:
            same = outputs(server, f"made{trial.number}", trial.inputs) == trial.kept
            tally.check(f"made{trial.number} after a restart", "" if same else "other bits")
        share = len(carried_out) / max(1, options.graphs)
        tally.check(f"{len(carried_out)} of {options.graphs} recipes were carried out",
                    "" if share > 0.7 else "too few to say much")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
