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

from export_fx import dumps, export_fx, module_config
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


def attention_rows():
    x, y, z = some(5, 2, 4), some(3, 2, 4), some(3, 2, 4)
    causal = torch.ones(5, 5).triu(1).bool()
    padding = torch.tensor([[False, False, False, True, True], [False] * 5])
    heads = torch.rand(4, 5, 5) > 0.7
    heads[:, :, 0] = False
    for need in (True, False):
        for mask in (None, causal, some(5, 5), heads, some(4, 5, 5)):
            for pad in (None, padding, some(2, 5)):
                yield nn.MultiheadAttention(4, 2), x, x, x, {"attn_mask": mask, "key_padding_mask": pad,
                                                             "need_weights": need}
        yield nn.MultiheadAttention(4, 2), x, y, y, {"need_weights": need}
        yield nn.MultiheadAttention(4, 2, bias=False), x, y, z, {"need_weights": need}
        yield nn.MultiheadAttention(4, 2), y, x, x, {"need_weights": need}
        yield (nn.MultiheadAttention(4, 1, add_bias_kv=True, add_zero_attn=True, batch_first=True),
               x.transpose(0, 1), y.transpose(0, 1), z.transpose(0, 1), {"need_weights": need})
        yield (nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True), x, x, x,
               {"need_weights": need, "attn_mask": causal, "key_padding_mask": padding})
        yield (nn.MultiheadAttention(4, 2, kdim=3, vdim=6, dropout=0.2), x, some(3, 2, 3), some(3, 2, 6),
               {"need_weights": need})
        yield (nn.MultiheadAttention(4, 2, kdim=3, vdim=6, bias=False), x[:, 0], some(3, 3), some(3, 6),
               {"need_weights": need})
        yield nn.MultiheadAttention(4, 2, batch_first=True), x[:, 0], x[:, 0], x[:, 0], {
            "need_weights": need, "attn_mask": causal, "key_padding_mask": padding[0]}
        yield nn.MultiheadAttention(4, 2), x, x, x, {"need_weights": need, "attn_mask": causal,
                                                     "is_causal": True}
    yield nn.MultiheadAttention(4, 2), x, x, x, {"average_attn_weights": False}
    yield nn.MultiheadAttention(4, 2, batch_first=True), x, x, x, {"average_attn_weights": False}
    yield nn.MultiheadAttention(4, 2).double(), x.double(), x.double(), x.double()


def transformer_rows():
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    ends = torch.tensor([[False, False, False, True, True], [False] * 5])
    holes = torch.tensor([[False, True, False, True, True], [False] * 5])
    x, y = some(2, 5, 4), some(2, 3, 4)
    options = ({}, {"activation": "gelu", "norm_first": True}, {"bias": False}, {"layer_norm_eps": 0.1},
               {"activation": nn.SiLU()}, {"activation": nn.LeakyReLU(0.3), "norm_first": True},
               {"activation": torch.tanh})
    for option in options:
        for first in (False, True):
            encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=first, **option)
            decoder = nn.TransformerDecoderLayer(4, 2, 8, batch_first=first, **option)
            a, b = (x, y) if first else (x.transpose(0, 1), y.transpose(0, 1))
            yield encoder, a
            yield encoder, a, {"src_mask": causal, "src_key_padding_mask": holes}
            yield encoder, x[0], causal
            yield decoder, b, a
            yield decoder, a, b, {"tgt_mask": causal, "tgt_is_causal": True}
            yield decoder, b, a, {"memory_key_padding_mask": holes}
            yield decoder, y[0], x[0]
            for nested in (True, False):
                stack = nn.TransformerEncoder(encoder, 2, enable_nested_tensor=nested)
                yield stack, a
                yield stack, a, {"mask": causal}
                for padding in (ends, holes):
                    yield stack, a, {"src_key_padding_mask": padding}
                yield stack, a, {"src_key_padding_mask": ends, "mask": causal < 0}
            yield nn.TransformerEncoder(encoder, 1, nn.LayerNorm(4)), a, {"src_key_padding_mask": ends}
            yield nn.TransformerDecoder(decoder, 2), b, a
            yield nn.TransformerDecoder(decoder, 1, nn.LayerNorm(4)), a, b, {"tgt_mask": causal}
    for first in (False, True):
        a, b = (x, y) if first else (x.transpose(0, 1), y.transpose(0, 1))
        both = nn.Transformer(4, 2, 2, 1, 8, batch_first=first)
        yield both, a, b
        yield both, b, a, {"tgt_mask": causal, "tgt_key_padding_mask": ends}
        yield both, a, b, {"src_key_padding_mask": ends, "memory_key_padding_mask": ends}


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
    x, attention = some(5, 2, 4), nn.MultiheadAttention(4, 2)
    yield attention, some(1, 5, 2, 4), x, x
    yield attention, x, x[0], x[0]
    yield attention, x[0], x, x
    yield attention, some(5, 2, 3), x, x
    yield attention, x, x, some(4, 2, 4)
    yield nn.MultiheadAttention(4, 2, kdim=3), x, some(5, 2, 3), some(4, 2, 4)
    yield attention, x, x, x, {"attn_mask": some(5, 4)}
    yield attention, x, x, x, {"attn_mask": some(2, 5, 5)}
    yield attention, x, x, x, {"attn_mask": some(5)}
    yield attention, x, x, x, {"attn_mask": ints(2, 5, 5)}
    yield attention, x, x, x, {"key_padding_mask": some(2, 4)}
    yield attention, x, x, x, {"key_padding_mask": some(5)}
    yield attention, x, x, x, {"is_causal": True}
    both = nn.Transformer(4, 2, 1, 1, 8)
    yield both, x, some(5, 3, 4)
    yield both, x, some(5, 2, 3)


ROWS = (recurrent_rows, attention_rows, transformer_rows)


# ---- one row -----------------------------------------------------------------------------------


def config_words(module):
    """Its configuration, and that of its first layer."""
    layers = getattr(module, "layers", None)
    return f"{module_config(module)}" + (f" of {module_config(layers[0])}" if layers else "")


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
        first = next(self.module.children(), None)
        module = f"{type(self.module).__name__}{config_words(self.module)}" if first else str(self.module)
        return f"{module} of {', '.join(given)}"

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
