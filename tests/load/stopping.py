# SPDX-License-Identifier: Apache-2.0
"""Stopping under load: stopping.py FXSERVE [N=3].

N times: clients run graphs as fast as they can, SIGTERM comes at a random moment; every answer that
began must be whole, and the server must end with exit code 0. Then a server whose log goes to a
pipe that nobody reads: requests must go on all the same, and so must the end.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from parts import (SLOW_BODY, TINY, TINY_BODY, Failed, Report, Server, Tally, call, graph, percentile,
                   slow_graph, upload)
from service import environment, Connection

WIDE = graph(call("y", "torch.ones", [300, 300]), call("z", "torch.add", "%y", "%x"))
KINDS = [("tiny", TINY_BODY), ("wide", b'{"inputs": {"x": [1.5]}}'), ("busy", SLOW_BODY)]
N_CLIENTS = 8
STALLED_REQUESTS, STALLED_SECONDS = 3000, 1.0


def client(server, kind, counts, problems, lock):
    """Requests on one connection until the server says that it ends."""
    name, body = kind
    whole = refused = 0
    try:
        with server.connect(30) as connection:
            while True:
                connection.request("POST", f"/v1/graphs/{name}/run", body)
                reply = connection.reply()
                whole += 1
                refused += reply.status == 503
                if reply.status not in (200, 503):
                    raise Failed(f"it answers {reply.short()}")
                if (reply.header("Connection") or "").lower() == "close":
                    break
    except Failed as problem:
        if "so far: b''" not in str(problem):  # closed between two answers is fine, within one is not
            with lock:
                problems.append(f"{name}: {problem}")
    except OSError:
        pass  # refused or reset before a request was taken
    with lock:
        counts.append((whole, refused))


def round_of(binary, chance):
    counts, problems, lock = [], [], threading.Lock()
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        server = Server(binary, ["--data", "none", "--quiet"], folder=folder).start()
        for name, body in (("tiny", TINY), ("wide", WIDE), ("busy", slow_graph(2, 160))):
            upload(server, name, body)
        threads = [threading.Thread(target=client, args=(server, KINDS[i % len(KINDS)], counts, problems,
                                                         lock)) for i in range(N_CLIENTS)]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + chance.random() * 0.4)
        server.signal(signal.SIGTERM)
        code = server.wait(60)
        for thread in threads:
            thread.join()
        if code != 0:
            problems.append(f"exit code {code} after SIGTERM")
        server.kill()
        problems += server.reports()
    return sum(whole for whole, _ in counts), problems


def rounds(binary, n, report):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance, answers, problems = random.Random(seed), 0, []
    for _ in range(n):
        whole, found = round_of(binary, chance)
        answers, problems = answers + whole, problems + found
        if len(problems) > 5:
            break
    report.row(f"SIGTERM under load, {n} times", "; ".join(problems[:5]) or f"{answers:,} whole answers, "
               f"exit code 0 each time", "no truncated answer, exit code 0", not problems and answers > 0)


def stalled(binary, report):
    """Standard error is a pipe that is full."""
    with tempfile.TemporaryDirectory(prefix="fxserve-") as folder:
        process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--data", "none"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   cwd=folder, env=environment(folder))
        times, code = [], None
        try:
            port = int(re.search(rb":(\d+)\n", process.stdout.readline())[1])
            with Connection(port, 10) as connection:
                connection.request("PUT", "/v1/graphs/tiny", TINY)
                connection.reply()
                for _ in range(STALLED_REQUESTS):
                    began = time.monotonic()
                    connection.request("POST", "/v1/graphs/tiny/run", TINY_BODY)
                    if connection.reply().status != 200:
                        raise Failed("a request fails")
                    times.append(time.monotonic() - began)
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
            problem = None if code == 0 else f"exit code {code}"
        except (Failed, OSError, subprocess.TimeoutExpired, TypeError) as error:
            problem = f"after {len(times)} requests: {error}"
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()
    figure = (problem or f"{len(times):,} requests answered, slowest {max(times) * 1e3:.0f} ms, median "
              f"{percentile(times, 50) * 1e3:.2f} ms, exit code 0")
    report.row("a log pipe that nobody reads", figure, f"requests go on (< {STALLED_SECONDS:g} "
               f"s each), exit code 0", problem is None and max(times) < STALLED_SECONDS)


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: stopping.py FXSERVE [N=3]")
        return 2
    tally, binary = Tally(), os.path.abspath(sys.argv[1])
    report = Report(tally)
    rounds(binary, int(sys.argv[2]) if len(sys.argv) > 2 else 3, report)
    stalled(binary, report)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
