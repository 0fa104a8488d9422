# SPDX-License-Identifier: Apache-2.0
"""Networks of other kinds for engines.py: a decoder as Llama's, whole and by single tokens, a block of
Conformer, UNet, detection with queries as DETR's, sums over a graph's edges, DLRM. Every input is one
float32 tensor; indices are constants of the model, or numbers of the input as integers."""

import torch
from torch import nn
from torch.nn import functional


# ---- Llama -------------------------------------------------------------------------------------
def rms_norm(x, weight):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaLayer(nn.Module):
    """Rotary positions, grouped heads, SiLU gates. `past`: keys before the first row, constants here."""

    def __init__(self, width, heads, key_heads, inner, length, past=0):
        super().__init__()
        self.heads, self.key_heads, self.depth, self.past = heads, key_heads, width // heads, past
        sides = key_heads * self.depth
        self.query, self.key, self.value, self.out, self.gate, self.up, self.down = (
            nn.Linear(n_in, n_out, bias=False)
            for n_in, n_out in ((width, width), (width, sides), (width, sides), (width, width),
                                (width, inner), (width, inner), (inner, width)))
        self.one, self.two = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        place, wave = torch.arange(past, past + length)[:, None], torch.arange(0, self.depth, 2)
        angle = place / 1e4 ** (wave / self.depth)
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1))
        if past:
            self.register_buffer("keys", torch.randn(1, key_heads, past, self.depth))
            self.register_buffer("values", torch.randn(1, key_heads, past, self.depth))

    def turned(self, x):
        low, high = x.chunk(2, -1)
        return x * self.cos + torch.cat((-high, low), -1) * self.sin

    def forward(self, x):
        n, length, width = x.shape
        y = rms_norm(x, self.one)
        q, k, v = (part(y).view(n, length, -1, self.depth).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        q, k = self.turned(q), self.turned(k)
        if self.past:
            k, v = torch.cat((self.keys, k), 2), torch.cat((self.values, v), 2)
        k, v = (part.repeat_interleave(self.heads // self.key_heads, 1) for part in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=not self.past)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        y = rms_norm(x, self.two)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def llama(length, past=0):
    return nn.Sequential(*(LlamaLayer(1024, 16, 4, 2816, length, past) for _ in range(6)))


# ---- Conformer ---------------------------------------------------------------------------------
class Conformer(nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.feeds = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(),
                                                 nn.Linear(4 * width, width)) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.last = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.near, self.norm = nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width)

    def forward(self, x):
        n, length, width = x.shape
        x = x + 0.5 * self.feeds[0](self.norms[0](x))
        q, k, v = (part.view(n, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norms[1](x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        y = functional.glu(self.first(self.norms[2](x).transpose(1, 2)), 1)
        x = x + self.last(functional.silu(self.norm(self.near(y)))).transpose(1, 2)
        x = x + 0.5 * self.feeds[1](self.norms[3](x))
        return self.norms[4](x)


# ---- images ------------------------------------------------------------------------------------
def twice(n_in, n_out):
    layers = []
    for n in (n_in, n_out):
        layers += [nn.Conv2d(n, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256, 512)):
        super().__init__()
        self.downs = nn.ModuleList(twice(n_in, n) for n_in, n in zip((3,) + widths, widths))
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(n_in, n, 2, 2) for n_in, n in pairs)
        self.ups = nn.ModuleList(twice(n_in, n) for n_in, n in pairs)
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        found = []
        for number, down in enumerate(self.downs):
            x = down(x if number == 0 else functional.max_pool2d(x, 2))
            found.append(x)
        for wider, up, beside in zip(self.wider, self.ups, found[-2::-1]):
            x = up(torch.cat((beside, wider(x)), 1))
        return self.head(x)


class Detection(nn.Module):
    """A few strided convolutions, then DETR's encoder and decoder: 100 queries."""

    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Conv2d(32, 128, 3, 2, 1),
                                  nn.ReLU(), nn.Conv2d(128, width, 3, 2, 1))
        self.net = nn.Transformer(width, 8, 3, 3, 1024, batch_first=True)
        self.places = nn.Parameter(torch.randn(1, 256, width) * 0.1)
        self.queries = nn.Parameter(torch.randn(1, 100, width))
        self.kinds, self.boxes = nn.Linear(width, 92), nn.Linear(width, 4)

    def forward(self, x):
        x = self.body(x).flatten(2).transpose(1, 2) + self.places
        y = self.net(x, self.queries.expand(x.shape[0], -1, -1))
        return torch.cat((self.kinds(y), self.boxes(y).sigmoid()), -1)


# ---- graphs and tables -------------------------------------------------------------------------
class Edges(nn.Module):
    """Messages of edges, summed where they end."""

    def __init__(self, nodes=2000, edges=16000, width=64):
        super().__init__()
        self.register_buffer("start", torch.randint(0, nodes, (edges,)))
        self.register_buffer("end", torch.randint(0, nodes, (edges,)))
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.update = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))

    def forward(self, x):
        for message, update in zip(self.message, self.update):
            y = torch.relu(message(torch.cat((x[self.start], x[self.end]), -1)))
            y = torch.zeros_like(x).index_add(0, self.end, y)
            x = torch.relu(update(torch.cat((x, y), -1)))
        return x


class Dlrm(nn.Module):
    """13 numbers and 26 categories of each sample; the products of all pairs of their vectors."""

    def __init__(self, rows=1000, width=64):
        super().__init__()
        self.rows, self.tables = rows, nn.ModuleList(nn.Embedding(rows, width) for _ in range(26))
        self.low = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        self.high = nn.Sequential(nn.Linear(width + 351, 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(27, 27, -1))

    def forward(self, x):
        numbers, places = x[:, :13], (x[:, 13:].abs() * (self.rows - 1)).long()
        y = self.low(numbers)
        all_of = torch.stack([y] + [table(places[:, i]) for i, table in enumerate(self.tables)], 1)
        products = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.high(torch.cat((y, products), 1))


ROWS = {  # name: module, shape of the input, aim (best peer / ours)
    "unet 256": (UNet, (1, 3, 256, 256), 1.0),
    "llama 1x64": (lambda: llama(64), (1, 64, 1024), 1.0),
    "llama one token": (lambda: llama(1, 256), (1, 1, 1024), 1.0),
    "conformer 1x200": (Conformer, (1, 200, 256), 1.0),
    "detr 256": (Detection, (1, 3, 256, 256), 1.0),
    "gnn 2000 nodes": (Edges, (2000, 64), 1.0),
    "dlrm 128": (Dlrm, (128, 39), 1.0),
}
