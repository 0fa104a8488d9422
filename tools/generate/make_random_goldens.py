# SPDX-License-Identifier: Apache-2.0
"""Golden cases of random operators: tests/golden/random.jsonl and .safetensors, in the form of
tests/golden/README.md, with the "seed" of each case. Results must have PyTorch's bits; of large ones
only the hash is kept.

    python tools/generate/make_random_goldens.py           all of them
    python tools/generate/make_random_goldens.py --new     only those of operators that have none

On a processor made by Intel PyTorch draws bernoulli and exponential numbers with MKL's generators,
which fxserve does not: the program makes only new cases of rand, randn, randint and randperm there.
"""

import argparse
import hashlib
import itertools
import json
import math
import pathlib
import sys

from needed import need

need("torch==2.13.0", "safetensors")

import torch
from safetensors.torch import load_file

import make_goldens
from count_goldens import TABLE, counted, table
from expected import write_safetensors
from golden_hand import bf16, f16, f32, f64, i8, i32, i64, ramp, u8
from make_goldens import TOLERANCE, Candidate, encode_case, find_overload

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
SEEDS, SIZES = (0, 1, 42), (1, 15, 16, 17, 1000, 100003)
FLOATS, INTS = (f32, f64, f16, bf16), (i64, i32, torch.int16, i8, u8)
COMPLEX, UNSIGNED = (torch.complex64, torch.complex128), (torch.uint16, torch.uint32, torch.uint64)
HASHED = 16  # elements from which on only the hash is kept
seeds = itertools.cycle(SEEDS)
make_goldens.MAX_ELEMENTS = 3 * max(SIZES)
make_goldens.TAKEN = {*make_goldens.TAKEN, *COMPLEX}


class Tile:
    """A tensor that repeats a few values, which alone are stored."""

    def __init__(self, values, *shape):
        self.values, self.shape = values, list(shape)

    def tensor(self):
        n = math.prod(self.shape)
        return self.values.repeat(-(-n // len(self.values)))[:n].reshape(self.shape)


class Drawn(Candidate):
    """A call after torch.manual_seed."""

    def __init__(self, name, args, kwargs=None, seed=None):
        self.seed = next(seeds) if seed is None else seed
        self.tiles = {at: arg for at, arg in enumerate(args) if isinstance(arg, Tile)}
        args = [arg.tensor() if isinstance(arg, Tile) else arg for arg in args]
        torch.manual_seed(self.seed)
        super().__init__(find_overload(name), args, kwargs or {}, "hand")

    def _refuse_random(self):
        pass


# ---- every seed, size and dtype ----------------------------------------------------------------
# Overload, arguments behind the size or the tensor, dtypes.


FROM_SIZES = (
    ("rand.default", (), FLOATS + COMPLEX),
    ("randn.default", (), FLOATS + COMPLEX),
    ("normal.float_float", (0.5, 2.5), FLOATS + COMPLEX),
    ("randint.default", (97,), FLOATS + INTS + UNSIGNED),
    ("randint.default", (2,), (torch.bool,)),
    ("randint.low", (3, 90), FLOATS + INTS + UNSIGNED),
)
FROM_ZEROS = (
    ("rand_like.default", (), FLOATS + COMPLEX),
    ("randn_like.default", (), FLOATS + COMPLEX),
    ("randint_like.default", (30,), FLOATS + INTS + UNSIGNED),
    ("randint_like.low_dtype", (4, 30), FLOATS + INTS + UNSIGNED),
    ("uniform_.default", (-3.5, 7.25), FLOATS + COMPLEX),
    ("normal_.default", (1.3, 0.7), FLOATS + COMPLEX),
    ("log_normal_.default", (0.1, 0.25), FLOATS),
    ("cauchy_.default", (0.3, 1.7), FLOATS),
    ("exponential_.default", (2.5,), FLOATS),
    ("geometric_.default", (0.3,), FLOATS + INTS),
    ("random_.default", (), FLOATS + INTS + (torch.bool,)),
    ("random_.to", (17,), FLOATS + INTS + UNSIGNED),
    ("random_.to", (2,), (torch.bool,)),
    ("random_.from", (3, 100), FLOATS + INTS + UNSIGNED),
    ("bernoulli_.float", (0.3,), FLOATS + INTS + (torch.bool,)),
    ("bernoulli.p", (0.3,), FLOATS + INTS + (torch.bool,)),
)
FROM_SHARES = (
    ("bernoulli.default", (), FLOATS),
    ("multinomial.default", (1,), FLOATS),
    ("multinomial.default", (40, True), FLOATS),
    ("normal.Tensor_float", (0.7,), FLOATS + COMPLEX),
    ("poisson.default", (), FLOATS),
    ("dropout.default", (0.3, True), FLOATS),
    ("dropout_.default", (0.3, True), FLOATS),
    ("alpha_dropout.default", (0.3, True), FLOATS),
    ("native_dropout.default", (0.3, True), FLOATS + COMPLEX),
    ("rrelu.default", (0.1, 0.9, True), (f32, f64, bf16)),
)


LARGEST = {f16: 2048, bf16: 256, torch.int16: 32767, i8: 127, u8: 255}  # of randperm


def shares(dtype, *shape):
    return Tile(torch.tensor([0.25, 1.0, 0.0, 0.9, 0.5, 0.3125, 0.1]).to(dtype), *shape)


def sweep(seed, size):
    for name, given, dtypes in FROM_SIZES:
        for dtype in dtypes:
            yield Drawn(f"aten.{name}", [*given, [size]], {"dtype": dtype}, seed)
    for name, given, dtypes in FROM_ZEROS:
        for dtype in dtypes:
            yield Drawn(f"aten.{name}", [Tile(torch.zeros(1, dtype=dtype), size), *given], None, seed)
    for name, given, dtypes in FROM_SHARES:
        for dtype in dtypes:
            yield Drawn(f"aten.{name}", [shares(dtype, size), *given], None, seed)
    for dtype in FLOATS + INTS:
        if size - 1 <= LARGEST.get(dtype, size):
            yield Drawn("aten.randperm.default", [size], {"dtype": dtype}, seed)
    for dtype in FLOATS:
        x = shares(dtype, size)
        yield Drawn("aten.normal.Tensor_Tensor", [x, x], None, seed)
        yield Drawn("aten.normal.float_Tensor", [0.3, x], None, seed)
        for name in ("feature_dropout", "feature_alpha_dropout"):
            yield Drawn(f"aten.{name}.default", [shares(dtype, size, 3), 0.4, True], None, seed)
    for dtype in FLOATS + INTS + (torch.bool,):
        zeros = Tile(torch.zeros(1, dtype=dtype), size)
        yield Drawn("aten.bernoulli_.Tensor", [zeros, shares(f32, size)], None, seed)
    for dtype in (f32, f64):
        x = shares(dtype, size)
        yield Drawn("aten.multinomial.default", [x, max(1, min(size // 2, 40))], None, seed)
        yield Drawn("aten.binomial.default", [Tile(torch.tensor([9.0, 0.0, 400.0], dtype=dtype), size), x],
                    None, seed)


def sweeps():
    for seed, size in itertools.product(SEEDS, SIZES):
        yield from sweep(seed, size)


# ---- other forms -------------------------------------------------------------------------------


def factories():
    yield Drawn("aten.rand.default", [[3, 0, 2]])
    yield Drawn("aten.rand.default", [[2, 3, 4]], {"dtype": torch.complex64})
    yield Drawn("aten.randn.default", [[2, 3, 4]], {"dtype": torch.complex64})
    yield Drawn("aten.randn.default", [[]])
    for high in (1 << 28, 1 << 31, (1 << 63) - 1):
        yield Drawn("aten.randint.default", [high, [9]])
        yield Drawn("aten.randint.low", [-7, high, [9]])
    for dtype in (i32, i8, u8, f16, f32):
        yield Drawn("aten.randperm.default", [50], {"dtype": dtype})


def strided(dtype):
    yield ramp(4, 6, dtype=dtype).t()
    yield ramp(4, 6, dtype=dtype)[1:3, ::2]
    yield ramp(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)


def likes():
    for dtype in FLOATS:
        for x in (ramp(3, 5, dtype=dtype), ramp(17, dtype=dtype), ramp(1000, dtype=dtype), *strided(dtype)):
            yield Drawn("aten.rand_like.default", [x])
            yield Drawn("aten.randn_like.default", [x])
            yield Drawn("aten.randint_like.default", [x, 30])
            yield Drawn("aten.randint_like.low_dtype", [x, 4, 30])


FILLS = (
    ("uniform_.default", ([], [-3.5, 7.25]), FLOATS),
    ("uniform.default", ([], [0.1, 0.7]), FLOATS),
    ("normal_.default", ([], [1.3, 0.7]), FLOATS),
    ("normal_functional.default", ([], [1.3, 0.7]), FLOATS),
    ("log_normal_.default", ([], [0.1, 0.25]), FLOATS),
    ("log_normal.default", ([0.1, 0.25],), FLOATS),
    ("exponential_.default", ([], [2.5]), FLOATS),
    ("exponential.default", ([2.5],), FLOATS),
    ("cauchy_.default", ([], [0.3, 1.7]), FLOATS),
    ("cauchy.default", ([0.3, 1.7],), FLOATS),
    ("geometric_.default", ([0.3],), FLOATS + INTS),
    ("geometric.default", ([0.3],), FLOATS + INTS),
    ("random_.default", ([],), FLOATS + INTS + (torch.bool,)),
    ("random.default", ([],), FLOATS + INTS),
    ("random_.to", ([17],), FLOATS + INTS),
    ("random.to", ([17],), FLOATS + INTS),
    ("random_.from", ([3, 100], [5, None]), FLOATS + INTS),
    ("random.from", ([3, 100],), FLOATS + INTS),
    ("bernoulli_.float", ([], [0.3]), FLOATS + INTS + (torch.bool,)),
    ("bernoulli.p", ([0.3],), FLOATS + INTS),
)


def fills():
    for name, numbers, dtypes in FILLS:
        for dtype in dtypes:
            sizes = SIZES[:5] if dtype == f32 else (3, 17)
            tensors = [torch.zeros(size, dtype=dtype) for size in sizes]
            tensors += strided(dtype) if dtype in (f32, f64, i64) else ()
            for tensor, given in itertools.product(tensors, numbers):
                yield Drawn(f"aten.{name}", [tensor, *given])
    for tensor in (torch.zeros(20, dtype=i64), torch.zeros(20), torch.zeros(20, dtype=f64)):
        yield Drawn("aten.random_.from", [tensor, -(1 << 63), None])
        yield Drawn("aten.random_.from", [tensor, -100, 1 << 40])


def probabilities():
    for dtype in FLOATS:
        p = torch.linspace(0, 1, 30).to(dtype)
        for x in (p, p.reshape(5, 6).t(), p[::3], p[:0], p[7]):
            yield Drawn("aten.bernoulli.default", [x])
            yield Drawn("aten.bernoulli.Tensor", [x, torch.tensor(0.4)])
        for size in SIZES[:4]:
            yield Drawn("aten.bernoulli_.Tensor", [torch.zeros(size, dtype=i32), p[:size].clone()])
    yield Drawn("aten.bernoulli_.Tensor", [torch.zeros(5, 7).t(), torch.linspace(0, 1, 7)[:, None]])


def samples():
    for dtype in (f32, f64):
        weights = (torch.arange(17) * 7 % 11).to(dtype)
        rows = torch.stack([weights + 1, weights.flip(0) + 0.5, (weights - 3).abs() + 0.25])
        for w in (weights, rows, rows.t().contiguous().t(), rows[:0], weights[3:4]):
            n = w.shape[-1]
            for count, again in ((1, False), (min(n, 5), False), (40, True)):
                yield Drawn("aten.multinomial.default", [w, count, again])
    for dtype in FLOATS:
        yield Drawn("aten.multinomial.default", [torch.arange(1, 9).to(dtype), 30, True])
    for dtype, size in itertools.product(FLOATS, (1, 15, 17)):
        mean, deviation = torch.linspace(-3, 3, size).to(dtype), torch.linspace(0, 2, size).to(dtype)
        yield Drawn("aten.normal.Tensor_float", [mean, 0.7])
        yield Drawn("aten.normal.float_Tensor", [0.3, deviation])
        yield Drawn("aten.normal.Tensor_Tensor", [mean, deviation])
    yield Drawn("aten.normal.Tensor_Tensor", [torch.zeros(4, 1), torch.ones(5)])


def events():
    """Few and many events: each algorithm has its own branch for them."""
    rates = torch.tensor([0.0, 0.3, 1.0, 4.5, 9.999, 10.0, 12.5, 40.0, 700.25, 3e4])
    for dtype in FLOATS:
        for x in (rates, rates.repeat(9), rates[:0], rates.reshape(2, 5).t(), rates.expand(3, 10), rates[4]):
            yield Drawn("aten.poisson.default", [x.to(dtype)])
    counts = torch.tensor([0.0, 1.0, 7.0, 30.0, 200.0, 5000.0, 1e6, 12.5, -3.0, 90.0])
    shares = torch.tensor([0.5, 0.25, 0.03, 0.9, 0.4999, 0.999, 1.0, 0.0, -0.5, math.nan])
    for dtype, shift in itertools.product((f32, f64), range(10)):
        c, p = counts.to(dtype), shares.roll(shift).to(dtype)
        yield Drawn("aten.binomial.default", [c.repeat(3), p.repeat(3)])
    yield Drawn("aten.binomial.default", [counts.reshape(2, 5).t(), shares[:2]])
    yield Drawn("aten.binomial.default", [counts[:0], shares[:0]])
    yield Drawn("aten.binomial.default", [counts[3:6, None], shares[:4]])


def layers():
    for dtype, size in itertools.product(FLOATS, (1, 15, 16, 40)):
        x = torch.linspace(-2, 3, size).to(dtype)
        for p in (0.1, 0.5):
            yield Drawn("aten.dropout.default", [x, p, True])
            yield Drawn("aten.dropout_.default", [x, p, True])
            yield Drawn("aten.alpha_dropout.default", [x, p, True])
            yield Drawn("aten.native_dropout.default", [x, p, True])
    for shape in ((2, 3, 4), (4, 5), (2, 2, 3, 3)):
        x = torch.linspace(-2, 3, torch.Size(shape).numel()).reshape(shape)
        for y in (x, x.transpose(0, 1)):
            yield Drawn("aten.feature_dropout.default", [y, 0.5, True])
            yield Drawn("aten.feature_alpha_dropout.default", [y, 0.5, True])
            yield Drawn("aten.native_dropout.default", [y, 0.5, True])
    for dtype, size in itertools.product((f32, f64, bf16), (1, 15, 40)):
        x = torch.linspace(-2, 1, size).to(dtype)
        for training in (True, False):
            yield Drawn("aten.rrelu.default", [x, 0.1, 0.9, training])
            yield Drawn("aten.rrelu_.default", [x, 0.1, 0.9, training])
            for form in ("", "_functional"):
                noise = torch.zeros_like(x)
                yield Drawn(f"aten.rrelu_with_noise{form}.default", [x, noise, 0.1, 0.3, training])


def attention():
    """Products of floats: compared with a tolerance, not by their bits."""
    for dtype, shape in itertools.product((f32, f64, f16, bf16), ((2, 2, 3, 8), (4, 3, 8), (3, 8))):
        q, k, v = (torch.linspace(-2, low, torch.Size(shape).numel()).sin().reshape(shape).to(dtype)
                   for low in (3, 40, 17))
        mask = torch.linspace(-1, 1, 9).reshape(3, 3)
        for given in ([None, 0.3, True], [mask > -0.5, 0.5], [mask.to(dtype), 0.1], [None, 1.0]):
            yield Drawn("aten.scaled_dot_product_attention.default", [q, k, v, *given])
        yield Drawn("aten.scaled_dot_product_attention.default", [q, k, v, None, 0.5], {"scale": -0.3})
        if len(shape) == 4:
            yield Drawn("aten.scaled_dot_product_attention.default", [q, k[:, :1], v[:, :1], None, 0.5],
                        {"enable_gqa": True})


def given_generators():
    """The overloads that take a generator. In an exported graph it is None."""
    for size, dtype in itertools.product((1, 15, 17, 1000), FLOATS):
        yield Drawn("aten.rand.generator", [[size]], {"generator": None, "dtype": dtype})
        yield Drawn("aten.randn.generator", [[size]], {"generator": None, "dtype": dtype})
    for size, dtype in itertools.product((1, 17), FLOATS + INTS):
        yield Drawn("aten.randint.generator", [97, [size]], {"generator": None, "dtype": dtype})
        yield Drawn("aten.randint.low_generator", [-7, 97, [size]] if dtype != u8 else [3, 97, [size]],
                    {"generator": None, "dtype": dtype})
        yield Drawn("aten.randperm.generator", [size], {"generator": None, "dtype": dtype})
    for name in ("rand", "randn"):
        yield Drawn(f"aten.{name}.generator", [[2, 3, 4]], {"generator": None})
        yield Drawn(f"aten.{name}.generator", [[3, 0, 2]], {"generator": None})
        yield Drawn(f"aten.{name}.generator", [[9]], {"generator": None, "dtype": torch.complex64})
    yield Drawn("aten.randint.generator", [1 << 40, [3, 5]], {"generator": None})
    yield Drawn("aten.randint.low_generator", [-7, 1 << 40, [3, 5]], {"generator": None})
    yield Drawn("aten.randperm.generator", [0], {"generator": None})
    for dtype in FLOATS:
        for x in (ramp(3, 5, dtype=dtype), ramp(17, dtype=dtype), *strided(dtype)):
            yield Drawn("aten.rand_like.generator", [x], {"generator": None})
            yield Drawn("aten.randn_like.generator", [x], {"generator": None})
            yield Drawn("aten.randint_like.generator", [x, 30], {"generator": None})
            yield Drawn("aten.randint_like.low_generator_dtype", [x, 4, 30], {"generator": None})


def with_tiles(case, drawn, tensors, kept):
    """Arguments that repeat a few values have these, once for all cases."""
    for at, tile in drawn.tiles.items():
        entry = case["args"][at]
        key = entry["$tensor"]
        del tensors[key]
        values = tile.values.dtype, tuple(tile.values.tolist())
        if values not in kept:
            kept[values] = key
            tensors[key] = stored_form(tile.values)
        entry |= {"$tensor": kept[values], "tiled": tile.shape}
    return case


def stored_form(values):
    return torch.view_as_real(values) if values.dtype == torch.complex128 else values


def with_hashes(case, tensors):
    """Large results are replaced by their hashes."""
    def shorten(entry):
        if isinstance(entry, list):
            return [shorten(item) for item in entry]
        if "$tensor" not in entry or tensors[entry["$tensor"]].numel() < HASHED:
            return entry
        raw = tensors.pop(entry["$tensor"]).contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return {"$sha256": hashlib.sha256(raw).hexdigest()}

    case["outs"] = shorten(case["outs"])
    if "mutated" in case:
        case["mutated"] = {name: shorten(entry) for name, entry in case["mutated"].items()}
    return case


def is_drawn_with_mkl():
    torch.manual_seed(0)
    plain = (torch.rand(100, dtype=f64) < 0.5).float()
    torch.manual_seed(0)
    return not torch.equal(torch.empty(100).bernoulli_(0.5), plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", action="store_true", help="keep the files, add operators that have no case")
    options = parser.parse_args()
    lines, tensors, kept = [], {}, {}
    if options.new:
        lines = (FOLDER / "random.jsonl").read_text(encoding="utf-8").splitlines()
        tensors = load_file(FOLDER / "random.safetensors")
    done = {json.loads(line)["op"] for line in lines}
    with_mkl = is_drawn_with_mkl()
    drawn_cases = itertools.chain(sweeps(), factories(), likes(), fills(), probabilities(), samples(),
                                  events(), layers(), attention(), given_generators())
    for number, drawn in enumerate(drawn_cases):
        name = str(drawn.overload)
        if name in done:
            continue
        if with_mkl and not name.startswith("aten.rand"):
            sys.exit("PyTorch draws with MKL's generators on this processor")
        case = with_tiles(encode_case(drawn, tensors, number), drawn, tensors, kept)
        rtol, atol = TOLERANCE[drawn.args[0].dtype] if "attention" in case["op"] else (0.0, 0.0)
        if atol == 0:
            case = with_hashes(case, tensors)
        case |= {"opinfo": "hand", "seed": drawn.seed, "rtol": rtol, "atol": atol}
        lines.append(json.dumps(case, separators=(",", ":"), allow_nan=False))
    (FOLDER / "random.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_safetensors(FOLDER / "random.safetensors", tensors, {"format": "pt"})
    TABLE.write_text(table(counted()), encoding="utf-8")
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
