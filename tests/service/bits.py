# SPDX-License-Identifier: Apache-2.0
"""Same program id, same bits, under load: bits.py FXSERVE [RUNS].

RUNS times (1,000) each of two graphs runs compiled, from several clients at once, while neighbours
keep the machine and the packed constants busy: other graphs, other sizes of the same graphs, eager
runs, versions that come and go. First with one worker, then with two on the same folder, so that
what was tuned in the first is used in the second. Every answer of one program to one input must be
the first one's, byte by byte, over both.
"""
import array
import base64
import json
import random
import sys
import tempfile
import threading

from models import sets_of
from service import Failed, Server, Tally, Tensor, model_file

CLIENTS, WORKERS = 2, ("1", "2")  # clients of each graph


def node(op, name, target, *args, **kwargs):
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs}


def floats(generator, *shape):
    """Numbers of many magnitudes: another order of sums shows."""
    count = 1
    for size in shape:
        count *= size
    return {"dtype": "float32", "shape": list(shape),
            "data": [generator.uniform(-1, 1) * 2 ** generator.randint(-6, 0) for _ in range(count)]}


def products():
    """Convolutions and products with what is usually fused behind them."""
    generator = random.Random(7)
    nodes = [node("placeholder", "x", "x"), node("get_attr", "w1", "w1"), node("get_attr", "w2", "w2"),
             node("get_attr", "w3", "w3"), node("get_attr", "b", "b"),
             node("call_function", "c1", "torch.nn.functional.conv2d", "%x", "%w1", None, [1, 1], [1, 1]),
             node("call_function", "r1", "torch.relu", "%c1"),
             node("call_function", "c2", "torch.nn.functional.conv2d", "%r1", "%w2", "%b", [1, 1], [1, 1]),
             node("call_function", "a", "torch.add", "%c2", "%r1"),
             node("call_function", "t", "torch.tanh", "%a"),
             node("call_function", "f", "torch.flatten", "%t", 2),
             node("call_function", "m", "torch.matmul", "%f", "%w3"),
             node("call_function", "s", "torch.softmax", "%m", 2), node("call_method", "u", "sum", "%s", 1),
             node("output", "output", "output", ["%u", "%m"])]
    state = {"w1": floats(generator, 32, 3, 3, 3), "w2": floats(generator, 32, 32, 3, 3),
             "w3": floats(generator, 144, 24), "b": floats(generator, 32)}
    return json.dumps({"format": "fx/1", "nodes": nodes, "state": state}).encode()


def body_of(tensors):
    return json.dumps({"inputs": [tensor.as_b64() for tensor in tensors], "encoding": "b64"}).encode()


def images(seed, n):
    generator = random.Random(seed)
    entry = floats(generator, n, 3, 12, 12)
    return body_of([Tensor("float32", entry["shape"], array.array("f", entry["data"]).tobytes())])


class Bits:
    """The first answer of each program to each body."""

    def __init__(self):
        self.lock, self.seen, self.runs, self.problems = threading.Lock(), {}, {}, []

    def add(self, name, body, reply):
        program, outputs = reply["program"], tuple(entry["b64"] for entry in reply["outputs"])
        if program is None:
            raise Failed(f"{name} ran without a program")
        with self.lock:
            first = self.seen.setdefault((program, body), outputs)
            self.runs[program] = self.runs.get(program, 0) + 1
            if first != outputs:
                different = [i for pair in zip(first, outputs)
                             for i, (a, b) in enumerate(zip(*map(base64.b64decode, pair))) if a != b]
                raise Failed(f"{name}: program {program[:12]} gave other bits than before, first at byte "
                             f"{different[0] if different else 0} of an output")


class Load:
    def __init__(self, server, bits):
        self.server, self.bits, self.quiet, self.left, self.lock = (server, bits, threading.Event(), {},
                                                                    threading.Lock())

    def _guard(self, what):
        try:
            what()
        except (Failed, OSError, ValueError, KeyError) as problem:
            with self.lock:
                self.bits.problems.append(str(problem))
            self.quiet.set()

    def _take(self, name):
        with self.lock:
            self.left[name] -= 1
            return self.left[name] >= 0

    def _measured(self, name, bodies):
        with self.server.connect(60) as connection:
            turn = 0
            while self._take(name) and not self.quiet.is_set():
                body = bodies[turn % len(bodies)]
                turn += 1
                connection.request("POST", f"/v1/graphs/{name}/run?mode=compiled", body)
                reply = connection.reply()
                if reply.status != 200:
                    raise Failed(f"{name}: {reply.short()}")
                self.bits.add(name, body, reply.json())

    def _neighbour(self, requests):
        with self.server.connect(60) as connection:
            turn = 0
            while not self.quiet.is_set():
                method, target, body, statuses = requests[turn % len(requests)]
                turn += 1
                connection.request(method, target, body)
                reply = connection.reply()
                if reply.status not in statuses:
                    raise Failed(f"neighbour {method} {target}: {reply.short()}")
                self.quiet.wait(0.002)

    def run(self, n, measured, neighbours):
        self.left = {name: n for name in measured}
        clients = [threading.Thread(target=self._guard,
                                    args=(lambda name=name, bodies=bodies: self._measured(name, bodies),))
                   for name, bodies in measured.items() for _ in range(CLIENTS)]
        others = [threading.Thread(target=self._guard,
                                   args=(lambda requests=requests: self._neighbour(requests),))
                  for requests in neighbours]
        for thread in others + clients:
            thread.start()
        for thread in clients:
            thread.join()
        self.quiet.set()
        for thread in others:
            thread.join()


def program_under(binary, instructions):
    """The id of one program when oneDNN may use no wider instruction set than this; "" is all there
    is."""
    capped = {name: instructions for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA") if instructions}
    server = Server(binary, ["--quiet", "--no-warm-up"], extra_environment=capped).start()
    try:
        reply = server.call("PUT", "/v1/graphs/products", products())
        if reply.status != 201:
            raise Failed(f"products: {reply.short()}")
        reply = server.call("POST", "/v1/graphs/products/run?mode=compiled", images(1, 2))
        if reply.status != 200:
            raise Failed(f"products: {reply.short()}")
        return reply.json()["program"]
    finally:
        server.stop()
        server.clean_up()


def instruction_sets(binary):
    """Another instruction set may give other bits: its programs have other ids."""
    here, again, narrow = program_under(binary, ""), program_under(binary, ""), program_under(binary, "SSE41")
    if here != again:
        return "the same program has another id after a start"
    return "a program keeps its id with another instruction set" if here == narrow else None


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: bits.py FXSERVE [RUNS]")
        return 2
    runs, tally, bits = int(sys.argv[2]) if len(sys.argv) == 3 else 1000, Tally(), Bits()
    digits, graph = model_file("digits.pt2"), products()
    measured = {"digits": [body_of(inputs) for inputs, _ in sets_of("digits")[:2]],
                "products": [images(1, 2), images(2, 2)]}
    resnet = body_of(sets_of("dev_resnet_hf")[0][0])
    other = images(3, 1)
    neighbours = [
        [("POST", "/v1/graphs/resnet/run", resnet, {200}),
         ("POST", "/v1/graphs/products/run?mode=eager", measured["products"][0], {200})],
        [("POST", "/v1/graphs/products/run?mode=compiled", images(4, n), {200}) for n in (1, 3, 5)],
        [("PUT", "/v1/graphs/comes", graph, {200, 201}),
         ("POST", "/v1/graphs/comes/run?mode=compiled", other, {200}),
         ("DELETE", "/v1/graphs/comes", None, {204})],
    ]
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        for workers in WORKERS:
            server = Server(sys.argv[1], ["--data", folder, "--quiet", "--workers", workers]).start()
            try:
                for name, content in (("digits", digits), ("products", graph),
                                      ("resnet", model_file("dev_resnet_hf.pt2"))):
                    reply = server.call("PUT", f"/v1/graphs/{name}", content)
                    if reply.status not in (200, 201):
                        raise Failed(f"{name}: {reply.short()}")
                Load(server, bits).run(runs, measured, neighbours)
            except (Failed, OSError) as problem:
                bits.problems.append(str(problem))
            tally.check(f"--workers {workers}: {runs} runs of each, same bits", "\n  ".join(bits.problems))
            bits.problems.clear()
            tally.check(f"--workers {workers}: the server's end", "\n".join(server.stop()))
            server.clean_up()
    total = sum(bits.runs.values())
    tally.check("every run was a program's", None if total == len(WORKERS) * len(measured) * runs
                else f"{total} runs of {len(bits.runs)} programs")
    tally.check("another instruction set, another program", instruction_sets(sys.argv[1]))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
