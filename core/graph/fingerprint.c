// SPDX-License-Identifier: Apache-2.0
// fingerprint.c: one hash for all graphs that compute the same on the same kinds of weights. Nodes
// are numbered, so their names do not count. Annotations, recorded metas of inner nodes and the
// weights' bytes do not count either. Every text and list is hashed with its length in front, so
// that two different graphs never feed the same bytes. A child graph is represented by its own
// fingerprint.
#include "core/graph/finish.h"

#include <string.h>
#include "core/base/hash.h"

static void add_u64(Sha256 *sha, uint64_t value)
{
        uint8_t bytes[8];
        for (int i = 0; i < 8; i++)
                bytes[i] = (uint8_t)(value >> (8 * i));
        sha256_add(sha, bytes, sizeof(bytes));
}

static void add_f64(Sha256 *sha, double value)
{
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        add_u64(sha, bits);
}

static void add_text(Sha256 *sha, const char *text)
{
        size_t n = text == NULL ? 0 : strlen(text);
        add_u64(sha, text == NULL ? UINT64_MAX : n);
        sha256_add(sha, text == NULL ? "" : text, n);
}

static void add_meta(Sha256 *sha, const TensorMeta *meta)
{
        add_text(sha, dtype_info[meta->dtype].name);
        add_u64(sha, meta->rank);
        for (int i = 0; i < meta->rank; i++) {
                add_u64(sha, (uint64_t)meta->size[i]);
                add_u64(sha, (uint64_t)meta->stride[i]);
        }
}

// A tensor written into an argument is part of what is computed: its bytes count.
static void add_tensor(Sha256 *sha, const Tensor *tensor)
{
        add_meta(sha, &tensor->meta);
        if (tensor->storage != NULL && tensor->storage->n_bytes > 0) {
                add_u64(sha, (uint64_t)tensor->offset);
                sha256_add(sha, tensor->storage->data, tensor->storage->n_bytes);
        }
}

static void add_graph(Sha256 *sha, const Graph *graph)
{
        for (int i = 0; i < 4; i++)
                add_u64(sha, graph->fingerprint[i]);
}

static void add_value(Sha256 *sha, Value value)
{
        add_u64(sha, value.kind);
        switch (value.kind) {
        case VALUE_BOOL:
                add_u64(sha, value.b);
                break;
        case VALUE_INT:
                add_u64(sha, (uint64_t)value.i);
                break;
        case VALUE_FLOAT:
                add_f64(sha, value.f);
                break;
        case VALUE_COMPLEX:
                add_f64(sha, value.c.re);
                add_f64(sha, value.c.im);
                break;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                add_u64(sha, value.str->n);
                sha256_add(sha, value.str->text, value.str->n);
                break;
        case VALUE_DTYPE:
                add_text(sha, dtype_info[value.dtype].name);
                break;
        case VALUE_MEMORY_FORMAT:
                add_u64(sha, value.memory_format);
                break;
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                add_u64(sha, value.seq->n);
                for (uint32_t i = 0; i < value.seq->n; i++)
                        add_value(sha, value.seq->items[i]);
                break;
        case VALUE_DICT:
                add_u64(sha, value.dict->n);
                for (uint32_t i = 0; i < value.dict->n; i++) {
                        add_text(sha, value.dict->items[i].key->text);
                        add_value(sha, value.dict->items[i].value);
                }
                break;
        case VALUE_TENSOR:
                add_tensor(sha, value.tensor);
                break;
        case VALUE_GRAPH:
                add_graph(sha, value.graph);
                break;
        case VALUE_NODE:
                add_u64(sha, value.node->index);
                break;
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_DYNAMIC:
        case VALUE_BATCH:
        case VALUE_ABSENT:
                break;
        }
}

static void add_spec(Sha256 *sha, const TensorSpec *spec)
{
        add_text(sha, spec->dtype == DTYPE_NONE ? NULL : dtype_info[spec->dtype].name);
        add_u64(sha, (uint64_t)(int64_t)spec->rank);
        for (int i = 0; i < spec->rank; i++) {
                add_text(sha, spec->size[i].expr);
                add_u64(sha, spec->size[i].expr == NULL ? (uint64_t)spec->size[i].value : 0);
        }
}

// What binding checks: a graph that takes other inputs is another graph.
static void add_signature(Sha256 *sha, const Signature *signature)
{
        add_u64(sha, signature->n_inputs);
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                add_u64(sha, input->kind);
                add_u64(sha, input->value_kind);
                add_text(sha, input->path);
                add_value(sha, input->literal);
                add_spec(sha, &input->spec);
        }
        add_u64(sha, signature->n_outputs);
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                add_u64(sha, signature->outputs[i].kind);
                add_text(sha, signature->outputs[i].target);
                add_value(sha, signature->outputs[i].arg);
        }
        add_u64(sha, signature->n_ranges);
        for (uint32_t i = 0; i < signature->n_ranges; i++) {
                add_text(sha, signature->ranges[i].symbol);
                add_u64(sha, (uint64_t)signature->ranges[i].min);
                add_u64(sha, (uint64_t)signature->ranges[i].max);
        }
        add_u64(sha, signature->n_guards);
        for (uint32_t i = 0; i < signature->n_guards; i++)
                add_text(sha, signature->guards[i]);
}

static void add_module(Sha256 *sha, const Module *module)
{
        add_text(sha, module->path);
        add_text(sha, module->type);
        add_u64(sha, module->training);
        add_u64(sha, module->n_config);
        for (uint32_t i = 0; i < module->n_config; i++) {
                add_text(sha, module->config[i].key);
                add_value(sha, module->config[i].value);
        }
        add_u64(sha, module->graph != NULL);
        if (module->graph != NULL)
                add_graph(sha, module->graph);
}

static uint64_t digit(char c)
{
        return (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void graph_set_fingerprint(Graph *graph)
{
        Sha256 sha;
        sha256_start(&sha);
        add_u64(&sha, graph->n_nodes);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                add_u64(&sha, node->op);
                add_text(&sha, node->target);
                add_value(&sha, node->args);
                add_value(&sha, node->kwargs);
        }
        add_u64(&sha, graph->n_modules);
        for (uint32_t i = 0; i < graph->n_modules; i++)
                add_module(&sha, graph->modules[i]);
        add_u64(&sha, graph->n_state);
        for (uint32_t i = 0; i < graph->n_state; i++) {
                add_text(&sha, graph->state[i].path);
                add_meta(&sha, &graph->state[i].tensor->meta);
        }
        add_signature(&sha, &graph->signature);
        HashHex hash = sha256_finish(&sha);
        for (int i = 0; i < 64; i++)
                graph->fingerprint[i / 16] = graph->fingerprint[i / 16] << 4 | digit(hash.hex[i]);
}
