# SPDX-License-Identifier: Apache-2.0
"""Runs that are run as one: batching.py FXSERVE [ROUNDS].

Clients ask one worker for runs of the same graphs at the same time, with numbers of their own, and
beside neighbours that send NaN, 1e30, indices out of range, or leave before they are answered, or
that have no time left. Every reply must have the bits of a server that runs one by one
(--max-batch 1), a wrong request its own error, and everybody else none of it. Then: what profiles,
metrics and graphs say about it.
"""
import base64
import json
import random
import re
import struct
import sys
import threading

from service import Failed, Server, Tally

CLIENTS = 12


def node(op, name, target, *args, **kwargs):
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs}


def floats(generator, *shape):
    count = 1
    for size in shape:
        count *= size
    return {"dtype": "float32", "shape": list(shape), "data": [generator.gauss(0, 0.3) for _ in range(count)]}


def fx(nodes, **state):
    return json.dumps({"format": "fx/1", "nodes": nodes, "state": state}).encode()


def mlp():
    """Weights that are large for one row: where a batch pays."""
    generator = random.Random(3)
    nodes = [node("placeholder", "x", "x"), node("get_attr", "w", "w"), node("get_attr", "v", "v"),
             node("call_function", "a", "torch.nn.functional.linear", "%x", "%w"),
             node("call_function", "r", "torch.relu", "%a"),
             node("call_function", "b", "torch.nn.functional.linear", "%r", "%v"),
             node("call_function", "s", "torch.softmax", "%b", 1),
             node("output", "output", "output", ["%s", "%b"])]
    return fx(nodes, w=floats(generator, 384, 256), v=floats(generator, 96, 384))


def lookup():
    generator = random.Random(4)
    nodes = [node("placeholder", "i", "i"), node("get_attr", "table", "table"), node("get_attr", "w", "w"),
             node("call_function", "e", "torch.nn.functional.embedding", "%i", "%table"),
             node("call_function", "l", "torch.nn.functional.linear", "%e", "%w"),
             node("call_function", "m", "torch.mean", "%l", 1), node("output", "output", "output", ["%m"])]
    return fx(nodes, table=floats(generator, 500, 128), w=floats(generator, 256, 128))


def mixing():
    nodes = [node("placeholder", "x", "x"), node("call_function", "m", "torch.mean", "%x", 0, True),
             node("call_function", "d", "torch.sub", "%x", "%m"), node("output", "output", "output", ["%d"])]
    return fx(nodes)


# narrow: int8; rows: no two clients send as many
GRAPHS = {"mlp": mlp, "narrow": mlp, "lookup": lookup, "mixing": mixing, "rows": mlp}


def entry(dtype, letter, shape, values):
    return {"dtype": dtype, "shape": shape,
            "b64": base64.b64encode(struct.pack(f"<{len(values)}{letter}", *values)).decode()}


def numbers(generator, kind):
    """256 numbers of one run; `kind` says what is odd about them."""
    if kind == "nan":
        return [float("nan")] * 256
    if kind == "huge":
        return [1e30] * 256
    return [generator.gauss(0, 2) for _ in range(256)]


def body(name, seed):
    """(request, what is expected to be odd about it)"""
    generator = random.Random(seed)
    kind = generator.choice(["plain", "plain", "plain", "nan", "huge"])
    if name == "lookup":
        indices = [generator.randrange(500) for _ in range(7)]
        if kind in ("nan", "huge"):
            indices[3] = 500 + generator.randrange(9)
        tensor = entry("int64", "q", [1, 7], indices)
    elif name == "mixing":
        tensor = entry("float32", "f", [2, 128], numbers(generator, "plain"))
    else:
        rows = generator.choice([1, 1, 1, 2])
        tensor = entry("float32", "f", [rows, 256],
                       [x for _ in range(rows) for x in numbers(generator, kind)])
    return json.dumps({"inputs": [tensor], "encoding": "b64"}).encode()


def answer(reply):
    """What must be equal: status, and the outputs' bits, or the error's words."""
    content = reply.json()
    if reply.status != 200:
        return reply.status, content.get("error"), content.get("code")
    return reply.status, content["program"], [(x["shape"], x["dtype"], x["b64"]) for x in content["outputs"]]


class Clients:
    def __init__(self, server, rounds):
        self.server, self.rounds = server, rounds
        self.lock, self.got, self.problems = threading.Lock(), {}, []

    def _client(self, number):
        generator = random.Random(number)
        with self.server.connect(60) as connection:
            for turn in range(self.rounds):
                name = generator.choice(["mlp", "mlp", "narrow", "narrow", "lookup", "lookup", "mixing"])
                seed = generator.randrange(200)
                connection.request("POST", f"/v1/graphs/{name}/run?mode=compiled", body(name, seed))
                reply = connection.reply()
                with self.lock:
                    self.got.setdefault((name, seed), set()).add(json.dumps(answer(reply)))

    def _leaver(self, number):
        """Asks and goes, or has a deadline that is over at once."""
        generator = random.Random(-number)
        for turn in range(self.rounds // 4):
            with self.server.connect(60) as connection:
                query = "?mode=compiled" + generator.choice(["", "&deadline_ms=1"])
                connection.request("POST", f"/v1/graphs/mlp/run{query}",
                                   body("mlp", generator.randrange(200)))
                if query.endswith("=1"):
                    status = connection.reply().status
                    if status not in (200, 503, 504):
                        raise Failed(f"a run with a deadline of 1 ms was answered with {status}")

    def _guard(self, what, number):
        try:
            what(number)
        except (Failed, OSError, ValueError, KeyError) as problem:
            with self.lock:
                self.problems.append(f"{type(problem).__name__}: {problem}")

    def run(self):
        work = [(self._client, number) for number in range(CLIENTS)] + [(self._leaver, n) for n in (1, 2)]
        threads = [threading.Thread(target=self._guard, args=arguments) for arguments in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.problems:
            raise Failed("; ".join(self.problems[:3]))


def upload(server):
    for name, make in GRAPHS.items():
        if server.call("PUT", f"/v1/graphs/{name}", make()).status != 201:
            raise Failed(f"{name} was not taken")
    if server.call("PATCH", "/v1/graphs/narrow", b'{"precision": "int8"}').status != 200:
        raise Failed("int8 was not taken")


def counted(server, name):
    for line in server.call("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return int(float(line.split()[1]))
    raise Failed(f"/metrics lacks {name}")


def batches_of(server):
    """(how many ran together, the run's time, its rows' times) of the last runs that were not alone."""
    shares = []
    for row in server.call("GET", "/v1/profiles?limit=256").json()["profiles"]:
        profile = server.call("GET", f"/v1/profiles/{row['id']}").json()
        if "batch" in profile:
            times = sum(part["us"] for part in profile["nodes"])
            shares.append((profile["batch"], profile["run_us"], times))
    return shares


def check_facts(tally, server):
    info = {name: server.call("GET", f"/v1/graphs/{name}").json() for name in GRAPHS}
    for name in ("mlp", "narrow"):
        tally.check(f"{name} says which sizes are used",
                    "" if info[name].get("batching", {}).get("sizes") else str(info[name].get("batching")))
    why = info["mixing"].get("batching", {}).get("why", "")
    tally.check("a graph that mixes samples is not batched, and says why", "" if "mix" in why else repr(why))
    shape = info["mlp"]["outputs"][0]["shape"]
    tally.check("shapes are those of single runs", "" if shape[0] in (1, 2) else str(shape))
    shares = batches_of(server)
    for _ in range(100):  # the last 256 runs may all have been alone
        if shares:
            break
        at_once(server, "mlp", 12)
        shares = batches_of(server)
    tally.check("profiles say how many runs were one", "" if shares else "none does")
    wrong = [share for share in shares if share[2] > share[1] * 1.01 or share[0] < 2]
    tally.check("a profile's rows take no longer than the run's share", str(wrong[:2]) if wrong else "")


def check_answers(tally, together, alone):
    differing = []
    for (name, seed), answers in sorted(together.got.items()):
        reply = alone.call("POST", f"/v1/graphs/{name}/run?mode=compiled", body(name, seed))
        expected = json.dumps(answer(reply))
        if answers != {expected}:
            differing.append(f"{name} {seed}: {sorted(answers)[0][:150]} instead of {expected[:150]}")
    tally.check(f"{len(together.got)} requests were answered as without batches, bit for bit",
                f"{len(differing)} were not: {differing[0]}" if differing else "")
    statuses = {json.loads(text)[0] for answers in together.got.values() for text in answers}
    tally.check("wrong requests were refused, all others answered",
                "" if statuses == {200, 400} else str(statuses))


def at_once(server, name, n):
    """The replies to n runs that are sent together."""
    connections = [server.connect(60) for _ in range(n)]
    for connection in connections:
        connection.request("POST", f"/v1/graphs/{name}/run?mode=compiled", body(name, 1))
    replies = [connection.reply() for connection in connections]
    for connection in connections:
        connection.close()
    return replies


def queued_ms(reply):
    return float(dict(re.findall(r"(\w+);dur=([0-9.]+)", reply.header("Server-Timing")))["queue"])


def patch(server, name, **batching):
    reply = server.call("PATCH", f"/v1/graphs/{name}", json.dumps({"batching": batching}).encode())
    if reply.status != 200:
        raise Failed(reply.short())


def rows_body(rows, seed):
    generator = random.Random(seed)
    values = [x for _ in range(rows) for x in numbers(generator, generator.choice(["plain", "plain", "nan"]))]
    return json.dumps({"inputs": [entry("float32", "f", [rows, 256], values)], "encoding": "b64"}).encode()


def check_rows(tally, server, alone):
    """Runs of 1, 2, 3, 5 and 6 rows, one of each at a time: those that are joined differ in their size.
    They wait for each other: on a fast machine the first would have ended before the next arrives."""
    sizes = (1, 2, 3, 5, 6)
    patch(server, "rows", max_delay_us=2000)
    before, joined, wrong = counted(server, "fxserve_batched_runs_total"), 0, []
    connections = [server.connect(60) for _ in sizes]
    for turn in range(400):
        for rows, connection in zip(sizes, connections):
            connection.request("POST", "/v1/graphs/rows/run?mode=compiled", rows_body(rows, turn))
        for rows, connection in zip(sizes, connections):
            got = answer(connection.reply())
            want = answer(alone.call("POST", "/v1/graphs/rows/run?mode=compiled", rows_body(rows, turn)))
            if got != want:
                wrong.append(f"{rows} rows, turn {turn}: {str(got)[:150]} instead of {str(want)[:150]}")
        joined = counted(server, "fxserve_batched_runs_total") - before
        if joined >= 60:
            break
    for connection in connections:
        connection.close()
    tally.check("runs of different numbers of rows are run as one", "" if joined >= 60 else f"{joined} were")
    tally.check("and have the bits of runs one by one", f"{len(wrong)} have not: {wrong[0]}" if wrong else "")


def check_settings(tally, server):
    """What PATCH says is done, with nobody else about. Times are asked for at their lower end, or tried
    again."""
    patch(server, "mlp", max_delay_us=300000, preferred=[4])
    lone = at_once(server, "mlp", 1)[0]
    tally.check("a lone run waits for others as long as its graph was told to",
                "" if queued_ms(lone) >= 290 else f"{queued_ms(lone)} ms")
    for _ in range(400):  # more than a size that did not pay is left alone
        n = counted(server, "fxserve_batches_total")
        together = at_once(server, "mlp", 4)
        if counted(server, "fxserve_batches_total") > n and max(map(queued_ms, together)) < 290:
            break
    else:
        raise Failed("four runs never went together before their wait was over: "
                     + str(server.call("GET", "/v1/graphs/mlp").json()["batching"]))
    tally.check("runs that wait go when there are as many as are preferred", "")
    patch(server, "mixing", max_delay_us=1000000)
    tally.check("a graph that is not batched does not wait",
                "" if min(queued_ms(at_once(server, "mixing", 1)[0]) for _ in range(5)) < 900 else "it waits")
    patch(server, "mlp", max_size=1)
    n = counted(server, "fxserve_batches_total")
    for _ in range(5):
        at_once(server, "mlp", 8)
    tally.check("max_size 1 runs one by one",
                "" if counted(server, "fxserve_batches_total") == n else "it had batches")


def main():
    binary, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    tally = Tally()
    flags = ["--data", "none", "--workers", "1", "--quiet", "--no-inline"]
    server, alone = Server(binary, flags).start(), Server(binary, flags + ["--max-batch", "1"]).start()
    try:
        upload(server)
        upload(alone)
        clients = Clients(server, rounds)
        clients.run()
        n_batches = counted(server, "fxserve_batches_total")
        n_runs = counted(server, "fxserve_batched_runs_total")
        for name in ("mlp", "narrow", "mixing"):
            label = f'{{model="{name}",version="1"}}'
            n, executed = (counted(server, f"nv_inference_{what}count{label}") for what in ("", "exec_"))
            tally.check(f"executions of {name} are counted",
                        "" if (executed == n > 0 if name == "mixing" else 0 < executed < n)
                        else f"{executed} of {n} runs")
        tally.check("runs were run as one", "" if n_runs >= 2 * n_batches > 0 else f"{n_runs} in {n_batches}")
        check_answers(tally, clients, alone)
        check_facts(tally, server)
        check_rows(tally, server, alone)
        check_settings(tally, server)
        tally.check("--max-batch 1 runs one by one",
                    "" if counted(alone, "fxserve_batches_total") == 0 else "it had batches")
        print(f"{n_runs} runs in {n_batches} batches")
        for process in (server, alone):
            tally.check("the server ended well", process.stop())
    finally:
        server.clean_up()
        alone.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
