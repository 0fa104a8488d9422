# SPDX-License-Identifier: Apache-2.0
"""Kills the server at random moments of uploads, replacements and deletions, restarts it on the same folder and looks at what is there.

usage: crash.py BINARY [ROUNDS]

Graph `name` computes x * factor; its factor changes with every upload. One client per name keeps what was acknowledged and what was under way when the server died: after
the restart the name must answer as one of the two, nothing else. Nothing may be left in tmp/, and every blob must belong to a manifest.
"""
import glob
import json
import os
import random
import re
import sys
import tempfile
import threading

from service import Failed, Server, Tally

NAMES = ("a", "b", "c")
SEED = 20260


def graph(factor, padding):
    """FX JSON for x * factor, with a state entry that makes the upload long enough to be cut."""
    return json.dumps({"format": "fx/1", "nodes": [
        {"op": "placeholder", "name": "x", "target": "x"}, {"op": "get_attr", "name": "pad", "target": "pad"},
        {"op": "call_function", "name": "y", "target": "torch.mul", "args": ["%x", factor]},
        {"op": "output", "name": "output", "target": "output", "args": ["%y"]}],
        "state": {"pad": {"dtype": "float32", "shape": [padding], "data": [0.5] * padding}}})


class Client(threading.Thread):
    """Uploads and deletes one name until the server is gone."""

    def __init__(self, port, name, acknowledged, rng):
        super().__init__()
        self.port, self.name, self.rng = port, name, rng
        self.acknowledged, self.under_way = acknowledged, None

    def run(self):
        import http.client
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            while True:
                delete = self.acknowledged is not None and self.rng.random() < 0.25
                self.under_way = ("gone",) if delete else (self.rng.randrange(2, 1000),)
                if delete:
                    connection.request("DELETE", f"/v1/graphs/{self.name}")
                else:
                    connection.request("PUT", f"/v1/graphs/{self.name}", graph(self.under_way[0], self.rng.choice((1, 1000, 30000))))
                reply = connection.getresponse()
                reply.read()
                if reply.status not in (200, 201, 204):
                    self.under_way = (f"status {reply.status}",)
                    return
                self.acknowledged = None if delete else self.under_way[0]
                self.under_way = None
        except OSError:
            return
        except http.client.HTTPException:
            return


def answer_of(server, name):
    """The factor a name computes with, None if there is no such graph."""
    reply = server.call("POST", f"/v1/graphs/{name}/run", json.dumps({"inputs": {"x": [1.0]}}).encode())
    if reply.status == 404:
        return None
    if reply.status != 200:
        raise Failed(f"run of {name}: {reply.short()}")
    return reply.json()["outputs"][0]["data"][0]


def check_folder(folder):
    if os.listdir(os.path.join(folder, "tmp")):
        raise Failed("tmp/ is not empty after the start")
    if os.listdir(os.path.join(folder, "quarantine")):
        raise Failed("a manifest was quarantined")
    named = set()
    for path in glob.glob(os.path.join(folder, "graphs", "*")):
        with open(path, encoding="utf-8") as file:
            named |= set(re.findall(r"^part ([0-9a-f]{64}) ", file.read(), re.M))
    orphans = set(os.listdir(os.path.join(folder, "blobs"))) ^ named
    if orphans:
        raise Failed(f"blobs and manifests disagree: {sorted(orphans)}")


def check_state(server, clients):
    listing = server.call("GET", "/v1/graphs")
    if listing.status != 200:
        raise Failed(f"listing: {listing.short()}")
    for client in clients:
        found = answer_of(server, client.name)
        allowed = [client.acknowledged]
        if client.under_way is not None:
            allowed.append(None if client.under_way[0] == "gone" else client.under_way[0])
        if found not in allowed:
            raise Failed(f"{client.name} computes with {found}, acknowledged was {client.acknowledged}, under way {client.under_way}")
        client.acknowledged = found


def one_round(binary, folder, states, rng):
    server = Server(binary, ["--data", os.path.join(folder, "data"), "--quiet"], folder=folder).start()
    clients = [Client(server.port, name, states[name], random.Random(rng.random())) for name in NAMES]
    for client in clients:
        client.start()
    threading.Event().wait(rng.uniform(0.0, 0.12))
    server.kill()
    for client in clients:
        client.join()
    server = Server(binary, ["--data", os.path.join(folder, "data"), "--quiet"], folder=folder).start()
    try:
        check_folder(os.path.join(folder, "data"))
        check_state(server, clients)
    finally:
        problems = server.stop()
    if problems:
        raise Failed("; ".join(problems))
    return {client.name: client.acknowledged for client in clients}


def main():
    tally, rng, states = Tally(), random.Random(SEED), dict.fromkeys(NAMES)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory(prefix="fxserve-crash-") as folder:
        for number in range(rounds):
            try:
                states = one_round(sys.argv[1], folder, states, rng)
                tally.ok()
            except Failed as failure:
                tally.bad(f"round {number}", failure)
                break
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
