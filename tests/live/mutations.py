# SPDX-License-Identifier: Apache-2.0
"""`"mutations": true`: what a run leaves in the state and inputs that it writes, against PyTorch.

    .venv/bin/python tests/live/mutations.py build/fxserve

Modules that write to buffers and inputs, whole, by views and by index, in branches and behind sizes
that only the run knows; exported as torch.export gives them and after run_decompositions(). In both
modes every buffer and input that PyTorch's run changes comes back by name with PyTorch's value, none
that no node writes does, and the next run starts from the uploaded state. Needs torch 2.13 and numpy.
The last line is `N passed, N failed`.
"""

import copy
import io
import json
import pathlib
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from compare import values_problem
from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving


class Stateful(nn.Module):
    """Buffers, a norm in training, a parameter that nothing writes; forward is the given function."""

    def __init__(self, function):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.arange(12.0).reshape(3, 4))
        self.register_buffer("fixed", torch.ones(4))
        self.scale = nn.Parameter(torch.tensor([1.5, -2.0, 0.25, 1.0]))
        self.norm = nn.BatchNorm1d(4)
        self.function = function

    def forward(self, x, at):
        return self.function(self, x, at)


def counts(self, x, at):
    self.steps.add_(1)
    return x * self.scale + self.steps


def normalises(self, x, at):
    return self.norm(x) + self.fixed


def remembers(self, x, at):
    self.cache.index_copy_(0, at, x[:1])
    return self.cache.sum(0) + x


def by_views(self, x, at):
    self.cache[:, 1:3].mul_(2)
    row = self.cache.t()[0]
    row.add_(x[0, 0])
    return self.cache @ x.t()


def writes_input(self, x, at):
    y = x * 2
    x[:, 0] = 0
    x.add_(1)
    return y + x


def writes_both(self, x, at):
    self.cache.copy_(x[:3] + self.cache)
    x.neg_()
    self.steps += at[0]
    return x.sum()


def twice(self, x, at):
    self.cache.add_(1)
    seen = self.cache.clone()
    self.cache.mul_(x[0])
    return seen


def of_unknown_size(self, x, at):
    self.steps.add_(1)
    rows = x[x[:, 0] > 0]
    self.cache.add_(rows.sum())
    return rows * 2


def nothing(self, x, at):
    return x + self.cache.sum() + self.steps


CASES = (counts, normalises, remembers, by_views, writes_input, writes_both, twice, of_unknown_size, nothing)


def expected(program, x, at):
    """(outputs, {name: value} of all buffers and inputs after the run, the names that it changed)."""
    module = copy.deepcopy(program).module()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x = x.clone()
    before["x"] = x.clone()
    out = module(x, at)
    after = {**{name: value.detach() for name, value in module.state_dict().items()}, "x": x}
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    return out, after, changed


def check(server, tally, words, program, x, at):
    blob = io.BytesIO()
    torch.export.save(program, blob)
    reply = server.call("PUT", "/v1/graphs/m", blob.getvalue())
    if reply.status >= 300:
        tally.bad(words, reply.short())
        return
    out, after, changed = expected(program, x, at)
    written = set()
    for mode in ("eager", "compiled", "eager", "compiled"):  # each starts from the state as uploaded
        body = {"inputs": {"x": encode_tensor(x), "at": encode_tensor(at)}, "mode": mode, "encoding": "b64",
                "mutations": True}
        reply = server.call("POST", "/v1/graphs/m/run", json.dumps(body).encode())
        if reply.status != 200:
            tally.bad(f"{words}, {mode}", reply.short())
            continue
        document = reply.json()
        tally.check(f"{words}, {mode}: outputs", values_problem(
            [decode_tensor(entry) for entry in document["outputs"]], [out.detach()]))
        got = {entry["name"]: decode_tensor(entry) for entry in document["mutations"]}
        missing = changed - got.keys()
        tally.check(f"{words}, {mode}: all that changed is there", str(missing) if missing else "")
        problem = values_problem(list(got.values()), [after[name] for name in got])
        tally.check(f"{words}, {mode}: values", problem)
        written |= got.keys()
    more = written & {"scale", "fixed", "norm.weight", "norm.bias"}
    tally.check(f"{words}: nothing else is there", f"{more}, which nothing writes" if more else "")


def main():
    torch.manual_seed(0)
    x, at = torch.randn(3, 4), torch.tensor([1])
    with serving(sys.argv[1]) as (server, tally):
        for function in CASES:
            program = torch.export.export(Stateful(function), (x, at))
            check(server, tally, function.__name__, program, x, at)
            check(server, tally, f"{function.__name__}, decomposed", program.run_decompositions(), x, at)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
