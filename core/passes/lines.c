// SPDX-License-Identifier: Apache-2.0
// lines.c: lines [N, C, L] become images of one row [N, C, 1, L]. Match: a 1-d convolution with a
// constant weight, then calls that compute each element, each channel or a concatenation of what
// it gives. Rewrite: the same call, or the 2-d convolution, on images; the line is a view of its
// result. Later passes and kernels know images alone.
#include "core/passes/passes.h"
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/ops/lines.h"
#include "core/ops/resample.h"
#include "core/passes/rewrite.h"

typedef struct Lines {
        Recording *recording;
        RecordedCall *at;  // the call that is looked at: others go in front of it
        Recorded **images; // by value: the same elements with a row dimension; NULL: none yet
        Recorded **rows;   // by value: likewise, contiguous
        uint32_t n_values;
} Lines;

// ---- views and copies ----
// Takes the arguments.
static Status insert(const Lines *lines, const Overload *overload, Value *take_args, Recorded *to,
                     Recorded **out_value)
{
        RecordedCall *made, *stands_for = lines->at;
        NewCall new_call = { .overload = overload,
                             .take_args = take_args,
                             .given = overload == stands_for->overload ? stands_for->call.given : 0,
                             .outs = to == NULL ? NULL : &to,
                             .n_outs = 1,
                             .stands_for = &stands_for,
                             .n_stands_for = 1 };
        TRY(recording_insert(lines->recording, lines->at, &new_call, &made));
        *out_value = made == NULL ? NULL : made->outs[0];
        return STATUS_OK;
}

static Status insert_view(const Lines *lines, LineRow row, const Recorded *from, int64_t dim, Recorded *to,
                          Recorded **out_value)
{
        Value args[] = { rewrite_tensor(from), value_int(dim) };
        TRY(insert(lines, line_row(row), args, to, out_value));
        return *out_value != NULL ? STATUS_OK : fail(STATUS_INTERNAL, "a line cannot be seen as an image");
}

// The value with a dimension of size 1 in front of its last one.
static Status image_of(const Lines *lines, Recorded *value, Recorded **out_image)
{
        Recorded **known = value->index < lines->n_values ? &lines->images[value->index] : NULL;
        if (known != NULL && *known != NULL) {
                *out_image = *known;
                return STATUS_OK;
        }
        TRY(insert_view(lines, LINE_TO_IMAGE, value, value->tensor.meta.rank - 1, NULL, out_image));
        if (known != NULL)
                *known = *out_image;
        return STATUS_OK;
}

// PyTorch copies lines whose places do not lie together before it convolves them.
static Status contiguous_image_of(const Lines *lines, Recorded *value, Recorded **out_image)
{
        Recorded *image;
        TRY(image_of(lines, value, &image));
        *out_image = image;
        if (meta_is_contiguous(&value->tensor.meta))
                return STATUS_OK;
        Recorded **known = value->index < lines->n_values ? &lines->rows[value->index] : NULL;
        if (known != NULL && *known != NULL) {
                *out_image = *known;
                return STATUS_OK;
        }
        Value args[] = { rewrite_tensor(image),
                         { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS } };
        TRY(insert(lines, op_for(ROLE_CLONE), args, NULL, out_image));
        if (*out_image == NULL)
                return fail(STATUS_INTERNAL, "an image cannot be copied");
        if (known != NULL && !recorded_buffer(value)->written)
                *known = *out_image;
        return STATUS_OK;
}

// Puts the call on images in the place of the one that is looked at, whose result becomes a view.
// Declined where the result would lie otherwise. Takes the arguments.
static Status replace(const Lines *lines, const Overload *overload, Value *take_args)
{
        RecordedCall *old = lines->at;
        Recorded *line = old->outs[0], *image, *made;
        TensorMeta meta = meta_line_as_image(&line->tensor.meta);
        Status status =
                recording_add_value(lines->recording, FROM_CALL, line->tensor.storage, &meta, 0, &image);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < overload->schema.n_args; i++)
                        value_unref(take_args[i]);
                return status;
        }
        TRY(insert(lines, overload, take_args, image, &made));
        if (made == NULL)
                return STATUS_OK;
        recorded_buffer(line)->base = image;
        lines->images[line->index] = image;
        old->removed = true;
        return insert_view(lines, LINE_FROM_IMAGE, image, 2, line, &made);
}

// ---- convolutions ----
static bool is_line_conv(const RecordedCall *call, ConvArgs *out_args)
{
        OpRole role = op_role(&call->call);
        const Recorded *input = rewrite_arg(call, SELF), *weight = rewrite_arg(call, CONV_WEIGHT);
        return (role == ROLE_CONV || role == ROLE_FUSED_CONV) && input != NULL && weight != NULL &&
               input->tensor.meta.rank == 3 && weight->tensor.meta.rank == 3 &&
               recorded_is_constant(weight) && !recorded_is_constant(input) &&
               (is_packed_type(&input->tensor.meta) || is_half_type(&input->tensor.meta)) &&
               conv_args(&call->call, out_args) == STATUS_OK && out_args->batched;
}

static Status pair(int64_t rows, int64_t columns, Value *out)
{
        return value_ints_new(VALUE_LIST, (int64_t[]){ rows, columns }, 2, out);
}

// Fills all arguments behind the bias; on failure the remaining ones are None.
static Status plain_arguments(const ConvArgs *args, Value *out)
{
        TRY(pair(1, args->stride[0], &out[CONV_STRIDE]));
        TRY(pair(0, args->padding[0], &out[CONV_PADDING]));
        if (args->transposed) {
                TRY(pair(0, args->output_padding[0], &out[TRANSPOSED_OUTPUT_PADDING]));
                out[TRANSPOSED_GROUPS] = value_int(args->groups);
                return pair(1, args->dilation[0], &out[TRANSPOSED_DILATION]);
        }
        TRY(pair(1, args->dilation[0], &out[CONV_DILATION]));
        out[CONV_GROUPS] = value_int(args->groups);
        return STATUS_OK;
}

// The same numbers for two dimensions.
static ConvArgs image_args(const ConvArgs *line)
{
        ConvArgs args = *line;
        args.spatial = 2;
        args.stride[1] = line->stride[0];
        args.dilation[1] = line->dilation[0];
        args.padding[1] = line->padding[0];
        args.padding_after[1] = line->padding_after[0];
        args.stride[0] = args.dilation[0] = 1;
        args.padding[0] = args.padding_after[0] = 0;
        return args;
}

static Status conv_values(const Lines *lines, const ConvArgs *args, bool fused, Value *out)
{
        const RecordedCall *call = lines->at;
        Recorded *image, *weight;
        const ConvArgs images = image_args(args);
        TRY(contiguous_image_of(lines, rewrite_arg(call, SELF), &image));
        TRY(image_of(lines, rewrite_arg(call, CONV_WEIGHT), &weight));
        if (fused) {
                TRY(rewrite_fused_conv(call, &images, out));
                value_unref(out[SELF]);
                value_unref(out[CONV_WEIGHT]);
        } else {
                TRY(plain_arguments(args, out));
                out[CONV_BIAS] = value_ref(call->call.args[CONV_BIAS]);
        }
        out[SELF] = rewrite_tensor(image);
        out[CONV_WEIGHT] = rewrite_tensor(weight);
        return STATUS_OK;
}

static Status convolve(const Lines *lines, const ConvArgs *args)
{
        bool uneven = args->padding[0] != args->padding_after[0],
             fused = uneven || op_role(&lines->at->call) == ROLE_FUSED_CONV;
        const Overload *overload = fused              ? op_for(ROLE_FUSED_CONV)
                                   : args->transposed ? line_row(LINE_CONV_TRANSPOSED)
                                                      : line_row(LINE_CONV);
        Value values[SCHEMA_MAX_ARGS] = { 0 };
        if (uneven && !is_packed_type(&lines->at->outs[0]->tensor.meta))
                return STATUS_OK; // halves have no fused convolution
        Status status = conv_values(lines, args, fused, values);
        if (status == STATUS_OK)
                return replace(lines, overload, values);
        for (uint32_t i = 0; i < overload->schema.n_args; i++)
                value_unref(values[i]);
        return status;
}

// ---- calls that go along ----
typedef struct Operands {
        const Lines *lines;
        bool computed; // some line is computed as an image
} Operands;

static Status look_for_image(void *context, Recorded *value)
{
        Operands *operands = context;
        const Recorded *image = value == NULL || value->index >= operands->lines->n_values
                                        ? NULL
                                        : operands->lines->images[value->index];
        operands->computed |= image != NULL && image->from == FROM_CALL && image->call->computes;
        return STATUS_OK;
}

static bool pads_places(const RecordedCall *call)
{
        int64_t width[2 * MAX_RANK];
        int n;
        return op_role(&call->call) == ROLE_PAD &&
               arg_ints(&call->call, PADDING_WIDTHS, 2 * MAX_RANK, width, &n) == STATUS_OK && n == 2;
}

static bool has_dim(const RecordedCall *call)
{
        return op_role(&call->call) == ROLE_CAT || op_role(&call->call) == ROLE_GLU;
}

// Whether some line that it reads is computed as an image.
static bool reads_image(const Lines *lines, const RecordedCall *call)
{
        Operands operands = { .lines = lines };
        (void)recorded_visit_inputs(call, look_for_image, &operands);
        return operands.computed;
}

static bool goes_along(const RecordedCall *call)
{
        bool each = (call->call.op->flags & OP_ELEMENTWISE) != 0 &&
                    (op_has(&call->call, TRAIT_LAYOUT) || op_has(&call->call, TRAIT_LAYOUT_NEAR));
        return each || op_role(&call->call) == ROLE_BATCH_NORM_EVAL || has_dim(call) || pads_places(call);
}

static Status take_image(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind == VALUE_TENSOR && leaf->tensor->meta.rank >= 2) {
                Recorded *image;
                TRY(image_of(context, recorded_of(leaf->tensor), &image));
                out->tensor = &image->tensor;
        }
        value_ref(*out);
        return STATUS_OK;
}

// Dimensions are counted from the end where the new one is not among them.
static void renumber_dim(const RecordedCall *call, Value *args)
{
        int64_t dim;
        int at = op_role(&call->call) == ROLE_GLU ? GLU_DIM : CAT_DIM;
        if (has_dim(call) && arg_int(&call->call, at, &dim) == STATUS_OK)
                args[at] = value_int(dim == 2 ? 3 : dim < -1 ? dim - 1 : dim);
}

static Status run_on_images(const Lines *lines)
{
        const RecordedCall *call = lines->at;
        Value args[SCHEMA_MAX_ARGS] = { 0 };
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < call->call.n_args && status == STATUS_OK; i++)
                status = value_map(call->call.args[i], take_image, (void *)(uintptr_t)lines, &args[i]);
        if (status == STATUS_OK) {
                renumber_dim(call, args);
                return replace(lines, call->overload, args);
        }
        for (uint32_t i = 0; i < call->call.n_args; i++)
                value_unref(args[i]);
        return status;
}

// ---- operators that have a row for images ----
// A list of another length, None among them, stays as it is.
static Status widen_list(Value list, int kind, Value *out)
{
        bool alone = list.kind == VALUE_INT || list.kind == VALUE_FLOAT;
        uint32_t n = value_is_sequence(list) ? list.seq->n : alone, n_row = kind == LIST_PAIRS ? 2 : 1;
        Seq *seq;
        *out = value_ref(list);
        if (n != n_row)
                return STATUS_OK;
        const Value *items = alone ? &list : list.seq->items;
        TRY(seq_new(2 * n_row, &seq));
        Value row =
                items[0].kind == VALUE_FLOAT ? value_float(kind == LIST_ONE) : value_int(kind == LIST_ONE);
        for (uint32_t i = 0; i < n_row; i++) {
                seq->items[kind == LIST_PAIRS ? i : n_row + i] = value_ref(items[i]);
                seq->items[kind == LIST_PAIRS ? n_row + i : i] = row;
        }
        value_unref(*out);
        *out = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

static Status replace_by(const Lines *lines, const LineOp *op)
{
        const RecordedCall *call = lines->at;
        const Overload *overload = op_find(op->image);
        Value args[SCHEMA_MAX_ARGS] = { 0 };
        Recorded *image;
        TRY(image_of(lines, rewrite_arg(call, SELF), &image));
        args[SELF] = rewrite_tensor(image);
        Status status = STATUS_OK;
        for (uint32_t i = 1; i < call->call.n_args && status == STATUS_OK; i++) {
                int list = i < ARRAY_LENGTH(op->list) ? op->list[i] : LIST_AS_IT_IS;
                if (list == LIST_AS_IT_IS)
                        args[i] = value_ref(call->call.args[i]);
                else
                        status = widen_list(call->call.args[i], list, &args[i]);
        }
        if (status == STATUS_OK)
                return replace(lines, overload, args);
        for (uint32_t i = 0; i < overload->schema.n_args; i++)
                value_unref(args[i]);
        return status;
}

static Status go_along(const Lines *lines)
{
        const LineOp *op = line_op(lines->at->overload);
        if (op_role(&lines->at->call) == ROLE_RESAMPLE && !resample_reads_the_same(&lines->at->call))
                return STATUS_OK;
        if (op != NULL)
                return replace_by(lines, op);
        return goes_along(lines->at) ? run_on_images(lines) : STATUS_OK;
}

// ---- the calls in order ----
static bool makes_line(const Lines *lines, const RecordedCall *call)
{
        const Recorded *out = call->call.n_outs == 1 ? call->outs[0] : NULL;
        return !call->removed && !call->call.inplace && call->computes && out != NULL && out->call == call &&
               out->index < lines->n_values && out->tensor.meta.rank == 3 && !recorded_is_constant(out) &&
               recorded_buffer(out)->kind == BUFFER_RUN && !recorded_buffer(out)->written &&
               meta_numel(&out->tensor.meta) > 0 && call_is_movable(call) &&
               (call->call.op->flags & (OP_EFFECT | OP_RANDOM)) == 0;
}

Status pass_see_lines(Recording *recording, PassContext *context)
{
        _cleanup_(freep) Recorded **images = new_array(recording->n_values, sizeof(Recorded *));
        _cleanup_(freep) Recorded **rows = new_array(recording->n_values, sizeof(Recorded *));
        if (images == NULL || rows == NULL)
                return fail_memory();
        Lines lines = { recording, NULL, images, rows, recording->n_values };
        uint32_t n = recording->n_calls;
        for (uint32_t i = 0; i < n; i++) {
                ConvArgs args;
                lines.at = recording->calls[i];
                if (!makes_line(&lines, lines.at))
                        continue;
                TRY(run_poll(context->poll));
                if (is_line_conv(lines.at, &args))
                        TRY(convolve(&lines, &args));
                else if (reads_image(&lines, lines.at))
                        TRY(go_along(&lines));
        }
        recording_compact(recording);
        return STATUS_OK;
}
