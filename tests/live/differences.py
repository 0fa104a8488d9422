# SPDX-License-Identifier: Apache-2.0
"""When two results agree, for differential.py, and which differences from PyTorch stay."""

import itertools
import math
import re

import torch
from make_goldens import TOLERANCE, UNSTABLE
from random_graphs import FLOATS, Call, Case, fill, map_leaves, refs_in, tensors_in

PRODUCTS = ("conv", "mm", "matmul", "linear", "mv", "einsum", "tensordot", "dot", "attention", "bilinear",
            "pinv", "matrix_power", "multi_dot", "inner", "outer", "ger", "addr", "cosine", "cdist",
            "kron", "vander", "baddbmm", "cov", "corrcoef", "lstsq", "encoder_layer")

FACTORED = {"aten::linalg_lu", "aten::linalg_lu_factor", "aten::linalg_lu_factor_ex", "aten::slogdet",
            "aten::linalg_slogdet", "aten::_linalg_slogdet", "aten::_linalg_det", "aten::linalg_cond",
            "aten::linalg_cholesky_ex", "aten::linalg_inv_ex", "aten::linalg_solve_ex",
            "aten::_linalg_solve_ex"}

# Differences that stay: a pattern of "kind, overload: words", and why.
KNOWN = {
    r"accepted, .*not implemented for": "PyTorch has no kernel for this dtype; the operator has a "
    "meaning for it",
    r"differs.*(_fft_|fft_|stft).*is -?(nan|inf)": "what becomes of a NaN or an "
    "infinity depends on the order in which a transform adds",
    r"differs in place, aten\.(mul|multiply)_\.Scalar": "PyTorch rounds the number to the half dtype in this "
    "overload alone; x.mul_(2.5) is mul_.Tensor",
    r"differs.*native_group_norm": "PyTorch reads strided weights as if they were dense",
    r"refused with 400, aten\.(inner|tensordot)\..*Bool": "PyTorch's dot of bools depends on strides",
    r"refused with 400, aten\.adaptive_avg_pool.*(not implemented for|Expected (3D or 4D|4D or 5D))":
    "PyTorch takes the mean where all sizes are 1",
    r"refused with 400, aten\.conv_transpose.*Output size is too small": "PyTorch lets some of "
    "its kernels make nothing",
    r"accepted, .*pad([123]d)?\..*possibly 0 batch size": "PyTorch refuses images without channels",
    r"accepted, layers, .*InstanceNorm.*select\(\)": "PyTorch looks at the first of no images",
    r"accepted, .*take_along_dim.*view size is not compatible": "PyTorch flattens by view",
    r"refused with 400, aten\.(kthvalue|median|mode|topk|sort)\..*Bool": "PyTorch takes a bool of no "
    "dimensions only",
    r"layers differ, <built-in function pow>": "PyTorch's powers of halfs of negative numbers",
    r"refused with 400, aten\.lu_unpack.*not implemented for": "PyTorch unpacks integers as well",
    r"refused with 400, aten\.histogram\..*(Half|BFloat16)": "PyTorch counts in the half dtype",
    r"refused with 400, aten\.gradient\.tensorarray.* coordinates for": "PyTorch spreads coordinates that "
    "are too few",
    r"refused with 400, fxserve\.weight_int4pack_mm_for_cpu.*uint8": "what stands for PyTorch in these tests "
    "takes other integers",
    r"differs.*weight_int[48]pack_mm": "PyTorch reads scales with gaps as if there were none",
    r"scaled_dot_product_attention.*PyTorch has nan": "rows without keys: PyTorch multiplies what it "
    "masks by zero",
    r"differs.*scaled_dot_product_attention.*is nan, PyTorch has 0\.0": "rows whose scores are all NaN: "
    "PyTorch's maximum drops NaN beyond whole vectors of keys, and takes the row for one without keys",
    r"differs.*scaled_dot_product_attention.*: \w+ \[\d+, .*PyTorch has \w+ \[1, ": "PyTorch's kernel takes "
    "the batch of the query, and of larger keys and values only the first item",
    r"differs.*cosine_similarity.*PyTorch has -?0\.0": "PyTorch's norm of float32 overflows",
    r"refused with 400, aten\.(expand|as_strided)\..*negative dimension": "PyTorch makes "
    "tensors of -3 elements",
    r"refused with 400, aten\.fill_diagonal_.*out of bounds": "PyTorch writes beyond the tensor",
    r"accepted, .*adaptive_max_pool[123]d.*non-zero size": "no channels",
    r"differs.*aten\.(lerp|cumulative_trapezoid|trapezoid).*is -?inf": "sums that leave the range on the "
    "way, or do not, by their order",
    r"refused with 400, aten\.full\..*type Bool": "PyTorch fills bools with complex numbers",
    r"refused with 400, aten\.(max\.dim|min\.dim|narrow\.default).*must be int": "PyTorch takes a tensor of "
    "one element for a number",
    r"refused with 400, aten\.binary_cross_entropy\..*is deprecated": "PyTorch warns of it where a call "
    "comes from Python",
    r"refused with 400, aten\.(diff|linalg_vecdot)\..*Dimension out of range": "PyTorch does not look at dim",
    r"refused with 400, aten\._?pad\w*\.*.*is too small": "PyTorch allows no rows",
    r"refused with 400, aten\.cross_entropy_loss.*smoothing must be": "PyTorch smooths above 0 only",
    r"accepted, .*cholesky_inverse.*singular": "infinities",
    r"accepted, .*avg_pool3d.*smaller than kernel": "the window fits with its padding",
    r"accepted, .*isin.*: Bool": "a bool among bools",
    r"accepted, .*quant_m(in|ax) out of bounds": "bounds that are tensors are known when they are read",
    r"accepted, .*batch_norm.*Dimension out of range": "no elements and no channels",
    r"layers differ.*is nan, PyTorch has -?inf": "the order of sums of infinities",
    r"differs.*isin\.Scalar_Tensor": "a number that the dtype cannot hold: PyTorch cuts it among few "
    "elements, and not among ten",
    r"accepted, .*quantize_per_tensor.*converted to Scalar": "bounds of the other direction",
    r"accepted, .*conv_tbc.*view size is not compatible": "PyTorch views what it may not",
    r"differs.*special_zeta.*PyTorch has nan": "PyTorch's series of a huge exponent is 0 times infinity",
    r"differs.*aten\._int_mm": "PyTorch takes expanded matrices for dense ones",
    r"refused with 400, aten\.cum(max|min)\..*Dimension out of range": "PyTorch does not look at dim where "
    "there are no elements",
    r"accepted, .*_batch_norm_legit\.no_stats.*Dimension out of range": "no elements and no channels",
    r"accepted, .*weight_int[48]pack_mm.*contiguous": "PyTorch asks for a layout",
    r"accepted, .*pad.*narrow\(\): length": "PyTorch cuts one side before it adds the other",
    r"accepted, .*trapezoid\.dx.*real number": "a bool for a step",
    r"refused with 400, aten\.(cumulative_)?trapezoid\.x.*at least one dimension": "PyTorch takes no steps "
    "then, of whatever size",
    r"refused with 400, aten\.\w*trapezoid\..*bool": "PyTorch does not look at the dtype of what is empty",
    r"refused with 400, aten\.logspace\..*without overflow": "PyTorch does not look at the base of tensors",
    r"differs.*_weight_norm_interface": "PyTorch's kernel takes weights of any strides for contiguous ones",
    r"accepted, .*logspace.*value cannot be converted": "powers that overflow: they are infinite here",
    r"refused with 400, aten\.affine_grid_generator.*same dtype": "matrices of integers",
    r"accepted, .*(group_norm.*is_contiguous|pool.*Unsupported memory format|Can't "
    r"detach views)": "PyTorch asks for a layout, or for gradients' sake",
    r"refused with 400, aten\.(conv|instance_norm|batch_norm|native_|_native_).*(bias "
    r"type|mixed dtype)": "PyTorch's kernels differ in whether they ask",
    r"refused with 400, aten\.native_group_norm": "internal to group_norm, which checks",
    r"refused with 400, aten\.(_native_batch_norm\w*|"
    r"native_batch_norm)\..*expected 2D or higher": "internal to batch_norm, which checks",
    r"refused with 400, aten\.cum(sum|prod)_.*Bool": "PyTorch takes a bool of no dimensions only",
    r"more than one element of the written-to tensor refers": "PyTorch lets some operators write to expanded "
    "tensors; what comes out is up to their loops",
    r"refused with 400, aten\.(_local_scalar_dense|sym_constrain_range\w*|_reshape_alias|"
    r"_batch_norm_no_update|_assert_\w+|_pad_circular|_fused_rms_norm|_embedding_bag|"
    r"_adaptive_avg_pool[23]d)\.": "checked here, not there",
    r"refused with 400, aten\.\w*batch_norm\w*\..*should contain": "PyTorch reads beyond the tensor",
    r"refused with 400, .*negative padding leaves": "PyTorch reads what it has not written",
    r"refused with 400, aten\.batch_norm\..*must be defined in evaluation mode": "PyTorch does not look at "
    "its arguments where there are no elements",
    r"refused with 400, aten\.fractional_max_pool.*sizes of windows must be": "PyTorch takes the largest of "
    "windows without elements, -inf",
    r"refused with 400, aten\.conv.*expected scalar type": "PyTorch does not look at the dtype where there "
    "are no channels",
    r"scaled_dot_product_attention.*must agree in their last size": "PyTorch reads beyond the values, "
    "or less than the keys",
    r"refused with 400, aten\.linear\..*must have the same dtype": "PyTorch adds a bias of any "
    "dtype to a vector",
    r"differs.*native_layer_norm.*result 1": "the saved mean where there are infinities: up to "
    "the order of sums",
    r"refused with 400, aten\._weight_norm.*g has": "PyTorch reads beyond g, or less than all of it",
    r"differs.*(norm|distance|aten\.dist).*PyTorch has (inf|-?0\.0)": "PyTorch's sums of powers "
    "overflow or vanish on the way",
    r"accepted, .*embedding_bag.*(offsets\[-1\] can|Index \d+ of input|idx to be)": "PyTorch reads strided "
    "indices as if they were dense",
    r"refused with 400, aten\.(lin|log)space.*Bool": "PyTorch fills up to one step with any dtype",
    r"differs( in place)?, aten\.logspace\S*: element \d+ of \d+ is -?\d+,": "powers beyond the integer's "
    "range",
    r"refused with 4\d\d, aten\.(linalg_)?matrix_exp.*(Half|BFloat16)": "PyTorch's result in halves is "
    "not the exponential",
    r"refused with 400, aten\.cholesky\..*(they are \d* ?by|at least 2 dim)": "PyTorch does not look at "
    "empty ones",
    r"refused with 400, aten\.lu_unpack.*do not fit": "PyTorch does not look at pivots of empty matrices",
    r"refused with 400, aten\._(transformer_encoder_layer_fwd|native_multi_head_attention)": "internal to "
    "the layer, which checks",
    r"accepted, .*batch_norm.*at least one element": "means of nothing are NaN",
    r"accepted, .*_linalg_check_errors.*is_contiguous": "PyTorch asks to be told of it",
    r"differs.*_native_batch_norm_legit\.no_stats: result 0": "PyTorch reads a strided bias as if it were "
    "dense",
    r"refused with 400, .*'UInt(16|32|64)'": "the wider unsigned integers are stored, moved and cast",
    r"accepted, .*histc.*type c10::Half without overflow": "bounds that a half cannot hold, of halves",
    r"accepted, .*isin.*view size is not compatible": "PyTorch flattens by view",
    r"accepted, .*_fft_r2c.*(INTERNAL ASSERT|duplicate dims)": "PyTorch asks to be told of it, and counts "
    "dimensions from the front",
    r"accepted, .*_grouped_mm.*(Invalid strides|strides should be multiple of 16)": "PyTorch asks for a "
    "layout",
    r"refused with 400, aten\.ctc_loss.*is none of the": "PyTorch reads beyond the probabilities",
    r"refused with 400, aten\.norm_except_dim.*out of range": "PyTorch takes -2 for a dimension",
    r"refused with 400, aten\._?embedding_bag.*must not decrease": "PyTorch reads beyond the indices",
    r"refused with 400, aten\.pad.*resulting in an empty": "PyTorch allows it where it was empty before",
    r"differs.*(linalg_cond.*PyTorch has inf|triplet_margin.*PyTorch has (inf|nan))": "PyTorch's sums of "
    "powers overflow on the way",
    r"refused.*torchvision\.\w*roi.*(names image|of 4 dimensions|Tensor\[K, 5\])": "torchvision reads "
    "beyond its arguments",
    r"accepted, .*deform_conv2d.*size of mask": "a mask that nothing reads",
    r"refusals differ, .*names image": "values are checked when the region runs, shapes before",
    r"accepted, .*torchao.*int too big to convert": "levels that Python's own conversion refuses",
    r"addbmm_.*doesn't match the broadcast shape": "PyTorch resizes what it writes to",
    r"differs( in place)?, aten\.(r?sub|subtract|add)\.\w+: element \d+ of \d+ is -?inf, .* \S+e\+38":
    "PyTorch multiplies by alpha and adds in one step, which does not overflow on the way",
    r"differs.*_transformer_encoder_layer_fwd.*(e\+(1[89]|[23]\d)|PyTorch has nan)": "norms of numbers whose "
    "squares overflow",
    r"refused with 400, aten\._?embedding_bag.*found idx to be": "PyTorch does not look at indices of rows "
    "without elements",
    r"refused with 400, aten\.linalg_lu_factor\w*\..*not implemented for": "PyTorch factors integers "
    "without elements",
    r"accepted, .*_weight_norm\..*tensor has no dimensions": "a norm of one number",
    r"accepted, .*INTERNAL ASSERT FAILED": "PyTorch asks to be told of it",
    r"refused with 400, aten\.(linalg_)?matmul\.default.*to have the same dtype": "PyTorch does not look "
    "at dtypes where a product has no elements",
    r"refused with 400, aten\._pdist_forward\.": "internal to pdist, which checks",
    r"_trilinear": "internal to bilinear, which gives it no such dimensions",
    r"refused with 400, aten\.(lstm|gru|rnn_tanh|rnn_relu)\S*:": "weights and states whose shapes or dtypes "
    "do not belong together: PyTorch asks in the steps that see them",
    r"refused with 400, aten\.grid_sampler\S*: .*unknown interpolation_mode": "PyTorch takes unknown "
    "modes for the last one",
    r"refused with 400, aten\.(huber|soft_margin)_loss.*reduction is": "PyTorch takes unknown "
    "reductions for none",
    r"differs, aten\.nll_loss2d_forward": "unknown reductions",
    r"refused with 400, aten\.linalg_lstsq.*should match other\.size\(-1\)": "PyTorch takes the rows of a "
    "matrix on the right for a batch",
    r"accepted, .*logsumexp.*match the broadcast shape": "dim=[] means all, in half of PyTorch's steps",
    r"accepted, .*fake_quantize.*without overflow": "a scale that float32 cannot hold",
    r"refused with 400, aten\.scaled_dot_product_attention.*dropout probability": "PyTorch takes those below "
    "0 for none",
    r"refused with 400, aten\.fractional_max_pool.*not implemented for": "PyTorch makes results without "
    "elements of any dtype",
    r"refused with 400, aten\.linalg_lstsq.*an rcond that drops more": "a limit of this version",
    r"accepted, .*(fake_quantize_per_channel.*(zero_point|INTERNAL ASSERT)|Scale must be|Zero-point must be)":
    "zero points are values that only a run knows; other dtypes have a meaning",
    r"accepted, .*aten\.kron.*view size is not compatible": "PyTorch views what it has permuted",
    r"refused with 400, .*complex32": "PyTorch's support of complex32 is partial",
    r"accepted, .*MKL FFT error": "a limit of that library",
    r"refused with 400, aten\._upsample_\w+_aa.*not implemented for": "PyTorch copies images of any dtype "
    "that keep their size",
}


def resizes_one_column(case, overload):
    calls = [call for call in getattr(case, "calls", []) if str(call.overload) == overload]
    return bool(re.search(r"_upsample_\w+_aa", overload)) and any(
        case.run()[call.name].shape[-1] == 1 for call in calls)


def strides_targets(case, overload):
    """Whether ctc_loss has targets in one row with gaps."""
    if not overload.startswith("aten.ctc_loss"):
        return False
    env = {**case.inputs, **case.run()}
    targets = [env[ref] for call in case.calls if str(call.overload) == overload
               for ref in refs_in(call.args[1])]
    return any(tensor.dim() == 1 and not tensor.is_contiguous() for tensor in targets)


def is_known(case, finding):
    """Whether the difference is one that stays."""
    differs = "differ" in finding.kind and finding.kind != "refusals differ"
    not_finite = re.search(r"(is|PyTorch has) -?(nan|inf)", finding.words) is not None
    if ("conv" in finding.overload and differs and not_finite
        and not all(tensor.isfinite().all() for tensor in case.inputs.values())):
        return True  # padding and the gaps of transposed convolutions are zeros here, and 0 * inf is NaN
    if is_known_of_matrices(case, finding, differs):
        return True
    if finding.kind == "refusals differ" and any(
            re.search("nonzero|masked_select|unique|item|repeat_interleave", str(call.overload))
            for call in getattr(case, "calls", [])):
        return True  # what depends on values is checked when the graph comes to it
    nodes = re.findall(r"\b4\d\d n(\d+) ", finding.words)
    if finding.kind == "refusals differ" and len(nodes) == 2 and int(nodes[0]) < int(nodes[1]):
        return True  # shapes are checked before a region runs, its values when it does
    numbers = [number for call in getattr(case, "calls", [])
               for number in floats_in([call.args, call.kwargs])]
    if "norm" in finding.overload and any(map(math.isnan, numbers)):
        return True  # a norm of order NaN: of one element PyTorch takes its size
    if (any(word in finding.overload for word in PRODUCTS) and finding.kind.startswith("differs")
        and not all(map(math.isfinite, numbers))):
        return True  # an infinite alpha or beta: PyTorch multiplies with it before or after the sum
    if finding.kind.startswith("differs") and resizes_one_column(case, finding.overload):
        return True  # PyTorch takes the weights of the first row for all rows
    if finding.kind.startswith("differs") and strides_targets(case, finding.overload):
        return True  # PyTorch counts the targets of a row as if they had no gaps
    tensors = [*case.inputs.values(), *operands_of(case, finding.overload)]
    huge = any((tensor.double().abs() > 1e15).any() for tensor in tensors if tensor.is_floating_point())
    if huge and any(word in finding.overload
                    for word in PRODUCTS) and "inf" in finding.words and "differ" in finding.kind:
        return True  # sums that leave the range on the way, or do not, by their order
    scaled = re.search("(batch|group|instance)_?norm", finding.overload.lower()) is not None
    if huge and (scaled or not_finite and "norm" in finding.overload.lower()) and "differ" in finding.kind:
        # scale and shift first, or the difference from the mean first: they differ by a rounding of
        # what is huge. Of other norms only sums that leave the range on the way
        return True
    if huge and "fft" in finding.overload.replace("stft", "fft") and "differ" in finding.kind:
        return not_finite or is_rounding_of_largest(case, finding)
    if (not_finite and differs and re.search("upsample_|Upsample|Pool", finding.overload)
        and leaves_the_range(case, finding.overload)):
        return True  # windows: PyTorch weighs columns first, and adds row by row
    if (huge and not_finite and finding.kind.startswith("differs")
        and re.search(r"\.(rnn_|lstm|gru|scaled_dot_product_attention)", finding.overload)):
        return True  # a product that leaves the range before a sum, or does not in a fused one
    empty = any(tensor.numel() == 0 for tensor in case.inputs.values())
    if (empty and finding.kind.startswith("refused")
        and re.search("not implemented for|expected scalar type|attention|conv|no_stats|out of bounds|"
                      "should contain|non-zero size", str(finding))):
        # PyTorch does not look at the dtype of what is empty, nor at the mask where there are no
        # keys, nor at places in nothing
        return True
    return any(re.search(pattern, str(finding)) for pattern in KNOWN)


def operands_of(case, overload):
    """The tensors that the calls of this overload read; the inputs of a graph of layers."""
    if not hasattr(case, "calls"):
        return list(case.inputs.values())
    env, found = {name: tensor.clone() for name, tensor in case.inputs.items()}, []
    for call in case.calls:
        if str(call.overload) == overload:
            found += [tensor.clone() for tensor in tensors_in(fill([call.args, call.kwargs], env))]
        try:
            env[call.name] = call.run(env)
        except Exception:  # the call that PyTorch refuses is the last one
            break
    return found


def is_known_of_matrices(case, finding, differs):
    """Which elements an infinity reaches, or a huge one hides, depends on the order of the steps. Of
    a matrix with NaN or infinities LAPACK sometimes makes NaN, sometimes numbers, and sometimes it
    finds that it does not converge, by size and place: eigenvalues are NaN here, singular values
    refused."""
    matrices = r"linalg|det|inverse|cholesky|triangular|lu_|qr|svd|eig|matrix_|nuclear"
    if not re.search(matrices, finding.overload):
        return False
    operands = operands_of(case, finding.overload)
    finite = all(tensor.isfinite().all() for tensor in operands)
    refused = re.search("non-finite values|failed to converge| is zero|is singular", finding.words)
    if refused and (not finite or operands and is_singular(operands[0])):
        return True
    if "lstsq" in finding.overload and differs and loses_rank(case, finding.overload):
        return True
    return differs and not all((tensor.double().abs() < 1e15).all() for tensor in operands)


def is_singular(matrices):
    """Whether an inverse has nothing but rounding to divide by. Of tensorinv a matrix in more dimensions."""
    if matrices.dim() < 2 or matrices.shape[-1] != matrices.shape[-2]:
        matrices = matrices.reshape(math.isqrt(matrices.numel()), -1)
    return has_dependent_columns(matrices, whole=True)


def loses_rank(case, overload):
    """Whether PyTorch's lstsq finds less rank than there is: it gives LAPACK pivots that it has not
    initialised, which LAPACK may take for a choice of columns."""
    results = {**case.inputs, **case.run()}
    for call in case.calls:
        if str(call.overload) == overload:
            matrices, rcond = fill(call.args[0], results), call.args[2] if len(call.args) > 2 else None
            rtol = max(matrices.shape[-2:]) * torch.finfo(matrices.dtype).eps if rcond is None else rcond
            if (results[call.name][2] < torch.linalg.matrix_rank(matrices.double(), rtol=rtol)).any():
                return True
    return False


def leaves_the_range(case, overload):
    """Whether a sum of a few finite operands may be infinite."""
    return any((tensor.abs() > torch.finfo(tensor.dtype).max / 32)[tensor.isfinite()].any()
               for tensor in operands_of(case, overload) if tensor.is_floating_point())


def is_rounding_of_largest(case, finding):
    """Whether the numbers of a finding differ by no more than a rounding of the sum of all inputs."""
    values = re.search(r"is (\S+), PyTorch has (\S+) ", finding.words)
    total = sum(float(tensor.double().nan_to_num(0, 0, 0).abs().sum()) for tensor in case.inputs.values()
                if tensor.is_floating_point())
    try:
        return abs(complex(values[1].strip("()")) - complex(values[2].strip("()"))) <= 1e-5 * total
    except (TypeError, ValueError):
        return False


def difference(got, want, loose=1.0):
    """None, or how the tensors differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{str(got.dtype)[6:]} {list(got.shape)}, PyTorch has {str(want.dtype)[6:]} {list(want.shape)}"
    rtol, atol = TOLERANCE.get(want.dtype, (0.0, 0.0))
    a, b = got.reshape(-1), want.reshape(-1)
    if not want.is_floating_point():
        wrong = a != b
    else:
        x, y = a.double(), b.double()
        close = (x == y) | ((x - y).abs() <= loose
                            * (atol + rtol * y.abs())) & y.isfinite() | (x.isnan() & y.isnan())
        wrong = ~close
    if not wrong.any():
        return None
    # A difference of finite numbers is shown before one that is infinite on one side: rules about
    # NaN and infinities shall hide none.
    finite = wrong & a.isfinite() & b.isfinite()
    at = int((finite if finite.any() else wrong).nonzero()[0])
    return (f"element {at} of {wrong.numel()} is {a[at].item()!r}, PyTorch has {b[at].item()!r} "
            f"({int(wrong.sum())} differ)")


def as_doubles(value, integers=False):
    def double(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.double() if leaf.is_floating_point() or integers else leaf
        return torch.float64 if isinstance(leaf, torch.dtype) and leaf.is_floating_point else leaf

    return map_leaves(double, value)


def no_worse(call, env, pick, got, want):
    """Whether `got` is about as near to the result of float64 operands as PyTorch's `want`."""
    if not want.is_floating_point() or got.dtype != want.dtype or got.shape != want.shape:
        return False
    bessel = re.search(r"special_bessel_[jy][01]\.", str(call.overload)) is not None
    try:
        wide = Call(call.name, call.overload, as_doubles(call.args), as_doubles(call.kwargs))
        doubles = {name: as_doubles(value, bessel) for name, value in env.items()}
        exact = pick(wide.run(doubles)).double()
        if exact.shape != got.shape:
            return False
    except Exception:  # an operator that takes no float64 here
        return (any(word in str(call.overload) for word in PRODUCTS)
                and is_plain_rounding(call, {"": want}, {"": got}, [("", None)]))
    x, y, rtol_atol = got.double(), want.double(), TOLERANCE[want.dtype]
    # exponentials of large scores, and steps of large sums
    times = 10 if re.search("attention|encoder_layer|rnn|lstm|gru", str(call.overload)) else 1
    if "fft" in str(call.overload).replace("stft", "fft"):  # a sum of all operands
        finite = [tensor[tensor.isfinite()].double().abs() for tensor in tensors_in(list(env.values()))]
        rtol_atol = (rtol_atol[0], rtol_atol[1] + rtol_atol[0] * max(
            (float(tensor.max()) for tensor in finite if tensor.numel()), default=0.0))
    slack = times * (rtol_atol[1] + rtol_atol[0] * exact.abs()) + 4 * (y - exact).abs()
    summed = re.match(r"aten\.(conv\w*|\w*mm)\.", str(call.overload)) is not None
    if summed and want.dtype in (torch.float32, torch.float64):
        # Terms that cancel each other: a rounding of their sizes. (PyTorch's own errors are as large.)
        sizes = pick(wide.run({name: value.abs() for name, value in doubles.items()}))
        slack = slack + 2 * torch.finfo(want.dtype).eps * sizes
    slack = slack + conditioned(call, doubles, exact) * torch.finfo(want.dtype).eps
    if bessel:
        slack = slack + 9e-7  # PyTorch's series, also in float64; ours are exact: tests/ops/pointwise.c
    fine = (x == exact) | (x == y) | (x.isnan() & (y.isnan() | exact.isnan())) | ((x - exact).abs() <= slack)
    over = exact.abs() >= torch.finfo(want.dtype).max  # sums that leave the range on the way
    return bool((fine | over & ~x.isfinite()).all())


def conditioned(call, env, exact):
    """By how many units a result moves when its operands do: terms that cancel each other in a cross
    product, and the norm of a matrix, which its exponential is conditioned by."""
    operands = tensors_in(fill([call.args, call.kwargs], env)) if exact.numel() else []
    if operands and re.search(r"aten\.(linalg_)?cross\.", str(call.overload)):
        dim = call.kwargs.get("dim", call.args[2] if len(call.args) > 2 else None)
        if dim is None:  # cross takes the first of size 3
            dim = -1 if "linalg" in str(call.overload) else exact.shape.index(3)
        return 4 * operands[0].abs().amax(dim, True) * operands[1].abs().amax(dim, True)
    if operands and "matrix_exp" in str(call.overload):
        return 8 * operands[0].abs().sum(-2).max() * exact.abs().max()
    return 0.0


def is_no_worse_in_place(inputs, calls, problems, want, got):
    """Whether only what the last call made or wrote differs, and is no worse, for the operands that
    the call found."""
    call = calls[-1]
    if call.overload is None or not isinstance(want[call.name], torch.Tensor):
        return False
    made = want[call.name].untyped_storage().data_ptr()
    if any(want[name].untyped_storage().data_ptr() != made for name, _ in problems):
        return False
    before = Case(inputs, calls[:-1], []).run()
    known = {name: before[name] for name in refs_in([call.args, call.kwargs])}
    return no_worse(call, known, lambda result: result, got[call.name], want[call.name])


def is_undefined(call, env, result):
    """Results that another implementation cannot be held to: floats as integers beyond their range,
    the order of equal elements."""
    operands = tensors_in(fill([call.args, call.kwargs], env))
    if call.overload is None:
        return False
    name = call.overload._schema.name
    if name in ("aten::as_strided", "aten::as_strided_copy", "aten::_reshape_alias"):
        return True  # reads what lies between the elements
    if name in ("aten::linalg_qr", "aten::qr"):  # a basis is free where the rank is not full
        if not operands[0].isfinite().all():
            return True
        front = operands[0][..., : operands[0].shape[-2]]  # the columns that the basis is made of
        return bool((torch.linalg.matrix_rank(front, rtol=1e-4) < min(front.shape[-2:])).any())
    if name in FACTORED:
        whole = name.endswith(("det", "cond", "cholesky_ex", "inv_ex", "solve_ex"))
        return (has_dependent_columns(operands[0], whole)
                or "linalg_lu" in name and has_tied_pivots(operands[0]))
    if "matrix_rank" in name and (len(call.args) > 1 or call.kwargs):  # a tolerance below the noise
        return has_dependent_columns(operands[0], True)
    if name == "aten::_grouped_mm" and len(operands) == 3 and operands[0].dim() != operands[1].dim():
        return leaves_out_a_row(operands)  # of memory that nobody writes
    if "embedding_bag" in name and not all(tensor.is_contiguous() for tensor in operands[1:3]):
        return True  # PyTorch reads them as if they were dense
    if name == "aten::as_strided_scatter" and len(call.args) > 4 and call.args[4]:
        return True  # counted in the storage that a view has in PyTorch alone
    if name == "aten::as_strided_scatter":
        places = {sum(i * stride for i, stride in zip(at, call.args[3]))
                  for at in itertools.product(*map(range, call.args[2]))}
        return len(places) != operands[1].numel()  # a place that is written twice
    if name in ("aten::median", "aten::nanmedian") and len(call.args) > 1:
        dim, self = call.args[1], operands[0]
        if self.dim() > 0 and self.shape[dim] > 1 and self.stride(dim) == 0:
            return True  # PyTorch reads beyond the tensor
    if name == "aten::mode" and bool(operands[0].isnan().any()):
        return True  # its sort takes NaN for equal to every number
    if name in UNSTABLE and any(tensor.numel() != tensor.unique().numel() for tensor in operands):
        return True
    kinds = {tensor.dtype for tensor in tensors_in([result]) if not tensor.is_floating_point()
             and tensor.dtype != torch.bool}
    if call.writes():
        kinds |= {operands[0].dtype} - {torch.bool, *FLOATS}
    for dtype in kinds:
        info = torch.iinfo(dtype)
        for tensor in operands:
            if tensor.is_floating_point() and not ((tensor > float(info.min) - 1)
                                                   & (tensor < float(info.max))).all():
                return True
        for number in floats_in([call.args, call.kwargs]):
            if not info.min - 1 < number < info.max:
                return True
    return False


def has_dependent_columns(matrices, whole):
    """Whether a pivot is zero but for rounding: which one, and what stands beside it, is a matter of
    the steps. So are sign and logarithm of a determinant, and a condition number (`whole`). PyTorch
    multiplies by the reciprocal of a pivot, so that equal rows leave a difference; fxserve divides."""
    if not matrices.is_floating_point():  # taken only without elements
        return False
    if not matrices.isfinite().all():
        return True
    front = matrices.double()
    if not whole:
        front = front[..., : matrices.shape[-2]]
    if not whole and front.shape[-1] == front.shape[-2]:
        front = front[..., :-1]  # the last pivot of a square matrix divides nothing
    noise = 8 * max(front.shape[-2:]) * torch.finfo(matrices.dtype).eps
    return front.numel() > 0 and bool((torch.linalg.matrix_rank(front, rtol=noise)
                                       < min(front.shape[-2:])).any())


def has_tied_pivots(matrices):
    """Whether a factorisation meets two rows whose candidates for a pivot differ by rounding alone: each
    is as good. (In the first column nothing has been rounded, and the upper row is taken.)"""
    if matrices.numel() == 0:
        return False
    noise = 8 * max(matrices.shape[-2:]) * torch.finfo(matrices.dtype).eps
    for matrix in matrices.double().reshape(-1, *matrices.shape[-2:]):
        rest = matrix.clone()
        for step in range(min(matrix.shape) - 1):
            sizes = rest[:, 0].abs()
            best = int(sizes.argmax())
            near = sizes >= sizes[best] - noise * matrix.abs().max()
            if step > 0 and int(near.sum()) > 1:
                return True
            rest[[0, best]] = rest[[best, 0]]
            rest = rest[1:, 1:] - rest[1:, :1] * (rest[:1, 1:] / rest[0, 0])
    return False


def leaves_out_a_row(operands):
    """Whether the groups of a _grouped_mm reach less than all rows (or columns) of the result."""
    a, b, offs = operands
    written = torch.zeros(a.shape[0] if a.dim() == 2 else b.shape[1], dtype=torch.bool)
    for start, end in itertools.pairwise([0, *offs.tolist()]):
        written[start:end] = True
    return not bool(written.all())


def floats_in(value):
    found = []
    map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, float) else None, value)
    return found


def placed_like(ours, theirs):
    """Our values with the strides that PyTorch's result has, expanded where it is."""
    if (not isinstance(theirs, torch.Tensor) or ours.shape != theirs.shape or ours.is_contiguous()
        and theirs.is_contiguous()):
        return ours
    first = ours[tuple(slice(0, 1 if stride == 0 else None) for stride in theirs.stride())]
    placed = torch.empty_strided(first.shape, theirs.stride(), dtype=ours.dtype).copy_(first)
    return placed.expand(theirs.shape)


def reads_what_it_writes(call, env):
    """A product, norm, scatter or index_reduce whose operand is written: what PyTorch gives
    depends on the order of its loops."""
    operands = tensors_in(fill([call.args, call.kwargs], env))
    storages = [tensor.untyped_storage().data_ptr() for tensor in operands if tensor.numel()]
    words = (*PRODUCTS, "norm", "scatter", "index_reduce")
    return any(word in str(call.overload) for word in words) and len(set(storages)) < len(storages)


def is_plain_rounding(call, want, got, problems):
    """Sums of large numbers: off by no more than a few units of the largest element."""
    for name, _ in problems:
        a, b = got[name], want[name]
        if a.dtype != b.dtype or a.shape != b.shape or not b.is_floating_point():
            return False
        largest = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
        near = torch.isclose(a.double(), b.double(), rtol=0, atol=4 * TOLERANCE[b.dtype][0] * largest,
                             equal_nan=True)
        top = torch.finfo(b.dtype).max / 4
        if not (near | (a.abs() > top) & (b.abs() > top)).all():
            return False
    return True
