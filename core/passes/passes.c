// SPDX-License-Identifier: Apache-2.0
// passes.c: the table. Constants first, because they make copies and equal calls; what nobody reads
// any more goes last.
#include "core/passes/passes.h"

const Pass passes[] = {
        { "make_functional", pass_make_functional }, { "fold_constants", pass_fold_constants },
        { "remove_copies", pass_remove_copies },     { "merge_equal", pass_merge_equal },
        { "remove_dead", pass_remove_dead },         { "fold_batch_norm", pass_fold_batch_norm },
        { "choose_layout", pass_choose_layout },     { "fuse_epilogues", pass_fuse_epilogues },
        { "fuse_pointwise", pass_fuse_pointwise },   { "remove_dead", pass_remove_dead },
};
const unsigned n_passes = ARRAY_LENGTH(passes);

Status passes_run(Recording *recording, PassContext *context)
{
        for (unsigned i = 0; i < n_passes; i++) {
                TRY(run_poll(context->poll));
                TRY(passes[i].run(recording, context));
        }
        return STATUS_OK;
}
