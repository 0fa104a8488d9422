# SPDX-License-Identifier: Apache-2.0
"""What zlib makes of replies, and how fast: gzip_levels.py. Megabytes of reply per second of
processor time, and what is left of them; api/formats/gzip.c chooses by this."""
import json
import random
import struct
import time
import zlib

STRATEGIES = {"": zlib.Z_DEFAULT_STRATEGY, "Huffman only": zlib.Z_HUFFMAN_ONLY}


def replies():
    random.seed(1)
    numbers = [float(f"{struct.unpack('f', struct.pack('f', random.gauss(0, 3)))[0]:.8g}")
               for _ in range(200000)]
    yield "numbers", [numbers[i:i + 1000] for i in range(0, len(numbers), 1000)]
    yield "after relu", [max(0.0, number) for number in numbers]
    yield "integers", [int(number * 10) for number in numbers]
    yield ("a profile",
           [{"node": f"conv2d_{i}", "kernel": "direct:avx512", "start_us": round(random.random() * 1000, 2),
             "share": random.random(), "shape": [1, 64, 56, 56], "dtype": "float32"} for i in range(20000)])


def main():
    for name, value in replies():
        body = json.dumps(value).encode()
        for level, words in ((1, "Huffman only"), (1, ""), (3, ""), (6, "")):
            best, n = 1e9, 0
            for _ in range(3):
                packer = zlib.compressobj(level, zlib.DEFLATED, 31, 8, STRATEGIES[words])
                began = time.process_time()
                n = len(packer.compress(body)) + len(packer.flush())
                best = min(best, time.process_time() - began)
            print(f"{name:<12} level {level} {words:<14} {n / len(body):.2f} "
                  f"{len(body) / best / 1e6:6.0f} MB/s")


if __name__ == "__main__":
    main()
