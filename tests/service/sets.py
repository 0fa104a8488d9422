# SPDX-License-Identifier: Apache-2.0
"""The models of tests/models in every instruction set that this machine has: sets.py FXSERVE [NAME].

One server per set, forced by FXSERVE_ISA. Every input set of every model runs eagerly and as a
compiled program against what PyTorch gave. `--version` and `GET /v1` name the set, and profiles
name no kernel of a wider one. A set that the machine lacks, and an unknown word, end the program
with a sentence.
"""
import glob
import json
import os
import subprocess
import sys

from models import ask, compare, sets_of, upload
from service import MODELS, Failed, Server, Tally, environment

SETS = ("portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16")


def version(binary, isa):
    """(exit code, what it prints on both) of `fxserve --version` in a set."""
    done = subprocess.run([binary, "--version"], env=environment("/", {"FXSERVE_ISA": isa}),
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def sets_here(binary, tally):
    """The sets of this machine, narrowest first."""
    here = []
    for isa in SETS:
        code, text = version(binary, isa)
        if code == 0:
            good = f", cpu {isa}\n" in text and len(here) == SETS.index(isa)
            tally.check(f"--version in {isa}", None if good else text)
            here.append(isa)
        else:
            good = code == 2 and f"FXSERVE_ISA={isa}: this machine has no more than {here[-1]}" in text
            tally.check(f"{isa} is refused", None if good else f"exit {code}: {text}")
            print(f"left out: {isa}, which this machine lacks")
    code, text = version(binary, "sse2")
    names = f"{', '.join(SETS[:-1])} and {SETS[-1]}"
    good = code == 2 and f"names no instruction set; there are {names}" in text
    tally.check("sse2 is refused", None if good else f"exit {code}: {text}")
    return here


def is_of(kernel, isa):
    """Whether a kernel's name fits a set: `tile_avx512`, `direct:avx2`, `brg:avx512_core` of oneDNN."""
    if isa == "portable":
        return "avx" not in kernel and "brg" not in kernel and "jit" not in kernel
    return isa != "avx2" or "avx512" not in kernel


def check_model(server, tally, name, path, isa):
    upload(server, name, path)
    for number, (inputs, outputs) in enumerate(sets_of(name)):
        body = json.dumps({"inputs": [tensor.as_b64() for tensor in inputs], "encoding": "b64"}).encode()
        for mode in ("eager", "compiled"):
            try:
                reply = ask(server, name, mode, "&profile=1", body)
                compare(reply, outputs)
                rows = reply.json()["profile"]["nodes"]
                kernels = sorted({row["kernel"] for row in rows if row.get("kernel")})
                good = kernels and all(is_of(kernel, isa) for kernel in kernels)
                tally.check(f"{isa}: kernels of {name}", None if good else f"{kernels}")
            except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
                tally.bad(f"{isa}: {name}, set {number}, {mode}", problem)


def check_set(binary, tally, isa, only):
    # An emulated CPU takes its time.
    flags = ["--data", "none", "--quiet", "--run-deadline-ms", "600000"]
    server = Server(binary, flags, extra_environment={"FXSERVE_ISA": isa}).start()
    cpu = server.call("GET", "/v1").json()["cpu"]
    tally.check(f"GET /v1 in {isa}", None if cpu == isa else f"it says {cpu}")
    paths = [path for pattern in ("*.pt2", "*.fx.json") for path in glob.glob(os.path.join(MODELS, pattern))]
    for path in sorted(os.path.basename(path) for path in paths):
        if only in path:
            try:
                check_model(server, tally, path.split(".")[0], path, isa)
            except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
                tally.bad(f"{isa}: {path}", problem)
    tally.check(f"the server's end in {isa}", "\n".join(server.stop()))
    server.clean_up()


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: sets.py FXSERVE [NAME]")
        return 2
    tally = Tally()
    for isa in sets_here(os.path.abspath(sys.argv[1]), tally):
        check_set(sys.argv[1], tally, isa, sys.argv[2] if len(sys.argv) == 3 else "")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
