# SPDX-License-Identifier: Apache-2.0
"""Cross-compiles for arm64 and tests it under qemu-user: arm64.py [--folder FOLDER] [--archive FILE]

A Debian 12 system is made by debootstrap, so that this machine's packages stay as they are: the
cross compiler, qemu-user, and the libraries as :arm64 packages. The tracked files are copied into
it and built with tools/dev/arm64.ini. There, on the emulated CPU:

  vectors   the inner loops of products and pointwise rows hold NEON instructions
  tests     tests of core/kernels, and the operators' golden cases
  models    the models of tests/models over HTTP (tests/service/sets.py)
  image     the files of the container image, which answer in a root that has nothing else; buildah
            makes an image for linux/arm64 of them (left out if it is not here), --archive keeps it

Needs root, debootstrap and a package source of Debian on this machine. --folder keeps the system
(FOLDER/arm64) and its build; one that is there is used again. The last line is `N passed, N
failed`.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

from distros import PLACE, ROOT, Failed, copy_files, inside, make_system

BUILD, PROGRAM, IMAGE = "/srv/build-arm64", "/srv/fxserve-arm64", "/srv/image-arm64"
TOOLS = "crossbuild-essential-arm64 qemu-user-static meson ninja-build pkg-config python3"
LIBRARIES = ("libmicrohttpd-dev libjansson-dev libuv1-dev libdnnl-dev libgnutls28-dev nettle-dev zlib1g-dev "
             "libjpeg62-turbo-dev libspng-dev")
INSTALL_SECONDS, BUILD_SECONDS, TEST_SECONDS = 1800, 3600, 1800
# Functions whose loops must not be scalar, by object file.
VECTORS = {
    "matmul_tile": ["f32_plain_product", "f64_plain_product"],
    "pointwise_binary": ["add_F32", "mul_F32"],
    "softmax": ["row_exp_f32_plain"],
}
# Vector arithmetic on four floats or two doubles.
NEON = re.compile(r"\b(fadd|fmul|fmla|fsub|fdiv|fmax|fmaxnm)\s+v\d+\.(4s|2d)")


def must(system, command, seconds):
    code, out = inside(system, command, seconds)
    if code != 0:
        raise Failed(f"exit code {code}: {out[-4000:]}")
    return out


def make(folder):
    system = os.path.join(folder, "arm64")
    if not os.path.exists(os.path.join(system, "usr/bin/apt-get")):
        make_system("bookworm", system)
    if not os.path.exists(os.path.join(system, "usr/bin/qemu-aarch64-static")):
        os.makedirs(system + PLACE, exist_ok=True)
        packages = " ".join([TOOLS] + [name + ":arm64" for name in LIBRARIES.split()])
        must(system, "dpkg --add-architecture arm64 && apt-get update -qq && "
             "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends " + packages,
             INSTALL_SECONDS)
    return system


def build(system):
    copy_files(system)
    if not os.path.exists(system + BUILD + "/build.ninja"):
        must(system, f"meson setup {BUILD} --cross-file tools/dev/arm64.ini -Dplain_criterion=true "
             "-Dtests=enabled -Dwerror=true", 600)
    names = must(system, f"ninja -C {BUILD} -t targets all", 60)
    tests = re.findall(r"^(tests/kernels/test_\w+|tests/ops/test_ops_golden):", names, re.M)
    must(system, f"ninja -C {BUILD} fxserve {' '.join(tests)}", BUILD_SECONDS)
    with open(system + PROGRAM, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec qemu-aarch64-static {BUILD}/fxserve "$@"\n')
    os.chmod(system + PROGRAM, 0o755)
    return tests


def scalar_loops(system):
    """Functions of VECTORS without NEON arithmetic."""
    found = []
    for name, functions in VECTORS.items():
        text = must(system, f"aarch64-linux-gnu-objdump -d --no-show-raw-insn "
                    f"$(find {BUILD}/core/kernels -name '*_{name}.c.o')", 120)
        bodies = dict(re.findall(r"^[0-9a-f]+ <([\w.]+)>:\n((?:.+\n)*)", text, re.M))
        found += [function for function in functions
                  if not any(NEON.search(body) for label, body in bodies.items()
                             if label.split(".")[0] == function)]
    return found


def run_test(system, test):
    """(passed, failed, output) of one test program on the emulated CPU."""
    code, out = inside(system, f"qemu-aarch64-static {BUILD}/{test}", TEST_SECONDS)
    counts = re.findall(r"Tested: (\d+) \| Passing: (\d+)", out)
    tested, passing = map(int, counts[-1]) if counts else (0, 0)
    return passing, max(tested - passing, 1 if code != 0 or tested == 0 else 0), out


def run_models(system):
    _, out = inside(system, f"python3 tests/service/sets.py {PROGRAM}", TEST_SECONDS)
    counts = re.findall(r"^(\d+) passed, (\d+) failed", out, re.M)
    return (*map(int, counts[-1]), out) if counts else (0, 1, out)


def check_image(system, archive):
    """(passed, failed, output)"""
    content, shown = system + IMAGE, []
    must(system, f"rm -rf {IMAGE} {IMAGE}-run && STRIP=aarch64-linux-gnu-strip "
         "LDD='qemu-aarch64-static /lib/ld-linux-aarch64.so.1 --list' "
         f"deploy/collect-files {BUILD}/fxserve {IMAGE} && cp -a {IMAGE} {IMAGE}-run", 120)
    must(system, f"cp /usr/bin/qemu-aarch64-static {IMAGE}-run && cd {IMAGE}-run && mkdir proc dev && "
         "mount -t proc none proc && mount --rbind /dev dev && cd - >/dev/null && python3 -c \"import sys; "
         "sys.path[:0] = ['tests/deploy', 'tests/service']; import release; release.check_answer("
         f"['chroot', '{IMAGE}-run', '/qemu-aarch64-static', '/usr/bin/fxserve'])\"", 300)
    if shutil.which("buildah") is None:
        return 1, 0, "buildah is not here: the image is left out"
    tag = "localhost/fxserve:arm64"
    with tempfile.TemporaryDirectory(prefix="fxserve-arm64-") as scratch:
        path = archive or os.path.join(scratch, "image.tar")
        done = subprocess.run([os.path.join(ROOT, "deploy", "build-image"), "--tag", tag, "--files", content,
                               "--platform", "linux/arm64", "--archive", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        shown.append(done.stdout)
        found = None
        if done.returncode == 0:
            with tarfile.open(path) as image:
                (row, ) = json.load(image.extractfile("manifest.json"))
                found = json.load(image.extractfile(row["Config"]))
    right = found is not None and found["architecture"] == "arm64" and \
        found["config"]["Entrypoint"] == ["/usr/bin/fxserve"]
    return 1 + right, 1 - right, "\n".join([*shown, str(found)])


def try_all(folder, archive):
    system = make(folder)
    tests = build(system)
    scalar = scalar_loops(system)
    steps = [("vectors", lambda: (1 - bool(scalar), int(bool(scalar)), f"no NEON in {', '.join(scalar)}"))]
    steps += [(test, lambda test=test: run_test(system, test)) for test in tests]
    steps += [("models", lambda: run_models(system)), ("image", lambda: check_image(system, archive))]
    passed = failed = 0
    for name, step in steps:
        began = time.time()
        good, bad, out = step()
        passed, failed = passed + good, failed + bad
        print(f"{'FAILED' if bad else 'ok    '} {name}, {time.time() - began:.0f} s", flush=True)
        if bad:
            print(out[-4000:], flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder")
    parser.add_argument("--archive")
    wanted = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("arm64.py must be root and wants debootstrap: apt-get install debootstrap", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="fxserve-arm64-") as scratch:
        try:
            passed, failed = try_all(wanted.folder or scratch, wanted.archive)
        except (Failed, OSError) as problem:
            print(f"FAILED {problem}")
            passed, failed = 0, 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
