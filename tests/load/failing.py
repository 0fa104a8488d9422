# SPDX-License-Identifier: Apache-2.0
"""Requests that fail: failing.py FXSERVE [--leaks | --long] [WORD]. The cases of failing_cases.py
whose route or name has the word; all routes besides, with a query parameter that they do not know.

Each case is sent 3,000 times (--long: 100,000) over kept connections, and the anonymous memory that
it leaves behind is measured: a few bytes lost by each call show. --leaks, for a server built with
ASan, sends each case a few times only; what it lost is in the leak checker's report when the server
ends.
"""
import os
import re
import sys
import tempfile
import time

import failing_cases
from parts import Failed, Report, Server, Tally, memory
from service import CODECS, routes

CALLS, LONG_CALLS, LEAK_CALLS = 3000, 100000, 20
SECONDS, LONG_SECONDS = 3, 120  # of a case that is slow
DEPTH = 40  # requests under way on the connection
LEFT_BYTES = 3 << 19  # what the allocator may keep that it did not have before
NO_SUCH = "an unknown parameter"
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.I)


def unknown_parameters():
    """Every route that refuses unknown parameters, each with one that none of them has."""
    for route, method, path, _ in routes():
        if path.startswith("/v2"):
            continue
        target = path.replace("{name}",
                              "digits").replace("{v}", "1").replace("{id}", "none") + "?no_such_parameter=1"
        yield route, NO_SUCH, 400, method, target, b"{}" if method in ("PUT", "POST", "PATCH") else b"", ()


def text_of(method, target, body, headers):
    head = (f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
            + "".join(f"{key}: {value}\r\n" for key, value in headers))
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Sender:
    """The same request over and over, several at a time; statuses are counted."""

    def __init__(self, server):
        self.server, self.socket, self.buffer = server, None, b""

    def send(self, text, n):
        seen = {}
        while n > 0:
            if self.socket is None:
                self.socket, self.buffer = self.server.connect(60).socket, b""
            part = min(DEPTH if len(text) < 4096 else 4, n)
            self.socket.sendall(text * part)
            for _ in range(part):
                status, closes = self.take()
                seen[status] = seen.get(status, 0) + 1
                n -= 1
                if closes:
                    self.socket.close()
                    self.socket = None
                    break
        return seen

    def send_for(self, text, n, seconds):
        """At most n, for about so long; how many it were."""
        sent, end = 0, time.monotonic() + seconds
        while sent < n and time.monotonic() < end:
            part = min(DEPTH, n - sent)
            self.send(text, part)
            sent += part
        return sent

    def more(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise Failed("the server closed a connection without an answer")
        self.buffer += got

    def take(self):
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        found = LENGTH.search(head)
        n = int(found[1]) if found else 0
        while len(rest) < n:
            self.more()
            rest = self.buffer[len(head) + 4:]
        self.buffer = rest[n:]
        return int(head[9:12]), b"connection: close" in head.lower()


def left_after(server, before, seconds=8):
    """Bytes of anonymous memory more than before, once the server had time to give freed memory
    back."""
    end = time.monotonic() + seconds
    while True:
        left = memory(server) - before
        if left <= LEFT_BYTES or time.monotonic() > end:
            return left
        time.sleep(0.1)


def run_case(server, sender, case, calls, report):
    route, what, status, method, target, body, headers = case
    name, text = f"{route}: {what}", text_of(method, target, body, headers)
    seen = sender.send(text, min(calls, max(20, calls // 10)))  # whatever is allocated once, is now
    if any(code < 400 or (status and code != status) or (code >= 500 and status < 500)
           for code in seen) and not (status == 0 and set(seen) <= {200, 201}):
        raise Failed(f"{name}: answered {seen}, expected {status or 'a failure'}")
    if report is None:
        return
    if what == NO_SUCH and calls == CALLS:
        calls //= 3
    before, began = memory(server), time.monotonic()
    calls = sender.send_for(text, calls, SECONDS if calls <= CALLS else LONG_SECONDS)
    took = time.monotonic() - began
    left = left_after(server, before)
    report.row(name, f"{left / 1e6:+.2f} MB after {calls:,} calls, {left / calls:+.0f} bytes "
               f"each, {took:.1f} s", f"≤ {LEFT_BYTES / 1e6:.1f} MB", left <= LEFT_BYTES)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(words) not in (1, 2) or set(sys.argv[1:]) - set(words) - {"--leaks", "--long"}:
        print(__doc__)
        return 2
    leaks, tally = "--leaks" in sys.argv, Tally()
    calls = LEAK_CALLS if leaks else LONG_CALLS if "--long" in sys.argv else CALLS
    cases = [case for case in [*failing_cases.cases(), *unknown_parameters()] if len(words) == 1
             or words[1] in f"{case[0]}: {case[1]}"]
    report = None if leaks else Report(tally)
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        server = Server(words[0], ["--data", os.path.join(folder, "data"), "--quiet", "--max-profiles", "16",
                                   "--codecs", CODECS,
                                   "--max-response", "1000000"], folder=folder).start()
        for name, (body, headers) in failing_cases.graphs().items():
            reply = server.call("PUT", f"/v1/graphs/{name}", body, headers)
            if reply.status not in (200, 201):
                raise Failed(f"graph {name}: {reply.short()}")
        sender = Sender(server)
        for case in cases:
            try:
                run_case(server, sender, case, calls, report)
                if leaks:
                    tally.ok()
            except (Failed, OSError) as problem:
                tally.bad(f"{case[0]}: {case[1]}", str(problem))
                sender = Sender(server)
        tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
