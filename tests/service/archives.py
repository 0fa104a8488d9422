# SPDX-License-Identifier: Apache-2.0
"""Mutants of .pt2 archives: archives.py FXSERVE [--mutants 20] [--total N | --seconds N] [--seed 1] [WORD].

Each mutant is a real archive (tests/print/pt2, tests/models) in whose model document or weights
configuration a few fields are left out, of another type, or of a value that stands elsewhere in the
document. It is uploaded; what is accepted is run eagerly and compiled, with the example that the
server gives and with the unchanged archive's. No reply may be a 5xx or late, the server must live,
both ways must agree on status and code, and on every number but for rounding.

--mutants: so many of each archive, once; again and again until there are --total of them, or until
--seconds have passed, with a line for each round. WORD: only archives whose names hold it.
"""
import argparse
import base64
import glob
import io
import json
import math
import os
import random
import sys
import time
import zipfile

from service import MODELS, ROOT, Failed, Server, Tally, reply_tensor, Tensor

HANG_SECONDS = 10.0  # of an instrumented server on a busy machine; runs have 2 s
SMALL = ["--max-run-memory", "268435456", "--max-response", "2097152", "--run-deadline-ms", "2000",
         "--max-graph-memory", "67108864"]
UNDECIDED = (408, 413, 504)  # time and memory: a program needs less of both
MOST_BYTES = 300000
STRANGE = [None, True, False, 0, 1, 2, -1, 7, 4, 65, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 62, 0.5, -1e308,
           "", "x", "NaN", [], [0], [[]], {}, {"name": "x"}, {"as_int": 1}, {"as_none": True},
           {"as_tensor": {"name": "x"}}, "torch.ops.aten.relu.default", "torch.ops.aten.sort.default",
           "_operator.getitem"]


def seeds(word):
    paths = sorted(glob.glob(os.path.join(ROOT, "tests", "print", "pt2", "*.pt2"))
                   + glob.glob(os.path.join(MODELS, "*.pt2")))
    return [(os.path.basename(path)[:-4], path) for path in paths if os.path.getsize(path) < MOST_BYTES
            and (word is None or word in path)]


class Archive:
    """Members of one archive; the documents that are mutated are parsed."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        self.documents = {name: slim(json.loads(content)) for name, content in self.members
                          if "models/" in name or name.endswith("_config.json")}
        self.model = next(name for name in self.documents if "models/" in name)

    def bytes_with(self, documents):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, content in self.members:
                archive.writestr(name, json.dumps(documents[name]) if name in documents else content)
        return out.getvalue()


def copied(value):
    return json.loads(json.dumps(value))


def slim(value):
    """Without what no reader looks at, so that mutations meet what counts."""
    if isinstance(value, dict):
        return {key: slim(item) for key, item in value.items()
                if key not in ("stack_trace", "torch_fn", "opset_version", "from_node")}
    return [slim(item) for item in value] if isinstance(value, list) else value


# ---- mutating ----------------------------------------------------------------------------------
def places(value):
    """Every (container, key) of a document, containers first, without recursion."""
    found, left = [], [value]
    while left:
        container = left.pop()
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            found.append((container, key))
            if isinstance(container[key], (dict, list)):
                left.append(container[key])
    return found


def mutate_once(rng, document):
    spots = places(document)
    if not spots:
        return
    container, key = rng.choice(spots)
    value = container[key]
    other_container, other_key = rng.choice(spots)
    same = [(c, k) for c, k in spots if k == key and c is not container] if isinstance(key, str) else []
    choice = rng.randrange(10)
    if choice == 0:
        del container[key]
    elif choice == 1:
        container[key] = copied(rng.choice(STRANGE))
    elif choice <= 4 and same:  # what stands under the same key elsewhere
        other_container, other_key = rng.choice(same)
        container[key] = copied(other_container[other_key])
    elif choice == 5:
        container[key] = copied(other_container[other_key])
    elif choice == 6 and isinstance(container, list):
        container.insert(key, copied(value))
    elif choice == 7 and isinstance(container, list) and len(container) > 1:
        other = rng.randrange(len(container))
        container[key], container[other] = container[other], container[key]
    elif isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int):
        container[key] = rng.choice([value + 1, value - 1, 0, -value, value * 2,
                                     rng.choice([3, 5, 8, 100, 1 << 20, 1 << 40])])
    elif isinstance(value, str) and same:
        other_container, other_key = rng.choice(same)
        container[key] = copied(other_container[other_key])
    elif value is None:
        container[key] = rng.choice([True, False, 0, 1, "", [], {}])
    else:
        container[key] = copied(rng.choice(STRANGE))


def mutant_of(rng, archive):
    documents = copied(archive.documents)
    name = archive.model if rng.random() < 0.9 else rng.choice(list(documents))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        mutate_once(rng, documents[name])
    return archive.bytes_with(documents)


# ---- judging -----------------------------------------------------------------------------------
def same_numbers(ours, theirs):
    """Equal but for rounding: products may be summed in another order when compiled."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    if ours.data == theirs.data or not ours.dtype.startswith("float"):
        return ours.data == theirs.data
    if ours.dtype not in ("float32", "float64"):
        return True
    pairs = list(zip(ours.values(), theirs.values()))
    limit = 1e-4 * max([1.0] + [abs(b) for _, b in pairs if math.isfinite(b)])
    return all(a == b or (a != a and b != b) or abs(a - b) <= limit for a, b in pairs)


def leaf(entry):
    if isinstance(entry, dict) and "b64" in entry and entry["dtype"] in ("float32", "float64"):
        return reply_tensor(entry)
    if isinstance(entry, dict) and "b64" in entry:
        return Tensor(entry["dtype"], entry["shape"], base64.b64decode(entry["b64"]))
    return entry


def differ(eager, compiled):
    """What differs between the outputs of two replies, or None."""
    if len(eager["outputs"]) != len(compiled["outputs"]):
        return "another number of outputs"
    for i, (a, b) in enumerate(zip(eager["outputs"], compiled["outputs"])):
        a, b = leaf(a), leaf(b)
        if isinstance(a, Tensor) != isinstance(b,
                                               Tensor) or (isinstance(a, Tensor) and not same_numbers(a, b)):
            return f"output {i}"
        if not isinstance(a, Tensor) and {**a, "name": ""} != {**b, "name": ""}:
            return f"output {i}"
    return None


class Suite:
    def __init__(self, options):
        self.server, self.tally = Server(options.binary, ["--data", "none", "--quiet"] + SMALL), Tally()
        self.n_mutants = self.n_accepted = self.n_run = 0

    def call(self, method, target, body=b""):
        began = time.monotonic()
        reply = self.server.call(method, target, body, seconds=3 * HANG_SECONDS)
        if reply.status >= 500 and reply.status not in UNDECIDED:
            raise Failed(f"{method} {target}: {reply.short()}")
        if time.monotonic() - began > HANG_SECONDS:
            raise Failed(f"{method} {target} took {time.monotonic() - began:.1f} s")
        if reply.status >= 400 and (not reply.json().get("error") or not reply.code()):
            raise Failed(f"{method} {target}: an error without its text or code: {reply.short()}")
        return reply

    def run_both(self, name, body):
        """Runs a body eagerly and compiled."""
        eager, compiled = (self.call("POST", f"/v1/graphs/{name}/run?encoding=b64&seed=1&mode={mode}", body)
                           for mode in ("eager", "compiled"))
        if eager.status in UNDECIDED or compiled.status in UNDECIDED:
            return
        if (eager.status, eager.code()) != (compiled.status, compiled.code()):
            raise Failed(f"eager {eager.short()[:400]}\n    compiled {compiled.short()[:400]}\n"
                         f"    inputs {body[:300]!r}")
        if eager.status == 200:
            self.n_run += 1
            what = differ(eager.json(), compiled.json())
            if what is not None:
                raise Failed(f"{what} differs: eager {eager.short()}\n    compiled {compiled.short()}")

    def attempt(self, content, good_body):
        self.n_mutants += 1
        reply = self.call("PUT", "/v1/graphs/mutant", content)
        if reply.status >= 400:
            return
        self.n_accepted += 1
        example = self.call("GET", "/v1/graphs/mutant/example")
        for body in {good_body, example.body if example.status == 200 else good_body}:
            self.run_both("mutant", body)
        for form in ("graph", "code"):
            self.call("GET", f"/v1/graphs/mutant/text?form={form}")
        self.call("DELETE", "/v1/graphs/mutant")

    def archive(self, name, path, rng, n):
        """Counts as one check; the first failures are shown, and kept beside the server's log
        folder."""
        problems = []
        archive = Archive(path)
        if self.call("PUT", "/v1/graphs/good",
                     archive.bytes_with(archive.documents)).code() == "unsupported_operators":
            return
        good = self.call("GET", "/v1/graphs/good/example")
        for _ in range(n):
            content = mutant_of(rng, archive)
            try:
                self.attempt(content, good.body if good.status == 200 else b'{"inputs": []}')
            except (Failed, OSError) as problem:
                kept = os.path.join(KEPT,
                                    f"{name}-{self.n_mutants}.pt2") if KEPT else "nowhere (--keep FOLDER)"
                if KEPT:
                    with open(kept, "wb") as file:
                        file.write(content)
                problems.append(f"{problem}\n    kept: {kept}")
                if not self.server.alive():
                    problems += self.server.stop()
                    self.server.start()
        self.tally.check(f"mutants of {name}", "\n  ".join(problems[:5])[:6000] if problems else None)


KEPT = None


def main():
    global KEPT
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", metavar="FXSERVE")
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--total", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for mutants that failed")
    parser.add_argument("word", nargs="?")
    options = parser.parse_args()
    KEPT = options.keep
    suite = Suite(options)
    suite.server.start()
    rng, began = random.Random(options.seed), time.monotonic()
    while True:
        for name, path in seeds(options.word):
            suite.archive(name, path, rng, options.mutants)
        seconds = time.monotonic() - began
        if suite.n_mutants >= options.total and seconds >= (options.seconds or 0):
            break
        print(f"{suite.n_mutants} mutants in {seconds:.0f} s, {suite.tally.failed} archives with failures",
              flush=True)
    suite.tally.check("the server's end", "\n".join(suite.server.stop()))
    suite.server.clean_up()
    print(f"{suite.n_mutants} mutants, {suite.n_accepted} accepted, {suite.n_run} runs compared")
    return suite.tally.end()


if __name__ == "__main__":
    sys.exit(main())
