// SPDX-License-Identifier: Apache-2.0
// insert.c: recording_insert on a recording made by hand: x -> relu -> neg.
#include <criterion/criterion.h>
#include "core/program/recording.h"

static Graph *graph;
static Recording *recording;
static Node *nodes[2];     // authored: of relu, of neg
static Recorded *x;        // float32, 2 x 3 x 4 x 5
static RecordedCall *relu; // the first call
static RecordedCall *neg;  // the second

static Value of(const Recorded *value)
{
        return value_ref((Value){ .kind = VALUE_TENSOR, .tensor = (Tensor *)(uintptr_t)&value->tensor });
}

// A call of one argument.
static NewCall unary(const char *name, Value *argument)
{
        return (NewCall){ .overload = op_find(name), .take_args = argument };
}

static RecordedCall *insert(RecordedCall *at, NewCall new_call)
{
        RecordedCall *call = NULL;
        cr_assert_eq(recording_insert(recording, at, &new_call, &call), STATUS_OK, "%s",
                     failure_current()->message);
        return call;
}

static RecordedCall *append(const char *name, const Recorded *argument, const Node *node)
{
        Value value = of(argument);
        RecordedCall *call = insert(NULL, unary(name, &value));
        cr_assert_not_null(call);
        cr_assert_eq(recording_add_node(recording, call, node), STATUS_OK);
        return call;
}

static void start(void)
{
        TensorMeta meta;
        Buffer *buffer;
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(graph_add_node(graph,
                                            &(NodeSpec){ .op = OP_CALL_FUNCTION, .target = "torch.relu" },
                                            &nodes[i]),
                             STATUS_OK);
                nodes[i]->index = (uint32_t)i;
        }
        cr_assert_eq(recording_new(graph, &recording), STATUS_OK);
        meta_init(&meta, DTYPE_F32, 4, (int64_t[]){ 2, 3, 4, 5 });
        cr_assert_eq(recording_add_buffer(recording, BUFFER_INPUT, 480, &buffer), STATUS_OK);
        cr_assert_eq(recording_add_value(recording, FROM_INPUT, buffer->storage, &meta, 0, &x), STATUS_OK);
        relu = append("aten::relu", x, nodes[0]);
        neg = append("aten::neg", relu->outs[0], nodes[1]);
}

static void stop(void)
{
        recording = recording_free(recording);
        graph = graph_unref(graph);
}

TestSuite(insert, .init = start, .fini = stop);

static void expect_order(const char *const *names, uint32_t n)
{
        cr_assert_eq(recording->n_calls, n);
        for (uint32_t i = 0; i < n; i++)
                cr_expect_str_eq(recording->calls[i]->overload->name, names[i], "position %u", i);
}

Test(insert, calls_keep_their_positions_until_compacting_puts_the_new_ones_in_place)
{
        Value args[4] = { of(x), of(x), of(x), of(x) };
        insert(neg, unary("aten::abs", &args[0]));
        RecordedCall *sin = insert(neg, unary("aten::sin", &args[1]));
        insert(sin, unary("aten::cos", &args[2]));
        insert(relu, unary("aten::exp", &args[3]));
        cr_expect_eq(recording->n_calls, 2);
        cr_expect_eq(recording->calls[1], neg);
        recording_compact(recording);
        expect_order((const char *const[]){ "aten::exp", "aten::relu", "aten::abs", "aten::cos", "aten::sin",
                                            "aten::neg" },
                     6);
        recording_compact(recording);
        cr_expect_eq(recording->n_calls, 6);
}

Test(insert, a_replacement_takes_over_the_value_and_the_authored_nodes)
{
        Value arg = of(x);
        Recorded *result = neg->outs[0];
        NewCall both = unary("aten::sigmoid", &arg);
        both.outs = neg->outs;
        both.n_outs = 1;
        both.stands_for = (RecordedCall *[]){ neg, relu };
        both.n_stands_for = 2;
        both.replaces = true;
        RecordedCall *call = insert(neg, both);
        recording_compact(recording);
        expect_order((const char *const[]){ "aten::sigmoid" }, 1);
        cr_expect_eq(call->outs[0], result);
        cr_expect_eq(result->call, call);
        cr_expect(call->computes);
        cr_expect_eq(call->n_nodes, 2);
        cr_expect_eq(call->nodes[0], nodes[0]);
        cr_expect_eq(call->nodes[1], nodes[1]);
}

Test(insert, nodes_may_be_shared_without_replacing)
{
        Value arg = of(relu->outs[0]);
        NewCall beside = unary("aten::abs", &arg);
        beside.stands_for = &relu;
        beside.n_stands_for = 1;
        RecordedCall *call = insert(neg, beside);
        cr_expect(!relu->removed);
        cr_expect_eq(call->n_nodes, 1);
        cr_expect_eq(call->nodes[0], nodes[0]);
        cr_expect_neq(call->outs[0], relu->outs[0]);
        cr_expect_neq(recorded_buffer(call->outs[0]), recorded_buffer(relu->outs[0]));
}

static Status refuse(const OpCall *call)
{
        return fail(STATUS_VALUE, "%s is not wanted", call->schema->name);
}

// Replaces neg by `new_call`, which must decline and leave everything as it was.
static void expect_declined(NewCall new_call)
{
        uint32_t n_values = recording->n_values, n_buffers = recording->n_buffers;
        new_call.outs = neg->outs;
        new_call.n_outs = 1;
        new_call.stands_for = &neg;
        new_call.n_stands_for = 1;
        new_call.replaces = true;
        cr_expect_null(insert(neg, new_call));
        cr_expect(!neg->removed);
        cr_expect_eq(neg->outs[0]->call, neg);
        cr_expect_eq(recording->n_values, n_values);
        cr_expect_eq(recording->n_buffers, n_buffers);
        recording_compact(recording);
        expect_order((const char *const[]){ "aten::relu", "aten::neg" }, 2);
}

Test(insert, a_declined_call_changes_nothing)
{
        Value dtype = of(x), shape = of(x), outputs[3] = { of(x), value_int(0), value_bool(false) };
        Value refused = of(x), wanted = of(x);
        expect_declined(unary("aten::isnan", &dtype)); // bool instead of float32
        expect_declined(unary("aten::sum", (Value[]){ shape, value_none() }));
        expect_declined(unary("aten::max.dim", outputs)); // two results
        expect_declined(unary("aten::t", &refused));      // rank 4
        NewCall unwanted = unary("aten::abs", &wanted);
        unwanted.accept = refuse;
        expect_declined(unwanted);
}

Test(insert, operands_of_a_dtype_that_the_row_lacks_decline)
{
        Value arg = of(x), rows[2] = { value_none(), value_int(0) };
        RecordedCall *mask = insert(neg, unary("aten::isnan", &arg));
        rows[0] = of(mask->outs[0]);
        cr_expect_null(insert(neg, unary("aten::logcumsumexp", rows)));
}

Test(insert, results_with_other_strides_are_new_values_and_the_others_stay)
{
        Value contiguous[2] = { of(x), { .kind = VALUE_MEMORY_FORMAT } };
        Value channels_last[2] = {
                of(x), { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CHANNELS_LAST }
        };
        NewCall new_call = { .overload = op_find("aten::clone"),
                             .take_args = contiguous,
                             .outs = neg->outs,
                             .n_outs = 1,
                             .results = RESULTS_RESTRIDED };
        RecordedCall *same = insert(neg, new_call);
        cr_expect_eq(same->outs[0], neg->outs[0]);
        new_call.take_args = channels_last;
        RecordedCall *other = insert(neg, new_call);
        cr_expect_neq(other->outs[0], neg->outs[0]);
        cr_expect(meta_is_channels_last(&other->outs[0]->tensor.meta));
        cr_expect_eq(other->outs[0]->call, other);
}

Test(insert, results_alike_are_new_values_of_the_same_geometry)
{
        Value arg = of(x);
        NewCall new_call = unary("aten::abs", &arg);
        new_call.outs = neg->outs;
        new_call.n_outs = 1;
        new_call.results = RESULTS_ALIKE;
        RecordedCall *call = insert(neg, new_call);
        cr_expect_neq(call->outs[0], neg->outs[0]);
        cr_expect_eq(neg->outs[0]->call, neg);
        cr_expect(meta_same_places(&call->outs[0]->tensor.meta, &neg->outs[0]->tensor.meta));
}

Test(insert, several_results_and_views_find_their_bytes)
{
        Value outputs[3] = { of(x), value_int(0), value_bool(false) };
        RecordedCall *max = insert(neg, unary("aten::max.dim", outputs));
        cr_assert_eq(max->call.n_outs, 2);
        cr_expect_eq(max->outs[0]->call, max);
        cr_expect_eq(max->outs[1]->call, max);
        cr_expect_eq(max->outs[1]->tensor.meta.dtype, DTYPE_I64);
        Value turned[3] = { of(x), value_int(0), value_int(1) };
        RecordedCall *view = insert(neg, unary("aten::transpose.int", turned));
        cr_expect_eq(recorded_buffer(view->outs[0]), recorded_buffer(x));
        cr_expect(!view->computes);
}

Test(insert, a_tensor_that_is_no_value_of_a_recording_is_refused)
{
        Tensor *stranger;
        RecordedCall *call;
        cr_assert_eq(tensor_new(&x->tensor.meta, NULL, &stranger), STATUS_OK);
        cr_expect_null(recorded_of(stranger));
        Value arg = value_tensor_take(stranger);
        NewCall new_call = unary("aten::abs", &arg);
        cr_expect_eq(recording_insert(recording, neg, &new_call, &call), STATUS_INTERNAL);
        cr_expect_null(call);
}
