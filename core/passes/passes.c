// SPDX-License-Identifier: Apache-2.0
// passes.c: the passes one after the other.
#include "core/passes/passes.h"

const Pass passes[] = {
#define PASS(name) { #name, pass_##name },
#include "core/passes/passes.def"
#undef PASS
};
const unsigned n_passes = ARRAY_LENGTH(passes);

enum { MADE_BYTES = 256 << 20 };

bool passes_may_add(const Recording *recording, size_t n_made, size_t n_bytes)
{
        return n_made + n_bytes <= MAX((size_t)MADE_BYTES, recording->graph->weights_bytes);
}

Status passes_run(Recording *recording, PassContext *context)
{
        for (unsigned i = 0; i < n_passes; i++) {
                TRY(run_poll(context->poll));
                TRY(passes[i].run(recording, context));
        }
        return STATUS_OK;
}
