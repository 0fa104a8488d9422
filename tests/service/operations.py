# SPDX-License-Identifier: Apache-2.0
"""What runs a server needs: metrics, log lines, signals. operations.py FXSERVE

metrics   a strict reader of the Prometheus text format goes over /metrics (types, help, labels,
duplicates, histograms that add up), and `promtool check metrics` where
          it is installed; the labels stay bounded however many graphs there are
log       each line is a JSON object with the documented fields; probes, inputs and tokens are not
in it; a reader that stopped reading holds nobody up; SIGHUP opens
          the file again
goldens   GET /v1/ops says how many golden cases of an operator there are errors
docs/operations.md has a line for every code of api/errors.def, a row for every field of the log and
every metric
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "generate"))
from count_goldens import counted, table
from service import END_WITH_PARENT, MODELS, ROOT, Connection, Failed, Server, Tally, environment

METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
RELU = ('{"format": "fx/1", "nodes": [{"op": "placeholder", "name": "x", "target": "x"}, '
        '{"op": "call_function", "target": "torch.relu", "args": ["%x"]}, '
        '{"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]}')
SLOW = json.dumps({"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_method", "name": "e", "target": "expand", "args": ["%x", 800, 800]},
    {"op": "call_function", "name": "a", "target": "torch.matmul", "args": ["%e", "%e"]},
    {"op": "call_function", "name": "b", "target": "torch.matmul", "args": ["%a", "%e"]},
    {"op": "call_function", "name": "s", "target": "torch.mean", "args": ["%b"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%s"]}]})
SECRET = 31415.926


# ---- the text format ---------------------------------------------------------------------------
def labels_of(text, line):
    out, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        if not found or found[1] in out or (found[3] == "" and found.end() != len(text)):
            raise Failed(f"labels: {line}")
        out[found[1]], at = found[2], found.end()
    return out


def sample_of(line):
    found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
    if not found:
        raise Failed(f"no sample: {line}")
    return found[1], labels_of(found[2] or "", line), float(found[3])


def family_of(name, types):
    """The family a sample belongs to."""
    if name in types:
        return name
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and types.get(name[:-len(suffix)]) == "histogram":
            return name[:-len(suffix)]
    raise Failed(f"{name} has no TYPE line before it")


def check_histogram(name, samples):
    groups = {}
    for sample, labels, value in samples:
        rest = tuple(sorted((key, text) for key, text in labels.items() if key != "le"))
        groups.setdefault(rest, []).append((sample, labels.get("le"), value))
    for rest, rows in groups.items():
        buckets = [(float(le), value) for sample, le, value in rows if sample == name + "_bucket"]
        count = [value for sample, _, value in rows if sample == name + "_count"]
        total = [value for sample, _, value in rows if sample == name + "_sum"]
        if len(count) != 1 or len(total) != 1 or buckets[-1:] != [(float("inf"), count[0])]:
            raise Failed(f"{name}{rest}: _count, _sum and the last bucket do not fit")
        if (buckets != sorted(buckets) or len({le for le, _ in buckets}) != len(buckets)
            or any(a[1] > b[1] for a, b in zip(buckets, buckets[1:]))):
            raise Failed(f"{name}{rest}: buckets do not ascend")


def read_metrics(text):
    """{family: [(sample, labels, value)]}; Failed on whatever a strict reader would not take."""
    types, helps, families, seen, current = {}, set(), {}, set(), None
    if not text.endswith("\n"):
        raise Failed("the last line does not end")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            if name in helps or len(line.split(" ", 3)) < 4:
                raise Failed(f"HELP twice or empty: {line}")
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            known = kind in ("counter", "gauge", "histogram", "untyped")
            if name in types or not METRIC.fullmatch(name) or not known:
                raise Failed(f"TYPE twice or of no known kind: {line}")
            types[name], families[name], current = kind, [], name
        else:
            sample, labels, value = sample_of(line)
            name = family_of(sample, types)
            if name != current:
                raise Failed(f"{sample} stands among the samples of {current}")
            key = (sample, tuple(sorted(labels.items())))
            if key in seen:
                raise Failed(f"twice: {line}")
            seen.add(key)
            if types[name] == "counter" and (not name.endswith("_total") or value < 0):
                raise Failed(f"a counter ends in _total and does not fall below 0: {line}")
            families[name].append((sample, labels, value))
    if set(types) != helps:
        raise Failed(f"without HELP or TYPE: {set(types) ^ helps}")
    for name, kind in types.items():
        if kind == "histogram":
            check_histogram(name, families[name])
    return families


def value_of(families, name, **labels):
    for sample, have, value in families[name]:
        if sample == name and all(have.get(key) == text for key, text in labels.items()):
            return value
    return 0


def metrics_of(server):
    reply = server.call("GET", "/metrics")
    if reply.status != 200:
        raise Failed(f"/metrics answers {reply.short()}")
    return read_metrics(reply.body.decode())


# ---- metrics -----------------------------------------------------------------------------------
def call(server, wanted, *request):
    reply = server.call(*request)
    if reply.status != wanted:
        raise Failed(f"{request[0]} {request[1]}: {reply.short()}, expected {wanted}")
    return reply


def check_counts(binary):
    server = Server(binary, ["--data", "none"]).start()
    try:
        body = json.dumps({"inputs": {"x": [1, -1.5]}}).encode()
        before = metrics_of(server)
        for name in ("b_other", "_other", "a.b-c"):
            call(server, 201, "PUT", f"/v1/graphs/{name}", RELU.encode())
            call(server, 200, "POST", f"/v1/graphs/{name}/run", body)
        call(server, 200, "PUT", "/v1/graphs/_other", RELU.encode())
        # shares its path, and so its series, with the line above
        call(server, 200, "GET", "/v1/graphs/_other")
        call(server, 200, "POST", "/v1/run", b'{"graph": ' + RELU.encode() + b', "inputs": {"x": [1, -1.5]}}')
        call(server, 400, "POST", "/v1/graphs/_other/run", b"{")
        call(server, 404, "GET", '/v1/"\\quoted"')
        after = metrics_of(server)
        wanted = {("fxserve_requests_total", ("route", "/v1/graphs/{name}/run"), ("code", "200")): 3,
                  ("fxserve_requests_total", ("route", "/v1/graphs/{name}/run"), ("code", "400")): 1,
                  ("fxserve_requests_total", ("route", "/v1/graphs/{name}"), ("code", "201")): 3,
                  ("fxserve_requests_total", ("route", "/v1/graphs/{name}"), ("code", "200")): 2,
                  ("fxserve_requests_total", ("route", "-"), ("code", "404")): 1,
                  ("fxserve_requests_total", ("route", "/metrics"), ("code", "200")): 1,
                  ("fxserve_runs_total", ("graph", "_other")): 1,
                  ("fxserve_runs_total", ("graph", "a.b-c")): 1,
                  ("fxserve_runs_total", ("graph", "_inline")): 1, ("fxserve_graphs",): 3}
        for (name, *labels), value in wanted.items():
            got = value_of(after, name, **dict(labels)) - value_of(before, name, **dict(labels))
            if got != value:
                raise Failed(f"{name}{labels} grew by {got}, expected {value}")
        runs = [value for sample, _, value in after["fxserve_run_duration_seconds"]
                if sample.endswith("_count")]
        if runs != [4]:
            raise Failed(f"fxserve_run_duration_seconds_count is {runs}, expected 4")
        resident, fds = value_of(after, "process_resident_memory_bytes"), value_of(after, "process_open_fds")
        start = value_of(after, "process_start_time_seconds")
        if not 1e6 < resident < 2e9 or not 5 < fds < 100 or abs(start - time.time()) > 120:
            raise Failed(f"process: {resident} bytes, {fds} descriptors, started at {start}")
        return problem(server.stop())
    finally:
        server.clean_up()


def problem(problems):
    if problems:
        raise Failed("; ".join(problems))


def check_by_graph(binary):
    """Times and errors by graph: of graphs that there are; a name that a client made up gets no
    series of its own. A run that waited for a worker is among the waits."""
    server = Server(binary, ["--data", "none", "--no-inline"]).start()
    try:
        good, bad = b'{"inputs": {"x": [1.5]}}', b'{"inputs": {"y": [1.5]}}'
        for name, graph in (("a", RELU), ("b", SLOW)):
            call(server, 201, "PUT", f"/v1/graphs/{name}", graph.encode())
        for name, body, status in (("a", good, 200), ("a", good, 200), ("a", bad, 400), ("b", bad, 400),
                                   ("b", bad, 400), ("made-up", good, 404), ("none", good, 404)):
            call(server, status, "POST", f"/v1/graphs/{name}/run", body)
        call(server, 504, "POST", "/v1/graphs/b/run?deadline_ms=1", b'{"inputs": {"x": [[0.01]]}}')
        call(server, 400, "POST", "/v1/run", b'{"graph": ' + RELU.encode() + b', "inputs": {"y": [1.5]}}')
        families = metrics_of(server)
        errors = {(labels["graph"], labels["code"]): value
                  for _, labels, value in families["fxserve_run_errors_total"]}
        if errors != {("a", "400"): 1, ("b", "400"): 2, ("b", "504"): 1, ("_other", "404"): 2,
                      ("_inline", "400"): 1}:
            raise Failed(f"errors by graph: {errors}")
        times = {labels["graph"]: value
                 for sample, labels, value in families["fxserve_graph_request_duration_seconds"]
                 if sample.endswith("_count")}
        if times != {"a": 2}:
            raise Failed(f"times by graph: {times}")
        waits = sum(value for sample, _, value in families["fxserve_queue_wait_seconds"]
                    if sample.endswith("_count"))
        if not 9 <= waits <= 11:
            raise Failed(f"{waits} requests waited for a worker")
        return problem(server.stop())
    finally:
        server.clean_up()


def check_disk(binary):
    server = Server(binary, ["--data", "data"]).start()

    def used():
        families = metrics_of(server)
        return value_of(families, "fxserve_data_bytes"), value_of(families, "fxserve_data_free_bytes")

    def until(what, holds):
        end = time.monotonic() + 60
        while not holds(*used()):
            if time.monotonic() > end:
                raise Failed(f"{what}: {used()}")
            time.sleep(0.1)

    try:
        until("a first count", lambda used, free: used > 0 and free > 0)
        before = used()[0]
        call(server, 201, "PUT", "/v1/graphs/m", RELU.encode() + b" " * 700000)
        until("after an upload of 700 kB", lambda used, _: used >= before + 700000)
        call(server, 204, "DELETE", "/v1/graphs/m")
        until("after the delete", lambda used, _: used < before + 100000)
        return problem(server.stop())
    finally:
        server.clean_up()


def check_file_size(binary):
    """A file that may not grow: uploads of both kinds are refused, log lines are dropped."""
    server = Server(binary, ["--data", "data", "--log-file", "own.log", "--log-format", "json"]).start()
    own = os.path.join(server.folder, "own.log")
    uploads = [RELU.encode() + b" " * n for n in (700000, 2000000)]  # read into memory, and spooled
    most = 100000
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        for body in uploads:
            reply = server.call("PUT", "/v1/graphs/m", body)
            if reply.status != 507 or "ulimit -f" not in reply.json()["error"]:
                raise Failed(f"{len(body)} bytes: {reply.short()}")
        end = time.monotonic() + 60
        while value_of(metrics_of(server), "fxserve_log_dropped_total") == 0:
            if time.monotonic() > end or os.path.getsize(own) > most:
                raise Failed(f"the log file has {os.path.getsize(own)} bytes, and nothing is dropped")
            for _ in range(100):
                call(server, 200, "GET", "/v1")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        for body in uploads:
            call(server, 201, "PUT", "/v1/graphs/m", body)
        return problem(server.stop())
    finally:
        server.clean_up()


def check_bounded(binary):
    server = Server(binary, ["--data", "none"]).start()
    try:
        for i in range(130):
            call(server, 201, "PUT", f"/v1/graphs/g{i}", RELU.encode())
            call(server, 200, "POST", f"/v1/graphs/g{i}/run", b'{"inputs": {"x": [1.5]}}')
        call(server, 200, "POST", "/v1/run", b'{"graph": ' + RELU.encode() + b', "inputs": {"x": [1.5]}}')
        runs = metrics_of(server)["fxserve_runs_total"]
        counts = {labels["graph"]: value for _, labels, value in runs}
        if (len(counts) != 102 or counts["_other"] != 30 or counts["_inline"] != 1
            or sum(counts.values()) != 131):
            raise Failed(f"{len(counts)} series, _other {counts.get('_other')}, _inline "
                         f"{counts.get('_inline')}")
        return problem(server.stop())
    finally:
        server.clean_up()


def promtool():
    """Where promtool is, or None."""
    program = (shutil.which("promtool")
               or shutil.which("promtool", path=os.path.join(ROOT, "build-tools", "promtool", "usr", "bin")))
    if program is None:
        print("promtool is not there (./check unpacks it): what it would say is left out")
    return program


def check_promtool(binary):
    program = promtool()
    if program is None:
        return
    server = Server(binary, ["--data", "none"]).start()
    try:
        call(server, 201, "PUT", "/v1/graphs/m", RELU.encode())
        call(server, 200, "POST", "/v1/graphs/m/run", b'{"inputs": {"x": [1.5]}}')
        call(server, 400, "POST", "/v1/graphs/m/run", b"{")
        text = call(server, 200, "GET", "/metrics").body
        done = subprocess.run([program, "check", "metrics"], input=text, capture_output=True, check=False)
        # Triton's names say "us".
        words = [line for line in (done.stdout + done.stderr).decode().splitlines()
                 if not re.fullmatch("nv_inference_[a-z_]+_us metric names should not contain "
                                     "abbreviated units", line)]
        if done.returncode not in (0, 3) or words:
            raise Failed(f"promtool: {words}")
        return problem(server.stop())
    finally:
        server.clean_up()


def check_probe_when_full(binary):
    """Metrics and probes are answered while every worker is busy and the queue is full: that is
    when they are looked at."""
    server = Server(binary, ["--data", "none", "--log-format", "json", "--workers", "1", "--max-queue", "2",
                             "--run-deadline-ms", "200000"]).start()
    try:
        call(server, 201, "PUT", "/v1/graphs/slow", SLOW.encode())
        clients = [server.connect() for _ in range(6)]
        clients[0].request("POST", "/v1/graphs/slow/run", b'{"inputs": {"x": [[0.01]]}}')
        families, end = metrics_of(server), time.monotonic() + 10
        while value_of(families, "fxserve_running") < 1 and time.monotonic() < end:
            families = metrics_of(server)
        for client in clients[1:]:
            client.request("POST", "/v1/graphs/slow/run", b'{"inputs": {"x": [[0.01]]}}')
        while value_of(families, "fxserve_queue_depth") < 2 and time.monotonic() < end:
            families = metrics_of(server)
        if value_of(families, "fxserve_queue_depth") != 2 or value_of(families, "fxserve_running") != 1:
            raise Failed(f"queue {value_of(families, 'fxserve_queue_depth')}, running "
                         f"{value_of(families, 'fxserve_running')}, expected 2 and 1")
        call(server, 200, "GET", "/livez")
        statuses = sorted(client.reply().status for client in clients)
        if statuses != [200, 200, 200, 503, 503, 503]:
            raise Failed(f"statuses {statuses}")
        for client in clients:
            client.close()
        problem(server.stop())
        levels = {row["level"] for row in lines_of(server.log()) if row.get("status") == 503}
        if levels != {"warning"}:
            raise Failed(f"503 of an overload is logged as {levels}")
    finally:
        server.clean_up()


# ---- log ---------------------------------------------------------------------------------------
FIELDS = {"time", "level", "message", "request_id", "method", "route", "graph", "version", "status",
          "code", "duration_ms", "queue_ms", "run_ms", "request_bytes", "response_bytes", "client", "token",
          "trace_id", "parent_id", "span_id"}
START_FIELDS = {"server_version", "revision", "listen", "data", "tokens", "cpu", "cores", "workers",
                "threads", "limits"}


def lines_of(text):
    out = []
    for line in text.split("\n")[:-1]:
        try:
            out.append(json.loads(line))
        except ValueError:
            raise Failed(f"a log line is no JSON: {line}") from None
        if (set(out[-1]) - FIELDS - (START_FIELDS if out[-1].get("message") == "started" else set())
            or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", out[-1]["time"])):
            raise Failed(f"a log line has unknown fields or no time: {line}")
    return out


def check_log(binary):
    server = Server(binary, ["--data", "none", "--log-format", "json"]).start()
    try:
        call(server, 201, "PUT", "/v1/graphs/m", RELU.encode())
        call(server,
             200, "POST", "/v1/graphs/m/run?profile=1", json.dumps({"inputs": {"x": [SECRET]}}).encode(),
             [("X-Request-Id", "the-run"), ("Authorization", "Bearer hunter2"),
              ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
        call(server, 400, "POST", "/v1/graphs/m/run", b'{"inputs": {"x": "hunter2"}}',
             [("X-Request-Id", "the-mistake")])
        for probe in ("/livez", "/readyz", "/healthz", "/metrics"):
            call(server, 200, "GET", probe)
        problem(server.stop())
        text = server.log()
        rows = {row.get("request_id"): row for row in lines_of(text)}
        run, mistake = rows["the-run"], rows["the-mistake"]
        wanted = {"level": "info", "method": "POST", "route": "/v1/graphs/{name}/run", "graph": "m",
                  "status": 200, "client": "127.0.0.1", "trace_id": "0af7651916cd43dd8448eb211c80319c",
                  "parent_id": "b7ad6b7169203331", "request_bytes": 30}
        wrong = {key: run.get(key) for key, value in wanted.items() if run.get(key) != value}
        if (wrong or not 0 < run["run_ms"] <= run["duration_ms"] or run["response_bytes"] < 50
            or not re.fullmatch("[0-9a-f]{16}", run["span_id"])):
            raise Failed(f"{wrong} in {run}")
        if mistake["code"] != "bad_value" or mistake["status"] != 400 or "trace_id" in mistake:
            raise Failed(f"{mistake}")
        for word in ("31415", "hunter2", "livez", "readyz", "healthz", "/metrics"):
            if word in text:
                raise Failed(f"the log holds {word}")
    finally:
        server.clean_up()


def check_start(binary):
    """The first line says what serves, and where, and with which limits of its own."""
    server = Server(binary, ["--data", "data", "--log-format", "json", "--workers", "1", "--threads", "1",
                             "--max-queue", "7"]).start()
    try:
        problem(server.stop())
        rows = [row for row in lines_of(server.log()) if row.get("message") == "started"]
        facts = dict(rows[0]) if len(rows) == 1 else {}
        wanted = {"level": "info", "listen": server.url, "data": "folder", "tokens": "no", "workers": 1,
                  "threads": 1, "limits": {"max_queue": 7}}
        wrong = {key: facts.get(key) for key, value in wanted.items() if facts.get(key) != value}
        if (wrong or set(facts) != START_FIELDS | {"time", "level", "message"}
            or not re.match(r"\d+\.\d+\.\d+$", facts["server_version"])):
            raise Failed(f"{wrong} in {facts}")
        if server.folder in server.log():
            raise Failed("the log names the data folder's path")
    finally:
        server.clean_up()


def check_token_names(binary):
    """The line of a request names its token: by its name, or by its digest; a wrong one has
    no name."""
    server = Server(binary, ["--data", "none", "--log-format", "json"])
    path = os.path.join(server.folder, "tokens")
    with open(path, "w", encoding="utf-8") as file:
        file.write("first-token-0123456789 read  the-ci\nsecond-token-0123456789 run\n")
    server.flags += ["--token-file", path]
    try:
        server.start()
        for token, status in (("first", 200), ("second", 403), ("third", 401)):
            call(server, status, "GET", "/v1/graphs", None,
                 [("X-Request-Id", token), ("Authorization", f"Bearer {token}-token-0123456789")])
        problem(server.stop())
        log = server.log()
        names = {row["request_id"]: row.get("token")
                 for row in lines_of(log) if "request_id" in row}
        if names != {"first": "the-ci", "second": "token-27f11cd7cb", "third": None}:
            raise Failed(f"{names}")
        if "0123456789" in log:
            raise Failed("a token stands in the log")
    finally:
        server.clean_up()


def check_quiet(binary):
    server = Server(binary, ["--data", "none", "--quiet"]).start()
    try:
        call(server, 200, "GET", "/v1")
        problem(server.stop())
        if "/v1" in server.log():
            raise Failed("--quiet logs requests")
    finally:
        server.clean_up()


def check_reopen(binary):
    server = Server(binary, ["--data", "none", "--log-format", "json", "--log-file", "own.log"]).start()
    try:
        path = os.path.join(server.folder, "own.log")
        call(server, 200, "GET", "/v1", None, [("X-Request-Id", "before")])
        os.rename(path, path + ".1")
        server.signal(signal.SIGHUP)
        end = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.02)
        call(server, 200, "GET", "/v1", None, [("X-Request-Id", "after")])
        problem(server.stop())
        with open(path + ".1", encoding="utf-8") as old, open(path, encoding="utf-8") as new:
            before, after = ({row.get("request_id") for row in lines_of(old.read())},
                             {row.get("request_id") for row in lines_of(new.read())})
        if "before" not in before or "after" not in after or "after" in before:
            raise Failed(f"before: {before}, after: {after}")
        if server.log():
            raise Failed(f"standard error holds {server.log()[:300]}")
    finally:
        server.clean_up()


def check_stalled(binary):
    """Standard error is a pipe that nobody reads: requests go on, lines are counted as dropped, and
    SIGTERM still ends the server with 0."""
    folder = tempfile.mkdtemp(prefix="fxserve-stalled-")
    reader, writer = os.pipe()
    process = subprocess.Popen([os.path.abspath(binary), "serve", "--listen", "127.0.0.1:0", "--data",
                                "none"], stdout=subprocess.PIPE, stderr=writer, stdin=subprocess.DEVNULL,
                               cwd=folder, env=environment(folder), preexec_fn=END_WITH_PARENT)
    try:
        os.close(writer)
        port = int(process.stdout.readline().decode().rsplit(":", 1)[1])
        slowest = [0.0]

        def client():
            with Connection(port) as connection:
                for _ in range(1500):
                    began = time.monotonic()
                    connection.request("GET", "/v1/graphs")
                    if connection.reply().status != 200:
                        raise Failed("not 200")
                    slowest[0] = max(slowest[0], time.monotonic() - began)

        threads = [threading.Thread(target=client) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with Connection(port) as connection:
            connection.request("GET", "/metrics")
            families = read_metrics(connection.reply().body.decode())
        answered, dropped = (value_of(families, "fxserve_requests_total", route="/v1/graphs", code="200"),
                             value_of(families, "fxserve_log_dropped_total"))
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        if answered != 3000 or dropped < 100 or slowest[0] > 5 or code != 0:
            raise Failed(f"{answered} answered, {dropped} lines dropped, slowest {slowest[0]:.2f} "
                         f"s, exit code {code}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reader)
        shutil.rmtree(folder)


def check_health_tls(binary):
    if shutil.which("openssl") is None:
        print("openssl is not installed: health over HTTPS is left out")
        return
    server = Server(binary, ["--data", "none"])
    cert, key = os.path.join(server.folder, "cert.pem"), os.path.join(server.folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    server.flags += ["--tls-cert", cert, "--tls-key", key]
    with open(server.log_path, "ab") as log:
        process = subprocess.Popen([server.binary, "serve", "--listen", "127.0.0.1:0", *server.flags],
                                   stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL,
                                   cwd=server.folder, env=environment(server.folder),
                                   preexec_fn=END_WITH_PARENT)
    try:
        url = process.stdout.readline().decode().split()[-1]
        for address, wanted in ((url, 0), (url + "/livez", 0), (url + "/nothing", 1),
                                (url.replace("https", "http"), 1)):
            done = subprocess.run([server.binary, "health", address], capture_output=True, text=True,
                                  timeout=30, check=False)
            if done.returncode != wanted:
                raise Failed(f"health {address}: {done.returncode} {done.stderr}, expected {wanted}")
        variables = environment(server.folder, {"FXSERVE_LISTEN": url.removeprefix("https://").replace(
            "127.0.0.1", "0.0.0.0"), "FXSERVE_TLS_CERT": cert})
        done = subprocess.run([server.binary, "health"], env=variables, capture_output=True, text=True,
                              timeout=30, check=False)
        if done.returncode != 0:
            raise Failed(f"health by variables: {done.returncode} {done.stderr}")
        process.send_signal(signal.SIGTERM)
        if process.wait(30) != 0:
            raise Failed(f"exit code {process.returncode}")
        problem(server.reports())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        server.clean_up()


# ---- documents ---------------------------------------------------------------------------------
def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def check_documents(binary):
    text = read("docs/operations.md")
    names = dict(re.findall(r'^STATUS\((\w+), "(\w+)"', read("core/base/status.def"), re.M))
    rows = re.findall(r"^ERROR\((\w+), (\d+)", read("api/errors.def"), re.M)
    missing = [names[name] for name, status in rows if f"| `{names[name]}` | {status} |" not in text]
    if not rows or missing:
        raise Failed(f"docs/operations.md has no row | `code` | status | for {missing}")
    missing = [field for field in FIELDS | START_FIELDS if f"`{field}`" not in text]
    if missing:
        raise Failed(f"docs/operations.md does not name the log's fields {missing}")
    server = Server(binary, ["--data", "none"]).start()
    try:
        families = metrics_of(server)
        problem(server.stop())
    finally:
        server.clean_up()
    missing = [name for name in families if f"`{name}`" not in text and f"`{name}{{" not in text]
    stale = [name for name in re.findall(r"^\| `((?:fxserve|process)_\w+)", text, re.M)
             if name not in families]
    if missing or stale:
        raise Failed(f"docs/operations.md lacks {missing}; and names {stale}, which are not there")


def check_golden_counts(binary):
    counts = counted()
    if read("core/ops/golden_cases.def") != table(counts):
        raise Failed("core/ops/golden_cases.def is not what tools/generate/count_goldens.py makes "
                     "of tests/golden")
    server = Server(binary, ["--data", "none"]).start()
    try:
        rows = server.call("GET", "/v1/ops").json()["ops"]
        problem(server.stop())
    finally:
        server.clean_up()
    said = {row["target"].removeprefix("torch.ops."): row["golden_cases"] for row in rows}
    wrong = [name for name, n in said.items() if n != counts[name]]
    if wrong or sum(said.values()) < 9000:
        raise Failed(f"golden_cases is wrong for {wrong}; {sum(said.values())} in all")


def start_command(binary, *words):
    """A command with a server of its own, where settings for another server are in the environment."""
    settings = {"FXSERVE_TOKEN_FILE": "/no/such/file", "FXSERVE_LISTEN": "256.0.0.1:1", "FXSERVE_X": "1"}
    return subprocess.Popen([os.path.abspath(binary), *words], text=True, env={**os.environ, **settings},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                            preexec_fn=END_WITH_PARENT)


def check_view(binary):
    """`fxserve view FILE` serves the file, prints the page's address, and ends with its server."""
    process = start_command(binary, "view", os.path.join(MODELS, "digits.pt2"))
    try:
        address = process.stdout.readline().strip()
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#/g/digits/graph", address)
        if found is None:
            raise Failed(f"the address is {address!r}: {process.stderr.read() if not address else ''}")
        asked = ["curl", "-fs", f"{found[1]}/v1/graphs/digits"]
        if subprocess.run(asked, check=False, capture_output=True, timeout=60).returncode != 0:
            raise Failed("the server lacks the file's graph")
        process.send_signal(signal.SIGINT)
        if process.wait(30) != 0:
            raise Failed(f"exit code {process.returncode}: {process.stderr.read()}")
        if subprocess.run(asked, check=False, capture_output=True, timeout=60).returncode != 7:
            raise Failed("the server outlives the command")
    finally:
        process.kill()
        process.communicate()
    for words, code, said in ((["view", __file__], 1, "neither"), (["view"], 2, "usage")):
        process = start_command(binary, *words)
        _, error = process.communicate(timeout=60)
        if process.returncode != code or said not in error:
            raise Failed(f"{words}: exit code {process.returncode}, {error}")


def check_demo(binary):
    """`fxserve demo` prints requests with the answers that they have, and ends with its server. What
    would listen there, too, says what to do."""
    process = start_command(binary, "demo", "--listen", "127.0.0.1:0")
    try:
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            if not line:
                raise Failed(f"the demo ended: {process.stderr.read()}")
            text += line
        asked = re.findall(r"^\$ (curl .*)\n(.*)$", text, re.M)
        if len(asked) != 3 or '"index": 7' not in asked[1][1]:
            raise Failed(f"three requests are shown, the second of a seven: {text}")
        for at, (command, first_line) in enumerate(asked):
            done = subprocess.run(["bash", "-c", command.replace("curl ", "curl -f ", 1)], check=False,
                                  capture_output=True, text=True, timeout=60)
            if done.returncode != 0 or (at < 2 and done.stdout.split("\n")[0] != first_line):
                raise Failed(f"{command}: {done.stdout!r}, shown was {first_line!r}")
        place = re.search(r"127\.0\.0\.1:\d+", asked[0][0])[0]
        other = subprocess.run([os.path.abspath(binary), "serve", "--data", "none", "--listen", place],
                               check=False, capture_output=True, text=True, timeout=60)
        if other.returncode != 2 or "in use; --listen HOST:PORT names another place" not in other.stderr:
            raise Failed(f"a second server: exit code {other.returncode}, {other.stderr}")
        process.send_signal(signal.SIGINT)
        if process.wait(30) != 0:
            raise Failed(f"exit code {process.returncode}: {process.stderr.read()}")
        if subprocess.run(["bash", "-c", asked[0][0].replace("curl ", "curl -f ", 1)], check=False,
                          capture_output=True, timeout=60).returncode != 7:
            raise Failed("the server outlives the demo")
    finally:
        process.kill()
        process.communicate()


def check_opened(binary):
    """On a desktop, with a terminal, demo and view open the page at the graph; the demo's has run."""
    with tempfile.TemporaryDirectory() as folder:
        said, opener = os.path.join(folder, "said"), os.path.join(folder, "xdg-open")
        with open(opener, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$1" >{said}.new && mv {said}.new {said}\n')
        os.chmod(opener, 0o755)
        for words in (["demo", "--listen", "127.0.0.1:0"], ["view", os.path.join(MODELS, "digits.pt2")]):
            terminal, inside = os.openpty()
            process = subprocess.Popen([os.path.abspath(binary), *words], stdin=subprocess.DEVNULL,
                                       stdout=inside, stderr=inside, preexec_fn=END_WITH_PARENT,
                                       env={**os.environ, "DISPLAY": ":none",
                                            "PATH": f"{folder}:{os.environ['PATH']}"})
            os.close(inside)
            try:
                text = b""
                while b"Ctrl-C" not in text:
                    text += os.read(terminal, 4096)
                until = time.monotonic() + 60
                while not os.path.exists(said):
                    if time.monotonic() > until:
                        raise Failed(f"{words[0]} opened no page")
                    time.sleep(0.02)
                with open(said, encoding="utf-8") as file:
                    address = file.read().strip()
                os.remove(said)
                if re.fullmatch(r"http://127\.0\.0\.1:\d+/#/g/digits/graph", address) is None:
                    raise Failed(f"{words[0]} opened {address!r}")
                profile = address.replace("#/g/digits/graph", "v1/graphs/digits/profile?form=text")
                done = subprocess.run(["curl", "-s", profile], check=False, capture_output=True, text=True,
                                      timeout=60)
                if ("conv2d" in done.stdout) != (words[0] == "demo"):
                    raise Failed(f"{words[0]}: the profile is {done.stdout!r}")
            finally:
                process.terminate()
                process.wait(30)
                os.close(terminal)


def main():
    if len(sys.argv) != 2:
        print("usage: operations.py FXSERVE")
        return 2
    tally = Tally()
    checks = [("requests and runs are counted, and a strict reader takes the page", check_counts),
              ("a hundred graphs have a series, the rest share one", check_bounded),
              ("times and errors by graph", check_by_graph), ("the data folder's bytes", check_disk),
              ("files that may not grow", check_file_size),
              ("promtool finds nothing", check_promtool),
              ("metrics and probes are answered when the server is full", check_probe_when_full),
              ("log lines have the documented fields, and nothing a client sent in confidence", check_log),
              ("the start is one record", check_start),
              ("a request's line names its token", check_token_names), ("--quiet", check_quiet),
              ("SIGHUP opens the log file again", check_reopen),
              ("a log pipe that nobody reads holds nobody up", check_stalled),
              ("fxserve health speaks TLS", check_health_tls),
              ("the demo's requests have the answers that it prints", check_demo),
              ("fxserve view", check_view),
              ("demo and view open the page on a desktop", check_opened),
              ("docs/operations.md names every code, log field and metric", check_documents),
              ("GET /v1/ops counts the golden cases", check_golden_counts)]
    for name, check in checks:
        try:
            check(sys.argv[1])
            tally.ok()
        except (Failed, OSError, KeyError) as failure:
            tally.bad(name, repr(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
