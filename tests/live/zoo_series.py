# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: forecasts, state spaces, long convolutions. `MODELS` maps a name to what
makes (module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from zoo_parts import net, param, signals

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- forecasts ------------------------------------------------------------------------------------


@model
def decomposition_linear():
    """DLinear: trend by a moving mean, the rest apart."""

    def forward(self, x):
        ends = torch.cat([x[:, :1].repeat(1, 2, 1), x, x[:, -1:].repeat(1, 2, 1)], 1)
        trend = F.avg_pool1d(ends.permute(0, 2, 1), 5, 1)
        return (self.trend(trend) + self.rest(x.permute(0, 2, 1) - trend)).permute(0, 2, 1)

    return signals(net(forward, trend=nn.Linear(24, 6), rest=nn.Linear(24, 6)), (1, 24, 3), (4, 24, 3))


@model
def times_net():
    """Series folded to pictures by the periods that their spectra show."""

    def forward(self, x):
        size = torch.fft.rfft(x, dim=1).abs().mean(-1)
        weight, y = size[:, [2, 3, 6]].softmax(-1), []
        for period in (12, 8, 4):
            z = x.reshape(x.shape[0], x.shape[1] // period, period, x.shape[2]).permute(0, 3, 1, 2)
            y.append(self.conv(z.contiguous()).permute(0, 2, 3, 1).reshape(x.shape))
        return (torch.stack(y, -1) * weight[:, None, None]).sum(-1) + x

    conv = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 4, 5, padding=2))
    return signals(net(forward, conv=conv), (1, 24, 4), (3, 24, 4))


@model
def autoformer():
    """Correlation of a series with itself by Fourier transforms, and rolls by the best delays."""

    def forward(self, x):
        q, k, v = self.q(x).permute(0, 2, 1), self.k(x).permute(0, 2, 1), self.v(x).permute(0, 2, 1)
        product = torch.fft.rfft(q, dim=-1) * torch.conj(torch.fft.rfft(k, dim=-1))
        correlation = torch.fft.irfft(product, n=x.shape[1], dim=-1)
        weight, delay = torch.topk(correlation.mean(1), 3, dim=-1)
        weight, start = weight.softmax(-1), torch.arange(x.shape[1]).view(1, 1, -1).expand_as(v)
        twice, y = v.repeat(1, 1, 2), torch.zeros_like(v)
        for i in range(3):
            y = y + torch.gather(twice, -1, start + delay[:, i].view(-1, 1, 1)) * weight[:, i].view(-1, 1, 1)
        return y.permute(0, 2, 1)

    return signals(net(forward, q=nn.Linear(3, 4), k=nn.Linear(3, 4), v=nn.Linear(3, 4)), (1, 16, 3),
                   (2, 24, 3))


@model
def informer():
    """Only the queries whose scores stand out attend; the others have the mean."""

    def forward(self, x):
        q, k, v = (self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4))
        score = q @ k[:, :, self.sample].transpose(-1, -2)
        top = (score.amax(-1) - score.sum(-1) / k.shape[2]).topk(4, sorted=False)[1]
        batch, heads = torch.arange(x.shape[0])[:, None, None], torch.arange(2)[None, :, None]
        some = (q[batch, heads, top] @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        y = v.mean(-2, keepdim=True).expand(-1, -1, x.shape[1], -1).clone()
        y[batch, heads, top] = some
        return y.transpose(1, 2).flatten(2)

    return signals(net(forward, qkv=nn.Linear(6, 24), sample=torch.tensor([0, 3, 5, 7])), (1, 10, 6),
                   (2, 14, 6))


def gated_residual(self, x):
    y = self.gate(F.elu(self.one(x)))
    return self.norm(x + F.glu(y, -1))


def grn(size):
    return net(gated_residual,
               one=nn.Linear(size, size),
               gate=nn.Linear(size, 2 * size),
               norm=nn.LayerNorm(size))


@model
def temporal_fusion():
    """Variables are selected by weights, an LSTM carries the time, quantiles are the result."""

    def forward(self, past, ahead):

        def select(x):
            each = torch.stack([embed(x[..., i:i + 1]) for i, embed in enumerate(self.embeds)], -2)
            weight = self.weigh(each.flatten(-2)).softmax(-1)
            return (weight.unsqueeze(-1) * torch.stack([g(each[..., i, :])
                                                        for i, g in enumerate(self.grns)], -2)).sum(-2)

        y, state = self.encoder(select(past))
        z, _ = self.decoder(select(ahead), state)
        y = torch.cat([y, z], 1)
        mask = torch.triu(torch.ones(y.shape[1], y.shape[1], dtype=torch.bool), 1)
        y = y + self.attend(y, y, y, attn_mask=mask, need_weights=False)[0]
        return self.head(y[:, past.shape[1]:])

    parts = {
        "embeds": [nn.Linear(1, 8) for _ in range(3)],
        "grns": [grn(8) for _ in range(3)],
        "weigh": nn.Linear(24, 3),
        "encoder": nn.LSTM(8, 8, batch_first=True),
        "decoder": nn.LSTM(8, 8, batch_first=True),
        "attend": nn.MultiheadAttention(8, 2, batch_first=True),
        "head": nn.Linear(8, 3)
    }

    def make(n, t, u):
        return ((torch.randn(n, t, 3), torch.randn(n, u, 3)))

    return net(forward, **parts), make(1, 9, 4), make(3, 12, 5)


@model
def deep_ar():
    """The parameters of distributions, and the likelihood of what came."""

    def forward(self, x):
        y = self.time(x[:, :-1])[0]
        mean, scale, logits = self.mean(y), F.softplus(self.scale(y)), self.logits(y)
        counts = torch.distributions.NegativeBinomial(scale, logits=logits, validate_args=False)
        normal = torch.distributions.Normal(mean, scale, validate_args=False)
        return counts.log_prob(x[:, 1:].abs().round()), normal.cdf(x[:, 1:]), normal.icdf(0.9 + 0 * mean)

    return signals(
        net(forward,
            time=nn.GRU(1, 8, batch_first=True),
            mean=nn.Linear(8, 1),
            scale=nn.Linear(8, 1),
            logits=nn.Linear(8, 1)), (1, 9, 1), (3, 12, 1))


@model
def inverted_transformer():

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        scale = torch.sqrt(torch.var(x, dim=1, keepdim=True, unbiased=False) + 1e-5)
        y = self.layer(self.embed(((x - mean) / scale).permute(0, 2, 1)))
        return self.head(y).permute(0, 2, 1) * scale + mean

    return signals(
        net(forward,
            embed=nn.Linear(24, 12),
            layer=nn.TransformerEncoderLayer(12, 3, 24, activation="gelu", batch_first=True),
            head=nn.Linear(12, 6)), (1, 24, 5), (4, 24, 7))


@model
def interpolated_forecast():
    """N-HiTS: pooled inputs, few coefficients, interpolated to the horizon."""

    def forward(self, x):
        ahead = x[:, -1:].expand(-1, 12)
        for pool, block in zip((6, 3, 1), self.blocks):
            some = block(F.max_pool1d(x.unsqueeze(1), pool).squeeze(1))
            ahead = ahead + F.interpolate(some.unsqueeze(1), size=12, mode="linear").squeeze(1)
        return ahead

    blocks = [
        nn.Sequential(nn.Linear(24 // p, 8), nn.ReLU(), nn.Linear(8, k)) for p, k in ((6, 2), (3, 4), (1, 12))
    ]
    return signals(net(forward, blocks=blocks), (1, 24), (3, 24))


# ---- state spaces and long convolutions -----------------------------------------------------------


@model
def s4_diagonal():
    """A diagonal state space with complex parameters as a long convolution."""

    def forward(self, x):
        step, a = self.log_step.exp(), -self.log_real.exp() + 1j * self.imag
        product = (a * step.unsqueeze(-1)).unsqueeze(-1) * torch.arange(x.shape[-1])
        c = torch.view_as_complex(self.c) * (torch.exp(a * step.unsqueeze(-1)) - 1.0) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(product)).real
        length = x.shape[-1]
        y = torch.fft.irfft(torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(kernel, n=2 * length),
                            n=2 * length)
        return F.gelu(y[..., :length] + x * self.d.unsqueeze(-1))

    return signals(
        net(forward,
            log_step=nn.Parameter(torch.rand(4) - 3),
            log_real=nn.Parameter(torch.zeros(4, 3)),
            imag=nn.Parameter(math.pi * torch.arange(3).repeat(4, 1)),
            c=param(4, 3, 2),
            d=param(4)), (1, 4, 10), (2, 4, 16))


def segment_sums(x):
    """Sums of x between any two places, -inf above the diagonal."""
    length = x.shape[-1]
    x = x.unsqueeze(-1).repeat(*([1] * x.dim()), length)
    below = torch.tril(torch.ones(length, length, dtype=torch.bool), -1)
    sums = torch.cumsum(x.masked_fill(~below, 0), -2)
    return sums.masked_fill(~torch.tril(torch.ones(length, length, dtype=torch.bool)), -torch.inf)


@model
def mamba2():
    """State space duality in chunks."""

    def forward(self, u):
        z, xbc, dt = self.into(u).split([16, 24, 2], -1)
        xbc = F.silu(self.conv(xbc.transpose(1, 2))[..., :u.shape[1]].transpose(1, 2))
        x, b, c = xbc.split([16, 4, 4], -1)
        dt = F.softplus(dt + self.bias)
        x, a = x.unflatten(-1, (2, 8)) * dt.unsqueeze(-1), -torch.exp(self.log_a) * dt
        x, b, c = (t.unflatten(1, (-1, 4)) for t in (x, b, c))
        a = a.unflatten(1, (-1, 4)).permute(0, 3, 1, 2)
        sums = torch.cumsum(a, -1)
        inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, torch.exp(segment_sums(a)), x)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, torch.exp(sums[..., -1:] - sums), x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        decay = torch.exp(segment_sums(F.pad(sums[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
        between = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, torch.exp(sums))
        y = (inside + between).flatten(1, 2).flatten(2)
        return self.out(F.rms_norm(y * F.silu(z), (16, )))

    return signals(
        net(forward,
            into=nn.Linear(8, 42),
            conv=nn.Conv1d(24, 24, 3, groups=24, padding=2),
            bias=param(2),
            log_a=param(2),
            out=nn.Linear(16, 8)), (1, 8, 8), (2, 12, 8))


@model
def rwkv6():
    """A matrix of state with decays that follow from the data, step by step."""

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        r, k, v, w = (layer(x + (before - x) * mix).unflatten(-1, (2, 4))
                      for layer, mix in zip(self.layers, self.mix))
        w = torch.exp(-torch.exp(w))
        state, rows = x.new_zeros(x.shape[0], 2, 4, 4), []
        for t in range(5):
            kv = k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
            rows.append((r[:, t].unsqueeze(-2) @ (state + self.bonus.unsqueeze(-1) * kv)).squeeze(-2))
            state = w[:, t].unsqueeze(-1) * state + kv
        return self.norm(torch.stack(rows, 1).flatten(0, 1).flatten(1)).view(x.shape)

    return signals(
        net(forward,
            mix=nn.Parameter(torch.rand(4, 8)),
            layers=[nn.Linear(8, 8, bias=False) for _ in range(4)],
            bonus=param(2, 4),
            norm=nn.GroupNorm(2, 8)), (1, 5, 8), (3, 5, 8))


@model
def retention():
    """RetNet: decays by distance, rotated queries and keys, group norm."""

    def forward(self, x):
        at = torch.arange(x.shape[1])
        angle = at[:, None] * self.freq
        cos, sin = angle.cos().repeat_interleave(2, -1), angle.sin().repeat_interleave(2, -1)
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))

        def turn(t):
            return (t * cos + torch.stack([-t[..., 1::2], t[..., ::2]], -1).flatten(-2) * sin)

        gap = at[:, None] - at[None, :]
        decay = torch.where(gap >= 0, self.decay[:, None, None]**gap, 0.0)
        decay = decay / decay.sum(-1, keepdim=True).sqrt()
        score = turn(q) @ turn(k).mT * decay
        y = (score / score.detach().sum(-1, keepdim=True).abs().clamp(min=1)) @ v
        y = self.norm(y.transpose(1, 2).reshape(-1, 8)).view(x.shape)
        return F.silu(self.gate(x)) * y

    return signals(
        net(forward,
            freq=torch.tensor([1.0, 0.1]),
            qkv=nn.Linear(8, 24),
            decay=torch.tensor([0.9, 0.97]),
            norm=nn.GroupNorm(2, 8, affine=False),
            gate=nn.Linear(8, 8)), (1, 7, 8), (2, 11, 8))


@model
def matrix_lstm():
    """xLSTM's matrix memory with exponential gates in parallel form."""

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        i, f = (t.transpose(1, 2) for t in self.gates(x).chunk(2, -1))
        log_f = F.logsigmoid(f).cumsum(-1)
        log_d = log_f.unsqueeze(-1) - log_f.unsqueeze(-2) + i.unsqueeze(-2)
        log_d = log_d.masked_fill(torch.ones_like(log_d, dtype=torch.bool).triu(1), float("-inf"))
        top = log_d.max(-1, keepdim=True).values
        c = (q @ k.transpose(-1, -2) / 2) * torch.exp(log_d - top)
        norm = torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-top)) + 1e-6
        return ((c / norm) @ v).transpose(1, 2).flatten(2)

    return signals(net(forward, qkv=nn.Linear(8, 24), gates=nn.Linear(8, 4)), (1, 6, 8), (2, 9, 8))


@model
def hyena():
    """Long convolutions from an implicit filter, gated."""

    def forward(self, x):
        length = x.shape[1]
        t = torch.linspace(0, 1, length).unsqueeze(-1)
        place = torch.cat([t, torch.cos(2 * math.pi * t), torch.sin(2 * math.pi * t)], -1)
        filters = (self.filter(place) * torch.exp(-t * self.decay.abs())).t()
        v, a, b = self.short(self.into(x).transpose(1, 2))[..., :length].chunk(3, 1)
        spectrum = torch.fft.rfft(v * a, n=2 * length) * torch.fft.rfft(filters, n=2 * length) / (2 * length)
        return (torch.fft.irfft(spectrum, n=2 * length, norm="forward")[..., :length] * b).transpose(1, 2)

    filters = nn.Sequential(nn.Linear(3, 8), net(lambda self, x: torch.sin(self.freq * x), freq=param(8)),
                            nn.Linear(8, 6))
    return signals(
        net(forward,
            filter=filters,
            decay=param(6),
            short=nn.Conv1d(18, 18, 3, padding=2, groups=18),
            into=nn.Linear(6, 18)), (1, 9, 6), (2, 14, 6))


@model
def delta_net():
    """The delta rule: a memory is corrected by what it answers to a key."""

    def forward(self, x):
        q, k, v = (F.silu(t) for t in self.qkv(x).chunk(3, -1))
        q, k, beta = F.normalize(q, dim=-1), F.normalize(k, dim=-1), torch.sigmoid(self.beta(x))
        below = torch.tril(k @ k.transpose(-1, -2) * beta, -1)
        eye = torch.eye(x.shape[1])
        t = torch.linalg.solve_triangular(eye + below, eye.expand_as(below), upper=False, unitriangular=True)
        t = t * beta.transpose(-1, -2)
        return torch.tril(q @ k.transpose(-1, -2)) @ (t @ v)

    return signals(net(forward, qkv=nn.Linear(6, 18), beta=nn.Linear(6, 1)), (1, 7, 6), (2, 10, 6))


@model
def fourier_operator():
    """FNO: products with complex weights in the low frequencies of a field."""

    def forward(self, x):
        y = self.lift(x)
        spectrum = torch.fft.rfft2(y)
        out = torch.zeros(x.shape[0], 4, x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], self.one)
        out[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -3:, :3], self.two)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.skip(y))

    def weight():
        return (nn.Parameter(torch.randn(4, 4, 3, 3, dtype=torch.cfloat) * 0.1))

    return signals(net(forward, lift=nn.Conv2d(2, 4, 1), one=weight(), two=weight(), skip=nn.Conv2d(4, 4, 1)),
                   (1, 2, 12, 12), (3, 2, 16, 12))


@model
def spiking():
    """Leaky neurons that fire above a threshold and are reset."""

    def forward(self, x):
        voltage, fired = x.new_zeros(x.shape[0], 8), []
        for t in range(x.shape[1]):
            voltage = 0.9 * voltage + self.one(x[:, t])
            spike = (voltage > 0.5).float()
            voltage = voltage - spike * 0.5
            fired.append(self.two(spike))
        return torch.stack(fired).mean(0), voltage

    return signals(net(forward, one=nn.Linear(5, 8), two=nn.Linear(8, 3)), (1, 6, 5), (4, 6, 5))


@model
def liquid_network():
    """Closed-form continuous time cells over uneven steps."""

    def forward(self, x, gaps):
        h = torch.zeros(x.shape[0], 8)
        for t in range(5):
            z = self.body(torch.cat([x[:, t], h], 1))
            a, b = torch.tanh(self.a(z)), torch.tanh(self.b(z))
            gate = torch.sigmoid(-self.time(z) * gaps[:, t:t + 1])
            h = a * gate + b * (1 - gate)
        return self.out(h)

    parts = {
        "body": nn.Sequential(nn.Linear(12, 10), nn.SiLU()),
        "a": nn.Linear(10, 8),
        "b": nn.Linear(10, 8),
        "time": nn.Linear(10, 8),
        "out": nn.Linear(8, 2)
    }

    def make(n):
        return ((torch.randn(n, 5, 4), torch.rand(n, 5)))

    return net(forward, **parts), make(1), make(3)


@model
def neural_ode():
    """Four Runge-Kutta steps of a learned field."""

    def forward(self, x):
        h = 0.25
        for _ in range(4):
            a = self.field(x)
            b = self.field(x + h / 2 * a)
            c = self.field(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.field(x + h * c))
        return x

    return signals(net(forward, field=nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 3))), (1, 3),
                   (5, 3))
