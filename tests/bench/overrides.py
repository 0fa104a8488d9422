# SPDX-License-Identifier: Apache-2.0
"""Runs with rules against the same graphs uploaded edited: overrides.py FXSERVE [RUNS=300].

For each model of tests/models and one rule, compiled runs of both take turns. Printed are the
medians of run_us and of the request (decode to encode) and their ratios; the last lines have the
largest ratios of run_us. Programs of both have the same instructions: `--instructions` counts, with
valgrind, those within program_run. What is left is the caches' state: reading rules comes right
before the run. So the edited graph is also run with a rule that hits nothing ("idle rule"), which
leaves the caches as a rule that hits does. Standard library only; nothing here passes or fails."""
import json
import os
import re
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "service")]
from service import MODELS, Server

# model, target in the graph's JSON, what takes its place
CASES = (("digits.pt2", "torch.ops.aten.relu.default", "torch.tanh"),
         ("dev_lenet.pt2", "torch.ops.aten.relu.default", "torch.nn.functional.gelu"),
         ("dev_mlp_bn.pt2", "torch.ops.aten.gelu.default", "torch.relu"),
         ("dev_resnet_hf.pt2", "torch.ops.aten.relu.default", "torch.sigmoid"),
         ("relu_neg_abs.fx.json", "torch.neg", "torch.sigmoid"))


def multipart(parts):
    body = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
                    % (name, name, content) for name, content in parts)
    return body + b"--b--\r\n", [("Content-Type", "multipart/form-data; boundary=b")]


def prepare(server, model, target, new):
    """Uploads the model as a, and edited as b; returns a run body of inputs."""
    with open(os.path.join(MODELS, model), "rb") as file:
        reply = server.call("PUT", "/v1/graphs/a", file.read())
    assert reply.status in (200, 201), reply.short()
    text = server.call("GET", "/v1/graphs/a/text?form=json").body
    weights = server.call("GET", "/v1/graphs/a/weights").body
    document = json.loads(text)
    hits = [node for node in document["nodes"] if node["target"] == target]
    assert hits, f"{model}: no {target}"
    for node in hits:
        node["target"] = new
    body, headers = multipart([(b"graph", json.dumps(document).encode()), (b"weights", weights)])
    reply = server.call("PUT", "/v1/graphs/b", body, headers)
    assert reply.status in (200, 201), reply.short()
    reply = server.call("GET", "/v1/graphs/a/example")  # FX JSON may not say what it takes
    return reply.json() if reply.status == 200 else {"inputs": {"x": [i / 1000 - 2 for i in range(4096)]}}


def bodies_of(example, target, new):
    """name: (graph, run body)"""
    rules = [{"match": {"target": target}, "retarget": new}]
    idle = [{"match": {"target": "torch.erfinv"}, "retarget": new, "optional": True}]
    return {"rules": ("a", json.dumps({**example, "overrides": rules}).encode()),
            "edited": ("b", json.dumps(example).encode()),
            "idle": ("b", json.dumps({**example, "overrides": idle}).encode())}


def run(connection, graph, body):
    connection.request("POST", f"/v1/graphs/{graph}/run?mode=compiled&profile=true", body)
    reply = connection.reply()
    assert reply.status == 200, reply.short()
    return reply.json()


def measure(binary, case, n_runs):
    """{name: {"run_us": median, "total_us": median}}"""
    model, target, new = case
    server = Server(binary, ["--data", "none", "--quiet", "--no-warm-up"]).start()
    try:
        bodies = bodies_of(prepare(server, model, target, new), target, new)
        times = {name: {"run_us": [], "total_us": []} for name in bodies}
        results = {}
        with server.connect(30) as connection:
            for i in range(n_runs + 20):
                for name, (graph, body) in sorted(bodies.items(), reverse=i % 2 == 1):
                    value = run(connection, graph, body)
                    results[name] = value["outputs"][0]["data"]
                    for key in times[name]:
                        if i >= 20:
                            times[name][key].append(value["profile"][key])
        assert results["rules"] == results["edited"] == results["idle"], f"{model}: other numbers"
    finally:
        server.stop()
    return {name: {key: statistics.median(row) for key, row in rows.items()} for name, rows in times.items()}


def instructions(binary, case, name, folder, n_runs=50):
    """Instructions within program_run, in n_runs runs."""
    model, target, new = case
    wrapper, out = os.path.join(folder, "fxserve"), os.path.join(folder, "callgrind.out")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec valgrind -q --tool=callgrind --toggle-collect=program_run "
                   f"--callgrind-out-file={out} {os.path.abspath(binary)} \"$@\"\n")
    os.chmod(wrapper, 0o755)
    server = Server(wrapper, ["--data", "none", "--quiet", "--no-warm-up"]).start()
    try:
        graph, body = bodies_of(prepare(server, model, target, new), target, new)[name]
        with server.connect(60) as connection:
            for _ in range(n_runs):
                run(connection, graph, body)
    finally:
        server.stop()
    with open(out, encoding="utf-8") as file:
        return int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M).group(1))


def count(binary):
    with tempfile.TemporaryDirectory(prefix="overrides-") as folder:
        for case in CASES:
            one, other = (instructions(binary, case, name, folder) for name in ("rules", "edited"))
            print(f"{case[0]:24} {one:14,} instructions, edited {other:14,}: {one / other:.4f}", flush=True)
    return 0


def main():
    if "--instructions" in sys.argv:
        return count(sys.argv[1])
    n_runs, worst, worst_idle = int(sys.argv[2]) if len(sys.argv) > 2 else 300, 0, 0
    print(f"{'model':24} {'run_us':>9} {'edited':>9} {'ratio':>6} {'idle rule':>9} {'ratio':>6}   "
          f"{'total_us':>9} {'edited':>9} {'ratio':>6}")
    for case in CASES:
        medians = measure(sys.argv[1], case, n_runs)
        one, other, idle = (medians[name]["run_us"] for name in ("rules", "edited", "idle"))
        total, total_other = (medians[name]["total_us"] for name in ("rules", "edited"))
        worst, worst_idle = max(worst, one / other), max(worst_idle, one / idle)
        print(f"{case[0]:24} {one:9.1f} {other:9.1f} {one / other:6.3f} {idle:9.1f} {one / idle:6.3f}   "
              f"{total:9.1f} {total_other:9.1f} {total / total_other:6.3f}", flush=True)
    print(f"the largest ratio of run_us: {worst:.3f}; with an idle rule on the edited: {worst_idle:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
