# SPDX-License-Identifier: Apache-2.0
"""The limits of core/base/limits.def, each hit and missed by one: limits.py FXSERVE.

rows() has those without a flag, which need large bodies: (limit, what it is, request that is taken, request that is refused, status, code, word). SCENARIOS names the
scenario that lowers each limit with a flag. run.py checks that every limit is in one of the two, so a new limit needs its row here.
"""
import json
import struct
import sys
import zlib

from malformed_files import changed, linear_form, many_members, members, safetensors
import malformed_graphs
from malformed_graphs import X, call, out
from service import Failed, Server, Tally

SCENARIOS = {
    "max_upload": "70-limits-bodies", "max_upload_in_memory": "85-limits-memory", "max_run_body": "70-limits-bodies", "max_graph_json": "85-limits-memory",
    "max_body_budget": "85-limits-budget", "max_run_memory": "85-limits-memory", "max_node_flops": "74-node-limits", "max_node_bytes": "85-limits-memory",
    "max_graph_memory": "85-limits-kept", "max_program_memory": "85-limits-kept", "max_response": "85-limits-memory", "max_connections": "40-door-connections",
    "max_queue": "73-deadline-and-queue", "max_queue_bytes": "75-queue-bytes", "max_profiles": "41-profile-ring", "run_deadline_ms": "85-limits-deadline",
    "header_timeout_s": "40-door-slow", "body_grace_s": "40-door-slow", "min_body_rate": "40-door-slow", "max_connections_per_address": "40-door-limits",
    "max_warm_up": "96-warm-up", "max_uri": "40-door-limits", "max_headers": "40-door-limits", "max_wrong_tokens": "40-door-tokens", "idle_timeout_s": "40-door-slow", "drain_delay_s": "74-drain-delay", "drain_s": "85-limits-drain",
}


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
    return fx(X, *[call("torch.relu", f"%n{i - 1}" if i else "%x", name=f"n{i}") for i in range(n - 2)], out(f"%n{n - 3}"))


def weights(n):
    """A weight file of n tensors: two that the graph wants, the others empty."""
    good = {"lin.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}, "lin.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}
    return safetensors({**good, **{f"w{i}": {"dtype": "U8", "shape": [0], "data_offsets": [12, 12]} for i in range(n - 2)}}, struct.pack("<3f", 10, 20, 0.5))


def header(n):
    good = {"lin.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}, "lin.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}
    return safetensors(json.dumps(good).encode().ljust(n), struct.pack("<3f", 10, 20, 0.5))


def nested_list(depth):
    value = "%x"
    for _ in range(depth):
        value = [value]
    return fx(X, out(value))


def model_nested(depth):
    """A model document with a member nobody reads, so deep that the document has `depth` levels."""
    return changed("models/model.json", lambda content: content.rstrip()[:-1] + b', "zz": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}")


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
    """An archive of a linear model in which the member `path` is n zeros, deflated to about `packed` bytes."""
    data, crc = deflated(n, packed)
    locals_, centrals = b"", b""
    rows = [(name.encode(), content, len(content), zlib.crc32(content), 0) for name, content in members("dev_linear.pt2")]
    rows = [(name, data, n, crc, 8) if name.endswith(path.encode()) else row for row in rows for name in [row[0]]]
    for name, content, size, check, method in rows:
        common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, check, len(content), size, len(name), 0)
        centrals += b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(locals_)) + name
        locals_ += b"PK\x03\x04" + common + name + content
    return locals_ + centrals + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(rows), len(rows), len(centrals), len(locals_), 0)


def child(levels):
    return json.dumps(malformed_graphs.child(levels - 1))


def form(weight_file):
    body, headers = linear_form(weight_file)
    return graph("l", body, headers)


def shaped(shape):
    return run("m", json.dumps({"inputs": {"x": {"dtype": "uint8", "shape": shape, "b64": ""}}}))


def objects(levels):
    """A run body of so many levels: those of the limit, and eight for a tensor's own lists."""
    n = levels - 2
    return '{"inputs": {"x": ' + '{"data": ' * n + "1" + "}" * n + "}}"


def rows():
    """(limit, taken, its status, refused, its status, code, word)."""
    most = 1 << 20
    data = len(" {}") + len("}")  # neither the inputs nor the last brace count
    yield "max_envelope", run("none", padded('{"inputs": {}}', most + data)), 200, run("none", padded('{"inputs": {}}', most + data + 1)), 413, "too_large", "1048576"
    patch = ("PATCH", "/v1/graphs/m")
    yield "max_envelope", (*patch, padded('{"default_version": 1}', most).encode(), ()), 200, (*patch, padded('{"default_version": 1}', most + 1).encode(), ()), 413, "too_large", "1,048,576"
    yield "max_nodes", graph("n", nodes(100000)), 201, graph("n", nodes(100001)), 413, "too_large", "100000 nodes"
    yield "max_tensors", form(weights(100000)), 201, form(weights(100001)), 413, "too_large", "100000 tensors"
    yield "max_numel", shaped([1 << 15, 1 << 16]), (400, "shape_mismatch"), shaped([(1 << 31) + 1]), 413, "too_large", "2147483648 elements"
    yield "max_json_depth_model", graph("p", model_nested(160)), 201, graph("p", model_nested(161)), 413, "too_large", "160"
    yield "max_json_values", graph("p", model_values(2000000)), 201, graph("p", model_values(2000001)), 413, "too_large", "2000000 values"
    yield "max_nested_values", graph("v", nested_list(30)), 201, graph("v", nested_list(31)), 413, "too_large", "32 deep"
    yield "max_child_graphs", graph("c", child(16)), 201, graph("c", child(17)), 413, "too_large", "16 deep"
    yield "max_archive_entries", graph("a", many_members(200000)), (415, "wrong_file"), graph("a", many_members(200001)), 413, "too_large", "200000"
    yield "max_inflated", graph("w", with_member("weight_0", 1 << 28, 2700000)), 201, graph("w", with_member("weight_0", (1 << 28) + 1, 2700000)), 413, "too_large", "268435456"
    ratio = 2000000
    yield "max_inflate_ratio", graph("w", with_member("weight_0", ratio, ratio // 100 + 10)), 201, graph("w", with_member("weight_0", ratio, ratio // 100 - 200)), 413, "too_large", "100 times"
    body, zipped = padded('{"inputs": {"x": [1.0]}}', 100000).encode(), [("Content-Encoding", "gzip")]
    yield "max_inflate_ratio", run("m", gzip_body(body, 1000), zipped), 200, run("m", gzip_body(body, 999), zipped), 413, "too_large", "100 times"
    yield "max_safetensors_header", form(header(10485760)), 201, form(header(10485761)), 413, "too_large", "10485760"
    one = fx(X, out("%x"))
    yield "max_name", graph("n" * 64, one), 201, graph("n" * 65, one), 400, "bad_value", "64"
    yield "max_json_depth_run", run("m", objects(40)), (400, "bad_value"), run("m", objects(41)), 413, "too_large", "40"


def problem(server, request, status, code=None, word=""):
    method, target, body, headers = request
    reply = server.call(method, target, body, headers, 60)
    if (reply.status, reply.code()) != (status, code) or word.encode() not in reply.body:
        return f"expected {status} {code or ''} {word!r}: {reply.short()}"
    return ""


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: limits.py FXSERVE [LIMIT]")
        return 2
    tally, server = Tally(), Server(sys.argv[1], ["--data", "none", "--quiet"]).start()
    for name, body in (("m", fx(X, out("%x"))), ("none", fx(call("torch.ones", [2]), out()))):
        tally.check(name, problem(server, graph(name, body), 201))
    for limit, taken, status, refused, *wanted in rows():
        if limit not in sys.argv[2:] and len(sys.argv) == 3:
            continue
        try:
            tally.check(f"{limit}, just below", problem(server, taken, *(status if isinstance(status, tuple) else (status,))))
            tally.check(f"{limit}, one more", problem(server, refused, *wanted))
        except (Failed, OSError) as failure:
            tally.bad(limit, str(failure))
    tally.check("the server's end", "\n".join(server.stop()))
    server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
