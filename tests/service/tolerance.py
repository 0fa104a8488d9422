# SPDX-License-Identifier: Apache-2.0
"""Runs within a tolerance: which precisions are chosen, what is said of them, what a restart keeps.

    python3 tests/service/tolerance.py FXSERVE

The graph has three products of one size. What the second gives is enlarged before a sine, so that its
rounding costs much, and that of the third little. The last line is `N passed, N failed`.
"""
import array
import glob
import hashlib
import json
import math
import os
import random
import re
import sys
import tempfile
import threading
import time

from service import Server, Tally, Tensor, model_file, multipart, write_safetensors

WIDTH, WITHIN = 384, 0.02
RECORD_LINES = 65536  # TUNE_MAX_LINES of core/ops/tune.h


class Failed(Exception):
    pass


def expect(good, problem):
    if not good:
        raise Failed(problem)


# ---- the graph ---------------------------------------------------------------------------------
def call(name, target, *arguments):
    return {"op": "call_function", "name": name, "target": target, "args": list(arguments)}


def graph():
    linear = "torch.nn.functional.linear"
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             *({"op": "get_attr", "name": f"w{i}", "target": f"w{i}"} for i in range(3)),
             call("first", linear, "%x", "%w0"), call("tanh", "torch.tanh", "%first"),
             call("second", linear, "%tanh", "%w1"), call("large", "_operator.mul", "%second", 40.0),
             call("sine", "torch.sin", "%large"), call("third", linear, "%sine", "%w2"),
             {"op": "output", "name": "output", "target": "output", "args": ["%third"]}]
    return json.dumps({"format": "fx/1", "nodes": nodes}).encode()


def floats(shape, values):
    return Tensor("float32", shape, array.array("f", values).tobytes())


def weights(seed):
    chance = random.Random(seed)
    return write_safetensors({f"w{i}": floats([WIDTH, WIDTH],
                                              [chance.gauss(0, WIDTH ** -0.5) for _ in range(WIDTH ** 2)])
                              for i in range(3)})


def samples_of(n):
    chance = random.Random(7)
    return [[chance.gauss(0, 1) for _ in range(WIDTH)] for _ in range(n)]


def put(server, name, n_samples, seed=1):
    parts = [("graph", graph()), ("weights", weights(seed))]
    if n_samples > 0:
        parts.append(("samples", write_safetensors({f"{i}.inputs.x": floats([1, WIDTH], x)
                                                    for i, x in enumerate(samples_of(n_samples))})))
    body, content_type = multipart(parts)
    reply = server.call("PUT", f"/v1/graphs/{name}", body, [("Content-Type", content_type)])
    expect(reply.status in (200, 201), reply.short())


# ---- runs --------------------------------------------------------------------------------------
def asked(server, name, x, **options):
    body = json.dumps({"inputs": {"x": [x]}, "profile": True, **options}).encode()
    return server.call("POST", f"/v1/graphs/{name}/run", body)


def run(server, name, x, **options):
    """(numbers, profile)"""
    reply = asked(server, name, x, **options)
    expect(reply.status == 200, reply.short())
    return reply.json()["outputs"][0]["data"][0], reply.json()["profile"]


def chosen(profile):
    return {node["node"]: node["precision"] for node in profile["tolerance"]["nodes"]}


def searches(server):
    text = server.call("GET", "/metrics").body.decode()
    return int(re.search(r"^fxserve_tolerance_searches_total (\d+)", text, re.M)[1])


def error_of(got, want):
    return max(abs(a - b) for a, b in zip(got, want)) / max(1, *map(abs, want))


# ---- checks ------------------------------------------------------------------------------------
def one_search(server, xs):
    """Several that ask at once wait for one search."""
    threads = [threading.Thread(target=asked, args=(server, "m", xs[0]), kwargs={"tolerance": WITHIN})
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(searches(server) == 1, f"{searches(server)} searches")
    run(server, "m", xs[1], tolerance=WITHIN * 1.4)
    expect(searches(server) == 1, "a tolerance of the same bucket is searched for again")


def by_sensitivity(server, xs):
    _, profile = run(server, "m", xs[0], tolerance=WITHIN)
    by_node = chosen(profile)
    expect(by_node["second"] == "f32" and by_node["third"] != "f32", f"chosen is {profile['tolerance']}")
    rows = {name: row["kernel"] for row in profile["nodes"] for name in row.get("nodes", [row.get("node")])}
    expect(rows["third"].startswith(by_node["third"]), f"kernels are {rows}")
    _, wide = run(server, "m", xs[0], tolerance=1)
    expect(chosen(wide) != by_node and wide["program"] != profile["program"], "a wide one changes nothing")
    expect(chosen(wide)["second"] != "f32", f"within 1 it chooses {wide['tolerance']}")
    listed = server.call("GET", "/v1/graphs/m").json()["programs"]
    told = {program["id"]: program.get("tolerance") for program in listed}
    expect(told[profile["program"]] == profile["tolerance"], f"programs say {told}")
    text = server.call("GET", f"/v1/profiles/{wide['id']}?form=text").body.decode()
    expect("within 1: error" in text and "second" in text, text)


def sum_of_products(server, name, scale):
    """scale * (first + second + third + 2 * large), each of them a product of x with weights of its own."""
    linear, parts = "torch.nn.functional.linear", ("first", "second", "third", "large")
    nodes = [{"op": "placeholder", "name": "x", "target": "x"},
             *({"op": "get_attr", "name": f"w_{part}", "target": f"w_{part}"} for part in parts),
             *(call(part, linear, "%x", f"%w_{part}") for part in parts),
             call("twice", "_operator.mul", "%large", 2.0), call("a", "_operator.add", "%first", "%second"),
             call("b", "_operator.add", "%a", "%third"), call("c", "_operator.add", "%b", "%twice"),
             call("d", "_operator.mul", "%c", scale),
             {"op": "output", "name": "output", "target": "output", "args": ["%d"]}]
    chance = random.Random(3)
    tensors = {f"w_{part}": floats([WIDTH, WIDTH],
                                   [chance.gauss(0, WIDTH ** -0.5) for _ in range(WIDTH ** 2)])
               for part in parts}
    samples = {f"{i}.inputs.x": floats([1, WIDTH], x) for i, x in enumerate(samples_of(7))}
    body, content_type = multipart([("graph", json.dumps({"format": "fx/1", "nodes": nodes}).encode()),
                                    ("weights", write_safetensors(tensors)),
                                    ("samples", write_safetensors(samples))])
    reply = server.call("PUT", f"/v1/graphs/{name}", body, [("Content-Type", content_type)])
    expect(reply.status in (200, 201), reply.short())


def cheapest_by_sensitivity(server, xs):
    """Products that bring little error for the time they save go first: the tolerance is such that the
    three small ones fit, or the large one alone. Times may be wrong on a busy machine, but not always."""
    within = 1e-3
    sum_of_products(server, "sum", 0.01)
    errors = [node["error"] for tolerance in (0.5, within, within / 2, within / 5)
              for node in run(server, "sum", xs[0], tolerance=tolerance)[1]["tolerance"]["nodes"]
              if node["node"] == "large" and node["precision"] != "f32"]
    expect(errors, "the large product is never cheaper")
    for part in (0.88, 0.87, 0.86):
        sum_of_products(server, "sum", 0.01 * part * within / min(errors))
        _, profile = run(server, "sum", xs[0], tolerance=within)
        by_node = chosen(profile)
        small = [by_node.get(name, "f32") for name in ("first", "second", "third")]
        if by_node.get("large", "f32") == "f32" and "f32" not in small:
            break
    else:
        raise Failed(f"chosen is {profile['tolerance']}")
    server.call("DELETE", "/v1/graphs/sum")


def error_is_true(server, xs):
    """What is said is the greatest of the samples that verify: those with odd numbers."""
    for tolerance in (WITHIN, 1):
        errors, said = [], None
        for x in xs[1::2]:
            got, profile = run(server, "m", x, tolerance=tolerance)
            want, _ = run(server, "m", x, precision="f32", mode="compiled")
            errors.append(error_of(got, want))
            said = profile["tolerance"]
        expect(said["chose"] == (len(xs) + 1) // 2 and said["verified"] == len(errors), f"{said}")
        expect(0 < max(errors) <= tolerance, f"within {tolerance} the error is {max(errors)}")
        expect(math.isclose(max(errors), said["error"], rel_tol=1e-3, abs_tol=1e-6),
               f"it says {said['error']}, measured are {max(errors)}")


def together(server, xs):
    """Runs that meet at a busy server, and may be run as one, have the bits of those alone."""
    alone = [run(server, "m", x, tolerance=WITHIN)[0] for x in xs]
    problems = []

    def client(x, want):
        for _ in range(12):
            reply = asked(server, "m", x, tolerance=WITHIN)
            if reply.status != 200 or reply.json()["outputs"][0]["data"][0] != want:
                problems.append(reply.short())

    threads = [threading.Thread(target=client, args=pair) for pair in list(zip(xs, alone)) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not problems, f"{len(problems)} runs have other bits: {problems[:1]}")


def none_is_float32(server, xs):
    want, f32 = run(server, "m", xs[0], precision="f32", mode="compiled")
    for tolerance in (0, 1e-7):
        got, profile = run(server, "m", xs[0], tolerance=tolerance, mode="compiled")
        expect(got == want and profile["program"] == f32["program"], f"within {tolerance} it is no float32")
    got, profile = run(server, "m", xs[0], tolerance=1e-6)
    expect(got == want and set(chosen(profile).values()) <= {"f32"}, f"{profile['tolerance']}")
    why = "no choice holds" if has_forms(server, xs) else "no node has a cheaper form"
    expect(why in profile["tolerance"]["why"], f"{profile['tolerance']}")


def too_few_samples(server, xs):
    for n in (0, 1):
        put(server, "few", n, seed=2 + n)
        want, _ = run(server, "few", xs[0], precision="f32", mode="compiled")
        got, profile = run(server, "few", xs[0], tolerance=1)
        expect(got == want and not chosen(profile), f"with {n} samples {profile['tolerance']}")
        expect("fewer than two samples" in profile["tolerance"]["why"], f"{profile['tolerance']}")
        server.call("DELETE", "/v1/graphs/few")


def samples_come_later(server, xs):
    """Those of an upload of the same bytes take the place of those before; without any they stay."""
    with tempfile.TemporaryDirectory() as data:
        for place in (data, "none"):
            again = Server(server.binary, ["--data", place, "--quiet"]).start()
            try:
                for sent, chose in ((0, 0), (4, 2), (0, 2), (6, 3)):
                    put(again, "m", sent)
                    _, profile = run(again, "m", xs[0], tolerance=1)
                    expect(profile["tolerance"]["chose"] == chose, f"{sent} samples: {profile['tolerance']}")
                versions = again.call("GET", "/v1/graphs/m/versions").json()["versions"]
                expect(len(versions) == 1, f"{versions}")
            finally:
                again.stop()
                again.clean_up()
        again = Server(server.binary, ["--data", data, "--quiet"]).start()
        _, profile = run(again, "m", xs[0], tolerance=1)
        expect(profile["tolerance"]["chose"] == 3 and searches(again) == 0, f"{profile['tolerance']}")
        put(again, "m", 0)  # not read since the start
        _, profile = run(again, "m", xs[0], tolerance=1)
        again.stop()
        again.clean_up()
        expect(profile["tolerance"]["chose"] == 3, f"after a restart {profile['tolerance']}")


def operators_bring_samples(server, xs):
    """An upload with an operator of its own keeps its samples, and takes others in their place."""
    def send(n):
        samples = write_safetensors({f"{i}.inputs.x": floats([1, 2], [i, -i]) for i in range(n)})
        body, content_type = multipart([("graph", model_file("operator/model.fx.json")),
                                        ("op:mylib.scaled", model_file("operator/scaled.fx.json")),
                                        ("samples", samples)])
        reply = server.call("PUT", "/v1/graphs/own", body, [("Content-Type", content_type)])
        expect(reply.status in (200, 201) and reply.json()["version"] == 1, reply.short())

    sides = {"a": {"graph": "own"}, "b": {"samples": 99}}
    for n in (3, 5):
        send(n)
        reply = server.call("POST", "/v1/compare", json.dumps(sides).encode())
        expect(f"there are {n} samples" in reply.json()["error"], f"{n} samples: {reply.short()}")
    server.call("DELETE", "/v1/graphs/own")


def those_who_leave(server, xs):
    """A search whose run has left is none; the next run starts one anew."""
    reply = asked(server, "m", xs[0], tolerance=0.05, deadline_ms=1)
    expect(reply.status in (200, 504), reply.short())
    _, profile = run(server, "m", xs[0], tolerance=0.05)
    expect(profile["tolerance"]["within"] == 0.05, f"{profile['tolerance']}")


def defaults(server, xs):
    def change(body, status=200):
        reply = server.call("PATCH", "/v1/graphs/m", json.dumps(body).encode())
        expect(reply.status == status, reply.short())
        return reply.json()

    expect(change({"tolerance": WITHIN})["tolerance"] == WITHIN, "the setting is not shown")
    want, profile = run(server, "m", xs[0], tolerance=WITHIN)
    got, other = run(server, "m", xs[0])
    expect(got == want and other["program"] == profile["program"], "runs do not take the default")
    _, other = run(server, "m", xs[0], mode="eager")
    expect(other["program"] is None, "an eager run is not eager")
    _, other = run(server, "m", xs[0], precision="bf16")
    expect("tolerance" not in other, "a run's precision does not go before the default")
    shown = change({"precision": "bf16"})
    expect("tolerance" not in shown and shown["precision"] == "bf16", f"both are set: {shown}")
    shown = change({"tolerance": WITHIN})
    expect("precision" not in shown, f"both are set: {shown}")
    change({"tolerance": WITHIN, "precision": "bf16"}, 400)
    change({"tolerance": -1}, 400)
    change({"tolerance": "0.1"}, 400)
    below = math.nextafter(0.05, 0)  # counts as 0.02, also after it was kept as text
    expect(change({"tolerance": below})["tolerance"] == below, "the setting is rounded")
    _, profile = run(server, "m", xs[0])
    expect(profile["tolerance"]["within"] == 0.02, f"{below} counts as {profile['tolerance']['within']}")
    expect("tolerance" not in change({"tolerance": 0}), "0 does not remove it")


def expect_kept(server, xs, kept):
    """What was chosen before a restart holds, and is not searched for again."""
    for tolerance, (want, before) in kept.items():
        got, profile = run(server, "m", xs[1], tolerance=tolerance)
        expect(got == want and profile["tolerance"] == before["tolerance"], f"{profile['tolerance']}")
    expect(searches(server) == 0, "it was searched for again")


def compare_first(server):
    """A comparison is the first to read the graph."""
    body = {"a": {"graph": "m"}, "b": {"graph": "m"}, "inputs": {"x": samples_of(1)}}
    reply = server.call("POST", "/v1/compare", json.dumps(body).encode())
    expect(reply.status == 200, reply.short())
    change = {"warm_up": [f"x:1,{WIDTH}"], "tolerance": WITHIN}  # for the next server
    reply = server.call("PATCH", "/v1/graphs/m", json.dumps(change).encode())
    expect(reply.status == 200, reply.short())


def warm_up_first(server):
    """A declared warm-up is."""
    until = time.monotonic() + 30
    while (state := server.call("GET", "/v1/graphs/m").json()["warm_up"]["state"]) == "waiting":
        expect(time.monotonic() < until, "the warm-up does not end")
        time.sleep(0.05)
    expect(state == "done", f"the warm-up is {state}")


def refusals(server, xs):
    rule = [{"match": {"name": "tanh"}, "retarget": "torch.relu"}]
    session = server.call("POST", "/v1/graphs/m/sessions", b"").json()["id"]
    for options, word in (({"precision": "f32"}, "exclude"), ({"mode": "eager"}, "eager run"),
                          ({"overrides": rule}, "as it is"), ({"until": "tanh"}, "as it is"),
                          ({"session": session}, "as it is"), ({"tolerance": -0.1}, "from 0 on"),
                          ({"tolerance": "0.1"}, "from 0 on"), ({"tolerance": None}, "from 0 on")):
        reply = asked(server, "m", xs[0], **{"tolerance": WITHIN, **options})
        expect(reply.status == 400 and word in reply.json()["error"], f"{options}: {reply.short()}")
    body = json.dumps({"inputs": {"x": [xs[0]]}}).encode()
    for text in ("-1", "nan", "inf", "0x1", "", "1 "):
        reply = server.call("POST", f"/v1/graphs/m/run?tolerance={text.replace(' ', '%20')}", body)
        expect(reply.status == 400, f"tolerance={text}: {reply.short()}")
    inline = {"graph": {"format": "fx/1", "nodes": [{"op": "placeholder", "name": "x", "target": "x"},
                                                    call("relu", "torch.relu", "%x"),
                                                    {"op": "output", "name": "output", "target": "output",
                                                     "args": ["%relu"]}]},
              "inputs": {"x": [1.0]}, "tolerance": 0.1}
    reply = server.call("POST", "/v1/run", json.dumps(inline).encode())
    expect(reply.status == 400 and "stored graph" in reply.json()["error"], reply.short())


def elsewhere(server, xs):
    """Comparisons and the Open Inference Protocol."""
    want, profile = run(server, "m", xs[1], tolerance=WITHIN)
    body = {"a": {"graph": "m", "tolerance": WITHIN}, "b": {"graph": "m", "mode": "compiled"},
            "inputs": {"x": [xs[1]]}, "rtol": 0, "atol": 1e-7}
    reply = server.call("POST", "/v1/compare", json.dumps(body).encode()).json()
    is_f32 = set(chosen(profile).values()) <= {"f32"}
    expect(reply["a"]["tolerance"] == WITHIN and reply["equal"] == is_f32, f"a comparison says {reply['a']}")
    for bad in ({"tolerance": WITHIN, "precision": "bf16"}, {"tolerance": WITHIN, "mode": "eager"},
                {"tolerance": WITHIN, "steps": [{"pass": "eliminate_dead_code"}]}):
        body["a"] = {"graph": "m", **bad}
        reply = server.call("POST", "/v1/compare", json.dumps(body).encode())
        expect(reply.status == 400, f"{bad}: {reply.short()}")
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, WIDTH], "data": xs[1]}],
            "parameters": {"tolerance": WITHIN}}
    reply = server.call("POST", "/v2/models/m/infer", json.dumps(body).encode())
    expect(reply.status == 200 and reply.json()["outputs"][0]["data"] == want, reply.short())


def has_forms(server, xs):
    _, profile = run(server, "m", xs[0], tolerance=WITHIN)
    return "cheaper form" not in (profile["tolerance"]["why"] or "")


def no_time_is_not_kept(before, xs):
    """A search that had no time is none for the next server."""
    with tempfile.TemporaryDirectory() as data:
        for deadline, n_searches in (("0", 1), ("600000", 1), ("0", 0)):
            flags = ["--data", data, "--quiet", "--search-deadline-ms", deadline]
            server = Server(before.binary, flags).start()
            try:
                if server.call("GET", "/v1/graphs/m").status != 200:
                    put(server, "m", 4)
                why = [run(server, "m", xs[0], tolerance=1)[1]["tolerance"]["why"] or "" for _ in range(2)]
                is_late = deadline == "0" and n_searches > 0
                expect(all(("took too long" in text) == is_late for text in why), f"{deadline} ms: {why}")
                expect(searches(server) == n_searches, f"{deadline} ms: {searches(server)} searches")
            finally:
                server.stop()
                server.clean_up()


def fill_record(data):
    """Makes the one tune record as long as records may be, with choices for other samples."""
    path = glob.glob(os.path.join(data, "tunes", "*"))[0]
    with open(path, "rb") as file:
        platform, *lines = file.read().splitlines(keepends=True)[:-1]
    lines += [b"tolerance 0.05 %016x\tno-forms 0.000000e+00 4 3\n" % i
              for i in range(RECORD_LINES - len(lines))]
    text = platform + b"".join(sorted(lines, key=lambda line: line.split(b"\t")[0]))
    with open(path, "wb") as file:
        file.write(text + b"checksum %s\n" % hashlib.sha256(text).hexdigest().encode())
    return path


def full_records_make_room(before, xs):
    """A new choice takes the place of old ones, on disk, too; what cannot be written is kept in memory."""
    with tempfile.TemporaryDirectory() as data:
        def served(steps):
            server = Server(before.binary, ["--data", data, "--quiet"]).start()
            try:
                steps(server)
            finally:
                problems = server.stop()
                server.clean_up()
            expect(not problems, "\n".join(problems))

        def chooses(server, tolerance, n_searches):
            _, profile = run(server, "m", xs[0], tolerance=tolerance)
            expect(profile["tolerance"]["within"] == tolerance, f"{profile['tolerance']}")
            expect(searches(server) == n_searches, f"within {tolerance}: {searches(server)} searches")

        def first(server):
            put(server, "m", len(xs))
            chooses(server, WITHIN, 1)

        def full(server):
            chooses(server, 1, 1)
            chooses(server, 1, 1)

        def unwritable(server):
            chooses(server, 1, 0)
            os.rmdir(os.path.join(data, "tmp"))
            chooses(server, 0.5, 1)
            chooses(server, 0.5, 1)
            until = time.monotonic() + 10  # lines are written by a thread of their own
            while "is not kept on disk" not in server.log() and time.monotonic() < until:
                time.sleep(0.1)
            expect("is not kept on disk" in server.log(), "it is not logged")

        served(first)
        path = fill_record(data)
        served(full)
        with open(path, "rb") as file:
            n_lines = file.read().count(b"\n")
        expect(n_lines < RECORD_LINES / 2 + 100, f"the record has {n_lines} lines")
        served(unwritable)
        served(lambda server: chooses(server, 0.5, 1))


def main():
    binary, tally, xs = sys.argv[1], Tally(), samples_of(7)
    with tempfile.TemporaryDirectory() as data:
        flags = ["--data", data, "--quiet", "--workers", "4"]
        server = Server(binary, flags).start()

        def attempt(check):
            try:
                check(server, xs)
                tally.ok()
            except Failed as problem:
                tally.bad(check.__name__, problem)

        put(server, "m", len(xs))
        attempt(one_search)
        checks = [none_is_float32, too_few_samples, operators_bring_samples,
                  those_who_leave, defaults, refusals, elsewhere]
        if has_forms(server, xs):
            checks[:0] = [by_sensitivity, cheapest_by_sensitivity, error_is_true, together]
        for check in checks:
            attempt(check)
        kept = {tolerance: run(server, "m", xs[1], tolerance=tolerance) for tolerance in (WITHIN, 0.2)}
        tally.check("the server's end", "\n".join(server.stop()))
        server = Server(binary, flags).start()

        def a_restart_keeps_it(again, inputs):
            expect_kept(again, inputs, kept)

        def others_read_it_first(again, inputs):
            reads(again)
            expect_kept(again, inputs, kept)

        attempt(a_restart_keeps_it)
        tally.check("the second server's end", "\n".join(server.stop()))
        for reads in (compare_first, warm_up_first):
            server = Server(binary, flags).start()
            attempt(others_read_it_first)
            tally.check(f"the server's end after {reads.__name__}", "\n".join(server.stop()))
        server.clean_up()
        attempt(no_time_is_not_kept)
        attempt(samples_come_later)
        attempt(full_records_make_room)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
