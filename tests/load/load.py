# SPDX-License-Identifier: Apache-2.0
"""Load: load.py FXSERVE [--long] [NAME...]. Names: overload, idle, slow, neighbours, upload,
braces, soak; without --long each is shortened.

Everything stays on the loopback. Times are reported and compared with their aims, but only what
cannot be the machine's fault fails: wrong answers, leaks, memory, lost requests.
"""
import json
import multiprocessing
import os
import random
import selectors
import socket
import struct
import sys
import tempfile
import threading
import time

import failing_cases
from parts import (SLOW_BODY, TINY, TINY_BODY, Failed, Report, Server, Tally, connect_from, descriptors,
                   gauge, graph, call, memory, more_descriptors, percentile, reset, run, settle,
                   slow_graph, upload)
from service import CODECS, routes, tensor_of, write_npy

MB = 1 << 20
MOST_CLIENTS = 700  # of one address; the server takes 1,000


def request(method, target, body=b""):
    return (b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
            % (method, target, len(body), body))


def run_request(name, body):
    return request(b"POST", b"/v1/graphs/%s/run" % name, body)


class Client:
    """One keep-alive connection of an open loop."""

    def __init__(self, port):
        self.socket, self.buffer, self.began = connect_from(port), b"", 0.0

    def send(self, text, when):
        self.began, self.buffer = when, b""
        self.socket.sendall(text)

    def take(self):
        """Reads what is there; (status, seconds) when a reply is complete."""
        more = self.socket.recv(1 << 16)
        if not more:
            raise Failed("the server closed a connection")
        self.buffer += more
        head, mark, body = self.buffer.partition(b"\r\n\r\n")
        if not mark:
            return None
        length = int(next(line.split(b":")[1] for line in head.split(b"\r\n")
                          if line.lower().startswith(b"content-length:")))
        if len(body) < length:
            return None
        return int(head.split(b" ", 2)[1]), time.monotonic() - self.began


def open_loop(port, text, rate, seconds):
    """Sends at fixed times, whatever comes back when; times count from when a request was due:
    [(status, seconds)]."""
    chooser, idle, answers, busy = selectors.DefaultSelector(), [], [], 0
    began, n, total = time.monotonic(), 0, int(rate * seconds)
    while n < total or (busy and time.monotonic() < began + seconds + 30):
        now = time.monotonic()
        while n < total and began + n / rate <= now and (idle or busy < MOST_CLIENTS):
            client = idle.pop() if idle else Client(port)
            client.send(text, began + n / rate)
            chooser.register(client.socket, selectors.EVENT_READ, client)
            n, busy = n + 1, busy + 1
        wait = 0.1 if n == total or busy >= MOST_CLIENTS else began + n / rate - time.monotonic()
        for key, _ in chooser.select(max(0, wait)):
            answer = key.data.take()
            if answer is not None:
                answers.append(answer)
                chooser.unregister(key.fileobj)
                idle.append(key.data)
                busy -= 1
    for client in idle:
        client.socket.close()
    chooser.close()
    return answers, busy


def closed_loop(port, text, n_clients, seconds, stop=None):
    """Requests one after another on some connections, in one thread each: seconds of each."""
    times, lock, end = [], threading.Lock(), time.monotonic() + seconds

    def work():
        client, own = Client(port), []
        while time.monotonic() < end and not (stop is not None and stop.is_set()):
            client.send(text, time.monotonic())
            answer = None
            while answer is None:
                answer = client.take()
            if answer[0] == 200:
                own.append(answer[1])
        client.socket.close()
        with lock:
            times.extend(own)
    threads = [threading.Thread(target=work) for _ in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


# ---- the scenarios -----------------------------------------------------------------------------
def overload(start, report, long):
    seconds, deadline_ms = (30, 1000) if long else (3, 1000)
    server = start("--workers", "1", "--max-queue", "32", "--run-deadline-ms", str(deadline_ms))
    upload(server, "busy", slow_graph(2, 192))
    text = run_request(b"busy", SLOW_BODY)
    closed_loop(server.port, text, 2, 0.5)
    capacity = len(closed_loop(server.port, text, 4, 2)) / 2
    answers, lost = open_loop(server.port, text, capacity * 1.5, seconds)
    began = time.monotonic()
    reply = run(server, "busy", SLOW_BODY)
    recovery = time.monotonic() - began
    good = [took for status, took in answers if status == 200]
    refused = [took for status, took in answers if status == 503]
    other = [status for status, _ in answers if status not in (200, 503, 504)]
    name = f"overload, 150 % of {capacity:.0f} req/s for {seconds} s"
    report.row(f"{name}: answers", f"{len(good)} × 200, {len(refused)} × 503, "
               f"{len(answers) - len(good) - len(refused)} others, {lost} lost",
               "each is answered, by 200, 503 or 504", lost == 0 and not other and good)
    report.row(f"{name}: accepted", f"p99 {percentile(good, 99) * 1e3:.0f} "
               f"ms, {len(good) / seconds / capacity:.0%} of the capacity used",
               f"p99 ≤ {deadline_ms} ms (the deadline)", percentile(good, 99) * 1e3 <= deadline_ms, True)
    report.row(f"{name}: refused",
               f"median {percentile(refused, 50) * 1e3:.2f} ms, p99 {percentile(refused, 99) * 1e3:.1f} ms",
               "503 within 5 ms", percentile(refused, 99) <= 0.005, True)
    report.row(f"{name}: recovery", f"{recovery * 1e3:.0f} ms", "< 1 s", reply.status == 200 and recovery < 1,
               True)


def idle(start, report, long):
    n = 10000 if long else 1500
    room = more_descriptors(n + 500)
    if room < n + 200:
        n = room - 200
    server = start("--max-connections", str(n + 50), "--idle-timeout-s", "120")
    text, clients = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", []
    server.call("GET", "/livez")
    empty = memory(server)
    began = time.monotonic()
    for i in range(n):
        client = connect_from(server.port, f"127.0.0.{2 + i // 900}")
        client.sendall(text)
        if not client.recv(4096).startswith(b"HTTP/1.1 200"):
            raise Failed(f"connection {i} is not answered well")
        clients.append(client)
    seconds = time.monotonic() - began
    time.sleep(3)  # idle is who says nothing for a second
    began = time.monotonic()
    status = server.call("GET", "/livez").status
    served = (time.monotonic() - began) * 1e3
    resident, own = memory(server, "VmRSS") / 1e6, gauge(server, "fxserve_connections")
    report.row(f"{n:,} idle connections", f"{resident:.0f} MB resident, {own:.0f} connections open, made in "
               f"{seconds:.1f} s", "≤ 100 MB", resident <= 100 and own >= n)
    each = (memory(server) - empty) / n / 1000
    report.row(f"memory of each of {n:,} idle connections", f"{each:.1f} KB",
               "≤ 12 KB: their pools are given back", each <= 12)
    report.row(f"a new client beside {n:,} idle ones", f"served in {served:.1f} ms", "served", status == 200)
    for client in clients:
        client.close()
    left = settle(server, 20)
    report.row(f"{n:,} idle connections closed", f"left: {left or 'none'}", "none is left", not left)


def slow(start, report, long):
    n, seconds = (1000, 12) if long else (300, 4)
    more_descriptors(n + 500)
    server = start()
    upload(server, "tiny", TINY)
    text = run_request(b"tiny", TINY_BODY)
    closed_loop(server.port, text, 1, 1)
    alone = closed_loop(server.port, text, 1, seconds / 2)
    head, stop, clients = (b"POST /v1/graphs/tiny/run HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
                           threading.Event(), [])
    for i in range(n):
        client = connect_from(server.port, f"127.0.0.{2 + i // 900}")
        client.sendall(head)
        client.setblocking(False)
        clients.append(client)

    def drip():
        while not stop.is_set():
            for client in clients:
                try:
                    client.send(b"a")
                except OSError:
                    pass  # closed by its deadline
            stop.wait(1)
    thread = threading.Thread(target=drip)
    thread.start()
    beside = closed_loop(server.port, text, 1, seconds / 2)
    time.sleep(max(0, 13 - seconds / 2) if long else 0)
    stop.set()
    thread.join()
    open_ones = gauge(server, "fxserve_connections") - 1
    ratio = percentile(beside, 99) / percentile(alone, 99)
    report.row(f"{n:,} clients with slow heads", f"a good client's p99 {percentile(alone, 99) * 1e3:.2f} "
               f"ms alone, {percentile(beside, 99) * 1e3:.2f} ms beside them: {ratio:.1f}×", "≤ 2×",
               ratio <= 2, True)
    if long:
        report.row(f"{n:,} clients with slow heads after 15 s", f"{open_ones:.0f} still open",
                   "all closed by the head's deadline", open_ones <= 0)
    for client in clients:
        client.close()


def neighbours(start, report, long):
    seconds = 10 if long else 2
    server = start()
    upload(server, "loud", slow_graph(2, 160))
    upload(server, "quiet", slow_graph(2, 161))
    loud, quiet = run_request(b"loud", SLOW_BODY), run_request(b"quiet", SLOW_BODY)
    closed_loop(server.port, quiet, 1, 0.5)
    capacity = len(closed_loop(server.port, loud, 8, 1.5)) / 1.5
    alone = [took for _, took in open_loop(server.port, quiet, capacity / 10, seconds)[0]]
    stop, saturating = threading.Event(), []
    thread = threading.Thread(
        target=lambda: saturating.extend(closed_loop(server.port, loud, 8, seconds + 10, stop)))
    thread.start()
    time.sleep(0.2)
    beside = [took for _, took in open_loop(server.port, quiet, capacity / 10, seconds)[0]]
    stop.set()
    thread.join()
    ratio = percentile(beside, 99) / percentile(alone, 99)
    report.row("a graph at 10 % beside a saturated one", f"p99 {percentile(alone, 99) * 1e3:.1f} ms alone, "
               f"{percentile(beside, 99) * 1e3:.1f} ms beside: {ratio:.1f}×, {len(beside)} runs", "≤ 3×",
               ratio <= 3, True)


class Peak(threading.Thread):
    """The most anonymous memory of a server while something goes on."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most, self.done = server, 0, threading.Event()

    def run(self):
        while not self.done.is_set():
            self.most = max(self.most, memory(self.server))
            self.done.wait(0.01)


def big_upload(start, report, long):
    n_bytes = (600 if long else 64) * 1000 * 1000
    server = start("--max-upload", str(700 * 1000 * 1000))
    nodes = [{"op": "get_attr", "name": "w", "target": "w"}, call("s", "torch.sum", "%w"),
             call("y", "torch.add", "%x", "%s")]
    header = json.dumps({"w": {"dtype": "F32", "shape": [n_bytes // 4],
                               "data_offsets": [0, n_bytes]}}).encode()
    header += b" " * (-len(header) % 8)
    lead = (b'--b\r\nContent-Disposition: form-data; name="graph"\r\n\r\n' + graph(*nodes)
            + b'\r\n--b\r\nContent-Disposition: form-data; name="weights"; filename="w"\r\n\r\n'
            + struct.pack("<Q", len(header)) + header)
    tail = b"\r\n--b--\r\n"
    upload(server, "tiny", TINY)
    run(server, "tiny", TINY_BODY)
    before, peak = memory(server), Peak(server)
    peak.start()
    began = time.monotonic()
    with server.connect(120) as connection:
        connection.send(b"PUT /v1/graphs/big HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n"
                        % (len(lead) + n_bytes + len(tail)) + lead)
        piece = bytes(1 << 20)
        for at in range(0, n_bytes, len(piece)):
            connection.send(piece[:min(len(piece), n_bytes - at)])
        connection.send(tail, "PUT")
        reply = connection.reply()
    seconds = time.monotonic() - began
    peak.done.set()
    peak.join()
    grown = (peak.most - before) / 1e6
    report.row(f"upload of {n_bytes // 10**6} MB", f"{reply.status}, anonymous memory {grown:+.1f} MB at "
               f"most, {seconds:.1f} s", "anonymous memory +≤ 8 MB", reply.status == 201 and grown <= 8)
    if reply.status == 201:
        answer = run(server, "big", b'{"inputs": {"x": [1.5]}}')
        report.row(f"a run of the {n_bytes // 10**6} MB graph", answer.short()[:60], "the right numbers",
                   answer.status == 200 and answer.json()["outputs"][0]["data"] == [1.5])


def ask(port, stop, waits):
    """A light client: how long each of its requests took."""
    client, own = Client(port), []
    while not stop.is_set():
        client.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", time.monotonic())
        answer = None
        while answer is None:
            answer = client.take()
        own.append(answer[1])
        time.sleep(0.001)
    client.socket.close()
    waits.put(own)


def burst(start, report, _):
    """Large bodies and replies all at once: what they took is given back when the server has been
    quiet for a moment."""
    server = start()
    upload(server, "tiny", TINY)
    # 1.2 MB of floats, all of one graph that was run before
    body = json.dumps({"inputs": [[0.5] * 100000], "encoding": "flat"}).encode()
    run(server, "tiny", TINY_BODY)
    before, peak = memory(server), Peak(server)
    peak.start()
    connections = [server.connect(60) for _ in range(24)]
    for connection in connections:
        connection.send(b"POST /v1/graphs/tiny/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                        % len(body) + body[:-1])
    for connection in connections:
        connection.send(body[-1:], "POST")
    status = {connection.reply().status for connection in connections}
    for connection in connections:
        connection.close()
    peak.done.set()
    peak.join()
    end, grown = time.monotonic() + 10, 1e9
    while grown > 3 and time.monotonic() < end:
        time.sleep(0.1)
        grown = (memory(server) - before) / 1e6
    report.row("24 large runs at once", f"{sorted(status)}, memory {(peak.most - before) / 1e6:+.1f} "
               f"MB, then {grown:+.1f} MB", "200, memory back within 3 MB", status == {200} and grown <= 3)


def braces(start, report, _):
    server = start()
    upload(server, "tiny", TINY)
    run(server, "tiny", TINY_BODY)
    body = b'{"inputs": [' + b"{}," * ((64 * MB - 20) // 3) + b"{}]}"
    before, took, status = memory(server), [], []
    # a process of its own: threads of this one would wait for each other
    stop, waits = (multiprocessing.Event(), multiprocessing.Queue())
    process = multiprocessing.Process(target=ask, args=(server.port, stop, waits))
    process.start()
    for _ in range(5):
        with server.connect(60) as connection:
            connection.send(b"POST /v1/graphs/tiny/run HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body))
            connection.send(body, "POST")
            sent = time.monotonic()
            status.append(connection.reply().status)
            took.append((time.monotonic() - sent) * 1e3)
    stop.set()
    waits = waits.get()
    process.join()
    answer = run(server, "tiny", TINY_BODY)
    grown = (memory(server) - before) / 1e6
    report.row("64 MB of {},", f"{'/'.join(map(str, sorted(set(status))))}, {percentile(took, 50):.0f} "
               f"ms after the last byte", "413 or 400 in < 50 ms",
               set(status) <= {400, 413} and percentile(took, 50) < 50, True)
    report.row("64 MB of {},: status and memory",
               f"{sorted(set(status))}, the next run {answer.status}, memory {grown:+.1f} MB",
               "400 or 413, a good run 200, memory back within 3 MB",
               set(status) <= {400, 413} and answer.status == 200 and grown <= 3)
    report.row("64 MB of {},: others wait", f"p99 {percentile(waits, 99) * 1e3:.1f} ms, most "
               f"{max(waits) * 1e3:.1f} ms", "≤ 5 ms", percentile(waits, 99) <= 0.005, True)


def slope(points):
    """Least squares: units per hour of [(seconds, value)]."""
    n = len(points)
    mean_t, mean_v = sum(t for t, _ in points) / n, sum(v for _, v in points) / n
    below = sum((t - mean_t) ** 2 for t, _ in points)
    return 3600 * sum((t - mean_t) * (v - mean_v) for t, v in points) / below if below else 0.0


def open_session(server):
    """(id, snapshot) of a session with state."""
    reply = server.call("POST", "/v1/graphs/tiny/sessions")
    session = reply.json()["id"]
    return session, server.call("GET", f"/v1/sessions/{session}").body


def good_requests(session, snapshot):
    """Requests that succeed, each route's success statuses among them: (route, statuses, method,
    target, body, headers)."""
    array = write_npy(tensor_of("float32", [[1.5, 2.0, 3.0, 4.0]]))
    inline = json.dumps({"graph": json.loads(TINY), "inputs": {"x": [[1.5, -2.0]]}}).encode()
    run_id = [("X-Request-Id", "soak")]
    rows = [("RUN", "POST", f"/v1/graphs/tiny/run{query}", TINY_BODY)
            for query in ("?mode=eager", "?mode=compiled&profile=1", "?reply=bare", "?encoding=b64",
                          "?as=npz", "?as=safetensors", "?outputs=y")]
    rows += [("RUN", "POST", "/v1/graphs/tiny/run?as=npy", array),
             ("VERSION_RUN", "POST", "/v1/graphs/tiny/versions/1/run", TINY_BODY),
             ("RUN_INLINE", "POST", "/v1/run", inline),
             ("RUN", "POST", "/v1/graphs/digits/run", b'{"inputs": {"x": {"dtype": "float32", '
              b'"shape": [1, 1, 8, 8], "data": [%s]}}}' % b", ".join([b"0.5"] * 64)),
             ("GRAPH_PATCH", "PATCH", "/v1/graphs/digits", b'{"default_version": 1}'),
             ("GRAPH_POST", "POST", "/v1/graphs", TINY)]
    steps = b'{"steps": [{"pass": "cse"}, {"lint": true}]}'
    sides = {"a": {"graph": "tiny", "mode": "eager"}, "b": {"graph": "tiny", "version": 1}}
    rows += [("TRANSFORM", "POST", "/v1/graphs/digits/transform", steps),
             ("VERSION_TRANSFORM", "POST", "/v1/graphs/digits/versions/1/transform", steps),
             ("PASS_PUT", "PUT", "/v1/passes/digits", steps),
             ("PASS_DELETE", "DELETE", "/v1/passes/digits", b""),
             ("COMPARE", "POST", "/v1/compare", json.dumps({**sides, **json.loads(TINY_BODY)}).encode())]
    infer = json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, -2.0]}]})
    rows += [("OIP_INFER", "POST", "/v2/models/tiny/infer", infer.encode()),
             ("OIP_VERSION_INFER", "POST", "/v2/models/tiny/versions/1/infer", infer.encode()),
             ("TF_PREDICT", "POST", "/v1/models/tiny:predict", b'{"instances": [[1.5, -2.0]]}'),
             ("TF_VERSION_PREDICT", "POST", "/v1/models/tiny/versions/1:predict",
              b'{"instances": [{"x": [1.5, -2.0]}]}'),
             ("TS_PREDICT", "POST", "/predictions/tiny", b"[[1.5, -2.0]]"),
             ("TS_PREDICT_PUT", "PUT", "/predictions/tiny", b"[[1.5, -2.0]]"),
             ("TS_VERSION_PREDICT", "POST", "/predictions/tiny/1", b'{"data": [[1.5, -2.0]]}'),
             ("TS_VERSION_PREDICT_PUT", "PUT", "/predictions/tiny/1", b'{"body": [[1.5, -2.0]]}'),
             ("INVOCATIONS", "POST", "/invocations", json.dumps({"instances": [[[[0.5] * 8] * 8]]}).encode()),
             ("SM_INVOKE", "POST", "/endpoints/tiny/invocations", b"[[1.5, -2.0]]"),
             ("OIP_INDEX", "POST", "/v2/repository/index", b""),
             ("OIP_LOAD", "POST", "/v2/repository/models/spare/load", b""),
             ("OIP_UNLOAD", "POST", "/v2/repository/models/spare/unload", b""),
             ("OIP_LOGGING_POST", "POST", "/v2/logging", b"{}"),
             ("OIP_TRACING_POST", "POST", "/v2/trace/setting", b"{}")]
    rows += [("TEXT", "GET", f"/v1/graphs/digits/text?form={form}", b"")
             for form in ("graph", "code", "tabular", "json")]
    rows += [("PROFILE_STATS", "GET", f"/v1/graphs/tiny/profile?form={form}", b"")
             for form in ("json", "text", "chrome", "folded")]
    rows += [("PROFILE_STATS", "GET", f"/v1/graphs/tiny/profile?by={by}", b"")
             for by in ("node", "op", "module")]
    rows += [(route, "GET", target, b"") for route, target in (
        ("GRAPH_LIST", "/v1/graphs?limit=3"), ("WEIGHTS", "/v1/graphs/digits/weights?as=npz"),
        ("PROFILE_LIST", "/v1/profiles?slowest=5"))]
    rows += [("SESSION_POST", "POST", "/v1/graphs/tiny/sessions", b""),
             ("VERSION_SESSION_POST", "POST", "/v1/graphs/tiny/versions/1/sessions", b'{"seed": 5}'),
             ("SESSION_RUN", "POST", f"/v1/sessions/{session}/run", TINY_BODY),
             ("SESSION_PUT", "PUT", f"/v1/sessions/{session}", snapshot),
             ("SESSION_GET", "GET", f"/v1/sessions/{session}", b""),
             ("SESSION_DELETE", "DELETE", "/v1/sessions/soak", b"")]
    rows += [(route, "GET", path.format(name="digits", v=1, id="soak", file="none"), b"")
             for route, method, path, _ in routes()
             if method == "GET" and route not in ("EVENTS", "SESSION_GET")]
    rows += [("EVENTS", "GET", "/v1/events?seconds=1", b"")]
    statuses = {"PAGE": (200, 404), "PAGE_FILE": (200, 404),  # 404: not to a browser
                "SESSION_POST": (201, 503), "VERSION_SESSION_POST": (201, 503),  # 503: --max-sessions
                "SESSION_DELETE": (404,), "GRAPH_POST": (200, 201), "PROFILE_GET": (200, 404),
                "PASS_GET": (200, 404), "PASS_PUT": (201, 200), "PASS_DELETE": (204, 404)}
    return [(route, statuses.get(route, (200,)), method, target, body, run_id if route == "RUN" else [])
            for route, method, target, body in rows]


def all_routes():
    return {name for name, *_ in routes()}


class Soak:
    """Runs, every other route, requests that fail at each step (failing_cases.py), uploads and
    deletes, bodies cut short, clients that vanish."""

    def __init__(self, server, session, snapshot):
        self.server, self.end, self.lock, self.counts, self.problems, self.times = (server, 0.0,
                                                                                    threading.Lock(), {}, [],
                                                                                    [])
        self.good, self.failing = good_requests(session, snapshot), failing_cases.cases()
        self.seen, self.n = set(), 0

    def changing(self, chance):
        """An upload, or the removal of one."""
        name = f"g{chance.randrange(4)}"
        kind = chance.random()
        if kind < 0.2:
            return "GRAPH_DELETE", (204, 404), "DELETE", f"/v1/graphs/{name}", b"", []
        if kind < 0.3:
            return ("VERSION_DELETE", (204, 404), "DELETE",
                    f"/v1/graphs/{name}/versions/{chance.randrange(1, 4)}", b"", [])
        return ("GRAPH_PUT", (200, 201), "PUT", f"/v1/graphs/{name}", slow_graph(1, 1 + chance.randrange(8)),
                [])

    def choose(self, chance):
        kind = chance.random()
        if kind < 0.5:
            return "", (200,), "POST", "/v1/graphs/tiny/run", TINY_BODY, []
        if kind < 0.65:
            return chance.choice(self.good)
        if kind < 0.75:
            return self.changing(chance)
        if kind < 0.8:
            return "", (400,), "POST", "/v1/graphs/tiny/run", TINY_BODY[:chance.randrange(len(TINY_BODY))], []
        route, what, status, method, target, body, headers = chance.choice(self.failing)
        # a run that waits behind another is refused at once where its deadline would be over by then
        wanted = (504, 503) if status == 504 else (status,) if status else (200, 201)
        return f"{route}: {what}", wanted, method, target, body, headers

    def step(self, chance, connection):
        """(what was answered, whether the connection goes on)."""
        if chance.random() < 0.08:
            plain = connect_from(self.server.port)
            plain.sendall(run_request(b"tiny", TINY_BODY)[:chance.randrange(1, 200)])
            if chance.random() < 0.5:
                reset(plain)
            else:
                plain.close()
            return "vanished", True
        name, wanted, method, target, body, headers = self.choose(chance)
        began = time.monotonic()
        connection.request(method, target, body, headers)
        reply = connection.reply()
        if not name and wanted == (200,):
            self.times.append((began, time.monotonic() - began))
        if reply.status not in wanted:
            self.problems.append(f"{method} {target} ({name}): {reply.short()[:300]}")
        elif name and reply.status == wanted[0]:
            self.seen.add(name)
        return str(reply.status), (reply.header("Connection") or "").lower() != "close"

    def work(self, seed):
        chance, own, goes_on = random.Random(seed), {}, False
        connection = None
        try:
            while time.monotonic() < self.end and len(self.problems) < 5:
                if not goes_on:
                    connection = self.server.connect(60)
                what, goes_on = self.step(chance, connection)
                if not goes_on:
                    connection.close()
                own[what] = own.get(what, 0) + 1
                self.n += 1  # a count lost between threads does not matter
                time.sleep(0.004)  # about half of what a core can do
        except (Failed, OSError) as problem:
            self.problems.append(f"{type(problem).__name__}: {problem}")
        with self.lock:
            for what, n in own.items():
                self.counts[what] = self.counts.get(what, 0) + n

    def run(self, seconds, least, most_seconds):
        """For `seconds`, and on until there were `least` requests, but not longer than
        `most_seconds`."""
        began = time.monotonic()
        self.end = began + most_seconds
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        points = []
        while time.monotonic() < self.end - 0.5 and len(self.problems) < 5:
            points.append((time.monotonic(), memory(self.server) / 1e6, descriptors(self.server),
                           len(os.listdir(f"/proc/{self.server.process.pid}/task"))))
            time.sleep(max(0.25, seconds / 400))
            if self.n >= least and time.monotonic() > began + seconds:
                break
        self.end = 0.0
        for thread in threads:
            thread.join()
        return points

    def unseen(self):
        """Routes without a success and failures that did not come about."""
        return sorted(all_routes() - self.seen) + sorted({f"{case[0]}: {case[1]}" for case in self.failing}
                                                         - self.seen)


def soak(start, report, long):
    seconds, least, most = (7200, 1000000, 10800) if long else (20, 0, 20)
    server = start("--max-profiles", "64", "--max-response", "1000000", "--max-sessions", "20",
                   "--codecs", CODECS)
    upload(server, "tiny", TINY)
    upload(server, "spare", TINY)
    for name, (body, headers) in failing_cases.graphs().items():
        upload(server, name, body, headers)
    work, files = Soak(server, *open_session(server)), descriptors(server)
    missing = all_routes() - {row[0] for row in work.good} - {"GRAPH_PUT", "GRAPH_DELETE", "VERSION_DELETE"}
    report.row("routes of the soak", ", ".join(sorted(missing)) or "all",
               "a request that succeeds for each route", not missing)
    points = work.run(seconds, least, most)
    late = points[len(points) // 3:]
    middle = work.times[len(work.times) // 3][0]
    early_p99, late_p99 = (percentile([took for at, took in work.times if at < middle], 99),
                           percentile([took for at, took in work.times if at >= middle], 99))
    left = settle(server, 20)
    quarter = max(1, len(late) // 4)  # one sample may see a large run under way: medians do not
    first, last = (sorted(point[1] for point in part)[quarter // 2]
                   for part in (late[:quarter], late[-quarter:]))
    rise, drift = slope([(point[0], point[1]) for point in late]), last - first
    name = (f"every route and failing graphs for {(points[-1][0] - points[0][0]) / 3600:.1f} h" if long
            else "every route and failing graphs")
    report.row(f"{name}: answers", "; ".join(work.problems[:3]) or f"{work.n:,} requests: "
               + ", ".join(f"{n:,} × {what}" for what, n in sorted(work.counts.items())),
               "nothing unexpected, nothing left" + (", ≥ 1,000,000 requests" if long else ""),
               not work.problems and not left and server.alive() and work.n >= least)
    if work.n > 20000:
        report.row(f"{name}: what was tried", ", ".join(work.unseen()[:5]) or "all",
                   "each route and each failure came about", not work.unseen())
    report.row(f"{name}: memory", f"{last:.1f} MB anonymous at the end, slope {rise:+.1f} MB/h over the last "
               f"two thirds ({drift:+.1f} MB)", "slope < 1 MB/h" if long else "drift < 16 MB",
               rise < 1 if long else drift < 16, speed=drift < 16)
    more = descriptors(server) - files
    report.row(f"{name}: descriptors and threads", f"{more:+d} descriptors after it, {late[0][3]} "
               f"→ {late[-1][3]} threads", "as before it", more <= 2 and late[-1][3] == late[0][3])
    report.row(f"{name}: p99 of runs", f"{early_p99 * 1e3:.2f} ms in the first third, "
               f"{late_p99 * 1e3:.2f} ms later", "drift < 10 %", late_p99 < 1.1 * early_p99, True)


SCENARIOS = {"overload": overload, "idle": idle, "slow": slow, "neighbours": neighbours, "upload": big_upload,
             "burst": burst, "braces": braces, "soak": soak}


def main():
    words = [word for word in sys.argv[1:] if word != "--long"]
    if not words or any(word not in SCENARIOS for word in words[1:]):
        print(f"usage: load.py FXSERVE [--long] [{'|'.join(SCENARIOS)}...]")
        return 2
    tally = Tally()
    report = Report(tally)
    for name in words[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
            servers = []

            def start(*flags, folder=folder, servers=servers):
                servers.append(Server(words[0], ["--data", os.path.join(folder, "data"), "--quiet", *flags],
                                      folder=folder).start())
                return servers[0]
            try:
                SCENARIOS[name](start, report, "--long" in sys.argv)
            except (Failed, OSError, ValueError, KeyError, IndexError, socket.timeout) as problem:
                tally.bad(name, f"{type(problem).__name__}: {str(problem)[:500]}")
            for server in servers:
                tally.check(f"{name}: the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
