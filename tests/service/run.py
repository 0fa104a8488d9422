# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios of this folder: run.py FXSERVE [PATTERN]. scenario.py says how they are
written.

Each scenario has a server of its own, which must end with code 0 on SIGTERM and without a
sanitizer's report. A run of all of them also checks that every route of api/routes.def answered
with each of its success statuses, and that every code of api/errors.def was seen or stands below
with the reason why it cannot be, and that limits.py knows a scenario for every limit of
core/base/limits.def.
"""
import concurrent.futures
import os
import re
import sys
import threading

import limits
from scenario import Scenario, matching
from service import HERE, ROOT, Tally, routes

# Codes no request can bring about in this version, and why. A code that is seen must not stand
# here.
UNSEEN = {
    "length_required": "bodies without a length are taken as chunked, and a body that is missing "
    "is named by its route",
    "disk_full": "needs a full disk; tests of the store bring it about",
    "usage": "the command line: exit code 2, see the scenarios that start the program",
    "dynamic": "belongs to recording, which is no part of this version",
    "no_memory": "needs an allocation to fail",
    "internal": "would be a defect",
}


def table(path, pattern):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.findall(pattern, file.read(), re.M)


class Coverage:
    def __init__(self):
        self.lock, self.seen, self.codes = threading.Lock(), set(), set()
        self.routes = [(method, re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(path)) + r"(\?.*)?$"),
                        path, statuses) for _, method, path, statuses in routes()]

    def add(self, method, target, status, code):
        with self.lock:
            if code is not None:
                self.codes.add(code)
            for wanted, pattern, path, _ in self.routes:
                if method == wanted and pattern.match(target):
                    self.seen.add((method, path, str(status)))

    def problems(self):
        out = [f"no scenario has {method} {path} answer {status}" for method, _, path, statuses in self.routes
               for status in statuses if (method, path, status) not in self.seen]
        names = dict(table("core/base/status.def", r'^STATUS\((\w+), "(\w+)"'))
        for name in table("api/errors.def", r"^ERROR\((\w+)"):
            code = names[name]
            if code not in self.codes and code not in UNSEEN:
                out.append(f"no scenario brings about the code {code}")
            if code in self.codes and code in UNSEEN:
                out.append(f"the code {code} was seen: it does not belong among UNSEEN")
        return out


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: run.py FXSERVE [PATTERN]")
        return 2
    binary, pattern = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else None
    tally, coverage = Tally(), Coverage()
    paths = matching(HERE, pattern)

    def one(path):
        scenario = Scenario(path, binary, coverage.add)
        return scenario.name, scenario.run()

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for name, problems in pool.map(one, paths):
            tally.check(name, "\n  ".join(problem[:3000] for problem in problems))
    if pattern is None:
        tally.check("routes and codes", "\n  ".join(coverage.problems()))
        tally.check("limits", "\n  ".join(limits.missing()))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
