# SPDX-License-Identifier: Apache-2.0
"""deploy/kserve against KServe, without a cluster: cluster.py FXSERVE. Needs the package kserve, and
root for the image.

  schema     every member of runtime.yaml and service.yaml is one that KServe's own models (and
             Kubernetes' for what is within containers) have, of its type, and what they require is
             there; the service's format, runtime and protocol are the runtime's
  rehearsal  the image's content (deploy/collect-files), as the runtime's container: arguments,
             variables and user as written there, the model where KServe's storage initializer leaves
             it, /mnt/models. Probes are asked as a kubelet does, then KServe's own client runs the
             model, and SIGTERM makes the readiness probe fail before the server ends
"""
import asyncio
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import kserve.models
import kubernetes.client
import numpy as np
import yaml
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image import Image
from service import MODELS, ROOT, Failed, Server, Tally

FOLDER = os.path.join(ROOT, "deploy", "kserve")
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}
WAIT_SECONDS = 60


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


# ---- schema --------------------------------------------------------------------------------------
def check_value(value, kind, place):
    found = re.fullmatch(r"[Ll]ist\[(.*)\]|[Dd]ict[\[(]str, (.*)[\])]", kind)
    if found and found[1]:
        if not isinstance(value, list):
            raise Failed(f"{place} is a list")
        for i, item in enumerate(value):
            check_value(item, found[1], f"{place}[{i}]")
    elif found:
        for key, item in value.items():
            check_value(item, found[2], f"{place}.{key}")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind != "bool" and isinstance(value, bool)):
            raise Failed(f"{place} is a {kind}, not {value!r}")
    elif kind != "object":
        check_model(value, kind, place)


def check_model(value, kind, place):
    model = getattr(kserve.models, kind, None) or getattr(kubernetes.client, kind, None)
    if model is None:
        raise Failed(f"{place}: nobody knows {kind}")
    members = {model.attribute_map[name]: (name, of) for name, of in model.openapi_types.items()}
    strange = set(value) - set(members)
    if strange:
        raise Failed(f"{place} of {kind} has no {', '.join(sorted(strange))}")
    for key, item in value.items():
        check_value(item, members[key][1], f"{place}.{key}")
    plain = {members[key][0]: item for key, item in value.items()}
    try:
        model(**plain)  # refuses None for what is required
    except ValueError as problem:
        raise Failed(f"{place} of {kind}: {problem}") from None


def check_schema(_binary):
    runtime, service = read("runtime.yaml"), read("service.yaml")
    check_model(runtime, "V1alpha1ClusterServingRuntime", "runtime")
    check_model(service, "V1beta1InferenceService", "service")
    for broken, kind in (({**runtime, "spec": {**runtime["spec"], "container": []}},
                          "V1alpha1ClusterServingRuntime"),
                         ({**service, "spec": {}}, "V1beta1InferenceService")):
        try:
            check_model(broken, kind, "broken")
        except Failed:
            continue
        raise Failed(f"a broken {kind} passes")
    spec, model = runtime["spec"], service["spec"]["predictor"]["model"]
    formats = [(row["name"], row["version"]) for row in spec["supportedModelFormats"]]
    if ((model["modelFormat"]["name"], model["modelFormat"]["version"]) not in formats
        or model["runtime"] != runtime["metadata"]["name"]
        or model["protocolVersion"] not in spec["protocolVersions"]
        or [row["name"] for row in spec["containers"]] != ["kserve-container"]):
        raise Failed("the service asks for what the runtime is not")


# ---- rehearsal -----------------------------------------------------------------------------------
def mounted(program, models, scratch):
    """The program with the folder at /mnt/models, for it alone."""
    path, mnt = os.path.join(scratch, "container"), os.path.join(scratch, "mnt")
    os.makedirs(mnt)
    shutil.copytree(models, os.path.join(mnt, "models"))
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec unshare --mount --propagation private sh -c 'mount --bind "
                   f"\"{mnt}\" /mnt && exec \"{program}\" \"$@\"' sh \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def container(binary, scratch):
    """(program, arguments, environment, probes) of the runtime's container."""
    row, name = read("runtime.yaml")["spec"]["containers"][0], read("service.yaml")["metadata"]["name"]
    content, models = os.path.join(scratch, "content"), os.path.join(scratch, "volume")
    subprocess.run([os.path.join(ROOT, "deploy", "collect-files"), binary, content], check=True,
                   capture_output=True)
    os.makedirs(models)
    shutil.copy(os.path.join(MODELS, "digits.pt2"), os.path.join(models, "digits.pt2"))
    os.chmod(scratch, 0o755)
    data = os.path.join(scratch, "data")
    os.makedirs(data)
    os.chown(data, 65532, 65532)
    program = Image(content, scratch).program("image", ["/mnt"], as_user=True, data=data)
    words = [word.replace("{{.Name}}", name) for word in row["args"]]
    environment = {entry["name"]: entry["value"] for entry in row["env"]}
    del environment["FXSERVE_LISTEN"]  # Server chooses a port
    return mounted(program, models, scratch), words[1:], environment, row


def probe(server, row, wanted, seconds):
    """Asks as often as its period says until it is `wanted`."""
    until = time.monotonic() + seconds
    while True:
        try:
            got = server.call("GET", row["httpGet"]["path"]).status
        except OSError:
            got = None
        if (got == 200) == wanted:
            return
        if time.monotonic() > until:
            raise Failed(f"{row['httpGet']['path']} is {got} for {seconds} s")
        time.sleep(0.1)


async def infer(url, name):
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=WAIT_SECONDS))
    if not await client.is_server_ready(url) or not await client.is_model_ready(url, name):
        raise Failed("KServe's client finds no model that is ready")
    x = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 1, 8, 8)
    results = []
    for binary in (True, False):
        row = InferInput("x", list(x.shape), "FP32")
        row.set_data_from_numpy(x, binary_data=binary)
        request = InferRequest(model_name=name, infer_inputs=[row])
        reply = await client.infer(url, request, model_name=name)
        results.append(reply.outputs[0].as_numpy().reshape(3, 10))
    return x, results


def check_rehearsal(binary):
    if os.geteuid() != 0:
        print("rehearsal left out: it mounts, so it wants root")
        return
    scratch = tempfile.mkdtemp(prefix="fxserve-cluster-")
    try:
        program, words, environment, row = container(binary, scratch)
        name = read("service.yaml")["metadata"]["name"]
        server = Server(program, words, folder=scratch, extra_environment=environment, listen="0.0.0.0:0")
        server.start()
        try:
            probe(server, row["startupProbe"], True, WAIT_SECONDS)
            probe(server, row["readinessProbe"], True, WAIT_SECONDS)
            probe(server, row["livenessProbe"], True, WAIT_SECONDS)
            x, results = asyncio.run(infer(f"http://127.0.0.1:{server.port}", name))
            reply = server.call("POST", f"/v1/graphs/{name}/run",
                                json.dumps({"inputs": {"x": x.tolist()}}).encode())
            known = np.array(reply.json()["outputs"][0]["data"], np.float32)
            for result in results:
                if not all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)
                           for a, b in zip(result.ravel(), known.ravel(), strict=True)):
                    raise Failed(f"{result} for {known}")
            path = read("runtime.yaml")["spec"]["annotations"]["prometheus.kserve.io/path"]
            if b"fxserve_requests_total" not in server.call("GET", path).body:
                raise Failed("no metrics where the runtime says")
            server.signal(signal.SIGTERM)
            probe(server, row["readinessProbe"], False, WAIT_SECONDS)
            problems = server.ended(0)
            if problems:
                raise Failed("; ".join(problems))
        finally:
            server.kill()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    tally, binary = Tally(), os.path.abspath(sys.argv[1])
    for case in (check_schema, check_rehearsal):
        try:
            case(binary)
            tally.ok()
        except (Failed, OSError, KeyError, ValueError, subprocess.CalledProcessError) as failure:
            tally.bad(case.__name__, repr(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
