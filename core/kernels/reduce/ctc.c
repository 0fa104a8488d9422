// SPDX-License-Identifier: Apache-2.0
// ctc.c: Graves' forward recursion in logarithms, one row of 2 * labels + 1 places per sequence: a
// blank, a label, a blank ... Only the row of the current step is kept.
#include "core/kernels/reduce/ctc.h"

#include <math.h>
#include "core/kernels/dense.h"

typedef struct Sequence {
        const int64_t *labels;
        int64_t n_labels, blank;
} Sequence;

static int64_t label_at(const Sequence *s, int64_t at)
{
        return at % 2 == 0 ? s->blank : s->labels[at / 2];
}

#define T       float
#define EXP     expf
#define LOG     logf
#define NAME(x) x##_f32
#include "core/kernels/reduce/ctc.inc"
#undef T
#undef EXP
#undef LOG
#undef NAME
#define T       double
#define EXP     exp
#define LOG     log
#define NAME(x) x##_f64
#include "core/kernels/reduce/ctc.inc"

Status ctc_run(const RunContext *ctx, const Ctc *ctc)
{
        const int64_t n = ctc->meta->size[1];
        int64_t longest = 0, from = 0;
        for (int64_t i = 0; i < n; i++)
                longest = MAX(longest, ctc->target_lengths[i]);
        _cleanup_(scratch_deinit) Scratch row = { 0 };
        TRY(scratch_init(&row, ctx, 2 * longest + 1, sizeof(double)));
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 1); i++) {
                Sequence sequence = { ctc->targets + (ctc->target_stride < 0 ? from : i * ctc->target_stride),
                                      ctc->target_lengths[i], ctc->blank };
                from += sequence.n_labels;
                if (ctc->meta->dtype == DTYPE_F32)
                        ((float *)ctc->out)[i] = loss_f32(ctc, &sequence, i, &work, row.data);
                else
                        ((double *)ctc->out)[i] = loss_f64(ctc, &sequence, i, &work, row.data);
        }
        return run_poll(ctx);
}
