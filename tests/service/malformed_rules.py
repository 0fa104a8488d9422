# SPDX-License-Identifier: Apache-2.0
"""Malformed rules of a run as a table, in the rows of malformed_requests.py. The graph relu has one
call, named relu, of torch.abs; add has one, named add, of operator.add on x and y."""
import json

MATCH = {"name": "relu"}


def rule(**members):
    return {"match": MATCH, **members}


def body(rules, graph="relu"):
    inputs = {"x": [1.5], "y": [2.5]} if graph == "add" else {"x": [1.5]}
    text = rules if isinstance(rules, str) else json.dumps(rules)
    return '{"inputs": ' + json.dumps(inputs) + ', "overrides": ' + text + "}"


def rows():
    for name, rules, status, code, word in [*lists(), *matches(), *retargets(), *values(), *graphs()]:
        yield f"rules: {name}", "relu", body(rules), status, code, word
    for name, rules, status, code, word in others():
        yield f"rules: {name}", "add", body(rules, "add"), status, code, word


def lists():
    for text in ("null", "1", '"neg"', "true", "{}"):
        yield f"overrides = {text}", text, 400, "bad_value", "is a list of rules"
    for text in ("[null]", "[1]", '["neg"]', "[[]]"):
        yield f"a rule = {text}", text, 400, "bad_value", "a rule is an object"
    yield "no rules", "[]", 200, None, '"overrides": []'
    yield "a rule without members", "[{}]", 400, "bad_value", "a rule needs"
    yield "a rule without match", [{"retarget": "torch.neg"}], 400, "bad_value", "needs"
    yield "an unknown member", [rule(replace="torch.neg")], 400, "unknown_member", "it knows match"
    yield "a member twice", '[{"match": {}, "match": {}}]', 400, "malformed", "match"
    yield "never closed", '[{"match": {', 400, "malformed", "line 1"
    yield "two actions", [rule(retarget="torch.neg", passthrough=0)], 400, "bad_value", "one action at most"
    yield "257 rules", [rule(optional=True)] * 257, 413, "too_large", "max_rules"
    yield "256 rules", [rule()] * 256, 200, None, "matched"
    yield "deep", "[" + '{"match": ' * 60 + "1" + "}" * 60 + "]", (400, 413), None, ""


def matches():
    for value in (None, 1, "relu", [], True):
        yield f"match = {value}", [{"match": value,
                                    "retarget": "torch.neg"}], 400, "bad_value", "is an object"
    yield "an unknown condition", [{"match": {"path": "a"}}], 400, "unknown_member", "op, target, name"
    for key in ("target", "name", "module", "module_type"):
        for value in (1, None, [], ""):
            yield f"match.{key} = {value!r}", [{"match": {key: value}}], 400, "bad_value", key
    yield "op", [{"match": {"op": "call"}}], 400, "lint", "unknown opcode"
    for value in (-1, 1.5, "0", None, 10**12):
        yield f"nth = {value}", [{"match": {"nth": value}}], 400, "bad_value", "nth"
    yield "nth beyond", [{"match": {"name": "relu",
                                    "nth": 1}}], 400, "bad_value", "no node has name relu and nth 1"
    yield "no hit", [{"match": {"target": "torch.sigmod"}}], 400, "bad_value", "this graph calls: torch.abs"
    yield "no module", [{"match": {"module": "a.*"}}], 400, "bad_value", "no node has module a.*"
    yield "optional = 1", [rule(optional=1)], 400, "bad_value", "true or false"
    yield "a long glob", [{"match": {"name": "*a" * 5000}}], 400, "bad_value", "no node has name"


def retargets():
    for value in (None, 1, [], "", True):
        yield f"retarget = {value!r}", [rule(retarget=value)], 400, "bad_value", "retarget"
    yield "an unknown target", [rule(retarget="torch.no_such")], 422, "unsupported_operators", "torch.no_such"
    no_name = rule(retarget="os.system(1)")
    yield "a target that is no name", [no_name], 422, "unsupported_operators", "os.system"
    for call, code, word in (
            ({}, "bad_value", "target"),
            ({"target": "torch.neg", "args": 1}, "bad_value", "is a list"),
            ({"target": "torch.neg", "kwargs": []}, "bad_value", "is an object"),
            ({"target": "torch.neg", "argument": []}, "unknown_member", "it knows op, target"),
            ({"target": "torch.neg", "op": "output"}, "bad_value", "call_function"),
            ({"target": "torch.neg", "op": "placeholder"}, "bad_value", "call_function"),
            ({"target": "torch.neg", "args": ["$1"]}, "lint", "none is $1"),
            ({"target": "torch.neg", "args": ["$99999999999"]}, "bad_value", "is no argument"),
            ({"target": "torch.neg", "args": ["$"]}, "bad_value", "is no argument"),
            ({"target": "torch.neg", "args": ["$-1"]}, "bad_value", "is no argument"),
            ({"target": "torch.neg", "args": ["$kw:dim"]}, "lint", "no keyword argument dim"),
            ({"target": "torch.neg", "args": ["%nope"]}, "lint", "names no node"),
            ({"target": "torch.neg", "args": ["%output"]}, "lint", ""),
            ({"target": "torch.neg", "args": ["%relu"]}, "lint", ""),
            ({"target": "torch.neg", "args": [{"$tuple": 1}]}, None, ""),
            ({"target": "no.module", "op": "call_module"}, "lint", "no.module"),
            ({"target": "torch.add", "args": ["$0", "$args", "$args", "$args"]}, None, "")):
        yield f"retarget {call}", [rule(retarget=call)], (400, 422), code, word
    deep = "1"
    for _ in range(40):
        deep = [deep]
    yield "deep arguments", [rule(retarget={"target": "torch.neg", "args": deep})], (400, 413), None, ""
    for value in (-1, 1.5, "0", None, 70000):
        yield f"passthrough = {value}", [rule(passthrough=value)], 400, "bad_value", "passthrough"
    yield "passthrough of what is not there", [rule(passthrough=1)], 400, "lint", "none is $1"


def values():
    for value in ("null", '"a"', "true2", '{"dtype": "float99", "data": [1]}', '[[1], [1, 2]]', "[1e999]",
                  '{"shape": [3], "data": [1]}', '{"shape": [999999999999], "data": []}'):
        yield (f"constant = {value}", '[{"match": {"name": "relu"}, "constant": ' + value + "}]", (400, 413),
               None, "")
    yield "a constant of another rank", [rule(constant=[[1.0]])], 200, None, "[[1.0]]"
    for patch, code in (({}, "bad_value"), ({"index": [0]}, "bad_value"), ({"set": 1.0}, "bad_value"),
                        ({"index": 0, "set": 1.0}, "bad_value"), ({"index": ["a"], "set": 1.0}, "bad_value"),
                        ({"index": ["1:2:3:4"], "set": 1.0}, "bad_value"),
                        ({"index": [{}], "set": 1.0}, None), ({"index": [0.5], "set": 1.0}, "bad_value"),
                        ({"index": [0], "set": 1.0, "add": 1.0}, "bad_value"),
                        ({"index": [0], "multiply": 1.0}, "unknown_member"),
                        ({"index": [3], "set": 1.0}, "index_out_of_range"),
                        ({"index": [0, 0], "set": 1.0}, None),
                        ({"index": ["::0"], "set": 1.0}, None), ({"index": ["::-1"], "set": 1.0}, None),
                        ({"index": [":"], "set": [1.0, 2.0]}, None)):
        yield f"patch = {patch}", [rule(patch=patch)], 400, code, ""
    yield "a patch that is no object", [rule(patch=[0, 1.0])], 400, "bad_value", "is an object"


def graphs():
    for value in (None, 1, [], {}):
        yield f"call = {value}", [rule(call=value)], 400, "bad_value", "by its name"
        yield f"wrap.after = {value}", [rule(wrap={"after": value})], 400, "bad_value", "by its name"
    yield "call of none", [rule(call="")], 404, "not_found", ""
    yield "call of a path", [rule(call="../relu")], 404, "not_found", ""
    yield "call of a long name", [rule(call="a" * 5000)], 404, "not_found", ""
    yield "wrap in nothing", [rule(wrap={})], 400, "bad_value", "before or after"
    yield "wrap around", [rule(wrap={"around": "relu"})], 400, "unknown_member", "before, after"
    yield "a graph that wants two", [rule(call="add")], 400, "lint", "forward() missing 1"
    yield "a graph of integers", [rule(call="ints")], 200, None, "1.5"
    yield "a graph of other sizes", [rule(call="typed")], 400, "run_failed", ""
    yield "17 graphs", [rule(wrap={"after": "relu"})] * 17, 413, "too_large", "max_called_graphs"
    yield "16 graphs", [rule(wrap={"after": "relu"})] * 16, 200, None, "1.5"


def others():
    yield "call of a graph of one", [{"match": {"name": "add"}, "call": "relu"}], 400, "lint", "others"
    yield ("arguments from behind", [{"match": {"name": "add"}, "retarget": {"target": "torch.neg", "args": [
        "%output"]}}], 400, "lint", "")
    yield ("what an earlier rule took away", [{"match": {"name": "add"}, "constant": 1.0},
                                              {"match": {"name": "add"}, "retarget": "torch.neg"}],
           400, "bad_value", "earlier rule")
