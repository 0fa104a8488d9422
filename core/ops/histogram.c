// SPDX-License-Identifier: Apache-2.0
// histogram.c: torch.histogram, with a number of bins or with their edges. The last bin holds its
// right edge; what lies outside, and NaN, is not counted.
#include <math.h>
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/factory.h"

// ---- edges between the extremes of a tensor: two tensors of one element, known when they run ----
static Status edges_infer(OpCall *call)
{
        TensorMeta meta;
        int64_t bins;
        TRY(arg_int(call, BIN_EDGES_BINS, &bins));
        meta_init(&meta, arg_meta(call, SELF)->dtype, 1, &(int64_t){ bins + 1 });
        return out_fresh(call, 0, &meta);
}

// The range of a histogram, in PyTorch's words. One that is empty becomes 1 wide.
static Status check_range(double *low, double *high)
{
        if (!isfinite(*low) || !isfinite(*high))
                return fail(STATUS_VALUE, "torch.histogramdd: dimension 0's range [%g, %g] is not finite",
                            *low, *high);
        if (*low > *high)
                return fail(STATUS_VALUE,
                            "torch.histogramdd: min should not exceed max, but got min %g max %g for "
                            "dimension 0",
                            *low, *high);
        if (*low == *high) {
                *low -= 0.5;
                *high += 0.5;
        }
        return STATUS_OK;
}

static Status edges_run(const OpRun *run)
{
        const Dtype dtype = run->out_meta[0]->dtype;
        const int64_t n = run->out_meta[0]->size[0];
        double low = element_as_f64(dtype, run->in[0]), high = element_as_f64(dtype, run->in[1]);
        TRY(check_range(&low, &high));
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 1); i++)
                element_from_f64(dtype, (char *)run->out[0] + i * dtype_info[dtype].bytes,
                                 linspace_at(dtype, low, high, n, i));
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// ---- which bin an element lies in: from 1 on, 0 for none ----
typedef struct Bins {
        Dtype dtype; // float32 or float64
        bool even;
        int64_t n_edges;
        const void *edges;
} Bins;

static double edge_at(const Bins *bins, int64_t i)
{
        return compute_as_f64(bins->dtype, bins->edges, i);
}

// A step of PyTorch's arithmetic.
static double rounded(const Bins *bins, double x)
{
        return bins->dtype == DTYPE_F64 ? x : (double)(float)x;
}

// Between even edges PyTorch computes the place and looks at the edges beside it only. That is
// another bin where edges are as close as neighbouring numbers. An infinite place counts as 0.
static int64_t even_place(const Bins *bins, double x)
{
        const double first = edge_at(bins, 0), last = edge_at(bins, bins->n_edges - 1);
        const double steps = rounded(bins, (double)(bins->n_edges - 1));
        const double scaled = rounded(bins, rounded(bins, x - first) * steps);
        const double place = rounded(bins, scaled / rounded(bins, last - first));
        if (!isfinite(place))
                return 0;
        return place < (double)(bins->n_edges - 1) ? (int64_t)place : bins->n_edges - 1;
}

// As std::upper_bound goes, which edges that are not sorted show.
static int64_t bin_of(const Bins *bins, double x)
{
        if (!(x >= edge_at(bins, 0) && x <= edge_at(bins, bins->n_edges - 1)))
                return 0;
        const int64_t place = bins->even ? even_place(bins, x) : 0;
        int64_t at = MAX(place - 1, (int64_t)0);
        int64_t n = (bins->even ? MIN(place + 2, bins->n_edges) : bins->n_edges) - at;
        while (n > 0) {
                const bool below = x < edge_at(bins, at + n / 2);
                at += below ? 0 : n / 2 + 1;
                n = below ? n / 2 : n - n / 2 - 1;
        }
        return MIN(at, bins->n_edges - 1);
}

enum { STEPS = 32 };

static Cost bin_of_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const int64_t n = meta_numel(self);
        return (Cost){ .flops = saturating_product(n, STEPS),
                       .bytes = n * (dtype_info[self->dtype].bytes + dtype_info[DTYPE_I64].bytes) };
}

static Status bin_of_infer(OpCall *call)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_I64, 1, &(int64_t){ meta_numel(arg_meta(call, SELF)) });
        return out_fresh(call, 0, &meta);
}

static Status bin_of_run(const OpRun *run)
{
        const int64_t n = run->out_meta[0]->size[0];
        int64_t *out = run->out[0];
        Bins bins = { .dtype = run->in_meta[0]->dtype,
                      .even = arg_bool(run->call, BIN_OF_EVEN, false),
                      .n_edges = run->in_meta[1]->size[0] };
        _cleanup_(dense_deinit) Dense elements = { 0 }, edges = { 0 };
        TRY(dense_init(&elements, run->ctx, run->in[0], run->in_meta[0], bins.dtype));
        TRY(dense_init(&edges, run->ctx, run->in[1], run->in_meta[1], bins.dtype));
        bins.edges = edges.data;
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, STEPS); i++)
                out[i] = bin_of(&bins, compute_as_f64(bins.dtype, elements.data, i));
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// ---- histograms ----
enum { WIDE_DTYPES = 1u << DTYPE_F32 | 1u << DTYPE_F64 };

static Status check(Compose *c, int64_t n_bins)
{
        const TensorMeta *self = compose_meta(c, NAMED(c, "self"));
        if (((uint32_t)WIDE_DTYPES >> self->dtype & 1) == 0)
                return fail(STATUS_DTYPE, "\"histogramdd\" not implemented for '%s'",
                            dtype_words(self->dtype));
        if (n_bins < 1)
                return fail(STATUS_VALUE, "torch.histogram(): bins must be > 0, but got %ld for dimension 0",
                            (long)n_bins);
        if (n_bins >= INT64_MAX - 1)
                return fail(STATUS_TOO_LARGE, "torch.histogram(): %ld bins are too many", (long)n_bins);
        if (!compose_has(c, "weight"))
                return STATUS_OK;
        const TensorMeta *weight = compose_meta(c, NAMED(c, "weight"));
        if (weight->dtype != self->dtype)
                return fail(STATUS_DTYPE,
                            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
                            "should have the same dtype, but got input(%s), and weight(%s)",
                            dtype_info[self->dtype].name, dtype_info[weight->dtype].name);
        if (meta_numel(weight) != meta_numel(self))
                return fail(
                        STATUS_SHAPE,
                        "torch.histogramdd: if weight tensor is provided it should have the same shape as "
                        "the input tensor excluding its innermost dimension, but got input with shape "
                        "[%ld, 1] and weight with shape [%ld]",
                        (long)meta_numel(self), (long)meta_numel(weight));
        return STATUS_OK;
}

// (counts, edges). What lies in no bin is counted before the first one.
static Value counted(Compose *c, Value edges, bool even)
{
        const Value first = value_int(0), dtype = value_dtype(compose_meta(c, edges)->dtype);
        const int64_t n_edges = compose_meta(c, edges)->size[0];
        Value x = OP(c, "aten::reshape", NAMED(c, "self"), INTS(c, -1));
        Value at = OP(c, "fxserve::bin_of", x, edges, value_bool(even));
        Value each = compose_has(c, "weight") ? OP(c, "aten::reshape", NAMED(c, "weight"), INTS(c, -1))
                                              : OP(c, "aten::ones_like", x);
        Value counts =
                OP(c, "aten::scatter_add", OP(c, "aten::zeros", INTS(c, n_edges), dtype), first, at, each);
        counts = OP(c, "aten::slice.Tensor", counts, first, value_int(1));
        if (compose_bool(c, "density")) {
                Value width = OP(c, "aten::diff", edges);
                counts = OP(c, "aten::div.Tensor", counts, OP(c, "aten::sum", counts));
                counts = OP(c, "aten::div.Tensor", counts, width);
        }
        return compose_tuple(c, (Value[]){ OP(c, "aten::clone", counts), edges }, 2);
}

static Status by_edges_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value bins = NAMED(&c, "bins");
        const TensorMeta *meta = compose_meta(&c, bins), *self = compose_meta(&c, NAMED(&c, "self"));
        if (meta->rank != 1)
                return fail(STATUS_SHAPE,
                            "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions "
                            "in the bins tensor for dimension 0",
                            meta->rank);
        TRY(check(&c, meta->size[0] - 1));
        if (meta->dtype != self->dtype)
                return fail(
                        STATUS_DTYPE,
                        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                        "got input with dtype %s and bins for dimension 0 with dtype %s",
                        dtype_info[self->dtype].name, dtype_info[meta->dtype].name);
        return compose_end(&c, counted(&c, OP(&c, "aten::clone", bins), false), out);
}

static double as_double(Value number)
{
        return number.kind == VALUE_FLOAT ? number.f : number.kind == VALUE_INT ? (double)number.i : number.b;
}

static Status by_number_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), range = NAMED(&c, "range");
        const int64_t n = compose_int(&c, "bins");
        const TensorMeta *meta = compose_meta(&c, self);
        double low = 0, high = 1;
        TRY(check(&c, n));
        if (range.kind != VALUE_NONE) {
                if (compose_length(range) != 2)
                        return fail(STATUS_VALUE,
                                    "torch.histogramdd: for a 1-dimensional histogram range should have 2 "
                                    "elements, but got %u",
                                    compose_length(range));
                low = as_double(compose_item(&c, range, 0));
                high = as_double(compose_item(&c, range, 1));
                TRY(check_range(&low, &high));
        }
        if (range.kind != VALUE_NONE || meta_numel(meta) == 0)
                return compose_end(&c,
                                   counted(&c,
                                           OP(&c, "aten::linspace", value_float(low), value_float(high),
                                              value_int(n + 1), value_dtype(meta->dtype)),
                                           true),
                                   out);
        Value ends = OP(&c, "aten::aminmax", self);
        Value edges = OP(&c, "fxserve::bin_edges", compose_item(&c, ends, 0), compose_item(&c, ends, 1),
                         value_int(n));
        return compose_end(&c, counted(&c, edges, true), out);
}

const OpDef histogram_ops[] = {
        { "fxserve::bin_edges(Tensor low, Tensor high, int bins) -> Tensor", WIDE_DTYPES,
          OP_HIDDEN | OP_INTERNAL | OP_CHECKS, .infer = edges_infer, .run = edges_run,
          .traits = TRAIT_FRESH },
        { "fxserve::bin_of(Tensor self, Tensor edges, bool even) -> Tensor", WIDE_DTYPES,
          OP_HIDDEN | OP_INTERNAL, .infer = bin_of_infer, .run = bin_of_run, .cost = bin_of_cost,
          .traits = TRAIT_FRESH },
        { "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
          "-> (Tensor hist, Tensor bin_edges)",
          0, .expand = by_edges_expand, .traits = TRAIT_FRESH },
        { "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
          "bool "
          "density=False) -> (Tensor hist, Tensor bin_edges)",
          0, .expand = by_number_expand, .traits = TRAIT_FRESH },
};
OP_FILE(histogram_ops);
