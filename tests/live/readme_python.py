# SPDX-License-Identifier: Apache-2.0
"""Runs the Python examples of README.md, in order, as a reader would, against a server on a free
port. The last line is `N passed, N failed`.

usage: readme_python.py FXSERVE     with torch, numpy and requests
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import Server


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    section = re.search(r"^## Your own model\n.*?(?=With\s+the\s+model\s+of\s+`./quickstart`|^## )", text,
                        re.M | re.S)[0]
    server = Server(sys.argv[1], ["--data", "none"])
    server.start()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for block in re.split(r"\n(?=```python\n|    curl )", section):
            python = re.match(r"```python\n(.*?)^```$", block, re.M | re.S)
            shell = re.match(r"    (curl .*)", block)
            if not python and not shell:
                continue
            command = ([sys.executable, "-c", python.group(1)] if python
                       else ["bash", "-c", shell.group(1).replace("curl ", "curl -sSf ", 1)])
            command[2] = command[2].replace("localhost:8080", f"127.0.0.1:{server.port}")
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300,
                                  check=False)
            if done.returncode == 0:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {command[2][:200]}\n{done.stderr[-2000:]}")
    problem = server.stop()
    if problem or passed < 4:
        failed += 1
        print(f"FAILED {problem or 'fewer than four examples ran'}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
