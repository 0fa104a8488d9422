# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of README.md, docs/api.md, docs/overriding.md, docs/seed-notes.md,
docs/oip.md and docs/migrating.md, and compares what comes out. blocks.py says who runs the others.

usage: readme.py BINARY

A ```console block holds commands (lines that begin with `$ `) and, below each, what it prints.
Commands run in a copy of tests/models as it is committed, where the documents say so, with fxserve
on PATH and a server on the port that stands for 8080. Outputs are compared token by token:
numbers within 1e-3, `…`, times and ids of 64 hex digits stand for anything of their kind. Profile
tables (their command asks for /profile with form=text) are compared as sets of rows without times
and bars, because both differ from run to run. So do ids and times of /v1/events: its events are
compared by what they are, and asked for again where the machine was too slow to see them. The flag
table of docs/configuration.md must be what `fxserve --help=markdown` prints, the route table of
docs/api.md must have a row for every route.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import blocks
from service import CODECS, MODELS, ROOT, Failed, Server, Tally, routes, tracked_files

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$")
TOKEN = re.compile(r"…|[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:]+Z|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"
                   r"[A-Za-z_][A-Za-z_0-9]*|\s+|.", re.S)


def examples(text):
    """(command, expected output) of every console block, in order."""
    out = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.split("\n")
            n = next(n for n in range(1, len(lines) + 1) if is_whole("\n".join(lines[:n])))
            out.append(("\n".join(lines[:n]), "\n".join(lines[n:]).rstrip("\n")))
    return out


def is_whole(command):
    """Quotes are closed, and a text given by <<'END' has ended."""
    if "<<'END'" in command:
        return command.endswith("\nEND")
    return command.count("'") % 2 == 0


def tokens(text):
    return ["<id>" if token == "…" or re.fullmatch("[0-9a-f]{64}|[-0-9]+T[0-9:]+Z", token) else token
            for token in TOKEN.findall(text)]


def same_token(got, want):
    if NUMBER.match(got) and NUMBER.match(want):
        return abs(float(got) - float(want)) <= 1e-3 * max(1.0, abs(float(want)))
    return got == want


def rows(table):
    """A profile table's rows without times and bars, in no order; implementation names
    ("brg:avx512_core") depend on the machine."""
    return sorted(re.sub(r"\s+", " ", re.sub(r"\S+:\S+(?= )|\btile_\w+", "<kernel>",
                                             re.sub(r"#+|\b\d+\.\d+%?", "", line))).strip()
                  for line in table.split("\n") if line.strip())


def events(text):
    """What happened to which graph, and the members told of it."""
    rows = re.findall(r"^event: (\w+)\ndata: (.*)$", text, re.M)
    return [(kind, data.get("graph"), data.get("state"), list(data))
            for kind, data in ((kind, json.loads(data)) for kind, data in rows)]


def compare(command, got, want):
    if "/v1/events" in command:
        if events(got) != events(want):
            raise Failed(f"other events: {got}")
        return
    if re.search(r"profile.*form=text", command):
        if rows(got) != rows(want):
            raise Failed("rows differ:\n" + "\n".join(sorted(set(rows(got)) ^ set(rows(want)))))
        return
    have, need = tokens(got), tokens(want)
    for place, (left, right) in enumerate(zip(have, need)):
        if not same_token(left, right):
            raise Failed(f"token {place} is {left!r}, the document says {right!r}\n  got: {got[:600]}")
    if len(have) != len(need):
        raise Failed(f"{len(have)} tokens, the document has {len(need)}\n  got: {got[-600:]}")


def copy_models():
    """A scratch folder with the committed files of tests/models: what a command left there does not
    count. All files where there is no repository."""
    folder = tempfile.mkdtemp(prefix="fxserve-readme-")
    for name in tracked_files(MODELS):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(MODELS, name), os.path.join(folder, name))
    return folder


def run_examples(binary, text, tally):
    folder = copy_models()
    server = Server(binary, ["--data", "none", "--codecs", CODECS])
    environment = dict(os.environ,
                       PATH=os.path.dirname(os.path.abspath(binary)) + os.pathsep + os.environ["PATH"])
    server.start()
    for command, want in examples(text):
        shell = command.replace("localhost:8080", f"127.0.0.1:{server.port}")
        for attempt in range(5 if "/v1/events" in command else 1):
            done = subprocess.run(["bash", "-c", shell], cwd=folder, env=environment, capture_output=True,
                                  text=True, timeout=60, check=False)
            if attempt == 4 or events(done.stdout) == events(want):
                break
        got = done.stdout.rstrip("\n")
        tally(command, lambda got=got, want=want, command=command: compare(command, got, want))
    problem = server.stop()
    tally("the server ends well", lambda: problem_check(problem))
    shutil.rmtree(folder)


def problem_check(problem):
    if problem:
        raise Failed(str(problem))


def check_serving(binary, text):
    """Blocks of one command `fxserve serve`: it starts, with places and a port of the test's."""
    commands = re.findall(r"^```sh\nfxserve (serve [^\n]*)\n```$", text, re.M)
    if not commands:
        raise Failed("none")
    for command in commands:
        folder = tempfile.mkdtemp(prefix="fxserve-readme-")
        shutil.copy(os.path.join(MODELS, "digits.pt2"), folder)
        words = command.replace("/opt/ml/model", folder).split()
        at = words.index("--listen")
        server = Server(binary, words[1:at] + words[at + 2:],
                        listen=re.sub(r":\d+$", ":0", words[at + 1]))
        try:
            body = json.dumps({"instances": [[[[0.5] * 8] * 8]]}).encode()
            reply = server.start().call("POST", "/invocations", body)
            if reply.status != 200:
                raise Failed(f"{command}: {reply.short()}")
        finally:
            problem_check("\n".join(server.stop()))
            shutil.rmtree(folder)


def check_log(binary, text):
    """A line of the log has the members of the document's."""
    told = json.loads(re.search(r'^    (\{"time": .*?\})$', text, re.M | re.S)[1])
    server = Server(binary, ["--data", "none", "--log-format", "json"]).start()
    with open(os.path.join(MODELS, "digits.pt2"), "rb") as file:
        server.call("PUT", "/v1/graphs/digits", file.read())
    with open(os.path.join(MODELS, "digits_images.json"), "rb") as file:
        server.call("POST", "/v1/graphs/digits/run", file.read())
    problem_check("\n".join(server.stop()))
    rows = [json.loads(line) for line in server.log().splitlines() if '"/v1/graphs/{name}/run"' in line]
    if [list(row) for row in rows] != [list(told)]:
        raise Failed(f"the log has {rows}")


def check_tables(binary, text):
    flags = subprocess.run([binary, "--help=markdown"], capture_output=True, text=True,
                           check=True).stdout.strip()
    if flags not in text:
        raise Failed("the flag table is not what `fxserve --help=markdown` prints; paste it anew")
    if odd := [row for row in flags.split("\n") if len(re.findall(r"(?<!\\)\|", row)) != 5]:
        raise Failed(f"rows of other than four cells: {odd}")
    told = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    if lacking := set(re.findall(r"\bFXSERVE_[A-Z_]+", told)) - set(re.findall(r"\bFXSERVE_[A-Z_]+", text)):
        raise Failed(f"variables of `fxserve --help` that are not listed: {lacking}")


def check_routes(text):
    missing = [f"{method} {path}" for _, method, path, _ in routes()
               if "{v}" not in path and f"`{method} {path}`" not in text]
    if missing:
        raise Failed("the route table lacks " + ", ".join(missing))


def document(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main():
    counts = Tally()

    def tally(name, check):
        try:
            check()
            counts.ok()
        except Failed as failure:
            counts.bad(name[:160], failure)

    for path, least in (("README.md", 9), ("docs/api.md", 60), ("docs/overriding.md", 14),
                        ("docs/seed-notes.md", 10), ("docs/oip.md", 5),
                        ("docs/migrating.md", 22)):  # each has a server of its own
        counts.check(f"the examples of {path}",
                     f"fewer than {least}" if len(examples(document(path))) < least else None)
        run_examples(sys.argv[1], document(path), tally)
    tally("servers of docs/migrating.md", lambda: check_serving(sys.argv[1], document("docs/migrating.md")))
    tally("the line of docs/operations.md", lambda: check_log(sys.argv[1], document("docs/operations.md")))
    for path, problem in blocks.check():
        counts.check(path, problem)
    tally("flag table", lambda: check_tables(sys.argv[1], document("docs/configuration.md")))
    tally("route table", lambda: check_routes(document("docs/api.md")))
    return counts.end()


if __name__ == "__main__":
    sys.exit(main())
