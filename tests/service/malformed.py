# SPDX-License-Identifier: Apache-2.0
"""Malformed requests (malformed_requests.py, malformed_graphs.py, malformed_files.py,
malformed_names.py, malformed_observed.py, malformed_steps.py): malformed.py FXSERVE [--memory] [WORD].

Each must be answered within 2 s with the status, the code and the word that its row names; after it
a known good run must give the right numbers. Then come requests cut at every byte, and graphs of
tests/models and tests/print with one field left out or of another type: none may bring the server
down or a 5xx about. Names are also tried on a server with a data folder, beside which nothing may
appear.

--memory sends the single cases several times over instead, without judging the replies, and
measures what anonymous memory they leave behind.
"""
import json
import os
import re
import sys
import tempfile
import threading
import time

import malformed_compare
import malformed_files
import malformed_graphs
import malformed_names
import malformed_requests
import malformed_steps
from service import Failed, Server, Tally, model_file

HANG_SECONDS = 2.0
NO_REPLY_SECONDS = 60  # what hangs never answers; a busy machine answers late
PASSES, LEFT_MB = 12, 1.0
GRAPHS = {
    "relu": ('[{"op": "placeholder", "name": "x", "target": "x"}, {"op": "call_function", "name": '
             '"relu", "target": "torch.abs", "args": ["%x"]}, '
             '{"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]'),
    "typed": ('[{"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "float32", "shape": '
              '["N", 3]}}, {"op": "output", "name": "output", ' '"target": "output", "args": ["%x"]}]'),
    "ints": '[{"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "int64", "shape": ["N"]}}, '
    '{"op": "output", "name": "output", "target": "output", "args": ["%x"]}]',
    "bools": '[{"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "bool", "shape": ["N"]}}, '
    '{"op": "output", "name": "output", "target": "output", "args": ["%x"]}]',
    "add": ('[{"op": "placeholder", "name": "x", "target": "x"}, {"op": "placeholder", '
            '"name": "y", "target": "y"}, {"op": "call_function", "name": "add", '
            '"target": "operator.add", "args": ["%x", "%y"]}, {"op": "output", "name": "output", "target": '
            '"output", "args": ["%add"]}]'),
}


class Suite:
    def __init__(self, binary, word):
        with open(binary, "rb") as file:
            sanitized = b"__asan_init" in file.read()
        # instrumented code is slower by about this factor; what hangs still fails
        self.patience = HANG_SECONDS * (5 if sanitized else 1)
        self.server, self.tally, self.word = Server(binary, ["--data", "none", "--quiet"]), Tally(), word
        self.connection = None

    def begin(self):
        self.server.start()
        for name, nodes in GRAPHS.items():
            reply = self.server.call("PUT", f"/v1/graphs/{name}",
                                     f'{{"format": "fx/1", "nodes": {nodes}}}'.encode())
            if reply.status != 201:
                raise Failed(f"graph {name}: {reply.short()}")

    def call(self, method, target, body, headers=()):
        """A reply on a connection that is kept, and the seconds it took: the fewest of three tries
        where the first is late. A busy machine is not late three times; slow code is."""
        reply, seconds = self.call_once(method, target, body, headers)
        for _ in range(2):
            if seconds > self.patience:
                reply, again = self.call_once(method, target, body, headers)
                seconds = min(seconds, again)
        return reply, seconds

    def call_once(self, method, target, body, headers):
        if self.connection is None:
            self.connection = self.server.connect(NO_REPLY_SECONDS)
        began = time.monotonic()
        try:
            self.connection.request(method, target, body, headers)
            reply = self.connection.reply()
        except (Failed, OSError):
            self.connection.close()
            self.connection = None
            raise
        if (reply.header("Connection") or "").lower() == "close":
            self.connection.close()
            self.connection = None
        return reply, time.monotonic() - began

    def good_run(self):
        reply, _ = self.call("POST", "/v1/graphs/add/run",
                             b'{"inputs": {"x": [1.5, -2.0], "y": [0.25, 1.0]}}')
        if reply.status != 200 or reply.json()["outputs"][0]["data"] != [1.75, -1.0]:
            raise Failed(f"the known good run after it: {reply.short()}")

    def case(self, name, method, target, body, headers, wanted):
        statuses, code, word = wanted
        statuses = (statuses,) if isinstance(statuses, int) else statuses
        try:
            reply, seconds = self.call(method, target, body, headers)
            if seconds > self.patience:
                raise Failed(f"answered after {seconds:.1f} s: {reply.short()}")
            if reply.status not in statuses or (code is not None and reply.code() != code):
                raise Failed(f"expected {'/'.join(map(str, statuses))} {code or ''}: {reply.short()}")
            told = reply.json().get("error", "") if reply.status >= 400 else reply.body.decode()
            if reply.status >= 400 and (not told or reply.code() is None):
                raise Failed(f"an error without its text or code: {reply.short()}")
            node = json.dumps(reply.json().get("node", "")) + json.dumps(reply.json().get("details", {}))
            if word not in told and word not in node:
                raise Failed(f"expected the word {word!r}: {reply.short()}")
            self.good_run()
            self.tally.ok()
        except (Failed, OSError, ValueError) as problem:
            self.tally.bad(name, f"{problem}\n    sent {body[:200]!r}")
            self.revive("no reply" in str(problem))

    def revive(self, stuck=False):
        """A new server when the old one is gone or stuck, so that the other cases still count."""
        if stuck:
            self.server.kill()
        if not self.server.alive():
            self.connection = None
            if not stuck:
                self.tally.bad("server", "it ended\n" + "\n".join(self.server.stop())[:3000])
            self.begin()

    def wanted(self, name):
        return self.word is None or self.word in name

    def sound(self, method, target, body, headers=(), statuses=(400, 413, 415, 422)):
        """A reply of a bulk test: one of these statuses and a proper error; the reply."""
        reply, seconds = self.call(method, target, body, headers)
        if seconds > self.patience:
            raise Failed(f"answered after {seconds:.1f} s: {reply.short()}; sent {body[:600]!r}")
        if reply.status not in statuses:
            raise Failed(f"{reply.short()}; sent {body[:3000]!r}")
        if reply.status >= 400 and (not reply.json().get("error") or not reply.code()):
            raise Failed(f"an error without its text or code: {reply.short()}")
        return reply

    def bulk(self, name, cases):
        """Counts as one check; `cases` yields callables."""
        if not self.wanted(name):
            return
        problems, n = [], 0
        for case in cases:
            n += 1
            try:
                case()
            except (Failed, OSError, ValueError) as problem:
                problems.append(str(problem)[:4000])
                self.revive("no reply" in str(problem))
            if len(problems) >= 10:
                break
        try:
            self.good_run()
        except (Failed, OSError) as problem:
            problems.append(str(problem))
        self.tally.check(f"{name} ({n} requests)", "\n  ".join(problems))


def run_rows(suite):
    for name, graph, body, status, code, word in malformed_requests.rows():
        if suite.wanted(name):
            body = body.encode() if isinstance(body, str) else body
            suite.case(name, "POST", f"/v1/graphs/{graph}/run" if graph else "/v1/run", body, (),
                       (status, code, word))


def compare_rows(suite):
    for name, body, status, code, word in malformed_compare.rows():
        if suite.wanted(name):
            suite.case(name, "POST", "/v1/compare", body.encode() if isinstance(body, str) else body, (),
                       (status, code, word))


def transform_rows(suite):
    for name, body, status, code, word in malformed_steps.rows():
        if suite.wanted(name):
            suite.case(name, "POST", "/v1/graphs/relu/transform",
                       body.encode() if isinstance(body, str) else body, (), (status, code, word))


def upload_rows(suite):
    for name, body, headers, status, code, word in malformed_graphs.rows():
        if suite.wanted(name):
            suite.case(name, "PUT", "/v1/graphs/bad", body.encode() if isinstance(body, str) else body,
                       headers, (status, code, word))
    for name, graph, inputs, status, code, word in malformed_graphs.run_rows():
        if suite.wanted(name):
            suite.case(name, "POST", "/v1/run", json.dumps({"graph": graph, "inputs": inputs}).encode(), (),
                       (status, code, word))
    for name, body, headers, status, code, word in malformed_files.rows():
        if suite.wanted(name):
            suite.case(name, "PUT", "/v1/graphs/bad", body, headers, (status, code, word))


def cut_requests(suite):
    run = (b'{"inputs": {"x": {"dtype": "float32", "shape": [2, 3], "data": [[1.5, '
           b'-2, 3e1], ["NaN", 5, 6]]}}, "outputs": ["relu", "x"], "profile": true, "mode": "eager", '
           b'"deadline_ms": 1000, "seed": 7, "encoding": "list", "reply": "full"}')
    suite.bulk("a run cut at every byte", (lambda n=n: suite.sound("POST", "/v1/graphs/relu/run", run[:n],
                                                                   statuses=(400,)) for n in range(len(run))))
    graph = model_file("relu_neg_abs.fx.json").rstrip()
    suite.bulk("a graph cut at every byte",
               (lambda n=n: suite.sound("PUT", "/v1/graphs/bad", graph[:n], statuses=(400, 415))
                for n in range(len(graph))))
    inline = b'{"graph": ' + GRAPHS_FX("relu") + b', "inputs": {"x": [1.5]}}'
    suite.bulk("a graph with inputs cut at every byte",
               (lambda n=n: suite.sound("POST", "/v1/run", inline[:n], statuses=(400, 415))
                for n in range(len(inline))))
    archive = model_file("dev_relu_neg_abs.pt2")
    places = (list(range(0, 200)) + list(range(200, len(archive) - 200, 97))
              + list(range(len(archive) - 200, len(archive))))
    suite.bulk("an archive cut anywhere",
               (lambda n=n: suite.sound("PUT", "/v1/graphs/bad", archive[:n]) for n in places))
    weights = malformed_files.LINEAR_WEIGHTS
    suite.bulk("weights cut at every byte",
               (lambda n=n: suite.sound("PUT", "/v1/graphs/bad", *malformed_files.linear_form(weights[:n]))
                for n in range(len(weights))))
    suite.bulk("an archive with a flipped byte",
               (lambda n=n: suite.sound("PUT", "/v1/graphs/bad", archive[:n] + bytes([archive[n] ^ 0x41])
                                        + archive[n + 1:], statuses=(200, 201, 400, 413, 415, 422))
                for n in range(0, len(archive), 5)))


def GRAPHS_FX(name):
    return f'{{"format": "fx/1", "nodes": {GRAPHS[name]}}}'.encode()


def mutants(suite):
    def attempt(document):
        body = json.dumps(document).encode()
        reply = suite.sound("PUT", "/v1/graphs/mutant", body, statuses=(200, 201, 400, 413, 415, 422))
        if reply.status < 400:
            given = {"inputs": {entry["name"]: [[1.5, 2.5], [3.5, -4.5]] for entry in reply.json()["inputs"]}}
            suite.sound("POST", "/v1/graphs/mutant/run", json.dumps(given).encode(),
                        statuses=(200, 400, 413, 422))

    for name, document in malformed_graphs.documents():
        suite.bulk(f"fields of {name} left out or of another type", (
            lambda mutant=mutant: attempt(mutant) for mutant in malformed_graphs.mutants_of(document)))
    suite.server.call("DELETE", "/v1/graphs/mutant")


def all_rows():
    """Every single case: (name, method, target, body, headers, wanted)."""
    for name, body, status, code, word in malformed_compare.rows():
        yield (name, "POST", "/v1/compare", body.encode() if isinstance(body, str) else body, (),
               (status, code, word))
    for name, graph, body, status, code, word in malformed_requests.rows():
        yield (name, "POST", f"/v1/graphs/{graph}/run" if graph else "/v1/run",
               body.encode() if isinstance(body, str) else body, (), (status, code, word))
    for name, body, status, code, word in malformed_steps.rows():
        yield (name, "POST", "/v1/graphs/relu/transform", body.encode() if isinstance(body, str) else body,
               (), (status, code, word))
    for name, body, headers, status, code, word in (list(malformed_graphs.rows())
                                                    + list(malformed_files.rows())):
        yield (name, "PUT", "/v1/graphs/bad", body.encode() if isinstance(body, str) else body, headers,
               (status, code, word))
    for name, graph, inputs, status, code, word in malformed_graphs.run_rows():
        yield (name, "POST", "/v1/run", json.dumps({"graph": graph, "inputs": inputs}).encode(), (),
               (status, code, word))
    for name, target, status, code in malformed_names.rows():
        is_run = "/run" in target
        yield (name, "POST" if is_run else "PUT", target,
               b'{"inputs": {"x": [1.5]}}' if is_run else GRAPHS_FX("relu"), (), (status, code, ""))


def names_beside_a_folder(suite):
    """Uploads under bad names on a server with a data folder: nothing appears beside it, and in it
    only what a good name makes."""
    if not suite.wanted("names beside a folder"):
        return
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        server = Server(suite.server.binary, ["--data", os.path.join(folder, "inner", "data"), "--quiet"],
                        folder=folder).start()
        server.call("PUT", "/v1/graphs/relu", GRAPHS_FX("relu"))
        before, problems = files_of(folder), []
        for name, target, _, _ in malformed_names.rows():
            for method in ("PUT", "GET", "DELETE") if "/run" not in target else ("POST",):
                try:
                    reply = server.call(method, target, GRAPHS_FX("relu"))
                    if reply.status < 400 and target != "/v1/graphs//":
                        problems.append(f"{method} {name}: {reply.short()[:200]}")
                except (Failed, OSError) as problem:
                    problems.append(f"{method} {name}: {problem}")
        more = files_of(folder) - before
        problems += [f"a file appeared: {path}" for path in sorted(more)]
        if server.call("POST", "/v1/graphs/relu/run", b'{"inputs": {"x": [-1.5]}}').status != 200:
            problems.append("the graph does not run any more")
        problems += server.stop()
    suite.tally.check("names beside a folder", "\n  ".join(problems[:10]))


def files_of(folder):
    return {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
            if name != "server.log" and os.sep + "tunes" not in place}


def many(suite):
    """Requests that are many on one connection."""
    if suite.wanted("10,000 pipelined requests"):
        suite.bulk("10,000 pipelined requests", [lambda: pipeline(suite, 10000)])
    if suite.wanted("a body of 200,000 chunks"):
        body = b'{"inputs": {"x": [' + b"1.5, " * 40000 + b"2.5]}}"
        suite.bulk("a body of 200,000 chunks", [lambda: chunks(suite, body)])
    if suite.wanted("64 MB of {},"):
        body = b'{"inputs": [' + b"{}," * (((64 << 20) - 20) // 3) + b"{}]}"
        suite.bulk("64 MB of {},",
                   [lambda: suite.sound("POST", "/v1/graphs/relu/run", body, statuses=(400, 413))])
    if suite.wanted("a million keys"):
        body = b'{"inputs": {' + b", ".join(b'"k%d": 1' % i for i in range(1000000)) + b"}}"
        suite.bulk("a million keys",
                   [lambda: suite.sound("POST", "/v1/graphs/relu/run", body, statuses=(400, 413))])
    for depth in (10, 100, 1000, 50000, 250000):
        for form, text in (("arrays", b"[" * depth + b"]" * depth),
                           ("objects", b'{"a":' * depth + b"1" + b"}" * depth),
                           ("mixed", b'[{"a":' * (depth // 2) + b"1" + b"}]" * (depth // 2))):
            name = f"{form} {depth:,} deep"
            if suite.wanted(name):
                suite.bulk(name, [
                    lambda text=text: suite.sound("POST", "/v1/graphs/typed/run",
                                                  b'{"inputs": {"x": ' + text + b"}}", statuses=(400, 413)),
                    lambda text=text: suite.sound("PUT", "/v1/graphs/bad", text,
                                                  statuses=(400, 413, 415, 422))])


def pipeline(suite, n):
    text = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with suite.server.connect(30) as connection:
        for _ in range(n // 100):
            connection.send(text * 100)
            for _ in range(100):
                if connection.reply().status != 200:
                    raise Failed("a pipelined request is not answered well")
    with suite.server.connect(30) as connection:  # all at once, without reading
        connection.socket.settimeout(30)
        sender = threading.Thread(target=lambda: connection.send(text * n), daemon=True)
        sender.start()
        for _ in range(n):
            if connection.reply().status != 200:
                raise Failed("a pipelined request is not answered well")
        sender.join()


def chunks(suite, body):
    with suite.server.connect(60) as connection:
        connection.request("POST", "/v1/graphs/relu/run", body, chunk=1)
        reply = connection.reply()
        if reply.status not in (200, 400, 413) or (reply.status == 200
                                                   and reply.json()["outputs"][0]["shape"] != [40001]):
            raise Failed(reply.short())


def names(suite):
    for name, target, status, code in malformed_names.rows():
        if suite.wanted(name):
            is_run = "/run" in target
            suite.case(name, "POST" if is_run else "PUT", target,
                       b'{"inputs": {"x": [1.5]}}' if is_run else GRAPHS_FX("relu"), (), (status, code, ""))


def anonymous(suite):
    with open(f"/proc/{suite.server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)[1]) / 1024


def measure_memory(suite):
    """All single cases again and again, until a pass leaves next to nothing behind: the allocator's pools
    fill up first, the more slowly the busier the machine. What leaks never comes to that."""
    rows, after = [row for row in all_rows() if len(row[3] or b"") < 1 << 20], []
    left = None
    while len(after) < 2 or (left > LEFT_MB and len(after) < PASSES):
        for name, method, target, body, headers, _ in rows:
            try:
                suite.call(method, target, body, headers)
            except (Failed, OSError) as problem:
                suite.tally.bad(name, str(problem))
                suite.revive("no reply" in str(problem))
        suite.good_run()
        suite.call("DELETE", "/v1/graphs/bad", None)
        after.append(anonymous(suite))
        left = min((b - a for a, b in zip(after, after[1:])), default=None)
    print(f"{len(rows)} cases {len(after)} times: anonymous memory after each pass: "
          f"{', '.join(f'{mb:.1f} MB' for mb in after)}")
    suite.tally.check("memory after malformed requests", None if left <= LEFT_MB
                      else f"each pass leaves at least {left:.1f} MB behind, at most {LEFT_MB:g} MB may be")


def main():
    words = [word for word in sys.argv[1:] if word != "--memory"]
    if len(words) not in (1, 2):
        print("usage: malformed.py FXSERVE [--memory] [WORD]")
        return 2
    suite = Suite(os.path.abspath(words[0]), words[1] if len(words) == 2 else None)
    suite.begin()
    if "--memory" in sys.argv:
        measure_memory(suite)
    else:
        run_rows(suite)
        transform_rows(suite)
        compare_rows(suite)
        upload_rows(suite)
        names(suite)
        many(suite)
        names_beside_a_folder(suite)
        cut_requests(suite)
        mutants(suite)
    suite.tally.check("the server's end", "\n".join(suite.server.stop()))
    suite.server.clean_up()
    return suite.tally.end()


if __name__ == "__main__":
    sys.exit(main())
