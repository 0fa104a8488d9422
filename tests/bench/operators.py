# SPDX-License-Identifier: Apache-2.0
"""Single operators on a million elements, one thread: processor time of fxserve divided by that of eager
PyTorch. Results are compared first. Nothing fails because of time; a wrong result does.

usage: operators.py PROGRAM [WORD ...] [--rounds 5] [--eager] [--dtypes float32,int64,...]

PROGRAM is bench_models (ninja tests/bench/bench_models); needs torch 2.13. WORDs choose the rows that
contain one of them. With --eager, fxserve runs without a program. Most rows are of float32; each of the
other dtypes has some: --dtypes chooses among them.
"""
import argparse
import io
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402,F401
from torch import nn  # noqa: E402,F401

LIMIT, TURN_SECONDS = 3, 0.05
DIMS = """
x.sum(D) | x.mean(D) | x.prod(D) | x.amax(D) | x.max(D)[0] | x.argmin(D) | x.var(D) | x.norm(1, D)
x.norm(2, D) | x.norm(3, D) | torch.linalg.vector_norm(x, math.inf, D) | x.logsumexp(D) | x.nansum(D)
x.softmax(D) | x.log_softmax(D) | x.cumsum(D) | x.cumprod(D) | x.cummax(D)[0] | x.logcumsumexp(D)
(x > 0.9).any(D) | (x > 0.5).sum(D) | x.int().sum(D) | x.sort(D)[0] | x.argsort(D) | x.topk(5, D)[0]
x.median(D)[0] | x.kthvalue(5, D)[0] | (x * 20).int().mode(D)[0] | x.flip(D) | x.roll(3, D) | x.diff(dim=D)
torch.cat([x, x], D) | torch.stack([x, x], D) | x.index_select(D, torch.arange(999, -1, -1))
x.gather(D, (x.abs() * 999).long()) | torch.zeros_like(x).scatter_add(D, (x.abs() * 999).long(), x)
x.index_add(D, torch.arange(999, -1, -1), x) | x.repeat_interleave(2, D) | x.renorm(2, D, 1.0)
F.normalize(x, dim=D) | F.glu(x, D) | F.cosine_similarity(x, x + 1, dim=D)
"""
TABLE = """
x + 1 | 1 - x | x + x | x + x.t() | x * x[0] | x * x[:, :1] | x[0].expand(1000, 1000) + 1 | x ** 2
x.abs() ** 2.5 | x.abs() ** x | x.exp() | x.abs().log() | x.sin() | x.tan() | x.tanh() | x.asin() | x.cosh()
x.erf() | x.erfinv() | x.abs().lgamma() | x.digamma() | x.sigmoid() | x.logit(1e-3) | x.expm1() | x.log1p()
x.abs().sqrt() | x.rsqrt() | x.round() | x.frac() | x.sign() | torch.atan2(x, x + 1) | torch.fmod(x, 0.3)
torch.remainder(x, 0.3) | x // 0.3 | torch.where(x > 0.5, x, -x) | x.clamp(0.2, 0.8)
torch.lerp(x, x + 1, 0.3) | torch.addcmul(x, x, x) | torch.hypot(x, x + 1) | torch.logaddexp(x, x + 1)
x.i0() | x.sinc() | x.copysign(-x) | x.nan_to_num() | torch.heaviside(x - 0.5, x) | (x * 100).int()
x.double().exp() | x.double().tanh() | x.double().erfinv()
(x * 100).int() ^ 7 | (x * 1000).int() >> 2 | (x * 100).long() * 3 | x.double() | x.half() | x.bfloat16()
x.half() + 1 | x.half().softmax(-1) | x > 0.5 | (x > 0.3) & (x < 0.6) | F.relu(x) | F.gelu(x)
F.gelu(x, approximate="tanh") | F.silu(x) | F.mish(x) | F.elu(x) | F.softplus(x) | F.logsigmoid(x)
F.hardswish(x) | x.t().contiguous() | x.tril() | x[::2, ::2] + 1 | x.as_strided((999, 999), (1000, 1)) + 1
x.masked_fill(x > 0.5, 0.0) | x[x > 0.5] | (x > 0.5).nonzero() | x[torch.arange(999, -1, -1)]
x[:, torch.arange(999, -1, -1)] | F.embedding((x[:, :8].abs() * 999).long(), x) | x.sum() | x.mean()
x.max() | x.var() | x.norm() | x.argmax() | x.prod() | x.flatten().sort()[0] | (x * 100).int().unique()
(x.abs() * 100).long().flatten().bincount(minlength=100) | x.histc(100, -1, 1)
torch.bucketize(x, torch.arange(-1, 1, 0.04)) | torch.cdist(x[:, :64], x[:, :64]) | F.pdist(x[:, :32])
x @ x | x @ x[0] | torch.outer(x[0], x[1]) | torch.einsum("ij,kj->ik", x, x) | x.trace() | x.rot90()
torch.kron(x[:30, :30], x[:33, :33]) | (x[:200, :200] + 20 * torch.eye(200)).inverse()
torch.linalg.cholesky(x[:200] @ x[:200].T + torch.eye(200)) | torch.linalg.qr(x[:200, :200])[1].abs()
torch.linalg.svdvals(x[:100, :100]) | torch.linalg.eigvalsh(x[:100, :100]) | torch.fft.rfft(x).abs()
torch.fft.fft2(x).abs() | torch.fft.rfft(x[:, :512]).abs() | torch.fft.irfft(torch.fft.rfft(x))
torch.stft(x.view(10, -1), 400, 160, window=torch.hann_window(400), return_complex=True).abs()
F.mse_loss(x, x + 1) | F.smooth_l1_loss(x, x * 2) | F.cross_entropy(x, torch.arange(1000)) | x.clone()
torch.zeros_like(x) | x.repeat(2, 1) | F.pad(x, (1, 1, 1, 1)) | F.pad(x[None], (3, 3, 3, 3), mode="reflect")
F.pad(x[None], (3, 3, 3, 3), mode="replicate") | F.pad(x[None], (3, 3, 3, 3), mode="circular")
x.unfold(0, 3, 1).sum(-1) | x.take((x.abs() * 999999).long()) | x.index_put((torch.arange(1000),), x + 1)
F.layer_norm(x, (1000,)) | F.rms_norm(x, (1000,))
F.one_hot((x[:10].abs() * 9).long(), 10)
"""
IMAGES = """
F.batch_norm(x, torch.zeros(64), torch.ones(64)) | F.batch_norm(x, None, None, training=True)
F.group_norm(x, 8) | F.instance_norm(x) | F.max_pool2d(x, 2) | F.max_pool2d(x, 3, 2, 1)
F.avg_pool2d(x, 3, 1, 1) | F.adaptive_avg_pool2d(x, 7) | F.adaptive_avg_pool2d(x, 1)
F.adaptive_max_pool2d(x, 7) | F.lp_pool2d(x, 2, 2) | F.interpolate(x, scale_factor=2)
F.interpolate(x, scale_factor=2, mode="bilinear") | F.interpolate(x, scale_factor=2, mode="bicubic")
F.interpolate(x, size=(13, 13), mode="area")
F.interpolate(x, size=(20, 20), mode="bilinear", antialias=True) | F.pixel_shuffle(x, 2)
F.pixel_unshuffle(x, 2) | F.unfold(x, 3) | F.fold(F.unfold(x, 3), (32, 32), 3)
F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1)) | x.softmax(1) | x.mean((2, 3)) | x.mean(1) | x.amax(1)
x.permute(0, 2, 3, 1).contiguous() | x.contiguous(memory_format=torch.channels_last)
F.local_response_norm(x, 5) | F.prelu(x, torch.full((64,), 0.2)) | x + x[0, :, 0, 0].view(1, -1, 1, 1)
x * x.mean((2, 3), keepdim=True) | F.channel_shuffle(x, 2) | x.roll((3, 3), (2, 3))
x.view(16, 64, 4, 8, 4, 8).permute(0, 2, 4, 3, 5, 1).reshape(-1, 64, 64) | torch.cat(x.chunk(2, 1)[::-1], 1)
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
"""
# Of other dtypes; `k` is 3 in it.
ANY_DIM = """
x.sum(D) | x.prod(D) | x.amax(D) | x.max(D)[0] | x.argmin(D) | x.any(D) | x.all(D) | x.cumsum(D)
x.cummax(D)[0] | x.sort(D)[0] | x.argsort(dim=D, stable=True) | x.flip(D) | x.roll(3, D)
torch.cat([x, x], D) | torch.stack([x, x], D) | x.index_select(D, torch.arange(999, -1, -1))
x.gather(D, torch.arange(1000).expand(1000, 1000).contiguous())
x.scatter(D, torch.arange(1000).expand(1000, 1000).contiguous(), x)
x.index_add(D, torch.arange(999, -1, -1), x) | x.repeat_interleave(2, D) | x.count_nonzero(D)
"""
ANY = """
x == k | x != x.t() | torch.where(x == k, x, x.t()) | x.sum() | x.max() | x.argmax() | x.any()
x.count_nonzero() | x.masked_fill(x == k, k) | x[x == k] | x.t().contiguous() | x.tril() | x.clone()
x.repeat(2, 1) | F.pad(x, (1, 1, 1, 1)) | x.take(torch.arange(999999, -1, -1))
x.index_put((torch.arange(1000),), x + k) | x[torch.arange(999, -1, -1)]
x[:, torch.arange(999, -1, -1)] | x.float() | x.double() | x.long() | x.int() | x.half() | x.bool()
x.to(torch.uint8) | torch.full_like(x, k) | x[::2, ::2].contiguous() | x + x | x * x
torch.maximum(x, x.t()) | x.logical_not() | torch.isin(x, x[0, :10])
x.expand(2, 1000, 1000).sum(0) | x.clamp(k, 2 * k) | x.unfold(0, 3, 1).sum(-1)
"""
NUMBERS = """
x + k | x - x.t() | x * k | x // k | x % k | x / k | -x | x.abs() | x.sign() | x ** 2
torch.fmod(x, k) | x > x.t() | x.mean(dtype=torch.float32) | x.mean(1, dtype=torch.float32)
x.diff() | x @ x[:, :64] | x.sqrt() | x.topk(5)[0] | x.median(1)[0]
torch.bucketize(x, torch.arange(10))
"""
WHOLE = """
x & k | x.bitwise_or(k) | x ^ x.t() | ~x | x << 1 | x >> 1 | x.flatten().bincount(minlength=10)
torch.gcd(x, x.t())
"""
FLOATS = """
x.exp() | x.sigmoid() | x.tanh() | F.gelu(x) | F.silu(x) | F.relu(x) | x.rsqrt() | x.log1p()
x.softmax(-1) | x.softmax(0) | x.log_softmax(-1) | F.layer_norm(x, (1000,)) | F.rms_norm(x, (1000,))
x.var(1) | x.norm(2, 1) | x.logsumexp(1) | x.isnan() | x.round() | x.nan_to_num()
F.mse_loss(x, x.t()) | F.linear(x[:64], x) | torch.lerp(x, x.t(), 0.3) | F.normalize(x, dim=1)
x.sin() | x.erf()
"""
# Layers with constant weights, each behind the shape of its input.
LAYERS = """
(1, 64, 125, 125) nn.Conv2d(64, 64, 3, padding=1) | (1, 64, 125, 125) nn.Conv2d(64, 128, 3, 2, 1)
(1, 64, 125, 125) nn.Conv2d(64, 64, 1) | (1, 64, 125, 125) nn.Conv2d(64, 64, 7, padding=3)
(1, 64, 125, 125) nn.Conv2d(64, 64, 3, padding=2, dilation=2) | (1, 64, 125, 125) nn.Conv2d(64, 64, (1, 9))
(1, 64, 125, 125) nn.Conv2d(64, 64, 3, 1, 1, 1, 64) | (1, 64, 125, 125) nn.Conv2d(64, 128, 3, 2, 1, 1, 64)
(1, 64, 125, 125) nn.Conv2d(64, 64, 3, 1, 1, 1, 8) | (1, 3, 576, 576) nn.Conv2d(3, 256, 16, 16)
(1, 64, 15625) nn.Conv1d(64, 64, 3, padding=1) | (1, 64, 15625) nn.Conv1d(64, 64, 1)
(1, 64, 15625) nn.Conv1d(64, 64, 5, 2, 0, 3) | (1, 64, 15625) nn.Conv1d(64, 64, 9, 1, 4, 1, 64)
(1, 16, 25, 50, 50) nn.Conv3d(16, 16, 3, padding=1) | (1, 16, 25, 50, 50) nn.Conv3d(16, 32, 3, 2)
(1, 16, 25, 50, 50) nn.Conv3d(16, 16, 3, 1, 1, 1, 16) | (1, 16, 25, 50, 50) nn.Conv3d(16, 32, 1)
(1, 64, 15625) nn.ConvTranspose1d(64, 32, 4, 2, 1) | (1, 64, 2000) nn.ConvTranspose1d(64, 32, 16, 8, 4)
(1, 64, 15625) nn.ConvTranspose1d(64, 64, 3, padding=1)
(1, 64, 8000) nn.ConvTranspose1d(64, 64, 4, 2, 1, 0, 64) | (1, 64, 62, 62) nn.ConvTranspose2d(64, 32, 2, 2)
(1, 64, 62, 62) nn.ConvTranspose2d(64, 32, 4, 2, 1) | (1, 64, 62, 62) nn.ConvTranspose2d(64, 64, 3, 2, 1, 1)
(1, 64, 125, 125) nn.ConvTranspose2d(64, 64, 3) | (1, 64, 62, 62) nn.ConvTranspose2d(64, 64, 4, 2, 1, 0, 64)
(1, 64, 62, 62) nn.ConvTranspose2d(64, 3, 4, 2, 1) | (1, 64, 62, 62) nn.ConvTranspose2d(64, 64, 1, 2)
(1, 21, 16, 16) nn.ConvTranspose2d(21, 21, 64, 32, 16)
(1, 512, 8, 8) nn.ConvTranspose2d(512, 256, 4, 2, 1) | (64, 128, 1, 1) nn.ConvTranspose2d(128, 256, 4)
(1, 16, 20, 40, 40) nn.ConvTranspose3d(16, 16, 2, 2)
(1, 16, 20, 40, 40) nn.ConvTranspose3d(16, 16, 3, 2, 1, 1) | (1, 16, 25, 50, 50) nn.MaxPool3d(2)
(1, 64, 15625) nn.MaxPool1d(3, 2) | (1, 64, 15625) nn.AvgPool1d(4) | (1, 16, 25, 50, 50) nn.AvgPool3d(3, 2)
(1, 16, 25, 50, 50) nn.AdaptiveAvgPool3d(5) | (1, 64, 15625) nn.AdaptiveMaxPool1d(100)
(16, 64, 1000) nn.BatchNorm1d(64) | (1, 64, 15625) nn.GroupNorm(8, 64)
(1, 16, 25, 50, 50) nn.InstanceNorm3d(16) | (1, 64, 15625) nn.Upsample(scale_factor=2, mode="linear")
(1, 16, 12, 25, 25) nn.Upsample(scale_factor=2, mode="trilinear")
"""
SQUARE, FLOAT32 = (1000, 1000), ("float32",)
BOOLS, INTEGERS, OTHER_FLOATS = ("bool",), ("uint8", "int32", "int64"), ("float16", "bfloat16", "float64")
EVERY = BOOLS + INTEGERS + OTHER_FLOATS
GROUPS = [(FLOAT32, SQUARE, DIMS.replace("D", "0")), (FLOAT32, SQUARE, DIMS.replace("D", "1")),
          (FLOAT32, SQUARE, TABLE), (FLOAT32, (16, 64, 32, 32), IMAGES),
          (FLOAT32 + OTHER_FLOATS, None, LAYERS),
          (EVERY, SQUARE, ANY_DIM.replace("D", "0")), (EVERY, SQUARE, ANY_DIM.replace("D", "1")),
          (EVERY, SQUARE, ANY), (INTEGERS + OTHER_FLOATS, SQUARE, NUMBERS), (INTEGERS, SQUARE, WHOLE),
          (OTHER_FLOATS, SQUARE, FLOATS)]


class Row(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.function = eval("lambda x, k=3: " + words)  # the table's own words

    def forward(self, x):
        return self.function(x)


def layer_row(words, dtype):
    """A row of LAYERS: the module and the shape of its input."""
    shape, layer = words.split(" nn.")
    torch.manual_seed(1)
    module = eval("nn." + layer).eval().to(dtype)  # the table's own words
    return module, eval(shape)


class Ours:
    def __init__(self, arguments, module, x, folder):
        path = os.path.join(folder, "row.pt2")
        archive = io.BytesIO()
        torch.export.save(torch.export.export(module, (x,)), archive)
        with open(path, "wb") as file:
            file.write(archive.getvalue())
        self.process = subprocess.Popen(
            [arguments.program, path, ",".join(map(str, x.shape)), "eager" if arguments.eager else "turns"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.process.stdin.write(x.view(torch.uint8).numpy().tobytes())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().decode().strip()[-200:])
        self.result = self.process.stdout.read(int(line))

    def turn(self, n):
        self.process.stdin.write(b"cpu %d\n" % n)
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1000

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def torch_turn(module, x, n):
    began = time.process_time()
    for _ in range(n):
        module(x)
    return (time.process_time() - began) * 1e6 / n


def check(words, result, want):
    """`result`: the bytes as they lie, which is as PyTorch's do."""
    if want.numel() == 0:
        assert len(result) == 0, "elements that PyTorch does not give"
        return
    have = torch.frombuffer(bytearray(result), dtype=want.dtype).as_strided(want.shape, want.stride())
    tolerances = {}
    if want.dtype in (torch.float16, torch.bfloat16):
        tolerances = {"rtol": 2e-2, "atol": 2e-2}
    elif want.is_floating_point():
        tolerances = {"rtol": 1e-4, "atol": 5e-3}  # a million terms
    if want.is_floating_point() or "argsort" not in words:
        torch.testing.assert_close(have, want, equal_nan=True, **tolerances)


def sample(dtype, shape):
    torch.manual_seed(0)
    if dtype.is_floating_point:
        return (torch.rand(shape) * 2 - 1).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 10, shape).to(dtype)


def measure(arguments, words, dtype, shape, folder):
    """Microseconds of both: medians of turns, one after the other."""
    module = Row(words) if shape else None
    if not shape:
        module, shape = layer_row(words, dtype)
    x = sample(dtype, shape)
    try:
        want = module(x)
    except (RuntimeError, IndexError):
        return None, None  # PyTorch has no kernel for it
    ours = Ours(arguments, module, x, folder)
    try:
        check(words, ours.result, want)
        n = max(1, int(TURN_SECONDS * 1e6 / max(1, torch_turn(module, x, 2))))
        rounds = [(torch_turn(module, x, n), ours.turn(n)) for _ in range(arguments.rounds)]
    finally:
        ours.close()
    return [statistics.median(times) for times in zip(*rounds)]


def rows_of(arguments):
    for dtypes, shape, rows in GROUPS:
        for dtype in dtypes:
            for words in (part.strip() for line in rows.strip().split("\n") for part in line.split(" | ")):
                chosen = not arguments.words or any(word in words for word in arguments.words)
                if chosen and dtype in arguments.dtypes.split(","):
                    yield dtype, shape, words


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--dtypes", default=",".join(FLOAT32 + EVERY))
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ratios, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        for dtype, shape, words in rows_of(arguments):
            name = words if dtype == "float32" else f"{dtype}: {words}"
            try:
                theirs, ours = measure(arguments, words, getattr(torch, dtype), shape, folder)
            except (AssertionError, RuntimeError) as problem:
                print(f"FAILED {name}: {str(problem).strip()[:300]}", flush=True)
                wrong += 1
                continue
            if theirs is None:
                continue
            ratios[name] = ours / max(theirs, 0.1)
            print(f"{ratios[name]:6.2f}  {theirs:9.0f} us {ours:9.0f} us  {name}", flush=True)
    above = sorted((ratio, words) for words, ratio in ratios.items() if ratio > LIMIT)
    mean = math.exp(sum(map(math.log, ratios.values())) / max(1, len(ratios)))
    print(f"{len(ratios)} rows, geometric mean {mean:.2f}; above {LIMIT}: {len(above)}")
    for ratio, words in reversed(above):
        print(f"{ratio:6.2f}  {words}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
