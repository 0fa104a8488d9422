// SPDX-License-Identifier: Apache-2.0
// control_rows.c: torch.ops.higher_order.* and asserts. Branches and bodies are child graphs:
// VALUE_GRAPH, as get_attr nodes yield them.
#include "core/targets/refuse.h"

#include <string.h>

static Status graph_arg(const OpCall *call, int index, const Graph **out)
{
        if (call->args[index].kind != VALUE_GRAPH)
                return fail(STATUS_VALUE, "%s(): argument '%s' must be a graph, not %s", call->schema->name,
                            call->schema->args[index].name, value_kind_name(call->args[index].kind));
        *out = call->args[index].graph;
        return STATUS_OK;
}

static ValueSpan span_arg(const OpCall *call, int index)
{
        Value value = call->args[index];
        return value_is_sequence(value) ? (ValueSpan){ value.seq->items, value.seq->n }
                                        : (ValueSpan){ NULL, 0 };
}

static Status cond_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Graph *if_true, *if_false;
        TRY(graph_arg(call, PY_COND_TRUE_FN, &if_true));
        TRY(graph_arg(call, PY_COND_FALSE_FN, &if_false));
        return emitter->vtbl->cond(emitter, call->args[PY_COND_PRED], if_true, if_false,
                                   span_arg(call, PY_COND_OPERANDS), out);
}

static Status while_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Graph *condition, *body;
        TRY(graph_arg(call, PY_WHILE_COND_FN, &condition));
        TRY(graph_arg(call, PY_WHILE_BODY_FN, &body));
        return emitter->vtbl->loop(emitter, condition, body, span_arg(call, PY_WHILE_CARRIED),
                                   span_arg(call, PY_WHILE_ADDITIONAL), out);
}

// There are no gradients: the body runs unchanged.
static Status set_grad_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Graph *body;
        TRY(graph_arg(call, PY_SET_GRAD_FUNC, &body));
        return emitter->vtbl->call(emitter, body, span_arg(call, PY_SET_GRAD_ARGS), out);
}

static Status invoke_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Graph *body;
        TRY(graph_arg(call, PY_INVOKE_FUNC, &body));
        return emitter->vtbl->call(emitter, body, span_arg(call, PY_INVOKE_ARGS), out);
}

// An operator with an effect: exports thread a token through such calls, so that they keep their
// order. Authored order does that here, so the token is handed on as it is.
static Status effects_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Target *target;
        TRY(effect_target(call->args[PY_EFFECTS_OP], &target));
        const ValueSpan args = span_arg(call, PY_EFFECTS_ARGS);
        _cleanup_(dict_unrefp) Dict *named = NULL;
        TRY(dict_new(1, &named));
        TRY(str_new("is_matrix", 9, &named->items[0].key));
        named->items[0].value = value_ref(call->args[PY_EFFECTS_IS_MATRIX]);
        const bool given = call->args[PY_EFFECTS_IS_MATRIX].kind != VALUE_NONE;
        const CallArgs inner = { args.items, args.n, named->items, given ? 1 : 0 };
        _cleanup_(seq_unrefp) Seq *both = NULL;
        TRY(seq_new(2, &both));
        both->items[0] = value_ref(call->args[PY_EFFECTS_TOKEN]);
        TRY(target_call(emitter, target, &inner, &both->items[1]));
        *out = value_seq_take(VALUE_TUPLE, take_ptr(both));
        return STATUS_OK;
}

// A region of another device changes nothing here.
static Status open_region(Emitter *emitter, const OpCall *call)
{
        Value device = call->args[PY_AUTOCAST_DEVICE], dtype = call->args[PY_AUTOCAST_DTYPE];
        bool enabled;
        if (device.kind != VALUE_STR || strcmp(device.str->text, "cpu") != 0)
                return STATUS_OK;
        TRY(value_is_true(emitter, call->args[PY_AUTOCAST_ENABLED], &enabled));
        Dtype lower = dtype.kind == VALUE_DTYPE ? dtype.dtype : DTYPE_BF16;
        if (enabled && lower != DTYPE_BF16 && lower != DTYPE_F16)
                return fail(STATUS_VALUE, "In CPU autocast, but the target dtype is not supported: %s",
                            dtype_info[lower].name);
        emitter->autocast = enabled;
        emitter->autocast_dtype = lower;
        return STATUS_OK;
}

static Status autocast_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Graph *body;
        TRY(graph_arg(call, PY_AUTOCAST_FUNC, &body));
        bool outer = emitter->autocast;
        Dtype outer_dtype = emitter->autocast_dtype;
        TRY(open_region(emitter, call));
        Status status = emitter->vtbl->call(emitter, body, span_arg(call, PY_AUTOCAST_ARGS), out);
        emitter->autocast = outer;
        emitter->autocast_dtype = outer_dtype;
        return status;
}

static const char *message_of(Value message, const char *if_none)
{
        return message.kind == VALUE_STR && message.str->n > 0 ? message.str->text : if_none;
}

static Status assert_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        bool held;
        TRY(value_is_true(emitter, call->args[PY_ASSERT_CONDITION], &held));
        if (!held)
                return fail(STATUS_RUN, "%s", message_of(call->args[PY_ASSERT_MESSAGE], "Assertion failed"));
        *out = value_none();
        return STATUS_OK;
}

static Status assert_none_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        if (call->args[PY_ASSERT_CONDITION].kind != VALUE_NONE)
                return fail(STATUS_RUN, "%s",
                            message_of(call->args[PY_ASSERT_MESSAGE],
                                       "Assertion failed: the value must be None"));
        *out = value_none();
        return STATUS_OK;
}

static const char expected_true[] =
        "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
        "report an enhancement request to PyTorch.)";

// torch._check: the condition is no tensor.
static Status check_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        if (call->args[PY_ASSERT_CONDITION].kind == VALUE_TENSOR)
                return fail(STATUS_VALUE, "cond must be a bool, but got a Tensor. For tensor conditions, use "
                                          "torch._check_tensor_all() to assert that all elements are true.");
        bool held;
        TRY(value_is_true(emitter, call->args[PY_ASSERT_CONDITION], &held));
        *out = value_none();
        return held ? STATUS_OK
                    : fail(STATUS_RUN, "%s", message_of(call->args[PY_ASSERT_MESSAGE], expected_true));
}

static Status check_size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t size, most;
        TRY(value_as_int(emitter, call->args[PY_ASSERT_CONDITION], "i", &size));
        bool held = size >= 0;
        if (call->args[PY_CHECK_MAX].kind != VALUE_NONE) {
                TRY(value_as_int(emitter, call->args[PY_CHECK_MAX], "max", &most));
                held &= size <= most;
        }
        *out = value_none();
        return held ? STATUS_OK
                    : fail(STATUS_RUN, "%s", message_of(call->args[PY_ASSERT_MESSAGE], expected_true));
}

static Status check_all_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value condition = call->args[PY_ASSERT_CONDITION];
        if (condition.kind != VALUE_TENSOR || condition.tensor->meta.dtype != DTYPE_BOOL)
                return fail(STATUS_VALUE, "cond must be a tensor of dtype torch.bool, but got %s",
                            value_kind_name(condition.kind));
        _cleanup_(value_clear) Value all = value_none();
        bool held;
        TRY(ATEN(emitter, "aten::all", &all, condition));
        TRY(value_is_true(emitter, all, &held));
        *out = value_none();
        return held ? STATUS_OK
                    : fail(STATUS_RUN, "%s", message_of(call->args[PY_ASSERT_MESSAGE], expected_true));
}

static Status nothing_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        (void)call;
        *out = value_none();
        return STATUS_OK;
}

static const PyRow rows[] = {
        { "torch.ops.higher_order.cond torch.cond torch._higher_order_ops.cond.cond",
          "py::cond(Any pred, Any true_fn, Any false_fn, Any operands=None) -> Any", .expand = cond_expand },
        { "torch.ops.higher_order.while_loop torch.while_loop torch._higher_order_ops.while_loop.while_loop",
          "py::while_loop(Any cond_fn, Any body_fn, Any carried_inputs, Any additional_inputs=None) -> Any",
          .expand = while_expand },
        { "torch.ops.higher_order.invoke_subgraph",
          "py::invoke_subgraph(Any subgraph, Any identifier, *Any[] operands) -> Any",
          .expand = invoke_expand },
        { "torch.ops.higher_order.with_effects",
          "py::with_effects(Any token, Any op, *Any[] args, *, Any is_matrix=None) -> Any",
          .expand = effects_expand, .needs = "aten::_linalg_check_errors" },
        { "torch.ops.higher_order.wrap_with_set_grad_enabled",
          "py::wrap_with_set_grad_enabled(Any enable_grad, Any wrapped_func, *Any[] args) -> Any",
          .expand = set_grad_expand },
        { "torch.ops.higher_order.wrap_with_autocast",
          "py::wrap_with_autocast(Any device_type, Any dtype, Any enabled, Any cache_enabled, Any "
          "wrapped_func, *Any[] args) -> Any",
          .expand = autocast_expand },
        { "torch._assert torch._C._assert", "py::_assert(Any condition, Any message=None) -> Any",
          .expand = assert_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch._check torch._check_value torch._check_index torch._check_type torch._check_not_implemented",
          "py::_assert_check(Any cond, Any message=None) -> Any", .expand = check_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch._check_is_size", "py::_assert_size(Any i, Any message=None, *, Any max=None) -> Any",
          .expand = check_size_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch._check_tensor_all", "py::_assert_all(Any cond, Any message=None) -> Any",
          .expand = check_all_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch.fx._symbolic_trace._assert_is_none torch.fx._symbolic_trace._assert_is_none_or_value",
          "py::_assert_is_none(Any value, Any msg=None) -> Any", .expand = assert_none_expand },
        // A server has nowhere to print to.
        { "torch.ops.aten._print.default torch.ops.aten._print", "py::_print(Any s) -> Any",
          .expand = nothing_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch.ops.higher_order.print", "py::print(Any format_str, *Any[] values) -> Any",
          .expand = nothing_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "torch._C._set_grad_enabled torch.set_grad_enabled", "py::set_grad_enabled(Any mode) -> Any",
          .expand = nothing_expand },
};
const PyTable py_control_rows = PY_TABLE(rows);
