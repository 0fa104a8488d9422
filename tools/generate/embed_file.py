# SPDX-License-Identifier: Apache-2.0
"""One file as bytes in C: embed_file.py OUTPUT NAME FILE. The build calls it."""
import sys


def main():
    output, name, path = sys.argv[1:]
    with open(path, "rb") as file:
        content = file.read()
    lines = [", ".join(map(str, content[at : at + 24])) for at in range(0, len(content), 24)]
    with open(output, "w", encoding="ascii") as file:
        file.write("// Made by tools/generate/embed_file.py.\n#include \"server/demo.h\"\n\n")
        file.write(f"const uint8_t {name}[] = {{\n" + ",\n".join(lines) + "\n};\n")
        file.write(f"const size_t n_{name} = {len(content)};\n")


if __name__ == "__main__":
    main()
