# SPDX-License-Identifier: Apache-2.0
"""Prints the figures of the service on this machine, one line each with its aim. Needs two cores and wrk; nothing here passes or fails.

usage: figures.py BUILD_FOLDER [SECONDS]     (a release build; builds the bench programs it needs)
"""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELU = {"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"}, {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%x"]},
    {"op": "call_function", "name": "neg", "target": "torch.neg", "args": ["%relu"]}, {"op": "call_function", "name": "abs_1", "target": "torch.abs", "args": ["%neg"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%abs_1"]}]}


class Server:
    def __init__(self, binary, *arguments, core=None):
        pin = ["taskset", "-c", str(core)] if core is not None else []
        self.started = time.perf_counter()
        self.process = subprocess.Popen(pin + [binary, "serve", "--listen", "127.0.0.1:0", "--data", "none", "--quiet"] + list(arguments), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def call(self, method, path, body=None):
        self.connection.request(method, path, body)
        reply = self.connection.getresponse()
        data = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {data[:500]!r}")
        return data

    def cpu_ms(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000.0 / os.sysconf("SC_CLK_TCK")

    def anonymous_mb(self):
        return int(re.search(r"Anonymous:\s+(\d+)", open(f"/proc/{self.process.pid}/smaps_rollup").read()).group(1)) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def line(what, figure, aim):
    print(f"{what:62s} {figure:>16s}   {aim}", flush=True)


def wrk(port, body, seconds, path="/v1/graphs/small/run"):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = '{body}'\n")
        script.flush()
        out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c32", f"-d{seconds}s", "--latency", "-s", script.name, f"http://127.0.0.1:{port}{path}"],
                             capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        raise RuntimeError(out)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), re.search(r"99%\s+(\S+)", out).group(1)


def http_small(binary, seconds):
    server = Server(binary, core=0)
    server.call("PUT", "/v1/graphs/small", json.dumps(RELU))
    body = json.dumps({"inputs": {"x": [[1.5, -2, 3, 4], [5, 6, -7.25, 8], [9, 10, 11, 12]]}})
    rate, p99 = wrk(server.port, body, seconds)
    line("relu-neg-abs 3x4 over HTTP, 32 connections, server on one core", f"{rate:,.0f} req/s", f"aim 20,000 (p99 {p99})")
    server.stop()


def http_large(binary):
    server = Server(binary, core=0)
    server.call("PUT", "/v1/graphs/small", json.dumps(RELU))
    inputs = '{"inputs": {"x": [' + ",".join(f"{(i * 37 % 1000) / 1000:.6f}" for i in range(150528)) + "]}"
    body = inputs + ', "profile": true}'
    path = "/v1/graphs/small/run?encoding=flat&outputs=relu"
    server.call("POST", path, body)
    n, kernels = 100, 0.0
    before = server.cpu_ms()
    for _ in range(n):
        profile = json.loads(server.call("POST", path, body))["profile"]
        kernels += sum(node["us"] for node in profile["nodes"]) / 1000
    per = (server.cpu_ms() - before) / n
    line("150,528 floats of JSON in and out: CPU beside the kernels", f"{per - kernels / n:.2f} ms", f"aim 4 (all: {per:.2f}, kernels {kernels / n:.2f})")
    body = inputs + "}"
    graph = {"format": "fx/1", "nodes": [RELU["nodes"][0], {"op": "call_function", "name": "sum_1", "target": "torch.sum", "args": ["%x"]},
                                         {"op": "output", "name": "output", "target": "output", "args": ["%sum_1"]}]}
    server.call("PUT", "/v1/graphs/total", json.dumps(graph))
    before = server.cpu_ms()
    for _ in range(n):
        server.call("POST", "/v1/graphs/total/run", body)
    line("150,528 floats of JSON in, one number out: CPU in all", f"{(server.cpu_ms() - before) / n:.2f} ms", "aim 4")
    server.stop()


def digits(binary):
    model, images = os.path.join(ROOT, "tests/models/digits.pt2"), open(os.path.join(ROOT, "tests/models/digits_images.json")).read()
    best = 1e9
    for _ in range(5):
        server = Server(binary, model)
        server.call("POST", "/v1/graphs/digits/run", images)
        best = min(best, time.perf_counter() - server.started)
        memory = server.anonymous_mb()
        server.stop()
    line("cold start to the first answer (digits model preloaded)", f"{best * 1000:.1f} ms", "aim 50")
    line("anonymous memory with the digits model, after its first run", f"{memory:.1f} MB", "aim 20")


def main():
    folder, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    subprocess.run(["ninja", "-C", folder, "fxserve", "tests/bench/bench_numbers", "tests/bench/bench_eager"], check=True, stdout=subprocess.DEVNULL)
    binary = os.path.join(folder, "fxserve")
    for name, arguments in (("bench_numbers", ["1000000", "1000000"]), ("bench_eager", [])):
        print(subprocess.run(["taskset", "-c", "1", os.path.join(folder, "tests/bench", name)] + arguments, capture_output=True, text=True, check=True).stdout)
    http_small(binary, seconds)
    http_large(binary)
    digits(binary)


if __name__ == "__main__":
    main()
