// SPDX-License-Identifier: Apache-2.0
// Small tensors, hand-built graphs and calls for the tests of eval.
#pragma once
#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/targets/targets.h"

typedef struct Sample {
        Graph *graph;
        EagerEmitter *eager;
        RunContext ctx;
        Budget budget;
        Value kept[256]; // dropped at the end
        uint32_t n_kept;
} Sample;

static inline void must(Status status)
{
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
}

static inline void sample_open(Sample *sample)
{
        *sample = (Sample){ 0 };
        must(ops_init());
        must(targets_init());
        budget_init(&sample->budget, 1 << 28);
        run_context_init(&sample->ctx);
        sample->ctx.budget = &sample->budget;
        must(graph_new(GRAPH_FX_JSON, &sample->graph));
}

static inline Emitter *sample_emitter(Sample *sample)
{
        if (sample->eager == NULL)
                must(eager_open(sample->graph, &sample->ctx, &sample->eager));
        return eager_emitter(sample->eager);
}

static inline void sample_close(Sample *sample)
{
        sample->eager = eager_close(sample->eager);
        while (sample->n_kept > 0)
                value_unref(sample->kept[--sample->n_kept]);
        sample->graph = graph_unref(sample->graph);
        cr_assert_eq(atomic_load(&sample->budget.used), 0, "bytes of the run are left over");
}

// Guards of a graph that changed: those that were parsed are made again.
static inline void forget_guards(Graph *graph)
{
        void *guards = atomic_exchange(&graph->guards, NULL);
        if (guards != NULL)
                graph->free_guards(guards);
}

static inline Value keep(Sample *sample, Value value)
{
        cr_assert_lt(sample->n_kept, ARRAY_LENGTH(sample->kept));
        sample->kept[sample->n_kept++] = value;
        return value;
}

// Contiguous; `values` as doubles are converted to `dtype`.
static inline Value sample_tensor(Sample *sample, Dtype dtype, int rank, const int64_t *size,
                                  const double *values)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, rank, size);
        must(tensor_new(&meta, &sample->budget, &tensor));
        for (int64_t i = 0; i < meta_numel(&meta); i++)
                element_from_f64(dtype, (char *)tensor_data(tensor) + i * dtype_info[dtype].bytes,
                                 values == NULL ? (double)i : values[i]);
        return keep(sample, value_tensor_take(tensor));
}
#define DOUBLES(...) ((const double[]){ __VA_ARGS__ })
#define SIZES(...)                                                                                           \
        (int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[])                 \
        {                                                                                                    \
                __VA_ARGS__                                                                                  \
        }
#define F32(sample, sizes, values) sample_tensor((sample), DTYPE_F32, sizes, values)

static inline Value sample_list(Sample *sample, ValueKind kind, uint32_t n, const Value *items)
{
        Seq *seq;
        must(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(items[i]);
        return keep(sample, value_seq_take(kind, seq));
}
#define VALUES(...)                                                                                          \
        (uint32_t)(sizeof((const Value[]){ __VA_ARGS__ }) / sizeof(Value)), (const Value[])                  \
        {                                                                                                    \
                __VA_ARGS__                                                                                  \
        }

static inline Value sample_text(Sample *sample, const char *text)
{
        Value value;
        must(value_str_new(text, strlen(text), &value));
        return keep(sample, value);
}

// Calls an overload by name with positional values; the result is kept.
static inline Status sample_try(Sample *sample, const char *name, uint32_t n, const Value *args, Value *out)
{
        *out = value_none();
        Status status = emit_values(sample_emitter(sample), name, args, n, out);
        if (status == STATUS_OK)
                keep(sample, *out);
        return status;
}

static inline Value sample_call(Sample *sample, const char *name, uint32_t n, const Value *args)
{
        Value out;
        must(sample_try(sample, name, n, args, &out));
        return out;
}

static inline double at(Value value, int64_t index)
{
        cr_assert_eq(value.kind, VALUE_TENSOR, "a %s is no tensor", value_kind_name(value.kind));
        Tensor *dense;
        must(tensor_contiguous(value.tensor, NULL, &dense));
        cr_assert_lt(index, meta_numel(&dense->meta));
        double element = element_as_f64(
                dense->meta.dtype, (char *)tensor_data(dense) + index * dtype_info[dense->meta.dtype].bytes);
        tensor_unref(dense);
        return element;
}

static inline void expect_elements(Value value, int n, const double *want)
{
        cr_assert_eq(value.kind, VALUE_TENSOR, "a %s is no tensor", value_kind_name(value.kind));
        cr_assert_eq(meta_numel(&value.tensor->meta), n);
        for (int i = 0; i < n; i++)
                cr_assert_float_eq(at(value, i), want[i], 1e-6, "element %d is %g, expected %g", i,
                                   at(value, i), want[i]);
}
#define EXPECT(value, ...)                                                                                   \
        expect_elements((value), (int)(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)),            \
                        (const double[]){ __VA_ARGS__ })

// ---- graphs ----
static inline Value node_value(const Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = (Node *)(uintptr_t)node };
}

static inline Node *add_node(Sample *sample, Opcode op, const char *name, const char *target, uint32_t n,
                             const Value *args)
{
        Node *node;
        Seq *seq;
        must(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(args[i]);
        must(graph_add_node(
                sample->graph,
                &(NodeSpec){
                        .op = op, .name = name, .target = target, .args = value_seq_take(VALUE_TUPLE, seq) },
                &node));
        return node;
}

static inline Node *add_input(Sample *sample, const char *name)
{
        return add_node(sample, OP_PLACEHOLDER, name, name, 0, NULL);
}

static inline Node *add_output(Sample *sample, Value value)
{
        return add_node(sample, OP_OUTPUT, "output", "output", 1, &value);
}

static inline void finish(Sample *sample)
{
        CheckReport report = { 0 };
        must(graph_finish(sample->graph));
        must(graph_resolve(sample->graph, &report));
        cr_assert_eq(report.n_rows, 0, "%s cannot run", report.n_rows > 0 ? report.rows[0].what : "");
        check_report_deinit(&report);
}

static inline Status run_graph(Sample *sample, uint32_t n, const Value *inputs, Value *out)
{
        WalkOptions options = { .inputs = { .items = inputs, .n = n } };
        *out = value_none();
        Status status = walk_graph(sample_emitter(sample), sample->graph, &options, out, NULL);
        if (status == STATUS_OK)
                keep(sample, *out);
        return status;
}
