# SPDX-License-Identifier: Apache-2.0
"""Samples of a model for `curl -F samples=@s.safetensors`: what PyTorch computes for given inputs.

    from fxserve.samples import write_samples
    write_samples(module, [{"x": x}, {"x": other}], "s.safetensors")     # an nn.Module or GraphModule
    write_samples(torch.export.load("m.pt2"), [(x,)], "s.safetensors")   # an exported program

or samples.py [--nodes] MODEL.pt2 INPUTS.pt OUT.safetensors, where INPUTS.pt is what torch.save wrote
of a list of such inputs. Each is a tuple of positional or a dict of named arguments of forward. With
nodes=True (--nodes) the values of all nodes of a GraphModule or exported program are written, too:
then a failed verification names the first node that differs. export_fx.py --samples writes such a
file beside the graph.

The file holds "0.inputs.x", "0.outputs.logits", "0.nodes.relu"; 0 is the first of the inputs. Names
of outputs are those of the graph's info: the path in the output structure, or the node's name.
Random operators draw the numbers of torch.manual_seed(0), as the server does when it checks samples.
Needs torch only.
"""
from __future__ import annotations

import copy
import ctypes
import inspect
import json
import os
import struct
import sys
from typing import Any, Callable, Iterable, Mapping, Sequence

import torch
from torch import fx

DTYPES = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16",
          torch.int32: "I32", torch.int64: "I64", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.float32: "F32", torch.float64: "F64"}

Inputs = Sequence[Any] | Mapping[str, Any]  # positional or named arguments of forward
Model = torch.nn.Module | torch.export.ExportedProgram
SEED = 0  # random operators draw what the server draws when it checks samples


def raw(tensor: torch.Tensor) -> bytes:
    """The bytes of a dense copy."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return (ctypes.c_char * flat.nbytes).from_address(flat.data_ptr()).raw


def safetensors_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        data = raw(tensor)
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


class Recorder(fx.Interpreter):
    """Keeps a copy of each node's value, before later nodes write to it."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and n.op not in ("placeholder", "output", "get_attr"):
            self.values[n.name] = value.detach().clone()
        return value


def named_inputs(forward: Callable[..., Any], inputs: Inputs) -> dict[str, Any]:
    if isinstance(inputs, dict):
        return dict(inputs)
    names = list(inspect.signature(forward).parameters)
    return dict(zip(names, inputs))


def called(module: torch.nn.Module, given: Inputs) -> Any:
    """Named arguments that forward was exported with as positional ones are given as such."""
    if isinstance(given, dict):
        names = list(inspect.signature(module.forward).parameters)
        if set(names[:len(given)]) == set(given):
            given = tuple(given[name] for name in names[:len(given)])
    return module(**given) if isinstance(given, dict) else module(*given)


def named_outputs(value: Any, names: Sequence[str] = (), path: str = "") -> dict[str, torch.Tensor]:
    """Leaves by their path, as the graph's info names them."""
    if isinstance(value, torch.Tensor):
        return {path or (names[0] if names else "output"): value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    out = {}
    for at, (key, item) in enumerate(items):
        name = names[at] if not isinstance(value, dict) and not path and at < len(names) else str(key)
        out.update(named_outputs(item, (name,), f"{path}.{name}" if path else name))
    return out


def output_names(graph: fx.Graph) -> list[str]:
    """Names of the nodes that a graph returns, where it returns one or a flat list of them."""
    returned = next(node for node in graph.nodes if node.op == "output").args[0]
    returned = returned if isinstance(returned, (tuple, list)) else [returned]
    return [node.name for node in returned if isinstance(node, fx.Node)]


def flat_inputs(module: fx.GraphModule, named: Mapping[str, Any]) -> list[Any]:
    return [named[node.target] for node in module.graph.nodes if node.op == "placeholder"
            and node.target in named]


def node_values(module: fx.GraphModule, graph: fx.Graph,
                named: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Of the nodes that the graph, as it is uploaded, has: the module of an exported program has
    others for its guards."""
    recorder, known = Recorder(module), {node.name for node in graph.nodes}
    recorder.run(*flat_inputs(module, named), enable_io_processing=False)
    return {name: value for name, value in recorder.values.items() if name in known}


def make_samples(model: Model, inputs: Iterable[Inputs], nodes: bool = False) -> dict[str, torch.Tensor]:
    """The tensors of such a file, by name."""
    module: Any = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    graph: Any = model.graph if module is not model else getattr(module, "graph", None)
    names = output_names(graph) if graph is not None else []
    tensors: dict[str, torch.Tensor] = {}
    if nodes and graph is None:
        raise ValueError("values of nodes are those of a GraphModule or an exported program")
    for at, given in enumerate(inputs):
        named = named_inputs(module.forward, given)
        for name, value in named.items():
            tensors[f"{at}.inputs.{name}"] = value.detach().clone()
        with torch.no_grad():  # copies: what a run writes to buffers and inputs is not kept
            if nodes:
                torch.manual_seed(SEED)
                values = node_values(copy.deepcopy(module), graph, copy.deepcopy(named))
                tensors.update({f"{at}.nodes.{name}": value for name, value in values.items()})
            torch.manual_seed(SEED)
            result = called(copy.deepcopy(module), copy.deepcopy(given))
        for name, value in named_outputs(result, names).items():
            tensors[f"{at}.outputs.{name}"] = value
    return tensors


def write_samples(model: Model, inputs: Iterable[Inputs], path: str | os.PathLike[str],
                  nodes: bool = False) -> None:
    with open(path, "wb") as file:
        file.write(safetensors_bytes(make_samples(model, inputs, nodes)))


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--nodes"]
    if len(words) != 3:
        print(__doc__)
        return 2
    write_samples(torch.export.load(words[0]), torch.load(words[1]), words[2], "--nodes" in sys.argv[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
