# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and clients that come back: reconnecting.py FXSERVE [ROUNDS=2].

20 clients run a graph in a closed loop: on connections they keep, with and without a pause between
requests, on a connection per request, in two pieces, and with four requests on the way. One more is
silent after its first reply and has to see a plain end. SIGTERM comes in the middle; each client
goes on, on a new connection whenever the old one was said to close, until its connection is
refused. Each round runs without a drain delay and with one, without and with TLS. No client may see
a reset, an end without a reply, a reply that is cut or another status than 200, nor be refused
before the delay is over.
"""
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from parts import TINY, TINY_BODY, Failed, Report, Server, Tally

SECONDS = 60  # until a client, or the end of the server, counts as hung
HEAD = b"POST /v1/graphs/tiny/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(TINY_BODY)
REQUEST = HEAD + TINY_BODY
KINDS = ["kept"] * 6 + ["thinking"] * 4 + ["fresh"] * 6 + ["pieces"] * 2 + ["pipelined"] * 2 + ["silent"]


class Link:
    """A connection that hides nothing: every error is the caller's."""

    def __init__(self, port, context):
        self.buffer = b""
        plain = socket.create_connection(("127.0.0.1", port), SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="localhost") if context else plain

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        more = self.socket.recv(65536)
        if not more:
            raise Failed(f"the connection ended after {len(self.buffer)} bytes of a reply")
        self.buffer += more

    def reply(self):
        """Whether the connection ends with this reply."""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.lower().split(b"\r\n")
        n = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        while len(self.buffer) < n:
            self._more()
        body, self.buffer = self.buffer[:n], self.buffer[n:]
        if not lines[0].startswith(b"http/1.1 200 "):
            raise Failed(f"it answers {lines[0].decode()} {body[:200]!r}")
        return b"connection: close" in lines


class Client(threading.Thread):
    def __init__(self, server, kind, context, chance):
        super().__init__(daemon=True)
        self.server, self.kind, self.context, self.chance = server, kind, context, chance
        self.n, self.n_last, self.problem, self.refused_at, self.connecting = 0, 0, None, None, 0.0

    def run(self):
        while self.problem is None and self.refused_at is None:
            link, self.connecting = None, time.monotonic()
            try:
                link = Link(self.server.port, self.context)
                self.exchange(link)
            except ConnectionRefusedError:
                self.refused_at = time.monotonic()
            except (Failed, OSError) as problem:
                self.problem = (f"{self.kind}, reply {self.n + 1}, {'in' if link else 'before'} "
                                f"the connection: {type(problem).__name__}: {problem}")
            finally:
                if link is not None:
                    link.close()

    def exchange(self, link):
        """Requests until the server, or the kind of client, ends the connection."""
        ends, n_ahead = False, 0
        while not ends:
            if self.kind == "pieces":
                cut = self.chance.choice([10, len(HEAD) - 1, len(HEAD) + 3])
                link.send(REQUEST[:cut])
                time.sleep(0.03)
                link.send(REQUEST[cut:])
            elif self.kind == "pipelined":
                for _ in range(4 - n_ahead):
                    link.send(REQUEST)
                n_ahead = 3
            else:
                link.send(REQUEST)
            ends = link.reply()
            self.n += 1
            self.n_last += ends
            if ends and self.kind == "pipelined" and link.socket.recv(1) != b"":
                raise Failed("something follows the reply that says close")
            if self.kind == "fresh":
                return
            if self.kind == "silent":
                if link.socket.recv(1) != b"":
                    raise Failed("there is more than one reply")
                self.refused_at = time.monotonic()
                return
            if self.kind == "thinking":
                time.sleep(self.chance.random() * 0.06)


def until(condition, what):
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {SECONDS} s")
        time.sleep(0.005)


def stop_in_the_middle(server, clients, delay):
    """What is wrong with the end, from SIGTERM on."""
    until(lambda: all(client.n >= (1 if client.kind == "silent" else 5) or client.problem
                      for client in clients), "five replies for each client")
    server.signal(signal.SIGTERM)
    told = time.monotonic()
    code = server.wait(SECONDS)
    for client in clients:
        client.join(SECONDS)
    problems = [client.problem for client in clients if client.problem]
    if code != 0:
        problems.append(f"exit code {code} after SIGTERM")
    if any(client.is_alive() for client in clients):
        problems.append("a client hangs")
    early = [client.kind for client in clients if client.refused_at is not None
             and client.refused_at < told + delay]
    if early:
        problems.append(f"refused before the delay was over: {', '.join(early)}")
    silent = [client.kind for client in clients if client.kind in ("kept", "thinking", "pipelined")
              and client.n_last == 0]
    if silent and not problems:
        problems.append(f"never told that the connection ends: {', '.join(silent)}")
    return problems


def round_of(binary, delay, certificate, chance):
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        flags, context = ["--data", "none", "--quiet", "--drain-delay", str(delay)], None
        server = Server(binary, flags, folder=folder)
        if certificate is not None:
            server.flags += ["--tls-cert", certificate[0], "--tls-key", certificate[1]]
            context = ssl.create_default_context(cafile=certificate[0])
        server.start()
        link = Link(server.port, context)
        link.send(b"PUT /v1/graphs/tiny HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(TINY), TINY))
        until(lambda: b"201" in link.socket.recv(65536), "an upload")
        link.close()
        clients = [Client(server, kind, context, random.Random(chance.random())) for kind in KINDS]
        for client in clients:
            client.start()
        try:
            problems = stop_in_the_middle(server, clients, delay)
        finally:
            server.kill()
        return sum(client.n for client in clients), problems + server.reports()


def rounds(binary, n, delay, certificate, report):
    seed = random.randrange(1 << 30)
    chance, answers, problems = random.Random(seed), 0, []
    for _ in range(n):
        whole, found = round_of(binary, delay, certificate, chance)
        answers, problems = answers + whole, problems + found
    waits = f"a delay of {delay} s" if delay else "no delay"
    name = f"SIGTERM, {len(KINDS)} clients that come back, {waits}{', TLS' if certificate else ''}, {n} times"
    figure = (f"{len(problems)} in {answers:,} replies: {'; '.join(problems[:4])} (seed {seed})" if problems
              else f"{answers:,} whole replies, then refused")
    report.row(name, figure, "no reset, no reply missing or cut, exit code 0", not problems and answers > 0)


def make_certificate(folder):
    """Paths of a certificate for localhost and of its key; None without openssl."""
    if shutil.which("openssl") is None:
        print("openssl is not installed: TLS is left out")
        return None
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True,
                   capture_output=True)
    return cert, key


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: reconnecting.py FXSERVE [ROUNDS=2]")
        return 2
    tally, binary, n = Tally(), os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    report = Report(tally)
    rounds(binary, n, 0, None, report)
    rounds(binary, n, 1, None, report)
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        certificate = make_certificate(folder)
        if certificate is not None:
            rounds(binary, n, 0, certificate, report)
            rounds(binary, n, 1, certificate, report)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
