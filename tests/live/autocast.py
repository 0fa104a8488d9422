# SPDX-License-Identifier: Apache-2.0
"""Every operator inside of torch.autocast("cpu"), against PyTorch.

    python tests/live/autocast.py build/fxserve [--cases 3] [--only OVERLOAD ...]

Needs torch 2.13, numpy and safetensors; no network. The calls are a few of this file (calls) and
those of the committed golden cases, of each overload the first `--cases` that hold floats. Each is
the body of a wrap_with_autocast region of bfloat16, and of one of float16: with its own dtypes, and
with every other float32 tensor in the region's dtype. In both modes fxserve must give PyTorch's
dtypes and numbers, or refuse what PyTorch refuses. Where PyTorch rounds on the way, an operator that
lowers its operands may be nearer to their result in float64 than PyTorch is. The last line is `N
passed, N failed`.
"""
import argparse
import collections
import json
import pathlib
import re
import sys
import warnings

import torch
from torch import fx, nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "generate"), str(ROOT / "tests" / "service"),
                str(ROOT / "tests" / "live")]

import replay_goldens
from differential import decode_tensor
from export_fx import dumps, export_fx
from make_goldens import find_overload, overlaps, tensors_in
from random_graphs import encode_tensor, map_leaves
from service import serving

# What is refused here and what PyTorch alone refuses: patterns of "overload: words".
REFUSED_HERE = ("inside of torch.autocast is not supported", "complex32", "matrix_exp",
                r"_upsample_\w+_aa.*not implemented for",  # PyTorch copies images that keep their size
                "histogramdd.*not implemented for")  # PyTorch counts in the half dtype
COMPUTED_HERE = (
    "not implemented for",
    # PyTorch's kernel concatenates on the way: isin where there are many elements, roll one dimension,
    # convolution groups where it has no kernel for them. The refusal is of cat.
    r"aten\.(isin|roll|convolution)\..*at::autocast::prioritize",
)
# Results that depend on rounding in the half types before a comparison, or that order equal values.
UNSTABLE = ("aten.topk", "aten.histc", "aten.istft", "aten.special_i0e")
# Results that depend on memory that nobody wrote, or on chance.
UNDEFINED = ("empty", "bernoulli", "rand", "dropout", "multinomial", "normal", "uniform", "exponential",
             "rrelu", "geometric", "cauchy", "poisson", "binomial")
POLICIES = (ROOT / "core" / "ops" / "autocast.def").read_text(encoding="utf-8")


def calls(options):
    """(overload, args, kwargs) of what must not depend on which golden cases are chosen, then golden
    cases."""
    half, bfloat, float8 = (torch.ones(2, 3).to(dtype)
                            for dtype in (torch.float16, torch.bfloat16, torch.float8_e5m2))
    full, index = torch.ones(2, 3), torch.tensor([1])
    for name, args in (
        ("aten.cat.default", [[half, full]]), ("aten.cat.default", [[full, half, bfloat]]),
        ("aten.cat.default", [[bfloat]]), ("aten.cat.default", [[float8, full]]),
        ("aten.stack.default", [[full.double(), half]]), ("aten.hstack.default", [[half, half]]),
        ("aten.index_copy.default", [half, 0, index, half[:1]]),
        ("aten.index_copy.default", [full, 0, index, half[:1]]),
        ("aten.block_diag.default", [[half, bfloat]]), ("aten.block_diag.default", [[full, half]]),
        ("aten.masked_scatter.default", [half, half > 0, half]), ("aten.mm.default", [float8, full.t()]),
        ("aten.tensordot.default", [full, full, [0, 1], [0, 1]]),
        ("aten.tensordot.default", [full, full.t(), [0, 1], [1, 0]]),
        ("aten.tensordot.default", [full, full, [0], [0]]), ("aten.inner.default", [full[:1], full[0]]),
        ("aten.isin.Tensor_Tensor", [half, full.repeat(9, 9)])):
        if not options.only or name in options.only:
            yield find_overload(name), args, {}
    yield from golden_calls(options)


def golden_calls(options):
    """(overload, args, kwargs) of golden cases with floats."""
    seen = collections.Counter()
    for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl")):
        if path.stem == "observe":
            continue
        for _, case, tensors in replay_goldens.read_cases(path):
            name = case["op"]
            if seen[name] >= options.cases or (options.only and name not in options.only):
                continue
            if any(word in name for word in UNDEFINED) or name.startswith(UNSTABLE):
                continue
            args = replay_goldens.decode(case["args"], tensors)
            kwargs = {key: replay_goldens.decode(value, tensors)
                      for key, value in case.get("kwargs", {}).items()}
            leaves = tensors_in((args, kwargs))
            if any(overlaps(leaf) for leaf in leaves) or not any(leaf.is_floating_point() for leaf in leaves):
                continue
            if (overload := find_overload(name)) is None:
                continue  # of a library that is not installed
            seen[name] += 1
            yield overload, args, kwargs


def lowered(dtype, args, kwargs):
    """The call with every other float32 tensor in `dtype`; None if there is no tensor to change."""
    count = [0, 0]

    def lower(leaf):
        if not isinstance(leaf, torch.Tensor) or leaf.dtype != torch.float32:
            return leaf
        count[0] += 1
        count[1] += count[0] % 2
        return leaf.to(dtype) if count[0] % 2 else leaf

    changed = map_leaves(lower, list(args)), map_leaves(lower, dict(kwargs))
    return changed if count[1] else None


def dense(leaf):
    """As an input of a request is: strides and what lies between the elements are not sent."""
    return leaf.contiguous() if isinstance(leaf, torch.Tensor) else leaf


class Region:
    """One call in an autocast region, as a graph."""

    def __init__(self, overload, args, kwargs, dtype):
        self.overload, self.dtype = overload, dtype
        self.args, self.kwargs = map_leaves(dense, list(args)), map_leaves(dense, dict(kwargs))
        self.inputs, outer, inner = [], fx.Graph(), fx.Graph()

        def place(leaf):
            if not isinstance(leaf, torch.Tensor):
                return leaf
            self.inputs.append(leaf)
            return inner.placeholder(f"x{len(self.inputs) - 1}")

        called = inner.call_function(overload, tuple(map_leaves(place, self.args)),
                                     map_leaves(place, self.kwargs))
        inner.output((called,))
        root = nn.Module()
        root.body = fx.GraphModule(nn.Module(), inner)
        inputs = [outer.placeholder(f"x{i}") for i in range(len(self.inputs))]
        body = outer.get_attr("body")
        outer.output(outer.call_function(torch.ops.higher_order.wrap_with_autocast,
                                         ("cpu", dtype, True, None, body, *inputs)))
        self.module = fx.GraphModule(root, outer)

    def want(self):
        """PyTorch's tensors, or its refusal."""
        def copy(leaf):
            return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf

        try:
            with torch.no_grad(), torch.autocast("cpu", dtype=self.dtype):
                result = self.overload(*map_leaves(copy, list(self.args)),
                                       **map_leaves(copy, dict(self.kwargs)))
        except Exception as error:
            return None, str(error)
        return tensors_in(result if isinstance(result, (tuple, list)) else (result,)), None

    def exact(self):
        """The results in float64 of the operands as the region lowers them."""
        def double(leaf):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                return leaf.to(leaf.dtype if leaf.dtype == torch.float64 else self.dtype).double()
            return leaf

        result = self.overload(*map_leaves(double, self.args), **map_leaves(double, self.kwargs))
        return tensors_in(result if isinstance(result, (tuple, list)) else (result,))

    def body(self, mode):
        document = json.loads(dumps(export_fx(self.module, inline=True)[0]))
        inputs = {f"x{i}": encode_tensor(tensor) for i, tensor in enumerate(self.inputs)}
        return json.dumps({"graph": document, "mode": mode, "encoding": "b64", "inputs": inputs}).encode()


def close(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {list(got.shape)}, PyTorch has {want.dtype} {list(want.shape)}"
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except AssertionError as error:
        return str(error).replace("\n", " ")[:200]
    return None


def is_nearer(region, at, got, want):
    if f'AUTOCAST("{region.overload.name()}", LOWER)' not in POLICIES:
        return False
    exact = region.exact()[at]
    return (got.dtype == want.dtype and got.shape == want.shape
            and bool((got.double() - exact).abs().max() <= (want.double() - exact).abs().max()))


def problem(server, region, counts):
    want, refusal = region.want()
    for mode in ("eager", "compiled"):
        reply = server.call("POST", "/v1/run", region.body(mode))
        if reply.status >= 500:
            return f"{mode}: {reply.short()}"
        if reply.status != 200:
            counts["refused" if refusal else "refused, but PyTorch computes it"] += 1
            if not refusal and not any(re.search(words, reply.short()) for words in REFUSED_HERE):
                return f"{mode}: {reply.short()[:200]}"
            continue
        if refusal and any(re.search(words, f"{region.overload}: {refusal}") for words in COMPUTED_HERE):
            continue
        if refusal:
            return f"{mode}: answers, but PyTorch refuses: {refusal[:160]}"
        got = [decode_tensor(entry) for entry in reply.json()["outputs"] if "dtype" in entry]
        if len(got) != len(want):
            return f"{mode}: {len(got)} tensors, PyTorch has {len(want)}"
        for at, (one, other) in enumerate(zip(got, want)):
            if (words := close(one, other)) and not is_nearer(region, at, one, other):
                return f"{mode}: {words}"
        counts["equal"] += 1
    return None


def regions(overload, args, kwargs):
    for dtype in (torch.bfloat16, torch.float16):
        if replay_goldens.rounds_each_tap(str(overload), args, dtype):
            continue
        yield f"{dtype}", Region(overload, args, kwargs, dtype)
        if mixed := lowered(dtype, args, kwargs):
            yield f"{dtype}, mixed", Region(overload, *mixed, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = collections.Counter()
    with serving(options.program) as (server, tally):
        for call in calls(options):
            for form, region in regions(*call):
                tally.check(f"{call[0]}, {form}", problem(server, region, counts))
    print(", ".join(f"{kind} {n}" for kind, n in sorted(counts.items())))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
