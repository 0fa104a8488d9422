# SPDX-License-Identifier: Apache-2.0
"""Forms of inputs and results that torch.export knows, each exported here and run in both modes.

    python tests/live/inputs.py build/fxserve [--names NAME ...]

Needs torch 2.13 and numpy. Named, optional and missing inputs, numbers that are fixed or dynamic,
nested containers, dataclasses, and the order of named inputs. Every call is made of PyTorch, too:
the tensors have to be the same, and what PyTorch refuses has to be refused.
The last line is `N passed, N failed`.
"""

import argparse
import dataclasses
import io
import json
import pathlib
import sys
import warnings
from collections import OrderedDict, namedtuple
from typing import Optional

import torch
from torch import nn
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from compare import values_problem
from differential import decode_tensor
from random_graphs import encode_tensor
from service import Server, Tally

MODES = ("eager", "compiled")
Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Sample:
    value: torch.Tensor
    weight: Optional[torch.Tensor] = None


torch.export.register_dataclass(Sample, serialized_type_name="inputs.Sample")
pytree._register_namedtuple(Pair, serialized_type_name="inputs.Pair")


class Calls(nn.Module):
    """A module whose forward is the given function; `scale` is its only weight."""

    def __init__(self, function):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.5, -2.0, 0.25]))
        self.forward = function.__get__(self)


def named(self, x, **more):
    return x * self.scale + more["shift"] - 2 * more["drop"]


def positional_and_named(self, x, y, *, shift, factor=2.0):
    return x * factor + y / shift


def rest(self, x, *more):
    return x + more[0] * 2 + more[1] * self.scale


def optional(self, x, mask=None, bias=None):
    x = x if mask is None else x * mask
    return x if bias is None else x + bias


def fixed(self, x, flag, times, name, ratio):
    x = x * times if flag else x + times
    return x - ratio if name == "minus" else x + ratio


def dynamic_int(self, x, n):
    return x.repeat(2, 1)[:, :1] * n + self.scale


def dynamic_float(self, x, f):
    return x * f + self.scale


def dynamic_bool_of_int(self, x, n):
    return torch.where(x > n, x + n, x - n), n + 1


def nested(self, data, pair):
    return {
        "sum": data["a"] + data["b"][0], "more": [data["b"][1] * pair.left, (pair.right, None, 3)],
        "pair": Pair(pair.right - 1, data["a"])
    }


def dataclass_tree(self, sample):
    value = sample.value if sample.weight is None else sample.value * sample.weight
    return Sample(value + self.scale, value), 2.5, "text", True


def ordered(self, data):
    return OrderedDict((key, value * 2) for key, value in reversed(list(data.items())))


def same_twice(self, x, y):
    return x, x, y + x, x


def unused(self, x, y, z):
    return x + 1


def empty(self, x, nothing, items):
    return x + len(items)


def drawn(*shape):
    return torch.randn(*shape)


N = torch.export.Dim.AUTO


def cases():
    """(name, function, args, kwargs, dynamic_shapes, [other (args, kwargs)]). A third item of another
    call is what PyTorch is called with: JSON has no order, and names positional arguments, too."""
    x, y = drawn(2, 3), drawn(2, 3)
    other = drawn(5, 3)
    yield "named", named, (x, ), {"shift": y, "drop": x + 1}, None, [
        ((y, ), {"drop": x, "shift": y}), ((x, ), {"shift": y}), ((x, ), {"shift": y, "drop": x, "no": y})]
    yield "named only", named, (), {"x": x, "drop": x + 1, "shift": y}, None, [
        ((), {"shift": y, "drop": x, "x": y}),
        ((x, ), {"shift": y, "drop": x}, ((), {"x": x, "drop": x, "shift": y}))]
    yield "both kinds", positional_and_named, (x, y), {"shift": y + 3}, None, [
        ((y, x), {"shift": x}), ((y, x), {"shift": x, "factor": 3.0}),
        ((y, ), {"y": x, "shift": y}, ((y, x), {"shift": y}))]
    yield "number by name", positional_and_named, (x, y), {"factor": 3.0, "shift": y}, None, [
        ((x, y), {"factor": 3.0, "shift": x}), ((x, y), {"shift": x, "factor": 3.0}),
        ((x, y), {"shift": x, "factor": 4.0}), ((x, y), {"shift": x, "factor": 3})]
    yield "rest", rest, (x, y, x + 1), {}, None, [((y, y, x), {}), ((y, y), {}), ((y, y, x, x), {})]
    yield "optional given", optional, (x, y), {}, None, [
        ((y, x), {}), ((x, None), {}), ((x, ), {}), ((x, y, x), {})]
    yield "optional none", optional, (x, None, y), {}, None, [((y, None, x), {}), ((y, x, x), {})]
    yield "optional by name", optional, (x, ), {"bias": y}, None, [
        ((y, ), {"bias": x}), ((y, ), {"mask": x})]
    yield "optional left out", optional, (x, ), {}, None, [((y, ), {}), ((y, None), {}), ((y, x), {})]
    literals = (True, 3, "minus", 0.5)
    yield "fixed", fixed, (x, *literals), {}, None, [
        ((y, *literals), {}), ((y, False, 3, "minus", 0.5), {}), ((y, True, 4, "minus", 0.5), {}),
        ((y, True, 3, "plus", 0.5), {}), ((y, True, 3, "minus", 0.25), {}), ((y, 1, 3, "minus", 0.5), {}),
        ((y, True, 3.0, "minus", 0.5), {}), ((y, True, True, "minus", 0.5), {}),
        ((y, True, 3, None, 0.5), {}), ((y, True, 3, "minus", x), {})]
    yield "dynamic int", dynamic_int, (x, 7), {}, ((None, N)), [
        ((y, 3), {}), ((y, -4), {}), ((y, 0), {}), ((y, 1), {}), ((y, 1 << 40), {}), ((y, 2.5), {}),
        ((y, True), {}), ((y, None), {}), ((y, x), {})]
    yield "dynamic int result", dynamic_bool_of_int, (x, 7), {}, ((None, N)), [
        ((y, 3), {}), ((y, -1), {}), ((y, 2**62), {})]
    data = {"a": x, "b": [y, x + 1]}
    yield "nested", nested, (data, Pair(x, y)), {}, None, [
        (({"a": y, "b": [x, y]}, Pair(y, x)), {}),
        (({"b": [x, y], "a": y}, Pair(y, x)), {}, (({"a": y, "b": [x, y]}, Pair(y, x)), {})),
        (({"a": y, "b": [x]}, Pair(y, x)), {}), (({"a": y, "b": [x, y], "c": x}, Pair(y, x)), {})]
    yield "dataclass", dataclass_tree, (Sample(x, y), ), {}, None, [((Sample(y, x), ), {})]
    yield "dataclass without", dataclass_tree, (Sample(x), ), {}, None, [((Sample(y), ), {})]
    yield "ordered", ordered, (OrderedDict(b=x, a=y), ), {}, None, [
        ((OrderedDict(b=y, a=x), ), {}),
        ((OrderedDict(a=y, b=x), ), {}, ((OrderedDict(b=x, a=y), ), {}))]
    yield "plain dict order", ordered, ({"b": x, "a": y}, ), {}, None, [
        (({"b": y, "a": x}, ), {}), (({"a": y, "b": x}, ), {})]
    yield "same twice", same_twice, (x, y), {}, ({0: N}, {0: N}), [((other, other + 1), {})]
    yield "same tensor in", same_twice, (x, x), {}, None, [((x, y), {})]
    yield "unused", unused, (x, y, 3), {}, None, [((y, x, 3), {}), ((y, x, 4), {}), ((y, drawn(1), 3), {})]
    yield "empty containers", empty, (x, {}, []), {}, None, [((y, {}, []), {}), ((y, {}, [x]), {})]


def wire(tree):
    """What is sent for an argument: containers as JSON's, a dataclass and a named tuple by name."""
    if isinstance(tree, torch.Tensor):
        return encode_tensor(tree)
    if dataclasses.is_dataclass(tree):
        return {field.name: wire(getattr(tree, field.name)) for field in dataclasses.fields(tree)}
    if isinstance(tree, Pair):
        return {name: wire(getattr(tree, name)) for name in Pair._fields}
    if isinstance(tree, dict):
        return {key: wire(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [wire(value) for value in tree]
    if isinstance(tree, float) and tree in (float("inf"), float("-inf")):
        return "Infinity" if tree > 0 else "-Infinity"
    return tree


def answer(server, mode, args, kwargs):
    body = {"inputs": {"$args": [wire(value) for value in args], "$kwargs": wire(kwargs)}, "mode": mode,
            "encoding": "b64"}
    reply = server.call("POST", "/v1/graphs/m/run", json.dumps(body).encode())
    if reply.status != 200:
        return reply.status, reply.json()["error"]
    return 200, [decode_tensor(entry) if "dtype" in entry else entry["value"]
                 for entry in reply.json()["outputs"]]


def problem_of(got, want):
    """Where the results differ, or None. `None` is a leaf in a reply and none in PyTorch's trees."""
    got = [value for value in got if value is not None]
    want = [value for value in want if value is not None]
    if [isinstance(v, torch.Tensor) for v in got] != [isinstance(v, torch.Tensor) for v in want]:
        return f"results are {got}, expected {want}"
    numbers = [(a, b) for a, b in zip(got, want) if not isinstance(b, torch.Tensor)]
    if any(a != b or type(a) is not type(b) for a, b in numbers):
        return f"values are {numbers}"
    return values_problem([v for v in got if isinstance(v, torch.Tensor)],
                          [v.detach() for v in want if isinstance(v, torch.Tensor)])


# Calls that PyTorch takes and fxserve refuses, and why.
STRICTER = {"optional none, call 2": "a tensor where the export has None: PyTorch drops it",
            "dynamic int, call 6": "2.5 for an int: PyTorch computes with it",
            "dynamic int, call 7": "true for an int: the answer says to send 1"}


def try_call(server, tally, name, program, sent, meant=None):
    args, kwargs = sent
    meant = meant or sent
    try:
        want = pytree.tree_leaves(program(*meant[0], **meant[1]))
        refused = None
    except Exception as error:
        refused = str(error).strip().splitlines()[0][:160]
    for mode in MODES:
        status, got = answer(server, mode, args, kwargs)
        if name in STRICTER:
            tally.check(f"{name}, {mode}", None if status == 400 else f"{STRICTER[name]}, but {status}")
        elif refused is not None:
            tally.check(f"{name}, {mode}", None if 400 <= status < 500 else
                        f"PyTorch refuses ({refused}), the answer is {status}: {str(got)[:200]}")
        elif status != 200:
            tally.check(f"{name}, {mode}", f"{status} {got}"[:500])
        else:
            tally.check(f"{name}, {mode}", problem_of(got, want))


def try_case(server, tally, name, function, args, kwargs, dims, more):
    program = torch.export.export(Calls(function), args, kwargs, dynamic_shapes=dims)
    blob = io.BytesIO()
    torch.export.save(program, blob)
    reply = server.call("PUT", "/v1/graphs/m", blob.getvalue())
    if reply.status >= 300:
        tally.bad(name, reply.short())
        return
    module = program.module()
    for at, (one_args, one_kwargs, *meant) in enumerate([(args, kwargs), *more]):
        try_call(server, tally, f"{name}, call {at}", module, (one_args, one_kwargs), *meant)
    body = server.call("GET", "/v1/graphs/m/example").body
    ran = server.call("POST", "/v1/graphs/m/run", body)
    tally.check(f"{name}, example", None if ran.status == 200 else ran.short())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--names", nargs="*", help="only cases whose name contains one of these")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    server = Server(options.fxserve, ["--data", "none", "--quiet"]).start()
    tally = Tally()
    try:
        for name, *case in cases():
            if not options.names or any(part in name for part in options.names):
                try_case(server, tally, name, *case)
    finally:
        tally.check("the server's end", "\n".join(server.stop()))
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
