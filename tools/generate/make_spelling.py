# SPDX-License-Identifier: Apache-2.0
"""Writes core/graph/{spelling,reserved,unicode}.def and core/targets/tensor_names.def from the
installed torch and Python.

    python tools/generate/make_spelling.py core/graph

The tables fix torch 2.13.0 on Python 3.11; run it again when either level is raised.
"""

import builtins
import importlib
import keyword
import pathlib
import sys

import torch
from torch.fx.node import _get_qualified_name

HEADER = ("// SPDX-License-Identifier: Apache-2.0\n// Made by tools/generate/make_spelling.py from {}: "
          "do not edit.\n")
MODULES = ("torch", "torch.functional", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft",
           "torch.sparse", "torch.nested", "torch.signal.windows")
HELPERS = ("torch._compile", "torch._jit", "torch._utils", "torch.overrides", "torch._C._add",
           "torch._C._has", "torch.storage", "torch.serialization", "torch._tensor", "torch.random",
           "torch.utils", "torch._higher", "torch.func.")
# names torch.fx keeps for itself
CUSTOM = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")


def aliases():
    """(name people write, PyTorch's qualified name) where the two differ."""
    for module in MODULES:
        namespace = importlib.import_module(module)
        for name in dir(namespace):
            value = getattr(namespace, name)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            qualified = _get_qualified_name(value)
            if (qualified.startswith("torch.") and not qualified.startswith(HELPERS)
                and qualified != f"{module}.{name}"):
                yield f"{module}.{name}", qualified


def python_methods():
    """Tensor methods written in Python: generated code names them in full, the others through a
    global."""
    for name in dir(torch.Tensor):
        if getattr(getattr(torch.Tensor, name), "__module__", None) == "torch._tensor":
            yield name


def modules_apart():
    """Public classes below torch.nn.modules that torch.nn does not export (those with a leading
    underscore never are)."""
    for file in sorted(pathlib.Path(torch.nn.modules.__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"torch.nn.modules.{file.stem}")
        for name, value in sorted(vars(module).items()):
            own = (isinstance(value, type) and issubclass(value, torch.nn.Module)
                   and value.__module__ == module.__name__)
            if own and not name.startswith("_") and getattr(torch.nn, name, None) is not value:
                yield f"{module.__name__}.{name}"


def ranges(test):
    """Runs of code points beyond ASCII for which `test` holds."""
    start = None
    for code in range(0x80, 0x110001):
        holds = code < 0x110000 and test(chr(code))
        if holds and start is None:
            start = code
        if not holds and start is not None:
            yield f"RANGE(0x{start:x}, 0x{code - 1:x})"
            start = None


def exists(thing, name):
    try:
        return hasattr(thing, name)
    except RuntimeError:  # there, though not for this dtype
        return True


def write(path, source, lines):
    path.write_text(HEADER.format(source) + "\n".join(lines) + "\n", encoding="utf-8")


def section(name, rows):
    return [f"#ifdef {name}", *rows, "#endif"]


def columns(rows, n=8):
    rows = list(rows)
    return [" ".join(rows[i : i + n]) for i in range(0, len(rows), n)]


def main():
    folder, level = pathlib.Path(sys.argv[1]), f"Python {sys.version_info.major}.{sys.version_info.minor}"
    rows = section("ALIAS", [f'ALIAS("{a}", "{b}")' for a, b in sorted(aliases())])
    rows += section("PYTHON_METHOD", [f'PYTHON_METHOD("{name}")' for name in sorted(python_methods())])
    rows += section("MODULE_APART", [f'MODULE_APART("{path}")' for path in sorted(modules_apart())])
    write(folder / "spelling.def", f"torch {torch.__version__.split('+')[0]}", rows)
    names = [f'TENSOR_NAME("{name}")' for name in sorted(dir(torch.Tensor))
             if exists(torch.zeros(2, 2), name)]
    write(folder.parent / "targets" / "tensor_names.def", f"torch {torch.__version__.split('+')[0]}",
          columns(names, 4))
    reserved = sorted({*keyword.kwlist, *vars(builtins), *CUSTOM})
    write(folder / "reserved.def", level, [f'RESERVED("{name}")' for name in reserved])
    tables = section("PRINTABLE",
                     ["#define RANGE PRINTABLE", *columns(ranges(str.isprintable)), "#undef RANGE"])
    for macro, test in (("ID_START", str.isidentifier), ("ID_CONTINUE", lambda c: ("a" + c).isidentifier())):
        tables += section(macro, [f"#define RANGE {macro}", *columns(ranges(test)), "#undef RANGE"])
    write(folder / "unicode.def", level, tables)


if __name__ == "__main__":
    main()
