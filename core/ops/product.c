// SPDX-License-Identifier: Apache-2.0
// product.c: which algorithm a convolution takes. Without a tune record a rule of sizes and weights
// decides, never timing, so that a program has the same bits wherever it is made. A record
// overrides the rule; a learning record stores the one that was fastest on noise. An algorithm that
// does not fit the call, or whose weights fail the accuracy guard, is never taken.
#include "core/ops/product.h"

#include <string.h>
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/grouped.h"
#include "core/kernels/product/narrow.h"
#include "core/kernels/product/packed.h"
#include "core/kernels/product/parts.h"
#include "core/kernels/conv/tap_by_tap.h"
#include "core/kernels/conv/volume.h"
#include "core/kernels/conv/winograd.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"

enum { POINTWISE_WEIGHTS = 256 << 10, POINTWISE_ROWS = 4 << 20, WINOGRAD_IMAGE = 32 << 20 }; // bytes

const Tensor *product_constant(const OpCall *call, int index)
{
        const Tensor *tensor = NULL;
        if (arg_meta(call, index) == NULL || arg_data(call, index, &tensor) != STATUS_OK || tensor == NULL ||
            !is_packed_type(&tensor->meta) || !meta_is_contiguous(&tensor->meta) ||
            meta_numel(&tensor->meta) == 0)
                return NULL;
        return tensor;
}

bool product_takes(const TensorMeta *meta)
{
        if (!is_packed_type(meta) || meta_numel(meta) == 0)
                return false;
        for (int d = 0; d < meta->rank; d++)
                if (meta->stride[d] <= 0 && meta->size[d] > 1)
                        return false;
        return true;
}

// ---- kinds ----
static Status run_onednn(const PackedProduct *product, const OpRun *run, const float *residual)
{
        (void)residual;
        return parts_run(product->impl, run->ctx, run->in[0], NULL, run->out[0], run->scratch);
}

static Status run_direct(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return direct_conv_run(product->impl, run->ctx, run->in[0], residual, run->out[0], run->scratch);
}

static Status run_winograd(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return winograd_run(product->impl, run->ctx, run->in[0], residual, run->out[0], run->scratch);
}

static Status run_depthwise(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return depthwise_run(product->impl, run->ctx, run->in[0], residual, run->out[0]);
}

static Status run_packed(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return packed_matmul_run(product->impl, run->ctx, run->in[0], residual, run->out[0], run->scratch);
}

static Status run_narrow(const PackedProduct *product, const OpRun *run, const float *residual)
{
        return narrow_matmul_run(product->impl, run->ctx, run->in[0], residual, run->out[0], run->scratch);
}

static void free_narrow(void *impl)
{
        narrow_matmul_free(impl);
}

static void free_packed(void *impl)
{
        packed_matmul_free(impl);
}

static void free_direct(void *impl)
{
        direct_conv_free(impl);
}

static Status run_grouped(const PackedProduct *product, const OpRun *run, const float *residual)
{
        DirectImages images = { run->in[0], residual, run->out[0], run->scratch };
        return grouped_run(product->impl, run->ctx, &images);
}

static void free_grouped(void *impl)
{
        grouped_free(impl);
}

static Status run_volume(const PackedProduct *product, const OpRun *run, const float *residual)
{
        (void)residual;
        return volume_run(product->impl, run->ctx, run->in[0], run->out[0], run->scratch);
}

static Status run_taps(const PackedProduct *product, const OpRun *run, const float *residual)
{
        (void)residual;
        return tap_by_tap_run(product->impl, run->ctx, run->in[0], run->out[0]);
}

static void free_taps(void *impl)
{
        tap_by_tap_free(impl);
}

static void free_volume(void *impl)
{
        volume_free(impl);
}

static void free_depthwise(void *impl)
{
        depthwise_free(impl);
}

static void free_winograd(void *impl)
{
        winograd_free(impl);
}

static void then_packed(void *impl, const PointAfter *after)
{
        packed_matmul_then(impl, after);
}

static void then_narrow(void *impl, const PointAfter *after)
{
        narrow_matmul_then(impl, after);
}

static const ProductAlgorithm onednn_product = { "onednn", false, run_onednn, parts_free, NULL };
static const ProductAlgorithm packed_product = { "packed", true, run_packed, free_packed, then_packed };
static const ProductAlgorithm narrow_product = { "narrow", true, run_narrow, free_narrow, then_narrow };
static const ProductAlgorithm direct_product = { "direct", true, run_direct, free_direct, NULL };
static const ProductAlgorithm depthwise_product = { "depthwise", true, run_depthwise, free_depthwise, NULL };
static const ProductAlgorithm grouped_product = { "grouped", true, run_grouped, free_grouped, NULL };
static const ProductAlgorithm volume_product = { "volume", false, run_volume, free_volume, NULL };
static const ProductAlgorithm taps_product = { "taps", false, run_taps, free_taps, NULL };
static const ProductAlgorithm winograd_4 = { "winograd_4x4", true, run_winograd, free_winograd, NULL };
static const ProductAlgorithm winograd_2 = { "winograd_2x2", true, run_winograd, free_winograd, NULL };
static const ProductAlgorithm *const conv_kinds[] = { &direct_product, &depthwise_product, &grouped_product,
                                                      &volume_product, &taps_product,      &winograd_4,
                                                      &winograd_2,     &onednn_product };

// Each result is a product of one pixel's channels.
static bool conv_reads_pixels(const DnnlConv *conv)
{
        for (int d = 2; d < conv->input.rank; d++)
                if (conv->weight.size[d] != 1 || conv->padding[d - 2] != 0)
                        return false;
        return conv->groups == 1;
}

bool conv_has_one_tap(const DnnlConv *conv)
{
        bool apart = false;
        for (int d = 2; d < conv->input.rank; d++)
                apart |= conv->stride[d - 2] != 1;
        return !apart && conv_reads_pixels(conv);
}

DnnlMatmul conv_rows(const DnnlConv *conv, int64_t n_rows)
{
        int64_t n_out = conv->weight.size[0], depth = meta_numel(&conv->weight) / n_out;
        DnnlMatmul matmul = { .b_data = conv->weight_data,
                              .share = conv->share,
                              .bias_data = conv->bias_data,
                              .n_threads = conv->n_threads };
        meta_init(&matmul.a, conv->input.dtype, 2, (int64_t[]){ n_rows, depth });
        meta_init(&matmul.b, conv->input.dtype, 2, (int64_t[]){ depth, n_out });
        meta_init(&matmul.out, conv->input.dtype, 2, (int64_t[]){ n_rows, n_out });
        matmul.b.stride[0] = 1;
        matmul.b.stride[1] = depth;
        return matmul;
}

// Volumes whose groups have a kernel or two: the library multiplies them group by group, which
// takes three times as long as the operator's own rows (kernels/conv/conv.c).
static bool is_thin_volume(const DnnlConv *conv)
{
        return conv->input.rank == 5 && conv->groups > 1 && conv->weight.size[0] / conv->groups <= 2 &&
               meta_numel(&conv->weight) / conv->weight.size[0] <= 128;
}

Status product_volume(const DnnlConv *conv, bool transposed, PackedProduct *out_product)
{
        Volume *volume;
        *out_product = (PackedProduct){ 0 };
        TRY(volume_new(conv, transposed, &volume));
        if (volume != NULL)
                *out_product = (PackedProduct){ &volume_product, volume, volume_name(volume),
                                                volume_scratch(volume), 0 };
        return STATUS_OK;
}

static Status make_kind(const ProductAlgorithm *kind, const DnnlConv *conv, const DirectClamp *clamp,
                        PackedProduct *out_product)
{
        PackedProduct made = { 0 };
        if (kind == &onednn_product) {
                Parts *parts = NULL;
                if (!is_thin_volume(conv))
                        TRY(parts_conv_new(conv, &parts));
                if (parts != NULL)
                        made = (PackedProduct){ kind, parts, parts_name(parts), parts_scratch(parts), 0 };
        } else if (kind == &direct_product) {
                DirectConv *direct;
                TRY(direct_conv_new(conv, PRECISION_F32, clamp, &direct));
                if (direct != NULL)
                        made = (PackedProduct){ kind, direct, direct_conv_name(direct),
                                                direct_conv_scratch(direct), 0 };
        } else if (kind == &depthwise_product) {
                Depthwise *depthwise;
                TRY(depthwise_new(conv, clamp, &depthwise));
                if (depthwise != NULL)
                        made = (PackedProduct){ kind, depthwise, depthwise_name(depthwise), 0, 0 };
        } else if (kind == &grouped_product) {
                Grouped *grouped;
                TRY(grouped_new(conv, clamp, &grouped));
                if (grouped != NULL)
                        made = (PackedProduct){ kind, grouped, grouped_name(grouped),
                                                grouped_scratch(grouped), 0 };
        } else if (kind == &taps_product) {
                TapByTap *taps;
                TRY(tap_by_tap_new(conv, &taps));
                if (taps != NULL)
                        made = (PackedProduct){ kind, taps, tap_by_tap_name(taps), 0, 0 };
        } else if (kind == &volume_product) {
                return product_volume(conv, false, out_product);
        } else {
                Winograd *winograd;
                TRY(winograd_new(conv, clamp, kind == &winograd_4 ? 4 : 2, &winograd));
                if (winograd != NULL)
                        made = (PackedProduct){ kind, winograd, winograd_name(winograd),
                                                winograd_scratch(winograd), 0 };
        }
        *out_product = made;
        return STATUS_OK;
}

void packed_product_deinit(PackedProduct *product)
{
        if (product->kind != NULL)
                product->kind->free(product->impl);
        *product = (PackedProduct){ 0 };
}

// ---- products of matrices ----
// Packed products come before the library's: they are as fast or faster on all CPUs that were tried
// (docs/figures.md), and a row has the same bits in every batch without AVX-512, too.
Status matmul_product_new(const DnnlMatmul *matmul, Precision precision, const DirectClamp *clamp,
                          PackedProduct *out_product)
{
        NarrowMatmul *narrow = NULL;
        PackedMatmul *packed = NULL;
        Parts *parts = NULL;
        *out_product = (PackedProduct){ 0 };
        TRY(narrow_matmul_new(matmul, precision, clamp, &narrow));
        if (narrow != NULL) {
                *out_product = (PackedProduct){ &narrow_product, narrow, narrow_matmul_name(narrow),
                                                narrow_matmul_scratch(narrow), 0 };
                return STATUS_OK;
        }
        TRY(packed_matmul_new(matmul, clamp, &packed));
        if (packed != NULL) {
                *out_product = (PackedProduct){ &packed_product, packed, packed_matmul_name(packed),
                                                packed_matmul_scratch(packed), 0 };
                return STATUS_OK;
        }
        TRY(parts_matmul_new(matmul, &parts));
        if (parts != NULL)
                *out_product =
                        (PackedProduct){ &onednn_product, parts, parts_name(parts), parts_scratch(parts), 0 };
        return STATUS_OK;
}

// ---- left factors whose rows do not lie one after another ----
// They are copied, for a batch of one, too, where they might be read as columns: other kernels have
// other bits.
typedef struct Gathered {
        TensorMeta given, rows;
        size_t n_bytes; // of the rows
        PackedProduct product;
} Gathered;

static Status run_gathered(const PackedProduct *product, const OpRun *run, const float *residual)
{
        const Gathered *gathered = product->impl;
        Region from = region_of(&gathered->given, run->in[0]), to = region_of(&gathered->rows, run->scratch);
        OpRun rows = *run;
        TRY(copy_region(run->ctx, &from, &to));
        rows.in = (const void *const[]){ run->scratch };
        rows.scratch = (char *)run->scratch + gathered->n_bytes;
        return packed_product_run(&gathered->product, &rows, residual);
}

static void free_gathered(void *impl)
{
        Gathered *gathered = impl;
        packed_product_deinit(&gathered->product);
        free(gathered);
}

static void then_gathered(void *impl, const PointAfter *after)
{
        const PackedProduct *product = &((Gathered *)impl)->product;
        product->kind->then(product->impl, after);
}

static const ProductAlgorithm gathered_product = { "gathered", true, run_gathered, free_gathered,
                                                   then_gathered };

static Status make_gathered(const TensorMeta *left, const DnnlMatmul *matmul, Precision precision,
                            const DirectClamp *clamp, PackedProduct *out_product)
{
        DnnlMatmul rows = *matmul;
        _cleanup_(packed_product_deinit) PackedProduct product = { 0 };
        int64_t n_k = left->size[left->rank - 1];
        if (!is_packed_type(left) || meta_numel(left) == 0)
                return STATUS_OK;
        meta_init(&rows.a, left->dtype, 2, (int64_t[]){ meta_numel(left) / n_k, n_k });
        TRY(matmul_product_new(&rows, precision, clamp, &product));
        if (product.kind == NULL || product.kind->then == NULL)
                return STATUS_OK;
        Gathered *gathered = calloc(1, sizeof(*gathered));
        if (gathered == NULL)
                return fail_memory();
        gathered->given = *left;
        meta_init(&gathered->rows, left->dtype, left->rank, left->size);
        gathered->n_bytes = storage_padded((size_t)meta_numel(left) * sizeof(float));
        gathered->product = product;
        *out_product = (PackedProduct){ &gathered_product, gathered, product.name,
                                        gathered->n_bytes + product.scratch_bytes, 0 };
        product = (PackedProduct){ 0 };
        return STATUS_OK;
}

bool product_rows(const TensorMeta *meta, TensorMeta *out)
{
        int64_t size[2] = { 1, meta->size[meta->rank - 1] };
        for (int d = 0; d < meta->rank - 1; d++)
                size[0] *= meta->size[d];
        *out = *meta;
        out->rank = 2;
        out->size[0] = size[0];
        out->size[1] = size[1];
        return meta_view_strides(meta, 2, size, out->stride);
}

Status left_product_new(const TensorMeta *left, const DnnlMatmul *matmul, Precision precision,
                        const DirectClamp *clamp, PackedProduct *out_product)
{
        DnnlMatmul made = *matmul;
        bool takes = product_takes(left) && product_rows(left, &made.a);
        *out_product = (PackedProduct){ 0 };
        bool has_rows = takes && (made.a.stride[1] == 1 || made.a.size[1] == 1);
        if (!has_rows)
                TRY(make_gathered(left, matmul, precision, clamp, out_product));
        return out_product->kind != NULL || !takes ? STATUS_OK
                                                   : matmul_product_new(&made, precision, clamp, out_product);
}

// ---- the rule ----
// A kernel of one tap, where channels lie together: a product of rows with the bits of a direct
// convolution. Rows are laid out for it once, which is faster than reading them as they lie where
// each is read for many panels of weights. With a stride, the pixels that are read are copied.
static Status make_pointwise(const DnnlConv *conv, const DirectClamp *clamp, PackedProduct *out_product)
{
        PackedMatmul *packed;
        const TensorMeta *in = &conv->input, *out = &conv->out;
        if (in->rank != 4 || !conv_reads_pixels(conv) || !meta_is_channels_last(in) ||
            !meta_is_channels_last(out))
                return STATUS_OK;
        DnnlMatmul matmul = conv_rows(conv, meta_numel(out) / conv->weight.size[0]);
        if (!conv_has_one_tap(conv)) {
                TensorMeta read = { .dtype = in->dtype, .rank = 4 };
                const int64_t size[] = { out->size[0], out->size[2], out->size[3], in->size[1] },
                              stride[] = { in->stride[0], in->stride[2] * conv->stride[0],
                                           in->stride[3] * conv->stride[1], in->stride[1] };
                memcpy(read.size, size, sizeof(size));
                memcpy(read.stride, stride, sizeof(stride));
                return make_gathered(&read, &matmul, PRECISION_F32, clamp, out_product);
        }
        TRY(packed_matmul_new(&matmul, clamp, &packed));
        if (packed != NULL)
                *out_product = (PackedProduct){ &packed_product, packed, packed_matmul_name(packed),
                                                packed_matmul_scratch(packed), 0 };
        return STATUS_OK;
}

// Weights that stay in the second-level cache are used as fast by direct convolutions. Several
// threads lay out all rows before they multiply: many rows take direct ones, of the same bits. With
// a stride it pays for many channels: such pixels share a few lines of the first-level cache.
static bool takes_pointwise(const DnnlConv *conv)
{
        enum { MANY_CHANNELS = 512 };
        int64_t n_bytes = meta_numel(&conv->input) * (int64_t)sizeof(float);
        const DirectIsa *isa = direct_isa();
        return isa != NULL && isa->dense_rows != NULL && conv->weight.size[1] >= isa->dense_from &&
               (conv_has_one_tap(conv) || conv->weight.size[1] >= MANY_CHANNELS) &&
               meta_numel(&conv->weight) * (int64_t)sizeof(float) > POINTWISE_WEIGHTS &&
               (conv->n_threads == 1 || n_bytes <= POINTWISE_ROWS);
}

// oneDNN is slow where the channels of a group are no multiple of eight. Groups of eight take as
// long on either with vectors of eight; they would leave vectors of sixteen half empty.
static bool takes_grouped(const DnnlConv *conv)
{
        int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0] / conv->groups;
        const DirectIsa *isa = direct_isa();
        return isa != NULL && (n_out >= isa->lanes || n_out % 8 != 0 || n_in % 8 != 0);
}

static Status make_by_rule(const DnnlConv *conv, const DirectClamp *clamp, PackedProduct *out_product)
{
        int step = winograd_rule(conv);
        *out_product = (PackedProduct){ 0 };
        if (step != 0)
                TRY(make_kind(step == 4 ? &winograd_4 : &winograd_2, conv, clamp, out_product));
        if (out_product->kind == NULL)
                TRY(make_kind(&taps_product, conv, clamp, out_product));
        if (out_product->kind == NULL && takes_pointwise(conv))
                TRY(make_pointwise(conv, clamp, out_product));
        if (out_product->kind == NULL)
                TRY(make_kind(conv->groups == 1 ? &direct_product : &depthwise_product, conv, clamp,
                              out_product));
        if (out_product->kind == NULL && takes_grouped(conv))
                TRY(make_kind(&grouped_product, conv, clamp, out_product));
        if (out_product->kind == NULL && (conv->groups == 1 || takes_grouped(conv)))
                TRY(make_kind(&volume_product, conv, clamp, out_product));
        return out_product->kind != NULL ? STATUS_OK : make_kind(&onednn_product, conv, clamp, out_product);
}

// ---- the record ----
static void add_sizes(Text *text, const char *label, int n, const int64_t *sizes)
{
        text_add(text, label);
        for (int i = 0; i < n; i++)
                text_addf(text, "%s%ld", i == 0 ? "" : "x", (long)sizes[i]);
}

// Everything an algorithm's speed depends on; weights are the program's. The number of samples is
// left out: all batches take one algorithm, and a sample's result is the same in each.
static Status key_of(const DnnlConv *conv, const DirectClamp *clamp, bool adds, Text *out)
{
        int spatial = conv->input.rank - 2;
        add_sizes(out, "conv ", conv->input.rank - 1, conv->input.size + 1);
        add_sizes(out, " w", conv->weight.rank, conv->weight.size);
        add_sizes(out, " s", spatial, conv->stride);
        add_sizes(out, " p", spatial, conv->padding);
        add_sizes(out, " d", spatial, conv->dilation);
        text_addf(out, " g%ld %s%s%s%s t%d", (long)conv->groups,
                  meta_is_contiguous(&conv->input) ? "nchw" : "nhwc", conv->bias_data == NULL ? "" : " bias",
                  adds ? " add" : "", clamp->on ? " clamp" : "", conv->n_threads);
        return text_status(out);
}

enum { TRIALS = 4, TRIAL_BYTES = 1 << 28 };
#define TRIAL_FLOPS 100000000000

// No client asked for the trials. One may cost no more than a node may, and only a small part of a
// shared machine.
static bool may_be_timed(const PackedProduct *product, const DnnlConv *conv)
{
        int64_t n_in = meta_numel(&conv->input), n_out = meta_numel(&conv->out),
                n_weights = meta_numel(&conv->weight), flops;
        int64_t bytes = (n_in + n_out + n_weights) * (int64_t)sizeof(float);
        return mul_i64(2 * n_out, n_weights / conv->weight.size[0], &flops) && flops <= TRIAL_FLOPS &&
               run_check_cost(flops, bytes) == STATUS_OK &&
               bytes <= MIN(limits.max_run_memory, (int64_t)TRIAL_BYTES) &&
               product->scratch_bytes <= TRIAL_BYTES;
}

// The shortest of a few runs on noise. Zeros cost as much as other values, denormals would not.
static Status time_product(const PackedProduct *product, const DnnlConv *conv, const RunContext *poll,
                           int64_t *out_ns)
{
        size_t n_in = (size_t)meta_numel(&conv->input), n_out = (size_t)meta_numel(&conv->out);
        RunContext own;
        _cleanup_(storage_unrefp) Storage *in = NULL, *out = NULL, *scratch = NULL;
        TRY(storage_new(n_in * sizeof(float), false, NULL, &in));
        TRY(storage_new(n_out * sizeof(float), false, NULL, &out));
        TRY(storage_new(product->scratch_bytes, false, NULL, &scratch));
        float *noise = (float *)in->data;
        for (size_t i = 0; i < n_in; i++)
                noise[i] = (float)(i * 2654435761u % 1999) / 1000.0f - 1.0f;
        run_context_init(&own);
        own.n_threads = conv->n_threads;
        RunContext *ctx = poll == NULL ? &own : (RunContext *)(uintptr_t)poll;
        OpRun run = { .in = (const void *const[]){ in->data },
                      .out = (void *const[]){ out->data },
                      .scratch = scratch->data,
                      .ctx = ctx };
        *out_ns = INT64_MAX;
        for (int i = 0; i < TRIALS; i++) {
                TRY(run_poll(ctx));
                int64_t start = clock_ns();
                TRY(packed_product_run(product, &run, NULL));
                *out_ns = MIN(*out_ns, clock_ns() - start);
        }
        return STATUS_OK;
}

// No product where some kind would cost too much to be tried.
static Status make_fastest(const DnnlConv *conv, const DirectClamp *clamp, const RunContext *poll,
                           PackedProduct *out_product)
{
        int64_t least = INT64_MAX, ns = 0;
        _cleanup_(packed_product_deinit) PackedProduct best = { 0 };
        for (size_t i = 0; i < ARRAY_LENGTH(conv_kinds); i++) {
                _cleanup_(packed_product_deinit) PackedProduct made = { 0 };
                TRY(make_kind(conv_kinds[i], conv, clamp, &made));
                if (made.kind == NULL)
                        continue;
                if (!may_be_timed(&made, conv))
                        return STATUS_OK;
                TRY(time_product(&made, conv, poll, &ns));
                if (ns >= least)
                        continue;
                least = ns;
                packed_product_deinit(&best);
                best = made;
                made = (PackedProduct){ 0 };
        }
        *out_product = best;
        best = (PackedProduct){ 0 };
        return STATUS_OK;
}

static Status make_named(const char *algorithm, const DnnlConv *conv, const DirectClamp *clamp,
                         PackedProduct *out_product)
{
        for (size_t i = 0; i < ARRAY_LENGTH(conv_kinds); i++) {
                if (strcmp(algorithm, conv_kinds[i]->algorithm) == 0)
                        return make_kind(conv_kinds[i], conv, clamp, out_product);
        }
        return STATUS_OK;
}

// Winograd's 4x4 in float32 is faster than bfloat16, and closer, where sums are long enough, and
// most of its tiles lie in the image and the image in the cache; integers are faster than both.
static bool takes_winograd(const DnnlConv *conv)
{
        enum { LEAST_CHANNELS = 32 };
        int64_t height = conv->out.size[2], width = conv->out.size[3];
        int64_t covered = (height + 3) / 4 * ((width + 3) / 4) * 16, pixels = height * width;
        return winograd_rule(conv) == 4 &&
               MIN(conv->weight.size[0], conv->weight.size[1]) >= LEAST_CHANNELS &&
               pixels * 5 >= covered * 4 &&
               pixels * (conv->weight.size[0] + conv->weight.size[1]) * (int64_t)sizeof(float) <=
                       WINOGRAD_IMAGE;
}

static Status make_narrow(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                          PackedProduct *out_product)
{
        DirectConv *direct;
        bool bytes = precision == PRECISION_INT8 && direct_conv_has_bytes();
        if (precision == PRECISION_F32 || (!bytes && takes_winograd(conv)))
                return STATUS_OK;
        TRY(direct_conv_new(conv, precision, clamp, &direct));
        if (direct != NULL)
                *out_product = (PackedProduct){ &direct_product, direct, direct_conv_name(direct),
                                                direct_conv_scratch(direct), 0 };
        return STATUS_OK;
}

static Status choose_by_record(const DnnlConv *conv, const DirectClamp *clamp, bool adds,
                               const PackContext *context, PackedProduct *out_product)
{
        TuneRecord *record = context->tune;
        *out_product = (PackedProduct){ 0 };
        if (record == NULL)
                return make_by_rule(conv, clamp, out_product);
        Text key = { 0 };
        Status status = key_of(conv, clamp, adds, &key);
        const char *algorithm = status != STATUS_OK ? NULL : tune_algorithm(record, key.data);
        if (algorithm != NULL) {
                status = make_named(algorithm, conv, clamp, out_product);
        } else if (status == STATUS_OK && tune_is_learning(record)) {
                status = make_fastest(conv, clamp, context->poll, out_product);
                if (status == STATUS_OK && out_product->kind != NULL)
                        status = tune_learn(record, key.data, out_product->kind->algorithm);
        }
        text_deinit(&key);
        if (status == STATUS_OK && out_product->kind == NULL)
                return make_by_rule(conv, clamp, out_product);
        if (status != STATUS_OK)
                packed_product_deinit(out_product);
        return status;
}

Status conv_choose(const DnnlConv *conv, bool adds, const PackContext *context, const DirectClamp *clamp,
                   PackedProduct *out_product)
{
        *out_product = (PackedProduct){ 0 };
        TRY(make_narrow(conv, context->precision, clamp, out_product));
        return out_product->kind != NULL ? STATUS_OK
                                         : choose_by_record(conv, clamp, adds, context, out_product);
}
