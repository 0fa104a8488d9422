# SPDX-License-Identifier: Apache-2.0
"""Long bodies, which the server receives past libmicrohttpd: long_bodies.py FXSERVE [ROUNDS [SEED]]

Each round sends a random row of requests on one connection, cut at random places: runs that send
their input back, uploads, chunked bodies, bodies for graphs that are not there and bodies over a
limit, of 1 byte to 3 MB each. Every reply has to come in its place, with the bytes that were sent.
Then what random rounds do not meet: clients that leave in the middle, slow ones, a silent one, a
fast one, Expect, a length with zeros in front, chunks with extensions, a budget for bodies that is
used up, and replies of very many arrays.
"""
import array
import contextlib
import hashlib
import io
import json
import random
import signal
import sys
import threading
import time
import zipfile

from service import Failed, Server, Tally, read_npy

LIMIT = 2 << 20  # of a run's body
SIZES = (1, 100, 8000, 12000, 20000, 32767, 32768, 33000, 45000, 70000, 200000, 602112, 1500000)
ECHO = {"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "float32", "shape": ["n"]}},
    {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%x"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]}


def npy(n_bytes, draw):
    """(file, its numbers) of about `n_bytes`."""
    numbers = array.array("f", draw.randbytes(4 * max(n_bytes // 4, 1)).translate(POSITIVE))
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + numbers.tobytes(), numbers


# Bytes that make positive, finite float32 numbers in every place.
POSITIVE = bytes(value % 0x70 for value in range(256))


class Sent:
    """One request: its bytes, and what is wrong with a reply to it."""

    def __init__(self, draw, index):
        size = draw.choice(SIZES) + draw.randrange(64)
        kind = draw.choices(("run", "upload", "chunked", "absent", "large"), (6, 2, 1, 1, 1))[0]
        path, self.status, self.digest, self.numbers = "/v1/graphs/echo/run?as=npy", 200, None, None
        method = "POST"
        if kind == "upload":
            method, path = "PUT", f"/v1/graphs/g{index}"
            body = json.dumps(ECHO).encode() + b" " * size
            self.status, self.digest = (200, 201), hashlib.sha256(body).hexdigest()
        elif kind == "large":
            body, self.status = bytes(LIMIT + 1 + size), 413
        else:
            body, self.numbers = npy(size, draw)
            if kind == "absent":
                path, self.status, self.numbers = "/v1/graphs/absent/run", 404, None
        self.words = f"{kind} of {len(body)} bytes"
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        if kind == "chunked":
            self.bytes = head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(
                b"%x\r\n%s\r\n" % (len(part), part) for part in parts_of(body, 50000)) + b"0\r\n\r\n"
        else:
            zeros = "0" * draw.choice((0, 0, 3))
            self.bytes = head.encode() + f"Content-Length: {zeros}{len(body)}\r\n\r\n".encode() + body

    def fault(self, reply):
        wanted = self.status if isinstance(self.status, tuple) else (self.status,)
        if reply.status not in wanted:
            return f"{self.words}: {reply.short()}"
        if self.numbers is not None and not reply.body.endswith(self.numbers.tobytes()):
            return f"{self.words}: other bytes came back"
        if self.digest is not None and self.digest not in json.dumps(reply.json()):
            return f"{self.words}: another content was stored: {reply.short()}"
        return None


def parts_of(data, size):
    return [data[at:at + size] for at in range(0, len(data), size)]


def cuts(requests, draw):
    """The bytes of all requests in pieces: at random, and close to the ends of heads and bodies."""
    data, places = b"".join(request.bytes for request in requests), set()
    at = 0
    for request in requests:
        for edge in (at, at + request.bytes.index(b"\r\n\r\n") + 4, at + len(request.bytes)):
            if draw.random() < 0.5:
                places.add(edge + draw.randint(-3, 3))
        at += len(request.bytes)
    places |= {draw.randrange(len(data)) for _ in range(draw.randrange(4))}
    edges = [0, *sorted(place for place in places if 0 < place < len(data)), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False)]


def one_round(server, seed):
    """What is wrong, in words; None: nothing."""
    draw = random.Random(seed)
    requests = [Sent(draw, index) for index in range(draw.randint(1, 5))]
    pieces = cuts(requests, draw)
    pauses = [draw.choice((0, 0, 0.001, 0.01)) for _ in pieces]
    with server.connect() as connection:
        def send():
            for piece, pause in zip(pieces, pauses, strict=True):
                connection.send(piece)
                time.sleep(pause)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            for request in requests:
                fault = request.fault(connection.reply())
                if fault is not None:
                    return fault
        except Failed as failure:
            return f"{[request.words for request in requests]}: {failure}"
        finally:
            sender.join()
    return None


# ---- one at a time -----------------------------------------------------------------------------
BODY, NUMBERS = npy(300000, random.Random(1))
HEAD = ("POST /v1/graphs/echo/run?as=npy HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(BODY)}\r\n").encode()


def wanted(reply, status=200):
    if reply.status != status:
        raise Failed(reply.short())
    if status == 200 and not reply.body.endswith(NUMBERS.tobytes()):
        raise Failed("other bytes came back")


def leaves(server):
    for n_sent in (0, 1, 40000, 299000, len(BODY) - 1):
        with server.connect() as connection:
            connection.send(HEAD + b"\r\n" + BODY[:n_sent])
    with server.connect() as connection:
        connection.send(HEAD + b"\r\n" + BODY)
        wanted(connection.reply())


def is_slow(server):
    """Bytes come all the time, for longer than silence is borne."""
    with server.connect() as connection:
        connection.send(HEAD + b"\r\n")
        for part in parts_of(BODY, len(BODY) // 12):
            connection.send(part)
            time.sleep(0.5)
        wanted(connection.reply())


def is_slow_in_pieces(server):
    """As is_slow; the server finds exactly as much each time as it asks for at once, and then nothing."""
    size, n = 128 << 10, 6
    with server.connect() as connection:
        for _ in range(4):  # so that the kernel's buffer holds a piece
            connection.send(HEAD + b"\r\n" + BODY)
            wanted(connection.reply())
        connection.send(f"POST /v1/absent HTTP/1.1\r\nHost: localhost\r\n"
                        f"Content-Length: {size * n}\r\n\r\n".encode())
        for _ in range(n):
            time.sleep(0.9)
            server.signal(signal.SIGSTOP)
            connection.send(bytes(size))
            server.signal(signal.SIGCONT)
        wanted(connection.reply(), 404)


def is_fast(server):
    """The bytes of one connection fill more than a turn, and the next turn comes by itself."""
    n = 60 << 20
    with server.connect() as connection:
        connection.send(f"POST /v1/graphs/echo/run HTTP/1.1\r\nHost: localhost\r\n"
                        f"Content-Length: {n}\r\n\r\n".encode() + bytes(n))
        wanted(connection.reply(), 413)


def is_silent(server):
    with server.connect() as connection:
        connection.send(HEAD + b"\r\n" + BODY[:50000])
        try:
            reply = connection.reply()
        except Failed:
            return
    raise Failed(f"a silent client got {reply.short()}")


def extensions(server):
    """They are removed on the way; what comes behind them must not be forgotten."""
    with server.connect() as connection:
        for size in (1, 700, 1000, 5000, 40000):
            body = BODY if size > 1 else BODY[:2000]
            connection.send(HEAD[:HEAD.index(b"Content-Length")] + b"Transfer-Encoding: chunked\r\n\r\n"
                            + b"".join(b"%x;a=b;c\r\n%s\r\n" % (len(part), part)
                                       for part in parts_of(body, size)) + b"0;last\r\n\r\n")
            wanted(connection.reply(), 200 if size > 1 else 400)


def expects(server):
    with server.connect() as connection:
        connection.send(HEAD + b"Expect: 100-continue\r\n\r\n")
        if not connection.socket.recv(1000).startswith(b"HTTP/1.1 100 "):
            raise Failed("no permission to send the body")
        connection.send(BODY)
        wanted(connection.reply())


def budget(server):
    """Three bodies that are not complete use up what all bodies may hold; the next one is refused, and
    its connection goes on."""
    held = f"fxserve_body_bytes {3 * (len(BODY) - 10)}\n".encode()
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(server.connect()) for _ in range(3)]
        for connection in waiting:
            connection.send(HEAD + b"\r\n" + BODY[:-10])
        until = time.monotonic() + 20
        while held not in server.call("GET", "/metrics").body:
            if time.monotonic() > until:
                raise Failed("the bodies are not held")
        with server.connect() as connection:
            connection.send(HEAD + b"\r\n" + BODY)
            wanted(connection.reply(), 503)
            connection.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if connection.reply().status != 200:
                raise Failed("the connection did not go on")
        for connection in waiting:
            connection.send(BODY[-10:])
            wanted(connection.reply())


def many_arrays(server):
    """Each array of a reply is sent from where it lies; of thousands, with the largest head as well."""
    n = 3000
    outputs, state = ["%y"] * n, {f"w{i}": {"dtype": "float32", "shape": [1], "data": [i]} for i in range(n)}
    graph = {"format": "fx/1", "state": state, "nodes": [
        {"op": "placeholder", "name": "x", "target": "x"},
        {"op": "call_function", "name": "y", "target": "torch.neg", "args": ["%x"]},
        {"op": "output", "name": "output", "target": "output", "args": [{"$tuple": outputs}]}]}
    if server.call("PUT", "/v1/graphs/many", json.dumps(graph).encode()).status != 201:
        raise Failed("the graph is not taken")
    for padding in (0, 15000):
        headers = [("X-Padding", "x" * padding)]
        for method, path, body in (("POST", "/v1/graphs/many/run?as=", b'{"inputs": {"x": [2.5]}}'),
                                   ("GET", "/v1/graphs/many/weights?as=", None)):
            blob = server.call(method, path + "npz", body, headers).body
            with zipfile.ZipFile(io.BytesIO(blob)) as file:
                arrays = [read_npy(file.read(name)).values()[0] for name in file.namelist()]
            if sorted(arrays) != (list(range(n)) if method == "GET" else [-2.5] * n):
                raise Failed(f"{path}npz: {len(arrays)} arrays, {arrays[:3]} ...")
            blob = server.call(method, path + "safetensors", body, headers).body
            head = 8 + int.from_bytes(blob[:8], "little")
            if sorted(array.array("f", blob[head:])) != sorted(arrays):
                raise Failed(f"{path}safetensors: {len(blob)} bytes")


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    tally = Tally()
    server = Server(sys.argv[1], ["--max-run-body", str(LIMIT), "--idle-timeout-s", "20"]).start()
    small = Server(sys.argv[1], ["--data", "none", "--max-body-budget", str(3 * len(BODY) + 1000),
                                 "--idle-timeout-s", "4"]).start()
    try:
        for one in (server, small):
            if one.call("PUT", "/v1/graphs/echo", json.dumps(ECHO).encode()).status != 201:
                raise Failed("the graph is not taken")
        for index in range(rounds):
            fault = one_round(server, seed * 100000 + index)
            tally.check(f"round {seed * 100000 + index}", fault or "")
        for words, case, where in (("clients that leave", leaves, server), ("Expect", expects, server),
                                   ("extensions of chunks", extensions, server),
                                   ("replies of many arrays", many_arrays, server),
                                   ("a fast client", is_fast, server), ("a slow client", is_slow, small),
                                   ("a slow client, in pieces", is_slow_in_pieces, small),
                                   ("a silent client", is_silent, small),
                                   ("the budget", budget, small)):
            try:
                case(where)
                tally.check(words, "")
            except Failed as failure:
                tally.check(words, str(failure))
        tally.check("the servers are well", "\n".join(server.stop() + small.stop()))
    finally:
        server.clean_up()
        small.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
