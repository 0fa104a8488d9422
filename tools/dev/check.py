# SPDX-License-Identifier: Apache-2.0
"""Builds and runs every test; called by ./check. One line per step with its counts and seconds; a
failing step's output is shown. The last line is `N passed, N failed`.

  check.py               every step
  check.py --long        the long forms of faults, crashes, disconnects, load, fuzzing and stress
                         (hours), and tests/REPORT.md with their figures
  check.py [--long] NAME...   only these steps; --list names them

Builds: build-asan (ASan and UBSan: unit tests and service), build (release, -Werror: models,
faults, load), build-tsan (ThreadSanitizer: stress programs and the server, one thread per run).
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = dict(
    os.environ, LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
    UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1",
    RESNET18_WEIGHTS=os.path.join(ROOT, "build-asan/tests/compile/resnet18.safetensors"))
# gcc warns wrongly under sanitizers: -Werror is the release build's. -g1: functions and lines are what
# their reports name, and all of -g would take much more disk.
SANITIZED = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debugoptimized",
             "-Dc_args=-g1"]
THREADS = ["-Db_sanitize=thread", "-Db_lundef=false", "-Dbuildtype=debugoptimized", "-Dopenmp=false",
           "-Dtests=disabled", "-Dc_args=-g1"]
STEP_SECONDS, LONG_SECONDS = 1500, 4 * 3600
LONGEST_TEST = "test_ops_deadlines"
STRESS_SECONDS, STRESS_LONG_SECONDS = 20, 300
RESULTS = os.path.join(ROOT, "build", "results.jsonl")  # figures of the long run; tests/report.py reads them
LONG = False


def run(command, seconds=None):
    """(exit code, output) of a command; a hang counts as a failure. On a terminal the seconds are
    shown while it runs."""
    seconds = seconds or (LONG_SECONDS if LONG else STEP_SECONDS)
    with tempfile.TemporaryFile() as out:
        began, process = (time.time(),
                          subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=subprocess.STDOUT))
        try:
            while process.poll() is None and time.time() - began < seconds:
                try:
                    process.wait(1)
                except subprocess.TimeoutExpired:
                    show_seconds(time.time() - began)
        finally:
            late = process.poll() is None
            if late:
                process.kill()
                process.wait()
        out.seek(0)
        text = out.read().decode(errors="replace")
    return (124, text + f"\nstill running after {seconds} s") if late else (process.returncode, text)


def show_seconds(seconds):
    if sys.stdout.isatty():
        word = f"{seconds:.0f} s"
        print(word + "\b" * len(word), end="", flush=True)


def build(folder, options, targets=()):
    if not os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        code, out = run(["meson", "setup", folder, *options])
        if code != 0:
            return 0, 1, out
    elif options:
        run(["meson", "configure", folder] + options)
    code, out = run(["ninja", "-C", folder] + list(targets))
    return (1, 0, out) if code == 0 else (0, 1, why_not_built(out, code))


def why_not_built(out, code):
    lines = out.strip().split("\n")
    full = [line for line in lines if "No space left on device" in line]
    if full:
        return f"the disk is full: {free_mb()} MB are free in {ROOT}\n{full[0]}"
    told = [line for line in lines[:-1] if "error" in line or "FAILED" in line or "warning" in line]
    return "\n".join([*told, lines[-1], f"ninja: exit {code}"])


def free_mb():
    return shutil.disk_usage(ROOT).free >> 20


def folder_mb(name):
    files = (os.path.join(at, file) for at, _, names in os.walk(os.path.join(ROOT, name)) for file in names)
    return sum(os.lstat(path).st_blocks for path in files) >> 11


def missing_mb(names):
    """How much more disk these builds need than is free; 0 or less: enough."""
    return sum(max(0, BUILD_MB[name] - folder_mb(name)) for name in names) - free_mb()


def flake8():
    code, out = run(["flake8"])
    return (1, 0, out) if code == 0 else (0, max(1, len(re.findall(r"^\S+:\d+:\d+: ", out, re.M))), out)


def counted(command, seconds=None):
    """Runs a program whose last matching line is `N passed, N failed`."""
    code, out = run(command, seconds)
    lines = re.findall(r"^(\d+) passed, (\d+) failed", out, re.M)
    if not lines:
        return 0, 1, out
    passed, failed = map(int, lines[-1])
    return passed, failed if failed or code == 0 else 1, out


LEAK = "LeakSanitizer: detected memory leaks"


def leaks(out):
    """[test: report] of tests that passed for Criterion. LeakSanitizer looks when a test's process ends,
    which is after its [PASS] and before the next test begins."""
    parts = re.split(r"^\[RUN \] (\S+)$", out, flags=re.M)
    return [f"[LEAK] {name}: {said[said.index(LEAK):].strip()[:2000]}\n"
            for name, said in zip(parts[1::2], parts[2::2]) if LEAK in said and "[PASS]" in said]


def tested(program):
    """(passed, failed, what went wrong) of a program of Criterion's. A test that leaks has failed."""
    code, out = run([program, "--jobs=1", "--verbose"], 900)
    leaked, out = leaks(out), re.sub(r"^\[(RUN |PASS)\].*\n", "", out, flags=re.M)
    summary = re.findall(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)", out)
    if not summary:
        return 0, 1, f"{os.path.basename(program)}: no summary (exit {code})\n{out[-4000:]}"
    n_tests, passing, failing, crashing = map(int, summary[-1])
    bad = max(failing + crashing + len(leaked), 1 if code != 0 or n_tests == 0 else 0)
    shown = "".join(leaked) + (out[-4000:] if bad > len(leaked) else "")
    return passing - len(leaked), bad, f"{os.path.basename(program)}:\n{shown}" if bad else ""


def criterion():
    """The program that takes longest comes first."""
    programs = sorted((path
                       for path in glob.glob(os.path.join(ROOT, "build-asan/tests/**/test_*"), recursive=True)
                       if os.access(path, os.X_OK) and os.path.isfile(path)),
                      key=lambda path: (not path.endswith(LONGEST_TEST), path))
    if not programs:
        return 0, 1, "no test programs were built"
    return in_pool(tested, programs)


def in_pool(test, programs):
    """As many programs at a time as there are cores; the sums of what `test` says of each."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(test, programs))
    return (sum(row[0] for row in rows), sum(row[1] for row in rows),
            "\n".join(sorted(row[2] for row in rows if row[2])))


def stressed(program):
    """(passed, failed, what went wrong) of a stress program. They take seconds; stress_program takes runs."""
    seconds = STRESS_LONG_SECONDS if LONG else STRESS_SECONDS
    amount = str(1000 * (10 if LONG else 1)) if program.endswith("stress_program") else str(seconds)
    code, out = run([program, amount], 10 * seconds + 300)
    shown = "" if code == 0 else f"{os.path.basename(program)}: exit {code}\n{out[-4000:]}"
    return code == 0, code != 0, shown


def stress():
    programs = glob.glob(os.path.join(ROOT, "build-tsan/tests/stress/stress_*"))
    return in_pool(stressed, sorted(path for path in programs
                                    if os.path.isfile(path) and os.access(path, os.X_OK)))


def python(script, *arguments):
    return lambda: counted([sys.executable, script] + list(arguments))


SERVER, SANITIZED_SERVER, FAULT = "build/fxserve", "build-asan/fxserve", "build/tests/fault/libfault.so"
RECORD = "build/tests/fault/librecord.so"
# Of builds, with the MB that each takes, a little more than was measured.
BUILD_MB = {"build-asan": 1900, "build": 200, "build-tsan": 300}
BUILDS = tuple(BUILD_MB)
STEPS = [
    ("house", "layers, headers, size, words, format", python("tests/layering/house.py")),
    ("python", "Python: flake8 with the checks of .flake8", flake8),
    ("build-asan", "build with ASan and UBSan",
     lambda: build("build-asan", SANITIZED, ["all", "tests/compile/resnet18.safetensors"])),
    ("build", "build for release",
     lambda: build("build", ["-Dtests=disabled", "-Dwerror=true"], ["all", "tests/libtested.so"])),
    ("tidy", "clang's warnings, and the checks of .clang-tidy",
     python("tests/layering/tidy.py", "build-clang")),
    ("build-tsan", "build with ThreadSanitizer", lambda: build("build-tsan", THREADS)),
    ("unit", "unit tests and goldens (ASan, UBSan)", criterion),
    ("malformed", "malformed requests (ASan, UBSan)", python("tests/service/malformed.py", SANITIZED_SERVER)),
    ("service", "service scenarios (ASan, UBSan)", python("tests/service/run.py", SANITIZED_SERVER)),
    ("limits", "every limit, hit and just missed (ASan, UBSan)",
     python("tests/service/limits.py", SANITIZED_SERVER)),
    ("service-tsan", "service scenarios (TSan)", python("tests/service/run.py", "build-tsan/fxserve")),
    ("replay", "fuzz corpus and mutants of it (ASan, UBSan)", python("tests/fuzz/replay.py", "build-asan")),
    ("operations", "metrics, logs, signals (ASan, UBSan)",
     python("tests/service/operations.py", SANITIZED_SERVER)),
    ("tracing", "spans for a collector, and collectors that fail (ASan, UBSan)",
     python("tests/service/tracing.py", SANITIZED_SERVER)),
    ("probes", "raw HTTP probes, alone and behind nginx",
     python("tests/service/probes.py", SANITIZED_SERVER)),
    ("long-bodies", "long bodies: whole, cut, pipelined, given up (ASan, UBSan)",
     python("tests/service/long_bodies.py", SANITIZED_SERVER)),
    ("odd-places", "weights at odd places of a form (ASan, UBSan)",
     python("tests/service/odd_places.py", SANITIZED_SERVER)),
    ("unix", "a socket in the file system (ASan, UBSan)",
     python("tests/service/unix.py", SANITIZED_SERVER)),
    ("door", "HTTPS, encodings, tokens, clients that leave (ASan, UBSan)",
     python("tests/service/door.py", SANITIZED_SERVER)),
    ("warming-tsan", "readiness waits for declared warm-ups (TSan)",
     python("tests/service/warming.py", "build-tsan/fxserve")),
    ("archives", "mutants of .pt2 archives (ASan, UBSan)",
     python("tests/service/archives.py", SANITIZED_SERVER)),
    ("malformed-memory", "malformed requests give memory back",
     python("tests/service/malformed.py", SERVER, "--memory")),
    ("blame", "runs that fail name their node, in every way of running (ASan)",
     python("tests/service/blame.py", SANITIZED_SERVER)),
    ("comparing", "changes of one weight, eps or operator are found by a comparison (ASan)",
     python("tests/service/comparing.py", SANITIZED_SERVER)),
    ("agreement", "parameters: as accepted, as in OpenAPI, as in docs",
     python("tests/service/agreement.py", SERVER)),
    ("oip", "the sentences of the Open Inference Protocol (ASan, UBSan)",
     python("tests/oip/conformance.py", SANITIZED_SERVER)),
    ("failing-leaks", "requests that fail at each step, per route: leaks (ASan)",
     python("tests/load/failing.py", SANITIZED_SERVER, "--leaks")),
    ("models", "models over HTTP, JSON and b64", python("tests/service/models.py", SERVER)),
    ("roundtrip", "graphs out of the server and back in", python("tests/service/roundtrip.py", SERVER)),
    ("sets", "models in every instruction set of this machine", python("tests/service/sets.py", SERVER)),
    ("crash", "kill -9 during upload, 100 times", python("tests/service/crash.py", SERVER)),
    ("files", "files that fail at the n-th call", python("tests/fault/files.py", SERVER, FAULT)),
    ("crashes", "every state that a crash may leave", python("tests/fault/crashes.py", SERVER, RECORD)),
    ("memory", "memory that runs out, sampled", python("tests/fault/memory.py", SERVER, FAULT)),
    ("pieces", "pieces of C in docs/operators.md compile in their places",
     python("tests/layering/operators_doc.py", "build")),
    ("readme", "examples of README and docs", python("tests/service/readme.py", SERVER)),
    ("deploy", "deployment files fit the program", python("tests/deploy/manifests.py", SERVER)),
    ("install", "what meson install brings: page, completion, unit, documents",
     python("tests/deploy/install.py", "build")),
    ("release", "packages of a release: same bytes twice, run where they are and in fresh roots",
     python("tests/deploy/release.py", "build")),
    ("library", "libfxserve: symbols, examples, ctypes, DLPack, valgrind",
     python("tests/deploy/library.py", "build")),
    ("tracing-tsan", "spans for a collector, and collectors that fail (TSan)",
     python("tests/service/tracing.py", "build-tsan/fxserve")),
    ("tolerance", "precisions chosen within a tolerance, and what is said of them",
     python("tests/service/tolerance.py", SERVER)),
    ("failing", "3,000 failing calls of each kind: memory", python("tests/load/failing.py", SERVER)),
    ("bits", "same program, same bits, under load", python("tests/service/bits.py", SERVER)),
    ("batching", "runs that are run as one have their own bits", python("tests/service/batching.py", SERVER)),
    ("fairness", "graphs take turns, beside a saturated one", python("tests/service/fairness.py", SERVER)),
    ("warming", "readiness waits for declared warm-ups", python("tests/service/warming.py", SERVER)),
    ("memory-ladder", "near the memory limit: caches, then uploads, then runs",
     python("tests/service/memory.py", SERVER)),
    ("deleting", "deleted models give their memory back", python("tests/load/deleting.py", SERVER)),
    ("loading", "1,000 loads and unloads of a model: memory", python("tests/load/loading.py", SERVER)),
    ("disconnects", "2,000 clients that vanish", python("tests/load/disconnects.py", SERVER)),
    ("deadlines", "deadlines within one node", python("tests/load/deadlines.py", SERVER)),
    ("stopping", "SIGTERM under load, a stalled log", python("tests/load/stopping.py", SERVER)),
    ("reconnecting", "SIGTERM and clients that come back", python("tests/load/reconnecting.py", SERVER)),
    ("histories", "random concurrent calls against a model",
     python("tests/load/histories.py", SERVER, "20000")),
    ("load", "load, shortened", python("tests/load/load.py", SERVER)),
    ("stress", "stress programs (TSan)", stress),
    ("batching-tsan", "runs that are run as one (TSan)",
     python("tests/service/batching.py", "build-tsan/fxserve", "60")),
]
# Steps that take all cores, or measure times or memory while nothing else runs. The others run beside
# each other, as many at a time as there are cores.
ALONE = {*BUILDS, "tidy", "unit", "tolerance", "failing", "bits", "batching", "fairness", "warming",
         "memory-ladder", "deleting", "loading", "disconnects", "deadlines", "stopping", "reconnecting",
         "histories", "load", "stress", "batching-tsan"}
# What takes longer than ./check should. Steps of STEPS that are not here have no long form.
LONG_STEPS = [step for step in STEPS if step[0] in BUILDS] + [
    ("tidy", "clang-tidy with the static analyser",
     python("tests/layering/tidy.py", "build-clang", "--long")),
    ("replay", "fuzz corpus, 1,000 mutants of each input",
     python("tests/fuzz/replay.py", "build-asan", "1000")),
    ("archives", "100,000 mutants of .pt2 archives",
     python("tests/service/archives.py", SANITIZED_SERVER, "--total", "100000")),
    ("malformed-memory", "malformed requests give memory back",
     python("tests/service/malformed.py", SERVER, "--memory")),
    ("failing", "100,000 failing calls of each kind: memory",
     python("tests/load/failing.py", SERVER, "--long")),
    ("crash", "kill -9 during upload, 1,000 times", python("tests/service/crash.py", SERVER, "1000")),
    ("files", "files that fail at the n-th call, all n",
     python("tests/fault/files.py", SERVER, FAULT, "--long")),
    ("memory", "memory that runs out, all n", python("tests/fault/memory.py", SERVER, FAULT, "--long")),
    ("disconnects", "100,000 clients that vanish", python("tests/load/disconnects.py", SERVER, "100000")),
    ("deadlines", "deadlines within one node, all operators",
     python("tests/load/deadlines.py", SERVER, "--long")),
    ("stopping", "SIGTERM under load, 50 times", python("tests/load/stopping.py", SERVER, "50")),
    ("reconnecting", "SIGTERM and clients that come back, 20 times",
     python("tests/load/reconnecting.py", SERVER, "20")),
    ("histories", "random concurrent calls against a model, 100,000",
     python("tests/load/histories.py", SERVER, "100000")),
    ("load", "overload, idle, slow, neighbours",
     python("tests/load/load.py", SERVER, "--long", "overload", "idle", "slow", "neighbours", "upload",
            "burst", "braces")),
    ("soak", "every route and failing graphs, 2 h, a million requests",
     python("tests/load/load.py", SERVER, "--long", "soak")),
    ("stress", "stress programs (TSan), 5 minutes each", stress),
    ("coverage", "what the fuzz corpus reaches",
     python("tools/dev/fuzz.py", "--coverage", "--results", RESULTS)),
    ("fuzz", "fuzz targets, 10 minutes each",
     python("tools/dev/fuzz.py", "--seconds", "600", "--results", RESULTS)),
    ("image", "the image's content, built and run", python("tests/deploy/image.py")),
    ("starts", "each way to start in fresh roots: Debian 12 and 13, one of musl, the image's",
     python("tests/deploy/starts.py", "build")),
    ("arm64", "cross build for arm64: kernels, goldens and models under qemu-user",
     python("tests/deploy/arm64.py")),
    ("distros", "from nothing on Debian 12 and 13", python("tests/deploy/distros.py")),
]


def note(name, words, passed, failed, seconds):
    """The step itself as a line of the results."""
    command = f"./check --long {name}"
    row = {"name": f"checks: {words}", "figure": f"{passed:,} passed, {failed:,} failed, {seconds:.0f} s",
           "aim": "0 failed", "met": failed == 0, "command": command}
    os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
    with open(RESULTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def groups(steps):
    """Steps one after another; neighbours that may run beside each other are one group."""
    rows = []
    for step in steps:
        if rows and not LONG and step[0] not in ALONE and rows[-1][0][0] not in ALONE:
            rows[-1].append(step)
        else:
            rows.append([step])
    return rows


def timed(step):
    began = time.time()
    passed, failed, out = step[2]()
    return passed, failed, out, time.time() - began


def run_group(group):
    """(passed, failed). A step that is alone is named when it begins, others when they have ended."""
    total_passed = total_failed = 0
    if len(group) == 1:
        print(f"{group[0][1]:46s} ", end="", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(timed, step): step for step in group}
        for ended in concurrent.futures.as_completed(running):
            name, words, _ = running[ended]
            passed, failed, out, seconds = ended.result()
            total_passed, total_failed = total_passed + passed, total_failed + failed
            print("" if len(group) == 1 else f"{words:46s} ", end="")
            print(f"{'FAILED' if failed else 'ok':7s}{passed:6d} passed {failed:4d} failed {seconds:7.1f} s",
                  flush=True)
            show_output(out, failed)
            if LONG and name not in BUILDS:
                note(name, words, passed, failed, seconds)
    return total_passed, total_failed


def show_output(out, failed):
    if failed:
        print(out[-12000:])
    else:  # a step says so itself
        print("".join(f"  {line}\n" for line in out.split("\n") if "left out" in line), end="")


def main():
    global LONG
    wanted = [word for word in sys.argv[1:] if word != "--long"]
    LONG = "--long" in sys.argv
    steps = LONG_STEPS if LONG else STEPS
    if wanted == ["--list"]:
        for name, words, _ in steps:
            print(f"{name:18s} {words}")
        return 0
    unknown = [name for name in wanted if name not in [step[0] for step in steps]]
    if unknown:
        print(f"no step {unknown[0]}; ./check --list names them")
        return 2
    if LONG:
        ENVIRONMENT["FXSERVE_RESULTS"] = RESULTS
        if os.path.exists(RESULTS):
            os.remove(RESULTS)
    missing = missing_mb([name for name in BUILDS if not wanted or name in wanted])
    if missing > 0:
        print(f"the builds need {free_mb() + missing} MB of disk in {ROOT}, {free_mb()} MB are free\n"
              "0 passed, 1 failed")
        return 1
    total_passed = total_failed = 0
    start = time.time()
    for group in groups([step for step in steps if not wanted or step[0] in wanted]):
        passed, failed = run_group(group)
        total_passed, total_failed = total_passed + passed, total_failed + failed
    if LONG and os.path.exists(RESULTS):
        subprocess.run([sys.executable, "tests/report.py", RESULTS], cwd=ROOT, check=False)
    print(f"{time.time() - start:.0f} s, builds of {sum(map(folder_mb, BUILDS))} MB")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or total_passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
