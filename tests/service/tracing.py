# SPDX-License-Identifier: Apache-2.0
"""Spans of requests as a collector of OpenTelemetry gets them: tracing.py FXSERVE.

A recorder in this program takes what --otlp-endpoint sends. Every body is checked against the JSON
form of OTLP (ExportTraceServiceRequest), and read by opentelemetry-proto where it is installed. Then
what goes wrong with collectors: none is there, one answers 503 or 400, one never answers. None of it
may hold up a request or the server's end. The last line is `N passed, N failed`.
"""
import http.server
import json
import re
import socket
import sys
import threading
import time

from service import Failed, Server, Tally

RELU = json.dumps({"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "call_function", "name": "relu", "target": "torch.relu", "args": ["%x"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%relu"]}]}).encode()
RUN = b'{"inputs": {"x": [1.5, -2]}, "profile": true}'
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
STEPS = {"envelope", "graph", "decode", "derive", "bind", "compile", "session", "run", "encode", "answer",
         "queue"}
WAIT_SECONDS = 60


class Recorder:
    """A collector. `answers`: the statuses of the next requests, then 200; None: no answer at all."""

    def __init__(self, answers=(), port=0):
        self.answers, self.bodies, self.asked, self.paths = list(answers), [], 0, set()
        self.changed, self.release = threading.Condition(), threading.Event()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with recorder.changed:
                    recorder.asked += 1
                    recorder.paths.add((self.path, self.headers["Content-Type"]))
                    status = recorder.answers.pop(0) if recorder.answers else 200
                    recorder.changed.notify_all()
                if status is None:
                    recorder.release.wait(WAIT_SECONDS)
                    return
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
                with recorder.changed:
                    if status == 200:
                        recorder.bodies.append(body)
                    recorder.changed.notify_all()

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.daemon_threads = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, holds, what):
        with self.changed:
            if not self.changed.wait_for(holds, WAIT_SECONDS):
                raise Failed(f"{what}: not within {WAIT_SECONDS} s; {self.asked} requests")

    def spans(self):
        return [span for body in list(self.bodies) for span in spans_of(body)]

    def requests(self):
        return [span for span in self.spans() if span["kind"] == 2]

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


# ---- the form of what arrives --------------------------------------------------------------------
def demand(holds, words):
    if not holds:
        raise Failed(words)


def check_value(value):
    demand(len(value) == 1, f"a value is one of a kind: {value}")
    kind, held = next(iter(value.items()))
    demand(kind in ("stringValue", "intValue") and isinstance(held, str), f"value {value}")
    demand(kind != "intValue" or re.fullmatch(r"-?\d+", held), f"a number is a string: {value}")


def check_attributes(rows):
    keys = [row["key"] for row in rows]
    demand(len(keys) == len(set(keys)), f"attributes twice: {keys}")
    for row in rows:
        demand(set(row) == {"key", "value"}, f"attribute {row}")
        check_value(row["value"])


def check_span(span):
    known = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
             "attributes", "status"}
    demand(set(span) <= known, f"members {set(span) - known}")
    demand(re.fullmatch("[0-9a-f]{32}", span["traceId"]) and set(span["traceId"]) != {"0"}, span["traceId"])
    for key in ("spanId", "parentSpanId"):
        demand(key not in span or (re.fullmatch("[0-9a-f]{16}", span[key]) and set(span[key]) != {"0"}),
               f"{key} {span.get(key)}")
    demand(span["kind"] in (1, 2) and span["name"], f"kind {span['kind']}, name {span['name']!r}")
    begin, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
    demand(begin.isdigit() and end.isdigit() and 0 < int(begin) <= int(end), f"times {begin} {end}")
    check_attributes(span.get("attributes", []))


def spans_of(body):
    message = json.loads(body)
    demand(set(message) == {"resourceSpans"}, f"members {set(message)}")
    found = []
    for resource in message["resourceSpans"]:
        demand(set(resource) == {"resource", "scopeSpans"}, f"members {set(resource)}")
        check_attributes(resource["resource"]["attributes"])
        names = {row["key"]: row["value"].get("stringValue") for row in resource["resource"]["attributes"]}
        demand(names["service.name"] == "fxserve", f"resource {names}")
        for scope in resource["scopeSpans"]:
            demand(scope["scope"]["name"] == "fxserve", f"scope {scope['scope']}")
            for span in scope["spans"]:
                check_span(span)
                found.append(span)
    check_with_proto(body, len(found))
    return found


def check_with_proto(body, n_spans):
    """Ids are hex digits in OTLP's JSON and base64 in protobuf's: they are left out here."""
    try:
        from google.protobuf import json_format
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        return
    text = re.sub(rb'"(traceId|spanId|parentSpanId)":"[0-9a-f]+",?', b"", body)
    message = json_format.Parse(text, ExportTraceServiceRequest())
    have = sum(len(scope.spans) for row in message.resource_spans for scope in row.scope_spans)
    demand(have == n_spans, f"{have} spans for protobuf, {n_spans} in JSON")


def attributes(span):
    return {row["key"]: next(iter(row["value"].values())) for row in span["attributes"]}


# ---- cases ---------------------------------------------------------------------------------------
class Traced:
    """A server that sends to a recorder; its end is a check."""

    def __init__(self, binary, tally, port, *flags, sample="1"):
        self.server = Server(binary, ["--data", "none", "--otlp-endpoint", f"http://127.0.0.1:{port}",
                                      "--otlp-sample", sample, *flags])
        self.tally = tally

    def __enter__(self):
        self.server.start()
        self.call("PUT", "/v1/graphs/m", RELU)
        return self

    def __exit__(self, *_):
        self.tally.check("the server's end", "\n".join(self.server.stop()))
        self.server.clean_up()

    def call(self, method, path, body=None, traceparent=None, status=(200, 201)):
        headers = [("traceparent", traceparent)] if traceparent else []
        reply = self.server.call(method, path, body, headers, WAIT_SECONDS)
        demand(reply.status in status, f"{method} {path}: {reply.short()}")
        return reply

    def run(self, traceparent=None):
        return self.call("POST", "/v1/graphs/m/run", RUN, traceparent).json()

    def counts(self):
        text = self.call("GET", "/metrics").body.decode()
        return tuple(int(re.search(rf"^fxserve_traces_{word}_total (\d+)$", text, re.M)[1])
                     for word in ("sent", "dropped"))

    def wait_counts(self, wanted):
        until = time.monotonic() + WAIT_SECONDS
        while (have := self.counts()) != wanted:
            demand(time.monotonic() < until, f"sent and dropped are {have}, not {wanted}")
            time.sleep(0.05)


def received(binary, tally):
    """The caller's trace goes on; a request without one begins its own; steps lie within requests."""
    recorder = Recorder()
    with Traced(binary, tally, recorder.port) as traced:
        profile = traced.run(f"00-{TRACE}-{PARENT}-01")["profile"]
        traced.call("POST", "/v1/graphs/m/run", b'{"inputs": {"y": 1}}', status=(400,))
        traced.call("GET", "/livez")
        recorder.wait(lambda: len(recorder.requests()) >= 3, "three requests")
        upload, run, failed = recorder.requests()
        demand(run["traceId"] == TRACE and run["parentSpanId"] == PARENT, f"the caller's trace: {run}")
        demand(run["spanId"] == profile["span_id"], "the profile has another span")
        demand(run["name"] == "POST /v1/graphs/{name}/run", run["name"])
        have = attributes(run)
        demand((have["fxserve.graph"], have["http.response.status_code"], have["http.route"])
               == ("m", "200", "/v1/graphs/{name}/run"), f"attributes {have}")
        demand("parentSpanId" not in upload and upload["traceId"] != TRACE, f"its own trace: {upload}")
        demand(attributes(failed)["error.type"] == "bad_input", f"a failure: {attributes(failed)}")
        demand(not any("livez" in span["name"] for span in recorder.spans()), "a probe is traced")
        for parent in (upload, run, failed):
            children = [span for span in recorder.spans() if span.get("parentSpanId") == parent["spanId"]]
            demand({span["name"] for span in children} <= STEPS and children, f"steps {children}")
            demand(len({span["spanId"] for span in children}) == len(children), "a span's id twice")
            demand(all(span["traceId"] == parent["traceId"] for span in children), "a step's trace")
            demand(all(int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
                       and int(span["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"])
                       for span in children), f"a step outside of its request: {children}, {parent}")
        names = {span["name"] for span in recorder.spans() if span.get("parentSpanId") == run["spanId"]}
        demand({"decode", "bind", "run", "encode"} <= names, f"steps of a run: {names}")
        demand(recorder.paths == {("/v1/traces", "application/json")}, f"sent to {recorder.paths}")
        log = traced.server.log()
        demand(all(span["traceId"] in log for span in (upload, run, failed)), "the log lacks a trace")
        traced.wait_counts((3 + 0, 0))
    recorder.close()


def sampled(binary, tally):
    """A caller's decision counts, whatever the ratio is; with 0 no request begins a trace."""
    recorder = Recorder()
    with Traced(binary, tally, recorder.port) as traced:
        traced.run(f"00-{TRACE}-{PARENT}-00")
        traced.run()
        recorder.wait(lambda: len(recorder.requests()) >= 2, "two requests")
        demand(not any(span["traceId"] == TRACE for span in recorder.spans()), "an unsampled trace was sent")
    recorder.close()
    recorder = Recorder()
    with Traced(binary, tally, recorder.port, sample="0") as traced:
        for _ in range(20):
            traced.run()
        traced.run(f"00-{TRACE}-{PARENT}-01")
        recorder.wait(recorder.requests, "the caller's trace")
        demand(len(recorder.requests()) == 1, "a request began a trace")
    recorder.close()


def last_words(binary, tally):
    """What waits when the server stops is sent."""
    recorder = Recorder()
    with Traced(binary, tally, recorder.port) as traced:
        for _ in range(30):
            traced.run()
    demand(len(recorder.requests()) == 31, f"{len(recorder.requests())} requests of 31")
    recorder.close()


def absent(binary, tally):
    """Nobody listens: what finds no room is dropped and counted, and the rest is sent once somebody
    does. One line of the log says so."""
    recorder = Recorder()
    port = recorder.port
    recorder.close()
    with Traced(binary, tally, port, "--max-traces", "4") as traced:
        until = time.monotonic() + WAIT_SECONDS
        while "traces cannot be sent" not in traced.server.log():
            demand(time.monotonic() < until, "the log does not say that sending fails")
            time.sleep(0.05)
        for _ in range(20):  # the upload is the thread's by now, 4 of these find room
            traced.run()
        demand(traced.counts()[1] >= 16, f"sent and dropped: {traced.counts()}")
        recorder = Recorder(port=port)
        recorder.wait(lambda: len(recorder.requests()) >= 5, "what had room")
        demand(traced.server.log().count("traces cannot be sent") == 1, "the log repeats itself")
    recorder.close()


def refusing(binary, tally):
    """503 is tried again, with nothing lost; 400 is not."""
    recorder = Recorder([503, 429, 200, 400])
    with Traced(binary, tally, recorder.port) as traced:
        traced.wait_counts((1, 0))
        demand(recorder.asked == 3, f"asked {recorder.asked} times")
        traced.run()
        until = time.monotonic() + WAIT_SECONDS
        while traced.counts()[1] != 1:
            demand(time.monotonic() < until, f"400 is not counted: {traced.counts()}")
            time.sleep(0.05)
        traced.run()
        recorder.wait(lambda: len(recorder.requests()) >= 2, "what came after the refusal")
    recorder.close()


def silent(binary, tally):
    """A collector that takes a request and never answers holds up neither requests nor the end."""
    recorder = Recorder([None] * 1000)
    with Traced(binary, tally, recorder.port, "--max-traces", "8") as traced:
        recorder.wait(lambda: recorder.asked >= 1, "the first request")
        for _ in range(50):
            traced.run()
        demand(traced.counts()[1] >= 40, f"sent and dropped: {traced.counts()}")
    recorder.close()


def told_again(binary, tally):
    """Signals while the server waits for the collector, which is the last that it does, change nothing."""
    recorder = Recorder([None] * 1000)
    with Traced(binary, tally, recorder.port) as traced:
        recorder.wait(lambda: recorder.asked >= 1, "the first request")
        process, until = traced.server.process, time.monotonic() + WAIT_SECONDS
        process.terminate()
        while True:  # the listening socket is closed shortly before the last phase
            demand(time.monotonic() < until, "the server still listens")
            try:
                socket.create_connection(("127.0.0.1", traced.server.port), 0.2).close()
            except ConnectionRefusedError:
                break
            except OSError:  # handshakes are dropped
                pass
        time.sleep(0.3)
        for _ in range(3):
            process.terminate()
            time.sleep(0.05)
        tally.check("told to end again", "\n".join(traced.server.ended(0)))
    recorder.close()


def room(binary):
    """For limits.py: as many requests wait as the limit says, and not one more."""
    recorder = Recorder([None] * 1000)
    with Traced(binary, Tally(), recorder.port, "--max-traces", "3") as traced:
        recorder.wait(lambda: recorder.asked >= 1, "the first request")
        for _ in range(3):
            traced.run()
        before = traced.counts()[1]
        traced.run(f"00-{TRACE}-{PARENT}-01")
        after = traced.counts()[1]
    recorder.close()
    return "" if before == 0 and after >= 1 else f"dropped {before} within the limit, {after} beyond it"


def flags(binary, tally):
    for words, said in ((["--otlp-sample", "1.5"], "--otlp-sample"), (["--otlp-sample", "nan"], "0 to 1"),
                        (["--otlp-endpoint", "collector:4318"], "--otlp-endpoint wants a URL")):
        server = Server(binary, ["--data", "none", *words])
        try:
            server.start()
            tally.bad(" ".join(words), "it started")
        except Failed as failure:
            tally.check(" ".join(words), None if said in str(failure) and "exit code 2" in str(failure)
                        else str(failure))
        finally:
            server.clean_up()


def main():
    tally = Tally()
    for case in (received, sampled, last_words, absent, refusing, silent, told_again, flags):
        try:
            case(sys.argv[1], tally)
            tally.ok()
        except (Failed, OSError, KeyError, ValueError) as failure:
            tally.bad(case.__name__, repr(failure))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
