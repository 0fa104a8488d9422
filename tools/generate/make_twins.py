# SPDX-License-Identifier: Apache-2.0
"""Writes core/ops/twins.def: the in-place overloads that PyTorch has, so that no row of ours gets a
twin that is none of them.

    python tools/generate/make_twins.py [--check]      --check: only say whether the file is what
    PyTorch 2.13 has

Needs torch 2.13.
"""

import pathlib
import sys

from needed import need

need("torch==2.13.0")

import torch

FILE = pathlib.Path(__file__).resolve().parent.parent.parent / "core" / "ops" / "twins.def"
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Made by tools/generate/make_twins.py: the in-place overloads of PyTorch 2.13, sorted. A row with
// OP_INPLACE has a twin only if it stands here.
"""


def is_twin(schema):
    """Whether the schema is `aten::name_...(Tensor(a!) self, ...)`, or `aten::__iname__...`."""
    name = schema.name.removeprefix("aten::")
    is_named = name.endswith("_") and not name.endswith("__") or name.startswith("__i")
    if name == schema.name or not is_named or not schema.arguments:
        return False
    first = schema.arguments[0]
    return first.alias_info is not None and first.alias_info.is_write and str(first.type) == "Tensor"


def text():
    names = {schema.name + ("." + schema.overload_name if schema.overload_name else "")
             for schema in torch._C._jit_get_all_schemas() if is_twin(schema)}
    return HEAD + "".join(f'TWIN("{name}")\n' for name in sorted(names))


def main():
    if "--check" in sys.argv[1:]:
        raise SystemExit(0 if FILE.read_text(encoding="utf-8") == text()
                         else f"{FILE} is not what PyTorch {torch.__version__} has")
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
