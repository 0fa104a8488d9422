# SPDX-License-Identifier: Apache-2.0
"""Each way to start, in a fresh root, with the seconds from the package to the first answer:
starts.py BUILD [--folder FOLDER] [--root ARCHIVE]... Needs root.

The commands are those at the head of README.md. The tarball in a root of Debian's packages musl and
busybox-static, so without glibc; the image's files, read-only, as the image's user: release.py does
these two as well. Then Debian 12 and 13 made by debootstrap with nothing but what every Debian has:
the tarball, then the wheel in a virtual environment (numpy lies beside it, as after a download), and
in Debian 12, where it was built, the .deb that apt installs. --folder keeps these systems. --root is
another system to start the tarball in, such as Alpine's alpine-minirootfs-3.20.3-x86_64.tar.gz.
./quickstart from nothing is distros.py's. The last line is `N passed, N failed`.
"""
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
import distros
from image import USER, Image, environment_of
from release import IMAGES, MODEL, Packages, output, read
from service import ROOT, Failed, Server, Tally

ANSWER_SECONDS, PATHS = 120, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
AIM = 10  # seconds
# $SYSTEM: its root. Mounts and processes end with the command.
INSIDE = """
set -e
mount -t proc none "$SYSTEM/proc"
mount --rbind /dev "$SYSTEM/dev"
exec chroot "$SYSTEM" /bin/sh -c "$COMMAND"
"""


def command_of_readme(word):
    """The command of the block at README's head that has this word."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        lines = re.findall(r"^    (\S.*?)(?:  .*)?$", file.read().split("## ")[0], re.M)
    (line, ) = [line for line in lines if word in line]
    return line


def seconds_to_answer(system, command, path):
    """Runs a command that ends in `fxserve demo` there, in /srv, until it shows what a run answered."""
    for folder in ("proc", "dev"):
        os.makedirs(os.path.join(system, folder), exist_ok=True)
    settings = {"PATH": PATHS, "SYSTEM": system,
                "COMMAND": f"export PATH={path} HOME=/srv; cd /srv; {command}"}
    start, said = time.monotonic(), b""
    process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation",
                                "private", "sh", "-c", INSIDE], env=settings, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        while time.monotonic() - start < ANSWER_SECONDS:
            if not select.select([process.stdout], [], [], 1)[0]:
                continue
            more = os.read(process.stdout.fileno(), 65536)
            said += more
            if b'{"logits": [[{"index": 7, ' in said:
                return time.monotonic() - start
            if not more:
                break
        raise Failed(f"{command}: no answer: {said.decode(errors='replace')[-1000:]}")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


# ---- roots ----
def musl_system(folder):
    """A root of musl and busybox: no glibc, no dynamic loader but musl's."""
    system, packages = os.path.join(folder, "musl"), os.path.join(folder, "packages")
    for path in glob.glob(os.path.join(packages, "*.deb")):
        output("dpkg-deb", "-x", path, system)
    os.makedirs(os.path.join(system, "srv"))
    for name in output(os.path.join(system, "bin", "busybox"), "--list").split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(system, "bin", name))
    loaders = [path for path in glob.glob(f"{system}/**/ld-*", recursive=True)
               + glob.glob(f"{system}/**/libc.so.6", recursive=True) if "musl" not in path]
    if loaders or not glob.glob(f"{system}/lib/ld-musl-*"):
        raise Failed(f"this is no root of musl alone: {loaders}")
    return system


def unpacked(folder, archive):
    system = os.path.join(folder, "unpacked-" + os.path.basename(archive))
    with tarfile.open(archive) as file:
        file.extractall(system)
    os.makedirs(os.path.join(system, "srv"), exist_ok=True)
    return system


def debian(folder, suite):
    system = os.path.join(folder, suite)
    if not os.path.isdir(os.path.join(system, "usr")):
        distros.make_system(suite, system)
    shutil.rmtree(os.path.join(system, "srv"), ignore_errors=True)
    os.makedirs(os.path.join(system, "srv"))
    return system


def apt_install(system, *packages):
    output("chroot", system, "/usr/bin/env", f"PATH={PATHS}", "DEBIAN_FRONTEND=noninteractive", "sh", "-c",
           f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {' '.join(packages)}")


# ---- ways ----
def tarball(packages, system):
    shutil.copy(packages.path(r".*\.tar\.gz"), os.path.join(system, "srv"))
    return seconds_to_answer(system, command_of_readme("tar xzf"), PATHS)


def wheel(packages, system, python):
    apt_install(system, "python3", "python3-venv")
    output("chroot", system, "/usr/bin/python3", "-m", "venv", "/srv/venv")
    shutil.copy(packages.path(r".*\.whl"), os.path.join(system, "srv"))
    output(sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "--python-version",
           python, "--dest", os.path.join(system, "srv", "wheels"), "numpy")
    return seconds_to_answer(system, "export PIP_NO_INDEX=1 PIP_FIND_LINKS=/srv/wheels; "
                             + command_of_readme("pip install"), "/srv/venv/bin:" + PATHS)


def deb(packages, system):
    shutil.copy(packages.path(r".*\.deb"), os.path.join(system, "srv", "fxserve.deb"))
    apt_install(system, "ca-certificates")  # the lists of packages are there
    return seconds_to_answer(system, "apt-get install -y -qq --no-install-recommends /srv/fxserve.deb "
                             ">/srv/log 2>&1 && fxserve demo", PATHS)


def image(packages, folder):
    content, scratch = os.path.join(folder, "image"), os.path.join(folder, "image-scratch")
    with tarfile.open(packages.path(r".*-image\.tar")) as archive:
        (row, ) = json.load(archive.extractfile("manifest.json"))
        for name in row["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                layer.extractall(content)
    data = os.path.join(scratch, "data")
    os.makedirs(data)
    os.chown(data, USER, USER)
    for place in (folder, scratch):
        os.chmod(place, 0o755)
    program = Image(content, scratch).program("start", [], as_user=True, data=data)
    start = time.monotonic()
    settings = {**environment_of(), "FXSERVE_NO_AUTH": "1"}
    server = Server(program, [], folder=scratch, extra_environment=settings, listen="0.0.0.0:0")
    try:
        server.start()
        for method, path, name in (("PUT", "/v1/graphs/digits", MODEL),
                                   ("POST", "/v1/graphs/digits/run", IMAGES)):
            reply = server.call(method, path, read(name))
            if reply.status not in (200, 201):
                raise Failed(f"{method} {path}: {reply.short()}")
        return time.monotonic() - start
    finally:
        if problems := server.stop():
            raise Failed("; ".join(problems))


def has_musl(folder):
    place = os.path.join(folder, "packages")
    os.makedirs(place)
    return subprocess.run(["apt-get", "download", "-qq", "musl", "busybox-static"], cwd=place,
                          capture_output=True, check=False).returncode == 0


def quick_ways(packages, folder):
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True,
                      check=False).returncode != 0:
        print("fresh roots: left out, this machine lets nobody mount")
        return
    if not has_musl(folder):
        print("a root of musl: left out, Debian's packages musl and busybox-static cannot be had")
    else:
        yield "tarball beside musl", lambda: tarball(packages, musl_system(folder))
    if packages.has_image:
        yield "image", lambda: image(packages, folder)


def ways(packages, folder, kept, archives):
    yield from quick_ways(packages, folder)
    for suite, python in PYTHONS.items():
        yield f"tarball in {suite}", lambda suite=suite: tarball(packages, debian(kept, suite))
        yield f"wheel in {suite}", lambda suite=suite, python=python: wheel(packages, debian(kept, suite),
                                                                            python)
    for archive in archives:
        yield (f"tarball in {os.path.basename(archive)}",
               lambda archive=archive: tarball(packages, unpacked(folder, archive)))
    yield "deb in bookworm", lambda: deb(packages, debian(kept, "bookworm"))


def start(name, way):
    """Prints how long it took, which is a line for tests/REPORT.md as well."""
    seconds = way()
    print(f"  {name}: {seconds:.1f} s from the package to the first answer", flush=True)
    if "FXSERVE_RESULTS" in os.environ:
        row = {"name": f"start: {name}, from the package to the first answer", "figure": f"{seconds:.1f} s",
               "aim": f"≤ {AIM} s", "met": seconds <= AIM, "command": "./check --long starts"}
        with open(os.environ["FXSERVE_RESULTS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def main():
    arguments, tally = sys.argv[1:], Tally()
    if os.geteuid() != 0:
        print("starts.py must be root", file=sys.stderr)
        return 2
    build = os.path.abspath(arguments[0])
    archives = [path for flag, path in zip(arguments, arguments[1:]) if flag == "--root"]
    with tempfile.TemporaryDirectory(prefix="fxserve-starts-") as folder:
        kept = arguments[arguments.index("--folder") + 1] if "--folder" in arguments else \
            os.path.join(folder, "systems")
        os.makedirs(kept, exist_ok=True)
        packages = Packages(build, folder, times=1)
        for name, way in ways(packages, folder, kept, archives):
            try:
                start(name, way)
                tally.ok()
            except (Failed, distros.Failed, OSError, ValueError, subprocess.SubprocessError) as failure:
                tally.bad(name, str(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
