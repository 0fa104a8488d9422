// SPDX-License-Identifier: Apache-2.0
// index_scatter.c: scatter, scatter_add, scatter_reduce, index_add, index_copy, index_fill,
// index_reduce. The result is a contiguous copy of self; positions are then written in row-major
// order, so that of equal indices the last one wins. Sums are rounded at every step, in the order
// PyTorch has on one thread; those of halves at the end only where PyTorch does so.
#include "core/kernels/copy.h"
#include "core/kernels/index/index.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include <math.h>
#include <string.h>

// What argument 3 is.
typedef enum ScatterSource {
        FROM_TENSOR, // an element for each position
        FROM_NUMBER, // one for all
        FROM_BOXED,  // one for all, in a tensor
} ScatterSource;

typedef struct ScatterRow {
        ScatterKind kind;
        ScatterSource source;
        bool by_name; // a `reduce` argument chooses
        bool lines;   // index_*: a vector of indices, whole slices of source
} ScatterRow;

// scatter_reduce.two, index_reduce and their twins.
static bool has_include_self(const OpCall *call)
{
        return call->schema->n_args == 6;
}

static bool is_mean(const OpCall *call)
{
        const ScatterRow *row = call->op->row;
        const char *name = row->by_name ? arg_text(call, SCATTER_REDUCE) : NULL;
        return name != NULL && strcmp(name, "mean") == 0 && has_include_self(call);
}

static Status scatter_kind(const OpCall *call, ScatterKind *out)
{
        const ScatterRow *row = call->op->row;
        *out = row->kind;
        if (!row->by_name)
                return STATUS_OK;
        static const struct {
                const char *name;
                ScatterKind kind;
        } kinds[] = {
                { "add", SCATTER_ADD },       { "multiply", SCATTER_MULTIPLY }, { "sum", SCATTER_ADD },
                { "prod", SCATTER_MULTIPLY }, { "amax", SCATTER_MAX },          { "amin", SCATTER_MIN }
        };
        const char *name = arg_text(call, SCATTER_REDUCE);
        // scatter.reduce knows the first two, scatter_reduce.two the others, index_reduce no sum.
        bool two = has_include_self(call);
        for (size_t i = two ? 2 + row->lines : 0; i < (two ? ARRAY_LENGTH(kinds) : 2); i++) {
                if (name != NULL && strcmp(name, kinds[i].name) == 0) {
                        *out = kinds[i].kind;
                        return STATUS_OK;
                }
        }
        if (is_mean(call)) {
                if (!row->lines && arg_meta(call, SELF)->dtype == DTYPE_BOOL)
                        return fail(STATUS_DTYPE,
                                    "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'");
                *out = SCATTER_ADD;
                return STATUS_OK;
        }
        if (row->lines)
                return fail(STATUS_VALUE,
                            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
                            "%s.",
                            name == NULL ? "None" : name);
        return fail(STATUS_VALUE,
                    two ? "reduce argument must be either sum, prod, mean, amax or amin, got %s."
                        : "reduce argument must be either add or multiply, got %s.",
                    name == NULL ? "None" : name);
}

static Status check_index(const OpCall *call, const TensorMeta *self, const TensorMeta *index,
                          const TensorMeta *src, int dim)
{
        char a[128], b[128], c[128];
        if (meta_numel(index) != 0 && index->dtype != DTYPE_I64 && index->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE, "%s(): Expected dtype int32/int64 for index", call->schema->name);
        if (src != NULL && src->dtype != self->dtype)
                return fail(STATUS_DTYPE, "%s(): Expected self.dtype to be equal to src.dtype",
                            call->schema->name);
        if (meta_numel(index) == 0)
                return STATUS_OK;
        if (MAX(index->rank, 1) != MAX(self->rank, 1))
                return fail(STATUS_SHAPE,
                            "Index tensor must have the same number of dimensions as self tensor");
        if (src != NULL && MAX(index->rank, 1) != MAX(src->rank, 1))
                return fail(STATUS_SHAPE,
                            "Index tensor must have the same number of dimensions as src tensor");
        bool fits = true;
        for (int d = 0; d < index->rank; d++) {
                fits = fits && (d == dim || d >= self->rank || index->size[d] <= self->size[d]);
                fits = fits && (src == NULL || d >= src->rank || index->size[d] <= src->size[d]);
        }
        if (fits)
                return STATUS_OK;
        shape_text(index->rank, index->size, a, sizeof(a));
        shape_text(self->rank, self->size, b, sizeof(b));
        if (src == NULL)
                return fail(STATUS_SHAPE,
                            "Expected index %s to be no larger than self %s apart from dimension %d", a, b,
                            dim);
        return fail(STATUS_SHAPE,
                    "Expected index %s to be no larger than self %s apart from dimension %d and to be no "
                    "larger size than src %s",
                    a, b, dim, shape_text(src->rank, src->size, c, sizeof(c)));
}

static Status check_lines(const OpCall *call, const TensorMeta *self, const TensorMeta *index,
                          const TensorMeta *src, int dim)
{
        if (index->rank > 1)
                return fail(STATUS_INDEX, "%s(): Index is supposed to be a vector", call->schema->name);
        const ScatterRow *row = call->op->row;
        if (index->dtype != DTYPE_I64 && (index->dtype != DTYPE_I32 || row->kind == SCATTER_COPY))
                return fail(STATUS_DTYPE, "%s(): Expected dtype %s for index", call->schema->name,
                            row->kind == SCATTER_COPY ? "int64" : "int32/int64");
        if (src == NULL)
                return STATUS_OK;
        if (src->dtype != self->dtype)
                return fail(STATUS_DTYPE, "%s(): self (%s) and source (%s) must have the same scalar type",
                            call->schema->name, dtype_words(self->dtype), dtype_words(src->dtype));
        int64_t n = meta_numel(index), have = src->rank == 0 ? 1 : src->size[MIN(dim, src->rank - 1)];
        bool fits = n == have && (row->kind == SCATTER_ADD ? src->rank == self->rank
                                                           : MAX(src->rank, 1) == MAX(self->rank, 1));
        for (int d = 0; fits && d < self->rank && d < src->rank; d++)
                fits = d == dim || self->size[d] == src->size[d];
        if (!fits)
                return fail(STATUS_SHAPE,
                            "%s(): Number of indices (%ld) should be equal to source.size(dim): (%ld), and "
                            "the other sizes to self's",
                            call->schema->name, (long)n, (long)have);
        return STATUS_OK;
}

// What index_reduce refuses beyond index_add. Bools and complex numbers are reduced in whole slices
// only.
static Status check_reduced_lines(const OpCall *call, const TensorMeta *self, const TensorMeta *source)
{
        if (self->rank != source->rank)
                return fail(STATUS_SHAPE,
                            "source tensor shape must match self tensor shape, excluding the specified "
                            "dimension");
        const bool complex = point_is_complex(self->dtype),
                   include_self = arg_bool(call, SCATTER_INCLUDE_SELF, true),
                   whole = self->rank > 1 && include_self && (complex || !is_mean(call));
        return whole || (self->dtype != DTYPE_BOOL && !complex)
                       ? STATUS_OK
                       : fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'",
                              complex && !include_self ? "index_reduce_func_exclude_input_init"
                                                       : "index_func_",
                              dtype_words(self->dtype));
}

static Status refuse_complex_fill(void)
{
        return fail(STATUS_VALUE,
                    "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

// The number is known now, be it a number or a tensor.
static Status check_value(const OpCall *call, const TensorMeta *self, const TensorMeta *index)
{
        const ScatterRow *row = call->op->row;
        const Value number = arg_number(call, SCATTER_SOURCE);
        double value;
        if (number.kind != VALUE_COMPLEX)
                TRY(arg_double(call, SCATTER_SOURCE, &value));
        else if (row->lines && !point_is_complex(self->dtype))
                return refuse_complex_fill();
        return row->lines || meta_numel(index) != 0 ? number_check_fits(number, self->dtype) : STATUS_OK;
}

// Whether the number fits is checked by run.
static Status check_boxed(const OpCall *call, const TensorMeta *self)
{
        const TensorMeta *value = arg_meta(call, SCATTER_SOURCE);
        if (value->rank != 0)
                return fail(STATUS_SHAPE,
                            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                            "dimension(s).",
                            value->rank);
        if (point_is_complex(value->dtype) && !point_is_complex(self->dtype))
                return refuse_complex_fill();
        if (((DTYPES_REAL | DTYPES_COMPLEX) & DTYPE_BIT(self->dtype)) == 0)
                return fail(STATUS_DTYPE, "\"index_fill_cpu\" not implemented for '%s'",
                            dtype_words(self->dtype));
        return STATUS_OK;
}

// An index has no place in a dimension of size 0. index_reduce asks also where a slice would have
// no elements; index_add asks vectors only.
static Status check_places(const OpCall *call, const TensorMeta *self, const TensorMeta *index, int dim)
{
        const ScatterRow *row = call->op->row;
        if (self->rank == 0 || self->size[dim] != 0 || meta_numel(index) == 0)
                return STATUS_OK;
        bool asks = true;
        for (int d = 0; d < self->rank && !(row->lines && row->by_name); d++)
                asks = asks && (d == dim || self->size[d] != 0);
        if (row->lines && row->kind == SCATTER_ADD)
                asks = self->rank == 1;
        return asks ? fail(STATUS_INDEX, "%s(): the index has %ld elements, but dimension %d has size 0",
                           call->schema->name, (long)meta_numel(index), dim)
                    : STATUS_OK;
}

static Status scatter_infer(OpCall *call)
{
        const ScatterRow *row = call->op->row;
        const TensorMeta *self = arg_meta(call, SELF), *index = arg_meta(call, SCATTER_INDEX),
                         *src = row->source == FROM_TENSOR ? arg_meta(call, SCATTER_SOURCE) : NULL;
        int dim;
        if (call->inplace) // a number in a tensor is read before anything is written
                TRY(inplace_check_apart(call, row->source == FROM_BOXED ? SCATTER_SOURCE : call->n_args));
        ScatterKind kind;
        TRY(arg_dim(call, SCATTER_DIM, self->rank, &dim));
        TRY(scatter_kind(call, &kind));
        if (point_is_complex(self->dtype) && (kind == SCATTER_MAX || kind == SCATTER_MIN))
                return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s': complex numbers have no order",
                            call->schema->name, dtype_words(self->dtype));
        TRY(row->lines ? check_lines(call, self, index, src, dim) : check_index(call, self, index, src, dim));
        TRY(check_places(call, self, index, dim));
        if (row->lines && row->by_name)
                TRY(check_reduced_lines(call, self, src));
        if (row->source == FROM_NUMBER)
                TRY(check_value(call, self, index));
        else if (row->source == FROM_BOXED)
                TRY(check_boxed(call, self));
        if (row->lines && row->kind == SCATTER_ADD) {
                double alpha;
                TRY(arg_double(call, INDEX_ADD_ALPHA, &alpha));
                TRY(number_check_fits(arg_number(call, INDEX_ADD_ALPHA), self->dtype));
        }
        TensorMeta meta = *self;
        if (row->source != FROM_TENSOR && row->lines) // index_fill writes to a clone
                meta_set_strides_like(&meta, self);
        else
                meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

// The lowest or highest integer of a dtype.
static int64_t int_extreme(Dtype dtype, bool highest)
{
        int bits = 8 * dtype_info[dtype].bytes;
        if (dtype == DTYPE_BOOL || dtype == DTYPE_U8)
                return !highest ? 0 : dtype == DTYPE_BOOL ? 1 : 255;
        return highest ? (int64_t)(UINT64_MAX >> (65 - bits)) : -(int64_t)(UINT64_MAX >> (65 - bits)) - 1;
}

// include_self=False: places that are written start from the reduction's neutral element.
static Status forget_self(const OpRun *run, IndexWalk *walk, ScatterKind kind, void *out)
{
        Dtype dtype = walk->dtype;
        _Alignas(16) char neutral[16] = { 0 };
        bool extreme = kind == SCATTER_MAX || kind == SCATTER_MIN;
        if (!extreme)
                TRY(value_element(value_int(kind == SCATTER_MULTIPLY), dtype, neutral));
        else if (dtype_is_float(dtype))
                element_from_f64(dtype, neutral, kind == SCATTER_MAX ? -INFINITY : INFINITY);
        else
                element_from_i64(dtype, neutral, int_extreme(dtype, kind == SCATTER_MIN));
        IndexWalk fill = *walk;
        memset(fill.plain_stride, 0, sizeof(fill.plain_stride));
        return index_scatter(run->ctx, &fill, SCATTER_COPY, out, neutral);
}

// Describes the walk over index positions. The vector of index_* is expanded over the other
// dimensions by stride 0.
static Status describe(const OpRun *run, int dim, const TensorMeta *out, IndexWalk *walk, Dense *index)
{
        const ScatterRow *row = run->call->op->row;
        const TensorMeta *self = run->in_meta[0];
        TensorMeta positions = *run->in_meta[1];
        if (positions.rank == 0 && self->rank > 0) {
                positions.rank = 1;
                positions.size[0] = positions.stride[0] = 1;
        }
        if (row->lines && self->rank > 0) {
                int64_t n = meta_numel(&positions), step = positions.stride[0];
                positions.rank = self->rank;
                for (int d = 0; d < self->rank; d++) {
                        positions.size[d] = d == dim ? n : self->size[d];
                        positions.stride[d] = d == dim ? step : 0;
                }
        }
        int64_t n_values;
        *walk = (IndexWalk){ .dim = dim,
                             .n_indexed = self->rank == 0 ? 1 : self->size[dim],
                             .dtype = self->dtype,
                             .wraps = row->source != FROM_TENSOR && row->lines };
        TRY(index_walk_init(run->ctx, run->in[1], &positions, walk, index, &n_values));
        if (self->rank > 0)
                memcpy(walk->indexed_stride, out->stride, sizeof(walk->indexed_stride));
        return STATUS_OK;
}

enum { ELEMENT_STEPS = 8 };

static Status scale_source(const OpRun *run, Dense *scaled, const void **src, TensorMeta *meta)
{
        // index_add(alpha=): source * alpha, both in the dtype of self.
        uint64_t element = 0;
        TRY(value_element(arg_number(run->call, INDEX_ADD_ALPHA), meta->dtype, &element));
        double alpha = element_as_f64(meta->dtype, &element);
        if (alpha == 1)
                return STATUS_OK;
        uint64_t whole = (uint64_t)element_as_i64(meta->dtype, &element);
        Dtype as = dtype_compute(meta->dtype);
        TensorMeta contiguous = *meta;
        contiguous.dtype = as;
        meta_set_contiguous(&contiguous);
        _cleanup_(dense_deinit) Dense wide = { 0 };
        TRY(dense_init(&wide, run->ctx, *src, meta, as));
        int64_t n = meta_numel(meta);
        TRY(scratch_init(&scaled->scratch, run->ctx, n, dtype_info[meta->dtype].bytes));
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, ELEMENT_STEPS); i++) {
                char *to = (char *)scaled->scratch.data + i * dtype_info[meta->dtype].bytes;
                if (as == DTYPE_I64)
                        element_from_i64(meta->dtype, to,
                                         (int64_t)(((const uint64_t *)wide.data)[i] * whole));
                else
                        element_from_f64(meta->dtype, to, compute_as_f64(as, wide.data, i) * alpha);
        }
        *src = scaled->scratch.data;
        meta_set_contiguous(meta);
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// By a complex number, as PyTorch does: an infinite part makes the other one NaN.
#define DIVIDE_COMPLEX(name, type)                                                                           \
        static void name(type *sum, int64_t count)                                                           \
        {                                                                                                    \
                const type re = sum[0], im = sum[1], n = (type)MAX(count, 1);                                \
                sum[0] = (re + im * 0) / n;                                                                  \
                sum[1] = (im - re * 0) / n;                                                                  \
        }
DIVIDE_COMPLEX(divide_c64, float)
DIVIDE_COMPLEX(divide_c128, double)

static void divide_element(Dtype dtype, void *sum, int64_t count)
{
        if (dtype == DTYPE_C64) {
                divide_c64(sum, count);
        } else if (dtype == DTYPE_C128) {
                divide_c128(sum, count);
        } else if (count > 1 && dtype_is_float(dtype)) {
                element_from_f64(dtype, sum, element_as_f64(dtype, sum) / (double)count);
        } else if (count > 1) {
                int64_t whole = element_as_i64(dtype, sum), quotient = whole / count;
                element_from_i64(dtype, sum, quotient - (whole % count < 0));
        }
}

// reduce='mean': divides each sum by its number of terms; integers are floored.
static Status divide_by_counts(const OpRun *run, const IndexWalk *walk, bool include_self)
{
        const TensorMeta *out = run->out_meta[0];
        int64_t n = meta_numel(out), one = 1, bytes = dtype_info[out->dtype].bytes;
        _cleanup_(scratch_deinit) Scratch counts = { 0 };
        TRY(scratch_init(&counts, run->ctx, n, sizeof(int64_t)));
        int64_t *count = counts.data;
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 1); i++)
                count[i] = include_self;
        IndexWalk ones = *walk;
        ones.dtype = DTYPE_I64;
        memset(ones.plain_stride, 0, sizeof(ones.plain_stride));
        TRY(index_scatter(run->ctx, &ones, SCATTER_ADD, count, &one));
        for (int64_t i = 0; i < n && !work_stops(&work, ELEMENT_STEPS); i++)
                divide_element(out->dtype, (char *)run->out[0] + i * bytes, count[i]);
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// Whether sums and products of halves are made in float32 and rounded once. PyTorch does so in all
// scatters, and in the index_adds that it hands to scatter_add.
static Status is_rounded_once(const OpRun *run, ScatterKind kind, int dim, bool *out)
{
        const ScatterRow *row = run->call->op->row;
        const TensorMeta *self = run->in_meta[0];
        *out = (DTYPES_HALFS >> self->dtype & 1) != 0 && (kind == SCATTER_ADD || kind == SCATTER_MULTIPLY);
        if (!*out || !row->lines)
                return STATUS_OK;
        double alpha = 0;
        if (row->kind == SCATTER_ADD)
                TRY(arg_double(run->call, INDEX_ADD_ALPHA, &alpha));
        *out = alpha == 1 && self->rank > 1 && (dim == 0 || dim == self->rank - 1) &&
               run->in_meta[1]->dtype == DTYPE_I64;
        return STATUS_OK;
}

// The same in float32. `src_meta` is NULL where `src` is one element.
static Status scatter_wide(const OpRun *run, const IndexWalk *walk, ScatterKind kind, bool include_self,
                           const void *src, const TensorMeta *src_meta)
{
        _cleanup_(dense_out_deinit) DenseOut sums = { 0 };
        _cleanup_(dense_deinit) Dense terms = { 0 };
        IndexWalk wide = *walk;
        TensorMeta sums_meta = *run->out_meta[0];
        wide.dtype = sums_meta.dtype = DTYPE_F32;
        float element;
        TRY(dense_out_init(&sums, run->ctx, run->out[0], run->out_meta[0], DTYPE_F32));
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(&sums_meta, sums.data);
        TRY(copy_region(run->ctx, &from, &to));
        if (src_meta == NULL) {
                element = (float)element_as_f64(walk->dtype, src);
                src = &element;
        } else {
                TensorMeta contiguous = *src_meta;
                meta_set_contiguous(&contiguous);
                TRY(dense_init(&terms, run->ctx, src, src_meta, DTYPE_F32));
                src = terms.data;
                memcpy(wide.plain_stride, contiguous.stride, sizeof(wide.plain_stride));
        }
        if (!include_self)
                TRY(forget_self(run, &wide, kind, sums.data));
        TRY(index_scatter(run->ctx, &wide, kind, sums.data, src));
        return dense_out_store(&sums);
}

static Status scatter_run(const OpRun *run)
{
        const ScatterRow *row = run->call->op->row;
        const TensorMeta *self = run->in_meta[0];
        int dim;
        ScatterKind kind;
        TRY(arg_dim(run->call, SCATTER_DIM, self->rank, &dim));
        TRY(scatter_kind(run->call, &kind));
        const bool writes = meta_numel(run->in_meta[1]) != 0 && meta_numel(self) != 0;
        _Alignas(16) char value[16] = { 0 };
        if (row->source == FROM_BOXED)
                TRY(value_element(element_number(run->in_meta[2]->dtype, run->in[2]), self->dtype, value));
        else if (row->source == FROM_NUMBER && writes)
                TRY(value_element(arg_number(run->call, SCATTER_SOURCE), self->dtype, value));
        bool wide;
        TRY(is_rounded_once(run, kind, dim, &wide));
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        if (!writes || !wide)
                TRY(copy_region(run->ctx, &from, &to));
        if (!writes)
                return STATUS_OK;
        _cleanup_(dense_deinit) Dense index = { 0 }, scaled = { 0 };
        IndexWalk walk;
        TRY(describe(run, dim, run->out_meta[0], &walk, &index));
        const void *src = value;
        TensorMeta src_meta;
        if (row->source == FROM_TENSOR) {
                src_meta = *run->in_meta[2];
                src = run->in[2];
                if (row->lines && row->kind == SCATTER_ADD)
                        TRY(scale_source(run, &scaled, &src, &src_meta));
                if (src_meta.rank > 0)
                        memcpy(walk.plain_stride, src_meta.stride, sizeof(walk.plain_stride));
        }
        bool include_self = !has_include_self(run->call) || arg_bool(run->call, SCATTER_INCLUDE_SELF, true);
        if (wide) {
                TRY(scatter_wide(run, &walk, kind, include_self, src,
                                 row->source == FROM_TENSOR ? &src_meta : NULL));
        } else {
                if (!include_self)
                        TRY(forget_self(run, &walk, kind, run->out[0]));
                TRY(index_scatter(run->ctx, &walk, kind, run->out[0], src));
        }
        return is_mean(run->call) ? divide_by_counts(run, &walk, include_self) : STATUS_OK;
}

static const ScatterRow copy_row = { .kind = SCATTER_COPY },
                        value_row = { .kind = SCATTER_COPY, .source = FROM_NUMBER },
                        add_row = { .kind = SCATTER_ADD },
                        named_row = { .kind = SCATTER_ADD, .by_name = true },
                        named_value_row = { .kind = SCATTER_ADD, .by_name = true, .source = FROM_NUMBER },
                        lines_copy_row = { .kind = SCATTER_COPY, .lines = true },
                        lines_add_row = { .kind = SCATTER_ADD, .lines = true },
                        lines_value_row = { .kind = SCATTER_COPY, .source = FROM_NUMBER, .lines = true },
                        lines_boxed_row = { .kind = SCATTER_COPY, .source = FROM_BOXED, .lines = true },
                        lines_named_row = { .kind = SCATTER_MULTIPLY, .by_name = true, .lines = true };
#define SCATTER(schema, dtypes, row_) SCATTER_AS(NULL, schema, dtypes, row_)
#define SCATTER_AS(form_, schema, dtypes, row_)                                                              \
        {                                                                                                    \
                schema, dtypes, OP_INPLACE | OP_CHECKS, .infer = scatter_infer, .run = scatter_run,          \
                                                        .form = form_, .row = &(row_), .traits = TRAIT_FRESH \
        }

const OpDef index_scatter_ops[] = {
        SCATTER("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", DTYPES_ALL,
                copy_row),
        SCATTER("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                DTYPES_REAL | DTYPES_COMPLEX, value_row),
        SCATTER("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> "
                "Tensor",
                DTYPES_REAL | DTYPES_COMPLEX, named_row),
        SCATTER("aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) "
                "-> Tensor",
                DTYPES_REAL | DTYPES_COMPLEX, named_value_row),
        SCATTER("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", DTYPES_REAL,
                add_row),
        SCATTER("aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
                "bool include_self=True) -> Tensor",
                DTYPES_REAL | DTYPES_COMPLEX, named_row),
        SCATTER("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
                "Tensor",
                DTYPES_REAL, lines_add_row),
        SCATTER("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", DTYPES_ALL,
                lines_copy_row),
        SCATTER_AS(inplace_lines_form,
                   "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                   DTYPES_REAL | DTYPES_COMPLEX, lines_value_row),
        SCATTER_AS(inplace_lines_form,
                   "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
                   0, lines_boxed_row),
        SCATTER("aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                "include_self=True) -> Tensor",
                DTYPES_REAL | DTYPES_COMPLEX, lines_named_row),
};
OP_FILE(index_scatter_ops);
