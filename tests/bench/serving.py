# SPDX-License-Identifier: Apache-2.0
"""fxserve beside model servers from PyPI and a native reference (tests/bench/peers), on the same
models and the same machine; nothing here passes or fails.

usage: serving.py BUILD_FOLDER [--rounds 3] [--seconds 2] [--only SERVER,...] [--rows ROW,...]
                  [--peers FOLDER] [--json FILE]

Needs two cores, wrk, gcc and, for the native reference, libh2o-evloop-dev and libsimdjson-dev. The
packages of PyPI come into virtual environments in FOLDER (build/peers). A server that cannot be had
is left out, and the output says why.

Servers run on core 0, the client on core 1, all on 127.0.0.1. Per row all servers are started, and
take turns: those that wait are stopped (SIGSTOP, Triton apart). A turn is a closed loop of 32
connections (wrk), and an open loop whose requests come as a Poisson process of 70 % of the rate just seen
(peers/open_loop.c). Ratios are medians over the rounds of ratios within one round. On a busy machine
look at the processor time per request: it says what one core could do if it were alone.
"""
import argparse
import glob
import http.client
import importlib.util
import json
import math
import os
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
FLOATS = 150528
MODEL_FILES = ("mlp.pt2", "minilm.pt2", "mlp.xml", "minilm.xml", "tiny.xml", "first.xml")
WORDS = 30522  # of the table that MiniLM looks tokens up in
CONNECTIONS, LOAD = 32, 0.7
WARM_SECONDS = 5  # programs of every size of batch are built in that time
START_SECONDS, REPLY_SECONDS = 120, 60
SLOW_SECONDS = 10  # for a server that has not answered once until then
# Environment: packages, and whether it also sees those of `base`.
ENVIRONMENTS = {
    "base": ["torch==2.13.0", "numpy", "packaging", "openvino", "fastapi", "uvicorn", "mosec",
             "litserve"],
    "mlserver": ["mlserver", "uvloop<0.22"], "kserve": ["kserve"], "triton": ["nvidia-pytriton"]}
# Triton's own interpreter is older than the library of some Pythons that are not Debian's.
PYTHONS = {"triton": "/usr/bin/python3"} if os.path.exists("/usr/bin/python3") else {}
PACKAGES = {"fastapi": ["fastapi", "uvicorn", "numpy", "torch"], "mosec": ["mosec", "numpy", "torch"],
            "litserve": ["litserve", "numpy", "torch"], "kserve": ["kserve", "torch"],
            "mlserver": ["mlserver", "torch"], "triton": ["nvidia-pytriton", "torch"]}


def figures_module():
    spec = importlib.util.spec_from_file_location("figures", os.path.join(HERE, "figures.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIGURES = figures_module()
FIRST = {"format": "fx/1", "nodes": [
    FIGURES.RELU["nodes"][0],
    {"op": "call_method", "name": "narrow", "target": "narrow", "args": ["%x", 0, 0, 1000]},
    {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%narrow"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]}


class Body:
    """The numbers of a row in every form that some server takes: (headers, bytes)."""

    def __init__(self, row):
        self.shape = shape = ROWS[row][0]
        draw = random.Random(1)
        if row.startswith("MiniLM"):
            self.values = [float(draw.randrange(WORDS)) for _ in range(math.prod(shape))]
            self.packed = struct.pack(f"<{len(self.values)}f", *self.values)
            return
        self.values = [round(draw.uniform(-1, 1), 6) if len(shape) == 1 else draw.uniform(-1, 1)
                       for _ in range(math.prod(shape))]
        self.packed = struct.pack(f"<{len(self.values)}f", *self.values)

    def nested(self):
        if len(self.shape) == 1:
            return self.values
        width = self.shape[1]
        return [self.values[i:i + width] for i in range(0, len(self.values), width)]

    def form(self, kind):
        if kind == "json":
            return {"Content-Type": "application/json"}, json.dumps({"inputs": {"x": self.nested()}}).encode()
        if kind == "bytes":
            return {"Content-Type": "application/octet-stream"}, self.packed
        if kind == "npy":
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {self.shape!r}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
            return {"Content-Type": "application/octet-stream"}, head + self.packed
        row = {"name": "x", "shape": list(self.shape), "datatype": "FP32"}
        if kind == "v2":
            row["data"] = self.values
            return {"Content-Type": "application/json"}, json.dumps({"inputs": [row]}).encode()
        row["parameters"] = {"binary_data_size": len(self.packed)}
        head = json.dumps({"inputs": [row], "parameters": {"binary_data_output": True}}).encode()
        return {"Content-Type": "application/octet-stream",
                "Inference-Header-Content-Length": str(len(head))}, head + self.packed


def numbers_of(kind, body, count):
    """The result in a reply: the last bytes of a binary one, `data` of a JSON one."""
    if kind in ("bytes", "npy", "v2 binary"):
        return list(struct.unpack(f"<{count}f", body[-4 * count:]))
    reply = json.loads(body)
    data = reply["outputs"][0]["data"] if "outputs" in reply else reply["data"]
    return [number for row in data for number in row] if isinstance(data[0], list) else data


ROWS = {  # shape, number of results, then per server: form and path
    "relu-neg-abs": ((3, 4), 12, {
        "fxserve": ("json", "/v1/graphs/tiny/run"), "fxserve /v2": ("v2", "/v2/models/tiny/infer"),
        "fxserve /v2 binary": ("v2 binary", "/v2/models/tiny/infer"),
        "native": ("json", "/tiny"), "fastapi": ("json", "/tiny"), "mosec": ("json", "/inference"),
        "litserve": ("json", "/predict"), "kserve": ("v2", "/v2/models/tiny/infer"),
        "mlserver": ("v2", "/v2/models/tiny/infer"), "triton": ("v2", "/v2/models/tiny/infer")}),
    "image JSON": ((FLOATS,), 1000, {
        "fxserve": ("json", "/v1/graphs/first/run"), "fxserve /v2": ("v2", "/v2/models/first/infer"),
        "native": ("json", "/first"), "fastapi": ("json", "/first"), "mosec": ("json", "/inference"),
        "litserve": ("json", "/predict"), "kserve": ("v2", "/v2/models/first/infer"),
        "mlserver": ("v2", "/v2/models/first/infer"), "triton": ("v2", "/v2/models/first/infer")}),
    "image binary": ((FLOATS,), 1000, {
        "fxserve": ("npy", "/v1/graphs/first/run?as=npy"),
        "fxserve /v2": ("v2 binary", "/v2/models/first/infer"),
        "native": ("bytes", "/bytes/first"), "fastapi": ("npy", "/npy/first"), "mosec": ("npy", "/inference"),
        "kserve": ("v2 binary", "/v2/models/first/infer"),
        "triton": ("v2 binary", "/v2/models/first/infer")}),
    "MLP": ((1, 784), 10, {
        "fxserve": ("json", "/v1/graphs/mlp/run"), "native": ("json", "/mlp"), "fastapi": ("json", "/mlp"),
        "mosec": ("json", "/inference"), "litserve": ("json", "/predict"),
        "kserve": ("v2", "/v2/models/mlp/infer"), "mlserver": ("v2", "/v2/models/mlp/infer"),
        "triton": ("v2", "/v2/models/mlp/infer")}),
    "MLP batched": ((1, 784), 10, {
        "fxserve": ("json", "/v1/graphs/mlp/run"), "native": ("json", "/mlp"),
        "mosec": ("json", "/inference"), "litserve": ("json", "/predict"),
        "mlserver": ("v2", "/v2/models/mlp-batched/infer"),
        "triton": ("v2", "/v2/models/mlp-batched/infer")}),
    "MiniLM": ((1, 16), 384, {
        "fxserve": ("json", "/v1/graphs/minilm/run"), "native": ("json", "/minilm"),
        "fastapi": ("json", "/minilm"), "mosec": ("json", "/inference"), "litserve": ("json", "/predict"),
        "kserve": ("v2", "/v2/models/minilm/infer"), "mlserver": ("v2", "/v2/models/minilm/infer"),
        "triton": ("v2", "/v2/models/minilm/infer")}),
    "MiniLM batched": ((1, 16), 384, {
        "fxserve": ("json", "/v1/graphs/minilm/run"), "native": ("json", "/minilm"),
        "mosec": ("json", "/inference"), "litserve": ("json", "/predict"),
        "mlserver": ("v2", "/v2/models/minilm-batched/infer"),
        "triton": ("v2", "/v2/models/minilm-batched/infer")})}
KIND = {"relu-neg-abs": "tiny", "image JSON": "first", "image binary": "npy", "MLP": "mlp",
        "MLP batched": "mlp-batched", "MiniLM": "minilm", "MiniLM batched": "minilm-batched"}


def free_port():
    """Three in a row, for servers that want more than one."""
    while True:
        sockets = []
        try:
            sockets.append(socket.create_server(("127.0.0.1", 0)))
            port = sockets[0].getsockname()[1]
            sockets += [socket.create_server(("127.0.0.1", port + 1)),
                        socket.create_server(("127.0.0.1", port + 2))]
            return port
        except (OSError, OverflowError):
            continue
        finally:
            for one in sockets:
                one.close()


class Server:
    """One server, in a session of its own, so that its children are known by it."""

    def __init__(self, name, row, setup):
        self.name = name
        shape, self.count, forms = ROWS[row]
        self.kind, self.path = forms[name]
        self.headers, self.body = setup.bodies[row].form(self.kind)
        self.port, self.log = free_port(), os.path.join(setup.folder, f"{name.split()[0]}.log")
        command, environment = setup.command(name, row, self.port)
        self.began = time.perf_counter()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["taskset", "-c", "0"] + command, env=environment, stdout=log,
                                            stderr=log, start_new_session=True, cwd=setup.folder)
        try:
            setup.prepare(self, name, row)
            self.result = self.first_result()
        except (RuntimeError, OSError) as problem:
            self.stop()
            end = open(self.log, errors="replace").read()[-300:]
            raise RuntimeError(f"{problem}; the end of {self.log}: {end!r}") from None
        self.cold = time.perf_counter() - self.began

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REPLY_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def first_result(self):
        """Of the first request that is answered: models load while ports are already open."""
        until, problem = time.time() + START_SECONDS, "no answer"
        while time.time() < until and self.process.poll() is None:
            try:
                status, body = self.ask("POST", self.path, self.body, self.headers)
                if status == 200:
                    return numbers_of(self.kind, body, self.count)
                problem = f"{status} {body[:200]!r}"
            except (OSError, http.client.HTTPException) as error:
                problem = str(error)
            time.sleep(0.02)
        raise RuntimeError(problem if self.process.poll() is None else "it ended")

    def members(self):
        """(pid, fields of its stat from the state on) of the server's processes: those of its session,
        and what they started in sessions of their own."""
        found = {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                found[int(path.split("/")[2])] = open(path).read().rsplit(")", 1)[1].split()
            except OSError:
                continue
        inside = {pid for pid, fields in found.items() if int(fields[3]) == self.process.pid}
        while more := {pid for pid, fields in found.items() if int(fields[1]) in inside} - inside:
            inside |= more
        return [(pid, found[pid]) for pid in inside]

    def cpu_ms(self):
        ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in self.members())
        return ticks * 1000.0 / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        total = 0
        for pid, _ in self.members():
            try:
                text = open(f"/proc/{pid}/smaps_rollup").read()
                total += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
            except (OSError, AttributeError):
                pass
        return total / 1024

    def mapped_mb(self):
        """Programs and libraries that a native server has in memory: what has to be installed."""
        paths = set(re.findall(r"(/\S+)$", open(f"/proc/{self.process.pid}/maps").read(), re.M))
        return sum(os.path.getsize(path) for path in paths if os.path.isfile(path)) / 1e6

    def pause(self, number):
        """SIGSTOP or SIGCONT. Triton's processes take a pause for each other's end."""
        if self.name != "triton":
            self.tell(number)

    def tell(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def stop(self):
        self.tell(signal.SIGCONT)
        self.tell(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        for pid, _ in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


class Setup:
    """Environments, programs and models, made once; how each server is started."""

    def __init__(self, build, folder):
        self.build, self.folder, self.missing = os.path.abspath(build), folder, {}
        self.environments = os.path.join(folder, "environments")
        self.bodies = {row: Body(row) for row in ROWS}
        os.makedirs(self.environments, exist_ok=True)
        subprocess.run(["ninja", "-C", build, "fxserve"], check=True, stdout=subprocess.DEVNULL)
        for name, packages in ENVIRONMENTS.items():
            self.environment(name, packages)
        self.sites = self.site_packages("base")
        subprocess.run(["gcc", "-O2", os.path.join(PEERS, "open_loop.c"), "-o", self.file("open_loop"),
                        "-lm"], check=True)
        if not all(os.path.exists(self.file(name)) for name in MODEL_FILES):
            subprocess.run([self.python("base"), os.path.join(PEERS, "models.py"), folder], check=True,
                           stderr=subprocess.DEVNULL)
        self.native()

    def file(self, name):
        return os.path.join(self.folder, name)

    def python(self, name):
        return os.path.join(self.environments, name, "bin", "python")

    def site_packages(self, name):
        return glob.glob(os.path.join(self.environments, name, "lib/python3*/site-packages"))[0]

    def environment(self, name, packages):
        done = os.path.join(self.environments, name, "done")
        if os.path.exists(done):
            return
        print(f"installing {', '.join(packages)}", flush=True)
        subprocess.run([PYTHONS.get(name, sys.executable), "-m", "venv", "--without-pip",
                        os.path.join(self.environments, name)], check=True)
        out = subprocess.run([sys.executable, "-m", "pip", "--python", self.python(name), "install", "-q",
                              *packages], capture_output=True, text=True)
        if out.returncode:
            self.missing[name] = out.stderr.strip().split("\n")[-1][:200]
            return
        if name != "base":  # PyTorch is not installed once per server
            with open(os.path.join(self.site_packages(name), "zz_base.pth"), "w") as file:
                file.write(self.site_packages("base") + "\n")
        open(done, "w").close()

    def native(self):
        openvino = os.path.join(self.sites, "openvino")
        libraries = os.path.join(openvino, "libs")
        out = subprocess.run(
            ["g++", "-std=c++20", "-O3", "-march=native", "-w", os.path.join(PEERS, "native.cpp"), "-o",
             self.file("native"), "-I" + os.path.join(openvino, "include"), "-lh2o-evloop", "-lsimdjson",
             *glob.glob(os.path.join(libraries, "libopenvino.so.*")), "-lssl", "-lcrypto", "-lz",
             "-Wl,-rpath," + libraries], capture_output=True, text=True)
        if out.returncode:
            self.missing["native"] = re.findall(r"[^\n]*error[^\n]*|$", out.stderr)[0][:200]

    def command(self, name, row, port):
        if name.startswith("fxserve"):
            batch = [] if row.endswith(" batched") else ["--max-batch", "1"]
            return [os.path.join(self.build, "fxserve"), "serve", "--listen", f"127.0.0.1:{port}", "--data",
                    "none", "--quiet", *batch], None
        if name == "native":
            model = "first" if KIND[row] == "npy" else KIND[row].removesuffix("-batched")
            return [self.file("native"), str(port), self.folder, model], None
        environment = name if name in ENVIRONMENTS else "base"
        return [self.python(environment), os.path.join(PEERS, "servers.py"), name, str(port)], dict(
            os.environ, BENCH_MODEL=KIND[row], OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore",
            TORCH_CPP_LOG_LEVEL="ERROR",
            PATH=os.path.dirname(self.python(environment)) + ":" + os.environ["PATH"])

    def prepare(self, server, name, row):
        """Uploads the row's graph to fxserve; the others bring theirs."""
        if not name.startswith("fxserve"):
            return
        model = KIND[row].removesuffix("-batched")
        graph, body = ((model, open(self.file(f"{model}.pt2"), "rb").read()) if row.startswith("M") else
                       ("tiny", json.dumps(FIGURES.RELU)) if row == "relu-neg-abs" else
                       ("first", json.dumps(FIRST)))
        until = time.time() + START_SECONDS
        while time.time() < until:
            try:
                status, reply = server.ask("PUT", f"/v1/graphs/{graph}", body)
            except ConnectionRefusedError:
                time.sleep(0.001)
                continue
            if status >= 300:
                raise RuntimeError(f"{status} {reply[:300]!r}")
            return
        raise RuntimeError("no answer")

    def installed_mb(self, server):
        """Packages with all that they require, or what a native program maps."""
        if server.name not in PACKAGES:
            return server.mapped_mb()
        environment = server.name if server.name in ENVIRONMENTS else "base"
        out = subprocess.run([self.python(environment), os.path.join(PEERS, "installed.py"),
                              *PACKAGES[server.name]], capture_output=True, text=True, check=True)
        return float(out.stdout)


def microseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1, "ms": 1000, "s": 1e6, "m": 6e7}[unit]


def closed_loop(server, seconds, setup):
    """Rate, p99 in µs and processor milliseconds per request, of 32 clients that wait for replies."""
    script, body = setup.file("wrk.lua"), setup.file("body")
    open(body, "wb").write(server.body)
    headers = "".join(f"wrk.headers['{key}'] = '{value}'\n" for key, value in server.headers.items())
    open(script, "w").write(f"wrk.method = 'POST'\nwrk.body = io.open('{body}', 'rb'):read('*a')\n{headers}")
    before = server.cpu_ms()
    out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s",
                          "--timeout", "60s", "--latency", "-s", script,
                          f"http://127.0.0.1:{server.port}{server.path}"],
                         capture_output=True, text=True, check=True).stdout
    spent = server.cpu_ms() - before
    replies = int(re.search(r"(\d+) requests in", out).group(1))
    if not replies and seconds < SLOW_SECONDS and "Non-2xx" not in out:
        return closed_loop(server, SLOW_SECONDS, setup)
    if "Non-2xx" in out or not replies:
        raise RuntimeError(f"{server.name}: {out[-300:]}")
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
            "p99": microseconds(re.search(r"^\s+99%\s+(\S+)", out, re.M).group(1)), "cpu": spent / replies}


def open_loop(server, rate, seconds, setup):
    """p50, p99 and p99.9 in µs at that rate of arrivals."""
    head = f"POST {server.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    head += "".join(f"{key}: {value}\r\n" for key, value in server.headers.items())
    open(setup.file("request"), "wb").write(
        f"{head}Content-Length: {len(server.body)}\r\n\r\n".encode() + server.body)
    out = subprocess.run(["taskset", "-c", "1", setup.file("open_loop"), str(server.port),
                          setup.file("request"), f"{rate:.1f}", str(seconds), str(CONNECTIONS)],
                         capture_output=True, text=True, check=True).stdout
    replies, failures, p50, p99, p999 = map(float, out.split())
    return {"open_failures": failures, "open_p50": p50, "open_p99": p99, "open_p999": p999, "open_n": replies}


def start_all(row, names, setup):
    servers = []
    for name in names:
        needs = name if name in ENVIRONMENTS or name == "native" else "base"
        if name.split()[0] != "fxserve" and needs in setup.missing:
            continue
        try:
            server = Server(name, row, setup)
            if servers and not all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4)
                                   for a, b in zip(server.result, servers[0].result, strict=True)):
                server.stop()
                raise RuntimeError(f"other numbers than {servers[0].name}")
        except (RuntimeError, OSError, ValueError) as problem:
            print(f"{row}: {name} is left out: {problem}", flush=True)
            continue
        server.pause(signal.SIGSTOP)
        servers.append(server)
    return servers


def measure_row(row, names, arguments, setup):
    """{server: {figure: [value of each round]}}"""
    servers = start_all(row, names, setup)
    found = {server.name: {"cold": [server.cold]} for server in servers}
    try:
        for turn in range(arguments.rounds + 1):  # the first warms up
            for server in servers:
                server.pause(signal.SIGCONT)
                try:
                    figures = closed_loop(server, arguments.seconds if turn else WARM_SECONDS, setup)
                    if turn:
                        figures |= open_loop(server, LOAD * figures["rate"], arguments.seconds, setup)
                        figures["rss"] = server.memory_mb()
                except (RuntimeError, subprocess.CalledProcessError, ValueError) as problem:
                    print(f"{row}: {server.name} failed: {problem}", flush=True)
                    continue
                finally:
                    server.pause(signal.SIGSTOP)
                for key, value in figures.items() if turn else ():
                    found[server.name].setdefault(key, []).append(value)
        for server in servers:
            found[server.name]["installed"] = [setup.installed_mb(server)]
    finally:
        for server in servers:
            server.stop()
    return found


def time_of(value):
    return f"{value:,.0f} µs" if value < 1000 else f"{value / 1000:,.1f} ms"


def print_row(row, found):
    """One line per server, and how fxserve's first form compares: above 1 fxserve is better."""
    print(f"\n### {row}\n\n| server | requests/s | p99 | CPU ms | open loop p50, p99, p99.9 | "
          "RSS MB | cold start s | installed MB | throughput × | CPU × | p99 × |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")
    ours = found.get("fxserve", {})
    for name, figures in found.items():
        if "rate" not in figures:
            continue
        middle = {key: statistics.median(values) for key, values in figures.items()}
        ratios = ["", "", ""]
        if "rate" in ours:
            both = [list(zip(ours[key], figures[key])) for key in ("rate", "cpu", "p99")]
            ratios = [f"{statistics.median(a / b for a, b in both[0]):.2f}",
                      f"{statistics.median(b / max(a, 1e-9) for a, b in both[1]):.2f}",
                      f"{statistics.median(b / a for a, b in both[2]):.2f}"]
        opened = ", ".join(time_of(middle[key]) for key in ("open_p50", "open_p99", "open_p999"))
        print(f"| {name} | {middle['rate']:,.0f} | {time_of(middle['p99'])} | {middle['cpu']:.3f} | "
              f"{opened} | {middle['rss']:.0f} | {middle['cold']:.2f} | {middle['installed']:,.0f} | "
              f"{' | '.join(ratios)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--peers", default="")
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers are ended on the way out
    folder = os.path.abspath(arguments.peers or os.path.join(arguments.build, "peers"))
    setup = Setup(arguments.build, folder)
    for name, why in setup.missing.items():
        print(f"{name} is left out: {why}")
    only, everything = set(filter(None, arguments.only.split(","))), {}
    for row in arguments.rows.split(","):
        names = [name for name in ROWS[row][2] if not only or name.split()[0] in only]
        everything[row] = measure_row(row, names, arguments, setup)
        print_row(row, everything[row])
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
