# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a long run into tests/REPORT.md: report.py RESULTS... Each result is a line of
JSON: name, figure, aim, met, command (tests/load/parts.py). Of two results of one name the later
counts; rows that were not measured again stay as they are."""
import datetime
import json
import os
import platform
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """# Report of the long tests

Written by `tests/report.py` from what `./check --long` measured; not by hand. Server and clients
shared the machine, so times are those of a busy one. What is a defect wherever it runs (a wrong
answer, a leak, a lost request) also fails the test; a missed time does not.

{met} of {n} aims met.
"""
FILE = os.path.join(ROOT, "tests", "REPORT.md")


def written():
    """The rows of the report as it stands."""
    with open(FILE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    commands = {name: command for line in lines if line.startswith("* `")
                for command, names in [line[3:].split("`: ", 1)] for name in names.split("; ")}
    rows = {}
    for line in lines:
        if line.startswith("| ") and not line.startswith("| what "):
            name, figure, aim, met, when = re.split(r" (?<!\\)\| ", line[2:-2])
            rows[name] = {"name": name, "figure": figure, "aim": aim, "met": met == "yes", "when": when,
                          "command": commands[name]}
    return rows


def read(paths, when):
    rows = written()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = {key: cell(value) if isinstance(value, str) else value
                       for key, value in json.loads(line).items()}
                rows[row["name"]] = {**row, "when": when}
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
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=8"], cwd=ROOT,
                            capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    rows = read(sys.argv[1:], f"{datetime.date.today().isoformat()}, {commit}, {machine()}")
    text = HEAD.format(met=sum(row["met"] for row in rows), n=len(rows))
    text += "\n| what | figure | aim | met | when, commit, machine |\n|---|---|---|---|---|\n"
    commands = {}
    for row in rows:
        commands.setdefault(row["command"], []).append(row["name"])
        text += (f"| {row['name']} | {row['figure']} | {row['aim']} "
                 f"| {'yes' if row['met'] else '**no**'} | {row['when']} |\n")
    text += "\n## Commands\n\n" + "".join(f"* `{command}`: {'; '.join(names)}\n"
                                          for command, names in commands.items())
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
