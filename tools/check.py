# SPDX-License-Identifier: Apache-2.0
"""Builds and runs every test; called by ./check. One line per step with its counts and seconds; a failing step's output is shown. The last line is
`N passed, N failed`.

Builds: build-asan (ASan and UBSan: unit tests and service), build (release, -Werror: models, crash tests), build-tsan (ThreadSanitizer: stress
programs and the server, one thread per run).
"""
import glob
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = dict(
    os.environ, LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:allocator_may_return_null=1", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1", RESNET18_WEIGHTS=os.path.join(ROOT, "build-asan/tests/compile/resnet18.safetensors"))
SANITIZED = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debugoptimized"]  # gcc warns wrongly under sanitizers: -Werror is the release build's
THREADS = ["-Db_sanitize=thread", "-Db_lundef=false", "-Dbuildtype=debugoptimized", "-Dopenmp=false", "-Dtests=disabled"]
STEP_SECONDS = 1500


def run(command, seconds=STEP_SECONDS):
    """(exit code, output) of a command; a hang counts as a failure."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              check=False, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
        return 124, (out.decode(errors="replace") if isinstance(out, bytes) else out) + f"\nstill running after {seconds} s"


def build(folder, options, targets=()):
    if not os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        code, out = run(["meson", "setup", folder] + options)
        if code != 0:
            return 0, 1, out
    elif options:
        run(["meson", "configure", folder] + options)
    code, out = run(["ninja", "-C", folder] + list(targets))
    return (1, 0, out) if code == 0 else (0, 1, "\n".join(line for line in out.split("\n") if "error" in line or "FAILED" in line or "warning" in line))


def counted(command, seconds=STEP_SECONDS):
    """Runs a program whose last matching line is `N passed, N failed`."""
    code, out = run(command, seconds)
    lines = re.findall(r"^(\d+) passed, (\d+) failed", out, re.M)
    if not lines:
        return 0, 1, out
    passed, failed = map(int, lines[-1])
    return passed, failed if failed or code == 0 else 1, out


def criterion():
    passed = failed = 0
    shown = []
    programs = sorted(path for path in glob.glob(os.path.join(ROOT, "build-asan/tests/**/test_*"), recursive=True) if os.access(path, os.X_OK) and os.path.isfile(path))
    for program in programs:
        code, out = run([program, "--jobs=2"], 900)
        summary = re.findall(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)", out)
        if not summary:
            failed += 1
            shown.append(f"{os.path.basename(program)}: no summary (exit {code})\n{out[-4000:]}")
            continue
        tested, passing, failing, crashing = map(int, summary[-1])
        passed += passing
        bad = max(failing + crashing, 1 if code != 0 or tested == 0 else 0)
        failed += bad
        if bad:
            shown.append(f"{os.path.basename(program)}:\n{out[-4000:]}")
    if not programs:
        return 0, 1, "no test programs were built"
    return passed, failed, "\n".join(shown)


def stress():
    passed = failed = 0
    shown = []
    for program in sorted(path for path in glob.glob(os.path.join(ROOT, "build-tsan/tests/stress/stress_*")) if os.path.isfile(path) and os.access(path, os.X_OK)):
        code, out = run([program], 300)
        passed, failed = passed + (code == 0), failed + (code != 0)
        if code != 0:
            shown.append(f"{os.path.basename(program)}: exit {code}\n{out[-4000:]}")
    return passed, failed, "\n".join(shown)


def python(script, *arguments):
    return lambda: counted([sys.executable, script] + list(arguments))


STEPS = [
    ("house", "layers, headers, size, words, format", python("tests/layering/house.py")),
    ("build-asan", "build with ASan and UBSan", lambda: build("build-asan", SANITIZED, ["all", "tests/compile/resnet18.safetensors"])),
    ("build", "build for release", lambda: build("build", ["-Dtests=disabled", "-Dwerror=true"])),
    ("build-tsan", "build with ThreadSanitizer", lambda: build("build-tsan", THREADS)),
    ("unit", "unit tests and goldens (ASan, UBSan)", criterion),
    ("service", "service scenarios (ASan, UBSan)", python("tests/service/run.py", "build-asan/fxserve")),
    ("malformed", "malformed requests (ASan, UBSan)", python("tests/service/malformed.py", "build-asan/fxserve")),
    ("models", "models over HTTP, JSON and b64", python("tests/service/models.py", "build/fxserve")),
    ("crash", "kill -9 during upload, 100 times", python("tests/service/crash.py", "build/fxserve")),
    ("readme", "README examples", python("tests/service/readme.py", "build/fxserve")),
    ("stress", "stress programs (TSan)", stress),
    ("service-tsan", "service scenarios (TSan)", python("tests/service/run.py", "build-tsan/fxserve")),
]


def main():
    wanted = sys.argv[1:]
    if wanted == ["--list"]:
        for name, words, _ in STEPS:
            print(f"{name:14s} {words}")
        return 0
    unknown = [name for name in wanted if name not in [step[0] for step in STEPS]]
    if unknown:
        print(f"no step {unknown[0]}; ./check --list names them")
        return 2
    total_passed = total_failed = 0
    start = time.time()
    for name, words, step in STEPS:
        if wanted and name not in wanted:
            continue
        print(f"{words:42s} ", end="", flush=True)
        began = time.time()
        passed, failed, out = step()
        total_passed, total_failed = total_passed + passed, total_failed + failed
        print(f"{'FAILED' if failed else 'ok':7s}{passed:6d} passed {failed:4d} failed {time.time() - began:7.1f} s", flush=True)
        if failed:
            print(out[-12000:])
    print(f"{time.time() - start:.0f} s")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or total_passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
