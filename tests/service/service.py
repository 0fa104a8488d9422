# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: a server under test, HTTP over plain sockets, tensors as
JSON, a tally. Standard library only.

A `Server` runs one fxserve on a free port with its standard error in a file; `stop()` ends it with
SIGTERM and returns what is wrong: another exit code than 0, or a sanitizer's report. A `Connection`
sends bytes as they are given, so that requests no HTTP library would send can be sent, and reads
replies in order.
"""
import array
import base64
import contextlib
import fnmatch
import io
import json
import math
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODELS = os.path.join(ROOT, "tests", "models")
SANITIZER = re.compile(r"ERROR: (Address|Leak|Thread|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime "
                       r"error:|Sanitizer:DEADLYSIGNAL|SUMMARY: \w+Sanitizer")
DEFAULTS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
START_SECONDS, STOP_SECONDS, REPLY_SECONDS = 30, 60, 25


class Failed(Exception):
    """A check that does not hold; the text says what was found and what was expected."""


def environment(home, extra=None):
    """The environment of a program under test: nothing that configures fxserve, a home of its
    own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FXSERVE_", "XDG_"))}
    return {**DEFAULTS, **kept, "HOME": home, **(extra or {})}


def end_with_parent():
    """Children end when this program does, however it ends (prctl PR_SET_PDEATHSIG)."""
    try:
        import ctypes
        libc = ctypes.CDLL(None)
        return lambda: libc.prctl(1, signal.SIGKILL)
    except OSError:
        return None


END_WITH_PARENT = end_with_parent()


class Server:
    def __init__(self, binary, flags=(), files=(), folder=None, extra_environment=None, listen="127.0.0.1:0"):
        self.binary, self.flags, self.files, self.listen = (os.path.abspath(binary), list(flags),
                                                            list(files), listen)
        self.own_folder = tempfile.TemporaryDirectory(prefix="fxserve-") if folder is None else None
        self.folder = folder or self.own_folder.name
        self.extra_environment = extra_environment
        self.log_path = os.path.join(self.folder, "server.log")
        self.process, self.port, self.url = None, None, None

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--listen", self.listen, *self.flags, *self.files],
                stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                env=environment(self.folder, self.extra_environment), preexec_fn=END_WITH_PARENT)
        line = self._first_line()
        found = re.fullmatch(r"listening on (https?://\S+:(\d+))\n", line)
        if not found:
            code = self.wait(STOP_SECONDS)
            raise Failed(f"the server did not start: printed {line!r}, exit code {code}\n"
                         f"{self.log()[-1000:]}")
        self.url, self.port = found[1], int(found[2])
        return self

    def _first_line(self):
        fd, line, end = self.process.stdout.fileno(), b"", time.monotonic() + START_SECONDS
        while not line.endswith(b"\n") and time.monotonic() < end:
            if select.select([fd], [], [], 0.5)[0]:
                more = os.read(fd, 1)
                if not more:
                    break
                line += more
        return line.decode(errors="replace")

    def wait(self, seconds):
        """The exit code, or None if the process is still there."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.alive():
            self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def stop(self, expected=0):
        """Ends the server; a list of what is wrong."""
        problems = []
        if self.process is None:
            return self.reports()
        early = self.process.poll()
        if early is not None:
            problems.append(f"the server ended by itself with exit code {early}")
        else:
            self.process.send_signal(signal.SIGTERM)
            code = self.wait(STOP_SECONDS)
            if code is None:
                problems.append(f"the server still runs {STOP_SECONDS} s after SIGTERM")
            elif code != expected:
                problems.append(f"exit code {code} after SIGTERM, expected {expected}")
        self.kill()
        return problems + self.reports()

    def ended(self, expected):
        """Waits until the server ends by itself; a list of what is wrong."""
        code = self.wait(STOP_SECONDS)
        self.kill()
        return ([] if code == expected else [f"exit code {code}, expected {expected}"]) + self.reports()

    def reports(self):
        found = SANITIZER.search(self.log())
        return [] if found is None else ["a sanitizer's report:\n"
                                         + self.log()[found.start():found.start() + 2500]]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def clean_up(self):
        self.kill()
        if self.own_folder is not None:
            self.own_folder.cleanup()

    def connect(self, seconds=REPLY_SECONDS):
        return Connection(self.port, seconds)

    def call(self, method, target, body=None, headers=(), seconds=REPLY_SECONDS):
        """One request on a connection of its own."""
        with self.connect(seconds) as connection:
            connection.request(method, target, body, headers)
            return connection.reply()


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return values[0] if values else None

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"the body is no JSON ({error}): {self.body[:200]!r}") from None

    def code(self):
        try:
            value = json.loads(self.body)
        except ValueError:
            return None
        return value.get("code") if isinstance(value, dict) else None

    def short(self):
        return f"{self.status} {self.body[:700].decode('utf-8', 'replace')}"


class Connection:
    def __init__(self, port, seconds=REPLY_SECONDS):
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.buffer, self.methods, self.ending = port, b"", [], False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data, method=None, last=False):
        """Bytes as they are; `method` when they end a request, so that a reply to HEAD is read
        without its body. `last`: nothing follows, and the end comes in the same packet."""
        if method is not None:
            self.methods.append(method)
        try:
            self.socket.sendall(data, socket.MSG_MORE if last else 0)
            if last:
                self.socket.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may answer and close before it has read everything: the reply says why

    def request(self, method, target, body=None, headers=(), chunk=None):
        names = {key.lower() for key, _ in headers}
        head = f"{method} {target} HTTP/1.1\r\n"
        if "host" not in names:
            head += f"Host: 127.0.0.1:{self.port}\r\n"
        for key, value in headers:
            head += f"{key}: {value}\r\n"
        if chunk is not None:
            head += "Transfer-Encoding: chunked\r\n"
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + chunk]), body[i:i + chunk])
                            for i in range(0, len(body), chunk)) + b"0\r\n\r\n"
        elif ((body is not None or method in ("POST", "PUT")) and "content-length" not in names
              and "transfer-encoding" not in names):
            head += f"Content-Length: {len(body or b'')}\r\n"
        self.send(head.encode("utf-8", "surrogateescape") + b"\r\n" + (body or b""), method)

    def _more(self):
        try:
            more = self.socket.recv(1 << 20)
        except (TimeoutError, socket.timeout):
            raise Failed(f"no reply within {self.socket.gettimeout():g} s; so "
                         f"far: {self.buffer[:200]!r}") from None
        except ConnectionResetError:
            more = b""
        self.buffer += more
        return more != b""

    def _until(self, mark):
        while mark not in self.buffer:
            if not self._more():
                raise Failed(f"the connection was closed; so far: {self.buffer[:200]!r}")
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def _exactly(self, n):
        pieces, have = [self.buffer[:n]], min(n, len(self.buffer))
        self.buffer = self.buffer[n:]
        while have < n:
            if not self._more():
                raise Failed(f"the connection was closed {n - have} bytes before the end of the body")
            pieces.append(self.buffer[:n - have])
            have += len(pieces[-1])
            self.buffer = self.buffer[len(pieces[-1]):]
        return b"".join(pieces)

    def reply(self):
        method = self.methods.pop(0) if self.methods else "GET"
        while True:
            lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            found = re.fullmatch(r"HTTP/1\.[01] (\d{3}) ?(.*)", lines[0])
            if not found:
                raise Failed(f"no status line: {lines[0]!r}")
            if found[1] != "100":
                break
        headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        reply = Reply(int(found[1]), headers, b"")
        if method == "HEAD" or reply.status in (204, 304):
            return reply
        if (reply.header("Transfer-Encoding") or "").lower() == "chunked":
            while n := int(self._until(b"\r\n").split(b";")[0], 16):
                reply.body += self._exactly(n)
                self._until(b"\r\n")
            self._until(b"\r\n")
        elif reply.header("Content-Length") is not None:
            reply.body = self._exactly(int(reply.header("Content-Length")))
        else:
            while self._more():
                pass
            reply.body, self.buffer = self.buffer, b""
        return reply

    def closed(self):
        """Whether the server ends the connection, with nothing sent before that."""
        return not self._more() and self.buffer == b""


# ---- tensors -----------------------------------------------------------------------------------
TYPECODES = {"float32": "f", "float64": "d", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
             "uint8": "B", "bool": "B"}
SAFETENSORS = {"F32": "float32", "F64": "float64", "I64": "int64", "I32": "int32", "I16": "int16",
               "I8": "int8", "U8": "uint8", "BOOL": "bool"}
NUMPY = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "|i1",
         "uint8": "|u1", "bool": "|b1"}


class Tensor:
    """dtype, shape and little-endian bytes."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), data

    def values(self):
        out = array.array(TYPECODES[self.dtype], self.data)
        if sys.byteorder == "big":
            out.byteswap()
        return [bool(value) for value in out] if self.dtype == "bool" else out.tolist()

    def nested(self):
        """Lists of lists; with a size of 0 the object form, since lists cannot tell the sizes
        behind it."""
        flat = self.values()
        if not flat:
            return self.as_list()
        for size in reversed(self.shape[1:]):
            flat = [flat[i:i + size] for i in range(0, len(flat), size)]
        return flat if self.shape else flat[0]

    def as_list(self):
        return {"dtype": self.dtype, "shape": self.shape, "data": self.values()}

    def as_b64(self):
        return {"dtype": self.dtype, "shape": self.shape, "b64": base64.b64encode(self.data).decode()}


def tensor_of(dtype, nested):
    shape, flat = [], nested
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0] if flat else None
    flat = nested if shape else [nested]
    for _ in shape[1:]:
        flat = [item for row in flat for item in row]
    return Tensor(dtype, shape, array.array(TYPECODES[dtype], flat).tobytes())


def reply_tensor(entry):
    """A tensor of a run's reply: nested or flat numbers, or base64."""
    if "b64" in entry:
        return Tensor(entry["dtype"], entry["shape"], base64.b64decode(entry["b64"]))
    flat = entry["data"]
    if entry["shape"] and flat and isinstance(flat[0], list):
        for _ in entry["shape"][1:]:
            flat = [item for row in flat for item in row]
    flat = flat if isinstance(flat, list) else [flat]
    return Tensor(entry["dtype"], entry["shape"], array.array(
        TYPECODES[entry["dtype"]], [float(v) if isinstance(v, str) else v for v in flat]).tobytes())


def read_safetensors(path):
    """({name: Tensor}, metadata) of a file."""
    with open(path, "rb") as file:
        blob = file.read()
    n = struct.unpack_from("<Q", blob)[0]
    header = json.loads(blob[8:8 + n])
    metadata = header.pop("__metadata__", {})
    base = 8 + n
    return ({name: Tensor(SAFETENSORS[row["dtype"]],
                          row["shape"], blob[base + row["data_offsets"][0]:base + row["data_offsets"][1]])
             for name, row in header.items()}, metadata)


def write_safetensors(tensors):
    """A file's bytes from {name: Tensor}."""
    names = {ours: theirs for theirs, ours in SAFETENSORS.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": names[tensor.dtype], "shape": tensor.shape,
                        "data_offsets": [offset, offset + len(tensor.data)]}
        offset += len(tensor.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors.values())


def tracked_files(folder, *patterns):
    """Paths that git lists below a folder. Without git, or in what a release unpacks: all but what
    builds leave."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(["git", "ls-files", "-z", *patterns], cwd=folder, capture_output=True,
                              text=True, check=True).stdout.split("\0")[:-1]
    paths = []
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if name not in (".git", "__pycache__")
                    and not name.startswith((".venv", "build"))]
        paths += [os.path.relpath(os.path.join(place, name), folder) for name in files]
    return [path for path in paths
            if not patterns or any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)]


def routes():
    """The routes of api/routes.def in the order of its rows, versioned forms after their plain ones:
    (id, method, path, success statuses).
    """
    with open(os.path.join(ROOT, "api", "routes.def"), encoding="utf-8") as file:
        rows = re.findall(r'^(VERSIONED_)?ROUTE\((\w+), (?:(\w+), )?"(\w+)", "([^"]*)", "([^"]*)".*?'
                          r"STATUSES\(([\d, ]+)\)", file.read(), re.M | re.S)
    out = []
    for versioned, name, of_version, method, path, part, statuses in rows:
        forms = [(name, path + part if versioned else path)]
        forms += [(of_version, path + "/versions/{v}" + part)] if versioned else []
        out += [(form, method, place, statuses.split(", ")) for form, place in forms]
    if not out:
        raise Failed("api/routes.def has no rows")
    return out


# For a server that answers every route.
CODECS = "tfserving,torchserve,sagemaker=digits"


def write_npy(tensor):
    dims = "".join(f"{size}, " for size in tensor.shape)
    text = f"{{'descr': '{NUMPY[tensor.dtype]}', 'fortran_order': False, 'shape': ({dims}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + tensor.data


def read_npy(blob):
    if blob[:8] != b"\x93NUMPY\x01\x00":
        raise Failed(f"no .npy version 1 file: {blob[:16]!r}")
    n = struct.unpack_from("<H", blob, 8)[0]
    header = blob[10:10 + n].decode("latin-1")
    descr = re.search(r"'descr': '([^']*)'", header)[1]
    shape = [int(size) for size in re.findall(r"\d+", re.search(r"'shape': \(([^)]*)\)", header)[1])]
    return Tensor(next(ours for ours, theirs in NUMPY.items() if theirs == descr), shape, blob[10 + n:])


def write_arrays(kind, arrays):
    """Named tensors as an .npz ("npz", or "deflated") or a safetensors file."""
    if kind == "safetensors":
        return write_safetensors(dict(arrays))
    return write_zip(kind, [(f"{name}.npy", write_npy(tensor)) for name, tensor in arrays])


def write_zip(kind, members):
    """An archive of (path, bytes); stored unless `kind` is "deflated"."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w",
                         zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED) as archive:
        for path, content in members:
            archive.writestr(path, content)
    return out.getvalue()


def read_array(kind, blob, name):
    """One tensor of an .npz (CRCs checked) or a safetensors file."""
    if kind == "npz":
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            if archive.testzip() is not None:
                raise Failed(f"the CRC of {archive.testzip()} is wrong")
            return read_npy(archive.read(f"{name}.npy"))
    n = struct.unpack_from("<Q", blob)[0]
    row = json.loads(blob[8:8 + n])[name]
    begin, end = row["data_offsets"]
    return Tensor(SAFETENSORS[row["dtype"]], row["shape"], blob[8 + n + begin:8 + n + end])


def assert_close(got, want, what, scale=1e-4):
    """Same dtype and shape, every |difference| <= scale * max(1, the largest |expected|)."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        raise Failed(f"{what}: {got.dtype} {got.shape}, expected {want.dtype} {want.shape}")
    ours, theirs = got.values(), want.values()
    if len(ours) != len(theirs):
        raise Failed(f"{what}: {len(ours)} values, expected {len(theirs)}")
    limit = (scale * max([1.0] + [abs(value) for value in theirs if math.isfinite(value)])
             if want.dtype.startswith("float") else 0)
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if not (a == b or (a != a and b != b) or abs(a - b) <= limit):
            raise Failed(f"{what}: value {i} is {a!r}, expected {b!r} (within {limit:g})")


def multipart(parts, boundary="----fxserve-tests"):
    """(body, Content-Type) of a form with files."""
    body = b"".join(b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n'
                    b'Content-Type: application/octet-stream\r\n\r\n%s\r\n'
                    % (boundary.encode(), name.encode(), name.encode(), content) for name, content in parts)
    return body + b"--" + boundary.encode() + b"--\r\n", f"multipart/form-data; boundary={boundary}"


def model_file(name):
    with open(os.path.join(MODELS, name), "rb") as file:
        return file.read()


class Tally:
    """Counts checks, prints what failed, ends with `N passed, N failed`."""

    def __init__(self):
        self.passed = self.failed = 0
        self.lock = threading.Lock()

    def ok(self):
        with self.lock:
            self.passed += 1

    def bad(self, name, problem):
        with self.lock:
            self.failed += 1
            print(f"FAILED {name}: {problem}", flush=True)

    def check(self, name, problem):
        if problem:
            self.bad(name, problem)
        else:
            self.ok()

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or self.passed == 0 else 0


@contextlib.contextmanager
def serving(binary, *flags):
    """A running server with these flags, by default one that stores nothing, and a Tally. The
    server's end is one of the checks."""
    server, tally = Server(binary, [*(flags or ("--data", "none")), "--quiet"]), Tally()
    try:
        yield server.start(), tally
    finally:
        tally.check("the server's end", "\n".join(server.stop()))
        server.clean_up()
