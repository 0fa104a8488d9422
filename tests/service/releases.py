# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of two builds bit for bit: releases.py OLD NEW [FOLDER...].

OLD takes every model of tests/models (and of each FOLDER: NAME.pt2 beside NAME.safetensors) into a
data folder and runs its input sets eagerly and compiled. NEW then starts on that folder, uploaded
by the other, and on an empty one, and must give the same bytes, ids and texts. Tuning is off: it
depends on the clock.
"""
import glob
import json
import os
import shutil
import sys
import tempfile

import models
from service import MODELS, Failed, Server, Tally, Tensor, model_file, read_safetensors

MODES = ("eager", "compiled")


def found(folder):
    """Names of the models in a folder that have input sets beside them."""
    paths = [path for pattern in ("*.pt2", "*.fx.json") for path in glob.glob(os.path.join(folder, pattern))]
    names = {os.path.basename(path).split(".")[0]: path for path in paths}
    return {name: path for name, path in names.items()
            if os.path.exists(os.path.join(folder, name + ".safetensors"))}


def answers(server, name, sets):
    """{(set, mode): what is the same in every release}."""
    out = {}
    for number, inputs in enumerate(sets):
        body = json.dumps({"inputs": inputs, "encoding": "b64"}).encode()
        for mode in MODES:
            reply = server.call("POST", f"/v1/graphs/{name}/run?mode={mode}", body, seconds=300)
            key = f"set {number}, {mode}"
            out[key] = (reply.status, reply.json().get("outputs") if reply.status == 200 else reply.body)
    for form in ("graph", "code"):
        out[form] = server.call("GET", f"/v1/graphs/{name}/text?form={form}").body
    out["id"] = server.call("GET", f"/v1/graphs/{name}").json().get("id")
    return out


def upload(server, name, path):
    """None, or why the model was refused."""
    if os.path.dirname(path) == MODELS:
        models.upload(server, name, os.path.basename(path))
        return None
    reply = server.call("PUT", f"/v1/graphs/{name}", model_file(path), seconds=120)
    return None if reply.status == 201 else reply.status


def ask(server, folder_models, with_upload):
    seen = {}
    for name, (path, sets) in sorted(folder_models.items()):
        refused = upload(server, name, path) if with_upload else None
        seen[name] = {"refused": refused} if refused else answers(server, name, sets)
    return seen


def compare(tally, what, before, after):
    for name, first in before.items():
        if "refused" in first and "refused" not in after[name]:
            continue
        for key, value in first.items():
            same = after[name].get(key) == value
            tally.check(f"{what}: {name}, {key}", None if same else "another answer than before")


def read_sets(path):
    """[leaves], each leaf as a body holds it; made weights and inputs come from
    seeded_weights.py."""
    name = os.path.basename(path).split(".")[0]
    tensors, metadata = read_safetensors(os.path.join(os.path.dirname(path), name + ".safetensors"))

    def leaf_of(leaf, number):
        if "value" in leaf:
            return leaf["value"]
        made = None
        if leaf["key"] not in tensors:
            made = models.seeded_weights.make_input(leaf["shape"], number)
        return (tensors[leaf["key"]] if made is None else Tensor("float32", leaf["shape"], made)).as_b64()

    rows = json.loads(metadata["sets"])
    return [[leaf_of(leaf, number) for leaf in row["inputs"]] for number, row in enumerate(rows)]


def main():
    if len(sys.argv) < 3:
        print("usage: releases.py OLD NEW [FOLDER...]")
        return 2
    known = {}
    for folder in [MODELS] + sys.argv[3:]:
        known.update({name: (path, read_sets(path)) for name, path in found(folder).items()})
    tally, data = Tally(), tempfile.mkdtemp(prefix="fxserve-releases-")
    kept, none = ["--no-warm-up", "--quiet", "--data", data], ["--no-warm-up", "--quiet", "--data", "none"]
    old = Server(sys.argv[1], kept).start()
    before = ask(old, known, True)
    old.stop()
    stored = {name: entry for name, entry in known.items() if "refused" not in before[name]}
    new = Server(sys.argv[2], kept).start()
    compare(tally, "stored by OLD", {name: before[name] for name in stored}, ask(new, stored, False))
    new.stop()
    fresh = Server(sys.argv[2], none).start()
    compare(tally, "uploaded again", before, ask(fresh, known, True))
    fresh.stop()
    shutil.rmtree(data)
    runs = [value[0] for answer in before.values() for value in answer.values() if isinstance(value, tuple)]
    print(f"{len(stored)} models, {runs.count(200)} of {len(runs)} runs answered with numbers")
    return tally.end()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(str(problem))
