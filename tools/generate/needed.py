# SPDX-License-Identifier: Apache-2.0
"""Says which packages a script lacks, before an import fails with a traceback."""

import importlib.util


def need(*packages):
    """Ends the program unless all of `packages` can be imported: "torch==2.13.0" as pip writes
    them."""
    lacking = [package for package in packages if importlib.util.find_spec(package.split("==")[0]) is None]
    if lacking:
        raise SystemExit(f"needs {', '.join(packages)}; missing: {', '.join(lacking)}\n"
                         f"    pip install {' '.join(lacking)}")
