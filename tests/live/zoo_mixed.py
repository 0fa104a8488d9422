# SPDX-License-Identifier: Apache-2.0
"""Architectures for zoo.py that are neither pictures nor sequences: points, graphs, tables,
recommendation, physics, mixtures of experts. `MODELS` maps a name to what makes (module, inputs,
inputs of another size)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


def mlp(*sizes, act=nn.ReLU):
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


@model
def point_net():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.turn, self.body = mlp(3, 16, 9), nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16),
                                                                nn.ReLU(), nn.Conv1d(16, 24, 1))
            self.head = mlp(24, 16, 4)

        def forward(self, x):
            turn = self.turn(x).max(1)[0].view(-1, 3, 3) + torch.eye(3)
            return self.head(self.body(torch.bmm(x, turn).transpose(1, 2)).amax(-1)).log_softmax(-1)

    return Net(), (torch.randn(1, 20, 3), ), (torch.randn(3, 33, 3), )


@model
def dgcnn():

    class Net(nn.Module):
        """Edges to the nearest neighbours in the space of features."""

        def __init__(self):
            super().__init__()
            self.edge, self.head = mlp(6, 16, 8), nn.Linear(8, 4)

        def forward(self, x):
            gap = torch.cdist(x, x)
            near = gap.topk(4, largest=False)[1]
            rows = torch.arange(x.shape[0]).view(-1, 1, 1)
            others = x[rows, near]
            own = x.unsqueeze(2).expand_as(others)
            return self.head(self.edge(torch.cat([own, others - own], -1)).amax(2).mean(1))

    return Net(), (torch.randn(1, 20, 3), ), (torch.randn(3, 33, 3), )


@model
def farthest_points():

    class Net(nn.Module):

        def forward(self, x):
            b, n, _ = x.shape
            gap, at, chosen = torch.full((b, n), 1e10), torch.zeros(b, dtype=torch.long), []
            for _ in range(4):
                chosen.append(at)
                centre = x[torch.arange(b), at].unsqueeze(1)
                gap = torch.minimum(gap, ((x - centre)**2).sum(-1))
                at = gap.argmax(-1)
            return torch.stack(chosen, 1)

    return Net(), (torch.randn(1, 20, 3), ), (torch.randn(3, 33, 3), )


def edges(nodes, count, features=6):
    return torch.randn(nodes, features), torch.randint(0, nodes, (2, count))


@model
def gcn():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 8), nn.Linear(8, 3)

        def spread(self, x, edge):
            ones = torch.ones(edge.shape[1])
            degree = torch.zeros(x.shape[0]).scatter_add_(0, edge[1], ones) + 1
            weight = (degree[edge[0]] * degree[edge[1]])**-0.5
            return torch.zeros_like(x).index_add_(0, edge[1],
                                                  x[edge[0]] * weight[:, None]) + x / degree[:, None]

        def forward(self, x, edge):
            return self.spread(self.two(F.relu(self.spread(self.one(x), edge))), edge).log_softmax(1)

    return Net(), edges(9, 20), edges(14, 31)


@model
def graph_sage():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.own, self.near = nn.Linear(6, 4), nn.Linear(6, 4)

        def forward(self, x, edge):
            at = edge[1][:, None].expand(-1, 6)
            mean = torch.zeros_like(x).scatter_reduce(0, at, x[edge[0]], "mean", include_self=False)
            most = torch.zeros_like(x).index_reduce(0, edge[1], x[edge[0]], "amax", include_self=False)
            return F.normalize(self.own(x) + self.near(mean) + self.near(most))

    return Net(), edges(9, 20), edges(14, 31)


@model
def gat():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.value, self.into, self.out_of = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)

        def forward(self, x, edge):
            v = self.value(x)
            score = F.leaky_relu(self.into(v)[edge[1], 0] + self.out_of(v)[edge[0], 0], 0.2)
            most = torch.full((x.shape[0], ), -1e9).scatter_reduce(0, edge[1], score, "amax")
            score = torch.exp(score - most[edge[1]])
            total = torch.zeros(x.shape[0]).index_add(0, edge[1], score)
            return torch.zeros_like(v).index_add(0, edge[1], v[edge[0]] * (score / total[edge[1]])[:, None])

    return Net(), edges(9, 20), edges(14, 31)


@model
def message_passing():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.message, self.cell, self.read = mlp(12, 16, 6), nn.GRUCell(6, 6), nn.Linear(6, 2)

        def forward(self, x, edge):
            for _ in range(3):
                sent = self.message(torch.cat([x[edge[0]], x[edge[1]]], 1))
                x = self.cell(torch.zeros_like(x).index_put((edge[1], ), sent, accumulate=True), x)
            return self.read(x).sum(0)

    return Net(), edges(9, 20), edges(14, 31)


class Recommender(nn.Module):
    """DLRM: bags of categories, and the products of all pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
        self.bottom, self.top = mlp(5, 16, 8), mlp(8 + 6, 16, 1)
        at = torch.tril_indices(4, 4, -1)
        self.register_buffer("i", at[0])
        self.register_buffer("j", at[1])

    def forward(self, dense, bags):
        x = self.bottom(dense)
        all_of = torch.stack([x] + [table(bags[:, k]) for k, table in enumerate(self.tables)], 1)
        pairs = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat([x, pairs], 1)).sigmoid()


@model
def dlrm():
    return (Recommender(), (torch.randn(2, 5), torch.randint(0, 20,
                                                             (2, 3, 4))), (torch.randn(5, 5),
                                                                           torch.randint(0, 20, (5, 3, 4))))


@model
def bags_by_offset():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table = nn.EmbeddingBag(20, 8, mode="max")

        def forward(self, ids, starts):
            return self.table(ids, starts)

    return (Net(), (torch.randint(0, 20, (9, )), torch.tensor([0, 3, 3, 7])), (torch.randint(0, 20, (14, )),
                                                                               torch.tensor([0, 4, 5, 9])))


@model
def deep_fm():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.linear, self.table, self.deep = nn.Embedding(40, 1), nn.Embedding(40, 6), mlp(18, 16, 1)
            self.register_buffer("starts", torch.tensor([0, 10, 25]))

        def forward(self, x):
            x = x + self.starts
            e = self.table(x)
            pairs = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
            return torch.sigmoid(self.linear(x).sum(1) + pairs + self.deep(e.flatten(1))).squeeze(1)

    return Net(), (torch.randint(0, 10, (2, 3)), ), (torch.randint(0, 10, (7, 3)), )


@model
def wide_and_deep():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.wide, self.deep, self.table = nn.Linear(30, 1), mlp(9, 16, 1), nn.Embedding(10, 4)

        def forward(self, x, ids):
            crossed = F.one_hot(ids * 3 % 30, 30).float()
            return torch.sigmoid(self.wide(crossed) + self.deep(torch.cat([x, self.table(ids)], 1)))

    return (Net(), (torch.randn(2, 5), torch.tensor([3, 9])), (torch.randn(3, 5), torch.tensor([0, 9, 4])))


@model
def cross_network():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            y = x
            for layer in self.layers:
                y = x * layer(y) + y
            return y

    return Net(), (torch.randn(2, 8), ), (torch.randn(5, 8), )


@model
def two_towers():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.user, self.item = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), mlp(24,
                                                                                        12)), mlp(5, 16, 12)

        def forward(self, user, item):
            a, b = F.normalize(self.user(user), dim=-1), F.normalize(self.item(item), dim=-1)
            return a @ b.T, F.pairwise_distance(a, b[:1].expand_as(a))

    return (Net(), (torch.randint(0, 20, (2, 3)), torch.randn(4,
                                                              5)), (torch.randint(0, 20,
                                                                                  (3, 3)), torch.randn(6, 5)))


@model
def tab_transformer():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(40, 8), nn.BatchNorm1d(4)
            self.body, self.head = nn.TransformerEncoderLayer(8, 2, 16,
                                                              batch_first=True), mlp(28, 16, 2, act=nn.SELU)

        def forward(self, ids, x):
            return self.head(torch.cat([self.body(self.table(ids)).flatten(1), self.norm(x)], 1))

    return (Net(), (torch.randint(0, 40, (2, 3)), torch.randn(2,
                                                              4)), (torch.randint(0, 40,
                                                                                  (5, 3)), torch.randn(5, 4)))


@model
def soft_trees():

    class Net(nn.Module):
        """A differentiable forest: paths' probabilities times leaves."""

        def __init__(self):
            super().__init__()
            self.split, self.leaf = nn.Linear(6, 7), nn.Parameter(torch.randn(8, 3))

        def forward(self, x):
            right = torch.sigmoid(self.split(x))
            path = torch.ones(x.shape[0], 1)
            for depth in range(3):
                here = right[:, 2**depth - 1:2**(depth + 1) - 1]
                path = torch.stack([path * (1 - here), path * here], 2).flatten(1)
            return path @ self.leaf

    return Net(), (torch.randn(2, 6), ), (torch.randn(5, 6), )


@model
def autoencoder():
    return mlp(12, 8, 3, 8, 12, act=nn.ELU), (torch.randn(2, 12), ), (torch.randn(5, 12), )


@model
def nerf():

    class Net(nn.Module):
        """Positions and directions as waves, colours and densities put together along rays."""

        def __init__(self):
            super().__init__()
            self.body, self.sigma, self.colour = mlp(3 + 24, 16, 16), nn.Linear(16, 1), mlp(16 + 3, 16, 3)

        def forward(self, start, direction):
            depth = torch.linspace(2, 6, 12)
            points = start[:, None] + direction[:, None] * depth[None, :, None]
            waves = [f(points * 2**k) for k in range(4) for f in (torch.sin, torch.cos)]
            y = self.body(torch.cat([points, *waves], -1))
            colour = torch.sigmoid(self.colour(torch.cat([y, direction[:, None].expand(-1, 12, -1)], -1)))
            gap = torch.cat([depth.diff(), torch.tensor([1e10])])
            alpha = 1 - torch.exp(-F.relu(self.sigma(y)[..., 0]) * gap)
            left = torch.cumprod(torch.cat([torch.ones(alpha.shape[0], 1), 1 - alpha + 1e-10], -1),
                                 -1)[:, :-1]
            weight = alpha * left
            return (weight[..., None] * colour).sum(1), (weight * depth).sum(1)

    return (Net(), (torch.randn(4, 3), torch.randn(4, 3)), (torch.randn(7, 3), torch.randn(7, 3)))


@model
def siren():

    class Sine(nn.Module):

        def forward(self, x):
            return torch.sin(30 * x)

    return mlp(2, 16, 16, 3, act=Sine), (torch.rand(9, 2) * 2 - 1, ), (torch.rand(25, 2) * 2 - 1, )


@model
def fourier_features():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("rate", torch.randn(2, 8) * 3)
            self.body = mlp(16, 16, 3)

        def forward(self, x):
            angle = 2 * math.pi * x @ self.rate
            return self.body(torch.cat([angle.sin(), angle.cos()], -1)).sigmoid()

    return Net(), (torch.rand(9, 2), ), (torch.rand(25, 2), )


@model
def hash_grid():

    class Net(nn.Module):
        """Instant NGP's table: corners by a hash, blended."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(64, 2)
            self.register_buffer("corner", torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]))

        def forward(self, x):
            x = x * 16
            base = x.floor().long()
            at = base[:, None] + self.corner
            at = torch.bitwise_xor(at[..., 0], at[..., 1] * 2654435761) % 64
            part = (x - base)[:, None]
            weight = torch.where(self.corner == 1, part, 1 - part).prod(-1, keepdim=True)
            return (self.table(at) * weight).sum(1)

    return Net(), (torch.rand(9, 2), ), (torch.rand(25, 2), )


class Experts(nn.Module):

    def __init__(self, experts=4, k=2):
        super().__init__()
        self.gate, self.k = nn.Linear(8, experts, bias=False), k
        self.up, self.down = (nn.Parameter(torch.randn(experts, 8, 16) * 0.3),
                              nn.Parameter(torch.randn(experts, 16, 8) * 0.3))


class DenseExperts(Experts):
    """Every expert runs; what was not chosen counts nothing."""

    def forward(self, x):
        weight, at = self.gate(x).softmax(-1).topk(self.k, -1)
        weight = torch.zeros(x.shape[0], 4).scatter(1, at, weight / weight.sum(-1, keepdim=True))
        y = torch.einsum("nd,edf->nef", x, self.up)
        return torch.einsum("nef,efd,ne->nd", F.silu(y), self.down, weight)


class SortedExperts(Experts):
    """Tokens sorted by their expert."""

    def forward(self, x):
        weight, at = self.gate(x).softmax(-1).topk(self.k, -1)
        order = at.flatten().argsort(stable=True)
        rows, chosen = order // self.k, at.flatten()[order]
        y = torch.bmm(x[rows].unsqueeze(1), self.up[chosen])
        y = torch.bmm(F.silu(y), self.down[chosen]).squeeze(1) * weight.flatten()[order].unsqueeze(1)
        return torch.zeros_like(x).index_add_(0, rows, y), torch.bincount(at.flatten(), minlength=4)


class MaskedExperts(Experts):
    """Each expert reads the rows that chose it, whose number only a run knows."""

    def forward(self, x):
        at, out = self.gate(x).argmax(-1), torch.zeros_like(x)
        for expert in range(4):
            rows = torch.where(at == expert)[0]
            out = out.index_add(0, rows, F.silu(x[rows] @ self.up[expert]) @ self.down[expert])
        return out


@model
def moe_dense():
    return DenseExperts(), (torch.randn(5, 8), ), (torch.randn(9, 8), )


@model
def moe_sorted():
    return SortedExperts(), (torch.randn(5, 8), ), (torch.randn(9, 8), )


@model
def moe_masked():
    return MaskedExperts(), (torch.randn(5, 8), ), (torch.randn(9, 8), )


@model
def hyper_network():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.make = nn.Linear(4, 8 * 6)

        def forward(self, x, code):
            return torch.func.functional_call(nn.Linear(8, 6, bias=False),
                                              {"weight": self.make(code).view(6, 8)}, x)

    return Net(), (torch.randn(2, 8), torch.randn(4)), (torch.randn(5, 8), torch.randn(4))


@model
def deep_sets():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.each, self.all = mlp(3, 16, 8), mlp(8, 16, 2)

        def forward(self, x, present):
            return self.all((self.each(x) * present.unsqueeze(-1)).sum(1) / present.sum(1, keepdim=True))

    return (Net(), (torch.randn(2, 5, 3), torch.ones(2, 5)), (torch.randn(3, 8, 3), torch.ones(3, 8)))


@model
def policy():

    class Net(nn.Module):
        """Actor and critic: a distribution's log-probabilities, entropy, and a clipped action."""

        def __init__(self):
            super().__init__()
            self.body, self.mean, self.value = mlp(6, 16, 16, act=nn.Tanh), nn.Linear(16, 2), nn.Linear(16, 1)
            self.log_scale = nn.Parameter(torch.zeros(2))

        def forward(self, x, action):
            y = self.body(x)
            spread = torch.distributions.Normal(self.mean(y), self.log_scale.exp(), validate_args=False)
            return spread.log_prob(action).sum(-1), spread.entropy().sum(-1), self.value(y).squeeze(-1)

    return (Net(), (torch.randn(2, 6), torch.randn(2, 2)), (torch.randn(5, 6), torch.randn(5, 2)))


@model
def dueling_q():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body, self.value, self.gain = mlp(6, 16, 8), nn.Linear(8, 1), nn.Linear(8, 4)

        def forward(self, x):
            y = self.body(x)
            gain = self.gain(y)
            q = self.value(y) + gain - gain.mean(1, keepdim=True)
            return q.gather(1, q.argmax(1, keepdim=True)), q

    return Net(), (torch.randn(2, 6), ), (torch.randn(5, 6), )


@model
def kan():

    class Net(nn.Module):
        """Kolmogorov–Arnold: splines on the edges."""

        def __init__(self):
            super().__init__()
            self.register_buffer("knots", torch.linspace(-2, 2, 10))
            self.weight = nn.Parameter(torch.randn(5, 4, 6))

        def forward(self, x):
            x = x.unsqueeze(-1)
            basis = ((x >= self.knots[:-1]) & (x < self.knots[1:])).float()
            for k in range(1, 4):
                left = (x - self.knots[:-k - 1]) / (self.knots[k:-1] - self.knots[:-k - 1])
                right = (self.knots[k + 1:] - x) / (self.knots[k + 1:] - self.knots[1:-k])
                basis = left * basis[..., :-1] + right * basis[..., 1:]
            return torch.einsum("nik,oik->no", basis, self.weight)

    return Net(), (torch.randn(3, 4), ), (torch.randn(7, 4), )


@model
def gaussian_process():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("known", torch.randn(12, 3))
            kernel = torch.exp(-torch.cdist(self.known, self.known)**2 / 2) + 0.1 * torch.eye(12)
            self.register_buffer("weight", torch.linalg.solve(kernel, torch.randn(12, 1)))

        def forward(self, x):
            return (torch.exp(-torch.cdist(x, self.known)**2 / 2) @ self.weight).squeeze(-1)

    return Net(), (torch.randn(3, 3), ), (torch.randn(7, 3), )


@model
def kalman_solve():

    class Net(nn.Module):
        """One update of a Kalman filter, with a solve and determinants."""

        def forward(self, mean, spread, seen):
            total = spread + torch.eye(3) * 0.5
            gain = torch.linalg.solve(total, spread)
            mean = mean + (gain @ (seen - mean).unsqueeze(-1)).squeeze(-1)
            return mean, spread - gain @ spread, torch.linalg.slogdet(total)[1], torch.linalg.cholesky(total)

    def inputs(n):
        root = torch.randn(n, 3, 3)
        return torch.randn(n, 3), root @ root.mT + torch.eye(3), torch.randn(n, 3)

    return Net(), inputs(2), inputs(5)


@model
def physics_fourier():

    class Net(nn.Module):
        """The Fourier neural operator's layer."""

        def __init__(self):
            super().__init__()
            self.re, self.im = nn.Parameter(torch.randn(4, 4, 5)), nn.Parameter(torch.randn(4, 4, 5))
            self.same = nn.Conv1d(4, 4, 1)

        def forward(self, x):
            low = torch.fft.rfft(x)[..., :5]
            low = torch.einsum("bik,iok->bok", low, torch.complex(self.re, self.im))
            return F.gelu(torch.fft.irfft(low, n=x.shape[-1]) + self.same(x))

    return Net(), (torch.randn(1, 4, 32), ), (torch.randn(3, 4, 32), )
