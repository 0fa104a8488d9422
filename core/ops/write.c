// SPDX-License-Identifier: Apache-2.0
// write.c: copy_ in a program. Overlap was resolved while recording.
#include "core/ops/write.h"
#include "core/kernels/copy.h"

static Status write_run(const OpRun *run)
{
        const TensorMeta *to_meta = run->out_meta[0], *from_meta = run->in_meta[1];
        Region to = region_of(to_meta, run->out[0]), from = region_of(from_meta, run->in[1]);
        int shift = to_meta->rank - from_meta->rank;
        from.meta.rank = to_meta->rank;
        for (int i = 0; i < to_meta->rank; i++) {
                from.meta.size[i] = to_meta->size[i];
                from.meta.stride[i] = i < shift || from_meta->size[i - shift] != to_meta->size[i]
                                              ? 0
                                              : from_meta->stride[i - shift];
        }
        return copy_region(run->ctx, &from, &to);
}

const OpDef write_op = {
        .schema = "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        .run = write_run,
        .kernel = "copy"
};
