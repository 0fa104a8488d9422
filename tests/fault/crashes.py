# SPDX-License-Identifier: Apache-2.0
"""Every state that a crash may leave: crashes.py FXSERVE LIBRECORD [SCENARIO].

A server runs under a library that records what it does to its data folder, in order (record.c).
From the record this test builds what a crash after each call may leave on disk, as POSIX allows:
what was written and not synced is there or is not; names that were made, moved or removed in a
folder since that was last synced reached the disk up to any point of their order, each folder by
itself. A server then starts on every such state. It must show what was acknowledged, and of the
change that was under way all or nothing: versions, default, aliases, and what each version answers.
Nothing may be left in tmp/ or quarantine/.
"""
import concurrent.futures
import hashlib
import itertools
import json
import os
import shutil
import sys
import tempfile

from page import Server, quick_folder
from crash import Content
from service import ROOT, Failed, Tally

SMALL, LARGE, OTHER = Content(3), Content(2), Content(6)  # LARGE has a weight that is a blob of its own
MOST_STATES = 4000


def put(name, content):
    return "PUT", f"/v1/graphs/{name}", content.body, content.headers


def change(name, **what):
    return "PATCH", f"/v1/graphs/{name}", json.dumps(what).encode(), []


def delete(path):
    return "DELETE", f"/v1/graphs/{path}", None, []


def variant(name, base, target):
    """A stored recipe: the graph of `base` with another function."""
    rules = [{"match": {"target": "torch.add"}, "retarget": target}]
    return ("PUT", f"/v1/graphs/{name}",
            json.dumps({"format": "fx-variant/1", "base": base, "overrides": rules}).encode(), [])


def saved(name, *steps):
    return "PUT", f"/v1/passes/{name}", json.dumps({"steps": list(steps)}).encode(), []


def transform(name, store_as, *steps):
    body = {"steps": list(steps), "store_as": store_as}
    return "POST", f"/v1/graphs/{name}/transform", json.dumps(body).encode(), []


# name: (what is there before, a fixture of tests/store or requests; what is recorded)
SCENARIOS = {
    "first start and upload": ([], [put("m", LARGE)]),
    "another version": ([put("m", SMALL)], [put("m", LARGE), put("m", OTHER)]),
    "aliases and default": ([put("m", SMALL), put("m", LARGE)], [
        change("m", aliases={"prod": 1}), change("m", default_version=1, aliases={"canary": 2}),
        change("m", aliases={"canary": None}), put("m", LARGE), put("m", OTHER)]),
    "deletes": ([put("m", SMALL), put("m", LARGE), put("m", OTHER), put("n", LARGE)], [
        delete("m/versions/3"), delete("m/versions/1"), put("m", SMALL), delete("m"), put("m", SMALL)]),
    "variants": ([put("m", LARGE)], [
        variant("n", "m", "torch.sub"), variant("n", "m", "torch.mul"), delete("m"),
        delete("n/versions/1")]),
    "saved passes": ([saved("q", {"pass": "cse"})], [
        saved("p", {"pass": "cse"}), saved("p", {"pass": "cse"}, {"pass": "q"}),
        ("DELETE", "/v1/passes/q", None, []), saved("q", {"pass": "lint"}),
        ("DELETE", "/v1/passes/p", None, [])]),
    "stored transforms": ([put("m", LARGE), saved("p", {"edit": "set_target", "node": "add",
                                                        "target": "torch.sub"})], [
        transform("m", "n", {"pass": "p"}), transform("n", "n", {"pass": "constant_fold"}),
        ("DELETE", "/v1/passes/p", None, []), delete("m"), delete("n/versions/1")]),
    "conversion of format 1": ("format1", []),
    "conversion of format 2": ("format2", []),
}


# ---- what is there -----------------------------------------------------------------------------
def observe(server):
    """All that clients can see of the stored graphs."""
    listing = server.call("GET", "/v1/graphs")
    if listing.status != 200:
        raise Failed(f"listing: {listing.short()}")
    seen = {}
    for row in listing.json()["graphs"]:
        name = row["name"]
        info = server.call("GET", f"/v1/graphs/{name}").json()
        answers = {}
        for version in info["versions"]:
            reply = server.call("GET", f"/v1/graphs/{name}/versions/{version}/text?form=code")
            run = server.call("POST", f"/v1/graphs/{name}/versions/{version}/run",
                              b'{"inputs": {"x": [0.0]}}') if name in ("m", "n") else reply
            answers[version] = (reply.status, hashlib.sha256(reply.body).hexdigest(), run.status,
                                run.body.split(b'"program"')[0])
            if reply.status != 200 or run.status != 200:
                raise Failed(f"{name} version {version}: {reply.short()} {run.short()}")
        seen[name] = (info["versions"], info["default_version"], info["aliases"], answers)
    passes = server.call("GET", "/v1/passes").json()["passes"]
    for name in [row["name"] for row in passes]:
        reply = server.call("GET", f"/v1/passes/{name}")
        if reply.status != 200:
            raise Failed(f"pass {name}: {reply.short()}")
        seen[f"pass {name}"] = ([], 1, {}, reply.json()["steps"])
    return seen


def call(server, request):
    reply = server.call(*request)
    if reply.status not in (200, 201, 204):
        raise Failed(f"{request[0]} {request[1]}: {reply.short()}")


# ---- the record --------------------------------------------------------------------------------
def read_record(path):
    """[(name, path, other path, number, bytes)]"""
    calls = []
    with open(path, "rb") as file:
        while True:
            line = file.readline()
            if not line:
                return calls
            name, first, other, number, n = line.decode().rstrip("\n").split("\t")
            calls.append((name, first, other, int(number), file.read(int(n))))


class Inode:
    """A file: what it holds, and what of that is on disk. A folder has neither."""

    def __init__(self, is_folder, data=b""):
        self.is_folder, self.data, self.on_disk = is_folder, bytearray(data), bytes(data)


class Disk:
    """Names as processes see them, those that are on disk, and per folder what was done to its
    names since it was synced."""

    def __init__(self, folder):
        self.now, self.pending = {"": Inode(True)}, {}
        for above, folders, files in os.walk(folder):
            for name in folders + files:
                path = os.path.relpath(os.path.join(above, name), folder)
                if name in folders:
                    self.now[path] = Inode(True)
                else:
                    with open(os.path.join(folder, path), "rb") as file:
                        self.now[path] = Inode(False, file.read())
        self.on_disk = dict(self.now)

    def do(self, name, path, other, number, data):
        if name in ("create", "mkdir"):
            self.now[path] = Inode(name == "mkdir")
            self._note(path, ("add", path, self.now[path]))
        elif name == "write":
            inode = self.now[path].data
            inode.extend(b"\0" * (number + len(data) - len(inode)))
            inode[number:number + len(data)] = data
        elif name == "truncate":
            inode = self.now[path].data
            del inode[number:]
            inode.extend(b"\0" * (number - len(inode)))
        elif name == "rename":
            self.now[other] = self.now.pop(path)
            self._note(other, ("move", other, self.now[other], path))
        elif name == "unlink":
            del self.now[path]
            self._note(path, ("remove", path))
        elif name == "sync" and self.now[path].is_folder:
            for step in self.pending.pop(path, []):
                self._apply(self.on_disk, step)
        elif name == "sync":
            self.now[path].on_disk = bytes(self.now[path].data)

    def _note(self, path, step):
        self.pending.setdefault(os.path.dirname(path), []).append(step)

    @staticmethod
    def _apply(names, step):
        if step[0] == "remove":
            names.pop(step[1], None)
        else:
            if step[0] == "move":
                names.pop(step[3], None)
            names[step[1]] = step[2]

    def states(self):
        """What a crash now may leave: {path: bytes, or None for a folder}."""
        folders = sorted(self.pending)
        for lengths in itertools.product(*(range(len(self.pending[folder]) + 1) for folder in folders)):
            names = dict(self.on_disk)
            for folder, length in zip(folders, lengths):
                for step in self.pending[folder][:length]:
                    self._apply(names, step)
            unsynced = [path for path, inode in names.items() if not inode.is_folder
                        and bytes(inode.data) != inode.on_disk]
            # Of files that were not synced: all of them whole, or one of them as it was at the last
            # sync.
            for lost in [None, *unsynced]:
                yield {path: None if inode.is_folder else inode.on_disk if path == lost else bytes(inode.data)
                       for path, inode in names.items() if os.path.dirname(path) in names}


def digest_of(state):
    sha = hashlib.sha256()
    for path in sorted(state):
        if not path.startswith("tmp/"):  # emptied at a start, whatever is there
            sha.update(repr((path, state[path])).encode())
    return sha.digest()


def write_state(state, folder):
    for path in sorted(state):
        whole = os.path.join(folder, path)
        if state[path] is None:
            os.makedirs(whole, exist_ok=True)
        else:
            with open(whole, "wb") as file:
                file.write(state[path])


# ---- a scenario --------------------------------------------------------------------------------
class Bench:
    def __init__(self, binary, library, folder):
        self.binary, self.library, self.folder, self.n = binary, library, folder, 0

    def server(self, data, **more):
        return Server(self.binary, ["--data", data, "--quiet", "--no-warm-up"], folder=self.folder,
                      extra_environment=more or None).start()

    def new_folder(self):
        self.n += 1
        return os.path.join(self.folder, f"data{self.n}")

    def prepare(self, before):
        data = self.new_folder()
        if isinstance(before, str):
            shutil.copytree(os.path.join(ROOT, "tests", "store", before), data)
            return data
        os.makedirs(data)
        if before:
            server = self.server(data)
            for request in before:
                call(server, request)
            server.stop()
            os.remove(os.path.join(data, "lock"))
        return data

    def record(self, data, requests):
        """What was recorded, and per request (first None: the start): how many calls were over when
        it was answered, and what there was to be seen."""
        path = os.path.join(self.folder, f"record{self.n}")
        server = self.server(data, LD_PRELOAD=os.path.abspath(self.library), RECORD_FILE=path,
                             RECORD_ROOT=data)
        try:
            steps = [(len(read_record(path)), observe(server))]
            for request in requests:
                call(server, request)
                steps.append((len(read_record(path)), observe(server)))
        finally:
            server.kill()
        return read_record(path), steps

    def check(self, state, allowed):
        data = self.new_folder()
        write_state(state, data)
        try:
            server = self.server(data)
        except Failed as problem:
            raise Failed(f"no start: {problem}") from None
        try:
            seen = observe(server)
            left = [f"{place}/{name}" for place in ("tmp", "quarantine")
                    for name in os.listdir(os.path.join(data, place))]
        finally:
            server.kill()
            shutil.rmtree(data)
        if seen not in allowed:
            raise Failed(
                f"shows {({name: row[:3] for name, row in seen.items()})}, expected "
                f"{' or '.join(str({name: row[:3] for name, row in one.items()}) for one in allowed)}")
        if left:
            raise Failed(f"left behind: {left}")


def run(bench, name, tally):
    before, requests = SCENARIOS[name]
    data = bench.prepare(before)
    disk = Disk(data)
    calls, steps = bench.record(data, requests)
    tried, problems = set(), []
    for k in range(len(calls) + 1):
        if k > 0:
            disk.do(*calls[k - 1])
        done = max((i for i, (n, _) in enumerate(steps) if n <= k), default=0)
        allowed = [seen for _, seen in steps[done:done + 2]]
        for state in disk.states():
            key = digest_of(state), done
            if key in tried or problems[4:]:
                continue
            tried.add(key)
            try:
                bench.check(state, allowed)
            except (Failed, OSError, KeyError, ValueError) as problem:
                problems.append(f"after call {k} of {len(calls)} "
                                f"({' '.join(map(str, calls[k - 1][:3])) if k else 'none'}): "
                                f"{str(problem)[:1000]}")
    if len(tried) > MOST_STATES:
        problems.append(f"{len(tried)} states are more than can be tried")
    tally.check(f"{name}: {len(tried)} states after {len(calls)} calls",
                "\n  ".join(problems) if calls else "nothing was recorded")


def main():
    if len(sys.argv) not in (3, 4) or (len(sys.argv) == 4 and sys.argv[3] not in SCENARIOS):
        print(f"usage: crashes.py FXSERVE LIBRECORD [{' | '.join(SCENARIOS)}]")
        return 2
    tally, names = Tally(), sys.argv[3:] or list(SCENARIOS)
    with tempfile.TemporaryDirectory(prefix="fxserve-", dir=quick_folder()) as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def run_apart(name):
            own = os.path.join(os.path.realpath(folder), str(names.index(name)))
            os.mkdir(own)
            run(Bench(sys.argv[1], sys.argv[2], own), name, tally)

        list(pool.map(run_apart, names))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
