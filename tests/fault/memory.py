# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out: memory.py FXSERVE LIBFAULT [--long] [SCENARIO].

Each scenario is done once to count the allocations of the whole process while it runs, and then
again with allocation n failing, and with n and all later ones failing: for all n with --long, else
for as many as fit into SHORT_SECONDS. The server must not end; what it answers, if the connection
could be answered at all, must be a success or a proper error (no 4xx that blames the client); what
it has of a graph is what the folder has; the same request and a known good run must work right
after it; and nothing may be leaked: where live heap blocks grow, the same fault is repeated to tell
a leak from a cache that filled. What oneDNN asks for by malloc and posix_memalign is spared:
version 2.6 does not check all of it; the server asks before it calls the library whether there is
room, and gives it a reserve for what C++ allocates (core/kernels/dnnl/reserve.c).
"""
import json
import os
import random
import sys
import tempfile
import time

from page import Page, quick_folder
from crash import Content
from service import ROOT, Failed, Tally, model_file, tensor_of, write_npy

SHORT_SECONDS = 40
REPEATS = 12
LARGEST = 1 << 62
GOOD = (200, 201, 204)
ERRORS = (500, 503, 507)


def graph_text(node):
    return json.dumps({"format": "fx/1", "nodes": [{"op": "placeholder", "name": "x", "target": "x"}, node, {
        "op": "output", "name": "output", "target": "output", "args": ["%y"]}]}).encode()


LINEAR = graph_text({"op": "call_module", "name": "y", "target": "l", "args": ["%x"]})[:-1] + (
    b', "modules": {"l": {"type": "torch.nn.Linear", "config": {"in_features": 4, "out_features": 3}}}, '
    b'"state": {"l.weight": [[1.5, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], "l.bias": [1.5, 2, 3]}}')
ABS = graph_text({"op": "call_function", "name": "y", "target": "torch.abs", "args": ["%x"]})
ARRAY = write_npy(tensor_of("float32", [[1.0, 2.0, 3.0, 4.0]]))
LONG = write_npy(tensor_of("float32", [[1.5] * 1000] * 90))


def convolution(number):
    """A graph with a convolution that no cache can know: `number` is among its weights."""
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_module", "name": "c", "target": "c", "args": ["%x"]},
             {"op": "call_function", "name": "r", "target": "torch.relu", "args": ["%c"]},
             {"op": "call_function", "name": "s", "target": "torch.softmax", "args": ["%r"],
              "kwargs": {"dim": 1}}, {"op": "output", "name": "output", "target": "output", "args": ["%s"]}]
    weight = {"dtype": "float32", "shape": [4, 1, 3, 3], "data": [float(number)] * 36}
    return json.dumps({"format": "fx/1", "nodes": nodes, "modules": {
        "c": {"type": "torch.nn.Conv2d", "config": {"in_channels": 1, "out_channels": 4, "kernel_size": 3,
                                                    "bias": False}}}, "state": {"c.weight": weight}}).encode()


SETTINGS = b'{"image": {"size": 8, "crop": 8, "mean": 0, "std": 0.0588, "colour": "grey"}}'
with open(os.path.join(ROOT, "tests", "service", "images", "turned.jpg"), "rb") as turned:
    TURNED = turned.read()
# name: (method, target, body, headers, statuses of success)
SCENARIOS = {
    "upload": ("PUT", "/v1/graphs/m", LINEAR, (), GOOD),
    "upload of an archive": ("PUT", "/v1/graphs/a", model_file("dev_linear.pt2"), (), GOOD),
    "upload of a form": ("PUT", "/v1/graphs/f", Content(2).body, Content(2).headers, GOOD),
    "a wrong upload": ("PUT", "/v1/graphs/w", LINEAR.replace(b"in_features", b"in_feature"), (), (422,)),
    "run": ("POST", "/v1/graphs/linear/run?profile=1", b'{"inputs": {"x": [[1.5, 2, 3, 4]]}}', (), GOOD),
    "run of a convolution": ("POST", "/v1/graphs/digits/run?encoding=b64", None, (), GOOD),
    "run with arrays": ("POST", "/v1/graphs/linear/run?as=npy", ARRAY, (), GOOD),
    "run of a long body": ("POST", "/v1/graphs/abs/run?as=npy", LONG, (), GOOD),
    "a spooled upload": ("PUT", "/v1/graphs/s", LINEAR + b" " * (3 << 19), (), GOOD),
    "run with a PNG": ("POST", "/v1/graphs/digits/run", model_file("seven.png"), (), GOOD),
    "run with a JPEG": ("POST", "/v1/graphs/digits/run", TURNED, (), GOOD),
    "settings for images": ("PATCH", "/v1/graphs/digits", SETTINGS, (), GOOD),
    "run inline": ("POST", "/v1/run", b'{"graph": ' + ABS + b', "inputs": {"x": [1, -2]}}', (), GOOD),
    "compile": ("POST", "/v1/graphs/c/run?mode=compiled", None, (), GOOD),
    "info": ("GET", "/v1/graphs/digits", None, (), GOOD),
    "text": ("GET", "/v1/graphs/digits/text?form=code", None, (), GOOD),
    "statistics": ("GET", "/v1/graphs/linear/profile", None, (), GOOD),
    "metrics": ("GET", "/metrics", None, (), GOOD),
    "delete": ("DELETE", "/v1/graphs/m", None, (), GOOD),
}


class Bench:
    def __init__(self, binary, library, folder):
        self.page, self.folder = Page(folder), folder
        flags = ["--data", os.path.join(folder, "data"), "--quiet", "--workers", "1", "--max-profiles", "4"]
        self.server = self.page.server(binary, library, flags, folder, trace="FAULT_TRACE" in os.environ,
                                       spare="libdnnl")
        self.n_convolutions = 0
        self.digits = json.dumps({"inputs": {"x": [[[[0.5] * 8] * 8]]}}).encode()

    def start(self):
        self.page.forget_heap()
        self.server.start()
        for name, body in (("linear", LINEAR), ("abs", ABS), ("digits", model_file("digits.pt2"))):
            reply = self.server.call("PUT", f"/v1/graphs/{name}", body)
            if reply.status not in (200, 201):
                raise Failed(f"graph {name}: {reply.short()}")
        reply = self.server.call("PATCH", "/v1/graphs/digits", SETTINGS)
        if reply.status != 200:
            raise Failed(f"settings: {reply.short()}")

    def request(self, row):
        method, target, body, headers, _ = row
        if body is None and method == "POST":
            body = self.digits
        return self.server.call(method, target, body, headers, seconds=20)

    def good(self, row):
        """The scenario without a fault, then a known good run."""
        if row[0] == "DELETE":
            self.server.call("PUT", "/v1/graphs/m", LINEAR)
        reply = self.request(row)
        if reply.status not in row[4]:
            raise Failed(f"without a fault it answers {reply.short()}")
        reply = self.server.call("POST", "/v1/graphs/abs/run", b'{"inputs": {"x": [-1.5, 2.0]}}')
        if reply.status != 200 or reply.json()["outputs"][0]["data"] != [1.5, 2.0]:
            raise Failed(f"the known good run after it: {reply.short()}")

    def clear(self, row):
        """What an upload makes is taken away, so that each time it is made anew."""
        if row[0] == "PUT":
            self.server.call("DELETE", row[1])
        if row[0] == "DELETE":
            self.server.call("PUT", "/v1/graphs/m", LINEAR)
        if "/c/run" in row[1]:
            self.n_convolutions += 1
            reply = self.server.call("PUT", "/v1/graphs/c", convolution(self.n_convolutions))
            if reply.status != 201:
                raise Failed(f"graph c: {reply.short()}")

    def count(self, row):
        self.clear(row)
        self.page.heap.arm(0)
        self.request(row)
        return self.page.heap.disarm()[0]

    def fault(self, row, n, always):
        self.clear(row)
        self.page.heap.arm(n, "ENOMEM", always)
        try:
            reply = self.request(row)
        except (Failed, OSError) as problem:
            if "no reply within" in str(problem):
                raise
            reply = None  # closed: there was no memory for an answer
        finally:
            self.page.heap.disarm()
        if not self.server.alive():
            raise Failed("the server ended")
        if reply is not None and reply.status not in row[4] + ERRORS:
            raise Failed(f"it answers {reply.short()}")
        if row[0] in ("PUT", "DELETE"):
            self.same_on_disk(row[1])
        self.good(row)

    def same_on_disk(self, target):
        """What was refused is not there after the next start either."""
        stored = os.path.exists(os.path.join(self.folder, "data", "graphs", target.split("/")[-1]))
        status = self.server.call("GET", target).status
        if stored != (status == 200):
            raise Failed(f"its file is {'there' if stored else 'gone'}, and the server answers {status}")

    def settled_blocks(self):
        """Live blocks once the workers are idle."""
        blocks = self.page.live_blocks()
        for _ in range(20):
            time.sleep(0.001)
            again = self.page.live_blocks()
            if again == blocks:
                break
            blocks = again
        return blocks

    def leaks(self, row, n, always):
        """Blocks that each repetition of a fault leaves behind."""
        before = self.settled_blocks()
        for _ in range(REPEATS):
            self.fault(row, n, always)
        return (self.settled_blocks() - before) / REPEATS


def torture(bench, name, row, always, numbers, deadline, tally):
    problems, done = [], 0
    for n in numbers:
        if time.monotonic() > deadline:
            break
        try:
            before = bench.settled_blocks()
            bench.fault(row, n, always)
            # there each time a new program stays in its cache
            if bench.settled_blocks() > before and name != "compile":
                left = min(bench.leaks(row, n, always) for _ in range(3))
                if left >= 0.9:
                    problems.append(f"allocation {n} ({bench.page.last()}): {left:.1f} blocks "
                                    f"are left each time")
        except (Failed, OSError, ValueError, KeyError) as problem:
            problems.append(f"allocation {n} ({bench.page.last()}): {str(problem)[:300]}")
            if not bench.server.alive():
                problems[-1] += f" (exit code {bench.server.process.returncode})"
                bench.server.kill()
                bench.start()
        done += 1
        if len(problems) >= 8:
            break
    tally.check(f"{name}, {'all from' if always else 'only'} n", "\n  ".join(problems))
    return done


def main():
    arguments = [word for word in sys.argv[1:] if word != "--long"]
    if len(arguments) not in (2, 3):
        print("usage: memory.py FXSERVE LIBFAULT [--long] [SCENARIO]")
        return 2
    long, only, tally, total = "--long" in sys.argv, arguments[2] if len(arguments) > 2 else None, Tally(), 0
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance, began = random.Random(seed), time.monotonic()
    rows = [(name, row, always) for name, row in SCENARIOS.items() if only in (None, name)
            for always in (False, True)]
    with tempfile.TemporaryDirectory(prefix="fxserve-", dir=quick_folder()) as folder:
        bench = Bench(arguments[0], arguments[1], folder)
        bench.start()
        for _, row, _ in rows * 3:  # caches fill
            bench.clear(row)
            bench.good(row)
        for i, (name, row, always) in enumerate(rows):
            calls = max(bench.count(row) for _ in range(2))
            numbers = list(range(1, calls + 1))
            if not long:
                chance.shuffle(numbers)
            deadline = LARGEST if long else began + SHORT_SECONDS * (i + 1) / len(rows)
            done = torture(bench, name, row, always, numbers, deadline, tally)
            print(f"{name}, {'all from' if always else 'only'} n: {done} of {calls} allocations")
            total += done
        tally.check("the server's end", "\n".join(bench.server.stop()))
    print(f"{total} faults in {time.monotonic() - began:.0f} s")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
