# SPDX-License-Identifier: Apache-2.0
"""Runs the Python examples of README.md and clients/python/README.md, in order, as a reader would,
each document against a server of its own; `pip install` puts the package into a folder. What a
```text block below an example says has to be what the example prints, by the rules of
tests/service/readme.py. The last line is `N passed, N failed`.

usage: readme_python.py FXSERVE     with torch, numpy and requests
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
import readme
from service import Failed, Tally, serving


def examples(text):
    """(command, what it prints or None) in the order of the document."""
    for part in re.finditer(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?|"
                            r"^    ((?:curl |pip install clients/)[^\n]*)\n", text, re.M | re.S):
        python, printed, shell = part.groups()
        if python:
            yield [sys.executable, "-W", "ignore", "-c", python], printed
        else:
            pip = f"{sys.executable} -m pip install --quiet --no-deps --target site "
            shell = shell.replace("curl ", "curl -sSf ", 1).replace("pip install ", pip, 1)
            yield ["bash", "-c", shell], None


def evenly(text):
    """numpy's columns are as wide as the last digit that a machine finds."""
    return re.sub(r"\s*([\[\]])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def run(command, printed, folder, url):
    command[-1] = command[-1].replace("http://localhost:8080", url).replace("localhost:8080", url)
    installed = os.path.join(folder, "site")
    settings = {"FXSERVE_URL": url, "PYTHONPATH": installed if os.path.isdir(installed) else
                os.path.join(folder, "clients", "python")}
    done = subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr[-2000:])
    if printed is not None:
        readme.compare("", evenly(done.stdout), evenly(printed))


def main():
    total = Tally()
    for document, least in (("README.md", 5), ("clients/python/README.md", 2)):
        with serving(sys.argv[1]) as (server, _), tempfile.TemporaryDirectory() as folder:
            ran = 0
            shutil.copytree(os.path.join(ROOT, "clients"), os.path.join(folder, "clients"))
            for command, printed in examples(readme.document(document)):
                problem = None
                try:
                    run(command, printed, folder, server.url)
                except Failed as failure:
                    problem = str(failure)
                total.check(f"{document}: {command[-1][:160]}", problem)
                ran += 1
        total.check(f"examples of {document}", f"only {ran} ran" if ran < least else None)
    return total.end()


if __name__ == "__main__":
    sys.exit(main())
