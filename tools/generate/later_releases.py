# SPDX-License-Identifier: Apache-2.0
"""What releases of PyTorch after 2.13 do otherwise. fxserve follows 2.13; tests that run with a later
release know the differences from here."""

import re

import torch

LATER = not torch.__version__.startswith("2.13.")
GONE = {"aten::cholesky", "aten::qr"} if LATER else set()  # operators


def differs_later(case):
    """Whether this golden case, recorded with 2.13, has another answer in the release that runs: an
    arange of int64 between floats is counted in floats, a mask together with is_causal is refused."""
    args = [*case["args"], *case.get("kwargs", {}).values()]
    if case["op"].startswith("aten.arange"):
        return LATER and {"$dtype": "int64"} in args and any(isinstance(arg, float) for arg in args)
    masked = case["op"] == "aten.scaled_dot_product_attention.default" and len(case["args"]) > 5
    return LATER and masked and case["args"][3] is not None and case["args"][5] is True


def as_2_13(text):
    """Printed code as 2.13 writes it: later releases write complex numbers that are no literals of
    Python as calls."""
    if not LATER:
        return text
    return re.sub(r"complex\(([^\s,]+), ([^\s,)]+)\)",
                  lambda found: repr(complex(float(found[1]), float(found[2]))), text)
