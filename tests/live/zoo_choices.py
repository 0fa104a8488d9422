# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: tables, recommenders, policies. `MODELS` maps a name to what makes
(module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from zoo_parts import net, param, signals, tokens

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- tables and recommenders ----------------------------------------------------------------------


def sparsemax(z):
    """The projection on the simplex: sorted, summed, cut."""
    ordered = torch.sort(z, -1, descending=True)[0]
    sums = ordered.cumsum(-1) - 1
    k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    count = (k * ordered > sums).sum(-1, keepdim=True)
    return torch.clamp(z - sums.gather(-1, count - 1) / count, min=0)


@model
def tab_net():

    def forward(self, x):
        x = self.norm(x)
        prior, out, shared, entropy = torch.ones_like(x), 0, x.new_zeros(x.shape[0], 8), 0
        for attend, step in zip(self.attends, self.steps):
            mask = sparsemax(attend(shared) * prior)
            entropy = entropy + (-mask * torch.log(mask + 1e-15)).sum(1).mean()
            prior = prior * (1.3 - mask)
            y = F.glu(step(mask * x), -1)
            decision, shared = y.tensor_split([4], 1)
            out = out + F.relu(decision)
        return self.head(out), entropy

    attends = [nn.Sequential(nn.Linear(8, 6, bias=False), nn.BatchNorm1d(6)) for _ in range(2)]
    steps = [nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24)) for _ in range(2)]
    return signals(net(forward, norm=nn.BatchNorm1d(6), attends=attends, steps=steps, head=nn.Linear(4, 3)),
                   (2, 6), (5, 6))


@model
def feature_transformer():
    """FT-Transformer: each number and each class is a token."""

    def forward(self, numbers, classes):
        y = numbers.unsqueeze(-1) * self.weight + self.bias
        z = self.embed(classes + self.offset)
        y = torch.cat([self.cls.expand(len(numbers), -1, -1), y, z], 1)
        y = y + self.attend(self.norm(y), self.norm(y), self.norm(y), need_weights=False)[0]
        a, b = self.wide(F.layer_norm(y, [8])).chunk(2, -1)
        return self.head(F.relu((y + self.narrow(a * F.relu(b)))[:, 0])).squeeze(-1)

    parts = {
        "weight": param(4, 8),
        "bias": param(4, 8),
        "embed": nn.Embedding(9, 8),
        "offset": torch.tensor([0, 4]),
        "cls": param(1, 1, 8),
        "attend": nn.MultiheadAttention(8, 2, batch_first=True),
        "norm": nn.LayerNorm(8),
        "wide": nn.Linear(8, 24),
        "narrow": nn.Linear(12, 8),
        "head": nn.Linear(8, 1)
    }

    def make(n):
        return ((torch.randn(n, 4), tokens(n, 2, high=4)))

    return net(forward, **parts), make(2), make(5)


@model
def sequence_recommender():
    """SASRec: items before, with padding, scored against candidates."""

    def forward(self, items, candidates):
        n, length = items.shape
        y = self.items(items) * 8**0.5 + self.places(torch.arange(length))
        y = y.masked_fill((items == 0).unsqueeze(-1), 0.0)
        mask = ~torch.tril(torch.ones(length, length, dtype=torch.bool))
        y = y + self.attend(self.norm(y), y, y, attn_mask=mask)[0]
        last = self.norm(y)[:, -1]
        score = (self.items(candidates) * last.unsqueeze(1)).sum(-1)
        return score, torch.sort(score, dim=-1, descending=True, stable=True)[1]

    def make(n, a, b):
        return ((tokens(n, a, high=15), tokens(n, b, high=15)))

    return net(forward,
               items=nn.Embedding(15, 8, padding_idx=0),
               places=nn.Embedding(20, 8),
               attend=nn.MultiheadAttention(8, 2, batch_first=True),
               norm=nn.LayerNorm(8, eps=1e-8)), make(2, 6, 4), make(3, 9, 7)


@model
def interest_network():
    """DIN: past items weighed by a small net over each pair with the target."""

    def forward(self, target, past, lengths):
        t, p = self.embed(target).unsqueeze(1), self.embed(past)
        t = t.expand_as(p)
        weight = self.unit(torch.cat([t, p, t - p, t * p], -1)).squeeze(-1)
        weight = weight.masked_fill(torch.arange(past.shape[1])[None] >= lengths[:, None],
                                    -2.0**31).softmax(-1)
        y = torch.bmm(weight.unsqueeze(1), p).squeeze(1)
        return torch.sigmoid(self.head(torch.cat([y, t[:, 0]], -1)))

    dice = net(lambda self, x: torch.sigmoid(x) * x + (1 - torch.sigmoid(x)) * self.alpha * x, alpha=param(8))

    def make(n, a):
        return ((tokens(n), tokens(n, a), torch.randint(1, a, (n, ))))

    return net(forward,
               embed=nn.Embedding(20, 6),
               unit=nn.Sequential(nn.Linear(24, 8), dice, nn.Linear(8, 1)),
               head=nn.Linear(12, 1)), make(2, 5), make(4, 8)


@model
def compressed_interactions():
    """xDeepFM: outer products of fields, compressed by convolutions."""

    def forward(self, fields):
        x0 = self.embed(fields + self.offset)
        x, found = x0, []
        for layer in self.layers:
            z = torch.einsum("nhd,nmd->nhmd", x, x0)
            x = F.relu(layer(z.reshape(z.shape[0], -1, z.shape[-1])))
            found.append(x.sum(-1))
        square = (x0.sum(1)**2 - (x0**2).sum(1)).sum(1, keepdim=True) / 2
        return torch.sigmoid(self.head(torch.cat(found, 1)) + square)

    return net(forward,
               embed=nn.Embedding(16, 5),
               offset=torch.arange(4) * 4,
               layers=[nn.Conv1d(16, 6, 1), nn.Conv1d(24, 4, 1)],
               head=nn.Linear(10, 1)), (tokens(2, 4, high=4), ), (tokens(5, 4, high=4), )


@model
def gated_experts():
    """MMoE: experts shared by tasks, a gate for each, noise off."""

    def forward(self, x):
        shared = torch.stack([expert(x) for expert in self.experts], 1)
        return tuple(
            tower(torch.einsum("ne,ned->nd",
                               gate(x).softmax(-1), shared)).sigmoid()
            for gate, tower in zip(self.gates, self.towers))

    def linear(a, b, n):
        return ([nn.Linear(a, b) for _ in range(n)])

    return signals(
        net(forward,
            experts=[nn.Sequential(nn.Linear(6, 8), nn.ReLU()) for _ in range(3)],
            gates=linear(6, 3, 2),
            towers=linear(8, 1, 2)), (1, 6), (4, 6))


@model
def session_graph():
    """SR-GNN: items of a session as a gated graph."""

    def forward(self, items, into, out, alias):
        y = self.embed(items)
        a = torch.cat([into @ self.one(y), out @ self.two(y)], -1)
        gi, gh = self.gi(a).chunk(3, -1), self.gh(y).chunk(3, -1)
        reset, gate = torch.sigmoid(gi[0] + gh[0]), torch.sigmoid(gi[1] + gh[1])
        new = torch.tanh(gi[2] + reset * gh[2])
        y = new + gate * (y - new)
        seq = y[torch.arange(y.shape[0]).unsqueeze(1), alias]
        weight = self.q(torch.sigmoid(self.w(seq[:, -1:]) + self.v(seq)))
        return (weight * seq).sum(1) @ self.embed.weight[1:].t()

    def linear(a, b):
        return (nn.Linear(a, b))

    def make(n, k):
        return ((tokens(n, k), torch.rand(n, k, k), torch.rand(n, k, k), tokens(n, k + 2, high=k)))

    return net(forward,
               embed=nn.Embedding(20, 6),
               one=linear(6, 6),
               two=linear(6, 6),
               gi=linear(12, 18),
               gh=linear(6, 18),
               q=linear(6, 1),
               w=linear(6, 6),
               v=linear(6, 6)), make(1, 4), make(3, 6)


# ---- policies -------------------------------------------------------------------------------------


@model
def squashed_gaussian():
    """SAC: a sample of a squashed normal distribution and its likelihood."""

    def forward(self, x):
        mean, log_std = self.body(x).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp(), validate_args=False)
        u = normal.rsample()
        log_p = normal.log_prob(u).sum(-1) - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(-1)
        return torch.tanh(u), log_p, torch.tanh(mean), normal.entropy().sum(-1)

    return signals(net(forward, body=nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))), (1, 5),
                   (4, 5))


@model
def categorical_policy():
    """Actions of which some are not allowed, the likelihoods of given ones, entropy, the best."""

    def forward(self, x, allowed, taken):
        logits = torch.where(allowed, self.body(x), torch.finfo(torch.float32).min)
        found = torch.distributions.Categorical(logits=logits, validate_args=False)
        even = torch.distributions.Categorical(logits=torch.zeros_like(logits), validate_args=False)
        kl = torch.distributions.kl_divergence(found, even)
        return found.log_prob(taken), found.entropy(), found.probs.argmax(-1), kl, self.value(x).squeeze(-1)

    def make(n):
        return ((torch.randn(n, 5), torch.rand(n, 4) > 0.3, tokens(n, high=4)))

    return net(forward, body=nn.Linear(5, 4), value=nn.Linear(5, 1)), make(2), make(5)


@model
def quantile_policy():
    """IQN and C51: returns as distributions, projected on fixed atoms."""

    def forward(self, x, reward):
        taus = (torch.arange(6) + 0.5) / 6
        phi = F.relu(self.tau(torch.cos(math.pi * torch.arange(1, 9) * taus[:, None])))
        z = self.head(self.body(x).unsqueeze(1) * phi)
        p = self.atoms(self.body(x)).softmax(-1)
        place = ((reward[:, None] + 0.9 * self.support).clamp(-2, 2) + 2) / 0.5
        low, high = place.floor().long(), place.ceil().long()
        low = torch.where((high > 0) & (low == high), low - 1, low)
        high = torch.where(low == high, high + 1, high)
        out = torch.zeros_like(p)
        start = (torch.arange(p.shape[0]) * 9)[:, None]
        out.view(-1).index_add_(0, (low + start).view(-1), (p * (high - place)).view(-1))
        out.view(-1).index_add_(0, (high + start).view(-1), (p * (place - low)).view(-1))
        return z.mean(1).argmax(-1), z, out

    def make(n):
        return ((torch.randn(n, 5), torch.randn(n)))

    return net(forward,
               body=nn.Linear(5, 8),
               tau=nn.Linear(8, 8),
               head=nn.Linear(8, 3),
               atoms=nn.Linear(8, 9),
               support=torch.linspace(-2, 2, 9)), make(2), make(4)


@model
def world_model():
    """A recurrent state space with classes that are picked by the largest."""

    def forward(self, x, actions):
        h = torch.zeros(x.shape[0], 8)
        z, out = torch.zeros(x.shape[0], 12), []
        for t in range(4):
            h = self.cell(torch.cat([z, actions[:, t]], -1), h)
            logits = self.post(torch.cat([h, x[:, t]], -1)).view(-1, 3, 4)
            p = 0.99 * logits.softmax(-1) + 0.01 / 4
            hard = F.one_hot(p.argmax(-1), 4).float()
            z = (hard + p - p.detach()).flatten(1)
            out.append(self.reward(torch.cat([h, z], -1)))
        symexp = torch.cat(out, 1)
        return torch.sign(symexp) * torch.expm1(symexp.abs()), z

    def make(n):
        return ((torch.randn(n, 4, 5), torch.randn(n, 4, 2)))

    return net(forward, cell=nn.GRUCell(14, 8), post=nn.Linear(13, 12), reward=nn.Linear(20,
                                                                                         1)), make(1), make(3)


@model
def decision_transformer():

    def forward(self, returns, states, actions, times):
        t = self.time(times)
        y = torch.stack([self.r(returns) + t, self.s(states) + t, self.a(actions) + t], 1)
        y = self.norm(y.permute(0, 2, 1, 3).reshape(states.shape[0], -1, 8))
        q, k, v = self.qkv(y).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        y = y.reshape(states.shape[0], -1, 3, 8).permute(0, 2, 1, 3)
        return torch.tanh(self.act(y[:, 1])), self.ret(y[:, 2])

    parts = {
        "time": nn.Embedding(20, 8),
        "r": nn.Linear(1, 8),
        "s": nn.Linear(5, 8),
        "a": nn.Linear(2, 8),
        "norm": nn.LayerNorm(8),
        "qkv": nn.Linear(8, 24),
        "act": nn.Linear(8, 2),
        "ret": nn.Linear(8, 1)
    }

    def make(n, k):
        return ((torch.randn(n, k, 1), torch.randn(n, k, 5), torch.randn(n, k, 2), tokens(n, k)))

    return net(forward, **parts), make(1, 4), make(3, 6)


@model
def mixed_values():
    """QMIX: a net over values whose weights are positive and follow from the state."""

    def forward(self, values, state):
        w1 = self.w1(state).abs().view(-1, 3, 8)
        y = F.elu(torch.bmm(values.unsqueeze(1), w1) + self.b1(state).unsqueeze(1))
        return (torch.bmm(y, self.w2(state).abs().unsqueeze(-1)) + self.b2(state).view(-1, 1, 1)).view(-1, 1)

    def make(n):
        return ((torch.randn(n, 3), torch.randn(n, 5)))

    return net(forward, w1=nn.Linear(5, 24), b1=nn.Linear(5, 8), w2=nn.Linear(5, 8),
               b2=nn.Linear(5, 1)), make(2), make(5)
