# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: attention in other forms, decoding. `MODELS` maps a name to what makes
(module, inputs, inputs of another size)."""

import torch
import torch.nn.functional as F
from torch import nn
from zoo_parts import net, param, signals, tokens

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- attention in other forms ---------------------------------------------------------------------


@model
def latent_attention():
    """DeepSeek: keys and values from few numbers, rotary places apart."""

    def forward(self, x):
        n, length, _ = x.shape
        q = self.q(x).view(n, length, 2, 10).transpose(1, 2)
        small, place = self.kv(x).split([6, 4], -1)
        k, v = self.up(F.rms_norm(small, (6, ), self.gain)).view(n, length, 2,
                                                                 12).transpose(1, 2).split([6, 6], -1)
        angle = torch.outer(torch.arange(length).float(), self.freq)
        turn = torch.polar(torch.ones_like(angle), angle)

        def rotate(t):
            pairs = torch.view_as_complex(t.float().reshape(*t.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * turn).flatten(-2)

        q = torch.cat([q[..., :6], rotate(q[..., 6:])], -1)
        k = torch.cat([k, rotate(place.unsqueeze(1)).expand(-1, 2, -1, -1)], -1)
        mask = torch.full((length, length), float("-inf")).triu(1)
        score = (q @ k.transpose(-1, -2) * 10**-0.5 + mask).softmax(-1, dtype=torch.float32)
        return self.out((score @ v).transpose(1, 2).flatten(2))

    return signals(
        net(forward,
            q=nn.Linear(8, 20, bias=False),
            kv=nn.Linear(8, 10),
            gain=nn.Parameter(torch.ones(6)),
            up=nn.Linear(6, 24),
            freq=torch.tensor([1.0, 0.1]),
            out=nn.Linear(12, 8)), (1, 5, 8), (2, 9, 8))


@model
def sliding_window_with_sinks():
    """Groups of queries share keys; a window, soft caps and a learned sink."""

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = self.qkv(x).split([16, 8, 8], -1)
        q, k, v = (t.view(n, length, -1, 4).transpose(1, 2) for t in (q, k, v))
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(n, 4, length, 4) for t in (k, v))
        score = 30 * torch.tanh(q @ k.mT / 2 / 30)
        at = torch.arange(length)
        near = (at[None] <= at[:, None]) & (at[:, None] - at[None] < 3)
        score = score.masked_fill(~near, torch.finfo(score.dtype).min)
        both = torch.cat([score, self.sinks.reshape(1, -1, 1, 1).expand(n, -1, length, -1)], -1)
        weight = (both - both.max(-1, keepdim=True).values).softmax(-1)[..., :-1]
        return (weight @ v).transpose(1, 2).reshape(n, length, -1)

    return signals(net(forward, qkv=nn.Linear(8, 32), sinks=param(4)), (1, 5, 8), (2, 9, 8))


@model
def random_features():
    """Performer: softmax attention by positive features."""

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)

        def features(t, stable):
            y = t * 4**-0.25 @ self.draws.t()
            return torch.exp(y - (t**2).sum(-1, keepdim=True) / 4
                             - y.amax(stable, keepdim=True).detach()) + 1e-4

        q, k = features(q, -1), features(k, (-1, -2))
        causal = torch.einsum("nhlf,nhld->nhlfd", k, v).cumsum(2)
        norm = 1 / torch.einsum("nhlf,nhlf->nhl", q, k.cumsum(2))
        return torch.einsum("nhlfd,nhlf,nhl->nlhd", causal, q, norm).flatten(2)

    return signals(net(forward, qkv=nn.Linear(8, 24), draws=torch.randn(6, 4)), (1, 5, 8), (2, 9, 8))


@model
def hashed_attention():
    """Reformer: places sorted by hashes of turned vectors attend within their chunk."""

    def forward(self, x):
        n, length, c = x.shape
        turned = torch.einsum("nld,dr->nlr", x, self.turns)
        bucket = torch.cat([turned, -turned], -1).argmax(-1)
        order = (bucket * length + torch.arange(length)).argsort(-1)
        back = order.argsort(-1)
        qk = self.qk(x).gather(1, order.unsqueeze(-1).expand(-1, -1, c)).view(n, -1, 4, c)
        v = self.v(x).gather(1, order.unsqueeze(-1).expand(-1, -1, c)).view(n, -1, 4, c)
        score = qk @ F.normalize(qk, dim=-1).transpose(-1, -2)
        score = score.masked_fill(torch.eye(4, dtype=torch.bool), -5e4)
        weight = torch.exp(score - torch.logsumexp(score, -1, keepdim=True))
        return (weight @ v).view(n, length, c).gather(1, back.unsqueeze(-1).expand(-1, -1, c))

    return signals(net(forward, turns=torch.randn(6, 3), qk=nn.Linear(6, 6), v=nn.Linear(6, 6)), (1, 8, 6),
                   (2, 12, 6))


@model
def windows_by_stride():
    """Longformer: overlapping windows as strided views of the keys."""

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.layers)
        k, v = (F.pad(t, (0, 0, 2, 2)).unfold(1, 5, 1) for t in (k, v))
        score = torch.einsum("nlc,nlcw->nlw", q, k)
        at = torch.arange(x.shape[1])[:, None] + torch.arange(-2, 3)
        score = score.masked_fill((at < 0) | (at >= x.shape[1]), float("-inf")).softmax(-1)
        return torch.einsum("nlw,nlcw->nlc", score, v)

    return signals(net(forward, layers=[nn.Linear(6, 6) for _ in range(3)]), (1, 7, 6), (2, 10, 6))


@model
def perceiver():

    def forward(self, x):
        y = self.latent.unsqueeze(0).expand(x.shape[0], -1, -1)
        y = y + self.read(y, x, x, key_padding_mask=x[..., 0] > 1.5, need_weights=False)[0]
        return self.head(self.layer(y).mean(1))

    return signals(
        net(forward,
            latent=param(4, 8),
            read=nn.MultiheadAttention(8, 2, kdim=5, vdim=5, batch_first=True),
            layer=nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True, batch_first=True),
            head=nn.Linear(8, 3)), (1, 7, 5), (2, 12, 5))


@model
def cached_step():
    """One step with caches that are given and returned, written at a place."""

    def forward(self, token, at, keys, values):
        q, k, v = self.qkv(self.embed(token)).chunk(3, -1)
        keys, values = keys.index_copy(1, at, k), values.index_copy(1, at, v)
        mask = torch.arange(keys.shape[1]) <= at
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask[None, None])
        return self.head(y[:, 0].squeeze(1)), keys, values

    def make(n, k, at):
        return ((tokens(n, 1), torch.tensor([at]), torch.randn(n, k, 6), torch.randn(n, k, 6)))

    return net(forward, embed=nn.Embedding(20, 6), qkv=nn.Linear(6, 18),
               head=nn.Linear(6, 20)), make(2, 8, 3), make(3, 12, 5)


@model
def experts_with_places():
    """Switch: each expert has few places, sums of choices say who gets one."""

    def forward(self, x):
        y = x.reshape(-1, 6)
        gate, choice = self.router(y).softmax(-1).max(-1)
        one = F.one_hot(choice, 3)
        place = (one.cumsum(0) * one).sum(-1) - 1
        kept = place < 4
        slot = F.one_hot(torch.where(kept, place, 0), 4) * kept.unsqueeze(-1)
        send = torch.einsum("te,tc->tec", one.to(y.dtype), slot.to(y.dtype))
        z = F.relu(torch.einsum("ecd,edf->ecf", torch.einsum("tec,td->ecd", send, y), self.one))
        z = torch.einsum("ecf,efd->ecd", z, self.two)
        return (torch.einsum("tec,ecd->td", send, z) * gate.unsqueeze(-1)).view_as(x), kept.sum()

    return signals(net(forward, router=nn.Linear(6, 3), one=param(3, 6, 8), two=param(3, 8, 6)), (2, 5, 6),
                   (3, 6, 6))


# ---- decoding -------------------------------------------------------------------------------------


@model
def nucleus():
    """Sampling from the most likely tokens that make up 0.9, with temperature and penalties."""

    def forward(self, x, past):
        logits = self.head(x)
        score = logits.gather(1, past)
        logits = logits.scatter(1, past, torch.where(score < 0, score * 1.2, score / 1.2)) / 0.7
        ordered, at = logits.sort(descending=True, dim=-1, stable=True)
        out = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > 0.9
        logits = logits.masked_fill(out.scatter(1, at, out), -float("inf"))
        p = logits.softmax(-1)
        return torch.multinomial(p, 1), p

    def make(n, k):
        return ((torch.randn(n, 6), tokens(n, k)))

    return net(forward, head=nn.Linear(6, 20)), make(1, 3), make(3, 5)


@model
def beam_step():

    def forward(self, logits, scores, beams):
        n, b, v = logits.shape
        total = (logits.log_softmax(-1) + scores.unsqueeze(-1)).view(n, -1)
        best, at = total.topk(b)
        parent, token = torch.div(at, v, rounding_mode="trunc"), torch.remainder(at, v)
        kept = beams.gather(1, parent.unsqueeze(-1).expand(-1, -1, beams.shape[-1]))
        return best, torch.cat([kept, token.unsqueeze(-1)], -1), (token == 2).all(-1)

    def make(n, k):
        return ((torch.randn(n, 3, 10), torch.randn(n, 3), tokens(n, 3, k)))

    return net(forward), make(1, 4), make(3, 6)


@model
def viterbi_path():
    """The best path through a chain, followed back."""

    def forward(self, x):
        score, back = x[:, 0], []
        for t in range(1, 5):
            best, at = (score.unsqueeze(2) + self.step).max(1)
            score = best + x[:, t]
            back.append(at)
        path = [score.argmax(1)]
        for at in reversed(back):
            path.append(at.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        return score.max(1)[0], torch.stack(path[::-1], 1)

    return signals(net(forward, step=param(4, 4)), (1, 5, 4), (3, 5, 4))


@model
def ctc_greedy():
    """Repeated letters and blanks removed: as many letters are left as the data say."""

    def forward(self, x):
        best = self.head(x).argmax(-1)[0]
        letters = torch.unique_consecutive(best)
        return letters[letters != 0], best

    return signals(net(forward, head=nn.Linear(6, 5)), (1, 12, 6), (1, 20, 6))


@model
def pointer_network():
    """Cities in an order of their own: those that were seen are out."""

    def forward(self, x):
        y, (h, c) = self.encoder(x)
        h, c, at = h[0], c[0], x.mean(1)
        seen, order = torch.zeros(x.shape[:2], dtype=torch.bool), []
        for _ in range(4):
            h, c = self.cell(at, (h, c))
            score = self.v(torch.tanh(self.a(y) + self.b(h).unsqueeze(1))).squeeze(-1)
            pick = score.masked_fill(seen, -1e9).argmax(-1)
            seen = seen.scatter(1, pick.unsqueeze(1), True)
            at = x[torch.arange(x.shape[0]), pick]
            order.append(pick)
        return torch.stack(order, 1)

    return signals(
        net(forward,
            encoder=nn.LSTM(2, 8, batch_first=True),
            cell=nn.LSTMCell(2, 8),
            v=nn.Linear(8, 1),
            a=nn.Linear(8, 8),
            b=nn.Linear(8, 8)), (1, 5, 2), (3, 7, 2))


@model
def copy_generator():
    """Pointer-generator: words of the source get the attention's share of the probability."""

    def forward(self, state, memory, source):
        weight = torch.softmax(torch.einsum("nc,nlc->nl", self.q(state), memory), -1)
        context = torch.einsum("nl,nlc->nc", weight, memory)
        both = torch.cat([state, context], -1)
        share = torch.sigmoid(self.gate(both))
        p = share * self.head(both).softmax(-1)
        return torch.log(p.scatter_add(1, source, (1 - share) * weight) + 1e-12)

    def make(n, k):
        return ((torch.randn(n, 6), torch.randn(n, k, 6), tokens(n, k)))

    return net(forward, q=nn.Linear(6, 6), gate=nn.Linear(12, 1), head=nn.Linear(12,
                                                                                 20)), make(1, 5), make(3, 8)
