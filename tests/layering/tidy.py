# SPDX-License-Identifier: Apache-2.0
"""clang-tidy with the checks of .clang-tidy over all sources of a build that clang made: tidy.py
BUILD [--long]. --long adds the static analyser, which takes minutes. Prints the findings; the last
line is `N passed, N failed`, of files."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHUNK = 8
ANALYSER = ("clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,"
            "-clang-analyzer-optin.performance.Padding")


def sources(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        paths = {os.path.normpath(os.path.join(row["directory"], row["file"])) for row in json.load(file)}
    folders = tuple(os.path.join(ROOT, folder) + os.sep for folder in ("core", "api", "server"))
    return sorted(path for path in paths if path.startswith(folders))


def findings(build, paths, options):
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build, *options, *paths], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.split("\n") if re.search(r": (warning|error): ", line)]
    # it may also fail without a finding
    return found or ([done.stderr[-1000:]] if done.returncode != 0 else [])


def main():
    build = os.path.abspath(sys.argv[1])
    options = [f"--checks={ANALYSER}"] if "--long" in sys.argv else []
    paths = sources(build)
    chunks = [paths[at:at + CHUNK] for at in range(0, len(paths), CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = {line for found in pool.map(lambda chunk: findings(build, chunk, options), chunks)
                for line in found}
    for line in sorted(rows):
        print(os.path.relpath(line, ROOT) if line.startswith(os.sep) else line)
    failed = len({line.split(":")[0] for line in rows})
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
