# SPDX-License-Identifier: Apache-2.0
"""Passes over random functions that write: random_writes.py FXSERVE [--graphs 1000] [--seed N].

Needs torch 2.13. Each trial writes a function in Python: views of views, calls in place on inputs,
buffers, views and results, calls that change a geometry, modules that count their calls, a cond or a
loop. It is uploaded as a trace, with child graphs or without, or as an export, with sizes that vary
or without. What must hold of random passes:

    made         they are carried out, or refused as they say (REFUSALS)
    equal        the outputs are PyTorch's, in both modes, wherever those of the uploaded graph are
    lint         PyTorch's own lint has nothing against the graph of the reply
    idempotent   a pass that runs again changes nothing
    downloaded   the stored graph, downloaded and uploaded again, gives the same bits
"""
import argparse
import contextlib
import copy
import io
import json
import linecache
import logging
import operator
import pathlib
import random
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.utils._pytree import tree_leaves

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from export_fx import import_fx
from passes import bytes_of
from random_graphs import encode_tensor
from recipes import PASSES, SHAPED
from rewriting import document_of, with_data
from service import multipart, serving

REFUSALS = ("depends on numbers that only a run knows", "has two names is written", "nothing writes through",
            "of a child graph is written", "the graph has no node", "(outline)")

# ---- what functions are made of: {a} and {b} are values, `self` has the modules below ------------

COMPUTED = """{a}.relu() | {a}.neg() | {a} + 1 | {a} * 0.5 | {a}.clone() | {a}.float() | {a}.to(torch.float64)
{a}.contiguous() | {a}.long() | {a} > 0 | torch.zeros_like({a}) | {a}.sum() | {a}.sum(0)
{a}.mean(-1, keepdim=True) | F.dropout({a}, 0.5, False) | F.gelu({a}) | {a}.cumsum(0)
F.pad({a}, (1, 0)) | {a}.argmax()
torch.where({a} > 0, {a}, 2) | torch.ones(4) | {a}.type_as(self.count) | {a}.to({a}.dtype)
{a}.max(0).values | {a}.new_zeros(4) | {a} + {b} | {a} * {b} | torch.cat([{a}, {b}])
torch.stack([{a}, {b}]) | {a} @ {b}
torch.add({a}, {b}, alpha=2) | torch.add(input={a}, other={b}) | F.linear({a}, {b})
self.linear({a}) | self.tied({a}) | self.norm({a}) | self.norm(self.linear({a})) | self.layers({a})
self.counts({a}) | self.inplace({a}) | self.weight @ {a} | self.row + {a} | self.apart * {a}
torch.maximum({a}, {b}) | self.table.t() @ self.weight | self.weight + self.linear.weight"""
VIEWS = """{a}[0] | {a}[-1] | {a}[1:3] | {a}[:, 1:] | {a}[:, 0] | {a}[::2] | {a}[..., 1:3] | {a}.t()
{a}[0:0] | {a}.transpose(0, 1) | {a}.view(-1)
{a}.reshape(-1) | {a}.unsqueeze(0) | {a}.squeeze() | {a}.expand(4, 4)
{a}.narrow(0, 0, 1) | {a}.diagonal() | {a}.select(0, 1) | {a}.split(2)[0] | {a}.unbind(0)[-1] | {a}[None]
{a}.chunk(2, -1)[1] | {a}.permute(1, 0) | {a}.flatten() | {a}.view(2, 8) | {a}.detach() | {a}.mT | {a}.data
{a}.unfold(0, 2, 1) | {a}.movedim(0, -1) | {a}.view_as({a}) | {a}.unflatten(0, (2, 2)) | {a}.swapaxes(0, -1)
torch.atleast_2d({a}) | {a}.as_strided((2, 2), (1, 2)) | {a}.tensor_split(3)[1] | {a}[[0, 1]] | self.row
self.table | self.table[0] | self.weight | self.table.view(-1) | self.weight.t()"""
WRITES = """{a}.add_(1) | {a}.mul_({b}) | {a}.copy_({b}) | {a}.zero_() | {a}.fill_(3) | put({a}, 0, 5)
put({a}, slice(1, 3), {b}) | F.relu({a}, inplace=True) | iadd({a}, 1) | {a}.clamp_(-1, 1) | {a}.sigmoid_()
{a}.masked_fill_({a} > 0, 7) | {a}.index_copy_(0, torch.tensor([1]), {b}) | {a}.sub_({b}, alpha=2)
self.row.add_(1) | self.row.mul_({a}) | self.count.add_(1) | self.table.add_({a}) | self.apart.copy_({a})
self.table[0].mul_({a}) | self.weight.add_(1) | {a}[0].add_(1) | {a}[1:3].mul_(2) | {a}.t().add_({b})
{a}.view(-1)[1:3].zero_() | {a}[..., 0].copy_({b}) | {a}.diagonal().fill_(2) | put({a}, {a} > 0, 1)
put({a}, (slice(None), 1), 4) | put({a}, (Ellipsis, slice(0, 2)), {b}) | {a}.addcmul_({b}, {b})
{a}.scatter_(0, torch.zeros(1, 4).long(), 1.5) | {a}.cumsum_(0) | {a}.tril_() | {a}.data.add_(1)
{a}.logical_not_() | {a}.t_() | {a}.unsqueeze_(0) | {a}.squeeze_() | {a}.transpose_(0, 1)
{a}.swapaxes_(0, 1)"""
CONTROL = """torch.cond({b}.sum() > 0, lambda q: (q + 1,), lambda q: (q.sin() * 2,), ({a},))[0]
torch.cond({b}.sum() > 0, lambda q, r: (q + r, r * 2), lambda q, r: (F.gelu(q), r - 1), ({a}, {a}))[1]
hops.while_loop(lambda i, q: i < 3, lambda i, q: (i + 1, F.silu(q)), (torch.tensor(0), {a}))[1]
hops.scan(lambda c, r: (c + r, (c * r).clone()), torch.zeros({a}.shape[1:]), {a})[1]"""


def rows(text):
    return [row.strip() for line in text.split("\n") for row in line.split(" | ")]


KINDS = [(rows(COMPUTED), 4), (rows(VIEWS), 5), (rows(WRITES), 5), (rows(CONTROL), 1)]


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, v):
        self.calls.add_(1.0)
        return self.linear(v) * self.calls


class Inplace(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.drop = nn.ReLU(inplace=True), nn.Dropout(0.5)

    def forward(self, v):
        return self.drop(self.act(v))


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("row", torch.randn(4))
        self.register_buffer("table", torch.randn(4, 4))
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("apart", torch.randn(4), persistent=False)
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.linear, self.tied = nn.Linear(4, 4), nn.Linear(4, 4)
        self.tied.weight = self.linear.weight
        self.norm = nn.BatchNorm1d(4)
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.3))
        for norm in (self.norm, self.layers[1]):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
        self.counts, self.inplace = Counts(), Inplace()


def in_place(function):
    """The operator, also where a trace would replace it."""
    def call(*args):
        proxy = next((arg for arg in args if isinstance(arg, fx.Proxy)), None)
        if proxy is None:
            return function(*args)
        return proxy.tracer.create_proxy("call_function", function, args, {})
    return call


NAMES = {"torch": torch, "F": F, "hops": torch._higher_order_ops, "put": in_place(operator.setitem),
         "iadd": in_place(operator.iadd)}


# ---- functions ----------------------------------------------------------------------------------


def inputs_of(rng):
    pool = {"x": torch.randn(4, 4), "y": torch.randn(4, 4), "v": torch.randn(4), "s": torch.tensor(1.5),
            "i": torch.randint(-2, 5, (4,)), "m": torch.rand(4, 4) > 0.5,
            "e": torch.randn(rng.choice([0, 1, 4]), 4), "h": torch.randn(4, 4, dtype=torch.float64)}
    return {name: pool[name] for name in rng.sample(sorted(pool), rng.randint(1, 3))}


class Maker:
    """Lines that run, one after the other: each is tried when it is added."""

    def __init__(self, rng, traced):
        self.rng, self.kinds = rng, KINDS[:3] if traced else KINDS
        self.module = Base().eval().requires_grad_(False)
        self.inputs = inputs_of(rng)
        self.values, self.state = {k: v.clone() for k, v in self.inputs.items()}, copy.deepcopy(self.module)
        self.lines = []

    def add(self):
        kind = self.rng.choices(self.kinds, [weight for _, weight in self.kinds])[0]
        names, made = sorted(self.values), f"t{len(self.lines)}"
        line = self.rng.choice(kind[0]).format(a=self.rng.choice(names), b=self.rng.choice(names))
        if self.rng.random() < 0.8:
            line = f"{made} = {line}"
        before = copy.deepcopy((self.values, self.state))
        scope = {**NAMES, "self": self.state, **self.values}
        try:
            exec(line, scope)
            value = scope.get(made, torch.zeros(1))
            small = torch.is_tensor(value) and value.numel() < 300 and not bool((value.abs() > 1e5).any())
        except (RuntimeError, TypeError, IndexError, ValueError, AttributeError):
            small = False
        if not small:
            self.values, self.state = before
            return
        self.lines.append(line)
        if made in scope:
            self.values[made] = value

    def make(self):
        for _ in range(self.rng.randint(3, 16)):
            self.add()
        results = ", ".join(self.rng.choices(sorted(self.values), k=self.rng.randint(1, 3)))
        result = self.rng.choice([f"({results},)", f"{{'a': [{results}]}}"])
        self.lines = [f"def forward(self, {', '.join(self.inputs)}):",
                      *(f"    {line}" for line in [*self.lines, f"return {result}"])]
        name, text, scope = f"<random {id(self)}>", "\n".join(self.lines) + "\n", dict(NAMES)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), scope)
        self.module.__class__ = type("Random", (Base,), {"forward": scope["forward"]})
        return self.module


class Tracer(fx.Tracer):
    proxy_buffer_attributes = True
    children = False

    def is_leaf_module(self, m, module_qualified_name):
        return self.children and isinstance(m, (Counts, Inplace)) or \
            super().is_leaf_module(m, module_qualified_name)


def trace(module, inputs, children):
    tracer = Tracer()
    tracer.children = children
    gm = fx.GraphModule(module, tracer.trace(module))
    for name in ("counts", "inplace"):
        if children and hasattr(gm, name):
            inner = getattr(module, name)
            setattr(gm, name, fx.GraphModule(inner, Tracer().trace(inner)))
    for node in gm.graph.find_nodes(op="placeholder"):
        node.meta["val"] = inputs[node.target]
    return gm


# ---- trials -------------------------------------------------------------------------------------


class LeftOut(Exception):
    """PyTorch does not trace, export or run this, or its graph is not served as it runs there."""


class Trial:
    def __init__(self, server, seed):
        self.server, self.rng, self.steps = server, random.Random(seed), []
        torch.manual_seed(seed)
        self.traced, self.varies = self.rng.random() < 0.5, self.rng.random() < 0.3
        maker = Maker(self.rng, self.traced)
        self.module, self.inputs = maker.make(), maker.inputs
        self.text = "\n".join(maker.lines)

    def upload(self):
        module, inputs = copy.deepcopy(self.module), {k: v.clone() for k, v in self.inputs.items()}
        try:
            if self.traced:
                made = trace(module, self.inputs, self.rng.random() < 0.5)
                self.graph, body = made.graph, json.dumps(document_of(made)).encode()
                self.want = tree_leaves(copy.deepcopy(made)(*inputs.values()))
            else:
                varies = {k: {0: torch.export.Dim.AUTO} if v.dim() else None for k, v in inputs.items()}
                made = torch.export.export(module, tuple(inputs.values()),
                                           dynamic_shapes=varies if self.varies else None)
                self.graph, body = made.graph, bytes_of(made)
                self.want = tree_leaves(copy.deepcopy(self.module)(*inputs.values()))
        except Exception as error:  # whatever PyTorch says of what it does not take
            raise LeftOut(str(error)) from None
        if self.server.call("PUT", "/v1/graphs/base", body).status not in (200, 201):
            raise LeftOut("not served")

    def run(self, name, mode):
        body = {"inputs": [encode_tensor(x) for x in self.inputs.values()], "mode": mode, "encoding": "b64"}
        reply = self.server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
        assert reply.status == 200, f"{name}, {mode}: {reply.short()}"
        return [decode_tensor(entry) for entry in reply.json()["outputs"]]

    def compare(self, name, mode, **tolerance):
        torch.testing.assert_close(self.run(name, mode), self.want, equal_nan=True, **tolerance,
                                   msg=lambda text: f"{name}, {mode}: {text}")

    def step(self, name):
        if name == "leaf":
            return {"leaf": {}}
        if name == "outline":
            calls = [node.name for node in self.graph.nodes if node.op not in ("placeholder", "output")]
            calls = calls or ["x"]
            first = self.rng.randrange(len(calls))
            return {"edit": "outline", "nodes": calls[first:first + self.rng.randint(1, 5)],
                    "path": f"part_{self.rng.randrange(1000)}"}
        shaped = name in SHAPED and (self.traced or self.varies)
        shapes = {key: list(x.shape) for key, x in self.inputs.items()}
        return {"pass": name, **({"shapes": shapes} if shaped else {})}

    def transform(self, steps, **more):
        return self.server.call("POST", "/v1/graphs/base/transform",
                                json.dumps({"steps": steps, **more}).encode())

    def check(self):
        """Whether the passes were carried out."""
        self.upload()
        try:
            for mode in ("eager", "compiled"):
                self.compare("base", mode)
        except AssertionError as error:  # differential.py looks for these
            raise LeftOut(str(error)) from None
        names = [*PASSES, "functionalise", "decompose", "leaf", "outline"]
        self.steps = [self.step(name) for name in self.rng.choices(names, k=self.rng.choice([1, 1, 2, 4]))]
        reply = self.transform(self.steps, store_as="made")
        if reply.status in (400, 422):
            assert any(text in reply.json()["error"] for text in REFUSALS), reply.short()
            return False
        assert reply.status in (200, 201), reply.short()
        if self.traced:
            import_fx(with_data(reply.json()["graph"])).graph.lint()
        for mode in ("eager", "compiled"):
            self.compare("made", mode, rtol=1e-4, atol=1e-4)
        self.check_again()
        self.check_download()
        return True

    def check_again(self):
        for step in self.steps:
            twice = [step] * 2 if step.get("pass", "shape_prop") != "shape_prop" else [{"pass": "lint"}] * 2
            reply = self.transform(twice)
            again = reply.json()["steps"][1] if reply.status == 200 else {"changed": [], "erased": []}
            assert not again["changed"] and not again["erased"], f"{step} again: {again}"

    def check_download(self):
        parts = [("graph", self.server.call("GET", "/v1/graphs/made/text?form=json").body),
                 ("weights", self.server.call("GET", "/v1/graphs/made/weights").body)]
        body, kind = multipart(parts)
        reply = self.server.call("PUT", "/v1/graphs/again", body, [("Content-Type", kind)])
        assert reply.status in (200, 201), f"uploaded again: {reply.short()}"
        for mode in ("eager", "compiled"):
            torch.testing.assert_close(self.run("again", mode), self.run("made", mode), rtol=0, atol=0,
                                       equal_nan=True, msg=lambda text: f"uploaded again: {text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options, carried_out = parser.parse_args(), 0
    torch.set_grad_enabled(False)
    with serving(options.binary) as (server, tally):
        for seed in range(options.seed * 1000003, options.seed * 1000003 + options.graphs):
            trial = Trial(server, seed)
            try:
                with contextlib.redirect_stderr(io.StringIO()):  # PyTorch prints calls that it refuses
                    carried_out += trial.check()
                tally.ok()
            except LeftOut:
                continue
            except AssertionError as problem:
                tally.bad(f"seed {seed}", f"{problem}\n{json.dumps(trial.steps)}\n{trial.text}")
        tally.check(f"{carried_out} of {options.graphs} graphs were transformed",
                    "" if carried_out > 0.5 * options.graphs else "too few to say much")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
