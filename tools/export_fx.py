# SPDX-License-Identifier: Apache-2.0
"""clients/python/fxserve/export_fx.py as a program, and as a module without an installation:
`python export_fx.py --help` has the words."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients" / "python"))
import fxserve.export_fx

if __name__ == "__main__":
    fxserve.export_fx.main()
else:
    sys.modules[__name__] = fxserve.export_fx
