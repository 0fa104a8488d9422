#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that fxserve refuses by name, made into ones that it reads.

    convert_pt2.py OLD.pt2 NEW.pt2                            an export of torch 2.7 or older
    convert_pt2.py SCRIPT.pt NEW.pt2 --input float32:1,3,224,224 [--input ...] [--dynamic]
                                                              a file of torch.jit.save

A TorchScript file says no shapes: --input gives the dtype and sizes of each example. With --dynamic
the first dimension of every input may vary. The result is compared with the script on those inputs
before it is written. Not every script can be converted; torch.export of the original model is the
better way where that is still at hand. Both kinds of file may hold code: convert only what you
trust. Needs torch 2.9 or later.
"""
import argparse
import io
import os
import sys
import zipfile

import torch

OLD_MEMBER, INPUTS_MEMBER = "serialized_exported_program.json", "serialized_example_inputs.pt"


def example(text):
    """float32:1,3,224,224 -> a tensor."""
    name, _, sizes = text.partition(":")
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise SystemExit(f"--input {text}: {name!r} is no dtype; for example float32:1,3,224,224")
    try:
        shape = [int(size) for size in sizes.split(",") if size]
    except ValueError:
        raise SystemExit(f"--input {text}: sizes are numbers; for example float32:1,3,224,224") from None
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    return torch.ones(shape, dtype=dtype)


def load_old(path):
    """Archives before torch 2.6 have no example inputs, which torch.export.load asks for."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members.setdefault(INPUTS_MEMBER, b"")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    whole.seek(0)
    return torch.export.load(whole)


def load_script(path, inputs, dynamic):
    from torch._export.converter import TS2EPConverter
    script = torch.jit.load(path, map_location="cpu").eval()
    program = TS2EPConverter(script, inputs).convert()
    if dynamic:
        shapes = tuple({0: torch.export.Dim.AUTO} for _ in inputs)
        program = torch.export.export(program.module(), inputs, dynamic_shapes=shapes)
    torch.testing.assert_close(program.module()(*inputs), script(*inputs))
    return program


def members_of(path):
    if not zipfile.is_zipfile(path):
        raise SystemExit(f"{path} is no archive of torch.export.save or torch.jit.save")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def convert(path, inputs, dynamic):
    members = members_of(path)
    if OLD_MEMBER in members:
        return load_old(path)
    if any("/code/" in name or name.endswith("constants.pkl") for name in members) and not any(
            "/models/" in name for name in members):
        if not inputs:
            raise SystemExit("a TorchScript file says no shapes: give each input, for example "
                             "--input float32:1,3,224,224")
        return load_script(path, inputs, dynamic)
    return torch.export.load(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--input", action="append", default=[], metavar="DTYPE:SIZES")
    parser.add_argument("--dynamic", action="store_true", help="the first dimension of every input may vary")
    options = parser.parse_args()
    inputs = tuple(example(text) for text in options.input)
    program = convert(options.old, inputs, options.dynamic)
    part = options.new + ".part.pt2"  # torch.export.save asks for this ending
    torch.export.save(program, part)
    os.replace(part, options.new)
    print(f"{options.new}: {len(program.graph.nodes)} nodes; curl -T {options.new} localhost:8080/v1/graphs/")


if __name__ == "__main__":
    sys.exit(main())
