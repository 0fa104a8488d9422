// SPDX-License-Identifier: Apache-2.0
// ctc.c: ctc_loss. Lengths are integers or tensors of them; the kernel takes tensors.
#include <inttypes.h>
#include <math.h>
#include "core/kernels/dense.h"
#include "core/kernels/reduce/ctc.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

enum { MAX_LENGTHS = 1024 };
#define CHECKING "(while checking arguments for ctc_loss_allocate_outputs)"

// ---- the kernel ----
static Status ctc_infer(OpCall *call)
{
        const TensorMeta *probs = arg_meta(call, SELF), *targets = arg_meta(call, CTC_TARGETS);
        int64_t blank = 0;
        TRY(arg_int(call, CTC_BLANK, &blank));
        if (probs->rank != 3)
                return fail(STATUS_SHAPE,
                            "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument #1 "
                            "'log_probs' " CHECKING,
                            probs->rank);
        if (targets->rank < 1 || targets->rank > 2)
                return fail(STATUS_SHAPE,
                            "Expected 1 to 2 dimensions, but got %d-dimensional tensor for argument #2 "
                            "'targets' " CHECKING,
                            targets->rank);
        if (probs->dtype != DTYPE_F32 && probs->dtype != DTYPE_F64)
                return fail(STATUS_DTYPE, "\"ctc_loss_cpu\" not implemented for '%s'",
                            dtype_words(probs->dtype));
        if (blank < 0 || blank >= probs->size[2])
                return fail(STATUS_VALUE, "blank must be in label range");
        for (int i = CTC_INPUT_LENGTHS; i <= CTC_TARGET_LENGTHS; i++) {
                const TensorMeta *lengths = arg_meta(call, i);
                if (meta_numel(lengths) != probs->size[1])
                        return fail(STATUS_SHAPE, "%s must be of size batch_size",
                                    call->schema->args[i].name);
        }
        if (targets->rank == 2 && targets->size[0] != probs->size[1])
                return fail(STATUS_SHAPE,
                            "Expected tensor to have size %" PRId64 " at dimension 0, but got size %" PRId64
                            " for argument #2 'targets' " CHECKING,
                            probs->size[1], targets->size[0]);
        TensorMeta meta;
        meta_init(&meta, probs->dtype, 1, &probs->size[1]);
        return out_fresh(call, 0, &meta);
}

static Status check_lengths(const Ctc *ctc, const TensorMeta *targets)
{
        int64_t sum = 0, longest = 0;
        for (int64_t i = 0; i < ctc->meta->size[1]; i++) {
                const int64_t input = ctc->input_lengths[i], n = ctc->target_lengths[i];
                if (n < 0)
                        return fail(STATUS_VALUE,
                                    "Expected target_lengths to have value at least 0, but got value %" PRId64
                                    " " CHECKING,
                                    n);
                if (input < 0 || input > ctc->meta->size[0])
                        return fail(STATUS_VALUE,
                                    "Expected input_lengths to have value at %s %" PRId64
                                    ", but got value %" PRId64 " " CHECKING,
                                    input < 0 ? "least" : "most", input < 0 ? 0 : ctc->meta->size[0], input);
                sum = n > INT64_MAX - sum ? INT64_MAX : sum + n;
                longest = MAX(longest, n);
        }
        if (targets->rank == 1 && targets->size[0] != sum)
                return fail(STATUS_SHAPE,
                            "Expected tensor to have size %" PRId64 " at dimension 0, but got size %" PRId64
                            " for argument #2 'targets' " CHECKING,
                            sum, targets->size[0]);
        if (targets->rank == 2 && targets->size[1] < longest)
                return fail(STATUS_SHAPE,
                            "Expected tensor to have size at least %" PRId64
                            " at dimension 1, but got size %" PRId64 " for argument #2 'targets' " CHECKING,
                            longest, targets->size[1]);
        return STATUS_OK;
}

// PyTorch reads beyond the classes; labels behind a sequence's end are not read.
static Status check_labels(const OpRun *run, const Ctc *ctc)
{
        Work work = { .ctx = run->ctx };
        int64_t from = 0;
        for (int64_t i = 0; i < ctc->meta->size[1]; i++) {
                from = ctc->target_stride < 0 ? from : i * ctc->target_stride;
                for (int64_t end = from + ctc->target_lengths[i]; from < end && !work_stops(&work, 1);
                     from++) {
                        const int64_t label = ctc->targets[from];
                        if (label < 0 || label >= ctc->meta->size[2])
                                return fail(STATUS_VALUE,
                                            "ctc_loss: label %" PRId64 " is none of the %" PRId64 " classes",
                                            label, ctc->meta->size[2]);
                }
        }
        return run_poll(run->ctx);
}

static Status ctc_op_run(const OpRun *run)
{
        const TensorMeta *targets = run->in_meta[CTC_TARGETS];
        _cleanup_(dense_deinit) Dense labels = { 0 }, inputs = { 0 }, lengths = { 0 };
        TRY(dense_init(&labels, run->ctx, run->in[CTC_TARGETS], targets, DTYPE_I64));
        TRY(dense_init(&inputs, run->ctx, run->in[CTC_INPUT_LENGTHS], run->in_meta[CTC_INPUT_LENGTHS],
                       DTYPE_I64));
        TRY(dense_init(&lengths, run->ctx, run->in[CTC_TARGET_LENGTHS], run->in_meta[CTC_TARGET_LENGTHS],
                       DTYPE_I64));
        Ctc ctc = { .meta = run->in_meta[SELF],
                    .log_probs = run->in[SELF],
                    .input_lengths = inputs.data,
                    .target_lengths = lengths.data,
                    .targets = labels.data,
                    .target_stride = targets->rank == 1 ? -1 : targets->size[1],
                    .out = run->out[0] };
        TRY(arg_int(run->call, CTC_BLANK, &ctc.blank));
        TRY(check_lengths(&ctc, targets));
        TRY(check_labels(run, &ctc));
        return ctc_run(run->ctx, &ctc);
}

static Cost ctc_cost(const OpCall *call)
{
        const TensorMeta *probs = arg_meta(call, SELF);
        const int64_t labels = meta_numel(arg_meta(call, CTC_TARGETS));
        const int64_t places = labels > INT64_MAX / 4 ? INT64_MAX : 2 * labels + probs->size[1];
        return (Cost){ .flops = saturating_product(saturating_product(probs->size[0], places), 64),
                       .bytes = saturating_product(meta_numel(probs), dtype_info[probs->dtype].bytes) };
}

// ---- a list of integers as a tensor ----
static Status lengths_infer(OpCall *call)
{
        const int64_t n = arg_list_length(call, SELF);
        TensorMeta meta;
        if (n > MAX_LENGTHS)
                return fail(STATUS_UNSUPPORTED, "ctc_loss: more than %d lengths in a list: give a tensor",
                            MAX_LENGTHS);
        meta_init(&meta, DTYPE_I64, 1, &n);
        return out_fresh(call, 0, &meta);
}

static Status lengths_run(const OpRun *run)
{
        int n;
        return arg_ints(run->call, SELF, MAX_LENGTHS, run->out[0], &n);
}

// ---- the loss ----
static Value as_lengths(Compose *c, const char *name)
{
        Value given = NAMED(c, name);
        if (compose_failed(c) || given.kind != VALUE_TENSOR)
                return OP(c, "fxserve::lengths", given);
        if (!dtype_is_int(compose_meta(c, given)->dtype))
                compose_check(c, fail(STATUS_DTYPE, "%s must be integral", name));
        return given;
}

static Status ctc_loss_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };
        Compose c;
        compose_begin(&c, emitter, call);
        Value probs = NAMED(&c, "log_probs"), inputs = as_lengths(&c, "input_lengths"),
              lengths = as_lengths(&c, "target_lengths");
        const bool is_one = compose_meta(&c, probs)->rank != 3;
        const Dtype dtype = compose_meta(&c, probs)->dtype;
        const int64_t reduction = compose_int(&c, "reduction");
        Value loss = OP(&c, "fxserve::ctc", is_one ? OP(&c, "aten::unsqueeze", probs, value_int(1)) : probs,
                        compose_cast(&c, NAMED(&c, "targets"), DTYPE_I64), inputs, lengths,
                        value_int(compose_int(&c, "blank")));
        if (compose_bool(&c, "zero_infinity"))
                loss = OP(&c, "aten::masked_fill.Scalar", loss,
                          OP(&c, "aten::eq.Scalar", loss, value_float(INFINITY)), value_int(0));
        if (reduction == REDUCTION_MEAN) {
                Value sizes = compose_cast(&c, OP(&c, "aten::clamp_min", lengths, value_int(1)), dtype);
                loss = OP(&c, "aten::mean", OP(&c, "aten::div.Tensor", loss, sizes));
        } else if (reduction == REDUCTION_SUM) {
                loss = OP(&c, "aten::sum", loss);
        } else if (is_one) {
                loss = OP(&c, "aten::squeeze.dim", loss, value_int(0));
        }
        return compose_end(&c, loss, out);
}

#define LOSS(name, lengths)                                                                                  \
        {                                                                                                    \
                "aten::ctc_loss." name "(Tensor log_probs, Tensor targets, " lengths                         \
                " input_lengths, " lengths                                                                   \
                " target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",        \
                        0, .expand = ctc_loss_expand, .traits = TRAIT_FRESH                                  \
        }
const OpDef ctc_ops[] = {
        LOSS("IntList", "int[]"),
        LOSS("Tensor", "Tensor"),
        { "fxserve::ctc(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
          "blank) -> Tensor",
          0, OP_HIDDEN | OP_INTERNAL | OP_CHECKS, .infer = ctc_infer, .run = ctc_op_run, .cost = ctc_cost,
          .traits = TRAIT_FRESH },
        { "fxserve::lengths(int[] items) -> Tensor", 0, OP_HIDDEN | OP_INTERNAL, .infer = lengths_infer,
          .run = lengths_run, .traits = TRAIT_FRESH },
};
OP_FILE(ctc_ops);
