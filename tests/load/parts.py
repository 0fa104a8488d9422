# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: figures of a process and of times, graphs to load a
server with, and the results file.

A result is a line of JSON: {"name", "figure", "aim", "met", "command"}. report.py makes
tests/REPORT.md of them. Each aim is also a check of the tally, but for those of speed
(`speed=True`), which are only reported: a busy machine is no defect.
"""
import json
import os
import re
import resource
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "service"))
from service import Failed, Server, Tally  # noqa: F401 (the tests of this folder take them from here)

RESULTS = os.environ.get("FXSERVE_RESULTS", "")


def graph(*nodes, inputs=("x",)):
    """FX JSON of nodes, the last of which is the output's value."""
    rows = [{"op": "placeholder", "name": name, "target": name} for name in inputs] + list(nodes)
    return json.dumps({"format": "fx/1", "nodes": rows + [
        {"op": "output", "name": "output", "target": "output", "args": [f"%{nodes[-1]['name']}"]}]}).encode()


def call(name, target, *arguments, **kwargs):
    return {"op": "call_function", "name": name, "target": target, "args": list(arguments), "kwargs": kwargs}


TINY = graph(call("y", "torch.relu", "%x"))
TINY_BODY = b'{"inputs": {"x": [[1.5, -2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]}}'


def slow_graph(n_nodes, size):
    """Products of square matrices, one after another: each node takes 2 * size^3 operations."""
    nodes = [call("m0", "torch.ones", [size, size])]
    for i in range(n_nodes):
        nodes += [call(f"p{i}", "torch.matmul", f"%m{i}", f"%m{i}"),
                  call(f"m{i + 1}", "torch.clamp", f"%p{i}", max=1)]
    return graph(*nodes, call("s", "torch.sum", f"%m{n_nodes}"), call("out", "torch.add", "%x", "%s"))


SLOW_BODY = b'{"inputs": {"x": [1.5]}, "mode": "eager"}'


def upload(server, name, body, headers=()):
    reply = server.call("PUT", f"/v1/graphs/{name}", body, headers)
    if reply.status not in (200, 201):
        raise Failed(f"graph {name}: {reply.short()}")


def run(server, name, body, seconds=60):
    return server.call("POST", f"/v1/graphs/{name}/run", body, seconds=seconds)


def gauge(server, name):
    """A metric without labels."""
    text = server.call("GET", "/metrics").body.decode()
    found = re.search(rf"^{name} (\S+)$", text, re.M)
    if not found:
        raise Failed(f"/metrics has no {name}")
    return float(found[1])


def memory(server, field="RssAnon"):
    """Bytes of a process by /proc."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.M)[1]) * 1024


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def settle(server, seconds=15):
    """Waits until nothing is queued or running and the only connection is the asking one: what is
    left over after that time."""
    end = time.monotonic() + seconds
    while True:
        left = {name: gauge(server, name) - own for name, own in (
            ("fxserve_connections", 1), ("fxserve_queue_depth", 0), ("fxserve_running", 1))}
        left = {name: count for name, count in left.items() if count > 0}
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def percentile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else float("nan")


def more_descriptors(n):
    """Lets this process, and the servers it starts, have n open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE,
                           (min(n, hard) if hard != resource.RLIM_INFINITY else n, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connect_from(port, address=None, seconds=10):
    """A plain socket to the server, from a loopback address of choice."""
    plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    plain.settimeout(seconds)
    if address is not None:
        plain.setsockopt(socket.SOL_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: ports are shared between targets
        plain.bind((address, 0))
    plain.connect(("127.0.0.1", port))
    return plain


def reset(plain):
    """Closes with RST instead of FIN."""
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.close()


class Report:
    """Results of one program."""

    def __init__(self, tally):
        self.tally, self.command = (tally, "python3 " + " ".join([os.path.relpath(sys.argv[0])] + [
            "build/fxserve" if os.path.basename(word) == "fxserve" else word for word in sys.argv[1:]]))

    def row(self, name, figure, aim, met, speed=False):
        met = bool(met)
        print(f"{'met   ' if met else 'MISSED'} {name}: {figure} (aim: {aim})", flush=True)
        if RESULTS:
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write(json.dumps({"name": name, "figure": figure, "aim": aim, "met": met,
                                       "command": self.command}) + "\n")
        if speed:
            self.tally.ok()
        else:
            self.tally.check(name, None if met else f"{figure}; the aim is {aim}")
