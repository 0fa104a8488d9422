# SPDX-License-Identifier: Apache-2.0
"""Subclasses of torch.fx.Interpreter and Transformer against rules on a run: overrides.py FXSERVE
[WORD].

Needs torch 2.13. Each row of `rows()` is a class, in Python, and the rules that say the same. Both
are tried on four graphs: functions and methods as FX JSON, an export (.pt2) of them, nested modules
as FX JSON, and an export of these, where a module's call is a region of nodes. Rules may differ by
graph where targets or arguments do; a row with rules by graph leaves out graphs that it does not
name. A run must give the class's results in both modes.
"""
import json
import pathlib
import re
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service")]

from export_fx import dumps, export_fx
from service import serving

aten = torch.ops.aten
# What a node means, in each of its spellings.
SIGMOID = {torch.sigmoid, "sigmoid", aten.sigmoid.default, nn.Sigmoid}
NEG = {torch.neg, "neg", aten.neg.default}
RELU = {torch.relu, F.relu, "relu", aten.relu.default, nn.ReLU}
TANH = {torch.tanh, "tanh", aten.tanh.default, nn.Tanh}
SOFTMAX = {F.softmax, aten.softmax.int, nn.Softmax}
LINEAR = {F.linear, aten.linear.default, nn.Linear}
DROPOUT = {F.dropout, aten.dropout.default, nn.Dropout}
ABS = {torch.abs, "abs", aten.abs.default}


# ---- the graphs ----
class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 8) / 3)
        self.bias = nn.Parameter(torch.randn(6))

    def forward(self, x):
        a = torch.neg(x)
        b = torch.sigmoid(a)
        c = F.relu(b - 0.4)
        d = F.softmax(c, dim=-1)
        e = F.dropout(d, 0.5, self.training)
        f = F.linear(e.tanh(), self.weight, self.bias)
        g = torch.relu(f).abs()
        return torch.sigmoid(g) + f


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear, self.act, self.drop = nn.Linear(n_in, n_out), nn.ReLU(), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.act(self.linear(x)))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(Block(8, 8), nn.Sigmoid(), Block(8, 8))
        self.head = nn.Sequential(nn.Tanh(), nn.Linear(8, 6), nn.Softmax(dim=-1))

    def forward(self, x):
        y = self.encoder(torch.neg(x))
        return self.head(y) + torch.abs(y[:, 2:]).sigmoid()


class BlockTracer(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, Block) or super().is_leaf_module(m, module_qualified_name)


def graphs():
    """(name, GraphModule that the classes run, file that is uploaded)"""
    torch.manual_seed(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="overrides-"))
    functions, nested = Functions().eval(), Nested().eval()
    for name, gm in (("functions", fx.symbolic_trace(functions)), ("nested", fx.symbolic_trace(nested))):
        path = folder / f"{name}.json"
        path.write_text(dumps(export_fx(gm, inline=True)[0]), encoding="utf-8")
        yield name, gm, path
    batch = torch.export.Dim("batch")
    program = torch.export.export(functions, (torch.randn(3, 8),), dynamic_shapes=({0: batch},))
    torch.export.save(program, folder / "export.pt2")
    yield "export", program.module(check_guards=False), folder / "export.pt2"


def module_graphs():
    """The same for an export of modules. The calls of modules in it are those of the traced graph;
    those of whole blocks are run by `blocks`, a trace that keeps them."""
    torch.manual_seed(2)
    nested, batch = Nested().eval(), torch.export.Dim("batch")
    path = pathlib.Path(tempfile.mkdtemp(prefix="overrides-")) / "nested.pt2"
    program = torch.export.export(nested, (torch.randn(3, 8),), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)
    gm = fx.symbolic_trace(nested)
    gm.blocks = fx.GraphModule(nested, BlockTracer().trace(nested))
    yield "nested_export", gm, path


# Graphs that rules call: name -> function of tensors.
CALLED = {
    "scaled": lambda x: x * 1.5 + 0.25,
    "softsign": lambda x: x / (1 + x.abs()),
    "quantised": lambda x: torch.round(x * 16) / 16,
    "halved": lambda x: x.to(torch.float16).to(torch.float32),
    "sixth": lambda x: F.relu6(x + 3) / 6,
    "half": lambda x: x / 2,
    "half_of_two": lambda x, dim: (x / 2, dim),
    "doubled": lambda x: x * 2,
    "clipped": lambda x: torch.clamp(x, -0.5, 0.5),
}


# ---- classes ----
def interpreter(on_call):
    """A subclass of Interpreter whose three call handlers ask on_call(key, args, kwargs, plain)
    first. `key` is the function, the method's name or the module's class; `plain` does what the
    node says. The n-th call of a meaning can be told by self.seen."""
    class Handlers(fx.Interpreter):
        def __init__(self, gm):
            super().__init__(gm)
            self.seen = 0

        def ask(self, key, plain, args, kwargs):
            return on_call(self, key, args, kwargs, plain)

        def call_function(self, target, args, kwargs):
            return self.ask(target, lambda *a: fx.Interpreter.call_function(self, target, a or args, kwargs),
                            args, kwargs)

        def call_method(self, target, args, kwargs):
            return self.ask(target, lambda *a: fx.Interpreter.call_method(self, target, a or args, kwargs),
                            args, kwargs)

        def call_module(self, target, args, kwargs):
            return self.ask(type(self.fetch_attr(target)),
                            lambda *a: fx.Interpreter.call_module(self, target, a or args, kwargs),
                            args, kwargs)

    return lambda gm, x: Handlers(gm).run(x)


def replace(meaning, function):
    """Calls of this meaning become function(*tensors)."""
    return interpreter(lambda self, key, args, kwargs, plain:
                       function(args[0]) if key in meaning else plain())


def after(meaning, function):
    return interpreter(lambda self, key, args, kwargs, plain:
                       function(plain()) if key in meaning else plain())


def before(meaning, function):
    return interpreter(lambda self, key, args, kwargs, plain:
                       plain(function(args[0]), *args[1:]) if key in meaning else plain())


def nth(meaning, index, function):
    def on_call(self, key, args, kwargs, plain):
        if key not in meaning:
            return plain()
        self.seen += 1
        return function(args[0]) if self.seen - 1 == index else plain()
    return interpreter(on_call)


class SwapTransformer(fx.Transformer):
    """Sigmoid and neg trade places, in the new graph."""

    def call_function(self, target, args, kwargs):
        if target in SIGMOID:
            return super().call_function(torch.neg, args[:1], {})
        if target in NEG:
            return super().call_function(torch.sigmoid, args[:1], {})
        return super().call_function(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        if target in SIGMOID:
            return super().call_method("neg", args, kwargs)
        return super().call_method(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        if isinstance(self.submodules[target] if hasattr(self, "submodules") else
                      fx.Interpreter.fetch_attr(self, target), nn.Sigmoid):
            return super().call_function(torch.neg, args, kwargs)
        return super().call_module(target, args, kwargs)


def modules(pattern, function, blocks=False):
    """call_module of these paths becomes function(module, *args)."""
    class Handlers(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            module = self.fetch_attr(target)
            return function(module, *args) if re.fullmatch(pattern, target) else module(*args)
    return lambda gm, x: Handlers(gm.blocks if blocks else gm).run(x)


def both(rules):
    return {"nested": rules, "nested_export": rules}


def transformer(cls):
    return lambda gm, x: cls(gm).transform()(x)


class DropActivations(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return args[0] if target in RELU else super().call_function(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return args[0] if target in RELU else super().call_method(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        module = fx.Interpreter.fetch_attr(self, target)
        return args[0] if isinstance(module, nn.ReLU) else super().call_module(target, args, kwargs)


def patched(value, index, change, how="set"):
    value = value.clone()
    if how == "set":
        value[index] = change
    elif how == "add":
        value[index] += change
    else:
        value[index] *= change
    return value


class NamedOnly(fx.Interpreter):
    """By the node's name, as run_node sees it."""

    def run_node(self, node):
        result = super().run_node(node)
        return result * 2 if "sigmoid" in node.name else result


def interpreter_within(gm, x):
    return modules(r"encoder\..*\.act", lambda m, x: torch.cos(x))(gm, x)


class ScaledInput(fx.Interpreter):
    def placeholder(self, target, args, kwargs):
        return CALLED["scaled"](super().placeholder(target, args, kwargs))


class NegatedOutput(fx.Interpreter):
    def output(self, target, args, kwargs):
        result = super().output(target, args, kwargs)
        return torch.neg(result) if isinstance(result, torch.Tensor) else (torch.neg(result[0]),)


class ClippedWeights(fx.Interpreter):
    """Parameters that the graph itself reads."""

    def get_attr(self, target, args, kwargs):
        return CALLED["clipped"](super().get_attr(target, args, kwargs))


class Gated(fx.Interpreter):
    """A call also reads another node's value."""

    def run_node(self, node):
        if node.name in ("relu", "encoder_1"):
            other = next(n for n in self.env if n.name == "neg")
            return torch.mul(self.fetch_args_kwargs_from_env(node)[0][0], self.env[other])
        return super().run_node(node)


def match(target, **more):
    return {"target": target, **more}


CONSTANT = torch.linspace(-1, 1, 24).reshape(3, 8)


def rows():
    """(name, run(gm, x), rules or {graph: rules})"""
    sigmoid, relu, neg, tanh = (match(f"torch.{name}") for name in ("sigmoid", "relu", "neg", "tanh"))
    yield ("sigmoid becomes neg", replace(SIGMOID, torch.neg), [{"match": sigmoid, "retarget": "torch.neg"}])
    yield ("sigmoid and neg trade places",
           interpreter(lambda self, key, args, kwargs, plain: torch.neg(args[0]) if key in SIGMOID else
                       torch.sigmoid(args[0]) if key in NEG else plain()),
           [{"match": sigmoid, "retarget": "torch.neg"}, {"match": neg, "retarget": "torch.sigmoid"}])
    yield ("the same as a Transformer", transformer(SwapTransformer),
           [{"match": sigmoid, "retarget": "torch.neg"}, {"match": neg, "retarget": "torch.sigmoid"}])
    yield ("relu becomes gelu", replace(RELU, F.gelu),
           [{"match": relu, "retarget": {"target": "F.gelu", "args": ["$0"]}}])
    yield ("relu leaks", replace(RELU, lambda x: F.leaky_relu(x, 0.2)),
           [{"match": relu, "retarget": {"target": "F.leaky_relu", "args": ["$args", 0.2]}}])
    yield ("relu is capped", replace(RELU, lambda x: torch.clamp(x, min=0, max=0.1)),
           [{"match": relu, "retarget": {"target": "torch.clamp", "args": ["$0"],
                                         "kwargs": {"min": 0, "max": 0.1}}}])
    yield ("relu is left out", replace(RELU, lambda x: x), [{"match": relu, "passthrough": 0}])
    yield ("relu is left out by a Transformer", transformer(DropActivations),
           [{"match": relu, "passthrough": 0}])
    yield ("dropout is left out", replace(DROPOUT, lambda x: x),
           {"functions": [{"match": match("F.dropout"), "passthrough": 0}],
            "export": [{"match": match("aten.dropout.default"), "passthrough": 0}],
            "nested": [{"match": {"module_type": "torch.nn.Dropout"}, "passthrough": 0}]})
    yield ("tanh is another graph", replace(TANH, CALLED["softsign"]), [{"match": tanh, "call": "softsign"}])
    yield ("sigmoid is approximated", replace(SIGMOID, CALLED["sixth"]),
           [{"match": sigmoid, "call": "sixth"}])
    yield ("results are quantised", after(RELU | SIGMOID | TANH, CALLED["quantised"]),
           [{"match": m, "wrap": {"after": "quantised"}} for m in (relu, sigmoid, tanh)])
    yield ("results pass through half precision", after(LINEAR, CALLED["halved"]),
           [{"match": match("F.linear"), "wrap": {"after": "halved"}}])
    yield ("arguments are scaled", before(TANH | ABS, CALLED["scaled"]),
           [{"match": m, "wrap": {"before": "scaled"}} for m in (tanh, match("torch.abs"))])
    yield ("arguments and results are clipped",
           interpreter(lambda self, key, args, kwargs, plain: CALLED["clipped"](
               plain(CALLED["scaled"](args[0]))) if key in TANH else plain()),
           [{"match": tanh, "wrap": {"before": "scaled", "after": "clipped"}}])
    yield ("only the second relu", nth(RELU, 1, torch.neg),
           [{"match": match("torch.relu", nth=1), "retarget": "torch.neg"}])
    yield ("only the first sigmoid", nth(SIGMOID, 0, torch.cos),
           [{"match": match("torch.sigmoid", nth=0), "retarget": "torch.cos"}])
    yield ("activations are ablated", replace(TANH, lambda x: x * 0),
           [{"match": tanh, "retarget": {"target": "operator.mul", "args": ["$0", 0]}}])
    yield ("a call adds its argument to itself", replace(ABS, lambda x: x + x),
           [{"match": match("torch.abs"), "retarget": {"target": "operator.add", "args": ["$0", "$0"]}}])
    yield ("an optional rule matches nothing", after(TANH, lambda x: x),
           [{"match": match("torch.sigmod"), "retarget": "torch.neg", "optional": True}])
    yield ("softmax has a temperature",
           interpreter(lambda self, key, args, kwargs, plain: plain(args[0] / 2, *args[1:])
                       if key in SOFTMAX else plain()),
           {"functions": [{"match": match("F.softmax"), "wrap": {"before": "half"}}],
            "export": [{"match": match("F.softmax"), "wrap": {"before": "half_of_two"}}],
            "nested": [{"match": match("F.softmax"), "wrap": {"before": "half"}}]})
    yield ("a value is patched in", replace(NEG, lambda x: CONSTANT),
           [{"match": neg, "constant": CONSTANT.tolist()}])
    yield ("nodes by name are doubled", lambda gm, x: NamedOnly(gm).run(x),
           {"functions": [{"match": {"name": "sigmoid*"}, "wrap": {"after": "doubled"}}],
            "export": [{"match": {"name": "*sigmoid*"}, "wrap": {"after": "doubled"}}],
            "nested": [{"match": {"name": "*sigmoid*"}, "wrap": {"after": "doubled"}}]})
    yield ("relu becomes a method", replace(RELU, torch.Tensor.sin),
           [{"match": relu, "retarget": {"op": "call_method", "target": "sin", "args": ["$0"]}}])
    yield ("part of a value is set", after(RELU, lambda y: patched(y, (slice(None), -1), 2.5)),
           [{"match": relu, "patch": {"index": [":", -1], "set": 2.5}}])
    yield ("a row is added to",
           after(SIGMOID, lambda y: patched(y, (1,), torch.arange(6. if y.shape[1] == 6 else 8.), "add")),
           [{"match": {**sigmoid, "nth": 0}, "patch": {"index": [1], "add": list(range(8))}},
            {"match": {**sigmoid, "nth": 1}, "patch": {"index": [1], "add": [0., 1, 2, 3, 4, 5]}}])
    factors = torch.tensor([[3.0], [1.0], [-1.0]])
    yield ("picked columns are scaled",
           after(TANH, lambda y: patched(y, (Ellipsis, [0, 2]), factors, "scale")),
           [{"match": tanh, "patch": {"index": ["...", [0, 2]], "scale": [[3.0], [1.0], [-1.0]]}}])
    yield ("every other row is steered",
           after(TANH, lambda y: patched(y, (slice(None, None, 2), None, slice(-3, -1)), 0.5, "add")),
           [{"match": tanh, "patch": {"index": ["::2", None, "-3:-1"], "add": 0.5}}])
    yield ("inputs are scaled", lambda gm, x: ScaledInput(gm).run(x),
           [{"match": {"op": "placeholder", "name": "x"}, "wrap": {"after": "scaled"}}])
    yield ("the output is negated", lambda gm, x: NegatedOutput(gm).run(x),
           [{"match": {"op": "output"}, "retarget": "torch.neg"}])
    yield ("weights are clipped", lambda gm, x: ClippedWeights(gm).run(x),
           {"functions": [{"match": {"op": "get_attr"}, "call": "clipped"}],
            "export": [{"match": {"op": "placeholder", "name": "p_*"}, "call": "clipped"}],
            "nested": [{"match": {"op": "get_attr"}, "call": "clipped", "optional": True}]})
    yield ("a call reads another node", lambda gm, x: Gated(gm, garbage_collect_values=False).run(x),
           {"functions": [{"match": {"name": "relu"},
                           "retarget": {"target": "torch.mul", "args": ["$0", "%neg"]}}],
            "export": [{"match": {"name": "relu"},
                        "retarget": {"target": "torch.mul", "args": ["$0", "%neg"]}}],
            "nested": [{"match": {"name": "encoder_1"},
                        "retarget": {"target": "torch.mul", "args": ["$0", "%neg"]}}]})
    yield ("a module becomes a function", modules(r"encoder\.0\.act", lambda m, x: torch.tanh(x)),
           both([{"match": {"module": "encoder.0.act"}, "retarget": "torch.tanh"}]))
    yield ("linear layers are rounded", modules(r".*linear|head\.1", lambda m, x: CALLED["halved"](m(x))),
           both([{"match": {"module_type": "torch.nn.Linear"}, "wrap": {"after": "halved"}}]))
    yield ("linear layers take scaled values",
           modules(r".*linear|head\.1", lambda m, x: m(CALLED["scaled"](x))),
           both([{"match": {"module_type": "torch.nn.Linear"}, "wrap": {"before": "scaled"}}]))
    yield ("linear layers are wrapped twice",
           modules(r".*linear",
                   lambda m, x: CALLED["halved"](CALLED["clipped"](m(CALLED["scaled"](CALLED["half"](x)))))),
           both([{"match": {"module": "*.linear"}, "wrap": {"before": "half", "after": "clipped"}},
                 {"match": {"module": "*.linear"}, "wrap": {"before": "scaled", "after": "halved"}}]))
    yield ("dropout modules are left out", modules(r".*drop", lambda m, x: x),
           both([{"match": {"module": "*.drop"}, "passthrough": 0}]))
    yield ("a module becomes another graph", modules(r"head\.0", lambda m, x: CALLED["softsign"](x)),
           both([{"match": {"module": "head.0"}, "call": "softsign"}]))
    yield ("a module gives a constant", modules(r"encoder\.2\.linear", lambda m, x: CONSTANT),
           both([{"match": {"module": "encoder.2.linear"}, "constant": CONSTANT.tolist()}]))
    yield ("only the second linear layer", modules(r"encoder\.2\.linear", lambda m, x: torch.sin(x)),
           both([{"match": {"module_type": "torch.nn.Linear", "nth": 1}, "retarget": "torch.sin"}]))
    yield ("a layer's result is patched",
           modules(r"head\.1", lambda m, x: patched(m(x), (slice(None), 0), 9.0)),
           both([{"match": {"module": "head.1"}, "patch": {"index": [":", 0], "set": 9.0}}]))
    yield ("calls within a module", interpreter_within,
           both([{"match": {"module": "encoder*", "target": "torch.relu"}, "retarget": "torch.cos"}]))
    for name, function, action in (
            ("left out", lambda m, x: x, {"passthrough": 0}),
            ("a function", lambda m, x: torch.sin(x), {"retarget": "torch.sin"}),
            ("another call", lambda m, x: torch.clamp(x, -0.2, 0.3), {"retarget": {
                "target": "torch.clamp", "args": ["$args", -0.2], "kwargs": {"max": 0.3}}}),
            ("another graph", lambda m, x: CALLED["softsign"](x), {"call": "softsign"}),
            ("scaled before", lambda m, x: m(CALLED["scaled"](x)), {"wrap": {"before": "scaled"}}),
            ("clipped after", lambda m, x: CALLED["clipped"](m(x)), {"wrap": {"after": "clipped"}}),
            ("wrapped", lambda m, x: CALLED["clipped"](m(CALLED["scaled"](x))), {
                "wrap": {"before": "scaled", "after": "clipped"}}),
            ("steered", lambda m, x: patched(m(x), (0,), 0.5, "add"), {"patch": {"index": [0], "add": 0.5}}),
            ("a constant", lambda m, x: CONSTANT, {"constant": CONSTANT.tolist()})):
        yield (f"whole blocks: {name}", modules(r"encoder\.[02]", function, blocks=True),
               {"nested_export": [{"match": {"module": "encoder.0"}, **action},
                                  {"match": {"module": "encoder.2"}, **action}]})
        yield (f"the outermost of what is matched: {name}", modules(r"encoder\.[012]", function, blocks=True),
               {"nested_export": [{"match": {"module": "encoder.*"}, **action}]})
    yield ("two rules meet on a node", replace(SIGMOID, lambda x: CALLED["quantised"](torch.cos(x))),
           [{"match": sigmoid, "retarget": "torch.cos"}, {"match": sigmoid, "wrap": {"after": "quantised"}}])


# ---- the run ----

def difference(reply, want):
    if reply.status != 200:
        return reply.short()
    got = torch.tensor(reply.json()["outputs"][0]["data"])
    try:
        torch.testing.assert_close(got, want, rtol=1.3e-6, atol=1e-5)
    except AssertionError as error:
        return str(error)
    return None


def main():
    torch.set_num_threads(1)
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    with serving(sys.argv[1]) as (server, tally):
        for name, function in CALLED.items():
            text = dumps(export_fx(fx.symbolic_trace(function), inline=True)[0])
            reply = server.call("PUT", f"/v1/graphs/{name}", text.encode())
            assert reply.status == 201, reply.short()
        x = torch.randn(3, 8)
        for graph, gm, path in (*graphs(), *module_graphs()):
            reply = server.call("PUT", f"/v1/graphs/{graph}", path.read_bytes())
            assert reply.status == 201, reply.short()
            for name, run, rules in rows():
                by_graph = rules if isinstance(rules, dict) else {}
                rules = by_graph.get(graph) if by_graph else rules
                if rules is None or word not in f"{graph}: {name}":
                    continue
                with torch.no_grad():
                    want = run(gm, x)
                want = want[0] if isinstance(want, (tuple, list)) else want
                body = json.dumps({"inputs": [x.tolist()], "overrides": rules}).encode()
                for mode in ("eager", "compiled"):
                    reply = server.call("POST", f"/v1/graphs/{graph}/run?mode={mode}", body)
                    problem = difference(reply, want)
                    tally.check(f"{graph}: {name} ({mode})", problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
