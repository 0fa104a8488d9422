# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch 2.13 gives for operator calls: the golden cases of tests/golden.

    python tools/generate/make_goldens.py            everything in tests/golden/overloads.txt
    python tools/generate/make_goldens.py --new      only what was added to that list
    python tools/generate/make_goldens.py --hand     only the calls of golden_hand.py that stand in
    no file yet

The arguments come from PyTorch's own operator tests (torch.testing's OpInfo samples; needs the
package expecttest), from variants of them (other dtypes, strides, special values, Python numbers in
tensor slots) and from golden_hand.py. An overload is reached in three ways: called with a sample of
the OpInfo of its name, found below another operator by a dispatch mode, or found in the operator's
pre-dispatch graph. Of all candidates about --cases per overload are kept, chosen so that dtypes,
ranks, strides and argument values are as different as they can be; hand-written ones are always
kept.

The form of the files is in tests/golden/README.md.
"""

import argparse
import collections
import contextlib
import hashlib
import importlib
import json
import math
import pathlib
import sys
import resource
import time
import warnings

from needed import need

need("torch==2.13.0", "numpy", "safetensors", "expecttest")

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines quantized_decomposed.*
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from count_goldens import TABLE, counted, table
from expected import write_safetensors
from export_fx import Unsupported, encode_value
import golden_int4
from golden_variants import DTYPES, overlaps, place_tensor, variants

warnings.filterwarnings("ignore")
for library in ("torchvision", "torchao.quantization.quant_primitives"):
    with contextlib.suppress(ImportError, OSError, RuntimeError):  # its cases are recorded where it loads
        importlib.import_module(library)  # defines torchvision.*, torchao.*
own_operators = golden_int4.define()  # fxserve.*, while this lives

TOLERANCE = {  # (rtol, atol) of torch.testing.assert_close
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
          torch.float8_e8m0fnu)
TOLERANCE |= dict.fromkeys(FLOAT8, (0.0, 0.0))
# of the tensors of a case; the last ones stand in hand-written calls only
TAKEN = {*DTYPES, *FLOAT8, torch.int16, torch.uint16, torch.uint32, torch.uint64}
MAX_ELEMENTS = 1024
MAX_MEMORY = 3 << 30  # some variants ask for absurd sizes: they fail instead
FREE_SIGNS = ("aten::_linalg_eigh", "aten::_linalg_svd")  # when they compute vectors
REFUSED_HALF = ("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
PER_DTYPE = 24  # candidates remembered per overload and dtype
SKIPPED_OPINFOS = ("_foreach", "masked.", "sparse", "torch.ops.", "ops.", "to_sparse", "signal.",
                   "fft.", "_segment")


class Skip(Exception):
    """This call cannot be a golden case."""


# ---- calls -------------------------------------------------------------------------------------


def copy_tensor(tensor):
    """The same values, sizes, strides and offset in a storage of its own."""
    storage = tensor.detach().untyped_storage().clone()
    copy = torch.empty(0, dtype=tensor.dtype)
    return copy.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def canonical(tensor):
    """What a reader of the golden file makes of this tensor."""
    return place_tensor(tensor.detach().resolve_neg(), tensor.stride(), tensor.storage_offset())


def map_tensors(function, value):
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf, value)


def tensors_in(value):
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def check_tensor(tensor):
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
        raise Skip("kind of tensor")
    if tensor.dtype not in TAKEN:
        raise Skip("dtype")
    if tensor.numel() > MAX_ELEMENTS or tensor.untyped_storage().nbytes() > 64 * MAX_ELEMENTS:
        raise Skip("size")


def find_overload(name):
    """`aten.add.Tensor` -> torch.ops.aten.add.Tensor, or None."""
    namespace, packet, overload = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), packet, None)
    return getattr(packet, overload) if packet is not None and overload in packet.overloads() else None


class Candidate:
    """One call that worked: arguments as they were before it, results, and what it wrote."""

    def __init__(self, overload, args, kwargs, source, tag=None):
        for tensor in tensors_in((args, kwargs)):
            check_tensor(tensor)
        self.overload, self.source, self.tag = overload, source, tag
        self.args, self.kwargs = map_tensors(canonical, (list(args), dict(kwargs)))
        self.kwargs.pop("pin_memory", None)
        for _, argument, value in self._arguments(self.args, self.kwargs):
            if argument.alias_info is not None and argument.alias_info.is_write and overlaps(value):
                raise Skip("write to overlapping memory")
        used = map_tensors(copy_tensor, (self.args, self.kwargs))
        with torch.no_grad():
            result = overload(*used[0], **used[1])
            if torch.Tag.nondeterministic_seeded in overload.tags:
                self._refuse_random()
        self.outs = self._describe_outputs(used, result)
        self.mutated = self._describe_writes(used)
        given = {argument.name: value for _, argument, value in self._arguments(self.args, self.kwargs)}
        resizes = any(tensor.shape != given[name].shape for name, tensor in self.mutated)
        if resizes and torch.Tag.inplace_view not in overload.tags:
            raise Skip("resizes what it writes to")

    def _refuse_random(self):
        results = []
        for seed in (1, 2, 3):
            torch.manual_seed(seed)
            args, kwargs = map_tensors(copy_tensor, (self.args, self.kwargs))
            results.append(tensors_in(self.overload(*args, **kwargs)))
        for other in results[1:]:
            if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(results[0], other)):
                raise Skip("random")

    def _arguments(self, args, kwargs):
        """(index, name, value) of every given argument."""
        for index, argument in enumerate(self.overload._schema.arguments):
            if index < len(args):
                yield index, argument, args[index]
            elif argument.name in kwargs:
                yield index, argument, kwargs[argument.name]

    def _describe_outputs(self, used, result):
        """Outputs as ("arg", i), ("tensor", copy, index of the aliased argument or None), ("list",
        …) or ("value", v)."""

        def describe(value):
            if isinstance(value, (list, tuple)):
                return "list", [describe(item) for item in value]
            if not isinstance(value, torch.Tensor):
                return "value", value
            alias = None
            for index, _, given in self._arguments(*used):
                if value is given:
                    return "arg", index
                if alias is None and isinstance(given, torch.Tensor) and value.numel() and given.numel():
                    same = value.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
                    alias = index if same else None
            check_tensor(value)
            return "tensor", copy_tensor(value.resolve_neg().resolve_conj()), alias

        results = (result if isinstance(result, (list, tuple)) and len(self.overload._schema.returns) != 1
                   else [result])
        return [describe(value) for value in results]

    def _describe_writes(self, used):
        return [
            (argument.name, copy_tensor(given))
            for _, argument, given in self._arguments(*used)
            if argument.alias_info is not None and argument.alias_info.is_write
            and isinstance(given, torch.Tensor)
        ]

    def dtype(self):
        tensors = (tensors_in((self.args, self.kwargs))
                   or tensors_in([out[1] for out in self.outs if out[0] == "tensor"]))
        return tensors[0].dtype if tensors else None

    def size(self):
        return sum(tensor.numel() for tensor in tensors_in((self.args, self.kwargs)))

    def signature(self):
        """Calls with the same signature tell the same story."""

        def part(value):
            if isinstance(value, torch.Tensor):
                return value.dtype, value.dim(), value.numel() == 0, layout_of(value), self.tag
            if isinstance(value, (list, tuple)):
                return tuple(part(item) for item in value)
            return repr(round(value, 2) if isinstance(value, float) and math.isfinite(value) else value)

        return part(self.args), tuple(sorted((name, part(value)) for name, value in self.kwargs.items()))

    def features(self):
        """What this case shows, with weights: used to choose cases that differ."""
        found = {("tag", self.tag): 3.0, ("source", self.source): 0.5}
        shapes = set()
        for index, argument, value in self._arguments(self.args, self.kwargs):
            if isinstance(value, torch.Tensor):
                shapes.add(value.shape)
                if index < 3:
                    found["dtype", index, value.dtype] = 3.0 if index == 0 else 1.0
                    found["layout", index, layout_of(value)] = 2.0 if index == 0 else 1.0
                found["rank", index == 0, value.dim()] = 1.0
                found["empty", value.numel() == 0] = 1.0
            elif argument.name not in ("dtype", "device", "layout"):
                found["value", argument.name, repr(value)[:24]] = 0.7
            else:
                found["value", argument.name, str(value)] = 0.4
        found["broadcast", len(shapes) > 1] = 1.0
        found["kwargs", tuple(self.kwargs)] = 0.3
        return found


def layout_of(tensor):
    if tensor.is_contiguous():
        return "offset" if tensor.storage_offset() else "contiguous"
    if overlaps(tensor):
        return "expanded"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
    return "permuted" if extent == tensor.numel() else "strided"


# ---- what no other implementation could be held to ---------------------------------------------

SUMS = ("matmul", "conv", "norm", "reduce")  # groups whose result depends on the order of additions
UNSTABLE = {"aten::sort", "aten::argsort"}
CASTS = {"to", "_to_copy", "type_as", "copy", "copy_", "sum", "prod", "cumsum", "cumprod", "fill", "fill_"}


def is_inexact(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def has_ties(tensor):
    return tensor.numel() != tensor.flatten().unique().numel()


def casts_out_of_range(candidate):
    """Whether a float is converted to an integer type that cannot hold it: what comes out is the
    processor's choice."""
    targets = [tensor.dtype for tensor in tensors_in([out[1] for out in candidate.outs])
               if not is_inexact(tensor)]
    targets += [tensor.dtype for _, tensor in candidate.mutated if not is_inexact(tensor)]
    for dtype in {dtype for dtype in targets if dtype != torch.bool}:
        info = torch.iinfo(dtype)
        for tensor in tensors_in((candidate.args, candidate.kwargs)):
            tensor = tensor.real if tensor.is_complex() else tensor
            if tensor.is_floating_point() and not ((tensor > float(info.min) - 1)
                                                   & (tensor < float(info.max))).all():
                return True
    return False


def is_ill_conditioned(candidate, group):
    """Whether PyTorch's own result is too far from that of the next larger type for a comparison at
    its tolerance."""
    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    if group in SUMS or any(word in candidate.overload._schema.name for word in ("upsample", "softmax")):
        wider |= {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    results = [out[1] for out in candidate.outs
               if out[0] == "tensor"] + [tensor for _, tensor in candidate.mutated]
    if not any(tensor.dtype in wider for tensor in results):
        return False

    def widen(tensor):
        return tensor.to(wider.get(tensor.dtype, tensor.dtype))

    args, kwargs = map_tensors(widen, map_tensors(copy_tensor, (candidate.args, candidate.kwargs)))
    try:
        with torch.no_grad():
            exact = tensors_in(candidate.overload(*args, **kwargs))
    except (RuntimeError, ValueError):
        return False
    if len(exact) != len(results):  # in-place: what was written is among both
        exact, results = exact[:1], results[:1]
    for got, want in zip(results, exact):
        if got.dtype in wider and is_inexact(want) and got.shape == want.shape:
            rtol, atol = TOLERANCE[got.dtype]
            share = 0.3 if got.dtype in (torch.float32, torch.complex64) else 1.0
            want = want.to(got.dtype)
            if got.is_complex():
                got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj())
            if not torch.allclose(got.double(), want.double(), rtol=share * rtol, atol=share * atol,
                                  equal_nan=True):
                return True
    return False


def refuse_unfair_matrices(candidate):
    """What has no one result, or is refused: halves, infinities, matrices that are not positive
    definite, bases of matrices of less than full rank, and their smallest singular value: a rounding
    error of some size, or zero."""
    name, first = candidate.overload._schema.name, tensors_in(candidate.args)[0]
    if first.dtype in (torch.float16, torch.bfloat16):
        raise Skip("refused by fxserve")
    if candidate.tag == "special" or (name == "aten::linalg_cholesky_ex" and candidate.outs[1][1].any()):
        raise Skip("not finite, or not positive definite")
    by_singular_values = name == "aten::linalg_cond" and candidate.args[1:] in ([], [None], [2], [-2])
    if ((name in ("aten::linalg_qr", "aten::qr") or by_singular_values) and first.numel()
        and (torch.linalg.matrix_rank(first, rtol=1e-4) < min(first.shape[-2:])).any()):
        raise Skip("a basis that is free, or a quotient of a rounding error")


def refuse_unfair(candidate, group):
    if group == "linalg":
        refuse_unfair_matrices(candidate)
    name = candidate.overload._schema.name
    if name in UNSTABLE and candidate.overload._overloadname != "stable" and has_ties(candidate.args[0]):
        raise Skip("the order of equal elements is not defined")
    if name.split("::")[1] in CASTS and casts_out_of_range(candidate):
        raise Skip("cast out of range")
    if name in FREE_SIGNS and candidate.outs[-1][1].dim() > 1:
        raise Skip("vectors whose signs are free")
    if name == "aten::as_strided_scatter" and candidate.args[0].storage_offset():
        raise Skip("refused by fxserve")
    if name in REFUSED_HALF and candidate.args[0].dtype in (torch.float16, torch.bfloat16):
        raise Skip("refused by fxserve")
    if is_ill_conditioned(candidate, group):
        raise Skip("ill-conditioned")


# ---- collecting --------------------------------------------------------------------------------


class Collector:
    """Candidates per overload; everything that runs an operator goes through `offer`."""

    def __init__(self, targets, groups):
        self.targets = targets
        self.group_of = {name: group for group, names in groups.items() for name in names}
        self.skipped = collections.Counter()
        self.by_packet = collections.defaultdict(list)
        for overload in targets.values():
            self.by_packet[overload._schema.name.split("::")[1]].append(overload)
        self.found = {name: {} for name in targets}
        self.per_dtype = collections.Counter()
        self.hit = False

    def offer(self, overload, args, kwargs, source, tag=None):
        """Runs the call on copies and keeps it if it is new and works."""
        name = str(overload)
        if name not in self.targets:
            return False
        self.hit = True
        try:
            candidate = Candidate(overload, args, kwargs, source, tag)
            encode_case(candidate, {}, 0)
            refuse_unfair(candidate, self.group_of[name])
        except Skip as reason:
            self.skipped[str(reason)] += 1
            return False
        except (Unsupported, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError,
                AssertionError, AttributeError, MemoryError):
            return False
        key, signature = (name, candidate.dtype(), tag), candidate.signature()
        if source == "hand":
            key, signature = (name, "hand", len(self.found[name])), (len(self.found[name]), signature)
        if signature in self.found[name] or self.per_dtype[key] >= PER_DTYPE:
            return False
        self.found[name][signature] = candidate
        self.per_dtype[key] += 1
        return True


class Dispatched(TorchDispatchMode):
    """Offers every overload that an operator calls below the composite level."""

    def __init__(self, collector, source):
        super().__init__()
        self.collector, self.source = collector, source

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with torch._C._DisableTorchDispatch():
            if all(type(tensor) is torch.Tensor for tensor in tensors_in((args, kwargs))):
                self.collector.offer(function, args, kwargs, self.source)
        return function(*args, **kwargs)


class Replayed(torch.fx.Interpreter):
    """Offers every overload of a pre-dispatch graph, composite ones included."""

    def __init__(self, gm, collector, source):
        super().__init__(gm)
        self.collector, self.source = collector, source

    def call_function(self, target, args, kwargs):
        if isinstance(target, torch._ops.OpOverload):
            self.collector.offer(target, args, kwargs, self.source)
        return super().call_function(target, args, kwargs)


def run_dispatched(collector, source, function, sample):
    with torch.no_grad(), Dispatched(collector, source):
        function(*sample[0], **sample[1])


def run_traced(collector, source, function, sample):
    from torch.fx.experimental.proxy_tensor import make_fx

    flat, spec = tree_flatten(sample)
    places = [place for place, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]

    def call(*tensors):
        leaves = list(flat)
        for place, tensor in zip(places, tensors):
            leaves[place] = tensor
        args, kwargs = tree_unflatten(leaves, spec)
        return function(*args, **kwargs)

    with torch.no_grad():
        gm = make_fx(call, tracing_mode="real",
                     pre_dispatch=True)(*(copy_tensor(flat[place]) for place in places))
        Replayed(gm, collector, source).run(*(copy_tensor(flat[place]) for place in places))


def adapt(overload, args, kwargs):
    """The sample's arguments for this overload: a number is taken out of a tensor where the schema
    wants a Scalar."""
    args, kwargs = list(args), dict(kwargs)
    for index, argument in enumerate(overload._schema.arguments):
        if str(argument.type) in ("number", "Optional[number]"):
            place = ((args, index) if index < len(args) else (kwargs, argument.name)
                     if argument.name in kwargs else None)
            if place and isinstance(place[0][place[1]], torch.Tensor):
                if place[0][place[1]].numel() == 0:
                    raise Skip("no number")
                place[0][place[1]] = place[0][place[1]].flatten()[0].item()
    return args, kwargs


def run_direct(collector, source, packets, sample, tag=None):
    """Calls every wanted overload of the operator's name with the sample."""
    kept = False
    for packet in packets:
        for overload in collector.by_packet.get(packet, ()):
            with contextlib.suppress(Skip):
                kept |= collector.offer(overload, *adapt(overload, *sample), source, tag)
    return kept


# ---- OpInfo ------------------------------------------------------------------------------------


def packets_of(opinfo):
    names = {opinfo.name, opinfo.name.split(".")[-1], opinfo.aten_name or "", opinfo.name.replace(".", "_")}
    names |= {alias.name for alias in opinfo.aliases or ()}
    names |= {name + "_" for name in names}
    return sorted(name for name in names if name)


def samples_of(opinfo, dtype, limit, seconds):
    """A list of sample inputs as (args, kwargs), small ones only, made within a time limit."""
    started, samples = time.time(), []
    torch.manual_seed(0)
    sources = [opinfo.sample_inputs]
    if dtype in (torch.float32, torch.int64):
        sources.append(opinfo.reference_inputs)
    for source in sources:
        count = 0
        try:
            for sample in source("cpu", dtype, requires_grad=False):
                if count >= limit or time.time() - started > seconds:
                    break
                args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
                if all(tensor.numel() <= MAX_ELEMENTS for tensor in tensors_in((args, kwargs))):
                    count += 1
                    samples.append((args, kwargs))
        except Exception:  # a generator that does not support this dtype ends here
            break
    return samples


def collect_opinfo(collector, opinfo, options):
    source = opinfo.name + ("." + opinfo.variant_test_name if opinfo.variant_test_name else "")
    packets = [packet for packet in packets_of(opinfo) if packet in collector.by_packet]
    pointwise = any(torch.Tag.pointwise in o.tags for packet in packets for o in collector.by_packet[packet])
    for dtype in DTYPES:
        if dtype not in opinfo.dtypes:
            continue
        collector.hit = False
        for number, sample in enumerate(samples_of(opinfo, dtype, 30, options.seconds)):
            if packets:
                run_direct(collector, source, packets, sample)
                if number % 3 == 0:
                    for tag, variant in variants(sample, packets[0].rstrip("_"), pointwise):
                        run_direct(collector, source, packets, variant, tag)
            if not packets or number < 4:
                with contextlib.suppress(Exception):
                    run_dispatched(collector, source, opinfo.op, map_tensors(copy_tensor, sample))
                if number < (6 if dtype == torch.float32 else 2):
                    with contextlib.suppress(Exception):
                        run_traced(collector, source, opinfo.op, sample)
        if not collector.hit and not packets:
            return  # nothing below this operator is wanted


def collect_in_place(collector):
    """The in-place twin of every functional overload, on the functional one's arguments."""
    for name, overload in collector.targets.items():
        packet, kind = name.split(".")[1:]
        twin = f"aten.{packet.removesuffix('_')}.{kind}"
        if packet.startswith("__") or not packet.endswith("_"):
            continue
        functional = find_overload(twin)
        if functional is None:
            continue
        for candidate in list(collector.found.get(twin, {}).values()):
            collector.offer(overload, candidate.args, candidate.kwargs, candidate.source, candidate.tag)


# ---- choosing and writing ----------------------------------------------------------------------


def choose(candidates, count):
    """About `count` candidates that show as many different features as they can; hand-written ones
    always."""
    pool = [candidate for candidate in candidates if candidate.source != "hand"]
    chosen = [candidate for candidate in candidates if candidate.source == "hand"]
    seen = set()
    for candidate in chosen:
        seen.update(candidate.features())
    featured = [(candidate, candidate.features()) for candidate in pool]
    for _ in range(max(count - len(chosen) // 2, 4)):
        if not featured:
            break
        best = max(
            featured,
            key=lambda pair: sum(w for key, w in pair[1].items() if key not in seen) - pair[0].size() / 700,
        )
        featured.remove(best)
        chosen.append(best[0])
        seen.update(best[1])
    return chosen


def tolerance_overrides(opinfo):
    """{dtype: (rtol, atol, test)}: the largest tolerances that PyTorch's own tests of this operator
    use on the CPU, and the names of its overloads' packets, to which they apply."""
    from torch.testing._internal.common_device_type import toleranceOverride
    from torch.testing._internal.opinfo.core import DecorateInfo

    found = {}
    for decorator in opinfo.decorators:
        test, inner = "all tests", [decorator]
        if isinstance(decorator, DecorateInfo):
            test, inner = f"{decorator.cls_name}.{decorator.test_name}", decorator.decorators
            of_values = decorator.cls_name in (None, "TestCommon", "TestUnaryUfuncs",
                                               "TestBinaryUfuncsDevice", "TestReductions")
            if (not of_values or decorator.device_type not in (None, "cpu") or "complex" in test
                or "mps" in test):
                continue
        for override in inner:
            if isinstance(override, toleranceOverride):
                for dtype, limit in override.d.items():
                    rtol, atol, _ = found.get(dtype, (0.0, 0.0, ""))
                    found[dtype] = (max(rtol, limit.rtol), max(atol, limit.atol), test)
    return found, set(packets_of(opinfo))


def tolerance(candidate, overrides):
    """(rtol, atol, origin) for the outputs: assert_close's defaults, or the OpInfo's where it is
    looser."""
    tensors = tensors_in([out[1] for out in candidate.outs]) + [tensor for _, tensor in candidate.mutated]
    dtypes = {tensor.dtype for tensor in tensors if is_inexact(tensor)}
    rtol, atol, origin = 0.0, 0.0, "exact"
    looser, packets = overrides.get(candidate.source, ({}, ()))
    if candidate.overload._schema.name.split("::")[1] not in packets:
        looser = {}  # found below an operator of another name
    for dtype in dtypes:
        default_rtol, default_atol = TOLERANCE[dtype]
        rtol, atol = max(rtol, default_rtol), max(atol, default_atol)
        origin = "default" if origin == "exact" else origin
        more_rtol, more_atol, test = looser.get(dtype, (0.0, 0.0, ""))
        if more_rtol > rtol or more_atol > atol:
            rtol, atol, origin = (max(rtol, more_rtol), max(atol, more_atol),
                                  f"OpInfo {candidate.source} {test}")
    return rtol, atol, origin


def encode_case(candidate, tensors, number):
    """The case as JSON; its tensors are put into `tensors`."""
    count = 0

    def keep(tensor, alias=None):
        nonlocal count
        key = f"{number}.{count}"
        count += 1
        kept = tensor.detach().resolve_neg().resolve_conj().clone(memory_format=torch.contiguous_format)
        entry = {"$tensor": key}
        if tensor.dtype == torch.complex128:  # safetensors has no such dtype
            kept, entry["complex"] = torch.view_as_real(kept), True
        tensors[key] = kept
        if not tensor.is_contiguous():
            entry["stride"] = list(tensor.stride())
        if tensor.storage_offset():
            entry["offset"] = tensor.storage_offset()
        if alias is not None:
            entry["alias"] = alias
        return entry

    def encode(value):
        if isinstance(value, torch.Tensor):
            return keep(value)
        if isinstance(value, (list, tuple)):
            return [encode(item) for item in value]
        return encode_value(value)

    def encode_out(out):
        if out[0] == "arg":
            return {"$arg": out[1]}
        if out[0] == "list":
            return [encode_out(item) for item in out[1]]
        return keep(out[1], out[2]) if out[0] == "tensor" else encode_value(out[1])

    case = {"op": str(candidate.overload), "args": [encode(value) for value in candidate.args]}
    if candidate.kwargs:
        case["kwargs"] = {name: encode(value) for name, value in candidate.kwargs.items()}
    case["outs"] = [encode_out(out) for out in candidate.outs]
    if candidate.mutated:
        case["mutated"] = {name: keep(tensor) for name, tensor in candidate.mutated}
    return case


def write_group(folder, group, candidates, overrides, append):
    path, lines, tensors = folder / f"{group}.jsonl", [], {}
    if append and path.exists():
        lines, tensors = (path.read_text(encoding="utf-8").splitlines(),
                          load_file(path.with_suffix(".safetensors")))
    first = 1 + max((int(key.split(".")[0]) for key in tensors), default=-1)
    for number, candidate in enumerate(candidates, first):
        case = encode_case(candidate, tensors, number)
        rtol, atol, origin = tolerance(candidate, overrides)
        case["opinfo"] = candidate.source + (f", {candidate.tag}" if candidate.tag else "")
        case["rtol"], case["atol"] = rtol, atol
        if origin.startswith("OpInfo"):
            case["tolerance"] = origin
        lines.append(json.dumps(case, separators=(",", ":"), allow_nan=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_safetensors(folder / f"{group}.safetensors", tensors, {"format": "pt"})
    return path.stat().st_size + path.with_suffix(".safetensors").stat().st_size


def read_overloads(path):
    """{group: [overload names]}: a line `# group NAME` begins a group."""
    groups, group = {}, "other"
    for line in path.read_text().splitlines():
        if line.startswith("# group "):
            group = line.removeprefix("# group ").strip()
        elif line.strip() and not line.startswith("#"):
            groups.setdefault(group, []).append(line.strip())
    return groups


def without_cases(groups, folder):
    """The part of `groups` that the files in `folder` hold no case of."""
    files = [path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl")]
    done = {json.loads(line)["op"] for text in files for line in text.splitlines()}
    lacking = {group: [name for name in names if name not in done] for group, names in groups.items()}
    return {group: names for group, names in lacking.items() if names}


def call_of(case, tensors):
    """The call of a case as a text, tensors by their content: equal for equal calls."""

    def known(value):
        if isinstance(value, dict) and "$tensor" in value:
            tensor = tensors[value["$tensor"]]
            content = hashlib.sha256(
                bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())).hexdigest()
            return [str(tensor.dtype), list(tensor.shape), content, value.get("stride"), value.get("offset")]
        return [known(item) for item in value] if isinstance(value, list) else value

    kwargs = {name: known(value) for name, value in case.get("kwargs", {}).items()}
    return json.dumps([case["op"], known(case["args"]), kwargs], sort_keys=True)


def add_hand_cases(folder, groups, collector):
    """Appends the hand-written cases that the files lack; the number of them."""
    n_added = 0
    for group, names in groups.items():
        tensors = load_file(folder / f"{group}.safetensors")
        lines = (folder / f"{group}.jsonl").read_text(encoding="utf-8").splitlines()
        known = {call_of(case, tensors) for case in map(json.loads, lines) if case["opinfo"] == "hand"}
        made = {}
        for candidate in [candidate for name in names for candidate in collector.found[name].values()]:
            fresh = {}
            made.setdefault(call_of(encode_case(candidate, fresh, 0), fresh), candidate)
        lacking = [candidate for call, candidate in made.items() if call not in known]
        if lacking:
            write_group(folder, group, lacking, {}, True)
            print(f"{group}: {len(lacking)} cases")
        n_added += len(lacking)
    return n_added


def main():
    here = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--overloads", type=pathlib.Path, default=here / "overloads.txt")
    parser.add_argument("--out", type=pathlib.Path, default=here)
    parser.add_argument("--new", action="store_true",
                        help="keep the files, add those of the list that have no cases yet")
    parser.add_argument("--hand", action="store_true",
                        help="keep the files, add hand-written calls that they lack")
    parser.add_argument("--only", nargs="*", metavar="OVERLOAD", help="these overloads instead of the list's")
    parser.add_argument("--cases", type=int, default=11, help="cases per overload (default: 11)")
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="time limit per OpInfo and dtype (default: 1)")
    parser.add_argument("--verbose", action="store_true", help="print each OpInfo's name when its turn comes")
    options = parser.parse_args()

    if not torch.__version__.startswith("2.13."):
        raise SystemExit(f"golden cases are recorded with PyTorch 2.13; this is {torch.__version__}")

    from torch.testing._internal.common_methods_invocations import op_db

    from golden_grouped import declare_fallback
    from golden_hand import hand_cases

    declare_fallback()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    torch.set_num_threads(1)
    groups = {"only": options.only} if options.only else read_overloads(options.overloads)
    if options.new:
        groups = without_cases(groups, options.out)
    targets = {name: find_overload(name) for names in groups.values() for name in names}
    if options.hand:
        targets = {name: target for name, target in targets.items() if target is not None}
        groups = {group: [name for name in names if name in targets] for group, names in groups.items()}
    if unknown := [name for name, overload in targets.items() if overload is None]:
        raise SystemExit(f"PyTorch {torch.__version__} has no {', '.join(unknown)}")

    started, collector = time.time(), Collector(targets, groups)
    for name, args, kwargs in hand_cases():
        if name in targets and not collector.offer(targets[name], args, kwargs, "hand") and options.verbose:
            print(f"PyTorch refuses a hand-written case of {name}")
    if options.hand:
        print(f"{add_hand_cases(options.out, groups, collector)} cases added")
        if options.out == here:
            TABLE.write_text(table(counted()), encoding="utf-8")
        return
    for opinfo in op_db:
        if not opinfo.name.startswith(SKIPPED_OPINFOS):
            if options.verbose:
                print(opinfo.name, opinfo.variant_test_name, flush=True)
            collect_opinfo(collector, opinfo, options)
    collect_in_place(collector)

    overrides = {}
    for opinfo in op_db:
        source = opinfo.name + ("." + opinfo.variant_test_name if opinfo.variant_test_name else "")
        overrides[source] = tolerance_overrides(opinfo)
    total, n_cases, few = 0, 0, []
    for group, names in groups.items():
        chosen = []
        for name in names:
            cases = choose(list(collector.found[name].values()), options.cases)
            chosen.extend(cases)
            if len(cases) < 8:
                few.append(f"{name} {len(cases)}")
        total += write_group(options.out, group, chosen, overrides, options.new)
        n_cases += len(chosen)
        print(f"{group}: {len(names)} overloads, {len(chosen)} cases")
    print(f"{n_cases} cases, {total / 1e6:.1f} MB, {time.time() - started:.0f} s")
    print("left out: " + ", ".join(f"{reason} {count}" for reason, count in collector.skipped.most_common()))
    print("fewer than 8 cases: " + (", ".join(few) or "none"))
    if options.out == here:
        TABLE.write_text(table(counted()), encoding="utf-8")


if __name__ == "__main__":
    main()
