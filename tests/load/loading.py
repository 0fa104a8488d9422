# SPDX-License-Identifier: Apache-2.0
"""Models that are loaded and unloaded again and again: loading.py FXSERVE [CYCLES], 1,000 by default.

Each cycle unloads a model over /v2, loads it, and runs it, compiled. The first tenth of the cycles
says how much of the process is resident. After the last one it must take no more than 5 %
above that, and open no more files.
"""
import json
import sys
import tempfile
import time

from deleting import SIZE, chain, expect
from parts import Server, Tally, descriptors, memory

LAYERS, ROUNDS, SECONDS, SHARE = 8, 3, 15, 1.05
RUN = json.dumps({"inputs": [{"name": "x", "shape": [1, SIZE], "datatype": "FP32", "data": [1.0] * SIZE}],
                  "parameters": {"mode": "compiled"}}).encode()


def cycle(server):
    expect(server.call("POST", "/v2/repository/models/m/unload"), 200)
    expect(server.call("POST", "/v2/models/m/infer", RUN), 400, 404)
    expect(server.call("POST", "/v2/repository/models/m/load"), 200)
    expect(server.call("POST", "/v2/models/m/infer", RUN), 200)


def least(server, enough):
    """What the process takes once it has given back what it can: the least of some seconds, or what
    is little enough."""
    end, found = time.monotonic() + SECONDS, memory(server, "VmRSS")
    while found > enough and time.monotonic() < end:
        time.sleep(0.2)
        found = min(found, memory(server, "VmRSS"))
    return found


def settled(server):
    time.sleep(3)  # idle work, and what is given back after it
    return memory(server, "VmRSS")


def cycles(server, n):
    """A step of the heap happens once; a leak grows again, and once more."""
    expect(server.call("PUT", "/v1/graphs/m", *chain(0, LAYERS)), 201)
    for _ in range(max(n // 10, 5)):
        cycle(server)
    before, files = settled(server), descriptors(server)
    for _ in range(ROUNDS):
        for _ in range(n - n // 10):
            cycle(server)
        after = least(server, before * SHARE)
        print(f"{n} cycles: {before >> 20} MiB after a tenth of them, {after >> 20} MiB after all "
              f"({after / before:.3f}), {files} and {descriptors(server)} files")
        if descriptors(server) > files:
            return f"{descriptors(server)} files are open, {files} were"
        if after <= before * SHARE:
            return ""
        before = after
    return f"more than {SHARE} times as much, {ROUNDS} times in a row"


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: loading.py FXSERVE [CYCLES]")
        return 2
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        # few profiles: their ring is full after the first tenth
        flags = ["--data", folder + "/data", "--quiet", "--workers", "2", "--max-profiles", "8"]
        server = Server(sys.argv[1], flags, folder=folder).start()
        try:
            tally.check("models that are loaded and unloaded",
                        cycles(server, int(sys.argv[2]) if len(sys.argv) > 2 else 1000))
        finally:
            tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
