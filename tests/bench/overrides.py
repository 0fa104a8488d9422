# SPDX-License-Identifier: Apache-2.0
"""Runs with rules against the same graphs uploaded edited: overrides.py FXSERVE [RUNS=300].

For each model of tests/models and one rule, compiled runs of both alternate. Printed are the
medians of run_us and of the request (decode to encode) and their ratios; the last line has the
largest ratio of run_us. Standard library only; nothing here passes or fails."""
import json
import os
import statistics
import sys

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


def main():
    n_runs, worst = int(sys.argv[2]) if len(sys.argv) > 2 else 300, 0
    print(f"{'model':24} {'run_us':>9} {'edited':>9} {'ratio':>6}   {'total_us':>9} {'edited':>9} "
          f"{'ratio':>6}")
    for model, target, new in CASES:
        server = Server(sys.argv[1], ["--data", "none", "--quiet", "--no-warm-up"]).start()
        try:
            example = prepare(server, model, target, new)
            rules = [{"match": {"target": target}, "retarget": new}]
            bodies = {"a": json.dumps({**example, "overrides": rules}).encode(),
                      "b": json.dumps(example).encode()}
            times = {name: {"run_us": [], "total_us": []} for name in bodies}
            results = {}
            with server.connect(30) as connection:
                for i in range(n_runs + 20):
                    for name, body in sorted(bodies.items(), reverse=i % 2 == 1):
                        connection.request("POST", f"/v1/graphs/{name}/run?mode=compiled&profile=true", body)
                        reply = connection.reply()
                        assert reply.status == 200, reply.short()
                        value = reply.json()
                        results[name] = value["outputs"][0]["data"]
                        for key in times[name]:
                            if i >= 20:
                                times[name][key].append(value["profile"][key])
            assert results["a"] == results["b"], f"{model}: other numbers"
        finally:
            server.stop()
        columns = []
        for key in ("run_us", "total_us"):
            one, other = statistics.median(times["a"][key]), statistics.median(times["b"][key])
            columns.append(f"{one:9.1f} {other:9.1f} {one / other:6.3f}")
            worst = max(worst, one / other) if key == "run_us" else worst
        print(f"{model:24} " + "   ".join(columns), flush=True)
    print(f"the largest ratio of run_us: {worst:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
