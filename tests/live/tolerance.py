# SPDX-License-Identifier: Apache-2.0
"""Runs within a tolerance: the choice, what it says of itself, and what PyTorch gives.

    .venv/bin/python tests/live/tolerance.py build/fxserve [--seed N]

Graphs are uploaded with samples. The error that a profile names must be that of the outputs: it is measured
again, against the server's float32 and against PyTorch. A restart must keep the choice and its bits. Needs
torch 2.13, numpy and safetensors. The last line is `N passed, N failed`.
"""

import argparse
import io
import json
import pathlib
import re
import sys
import tempfile
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from differential import decode_tensor
from random_graphs import encode_tensor
from safetensors.torch import save
from service import serving


class Failed(Exception):
    pass


class Sensitive(nn.Module):
    """Products of one size. The result of the second is enlarged before it is used: there an error of
    rounding is large, in the others it is small."""

    def __init__(self, width=256):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(width, width) for _ in range(3))
        for layer in (self.first, self.second, self.third):
            nn.init.normal_(layer.weight, std=width ** -0.5)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        return self.third(torch.sin(self.second(h) * 40.0))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, activation="gelu")

    def forward(self, x):
        return self.block(x)


def parts(files):
    boundary = b"tolerance-parts"
    body = b"".join(b"--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n%s\r\n"
                    % (boundary, name.encode(), name.encode(), data) for name, data in files.items())
    return (body + b"--%s--\r\n" % boundary,
            {"Content-Type": "multipart/form-data; boundary=" + boundary.decode()})


def put(server, name, module, xs, n_samples):
    archive = io.BytesIO()
    shapes = ({0: torch.export.Dim("n", min=1, max=64)},)
    torch.export.save(torch.export.export(module, (torch.cat(xs[:2]),), dynamic_shapes=shapes), archive)
    files = {"graph": archive.getvalue()}
    if n_samples > 0:
        files["samples"] = save({f"{i}.inputs.x": x for i, x in enumerate(xs[:n_samples])})
    body, headers = parts(files)
    reply = server.call("PUT", f"/v1/graphs/{name}", body, list(headers.items()))
    if reply.status not in (200, 201):
        raise Failed(f"upload: {reply.status} {reply.body[:300]}")


def run(server, name, x, **options):
    body = {"inputs": [encode_tensor(x)], "mode": "compiled", "profile": True, "encoding": "b64", **options}
    reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps(body).encode())
    if reply.status != 200:
        raise Failed(f"{options}: {reply.status} {reply.body[:300]}")
    reply = reply.json()
    return decode_tensor(reply["outputs"][0]), reply["profile"]


def error_of(got, want):
    return float((got - want).abs().max()) / max(1.0, float(want.abs().max()))


def searches(server):
    text = server.call("GET", "/metrics").body.decode()
    return int(re.search(r"^fxserve_tolerance_searches_total (\d+)", text, re.M)[1])


def precisions(choice):
    return {node["node"]: node["precision"] for node in choice["nodes"]}


def greatest(server, name, module, xs, tolerance):
    """(the error that profiles say, that of the verifying samples against float32, against PyTorch)"""
    ours, torchs = 0.0, 0.0
    for x in xs[1::2]:
        got, profile = run(server, name, x, tolerance=tolerance)
        want, _ = run(server, name, x, precision="f32")
        with torch.no_grad():
            torchs = max(torchs, error_of(got, module(x)))
        ours = max(ours, error_of(got, want))
    return profile["tolerance"], ours, torchs


def check_errors(server, name, module, xs):
    seen = {}
    for tolerance in (0.5, 0.02, 0.0005, 1e-6):
        choice, ours, torchs = greatest(server, name, module, xs, tolerance)
        seen[tolerance] = precisions(choice)
        print(f"{name}, {tolerance}: {choice}")
        if abs(ours - choice["error"]) > 1e-6 + 1e-5 * ours:
            raise Failed(f"{name}: within {tolerance} it says {choice['error']:.4g}; measured are {ours:.4g}")
        if ours > tolerance or torchs > tolerance + 1e-4:
            raise Failed(f"{name}: within {tolerance}, but {ours:.4g} from float32, {torchs:.4g} from torch")
    return seen


def check_sensitive(server, module, xs):
    seen = check_errors(server, "net", module, xs)
    # with a tolerance between what the nodes bring, the sensitive one stays and the others do not
    _, profile = run(server, "net", xs[0], tolerance=0.5)
    wide = {node["node"]: node["error"] for node in profile["tolerance"]["nodes"]}
    if set(precisions(profile["tolerance"]).values()) == {"f32"}:
        raise Failed(f"within 0.5 nothing is narrow: {profile['tolerance']}")
    names = list(wide)
    split = [t for t, chosen in seen.items() if chosen and chosen[names[1]] == "f32"
             and "f32" not in (chosen[names[0]], chosen[names[2]])]
    if seen[0.5] == seen[0.0005]:
        raise Failed(f"a tighter tolerance changes nothing: {seen}")
    if any(precision != "f32" for precision in seen[1e-6].values()):
        raise Failed(f"within 1e-6 something is narrow: {seen[1e-6]}")
    return split


def check_f32(server, xs):
    for tolerance in (0, 1e-7):
        got, profile = run(server, "net", xs[0], tolerance=tolerance)
        want, other = run(server, "net", xs[0], precision="f32")
        if not torch.equal(got, want) or profile["program"] != other["program"]:
            raise Failed(f"within {tolerance} the bits are not float32's")


def check_batches(server, xs):
    """A sample's bits do not depend on its batch."""
    many = torch.cat(xs[:5])
    got, _ = run(server, "net", many, tolerance=0.02)
    for i, x in enumerate(xs[:5]):
        alone, _ = run(server, "net", x, tolerance=0.02)
        if not torch.equal(got[i:i + 1], alone):
            raise Failed("a sample has other bits in its batch")


def check_too_few(server, module, xs):
    for n in (0, 1):
        put(server, "few", module, xs, n)
        got, profile = run(server, "few", xs[0], tolerance=0.5)
        want, _ = run(server, "few", xs[0], precision="f32")
        choice = profile["tolerance"]
        if not torch.equal(got, want) or choice["nodes"] or "samples" not in choice["why"]:
            raise Failed(f"with {n} samples: {choice}")
        server.call("DELETE", "/v1/graphs/few")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net, block = Sensitive().eval(), Attention().eval()
    xs = [torch.randn(1, 256) for _ in range(9)]
    sequences = [torch.randn(2, 12, 128) for _ in range(6)]
    kept = {}

    def restart_keeps(server):
        if searches(server) != 0:
            raise Failed("the restart searched")
        got, profile = run(server, "net", xs[1], tolerance=0.02)
        if not torch.equal(got, kept["bits"]) or profile["tolerance"] != kept["choice"]:
            raise Failed(f"the restart has another choice: {profile['tolerance']}")
        if profile["program"] != kept["program"] or searches(server) != 0:
            raise Failed("the restart has another program, or searched")

    with tempfile.TemporaryDirectory() as data:
        def first(server, tally):
            put(server, "net", net, xs, 9)
            put(server, "block", block, sequences, 6)
            yield "errors that profiles say", lambda: check_sensitive(server, net, xs)
            yield "a transformer's", lambda: check_errors(server, "block", block, sequences)
            yield "no tolerance", lambda: check_f32(server, xs)
            yield "batches", lambda: check_batches(server, xs)
            yield "too few samples", lambda: check_too_few(server, net, xs)

        def attempt(tally, name, check):
            try:
                check()
                tally.ok()
            except Failed as problem:
                tally.bad(f"{name} (--seed {args.seed})", problem)

        with serving(args.program, "--data", data) as (server, tally):
            for name, check in first(server, tally):
                attempt(tally, name, check)
            got, profile = run(server, "net", xs[1], tolerance=0.02)
            kept.update(bits=got, choice=profile["tolerance"], program=profile["program"])
        with serving(args.program, "--data", data) as (server, _):
            attempt(tally, "a restart", lambda: restart_keeps(server))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
