# SPDX-License-Identifier: Apache-2.0
"""Calls on files that fail: files.py FXSERVE LIBFAULT [--long] [SCENARIO].

Five scenarios (upload, replace, delete, start, first runs after a start) are done once to count
their calls and then once per call n and per way to fail: ENOSPC, EIO, EMFILE, EINTR and short
counts at call n, ENOSPC at n and all later ones. What may happen: the request succeeds and its
effect is there, or it answers 500 or 507 (a start: ends with exit code 1 or 2) and nothing has
changed; graphs that were loaded run as before, the next request works, and after a restart without
faults everything is there, with nothing left in tmp/ or quarantine/. A short count and EINTR of
reads and writes must not be noticed at all. --long restarts after every single fault.
"""
import concurrent.futures
import os
import sys
import tempfile

from page import Page, quick_folder
from crash import GONE, Content, answer_of
from service import Failed, Tally

WAYS = [("ENOSPC", False), ("EIO", False), ("EMFILE", False), ("EINTR", False), ("SHORT", False),
        ("ENOSPC", True)]
RETRIED = ("read", "pread", "write", "pwrite")
RESTART_EVERY = 7
# one multipart with weights, one FX JSON with its state inside, one beside
OLD, NEW, OTHER = (Content(2), Content(3), Content(5))


class Bench:
    """A server on a data folder, with the graph "other" loaded and, for most scenarios, "m" holding
    OLD."""

    def __init__(self, binary, library, folder):
        self.binary, self.library, self.folder, self.page, self.process = (binary, library, folder,
                                                                           Page(folder), None)
        self.data = os.path.join(folder, "data")

    def make(self):
        return self.page.server(self.binary, self.library, ["--data", self.data, "--quiet"], self.folder)

    def start(self):
        self.process = self.make().start()

    def stop(self):
        problems = self.process.stop()
        if problems:
            raise Failed("\n".join(problems))

    def recover(self):
        """After something went wrong: a new server, with both graphs there again."""
        if self.process is not None:
            self.process.kill()
        self.start()
        self.put("other", OTHER)

    def put(self, name, content):
        return self.process.call("PUT", f"/v1/graphs/{name}", content.body, content.headers)

    def reset(self, number):
        """ "m" holds `number` (a Content or GONE) and "other" runs from memory."""
        reply = self.process.call("DELETE", "/v1/graphs/m") if number is GONE else self.put("m", number)
        if reply.status not in (200, 201, 204, 404):
            raise Failed(f"before the fault: {reply.short()}")
        if answer_of(self.process, "other") != OTHER.number:
            raise Failed("before the fault: \"other\" does not run")

    def expect(self, allowed, when):
        found = answer_of(self.process, "m")
        if found not in allowed:
            raise Failed(f"{when}: \"m\" answers {found}, expected {' or '.join(map(str, allowed))}")
        if answer_of(self.process, "other") != OTHER.number:
            raise Failed(f"{when}: \"other\" does not run")
        return found

    def restart(self, allowed):
        self.stop()
        self.start()
        self.expect(allowed, "after a restart")
        for place in ("tmp", "quarantine"):
            left = os.listdir(os.path.join(self.data, place))
            for path in left:  # so that each fault is judged by itself
                os.remove(os.path.join(self.data, place, path))
            if left:
                raise Failed(f"after a restart: {place}/ holds {left}")


def number_of(content):
    return GONE if content is GONE else content.number


class Change:
    """A request that changes what "m" holds."""

    def __init__(self, before, after):
        self.before, self.after = before, after

    def prepare(self, bench):
        bench.reset(self.before)

    def act(self, bench):
        if self.after is GONE:
            return bench.process.call("DELETE", "/v1/graphs/m")
        return bench.put("m", self.after)

    def judge(self, bench, reply, must_work):
        if reply.status in (200, 201, 204):
            return [bench.expect([number_of(self.after)], f"after {reply.status}")]
        if must_work or reply.status not in (500, 507):
            raise Failed(f"it answers {reply.short()}")
        return [bench.expect([number_of(self.before)], f"after {reply.status}")]


def last_line(problem):
    return str(problem).strip().split("\n")[-1][:300]


def first_runs(bench, statuses):
    for name in ("m", "other"):
        reply = bench.process.call("POST", f"/v1/graphs/{name}/run", b'{"inputs": {"x": [0.0]}}')
        if reply.status not in statuses:
            raise Failed(f"{name} runs with {reply.short()}")


def unnoticed(bench, how):
    """Whether the fault is of a kind that the server must cope with in silence."""
    return how == "SHORT" or (how == "EINTR" and bench.page.last() in RETRIED)


def start_under_fault(bench, with_runs, how):
    """Starts the server with the fault armed, and with `with_runs` runs both graphs; it may also
    end with an error."""
    server = bench.process = bench.make()
    try:
        server.start()
    except Failed as problem:
        bench.page.files.disarm()
        code = None if server.process is None else server.process.returncode
        server.kill()
        if code not in (1, 2) or unnoticed(bench, how):
            raise Failed(f"the start ends with exit code {code}: {last_line(problem)}") from None
        return
    if with_runs:
        first_runs(bench, (200,) if unnoticed(bench, how) else (200, 404, 500, 503, 507))
    bench.page.files.disarm()
    if not with_runs:
        first_runs(bench, (200,) if unnoticed(bench, how) else (200, 404, 500, 503, 507))
    bench.stop()


def try_one(bench, scenario, n, how, always):
    """One fault; what "m" holds now."""
    scenario.prepare(bench)
    bench.page.files.arm(n, how, always)
    try:
        reply = scenario.act(bench)
    finally:
        bench.page.files.disarm()
    allowed = scenario.judge(bench, reply, unnoticed(bench, how))
    # Where every later call fails, too, what is on disk may not be undone: then the next start may
    # show it.
    return [number_of(scenario.before), number_of(scenario.after)] if always else allowed


def sweep(bench, name, scenario, how, always, tally, long):
    scenario.prepare(bench)
    bench.page.files.arm(0)
    scenario.act(bench)
    calls, _ = bench.page.files.disarm()
    problems, allowed = [], None
    for n in range(1, calls + 1):
        try:
            allowed = try_one(bench, scenario, n, how, always)
            if long or n % RESTART_EVERY == 0 or n == calls:
                bench.restart(allowed)
        except (Failed, OSError, ValueError, KeyError) as problem:
            problems.append(f"call {n} of {calls} ({bench.page.last()}): {last_line(problem)}")
            bench.page.files.disarm()
            bench.recover()
        if len(problems) >= 5:
            break
    tally.check(f"{name}, {how}{' for ever' if always else ''}",
                "\n  ".join(problems) if calls else "no call was counted")
    return calls


def count_start(bench, with_runs):
    bench.page.files.arm(0)
    bench.start()
    if with_runs:
        first_runs(bench, (200,))
    calls, _ = bench.page.files.disarm()
    bench.stop()
    return calls


def sweep_start(bench, name, how, always, tally):
    """name "start": calls until the server listens; "run": those after it, of decoding stored
    graphs and their first runs."""
    bench.reset(OLD)
    bench.stop()
    first, calls, problems = 1, count_start(bench, False), []
    if name == "run":
        first, calls = calls + 1, max(calls + 1, count_start(bench, True))
    for n in range(first, calls + 1):
        try:
            bench.page.files.arm(n, how, always)
            start_under_fault(bench, name == "run", how)
            bench.start()
            bench.restart([OLD.number])
            bench.stop()
        except (Failed, OSError, ValueError, KeyError) as problem:
            bench.page.files.disarm()
            problems.append(f"call {n} of {calls} ({bench.page.last()}): {last_line(problem)}")
            bench.recover()
            bench.reset(OLD)
            bench.stop()
        if len(problems) >= 5:
            break
    bench.start()
    tally.check(f"{name}, {how}{' for ever' if always else ''}",
                "\n  ".join(problems) if calls else "no call was counted")
    return calls - first + 1


def sweeps(arguments, only, way, tally, long):
    """Calls of every scenario fail in this way, on a server and a folder of their own; how many did."""
    scenarios = {"upload": Change(GONE, NEW), "replace": Change(OLD, NEW), "delete": Change(OLD, GONE)}
    total = 0
    with tempfile.TemporaryDirectory(prefix="fxserve-", dir=quick_folder()) as folder:
        bench = Bench(arguments[0], arguments[1], folder)
        bench.start()
        if bench.put("other", OTHER).status != 201:
            raise Failed("the first upload failed")
        for name, scenario in scenarios.items():
            if only in (None, name):
                total += sweep(bench, name, scenario, *way, tally, long)
        for name in ("start", "run"):
            if only in (None, name):
                total += sweep_start(bench, name, *way, tally)
        tally.check(f"the server's end, {way[0]}", "\n".join(bench.process.stop()))
    return total


def main():
    arguments = [word for word in sys.argv[1:] if word != "--long"]
    if len(arguments) not in (2, 3):
        print("usage: files.py FXSERVE LIBFAULT [--long] [SCENARIO]")
        return 2
    long, only = "--long" in sys.argv, arguments[2] if len(arguments) > 2 else None
    tally = Tally()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        total = sum(pool.map(lambda way: sweeps(arguments, only, way, tally, long), WAYS))
    print(f"{total} calls failed, one at a time on each of {len(WAYS)} servers")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
