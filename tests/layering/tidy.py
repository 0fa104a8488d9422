# SPDX-License-Identifier: Apache-2.0
"""What clang warns about in all programs and tests, and clang-tidy with the checks of .clang-tidy in
all programs: tidy.py BUILD [--long]. BUILD is a folder that is set up for clang; nothing but the
sources that are generated is built in it. --long runs the static analyser instead, which takes
minutes. Prints the findings; the last line is `N passed, N failed`, of files."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHUNK = 8
OPTIONS = ["-Dbuildtype=debug", "-Ddebug=false", "-Dtests=enabled"]
ANALYSER = ("clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,"
            "-clang-analyzer-optin.performance.Padding")
WARNINGS = "-*,clang-diagnostic-*,misc-definitions-in-headers"  # one check at least is to be on


def output(command, **environment):
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ, **environment), capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}\n0 passed, 1 failed")
    return done.stdout


def set_up(build):
    if not os.path.exists(os.path.join(build, "build.ninja")):
        output(["meson", "setup", build, *OPTIONS], CC="clang")
    made = output(["ninja", "-C", build, "-t", "targets", "rule", "CUSTOM_COMMAND"]).split()
    output(["ninja", "-C", build, *(name for name in made if name.endswith((".c", ".h")))])


def sources(build, *names):
    """Those in these folders of the project."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        paths = {os.path.normpath(os.path.join(row["directory"], row["file"])) for row in json.load(file)}
    folders = tuple(os.path.join(ROOT, name) + os.sep for name in names)
    return sorted(path for path in paths if path.startswith(folders) and path.endswith(".c"))


def findings(build, paths, options):
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build, *options, *paths], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.split("\n") if re.search(r": (warning|error): ", line)]
    # it may also fail without a finding
    return found or ([done.stderr[-1000:]] if done.returncode != 0 else [])


def main():
    build = os.path.abspath(sys.argv[1])
    set_up(build)
    programs, others = sources(build, "core", "api", "server", "library"), sources(build, "tests")
    kinds = [(programs, [f"--checks={ANALYSER}"])] if "--long" in sys.argv else [
        (programs, []), (others, [f"--checks={WARNINGS}"])]
    work = [(paths[at:at + CHUNK], options) for paths, options in kinds for at in range(0, len(paths), CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = {line for found in pool.map(lambda each: findings(build, *each), work) for line in found}
    for line in sorted(rows):
        print(os.path.relpath(line, ROOT) if line.startswith(os.sep) else line.removeprefix("../"))
    n_files, failed = sum(len(paths) for paths, _ in kinds), len({line.split(":")[0] for line in rows})
    print(f"{n_files - failed} passed, {failed} failed")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
