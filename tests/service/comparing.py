# SPDX-License-Identifier: Apache-2.0
"""POST /v1/compare names the node that was changed: comparing.py FXSERVE [COUNT].

Random graphs of modules, functions and Python operators are uploaded twice, the second time with
one weight, one eps or one operator changed so that the output changes. Compared eagerly, the first
node that differs must be the changed one. Where nodes lose their names in the copy, the same holds
for a change that keeps the structure.
"""
import copy
import json
import random
import sys

from service import Server, Tally

WIDTH = 6
POINTWISE = ["torch.sigmoid", "torch.tanh", "torch.sin", "torch.cos", "torch.neg", "torch.exp"]
PAIRWISE = ["operator.add", "operator.mul", "operator.sub"]


def numbers(random_, *shape):
    if not shape:
        return round(random_.uniform(-1, 1), 3)
    return [numbers(random_, *shape[1:]) for _ in range(shape[0])]


def tensor(data):
    shape = [len(data)] + ([len(data[0])] if isinstance(data[0], list) else [])
    return {"dtype": "float32", "shape": shape, "data": data}


def add_module(random_, graph, name, source):
    if random_.random() < 0.5:
        graph["modules"][name] = {"type": "torch.nn.Linear",
                                  "config": {"in_features": WIDTH, "out_features": WIDTH}}
        graph["state"][name + ".weight"] = tensor(numbers(random_, WIDTH, WIDTH))
    else:
        graph["modules"][name] = {"type": "torch.nn.LayerNorm",
                                  "config": {"normalized_shape": [WIDTH], "eps": 1e-5}}
        graph["state"][name + ".weight"] = tensor(numbers(random_, WIDTH))
    graph["state"][name + ".bias"] = tensor(numbers(random_, WIDTH))
    return {"op": "call_module", "name": name, "target": name, "args": [source]}


def random_graph(random_, n):
    nodes = [{"op": "placeholder", "name": "x", "target": "x",
              "meta": {"dtype": "float32", "shape": [3, WIDTH]}}]
    graph = {"format": "fx/1", "nodes": nodes, "modules": {}, "state": {}}
    for i in range(n):
        name, last = f"n{i}", "%" + nodes[-1]["name"]
        other = "%" + random_.choice(nodes)["name"]
        kind = random_.random()
        if kind < 0.4:
            nodes.append(add_module(random_, graph, name, last))
        elif kind < 0.7:
            nodes.append({"op": "call_function", "name": name, "target": random_.choice(POINTWISE),
                          "args": [last]})
        else:
            nodes.append({"op": "call_function", "name": name, "target": random_.choice(PAIRWISE),
                          "args": [last, other]})
    nodes.append({"op": "output", "name": "output", "target": "output", "args": ["%" + nodes[-1]["name"]]})
    return graph


def change_weight(random_, graph):
    path = random_.choice([path for path in graph["state"] if path.endswith(".weight")])
    row = graph["state"][path]["data"]
    row = random_.choice(row) if isinstance(row[0], list) else row
    row[random_.randrange(len(row))] += 1.5
    return path[:-len(".weight")]


def change_eps(random_, graph):
    name = random_.choice([name for name, module in graph["modules"].items()
                           if module["type"] == "torch.nn.LayerNorm"])
    graph["modules"][name]["config"]["eps"] = 2.0
    return name


def change_operator(random_, graph):
    node = random_.choice([node for node in graph["nodes"] if node["op"] == "call_function"])
    targets = POINTWISE if node["target"] in POINTWISE else PAIRWISE
    node["target"] = random_.choice([target for target in targets if target != node["target"]])
    return node["name"]


def rename(graph):
    text = json.dumps(graph)
    for node in graph["nodes"][1:-1]:
        text = text.replace(f'"%{node["name"]}"', f'"%other_{node["name"]}"')
        text = text.replace(f'"name": "{node["name"]}"', f'"name": "other_{node["name"]}"')
    return json.loads(text)


def attempt(server, random_, change, renamed):
    """The reply of a comparison whose output differs, and the changed node; None: it does not."""
    graph = random_graph(random_, random_.randint(4, 24))
    other = copy.deepcopy(graph)
    try:
        changed = change(random_, other)
    except IndexError:
        return None
    for name, document in (("a", graph), ("b", rename(other) if renamed else other)):
        server.call("DELETE", f"/v1/graphs/{name}")
        reply = server.call("PUT", f"/v1/graphs/{name}", json.dumps(document).encode())
        if reply.status != 201:
            raise ValueError(reply.short())
    body = {"a": {"graph": "a"}, "b": {"graph": "b"}, "inputs": {"x": numbers(random_, 3, WIDTH)},
            "equal_nan": True}
    reply = server.call("POST", "/v1/compare", json.dumps(body).encode())
    if reply.status != 200:
        raise ValueError(reply.short())
    return None if reply.json()["equal"] else (reply.json(), changed)


def count(server, tally, name, change, wanted, renamed=False):
    random_, found, problems = random.Random(name), 0, []
    for _ in range(wanted * 20):
        if found == wanted:
            break
        result = attempt(server, random_, change, renamed)
        if result is None:
            continue
        reply, changed = result
        found += 1
        if reply["first"]["node"] != changed:
            problems.append(f"{reply['first']['node']} and not {changed}")
    if found < wanted:
        problems.append(f"only {found} changes showed")
    tally.check(f"{name}: {found - len(problems)} of {wanted}", "; ".join(problems[:5]))


def main():
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 34
    tally = Tally()
    server = Server(sys.argv[1], ["--data", "none", "--quiet", "--max-compare-bytes", "500"]).start()
    try:
        count(server, tally, "one weight", change_weight, wanted)
        count(server, tally, "an eps", change_eps, wanted)
        count(server, tally, "one operator", change_operator, wanted)
        count(server, tally, "one weight, nodes renamed", change_weight, wanted, renamed=True)
    finally:
        server.stop()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
