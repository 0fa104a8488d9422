# SPDX-License-Identifier: Apache-2.0
"""Checks a server against the sentences of the Open Inference Protocol (v2, REST): conformance.py
FXSERVE, or conformance.py --url http://HOST:PORT --model NAME for any server that has such a model.

Standard library only. The model's inputs and outputs are taken from its metadata; open sizes become
1. Each check prints one row: the sentence, and what came instead. Checks of what is optional in the
protocol (binary tensors, the repository, statistics) say so in front. The last line is
`N passed, N failed`.
"""
import argparse
import http.client
import json
import math
import os
import struct
import sys
import urllib.parse
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import Failed, Server, Tally, model_file

BYTES = {"BOOL": 1, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "FP16": 2, "BF16": 2, "UINT32": 4,
         "INT32": 4, "FP32": 4, "UINT64": 8, "INT64": 8, "FP64": 8}
PACKED = {"FP32": "f", "FP64": "d", "INT64": "q", "INT32": "i", "FP16": "e", "INT8": "b", "UINT8": "B",
          "INT16": "h", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "BOOL": "?"}


class Answer:
    def __init__(self, reply):
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failed(f"{self.status}, and no JSON: {self.body[:120]!r}") from None

    def text(self):
        return f"{self.status} {self.headers.get('Content-Type')} {self.body[:160]!r}"


class Peer:
    """A server, one model of it, and what its metadata says."""

    def __init__(self, url, model):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self.model = model
        self.metadata = self.get(f"/v2/models/{model}").json()
        self.inputs = [dict(row, shape=[1 if size < 0 else size for size in row["shape"]])
                       for row in self.metadata["inputs"]]
        self.outputs = self.metadata["outputs"]
        self.infer_path = f"/v2/models/{model}/infer"

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, self.prefix + path, body, dict(headers),
                               encode_chunked=("Transfer-Encoding", "chunked") in headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def values(self, row):
        count = math.prod(row["shape"])
        if row["datatype"] == "BOOL":
            return [i % 2 == 0 for i in range(count)]
        whole = row["datatype"].startswith(("INT", "UINT"))
        return [0 if whole else (i % 7 - 3) / 4 for i in range(count)]

    def packed(self, row):
        values = self.values(row)
        return struct.pack(f"<{len(values)}{PACKED[row['datatype']]}", *values)

    def request(self, **more):
        return {"inputs": [dict(row, data=self.values(row)) for row in self.inputs], **more}

    def infer(self, request, path=None, headers=()):
        return self.ask("POST", path or self.infer_path, json.dumps(request),
                        [("Content-Type", "application/json"), *headers])

    def binary(self, request_more=None, headers=(), tail=b"", encode=lambda body: body):
        """Every input as bytes behind the JSON."""
        blobs = [self.packed(row) for row in self.inputs]
        inputs = [dict(row, parameters={"binary_data_size": len(blob)})
                  for row, blob in zip(self.inputs, blobs)]
        head = json.dumps({"inputs": inputs, **(request_more or {})}).encode()
        return self.ask("POST", self.infer_path, encode(head + b"".join(blobs) + tail),
                        [("Inference-Header-Content-Length", str(len(head))), *headers])


CHECKS = []


def check(sentence):
    def add(function):
        CHECKS.append((sentence, function))
        return function
    return add


def want(holds, answer):
    if not holds:
        raise Failed(answer.text() if isinstance(answer, Answer) else str(answer))


def is_json(answer):
    return (answer.headers.get("Content-Type") or "").split(";")[0] == "application/json"


def refused(answer, *statuses):
    """An error: its status, and a JSON object with a text."""
    want(answer.status in (statuses or (400,)), answer)
    want(is_json(answer) and isinstance(answer.json().get("error"), str) and answer.json()["error"], answer)


def outputs_of(peer, answer):
    want(answer.status == 200, answer)
    return {row["name"]: row for row in answer.json()["outputs"]}


# ---- health and metadata ----
@check("GET v2/health/live answers 200 when the server is live")
def _(peer):
    answer = peer.get("/v2/health/live")
    want(answer.status == 200, answer)


@check("GET v2/health/ready answers 200 when all models are ready")
def _(peer):
    answer = peer.get("/v2/health/ready")
    want(answer.status == 200, answer)


@check("GET v2 has name, version and extensions")
def _(peer):
    answer = peer.get("/v2")
    found = answer.json()
    want(answer.status == 200 and is_json(answer) and isinstance(found["name"], str)
         and isinstance(found["version"], str) and isinstance(found["extensions"], list), answer)


@check("GET v2/models/M/ready answers 200 when the model is ready")
def _(peer):
    answer = peer.get(f"/v2/models/{peer.model}/ready")
    want(answer.status == 200, answer)


@check("model metadata has name, platform, inputs and outputs; versions are texts")
def _(peer):
    found = peer.metadata
    want(found["name"] == peer.model and isinstance(found["platform"], str)
         and all(isinstance(version, str) for version in found.get("versions", [])), found)


@check("tensors of the metadata have name, a known datatype, and a shape of integers, -1 where open")
def _(peer):
    for row in peer.metadata["inputs"] + peer.metadata["outputs"]:
        want(isinstance(row["name"], str) and row["datatype"] in [*BYTES, "BYTES"]
             and all(isinstance(size, int) and size >= -1 for size in row["shape"]), row)


@check("metadata of one version")
def _(peer):
    for version in peer.metadata.get("versions", [])[:1]:
        answer = peer.get(f"/v2/models/{peer.model}/versions/{version}")
        want(answer.status == 200 and answer.json()["name"] == peer.model, answer)


@check("metadata of an unknown model is an error with an object {error}")
def _(peer):
    refused(peer.get("/v2/models/no-such-model"), 400, 404)


@check("an unknown version is an error")
def _(peer):
    refused(peer.get(f"/v2/models/{peer.model}/versions/999999"), 400, 404)


@check("an unknown query parameter is ignored")
def _(peer):
    answer = peer.get(f"/v2/models/{peer.model}?surely=unknown")
    want(answer.status == 200, answer)


# ---- inference in JSON ----
@check("infer answers 200, application/json, with model_name and outputs")
def _(peer):
    answer = peer.infer(peer.request())
    want(is_json(answer) and answer.json()["model_name"] == peer.model, answer)
    want(sorted(outputs_of(peer, answer)) == sorted(row["name"] for row in peer.outputs), answer)


@check("every output has name, shape, datatype and as many data as its shape says")
def _(peer):
    for row in outputs_of(peer, peer.infer(peer.request())).values():
        flat = str(row["data"]).count(",") + 1 if row["data"] else 0
        want(row["datatype"] in [*BYTES, "BYTES"] and math.prod(row["shape"]) == flat, row)


@check("id comes back; without one there is none")
def _(peer):
    want(peer.infer(peer.request(id="an id")).json().get("id") == "an id", "another id")
    want(peer.infer(peer.request()).json().get("id") in (None, ""), "an id that was not sent")


@check("infer of one version")
def _(peer):
    for version in peer.metadata.get("versions", [])[:1]:
        answer = peer.infer(peer.request(), f"/v2/models/{peer.model}/versions/{version}/infer")
        want(answer.status == 200 and answer.json()["model_version"] == version, answer)


@check("data may be nested, row by row")
def _(peer):
    def nest(values, shape):
        if len(shape) < 2:
            return values
        step = len(values) // shape[0]
        return [nest(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]
    request = peer.request()
    for row in request["inputs"]:
        row["data"] = nest(row["data"], row["shape"])
    found, known = outputs_of(peer, peer.infer(request)), outputs_of(peer, peer.infer(peer.request()))
    want(found == known, f"{found} for {known}"[:200])


@check("outputs that are asked for are those that come, in this order")
def _(peer):
    names = [row["name"] for row in peer.outputs][::-1]
    answer = peer.infer(peer.request(outputs=[{"name": name} for name in names]))
    want(answer.status == 200 and [row["name"] for row in answer.json()["outputs"]] == names, answer)


@check("an empty list of outputs means all of them")
def _(peer):
    want(len(outputs_of(peer, peer.infer(peer.request(outputs=[])))) == len(peer.outputs), "not all")


@check("unknown parameters are ignored")
def _(peer):
    answer = peer.infer(peer.request(parameters={"surely_unknown": 1}))
    want(answer.status == 200, answer)


@check("members may stand in any order")
def _(peer):
    request = peer.request()
    request["inputs"] = [{key: row[key] for key in reversed(row)} for row in request["inputs"]]
    answer = peer.infer(request)
    want(answer.status == 200, answer)


@check("no Content-Type is needed")
def _(peer):
    answer = peer.ask("POST", peer.infer_path, json.dumps(peer.request()))
    want(answer.status == 200, answer)


@check("a chunked body is taken")
def _(peer):
    answer = peer.ask("POST", peer.infer_path, iter([json.dumps(peer.request()).encode()]),
                      [("Transfer-Encoding", "chunked")])
    want(answer.status == 200, answer)


# ---- refusals ----
@check("an unknown model is refused")
def _(peer):
    refused(peer.infer(peer.request(), "/v2/models/no-such-model/infer"), 400, 404)


@check("a body that is no JSON is refused")
def _(peer):
    refused(peer.ask("POST", peer.infer_path, b"{\"inputs\": ["))


@check("a request without inputs is refused")
def _(peer):
    refused(peer.infer({"id": "1"}))


@check("an unknown input is refused")
def _(peer):
    request = peer.request()
    request["inputs"][0]["name"] = "surely-unknown"
    refused(peer.infer(request))


@check("an unknown output is refused")
def _(peer):
    refused(peer.infer(peer.request(outputs=[{"name": "surely-unknown"}])))


@check("too few data for the shape are refused")
def _(peer):
    request = peer.request()
    request["inputs"][0]["data"] = request["inputs"][0]["data"][:-1]
    refused(peer.infer(request))


@check("another datatype than the model's is refused")
def _(peer):
    request = peer.request()
    row = request["inputs"][0]
    row["datatype"] = "FP64" if row["datatype"] != "FP64" else "FP32"
    refused(peer.infer(request))


@check("an unknown datatype is refused")
def _(peer):
    request = peer.request()
    request["inputs"][0]["datatype"] = "FP33"
    refused(peer.infer(request))


@check("an input without data is refused")
def _(peer):
    request = peer.request()
    del request["inputs"][0]["data"]
    refused(peer.infer(request))


@check("a wrong method is refused")
def _(peer):
    answer = peer.get(peer.infer_path)
    want(answer.status in (400, 404, 405), answer)


# ---- binary tensors ----
@check("binary: inputs behind the JSON give the same outputs")
def _(peer):
    found, known = outputs_of(peer, peer.binary()), outputs_of(peer, peer.infer(peer.request()))
    want(found == known, f"{found} for {known}"[:200])


@check("binary: the Content-Type of such a body does not matter")
def _(peer):
    for kind in ("application/octet-stream", "application/json", "text/plain"):
        answer = peer.binary(headers=[("Content-Type", kind)])
        want(answer.status == 200, answer)


def split(answer):
    want(answer.status == 200, answer)
    n = answer.headers.get("Inference-Header-Content-Length")
    want(n is not None and n.isdigit(), f"Inference-Header-Content-Length: {n}")
    return json.loads(answer.body[:int(n)]), answer.body[int(n):]


@check("binary: outputs come as bytes behind the JSON, of the announced sizes")
def _(peer):
    answer = peer.infer(peer.request(outputs=[{"name": row["name"], "parameters": {"binary_data": True}}
                                              for row in peer.outputs]))
    head, blob = split(answer)
    sizes = [row["parameters"]["binary_data_size"] for row in head["outputs"]]
    want(sum(sizes) == len(blob) and "data" not in head["outputs"][0], head)
    for row, size in zip(head["outputs"], sizes):
        want(size == math.prod(row["shape"]) * BYTES[row["datatype"]], row)


@check("binary: such a reply is application/octet-stream")
def _(peer):
    answer = peer.infer(peer.request(parameters={"binary_data_output": True}))
    want(answer.headers.get("Content-Type") == "application/octet-stream", answer)


@check("binary: binary_data_output holds for all outputs, binary_data of one goes before it")
def _(peer):
    answer = peer.infer(peer.request(parameters={"binary_data_output": True},
                                     outputs=[{"name": row["name"], "parameters": {"binary_data": False}}
                                              for row in peer.outputs]))
    want(is_json(answer) and answer.headers.get("Inference-Header-Content-Length") is None, answer)


@check("binary: the bytes are the numbers of the JSON form")
def _(peer):
    names = [{"name": peer.outputs[0]["name"]}]
    known = peer.infer(peer.request(outputs=names)).json()["outputs"][0]
    head, blob = split(peer.infer(peer.request(outputs=names, parameters={"binary_data_output": True})))
    form = PACKED.get(head["outputs"][0]["datatype"])
    found = struct.unpack(f"<{math.prod(known['shape'])}{form}", blob)
    want(all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(found, known["data"])),
         "other numbers")


@check("binary: a body with bytes and without the header is refused")
def _(peer):
    blob = peer.packed(peer.inputs[0])
    inputs = [dict(peer.inputs[0], parameters={"binary_data_size": len(blob)})]
    refused(peer.ask("POST", peer.infer_path, json.dumps({"inputs": inputs}).encode() + blob))


@check("binary: bytes that are left over are refused")
def _(peer):
    refused(peer.binary(tail=b"\0"))


@check("binary: a header that is longer than the body, negative or no number is refused")
def _(peer):
    for text in ("99999999", "-1", "many"):
        refused(peer.ask("POST", peer.infer_path, json.dumps(peer.request()),
                         [("Inference-Header-Content-Length", text)]))


@check("binary: a size that does not fit the shape is refused")
def _(peer):
    blob = peer.packed(peer.inputs[0]) + b"\0\0\0\0"
    inputs = [dict(peer.inputs[0], parameters={"binary_data_size": len(blob)})]
    head = json.dumps({"inputs": inputs}).encode()
    refused(peer.ask("POST", peer.infer_path, head + blob,
                     [("Inference-Header-Content-Length", str(len(head)))]))


@check("binary: a body with Content-Encoding deflate or gzip is inflated first")
def _(peer):
    def gzip(body):
        packer = zlib.compressobj(wbits=31)
        return packer.compress(body) + packer.flush()
    for name, encode in (("deflate", zlib.compress), ("gzip", gzip)):
        answer = peer.binary(headers=[("Content-Encoding", name)], encode=encode)
        want(answer.status == 200, answer)


# ---- the repository, configuration, statistics ----
@check("repository: POST v2/repository/index is a list of name, version and state")
def _(peer):
    answer = peer.ask("POST", "/v2/repository/index")
    rows = answer.json()
    want(answer.status == 200 and peer.model in [row["name"] for row in rows]
         and all(isinstance(row.get("version", ""), str) for row in rows), answer)


@check("repository: index of what is ready")
def _(peer):
    answer = peer.ask("POST", "/v2/repository/index", b'{"ready": true}')
    want(answer.status == 200 and all(row["state"] == "READY" for row in answer.json()), answer)


@check("repository: what is unloaded is not ready, and is again after load")
def _(peer):
    path = f"/v2/repository/models/{peer.model}"
    want(peer.ask("POST", f"{path}/unload").status == 200, "unload")
    refused(peer.get(f"/v2/models/{peer.model}/ready"), 400, 404, 503)
    refused(peer.infer(peer.request()), 400, 404, 503)
    answer = peer.ask("POST", f"{path}/load")
    want(answer.status == 200, answer)
    want(peer.infer(peer.request()).status == 200, "no run after load")


@check("repository: a model that cannot be loaded is refused")
def _(peer):
    refused(peer.ask("POST", "/v2/repository/models/no-such-model/load"), 400, 404)


@check("configuration: name, max_batch_size, input and output")
def _(peer):
    answer = peer.get(f"/v2/models/{peer.model}/config")
    found = answer.json()
    want(answer.status == 200 and found["name"] == peer.model and isinstance(found["max_batch_size"], int)
         and all(row["data_type"].startswith("TYPE_") for row in found["input"] + found["output"]), answer)


@check("statistics: a run is counted, and its times")
def _(peer):
    def read():
        return peer.get(f"/v2/models/{peer.model}/stats").json()["model_stats"][0]
    before = read()["inference_stats"]
    peer.infer(peer.request())
    after = read()["inference_stats"]
    want(after["success"]["count"] == before["success"]["count"] + 1
         and after["success"]["ns"] > before["success"]["ns"], after)
    want(set(after) >= {"success", "fail", "queue", "compute_input", "compute_infer", "compute_output"},
         after)


@check("statistics: of all models")
def _(peer):
    answer = peer.get("/v2/models/stats")
    want(peer.model in [row["name"] for row in answer.json()["model_stats"]], answer)


def run_all(peer, tally):
    for sentence, function in CHECKS:
        try:
            function(peer)
        except (Failed, KeyError, TypeError, OSError, ValueError, http.client.HTTPException) as problem:
            tally.bad(sentence, f"{type(problem).__name__}: {problem}" if not isinstance(problem, Failed)
                      else str(problem))
            print(f"no   {sentence}")
        else:
            tally.ok()
            print(f"yes  {sentence}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("fxserve", nargs="?", help="the program to test")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--model", default="digits", help="a model of that server")
    options = parser.parse_args()
    tally = Tally()
    if options.url:
        run_all(Peer(options.url, options.model), tally)
        return tally.end()
    server = Server(options.fxserve, ["--data", "none", "--quiet"]).start()
    try:
        reply = server.call("PUT", "/v1/graphs/digits", model_file("digits.pt2"))
        tally.check("the upload", None if reply.status == 201 else reply.short())
        run_all(Peer(server.url, "digits"), tally)
    finally:
        tally.check("the server's end", "\n".join(server.stop()))
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
