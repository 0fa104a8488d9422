# SPDX-License-Identifier: Apache-2.0
"""Files that are refused by name, and what tools/convert_pt2.py makes of them.

    .venv/bin/python tests/live/converting.py build/fxserve

An export as torch 2.7 wrote it, with and without the member that came later, and TorchScript files,
traced and scripted with a branch. Each is refused with a message that names the converter; what that
writes is uploaded and gives PyTorch's numbers. Needs torch 2.13 and numpy. The last line is
`N passed, N failed`.
"""

import io
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch
from torch import nn
from torch._export.serde.schema import SCHEMA_VERSION
from torch._export.serde.serialize import serialize

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests" / "live")]

from compare import values_problem
from differential import decode_tensor
from random_graphs import encode_tensor
from service import serving

WRONG_FILE = 415


class Plain(nn.Module):

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x).relu()


class Branching(Plain):

    def forward(self, x):
        if x.sum() > 0:
            return self.layer(x).relu()
        return self.layer(x) * 2


def old_archive(module, example, with_inputs):
    """As torch 2.7 saved an export."""
    parts = serialize(torch.export.export(module, example))
    members = {"version": ".".join(map(str, SCHEMA_VERSION)),
               "serialized_exported_program.json": parts.exported_program,
               "serialized_state_dict.pt": parts.state_dict, "serialized_constants.pt": parts.constants}
    if with_inputs:
        members["serialized_example_inputs.pt"] = parts.example_inputs
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return whole.getvalue()


def script_archive(script):
    whole = io.BytesIO()
    torch.jit.save(script, whole)
    return whole.getvalue()


def check(server, tally, words, module, content, flags):
    refusal = server.call("PUT", "/v1/graphs/old", content)
    text = refusal.json().get("error", "")
    tally.check(f"{words}: refused", "" if refusal.status == WRONG_FILE else refusal.short())
    tally.check(f"{words}: the converter is named", "" if "tools/convert_pt2.py" in text else text)
    with tempfile.TemporaryDirectory() as folder:
        old, new = pathlib.Path(folder, "old.pt2"), pathlib.Path(folder, "new.pt2")
        old.write_bytes(content)
        command = [sys.executable, str(ROOT / "tools" / "convert_pt2.py"), str(old), str(new), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        tally.check(f"{words}: converted", "" if done.returncode == 0 else done.stderr[-600:])
        if done.returncode != 0:
            return
        reply = server.call("PUT", "/v1/graphs/new", new.read_bytes())
    tally.check(f"{words}: taken", "" if reply.status == 201 or reply.status == 200 else reply.short())
    [name] = [entry["name"] for entry in reply.json().get("inputs", [])]
    for sign in (1, -1):
        x = sign * torch.rand(5 if "--dynamic" in flags else 2, 4)
        for mode in ("eager", "compiled"):
            body = {"inputs": {name: encode_tensor(x)}, "mode": mode, "encoding": "b64"}
            reply = server.call("POST", "/v1/graphs/new/run", json.dumps(body).encode())
            problem = "" if reply.status == 200 else reply.short()
            if not problem:
                got = [decode_tensor(entry) for entry in reply.json()["outputs"]]
                problem = values_problem(got, [module(x).detach()])
            tally.check(f"{words}: numbers, {mode}", problem)


def main():
    torch.manual_seed(0)
    example, sizes = (torch.randn(2, 4), ), ["--input", "float32:2,4"]
    plain, branching = Plain().eval(), Branching().eval()
    traced, scripted = torch.jit.trace(plain, example), torch.jit.script(branching)
    with serving(sys.argv[1]) as (server, tally):
        check(server, tally, "an export of torch 2.7", plain, old_archive(plain, example, True), [])
        check(server, tally, "one without example inputs", plain, old_archive(plain, example, False), [])
        check(server, tally, "a trace", plain, script_archive(traced), sizes)
        check(server, tally, "a script", branching, script_archive(scripted), [*sizes, "--dynamic"])
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
