# SPDX-License-Identifier: Apache-2.0
"""Prints what the digits classifier answered beside the labels; fails when fewer than nine of ten
are right.

usage: show_digits.py REPLY.json LABELS.json
"""
import json
import sys


def main():
    with open(sys.argv[1]) as file:
        rows = json.load(file)["outputs"][0]["data"]
    with open(sys.argv[2]) as file:
        labels = json.load(file)
    labels = labels["labels"] if isinstance(labels, dict) else labels
    predictions = [max(range(len(row)), key=row.__getitem__) for row in rows]
    right = sum(a == b for a, b in zip(predictions, labels))
    print("image      " + "  ".join(f"{i:2d}" for i in range(len(labels))))
    print("label      " + "  ".join(f"{label:2d}" for label in labels))
    print("predicted  " + "  ".join(f"{digit:2d}" for digit in predictions))
    print(f"{right} of {len(labels)} digits right")
    return 0 if len(predictions) == len(labels) and right >= 9 else 1


if __name__ == "__main__":
    sys.exit(main())
