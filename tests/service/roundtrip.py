# SPDX-License-Identifier: Apache-2.0
"""Graphs out of the server and back in: roundtrip.py FXSERVE [FILE.pt2|FILE.fx.json ...].

`GET .../text?form=json` and `GET .../weights`, uploaded again, must be the same graph: the same
inputs, example, checks of inputs, printed text, weights, and the same bits of every output, eagerly
and compiled. So must be variants, stored, when their base has gone and after a restart. Without
files: all of tests/models, an export with nested inputs, the exports of tests/print, and graphs
written for their tied and strided state.
"""
import glob
import json
import os
import sys
import tempfile

from models import sets_of, upload
from service import HERE, MODELS, Failed, Server, Tally, multipart

TESTS = os.path.dirname(HERE)
FORMS = ("graph", "code", "readable", "tabular", "json")
X = {"op": "placeholder", "name": "x", "target": "x", "meta": {"dtype": "float32", "shape": [2, 3]}}


def reading(names):
    """A graph that adds the state of these paths, each brought to shape [2, 3], to x."""
    nodes, last = [X], "x"
    for index, (path, view) in enumerate(names):
        nodes += [{"op": "get_attr", "name": f"w{index}", "target": path},
                  {"op": "call_function", "name": f"v{index}", "target": view[0],
                   "args": [f"%w{index}", *view[1:]]},
                  {"op": "call_function", "name": f"s{index}", "target": "torch.add",
                   "args": [f"%{last}", f"%v{index}"]}]
        last = f"s{index}"
    return nodes + [{"op": "output", "name": "output", "target": "output", "args": [f"%{last}"]}]


def placed(shape, data, **more):
    return {"dtype": "float32", "shape": shape, "data": data, **more}


SIX, TURNED = [1.5, 2, 3, 4, 5, 6.25], [1.5, 4, 2, 5, 3, 6.25]
SAME, TURN = ("torch.mul", 1.0), ("torch.transpose", 0, 1)
WRITTEN = {
    "tied": ([("a.w", SAME), ("b.w", SAME)], {"a.w": placed([2, 3], SIX), "b.w": {"same_as": "a.w"}}),
    "turned": ([("w", SAME), ("t", TURN)],
               {"w": placed([2, 3], SIX, storage="s", stride=[3, 1]),
                "t": placed([3, 2], TURNED, storage="s", stride=[1, 3])}),
    "alone": ([("t", TURN)], {"t": placed([3, 2], TURNED, storage="s", stride=[1, 3])}),
    "parts": ([("upper", SAME), ("lower", SAME)],
              {"upper": placed([3], SIX[:3], storage="s"),
               "lower": placed([3], SIX[3:], storage="s", offset=3, parameter=False, persistent=False)}),
    "wide": ([("row", SAME)], {"row": placed([2, 3], [1, 2, 3, 1, 2, 3], storage="s", stride=[0, 1],
                                             offset=4)}),
}


def node(op, name, target, *args, **more):
    return {"op": op, "name": name, "target": target, "args": list(args), **more}


# An export with everything that a signature can say, with a guard that most sizes break.
EXPORT = {
    "format": "fx/1",
    "nodes": [
        node("placeholder", "b_seen", "b_seen", meta={"dtype": "float32", "shape": [3]}),
        node("placeholder", "x", "x", meta={"dtype": "float32", "shape": ["s0", 3]}),
        node("placeholder", "k", "k"),
        node("placeholder", "n", "n", meta={"dtype": "int64", "shape": []}),
        node("placeholder", "y", "y", meta={"dtype": "float32", "shape": ["s0"]}),
        node("call_function", "sum_1", "torch.ops.aten.sum.dim_IntList", "%x", [0], origin="total",
             meta={"nn_module_stack": {"L__self___inner": ["inner", "torch.nn.Linear"]},
                   "stack_trace": "File \"m.py\", line 3, in forward\n  total = x.sum(0)"}),
        node("call_function", "add", "torch.ops.aten.add.Tensor", "%b_seen", "%sum_1"),
        node("call_function", "mul", "torch.ops.aten.mul.Tensor", "%y", "%n",
             meta={"dtype": "float32", "shape": ["2*s0"]}),
        node("output", "output", "output", {"$tuple": ["%add", "%mul", "%sum_1", None]})],
    "state": {"seen": placed([3], [1, 2, 3], parameter=False, written=True)},
    "hints": {"s0": 4, "2*s0": 8, "s1": 5},
    "pytree": True, "class_name": "Counter",
    "signature": {
        "inputs": [{"kind": "state", "target": "seen", "as": "BUFFER"}, {"kind": "user", "type": "Tensor"},
                   {"kind": "literal", "value": 3},
                   {"kind": "user", "type": "int", "size": "s1"}, {"kind": "user", "type": "Tensor"}],
        "outputs": [{"kind": "state", "target": "seen"}, {"kind": "user"}, {"kind": "user"},
                    {"kind": "user"}],
        "in_tree": {"tuple": [{"tuple": ["*", "*"]}, {"dict": {"n": "*", "y": "*"}}]},
        "out_tree": {"namedtuple": {"product": "*", "rest": {"list": ["*", {"dict": {"none": "*"}}]}}},
        "argument_names": ["x", "k", "n", "y"], "ranges": {"s0": [3, 9], "s1": [None, 7]},
        "guards": ["L['x'].size()[0] % 2 == 0"], "ir": "ATEN"}}


class Pair:
    """A graph and what was made of it, under two names."""

    def __init__(self, server, tally, name):
        self.server, self.tally, self.name, self.again = server, tally, name, name + ".again"

    def get(self, name, what):
        reply = self.server.call("GET", f"/v1/graphs/{name}{what}", seconds=120)
        if reply.status != 200:
            raise Failed(f"GET {what}: {reply.short()}")
        return reply.body

    def same(self, what, one, other):
        problem = None if one == other else f"{str(one)[:600]}\nbecame\n{str(other)[:600]}"
        self.tally.check(f"{self.name}: {what}", problem)

    def upload_again(self):
        graph, weights = self.get(self.name, "/text?form=json"), self.get(self.name, "/weights")
        body, content_type = multipart([("graph", graph), ("weights", weights)])
        reply = self.server.call("PUT", f"/v1/graphs/{self.again}", body, [("Content-Type", content_type)],
                                 seconds=120)
        if reply.status != 201:
            raise Failed(f"what it gives is not taken back: {reply.short()}")
        info = json.loads(self.get(self.name, "")), reply.json()
        for member in ("inputs", "outputs", "nodes", "ops", "weights_bytes"):
            self.same(member, info[0][member], info[1][member])
        for form in FORMS:
            self.same(form, self.get(self.name, f"/text?form={form}"),
                      self.get(self.again, f"/text?form={form}"))
        self.same("weights", weights, self.get(self.again, "/weights"))
        return info[0]

    def run(self, name, mode, body):
        reply = self.server.call("POST", f"/v1/graphs/{name}/run?seed=7&encoding=b64&mode={mode}", body,
                                 seconds=600)
        answer = reply.json()
        answer.pop("program", None)
        return reply.status, json.dumps(answer).replace(self.again, self.name)

    def compare_runs(self, what, body, wanted=None):
        for mode in ("eager", "compiled"):
            one, other = (self.run(name, mode, body) for name in (self.name, self.again))
            self.same(f"{what}, {mode}", one, other)
            if wanted is not None and one[0] != wanted:
                self.tally.bad(f"{self.name}: {what}, {mode}", f"answered {one}")


def wrong_inputs(info):
    """Bodies that most graphs refuse, each for another reason; both graphs must say the same."""
    names = [entry["name"] for entry in info["inputs"]]
    shapes = [[size if isinstance(size, int) else 2 for size in entry.get("shape") or []]
              for entry in info["inputs"]]
    yield "nothing", {"inputs": {}}
    yield "too many", {"inputs": [[1.0]] * (len(names) + 1)}
    for size in (0, 1, 3, 4097):
        inputs = {name: {"dtype": entry.get("dtype") or "float32", "shape": [size] * min(len(shape), 1),
                         "data": [0] * (size if shape else 1)}
                  for name, entry, shape in zip(names, info["inputs"], shapes)}
        yield f"sizes of {size}", {"inputs": inputs}
    for change in (1, 2):
        if sum(len(shape) > 0 for shape in shapes) and max(map(volume, shapes)) <= 100000:
            yield (f"each first size {change} larger", {"inputs": {
                name: zeros(entry, [shape[0] + change, *shape[1:]] if shape else shape)
                for name, entry, shape in zip(names, info["inputs"], shapes)}})
            yield (f"each last size {change} larger", {"inputs": {
                name: zeros(entry, [*shape[:-1], shape[-1] + change] if shape else shape)
                for name, entry, shape in zip(names, info["inputs"], shapes)}})


def volume(shape):
    out = 1
    for size in shape:
        out *= size
    return out


def zeros(entry, shape):
    if "value" in entry or entry.get("type") == "int":
        return entry.get("value", 4)
    return {"dtype": entry.get("dtype") or "float32", "shape": shape, "data": [0] * volume(shape)}


def check(server, tally, name, sets=()):
    pair = Pair(server, tally, name)
    try:
        info = pair.upload_again()
        for number, inputs in enumerate(sets):
            body = json.dumps({"inputs": [tensor.as_b64() for tensor in inputs]}).encode()
            pair.compare_runs(f"set {number}", body, 200)
        # some examples are known from runs only, some graphs have none that runs
        example, again = (server.call("GET", f"/v1/graphs/{which}/example", seconds=120)
                          for which in (name, pair.again))
        pair.same("example", example.body, again.body)
        if example.status == 200:
            pair.compare_runs("example", example.body, 200)
        for what, body in wrong_inputs(info):
            pair.compare_runs(what, json.dumps(body).encode())
    except (Failed, OSError, ValueError, KeyError) as problem:
        tally.bad(name, problem)
    for gone in (name, pair.again):
        server.call("DELETE", f"/v1/graphs/{gone}")


def check_models(server, tally):
    paths = sorted(os.path.basename(path) for pattern in ("*.pt2", "*.fx.json")
                   for path in glob.glob(os.path.join(MODELS, pattern)))
    for path in paths:
        name = path.split(".")[0]
        try:
            upload(server, name, path)
        except (Failed, OSError) as problem:
            tally.bad(name, problem)
            continue
        check(server, tally, name, [inputs for inputs, _ in sets_of(name)][:2])


def check_file(server, tally, path):
    name = os.path.basename(path).split(".")[0]
    with open(path, "rb") as file:
        reply = server.call("PUT", f"/v1/graphs/{name}", file.read(), seconds=300)
    if reply.status == 201:
        check(server, tally, name)
    else:
        tally.check(name, None if reply.code() == "unsupported_operators" else reply.short())


def with_child():
    """A child graph with state that lies in the storage of its parent's."""
    nodes = reading([("w", SAME)])
    nodes.insert(-1, {"op": "call_module", "name": "inner", "target": "inner", "args": ["%s0"]})
    nodes[-1]["args"] = ["%inner"]
    child = {"format": "fx/1", "nodes": reading([("t", TURN), ("own.w", SAME)]), "state": {
        "t": placed([3, 2], TURNED, storage="s", stride=[1, 3]), "own.w": placed([2, 3], SIX)}}
    return {"format": "fx/1", "nodes": nodes, "state": {"w": placed([2, 3], SIX, storage="s")},
            "modules": {"inner": {"type": "torch.fx.GraphModule", "graph": child, "training": True}}}


def written_graphs():
    return {name: {"format": "fx/1", "nodes": reading(names), "state": state}
            for name, (names, state) in WRITTEN.items()}


def check_written(server, tally):
    for name, graph in {**written_graphs(), "child": with_child(), "export": EXPORT}.items():
        reply = server.call("PUT", f"/v1/graphs/{name}", json.dumps(graph).encode())
        tally.check(f"{name} uploads", None if reply.status == 201 else reply.short())
        if reply.status == 201:
            check(server, tally, name)
    # the storage itself instead of its tensors
    state = {"t": {"dtype": "float32", "shape": [3, 2], "storage": "s", "stride": [1, 3]}}
    graph = json.dumps({"format": "fx/1", "nodes": reading([("t", TURN)]), "state": state}).encode()
    head = b'{"s":{"dtype":"U8","shape":[24],"data_offsets":[0,24]}}'
    weights = len(head).to_bytes(8, "little") + head + bytes(range(24))
    body, content_type = multipart([("graph", graph), ("weights", weights)])
    reply = server.call("PUT", "/v1/graphs/storage", body, [("Content-Type", content_type)])
    tally.check("a storage uploads", None if reply.status == 201 else reply.short())
    if reply.status == 201:
        check(server, tally, "storage")


# ---- variants ----
NOTHING = [{"match": {"target": "torch.special.i1e"}, "optional": True, "retarget": "torch.neg"}]
TURN_ROUND = [{"match": {"target": "torch.add"}, "retarget": "torch.sub"},
              {"match": {"target": "torch.mul"}, "optional": True, "constant": [[1.0, 2, 3], [4, 5, 6]]}]


def put_variant(server, tally, base, rules):
    """Stores a variant, whose base goes then; what it answered before, by mode and body."""
    body = json.dumps({"format": "fx-variant/1", "base": base, "overrides": rules}).encode()
    reply = server.call("PUT", f"/v1/graphs/{base}.made", body, seconds=120)
    tally.check(f"variant of {base}", None if reply.status == 201 else reply.short())
    if reply.status != 201:
        return {}
    example = server.call("GET", f"/v1/graphs/{base}/example", seconds=120)
    body = example.body if example.status == 200 else b'{"inputs": [[[1.5, -2.0, 3.0]]]}'
    answers = {}
    for mode in ("eager", "compiled"):
        made = Pair(server, tally, f"{base}.made").run(f"{base}.made", mode, body)
        answers[(mode, body)] = made
        if rules is NOTHING:
            bare = Pair(server, tally, base).run(base, mode, body)
            tally.check(f"variant of {base}, {mode}", None if made == bare else f"{made} is not {bare}")
    server.call("DELETE", f"/v1/graphs/{base}")
    return answers


def check_again(server, tally, base, answers, when):
    for (mode, body), answer in answers.items():
        found = Pair(server, tally, f"{base}.made").run(f"{base}.made", mode, body)
        tally.check(f"variant of {base} {when}, {mode}", None if found == answer and answer[0] in (200, 400)
                    else f"{str(answer)[:400]}\nbecame\n{str(found)[:400]}")


def check_variants(binary, tally):
    """Variants answer with the same bits when their base has gone, and after a restart."""
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        flags = ["--data", os.path.join(folder, "data"), "--quiet", "--no-warm-up"]
        server, known = Server(binary, flags).start(), {}
        for path in sorted(os.path.basename(path) for path in glob.glob(os.path.join(MODELS, "*.pt2"))):
            name = path.split(".")[0]
            upload(server, name, path)
            known[name] = put_variant(server, tally, name, NOTHING)
        for name, graph in {**written_graphs(), "child": with_child()}.items():
            server.call("PUT", f"/v1/graphs/{name}", json.dumps(graph).encode())
            known[name] = put_variant(server, tally, name, TURN_ROUND)
        server.call("PUT", "/v1/graphs/export", json.dumps(EXPORT).encode())
        known["export"] = put_variant(server, tally, "export", NOTHING)
        for name, answers in known.items():
            check_again(server, tally, name, answers, "without its base")
        tally.check("the server's end", "\n".join(server.stop()))
        server.start()
        for name, answers in known.items():
            check_again(server, tally, name, answers, "after a restart")
        tally.check("the server's end", "\n".join(server.stop()))
        server.clean_up()


def main():
    if len(sys.argv) < 2:
        print("usage: roundtrip.py FXSERVE [FILE ...]")
        return 2
    tally, server = Tally(), Server(sys.argv[1], ["--data", "none", "--quiet", "--no-warm-up"]).start()
    try:
        for path in sys.argv[2:]:
            check_file(server, tally, path)
        if len(sys.argv) == 2:
            check_models(server, tally)
            for path in [os.path.join(HERE, "nested_inputs.pt2"),
                         *sorted(glob.glob(os.path.join(TESTS, "print", "pt2", "*.pt2")))]:
                check_file(server, tally, path)
            check_written(server, tally)
            check_variants(sys.argv[1], tally)
    except (Failed, OSError, ValueError, KeyError) as problem:
        tally.bad("roundtrip", problem)
    tally.check("the server's end", "\n".join(server.stop()))
    server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
