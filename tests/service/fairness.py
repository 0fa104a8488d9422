# SPDX-License-Identifier: Apache-2.0
"""Graphs take turns: fairness.py FXSERVE [RUNS].

Many clients keep one worker busy with runs of a slow graph. One client of another graph must get
about every second turn, not one of many. A run that would not end by its deadline, as predicted
from what waits and what runs took, is refused at once, and is told when to come again.
"""
import json
import sys
import threading

from service import Failed, Server, Tally

SLOW_CLIENTS = 12


def node(op, name, target, *args):
    return {"op": op, "name": name, "target": target, "args": list(args)}


def chain(length):
    """A product of 400 x 400, again and again."""
    nodes = [node("placeholder", "x", "x"), node("call_method", "e0", "expand", "%x", 400, 400)]
    nodes += [node("call_function", f"e{i + 1}", "torch.matmul", f"%e{i}", "%e0") for i in range(length)]
    nodes += [node("call_function", "s", "torch.sum", f"%e{length}"), node("output", "o", "output", ["%s"])]
    return json.dumps({"format": "fx/1", "nodes": nodes}).encode()


BODY = b'{"inputs": {"x": [[0.001]]}}'


class Slow(threading.Thread):
    def __init__(self, server, stop):
        super().__init__(daemon=True)
        self.server, self.stop, self.count, self.problem = server, stop, 0, None

    def run(self):
        try:
            with self.server.connect(60) as connection:
                while not self.stop.is_set():
                    connection.request("POST", "/v1/graphs/slow/run?mode=compiled", BODY)
                    if connection.reply().status != 200:
                        raise Failed("a slow run failed")
                    self.count += 1
        except (Failed, OSError) as problem:
            self.problem = str(problem)


def post(connection, graph, query=""):
    connection.request("POST", f"/v1/graphs/{graph}/run?mode=compiled{query}", BODY)
    return connection.reply()


def check_late(tally, server):
    reply = server.call("POST", "/v1/graphs/slow/run?mode=compiled&deadline_ms=1", BODY)
    details = reply.json().get("details", {})
    tally.check("what cannot end by its deadline is refused at once",
                "" if (reply.status, reply.code()) == (503, "busy") and "deadline" in reply.json()["error"]
                else reply.short())
    tally.check("it says when to come again",
                "" if details.get("retry_after_s", 0) >= 1
                and reply.header("Retry-After") == str(details["retry_after_s"]) else reply.short())


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    tally, stop = Tally(), threading.Event()
    server = Server(sys.argv[1], ["--data", "none", "--workers", "1", "--no-inline", "--quiet",
                                  "--max-batch", "1"]).start()
    try:
        for name, length in (("slow", 20), ("quick", 1)):
            if server.call("PUT", f"/v1/graphs/{name}", chain(length)).status != 201:
                raise Failed(f"{name} was not taken")
        with server.connect(60) as connection:
            post(connection, "slow")
            post(connection, "quick")
            clients = [Slow(server, stop) for _ in range(SLOW_CLIENTS)]
            for client in clients:
                client.start()
            while sum(client.count for client in clients) < SLOW_CLIENTS:
                post(connection, "quick")
            before = sum(client.count for client in clients)
            for _ in range(runs):
                if post(connection, "quick").status != 200:
                    raise Failed("a quick run failed")
            meanwhile = sum(client.count for client in clients) - before
        check_late(tally, server)
        stop.set()
        for client in clients:
            client.join()
        problems = [client.problem for client in clients if client.problem]
        tally.check("slow runs are served", problems[0] if problems else "")
        tally.check("a graph gets its turn beside a saturated one",
                    "" if meanwhile <= 3 * runs else f"{meanwhile} slow runs during {runs} quick ones")
        print(f"{meanwhile} slow runs during {runs} quick ones")
        tally.check("the server ended well", "\n".join(server.stop()))
    finally:
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
