# SPDX-License-Identifier: Apache-2.0
"""Classes of torch.nn as call_module, against PyTorch: modules.py FXSERVE [WORD].

Needs torch 2.13. Each row is one class in one configuration. A torch.fx graph calls it, export_fx.py
writes the graph, and it runs in both modes. Results must be PyTorch's in eval mode without
gradients: structure, dtype, shape and values. Rows of REFUSED must be refused where PyTorch refuses
them, with PyTorch's words.
"""
import base64
import json
import pathlib
import sys
import warnings

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service")]

from export_fx import dumps, export_fx
from service import Server, Tally

RTOL, ATOL = 1e-4, 1e-5


def some(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


def ints(high, *shape):
    return torch.randint(0, high, shape)


# ---- rows --------------------------------------------------------------------------------------
# (module, arguments[, keyword arguments]); tensors in the arguments are inputs of the graph.


def recurrent_rows():
    line, batch = some(5, 3), some(5, 2, 3)
    for name in ("RNN", "GRU", "LSTM"):
        make = getattr(nn, name)

        def state(*sizes, name=name):
            return (some(*sizes), some(*sizes)) if name == "LSTM" else some(*sizes)

        yield make(3, 4), batch
        yield make(3, 4), batch, {"hx": state(1, 2, 4)}
        yield make(3, 4, num_layers=3, bidirectional=True, dropout=0.3), batch, state(6, 2, 4)
        yield make(3, 4, num_layers=2, batch_first=True, bias=False), batch, state(2, 5, 4)
        yield make(3, 4, bidirectional=True), line
        yield make(3, 4, num_layers=2, batch_first=True), line, state(2, 4)
        yield make(3, 4).double(), batch.double()
    yield nn.RNN(3, 4, nonlinearity="relu", num_layers=2), batch
    yield nn.LSTM(3, 5, proj_size=2), batch
    yield nn.LSTM(3, 5, proj_size=2, num_layers=2, bidirectional=True), line
    yield nn.LSTM(3, 5, proj_size=2, num_layers=2), batch, (some(2, 2, 2), some(2, 2, 5))
    for name in ("RNNCell", "GRUCell", "LSTMCell"):
        make = getattr(nn, name)
        pair = name == "LSTMCell"
        yield make(3, 4), some(2, 3)
        yield make(3, 4, bias=False), some(3)
        yield make(3, 4), some(2, 3), (some(2, 4), some(2, 4)) if pair else some(2, 4)
        yield make(3, 4), some(3), (some(4), some(4)) if pair else some(4)
    yield nn.RNNCell(3, 4, nonlinearity="relu"), some(2, 3)


def refused_rows():
    batch = some(5, 2, 3)
    yield nn.LSTM(3, 4), some(5, 2, 4)
    yield nn.LSTM(3, 4), some(3)
    yield nn.LSTM(3, 4), some(1, 2, 3, 4)
    yield nn.LSTM(3, 4), batch, (some(1, 2, 4), some(1, 2, 5))
    yield nn.LSTM(3, 4), batch, (some(1, 2, 3), some(1, 2, 4))
    yield nn.LSTM(3, 4), batch.double()
    yield nn.GRU(3, 4), batch, some(1, 2, 5)
    yield nn.RNN(3, 4), some(5, 3), some(1, 2, 4)
    yield nn.RNN(3, 4), batch, some(1, 4)
    yield nn.GRUCell(3, 4), batch
    yield nn.LSTMCell(3, 4), some(2, 3), (some(2, 4), some(2, 5))


ROWS = (recurrent_rows,)


# ---- one row -----------------------------------------------------------------------------------


class Row:
    def __init__(self, module, *args):
        self.kwargs = args[-1] if isinstance(args[-1], dict) else {}
        self.args = args[:-1] if self.kwargs else args
        self.module = module.eval()
        with torch.no_grad():
            for tensor in [*module.parameters(), *module.buffers()]:
                if tensor.is_floating_point():
                    tensor.copy_(torch.rand_like(tensor) * 0.9 + 0.05)

    def name(self):
        def words(value):
            if isinstance(value, torch.Tensor):
                return f"{str(value.dtype)[6:]}{list(value.shape)}"
            if isinstance(value, (tuple, list)):
                return "(" + ", ".join(map(words, value)) + ")"
            return repr(value)

        given = [words(arg) for arg in self.args] + [f"{k}={words(v)}" for k, v in self.kwargs.items()]
        return " ".join(f"{self.module} of {', '.join(given)}".split())

    def graph(self):
        """The document and its inputs."""
        graph, inputs = fx.Graph(), {}

        def node_of(value):
            if not isinstance(value, torch.Tensor):
                return value
            inputs[f"x{len(inputs)}"] = value
            return graph.placeholder(f"x{len(inputs) - 1}")

        leaves, tree = pytree.tree_flatten((self.args, self.kwargs))
        args, kwargs = pytree.tree_unflatten([node_of(leaf) for leaf in leaves], tree)
        root = nn.Module()
        root.layer = self.module
        graph.output(graph.call_module("layer", args, kwargs))
        return json.loads(dumps(export_fx(fx.GraphModule(root, graph), inline=True)[0])), inputs

    def want(self):
        with torch.no_grad():
            return pytree.tree_leaves(self.module(*self.args, **self.kwargs))


def sent(tensor):
    raw = tensor.contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else torch.empty(0)
    return {"dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape),
            "b64": base64.b64encode(bytes(raw.tolist())).decode()}


def received(entry):
    if "dtype" not in entry:
        return entry.get("value")
    raw = base64.b64decode(entry["b64"])
    dtype = getattr(torch, entry["dtype"])
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(entry["shape"])


def run(server, row, mode):
    document, inputs = row.graph()
    body = {"graph": document, "mode": mode, "encoding": "b64",
            "inputs": {name: sent(tensor) for name, tensor in inputs.items()}}
    return server.call("POST", "/v1/run", json.dumps(body).encode())


def problem_of(server, row, mode):
    reply = run(server, row, mode)
    if reply.status != 200:
        return reply.short()
    got, want = [received(entry) for entry in reply.json()["outputs"]], row.want()
    if len(got) != len(want):
        return f"{len(got)} results, PyTorch has {len(want)}"
    for at, (ours, theirs) in enumerate(zip(got, want)):
        if not isinstance(theirs, torch.Tensor):
            if ours != theirs:
                return f"result {at}: {ours!r}, PyTorch has {theirs!r}"
            continue
        try:
            torch.testing.assert_close(ours, theirs, rtol=RTOL, atol=ATOL, equal_nan=True)
        except AssertionError as error:
            return f"result {at}: {' '.join(str(error).split())}"
    return None


def refusal_problem(server, row, mode):
    try:
        row.want()
        return "PyTorch takes it"
    except Exception as error:  # whatever PyTorch raises
        words = str(error).split("\n")[0]
    reply = run(server, row, mode)
    if reply.status not in (400, 422):
        return f"{reply.short()} where PyTorch says: {words}"
    return None if words in reply.json()["error"] else f"{reply.short()}\n    PyTorch says: {words}"


def main():
    word, tally = " ".join(sys.argv[2:]), Tally()
    server = Server(sys.argv[1], ["--data", "none", "--quiet"]).start()
    torch.manual_seed(0)
    try:
        for group, check in [(group, problem_of) for group in ROWS] + [(refused_rows, refusal_problem)]:
            for items in group():
                row = Row(*items)
                if word in row.name():
                    problems = [f"{mode}: {problem}" for mode in ("eager", "compiled")
                                if (problem := check(server, row, mode))]
                    tally.check(row.name(), "; ".join(problems))
    finally:
        server.stop()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
