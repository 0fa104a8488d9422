# SPDX-License-Identifier: Apache-2.0
"""Malformed FX JSON: rows() are uploads, (name, body, headers, status, code, word); run_rows() are
graphs that go up well and fail, or work, when they run with what is sent along, (name, graph,
inputs, status, code, word); documents() are real graphs and mutants_of() leaves out or retypes each
of their fields."""
import copy
import glob
import json
import os

import malformed_signatures
from service import MODELS, ROOT

X = {"op": "placeholder", "name": "x", "target": "x"}


def call(target, *args, name="n", op="call_function", **kwargs):
    node = {"op": op, "name": name, "target": target, "args": list(args)}
    if kwargs:
        node["kwargs"] = kwargs
    return node


def out(value="%n"):
    return {"op": "output", "name": "output", "target": "output", "args": [value]}


def fx(*nodes, **more):
    return {"format": "fx/1", "nodes": list(nodes), **more}


def rows():
    for name, document, status, code, word in (list(structure_rows()) + list(call_rows())
                                               + list(module_rows()) + list(big_rows())):
        yield (name, document if isinstance(document, (str, bytes)) else json.dumps(document), (),
               status, code, word)
    yield from malformed_signatures.rows()


def structure_rows():
    relu = call("torch.relu", "%x")
    yield "a graph that is a list", [], 400, "malformed", ""
    yield "a graph without nodes", {"format": "fx/1"}, 400, "malformed", "nodes"
    yield "a graph without a format", {"nodes": [X, out("%x")]}, (400, 201), None, ""
    yield "an unknown format", {"format": "fx/9", "nodes": []}, 400, "malformed", "fx/9"
    yield "a format that is a number", {"format": 1, "nodes": []}, 400, None, ""
    yield "nodes that are an object", {"format": "fx/1", "nodes": {}}, 400, None, ""
    yield "no node at all", fx(), 400, "lint", "output"
    yield "no output", fx(X, relu), 400, "lint", "output"
    yield "two outputs", fx(X, out("%x"), {**out("%x"), "name": "output_1"}), 400, "lint", "output"
    yield "a node behind the output", fx(X, out("%x"), relu), 400, "lint", "output"
    yield ("an output without arguments", fx(X, {"op": "output", "name": "output", "target": "output"}), 400,
           None, "output")
    yield ("an output with two arguments", fx(X, {"op": "output", "name": "output", "target": "output",
                                                  "args": ["%x", "%x"]}), 400, None, "output")
    yield "an output of another output", fx(X, out("%output")), 400, "lint", "output"
    yield ("a forward reference", fx(X, call("torch.relu", "%m"), call("torch.relu", "%x", name="m"), out()),
           400, "lint", "n")
    yield "a self reference", fx(X, call("torch.relu", "%n"), out()), 400, "lint", "n"
    yield ("a cycle", fx(X, call("torch.relu", "%m"), call("torch.relu", "%n", name="m"), out("%m")), 400,
           "lint", "n")
    yield "a reference to nothing", fx(X, call("torch.relu", "%nothing"), out()), 400, "lint", "nothing"
    yield "a reference without a name", fx(X, call("torch.relu", "%"), out()), 400, None, "n"
    yield "a name twice", fx(X, relu, relu, out()), 400, "lint", "n"
    yield ("a name that is no identifier", fx(X, call("torch.relu", "%x", name="a b"), out("%a b")),
           (400, 201), None, "a")
    yield "a name that is empty", fx(X, call("torch.relu", "%x", name=""), out("%")), 400, None, ""
    yield "a name that is a number", fx(X, {**relu, "name": 3}, out()), 400, None, "name"
    yield ("a name of 100,000 letters", fx(X, call("torch.relu", "%x", name="a" * 100000),
                                           out("%" + "a" * 100000)), (201, 400, 413), None, "")
    yield "an unknown op", fx(X, {**relu, "op": "call_nothing"}, out()), 400, None, "call_nothing"
    yield "an op that is a number", fx(X, {**relu, "op": 3}, out()), 400, None, "op"
    yield "no op", fx(X, {"name": "n", "target": "torch.relu", "args": ["%x"]}, out()), 400, None, "op"
    yield "no target", fx(X, {"op": "call_function", "name": "n", "args": ["%x"]}, out()), 400, None, "target"
    yield "a target that is a number", fx(X, {**relu, "target": 3}, out()), 400, None, "target"
    yield "an empty target", fx(X, {**relu, "target": ""}, out()), (400, 422), None, "n"
    yield "arguments that are an object", fx(X, {**relu, "args": {}}, out()), 400, None, "args"
    yield "arguments that are a text", fx(X, {**relu, "args": "%x"}, out()), 400, None, "args"
    yield "keywords that are a list", fx(X, {**relu, "kwargs": []}, out()), 400, None, "kwargs"
    yield "a node that is a list", fx(X, [], out("%x")), 400, None, ""
    yield "a node that is null", fx(X, None, out("%x")), 400, None, ""
    yield "an unknown member of a node", fx(X, {**relu, "colour": 1}, out()), 400, None, "colour"
    yield "an unknown member of the graph", fx(X, out("%x"), colour=1), 400, None, "colour"
    yield "a placeholder twice", fx(X, {**X, "name": "x_1"}, out("%x")), (400, 201), None, "x"
    yield ("a placeholder behind a call", fx(X, relu, {**X, "name": "y", "target": "y"}, out("%y")),
           (400, 201), None, "y")
    yield "a placeholder with an argument too many", fx({**X, "args": [1, 2]}, out("%x")), 400, None, "x"
    yield ("a placeholder without default behind one with",
           fx({**X, "args": [1]}, {**X, "name": "y", "target": "y"}, out("%y")), (400, 201), None, "y")
    yield "an unknown $", fx(X, call("torch.relu", {"$nothing": 1}), out()), 400, None, "$nothing"
    yield ("a $ beside another member", fx(X, call("torch.relu", {"$tuple": [], "b": 1}), out()),
           400, None, "n")
    yield "a $tuple that is no list", fx(X, call("torch.relu", {"$tuple": 3}), out()), 400, None, "n"
    yield ("a $slice of two", fx(X, call("operator.getitem", "%x", {"$slice": [1, 2]}), out()), 400,
           None, "$slice")
    yield "an unknown $dtype", fx(X, call("torch.relu", {"$dtype": "float33"}), out()), 400, None, "float33"
    yield "an unknown $device", fx(X, call("torch.relu", {"$device": 3}), out()), 400, None, "n"
    yield ("an unknown $memory_format", fx(X, call("torch.relu", {"$memory_format": "diagonal"}), out()), 400,
           None, "diagonal")
    yield "a wrong $float", fx(X, call("torch.relu", {"$float": "big"}), out()), 400, None, "n"
    yield "a wrong $complex", fx(X, call("torch.relu", {"$complex": [1]}), out()), 400, None, "n"
    deep = "%x"
    for _ in range(33):
        deep = [deep]
    yield "arguments nested 33 deep", fx(X, call("torch.stack", deep), out()), (400, 413), None, "n"
    yield "meta that is a list", fx({**X, "meta": []}, out("%x")), 400, None, "meta"
    yield "an unknown dtype in meta", fx({**X, "meta": {"dtype": "f33"}}, out("%x")), 400, None, "f33"
    yield ("a negative size in meta", fx({**X, "meta": {"dtype": "float32", "shape": [-1]}}, out("%x")), 400,
           None, "negative")
    yield ("a size in meta that is no expression",
           fx({**X, "meta": {"dtype": "float32", "shape": ["N +"]}}, out("%x")), 400, None, "N +")
    yield ("a size in meta of 100,000 parentheses",
           fx({**X, "meta": {"dtype": "float32", "shape": ["(" * 100000 + "N" + ")" * 100000]}}, out("%x")),
           400, None, "")
    yield ("meta of rank 9", fx({**X, "meta": {"dtype": "float32", "shape": [1] * 9}}, out("%x")),
           (400, 413), None, "8")
    yield "state that is a list", fx(X, out("%x"), state=[]), 400, None, "state"
    w = {"op": "get_attr", "name": "n", "target": "w"}
    yield ("state without data", fx(w, out(), state={"w": {"dtype": "float32", "shape": [1]}}),
           (400, 422), None, "w")
    yield ("state of another size",
           fx(X, out("%x"), state={"w": {"dtype": "float32", "shape": [2], "data": [1]}}), 400, None, "w")
    yield "state that is a number", fx(w, out(), state={"w": 3}), (201, 400), None, "w"
    yield "state tied to nothing", fx(w, out(), state={"w": {"same_as": "v"}}), (400, 422), None, "w"
    yield "state tied to itself", fx(w, out(), state={"w": {"same_as": "w"}}), 400, None, "w"
    yield ("state tied in a circle", fx(w, out(), state={"w": {"same_as": "v"}, "v": {"same_as": "w"}}),
           400, None, "w")
    yield "modules that are a list", fx(X, out("%x"), modules=[]), 400, None, "modules"
    yield "a module that is a text", fx(X, out("%x"), modules={"m": "torch.nn.ReLU"}), 400, None, "m"
    yield "a module without a type", fx(X, out("%x"), modules={"m": {}}), 400, None, "m"
    yield ("a module path with two points",
           fx(X, call("m..a", "%x", op="call_module"), out(), modules={"m..a": {"type": "torch.nn.ReLU"}}),
           (400, 201), None, "m")
    yield ("an empty module path", fx(X, call("", "%x", op="call_module"), out(),
                                      modules={"": {"type": "torch.nn.ReLU"}}), (400, 201), None, "")


def call_rows():
    yield ("an unknown function", fx(X, call("torch.rleu", "%x"), out()), 422, "unsupported_operators",
           "torch.rleu")
    yield ("an unknown method", fx(X, call("rleu", "%x", op="call_method"), out()), 422,
           "unsupported_operators", "rleu")
    yield ("an unknown overload", fx(X, call("torch.ops.aten.relu.nothing", "%x"), out()), 422,
           "unsupported_operators", "aten.relu.nothing")
    yield ("an operator of another library", fx(X, call("torch.ops.mylib.op.default", "%x"), out()), 422,
           "unsupported_operators", "mylib")
    yield ("Python that is no operator", fx(X, call("os.system", "ls"), out()), 422, "unsupported_operators",
           "os.system")
    yield ("too many arguments", fx(X, call("torch.relu", "%x", 1, 2), out()), 422,
           "unsupported_operators", "n")
    yield "too few arguments", fx(X, call("torch.relu"), out()), 422, "unsupported_operators", "n"
    yield ("an unknown keyword", fx(X, call("torch.relu", "%x", inplaceness=True), out()), 422,
           "unsupported_operators", "n")
    yield ("an argument given twice", fx(X, call("torch.relu", "%x", input="%x"), out()), 422,
           "unsupported_operators", "n")
    yield ("a text for a number", fx(X, call("torch.softmax", "%x", "one"), out()), 422,
           "unsupported_operators", "n")
    yield ("a list for a number", fx(X, call("torch.softmax", "%x", [1]), out()), 422,
           "unsupported_operators", "n")
    yield "null for a tensor", fx(X, call("torch.relu", None), out()), 422, "unsupported_operators", "n"
    yield ("a missing attribute", fx({"op": "get_attr", "name": "n", "target": "w"}, out()),
           (400, 422), None, "w")
    yield ("an attribute below a tensor", fx({"op": "get_attr", "name": "n", "target": "w.data.x"}, out(),
                                             state={"w": {"dtype": "float32", "shape": [1], "data": [1]}}),
           (400, 422), None, "w.data")
    yield ("an attribute with arguments",
           fx({"op": "get_attr", "name": "n", "target": "w", "args": [1]}, out(),
              state={"w": {"dtype": "float32", "shape": [1], "data": [1]}}), (201, 400), None, "")
    yield ("a module that is called and missing", fx(X, call("m", "%x", op="call_module"), out()), 400,
           "lint", "m")
    yield ("a module of an unknown class",
           fx(X, call("m", "%x", op="call_module"), out(), modules={"m": {"type": "my.Layer"}}), 422,
           "unsupported_operators", "my.Layer")


def linear(config, **state):
    shapes = {"weight": [1, 2], "bias": [1], **state}
    return fx(X, call("m", "%x", op="call_module"),
              out(), modules={"m": {"type": "torch.nn.Linear", "config": config}},
              state={f"m.{name}": {"dtype": "float32", "shape": shape,
                                   "data": [0] * max(1, abs(shape[0] * (shape[1] if len(shape) > 1 else 1)))}
                     for name, shape in shapes.items() if shape is not None})


def conv(**config):
    return fx(X, call("m", "%x", op="call_module"), out(),
              modules={"m": {"type": "torch.nn.Conv2d",
                             "config": {"in_channels": 1, "out_channels": 1, "kernel_size": 1, **config}}},
              state={"m.weight": {"dtype": "float32", "shape": [1, 1, 1, 1], "data": [1]},
                     "m.bias": {"dtype": "float32", "shape": [1], "data": [0]}})


def module_rows():
    good = {"in_features": 2, "out_features": 1}
    yield "a configuration that is a list", linear([]), 400, None, "config"
    yield "a missing key", linear({"in_features": 2}), (400, 422), None, "out_features"
    yield "an unknown key", linear({**good, "depth": 2}), 422, "unknown_config", "depth"
    yield "a text for a size", linear({**good, "in_features": "2"}), (400, 422), None, "in_features"
    yield "a fraction for a size", linear({**good, "in_features": 1.5}), (400, 422), None, "in_features"
    yield "a negative size", linear({**good, "in_features": -2}), (400, 422), None, ""
    yield "a size of 2^62", linear({**good, "in_features": 1 << 62}), (400, 422), None, "weight"
    yield "a weight of another shape", linear(good, weight=[2, 2]), (400, 422), None, "weight"
    yield "a missing weight", linear(good, weight=None), 422, "missing_state", "m.weight"
    yield "a missing bias", linear(good, bias=None), 422, "missing_state", "m.bias"
    yield "a number for a bool", linear({**good, "bias": 3}), (400, 422), None, "bias"


def big_rows():
    many = [X] + [call("torch.relu", f"%n{i - 1}" if i else "%x", name=f"n{i}") for i in range(100000)]
    yield "100,002 nodes", fx(*many, out("%n99999")), 413, "too_large", "100"
    yield "99,002 nodes in a row", fx(*many[:99001], out("%n98999")), 201, None, '"nodes": 99002'
    yield "a list of 90,000 references", fx(X, call("torch.cat", ["%x"] * 90000), out()), 201, None, ""
    yield "90,000 outputs", fx(X, out(["%x"] * 90000)), 201, None, ""
    yield "a child graph in itself 20 times", child(20), (400, 413), None, ""
    yield ("200,000 keys of state",
           fx(X, out("%x"), state={f"w{i}": {"same_as": f"w{i + 1}"} for i in range(100001)}),
           (400, 413), None, "")


def child(depth):
    graph = fx(X, out("%x"))
    for _ in range(depth):
        graph = fx(X, call("m", "%x", op="call_module"), out(),
                   modules={"m": {"type": "torch.fx.GraphModule", "graph": graph}})
    return graph


def run_rows():
    for op, options in (("upsample_nearest2d", ()), ("_upsample_nearest_exact2d", ()),
                        ("upsample_bilinear2d", (False,)), ("upsample_bicubic2d", (False,))):
        # positions far outside of the input
        for scale in (1e-30, 1e-300, 1e300, {"$float": "inf"}, {"$float": "nan"}):
            yield (f"{op} with a scale of {scale}",
                   fx(X, call(f"torch.ops.aten.{op}.default", "%x", [5, 5], *options, scale, scale), out()),
                   {"x": [[[[1.5, 2], [3, 4]]]]}, 200, None, "outputs")
    image = [[[[1.0, 2, 3, 4]] * 4]]
    # steps of dimensions with one place, and layers, whose products with others overflow
    yield ("im2col with a stride of 2^62",
           fx(X, call("torch.ops.aten.im2col.default", "%x", [1, 1], [1 << 62, 1], [0, 0], [4, 1 << 62]),
              out()),
           {"x": image}, 200, None, "outputs")
    yield ("2^62 layers in two directions",
           fx(X, call("torch.ops.aten.gru.input", "%x", "%x", ["%x"] * 4, True, 1 << 62, 0.0, False, True,
                      False), out()), {"x": image[0]}, 400, None, "64 layers")
    kernel = [[[[1.0]]]]
    huge = 1 << 31
    for name, config in (("a stride of 0 in a module", {"stride": 0}),
                         ("a negative padding in a module", {"padding": -1}),
                         ("three strides in two dimensions", {"stride": [1, 1, 1]}),
                         ("no groups in a module", {"groups": 0}),
                         ("groups that do not divide", {"groups": 3}),
                         ("an unknown padding mode", {"padding_mode": "mirror"}),
                         ("an unknown padding", {"padding": "most"}),
                         ("a kernel that the weight is not", {"kernel_size": 2}),
                         ("a negative stride in a module", {"stride": -1}),
                         ("a dilation of 0 in a module", {"dilation": 0})):
        yield name, conv(**config), {"x": image}, (400, 422), None, ""
    for name, value in (("0", 0), ("negative", -1), ("2^31", huge), ("2^62", 1 << 62)):
        yield (f"a stride of {name}", fx(X, {**X, "name": "w", "target": "w"},
                                         call("torch.nn.functional.conv2d", "%x", "%w", None, value), out()),
               {"x": image, "w": kernel}, (200, 400) if value > 0 else 400, None, "")
        yield (f"a padding of {name}",
               fx(X, {**X, "name": "w", "target": "w"},
                  call("torch.nn.functional.conv2d", "%x", "%w", None, 1, value), out()),
               {"x": image, "w": kernel}, 200 if value == 0 else (400, 413), None, "")
        yield (f"a dilation of {name}",
               fx(X, {**X, "name": "w", "target": "w"},
                  call("torch.nn.functional.conv2d", "%x", "%w", None, 1, 0, value), out()),
               {"x": image, "w": kernel}, (200, 400) if value > 0 else 400, None, "")
        yield (f"groups of {name}", fx(X, {**X, "name": "w", "target": "w"},
                                       call("torch.nn.functional.conv2d", "%x", "%w", None, 1, 0, 1, value),
                                       out()), {"x": image, "w": kernel}, 400, None, "")
        yield (f"a pooling window of {name}",
               fx(X, call("torch.nn.functional.max_pool2d", "%x", value), out()), {"x": image}, 400, None, "")
        yield (f"an average window of {name}",
               fx(X, call("torch.nn.functional.avg_pool2d", "%x", value), out()), {"x": image}, 400, None, "")
        yield (f"an adaptive size of {name}",
               fx(X, call("torch.nn.functional.adaptive_avg_pool2d", "%x", value), out()), {"x": image},
               (200, 400, 413) if value >= 0 else 400, None, "")
        yield (f"a repeat of {name}", fx(X, call("repeat", "%x", value, op="call_method"), out()),
               {"x": [1.0]}, (200, 400, 413), None, "")
        yield (f"an expansion to {name}", fx(X, call("expand", "%x", value, op="call_method"), out()),
               {"x": [1.0]}, (200, 400, 413), None, "")
        yield (f"zeros of {name}", fx(X, call("torch.zeros", [value, value]), out()), {"x": [1.0]},
               200 if value == 0 else (400, 413), None, "")
        yield (f"a range to {name}", fx(X, call("torch.arange", value), out()), {"x": [1.0]},
               (200, 400, 413), None, "")
        yield (f"padding by {name}", fx(X, call("torch.nn.functional.pad", "%x", [value, value]), out()),
               {"x": [1.0, 2.0]}, (200, 400, 413), None, "")
    yield ("a kernel larger than the image",
           fx(X, {**X, "name": "w", "target": "w"}, call("torch.nn.functional.conv2d", "%x", "%w"), out()),
           {"x": [[[[1.0]]]], "w": [[[[1.0, 2], [3, 4]]]]}, 400, "shape_mismatch",
           "Kernel size can't be greater than actual input size")
    yield ("a pooling padding above half the window",
           fx(X, call("torch.nn.functional.max_pool2d", "%x", 2, 2, 2), out()), {"x": image}, 400,
           None, "pad")
    yield ("-1 twice in a reshape", fx(X, call("torch.reshape", "%x", [-1, -1]), out()), {"x": [1.0, 2]}, 400,
           None, "one dimension can be inferred")
    yield ("a reshape that does not fit", fx(X, call("torch.reshape", "%x", [3]), out()), {"x": [1.0, 2]},
           400, None, "invalid for input of size 2")
    yield ("a reshape to negative sizes", fx(X, call("torch.reshape", "%x", [-2]), out()), {"x": [1.0, 2]},
           400, None, "n")
    yield ("a reshape that wraps", fx(X, call("torch.reshape", "%x", [1 << 62, 4]), out()), {"x": [1.0, 2]},
           400, None, "n")
    yield ("an ambiguous reshape", fx(X, call("torch.reshape", "%x", [-1, 0]), out()), {"x": []},
           400, None, "n")
    yield ("a dimension out of range", fx(X, call("torch.softmax", "%x", 2), out()), {"x": [1.0, 2]}, 400,
           None, "Dimension out of range")
    yield ("a dimension of 2^62", fx(X, call("torch.sum", "%x", 1 << 62), out()), {"x": [1.0, 2]},
           400, None, "n")
    yield ("a permutation with a dimension twice", fx(X, call("torch.permute", "%x", [0, 0]), out()),
           {"x": [[1.0]]}, 400, None, "n")
    yield ("a permutation of another rank", fx(X, call("torch.permute", "%x", [0]), out()), {"x": [[1.0]]},
           400, None, "n")
    yield ("an index out of range", fx(X, call("operator.getitem", "%x", 7), out()), {"x": [1.0, 2]}, 400,
           "index_out_of_range", "index 7 is out of bounds")
    yield ("an index of 2^62", fx(X, call("operator.getitem", "%x", 1 << 62), out()), {"x": [1.0, 2]}, 400,
           "index_out_of_range", "n")
    yield ("a slice step of 0", fx(X, call("operator.getitem", "%x", {"$slice": [None, None, 0]}), out()),
           {"x": [1.0, 2]}, 400, None, "step must be greater than zero")
    yield ("a slice beyond the end", fx(X, call("operator.getitem", "%x", {"$slice": [5, 1 << 62, None]}),
                                        out()), {"x": [1.0, 2]}, 200, None, '"shape": [0]')
    yield ("a select out of range", fx(X, call("torch.select", "%x", 0, -3), out()), {"x": [1.0, 2]}, 400,
           "index_out_of_range", "select(): index -3 out of range")
    yield ("a narrow out of range", fx(X, call("torch.narrow", "%x", 0, 1, 5), out()), {"x": [1.0, 2]},
           (400, 422), None, "n")
    yield "a split of 0", fx(X, call("torch.split", "%x", 0), out()), {"x": [1.0, 2]}, (400, 422), None, "n"
    yield "chunks of 0", fx(X, call("torch.chunk", "%x", 0), out()), {"x": [1.0, 2]}, (400, 422), None, "n"
    yield ("a squeeze out of range", fx(X, call("torch.squeeze", "%x", 4), out()), {"x": [1.0, 2]}, 400, None,
           "Dimension out of range")
    yield "a cat of nothing", fx(X, call("torch.cat", []), out()), {"x": [1.0]}, (400, 422), None, "n"
    yield ("a cat of other shapes", fx(X, call("torch.cat", ["%x", [1]]), out()), {"x": [1.0]},
           (400, 422), None, "n")
    yield "a stack of nothing", fx(X, call("torch.stack", []), out()), {"x": [1.0]}, (400, 422), None, "n"
    yield ("matrices that do not fit", fx(X, call("torch.matmul", "%x", "%x"), out()), {"x": [[1.0, 2]]}, 400,
           "shape_mismatch", "(1x2 and 1x2)")
    yield "a product of a scalar", fx(X, call("torch.matmul", "%x", "%x"), out()), {"x": 1.0}, 400, None, "n"
    yield ("a convolution of a vector", fx(X, call("torch.nn.functional.conv2d", "%x", "%x"), out()),
           {"x": [1.0]}, 400, None, "n")
    yield ("a normalised shape that does not fit", fx(X, call("torch.nn.functional.layer_norm", "%x", [3]),
                                                      out()), {"x": [1.0, 2]}, 400, None, "normalized_shape")
    yield ("a mean of nothing", fx(X, call("torch.mean", "%x"), out()),
           {"x": {"dtype": "float32", "shape": [0], "data": []}}, 200, None, '"NaN"')
    yield ("a maximum of nothing", fx(X, call("torch.max", "%x"), out()),
           {"x": {"dtype": "float32", "shape": [0], "data": []}}, 400, None, "n")
    yield "a mean of integers", fx(X, call("torch.mean", "%x"), out()), {"x": [1, 2]}, 400, None, "n"
    yield ("an item of many", fx(X, call("item", "%x", op="call_method"), out()), {"x": [1.0, 2]},
           (400, 422), None, "n")
    yield ("a method of a number", fx(X, call("size", "%x", 0, op="call_method", name="s"),
                                      call("relu", "%s", op="call_method"), out()), {"x": [1.0, 2]},
           (400, 422), None, "n")
    yield ("an item of a number",
           fx(X, call("size", "%x", 0, op="call_method", name="s"), call("operator.getitem", "%s", 0), out()),
           {"x": [1.0, 2]}, (400, 422), None, "n")
    yield "a division by zero", fx(X, call("operator.floordiv", 1, 0), out()), {"x": [1.0]}, 400, None, "zero"
    yield ("a power without end", fx(X, call("operator.pow", 10, 1 << 40), out()), {"x": [1.0]},
           (200, 400, 422), None, "")
    yield ("a shift without end", fx(X, call("operator.lshift", 1, 1 << 40), out()), {"x": [1.0]},
           (200, 400, 422), None, "")
    yield ("an addition beyond int64", fx(X, call("operator.add", (1 << 63) - 1, 1), out()), {"x": [1.0]},
           (200, 400, 422), None, "")
    yield "an output that is a slice", fx(X, out({"$slice": [1, 2, 3]})), {"x": [1.0]}, (200, 400), None, ""
    yield ("an output that is a dtype", fx(X, out({"$dtype": "float32"})), {"x": [1.0]}, 200, None,
           "torch.float32")
    yield ("dead nodes are run and harmless",
           fx(X, call("torch.neg", "%x", name="dead"), call("torch.relu", "%x"), out()), {"x": [-1.0, 2]},
           200, None, "[0.0, 2.0]")
    yield ("a dead node that fails",
           fx(X, call("operator.getitem", "%x", 9, name="dead"), call("torch.relu", "%x"), out()),
           {"x": [-1.0, 2]}, 400, "index_out_of_range", "dead")
    yield ("an in-place write to an expanded tensor",
           fx(X, call("expand", "%x", 3, op="call_method", name="e"), call("add_", "%e", 1, op="call_method"),
              out()), {"x": [1.0]}, 400, "run_failed", "more than one element of the written-to tensor")
    doubled = [X] + [call("torch.cat", [f"%n{i - 1}" if i else "%x"] * 8, name=f"n{i}") for i in range(20)]
    yield ("a tensor that grows eightfold 20 times", fx(*doubled, out("%n19")), {"x": [1.0]}, 413,
           "too_large", "n")


# ---- mutants -----------------------------------------------------------------------------------
OTHER = (None, True, 3, -1, 1.5, "text", "%x", [], {}, [None], {"$tuple": ["%x"]})


def documents():
    """(name, document) of real graphs; tensor data is cut to a few numbers so that the fields
    around it count."""
    yield "export", malformed_signatures.EXPORT
    names = ["relu_neg_abs", "neg_sigmoid_methods", "linear_module", "nested_conv"]
    for name in names:
        with open(os.path.join(MODELS, name + ".fx.json"), encoding="utf-8") as file:
            yield name, json.load(file)
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "print", "*.fx.json"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if len(text) < 6000:
            yield os.path.basename(path)[:-8], json.loads(text)


def paths_of(value, path=()):
    """The places of all fields; of a tensor's data only the list itself and its first number."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in rows:
        if isinstance(value,
                      list) and len(value) > 16 and key > 0 and not isinstance(item, (dict, list, str)):
            continue
        yield path + (key,)
        yield from paths_of(item, path + (key,))


def mutants_of(document):
    for path in paths_of(document):
        for other in (OTHER, ()):
            for value in other or ("",):
                mutant = copy.deepcopy(document)
                place = mutant
                for key in path[:-1]:
                    place = place[key]
                if other:
                    if type(place[path[-1]]) is type(value) and not isinstance(value, (str, int, float)):
                        continue
                    place[path[-1]] = value
                else:
                    del place[path[-1]]
                yield mutant
