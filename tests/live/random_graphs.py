# SPDX-License-Identifier: Apache-2.0
"""Random graphs of 1 to 12 operator calls, for differential.py.

Each call begins as a golden case (tests/golden): a valid call of one overload. Its tensors get
other values, dtypes and layouts, or are results of earlier calls; its numbers, flags and lists
change now and then. PyTorch runs each call as the graph grows, so that most calls are valid. A call
that PyTorch refuses closes the graph or is left out.
"""

import base64
import json
import math
import pathlib
import random
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "generate")]

import replay_goldens
from export_fx import encode_value
from make_goldens import find_overload

MAX_ELEMENTS = 4096
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8, torch.int16]
DTYPES = [*FLOATS, *INTEGERS, torch.bool, torch.float32, torch.int64]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-3, 88.0, -104.0, 6e4,
           1e-45, 3e38, 2.0**31, 2.0**63]
NUMBERS = [0, 1, -1, 2, 3, 7, 0.0, -0.0, 0.5, -1.5, 2.5, 1e-6, 300, 2**31, -(2**31), 2**63 - 1, 1e30,
           math.inf, -math.inf, math.nan, True, False]
# arguments whose values are kept as they are
INDEXES = {"index", "indices", "mask", "condition", "boundaries", "offsets", "lengths"}
# Arguments that torchvision reads without a check: other values end its process. (Operators of aten
# have no tensors of these names.)
UNCHECKED = {"rois", "spatial_scale", "pooled_height", "pooled_width", "sampling_ratio", "offset",
             "stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w"}

# Running statistics are written though the schema does not say so.
HIDDEN_WRITES = {"aten.native_batch_norm.default", "aten.batch_norm.default", "aten.instance_norm.default",
                 "aten._batch_norm_impl_index.default"}


# Results that may be read, of operators that leave some uninitialised or free in their sign.
DEFINED = {"aten::embedding_bag": (0,), "aten::_embedding_bag": (0,),
           "aten::_embedding_bag_forward_only": (0,), "aten::_linalg_eigh": (0,), "aten::_linalg_svd": (1,),
           "aten::linalg_inv_ex": (1,), "aten::linalg_solve_ex": (1,), "aten::linalg_cholesky_ex": (1,)}


class Ref:
    """An argument that is another node's result."""

    def __init__(self, name):
        self.name = name


class Call:
    """A node: an overload, or getitem with `of` and `item`."""

    def __init__(self, name, overload, args, kwargs):
        self.name, self.overload, self.args, self.kwargs = name, overload, args, kwargs

    @property
    def target(self):
        return "_operator.getitem" if self.overload is None else "torch.ops." + str(self.overload)

    def writes(self):
        if self.overload is None:
            return False
        if str(self.overload) in HIDDEN_WRITES:
            return True
        return any(a.alias_info is not None and a.alias_info.is_write
                   for a in self.overload._schema.arguments)

    def run(self, env):
        args, kwargs = fill(self.args, env), fill(self.kwargs, env)
        with torch.no_grad():
            return args[0][args[1]] if self.overload is None else self.overload(*args, **kwargs)


def map_leaves(function, value):
    """`function` over the leaves of lists and dicts; tuples become lists."""
    if isinstance(value, (list, tuple)):
        return [map_leaves(function, item) for item in value]
    if isinstance(value, dict):
        return {name: map_leaves(function, item) for name, item in value.items()}
    return function(value)


def fill(value, env):
    return map_leaves(lambda leaf: env[leaf.name] if isinstance(leaf, Ref) else leaf, value)


def refs_in(value):
    found = []
    map_leaves(lambda leaf: found.append(leaf.name) if isinstance(leaf, Ref) else None, value)
    return found


class Case:
    """A graph: `inputs` (name to contiguous tensor), `calls` in order, `results` (names).
    `refused`: PyTorch refuses the last call."""

    def __init__(self, inputs, calls, results, refused=None):
        self.inputs, self.calls, self.results, self.refused = inputs, calls, results, refused

    def document(self):
        def encode(value):
            return map_leaves(lambda leaf: "%" + leaf.name if isinstance(leaf, Ref) else encode_value(leaf),
                              value)

        nodes = [{"op": "placeholder", "name": name, "target": name} for name in self.inputs]
        for call in self.calls:
            node = {"op": "call_function", "name": call.name, "target": call.target,
                    "args": encode(call.args)}
            if call.kwargs:
                node["kwargs"] = encode(call.kwargs)
            nodes.append(node)
        outs = {"$tuple": ["%" + name for name in self.results]}
        return {"format": "fx/1",
                "nodes": [*nodes, {"op": "output", "name": "output", "target": "output", "args": [outs]}]}

    def run(self):
        """{name: value} of all nodes as PyTorch gives them, at the end of the run; raises what
        PyTorch raises."""
        env = {name: tensor.clone() for name, tensor in self.inputs.items()}
        for call in self.calls:
            env[call.name] = call.run(env)
        return env

    def in_place(self):
        return any(call.writes() for call in self.calls)


# ---- tensors -----------------------------------------------------------------------------------


def values(chance, dtype, shape):
    """A contiguous tensor: small numbers, now and then with infinities, NaN and the ends of the
    range."""
    generator = torch.Generator().manual_seed(chance.getrandbits(48))
    kind = chance.random()
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point:
        made = torch.randn(shape, generator=generator, dtype=torch.float64) * chance.choice([1, 1, 3, 30])
        if kind < 0.25:
            special = torch.tensor(
                SPECIAL, dtype=torch.float64)[torch.randint(len(SPECIAL), tuple(shape), generator=generator)]
            made = torch.where(torch.rand(shape, generator=generator) < 0.3, special, made)
        elif kind < 0.4:
            made = made.round()
        return made.to(dtype)
    info = torch.iinfo(dtype)
    made = torch.randint(0 if dtype == torch.uint8 else -9, 10, tuple(shape), generator=generator).to(dtype)
    if kind < 0.15:
        ends = torch.tensor([info.min, info.max, info.max - 1, 0, 1],
                            dtype=dtype)[torch.randint(5, tuple(shape), generator=generator)]
        made = torch.where(torch.rand(shape, generator=generator) < 0.3, ends, made)
    return made


class Growth:
    """A graph as it grows, with PyTorch's value of every node."""

    def __init__(self, chance, cases):
        self.chance, self.cases = chance, cases
        self.inputs, self.calls, self.env, self.pool = {}, [], {}, []

    def input(self, tensor):
        name = f"x{len(self.inputs)}"
        tensor = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)  # strides of size 1 as sent
        self.inputs[name] = tensor
        self.env[name] = tensor.clone()
        self.pool.append(name)
        return Ref(name)

    def add(self, overload, args, kwargs):
        """The call's reference, or raises what PyTorch raises (nothing is added then)."""
        call = Call(f"n{len(self.calls)}", overload, args, kwargs)
        before = {name: self.env[name].clone() for name in self.env
                  if isinstance(self.env[name], torch.Tensor)} if call.writes() else None
        try:
            result = call.run(self.env)
            if any(tensor.numel() > MAX_ELEMENTS or tensor.is_complex() for tensor in tensors_in(result)):
                raise MemoryError("too large")
        except Exception:
            if before is not None and any(not same_bits(self.env[name], tensor)
                                          for name, tensor in before.items()):
                raise SystemError("a refused call has written") from None
            raise
        self.calls.append(call)
        self.env[call.name] = result
        if isinstance(result, torch.Tensor):
            self.pool.append(call.name)
        elif isinstance(result, (list, tuple)):
            defined = DEFINED.get(overload._schema.name, range(4))
            for at, item in enumerate(result[:4]):
                if isinstance(item, torch.Tensor) and at in defined:
                    self.add(None, [Ref(call.name), at], {})
        return Ref(call.name)

    # ---- arguments ----

    def laid_out(self, tensor):
        """The values as an input, seen through views so that its strides are others."""
        kind, rank = self.chance.random(), tensor.dim()
        aten = torch.ops.aten
        if rank >= 2 and kind < 0.15:
            a, b = self.chance.sample(range(rank), 2)
            return self.add(aten.transpose.int, [self.input(tensor.transpose(a, b).contiguous()), a, b], {})
        if rank == 4 and kind < 0.35:
            return self.add(aten.permute.default,
                            [self.input(tensor.permute(0, 2, 3, 1).contiguous()), [0, 3, 1, 2]], {})
        if rank >= 1 and kind < 0.45:
            dim = self.chance.randrange(rank)
            wide = tensor.repeat_interleave(2, dim)
            return self.add(aten.slice.Tensor, [self.input(wide), dim, 0, wide.shape[dim], 2], {})
        if rank >= 1 and kind < 0.5 and tensor.shape[0] > 1:
            return self.add(aten.expand.default, [self.input(tensor[:1].contiguous()), list(tensor.shape)],
                            {})
        if rank >= 1 and kind < 0.55:
            dim = self.chance.randrange(rank)
            return self.add(aten.narrow.default, [self.input(torch.cat([tensor, tensor], dim)), dim,
                                                  tensor.shape[dim], tensor.shape[dim]], {})
        return self.input(tensor.contiguous())

    def earlier(self, tensor):
        """An earlier result: of the same dtype and shape, of the same shape, or any."""
        pool = [(name, self.env[name]) for name in self.pool]
        same = [name for name, value in pool if value.shape == tensor.shape]
        exactly = [name for name in same if self.env[name].dtype == tensor.dtype]
        found = exactly or same
        if found and self.chance.random() < 0.85:
            return Ref(self.chance.choice(found))
        return Ref(self.chance.choice(self.pool)) if self.pool and self.chance.random() < 0.3 else None

    def other_shape(self, shape):
        shape, kind = list(shape), self.chance.random()
        if shape and kind < 0.5:
            shape[self.chance.randrange(len(shape))] = self.chance.choice([0, 1, 1, 2, 3, 17])
        elif kind < 0.7:
            shape = shape[1:]
        elif kind < 0.8:
            shape = [1, *shape]
        return shape if math.prod(shape) <= MAX_ELEMENTS else []

    def tensor(self, name, tensor, dtypes):
        """An argument instead of the golden case's tensor."""
        chance = self.chance
        keeps = name in INDEXES and not tensor.is_floating_point()
        if chance.random() < 0.55:
            found = self.earlier(tensor)
            if found is not None and not (keeps and chance.random() < 0.9):
                return found
        if keeps and chance.random() < 0.9:
            return self.laid_out(tensor)
        dtype = dtypes.get(tensor.dtype, tensor.dtype) if chance.random() < 0.93 else chance.choice(DTYPES)
        if chance.random() < 0.3:
            return self.laid_out(tensor.to(dtype))
        return self.laid_out(values(chance, dtype, self.other_shape(tensor.shape) if chance.random() < 0.1
                                    else tensor.shape))

    def plain(self, value):
        """A number, flag, dtype or text of the golden case, or another of its kind."""
        chance = self.chance
        if chance.random() < 0.85:
            return value
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return (value + chance.choice([-1, 1]) if chance.random() < 0.6
                    else chance.choice([-3, -1, 0, 1, 2, 5]))
        if isinstance(value, float):
            return chance.choice(NUMBERS)
        if isinstance(value, torch.dtype):
            return chance.choice(DTYPES)
        return value

    def argument(self, schema, value, dtypes):
        if schema.name in UNCHECKED:
            return self.laid_out(value) if isinstance(value, torch.Tensor) else value
        if isinstance(value, torch.Tensor):
            return self.tensor(schema.name, value, dtypes)
        if isinstance(value, (list, tuple)):
            made = [self.argument(schema, item, dtypes) for item in value]
            if made and self.chance.random() < 0.03:
                made.pop()
            return made
        if str(schema.type) in ("number",
                                "Optional[number]") and value is not None and self.chance.random() < 0.3:
            return self.chance.choice(NUMBERS)
        return self.plain(value)

    def grow(self):
        """Adds a call; False if PyTorch refuses it. The refusal is kept in `refusal`."""
        chance = self.chance
        self.refusal = None
        overload, args, kwargs = chance.choice(self.cases[chance.choice(list(self.cases))])
        used = dict.fromkeys(leaf.dtype for leaf in tensors_in([args, kwargs]))  # in order, for one seed
        dtypes = {dtype: chance.choice(DTYPES) for dtype in used} if chance.random() < 0.3 else {}
        n_calls, n_inputs, n_pool = len(self.calls), len(self.inputs), len(self.pool)
        schema = overload._schema.arguments
        made = [self.argument(schema[at], value, dtypes) for at, value in enumerate(args)]
        named = {argument.name: argument for argument in schema}
        made_kwargs = {name: self.argument(named[name], value, dtypes) for name, value in kwargs.items()
                       if name in named}
        try:
            self.add(overload, made, made_kwargs)
            return True
        except SystemError:
            raise
        except MemoryError:
            self.refusal = None
        except Exception as error:  # whatever PyTorch raises is a refusal
            self.refusal = (Call(f"n{len(self.calls)}", overload, made, made_kwargs),
                            str(error).split("\n")[0])
        if self.refusal is None or chance.random() < 0.8:
            for call in self.calls[n_calls:]:
                del self.env[call.name]
            for name in list(self.inputs)[n_inputs:]:
                del self.inputs[name], self.env[name]
            del self.calls[n_calls:], self.pool[n_pool:]
            self.refusal = None
        return False


def tensors_in(value):
    found = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None, value)
    return found


def bits(tensor):
    """The elements' bytes, [n, size]."""
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    return flat.view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def same_bits(a, b):
    """Of NaN the bits are free."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_floating_point():
        a, b = a.masked_fill(a.isnan(), torch.nan), b.masked_fill(b.isnan(), torch.nan)
    return torch.equal(bits(a), bits(b))


def asks_for_float8(value):
    """Whether a dtype among the arguments is float8, which hardly any operator takes."""
    found = []
    map_leaves(lambda leaf: found.append("float8" in str(leaf)) if isinstance(leaf, torch.dtype) else None,
               value)
    return any(found)


RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "empty", "exponential", "uniform",
          "cauchy", "geometric", "rrelu")


def golden_cases(supported):
    """{overload name: [(overload, args, kwargs)]} of the committed cases that `supported` names,
    without those that draw random numbers."""
    cases = {}
    for path in sorted((ROOT / "tests" / "golden").glob("*.jsonl")):
        for _, case, tensors in replay_goldens.read_cases(path):
            name = case["op"]
            if (name not in supported or any(word in name for word in RANDOM) or "seed" in case
                or find_overload(name) is None):  # of a library that is not there
                continue
            args = replay_goldens.decode(case["args"], tensors)
            kwargs = {key: replay_goldens.decode(value, tensors)
                      for key, value in case.get("kwargs", {}).items()}
            if (all(tensor.dtype in DTYPES for tensor in tensors_in([args, kwargs]))
                and not asks_for_float8([args, kwargs])):
                cases.setdefault(name, []).append((find_overload(name), args, kwargs))
    return cases


def random_case(seed, cases):
    """The graph of this seed."""
    chance = random.Random(seed)
    growth = Growth(chance, cases)
    n_calls, refused = chance.choice([1, 1, 1, 2, 3, 4, 5, 6, 8, 12]), None
    for _ in range(4 * n_calls):
        if len(growth.calls) >= n_calls:
            break
        if not growth.grow() and growth.refusal is not None:
            call, refused = growth.refusal
            growth.calls.append(call)
            break
    if not growth.calls:
        return None
    tensors = [call.name for call in growth.calls if isinstance(growth.env.get(call.name), torch.Tensor)]
    results = ([growth.calls[-1].name] if refused
               else sorted({*tensors[-1:], *(name for name in tensors if chance.random() < 0.2)}))
    used = {name for call in growth.calls for name in refs_in([call.args, call.kwargs])}
    inputs = {name: tensor for name, tensor in growth.inputs.items() if name in used}
    return Case(inputs, growth.calls, results, refused) if results else None


def dump(case, mode):
    """The case as a body for POST /v1/run."""
    inputs = {name: encode_tensor(tensor) for name, tensor in case.inputs.items()}
    return json.dumps({"graph": case.document(), "inputs": inputs, "mode": mode})


def encode_tensor(tensor):
    raw = bits(tensor).numpy().tobytes()
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
            "b64": base64.b64encode(raw).decode()}
