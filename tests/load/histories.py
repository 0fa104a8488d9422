# SPDX-License-Identifier: Apache-2.0
"""Random histories of concurrent calls against a model: histories.py FXSERVE [CALLS=6000] [SEED].

Clients put, delete, run, load and unload a few graphs and open, run, read, set and delete sessions
of them, all at once. Every upload holds a number of its own, and a run gives that number and the
session's counter, so each reply says which upload and which state it saw. The clients meet after a
few calls each. Then each graph's and each session's calls must have an order that keeps to their
real times and in which every reply is what the model below gives (linearizability, by search over
all orders; states that stay possible are carried into the next part). The last line is `N passed, N
failed`, counting calls and graphs or sessions without such an order.
"""
import json
import os
import random
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "service"))
from service import Failed, serving, tensor_of, write_safetensors

NAMES, CLIENTS, CALLS_TOGETHER, MOST_SESSIONS = ("a", "b", "c"), 5, 6, 8
RUN = b'{"inputs": {"x": [0]}}'
OIP_RUN = json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [0]}]}).encode()


def graph_of(number):
    """Results: `number`, and the counter after one more."""
    def node(op, name, target, *args):
        return {"op": op, "name": name, "target": target, "args": list(args)}

    state = {"kind": "state", "as": "BUFFER"}
    return json.dumps({"format": "fx/1", "nodes": [
        node("placeholder", "b_steps", "b_steps"), node("placeholder", "b_number", "b_number"),
        node("placeholder", "x", "x"),
        node("call_function", "add_", "torch.ops.aten.add_.Tensor", "%b_steps", 1),
        node("call_function", "first", "torch.ops.aten.add.Tensor", "%x", "%b_number"),
        node("call_function", "second", "torch.ops.aten.add.Tensor", "%x", "%add_"),
        node("output", "output", "output", {"$tuple": ["%first", "%second"]})],
        "state": {"steps": {"dtype": "int64", "shape": [], "data": 0, "written": True},
                  "number": {"dtype": "int64", "shape": [], "data": number, "parameter": False}},
        "signature": {"inputs": [{**state, "target": "steps"}, {**state, "target": "number"},
                                 {"kind": "user", "type": "Tensor"}],
                      "outputs": [{"kind": "user"}, {"kind": "user"}],
                      "in_tree": {"tuple": [{"tuple": ["*"]}, {"dict": {}}]},
                      "out_tree": {"tuple": ["*", "*"]},
                      "argument_names": ["x"], "ir": "TRAINING"}}).encode()


# ---- the model: (state, call, argument) -> (reply, state) ------------------------------------------
GONE = (None, False)


def graph_model(state, call, number):
    """State: the number of the newest version, or None; whether /v2 may run it."""
    have, loaded = state
    if call == "put":
        return "ok", (number, True)
    if have is None:
        return "no", state
    if call == "delete":
        return "ok", GONE
    if call in ("load", "unload"):
        return "ok", (have, call == "load")
    return (have if loaded or call != "infer" else "no"), state  # run, open, infer


def session_model(state, call, argument):
    """State: the counter; None once it is deleted."""
    if state is None:
        return "no", None
    return {"run": (state + 1, state + 1), "get": (state, state), "set": ("ok", argument),
            "delete": ("ok", None)}[call]


class Object:
    """A graph or a session: what it may be now, and the calls since the clients last met."""

    def __init__(self, model, state):
        self.model, self.states, self.calls = model, {state}, []
        self.lock = threading.Lock()

    def add(self, begin, end, call, argument, reply):
        with self.lock:
            self.calls.append((begin, end, call, argument, reply))

    def settle(self):
        """Whether the calls have an order; the states that they may leave."""
        calls, ends = sorted(self.calls), set()
        whole, seen = (1 << len(calls)) - 1, set()
        waiting = [(0, state) for state in self.states]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            done, state = at
            if done == whole:
                ends.add(state)
                continue
            left = [i for i in range(len(calls)) if not done >> i & 1]
            first_end = min(calls[i][1] for i in left)
            for i in left:
                begin, _, call, argument, reply = calls[i]
                if begin > first_end:
                    break  # they are sorted by their begin
                gives, after = self.model(state, call, argument)
                if gives == reply:
                    waiting.append((done | 1 << i, after))
        problem = "" if ends else f"from {self.states}: {calls}"
        self.states, self.calls = ends or self.states, []
        return problem


class Session(Object):
    def __init__(self, identifier, number):
        super().__init__(session_model, 0)
        self.path, self.number = f"/v1/sessions/{identifier}", number


# ---- clients ---------------------------------------------------------------------------------------
class World:
    def __init__(self):
        self.graphs = {name: Object(graph_model, GONE) for name in NAMES}
        self.sessions, self.ended, self.lock, self.n_puts, self.problems = [], [], threading.Lock(), 0, []

    def number(self):
        with self.lock:
            self.n_puts += 1
            return self.n_puts

    def session(self, chance):
        with self.lock:
            return chance.choice(self.sessions) if self.sessions else None


class Client:
    def __init__(self, server, world, seed):
        self.server, self.world, self.random = server, world, random.Random(seed)
        self.connection, self.n = server.connect(60), 0

    def ask(self, method, path, body=None):
        """(begin, end, reply): the times stand on both sides of the call."""
        begin = time.monotonic_ns()
        self.connection.request(method, path, body)
        reply = self.connection.reply()
        self.n += 1
        # only a session's state is refused while a run is in it, and nothing has changed then
        if reply.status >= 500 and (method, reply.code(), path[:13]) != ("PUT", "busy", "/v1/sessions/"):
            raise Failed(f"{method} {path}: {reply.short()}")
        return begin, time.monotonic_ns(), reply

    def on_graph(self, call, name):
        number, world = None, self.world
        if call == "put":
            number = world.number()
            begin, end, reply = self.ask("PUT", f"/v1/graphs/{name}", graph_of(number))
        elif call == "delete":
            begin, end, reply = self.ask("DELETE", f"/v1/graphs/{name}")
        elif call == "run":
            begin, end, reply = self.ask("POST", f"/v1/graphs/{name}/run", RUN)
        elif call == "infer":
            begin, end, reply = self.ask("POST", f"/v2/models/{name}/infer", OIP_RUN)
        else:
            begin, end, reply = self.ask("POST", f"/v2/repository/models/{name}/{call}", b"{}")
        said = "ok" if reply.status < 300 else "no"
        if said == "ok" and call in ("run", "infer"):
            data = [row["data"][0] for row in reply.json()["outputs"]]
            said = data[0]
            if data[1] != 1:
                raise Failed(f"a run without a session has the counter {data[1]}")
        world.graphs[name].add(begin, end, call, number, said)

    def open(self, name):
        begin, end, reply = self.ask("POST", f"/v1/graphs/{name}/sessions")
        if reply.status >= 300:
            self.world.graphs[name].add(begin, end, "open", None, "no")
            return
        session = Session(reply.json()["id"], None)
        self.run_in(session)  # says which version it has
        self.world.graphs[name].add(begin, end, "open", None, session.number)
        with self.world.lock:
            self.world.sessions.append(session)

    def run_in(self, session):
        begin, end, reply = self.ask("POST", session.path + "/run", RUN)
        said = "no"
        if reply.status == 200:
            number, said = (row["data"][0] for row in reply.json()["outputs"])
            session.number = session.number or number
            if number != session.number:
                raise Failed(f"a session of {session.number} ran {number}")
        session.add(begin, end, "run", None, said)

    def on_session(self, call, session):
        argument, said = None, "no"
        if call == "get":
            begin, end, reply = self.ask("GET", session.path)
            if reply.status == 200:
                said = counter_of(reply.body)
        elif call == "set":
            argument = self.random.randrange(1000, 1 << 40)
            body = write_safetensors({"steps": tensor_of("int64", argument)})
            begin, end, reply = self.ask("PUT", session.path, body)
            if reply.status == 503:
                return
            said = "ok" if reply.status == 200 else "no"
        else:
            begin, end, reply = self.ask("DELETE", session.path)
            said = "ok" if reply.status == 204 else "no"
            with self.world.lock:
                if session in self.world.sessions:
                    self.world.sessions.remove(session)
                    self.world.ended.append(session)
        session.add(begin, end, call, argument, said)

    def step(self):
        call = self.random.choices(("run", "infer", "put", "delete", "load", "unload", "open", "session"),
                                   (20, 14, 10, 4, 5, 4, 5, 38))[0]
        name, session = self.random.choice(NAMES), self.world.session(self.random)
        if call == "open" and len(self.world.sessions) >= MOST_SESSIONS:
            call = "session"
        if call == "session" and session is not None:
            what = self.random.choices(("run", "get", "set", "delete"), (60, 20, 12, 8))[0]
            if what == "run":
                self.run_in(session)
            else:
                self.on_session(what, session)
        elif call in ("open", "session"):
            self.open(name)
        else:
            self.on_graph(call, name)

    def part(self):
        try:
            for _ in range(CALLS_TOGETHER):
                self.step()
        except (Failed, OSError, KeyError, ValueError) as problem:
            self.world.problems.append(repr(problem))


def counter_of(body):
    """Of a session's safetensors; 0 before its first run has left one."""
    n = int.from_bytes(body[:8], "little")
    row = json.loads(body[8:8 + n]).get("steps")
    return 0 if row is None else int.from_bytes(body[8 + n + row["data_offsets"][0]:][:8], "little")


def settle(world, tally):
    for name, graph in world.graphs.items():
        tally.check(f"graph {name}", graph.settle())
    for session in world.sessions + world.ended:
        tally.check(session.path, session.settle())
    world.ended = []
    for problem in world.problems:
        tally.bad("a call", problem)


def main():
    binary, n = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}")
    calls = 0
    with serving(binary) as (server, tally):
        world = World()
        clients = [Client(server, world, f"{seed} {i}") for i in range(CLIENTS)]
        began = time.monotonic()
        while calls < n and tally.failed == 0:
            threads = [threading.Thread(target=client.part) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            settle(world, tally)
            calls = sum(client.n for client in clients)
        for client in clients:
            client.connection.close()
        print(f"{calls} calls in {time.monotonic() - began:.0f} s, {world.n_puts} uploads")
        tally.passed += calls
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
