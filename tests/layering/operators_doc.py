# SPDX-License-Identifier: Apache-2.0
"""The pieces of C in docs/operators.md compile in the places that the document names:
operators_doc.py BUILD.

They are put into a copy of the sources; the files that change are then compiled for their errors and
warnings, with the flags that BUILD has for their neighbours. A piece that the sources have as it is
is found there. The last line is `N passed, N failed`.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
import blocks
from service import ROOT, Failed, Tally

DOCUMENT = "docs/operators.md"


class Copy:
    """The sources with what the document adds."""

    def __init__(self, folder, build):
        self.folder = folder
        for name in ("core", "tests"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name), symlinks=True,
                            ignore=shutil.ignore_patterns("golden", "models", "*.py", "fuzz", "shots"))
        os.mkdir(os.path.join(folder, "build"))
        self.build = os.path.abspath(build)
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            rows = json.load(file)
        self.commands = {os.path.relpath(os.path.join(row["directory"], row["file"]), ROOT): row["command"]
                         for row in rows}
        with open(os.path.join(ROOT, DOCUMENT), encoding="utf-8") as file:
            self.blocks = [text for _, text in blocks.blocks(file.read())]

    def block(self, first):
        (found, ) = [text for text in self.blocks if text.strip().startswith(first)]
        return found

    def read(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
            file.write(text)

    def add(self, path, text, before=None, after=None):
        """Before the line, or after the last one, that begins so; else at the end."""
        lines = self.read(path).split("\n")
        places = [at for at, line in enumerate(lines) if line.strip().startswith(before or after or "\0")]
        if (before or after) and not places:
            raise Failed(f"{path} has no line {before or after}")
        at = len(lines) if not places else places[0] if before else places[-1] + 1
        self.write(path, "\n".join([*lines[:at], text, *lines[at:]]))

    def compile(self, path, neighbour=None):
        words = shlex.split(self.commands[neighbour or path])
        words = [word for word in words if word != "ccache"]
        words = words[:words.index("-o") if "-o" in words else words.index("-c")]
        words = [word for word in words if not word.startswith(("-MD", "-MQ", "-MF"))
                 and not word.endswith((".d", ".o"))]
        done = subprocess.run([*words, "-fsyntax-only", "-Werror", "-I", self.build, "-c", f"../{path}"],
                              cwd=os.path.join(self.folder, "build"), capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Failed(f"{path}: {done.stderr[-3000:]}")


def rows_and_code(block):
    """What stands before the row of a table, and the row."""
    at = block.rindex("\n{ ")
    return block[:at + 1], block[at + 1:]


def pointwise(copy):
    copy.add("core/kernels/pointwise/pointwise_unary.def", copy.block("POINT1(ndtr"), after="POINT1(")
    copy.add("core/ops/pointwise_unary.c", copy.block('FLOATING("special_ndtr"'), after='FLOATING("')
    copy.compile("core/kernels/pointwise/pointwise_unary.c")
    copy.compile("core/ops/pointwise_unary.c")


def kernel(copy):
    parts = re.split(r"^// (core/\S+)\n", copy.block("// core/kernels/reduce/trace.h"), flags=re.M)
    for path, text in zip(parts[1::2], parts[2::2]):
        copy.write(path, text)
    code, row = rows_and_code(copy.block("// ---- trace ----"))
    table = re.search(r"^const OpDef \w+\[\] = \{$", copy.read("core/ops/reduce.c"), re.M)[0]
    copy.add("core/ops/reduce.c", '#include "core/kernels/reduce/trace.h"\n' + code, before=table)
    copy.add("core/ops/reduce.c", row, after=table)
    neighbour = next(path for path in copy.commands if path.startswith("core/kernels/reduce/"))
    copy.compile("core/kernels/reduce/trace.c", neighbour)
    copy.compile("core/ops/reduce.c")


def composite(copy):
    if copy.block("static Status l1_loss_expand").strip() not in copy.read("core/ops/losses.c"):
        raise Failed("core/ops/losses.c has it otherwise")


def module(copy):
    names, code = copy.block("// in core/targets/arguments.def").split("\n\n", 1)
    code, row = rows_and_code(code)
    copy.add("core/targets/arguments.def", names.split("\n", 1)[1])
    copy.add("core/targets/module_losses.c", code, before="static const ModuleClass rows[]")
    copy.add("core/targets/module_losses.c", row, after="static const ModuleClass rows[]")
    copy.compile("core/targets/module_losses.c")
    case = copy.block('module("MarginRankingLoss"')
    with open(os.path.join(ROOT, "tools/generate/make_target_cases.py"), encoding="utf-8") as file:
        text = file.read()
    compile(case, DOCUMENT, "exec")
    if "def module(" not in text or "rows =" not in text:
        raise Failed("make_target_cases.py has no module() or no rows")


def passes(copy):
    path = "core/passes/multiply_one.c"
    copy.write(path, copy.block("// core/passes/multiply_one.c").split("\n", 1)[1])
    copy.add("core/passes/passes.def", "PASS(multiply_one)", after="PASS(merge_equal)")
    built = copy.block("RecordedCall *call = recording").replace("...\n", "")
    copy.add(path, "Status insert(Recording *recording, uint32_t i);\nStatus insert(Recording *recording, "
             f"uint32_t i)\n{{\n{built}\nreturn STATUS_OK;\n}}")
    copy.compile(path, "core/passes/epilogue.c")
    copy.compile("core/passes/passes.c")


def test_of_pass(copy):
    path = "tests/passes/passes.c"
    copy.add(path, f"Test(passes, of_the_document)\n{{\n{copy.block('expect_text(')}\n}}")
    copy.compile(path, path if path in copy.commands else "core/passes/epilogue.c")


def variant(copy):
    path = "core/kernels/norm/softmax.c"
    copy.add(path, copy.block("#undef SOFT"), after="ROWS_OF(avx512);")
    row = copy.block("{ DTYPE_F32, ISA_AVX512_BF16")
    copy.add(path, row, after="{ DTYPE_F32, ISA_AVX512, &rows_avx512 }")
    copy.compile(path)


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fxserve-operators-") as folder:
        copy = Copy(folder, sys.argv[1])
        for piece in (pointwise, kernel, composite, module, passes, test_of_pass, variant):
            try:
                piece(copy)
                tally.ok()
            except (Failed, KeyError, ValueError, TypeError) as problem:
                tally.bad(f"{DOCUMENT}: {piece.__name__}", f"{type(problem).__name__}: {problem}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
