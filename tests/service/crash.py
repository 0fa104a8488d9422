# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments: crash.py FXSERVE [N=100] [SEED].

In each of N rounds three clients upload, replace and delete graphs of their own, one a variant
of another graph, and one a saved pass, and one opens sessions and runs in them, as fast as they
can until the server is killed after a random time (now and then while it starts). Then a server
starts on the same folder and must show, for each graph, what was acknowledged last or what was
under way at that moment, wholly: the listing is 200, each graph's info is 200, its run gives the
one answer its bytes can give, and the pass has its steps. Nothing is left in tmp/, no blob
without a graph, nothing in quarantine/. Of the sessions nothing is left: all are 404, none is
counted, and a fresh one begins with the upload's state.
"""
import base64
import glob
import hashlib
import json
import os
import random
import struct
import sys
import tempfile
import threading
import time

from service import Failed, Server, Tally, multipart, tensor_of, write_safetensors

NAMES = ("a", "b", "c")
BASE = "base"  # of the variant; it stays
COUNTER = "counter"  # its runs write a buffer; it stays, too
SIZES = (1, 1000, 60000)
GONE = None


class Content:
    """A graph that adds `number` to its input; its size and form vary."""

    def __init__(self, number):
        self.number, size = number, SIZES[number % 3]
        nodes = [{"op": "placeholder", "name": "x", "target": "x"},
                 {"op": "get_attr", "name": "c", "target": "c"},
                 {"op": "call_function", "name": "first", "target": "operator.getitem", "args": ["%c", 0]},
                 {"op": "call_function", "name": "add", "target": "torch.add", "args": ["%x", "%first"]},
                 {"op": "output", "name": "output", "target": "output", "args": ["%add"]}]
        graph = {"format": "fx/1", "nodes": nodes}
        if number % 2:
            graph["state"] = {"c": {"dtype": "float32", "shape": [size],
                                    "b64": base64.b64encode(struct.pack("<f", number) * size).decode()}}
            self.body, self.headers = json.dumps(graph).encode(), []
        else:
            weights = write_safetensors({"c": tensor_of("float32", [float(number)] * size)})
            self.body, content_type = multipart([("graph", json.dumps(graph).encode()), ("weights", weights)])
            self.headers = [("Content-Type", content_type)]


CONTENTS = [Content(number) for number in range(1, 13)]


class Variant:
    """BASE with `number` in place of its own one."""
    headers = []

    def __init__(self, number):
        rules = [{"match": {"name": "add"}, "retarget": {"target": "torch.add", "args": ["$0", number]}}]
        self.number, self.body = number, json.dumps({"format": "fx-variant/1", "base": BASE,
                                                     "overrides": rules}).encode()


class Steps:
    """A list of `number` steps."""
    headers = []

    def __init__(self, number):
        self.number, self.body = number, json.dumps({"steps": [{"pass": "cse"}] * number}).encode()


def counter():
    """A graph whose result is how often a session ran it, plus its input."""
    state = {"kind": "state", "target": "steps", "as": "BUFFER"}
    nodes = [{"op": "placeholder", "name": "b_steps", "target": "b_steps"},
             {"op": "placeholder", "name": "x", "target": "x"},
             {"op": "call_function", "name": "add_", "target": "torch.ops.aten.add_.Tensor",
              "args": ["%b_steps", 1]},
             {"op": "call_function", "name": "add", "target": "torch.ops.aten.add.Tensor",
              "args": ["%x", "%add_"]},
             {"op": "output", "name": "output", "target": "output", "args": [{"$tuple": ["%add"]}]}]
    return json.dumps({"format": "fx/1", "nodes": nodes,
                       "state": {"steps": {"dtype": "float32", "shape": [1], "data": [0], "written": True}},
                       "signature": {"inputs": [state, {"kind": "user", "type": "Tensor"}],
                                     "outputs": [{"kind": "user"}],
                                     "in_tree": {"tuple": [{"tuple": ["*"]}, {"dict": {}}]}, "out_tree": "*",
                                     "argument_names": ["x"], "ir": "TRAINING"}}).encode()


class Caller:
    """Takes step after step with a connection of its own, in a thread for one round."""

    def go(self, server):
        thread = threading.Thread(target=self.work, args=(server,), daemon=True)
        thread.start()
        return thread

    def work(self, server):
        try:
            with server.connect(10) as connection:
                while True:
                    self.step(connection)
        except (Failed, OSError, KeyError, ValueError):
            pass  # the server was killed


class Sessions(Caller):
    """Opens sessions of COUNTER and runs in them until the server is gone."""
    place = "sessions"

    def __init__(self, seed):
        self.random, self.open, self.n, self.problems = random.Random(seed), {}, 0, []

    def step(self, connection):
        if not self.open or (len(self.open) < 20 and self.random.random() < 0.3):
            self.start(connection)
        self.run(connection, self.random.choice(list(self.open)))

    def start(self, connection):
        connection.request("POST", f"/v1/graphs/{COUNTER}/sessions")
        self.open[connection.reply().json()["id"]] = 0

    def run(self, connection, session):
        connection.request("POST", f"/v1/sessions/{session}/run", b'{"inputs": {"x": [0.0]}}')
        count = connection.reply().json()["outputs"][0]["data"][0]
        self.open[session] += 1
        self.n += 1
        if count != self.open[session]:
            self.problems.append(f"run {self.open[session]} of a session counts {count}")

    def check(self, server):
        """After a restart. A list of problems."""
        problems, self.problems, before, self.open = self.problems, [], list(self.open), {}
        for session in before:
            for method, path in (("GET", f"/v1/sessions/{session}"), ("POST", f"/v1/sessions/{session}/run")):
                reply = server.call(method, path, b'{"inputs": {"x": [0.0]}}' if method == "POST" else None)
                if reply.status != 404:
                    problems.append(f"{method} of a session of before the crash: {reply.short()}")
        metrics = server.call("GET", "/metrics").body
        problems += [f"{name} are counted" for name in ("sessions", "session_bytes")
                     if f"fxserve_{name} 0\n".encode() not in metrics]
        with server.connect(10) as connection:
            self.start(connection)
            self.run(connection, next(iter(self.open)))
        problems += self.problems
        self.problems = []
        return problems


class Client(Caller):
    """One graph's uploads and deletes. `known` is what was acknowledged (a number, or GONE), `wish`
    what is under way (or the same)."""

    def __init__(self, name, seed, contents=CONTENTS, place="graphs"):
        self.contents, self.place, self.path = contents, place, f"/v1/{place}/{name}"
        self.name_of_graph, self.random, self.known, self.wish, self.server, self.n = (name, random.Random(
            seed), GONE, GONE, None, 0)
        self.problem = None

    def step(self, connection):
        content = self.random.choice(self.contents)
        if self.known is not GONE and self.random.random() < 0.25:
            self.wish = GONE
            connection.request("DELETE", self.path)
            allowed = (204,)
        else:
            self.wish = content.number
            connection.request("PUT", self.path, content.body, content.headers)
            allowed = (200, 201)
        reply = connection.reply()
        if reply.status not in allowed:
            self.problem = f"{self.name_of_graph}: {reply.short()}"
            raise Failed(self.problem)
        self.known = self.wish
        self.n += 1


def answer_of(server, name):
    """The number a stored graph adds, or GONE."""
    info = server.call("GET", f"/v1/graphs/{name}")
    if info.status == 404:
        return GONE
    if info.status != 200 or info.json()["state"] != "ready":
        raise Failed(f"info of {name}: {info.short()}")
    reply = server.call("POST", f"/v1/graphs/{name}/run", b'{"inputs": {"x": [0.0]}}')
    if reply.status != 200:
        raise Failed(f"run of {name}: {reply.short()}")
    return int(reply.json()["outputs"][0]["data"][0])


def steps_of(server, name):
    """How many steps a saved pass has, or GONE."""
    reply = server.call("GET", f"/v1/passes/{name}")
    if reply.status not in (200, 404):
        raise Failed(f"pass {name}: {reply.short()}")
    return GONE if reply.status == 404 else len(reply.json()["steps"])


def digest_of(content, holes):
    """SHA-256 of what the holes leave, and of the table of holes."""
    digest, at = hashlib.sha256(), 0
    for line in holes:
        offset, n = (int(word) for word in line.split()[:2])
        digest.update(content[at:offset])
        at = offset + n
    digest.update(content[at:])
    digest.update("".join(holes).encode())
    return digest.hexdigest()


def check_folder(data):
    problems = []
    for place in ("tmp", "quarantine"):
        left = os.listdir(os.path.join(data, place))
        if left:
            problems.append(f"left in {place}/: {left}")
    used = {}  # digest: the holes of a document, as lines
    for path in glob.glob(os.path.join(data, "versions", "*")):
        document = None
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if words[0] == "part":
                    document = used.setdefault(words[4], [])
                    document.clear()
                elif words[0] == "hole":
                    document.append(line[5:])
                    used.setdefault(words[3], [])
    heads, versions = (set(os.listdir(os.path.join(data, "graphs"))),
                       os.listdir(os.path.join(data, "versions")))
    if {name.rpartition("@")[0] for name in versions} != heads:
        problems.append(f"heads {sorted(heads)} and versions {sorted(versions)} do not fit")
    stored = set(os.listdir(os.path.join(data, "blobs")))
    if stored != set(used):
        problems.append(f"{len(stored - set(used))} blobs without a graph, {len(set(used) - stored)} missing")
    for name in stored & set(used):
        with open(os.path.join(data, "blobs", name), "rb") as file:
            if digest_of(file.read(), used[name]) != name:
                problems.append(f"blob {name} does not match its name")
    return problems


def check(server, clients, data):
    listing = server.call("GET", "/v1/graphs")
    if listing.status != 200:
        raise Failed(f"listing: {listing.short()}")
    problems = check_folder(data)
    for sessions in [client for client in clients if client.place == "sessions"]:
        problems += sessions.check(server)
    for client in [client for client in clients if client.place != "sessions"]:
        found = (answer_of if client.place == "graphs" else steps_of)(server, client.name_of_graph)
        if found not in (client.known, client.wish):
            problems.append(f"{client.name_of_graph} answers {found}; acknowledged was {client.known}, under "
                            f"way {client.wish}")
        client.known = client.wish = found
        if client.problem:
            problems.append(client.problem)
            client.problem = None
    listed = [row["name"] for row in listing.json()["graphs"]]
    there = {place: [client.name_of_graph for client in clients
                     if client.place == place and client.known is not GONE] for place in ("graphs", "passes")}
    if listed != sorted(there["graphs"] + [BASE, COUNTER]):
        problems.append(f"listed are {listed}")
    saved = server.call("GET", "/v1/passes")
    if saved.status != 200 or [row["name"] for row in saved.json()["passes"]] != there["passes"]:
        problems.append(f"the passes are {saved.short()}")
    return problems


def start(binary, folder, flags, chance):
    """A server, after it was killed while starting now and then."""
    while chance.random() < 0.15:
        server = Server(binary, flags, folder=folder)
        starter = threading.Thread(target=lambda: ignore(server.start), daemon=True)
        starter.start()
        time.sleep(chance.random() * 0.03)
        while server.process is None and starter.is_alive():
            time.sleep(0.001)
        if server.process is not None and server.alive():
            os.kill(server.process.pid, 9)
        starter.join()
        server.kill()
    return Server(binary, flags, folder=folder).start()


def ignore(action):
    try:
        action()
    except (Failed, OSError, ValueError, AttributeError):
        pass


def main():
    if len(sys.argv) not in (2, 3, 4):
        print("usage: crash.py FXSERVE [N=100] [SEED]")
        return 2
    binary, n = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}")
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        data = os.path.join(folder, "data")
        flags = ["--data", data, "--quiet"]
        clients = [Client(name, f"{seed} {name}") for name in NAMES]
        clients.append(Client("v", f"{seed} v", [Variant(number) for number in range(1, 13)]))
        clients.append(Client("p", f"{seed} p", [Steps(number) for number in range(1, 13)], "passes"))
        clients.append(Sessions(f"{seed} s"))
        server = start(binary, folder, flags, chance)
        server.call("PUT", f"/v1/graphs/{BASE}", Content(2).body, Content(2).headers)
        server.call("PUT", f"/v1/graphs/{COUNTER}", counter())
        for number in range(n):
            threads = [client.go(server) for client in clients]
            time.sleep(chance.random() ** 2 * 0.15)
            os.kill(server.process.pid, 9)
            for thread in threads:
                thread.join()
            server.kill()
            try:
                server = start(binary, folder, flags, chance)
                problems = check(server, clients, data)
            except (Failed, OSError, ValueError, KeyError) as problem:
                problems = [str(problem)]
            tally.check(f"round {number}", "\n  ".join(problems))
            if problems and not server.alive():
                break
        print(f"{sum(client.n for client in clients if client.place != 'sessions')} changes were "
              f"acknowledged, {clients[-1].n} runs in sessions")
        tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
