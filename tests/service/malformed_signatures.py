# SPDX-License-Identifier: Apache-2.0
"""Malformed signatures, hints, storages and variants: rows() are uploads, (name, body, headers,
status, code, word). Each is a complete export with one thing wrong."""
import copy
import json

from roundtrip import EXPORT, SAME, TURN, TURNED, SIX, placed, reading

OTHER_TREE = {"tuple": [{"tuple": ["*"]}, {"dict": {}}]}
DEEP = "*"
for _ in range(40):
    DEEP = {"list": [DEEP]}


def changed(path, value):
    """EXPORT with another value at a place, or with a function of the value there."""
    document = copy.deepcopy(EXPORT)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return document


def signature(key, value):
    return changed(("signature", key), value)


def without(path):
    document = copy.deepcopy(EXPORT)
    place = document
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return document


def signature_rows():
    bad = 400, "malformed"
    yield "a signature that is a list", changed(("signature",), []), *bad, ""
    yield "a signature of nothing", changed(("signature",), {}), *bad, "inputs"
    yield "an unknown member of it", changed(("signature",), lambda old: {**old, "size": 3}), 400, \
        "unknown_member", "in_tree"
    for key in ("inputs", "outputs", "in_tree", "out_tree"):
        yield f"no {key}", without(("signature", key)), *bad, ""
    yield "an input too few", signature("inputs", lambda old: old[:-1]), *bad, "4 inputs"
    yield "an input too many", signature("inputs", lambda old: old + old[-1:]), *bad, "6 inputs"
    yield "inputs of another kind", changed(("signature", "inputs", 0, "kind"), "buffer"), 400, "bad_value", \
        "literal"
    yield "an input without a kind", without(("signature", "inputs", 1, "kind")), *bad, "kind"
    yield "an input without a type", without(("signature", "inputs", 1, "type")), *bad, "type"
    yield "an input of a new type", changed(("signature", "inputs", 1, "type"),
                                            "str"), 400, "bad_value", "bool"
    yield "state without a path", without(("signature", "inputs", 0, "target")), *bad, "target"
    yield ("state that is not there", changed(("signature", "inputs", 0, "target"), "lost"), 422,
           "missing_state", "lost")
    yield "state of another kind", changed(("signature", "inputs", 0, "as"), "WEIGHT"), 400, "bad_value", \
        "PARAMETER"
    yield "a literal without a value", without(("signature", "inputs", 2, "value")), *bad, "literal"
    yield "a literal that is a list", changed(("signature", "inputs", 2, "value"), [1]), 400, "bad_value", \
        "number"
    yield "a literal that names a node", changed(("signature", "inputs", 2, "value"), "%x"), *bad, "node"
    yield "a tensor with a size", changed(("signature", "inputs", 1),
                                          lambda old: {**old, "size": "s0"}), 400, \
        "bad_value", "size"
    yield "an int that is a matrix", changed(("nodes", 3, "meta"),
                                             {"dtype": "float32", "shape": [2]}), *bad, \
        "int64"
    yield "an int without meta", without(("nodes", 3, "meta")), *bad, "meta"
    yield "a size that does not parse", changed(("signature", "inputs", 3, "size"), "s0 +"), *bad, ""
    yield "a negative size", changed(("signature", "inputs", 3, "size"), -1), 400, "bad_value", "negative"
    yield "an output too few", signature("outputs", lambda old: old[:-1]), *bad, "3 outputs"
    yield "outputs of another kind", changed(("signature", "outputs", 0, "kind"), "loss"), 400, "bad_value", \
        "input"
    yield "an output that writes nothing", without(("signature", "outputs", 0, "target")), *bad, "target"
    yield "an output that writes lost state", changed(("signature", "outputs", 0, "target"), "lost"), *bad, \
        "lost"
    yield ("an output that writes a call", changed(("signature", "outputs", 0),
                                                   {"kind": "input", "target": "mul"}), *bad, "placeholder")
    yield "a user's output that is written", changed(("signature", "outputs", 1, "target"), "x"), *bad, ""
    yield "a written output at the end", signature("outputs", lambda old: old[1:] + old[:1]), *bad, "first"
    yield "one result, no tuple", changed(("nodes", -1, "args"), ["%add"]), *bad, "tuple"
    yield "a result less", changed(("nodes", -1, "args"), [{"$tuple": ["%add"]}]), *bad, "1 values"


def tree_rows():
    bad = 400, "malformed"
    yield "an in_tree that is a list", signature("in_tree", {"list": ["*"]}), *bad, "in_tree"
    yield "an in_tree with a leaf less", signature("in_tree", OTHER_TREE), *bad, "leaves"
    yield "an out_tree with a leaf more", signature("out_tree", {"list": ["*"] * 4}), *bad, "leaves"
    yield "a leaf of another name", signature("out_tree", "leaf"), *bad, "*"
    yield "a structure of nothing", signature("out_tree", {}), *bad, "empty"
    yield "a structure of two kinds", signature("out_tree", {"list": [], "tuple": []}), *bad, "one kind"
    yield "a set", signature("out_tree", {"set": ["*"]}), 400, "bad_value", "namedtuple"
    yield "a dict that is a list", signature("out_tree", {"dict": ["*"]}), *bad, ""
    yield "a structure 40 deep", signature("out_tree", DEEP), 413, "too_large", "max_nested_values"
    yield "a name more than arguments", signature("argument_names", list("abcde")), *bad, "more"
    yield "names that are numbers", signature("argument_names", [1]), *bad, ""
    yield "a guard that does not parse", signature("guards", ["L['x'].size()[0] =="]), *bad, ""
    yield "a guard that is code", signature("guards", ["__import__('os')"]), *bad, ""
    yield "a guard of 100,000 terms", signature("guards", ["+".join(["s0"] * 100000)]), 413, "too_large", ""
    yield "a range of three", signature("ranges", {"s0": [1, 2, 3]}), *bad, "min"
    yield "a range of one", signature("ranges", {"s0": [1]}), *bad, "min"
    yield "a range that is empty", signature("ranges", {"s0": [3, 2]}), 400, "bad_value", "empty"
    yield "a range beyond int64", signature("ranges", {"s0": [0, 2**63]}), *bad, ""
    yield "a range of nothing that parses", signature("ranges", {"s0 s1": [0, 2]}), *bad, ""
    yield "a hint that is a text", changed(("hints",), {"s0": "four"}), *bad, ""
    yield "a negative hint", changed(("hints",), {"s0": -4}), 400, "bad_value", "negative"
    yield "a class that is no name", changed(("class_name",), "a b"), 400, "bad_value", "class"
    yield "a pytree that is a number", changed(("pytree",), 1), *bad, ""
    yield "an origin of two lines", changed(("nodes", 5, "origin"), "a\nb"), 400, "bad_value", "line"


def stored(state, names=(("w", SAME),)):
    return {"format": "fx/1", "nodes": reading(names), "state": state}


def storage_rows():
    bad = 400, "malformed"
    pair = (("w", SAME), ("t", TURN))
    yield "a stride without a storage", stored({"w": placed([2, 3], SIX, stride=[3, 1])}), *bad, "storage"
    yield "an offset without a storage", stored({"w": placed([2, 3], SIX, offset=1)}), *bad, "storage"
    yield "a stride too few", stored({"w": placed([2, 3], SIX, storage="s", stride=[1])}), 400, \
        "shape_mismatch", "stride"
    yield "strides of 65 dimensions", stored({"w": placed([2, 3], SIX, storage="s",
                                                          stride=[1] * 65)}), 400, "bad_value", \
        "dimensions"
    yield "a negative stride", stored({"w": placed([2, 3], SIX, storage="s", stride=[3, -1])}), 400, \
        "bad_value", "negative"
    yield "a negative offset", stored({"w": placed([2, 3], SIX, storage="s", offset=-1)}), 400, "bad_value", \
        "negative"
    yield ("an offset beyond memory", stored({"w": placed([2, 3], SIX, storage="s", offset=2**62)}), 413,
           "too_large", "")
    yield ("a stride beyond memory", stored({"w": placed([2, 3], SIX, storage="s", stride=[2**62, 2**62])}),
           (400, 413), None, "")
    yield ("a storage of a terabyte", stored({"w": placed([2, 3], SIX, storage="s", offset=2**38)}), 413,
           "too_large", "max-upload-in-memory")
    yield "a storage without a shape", stored({"w": {"data": SIX, "storage": "s"}}), *bad, "shape"
    two = {"w": placed([2, 3], SIX, storage="s"), "t": placed([3, 2], SIX, storage="s", stride=[1, 3])}
    yield "tensors that disagree", stored(two, pair), 400, "bad_value", "other numbers"
    yield ("rows that disagree", stored({"w": placed([2, 3], SIX, storage="s", stride=[0, 1])}), 400,
           "bad_value", "other numbers")
    absent = {**two, "t": {"dtype": "float32", "shape": [3, 2], "storage": "s", "stride": [1, 3]}}
    yield "a storage of one that is not there", stored(absent, pair), 422, "missing_state", "t"
    yield "a tied entry with a storage", stored({"w": placed([2, 3], SIX), "t": {
        "same_as": "w", "storage": "s"}}, pair), 400, "unknown_member", "same_as"
    yield "a tied entry with numbers", stored({"w": placed([2, 3], SIX), "t": {
        "same_as": "w", "data": TURNED}}, pair), 400, "unknown_member", "same_as"
    yield "a parameter that is a number", stored({"w": placed([2, 3], SIX, parameter=1)}), *bad, ""
    yield "persistence that is a text", stored({"w": placed([2, 3], SIX, persistent="no")}), *bad, ""
    yield "a storage that is a number", stored({"w": placed([2, 3], SIX, storage=0)}), *bad, "text"


def variant_rows():
    rules = [{"match": {"target": "torch.relu"}, "retarget": "torch.neg"}]

    def variant(**more):
        return {"format": "fx-variant/1", "base": "nobody", "overrides": rules, **more}
    yield "a variant of nobody", variant(), 404, "not_found", "nobody"
    yield "a variant of a list", variant(base=[]), 400, "bad_value", "base"
    yield "a variant of a path", variant(base="../x"), 404, "not_found", ""
    yield "a variant without rules", variant(overrides=[]), 400, "malformed", "overrides"
    yield "a variant with an object of rules", variant(overrides={}), 400, "bad_value", "overrides"
    yield "a variant with nodes", variant(nodes=[]), 400, "unknown_member", "nodes"
    yield "a variant of version 0", variant(version=0), 400, "bad_value", "version"
    yield "a variant of version text", variant(version="prod"), 400, "malformed", ""
    yield "a variant with 10,000 rules", variant(overrides=rules * 10000), 413, "too_large", "max_rules"
    of_run = [{"match": {"target": "torch.relu"}, "constant": {"run": "r", "node": "x"}}]
    yield ("a variant with a value of a run", variant(overrides=of_run), 400, "bad_value",
           "send the tensor itself")


def rows():
    for name, document, status, code, word in [*signature_rows(), *tree_rows(), *storage_rows(),
                                               *variant_rows()]:
        yield name, json.dumps(document), (), status, code, word
