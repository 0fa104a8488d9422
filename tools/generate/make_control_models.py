# SPDX-License-Identifier: Apache-2.0
"""Exports models of tests/live/zoo_control.py with what PyTorch computes for them.

    python tools/generate/make_control_models.py [--out tests/models]

Written for each: `control_<name>.pt2` and `control_<name>.safetensors` (see expected.py).
"""

import argparse
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "live"), str(ROOT / "tools" / "generate")]

import zoo_control
from expected import save_sets
from zoo import exported

NAMES = ["rnn_by_scan", "scan_backwards", "gated_scan", "mapped_rows", "half_region", "mapped_twice"]


def forget_places(program):
    """Leaves out where in which file a node was written: that is another path on each machine."""
    for child in program.graph_module.modules():
        for node in child.graph.nodes if isinstance(child, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)


def make(name, folder):
    torch.manual_seed(0)
    module, first, second = zoo_control.MODELS[name]()
    program, sizes = exported(module.eval(), first, second)[0]
    forget_places(program)
    torch.export.save(program, folder / f"control_{name}.pt2")
    save_sets(folder / f"control_{name}.safetensors", [(inputs, {}, module(*inputs)) for inputs in sizes])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests" / "models")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for name in NAMES:
        make(name, options.out)


if __name__ == "__main__":
    main()
