# SPDX-License-Identifier: Apache-2.0
"""Makes tests/edit/cases.json: edits of graphs with the text PyTorch's own graph has after them.

    python tools/generate/make_edit_cases.py [--out tests/edit/cases.json]

A case has a graph (FX JSON, state inline), steps, and "want" (str(gm.graph) after the last step) or
"error" (the message of the exception of the last step). Steps are the Graph API's operations by
name; "%x" is node x.
"""

import argparse
import json
import operator
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental.const_fold import _inline_module, split_const_subgraphs
from torch.fx.experimental.optimization import extract_subgraph, fuse, remove_dropout
from torch.fx.subgraph_rewriter import replace_pattern_with_filters
from torch.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from export_fx import decode_value, export_fx, resolve

CASES = []


# ---- graphs ------------------------------------------------------------------------------------


def chain(x):
    return torch.neg(torch.relu(x).sigmoid())


def branches(x, y):
    a = x + y
    b = torch.relu(a)
    c = torch.tanh(a)
    return b * c, a


def repeated(x):
    a = x + x
    b = torch.cat([a, a, x], dim=1)
    return {"a": a, "b": [b, a]}


def dead(x):
    y = x + 1
    z = y * 2
    torch.relu(z)
    return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.act = nn.ReLU()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.act(self.linear(x)) * self.scale


# ---- steps -------------------------------------------------------------------------------------


def target_of(op, text):
    return resolve(text) if op == "call_function" else text


def make(graph, new, nodes):
    args = tuple(decode_value(arg, nodes) for arg in new.get("args", []))
    kwargs = {key: decode_value(value, nodes) for key, value in new.get("kwargs", {}).items()}
    return graph.create_node(new["op"], target_of(new["op"], new["target"]), args, kwargs, new.get("name"))


def insert(gm, step, nodes):
    at = nodes.get(step["node"])
    where = gm.graph.inserting_after if step["edit"] == "insert_after" else gm.graph.inserting_before
    with where(at):
        make(gm.graph, step["new"], nodes)


def replace(gm, step, nodes):
    node = nodes[step["node"]]
    with gm.graph.inserting_before(node):
        new = make(gm.graph, step["new"], nodes)
    node.replace_all_uses_with(new)
    gm.graph.erase_node(node)


def set_args(gm, step, nodes):
    node = nodes[step["node"]]
    if "args" in step:
        node.args = tuple(decode_value(arg, nodes) for arg in step["args"])
    if "kwargs" in step:
        node.kwargs = {key: decode_value(value, nodes) for key, value in step["kwargs"].items()}


def set_target(gm, step, nodes):
    node = nodes[step["node"]]
    node.target = target_of(node.op, step["target"])


def rename(gm, step, nodes):
    nodes[step["node"]]._rename(step["name"])  # .name = ... would not look for a free one


def replace_input(gm, step, nodes):
    nodes[step["node"]].replace_input_with(nodes[step["from"]], nodes[step["with"]])


def inline(gm, step, nodes):
    child = nodes[step["node"]].target
    _inline_module(gm, child, run_dce=False)
    for node in gm.graph.nodes:  # which leaves paths as they were within the child
        if node.op in ("get_attr", "call_module") and node not in nodes.values():
            node.target = f"{child}.{node.target}"


def move(gm, step, nodes):
    if "before" in step:
        nodes[step["before"]].prepend(nodes[step["node"]])
    else:
        nodes[step["after"]].append(nodes[step["node"]])


def replace_all_uses(gm, step, nodes):
    nodes[step["node"]].replace_all_uses_with(nodes[step["with"]])


EDITS = {
    "inline": inline,
    "insert_before": insert,
    "insert_after": insert,
    "replace": replace,
    "erase": lambda gm, step, nodes: gm.graph.erase_node(nodes[step["node"]]),
    "move": move,
    "rename": rename,
    "set_target": set_target,
    "set_args": set_args,
    "replace_input": replace_input,
    "replace_all_uses": replace_all_uses,
}


def dead_code(gm):
    gm.graph.eliminate_dead_code()
    return gm


PASSES = {
    "eliminate_dead_code": dead_code,
    "cse": lambda gm: CSEPass(banned_ops=get_CSE_banned_ops())(gm).graph_module,
    "remove_dropout": remove_dropout,
    "constant_fold": split_const_subgraphs,
    "fuse": fuse,
}


def extract(gm, step):
    """With the nodes between inputs and outputs, which PyTorch's function wants to be told."""
    nodes = {node.name: node for node in gm.graph.nodes}
    inputs, outputs = [[nodes[name] for name in step[key]] for key in ("inputs", "outputs")]
    needed, todo = set(inputs), list(outputs)
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo += node.all_input_nodes
    return extract_subgraph(gm, [node for node in gm.graph.nodes if node in needed - set(inputs)], inputs,
                            outputs)


def apply(gm, step):
    """The graph module after the step, which may be another one."""
    if "rewrite" in step:
        replace_pattern_with_filters(gm, step.pattern, step.replacement,
                                     ignore_literals=step["rewrite"].get("ignore_literals", False))
        return gm
    if step.get("pass") == "extract_subgraph":
        return extract(gm, step)
    if "pass" in step:
        return PASSES[step["pass"]](gm)
    EDITS[step["edit"]](gm, step, {node.name: node for node in gm.graph.nodes})
    return gm


def case(name, source, *steps):
    """`source`: what to trace, or a function without arguments that makes a GraphModule."""
    gm = source() if getattr(source, "makes_graph", False) else torch.fx.symbolic_trace(source)
    document, _ = export_fx(gm, inline=True)
    entry = {"name": name, "graph": document, "steps": list(steps)}
    for at, step in enumerate(steps):
        try:
            gm = apply(gm, step)
            gm.graph.lint()
        except (RuntimeError, AssertionError) as error:
            if at + 1 < len(steps):
                raise
            entry["error"] = str(error).split("\n", maxsplit=1)[0]
    if "error" not in entry:
        entry["want"] = str(gm.graph)
    CASES.append(entry)


def call(target, *args, name=None, **kwargs):
    new = {"op": "call_function", "target": target, "args": list(args)}
    if kwargs:
        new["kwargs"] = kwargs
    return {**new, "name": name} if name else new


def method(target, *args):
    return {"op": "call_method", "target": target, "args": list(args)}


class Rewrite(dict):
    """A step of a recipe with the two graph modules that it names."""

    def __init__(self, pattern, replacement, **options):
        self.pattern = torch.fx.symbolic_trace(pattern)
        self.replacement = torch.fx.symbolic_trace(replacement)
        documents = {"pattern": export_fx(self.pattern, inline=True)[0],
                     "replacement": export_fx(self.replacement, inline=True)[0]}
        super().__init__(rewrite={**documents, **options})


def edit(kind, **fields):
    return {"edit": kind, **fields}


# ---- cases -------------------------------------------------------------------------------------


def single_edits():
    case("a node is inserted after another", chain,
         edit("insert_after", node="relu", new=call("torch.abs", "%relu")),
         edit("replace_input", node="sigmoid", **{"from": "relu", "with": "abs_1"}))
    case("a node is inserted before another", chain,
         edit("insert_before", node="neg", new=method("mul", "%sigmoid", 2.5)),
         edit("set_args", node="neg", args=["%mul"]))
    case("names follow FX's rule when they are taken", chain,
         edit("insert_after", node="relu", new=call("torch.relu", "%relu")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="relu_1")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="sum")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="some.name!")))
    case("the name of an erased node stays taken", dead,
         edit("erase", node="relu"),
         edit("insert_after", node="add", new=call("torch.relu", "%add")))
    case("all readers get another node", branches,
         edit("replace_all_uses", node="add", **{"with": "x"}),
         edit("erase", node="add"))
    case("a node that is read cannot be erased", branches, edit("erase", node="add"))
    case("a node that is read once cannot be erased", chain, edit("erase", node="sigmoid"))
    case("users are told in the order in which they came", branches,
         edit("set_args", node="relu", args=["%x"]),
         edit("set_args", node="relu", args=["%add"]),
         edit("erase", node="add"))
    case("a node is replaced", branches,
         edit("replace", node="relu", new=call("torch.clamp", "%add", min=0, max=6.5)))
    case("a node is replaced by a method", branches,
         edit("replace", node="tanh", new=method("sigmoid", "%add")))
    case("a node is moved to the front of another", branches, edit("move", node="tanh", before="relu"))
    case("a node is moved behind another", branches, edit("move", node="relu", after="tanh"))
    case("a node next to itself stays", branches, edit("move", node="relu", after="relu"))
    case("a node is moved to the front of its input", branches,
         edit("move", node="tanh", before="add"))
    case("a node is renamed", branches, edit("rename", node="add", name="total"))
    case("a node is renamed to a name that is taken", branches, edit("rename", node="add", name="relu"))
    case("a node is renamed to its own name", branches, edit("rename", node="add", name="add"))
    case("a target is set", chain, edit("set_target", node="sigmoid", target="tanh"),
         edit("set_target", node="relu", target="torch.abs"))
    case("arguments and keywords are set", repeated,
         edit("set_args", node="cat", args=[["%x", "%add"]], kwargs={"dim": -1}))
    case("a node that stands at several places is replaced at all of them", repeated,
         edit("replace_all_uses", node="add", **{"with": "x"}))
    case("one reader gets another node", repeated,
         edit("replace_input", node="output", **{"from": "add", "with": "cat"}))
    case("slices and containers keep their form", repeated,
         edit("set_args", node="cat", args=[{"$tuple": ["%add", {"$slice": ["%x", None, 2]}]}],
              kwargs={"dim": {"a": ["%x", 1.5, "text", None, True]}}))
    case("modules stay", Net(),
         edit("insert_after", node="act", new=call("torch.tanh", "%act")),
         edit("set_args", node="mul", args=["%tanh", "%scale"]))
    case("a lone result becomes another", Net(), edit("set_args", node="output", args=["%act"]))
    case("a placeholder is inserted at the front", chain,
         edit("insert_before", node="x", new={"op": "placeholder", "target": "first"}))


# ---- passes ------------------------------------------------------------------------------------


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Dropout(0.3)
        self.blocks = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.ReLU(), nn.Dropout1d())
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.blocks(self.first(x))
        return self.first(self.act(y) + F.dropout(x, training=False))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.unused(x) * self.weight
        return self.used(x)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.bias = nn.Parameter(torch.ones(3))

    def forward(self, x, y=2):
        return torch.relu(self.linear(x) + self.bias) * y


class Pair(nn.Module):
    def forward(self, x):
        return x + 1, x * 2


def with_child(child, forward_args, unpack=False):
    """A graph that calls a traced child by call_module, as split_module makes them."""

    def make_module():
        gm = torch.fx.GraphModule(nn.Module(), torch.fx.Graph())
        gm.add_submodule("child", torch.fx.symbolic_trace(child))
        x = gm.graph.placeholder("x")
        value = gm.graph.call_module("child", forward_args(x))
        if unpack:
            first = gm.graph.call_function(operator.getitem, (value, 0))
            second = gm.graph.call_function(operator.getitem, (value, 1))
            value = gm.graph.call_function(torch.add, (first, second))
        gm.graph.output(gm.graph.call_function(torch.neg, (value,)))
        gm.recompile()
        return gm

    make_module.makes_graph = True
    return make_module


def chain_of_dead(x):
    y = torch.relu(x)
    for _ in range(4):
        y = torch.sigmoid(y)
    return x + 1


def by_hand(*calls):
    """x + 1, then calls of it that nobody reads."""

    def make_module():
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(operator.add, (x, 1))
        for target, *args in calls:
            graph.call_function(target, (y, *args))
        graph.output(y)
        return torch.fx.GraphModule(nn.Module(), graph)

    make_module.makes_graph = True
    return make_module


aten = torch.ops.aten
dead_writes = by_hand((operator.setitem, 0, 2), (aten.add_.Tensor, 1), (aten.mul.Tensor, 2))
dead_asserts = by_hand((torch._assert, "never"), (aten.dropout.default, 0.5, False), (aten.relu.default,))


def dead_getitems(x):
    first, second, third = torch.split(x, 2)
    torch.unbind(x)
    return second


def twice(x, y):
    return (torch.relu(x) + torch.relu(y)) * (torch.relu(x) + torch.relu(y))


def twice_with_containers(x):
    a = torch.cat([x, x + 1], dim=1)
    b = torch.cat([x, x + 1], dim=1)
    c = torch.cat((x, x + 1), dim=1)
    d = torch.cat([x, x + 1], 1)
    return a, b, c, d


def linear_twice(x, y):  # slices are left out: PyTorch's pass cannot hash them
    return F.linear(x, y), F.linear(x, y), F.linear(y, x), [x.sum(), x.sum()]


def almost_twice(x):
    return (torch.sum(x, 0), torch.sum(x, 1), torch.sum(x, dim=0), torch.sum(x, dim=0, keepdim=True),
            torch.clamp(x, min=0.5), torch.clamp(x, max=0.5))


def twice_drawn(x):
    return torch.ops.aten.dropout.default(x, 0.5, False), torch.ops.aten.dropout.default(x, 0.5, False)


def passes():
    dce = {"pass": "eliminate_dead_code"}
    for name, source in (("a dead chain", chain_of_dead), ("dead ends", dead), ("nothing dead", branches),
                         ("dead modules and parameters", Unused()), ("dead writes stay", dead_writes),
                         ("dead items", dead_getitems), ("asserts and draws stay", dead_asserts),
                         ("results in a dict", repeated), ("modules", Net()),
                         ("an unused input", lambda x, y: x)):
        case("dead code: " + name, source, dce)
    case("dead code after an edit", branches, edit("replace_all_uses", node="mul", **{"with": "relu"}), dce)
    cse = {"pass": "cse"}
    for name, source in (("equal sums", twice), ("containers", twice_with_containers),
                         ("functions and methods", linear_twice),
                         ("other arguments", almost_twice), ("random calls stay", twice_drawn),
                         ("nothing equal", branches), ("a chain", chain), ("dead ends", dead),
                         ("inputs alone", lambda x, y: (x, y)), ("results in a dict", repeated)):
        case("cse: " + name, source, cse)
    case("cse and dead code", twice_with_containers, cse, dce, cse)
    for name, source in (("dropout goes", Dropped().eval()), ("no dropout", Net())):
        case("remove_dropout: " + name, source, {"pass": "remove_dropout"})


class Convolutions(nn.Module):
    def __init__(self, bias=True, affine=True):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, bias=bias)
        self.bn = nn.BatchNorm2d(3, affine=affine)
        self.conv2 = nn.Conv2d(3, 2, 1, bias=bias)
        self.bn2 = nn.BatchNorm2d(2, eps=0.01)

    def forward(self, x):
        return self.bn2(self.conv2(torch.relu(self.bn(self.conv(x)))))


class Linears(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2, bias=False),
                                  nn.BatchNorm1d(2))

    def forward(self, x):
        return self.body(x)


class ReadTwice(Convolutions):
    def forward(self, x):
        y = self.conv(x)
        return self.bn(y) + y


class BetweenThem(Convolutions):
    def forward(self, x):
        return self.bn(torch.relu(self.conv(x)))


class NormTwice(Convolutions):
    def forward(self, x):
        return self.bn(self.bn(self.conv(x)))


class OtherRank(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(2, 3, 3)
        self.bn1 = nn.BatchNorm1d(3)
        self.conv3 = nn.Conv3d(2, 3, 1)
        self.bn3 = nn.BatchNorm3d(3)

    def forward(self, x, y):
        return self.bn1(self.conv1(x)), self.bn3(self.conv3(y))


class NoStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.bn = nn.BatchNorm2d(3, track_running_stats=False)

    def forward(self, x):
        return self.bn(self.conv(x))


class Constants(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.randn(3, 3))
        self.bias = nn.Parameter(torch.randn(3))
        self.linear = nn.Linear(3, 3)
        self.act = nn.ReLU()

    def forward(self, x):
        return getattr(self, self.kind)(x)

    def one(self, x):
        return self.linear(x @ (self.weight.t() + 1))

    def none(self, x):
        return self.linear(x) + self.weight

    def a_module(self, x):
        return x, self.linear(self.weight)

    def a_chain(self, x):
        return x + torch.relu(self.act(self.weight * 2) - self.bias).sum()

    def of_two(self, x):
        return torch.cat([self.weight, self.bias.unsqueeze(0)]) @ x

    def in_a_list(self, x):
        return torch.cat([x, self.weight * 3], dim=0)

    def the_result(self, x):
        return torch.sigmoid(self.bias)

    def random(self, x):
        return x + torch.ops.aten.dropout.default(self.weight, 0.5, False)

    def by_keyword(self, x):
        return torch.add(x, other=self.weight.view(9)[0])

    def nothing_read(self, x):
        return torch.relu(x)


def folding():
    fold, fused = {"pass": "constant_fold"}, {"pass": "fuse"}
    for kind in ("one", "none", "a_module", "a_chain", "of_two", "in_a_list", "the_result", "random",
                 "by_keyword", "nothing_read"):
        case("constant_fold: " + kind.replace("_", " "), Constants(kind).eval(), fold)
    for name, source in (("convolutions", Convolutions()), ("no biases", Convolutions(bias=False)),
                         ("not affine", Convolutions(affine=False)), ("linear layers", Linears()),
                         ("a layer that is read twice", ReadTwice()),
                         ("a call between them", BetweenThem()), ("a norm called twice", NormTwice()),
                         ("other ranks", OtherRank()), ("no statistics", NoStatistics()), ("no norm", Net())):
        case("fuse: " + name, source.eval(), fused)
    case("fuse: in training", Convolutions().train(), fused)


def extraction():
    def part(inputs, outputs):
        return {"pass": "extract_subgraph", "inputs": inputs, "outputs": outputs}

    case("extract: the middle", chain, part(["relu"], ["sigmoid"]))
    case("extract: an input of the graph", chain, part(["x"], ["relu"]))
    case("extract: two results", branches, part(["add"], ["relu", "tanh"]))
    case("extract: two inputs", branches, part(["relu", "tanh"], ["mul"]))
    case("extract: inputs in another order", branches, part(["tanh", "relu"], ["mul"]))
    case("extract: all", branches, part(["x", "y"], ["mul", "add"]))
    case("extract: modules", Net(), part(["linear"], ["act"]))
    case("extract: state", Net(), part(["act"], ["mul"]))
    case("extract: an input that is a result", branches, part(["add"], ["add", "relu"]))
    case("extract: a container inside", repeated, part(["add", "x"], ["cat"]))
    case("extract: a list of results", branches, part(["x", "y"], ["tanh", "tanh"]))


def inlining():
    inner = edit("inline", node="child")
    case("a child is inlined", with_child(Pair(), lambda x: (x,), unpack=True), inner)
    case("a child with modules is inlined", with_child(Inner(), lambda x: (x, x)), inner)


# ---- rewrites ----------------------------------------------------------------------------------


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.tanh(self.act(self.linear(x)) * self.weight)


class Wanted(nn.Module):
    """A pattern with a module, by its path, and a parameter of its own."""

    def __init__(self, out):
        super().__init__()
        self.act = nn.ReLU()
        self.other = nn.Parameter(torch.zeros(3))
        self.out = out

    def forward(self, x):
        if self.out is None:
            return self.act(x) * self.other
        return self.out(x) + self.other


def sums(x, y):
    a = torch.relu(x) + torch.relu(y)
    b = torch.relu(a) + torch.relu(x)
    return torch.sigmoid(b) + torch.relu(b)


def relu(x):
    return torch.relu(x)


def sum_of_relus(x, y):
    return torch.relu(x) + torch.relu(y)


def relu_chain(x):
    return torch.relu(torch.relu(torch.relu(torch.relu(torch.relu(x)))))


def two_results(x, y):
    a = x + y
    return torch.neg(a) * torch.abs(a) - torch.neg(x)


def clamps(x):
    a = torch.clamp(x, 0, 6)
    b = torch.clamp(a, 0, 1)
    c = torch.clamp(b, min=0, max=6)
    return torch.clamp(c, 0, 6.0)


def overloads(x, y):
    a = aten.add.Tensor(x, y)
    b = aten.add.Tensor(a, y, alpha=1)
    return aten.add.Tensor(b, y, alpha=2)


def with_lists(x, y, z):
    a = torch.cat([x, y], dim=0)
    b = torch.cat((x, y), dim=0)
    return torch.cat([a, b, z], dim=0)


def reads_inside(x):
    a = torch.relu(x)
    return torch.neg(a) + a


def through_outside(x):
    a = torch.relu(x)
    return torch.add(a, torch.sigmoid(a))


def sum_and_relu(x, y):
    a = torch.relu(x)
    return torch.add(a, y), a


def simple_rewrites():
    case("one call for one", chain, Rewrite(relu, lambda x: torch.tanh(x)))
    case("one call for two", sums, Rewrite(relu, lambda x: torch.clamp(x, min=0)))
    case("two calls for one", sums, Rewrite(sum_of_relus, lambda x, y: torch.maximum(x, y)))
    case("the replacement is an input", sums, Rewrite(relu, lambda x: x))
    case("an input is not read", sums, Rewrite(sum_of_relus, lambda x, y: torch.sigmoid(x)))
    case("overlapping places: the first", relu_chain,
         Rewrite(lambda x: torch.relu(torch.relu(x)), lambda x: torch.tanh(x)))
    case("three in a row", relu_chain,
         Rewrite(lambda x: torch.relu(torch.relu(torch.relu(x))), lambda x: torch.neg(x) + 1))
    case("places that follow each other", relu_chain, Rewrite(relu, lambda x: torch.sigmoid(x) * x))
    case("no place", sums, Rewrite(lambda x: torch.softmax(x, 0), relu))
    case("two rewrites", sums, Rewrite(relu, lambda x: torch.abs(x)),
         Rewrite(lambda x: torch.abs(x), lambda x: torch.neg(x)))
    case("the pattern's own call in the replacement", sums, Rewrite(relu, lambda x: torch.relu(x) * 2))
    case("methods", lambda x: x.relu().sum(), Rewrite(lambda x: x.relu(), lambda x: x.tanh().neg()))
    case("operators", lambda x, y: (x + y) * (x - y) + (x + y),
         Rewrite(lambda a, b: a + b, lambda a, b: torch.add(a, b)))


def wildcards_and_literals():
    case("a placeholder is the same everywhere", lambda x, y: (x * x, x * y, y * y),
         Rewrite(lambda a: a * a, lambda a: torch.square(a)))
    case("placeholders are different nodes", lambda x, y: (x * x, x * y),
         Rewrite(lambda a, b: a * b, lambda a, b: torch.add(a, b)))
    case("a placeholder stands for a number", lambda x: (x * 2, x * 2.5),
         Rewrite(lambda a, b: a * b, lambda a, b: torch.add(a, b)))
    case("a placeholder stands for a list",  # lists of replaced nodes break PyTorch's own graph
         lambda x, y: torch.cat([x, y], dim=0) + torch.cat((y, x), dim=0),
         Rewrite(lambda a: torch.cat(a, dim=0), lambda a: torch.stack(a, dim=0)))
    case("lists and tuples of nodes", with_lists,
         Rewrite(lambda a, b: torch.cat([a, b], dim=0), lambda a, b: torch.stack([b, a])))
    case("literals must be equal", clamps,
         Rewrite(lambda x: torch.clamp(x, 0, 6), lambda x: F.relu6(x)))
    case("literals are ignored", clamps,
         Rewrite(lambda x: torch.clamp(x, 0, 6), lambda x: F.relu6(x), ignore_literals=True))
    case("keywords must be the same", clamps,
         Rewrite(lambda x: torch.clamp(x, min=0, max=6), lambda x: F.relu6(x)))
    case("an overload's defaults are filled in", overloads,
         Rewrite(lambda x, y: aten.add.Tensor(x, y), lambda x, y: aten.sub.Tensor(x, y)))
    case("an overload's keyword", overloads,
         Rewrite(lambda x, y: aten.add.Tensor(x, y, alpha=2), lambda x, y: aten.sub.Tensor(x, y)))


def results_and_readers():
    case("two results", two_results,
         Rewrite(lambda x: (torch.neg(x), torch.abs(x)), lambda x: (torch.abs(x), torch.neg(x))))
    case("a result and what it is made of", lambda x: (torch.relu(x) + 1) * torch.relu(x),
         Rewrite(lambda x: torch.relu(x) + 1, lambda x: torch.sigmoid(x)))
    case("an inner node with a reader outside", reads_inside,
         Rewrite(lambda x: torch.neg(torch.relu(x)), lambda x: torch.tanh(x)))
    case("an inner node that is a result too", reads_inside,
         Rewrite(lambda x: (torch.relu(x), torch.neg(torch.relu(x))), lambda x: (torch.tanh(x), x)))
    case("a way through the outside", through_outside,
         Rewrite(lambda x, y: torch.add(torch.relu(x), y), lambda x, y: torch.mul(x, y)))
    case("a result leads back into the place", through_outside,
         Rewrite(sum_and_relu, lambda x, y: (torch.mul(x, y), x)))
    case("the place is the graph's result", lambda x: torch.relu(x), Rewrite(relu, lambda x: (torch.tanh(x))))
    case("the result is not read", dead, Rewrite(relu, lambda x: torch.tanh(x)))
    case("results in containers", repeated,
         Rewrite(lambda a: a + a, lambda a: torch.mul(a, 2)))
    case("modules by path, parameters by kind", Scaled(),
         Rewrite(Wanted(None), lambda x: torch.sigmoid(x)))
    case("modules come with the replacement", Scaled(),
         Rewrite(lambda x: torch.tanh(x), Wanted(nn.Linear(3, 3))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/edit/cases.json"))
    out = parser.parse_args().out
    torch.manual_seed(0)
    single_edits()
    passes()
    folding()
    extraction()
    inlining()
    simple_rewrites()
    wildcards_and_literals()
    results_and_readers()
    lines = ",\n".join(json.dumps(entry) for entry in CASES)
    out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(CASES)} cases")


if __name__ == "__main__":
    main()
