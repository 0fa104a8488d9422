# SPDX-License-Identifier: Apache-2.0
"""Functions of torchvision that torch.fx leaves whole, by name, against torchvision's own.

    .venv/bin/python tests/live/wrapped.py build/fxserve [--packages FOLDER]

Needs torch 2.13, numpy, and torchvision: installed from the package index into FOLDER, or a temporary
one; its compiled part is not needed. Each call is a graph of one node, in both modes, on arguments
drawn by a fixed seed. The last line is `N passed, N failed`.
"""

import argparse
import copy
import importlib
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

import zoo_packages
from compare import values_problem
from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving

PACKAGES = ["torchvision==0.28.0", "pillow"]
SWIN, MVIT = "torchvision.models.swin_transformer.", "torchvision.models.video.mvit."
VIDEO = "torchvision.models.video.swin_transformer."
DEPTH, BLOCK = "torchvision.ops.stochastic_depth.stochastic_depth", "torchvision.ops.drop_block.drop_block"

WINDOWS = (((3, 3), (0, 0), (6, 9)), ((3, 3), (1, 1), (6, 9)), ((3, 3), (1, 1), (7, 8)),
           ((4, 4), (2, 2), (3, 9)), ((4, 2), (2, 1), (9, 2)), ((5, 5), (2, 2), (4, 4)),
           ((3, 2), (0, 1), (6, 6)))


def attention(learned, window, shift, size):
    channels, heads, pixels = 12, 3, window[0] * window[1]
    args = [torch.randn(2, *size, channels), torch.randn(3 * channels, channels),
            torch.randn(channels, channels), torch.randn(1, heads, pixels, pixels),
            list(window), heads, list(shift), 0.2, 0.1,
            torch.randn(3 * channels), torch.randn(channels)]
    scale = {"logit_scale": torch.rand(heads, 1, 1) * 6} if learned else {}
    return SWIN + "shifted_window_attention", args, {**scale, "training": False}


VOLUMES = (((2, 3, 3), (0, 0, 0), (4, 6, 9)), ((2, 3, 3), (1, 1, 1), (4, 6, 9)),
           ((2, 3, 2), (1, 0, 1), (3, 7, 5)), ((1, 2, 2), (0, 1, 0), (3, 4, 4)))


def video_calls():
    channels, heads = 12, 3
    for window, shift, size in VOLUMES:
        voxels = window[0] * window[1] * window[2]
        args = [torch.randn(2, *size, channels), torch.randn(3 * channels, channels),
                torch.randn(channels, channels), torch.randn(1, heads, voxels, voxels),
                list(window), heads, list(shift), 0.2, 0.1]
        yield VIDEO + "shifted_window_attention_3d", args, {"training": False}
        biases = {"qkv_bias": torch.randn(3 * channels), "proj_bias": torch.randn(channels)}
        yield VIDEO + "shifted_window_attention_3d", args, {**biases, "training": False}
        yield VIDEO + "_compute_pad_size_3d", [list(size), list(window)], {}
    for shift in ((1, 1, 1), (0, 1, 2)):
        yield VIDEO + "_compute_attention_mask_3d", [torch.randn(3), [4, 6, 9], [2, 3, 3], list(shift)], {}
    index = torch.randint(0, 45, (18, 18))
    for window in ([2, 3, 3], [1, 3, 2]):
        yield VIDEO + "_get_relative_position_bias", [torch.randn(45, 3), index, window], {}


def calls():
    """Yields (name, args, kwargs)."""
    x = torch.randn(3, 4, 5, 6)
    for p, mode, training in itertools.product((0.0, 0.3, 1.0), ("row", "batch"), (True, False)):
        yield DEPTH, [x, p, mode], {"training": training}
    yield BLOCK + "2d", [x, 0.3, 3, False, 1e-6, False], {}
    yield BLOCK + "3d", [torch.randn(2, 3, 4, 4, 4), 0.0, 3], {}
    for rank in (3, 4):
        yield MVIT + "_unsqueeze", [torch.randn(*range(2, 2 + rank)), 4, 1], {}
        yield MVIT + "_squeeze", [torch.randn(2, 1, 3, 4), 4, 1, rank], {}
    for whole in (True, False):
        yield MVIT + "_add_shortcut", [torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4), whole], {}
    for q, k, lengths in (((2, 3, 4), (2, 3, 4), (3, 5, 7)), ((2, 4, 3), (4, 2, 5), (7, 9, 4)),
                          ((1, 1, 5), (3, 2, 1), (1, 1, 1))):
        places, keys = (1 + size[0] * size[1] * size[2] for size in (q, k))
        time, height, width = (torch.randn(length, 6) for length in lengths)
        yield (MVIT + "_add_rel_pos", [torch.randn(2, 3, places, keys), torch.randn(2, 3, places, 6),
                                       list(q), list(k), height, width, time], {})
    for size in ((4, 6), (5, 7), (1, 1)):
        yield SWIN + "_patch_merging_pad", [torch.randn(2, *size, 3)], {}
    index = torch.randint(0, 25, (81, ))
    yield SWIN + "_get_relative_position_bias", [torch.randn(25, 3), index, [3, 3]], {}
    for learned in (False, True):
        for window, shift, size in WINDOWS:
            yield attention(learned, window, shift, size)
    yield from video_calls()


def document(name, args, kwargs):
    """A graph of one call, whose tensors are inputs, and these by name."""
    inputs = {}

    def place(value):
        if not isinstance(value, torch.Tensor):
            return value
        inputs[f"x{len(inputs)}"] = value
        return f"%x{len(inputs) - 1}"

    call = {"op": "call_function", "name": "call", "target": name, "args": [place(value) for value in args],
            "kwargs": {key: place(value) for key, value in kwargs.items()}}
    nodes = [{"op": "placeholder", "name": key, "target": key} for key in inputs]
    end = {"op": "output", "name": "output", "target": "output", "args": ["%call"]}
    return {"format": "fx/1", "nodes": [*nodes, call, end]}, inputs


def check(server, tally, name, args, kwargs):
    module, function = name.rsplit(".", 1)
    torch.manual_seed(7)
    want = getattr(importlib.import_module(module), function)(*copy.deepcopy(args), **kwargs)
    leaves = want if isinstance(want, tuple) else (want, )
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    numbers = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
    graph, inputs = document(name, args, kwargs)
    sent = {key: encode_tensor(value) for key, value in inputs.items()}
    for mode in ("eager", "compiled"):
        body = {"graph": graph, "inputs": sent, "mode": mode, "encoding": "b64", "seed": 7}
        reply = server.call("POST", "/v1/run", json.dumps(body).encode())
        problem = "" if reply.status == 200 else reply.short()
        if not problem:
            entries = reply.json()["outputs"]
            problem = values_problem([decode_tensor(entry) for entry in entries if "dtype" in entry], tensors)
            if [entry["value"] for entry in entries if "value" in entry] != numbers:
                problem = f"numbers are not {numbers}: {entries}"
        tally.check(f"{name}, {mode}", problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fxserve", help="the program to test")
    parser.add_argument("--packages", metavar="FOLDER", help="where torchvision is, or is to be installed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.packages or temporary)
        if not (folder / "torchvision").is_dir():
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
            subprocess.run([*install, *PACKAGES], check=True, stderr=subprocess.DEVNULL)
        sys.path.insert(0, str(folder))
        zoo_packages.declare_operators()
        torch.manual_seed(0)
        with serving(options.fxserve) as (server, tally):
            for call in calls():
                check(server, tally, *call)
        return tally.end()


if __name__ == "__main__":
    sys.exit(main())
