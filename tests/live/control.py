# SPDX-License-Identifier: Apache-2.0
"""Higher-order operators against PyTorch: control.py FXSERVE [WORD].

Needs torch 2.13, numpy and safetensors. Branches, loops, scans, maps, autocast and set_grad regions,
effects, vmap regions, nested in each other, exported and run in both modes at two sizes. What
PyTorch cannot export is an error of this table. The last line is `N passed, N failed`.
"""
import functools
import io
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from zoo import Bench, Miss, Tally, exported, quiet

warnings.filterwarnings("ignore")
CASES = {}
ZERO = torch.zeros((), dtype=torch.long)


def case(*shapes, make=torch.randn):
    """Adds a function of (module, *tensors) as a case with inputs of `shapes`; the second size is one
    more in the first dimension."""

    def add(function):
        CASES[function.__name__.replace("_", " ")] = (function, shapes, make)
        return function

    return add


class Calls(nn.Module):
    """A function as a module, with layers and buffers that some functions use."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("seen", torch.ones(4))
        self.one, self.two, self.rows = nn.Linear(4, 4), nn.Linear(4, 4), nn.LayerNorm(4)
        self.conv = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def times(n, step, *start):
    """`step` n times by a loop, and its values."""
    return while_loop(lambda i, *_: i < n, lambda i, *values: (i + 1, *step(i, *values)),
                      (torch.zeros((), dtype=torch.long), *start))[1:]


# ---- cond ----
@case((3, 4))
def branches_of_layers(m, x):
    return torch.cond(x.sum() > 0, lambda y: m.one(y).relu(), lambda y: m.two(y), (x, ))


@case((3, 4), (4, ))
def branches_of_several_values(m, x, y):
    return torch.cond(x.sum() > y.sum(), lambda a, b: (a + b, b * 2), lambda a, b: (a - b, b.exp()), (x, y))


@case((3, 4))
def branch_in_a_branch(m, x):

    def inner(y):
        return torch.cond(y.max() > 1, lambda z: z.sin(), lambda z: z.cos(), (y, ))

    return torch.cond(x.sum() > 0, inner, lambda y: inner(y * 3) + 1, (x, ))


@case((3, 4))
def branch_with_a_write_inside(m, x):

    def write(y):
        y = y.clone()
        y[0].mul_(2)
        y.add_(1)
        return y

    return torch.cond(x.sum() > 0, write, lambda y: write(-y), (x, ))


@case((3, 4))
def branch_on_an_item(m, x):
    n = (x > 0).sum().item()
    return torch.cond(n > 3, lambda y: y + 1, lambda y: y - 1, (x, ))


@case((3, 4))
def branches_of_other_strides(m, x):
    return torch.cond(x.sum() > 0, lambda y: (y @ y.t()).t().contiguous(), lambda y: y @ y.t() * 2, (x, ))


@case((3, 4))
def branch_on_symbolic_size(m, x):
    return torch.cond(x.shape[0] > 3, lambda y: y.sin().sum(0), lambda y: y.cos().mean(0), (x, ))


@case((3, 4))
def branch_of_integers_and_bools(m, x):
    k = (x * 3).long()
    return torch.cond((k > 1).any(), lambda a: (a * 2, a > 0), lambda a: (a // 2, a < 1), (k, ))


# ---- while_loop ----
@case((3, 4))
def loop_of_layers(m, x):
    return times(5, lambda i, h: (torch.tanh(m.one(h)) + x * 0.1, ), x * 1)


@case((3, 4))
def loop_of_several_values(m, x):
    return times(6, lambda i, a, b: (b + 0.5, a * 0.9), x * 1, x.sin())


@case((3, 4))
def loop_that_never_runs(m, x):
    return times(0, lambda i, h: (h + 1, ), x * 1)


@case((3, 4))
def loop_until_small(m, x):
    return while_loop(lambda y: y.abs().max() > 0.1, lambda y: (y / 2, ), (x * 1, ))


@case((3, 4))
def loop_in_a_loop(m, x):

    def outer(i, y):
        return (times(3, lambda j, z: (z * 0.5 + j, ), y + i)[0], )

    return times(4, outer, x * 1)


@case((3, 4))
def branch_in_a_loop(m, x):

    def step(i, y):
        return (torch.cond(y.sum() > 0, lambda z: m.one(z), lambda z: z + 0.7, (y, )), )

    return times(6, step, x * 1)


@case((3, 4))
def loop_in_a_branch(m, x):
    return torch.cond(x.sum() > 0, lambda y: times(4, lambda i, z: (z.sin(), ), y)[0],
                      lambda y: y.cos(), (x, ))


@case((3, 4))
def loop_with_writes_inside(m, x):

    def step(i, y):
        y = y.clone()
        y[:, 0] = y[:, 1] * 2
        y.relu_()
        return (y + 0.1, )

    return times(4, step, x * 1)


@case((3, 4))
def loop_of_two_integers(m, x):
    return while_loop(lambda a, b: b > 0, lambda a, b: (b.clone(), a % b), (ZERO + 84, ZERO + 18))[0] + x


@case((3, 4))
def loop_that_reads_rows(m, x):
    return times(3, lambda i, total: (total + x.index_select(0, i.view(1))[0], ), x[0] * 1)


@case((3, 4))
def loop_over_a_symbolic_size(m, x):
    return while_loop(lambda i, y: i < x.shape[0], lambda i, y: (i + 1, y * 0.5 + x.sum()),
                      (torch.zeros((), dtype=torch.long), x * 1))


@case((3, 4))
def loop_of_half_precision(m, x):
    return times(5, lambda i, y: ((y * 1.1).sin(), ), x.bfloat16())


@case((2, 4, 5))
def loop_of_a_convolution(m, x):
    return times(3, lambda i, y: (F.relu(m.conv(y)) + x, ), x * 1)


@case((3, 4))
def loop_of_a_transposed_value(m, x):
    return times(3, lambda i, y: (y.t().exp().t().clamp(max=3), ), x * 1)


@case((4, 4))
def loop_that_writes_a_cache(m, x):

    def step(i, cache):
        return (cache.index_copy(0, i.view(1), m.one(cache.index_select(0, (i - 1).clamp(0).view(1)))), )

    return times(4, step, x * 1)


# ---- scan, map, associative_scan ----
@case((7, 2, 4))
def scan_of_layers(m, x):

    def step(h, now):
        h = torch.tanh(m.one(now) + m.two(h))
        return h, h + 1

    return scan(step, torch.zeros(2, 4), x, dim=0)


@case((12, 4))
def long_scan(m, x):
    return scan(lambda h, now: (h * 0.5 + now, (h - now).sin()), torch.zeros(4), x, dim=0)


@case((9, 3), (9, 2, 3))
def scan_of_a_tree(m, x, y):

    def step(carry, now):
        total = carry["total"] + now[0] + now[1].sum(0)
        return {"total": total, "most": torch.maximum(carry["most"], now[0])}, (total * 2, now[1] + 1)

    return scan(step, {"total": torch.zeros(3), "most": torch.full((3, ), -5.)}, (x, y), dim=0)


@case((9, 4))
def scan_with_nothing_out(m, x):
    return scan(lambda h, now: (h + now, now.sum()), torch.zeros(4), x, dim=0)[0]


@case((9, 3, 4))
def scan_in_a_scan(m, x):

    def outer(h, now):
        h2, ys = scan(lambda a, b: (a * 0.5 + b, a + b), h, now, dim=0)
        return h2 + 0, ys * 1

    return scan(outer, torch.zeros(4), x, dim=0)


@case((9, 4))
def loop_in_a_scan(m, x):
    return scan(lambda h, now: (times(3, lambda i, z: (z * 0.5 + 1, ), h + now)[0], now * 2),
                torch.zeros(4), x, dim=0)


@case((9, 4))
def scan_in_a_loop(m, x):
    return times(3, lambda i, h: (scan(lambda a, b: (a * 0.5 + b, a + b), h, x, dim=0)[0], ), torch.zeros(4))


@case((9, 4))
def branch_in_a_scan(m, x):

    def step(h, now):
        h = torch.cond(now.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, (h, now))
        return h, h * 2

    return scan(step, torch.zeros(4), x, dim=0)


@case((3, 9, 4))
def scan_over_the_second_dimension_backwards(m, x):
    return scan(lambda h, now: (h * 0.5 + now, h.exp()), torch.zeros(x.shape[0], 4), x, dim=1, reverse=True)


@case((9, 4))
def scan_with_in_place(m, x):

    def step(h, now):
        y = h.clone()
        y[1:].add_(now[1:])
        y.mul_(0.5)
        return y, y.sum()

    return scan(step, torch.zeros(4), x, dim=0)


@case((9, 4))
def scan_of_integers(m, x):
    return scan(lambda h, now: (h * 3 % 7 + now, (h > now)), torch.zeros(4, dtype=torch.long), (x * 3).long())


@case((9, 2, 4))
def map_of_layers(m, x):
    return map_rows(lambda row: (m.one(row).relu(), row.sum()), x)


@case((9, 4), (4, ))
def map_with_more(m, x, y):
    return map_rows(lambda row, other: row.softmax(0) * other, x, y)


@case((9, 3, 4))
def map_in_a_map(m, x):
    return map_rows(lambda row: map_rows(lambda r: r.cumsum(0), row), x)


@case((9, 4))
def branch_in_a_map(m, x):
    return map_rows(lambda row: torch.cond(row.sum() > 0, lambda r: r.sin(), lambda r: r.cos(), (row, )), x)


@case((9, 4))
def loop_in_a_map(m, x):
    return map_rows(lambda row: times(3, lambda i, z: (z.sin(), ), row * 1)[0], x)


@case((9, 4))
def map_that_transposes(m, x):
    return map_rows(lambda row: row.view(2, 2).t().exp(), x)


@case((9, 4))
def map_of_bodies_that_draw_nothing(m, x):
    return map_rows(lambda row: F.dropout(row, 0.5, training=False) + torch.arange(4), x)


@case((9, 4))
def associative_scan_of_a_pair(m, x):
    return associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x.sigmoid(), x), 0,
                            combine_mode="generic")


# ---- regions ----
@case((3, 4))
def autocast_in_a_loop(m, x):

    def step(i, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m.one(y)
        return (y.float() * 0.5, )

    return times(3, step, x * 1)


@case((3, 4))
def autocast_in_autocast(m, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = m.one(x)
        with torch.autocast("cpu", enabled=False):
            z = m.two(x)
        return y + m.one(z)


@case((3, 4))
def autocast_in_a_branch(m, x):

    def half(y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m.one(y).float()

    return torch.cond(x.sum() > 0, half, lambda y: y * 2, (x, ))


@case((3, 4))
def no_grad_in_a_loop(m, x):

    def step(i, y):
        with torch.no_grad():
            y = y * 2
        return (y.sin(), )

    return times(3, step, x * 1)


@case((3, 4))
def state_written_around_a_loop(m, x):
    m.seen.add_(1)
    y = times(3, lambda i, y: (y * 0.5, ), x * m.seen)[0]
    m.seen.mul_(2)
    return y + m.seen


@case((3, 4))
def state_read_in_a_loop_and_written_later(m, x):
    y = times(3, lambda i, y: (y * 0.5 + m.seen, ), x * 1)[0]
    m.seen.mul_(2)
    return y + m.seen


@case((3, 4))
def invoked_subgraph(m, x):
    part = torch.compiler.nested_compile_region(lambda y: m.one(y).sin())
    return part(part(x))


# ---- effects ----
@case((3, 4))
def printed(m, x):
    torch.ops.aten._print("a line")
    torch._higher_order_ops.print("x {}", x)
    return x + 1


@case((3, 4))
def solved(m, x):
    """Decomposed, each of these checks its input by a call with an effect."""
    near = x.transpose(0, 1) @ x + 9 * torch.eye(4)
    return torch.linalg.inv(near), torch.linalg.cholesky(near), torch.linalg.solve(near, x.transpose(0, 1))


@case((3, 4))
def asserted(m, x):
    torch._assert(bool(x.shape[0] > 1), "rows")
    torch.ops.aten._assert_async.msg((x < 100).all(), "large")
    return x + 1


# ---- vmap ----
@case((3, 4))
def mapped_over_weights(m, x):
    return torch.vmap(lambda row: torch.tanh(m.one(row)))(x)


@case((3, 4), (5, 4))
def mapped_pairs(m, x, y):
    return torch.func.vmap(lambda a: torch.func.vmap(lambda b: (a - b).norm())(y))(x)


def attempt(bench, module, first, second):
    """As Bench.try_export; PyTorch runs the exported program, without a compiler."""
    for program, sizes in exported(module, first, second):
        blob = io.BytesIO()
        torch.export.save(program, blob)
        bench.upload(blob.getvalue())
        forward = functools.partial(quiet, program.module())
        for inputs in sizes:
            bench.check(forward, inputs, list(program.graph_signature.user_inputs))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n", maxsplit=1)[0])
        return 2
    word = sys.argv[2] if len(sys.argv) == 3 else ""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    bench = Bench(sys.argv[1])
    tally = Tally()
    try:
        for name, (function, shapes, make) in CASES.items():
            if word not in name:
                continue
            torch.manual_seed(0)
            module = Calls(function).eval()
            first = tuple(make(shape) for shape in shapes)
            grown = {shape[0] for shape in shapes if shape[0] == shapes[0][0]}
            second = tuple(make((shape[0] + 1, *shape[1:]) if shape[0] in grown else shape)
                           for shape in shapes)
            try:
                attempt(bench, module, first, second)
                tally.ok()
            except Miss as miss:
                tally.bad(name, str(miss)[:600])
            except Exception as error:  # PyTorch's own
                tally.bad(f"{name}: PyTorch", f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        tally.check("the server's end", "\n".join(bench.server.stop()))
        bench.server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
