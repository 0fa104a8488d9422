# SPDX-License-Identifier: Apache-2.0
"""Replays golden cases (tests/golden/README.md) in PyTorch and compares: values, strides, aliasing
and what was written.

    python tools/generate/replay_goldens.py [tests/golden/*.jsonl]

Also the reader of the format for other scripts: `read_cases`, `build_tensor`, `run_case`.
"""

import argparse
import functools
import hashlib
import json
import math
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from export_fx import decode_value
from golden_variants import place_tensor
from later_releases import differs_later
from make_goldens import find_overload
import observed_stats  # noqa: F401: defines torch.ops.fxserve


def stored(entry, tensors):
    """The values of {"$tensor": key}. complex128 stands there as float64, at any address: the copy is
    aligned."""
    values = tensors[entry["$tensor"]]
    values = torch.view_as_complex(values.clone()) if entry.get("complex") else values
    if "tiled" not in entry:
        return values
    n = math.prod(entry["tiled"])
    return values.repeat(-(-n // len(values)))[:n].reshape(entry["tiled"])


def build_tensor(entry, tensors):
    """The tensor of {"$tensor": key, "stride", "offset"} in a fresh storage with these strides and
    this offset."""
    values = stored(entry, tensors)
    return place_tensor(values, entry.get("stride", values.contiguous().stride()), entry.get("offset", 0))


def decode(value, tensors):
    if isinstance(value, dict) and "$tensor" in value:
        return build_tensor(value, tensors)
    if isinstance(value, list):
        return [decode(item, tensors) for item in value]
    return decode_value(value, {})


def read_cases(path):
    """Yields (line number, case) and the tensors of a group, given its .jsonl file."""
    tensors = load_file(pathlib.Path(path).with_suffix(".safetensors"))
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        yield number, json.loads(line), tensors


def compare(name, got, want, case):
    torch.testing.assert_close(got, want, rtol=case["rtol"], atol=case["atol"], equal_nan=True,
                               msg=lambda m: f"{name}: {m}")


def check_output(name, got, want, case, args, tensors):
    if isinstance(want, list):
        assert len(got) == len(want), f"{name}: {len(got)} items, expected {len(want)}"
        for index, (item, expected) in enumerate(zip(got, want)):
            check_output(f"{name}[{index}]", item, expected, case, args, tensors)
    elif isinstance(want, dict) and "$arg" in want:
        assert got is args[want["$arg"]], f"{name} is not argument {want['$arg']}"
    elif isinstance(want, dict) and "$tensor" in want:
        expected = stored(want, tensors)
        compare(name, got, expected, case)
        stride = want.get("stride", list(expected.contiguous().stride()))
        if expected.numel():
            assert [s for n, s in zip(got.shape, got.stride()) if n > 1] == [
                s for n, s in zip(got.shape, stride) if n > 1
            ], f"{name}: strides {got.stride()}, expected {stride}"
            assert got.storage_offset() == want.get("offset", 0), f"{name}: offset {got.storage_offset()}"
        if "alias" in want:
            same = args[want["alias"]].untyped_storage().data_ptr() == got.untyped_storage().data_ptr()
            assert same, f"{name} does not share argument {want['alias']}'s storage"
    elif isinstance(want, dict) and "$sha256" in want:
        raw = got.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert hashlib.sha256(raw).hexdigest() == want["$sha256"], f"{name}: other bytes"
    else:
        expected = decode_value(want, {})
        assert got == expected or (math.isnan(got)
                                   and math.isnan(expected)), f"{name}: {got}, expected {want}"


@functools.cache
def draws_with_mkl():
    """Whether PyTorch takes MKL's generators for bernoulli_, exponential_ and what calls them."""
    torch.manual_seed(0)
    plain = (torch.rand(100, dtype=torch.float64) < 0.5).float()
    torch.manual_seed(0)
    return not torch.equal(torch.empty(100).bernoulli_(0.5), plain)


def rounds_each_tap(op, args, dtype):
    """Whether PyTorch rounds the sums of this transposed convolution after each tap: in bfloat16, on
    CPUs without AVX-512. fxserve rounds once, as PyTorch does with AVX-512."""
    transposed = "transpose" in op or (op == "aten.convolution.default" and args[6])
    return (transposed and dtype == torch.bfloat16
            and not torch.backends.cpu.get_cpu_capability().startswith("AVX512"))


def run_case(case, tensors):
    """Calls the overload and raises AssertionError if anything differs."""
    if differs_later(case):
        return
    if "seed" in case:
        if draws_with_mkl() and re.search("bernoulli|dropout|exponential|multinomial", case["op"]):
            return
        torch.manual_seed(case["seed"])
    overload = find_overload(case["op"])
    if overload is None:  # of a library that is not there
        return
    args = decode(case["args"], tensors)
    kwargs = {name: decode(value, tensors) for name, value in case.get("kwargs", {}).items()}
    if rounds_each_tap(case["op"], args, getattr(args[0], "dtype", None)):
        return
    with torch.no_grad():
        result = overload(*args, **kwargs)
    results = result if isinstance(result, (list, tuple)) and len(overload._schema.returns) != 1 else [result]
    named = [args[i] if i < len(args) else kwargs.get(a.name)
             for i, a in enumerate(overload._schema.arguments)]
    check_output("outs", list(results), case["outs"], case, named, tensors)
    for index, argument in enumerate(overload._schema.arguments):
        want = case.get("mutated", {}).get(argument.name)
        if want is not None and "$sha256" in want:
            check_output(argument.name, named[index], want, case, named, tensors)
        elif want is not None:
            compare(argument.name, named[index], stored(want, tensors), case)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: all of tests/golden")
    options = parser.parse_args()
    torch.set_num_threads(1)
    passed = failed = 0
    for path in options.files or sorted(here.glob("*.jsonl")):
        for number, case, tensors in read_cases(path):
            try:
                run_case(case, tensors)
                passed += 1
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print(f"{path.name}:{number}: {case['op']}: {error}")
    print(f"{passed} passed, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
