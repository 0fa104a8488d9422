# SPDX-License-Identifier: Apache-2.0
"""Who runs the examples of the documents: every block of code in README.md, docs and clients, and in
the other documents, is run by a test, or stands in NOT_RUN with the reason.

A block is fenced, or indented by four after an empty line. ```console blocks of the documents in
CONSOLE are run by readme.py. Others are named by their document and first line, in RUN with the test
that takes them from the document, or in NOT_RUN. A block that is new, or gone, is a failure.
"""
import os
import re
import textwrap

from service import tracked_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONSOLE = ("README.md", "docs/api.md", "docs/overriding.md", "docs/seed-notes.md", "docs/oip.md",
           "docs/migrating.md")
PYTHON = {"README.md", "clients/python/README.md"}  # by tests/live/readme_python.py
RUN = {
    ("docs/operators.md", 'POINT1(ndtr'): "tests/layering/operators_doc.py",
    ("docs/operators.md", 'FLOATING("special_ndtr"'): "tests/layering/operators_doc.py",
    ("docs/operators.md", '// core/kernels/reduce/trace.h'): "tests/layering/operators_doc.py",
    ("docs/operators.md", '// ---- trace ----'): "tests/layering/operators_doc.py",
    ("docs/operators.md", 'static Status l1_loss_expand'): "tests/layering/operators_doc.py",
    ("docs/operators.md", '// in core/targets/arguments.def'): "tests/layering/operators_doc.py",
    ("docs/operators.md", 'module("MarginRankingLoss"'): "tests/layering/operators_doc.py",
    ("docs/operators.md", '// core/passes/multiply_one.c'): "tests/layering/operators_doc.py",
    ("docs/operators.md", 'RecordedCall *call = recording'): "tests/layering/operators_doc.py",
    ("docs/operators.md", 'expect_text('): "tests/layering/operators_doc.py",
    ("docs/operators.md", '#undef SOFT'): "tests/layering/operators_doc.py",
    ("docs/operators.md", '{ DTYPE_F32, ISA_AVX512_BF16'): "tests/layering/operators_doc.py",
    ("README.md", "./quickstart"): "tests/deploy/starts.py",  # and tests/deploy/distros.py
    ("README.md", "curl -T net.pt2 localhost:8080/v1/graphs/"): "tests/live/readme_python.py",
    ("clients/python/README.md", "pip install clients/python"): "tests/live/readme_python.py",
    ("docs/library.md", "cc -o example library/example.c"): "tests/deploy/library.py",
    ("docs/migrating.md", "fxserve serve --listen 0.0.0.0:8080"): "tests/service/readme.py",
    ("docs/operations.md", '{"time": "2026-01-31T12:00:00.123Z"'): "tests/service/readme.py",
}
DIAGRAM, REPLY = "a diagram", "a piece of a body, whose place is shown above or below it"
NOT_RUN = {
    ("docs/operators.md", "python3 tools/generate/make_goldens.py"): "takes minutes and wants a new operator",
    ("CONTRIBUTING.md", "./quickstart"): "distros.py runs the first two in fresh systems; the third "
                                         "takes hours",
    ("README.md", "docker build -t fxserve ."): "wants a Docker engine; tests/deploy/image.py does the same "
                                                "with buildah and unshare",
    ("docs/ARCHITECTURE.md", "server/    the process"): DIAGRAM,
    ("docs/ARCHITECTURE.md", "sockets, timers, signals"): DIAGRAM,
    ("docs/ARCHITECTURE.md", "authored graph ──record──▶ recording"): DIAGRAM,
    ("docs/ARCHITECTURE.md", "FORMAT   lock   blobs/<sha256>"): "names of files",
    ("core/registry/README.md", "acquire (first)"): DIAGRAM,
    ("docs/api.md", '"batching": {"sizes": [2, 4, 8]}'): REPLY,
    ("docs/api.md", '"tolerance": {"within": 0.01'): REPLY,
    ("docs/overriding.md", '"leaf": {"types": ["Block"]'): REPLY,
    ("tests/golden/README.md", '{"op": "aten.add.Tensor"'): REPLY,
}


def documents():
    return [name for name in tracked_files(ROOT, "*.md")
            if name not in ("CHANGELOG.md", "tests/REPORT.md")]


def blocks(text):
    """(language, text) of every block; the language of an indented one is ""."""
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$|(?<=\n\n)((?: {4}[^\n]*\n(?:\n+(?= {4}))?)+)", text,
                             re.M | re.S):
        language, fenced, indented = found.groups()
        yield language or "", fenced if indented is None else textwrap.dedent(indented)


def row_of(table, path, first):
    return next((key for key in table if key[0] == path and first.startswith(key[1])), None)


def check():
    """(document, problem or None) for each document, then for rows without a block."""
    used = set()
    for path in documents():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text, problems, printed = file.read(), [], False
        for language, block in blocks(text):
            first = block.strip().split("\n")[0]
            key = row_of(RUN, path, first) or row_of(NOT_RUN, path, first)
            used.add(key)
            is_python, was_python = language == "python" and path in PYTHON, printed
            printed = is_python
            if not (key or is_python or (language == "console" and path in CONSOLE)
                    or (language == "text" and was_python)):
                problems.append(f"no test runs the block that begins {first[:80]!r}, and blocks.py does not "
                                "say why")
        yield f"blocks of {path}", "\n".join(problems)
    for key in [*RUN, *NOT_RUN]:
        twice = "it stands in RUN and in NOT_RUN" if key in RUN and key in NOT_RUN else None
        yield f"{key[0]}: {key[1]}", twice or (None if key in used else "there is no such block any more")
    for (path, _), test in RUN.items():
        with open(os.path.join(ROOT, test), encoding="utf-8") as file:
            yield f"{test} reads {path}", None if path in file.read() else "it does not"
