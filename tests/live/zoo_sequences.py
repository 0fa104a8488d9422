# SPDX-License-Identifier: Apache-2.0
"""Architectures over time for zoo.py: speech, text, series. `MODELS` maps a name to what makes
(module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def words(module, first=(2, 7), second=(3, 11), vocabulary=30):
    return module, (torch.randint(1, vocabulary, first), ), (torch.randint(1, vocabulary, second), )


def signals(module, first=(1, 4, 32), second=(2, 4, 48)):
    return module, (torch.randn(first), ), (torch.randn(second), )


class WaveNet(nn.Module):

    def __init__(self, norm):
        super().__init__()
        self.start, self.end = nn.Conv1d(4, 8, 1), nn.Conv1d(8, 4, 1)
        self.wide = nn.ModuleList(norm(nn.Conv1d(8, 16, 2, dilation=2**i)) for i in range(3))
        self.skip = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))

    def forward(self, x):
        x, total = self.start(x), 0
        for wide, skip in zip(self.wide, self.skip):
            y = wide(F.pad(x, (wide.dilation[0], 0)))
            y = skip(torch.tanh(y[:, :8]) * torch.sigmoid(y[:, 8:]))
            x, total = x + y, total + y
        return self.end(F.relu(total))


@model
def wavenet():
    return signals(WaveNet(nn.utils.parametrizations.weight_norm))


@model
def wavenet_old_norm():
    return signals(WaveNet(nn.utils.weight_norm))


@model
def tcn():

    class Block(nn.Module):

        def __init__(self, c, dilation):
            super().__init__()
            self.conv = nn.utils.parametrizations.weight_norm(
                nn.Conv1d(c, c, 3, padding=2 * dilation, dilation=dilation))
            self.cut = 2 * dilation

        def forward(self, x):
            return F.relu(x + F.relu(self.conv(x)[:, :, :-self.cut].contiguous()))

    return signals(nn.Sequential(Block(4, 1), Block(4, 2), Block(4, 4)))


@model
def conformer():

    class Block(nn.Module):

        def __init__(self, c=16):
            super().__init__()
            self.feed = nn.Sequential(nn.LayerNorm(c), nn.Linear(c, 32), nn.SiLU(), nn.Linear(32, c))
            self.norm, self.attend = nn.LayerNorm(c), nn.MultiheadAttention(c, 4, batch_first=True)
            self.conv = nn.Sequential(nn.Conv1d(c, 2 * c, 1), nn.GLU(1),
                                      nn.Conv1d(c, c, 5, padding=2, groups=c), nn.BatchNorm1d(c), nn.SiLU(),
                                      nn.Conv1d(c, c, 1))

        def forward(self, x):
            x = x + 0.5 * self.feed(x)
            y = self.norm(x)
            x = x + self.attend(y, y, y)[0]
            x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
            return x + 0.5 * self.feed(x)

    return signals(nn.Sequential(Block(), Block()), (1, 9, 16), (2, 14, 16))


@model
def text_cnn():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(30, 12, padding_idx=0)
            self.ways, self.head = nn.ModuleList(nn.Conv1d(12, 8, k) for k in (2, 3, 4)), nn.Linear(24, 3)

        def forward(self, x):
            y = self.table(x).transpose(1, 2)
            return self.head(torch.cat([F.relu(way(y)).max(2)[0] for way in self.ways], 1)).log_softmax(1)

    return words(Net())


@model
def fast_text():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table, self.head = nn.EmbeddingBag(30, 12, mode="mean"), nn.Linear(12, 4)

        def forward(self, x):
            return self.head(self.table(x))

    return words(Net())


class Tagger(nn.Module):

    def __init__(self, body):
        super().__init__()
        self.table, self.body, self.head = nn.Embedding(30, 12), body, nn.LazyLinear(5)

    def forward(self, x):
        return self.head(self.body(self.table(x))[0])


def tagger(body):
    module = Tagger(body)
    module(torch.zeros(1, 3, dtype=torch.long))
    return words(module)


@model
def lstm_tagger():
    return tagger(nn.LSTM(12, 8, 2, batch_first=True, bidirectional=True))


@model
def lstm_projected():
    return tagger(nn.LSTM(12, 8, batch_first=True, proj_size=5))


@model
def gru_tagger():
    return tagger(nn.GRU(12, 8, 2, batch_first=True, bidirectional=True, dropout=0.1))


@model
def rnn_tagger():
    return tagger(nn.RNN(12, 8, nonlinearity="relu", batch_first=True))


@model
def elman():
    return tagger(nn.RNN(12, 8, 2, bidirectional=True))


class Cells(nn.Module):

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 6), nn.GRUCell(6, 6), nn.RNNCell(6, 6)

    def forward(self, x):
        h = c = g = r = torch.zeros(x.shape[0], 6)
        for t in range(4):
            h, c = self.lstm(x[:, t], (h, c))
            g = self.gru(h, g)
            r = self.rnn(g, r)
        return r, c


@model
def cells():
    return Cells(), (torch.randn(1, 4, 4), ), (torch.randn(3, 4, 4), )


@model
def seq2seq():

    class Net(nn.Module):
        """An encoder, and a decoder that attends with additive scores, forced by a teacher."""

        def __init__(self):
            super().__init__()
            self.table, self.encode = nn.Embedding(30, 8), nn.GRU(8, 8, batch_first=True, bidirectional=True)
            self.key, self.query, self.value = nn.Linear(16, 8), nn.Linear(8, 8), nn.Linear(8, 1)
            self.cell, self.head = nn.GRUCell(24, 8), nn.Linear(8, 30)

        def forward(self, x, y):
            memory, last = self.encode(self.table(x))
            h, keys, out = last[0], self.key(memory), []
            for t in range(4):
                scores = self.value(torch.tanh(keys + self.query(h).unsqueeze(1))).squeeze(-1)
                context = torch.bmm(scores.softmax(-1).unsqueeze(1), memory).squeeze(1)
                h = self.cell(torch.cat([self.table(y[:, t]), context], 1), h)
                out.append(self.head(h))
            return torch.stack(out, 1).argmax(-1), torch.stack(out, 1)

    return (Net(), (torch.randint(0, 30, (2, 7)), torch.randint(0, 30,
                                                                (2, 4))), (torch.randint(0, 30, (3, 9)),
                                                                           torch.randint(0, 30, (3, 4))))


class Positions(nn.Module):

    def __init__(self, c, most=64):
        super().__init__()
        at, rate = torch.arange(most)[:, None], torch.exp(torch.arange(0, c, 2) * (-math.log(10000.0) / c))
        table = torch.zeros(most, c)
        table[:, 0::2], table[:, 1::2] = torch.sin(at * rate), torch.cos(at * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[:x.shape[1]]


@model
def transformer():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table, self.place, self.head = nn.Embedding(30, 16), Positions(16), nn.Linear(16, 30)
            self.body = nn.Transformer(16, 4, 2, 2, 32, batch_first=True)

        def forward(self, x, y):
            mask = torch.triu(torch.full((y.shape[1], y.shape[1]), float("-inf")), 1)
            return self.head(
                self.body(self.place(self.table(x)), self.place(self.table(y)), tgt_mask=mask))

    return (Net(), (torch.randint(1, 30, (2, 7)), torch.randint(1, 30,
                                                                (2, 5))), (torch.randint(1, 30, (3, 9)),
                                                                           torch.randint(1, 30, (3, 6))))


@model
def encoder_fast_path():
    """The layer's own fused operator, which an export without gradients contains."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    return signals(
        nn.TransformerEncoder(layer.eval(), 2, enable_nested_tensor=False).eval(), (2, 7, 16), (3, 9, 16))


@model
def sentence_pooling():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(30, 16)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)

        def forward(self, x, mask):
            y = self.layer(self.table(x), src_key_padding_mask=mask == 0)
            wide = mask.unsqueeze(-1).float()
            return F.normalize((y * wide).sum(1) / wide.sum(1).clamp(min=1e-9), p=2, dim=1)

    return (Net(), (torch.randint(1, 30, (2, 7)), torch.ones(2, 7, dtype=torch.long)),
            (torch.randint(1, 30, (3, 9)), torch.ones(3, 9, dtype=torch.long)))


class GPT(nn.Module):

    def __init__(self, c=16, heads=2):
        super().__init__()
        self.words, self.places, self.heads = nn.Embedding(30, c), nn.Embedding(32, c), heads
        self.norm1, self.norm2, self.last = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out, self.up, self.down = (nn.Linear(c, 3 * c), nn.Linear(c, c), nn.Linear(c, 4 * c),
                                                  nn.Linear(4 * c, c))

    def forward(self, x):
        b, t = x.shape
        x = self.words(x) + self.places(torch.arange(t))
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(16, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, -1))
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return self.last(x) @ self.words.weight.T


@model
def gpt():
    return words(GPT())


class Llama(nn.Module):
    """RMSNorm, rotary positions, grouped queries, SwiGLU."""

    def __init__(self, c=16, heads=4, shared=2):
        super().__init__()
        self.table, self.heads, self.shared = nn.Embedding(30, c), heads, shared
        self.norm1, self.norm2 = nn.RMSNorm(c), nn.RMSNorm(c)
        self.q, self.k, self.v = (nn.Linear(c, n * c // heads, bias=False) for n in (heads, shared, shared))
        self.o, self.gate, self.up, self.down = (nn.Linear(a, b, bias=False)
                                                 for a, b in ((c, c), (c, 32), (c, 32), (32, c)))

    def turn(self, x, angle):
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

    def forward(self, x):
        b, t = x.shape
        x = self.table(x)
        rate = 1.0 / 10000**(torch.arange(0, 4, 2).float() / 4)
        angle = torch.outer(torch.arange(t).float(), rate).repeat(1, 2)
        y = self.norm1(x)
        q, k, v = (layer(y).view(b, t, -1, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = self.turn(q, angle), self.turn(k, angle).repeat_interleave(2, 1)
        v = v[:, :, None].expand(-1, -1, 2, -1, -1).reshape(b, self.heads, t, -1)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, -1)
        x = x + self.o(y)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model
def llama():
    return words(Llama())


class Alibi(nn.Module):

    def __init__(self):
        super().__init__()
        self.table, self.qkv = nn.Embedding(30, 16), nn.Linear(16, 48)

    def forward(self, x):
        x = self.table(x)
        t = x.shape[1]
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4).unbind(0)
        gap = torch.arange(t)[None] - torch.arange(t)[:, None]
        bias = gap[None] * torch.tensor([0.5, 0.25])[:, None, None]
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(8) + bias
        scores = scores.masked_fill(gap > 0, torch.finfo(scores.dtype).min)
        return torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), v).flatten(2)


@model
def alibi():
    return words(Alibi())


@model
def relative_bias():

    class Net(nn.Module):
        """T5's buckets of relative positions."""

        def __init__(self):
            super().__init__()
            self.bias = nn.Embedding(8, 2)

        def forward(self, x):
            t = x.shape[1]
            gap = torch.arange(t)[None, :] - torch.arange(t)[:, None]
            bucket = (gap > 0).long() * 4
            gap = gap.abs()
            far = 2 + (torch.log(gap.float() / 2) / math.log(8) * 2).long()
            bucket += torch.where(gap < 2, gap, far.clamp(max=3))
            return self.bias(bucket).permute(2, 0, 1).unsqueeze(0) + x[:, None, None, :].float()

    return words(Net())


@model
def linear_attention():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(4, 8)

        def forward(self, x):
            x = x.transpose(1, 2)
            q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
            state = torch.cumsum(torch.einsum("btd,bte->btde", k, v), 1)
            return torch.einsum("btd,btde->bte", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)

    return signals(Net())


@model
def mamba_block():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.wide, self.conv = nn.Linear(4, 16), nn.Conv1d(8, 8, 4, groups=8, padding=3)
            self.pick, self.step, self.out = nn.Linear(8, 9), nn.Linear(1, 8), nn.Linear(8, 4)
            self.rate, self.direct = nn.Parameter(torch.rand(8, 4)), nn.Parameter(torch.ones(8))

        def forward(self, x):
            x, gate = self.wide(x).chunk(2, -1)
            x = F.silu(self.conv(x.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            step, b, c = self.pick(x).split([1, 4, 4], -1)
            step = F.softplus(self.step(step))
            decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.rate))
            push = step.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
            state, out = torch.zeros_like(push[:, 0]), []
            for t in range(6):
                state = decay[:, t] * state + push[:, t]
                out.append((state * c[:, t].unsqueeze(1)).sum(-1))
            y = torch.stack(out, 1) + self.direct * x
            return self.out(y * F.silu(gate))

    return signals(Net(), (1, 6, 4), (3, 6, 4))


@model
def rwkv_block():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.mix = nn.Parameter(torch.rand(1, 1, 4))
            self.k, self.v, self.r = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.shift = nn.ZeroPad2d((0, 0, 1, -1))

        def forward(self, x):
            mixed = x * self.mix + self.shift(x) * (1 - self.mix)
            k, v, r = self.k(mixed).clamp(max=10), self.v(mixed), self.r(mixed).sigmoid()
            weight = k.logcumsumexp(1)
            return r * torch.cumsum(torch.exp(k - weight[:, -1:]) * v, 1)

    return signals(Net(), (1, 6, 4), (2, 9, 4))


@model
def vector_search():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("stored", F.normalize(torch.randn(40, 16), dim=1))

        def forward(self, x):
            score, at = torch.topk(F.cosine_similarity(x[:, None], self.stored[None], dim=-1), 5)
            return score, torch.index_select(self.stored, 0, at[:, 0]), torch.cdist(x, self.stored).min(1)[0]

    return signals(Net(), (1, 16), (4, 16))


@model
def crf_viterbi():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.step = nn.Parameter(torch.randn(5, 5))

        def forward(self, x):
            score = x[:, 0]
            for t in range(1, 6):
                score = torch.logsumexp(score.unsqueeze(2) + self.step, 1) + x[:, t]
            return score.logsumexp(1)

    return signals(Net(), (1, 6, 5), (3, 6, 5))


@model
def ctc_recogniser():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 8, 3, (2, 1), 1), nn.ReLU(), nn.MaxPool2d((2, 1)))
            self.time = nn.LSTM(32, 8, bidirectional=True)
            self.head = nn.Linear(16, 11)

        def forward(self, x):
            y = self.body(x).flatten(1, 2).permute(2, 0, 1)
            return self.head(self.time(y)[0]).log_softmax(-1)

    return Net(), (torch.randn(1, 1, 16, 20), ), (torch.randn(2, 1, 16, 28), )


@model
def demucs():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.down, self.time = nn.Conv1d(4, 8, 8, 4), nn.LSTM(8, 8, 2)
            self.up = nn.ConvTranspose1d(8, 4, 8, 4)

        def forward(self, x):
            y = F.glu(torch.cat([self.down(x)] * 2, 1), 1)
            y = y + self.time(y.permute(2, 0, 1))[0].permute(1, 2, 0)
            y = self.up(y)
            return F.pad(y, (0, x.shape[-1] - y.shape[-1]))

    return signals(Net(), (1, 4, 40), (2, 4, 56))


@model
def nbeats():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 30)) for _ in range(3))

        def forward(self, x):
            forecast = torch.zeros(x.shape[0], 6)
            for block in self.blocks:
                back, ahead = block(x).split([24, 6], -1)
                x, forecast = x - back, forecast + ahead
            return forecast

    return signals(Net(), (1, 24), (5, 24))


@model
def patch_series():

    class Net(nn.Module):
        """PatchTST: overlapping patches of a normalised series."""

        def __init__(self):
            super().__init__()
            self.patch, self.head = nn.Linear(8, 12), nn.Linear(12 * 5, 6)
            self.layer = nn.TransformerEncoderLayer(12, 2, 24, batch_first=True, norm_first=True)

        def forward(self, x):
            mean, scale = x.mean(-1, keepdim=True), torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
            patches = ((x - mean) / scale).unfold(-1, 8, 4)
            y = self.layer(self.patch(patches).flatten(0, 1))
            return self.head(y.flatten(1)).view(x.shape[0], x.shape[1], -1) * scale + mean

    return signals(Net(), (1, 3, 24), (4, 3, 24))


@model
def quantile_series():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x):
            y = self.head(self.body(x)[0][:, -1])
            return torch.quantile(y, torch.tensor([0.1, 0.5, 0.9]), dim=1), torch.median(x, 1)[0], x.std(1)

    return signals(Net(), (2, 7, 3), (3, 11, 3))
