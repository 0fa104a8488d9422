# SPDX-License-Identifier: Apache-2.0
"""The Python client against a server and PyTorch: client.py FXSERVE.

Needs torch 2.13, numpy and safetensors. Every model of client_models.py goes through `push` and is
called at a batch size that the export did not see; a part of them, and all that torch.export
refuses, through the backend of torch.compile. The last line is `N passed, N failed`.
"""
import argparse
import contextlib
import copy
import io
import logging
import pathlib
import sys
import time
import warnings

import numpy
import safetensors.torch
import torch
from torch.utils import _pytree as pytree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "tests" / "service")]

import fxserve
import fxserve.export_fx
import fxserve.samples
from client_models import BROKEN, FUNCTIONS, LAYERS, MODELS
from service import Server, Tally

COMPILED = {name: row for part, most in ((LAYERS, 14), (FUNCTIONS, 12))
            for name, row in list(part.items())[:most]}


def close(got, want):
    """Same structure and dtypes (numpy has no bfloat16), values within 1e-4."""
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want), f"{len(got)} results, PyTorch has {len(want)}"
    for one, other in zip(got, want):
        if isinstance(one, numpy.ndarray):
            one = torch.from_numpy(one)
            other = other.float() if other.dtype == torch.bfloat16 else other
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)


def made(row):
    torch.manual_seed(1)
    return row[0]().eval()


def pushed(client, name):
    row = MODELS[name]
    model, printed = made(row), io.StringIO()
    with contextlib.redirect_stdout(printed):
        info = fxserve.push(name, model, row[1](2), client=client)
    assert "largest error" in printed.getvalue() and set(info["error"]) == {"eager", "compiled"}
    assert max(info["error"].values()) < 1e-4, info["error"]
    args = row[1](3)
    with torch.no_grad():
        close(client.call(name, *args), model(*args))


def compiled(client, name, cut):
    torch._dynamo.reset()
    row, backend = (MODELS | BROKEN)[name], fxserve.backend(client.url)
    ours, theirs = made(row), made(row)
    run = torch.compile(ours, backend=backend)
    for n in (2, 3, 2):
        for sign in (1, -1):
            args = pytree.tree_map(lambda leaf: leaf * sign if leaf.is_floating_point() else leaf, row[1](n))
            with torch.no_grad():
                close(run(*copy.deepcopy(args)), theirs(*copy.deepcopy(args)))
    for mine, other in zip(ours.buffers(), theirs.buffers()):
        close(mine, other)
    used = [graph for graph in backend.graphs if graph.name is not None]
    assert used, "nothing ran on the server"
    if cut:
        assert len(used) > 1 or torch._dynamo.utils.counters["graph_break"], "the model was not cut"
    elif any(graph.state for graph in used) and not list(ours.buffers()):
        assert all(graph.uploads == 1 for graph in used), [graph.uploads for graph in used]


def changed_parameters(client):
    """A parameter that was written to since is uploaded again; the old results would be wrong."""
    torch._dynamo.reset()
    backend, layer, x = fxserve.backend(client.url), torch.nn.Linear(4, 2), torch.randn(3, 4)
    run = torch.compile(layer, backend=backend)
    with torch.no_grad():
        close(run(x), layer(x))
        layer.weight.mul_(3)
        close(run(x), layer(x))
        layer.weight.data = torch.randn(2, 4)
        close(run(x), layer(x))
        layer.weight.data.add_(0.5)  # which PyTorch does not count
        close(run(x), layer(x))
    assert [graph.uploads for graph in backend.graphs] == [4], [g.uploads for g in backend.graphs]


def refused(kind, words, function, *args, **options):
    """The call raises an error of this type that says these words."""
    try:
        function(*args, **options)
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")


def gradients(client):
    torch._dynamo.reset()
    run = torch.compile(torch.nn.Linear(4, 2), backend=fxserve.backend(client.url))
    try:
        run(torch.randn(3, 4))
    except Exception as error:
        assert "torch.no_grad" in str(error), error
    else:
        raise AssertionError("a graph with gradients was taken")


def options(client):
    """Overrides, names, modes, the table of a profile, and errors."""
    x = numpy.random.rand(2, 6).astype("float32")
    plain = client.call("mlp", x)
    rule = {"match": {"target": "torch.relu"}, "retarget": "torch.sigmoid"}
    assert not numpy.allclose(plain, client.call("mlp", x, overrides=[rule]))
    assert (client.call("mlp", input=x, mode="eager") - plain < 1e-5).all()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert client.profile("mlp")
    assert "linear" in printed.getvalue(), printed.getvalue()
    try:
        client.call("mlp", x[:, :5])
    except fxserve.Error as error:
        assert (error.status, error.code) == (400, "shape_mismatch"), (error.status, error.code)
    else:
        raise AssertionError("an input of another size was taken")


def within(client):
    """Precisions by name, and within a tolerance where samples came along."""
    x = torch.randn(2, 384)
    model = torch.nn.Sequential(torch.nn.Linear(384, 384), torch.nn.ReLU(), torch.nn.Linear(384, 384))
    fxserve.push("within", model, (x,), more=[(torch.randn(2, 384),) for _ in range(5)], client=client,
                 show=False)
    plain = client.call("within", x)
    for given in ({"precision": "bf16"}, {"tolerance": 0.05}, {"tolerance": 0}):
        apart = abs(client.call("within", x, **given) - plain).max()
        assert apart <= 0.05 * max(1, abs(plain).max()), (given, apart)
    reply = client.run("within", {"inputs": [fxserve.client.encode(x)], "tolerance": 0.05, "profile": True})
    said = reply["profile"]["tolerance"]
    assert (said["chose"], said["verified"]) == (3, 3) or "cheaper form" in (said["why"] or ""), said
    try:
        client.call("within", x, precision="bf16", tolerance=0.1)
    except fxserve.Error as error:
        assert error.status == 400, error
    else:
        raise AssertionError("a precision and a tolerance were taken together")


def single_sample(client):
    """A batch of one is exported with an open batch."""
    fxserve.push("single", torch.nn.Linear(4, 2), (torch.randn(1, 4), ), client=client, show=False)
    assert client.call("single", torch.randn(5, 4)).shape == (5, 2)
    fxserve.push("fixed", torch.nn.Linear(4, 2), (torch.randn(1, 4), ), dynamic=False, client=client,
                 show=False)
    try:
        client.call("fixed", torch.randn(5, 4))
    except fxserve.Error as error:
        assert error.code == "shape_mismatch", error.code
    else:
        raise AssertionError("a fixed batch took another size")


def training(client):
    """`push` exports in evaluation mode and leaves every module in the mode that it had."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
    model[1].eval()  # a frozen batch norm in a model that is being trained
    fxserve.push("frozen", model, (torch.randn(2, 4),), client=client, show=False)
    assert [module.training for module in model.modules()] == [True, True, False, True]


def calls(client):
    """Numpy's scalars are plain values, any name of an input can be given, versions can be chosen."""
    x = torch.tensor([1., -2.])
    model = torch.nn.Module()
    model.forward = lambda x, n, flag: x * n if flag else x
    fxserve.push("scaled", model, (x, 3, True), client=client, show=False)
    for n in (3, numpy.int64(3), numpy.uint8(3)):
        close(client.call("scaled", x, n, numpy.bool_(True)), x * 3)
    upload(client, "doubled", lambda x: x * 2)
    for value in (numpy.float32(1.5), numpy.float64(0.1), numpy.int8(-3)):
        close(client.call("doubled", value), torch.tensor(value.item()) * 2)
    model.forward = lambda x: x * 2
    fxserve.push("number", model, (torch.tensor(0.5),), client=client, show=False)
    for value in (numpy.float32(0.1), numpy.float64("inf"), numpy.float16("nan"), 3, torch.tensor(0.1)):
        close(client.call("number", value), torch.tensor(float(value)) * 2)
    assert client.call("doubled", numpy.array(3, "int16")).dtype == "int16"
    refused(TypeError, "plain value", client.call, "doubled", object())
    refused(TypeError, "plain value", client.call, "doubled", numpy.array([1, None]))

    model.forward = lambda x, mode, seed, name, named, version: x + mode + seed + name + named + version
    args = [x * factor for factor in (1, 10, 100, 1000, 10000, 100000)]
    fxserve.push("names", model, tuple(args), client=client, show=False)
    given = dict(zip(("x", "mode", "seed", "name", "named", "version"), args, strict=True))
    close(client.call("names", named=given), x * 111111)
    refused(TypeError, "named={…}", client.call, "names", x=x, mode=x)
    refused(TypeError, "a dict of inputs", client.call, "names", named=x)
    refused(TypeError, "all by position", client.call, "names", x, named=given)

    upload(client, "doubled", lambda x: x * -2)
    close([client.call("doubled", x, version=1), client.call("doubled", x)], [x * 2, x * -2])
    assert client.profile("doubled", version=1, show=False)
    for name in ("doubled/versions/1", "a/b", "../x", "a?b"):
        refused(fxserve.Error, "a graph name has", client.call, name, x)
    for url in ("localhost:1", "127.0.0.1:8080", "ftp://127.0.0.1"):
        refused(ValueError, "http://127.0.0.1:8080", fxserve.Client, url)


class Keywords(torch.nn.Module):
    def forward(self, x, *more, offset=None, scale):
        return (x + sum(more)) * scale + (0 if offset is None else offset)


def pushes(client):
    """`push` takes functions, and inputs by name; the order of `kwargs` does not matter."""
    x = torch.randn(2, 6)
    fxserve.push("function", torch.nn.functional.relu, (x,), client=client, show=False)
    close(client.call("function", torch.ones(5, 6)), torch.ones(5, 6))
    info = fxserve.push("keywords", Keywords(), (x,), {"scale": x + 2, "offset": x * 3}, client=client,
                        more=[{"x": x, "scale": x, "offset": x}], show=False)
    assert max(info["error"].values()) < 1e-6, info["error"]
    ones = torch.ones(5, 6)  # another number of rows than exported
    close(client.call("keywords", x=ones, scale=ones * 2, offset=ones), ones * 3)
    fxserve.push("keywords", Keywords(), (x, x), {"scale": x[0]}, client=client, show=False)
    refused(TypeError, "missing a required argument: 'scale'", fxserve.push, "keywords", Keywords(), (x,),
            client=client)
    refused(TypeError, "a tuple, such as (x,)", fxserve.push, "tensor", Keywords(), x, client=client)


def upload(client, name, function):
    document, _ = fxserve.export_fx.export_fx(torch.fx.symbolic_trace(function))
    client.upload(name, {"graph": fxserve.export_fx.dumps(document).encode()})


def forms(client):
    """Arrays in any order of memory and of bytes are sent as the numbers they show."""
    upload(client, "twice", lambda x: x * 2)
    x, z = torch.arange(12.).reshape(3, 4), torch.tensor([1 + 2j, 3 - 4j])
    for given in (x[1:], x[1], x.T[2:], x[:, 1:3], x[2:].expand(2, 4), x[3:], x[1, 2], z.conj(), z[1:].conj(),
                  torch._neg_view(x), torch._neg_view(x)[1:], x.double()[1:], x.half()[2], x.bfloat16()[2]):
        close(client.call("twice", given), given * 2)
    for dtype in (">f4", "<f4", ">f2", ">f8", ">i2", ">i8", ">c8"):
        given = numpy.arange(6).reshape(2, 3).astype(dtype)
        for view in (given, given[:, ::-1], given.T):
            got = client.call("twice", view)
            assert got.dtype == given.dtype.newbyteorder("="), got.dtype
            assert numpy.array_equal(got, view * 2), (dtype, got)


def views(client):
    """Slices as inputs and as results: of `push`, its samples, and the backend."""
    torch._dynamo.reset()
    data = torch.randn(4, 6)
    for name, function in (("input", lambda x: x * 2), ("result", lambda x: (x * 2)[:, 1:].contiguous()[1])):
        model = torch.nn.Module()
        model.forward = function
        info = fxserve.push(name, model, (data[2:],), client=client, show=False)
        assert max(info["error"].values()) < 1e-6, info["error"]
        run = torch.compile(function, backend=fxserve.backend(client.url))
        with torch.no_grad():
            close(run(data[2:]), function(data[2:]))
    written = safetensors.torch.load(fxserve.samples.safetensors_bytes({"a": data[1:3], "b": data[3]}))
    close([written["a"], written["b"]], [data[1:3], data[3]])


def special(client):
    """NaN and infinities as numbers, in arguments and results; float8 comes as float32."""
    numbers = [1.5, float("nan"), float("inf"), float("-inf")]
    upload(client, "same", lambda x: x)
    upload(client, "item", lambda x: x.item())
    close(client.call("same", numbers), torch.tensor(numbers))
    for number in numbers:
        got = client.call("item", [number])
        assert isinstance(got, float) and repr(got) == repr(number), got
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        codes = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
        for given in (codes, codes[3:7].reshape(2, 2), codes[:0]):
            close(client.call("same", given), given.float())
    model = torch.nn.Module()
    model.forward = lambda x, n: (x * n, float("-inf"))
    fxserve.push("constant", model, (torch.ones(2), 3), client=client, show=False)
    close(client.call("constant", torch.ones(2), 3), (torch.ones(2) * 3, float("-inf")))


def small(_):
    """What one has to read. arrays.py is the encoding of api.md; export_fx.py and samples.py are
    programs as well."""
    folder = pathlib.Path(fxserve.__file__).parent
    lines = sum(len((folder / f"{name}.py").read_text(encoding="utf-8").splitlines())
                for name in ("__init__", "client", "compiling", "pushing"))
    assert lines <= 400, f"the package has {lines} lines"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    options_given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    assert len(MODELS) >= 50 and len(COMPILED) + len(BROKEN) >= 30 and len(BROKEN) >= 10
    server, tally, started = Server(options_given.binary, ["--data", "none"]), Tally(), time.monotonic()
    client = fxserve.Client(server.start().url)
    cases = [(f"push {name}", lambda name=name: pushed(client, name)) for name in MODELS]
    cases += [(f"backend {name}", lambda name=name: compiled(client, name, name in BROKEN))
              for name in [*COMPILED, *BROKEN]]
    cases += [(function.__name__, lambda function=function: function(client))
              for function in (options, within, single_sample, training, calls, pushes, changed_parameters,
                               gradients, forms, views, special, small)]
    for words, case in cases:
        try:
            case()
            tally.ok()
        except Exception as problem:  # any failure is the case's
            tally.bad(words, f"{type(problem).__name__}: {str(problem)[:600]}")
    tally.check("the server ends", "\n".join(server.stop()))
    print(f"{time.monotonic() - started:.0f} s")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
