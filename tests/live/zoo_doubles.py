# SPDX-License-Identifier: Apache-2.0
"""The second rule of zoo.py, for outputs that miss the tolerance because float32 itself is that rough.

PyTorch runs the same graph in float64, with the random numbers of float32. An output of float32 that
misses may be no further from those numbers than twice what PyTorch's own float32 is, each by its
largest difference. PyTorch computes in float32 with oneDNN and without; the rougher of the two counts,
for the smoother one may be so by chance. It has to be within 1 % of the output's largest value: beyond
that a comparison has flipped, which is no rounding. Outputs of other dtypes have no second rule.

A model with such a comparison, say between scores that are nearly equal, is exported, run and compared
in float64 instead, where float32's tolerance leaves room for no flip.
"""

import contextlib
import copy

import torch
from compare import values_problem
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

TIMES = 2.0
ROUNDING = 1e-2


def widened(leaf):
    if isinstance(leaf, torch.Tensor):
        return leaf.double() if leaf.dtype == torch.float32 else leaf
    return torch.float64 if leaf is torch.float32 else leaf


def narrowed(leaf):
    return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64 else leaf


@contextlib.contextmanager
def usual_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Doubles(TorchDispatchMode):
    """Operators compute in float64 where they would in float32. Random numbers are drawn as float32."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded not in operator.tags:
            args, kwargs = pytree.tree_map(widened, (args, kwargs or {}))
            return operator(*args, **kwargs)
        drawn_args, kwargs = pytree.tree_map(narrowed, (args, kwargs or {}))
        with usual_dtype(torch.float32):
            drawn = operator(*drawn_args, **kwargs)
        return args[0].copy_(drawn) if operator._schema.is_mutable else pytree.tree_map(widened, drawn)


def in_doubles(module, inputs):
    """The tensors that `module` gives in float64, with the seed of Bench.check()."""
    module, inputs = copy.deepcopy(module).double(), pytree.tree_map(widened, inputs)
    torch.manual_seed(0)
    with usual_dtype(torch.float64), Doubles():
        return [leaf for leaf in pytree.tree_leaves(module(*inputs)) if isinstance(leaf, torch.Tensor)]


def without_onednn(module, inputs):
    """The tensors that `module` gives in float32 without oneDNN, with the seed of Bench.check()."""
    torch.manual_seed(0)
    with torch.backends.mkldnn.flags(enabled=False):
        outputs = copy.deepcopy(module)(*copy.deepcopy(inputs))
    return [leaf.detach() for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]


def not_finite(tensor):
    return tensor.double().masked_fill(tensor.isfinite(), 0.0)


def comparable(ours, theirs, exact):
    """Whether three outputs are float32, float32 and float64 of one shape, and not finite alike."""
    return ((ours.dtype, theirs.dtype, exact.dtype) == (torch.float32, torch.float32, torch.float64)
            and ours.shape == theirs.shape == exact.shape and bool(exact.isfinite().any()) and all(
                torch.allclose(not_finite(one), not_finite(exact), equal_nan=True) for one in (ours, theirs)))


def distance(one, exact):
    return (one.double() - exact)[exact.isfinite()].abs().max().item()


def second_rule(got, want, again, exact):
    """(why the outputs differ by this rule, too, or None; the differences that it allows, in words)

    `again` are PyTorch's outputs without oneDNN."""
    if not len(got) == len(want) == len(again) == len(exact):
        return (f"{len(got)} outputs, expected {len(want)}, {len(again)} without oneDNN, "
                f"and {len(exact)} in float64", "")
    allowed = []
    for index, (ours, theirs, other, best) in enumerate(zip(got, want, again, exact)):
        problem = values_problem([ours], [theirs])
        if not problem:
            continue
        problem = problem.replace("output 0", f"output {index}")
        if not comparable(ours, theirs, best):
            return problem, ""
        roughest = max(distance(one, best) for one in (theirs, other) if comparable(ours, one, best))
        errors = distance(ours, best), roughest
        problem += f", errors against float64: {errors[0]:.3g}, PyTorch's {errors[1]:.3g}"
        largest = max(1.0, best[best.isfinite()].abs().max().item())
        if errors[0] > TIMES * errors[1] or errors[1] > ROUNDING * largest:
            return problem, ""
        allowed.append(problem)
    return None, "; ".join(allowed)


def flips(got, want, exact):
    """Whether outputs of the right shapes differ where PyTorch's own float32 is further from float64 than
    rounding explains."""
    if [(one.dtype, one.shape) for one in got] != [(one.dtype, one.shape) for one in want]:
        return False
    pairs = [(theirs, best) for ours, theirs, best in zip(got, want, exact) if comparable(ours, theirs, best)]
    largest = [max(1.0, best[best.isfinite()].abs().max().item()) for _, best in pairs]
    return any(distance(*pair) > ROUNDING * value for pair, value in zip(pairs, largest))


def of_doubles(module, *inputs):
    """The module and its inputs in float64."""
    return copy.deepcopy(module).double(), *(pytree.tree_map(widened, leaves) for leaves in inputs)


class Rough(torch.nn.Module):
    """Loses most of float32's digits, with random numbers; the second output is exact."""

    def forward(self, x):
        drawn = torch.rand_like(x) + torch.rand(x.shape, dtype=torch.float32) + 1
        return (drawn + 3e4) - 3e4, (x > 0).int()


def rule_problems():
    """What second_rule() judges wrongly: it is tried on a rough function, and errors made for it."""
    x = torch.linspace(-1, 1, 101)
    exact = in_doubles(Rough(), (x, ))
    torch.manual_seed(0)
    want = list(Rough()(x))
    error = distance(want[0], exact[0])

    def judged(factor, add=0):
        shifted = (exact[0] + factor * error * (exact[0] == exact[0].max())).float()
        return second_rule([shifted, want[1] + add], want, want, exact)[0] is None

    far = [want[0] * 2, want[1]]  # PyTorch itself as far off as ours: a flipped comparison
    third = [(exact[0] + 3 * error * (exact[0] == exact[0].max())).float(), want[1]]
    tries = {
        "PyTorch's own": second_rule(want, want, want, exact)[0] is None, "1.9 times": judged(1.9),
        "float64 with the same random numbers": 1e-4 < error < 1e-2,
        "2.1 times": not judged(2.1), "another integer": not judged(0, add=1),
        "not a number": not judged(float("nan")), "infinite": not judged(float("inf")),
        "beyond rounding": second_rule([far[0] * 1.5, far[1]], far, far, exact)[0] is not None,
        "3 times, as without oneDNN": second_rule(third, want, third, exact)[0] is None,
        "a flip": flips(want, far, exact), "no flip": not flips(want, want, exact),
        "another shape": not flips([want[0][1:], want[1]], far, exact)
    }
    return [name for name, right in tries.items() if not right]
