# SPDX-License-Identifier: Apache-2.0
"""Models for zoo.py with loops, branches, scans, maps and regions. `MODELS` maps a name to what makes
(module, inputs, inputs of another size)."""

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

MODELS = {}


def model(make):
    MODELS[make.__name__] = make
    return make


@model
def rnn_by_scan():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.x, self.h = nn.Linear(4, 6), nn.Linear(6, 6)

        def forward(self, x):

            def step(h, now):
                h = torch.tanh(self.x(now) + self.h(h))
                return h, h.clone()

            return scan(step, torch.zeros(x.shape[1], 6), x, dim=0)

    return Net(), (torch.randn(5, 2, 4), ), (torch.randn(9, 3, 4), )


@model
def scan_backwards():

    class Net(nn.Module):

        def forward(self, x, y):

            def step(carry, now):
                total, most = carry
                a, b = now
                return [total + a * b, torch.maximum(most, a)], [total * 1, most - b]

            start = [torch.zeros(x.shape[0]), torch.full((x.shape[0], ), -5.0)]
            return scan(step, start, [x, y], dim=1, reverse=True)

    return Net(), (torch.randn(2, 5), torch.randn(2, 5)), (torch.randn(3, 7), torch.randn(3, 7))


@model
def gated_scan():

    class Net(nn.Module):
        """A linear recurrence as an associative scan."""

        def forward(self, gate, x):

            def join(one, two):
                return one[0] * two[0], two[0] * one[1] + two[1]

            return associative_scan(join, (gate.sigmoid(), x), 1, combine_mode="generic")

    return (Net(), (torch.randn(2, 5, 3), torch.randn(2, 5, 3)), (torch.randn(3, 8, 3), torch.randn(3, 8, 3)))


@model
def cumulative_by_scan():

    class Net(nn.Module):

        def forward(self, x):
            return associative_scan(lambda a, b: a + b, x, 0, reverse=True, combine_mode="generic")

    return Net(), (torch.randn(5, 3), ), (torch.randn(8, 3), )


@model
def mapped_rows():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 4)

        def forward(self, x, y):
            return map_rows(lambda row, other: torch.relu(self.body(row)) @ other, x, y)

    return Net(), (torch.randn(5, 2, 3), torch.randn(4, 2)), (torch.randn(8, 2, 3), torch.randn(4, 2))


@model
def kalman_loop():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.move, self.see = nn.Parameter(torch.eye(2) * 0.9), nn.Parameter(torch.randn(1, 2))

        def forward(self, seen):

            def goes_on(t, mean, spread):
                return t < 6

            def step(t, mean, spread):
                mean, spread = self.move @ mean, self.move @ spread @ self.move.T + torch.eye(2) * 0.1
                gap = seen.index_select(0, t.view(1)).view(1, 1) - self.see @ mean
                gain = spread @ self.see.T / (self.see @ spread @ self.see.T + 0.2)
                return t + 1, mean + gain @ gap, spread - gain @ self.see @ spread

            return while_loop(goes_on, step, (torch.zeros(
                (), dtype=torch.long), torch.zeros(2, 1), torch.eye(2)))

    return Net(), (torch.randn(6), ), (torch.randn(6), )


@model
def newton_loop():

    class Net(nn.Module):

        def forward(self, x):

            def goes_on(i, y):
                return ((y * y - x).abs().max() > 1e-5) & (i < 40)

            return while_loop(goes_on, lambda i, y: (i + 1, (y + x / y) / 2), (torch.zeros(
                (), dtype=torch.long), torch.ones_like(x)))

    return Net(), (torch.rand(4) + 0.5, ), (torch.rand(9) + 0.5, )


@model
def branch_on_mean():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def forward(self, x):
            return torch.cond(x.mean() > 0, lambda y: self.one(y), lambda y: self.two(y), (x, ))

    return Net(), (torch.randn(2, 4) + 2, ), (torch.randn(5, 4) - 2, )


@model
def branch_on_size():

    class Net(nn.Module):

        def forward(self, x):
            return torch.cond(x.shape[0] > 3, lambda y: y.sin(), lambda y: y.cos() * 2, (x, ))

    return Net(), (torch.randn(2, 4), ), (torch.randn(5, 4), )


@model
def half_region():

    class Net(nn.Module):
        """An autocast region: products in bfloat16, the rest in float32."""

        def __init__(self):
            super().__init__()
            self.one, self.conv, self.norm = nn.Linear(8, 8), nn.Conv1d(8, 8, 3, padding=1), nn.LayerNorm(8)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.conv(self.one(x).transpose(1, 2))
                scores = torch.bmm(y.transpose(1, 2), y).softmax(-1)
            return self.norm(x) + scores.float().sum(-1, keepdim=True)

    return Net(), (torch.randn(2, 5, 8), ), (torch.randn(3, 9, 8), )


@model
def no_grad_region():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)

        def forward(self, x):
            with torch.no_grad():
                centre = x.mean(0, keepdim=True)
            with torch.autocast("cpu", enabled=False):
                return self.body(x - centre)

    return Net(), (torch.randn(2, 8), ), (torch.randn(5, 8), )


@model
def mapped_by_vmap():

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 3))

        def forward(self, x, y):
            return torch.vmap(lambda a, b: torch.tanh(self.weight @ a) + b.sum())(x, y)

    return Net(), (torch.randn(2, 3), torch.randn(2, 5)), (torch.randn(4, 3), torch.randn(4, 5))


@model
def mapped_twice():

    class Net(nn.Module):
        """All pairs of rows by two maps, the second over dimension 1."""

        def forward(self, x, y):
            return torch.vmap(lambda a: torch.vmap(lambda b: F.softmax(a * b, -1).max(), in_dims=1)(y))(x)

    return Net(), (torch.randn(2, 3), torch.randn(3, 5)), (torch.randn(4, 3), torch.randn(3, 6))


@model
def rows_until_zero():

    class Net(nn.Module):
        """A number of rows that only the run knows."""

        def forward(self, x):
            kept = x[x.sum(1) > 0]
            return kept.mean(0), torch.nonzero(x > 1).shape[0] + x

    return Net(), (torch.randn(6, 3), ), (torch.randn(9, 3), )


@model
def greedy_loop():

    class Net(nn.Module):
        """Greedy decoding into a buffer."""

        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(12, 6), nn.Linear(6, 12)

        def forward(self, start):

            def step(i, out):
                token = self.head(torch.tanh(self.table(out.index_select(0, i.view(1))))).argmax(-1)
                return i + 1, out.index_copy(0, (i + 1).view(1), token)

            first = torch.zeros((), dtype=torch.long)
            out = torch.zeros(7, dtype=torch.long).index_put((first, ), start)
            return while_loop(lambda i, out: i < 6, step, (first, out))[1]

    return Net(), (torch.tensor(3), ), (torch.tensor(7), )
