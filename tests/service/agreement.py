# SPDX-License-Identifier: Apache-2.0
"""Documents and messages agree with what is accepted: agreement.py FXSERVE.

For each route of GET /openapi.json: its query parameters are those that the server's own message
lists, each of their values is accepted and any other refused, and a table of docs/api.md has the
parameter's row, with values, default and words as the document has them; so have routes. Routes of
the Open Inference Protocol ignore what they do not know.
The members of a run body are those of the message and of the document; modes and encodings are
tried in the body as well. GET /v1 lists the same routes, and each of them is there. Every flag that
README.md and docs/ name exists.
"""
import glob
import json
import os
import re
import subprocess
import sys

from service import CODECS, ROOT, Failed, Server, Tally, model_file

IMPOSSIBLE = {"npy": (406,)}  # of several outputs
IDS = {"id": "agreed", "name": "digits", "v": "1", "file": "main.js"}
TOO_MUCH = "999999999999999999999"
PACKED = b"""{"format": "fx/1", "nodes": [{"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_function", "name": "y", "target": "torch.ops.aten._convert_weight_to_int4pack_for_cpu",
     "args": ["%x", 2]}, {"op": "output", "name": "output", "target": "output", "args": ["%y"]}]}"""


def document(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def values_of(row):
    """What a parameter may be, as docs/api.md says it."""
    schema = row["schema"]
    if "enum" in schema:
        return ", ".join(f"`{name}`" for name in schema["enum"])
    if schema["type"] == "integer":
        least = schema["minimum"]
        return f"{least} to {schema['maximum']}" if "maximum" in schema else f"from {least} on"
    if schema["type"] == "number":
        return f"from {schema['minimum']} on"
    return "`true`, `false`" if schema["type"] == "boolean" else "text"


class Agreement:
    def __init__(self, server, tally):
        self.server, self.tally, self.text = server, tally, document("docs/api.md")
        self.openapi = server.call("GET", "/openapi.json").json()
        self.run_body = model_file("digits_images.json")
        self.graph = model_file("relu_neg_abs.fx.json")
        self.id = None  # of a session

    def check(self, name, good, problem):
        self.tally.check(name, "" if good else problem)

    def operations(self):
        for path, methods in self.openapi["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def body_of(self, method, path):
        if path.startswith(("/predictions", "/invocations", "/endpoints")):
            return b'{"inputs": %s}' % json.dumps(json.loads(self.run_body)["inputs"]).encode()
        if path.endswith("/run") and path != "/v1/run":
            return self.run_body
        if path == "/v1/run":
            return b'{"graph": %s, "inputs": {"x": [1.5]}}' % self.graph
        return self.graph if method in ("PUT",
                                        "POST") else b'{"default_version": 1}' if method == "PATCH" else None

    def call(self, method, path, query="", body=None):
        if path.startswith("/v1/sessions/{id}"):
            path = path.replace("{id}", self.session())
        target = re.sub(r"\{(\w+)\}", lambda found: IDS[found[1]], path)
        headers = [("X-Request-Id", IDS["id"])] if path.endswith("/run") else []
        return self.server.call(method, target + query,
                                body if body is not None else self.body_of(method, path), headers)

    def session(self):
        if self.id is None:
            self.id = self.server.call("POST", "/v1/graphs/digits/sessions", b"").json()["id"]
        return self.id

    def parameters(self, method, path, operation):
        """The names the document has, against those of the server's message."""
        told = [row["name"] for row in operation["parameters"] if row["in"] == "query"]
        reply = self.call(method, path, "?no_such_parameter=1")
        if path.startswith("/v2"):  # the protocol says that unknown ones are ignored
            self.check(f"{method} {path}: parameters", not told and b"unknown query" not in reply.body,
                       reply.short())
            return
        found = re.search(r"this path takes(?: none|: (.*))$", reply.json().get("error", ""))
        accepted = (found[1] or "").split() if found else None
        self.check(f"{method} {path}: parameters", reply.status == 400 and accepted == told,
                   f"the server accepts {accepted} ({reply.status}), OpenAPI has {told}")

    def values(self, method, path, row):
        schema, name = row["schema"], row["name"]
        good = schema.get("enum") or ([schema["minimum"], schema.get("maximum", schema["minimum"] + 1)]
                                      if schema.get("type") == "integer" else ["true", "false", "1", "0"]
                                      if schema.get("type") == "boolean" else [])
        for value in good:
            if (method, name) in (("GET", "program"), ("PUT", "model"), ("POST", "model")):
                continue
            if value == schema.get("minimum") and name == "deadline_ms":
                value = 30000  # a millisecond may be over before the run is
            if name == "seconds":
                value = 1  # the reply takes so long
            body, at = (PACKED, path.replace("{name}", "packed")) if name == "packed_on" else (None, path)
            more = "&stage=authored" if name == "form" and path.endswith("/text") else ""
            reply = self.call(method, at, f"?{name}={value}{more}", body)
            self.check(f"{method} {path}?{name}={value}",
                       reply.status in (200, 201, *IMPOSSIBLE.get(str(value), ())), reply.short())
        bad = ["no_such_value"] if good else []
        if schema.get("type") == "integer":
            bad += [schema["minimum"] - 1, TOO_MUCH,
                    "1.5"] + ([schema["maximum"] + 1] if "maximum" in schema else [])
        for value in bad:
            reply = self.call(method, path, f"?{name}={value}")
            self.check(f"{method} {path}?{name}={value}", reply.status == 400 and reply.code() == "bad_value",
                       reply.short())

    def members(self):
        """Members of a run body: the message, the document, docs/api.md and what is taken."""
        schema = self.openapi["components"]["schemas"]["RunBody"]["properties"]
        for path, extra in (("/v1/graphs/{name}/run", set()), ("/v1/run", {"graph"})):
            body = json.loads(self.body_of("POST", path))
            error = self.call("POST", path,
                              body=json.dumps({**body, "no_such_member": 1}).encode()).json()["error"]
            told = set(re.search(r"a run body has: ([\w, ]+)", error)[1].split(", "))
            self.check(f"{path}: members", told == set(schema) - {"graph"} | extra,
                       f"the message lists {sorted(told)}, OpenAPI has {sorted(schema)}")
            for name, values in (("mode", schema["mode"]["enum"]), ("encoding", schema["encoding"]["enum"]),
                                 ("reply", schema["reply"]["enum"]), ("profile", [True, False]),
                                 ("deadline_ms", [30000]), ("seed", [0, 7]), ("top", [1, 100])):
                for value in values:
                    reply = self.call("POST", path, body=json.dumps({**body, name: value}).encode())
                    self.check(f"{path}: {name} {value}", reply.status == 200, reply.short())
        for name in schema:
            self.check(f"docs/api.md: {name}", f"| `{name}` |" in self.text, "the table of members lacks it")
        listed = set(re.findall(r"^\| `(\w+)` \| (?:body|both|query)", self.text, re.M))
        self.check("docs/api.md: members", listed == set(schema) | {"as"},
                   f"the table lists {sorted(listed)}")
        patch = self.openapi["paths"]["/v1/graphs/{name}"]["patch"]["requestBody"]["content"][
            "application/json"]["schema"]["properties"]
        error = self.call("PATCH", "/v1/graphs/{name}", body=b'{"no_such_member": 1}').json()["error"]
        told = set(re.search(r"what can be changed is: ([\w, ]+)", error)[1].split(", "))
        self.check("PATCH: members", told == set(patch),
                   f"the message lists {sorted(told)}, OpenAPI has {sorted(patch)}")

    def steps(self):
        """The table of steps in docs/api.md has what OpenAPI has."""
        listed = {}
        for form, members, words in re.findall(r"^\| `(\{\".*\})` \| (.*) \| (.*) \|$", self.text, re.M):
            listed[form] = (sorted(re.findall(r"(\[?)`(\w+)`", members)), words)
        for schema in self.openapi["components"]["schemas"]["Step"]["anyOf"][:-1]:
            kinds = [key for key in ("edit", "pass") if key in schema["properties"]]
            if kinds:
                form = json.dumps({kinds[0]: schema["properties"][kinds[0]]["const"]})
                own = schema
            else:
                key = schema["required"][0]
                inside = schema["properties"][key]
                form = f'{{"{key}": {{…}}}}' if "properties" in inside else f'{{"{key}": …}}'
                own = inside if "properties" in inside else schema
            wanted = sorted(("" if key in own["required"] else "[", key) for key in own["properties"]
                            if key not in kinds)
            self.check(f"docs/api.md: {form}", listed.get(form) == (wanted, schema["description"]),
                       f"the table has {listed.get(form)}, OpenAPI {wanted}, {schema['description']}")

    def table(self):
        """Rows of the tables of docs/api.md, one for each parameter; of versions, only the plain form."""
        properties = self.openapi["components"]["schemas"]["RunBody"]["properties"]
        routes, places = {}, {}
        for method, path, operation in self.operations():
            for row in operation["parameters"]:
                if row["in"] == "query" and "{v}" not in path:
                    default = str(row["schema"].get("default", ""))
                    key = (row["name"], values_of(row), default, row["description"])
                    routes.setdefault(key, []).append(f"`{method} {path}`")
                    if path.endswith("/run"):
                        places[key] = "both" if row["name"] in properties else "query"
        for key, where in routes.items():
            name, values, default, words = key
            default = "" if default == "" else f"`{default.lower()}`"
            line = f"| `{name}` | {places.get(key, ', '.join(where))} | {values} | {default} | {words} |"
            self.check(f"docs/api.md: the row of {name}", line.replace("|  |", "| |") + "\n" in self.text,
                       "the document wants this row:\n" + line.replace("|  |", "| |"))

    def routes(self):
        listed = set(self.server.call("GET", "/v1").json()["routes"])
        told = {f"{method} {path}" for method, path, _ in self.operations()}
        self.check("GET /v1: routes", listed == told,
                   f"only in one of GET /v1 and OpenAPI: {sorted(listed ^ told)}")
        for method, path, operation in self.operations():
            row = f"| `{method} {path}` | {operation['summary']} |\n"
            self.check(f"{method} {path}: docs/api.md", "{v}" in path or row in self.text,
                       "the document wants this row:\n" + row)
            reply = self.call(method, path, "?no_such_parameter=1")
            there = reply.status != 404 if path.startswith("/v2") else reply.code() == "unknown_member"
            self.check(f"{method} {path}: is there", there, reply.short())


def flags(binary, tally):
    """Flags that documents name exist."""
    known = set()
    for command in ("", "serve", "run", "check", "print", "ops", "health", "compare", "view"):
        known |= set(re.findall(r"--[a-z][a-z0-9-]+", subprocess.run(
            [binary, *command.split(), "--help"], capture_output=True, text=True, check=False).stdout))
    for path in ["README.md",
                 *(os.path.relpath(name, ROOT) for name in glob.glob(os.path.join(ROOT, "docs", "*.md")))]:
        for line in document(path).split("\n"):
            named = re.findall(r"fxserve (?:serve|run|check|print|ops|health)?[^|`]*?(--[a-z][a-z0-9-]+)",
                               line) + re.findall(r"`(--[a-z][a-z0-9-]+)`", line)
            for flag in named:
                if flag not in known and flag not in FOREIGN:
                    tally.bad(f"{path}: {flag}", f"fxserve has no such flag: {line.strip()[:120]}")
    tally.ok()


FOREIGN = {"--data-binary", "--long", "--list", "--help"}  # of curl, ./check and every program


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    tally = Tally()
    server = Server(sys.argv[1], ["--data", "none", "--quiet", "--codecs", CODECS]).start()
    try:
        for name, file in (("digits", "digits.pt2"),):
            reply = server.call("PUT", f"/v1/graphs/{name}", model_file(file))
            if reply.status != 201:
                raise Failed(reply.short())
        agreement = Agreement(server, tally)
        for _ in range(2):  # a program, and a profile under a known id
            agreement.call("POST", "/v1/graphs/{name}/run", "?mode=compiled")
        for method, path, operation in agreement.operations():
            agreement.parameters(method, path, operation)
            for row in operation["parameters"]:
                if row["in"] == "query":
                    agreement.values(method, path, row)
        agreement.members()
        agreement.steps()
        agreement.table()
        agreement.routes()
        flags(os.path.abspath(sys.argv[1]), tally)
    finally:
        tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
