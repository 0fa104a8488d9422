# SPDX-License-Identifier: Apache-2.0
"""Samples written by the tools, uploaded with the model: verifying.py FXSERVE.

Needs torch 2.13. Each model is exported with samples, as a person does, and uploaded with them. It
must become the default version. The same model with one weight changed must be refused with 409
verification_failed, naming the node that the weight belongs to, and the first version must go on
serving.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tools")]
from samples import write_samples
from service import Server, Tally

MODELS = '''
import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x, y):
        return {"sum": self.last(self.norm(torch.relu(self.first(x)))) + y, "pair": (x, y)}

class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.conv, self.bn = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.flatten(torch.relu(self.bn(self.conv(x))), 1)

class Inplace(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(5.0))

    def forward(self, x):
        y = x + 1
        z = y.mul_(self.weight)
        return torch.exp(-z), y

class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(5.0))

    def forward(self, x):
        x.mul_(2)
        return x * self.weight + torch.rand_like(x)
'''
# class: (its inputs, the weight that is changed, the node of the FX graph, the node of the export)
CASES = {"Mlp": (["x=float32[N,6]", "y=float32[N,3]"], "last.weight", "last", "linear_1"),
         "Conv": (["x=float32[N,1,7,7]"], "conv.bias", "conv", "conv2d"),
         "Inplace": (["x=float32[N,5]"], "weight", "mul_", "mul_"),
         "Drawing": (["x=float32[N,5]"], "weight", "mul", "mul")}


def run(folder, *words):
    subprocess.run([sys.executable, *map(str, words)], cwd=folder, check=True,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})


def upload(server, name, parts):
    boundary, body = "between-the-parts", b""
    for part, path in parts.items():
        body += (f"--{boundary}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{part}\"\r\n"
                 "\r\n").encode() + path.read_bytes() + b"\r\n"
    return server.call("PUT", f"/v1/graphs/{name}", body + f"--{boundary}--\r\n".encode(),
                       [("Content-Type", f"multipart/form-data; boundary={boundary}")])


def expect(what, got, want):
    assert got == want, f"{what}: {got!r}, expected {want!r}"


def check(server, name, parts, changed, node):
    """The parts are taken; with the changed part they are not."""
    reply = upload(server, name, parts)
    expect(f"upload ({reply.short()})", reply.status, 201)
    expect("default version", reply.json()["version"], 1)
    reply = upload(server, name, {**parts, **changed})
    expect(f"changed weight ({reply.short()})", (reply.status, reply.json().get("code")),
           (409, "verification_failed"))
    expect("node", reply.json().get("node"), node)
    info = server.call("GET", f"/v1/graphs/{name}").json()
    expect("version that serves", info["version"], 1)
    reply = server.call("POST", "/v1/compare", b'{"a": {"graph": "%s"}, "b": {"samples": 1}, "nodes": true}'
                        % name.encode())
    expect(f"the stored samples ({reply.short()})", reply.json().get("equal"), True)
    assert reply.json()["nodes"], "the samples have no nodes"


def traced(server, folder, name):
    inputs, weight, node, _ = CASES[name]
    declared = [word for text in inputs for word in ("--input", text)]
    run(folder, ROOT / "tools" / "export_fx.py", f"models.py:{name}", f"{name}.json", *declared,
        "--samples", "3", "--sample-nodes")
    parts = {"graph": folder / f"{name}.json", "weights": folder / f"{name}.safetensors",
             "samples": folder / f"{name}.samples.safetensors"}
    from safetensors.torch import load_file, save_file
    tensors = load_file(parts["weights"])
    tensors[weight].view(-1)[1] += 0.5
    save_file(tensors, folder / "other.safetensors")
    check(server, f"{name}-fx", parts, {"weights": folder / "other.safetensors"}, node)


def batch(text, n):
    sizes = text[text.index("[") + 1:-1].replace("N", str(n))
    return torch.randn([int(size) for size in sizes.split(",")])


def exported(server, folder, name):
    """samples.py as a program."""
    scope = {}
    exec(MODELS, scope)
    texts, weight, _, node = CASES[name]
    module, inputs = scope[name]().eval(), [tuple(batch(text, n) for text in texts) for n in (2, 3)]
    dynamic = [{0: torch.export.Dim("n")} for _ in texts]
    for path in ("model.pt2", "other.pt2"):
        torch.export.save(torch.export.export(module, inputs[0], dynamic_shapes=dynamic), folder / path)
        with torch.no_grad():
            operator = dict(module.state_dict())[weight]
            operator.view(-1)[1] += 0.5
    torch.save(inputs, folder / "inputs.pt")
    run(folder, ROOT / "tools" / "samples.py", "--nodes", "model.pt2", "inputs.pt", "s.safetensors")
    check(server, f"{name}-pt2", {"graph": folder / "model.pt2", "samples": folder / "s.safetensors"},
          {"graph": folder / "other.pt2"}, node)


def without_nodes(server, folder, name):
    """Outputs alone: the difference is that of the output's node."""
    module = nn.Linear(4, 2)
    gm = torch.fx.symbolic_trace(nn.Sequential(module))
    from export_fx import dumps, export_fx
    for path in ("g.json", "h.json"):
        (folder / path).write_text(dumps(export_fx(gm, inline=True)[0]), encoding="utf-8")
        if path == "g.json":
            write_samples(gm, [(torch.randn(3, 4),)], folder / "s.safetensors")
        with torch.no_grad():
            module.bias += 1
    reply = upload(server, name, {"graph": folder / "g.json", "samples": folder / "s.safetensors"})
    expect(f"upload ({reply.short()})", reply.status, 201)
    reply = upload(server, name, {"graph": folder / "h.json", "samples": folder / "s.safetensors"})
    expect("changed weight", (reply.status, reply.json().get("code")), (409, "verification_failed"))


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    torch.manual_seed(0)
    tally = Tally()
    server = Server(sys.argv[1], ["--quiet"]).start()
    try:
        for name in CASES:
            for how in (traced, exported):
                with tempfile.TemporaryDirectory() as folder:
                    folder = pathlib.Path(folder)
                    (folder / "models.py").write_text(MODELS, encoding="utf-8")
                    attempt(tally, f"{name} {how.__name__}", how, server, folder, name)
        with tempfile.TemporaryDirectory() as folder:
            attempt(tally, "without values of nodes", without_nodes, server, pathlib.Path(folder), "plain")
        tally.check("the server ends", "\n".join(server.stop()))
    finally:
        server.clean_up()
    return tally.end()


def attempt(tally, what, function, *arguments):
    try:
        function(*arguments)
        tally.check(what, "")
    except Exception as problem:  # any failure is the case's
        tally.check(what, f"{type(problem).__name__}: {problem}")


if __name__ == "__main__":
    sys.exit(main())
