// SPDX-License-Identifier: Apache-2.0
// detection.c: torchvision's operators: boxes that overlap, regions of images, deformable
// convolution.
#include "core/kernels/conv/deform.h"
#include "core/kernels/dense.h"
#include "core/kernels/index/suppress.h"
#include "core/kernels/pool/regions.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

// torchvision rounds every step to the half type; here that is left out.
static Status check_floats(const char *name, const TensorMeta *a, const TensorMeta *b)
{
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE, "%s: expected tensors of one dtype, but got %s and %s", name,
                            dtype_words(a->dtype), dtype_words(b->dtype));
        if ((DTYPES_HALFS >> a->dtype & 1) != 0)
                return fail(STATUS_UNSUPPORTED, "%s: half types are not supported; cast to float32", name);
        return dtype_is_float(a->dtype)
                       ? STATUS_OK
                       : fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", name, dtype_words(a->dtype));
}

// ---- nms ----
static Status check_boxes(const TensorMeta *boxes, const TensorMeta *scores)
{
        if (boxes->rank != 2)
                return fail(STATUS_SHAPE, "boxes should be a 2d tensor, got %dD", boxes->rank);
        if (boxes->size[1] != 4)
                return fail(STATUS_SHAPE, "boxes should have 4 elements in dimension 1, got %ld",
                            (long)boxes->size[1]);
        if (scores->rank != 1)
                return fail(STATUS_SHAPE, "scores should be a 1d tensor, got %dD", scores->rank);
        if (boxes->size[0] != scores->size[0])
                return fail(STATUS_SHAPE,
                            "boxes and scores should have same number of elements in dimension 0, got %ld "
                            "and %ld",
                            (long)boxes->size[0], (long)scores->size[0]);
        return check_floats("nms", boxes, scores);
}

static Status suppress_infer(OpCall *call)
{
        const TensorMeta *order = arg_meta(call, SUPPRESS_ORDER);
        TensorMeta meta;
        meta_init(&meta, DTYPE_BOOL, 1, order->size);
        return out_fresh(call, 0, &meta);
}

static Status suppress_op_run(const OpRun *run)
{
        Suppression task = { .dtype = run->in_meta[0]->dtype,
                             .n = run->in_meta[1]->size[0],
                             .out = run->out[0] };
        _cleanup_(dense_deinit) Dense boxes = { 0 }, order = { 0 };
        TRY(dense_init(&boxes, run->ctx, run->in[0], run->in_meta[0], task.dtype));
        TRY(dense_init(&order, run->ctx, run->in[1], run->in_meta[1], DTYPE_I64));
        TRY(arg_double(run->call, SUPPRESS_MOST, &task.most));
        task.boxes = boxes.data;
        task.order = order.data;
        return suppress_run(run->ctx, &task);
}

// The worst case: no box overlaps another one.
static Cost suppress_cost(const OpCall *call)
{
        int64_t n = arg_meta(call, SUPPRESS_ORDER)->size[0];
        return (Cost){ .flops = saturating_product(saturating_product(n, n), 2), .bytes = n * 16 };
}

static Status nms_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value boxes = NAMED(&c, "dets"), scores = NAMED(&c, "scores");
        compose_check(&c, check_boxes(compose_meta(&c, boxes), compose_meta(&c, scores)));
        Value sorted = OP(&c, "aten::sort.stable", scores, value_bool(true), value_int(0), value_bool(true));
        Value order = compose_item(&c, sorted, 1);
        Value kept = OP(&c, "fxserve::suppress", boxes, order, NAMED(&c, "iou_threshold"));
        return compose_end(&c, OP(&c, "aten::masked_select", order, kept), out);
}

// ---- regions ----
static Status check_regions(const OpCall *call, RegionKind kind)
{
        const TensorMeta *input = arg_meta(call, SELF), *rois = arg_meta(call, ROI_ROIS);
        if (input->rank != 4)
                return fail(STATUS_SHAPE, "%s: expected images of 4 dimensions, but got %d",
                            call->schema->name, input->rank);
        if (rois->rank != 2 || rois->size[1] != 5)
                return fail(STATUS_SHAPE, "rois must have shape as Tensor[K, 5]");
        const bool samples = kind == REGION_ALIGN || kind == REGION_ALIGN_PLACES;
        if (samples && rois->size[0] > 0 && (input->size[2] == 0 || input->size[3] == 0))
                return fail(STATUS_SHAPE, "%s: the images have no elements", call->schema->name);
        return check_floats(call->schema->name, input, rois);
}

static Status region_infer(OpCall *call)
{
        const RegionKind kind = *(const RegionKind *)call->op->row;
        const TensorMeta *input = arg_meta(call, SELF);
        int64_t size[4] = { 0 }, numel;
        TRY(check_regions(call, kind));
        TRY(arg_int(call, ROI_HEIGHT, &size[2]));
        TRY(arg_int(call, ROI_WIDTH, &size[3]));
        size[0] = arg_meta(call, ROI_ROIS)->size[0];
        size[1] = input->size[1];
        if (kind == REGION_ALIGN_PLACES || kind == REGION_POOL_PLACES) {
                int64_t cells;
                if (!mul_i64(size[2], size[3], &cells) || cells <= 0 || size[2] <= 0)
                        return fail(STATUS_VALUE, "%s: pooled sizes must be positive", call->schema->name);
                if (input->size[1] % cells != 0)
                        return fail(STATUS_SHAPE, "input channels must be a multiple of pooling height * "
                                                  "pooling width");
                size[1] /= cells;
        }
        TRY(shape_numel(4, size, &numel));
        TensorMeta meta;
        meta_init(&meta, input->dtype, 4, size);
        TRY(out_fresh(call, 0, &meta));
        if (kind == REGION_ALIGN)
                return STATUS_OK;
        meta_init(&meta, DTYPE_I32, 4, size);
        return out_fresh(call, 1, &meta);
}

static Status read_sampling(const OpCall *call, Regions *task)
{
        TRY(arg_double(call, ROI_SCALE, &task->scale));
        if (task->kind == REGION_ALIGN || task->kind == REGION_ALIGN_PLACES)
                TRY(arg_int(call, ROI_SAMPLING, &task->sampling));
        task->sampling = MIN(task->sampling, INT32_MAX);
        task->aligned = task->kind == REGION_ALIGN && arg_bool(call, ROI_ALIGNED, false);
        return STATUS_OK;
}

static Status region_run(const OpRun *run)
{
        const TensorMeta *input = run->in_meta[0], *out = run->out_meta[0];
        _cleanup_(dense_deinit) Dense image = { 0 }, regions = { 0 };
        TRY(dense_init(&image, run->ctx, run->in[0], input, input->dtype));
        TRY(dense_init(&regions, run->ctx, run->in[1], run->in_meta[1], input->dtype));
        Regions task = { .kind = *(const RegionKind *)run->call->op->row,
                         .dtype = input->dtype,
                         .n = meta_numel(out) == 0 ? 0 : out->size[0],
                         .batch = input->size[0],
                         .channels = input->size[1],
                         .height = input->size[2],
                         .width = input->size[3],
                         .out_channels = out->size[1],
                         .out_height = out->size[2],
                         .out_width = out->size[3],
                         .image = image.data,
                         .regions = regions.data,
                         .out = run->out[0],
                         .index = run->n_out > 1 ? run->out[1] : NULL };
        TRY(read_sampling(run->call, &task));
        return regions_run(run->ctx, &task);
}

// Regions are taken for as large as a cell of the result; the kernel counts what they really are.
static Cost region_cost(const OpCall *call)
{
        int64_t samples = 1, n = meta_numel(&call->outs[0].meta);
        const RegionKind kind = *(const RegionKind *)call->op->row;
        if (kind == REGION_ALIGN || kind == REGION_ALIGN_PLACES) {
                (void)arg_int(call, ROI_SAMPLING, &samples);
                samples = MAX(samples, 1);
        }
        return (Cost){ .flops = saturating_product(
                               n, saturating_product(saturating_product(samples, samples), 8)),
                       .bytes = saturating_product(n, 8) };
}

// ---- deform_conv2d ----
typedef struct DeformSizes {
        int64_t kernel[2], stride[2], padding[2], dilation[2], out[2];
} DeformSizes;

// The plane of the result.
static Status deform_out_size(const TensorMeta *input, DeformSizes *sizes)
{
        for (int d = 0; d < 2; d++) {
                int64_t reach, room;
                if (sizes->kernel[d] <= 0 || sizes->stride[d] <= 0 || sizes->dilation[d] <= 0 ||
                    sizes->padding[d] < 0)
                        return fail(STATUS_VALUE, "deform_conv2d: sizes of the kernel, strides and dilations "
                                                  "must be positive, paddings not negative");
                if (!mul_i64(sizes->dilation[d], sizes->kernel[d] - 1, &reach) ||
                    !mul_i64(sizes->padding[d], 2, &room) || !add_i64(room, input->size[2 + d] - 1, &room) ||
                    !sub_i64(room, reach, &room))
                        return fail(STATUS_TOO_LARGE, "deform_conv2d: sizes are too large");
                sizes->out[d] = room < 0 ? 0 : room / sizes->stride[d] + 1;
        }
        return sizes->out[0] > 0 && sizes->out[1] > 0
                       ? STATUS_OK
                       : fail(STATUS_SHAPE, "Calculated output size too small - out_h: %ld out_w: %ld",
                              (long)sizes->out[0], (long)sizes->out[1]);
}

static bool meta_is(const TensorMeta *meta, int64_t n, int64_t channels, const int64_t size[2])
{
        return meta->rank == 4 && meta->size[0] == n && meta->size[1] == channels &&
               meta->size[2] == size[0] && meta->size[3] == size[1];
}

static Status columns_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *offset = arg_meta(call, DEFORM_OFFSET);
        const TensorMeta *mask = arg_meta(call, DEFORM_MASK);
        DeformSizes sizes;
        int64_t groups, numel, n_places;
        int n;
        TRY(arg_ints(call, DEFORM_KERNEL, 2, sizes.kernel, &n));
        TRY(arg_ints(call, DEFORM_STRIDE, 2, sizes.stride, &n));
        TRY(arg_ints(call, DEFORM_PADDING, 2, sizes.padding, &n));
        TRY(arg_ints(call, DEFORM_DILATION, 2, sizes.dilation, &n));
        TRY(arg_int(call, DEFORM_GROUPS, &groups));
        TRY(deform_out_size(input, &sizes));
        if (groups <= 0 || input->size[1] % groups != 0)
                return fail(STATUS_VALUE,
                            "input's number of channels (%ld) must be divisible by offset "
                            "groups (%ld)",
                            (long)input->size[1], (long)groups);
        if (!mul_i64(sizes.kernel[0], sizes.kernel[1], &n_places) || n_places > INT32_MAX ||
            groups > INT32_MAX)
                return fail(STATUS_TOO_LARGE, "deform_conv2d: sizes are too large");
        if (!meta_is(offset, input->size[0], groups * n_places * 2, sizes.out))
                return fail(STATUS_SHAPE, "offset.shape[1] is not valid: got: %ld expected: %ld",
                            (long)offset->size[1], (long)(groups * n_places * 2));
        if (mask != NULL && !meta_is(mask, input->size[0], groups * n_places, sizes.out))
                return fail(STATUS_SHAPE, "mask.shape[1] is not valid: got: %ld expected: %ld",
                            (long)mask->size[1], (long)(groups * n_places));
        const int64_t size[6] = { input->size[0],  input->size[1], sizes.kernel[0],
                                  sizes.kernel[1], sizes.out[0],   sizes.out[1] };
        TRY(shape_numel(6, size, &numel));
        TensorMeta meta;
        meta_init(&meta, input->dtype, 6, size);
        return out_fresh(call, 0, &meta);
}

static Status columns_run(const OpRun *run)
{
        const TensorMeta *input = run->in_meta[0], *out = run->out_meta[0];
        _cleanup_(dense_deinit) Dense image = { 0 }, offset = { 0 }, mask = { 0 };
        int n;
        DeformColumns task = { .dtype = input->dtype,
                               .batch = out->size[0],
                               .channels = out->size[1],
                               .size = { input->size[2], input->size[3] },
                               .kernel = { out->size[2], out->size[3] },
                               .out_size = { out->size[4], out->size[5] },
                               .out = run->out[0] };
        TRY(arg_ints(run->call, DEFORM_STRIDE, 2, task.stride, &n));
        TRY(arg_ints(run->call, DEFORM_PADDING, 2, task.padding, &n));
        TRY(arg_ints(run->call, DEFORM_DILATION, 2, task.dilation, &n));
        TRY(arg_int(run->call, DEFORM_GROUPS, &task.groups));
        TRY(dense_init(&image, run->ctx, run->in[0], input, task.dtype));
        TRY(dense_init(&offset, run->ctx, run->in[1], run->in_meta[1], task.dtype));
        if (run->in[2] != NULL)
                TRY(dense_init(&mask, run->ctx, run->in[2], run->in_meta[2], task.dtype));
        task.image = image.data;
        task.offset = offset.data;
        task.mask = mask.data;
        return deform_columns_run(run->ctx, &task);
}

static Cost columns_cost(const OpCall *call)
{
        int64_t n = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = saturating_product(n, 8), .bytes = saturating_product(n, 20) };
}

static Status check_deform(Compose *c, const TensorMeta *input, const TensorMeta *weight, int64_t groups)
{
        const TensorMeta *offset = compose_meta(c, NAMED(c, "offset")),
                         *mask = compose_meta(c, NAMED(c, "mask"));
        const TensorMeta *bias = compose_meta(c, NAMED(c, "bias"));
        if (input->rank != 4 || weight->rank != 4 || offset->rank != 4)
                return fail(STATUS_SHAPE, "deform_conv2d: input, weight and offset have 4 dimensions");
        if (groups <= 0 || weight->size[0] % groups != 0 || input->size[1] % groups != 0 ||
            weight->size[1] != input->size[1] / groups)
                return fail(STATUS_SHAPE,
                            "deform_conv2d: weights of %ld x %ld channels do not fit images of "
                            "%ld channels in %ld groups",
                            (long)weight->size[0], (long)weight->size[1], (long)input->size[1], (long)groups);
        if (meta_numel(bias) != weight->size[0])
                return fail(STATUS_SHAPE, "shape '[1, %ld, 1, 1]' is invalid for input of size %ld",
                            (long)weight->size[0], (long)meta_numel(bias));
        TRY(check_floats("deform_conv2d", input, weight));
        TRY(check_floats("deform_conv2d", input, offset));
        return compose_bool(c, "use_mask") ? check_floats("deform_conv2d", input, mask) : STATUS_OK;
}

static Status deform_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), weight = NAMED(&c, "weight");
        const int64_t groups = compose_int(&c, "groups");
        TensorMeta in = *compose_meta(&c, input), filters = *compose_meta(&c, weight);
        if (!compose_failed(&c))
                compose_check(&c, check_deform(&c, &in, &filters, groups));
        if (compose_failed(&c))
                return compose_end(&c, value_none(), out);
        Value pair[] = { INTS(&c, filters.size[2], filters.size[3]),
                         INTS(&c, compose_int(&c, "stride_h"), compose_int(&c, "stride_w")),
                         INTS(&c, compose_int(&c, "pad_h"), compose_int(&c, "pad_w")),
                         INTS(&c, compose_int(&c, "dilation_h"), compose_int(&c, "dilation_w")) };
        Value columns = OP(&c, "fxserve::deform_columns", input, NAMED(&c, "offset"),
                           compose_bool(&c, "use_mask") ? NAMED(&c, "mask") : value_none(), pair[0], pair[1],
                           pair[2], pair[3], NAMED(&c, "offset_groups"));
        const int64_t n = in.size[0], rows = filters.size[0] / groups;
        const int64_t depth = filters.size[1] * filters.size[2] * filters.size[3];
        const int64_t height = compose_meta(&c, columns)->size[4], width = compose_meta(&c, columns)->size[5];
        columns = OP(&c, "aten::view", columns, INTS(&c, n, groups, depth, height * width));
        weight = OP(&c, "aten::reshape", weight, INTS(&c, groups, rows, depth));
        Value product = OP(&c, "aten::matmul", weight, columns);
        product = OP(&c, "aten::view", product, INTS(&c, n, filters.size[0], height, width));
        Value bias = OP(&c, "aten::view", NAMED(&c, "bias"), INTS(&c, 1, filters.size[0], 1, 1));
        return compose_end(&c, OP(&c, "aten::add.Tensor", product, bias), out);
}

#define ROI_ARGS "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
#define REGION_ROW(text, kind_)                                                                              \
        {                                                                                                    \
                "torchvision::" text, 0, OP_CHECKS,                                                          \
                        .infer = region_infer, .run = region_run, .cost = region_cost,                       \
                        .row = &(const RegionKind){ kind_ }, .traits = TRAIT_FRESH                           \
        }
const OpDef detection_ops[] = {
        { "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", 0,
          .expand = nms_expand, .traits = TRAIT_FRESH },
        { "fxserve::suppress(Tensor boxes, Tensor order, float most) -> Tensor", 0,
          OP_HIDDEN | OP_INTERNAL | OP_CHECKS, .infer = suppress_infer, .run = suppress_op_run,
          .cost = suppress_cost, .traits = TRAIT_FRESH },
        REGION_ROW("roi_align" ROI_ARGS ", int sampling_ratio, bool aligned) -> Tensor", REGION_ALIGN),
        REGION_ROW("roi_pool" ROI_ARGS ") -> (Tensor, Tensor)", REGION_POOL),
        REGION_ROW("ps_roi_align" ROI_ARGS ", int sampling_ratio) -> (Tensor, Tensor)", REGION_ALIGN_PLACES),
        REGION_ROW("ps_roi_pool" ROI_ARGS ") -> (Tensor, Tensor)", REGION_POOL_PLACES),
        { "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
          "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt "
          "dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
          0, .expand = deform_expand, .traits = TRAIT_FRESH },
        { "fxserve::deform_columns(Tensor input, Tensor offset, Tensor? mask, SymInt[2] kernel, SymInt[2] "
          "stride, SymInt[2] padding, SymInt[2] dilation, SymInt groups) -> Tensor",
          0, OP_HIDDEN | OP_INTERNAL, .infer = columns_infer, .run = columns_run, .cost = columns_cost,
          .traits = TRAIT_FRESH },
};
OP_FILE(detection_ops);
