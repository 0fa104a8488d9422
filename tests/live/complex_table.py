# SPDX-License-Identifier: Apache-2.0
"""Gives every operator complex numbers and compares with PyTorch.

    python tests/live/complex_table.py build/fxserve [--cases 3] [--only OVERLOAD ...]

Needs torch 2.13, numpy and safetensors; no network. The calls are those of the committed golden
cases, of each overload the first `--cases` that hold floats. These forms of each are tried: all
floats complex, the first tensor complex, a complex number in the place of a real one, complex
numbers with another dtype= where there is one. In both modes fxserve must give what PyTorch gives,
or refuse; what PyTorch refuses must be refused. So no kernel takes complex numbers for something
else. The last line is `N passed, N failed`.
"""

import argparse
import collections
import json
import pathlib
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "generate"), str(ROOT / "tests" / "service"),
                str(ROOT / "tests" / "live")]

import replay_goldens
from differential import Client, decode_tensor
from make_goldens import find_overload, overlaps, tensors_in
from random_graphs import Call, Case, Ref, encode_tensor, map_leaves
from service import Server

LIMIT = 2e-5  # of complex64; half of it is one rounding of a function of a few steps
# PyTorch's own results for these depend on memory that nobody wrote, or are random
UNDEFINED = ("empty", "new_empty", "bernoulli", "rand", "dropout", "multinomial", "normal", "uniform")


def turned(value, generator):
    """Complex numbers whose real parts are `value`."""
    parts = torch.randn(value.shape, generator=generator)
    turned = torch.complex(value.float(), parts)
    return turned if value.dtype != torch.float64 else turned.to(torch.complex128)


DTYPES = (torch.int32, torch.bool, torch.float64, torch.complex128)


def forms(overload, args, kwargs, generator):
    """The call with complex numbers in some places."""
    tensors = tensors_in((args, kwargs))

    def all_floats(leaf):
        is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        return turned(leaf, generator) if is_float else leaf

    def first(leaf):
        return turned(leaf, generator) if tensors and leaf is tensors[0] else leaf

    def number(leaf):
        return complex(leaf, 0.5) if type(leaf) is float else leaf

    for change in (all_floats, first, number):
        changed = map_leaves(change, list(args)), map_leaves(change, dict(kwargs))
        pairs = zip(flat((args, kwargs)), flat(changed))
        if any(old is not new for old, new in pairs):
            yield change.__name__, *changed
    if overload is not None and any(argument.name == "dtype" and argument.kwarg_only
                                    for argument in overload._schema.arguments):
        for dtype in DTYPES:
            yield f"dtype={dtype}", map_leaves(all_floats, list(args)), dict(kwargs) | {"dtype": dtype}


def flat(value):
    found = []
    map_leaves(found.append, list(value) if isinstance(value, tuple) else value)
    return found


def as_case(overload, args, kwargs):
    """The call as a graph: tensors are inputs, the results and what was written are outputs."""
    inputs, calls = {}, []

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        inputs[f"x{len(inputs)}"] = leaf.contiguous()
        return Ref(f"x{len(inputs) - 1}")

    call = Call("y", overload, map_leaves(place, list(args)), map_leaves(place, dict(kwargs)))
    calls.append(call)
    return Case(inputs, calls, ["y"])


def close(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}"
    if got.numel() == 0:
        return None
    if want.is_complex():
        got, want = torch.view_as_real(got), torch.view_as_real(want.resolve_conj())
    if not want.is_floating_point():
        return None if torch.equal(got, want) else "other values"
    finite = want[torch.isfinite(want)].abs()
    limit = LIMIT * max(1.0, finite.max().item() if finite.numel() else 1.0)
    if torch.allclose(got.double(), want.double(), rtol=LIMIT, atol=limit, equal_nan=True):
        return None
    return f"differs by {(got.double() - want.double()).abs().nan_to_num().max().item():g}"


def expected(case):
    try:
        values = case.run()["y"]
    except Exception as error:
        return None, str(error)
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return values, None


# What fxserve computes and PyTorch refuses: for want of a kernel; internal to bilinear,
# which promotes.
ACCEPTED = ("'ComplexHalf'", "_trilinear")


def problem(client, case, tally):
    want, refusal = expected(case)
    inputs = {name: encode_tensor(tensor) for name, tensor in case.inputs.items()}
    body = {"graph": case.document(), "inputs": inputs, "encoding": "b64"}
    for mode in ("eager", "compiled"):
        status, reply = client.post(json.dumps(body | {"mode": mode}))
        if status >= 500:
            return f"{mode}: {status} {reply}"
        if status != 200:
            tally["refused" if refusal else "refused, but PyTorch computes it"] += 1
            if not refusal:
                tally.lacking[str(case.calls[0].overload)] = reply.get("error", "")
            continue
        words = f"{case.calls[0].overload} {refusal}"
        if refusal and not any(accepted in words for accepted in ACCEPTED):
            return f"{mode}: answers, but PyTorch refuses: {refusal[:160]}"
        if refusal:
            continue
        got = [decode_tensor(entry) for entry in reply["outputs"] if "dtype" in entry]
        tensors = [value for value in want if isinstance(value, torch.Tensor)]
        if len(got) != len(tensors):
            return f"{mode}: {len(got)} tensors, expected {len(tensors)}"
        for one, other in zip(got, tensors):
            if words := close(one, other):
                return f"{mode}: {words}"
        tally["equal"] += 1
    return None


class Tally(collections.Counter):
    def __init__(self):
        super().__init__()
        self.lacking = {}


def calls(options):
    """(overload, args, kwargs) of golden cases."""
    seen = collections.Counter()
    for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl")):
        if path.stem in ("observe", "complex"):
            continue
        for _, case, tensors in replay_goldens.read_cases(path):
            name = case["op"]
            if seen[name] >= options.cases or (options.only and name not in options.only):
                continue
            if any(word in name for word in UNDEFINED) or "seed" in case:
                continue
            args = replay_goldens.decode(case["args"], tensors)
            kwargs = {key: replay_goldens.decode(value, tensors)
                      for key, value in case.get("kwargs", {}).items()}
            leaves = tensors_in((args, kwargs))
            if (not any(leaf.is_floating_point() and leaf.numel() > 1 for leaf in leaves)
                or any(leaf.is_floating_point() and leaf.itemsize == 1 for leaf in leaves)):  # float8
                continue
            if any(not torch.isfinite(leaf).all() or overlaps(leaf) for leaf in leaves):
                continue
            seen[name] += 1
            yield find_overload(name), args, kwargs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--lacking", action="store_true", help="print what PyTorch computes and fxserve not")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    tally, passed, failed = Tally(), 0, 0
    with tempfile.TemporaryDirectory():
        server = Server(options.program)
        server.start()
        client = Client(server.port)
        for overload, args, kwargs in calls(options):
            for form, *call in forms(overload, args, kwargs, generator):
                case = as_case(overload, *call)
                words = problem(client, case, tally)
                if words is None:
                    passed += 1
                else:
                    failed += 1
                    print(f"FAILED {overload}, {form}: {words}", flush=True)
        server.stop()
    if options.lacking:
        for name, words in sorted(tally.lacking.items()):
            print(f"lacking {name}: {words[:150]}")
    print(", ".join(f"{kind} {n}" for kind, n in sorted(tally.items())))
    print(f"{passed} passed, {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
