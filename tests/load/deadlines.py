# SPDX-License-Identifier: Apache-2.0
"""Deadlines within one node: deadlines.py FXSERVE [--long].

Runs whose one long node takes seconds get a deadline of 300 ms on a server with one worker, eagerly
and compiled. The reply must be 504 `deadline`, and the worker must be free for the next request
soon after. The short form takes three operators, the long one all of the table.
"""
import sys
import tempfile
import time

from parts import SLOW_BODY, Failed, Report, Server, Tally, call, graph, run, slow_graph, upload

DEADLINE_MS, AIM_MS, DEFECT_MS = 300, 100, 2000

# name: size of the tensor that the node reads (ones + x), target, further arguments
NODES = {
    "max_pool2d 5000², window 2499²": ([1, 1, 5000, 5000], "torch.nn.functional.max_pool2d", [2499, 1], {}),
    "sort of 60 M": ([60000000], "torch.sort", [], {}),
    "matmul 6000³": ([6000, 6000], "torch.matmul", ["%z"], {}),
    "avg_pool2d 5000², window 999²": ([1, 1, 5000, 5000], "torch.nn.functional.avg_pool2d", [999, 1], {}),
    "median of 40 M": ([40000000], "torch.median", [], {}),
    "cumsum of 400 M": ([400000000], "torch.cumsum", [0], {}),
    "logsumexp of 400 M": ([400000000], "torch.logsumexp", [0], {}),
    "softmax of 400 M": ([400000000], "torch.softmax", [0], {}),
    "conv1d of 2 M, window 60001": ([1, 1, 2000000], "torch.nn.functional.conv1d", ["%w"], {}),
    "layer_norm of 400 M": ([1, 400000000], "torch.nn.functional.layer_norm", [[400000000]], {}),
    "bilinear to 20000²": ([1, 1, 100, 100], "torch.nn.functional.interpolate", [],
                           {"size": [20000, 20000], "mode": "bilinear"}),
    "nonzero of 200 M": ([200000000], "torch.nonzero", [], {}),
    "exp of 400 M": ([400000000], "torch.exp", [], {}),
    "transposed copy of 1.6 GB": ([20000, 20000], "contiguous", [], {}),
}
SHORT = 3


def node_graph(size, target, arguments, keywords):
    """One long node; what comes before takes some ten milliseconds and depends on the input, so
    that nothing is folded."""
    nodes = [call("o", "torch.ones", size), call("z", "torch.add", "%o", "%x")]
    if "%w" in arguments:
        nodes += [call("k", "torch.ones", [1, 1, 60001]), call("w", "torch.mul", "%k", "%x")]
    if target == "contiguous":
        nodes += [call("t", "torch.transpose", "%z", 0, 1),
                  {"op": "call_method", "name": "y", "target": "contiguous", "args": ["%t"], "kwargs": {}}]
    else:
        nodes.append(call("y", target, "%z", *arguments, **keywords))
    if target == "torch.sort":
        nodes.append(call("v", "operator.getitem", "%y", 0))
    return graph(*nodes, call("s", "torch.sum", f"%{nodes[-1]['name']}"))


def busy_ms(server):
    began = time.monotonic()
    reply = run(server, "busy", SLOW_BODY, 120)
    if reply.status != 200:
        raise Failed(f"the run after it: {reply.short()}")
    return (time.monotonic() - began) * 1e3


def check(server, report, name, mode):
    body = b'{"inputs": {"x": [1.5]}, "mode": "%s", "deadline_ms": %d}' % (mode.encode(), DEADLINE_MS)
    began = time.monotonic()
    reply = run(server, "node", body, 120)
    replied = (time.monotonic() - began) * 1e3
    free = (time.monotonic() - began) * 1e3 + busy_ms(server) - DEADLINE_MS
    free -= min(busy_ms(server) for _ in range(3))
    if reply.status != 504:
        raise Failed(f"{name}, {mode}: {reply.short()} after {replied:.0f} ms, not 504")
    report.row(f"300 ms for a node of seconds: {name}, {mode}",
               f"504 after {replied:.0f} ms, the worker free {free:.0f} ms after the deadline",
               f"≤ {AIM_MS} ms after it", free <= AIM_MS, speed=free <= DEFECT_MS)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--long"]):
        print("usage: deadlines.py FXSERVE [--long]")
        return 2
    tally = Tally()
    report = Report(tally)
    rows = list(NODES.items())[:None if sys.argv[2:] else SHORT]
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        server = Server(sys.argv[1], ["--data", "none", "--quiet", "--workers", "1", "--no-warm-up"],
                        folder=folder).start()
        upload(server, "busy", slow_graph(2, 128))
        for name, row in rows:
            try:
                upload(server, "node", node_graph(*row))
                for mode in ("eager", "compiled"):
                    check(server, report, name, mode)
            except (Failed, OSError, ValueError, KeyError) as problem:
                tally.bad(name, str(problem))
        tally.check("the server's end", "\n".join(server.stop()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
