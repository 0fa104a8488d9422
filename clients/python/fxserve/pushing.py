# SPDX-License-Identifier: Apache-2.0
"""A model of PyTorch becomes a graph of a server."""
from __future__ import annotations

import copy
import inspect
import io
import warnings
from typing import Any, Sequence

import torch
from torch.utils import _pytree as pytree

from .client import Client, decode, encode
from .samples import SEED, make_samples, safetensors_bytes


def _batched(model: torch.nn.Module, args: tuple[Any, ...]) -> Any:
    """`dynamic_shapes` that leave dimension 0 of every tensor open where the model allows it. Those
    of *args stand in a tuple of their own."""
    shapes = pytree.tree_map(
        lambda leaf: {0: torch.export.Dim.AUTO} if isinstance(leaf, torch.Tensor) and leaf.dim() else None,
        args)
    kinds = [parameter.kind for parameter in inspect.signature(model.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        at = kinds.index(inspect.Parameter.VAR_POSITIONAL)
        shapes = (*shapes[:at], tuple(shapes[at:]))
    return shapes


def export(model: torch.nn.Module, args: tuple[Any, ...],
           dynamic: Any = True) -> torch.export.ExportedProgram:
    """`dynamic`: True leaves the first dimension of inputs open, False none; else torch.export's
    `dynamic_shapes`. torch.export takes a size of 1 for fixed, so single samples are doubled."""
    if dynamic is not True:
        return torch.export.export(model, args, dynamic_shapes=dynamic or None)
    sized = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if sized and all(leaf.shape[0] == 1 for leaf in sized):
        doubled = pytree.tree_map(
            lambda leaf: torch.cat([leaf, leaf]) if isinstance(leaf, torch.Tensor) and leaf.dim() else leaf,
            args)
        try:
            return torch.export.export(model, doubled, dynamic_shapes=_batched(model, args))
        except (RuntimeError, ValueError) as error:
            warnings.warn(f"the model takes one sample at a time only: {str(error)[:200]}")
    return torch.export.export(model, args, dynamic_shapes=_batched(model, args))


def _error(entry: dict[str, Any], want: Any) -> float:
    """The greatest difference of an output, relative to the greatest value where that is above 1."""
    if not isinstance(want, torch.Tensor):
        return 0.0 if "b64" not in entry and decode(entry) == want else torch.inf
    array = decode(entry)
    if list(array.shape) != list(want.shape) or entry["dtype"] != str(want.dtype).removeprefix("torch."):
        return torch.inf
    got, wanted = torch.from_numpy(array).to(torch.complex128), want.detach().to(torch.complex128)
    if got.numel() == 0:
        return 0.0
    same = (got == wanted) | (got.isnan() & wanted.isnan())
    apart = torch.where(same, 0, got - wanted).abs().nan_to_num(torch.inf, torch.inf)
    return float(apart.max()) / max(1.0, float(torch.where(wanted.isfinite(), wanted, 0).abs().max()))


def push(client: Client, name: str, model: torch.nn.Module, args: tuple[Any, ...], *, dynamic: Any = True,
         tolerance: float = 1e-4, show: bool = True, more: Sequence[tuple[Any, ...]] = ()) -> dict[str, Any]:
    """Exports the model in evaluation mode, uploads it, and compares what it computes for `args`
    with PyTorch, eagerly and compiled; prints the largest error. The upload brings PyTorch's
    results along, for `args` and for `more` of the kind, where the inputs are plain tensors, so that
    a graph which differs is not stored (Error, code verification_failed). ValueError: it was stored,
    and differs by more than `tolerance`. Returns the server's information, with "error" by mode."""
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        exported, file = export(model, args, dynamic), io.BytesIO()
        torch.export.save(exported, file)
    finally:
        for module, flag in training.items():
            module.training = flag
    parts = {"graph": file.getvalue()}
    if all(isinstance(arg, torch.Tensor) and not arg.is_complex() for arg in args):
        samples = make_samples(exported, [args, *more])
        if not any(tensor.is_complex() for tensor in samples.values()):
            parts["samples"] = safetensors_bytes(samples)
    info = client.upload(name, parts, tolerance=tolerance)
    torch.manual_seed(SEED)
    with torch.no_grad():
        wanted = pytree.tree_leaves(copy.deepcopy(exported).module()(*copy.deepcopy(args)))
    errors = {}
    for mode in ("eager", "compiled"):
        entries = client.run(name, {"inputs": encode(args), "mode": mode, "seed": SEED})["outputs"]
        if len(entries) != len(wanted):
            raise ValueError(f"{name}: {len(entries)} outputs, PyTorch has {len(wanted)}")
        errors[mode] = max(map(_error, entries, wanted), default=0.0)
    if show:
        print(f"{name}: version {info['version']}, largest error "
              + ", ".join(f"{error:.1e} {mode}" for mode, error in errors.items()))
    if max(errors.values()) > tolerance:
        raise ValueError(f"{name} differs from PyTorch: {errors}")
    return info | {"error": errors}
