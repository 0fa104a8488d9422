// SPDX-License-Identifier: Apache-2.0
// search.c: searchsorted, bucketize, isin, histc, col2im.
#include <math.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/index/search.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/pointwise.h"

// ---- searchsorted, bucketize ----
typedef struct SearchRow {
        int sorted, values; // positions
        bool has_side;      // side and sorter
} SearchRow;

static Status search_right(const OpCall *call, bool *out)
{
        const SearchRow *row = call->op->row;
        *out = arg_bool(call, SEARCH_RIGHT, false);
        const char *side = row->has_side ? arg_text(call, SEARCH_SIDE) : NULL;
        if (side == NULL)
                return STATUS_OK;
        if (strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
                return fail(STATUS_VALUE,
                            "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
        if (*out && side[0] == 'l')
                return fail(STATUS_VALUE,
                            "torch.searchsorted(): side and right can't be set to opposites, got side "
                            "of left while right was True");
        *out = side[0] == 'r';
        return STATUS_OK;
}

static Status search_infer(OpCall *call)
{
        const SearchRow *row = call->op->row;
        const TensorMeta *sorted = arg_meta(call, row->sorted), *values = arg_meta(call, row->values);
        const TensorMeta *order = row->has_side ? arg_meta(call, SEARCH_SORTER) : NULL;
        bool right, fits = sorted->rank == values->rank || sorted->rank == 1;
        TRY(search_right(call, &right));
        if (!row->has_side && sorted->rank != 1)
                return fail(STATUS_SHAPE, "boundaries tensor must be 1 dimension, but got dim(%d)",
                            sorted->rank);
        if (sorted->rank == 0 || (sorted->rank != 1 && values->rank == 0))
                return fail(STATUS_SHAPE,
                            "torch.searchsorted(): input value can be a scalar only when boundaries "
                            "tensor dimension is 1, but we got boundaries tensor dim(%d) and input "
                            "value's dim(%d)",
                            sorted->rank, values->rank);
        for (int d = 0; fits && sorted->rank != 1 && d < sorted->rank - 1; d++)
                fits = sorted->size[d] == values->size[d];
        if (!fits)
                return fail(STATUS_SHAPE,
                            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first "
                            "N-1 dimensions of boundaries tensor and input value tensor must match");
        if (order != NULL && (order->dtype != DTYPE_I64 || !meta_same_shape(order, sorted)))
                return fail(STATUS_SHAPE,
                            "torch.searchsorted(): sorter must be int64 and have the shape of the "
                            "boundaries");
        TensorMeta meta = *values;
        meta.dtype = arg_bool(call, SEARCH_OUT_INT32, false) ? DTYPE_I32 : DTYPE_I64;
        meta.wrapped = false;
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

static Status search_op_run(const OpRun *run)
{
        const OpCall *call = run->call;
        const SearchRow *row = call->op->row;
        const TensorMeta *sorted = run->in_meta[row->sorted], *values = run->in_meta[row->values];
        const TensorMeta *order = run->n_in > 2 ? run->in_meta[2] : NULL;
        Promotion promotion = PROMOTION_INIT;
        Dtype common;
        TRY(promotion_add(&promotion, sorted));
        TRY(promotion_add(&promotion, values));
        TRY(promotion_result(&promotion, &common));
        const Dtype as = dtype_compute(common);
        _cleanup_(dense_deinit) Dense in_sorted = { 0 }, in_values = { 0 }, in_order = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&in_sorted, run->ctx, run->in[row->sorted], sorted, as));
        TRY(dense_init(&in_values, run->ctx, run->in[row->values], values, as));
        int64_t number = 0; // -3 among uint8 is 253
        if (order != NULL)
                TRY(dense_init(&in_order, run->ctx, run->in[2], order, DTYPE_I64));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], DTYPE_I64));
        const int64_t n = sorted->size[sorted->rank - 1];
        bool shared = sorted->rank == 1;
        Search task = { .dtype = as,
                        .rows = 1,
                        .n_sorted = n,
                        .n_values = shared ? meta_numel(values) : values->size[values->rank - 1],
                        .sorted_step = shared ? 0 : n,
                        .sorted = in_sorted.data,
                        .values = in_values.data,
                        .order = in_order.data,
                        .out = out.data };
        for (int d = 0; !shared && d < values->rank - 1; d++)
                task.rows *= values->size[d];
        if (values->wrapped && dtype_is_int(common)) {
                element_from_i64(common, &number, *(const int64_t *)in_values.data);
                number = element_as_i64(common, &number);
                task.values = &number;
        }
        TRY(search_right(call, &task.right));
        TRY(search_run(run->ctx, &task));
        return dense_out_store(&out);
}

static Cost search_cost(const OpCall *call)
{
        const SearchRow *row = call->op->row;
        int64_t n = meta_numel(arg_meta(call, row->values));
        return (Cost){ .flops = saturating_product(n, 32), .bytes = saturating_product(n, 16) };
}

// A number to look for: the Tensor overload takes it as it is.
static Status searchsorted_scalar_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value at = OP(&c, "aten::searchsorted.Tensor", NAMED(&c, "sorted_sequence"), NAMED(&c, "self"),
                      NAMED(&c, "out_int32"), NAMED(&c, "right"), NAMED(&c, "side"), NAMED(&c, "sorter"));
        return compose_end(&c, at, out);
}

static Status bucketize_scalar_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value at = OP(&c, "aten::bucketize.Tensor", NAMED(&c, "self"), NAMED(&c, "boundaries"),
                      NAMED(&c, "out_int32"), NAMED(&c, "right"));
        return compose_end(&c, at, out);
}

// ---- isin ----
// The dtype in which elements are compared. `elements`: a tensor or a number.
static Status isin_dtype(Compose *c, Value elements, const TensorMeta *wanted, Dtype *out_dtype)
{
        Promotion promotion = PROMOTION_INIT;
        if (compose_failed(c))
                return c->status;
        TRY(elements.kind == VALUE_TENSOR ? promotion_add(&promotion, &elements.tensor->meta)
                                          : promotion_add_number(&promotion, elements));
        TRY(promotion_add(&promotion, wanted));
        TRY(promotion_result(&promotion, out_dtype));
        return *out_dtype == DTYPE_BOOL
                       ? fail(STATUS_DTYPE, "Unsupported input type encountered for isin(): Bool")
                       : STATUS_OK;
}

static Status isin_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const SearchRow *row = call->op->row; // positions of the elements and of those to find
        Value elements = call->args[row->sorted], wanted = call->args[row->values];
        bool invert = compose_bool(&c, "invert");
        Value found;
        if (wanted.kind != VALUE_TENSOR) {
                found = OP(&c, "aten::eq.Scalar", elements, wanted);
                return compose_end(&c, invert ? OP(&c, "aten::logical_not", found) : found, out);
        }
        Dtype dtype = DTYPE_F32;
        int64_t n = meta_numel(compose_meta(&c, wanted));
        compose_check(&c, isin_dtype(&c, elements, compose_meta(&c, wanted), &dtype));
        if (elements.kind != VALUE_TENSOR)
                elements = OP(&c, "aten::scalar_tensor", elements,
                              value_dtype(elements.kind == VALUE_FLOAT ? DTYPE_F64 : DTYPE_I64));
        if (n == 0) {
                found = OP(&c, invert ? "aten::ones_like" : "aten::zeros_like", elements,
                           value_dtype(DTYPE_BOOL));
                return compose_end(&c, found, out);
        }
        elements = compose_cast(&c, elements, dtype);
        Value flat = compose_cast(&c, OP(&c, "aten::reshape", wanted, INTS(&c, -1)), dtype);
        Value sorted = compose_item(&c, OP(&c, "aten::sort", flat), 0);
        // NaN comes last and is equal to nothing; as infinity it does not mislead the search.
        Value row_to_search = sorted;
        if (dtype_is_float(dtype))
                row_to_search = OP(&c, "aten::where.ScalarSelf", OP(&c, "aten::isnan", sorted),
                                   value_float(INFINITY), sorted);
        Value at = OP(&c, "aten::searchsorted.Tensor", row_to_search, elements);
        at = OP(&c, "aten::clamp_max", at, value_int(n - 1));
        found = OP(&c, invert ? "aten::ne.Tensor" : "aten::eq.Tensor", OP(&c, "aten::take", sorted, at),
                   elements);
        return compose_end(&c, found, out);
}

// ---- histc ----
static Status histc_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t bins;
        double low, high;
        TRY(arg_int(call, HISTC_BINS, &bins));
        TRY(arg_double(call, HISTC_MIN, &low));
        TRY(arg_double(call, HISTC_MAX, &high));
        if (!dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE, "\"histogram_cpu\" not implemented for '%s'",
                            dtype_words(self->dtype));
        if (bins <= 0)
                return fail(STATUS_VALUE, "torch.histogram(): bins must be > 0, but got %ld", (long)bins);
        if (!isfinite(low) || !isfinite(high))
                return fail(STATUS_VALUE, "torch.histc: range of [%g, %g] is not finite", low, high);
        if (low > high)
                return fail(STATUS_VALUE, "torch.histc: max must be larger than min");
        TensorMeta meta;
        meta_init(&meta, self->dtype, 1, &bins);
        return out_fresh(call, 0, &meta);
}

static Status histc_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[0];
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        Dtype as = dtype_compute(self->dtype);
        TRY(dense_init(&in, run->ctx, run->in[0], self, as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        Histogram task = { .dtype = as,
                           .n = meta_numel(self),
                           .n_bins = run->out_meta[0]->size[0],
                           .data = in.data,
                           .out = out.data };
        TRY(arg_double(run->call, HISTC_MIN, &task.low));
        TRY(arg_double(run->call, HISTC_MAX, &task.high));
        if (task.low == task.high && task.n > 0)
                TRY(histogram_range(run->ctx, &task));
        if (!isfinite(task.low) || !isfinite(task.high))
                return fail(STATUS_VALUE, "torch.histc: range of [%g, %g] is not finite", task.low,
                            task.high);
        if (task.low == task.high) {
                task.low -= 1;
                task.high += 1;
        }
        TRY(histogram_run(run->ctx, &task));
        return dense_out_store(&out);
}

// ---- col2im ----
static Status fold_task(const OpCall *call, Fold *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t *const lists[] = { out->size, out->kernel, out->dilation, out->padding, out->stride };
        const int positions[] = { COL2IM_OUTPUT_SIZE, COL2IM_KERNEL_SIZE, COL2IM_DILATION, COL2IM_PADDING,
                                  COL2IM_STRIDE };
        char text[128];
        for (int i = 0; i < 5; i++) {
                int n;
                TRY(arg_ints(call, positions[i], 2, lists[i], &n));
                if (n != 2)
                        return fail(STATUS_VALUE, "It is expected %s equals to 2, but got size %d",
                                    call->schema->args[positions[i]].name, n);
        }
        if ((self->rank != 2 && self->rank != 3) || self->size[self->rank - 2] == 0 ||
            self->size[self->rank - 1] == 0)
                return fail(STATUS_SHAPE,
                            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
                            "non-zero "
                            "dimensions for input, but got: %s",
                            shape_text(self->rank, self->size, text, sizeof(text)));
        int64_t kernel, count = 1;
        for (int d = 0; d < 2; d++) {
                int64_t reach, padded;
                if (out->kernel[d] <= 0 || out->dilation[d] <= 0 || out->stride[d] <= 0 ||
                    out->padding[d] < 0 || out->size[d] <= 0)
                        return fail(STATUS_VALUE,
                                    "col2im: sizes, dilation and stride should be greater than zero");
                if (!mul_i64(out->dilation[d], out->kernel[d] - 1, &reach) ||
                    !mul_i64(2, out->padding[d], &padded) || !add_i64(out->size[d], padded, &padded) ||
                    reach == INT64_MAX)
                        return fail(STATUS_TOO_LARGE, "col2im: the sizes are too large");
                out->count[d] = padded < reach + 1 ? 0 : (padded - reach - 1) / out->stride[d] + 1;
        }
        if (!mul_i64(out->kernel[0], out->kernel[1], &kernel) ||
            !mul_i64(out->count[0], out->count[1], &count))
                return fail(STATUS_TOO_LARGE, "col2im: the sizes are too large");
        int64_t columns = self->size[self->rank - 2];
        if (columns % kernel != 0)
                return fail(STATUS_SHAPE,
                            "Expected size of input's dimension 1 to be divisible by the product of "
                            "kernel_size, but "
                            "got input.size(1)=%ld and kernel_size=(%ld, %ld).",
                            (long)columns, (long)out->kernel[0], (long)out->kernel[1]);
        if (count < 1 || self->size[self->rank - 1] != count)
                return fail(STATUS_SHAPE,
                            "Given output_size=(%ld, %ld), expected size of input's dimension 2 to match the "
                            "calculated number of sliding blocks %ld * %ld = %ld, but got input.size(2)=%ld.",
                            (long)out->size[0], (long)out->size[1], (long)out->count[0], (long)out->count[1],
                            (long)count, (long)self->size[self->rank - 1]);
        out->planes = columns / kernel * (self->rank == 3 ? self->size[0] : 1);
        return STATUS_OK;
}

static Status col2im_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        Fold task;
        TRY(fold_task(call, &task));
        int64_t channels = self->size[self->rank - 2] / (task.kernel[0] * task.kernel[1]);
        int64_t size[] = { self->rank == 3 ? self->size[0] : 1, channels, task.size[0], task.size[1] };
        TensorMeta meta;
        meta_init(&meta, self->dtype, self->rank + 1, self->rank == 3 ? size : size + 1);
        return out_fresh(call, 0, &meta);
}

static Status col2im_run(const OpRun *run)
{
        Fold task;
        TRY(fold_task(run->call, &task));
        task.dtype = dtype_compute(run->in_meta[0]->dtype);
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&in, run->ctx, run->in[0], run->in_meta[0], task.dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], task.dtype));
        task.columns = in.data;
        task.out = out.data;
        TRY(fold_run(run->ctx, &task));
        return dense_out_store(&out);
}

static Cost col2im_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t n = meta_numel(self);
        return (Cost){ .flops = n, .bytes = saturating_product(2 * dtype_info[self->dtype].bytes, n) };
}

static Cost histc_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t n = meta_numel(self);
        return (Cost){ .flops = saturating_product(n, 3), .bytes = n * dtype_info[self->dtype].bytes };
}

static const SearchRow in_sequence = { SEARCHSORTED_SORTED, SEARCHSORTED_VALUES, true },
                       in_boundaries = { BUCKETIZE_BOUNDARIES, BUCKETIZE_VALUES, false },
                       in_tests = { ISIN_ELEMENTS, ISIN_TESTS, false };
#define SEARCH(schema, row_)                                                                                 \
        {                                                                                                    \
                "aten::" schema, DTYPES_REAL, OP_NUMBERS | OP_CHECKS,                                        \
                        .infer = search_infer, .run = search_op_run, .cost = search_cost, .row = &(row_),    \
                        .traits = TRAIT_FRESH                                                                \
        }
#define ISIN(schema)                                                                                         \
        {                                                                                                    \
                "aten::" schema, DTYPES_REAL, .expand = isin_expand, .row = &in_tests, .traits = TRAIT_FRESH \
        }
const OpDef search_ops[] = {
        SEARCH("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
               "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
               in_sequence),
        SEARCH("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
               "-> "
               "Tensor",
               in_boundaries),
        { "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
          "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
          0, .expand = searchsorted_scalar_expand, .traits = TRAIT_FRESH },
        { "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
          "-> "
          "Tensor",
          0, .expand = bucketize_scalar_expand, .traits = TRAIT_FRESH },
        ISIN("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
             "invert=False) -> Tensor"),
        ISIN("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
             "invert=False) -> Tensor"),
        ISIN("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
             "invert=False) -> Tensor"),
        { "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", DTYPES_REAL,
          OP_CHECKS, .infer = histc_infer, .run = histc_run, .cost = histc_cost, .traits = TRAIT_FRESH },
        { "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
          "padding, "
          "int[2] stride) -> Tensor",
          DTYPES_REAL, .infer = col2im_infer, .run = col2im_run, .cost = col2im_cost, .traits = TRAIT_FRESH },
};
OP_FILE(search_ops);
