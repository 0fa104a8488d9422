# SPDX-License-Identifier: Apache-2.0
"""A server on a socket in the file system (--listen unix:PATH): unix.py FXSERVE. Requests, the
program's own commands, who may use it, what stands there already, and what is left at the end. The
last line is `N passed, N failed`."""
import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

from service import Failed, Tally

RELU = b'''{"format": "fx/1", "nodes": [
  {"op": "placeholder", "name": "x", "target": "x"},
  {"op": "call_function", "name": "y", "target": "torch.relu", "args": ["%x"]},
  {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]}'''


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("anything.example", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def ask(path, method, target, body=None):
    client = Connection(path)
    try:
        client.request(method, target, body)
        reply = client.getresponse()
        return reply.status, reply.read()
    finally:
        client.close()


class Server:
    def __init__(self, binary, path, *flags):
        command = [binary, "serve", "--data", "none", "--listen", f"unix:{path}", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        if self.line != f"listening on unix:{path}\n":
            self.process.kill()
            raise Failed(f"{self.line!r} {self.process.stderr.read()[:300]}")

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def refused(binary, path, *flags):
    """The words of a server that does not start."""
    done = subprocess.run([binary, "serve", "--data", "none", "--listen", f"unix:{path}", *flags],
                          capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 2:
        raise Failed(f"exit code {done.returncode}: {done.stdout} {done.stderr}")
    return done.stderr


def check_requests(binary, path):
    server = Server(binary, path)
    try:
        if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
            raise Failed(f"its mode is {stat.S_IMODE(os.stat(path).st_mode):o}")
        for want, *request in ((201, "PUT", "/v1/graphs/relu", RELU), (200, "GET", "/livez"),
                               (200, "POST", "/v1/graphs/relu/run", b'{"inputs": {"x": [-1, 2]}}')):
            status, text = ask(path, *request)
            if status != want:
                raise Failed(f"{request[:2]}: {status} {text[:200]}")
        if b"[0, 2]" not in text:
            raise Failed(text.decode())
    finally:
        code = server.stop()
    if code != 0 or os.path.lexists(path):
        raise Failed(f"exit code {code}, the file is {'still there' if os.path.lexists(path) else 'gone'}")


def check_commands(binary, path):
    server = Server(binary, path)
    try:
        ask(path, "PUT", "/v1/graphs/relu", RELU)
        for environment, *command in (({"FXSERVE_LISTEN": f"unix:{path}"}, "health"),
                                      ({}, "list", "--url", f"unix:{path}"),
                                      ({"FXSERVE_URL": f"unix:{path}"}, "call", "relu",
                                       "--input", "x=[-3, 4]")):
            done = subprocess.run([binary, *command], capture_output=True, text=True, timeout=20, check=False,
                                  env={**os.environ, **environment})
            if done.returncode != 0:
                raise Failed(f"{command}: {done.stdout} {done.stderr}")
        if "4" not in done.stdout or "-3" in done.stdout:
            raise Failed(done.stdout)
    finally:
        server.stop()


def check_others(binary, path):
    server = Server(binary, path)
    try:
        if "another program listens there" not in (words := refused(binary, path)):
            raise Failed(words)
        if ask(path, "GET", "/livez")[0] != 200:
            raise Failed("the first server does not answer any more")
    finally:
        server.stop()
    with open(path, "w", encoding="utf-8") as file:
        file.write("mine")
    if "a file of another kind" not in (words := refused(binary, path)):
        raise Failed(words)
    with open(path, encoding="utf-8") as file:
        if file.read() != "mine":
            raise Failed("a file of another kind was written to")
    os.unlink(path)
    for bad in (f"{path}/below", "", "x" * 200):
        if not refused(binary, bad):
            raise Failed(f"no words about {bad!r}")


def check_left_over(binary, path):
    server = Server(binary, path)
    server.stop(signal.SIGKILL)
    if not os.path.lexists(path):
        raise Failed("a killed server removed its file")
    server = Server(binary, path)
    try:
        if ask(path, "GET", "/livez")[0] != 200:
            raise Failed("no answer")
    finally:
        server.stop()


def check_drain(binary, path):
    """A client on a kept connection is answered while the server stops."""
    server = Server(binary, path, "--drain-delay", "1")
    client = Connection(path)
    client.request("GET", "/livez")
    client.getresponse().read()
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    client.request("GET", "/v1")
    if (status := client.getresponse().status) != 200:
        raise Failed(f"status {status}")
    client.close()
    if (code := server.process.wait(20)) != 0:
        raise Failed(f"exit code {code}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        for check in (check_requests, check_commands, check_others, check_left_over, check_drain):
            try:
                check(sys.argv[1], os.path.join(folder, "socket"))
                tally.ok()
            except (Failed, OSError, subprocess.TimeoutExpired) as failure:
                tally.bad(check.__name__, str(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
