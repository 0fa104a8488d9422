# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py: molecules, points, rendering, numbers of other kinds. `MODELS` maps a name
to what makes (module, inputs, inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from zoo_parts import net, param, signals, tokens

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- molecules, points, numbers of other kinds ----------------------------------------------------


@model
def equivariant_graph():
    """EGNN: messages of distances move the points, too."""

    def forward(self, h, x, edges):
        a, b = edges
        gap = x[a] - x[b]
        m = self.edge(torch.cat([h[a], h[b], gap.pow(2).sum(-1, keepdim=True)], -1))
        count = torch.zeros(x.shape[0], 1).index_add(0, a, torch.ones(a.shape[0], 1)).clamp(min=1)
        x = x + torch.zeros_like(x).index_add(0, a, gap * self.move(m)) / count
        total = torch.zeros(h.shape[0], 8).scatter_reduce(0, a[:, None].expand(-1, 8), m, "sum")
        return h + self.node(torch.cat([h, total], -1)), x

    def make(n, e):
        return ((torch.randn(n, 6), torch.randn(n, 3), tokens(2, e, high=n)))

    return net(forward,
               edge=nn.Sequential(nn.Linear(13, 8), nn.SiLU()),
               move=nn.Linear(8, 1, bias=False),
               node=nn.Linear(14, 6)), make(5, 9), make(8, 14)


@model
def sch_net():
    """Continuous filters over distances within a radius."""

    def forward(self, kinds, place):
        gap = (place[:, None] - place[None]).norm(dim=-1)
        near = (gap < 2.5) & ~torch.eye(gap.shape[0], dtype=torch.bool)
        a, b = near.nonzero(as_tuple=True)
        d = gap[a, b]
        basis = torch.exp(-4 * (d[:, None] - self.centres)**2)
        cut = 0.5 * (torch.cos(d * math.pi / 2.5) + 1)
        h = self.embed(kinds)
        y = torch.zeros_like(h).index_add(0, a, h[b] * self.filter(basis) * cut[:, None])
        return self.out(F.softplus(h + y) - math.log(2)).sum()

    def make(n):
        return ((tokens(n, high=9), torch.randn(n, 3)))

    return net(forward,
               centres=torch.linspace(0, 2.5, 6),
               embed=nn.Embedding(9, 8),
               filter=nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 8)),
               out=nn.Linear(8, 1)), make(5), make(9)


@model
def pair_former():
    """AlphaFold: outer products, triangle updates, attention with a bias from pairs."""

    def forward(self, s, z):
        z = z + self.outer(torch.einsum("nsic,nsjd->nijcd", self.a(s), self.b(s)).flatten(-2) / s.shape[1])
        y = self.norm(z)
        left, right = (self.left(y) * self.gate(y).sigmoid()), self.right(y)
        z = z + torch.einsum("nikc,njkc->nijc", left, right) + torch.einsum("nkic,nkjc->nijc", left, right)
        q, k, v = (t.unflatten(-1, (2, 4)) for t in self.qkv(s).chunk(3, -1))
        bias = self.bias(z).permute(0, 3, 1, 2)
        weight = (torch.einsum("nsihc,nsjhc->nshij", q, k) / 2 + bias.unsqueeze(1)).softmax(-1)
        return s + torch.einsum("nshij,nsjhc->nsihc", weight, v).flatten(-2), z

    def linear(a, b):
        return (nn.Linear(a, b))

    def make(n, s, r):
        return ((torch.randn(n, s, r, 8), torch.randn(n, r, r, 6)))

    return net(forward,
               outer=linear(9, 6),
               a=linear(8, 3),
               b=linear(8, 3),
               norm=nn.LayerNorm(6),
               left=linear(6, 6),
               gate=linear(6, 6),
               right=linear(6, 6),
               qkv=linear(8, 24),
               bias=linear(6, 2)), make(1, 3, 4), make(2, 4, 6)


@model
def grouped_points():
    """PointNet++: groups within a radius around chosen points, interpolated back by distance."""

    def forward(self, x):
        centres = x[:, ::3]
        gap = torch.cdist(centres, x)
        at = torch.arange(x.shape[1]).expand_as(gap).clone()
        at[gap > 1.2] = x.shape[1] - 1
        at = at.sort(-1)[0][..., :4]
        batch = torch.arange(x.shape[0]).view(-1, 1, 1)
        y = self.body(x[batch, at] - centres.unsqueeze(2)).max(2)[0]
        near, k = torch.cdist(x, centres).topk(2, largest=False)
        weight = 1 / (near + 1e-8)
        weight = weight / weight.sum(-1, keepdim=True)
        return (y[batch, k] * weight.unsqueeze(-1)).sum(2)

    return signals(net(forward, body=nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 6))), (1, 12, 3),
                   (2, 18, 3))


@model
def graph_pooling():
    """Attention over edges with a softmax per node, and the best nodes of a graph."""

    def forward(self, x, edges):
        a, b = edges
        h = self.one(x)
        e = F.leaky_relu(self.att(torch.cat([h[a], h[b]], -1)), 0.2).squeeze(-1)
        top = torch.full((x.shape[0], ), -1e9).scatter_reduce(0, b, e, "amax")
        e = (e - top[b]).exp()
        total = torch.zeros(x.shape[0]).scatter_add(0, b, e)
        y = torch.zeros_like(h).index_add(0, b, h[a] * (e / (total[b] + 1e-16)).unsqueeze(-1))
        score = torch.tanh(y @ self.p / self.p.norm())
        best, at = score.topk(3)
        return y[at] * best.unsqueeze(-1), torch.zeros(x.shape[0]).index_fill(0, at, 1.0)

    def make(n, e):
        return ((torch.randn(n, 5), tokens(2, e, high=n)))

    return net(forward, one=nn.Linear(5, 6), att=nn.Linear(12, 1), p=param(6)), make(5, 11), make(8, 17)


@model
def quaternions():
    """A linear layer of quaternions as one real matrix, and products of Hamilton."""

    def forward(self, x):
        r, i, j, k = self.weight
        big = torch.cat([
            torch.cat([r, -i, -j, -k]),
            torch.cat([i, r, -k, j]),
            torch.cat([j, k, r, -i]),
            torch.cat([k, -j, i, r])
        ], 1)
        y = F.leaky_relu(x @ big)
        a, b, c, d = y.chunk(4, -1)
        norm = torch.sqrt(a * a + b * b + c * c + d * d + 1e-6)
        return y / torch.cat([norm] * 4, -1)

    return signals(net(forward, weight=param(4, 2, 3)), (1, 8), (4, 8))


@model
def complex_network():
    """Layers with complex weights, modReLU, and a magnitude at the end."""

    def forward(self, x):
        z = torch.complex(x[..., 0], x[..., 1]) @ self.one + self.bias
        size = z.abs()
        z = z * F.relu(size + self.shift) / (size + 1e-5)
        y = torch.complex(
            F.linear(z.real, self.two) - F.linear(z.imag, self.two),
            F.linear(z.real, self.two) + F.linear(z.imag, self.two))
        return (y * y.conj()).real.sqrt().softmax(-1), torch.view_as_real(z)

    weight = nn.Parameter(torch.randn(4, 6, dtype=torch.cfloat) * 0.3)
    return signals(
        net(forward,
            one=weight,
            bias=nn.Parameter(torch.randn(6, dtype=torch.cfloat)),
            shift=param(6),
            two=param(3, 6)), (1, 4, 2), (5, 4, 2))


@model
def ternary_weights():
    """BitNet: weights of -1, 0 and 1, inputs in eight bits, with straight-through rounding."""

    def forward(self, x):
        y = F.rms_norm(x, (8, ))
        scale = 127.0 / y.abs().max(-1, keepdim=True).values.clamp(min=1e-5)
        q = (y * scale).round().clamp(-128, 127) / scale
        y = y + (q - y).detach()
        gain = 1.0 / self.weight.abs().mean().clamp(min=1e-5)
        w = (self.weight * gain).round().clamp(-1, 1) / gain
        return F.linear(y, self.weight + (w - self.weight).detach())

    return signals(net(forward, weight=param(6, 8)), (1, 3, 8), (2, 5, 8))


@model
def low_rank_adapters():
    """LoRA and DoRA: a frozen layer, a product of two small ones, and lengths of columns."""

    def forward(self, x):
        weight = self.base.weight + self.b @ self.a * 2.0
        length = torch.linalg.norm(weight, dim=1, keepdim=True)
        return F.linear(x, self.size * weight / length,
                        self.base.bias) + F.linear(F.linear(x, self.a), self.b) * 0.5

    return signals(net(forward, base=nn.Linear(8, 6), a=param(2, 8), b=param(6, 2), size=param(6, 1)), (1, 8),
                   (4, 8))


@model
def stacked_ensemble():
    """Weights of several nets stacked, called at once by torch.vmap."""

    def forward(self, x):

        def one(w, b, v):
            return F.gelu(x @ w + b) @ v

        y = torch.vmap(one)(self.w, self.b, self.v)
        return y.mean(0), y.std(0)

    return signals(net(forward, w=param(4, 5, 8), b=param(4, 8), v=param(4, 8, 2)), (2, 5), (5, 5))


@model
def mixture_density():

    def forward(self, x, y):
        pi, mean, scale = self.body(x).unflatten(-1, (3, 4)).unbind(1)
        normal = torch.distributions.Normal(mean, F.softplus(scale) + 1e-3, validate_args=False)
        log_p = torch.logsumexp(pi.log_softmax(-1) + normal.log_prob(y), -1)
        lowest = torch.linalg.cholesky(self.root @ self.root.t() + torch.eye(4))
        whitened = torch.linalg.solve_triangular(lowest, mean.unsqueeze(-1), upper=False)
        return log_p, whitened.squeeze(-1), torch.logdet(lowest @ lowest.t()), torch.special.erf(mean)

    def make(n):
        return ((torch.randn(n, 5), torch.randn(n, 1)))

    return net(forward, body=nn.Linear(5, 12), root=param(4, 4)), make(2), make(5)


# ---- rendering ------------------------------------------------------------------------------------


@model
def volume_rendering():
    """Rays sampled anew where the density is: sorted inverse transform, products of transmittance."""

    def forward(self, origin, way):
        t = torch.linspace(0.5, 4, 8).expand(origin.shape[0], 8)

        def shade(t):
            points = origin[:, None] + way[:, None] * t[..., None]
            wide = torch.cat([points] + [f(points * 2**i) for i in range(2) for f in (torch.sin, torch.cos)],
                             -1)
            colour, density = self.field(wide).split([3, 1], -1)
            gap = F.pad(t[:, 1:] - t[:, :-1], (0, 1), value=1e3)
            alpha = 1 - torch.exp(-F.softplus(density.squeeze(-1)) * gap)
            clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1),
                                  -1)[:, :-1]
            return alpha * clear, colour.sigmoid()

        weight, _ = shade(t)
        share = (weight[:, 1:-1] + 1e-5) / (weight[:, 1:-1] + 1e-5).sum(-1, keepdim=True)
        steps = F.pad(share.cumsum(-1), (1, 0))
        u = torch.linspace(0.05, 0.95, 6).expand(origin.shape[0], 6).contiguous()
        right = torch.searchsorted(steps.contiguous(), u, right=True).clamp(1, 6)
        middle = (t[:, 1:] + t[:, :-1]) / 2
        low, high = steps.gather(1, right - 1), steps.gather(1, right)
        a, b = middle.gather(1, right - 1), middle.gather(1, right)
        new = a + (u - low) / (high - low).clamp(min=1e-5) * (b - a)
        t = torch.cat([t, new], -1).sort(-1)[0]
        weight, colour = shade(t)
        return (weight[..., None] * colour).sum(1), (weight * t).sum(-1)

    field = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4))

    def make(n):
        return ((torch.randn(n, 3), F.normalize(torch.randn(n, 3), dim=-1)))

    return net(forward, field=field), make(2), make(5)


@model
def splats():
    """Gaussians projected to a picture, sorted by depth and blended."""

    def forward(self, place, log_scale, quaternion, colour):
        w, x, y, z = F.normalize(quaternion, dim=-1).unbind(-1)
        rows = [
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
        ]
        turn = torch.stack(rows, -1).view(-1, 3, 3)
        m = turn * log_scale.exp().unsqueeze(-2)
        spread = (m @ m.mT)[:, :2, :2] + 0.3 * torch.eye(2)
        depth, order = torch.sort(place[:, 2])
        inverse = torch.linalg.inv(spread)[order]
        ys, xs = torch.meshgrid(torch.linspace(-2, 2, 8), torch.linspace(-2, 2, 8), indexing="ij")
        gap = torch.stack([xs, ys], -1).view(-1, 1, 2) - place[order, :2]
        power = -0.5 * (gap.unsqueeze(-2) @ inverse @ gap.unsqueeze(-1)).flatten(1)
        alpha = (0.8 * power.exp()).clamp(max=0.99)
        clear = torch.cumprod(F.pad(1 - alpha, (1, 0), value=1.0), 1)[:, :-1]
        return (alpha * clear) @ colour[order].sigmoid(), depth

    def make(n):
        return ((torch.randn(n, 3), torch.randn(n, 3) * 0.3 - 1, torch.randn(n, 4), torch.randn(n, 3)))

    return net(forward), make(4), make(9)
