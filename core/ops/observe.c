// SPDX-License-Identifier: Apache-2.0
// observe.c: what rules that observe a run insert: statistics of a tensor, and the check that ends
// a run at a NaN or an infinity. No uploaded graph can call them (OP_INTERNAL).
#include "core/ops/observe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/op.h"

// ---- statistics as a tensor ----

// Extremes of int64 may lie between two doubles: the nearest one, and what is missing.
enum {
        SLOT_IS_FLOAT,
        SLOT_N,
        SLOT_NAN,
        SLOT_INF,
        SLOT_ZERO,
        SLOT_MIN,
        SLOT_MAX,
        SLOT_MIN_REST,
        SLOT_MAX_REST,
        SLOT_MEAN,
        SLOT_STD,
        SLOT_FROM,
        SLOT_TO,
        SLOT_COUNTS,
        N_SLOTS = SLOT_COUNTS + STATS_BINS
};

// The int64 that a rounded double and the rest make. Modular: the nearest double of the largest
// int64 is one above it.
static int64_t whole_of(double near, double rest)
{
        uint64_t base = near >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)(int64_t)near;
        return (int64_t)(base + (uint64_t)(int64_t)rest);
}

static double rest_of(int64_t whole)
{
        double near = (double)whole;
        uint64_t base = near >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)(int64_t)near;
        return (double)(int64_t)((uint64_t)whole - base);
}

static void stats_store(const TensorStats *stats, double *out)
{
        out[SLOT_IS_FLOAT] = stats->is_float;
        out[SLOT_N] = (double)stats->n;
        out[SLOT_NAN] = (double)stats->n_nan;
        out[SLOT_INF] = (double)stats->n_inf;
        out[SLOT_ZERO] = (double)stats->n_zero;
        out[SLOT_MIN] = stats->min;
        out[SLOT_MAX] = stats->max;
        out[SLOT_MIN_REST] = stats->is_float ? 0 : rest_of(stats->min_int);
        out[SLOT_MAX_REST] = stats->is_float ? 0 : rest_of(stats->max_int);
        out[SLOT_MEAN] = stats->mean;
        out[SLOT_STD] = stats->std;
        out[SLOT_FROM] = stats->from;
        out[SLOT_TO] = stats->to;
        for (int i = 0; i < STATS_BINS; i++)
                out[SLOT_COUNTS + i] = (double)stats->counts[i];
}

bool stats_load(const Tensor *tensor, TensorStats *out_stats)
{
        if (tensor->meta.dtype != DTYPE_F64 || tensor->meta.rank != 1 || tensor->meta.size[0] != N_SLOTS ||
            tensor->meta.stride[0] != 1)
                return false;
        const double *slots = tensor_data(tensor);
        *out_stats = (TensorStats){ .is_float = slots[SLOT_IS_FLOAT] != 0,
                                    .n = (int64_t)slots[SLOT_N],
                                    .n_nan = (int64_t)slots[SLOT_NAN],
                                    .n_inf = (int64_t)slots[SLOT_INF],
                                    .n_zero = (int64_t)slots[SLOT_ZERO],
                                    .min = slots[SLOT_MIN],
                                    .max = slots[SLOT_MAX],
                                    .mean = slots[SLOT_MEAN],
                                    .std = slots[SLOT_STD],
                                    .from = slots[SLOT_FROM],
                                    .to = slots[SLOT_TO] };
        if (!out_stats->is_float && !isnan(out_stats->min)) {
                out_stats->min_int = whole_of(slots[SLOT_MIN], slots[SLOT_MIN_REST]);
                out_stats->max_int = whole_of(slots[SLOT_MAX], slots[SLOT_MAX_REST]);
        }
        for (int i = 0; i < STATS_BINS; i++)
                out_stats->counts[i] = (int64_t)slots[SLOT_COUNTS + i];
        return true;
}

static Status stats_infer(OpCall *call)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F64, 1, (const int64_t[]){ N_SLOTS });
        return out_fresh(call, 0, &meta);
}

static Status stats_run(const OpRun *run)
{
        TensorStats stats;
        TRY(tensor_stats_run(run->ctx, run->in_meta[0], run->in[0], &stats));
        stats_store(&stats, run->out[0]);
        return STATUS_OK;
}

static Cost stats_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const int64_t n = meta_numel(self);
        return (Cost){ .flops = 2 * n, .bytes = 2 * n * dtype_info[self->dtype].bytes };
}

// ---- the check ----

static Status assert_finite_infer(OpCall *call)
{
        (void)call;
        return STATUS_OK;
}

// The first tensors that the node read, by the names of the nodes that made them.
static Status report_inputs(const OpRun *run, HaltReport *report)
{
        const char *name = arg_text(run->call, ASSERT_FINITE_NAMES);
        for (uint32_t i = 1; i < run->n_in && report->n_inputs < HALT_MAX_INPUTS; i++) {
                HaltInput *input = &report->inputs[report->n_inputs];
                size_t n = strcspn(name, "\n");
                if (run->in_meta[i] == NULL)
                        return fail(STATUS_INTERNAL, "assert_finite: an input is no tensor");
                TRY(tensor_stats_run(run->ctx, run->in_meta[i], run->in[i], &input->stats));
                snprintf(input->name, sizeof(input->name), "%.*s", (int)MIN(n, sizeof(input->name) - 1),
                         name);
                report->n_inputs++;
                name += n + (name[n] == '\n');
        }
        return STATUS_OK;
}

static Status assert_finite_run(const OpRun *run)
{
        NonFinite found;
        TRY(tensor_count_non_finite(run->ctx, run->in_meta[0], run->in[0], &found));
        bool nan = found.n_nan > 0 && arg_bool(run->call, ASSERT_FINITE_NAN, false),
             inf = found.n_inf > 0 && arg_bool(run->call, ASSERT_FINITE_INF, false);
        if (!nan && !inf)
                return STATUS_OK;
        HaltReport *report = run->ctx->halt;
        if (report != NULL) {
                *report = (HaltReport){ .nan = nan };
                TRY(tensor_stats_run(run->ctx, run->in_meta[0], run->in[0], &report->result));
                TRY(report_inputs(run, report));
        }
        const char *node = arg_text(run->call, ASSERT_FINITE_NODE);
        int64_t n = nan ? found.n_nan : found.n_inf;
        return failure_at_node(fail(STATUS_HALTED, "%lld of the %lld elements of node %s %s %s", (long long)n,
                                    (long long)meta_numel(run->in_meta[0]), node, n == 1 ? "is" : "are",
                                    nan ? "NaN" : "infinite"),
                               node);
}

const OpDef observe_ops[] = {
        { "fxserve::stats(Tensor self) -> Tensor", DTYPES_REAL | DTYPES_UINTS, OP_HIDDEN | OP_INTERNAL,
          .infer = stats_infer, .run = stats_run, .cost = stats_cost, .traits = TRAIT_FRESH },
        // `names`: of the nodes that made `inputs`, one per line
        { "fxserve::assert_finite(Tensor self, Tensor[] inputs, str names, str node, bool nan, bool inf) -> "
          "()",
          .flags = OP_HIDDEN | OP_INTERNAL | OP_EFFECT | OP_CHECKS, .infer = assert_finite_infer,
          .run = assert_finite_run, .traits = TRAIT_FRESH },
};
OP_FILE(observe_ops);
