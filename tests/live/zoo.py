# SPDX-License-Identifier: Apache-2.0
"""A table of models: exported here, uploaded, run in both modes at two sizes, compared with PyTorch.

    python tests/live/zoo.py build/fxserve [--long] [--only PART] [--rest 0] [--seed 0]
    [--names NAME ...]

Needs torch 2.13, numpy and safetensors. A third of the models is tried, `--rest` says which;
`--long` tries all, and those of torchvision, timm and transformers where they are installed.

    vision, dense, scenes …    architectures of torch.nn (NN_PARTS: zoo_vision.py and so on)
    control                    models with loops, branches and scans (zoo_control.py)
    torchvision, timm,         every model of torchvision, one per family of timm, one small
    transformers               configuration per model type of transformers (zoo_packages.py,
                               zoo_transformers.py)

A model's second size goes through dynamic dimensions; where PyTorch cannot export those, through an
export of its own. Models that torch.fx can trace are sent as FX JSON, too. A miss is printed with
its cause: the answer to the upload or the run, or the difference. The causes are counted at the end.
What PyTorch itself cannot export is counted as left out. The last line is `N passed, N failed`.

Outputs match within 1e-4 times their largest value (at least 1), or by the rule of zoo_doubles.py,
which asks float64 and judges in it where a comparison flips. A model whose program gives in PyTorch
other numbers than the model counts by its program. Lines that begin with "judged" name these models.
"""

import argparse
import collections
import contextlib
import importlib
import io
import json
import logging
import pathlib
import re
import sys
import time
import warnings

import torch
from safetensors.torch import save as save_safetensors
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from compare import values_problem
from differential import decode_tensor
from export_fx import dumps, export_fx
from random_graphs import encode_tensor
from service import Failed, Server, Tally, multipart
from zoo_doubles import flips, in_doubles, of_doubles, rule_problems, second_rule, without_onednn

NN_PARTS = ("vision", "dense", "scenes", "sequences", "signals", "series", "attention", "mixed", "choices",
            "points", "control")
PACKAGES = ("torchvision", "timm", "transformers")
MODES = ("eager", "compiled")
DIFFERS = ("a difference", )
FLIPS = ("a difference where PyTorch's float32 differs from its float64 by more than rounding", )


class Miss(Exception):
    """Why a model does not run or differs: a short cause to be counted, and the words."""

    def __init__(self, cause, words):
        super().__init__(words)
        self.cause = cause


def cloned(tree):
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, tree)


def dynamic_dims(first, second):
    """The `dynamic_shapes` of two argument trees: what differs is dynamic; None if nothing does."""
    found = []

    def dims(one, other):
        if not isinstance(one, torch.Tensor):
            return None
        differing = {
            at: torch.export.Dim.AUTO
            for at, (a, b) in enumerate(zip(one.shape, other.shape)) if a != b
        }
        found.extend(differing)
        return differing or None

    tree = pytree.tree_map(dims, first, second)
    return tree if found else None


def constants(tree):
    """What an export of these inputs holds as constants."""
    return pytree.tree_map(lambda leaf: None if isinstance(leaf, torch.Tensor) else leaf, tree)


def quiet(call, *arguments, **named):
    """`call` without what torch.export prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return call(*arguments, **named)


def exported(module, first, second):
    """[(program, inputs to run it with)]. The second size has no 1s, which would be constants."""
    if constants(first) != constants(second):
        return [(quiet(torch.export.export, module, cloned(inputs)), [inputs]) for inputs in (first, second)]
    dims = dynamic_dims(second, first)
    if dims is not None:
        try:
            program = quiet(torch.export.export, module, cloned(second), dynamic_shapes=dims)
            program.module()(*cloned(first))
            return [(program, [second, first])]
        except Exception:  # sizes that cannot be dynamic, or only for some values; faults of torch.export
            pass
    programs = [(quiet(torch.export.export, module, cloned(first)), [first])]
    if dims is not None:
        programs.append((quiet(torch.export.export, module, cloned(second)), [second]))
    return programs


def cause_of(status, error):
    """What a refusal is counted as: one entry per missing operator, or its words without names."""
    text = error.get("error", "")
    if error.get("code") == "unsupported_operators":
        return tuple(re.findall(r"([\w.:]+) \(", text.split(":", 1)[-1])) or (text, )
    return (re.sub(r'"[^"]*"|\d+', "…", f"{status} {text}")[:110], )


class Bench:
    """One server; every model is uploaded under the same name, and deleted when it was compared."""

    def __init__(self, binary):
        room = ["--max-upload", "2147483648", "--max-body-budget", "4294967296", "--max-graph-json",
                "67108864"]
        options = ["--data", "none", "--quiet", "--run-deadline-ms", "300000", *room]
        self.server = Server(binary, options).start()
        self.uploaded = False
        self.judged = set()  # of the model at hand: rules that were needed besides the tolerance

    def call(self, method, target, body=None, headers=()):
        try:
            reply = self.server.call(method, target, body, headers, seconds=600)
        except (Failed, OSError) as error:  # else the model would count as left out
            raise Miss(("no answer", ), f"{method} {target}: {error}") from error
        if reply.status >= 300:
            raise Miss(cause_of(reply.status, reply.json()), reply.short())
        return reply.json() if reply.body else None

    def upload(self, body, headers=()):
        self.call("PUT", "/v1/graphs/zoo", body, headers)
        self.uploaded = True

    def delete(self):
        """Its weights would stay in the server's memory until the next upload."""
        if self.uploaded:
            self.uploaded = False
            self.call("DELETE", "/v1/graphs/zoo")

    def run(self, inputs, mode):
        body = {"inputs": inputs, "mode": mode, "encoding": "b64", "deadline_ms": 300000, "seed": 0}
        entries = self.call("POST", "/v1/graphs/zoo/run", json.dumps(body).encode())["outputs"]
        return [decode_tensor(entry) for entry in entries if "dtype" in entry]

    def check(self, forward, inputs, names, second=True):
        """Both modes against `forward`, PyTorch's own run; state starts anew for each. Returns what only
        the `second` rule allows, in words."""
        torch.manual_seed(0)
        want = [
            leaf for leaf in pytree.tree_leaves(forward(*cloned(inputs))) if isinstance(leaf, torch.Tensor)
        ]
        leaves = [leaf for leaf in pytree.tree_leaves(inputs)]
        sent = {
            name: encode_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf
            for name, leaf in zip(names, leaves)
        }
        want, again, exact, words = [leaf.detach() for leaf in want], None, None, ""
        for mode in MODES:
            got = self.run(sent, mode)
            problem = values_problem(got, want)
            if problem and second:
                try:
                    again = again or without_onednn(forward, inputs)
                    exact = exact or in_doubles(forward, inputs)
                except Exception as error:
                    raise Miss(DIFFERS, f"{mode}: {problem}; PyTorch again: {str(error)[:90]}") from error
                problem, words = second_rule(got, want, again, exact)
            if problem:
                raise Miss(FLIPS if second and flips(got, want, exact) else DIFFERS, f"{mode}: {problem}")
        return words

    def judge(self, attempt, module, first, second):
        """One of the attempts below; in float64 where PyTorch's float32 is no measure."""
        try:
            return attempt(module, first, second)
        except Miss as miss:
            if miss.cause != FLIPS:
                raise
            try:
                reason = attempt(*of_doubles(module, first, second))
            except Exception as error:
                raise miss from error
            if reason:
                raise
            self.judged.add(f"in float64, for in float32 {miss}")
            return None

    def try_export(self, module, first, second):
        try:
            programs = exported(module, first, second)
        except Exception as error:
            return f"torch.export: {str(error).strip().splitlines()[0][:90]}"
        for program, sizes in programs:
            blob = io.BytesIO()
            torch.export.save(program, blob)
            self.upload(blob.getvalue())
            names = [
                spec.arg.name for spec in program.graph_signature.input_specs
                if spec.kind == InputKind.USER_INPUT
            ]
            for inputs in sizes:
                try:
                    self.check(module, inputs, names, second=False)
                except Miss as miss:
                    if miss.cause != DIFFERS:
                        raise
                    words = self.check(program.module(), inputs, names)
                    self.judged.add(words or "PyTorch's program does not give what the model gives")
        return None

    def try_trace(self, module, first, second):
        if not all(isinstance(leaf, torch.Tensor) for leaf in [*first, *second]):
            return "its inputs are no flat list of tensors"
        if any(child._forward_pre_hooks for child in module.modules()):
            return "its hooks are no part of a graph"
        try:
            gm = quiet(torch.fx.symbolic_trace, module)
            document, tensors = export_fx(gm)
        except Exception as error:
            return f"torch.fx: {str(error).strip().splitlines()[0][:90]}"
        weights = save_safetensors({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
        body, kind = multipart([("graph", dumps(document).encode()), ("weights", weights)])
        self.upload(body, [("Content-Type", kind)])
        names = [node.target for node in gm.graph.nodes if node.op == "placeholder"]
        for inputs in [first, second]:
            try:
                gm(*cloned(inputs))
            except Exception:  # sizes that the trace has as constants
                continue
            words = self.check(gm, inputs, names)
            if words:
                self.judged.add(words)
        return None


class Table:
    """The models' results, and causes of misses by count."""

    def __init__(self, bench):
        self.bench, self.tally = bench, Tally()
        self.causes, self.left_out = collections.defaultdict(list), []
        self.tried = collections.Counter()  # per part: models of which PyTorch gave results

    def add(self, name, way, attempt):
        """`attempt` returns why PyTorch cannot be asked, or None."""
        self.bench.judged.clear()
        try:
            reason = attempt()
        except Miss as miss:
            self.tried[name.partition("/")[0]] += 1
            for cause in miss.cause:
                self.causes[cause].append(name)
            self.tally.bad(f"{name} {way}", str(miss)[:600])
        except Exception as error:  # the model itself fails in PyTorch
            self.left_out.append(f"{name} {way}: {type(error).__name__}: {str(error)[:90]}")
        else:
            for words in sorted(self.bench.judged):
                print(f"judged {name} {way}: {words}")
            if reason is None:
                self.tried[name.partition("/")[0]] += 1
                self.tally.ok()
            elif way == "export":
                self.left_out.append(f"{name}: {reason}")
        try:
            self.bench.delete()
        except Miss as miss:
            self.tally.bad(f"{name} is not deleted", str(miss))

    def model(self, name, make, seed):
        torch.manual_seed(seed)
        try:
            module, first, second = make()
        except Exception as error:
            self.left_out.append(f"{name}: not made: {type(error).__name__}: {str(error)[:90]}")
            return
        module.eval()
        for buffer_name, buffer in module.named_buffers():
            # Statistics that are not 0 and 1. Were all means positive, relus behind small weights gave 0.
            least = {"running_mean": -0.25, "running_var": 0.75}.get(buffer_name.rpartition(".")[2])
            if least is not None:
                buffer.copy_(torch.rand_like(buffer) * 0.5 + least)
        self.add(name, "export", lambda: self.bench.judge(self.bench.try_export, module, first, second))
        self.add(name, "trace", lambda: self.bench.judge(self.bench.try_trace, module, first, second))

    def end(self, parts):
        for part in parts:
            self.tally.check(part, None if self.tried[part] else "every model was left out")
        for line in self.left_out:
            print(f"left out {line}")
        ranking = sorted(self.causes.items(), key=lambda item: -len(item[1]))
        for cause, names in ranking:
            print(f"{len(names):4} {cause}: {', '.join(sorted(set(names))[:6])}")


def parts_of(options):
    """{part: {name: make}}"""
    wanted = options.only.split(",") if options.only else NN_PARTS + (PACKAGES if options.long else ())
    return {
        part:
        importlib.import_module("zoo_packages").models(part)
        if part in PACKAGES else importlib.import_module(f"zoo_{part}").MODELS
        for part in wanted
    }


def chosen(parts, options):
    """[(name, make)]"""
    rows = [(f"{part}/{name}", make) for part, models in parts.items() for name, make in models.items()]
    if options.names:
        return [row for row in rows if any(name in row[0] for name in options.names)]
    return rows if options.long else rows[options.rest % 3::3]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--names", nargs="*", help="only models whose name contains one of these")
    parser.add_argument("--long", action="store_true", help="all models, and those of packages")
    parser.add_argument("--only", default="", help="parts to try, separated by commas")
    parser.add_argument("--rest", type=int, default=0, help="which third: 0, 1 or 2 (default: 0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="each model and its seconds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    rows = chosen(parts_of(options), options)
    bench = Bench(options.fxserve)
    table = Table(bench)
    table.tally.check("the rule of float64", ", ".join(rule_problems()))
    try:
        for name, make in rows:
            began = time.time()
            table.model(name, make, options.seed)
            if options.verbose:
                print(f"{name}: {time.time() - began:.1f} s", flush=True)
    finally:
        table.tally.check("the server's end", "\n".join(bench.server.stop()))
        bench.server.clean_up()
    table.end(sorted({name.partition("/")[0] for name, _ in rows}))
    return table.tally.end()


if __name__ == "__main__":
    sys.exit(main())
