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

// ---- histograms ----
static Status check(Compose *c, int64_t n_bins)
{
        const TensorMeta *self = compose_meta(c, NAMED(c, "self"));
        if (self->dtype != DTYPE_F32 && self->dtype != DTYPE_F64)
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

// (counts, edges). What lies in no bin is counted before the first one or behind the last one.
static Value counted(Compose *c, Value edges)
{
        const Value first = value_int(0), dtype = value_dtype(compose_meta(c, edges)->dtype);
        const int64_t n_edges = compose_meta(c, edges)->size[0];
        Value x = OP(c, "aten::reshape", NAMED(c, "self"), INTS(c, -1));
        Value last = OP(c, "aten::select.int", edges, first, value_int(-1));
        Value at = OP(c, "aten::searchsorted.Tensor", edges, x, value_bool(false), value_bool(true));
        at = OP(c, "aten::where.ScalarSelf", OP(c, "aten::eq.Tensor", x, last), value_int(n_edges - 1), at);
        Value each = compose_has(c, "weight") ? OP(c, "aten::reshape", NAMED(c, "weight"), INTS(c, -1))
                                              : OP(c, "aten::ones_like", x);
        Value counts = OP(c, "aten::scatter_add", OP(c, "aten::zeros", INTS(c, n_edges + 1), dtype), first,
                          at, each);
        counts = OP(c, "aten::slice.Tensor", counts, first, value_int(1), value_int(n_edges));
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
        return compose_end(&c, counted(&c, OP(&c, "aten::clone", bins)), out);
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
                                   counted(&c, OP(&c, "aten::linspace", value_float(low), value_float(high),
                                                  value_int(n + 1), value_dtype(meta->dtype))),
                                   out);
        Value ends = OP(&c, "aten::aminmax", self);
        Value edges = OP(&c, "fxserve::bin_edges", compose_item(&c, ends, 0), compose_item(&c, ends, 1),
                         value_int(n));
        return compose_end(&c, counted(&c, edges), out);
}

const OpDef histogram_ops[] = {
        { "fxserve::bin_edges(Tensor low, Tensor high, int bins) -> Tensor",
          1u << DTYPE_F32 | 1u << DTYPE_F64, OP_HIDDEN | OP_INTERNAL | OP_CHECKS, .infer = edges_infer,
          .run = edges_run, .traits = TRAIT_FRESH },
        { "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
          "-> (Tensor hist, Tensor bin_edges)",
          0, .expand = by_edges_expand, .traits = TRAIT_FRESH },
        { "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
          "bool "
          "density=False) -> (Tensor hist, Tensor bin_edges)",
          0, .expand = by_number_expand, .traits = TRAIT_FRESH },
};
OP_FILE(histogram_ops);
