// SPDX-License-Identifier: Apache-2.0
// resample_shuffle.c: pixel_shuffle, pixel_unshuffle and channel_shuffle: one strided copy between
// the same elements seen in more dimensions.
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include <string.h>

typedef enum ShuffleKind { PIXEL_SHUFFLE, PIXEL_UNSHUFFLE, CHANNEL_SHUFFLE } ShuffleKind;
static const ShuffleKind pixel_shuffle = PIXEL_SHUFFLE, pixel_unshuffle = PIXEL_UNSHUFFLE,
                         channel_shuffle = CHANNEL_SHUFFLE;

static Status shuffle_size(const OpCall *call, ShuffleKind kind, int64_t *out_size, int64_t *out_factor)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t factor, square;
        TRY(arg_int(call, SHUFFLE_FACTOR, &factor));
        const char *what = kind == PIXEL_SHUFFLE ? "upscale_factor" : "downscale_factor";
        if (self->rank < 3 || self->rank > MAX_RANK - 2)
                return fail(STATUS_SHAPE,
                            "%s expects input to have at least 3 dimensions and at most %d, but got input "
                            "with %d dimension(s)",
                            call->schema->name, MAX_RANK - 2, self->rank);
        if (factor <= 0)
                return fail(STATUS_VALUE, "%s expects a positive %s, but got %ld", call->schema->name, what,
                            (long)factor);
        if (!mul_i64(factor, factor, &square))
                return fail(STATUS_VALUE, "%s: %s %ld is too large", call->schema->name, what, (long)factor);
        memcpy(out_size, self->size, MAX_RANK * sizeof(int64_t));
        int64_t *c = &out_size[self->rank - 3], *h = c + 1, *w = c + 2;
        if (kind == PIXEL_SHUFFLE) {
                if (*c % square != 0)
                        return fail(STATUS_SHAPE,
                                    "pixel_shuffle expects its input's 'channel' dimension to be divisible "
                                    "by the square of "
                                    "upscale_factor, but input.size(-3)=%ld "
                                    "is not divisible by %ld",
                                    (long)*c, (long)square);
                *c /= square;
                if (!mul_i64(*h, factor, h) || !mul_i64(*w, factor, w))
                        return fail(STATUS_TOO_LARGE, "pixel_shuffle: the result is too large");
        } else {
                if (*h % factor != 0 || *w % factor != 0)
                        return fail(STATUS_SHAPE,
                                    "pixel_unshuffle expects %s to be divisible by downscale_factor, but "
                                    "input.size(%d)=%ld is not "
                                    "divisible by %ld",
                                    *h % factor != 0 ? "height" : "width", *h % factor != 0 ? -2 : -1,
                                    (long)(*h % factor != 0 ? *h : *w), (long)factor);
                if (!mul_i64(*c, square, c))
                        return fail(STATUS_TOO_LARGE, "pixel_unshuffle: the result is too large");
                *h /= factor;
                *w /= factor;
        }
        *out_factor = factor;
        return STATUS_OK;
}

static Status groups_of(const OpCall *call, int64_t *out_groups)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TRY(arg_int(call, SHUFFLE_FACTOR, out_groups));
        if (self->rank < 3 || self->rank == MAX_RANK)
                return fail(STATUS_SHAPE,
                            "channel_shuffle expects input with > 2 dims, but got input with %d dims",
                            self->rank);
        if (*out_groups <= 0)
                return fail(STATUS_VALUE,
                            "Number of groups to divide channels in must be positive. Value of groups:%ld",
                            (long)*out_groups);
        if (self->size[1] % *out_groups != 0)
                return fail(
                        STATUS_SHAPE,
                        "Number of channels must be divisible by groups. Got %ld channels and %ld groups.",
                        (long)self->size[1], (long)*out_groups);
        return STATUS_OK;
}

static Status shuffle_infer(OpCall *call)
{
        ShuffleKind kind = *(const ShuffleKind *)call->op->row;
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t factor, numel;
        if (kind == CHANNEL_SHUFFLE)
                TRY(groups_of(call, &factor));
        else
                TRY(shuffle_size(call, kind, meta.size, &factor));
        TRY(shape_numel(meta.rank, meta.size, &numel));
        if (kind == PIXEL_UNSHUFFLE && numel == 0)
                memcpy(meta.size, self->size, sizeof(meta.size)); // PyTorch returns what is empty as it is
        meta_set_contiguous(&meta);
        if ((kind == CHANNEL_SHUFFLE || meta.rank == 4) && meta_suggests_channels_last(self))
                meta_set_channels_last(&meta);
        return out_fresh(call, 0, &meta);
}

// Replaces dimension `dim` by (size / inner, inner), or in the other order of memory.
static void split_dim(TensorMeta *meta, int dim, int64_t inner)
{
        memmove(meta->size + dim + 1, meta->size + dim, (size_t)(meta->rank - dim) * sizeof(int64_t));
        memmove(meta->stride + dim + 1, meta->stride + dim, (size_t)(meta->rank - dim) * sizeof(int64_t));
        meta->rank++;
        meta->size[dim] /= inner;
        meta->stride[dim] *= inner;
        meta->size[dim + 1] = inner;
}

static void move_dim(TensorMeta *meta, int from, int to)
{
        int64_t size = meta->size[from], stride = meta->stride[from];
        for (; from < to; from++) {
                meta->size[from] = meta->size[from + 1];
                meta->stride[from] = meta->stride[from + 1];
        }
        for (; from > to; from--) {
                meta->size[from] = meta->size[from - 1];
                meta->stride[from] = meta->stride[from - 1];
        }
        meta->size[to] = size;
        meta->stride[to] = stride;
}

// The side with many channels as [.., c, h, r, w, r]; the other one as [.., c, h, r, w, r] by
// splitting h and w.
static void pixel_views(TensorMeta *deep, TensorMeta *wide, int64_t factor)
{
        int c = deep->rank - 3;
        split_dim(deep, c, factor);     // c*r, r, h, w
        split_dim(deep, c, factor);     // c, r, r, h, w
        move_dim(deep, c + 3, c + 1);   // c, h, r, r, w
        move_dim(deep, c + 4, c + 3);   // c, h, r, w, r
        split_dim(wide, c + 2, factor); // c, h, w, r
        split_dim(wide, c + 1, factor); // c, h, r, w, r
}

static Status shuffle_run(const OpRun *run)
{
        ShuffleKind kind = *(const ShuffleKind *)run->call->op->row;
        TensorMeta from = *run->in_meta[0], to = *run->out_meta[0];
        if (meta_numel(&to) == 0)
                return STATUS_OK;
        int64_t factor;
        TRY(arg_int(run->call, SHUFFLE_FACTOR, &factor));
        if (kind == PIXEL_SHUFFLE) {
                pixel_views(&from, &to, factor);
        } else if (kind == PIXEL_UNSHUFFLE) {
                pixel_views(&to, &from, factor);
        } else {
                // Channels [groups, per] become [per, groups].
                split_dim(&from, 1, from.size[1] / factor);
                split_dim(&to, 1, factor);
                move_dim(&to, 2, 1);
        }
        Region source = region_of(&from, run->in[0]), target = region_of(&to, run->out[0]);
        return copy_region(run->ctx, &source, &target);
}

const OpDef resample_shuffle_ops[] = {
        { "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", DTYPES_ALL,
          .infer = shuffle_infer, .run = shuffle_run, .row = &pixel_shuffle, .traits = TRAIT_FRESH },
        { "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", DTYPES_ALL,
          .infer = shuffle_infer, .run = shuffle_run, .row = &pixel_unshuffle, .traits = TRAIT_FRESH },
        { "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", DTYPES_ALL, .infer = shuffle_infer,
          .run = shuffle_run, .row = &channel_shuffle, .traits = TRAIT_FRESH },
        { "aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", DTYPES_ALL,
          .infer = shuffle_infer, .run = shuffle_run, .row = &channel_shuffle, .traits = TRAIT_FRESH },
};
OP_FILE(resample_shuffle_ops);
