# SPDX-License-Identifier: Apache-2.0
"""Compares the fxserve program with PyTorch, on things made on the spot.

    python tests/live/compare.py build/fxserve [--seed 0] [--graphs 80] [--only
    schemas,prints,models,graphs,goldens]

Needs torch 2.13 or later and safetensors, for the table form of prints also tabulate; no network.
fxserve follows 2.13; what later releases do otherwise stands in tools/generate/later_releases.py. Parts:

    schemas   every listed overload exists in PyTorch, in-place twins too, with the same schema;
              core/ops/twins.def is what PyTorch has
    prints    printed graphs, byte for byte: networks of torch.nn layers and random graphs
    models    networks exported with torch.export here, printed and run with inputs of several
              shapes
    graphs    traced networks as FX JSON with weights, run
    goldens   the committed golden cases replayed in PyTorch, and a sample of them as one-node
              graphs in fxserve

The last line is `N passed, N failed`; the exit code is 1 if anything failed.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "generate"), str(ROOT / "tests" / "service")]

import make_goldens
import make_prints
import make_twins
import replay_goldens
from export_fx import dumps, export_fx, import_fx
from later_releases import GONE, LATER, as_2_13
from service import Server

NPY = {torch.float32: "<f4", torch.float64: "<f8", torch.float16: "<f2", torch.int64: "<i8",
       torch.int32: "<i4", torch.int8: "|i1", torch.uint8: "|u1", torch.bool: "|b1"}
DTYPES = {text: dtype for dtype, text in NPY.items()}


def write_npy(path, tensor):
    tensor = tensor.detach().contiguous()
    dims = "".join(f"{size}, " for size in tensor.shape)
    text = f"{{'descr': '{NPY[tensor.dtype]}', 'fortran_order': False, 'shape': ({dims}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    data = bytes(tensor.reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)


def read_npy(path):
    blob = path.read_bytes()
    size = struct.unpack_from("<H", blob, 8)[0] if blob[6] == 1 else struct.unpack_from("<I", blob, 8)[0]
    start = (10 if blob[6] == 1 else 12) + size
    header = blob[start - size : start].decode()
    dtype = DTYPES[re.search(r"'descr': '([^']*)'", header)[1]]
    shape = [int(number) for number in re.findall(r"\d+", re.search(r"'shape': \(([^)]*)\)", header)[1])]
    data = bytearray(blob[start:])
    flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)


class Report:
    """Counts checks and prints those that fail."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, problem):
        """`problem` is None or a text."""
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {problem}", flush=True)


class Fxserve:
    """The program under test, working in a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder

    def call(self, *arguments):
        """(stdout as bytes, None) or (None, what went wrong)."""
        command = [self.program, *map(str, arguments)]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return None, "no answer within 120 s"
        if done.returncode != 0:
            words = done.stderr.decode("utf-8",
                                       "replace").strip() or done.stdout.decode("utf-8", "replace").strip()
            return None, f"exit code {done.returncode}: {words[:400]}"
        return done.stdout, None

    def print_problem(self, path, form, expected):
        got, problem = self.call("print", path, f"--form={form}")
        return problem or text_problem(got, (expected + "\n").encode())

    def run(self, path, inputs, single):
        """The outputs as a list of tensors, or what went wrong. `inputs` maps names to tensors."""
        arguments = []
        for number, (name, tensor) in enumerate(inputs.items()):
            write_npy(self.folder / f"in{number}.npy", tensor)
            arguments += ["--input", f"{name}=@in{number}.npy"]
        out = self.folder / "out.npy"
        out.unlink(missing_ok=True)
        got, problem = self.call("run", path, *arguments, *(["-o", out] if single else []))
        if problem:
            return None, problem
        if single:
            return [read_npy(out)], None
        reply = json.loads(got)
        return [tensor_of(entry) for entry in reply["outputs"] if "dtype" in entry], None


def tensor_of(entry):
    """A tensor of a JSON reply."""

    def number(value):
        return ([number(item) for item in value] if isinstance(value, list) else float(value)
                if isinstance(value, str) else value)

    return torch.tensor(number(entry["data"]), dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])


def text_problem(got, want):
    if got == want:
        return None
    got_lines, want_lines = got.decode("utf-8", "replace").split("\n"), want.decode("utf-8").split("\n")
    for number, (ours, theirs) in enumerate(zip(got_lines, want_lines), 1):
        if ours != theirs:
            return f"line {number}:\n    got  {ours!r}\n    want {theirs!r}"
    return f"{len(got_lines)} lines, expected {len(want_lines)}"


def values_problem(got, want, rtol=None, atol=None):
    """None if the tensors agree: within 1e-4 * max(1, largest expected), or within rtol and atol if
    given."""
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for index, (ours, theirs) in enumerate(zip(got, want)):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return (f"output {index} is {ours.dtype} {list(ours.shape)}, expected {theirs.dtype} "
                    f"{list(theirs.shape)}")
        finite = theirs[theirs.isfinite()].abs().double() if theirs.is_floating_point() else torch.empty(0)
        limit = 1e-4 * max(1.0, finite.max().item() if finite.numel() else 0.0)
        relative, absolute = (0.0, limit) if rtol is None else (rtol, atol)
        if not theirs.is_floating_point():
            relative = absolute = 0.0
        if not torch.allclose(ours.double(), theirs.double(), rtol=relative, atol=absolute, equal_nan=True):
            worst = (ours.double() - theirs.double()).abs().nan_to_num().max().item()
            return f"output {index} differs by up to {worst:g}"
    return None


# ---- schemas -----------------------------------------------------------------------------------


def listed_operators(program):
    """The rows of GET /v1/ops."""
    server = Server(program, ["--data", "none", "--quiet"]).start()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/v1/ops")
    rows = json.loads(connection.getresponse().read())["ops"]
    connection.close()
    server.stop()
    return rows


def compare_schemas(fxserve, report, options):
    theirs = {(schema.name, schema.overload_name): str(schema) for schema in torch._C._jit_get_all_schemas()}
    rows = [row["schema"] for row in listed_operators(fxserve.program)
            if row["target"].startswith("torch.ops.aten.")]
    report.check("operators are listed", None if len(rows) > 600 else f"{len(rows)} of them")
    for text in rows:
        ours = torch._C.parse_schema(text.replace(".default(", "("))
        want = theirs.get((ours.name, ours.overload_name))
        if want is None and ours.name in GONE:
            continue
        report.check(text, None if str(ours) == want else f"PyTorch has {want}")
    same = LATER or make_twins.FILE.read_text(encoding="utf-8") == make_twins.text()
    report.check("twins.def", None if same else "python tools/generate/make_twins.py writes another one")


# ---- prints ------------------------------------------------------------------------------------


class Graded(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss, self.cosine = nn.Linear(8, 3), nn.SmoothL1Loss(beta=0.5), nn.CosineSimilarity()

    def forward(self, x, target):
        y = self.layer(x)
        return self.loss(y, target), self.cosine(y[:, None], target)


def compare_prints(fxserve, report, options):
    made = make_prints.on_the_fly(options.graphs, str(options.seed))
    for name, gm in [*made, ("losses", torch.fx.symbolic_trace(Graded()))]:
        path = fxserve.folder / f"{name}.fx.json"
        text = dumps(export_fx(gm, inline=True)[0])
        path.write_text(text, encoding="utf-8")
        for form, expected in make_prints.texts_of(gm).items():
            report.check(f"{name} {form}", fxserve.print_problem(path, form, as_2_13(expected)))
        again = import_fx(json.loads(text))
        same = str(again.graph) == str(gm.graph) and again.code == gm.code
        report.check(f"{name} export and import", None if same else "the imported graph prints differently")


# ---- models ------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, 1, 1, groups=2), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x += self.bn2(self.conv2(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.box, self.score = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 1), nn.Conv2d(6, 2, 1)
        self.act = nn.PReLU(6)

    def forward(self, x):
        y = self.act(self.body(x))
        return {"box": self.box(y), "score": F.softmax(self.score(y), dim=1)}


class Gelu(nn.Module):
    def __init__(self, approximate):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(12, 24), nn.Linear(24, 12), nn.LayerNorm(12)
        self.act = nn.GELU(approximate)

    def forward(self, x):
        return self.norm(x + self.down(self.act(self.up(x))))


class Shapes(nn.Module):
    def forward(self, x, y):
        a = torch.cat([x, y], dim=1).permute(1, 0).reshape(-1, x.shape[0])
        b = a.unsqueeze(0).expand(2, -1, -1).transpose(1, 2)[:, :, ::2]
        return (b.sum(dim=(0, 2)), x.mean(1, keepdim=True) - y.amax(1, keepdim=True),
                (x > y[:, :3]).to(torch.int64).sum())


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0].mul_(2.0).add_(1)
        y[:, 1:] = y[:, 1:].clamp(-0.5, 0.5)
        return torch.sigmoid(y) * torch.tanh(x)


def networks():
    """(name, module, example inputs, other inputs) for torch.export; the first dimension is
    dynamic."""

    def noise(*shape):
        return torch.randn(*shape)

    def same(*shape, batches=(1, 3, 7)):
        return [(noise(batch, *shape[1:]),) for batch in batches]

    mlp = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4),
                        nn.LogSoftmax(1))
    lenet = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 25, 10), nn.Softmax(1))
    acts = nn.Sequential(nn.Linear(6, 6), nn.ELU(), nn.SiLU(), nn.Hardswish(), nn.LeakyReLU(0.1), nn.ReLU6(),
                         nn.Sigmoid())
    return [
        ("relu_neg_abs", make_prints.module(forward=lambda self, x: torch.abs(torch.neg(torch.relu(x)))),
         (noise(3, 4),), same(3, 4)),
        ("linear", nn.Linear(10, 20), (noise(2, 10),), same(2, 10)),
        ("mlp", mlp, (noise(4, 16),), same(4, 16)),
        ("lenet", lenet, (noise(2, 1, 28, 28),), same(2, 1, 28, 28)),
        ("residual", Residual(), (noise(2, 3, 20, 22),), same(2, 3, 20, 22)),
        ("two_heads", TwoHeads(), (noise(2, 3, 12, 9),), same(2, 3, 12, 9)),
        ("activations", acts, (noise(2, 6),), same(2, 6)),
        ("gelu", Gelu("none"), (noise(2, 3, 12),), same(2, 3, 12)),
        ("gelu_tanh", Gelu("tanh"), (noise(2, 3, 12),), same(2, 3, 12)),
        ("shapes", Shapes(), (noise(2, 3), noise(2, 4)), [(noise(b, 3), noise(b, 4)) for b in (1, 2, 6)]),
        ("in_place", InPlace(), (noise(2, 3),), same(2, 3)),
    ]


def compare_models(fxserve, report, options):
    torch.manual_seed(options.seed)
    for name, network, example, others in networks():
        network.eval()
        for parameter in network.buffers():  # batch norm statistics that are not 0 and 1
            if parameter.is_floating_point():
                parameter.copy_(torch.rand_like(parameter) + 0.5)
        batch = torch.export.Dim("batch")
        program = torch.export.export(network, example, dynamic_shapes=tuple({0: batch} for _ in example))
        path = fxserve.folder / f"{name}.pt2"
        torch.export.save(program, path)
        program = torch.export.load(path)
        report.check(f"{name}.pt2 graph", fxserve.print_problem(path, "graph", str(program.graph)))
        code = torch.fx.GraphModule(nn.Module(), program.graph).code
        report.check(f"{name}.pt2 code", fxserve.print_problem(path, "code", code))
        readable = program.graph_module.print_readable(print_output=False)
        report.check(f"{name}.pt2 readable", fxserve.print_problem(path, "readable", readable))
        names = [node.name for node in program.graph.nodes
                 if node.name in program.graph_signature.user_inputs]
        forward = program.module()
        for number, inputs in enumerate([example, *others]):
            want = torch.utils._pytree.tree_leaves(forward(*(tensor.clone() for tensor in inputs)))
            got, problem = fxserve.run(path, dict(zip(names, inputs)), len(want) == 1)
            report.check(f"{name}.pt2 run {number}", problem or values_problem(got, want))


# ---- FX JSON -----------------------------------------------------------------------------------


def traced_networks():
    """(name, what to trace, inputs)."""
    x, image = torch.randn(3, 8), torch.randn(2, 3, 9, 8)
    conv = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.LazyLinear(4))
    conv(image)
    return [
        ("neg_sigmoid", lambda x: torch.sigmoid(torch.neg(x)), {"x": x}),
        ("methods", lambda x: x.relu().neg().abs().sum(dim=1, keepdim=True), {"x": x}),
        ("operators", lambda x, y: (x + y) * 2 - x / (y * y + 1) + (-x) ** 2, {"x": x, "y": x + 1}),
        ("indexing", lambda x: x[:, 1:5:2] + x[:, -1:].clone() * x.shape[0], {"x": x}),
        ("functional", lambda x: F.layer_norm(F.softmax(F.gelu(x), dim=-1), [8]), {"x": x}),
        ("mlp", nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax(dim=1)),
         {"input": x}),
        ("conv", conv, {"input": image}),
        ("norms", nn.Sequential(nn.LayerNorm(8), nn.PReLU(), nn.Hardtanh()), {"input": x}),
        ("pools", nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((2, 1)), nn.Flatten(1)),
         {"input": image}),
        ("nested", make_prints.CORPUS["nested_modules"](), {"x": image}),
        ("docs", make_prints.CORPUS["docs_my_module"](), {"x": torch.randn(3, 4)}),
    ]


def compare_graphs(fxserve, report, options):
    torch.manual_seed(options.seed)
    for name, network, inputs in traced_networks():
        if isinstance(network, nn.Module):
            network.eval()
        gm = torch.fx.symbolic_trace(network)
        path = fxserve.folder / f"{name}.fx.json"
        path.write_text(dumps(export_fx(gm, inline=True)[0]), encoding="utf-8")
        want = torch.utils._pytree.tree_leaves(gm(*(tensor.clone() for tensor in inputs.values())))
        document, tensors = export_fx(gm)
        again = import_fx(json.loads(dumps(document)), tensors).eval()
        back = torch.utils._pytree.tree_leaves(again(*(tensor.clone() for tensor in inputs.values())))
        report.check(f"{name} export and import", values_problem(back, want, 0.0, 0.0))
        names = [node.target for node in gm.graph.nodes if node.op == "placeholder"]
        got, problem = fxserve.run(path, dict(zip(names, inputs.values())), len(want) == 1)
        report.check(f"{name}.fx.json run", problem or values_problem(got, want))


# ---- goldens -----------------------------------------------------------------------------------


def golden_graph(case, tensors):
    """The case as a one-node graph and its inputs, or None where the program's interface cannot
    hold it."""
    overload = make_goldens.find_overload(case["op"])
    args = replay_goldens.decode(case["args"], tensors)
    kwargs = {name: replay_goldens.decode(value, tensors) for name, value in case.get("kwargs", {}).items()}
    outs = case["outs"]
    if case["op"].startswith("aten.as_strided") and any("stride" in arg or "offset" in arg
                                                        for arg in case["args"][:1]):
        return None  # reads what lies between the elements of its argument
    if "seed" in case:
        return None  # drawing.py runs random operators; the command has no seed
    if len(outs) != 1 or not isinstance(outs[0], dict) or "$tensor" not in outs[0] or case.get("mutated"):
        return None
    graph, inputs = torch.fx.Graph(), {}

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        name = f"x{len(inputs)}"
        inputs[name] = leaf.contiguous()
        return graph.placeholder(name)

    args, kwargs = torch.utils._pytree.tree_map(place, (args, kwargs))
    want = replay_goldens.stored(outs[0], tensors)
    if any(tensor.dtype not in NPY for tensor in [*inputs.values(), want]):
        return None
    node = graph.call_function(overload, tuple(args), kwargs)
    graph.output(node)
    for name, tensor in inputs.items():
        next(n for n in graph.nodes if n.name == name).meta["tensor_meta"] = tensor
    return torch.fx.GraphModule(nn.Module(), graph), inputs, want


def compare_goldens(fxserve, report, options):
    chance = random.Random(options.seed)
    listed, problem = fxserve.call("ops")
    report.check("ops", problem)
    supported = set((listed or b"").decode().split())
    for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl")):
        wrong, cases = [], list(replay_goldens.read_cases(path))
        for number, case, tensors in cases:
            try:
                replay_goldens.run_case(case, tensors)
            except (AssertionError, RuntimeError) as error:
                wrong.append(f"line {number}, {case['op']}: {error}")
        report.check(f"{path.name} replayed in PyTorch", "\n".join(wrong[:5]) or None)
        cases = [case for case in cases if case[1]["op"] in supported
                 and make_goldens.find_overload(case[1]["op"]) is not None]  # else its library is missing
        chosen = chance.sample(cases, min(options.goldens, len(cases)))
        for number, case, tensors in chosen:
            made = golden_graph(case, tensors)
            if made is None:
                continue
            gm, inputs, want = made
            graph = fxserve.folder / "golden.fx.json"
            graph.write_text(dumps(export_fx(gm)[0]), encoding="utf-8")
            got, problem = fxserve.run(graph, inputs, True)
            problem = problem or values_problem(got, [want], case["rtol"], case["atol"])
            report.check(f"{path.name} line {number}, {case['op']}", problem)


def main():
    parts = {"schemas": compare_schemas, "prints": compare_prints, "models": compare_models,
             "graphs": compare_graphs, "goldens": compare_goldens}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--graphs", type=int, default=80, help="printed graphs made on the fly (default: 80)")
    parser.add_argument("--goldens", type=int, default=12,
                        help="golden cases per group run in fxserve (default: 12)")
    parser.add_argument("--only", default=",".join(parts), help="parts to run, separated by commas")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        fxserve = Fxserve(options.fxserve, pathlib.Path(folder))
        for part in options.only.split(","):
            before = report.passed, report.failed
            parts[part](fxserve, report, options)
            print(f"{part}: {report.passed - before[0]} passed, {report.failed - before[1]} failed",
                  flush=True)
    print(f"{report.passed} passed, {report.failed} failed")
    raise SystemExit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
