# SPDX-License-Identifier: Apache-2.0
"""Sessions against PyTorch: state that lives on from run to run.

    .venv/bin/python tests/live/sessions.py build/fxserve

A streaming convolution, a GRU with carried state, a decoder with a static key/value cache that
generates 64 tokens one by one, a counter and dropout; exported as torch.export gives them and after
run_decompositions(), eager and compiled, each step equal to the module's own. Then what sessions
promise: two of them share nothing, failed runs change nothing, runs of one go one after the other,
snapshots continue where they were taken, a deleted graph's session goes on, limits hold, idle ones
end. Needs torch 2.13 and numpy. The last line is `N passed, N failed`.
"""

import concurrent.futures
import copy
import io
import json
import pathlib
import sys
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from compare import values_problem
from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving


class Streaming(nn.Module):
    """A causal convolution that sees 4 samples at a time and remembers the last 6."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, dilation=3)
        self.register_buffer("past", torch.zeros(1, 2, 6))

    def forward(self, x):
        seen = torch.cat([self.past, x], 2)
        self.past.copy_(seen[:, :, -6:])
        return torch.relu(self.conv(seen))


class Carried(nn.Module):

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.register_buffer("hidden", torch.zeros(2, 8))

    def forward(self, x):
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.hidden * 2


class Decoder(nn.Module):
    """One layer of attention over a static cache; gives the next token."""

    def __init__(self, n_tokens=50, width=16, n_heads=2, most=80):
        super().__init__()
        self.embed, self.place = nn.Embedding(n_tokens, width), nn.Embedding(most, width)
        self.qkv, self.out, self.head = nn.Linear(width,
                                                  3 * width), nn.Linear(width,
                                                                        width), nn.Linear(width, n_tokens)
        self.n_heads = n_heads
        self.register_buffer("keys", torch.zeros(n_heads, most, width // n_heads))
        self.register_buffer("values", torch.zeros(n_heads, most, width // n_heads))
        self.register_buffer("at", torch.zeros(1, dtype=torch.int64))

    def forward(self, token):
        x = self.embed(token) + self.place(self.at)
        q, k, v = self.qkv(x).view(1, 3, self.n_heads, -1).permute(1, 2, 0, 3)
        self.keys.index_copy_(1, self.at, k)
        self.values.index_copy_(1, self.at, v)
        mask = torch.arange(self.keys.shape[1]) <= self.at
        y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask[None])
        self.at.add_(1)
        return self.head(self.out(y.permute(1, 0, 2).reshape(1, -1)) + x).argmax(-1)


class Counter(nn.Module):

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))
        self.register_buffer("large", torch.zeros(1000))

    def forward(self, x):
        self.n.add_(x.sum())
        return self.n + 0


class Draws(nn.Module):

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n.add_(1)
        return torch.rand(4) * x + self.n


def archive(program):
    blob = io.BytesIO()
    torch.export.save(program, blob)
    return blob.getvalue()


def open_session(server, name="m", body=b""):
    reply = server.call("POST", f"/v1/graphs/{name}/sessions", body)
    assert reply.status == 201, reply.short()
    return reply.json()["id"]


def run(server, session, x, **members):
    body = {"inputs": [encode_tensor(x)], "encoding": "b64", **members}
    return server.call("POST", f"/v1/sessions/{session}/run", json.dumps(body).encode())


def value(reply):
    return decode_tensor(reply.json()["outputs"][0])


def check_steps(server, tally, words, program, steps):
    """The same steps in two sessions that take turns, and by the module."""
    assert server.call("PUT", "/v1/graphs/m", archive(program)).status < 300
    for mode in ("eager", "compiled", "auto"):
        module = copy.deepcopy(program).module()
        sessions = [open_session(server) for _ in range(2)]
        problem = ""
        for i, x in enumerate(steps):
            want = module(x)
            for session in sessions:
                reply = run(server, session, x, mode=mode)
                if reply.status != 200:
                    problem = problem or f"step {i}: {reply.short()}"
                    continue
                problem = problem or values_problem([value(reply)], [want.detach()])
        tally.check(f"{words}, {mode}", problem)
        for session in sessions:
            server.call("DELETE", f"/v1/sessions/{session}")


def check_decoder(server, tally, words, program):
    """64 tokens, each the input of the next step."""
    assert server.call("PUT", "/v1/graphs/m", archive(program)).status < 300
    for mode in ("eager", "compiled"):
        module, session = copy.deepcopy(program).module(), open_session(server)
        want, got = [torch.tensor([7])], [torch.tensor([7])]
        for _ in range(64):
            want.append(module(want[-1]))
            reply = run(server, session, got[-1], mode=mode)
            if reply.status != 200:
                tally.bad(f"{words}, {mode}", reply.short())
                break
            got.append(value(reply))
        same = [int(token) for token in want] == [int(token) for token in got]
        tally.check(f"{words}, {mode}: 64 tokens, {len(set(map(int, want)))} different",
                    "" if same else f"{got}")
        figures = server.call("GET", "/metrics").body.decode()
        rows = [line for line in figures.split("\n") if line.startswith("fxserve_session")]
        tally.check(f"{words}, {mode}: bytes", "" if "fxserve_session_bytes 10248" in rows else str(rows))
        server.call("DELETE", f"/v1/sessions/{session}")


def count(server, session, n=1, **members):
    return run(server, session, torch.tensor([n]), **members)


def check_promises(server, tally):
    program = torch.export.export(Counter(), (torch.tensor([1]), ))
    server.call("PUT", "/v1/graphs/m", archive(program))
    session = open_session(server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: count(server, session), range(60)))
    seen = sorted(int(value(reply)) for reply in replies if reply.status == 200)
    tally.check("runs of one session go one after the other", "" if seen == list(range(1, 61)) else str(seen))
    tally.check(
        "other runs start from the upload", "" if int(
            decode_tensor(
                server.call("POST", "/v1/graphs/m/run",
                            b'{"inputs": [[1]], "encoding": "b64"}').json()["outputs"][0])) == 1 else "no")
    bad = [
        count(server, session, top=1, **{"as": 1}),
        run(server, session, torch.ones(1, 1)),
        count(server, session, outputs=["none"]),
        count(server, session, overrides=[])
    ]
    tally.check(
        "bad runs are refused",
        "" if all(reply.status >= 400 for reply in bad[:3]) else str([reply.short() for reply in bad]))
    after = count(server, session, 0)
    n = 61 if bad[3].status == 200 else 60
    tally.check("and change nothing", "" if int(value(after)) == n else f"{int(value(after))}, not {n}")
    member = server.call("POST", "/v1/graphs/m/run",
                         json.dumps({
                             "inputs": [[5]],
                             "session": session,
                             "encoding": "b64"
                         }).encode())
    tally.check("member \"session\"",
                "" if member.status == 200 and int(value(member)) == n + 5 else member.short())
    snapshot = server.call("GET", f"/v1/sessions/{session}")
    other = open_session(server)
    put = server.call("PUT", f"/v1/sessions/{other}", snapshot.body)
    both = [int(value(count(server, at))) for at in (session, other)]
    tally.check("a snapshot goes on",
                "" if put.status == 200 and both == [n + 6] * 2 else f"{put.short()} {both}")
    wrong = [server.call("PUT", f"/v1/sessions/{other}", body) for body in (b"", b"{}", snapshot.body[:-1])]
    tally.check("other bytes are refused",
                "" if all(400 <= reply.status < 500 for reply in wrong) else "taken")
    server.call("PUT", "/v1/graphs/m", archive(torch.export.export(Draws(), (torch.ones(4), ))))
    conflict = server.call("POST", "/v1/graphs/m/run",
                           json.dumps({
                               "inputs": [[1, 1, 1, 1]],
                               "session": session
                           }).encode())
    tally.check("another version: 409", "" if conflict.status in (400, 409) else conflict.short())
    server.call("DELETE", "/v1/graphs/m")
    tally.check("a deleted graph's session goes on",
                "" if int(value(count(server, session))) == n + 7 else "no")
    gone = server.call("DELETE", f"/v1/sessions/{session}"), count(server, session)
    tally.check("DELETE ends it", "" if [reply.status for reply in gone] == [204, 404] else str(gone))


def check_random(server, tally):
    server.call("PUT", "/v1/graphs/m", archive(torch.export.export(Draws(), (torch.ones(4), ))))
    for mode in ("eager", "compiled"):
        torch.manual_seed(3)
        module, session = Draws(), open_session(server, body=b'{"seed": 3}')
        want = [module(torch.ones(4)) for _ in range(4)]
        got = [value(run(server, session, torch.ones(4), mode=mode)) for _ in range(2)]
        other = open_session(server)
        server.call("PUT", f"/v1/sessions/{other}", server.call("GET", f"/v1/sessions/{session}").body)
        for at in (session, other):
            rest = [value(run(server, at, torch.ones(4), mode=mode)) for _ in range(2)]
            tally.check(f"random numbers go on, {mode}", values_problem(got + rest, want))


def check_limits(binary, total):
    program = archive(torch.export.export(Counter(), (torch.tensor([1]), )))
    flags = ("--max-sessions", "2", "--max-session-bytes", "8", "--session-idle-s", "2")
    with serving(binary, *flags) as (server, tally):
        server.call("PUT", "/v1/graphs/m", program)
        sessions = [open_session(server) for _ in range(2)]
        third = server.call("POST", "/v1/graphs/m/sessions", b"")
        tally.check("a third of 2 sessions: 503", "" if third.status == 503 else third.short())
        first, again = count(server, sessions[0]), count(server, sessions[0])
        tally.check("8 bytes of 8",
                    "" if first.status == again.status == 200 else first.short() + again.short())
        second = count(server, sessions[1])
        tally.check("8 more: 413", "" if second.status == 413 else second.short())
        time.sleep(4.2)
        late = count(server, sessions[0])
        tally.check("an idle one ends", "" if late.status == 404 else late.short())
        tally.check("and makes room", "" if count(server, open_session(server)).status == 200 else "no")
    total.passed += tally.passed
    total.failed += tally.failed


def main():
    torch.manual_seed(0)
    with serving(sys.argv[1]) as (server, tally):
        for make, steps in ((Streaming, [torch.randn(1, 2, 4) for _ in range(5)]),
                            (Carried, [torch.randn(2, 4)
                                       for _ in range(5)]), (Counter, [torch.tensor([i]) for i in range(4)])):
            program = torch.export.export(make(), (steps[0], ))
            check_steps(server, tally, make.__name__, program, steps)
            check_steps(server, tally, f"{make.__name__}, decomposed", program.run_decompositions(), steps)
        program = torch.export.export(Decoder(), (torch.tensor([7]), ))
        check_decoder(server, tally, "decoder", program)
        check_decoder(server, tally, "decoder, decomposed", program.run_decompositions())
        check_promises(server, tally)
        check_random(server, tally)
    check_limits(sys.argv[1], tally)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
