# SPDX-License-Identifier: Apache-2.0
"""Tensors laid out in memory as asked, and variants of operator calls: parts of make_goldens.py."""

import math

import torch

DTYPES = (torch.float32, torch.int64, torch.float16, torch.bool, torch.float64, torch.bfloat16, torch.int32,
          torch.uint8, torch.int8)


def place_tensor(values, stride, offset):
    """A tensor with these values, strides and offset in a storage of its own, zero elsewhere.
    Elements whose stride is zero share memory and must be equal."""
    extent = offset + (sum((n - 1) * s for n, s in zip(values.shape, stride)) + 1 if values.numel() else 0)
    flat = torch.zeros(extent, dtype=values.dtype)
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in stride)
    flat.as_strided(values[once].shape, stride, offset).copy_(values[once])
    return torch.empty(0, dtype=values.dtype).set_(flat.untyped_storage(), offset, values.shape, stride)


def overlaps(tensor):
    return any(stride == 0 for size, stride in zip(tensor.shape, tensor.stride()) if size > 1)


SPECIAL_FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-3, 88.0,
                  -104.0, 6e4]
LIMITS_ARE_SAFE = {"add", "sub", "mul", "neg", "maximum", "minimum", "eq", "lt", "ge", "bitwise_and",
                   "bitwise_or", "bitwise_xor", "bitwise_not", "square", "sign", "clamp", "sum", "cumsum",
                   "amax", "amin", "max", "min", "argmax", "argmin", "relu", "rsub", "where"}
NO_SPECIALS = {"conv1d", "conv2d", "conv3d", "convolution", "linalg_vector_norm"}


def strided(tensor):
    """Every second element along the last dimension of a larger storage, from offset 1."""
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 1, dtype=tensor.dtype)
    view = wide[..., 1::2]
    return view.copy_(tensor)


def transposed(tensor):
    """The same values with the two last dimensions swapped in memory."""
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def variants(sample, packet, pointwise):
    """(tag, sample) pairs: the same call on other strides, on special values, and, if pointwise, on
    mixed types."""
    args, kwargs = sample
    if not args or not isinstance(args[0], torch.Tensor):
        return
    first, rest = args[0], args[1:]
    if first.dim() >= 1 and first.numel():
        yield "strided", ([strided(first), *rest], kwargs)
        yield "reversed order", ([first.flip(0).contiguous(), *rest], kwargs)
    if first.dim() >= 2:
        yield "transposed", ([transposed(first), *rest], kwargs)
    if first.dim() == 4:
        yield "channels_last", ([first.contiguous(memory_format=torch.channels_last), *rest], kwargs)
    if first.dim() >= 1 and first.shape[0] > 1:
        yield "expanded", ([first[:1].expand(first.shape), *rest], kwargs)
    if first.is_floating_point() and first.numel() >= 4 and packet not in NO_SPECIALS:
        special = first.clone()
        flat = special.flatten()
        count = min(len(SPECIAL_FLOATS), flat.numel())
        flat[:count] = torch.tensor(SPECIAL_FLOATS[:count], dtype=torch.float64).to(first.dtype)
        yield "special", ([flat.reshape(first.shape), *rest], kwargs)
    if first.dtype in (torch.int8, torch.uint8, torch.int32, torch.int64) and packet in LIMITS_ARE_SAFE:
        if first.numel() >= 2:
            info = torch.iinfo(first.dtype)
            flat = first.flatten().clone()
            flat[0], flat[-1] = info.max, info.min
            yield "limits", ([flat.reshape(first.shape), *rest], kwargs)
    if pointwise and len(args) >= 2 and isinstance(args[1], torch.Tensor) and args[1].numel():
        other, more = args[1], args[2:]
        yield "0-dim other", ([first, other.flatten()[0].clone(), *more], kwargs)
        yield "0-dim self", ([first.flatten()[0].clone() if first.numel() else first, other, *more], kwargs)
        for number in (2, 2.5, -1, True):
            yield f"number {number}", ([first, number, *more], kwargs)
        for dtype in DTYPES:
            if dtype != first.dtype:
                yield "mixed", ([first, other.to(dtype), *more], kwargs)
        yield "mixed 0-dim", ([first, other.flatten()[0].to(torch.float64), *more], kwargs)
        yield "mixed 0-dim", ([first, other.flatten()[0].to(torch.int64), *more], kwargs)
        if other.dim() >= 2:
            yield "transposed other", ([first, transposed(other), *more], kwargs)
