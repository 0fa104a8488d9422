# SPDX-License-Identifier: Apache-2.0
"""Writes a torch.fx.GraphModule as FX JSON ("fx/1") with its weights as safetensors, and reads them
back.

    python export_fx.py model.py:Net net.json                        traces Net(), weights go to
    net.safetensors
    python export_fx.py model.py:f f.json --inline                   weights inside the JSON
    python export_fx.py model.py:Net net.json --input x=float32[N,3,224,224]
    python export_fx.py model.py:Net net.json --input x=float32[N,10] --samples 2
                                                                     what PyTorch computes, for
    `curl -F samples=@net.samples.safetensors`, goes there

    from fxserve.export_fx import export_fx, import_fx
    document, tensors = export_fx(torch.fx.symbolic_trace(net))

Needs torch, and safetensors unless --inline is given. The form:

* "nodes": op, name, target, args, kwargs; "type" as PyTorch prints it; "meta" {"dtype", "shape",
  "nn_module_stack" (key -> [path, class]), "stack_trace"} where the node has it.
  Call targets are PyTorch's qualified names. What JSON lacks is written as {"$tuple": [...]},
  {"$slice": [a, b, c]},
  {"$dtype": "float32"}, {"$device": "cpu"}, {"$layout": "strided"}, {"$memory_format":
  "channels_last"},
  {"$ellipsis": true}, {"$float": "inf"}, {"$complex": [re, im]}; "%x" is node x, a text or key that
  begins with
  % or $ doubles it.
* "modules": path -> {"type", "config", "training"}. config holds the constructor's arguments that
differ from its
  defaults; training is left out when false. A GraphModule child is {"type": "torch.fx.GraphModule",
  "graph": {...}},
  a document of its own with paths relative to it.
* "state": path -> {"dtype", "shape", "data" or "b64"}, or {"same_as": path} for a tensor registered
twice. With the
  weights apart only the same_as entries stay here; names in the weights file are full paths, also
  for children.
"""
from __future__ import annotations

import argparse
import ast
import base64
import builtins
import importlib.util
import inspect
import json
import math
import operator
import pathlib
import re
import struct
import sys
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch.fx.node import _get_qualified_name, _type_repr
from torch.nn.utils import parametrize
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

FORMAT = "fx/1"
Document = dict[str, Any]  # FX JSON, or an object in it
Declared = tuple[str, Sequence[int | str]]  # an input: dtype, and sizes or names of dimensions
MAX_TEXT_NUMBERS = 4096  # larger inline tensors are written as base64
DTYPES: dict[str, torch.dtype] = {
    str(d).removeprefix("torch."): d for d in vars(torch).values() if isinstance(d, torch.dtype)
}


class Unsupported(ValueError):
    """The graph holds something that FX JSON has no form for."""


# ---- values ------------------------------------------------------------------------------------


def _escape(text: str) -> str:
    return text[0] + text if text[:1] in ("%", "$") else text


def encode_value(value: Any) -> Any:
    """A node argument as JSON."""
    if isinstance(value, torch.fx.Node):
        return "%" + value.name
    if isinstance(value, str):
        return _escape(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, complex):
        return {"$complex": [encode_value(value.real), encode_value(value.imag)]}
    if isinstance(value, list):
        return [encode_value(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [encode_value(item) for item in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise Unsupported(f"a dict with keys that are no texts: {list(value)}")
        return {_escape(key): encode_value(item) for key, item in value.items()}
    if isinstance(value, slice):
        return {"$slice": [encode_value(item) for item in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"$ellipsis": True}
    for kind, name in ((torch.dtype, "$dtype"), (torch.layout, "$layout"),
                       (torch.memory_format, "$memory_format")):
        if isinstance(value, kind):
            return {name: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"$device": str(value)}
    raise Unsupported(f"a {type(value).__module__}.{type(value).__qualname__} as an argument")


def decode_value(value: Any, nodes: Mapping[str, torch.fx.Node]) -> Any:
    """The inverse of encode_value; `nodes` maps names to nodes."""
    if isinstance(value, str):
        if value[:1] in ("%", "$"):
            return value[1:] if value[:2] in ("%%", "$$") else nodes[value[1:]]
        return value
    if isinstance(value, list):
        return [decode_value(item, nodes) for item in value]
    if not isinstance(value, dict):
        return value
    key = next(iter(value), "")
    if len(value) != 1 or key[:1] != "$" or key[:2] == "$$":
        return {k[1:] if k[:2] in ("%%", "$$") else k: decode_value(item, nodes) for k, item in value.items()}
    content = value[key]
    if key in ("$tuple", "$slice"):
        return (tuple if key == "$tuple"
                else lambda items: slice(*items))([decode_value(i, nodes) for i in content])
    if key in ("$dtype", "$layout", "$memory_format"):
        return getattr(torch, content)
    if key == "$complex":
        return complex(*(decode_value(part, nodes) for part in content))
    readers: dict[str, Callable[[Any], Any]] = {"$device": torch.device, "$float": float,
                                                "$ellipsis": lambda _: Ellipsis}
    return readers[key](content)


# ---- tensors -----------------------------------------------------------------------------------
LARGEST = torch.finfo(torch.float32).max


def _shortest(value: float) -> float:
    """The shortest decimal of a float32 (or a smaller type's value) that reads back as the same
    float32."""
    for digits in range(1, 10):
        text = float(f"{value:.{digits}g}")
        if abs(text) <= LARGEST and struct.pack("<f", text) == struct.pack("<f", value):
            return text
    return value


def encode_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    """A tensor as {"dtype", "shape", "data" | "b64"}."""
    tensor = tensor.detach().cpu().contiguous()
    entry = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    if tensor.numel() > MAX_TEXT_NUMBERS or tensor.is_complex():
        raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
        return {**entry, "b64": base64.b64encode(raw).decode()}
    numbers = tensor.reshape(-1).tolist()
    if tensor.is_floating_point():
        shorten = (lambda x: x) if tensor.dtype == torch.float64 else _shortest
        special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
        numbers = [shorten(x) if math.isfinite(x) else special[repr(x)] for x in numbers]
    return {**entry, "data": numbers}


def decode_tensor(entry: Mapping[str, Any]) -> torch.Tensor:
    dtype = DTYPES[entry["dtype"]]
    if "b64" in entry:
        raw = bytearray(base64.b64decode(entry["b64"]))
        flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    else:
        data, numbers = [entry["data"]], []
        while data:  # nested lists are read as well
            item = data.pop()
            if isinstance(item, list):
                data.extend(reversed(item))
            else:
                numbers.append(float(item) if isinstance(item, str) else item)
        flat = torch.tensor(numbers, dtype=dtype)
    return flat.reshape(entry["shape"])


# ---- modules -----------------------------------------------------------------------------------

CONSTRUCTORS = {  # classes whose signature does not name their arguments
    "RNN": ("input_size", "hidden_size", "num_layers=1", "nonlinearity='tanh'", "bias=True",
            "batch_first=False", "dropout=0.0", "bidirectional=False"),
    "LSTM": ("input_size", "hidden_size", "num_layers=1", "bias=True", "batch_first=False", "dropout=0.0",
             "bidirectional=False", "proj_size=0"),
    "GRU": ("input_size", "hidden_size", "num_layers=1", "bias=True", "batch_first=False", "dropout=0.0",
            "bidirectional=False"),
}
NOT_KEPT = {"self", "device", "dtype", "args", "kwargs", "init", "_weight", "_freeze", "min_value",
            "max_value"}


LAYER_PARTS = {
    "self_attn": torch.nn.MultiheadAttention, "multihead_attn": torch.nn.MultiheadAttention,
    "linear1": torch.nn.Linear, "linear2": torch.nn.Linear, "norm1": torch.nn.LayerNorm,
    "norm2": torch.nn.LayerNorm, "norm3": torch.nn.LayerNorm,
}


def _activation(function: Any) -> str:
    """A function by its name; a module stands beside, under the layer's path."""
    if isinstance(function, torch.nn.Module):
        return "relu"
    name = getattr(function, "__name__", "")
    if function not in (getattr(torch.nn.functional, name, None), getattr(torch, name, None)):
        raise Unsupported(f"the activation {function}: use a function of torch.nn.functional or a module")
    return name


def _distance(function: Any) -> None:
    if str(function) == str(torch.nn.PairwiseDistance()):  # the default
        return None
    raise Unsupported(f"the distance function {function}")


def _layer_argument(layer: Any, name: str) -> Any:
    """The arguments of TransformerEncoderLayer and TransformerDecoderLayer live in their
    children."""
    attention = layer.self_attn
    for child, expected in LAYER_PARTS.items():
        part = getattr(layer, child, None)
        same_eps = getattr(part, "eps", layer.norm1.eps) == layer.norm1.eps
        if part is not None and not (type(part) is expected and same_eps):
            raise Unsupported(f"a {type(layer).__name__} whose {child} was replaced")
    if name == "activation":
        return _activation(layer.activation)
    readers: dict[str, Callable[[], Any]] = {
        "d_model": lambda: attention.embed_dim,
        "nhead": lambda: attention.num_heads,
        "dim_feedforward": lambda: layer.linear1.out_features,
        "dropout": lambda: layer.dropout.p,
        "layer_norm_eps": lambda: layer.norm1.eps,
        "batch_first": lambda: attention.batch_first,
        "norm_first": lambda: layer.norm_first,
        "bias": lambda: layer.linear1.bias is not None,
    }
    return readers[name]()


# (class, argument) -> how to read it back from a module, where the attribute has another name
ARGUMENTS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("PairwiseDistance", "p"): lambda m: m.norm,
    ("TripletMarginWithDistanceLoss", "distance_function"): lambda m: _distance(m.distance_function),
    ("MultiheadAttention", "bias"): lambda m: m.in_proj_bias is not None,
    ("MultiheadAttention", "add_bias_kv"): lambda m: m.bias_k is not None,
    ("MultiheadAttention", "kdim"): lambda m: None if m.kdim == m.embed_dim else m.kdim,
    ("MultiheadAttention", "vdim"): lambda m: None if m.vdim == m.embed_dim else m.vdim,
}


STACKS: dict[type[torch.nn.Module], dict[str, Any]] = {  # argument -> default
    torch.nn.Transformer: {"d_model": 512, "batch_first": False},
    torch.nn.TransformerEncoder: {"enable_nested_tensor": True, "mask_check": True},
    torch.nn.TransformerDecoder: {},
}


def _arguments(cls: type[torch.nn.Module]) -> Iterator[tuple[str, Any]]:
    """The (name, default) pairs of a torch.nn class's constructor; default is inspect's `empty` if
    it has none."""
    if cls.__name__ in CONSTRUCTORS:
        for text in CONSTRUCTORS[cls.__name__]:
            name, _, default = text.partition("=")
            yield name, ast.literal_eval(default) if default else inspect.Parameter.empty
        return
    for parameter in inspect.signature(cls.__init__).parameters.values():
        if parameter.name not in NOT_KEPT:
            yield parameter.name, parameter.default


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, tuple) and isinstance(default, (int, float)):
        return all(_same(item, default) for item in value)
    return type(value) is type(default) and value == default


def _plain(value: Any) -> Any:
    """A config value as JSON: lists for tuples, and None, bool, int, float or str."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return encode_value(value)
    raise Unsupported(f"a {type(value).__name__} as a module's argument")


def _class(module: torch.nn.Module) -> type[torch.nn.Module]:
    """The class whose forward a module has, without parametrizations."""
    cls = type(module)
    if parametrize.is_parametrized(module):
        cls = cls.__bases__[0]
    return torch.nn.Linear if cls is torch.nn.modules.linear.NonDynamicallyQuantizableLinear else cls


def module_type(module: torch.nn.Module) -> str:
    """`torch.nn.Linear` for torch.nn's own classes, else the class's qualified name."""
    cls = _class(module)
    return f"torch.nn.{cls.__name__}" if getattr(torch.nn, cls.__name__, None) is cls else _type_repr(cls)


def module_config(module: torch.nn.Module) -> dict[str, Any]:
    """The constructor arguments of a torch.nn module that are not its defaults."""
    cls = _class(module)
    config: dict[str, Any] = {}
    if getattr(torch.nn, cls.__name__, None) is not cls or cls in (torch.nn.Module, torch.nn.Identity):
        return config
    if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)):
        return config
    if cls in STACKS:  # otherwise described by their children
        given = {name: getattr(module, name) for name in STACKS[cls]}
        return {name: value for name, value in given.items() if value != STACKS[cls][name]}
    for name, default in _arguments(cls):
        special = ARGUMENTS.get((cls.__name__, name))
        if special is not None:
            value = special(module)
        elif cls.__name__ in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
            value = _layer_argument(module, name)
        elif name == "bias":
            value = getattr(module, "bias", None)
            value = value if isinstance(value, bool) else value is not None
        else:
            value = getattr(module, name, default)
        if isinstance(value, torch.Tensor) and name in module._buffers:
            continue  # state: the weights of losses
        if name == "bias" and not config.get("elementwise_affine", config.get("affine", True)):
            continue  # norms without weights have no bias to speak of
        if not _same(value, default):
            config[name] = _plain(value)
    return config


def _made_tensors(module: torch.nn.Module, path: str) -> dict[str, torch.Tensor]:
    """Tensors that parametrizations, and the hooks that preceded them, make of others at each call."""
    made = {}
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm):
            made[hook.name] = hook.compute_weight(module)
        elif isinstance(hook, SpectralNorm):
            made[hook.name] = hook.compute_weight(module, do_power_iteration=False)
        else:
            raise Unsupported(f"the module {path}: it has a forward hook, which is code")
    if module._forward_hooks:
        raise Unsupported(f"the module {path}: it has a forward hook, which is code")
    if parametrize.is_parametrized(module):
        names: Any = module.parametrizations
        made.update({name: getattr(module, name) for name in names})
    if made and module.training:
        raise Unsupported(f"the module {path}: its parametrizations may change in training; call eval()")
    return made


def _called_modules(gm: torch.fx.GraphModule) -> Iterator[tuple[str, torch.nn.Module]]:
    """Modules that call_module nodes call, with those under them, by path."""
    for path in dict.fromkeys(node.target for node in gm.graph.nodes if node.op == "call_module"):
        module = gm.get_submodule(path)
        if not isinstance(module, torch.fx.GraphModule):
            for name, child in module.named_modules(prefix=path, remove_duplicate=False):
                yield name, child


def _encode_modules(gm: torch.fx.GraphModule) -> tuple[dict[str, Document], list[str]]:
    modules: dict[str, Document] = {}
    children: list[str] = []
    for path, module in gm.named_modules(remove_duplicate=False):
        if path == "" or any(path.startswith(child + ".") for child in children):
            continue
        if operator.attrgetter(path)(gm) is not module:
            continue  # hidden: copies of TransformerDecoderLayer have relu before their activation
        if "parametrizations" in path.split("."):
            continue  # their tensors are written as they are made
        entry: Document = {"type": module_type(module)}
        if isinstance(module, torch.fx.GraphModule):
            entry = {"type": "torch.fx.GraphModule", "graph": None}
            children.append(path)
        elif config := module_config(module):
            entry["config"] = config
        if module.training and type(module) is not torch.nn.Module:  # a plain container has no behaviour
            entry["training"] = True
        modules[path] = entry
    return modules, children


# ---- graphs ------------------------------------------------------------------------------------


def _encode_target(node: torch.fx.Node) -> str:
    if isinstance(node.target, str):
        return node.target
    return _get_qualified_name(node.target)


def _encode_meta(node: torch.fx.Node) -> Document:
    meta: Document = {}
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(dtype, torch.dtype) and shape is not None:
        sizes = [int(size) if isinstance(size, int) else str(size) for size in shape]
        meta = {"dtype": str(dtype).removeprefix("torch."), "shape": sizes}
    stack = node.meta.get("nn_module_stack")
    if stack:
        meta["nn_module_stack"] = {key: [path, kind if isinstance(kind, str) else _type_repr(kind)]
                                   for key, (path, kind) in stack.items()}
    if node.stack_trace:
        meta["stack_trace"] = node.stack_trace
    return meta


def _encode_node(node: torch.fx.Node) -> Document:
    entry: Document = {"op": node.op, "name": node.name, "target": _encode_target(node)}
    try:
        if node.args:
            entry["args"] = [encode_value(arg) for arg in node.args]
        if node.kwargs:
            entry["kwargs"] = {_escape(name): encode_value(arg) for name, arg in node.kwargs.items()}
    except Unsupported as error:
        raise Unsupported(f"node {node.name}: {error}") from None
    if node.type is not None:
        entry["type"] = _type_repr(node.type)
    if meta := _encode_meta(node):
        entry["meta"] = meta
    return entry


def _named_tensors(gm: torch.fx.GraphModule, skip: Iterable[str]) -> dict[str, torch.Tensor]:
    """Every parameter and buffer by path, and the plain tensor attributes that get_attr nodes
    name."""
    found: dict[str, torch.Tensor] = dict(gm.named_parameters(remove_duplicate=False))
    found.update(gm.named_buffers(remove_duplicate=False))
    for path, module in _called_modules(gm):
        for name, tensor in _made_tensors(module, path).items():
            prefix = f"{path}.parametrizations.{name}."
            found = {key: t for key, t in found.items() if not key.startswith(prefix)}
            for part in ("_g", "_v", "_u", "_orig"):
                found.pop(f"{path}.{name}{part}", None)
            found[f"{path}.{name}"] = tensor.detach()
    for node in gm.graph.nodes:
        if node.op == "get_attr" and node.target not in found:
            value = operator.attrgetter(node.target)(gm)
            if isinstance(value, torch.Tensor):
                found[node.target] = value
    return {path: t for path, t in found.items() if not any(path.startswith(child + ".") for child in skip)}


def export_fx(gm: torch.fx.GraphModule, inline: bool = False,
              inputs: Mapping[str, Declared] | None = None) -> tuple[Document, dict[str, torch.Tensor]]:
    """Returns (document, tensors): the FX JSON as a dict, and the weights by path (empty when
    inline).

    `inputs` declares the signature: {placeholder: (dtype name, [sizes or dimension names])}.
    """
    if type(gm.graph._codegen) is not torch.fx.graph.CodeGen:
        raise Unsupported("a graph whose inputs or outputs are packed (concrete_args, dynamo): "
                          "trace it without")
    declared = inputs or {}
    document: Document = {"format": FORMAT, "nodes": [_encode_node(node) for node in gm.graph.nodes]}
    for entry in document["nodes"]:
        if entry["op"] == "placeholder" and entry["target"] in declared:
            dtype, shape = declared[entry["target"]]
            entry["meta"] = {**entry.get("meta", {}), "dtype": dtype, "shape": list(shape)}

    modules, children = _encode_modules(gm)
    tensors: dict[str, torch.Tensor] = {}
    state: dict[str, Document] = {}
    for child in children:
        part: Any = gm.get_submodule(child)
        modules[child]["graph"], inner = export_fx(part, inline)
        name = type(part).__name__
        if name != "GraphModule" and name.isascii():
            modules[child]["graph"]["class_name"] = name
        tensors.update({f"{child}.{path}": tensor for path, tensor in inner.items()})
    first: dict[int, str] = {}
    for path, tensor in _named_tensors(gm, children).items():
        if id(tensor) in first:
            state[path] = {"same_as": first[id(tensor)]}
        elif inline:
            state[path] = encode_tensor(tensor)
        else:
            tensors[path] = tensor.detach().clone(memory_format=torch.contiguous_format)
        first.setdefault(id(tensor), path)
    if modules:
        document["modules"] = modules
    if state:
        document["state"] = state
    return document, tensors


# ---- and back ----------------------------------------------------------------------------------

ROOTS = {"torch": torch, "_operator": operator, "operator": operator, "math": math, "builtins": builtins}


def resolve(name: str) -> Any:
    """The callable or type with a qualified name; only torch, operator, math and builtins are
    looked into."""
    if "." not in name:
        return getattr(builtins, name)
    root, *parts = name.split(".")
    if root not in ROOTS:
        raise Unsupported(f"target {name}")
    value = ROOTS[root]
    for part in parts:
        value = getattr(value, part)
    return value


def _resolve_type(text: str) -> Any:
    """The type that prints as `text`, or None: names and subscripts such as
    typing.Optional[torch.Tensor]."""

    def build(tree: ast.AST) -> Any:
        if isinstance(tree, ast.Subscript):
            return build(tree.value)[build(tree.slice)]
        if isinstance(tree, ast.Tuple):
            return tuple(build(item) for item in tree.elts)
        name = ast.unparse(tree)
        return getattr(sys.modules["typing"], name[7:]) if name.startswith("typing.") else resolve(name)

    try:
        return build(ast.parse(text, mode="eval").body)
    except (AttributeError, Unsupported, SyntaxError):
        return None


def _attach(root: torch.nn.Module, path: str, value: torch.Tensor | torch.nn.Module) -> None:
    """Sets root.path, making empty modules on the way; tensors fill a module's own slots or become
    buffers."""
    *parents, name = path.split(".")
    for parent in parents:
        if parent not in root._modules:
            root.add_module(parent, torch.nn.Module())
        root = root.get_submodule(parent)
    if isinstance(value, torch.nn.Module):
        root.add_module(name, value)
    elif root._parameters.get(name) is not None:
        root._parameters[name] = torch.nn.Parameter(value, requires_grad=value.is_floating_point())
    else:
        root._buffers.pop(name, None)
        root.register_buffer(name, value)


def _build_stack(cls: type[torch.nn.Module], modules: Document, path: str, config: dict[str, Any],
                 tensors: Mapping[str, torch.Tensor]) -> torch.nn.Module:
    """A stack of Transformer layers, whose arguments are modules."""

    def child(name: str) -> Any:
        entry = modules.get(f"{path}.{name}")
        return entry and _build_module(modules, f"{path}.{name}", tensors)

    if cls is torch.nn.Transformer:
        encoder, decoder = child("encoder"), child("decoder")
        return cls(nhead=1, custom_encoder=encoder, custom_decoder=decoder, **config)
    n = sum(re.fullmatch(re.escape(path) + r"\.layers\.\d+", name) is not None for name in modules)
    return cls(child("layers.0"), n, child("norm"), **config)


def _build_module(modules: Document, path: str, tensors: Mapping[str, torch.Tensor]) -> torch.nn.Module:
    entry = modules[path]
    if entry["type"] == "torch.fx.GraphModule":
        inner = {name.removeprefix(path + "."): t for name, t in tensors.items()
                 if name.startswith(path + ".")}
        return import_fx(entry["graph"], inner)
    cls = resolve(entry["type"])
    if not entry["type"].startswith("torch.nn.") or not issubclass(cls, torch.nn.Module):
        raise Unsupported(f"module class {entry['type']}")
    config = {k: float(v["$float"]) if isinstance(v, dict) else v for k, v in entry.get("config", {}).items()}
    config = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    made = _build_stack(cls, modules, path, config, tensors) if cls in STACKS else cls(**config)
    return made.train(entry.get("training", False))


def _decode_meta(node: torch.fx.Node, meta: Document) -> None:
    if "nn_module_stack" in meta:
        node.meta["nn_module_stack"] = {key: tuple(entry) for key, entry in meta["nn_module_stack"].items()}
    if "stack_trace" in meta:
        node.meta["stack_trace"] = meta["stack_trace"]


def import_fx(document: Document, tensors: Mapping[str, torch.Tensor] | None = None) -> torch.fx.GraphModule:
    """The GraphModule that a document and its weights describe. Classes come from torch.nn only."""
    tensors = tensors or {}
    root = torch.nn.Module()
    for path in document.get("modules", {}):
        _attach(root, path, _build_module(document["modules"], path, tensors))
    state = document.get("state", {})
    children = [p + "." for p, entry in document.get("modules", {}).items() if "graph" in entry]
    for path, tensor in tensors.items():
        if not path.startswith(tuple(children)):
            _attach(root, path, tensor)
    for path, entry in state.items():
        if "same_as" not in entry:
            _attach(root, path, decode_tensor(entry))
    for path, entry in state.items():
        if "same_as" in entry:
            owner, _, name = path.rpartition(".")
            setattr(root.get_submodule(owner), name, operator.attrgetter(entry["same_as"])(root))

    graph = torch.fx.Graph()
    nodes: dict[str, torch.fx.Node] = {}
    for entry in document["nodes"]:
        target = resolve(entry["target"]) if entry["op"] == "call_function" else entry["target"]
        node = graph.create_node(
            entry["op"],
            target,
            tuple(decode_value(arg, nodes) for arg in entry.get("args", [])),
            decode_value(entry.get("kwargs", {}), nodes),
            entry.get("name"),
            _resolve_type(entry["type"]) if "type" in entry else None,
        )
        _decode_meta(node, entry.get("meta", {}))
        nodes[node.name] = node
    return torch.fx.GraphModule(root, graph, document.get("class_name", "GraphModule"))


# ---- files -------------------------------------------------------------------------------------


def dumps(document: Document) -> str:
    """The document as text, one node, module and tensor per line."""

    def block(items: Iterable[str]) -> str:
        return ",\n".join("  " + item for item in items)

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    parts = []
    for key, value in document.items():
        if key == "nodes":
            parts.append(f'"nodes": [\n{block(map(line, value))}\n]')
        elif key in ("modules", "state"):
            rows = (f"{line(name)}: {line(entry)}" for name, entry in value.items())
            parts.append(f"{line(key)}: {{\n{block(rows)}\n}}")
        else:
            parts.append(f"{line(key)}: {line(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def _load(source: str) -> torch.fx.GraphModule:
    """`file.py:name` -> a GraphModule; a class is called without arguments, what is no GraphModule
    is traced."""
    file, _, name = source.rpartition(":")
    if not file:
        raise SystemExit(f"{source}: expected file.py:name, e.g. model.py:Net")
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    value = getattr(module, name, None)
    if isinstance(value, type):
        value = value()
    if not isinstance(value, torch.nn.Module) and not callable(value):
        raise SystemExit(f"{file} has no function, class or module {name}")
    if isinstance(value, torch.nn.Module):
        value.eval()
    return value if isinstance(value, torch.fx.GraphModule) else torch.fx.symbolic_trace(value)


def _parse_input(text: str) -> tuple[str, Declared]:
    match = re.fullmatch(r"(\w+)=(\w+)\[([\w, ]*)\]", text)
    if not match or match[2] not in DTYPES:
        raise argparse.ArgumentTypeError(f"{text}: expected name=dtype[sizes], e.g. x=float32[N,3]")
    sizes = [int(s) if s.strip().isdigit() else s.strip() for s in match[3].split(",") if s.strip()]
    return match[1], (match[2], sizes)


def random_inputs(declared: Mapping[str, Declared], at: int) -> dict[str, torch.Tensor]:
    """The inputs of sample `at`; each dimension name has one size."""
    sizes: dict[str, int] = {}
    inputs = {}
    torch.manual_seed(at)
    for name, (dtype, shape) in declared.items():
        values = torch.randn([sizes.setdefault(size, at + len(sizes) + 1) if isinstance(size, str) else size
                              for size in shape])
        inputs[name] = values.to(DTYPES[dtype]) if DTYPES[dtype].is_floating_point else \
            (values > 0).to(DTYPES[dtype])
    return inputs


def write_sample_file(gm: torch.fx.GraphModule, wanted: str, declared: Mapping[str, Declared],
                      path: pathlib.Path, nodes: bool) -> None:
    """`wanted`: how many with random inputs, or a file that torch.save wrote of a list of
    inputs."""
    from .samples import write_samples

    inputs = [node.target for node in gm.graph.nodes if node.op == "placeholder" and not node.args]
    if not wanted.isdigit():
        write_samples(gm, torch.load(wanted), path, nodes)
        return
    if lacking := [name for name in inputs if name not in declared]:
        raise SystemExit(f"--samples {wanted} needs --input for: {', '.join(lacking)}")
    write_samples(gm, [random_inputs(declared, at) for at in range(int(wanted))], path, nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source",
                        help="file.py:name of a function, a Module, a GraphModule or a Module class")
    parser.add_argument("out", type=pathlib.Path, help="the FX JSON to write")
    parser.add_argument("--weights", type=pathlib.Path,
                        help="the safetensors file (default: OUT.safetensors)")
    parser.add_argument("--inline", action="store_true", help="put the weights into the JSON")
    parser.add_argument("--input", action="append", type=_parse_input, default=[], metavar="x=float32[N,3]",
                        help="declare an input's dtype and shape; may be repeated")
    parser.add_argument("--samples", metavar="N|INPUTS.pt",
                        help="write OUT.samples.safetensors: what PyTorch computes for N random inputs, or "
                        "for a list of inputs that torch.save wrote")
    parser.add_argument("--sample-nodes", action="store_true",
                        help="with the values of all nodes: a failed verification names the first that "
                        "differs")
    options = parser.parse_args()
    if options.sample_nodes and options.samples is None:
        parser.error("--sample-nodes belongs to --samples")
    if options.inline and options.weights:
        parser.error("--inline and --weights exclude each other")
    gm = _load(options.source)
    try:
        document, tensors = export_fx(gm, options.inline, dict(options.input))
    except Unsupported as error:
        raise SystemExit(f"FX JSON cannot hold {error}") from None
    options.out.write_text(dumps(document), encoding="utf-8")
    if tensors:
        from safetensors.torch import save_file

        save_file(tensors, options.weights or options.out.with_suffix(".safetensors"),
                  metadata={"format": "pt"})
    if options.samples is not None:
        write_sample_file(gm, options.samples, dict(options.input),
                          options.out.with_suffix(".samples.safetensors"), options.sample_nodes)


if __name__ == "__main__":
    main()
