# SPDX-License-Identifier: Apache-2.0
"""Weights of four bits, packed by different processors, against PyTorch.

    .venv/bin/python tests/live/packed_weights.py build/fxserve [--cases N] [--seed N]

Exports call aten._weight_int4pack_mm_for_cpu with weights as each processor packs them, or pack them
in the graph, and are uploaded with ?packed_on=. PyTorch computes with the weights of its own
processor. A result is PyTorch's by assert_close, or no further from the exact one than PyTorch's
furthest. A row has the same bits alone. Without ?packed_on= the upload is refused with a message that
names it. Needs torch 2.13 and numpy. The last line is `N passed, N failed`.
"""

import argparse
import io
import json
import pathlib
import random
import sys
import warnings

import torch
from torch import nn
from torch.export.pt2_archive._package import package_pt2

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live"),
                str(ROOT / "tools" / "generate")]

from differential import decode_tensor
from golden_int4 import HERE, ORDERS, pack
from random_graphs import encode_tensor
from service import serving

A = torch.ops.aten


class Layer(nn.Module):
    """`packed_on` None: the graph packs its weights."""

    def __init__(self, levels, group, scales, packed_on):
        super().__init__()
        self.group, self.packs = group, packed_on is None
        self.register_buffer("weight", levels if self.packs else pack(levels, packed_on))
        self.register_buffer("scales", scales)

    def forward(self, x):
        weight = A._convert_weight_to_int4pack_for_cpu(self.weight, 2) if self.packs else self.weight
        return A._weight_int4pack_mm_for_cpu(x, weight, self.group, self.scales)


def problem(got, want, exact):
    try:
        torch.testing.assert_close(got, want)
    except AssertionError as error:
        off, allowed = (got - exact).abs().max(), (want - exact).abs().max()
        return "" if got.dtype == want.dtype and off <= allowed else str(error)
    return ""


def archive_of(module, x):
    archive, shapes = io.BytesIO(), ({0: torch.export.Dim("n", min=1, max=64)},)
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=shapes), archive)
    return archive.getvalue()


def run(server, x, mode):
    body = {"inputs": [encode_tensor(x)], "mode": mode, "encoding": "b64"}
    reply = server.call("POST", "/v1/graphs/m/run", json.dumps(body).encode())
    return reply.body[:300] if reply.status != 200 else decode_tensor(reply.json()["outputs"][0])


def exact_result(x, levels, group, scales):
    scale, zero = (scales.double()[:, :, at].t().repeat_interleave(group, 1) for at in (0, 1))
    return x.double() @ ((levels - 8) * scale + zero).t()


def try_case(server, tally, chance, label):
    group = chance.choice((32, 64, 128, 256))
    depth, rows = group * chance.randint(1, 3), 16 * chance.randint(1, 12)
    dtype = chance.choice((torch.float32, torch.bfloat16, torch.float16))
    x = torch.randn(chance.randint(2, 9), depth).to(dtype)
    levels = torch.randint(0, 16, (rows, depth), dtype=torch.int32)
    scales = (torch.randn(depth // group, rows, 2) * 0.1).to(dtype)
    want = Layer(levels, group, scales, HERE)(x)
    exact = exact_result(x, levels, group, scales)
    for packed_on in (*ORDERS, None):
        archive = archive_of(Layer(levels, group, scales, packed_on), x)
        refused = server.call("PUT", "/v1/graphs/m", archive)
        tally.check(f"{label}: said", "" if refused.status == 422 and b"?packed_on=" in refused.body
                    else refused.body[:300])
        told = packed_on or chance.choice(tuple(ORDERS))
        reply = server.call("PUT", f"/v1/graphs/m?packed_on={told}", archive)
        tally.check(f"{label}: uploaded", "" if reply.status in (200, 201) else reply.body[:300])
        for mode in ("eager", "compiled"):
            got, alone = run(server, x, mode), run(server, x[-1:], mode)
            words = got if isinstance(got, bytes) else problem(got, want, exact)
            if not words:
                words = alone if isinstance(alone, bytes) else (
                    "" if torch.equal(alone, got[-1:]) else "a row has other bits alone")
            tally.check(f"{label}: {rows} x {depth} by {group}, {dtype}, {packed_on}, {mode}", words)


def try_models(server, tally):
    """Two models of one archive are two graphs."""
    x, archive = torch.ones(2, 32), io.BytesIO()
    models = {name: Layer(torch.full((64, 32), level, dtype=torch.int32), 32, torch.ones(1, 64, 2), "AVX512")
              for name, level in (("a", 9), ("b", 12))}
    package_pt2(archive, exported_programs={name: torch.export.export(model, (x,))
                                            for name, model in models.items()})
    for name, want in (("a", 64.0), ("b", 160.0), ("a", 64.0)):  # 32 * (level - 8 + 1)
        reply = server.call("PUT", f"/v1/graphs/two?packed_on=AVX512&model={name}", archive.getvalue())
        tally.check(f"model {name}: uploaded", "" if reply.status in (200, 201) else reply.body[:300])
        reply = server.call("POST", "/v1/graphs/two/run", json.dumps({"inputs": [encode_tensor(x)]}).encode())
        got = reply.json()["outputs"][0]["data"][0][0] if reply.status == 200 else reply.body[:300]
        tally.check(f"model {name}", "" if got == want else f"{got}, not {want}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server")
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    torch.manual_seed(options.seed)
    with serving(options.server) as (server, tally):
        for case in range(options.cases):
            try_case(server, tally, chance, f"case {case}")
        try_models(server, tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
