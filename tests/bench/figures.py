# SPDX-License-Identifier: Apache-2.0
"""Prints the figures of the service on this machine, one line each with its aim. Needs two cores
and wrk; nothing here passes or fails.

usage: figures.py BUILD_FOLDER [SECONDS]     (a release build; builds the bench programs it needs)
"""
import array
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
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%x"]},
    {"op": "call_function", "name": "neg", "target": "torch.neg", "args": ["%relu"]},
    {"op": "call_function", "name": "abs_1", "target": "torch.abs", "args": ["%neg"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%abs_1"]}]}


class Server:
    def __init__(self, binary, *arguments, core=None):
        pin = ["taskset", "-c", str(core)] if core is not None else []
        self.started = time.perf_counter()
        self.process = subprocess.Popen(pin + [binary, "serve", "--listen", "127.0.0.1:0", "--data",
                                               "none", "--quiet"] + list(arguments), stdout=subprocess.PIPE,
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
        return int(re.search(r"Anonymous:\s+(\d+)",
                             open(f"/proc/{self.process.pid}/smaps_rollup").read()).group(1)) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def line(what, figure, aim):
    print(f"{what:62s} {figure:>16s}   {aim}", flush=True)


def wrk(port, body, seconds, path="/v1/graphs/small/run", connections=32):
    """(requests per second, p99) of a client on core 1 that sends `body` (bytes) over so many
    connections."""
    with tempfile.NamedTemporaryFile("wb") as file, tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        file.write(body)
        file.flush()
        script.write(f"wrk.method = 'POST'\nwrk.body = io.open('{file.name}', 'rb'):read('*a')\n")
        script.flush()
        out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                              "--latency", "-s", script.name, f"http://127.0.0.1:{port}{path}"],
                             capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out:
        raise RuntimeError(out)
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
            re.search(r"^\s+99%\s+(\S+)", out, re.M).group(1))


def http_small(binary, seconds):
    server = Server(binary, core=0)
    server.call("PUT", "/v1/graphs/small", json.dumps(RELU))
    body = json.dumps({"inputs": {"x": [[1.5, -2, 3, 4], [5, 6, -7.25, 8], [9, 10, 11, 12]]}}).encode()
    rate, p99 = wrk(server.port, body, seconds)
    line("relu-neg-abs 3x4 over HTTP, 32 connections, server on one core", f"{rate:,.0f} req/s",
         f"aim 20,000 (p99 {p99})")
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
    line("150,528 floats of JSON in and out: CPU beside the kernels", f"{per - kernels / n:.2f} ms",
         f"aim 4 (all: {per:.2f}, kernels {kernels / n:.2f})")
    body = inputs + "}"
    graph = {"format": "fx/1", "nodes": [
        RELU["nodes"][0], {"op": "call_function", "name": "sum_1", "target": "torch.sum", "args": ["%x"]},
        {"op": "output", "name": "output", "target": "output", "args": ["%sum_1"]}]}
    server.call("PUT", "/v1/graphs/total", json.dumps(graph))
    before = server.cpu_ms()
    for _ in range(n):
        server.call("POST", "/v1/graphs/total/run", body)
    line("150,528 floats of JSON in, one number out: CPU in all", f"{(server.cpu_ms() - before) / n:.2f} ms",
         "aim 4")
    server.stop()


FLOATS = array.array("f", ((i * 37 % 1000) / 1000 for i in range(150528)))


def npy(values):
    """A .npy file of float32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes()


def http_bodies(binary, seconds):
    """An image's 150,528 floats in; its 1,000 classes out, or as many floats as came."""
    server = Server(binary, core=0)
    server.call("PUT", "/v1/graphs/all", json.dumps(RELU))
    first = [RELU["nodes"][0],
             {"op": "call_method", "name": "narrow", "target": "narrow", "args": ["%x", 0, 0, 1000]},
             {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%narrow"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]
    server.call("PUT", "/v1/graphs/first", json.dumps({"format": "fx/1", "nodes": first}))
    text = ('{"inputs": {"x": [' + ",".join(f"{value:.6f}" for value in FLOATS) + "]}}").encode()
    for name, body, query, aim in (("JSON", text, "", "aim 250 req/s, 3.5 ms"),
                                   ("npy", npy(FLOATS), "?as=npy", "aim 3,000 req/s, 0.3 ms")):
        for graph, words in (("first", "1,000"), ("all", "all")):
            for connections in (1, 8, 32):
                wrk(server.port, body, 1, f"/v1/graphs/{graph}/run{query}", connections)
                before = server.cpu_ms()
                rate, p99 = wrk(server.port, body, seconds, f"/v1/graphs/{graph}/run{query}", connections)
                per = (server.cpu_ms() - before) / (rate * seconds)
                line(f"150,528 floats as {name} in, {words} out, {connections} connections",
                     f"{rate:,.0f} req/s", f"{aim} of CPU ({per:.2f} ms, p99 {p99})")
    server.stop()


def digits(binary):
    model, images = (os.path.join(ROOT, "tests/models/digits.pt2"),
                     open(os.path.join(ROOT, "tests/models/digits_images.json")).read())
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
    subprocess.run(["ninja", "-C", folder, "fxserve", "tests/bench/bench_numbers", "tests/bench/bench_eager"],
                   check=True, stdout=subprocess.DEVNULL)
    binary = os.path.join(folder, "fxserve")
    for name, arguments in (("bench_numbers", ["1000000", "1000000"]), ("bench_eager", [])):
        print(subprocess.run(["taskset", "-c", "1", os.path.join(folder, "tests/bench", name)] + arguments,
                             capture_output=True, text=True, check=True).stdout)
    http_small(binary, seconds)
    http_large(binary)
    http_bodies(binary, seconds)
    digits(binary)


if __name__ == "__main__":
    main()
