# SPDX-License-Identifier: Apache-2.0
"""The files of web/ as a table in C: embed_web.py OUTPUT FILE... The build calls it.

Each file is compressed with gzip, without name and time, so that equal files give equal bytes. Its
tag is the SHA-256 of the file. Beside the table stands the report, one file of its own: the markup
of report.html with the style and the scripts in it, which its policy allows by their hashes."""
import base64
import gzip
import hashlib
import os
import re
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


REPORT = "report.html"
REPORT_SCRIPTS = ("dom.js", "theme.js", "time_parts.js", "compare_parts.js", "report.js")
IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z_]+\.js\";\n", re.MULTILINE)


def joined(sources):
    """Modules as one script: what they import stands in front of them, under the same name."""
    text = "\n".join(re.sub(r"^export ", "", IMPORT.sub("", source), flags=re.MULTILINE)
                     for source in sources)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
    twice = {name for name in names if names.count(name) > 1}
    if twice or re.search(r"^import|</|<!--", text, re.MULTILINE):
        sys.exit(f"embed_web.py: the report's scripts cannot be joined: {twice or 'import or markup'}")
    return '"use strict";\n' + text


def report(contents):
    script = joined([contents[name].decode() for name in REPORT_SCRIPTS])
    style, page = contents["page.css"].decode(), contents[REPORT].decode()
    for name, text in (("STYLE", style), ("SCRIPT", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        page = page.replace(f"{{{name}-HASH}}", f"sha256-{digest}").replace(f"{{{name}}}", text)
    return page.encode()


def row(index, name, content):
    packed = gzip.compress(content, 9, mtime=0)
    lines = [", ".join(str(byte) for byte in packed[at : at + 24]) for at in range(0, len(packed), 24)]
    tag, media = hashlib.sha256(content).hexdigest(), TYPES[os.path.splitext(name)[1]]
    return (f"static const uint8_t bytes_{index}[] = {{\n" + ",\n".join(lines) + "\n};\n",
            f'        {{ "{name}", "{media}", {{ "{tag}" }}, bytes_{index}, '
            f"{len(packed)}, {len(content)} }},\n")


def main():
    contents = {}
    for path in sorted(sys.argv[2:]):
        with open(path, "rb") as file:
            contents[os.path.basename(path)] = file.read()
    served = {name: content for name, content in contents.items() if not name.startswith("report.")}
    rows = [row(index, name, content) for index, (name, content) in enumerate(served.items())]
    data, entry = row(len(rows), REPORT, report(contents))
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write("// Made by tools/generate/embed_web.py.\n#include \"api/formats/assets.h\"\n\n")
        file.write("\n".join(data for data, _ in rows) + data)
        file.write("\nconst Asset assets[] = {\n" + "".join(entry for _, entry in rows) + "};\n")
        file.write(f"const size_t n_assets = {len(rows)};\n")
        file.write(f"const Asset report_asset = {entry.strip()[:-1]};\n")


if __name__ == "__main__":
    main()
