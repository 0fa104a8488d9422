# SPDX-License-Identifier: Apache-2.0
"""Writes tests/tensor/*.def: what PyTorch 2.13 says about promotion, casts, views and the strides
of elementwise results.

    python tools/generate/make_tensor_tables.py
"""

import itertools
import pathlib
import random
import warnings

import torch

NAMES = ("BOOL U8 I8 I16 I32 I64 U16 U32 U64 F16 BF16 F32 F64 C64 C128 "
         "F8E4M3FN F8E5M2 F8E4M3FNUZ F8E5M2FNUZ F8E8M0FNU").split()
TORCH = ("bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
         "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
         "float8_e8m0fnu".split())
DTYPES = [getattr(torch, name) for name in TORCH]
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "tensor"
HEAD = ("// SPDX-License-Identifier: Apache-2.0\n"
        "// Made by tools/generate/make_tensor_tables.py with PyTorch %s.\n// %s\n")

inf, nan = float("inf"), float("nan")
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.0, 255.9, 300.0, -300.0, 32768.0, 65504.0, 65519.0, 65520.0,
          -32769.0, 2147483648.0, -2147483648.0, 4294967297.0, 2.0**62, 2.0**63, -(2.0**63), 1.5 * 2.0**63,
          2.0**64, 1e-8, 5.96e-8, 3.05e-5, 1.0009765625, 1.0048828125, 1e39, 3.4e38, inf, -inf, nan]
INTS = [0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, 65519, 65520, 16777217,
        2147483647, -2147483648, 4294967295, 2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63)]


def hard_values(dtype):
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        pairs = [(a, b) for a, b in zip(FLOATS, reversed(FLOATS))]
        return torch.tensor([complex(a, b) for a, b in pairs], dtype=torch.complex128).to(dtype)
    if dtype.is_floating_point:
        return torch.tensor(FLOATS, dtype=torch.float64).to(dtype)
    return torch.tensor(INTS, dtype=torch.int64).to(dtype)


def as_hex(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes().hex()


def write(name, what, rows):
    (FOLDER / name).write_text(HEAD % (torch.__version__.split("+")[0], what)
                               + "".join(row + "\n" for row in rows), encoding="utf-8")


def promotion_rows():
    for a, b in itertools.product(range(len(DTYPES)), repeat=2):
        try:
            result = NAMES[DTYPES.index(torch.promote_types(DTYPES[a], DTYPES[b]))]
        except RuntimeError:
            result = "NONE"
        can = "true" if torch.can_cast(DTYPES[a], DTYPES[b]) else "false"
        yield f"PROMOTE({NAMES[a]}, {NAMES[b]}, {result}, {can})"


# Values one at a time: PyTorch's vector code differs from its scalar code where C leaves a cast
# undefined.
def cast_rows():
    for a, b in itertools.product(range(len(DTYPES)), repeat=2):
        values = hard_values(DTYPES[a])
        result = torch.cat([values[i:i + 1].to(DTYPES[b]) for i in range(len(values))])
        yield f'CAST({NAMES[a]}, {NAMES[b]}, {len(values)}, "{as_hex(values)}", "{as_hex(result)}")'


def braces(items):
    items = list(items)
    return "LIST(" + ", ".join(map(str, items)) + ")" if items else "NO_LIST"


def random_shape(rng, rank, sizes=(1, 1, 2, 3, 4)):
    return [rng.choice(sizes) for _ in range(rank)]


def random_view(rng, rank):
    base = torch.zeros(random_shape(rng, rank, (1, 2, 3, 4, 6)))
    if rng.random() < 0.6:
        base = base.permute(rng.sample(range(rank), rank))
    if rng.random() < 0.3:
        dim = rng.randrange(rank)
        base = base[(slice(None),) * dim + (slice(0, None, 2),)]
    if rng.random() < 0.2:
        base = base.unsqueeze(0).expand(2, *base.shape)
    return base


def view_rows():
    rng = random.Random(1)
    for _ in range(400):
        tensor = random_view(rng, rng.randint(1, 4))
        factors = [p for size in tensor.shape
                   for p in ([2, 2] if size == 4 else [2, 3] if size == 6 else [size] if size > 1 else [])]
        shape = []
        if rng.random() < 0.5:
            rng.shuffle(factors)
        while factors:
            take = rng.randint(1, min(3, len(factors)))
            shape.append(torch.Size(factors[:take]).numel())
            factors = factors[take:]
            if rng.random() < 0.2:
                shape.append(1)
        try:
            strides = braces(tensor.view(shape).stride())
        except RuntimeError:
            strides = "NO_VIEW"
        yield (f"VIEW({tensor.dim()}, {braces(tensor.shape)}, {braces(tensor.stride())}, {len(shape)}, "
               f"{braces(shape)}, {strides})")


def operand(rng, shape):
    rank = len(shape)
    lead = rng.choice([0, 0, 0, 1])
    sizes = [1 if rng.random() < 0.2 else size for size in shape[min(lead, rank):]]
    order = rng.sample(range(len(sizes)), len(sizes)) if rng.random() < 0.6 else list(range(len(sizes)))
    tensor = torch.zeros([sizes[i] for i in order]).permute([order.index(i) for i in range(len(sizes))])
    if rng.random() < 0.2 and sizes:
        tensor = torch.zeros([*tensor.shape, 2])[..., 0]
    return tensor


def layout_rows():
    rng = random.Random(2)
    for _ in range(400):
        shape = random_shape(rng, rng.randint(0, 4))
        a, b = operand(rng, shape), operand(rng, shape)
        if rng.random() < 0.3:
            b = torch.zeros_like(a)
        result = a + b
        like = torch.empty_like(a).stride()
        yield (f"LAYOUT({a.dim()}, {braces(a.shape)}, {braces(a.stride())}, "
               f"{b.dim()}, {braces(b.shape)}, {braces(b.stride())}, "
               f"{result.dim()}, {braces(result.shape)}, {braces(result.stride())}, {braces(like)})")


def main():
    warnings.simplefilter("ignore")
    write("promotion.def", "PROMOTE(a, b, torch.promote_types(a, b), torch.can_cast(a, b))", promotion_rows())
    write("casts.def", "CAST(from, to, n, values as little-endian hex, the same cast)", cast_rows())
    write("views.def", "VIEW(rank, size, stride, new rank, new size, stride of tensor.view(new size))",
          view_rows())
    write("layouts.def", "LAYOUT(a's rank, size, stride, b's, those of a + b, stride of empty_like(a))",
          layout_rows())


if __name__ == "__main__":
    main()
