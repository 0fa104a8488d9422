# SPDX-License-Identifier: Apache-2.0
"""Runs the models of tests/models over HTTP: models.py FXSERVE [NAME].

Every input set of every model goes in as nested lists, as base64 and (a single input, a single
output) as npy, eagerly and as a compiled program; each output must be within 1e-4 * max(1, largest
|expected|) of what PyTorch 2.13 gave. Weights that are not committed are made by
tools/generate/seeded_weights.py and checked against their sha256. A model runs every set twice with
the other sets between, so that nothing may leak from one run into another.
"""
import glob
import hashlib
import json
import os
import sys

from service import (MODELS, ROOT, Failed, Server, Tally, Tensor, assert_close, model_file, multipart,
                     read_array, read_npy, read_safetensors, reply_tensor, write_arrays, write_npy)

sys.path.insert(0, os.path.join(ROOT, "tools", "generate"))
import seeded_weights


def upload(server, name, path):
    """Uploads a model, with generated weights if it has a .sha256; its info."""
    content = model_file(path)
    checksum = os.path.join(MODELS, name + ".sha256")
    headers = []
    if os.path.exists(checksum):
        weights = seeded_weights.safetensors_bytes(seeded_weights.make_state(json.loads(content)["modules"]))
        with open(checksum, encoding="utf-8") as file:
            wanted = file.read().split()[0]
        if hashlib.sha256(weights).hexdigest() != wanted:
            raise Failed(f"the weights' SHA-256 is {hashlib.sha256(weights).hexdigest()}, expected {wanted}")
        body, content_type = multipart([("graph", content), ("weights", weights)])
        content, headers = body, [("Content-Type", content_type)]
    reply = server.call("PUT", f"/v1/graphs/{name}", content, headers, seconds=60)
    if reply.status != 201:
        raise Failed(f"upload: {reply.short()}")
    return reply.json()


def sets_of(name):
    """[(inputs, outputs)] as tensors."""
    tensors, metadata = read_safetensors(os.path.join(MODELS, name + ".safetensors"))
    out = []
    for number, row in enumerate(json.loads(metadata["sets"])):
        inputs = [tensors[leaf["key"]] if leaf["key"] in tensors
                  else Tensor("float32", leaf["shape"], seeded_weights.make_input(leaf["shape"], number))
                  for leaf in row["inputs"]]
        out.append((inputs, [tensors[leaf["key"]] for leaf in row["outputs"]]))
    return out


def ask(server, name, mode, query, body):
    reply = server.call("POST", f"/v1/graphs/{name}/run?mode={mode}{query}", body, seconds=600)
    if reply.status != 200:
        raise Failed(reply.short())
    return reply


def compare(reply, outputs):
    got = reply.json()["outputs"]
    if len(got) != len(outputs):
        raise Failed(f"{len(got)} outputs, expected {len(outputs)}")
    for entry, want in zip(got, outputs):
        assert_close(reply_tensor(entry), want, entry["name"])


def compare_arrays(kind, reply, info, outputs):
    for entry, want in zip(info["outputs"], outputs):
        assert_close(read_array(kind, reply.body, entry["name"]), want, entry["name"])


def check_example(server, tally, name):
    """What GET .../example gives runs, and the state can be fetched."""
    example = server.call("GET", f"/v1/graphs/{name}/example", seconds=120)
    reply = server.call("POST", f"/v1/graphs/{name}/run", example.body,
                        seconds=120) if example.status == 200 else example
    tally.check(f"{name}'s example", None if reply.status == 200 else reply.short())
    weights = server.call("GET", f"/v1/graphs/{name}/weights", seconds=120)
    tally.check(f"{name}'s weights", None if weights.status == 200 and weights.body[8:9] == b"{"
                else weights.short())


def attempts(server, name, info, inputs, outputs, mode):
    """(what, callable) per form."""
    names = [entry["name"] for entry in info["inputs"]]
    lists = json.dumps({"inputs": {key: tensor.nested() for key, tensor in zip(names, inputs)}}).encode()
    b64 = json.dumps({"inputs": [tensor.as_b64() for tensor in inputs], "encoding": "b64"}).encode()
    yield "lists", lambda: compare(ask(server, name, mode, "", lists), outputs)
    yield "b64", lambda: compare(ask(server, name, mode, "", b64), outputs)
    yield "flat", lambda: compare(ask(server, name, mode, "&encoding=flat", lists), outputs)
    for kind, reply_kind in (("deflated", "npz"), ("safetensors", "safetensors")):
        body = write_arrays(kind, list(zip(names, inputs)))
        yield (kind, lambda kind=reply_kind, body=body: compare_arrays(
            kind, ask(server, name, mode, f"&as={kind}", body), info, outputs))
    if len(inputs) == 1 and len(outputs) == 1:
        yield ("npy", lambda: assert_close(read_npy(ask(server, name, mode, "&as=npy",
                                                        write_npy(inputs[0])).body), outputs[0], "npy"))


def check_model(server, tally, name, path):
    try:
        info = upload(server, name, path)
        sets = sets_of(name)
    except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
        tally.bad(name, problem)
        return
    large = sum(len(tensor.data) for tensor in sets[0][0]) > 400000
    for turn in range(1 if large else 2):
        for number, (inputs, outputs) in enumerate(sets):
            for mode in ("eager", "compiled"):
                for what, attempt in attempts(server, name, info, inputs, outputs, mode):
                    try:
                        attempt()
                        tally.ok()
                    except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
                        tally.bad(f"{name}, set {number} as {what}, {mode}, turn {turn + 1}", problem)
    check_example(server, tally, name)


def check_names(server, tally):
    """Dotted module paths are printed and stand in the profile."""
    tally.check("nested_conv prints its modules", None if all(
        word in server.call("GET", "/v1/graphs/nested_conv/text").body for word in
        (b"%my_module_conv1 : [num_users=1] = call_module[target=my_module.conv1](args = (%x,), kwargs = {})",
         b"%nested_module_pool : [num_users=1] = call_module[target=nested_module.pool](args "
         b"= (%my_module_relu,), kwargs = {})")) else "a line is missing")
    inputs, _ = sets_of("nested_conv")[0]
    reply = ask(server, "nested_conv", "eager", "&profile=1",
                json.dumps({"inputs": [inputs[0].nested()]}).encode())
    targets = [node["target"] for node in reply.json()["profile"]["nodes"]]
    tally.check("nested_conv profiles its modules", None if {"my_module.conv1", "nested_module.pool"}
                <= set(targets) else f"targets are {targets}")


def check_digits(server, tally):
    reply = ask(server, "digits", "eager", "", model_file("digits_images.json"))
    labels = json.loads(model_file("digits_labels.json"))
    labels = labels["labels"] if isinstance(labels, dict) else labels
    rows = reply.json()["outputs"][0]["data"]
    right = sum(max(range(10), key=row.__getitem__) == label for row, label in zip(rows, labels))
    tally.check("digits", None if right >= 9 and len(rows) == 10 else f"{right} of {len(rows)} are right")


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: models.py FXSERVE [NAME]")
        return 2
    only = sys.argv[2] if len(sys.argv) == 3 else ""
    tally, server = Tally(), Server(sys.argv[1], ["--data", "none", "--quiet"]).start()
    paths = sorted(os.path.basename(path) for pattern in ("*.pt2", "*.fx.json")
                   for path in glob.glob(os.path.join(MODELS, pattern)))
    try:
        for path in paths:
            name = path.split(".")[0]
            if only in name:
                check_model(server, tally, name, path)
        if not only:
            check_names(server, tally)
            check_digits(server, tally)
    except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
        tally.bad("models", problem)
    tally.check("the server's end", "\n".join(server.stop()))
    server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
