# SPDX-License-Identifier: Apache-2.0
"""Every public name of torch, torch.Tensor, torch.nn, torch.nn.functional, torch.special, linalg and
fft, operator and math runs, or docs/operators.md says why it is left out: names.py FXSERVE.

Needs torch 2.13. A name runs when GET /v1/ops lists it. The section "What is left out" names others
in backticks, with `*` for any letters. The last line is `N passed, N failed`.
"""
import fnmatch
import inspect
import math
import operator
import pathlib
import re
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "service"))

from service import serving

PARTS = (("torch", torch), ("torch.nn.functional", torch.nn.functional), ("torch.special", torch.special),
         ("torch.linalg", torch.linalg), ("torch.fft", torch.fft), ("operator", operator), ("math", math))


def is_function(owner, name, value):
    """Public, callable, no class, and not imported from a module of Python's."""
    if name.startswith("_") or not callable(value) or inspect.isclass(value):
        return False
    home = getattr(value, "__module__", None) or owner
    return home.startswith(("torch", "_operator", "math", "operator")) or owner != "torch"


def functions():
    for owner, module in PARTS:
        for name in dir(module):
            value = getattr(module, name)
            if is_function(owner, name, value):
                yield f"{owner}.{name}", value


def methods():
    for name in dir(torch.Tensor):
        if not name.startswith("_") and callable(getattr(torch.Tensor, name)):
            yield f"Tensor.{name}"


def classes():
    for name in dir(torch.nn):
        value = getattr(torch.nn, name)
        if inspect.isclass(value) and issubclass(value, torch.nn.Module):
            yield f"torch.nn.{name}"


def left_out():
    """Patterns of the document's section, `torch.` and `Tensor.` left away."""
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    section = text.split("## What is left out")[1].split("\n## ")[0]
    return [re.sub(r"^(torch\.nn|torch|Tensor|F)\.", "", word) for word in re.findall(r"`([^`\s]+)`", section)
            if re.search(r"\w", word.rsplit(".", 1)[-1])]


def runs(name, value, known):
    """`value` knows the name that torch.fx writes for it."""
    owner, short = name.rsplit(".", 1)
    home = f"{getattr(value, '__module__', None)}.{getattr(value, '__name__', '')}"
    spellings = (name, home, f"_{name}", f"{owner.split('.')[-1]}_{short}",
                 short.rstrip("_") if owner.startswith("torch") else name,
                 short if owner.startswith("torch") else name, f"torch.functional.{short}")
    return any(spelling in known for spelling in spellings)


def main():
    with serving(sys.argv[1], "--data", "none", "--quiet") as (server, tally):
        ops = server.call("GET", "/v1/ops").json()
        known, patterns = set(ops["functions"]) | set(ops["modules"]), left_out()
        # torch.relu, torch.special.ndtr and Tensor.trace follow from the operators' names.
        known |= {entry["target"].split(".")[-2] for entry in ops["ops"]}
        all_methods = set(ops["methods"])
        wanted = [(name, runs(name, value, known)) for name, value in functions()]
        wanted += [(name, name.split(".", 1)[1] in all_methods) for name in methods()]
        wanted += [(name, name in known) for name in classes()]
        for name, does_run in wanted:
            short_name = re.sub(r"^(torch\.nn\.functional|torch\.nn|torch|Tensor)\.", "", name)
            reason = any(fnmatch.fnmatchcase(short_name, pattern) for pattern in patterns)
            tally.check(name, None if does_run or reason else "neither runs nor stands in docs/operators.md")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
