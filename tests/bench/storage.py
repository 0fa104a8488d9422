# SPDX-License-Identifier: Apache-2.0
"""Figures of the store: storage.py FXSERVE [FOLDER]. Makes its models itself; standard library
only; nothing here passes or fails.

FOLDER is where the data folders are made (default: the temporary folder). Times that depend on the
disk are printed a second time for a folder in memory (/dev/shm), where fsync costs nothing: the
difference is the disk's. "Anonymous" is RssAnon; mapped weights are the page cache's and can be
taken back at any time. Servers run with --no-warm-up: warming up packs the weights, which is memory
of its own (see program memory).
"""
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

MB = 1 << 20


# ---- a .pt2 of linear layers -------------------------------------------------------------------
def meta(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return {"dtype": 7, "sizes": [{"as_int": size} for size in sizes], "requires_grad": True,
            "device": {"type": "cpu", "index": None}, "strides": [{"as_int": stride} for stride in strides],
            "storage_offset": {"as_int": 0}, "layout": 7}


def model_document(n_layers, width):
    def tensor(name):
        return {"as_tensor": {"name": name}}
    weights = [f"w{i}" for i in range(n_layers)]
    names = ["x"] + [f"linear_{i}" for i in range(n_layers)]
    nodes = [{"target": "torch.ops.aten.linear.default",
              "inputs": [{"name": "input", "arg": tensor(names[i]), "kind": 1},
                         {"name": "weight", "arg": tensor(f"p_w{i}"), "kind": 1}],
              "outputs": [tensor(names[i + 1])], "metadata": {}, "is_hop_single_tensor_return": None,
              "name": names[i + 1]} for i in range(n_layers)]
    values = {**{f"p_{name}": meta([width, width]) for name in weights},
              **{name: meta([1, width]) for name in names}}
    graph = {"inputs": [tensor(f"p_{name}") for name in weights] + [tensor("x")],
             "outputs": [tensor(names[-1])], "nodes": nodes, "tensor_values": values, "sym_int_values": {},
             "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {},
             "sym_float_values": {}}
    signature = {"input_specs": [{"parameter": {"arg": {"name": f"p_{name}"}, "parameter_name": name}}
                                 for name in weights] + [{"user_input": {"arg": tensor("x")}}],
                 "output_specs": [{"user_output": {"arg": tensor(names[-1])}}]}
    leaf = {"type": None, "context": None, "children_spec": []}
    arguments = {"type": "builtins.tuple", "context": "null", "children_spec": [leaf]}
    in_spec = {"type": "builtins.tuple", "context": "null",
               "children_spec": [arguments, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}
    calls = [{"fqn": "", "signature": {"inputs": [], "outputs": [], "in_spec": json.dumps([1, in_spec]),
                                       "out_spec": json.dumps([1, leaf]), "forward_arg_names": ["x"]}}]
    return {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": calls,
                             "metadata": {}, "treespec_namedtuple_fields": {}}, "opset_version": {"aten": 10},
            "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"],
            "torch_version": "2.13.0", "guards_code": []}


def add_member(archive, name, content, deflated=False):
    info = zipfile.ZipInfo("m/" + name)
    info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    start = archive.fp.tell() + 30 + len(info.filename)
    gap = -(start + 4) % 64  # torch aligns the data of members to 64 bytes
    info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
    archive.writestr(info, content)


def write_model(path, n_layers, width, seed, deflated=False, note=""):
    """n_layers weights of width x width floats, equal for equal seeds; `note` makes other bytes of
    it without other weights."""
    n = width * width * 4
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(n_layers):
            chance, block = random.Random(f"{seed} {i}"), bytearray(b"<" * 65536)  # small floats
            block[0::4], block[1::4] = chance.randbytes(16384), chance.randbytes(16384)
            add_member(archive, f"data/weights/weight_{i}", (block * (n // 65536 + 1))[:n], deflated)
        config = {f"w{i}": {"path_name": f"weight_{i}", "is_param": True, "use_pickle": False,
                            "tensor_meta": meta([width, width])} for i in range(n_layers)}
        add_member(archive, "data/weights/model_weights_config.json", json.dumps({"config": config}))
        add_member(archive, "data/constants/model_constants_config.json", json.dumps({"config": {}}))
        add_member(archive, "models/model.json", json.dumps(model_document(n_layers, width)))
        for name, text in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little"),
                           ("note", note)):
            add_member(archive, name, text)


# ---- a server ----------------------------------------------------------------------------------
class Server:
    def __init__(self, binary, data, *flags):
        self.started = time.perf_counter()
        self.process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--data", data,
                                         "--quiet", "--no-warm-up", *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.start_s = time.perf_counter() - self.started

    def put(self, name, path):
        """(seconds of the whole request, seconds after its last byte)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300, blocksize=MB)
        size, started = os.path.getsize(path), time.perf_counter()
        with open(path, "rb") as file:
            connection.request("PUT", f"/v1/graphs/{name}", body=file, headers={"Content-Length": str(size)})
        sent = time.perf_counter()
        reply = connection.getresponse()
        body = reply.read()
        if reply.status not in (200, 201):
            raise RuntimeError(f"PUT {name}: {reply.status} {body[:300]!r}")
        connection.close()
        return time.perf_counter() - started, time.perf_counter() - sent

    def run(self, name, width):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        started = time.perf_counter()
        connection.request("POST", f"/v1/graphs/{name}/run", json.dumps({"inputs": {"x": [[0.0] * width]}}))
        reply = connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"run {name}: {reply.status} {body[:300]!r}")
        connection.close()
        return time.perf_counter() - started

    def memory(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(rf"{field}:\s+(\d+) kB", file.read())[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class Peak:
    """The highest RssAnon while a request runs, sampled."""

    def __init__(self, server):
        import threading
        self.server, self.before, self.highest, self.over = server, server.memory("RssAnon"), 0.0, False
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self):
        while not self.over:
            self.highest = max(self.highest, self.server.memory("RssAnon"))
            time.sleep(0.002)

    def end(self):
        self.over = True
        self.thread.join()
        return self.highest - self.before, self.server.memory("RssAnon") - self.before


def disk_mb(folder):
    return sum(os.stat(os.path.join(root, name)).st_blocks * 512 for root, _, names in os.walk(folder)
               for name in names) / MB


def line(what, figure, aim=""):
    print(f"{what:66s} {figure:>16s}   {aim}", flush=True)


# ---- the figures -------------------------------------------------------------------------------
def hundred_mb(binary, place, models, where):
    data = os.path.join(place, "hundred")
    server = Server(binary, data)
    peak = Peak(server)
    whole, after = server.put("big", models["big"])
    highest, rest = peak.end()
    line(f"100 MB .pt2, {where}: PUT until 201", f"{whole:.2f} s", "ready <= 0.5 s + fsync")
    line(f"100 MB .pt2, {where}: from the last byte until 201", f"{after:.2f} s")
    line("  anonymous memory after it (peak while it came)", f"{rest:+.1f} ({highest:+.1f}) MB",
         "<= 5 MB until its first run")
    before = disk_mb(data)
    server.put("other", models["big again"])
    line("  a second graph with the same weights: more disk", f"{disk_mb(data) - before:+.2f} MB", "one copy")
    server.run("big", 1024)
    mapped = server.memory("RssFile") + server.memory("RssShmem")
    server.run("other", 1024)
    line("  its first run: more mapped memory",
         f"{server.memory('RssFile') + server.memory('RssShmem') - mapped:+.1f} MB", "one copy")
    server.stop()
    server = Server(binary, data)
    anonymous = server.memory("RssAnon")
    line("  restart until listening", f"{server.start_s * 1000:.0f} ms")
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    started = time.perf_counter()
    connection.request("GET", "/v1/graphs/big")
    connection.getresponse().read()
    line("  first use after a restart (verified, decoded)",
         f"{(time.perf_counter() - started) * 1000:.0f} ms")
    line("  anonymous memory after that", f"{server.memory('RssAnon') - anonymous:+.1f} MB",
         "<= 5 MB until its first run")
    server.stop()
    shutil.rmtree(data)


def hundred_graphs(binary, place, models):
    data = os.path.join(place, "many")
    server = Server(binary, data)
    started = time.perf_counter()
    for i in range(100):
        write_model(models["ten"], 10, 512, i)
        server.put(f"g{i}", models["ten"])
    line("100 graphs x 10 MB: all uploads, with making the files", f"{time.perf_counter() - started:.1f} s")
    server.stop()
    server = Server(binary, data)
    line("  restart until listening", f"{server.start_s * 1000:.0f} ms", "<= 300 ms")
    server.stop()
    shutil.rmtree(data)


def upload_600(binary, place, models):
    data = os.path.join(place, "huge")
    server = Server(binary, data)
    server.put("small", models["ten"])  # the thread that writes, the allocator's first pages
    peak = Peak(server)
    whole, after = server.put("huge", models["huge"])
    highest, rest = peak.end()
    line("600 MB upload: PUT until 201", f"{whole:.2f} s")
    line("  from the last byte until 201", f"{after:.2f} s")
    line("  anonymous memory, peak", f"{highest:+.1f} MB", "<= 8 MB")
    line("  anonymous memory, after it", f"{rest:+.1f} MB")
    peak = Peak(server)
    server.put("deflated", models["deflated"])
    highest, rest = peak.end()
    line("100 MB of deflated weights: anonymous memory, peak", f"{highest:+.1f} MB", "<= 8 MB")
    server.stop()
    shutil.rmtree(data)


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: storage.py FXSERVE [FOLDER]")
        return 2
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="fxserve-bench-",
                                     dir=sys.argv[2] if len(sys.argv) > 2 else None) as place:
        models = {name: os.path.join(place, name.replace(" ", "-") + ".pt2")
                  for name in ("big", "big again", "ten", "huge", "deflated")}
        write_model(models["big"], 25, 1024, 1)
        write_model(models["big again"], 25, 1024, 1, note="the same weights in another file")
        hundred_mb(binary, place, models, "on disk")
        if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 400 * MB:
            with tempfile.TemporaryDirectory(prefix="fxserve-bench-", dir="/dev/shm") as memory:
                hundred_mb(binary, memory, models, "in memory")
        hundred_graphs(binary, place, models)
        write_model(models["ten"], 10, 512, 0)
        write_model(models["huge"], 150, 1024, 2)
        write_model(models["deflated"], 25, 1024, 3, deflated=True)
        upload_600(binary, place, models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
