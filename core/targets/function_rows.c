// SPDX-License-Identifier: Apache-2.0
// function_rows.c: torch.* and torch.functional.* whose Python call forms differ from the
// operator's schema: varargs of tensors, `out=None`, texts for modes, unbiased for correction.
#include "core/ops/pointwise.h"
#include "core/targets/operators.h"
#include "core/targets/refuse.h"

#include <math.h>
#include <string.h>

// ---- norms ----
typedef struct VectorNorm {
        Value input, p, dim, keepdim, dtype;
} VectorNorm;

static Status dims_of(const VectorNorm *norm, Value *out)
{
        if (python_is_integral(norm->dim))
                return value_ints_new(VALUE_LIST, (int64_t[]){ python_int(norm->dim) }, 1, out);
        *out = value_ref(norm->dim);
        return STATUS_OK;
}

static Status vector_norm(Emitter *emitter, const VectorNorm *norm, Value *out)
{
        _cleanup_(value_clear) Value dims = value_none();
        TRY(dims_of(norm, &dims));
        return EMIT(emitter, "aten::linalg_vector_norm", out, norm->input, norm->p, dims, norm->keepdim,
                    norm->dtype);
}

// By name: the nuclear norm. PyTorch refuses other names and numbers of dimensions there.
static Status matrix_norm(Emitter *emitter, const VectorNorm *norm, Value *out)
{
        static const int64_t all[MAX_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };
        _cleanup_(value_clear) Value dims = value_none();
        if (norm->dim.kind == VALUE_NONE)
                TRY(value_ints_new(VALUE_LIST, all, (uint32_t)norm->input.tensor->meta.rank, &dims));
        else
                TRY(dims_of(norm, &dims));
        return EMIT(emitter, "aten::linalg_matrix_norm.str_ord", out, norm->input, norm->p, dims,
                    norm->keepdim, norm->dtype);
}

// Whether `p` is "fro" of as many dimensions as PyTorch takes for a vector.
static bool is_frobenius(Value p, Value dim)
{
        return p.kind == VALUE_STR && strcmp(p.str->text, "fro") == 0 &&
               !(value_is_sequence(dim) && dim.seq->n > 2);
}

static Status norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value p = call->args[PY_NORM_P];
        TRY(refuse_out(call, PY_NORM_OUT));
        if (p.kind == VALUE_NONE || is_frobenius(p, call->args[PY_NORM_DIM]))
                p = value_float(2);
        VectorNorm norm = { .input = call->args[SELF],
                            .p = p,
                            .dim = call->args[PY_NORM_DIM],
                            .keepdim = call->args[PY_NORM_KEEPDIM],
                            .dtype = call->args[PY_NORM_DTYPE] };
        return p.kind == VALUE_STR ? matrix_norm(emitter, &norm, out) : vector_norm(emitter, &norm, out);
}

// One operand as wide as both, integers in the common dtype.
static Status common_operand(Emitter *emitter, Value operand, Dtype dtype, Value sizes, Value *out)
{
        _cleanup_(value_clear) Value cast = value_ref(operand);
        if (!dtype_is_float(operand.tensor->meta.dtype)) {
                value_clear(&cast);
                TRY(EMIT(emitter, "aten::to.dtype", &cast, operand, value_dtype(dtype)));
        }
        return EMIT(emitter, "aten::expand", out, cast, sizes);
}

// x / max(|x|, eps) along dim.
static Status unit_length(Emitter *emitter, Value x, Value dim, Value eps, Value *out)
{
        _cleanup_(value_clear) Value norm = value_none();
        _cleanup_(value_clear) Value below = value_none();
        VectorNorm euclidean = { .input = x,
                                 .p = value_float(2),
                                 .dim = dim,
                                 .keepdim = value_bool(true),
                                 .dtype = value_none() };
        TRY(vector_norm(emitter, &euclidean, &norm));
        TRY(ATEN(emitter, "aten::clamp_min", &below, norm, eps));
        return operator_binary(emitter, PY_TRUEDIV, x, below, out);
}

// ((x1 / max(|x1|, eps)) * (x2 / max(|x2|, eps))).sum(dim). Both are expanded to the common shape
// first, so a norm along a repeated dimension counts every repeat.
static Status cosine_similarity_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *x1 = arg_meta(call, PY_COSINE_X1), *x2 = arg_meta(call, PY_COSINE_X2);
        Promotion promotion = PROMOTION_INIT;
        Dtype dtype;
        int rank;
        int64_t size[MAX_RANK];
        TRY(promotion_add(&promotion, x1));
        TRY(promotion_add(&promotion, x2));
        TRY(promotion_result(&promotion, &dtype));
        if (!dtype_is_float(dtype))
                return fail(STATUS_DTYPE,
                            "expected common dtype to be floating point, yet common dtype is %s",
                            dtype_words(dtype));
        TRY(shape_broadcast(x1, x2, &rank, size));
        _cleanup_(value_clear) Value sizes = value_none(), a = value_none(), b = value_none(),
                                     unit_a = value_none(), unit_b = value_none(), product = value_none();
        TRY(value_ints_new(VALUE_LIST, size, (uint32_t)rank, &sizes));
        TRY(common_operand(emitter, call->args[PY_COSINE_X1], dtype, sizes, &a));
        TRY(common_operand(emitter, call->args[PY_COSINE_X2], dtype, sizes, &b));
        TRY(unit_length(emitter, a, call->args[PY_COSINE_DIM], call->args[PY_COSINE_EPS], &unit_a));
        TRY(unit_length(emitter, b, call->args[PY_COSINE_DIM], call->args[PY_COSINE_EPS], &unit_b));
        TRY(operator_binary(emitter, PY_MUL, unit_a, unit_b, &product));
        return ATEN(emitter, "aten::sum", out, product, call->args[PY_COSINE_DIM]);
}

// ---- deviations ----
static Status deviation(Emitter *emitter, const OpCall *call, const char *base, Value *out)
{
        bool by_dim = strcmp(call->schema->overload, "dim") == 0;
        Value dim = by_dim ? call->args[PY_STD_DIM] : value_none(),
              keepdim = by_dim ? call->args[PY_STD_KEEPDIM] : value_bool(false);
        Value correction =
                value_int(arg_bool(call, by_dim ? PY_STD_DIM_UNBIASED : PY_STD_UNBIASED, true) ? 1 : 0);
        return EMIT(emitter, base, out, call->args[SELF], dim, correction, keepdim);
}

static Status std_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return deviation(emitter, call, "aten::std.correction", out);
}

static Status var_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return deviation(emitter, call, "aten::var.correction", out);
}

// ---- several tensors ----
// dims: 2 (the last two with the first two) or a pair of lists.
static Status tensordot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value a = call->args[PY_TENSORDOT_A], b = call->args[PY_TENSORDOT_B],
              dims = call->args[PY_TENSORDOT_DIMS];
        TRY(refuse_out(call, PY_TENSORDOT_OUT));
        if (value_is_sequence(dims) && dims.seq->n == 2 && value_is_sequence(dims.seq->items[0]))
                return ATEN(emitter, "aten::tensordot", out, a, b, dims.seq->items[0], dims.seq->items[1]);
        int64_t n, left[MAX_RANK], right[MAX_RANK];
        TRY(value_as_int(emitter, dims, "dims", &n));
        if (n < 0 || n > MIN(a.tensor->meta.rank, b.tensor->meta.rank))
                return fail(
                        STATUS_VALUE,
                        "tensordot expects dims >= 0 and at most the tensors' dimensions, but got dims=%ld",
                        (long)n);
        for (int64_t i = 0; i < n; i++) {
                left[i] = a.tensor->meta.rank - n + i;
                right[i] = i;
        }
        _cleanup_(value_clear) Value dims_a = value_none();
        _cleanup_(value_clear) Value dims_b = value_none();
        TRY(value_ints_new(VALUE_LIST, left, (uint32_t)n, &dims_a));
        TRY(value_ints_new(VALUE_LIST, right, (uint32_t)n, &dims_b));
        return ATEN(emitter, "aten::tensordot", out, a, b, dims_a, dims_b);
}

static Status cdist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const char *const modes[] = { "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                                             "donot_use_mm_for_euclid_dist" };
        for (int i = 0; i < 3; i++) {
                if (strcmp(arg_text(call, PY_CDIST_COMPUTE_MODE), modes[i]) == 0)
                        return ATEN(emitter, "aten::cdist", out, call->args[PY_CDIST_X1],
                                    call->args[PY_CDIST_X2], call->args[PY_CDIST_P],
                                    i == 0 ? value_none() : value_int(i));
        }
        return fail(STATUS_VALUE, "%.60s is not a valid value for compute_mode",
                    arg_text(call, PY_CDIST_COMPUTE_MODE));
}

// ---- tensors from numbers ----
static Status tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value data = call->args[PY_TENSOR_DATA];
        Dtype dtype = arg_dtype(call, PY_TENSOR_DTYPE, DTYPE_NONE);
        TRY(check_device(call->args[PY_TENSOR_DEVICE]));
        if (data.kind == VALUE_TENSOR) {
                bool copies = strcmp(call->schema->name, "tensor") == 0;
                return EMIT(emitter, "aten::to.dtype", out, data,
                            value_dtype(dtype == DTYPE_NONE ? data.tensor->meta.dtype : dtype),
                            value_bool(false), value_bool(copies));
        }
        if (data.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "the data of torch.tensor is not known before the run");
        return tensor_from_value(emitter, data, dtype, out);
}

static Status broadcast_shapes_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Seq *shapes = call->args[PY_BROADCAST_SHAPES].seq;
        int64_t size[MAX_RANK];
        int rank = 0;
        for (uint32_t i = 0; i < shapes->n; i++) {
                Value shape = shapes->items[i];
                int n = value_is_sequence(shape) ? (int)MIN(shape.seq->n, MAX_RANK + 1) : 1;
                if (n > MAX_RANK)
                        return fail(STATUS_VALUE, "at most %d dimensions are supported", MAX_RANK);
                for (int d = rank; d < n; d++)
                        size[d] = 1;
                rank = MAX(rank, n);
                for (int d = 0; d < n; d++) { // from the right
                        int64_t extent;
                        TRY(value_as_int(emitter,
                                         value_is_sequence(shape)
                                                 ? shape.seq->items[shape.seq->n - 1 - (uint32_t)d]
                                                 : shape,
                                         "a shape", &extent));
                        if (extent != 1 && size[d] != 1 && extent != size[d])
                                return fail(STATUS_SHAPE,
                                            "Shape mismatch: objects cannot be broadcast to a single shape");
                        size[d] = extent == 1 ? size[d] : extent;
                }
        }
        int64_t ordered[MAX_RANK];
        for (int d = 0; d < rank; d++)
                ordered[d] = size[rank - 1 - d];
        return value_ints_new(VALUE_SIZE, ordered, (uint32_t)rank, out);
}

#define NORM_ARGS                                                                                            \
        "Any p=\"fro\", Any dim=None, bool keepdim=False, Any out=None, ScalarType? dtype=None) -> Tensor"
static const PyRow rows[] = {
        { "torch.functional.norm torch.norm", "py::norm(Tensor input, " NORM_ARGS, .expand = norm_expand,
          .needs = "aten::linalg_vector_norm" },
        { ".norm", "py::norm(Tensor self, " NORM_ARGS, .expand = norm_expand,
          .needs = "aten::linalg_vector_norm" },
        { "torch.cosine_similarity F.cosine_similarity",
          "py::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
          .expand = cosine_similarity_expand,
          .needs = "aten::linalg_vector_norm aten::clamp_min aten::sum aten::expand" },
        { "torch.std .std", "py::std(Tensor input, bool unbiased=True) -> Tensor", .expand = std_expand,
          .needs = "aten::std.correction" },
        { "torch.std .std",
          "py::std.dim(Tensor input, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
          .expand = std_expand, .needs = "aten::std.correction" },
        { "torch.var .var", "py::var(Tensor input, bool unbiased=True) -> Tensor", .expand = var_expand,
          .needs = "aten::var.correction" },
        { "torch.var .var",
          "py::var.dim(Tensor input, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
          .expand = var_expand, .needs = "aten::var.correction" },
        { "torch.functional.stft torch.stft .stft",
          "py::stft(Tensor input, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
          "window=None, "
          "bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? "
          "return_complex=None, bool? align_to_window=None) -> Tensor",
          .emits = "aten::stft.center a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10" },
        { "torch.functional.einsum torch.einsum", "py::einsum(str equation, *Tensor[] operands) -> Tensor",
          .emits = "aten::einsum a0 a1" },
        { "torch.functional.block_diag torch.block_diag", "py::block_diag(*Tensor[] tensors) -> Tensor",
          .emits = "aten::block_diag a0" },
        { "torch.functional.cartesian_prod torch.cartesian_prod",
          "py::cartesian_prod(*Tensor[] tensors) -> Tensor", .emits = "aten::cartesian_prod a0" },
        { "torch.functional.chain_matmul torch.chain_matmul",
          "py::chain_matmul(*Tensor[] matrices, *, Any out=None) -> Tensor",
          .emits = "aten::chain_matmul a0 ~a1" },
        { "torch.functional.atleast_1d torch.atleast_1d", "py::atleast_1d(Tensor tensor) -> Tensor",
          .emits = "aten::atleast_1d a0" },
        { "torch.functional.atleast_1d torch.atleast_1d",
          "py::atleast_1d.Sequence(*Tensor[] tensors) -> Tensor[]", .emits = "aten::atleast_1d.Sequence a0" },
        { "torch.functional.atleast_2d torch.atleast_2d", "py::atleast_2d(Tensor tensor) -> Tensor",
          .emits = "aten::atleast_2d a0" },
        { "torch.functional.atleast_2d torch.atleast_2d",
          "py::atleast_2d.Sequence(*Tensor[] tensors) -> Tensor[]", .emits = "aten::atleast_2d.Sequence a0" },
        { "torch.functional.atleast_3d torch.atleast_3d", "py::atleast_3d(Tensor tensor) -> Tensor",
          .emits = "aten::atleast_3d a0" },
        { "torch.functional.atleast_3d torch.atleast_3d",
          "py::atleast_3d.Sequence(*Tensor[] tensors) -> Tensor[]", .emits = "aten::atleast_3d.Sequence a0" },
        { "torch.functional.broadcast_shapes torch.broadcast_shapes",
          "py::broadcast_shapes(*Any[] shapes) -> Any", .expand = broadcast_shapes_expand },
        { "torch.functional.tensordot torch.tensordot",
          "py::tensordot(Tensor a, Tensor b, Any dims=2, Any out=None) -> Tensor", .expand = tensordot_expand,
          .needs = "aten::tensordot" },
        { "torch.pdist F.pdist", "py::pdist(Tensor input, float p=2.0) -> Tensor",
          .emits = "aten::pdist a0 a1" },
        { "torch.functional.cdist torch.cdist",
          "py::cdist(Tensor x1, Tensor x2, float p=2.0, str "
          "compute_mode=\"use_mm_for_euclid_dist_if_necessary\") -> Tensor",
          .expand = cdist_expand, .needs = "aten::cdist" },
        { "torch.tensor",
          "py::tensor(Any data, *, ScalarType? dtype=None, Any device=None, bool requires_grad=False, bool "
          "pin_memory=False) -> Tensor",
          .expand = tensor_expand, .needs = "aten::to.dtype" },
        { "torch.as_tensor torch.asarray",
          "py::as_tensor(Any data, ScalarType? dtype=None, Any device=None) -> Tensor",
          .expand = tensor_expand, .needs = "aten::to.dtype" },
};
const PyTable py_function_rows = PY_TABLE(rows);
