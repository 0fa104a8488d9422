# SPDX-License-Identifier: Apache-2.0
"""Subclasses of torch.fx.Interpreter that watch a run, against rules that observe, and parts of
runs against Interpreter.run(initial_env=...): observing.py FXSERVE [WORD].

Needs torch 2.13. The graphs are those of overrides.py: functions, an export, nested modules and an
export of these. Each is tried in both modes. The classes of the articles of docs/seed-notes.md are
among them, and what the page says does not hold is tried, too.
"""
import json
import sys

import torch
from torch import fx, nn

from overrides import SIGMOID, graphs, interpreter
from service import serving

BINS = 32


class Recorder(fx.Interpreter):
    """What each node got and gave, when it ran."""

    def __init__(self, gm):
        super().__init__(gm, garbage_collect_values=False)
        self.calls = {}

    def run_node(self, node):
        args = self.fetch_args_kwargs_from_env(node)[0] if node.op != "placeholder" else ()
        described = [describe(value) for value in args]
        result = super().run_node(node)
        self.calls[node.name] = (node, described, clone(result))
        return result


class Printer(fx.Interpreter):
    """The article's handler, with the module's path in place of `target.__name__`."""

    def __init__(self, gm):
        super().__init__(gm)
        self.lines = []

    def call_module(self, target, args, kwargs):
        self.lines.append(f"Calling module: {target}")
        self.lines.append(f"Input shapes: {[a.shape for a in args]}")
        return super().call_module(target, args, kwargs)


class Profiler(fx.Interpreter):
    """The article's profile, taken in run_node: names only, times differ."""

    def __init__(self, gm):
        super().__init__(gm)
        self.names = []

    def run_node(self, node):
        if node.op.startswith("call_"):
            self.names.append(node.name)
        return super().run_node(node)


class Culprit(BaseException):
    """Nothing that the Interpreter adds words to."""


class FirstBad(fx.Interpreter):
    """Stops at the first NaN or infinity."""

    def run_node(self, node):
        result = super().run_node(node)
        if node.op != "output" and isinstance(result, torch.Tensor) and not result.isfinite().all():
            raise Culprit(node.name)
        return result


def clone(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return type(value)(map(clone, value)) if isinstance(value, (list, tuple)) else value


def describe(value):
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype)[6:], "stride": list(value.stride())}
    if isinstance(value, slice):
        return {"$slice": [value.start, value.stop, value.step]}
    return [describe(item) for item in value] if isinstance(value, (list, tuple)) else value


def statistics(value):
    values = value.double().flatten()
    finite = values[values.isfinite()]
    return {"min": finite.min().item(), "max": finite.max().item(), "mean": finite.mean().item(),
            "std": finite.std().item(), "nan": int(values.isnan().sum()), "inf": int(values.isinf().sum()),
            "zeros": int((values == 0).sum())}


def close(got, want, what):
    torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(want).to(torch.as_tensor(got).dtype),
                               rtol=1e-5, atol=1e-5, msg=lambda m: f"{what}: {m}")


class Graph:
    """One uploaded graph in one mode."""

    def __init__(self, server, name, gm, mode, x):
        self.server, self.name, self.gm, self.mode, self.x = server, name, gm, mode, x

    def run(self, x=None, status=200, headers=(), **members):
        body = {"inputs": [(self.x if x is None else x).tolist()], "mode": self.mode, **members}
        text = json.dumps(body).replace("Infinity", '"Infinity"').replace("NaN", '"NaN"')
        reply = self.server.call("POST", f"/v1/graphs/{self.name}/run", text.encode(), headers)
        assert reply.status == status, reply.short()
        return reply.json()

    def observed(self, *rules, **members):
        return [rule["observed"] for rule in self.run(overrides=list(rules), **members)["overrides"]]


def calls_are_described(graph):
    recorder = Recorder(graph.gm)
    recorder.run(graph.x)
    observed, = graph.observed({"match": {}, "observe": ["call"]})
    described = {entry["node"]: entry["call"] for entry in observed if "call" in entry}
    for name, (node, args, _) in recorder.calls.items():
        if node.op.startswith("call_"):
            assert described[name]["args"] == args, f"{name}: {described[name]['args']}, expected {args}"
            assert described[name]["op"] == node.op
    return len(described)


def statistics_are_torchs(graph):
    recorder = Recorder(graph.gm)
    recorder.run(graph.x)
    observed, = graph.observed({"match": {}, "observe": ["stats", "tensor"]})
    for entry in observed:
        value = recorder.calls.get(entry["node"], (None, None, None))[2]
        if not isinstance(value, torch.Tensor):  # or a parameter that the export lifted
            continue
        close(entry["tensor"]["data"], value, entry["node"])
        got = entry["stats"]
        for key, want in statistics(torch.tensor(entry["tensor"]["data"])).items():
            close(got[key], want, f"{entry['node']}.{key}")
        counts = torch.tensor(entry["tensor"]["data"]).double().histc(BINS)
        assert got["histogram"]["counts"] == counts.int().tolist(), entry["node"]


def the_article_prints(graph):
    printer = Printer(graph.gm)
    printer.run(graph.x)
    observed, = graph.observed({"match": {"op": "call_module"}, "observe": ["call"], "form": "text",
                                "optional": True})
    assert [line for line in observed if "Time" not in line] == printer.lines, observed


def the_article_profiles(graph):
    profiler = Profiler(graph.gm)
    profiler.run(graph.x)
    rules = [{"match": {"op": op}, "observe": ["call"], "form": "text", "optional": True}
             for op in ("call_function", "call_method", "call_module")]
    lines = [line for observed in graph.observed(*rules) for line in observed if "Time" in line]
    assert sorted(line.split()[1].rstrip(",") for line in lines) == sorted(profiler.names), lines


def the_article_swaps(graph):
    """sigmoid(neg(x)) with sigmoid replaced is x."""
    want = interpreter(lambda self, key, args, kwargs, plain:
                       torch.neg(args[0]) if key in SIGMOID else plain())(graph.gm, graph.x)
    reply = graph.run(overrides=[{"match": {"target": "torch.sigmoid"}, "retarget": "torch.neg"}])
    close(reply["outputs"][0]["data"], want[0] if isinstance(want, tuple) else want, "swapped")


def the_first_culprit_is_named(graph):
    for value in (float("inf"), float("nan"), 3e38):
        x = graph.x.clone()
        x[1, 2] = value
        want = None
        try:
            FirstBad(graph.gm).run(x)
        except Culprit as stop:
            want = str(stop)
        rules = [{"match": {}, "halt_on": ["nan", "inf"]}]
        if want is None:
            graph.run(x, overrides=rules)
            continue
        reply = graph.run(x, status=400, overrides=rules)
        assert (reply["code"], reply["node"]) == ("halted", want), f"{reply}, expected {want}"


def values_may_be_given(graph):
    nodes = [node for node in graph.gm.graph.nodes if node.op.startswith("call_")]
    recorder = Recorder(graph.gm)
    recorder.run(graph.x)
    for node in nodes[::2]:
        value = recorder.calls[node.name][2]
        if not isinstance(value, torch.Tensor):
            continue
        changed = value * 0.5 + 0.25
        want = fx.Interpreter(graph.gm).run(graph.x, initial_env={node: changed})
        reply = graph.run(initial_env={node.name: changed.tolist()})
        close(reply["outputs"][0]["data"], want[0] if isinstance(want, tuple) else want, node.name)


def runs_may_end_early(graph):
    recorder = Recorder(graph.gm)
    recorder.run(graph.x)
    for name, (node, _, value) in recorder.calls.items():
        if not node.op.startswith("call_") or not isinstance(value, torch.Tensor):
            continue
        reply = graph.run(until=name)
        assert [out["node"] for out in reply["outputs"]] == [name]
        close(reply["outputs"][0]["data"], value, name)


def kept_values_are_the_environment(graph):
    other = torch.randn_like(graph.x)
    recorder = Recorder(graph.gm)
    recorder.run(other)
    graph.run(other, keep="all", headers=[("X-Request-Id", "kept")])
    for node in [node for node in graph.gm.graph.nodes if node.op.startswith("call_")][1::2]:
        value = recorder.env[node]
        if not isinstance(value, torch.Tensor):
            continue
        want = fx.Interpreter(graph.gm).run(graph.x, initial_env={node: value})
        reply = graph.run(initial_env={node.name: {"run": "kept", "node": node.name}})
        close(reply["outputs"][0]["data"], want[0] if isinstance(want, tuple) else want, node.name)


def a_given_parameter_is_used(graph):
    """A lifted parameter of an export, or a get_attr node."""
    for entry in graph.run(overrides=[{"match": {}, "observe": ["stats"]}])["overrides"][0]["matched"]:
        if "weight" in entry and not entry.startswith("encoder"):
            weight = torch.full((6, 8), 0.125)
            same = graph.run(overrides=[{"match": {"name": entry}, "constant": weight.tolist()}])
            given = graph.run(initial_env={entry: weight.tolist()})
            assert given["outputs"][0]["data"] == same["outputs"][0]["data"], entry


def modules_of_an_export_print(graph):
    """The handler of the traced graph against the regions of the export."""
    printer = Printer(graph.gm)
    printer.run(graph.x)
    paths = [node.target for node in graph.gm.graph.nodes if node.op == "call_module"]
    rules = [{"match": {"module": path}, "observe": ["call", "stats"], "form": "text"} for path in paths]
    lines = [line for observed in graph.observed(*rules) for line in observed]
    assert [line for line in lines if line.startswith(("Calling", "Input"))] == printer.lines, lines
    recorder = Recorder(graph.gm)
    recorder.run(graph.x)
    observed = graph.observed(*[{**rule, "form": "json"} for rule in rules])
    for path, (entry,) in zip(paths, observed):
        value = recorder.calls[next(node.name for node in graph.gm.graph.nodes if node.target == path)][2]
        assert entry["call"]["op"] == "call_module" and entry["call"]["target"] == path, entry
        close(entry["stats"]["mean"], value.double().mean().item(), path)


CHECKS = [calls_are_described, statistics_are_torchs, the_article_prints, the_article_profiles,
          the_article_swaps, the_first_culprit_is_named, values_may_be_given, runs_may_end_early,
          kept_values_are_the_environment, a_given_parameter_is_used]


# ---- what the articles say ----

def raises(kind, function, *args):
    try:
        function(*args)
    except kind:
        return True
    return False


def slips():
    """(what docs/seed-notes.md says, whether it is so)"""
    model = nn.Linear(10, 20)
    gm, x = fx.symbolic_trace(nn.Sequential(model)), torch.randn(1, 10)

    class Named(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            return target.__name__

    swapped = fx.symbolic_trace(lambda x: torch.sigmoid(torch.neg(x)))
    swap = interpreter(lambda self, key, args, kwargs,
                       plain: torch.neg(args[0]) if key in SIGMOID else plain())
    tracer = fx.Tracer()
    tracer.trace(nn.Sequential(nn.Sequential(model)))
    yield "symbolic_trace takes no sample input", raises(RuntimeError, fx.symbolic_trace, model, x)
    yield "a target has no __name__", raises(AttributeError, Named(gm).run, x)
    yield "an Interpreter needs a module", raises(TypeError, fx.Interpreter)
    yield "run takes inputs only", raises(TypeError, fx.Interpreter(gm).run, gm, x)
    yield "there is no root_node", not hasattr(fx.Interpreter(gm), "root_node")
    yield "neg of neg is the input", torch.equal(swap(swapped, x), x)
    yield "nodes have no replace", not hasattr(fx.Node, "replace")
    yield "there is no graph_module.forward", not hasattr(fx.graph_module, "forward")
    yield "tracers register nothing", not hasattr(fx.Tracer, "register_module")
    yield "paths begin below the root", tracer.path_of_module(model) == "0.0"
    yield "foreign modules are refused", raises(NameError, tracer.path_of_module, nn.ReLU())
    yield "symbolic_trace gives a GraphModule", isinstance(gm, fx.GraphModule)


def attempt(tally, name, check, *args):
    try:
        check(*args)
        tally.ok()
    except AssertionError as error:
        tally.bad(name, str(error)[:600])


def main():
    torch.set_num_threads(1)
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    with serving(sys.argv[1]) as (server, tally):
        for says, so in slips():
            tally.check("docs/seed-notes.md", "" if so else f"not so: {says}")
        for name, gm, path in graphs():
            regions = name == "nested_export"  # its nodes have other names than the traced graph's
            reply = server.call("PUT", f"/v1/graphs/{name}", path.read_bytes())
            assert reply.status == 201, reply.short()
            for mode in ("eager", "compiled"):
                torch.manual_seed(3)
                graph = Graph(server, name, gm, mode, torch.randn(3, 8))
                for check in [modules_of_an_export_print] if regions else CHECKS:
                    if word in f"{name} {check.__name__}":
                        with torch.no_grad():
                            attempt(tally, f"{name}, {mode}: {check.__name__}", check, graph)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
