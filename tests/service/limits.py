# SPDX-License-Identifier: Apache-2.0
"""The limits of core/base/limits.def, each hit and missed by one: limits.py FXSERVE.

fixed_rows() are limits without a flag, which need large bodies; flag_rows() lower theirs; CASES are
those that refuse no request. SCENARIOS names the scenario of each other limit. run.py checks that
every limit is in one of them, so a new one needs its row here.
"""
import json
import math
import os
import re
import struct
import sys
import time
import zlib

from malformed_files import archive_of, changed, linear_form, many_members, members, safetensors
import batching
import malformed_graphs
from malformed_graphs import X, call, out
from service import HERE, ROOT, Failed, Server, Tally
import tolerance
import tracing

SCENARIOS = {
    "max_upload": "70-limits-bodies", "max_run_body": "70-limits-bodies", "max_node_flops": "74-node-limits",
    "max_connections": "40-door-connections",
    "max_queue": "73-deadline-and-queue", "max_queue_bytes": "75-queue-bytes",
    "max_queue_per_graph": "73-queue-per-graph", "max_event_streams": "45-events",
    "max_reply_cache": "74-reply-cache", "max_profiles": "41-profile-ring",
    "header_timeout_s": "40-door-slow",
    "body_grace_s": "40-door-slow", "min_body_rate": "40-door-slow",
    "max_connections_per_address": "40-door-limits", "max_warm_up": "96-warm-up",
    "max_uri": "40-door-limits", "max_headers": "40-door-limits", "max_wrong_tokens": "40-door-tokens",
    "idle_timeout_s": "40-door-slow",
    "drain_delay_s": "74-drain-delay", "max_graphs": "70-limits-versions",
    "max_versions": "70-limits-versions", "max_aliases": "05-aliases", "max_passes": "35-passes",
    "gzip_from": "67-gzip-from", "max_labels": "39-labels", "max_image_pixels": "39-images",
    "max_operators": "39-operators", "max_memory": "71-memory-ladder",
    "max_compare_bytes": "36-compare", "max_observed_bytes": "47-observe", "max_kept_bytes": "49-kept-values",
    "max_kept_runs": "49-kept-values", "max_sessions": "48-sessions-limits",
    "max_session_bytes": "48-sessions-limits", "max_session_queue": "48-sessions-queue",
    "session_idle_s": "48-sessions-limits",
}

# Limits of core that no request reaches yet, and the unit test that hits each.
UNIT_TESTS = {"max_edit_steps": "tests/edit/nodes.c", "max_edit_growth": "tests/edit/nodes.c",
              "max_edit_values": "tests/edit/nodes.c",
              "max_match_steps": "tests/edit/rewrite.c", "max_edit_visits": "tests/edit/cases.c"}


def fx(*nodes, **more):
    return json.dumps(malformed_graphs.fx(*nodes, **more))


def graph(name, body, headers=()):
    return "PUT", f"/v1/graphs/{name}", body if isinstance(body, bytes) else body.encode(), headers


def run(name, body, headers=()):
    return "POST", f"/v1/graphs/{name}/run", body if isinstance(body, bytes) else body.encode(), headers


def padded(text, n):
    """A JSON object as n bytes."""
    return text[:-1] + " " * (n - len(text)) + text[-1:]


def nodes(n):
    return fx(X, *[call("torch.relu", f"%n{i - 1}" if i else "%x", name=f"n{i}") for i in range(n - 2)],
              out(f"%n{n - 3}"))


def weights(n):
    """A weight file of n tensors: two that the graph wants, the others empty."""
    good = {"lin.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
            "lin.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}
    return safetensors({**good, **{f"w{i}": {"dtype": "U8", "shape": [0], "data_offsets": [12, 12]}
                                   for i in range(n - 2)}}, struct.pack("<3f", 10, 20, 0.5))


def header(n):
    good = {"lin.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
            "lin.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}
    return safetensors(json.dumps(good).encode().ljust(n), struct.pack("<3f", 10, 20, 0.5))


def nested_list(depth):
    value = "%x"
    for _ in range(depth):
        value = [value]
    return fx(X, out(value))


def model_nested(depth):
    """A model document with a member nobody reads, so deep that the document has `depth` levels."""
    return changed("models/model.json", lambda content: content.rstrip()[:-1] + b', "zz": ' + b"["
                   * (depth - 1) + b"]" * (depth - 1) + b"}")


def json_values(text):
    """As the reader counts them: every number, text, literal, list and object; no keys."""
    def count(value):
        if isinstance(value, dict):
            return 1 + sum(map(count, value.values()))
        return 1 + sum(map(count, value)) if isinstance(value, list) else 1
    return count(json.loads(text))


def model_values(n):
    def change(content):
        text = content.rstrip()
        return text[:-1] + b', "zz": [' + b",".join([b"0"] * (n - json_values(text) - 1)) + b"]}"
    return changed("models/model.json", change)


def structure_nested(levels):
    """A model whose output is a tuple of one within a tuple of one ...: so many of them."""
    def change(content):
        document = json.loads(content)
        signature = document["graph_module"]["module_call_graph"][0]["signature"]
        version, tree = json.loads(signature["out_spec"])
        for _ in range(levels):
            tree = {"type": "builtins.tuple", "context": "null", "children_spec": [tree]}
        signature["out_spec"] = json.dumps([version, tree])
        return json.dumps(document).encode()
    return changed("models/model.json", change)


def fetching(n):
    return run("m", json.dumps({"inputs": {"x": [1.0]}, "outputs": ["x"] * n}))


def arrays(n):
    return run("m", many_members(n), [("Content-Type", "application/x-npz")])


def gzip_body(inner, n):
    """`inner`, gzipped to n bytes: a file name of the right length stands in the header."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packer.compress(inner) + packer.flush()
    tail = struct.pack("<II", zlib.crc32(inner), len(inner))
    name = n - 10 - 1 - len(data) - len(tail)
    assert name >= 0
    return b"\x1f\x8b\x08\x08" + bytes(5) + b"\x03" + b"n" * name + b"\0" + data + tail


def deflated(n, packed):
    """(raw deflate stream of n zeros, crc), as `packed` bytes: blocks of nothing fill it up."""
    packer, crc, piece, data = zlib.compressobj(9, zlib.DEFLATED, -15), 0, bytes(1 << 20), b""
    for at in range(0, n, len(piece)):
        part = piece[:n - at]
        data += packer.compress(part)
        crc = zlib.crc32(part, crc)
    data += packer.flush(zlib.Z_FULL_FLUSH)
    filler = (packed - len(data) - 5) // 5 * 5
    return data + b"\x00\x00\x00\xff\xff" * (filler // 5) + b"\x01\x00\x00\xff\xff", crc


def with_member(path, n, packed):
    """An archive of a linear model in which the member `path` is n zeros, deflated to about
    `packed` bytes."""
    data, crc = deflated(n, packed)
    locals_, centrals = b"", b""
    rows = [(name.encode(), content, len(content), zlib.crc32(content), 0)
            for name, content in members("dev_linear.pt2")]
    rows = [(name, data, n, crc, 8) if name.endswith(path.encode()) else row for row in rows
            for name in [row[0]]]
    for name, content, size, check, method in rows:
        common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, check, len(content), size, len(name), 0)
        centrals += (b"PK\x01\x02" + struct.pack("<H", 20) + common
                     + struct.pack("<HHHII", 0, 0, 0, 0, len(locals_)) + name)
        locals_ += b"PK\x03\x04" + common + name + content
    return locals_ + centrals + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(rows), len(rows),
                                                            len(centrals), len(locals_), 0)


def child(levels):
    return json.dumps(malformed_graphs.child(levels - 1))


def form(weight_file):
    body, headers = linear_form(weight_file)
    return graph("l", body, headers)


def shaped(shape):
    return run("m", json.dumps({"inputs": {"x": {"dtype": "uint8", "shape": shape, "b64": ""}}}))


def of_calls(n):
    """A graph whose nodes are of n calls of modules, at most 250 around each other."""
    stacks = [{f"{k}": ["m", "M"] for k in range(i, min(i + 250, n))} for i in range(0, n, 250)]
    return fx(X, *[{**call("torch.relu", "%x", name=f"n{i}"), "meta": {"nn_module_stack": stack}}
                   for i, stack in enumerate(stacks)], out("%n0"))


def objects(levels):
    """A run body of so many levels: those of the limit, and eight for a tensor's own lists."""
    n = levels - 2
    return '{"inputs": {"x": ' + '{"data": ' * n + "1" + "}" * n + "}}"


def rules(n, called):
    """A run with n rules that match nothing, and one for each graph that it calls."""
    nothing = {"match": {"name": "nothing"}, "optional": True}
    made = [{**nothing, "passthrough": 0}] * n + [{**nothing, "call": f"called-{i}"} for i in called]
    return json.dumps({"inputs": {"x": [1.0]}, "overrides": made})


def guarded(more):
    """A graph whose guards have 1 MiB, each with the byte at its end, and so many bytes more."""
    guards = ["1 > 0".ljust(1023)] * 1024
    guards[0] += " " * more
    leaves = {"tuple": ["*"]}
    signature = {"inputs": [{"kind": "user", "type": "Tensor"}], "outputs": [{"kind": "user"}],
                 "in_tree": {"tuple": [leaves, {"dict": {}}]}, "out_tree": leaves, "guards": guards}
    return fx(X, out({"$tuple": ["%x"]}), signature=signature)


def ranged(more):
    """The same for the sizes that have ranges."""
    ranges = {f"s{i:04d}".ljust(1023): [0, 9] for i in range(1024)}
    ranges["s1024".ljust(more)] = [0, 9]
    leaves = {"tuple": ["*"]}
    signature = {"inputs": [{"kind": "user", "type": "Tensor"}], "outputs": [{"kind": "user"}],
                 "in_tree": {"tuple": [leaves, {"dict": {}}]}, "out_tree": leaves, "ranges": ranges}
    if not more:
        del ranges["s1024"]
    return fx(X, out({"$tuple": ["%x"]}), signature=signature)


def fixed_rows():
    """(limit, request that is taken, its status, request that is refused, status, code, word); what
    makes a request is called when it is sent."""
    most = 1 << 20
    spaces = "{" + " " * (most - 11) + '"inputs":{}}'  # the inputs' two bytes do not count
    yield ("max_envelope", lambda: run("none", spaces), 200, lambda: run("none", " " + spaces), 413,
           "too_large", "1048576")
    patch = ("PATCH", "/v1/graphs/m")
    yield ("max_envelope", (*patch, padded('{"default_version": 1}', most).encode(), ()), 200,
           (*patch, padded('{"default_version": 1}', most + 1).encode(), ()), 413, "too_large", "1,048,576")
    yield ("max_nodes", lambda: graph("n", nodes(100000)), 201, lambda: graph("n", nodes(100001)), 413,
           "too_large", "100000 nodes")
    yield ("max_nodes", lambda: fetching(100000), 200, lambda: fetching(100001), 413, "too_large",
           "100000 nodes")
    yield ("max_module_calls", lambda: graph("n", of_calls(100000)), 201,
           lambda: graph("n", of_calls(100001)),
           413, "too_large", "100000 calls")
    yield ("max_tensors", lambda: arrays(100000), (400, "malformed"), lambda: arrays(100001), 413,
           "too_large", "100000")
    yield ("max_tensors", lambda: form(weights(100000)), 201, lambda: form(weights(100001)), 413, "too_large",
           "100000 tensors")
    yield ("max_numel", lambda: shaped([1 << 15, 1 << 16]), (400, "shape_mismatch"),
           lambda: shaped([(1 << 31) + 1]), 413, "too_large", "2147483648 elements")
    yield ("max_json_depth_model", lambda: graph("p", model_nested(160)), 201,
           lambda: graph("p", model_nested(161)), 413, "too_large", "160")
    yield ("max_json_values", lambda: graph("p", model_values(2000000)), 201,
           lambda: graph("p", model_values(2000001)), 413, "too_large", "2000000 values")
    yield ("max_nested_values", lambda: graph("v", nested_list(30)), 201, lambda: graph("v", nested_list(31)),
           413, "too_large", "32 deep")
    yield ("max_nested_values", lambda: graph("t", structure_nested(32)), 201,
           lambda: graph("t", structure_nested(33)), 413, "too_large", "32 levels")
    yield ("max_child_graphs", lambda: graph("c", child(16)), 201, lambda: graph("c", child(17)), 413,
           "too_large", "16 deep")
    yield ("max_archive_entries", lambda: graph("a", many_members(200000)), (415, "wrong_file"),
           lambda: graph("a", many_members(200001)), 413, "too_large", "200000")
    ratio = 2000000
    yield ("max_inflate_ratio", lambda: graph("w", with_member("weight_0", ratio, ratio // 100 + 10)), 201,
           lambda: graph("w", with_member("weight_0", ratio, ratio // 100 - 200)), 413, "too_large",
           "100 times")
    yield ("max_guards", lambda: graph("g", guarded(0)), 201, lambda: graph("g", guarded(1)), 413,
           "too_large", "1048576")
    yield ("max_guards", lambda: graph("g", ranged(0)), 201, lambda: graph("g", ranged(5)), 413,
           "too_large", "1048576")
    body, zipped = padded('{"inputs": {"x": [1.0]}}', 100000).encode(), [("Content-Encoding", "gzip")]
    yield ("max_inflate_ratio", lambda: run("m", gzip_body(body, 1000), zipped), 200,
           lambda: run("m", gzip_body(body, 999), zipped), 413, "too_large", "100 times")
    yield ("max_safetensors_header", lambda: form(header(10485760)), 201, lambda: form(header(10485761)), 413,
           "too_large", "10485760")
    yield ("max_rules", lambda: run("m", rules(256, [])), 200, lambda: run("m", rules(257, [])), 413,
           "too_large", "256 rules")
    yield ("max_called_graphs", lambda: run("m", rules(0, range(16))), (404, "not_found"),
           lambda: run("m", rules(0, range(17))), 413, "too_large", "16 graphs")
    one = fx(X, out("%x"))
    yield "max_name", lambda: graph("n" * 64, one), 201, lambda: graph("n" * 65, one), 400, "bad_value", "64"
    yield ("max_json_depth_run", lambda: run("m", objects(40)), (400, "bad_value"),
           lambda: run("m", objects(41)), 413, "too_large", "40")


def expanded(n):
    """A graph that reads and writes n floats, of which it makes one."""
    return fx(X, call("expand", "%x", n, op="call_method", name="e"), call("torch.neg", "%e"),
              call("torch.sum", "%n", name="s"), out("%s"))


def as_npy(name, n):
    """A run with n floats whose reply has as many: 128 bytes and four for each."""
    return "POST", f"/v1/graphs/{name}/run?as=npy", json.dumps({"inputs": {"x": [1.0] * n}}).encode(), ()


def strided(n):
    """An archive with a state that nothing reads: n times the same float."""
    def change(content):
        config = json.loads(content)
        entry = json.loads(json.dumps(next(row for row in config["config"].values()
                                           if row["tensor_meta"]["dtype"] == 7)))
        entry["tensor_meta"].update(sizes=[{"as_int": n}], strides=[{"as_int": 0}])
        config["config"]["unread"] = entry
        return json.dumps(config).encode()
    return archive_of([(name, change(content) if name.endswith("model_weights_config.json") else content)
                       for name, content in members("dev_linear.pt2")])


def flag_rows():
    """(limit, flags, graphs, request that is taken, its status, request that is refused, status,
    code, word)."""
    relu, one = fx(X, call("torch.relu", "%x"), out()), '{"inputs": {"x": [1.0]}}'
    yield ("max_upload_in_memory", ["--data", "data", "--max-upload-in-memory", "1000"], {},
           graph("m", padded(relu, 1000)), 201, graph("m", padded(relu, 1001)), 413, "too_large",
           "(--max-upload-in-memory)")
    zipped = [("Content-Encoding", "gzip")]
    pairs = [[send("m", gzip_body(padded(text, n).encode(), 500), zipped) for n in (1000, 1001)]
             for send, text in ((graph, relu), (run, one))]
    yield ("max_upload_in_memory", ["--data", "data", "--max-upload-in-memory", "1000"], {}, pairs[0][0], 201,
           pairs[0][1], 413, "too_large", "inflated (--max-upload-in-memory;")
    yield ("max_run_body", ["--max-run-body", "1000"], {"m": relu}, pairs[1][0], 200, pairs[1][1], 413,
           "too_large", "inflated (--max-run-body;")
    below, above = (graph("w", with_member("weight_0", n, 20000)) for n in (1000000, 1000001))
    yield ("max_upload", ["--max-upload", "1000000"], {}, below, 201, above, 413, "too_large",
           "inflate to more than 1000000 bytes (--max-upload)")
    yield ("max_graph_json", ["--max-graph-json", "900"], {}, graph("m", padded(relu, 900)), 201,
           graph("m", padded(relu, 901)), 413, "too_large", "(--max-graph-json)")
    yield ("max_body_budget", ["--max-body-budget", "1000"], {"m": relu}, run("m", padded(one, 1000)), 200,
           run("m", padded(one, 1001)), 413, "too_large", "(--max-body-budget,")
    yield ("max_body_budget", ["--max-body-budget", "1000"], {}, graph("m", padded(relu, 1000)), 201,
           graph("m", padded(relu, 1001)), 413, "too_large", "(--max-body-budget,")
    # programs place tensors at multiples of 64 bytes
    for mode, floats in (("eager", 24998), ("compiled", 24992)):
        below, above = (("POST", f"/v1/graphs/a/run?mode={mode}", one.encode(), ()),
                        ("POST", f"/v1/graphs/b/run?mode={mode}", one.encode(), ()))
        yield ("max_run_memory", ["--max-run-memory", "100000"],
               {"a": expanded(floats), "b": expanded(floats + 1)}, below, 200, above, 413, "too_large",
               "--max-run-memory")
        yield ("max_node_bytes", ["--max-node-bytes", "100000"], {"a": expanded(12500), "b": expanded(12501)},
               below, 200, above, 413, "too_large", "(--max-node-bytes,")
    strides = {"a": strided(25000), "b": strided(25001)}
    yield ("max_run_memory", ["--max-run-memory", "100000"], strides,
           ("GET", "/v1/graphs/a/weights", b"", ()), 200, ("GET", "/v1/graphs/b/weights", b"", ()), 413,
           "too_large", "(--max-run-memory,")
    below, above = ((lambda: graph("w", with_member("weight_0", 1 << 28, 2700000))),
                    (lambda: graph("w", with_member("weight_0", (1 << 28) + 1, 2700000))))
    yield "max_inflated", ["--max-upload", "1000000000"], {}, below, 201, above, 413, "too_large", "268435456"
    floats = [("POST", "/v1/graphs/m/run?as=npy", json.dumps({"inputs": {"x": [1.0] * n}}).encode(), ())
              for n in (468, 469)]
    yield ("max_response", ["--max-response", "2000"], {"m": relu}, floats[0], 200, floats[1], 413,
           "too_large", "(--max-response,")
    yield ("max_reply_budget", ["--max-reply-budget", "80128"], {"m": relu}, as_npy("m", 20000), 200,
           as_npy("m", 20001), 413, "too_large", "(--max-reply-budget,")
    deadlines = [("POST", f"/v1/graphs/m/run?deadline_ms={n}", one.encode(), ()) for n in (500, 501)]
    yield ("run_deadline_ms", ["--run-deadline-ms", "500"], {"m": relu}, deadlines[0], 200, deadlines[1], 400,
           "bad_value", "500")
    long, late = {"m": relu, "long": products(200)}, run("long", '{"inputs": {"x": [[0.001]]}}')
    yield ("run_deadline_ms", ["--run-deadline-ms", "500", "--no-warm-up"], long, deadlines[0], 200, late,
           504, "deadline", "")


def products(n):
    """A graph of n products of 700 rows and columns: 10 ms each, seconds in a sanitized build."""
    chain = [call("torch.matmul", f"%p{i - 1}" if i else "%e", "%e", name=f"p{i}") for i in range(n)]
    return fx(X, call("expand", "%x", 700, 700, op="call_method", name="e"), *chain,
              call("torch.sum", f"%p{n - 1}", name="s"), out("%s"))


def figures(server, *names):
    text = server.call("GET", "/metrics").body.decode()
    return [int(float(re.search(rf"^fxserve_{name} (\S+)", text, re.M)[1])) for name in names]


def kept(binary, flag, n_bytes, evictions, fill):
    """What `fill` leaves behind stays when it is as large as the limit; one byte less, and one of
    it leaves. Requests are answered all the same."""
    found = []
    for less in (None, 0, 1):
        limit = [] if less is None else [flag, str(found[0][0] - less)]
        server = Server(binary, ["--data", "none", "--quiet", "--no-warm-up", *limit]).start()
        try:
            fill(server)
            found.append(figures(server, n_bytes, evictions))
        finally:
            server.clean_up()
    return ("" if [n for _, n in found] == [0, 0, 1] and found[2][0] < found[1][0] == found[0][0]
            else f"bytes and evictions without a limit, at it, below it: {found}")


def demand(text):
    if text:
        raise Failed(text)


def two_graphs(server):
    for i in range(2):
        demand(problem(server, graph(f"g{i}", fx(X, call("torch.relu", "%x", name=f"n{i}"), out(f"%n{i}"))),
                       201))
        demand(problem(server, run(f"g{i}", '{"inputs": {"x": [1.0]}}'), 200))


def two_programs(server):
    demand(problem(server, graph("g", fx(X, call("torch.relu", "%x"), out())), 201))
    for data in ([1.0], [1.0, 2.0]):
        demand(problem(server, ("POST", "/v1/graphs/g/run?mode=compiled",
                                json.dumps({"inputs": {"x": data}}).encode(), ()), 200))


def two_profiles(server):
    for _ in range(2):
        demand(problem(server, ("POST", "/v1/run",
                                json.dumps({"graph": json.loads(fx(X, call("torch.relu", "%x"), out())),
                                            "inputs": {"x": [1.0]}, "mode": "eager"}).encode(), ()), 200))


def until(server, name, value):
    end = time.monotonic() + 20
    while figures(server, name) != [value]:
        if time.monotonic() > end:
            raise Failed(f"fxserve_{name} is {figures(server, name)}, not {value}")
        time.sleep(0.01)


def drained(binary):
    """A run that takes seconds is cancelled when --drain-s is over; one that is over before is
    answered. A connection without a request is nothing to wait for, with 0 seconds either."""
    slow = b'{"inputs": {"x": [[0.001]]}}'
    server = Server(binary, ["--data", "none", "--quiet", "--drain-s", "0"]).start()
    try:
        with server.connect(60) as connection:
            connection.request("GET", "/livez")
            if (reply := connection.reply()).status != 200 or (problems := server.stop(0)):
                return f"--drain-s 0: {reply.short()}, {problems}"
    finally:
        server.clean_up()
    for seconds, lasting, status, least, most in (("30", 1, 200, 0, 30), ("1", 20, 499, 1, 15)):
        server = Server(binary,
                        ["--data", "none", "--workers", "1", "--no-warm-up", "--drain-s", seconds]).start()
        try:
            demand(problem(server, graph("one", products(1)), 201))
            began = time.monotonic()
            demand(problem(server, ("POST", "/v1/graphs/one/run?mode=eager", slow, ()), 200))
            n = math.ceil(lasting / (time.monotonic() - began))
            demand(problem(server, graph("long", products(n)), 201))
            with server.connect(60) as connection:
                connection.request("POST", "/v1/graphs/long/run?mode=eager", slow)
                until(server, "running", 1)
                began = time.monotonic()
                problems = server.stop(0 if status == 200 else 1)
                took = time.monotonic() - began
                reply = connection.reply()
            if problems or reply.status != status or not least <= took < most:
                return (f"--drain-s {seconds}: ended after {took:.1f} s with {problems}; the run: "
                        f"{reply.short()}")
        finally:
            server.clean_up()
    return ""


def together(binary):
    """While one connection holds 600,000 bytes of a body, another may send what is left of the
    budget, and not a byte more."""
    server = Server(binary, ["--data", "none", "--quiet", "--max-body-budget", "1000000"]).start()
    small = '{"inputs": {"x": [1.0]}}'
    try:
        demand(problem(server, graph("m", fx(X, call("torch.relu", "%x"), out())), 201))
        with server.connect(60) as holder:
            body = padded(small, 600001).encode()
            holder.request("POST", "/v1/graphs/m/run", body[:-1], [("Content-Length", "600001")])
            until(server, "body_bytes", 600000)
            demand(problem(server, run("m", padded(small, 400000)), 200))
            demand(problem(server, run("m", padded(small, 400001)), 503, "busy", "(--max-body-budget)"))
            holder.send(body[-1:])
            if holder.reply().status != 200:
                return "the body that came first was not taken"
        until(server, "body_bytes", 0)
    finally:
        server.clean_up()
    return ""


def untaken(binary):
    """While a client does not take its large reply, another may have what is left of the budget,
    and not a byte more; small replies are not counted."""
    server = Server(binary,
                    ["--data", "none", "--quiet", "--max-reply-budget", str(60000128 + 80128)]).start()
    large = {"format": "fx/1", "nodes": [call("torch.ones", [15000000], name="r"), out("%r")]}
    try:
        demand(problem(server, graph("large", json.dumps(large)), 201))
        demand(problem(server, graph("m", fx(X, call("torch.relu", "%x"), out())), 201))
        with server.connect(60) as holder:
            holder.request("POST", "/v1/graphs/large/run?as=npy", b'{"inputs": {}}')
            end = time.monotonic() + 20
            while (b'fxserve_runs_total{graph="large"} 1' not in server.call("GET", "/metrics").body
                   and time.monotonic() < end):
                time.sleep(0.01)
            demand(problem(server, as_npy("m", 20000), 200))
            demand(problem(server, as_npy("m", 20001), 503, "busy", "(--max-reply-budget)"))
            demand(problem(server, as_npy("m", 16000), 200))
            if len(holder.reply().body) != 60000128:
                return "the reply that came first is not whole"
        while problem(server, as_npy("m", 20001), 200) and time.monotonic() < end + 20:
            time.sleep(0.01)
        demand(problem(server, as_npy("m", 20001), 200))
    finally:
        server.clean_up()
    return ""


def be_quick(server, name, body):
    """Runs a graph until its program is built and known to be quick: the first runs are eager, and
    one that the kernel has interrupted counts in the next ones' prediction."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        demand(problem(server, run(name, body), 200))
        programs = json.loads(server.call("GET", f"/v1/graphs/{name}").body)["programs"]
        if programs and programs[0]["runs"] >= 8 and programs[0]["run_us"] < 50:
            return
    raise Failed(f"{name} has no quick program: {programs}")


def inline(binary):
    """A run of 4,096 bytes is answered while the only worker and the express thread are busy; one more
    byte, and it waits for them."""
    server = Server(binary, ["--data", "none", "--quiet", "--workers", "1", "--no-warm-up"]).start()
    with open(os.path.join(HERE, "endless.fx.json"), encoding="utf-8") as file:
        endless = file.read()
    try:
        demand(problem(server, graph("express", endless), 201))
        demand(problem(server, run("express", '{"inputs": {"x": -1.0}}'), 200))
        demand(problem(server, graph("long", products(2000)), 201))
        demand(problem(server, graph("m", fx(X, call("torch.relu", "%x"), out())), 201))
        small = '{"inputs": {"x": [1.0]}}'
        be_quick(server, "m", small)
        with server.connect(60) as busy, server.connect(60) as express, server.connect(60) as waiting:
            busy.request("POST", "/v1/graphs/long/run?mode=eager", b'{"inputs": {"x": [[0.001]]}}')
            until(server, "running", 1)
            express.request("POST", "/v1/graphs/express/run", b'{"inputs": {"x": 1.0}}')
            until(server, "running", 2)
            demand(problem(server, run("m", padded(small, 4096)), 200))
            waiting.request("POST", "/v1/graphs/m/run", padded(small, 4097).encode())
            until(server, "queue_depth", 1)
            if figures(server, "running") != [2]:
                return "the long run ended before the other one was answered"
            express.close()
            busy.close()
            if waiting.reply().status != 200:
                return "the run that waited was not answered once the client of the long one had left"
    finally:
        server.clean_up()
    return ""


def batches(binary):
    """At most four runs are one; with 1, none are."""
    most = {}
    for limit in ("4", "1"):
        server = Server(binary, ["--data", "none", "--workers", "1", "--no-inline", "--quiet",
                                 "--max-batch", limit]).start()
        try:
            batching.upload(server)
            batching.Clients(server, 100).run()
            most[limit] = max([share[0] for share in batching.batches_of(server)], default=0)
        finally:
            server.clean_up()
    return "" if 2 <= most["4"] <= 4 and most["1"] == 0 else str(most)


def searches(binary):
    """A search that is given no time leaves float32, and says why; a second one has enough of it."""
    x = tolerance.samples_of(1)[0]
    for seconds, late in (("0", True), ("600000", False)):
        server = Server(binary, ["--data", "none", "--quiet", "--search-deadline-ms", seconds]).start()
        try:
            tolerance.put(server, "m", 2)
            _, profile = tolerance.run(server, "m", x, tolerance=1)
            why = profile["tolerance"]["why"] or ""
        except tolerance.Failed as problem:
            return str(problem)
        finally:
            server.stop()
            server.clean_up()
        if ("the search took too long" in why) != late:
            return f"--search-deadline-ms {seconds}: {profile['tolerance']}"
    return ""


CASES = {
    "search_deadline_ms": searches,
    "max_batch": batches,
    "max_graph_memory": lambda binary: kept(binary, "--max-graph-memory", "decoded_graph_bytes",
                                            "graph_evictions_total", two_graphs),
    "max_program_memory": lambda binary: kept(binary, "--max-program-memory", "program_bytes",
                                              "program_evictions_total", two_programs),
    "max_profile_memory": lambda binary: kept(binary, "--max-profile-memory", "profile_bytes",
                                              "profile_evictions_total", two_profiles),
    "max_body_budget": together,
    "max_reply_budget": untaken,
    "drain_s": drained,
    "max_inline_body": inline,
    "max_traces": tracing.room,
}


def problem(server, request, status, code=None, word=""):
    method, target, body, headers = request() if callable(request) else request
    reply = server.call(method, target, body, headers, 60)
    if (reply.status, reply.code()) != (status, code) or word.encode() not in reply.body:
        return f"expected {status} {code or ''} {word!r}: {reply.short()}"
    return ""


def flags_of_limits():
    """{limit: its flag, or NULL}"""
    with open(os.path.join(ROOT, "core/base/limits.def"), encoding="utf-8") as file:
        return dict(re.findall(r'^LIMIT\((\w+), \d+, (NULL|"[a-z-]+")', file.read(), re.M))


def called(limit):
    """What a refusal calls it: by its flag, or as GET /v1 does."""
    flag = flags_of_limits()[limit]
    return limit if flag == "NULL" else "--" + flag.strip('"')


def pair(tally, server, limit, taken, status, refused, *wanted):
    try:
        tally.check(f"{limit}, just below",
                    problem(server, taken, *(status if isinstance(status, tuple) else (status,))))
        tally.check(f"{limit}, one more", problem(server, refused, *wanted))
        if 413 in wanted:
            tally.check(f"{limit}, named", problem(server, refused, *wanted[:2], called(limit)))
    except (Failed, OSError) as failure:
        tally.bad(limit, str(failure))


def served(tally, binary, flags, graphs, rows):
    server = Server(binary, ["--quiet", *([] if "--data" in flags else ["--data", "none"]), *flags]).start()
    for name, body in graphs.items():
        tally.check(name, problem(server, graph(name, body), 201))
    for row in rows:
        pair(tally, server, *row)
    tally.check("the server's end", "\n".join(server.stop()))
    server.clean_up()


def missing():
    """What is wrong with the tables above: limits nobody hits, and rows of limits that are gone."""
    flags = flags_of_limits()
    named = {row[0] for row in fixed_rows()} | {row[0] for row in flag_rows()}
    named |= set(CASES) | set(SCENARIOS) | set(UNIT_TESTS)
    problems = [f"no scenario hits the limit {limit}: it wants a row in limits.py" for limit in flags
                if limit not in named]
    problems += [f"limits.py names {limit}, which limits.def does not have"
                 for limit in sorted(named - set(flags))]
    for limit, scenario in SCENARIOS.items():
        flag, path = flags.get(limit, "NULL").strip('"'), os.path.join(HERE, scenario + ".txt")
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        if not text or (flag != "NULL" and f"--{flag} " not in text):
            problems.append(f"{scenario} does not set {limit}")
    for limit, path in UNIT_TESTS.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            if f"limits.{limit}" not in file.read():
                problems.append(f"{path} does not set {limit}")
    return problems


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: limits.py FXSERVE [LIMIT]")
        return 2
    tally, binary = Tally(), sys.argv[1]

    def wanted(limit):
        return len(sys.argv) == 2 or limit == sys.argv[2]

    for limit, flags, graphs, *row in flag_rows():
        if wanted(limit):
            served(tally, binary, flags, graphs, [(limit, *row)])
    for limit, case in CASES.items():
        if wanted(limit):
            try:
                tally.check(limit, case(binary))
            except (Failed, OSError) as failure:
                tally.bad(limit, str(failure))
    served(tally, binary, [], {"m": fx(X, out("%x")), "none": fx(call("torch.ones", [2]), out())},
           (row for row in fixed_rows() if wanted(row[0])))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
