// SPDX-License-Identifier: Apache-2.0
// pool.c: max, average and adaptive pooling, one to three spatial dimensions. A row says which;
// infer and run read the same PoolArgs. One and three dimensional results are contiguous where
// PyTorch's are; two-dimensional ones keep channels_last.
#include "core/kernels/pool/pool.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include <stdio.h>
#include <string.h>

typedef enum PoolKind { POOL_MAX, POOL_AVERAGE, POOL_ADAPTIVE_MAX, POOL_ADAPTIVE_AVERAGE } PoolKind;

typedef struct PoolRow {
        PoolKind kind;
        int spatial;
        bool with_indices; // a second output
        bool keeps_channels_last;
} PoolRow;

typedef struct PoolArgs {
        int64_t kernel[3], stride[3], pad[3], dilation[3], divisor;
        bool ceil_mode, count_padding;
        int64_t out_size[3];
} PoolArgs;

static const char *const words[] = { "", "a single int", "a tuple of two ints", "a tuple of three ints" };

static Status pool_ints(const OpCall *call, int index, int spatial, const char *what, int64_t *out)
{
        int64_t given[16];
        int n;
        TRY(arg_ints(call, index, 16, given, &n));
        if (n != 1 && n != spatial)
                return fail(STATUS_VALUE, "%s: %s must either be a single int, or %s", call->schema->name,
                            what, words[spatial]);
        for (int i = 0; i < spatial; i++) {
                out[i] = given[n == 1 ? 0 : i];
                if (out[i] > INT32_MAX || out[i] < INT32_MIN)
                        return fail(STATUS_VALUE, "%s: %s %ld is out of range", call->schema->name, what,
                                    (long)out[i]);
        }
        return STATUS_OK;
}

static Status check_input(const OpCall *call, const PoolRow *row, const TensorMeta *input)
{
        char text[128];
        shape_text(input->rank, input->size, text, sizeof(text));
        if (input->rank != row->spatial + 1 && input->rank != row->spatial + 2) {
                if (row->kind == POOL_MAX && row->spatial > 1)
                        return fail(STATUS_SHAPE,
                                    "non-empty %dD or %dD (batch mode) tensor expected for input",
                                    row->spatial + 1, row->spatial + 2);
                if (row->spatial == 1 && (row->kind == POOL_AVERAGE || row->kind == POOL_ADAPTIVE_AVERAGE))
                        return fail(STATUS_SHAPE,
                                    "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument "
                                    "#1 'self' (while checking "
                                    "arguments for %s)",
                                    input->rank, call->schema->name);
                if (row->kind == POOL_MAX)
                        return fail(STATUS_SHAPE,
                                    "%s: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch "
                                    "size for input, but got:%s",
                                    call->schema->name, text);
                return fail(STATUS_SHAPE, "%s(): Expected %dD or %dD tensor, but got: %s", call->schema->name,
                            row->spatial + 1, row->spatial + 2, text);
        }
        const bool adaptive = row->kind > POOL_AVERAGE, batched = input->rank == row->spatial + 2;
        const bool flat_average = row->kind == POOL_ADAPTIVE_AVERAGE && row->spatial < 3;
        const bool channels = adaptive ? batched && !flat_average : true; // may not be 0 either
        for (int d = input->rank - row->spatial - channels; d < input->rank; d++) {
                if (input->size[d] != 0)
                        continue;
                if (row->kind <= POOL_AVERAGE)
                        return fail(STATUS_SHAPE,
                                    "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size "
                                    "for input, but got:%s",
                                    row->spatial + 1, row->spatial + 2, text);
                return fail(STATUS_SHAPE,
                            "%s(): Expected input to have non-zero size for non-batch dimensions, but input "
                            "has sizes %s with dimension %d "
                            "being empty",
                            call->schema->name, text, d);
        }
        return STATUS_OK;
}

static Status check_windows(const OpCall *call, const PoolRow *row, const PoolArgs *args)
{
        for (int i = 0; i < row->spatial; i++) {
                if (args->stride[i] == 0)
                        return fail(STATUS_VALUE, "stride should not be zero");
        }
        for (int i = 0; i < row->spatial; i++) {
                if (args->kernel[i] <= 0)
                        return fail(STATUS_VALUE, "kernel size should be greater than zero, but got %ld",
                                    (long)args->kernel[i]);
                if (args->stride[i] < 0)
                        return fail(STATUS_VALUE, "stride should be greater than zero, but got %ld",
                                    (long)args->stride[i]);
                if (args->dilation[i] <= 0)
                        return fail(STATUS_VALUE, "dilation should be greater than zero, but got %ld",
                                    (long)args->dilation[i]);
                if (args->pad[i] < 0)
                        return fail(STATUS_VALUE, "pad must be non-negative, but got pad: %ld",
                                    (long)args->pad[i]);
                int64_t effective = (args->kernel[i] - 1) * args->dilation[i] + 1;
                if (args->pad[i] <= effective / 2)
                        continue;
                if (row->spatial == 1 && row->kind == POOL_MAX && !row->with_indices)
                        return fail(STATUS_VALUE,
                                    "max_pool1d() padding should be at most half of kernel size, but got "
                                    "padding=%ld and kernel_size=%ld",
                                    (long)args->pad[i], (long)args->kernel[i]);
                return fail(STATUS_VALUE,
                            "pad should be at most half of effective kernel size, but got pad=%ld, "
                            "kernel_size=%ld and dilation=%ld",
                            (long)args->pad[i], (long)args->kernel[i], (long)args->dilation[i]);
        }
        (void)call;
        return STATUS_OK;
}

static void sizes_text(const int64_t *size, int64_t channels, int n, char out[96])
{
        int at = snprintf(out, 96, "%ld", (long)channels);
        for (int i = 0; i < n && at < 80; i++)
                at += snprintf(out + at, (size_t)(96 - at), "x%ld", (long)size[i]);
}

static Status strided_args(const OpCall *call, const PoolRow *row, const TensorMeta *input, PoolArgs *args)
{
        TRY(pool_ints(call, POOL_KERNEL_SIZE, row->spatial, "kernel_size", args->kernel));
        if (arg_list_length(call, POOL_STRIDE) == 0 &&
            (arg_is_none(call, POOL_STRIDE) || value_is_sequence(call->args[POOL_STRIDE])))
                memcpy(args->stride, args->kernel, sizeof(args->stride));
        else
                TRY(pool_ints(call, POOL_STRIDE, row->spatial, "stride", args->stride));
        TRY(pool_ints(call, POOL_PADDING, row->spatial, "padding", args->pad));
        for (int i = 0; i < 3; i++)
                args->dilation[i] = 1;
        if (row->kind == POOL_MAX) {
                TRY(pool_ints(call, MAX_POOL_DILATION, row->spatial, "dilation", args->dilation));
                args->ceil_mode = arg_bool(call, MAX_POOL_CEIL_MODE, false);
        } else {
                args->ceil_mode = arg_bool(call, AVG_POOL_CEIL_MODE, false);
                args->count_padding = arg_bool(call, AVG_POOL_COUNT_INCLUDE_PAD, true);
                if (row->spatial > 1 && !arg_is_none(call, AVG_POOL_DIVISOR_OVERRIDE)) {
                        TRY(arg_int(call, AVG_POOL_DIVISOR_OVERRIDE, &args->divisor));
                        if (args->divisor == 0)
                                return fail(STATUS_VALUE, "divisor must be not zero");
                }
        }
        TRY(check_windows(call, row, args));
        const int64_t *size = input->size + input->rank - row->spatial;
        bool small = false;
        for (int i = 0; i < row->spatial; i++) {
                args->out_size[i] = pool_output_size(size[i], args->kernel[i], args->stride[i], args->pad[i],
                                                     args->dilation[i], args->ceil_mode);
                small = small || args->out_size[i] < 1;
        }
        if (small && row->spatial == 1 && row->kind == POOL_MAX && !row->with_indices)
                return fail(STATUS_SHAPE, "max_pool1d() Invalid computed output size: %ld",
                            (long)args->out_size[0]);
        char in[96], out[96];
        if (small) {
                int64_t channels = input->size[input->rank - row->spatial - 1];
                sizes_text(size, channels, row->spatial, in);
                sizes_text(args->out_size, channels, row->spatial, out);
                return fail(STATUS_SHAPE,
                            "Given input size: (%s). Calculated output size: (%s). Output size is too small",
                            in, out);
        }
        return STATUS_OK;
}

static Status pool_args(const OpCall *call, PoolArgs *out_args)
{
        const PoolRow *row = call->op->row;
        const TensorMeta *input = arg_meta(call, SELF);
        PoolArgs args = { 0 };
        TRY(check_input(call, row, input));
        if (row->kind <= POOL_AVERAGE) {
                TRY(strided_args(call, row, input, &args));
        } else {
                int n;
                int64_t given[16];
                TRY(arg_ints(call, ADAPTIVE_POOL_OUTPUT_SIZE, 16, given, &n));
                if (n != row->spatial)
                        return fail(STATUS_VALUE, "%s: output_size must be %d", call->schema->name,
                                    row->spatial);
                for (int i = 0; i < n; i++) {
                        if (given[i] < 0)
                                return fail(STATUS_VALUE,
                                            "%s: elements of output_size must be greater than or equal to 0 "
                                            "but received %ld",
                                            call->schema->name, (long)given[i]);
                        args.out_size[i] = given[i];
                }
        }
        *out_args = args;
        return STATUS_OK;
}

// PyTorch pools lines as images of height 1, whose layout may then read as channels_last.
static void line_layout(const TensorMeta *input, TensorMeta *meta)
{
        TensorMeta image = *input;
        image.rank = 4;
        image.size[2] = 1;
        image.size[3] = input->size[2];
        image.stride[2] = input->size[2] * input->stride[2];
        image.stride[3] = input->stride[2];
        if (!meta_suggests_channels_last(&image))
                return;
        meta->stride[0] = meta->size[1] * meta->size[2];
        meta->stride[1] = 1;
        meta->stride[2] = meta->size[1];
}

static Status pool_infer(OpCall *call)
{
        const PoolRow *row = call->op->row;
        const TensorMeta *input = arg_meta(call, SELF);
        PoolArgs args;
        TRY(pool_args(call, &args));
        TensorMeta meta = *input;
        memcpy(meta.size + input->rank - row->spatial, args.out_size, (size_t)row->spatial * sizeof(int64_t));
        int64_t numel;
        TRY(shape_numel(meta.rank, meta.size, &numel));
        meta_set_contiguous(&meta);
        if (row->keeps_channels_last && input->rank == row->spatial + 2 && meta_suggests_channels_last(input))
                meta_set_channels_last(&meta);
        if (row->spatial == 1 && input->rank == 3 && (row->kind != POOL_MAX || row->with_indices))
                line_layout(input, &meta);
        TRY(out_fresh(call, 0, &meta));
        if (row->with_indices) {
                meta.dtype = DTYPE_I64;
                TRY(out_fresh(call, 1, &meta));
        }
        return STATUS_OK;
}

// ---- cost ----
// Most elements of a window along each axis of three.
static void window_sizes(const PoolRow *row, const PoolArgs *args, const int64_t *in_size, int64_t *out)
{
        for (int i = 0; i < 3; i++) {
                int from = i - (3 - row->spatial);
                out[i] = from < 0 ? 1
                         : row->kind <= POOL_AVERAGE
                                 ? MIN(args->kernel[from], in_size[from])
                                 : in_size[from] / MAX(args->out_size[from], (int64_t)1) + 1;
        }
}

// Counts as the kernels work. With indices, or in channels_last, every window is walked. Otherwise
// window rows are reduced to one line as wide as the input, then the line's columns.
static Cost pool_cost(const OpCall *call)
{
        const PoolRow *row = call->op->row;
        const TensorMeta *input = arg_meta(call, SELF), *out = &call->outs[0].meta;
        PoolArgs args;
        int64_t window[3], bytes = dtype_info[input->dtype].bytes, width = input->size[input->rank - 1],
                           out_width = out->size[out->rank - 1];
        if (pool_args(call, &args) != STATUS_OK || meta_numel(out) == 0)
                return (Cost){ 0 };
        window_sizes(row, &args, input->size + input->rank - row->spatial, window);
        int64_t lines = meta_numel(out) / out_width, rows = saturating_product(window[0], window[1]);
        bool walked = row->with_indices || (row->keeps_channels_last && meta_suggests_channels_last(input) &&
                                            saturating_product(rows, window[2]) <= POOL_LAST_WINDOW);
        int64_t of_line = walked ? saturating_product(saturating_product(out_width, window[2]), rows)
                                 : saturating_product(width, rows) + saturating_product(out_width, window[2]);
        return (Cost){ .flops = saturating_product(lines, MAX(of_line, (int64_t)0)),
                       .bytes = meta_numel(input) * bytes +
                                meta_numel(out) * (bytes + (row->with_indices ? 8 : 0)) };
}

// ---- run ----
// Windows of all three axes; *bounds owns their arrays.
static Status set_axes(const OpRun *run, const PoolRow *row, const PoolArgs *args, Pool *pool,
                       Scratch *bounds)
{
        const TensorMeta *input = run->in_meta[0];
        const int64_t *size = input->size + input->rank - row->spatial;
        int lead = 3 - row->spatial;
        int64_t total = 0;
        for (int i = 0; i < 3; i++) {
                pool->axis[i].in_size = i < lead ? 1 : size[i - lead];
                pool->axis[i].out_size = i < lead ? 1 : args->out_size[i - lead];
                total += pool->axis[i].out_size;
        }
        TRY(scratch_init(bounds, run->ctx, total, 3 * sizeof(int64_t)));
        int64_t *at = bounds->data;
        for (int i = 0; i < 3; i++) {
                PoolAxis *axis = &pool->axis[i];
                int from = i - lead;
                if (row->kind > POOL_AVERAGE || from < 0)
                        TRY(pool_adaptive_windows(run->ctx, axis, at));
                else
                        TRY(pool_windows(run->ctx, axis,
                                         &(PoolWindow){ args->kernel[from], args->stride[from],
                                                        args->pad[from], args->dilation[from],
                                                        args->count_padding },
                                         at));
                at += 3 * axis->out_size;
        }
        pool->planes = 1;
        for (int d = 0; d < input->rank - row->spatial; d++)
                pool->planes *= input->size[d];
        return STATUS_OK;
}

// PyTorch rounds three-dimensional adaptive averages of half types at every step, unless the output
// is one voxel: then it is a mean.
static bool steps_in_half(const OpRun *run, const PoolRow *row, const PoolArgs *args)
{
        Dtype dtype = run->in_meta[0]->dtype;
        if (row->kind != POOL_ADAPTIVE_AVERAGE || row->spatial != 3 ||
            (dtype != DTYPE_F16 && dtype != DTYPE_BF16))
                return false;
        return run->call->schema->name[0] == '_' || args->out_size[0] != 1 || args->out_size[1] != 1 ||
               args->out_size[2] != 1;
}

// Images whose channels lie side by side are pooled where they are, and volumes to their maxima,
// unless their windows are huge.
static bool is_channels_last(const OpRun *run, const PoolRow *row, const PoolArgs *args)
{
        const TensorMeta *in = run->in_meta[0], *out = run->out_meta[0];
        bool image = row->spatial == 2 && in->rank == 4,
             volume = row->spatial == 3 && in->rank == 5 && row->kind == POOL_MAX && in->dtype == DTYPE_F32,
             bytes = row->kind == POOL_MAX && (in->dtype == DTYPE_U8 || in->dtype == DTYPE_I8);
        if ((!image && !volume) || row->with_indices || (in->dtype != DTYPE_F32 && !bytes) ||
            !meta_is_channels_last(in))
                return false;
        int64_t window[3];
        window_sizes(row, args, in->size + 2, window);
        if (saturating_product(window[0] * window[1], window[2]) > POOL_LAST_WINDOW)
                return false;
        // Single pixels lie the same way in both layouts.
        return meta_is_channels_last(out) ||
               (image && out->size[2] == 1 && out->size[3] == 1 && meta_is_contiguous(out));
}

static Status pool_run(const OpRun *run)
{
        const PoolRow *row = run->call->op->row;
        PoolArgs args;
        TRY(pool_args(run->call, &args));
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        Pool pool = { .dtype = dtype_compute(run->in_meta[0]->dtype), .divisor = args.divisor };
        _cleanup_(scratch_deinit) Scratch bounds = { 0 };
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 }, indices = { 0 };
        TRY(set_axes(run, row, &args, &pool, &bounds));
        bool last = is_channels_last(run, row, &args);
        if (last && run->in_meta[0]->dtype != DTYPE_F32)
                return pool_bytes_channels_last(run->ctx, &pool, run->in_meta[0]->dtype == DTYPE_I8,
                                                run->in_meta[0]->size[1], run->in[0], run->out[0]);
        if (last)
                return pool_channels_last(run->ctx, &pool,
                                          row->kind == POOL_AVERAGE || row->kind == POOL_ADAPTIVE_AVERAGE,
                                          run->in_meta[0]->size[1], run->in[0], run->out[0]);
        TRY(dense_init(&in, run->ctx, run->in[0], run->in_meta[0], pool.dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], pool.dtype));
        if (row->with_indices)
                TRY(dense_out_init(&indices, run->ctx, run->out[1], run->out_meta[1], DTYPE_I64));
        if (row->kind == POOL_MAX || row->kind == POOL_ADAPTIVE_MAX)
                TRY(pool_max(run->ctx, &pool, in.data, out.data, indices.data));
        else if (steps_in_half(run, row, &args))
                TRY(pool_average_stepwise(run->ctx, &pool, run->in_meta[0]->dtype, in.data, out.data));
        else
                TRY(pool_average(run->ctx, &pool, in.data, out.data));
        TRY(dense_out_store(&out));
        TRY(dense_out_store(&indices));
        return STATUS_OK;
}

enum { MAX_DTYPES = DTYPES_INTS | DTYPES_FLOATS, AVERAGE_DTYPES = 1u << DTYPE_I64 | DTYPES_FLOATS };
static const PoolRow max_1d = { POOL_MAX, 1, false, false }, max_2d = { POOL_MAX, 2, false, true },
                     max_3d = { POOL_MAX, 3, false, true }, max_1d_indices = { POOL_MAX, 1, true, false },
                     max_2d_indices = { POOL_MAX, 2, true, true },
                     max_3d_indices = { POOL_MAX, 3, true, true },
                     average_1d = { POOL_AVERAGE, 1, false, false },
                     average_2d = { POOL_AVERAGE, 2, false, true },
                     average_3d = { POOL_AVERAGE, 3, false, false },
                     adaptive_average_1d = { POOL_ADAPTIVE_AVERAGE, 1, false, false },
                     adaptive_average_2d = { POOL_ADAPTIVE_AVERAGE, 2, false, true },
                     adaptive_average_3d = { POOL_ADAPTIVE_AVERAGE, 3, false, false },
                     adaptive_max_1d = { POOL_ADAPTIVE_MAX, 1, true, false },
                     adaptive_max_2d = { POOL_ADAPTIVE_MAX, 2, true, true },
                     adaptive_max_3d = { POOL_ADAPTIVE_MAX, 3, true, false };
// PyTorch pools to one element by a mean, which takes any number of leading dimensions and empty
// images.
static Status mean_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const int64_t last[] = { -1, -2, -3 };
        const PoolRow *row = call->op->row;
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::mean.dim", NAMED(&c, "self"), compose_ints(&c, last, row->spatial),
                              value_bool(true)),
                           out);
}

static OpExpand mean_form(const OpCall *call)
{
        const PoolRow *row = call->op->row;
        const TensorMeta *input = arg_meta(call, SELF);
        int64_t size[16];
        int n;
        if (arg_ints(call, ADAPTIVE_POOL_OUTPUT_SIZE, 16, size, &n) != STATUS_OK || n != row->spatial)
                return NULL;
        for (int i = 0; i < n; i++)
                if (size[i] != 1)
                        return NULL;
        const bool usual = input->rank == row->spatial + 1 || input->rank == row->spatial + 2;
        return usual && meta_numel(input) != 0 ? NULL : mean_expand;
}

#define POOL_OP(schema, dtypes, row_, traits_)                                                               \
        {                                                                                                    \
                schema, dtypes, .infer = pool_infer, .run = pool_run, .cost = pool_cost, .row = &(row_),     \
                                .traits = TRAIT_FRESH | (traits_)                                            \
        }

#define POOL_OR_MEAN(schema, row_, traits_)                                                                  \
        {                                                                                                    \
                schema, DTYPES_FLOATS, .infer = pool_infer, .run = pool_run, .form = mean_form,              \
                                       .cost = pool_cost, .row = &(row_), .traits = TRAIT_FRESH | (traits_)  \
        }

const OpDef pool_ops[] = {
        POOL_OP("aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
                "int[1] dilation=[1], bool "
                "ceil_mode=False) -> Tensor",
                DTYPES_FLOATS, max_1d, 0),
        { .schema = "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
                    "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
          .dtypes = MAX_DTYPES,
          .infer = pool_infer,
          .run = pool_run,
          .cost = pool_cost,
          .row = &max_2d,
          .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_MAX_POOL },
        POOL_OP("aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
                "int[3] dilation=1, bool "
                "ceil_mode=False) -> Tensor",
                MAX_DTYPES, max_3d, TRAIT_LAYOUT),
        POOL_OP("aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
                "padding=[0], int[1] dilation=[1], "
                "bool ceil_mode=False) -> "
                "(Tensor, Tensor)",
                MAX_DTYPES, max_1d_indices, 0),
        POOL_OP("aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
                "padding=0, int[2] dilation=1, "
                "bool ceil_mode=False) -> "
                "(Tensor, Tensor)",
                MAX_DTYPES, max_2d_indices, TRAIT_LAYOUT),
        POOL_OP("aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
                "padding=0, int[3] dilation=1, "
                "bool ceil_mode=False) -> "
                "(Tensor, Tensor)",
                MAX_DTYPES, max_3d_indices, TRAIT_LAYOUT),
        POOL_OP("aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
                "bool ceil_mode=False, bool "
                "count_include_pad=True) -> Tensor",
                AVERAGE_DTYPES, average_1d, 0),
        POOL_OP("aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
                "ceil_mode=False, bool "
                "count_include_pad=True, int? "
                "divisor_override=None) -> Tensor",
                AVERAGE_DTYPES, average_2d, TRAIT_LAYOUT),
        POOL_OP("aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
                "ceil_mode=False, bool "
                "count_include_pad=True, int? "
                "divisor_override=None) -> Tensor",
                AVERAGE_DTYPES & ~DTYPES_HALFS, average_3d, 0),
        POOL_OP("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", DTYPES_FLOATS,
                adaptive_average_1d, 0),
        POOL_OR_MEAN("aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                     adaptive_average_2d, TRAIT_LAYOUT),
        POOL_OP("aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", DTYPES_FLOATS,
                adaptive_average_2d, TRAIT_LAYOUT),
        POOL_OR_MEAN("aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
                     adaptive_average_3d, 0),
        POOL_OP("aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", DTYPES_FLOATS,
                adaptive_average_3d, 0),
        POOL_OP("aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
                DTYPES_FLOATS, adaptive_max_1d, 0),
        POOL_OP("aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
                DTYPES_FLOATS, adaptive_max_2d, 0),
        POOL_OP("aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
                DTYPES_FLOATS, adaptive_max_3d, 0),
};
OP_FILE(pool_ops);
