# SPDX-License-Identifier: Apache-2.0
"""What a kept connection is worth, route by route: routes.py FXSERVE [--seconds S].

One client sends one request after the other over 127.0.0.1, on one connection, and then on a new
connection for each request, in turns. Columns: requests per second and microseconds of one request
(median), kept and new, and their ratio. Client and server share the machine, and the client is
Python: the server alone is faster (docs/figures.md). Prints a table; nothing is judged.
"""
import argparse
import json
import os
import socket
import statistics
import sys
import time
from urllib.parse import urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "service"))
from service import Failed, Server, model_file, tensor_of, write_npy

ROUNDS = 5


def routes():
    """Words, method, path and body of each row."""
    images = json.loads(model_file("digits_images.json"))["inputs"]["x"]
    one = json.dumps({"inputs": {"x": images[:1]}}).encode()
    flat = [float(value) for row in images[0][0] for value in row]
    infer = {"inputs": [{"name": "x", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": flat}]}
    return [("ready", "GET", "/readyz", b""), ("list of graphs", "GET", "/v1/graphs", b""),
            ("one graph", "GET", "/v1/graphs/digits", b""), ("code", "GET", "/v1/graphs/digits/text", b""),
            ("run, JSON", "POST", "/v1/graphs/digits/run", one),
            ("run, .npy", "POST", "/v1/graphs/digits/run", write_npy(tensor_of("float32", images[:1]))),
            ("run of v2, JSON", "POST", "/v2/models/digits/infer", json.dumps(infer).encode()),
            ("statistics", "GET", "/v1/graphs/digits/profile", b""),
            ("metrics", "GET", "/metrics", b"")]


def connect(address):
    made = socket.create_connection(address, timeout=10)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def exchange(connection, request):
    """One request and its whole reply."""
    connection.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise Failed(f"{request[:60]}: {head[:200]} {body[:200]}")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                  if line.startswith(b"content-length:"))
    while len(body) < length:
        body += receive(connection)


def receive(connection):
    data = connection.recv(1 << 16)
    if not data:
        raise Failed("the server closed the connection")
    return data


def measure(address, request, seconds, is_kept):
    """Seconds of each request."""
    took, end = [], time.perf_counter() + seconds
    connection = connect(address) if is_kept else None
    while (begin := time.perf_counter()) < end:
        used = connection or connect(address)
        exchange(used, request)
        if not is_kept:
            used.close()
        took.append(time.perf_counter() - begin)
    if connection:
        connection.close()
    return took


def row(address, words, method, path, body, seconds):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    request = head.encode() + b"\r\n" + body
    took = {True: [], False: []}
    measure(address, request, seconds / 10, True)
    for _ in range(ROUNDS):
        for is_kept in (True, False):
            took[is_kept] += measure(address, request, seconds / ROUNDS / 2, is_kept)
    kept, new = (statistics.median(took[key]) * 1e6 for key in (True, False))
    rate = {key: len(times) / sum(times) for key, times in took.items()}
    return (f"| {words} | {rate[True]:,.0f} | {kept:.0f} | {rate[False]:,.0f} | {new:.0f} "
            f"| {new / kept:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=4, help="of each row")
    options = parser.parse_args()
    server = Server(options.binary, ["--data", "none"])
    try:
        server.start()
        server.call("PUT", "/v1/graphs/digits", model_file("digits.pt2"))
        url = urlsplit(server.url)
        print("| route | kept: requests/s | µs | new: requests/s | µs | new ÷ kept |")
        print("|---|---|---|---|---|---|")
        for words, method, path, body in routes():
            print(row((url.hostname, url.port), words, method, path, body, options.seconds), flush=True)
        problems = server.stop()
        if problems:
            raise Failed("; ".join(problems))
    finally:
        server.clean_up()


if __name__ == "__main__":
    main()
