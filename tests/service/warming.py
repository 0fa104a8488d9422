# SPDX-License-Identifier: Apache-2.0
"""/readyz says no until what graphs declare has been built: warming.py FXSERVE.

For graphs of the data folder and of a folder of models as KServe has them, after a start. Whenever
the server says that it is ready, the graph's warm-up has ended.
"""
import json
import os
import sys
import tempfile
import time

from service import Failed, Server, Tally, multipart
from tolerance import WIDTH, graph, weights

SIZES = [f"x:{n},{WIDTH}" for n in (1, 2, 3, 5, 8, 13)]


def expect(reply, *statuses):
    if reply.status not in statuses:
        raise Failed(reply.short())
    return reply


def states(server):
    """(ready, the warm-up's state, why not), asked in this order."""
    reply = expect(server.call("GET", "/readyz"), 200, 503)
    ready = reply.status == 200
    why = "" if ready else reply.json()["error"]
    return ready, expect(server.call("GET", "/v1/graphs/m"), 200).json()["warm_up"]["state"], why


def wait_until_warm(server, seconds=60):
    """How often it was not ready."""
    end, n = time.monotonic() + seconds, 0
    while True:
        ready, state, why = states(server)
        if ready and state != "done":
            raise Failed(f"the server is ready while the warm-up is {state}")
        if ready:
            return n
        if "warm-ups" not in why:
            raise Failed(why)
        if time.monotonic() > end:
            raise Failed(f"not ready after {seconds} s; the warm-up is {state}")
        n += 1


def declare(server):
    expect(server.call("PATCH", "/v1/graphs/m", json.dumps({"warm_up": SIZES}).encode()), 200)
    if not states(server)[0]:
        raise Failed("a server that was ready is not any more")


def is_compiled(server):
    body = json.dumps({"inputs": {"x": [[0.5] * WIDTH] * 13}}).encode()
    if expect(server.call("POST", "/v1/graphs/m/run", body), 200).json()["program"] is None:
        raise Failed("the first run has no program")


def restarted(binary, flags):
    """Declares warm-ups, starts again, and waits for them."""
    server = Server(binary, flags).start()
    try:
        if not any(row["name"] == "m" for row in server.call("GET", "/v1/graphs").json()["graphs"]):
            body, content_type = multipart([("graph", graph()), ("weights", weights(1))])
            expect(server.call("PUT", "/v1/graphs/m", body, [("Content-Type", content_type)]), 201)
        declare(server)
    finally:
        problems = server.stop()
    server = Server(binary, flags).start()
    try:
        n = wait_until_warm(server)
        is_compiled(server)
    finally:
        problems += server.stop()
    if n == 0:
        raise Failed("the server was ready at once")
    return "\n".join(problems)


def main():
    if len(sys.argv) != 2:
        print("usage: warming.py FXSERVE")
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        models = os.path.join(folder, "models", "m", "1")
        os.makedirs(models)
        for name, content in (("model.json", graph()), ("weights.safetensors", weights(2))):
            with open(os.path.join(models, name), "wb") as file:
                file.write(content)
        for what, flags in (("a data folder", []), ("a folder of models", ["--models", folder + "/models"])):
            data = os.path.join(folder, str(len(flags)))
            try:
                problem = restarted(sys.argv[1], ["--data", data, "--workers", "1", "--quiet", *flags])
            except Failed as failure:
                problem = str(failure)
            tally.check(what, problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
