# SPDX-License-Identifier: Apache-2.0
"""Deleted models give their memory back: deleting.py FXSERVE.

Three models of many weights are uploaded, run as programs, which pack the weights, and deleted,
while other clients go on running something small without a pause. What the allocator still holds of
them some seconds later must be little.
"""
import json
import struct
import sys
import tempfile
import threading
import time

from parts import Failed, Server, Tally, memory
from service import multipart

SIZE, LAYERS, MODELS = 512, 64, 3  # 64 MiB of weights each
HELD_BYTES = 3 * LAYERS * SIZE * SIZE * 4 // 2  # what programs pack: at least so much must be there before
LEFT_BYTES = 32 << 20
SECONDS = 30


def chain(model, layers=LAYERS):
    """FX JSON and weights of a chain of linear layers, no two alike."""
    nodes, state, weights, last = [{"op": "placeholder", "name": "x", "target": "x"}], {}, [], "x"
    modules = {}
    for layer in range(layers):
        name = f"l{layer}"
        nodes.append({"op": "call_module", "name": name, "target": name, "args": [f"%{last}"]})
        modules[name] = {"type": "torch.nn.Linear",
                         "config": {"in_features": SIZE, "out_features": SIZE, "bias": False}}
        n = SIZE * SIZE * 4
        state[f"{name}.weight"] = {"dtype": "F32", "shape": [SIZE, SIZE],
                                   "data_offsets": [layer * n, (layer + 1) * n]}
        weights.append(struct.pack("<f", 1e-4 + 1e-6 * (model * LAYERS + layer)) * (SIZE * SIZE))
        last = name
    nodes.append({"op": "output", "name": "output", "target": "output", "args": [f"%{last}"]})
    head = json.dumps(state).encode()
    head += b" " * (-len(head) % 8)
    graph = json.dumps({"format": "fx/1", "nodes": nodes, "modules": modules}).encode()
    body, content_type = multipart([("graph", graph),
                                    ("weights", struct.pack("<Q", len(head)) + head + b"".join(weights))])
    return body, [("Content-Type", content_type)]


def expect(reply, *statuses):
    if reply.status not in statuses:
        raise Failed(reply.short())


class Busy(threading.Thread):
    """Runs something too large to be answered on the loop, over and over."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stopping, self.n = server, threading.Event(), 0

    def run(self):
        body = json.dumps({"inputs": {"x": [1.0] * 4000}}).encode()
        while not self.stopping.is_set():
            expect(self.server.call("POST", "/v1/graphs/busy/run", body), 200)
            self.n += 1


def delete_under_load(server):
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "y", "target": "torch.neg", "args": ["%x"]},
             {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]
    expect(server.call("PUT", "/v1/graphs/busy", json.dumps({"format": "fx/1", "nodes": nodes}).encode()),
           201)
    clients = [Busy(server) for _ in range(4)]
    for client in clients:
        client.start()
    before = memory(server)
    for model in range(MODELS):
        expect(server.call("PUT", f"/v1/graphs/m{model}", *chain(model)), 201)
        run = json.dumps({"inputs": {"x": [[1.0] * SIZE] * 64}, "mode": "compiled"}).encode()
        expect(server.call("POST", f"/v1/graphs/m{model}/run", run), 200)
    held = memory(server) - before
    for model in range(MODELS):
        expect(server.call("DELETE", f"/v1/graphs/m{model}"), 204)
    end = time.monotonic() + SECONDS
    while memory(server) - before > LEFT_BYTES and time.monotonic() < end:
        time.sleep(0.2)
    left, served = memory(server) - before, [client.n for client in clients]
    for client in clients:
        client.stopping.set()
        client.join()
    print(f"{held >> 20} MiB held by {MODELS} models, {left >> 20} MiB left after they were deleted")
    if held < HELD_BYTES:
        return f"only {held >> 20} MiB were held: nothing was packed"
    if min(served) == 0:
        return "the other clients were not served"
    return ("" if left <= LEFT_BYTES
            else f"{left >> 20} MiB are left after {SECONDS} s, expected {LEFT_BYTES >> 20}")


def main():
    if len(sys.argv) != 2:
        print("usage: deleting.py FXSERVE")
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        server = Server(sys.argv[1], ["--data", folder + "/data", "--quiet", "--workers", "2"],
                        folder=folder).start()
        try:
            tally.check("deleted models", delete_under_load(server))
        finally:
            tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
