# SPDX-License-Identifier: Apache-2.0
"""Golden cases of fxserve::stats: tests/golden/observe.jsonl and .safetensors, in the form of
tests/golden/README.md. PyTorch has no such operator; observed_stats.py says it with those it has.

    python tools/generate/make_observe_goldens.py
"""

import pathlib

from needed import need

need("torch==2.13.0", "safetensors")

import torch

import observed_stats  # noqa: F401: defines torch.ops.fxserve
from count_goldens import TABLE, counted, table
from golden_hand import bf16, boolean, f16, f32, f64, i8, i32, i64, inf, ints, nan, ramp, t, u8
from make_goldens import Candidate, write_group

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"


def tensors():
    generator = torch.Generator().manual_seed(7)
    for dtype in (f16, bf16, f32, f64):
        yield ramp(3, 5, dtype=dtype)
        yield torch.randn(7, 131, generator=generator).to(dtype)
        yield t([nan, inf, -inf, 0.0, -0.0, 1.5, -2.5, 0.5], dtype)
        yield t([nan, inf, -inf], dtype)
        yield t([2.5], dtype)
        yield t([2.5, 2.5, nan], dtype)
        yield torch.zeros(0, 3, dtype=dtype)
        yield torch.tensor(-1.25, dtype=dtype)
        yield ramp(4, 6, dtype=dtype)[1:3, ::2]
        yield ramp(4, 6, dtype=dtype).t()
        yield ramp(1, 3, 1, dtype=dtype).expand(4, 3, 5)
        yield ramp(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
    for dtype in (u8, i8, i32, i64):
        low = 0 if dtype == u8 else -4
        yield ints(5, 7, low=low).to(dtype)
        yield ints(4, 6, low=low).to(dtype)[:, 1::2]
        yield torch.zeros(0, dtype=dtype)
        yield torch.full((3,), 9).to(dtype)
    yield t([2**62 + 1, -(2**62) - 1, 0], i64)
    yield t([2**63 - 1, -(2**63), 2**53 + 1], i64)
    yield t([True, False, True, True])
    yield torch.zeros(2, 0, dtype=boolean)
    yield t([1e30, -1e30, 1.0], f64)
    yield torch.arange(1000, dtype=f32) / 999


def main():
    stats = torch.ops.fxserve.stats.default
    cases = [Candidate(stats, [tensor], {}, "hand") for tensor in tensors()]
    write_group(FOLDER, "observe", cases, {}, False)
    print(f"{len(cases)} cases")
    TABLE.write_text(table(counted()), encoding="utf-8")


if __name__ == "__main__":
    main()
