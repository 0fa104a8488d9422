# SPDX-License-Identifier: Apache-2.0
"""How long a graph's requests take beside another graph that has more than it can do: neighbours.py
BUILD_FOLDER [--rounds 5] [--seconds 3]. Nothing here passes or fails.

Needs two cores, wrk and gcc. The server runs on core 0, so with one worker; the clients on core 1. A
neighbour's requests come as a Poisson process of a tenth of what it could do alone
(peers/open_loop.c); 32 connections ask the other graph without a pause (wrk). Both are chains of
products of square matrices, in compiled mode. Each round measures the neighbour alone and beside the
other, and the ratio is that of one round; medians over the rounds are printed.
"""
import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTIONS, SHARE = 32, 0.1
GRAPHS = {"small": (64, 6), "middle": (256, 6), "slow": (768, 12)}  # rows and columns, products
BODY = b'{"inputs": {"x": [[0.001]]}}'
ROWS = [("small", "slow"), ("middle", "slow"), ("small", "middle"), ("middle", "middle-2")]


def chain(rows, length):
    """Products of a matrix that is made of one number, so that bodies are small."""
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_method", "name": "e", "target": "expand", "args": ["%x", rows, rows]}]
    for i in range(length):
        nodes.append({"op": "call_function", "name": f"y{i}", "target": "torch.matmul",
                      "args": [f"%y{i - 1}" if i else "%e", "%e"]})
    nodes.append({"op": "call_function", "name": "sum", "target": "torch.sum", "args": [f"%y{length - 1}"]})
    nodes.append({"op": "output", "name": "output", "target": "output", "args": ["%sum"]})
    return json.dumps({"format": "fx/1", "nodes": nodes}).encode()


def request_of(name, port):
    return (f"POST /v1/graphs/{name}/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Length: {len(BODY)}\r\n\r\n").encode() + BODY


class Bench:
    def __init__(self, binary, folder, seconds):
        self.folder, self.seconds = folder, seconds
        with socket.create_server(("127.0.0.1", 0)) as one:
            self.port = one.getsockname()[1]
        subprocess.run(["gcc", "-O2", os.path.join(HERE, "peers", "open_loop.c"), "-o",
                        self.file("open_loop"), "-lm"], check=True)
        self.process = subprocess.Popen(["taskset", "-c", "0", binary, "serve", "--data", "none", "--quiet",
                                         "--listen", f"127.0.0.1:{self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def upload_all(self):
        for name, (rows, length) in GRAPHS.items():
            for copy in (name, f"{name}-2"):
                self.upload(copy, chain(rows, length))
                with open(self.file(copy), "wb") as file:
                    file.write(request_of(copy, self.port))

    def file(self, name):
        return os.path.join(self.folder, name)

    def upload(self, name, body):
        until = time.time() + 20
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.request("PUT", f"/v1/graphs/{name}", body)
                reply = connection.getresponse()
                if reply.status != 201:
                    raise SystemExit(f"{name}: {reply.status} {reply.read()[:300]}")
                return
            except ConnectionRefusedError:
                if time.time() > until:
                    raise
                time.sleep(0.01)
            finally:
                connection.close()

    def wrk(self, name, seconds, connections):
        """A closed loop, under way."""
        with open(self.file("wrk.lua"), "w") as file:
            file.write(f"wrk.method = 'POST'\nwrk.body = '{BODY.decode()}'\n")
        return subprocess.Popen(["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                                 "--timeout", "60s", "-s", self.file("wrk.lua"),
                                 f"http://127.0.0.1:{self.port}/v1/graphs/{name}/run"],
                                stdout=subprocess.PIPE, text=True)

    def rate(self, name, seconds=2, connections=1):
        """Requests per second of one client that does not pause."""
        out, _ = self.wrk(name, seconds, connections).communicate()
        if "Non-2xx" in out:
            raise SystemExit(f"{name}: {out}")
        return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))

    def latency(self, name, rate, seconds):
        """(p50, p99) in µs."""
        out = subprocess.run(["taskset", "-c", "1", self.file("open_loop"), str(self.port), self.file(name),
                              f"{rate:.1f}", str(seconds), str(CONNECTIONS)], capture_output=True, text=True,
                             check=True).stdout
        _, failures, p50, p99, _ = map(float, out.split())
        if failures:
            raise SystemExit(f"{name}: {failures:.0f} failures")
        return p50, p99

    def row(self, name, other, rounds):
        self.rate(other, connections=4)  # programs are built
        rate, found = SHARE * self.rate(name), []
        for _ in range(rounds):
            alone = self.latency(name, rate, self.seconds)
            load = self.wrk(other, self.seconds + 2, CONNECTIONS)
            time.sleep(1)
            beside = self.latency(name, rate, self.seconds)
            out, _ = load.communicate()
            found.append((*alone, *beside, float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))))
        p50, p99, p50_beside, p99_beside, others = (statistics.median(one) for one in zip(*found))
        ratios = [statistics.median(one[2 + i] / one[i] for one in found) for i in (0, 1)]
        print(f"| {name} | {other} | {rate:,.0f} | {others:,.0f} | {p50:,.0f} / {p99:,.0f} | "
              f"{p50_beside:,.0f} / {p99_beside:,.0f} | {ratios[0]:.2f} / {ratios[1]:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.join(arguments.build, "fxserve"), folder, arguments.seconds)
        try:
            bench.upload_all()
            print("| neighbour | other | neighbour's requests/s | other's | alone: p50 / p99 µs | beside | "
                  "ratio |\n|---|---|---|---|---|---|---|")
            for name, other in ROWS:
                bench.row(name, other, arguments.rounds)
        finally:
            bench.process.terminate()
            bench.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
