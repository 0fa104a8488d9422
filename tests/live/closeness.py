# SPDX-License-Identifier: Apache-2.0
"""Messages of POST /v1/compare against torch.testing.assert_close: closeness.py FXSERVE.

Needs torch 2.13. Two graphs return one of two inputs each, so any two tensors can be compared.
Whether they are close, and the text when they are not, must be PyTorch's.
"""
import base64
import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service")]

from service import Server, Tally

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
NAN, INF = float("nan"), float("inf")


def side(returned):
    return json.dumps({"format": "fx/1", "nodes": [
        {"op": "placeholder", "name": "a", "target": "a"}, {"op": "placeholder", "name": "b", "target": "b"},
        {"op": "output", "name": "output", "target": "output", "args": [returned]}]}).encode()


def sent(tensor):
    raw = torch.empty(0, dtype=torch.uint8)
    if tensor.numel():
        raw = tensor.contiguous().reshape(-1).view(torch.uint8)
    return {"dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape),
            "b64": base64.b64encode(bytes(raw.tolist())).decode()}


def random_pairs():
    generator = torch.Generator().manual_seed(1)
    for dtype in FLOATS:
        for shape in ([], [1], [7], [3, 4], [2, 3, 300], [0, 3]):
            for noise in (0, 1e-8, 1e-6, 1e-5, 1e-3, 0.1):
                for scale in (1e-3, 1, 1e3):
                    a = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
                    b = a + torch.randn(shape, generator=generator, dtype=torch.float64) * noise * scale
                    yield a.to(dtype), b.to(dtype)
    for dtype in INTS:
        for shape in ([], [5], [4, 4]):
            for _ in range(4):
                a = torch.randint(0, 3, shape, generator=generator)
                yield a.to(dtype), torch.randint(0, 3, shape, generator=generator).to(dtype)
                yield a.to(dtype), a.to(dtype)


def special_pairs():
    t = torch.tensor
    yield t([1.0, NAN, INF]), t([1.0, NAN, INF])
    yield t([1.0, NAN, -INF]), t([1.0, 2.0, INF])
    yield t([0.0, 1.0]), t([1.0, 0.0])
    yield t([-0.0]), t([0.0])
    yield t(NAN), t(NAN)
    yield t(NAN), t(1.0)
    yield t(INF), t(1.0)
    yield t(1.0), t(0.0)
    yield t([1, 2]), t([1.0, 2.0])
    yield t([1, 2]), t([1, 2, 3])
    yield t([[1.0]]), t(1.0)
    yield t([2**62, -2**62]), t([2**62 + 1, 2**62])
    yield t([1, 2], dtype=torch.int32), t([1, 2])
    yield t(True), t(False)
    yield t(3), t(0)
    yield t([65504.0], dtype=torch.float16), t([-65504.0], dtype=torch.float16)


def wanted(a, b, options):
    try:
        torch.testing.assert_close(a, b, **options)
    except AssertionError as error:
        return str(error)
    return None


def main():
    tally, n, problems = Tally(), 0, []
    server = Server(sys.argv[1], ["--data", "none", "--quiet"]).start()
    try:
        for name in "ab":
            server.call("PUT", f"/v1/graphs/{name}", side("%" + name))
        for a, b in list(random_pairs()) + list(special_pairs()):
            for options in ({}, {"rtol": 0.0, "atol": 0.0}, {"rtol": 0.01, "atol": 0.5}, {"equal_nan": True}):
                body = {"a": {"graph": "a"}, "b": {"graph": "b"}, "inputs": {"a": sent(a), "b": sent(b)},
                        "nodes": False, **options}
                reply = server.call("POST", "/v1/compare", json.dumps(body).encode())
                got = reply.json()["outputs"][0].get("message") if reply.status == 200 else reply.short()
                n += 1
                if got != wanted(a, b, options):
                    problems.append(f"{a.dtype} {list(a.shape)} {options}:\n    {got!r}\n"
                                    f"    {wanted(a, b, options)!r}")
    finally:
        server.stop()
    tally.check(f"{n} pairs of tensors, {len(problems)} unlike PyTorch", "\n  ".join(problems[:8]))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
