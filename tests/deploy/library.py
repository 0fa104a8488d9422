# SPDX-License-Identifier: Apache-2.0
"""libfxserve as `meson install` brings it: library.py BUILD. Exactly the functions of fxserve.h are
exported; the examples of docs/library.md are built with pkg-config's flags and give the answers of
`fxserve run`, the one in C without a finding of valgrind (left out if it is not here); ctypes opens,
describes, runs and is refused; tensors go to numpy and back (left out without numpy); threads that
run one model at once get the answers that they get alone (tests/stress/library.c does that under
ThreadSanitizer); the process has the signals, timers, umask, folder, limits, cores, locale,
environment, floating-point mode and OpenMP threads that it had. The last line is `N passed, N
failed`."""
import concurrent.futures
import ctypes
import json
import os
import platform
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "service"))
from service import MODELS, ROOT, Failed, Tally

try:
    import numpy
except ImportError:
    numpy = None
DIGITS = os.path.join(MODELS, "digits.pt2")
IMAGE = [0.0] * 64
for place, ink in {3: 9, 11: 13, 19: 15, 27: 16, 35: 15, 43: 14, 51: 13}.items():
    IMAGE[place] = float(ink)


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: {found!r}, not {wanted!r}")


class Installed:
    def __init__(self, build, folder):
        output("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder)
        found = {name: os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
        for name in ("libfxserve.so", "fxserve.h", "fxserve.pc", "fxserve"):
            if name not in found:
                raise Failed(f"{name} is not installed")
        self.folder, self.found = folder, found
        self.library = found["libfxserve.so"]
        self.environment = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found["fxserve.pc"]),
                                PKG_CONFIG_SYSROOT_DIR=folder, LD_LIBRARY_PATH=os.path.dirname(self.library))
        self.program = os.path.join(os.path.dirname(found["fxserve.h"]), "..", "bin", "fxserve")

    def build(self, compiler, source):
        flags = shlex.split(output("pkg-config", "--cflags", "--libs", "fxserve", env=self.environment))
        to = os.path.join(self.folder, os.path.basename(source).replace(".", "_"))
        output(compiler, "-Wall", "-Wextra", "-Werror", "-o", to, os.path.join(ROOT, source), *flags)
        return to

    def answer(self):
        body = json.dumps([[[IMAGE[i:i + 8] for i in range(0, 64, 8)]]])
        reply = json.loads(output(self.program, "run", DIGITS, "--input", f"x={body}"))
        return reply["outputs"][0]["data"][0]


def check_symbols(installed):
    with open(installed.found["fxserve.h"], encoding="utf-8") as file:
        declared = set(re.findall(r"^[a-zA-Z].*?\b(fxserve_\w+)\(", file.read(), re.M))
    rows = output("nm", "-D", "--defined-only", installed.library).split("\n")
    exported = {row.split()[2].split("@")[0] for row in rows if row and row.split()[1] != "A"}
    expect("declared, but not exported", declared - exported, set())
    expect("exported, but not declared", exported - declared, set())
    if not 10 <= len(declared) <= 20:
        raise Failed(f"{len(declared)} functions")


def check_c(installed):
    """As docs/library.md says, word by word."""
    with open(os.path.join(ROOT, "docs", "library.md"), encoding="utf-8") as file:
        (commands, ) = re.findall(r"^```sh\n(.*?)^```$", file.read(), re.M | re.S)
    place = os.path.join(installed.folder, "documented")
    os.mkdir(place)
    for name in ("library", "tests"):
        os.symlink(os.path.join(ROOT, name), os.path.join(place, name))
    text = output("sh", "-ec", commands, cwd=place, env=installed.environment)
    found = [float(line.split(": ")[1]) for line in text.strip().split("\n")]
    expect("logits", found, [round(number, 3) for number in installed.answer()])


def check_cpp(installed):
    text = output(installed.build("c++", "library/example.cpp"), DIGITS, env=installed.environment)
    head, profile = text.split("\n", 1)
    expect("first line", head, "x")
    profile = json.loads(profile)
    if not profile.get("program") or not profile.get("nodes"):
        raise Failed(f"the profile has {list(profile)}")


def check_failure(installed):
    program = installed.build("cc", "library/example.c")
    done = subprocess.run([program, os.path.join(installed.folder, "none.pt2")], capture_output=True,
                          text=True, env=installed.environment, check=False)
    expect("exit code", done.returncode, 1)
    if "none.pt2: No such file" not in done.stderr:
        raise Failed(done.stderr)


def check_valgrind(installed):
    program = os.path.join(installed.folder, "example_c")
    output("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite",
           program, DIGITS, env=dict(installed.environment, FXSERVE_ISA="avx2"))


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("ndim", ctypes.c_int32), ("shape", ctypes.c_int64 * 8)]


class Options(ctypes.Structure):
    _fields_ = [("mode", ctypes.c_int32), ("precision", ctypes.c_int32), ("threads", ctypes.c_int32),
                ("profile", ctypes.c_int32), ("seeded", ctypes.c_int32), ("seed", ctypes.c_uint64)]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("open", "open_memory", "run"):
            self.function(name).restype = ctypes.c_void_p
        for name in ("error", "version", "result_profile"):
            self.function(name).restype = ctypes.c_char_p
        for name in ("tensor", "result_tensor"):
            self.function(name).restype = ctypes.POINTER(Managed)

    def function(self, name):
        return getattr(self.c, "fxserve_" + name)

    def error(self):
        return self.function("error")().decode()

    def open(self, content):
        return ctypes.c_void_p(self.function("open_memory")(content, ctypes.c_size_t(len(content))))

    def run(self, model, tensors, **options):
        inputs = (ctypes.POINTER(DLTensor) * len(tensors))(*[ctypes.pointer(each) for each in tensors])
        return ctypes.c_void_p(self.function("run")(model, ctypes.byref(Options(**options)), inputs,
                                                    len(tensors)))

    def numbers(self, result):
        managed = self.function("result_tensor")(result, 0)
        tensor = managed.contents.tensor
        n = 1
        for i in range(tensor.ndim):
            n *= tensor.shape[i]
        numbers = list((ctypes.c_float * n).from_address(tensor.data))
        managed.contents.deleter(managed)
        return numbers


def dense(numbers, shape):
    data = (ctypes.c_float * len(numbers))(*numbers)
    tensor = DLTensor(ctypes.cast(data, ctypes.c_void_p), 1, 0, len(shape), 2, 32, 1,
                      (ctypes.c_int64 * len(shape))(*shape), None, 0)
    tensor.keep = data
    return tensor


def read(path):
    with open(path, "rb") as file:
        return file.read()


def floating_point_mode():
    """How this thread rounds, and what it does with denormals and exceptions; not what happened."""
    if platform.machine() != "x86_64":
        return None
    state = ctypes.create_string_buffer(32)  # fenv_t
    ctypes.CDLL("libm.so.6").fegetenv(state)
    return state.raw[:2], struct.unpack_from("<I", state.raw, 28)[0] & ~0x3F


def environment_of_c():
    """The program's own; os.environ is Python's copy."""
    rows, found = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), []
    while rows[len(found)] is not None:
        found.append(rows[len(found)])
    return found


def state_of_process():
    with open("/proc/self/status", encoding="utf-8") as file:
        status = re.findall(r"^(?:Sig[BIC]|Umask|Cpus_allowed:|NoNewPrivs|Seccomp:).*", file.read(),
                            re.M)
    # 32 and 33 are glibc's own: release 2.41 catches 33 once there are threads.
    status = [f"SigCgt: {int(row.split()[1], 16) & ~(3 << 31):x}" if row.startswith("SigCgt") else row
              for row in status]
    libc, omp = ctypes.CDLL(None), ctypes.CDLL("libgomp.so.1")
    libc.setlocale.restype = ctypes.c_char_p
    return {
        "status": status,
        "locale": [libc.setlocale(category, None) for category in range(7)],
        "environment": environment_of_c(),
        "floating point": floating_point_mode(),
        "OpenMP": (omp.omp_get_max_threads(), omp.omp_get_dynamic(), omp.omp_get_nested()),
        "timers": [signal.getitimer(which) for which in range(3)],
        "limits": [resource.getrlimit(which) for which in range(16)],
        "folder": os.getcwd(), "niceness": os.nice(0),
        "files": sorted(os.listdir("/proc/self/fd")),
    }


def check_precision(lib, model, exact):
    """Near the exact answer and not the same; the profile names the kernels."""
    for precision, kernel in ((1, "bf16:"), (2, "int8:")):
        result = lib.run(model, [dense(IMAGE, [1, 1, 8, 8])], precision=precision, profile=1)
        distance = max(abs(a - b) for a, b in zip(exact, lib.numbers(result), strict=True))
        profile = json.loads(lib.function("result_profile")(result))
        lib.function("result_free")(result)
        if not 1e-5 < distance < 0.2:
            raise Failed(f"precision {precision} is {distance} away")
        if not any((node["kernel"] or "").startswith(kernel) for node in profile["nodes"]):
            raise Failed(f"precision {precision}: {[node['kernel'] for node in profile['nodes']]}")


def check_ctypes(installed):
    before = state_of_process()
    lib = Library(installed.library)
    model = lib.open(read(DIGITS))
    info = Info()
    expect("inputs", (lib.function("n_inputs")(model), lib.function("n_outputs")(model)), (1, 1))
    expect("input", lib.function("input")(model, 0, ctypes.byref(info)), 0)
    expect("input", (info.name, info.code, info.bits, list(info.shape)[:info.ndim]),
           (b"x", 2, 32, [-1, 1, 8, 8]))
    expect("no input", lib.function("input")(model, 1, ctypes.byref(info)), -1)
    for mode in range(3):
        result = lib.run(model, [dense(IMAGE, [1, 1, 8, 8])], mode=mode, threads=2, profile=1)
        wanted, found = installed.answer(), lib.numbers(result)
        if any(abs(a - b) > 1e-4 for a, b in zip(wanted, found, strict=True)):
            raise Failed(f"mode {mode}: {found}, not {wanted}")
        profile = json.loads(lib.function("result_profile")(result))
        expect(f"program of mode {mode}", profile["program"] is None, mode != 1)
        lib.function("result_free")(result)
    check_precision(lib, model, installed.answer())
    lib.function("close")(model)
    after = state_of_process()
    for name, state in before.items():
        expect(f"{name} of the process", after[name], state)


def check_threads(installed):
    """Threads run one model at once, with inputs and sizes of their own, and get what they get alone."""
    lib = Library(installed.library)
    model = lib.open(read(DIGITS))

    def answers(number, wanted=None):
        for turn in range(len(wanted) if wanted else 4):
            n = 1 + (number + turn) % 3
            images = [float((i * (number + 3) + turn) % 17) for i in range(64 * n)]
            result = lib.run(model, [dense(images, [n, 1, 8, 8])], mode=turn % 3, threads=1 + turn % 2)
            found = lib.numbers(result)
            lib.function("result_free")(result)
            if wanted is None:
                yield found
            elif any(abs(a - b) > 1e-4 for a, b in zip(found, wanted[turn], strict=True)):
                raise Failed(f"thread {number}, turn {turn}: {found}, not {wanted[turn]}")
            refused = lib.run(model, [])
            if refused.value is not None or "0 inputs" not in lib.error():
                raise Failed(f"thread {number}: {lib.error()}")

    alone = [list(answers(number)) for number in range(6)]
    with concurrent.futures.ThreadPoolExecutor(len(alone)) as pool:
        for future in [pool.submit(lambda number=number: list(answers(number, alone[number])))
                       for number in range(len(alone)) for _ in range(20)]:
            future.result()
    lib.function("close")(model)


def check_refusals(installed):
    lib = Library(installed.library)
    model = lib.open(read(DIGITS))
    x = dense(IMAGE, [1, 1, 8, 8])
    far, negative, odd, wide, huge = (dense(IMAGE, [1, 1, 8, 8]) for _ in range(5))
    far.device_type = 2
    negative.strides = (ctypes.c_int64 * 4)(64, 64, 8, -1)
    odd.byte_offset = 1
    wide.lanes = 4
    huge.shape = (ctypes.c_int64 * 4)(2 ** 40, 2 ** 40, 8, 8)
    cases = [([], {}, "0 inputs"), ([x, x], {}, "2 inputs"), ([x], {"mode": 3}, "no mode 3"),
             ([x], {"precision": 3}, "no precision 3"), ([x], {"mode": 2, "precision": 1}, "eager run"),
             ([x], {"threads": -1}, "-1 threads"), ([far], {}, "CPU"), ([negative], {}, "negative stride"),
             ([odd], {}, "not aligned"), ([wide], {}, "4 lanes"), ([huge], {}, ""),
             ([dense(IMAGE, [1, 1, 4, 16])], {}, "shape")]
    for tensors, options, words in cases:
        result = lib.run(model, tensors, **options)
        if result.value is not None or words not in lib.error():
            raise Failed(f"wanted {words!r}: {result.value}, {lib.error()}")
    for content, words in ((b"", ""), (b"PK\3\4", ""), (b'{"a": 1}', "")):
        if lib.open(content).value is not None or not lib.error() or words not in lib.error():
            raise Failed(f"{content}: {lib.error()}")
    lib.function("close")(model)


def capsule(managed):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(managed, ctypes.c_void_p), b"dltensor", None)


class Border:
    """What numpy.from_dlpack asks for."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, **_):
        return capsule(self.managed)

    def __dlpack_device__(self):
        return 1, 0


def check_numpy(installed):
    lib = Library(installed.library)
    model = lib.open(read(DIGITS))
    image = numpy.array(IMAGE, dtype=numpy.float32).reshape(1, 1, 8, 8)
    # what lies in memory the other way round, through numpy's own capsule
    turned = numpy.ascontiguousarray(image.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    given = turned.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.POINTER(Managed), [ctypes.py_object, ctypes.c_char_p]
    result = lib.run(model, [get(given, b"dltensor").contents.tensor])
    found = numpy.from_dlpack(Border(lib.function("result_tensor")(result, 0)))
    lib.function("result_free")(result)
    lib.function("close")(model)
    expect("shape", (found.shape, found.dtype), ((1, 10), numpy.dtype("float32")))
    if not numpy.allclose(found[0], installed.answer(), atol=1e-4):
        raise Failed(f"{found}")


def main():
    tally = Tally()
    checks = [check_symbols, check_c, check_cpp, check_failure, check_valgrind, check_ctypes, check_threads,
              check_refusals, check_numpy]
    with tempfile.TemporaryDirectory() as folder:
        installed = Installed(sys.argv[1], folder)
        for check in checks:
            if check is check_valgrind and shutil.which("valgrind") is None:
                print("valgrind: left out, it is not here")
                continue
            if check is check_numpy and numpy is None:
                print("numpy: left out, it is not here")
                continue
            try:
                check(installed)
                tally.ok()
            except (Failed, KeyError, ValueError) as problem:
                tally.bad(check.__name__, problem)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
