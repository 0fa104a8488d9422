# SPDX-License-Identifier: Apache-2.0
"""Conjugates as views against PyTorch: conjugates.py FXSERVE [NAME ...].

Needs torch 2.13. torch.conj, Tensor.mH and the imaginary part of a conjugate share the bytes of their
base (PyTorch's conj and neg bits). Each graph writes to one of them, or reads it in another way, and
must give PyTorch's numbers eagerly and compiled; so must each node that is asked for by name.
"""
import json
import operator
import pathlib
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from drawing import MODES, Drawing
from modules import received
from service import serving

get, put = operator.getitem, operator.setitem
VALUES = torch.tensor([[1 + 2j, 3 - 4j, 0.5j], [2 - 1j, -1 - 1j, 4 + 0j]])
ROW = torch.tensor([1 + 1j, 2 - 2j, 3 + 3j])


def base(g):
    """A tensor that the graph may write to, and its conjugate."""
    x = g("clone", g.input(VALUES))
    return x, g("conj", x)


def parts_of(g, x):
    return g(torch.real, x), g(torch.imag, x)


def base_is_written(g):
    x, c = base(g)
    g("mul_", x, 2)
    return c, x


def input_is_written(g):
    x = g.input(VALUES)
    c = g(torch.ops.aten._conj.default, x)
    g("mul_", x, 2j)
    return c, x


def conjugate_is_written(g):
    x, c = base(g)
    return g("mul_", c, 2j), c, x


def view_is_written(g):
    x, c = base(g)
    row = g(get, c, 0)
    g("add_", row, 1 + 3j)
    return c, x, row


def items_are_set(g):
    x, c = base(g)
    g(put, c, (0, 1), 5 + 7j)
    g(put, x, 1, g(get, c, 0))
    g(put, c, g("lt", g(torch.imag, c), 0), 1 - 5j)
    return c, x


def parts(g):
    x, c = base(g)
    real, imag = parts_of(g, c)
    g("add_", imag, 10)
    g("mul_", real, 3)
    return (c, x, imag, real, g("is_neg", imag), g("is_conj", c), g("is_conj", x), g("is_neg", real),
            g("resolve_neg", imag))


def parts_as_attributes(g):
    x, c = base(g)
    imag, real = g(getattr, c, "imag"), g(getattr, c, "real")
    g("exp_", imag)
    g("mul_", real, 3)
    return c, x, imag, real


def imaginary_part_is_written(g):
    x, c = base(g)
    imag = g(torch.imag, c)
    g(put, imag, 0, g.input(torch.tensor([7, 8, 9])))
    g("fill_", g(get, imag, 1), 4)
    g("relu_", imag)
    return imag, x, g("sum", imag), g(operator.neg, imag), g("gt", imag, 0), g("to", imag, torch.int64)


def adjoints(g):
    x, _ = base(g)
    h = g(getattr, x, "mH")
    g("mul_", x, 1 + 1j)
    product = g(torch.matmul, x, h)
    g("add_", h, 1j)
    a = g("adjoint", x)
    g("sub_", a, 1)
    return h, x, product, g("is_conj", h), a, g(getattr, a, "H"), g("adjoint", a)


def negatives(g):
    """What exports of imag and mH call, and neg bits of complex and real tensors."""
    x, c = base(g)
    n = g(torch.ops.aten._neg_view.default, x)
    both = g(torch.ops.aten._neg_view.default, c)
    imag = g(torch.ops.aten._neg_view.default, g(torch.imag, x))
    pairs = g(torch.ops.aten._neg_view.default, g(torch.view_as_real, x))
    g("mul_", n, 1 + 1j)
    g("add_", both, 2j)
    g("add_", g(torch.imag, both), 1)
    g("mul_", g(get, imag, 0), 3)
    g("sub_", g(get, pairs, 1), 4)
    again = g(torch.ops.aten._neg_view.default, both)
    return (x, c, n, both, imag, pairs, again, g("is_neg", n), g("is_neg", again), g("is_conj", both),
            g(torch.view_as_complex, pairs), g(torch.view_as_real, n), g(torch.real, both),
            g(torch.matmul, x, g("t", n)))


def adjoints_of_exports(g):
    x, _ = base(g)
    h = g(torch.ops.aten.mH.default, x)
    g("mul_", h, 2j)
    again = g(torch.ops.aten.matrix_H.default, h)
    g("add_", g(torch.ops.aten.matrix_H.default, g(torch.real, x)), 1)
    return x, h, again, g("is_conj", h), g(torch.ops.aten.mH.default, g(torch.imag, h))


def twice(g):
    x, c = base(g)
    again = g("conj", c)
    g("mul_", again, 1 + 1j)
    return again, c, x, g("is_conj", again)


def resolved(g):
    x, c = base(g)
    r = g("resolve_conj", c)
    g("mul_", x, 1 + 1j)
    return r, c, x, g("is_conj", r), g("resolve_conj", x)


def physical(g):
    x, c = base(g)
    p = g("conj_physical", c)
    g("mul_", x, 1 + 1j)
    g("conj_physical_", c)
    return c, x, p, g("is_conj", p)


def copies(g):
    x, c = base(g)
    g("copy_", x, c)
    g("copy_", c, x)
    k = g("clone", c)
    other = g("conj", g("clone", k))
    g("copy_", c, other)
    g("copy_", g(torch.imag, c), g(torch.imag, other))
    g("zero_", x)
    return c, x, k, other, g("is_conj", k)


def both_in_one_call(g):
    x, c = base(g)
    y = g(operator.iadd, c, x)
    z = g(operator.imul, c, c)
    return c, x, y, z, g(operator.add, c, x), g(operator.mul, x, c)


def views(g):
    x, c = base(g)
    flat, turned = g("view", c, 3, 2), g("reshape", g("t", c), 6)
    wide, cut = g("expand", c, 2, 2, 3), g("split", c, 1, 1)
    first = g(get, cut, 0)
    g("mul_", x, 2j)
    g("add_", flat, 1)
    g("mul_", first, 1 + 1j)
    return (x, c, flat, turned, wide, first, g(get, g("unbind", c), 1), g("diagonal", c), g("flip", c, [0]),
            g("as_strided", c, (2,), (1,)), g("contiguous", wide), g("chunk", c, 2), g("is_conj", first))


def moved_in_place(g):
    x, c = base(g)
    g("unsqueeze_", c, 0)
    g("mul_", x, 2j)
    g("t_", g("squeeze_", c, 0))
    return c, x


def read_by_operators(g):
    x, c = base(g)
    return (g("sum", c), g("abs", c), g("angle", c), g(torch.cat, [c, x]), g(torch.stack, [x, c]),
            g(torch.view_as_real, g("resolve_conj", c)), g("to", c, torch.complex128), g("neg", c),
            g(torch.where, g("ge", g(torch.real, x), 1), c, x), g("exp", c), g(torch.zeros_like, c),
            g(torch.broadcast_tensors, c, x), [c, {"a": c}])


def numbers(g):
    x, c = base(g)
    v, i = g("item", g(get, c, (0, 1))), g("item", g(torch.imag, g(get, c, (0, 0))))
    listed = g(get, g(get, g("tolist", c), 0), 1)
    return (g(operator.mul, x, v), g(operator.add, g(torch.real, x), i), g(operator.mul, x, listed),
            g("tolist", g(torch.imag, c)))


def number_then_write(g):
    x, c = base(g)
    g("mul_", x, g("item", g(get, c, (0, 1))))
    return c, x


def tail_writes(g):
    x, c = base(g)
    g("mul_", x, 2)
    z = g(torch.zeros, g("size", g("nonzero", g(torch.real, x)), 0))
    g("mul_", c, 1j)
    return c, x, z, g("masked_select", c, g("gt", g(torch.imag, c), 0))


def indices(g):
    x, c = base(g)
    at, row = g.input(torch.tensor([1, 0])), g.input(ROW)
    g("index_put_", c, [at], row)
    g("index_add_", c, 0, g(get, at, slice(0, 1)), g("conj", g("unsqueeze", row, 0)))
    g("masked_fill_", c, g("gt", g(torch.imag, c), 0), 9 + 1j)
    return c, x


def seen_as_real(g):
    x, _ = base(g)
    pairs = g(torch.view_as_real, x)
    z = g(torch.view_as_complex, pairs)
    g("mul_", g("conj", z), 2j)
    g(torch.nn.functional.relu, pairs, True)
    return x, pairs, z


def transforms(g):
    f = g(torch.fft.fft, g.input(torch.arange(6.0)))
    c = g("conj", f)
    power = g(operator.mul, f, c)
    g("mul_", f, 2)
    return c, power, g(torch.fft.ifft, c), g(torch.vdot, f, c), g(torch.dot, f, c)


def casts(g):
    x, c = base(g)
    imag = g(torch.imag, c)
    return (g("half", imag), g("double", imag), g("to", c, torch.complex64), g("softmax", imag, 0),
            g("matmul", imag, g("t", imag)), g("to", imag, torch.float32))


def handed_back(g):
    x, c = base(g)
    imag = g(torch.imag, c)
    same = [g(torch.nn.functional.dropout, c, 0.5, False), g(torch.feature_dropout, imag, 0.5, False),
            g(torch.atleast_1d, c), g(torch.atleast_3d, imag),
            g(torch.ops.aten._unsafe_view.default, c, (6,)), g(torch.conj_physical, imag),
            g(torch.einsum, "ij->ji", c)]
    for value in same:
        g("mul_", value, 3)
    drawn = g(torch.dropout, imag, 0.5, True)
    return (*same, g(torch.atleast_2d, c), g("is_conj", same[0]), c, x, drawn)


def handed_back_by_operators(g):
    """What exports call; a single matrix of chain_matmul is copied, a conjugate or not."""
    aten = torch.ops.aten
    x, c = base(g)
    imag, row = g(torch.imag, c), g(get, c, 0)
    same = [g(aten.alpha_dropout.default, c, 0.5, False),
            g(aten.feature_alpha_dropout.default, imag, 0.5, False),
            *(g(get, g(function, [value, value]), 1) for function, value in (
                (aten.broadcast_tensors.default, c), (aten.broadcast_tensors.default, imag),
                (aten.meshgrid.default, row), (aten.atleast_1d.Sequence, c))),
            g(get, g(aten.meshgrid.indexing, [row], indexing="xy"), 0), g(aten.cartesian_prod.default, [row]),
            g(aten.chain_matmul.default, [c]), g(aten.chain_matmul.default, [x])]
    for at, value in enumerate(same):
        if at != 4:  # PyTorch writes to no expanded tensor
            g("mul_", value, 3)
    return (*same, c, x)


def inner_products(g):
    """PyTorch computes some of the bases, and hands back a conjugate."""
    x, c = base(g)
    made = []
    for function in (torch.dot, torch.vdot, torch.inner, torch.matmul, torch.linalg.vecdot):
        for left, right in ((x, x), (c, x), (x, c), (c, c)):
            made.append(g(function, g(get, left, 0), g(get, right, 1)))
    for left, right in ((x, x), (c, x), (x, c), (c, c)):
        made += [g(torch.tensordot, left, right, 2), g(torch.inner, left, right),
                 g(torch.tensordot, left, right, ([0], [0]))]
    negative = g(torch.ops.aten._neg_view.default, c)
    made.append(g(torch.dot, g(get, negative, 0), g(get, c, 1)))
    made.append(g(torch.vdot, g(get, x, 1), g(get, negative, 0)))
    return (*made, *(g("is_conj", value) for value in made))


def running_statistics(g):
    x, _ = base(g)
    normed = g.input(torch.arange(30.0).reshape(2, 3, 5).sin())
    results = []
    for norm, flag in ((torch.nn.functional.instance_norm, "use_input_stats"),
                       (torch.nn.functional.batch_norm, "training")):
        mean, var = g(get, g(torch.imag, g("conj", x)), 0), g(torch.ones, 3)
        results += [g(norm, normed, mean, var, **{flag: True}), mean, var]
    return (*results, x)


def square(z):
    return z * z


def conjugate(z):
    return z.conj()


def child_graphs(g):
    x, c = base(g)
    g.root.square = torch.fx.symbolic_trace(square)
    g.root.conjugate = torch.fx.symbolic_trace(conjugate)
    shared = g.graph.call_module("conjugate", (x,))
    g("mul_", x, 1 + 1j)
    return c, x, shared, g.graph.call_module("square", (c,)), g.graph.call_module("conjugate", (c,))


def written(z):
    z.mul_(2j)
    return (z + 1,)


def left(z):
    return (z,)


def branches(g, function, predicate, x, c):
    g.root.written, g.root.left = torch.fx.symbolic_trace(written), torch.fx.symbolic_trace(left)
    made = g(function, predicate, g.graph.get_attr("written"), g.graph.get_attr("left"), (c,))
    return g(get, made, 0), x, c


def branches_of_constants(g):
    """What a branch that a constant chooses writes shows in the base, and so does its view."""
    x, c = base(g)
    one = branches(g, torch.cond, True, x, c)[0]
    other = branches(g, torch.cond, False, x, c)[0]
    g("add_", x, 1j)
    return one, other, c, x


def refused_branches(g):
    """PyTorch has no kernel for them; what the branch writes to a copy would be lost."""
    x, c = base(g)
    return branches(g, torch.ops.higher_order.cond, g("gt", g("sum", g(torch.real, x)), 0), x, c)


GRAPHS = (base_is_written, input_is_written, conjugate_is_written, view_is_written, items_are_set, parts,
          parts_as_attributes, imaginary_part_is_written, adjoints, negatives, adjoints_of_exports, twice,
          resolved, physical, copies, both_in_one_call, views, moved_in_place, read_by_operators, numbers,
          number_then_write, tail_writes, indices, seen_as_real, transforms, casts, running_statistics,
          handed_back, handed_back_by_operators, inner_products, child_graphs, branches_of_constants)


def plain(value):
    if not isinstance(value, torch.Tensor):
        return value
    value = value.resolve_conj().resolve_neg()
    return torch.view_as_real(value) if value.is_complex() else value


def unlike(got, want):
    got, want = plain(got), plain(want)
    if not isinstance(want, torch.Tensor):
        return "" if got == want else f"{got!r}, PyTorch has {want!r}"
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return ""


def problem_of(server, drawing, mode):
    want, _ = drawing.want(0)
    body = drawing.body(0, mode)
    reply = server.call("POST", "/v1/run", body)
    if reply.status != 200:
        return reply.short()
    got = [received(entry) for entry in reply.json()["outputs"]]
    for at, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if words := unlike(ours, theirs):
            return f"result {at}: {words}"
    return named_problem(server, drawing, body)


def named_problem(server, drawing, body):
    """The conjugate asked for by its name has the numbers of the end of the run."""
    node = next((node for node in drawing.graph.nodes if node.name == "conj"), None)
    if node is None:
        return ""
    outputs = drawing.graph.output_node().args[0]
    reply = server.call("POST", "/v1/run", json.dumps(json.loads(body) | {"outputs": ["conj"]}).encode())
    at = [i for i, made in enumerate(outputs) if made is node]
    if reply.status != 200 or not at:
        return "" if reply.status == 200 else reply.short()
    with torch.no_grad():
        want = drawing.module(*(tensor.clone() for tensor in drawing.inputs))[at[0]]
    return unlike(received(reply.json()["outputs"][0]), want)


def refusal_problem(server, build):
    drawing = Drawing()
    drawing.close(build(drawing))
    try:
        drawing.want(0)
        return "PyTorch runs it"
    except NotImplementedError:
        pass
    replies = [server.call("POST", "/v1/run", drawing.body(0, mode)) for mode in MODES]
    return "; ".join(reply.short() for reply in replies
                     if reply.status != 422 or "takes no conjugates" not in reply.json()["error"])


def main():
    with serving(sys.argv[1]) as (server, tally):
        tally.check(refused_branches.__name__, refusal_problem(server, refused_branches))
        for build in GRAPHS:
            if len(sys.argv) > 2 and build.__name__ not in sys.argv[2:]:
                continue
            drawing = Drawing()
            drawing.close(build(drawing))
            problems = [f"{mode}: {problem}" for mode in MODES
                        if (problem := problem_of(server, drawing, mode))]
            tally.check(build.__name__, "; ".join(problems))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
