# SPDX-License-Identifier: Apache-2.0
"""Scenarios: requests and what must come back, as short text files.

A statement starts in the first column; lines indented below it belong to it (its text, without the
indent). `#` starts a comment. `${name}` is a variable.

    server [FLAGS]             starts the server (else the first request does, with --data none);
                               {data} is a folder of the scenario's own
    restart [FLAGS]            SIGTERM, exit 0 demanded, started again on the same folder
    kill | term | hup          SIGKILL; SIGTERM, SIGHUP without waiting
    exit CODE                  waits until the server has ended with CODE
    let NAME = TEXT            a variable; also several indented lines
    $ [NAME=VALUE] ARGUMENTS   runs the program to its end, with variables; `< exit 0` and the checks
                               of a body follow. {url} is the server's
    log has "TEXT"             a line of the server's standard error (waits up to 10 s)
    wait GET TARGET has "TEXT" asks until the body holds it (up to 20 s); `wait A GET ...` asks on
                               connection A, and else each time on a new one
    load N STATUSES REQUEST    N clients send it again and again; every reply must be whole and have
                               one of the statuses (200,404); `load settle N` waits until each
                               client has N replies; `load end` stops them (the server may have gone
                               before)
    sleep SECONDS              only where the clock itself is what is tested
    folder write PATH BODY | flip PATH OFFSET | cut PATH N | remove PATTERN | pipe PATH | link PATH
    | fill FOLDER of tests/store | count PATTERN N | remember | same

    > METHOD TARGET [BODY]     a request; header lines `> Name: value` follow. On another
                               connection: `A> ...`
    > raw "BYTES" [METHOD]     bytes as they are; METHOD when they end a request. `raw last "BYTES"
                               METHOD`: nothing follows, and the end comes in the same packet
    > close                    closes the connection BODY: {...} or [...] up to the end of the line,
                               or terms joined by ` + `: @FILE (below tests/models; @@FILE below
                               tests)  "TEXT"  hex 00ff  repeat N "TEXT"  npy DTYPE NESTED  form
                               NAME=TERM ... npz NAME DTYPE NESTED ; ...   deflated NAME DTYPE
                               NESTED ; ...   safetensors NAME DTYPE NESTED ; ...   zip PATH ; ...
                               `chunked N BODY` sends pieces of N bytes

    < 200 [CODE]               the next reply: status, and the error's code (`-`: no JSON)
    < Name: value | < Name ~ REGEX | < no Name | < header Name -> var
    < .path == JSON            members by path: .outputs[0].data, .ops["aten.relu.default"],
                               .nodes[*].name; numbers within 1e-5
    < .path === JSON | ~ REGEX | has "TEXT" | lacks "TEXT" | count N | >= N | <= N | is missing | ->
    var
    < has "TEXT" | lacks "TEXT" | line "TEXT" | body BODY | text (indented lines, then one newline)
    | npy DTYPE NESTED | empty
    < npz NAME DTYPE NESTED | safetensors NAME DTYPE NESTED   an array of the file
    < closed                   the server closes the connection without another byte
"""
import fnmatch
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from service import (MODELS, REPLY_SECONDS, ROOT, Failed, Server, assert_close, environment, multipart,
                     read_array, read_npy, tensor_of, write_arrays, write_npy, write_zip)

METHOD_LINE = re.compile(r"([A-Za-z]+) (\S+)(?: (.*))?$", re.S)
MISSING = object()
WAIT_SECONDS = 20


def statements(text):
    """(line number, statement, indented text or None) of a file."""
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] in (" ", "\t"):
            if not out:
                raise Failed(f"line {number}: indented text without a statement")
            out[-1][2].append(line)
        elif line.strip() and not line.startswith("#"):
            out.append((number, line.rstrip(), []))
        elif not line.strip() and out and out[-1][2]:
            out[-1][2].append("")
    for number, line, below in out:
        while below and not below[-1].strip():
            below.pop()
        indent = min((len(row) - len(row.lstrip()) for row in below if row.strip()), default=0)
        yield number, line, "\n".join(row[indent:] for row in below) if below else None


def quoted(text):
    """The bytes of "...", with Python's escapes."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise Failed(f"a text stands in double quotes: {text}")
    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", lambda found: _escape(found[1]), text[1:-1].encode())


def _escape(what):
    if what[:1] == b"x" and len(what) == 3:
        return bytes([int(what[1:], 16)])
    return {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"0": b"\0"}.get(what, what)


def term(text):
    if text.startswith("@@"):
        path = os.path.join(ROOT, "tests", text[2:])
    elif text.startswith("@"):
        path = os.path.join(MODELS, text[1:])
    elif text.startswith("hex "):
        return bytes.fromhex(text[4:])
    elif text.startswith("repeat "):
        _, n, what = text.split(" ", 2)
        return quoted(what) * int(n)
    elif text.startswith("npy "):
        _, dtype, nested = text.split(" ", 2)
        return write_npy(tensor_of(dtype, json.loads(nested)))
    elif text.startswith(("npz ", "deflated ", "safetensors ")):
        kind, _, rows = text.partition(" ")
        rows = [row.split(" ", 2) for row in rows.split(" ; ")]
        return write_arrays(kind,
                            [(name, tensor_of(dtype, json.loads(nested))) for name, dtype, nested in rows])
    elif text.startswith("zip "):
        return write_zip("zip", [(path, path.encode()) for path in text[4:].split(" ; ")])
    elif text[:1] in ("{", "["):
        return text.encode("utf-8", "surrogateescape")
    else:
        return quoted(text)
    with open(path, "rb") as file:
        return file.read()


def body_of(text):
    """(bytes, headers, chunk size or None)."""
    if text.startswith("chunked "):
        _, n, rest = text.split(" ", 2)
        data, headers, _ = body_of(rest)
        return data, headers, int(n)
    if text.startswith("form "):
        pieces = re.findall(r'([\w:.]+=(?:"(?:[^"\\]|\\.)*"|\S+))', text[5:])
        parts = [piece.split("=", 1) for piece in pieces]
        data, content_type = multipart([(name, term(value)) for name, value in parts])
        return data, [("Content-Type", content_type)], None
    if text[:1] in ("{", "["):
        return text.encode("utf-8", "surrogateescape"), [], None
    return (b"".join(term(piece) for piece in re.split(r" \+ (?=[@\"{\[]|hex |repeat |npy |npz |deflated "
                                                       r"|safetensors |zip )", text)), [], None)


# ---- members by path ---------------------------------------------------------------------------
def members(value, path):
    """The values a path leads to."""
    found, rest = [value], path
    while rest:
        step = re.match(r'\.?\["((?:[^"\\]|\\.)*)"\]|\.([A-Za-z_$][\w$-]*)|\[(\d+|\*|-1)\]', rest)
        if not step:
            raise Failed(f"a path has .name, [0], [*] or [\"name\"]: {path}")
        rest = rest[step.end():]
        key = step[1] if step[1] is not None else step[2]
        if key is not None:
            found = [row[key] for row in found if isinstance(row, dict) and key in row]
        elif step[3] == "*":
            found = [item for row in found if isinstance(row, list) for item in row]
        else:
            found = [row[int(step[3])] for row in found if isinstance(row, list) and len(row) > int(step[3])]
    return found


def same(got, want, exact):
    if isinstance(want, bool) or isinstance(got,
                                            bool) or want is None or got is None or isinstance(want, str):
        return type(got) is type(want) and got == want
    if isinstance(want, (int, float)):
        if not isinstance(got, (int, float)):
            return False
        return (got == want and type(got) is type(want) if exact
                else abs(got - want) <= 1e-5 * max(1.0, abs(want)))
    if isinstance(want, list):
        return (isinstance(got, list) and len(got) == len(want)
                and all(same(a, b, exact) for a, b in zip(got, want)))
    return (isinstance(got, dict) and got.keys() == want.keys()
            and all(same(got[key], want[key], exact) for key in want))


class Scenario:
    def __init__(self, path, binary, seen):
        self.name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.binary, self.seen = binary, seen  # seen(method, target, status, code) for every reply
        self.variables, self.connections, self.asked = {}, {}, {}
        self.server, self.reply, self.last, self.remembered, self.clients = None, None, None, None, []
        self.folder = tempfile.mkdtemp(prefix="fxserve-")
        self.data = os.path.join(self.folder, "data")

    def run(self):
        """A list of what is wrong."""
        problems, number = [], 0
        try:
            for number, line, below in statements(self.text):
                line = re.sub(r"\$\{(\w+)\}", self._variable, line)
                below = None if below is None else re.sub(r"\$\{(\w+)\}", self._variable, below)
                self._statement(line, below)
            self._finish_request()
        except (Failed, OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
            shown = f"{type(error).__name__}: {error}" if not isinstance(error, Failed) else str(error)
            problems.append(f"line {number}: {shown}"
                            + (f"\n    reply: {self.reply.short()}" if self.reply is not None else ""))
        for connection in self.connections.values():
            connection.close()
        for client in self.clients:
            client.ending = True
        for client in self.clients:
            client.join(60)
        if self.server is not None:
            problems += self.server.stop()
            self.server.clean_up()
        shutil.rmtree(self.folder, ignore_errors=True)
        return problems

    def _variable(self, found):
        if found[1] not in self.variables:
            raise Failed(f"no variable ${{{found[1]}}}")
        return self.variables[found[1]]

    def _statement(self, line, below):
        found = re.match(r"(\w*)>(?: (.*))?$", line, re.S)
        if found:
            return self._send(found[1], found[2] or "", below)
        if self.last is not None:
            self._finish_request()
        found = re.match(r"(\w*)<(?: (.*))?$", line, re.S)
        if found:
            return self._check(found[1], found[2] or "", below)
        word, _, rest = line.partition(" ")
        action = {"server": self._start, "restart": self._restart, "kill": self._kill, "term": self._term,
                  "hup": self._hup, "exit": self._exit, "let": self._let, "$": self._program,
                  "log": self._log, "wait": self._wait, "folder": self._folder, "load": self._load,
                  "sleep": self._sleep}.get(word)
        if action is None:
            raise Failed(f"not understood: {line}")
        return action(rest, below)

    # ---- the server ----
    def _places(self, text):
        return text.replace("{data}", self.data).replace("{models}", MODELS).replace(
            "{here}", self.folder).replace("{url}", self.server.url if self.server else "")

    def _flags(self, text):
        flags = shlex.split(self._places(text))
        return flags if any(flag.startswith("--data") for flag in flags) else ["--data", "none", *flags]

    def _start(self, rest, _=None):
        self._close_all()
        files = [word for word in self._flags(rest) if word.startswith(MODELS)
                 or word.startswith(self.folder + "/file")]
        flags = [word for word in self._flags(rest) if word not in files]
        self.server = Server(self.binary, flags, files, folder=self.folder)
        self.server.start()

    def _close_all(self):
        for connection in self.connections.values():
            connection.close()
        self.connections, self.asked = {}, {}

    def _restart(self, rest, _):
        self._close_all()
        flags = self._flags(rest) if rest else self.server.flags
        problems = self.server.stop()
        if problems:
            raise Failed("; ".join(problems))
        self.server = Server(self.binary, flags, [], folder=self.folder)
        self.server.start()

    def _kill(self, _rest, _):
        self._close_all()
        self.server.kill()

    def _term(self, _rest, _):
        self.server.signal(signal.SIGTERM)

    def _hup(self, _rest, _):
        self.server.signal(signal.SIGHUP)

    def _exit(self, rest, _):
        problems = self.server.ended(int(rest))
        self.server = None
        if problems:
            raise Failed("; ".join(problems))

    def _let(self, rest, below):
        name, _, value = rest.partition("=")
        self.variables[name.strip()] = value.strip() if below is None else below

    def _sleep(self, rest, _):
        time.sleep(float(rest))

    def _program(self, rest, _):
        words, variables = shlex.split(self._places(rest)), {}
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, variables[name] = words.pop(0).partition("=")
        done = subprocess.run([self.binary, *words], cwd=self.folder,
                              env=environment(self.folder, variables), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, check=False)
        self.reply = Program(done.returncode, done.stdout, done.stderr)

    def _log(self, rest, _):
        wanted = quoted(rest.removeprefix("has ")).decode()
        end = time.monotonic() + WAIT_SECONDS
        while wanted not in self.server.log():
            if time.monotonic() > end:
                raise Failed(f"the log lacks {wanted!r}:\n{self.server.log()[-1500:]}")
            time.sleep(0.02)

    def _wait(self, rest, _):
        found = re.match(r"(?:(?P<name>[A-Z]) )?(?P<method>[A-Z]{2,}) (?P<target>\S+) has (?P<text>.*)$",
                         rest)
        if not found:
            raise Failed(f"not understood: wait {rest}")
        name, method, target = found["name"], found["method"], found["target"]
        wanted, end, reply = quoted(found["text"]), time.monotonic() + WAIT_SECONDS, None
        while reply is None or wanted not in reply.body:
            if time.monotonic() > end:
                raise Failed(f"{target} never held {wanted!r}: {reply.short()}")
            if name is None:
                reply = self.server.call(method, target)
            else:
                self._connection(name).request(method, target)
                reply = self._connection(name).reply()
            time.sleep(0.01)

    # ---- load ----
    def _load(self, rest, below):
        if rest.startswith("settle "):
            end = time.monotonic() + 60
            while any(client.n < int(rest[7:]) and client.is_alive() for client in self.clients):
                if time.monotonic() > end:
                    raise Failed(f"clients had {[client.n for client in self.clients]} replies in 60 s")
                time.sleep(0.01)
        elif rest == "end":
            clients, self.clients = self.clients, []
            for client in clients:
                client.ending = True
            for client in clients:
                client.join(60)
            problems = [client.problem for client in clients if client.problem]
            if problems or any(client.is_alive() for client in clients):
                raise Failed("; ".join(problems[:3]) or "a client hangs")
        else:
            n, statuses, method, target, *body = rest.split(" ", 4)
            data, headers, _ = body_of(below if below is not None
                                       else body[0]) if below is not None or body else (None, [], None)
            for _ in range(int(n)):
                self.clients.append(LoadClient(self.server, [int(status) for status in statuses.split(",")],
                                               (method, target, data, headers), self.seen))
                self.clients[-1].start()

    # ---- the data folder ----
    def _path(self, pattern):
        found = sorted(glob.glob(os.path.join(self.data, pattern)))
        if len(found) != 1:
            raise Failed(f"{pattern} names {len(found)} files: {[os.path.basename(path) for path in found]}")
        return found[0]

    def _listing(self):
        rows = {}
        for folder, _, names in os.walk(self.data):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    rows[os.path.relpath(path, self.data)] = hashlib.sha256(file.read()).hexdigest()
        return rows

    def _folder(self, rest, _):
        word, _, rest = rest.partition(" ")
        if word == "write":
            path, _, text = rest.partition(" ")
            os.makedirs(os.path.dirname(os.path.join(self.data, path)), exist_ok=True)
            with open(os.path.join(self.data, path), "wb") as file:
                file.write(body_of(text)[0])
        elif word in ("flip", "cut"):
            pattern, n = rest.split(" ")
            path = self._path(pattern)
            os.chmod(path, 0o600)
            with open(path, "r+b") as file:
                if word == "cut":
                    file.truncate(int(n))
                else:
                    file.seek(int(n))
                    byte = file.read(1)
                    file.seek(int(n))
                    file.write(bytes([byte[0] ^ 1]))
        elif word == "remove":
            for path in glob.glob(os.path.join(self.data, rest)):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        elif word == "count":
            pattern, n = rest.split(" ")
            found = glob.glob(os.path.join(self.data, pattern))
            if len(found) != int(n):
                raise Failed(f"{pattern} names {len(found)} files, expected "
                             f"{n}: {[os.path.basename(path) for path in found]}")
        elif word == "fill":
            shutil.copytree(os.path.join(ROOT, "tests", "store", rest), self.data, dirs_exist_ok=True)
        elif word == "pipe":
            os.mkfifo(os.path.join(self.data, rest))
        elif word == "link":
            os.symlink("/etc/passwd", os.path.join(self.data, rest))
        elif word == "remember":
            self.remembered = self._listing()
        elif word == "same":
            if self._listing() != self.remembered:
                raise Failed(f"the folder changed: "
                             f"{sorted(self._listing().items() ^ self.remembered.items())}")
        else:
            raise Failed(f"not understood: folder {word}")

    # ---- sending ----
    def _connection(self, name, sending=False):
        if self.server is None:
            self._start("")
        if sending and name in self.connections and self.connections[name].ending:
            self.connections.pop(name).close()
        if name not in self.connections:
            self.connections[name] = self.server.connect(REPLY_SECONDS)
            self.asked[name] = []
        return self.connections[name]

    def _send(self, name, text, below):
        header = re.match(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?(.*)$", text, re.S)
        if header and self.last is not None:
            self.last["headers"].append((header[1], header[2]))
            return
        self._finish_request()
        if text.startswith("raw "):
            found = re.match(r'raw (last )?("(?:[^"\\]|\\.)*"|repeat \d+ ".*?")(?: ([A-Z]+))?$', text, re.S)
            if not found:
                raise Failed(f"not understood: {text}")
            connection = self._connection(name, sending=True)
            if found[3]:
                self.asked[name].append((found[3], "?"))
            connection.send(term(found[2]), found[3], last=found[1] is not None)
        elif text == "close":
            self.connections.pop(name).close()
        else:
            found = METHOD_LINE.match(text)
            if not found:
                raise Failed(f"a request is METHOD TARGET [BODY]: {text}")
            body = found[3] if below is None else below if found[3] is None else found[3] + " " + below
            self.last = {"name": name, "method": found[1], "target": found[2], "body": body, "headers": []}

    def _finish_request(self):
        if self.last is None:
            return
        last, self.last = self.last, None
        data, headers, chunk = (None, [], None) if last["body"] is None else body_of(last["body"])
        given = {key.lower() for key, _ in last["headers"]}
        headers = last["headers"] + [row for row in headers if row[0].lower() not in given]
        connection = self._connection(last["name"], sending=True)
        self.asked[last["name"]].append((last["method"], last["target"]))
        connection.request(last["method"], last["target"], data, headers, chunk)

    # ---- checking ----
    def _check(self, name, text, below):
        if re.match(r"\d{3}( \w+| -)?$", text):
            return self._status(name, text)
        if text == "closed":
            if not self._connection(name).closed():
                raise Failed(f"the connection is open or says more: {self.connections[name].buffer[:200]!r}")
            self.connections.pop(name).close()
            return None
        if self.reply is None:
            raise Failed("there is no reply to check yet")
        if text.startswith("exit "):
            if self.reply.status != int(text[5:]):
                raise Failed(f"exit code {self.reply.status}, expected {text[5:]}")
            return None
        if text.startswith("."):
            return self._member(text, below)
        return self._whole(text, below)

    def _status(self, name, text):
        wanted, _, code = text.partition(" ")
        self.reply = None
        connection = self._connection(name)
        reply = self.reply = connection.reply()
        method, target = self.asked[name].pop(0) if self.asked[name] else ("?", "?")
        self.seen(method, target, reply.status, reply.code())
        # the next request opens a new one
        connection.ending = (reply.header("Connection") or "").lower() == "close"
        if reply.status != int(wanted):
            raise Failed(f"status {reply.status}, expected {wanted}")
        if code not in ("", "-") and reply.code() != code:
            raise Failed(f"code {reply.code()}, expected {code}")
        if reply.status >= 400 and method != "HEAD" and not code:
            raise Failed("an error's code is checked as well: `< 400 bad_value`")

    def _member(self, text, below):
        found = re.match(r"(\.(?:\S*\[\"(?:[^\"\\]|\\.)*\"\]\S*|\S*)) "
                         r"(===|==|~|has|lacks|count|>=|<=|is missing|->)(?: (.*))?$", text, re.S)
        if not found:
            raise Failed(f"not understood: < {text}")
        path, operator, wanted = found[1], found[2], found[3] if below is None else below
        values = members(self.reply.json(), "" if path == "." else path)
        got = MISSING if not values else values if "[*]" in path else values[0]
        if operator == "is missing":
            if got is not MISSING:
                raise Failed(f"{path} is there: {json.dumps(got)[:300]}")
            return
        if got is MISSING:
            raise Failed(f"{path} is missing")
        if operator == "->":
            self.variables[wanted] = got if isinstance(got, str) else json.dumps(got)
            return
        plain = got if isinstance(got, str) else json.dumps(got, ensure_ascii=False)
        if operator in ("==", "==="):
            holds = same(got, json.loads(wanted), operator == "===")
        elif operator == "~":
            holds = re.search(wanted, plain) is not None
        elif operator in ("has", "lacks"):
            holds = (quoted(wanted).decode() in (got if "[*]" in path else plain)) == (operator == "has")
        elif operator == "count":
            holds = len(got) == int(wanted)
        else:
            holds = got >= float(wanted) if operator == ">=" else got <= float(wanted)
        if not holds:
            raise Failed(f"{path} is {plain[:1500]}, expected {operator} {wanted}")

    def _whole(self, text, below):
        reply, body = self.reply, self.reply.body
        word, _, rest = text.partition(" ")
        if word in ("has", "lacks"):
            if (quoted(rest) in body) != (word == "has"):
                raise Failed(f"the body {'lacks' if word == 'has' else 'has'} {rest}")
        elif word == "line":
            if quoted(rest) not in body.split(b"\n"):
                raise Failed(f"the body has no line {rest}")
        elif word == "text":
            if body != (below or "").encode() + b"\n":
                raise Failed(f"the body is\n{body.decode('utf-8', 'replace')}expected\n{below}")
        elif word == "body":
            if body != body_of(rest)[0]:
                raise Failed("the body is another one")
        elif word == "empty":
            if body:
                raise Failed("the body is not empty")
        elif word == "npy":
            dtype, nested = rest.split(" ", 1)
            assert_close(read_npy(body), tensor_of(dtype, json.loads(nested)), "npy", 1e-5)
        elif word in ("npz", "safetensors"):
            name, dtype, nested = rest.split(" ", 2)
            assert_close(read_array(word, body, name), tensor_of(dtype, json.loads(nested)),
                         f"{word} {name}", 1e-5)
        elif word == "no":
            if reply.header(rest) is not None:
                raise Failed(f"there is a header {rest}: {reply.header(rest)}")
        elif word == "header":
            name, _, variable = rest.partition(" -> ")
            if reply.header(name) is None:
                raise Failed(f"there is no header {name}")
            self.variables[variable] = reply.header(name)
        elif re.match(r"[\w-]+: ", text):
            name, wanted = text.split(": ", 1)
            if reply.header(name) != wanted:
                raise Failed(f"header {name} is {reply.header(name)!r}, expected {wanted!r}")
        elif re.match(r"[\w-]+ ~ ", text):
            name, wanted = text.split(" ~ ", 1)
            if reply.header(name) is None or not re.search(wanted, reply.header(name)):
                raise Failed(f"header {name} is {reply.header(name)!r}, expected {wanted}")
        else:
            raise Failed(f"not understood: < {text}")


class LoadClient(threading.Thread):
    """Sends one request again and again. The server may close the connection between two replies,
    never within one."""

    def __init__(self, server, statuses, request, seen):
        super().__init__(daemon=True)
        self.server, self.statuses, self.request, self.seen = server, statuses, request, seen
        self.n, self.ending, self.problem = 0, False, None

    def run(self):
        try:
            connection = self.server.connect(REPLY_SECONDS)
        except OSError:
            return
        with connection:
            while not self.ending and self.problem is None:
                try:
                    connection.request(*self.request)
                    reply = connection.reply()
                except (Failed, OSError) as problem:
                    if connection.buffer or "within" in str(problem) or "before the end" in str(problem):
                        self.problem = str(problem)
                    return
                self.n += 1
                self.seen(self.request[0], self.request[1], reply.status, reply.code())
                if reply.status not in self.statuses:
                    self.problem = f"{self.request[0]} {self.request[1]}: {reply.short()}"
                if (reply.header("Connection") or "").lower() == "close":
                    return


class Program:
    """The end of `$ ...`, checked like a reply."""

    def __init__(self, code, out, error):
        self.status, self.body, self.error = code, out + error, error
        self.out = out

    def header(self, _):
        return None

    def json(self):
        return json.loads(self.out)

    def code(self):
        return None

    def short(self):
        return f"exit {self.status} {self.body[:1500].decode('utf-8', 'replace')}"


def matching(folder, pattern):
    paths = sorted(path for path in glob.glob(os.path.join(folder, "[0-9]*.txt")))
    return [path for path in paths if pattern is None
            or fnmatch.fnmatch(os.path.basename(path), f"*{pattern}*")]
