# SPDX-License-Identifier: Apache-2.0
"""Runs every model of tests/models over HTTP and compares with the outputs PyTorch 2.13 gave.

usage: models.py BINARY [FOLDER]

Every input set goes as JSON and as base64, eagerly and compiled: |difference| <= 1e-4 * max(1, largest |expected|). MLP and ResNet-18 bring weights and inputs made by
tools/seeded_weights.py, whose checksum is committed; they are uploaded as graph + weights. FOLDER: another folder of .pt2 files with .safetensors beside them.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from service import MODELS, ROOT, Failed, Server, Tally, assert_close, model_file, multipart, read_npy, read_safetensors, reply_tensor

GENERATED = ("mlp_784", "resnet18")
ENCODINGS = (("list", lambda tensor: tensor.as_list()), ("b64", lambda tensor: tensor.as_b64()))


def expect(reply, status, what):
    if reply.status != status:
        raise Failed(f"{what}: {reply.short()}")
    return reply.json()


def sets_of(path):
    """Input sets of a .safetensors file: [{leaf: Tensor or plain value}], [{leaf: Tensor}]."""
    tensors, metadata = read_safetensors(path)
    rows = json.loads(metadata["sets"])
    for number in range(len(rows)):
        yield ({int(key.split(".")[1]): tensor for key, tensor in tensors.items() if key.startswith(f"in{number}.")},
               {int(key.split(".")[1]): tensor for key, tensor in tensors.items() if key.startswith(f"out{number}.")})


def compare(server, name, info, inputs, outputs, tally, label):
    names = [row["name"] for row in info["inputs"]]
    for encoding, encode in ENCODINGS:
        for mode in ("eager", "compiled"):
            body = {"inputs": {names[leaf]: encode(tensor) for leaf, tensor in inputs.items()}, "encoding": encoding, "mode": mode}
            what = f"{name} {label} {encoding} {mode}"
            try:
                reply = expect(server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode(), seconds=120), 200, what)
                if not outputs:
                    raise Failed(f"{what}: no expected outputs")
                for leaf, want in outputs.items():
                    assert_close(reply_tensor(reply["outputs"][leaf]), want, f"{what} output {leaf}")
                tally.ok()
            except Failed as failure:
                tally.bad(what, failure)


def check_file(server, path, tally):
    name = os.path.basename(path).split(".")[0]
    with open(path, "rb") as file:
        info = expect(server.call("PUT", f"/v1/graphs/{name}", file.read()), 201, f"upload of {name}")
    for number, (inputs, outputs) in enumerate(sets_of(os.path.join(os.path.dirname(path), name + ".safetensors"))):
        compare(server, name, info, inputs, outputs, tally, f"set {number}")


def generate(name, folder, *arguments):
    script = os.path.join(ROOT, "tools", "seeded_weights.py")
    subprocess.run([sys.executable, script, os.path.join(MODELS, name + ".fx.json"), *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def check_generated(server, name, tally):
    outputs = [outputs for _, outputs in sets_of(os.path.join(MODELS, name + ".safetensors"))]
    with tempfile.TemporaryDirectory(prefix="fxserve-models-") as folder:
        weights = os.path.join(folder, "w")
        generate(name, folder, "--weights", weights)
        with open(weights, "rb") as file:
            blob = file.read()
        with open(os.path.join(MODELS, name + ".sha256"), encoding="utf-8") as file:
            tally.check(f"{name}: checksum of its weights", None if hashlib.sha256(blob).hexdigest() == file.read().split()[0] else "another one than committed")
        body, content_type = multipart([("graph", model_file(name + ".fx.json")), ("weights", blob)])
        info = expect(server.call("PUT", f"/v1/graphs/{name}", body, [("Content-Type", content_type)], seconds=120), 201, f"upload of {name}")
        for number, batch in enumerate(row[0].shape[0] for row in outputs):
            generate(name, folder, "--input", os.path.join(folder, "x.npy"), "--number", str(number), "--batch", str(batch))
            with open(os.path.join(folder, "x.npy"), "rb") as file:
                compare(server, name, info, {0: read_npy(file.read())}, outputs[number], tally, f"batch {batch}")


def check_nested(server, tally):
    """Module paths stand in the printed graph and in the profile."""
    text = expect_text(server.call("GET", "/v1/graphs/nested_conv/text?form=graph"))
    x = {"dtype": "float32", "shape": [1, 3, 8, 8], "data": [0.5] * 192}
    body = json.dumps({"inputs": {"x": x}, "profile": True, "mode": "eager"}).encode()
    targets = [row["target"] for row in expect(server.call("POST", "/v1/graphs/nested_conv/run", body), 200, "nested_conv")["profile"]["nodes"]]
    for path in ("my_module.conv1", "nested_module.pool"):
        tally.check(f"{path} is printed", None if f"call_module[target={path}]" in text else text)
        tally.check(f"{path} is in the profile", None if path in targets else str(targets))


def expect_text(reply):
    if reply.status != 200:
        raise Failed(reply.short())
    return reply.body.decode()


def main():
    tally = Tally()
    folder = sys.argv[2] if len(sys.argv) > 2 else MODELS
    server = Server(sys.argv[1], ["--data", "none", "--quiet"]).start()
    paths = sorted(glob.glob(os.path.join(folder, "*.pt2")) + glob.glob(os.path.join(folder, "*.fx.json")))
    tally.check("models", None if len(paths) >= 10 else "fewer than ten files")
    for path in paths:
        try:
            if os.path.basename(path).split(".")[0] in GENERATED:
                check_generated(server, os.path.basename(path).split(".")[0], tally)
            else:
                check_file(server, path, tally)
        except Failed as failure:
            tally.bad(os.path.basename(path), failure)
    if folder == MODELS:
        check_nested(server, tally)
    for problem in server.stop():
        tally.bad("the server", problem)
    server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
