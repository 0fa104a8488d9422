# SPDX-License-Identifier: Apache-2.0
"""Near --max-memory caches leave, then uploads are refused, then runs: memory.py FXSERVE.

Each rung is reached from below and left again. What a client leaves in caches holds none of them.
Not for sanitized builds, whose freed memory stays with the process.
"""
import json
import struct
import sys
import time

from service import Failed, Server, Tally, multipart, tensor_of, write_safetensors

MIB = 1 << 20
ROOM, PIECE = 400 * MIB, 8 * MIB
N = PIECE // 4
RUN = json.dumps({"inputs": {"x": [1.0]}, "keep": "all"}).encode()


def node(op, name, target, *args):
    return {"op": op, "name": name, "target": target, "args": list(args)}


def wide():
    """A result of PIECE bytes, of which one number is returned."""
    return json.dumps({"format": "fx/1", "nodes": [
        node("placeholder", "x", "x"), node("call_method", "e", "expand", "%x", N),
        node("call_function", "y", "torch.neg", "%e"), node("call_function", "s", "torch.sum", "%y"),
        node("output", "output", "output", "%s")]}).encode()


def stateful():
    """A buffer of PIECE bytes that each run writes."""
    state = {"kind": "state", "as": "BUFFER"}
    graph = {"format": "fx/1", "nodes": [
        node("placeholder", "b_all", "b_all"), node("placeholder", "x", "x"),
        node("call_function", "add_", "torch.ops.aten.add_.Tensor", "%b_all", 1),
        node("call_function", "y", "torch.ops.aten.neg.default", "%x"),
        node("output", "output", "output", {"$tuple": ["%y"]})],
        "state": {"all": {"dtype": "float32", "shape": [N], "written": True}},
        "signature": {"inputs": [{**state, "target": "all"}, {"kind": "user", "type": "Tensor"}],
                      "outputs": [{"kind": "user"}], "in_tree": {"tuple": [{"tuple": ["*"]}, {"dict": {}}]},
                      "out_tree": {"tuple": ["*"]}, "argument_names": ["x"], "ir": "TRAINING"}}
    return multipart([("graph", json.dumps(graph).encode()),
                      ("weights", write_safetensors({"all": tensor_of("float32", [0.0] * N)}))])


def weights(number):
    """An upload that stays in memory with its PIECE bytes."""
    graph = {"format": "fx/1", "nodes": [
        node("placeholder", "x", "x"), node("get_attr", "w", "w"),
        node("call_function", "s", "torch.sum", "%w"), node("call_function", "y", "torch.mul", "%x", "%s"),
        node("output", "output", "output", "%y")]}
    head = json.dumps({"w": {"dtype": "F32", "shape": [N], "data_offsets": [0, PIECE]}}).encode()
    head += b" " * (-len(head) % 8)
    data = struct.pack("<Qd", number, 1.0) * (PIECE // 16)
    return multipart([("graph", json.dumps(graph).encode()),
                      ("weights", struct.pack("<Q", len(head)) + head + data)])


def gauge(server, name):
    text = server.call("GET", "/metrics").body.decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"fxserve_{name} ")))


def wait_for(server, rungs, seconds=20):
    end = time.monotonic() + seconds
    while (rung := gauge(server, "memory_rung")) not in rungs:
        if time.monotonic() > end:
            raise Failed(f"rung {rung} after {seconds} s, with {gauge(server, 'memory_bytes') / MIB:.0f} MiB")
        time.sleep(0.2)
    return rung


def put(server, name, form):
    return server.call("PUT", f"/v1/graphs/{name}", form[0], [("Content-Type", form[1])])


def run(server, name="wide", body=b'{"inputs": {"x": [1.0]}}'):
    return server.call("POST", f"/v1/graphs/{name}/run", body)


def expect(reply, *statuses):
    if reply.status not in statuses:
        raise Failed(reply.short())
    return reply


def caches_leave(server):
    """Kept values of many runs: they would fill the memory twice."""
    seen = set()
    for _ in range(2 * ROOM // PIECE):
        expect(run(server, body=RUN), 200)
        time.sleep(0.04)
        seen.add(gauge(server, "memory_rung"))
    if gauge(server, "kept_evictions_total") == 0 or seen == {0}:
        raise Failed("no value left: the memory was not filled")
    wait_for(server, {0})
    expect(run(server), 200)


def uploads_wait(server):
    """Returns how many graphs were taken."""
    limit = gauge(server, "memory_limit_bytes")
    for i in range(2 * ROOM // PIECE):
        reply = put(server, f"w{i}", weights(i))
        if reply.status == 503:
            break
        expect(reply, 201)
        time.sleep(0.15)
    else:
        raise Failed("no upload was refused")
    if "--max-memory" not in reply.json()["error"] or reply.header("Retry-After") is None:
        raise Failed(reply.short())
    share = gauge(server, "memory_bytes") / limit
    if not 0.85 <= share <= 1:
        raise Failed(f"refused at {share:.2f} of the limit")
    wait_for(server, {2})
    expect(run(server), 200)
    expect(server.call("GET", "/v1/graphs"), 200)
    return i


def runs_wait(server):
    """State of sessions, which no sweep can drop. Returns the sessions."""
    sessions = []
    for _ in range(ROOM // PIECE):
        reply = server.call("POST", "/v1/graphs/state/sessions")
        if reply.status != 503:
            sessions.append(expect(reply, 201).json()["id"])
            reply = server.call("POST", f"/v1/sessions/{sessions[-1]}/run", b'{"inputs": {"x": [1.0]}}')
        if reply.status == 503:
            break
        expect(reply, 200)
        time.sleep(0.15)
    else:
        raise Failed("no run was refused")
    if "runs are refused" not in reply.json()["error"] or reply.header("Retry-After") is None:
        raise Failed(reply.short())
    expect(run(server), 503)
    expect(put(server, "more", weights(1000)), 503)
    expect(server.call("GET", "/readyz"), 200)
    return sessions


def all_comes_back(server, sessions, n_graphs):
    for session in sessions:
        expect(server.call("DELETE", f"/v1/sessions/{session}"), 204)
    for i in range(n_graphs):
        expect(server.call("DELETE", f"/v1/graphs/w{i}"), 204)
        if i == n_graphs // 4:
            wait_for(server, {0, 1, 2})
            expect(run(server), 200)
    wait_for(server, {0})
    expect(put(server, "more", weights(1000)), 201)
    expect(run(server, "more"), 200)


def base_bytes(binary):
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    prepare(server)
    time.sleep(1)
    n = gauge(server, "memory_bytes")
    problems = server.stop()
    server.clean_up()
    if problems:
        raise Failed("\n".join(problems))
    return int(n)


def prepare(server):
    expect(put(server, "wide", (wide(), "application/json")), 201)
    expect(put(server, "state", stateful()), 201)
    for _ in range(3):
        expect(run(server), 200)


def main():
    if len(sys.argv) != 2:
        print("usage: memory.py FXSERVE")
        return 2
    tally = Tally()
    flags = ["--data", "none", "--quiet", "--workers", "2", "--max-kept-bytes",
             str(4 * ROOM), "--max-kept-runs", "1000"]
    server = Server(sys.argv[1], [*flags, "--max-memory", str(base_bytes(sys.argv[1]) + ROOM)]).start()
    steps, results = [("below all rungs all is taken", lambda: prepare(server)),
                      ("kept values of one client leave", lambda: caches_leave(server)),
                      ("uploads are refused and runs go on", lambda: uploads_wait(server)),
                      ("runs are refused and all else goes on", lambda: runs_wait(server)),
                      ("all comes back", lambda: all_comes_back(server, results[3], results[2]))], []
    try:
        for name, step in steps:
            results.append(step())
            tally.check(name, "")
    except Failed as problem:
        tally.check(steps[len(results)][0], str(problem))
    finally:
        tally.check("the server's end", "\n".join(server.stop()))
        server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
