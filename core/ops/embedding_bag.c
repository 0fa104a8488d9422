// SPDX-License-Identifier: Apache-2.0
// embedding_bag.c: sums, means and maxima of rows of an embedding. The results beside the first one
// are what PyTorch keeps for its backward pass; their sizes depend on the mode, as there.
#include "core/kernels/dense.h"
#include "core/kernels/index/bags.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

static const char *const mode_names[] = { "sum", "mean", "max" };

// The integers that indices and offsets are read as.
static Status index_dtype(const OpCall *call, Dtype *out)
{
        static const char *const names[] = { "indices", "offsets" };
        const TensorMeta *metas[] = { arg_meta(call, BAG_INDICES), arg_meta(call, BAG_OFFSETS) };
        TRY(dtype_promote(metas[0]->dtype, metas[1]->dtype, out));
        if (*out == DTYPE_I64 || *out == DTYPE_I32)
                return STATUS_OK;
        int wrong = metas[0]->dtype == *out ? 0 : 1;
        return fail(
                STATUS_DTYPE,
                "Expected tensor for argument #1 '%s' to have one of the following scalar types: Long, Int; "
                "but got torch.%sTensor instead (while checking arguments for embedding_bag)",
                names[wrong], dtype_words(metas[wrong]->dtype));
}

static Status check_scales(const OpCall *call, int64_t mode)
{
        const TensorMeta *scales = arg_meta(call, BAG_SCALES), *weight = arg_meta(call, BAG_WEIGHT);
        if (scales == NULL)
                return STATUS_OK;
        if (mode != BAG_SUM)
                return fail(STATUS_VALUE,
                            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                            "supported for mode='sum' (got mode='%s').",
                            mode_names[mode]);
        if (scales->dtype != weight->dtype)
                return fail(STATUS_DTYPE,
                            "embedding_bag: per_sample_weights must have weight's dtype %s, got %s",
                            dtype_words(weight->dtype), dtype_words(scales->dtype));
        if (scales->rank != 1 || scales->size[0] != meta_numel(arg_meta(call, BAG_INDICES)))
                return fail(STATUS_SHAPE, "embedding_bag: per_sample_weights must hold one number per index");
        return STATUS_OK;
}

static Status bag_check(const OpCall *call, int64_t *out_mode, int64_t *out_n_bags)
{
        const TensorMeta *weight = arg_meta(call, BAG_WEIGHT), *indices = arg_meta(call, BAG_INDICES),
                         *offsets = arg_meta(call, BAG_OFFSETS);
        TRY(arg_int(call, BAG_MODE, out_mode));
        if (indices->rank != 1)
                return fail(STATUS_SHAPE, "input has to be a 1D Tensor, but got Tensor of dimension %d",
                            indices->rank);
        if (offsets->rank != 1)
                return fail(STATUS_SHAPE, "offsets has to be a 1D Tensor, but got Tensor of dimension %d",
                            offsets->rank);
        if (weight->rank != 2)
                return fail(STATUS_SHAPE, "weight has to be a 2D Tensor, but got Tensor of dimension %d",
                            weight->rank);
        if (!dtype_is_float(weight->dtype))
                return fail(STATUS_DTYPE,
                            "Expected tensor for argument #1 'weight' to have one of the following scalar "
                            "types: Half, BFloat16, Float, Double; but got torch.%sTensor instead (while "
                            "checking arguments for embedding_bag)",
                            dtype_words(weight->dtype));
        if (*out_mode < BAG_SUM || *out_mode > BAG_MAX)
                return fail(STATUS_VALUE, "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got %ld",
                            (long)*out_mode);
        bool last = arg_bool(call, BAG_LAST, false);
        if (last && offsets->size[0] < 1)
                return fail(STATUS_VALUE, "include_last_offset: number of offset should be at least 1");
        *out_n_bags = offsets->size[0] - (last ? 1 : 0);
        return check_scales(call, *out_mode);
}

// PyTorch's sums in one go, which need no map from indices to bags.
static bool is_plain_sum(const OpCall *call, int64_t mode, int64_t padding)
{
        const TensorMeta *weight = arg_meta(call, BAG_WEIGHT), *scales = arg_meta(call, BAG_SCALES);
        return mode == BAG_SUM && padding < 0 && weight->dtype != DTYPE_F64 && weight->stride[1] == 1 &&
               (scales == NULL || scales->stride[0] == 1);
}

static Status bag_infer(OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, BAG_WEIGHT), *indices = arg_meta(call, BAG_INDICES),
                         *offsets = arg_meta(call, BAG_OFFSETS);
        int64_t mode = 0, n_bags = 0, padding = -1, numel;
        TRY(bag_check(call, &mode, &n_bags));
        TRY(arg_int(call, BAG_PADDING, &padding));
        int64_t size[] = { n_bags, weight->size[1] };
        TRY(shape_numel(2, size, &numel));
        TensorMeta meta;
        meta_init(&meta, weight->dtype, 2, size);
        TRY(out_fresh(call, 0, &meta));
        Dtype dtype = DTYPE_I64;
        TRY(index_dtype(call, &dtype));
        int64_t mapped = is_plain_sum(call, mode, padding) ? 0 : indices->size[0];
        int64_t counted = mode == BAG_SUM && call->op->row != NULL ? offsets->size[0] : n_bags;
        meta_init(&meta, dtype, 1, &mapped);
        TRY(out_fresh(call, 1, &meta));
        meta_init(&meta, dtype, 1, &counted);
        TRY(out_fresh(call, 2, &meta));
        meta_init(&meta, dtype, mode == BAG_MAX ? 2 : 1, mode == BAG_MAX ? size : &counted);
        return out_fresh(call, 3, &meta);
}

static Status check_offsets(const OpRun *run, const int64_t *offsets, int64_t n_indices)
{
        int64_t n = run->in_meta[2]->size[0];
        Work work = { .ctx = run->ctx };
        if (n == 0)
                return n_indices == 0 ? STATUS_OK
                                      : fail(STATUS_VALUE, "embedding_bag: there are indices but no offsets");
        if (offsets[0] != 0)
                return fail(STATUS_VALUE,
                            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                            "from position 0. However, got %ld",
                            (long)offsets[0]);
        if (offsets[n - 1] > n_indices)
                return fail(
                        STATUS_VALUE,
                        "offsets[-1] can not be greater than input's length %ld but got offsets[-1] of %ld",
                        (long)n_indices, (long)offsets[n - 1]);
        for (int64_t i = 1; i < n && !work_stops(&work, 1); i++) {
                if (offsets[i] < offsets[i - 1])
                        return fail(STATUS_VALUE,
                                    "embedding_bag: offsets must not decrease, but offsets[%ld] "
                                    "is below the one before",
                                    (long)i);
        }
        return STATUS_OK;
}

// What the backward pass wants: each index's bag.
static Status map_indices(const OpRun *run, const Bags *bags)
{
        _cleanup_(dense_out_deinit) DenseOut map = { 0 };
        TRY(dense_out_init(&map, run->ctx, run->out[1], run->out_meta[1], DTYPE_I64));
        Work work = { .ctx = run->ctx };
        int64_t bag = 0;
        for (int64_t i = 0; i < run->out_meta[1]->size[0] && !work_stops(&work, 2); i++) {
                while (bag + 1 < bags->n_bags && bags->offsets[bag + 1] <= i && !work_stops(&work, 1))
                        bag++;
                ((int64_t *)map.data)[i] = bag;
        }
        TRY(run_poll(run->ctx));
        return dense_out_store(&map);
}

static Status bag_run(const OpRun *run)
{
        const OpCall *call = run->call;
        int64_t mode, n_bags, padding, n = run->in_meta[1]->size[0];
        TRY(bag_check(call, &mode, &n_bags));
        TRY(arg_int(call, BAG_PADDING, &padding));
        const TensorMeta *weight = run->in_meta[0];
        Dtype as = dtype_compute(weight->dtype);
        _cleanup_(dense_deinit) Dense indices = { 0 }, offsets = { 0 }, scales = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 }, counts = { 0 }, argmax = { 0 };
        TRY(dense_init(&indices, run->ctx, run->in[1], run->in_meta[1], DTYPE_I64));
        TRY(dense_init(&offsets, run->ctx, run->in[2], run->in_meta[2], DTYPE_I64));
        TRY(check_offsets(run, offsets.data, n));
        if (n_bags == 0 && n > 0)
                return fail(STATUS_VALUE, "embedding_bag: there are indices but no bags");
        // PyTorch's plain sums end at the last offset, its other ways at the last index.
        if (arg_bool(call, BAG_LAST, false) && is_plain_sum(call, mode, padding))
                n = ((const int64_t *)offsets.data)[n_bags];
        if (run->in[3] != NULL)
                TRY(dense_init(&scales, run->ctx, run->in[3], run->in_meta[3], as));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
        TRY(dense_out_init(&counts, run->ctx, run->out[2], run->out_meta[2], DTYPE_I64));
        TRY(dense_out_init(&argmax, run->ctx, run->out[3], run->out_meta[3], DTYPE_I64));
        Bags bags = { .mode = (BagMode)mode,
                      .n_bags = n_bags,
                      .n_indices = n,
                      .indices = indices.data,
                      .offsets = offsets.data,
                      .padding = padding,
                      .matrix = weight,
                      .data = run->in[0],
                      .scales = scales.data,
                      .out = out.data,
                      .counts = mode == BAG_SUM ? NULL : counts.data,
                      .argmax = mode == BAG_MAX ? argmax.data : NULL };
        TRY(bags_run(run->ctx, &bags));
        for (int64_t i = 0; i < run->out_meta[2]->size[0] && mode != BAG_MAX; i++) {
                int64_t *count = (int64_t *)counts.data + i;
                *count = mode == BAG_SUM ? 0 : *count;
                ((int64_t *)argmax.data)[i] = *count;
        }
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&counts));
        TRY(dense_out_store(&argmax));
        return map_indices(run, &bags);
}

static Cost bag_cost(const OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, BAG_WEIGHT);
        int64_t n = saturating_product(meta_numel(arg_meta(call, BAG_INDICES)), weight->size[1]);
        return (Cost){ .flops = saturating_product(n, 2),
                       .bytes = saturating_product(n, dtype_info[weight->dtype].bytes) };
}

static Status embedding_bag_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value weight = NAMED(&c, "weight");
        int64_t rows = compose_meta(&c, weight)->rank == 2 ? compose_meta(&c, weight)->size[0] : 0;
        int64_t padding = -1;
        if (call->schema->n_args > 8 && compose_has(&c, "padding_idx")) {
                padding = compose_int(&c, "padding_idx");
                if (!compose_failed(&c) && (padding < -rows || padding >= rows))
                        compose_check(&c, fail(STATUS_VALUE,
                                               "padding_idx must be within the number of embeddings, -%ld "
                                               "through %ld, but got %ld",
                                               (long)rows, (long)rows - 1, (long)padding));
                padding += padding < 0 ? rows : 0;
        }
        Value bags = OP(&c, "aten::_embedding_bag_forward_only", weight, NAMED(&c, "indices"),
                        NAMED(&c, "offsets"), NAMED(&c, "scale_grad_by_freq"), NAMED(&c, "mode"),
                        NAMED(&c, "sparse"), NAMED(&c, "per_sample_weights"),
                        NAMED(&c, "include_last_offset"), value_int(padding));
        return compose_end(&c, bags, out);
}

#define BAG_ARGS                                                                                             \
        "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "   \
        "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"
#define FOUR " -> (Tensor, Tensor, Tensor, Tensor)"
#define BAG(name, row_)                                                                                      \
        {                                                                                                    \
                "aten::" name BAG_ARGS ", int padding_idx=-1)" FOUR, DTYPES_REAL, OP_CHECKS,                 \
                        .infer = bag_infer, .run = bag_run, .cost = bag_cost, .row = row_,                   \
                        .traits = TRAIT_FRESH                                                                \
        }
const OpDef embedding_bag_ops[] = {
        BAG("_embedding_bag", NULL),
        BAG("_embedding_bag_forward_only", "forward only"),
        { "aten::embedding_bag" BAG_ARGS ")" FOUR, 0, .expand = embedding_bag_expand, .traits = TRAIT_FRESH },
        { "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
          "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, "
          "int? padding_idx)" FOUR,
          0, .expand = embedding_bag_expand, .traits = TRAIT_FRESH },
};
OP_FILE(embedding_bag_ops);
