# SPDX-License-Identifier: Apache-2.0
"""Malformed recipes: rows() are bodies of POST /v1/graphs/relu/transform, (name, body, status,
code, word). The graph has nodes x, relu (torch.abs of x) and output."""
import json

GRAPH = {"nodes": [{"op": "placeholder", "name": "a", "target": "a"},
                   {"op": "call_function", "name": "r", "target": "torch.abs", "args": ["%a"]},
                   {"op": "output", "name": "output", "args": ["%r"]}]}
NEW = {"op": "call_function", "target": "torch.neg", "args": ["%x"]}


def rows():
    for name, body, status, code, word in list(body_rows()) + list(big_rows()):
        yield name, body if isinstance(body, (str, bytes)) else json.dumps(body), status, code, word
    for name, step, status, code, word in (list(step_rows()) + list(edit_rows()) + list(value_rows())
                                           + list(module_rows()) + list(pattern_rows())
                                           + list(pass_rows())):
        yield name, json.dumps({"steps": [step]}), status, code, word


def edit(kind, **members):
    return {"edit": kind, **members}


def body_rows():
    yield "no body", b"", 400, "malformed", "steps"
    yield "a body that is a list", [], 400, "malformed", "object"
    yield "a body without steps", {}, 400, "malformed", "steps"
    yield "a body that ends early", '{"steps": [', 400, "malformed", "line 1"
    yield "two bodies", '{"steps": []} {}', 400, "malformed", ""
    yield "steps twice", '{"steps": [], "steps": []}', 400, "malformed", "steps"
    yield "steps that are an object", {"steps": {}}, 400, "malformed", "list"
    yield "steps that are null", {"steps": None}, 400, "malformed", "list"
    yield "an unknown member of the body", {"steps": [], "colour": 1}, 400, "unknown_member", "colour"
    yield "a dry run that is a number", {"steps": [], "dry_run": 1}, 400, "malformed", "dry_run"
    yield "a name to store that is a number", {"steps": [], "store_as": 1}, 400, "malformed", "store_as"


def big_rows():
    for depth in (100, 100000):
        yield (f"steps nested {depth} deep", '{"steps": ' + "[" * depth + "]" * depth + "}", (400, 413), None,
               "")
        yield (f"an argument nested {depth} deep", '{"steps": [{"edit": "set_args", "node": "relu", "args": '
               + "[" * depth + "]" * depth + "}]}", (400, 413), None, "")
    yield ("10,001 steps", {"steps": [{"lint": True}] * 10001}, 413, "too_large", "max_edit_steps")
    yield ("a rewrite that grows",
           {"steps": [{"rewrite": {"pattern": GRAPH, "replacement": doubled(16)}}] * 20},
           (200, 400, 413), None, "")


def doubled(n):
    nodes = [GRAPH["nodes"][0]] + [{"op": "call_function", "name": f"r{i}", "target": "torch.abs",
                                    "args": [f"%r{i - 1}" if i else "%a"]} for i in range(n)]
    return {"nodes": nodes + [{"op": "output", "name": "output", "args": [f"%r{n - 1}"]}]}


def step_rows():
    yield "a step that is a text", "erase", 400, "malformed", "steps[0]"
    yield "a step that is null", None, 400, "malformed", "steps[0]"
    yield "a step without a kind", {"node": "relu"}, 400, "unknown_member", "edit"
    yield "a step of two kinds", {"edit": "erase", "node": "relu",
                                  "pass": "cse"}, 400, "unknown_member", "pass"
    yield "an edit that is a number", {"edit": 1}, 400, "malformed", "edit"
    yield "an edit that is empty", {"edit": ""}, 400, "unknown_member", "set_target"
    yield "an unknown edit", edit("paint", node="relu"), 400, "unknown_member", "paint"
    yield "a pass that is a list", {"pass": []}, 400, "malformed", "pass"
    yield "an unknown pass", {"pass": "beautify"}, 404, "not_found", "beautify"
    yield "an unknown pass with options", {"pass": "beautify", "x": 1}, 400, "unknown_member", "x"
    yield "a pass with an unknown option", {"pass": "cse", "x": 1}, 400, "unknown_member", "x"
    yield "a lint that is false", {"lint": False}, 400, "malformed", "lint"
    yield "a rewrite that is a list", {"rewrite": []}, 400, "malformed", "rewrite"
    yield "a rewrite with an unknown member", {"rewrite": {"patern": GRAPH}}, 400, "unknown_member", "patern"


def edit_rows():
    yield "an edit without its node", edit("erase"), 400, "malformed", "node"
    yield "an edit with another's member", edit("erase", node="relu", name="a"), 400, "unknown_member", "name"
    yield "a node that is not there", edit("erase", node="rleu"), 400, "lint", "rleu"
    yield "a node that is a number", edit("erase", node=1), 400, "malformed", "node"
    yield "a node that is null", edit("erase", node=None), 400, "malformed", "node"
    yield "a node that is read", edit("erase", node="relu"), 400, "lint", "relu"
    yield "no place to move to", edit("move", node="relu"), 400, "malformed", "before"
    yield "two places to move to", edit("move", node="relu", before="x", after="x"), 400, "malformed", "after"
    yield "a move before its input", edit("move", node="relu", before="x"), 400, "lint", "relu"
    yield "a move behind the output", edit("move", node="relu", after="output"), 400, "lint", "output"
    yield "an output that is moved", edit("move", node="output", before="x"), 400, "lint", ""
    yield "the output erased", edit("erase", node="output"), 400, "lint", "output"
    yield "a target that is empty", edit("set_target", node="relu", target=""), 400, "lint", "relu"
    yield "a target of the output", edit("set_target", node="output", target="x"), 400, "lint", "output"
    yield ("a target that nothing implements", edit("set_target", node="relu", target="torch.paint"), 422,
           "unsupported_operators", "torch.paint")
    yield ("an opcode that is none", edit("set_target", node="relu", target="a", op="call"), 400, "lint",
           "call_function")
    yield ("a call that becomes an input", edit("set_target", node="relu", target="a", op="placeholder"), 400,
           "lint", "relu")
    yield ("a module that is not there", edit("set_target", node="relu", target="a", op="call_module"), 400,
           "lint", "relu")
    yield "a name that is empty", edit("rename", node="relu", name=""), (200, 400), None, ""
    yield "a name of 100,000 letters", edit("rename", node="relu", name="a" * 100000), (200, 400,
                                                                                        413), None, ""
    yield "an index that is negative", edit("remove_output", index=-1), 400, "bad_value", "index"
    yield "an index that is a fraction", edit("remove_output", index=0.5), 400, None, "index"
    yield "an index too far", edit("remove_output", index=7), 400, "lint", "7"
    yield "a call that is no child graph", edit("inline", node="relu"), 400, "lint", "relu"
    yield "no node to outline", edit("outline", nodes=[], path="p"), 400, "lint", "child graph"
    yield "an input to outline", edit("outline", nodes=["x"], path="p"), 400, "lint", "placeholder"
    yield "a path that is empty", edit("outline", nodes=["relu"], path=""), 400, "lint", "path"
    yield "nodes that are a text", edit("outline", nodes="relu", path="p"), 400, "malformed", "nodes"
    yield ("a node outlined twice", edit("outline", nodes=["relu", "relu"], path="p"), (200, 400), None, "")


def value_rows():
    yield ("an argument that is not there", edit("set_args", node="relu", args=["%y"]), 400, "lint", "y")
    yield ("an argument that comes later", edit("set_args", node="relu", args=["%output"]), 400, "lint",
           "output")
    yield ("an argument that is itself", edit("set_args", node="relu", args=["%relu"]), 400, "lint", "relu")
    yield ("a text that begins with $", edit("set_args", node="relu", args=["$args"]), 400, "malformed", "$")
    yield ("arguments that are an object", edit("set_args", node="relu", args={}), 400, "malformed", "args")
    yield ("keywords that are a list", edit("set_args", node="relu", kwargs=[]), 400, "malformed", "kwargs")
    yield ("keywords that are a tuple", edit("set_args", node="relu", kwargs={"$tuple": []}), 400,
           "malformed",
           "kwargs")
    yield ("a replacement that is not there", edit("replace_all_uses", node="x", **{"with": "y"}), 400,
           "lint",
           "y")
    yield ("a replacement that is itself", edit("replace_all_uses", node="x", **{"with": "relu"}), 400,
           "lint",
           "relu")
    yield "a new node without op", edit("insert_after", node="x",
                                        new={"target": "torch.neg"}), 400, None, "op"
    yield "a new node without target", edit("insert_after", node="x",
                                            new={"op": "get_attr"}), 400, None, "target"
    yield ("a new node with an unknown member", edit("insert_after", node="x", new={**NEW, "colour": 1}), 400,
           "unknown_member", "colour")
    yield "a new node that is a list", edit("insert_after", node="x", new=[]), 400, "malformed", "new"
    yield "a new node behind the output", edit("insert_after", node="output", new=NEW), 400, "lint", ""
    yield ("a new node that reads later ones", edit("insert_before", node="relu",
                                                    new={**NEW, "args": ["%output"]}), 400, "lint", "output")
    yield ("a second output", edit("insert_after", node="relu", new={"op": "output", "target": "output",
                                                                     "args": ["%x"]}), 400, "lint", "output")
    yield ("a new node of an unknown dtype",
           edit("insert_after", node="x", new={**NEW, "meta": {"dtype": "f"}}),
           400, "bad_value", "f")


def module_rows():
    relu = {"type": "torch.nn.ReLU"}
    yield "a module without type", edit("add_module", path="m", module={}), 400, "malformed", "type"
    yield "a module that is a text", edit("add_module", path="m", module="torch.nn.ReLU"), 400, None, "module"
    yield "a module at no path", edit("add_module", path="", module=relu), 400, "lint", ""
    yield "a module to go that is not there", edit("delete_module", path="m"), 400, "lint", "m"
    yield "the root to go", edit("delete_module", path=""), 400, "lint", ""
    yield "a module to replace that is not there", edit("replace_module", path="m",
                                                        module=relu), 400, "lint", "m"
    yield ("a child graph without an output", edit("add_module", path="m", module={
        "type": "torch.fx.GraphModule", "graph": {"nodes": []}}), 400, "lint", "output")
    yield "a tensor that is ragged", edit("set_state", path="w", tensor=[[1], [1, 2]]), 400, None, ""
    yield "a tensor that is a text", edit("set_state", path="w", tensor="1"), 400, None, ""
    yield ("a tensor without data", edit("set_state", path="w", tensor={"dtype": "float32", "shape": [2]}),
           400,
           None, "data")
    huge = {"shape": [1 << 40, 1 << 40], "data": [1]}
    yield "a tensor that counts wrong", edit("set_state", path="w", tensor=huge), (400, 413), None, ""
    yield "state to go that is not there", edit("delete_state", path="w"), 400, "lint", "w"
    yield "state to rename that is not there", edit("rename_state", path="w", to="v"), 400, "lint", "w"


def pattern_rows():
    unused = {"nodes": [{"op": "placeholder", "name": "a", "target": "a"},
                        {"op": "placeholder", "name": "b", "target": "b"}] + GRAPH["nodes"][1:]}
    empty = {"nodes": [GRAPH["nodes"][0], {"op": "output", "name": "output", "args": ["%a"]}]}
    yield "a pattern that is a text", {"match": "relu"}, 400, "malformed", "match"
    yield "a pattern without nodes", {"match": {}}, 400, "malformed", "nodes"
    yield "a pattern with an unused input", {"match": unused}, 400, "lint", "b"
    yield "a pattern without a call", {"match": empty}, 400, "lint", "call"
    yield "no replacement", {"rewrite": {"pattern": GRAPH}}, 400, "malformed", "replacement"
    yield ("a replacement with more inputs", {"rewrite": {"pattern": GRAPH, "replacement": unused}}, 400,
           "lint",
           "1 vs 2")
    yield ("literals ignored by a number", {"match": GRAPH, "ignore_literals": 1}, 400, "malformed",
           "ignore_literals")


def pass_rows():
    def part(**members):
        return {"pass": "extract_subgraph", **members}

    yield "a part without inputs", part(outputs=["relu"]), 400, "malformed", "inputs"
    yield "a part with an input that is not there", part(inputs=["y"], outputs=["relu"]), 400, "lint", "y"
    yield "a part with an input twice", part(inputs=["x", "x"], outputs=["relu"]), 400, "lint", "twice"
    yield "a part that begins at the output", part(inputs=["output"], outputs=["relu"]), 400, "lint", "output"
    yield "a part that ends at the output", part(inputs=["x"], outputs=["output"]), 400, "lint", "output"
    yield "a part that lacks an input", part(inputs=[], outputs=["relu"]), 400, "lint", "x"
    for name, shapes in (("a list", []), ("of a call", {"relu": [1]}),
                         ("of a node that is not there", {"y": [1]}),
                         ("that are negative", {"x": [-1]}), ("that are fractions", {"x": [0.5]}),
                         ("of nine dimensions", {"x": [1] * 9}),
                         ("of an unknown dtype", {"x": {"dtype": "f"}}),
                         ("without sizes", {"x": {"dtype": "float32"}}),
                         ("with an unknown member", {"x": {"y": 1}}),
                         ("that overflow", {"x": [1 << 31] * 8}), ("beyond int64", {"x": [1 << 70]})):
        for kind in ("shape_prop", "functionalise", "decompose"):
            yield f"shapes {name} for {kind}", {"pass": kind, "shapes": shapes}, (400, 413), None, kind
