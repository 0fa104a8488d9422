#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time from an upload to its first compiled answer, and resident memory after 100 runs, of
engines.py's rows.

    python tests/bench/cold.py BUILD [--runs N] [--alone] [ROW ...]

Each row gets a server of its own with an empty data folder, one worker and one thread. The file is
uploaded, then a run with mode=compiled is asked for. Columns: the file's megabytes; reading it,
which is reading and hashing its bytes in Python; the upload until its reply; the first answer after
that; the server's processor time for both; then the server's resident megabytes after the runs
(anonymous, and all with mapped files), and those of ONNX Runtime and OpenVINO, each in a process of
its own that has loaded the same model: all, less what Python with numpy takes.
Needs what engines.py needs, and the program fxserve.
"""

import argparse
import hashlib
import http.client
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy

PEER = """
import re, sys, numpy
x = numpy.load(sys.argv[2])
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024
before = resident()
if sys.argv[3] == "onnxruntime":
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    run = lambda: session.run(None, {name: x})
else:
    import openvino
    core = openvino.Core()
    model = core.compile_model(core.read_model(sys.argv[1]), "CPU", {
        "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    request = model.create_infer_request()
    run = lambda: request.infer([x])
for _ in range(int(sys.argv[4])):
    run()
print(resident() - before)
"""
PEERS = [name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name)]


class Server:
    def __init__(self, binary, folder):
        self.process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--data", folder,
                                         "--quiet", "--workers", "1", "--threads", "1", "--max-upload",
                                         str(1 << 31)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def call(self, method, path, body=None):
        """The reply's bytes and the milliseconds until they had come."""
        start = time.perf_counter()
        self.connection.request(method, path, body)
        reply = self.connection.getresponse()
        data = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {data[:500]!r}")
        return data, (time.perf_counter() - start) * 1000

    def cpu_ms(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000.0 / os.sysconf("SC_CLK_TCK")

    def resident_mb(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return [int(re.search(name + r":\s+(\d+)", status).group(1)) / 1024 for name in ("RssAnon", "VmRSS")]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def exported(engines, row, folder):
    """The row's .pt2, its ONNX file and its input, written to `folder`."""
    import torch
    make, shape, _aim = engines.ROWS[row]
    module, x = engines.seeded(make), torch.rand(shape) * 2 - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive = io.BytesIO()
        torch.export.save(torch.export.export(module, (x,)), archive)
    (folder / "model.pt2").write_bytes(archive.getvalue())
    numpy.save(folder / "x.npy", x.numpy())
    return archive.getvalue(), engines.onnx_file(module, x, folder) if PEERS else None


def measure(binary, engines, row, runs, peers):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file, onnx = exported(engines, row, folder)
        body = (folder / "x.npy").read_bytes()
        start = time.perf_counter()
        hashlib.sha256((folder / "model.pt2").read_bytes())
        reading = (time.perf_counter() - start) * 1000
        server = Server(binary, str(folder / "data"))
        before = server.cpu_ms()
        reply, upload = server.call("PUT", "/v1/graphs/model", file)
        assert "name" in json.loads(reply)
        _reply, answer = server.call("POST", "/v1/graphs/model/run?as=npy&mode=compiled", body)
        cpu = server.cpu_ms() - before
        for _ in range(runs):
            server.call("POST", "/v1/graphs/model/run?as=npy&mode=compiled", body)
        memory = server.resident_mb()
        server.stop()
        for peer in peers:
            out = subprocess.run([sys.executable, "-c", PEER, onnx, str(folder / "x.npy"), peer, str(runs)],
                                 capture_output=True, text=True, check=True).stdout
            memory.append(float(out.split()[-1]))
    return len(file) / 1e6, reading, upload, answer, cpu, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--alone", action="store_true", help="without the memory of other engines")
    options = parser.parse_intermixed_args()
    sys.argv[1:] = [os.path.join(options.build, "tests/bench/bench_models")]
    import engines
    binary, peers = os.path.join(options.build, "fxserve"), PEERS * (not options.alone)
    print(f"{'':20}{'file MB':>9}{'read ms':>9}{'upload ms':>11}{'answer ms':>11}{'CPU ms':>9}"
          f"{'anonymous MB':>14}{'all MB':>9}" + "".join(f"{peer:>13}" for peer in peers))
    for row in options.rows or engines.ROWS:
        size, reading, upload, answer, cpu, memory = measure(binary, engines, row, options.runs, peers)
        print(f"{row:20}{size:9.1f}{reading:9.0f}{upload:11.0f}{answer:11.0f}{cpu:9.0f}"
              f"{memory[0]:14.0f}{memory[1]:9.0f}" + "".join(f"{mb:13.0f}" for mb in memory[2:]), flush=True)


if __name__ == "__main__":
    main()
