# SPDX-License-Identifier: Apache-2.0
"""Megabytes of packages of this environment and of all that they require: installed.py NAME...
CUDA's packages do not count: no server here uses them.
"""
import importlib.metadata
import os
import re
import sys

CUDA = ("nvidia-cu", "nvidia-nv", "nvidia-nccl", "cuda-", "triton")


def required(name):
    for line in importlib.metadata.requires(name) or ():
        if "extra ==" not in line:
            yield re.match(r"[A-Za-z0-9_.-]+", line).group(0).lower()


def main():
    waiting, seen, size = [name.lower() for name in sys.argv[1:]], set(), 0
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name in seen or (name.startswith(CUDA) and name != "tritonclient"):
            continue
        seen.add(name)
        try:
            files = importlib.metadata.files(name) or ()
            waiting += required(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        paths = (str(file.locate()) for file in files)
        size += sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    print(f"{size / 1e6:.0f}")


if __name__ == "__main__":
    main()
