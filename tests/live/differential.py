# SPDX-License-Identifier: Apache-2.0
"""Runs random graphs in PyTorch and in fxserve, eagerly and compiled, and compares.

    python tests/live/differential.py build/fxserve [--graphs 2000] [--seed N] [--seconds 0] [--one
    SEED] [--only OVERLOAD ...]

Needs torch 2.13, numpy and safetensors; no network. The graphs are those of random_graphs.py; every
fifth graph is one of random_layers.py, of which only the end is compared. What must hold:

    eager       every node's result is PyTorch's for the same operands: dtype, shape, and values
                within torch.testing.assert_close's defaults. Where PyTorch's own result is off by
                more, ours may be as far from that of float64 operands
    compiled    the bits of the eager run; where products take part, the same within 1e-3
    refusals    what PyTorch refuses is refused by both modes, and the other way round; 422 says
                that something is not supported

The operands of a node are our own results, so that one rounding does not become another result
further on. In graphs that write in place only the end of the run is compared, and a difference
counts if all was equal bits before the call that shows it. A failing graph is cut down and printed
as a body for POST /v1/run. The last line is `N passed, N failed`; the exit code is 1 if a graph
failed.
"""

import argparse
import base64
import collections
import http.client
import json
import mmap
import os
import pathlib
import pickle
import random
import struct
import sys
import tempfile
import time
import traceback
import warnings

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "generate"), str(ROOT / "tests" / "service"),
                str(ROOT / "tests" / "live")]

import random_graphs
import random_layers
from differences import (PRODUCTS, difference, is_known, is_no_worse_in_place, is_plain_rounding,
                         is_undefined, no_worse, placed_like, reads_what_it_writes)
from make_goldens import TOLERANCE
from random_graphs import Case, bits, refs_in, same_bits
from service import Server

CHUNK = 200
LAYERS_EVERY = 5  # seeds that are multiples of it are graphs of layers, functions and methods


class Client:
    """Runs cases on one server; a reply is (status, {node: tensor} or the error)."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def run(self, case, mode, outputs=None):
        inputs = {name: random_graphs.encode_tensor(tensor) for name, tensor in case.inputs.items()}
        body = {"graph": case.document(), "inputs": inputs, "mode": mode, "encoding": "b64"}
        if outputs:
            body["outputs"] = outputs
        status, parsed = self.post(json.dumps(body))
        if status != 200:
            return status, parsed
        return 200, {entry["node"]: decode_tensor(entry) for entry in parsed["outputs"] if "dtype" in entry}

    def post(self, body):
        try:
            return self.post_once(body)
        except OSError:  # PyTorch took so long that the server closed the idle connection
            self.connection.close()
            return self.post_once(body)

    def post_once(self, body):
        self.connection.request("POST", "/v1/run", body, {"Content-Type": "application/json"})
        reply = self.connection.getresponse()
        return reply.status, json.loads(reply.read())


def decode_tensor(entry):
    raw, dtype = base64.b64decode(entry["b64"]), getattr(torch, entry["dtype"])
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"])


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
            env[call.name] = (placed_like(got, theirs[call.name]) if got.shape == want.shape
                              and got.dtype == want.dtype else want)
        elif isinstance(want, (list, tuple)):
            items = list(want)
            for reader in case.calls:
                if reader.overload is None and reader.args[0].name == call.name:
                    at = reader.args[1]
                    problem = None if is_undefined(call, known,
                                                   want) else difference(ours[reader.name], want[at])
                    if problem and not no_worse(call, known, lambda result, at=at: result[at],
                                                ours[reader.name], want[at]):
                        raise Finding("differs", call.overload, f"result {at}: {problem}")
                    items[at] = placed_like(ours[reader.name], theirs[reader.name])
            env[call.name] = items
        else:
            env[call.name] = want


def check_end(client, case, theirs, ours):
    """The results of a graph that writes in place; a difference counts when all was equal before
    the call that shows it."""
    if all(difference(ours[name], theirs[name]) is None for name in case.results):
        return
    for at in range(len(case.calls)):
        calls = case.calls[: at + 1]
        state = [name for name in (*case.inputs, *(call.name for call in calls))
                 if isinstance(theirs[name], torch.Tensor)]
        prefix = Case(case.inputs, calls, state)
        want = prefix.run()
        status, got = client.run(prefix, "eager")
        if status != 200 or any(name not in got for name in state):
            return
        problems = [(name, difference(got[name], want[name])) for name in state]
        problems = [(name, problem) for name, problem in problems if problem]
        call = source_of(case, calls[-1])
        if problems:
            if any(is_undefined(call, known, want[call.name]) for call in calls
                   for known in (want, {**want, **case.inputs})):
                return
            if reads_what_it_writes(call, want) or is_plain_rounding(call, want, got, problems):
                return
            if is_no_worse_in_place(case.inputs, calls, problems, want, got):
                return
            raise Finding("differs in place", overload_of(case, call), problems[0][1])
        if not all(same_bits(got[name], want[name]) for name in state):
            return


def has_products(case):
    return any(any(word in str(call.overload) for word in PRODUCTS) for call in case.calls)


def check_modes(case, eager, compiled):
    """The compiled run against the eager one."""
    for name in case.results:
        a, b = eager[name], compiled[name]
        if same_bits(a, b):
            continue
        if has_products(case) and a.dtype == b.dtype and a.shape == b.shape:
            if (len(case.calls) > 1 or not a.is_floating_point()
                or torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-3, equal_nan=True)):
                continue
        at = "dtype or shape"
        if a.dtype == b.dtype and a.shape == b.shape:
            place = int((bits(a) != bits(b)).any(1).nonzero()[0])
            words = [f"{x.reshape(-1)[place].item()!r} ({bits(x)[place].numpy().tobytes()[::-1].hex()})"
                     for x in (a, b)]
            at = f"element {place} is {words[1]}, eagerly {words[0]}"
        raise Finding("compiled is not eager", overload_of(case, call_named(case, name)), f"{name}: {at}")


def check(client, case, counts):
    """Raises a Finding, or counts what the case was."""
    plain = not case.in_place()
    if case.refused is not None:
        return check_refusal(client, case, counts)
    try:
        theirs = case.run()
    except (RuntimeError, IndexError):  # indices from undefined memory (empty_like): in range once, not now
        counts["undefined"] += 1
        return None
    names = [call.name for call in case.calls
             if isinstance(theirs[call.name], torch.Tensor)] if plain else None
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
        raise Finding(f"compiled refused with {status}",
                      overload_of(case, call_named(case, compiled.get("node"))),
                      compiled["error"].split("\n")[0])
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
        words = [f"{status} {reply.get('node')} {reply['error'].splitlines()[0]}"
                 for status, reply in (eager, compiled)]
        raise Finding("refusals differ", overload, " | ".join(words))
    counts["refused"] += 1


def check_layer(client, case, counts):
    """A graph of random_layers.py: its results at the end only."""
    try:
        want, refused = case.run(), None
    except Exception as error:  # whatever PyTorch raises is a refusal
        want, refused = None, str(error).split("\n")[0]
    replies = [client.post(case.body(mode)) for mode in ("eager", "compiled")]
    statuses = [status for status, _ in replies]
    if statuses[0] == 422:
        counts["unsupported"] += 1
    elif refused is not None:
        if statuses[0] == 200:
            raise Finding("accepted, layers", case.name, f"PyTorch says: {refused}")
        if statuses[0] not in (400, 413) or statuses[1] != statuses[0]:
            raise Finding(f"refused with {statuses}", case.name, f"PyTorch says: {refused}")
        counts["refused"] += 1
    elif statuses != [200, 200]:
        words = [reply.get("error", "").split("\n")[0] for _, reply in replies]
        raise Finding(f"refused with {statuses}, layers", case.name, " | ".join(words))
    else:
        eager, compiled = ([decode_tensor(entry) if "dtype" in entry else entry["value"]
                            for entry in reply["outputs"]] for _, reply in replies)
        check_layer_results(case, want, eager, compiled)
        counts["equal"] += 1


def check_layer_results(case, want, eager, compiled):
    for at, (theirs, ours, again) in enumerate(zip(want, eager, compiled)):
        if not isinstance(theirs, torch.Tensor):
            continue
        problem = difference(ours, theirs)
        if (problem and theirs.dtype == ours.dtype and theirs.shape == ours.shape
            and theirs.is_floating_point()):
            exact = case.run(double=True)[at].double()
            largest = theirs[theirs.isfinite()].abs().max().item() if theirs.isfinite().any() else 0.0
            slack = (1e-5 + TOLERANCE[theirs.dtype][0] * largest + 4 * (theirs.double() - exact).abs()
                     + TOLERANCE[theirs.dtype][0] * exact.abs())
            near = ((ours.double() - exact).abs()
                    <= slack) | (ours.double() == exact) | (ours.isnan() & (theirs.isnan() | exact.isnan()))
            over = exact.abs() >= torch.finfo(theirs.dtype).max  # sums that leave the range on the way
            problem = None if bool((near | over & ~ours.isfinite()).all()) else problem
        if problem:
            raise Finding("layers differ", case.name, f"result {at}: {problem}")
        products = any(word in case.name.lower() for word in PRODUCTS)
        if not (same_bits(ours, again) or products and ours.shape == again.shape
                and torch.allclose(ours.double(), again.double(), 1e-3, 1e-3, equal_nan=True)):
            raise Finding("compiled is not eager, layers", case.name, f"result {at}")


# ---- cutting down ------------------------------------------------------------------------------


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
            yield reachable(Case({**case.inputs, call.name: env[call.name].contiguous().clone()}, calls,
                                 case.results, case.refused))
    for size in sorted({size for tensor in case.inputs.values() for size in tensor.shape if size > 1},
                       reverse=True):
        for less in {1, 2, size // 2} - {size}:
            cut = {name: cut_size(tensor, size, less) for name, tensor in case.inputs.items()}
            yield Case(cut, case.calls, case.results, case.refused)
    for name, tensor in case.inputs.items():
        for other in (torch.ones_like(tensor), torch.zeros_like(tensor)):
            if not same_bits(other, tensor):
                yield Case({**case.inputs, name: other}, case.calls, case.results, case.refused)
        for dim in range(tensor.dim()):
            if tensor.shape[dim] > 1:
                yield Case({**case.inputs, name: tensor.narrow(dim, 0, 1).contiguous()}, case.calls,
                           case.results, case.refused)
                yield Case({**case.inputs, name: tensor.narrow(dim, tensor.shape[dim] - 1, 1).contiguous()},
                           case.calls, case.results, case.refused)


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


# ---- running -----------------------------------------------------------------------------------


def run_seeds(options, port, cases, seeds, progress, path):
    """In a process of its own: PyTorch may crash. What each seed gave goes to `path` at once."""
    client, seen = Client(port), set(options.seen)
    with open(path, "wb", buffering=0) as file:
        for seed in seeds:
            progress[:8] = struct.pack("<q", seed)
            counts, findings = collections.Counter(), []
            try:
                run_seed(options, client, cases, seed, seen, counts, findings)
            except SystemError:
                pass
            file.write(pickle.dumps((counts, findings)))
            if any(key[0] == "no reply" for key, *_ in findings):
                break


def run_seed(options, client, cases, seed, seen, counts, findings):
    if seed % LAYERS_EVERY == 0 and not options.only:
        run_layer(client, seed, counts, findings)
        return
    case = random_graphs.random_case(seed, cases)
    if case is None:
        return
    for call in case.calls:
        if call.overload is not None:
            counts["op " + str(call.overload)] += 1
    try:
        check(client, case, counts)
    except Finding as finding:
        if is_known(case, finding):
            counts["known"] += 1
            return
        text, counts["failed"] = None, counts["failed"] + 1
        if finding.key() not in seen and not options.no_shrink:
            small = minimised(client, case, finding)
            text = f"{final_words(client, small)}\n    {random_graphs.dump(small, 'eager')}"
        seen.add(finding.key())
        findings.append((finding.key(), seed, str(finding), text))
    except (http.client.HTTPException, OSError) as error:
        findings.append((("no reply", ""), seed, f"no reply: {error}", random_graphs.dump(case, "eager")))
        counts["failed"] += 1


def run_layer(client, seed, counts, findings):
    try:
        case = random_layers.LayerCase(seed)
    except Exception:  # arguments that a constructor refuses
        return
    if not case.has_nodes():
        return
    try:
        check_layer(client, case, counts)
    except Finding as finding:
        if is_known(case, finding):
            counts["known"] += 1
            return
        counts["failed"] += 1
        body = json.loads(case.body("eager"))
        findings.append((finding.key(), seed, str(finding), f"not cut down\n    {json.dumps(body)}"))


def run_chunk(options, port, cases, seeds, path):
    """(counts, findings, the seeds that are left)."""
    progress = mmap.mmap(-1, 8)
    path.write_bytes(b"")
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
    counts, findings = results_of(path)
    if status == 0:
        return counts, findings, []
    last = struct.unpack("<q", progress[:8])[0]
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"the generator failed with seed {last}")
    print(f"PyTorch crashed, signal {os.WTERMSIG(status)}: seed {last}, or one before it", flush=True)
    counts["PyTorch crashed"] += 1
    return counts, findings, seeds[seeds.index(last) + 1 :]


def results_of(path):
    """What the seeds of a chunk gave, up to a crash."""
    counts, findings = collections.Counter(), []
    with open(path, "rb") as file:
        while True:
            try:
                more, found = pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                return counts, findings
            counts += more
            findings += found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None,
                        help="the first graph's seed (default: a random one, printed)")
    parser.add_argument("--seconds", type=int, default=0, help="stop after this time (default: never)")
    parser.add_argument("--one", type=int, help="only the graph of this seed, not cut down")
    parser.add_argument("--only", nargs="*", help="graphs of these overloads only")
    parser.add_argument("--no-shrink", action="store_true", help="do not cut failing graphs down")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    options.seen = set()
    given = {name: value for name, value in os.environ.items() if name.startswith("FXSERVE_")}
    server = Server(options.fxserve, ["--data", "none", "--quiet", "--no-warm-up", "--workers", "1"],
                    extra_environment=given).start()
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
                more, findings, seeds = run_chunk(options, server.port, cases, seeds,
                                                  pathlib.Path(folder) / "findings")
                counts += more
                for key, seed, words, text in findings:
                    groups.setdefault(key, []).append(seed)
                    if len(groups[key]) == 1:
                        print(f"FAILED seed {seed}: {words}\n    cut down: {text}" if text
                              else f"FAILED seed {seed}: {words}", flush=True)
                options.seen.update(groups)
                if any(key[0] == "no reply" for key, *_ in findings):
                    print("\n".join(server.stop()) or "the server went silent")
                    server = Server(options.fxserve, server.flags, extra_environment=given).start()
    problems = server.stop()
    for problem in problems:
        print(f"FAILED server: {problem}")
    for key, seeds in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(seeds):6} × {key[0]}, {key[1]} (seeds {', '.join(map(str, seeds[:3]))})")
    tried = sum(1 for name in counts if name.startswith("op "))
    print(f"{tried} overloads; "
          + ", ".join(f"{name} {n}" for name, n in sorted(counts.items()) if not name.startswith("op ")))
    passed = counts["equal"] + counts["refused"] + counts["unsupported"] + counts["known"]
    print(f"{passed} passed, {counts['failed'] + len(problems)} failed")
    raise SystemExit(1 if groups or problems else 0)


def ops_of(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/v1/ops")
    listed = json.loads(connection.getresponse().read())["ops"]
    return [entry["target"].removeprefix("torch.ops.") for entry in listed
            if entry["target"].startswith("torch.ops.")]


if __name__ == "__main__":
    main()
