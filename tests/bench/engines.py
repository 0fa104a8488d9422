#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled programs against eager PyTorch, ONNX Runtime and OpenVINO: float32, one thread
and one core unless --threads says otherwise, in one run.

    python tests/bench/engines.py BUILD/tests/bench/bench_models [--cpu] [--core N] [--threads N]
    [--rounds N] [--seconds S] [--precision bf16|int8] [--compilers] [--engines NAME,...] [ROW ...]

Every engine gets the same exported module and the same input; its result is compared with eager
PyTorch's before anything is timed (|difference| <= 1e-4 * max(1, largest |result|)). Then the
engines take turns: in each round each runs for a few milliseconds or once and gives a median; the
ratio of a round is the best peer's median over ours, and the row prints the median ratio of all
rounds. Whatever else the machine does meets all of them alike; where it is busy, --cpu takes each
turn's processor time instead of the clock's (mean of its runs), in which waiting for the core does
not count.

With --threads, every engine has so many threads on as many cores, the last ones; --cpu then adds up
the time of all. With --compilers, what PyTorch compiles takes part, too: torch.jit.freeze,
torch.compile with frozen weights and AOTInductor (both need g++, and minutes).

With --precision, fxserve and its peers compute with less. int8: PyTorch and ONNX Runtime with their
dynamic 8-bit linear layers, OpenVINO as it is, in float32, and with the weights and activations of its
linear layers in 8 bits (nncf, calibrated on the input). bf16: PyTorch in an autocast region, OpenVINO
in float32 and in bf16, which is what it takes unasked where the CPU multiplies bfloat16. Then no result
is refused; each has its signal-to-noise ratio against float32, in dB, behind its time. Rows of random
weights say little about what a real network loses.

With --engines only these are timed, the last one against the best of those before it; their names are
the heads of the columns, and two more: "one thread", which is fxserve with one whatever --threads says,
and "eager", its runs without a program. For example, with FXSERVE_ISA=avx2 and ONEDNN_MAX_CPU_ISA=AVX2
set, --engines openvino,fxserve compares two engines without AVX-512 (ONNX Runtime heeds neither).

Needs torch 2.13 and the program bench_models (ninja tests/bench/bench_models). A peer that is not
installed is left out with a line that says so (pip install onnxruntime openvino onnx onnxscript).
Nothing fails because of time; a wrong result does.
"""

import argparse
import copy
import importlib.util
import io
import logging
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--core", type=int, help="the first one; the last ones if not given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compilers", action="store_true", help="also what PyTorch compiles")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of the clock's")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.02, help="of one turn")
    parser.add_argument("--engines", type=lambda text: text.split(","), help="the ones that are timed")
    parser.add_argument("--precision", choices=("bf16", "int8"), help="of fxserve's programs")
    return parser.parse_intermixed_args()


SPIN_SECONDS = 0.03  # threads of OpenMP that wait for work use their cores for no longer
ARGS = arguments()
# before any engine counts cores: OpenVINO pins its threads to what it sees when it is loaded
CORES = sorted(os.sched_getaffinity(0))
FIRST = len(CORES) - ARGS.threads if ARGS.core is None else CORES.index(ARGS.core)
os.sched_setaffinity(0, set(CORES[max(FIRST, 0):][:ARGS.threads]))
os.environ["OMP_NUM_THREADS"] = os.environ["THREADS"] = str(ARGS.threads)

import numpy
import torch
from torch import nn

import engine_layers
import engine_models
import engine_vision

HAS_ORT = all(importlib.util.find_spec(name) for name in ("onnxruntime", "onnx", "onnxscript"))
HAS_NNCF = importlib.util.find_spec("nncf") is not None
HAS_OPENVINO = all(importlib.util.find_spec(name) for name in ("openvino", "onnx", "onnxscript"))


# ---- what is run -------------------------------------------------------------------------------
class ReluNegAbs(nn.Module):
    def forward(self, x):
        return torch.abs(torch.neg(torch.relu(x)))


class Pointwise(nn.Module):
    """Twenty operators: 5 tanh, 3 sigmoid, 2 exp, 5 mul, 5 add."""

    def forward(self, x):
        y = x
        for step in range(5):
            y = torch.tanh(y * 0.75 + 0.125 * (step + 1))
            if step < 3:
                y = torch.sigmoid(y)
            else:
                y = torch.exp(y)
        return y


class SmallConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.pool = nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(self.relu(self.conv(x)))


class Residual(nn.Module):
    """A residual block of ResNet: two 3x3, or 1x1, 3x3, 1x1."""

    def __init__(self, n_in, width, n_out, stride, bottleneck):
        super().__init__()
        plan = [(width, 1, 1), (width, 3, stride),
                (n_out, 1, 1)] if bottleneck else [(width, 3, stride), (n_out, 3, 1)]
        layers, channels = [], n_in
        for position, (n, size, step) in enumerate(plan):
            layers += [nn.Conv2d(channels, n, size, step, size // 2, bias=False), nn.BatchNorm2d(n)]
            layers += [nn.ReLU()] if position + 1 < len(plan) else []
            channels = n
        self.body = nn.Sequential(*layers)
        self.skip = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.skip = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet(depths, bottleneck):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels, widen = 64, 4 if bottleneck else 1
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            layers.append(Residual(channels, width, width * widen, 2 if block == 0 and stage > 0 else 1,
                                   bottleneck))
            channels = width * widen
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Inverted(nn.Module):
    """MobileNetV2's block: 1x1 up, 3x3 depthwise, 1x1 down without an activation."""

    def __init__(self, n_in, n_out, stride, widen):
        super().__init__()
        n = n_in * widen
        layers = [] if widen == 1 else [nn.Conv2d(n_in, n, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU6()]
        layers += [nn.Conv2d(n, n, 3, stride, 1, groups=n, bias=False), nn.BatchNorm2d(n), nn.ReLU6()]
        self.body = nn.Sequential(*layers, nn.Conv2d(n, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
        self.keeps = stride == 1 and n_in == n_out

    def forward(self, x):
        return x + self.body(x) if self.keeps else self.body(x)


def mobilenet():
    layers, channels = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
    for widen, n, repeat, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                     (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(repeat):
            layers.append(Inverted(channels, n, stride if block == 0 else 1, widen))
            channels = n
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


ROWS = {  # name: module, shape of the input, aim (best peer / ours)
    "relu-neg-abs 3x4": (ReluNegAbs, (3, 4), 4.6),
    "20 pointwise, 64": (Pointwise, (64,), 8.0),
    "20 pointwise, 1 M": (Pointwise, (1 << 20,), 1.1),
    "conv3x3 relu pool": (SmallConv, (1, 3, 32, 32), 1.5),
    "mlp batch 1": (mlp, (1, 784), 1.0),
    "mlp batch 64": (mlp, (64, 784), 1.0),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), (1, 3, 224, 224), 1.4),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), (1, 3, 224, 224), 1.15),
    "mobilenetv2": (mobilenet, (1, 3, 224, 224), 1.0),
    **engine_layers.ROWS,
    **engine_vision.ROWS,
    **engine_models.ROWS,
}


def seeded(make):
    """The module with weights that keep activations near one, batch norms that do something."""
    torch.manual_seed(0)
    module = make().eval()
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        if isinstance(part, nn.BatchNorm2d):
            part.weight.data.uniform_(0.5, 1.0)
            part.bias.data.uniform_(-0.1, 0.1)
            part.running_mean.uniform_(-0.2, 0.2)
            part.running_var.uniform_(0.5, 1.5)
    return module


# ---- engines: each has `result` (numpy) and `turn(n)`, the median of n runs in microseconds ----
def median_us(run, n):
    if ARGS.cpu:
        start = time.process_time_ns()
        for _ in range(n):
            run()
        return (time.process_time_ns() - start) / n / 1000
    times = []
    for _ in range(n):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


class Torch:
    name = "torch"

    def __init__(self, module, x, _folder):
        self.module, self.x = module, x
        with torch.inference_mode():
            self.result = module(x).numpy()

    def turn(self, n):
        with torch.inference_mode():
            return median_us(lambda: self.module(self.x), n)


class JitFrozen(Torch):
    name = "jit frozen"

    def __init__(self, module, x, folder):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frozen = torch.jit.freeze(torch.jit.trace(module, x, check_trace=False))
        super().__init__(frozen, x, folder)


class Inductor(Torch):
    name = "inductor"

    def __init__(self, module, x, folder):
        import torch._inductor.config
        torch._inductor.config.freezing = True
        super().__init__(torch.compile(module), x, folder)


class AotInductor(Torch):
    name = "aot inductor"

    def __init__(self, module, x, folder):
        import torch._inductor
        torch._inductor.config.freezing = True
        with torch.no_grad():
            package = torch._inductor.aoti_compile_and_package(
                torch.export.export(module, (x,)), package_path=str(folder / "aot.pt2"))
        super().__init__(torch._inductor.aoti_load_package(package), x, folder)


def onnx_file(module, x, folder):
    path = folder / "model.onnx"
    if not path.exists():
        logging.disable(logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(module, (x,), dynamo=True, verbose=False)
        program.save(str(path))
    return str(path)


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, module, x, folder):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = ARGS.threads, 1
        self.session = onnxruntime.InferenceSession(onnx_file(module, x, folder), options,
                                                    providers=["CPUExecutionProvider"])
        self.result = self.session.run(None, {self.session.get_inputs()[0].name: x.numpy()})[0]
        self.input = onnxruntime.OrtValue.ortvalue_from_numpy(x.numpy())
        self.output = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.empty_like(self.result))
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input(self.session.get_inputs()[0].name, self.input)
        self.binding.bind_ortvalue_output(self.session.get_outputs()[0].name, self.output)

    def turn(self, n):
        return median_us(lambda: self.session.run_with_iobinding(self.binding), n)


class OpenVino:
    name = "openvino"
    hint = "f32"

    def __init__(self, module, x, folder):
        import openvino
        core = openvino.Core()
        config = {"INFERENCE_NUM_THREADS": ARGS.threads, "NUM_STREAMS": 1,
                  "INFERENCE_PRECISION_HINT": self.hint, "PERFORMANCE_HINT": "LATENCY"}
        compiled = core.compile_model(self.model(core, module, x, folder), "CPU", config)
        self.request = compiled.create_infer_request()
        self.input = openvino.Tensor(x.numpy(), shared_memory=True)
        self.request.set_input_tensor(0, self.input)
        self.request.infer()
        self.result = numpy.array(self.request.get_output_tensor(0).data)

    def model(self, core, module, x, folder):
        return core.read_model(onnx_file(module, x, folder))

    def turn(self, n):
        return median_us(self.request.infer, n)


class TorchBf16(Torch):
    name = "torch bf16"

    def __init__(self, module, x, _folder):
        self.module, self.x = module, x
        with torch.inference_mode(), torch.autocast("cpu"):
            self.result = module(x).float().numpy()

    def turn(self, n):
        with torch.autocast("cpu"):
            return super().turn(n)


class OpenVinoBf16(OpenVino):
    """What OpenVINO does unasked on CPUs that multiply bfloat16."""
    name = "openvino bf16"
    hint = "bf16"


class TorchInt8(Torch):
    name = "torch int8"

    def __init__(self, module, x, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = torch.ao.quantization.quantize_dynamic(copy.deepcopy(module), {nn.Linear})
        super().__init__(small, x, folder)


class OnnxRuntimeInt8(OnnxRuntime):
    name = "ort int8"

    def __init__(self, module, x, folder):
        from onnxruntime.quantization import QuantType, quantize_dynamic
        small = folder / "small"
        small.mkdir()
        quantize_dynamic(onnx_file(module, x, folder), str(small / "model.onnx"), per_channel=True,
                         weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
        super().__init__(module, x, small)


class OpenVinoInt8(OpenVino):
    name = "openvino int8"

    def model(self, core, module, x, folder):
        import nncf
        logging.getLogger("nncf").setLevel(logging.ERROR)
        return nncf.quantize(super().model(core, module, x, folder), nncf.Dataset([x.numpy()]),
                             model_type=nncf.ModelType.TRANSFORMER, subset_size=1)


class Ours:
    name = "fxserve"
    threads, what = ARGS.threads, "turns"

    def __init__(self, module, x, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = io.BytesIO()
            torch.export.save(torch.export.export(module, (x,)), archive)
        path = folder / "model.pt2"
        path.write_bytes(archive.getvalue())
        command = [ARGS.program, str(path), ",".join(map(str, x.shape)),
                   self.what + (f":{ARGS.precision}" if ARGS.precision else "")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "THREADS": str(self.threads),
                                             "OMP_PROC_BIND": "true"})
        self.process.stdin.write(x.numpy().tobytes())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(command)} failed")
        self.result = numpy.frombuffer(self.process.stdout.read(int(line)), dtype=numpy.float32)

    def turn(self, n):
        self.process.stdin.write(b"%s%d\n" % (b"cpu " if ARGS.cpu else b"", n))
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1000

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class OneThread(Ours):
    name = "one thread"
    threads = 1


class Eager(Ours):
    name = "eager"
    what = "eager"


# ---- rows --------------------------------------------------------------------------------------
def check(engine, want):
    have = engine.result.reshape(want.shape)
    worst, limit = float(numpy.abs(have - want).max()), 1e-4 * max(1.0, float(numpy.abs(want).max()))
    if not worst <= limit:
        raise SystemExit(f"{engine.name}: the result differs from eager PyTorch's by {worst:.3g}, allowed "
                         f"are {limit:.3g}")


def noise_db(engine, want):
    error = engine.result.reshape(want.shape).astype(numpy.float64) - want
    return 10 * math.log10((want.astype(numpy.float64) ** 2).sum() / max((error ** 2).sum(), 1e-300))


def turns(engines):
    """By round: microseconds of each engine."""
    n_runs = {}
    for engine in engines:
        engine.turn(2)
        once = engine.turn(3) / 1e6
        n_runs[engine] = max(1, min(4000, int(ARGS.seconds / max(once, 1e-7))))
    rounds = []
    for number in range(ARGS.rounds):
        rounds.append({})
        for engine in engines[number % len(engines):] + engines[:number % len(engines)]:
            if ARGS.threads > 1:
                time.sleep(SPIN_SECONDS)
            rounds[-1][engine.name] = engine.turn(n_runs[engine])
    return rounds


def kinds():
    """The classes of the engines that are timed, in the order of their columns."""
    if ARGS.engines:
        every = {kind.name: kind for kind in (Torch, JitFrozen, Inductor, AotInductor, OnnxRuntime, OpenVino,
                                              TorchBf16, OpenVinoBf16, TorchInt8, OnnxRuntimeInt8,
                                              OpenVinoInt8, Eager, OneThread, Ours)}
        return [every[name] for name in ARGS.engines]
    ort, vino, nncf = [OnnxRuntime] * HAS_ORT, [OpenVino] * HAS_OPENVINO, HAS_OPENVINO and HAS_NNCF
    if ARGS.precision == "bf16":
        return [Torch, TorchBf16, *vino, *[OpenVinoBf16] * HAS_OPENVINO, Ours]
    if ARGS.precision == "int8":
        return [Torch, TorchInt8, *[OnnxRuntimeInt8] * HAS_ORT, *vino, *[OpenVinoInt8] * nncf, Ours]
    return [Torch, *[JitFrozen, Inductor, AotInductor] * ARGS.compilers, *ort, *vino, Ours]


def opened(row, module, x, folder):
    """The engines of the row; one of less precision that cannot run it is left out, with a line."""
    engines = []
    for kind in kinds():
        try:
            engines.append(kind(module, x, folder))
        except Exception as problem:  # of any kind: it is not ours
            if issubclass(kind, Ours) or not ARGS.precision:
                raise
            print(f"{row}: {kind.name} is left out: {str(problem).splitlines()[0][:100]}", flush=True)
    return engines


def measure(name):
    make, shape, aim = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        module, x = seeded(make), torch.rand(shape) * 2 - 1
        engines = opened(name, module, x, pathlib.Path(folder))
        want, last = Torch(module, x, pathlib.Path(folder)).result, engines[-1].name
        for engine in engines:
            if not ARGS.precision:
                check(engine, want)
        rounds = turns(engines)
        for engine in engines:
            if isinstance(engine, Ours):
                engine.close()
    ratio = statistics.median(min(us for peer, us in one.items() if peer != last) / one[last]
                              for one in rounds)
    medians = {engine.name: statistics.median(one[engine.name] for one in rounds) for engine in engines}
    decibels = {engine.name: noise_db(engine, want) for engine in engines}
    return medians, ratio, aim, decibels


def main():
    torch.set_num_threads(ARGS.threads)
    if not HAS_ORT:
        print("ONNX Runtime is left out: onnxruntime, onnx or onnxscript is not installed")
    if not HAS_OPENVINO:
        print("OpenVINO is left out: openvino, onnx or onnxscript is not installed")
    names = [kind.name for kind in kinds()]
    title = f"us, threads: {ARGS.threads}, {ARGS.precision or 'f32'}"
    print(f"{title:26}" + "".join(f"{name:>14}" for name in names)
          + f"{'best / ' + names[-1]:>18}" + ("" if ARGS.engines else f"{'aim':>7}"))
    for row in ARGS.rows or ROWS:
        medians, ratio, aim, decibels = measure(row)
        print(f"{row:26}" + "".join(f"{medians.get(name, math.nan):14.2f}" for name in names)
              + f"{ratio:17.2f}x"
              + (f"{aim:6.2f}x  {'met' if ratio >= aim else 'not met'}" if not ARGS.engines else ""),
              flush=True)
        if ARGS.precision:
            print(f"{'  dB':26}" + "".join(f"{decibels.get(name, math.nan):14.1f}" for name in names),
                  flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
