# SPDX-License-Identifier: Apache-2.0
"""A model of PyTorch becomes a graph of a server."""
from __future__ import annotations

import copy
import inspect
import io
import warnings
from typing import Any, Callable, Mapping, Sequence

import torch
from torch.utils import _pytree as pytree

from .arrays import decode, encode
from .client import Client
from .samples import SEED, make_samples, safetensors_bytes


def _is_sized(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() > 0


def export(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
           dynamic: Any = True) -> torch.export.ExportedProgram:
    """`dynamic`: True leaves the first dimension of inputs open, False none; else torch.export's
    `dynamic_shapes`. torch.export takes a size of 1 for fixed, so single samples are doubled."""
    bound = inspect.signature(model.forward).bind(*args, **(kwargs or {}))
    args, kwargs = bound.args, bound.kwargs
    if dynamic is not True:
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic or None)
    shapes = pytree.tree_map(lambda leaf: {0: torch.export.Dim.AUTO} if _is_sized(leaf) else None,
                             dict(bound.arguments))
    sized = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if _is_sized(leaf)]
    if sized and all(leaf.shape[0] == 1 for leaf in sized):
        doubled = pytree.tree_map(lambda leaf: torch.cat([leaf, leaf]) if _is_sized(leaf) else leaf,
                                  (args, kwargs))
        try:
            return torch.export.export(model, *doubled, dynamic_shapes=shapes)
        except (RuntimeError, ValueError) as error:
            warnings.warn(f"the model takes one sample at a time only: {str(error)[:200]}")
    return torch.export.export(model, args, kwargs, dynamic_shapes=shapes)


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


def push(client: Client, name: str, model: torch.nn.Module | Callable[..., Any], args: tuple[Any, ...],
         kwargs: Mapping[str, Any] | None = None, *, dynamic: Any = True, tolerance: float = 1e-4,
         show: bool = True, more: Sequence[tuple[Any, ...] | dict[str, Any]] = ()) -> dict[str, Any]:
    """Exports the model (or function) in evaluation mode, uploads it, and compares what it computes
    for `args` and `kwargs` with PyTorch, eagerly and compiled; prints the largest error. The upload
    brings PyTorch's results along, for these inputs and for `more` of the kind (tuples, or dicts by
    name), where all are plain tensors, so that a graph which differs is not stored (Error, code
    verification_failed). ValueError: it was stored, and differs by more than `tolerance`. Returns
    the server's information, with "error" by mode."""
    if isinstance(args, (torch.Tensor, str, Mapping)):
        raise TypeError(f"the inputs are a tuple, such as (x,), not {type(args).__name__}")
    if not isinstance(model, torch.nn.Module):
        function, model = model, torch.nn.Module()
        model.forward = function
    bound = inspect.signature(model.forward).bind(*args, **(kwargs or {}))
    args, kwargs = bound.args, bound.kwargs  # those of kwargs in the signature's order
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        exported, file = export(model, args, kwargs, dynamic), io.BytesIO()
        torch.export.save(exported, file)
    finally:
        for module, flag in training.items():
            module.training = flag
    parts = {"graph": file.getvalue()}
    leaves = bound.arguments.values() if kwargs else args
    if all(isinstance(leaf, torch.Tensor) and not leaf.is_complex() for leaf in leaves):
        samples = make_samples(exported, [dict(bound.arguments) if kwargs else args, *more])
        if not any(tensor.is_complex() for tensor in samples.values()):
            parts["samples"] = safetensors_bytes(samples)
    info = client.upload(name, parts, tolerance=tolerance)
    torch.manual_seed(SEED)
    with torch.no_grad():
        args_copy, kwargs_copy = copy.deepcopy((args, kwargs))
        wanted = pytree.tree_leaves(copy.deepcopy(exported).module()(*args_copy, **kwargs_copy))
    errors = {}
    for mode in ("eager", "compiled"):
        body = {"inputs": encode([*args, *kwargs.values()]), "mode": mode, "seed": SEED}
        entries = client.run(name, body)["outputs"]
        if len(entries) != len(wanted):
            raise ValueError(f"{name}: {len(entries)} outputs, PyTorch has {len(wanted)}")
        errors[mode] = max(map(_error, entries, wanted), default=0.0)
    if show:
        print(f"{name}: version {info['version']}, largest error "
              + ", ".join(f"{error:.1e} {mode}" for mode, error in errors.items()))
    if max(errors.values()) > tolerance:
        raise ValueError(f"{name} differs from PyTorch: {errors}")
    return info | {"error": errors}
