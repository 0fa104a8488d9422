# SPDX-License-Identifier: Apache-2.0
"""Runs random graphs in PyTorch and in fxserve, eagerly and compiled, and compares.

    python tests/live/differential.py build/fxserve [--graphs 2000] [--seed N] [--seconds 0] [--one SEED] [--only OVERLOAD ...]

Needs torch 2.13, numpy and safetensors; no network. The graphs are those of random_graphs.py. What must hold:

    eager       every node's result is PyTorch's for the same operands: dtype, shape, and values within torch.testing.assert_close's defaults. Where
                PyTorch's own result is off by more, ours may be as far from that of float64 operands
    compiled    the bits of the eager run; where products take part, the same within 1e-3
    refusals    what PyTorch refuses is refused by both modes, and the other way round; 422 says that something is not supported

The operands of a node are our own results, so that one rounding does not become another result further on. In graphs that write in place only the end of
the run is compared, and a difference counts if all was equal bits before the call that shows it. A failing graph is cut down and printed as a body for
POST /v1/run. The last line is `N passed, N failed`; the exit code is 1 if a graph failed.
"""

import argparse
import base64
import collections
import http.client
import json
import math
import mmap
import os
import pathlib
import pickle
import random
import re
import struct
import sys
import tempfile
import time
import traceback
import warnings

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

import random_graphs  # noqa: E402
from make_goldens import TOLERANCE, UNSTABLE  # noqa: E402
from random_graphs import Call, Case, bits, fill, map_leaves, refs_in, same_bits, tensors_in  # noqa: E402
from service import Server  # noqa: E402

PRODUCTS = ("conv", "mm", "matmul", "linear", "mv", "einsum", "tensordot", "dot", "attention", "bilinear", "inner", "outer", "ger", "addr", "cosine",
            "cdist", "kron", "vander", "baddbmm")  # fmt: skip
CHUNK = 200


# Differences that stay: a pattern of "kind, overload: words", and why.
KNOWN = {
    r"accepted, .*not implemented for": "PyTorch has no kernel for this dtype; the operator has a meaning for it",
    r"accepted, .*(group_norm.*is_contiguous|Can't detach views)": "PyTorch asks for a layout, or for gradients' sake",
    r"refused with 400, aten\.(conv|instance_norm|batch_norm|native_|_native_).*(bias type|mixed dtype)": "PyTorch's kernels differ in whether they ask",
    r"refused with 400, aten\.native_group_norm": "internal to group_norm, which checks",
    r"refused with 400, aten\.(_native_batch_norm\w*|native_batch_norm)\..*expected 2D or higher": "internal to batch_norm, which checks",
    r"refused with 400, aten\.cum(sum|prod)_.*Bool": "PyTorch takes a bool of no dimensions only",
    r"more than one element of the written-to tensor refers": "PyTorch lets some operators write to expanded tensors; what comes out is up to their loops",
    r"refused with 400, aten\.(_local_scalar_dense|sym_constrain_range\w*|_reshape_alias|_batch_norm_no_update|_assert_\w+|_pad_circular|_fused_rms_norm)\.": "checked here, not there",
    r"refused with 400, aten\.\w*batch_norm\w*\..*should contain": "PyTorch reads beyond the tensor",
    r"refused with 400, aten\.conv.*expected scalar type": "PyTorch does not look at the dtype where there are no channels",
    r"scaled_dot_product_attention.*must agree in their last size": "PyTorch reads beyond the values, or less than the keys",
    r"pad[123]d.*is too small. Calculated output": "PyTorch asks for one size above 0, not for all",
    r"addbmm_.*doesn't match the broadcast shape": "PyTorch resizes what it writes to",
}


def is_known(case, finding):
    """Whether the difference is one that stays."""
    if "conv" in finding.overload and finding.kind.startswith("differs") and not all(tensor.isfinite().all() for tensor in case.inputs.values()):
        return True  # padding and the gaps of transposed convolutions are zeros here, and 0 * inf is NaN
    numbers = [number for call in case.calls for number in floats_in([call.args, call.kwargs])]
    if any(word in finding.overload for word in PRODUCTS) and finding.kind.startswith("differs") and not all(map(math.isfinite, numbers)):
        return True  # an infinite alpha or beta: PyTorch multiplies with it before or after the sum
    empty = any(tensor.numel() == 0 for tensor in case.inputs.values())
    if empty and finding.kind.startswith("refused") and ("not implemented for" in finding.words or "attention" in finding.overload):
        return True  # PyTorch does not look at the dtype of what is empty, nor at the mask where there are no keys
    return any(re.search(pattern, str(finding)) for pattern in KNOWN)


class Client:
    """Runs cases on one server; a reply is (status, {node: tensor} or the error)."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def run(self, case, mode, outputs=None):
        inputs = {name: random_graphs.encode_tensor(tensor) for name, tensor in case.inputs.items()}
        body = {"graph": case.document(), "inputs": inputs, "mode": mode, "encoding": "b64"}
        if outputs:
            body["outputs"] = outputs
        try:
            status, parsed = self.post(json.dumps(body))
        except OSError:  # closed in between: a server that was too slow to be asked
            self.connection.close()
            status, parsed = self.post(json.dumps(body))
        if status != 200:
            return status, parsed
        return 200, {entry["node"]: decode_tensor(entry) for entry in parsed["outputs"] if "dtype" in entry}

    def post(self, body):
        self.connection.request("POST", "/v1/run", body, {"Content-Type": "application/json"})
        reply = self.connection.getresponse()
        return reply.status, json.loads(reply.read())


def decode_tensor(entry):
    raw, dtype = base64.b64decode(entry["b64"]), getattr(torch, entry["dtype"])
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"])


# ---- comparing ----------------------------------------------------------------------------------------------------


def difference(got, want, loose=1.0):
    """None, or how the tensors differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{str(got.dtype)[6:]} {list(got.shape)}, PyTorch has {str(want.dtype)[6:]} {list(want.shape)}"
    rtol, atol = TOLERANCE.get(want.dtype, (0.0, 0.0))
    a, b = got.reshape(-1), want.reshape(-1)
    if not want.is_floating_point():
        wrong = a != b
    else:
        x, y = a.double(), b.double()
        close = (x == y) | ((x - y).abs() <= loose * (atol + rtol * y.abs())) & y.isfinite() | (x.isnan() & y.isnan())
        wrong = ~close
    if not wrong.any():
        return None
    at = int(wrong.nonzero()[0])
    return f"element {at} of {wrong.numel()} is {a[at].item()!r}, PyTorch has {b[at].item()!r} ({int(wrong.sum())} differ)"


def as_doubles(value):
    def double(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.double() if leaf.is_floating_point() else leaf
        return torch.float64 if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf

    return map_leaves(double, value)


def no_worse(call, env, pick, got, want):
    """Whether `got` is about as near to the result of float64 operands as PyTorch's `want`."""
    if not want.is_floating_point() or got.dtype != want.dtype or got.shape != want.shape:
        return False
    try:
        wide = Call(call.name, call.overload, as_doubles(call.args), as_doubles(call.kwargs))
        exact = pick(wide.run({name: as_doubles(value) for name, value in env.items()})).double()
        if exact.shape != got.shape:
            return False
    except Exception:  # an operator that takes no float64 here
        return False
    x, y, rtol_atol = got.double(), want.double(), TOLERANCE[want.dtype]
    slack = rtol_atol[1] + rtol_atol[0] * exact.abs() + 4 * (y - exact).abs()
    fine = (x == exact) | (x == y) | (x.isnan() & (y.isnan() | exact.isnan())) | ((x - exact).abs() <= slack)
    over = exact.abs() >= torch.finfo(want.dtype).max  # sums that leave the range on the way
    return bool((fine | over & ~x.isfinite()).all())


def is_undefined(call, env, result):
    """Results that another implementation cannot be held to: floats as integers beyond their range, the order of equal elements."""
    operands = tensors_in(fill([call.args, call.kwargs], env))
    if call.overload is None:
        return False
    name = call.overload._schema.name
    if name in ("aten::as_strided", "aten::_reshape_alias"):
        return True  # reads what lies between the elements
    if name in UNSTABLE and any(tensor.numel() != tensor.unique().numel() for tensor in operands):
        return True
    kinds = {tensor.dtype for tensor in tensors_in([result]) if not tensor.is_floating_point() and tensor.dtype != torch.bool}
    if call.writes():
        kinds |= {operands[0].dtype} - {torch.bool, *random_graphs.FLOATS}
    for dtype in kinds:
        info = torch.iinfo(dtype)
        for tensor in operands:
            if tensor.is_floating_point() and not ((tensor > float(info.min) - 1) & (tensor < float(info.max))).all():
                return True
        for number in floats_in([call.args, call.kwargs]):
            if not info.min - 1 < number < info.max:
                return True
    return False


def floats_in(value):
    found = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, float) else None, value)
    return found


def placed_like(ours, theirs):
    """Our values with the strides that PyTorch's result has."""
    if not isinstance(theirs, torch.Tensor) or ours.shape != theirs.shape or ours.is_contiguous() and theirs.is_contiguous():
        return ours
    if any(stride == 0 for size, stride in zip(theirs.shape, theirs.stride()) if size > 1):
        return ours
    return torch.empty_strided(theirs.shape, theirs.stride(), dtype=ours.dtype).copy_(ours)


class Finding(Exception):
    """How a case failed: kind, the overload, and words."""

    def __init__(self, kind, overload, words):
        super().__init__(f"{kind}, {overload}: {words}")
        self.kind, self.overload, self.words = kind, str(overload), words

    def key(self):
        return self.kind, self.overload


def call_named(case, name):
    return next((call for call in case.calls if call.name == name), case.calls[-1])


def source_of(case, call):
    """getitem stands for the call that it reads."""
    while call.overload is None:
        call = call_named(case, call.args[0].name)
    return call


def overload_of(case, call):
    return source_of(case, call).overload


def check_nodes(case, theirs, ours):
    """Every node against PyTorch's result for our operands."""
    env = {name: value for name, value in case.inputs.items()}
    for call in case.calls:
        known = {name: env[name] for name in refs_in([call.args, call.kwargs])}
        try:
            want = call.run(known)
        except Exception:  # our rounding of an operand made it invalid: the rest hangs in the air
            return
        if isinstance(want, torch.Tensor):
            got = ours[call.name]
            if not is_undefined(call, known, want):
                problem = difference(got, want)
                if problem and not no_worse(call, known, lambda result: result, got, want):
                    raise Finding("differs", overload_of(case, call), problem)
            env[call.name] = placed_like(got, theirs[call.name]) if got.shape == want.shape and got.dtype == want.dtype else want
        elif isinstance(want, (list, tuple)):
            items = list(want)
            for reader in case.calls:
                if reader.overload is None and reader.args[0].name == call.name:
                    at = reader.args[1]
                    problem = None if is_undefined(call, known, want) else difference(ours[reader.name], want[at])
                    if problem and not no_worse(call, known, lambda result, at=at: result[at], ours[reader.name], want[at]):
                        raise Finding("differs", call.overload, f"result {at}: {problem}")
                    items[at] = placed_like(ours[reader.name], theirs[reader.name])
            env[call.name] = items
        else:
            env[call.name] = want


def check_end(client, case, theirs, ours):
    """The results of a graph that writes in place; a difference counts when all was equal before the call that shows it."""
    if all(difference(ours[name], theirs[name]) is None for name in case.results):
        return
    for at in range(len(case.calls)):
        calls = case.calls[: at + 1]
        state = [name for name in (*case.inputs, *(call.name for call in calls)) if isinstance(theirs[name], torch.Tensor)]
        prefix = Case(case.inputs, calls, state)
        want = prefix.run()
        status, got = client.run(prefix, "eager")
        if status != 200 or any(name not in got for name in state):
            return
        problems = [(name, difference(got[name], want[name])) for name in state]
        problems = [(name, problem) for name, problem in problems if problem]
        call = source_of(case, calls[-1])
        if problems:
            if any(is_undefined(call, known, want[call.name]) for call in calls for known in (want, {**want, **case.inputs})):
                return
            if reads_what_it_writes(call, want) or is_plain_rounding(call, want, got, problems):
                return
            raise Finding("differs in place", overload_of(case, call), problems[0][1])
        if not all(same_bits(got[name], want[name]) for name in state):
            return


def reads_what_it_writes(call, env):
    """A product or norm whose operand is written: what PyTorch gives depends on the order of its loops."""
    operands = tensors_in(fill([call.args, call.kwargs], env))
    storages = [tensor.untyped_storage().data_ptr() for tensor in operands if tensor.numel()]
    return any(word in str(call.overload) for word in (*PRODUCTS, "norm")) and len(set(storages)) < len(storages)


def is_plain_rounding(call, want, got, problems):
    """Sums of large numbers: off by no more than a few units of the largest element."""
    for name, _ in problems:
        a, b = got[name], want[name]
        if a.dtype != b.dtype or a.shape != b.shape or not b.is_floating_point():
            return False
        largest = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
        near = torch.isclose(a.double(), b.double(), rtol=0, atol=4 * TOLERANCE[b.dtype][0] * largest, equal_nan=True)
        top = torch.finfo(b.dtype).max / 4
        if not (near | (a.abs() > top) & (b.abs() > top)).all():
            return False
    return True


def has_products(case):
    return any(any(word in str(call.overload) for word in PRODUCTS) for call in case.calls)


def check_modes(case, eager, compiled):
    """The compiled run against the eager one."""
    for name in case.results:
        a, b = eager[name], compiled[name]
        if same_bits(a, b):
            continue
        if has_products(case) and a.dtype == b.dtype and a.shape == b.shape:
            if len(case.calls) > 1 or not a.is_floating_point() or torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-3, equal_nan=True):
                continue
        at = "dtype or shape"
        if a.dtype == b.dtype and a.shape == b.shape:
            place = int((bits(a) != bits(b)).any(1).nonzero()[0])
            words = [f"{x.reshape(-1)[place].item()!r} ({bits(x)[place].numpy().tobytes()[::-1].hex()})" for x in (a, b)]
            at = f"element {place} is {words[1]}, eagerly {words[0]}"
        raise Finding("compiled is not eager", overload_of(case, call_named(case, name)), f"{name}: {at}")


def check(client, case, counts):
    """Raises a Finding, or counts what the case was."""
    plain = not case.in_place()
    if case.refused is not None:
        return check_refusal(client, case, counts)
    theirs = case.run()
    names = [call.name for call in case.calls if isinstance(theirs[call.name], torch.Tensor)] if plain else None
    status, ours = client.run(case, "eager", names)
    if status == 422:
        counts["unsupported"] += 1
        return None
    if status != 200:
        culprit = call_named(case, ours.get("node"))
        raise Finding(f"refused with {status}", overload_of(case, culprit), ours["error"].split("\n")[0])
    if plain:
        check_nodes(case, theirs, ours)
    else:
        check_end(client, case, theirs, ours)
    status, compiled = client.run(case, "compiled")
    if status != 200:
        raise Finding(f"compiled refused with {status}", overload_of(case, call_named(case, compiled.get("node"))), compiled["error"].split("\n")[0])
    check_modes(case, ours, compiled)
    counts["equal"] += 1
    return None


def check_refusal(client, case, counts):
    eager, compiled = client.run(case, "eager"), client.run(case, "compiled")
    overload = case.calls[-1].overload
    for mode, (status, _) in (("eager", eager), ("compiled", compiled)):
        if status == 200:
            raise Finding(f"accepted, {mode}", overload, f"PyTorch says: {case.refused}")
        if status not in (400, 413, 422):
            raise Finding(f"refused with {status}", overload, "where PyTorch says: " + case.refused)
    if eager[0] != compiled[0] or eager[1].get("node") != compiled[1].get("node"):
        words = [f"{status} {reply.get('node')} {reply['error'].splitlines()[0]}" for status, reply in (eager, compiled)]
        raise Finding("refusals differ", overload, " | ".join(words))
    counts["refused"] += 1


# ---- cutting down -------------------------------------------------------------------------------------------------


def still_fails(client, case, finding):
    try:
        if case.refused is not None:
            try:
                case.run()
                return False
            except Exception as error:
                case.refused = str(error).split("\n")[0]
        check(client, case, collections.Counter())
    except Finding as found:
        return found.key() == finding.key()
    except Exception:  # no longer a graph that runs in PyTorch
        return False
    return False


def reachable(case):
    needed, calls = set(case.results), []
    for call in reversed(case.calls):
        if call.name in needed or call.writes():
            needed.update(refs_in([call.args, call.kwargs]))
            calls.append(call)
    inputs = {name: tensor for name, tensor in case.inputs.items() if name in needed}
    return Case(inputs, calls[::-1], case.results, case.refused)


def smaller_cases(case):
    """Cases that are a little smaller, the most promising first."""
    for name in [call.name for call in case.calls] if case.refused is None else []:
        if case.results != [name]:
            at = [call.name for call in case.calls].index(name)
            yield reachable(Case(case.inputs, case.calls[: at + 1], [name]))
    try:
        env = Case(case.inputs, case.calls[:-1] if case.refused else case.calls, []).run()
    except Exception:
        env = {}
    for at, call in enumerate(case.calls[:-1]):
        if isinstance(env.get(call.name), torch.Tensor):  # a call becomes an input
            calls = case.calls[:at] + case.calls[at + 1 :]
            yield reachable(Case({**case.inputs, call.name: env[call.name].contiguous().clone()}, calls, case.results, case.refused))
    for size in sorted({size for tensor in case.inputs.values() for size in tensor.shape if size > 1}, reverse=True):
        for less in {1, 2, size // 2} - {size}:
            cut = {name: cut_size(tensor, size, less) for name, tensor in case.inputs.items()}
            yield Case(cut, case.calls, case.results, case.refused)
    for name, tensor in case.inputs.items():
        for other in (torch.ones_like(tensor), torch.zeros_like(tensor)):
            if not same_bits(other, tensor):
                yield Case({**case.inputs, name: other}, case.calls, case.results, case.refused)
        for dim in range(tensor.dim()):
            if tensor.shape[dim] > 1:
                yield Case({**case.inputs, name: tensor.narrow(dim, 0, 1).contiguous()}, case.calls, case.results, case.refused)
                yield Case({**case.inputs, name: tensor.narrow(dim, tensor.shape[dim] - 1, 1).contiguous()}, case.calls, case.results, case.refused)


def cut_size(tensor, size, less):
    for dim in range(tensor.dim()):
        if tensor.shape[dim] == size:
            tensor = tensor.narrow(dim, 0, less)
    return tensor.contiguous()


def minimised(client, case, finding, seconds=6):
    end, found = time.monotonic() + seconds, True
    while found and time.monotonic() < end:
        found = False
        for smaller in smaller_cases(case):
            if time.monotonic() > end:
                break
            if smaller.calls and still_fails(client, smaller, finding):
                case, found = smaller, True
                break
    return case


def final_words(client, case):
    try:
        check(client, case, collections.Counter())
    except Finding as finding:
        return str(finding)
    return "did not fail again"


# ---- running ------------------------------------------------------------------------------------------------------


def run_seeds(options, port, cases, seeds, progress, path):
    """In a process of its own: PyTorch may crash. Findings go to `path`."""
    client, counts, findings, seen = Client(port), collections.Counter(), [], set(options.seen)
    for seed in seeds:
        progress[:8] = struct.pack("<q", seed)
        try:
            case = random_graphs.random_case(seed, cases)
        except SystemError:
            continue
        if case is None:
            continue
        for call in case.calls:
            if call.overload is not None:
                counts["op " + str(call.overload)] += 1
        try:
            check(client, case, counts)
        except Finding as finding:
            if is_known(case, finding):
                counts["known"] += 1
                continue
            text, counts["failed"] = None, counts["failed"] + 1
            if finding.key() not in seen and not options.no_shrink:
                small = minimised(client, case, finding)
                text = f"{final_words(client, small)}\n    {random_graphs.dump(small, 'eager')}"
            seen.add(finding.key())
            findings.append((finding.key(), seed, str(finding), text))
        except (http.client.HTTPException, OSError) as error:
            findings.append((("no reply", ""), seed, f"no reply: {error}", random_graphs.dump(case, "eager")))
            counts["failed"] += 1
            break
    with open(path, "wb") as file:
        pickle.dump((counts, findings), file)


def run_chunk(options, port, cases, seeds, path):
    """(counts, findings, the seeds that are left)."""
    progress = mmap.mmap(-1, 8)
    path.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run_seeds(options, port, cases, seeds, progress, path)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):  # PyTorch has crashed on this seed; those before it are done again by nobody
        at = seeds.index(struct.unpack("<q", progress[:8])[0])
        return collections.Counter({"PyTorch crashed": 1, "lost": at}), [], seeds[at + 1 :]
    if status != 0:
        raise SystemExit("the generator failed")
    with open(path, "rb") as file:
        counts, findings = pickle.load(file)
    return counts, findings, []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None, help="the first graph's seed (default: a random one, printed)")
    parser.add_argument("--seconds", type=int, default=0, help="stop after this time (default: never)")
    parser.add_argument("--one", type=int, help="only the graph of this seed, not cut down")
    parser.add_argument("--only", nargs="*", help="graphs of these overloads only")
    parser.add_argument("--no-shrink", action="store_true", help="do not cut failing graphs down")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    options.seen = set()
    server = Server(options.fxserve, ["--data", "none", "--quiet", "--no-warm-up", "--workers", "1"]).start()
    supported = set(ops_of(server))
    cases = random_graphs.golden_cases(set(options.only) & supported if options.only else supported)
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 40)
    if options.one is not None:
        first, options.graphs, options.no_shrink = options.one, 1, True
    print(f"seed {first}, {options.graphs} graphs over {len(cases)} overloads", flush=True)
    counts, groups, end = collections.Counter(), {}, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        for start in range(first, first + options.graphs, CHUNK):
            seeds = list(range(start, min(start + CHUNK, first + options.graphs)))
            while seeds and (options.seconds == 0 or time.monotonic() < end):
                more, findings, seeds = run_chunk(options, server.port, cases, seeds, pathlib.Path(folder) / "findings")
                counts += more
                for key, seed, words, text in findings:
                    groups.setdefault(key, []).append(seed)
                    if len(groups[key]) == 1:
                        print(f"FAILED seed {seed}: {words}\n    cut down: {text}" if text else f"FAILED seed {seed}: {words}", flush=True)
                options.seen.update(groups)
                if any(key[0] == "no reply" for key, *_ in findings):
                    print("\n".join(server.stop()) or "the server went silent")
                    server = Server(options.fxserve, server.flags).start()
    problems = server.stop()
    for problem in problems:
        print(f"FAILED server: {problem}")
    for key, seeds in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(seeds):6} × {key[0]}, {key[1]} (seeds {', '.join(map(str, seeds[:3]))})")
    tried = sum(1 for name in counts if name.startswith("op "))
    print(f"{tried} overloads; " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items()) if not name.startswith("op ")))
    passed = counts["equal"] + counts["refused"] + counts["unsupported"] + counts["known"]
    print(f"{passed} passed, {counts['failed'] + len(problems)} failed")
    raise SystemExit(1 if groups or problems else 0)


def ops_of(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/v1/ops")
    listed = json.loads(connection.getresponse().read())["ops"]
    return [entry["target"].removeprefix("torch.ops.") for entry in listed if entry["target"].startswith("torch.ops.aten.")]


if __name__ == "__main__":
    main()
