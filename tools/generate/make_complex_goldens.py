# SPDX-License-Identifier: Apache-2.0
"""Golden cases of complex numbers: tests/golden/complex.jsonl and .safetensors, in the form of
tests/golden/README.md. The overloads are those of tests/golden/complex_overloads.txt; their calls
come from PyTorch's operator tests and from complex_hand.py.

    python tools/generate/make_complex_goldens.py
"""

import argparse
import json
import pathlib
import warnings

from needed import need

need("torch==2.13.0", "numpy", "safetensors", "expecttest")

import torch

import make_goldens
from complex_hand import hand_cases
from count_goldens import TABLE, counted, table
from make_goldens import (Collector, add_hand_cases, choose, collect_in_place, collect_opinfo, find_overload,
                          write_group)

warnings.filterwarnings("ignore")
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
COMPLEX = (torch.complex64, torch.complex128)
REAL = (torch.float32, torch.float64, torch.int64, torch.bool)
# Of these, cases of real numbers count as well: they stand in no other group.
ONLY_HERE = ("view_as_complex", "complex", "polar", "angle", "real", "fft_", "_fft_", "stft", "istft", "conj",
             "resolve_", "is_complex", "conj_physical")


def only_here(name):
    packet = name.split(".")[1]
    return any(packet.startswith(start) if start.endswith("_") else packet.strip("_") == start
               for start in ONLY_HERE)


def has_complex(candidate):
    tensors = make_goldens.tensors_in((candidate.args, candidate.kwargs))
    tensors += make_goldens.tensors_in([out[1] for out in candidate.outs])
    numbers = [value for value in (*candidate.args, *candidate.kwargs.values()) if isinstance(value, complex)]
    return bool(numbers) or any(tensor.is_complex() for tensor in tensors)


def is_unfair(candidate):
    """What becomes of a NaN or an infinity depends on the order in which a transform adds."""
    return "fft" in candidate.overload._schema.name and candidate.tag == "special"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=9, help="cases per overload (default: 9)")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--new", action="store_true",
                        help="add the hand-written cases of overloads that have no cases yet")
    parser.add_argument("--hand", nargs="+", metavar="OVERLOAD", help="add hand-written cases of these")
    options = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    names = [line for line in (FOLDER / "complex_overloads.txt").read_text().split("\n")
             if line and not line.startswith("#")]
    targets = {name: find_overload(name) for name in names}
    if unknown := [name for name, overload in targets.items() if overload is None]:
        raise SystemExit(f"PyTorch has no {', '.join(unknown)}")
    if options.new:
        lines = (FOLDER / "complex.jsonl").read_text(encoding="utf-8").splitlines()
        have = {json.loads(line)["op"] for line in lines}
        names = [name for name in names if name not in have]
        targets = {name: targets[name] for name in names}
    targets = {name: targets[name] for name in options.hand or targets}
    make_goldens.TAKEN |= {*COMPLEX, *REAL}
    collector = Collector(targets, {"complex": names})
    for name, args, kwargs in hand_cases():
        if name in targets and not collector.offer(targets[name], args, kwargs, "hand"):
            print(f"PyTorch refuses a hand-written case of {name}")
    if options.hand:
        print(f"{add_hand_cases(FOLDER, {'complex': options.hand}, collector)} cases added")
        TABLE.write_text(table(counted()), encoding="utf-8")
        return
    make_goldens.DTYPES = (*COMPLEX, torch.float32, torch.int64)
    make_goldens.SKIPPED_OPINFOS = tuple(start for start in make_goldens.SKIPPED_OPINFOS if start != "fft.")
    for opinfo in () if options.new else op_db:
        if not opinfo.name.startswith(make_goldens.SKIPPED_OPINFOS):
            collect_opinfo(collector, opinfo, options)
    if not options.new:
        collect_in_place(collector)
    chosen, few = [], []
    for name in names:
        found = [candidate for candidate in collector.found[name].values()
                 if (has_complex(candidate) or only_here(name)) and not is_unfair(candidate)]
        cases = choose(found, options.cases)
        chosen.extend(cases)
        if len(cases) < 8:
            few.append(f"{name} {len(cases)}")
    size = write_group(FOLDER, "complex", chosen, {}, options.new)
    print(f"{len(names)} overloads, {len(chosen)} cases, {size / 1e6:.1f} MB")
    print("fewer than 8 cases: " + (", ".join(few) or "none"))
    TABLE.write_text(table(counted()), encoding="utf-8")


if __name__ == "__main__":
    main()
