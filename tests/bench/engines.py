#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled programs against eager PyTorch, one thread each, by turns: prints microseconds and the ratio.

    python tests/bench/engines.py build/tests/bench/bench_models [MODEL ...]

Needs PyTorch and the program `bench_models` (ninja tests/bench/bench_models), which also checks that compiled and eager
results agree. Figures depend on what else the machine does; the ratio of one row was taken within seconds.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS.parent / "tools"))

import torch  # noqa: E402
import torch.fx  # noqa: E402

from seeded_weights import make_state, safetensors_bytes  # noqa: E402

SMALL_CONV = {
    "format": "fx/1",
    "nodes": [
        {"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "float32", "shape": ["N", 3, 32, 32]}},
        {"op": "call_module", "name": "conv", "target": "conv", "args": ["%x"]},
        {"op": "call_module", "name": "relu", "target": "relu", "args": ["%conv"]},
        {"op": "call_module", "name": "pool", "target": "pool", "args": ["%relu"]},
        {"op": "output", "name": "output", "target": "output", "args": ["%pool"]},
    ],
    "modules": {
        "conv": {"type": "torch.nn.Conv2d", "config": {"in_channels": 3, "out_channels": 16, "kernel_size": [3, 3]}},
        "relu": {"type": "torch.nn.ReLU"},
        "pool": {"type": "torch.nn.MaxPool2d", "config": {"kernel_size": 2}},
    },
}


def stored(name):
    return json.loads((TESTS / "models" / f"{name}.fx.json").read_text(encoding="utf-8"))


MODELS = {
    "resnet18": (stored("resnet18"), (1, 3, 224, 224)),
    "mlp batch 1": (stored("mlp_784"), (1, 784)),
    "mlp batch 64": (stored("mlp_784"), (64, 784)),
    "conv3x3 relu pool": (SMALL_CONV, (1, 3, 32, 32)),
}


def resolve(target):
    value = sys.modules[target.split(".")[0]] if target.split(".")[0] in sys.modules else __import__(target.split(".")[0])
    for part in target.split(".")[1:]:
        value = getattr(value, part)
    return value


def as_torch(document):
    """The graph as a torch.fx.GraphModule with weights of its own."""
    modules = {}
    for path, module in document["modules"].items():
        config = {key: tuple(value) if isinstance(value, list) else value for key, value in module.get("config", {}).items()}
        modules[path] = resolve(module["type"])(**config).eval()
    graph, values = torch.fx.Graph(), {}

    def argument(value):
        if isinstance(value, str) and value.startswith("%"):
            return values[value[1:]]
        return [argument(item) for item in value] if isinstance(value, list) else value

    for node in document["nodes"]:
        args = tuple(argument(value) for value in node.get("args", []))
        kwargs = {key: argument(value) for key, value in node.get("kwargs", {}).items()}
        if node["op"] == "output":
            graph.output(args[0])
        elif node["op"] == "placeholder":
            values[node["name"]] = graph.placeholder(node["name"])
        else:
            target = resolve(node["target"]) if node["op"] == "call_function" else node["target"]
            values[node["name"]] = graph.create_node(node["op"], target, args, kwargs, name=node["name"])
    return torch.fx.GraphModule(modules, graph)


def torch_us(module, shape, seconds=3.0):
    x, times = torch.rand(shape) * 2 - 1, []
    with torch.inference_mode():
        for _ in range(5):
            module(x)
        start = time.perf_counter()
        while len(times) < 10 or (len(times) < 5000 and time.perf_counter() - start < seconds):
            before = time.perf_counter_ns()
            module(x)
            times.append((time.perf_counter_ns() - before) / 1000)
    return statistics.median(times), min(times)


def ours(program, document, shape, folder):
    graph, weights = folder / "graph.json", folder / "weights.safetensors"
    graph.write_text(json.dumps(document))
    weights.write_bytes(safetensors_bytes(make_state(document["modules"])))
    command = [program, str(graph), str(weights), ",".join(map(str, shape))]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return {key: float(value) for key, value in re.findall(r"(\w+) ([0-9.e+-]+)", done.stdout)}


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    torch.set_num_threads(1)
    print(f"{'median us':20} {'torch eager':>12} {'ours eager':>12} {'compiled':>12} {'torch / compiled':>17} {'least':>7} {'compile ms':>11}")
    for name in sys.argv[2:] or MODELS:
        document, shape = MODELS[name]
        module = as_torch(document)
        with tempfile.TemporaryDirectory() as folder:
            median, least = torch_us(module, shape)
            mine = ours(sys.argv[1], document, shape, pathlib.Path(folder))
        print(f"{name:20} {median:12.1f} {mine['eager_us']:12.1f} {mine['compiled_us']:12.1f} {median / mine['compiled_us']:16.2f}x "
              f"{least / mine['least_us']:6.2f}x {mine['compile_us'] / 1000:11.1f}")


if __name__ == "__main__":
    main()
