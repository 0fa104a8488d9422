# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of tests/fuzz under libFuzzer (Debian: clang, libclang-rt-14-dev, llvm):
fuzz.py [--seconds 20] [--build build-fuzz] [--work FOLDER] [--coverage] [TARGET...].

Builds them with clang, ASan and UBSan (core/kernels is gcc's, of `build` if that is here), starts
each from the committed corpus and the seeds of tests/fuzz/seeds.py, as many at a time as there are
cores, and prints one line per target: seconds, executions, features, crashes. An input that crashes
goes to tests/fuzz/corpus/TARGET/, so that ./check replays it from then on. --work keeps what was
found for the next time; --coverage runs no fuzzer: it prints which share of the edges of each
folder the corpus and the seeds (and what lies in --work) reach. --shrink BYTES puts so much of what
keeps the coverage into the committed corpus. The last line is `N passed, N failed`, one per target.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
TARGETS = ["archive", "expression", "fx_json", "graph", "http", "image", "json", "model", "multipart", "npy",
           "number", "record", "route", "rules", "run", "safetensors", "steps"]
OPTIONS = ["-Dfuzz=true", "-Dopenmp=false", "-Dtests=disabled", "-Db_sanitize=address,undefined",
           "-Db_lundef=false", "-Dbuildtype=debugoptimized"]
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1",
                   UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
KERNELS = "core/kernels/libkernels.a"
MOST_CRASHES = 5
BAD = ("crash-", "timeout-", "oom-", "leak-")
MOST_FILES = 48
INPUT_SECONDS, MEMORY_MB, MOST_BYTES = 25, 3000, 20000


def build_kernels(folder):
    """The kernels are gcc's; no input reaches them but as tensors. Those of a release build do."""
    release = os.path.join(ROOT, "build")
    if os.path.exists(os.path.join(release, KERNELS)):
        folder = release
    elif not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, ROOT, "-Dtests=disabled"],
                       env=dict(ENVIRONMENT, CC="gcc"), stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["ninja", "-C", folder, KERNELS], stdout=subprocess.DEVNULL, check=True)
    return os.path.join(os.path.abspath(folder), KERNELS)


SEED = 0


def build(folder, targets):
    kernels = build_kernels(folder + "-kernels")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, ROOT, f"-Dfuzz_kernels={kernels}"] + OPTIONS,
                       env=dict(ENVIRONMENT, CC="clang"), stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run(["ninja", "-C", folder] + [f"tests/fuzz/fuzz_{name}" for name in targets],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print("\n".join(line for line in done.stdout.split("\n") if "error" in line or "FAILED" in line))
    return done.returncode == 0


def once(program, name, seconds, work, crashes, log):
    """One run of a fuzzer, until the time is over or an input crashes: (executions, features)."""
    before = set(os.listdir(crashes))
    command = [program, f"-max_total_time={max(1, int(seconds))}", f"-timeout={INPUT_SECONDS}",
               f"-rss_limit_mb={MEMORY_MB}", f"-max_len={MOST_BYTES}", f"-artifact_prefix={crashes}/",
               f"-seed={SEED}", "-print_final_stats=1", work]
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT, cwd=crashes,
                              check=False).returncode
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    found = re.findall(r"stat::number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\s", text, re.M)
    features = re.findall(r" ft: (\d+)", text)
    if code != 0 and set(os.listdir(crashes)) == before:
        with open(os.path.join(crashes, f"no-input-{name}"), "wb") as file:
            file.write(text[-2000:].encode())
    return int(found[-1]) if found else 0, int(features[-1]) if features else 0


def summary_of(log):
    """What a sanitizer or a property said, in one line."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file
                 if re.search(r"does not hold|runtime error|ERROR: |SUMMARY", line)]
    return lines[0][:300] if lines else "no message"


def fuzz(program, name, seconds, work):
    executions, features, problems = 0, 0, []
    os.makedirs(work, exist_ok=True)
    os.makedirs(os.path.join(CORPUS, name), exist_ok=True)
    for path in os.listdir(os.path.join(CORPUS, name)):
        # those are replayed by ./check; here the first of them would end each run
        if not path.startswith(BAD):
            shutil.copy(os.path.join(CORPUS, name, path), work)
    with tempfile.TemporaryDirectory(prefix="fxserve-fuzz-") as crashes:
        end, log = (time.monotonic() + seconds,
                    os.path.join(crashes, "..", f"fxserve-fuzz-{name}-{os.getpid()}.log"))
        while time.monotonic() < end and len(problems) < MOST_CRASHES:
            known = set(os.listdir(crashes))
            n, features = once(program, name, end - time.monotonic(), work, crashes, log)
            executions += n
            for path in sorted(set(os.listdir(crashes)) - known):
                problems.append(f"{path}: {summary_of(log)}")
                if not path.startswith("no-input"):
                    shutil.copy(os.path.join(crashes, path), os.path.join(CORPUS, name, path[:24]))
            if set(os.listdir(crashes)) == known:
                break
        os.remove(log)
    return executions, features, problems


def coverage(program, name, work):
    """{folder: [edges reached, edges]} of one run over all inputs that are known. The kernels are
    gcc's and have no edges."""
    corpus = os.path.join(CORPUS, name)
    command = [program, "-runs=0", "-print_coverage=1", f"-timeout={INPUT_SECONDS}",
               f"-rss_limit_mb={MEMORY_MB}", f"-max_len={MOST_BYTES}"]
    symbolizer = shutil.which("llvm-symbolizer") or shutil.which("llvm-symbolizer-14")
    environment = dict(ENVIRONMENT, ASAN_OPTIONS=ENVIRONMENT["ASAN_OPTIONS"]
                       + (f":external_symbolizer_path={symbolizer}" if symbolizer else ""))
    done = subprocess.run(command + [folder for folder in (work, corpus) if os.path.isdir(folder)],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", cwd=work, check=False)
    folders = {}
    for reached, edges, path in re.findall(r"^(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) "
                                           r"\S+ (\S+?):\d+", done.stdout, re.M):
        parts = os.path.relpath(os.path.realpath(os.path.join(os.path.dirname(program), path)),
                                ROOT).split(os.sep)
        folder = "/".join(parts[:2]) if parts[0] == "core" and len(parts) > 2 else parts[0]
        row = folders.setdefault(folder, [0, 0])
        row[0], row[1] = row[0] + int(reached), row[1] + int(edges)
    return folders


def show_coverage(name, folders, results):
    reached, edges = (sum(row[k] for folder, row in folders.items() if folder != "tests") for k in (0, 1))
    shares = ", ".join(f"{folder} {100 * row[0] / row[1]:.0f} %" for folder, row in sorted(folders.items())
                       if folder != "tests" and row[1] > 0 and row[0] > 0)
    print(f"{name:12s} {reached:7d} of {edges:7d} edges  "
          f"{shares or 'none was found: is llvm-symbolizer here?'}", flush=True)
    if results:
        row = {"name": f"fuzz coverage {name}", "figure": f"{reached:,} of {edges:,} edges: {shares}",
               "aim": "-", "met": True, "command": f"python3 tools/dev/fuzz.py --coverage {name}"}
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def shrink(program, name, work, n_bytes):
    """Into the committed corpus: of the inputs that keep the coverage of the work folder as many as
    fit into n_bytes, small and large ones alike."""
    with tempfile.TemporaryDirectory(prefix="fxserve-fuzz-") as merged:
        subprocess.run([program, "-merge=1", f"-timeout={INPUT_SECONDS}", merged, work],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, cwd=merged,
                       check=False)
        paths, total = sorted(os.listdir(merged)), 0  # named by their hashes: a fair draw
        for path in paths[:MOST_FILES]:
            size = os.path.getsize(os.path.join(merged, path))
            if size <= n_bytes // 8 and total + size <= n_bytes:
                shutil.copy(os.path.join(merged, path), os.path.join(CORPUS, name, path[:16]))
                total += size


def try_target(options, name, work):
    """Fuzzes one target, or shows its coverage; whether that went well."""
    program = os.path.abspath(os.path.join(options.build, "tests", "fuzz", f"fuzz_{name}"))
    folder = os.path.join(work, name)
    if options.coverage:
        os.makedirs(folder, exist_ok=True)
        folders = coverage(program, name, folder)
        show_coverage(name, folders, options.results)
        return bool(folders)
    began = time.monotonic()
    executions, features, problems = fuzz(program, name, options.seconds, folder)
    took = time.monotonic() - began
    lines = [f"{'FAILED' if problems else 'ok    '} {name:12s} {took:6.0f} s {executions:10d} "
             f"executions {features:7d} features {len(problems)} crashes",
             *("  " + problem for problem in problems)]
    print("\n".join(lines), flush=True)
    if options.results:
        row = {"name": f"fuzz {name}", "figure": f"{executions:,} executions in {took:.0f} "
               f"s, {len(problems)} crashes", "aim": "0 crashes", "met": not problems,
               "command": f"python3 tools/dev/fuzz.py --seconds {options.seconds} {name}"}
        with open(options.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    if options.shrink:
        shrink(program, name, folder, options.shrink)
    return not problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--build", default=os.path.join(ROOT, "build-fuzz"))
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0: another one each time")
    parser.add_argument("--work")
    parser.add_argument("--results", help="a file that gets one JSON line per target")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--shrink", type=int, default=0, metavar="BYTES")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    global SEED
    SEED = options.seed
    targets = options.targets or TARGETS
    for name in targets:
        if name not in TARGETS:
            print(f"no target {name}; there are {', '.join(TARGETS)}")
            return 2
    if shutil.which("clang") is None:
        print("clang is not here: apt-get install clang libclang-rt-14-dev")
        print("0 passed, 0 failed")
        return 0
    if not build(options.build, targets):
        print(f"0 passed, {len(targets)} failed")
        return 1
    with tempfile.TemporaryDirectory(prefix="fxserve-fuzz-") as own:
        work = options.work or own
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "fuzz", "seeds.py"), work], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            good = list(pool.map(lambda name: try_target(options, name, work), targets))
    passed, failed = good.count(True), good.count(False)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
