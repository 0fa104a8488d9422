# SPDX-License-Identifier: Apache-2.0
"""Counts the golden cases of each operator: core/ops/golden_cases.def, which GET /v1/ops shows.
make_goldens.py does it when it has written them.

    python3 tools/generate/count_goldens.py
"""

import collections
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "core" / "ops" / "golden_cases.def"


def counted(folder=ROOT / "tests" / "golden"):
    """{operator: number of cases}"""
    return collections.Counter(json.loads(line)["op"] for path in folder.glob("*.jsonl")
                               for line in path.read_text(encoding="utf-8").splitlines())


def table(counts):
    rows = [f'CASES("{name}", {n})' for name, n in sorted(counts.items())]
    return "\n".join(["// SPDX-License-Identifier: Apache-2.0", "// Golden cases per operator, in the order "
                      "of strcmp; made by tools/generate/count_goldens.py.", *rows, ""])


if __name__ == "__main__":
    TABLE.write_text(table(counted()), encoding="utf-8")
