# SPDX-License-Identifier: Apache-2.0
"""/readyz says no until what graphs declare has been built: warming.py FXSERVE.

For graphs of the data folder and of a folder of models as KServe has them, after a start, and while
clients see to it that the queue is never empty. Whenever the server says that it is ready, the
graph's warm-up has ended.
"""
import json
import os
import sys
import tempfile
import threading
import time

from service import Failed, Server, Tally, multipart
from tolerance import WIDTH, call, graph, weights

SIZES = [f"x:{n},{WIDTH}" for n in (1, 2, 3, 5, 8, 13)]
CLIENTS = 24


def expect(reply, *statuses):
    if reply.status not in statuses:
        raise Failed(reply.short())
    return reply


def states(server):
    """(ready, the warm-up's state, why not), asked in this order."""
    reply = expect(server.call("GET", "/readyz"), 200, 503)
    ready = reply.status == 200
    why = "" if ready else reply.json()["error"]
    return ready, expect(server.call("GET", "/v1/graphs/m"), 200).json()["warm_up"]["state"], why


def wait_until_warm(server, seconds=60):
    end = time.monotonic() + seconds
    while True:
        ready, state, why = states(server)
        if ready and state != "done":
            raise Failed(f"the server is ready while the warm-up is {state}")
        if ready:
            return
        if "warm-ups" not in why:
            raise Failed(why)
        if time.monotonic() > end:
            raise Failed(f"not ready after {seconds} s; the warm-up is {state}")


def put(server):
    body, content_type = multipart([("graph", graph()), ("weights", weights(1))])
    expect(server.call("PUT", "/v1/graphs/m", body, [("Content-Type", content_type)]), 201)


def declare(server):
    expect(server.call("PATCH", "/v1/graphs/m", json.dumps({"warm_up": SIZES}).encode()), 200)
    if not states(server)[0]:
        raise Failed("a server that was ready is not any more")


def is_compiled(server):
    body = json.dumps({"inputs": {"x": [[0.5] * WIDTH] * 13}}).encode()
    if expect(server.call("POST", "/v1/graphs/m/run", body), 200).json()["program"] is None:
        raise Failed("the first run has no program")


def restarted(binary, flags):
    """Declares warm-ups, starts again, and waits for them."""
    server = Server(binary, flags).start()
    try:
        if not any(row["name"] == "m" for row in server.call("GET", "/v1/graphs").json()["graphs"]):
            put(server)
        declare(server)
    finally:
        problems = server.stop()
    server = Server(binary, flags).start()
    try:
        wait_until_warm(server)
        is_compiled(server)
    finally:
        problems += server.stop()
    return "\n".join(problems)


def busy_graph():
    """Some milliseconds a run."""
    nodes = [{"op": "placeholder", "name": "x", "target": "x"}, call("m0", "torch.ones", [256, 256])]
    for i in range(6):
        nodes += [call(f"p{i}", "torch.matmul", f"%m{i}", f"%m{i}"),
                  call(f"m{i + 1}", "torch.mul", f"%p{i}", 1 / 256)]
    nodes += [call("sum", "torch.sum", "%m6"), call("y", "torch.add", "%x", "%sum"),
              {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]
    return json.dumps({"format": "fx/1", "nodes": nodes}).encode()


class Flood:
    """Clients that ask a graph each, without a pause: what each asks is no part of another's batch."""

    def __init__(self, server):
        self.server, self.end, self.counts, self.wrong = server, threading.Event(), [0] * CLIENTS, []
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(CLIENTS)]

    def ask(self, i):
        body = b'{"inputs": {"x": [1.5]}, "mode": "eager"}'
        with self.server.connect(60) as connection:
            while not self.end.is_set():
                connection.request("POST", f"/v1/graphs/busy{i}/run", body)
                reply = connection.reply()
                self.counts[i] += 1
                if reply.status != 200:
                    self.wrong.append(reply.short())
                    return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        for thread in self.threads:
            thread.join()


def beside_a_full_queue(binary, flags):
    """A graph that comes while the queue is never empty is warmed up, and requests go on."""
    server = Server(binary, flags).start()
    try:
        for i in range(CLIENTS):
            expect(server.call("PUT", f"/v1/graphs/busy{i}", busy_graph()), 201)
        with Flood(server) as flood:
            put(server)
            declare(server)
            end = time.monotonic() + 100
            while (state := states(server)[1]) == "waiting" and time.monotonic() < end:
                time.sleep(0.2)
            before, end = sum(flood.counts), time.monotonic() + 20
            while (after := sum(flood.counts)) == before and time.monotonic() < end:
                time.sleep(0.1)
        if state != "done" or flood.wrong or before == after:
            raise Failed(f"the warm-up is {state}; {before} and {after} runs; {flood.wrong[:1]}")
        is_compiled(server)
    finally:
        problems = server.stop()
    return "\n".join(problems)


def check(tally, what, how, flags):
    try:
        problem = how(sys.argv[1], [*flags, "--quiet"])
    except Failed as failure:
        problem = str(failure)
    tally.check(what, problem)


def main():
    if len(sys.argv) != 2:
        print("usage: warming.py FXSERVE")
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        models = os.path.join(folder, "models", "m", "1")
        os.makedirs(models)
        for name, content in (("model.json", graph()), ("weights.safetensors", weights(2))):
            with open(os.path.join(models, name), "wb") as file:
                file.write(content)
        for what, flags in (("a data folder", []), ("a folder of models", ["--models", folder + "/models"])):
            data = os.path.join(folder, str(len(flags)))
            check(tally, what, restarted, ["--data", data, "--workers", "1", *flags])
        for n in (1, 2):
            flags = ["--data", os.path.join(folder, f"busy{n}"), "--workers", str(n)]
            check(tally, f"a queue that is never empty, workers: {n}", beside_a_full_queue, flags)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
