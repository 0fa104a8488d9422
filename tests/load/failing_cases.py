# SPDX-License-Identifier: Apache-2.0
"""Requests that fail at each step of their route, for failing.py: (route's row in api/routes.def,
what fails, status, method, target, body, headers).

`graphs()` are uploaded first. The steps of a run: envelope, inputs, bind, program, the run itself,
its reply. Those of an upload: recognise, decode, check, put.
"""
import gzip
import io
import json
import os
import struct
import zipfile

from parts import call, graph
from service import ROOT, Tensor, model_file, multipart, tensor_of, write_npy, write_safetensors, write_zip

DECLARED = {"dtype": "float32", "shape": ["N", 3]}


def declared(*nodes, meta=None):
    rows = json.loads(graph(*nodes))
    rows["nodes"][0]["meta"] = meta or DECLARED
    return json.dumps(rows).encode()


def edited_archive(name, member, edit):
    """A .pt2 of tests/models with one member changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model_file(name))) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.namelist():
            content = source.read(entry)
            target.writestr(entry, edit(content) if entry.endswith(member) else content)
    return out.getvalue()


def guarded(content):
    """An export that fits no small size: each bind of a tried size fails."""
    model = json.loads(content)
    model["guards_code"] = ["L['input'].size()[0] >= 1000000"]
    return json.dumps(model).encode()


def without_a_value(content):
    """A graph whose last node reads a value that nothing makes."""
    return content.replace(b'"outputs": [{"as_tensor": {"name": "',
                           b'"outputs": [{"as_tensor": {"name": "no_', 1)


GUARDED = edited_archive("dev_linear.pt2", "models/model.json", guarded)
ITEM = call("n", "torch.sum", "%x"), {"op": "call_method", "name": "item", "target": "item", "args": ["%n"]}


def form(*parts):
    body, content_type = multipart(list(parts))
    return body, (("Content-Type", content_type),)


IMAGE, IMAGE_TYPE = form(("graph", model_file("digits.pt2")),
                         ("image", b'{"size": 8, "crop": 8, "colour": "grey"}'))


def graphs():
    """{name: (body, headers)} of what the cases run."""
    plain = {
        "relu": graph(call("relu", "torch.relu", "%x")),
        "declared": declared(call("relu", "torch.relu", "%x")),
        "guarded": GUARDED,
        "never": declared({"op": "call_method", "name": "view", "target": "view", "args": ["%x", 7, 5]}),
        "digits": model_file("digits.pt2"),
        "add": graph(call("pre", "torch.relu", "%x"), call("add", "torch.add", "%pre", "%y"),
                     inputs=("x", "y")),
        "index": graph(call("w", "torch.ones", [5]), call("twice", "torch.add", "%w", "%w"),
                       {"op": "call_method", "name": "take", "target": "take", "args": ["%twice", "%x"]}),
        "dynamic": graph(*ITEM, call("f", "torch.full", [3], "%item"),
                         call("v", "torch.reshape", "%f", [2, 2])),
        "loop": graph(call("a", "torch.ones", [2, 3]), call("b", "torch.cat", ["%a", "%x"]),
                      call("c", "torch.einsum", "ij,jk->ik", "%b", "%b")),
        "pair": graph({"op": "call_method", "name": "split", "target": "split", "args": ["%x", 1]}),
        "wide": graph({"op": "call_method", "name": "wide", "target": "expand", "args": ["%x", 3000, 3000]},
                      call("out", "torch.add", "%wide", 1)),
        "slow": graph(call("m", "torch.ones", [600, 600]), call("p", "torch.matmul", "%m", "%m"),
                      call("q", "torch.matmul", "%p", "%m"), call("r", "torch.matmul", "%q", "%m"),
                      call("s", "torch.sum", "%r"), call("o", "torch.add", "%x", "%s")),
        "child": json.dumps({"format": "fx/1", "nodes": [
            {"op": "placeholder", "name": "x", "target": "x"},
            {"op": "call_module", "name": "sub", "target": "sub", "args": ["%x"]},
            {"op": "output", "name": "output", "target": "output", "args": ["%sub"]}],
            "modules": {"sub": {"type": "torch.fx.GraphModule",
                                "graph": json.loads(graph(call("mm", "torch.mm", "%x", "%x")))}}}).encode(),
        "complex": json.dumps({"format": "fx/1", "nodes": [{"op": "get_attr", "name": "c", "target": "c"}, {
            "op": "output", "name": "output", "target": "output", "args": ["%c"]}], "state": {
                "c": {"dtype": "complex128", "shape": [1], "data": [[1, 2]]}}}).encode(),
    }
    return {"image": (IMAGE, IMAGE_TYPE), **{name: (body, ()) for name, body in plain.items()}}


def runs():
    """What can go wrong with a run: (what, status, graph, query, body, headers)."""
    ones = {"x": [[1.0] * 3] * 2}
    tensor = Tensor("float32", [2, 3], struct.pack("<6f", *range(6)))
    npz = write_zip("npz", [("x.npy", write_npy(tensor)), ("nope.npy", write_npy(tensor))])
    deflated = write_zip("deflated", [("x.npy", write_npy(tensor))])
    parts, typed = form(("x", write_npy(tensor)), ("x2", write_npy(tensor)))
    broken, broken_type = form(("x", write_npy(tensor)), ("request", b'{"mode": "eager", "nope": 1}'))
    seven = model_file("seven.png")
    with open(os.path.join(ROOT, "tests", "service", "images", "turned.jpg"), "rb") as file:
        turned = file.read()
    packed = gzip.compress(json.dumps({"inputs": ones}).encode())

    def inputs(value, **more):
        return json.dumps({"inputs": value, **more}).encode()
    rows = [
        ("an envelope that ends early", 400, "relu", "", inputs(ones)[:-9]),
        ("an unknown member behind the inputs", 400, "relu", "", inputs(ones, nope=1)),
        ("inputs of an unknown name behind a good one", 400, "add", "",
         inputs({"x": [1.0] * 2000, "z": [1.0]})),
        ("an input that is missing", 400, "add", "", inputs({"x": [1.0] * 2000})),
        ("a text among numbers", 400, "relu", "", inputs({"x": [1.0] * 2000 + ["a"]})),
        ("lists of two lengths", 400, "relu", "", inputs({"x": [[1.0] * 2000, [1.0]]})),
        ("base64 of the wrong length", 400, "relu", "",
         inputs({"x": {"dtype": "float32", "shape": [3], "b64": "AAAA"}})),
        ("data and b64", 400, "relu", "",
         inputs({"x": {"dtype": "float32", "shape": [1], "data": [1.0] * 2000, "b64": "AAAAAA=="}})),
        ("a shape that does not fit the data", 400, "relu", "",
         inputs({"x": {"dtype": "float32", "shape": [7], "data": [1.0] * 2000}})),
        ("an output that is no node", 400, "relu", "?outputs=relu,nope", inputs(ones)),
        ("an unknown mode", 400, "relu", "", inputs(ones, mode="fast")),
        ("a query parameter twice", 400, "relu", "?mode=eager&mode=eager", inputs(ones)),
        ("gzip that ends early", 400, "relu", "", packed[:-9], (("Content-Encoding", "gzip"),)),
        ("an .npy cut short", 400, "relu", "", write_npy(tensor)[:-5]),
        ("a PNG cut short", 400, "image", "", seven[:-30]),
        ("a PNG with a wrong sum", 400, "image", "", seven[:60] + b"\xff" + seven[61:]),
        ("a JPEG cut short", 400, "image", "", turned[:-100]),
        ("a JPEG without a table", 400, "image", "", turned.replace(b"\xff\xdb", b"\xff\xec", 1)),
        ("a PNG for a graph without settings", 400, "relu", "", seven),
        ("an .npz with a name too many", 400, "relu", "", npz),
        ("an .npz with a wrong sum", 400, "relu", "", deflated[:60] + b"\xff" + deflated[61:]),
        ("safetensors with a name too many", 400, "relu", "",
         write_safetensors({"x": tensor, "nope": tensor})),
        ("a form with a part too many", 400, "relu", "", parts, typed),
        ("a form whose request has an unknown member", 400, "relu", "", broken, broken_type),
        ("a shape that does not bind", 400, "declared", "", inputs({"x": [[1.0] * 4]})),
        ("a dtype that does not bind", 400, "declared", "",
         inputs({"x": {"dtype": "complex64", "shape": [1, 3], "b64": "AAAA" * 8}})),
        ("a guard that fails", 400, "guarded", "", inputs([[[1.0] * 10]])),
        ("a size out of its range", 400, "digits", "",
         inputs({"x": {"dtype": "float32", "shape": [65, 1, 8, 8], "data": [0.0] * 65 * 64}})),
        ("an operator that fails eagerly", 400, "add", "",
         inputs({"x": [1.0] * 2000, "y": [1.0] * 3}, mode="eager")),
        ("an operator that cannot be compiled", 400, "add", "",
         inputs({"x": [1.0] * 2000, "y": [1.0] * 3}, mode="compiled")),
        ("an index out of range, eagerly", 400, "index", "",
         inputs({"x": {"dtype": "int64", "shape": [1], "data": [9]}}, mode="eager")),
        ("an index out of range, in a program", 400, "index", "",
         inputs({"x": {"dtype": "int64", "shape": [1], "data": [9]}}, mode="compiled")),
        ("a failure in a program's eager tail", 400, "dynamic", "",
         inputs({"x": [1.0] * 3}, mode="compiled")),
        ("a failure behind a list of tensors", 400, "loop", "", inputs({"x": [[1.0] * 4]}, mode="eager")),
        ("a failure inside einsum", 400, "loop", "", inputs({"x": [[1.0] * 3] * 2}, mode="eager")),
        ("a failure in a child graph", 400, "child", "", inputs({"x": [[1.0] * 3]}, mode="eager")),
        ("a failure in a child graph, compiled", 400, "child", "",
         inputs({"x": [[1.0] * 3]}, mode="compiled")),
        ("a deadline", 504, "slow", "", inputs({"x": [1.0]}, mode="eager", deadline_ms=1)),
        ("two outputs as npy", 406, "pair", "?as=npy", inputs({"x": [1.0, 2.0]})),
        ("a reply over its limit", 413, "wide", "", inputs({"x": [1.0]})),
        ("a dtype safetensors lack", 406, "complex", "?as=safetensors", inputs([])),
    ]
    return [row if len(row) == 6 else row + ((),) for row in rows]


def uploads():
    """What can go wrong with an upload: (what, status, query, body, headers)."""
    tensor = tensor_of("float32", [1.0, 2.0])
    linear = graph({"op": "call_module", "name": "l", "target": "l", "args": ["%x"]})
    module = json.loads(linear)
    module["modules"] = {"l": {"type": "torch.nn.Linear", "config": {"in_features": 2, "out_features": 2}}}
    unknown = json.loads(linear)
    unknown["modules"] = {"l": {"type": "torch.nn.Linear",
                                "config": {"in_features": 2, "out_features": 2, "nope": 1}}}
    archive = model_file("digits.pt2")
    spare, spare_type = form(("graph", graph(call("y", "torch.relu", "%x"))),
                             ("weights", write_safetensors({"spare": tensor})))
    both = module | {"state": {"l.bias": {"dtype": "float32", "shape": [2], "data": [1, 2]}}}
    twice, twice_type = form(("graph", json.dumps(both).encode()),
                             ("weights", write_safetensors({"l.bias": tensor})))
    extra, extra_type = form(("graph", linear), ("nope", b"1"))
    bad, bad_type = form(("graph", json.dumps(module).encode()),
                         ("weights", write_safetensors({"l.bias": tensor})[:-1]))
    rows = [
        ("JSON that ends early", 400, "", linear[:-9]),
        ("a file that is nothing known", 415, "", b"\x00\x01\x02 no model"),
        ("an edge to no node", 400, "", graph(call("y", "torch.relu", "%nope"))),
        ("a node of an unknown kind behind good ones", 400, "",
         graph(call("y", "torch.relu", "%x"), {"op": "nope", "name": "z", "target": "t"})),
        ("an operator that is lacking", 422, "", graph(call("y", "torch.ops.aten.nope.default", "%x"))),
        ("arguments that fit no overload", 422, "", graph(call("y", "torch.relu", "%x", 1, 2, 3))),
        ("a module without its weights", 422, "", json.dumps(module).encode()),
        ("a configuration key that is unknown", 422, "", json.dumps(unknown).encode()),
        ("weights whose file is cut", 400, "", bad, bad_type),
        ("a weight that stands twice", 400, "", twice, twice_type),
        ("a form with a part too many", 400, "", extra, extra_type),
        ("an archive that is cut", 400, "", archive[:-100]),
        ("an archive with a wrong sum", 400, "", archive[:len(archive) // 2]
         + bytes([archive[len(archive) // 2] ^ 255]) + archive[len(archive) // 2 + 1:]),
        ("an archive whose graph reads what is not there", 400, "",
         edited_archive("digits.pt2", "models/model.json", without_a_value)),
        ("an archive without its weights", 400, "", write_zip("zip", [
            (entry, zipfile.ZipFile(io.BytesIO(archive)).read(entry))
            for entry in zipfile.ZipFile(io.BytesIO(archive)).namelist() if "weights/weight_" not in entry])),
        ("a model that the archive lacks", 400, "?model=nope", archive),
        ("a precondition behind the decoding", 412, "", graph(call("y", "torch.neg", "%x")),
         (("If-Match", '"nope"'),)),
        ("weights that no node reads", 0, "", spare, spare_type),
    ]
    return [row if len(row) == 5 else row + ((),) for row in rows]


def cases():
    """(route, what, status, method, target, body, headers); status 0: any."""
    hidden = "0" * 64
    out = []
    for what, status, name, query, body, headers in runs():
        out.append(("RUN", what, status, "POST", f"/v1/graphs/{name}/run{query}", body, headers))
    for what, status, query, body, headers in uploads():
        out.append(("GRAPH_PUT", what, status, "PUT", f"/v1/graphs/upload{query}", body, headers))
    inline = {"graph": json.loads(graph(call("a", "torch.relu", "%x"), call("y", "torch.mm", "%a", "%a"))),
              "inputs": {"x": [[1.0, 2.0, 3.0]]}}
    parts, typed = form(("graph", graph(call("y", "torch.neg", "%x"))), ("x", b"\x93NUMPY\x01\x00"))
    out += [
        ("GRAPH_POST", "an operator that is lacking", 422, "POST", "/v1/graphs",
         graph(call("y", "torch.nope", "%x")), ()),
        ("GRAPH_PUT", "another content's id as its name", 409, "PUT", f"/v1/graphs/{hidden}",
         graph(call("y", "torch.sin", "%x")), ()),
        ("RUN_INLINE", "a run that fails", 400, "POST", "/v1/run", json.dumps(inline).encode(), ()),
        ("RUN_INLINE", "a graph that is not well", 422, "POST", "/v1/run",
         json.dumps(inline).replace("torch.mm", "torch.nope").encode(), ()),
        ("RUN_INLINE", "no inputs", 400, "POST", "/v1/run", json.dumps({"graph": inline["graph"]}).encode(),
         ()),
        ("RUN_INLINE", "a form with a bad array", 400, "POST", "/v1/run", parts, typed),
        ("VERSION_RUN", "an operator that fails", 400, "POST", "/v1/graphs/add/versions/1/run",
         b'{"inputs": {"x": [1, 2], "y": [1, 2, 3]}}', ()),
        ("VERSION_RUN", "no such version", 404, "POST", "/v1/graphs/add/versions/9/run",
         b'{"inputs": {"x": [1, 2], "y": [1, 2, 3]}}', ()),
        ("EXAMPLE", "each tried size fails to bind", 409, "GET", "/v1/graphs/guarded/example", b"", ()),
        ("EXAMPLE", "each tried run fails", 409, "GET", "/v1/graphs/never/example", b"", ()),
        ("EXAMPLE", "inputs that are not declared", 409, "GET", "/v1/graphs/child/example", b"", ()),
        ("VERSION_EXAMPLE", "each tried size fails to bind", 409, "GET",
         "/v1/graphs/guarded/versions/1/example", b"", ()),
        ("WEIGHTS", "a dtype safetensors lack", 406, "GET", "/v1/graphs/complex/weights", b"", ()),
        ("WEIGHTS", "an unknown form", 400, "GET", "/v1/graphs/digits/weights?as=json", b"", ()),
        ("VERSION_WEIGHTS", "a dtype safetensors lack", 406, "GET", "/v1/graphs/complex/versions/1/weights",
         b"", ()),
        ("TEXT", "an unknown form", 400, "GET", "/v1/graphs/digits/text?form=nope", b"", ()),
        ("TEXT", "a program that is not there", 404, "GET",
         f"/v1/graphs/digits/text?stage=program&program={hidden}", b"", ()),
        ("VERSION_TEXT", "an unknown stage", 400, "GET", "/v1/graphs/digits/versions/1/text?stage=nope", b"",
         ()),
        ("PROFILE_STATS", "an unknown grouping", 400, "GET", "/v1/graphs/add/profile?by=nope", b"", ()),
        ("VERSION_PROFILE_STATS", "an unknown form", 400, "GET",
         "/v1/graphs/add/versions/1/profile?form=nope", b"", ()),
        ("PROFILE_GET", "a run that is not there", 404, "GET", "/v1/profiles/none", b"", ()),
        ("PROFILE_LIST", "a limit that is no number", 400, "GET", "/v1/profiles?limit=nope", b"", ()),
        ("GRAPH_LIST", "a limit that is no number", 400, "GET", "/v1/graphs?limit=nope", b"", ()),
        ("GRAPH_GET", "no such graph", 404, "GET", "/v1/graphs/none", b"", ()),
        ("VERSION_GET", "no such version", 404, "GET", "/v1/graphs/digits/versions/7", b"", ()),
        ("GRAPH_PATCH", "no such version", 404, "PATCH", "/v1/graphs/digits", b'{"default_version": 7}', ()),
        ("GRAPH_PATCH", "an alias of no version", 404, "PATCH", "/v1/graphs/digits",
         b'{"aliases": {"prod": 7}}', ()),
        ("VERSION_RUN", "no such alias", 404, "POST", "/v1/graphs/add/versions/nobody/run",
         b'{"inputs": {"x": [1, 2], "y": [1, 2, 3]}}', ()),
        ("VERSION_LIST", "no such graph", 404, "GET", "/v1/graphs/none/versions", b"", ()),
        ("GRAPH_PATCH", "an unknown member", 400, "PATCH", "/v1/graphs/digits", b'{"nope": 7}', ()),
        ("GRAPH_PATCH", "JSON that ends early", 400, "PATCH", "/v1/graphs/digits", b'{"default_version": ',
         ()),
        ("GRAPH_DELETE", "no such graph", 404, "DELETE", "/v1/graphs/none", b"", ()),
        ("GRAPH_DELETE", "a precondition", 412, "DELETE", "/v1/graphs/digits", b"",
         (("If-Match", '"nope"'),)),
        ("VERSION_DELETE", "no such version", 404, "DELETE", "/v1/graphs/digits/versions/7", b"", ()),
    ]
    return out
