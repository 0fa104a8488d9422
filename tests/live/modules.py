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

from export_fx import Unsupported, dumps, export_fx, module_config
from service import Server, Tally

RTOL, ATOL = 1e-4, 1e-5
SEED = 7  # of modules that draw


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


def loss_rows():
    a, b, shares = some(4, 5), some(4, 5), torch.rand(4, 5)
    classes = ints(5, 4)
    several = torch.tensor([[1, 3, -1, 0, 2], [-1] * 5, [0, 1, 2, 3, 4], [4, 4, -1, 1, 1]])
    images = some(2, 5, 3, 3), ints(5, 2, 3, 3)
    for reduction in ("mean", "sum", "none"):
        how = {"reduction": reduction}
        for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "HingeEmbeddingLoss",
                     "PoissonNLLLoss", "KLDivLoss"):
            yield getattr(nn, name)(**how), a, b.sign() if "Margin" in name or "Hinge" in name else b
        yield nn.BCELoss(torch.rand(5), **how), shares, torch.rand(4, 5)
        yield nn.BCEWithLogitsLoss(torch.rand(5), pos_weight=torch.rand(5), **how), a, shares
        yield nn.CrossEntropyLoss(torch.rand(5), label_smoothing=0.1, **how), a, classes
        yield nn.CrossEntropyLoss(ignore_index=2, **how), *images
        yield nn.NLLLoss(torch.rand(5), **how), a.log_softmax(1), classes
        yield nn.NLLLoss2d(**how), images[0].log_softmax(1), images[1]
        yield nn.GaussianNLLLoss(full=reduction == "sum", eps=0.3, **how), a, b, shares
        yield nn.MultiLabelMarginLoss(**how), a, several
        yield nn.MultiLabelSoftMarginLoss(torch.rand(5), **how), a, shares.round()
        yield nn.MultiMarginLoss(p=2, weight=torch.rand(5), **how), a, classes
        yield nn.MarginRankingLoss(0.1, **how), a, b, shares.round() * 2 - 1
        yield nn.CosineEmbeddingLoss(0.1, **how), a, b, torch.tensor([1, -1, 1, -1])
        yield nn.TripletMarginLoss(swap=True, **how), a, b, some(4, 5)
        yield nn.TripletMarginWithDistanceLoss(margin=0.5, swap=True, **how), a, b, some(4, 5)
    yield nn.GaussianNLLLoss(), a, b, torch.rand(4)
    yield nn.GaussianNLLLoss(), a, b, torch.rand(4, 1)
    yield nn.GaussianNLLLoss(), a, b, 0.3
    yield nn.MultiLabelMarginLoss(), a[0], several[0]
    yield nn.MultiLabelSoftMarginLoss(), some(2, 3, 4), torch.rand(2, 3, 4)
    chances, labels = some(8, 3, 5).log_softmax(2), ints(4, 3, 4) + 1
    for reduction in ("mean", "sum", "none"):
        loss = nn.CTCLoss(reduction=reduction, zero_infinity=reduction == "mean")
        yield loss, chances, labels, torch.tensor([8, 6, 2]), torch.tensor([4, 3, 0])
        yield loss, chances, labels.flatten()[:7], (8, 6, 3), (4, 3, 0)


def pooling_rows():
    line, image, volume = some(2, 3, 8), some(2, 3, 8, 6), some(2, 3, 6, 4, 8)
    for n, x in ((1, line), (2, image), (3, volume)):
        lp, unpool, pool = (getattr(nn, f"{name}{n}d") for name in ("LPPool", "MaxUnpool", "MaxPool"))
        yield lp(2, 2), x
        yield lp(1.5, 3, stride=2, ceil_mode=True), x.abs()
        yield lp(float("inf"), 2), x
        values, at = pool(2, return_indices=True)(x)
        yield unpool(2), values, at
        yield unpool(2), values, at, list(x.shape[2:])
        values, at = pool(3, 2, 1, return_indices=True)(x[0])
        yield unpool(3, 2, 1), values, at, {"output_size": list(x.shape[2:])}
        yield pool(3, 2, 1, ceil_mode=True), x
        yield pool(2, return_indices=True), x
        yield getattr(nn, f"AvgPool{n}d")(3, 2, 1, count_include_pad=False), x
        yield getattr(nn, f"AdaptiveAvgPool{n}d")(3), x
        yield getattr(nn, f"AdaptiveMaxPool{n}d")(3), x
        yield getattr(nn, f"AdaptiveMaxPool{n}d")(2, return_indices=True), x[0]
        yield getattr(nn, f"ZeroPad{n}d")(2), x
        yield getattr(nn, f"ConstantPad{n}d")(tuple(range(2 * n)), 0.5), x
        yield getattr(nn, f"ReflectionPad{n}d")(1), x
        yield getattr(nn, f"ReplicationPad{n}d")(tuple(range(2 * n)), ), x
        yield getattr(nn, f"CircularPad{n}d")(2), x
        yield getattr(nn, f"Dropout{n}d")(0.3), x
        yield getattr(nn, f"Conv{n}d")(3, 4, 3, padding="same"), x
        yield getattr(nn, f"Conv{n}d")(3, 6, 3, 2, 2, groups=3, padding_mode="circular"), x
        yield getattr(nn, f"Conv{n}d")(3, 2, 2, dilation=2, bias=False), x[0]
        yield getattr(nn, f"ConvTranspose{n}d")(3, 4, 3, 2, 1, 1), x
        yield getattr(nn, f"ConvTranspose{n}d")(3, 6, 2, 2, groups=3, bias=False), x
        yield getattr(nn, f"BatchNorm{n}d")(3), x
        yield getattr(nn, f"BatchNorm{n}d")(3, affine=False, eps=0.1), x
        yield getattr(nn, f"InstanceNorm{n}d")(3, affine=True), x
        yield getattr(nn, f"InstanceNorm{n}d")(3, track_running_stats=True), x
        for mode in ("nearest", "nearest-exact", ("linear", "bilinear", "trilinear")[n - 1]):
            yield nn.Upsample(scale_factor=2, mode=mode), x
            yield nn.Upsample(size=(5,) * n, mode=mode, align_corners=True if "linear" in mode else None), x
    for given in ({"output_ratio": 0.6}, {"output_size": (3, 2), "return_indices": True}):
        yield nn.FractionalMaxPool2d(2, **given), some(2, 3, 8, 8)
        yield nn.FractionalMaxPool2d(2, _random_samples=torch.rand(2, 3, 2), **given), some(2, 3, 8, 8)
    yield nn.FractionalMaxPool3d((2, 1, 3), output_ratio=(0.6, 0.5, 0.4)), some(2, 3, 8, 9, 10)


def other_rows():
    x, image, rows = some(4, 6), some(2, 4, 6, 6), some(4, 6)
    for name in ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardswish",
                 "Hardsigmoid", "Hardtanh", "RReLU"):
        yield getattr(nn, name)(), x
        yield getattr(nn, name)(inplace=True), x
    for name in ("GELU", "Hardshrink", "Softshrink", "Tanhshrink", "Softplus", "Softsign", "Sigmoid",
                 "LogSigmoid", "Tanh", "GLU", "PReLU", "Identity", "Flatten", "Dropout", "AlphaDropout",
                 "FeatureAlphaDropout"):
        yield getattr(nn, name)(), x
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        yield getattr(nn, name)(), x
        yield getattr(nn, name)(-1), image
    yield nn.Threshold(0.1, 20), x
    yield nn.GELU("tanh"), x
    yield nn.PReLU(4), image
    yield nn.GLU(1), image
    yield nn.Softmax2d(), image
    yield nn.Linear(6, 3), image
    yield nn.Linear(6, 3, bias=False), x[0]
    yield nn.Bilinear(6, 6, 3), x, rows
    yield nn.modules.linear.NonDynamicallyQuantizableLinear(6, 2), x
    yield nn.Embedding(9, 4, padding_idx=2), ints(9, 3, 2)
    for mode in ("sum", "mean", "max"):
        yield nn.EmbeddingBag(9, 4, mode=mode), ints(9, 3, 2)
        yield nn.EmbeddingBag(9, 4, mode=mode, padding_idx=2), ints(9, 7), torch.tensor([0, 2, 2])
    yield nn.EmbeddingBag(9, 4, mode="sum", include_last_offset=True), ints(9, 7), torch.tensor([0, 2, 7])
    yield nn.EmbeddingBag(9, 4, mode="sum"), ints(9, 3, 2), None, some(3, 2)
    yield nn.LayerNorm([6, 6], eps=0.1), image
    yield nn.LayerNorm(6, bias=False), image
    yield nn.LayerNorm(6, elementwise_affine=False), image
    yield nn.RMSNorm(6), image
    yield nn.GroupNorm(2, 4), image
    yield nn.GroupNorm(4, 4, affine=False), image
    yield nn.LocalResponseNorm(3), image
    yield nn.BatchNorm2d(4, momentum=None, track_running_stats=False), image
    yield nn.BatchNorm1d(6), x
    yield nn.PixelShuffle(2), image
    yield nn.PixelUnshuffle(3), image
    yield nn.ChannelShuffle(2), image
    yield nn.Unflatten(1, (2, 2)), image
    yield nn.Flatten(0, 2), image
    yield nn.Unfold(3, 2, 1, 2), image
    yield nn.Fold((5, 5), 2), some(1, 12, 16)
    yield nn.CosineSimilarity(), x, rows
    yield nn.PairwiseDistance(1, keepdim=True), x, rows
    yield nn.UpsamplingNearest2d(scale_factor=2), image
    yield nn.UpsamplingBilinear2d(size=(5, 9)), image
    yield torch.ao.quantization.QuantStub(), x
    yield torch.ao.quantization.DeQuantStub(), x


def made_weights():
    """Modules whose weight is made at each call."""
    new, old = nn.utils.parametrizations, nn.utils
    for norm in (new.weight_norm, new.spectral_norm, old.weight_norm, old.spectral_norm, new.orthogonal):
        yield norm(nn.Linear(4, 4)), some(3, 4)
    for norm in (new.weight_norm, new.spectral_norm, old.weight_norm, old.spectral_norm):
        yield norm(nn.Conv2d(3, 4, 3)), some(2, 3, 5, 5)
        yield norm(nn.ConvTranspose1d(3, 4, 3)), some(2, 3, 5)
    yield new.weight_norm(nn.Linear(4, 4), dim=1), some(3, 4)
    yield new.weight_norm(nn.LSTM(4, 3), "weight_hh_l0"), some(5, 2, 4)
    yield nn.utils.parametrizations.weight_norm(nn.Linear(4, 4, bias=False), "weight"), some(4)


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
    yield nn.EmbeddingBag(9, 4), ints(9, 7)
    yield nn.EmbeddingBag(9, 4), ints(9, 3, 2), torch.tensor([0])
    yield nn.EmbeddingBag(9, 4, mode="sum"), ints(9, 3, 2), None, some(3)
    values, at = nn.MaxPool2d(2, return_indices=True)(some(2, 3, 8, 8))
    yield nn.MaxUnpool2d(2), values, at, [8, 8, 8]
    yield nn.CTCLoss(blank=9), some(8, 3, 5), ints(4, 3, 4), (8, 8, 8), (4, 4, 4)
    yield nn.GaussianNLLLoss(), x, x, torch.rand(5, 2, 2)
    yield nn.GaussianNLLLoss(), x, x, -some(5, 2, 4).abs()
    both = nn.Transformer(4, 2, 1, 1, 8)
    yield both, x, some(5, 3, 4)
    yield both, x, some(5, 2, 3)


ROWS = (recurrent_rows, attention_rows, transformer_rows, loss_rows, pooling_rows, other_rows,
        made_weights)


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
        torch.manual_seed(SEED)
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
    body = {"graph": document, "mode": mode, "encoding": "b64", "seed": SEED,
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


# ---- what the exporter cannot write ------------------------------------------------------------


def unwritable():
    hooked, pre = nn.Linear(3, 3), nn.Linear(3, 3)
    hooked.register_forward_hook(lambda module, given, result: result * 2)
    pre.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
    yield hooked, "forward hook"
    yield pre, "forward hook"
    yield nn.Sequential(nn.ReLU(), hooked)[1], "forward hook"
    yield nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).train(), "call eval()"
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    layer.norm2 = nn.RMSNorm(4)
    yield layer, "norm2 was replaced"
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    layer.norm2.eps = 0.5
    yield layer, "norm2 was replaced"
    yield nn.TransformerEncoderLayer(4, 2, 8, activation=lambda x: x), "activation"
    yield nn.TripletMarginWithDistanceLoss(distance_function=torch.dist), "distance function"


def written_problem(module, words):
    graph, root = fx.Graph(), nn.Module()
    root.layer = module
    graph.output(graph.call_module("layer", (graph.placeholder("x"),)))
    try:
        export_fx(fx.GraphModule(root, graph))
    except Unsupported as error:
        return None if words in str(error) else f"{error}, expected {words}"
    return "the exporter writes it"


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
    for module, words in unwritable():
        tally.check(f"{type(module).__name__}, {words}", written_problem(module, words))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
