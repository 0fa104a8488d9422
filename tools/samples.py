# SPDX-License-Identifier: Apache-2.0
"""clients/python/fxserve/samples.py as a program, and as a module without an installation: called
without arguments it prints the words."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients" / "python"))
import fxserve.samples

if __name__ == "__main__":
    sys.exit(fxserve.samples.main())
else:
    sys.modules[__name__] = fxserve.samples
