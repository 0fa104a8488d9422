# SPDX-License-Identifier: Apache-2.0
"""Inputs with the outputs PyTorch gave, as one safetensors file.

Keys are `in{set}.{leaf}` and `out{set}.{leaf}`: leaves of (args, kwargs) and of the result in
pytree order. The metadata entry `sets` (JSON) holds, per set, each leaf's path in the call
structure with its shape and dtype, or its value where the leaf is no tensor.
"""

import json
import pathlib

import torch
from safetensors.torch import save
from torch.utils._pytree import keystr, tree_flatten, tree_flatten_with_path

NOTE = "each set is computed from the freshly loaded state; in{set}.{flat index}, out{set}.{flat index}"


def save_sets(path, calls, keep_inputs=True):
    """Writes `calls`, a list of (args, kwargs, result), to `path`; without `keep_inputs` the
    inputs' shapes only."""
    tensors, sets = {}, []
    for number, (args, kwargs, result) in enumerate(calls):
        inputs, outputs = [], []
        for leaf, (place, value) in enumerate(tree_flatten_with_path((args, kwargs))[0]):
            kept = tensors if keep_inputs else {}
            inputs.append({"path": keystr(place), **_keep(kept, f"in{number}.{leaf}", value)})
        for leaf, value in enumerate(tree_flatten(result)[0]):
            outputs.append(_keep(tensors, f"out{number}.{leaf}", value))
        sets.append({"inputs": inputs, "outputs": outputs})
    write_safetensors(path, tensors, {"format": "pt", "sets": json.dumps(sets), "note": NOTE})


def write_safetensors(path, tensors, metadata):
    """Saves like safetensors.torch.save_file, with the metadata in sorted order: the same content,
    the same bytes."""
    blob = save(tensors, metadata)
    n_header = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + n_header])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + blob[8 + n_header :])


def _keep(tensors, key, value):
    if not isinstance(value, torch.Tensor):
        return {"value": value}
    tensors[key] = value.detach().clone(memory_format=torch.contiguous_format)
    return {"key": key, "shape": list(value.shape), "dtype": str(value.dtype)}
