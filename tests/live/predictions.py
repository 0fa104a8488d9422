# SPDX-License-Identifier: Apache-2.0
"""Clients of SageMaker, KServe v1 and TorchServe as they come from PyPI, against fxserve with
--codecs: predictions.py FXSERVE.

Needs boto3, kserve, torchserve_client, requests and numpy. TensorFlow Serving has no client for
REST on PyPI: the requests of its documentation are sent with curl, and so are TorchServe's.
Answers have to be those of POST /v1/graphs/NAME/run. The last line is `N passed, N failed`.
"""
import asyncio
import io
import json
import os
import subprocess
import sys
import urllib.parse

import boto3
import botocore.config
import botocore.exceptions
import numpy as np
from kserve import InferenceRESTClient, RESTConfig
from torchserve_client import TorchServeClientREST

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import CODECS, MODELS, Server, Tally, model_file

# x / 2 + 3, as TensorFlow Serving's documentation has it.
HALF_PLUS_THREE = json.dumps({"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_function", "name": "half", "target": "operator.truediv", "args": ["%x", 2]},
    {"op": "call_function", "name": "y", "target": "operator.add", "args": ["%half", 3]},
    {"op": "output", "name": "output", "args": ["%y"]}]}).encode()


class Predictions:
    def __init__(self, server, tally):
        self.server, self.tally, self.url = server, tally, server.url
        self.image = np.linspace(0, 16, 3 * 64, dtype=np.float32).reshape(3, 1, 8, 8)
        body = json.dumps({"inputs": {"x": self.image.tolist()}}).encode()
        self.known = np.array(server.call("POST", "/v1/graphs/digits/run", body).json()["outputs"][0]["data"])

    def same(self, name, found, wanted=None):
        found, wanted = np.asarray(found, np.float64), self.known if wanted is None else np.asarray(wanted)
        good = found.shape == wanted.shape and np.allclose(found, wanted, atol=1e-5)
        self.tally.check(name, None if good else f"{found!r:.300} for {wanted!r:.300}")

    def equal(self, name, found, wanted):
        self.tally.check(name, None if found == wanted else f"{found!r:.300} for {wanted!r:.300}")

    def sagemaker(self):
        runtime = boto3.client("sagemaker-runtime", endpoint_url=self.url, region_name="us-east-1",
                               aws_access_key_id="id", aws_secret_access_key="key",
                               config=botocore.config.Config(retries={"total_max_attempts": 1}))
        for body in (self.image.tolist(), {"data": self.image.tolist()}):
            reply = runtime.invoke_endpoint(EndpointName="digits", ContentType="application/json",
                                            Body=json.dumps(body))
            self.equal("sagemaker: type", reply["ContentType"], "application/json")
            self.same("sagemaker: JSON", json.load(reply["Body"])["logits"])
        reply = runtime.invoke_endpoint(EndpointName="digits", ContentType="application/json",
                                        Body=json.dumps({"instances": self.image.tolist()}))
        self.same("sagemaker: instances", json.load(reply["Body"])["predictions"])
        rows = "\n".join(",".join(map(repr, row.reshape(-1).tolist())) for row in self.image)
        reply = runtime.invoke_endpoint(EndpointName="digits", ContentType="text/csv", Accept="text/csv",
                                        Body=rows)
        self.same("sagemaker: CSV", np.loadtxt(io.StringIO(reply["Body"].read().decode()), delimiter=","))
        array = io.BytesIO()
        np.save(array, self.image)
        reply = runtime.invoke_endpoint(EndpointName="digits", ContentType="application/x-npy",
                                        Accept="application/x-npy", Body=array.getvalue())
        self.same("sagemaker: arrays", np.load(io.BytesIO(reply["Body"].read())))
        try:
            runtime.invoke_endpoint(EndpointName="digits", ContentType="application/json", Body="[1.0]")
        except botocore.exceptions.ClientError as problem:
            self.equal("sagemaker: a refusal", problem.response["ResponseMetadata"]["HTTPStatusCode"], 400)
        else:
            self.tally.bad("sagemaker: a refusal", "there was none")

    async def kserve(self):
        client = InferenceRESTClient(RESTConfig(protocol="v1"))
        self.equal("kserve: the model is ready", await client.is_model_ready(self.url, "digits"), True)
        reply = await client.infer(self.url, {"instances": self.image.tolist()}, model_name="digits")
        self.same("kserve: rows", reply["predictions"])
        reply = await client.infer(self.url, {"instances": [{"x": row} for row in self.image.tolist()]},
                                   model_name="digits")
        self.same("kserve: rows by name", reply["predictions"])

    def torchserve(self):
        address = urllib.parse.urlsplit(self.url)
        client = TorchServeClientREST(f"{address.scheme}://{address.hostname}", address.port, address.port)
        self.equal("torchserve: health", client.inference.health_check()["status"], "Healthy")
        names = [row["modelName"] for row in client.management.list_models()["models"]]
        self.equal("torchserve: models", names, ["digits", "half_plus_three"])
        first = client.management.list_models(limit=1)
        rest = client.management.list_models(limit=1, next_page_token=first["nextPageToken"])
        self.equal("torchserve: pages", [row["modelName"] for row in first["models"] + rest["models"]], names)
        for version in (None, "1.0"):
            model, = client.management.describe_model("digits", version)
            self.equal("torchserve: a model", (model["modelName"], model["workers"][0]["status"]),
                       ("digits", "READY"))
            array = io.BytesIO()
            np.save(array, self.image)
            reply = client.inference.prediction("digits", [("data", ("x.npy", array.getvalue()))], version)
            self.same("torchserve: a form", reply["logits"])

    def curl(self, *words):
        done = subprocess.run(["curl", "-sS", *words[:-1], self.url + words[-1]], capture_output=True,
                              text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def documented(self):
        """As in TensorFlow Serving's "RESTful API" and TorchServe's "Inference API"."""
        reply = self.curl("/v1/models/half_plus_three")
        self.equal("tfserving: states", reply["model_version_status"],
                   [{"version": "1", "state": "AVAILABLE",
                     "status": {"error_code": "OK", "error_message": ""}}])
        reply = self.curl("-d", '{"instances": [1.0,2.0,5.0]}', "-X", "POST",
                          "/v1/models/half_plus_three:predict")
        self.equal("tfserving: rows", reply, {"predictions": [3.5, 4.0, 5.5]})
        reply = self.curl("-d", '{"signature_name": "serving_default", "inputs": {"x": [1.0, 2.0]}}',
                          "/v1/models/half_plus_three/versions/1:predict")
        self.equal("tfserving: columns", reply, {"outputs": [3.5, 4.0]})
        reply = self.curl("-d", '{"instances": [1.0,5.0]}', "-X", "POST", "/v1/models/half:predict")
        self.equal("tfserving: no such model", list(reply)[0], "error")
        reply = self.curl("/v1/models/half_plus_three/metadata")
        self.equal("tfserving: metadata", list(reply["metadata"]["signature_def"]["signature_def"]),
                   ["serving_default"])
        picture = os.path.join(MODELS, "seven.png")
        for words in (["-T", picture, "/predictions/digits"], ["-T", picture, "/predictions/digits/1.0"],
                      ["-F", f"data=@{picture}", "/predictions/digits"]):
            self.equal(f"torchserve: curl {words[0]} {words[-1]}",
                       int(np.argmax(self.curl(*words)["logits"])), 7)


def main():
    tally = Tally()
    server = Server(sys.argv[1], ["--data", "none", "--codecs", CODECS]).start()
    server.call("PUT", "/v1/graphs/digits", model_file("digits.pt2"))
    server.call("PUT", "/v1/graphs/half_plus_three", HALF_PLUS_THREE)
    server.call("PATCH", "/v1/graphs/digits", json.dumps({"image": {
        "size": 8, "crop": 8, "mean": 0, "std": 0.0588235, "colour": "grey"}}).encode())
    clients = Predictions(server, tally)
    for name, check in (("sagemaker", clients.sagemaker), ("kserve", lambda: asyncio.run(clients.kserve())),
                        ("torchserve", clients.torchserve), ("documented", clients.documented)):
        try:
            check()
        except Exception as problem:  # any failure is the client's
            tally.bad(name, f"{type(problem).__name__}: {str(problem)[:600]}")
    tally.check("the server ends", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
