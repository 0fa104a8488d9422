# SPDX-License-Identifier: Apache-2.0
"""Makes tests/edit/cases.json: edits of graphs with the text PyTorch's own graph has after them.

    python tools/generate/make_edit_cases.py [--out tests/edit/cases.json]

A case has a graph (FX JSON, state inline), steps, and "want" (str(gm.graph) after the last step) or
"error" (the message of the exception of the last step). Steps are the Graph API's operations by
name; "%x" is node x.
"""

import argparse
import json
import operator
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # export_fx.py
from export_fx import decode_value, export_fx, resolve

CASES = []


# ---- graphs ------------------------------------------------------------------------------------


def chain(x):
    return torch.neg(torch.relu(x).sigmoid())


def branches(x, y):
    a = x + y
    b = torch.relu(a)
    c = torch.tanh(a)
    return b * c, a


def repeated(x):
    a = x + x
    b = torch.cat([a, a, x], dim=1)
    return {"a": a, "b": [b, a]}


def dead(x):
    y = x + 1
    z = y * 2
    torch.relu(z)
    return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.act = nn.ReLU()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.act(self.linear(x)) * self.scale


# ---- steps -------------------------------------------------------------------------------------


def target_of(op, text):
    return resolve(text) if op == "call_function" else text


def make(graph, new, nodes):
    args = tuple(decode_value(arg, nodes) for arg in new.get("args", []))
    kwargs = {key: decode_value(value, nodes) for key, value in new.get("kwargs", {}).items()}
    return graph.create_node(new["op"], target_of(new["op"], new["target"]), args, kwargs, new.get("name"))


def insert(gm, step, nodes):
    at = nodes.get(step["node"])
    where = gm.graph.inserting_after if step["edit"] == "insert_after" else gm.graph.inserting_before
    with where(at):
        make(gm.graph, step["new"], nodes)


def replace(gm, step, nodes):
    node = nodes[step["node"]]
    with gm.graph.inserting_before(node):
        new = make(gm.graph, step["new"], nodes)
    node.replace_all_uses_with(new)
    gm.graph.erase_node(node)


def set_args(gm, step, nodes):
    node = nodes[step["node"]]
    if "args" in step:
        node.args = tuple(decode_value(arg, nodes) for arg in step["args"])
    if "kwargs" in step:
        node.kwargs = {key: decode_value(value, nodes) for key, value in step["kwargs"].items()}


def set_target(gm, step, nodes):
    node = nodes[step["node"]]
    node.target = target_of(node.op, step["target"])


def rename(gm, step, nodes):
    nodes[step["node"]]._rename(step["name"])  # .name = ... would not look for a free one


def replace_input(gm, step, nodes):
    nodes[step["node"]].replace_input_with(nodes[step["from"]], nodes[step["with"]])


EDITS = {
    "insert_before": insert,
    "insert_after": insert,
    "replace": replace,
    "erase": lambda gm, step, nodes: gm.graph.erase_node(nodes[step["node"]]),
    "move_before": lambda gm, step, nodes: nodes[step["at"]].prepend(nodes[step["node"]]),
    "move_after": lambda gm, step, nodes: nodes[step["at"]].append(nodes[step["node"]]),
    "rename": rename,
    "set_target": set_target,
    "set_args": set_args,
    "replace_input": replace_input,
    "replace_all_uses": lambda gm, step, nodes: nodes[step["node"]].replace_all_uses_with(nodes[step["with"]]),
    "lint": lambda gm, step, nodes: gm.graph.lint(),
}


def apply(gm, step):
    EDITS[step["edit"]](gm, step, {node.name: node for node in gm.graph.nodes})


def case(name, source, *steps):
    """`source`: what to trace, or a function without arguments that makes a GraphModule."""
    gm = source() if getattr(source, "makes_graph", False) else torch.fx.symbolic_trace(source)
    document, _ = export_fx(gm, inline=True)
    entry = {"name": name, "graph": document, "steps": list(steps)}
    for at, step in enumerate(steps):
        try:
            apply(gm, step)
        except (RuntimeError, AssertionError) as error:
            if at + 1 < len(steps):
                raise
            entry["error"] = str(error).split("\n", maxsplit=1)[0]
    if "error" not in entry:
        entry["want"] = str(gm.graph)
    CASES.append(entry)


def call(target, *args, name=None, **kwargs):
    new = {"op": "call_function", "target": target, "args": list(args)}
    if kwargs:
        new["kwargs"] = kwargs
    return {**new, "name": name} if name else new


def method(target, *args):
    return {"op": "call_method", "target": target, "args": list(args)}


def edit(kind, **fields):
    return {"edit": kind, **fields}


# ---- cases -------------------------------------------------------------------------------------


def single_edits():
    case("a node is inserted after another", chain,
         edit("insert_after", node="relu", new=call("torch.abs", "%relu")),
         edit("replace_input", node="sigmoid", **{"from": "relu", "with": "abs_1"}))
    case("a node is inserted before another", chain,
         edit("insert_before", node="neg", new=method("mul", "%sigmoid", 2.5)),
         edit("set_args", node="neg", args=["%mul"]))
    case("names follow FX's rule when they are taken", chain,
         edit("insert_after", node="relu", new=call("torch.relu", "%relu")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="relu_1")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="sum")),
         edit("insert_after", node="relu", new=call("torch.relu", "%relu", name="some.name!")))
    case("the name of an erased node stays taken", dead,
         edit("erase", node="relu"),
         edit("insert_after", node="add", new=call("torch.relu", "%add")))
    case("all readers get another node", branches,
         edit("replace_all_uses", node="add", **{"with": "x"}),
         edit("erase", node="add"))
    case("a node that is read cannot be erased", branches, edit("erase", node="add"))
    case("a node that is read once cannot be erased", chain, edit("erase", node="sigmoid"))
    case("users are told in the order in which they came", branches,
         edit("set_args", node="relu", args=["%x"]),
         edit("set_args", node="relu", args=["%add"]),
         edit("erase", node="add"))
    case("a node is replaced", branches,
         edit("replace", node="relu", new=call("torch.clamp", "%add", min=0, max=6.5)))
    case("a node is replaced by a method", branches, edit("replace", node="tanh", new=method("sigmoid", "%add")))
    case("a node is moved to the front of another", branches, edit("move_before", node="tanh", at="relu"))
    case("a node is moved behind another", branches, edit("move_after", node="relu", at="tanh"))
    case("a node next to itself stays", branches, edit("move_after", node="relu", at="relu"))
    case("a node is moved to the front of its input", branches,
         edit("move_before", node="tanh", at="add"), edit("lint"))
    case("a node is renamed", branches, edit("rename", node="add", name="total"))
    case("a node is renamed to a name that is taken", branches, edit("rename", node="add", name="relu"))
    case("a node is renamed to its own name", branches, edit("rename", node="add", name="add"))
    case("a target is set", chain, edit("set_target", node="sigmoid", target="tanh"),
         edit("set_target", node="relu", target="torch.abs"))
    case("arguments and keywords are set", repeated,
         edit("set_args", node="cat", args=[["%x", "%add"]], kwargs={"dim": -1}))
    case("a node that stands at several places is replaced at all of them", repeated,
         edit("replace_all_uses", node="add", **{"with": "x"}))
    case("one reader gets another node", repeated,
         edit("replace_input", node="output", **{"from": "add", "with": "cat"}))
    case("slices and containers keep their form", repeated,
         edit("set_args", node="cat", args=[{"$tuple": ["%add", {"$slice": ["%x", None, 2]}]}],
              kwargs={"dim": {"a": ["%x", 1.5, "text", None, True]}}))
    case("modules stay", Net(),
         edit("insert_after", node="act", new=call("torch.tanh", "%act")),
         edit("set_args", node="mul", args=["%tanh", "%scale"]))
    case("a lone result becomes another", Net(), edit("set_args", node="output", args=["%act"]))
    case("a placeholder is inserted at the front", chain,
         edit("insert_before", node="x", new={"op": "placeholder", "target": "first"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/edit/cases.json"))
    out = parser.parse_args().out
    torch.manual_seed(0)
    single_edits()
    lines = ",\n".join(json.dumps(entry) for entry in CASES)
    out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(CASES)} cases")


if __name__ == "__main__":
    main()
