// SPDX-License-Identifier: Apache-2.0
// shapes.c: operators that arrange, join and embed tensors by way of others.
#include "core/ops/compose.h"
#include "core/ops/pointwise.h"

enum { MAX_TENSORS = 64 }; // of a list

// ---- lists of tensors ----
static Status broadcast_tensors_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value list = NAMED(&c, "tensors");
        Value made[MAX_TENSORS];
        uint32_t n = compose_length(list);
        int64_t size[MAX_RANK];
        TensorMeta all;
        if (n > MAX_TENSORS)
                return fail(STATUS_TOO_LARGE, "broadcast_tensors: at most %d tensors", MAX_TENSORS);
        for (uint32_t i = 0; i < n; i++) {
                const TensorMeta *meta = compose_meta(&c, compose_item(&c, list, i));
                int rank = meta->rank;
                if (i == 0)
                        all = *meta;
                else
                        TRY(shape_broadcast(&all, meta, &rank, size));
                if (i > 0)
                        meta_init(&all, meta->dtype, rank, size);
        }
        Value wanted = n == 0 ? value_none() : compose_ints(&c, all.size, all.rank);
        for (uint32_t i = 0; i < n; i++)
                made[i] = OP(&c, "aten::expand", compose_item(&c, list, i), wanted);
        return compose_end(&c, compose_list(&c, made, n), out);
}

// With at least `rank` dimensions, as numpy adds them.
static Value at_least(Compose *c, Value x, int rank)
{
        int has = compose_meta(c, x)->rank;
        if (has >= rank)
                return x;
        if (has == 0)
                return OP(c, "aten::reshape", x, compose_ints(c, (const int64_t[]){ 1, 1, 1 }, rank));
        if (rank == 2 || has == 1)
                x = OP(c, "aten::unsqueeze", x, value_int(0));
        return rank == 3 ? OP(c, "aten::unsqueeze", x, value_int(-1)) : x;
}

static Status atleast_with(Emitter *emitter, const OpCall *call, int rank, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (call->schema->returns == RETURN_ONE)
                return compose_end(&c, at_least(&c, NAMED(&c, "self"), rank), out);
        Value list = NAMED(&c, "tensors"), made[MAX_TENSORS];
        uint32_t n = compose_length(list);
        if (n > MAX_TENSORS)
                return fail(STATUS_TOO_LARGE, "%s: at most %d tensors", call->schema->name, MAX_TENSORS);
        for (uint32_t i = 0; i < n; i++)
                made[i] = at_least(&c, compose_item(&c, list, i), rank);
        return compose_end(&c, compose_list(&c, made, n), out);
}

static Status atleast_1d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return atleast_with(emitter, call, 1, out);
}

static Status atleast_2d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return atleast_with(emitter, call, 2, out);
}

static Status atleast_3d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return atleast_with(emitter, call, 3, out);
}

static Status block_diag_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value list = NAMED(&c, "tensors"), rows[MAX_TENSORS];
        uint32_t n = compose_length(list);
        int64_t width = 0, before = 0;
        if (n > MAX_TENSORS)
                return fail(STATUS_TOO_LARGE, "block_diag: at most %d tensors", MAX_TENSORS);
        if (n == 0)
                return fail(STATUS_VALUE, "torch.cat(): expected a non-empty list of Tensors");
        for (uint32_t i = 0; i < n; i++) {
                const TensorMeta *meta = compose_meta(&c, compose_item(&c, list, i));
                if (meta->rank > 2)
                        return fail(
                                STATUS_SHAPE,
                                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %u "
                                "has %d dimensions",
                                i, meta->rank);
                if (!add_i64(width, meta->rank == 0 ? 1 : meta->size[meta->rank - 1], &width))
                        return fail(STATUS_TOO_LARGE, "block_diag: the result is too large");
        }
        Promotion promotion = PROMOTION_INIT;
        Dtype dtype = DTYPE_F32;
        for (uint32_t i = 0; i < n && !compose_failed(&c); i++)
                compose_check(&c, promotion_add(&promotion, compose_meta(&c, compose_item(&c, list, i))));
        if (!compose_failed(&c))
                compose_check(&c, promotion_result(&promotion, &dtype));
        for (uint32_t i = 0; i < n; i++) {
                Value block = compose_cast(&c, at_least(&c, compose_item(&c, list, i), 2), dtype);
                int64_t columns = compose_meta(&c, block)->rank == 2 ? compose_meta(&c, block)->size[1] : 0;
                rows[i] = OP(&c, "aten::constant_pad_nd", block, INTS(&c, before, width - before - columns));
                before += columns;
        }
        return compose_end(&c, OP(&c, "aten::cat", compose_list(&c, rows, n)), out);
}

static Status cartesian_prod_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value list = NAMED(&c, "tensors"), columns[MAX_TENSORS];
        uint32_t n = compose_length(list);
        if (n == 0 || n > MAX_RANK)
                return fail(STATUS_VALUE, "cartesian_prod: expected 1 to %d tensors, got %u", MAX_RANK, n);
        for (uint32_t i = 0; i < n; i++) {
                if (compose_meta(&c, compose_item(&c, list, i))->rank != 1)
                        return fail(STATUS_SHAPE, "Expect a 1D vector, but got shape of another rank");
        }
        if (n == 1)
                return compose_end(&c, OP(&c, "aten::alias", compose_item(&c, list, 0)), out);
        Value grid = OP(&c, "aten::meshgrid.indexing", list, compose_text(&c, "ij"));
        for (uint32_t i = 0; i < n; i++)
                columns[i] = OP(&c, "aten::reshape", compose_item(&c, grid, i), INTS(&c, -1));
        return compose_end(&c, OP(&c, "aten::stack", compose_list(&c, columns, n), value_int(1)), out);
}

static Status kron_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "other");
        const TensorMeta *am = compose_meta(&c, a), *bm = compose_meta(&c, b);
        int rank = MAX(am->rank, bm->rank);
        int64_t left[MAX_RANK], right[MAX_RANK], size[MAX_RANK];
        if (2 * rank > MAX_RANK)
                return fail(STATUS_UNSUPPORTED, "kron: tensors of at most %d dimensions", MAX_RANK / 2);
        for (int d = 0; d < rank; d++) {
                int ad = d - (rank - am->rank), bd = d - (rank - bm->rank);
                left[2 * d] = ad < 0 ? 1 : am->size[ad];
                left[2 * d + 1] = 1;
                right[2 * d] = 1;
                right[2 * d + 1] = bd < 0 ? 1 : bm->size[bd];
                if (!mul_i64(left[2 * d], right[2 * d + 1], &size[d]))
                        return fail(STATUS_TOO_LARGE, "kron: the result is too large");
        }
        Value product =
                OP(&c, "aten::mul.Tensor", OP(&c, "aten::reshape", a, compose_ints(&c, left, 2 * rank)),
                   OP(&c, "aten::reshape", b, compose_ints(&c, right, 2 * rank)));
        return compose_end(&c, OP(&c, "aten::reshape", product, compose_ints(&c, size, rank)), out);
}

// ---- diagonals ----
static Status diag_embed_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        int rank = meta->rank + 1;
        int64_t offset = compose_int(&c, "offset"), side, size[MAX_RANK];
        if (meta->rank == 0 || rank > MAX_RANK)
                return fail(STATUS_SHAPE, "diag_embed: expected 1 to %d dimensions, got %d", MAX_RANK - 1,
                            meta->rank);
        int a = compose_dim(&c, "dim1", rank), b = compose_dim(&c, "dim2", rank);
        if (!compose_failed(&c) && a == b)
                return fail(STATUS_VALUE, "diagonal dimensions cannot be identical %ld, %ld",
                            (long)compose_int(&c, "dim1"), (long)compose_int(&c, "dim2"));
        if (offset == INT64_MIN || !add_i64(meta->size[rank - 2], offset < 0 ? -offset : offset, &side))
                return fail(STATUS_TOO_LARGE, "diag_embed: the result is too large");
        for (int d = 0, k = 0; d < rank; d++)
                size[d] = d == a || d == b ? side : meta->size[k++];
        Value zeros = OP(&c, "aten::zeros", compose_ints(&c, size, rank), value_dtype(meta->dtype));
        Value made =
                OP(&c, "aten::diagonal_scatter", zeros, self, value_int(offset), value_int(a), value_int(b));
        return compose_end(&c, made, out);
}

static Status diag_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), offset = NAMED(&c, "diagonal");
        int rank = compose_meta(&c, self)->rank;
        if (rank != 1 && rank != 2)
                return fail(STATUS_SHAPE, "diag(): Supports 1D or 2D tensors. Got %dD", rank);
        if (rank == 1)
                return compose_end(&c, OP(&c, "aten::diag_embed", self, offset), out);
        Value view = OP(&c, "aten::diagonal", self, offset);
        return compose_end(
                &c,
                OP(&c, "aten::clone", view,
                   (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }),
                out);
}

static Status trace_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        if (compose_meta(&c, self)->rank != 2)
                return fail(STATUS_SHAPE, "trace: expected a matrix, but got tensor with dim %d",
                            compose_meta(&c, self)->rank);
        return compose_end(&c, OP(&c, "aten::sum", OP(&c, "aten::diagonal", self)), out);
}

// Where a tall matrix is to wrap, its diagonal begins anew below the first square.
static void fill_wrapped(Compose *c, Value self, int64_t n, int64_t stride)
{
        const TensorMeta *meta = compose_meta(c, self);
        int64_t step = meta->size[1] + 1;
        int64_t n_more = (meta_numel(meta) + step - 1) / step - n;
        int64_t offset = self.tensor->offset + meta->stride[0] * step;
        Value view = OP(c, "aten::as_strided", self, INTS(c, n_more), INTS(c, stride), value_int(offset));
        OP(c, "aten::fill_.Scalar", view, NAMED(c, "fill_value"));
}

static Status fill_diagonal_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        if (meta->rank < 2)
                return fail(STATUS_SHAPE, "dimensions must larger than 1");
        int64_t n = meta->size[0], stride = 0;
        for (int d = 0; d < meta->rank; d++) {
                if (meta->rank > 2 && meta->size[d] != meta->size[0])
                        return fail(STATUS_SHAPE, "all dimensions of input must be of equal length");
                n = MIN(n, meta->size[d]);
                stride += meta->stride[d];
        }
        Value view = OP(&c, "aten::as_strided", self, INTS(&c, n), INTS(&c, stride));
        OP(&c, "aten::fill_.Scalar", view, NAMED(&c, "fill_value"));
        if (!compose_failed(&c) && meta->rank == 2 && compose_bool(&c, "wrap") &&
            meta->size[0] > meta->size[1] + 1)
                fill_wrapped(&c, self, n, stride);
        return compose_end(&c, self, out);
}

// ---- turning and windows ----
static Status rot90_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        int64_t given[MAX_RANK], k = compose_int(&c, "k") % 4;
        int n = compose_int_list(&c, "dims", given), dims[2] = { 0, 1 };
        if (n != 2)
                return fail(STATUS_VALUE, "expected total rotation dims == 2, but got dims = %d", n);
        if (meta->rank < 2)
                return fail(STATUS_SHAPE, "expected total dims >= 2, but got total dims = %d", meta->rank);
        for (int i = 0; i < 2; i++)
                TRY(dim_wrap(given[i], meta->rank, &dims[i]));
        if (dims[0] == dims[1])
                return fail(STATUS_VALUE,
                            "expected rotation dims to be different, but got dim0 = %ld and dim1 = "
                            "%ld",
                            (long)given[0], (long)given[1]);
        k = (k + 4) % 4;
        if (k == 0)
                return compose_end(
                        &c,
                        OP(&c, "aten::clone", self,
                           (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }),
                        out);
        if (k == 2)
                return compose_end(&c, OP(&c, "aten::flip", self, INTS(&c, dims[0], dims[1])), out);
        Value flipped = OP(&c, "aten::flip", self, INTS(&c, dims[k == 1 ? 1 : 0]));
        return compose_end(&c, OP(&c, "aten::transpose.int", flipped, value_int(dims[0]), value_int(dims[1])),
                           out);
}

static Status unfold_copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value view = OP(&c, "aten::unfold", NAMED(&c, "self"), NAMED(&c, "dimension"), NAMED(&c, "size"),
                        NAMED(&c, "step"));
        return compose_end(
                &c,
                OP(&c, "aten::clone", view,
                   (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }),
                out);
}

// ---- masks ----
// The k-th true element of the mask gets source[k]. A 0 in front of the source stands for the
// elements whose mask is false, so that an index beyond the source is refused.
static Status masked_scatter_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), mask = NAMED(&c, "mask"), source = NAMED(&c, "source");
        Dtype dtype = compose_meta(&c, self)->dtype;
        if (compose_meta(&c, mask)->dtype != DTYPE_BOOL)
                return fail(STATUS_DTYPE,
                            "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                            dtype_words(compose_meta(&c, mask)->dtype));
        if (compose_meta(&c, source)->dtype != dtype)
                return fail(STATUS_DTYPE,
                            "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                            dtype_words(dtype), dtype_words(compose_meta(&c, source)->dtype));
        Value both = OP(&c, "aten::broadcast_tensors", compose_list(&c, (Value[]){ self, mask }, 2));
        self = compose_item(&c, both, 0);
        mask = compose_item(&c, both, 1);
        const TensorMeta *meta = compose_meta(&c, self);
        Value flat = OP(&c, "aten::reshape", mask, INTS(&c, -1));
        Value at = OP(&c, "aten::mul.Tensor", OP(&c, "aten::cumsum", flat, value_int(0)), flat);
        Value first = OP(&c, "aten::zeros", INTS(&c, 1), value_dtype(dtype));
        Value rows = OP(&c, "aten::reshape", source, INTS(&c, -1));
        Value picked =
                OP(&c, "aten::index_select",
                   OP(&c, "aten::cat", compose_list(&c, (Value[]){ first, rows }, 2)), value_int(0), at);
        picked = OP(&c, "aten::reshape", picked, compose_ints(&c, meta->size, meta->rank));
        return compose_end(&c, OP(&c, "aten::where.self", mask, picked, self), out);
}

// Sums that undo an expansion to the shape of `self`.
static Status sum_to_size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        int64_t size[MAX_RANK], summed[MAX_RANK];
        char wanted[128], has[128];
        const int rank = compose_int_list(&c, "size", size), lead = meta->rank - rank;
        int n = 0;
        bool fits = lead >= 0;
        for (int d = 0; fits && d < meta->rank; d++) {
                const bool joins = d < lead || (size[d - lead] == 1 && meta->size[d] != 1);
                fits = joins || size[d - lead] == meta->size[d];
                if (joins)
                        summed[n++] = d;
        }
        if (!fits)
                return fail(STATUS_SHAPE, "size {%s} is not expandable to size {%s}.",
                            shape_text(rank, size, wanted, sizeof(wanted)),
                            shape_text(meta->rank, meta->size, has, sizeof(has)));
        if (n > 0 || rank == 0)
                self = OP(&c, "aten::sum.dim_IntList", self, compose_ints(&c, summed, n), value_bool(true));
        return compose_end(&c, lead > 0 ? OP(&c, "aten::view", self, compose_ints(&c, size, rank)) : self,
                           out);
}

#define VIEW_OR_COPY(schema, function)                                                                       \
        {                                                                                                    \
                "aten::" schema, 0, .expand = function##_expand, .traits = TRAIT_MAY_SHARE                   \
        }
#define FRESH(schema, function)                                                                              \
        {                                                                                                    \
                "aten::" schema, 0, .expand = function##_expand, .traits = TRAIT_FRESH                       \
        }
const OpDef shapes_ops[] = {
        VIEW_OR_COPY("broadcast_tensors(Tensor[] tensors) -> Tensor[]", broadcast_tensors),
        VIEW_OR_COPY("atleast_1d(Tensor self) -> Tensor", atleast_1d),
        VIEW_OR_COPY("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", atleast_1d),
        VIEW_OR_COPY("atleast_2d(Tensor self) -> Tensor", atleast_2d),
        VIEW_OR_COPY("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", atleast_2d),
        VIEW_OR_COPY("atleast_3d(Tensor self) -> Tensor", atleast_3d),
        VIEW_OR_COPY("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", atleast_3d),
        VIEW_OR_COPY("sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size),
        FRESH("block_diag(Tensor[] tensors) -> Tensor", block_diag),
        VIEW_OR_COPY("cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod),
        FRESH("kron(Tensor self, Tensor other) -> Tensor", kron),
        FRESH("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed),
        FRESH("diag(Tensor self, int diagonal=0) -> Tensor", diag),
        FRESH("trace(Tensor self) -> Tensor", trace),
        { "aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", 0,
          .expand = fill_diagonal_expand },
        FRESH("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", rot90),
        FRESH("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", unfold_copy),
        { "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", 0, .flags = OP_INPLACE,
          .expand = masked_scatter_expand, .traits = TRAIT_FRESH },
};
OP_FILE(shapes_ops);
