// SPDX-License-Identifier: Apache-2.0
// Short ways to build graphs in tests. Everything aborts the test on failure.
#pragma once
#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>
#include "core/graph/print.h"

static inline Graph *new_graph(void)
{
        Graph *graph = NULL;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        return graph;
}

static inline Value text_value(const char *text)
{
        Value value;
        cr_assert_eq(value_str_new(text, strlen(text), &value), STATUS_OK);
        return value;
}

static inline Value node_value(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

// A sequence of `n` values, which are taken.
static inline Value sequence(ValueKind kind, int n, ...)
{
        Seq *seq;
        cr_assert_eq(seq_new((uint32_t)n, &seq), STATUS_OK);
        va_list items;
        va_start(items, n);
        for (int i = 0; i < n; i++)
                seq->items[i] = va_arg(items, Value);
        va_end(items);
        return value_seq_take(kind, seq);
}

static inline Value dict_of_one(const char *key, Value value)
{
        Dict *dict;
        cr_assert_eq(dict_new(1, &dict), STATUS_OK);
        cr_assert_eq(str_new(key, strlen(key), &dict->items[0].key), STATUS_OK);
        dict->items[0].value = value;
        return (Value){ .kind = VALUE_DICT, .dict = dict };
}

static inline Node *add(Graph *graph, Opcode op, const char *name, const char *target, Value args,
                        Value kwargs)
{
        Node *node = NULL;
        Status status = graph_add_node(
                graph,
                &(NodeSpec){ .op = op, .name = name, .target = target, .args = args, .kwargs = kwargs },
                &node);
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
        return node;
}

static inline Node *placeholder(Graph *graph, const char *target)
{
        return add(graph, OP_PLACEHOLDER, NULL, target, value_none(), value_none());
}

static inline Node *call_one(Graph *graph, Opcode op, const char *target, Node *argument)
{
        return add(graph, op, NULL, target, sequence(VALUE_TUPLE, 1, node_value(argument)), value_none());
}

static inline Node *output(Graph *graph, Value value)
{
        return add(graph, OP_OUTPUT, NULL, "output", sequence(VALUE_TUPLE, 1, value), value_none());
}

static inline void finish(Graph *graph)
{
        cr_assert_eq(graph_finish(graph), STATUS_OK, "%s", failure_current()->message);
}

static inline Tensor *small_tensor(Dtype dtype, int64_t n)
{
        TensorMeta meta;
        Tensor *tensor = NULL;
        meta_init(&meta, dtype, 1, &n);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        memset(tensor->storage->data, 0, tensor->storage->n_bytes);
        return tensor;
}

static inline State *state(Graph *graph, const char *path, Tensor *tensor)
{
        State *added = NULL;
        cr_assert_eq(graph_add_state(graph, path, tensor, &added), STATUS_OK, "%s",
                     failure_current()->message);
        return added;
}

// The graph's printed form equals `want`; the graph is dropped.
static inline void prints_as(Graph *graph, GraphForm form, const char *want)
{
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, form, &text), STATUS_OK, "%s", failure_current()->message);
        cr_assert_str_eq(text.data, want);
        text_deinit(&text);
}

static inline void fails_with(Status got, Status want, const char *message, const char *node)
{
        cr_assert_eq(got, want, "%s: %s", status_code(got), failure_current()->message);
        cr_assert(strstr(failure_current()->message, message) != NULL, "\"%s\" does not hold \"%s\"",
                  failure_current()->message, message);
        if (node != NULL)
                cr_assert_str_eq(failure_current()->node, node);
}
