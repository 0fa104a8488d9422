# SPDX-License-Identifier: Apache-2.0
"""Clients of the Open Inference Protocol as they come from PyPI, against fxserve: clients.py FXSERVE.

Needs tritonclient[http], kserve and numpy. tritonclient's client in its three forms (calls,
async_infer, asyncio) and KServe's InferenceRESTClient, which nobody changed: metadata,
configuration, statistics and repository; inputs and outputs as JSON and as bytes in every mix,
packed with gzip and deflate, in every datatype that a graph can take; errors. Results have to be
those of POST /v1/graphs/NAME/run. Triton's perf_analyzer runs against it where it is there. The last
line is `N passed, N failed`.
"""
import asyncio
import glob
import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from tritonclient.utils import InferenceServerException

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import model_file, serving

DTYPES = {"BOOL": np.bool_, "UINT8": np.uint8, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32,
          "INT64": np.int64, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
          "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
FORMS = list(itertools.product((True, False), (True, False)))  # bytes in, bytes out


def image(n=3):
    return np.linspace(-1, 1, n * 64, dtype=np.float32).reshape(n, 1, 8, 8)


class Clients:
    def __init__(self, server, tally):
        self.server, self.tally = server, tally
        self.address, self.base = f"127.0.0.1:{server.port}", server.url

    def same(self, name, got, want):
        near = np.allclose if want.dtype.kind == "f" else np.array_equal
        more = {"rtol": 1e-5, "atol": 1e-5} if want.dtype.kind == "f" else {}
        equal = (got is not None and got.dtype == want.dtype and got.shape == want.shape
                 and near(got, want, **more))
        self.tally.check(name, None if equal else f"{got!r:.200} for {want!r:.200}")

    def holds(self, name, value, said=""):
        self.tally.check(name, None if value else f"does not hold: {said}")

    def fails(self, name, call, words):
        try:
            call()
        except InferenceServerException as problem:
            self.tally.check(name, None if words in problem.message() else problem.message())
        else:
            self.tally.bad(name, "no failure")

    def known(self, x):
        body = json.dumps({"inputs": {"x": x.tolist()}}).encode()
        reply = self.server.call("POST", "/v1/graphs/digits/run", body)
        return np.array(reply.json()["outputs"][0]["data"], np.float32)

    # ---- tritonclient ----
    @staticmethod
    def input_of(x, kind, binary, name="x", module=triton):
        row = module.InferInput(name, list(x.shape), kind)
        row.set_data_from_numpy(x, binary_data=binary)
        return row

    def triton_facts(self, client):
        self.holds("triton: live and ready", client.is_server_live() and client.is_server_ready())
        self.holds("triton: name", client.get_server_metadata()["name"] == "fxserve")
        model = client.get_model_metadata("digits")
        self.holds("triton: metadata", model["inputs"] == [{"name": "x", "datatype": "FP32",
                                                            "shape": [-1, 1, 8, 8]}], model)
        self.holds("triton: metadata of a version",
                   client.get_model_metadata("digits", model_version="1")["versions"] == ["1"])
        config = client.get_model_config("digits")
        self.holds("triton: config", config["input"][0]["data_type"] == "TYPE_FP32", config)
        index = client.get_model_repository_index()
        self.holds("triton: index", {row["name"]: row["state"] for row in index}
                   == {"digits": "READY", "same": "READY"}, index)

    def triton_forms(self, client):
        x = image()
        want = self.known(x)
        for binary_in, binary_out in FORMS:
            name = f"triton: {'bytes' if binary_in else 'JSON'} in, {'bytes' if binary_out else 'JSON'} out"
            rows = [self.input_of(x, "FP32", binary_in)]
            outputs = [triton.InferRequestedOutput("logits", binary_data=binary_out)]
            result = client.infer("digits", rows, outputs=outputs, request_id="7")
            self.same(name, result.as_numpy("logits"), want)
            self.holds(f"{name}: id", result.get_response()["id"] == "7")
            for packing in ("gzip", "deflate"):
                result = client.infer("digits", rows, outputs=outputs, request_compression_algorithm=packing,
                                      response_compression_algorithm=packing)
                self.same(f"{name}, {packing}", result.as_numpy("logits"), want)
        self.same("triton: all outputs", client.infer("digits", rows).as_numpy("logits"), want)
        result = client.infer("digits", [self.input_of(x, "FP32", True, "INPUT__0")], timeout=10**7,
                              outputs=[triton.InferRequestedOutput("OUTPUT__0")], priority=1)
        self.same("triton: INPUT__0 and OUTPUT__0", result.as_numpy("OUTPUT__0"), want)
        result = client.infer("digits", rows, model_version="1", parameters={"profile": True})
        self.holds("triton: a profile on demand", "total_us" in result.get_response()["profile"])
        result = client.infer("digits", rows, outputs=[
            triton.InferRequestedOutput("logits", binary_data=True, class_count=2)])
        found = result.as_numpy("logits")
        first = [row.decode().split(":")[1] for row in found[:, 0]]
        self.holds("triton: classification", found.shape == (3, 2) and first
                   == [str(i) for i in want.argmax(1)], found)
        empty = client.infer("digits", [self.input_of(image(0), "FP32", True)])
        self.holds("triton: no sample", empty.as_numpy("logits").shape == (0, 10))

    def triton_dtypes(self, client):
        for kind, dtype in DTYPES.items():
            x = np.array([[0, 1, 1], [1, 0, 3]]).astype(dtype)
            for binary_in, binary_out in FORMS:
                if kind == "FP16" and not binary_in:
                    continue  # the client refuses it
                output = triton.InferRequestedOutput("y", binary_data=binary_out)
                result = client.infer("same", [self.input_of(x, kind, binary_in)], outputs=[output])
                self.same(f"triton: {kind} {binary_in} {binary_out}", result.as_numpy("y"), x)

    def triton_errors(self, client):
        x = image(1)
        rows = [self.input_of(x, "FP32", True)]
        unknown = "Request for unknown model: 'none' is not found"
        self.fails("triton: unknown model", lambda: client.infer("none", rows), unknown)
        self.fails("triton: unknown metadata", lambda: client.get_model_metadata("none"), unknown)
        self.fails("triton: load of nothing", lambda: client.load_model("none"), "failed to load 'none'")
        self.fails("triton: no input", lambda: client.infer("digits", []), "x")
        self.fails("triton: unknown output", lambda: client.infer(
            "digits", rows, outputs=[triton.InferRequestedOutput("z")]), "no output \"z\"")
        self.fails("triton: wrong shape", lambda: client.infer(
            "digits", [self.input_of(x[:, :, :4], "FP32", True)]), "")
        self.fails("triton: a sequence without its start",
                   lambda: client.infer("digits", rows, sequence_id=4), "no sequence 4 of 'digits'")
        self.same("triton: a sequence", client.infer("digits", rows, sequence_id="a", sequence_start=True,
                                                     sequence_end=True).as_numpy("logits"),
                  client.infer("digits", rows).as_numpy("logits"))

    def triton_repository(self, client):
        client.unload_model("digits")
        self.holds("triton: unloaded", not client.is_model_ready("digits"))
        self.fails("triton: run of what is unloaded",
                   lambda: client.infer("digits", [self.input_of(image(1), "FP32", True)]),
                   "no available versions")
        client.load_model("digits")
        self.holds("triton: loaded", client.is_model_ready("digits") and client.is_model_ready("digits", "1"))
        client.load_model("fresh", config="{}", files={"file:1/model.json": same()})
        x = np.ones((2, 2), np.float32)
        result = client.infer("fresh", [self.input_of(x, "FP32", True)])
        self.same("triton: a loaded file", result.as_numpy("y"), x)
        self.holds("triton: settings", client.get_log_settings()["log_info"] is True
                   and client.get_trace_settings()["trace_level"] == ["OFF"]
                   and client.update_log_settings({"log_error": True})["log_error"] is True)
        stats = client.get_inference_statistics("digits")["model_stats"][0]
        self.holds("triton: statistics", stats["inference_stats"]["success"]["count"] > 10, stats)
        self.holds("triton: statistics of all", len(client.get_inference_statistics()["model_stats"]) == 3)

    def triton_async(self):
        x = image()
        want = self.known(x)
        with triton.InferenceServerClient(self.address, concurrency=4) as client:
            asked = [client.async_infer("digits", [self.input_of(x, "FP32", i % 2 == 0)], request_id=str(i))
                     for i in range(16)]
            for i, one in enumerate(asked):
                self.same(f"triton: async_infer {i}", one.get_result().as_numpy("logits"), want)

    async def triton_asyncio(self):
        x = image()
        want = self.known(x)
        client = triton_aio.InferenceServerClient(self.address)
        try:
            self.holds("triton: asyncio, ready", await client.is_server_ready())
            model = await client.get_model_metadata("digits")
            self.holds("triton: asyncio, metadata", model["outputs"][0]["name"] == "logits")
            results = await asyncio.gather(*(
                client.infer("digits", [self.input_of(x, "FP32", i % 2 == 0, module=triton_aio)])
                for i in range(8)))
            for i, result in enumerate(results):
                self.same(f"triton: asyncio {i}", result.as_numpy("logits"), want)
        finally:
            await client.close()

    # ---- kserve ----
    async def kserve(self):
        x = image()
        want = self.known(x)
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        self.holds("kserve: live", await client.is_server_live(self.base))
        self.holds("kserve: ready", await client.is_server_ready(self.base))
        self.holds("kserve: model ready", await client.is_model_ready(self.base, "digits"))
        for binary in (True, False):
            row = InferInput("x", list(x.shape), "FP32")
            row.set_data_from_numpy(x, binary_data=binary)
            request = InferRequest("digits", [row], request_id="q")
            result = await client.infer(self.base, request, model_name="digits")
            self.holds("kserve: id and names", (result.id, result.model_name) == ("q", "digits"))
            self.same(f"kserve: bytes {binary}", result.outputs[0].as_numpy(), want)
            request.parameters = {"binary_data_output": True}
            result = await client.infer(self.base, request, model_name="digits")
            self.same(f"kserve: bytes {binary}, bytes out", result.outputs[0].as_numpy(), want)
        for kind, dtype in DTYPES.items():
            row = InferInput("x", [2, 2], kind)
            x = np.array([[0, 1], [1, 1]]).astype(dtype)
            row.set_data_from_numpy(x, binary_data=True)
            result = await client.infer(self.base, InferRequest("same", [row]), model_name="same")
            self.same(f"kserve: {kind}", result.outputs[0].as_numpy(), x)


def same():
    """A graph that gives its input back, whatever its dtype."""
    return json.dumps({"format": "fx/1", "nodes": [
        {"op": "placeholder", "name": "x", "target": "x"},
        {"op": "call_method", "name": "y", "target": "clone", "args": ["%x"]},
        {"op": "output", "name": "output", "args": ["%y"]}]}).encode()


# ---- perf_analyzer ----
def perf_command():
    """The program with its environment, or why it is not there: it came with tritonclient until
    2.41.1, which clients of today do not need (.ci/run puts that into a folder of its own)."""
    folder = os.path.join(sys.prefix, "perf")
    program = os.path.join(folder, "bin", "perf_analyzer")
    if not os.path.exists(program):
        return None, None, f"{program} is not there"
    libraries = glob.glob(os.path.join(folder, "nvidia", "*", "lib"))
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries))
    found = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment, check=False)
    missing = re.findall(r"(\S+) => not found", found.stdout)
    return program, environment, f"it wants {', '.join(missing)}" if missing else ""


def perf_analyzer(server, tally):
    """Triton's load generator, with bytes and JSON, waiting and not. Its figures are not looked at but
    for failures: a window counts as stable whatever it shows."""
    program, environment, why_not = perf_command()
    if why_not:
        print(f"perf_analyzer left out: {why_not}")
        return
    json_forms = ["--input-tensor-format", "json", "--output-tensor-format", "json"]
    for name, more in (("bytes", []), ("JSON", json_forms), ("async", ["--async"])):
        done = subprocess.run([program, "-m", "digits", "-u", f"127.0.0.1:{server.port}", "-i", "http",
                               "--shape", "x:1,1,8,8", "--concurrency-range", "2", "--measurement-mode",
                               "count_windows", "--measurement-request-count", "20", "--max-trials", "10",
                               "-s", "100000", *more], capture_output=True, text=True, timeout=300,
                              env=environment, check=False)
        rate = re.search(r"throughput: ([\d.]+) infer/sec", done.stdout)
        counts = re.search(r"Successful request count: (\d+)", done.stdout)
        good = done.returncode == 0 and rate and float(rate[1]) > 0 and counts and int(counts[1]) > 0
        tally.check(f"perf_analyzer: {name}", None if good else (done.stdout + done.stderr)[-600:])


def main():
    with serving(sys.argv[1]) as (server, tally):
        for name, body in (("digits", model_file("digits.pt2")), ("same", same())):
            reply = server.call("PUT", f"/v1/graphs/{name}", body)
            tally.check(f"upload of {name}", None if reply.status == 201 else reply.short())
        clients = Clients(server, tally)
        with triton.InferenceServerClient(clients.address) as client:
            for part in (clients.triton_facts, clients.triton_forms, clients.triton_dtypes,
                         clients.triton_errors, clients.triton_repository):
                part(client)
        clients.triton_async()
        asyncio.run(clients.triton_asyncio())
        asyncio.run(clients.kserve())
        perf_analyzer(server, tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
