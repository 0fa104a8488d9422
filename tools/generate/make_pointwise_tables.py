# SPDX-License-Identifier: Apache-2.0
"""Writes tests/ops/pointwise_dtypes.def and pointwise_errors.def: what PyTorch 2.13 answers to
pointwise calls of every dtype, and its words when it refuses.

    python tools/generate/make_pointwise_tables.py

Calls are written as the C test reads them: `f32[2,3]` is a tensor of ones, numbers, True, None and
'text' are themselves, `name=value` is a keyword.
"""

import pathlib
import warnings

import torch

SHORT = {"b8": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
         "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
         "f64": torch.float64, "c64": torch.complex64}
REAL = [name for name in SHORT if name != "c64"]
NAMES = {dtype: name for name, dtype in SHORT.items()}
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "ops"
HEAD = ("// SPDX-License-Identifier: Apache-2.0\n// Made by tools/generate/make_pointwise_tables.py "
        "with PyTorch %s.\n// %s\n")

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor frac log log10
log1p log2 neg reciprocal relu relu6 round rsqrt sigmoid sign signbit sin sinh sqrt square tan tanh
trunc isnan isinf isfinite isposinf isneginf logical_not bitwise_not sgn gelu silu mish hardswish
hardsigmoid elu celu selu leaky_relu softplus softshrink hardshrink log_sigmoid glu nan_to_num logit
sinc deg2rad rad2deg lgamma""".split()
BINARY = """add.Tensor sub.Tensor mul.Tensor div.Tensor floor_divide remainder.Tensor fmod.Tensor
pow.Tensor_Tensor rsub.Tensor maximum minimum fmax fmin atan2 hypot copysign.Tensor eq.Tensor
lt.Tensor logical_and logical_xor bitwise_and.Tensor bitwise_xor.Tensor bitwise_left_shift.Tensor
bitwise_right_shift.Tensor logaddexp xlogy.Tensor heaviside gcd lcm prelu clamp_min.Tensor""".split()
SCALAR = """add.Scalar sub.Scalar mul.Scalar div.Scalar floor_divide.Scalar remainder.Scalar fmod.Scalar
pow.Tensor_Scalar rsub.Scalar eq.Scalar lt.Scalar bitwise_and.Scalar
bitwise_left_shift.Tensor_Scalar clamp_min clamp_max copysign.Scalar clamp hardtanh""".split()
TERNARY = ["addcmul", "addcdiv", "lerp.Tensor", "clamp.Tensor"]
CALLS = [(f"aten::{op}", "%s[2]") for op in UNARY] + [(f"aten::{op}", "%s[1] %s[1]") for op in BINARY]
CALLS += [(f"aten::{op}", "%s[2] " + number) for op in SCALAR for number in ("2", "2.5", "True")]
CALLS += [(f"aten::{op}", "%s[2] %s[2] %s[2]") for op in TERNARY]
CALLS += [("aten::where.self", "b8[2] %s[2] %s[]"), ("aten::where.ScalarOther", "b8[2] %s[2] 2.5"),
          ("aten::where.ScalarSelf", "b8[2] 2 %s[2]"), ("aten::masked_fill.Scalar", "%s[2] b8[2] 2"),
          ("aten::threshold", "%s[2] 0.5 2"), ("aten::round.decimals", "%s[2] decimals=1"),
          ("aten::div.Tensor_mode", "%s[2] %s[2] rounding_mode='floor'"),
          ("aten::div.Scalar_mode", "%s[2] 2.5 rounding_mode='trunc'"), ("aten::pow.Scalar", "2 %s[2]"),
          ("aten::pow.Scalar", "2.5 %s[2]"), ("aten::add.Tensor", "%s[2] %s[2] alpha=2.5"),
          ("aten::add.Tensor", "%s[2] i64[2]"), ("aten::add.Tensor", "%s[2] f32[]"),
          ("aten::add.Tensor", "%s[] f64[2]"), ("aten::mul.Tensor", "%s[] i32[2]"),
          ("aten::add_.Tensor", "%s[2] i64[2]"), ("aten::mul_.Scalar", "%s[2] 2.5"),
          ("aten::div_.Tensor", "%s[2] %s[2]"), ("aten::eq_.Tensor", "%s[2] f64[2]"), ("aten::exp_", "%s[2]"),
          ("aten::floor_divide_.Tensor", "%s[2] u8[2]"), ("aten::pow_.Scalar", "%s[2] 2.5")]
ERRORS = [("aten::add.Tensor", "f32[2,3] f32[4]"), ("aten::sub.Tensor", "b8[2] b8[2]"),
          ("aten::sub.Tensor", "b8[2] i64[2]"), ("aten::sub.Scalar", "b8[2] True"),
          ("aten::rsub.Scalar", "b8[2] 2"), ("aten::neg", "b8[2]"), ("aten::positive", "b8[2]"),
          ("aten::relu", "b8[2]"), ("aten::relu6", "b8[2]"), ("aten::hardtanh", "u8[2]"),
          ("aten::add.Tensor", "i64[2] i64[2] alpha=0.5"), ("aten::add.Tensor", "f32[2] f32[2] alpha=True"),
          ("aten::add.Tensor", "u8[2] u8[2] alpha=300"), ("aten::pow.Tensor_Scalar", "i64[2] -1"),
          ("aten::pow.Tensor_Scalar", "u8[2] 300"), ("aten::floor_divide.Scalar", "i64[2] 0"),
          ("aten::remainder.Scalar", "i32[2] 0"), ("aten::fmod.Scalar", "u8[2] 0"),
          ("aten::div.Scalar_mode", "i64[2] 0 rounding_mode='trunc'"),
          ("aten::div.Tensor_mode", "f32[2] f32[2] rounding_mode='up'"), ("aten::clamp", "f32[2]"),
          ("aten::clamp.Tensor", "f32[2]"), ("aten::clamp", "u8[2] 0 300"),
          ("aten::clamp_min", "i8[2] 128"), ("aten::masked_fill.Scalar", "f16[2] b8[2] -1000000000.0"),
          ("aten::masked_fill.Scalar", "f32[2] f32[2] 1"),
          ("aten::masked_fill.Tensor", "f32[2] b8[2] f32[2]"), ("aten::where.self", "f32[2] f32[2] f32[2]"),
          ("aten::where.ScalarOther", "b8[2] i8[2] 300"), ("aten::prelu", "f32[2,3] f32[2]"),
          ("aten::prelu", "f32[2,3] f64[3]"), ("aten::prelu", "f32[] f32[2]"), ("aten::glu", "f32[3]"),
          ("aten::glu", "f32[]"), ("aten::glu", "f32[4] 2"), ("aten::celu", "f32[2] 0"),
          ("aten::softshrink", "f32[2] -1"), ("aten::lerp.Scalar", "f32[2] f64[2] 0.5"),
          ("aten::addcdiv", "i64[2] i64[2] i64[2]"), ("aten::heaviside", "f32[2] f64[2]"),
          ("aten::gelu", "f32[2] approximate='fast'"), ("aten::add_.Tensor", "f32[2] f32[3,2]"),
          ("aten::add_.Tensor", "i64[2] f32[2]"), ("aten::div_.Scalar", "i64[2] 2"),
          ("aten::bitwise_and.Scalar", "f32[2] 1"), ("aten::sqrt_", "i32[2]"),
          ("aten::threshold", "u8[2] 1 300")]


def decode(text):
    name, _, shape = text.partition("[")
    if name in SHORT and shape:
        return torch.ones([int(n) for n in shape[:-1].split(",") if n], dtype=SHORT[name])
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if text[0] == "'":
        return text[1:-1]
    return float(text) if "." in text or "e" in text else int(text)


def call(op, text):
    args, kwargs = [], {}
    for item in text.split():
        name, equals, value = item.partition("=")
        if equals:
            kwargs[name] = decode(value)
        else:
            args.append(decode(item))
    base, _, overload = op[6:].partition(".")
    result = getattr(getattr(torch.ops.aten, base), overload or "default")(*args, **kwargs)
    return result[0] if isinstance(result, tuple) else result


def dtype_rows():
    for op, text in CALLS:
        results = []
        for name in REAL:
            try:
                results.append(NAMES[call(op, text.replace("%s", name)).dtype])
            except (RuntimeError, NotImplementedError):
                results.append("-")
        yield f'DTYPES("{op}", "{text}", "{" ".join(results)}")'


def error_rows():
    for op, text in ERRORS:
        try:
            call(op, text)
        except (RuntimeError, NotImplementedError, IndexError) as error:
            words = str(error).split("\n")[0].replace("\\", "\\\\").replace('"', '\\"')
            yield f'ERROR("{op}", "{text}", "{words}")'
        else:
            raise SystemExit(f"{op} {text} does not fail")


def write(name, what, rows):
    (FOLDER / name).write_text(HEAD % (torch.__version__.split("+")[0], what)
                               + "".join(row + "\n" for row in rows), encoding="utf-8")


def main():
    warnings.simplefilter("ignore")
    write("pointwise_dtypes.def",
          "DTYPES(overload, call, result dtype\n"
          f"// for %s = {' '.join(REAL)}; - is a failure)", dtype_rows())
    write("pointwise_errors.def", "ERROR(overload, call, message)", error_rows())


if __name__ == "__main__":
    main()
