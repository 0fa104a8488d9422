# SPDX-License-Identifier: Apache-2.0
"""Makes the weights and inputs of a network from a seed: the same bytes on every machine, standard
library only.

    python3 tools/generate/seeded_weights.py tests/models/resnet18.fx.json --weights w.safetensors
    --input x.npy

The graph's "modules" say which tensors there are (Linear, Conv2d, BatchNorm2d); its first
placeholder's "meta" gives the input's shape, with --batch for the named dimensions.

The numbers: tensor `name` takes the bytes of SHAKE-128("fxserve/" + seed + "/" + name) as
little-endian 16-bit integers u; an element is low + (high - low) * (u + 0.5) / 65536, computed in
double and rounded to float32. The ranges keep activations near one:

    weight of Linear, Conv2d    +- sqrt(6 / fan_in)
    bias of Linear, Conv2d      +- 0.1
    BatchNorm2d                 weight 0.5 to 1.0, bias +- 0.1, running_mean +- 0.2, running_var 0.5
                                to 1.5
    input k                     +- 1, under the name "input/" + k
"""

import argparse
import array
import hashlib
import json
import math
import pathlib
import struct
import sys


def uniform(name, count, low, high, seed=0):
    """`count` float32 numbers in [low, high), as bytes."""
    words = array.array("H", hashlib.shake_128(f"fxserve/{seed}/{name}".encode()).digest(2 * count))
    if sys.byteorder == "big":
        words.byteswap()
    table = [low + (high - low) * (u + 0.5) / 65536 for u in range(65536)]
    numbers = array.array("f", map(table.__getitem__, words))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _pair(value):
    return value if isinstance(value, list) else [value, value]


def _weight_and_bias(path, shape, config):
    bound = math.sqrt(6.0 / math.prod(shape[1:]))
    yield f"{path}.weight", shape, -bound, bound
    if config.get("bias", True):
        yield f"{path}.bias", shape[:1], -0.1, 0.1


def module_tensors(path, kind, config):
    """Yields (name, shape, low, high) for the state of one module."""
    if kind == "torch.nn.Linear":
        yield from _weight_and_bias(path, [config["out_features"], config["in_features"]], config)
    elif kind == "torch.nn.Conv2d":
        channels = config["in_channels"] // config.get("groups", 1)
        yield from _weight_and_bias(path, [config["out_channels"], channels, *_pair(config["kernel_size"])],
                                    config)
    elif kind == "torch.nn.BatchNorm2d":
        shape = [config["num_features"]]
        yield f"{path}.weight", shape, 0.5, 1.0
        yield f"{path}.bias", shape, -0.1, 0.1
        yield f"{path}.running_mean", shape, -0.2, 0.2
        yield f"{path}.running_var", shape, 0.5, 1.5


def make_state(modules, seed=0):
    """{name: (dtype, shape, bytes)} for the "modules" of an FX JSON document."""
    state = {}
    for path, module in modules.items():
        for name, shape, low, high in module_tensors(path, module["type"], module.get("config", {})):
            state[name] = "F32", shape, uniform(name, math.prod(shape), low, high, seed)
        if module["type"] == "torch.nn.BatchNorm2d":
            state[f"{path}.num_batches_tracked"] = "I64", [], bytes(8)
    return state


def safetensors_bytes(state):
    """The file for {name: (dtype, shape, bytes)}: names sorted, data in that order."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in sorted(state.items()):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, (_, _, data) in sorted(state.items()))


def npy_bytes(shape, data):
    """A version 1 .npy file of little-endian float32."""
    dims = "".join(f"{size}, " for size in shape)
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def make_input(shape, number, seed=0):
    return uniform(f"input/{number}", math.prod(shape), -1.0, 1.0, seed)


def input_shape(document, batch):
    placeholder = next(node for node in document["nodes"] if node["op"] == "placeholder")
    return [size if isinstance(size, int) else batch for size in placeholder["meta"]["shape"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path, help="an FX JSON file")
    parser.add_argument("--weights", type=pathlib.Path, help="safetensors file to write")
    parser.add_argument("--sha256", help="what the weights file's SHA-256 must be, or a file that says it")
    parser.add_argument("--input", type=pathlib.Path,
                        help=".npy file to write, or .json: the body of a run request")
    parser.add_argument("--number", type=int, default=0, help="which input (default: 0)")
    parser.add_argument("--batch", type=int, default=1, help="the size of named dimensions (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    document = json.loads(options.graph.read_text(encoding="utf-8"))
    if options.weights:
        blob = safetensors_bytes(make_state(document["modules"], options.seed))
        digest = hashlib.sha256(blob).hexdigest()
        wanted = options.sha256
        if wanted and pathlib.Path(wanted).is_file():
            wanted = pathlib.Path(wanted).read_text().split()[0]
        if wanted and wanted != digest:
            raise SystemExit(f"the weights have SHA-256 {digest}, expected {wanted}")
        options.weights.write_bytes(blob)
        print(f"{digest}  {options.weights.name}")
    if options.input:
        shape = input_shape(document, options.batch)
        data = make_input(shape, options.number, options.seed)
        if options.input.suffix == ".json":
            values = array.array("f", data).tolist()
            tensor = {"dtype": "float32", "shape": shape, "data": values}
            name = next(node["target"] for node in document["nodes"] if node["op"] == "placeholder")
            options.input.write_text(json.dumps({"inputs": {name: tensor}}) + "\n")
        else:
            options.input.write_bytes(npy_bytes(shape, data))


if __name__ == "__main__":
    main()
