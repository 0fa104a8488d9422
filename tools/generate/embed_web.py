# SPDX-License-Identifier: Apache-2.0
"""The files of web/ as a table in C: embed_web.py OUTPUT FILE... The build calls it.

Each file is compressed with gzip, without name and time, so that equal files give equal bytes. Its
tag is the SHA-256 of the file."""
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


def row(index, path):
    with open(path, "rb") as file:
        content = file.read()
    packed = gzip.compress(content, 9, mtime=0)
    lines = [", ".join(str(byte) for byte in packed[at : at + 24]) for at in range(0, len(packed), 24)]
    name = os.path.basename(path)
    tag, media = hashlib.sha256(content).hexdigest(), TYPES[os.path.splitext(name)[1]]
    return (f"static const uint8_t bytes_{index}[] = {{\n" + ",\n".join(lines) + "\n};\n",
            f'        {{ "{name}", "{media}", {{ "{tag}" }}, bytes_{index}, '
            f"{len(packed)}, {len(content)} }},\n")


def main():
    rows = [row(index, path) for index, path in enumerate(sorted(sys.argv[2:]))]
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write("// Made by tools/generate/embed_web.py.\n#include \"api/routes/assets.h\"\n\n")
        file.write("\n".join(data for data, _ in rows))
        file.write("\nconst Asset assets[] = {\n" + "".join(entry for _, entry in rows) + "};\n")
        file.write(f"const size_t n_assets = {len(rows)};\n")


if __name__ == "__main__":
    main()
