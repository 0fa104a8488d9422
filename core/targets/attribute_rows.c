// SPDX-License-Identifier: Apache-2.0
// attribute_rows.c: getattr, and the Tensor methods that only read metadata. No numbers are
// touched, so all of it is known while recording too.
#include "core/targets/py.h"

#include <stdlib.h>
#include <string.h>

// ---- tensors ----
static Status attr_shape(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        return shape_value(x.tensor, out);
}

static Status attr_ndim(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        *out = value_int(x.tensor->meta.rank);
        return STATUS_OK;
}

static Status attr_dtype(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        *out = value_dtype(x.tensor->meta.dtype);
        return STATUS_OK;
}

static Status named_value(ValueKind kind, const char *name, Value *out)
{
        TRY(text_value(name, out));
        out->kind = kind;
        return STATUS_OK;
}

static Status attr_device(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        (void)x;
        return named_value(VALUE_DEVICE, "cpu", out);
}

static Status attr_layout(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        (void)x;
        return named_value(VALUE_LAYOUT, "torch.strided", out);
}

static Status attr_itemsize(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        *out = value_int(dtype_info[x.tensor->meta.dtype].bytes);
        return STATUS_OK;
}

static Status attr_nbytes(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        *out = value_int(meta_numel(&x.tensor->meta) * dtype_info[x.tensor->meta.dtype].bytes);
        return STATUS_OK;
}

static Status attr_false(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        (void)x;
        *out = value_bool(false);
        return STATUS_OK;
}

static Status attr_true(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        (void)x;
        *out = value_bool(true);
        return STATUS_OK;
}

static Status attr_none(Emitter *emitter, Value x, Value *out)
{
        (void)emitter;
        (void)x;
        *out = value_none();
        return STATUS_OK;
}

static Status attr_self(Emitter *emitter, Value x, Value *out)
{
        if (ops_present("aten::detach"))
                return ATEN(emitter, "aten::detach", out, x);
        *out = value_ref(x);
        return STATUS_OK;
}

// x.T: dims reversed; x.mT: the last two exchanged.
static Status attr_reversed(Emitter *emitter, Value x, Value *out)
{
        int64_t dims[MAX_RANK];
        int rank = x.tensor->meta.rank;
        for (int d = 0; d < rank; d++)
                dims[d] = rank - 1 - d;
        _cleanup_(value_clear) Value order = value_none();
        TRY(value_ints_new(VALUE_LIST, dims, (uint32_t)rank, &order));
        return EMIT(emitter, "aten::permute", out, x, order);
}

// A number is its own transpose.
static Status transposed(Emitter *emitter, const char *name, Value x, Value *out)
{
        if (x.tensor->meta.rank == 1)
                return fail(STATUS_VALUE,
                            "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.",
                            name);
        if (x.tensor->meta.rank != 0)
                return EMIT(emitter, "aten::transpose.int", out, x, value_int(-2), value_int(-1));
        *out = value_ref(x);
        return STATUS_OK;
}

static Status attr_matrix_transposed(Emitter *emitter, Value x, Value *out)
{
        return transposed(emitter, "mT", x, out);
}

static Status conjugate(Emitter *emitter, Value x, Value *out)
{
        if (dtype_info[x.tensor->meta.dtype].kind == DTYPE_KIND_COMPLEX)
                return ATEN(emitter, "aten::conj", out, x);
        *out = value_ref(x);
        return STATUS_OK;
}

static Status attr_adjoint(Emitter *emitter, Value x, Value *out)
{
        _cleanup_(value_clear) Value turned = value_none();
        TRY(transposed(emitter, "mH", x, &turned));
        return conjugate(emitter, turned, out);
}

// For matrices only.
static Status attr_matrix_adjoint(Emitter *emitter, Value x, Value *out)
{
        int rank = x.tensor->meta.rank;
        if (rank != 0 && rank != 2)
                return fail(STATUS_VALUE,
                            "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s", rank,
                            rank > 2 ? " For batches of matrices, consider using tensor.mH" : "");
        return attr_adjoint(emitter, x, out);
}

static Status attr_real(Emitter *emitter, Value x, Value *out)
{
        if (dtype_info[x.tensor->meta.dtype].kind == DTYPE_KIND_COMPLEX)
                return ATEN(emitter, "aten::real", out, x);
        *out = value_ref(x);
        return STATUS_OK;
}

static Status attr_imag(Emitter *emitter, Value x, Value *out)
{
        return ATEN(emitter, "aten::imag", out, x);
}

static const struct {
        const char *name;
        Status (*read)(Emitter *emitter, Value x, Value *out);
} tensor_attributes[] = {
        { "shape", attr_shape },         { "ndim", attr_ndim },           { "dtype", attr_dtype },
        { "device", attr_device },       { "layout", attr_layout },       { "itemsize", attr_itemsize },
        { "nbytes", attr_nbytes },       { "requires_grad", attr_false }, { "retains_grad", attr_false },
        { "is_cpu", attr_true },         { "is_leaf", attr_true },        { "is_cuda", attr_false },
        { "is_ipu", attr_false },        { "is_maia", attr_false },       { "is_meta", attr_false },
        { "is_mkldnn", attr_false },     { "is_mps", attr_false },        { "is_mtia", attr_false },
        { "is_nested", attr_false },     { "is_quantized", attr_false },  { "is_sparse", attr_false },
        { "is_sparse_csr", attr_false }, { "is_vulkan", attr_false },     { "is_xla", attr_false },
        { "is_xpu", attr_false },        { "grad", attr_none },           { "grad_fn", attr_none },
        { "data", attr_self },           { "T", attr_reversed },          { "mT", attr_matrix_transposed },
        { "mH", attr_adjoint },          { "H", attr_matrix_adjoint },    { "real", attr_real },
        { "imag", attr_imag },
};

// Whether an attribute exists; *out then owns it.
static Status read_attribute(Emitter *emitter, Value x, const char *name, Value *out, bool *out_found)
{
        *out_found = true;
        if (x.kind == VALUE_TENSOR) {
                for (size_t i = 0; i < ARRAY_LENGTH(tensor_attributes); i++) {
                        if (strcmp(tensor_attributes[i].name, name) == 0)
                                return tensor_attributes[i].read(emitter, x, out);
                }
        }
        if (x.kind == VALUE_TUPLE && x.seq->fields != NULL) {
                for (uint32_t i = 0; i < x.seq->n; i++) {
                        if (strcmp(x.seq->fields[i], name) == 0) {
                                *out = value_ref(x.seq->items[i]);
                                return STATUS_OK;
                        }
                }
        }
        if (x.kind == VALUE_DEVICE && strcmp(name, "type") == 0) {
                size_t n = strcspn(x.str->text, ":");
                return value_str_new(x.str->text, n, out);
        }
        if (x.kind == VALUE_DEVICE && strcmp(name, "index") == 0)
                return attr_none(emitter, x, out);
        if (x.kind == VALUE_DTYPE && strcmp(name, "itemsize") == 0) {
                *out = value_int(dtype_info[x.dtype].bytes);
                return STATUS_OK;
        }
        if (x.kind == VALUE_DTYPE && strcmp(name, "is_floating_point") == 0) {
                *out = value_bool(dtype_info[x.dtype].kind == DTYPE_KIND_FLOAT);
                return STATUS_OK;
        }
        *out_found = false;
        return STATUS_OK;
}

static int compare_names(const void *name, const void *entry)
{
        return strcmp(name, *(const char *const *)entry);
}

// Whether PyTorch's Tensor has an attribute that read_attribute does not know.
static Status is_elsewhere(Value x, const char *name, bool *out)
{
        static const char *const names[] = {
#define TENSOR_NAME(name) name,
#include "core/targets/tensor_names.def"
#undef TENSOR_NAME
        };
        if (x.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "an object whose attribute is read is not known before the run");
        if (x.kind != VALUE_TENSOR)
                return fail(STATUS_UNSUPPORTED, "whether a '%s' has an attribute '%.80s' cannot be told",
                            value_kind_name(x.kind), name);
        *out = bsearch(name, names, ARRAY_LENGTH(names), sizeof(*names), compare_names) != NULL;
        return STATUS_OK;
}

static Status getattr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value x = call->args[PY_GETATTR_OBJECT];
        const char *name = arg_text(call, PY_GETATTR_NAME);
        bool found, elsewhere;
        if (x.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "an object whose attribute is read is not known before the run");
        TRY(read_attribute(emitter, x, name, out, &found));
        if (found)
                return STATUS_OK;
        if (!arg_given(call, PY_GETATTR_DEFAULT))
                return fail(STATUS_VALUE, "'%s' object has no attribute '%.80s'", value_kind_name(x.kind),
                            name);
        TRY(is_elsewhere(x, name, &elsewhere));
        if (elsewhere)
                return fail(STATUS_UNSUPPORTED, "the attribute '%.80s' of a tensor is not supported", name);
        *out = value_ref(call->args[PY_GETATTR_DEFAULT]);
        return STATUS_OK;
}

static Status hasattr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value found_value = value_none();
        bool found;
        TRY(read_attribute(emitter, call->args[PY_GETATTR_OBJECT], arg_text(call, PY_GETATTR_NAME),
                           &found_value, &found));
        if (!found)
                TRY(is_elsewhere(call->args[PY_GETATTR_OBJECT], arg_text(call, PY_GETATTR_NAME), &found));
        *out = value_bool(found);
        return STATUS_OK;
}

// ---- methods ----
static Status self_meta(const OpCall *call, const TensorMeta **out)
{
        if (call->args[SELF].kind != VALUE_TENSOR)
                return fail(STATUS_VALUE, "'%s' object has no attribute '%s'",
                            value_kind_name(call->args[SELF].kind), call->schema->name);
        *out = &call->args[SELF].tensor->meta;
        return STATUS_OK;
}

static Status size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        int dim;
        (void)emitter;
        TRY(self_meta(call, &meta));
        if (arg_is_none(call, PY_SIZE_DIM))
                return shape_value(call->args[SELF].tensor, out);
        if (meta->rank == 0)
                return fail(STATUS_VALUE, "Dimension specified as %ld but tensor has no dimensions",
                            (long)python_int(arg_number(call, PY_SIZE_DIM)));
        TRY(arg_dim(call, PY_SIZE_DIM, meta->rank, &dim));
        *out = value_int(meta->size[dim]);
        return STATUS_OK;
}

static Status stride_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        int dim;
        (void)emitter;
        TRY(self_meta(call, &meta));
        if (arg_is_none(call, PY_SIZE_DIM))
                return value_ints_new(VALUE_TUPLE, meta->stride, meta->rank, out);
        TRY(arg_dim(call, PY_SIZE_DIM, meta->rank, &dim));
        *out = value_int(meta->rank == 0 ? 1 : meta->stride[dim]);
        return STATUS_OK;
}

static Status dim_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        TRY(self_meta(call, &meta));
        *out = value_int(meta->rank);
        return STATUS_OK;
}

static Status numel_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        if (call->args[SELF].kind == VALUE_SIZE) {
                const Seq *seq = call->args[SELF].seq;
                int64_t n = 1;
                for (uint32_t i = 0; i < seq->n; i++) {
                        if (!python_is_integral(seq->items[i]) || !mul_i64(n, python_int(seq->items[i]), &n))
                                return fail(STATUS_VALUE, "the number of elements does not fit 64 bits");
                }
                *out = value_int(n);
                return STATUS_OK;
        }
        TRY(self_meta(call, &meta));
        *out = value_int(meta_numel(meta));
        return STATUS_OK;
}

static Status element_size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        TRY(self_meta(call, &meta));
        return attr_itemsize(emitter, call->args[SELF], out);
}

static Status storage_offset_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        TRY(self_meta(call, &meta));
        *out = value_int(call->args[SELF].tensor->offset);
        return STATUS_OK;
}

static Status is_floating_point_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        TRY(self_meta(call, &meta));
        *out = value_bool(dtype_info[meta->dtype].kind == DTYPE_KIND_FLOAT);
        return STATUS_OK;
}

static Status is_complex_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        TRY(self_meta(call, &meta));
        *out = value_bool(dtype_info[meta->dtype].kind == DTYPE_KIND_COMPLEX);
        return STATUS_OK;
}

static Status is_contiguous_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta;
        (void)emitter;
        TRY(self_meta(call, &meta));
        MemoryFormat format =
                arg_memory_format(call, PY_IS_CONTIGUOUS_MEMORY_FORMAT, MEMORY_FORMAT_CONTIGUOUS);
        *out = value_bool(format == MEMORY_FORMAT_CONTIGUOUS ? meta_is_contiguous(meta)
                                                             : meta_is_channels_last(meta));
        return STATUS_OK;
}

static Status is_tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(call->args[SELF].kind == VALUE_TENSOR);
        return STATUS_OK;
}

static Status get_device_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        (void)call;
        *out = value_int(-1);
        return STATUS_OK;
}

static const PyRow rows[] = {
        { "getattr builtins.getattr", "py::getattr(Any object, str name, Any default=None) -> Any",
          .expand = getattr_expand },
        { "hasattr builtins.hasattr", "py::hasattr(Any object, str name) -> Any", .expand = hasattr_expand },
        { ".size", "py::size(Any self, int? dim=None) -> Any", .expand = size_expand },
        { ".stride", "py::stride(Any self, int? dim=None) -> Any", .expand = stride_expand },
        { ".dim .ndimension .ndim", "py::dim(Any self) -> Any", .expand = dim_expand },
        { ".numel .nelement torch.numel", "py::numel(Any input) -> Any", .expand = numel_expand },
        { ".element_size", "py::element_size(Any self) -> Any", .expand = element_size_expand },
        { ".storage_offset", "py::storage_offset(Any self) -> Any", .expand = storage_offset_expand },
        { ".is_floating_point torch.is_floating_point", "py::is_floating_point(Any input) -> Any",
          .expand = is_floating_point_expand },
        { ".is_complex torch.is_complex", "py::is_complex(Any input) -> Any", .expand = is_complex_expand },
        { ".is_contiguous", "py::is_contiguous(Any self, MemoryFormat? memory_format=None) -> Any",
          .expand = is_contiguous_expand },
        { ".get_device", "py::get_device(Any self) -> Any", .expand = get_device_expand },
        { "torch.is_tensor", "py::is_tensor(Any obj) -> Any", .expand = is_tensor_expand },
};
const PyTable py_attribute_rows = PY_TABLE(rows);
