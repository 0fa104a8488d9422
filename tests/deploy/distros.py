# SPDX-License-Identifier: Apache-2.0
"""From nothing on each Debian that is supported: distros.py [--folder FOLDER] [SUITE...]

For each SUITE (bookworm, trixie) a system is made by debootstrap, with nothing but what every
Debian has, and the tracked files are copied into it. There, as root and without sudo:

  meson        without the libraries, `meson setup` ends in one sentence that names them and their
               packages
  quickstart   installs, builds and classifies ten images
  check        ends with no failure

Prints what was found and how long each took. Needs root, debootstrap and a package source of Debian
on this machine. --folder keeps the systems (FOLDER/SUITE); one that is there is used again, without
the first check. The last line is `N passed, N failed`.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = ("bookworm", "trixie")
PLACE = "/srv/fxserve"  # of the files, in the system
QUICKSTART_SECONDS, CHECK_SECONDS = 1800, 3 * 3600
# $SYSTEM: its root. Mounts and processes end with the command.
INSIDE = """
set -e
for folder in /dev /sys; do mount --rbind "$folder" "$SYSTEM$folder"; done
mount -t tmpfs none "$SYSTEM/dev/shm"
mount -t proc none "$SYSTEM/proc"
paths=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$SYSTEM" env -i HOME=/root PATH=$paths sh -c "cd $PLACE && $COMMAND"
"""


class Failed(Exception):
    pass


def inside(system, command, seconds):
    """(exit code, output) of a shell command in a system."""
    environment = dict(os.environ, SYSTEM=system, PLACE=PLACE, COMMAND=command)
    try:
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation",
                               "private", "sh", "-c", INSIDE], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        return 124, (late.stdout or b"").decode(errors="replace") + f"\nstill running after {seconds} s"
    return done.returncode, done.stdout.decode(errors="replace")


def sources():
    """URIs of this machine's package sources: (archive, security archive or None)."""
    form = "$(SITE) $(REPO_URI) $(LABEL)"
    lines = subprocess.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    found = {label: uri for line in lines if line for _, uri, label in [line.split(" ", 2)]}
    if "Debian" not in found:
        raise Failed("no package source of Debian on this machine")
    return found["Debian"], found.get("Debian-Security")


def make_system(suite, system):
    archive, security = sources()
    done = subprocess.run(["debootstrap", "--variant=minbase", suite, system, archive],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stdout[-2000:])
    lines = ([f"deb {archive} {suite} main", f"deb {archive} {suite}-updates main"]
             + ([f"deb {security} {suite}-security main"] if security else []))
    with open(os.path.join(system, "etc/apt/sources.list"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(os.path.join("/etc", name), os.path.join(system, "etc", name))


def copy_files(system):
    """Tracked files as they are here."""
    place = system + PLACE
    shutil.rmtree(place, ignore_errors=True)
    paths = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE,
                           check=True).stdout.decode().split("\0")
    for path in paths:
        if os.path.isfile(os.path.join(ROOT, path)):
            os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), os.path.join(place, path))


def check_sentence(system):
    """What somebody meets who starts with meson."""
    code, out = inside(system, "apt-get update -qq && apt-get install -y -qq --no-install-recommends "
                       "gcc libc6-dev meson pkg-config", 600)
    if code != 0:
        raise Failed(out[-2000:])
    code, out = inside(system, "meson setup /tmp/build", 300)
    sentences = re.findall(r"fxserve needs [^\n]*", out)
    if (code == 0 or len(sentences) != 1 or "libmicrohttpd-dev" not in sentences[0]
        or "libdnnl-dev" not in sentences[0]):
        raise Failed(f"exit code {code}: {out[-2000:]}")


def check_quickstart(system):
    code, out = inside(system, "./quickstart", QUICKSTART_SECONDS)
    if code != 0 or "10 of 10 digits right" not in out:
        raise Failed(f"exit code {code}: {out[-4000:]}")
    return inside(system, "build/fxserve --version", 60)[1].strip()


def check_check(system):
    code, out = inside(system, "./check", CHECK_SECONDS)
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", out, re.M)
    if code != 0 or not counts or counts[-1][1] != "0":
        raise Failed(f"exit code {code}: {out[-12000:]}")
    left_out = [line.strip() for line in out.split("\n") if "left out" in line]
    return "\n".join([f"{counts[-1][0]} passed, {counts[-1][1]} failed"] + left_out)


def note(suite, name, figure, met):
    """A line for tests/REPORT.md."""
    if "FXSERVE_RESULTS" not in os.environ:
        return
    row = {"name": f"{suite}: {name} from nothing", "figure": figure, "aim": "works", "met": met,
           "command": "./check --long distros"}
    with open(os.environ["FXSERVE_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def try_suite(suite, folder):
    system = os.path.join(folder, suite)
    passed = failed = 0
    checks = [("quickstart", check_quickstart), ("check", check_check)]
    if not os.path.exists(os.path.join(system, "usr/bin/apt-get")):
        make_system(suite, system)
        checks.insert(0, ("meson", check_sentence))
    copy_files(system)
    for name, check in checks:
        began = time.time()
        try:
            found, ok = check(system) or "", True
        except Failed as problem:
            found, ok = str(problem), False
        passed, failed = passed + ok, failed + (not ok)
        print(f"{'ok    ' if ok else 'FAILED'} {suite}: {name}, {time.time() - began:.0f} s", flush=True)
        print("".join(f"  {line}\n" for line in found.split("\n") if line), end="", flush=True)
        first = found.split("\n")[0]
        note(suite, name, f"{time.time() - began:.0f} s" + (f"; {first}" if name == "check" and ok else ""),
             ok)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder")
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=SUITES)
    wanted = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("distros.py must be root and wants debootstrap: apt-get install debootstrap", file=sys.stderr)
        return 2
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="fxserve-distros-") as scratch:
        for suite in wanted.suites:
            try:
                counts = try_suite(suite, wanted.folder or scratch)
            except (Failed, OSError, subprocess.CalledProcessError) as problem:
                print(f"FAILED {suite}: {problem}")
                counts = 0, 1
            passed, failed = passed + counts[0], failed + counts[1]
            if wanted.folder is None:
                shutil.rmtree(os.path.join(scratch, suite), ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
