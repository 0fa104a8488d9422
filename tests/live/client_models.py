# SPDX-License-Identifier: Apache-2.0
"""Small models for the tests of the Python client: name -> (a function that makes the module, a
function that makes its arguments for a batch of n)."""
import torch
from torch import nn
from torch.nn import functional as F


class Call(nn.Module):
    """A function with a layer in front of it."""

    def __init__(self, function, width=6):
        super().__init__()
        self.layer, self.function = nn.Linear(width, width), function

    def forward(self, *args):
        return self.function(self.layer(args[0]), *args[1:])


class First(nn.Module):
    """What a layer of torch.nn returns first."""

    def __init__(self, layer, *more):
        super().__init__()
        self.layer, self.more = layer, more

    def forward(self, x):
        return self.layer(x, *self.more)[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU())

    def forward(self, x):
        return (x + self.block(x)).mean((2, 3))


def rows(n):
    return (torch.randn(n, 6), )


def sequences(n):
    return (torch.randn(n, 5, 6), )


def signals(n):
    return (torch.randn(n, 3, 12), )


def images(n):
    return (torch.randn(n, 3, 8, 8), )


def volumes(n):
    return (torch.randn(n, 2, 4, 4, 4), )


def words(n):
    return (torch.randint(0, 20, (n, 5)), )


def pairs(n):
    return torch.randn(n, 6), torch.randn(n, 6)


def called(function, arguments=rows):
    return lambda: Call(function), arguments


def layers(arguments, *made):
    return lambda: nn.Sequential(*[layer() for layer in made]), arguments


LAYERS = {
    "mlp": layers(rows, lambda: nn.Linear(6, 8), nn.ReLU, lambda: nn.Linear(8, 3)),
    "gelu": layers(rows, lambda: nn.Linear(6, 8), nn.GELU, lambda: nn.LayerNorm(8)),
    "silu": layers(rows, lambda: nn.Linear(6, 8), nn.SiLU, lambda: nn.BatchNorm1d(8)),
    "group_norm": layers(images, lambda: nn.Conv2d(3, 4, 3), lambda: nn.GroupNorm(2, 4)),
    "instance_norm": layers(images, lambda: nn.InstanceNorm2d(3, affine=True)),
    "rms_norm": layers(rows, lambda: nn.RMSNorm(6)),
    "prelu": layers(images, nn.PReLU),
    "conv1d": layers(signals, lambda: nn.Conv1d(3, 4, 3, stride=2)),
    "conv2d": layers(images, lambda: nn.Conv2d(3, 4, 3, padding=1), nn.ReLU, lambda: nn.MaxPool2d(2)),
    "depthwise": layers(images, lambda: nn.Conv2d(3, 6, 3, groups=3), nn.Hardswish),
    "conv3d": layers(volumes, lambda: nn.Conv3d(2, 3, 2)),
    "transposed": layers(images, lambda: nn.ConvTranspose2d(3, 2, 3, stride=2)),
    "average": layers(images, lambda: nn.AvgPool2d(2), nn.Flatten, lambda: nn.Linear(48, 4)),
    "adaptive": layers(images, lambda: nn.AdaptiveAvgPool2d(2), nn.Flatten),
    "upsample": layers(images, lambda: nn.Upsample(scale_factor=2, mode="bilinear")),
    "pixel_shuffle": layers(images, lambda: nn.Conv2d(3, 8, 1), lambda: nn.PixelShuffle(2)),
    "padded": layers(images, lambda: nn.ReflectionPad2d(1), lambda: nn.Conv2d(3, 2, 3)),
    "embedding": layers(words, lambda: nn.Embedding(20, 6), lambda: nn.Linear(6, 2)),
    "bag": layers(words, lambda: nn.EmbeddingBag(20, 6)),
    "dropout": layers(rows, nn.Dropout, lambda: nn.Linear(6, 2)),
    "lstm": (lambda: First(nn.LSTM(6, 4, batch_first=True)), sequences),
    "gru": (lambda: First(nn.GRU(6, 4, batch_first=True, bidirectional=True)), sequences),
    "rnn": (lambda: First(nn.RNN(6, 4, batch_first=True)), sequences),
    "attention": (Attention, sequences),
    "encoder": layers(sequences, lambda: nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)),
    "residual": (Residual, images),
    "unfold": layers(images, lambda: nn.Unfold(2)),
    "local_response": layers(images, lambda: nn.LocalResponseNorm(2)),
    "softmax": layers(rows, lambda: nn.Softmax(-1)),
    "glu": layers(rows, nn.GLU),
}

FUNCTIONS = {
    "two_inputs": called(lambda x, y: x * y, pairs),
    "cosine": called(lambda x, y: F.cosine_similarity(x, y), pairs),
    "distance": called(torch.cdist, pairs),
    "loss": called(lambda x, y: F.mse_loss(x, y, reduction="none"), pairs),
    "tuple": called(lambda x: (x.sum(1), x.amax(1))),
    "dict": called(lambda x: {"mean": x.mean(1), "list": [x.exp(), x.abs()]}),
    "sort": called(lambda x: tuple(x.sort(-1))),
    "topk": called(lambda x: tuple(x.topk(2))),
    "cumsum": called(lambda x: x.cumsum(1)),
    "where": called(lambda x: torch.where(x > 0, x, -x)),
    "cat": called(lambda x: torch.cat([x, x.sin()], 1)),
    "einsum": called(lambda x: torch.einsum("ni,nj->nij", x, x)),
    "slices": called(lambda x: x[:, 1:5:2] - x[:, ::3]),
    "written": called(lambda x: x.clone().mul_(2).add_(1)),
    "masked": called(lambda x: x.masked_fill(x < 0, -1)),
    "norm": called(lambda x: F.normalize(x)),
    "variance": called(lambda x: x.var(1)),
    "half": called(lambda x: x.half().float()),
    "bfloat": called(lambda x: x.bfloat16()),
    "double": called(lambda x: x.double().erf()),
    "integers": called(lambda x: (x * 10).to(torch.int64) % 3),
    "boolean": called(lambda x: x > 0),
    "complex": called(lambda x: torch.fft.rfft(x)),
    "special": called(lambda x: torch.special.i0(x) + torch.lgamma(x.abs() + 1)),
    "sizes": called(lambda x: x * x.shape[0]),
    "gather": called(lambda x: x.gather(1, x.argsort(1))),
}

MODELS = LAYERS | FUNCTIONS


# ---- models that torch.export refuses, or that torch.compile cuts into several graphs ----


def by_sum(x):
    return x.relu() if x.sum() > 0 else x.sigmoid() - 1


def by_item(x):
    return x * int(x.abs().amax().item() * 3)


def by_list(x):
    return x + sum(x.mean(1).tolist())


def by_loop(x):
    while x.abs().sum() > 1:
        x = x / 2
    return x


def by_numpy(x):
    return x * float(x.detach().numpy().max() > 0)


@torch.compiler.disable
def outside(x):
    return x.flip(1)


def by_disabled(x):
    return outside(x.exp()).log()


def by_hand(x):
    y = x.tanh()
    torch._dynamo.graph_break()
    return y * 2


def by_rows(x):
    return torch.stack([row.exp() if row[0] > 0 else row.neg() for row in x])


def by_mask(x):
    return x[x > 0].sum() if bool((x > 0).any()) else x.sum()


def by_print(x):
    y = x.cos()
    print(end="")
    return y.sin()


def by_argmax(x):
    return (x.relu, x.sigmoid, x.tanh)[int(x.sum().abs().item()) % 3]()


def by_any(x):
    if torch.isnan(x).any():
        raise ValueError("not a number")
    return x.square()


class Counting(nn.Module):
    """Writes a buffer between two breaks."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.register_buffer("total", torch.zeros(6))

    def forward(self, x):
        y = self.layer(x)
        self.total.add_(y.detach().sum(0))
        if self.total.sum() > 0:
            return y - self.total
        return y + self.total


BROKEN = {function.__name__: called(function)
          for function in (by_sum, by_item, by_list, by_loop, by_numpy, by_disabled, by_hand, by_rows,
                           by_mask, by_print, by_argmax, by_any)} | {"counting": (Counting, rows)}
