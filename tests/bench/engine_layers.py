# SPDX-License-Identifier: Apache-2.0
"""Transformers for engines.py, written in torch.nn: what follows their embeddings, so that every
input is one float32 tensor."""

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """`bias`: None, "causal", or "learned": one number for each head, query and key."""

    def __init__(self, width, heads, length, merged=False, bias=None):
        super().__init__()
        self.heads, self.merged, self.causal = heads, merged, bias == "causal"
        if merged:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(heads, length, length)) if bias == "learned" else None

    def forward(self, x):
        n, length, width = x.shape
        parts = self.qkv(x).chunk(3, -1) if self.merged else (self.query(x), self.key(x), self.value(x))
        q, k, v = (part.view(n, length, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, self.bias, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Layer(nn.Module):
    """`first`: layer norms stand before their parts (ViT, GPT-2), else after them (BERT)."""

    def __init__(self, width, heads, length, first=False, gelu="none", **options):
        super().__init__()
        self.first, self.attention = first, Attention(width, heads, length, **options)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.gelu = nn.GELU(gelu)

    def forward(self, x):
        one, two = self.norms
        if self.first:
            x = x + self.attention(one(x))
            return x + self.down(self.gelu(self.up(two(x))))
        x = one(x + self.attention(x))
        return two(x + self.down(self.gelu(self.up(x))))


def layers(count, *args, **options):
    return nn.Sequential(*(Layer(*args, **options) for _ in range(count)))


class WrittenOut(nn.Module):
    """Attention in products and a softmax, as exports decompose it."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(384, 3 * 384)

    def forward(self, x):
        q, k, v = (part.view(1, -1, 12, 32).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-1, -2)) / 32 ** 0.5
        return torch.matmul(torch.softmax(scores, -1), v)


class T5Layer(nn.Module):
    """Norms without means and linears without biases; scores are not scaled."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))])

    def norm(self, x, which):
        return self.norms[which] * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def forward(self, x, bias):
        n, length, width = x.shape
        y = self.norm(x, 0)
        q, k, v = (part(y).view(n, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        y = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(3, 2)) + bias, -1), v)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(torch.relu(self.up(self.norm(x, 1))))


class T5Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(T5Layer(512, 8, 2048) for _ in range(6))
        self.bias = nn.Parameter(torch.randn(1, 8, 64, 64))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, self.bias)
        return x


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(256, 256, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


ROWS = {  # name: module, shape of the input, aim (best peer / ours)
    "minilm 1x128": (lambda: layers(6, 384, 12, 128), (1, 128, 384), 1.1),
    "minilm 8x128": (lambda: layers(6, 384, 12, 128), (8, 128, 384), 1.1),
    "bert 1x128": (lambda: layers(12, 768, 12, 128), (1, 128, 768), 1.1),
    "vit-b/16": (lambda: layers(12, 768, 12, 197, first=True, merged=True), (1, 197, 768), 1.1),
    "gpt-2 1x64": (lambda: layers(12, 768, 12, 64, first=True, merged=True, gelu="tanh", bias="causal"),
                   (1, 64, 768), 1.0),
    "t5-small 1x64": (T5Encoder, (1, 64, 512), 1.1),
    "windows 64x49": (lambda: layers(2, 96, 3, 49, first=True, merged=True, bias="learned"), (64, 49, 96),
                      1.1),
    "whisper-tiny": (lambda: layers(4, 384, 6, 1500, first=True), (1, 1500, 384), 1.05),
    "written out 128": (WrittenOut, (1, 128, 384), 1.0),
    "lstm 2x256, 64": (lambda: Recurrent(nn.LSTM), (1, 64, 256), 1.2),
    "gru 2x256, 64": (lambda: Recurrent(nn.GRU), (1, 64, 256), 1.2),
}
