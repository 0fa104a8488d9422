# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend=fxserve.backend(url))`: captured graphs run on a server.

torch.compile cuts a model where Python decides; each piece becomes a graph of functional aten calls
(AOTAutograd), which is uploaded when it is first called. Parameters go along with it once; when one
was changed since, the graph is uploaded again. What a piece writes to its inputs and buffers comes
back as results, which PyTorch writes. There are no gradients: call it inside of torch.no_grad().
"""
from __future__ import annotations

import copy
from typing import Any, Callable, Sequence

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func  # type: ignore[attr-defined]

from .arrays import decode, encode
from .client import Client
from .export_fx import dumps, export_fx
from .samples import safetensors_bytes


def _no_gradients(*_: Any) -> Callable[..., Any]:
    raise RuntimeError("fxserve computes no gradients: call the compiled model inside of torch.no_grad()")


class Backend:
    """`graphs`: the pieces that were compiled, in order."""

    def __init__(self, client: Client):
        self.client, self.graphs = client, list[Graph]()
        self._compile = aot_autograd(fw_compiler=_no_gradients, bw_compiler=_no_gradients,
                                     inference_compiler=self._piece)

    def __call__(self, module: torch.fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        return self._compile(module, inputs)

    def _piece(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(Graph(self.client, module))
        return make_boxed_func(self.graphs[-1])


def _is_state(value: Any) -> bool:
    """Whether torch.compile says that an argument stays the same tensor: parameters and buffers."""
    return isinstance(value, torch.nn.Parameter) or (
        isinstance(value, torch.Tensor) and getattr(value, "_dynamo_static_input_type", None) is not None)


def _version(value: torch.Tensor) -> tuple[int, int]:
    """What changes with every write that PyTorch counts, and a hash of the numbers for those that it
    does not count (`p.data.add_(…)`): 0.1 s per 400 MB."""
    return value._version, int(torch.hash_tensor(value.detach()).view(torch.int64))


class Graph:
    """One captured graph; `name` is that of its upload, None before the first call."""
    name: str | None
    state: dict[int, torch.Tensor]  # arguments that were uploaded, by position
    versions: dict[int, tuple[int, int]]

    def __init__(self, client: Client, module: torch.fx.GraphModule):
        self.client, self.name = client, None
        self.uploads, self.state, self.versions = 0, {}, {}
        graph = torch.fx.Graph()
        results = graph.graph_copy(module.graph, {})
        self.returned = list(results) if isinstance(results, (list, tuple)) else [results]
        self.fetched = list(dict.fromkeys(v for v in self.returned if isinstance(v, torch.fx.Node)))
        graph.output(tuple(self.fetched))
        for node in graph.nodes:  # shapes of one trace; sizes of dynamic dimensions come as inputs
            node.meta = {key: node.meta[key] for key in ("nn_module_stack", ) if key in node.meta}
            if node.target is torch.ops.prims.convert_element_type.default:
                node.target = torch.ops.aten.to.dtype
        self.module = torch.fx.GraphModule(module, graph)
        self.random = any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
                          for node in graph.nodes)

    def _upload(self, args: Sequence[Any]) -> None:
        module = copy.deepcopy(self.module)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.state = {at: value for at, value in enumerate(args) if _is_state(value)}
        self.versions = {at: _version(value) for at, value in self.state.items()}
        for at, value in self.state.items():
            path = f"state_{at}"
            module.register_buffer(path, value.detach())
            with module.graph.inserting_before(placeholders[at]):
                placeholders[at].replace_all_uses_with(module.graph.get_attr(path))
            module.graph.erase_node(placeholders[at])
        document, tensors = export_fx(module)
        weights = {"weights": safetensors_bytes(tensors)} if tensors else {}
        self.name = self.client.upload(None, {"graph": dumps(document).encode()} | weights)["name"]
        self.uploads += 1

    def _is_current(self, args: Sequence[Any]) -> bool:
        return self.name is not None and all(
            args[at] is value and _version(value) == self.versions[at] for at, value in self.state.items())

    def __call__(self, *args: Any) -> list[Any]:
        if not self.fetched:
            return list(self.returned)
        if not self._is_current(args):
            self._upload(args)
        body: dict[str, Any] = {"inputs": [encode(value) for at, value in enumerate(args)
                                           if at not in self.state]}
        if self.random:  # torch.manual_seed makes them the same again
            body["seed"] = int(torch.randint(1 << 31, ()))
        assert self.name is not None
        entries = self.client.run(self.name, body)["outputs"]
        values = {node: _tensor(entry) for node, entry in zip(self.fetched, entries, strict=True)}
        return [values[item] if isinstance(item, torch.fx.Node) else item for item in self.returned]


def _tensor(entry: dict[str, Any]) -> Any:
    value = decode(entry)
    return torch.from_numpy(value).to(getattr(torch, entry["dtype"])) if "b64" in entry else value
