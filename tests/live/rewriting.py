# SPDX-License-Identifier: Apache-2.0
"""Rewrites and passes against torch.fx: rewriting.py FXSERVE [WORD].

Needs torch 2.13. Rows are behaviours that PyTorch's own tests of subgraph_rewriter, of the matcher,
of CSEPass and of eliminate_dead_code check, with graphs written anew. Each is tried with PyTorch
and by POST /v1/graphs/{name}/transform: the places that are found (the nodes that each node of the
pattern stands for), what was put there, and the text of the graph must be the same.

What does not apply here, and why:
  callbacks that make the replacement, match filters          code of the caller's
  patterns given as functions, node name maps, traced again   patterns are graphs
  annotations of types on pattern functions                   the text of graphs has none
  impurity of functions that the caller registers             code of the caller's
  collectives                                                 no such operators
"""
import copy
import json
import operator
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from torch.fx.subgraph_rewriter import replace_pattern_with_filters
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service")]

from export_fx import dumps, export_fx, import_fx
from service import serving

aten = torch.ops.aten


# ---- the two sides -----------------------------------------------------------------------------


def document_of(gm):
    return json.loads(dumps(export_fx(gm, inline=True)[0]))


def with_data(document):
    """The graph of a reply, whose state is given by hash, with zeros in its place."""
    document = copy.deepcopy(document)
    todo = [document]
    while todo:
        graph = todo.pop()
        todo += [module["graph"] for module in graph.get("modules", {}).values() if "graph" in module]
        for entry in graph.get("state", {}).values():
            for key in ("sha256", "unchanged"):
                entry.pop(key, None)
            if "same_as" not in entry:
                entry["data"] = torch.zeros(entry["shape"]).flatten().int().tolist()
    return document


def text_of(document):
    return str(import_fx(with_data(document)).graph)


def transform(server, gm, steps):
    reply = server.call("PUT", "/v1/graphs/g", json.dumps(document_of(gm)).encode())
    if reply.status not in (200, 201):
        return reply
    return server.call("POST", "/v1/graphs/g/transform", json.dumps({"steps": steps}).encode())


def name_of(value):
    return "%" + value.name if isinstance(value, fx.Node) else value


def places_of(matches):
    """What each place binds, without the pattern's output."""
    return [{node.name: name_of(value) for node, value in match.nodes_map.items() if node.op != "output"}
            for match in matches]


def plain(value):
    return value.get("$tuple", value) if isinstance(value, dict) else value


def same_places(ours, theirs):
    got = [{key: plain(value) for key, value in match["nodes"].items()} for match in ours]
    want = [{key: [name_of(item) for item in value] if isinstance(value, (list, tuple)) else value
             for key, value in place.items()} for place in theirs]
    return got == want, f"places {got}, PyTorch has {want}"


# ---- rewrites ----------------------------------------------------------------------------------


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.act, self.deep = nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU())
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.act(self.linear(x)) + self.deep(x) @ self.weight


class CallsLinear(nn.Module):
    def __init__(self, behind=None):
        super().__init__()
        self.linear, self.behind = nn.Linear(4, 4), behind

    def forward(self, x):
        y = self.linear(x)
        return y if self.behind is None else self.behind(y)


class ReadsWeight(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.weight, self.result = nn.Parameter(torch.zeros(4, 4)), result

    def forward(self, x):
        return self.result(x, self.weight)


class InDeep(nn.Module):
    """A pattern that calls a module by a path of two atoms."""

    def __init__(self):
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        return getattr(self.deep, "1")(getattr(self.deep, "0")(x))


def by_hand(build):
    graph = fx.Graph()
    build(graph)
    return fx.GraphModule(nn.Module(), graph)


def shape_reader(x):
    return x.reshape(x.shape[0], -1) + x.shape[0]


def uneven(x, y):
    a = x + y
    b = torch.stack([a, a])
    c = torch.stack([a, b.sum(0)])
    return torch.stack([c[0], c[1]]), b


def diamonds(x):
    a = torch.relu(x)
    b, c = torch.neg(a), torch.abs(a)
    d = torch.relu(b + c)
    e, f = torch.neg(d), torch.abs(d)
    return e + f


def parallel(x, w1, w2, w3):
    return F.linear(x, w1), F.linear(x, w2), F.linear(x, w3)


def chain_of_four(x):
    return torch.relu(torch.relu(torch.relu(torch.relu(x))))


def literal_calls(x):
    a = torch.clamp(x, 0, 1)
    b = torch.clamp(x, 0.0, 1)
    c = torch.clamp(x, 0, 2)
    return a, b, c, torch.clamp(x, False, True), torch.transpose(a, 0, 1), torch.transpose(b, 1, 0)


def keyword_calls(x, y):
    return (torch.add(x, y, alpha=2), torch.add(x, y), torch.add(x, other=y), torch.sum(x, dim=0),
            torch.sum(x, 0), torch.sum(x, dim=0, keepdim=False))


def rewrites():
    """(name, graph, pattern, replacement, options)"""
    one, two = torch.relu, lambda x: torch.neg(torch.relu(x))
    yield "logic is preserved", lambda x: torch.cat([x, x]) + torch.relu(x), one, one, {}
    yield "one line", lambda x: torch.relu(x) + x, one, torch.tanh, {}
    yield "a single place", lambda x: torch.neg(torch.relu(x)) * 2, two, torch.sigmoid, {}
    yield "several places", lambda x, y: two(x) + two(y) * two(x + y), two, torch.sigmoid, {}
    yield "arguments in order", lambda x, y: x - y, lambda a, b: a - b, lambda a, b: b - a, {}
    yield "arguments swapped twice", lambda x, y: (x - y) - (y - x), lambda a, b: a - b, torch.sub, {}
    yield "the whole graph", lambda x, y: torch.relu(x) + y, lambda x, y: torch.relu(x) + y, torch.maximum, {}
    yield "the graph's result", lambda x: torch.relu(x), one, lambda x: torch.neg(x) + 1, {}
    yield ("a result with other readers", lambda x: (lambda a: a + torch.neg(a))(torch.relu(x)), one,
           torch.tanh,
           {})
    yield ("an inner node with other readers", lambda x: (lambda a: a + torch.neg(a))(torch.relu(x)), two,
           torch.tanh, {})
    yield "a result that another place reads", diamonds, lambda x: torch.neg(x), torch.abs, {}
    yield ("two results", diamonds, lambda x: (torch.neg(x), torch.abs(x)),
           lambda x: (torch.abs(x), torch.neg(x)),
           {})
    yield "three results", parallel, lambda x, a, b, c: (F.linear(x, a), F.linear(x, b), F.linear(x, c)), \
        lambda x, a, b, c: (x @ a, x @ b, x @ c), {}
    yield "the same result twice", lambda x: torch.relu(x) + 1, lambda x: (torch.relu(x),
                                                                           torch.relu(x) + 1), \
        lambda x: (x, x), {}
    yield "a replacement that is an input", chain_of_four, one, lambda x: x, {}
    yield "overlapping places", chain_of_four, lambda x: torch.relu(torch.relu(x)), torch.tanh, {}
    yield "overlapping places of three", chain_of_four, lambda x: torch.relu(torch.relu(torch.relu(x))), \
        torch.tanh, {}
    yield "places that follow each other", chain_of_four, one, lambda x: torch.sigmoid(x) * x, {}
    yield "a pattern that is nowhere", chain_of_four, torch.tanh, one, {}
    yield ("methods", lambda x: x.relu().neg() + torch.relu(x), lambda x: x.relu().neg(),
           lambda x: x.tanh(), {})
    yield "a function is no method", lambda x: x.relu() + torch.relu(x), lambda x: x.relu(), torch.tanh, {}
    yield "attributes of values", shape_reader, lambda x: x.shape[0], lambda x: x.size(0), {}
    yield "getitem", uneven, lambda x: (x[0], x[1]), lambda x: (x[1], x[0]), {}
    yield "lists of nodes", uneven, lambda a: torch.stack([a, a]), lambda a: torch.cat([a, a]), {}
    yield "lists of two inputs", uneven, lambda a, b: torch.stack([a, b]), lambda a, b: torch.stack([b,
                                                                                                     a]), {}
    yield "a list that is longer", lambda x, y: torch.cat([x, y,
                                                           x]), lambda a, b: torch.cat([a, b]), torch.add, {}
    yield "a wildcard for a number", lambda x: (x * 2, x * 3.5, x * x), lambda a, b: a * b, torch.add, {}
    yield "a wildcard twice", lambda x, y: (x * x, x * y), lambda a: a * a, torch.square, {}
    yield "an input that is not read", lambda x, y: x + y, lambda a, b: a + b, lambda a, b: torch.neg(b), {}
    yield "literals", literal_calls, lambda x: torch.clamp(x, 0, 1), lambda x: F.relu(x), {}
    yield "literals of two kinds", literal_calls, lambda x: torch.clamp(x, 0.0, 1), lambda x: F.relu(x), {}
    yield "literals ignored", literal_calls, lambda x: torch.clamp(x, 5, 6), lambda x: F.relu(x), \
        {"ignore_literals": True}
    yield "literals that are dims", literal_calls, lambda x: torch.transpose(x, 0, 1), lambda x: x.t(), {}
    yield "keywords", keyword_calls, lambda x, y: torch.add(x, y, alpha=2), lambda x, y: torch.sub(x, y), {}
    yield "keywords left out", keyword_calls, lambda x, y: torch.add(x, y), lambda x, y: torch.sub(x, y), {}
    yield ("a keyword for an argument", keyword_calls, lambda x: torch.sum(x, dim=0),
           lambda x: torch.mean(x, 0), {})
    yield ("an argument for a keyword", keyword_calls, lambda x: torch.sum(x, 0),
           lambda x: torch.mean(x, 0), {})
    yield ("an overload's defaults", lambda x: (aten.softmax.int(x, 0), aten.softmax.int(x, 0, None)),
           lambda x: aten.softmax.int(x, 0), lambda x: aten.log_softmax.int(x, 0), {})
    yield "modules", Layers(), CallsLinear(), CallsLinear(torch.neg), {}
    yield "a module and a call", Layers(), CallsLinear(nn.ReLU()), lambda x: torch.tanh(x), {}
    yield "modules by deep paths", Layers(), InDeep(), lambda x: torch.tanh(x), {}
    yield "parameters", Layers(), ReadsWeight(lambda x, w: x @ w), lambda x: torch.neg(x), {}
    yield "parameters in the replacement", Layers(), lambda x: torch.neg(x), ReadsWeight(torch.matmul), {}
    yield "modules in the replacement", chain_of_four, one, CallsLinear(), {}
    yield "operators", lambda x, y: (x + y) * (x - y) // 2, lambda a, b: a + b, torch.add, {}
    yield "a constant result", lambda x: torch.relu(x) + 1, one, lambda x: torch.zeros(1), {}
    yield "a chain and its start", diamonds, lambda x: torch.relu(torch.neg(x) + torch.abs(x)), torch.tanh, {}


def trace(part):
    """A graph of a module, of a function, or of one of torch's own functions of one or two tensors."""
    if isinstance(part, fx.GraphModule):
        return part
    if part in (torch.add, torch.sub, torch.maximum, torch.matmul):
        return fx.symbolic_trace(lambda x, y: part(x, y))
    if not isinstance(part, nn.Module) and not hasattr(part, "__code__"):
        return fx.symbolic_trace(lambda x: part(x))
    return copy.deepcopy(fx.symbolic_trace(part))


def run_torch(gm, pattern, replacement, options):
    return replace_pattern_with_filters(gm, pattern, replacement, **options)


def check_rewrite(server, tally, row):
    name, graph, pattern, replacement, options = row
    traced = [trace(part) for part in (graph, pattern, replacement)]
    documents = [document_of(part) for part in traced[1:]]
    step = {"rewrite": {"pattern": documents[0], "replacement": documents[1], **options}}
    reply = transform(server, traced[0], [{"match": documents[0], **options}, step])
    matcher = SubgraphMatcher(traced[1].graph, match_output=False, match_placeholder=False,
                              remove_overlapping_matches=True, **options)
    found = places_of(matcher.match(traced[0].graph))
    matches = run_torch(traced[0], traced[1], traced[2], options)
    want = str(traced[0].graph)
    if reply.status != 200:
        tally.bad(name, reply.short())
        return
    body = reply.json()
    got = text_of(body["graph"])
    tally.check(f"{name}: text", "" if got == want else f"{got}\n  PyTorch has\n  {want}")
    same, problem = same_places(body["steps"][0]["matches"], found)
    tally.check(f"{name}: places", "" if same else problem)
    put = [[node.name for node in match.replacements] for match in matches]
    ours = [match["replacements"] for match in body["steps"][1]["matches"]]
    tally.check(f"{name}: replacements", "" if ours == put else f"{ours}, PyTorch has {put}")


# ---- passes ------------------------------------------------------------------------------------


def sum_twice(x):
    a, b = x.cos(), x.cos()
    return a + a, b + b


def two_defaults(x):
    return torch.ops.aten.sum.default(x), torch.ops.aten.sum.default(x, dtype=None)


def nested_lists(x):
    a, b = torch.cat([x, x]), torch.cat([x, x])
    c, d = torch.stack((a, b)), torch.stack((a, a))
    return c + d


def many_equal(x):
    total = x
    for _ in range(6):
        total = total + x.sin() + x.sin()
    return total


def drawn(x):
    return torch.ops.aten.dropout.default(x, 0.5, False), torch.ops.aten.dropout.default(x, 0.5, False)


def keyword_sums(x):
    return x.sum(dim=0), x.sum(dim=0), x.sum(dim=1), x.sum(0)


class Equal(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.linear, self.weight = nn.ReLU(), nn.Linear(4, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.act(self.linear(x)) + self.act(self.linear(x)) * self.weight + self.weight


def cse_graphs():
    yield "nothing equal", lambda x: torch.sin(x) + torch.cos(x)
    yield "two equal", lambda x: torch.sin(x) + torch.sin(x)
    yield "sums of equal ones", sum_twice
    yield "defaults", two_defaults
    yield "many", many_equal
    yield "lists and tuples", nested_lists
    yield "lists of several", lambda x, y: torch.cat([x, y]) + torch.cat([x, y]) + torch.cat([y, x])
    yield "keywords", keyword_sums
    yield "drawn numbers", drawn
    yield "modules and parameters", Equal()
    yield "results that are equal", lambda x: (x.sin(), x.sin())
    yield "inputs", lambda x, y: x + y
    yield "numbers", lambda x: (x + 1, x + 1, x + 2)
    yield "a chain of equal ones", lambda x: x.sin().cos().tan() + x.sin().cos().tan()


class Dead(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.linear, self.act = nn.Parameter(torch.ones(4)), nn.Linear(4, 4), nn.ReLU()

    def forward(self, x):
        self.act(self.linear(x)) + self.weight
        return self.linear(x)


def dead_chain(x):
    a = x + 1
    b = a * 7
    b.neg().relu()
    return a


def dead_attribute(x):
    x.shape[0] + 1
    return x * 2


def asserted(x):
    torch._assert(x.dim() == 2, "two dimensions")
    x.sin()
    return x


def draws(x):
    torch.ops.aten.dropout.default(x, 0.5, False)
    return x + 1


def writes(graph):
    x = graph.placeholder("x")
    y = graph.call_function(operator.add, (x, 1))
    graph.call_function(operator.setitem, (y, 0, 2))
    graph.call_function(aten.relu_.default, (y,))
    graph.call_function(aten.relu.default, (y,))
    graph.output(y)


def dce_graphs():
    yield "nothing dead", lambda x: torch.relu(x) + 1
    yield "one dead", lambda x: (torch.relu(x), torch.neg(x))[0]
    yield "a dead chain", dead_chain
    yield "dead modules and parameters", Dead()
    yield "a dead attribute", dead_attribute
    yield "an input that nobody reads", lambda x, y: x * 2
    yield "an input that only dead ones read", lambda x, y: (x * 2, y.sin())[0]
    yield "asserts", asserted
    yield "drawn numbers", draws
    yield "writes", by_hand(writes)
    yield "all dead but an input", lambda x: (x, torch.relu(x).sin().cos())[0]
    yield "dead items", lambda x: (torch.split(x, 2)[0], torch.split(x, 2)[1])[1]


def check_pass(server, tally, name, kind, graph, apply):
    gm = trace(graph)
    once = transform(server, gm, [{"pass": kind}])
    twice = transform(server, gm, [{"pass": kind}, {"pass": kind}])
    want = str(apply(gm).graph)
    if once.status != 200 or twice.status != 200:
        tally.bad(f"{kind}: {name}", once.short() + twice.short())
        return
    got = text_of(once.json()["graph"])
    tally.check(f"{kind}: {name}", "" if got == want else f"{got}\n  PyTorch has\n  {want}")
    step = twice.json()["steps"][1]
    tally.check(f"{kind} again: {name}", "" if not step["changed"] and not step["erased"] else str(step))


def normal_graphs():
    """Graphs of a float tensor x of 4 x 4, and y like it."""
    yield "functions", lambda x, y: torch.relu(x) + torch.sigmoid(y)
    yield "methods", lambda x, y: x.neg().tanh() * y.abs()
    yield "sizes one by one", lambda x, y: x.view(-1, 8).permute(1, 0).reshape(16)
    yield "dims", lambda x, y: (x.sum(0), x.mean(dim=[1], keepdim=True), x.transpose(0, 1), y.amax(1))
    yield "keywords", lambda x, y: torch.add(x, y, alpha=2) - torch.clamp(input=x, min=0.5)
    yield "numbers", lambda x, y: torch.mul(x, 2) + x.pow(2).div(3) + torch.sub(y, 0.5)
    yield "two meanings of one name", lambda x, y: (torch.max(x, y), torch.max(x, 1)[0], torch.max(x))
    yield "named tuples", lambda x, y: torch.max(x, 1).values + torch.sort(y)[0].sum(0)
    yield "lists", lambda x, y: torch.cat([x, y], dim=1) + torch.stack((x, y)).flatten(1).sum(0)[:8]
    yield "lists of results", lambda x, y: torch.split(x, 2)[0] + torch.chunk(y, 2)[1]
    yield "writes", lambda x, y: (x + 1).add_(y).relu_() + y
    yield "functions of nn", lambda x, y: F.relu(x) + F.softmax(y, dim=1) + F.gelu(x) + F.linear(x, y)
    yield "conditions", lambda x, y: torch.where(x > 0, x, y).masked_fill(y < 0, 0.5)
    yield "what is known of values", lambda x, y: x.reshape(x.size(0) * x.shape[1]).sum() + y.dim()
    yield "dtypes", lambda x, y: x.to(torch.float64) + y.double().type(torch.float32)
    yield "overloads already", lambda x, y: aten.relu.default(x) + aten.add.Tensor(x, y)


def check_normal(server, tally, name, graph):
    gm = trace(graph)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    reply = transform(server, gm, [{"pass": "normalise"}, {"pass": "normalise"}])
    if reply.status != 200:
        tally.bad(f"normalise: {name}", reply.short())
        return
    made = import_fx(with_data(reply.json()["graph"]))
    got, want = made(x.clone(), y.clone()), gm(x.clone(), y.clone())
    problem = "" if reply.json()["steps"][1]["changed"] == [] else "the second time changes something"
    try:
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    except AssertionError as error:
        problem += str(error)
    tally.check(f"normalise: {name}", problem)


def eliminate(gm):
    gm.graph.eliminate_dead_code()
    return gm


def merge(gm):
    return CSEPass(banned_ops=get_CSE_banned_ops())(gm).graph_module


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n", maxsplit=1)[0])
        return 2
    word = sys.argv[2] if len(sys.argv) == 3 else ""
    torch.manual_seed(0)
    with serving(sys.argv[1]) as (server, tally):
        for row in rewrites():
            if word in row[0]:
                check_rewrite(server, tally, row)
        for name, graph in cse_graphs():
            if word in name:
                check_pass(server, tally, name, "cse", graph, merge)
        for name, graph in dce_graphs():
            if word in name:
                check_pass(server, tally, name, "eliminate_dead_code", graph, eliminate)
        for name, graph in normal_graphs():
            if word in name:
                check_normal(server, tally, name, graph)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
