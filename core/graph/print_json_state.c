// SPDX-License-Identifier: Apache-2.0
// print_json_state.c: the tensors of a document: dtype and shape, how each lies in its storage
// where that is not plain, and what else is known of it.
#include <stdlib.h>
#include <string.h>
#include "core/graph/print_json_parts.h"

// Entries in the order of their tensors' addresses, to find those tied to an earlier one.
typedef struct Tied {
        const Tensor *tensor;
        uint32_t index;
} Tied;

static int compare_tied(const void *a, const void *b)
{
        const Tied *x = a, *y = b;
        uintptr_t p = (uintptr_t)x->tensor, q = (uintptr_t)y->tensor;
        return p != q ? (p > q) - (p < q) : (x->index > y->index) - (x->index < y->index);
}

// out_first[i]: the first entry that holds the same tensor as entry i.
static Status find_ties(const Graph *graph, uint32_t *out_first)
{
        _cleanup_(freep) Tied *tied = new_array(graph->n_state, sizeof(*tied));
        if (tied == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_state; i++)
                tied[i] = (Tied){ graph->state[i].tensor, i };
        qsort(tied, graph->n_state, sizeof(*tied), compare_tied);
        for (uint32_t i = 0; i < graph->n_state; i++)
                out_first[tied[i].index] = i > 0 && tied[i - 1].tensor == tied[i].tensor
                                                   ? out_first[tied[i - 1].index]
                                                   : tied[i].index;
        return STATUS_OK;
}

static void add_layout(const JsonWriter *writer, const Tensor *tensor)
{
        char text[256];
        const StateStorage *storage =
                tensor->storage == NULL ? NULL : state_storages_find(&writer->storages, tensor->storage);
        if (storage == NULL || !storage->is_named)
                return;
        text_addf(writer->out, ", \"stride\": %s, \"offset\": %lld",
                  shape_text(tensor->meta.rank, tensor->meta.stride, text, sizeof(text)),
                  (long long)tensor->offset);
        state_storage_name(storage, text);
        text_addf(writer->out, ", \"storage\": \"%s\"", text);
}

static Status add_tensor(const JsonWriter *writer, const Graph *graph, uint32_t index, uint32_t first)
{
        Text *out = writer->out;
        const State *state = &graph->state[index];
        const TensorMeta *meta = &state->tensor->meta;
        text_add_json(out, state->path);
        if (first != index) {
                text_add(out, ": {\"same_as\": ");
                text_add_json(out, graph->state[first].path);
        } else {
                char shape[256];
                text_addf(out, ": {\"dtype\": \"%s\", \"shape\": %s", dtype_info[meta->dtype].name,
                          shape_text(meta->rank, meta->size, shape, sizeof(shape)));
                add_layout(writer, state->tensor);
        }
        if (state->is_parameter != state_looks_like_parameter(state->path, meta->dtype))
                text_add(out, state->is_parameter ? ", \"parameter\": true" : ", \"parameter\": false");
        text_add(out, state->persistent ? "" : ", \"persistent\": false");
        text_add(out, state->written ? ", \"written\": true" : "");
        if (first == index && writer->write_data != NULL)
                TRY(writer->write_data(writer->context, state, out));
        text_add_char(out, '}');
        return STATUS_OK;
}

Status json_add_state(JsonWriter *writer, const Graph *graph)
{
        _cleanup_(freep) uint32_t *first = new_array(graph->n_state, sizeof(*first));
        if (first == NULL)
                return fail_memory();
        TRY(find_ties(graph, first));
        for (uint32_t i = 0; i < graph->n_state; i++) {
                text_add(writer->out, i == 0 ? "  " : ",\n  ");
                TRY(add_tensor(writer, graph, i, first[i]));
        }
        return STATUS_OK;
}
