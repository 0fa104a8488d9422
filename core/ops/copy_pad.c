// SPDX-License-Identifier: Apache-2.0
// copy_pad.c: padding. constant: a filled tensor with a copy in its middle, negative widths crop.
// reflect, replicate, circular: every output index of the last one to three dimensions is mapped to
// an input index, one table per dimension.
#include <inttypes.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"

enum { PAD_CAP = 2 * MAX_RANK };

static Status arg_widths(const OpCall *call, int64_t widths[PAD_CAP], int *out_n)
{
        int n = (int)MIN(arg_list_length(call, PADDING_WIDTHS), 4096u);
        const TensorMeta *self = arg_meta(call, SELF);
        if (n % 2 != 0)
                return fail(STATUS_VALUE, "Length of pad must be even but instead it equals %d", n);
        if (n > 2 * self->rank)
                return fail(STATUS_VALUE,
                            "Length of pad should be no more than twice the number of dimensions of the "
                            "input. Pad length is %d while the "
                            "input has %d dimensions.",
                            n, self->rank);
        TRY(arg_ints(call, PADDING_WIDTHS, PAD_CAP, widths, out_n));
        for (int i = 0; i < n; i++) {
                if (widths[i] < -limits.max_numel || widths[i] > limits.max_numel)
                        return fail(STATUS_TOO_LARGE, "%s(): a width of %" PRId64 " is too large",
                                    call->schema->name, widths[i]);
        }
        return STATUS_OK;
}

// ---- constant ----
// The value as an element. Widths that add nothing take any value.
static Status pad_element(const OpCall *call, const int64_t *widths, int n, uint64_t out_element[2])
{
        bool adds = false;
        for (int i = 0; i < n; i++)
                adds |= widths[i] > 0;
        return adds ? value_element(arg_number(call, CONSTANT_PAD_VALUE), arg_meta(call, SELF)->dtype,
                                    out_element)
                    : STATUS_OK;
}

static Status constant_pad_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t widths[PAD_CAP], numel;
        uint64_t element[2];
        int n = 0;
        TRY(arg_widths(call, widths, &n));
        for (int i = 0; i < n / 2; i++) {
                int d = self->rank - 1 - i;
                if (!add_i64(meta.size[d], widths[2 * i], &meta.size[d]) ||
                    !add_i64(meta.size[d], widths[2 * i + 1], &meta.size[d]))
                        return fail(STATUS_TOO_LARGE, "constant_pad_nd(): the result is too large");
                if (meta.size[d] < 0)
                        return fail(STATUS_VALUE,
                                    "The input size %" PRId64 ", plus negative padding %" PRId64
                                    " and %" PRId64 " resulted in a negative output size, which is invalid. "
                                    "Check dimension %d of your input.",
                                    self->size[d], widths[2 * i], widths[2 * i + 1], d);
                // each side cuts by itself, the first one first
                if (MIN(widths[2 * i], 0) + self->size[d] < 0 ||
                    MIN(widths[2 * i + 1], 0) + MIN(widths[2 * i], 0) + self->size[d] < 0)
                        return fail(STATUS_VALUE, "narrow(): length must be non-negative.");
        }
        TRY(shape_numel(meta.rank, meta.size, &numel));
        // checked here: a run may skip the call when nobody reads its result
        TRY(pad_element(call, widths, n, element));
        TRY(view_set_strides(&meta, view_suggested_format(self), self));
        return out_fresh(call, 0, &meta);
}

static Status constant_pad_run(const OpRun *run)
{
        Region from = region_of(run->in_meta[0], run->in[0]), out = region_of(run->out_meta[0], run->out[0]);
        int64_t widths[PAD_CAP];
        uint64_t element[2] = { 0 };
        int n = 0;
        TRY(arg_widths(run->call, widths, &n));
        TRY(pad_element(run->call, widths, n, element));
        TRY(fill_region(run->ctx, &out, element));
        Region to = out;
        for (int i = 0; i < n / 2; i++) {
                int d = from.meta.rank - 1 - i;
                int64_t before = widths[2 * i], after = widths[2 * i + 1];
                int64_t cut = MAX(-before, 0), length = from.meta.size[d] - cut - MAX(-after, 0);
                if (length <= 0)
                        return STATUS_OK;
                from = region_part(&from, d, cut, length);
                to = region_part(&to, d, MAX(before, 0), length);
        }
        return copy_region(run->ctx, &from, &to);
}

// ---- mapped ----
typedef enum PadKind { PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } PadKind;
static const PadKind pad_reflect = PAD_REFLECT, pad_replicate = PAD_REPLICATE, pad_circular = PAD_CIRCULAR;

static Status check_mapped(const OpCall *call, PadKind kind, int64_t size, int64_t before, int64_t after,
                           int dim)
{
        const TensorMeta *self = arg_meta(call, SELF);
        char text[256];
        if (kind == PAD_REFLECT && (before >= size || after >= size))
                return fail(STATUS_VALUE,
                            "Argument #4: Padding size should be less than the corresponding input "
                            "dimension, but got: padding (%" PRId64 ", %" PRId64
                            ") at dimension %d of input %s",
                            before, after, dim, shape_text(self->rank, self->size, text, sizeof(text)));
        if (kind == PAD_CIRCULAR && (before > size || after > size))
                return fail(STATUS_VALUE, "Padding value causes wrapping around more than once.");
        return STATUS_OK;
}

// What is cut off is cut first; what wraps is read from the rest. PyTorch reads what it has not
// written where the rest is too short.
static Status check_wraps(const TensorMeta *self, const int64_t *widths, int n)
{
        for (int i = 0; i < n / 2; i++) {
                int64_t before = widths[2 * i], after = widths[2 * i + 1],
                        size = self->size[self->rank - 1 - i];
                int64_t rest = size + MIN(before, 0) + MIN(after, 0);
                if (MAX(before, after) > rest)
                        return fail(STATUS_VALUE,
                                    "circular padding of %" PRId64 " needs as many elements, but negative "
                                    "padding leaves %" PRId64 " of %" PRId64,
                                    MAX(before, after), rest, size);
        }
        return STATUS_OK;
}

static Status mapped_pad_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        PadKind kind = *(const PadKind *)call->op->row;
        TensorMeta meta = *self;
        int64_t widths[PAD_CAP], numel;
        char text[256];
        int n = 0, n_empty = 0;
        TRY(arg_widths(call, widths, &n));
        int n_dims = n / 2;
        if (n_dims == 0 || n_dims > 3 || (self->rank != n_dims + 1 && self->rank != n_dims + 2))
                return fail(STATUS_VALUE,
                            "%s: Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                            "other non-zero dimensions for "
                            "input, but got: %s",
                            call->schema->name, n_dims + 1, n_dims + 2,
                            shape_text(self->rank, self->size, text, sizeof(text)));
        for (int i = 0; i < n_dims; i++) {
                int d = self->rank - 1 - i;
                TRY(check_mapped(call, kind, self->size[d], widths[2 * i], widths[2 * i + 1], d));
                if (self->size[d] == 0 && kind != PAD_CIRCULAR)
                        return fail(STATUS_VALUE,
                                    "%s: Expected a tensor with non-zero dimensions for input, but got: %s",
                                    call->schema->name,
                                    shape_text(self->rank, self->size, text, sizeof(text)));
                if (!add_i64(meta.size[d], widths[2 * i], &meta.size[d]) ||
                    !add_i64(meta.size[d], widths[2 * i + 1], &meta.size[d]))
                        return fail(STATUS_TOO_LARGE, "%s(): the result is too large", call->schema->name);
                if (meta.size[d] < 0)
                        return fail(STATUS_VALUE, "Trying to create tensor with negative dimension %" PRId64,
                                    meta.size[d]);
                n_empty += meta.size[d] == 0;
        }
        if (kind != PAD_CIRCULAR && n_empty == n_dims)
                return fail(STATUS_VALUE, "input (W: %" PRId64 ") is too small. Calculated output W: 0",
                            self->size[self->rank - 1]);
        TRY(shape_numel(meta.rank, meta.size, &numel));
        if (kind == PAD_CIRCULAR && numel > 0)
                TRY(check_wraps(self, widths, n));
        // circular padding always gives a contiguous result
        bool batched = self->rank == n_dims + 2 && n_dims > 1 && kind != PAD_CIRCULAR;
        TRY(view_set_strides(&meta, batched ? view_suggested_format(self) : MEMORY_FORMAT_CONTIGUOUS, self));
        return out_fresh(call, 0, &meta);
}

static int64_t mapped_index(PadKind kind, int64_t at, int64_t before, int64_t after, int64_t size)
{
        int64_t i = at - before;
        switch (kind) {
        case PAD_REPLICATE:
                return MIN(MAX(i, 0), size - 1);
        case PAD_CIRCULAR:
                // Negative widths crop before anything wraps.
                size -= MAX(-before, 0) + MAX(-after, 0);
                i = at - MAX(before, 0);
                return (i % size + size) % size + MAX(-before, 0);
        case PAD_REFLECT:
                break;
        }
        if (i < 0)
                i = -i;
        return i < size ? i : 2 * (size - 1) - i;
}

typedef struct MappedRow {
        const char *from;
        char *to;
        const int64_t *offsets; // bytes, per output column
        int64_t n, to_stride;
        int64_t first, stop; // columns that are one run on both sides
        int bytes;
} MappedRow;

static void copy_mapped_columns(const MappedRow *row, Work *work, int64_t begin, int64_t end)
{
        for (int64_t i = begin; i < end && !work_stops(work, 2); i++)
                memcpy(row->to + i * row->to_stride, row->from + row->offsets[i], (size_t)row->bytes);
}

static void copy_mapped_row(const MappedRow *row, Work *work)
{
        copy_mapped_columns(row, work, 0, row->first);
        for (int64_t at = row->first, end; (end = work_end(work, at, row->stop, 1)) > at; at = end)
                memcpy(row->to + at * row->bytes, row->from + row->offsets[at],
                       (size_t)((end - at) * row->bytes));
        copy_mapped_columns(row, work, row->stop, row->n);
}

// The columns from `first` on that follow each other on both sides.
static int64_t run_end(const RunContext *ctx, const MappedRow *row)
{
        Work work = { .ctx = ctx };
        int64_t stop = row->first;
        if (row->to_stride != row->bytes || stop >= row->n)
                return stop;
        for (stop++; stop < row->n && !work_stops(&work, 1); stop++) {
                if (row->offsets[stop] != row->offsets[stop - 1] + row->bytes)
                        break;
        }
        return stop;
}

typedef struct MappedJob {
        const RunContext *ctx;
        Region from, to;
        int64_t *offsets[MAX_RANK]; // bytes in the source per output index; one table per dimension
        MappedRow row;              // of all rows; from and to are set for each
} MappedJob;

// One row of the last dimension per step.
static void mapped_rows(void *argument, int64_t begin, int64_t end)
{
        const MappedJob *job = argument;
        const TensorMeta *to = &job->to.meta;
        int64_t bytes = dtype_info[to->dtype].bytes;
        int last = to->rank - 1;
        Work work = { .ctx = job->ctx };
        for (int64_t row = begin; row < end && !work.stops; row++) {
                int64_t left = row, from_offset = 0, to_offset = 0;
                for (int d = last - 1; d >= 0; d--) {
                        int64_t i = left % to->size[d];
                        left /= to->size[d];
                        from_offset += job->offsets[d][i];
                        to_offset += i * to->stride[d] * bytes;
                }
                MappedRow mapped = job->row;
                mapped.from = job->from.data + from_offset;
                mapped.to = job->to.data + to_offset;
                copy_mapped_row(&mapped, &work);
        }
}

// The dimensions, those that lie closest together in the result last.
static void by_closeness(const TensorMeta *to, int out_order[MAX_RANK])
{
        for (int d = 0; d < to->rank; d++) {
                int at = d;
                for (; at > 0 && to->stride[out_order[at - 1]] < to->stride[d]; at--)
                        out_order[at] = out_order[at - 1];
                out_order[at] = d;
        }
}

// Bytes in the source for each index of dimension `d` of the result.
static void map_dim(const RunContext *ctx, const OpRun *run, int d, const int64_t *widths, int n,
                    int64_t *out_offsets)
{
        PadKind kind = *(const PadKind *)run->call->op->row;
        const TensorMeta *from = run->in_meta[0], *to = run->out_meta[0];
        int side = to->rank - 1 - d;
        int64_t step = from->stride[d] * dtype_info[from->dtype].bytes;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < to->size[d] && !work_stops(&work, 8); i++)
                out_offsets[i] = step * (2 * side < n ? mapped_index(kind, i, widths[2 * side],
                                                                     widths[2 * side + 1], from->size[d])
                                                      : i);
}

static Status mapped_pad_run(const OpRun *run)
{
        MappedJob job = { .ctx = run->ctx,
                          .from = region_of(run->in_meta[0], run->in[0]),
                          .to = region_of(run->out_meta[0], run->out[0]) };
        const TensorMeta *given = run->out_meta[0];
        TensorMeta *to = &job.to.meta;
        int64_t widths[PAD_CAP], total = 0, numel = meta_numel(to);
        int n = 0, order[MAX_RANK], last = to->rank - 1, bytes = dtype_info[to->dtype].bytes;
        if (numel == 0)
                return STATUS_OK;
        TRY(arg_widths(run->call, widths, &n));
        for (int d = 0; d < to->rank; d++)
                total += to->size[d];
        _cleanup_(scratch_deinit) Scratch table = { 0 };
        TRY(scratch_init(&table, run->ctx, total, sizeof(int64_t)));
        int64_t *next = table.data;
        by_closeness(given, order);
        for (int d = 0; d < to->rank; d++) {
                to->size[d] = given->size[order[d]];
                to->stride[d] = given->stride[order[d]];
                map_dim(run->ctx, run, order[d], widths, n, next);
                job.offsets[d] = next;
                next += to->size[d];
        }
        TRY(run_poll(run->ctx));
        int64_t width = to->size[last];
        int side = given->rank - 1 - order[last];
        job.row = (MappedRow){ .offsets = job.offsets[last],
                               .n = width,
                               .to_stride = to->stride[last] * bytes,
                               .first = 2 * side < n ? MIN(MAX(widths[2 * side], 0), width) : 0,
                               .bytes = bytes };
        job.row.stop = run_end(run->ctx, &job.row);
        TRY(parallel_for(run->ctx, numel / width, MAX(16384 / width, 1), mapped_rows, &job));
        return run_poll(run->ctx);
}

// ---- pad ----
static Status pad_by_mode(Emitter *emitter, const OpCall *call, const char *mode, Value *out)
{
        static const char *const reflect[] = { "aten::reflection_pad1d", "aten::reflection_pad2d",
                                               "aten::reflection_pad3d" };
        static const char *const replicate[] = { "aten::replication_pad1d", "aten::replication_pad2d",
                                                 "aten::replication_pad3d" };
        int n = (int)MIN(arg_list_length(call, PAD_PAD), 4096u), rank = arg_meta(call, SELF)->rank;
        if (n % 2 != 0)
                return fail(STATUS_VALUE, "Padding length must be divisible by 2");
        if (n > 2 * rank)
                return fail(STATUS_VALUE,
                            "Padding length should be less than or equal to two times the input dimension "
                            "but got padding length %d and "
                            "input of dimension %d",
                            n, rank);
        double fill = 0; // a float even where an integer is given: -1 does not fit uint8 then
        if (!arg_is_none(call, PAD_VALUE))
                TRY(arg_double(call, PAD_VALUE, &fill));
        if (strcmp(mode, "constant") == 0)
                return EMIT(emitter, "aten::constant_pad_nd", out, arg_value(call, SELF),
                            arg_value(call, PAD_PAD), value_float(fill));
        bool is_reflect = strcmp(mode, "reflect") == 0, is_replicate = strcmp(mode, "replicate") == 0;
        if (!is_reflect && !is_replicate && strcmp(mode, "circular") != 0)
                return fail(STATUS_VALUE, "Unrecognised padding mode %s", mode);
        if (fill != 0)
                return fail(STATUS_VALUE, "Padding mode \"%s\" doesn't take in value argument", mode);
        int n_dims = n / 2;
        if (n_dims < 1 || n_dims > 3 || (rank != n_dims + 1 && rank != n_dims + 2))
                return fail(STATUS_VALUE,
                            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
        const char *name = is_reflect     ? reflect[n_dims - 1]
                           : is_replicate ? replicate[n_dims - 1]
                                          : "aten::_pad_circular";
        return EMIT(emitter, name, out, arg_value(call, SELF), arg_value(call, PAD_PAD));
}

static Status pad_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return pad_by_mode(emitter, call, arg_text(call, PAD_MODE), out);
}

static Status pad_enum_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const char *const modes[] = { "reflect", "replicate", "circular", "constant" };
        int64_t mode = 0;
        TRY(arg_int(call, PAD_MODE, &mode));
        if (mode < 0 || mode >= (int64_t)ARRAY_LENGTH(modes))
                return fail(STATUS_VALUE, "Unrecognised padding mode %" PRId64, mode);
        return pad_by_mode(emitter, call, modes[mode], out);
}

#define MAPPED_PAD(schema_, kind_, traits_)                                                                  \
        {                                                                                                    \
                .schema = "aten::" schema_, .dtypes = DTYPES_ALL & ~DTYPES_BOOL, .infer = mapped_pad_infer,  \
                .run = mapped_pad_run, .row = &(kind_), .traits = TRAIT_FRESH | (traits_)                    \
        }

const OpDef copy_pad_ops[] = {
        { "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
          .infer = constant_pad_infer, .run = constant_pad_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_PAD },
        MAPPED_PAD("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", pad_reflect, 0),
        MAPPED_PAD("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", pad_reflect, TRAIT_LAYOUT),
        MAPPED_PAD("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", pad_reflect, TRAIT_LAYOUT),
        MAPPED_PAD("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", pad_replicate, 0),
        MAPPED_PAD("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", pad_replicate,
                   TRAIT_LAYOUT),
        MAPPED_PAD("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", pad_replicate,
                   TRAIT_LAYOUT),
        { "aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor", .infer = mapped_pad_infer,
          .run = mapped_pad_run, .row = &pad_circular, .traits = TRAIT_FRESH },
        { "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
          .expand = pad_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
          .expand = pad_enum_expand, .traits = TRAIT_MAY_SHARE },
};
OP_FILE(copy_pad_ops);
