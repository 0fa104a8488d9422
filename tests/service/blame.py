# SPDX-License-Identifier: Apache-2.0
"""A run that fails names its node, however it runs: blame.py FXSERVE [WORD].

Each kind of failure is brought about eagerly, in a program, and in a program behind a part that
depends on numbers; each time the reply must carry the node's name, and its text the line that
PyTorch prints. Eager and compiled runs must also agree on status, code and first line, but for
memory, which programs plan in another way.
"""
import json
import sys

from service import Server, Tally

MEMORY = 64 << 20


def call(name, target, *arguments, **kwargs):
    return {"op": "call_function", "name": name, "target": target, "args": list(arguments), "kwargs": kwargs}


def method(name, target, *arguments, **kwargs):
    return {"op": "call_method", "name": name, "target": target, "args": list(arguments), "kwargs": kwargs}


X = [1.0, 2.0, 3.0]
INTS = {"dtype": "int64", "shape": [3], "data": [1, 2, 9]}
ZEROS = {"dtype": "int64", "shape": [3], "data": [1, 0, 1]}
MODULE = {"sub": {"type": "torch.fx.GraphModule", "graph": {"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "a", "target": "a"}, call("inner", "torch.reshape", "%a", [2, 2]),
    {"op": "output", "name": "output", "target": "output", "args": ["%inner"]}]}}}

# What fails; the nodes, the failing one called "bad" (or as said last); the input x; what else the
# document holds, and the failing node.
KINDS = [
    ("shapes that do not fit", [call("w", "torch.ones", [4]), call("bad", "torch.add", "%x", "%w")], X),
    ("a product of the wrong shapes",
     [call("w", "torch.ones", [4, 2]), call("bad", "torch.matmul", "%x", "%w")], X),
    ("dtypes that do not fit",
     [call("w", "torch.ones", [3], dtype={"$dtype": "float64"}), call("bad", "torch.dot", "%x", "%w")], X),
    ("a view that is none", [call("y", "torch.relu", "%x"), method("bad", "view", "%y", 2, 2)], X),
    ("a dimension that is not there", [call("y", "torch.relu", "%x"), call("bad", "torch.sum", "%y", 3)], X),
    ("an index in a graph", [call("y", "torch.relu", "%x"), call("bad", "operator.getitem", "%y", 7)], X),
    ("an index among the values", [call("w", "torch.ones", [5]), call("bad", "torch.take", "%w", "%x")],
     INTS),
    ("a row of an embedding",
     [call("w", "torch.ones", [5, 2]), call("bad", "torch.nn.functional.embedding", "%x", "%w")], INTS),
    ("an index of gather", [call("w", "torch.ones", [5]), call("bad", "torch.gather", "%w", 0, "%x")], INTS),
    ("an index of index_select",
     [call("w", "torch.ones", [5]), call("bad", "torch.index_select", "%w", 0, "%x")], INTS),
    ("an index of indexing", [call("w", "torch.ones", [5]), call("bad", "operator.getitem", "%w", ["%x"])],
     INTS),
    ("an index of scatter", [call("w", "torch.ones", [5]), call("v", "torch.ones", [3]),
                             call("bad", "torch.scatter", "%w", 0, "%x", "%v")], INTS),
    ("an index behind a pointwise group",
     [call("w", "torch.ones", [5]), call("t", "torch.mul", "%x", 2), call("u", "torch.add", "%t", 1),
      call("bad", "torch.take", "%w", "%u")], INTS),
    ("whole numbers divided by zero", [call("w", "torch.mul", "%x", 2), call(
        "bad", "torch.floor_divide", "%w", "%x"), call("z", "torch.add", "%bad", 1)], ZEROS),
    ("a remainder by zero", [call("w", "torch.mul", "%x", 2), call("bad", "torch.remainder", "%w", "%x"),
                             call("z", "torch.mul", "%bad", 3)], ZEROS),
    ("a class below zero",
     [call("y", "torch.neg", "%x"), call("bad", "torch.nn.functional.one_hot", "%y", 4)], INTS),
    ("a fill that does not fit",
     [call("y", "torch.zeros_like", "%x", dtype={"$dtype": "uint8"}), method("bad", "fill_", "%y", 1e9)], X),
    ("a full that does not fit", [call("y", "torch.relu", "%x"), call(
        "bad", "torch.full_like", "%y", 2147483648, dtype={"$dtype": "float16"})], X),
    ("an item of several", [call("y", "torch.relu", "%x"), method("bad", "item", "%y")], X),
    ("a truth of several", [call("y", "torch.relu", "%x"), call("bad", "builtins.bool", "%y")], X),
    ("a window larger than its input", [call("y", "torch.reshape", "%x", [1, 1, 3]),
                                        call("bad", "torch.nn.functional.max_pool1d", "%y", 5)], X),
    ("a convolution of other channels", [call("y", "torch.reshape", "%x", [1, 1, 3]), call(
        "w", "torch.ones", [1, 2, 1]), call("bad", "torch.conv1d", "%y", "%w")], X),
    ("a constant that fails", [call("w", "torch.ones", [5]), call("i", "torch.full", [3], 9),
                               call("bad", "torch.take", "%w", "%i"), call("y", "torch.add", "%x", "%bad")],
     X),
    ("a child graph", [{"op": "call_module", "name": "sub", "target": "sub", "args": ["%x"]}], X,
     {"modules": MODULE}, "inner"),
    ("a size that a number gave",
     [call("s", "torch.sum", "%x"), method("n", "item", "%s"), call("k", "builtins.int", "%n"),
      call("f", "torch.ones", ["%k"]), call("bad", "torch.reshape", "%f", [4, 2])], X),
    ("a mask of another shape", [call("m", "torch.gt", "%x", 1), call("w", "torch.ones", [5]),
                                 call("bad", "operator.getitem", "%w", "%m")], X),
    ("an assertion", [call("m", "torch.gt", "%x", 5), call("a", "torch.any", "%m"),
                      call("bad", "torch._assert_async", "%a"), call("y", "torch.relu", "%x")], X),
    ("a tensor over the memory", [call("y", "torch.relu", "%x"), method("big", "expand", "%y", 4000000, 3),
                                  method("bad", "clone", "%big"), call("s", "torch.cumsum", "%bad", 0),
                                  call("t", "torch.sum", "%s")], X, {}, "s"),
    ("a result over the memory", [call("y", "torch.relu", "%x"), method("big", "expand", "%y", 8000000, 3),
                                  call("bad", "torch.add", "%big", 1)], X),
    ("a size over every limit", [call("y", "torch.relu", "%x"), method("big", "expand", "%y", 4000000000, 3),
                                 call("bad", "torch.add", "%big", 1)], X, {}, "big"),
    ("several results over the memory",
     [call("y", "torch.relu", "%x"), method("big", "expand", "%y", 1500000, 3),
      call("p", "torch.add", "%big", 1), call("q", "torch.add", "%big", 2), call("r", "torch.add", "%big", 3),
      call("t", "torch.add", "%big", 4), call("bad", "builtins.tuple", ["%p", "%q", "%r", "%t"])], X, {},
     "t"),
    ("a node that costs too much",
     [call("w", "torch.ones", [1500, 1500]), call("bad", "torch.matmul", "%w", "%w"),
      call("y", "torch.sum", "%bad"), call("z", "torch.add", "%x", "%y")], X),
    ("an output without a form", [call("y", "torch.relu", "%x"), call("bad", "builtins.slice", 1, 2)], X),
]
MEMORY_KINDS = ("a tensor over the memory", "a result over the memory", "several results over the memory")
ITEM = [call("dyn_sum", "torch.sum", "%x"), method("dyn_item", "item", "%dyn_sum"),
        call("dyn_int", "builtins.int", "%dyn_item"), call("dyn_ones", "torch.ones", ["%dyn_int"]),
        call("dyn_out", "torch.sum", "%dyn_ones")]


def document(nodes, more, behind):
    """With `behind`, a part that depends on numbers stands before the nodes, and its result leaves
    with theirs."""
    last = nodes[-1]["name"]
    out = [f"%{last}", "%dyn_out"] if behind else f"%{last}"
    rows = [{"op": "placeholder", "name": "x", "target": "x"}, *(ITEM if behind else []), *nodes,
            {"op": "output", "name": "output", "target": "output", "args": [out]}]
    return json.dumps({"format": "fx/1", "nodes": rows, **more}).encode()


class Blame:
    def __init__(self, server, tally):
        self.server, self.tally = server, tally

    def fail(self, what, name, mode, x, bad):
        reply = self.server.call("POST", f"/v1/graphs/{name}/run",
                                 json.dumps({"inputs": {"x": x}, "mode": mode}).encode())
        text = reply.json()
        problem = None
        if reply.status < 400 or reply.status >= 500:
            problem = "it does not fail as it should"
        elif "node" not in text:
            problem = "the reply names no node"
        elif text["node"] != bad and not (mode != "eager" and what in MEMORY_KINDS):
            problem = f"the node is {text['node']}, expected {bad}"
        elif f"While executing %{text['node']}" not in text["error"]:
            problem = "the text does not say what was executed"
        self.tally.check(f"{what}, {mode}, {name}", problem and f"{problem}: {reply.short()}")
        return reply.status, text.get("code"), text.get("error", "").split("\n")[0]

    def kind(self, what, nodes, x, more=None, bad="bad"):
        for name in ("plain", "behind"):
            reply = self.server.call("PUT", f"/v1/graphs/{name}",
                                     document(nodes, more or {}, name == "behind"))
            if reply.status == 422 or (reply.status == 400 and "node" in reply.json()):
                self.tally.check(f"{what}: refused at upload",
                                 None if reply.json().get("error") else reply.short())
                continue
            if reply.status not in (200, 201):
                self.tally.bad(f"{what}: upload", reply.short())
                continue
            eager = self.fail(what, name, "eager", x, bad)
            for mode in ("compiled", "auto", "auto"):
                other = self.fail(what, name, mode, x, bad)
                if what not in MEMORY_KINDS:
                    self.tally.check(f"{what}, {mode}, {name}: as eagerly",
                                     None if other == eager else f"{other}, eagerly {eager}")


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    tally = Tally()
    server = Server(sys.argv[1], ["--data", "none", "--quiet", "--max-run-memory", str(MEMORY),
                                  "--max-node-flops", "5000000000"]).start()
    blame = Blame(server, tally)
    for row in KINDS:
        if len(sys.argv) == 2 or sys.argv[2] in row[0]:
            blame.kind(*row)
    tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
