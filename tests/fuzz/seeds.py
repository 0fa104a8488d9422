# SPDX-License-Identifier: Apache-2.0
"""First inputs of the fuzz targets, from files of this repository: seeds.py FOLDER writes
FOLDER/<target>/<name>. What fuzzing found later lies in corpus/ beside them."""
import glob
import io
import json
import os
import struct
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from roundtrip import EXPORT, with_child

MODELS = os.path.join(ROOT, "tests", "models")
MARK = b"\n---\n"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def numbers():
    texts = ["0", "-0", "1", "-1.5", "3.14159265358979323846", "1e22", "1e23", "9007199254740993", "5e-324",
             "2.4703282292062327e-324", "1.7976931348623157e308", "1e400", "-1e-400", "9223372036854775807",
             "-9223372036854775808", "9223372036854775808", "0." + "0" * 40 + "1", "1" * 40 + "e-30",
             "1.00000005960464477539062500000001", "3.4028235677973366e38", "1,2,3.5,-4e2,0.1",
             "7.038531e-26", "8.5899345919999999e9", "123456.789e+3, 1E5", '"NaN", 1, "-Infinity"']
    return {f"number_{i}": text.encode() for i, text in enumerate(texts)}


def documents():
    texts = ["null", "[]", "{}", '{"a": [1, 2.5, "x", null, true, {"b": {}}], "a\\u0041": '
             '"\\ud83d\\ude00\\n"}', "[[1,2,3],[4,5,6.5e1],[]]", '["NaN", 1, "Infinity"]', '{"a":1,"a":2}',
             '"\xe4\xf6\u20ac\U0001f600"', "[" * 20 + "]" * 20, "\ufeff[]", '{"k": "\\u0000"}', " [1 , 2]  x"]
    return {f"json_{flags}_{i}": bytes([flags]) + text.encode() for i, text in enumerate(texts)
            for flags in (62, 63, 8, 127)}


def graphs():
    found = {os.path.basename(path): read(path)
             for pattern in ("tests/print/*.fx.json", "tests/models/*.fx.json")
             for path in glob.glob(os.path.join(ROOT, pattern))}
    found["state"] = json.dumps({"format": "fx/1", "nodes": [
        {"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "float32", "shape": ["N", 2]}},
        {"op": "call_module", "name": "l", "target": "l", "args": ["%x"]},
        {"op": "get_attr", "name": "t", "target": "t"},
        {"op": "call_function", "name": "c", "target": "torch.cat", "args": [["%l", "%t"]],
         "kwargs": {"dim": {"$float": "inf"}}},
        {"op": "output", "name": "output", "target": "output", "args": [{"$tuple": [
            "%c", {"$slice": [1, None, 2]}, {"$dtype": "float16"}, "%%x", {"$complex": [1, 2]}]}]}],
        "modules": {"l": {"type": "torch.nn.Linear", "config": {"in_features": 2, "out_features": 2}}},
        "state": {"l.weight": [[1, 2], [3, 4.5]], "l.bias": {"same_as": "t"},
                  "t": {"dtype": "float32", "shape": [2], "b64": "AACAPwAAAEA="}}}).encode()
    found["export"] = json.dumps(EXPORT).encode()
    found["storages"] = json.dumps(with_child()).encode()
    return {name: text for name, text in found.items() if len(text) < 8000}


def models():
    """Documents of the smaller archives: model, configuration of the weights, of the constants."""
    found = {}
    for path in glob.glob(os.path.join(MODELS, "*.pt2")):
        with zipfile.ZipFile(path) as archive:
            part = {name: archive.read(name) for name in archive.namelist() if name.endswith(".json")}
        model = json.loads(next(text for name, text in part.items() if "/models/" in name))
        slim(model)
        texts = [json.dumps(model, separators=(",", ":")).encode()]
        texts += [next((text for name, text in part.items() if name.endswith(end)), b"{}")
                  for end in ("model_weights_config.json", "model_constants_config.json")]
        if sum(map(len, texts)) < 24000:
            found[os.path.basename(path)] = MARK.join(texts)
    return found


def slim(value):
    """Leaves out the stack traces, which nothing reads."""
    if isinstance(value, dict):
        value.pop("stack_trace", None)
        value.pop("source_fn_stack", None)
        for item in value.values():
            slim(item)
    elif isinstance(value, list):
        for item in value:
            slim(item)


def archives():
    found = {}
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            archive.writestr("m/byteorder", b"little")
            archive.writestr("m/folder/", b"")
            archive.writestr("m/models/model.json", b'{"graph_module": {}}' + b" " * 50)
            archive.writestr("m/data/weights/weight_0", bytes(64))
        found[name] = out.getvalue()
        found[name + "_mended"] = out.getvalue()[:-2] + b"\x01\x00" + b"\x01"
    found["relu_neg_abs"] = read(os.path.join(MODELS, "dev_relu_neg_abs.pt2"))
    found["linear"] = read(os.path.join(MODELS, "dev_linear.pt2"))
    return found


def expressions():
    texts = ["s0", "2*s39 + 1", "Symbol('s39', positive=True, integer=True)",
             "Mul(Integer(2), Symbol('s39'))", "Add(Integer(-1), FloorDiv(Symbol('s0'), Integer(2)))",
             "s0//2 - (s1 % 3)", "L['x'].size()[0] == L['y'].size()[0]", "Eq(Mod(L['x'].size()[1], 2), 0)",
             "L['x'].size()[0] <= 64 and not L['n'] > 3", "Max(1, s0, Min(s1, 7))", "Pow(s0, 2)/3",
             "-(-(s0))", "Piecewise((1, s0 > 2), (0, True))", "IntTrueDiv(Symbol('s0'), Integer(4)) + 1.5e3",
             "Rational(1, 2)*s0", "9223372036854775807 + s0"]
    return {f"expression_{i}": text.encode() for i, text in enumerate(texts)}


def weights():
    def file(header, data):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    two = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
           "b": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}, "__metadata__": {"format": "pt"}}
    return {"empty": file({}, b""), "two": file(two, bytes(16)),
            "zero": file({"z": {"dtype": "BF16", "shape": [0, 3], "data_offsets": [0, 0]}}, b""),
            "bool": file({"b": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}}, b"\0\1\1\0"),
            "linear": read(os.path.join(MODELS, "linear_module.safetensors"))}


def npy(descr, shape, data, fortran=False, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def arrays():
    return {"f4": npy("<f4", (2, 2), bytes(16)), "f8_big": npy(">f8", (2,), bytes(16)),
            "i2_fortran": npy("<i2", (2, 3), bytes(12), True), "scalar": npy("|u1", (), b"\7"),
            "bool": npy("|b1", (3,), b"\0\1\1", version=2), "half": npy("<f2", (1,), bytes(2), version=3),
            "none": npy("<i8", (0, 4), b"")}


def form(*parts):
    body = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n'
                    b'Content-Type: application/octet-stream\r\n\r\n%s\r\n' % part for part in parts)
    return body + b"--b--\r\n"


def forms():
    kind = b"multipart/form-data; boundary="
    return {"two": kind + b"b\n" + form((b"graph", b"{}"), (b"weights", b"abc\r\n--bx")),
            "quoted": kind + b'"b"; x=y\n' + form((b"x", b"")), "none": b"text/plain\nabc", "escaped": kind
            + b'b\n--b\r\ncontent-disposition: form-data; name="a\\"b%22"\r\n\r\n1\r\n--b--\r\n',
            "cut": kind + b"b\n" + form((b"a", b"1"))[:-4]}


def records():
    """Heads, versions and manifests without their checksum lines, which the target adds."""
    one, two, three = "a" * 64, "0123456789abcdef" * 4, "5" * 64
    head = ("head 3\nname digits\nincarnation 0123456789abcdef\nnext_version 8\ndefault_version 7\ngone "
            "5\nalias canary 7\nalias prod 3\nattribute image 2 some text\nattribute owner someone\n")
    version = (f"version 3\nname digits\nincarnation 0123456789abcdef\nnumber 4\nid {one}\n"
               f"format pt2\ncreated_ms 1790000000000\n")
    part, hole = (f"part graph {one} 7000 {two}\n",
                  f"hole 64 70000 {three} 70000\nhole 80000 100 {three} 90000\n")
    old = (f"name digits\nnext_version 3\ndefault_version 2\nversion 2\nid {one}\n"
           f"format fx\ncreated_ms 12345\n")
    return {name: text.encode() for name, text in {
        "head": head, "version": version + part, "holes": version + "model encoder\n" + part + hole
        + f"part weights {two} 9 {one}\nattribute note x y\n",
        "format1": old + f"part {one} 7 graph\npart {two} 9 weights\n",
        "format2": "manifest 2\n" + old + f"part {one} 7 {two} graph\n" + hole}.items()}


def targets():
    lines = ["GET /v1", "PUT /v1/graphs/m.pt2?model=a",
             "POST /v1/graphs/m/run?profile=1&outputs=a,b&mode=eager",
             "GET /v1/graphs/m/versions/3/text?form=graph", "DELETE /v1/graphs/%6d",
             "GET /v1/graphs/..%2f..%2fetc", "GET /v1/graphs/a%00b", "POST /v1/run?as=npy&as=json",
             "GET /v1/profiles/abc?form=text", "PATCH /v1/graphs/m", "GET /metrics?", "HEAD /livez",
             "GET http://localhost/v1", "GET /v1/graphs?limit=10&after=b%20c+d", "OPTIONS *",
             "GET /v1/graphs/" + "a" * 70]
    return {f"target_{i}": line.encode() for i, line in enumerate(lines)}


def rules():
    """Rules on the graph of rules.c."""
    actions = [
        {"retarget": "torch.neg"},
        {"retarget": {"target": "torch.clamp", "args": ["$args"], "kwargs": {"min": 0.5}}},
        {"retarget": {"op": "call_method", "target": "mul", "args": ["$0", "%x"]}},
        {"retarget": {"target": "torch.sum", "args": ["$0"], "kwargs": {"dim": "$kw:dim"}}},
        {"passthrough": 0},
        {"constant": [[1.0, 2], [3, 4]]}, {"constant": {"dtype": "int64", "shape": [2], "data": [1, 2]}},
        {"patch": {"index": ["1:", -1], "set": 1.5}}, {"patch": {"index": ["...", None, [0, 1]], "add": 1}},
        {"patch": {"index": ["::2"], "scale": [2.0, 3.0]}}, {"call": "m"}, {"wrap": {"before": "m"}},
        {"wrap": {"after": "m"}}, {"wrap": {"before": "m", "after": "m"}},
        {"observe": ["call", "stats", "tensor"]},
        {"halt_on": ["nan", "inf"]}, {"observe": ["call"], "form": "text", "optional": True}]
    matches = [{"target": "torch.sigmoid"}, {"name": "s*"}, {"op": "placeholder"}, {"op": "get_attr"},
               {"op": "output"}, {"module": "a"}, {"module_type": "Block", "nth": 1},
               {"module": "a", "target": "torch.mul"}, {}]
    found = {f"{a}_{m}": [{"match": match, **action}] for a, action in enumerate(actions)
             for m, match in enumerate(matches)}
    found["three"] = [{"match": matches[0], **actions[7]}, {"match": matches[0], **actions[13]},
                      {"match": matches[5], **actions[11]}]
    leaves = [{}, {"types": ["Outer"]}, {"types": ["a.Inner"], "paths": []}, {"paths": ["m.*"]}]
    for i, leaf in enumerate(leaves):
        found[f"leaf_{i}"] = {"leaf": leaf}
        for a, action in enumerate(actions):
            found[f"leaf_{i}_{a}"] = {"leaf": leaf, "overrides": [
                {"match": {"target": "torch.mul"}, **action}, {"match": {"op": "call_module"}, **action}]}
    found["inlined"] = {"leaf": {}, "overrides": [{"match": {"name": "neg*"}, "retarget": {
        "target": "torch.add", "args": ["$0", "%m_inner_g"]}}]}
    return {name: json.dumps(content).encode() for name, content in found.items()}


def runs():
    json_type, run = b"application/json\n", b"/v1/graphs/%d/run%s\n"
    found = {"plain": run % (0, b"") + json_type + b'{"inputs": {"x": [[1, -2.5], [3, 4]]}}',
             "list": run % (0, b"?profile=true&encoding=b64") + json_type + b'{"inputs": [[true, false]]}',
             "typed": run % (1, b"?encoding=flat") + json_type
             + b'{"inputs": {"x": [[1, 2]], "i": [7]}, "outputs": ["y", "i"], "seed": 3, "mode": "eager"}',
             "args": run % (1, b"") + json_type + b'{"inputs": {"$args": [{"dtype": "float32", "shape": '
             b'[1, 2], "b64": "AACAPwAAAEA="}], "$kwargs": {"i": [1]}}, "deadline_ms": 500}', "bools": run
             % (2, b"") + json_type + b'{"inputs": {"b": [true, false], "h": {"dtype": "float16", "shape": '
             b'[], "data": 0.5}}, "reply": "bare"}', "npy": run % (0, b"?as=npy") + b"application/x-npy\n"
             + npy("<f4", (2, 2), bytes(16)), "form": run % (1, b"") + b"multipart/form-data; boundary=b\n"
             + form((b"x", npy("<f4", (1, 2), bytes(8))), (b"i", npy("<i8", (1,), bytes(8))),
                    (b"request", b'{"profile": true}')),
             "safetensors": run % (0, b"") + b"application/octet-stream\n" + weights_of_x()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.npy", npy("<f4", (1, 2), bytes(8)))
        archive.writestr("i.npy", npy("<i8", (1,), bytes(8)))
    predict = b"/v1/models/%s:predict\n\n"
    found["rows"] = predict % b"c" + b'{"signature_name": "s", "instances": [[1, 2.5], [3, 4]]}'
    found["named_rows"] = predict % b"a" + b'{"instances": [{"x": [1, 2], "i": 3}, {"i": 5, "x": [6, 7]}]}'
    found["columns"] = predict % b"a" + b'{"inputs": {"x": [[1, 2]], "i": [3]}}'
    found["torchserve"] = b"/predictions/c/1\n\n[[1, 2.5], [3, 4]]"
    found["csv"] = b"/invocations\ntext/csv\n1,2.5\n-3, nan\r\n"
    found["torchserve_data"] = b"/predictions/c\n\n{\"data\": [[1, 2.5]], \"x\": null}"
    found["npz"] = run % (1, b"?as=npz") + b"application/x-npz\n" + out.getvalue()
    return found


def weights_of_x():
    text = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def requests():
    def request(line, body=b"", *headers):
        head = [line + b" HTTP/1.1", b"Host: localhost",
                *headers] + ([b"Content-Length: %d" % len(body)] if body else [])
        return b"\r\n".join(head) + b"\r\n\r\n" + body
    graph = (b'{"format": "fx/1", "nodes": [{"op": "placeholder", "target": "x"}, {"op": "call_function", '
             b'"target": "torch.abs", "name": "y", "args": ["%x"]}, {"op": "output", "args": ["%y"]}]}')
    run = b'{"inputs": {"x": [1, -2]}, "profile": true}'
    put = request(b"PUT /v1/graphs/m", graph)
    found = {"root": request(b"GET /v1"), "put": put, "put_run": put + request(b"POST /v1/graphs/m/run", run),
             "pipeline": request(b"GET /livez") * 4, "head": request(b"HEAD /v1/graphs"),
             "inline": request(b"POST /v1/run", b'{"graph": ' + graph + b', "inputs": [[1.5]]}'),
             "expect": request(b"POST /v1/run", b"{}", b"Expect: 100-continue"),
             "chunked": b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
             b"{\"inp\r\n8;x=y\r\nuts\": 1}\r\n0\r\nA: b\r\n\r\n", "both": b"POST /v1/run HTTP/1.1\r\n"
             b"Host: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             "old": b"GET /v1 HTTP/1.0\r\n\r\n", "half": request(b"POST /v1/run", b"{" * 10)[:-5],
             "gzip": request(b"POST /v1/run", b"\x1f\x8b\x08\0\0\0\0\0", b"Content-Encoding: gzip"),
             "lf": b"GET /v1 HTTP/1.1\nHost: localhost\n\n",
             "delete": put + request(b"DELETE /v1/graphs/m"), "text": put
             + request(b"GET /v1/graphs/m/text?form=code", b"", b"Accept: text/plain", b"X-Request-Id: a-1"),
             "traced": request(b"GET /metrics",
                               b"", b"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
             "options": request(b"OPTIONS /v1/graphs/m")}
    return found


def recipes():
    """Graphs and steps of tests/edit, one input each, and what PyTorch has no word for."""
    with open(os.path.join(ROOT, "tests", "edit", "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    found = {f"case_{i}": json.dumps(case["graph"]).encode() + MARK + json.dumps(case["steps"]).encode()
             for i, case in enumerate(cases)}
    graph = json.dumps(cases[0]["graph"]).encode()
    for i, step in enumerate((
            {"pass": "shape_prop", "shapes": {"x": [2, 3]}}, {"pass": "functionalise"},
            {"pass": "decompose"}, {"pass": "itself"}, {"lint": True},
            {"edit": "outline", "nodes": ["relu", "sigmoid"], "path": "part"},
            {"edit": "add_output", "value": {"k": ["%x", 1, {"$slice": [None, 1, "%relu"]}]}},
            {"edit": "remove_output", "index": 0},
            {"edit": "add_module", "path": "m", "module": {"type": "torch.nn.ReLU"}},
            {"edit": "set_state", "path": "a.w",
             "tensor": {"dtype": "float32", "shape": [1, 2], "data": [1, 2]}},
            {"edit": "rename_state", "path": "a.w", "to": "b"}, {"edit": "delete_state", "path": "a.w"},
            {"edit": "delete_module", "path": "a"}, {"edit": "replace_module", "path": "a", "module": {
                "type": "torch.nn.Linear", "config": {"in_features": 2, "out_features": 1}}})):
        found[f"step_{i}"] = graph + MARK + json.dumps([step, {"edit": "rename", "node": "x",
                                                               "name": "y"}]).encode()
    return found


SEEDS = {"number": numbers, "json": documents, "fx_json": graphs, "graph": graphs, "model": models,
         "archive": archives, "expression": expressions, "safetensors": weights, "npy": arrays,
         "multipart": forms, "record": records, "route": targets, "rules": rules, "run": runs,
         "http": requests,
         "steps": recipes}


def main():
    if len(sys.argv) != 2:
        print("usage: seeds.py FOLDER")
        return 2
    for target, make in SEEDS.items():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, content in make().items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
