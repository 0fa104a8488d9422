# SPDX-License-Identifier: Apache-2.0
"""Runs every replay program of a build over the committed corpus and the seeds, with mutants of
each input: replay.py BUILD [MUTANTS=16] [TARGET]. The last line is `N passed, N failed`, one per
input; after a crash the input that did it is printed."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 300
HTTP_MUTANTS = 4  # each waits for the server's silence


def main():
    if len(sys.argv) not in (2, 3, 4):
        print("usage: replay.py BUILD [MUTANTS=16] [TARGET]")
        return 2
    programs, passed, failed = os.path.join(os.path.abspath(sys.argv[1]), "tests", "fuzz"), 0, 0
    mutants, only = sys.argv[2] if len(sys.argv) > 2 else "16", sys.argv[3] if len(sys.argv) > 3 else None
    names = sorted(name[len("replay_"):] for name in os.listdir(programs) if name.startswith("replay_")
                   and os.path.isfile(os.path.join(programs, name)))
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        subprocess.run([sys.executable, os.path.join(HERE, "seeds.py"), folder], check=True)
        for name in names:
            inputs = [place for place in (os.path.join(HERE, "corpus", name), os.path.join(folder, name))
                      if os.path.isdir(place) and os.listdir(place)]
            if only not in (None, name):
                continue
            for place in inputs:
                command = [os.path.join(programs, f"replay_{name}"), place,
                           str(HTTP_MUTANTS) if name == "http" else mutants]
                try:
                    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
                    code, text = done.returncode, done.stdout.decode(errors="replace")
                except subprocess.TimeoutExpired:
                    code, text = "none", f"still running after {SECONDS} s"
                found = re.search(r"^(\d+) passed, (\d+) failed$", text, re.M)
                if code == 0 and found:
                    passed += int(found[1])
                    continue
                failed += 1
                crash = os.path.join(folder, f"replay_{name}.crash")
                # pylint: disable=consider-using-with
                content = open(crash, "rb").read() if os.path.exists(crash) else b""
                print(f"FAILED {name}: exit code {code}\n{text[-3000:]}\n"
                      f"the input, {len(content)} bytes: {content[:2000]!r}", flush=True)
    failed += not names
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
