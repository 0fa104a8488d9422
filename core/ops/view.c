// SPDX-License-Identifier: Apache-2.0
// view.c: views of one tensor: infer only, strides to the element as PyTorch gives them. The
// in-place twins (t_, squeeze_ ...) come from OP_INPLACE.
#include "core/ops/view.h"
#include "core/ops/arguments.h"

#include <inttypes.h>
#include <string.h>

// ---- shared geometry ----
Status view_check_rank(const OpCall *call, int64_t rank)
{
        if (rank > MAX_RANK)
                return fail(STATUS_VALUE,
                            "%s(): the result would have %" PRId64 " dimensions; at most %d are supported",
                            call->schema->name, rank, MAX_RANK);
        return STATUS_OK;
}

Status view_arg_shape(const OpCall *call, int index, int64_t size[MAX_RANK], int *out_rank)
{
        TRY(view_check_rank(call, value_is_sequence(call->args[index]) ? call->args[index].seq->n : 1));
        return arg_ints(call, index, MAX_RANK, size, out_rank);
}

Status view_infer_size(int rank, int64_t *inout_size, int64_t numel)
{
        char text[256];
        int64_t product = 1;
        int unknown = -1;
        bool fits = true;
        for (int d = 0; d < rank; d++) {
                if (inout_size[d] == -1) {
                        if (unknown >= 0)
                                return fail(STATUS_VALUE, "only one dimension can be inferred");
                        unknown = d;
                } else if (inout_size[d] < 0) {
                        return fail(STATUS_VALUE,
                                    "invalid shape dimension %" PRId64 " at index %d of shape %s",
                                    inout_size[d], d, shape_text(rank, inout_size, text, sizeof(text)));
                } else {
                        fits = fits && mul_i64(product, inout_size[d], &product);
                }
        }
        if (fits && unknown >= 0 && product == 0 && numel == 0)
                return fail(STATUS_VALUE,
                            "cannot reshape tensor of 0 elements into shape %s because the unspecified "
                            "dimension size -1 can be any value "
                            "and is ambiguous",
                            shape_text(rank, inout_size, text, sizeof(text)));
        if (!fits || (unknown < 0 ? product != numel : product == 0 || numel % product != 0))
                return fail(STATUS_SHAPE, "shape '%s' is invalid for input of size %" PRId64,
                            shape_text(rank, inout_size, text, sizeof(text)), numel);
        if (unknown >= 0)
                inout_size[unknown] = numel / product;
        int64_t checked;
        return shape_numel(rank, inout_size, &checked);
}

Status view_self(OpCall *call, uint32_t k, const TensorMeta *meta, int64_t relative_offset)
{
        return out_view(call, k, SELF, meta, arg_tensor(call, SELF)->offset + relative_offset);
}

static bool is_dense_in_order(const TensorMeta *meta, const int *order)
{
        int64_t expected = 1;
        for (int i = 0; i < meta->rank; i++) {
                int d = order[i];
                if (meta->size[d] != 1 && meta->stride[d] != expected)
                        return false;
                expected *= meta->size[d];
        }
        return true;
}

bool view_is_contiguous_as(const TensorMeta *meta, MemoryFormat format)
{
        static const int nhwc[] = { 1, 3, 2, 0 }, ndhwc[] = { 1, 4, 3, 2, 0 };
        switch (format) {
        case MEMORY_FORMAT_CHANNELS_LAST:
                return meta->rank == 4 && is_dense_in_order(meta, nhwc);
        case MEMORY_FORMAT_CHANNELS_LAST_3D:
                return meta->rank == 5 && is_dense_in_order(meta, ndhwc);
        case MEMORY_FORMAT_PRESERVE:
                return true;
        default:
                return meta_is_contiguous(meta);
        }
}

MemoryFormat view_suggested_format(const TensorMeta *meta)
{
        static const int nhwc[] = { 1, 3, 2, 0 }, ndhwc[] = { 1, 4, 3, 2, 0 };
        if ((meta->rank != 4 && meta->rank != 5) || meta->stride[1] == 0)
                return MEMORY_FORMAT_CONTIGUOUS;
        const int *order = meta->rank == 4 ? nhwc : ndhwc;
        int64_t least = 0;
        for (int i = 0; i < meta->rank; i++) {
                int d = order[i];
                // Shapes such as [N, 1, 1, W] fit both layouts; they count as channels first.
                if (meta->size[d] == 0 || meta->stride[d] < least || (d == 0 && least == meta->stride[1]))
                        return MEMORY_FORMAT_CONTIGUOUS;
                least = meta->stride[d];
                if (meta->size[d] > 1)
                        least *= meta->size[d];
        }
        return meta->rank == 4 ? MEMORY_FORMAT_CHANNELS_LAST : MEMORY_FORMAT_CHANNELS_LAST_3D;
}

Status view_set_strides(TensorMeta *meta, MemoryFormat format, const TensorMeta *like)
{
        switch (format) {
        case MEMORY_FORMAT_PRESERVE:
                meta_set_strides_like(meta, like);
                return STATUS_OK;
        case MEMORY_FORMAT_CHANNELS_LAST:
        case MEMORY_FORMAT_CHANNELS_LAST_3D:
                if (meta->rank != (format == MEMORY_FORMAT_CHANNELS_LAST ? 4 : 5))
                        return fail(STATUS_VALUE, "required rank %d tensor to use channels_last%s format",
                                    format == MEMORY_FORMAT_CHANNELS_LAST ? 4 : 5,
                                    format == MEMORY_FORMAT_CHANNELS_LAST ? "" : "_3d");
                meta_set_channels_last(meta);
                return STATUS_OK;
        default:
                meta_set_contiguous(meta);
                return STATUS_OK;
        }
}

void view_swap(TensorMeta *meta, int a, int b)
{
        int64_t size = meta->size[a], stride = meta->stride[a];
        meta->size[a] = meta->size[b];
        meta->stride[a] = meta->stride[b];
        meta->size[b] = size;
        meta->stride[b] = stride;
}

void view_clamp_slice(int64_t size, int64_t *inout_start, int64_t *inout_stop)
{
        int64_t start = *inout_start, stop = *inout_stop;
        if (start < 0)
                start += size;
        if (stop < 0)
                stop += size;
        start = MIN(MAX(start, 0), size);
        stop = MIN(MAX(stop, start), size);
        *inout_start = start;
        *inout_stop = stop;
}

static void erase_dim(TensorMeta *meta, int dim)
{
        int n = meta->rank - dim - 1;
        memmove(&meta->size[dim], &meta->size[dim + 1], (size_t)n * sizeof(int64_t));
        memmove(&meta->stride[dim], &meta->stride[dim + 1], (size_t)n * sizeof(int64_t));
        meta->rank--;
}

// ---- the same elements under another shape ----
static Status alias_infer(OpCall *call)
{
        return view_self(call, 0, arg_meta(call, SELF), 0);
}

static Status same_infer(OpCall *call)
{
        return out_same(call, 0, SELF);
}

static Status view_as_size(OpCall *call, int rank, int64_t *size)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta;
        TRY(view_infer_size(rank, size, meta_numel(self)));
        meta_init(&meta, self->dtype, rank, size);
        if (!meta_view_strides(self, rank, size, meta.stride))
                return fail(STATUS_SHAPE, "view size is not compatible with input tensor's size and stride "
                                          "(at least one dimension spans "
                                          "across two contiguous "
                                          "subspaces). Use .reshape(...) instead.");
        return view_self(call, 0, &meta, 0);
}

static Status view_infer(OpCall *call)
{
        int64_t size[MAX_RANK];
        int rank = 0;
        TRY(view_arg_shape(call, VIEW_SIZE, size, &rank));
        return view_as_size(call, rank, size);
}

static Status view_as_infer(OpCall *call)
{
        TensorMeta other = *arg_meta(call, VIEW_AS_OTHER);
        return view_as_size(call, other.rank, other.size);
}

static Status view_dtype_smaller(const TensorMeta *self, TensorMeta *meta, int64_t ratio)
{
        int last = self->rank - 1;
        if (last < 0 || self->stride[last] != 1)
                return fail(STATUS_VALUE,
                            "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got "
                            "%" PRId64,
                            dtype_words(self->dtype), dtype_words(meta->dtype),
                            last < 0 ? (int64_t)0 : self->stride[last]);
        for (int d = 0; d < last; d++) {
                if (!mul_i64(meta->stride[d], ratio, &meta->stride[d]))
                        return fail(STATUS_TOO_LARGE, "view(): strides overflow");
        }
        if (!mul_i64(meta->size[last], ratio, &meta->size[last]))
                return fail(STATUS_TOO_LARGE, "view(): sizes overflow");
        return STATUS_OK;
}

static Status view_dtype_larger(const TensorMeta *self, TensorMeta *meta, int64_t ratio, int64_t offset)
{
        int last = self->rank - 1;
        if (last < 0 || self->stride[last] != 1)
                return fail(STATUS_VALUE,
                            "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got "
                            "%" PRId64,
                            dtype_words(self->dtype), dtype_words(meta->dtype),
                            last < 0 ? (int64_t)0 : self->stride[last]);
        if (self->size[last] % ratio != 0)
                return fail(STATUS_VALUE,
                            "self.size(-1) must be divisible by %" PRId64
                            " to view %s as %s (different element sizes), but got %" PRId64,
                            ratio, dtype_words(self->dtype), dtype_words(meta->dtype), self->size[last]);
        if (offset % ratio != 0)
                return fail(STATUS_VALUE,
                            "self.storage_offset() must be divisible by %" PRId64
                            " to view %s as %s (different element sizes), but got %" PRId64,
                            ratio, dtype_words(self->dtype), dtype_words(meta->dtype), offset);
        for (int d = 0; d < last; d++) {
                if (self->stride[d] % ratio != 0)
                        return fail(STATUS_VALUE,
                                    "self.stride(%d) must be divisible by %" PRId64
                                    " to view %s as %s (different element sizes), but got %" PRId64,
                                    d, ratio, dtype_words(self->dtype), dtype_words(meta->dtype),
                                    self->stride[d]);
                meta->stride[d] /= ratio;
        }
        meta->size[last] /= ratio;
        return STATUS_OK;
}

static Status view_dtype_infer(OpCall *call)
{
        const Tensor *self = arg_tensor(call, SELF);
        if (self->conj || self->negative)
                return fail(STATUS_VALUE,
                            "torch.Tensor.view is not supported for %s when converting to a different dtype.",
                            self->conj ? "conjugate view tensors" : "tensors with negative bit set");
        TensorMeta meta = self->meta;
        meta.dtype = arg_dtype(call, VIEW_DTYPE_DTYPE, self->meta.dtype);
        int64_t from = dtype_info[self->meta.dtype].bytes, to = dtype_info[meta.dtype].bytes;
        if (from > to)
                TRY(view_dtype_smaller(&self->meta, &meta, from / to));
        else if (from < to)
                TRY(view_dtype_larger(&self->meta, &meta, to / from, self->offset));
        return out_view(call, 0, SELF, &meta, self->offset * from / to);
}

static Status unflatten_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        char text[256];
        int dim, n = 0;
        int64_t sizes[MAX_RANK], shape[2 * MAX_RANK];
        if (self->rank == 0)
                return fail(STATUS_VALUE, "unflatten() cannot be applied to a 0-dim tensor.");
        TRY(arg_dim(call, UNFLATTEN_INT_DIM, self->rank, &dim));
        TRY(view_arg_shape(call, UNFLATTEN_SIZES, sizes, &n));
        if (n == 0)
                return fail(STATUS_VALUE, "unflatten: sizes must be non-empty");
        TRY(view_check_rank(call, self->rank + n - 1));
        if (view_infer_size(n, sizes, self->size[dim]) != STATUS_OK)
                return fail(STATUS_VALUE,
                            "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%" PRId64
                            ") in the input tensor",
                            shape_text(n, sizes, text, sizeof(text)), dim, self->size[dim]);
        memcpy(shape, self->size, (size_t)dim * sizeof(int64_t));
        memcpy(shape + dim, sizes, (size_t)n * sizeof(int64_t));
        memcpy(shape + dim + n, self->size + dim + 1, (size_t)(self->rank - dim - 1) * sizeof(int64_t));
        return view_as_size(call, self->rank + n - 1, shape);
}

static Status squeeze_mask(OpCall *call, uint32_t mask)
{
        TensorMeta meta = *arg_meta(call, SELF);
        for (int d = meta.rank - 1; d >= 0; d--) {
                if ((mask >> d & 1) != 0 && meta.size[d] == 1)
                        erase_dim(&meta, d);
        }
        return view_self(call, 0, &meta, 0);
}

static Status squeeze_infer(OpCall *call)
{
        return squeeze_mask(call, UINT32_MAX);
}

static Status squeeze_dim_infer(OpCall *call)
{
        int dim;
        TRY(arg_dim(call, SQUEEZE_DIM_DIM, arg_meta(call, SELF)->rank, &dim));
        return squeeze_mask(call, 1u << dim);
}

static Status squeeze_dims_infer(OpCall *call)
{
        uint32_t mask;
        TRY(arg_dims(call, SQUEEZE_DIMS_DIM, arg_meta(call, SELF)->rank, false, &mask));
        return squeeze_mask(call, mask);
}

static Status unsqueeze_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int dim;
        TRY(view_check_rank(call, meta.rank + 1));
        TRY(arg_dim(call, UNSQUEEZE_DIM, meta.rank + 1, &dim));
        int64_t stride = dim < meta.rank ? meta.size[dim] * meta.stride[dim] : 1;
        memmove(&meta.size[dim + 1], &meta.size[dim], (size_t)(meta.rank - dim) * sizeof(int64_t));
        memmove(&meta.stride[dim + 1], &meta.stride[dim], (size_t)(meta.rank - dim) * sizeof(int64_t));
        meta.size[dim] = 1;
        meta.stride[dim] = stride;
        meta.rank++;
        return view_self(call, 0, &meta, 0);
}

// ---- the same dimensions in another order ----
static Status permute_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t dims[MAX_RANK];
        int n = 0;
        TRY(view_arg_shape(call, PERMUTE_DIMS, dims, &n));
        if (n != self->rank)
                return fail(STATUS_VALUE,
                            "permute(sparse_coo): number of dimensions in the tensor input does not match "
                            "the length of the desired "
                            "ordering of dimensions "
                            "i.e. input.dim() = %d is not equal to len(dims) = %d",
                            self->rank, n);
        uint32_t seen = 0;
        for (int i = 0; i < n; i++) {
                int dim;
                TRY(dim_wrap(dims[i], self->rank, &dim));
                if ((seen >> dim & 1) != 0)
                        return fail(STATUS_VALUE, "permute(): duplicate dims are not allowed.");
                seen |= 1u << dim;
                meta.size[i] = self->size[dim];
                meta.stride[i] = self->stride[dim];
        }
        return view_self(call, 0, &meta, 0);
}

static Status transpose_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int a, b;
        TRY(arg_dim(call, TRANSPOSE_DIM0, meta.rank, &a));
        TRY(arg_dim(call, TRANSPOSE_DIM1, meta.rank, &b));
        if (meta.rank > 0)
                view_swap(&meta, a, b);
        return view_self(call, 0, &meta, 0);
}

static Status t_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        if (meta.rank > 2)
                return fail(STATUS_VALUE, "t() expects a tensor with <= 2 dimensions, but self is %dD",
                            meta.rank);
        if (meta.rank == 2)
                view_swap(&meta, 0, 1);
        return view_self(call, 0, &meta, 0);
}

static Status numpy_t_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        for (int i = 0; i < meta.rank / 2; i++)
                view_swap(&meta, i, meta.rank - 1 - i);
        return view_self(call, 0, &meta, 0);
}

static Status check_matrix(const OpCall *call, int rank)
{
        const char *name = call->schema->name;
        if (strcmp(name, "matrix_H") == 0 && rank != 0 && rank != 2)
                return fail(STATUS_VALUE,
                            "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s", rank,
                            rank > 2 ? " For batches of matrices, consider using tensor.mH" : "");
        if (rank != 1)
                return STATUS_OK;
        return fail(STATUS_VALUE,
                    "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.",
                    strcmp(name, "adjoint") == 0 ? "adjoint()" : name);
}

static Status matrix_t_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        TRY(check_matrix(call, meta.rank));
        if (meta.rank == 0)
                return view_self(call, 0, &meta, 0);
        view_swap(&meta, meta.rank - 2, meta.rank - 1);
        return view_self(call, 0, &meta, 0);
}

// Of complex numbers the conjugate of the transpose.
static Status complex_adjoint(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[SELF];
        const int rank = self.tensor->meta.rank;
        TRY(check_matrix(call, rank));
        if (rank == 0)
                return EMIT(emitter, "aten::_conj", out, self);
        _cleanup_(value_clear) Value transposed = value_none();
        TRY(EMIT(emitter, "aten::transpose.int", &transposed, self, value_int(-2), value_int(-1)));
        return EMIT(emitter, "aten::_conj", out, transposed);
}

static OpExpand adjoint_form(const OpCall *call)
{
        return dtype_info[arg_meta(call, SELF)->dtype].kind == DTYPE_KIND_COMPLEX ? complex_adjoint : NULL;
}

static Status movedim_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t from[MAX_RANK], to[MAX_RANK];
        int n = 0, n_to = 0, order[MAX_RANK];
        uint32_t used_from = 0, used_to = 0;
        TRY(view_arg_shape(call, MOVEDIM_SOURCE, from, &n));
        TRY(view_arg_shape(call, MOVEDIM_DESTINATION, to, &n_to));
        if (n != n_to)
                return fail(STATUS_VALUE,
                            "movedim: Invalid source or destination dims: source (%d dims) should contain "
                            "the same number of dims as destination (%d dims)",
                            n, n_to);
        for (int i = 0; i < n; i++) {
                int a, b;
                TRY(dim_wrap(from[i], self->rank, &a));
                TRY(dim_wrap(to[i], self->rank, &b));
                if ((used_from >> a & 1) != 0 || (used_to >> b & 1) != 0)
                        return fail(STATUS_VALUE, "movedim: repeated dim in `%s`",
                                    (used_from >> a & 1) != 0 ? "source" : "destination");
                used_from |= 1u << a;
                used_to |= 1u << b;
                order[b] = a;
        }
        int next = 0;
        for (int i = 0; i < self->rank; i++) {
                if ((used_to >> i & 1) == 0) {
                        while ((used_from >> next & 1) != 0)
                                next++;
                        order[i] = next++;
                }
                meta.size[i] = self->size[order[i]];
                meta.stride[i] = self->stride[order[i]];
        }
        return view_self(call, 0, &meta, 0);
}

const OpDef view_ops[] = {
        { "aten::alias(Tensor(a) self) -> Tensor(a)", .infer = alias_infer },
        { "aten::detach(Tensor(a) self) -> Tensor(a)", .flags = OP_INPLACE, .infer = alias_infer,
          .traits = TRAIT_SAME_GEOMETRY },
        { "aten::lift_fresh(Tensor(a) self) -> Tensor(a)", .infer = same_infer },
        { "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", .infer = view_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", .infer = view_infer,
          .traits = TRAIT_MAY_SHARE | TRAIT_BY_SHAPE },
        { "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", .infer = view_dtype_infer },
        { "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", .infer = view_as_infer },
        { "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
          .infer = unflatten_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::squeeze(Tensor(a) self) -> Tensor(a)", .flags = OP_INPLACE, .infer = squeeze_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", .flags = OP_INPLACE,
          .infer = squeeze_dim_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", .flags = OP_INPLACE,
          .infer = squeeze_dims_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", .flags = OP_INPLACE,
          .infer = unsqueeze_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", .infer = permute_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", .infer = transpose_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", .infer = transpose_infer },
        { "aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", .flags = OP_INPLACE,
          .infer = transpose_infer },
        { "aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", .flags = OP_INPLACE,
          .infer = transpose_infer },
        { "aten::t(Tensor(a) self) -> Tensor(a)", .flags = OP_INPLACE, .infer = t_infer },
        { "aten::numpy_T(Tensor(a) self) -> Tensor(a)", .infer = numpy_t_infer },
        { "aten::mT(Tensor(a) self) -> Tensor(a)", .infer = matrix_t_infer },
        { "aten::adjoint(Tensor(a) self) -> Tensor(a)", .infer = matrix_t_infer, .form = adjoint_form },
        { "aten::mH(Tensor(a) self) -> Tensor(a)", .infer = matrix_t_infer, .form = adjoint_form },
        { "aten::matrix_H(Tensor(a) self) -> Tensor(a)", .infer = matrix_t_infer, .form = adjoint_form },
        { "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
          .infer = movedim_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          .infer = movedim_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
          .infer = movedim_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          .infer = movedim_infer, .traits = TRAIT_BY_SHAPE },
};
OP_FILE(view_ops);
