# SPDX-License-Identifier: Apache-2.0
"""Calls of fxserve's operators with weights of four bits for golden_hand.py. PyTorch's operators
know only the order of the processor that they run on; here other orders are turned into it first."""

import torch

from golden_hand import bf16, f16, f32, i32, ints, ramp

# Of each processor: rows of a block, and how many rows lie between the two that share a byte.
ORDERS = {"DEFAULT": (32, 1), "AVX2": (32, 16), "AVX512": (64, 32), "SVE256": (32, 1), "NEON": (16, 1)}
HERE = torch.backends.cpu.get_cpu_capability()


def places(packed_on, rows, columns):
    """Where the levels are, by row and column: twice the byte, and 1 more for the high half."""
    block, apart = ORDERS[packed_on]
    where = torch.empty(rows, columns, dtype=torch.int64)
    for row in range(rows):
        begin = row // block * block
        size = min(block, rows - begin)
        low = row - begin
        if size < block or apart == 1:
            byte, half = low // 2, low % 2
        else:
            byte, half = low % apart, low // apart
        for column in range(columns):
            where[row, column] = 2 * (begin * columns // 2 + column * (size // 2) + byte) + half
    return where


def pack(levels, packed_on):
    rows, columns = levels.shape
    nibbles = torch.empty(rows * columns, dtype=torch.uint8)
    nibbles[places(packed_on, rows, columns).flatten()] = levels.to(torch.uint8).flatten()
    return (nibbles[0::2] | nibbles[1::2] << 4).reshape(rows, columns // 2)


def unpack(packed, packed_on):
    rows, columns = packed.size(0), 2 * packed.size(1)
    nibbles = torch.stack([packed.flatten() & 15, packed.flatten() >> 4], 1).flatten()
    return nibbles[places(packed_on, rows, columns)].to(torch.int32)


def convert(weight, tiles, packed_on):
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, tiles)
    assert torch.equal(packed, pack(weight, HERE)), "PyTorch packs in another order"
    return packed if packed_on == HERE else pack(weight, packed_on)


def multiply(x, packed, group, scales, packed_on):
    here = torch.ops.aten._convert_weight_to_int4pack_for_cpu(unpack(packed, packed_on), 2)
    return torch.ops.aten._weight_int4pack_mm_for_cpu(x, here, group, scales)


def define():
    """The two operators, as the recorder calls them."""
    library = torch.library.Library("fxserve", "FRAGMENT")
    for name, schema, body in (
            ("convert_weight_to_int4pack_for_cpu", "(Tensor self, int innerKTiles, str packed_on) -> Tensor",
             convert),
            ("weight_int4pack_mm_for_cpu", "(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros,"
             " str packed_on) -> Tensor", multiply)):
        library.define(name + schema)
        library.impl(name, body, "CPU")
    return library


def int4_cases():
    for packed_on in ORDERS:
        for rows, depth in ((16, 32), (64, 16), (80, 12)):
            weight = ints(rows, depth, dtype=i32, low=0, high=16)
            yield "fxserve.convert_weight_to_int4pack_for_cpu.default", [weight, 2, packed_on]
        for at, (rows, depth, group) in enumerate(((16, 64, 32), (32, 64, 64), (48, 32, 32), (64, 32, 32))):
            dtype = (f32, bf16, f16, f32)[at]
            packed = pack(ints(rows, depth, dtype=i32, low=0, high=16), packed_on)
            scales = (ramp(depth // group, rows, 2) * 0.1).to(dtype)
            yield "fxserve.weight_int4pack_mm_for_cpu.default", [
                ramp(1 + at, depth, dtype=dtype), packed, group, scales, packed_on]
