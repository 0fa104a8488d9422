# SPDX-License-Identifier: Apache-2.0
"""The packages of deploy/release: release.py BUILD. As root, two fresh roots of
starts.py start them as well.

Made twice from one build they have the same bytes. The tarball runs where it was unpacked, through a
link and with an empty environment, from its own libraries alone; pip takes the wheel, whose `fxserve`
runs, and whose RECORD is right; the .deb has what it should and depends on the libraries that it loads;
the sums are right; the bill names each library.

The last line is `N passed, N failed`.
"""
import base64
import csv
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from service import ROOT, Failed, Tally

MODEL = os.path.join(ROOT, "tests", "models", "digits.pt2")
IMAGES = os.path.join(ROOT, "tests", "models", "digits_images.json")


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))[:200]}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


def first_answer(command, **options):
    """Starts a server, uploads the digits, runs them; (seconds, the answer)."""
    start = time.monotonic()
    # Read through a second handle: what is written would land where the first one was turned back to.
    with tempfile.NamedTemporaryFile("w") as said, open(said.name, encoding="utf-8") as log:
        server = subprocess.Popen([*command, "serve", "--data", "none", "--listen", "127.0.0.1:0"],
                                  stdout=said,
                                  stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL,
                                  **options)
        try:
            place = None
            while place is None and server.poll() is None and time.monotonic() - start < 30:
                time.sleep(0.01)
                log.seek(0)
                place = re.search(r"^listening on http://([0-9.:]+)$", log.read(), re.M)
            if place is None:
                log.seek(0)
                raise Failed(f"no server: {log.read()[-300:]}")
            client = http.client.HTTPConnection(place.group(1), timeout=30)
            for method, path, file in (("PUT", "/v1/graphs/digits", MODEL), ("POST", "/v1/graphs/digits/run",
                                                                             IMAGES)):
                client.request(method, path, read(file))
                reply = client.getresponse()
                text = reply.read()
                if reply.status not in (200, 201):
                    raise Failed(f"{method} {path}: {reply.status} {text[:200]}")
            return time.monotonic() - start, json.loads(text)
        finally:
            server.terminate()
            server.wait(20)


def check_answer(command, **options):
    seconds, answer = first_answer(command, **options)
    labels = json.loads(read(os.path.join(ROOT, "tests", "models", "digits_labels.json")))
    rows = answer["outputs"][0]
    rows = rows["data"] if isinstance(rows, dict) else rows
    found = [max(range(len(row)), key=row.__getitem__) for row in rows]
    labels = labels if isinstance(labels, list) else labels["labels"]
    if sum(a != b for a, b in zip(found, labels)) > 1 or len(found) != len(labels):
        raise Failed(f"{found} instead of {labels}")
    return seconds


def buildah_works():
    """Some containers let nobody mount."""
    if shutil.which("buildah") is None:
        return False
    settings = dict(os.environ, STORAGE_DRIVER="vfs", BUILDAH_ISOLATION="chroot")
    made = subprocess.run(["buildah", "from", "scratch"], env=settings, capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        return False
    return subprocess.run(["buildah", "rm", made.stdout.strip()], env=settings, capture_output=True,
                          check=False).returncode == 0


class Packages:

    def __init__(self, build, folder, times=2):
        self.folder, self.first, self.second = folder, os.path.join(folder, "a"), os.path.join(folder, "b")
        more = ["--image"] if os.geteuid() == 0 and buildah_works() else []
        self.has_image = bool(more)
        if not more:
            print("the image wants root and a buildah that works: left out")
        for out in (self.first, self.second)[:times]:
            output(os.path.join(ROOT, "deploy", "release"), "--build", build, "--out", out, *more)

    def path(self, pattern):
        names = [name for name in os.listdir(self.first) if re.fullmatch(pattern, name)]
        if len(names) != 1:
            raise Failed(f"{len(names)} files are called {pattern}")
        return os.path.join(self.first, names[0])

    def unpacked(self):
        place = os.path.join(self.folder, "unpacked")
        if not os.path.isdir(place):
            with tarfile.open(self.path(r".*\.tar\.gz")) as archive:
                archive.extractall(place)
        (name, ) = os.listdir(place)
        return os.path.join(place, name)


def check_same(packages):
    names = sorted(os.listdir(packages.first))
    if names != sorted(os.listdir(packages.second)) or len(names) < 5:
        raise Failed(f"made {names}")
    for name in names:
        if read(os.path.join(packages.first, name)) != read(os.path.join(packages.second, name)):
            raise Failed(f"{name} has other bytes the second time")


def check_sums(packages):
    output("sha256sum", "-c", "SHA256SUMS", cwd=packages.first)
    listed = {
        line.split()[1]
        for line in read(os.path.join(packages.first, "SHA256SUMS")).decode().splitlines()
    }
    if listed != set(os.listdir(packages.first)) - {"SHA256SUMS"}:
        raise Failed(f"SHA256SUMS lists {sorted(listed)}")


def check_tarball(packages):
    program = os.path.join(packages.unpacked(), "fxserve")
    link = os.path.join(packages.folder, "link")
    os.symlink(program, link)
    for command in (program, link):
        words = output("env", "-i", command, "--version")
        if not words.startswith("fxserve "):
            raise Failed(words)
        check_answer(["env", "-i", command])


def check_libraries(packages):
    """The tarball's program loads nothing from elsewhere."""
    place = packages.unpacked()
    (loader, ) = [name for name in os.listdir(os.path.join(place, "lib")) if name.startswith("ld-linux")]
    listed = output(os.path.join(place, "lib", loader), "--library-path", os.path.join(place, "lib"),
                    "--list", os.path.join(place, "libexec", "fxserve"))
    paths = [path for path in re.findall(r"=> (\S+)", listed) if not path.startswith(place)]
    if paths:
        raise Failed(f"it would load {paths}")


def check_wheel(packages):
    path = packages.path(r".*\.whl")
    with zipfile.ZipFile(path) as archive:
        (record, ) = [name for name in archive.namelist() if name.endswith("/RECORD")]
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        if {row[0] for row in rows} != set(archive.namelist()):
            raise Failed("RECORD lists other files than there are")
        for name, digest, size in rows:
            data = archive.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if name != record and (digest != f"sha256={right}" or int(size) != len(data)):
                raise Failed(f"RECORD is wrong about {name}")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True,
                      check=False).returncode != 0:
        print("pip is not here: installing the wheel is left out")
        return
    target = os.path.join(packages.folder, "site")
    output(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
           "--no-index", "--target", target, path)
    check_answer([os.path.join(target, "bin", "fxserve")], env=dict(os.environ, PYTHONPATH=target))


def check_deb(packages):
    path, place = packages.path(r".*\.deb"), os.path.join(packages.folder, "deb")
    output("dpkg-deb", "-x", path, place)
    for name in ("usr/bin/fxserve", "usr/lib/systemd/system/fxserve.service",
                 "usr/share/man/man1/fxserve.1.gz", "usr/share/bash-completion/completions/fxserve",
                 "usr/share/doc/fxserve/copyright", "usr/share/doc/fxserve/CHANGELOG.md.gz",
                 "usr/share/doc/fxserve/changelog.gz"):
        if not os.path.isfile(os.path.join(place, name)):
            raise Failed(f"no {name}")
    if b"ExecStart=/usr/bin/fxserve serve" not in read(
            os.path.join(place, "usr/lib/systemd/system/fxserve.service")):
        raise Failed("the unit starts another program")
    wants = output("dpkg-deb", "-f", path, "Depends")
    if missing := [
            name for name in ("libc6", "libdnnl", "libmicrohttpd", "libuv1", "libjansson4")
            if name not in wants
    ]:
        raise Failed(f"it does not depend on {missing}")
    if not os.stat(os.path.join(place, "usr/bin/fxserve")).st_mode & stat.S_IXUSR:
        raise Failed("the program cannot be run")
    check_answer([os.path.join(place, "usr/bin/fxserve")])


def check_lintian(packages):
    if shutil.which("lintian") is None:
        print("lintian is not here: left out")
        return
    found = subprocess.run(["lintian", packages.path(r".*\.deb")], capture_output=True, text=True,
                           check=False).stdout
    if rows := re.findall(r"^[EW]: .*", found, re.M):
        raise Failed("; ".join(rows))


def check_bill(packages):
    bill = json.loads(read(packages.path(r".*\.sbom\.json")))
    names = " ".join(part["name"] for part in bill["components"])
    for word in ("libc6", "libdnnl", "libmicrohttpd", "libgnutls", "libjansson", "libuv", "zlib"):
        if word not in names:
            raise Failed(f"{word} is not in the bill")
    if bare := [part["name"] for part in bill["components"] if not part["licenses"]]:
        raise Failed(f"the bill names no licence of {bare}")
    binary = read(os.path.join(packages.unpacked(), "libexec", "fxserve"))
    if bill["metadata"]["component"]["hashes"][0]["content"] != hashlib.sha256(binary).hexdigest():
        raise Failed("the bill is another program's")


def main():
    arguments, tally = sys.argv[1:], Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        packages = Packages(os.path.abspath(arguments[0]), folder)
        checks = [("two times, the same bytes", lambda: check_same(packages)),
                  ("the sums are right", lambda: check_sums(packages)),
                  ("the tarball runs where it is", lambda: check_tarball(packages)),
                  ("the tarball needs no library of the system", lambda: check_libraries(packages)),
                  ("pip takes the wheel", lambda: check_wheel(packages)),
                  ("the .deb is whole", lambda: check_deb(packages)),
                  ("lintian finds nothing in the .deb", lambda: check_lintian(packages)),
                  ("the bill names the parts", lambda: check_bill(packages))]
        if os.geteuid() == 0:
            import starts  # which wants this module
            checks += [(name, lambda name=name, way=way: starts.start(name, way))
                       for name, way in starts.quick_ways(packages, folder)]
        else:
            print("fresh roots: left out, they want root")
        for name, check in checks:
            try:
                check()
                tally.ok()
            except (Failed, OSError, ValueError, subprocess.SubprocessError) as failure:
                tally.bad(name, str(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
