# SPDX-License-Identifier: Apache-2.0
"""The image of ../../Dockerfile, run without a container engine. image.py [FOLDER]

FOLDER holds the image's content (deploy/build-image --root FOLDER); without it the image is built
first. Needs root. The program sees nothing but the image's files, read-only, beside /proc, /dev, a
data folder, and the folders the tests share with it.

  content    at most 62 MB in all files; no shell, no setuid, nothing anybody may write to but /data
  start      as the image's user, without any privilege, on a read-only root: refuses to start
             unprotected; then serves, keeps an upload over a restart, tells its health, drains
  scenarios  the service scenarios (tests/service) against the image's program
"""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from service import HERE, MODELS, ROOT, Failed, Server, Tally, assert_close, reply_tensor

MAX_BYTES = 62_000_000
USER = 65532
# $IMAGE: the content. $SHARED: folders that are there with the same name. $AS: what drops
# privileges, or nothing.
WRAPPER = """#!/bin/sh
exec unshare --mount --propagation private sh -c '
        set -e
        mount -t tmpfs -o mode=755 none "$MOUNTS"
        for entry in "$IMAGE"/*; do
                mkdir "$MOUNTS/${entry##*/}"
                mount --bind "$entry" "$MOUNTS/${entry##*/}"
                mount -o remount,bind,ro "$MOUNTS/${entry##*/}"
        done
        for folder in /proc /dev $SHARED; do
                mkdir -p "$MOUNTS$folder"
                mount --rbind "$folder" "$MOUNTS$folder"
        done
        [ -z "$DATA" ] || mount --bind "$DATA" "$MOUNTS/data"
        mount -o remount,ro "$MOUNTS"
        exec $AS unshare --root="$MOUNTS" --wd="${WORK:-$PWD}" /usr/bin/fxserve "$@"
' sh "$@"
"""


class Image:
    def __init__(self, content, scratch):
        self.content, self.scratch = content, scratch

    def program(self, name, shared, as_user=False, data=""):
        """A program that runs the image's."""
        mounts, path = os.path.join(self.scratch, name + "-mounts"), os.path.join(self.scratch, name)
        os.makedirs(mounts, exist_ok=True)
        # A user cannot change the root folder: privileges but that one go before, the last one with
        # the user.
        drop = ("setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid --inh-caps=-all"
                if as_user else "")
        head = (f"#!/bin/sh\nexport IMAGE='{self.content}' MOUNTS='{mounts}' SHARED='{' '.join(shared)}' "
                f"DATA='{data}' AS='{drop}' WORK='{'/data' if as_user else '' if shared else '/'}'\n")
        body = WRAPPER.split("\n", 1)[1]
        if as_user:
            body = body.replace("/usr/bin/fxserve", f"--setuid={USER} --setgid={USER} /usr/bin/fxserve")
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + body)
        os.chmod(path, 0o755)
        return path


def environment_of():
    """ENV of the Dockerfile's last stage."""
    with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as file:
        lines = re.findall(r"^ENV (.*)$", file.read(), re.M)
    return dict(pair.split("=", 1) for pair in lines[-1].split(" "))


def check_content(image):
    total, odd = 0, []
    for folder, _, names in os.walk(image.content):
        for name in names:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            total += info.st_size
            if stat.S_ISREG(info.st_mode) and info.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH):
                odd.append(f"{path[len(image.content):]} has mode {info.st_mode:o}")
    programs = os.listdir(os.path.join(image.content, "usr", "bin"))
    if programs != ["fxserve"] or os.path.exists(os.path.join(image.content, "bin")):
        odd.append(f"programs: {programs}")
    data = os.stat(os.path.join(image.content, "data"))
    if (data.st_uid, data.st_gid) != (USER, USER):
        odd.append("/data is not the user's")
    if odd or total > MAX_BYTES:
        raise Failed(f"{total / 1e6:.1f} MB; {'; '.join(odd)}")
    print(f"{total / 1e6:.1f} MB in all files of the image")


def check_refusal(image):
    program = image.program("refuse", [])
    done = subprocess.run([program, "serve"], env={**environment_of(), "PATH": os.environ["PATH"]},
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 2 or "--no-auth" not in done.stderr:
        raise Failed(f"exit code {done.returncode}: {done.stderr}")


def check_start(image):
    data = os.path.join(image.scratch, "data")
    os.makedirs(data)
    os.chown(data, USER, USER)
    os.chmod(image.scratch, 0o755)
    program = image.program("user", [], as_user=True, data=data)
    environment = {**environment_of(), "FXSERVE_NO_AUTH": "1"}
    server = Server(program, [], folder=image.scratch, extra_environment=environment, listen="0.0.0.0:0")
    try:
        server.start()
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        wanted = {"Uid": f"{USER}\t" * 3 + str(USER), "CapEff": "0" * 16, "CapPrm": "0" * 16,
                  "CapAmb": "0" * 16, "NoNewPrivs": "1"}
        wrong = {key: status[key] for key, value in wanted.items() if status[key] != value}
        if wrong:
            raise Failed(f"the process has {wrong}")
        with open(os.path.join(MODELS, "digits.pt2"), "rb") as file:
            expect(server, 201, "PUT", "/v1/graphs/digits", file.read())
        with open(os.path.join(MODELS, "digits_images.json"), "rb") as file:
            images = file.read()
        first = expect(server, 200, "POST", "/v1/graphs/digits/run?mode=compiled", images)
        done = subprocess.run([program, "health", server.url.replace("0.0.0.0", "127.0.0.1")],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise Failed(f"health: {done.returncode} {done.stderr}")
        problem(server.stop())
        server = Server(program, [], folder=image.scratch, extra_environment=environment,
                        listen="0.0.0.0:0").start()
        again = expect(server, 200, "POST", "/v1/graphs/digits/run?mode=compiled", images)
        same_numbers(json.loads(first), json.loads(again))
        problem(server.stop())
        for line in server.log().split("\n")[:-1]:
            json.loads(line)
    finally:
        server.kill()


def same_numbers(first, again):
    """Same program, same bits; a program that was tuned in between differs by rounding."""
    if first["program"] == again["program"] and first["outputs"] != again["outputs"]:
        raise Failed("the same program gives other numbers after a restart")
    for left, right in zip(first["outputs"], again["outputs"]):
        assert_close(reply_tensor(right), reply_tensor(left), "after a restart")


def expect(server, wanted, *request):
    reply = server.call(*request)
    if reply.status != wanted:
        raise Failed(f"{request[0]} {request[1]}: {reply.short()}, expected {wanted}")
    return reply.body


def problem(problems):
    if problems:
        raise Failed("; ".join(problems))


def check_scenarios(image):
    program = image.program("scenarios", [tempfile.gettempdir(), os.path.join(ROOT, "tests")])
    done = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), program], capture_output=True,
                          text=True, timeout=1200, check=False)
    print("scenarios in the image: " + done.stdout.strip().split("\n")[-1])
    if done.returncode != 0:
        raise Failed(done.stdout[-6000:] + done.stderr[-1000:])


def main():
    if os.geteuid() != 0:
        print("image.py: must be root")
        return 2
    tally = Tally()
    scratch = tempfile.mkdtemp(prefix="fxserve-image-")
    try:
        content = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(scratch, "content")
        if len(sys.argv) == 1:
            subprocess.run([os.path.join(ROOT, "deploy", "build-image"), "--root", content], check=True)
        image = Image(content, scratch)
        for name, check in (("content", check_content), ("refusal", check_refusal), ("start", check_start),
                            ("scenarios", check_scenarios)):
            try:
                check(image)
                tally.ok()
            except (Failed, OSError, ValueError, subprocess.TimeoutExpired) as failure:
                tally.bad(name, failure)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
