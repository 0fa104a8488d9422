# SPDX-License-Identifier: Apache-2.0
"""Writes tests/REPORT.md from the results of a long run: report.py RESULTS... Each result is a line
of JSON: name, figure, aim, met, command (tests/load/parts.py). Of two results of one name the later
counts."""
import datetime
import json
import os
import platform
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """# Report of the long tests

Written by `tests/report.py` from what `./check --long` measured; not by hand. Server and clients
shared the machine, so times are those of a busy one. What is a defect wherever it runs (a wrong
answer, a leak, a lost request) also fails the test; a missed time does not.

{machine}, {date}. The newest rows are of commit {commit}; a row that was not measured again is of
the build before it. {met} of {n} aims met.
"""


def read(paths):
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows[row["name"]] = row
    return list(rows.values())


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                     platform.machine())
    return f"{os.cpu_count()} × {model}, {platform.system()}"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def main():
    if len(sys.argv) < 2:
        print("usage: report.py RESULTS...")
        return 2
    rows = read(sys.argv[1:])
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT,
                            capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    text = HEAD.format(machine=machine(), date=datetime.date.today().isoformat(), commit=commit,
                       met=sum(row["met"] for row in rows), n=len(rows))
    text += "\n| what | figure | aim | met |\n|---|---|---|---|\n"
    commands = {}
    for row in rows:
        commands.setdefault(row["command"], []).append(row["name"])
        text += (f"| {cell(row['name'])} | {cell(row['figure'])} | {cell(row['aim'])} "
                 f"| {'yes' if row['met'] else '**no**'} |\n")
    text += "\n## Commands\n\n" + "".join(f"* `{command}`: {cell('; '.join(names))}\n"
                                          for command, names in commands.items())
    with open(os.path.join(ROOT, "tests", "REPORT.md"), "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
