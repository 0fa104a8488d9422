# SPDX-License-Identifier: Apache-2.0
"""Writes the manual page of a built program: make_man.py FXSERVE PAGE.in PAGE. Commands, flags,
variables and defaults are those that the program prints (--help, --help=markdown, help COMMAND), so
that no list stands in the page's own text. The build calls it (deploy/meson.build)."""
import os
import re
import subprocess
import sys


def ask(binary, *words):
    command = [os.path.abspath(binary), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def roff(text):
    """Plain text as roff: no character or line start is taken for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def commands(binary):
    """(name, arguments, what it does, its own flags as (flag, words))"""
    row = re.compile(r"^  fxserve ([a-z]+)(?: (\S.*?))?(?:\n {20,}| {2,})(\S.*)$", re.M)
    for name, arguments, words in row.findall(ask(binary, "--help")):
        told = ask(binary, "help", name)
        # `help serve` is the whole list
        flags = re.findall(r"^  (-\S.*?) {2,}(\S.*)$", told, re.M) if told.startswith("usage:") else []
        yield name, arguments, words, flags


def flags_of_serve(binary):
    """(flag, variable, default, words)"""
    row = re.compile(r"^\| `(--[^`]+)` \| `(FXSERVE_\w+)` \| `?(.*?)`? \| (.*) \|$", re.M)
    return row.findall(ask(binary, "--help=markdown").replace("\\|", "|"))


def paragraph(head, *lines):
    return "\n".join([".TP", f".B {roff(head)}", *(roff(line) for line in lines if line)])


def page_of(binary, template):
    rows = {"@VERSION@": roff(ask(binary, "--version").split()[1])}
    own, shared = [], {}
    for name, arguments, words, flags in commands(binary):
        own.append(paragraph(f"fxserve {name} {arguments}".strip(), words[:1].upper() + words[1:] + "."))
        for flag, told in flags:
            shared.setdefault((flag, told), []).append(name)
    rows["@COMMANDS@"] = "\n".join(own)
    rows["@COMMAND_FLAGS@"] = "\n".join(
        paragraph(flag, told[:1].upper() + told[1:] + ".", f"({', '.join(names)})")
        for (flag, told), names in shared.items())
    rows["@FLAGS@"] = "\n".join(
        paragraph(flag, words[:1].upper() + words[1:] + ".",
                  f"{variable}{', default ' + default if default else ''}.")
        for flag, variable, default, words in flags_of_serve(binary))
    for mark, text in rows.items():
        template = template.replace(mark, text)
    return template


def main():
    binary, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        page = page_of(binary, file.read())
    with open(target, "w", encoding="utf-8") as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
