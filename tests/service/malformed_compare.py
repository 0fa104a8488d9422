# SPDX-License-Identifier: Apache-2.0
"""Malformed comparisons: rows() are bodies of POST /v1/compare, (name, body, status, code, word).
The graph "relu" has nodes x, relu (torch.abs of x) and output."""
import json

RELU = {"graph": "relu"}
X = {"x": [1.5]}


def rows():
    for name, body, status, code, word in list(body_rows()) + list(side_rows()) + list(option_rows()):
        yield name, body if isinstance(body, (str, bytes)) else json.dumps(body), status, code, word


def sides(a=None, b=None, **more):
    return {"a": RELU if a is None else a, "b": RELU if b is None else b, "inputs": X, **more}


def body_rows():
    yield "no comparison", b"", 400, "malformed", "empty"
    yield "a comparison that is a list", [], 400, "malformed", "object"
    yield "a comparison that is null", "null", 400, "malformed", "object"
    yield "a comparison without sides", {}, 400, "bad_value", "needs"
    yield "a comparison with one side", {"a": RELU}, 400, "bad_value", "needs"
    yield "a comparison that ends early", '{"a": {"graph"', 400, "malformed", "line 1"
    yield "two comparisons", '{"a": {"graph": "relu"}, "b": {"graph": "relu"}} {}', 400, "malformed", ""
    yield ("a side twice", '{"a": {"graph": "relu"}, "a": {"graph": "relu"}}', 400, "malformed", "a")
    yield "an unknown member of a comparison", sides(colour=1), 400, "unknown_member", "colour"
    yield "a comparison that is too deep", '{"inputs": ' + "[" * 100000, 413, "too_large", "nesting"
    yield "a comparison of many lists", '{"inputs": [' + "[]," * 2100000 + "[]]}", 413, "too_large", "lists"


def side_rows():
    yield "a side that is a text", sides(a="relu"), 400, "bad_value", "side"
    yield "a side that is null", '{"a": null, "b": {"graph": "relu"}}', 400, "bad_value", "side"
    yield "a side that is empty", sides(b={}), 400, "bad_value", "side"
    yield "a graph that is a number", sides(a={"graph": 1}), 400, "bad_value", "text"
    yield "a graph with a path", sides(a={"graph": "../relu"}), 404, "not_found", ""
    yield "a graph that is not there", sides(b={"graph": "nobody"}), 404, "not_found", "nobody"
    yield "version 0", sides(b={**RELU, "version": 0}), 400, "bad_value", "version"
    yield "a version that is a fraction", sides(b={**RELU, "version": 1.5}), 400, "bad_value", "version"
    yield "a version that is not there", sides(b={**RELU, "version": 99}), 404, "not_found", ""
    yield "an alias that is not there", sides(b={**RELU, "version": "prod"}), 404, "not_found", "prod"
    yield "an alias that is none", sides(b={**RELU, "version": "1a"}), 400, "bad_value", "alias"
    yield "an endless alias", sides(b={**RELU, "version": "a" * 100000}), 400, "bad_value", "alias"
    yield "mode auto of a side", sides(b={**RELU, "mode": "auto"}), 400, "bad_value", "compiled"
    yield "a mode that is a number", sides(b={**RELU, "mode": 1}), 400, "bad_value", "mode"
    yield "an unknown member of a side", sides(b={**RELU, "seed": 1}), 400, "unknown_member", "seed"
    yield "rules that are no list", sides(b={**RELU, "overrides": {}}), 400, None, ""
    yield ("rules that match nothing",
           sides(b={**RELU, "overrides": [{"match": {"name": "y"}, "passthrough": 0}]}),
           400, None, "y")
    yield "steps that are no list", sides(b={**RELU, "steps": {}}), 400, "malformed", "steps"
    yield "a step that is a number", sides(b={**RELU, "steps": [1]}), 400, "malformed", "steps[0]"
    yield ("a step at a node that is not there",
           sides(b={**RELU, "steps": [{"edit": "erase", "node": "y"}]}), 400, None, "steps[0]")
    yield ("steps that make what cannot run",
           sides(a={**RELU, "steps": [{"edit": "set_target", "node": "relu", "target": "torch.foo"}]}),
           422, "unsupported_operators", "torch.foo")
    yield "a saved list that is not there", sides(a={**RELU, "steps": [{"pass": "mine"}]}), 404, None, "mine"
    yield "samples and steps", sides(b={"samples": 0, "steps": []}), 400, "bad_value", "alone"
    yield "samples as side a", sides(a={"samples": 0}), 400, "bad_value", "graph"
    yield "samples and a graph", sides(b={"samples": 0, **RELU}), 400, "bad_value", "alone"
    yield "samples that are a text", sides(b={"samples": "0"}), 400, "bad_value", "samples"
    yield "samples below 0", sides(b={"samples": -1}), 400, "bad_value", "samples"
    yield "samples of a graph without", {"a": RELU, "b": {"samples": 0}}, 404, "not_found", "samples"
    yield "inputs beside a sample", sides(b={"samples": 0}), 400, "bad_value", "inputs"
    yield "inputs of samples of a graph without", sides(inputs="samples"), 404, "not_found", "samples"


def option_rows():
    yield "inputs that are another text", sides(inputs="random"), 400, "bad_value", "example"
    yield "inputs of another name", sides(inputs={"y": [1.0]}), 400, "bad_input", "y"
    yield "inputs that are missing", sides(inputs={}), 400, "bad_input", "x"
    yield "inputs that are a number", sides(inputs=7), 400, None, "inputs"
    yield "nodes that are a number", sides(nodes=1), 400, "bad_value", "nodes"
    yield "rtol without atol", sides(rtol=0.1), 400, "bad_value", "atol"
    yield "atol without rtol", sides(atol=0.1), 400, "bad_value", "rtol"
    yield "an rtol below 0", sides(rtol=-1, atol=0), 400, "bad_value", "rtol"
    yield "an atol that is a text", sides(rtol=1, atol="NaN"), 400, "bad_value", "atol"
    yield "an atol without end", '{"atol": 1e999}', 400, None, "atol"
    yield "equal_nan as a text", sides(equal_nan="yes"), 400, "bad_value", "equal_nan"
    yield "an unknown form of a comparison", sides(form="xml"), 400, "bad_value", "form"
    yield "a form that is null", sides(form=None), 400, "bad_value", "form"
    yield "a deadline of 0", sides(deadline_ms=0), 400, "bad_value", "deadline_ms"
    yield "a deadline that is too late", sides(deadline_ms=10**9), 400, "bad_value", "deadline_ms"
    yield "a seed below 0", sides(seed=-1), 400, "bad_value", "seed"
    yield "times below 1", sides(times=0), 400, "bad_value", "times"
    yield "more times than are taken", sides(times=101), 400, "bad_value", "100"
    yield "times that are a text", sides(times="9"), 400, "bad_value", "times"
    yield "times of a sample", {"a": RELU, "b": {"samples": 0}, "times": 1}, 400, "bad_value", "times"
