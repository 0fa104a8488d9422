# SPDX-License-Identifier: Apache-2.0
"""Random rules on random graphs: random_rules.py FXSERVE [--graphs 1000] [--seed N].

Needs torch 2.13. Each trial makes a graph of recipes.py, as FX JSON or as an export of it, and one to
four rules: they match by target in all its spellings, by name, opcode, path, class and n-th node, and
take any action. What must hold:

    equal     outputs are those of a torch.fx.Interpreter that does what the rules say, in both modes
    matched   the reply names the nodes that the rules match
    refused   a second action on a node that no call is left of, and nothing else
    stored    the same rules uploaded as a variant give the same bits
"""
import argparse
import fnmatch
import io
import json
import operator
import pathlib
import random
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import fx, nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from recipes import Maker
from rewriting import document_of
from service import serving

aten = torch.ops.aten
# What a node means, and how rules may write it.
MEANINGS = {
    "relu": [torch.relu, F.relu, "relu", aten.relu.default, nn.ReLU],
    "sigmoid": [torch.sigmoid, "sigmoid", aten.sigmoid.default],
    "tanh": [torch.tanh, "tanh", aten.tanh.default, nn.Tanh],
    "neg": [torch.neg, "neg", aten.neg.default],
    "abs": [torch.abs, "abs", aten.abs.default],
    "linear": [nn.Linear, aten.linear.default],
    "maximum": [torch.maximum, aten.maximum.default],
    "dropout": [nn.Dropout, F.dropout, aten.dropout.default],
    "clone": ["clone", aten.clone.default],
}
SPELLINGS = {
    "relu": ["torch.relu", "F.relu", "Tensor.relu", "aten.relu.default", "torch.nn.ReLU",
             "torch.ops.aten.relu.default", "torch.nn.functional.relu", "relu"],
    "sigmoid": ["torch.sigmoid", "Tensor.sigmoid", "aten.sigmoid.default", "torch.nn.Sigmoid", "sigmoid"],
    "tanh": ["torch.tanh", "Tensor.tanh", "aten.tanh.default", "torch.nn.Tanh"],
    "neg": ["torch.neg", "Tensor.neg", "aten.neg.default", "neg"],
    "abs": ["torch.abs", "Tensor.abs", "aten.abs.default"],
    "linear": ["torch.nn.Linear", "F.linear", "aten.linear.default", "torch.nn.functional.linear"],
    "maximum": ["torch.maximum", "aten.maximum.default"],
    "dropout": ["torch.nn.Dropout", "F.dropout", "torch.nn.functional.dropout", "aten.dropout.default"],
    "clone": ["Tensor.clone", "torch.clone", "aten.clone.default"],
}
UNARY = {"torch.relu": torch.relu, "torch.tanh": torch.tanh, "torch.sin": torch.sin, "Tensor.neg": torch.neg,
         "aten.sigmoid.default": torch.sigmoid, "F.softsign": F.softsign}
BINARY = {"torch.sub": torch.sub, "operator.mul": operator.mul, "torch.minimum": torch.minimum}
CALLED = {"scaled": lambda x: x * 1.5 + 0.25, "softsign": lambda x: x / (1 + x.abs()),
          "clipped": lambda x: torch.clamp(x, -0.5, 0.5), "noop": lambda x: x,
          "swap": lambda x, y: (y, x), "blend": lambda x, y: x * 0.5 + y}
INDICES = [[0], [-1], [":", 1], ["1:3"], ["...", 0], [[0, 2]], ["::2", "1:"], [":", [3, 1]], []]


class Refused(Exception):
    """The rules ask for something that the server is to refuse."""


def meaning_of(gm, node):
    if node.op == "call_module":
        key = type(gm.get_submodule(node.target))
    else:
        key = node.target
    if node.op not in ("call_function", "call_method", "call_module"):
        return None
    for meaning, keys in MEANINGS.items():
        if any(key is k or (isinstance(key, str) and key == k) for k in keys):
            return meaning
    return None


def calls(gm):
    return [node for node in gm.graph.nodes if node.op.startswith("call_")]


# ---- what rules say ----------------------------------------------------------------------------


def matches(gm, match):
    """The nodes that a rule matches, in order."""
    meaning = next((m for m, texts in SPELLINGS.items() if match.get("target") in texts), None)

    def fits(node):
        module = gm.get_submodule(node.target) if node.op == "call_module" else None
        return (match.get("op", node.op) == node.op
                and fnmatch.fnmatchcase(node.name, match.get("name", "*"))
                and ("target" not in match or meaning_of(gm, node) == meaning)
                and ("module" not in match
                     or module is not None and fnmatch.fnmatchcase(node.target, match["module"]))
                and ("module_type" not in match
                     or module is not None and "torch.nn." + type(module).__name__ == match["module_type"]))

    found = [node for node in gm.graph.nodes if fits(node)]
    if "nth" in match:
        found = found[match["nth"]:match["nth"] + 1]
    return found


def index_of(texts):
    def item(text):
        if text == "...":
            return Ellipsis
        if isinstance(text, str):
            return slice(*[int(part) if part else None for part in text.split(":")])
        return text
    return tuple(item(text) for text in texts)


def patched(patch):
    def apply(value):
        value, index = value.clone(), index_of(patch["index"])
        if "set" in patch:
            value[index] = patch["set"]
        elif "add" in patch:
            value[index] += patch["add"]
        else:
            value[index] *= patch["scale"]
        return value
    return apply


class Standing:
    """What has become of one node: its arguments, what is called with them, what is behind."""

    def __init__(self, run, node):
        self.plain = (lambda args, kwargs: args[0]) if not node.op.startswith("call_") else \
            lambda args, kwargs: getattr(fx.Interpreter, node.op)(run, node.target, args, kwargs)
        self.call, self.arguments, self.behind, self.ended = self.plain, lambda a, k, env: (a, k), [], False

    def act(self, rule):
        if self.ended:
            raise Refused
        before = self.arguments
        if "constant" in rule:
            self.call, self.ended = lambda a, k: torch.tensor(rule["constant"]), True
        elif "passthrough" in rule:
            self.call, self.ended = lambda a, k: a[rule["passthrough"]], True
        elif "call" in rule:
            self.call, self.ended = lambda a, k: CALLED[rule["call"]](*a, **k), True
        elif "patch" in rule:
            self.behind.append(patched(rule["patch"]))
        elif "wrap" in rule:
            self.wrap(rule["wrap"], before)
        elif isinstance(rule["retarget"], str):
            function = {**UNARY, **BINARY}[rule["retarget"]]
            self.call = lambda a, k: function(*a, **k)
        else:
            self.retarget(rule["retarget"], before)

    def wrap(self, wrap, before):
        def wrapped(a, k, env):
            a, k = before(a, k, env)
            made = CALLED[wrap["before"]](*a)
            return (made if isinstance(made, tuple) else (made,)), k
        if "before" in wrap:
            self.arguments = wrapped
        if "after" in wrap:
            self.behind.append(CALLED[wrap["after"]])

    def retarget(self, call, before):
        function = {**UNARY, **BINARY}[call["target"]]

        def filled(a, k, env):
            a, k = before(a, k, env)
            made = []
            for text in call["args"]:
                if text == "$args":
                    made += a
                elif isinstance(text, str):
                    made.append(env[text[1:]] if text[0] == "%" else a[int(text[1:])])
                else:
                    made.append(text)
            return made, {}
        self.arguments, self.call = filled, lambda a, k: function(*a, **k)

    def value(self, args, kwargs, env):
        args, kwargs = self.arguments(args, kwargs, env)
        value = self.call(tuple(args), kwargs)
        for function in self.behind:
            value = function(value)
        return value


class Oracle(fx.Interpreter):
    def __init__(self, gm, rules):
        super().__init__(gm, garbage_collect_values=False)
        self.standing = {}
        for rule in rules:
            for node in matches(gm, rule["match"]):
                self.standing.setdefault(node, Standing(self, node)).act(rule)

    def run_node(self, n):
        if n not in self.standing:
            return super().run_node(n)
        env = {node.name: value for node, value in self.env.items()}
        if n.op in ("placeholder", "get_attr"):
            return self.standing[n].value((super().run_node(n),), {}, env)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return self.standing[n].value(args, kwargs, env)


# ---- random rules ------------------------------------------------------------------------------


def random_match(rng, gm, exported):
    node = rng.choice(calls(gm) + [n for n in gm.graph.nodes if n.name in ("x", "y")])
    match, kind = {}, rng.random()
    meaning = meaning_of(gm, node)
    if kind < 0.45 and meaning is not None:
        match["target"] = rng.choice(SPELLINGS[meaning])
        if rng.random() < 0.3:
            match["op"] = node.op
    elif kind < 0.6 and node.op == "call_module" and not exported:
        match[rng.choice(["module", "module_type"])] = None
        if "module" in match:
            match["module"] = rng.choice([node.target, node.target[0] + "*", "*" + node.target[1:]])
        else:
            match["module_type"] = "torch.nn." + type(gm.get_submodule(node.target)).__name__
    elif kind < 0.7:
        match["op"] = node.op if node.op != "placeholder" else "call_function"
    else:
        match["name"] = rng.choice([node.name, node.name, node.name[:3] + "*"]) if node.name not in "xy" \
            else node.name
    if rng.random() < 0.3:
        match["nth"] = rng.randrange(max(1, len(matches(gm, match))))
    return match


def arities(gm, found):
    """How many positional tensors the matched calls take; a value that is no call counts as one."""
    return {1 if not node.op.startswith("call_")
            else len(node.args) if all(isinstance(a, fx.Node) for a in node.args) and not node.kwargs else 0
            for node in found}


def random_action(rng, gm, found, free):
    many = arities(gm, found)
    number = rng.choice([0.0, 0.5, -2.0])
    choices = [{"retarget": {"target": "operator.mul", "args": ["$0", 1.5]}},
               {"constant": [[rng.choice([0.5, -1.0, 2.0]) for _ in range(4)] for _ in range(4)]},
               {"patch": {"index": rng.choice(INDICES), rng.choice(["set", "add", "scale"]): number}},
               {"retarget": {"target": rng.choice(list(UNARY)), "args": ["$0"]}},
               {"retarget": {"target": rng.choice(list(BINARY)), "args": ["$0", rng.choice(free)]}},
               {"retarget": {"target": rng.choice(list(BINARY)), "args": ["$0", "$0"]}},
               {"passthrough": 0},
               {"wrap": {"after": rng.choice(["scaled", "softsign", "clipped", "noop"])}}]
    one = ["scaled", "softsign", "clipped", "noop"]
    if many == {1}:
        choices += [{"retarget": rng.choice(list(UNARY))}, {"call": rng.choice(one)},
                    {"wrap": {"before": rng.choice(one)}},
                    {"wrap": {"before": rng.choice(one), "after": rng.choice(one)}},
                    {"retarget": {"target": rng.choice(list(UNARY)), "args": ["$args"]}}]
    elif many == {2}:
        choices += [{"retarget": rng.choice(list(BINARY))}, {"call": "blend"}, {"wrap": {"before": "swap"}},
                    {"passthrough": 1},
                    {"retarget": {"target": rng.choice(list(BINARY)), "args": ["$1", "$0"]}}]
    return rng.choice(choices)


def random_rules(rng, gm, exported):
    rules, used = [], {}
    for _ in range(rng.randint(1, 4)):
        match = random_match(rng, gm, exported)
        found = matches(gm, match)
        if not found or any(n.op == "output" for n in found):
            continue
        again = any(n in used for n in found)
        # A second action finds the arguments of the first; those that any call takes fit.
        action = random_action(rng, gm, found, ["%x", "%y"])
        if again and not ("patch" in action or "constant" in action or "passthrough" in action
                          or "after" in action.get("wrap", {}) and "before" not in action["wrap"]
                          or isinstance(action.get("retarget"), dict)
                          and not {"$1", "$args"} & set(map(str, action["retarget"]["args"]))):
            continue
        if action.get("passthrough") == 1 and again:
            continue
        if isinstance(action.get("retarget"), dict) and any(n.name in "xy" for n in found) and \
                any(str(a)[0] == "%" for a in action["retarget"]["args"]):
            continue
        used.update(dict.fromkeys(found))
        rules.append({"match": match, **action})
    # "%x" is the value of the node itself, so no other rule changes it.
    read = {a[1:] for rule in rules if isinstance(rule.get("retarget"), dict)
            for a in rule["retarget"]["args"] if str(a)[0] == "%"}
    return [rule for rule in rules if not any(n.name in read for n in matches(gm, rule["match"]))]


# ---- trials ------------------------------------------------------------------------------------


class Trial:
    def __init__(self, server, seed):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        self.server, self.exported = server, rng.random() < 0.35
        gm = Maker(rng).make()
        self.inputs = [torch.randn(4, 4), torch.randn(4, 4)]
        self.body = json.dumps(document_of(gm)).encode()
        self.gm, self.fed = gm, self.inputs
        if self.exported:
            self.export(gm)
        self.rules = random_rules(rng, self.gm, self.exported)

    def export(self, gm):
        program = torch.export.export(gm, tuple(self.inputs))
        data = io.BytesIO()
        torch.export.save(program, data)
        signature = program.graph_signature
        state = {**program.state_dict, **program.constants}
        held = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
                **signature.inputs_to_lifted_tensor_constants}
        named = dict(zip(signature.user_inputs, self.inputs))
        self.fed = [state[held[node.name]] if node.name in held else named[node.name]
                    for node in program.graph.find_nodes(op="placeholder")]
        self.body, self.gm = data.getvalue(), program.graph_module

    def want(self):
        """Outputs and matched names; None: to be refused."""
        try:
            oracle = Oracle(self.gm, self.rules)
        except Refused:
            return None
        with torch.no_grad():
            made = oracle.run(*self.fed)
        return list(made), [[node.name for node in matches(self.gm, rule["match"])] for rule in self.rules]

    def run(self, name, **more):
        return self.server.call("POST", f"/v1/graphs/{name}/run", json.dumps(
            {"inputs": [x.tolist() for x in self.inputs], **more}).encode())

    def check(self):
        reply = self.server.call("PUT", "/v1/graphs/base", self.body)
        assert reply.status in (200, 201), reply.short()
        want = self.want()
        for mode in ("eager", "compiled"):
            reply = self.run("base", overrides=self.rules, mode=mode)
            if want is None:
                assert reply.status in (400, 422), f"not refused: {reply.short()}"
                return False
            assert reply.status == 200, reply.short()
            body = reply.json()
            got = [torch.tensor(entry["data"]) for entry in body["outputs"]]
            torch.testing.assert_close(got, want[0], rtol=1e-4, atol=1e-5,
                                       msg=lambda m, at=mode: f"{at}: {m}")
            matched = [entry["matched"] for entry in body["overrides"]]
            assert matched == want[1], f"matched {matched}, not {want[1]}"
        if self.rules:
            self.check_variant(self.run("base", overrides=self.rules, mode="eager"))
        return True

    def check_variant(self, reply):
        document = {"format": "fx-variant/1", "base": "base", "overrides": self.rules}
        put = self.server.call("PUT", "/v1/graphs/variant", json.dumps(document).encode())
        assert put.status in (200, 201), put.short()
        stored = self.run("variant", mode="eager")
        assert stored.status == 200, stored.short()
        a, b = ([entry["data"] for entry in r.json()["outputs"]] for r in (reply, stored))
        assert a == b, "the variant gives other bits"


def upload_called(server):
    for name, function in CALLED.items():
        body = json.dumps(document_of(fx.symbolic_trace(function))).encode()
        assert server.call("PUT", f"/v1/graphs/{name}", body).status == 201


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    n_rules, n_run = 0, 0
    with serving(options.binary) as (server, tally):
        upload_called(server)
        for number in range(options.graphs):
            seed = options.seed * 1000003 + number
            trial = Trial(server, seed)
            try:
                n_run += bool(trial.check() and trial.rules)
                n_rules += len(trial.rules)
                tally.ok()
            except AssertionError as problem:
                tally.bad(f"seed {seed}", f"{problem}\n  {json.dumps(trial.rules)}\n  {trial.gm.graph}")
        tally.check(f"{n_run} of {options.graphs} trials ran with {n_rules} rules",
                    "" if n_run > 0.6 * options.graphs else "too few to say much")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
