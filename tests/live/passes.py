# SPDX-License-Identifier: Apache-2.0
"""decompose and functionalise against torch.export: passes.py FXSERVE [WORD].

Needs torch 2.13. The same text as ExportedProgram.run_decompositions({}) gives for functionalise, and
run_decompositions() for decompose, and the outputs of the module. Each case is tried as an export, for
the text, and as a traced graph, whose result is run by PyTorch, for what inputs and buffers are
afterwards.

Texts are compared with names counted anew, because PyTorch counts nodes that it takes away later, and
without layout, device and pin_memory, which PyTorch adds to factories. What differs on purpose:
  parts put back (select_scatter, slice_scatter)   stay; PyTorch writes masks of arange for some of them
  dropout in eval mode                              is its argument; PyTorch copies
  views between a part and its base                 are read again; PyTorch makes them again
"""
import copy
import io
import json
import pathlib
import re
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from export_fx import import_fx
from rewriting import transform, with_data
from service import serving

FACTORY = re.compile(r"(, )?(layout|device|pin_memory): [\w.]+")


class Calls(nn.Module):
    """A function as a module, with a buffer and layers that some functions use."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("seen", torch.ones(4))
        self.linear, self.conv, self.norm = nn.Linear(4, 3), nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.rows = nn.LayerNorm(4)

    def forward(self, x):
        return self.function(self, x)


def written(x, write):
    y = x.clone()
    return write(y)


def through(m, x):
    y = x + 1
    y[0].mul_(2)
    return y


def chain(m, x):
    y = x.neg()
    y.t()[1].add_(1)
    return y, y.t()


def both_sides(m, x):
    a = x.relu()
    b = a.view(-1)
    a.mul_(2)
    b.add_(1)
    return a + b.view(4, 4)


def counted(m, x):
    m.seen.add_(x[0])
    return x * m.seen


def counted_twice(m, x):
    m.seen.add_(1)
    y = x * m.seen
    m.seen.mul_(2)
    return y + m.seen


def put_slice(m, x):
    y = x.neg()
    y[:, 1:3] = x[:, :2]
    return y


def put_number(m, x):
    y = x.neg()
    y[1] = 0.5
    return y


def diagonal(m, x):
    y = x.neg()
    y.diagonal().mul_(2)
    return y


def parts(m, x):
    y = x.neg()
    a, b = y.split(2)
    a.add_(b)
    return y


def rows_apart(m, x):
    y = x.neg()
    a, b, c, d = y.unbind(0)
    c.copy_(a)
    return y + d


def chained(m, x):
    return x.add_(1).mul_(2).relu_()


def unsqueezed(m, x):
    y = x.neg()
    y.unsqueeze(0).add_(1)
    return y


def squeezed(m, x):
    y = x.neg().view(1, 16)
    y.squeeze(0).add_(1)
    return y


def cast(m, x):
    y = x.neg()
    return y.add_(torch.ones(4, dtype=torch.float64))


def own_view(m, x):
    y = torch.einsum("ij,kj->ki", x, x)
    return y.add_(1) + y[0]


def swapped(m, x):
    y, z = x[:2], x[2:]
    kept = z.clone()
    z.copy_(y)
    y.copy_(kept)
    return x * 1


def copied_then_written(m, x):
    y = x.clone()
    y.copy_(x)
    x.add_(1)
    return y, x


def copied_from_view(m, x):
    m.seen.copy_(x[0])
    x.zero_()
    return m.seen + 1


def turned(m, x):
    y = x.neg()
    y.transpose_(0, 1)
    y[0].add_(x[1])
    return y, y.t()


def turned_by_name(m, x):
    y = x.neg()
    y.swapaxes_(0, 1)
    return y - x


def longer(m, x):
    y = x.view(4, 4)
    y.unsqueeze_(0).add_(1)
    return y, y.squeeze_() + x


def turned_apart(m, x):
    y = x.detach()
    y.t_()
    x.mul_(2)
    y[0].add_(1)
    return y, x + 1


SQUARE = (torch.arange(16.).view(4, 4) / 7 - 1,)
IMAGE = (torch.arange(36.).view(1, 1, 6, 6) / 17 - 1,)


def functional_cases():
    """(name, function, inputs, whether the text is PyTorch's)"""
    yield "nothing is written", lambda m, x: m.rows(x.sigmoid()) + 1, SQUARE, True
    yield "one write", lambda m, x: x.neg().add_(1), SQUARE, True
    yield "a chain of writes", lambda m, x: x.neg().add_(1).mul_(2).relu_(), SQUARE, True
    yield "an input is written", lambda m, x: x.mul_(2) + 1, SQUARE, True
    yield "an input is written by a chain", chained, SQUARE, True
    yield "a buffer is written", counted, SQUARE, True
    yield "a buffer is written twice", counted_twice, SQUARE, True
    yield "through select", through, SQUARE, True
    yield "through two views", chain, SQUARE, False
    yield "a view and its base", both_sides, SQUARE, True
    yield "a slice is put", put_slice, SQUARE, True
    yield "a number is put", put_number, SQUARE, False
    yield "the diagonal", diagonal, SQUARE, True
    yield "parts of split", parts, SQUARE, False
    yield "rows of unbind", rows_apart, SQUARE, False
    yield "through unsqueeze", unsqueezed, SQUARE, True
    yield "through squeeze", squeezed, SQUARE, False
    yield "a view of what a composite made", own_view, SQUARE, False
    yield "another dtype is added", cast, SQUARE, False
    yield "halves change places", swapped, SQUARE, False
    yield "an input is copied and written later", copied_then_written, SQUARE, False
    yield "a view of an input is copied and written later", copied_from_view, SQUARE, False
    yield "transposed in place", turned, SQUARE, False
    yield "transposed in place by another name", turned_by_name, SQUARE, False
    yield "unsqueezed in place", longer, SQUARE, False
    yield "one of two names is transposed in place", turned_apart, SQUARE, False
    yield "fill and zero", lambda m, x: written(x, lambda y: y.fill_(2)) + written(x, torch.zero_), SQUARE, \
        True
    yield "activations in place", lambda m, x: F.relu(F.silu(x.neg(), inplace=True), inplace=True), SQUARE, \
        True
    yield "convolution and norm", lambda m, x: m.norm(m.conv(x)).relu_(), IMAGE, True


def decomposed_cases():
    yield "linear", lambda m, x: m.linear(x), SQUARE, True
    yield "linear of rank three", lambda m, x: m.linear(x.view(2, 2, 4)), SQUARE, True
    yield "linear by a vector", lambda m, x: F.linear(x, x[0]) + F.linear(x[0], x[1]), SQUARE, False
    yield "activations", lambda m, x: F.silu(x) + F.hardswish(x) + F.gelu(x) + F.mish(x), SQUARE, True
    yield "more activations", lambda m, x: F.softplus(x) + F.relu6(x) + F.selu(x) + F.hardsigmoid(x), \
        SQUARE, True
    yield "shrinking", lambda m, x: F.softshrink(x) + F.hardshrink(x) + F.logsigmoid(x), SQUARE, True
    yield "glu", lambda m, x: F.glu(x), SQUARE, True
    yield "softmax", lambda m, x: x.softmax(-1) + F.log_softmax(x, 0), SQUARE, True
    yield "layer norm", lambda m, x: m.rows(x), SQUARE, True
    yield "convolution and norm", lambda m, x: m.norm(m.conv(x)).relu(), IMAGE, True
    yield "pooling", lambda m, x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2) + F.adaptive_avg_pool2d(x, 1), \
        IMAGE, True
    yield "products", lambda m, x: x @ x.t() + torch.matmul(x, x[0]).unsqueeze(0), SQUARE, True
    yield "products of batches", lambda m, x: torch.matmul(x.view(2, 2, 4), x.view(2, 4, 2)), SQUARE, True
    yield "transposed views", lambda m, x: x.transpose(0, 1) + x.t() + x.mT + x.movedim(0, 1), SQUARE, True
    yield "split", lambda m, x: x.split(2)[1] + x.chunk(2)[0], SQUARE, True
    yield "unbind and stack", lambda m, x: torch.stack(x.unbind(0)[:2]) + torch.stack([x[0], x[1]]), \
        SQUARE, True
    yield "reductions", lambda m, x: x.std() + x.var(0).sum() + x.mean(1).sum(), SQUARE, True
    yield "conditions", lambda m, x: x.masked_fill(x > 0, 0.5) + x.clamp_min(0), SQUARE, True
    yield "triangles", lambda m, x: x.tril() + x.triu(1), SQUARE, True
    yield "factories", lambda m, x: x + torch.zeros(4) + torch.ones_like(x) + torch.arange(4), SQUARE, True
    yield "names", lambda m, x: torch.square(x) + torch.rsub(x, 2) + torch.special.expit(x), SQUARE, True
    yield "addcmul", lambda m, x: torch.addcmul(x, x, x, value=2) + torch.addcdiv(x, x, x + 5), SQUARE, True
    yield "a buffer is written", counted, SQUARE, True
    yield "an input is written by a chain", chained, SQUARE, True
    yield "losses", lambda m, x: F.mse_loss(x, x * 2) + F.l1_loss(x, x + 1), SQUARE, False
    yield "attention", lambda m, x: F.scaled_dot_product_attention(*[x.view(1, 2, 2, 4)] * 3), SQUARE, False


# ---- the two sides -----------------------------------------------------------------------------


def counted_anew(text):
    """The text of a graph with calls named after what they call, in order, and factories as short as ours."""
    names, counts = {}, {}
    for name in re.findall(r"^    %(\w+) : \[num_users=\d+\] = (?!placeholder)", text, re.M):
        base = re.sub(r"_\d+$", "", name)
        counts[base] = counts.get(base, -1) + 1
        names[name] = f"{base}_{counts[base]}"
    text = re.sub(r"(?<![\w.\[=])(%?)(\w+)", lambda m: m[1] + names.get(m[2], m[2]), text)
    return "\n".join(FACTORY.sub("", line).replace("{, ", "{") for line in text.splitlines()
                     if "= placeholder" not in line)


def bytes_of(program):
    data = io.BytesIO()
    torch.export.save(program, data)
    return data.getvalue()


def as_text(server, tally, label, program, kind, same):
    reply = server.call("PUT", "/v1/graphs/e", bytes_of(program))
    if reply.status not in (200, 201):
        tally.bad(label, reply.short())
        return
    body = json.dumps({"steps": [{"pass": kind}], "store_as": "made"}).encode()
    reply = server.call("POST", "/v1/graphs/e/transform", body)
    if reply.status != 201:
        tally.bad(label, reply.short())
        return
    theirs = program.run_decompositions({} if kind == "functionalise" else None)
    got = counted_anew(server.call("GET", "/v1/graphs/made/text?form=graph").body.decode())
    want = counted_anew(str(theirs.graph) + "\n")
    tally.check(f"{label}: text", "" if got == want or not same else f"{got}\n  PyTorch has\n  {want}")
    inputs = [x.tolist() for x in program.example_inputs[0]]
    body = json.dumps({"inputs": inputs, "encoding": "list"}).encode()
    reply = server.call("POST", "/v1/graphs/made/run", body)
    if reply.status != 200:
        tally.bad(f"{label}: run", reply.short())
        return
    want = program.module()(*copy.deepcopy(program.example_inputs[0]))
    close(tally, f"{label}: run", outputs_of(reply), flat(want))


def outputs_of(reply):
    return [torch.tensor(entry["data"]).reshape(entry["shape"]) for entry in reply.json()["outputs"]]


def flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def close(tally, label, got, want):
    try:
        torch.testing.assert_close(got, want, check_dtype=False, rtol=1e-5, atol=1e-5)
        tally.check(label, "")
    except AssertionError as error:
        tally.bad(label, str(error))


def as_traced(server, tally, label, module, inputs, kind):
    try:
        gm = fx.symbolic_trace(module)
    except (TypeError, fx.proxy.TraceError):  # x[0] = 1 and loops over tensors cannot be traced
        return
    shapes = {node.target: list(x.shape) for node, x in zip(gm.graph.find_nodes(op="placeholder"), inputs)}
    reply = transform(server, gm, [{"pass": kind, "shapes": shapes}] * 2)
    if reply.status != 200:
        tally.bad(f"{label}: traced", reply.short())
        return
    again = reply.json()["steps"][1]
    tally.check(f"{label}: again", str(again) if again["changed"] or again["erased"] else "")
    made = import_fx(with_data(reply.json()["graph"]))
    made.load_state_dict(gm.state_dict(), strict=False)
    ours, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    results = flat(made(*ours)), flat(gm(*theirs))
    close(tally, f"{label}: traced", [*results[0], *ours], [*results[1], *theirs])
    if hasattr(gm, "seen"):
        close(tally, f"{label}: buffer", [made.seen], [gm.seen])


def check_case(server, tally, kind, case):
    name, function, inputs, same = case
    label = f"{kind}: {name}"
    module = Calls(function).eval()
    program = torch.export.export(module, inputs)
    as_text(server, tally, label, program, kind, same)
    as_traced(server, tally, label, module, inputs, kind)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n", maxsplit=1)[0])
        return 2
    word = sys.argv[2] if len(sys.argv) == 3 else ""
    torch.manual_seed(0)
    with serving(sys.argv[1]) as (server, tally):
        for kind, cases in (("functionalise", functional_cases()), ("decompose", decomposed_cases())):
            for case in cases:
                if word in f"{kind}: {case[0]}":
                    check_case(server, tally, kind, case)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
