// SPDX-License-Identifier: Apache-2.0
// GET .../weights: the state of a graph and of its child graphs, by full path. Strided entries
// become dense ones, within the budget of a run: a few bytes of an upload may expand to many. Tied
// entries are each written, so that a reader of the file finds every name.
#include "api/routes/answer.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

typedef struct Weights {
        NamedTensor *tensors;
        uint32_t n, capacity;
        Budget budget; // no tensor outlives it: the reply's tensors are no longer charged
        Arena names;
} Weights;

static void weights_deinit(Weights *weights)
{
        for (uint32_t i = 0; i < weights->n; i++)
                tensor_unref(weights->tensors[i].tensor);
        free(weights->tensors);
        arena_deinit(&weights->names);
}

static Status add_tensor(void *context, const char *name, const State *state)
{
        Weights *weights = context;
        Tensor *tensor;
        TRY(array_reserve(&weights->tensors, &weights->capacity, weights->n + 1, sizeof(NamedTensor)));
        Status status = tensor_contiguous(state->tensor, &weights->budget, &tensor);
        if (status == STATUS_TOO_LARGE)
                return fail(STATUS_TOO_LARGE,
                            "the strided weights take more than %lld bytes when written in full "
                            "(--max-run-memory, FXSERVE_MAX_RUN_MEMORY)",
                            (long long)limits.max_run_memory);
        TRY(status);
        weights->tensors[weights->n++] = (NamedTensor){ .name = name, .tensor = tensor };
        return STATUS_OK;
}

Status get_weights(const Answer *answer)
{
        int as;
        bool unchanged;
        TRY(param_choice(answer->call, PARAM_WEIGHTS_AS, &as));
        TRY(answer_unchanged(answer, &unchanged));
        if (unchanged)
                return STATUS_OK;
        _cleanup_(weights_deinit) Weights weights = { .n = 0 };
        arena_init(&weights.names, 0);
        budget_init(&weights.budget, (size_t)limits.max_run_memory);
        TRY(graph_each_state(answer->graph, &weights.names, add_tensor, &weights));
        answer->reply->status = 200;
        return codec_write(as == WEIGHTS_NPZ ? &npz_codec : &safetensors_codec, weights.tensors, weights.n,
                           answer->reply);
}
