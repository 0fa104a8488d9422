# SPDX-License-Identifier: Apache-2.0
"""Custom operators that come along with an upload as graphs, against PyTorch.

    python tests/live/operators.py build/fxserve

Needs torch 2.13 and numpy. Models that call operators of torch.library.custom_op are exported; each
operator's meaning, traced by torch.fx or exported, is sent beside the model as "op:NAME". Runs in
both modes, after a restart, too, have to give what PyTorch gives. The last line is `N passed, N
failed`.
"""
import io
import json
import pathlib
import sys
import tempfile
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live"), str(ROOT / "tools")]

from compare import values_problem
from differential import decode_tensor
from export_fx import dumps, export_fx
from random_graphs import encode_tensor
from service import Server, Tally, multipart

MODES = ("eager", "compiled")


def smooth_relu(x, slope):
    return torch.where(x > 0, x, x * slope).sigmoid() * x


def split_norm(x, weight, eps=1e-3):
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps) * weight, mean


def twice(x):
    return torch.ops.fxlive.smooth_relu(torch.ops.fxlive.smooth_relu(x, 0.1), 0.2)


def declare():
    library = torch.library.Library("fxlive", "DEF")
    for schema, function in (("smooth_relu(Tensor x, float slope) -> Tensor", smooth_relu),
                             ("split_norm(Tensor x, Tensor weight, float eps=1e-3) -> (Tensor, Tensor)",
                              split_norm), ("twice(Tensor x) -> Tensor", twice)):
        name = library.define(schema)
        library.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"fxlive::{name}", function, lib=library)
    return library


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x):
        return torch.ops.fxlive.smooth_relu(self.linear(x), 0.25)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 6))

    def forward(self, x):
        normed, mean = torch.ops.fxlive.split_norm(x, self.weight, eps=0.01)
        again, _ = torch.ops.fxlive.split_norm(normed, self.weight)
        return again + mean, torch.ops.fxlive.smooth_relu(x, 0.5)


class Nested(nn.Module):
    def forward(self, x):
        return torch.ops.fxlive.twice(x) + 1


def traced(function):
    """The operator's meaning as FX JSON."""
    return dumps(export_fx(torch.fx.symbolic_trace(function))[0]).encode()


def exported(module, x):
    program = torch.export.export(module, (x, ), dynamic_shapes=({0: torch.export.Dim("n", min=2)}, ))
    out = io.BytesIO()
    torch.export.save(program, out)
    return out.getvalue()


def put(server, name, parts):
    body, kind = multipart(parts)
    return server.call("PUT", f"/v1/graphs/{name}", body, [("Content-Type", kind)])


def runs(server, tally, name, module):
    for n in (4, 7):
        x = torch.randn(n, 6)
        want = module(x)
        want = [value.detach() for value in (want if isinstance(want, tuple) else (want, ))]
        for mode in MODES:
            body = {"inputs": {"x": encode_tensor(x)}, "mode": mode, "encoding": "b64"}
            reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
            if reply.status != 200:
                tally.bad(f"{name}, {n}, {mode}", reply.short())
                continue
            got = [decode_tensor(entry) for entry in reply.json()["outputs"]]
            tally.check(f"{name}, {n}, {mode}", values_problem(got, want))


CASES = (("plain", Plain, ("smooth_relu", )), ("two", Two, ("split_norm", "smooth_relu")),
         ("nested", Nested, ("twice", "smooth_relu")))


def main():
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    library = declare()
    meanings = {"smooth_relu": traced(smooth_relu), "split_norm": traced(split_norm), "twice": traced(twice)}
    tally, modules = Tally(), {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], ["--data", folder + "/data", "--quiet"]).start()
        for name, kind, operators in CASES:
            modules[name] = kind()
            model = exported(modules[name], torch.randn(3, 6))
            reply = server.call("PUT", f"/v1/graphs/{name}", model)
            told = reply.status == 422 and "op:fxlive." in reply.json()["error"]
            tally.check(f"{name}: without its operators", None if told else reply.short())
            parts = [("graph", model), *((f"op:fxlive.{row}", meanings[row]) for row in operators)]
            reply = put(server, name, parts)
            tally.check(f"{name}: upload", None if reply.status == 201 else reply.short())
            runs(server, tally, name, modules[name])
            again = put(server, name, parts)
            tally.check(f"{name}: the same again", None if again.status == 200 else again.short())
        tally.check("the server's end", "\n".join(server.stop()))
        server = Server(sys.argv[1], ["--data", folder + "/data", "--quiet"]).start()
        for name, module in modules.items():
            runs(server, tally, name, module)
        tally.check("the server's second end", "\n".join(server.stop()))
    del library
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
