# SPDX-License-Identifier: Apache-2.0
"""Weights at odd places of a form: odd_places.py FXSERVE

A form of more than 1 MB comes as a file, in which the weights lie wherever the parts before them
end. Samples that come along are run before the graph is stored: with weights at every remainder of
8, with and without a data folder, and under ASan and UBSan, which notice a number that is read where
its type may not lie. What is stored then runs as well.
"""
import array
import json
import sys

from service import Failed, Server, Tally, Tensor, multipart, write_safetensors

WIDTH = 600  # of a square of weights: 1.4 MB


def floats(shape, values):
    return Tensor("float32", shape, array.array("f", values).tobytes())


GRAPH = json.dumps({"format": "fx/1", "nodes": [
    {"op": "placeholder", "name": "x", "target": "x"},
    {"op": "get_attr", "name": "w", "target": "w"},
    {"op": "call_function", "name": "y", "target": "F.linear", "args": ["%x", "%w"]},
    {"op": "output", "name": "output", "target": "output", "args": ["%y"]}],
    "state": {"w": {"dtype": "float32", "shape": [WIDTH, WIDTH]}}}).encode()
WEIGHTS = write_safetensors({"w": floats([WIDTH, WIDTH],
                                         [float(i % WIDTH == i // WIDTH) / 2 for i in range(WIDTH * WIDTH)])})
X = [float(i % 7) for i in range(WIDTH)]
SAMPLES = write_safetensors({"0.inputs.x": floats([1, WIDTH], X),
                             "0.outputs.y": floats([1, WIDTH], [value / 2 for value in X])})


def fault_of(server, pad):
    """What is wrong with an upload whose graph has `pad` blanks behind it; "": nothing."""
    body, kind = multipart([("graph", GRAPH + b" " * pad), ("weights", WEIGHTS), ("samples", SAMPLES)])
    reply = server.call("PUT", f"/v1/graphs/odd{pad}", body, [("Content-Type", kind)])
    if reply.status != 201:
        return reply.short()
    reply = server.call("POST", f"/v1/graphs/odd{pad}/run", json.dumps({"inputs": {"x": [X]}}).encode())
    good = reply.status == 200 and reply.json()["outputs"][0]["data"] == [[value / 2 for value in X]]
    return "" if good else reply.short()


def main():
    tally = Tally()
    for flags in ([], ["--data", "none"]):
        server = Server(sys.argv[1], flags).start()
        try:
            for pad in range(8):
                try:
                    tally.check(f"{flags} pad {pad}", fault_of(server, pad))
                except (Failed, OSError) as failure:
                    tally.check(f"{flags} pad {pad}", str(failure))
            tally.check(f"{flags} the server is well", "\n".join(server.stop()))
        finally:
            server.clean_up()
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
