# SPDX-License-Identifier: Apache-2.0
"""Arrays as the JSON of a run's body, and outputs of a reply as arrays. Standard library and numpy only."""
from __future__ import annotations

import base64
import json
from typing import Any, Mapping, Sequence

import numpy


def encode(value: Any) -> Any:
    """An argument as JSON: arrays and torch's tensors with their bytes, numpy's scalars as numbers,
    tuples as lists, NaN as text."""
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, float) and not numpy.isfinite(value):
        return json.dumps(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__module__.split(".")[0] == "torch":
        from .samples import raw
        dtype, data = str(value.dtype).removeprefix("torch."), raw(value)
    else:
        given, value = value, numpy.asarray(value)
        if value.dtype.kind in "OSUMm":
            raise TypeError(f"neither numbers nor a plain value: {type(given).__name__}")
        dtype, data = value.dtype.name, value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    return {"dtype": dtype, "shape": list(value.shape), "b64": base64.b64encode(data).decode()}


def decode(entry: dict[str, Any]) -> Any:
    """One output of a reply. numpy lacks bfloat16 and float8: they come as float32, float8 by torch."""
    if "b64" not in entry:
        value = entry.get("value")
        return float(value) if value in ("NaN", "Infinity", "-Infinity") else value
    data, name = bytearray(base64.b64decode(entry["b64"])), entry["dtype"]
    if name.startswith("float8"):
        import torch
        codes = torch.from_numpy(numpy.frombuffer(data, numpy.uint8))
        array = codes.view(getattr(torch, name)).float().numpy()
    elif name == "bfloat16":
        array = (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    else:
        array = numpy.frombuffer(data, name)
    return array.reshape(entry["shape"])


def structured(structure: Any, leaves: Sequence[Any]) -> Any:
    """The graph's own structure with its leaves."""
    if isinstance(structure, list):
        return [structured(item, leaves) for item in structure]
    if not isinstance(structure, dict):
        return structure
    if "$out" in structure:
        return leaves[structure["$out"]]
    if "$tuple" in structure:
        return tuple(structured(item, leaves) for item in structure["$tuple"])
    return {key: structured(item, leaves) for key, item in structure.items()}
