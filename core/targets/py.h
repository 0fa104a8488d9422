// SPDX-License-Identifier: Apache-2.0
// Inside targets/: rows with a Python signature, templates that forward to operators, and calls
// with overload choice.
#pragma once
#include "core/targets/arguments.h"
#include "core/targets/python_number.h"
#include "core/targets/targets.h"

// ---- templates ----
// One call of an operator, its arguments taken from a row's own:
// "aten::batch_norm a0 a3 a4 a1 a2 a5 a6 a7 false".
//   a<i> argument i · c<i> configuration value i · s<i> state entry i (modules) · true false none ·
//   a number
//   e<..> the value, or [] where it is None · z<..> the value, or False where it is None · i<..>
//   the value, or -1 where it is None
//   r<..> "none", "mean", "sum" as 0, 1, 2 · !<..> in place when true (the operator's twin) · ~<..>
//   must be None or False
// "[0]" behind the operator: the first of its several results. "aten::relu6 a0 | aten::hardtanh a0
// 0 6": the first whose operator the table has. The operator is a name ("aten::max_pool2d":
// overload chosen by the arguments), an overload ("aten::to.dtype") or, for module classes, a
// function of torch.nn.functional ("F.softmax").
enum { TEMPLATE_MAX_ARGS = 16 };
typedef struct TemplateArg {
        char kind;   // 'a' 'c' 's' 'k' (constant)
        char filter; // 0 'e' 'z' 'i' 'r' '!' '~'
        uint8_t index;
        Value constant;
} TemplateArg;
typedef struct Template {
        const char *op; // for messages
        const Overload *const *overloads, *const *twins;
        uint32_t n_overloads, n_twins;
        uint32_t n_args; // filters '!' and '~' included
        bool first_only;
        TemplateArg args[TEMPLATE_MAX_ARGS];
} Template;
typedef struct TemplateSources {
        const Value *args, *config, *state;
} TemplateSources;
// "none", "mean", "sum" as operators want them: 0, 1, 2. STATUS_VALUE in PyTorch's words.
Status python_reduction(Value value, Value *out);
// *out_found = false when the table lacks every alternative. Memory comes from `arena`.
Status template_parse(const char *text, Arena *arena, Template *out_template, bool *out_found);
Status template_run(Emitter *emitter, const Template *template, const TemplateSources *sources, Value *out);

// ---- rows ----
typedef struct PyRow {
        // Space-separated: "torch.relu", "F.relu" (torch.nn.functional.relu), ".relu" (Tensor
        // method). A name may stand in several rows: overloads in order.
        const char *names;
        const char *schema; // "py::relu(Tensor input, bool inplace=False) -> Tensor"
        const char *emits;  // a template; NULL: expand
        Status (*expand)(Emitter *emitter, const OpCall *call, Value *out);
        // Operators that expand calls, space-separated, alternatives with '|'; the row is left out
        // when one is missing. NULL: none.
        const char *needs;
        uint32_t traits; // OpTraits
} PyRow;
typedef struct PyTable {
        const PyRow *rows;
        uint32_t n;
} PyTable;
#define PY_TABLE(array)                                                                                      \
        {                                                                                                    \
                array, (uint32_t)ARRAY_LENGTH(array)                                                         \
        }
extern const PyTable py_operator_rows, py_builtin_rows, py_attribute_rows, py_method_rows, py_index_rows,
        py_function_rows, py_functional_rows, py_shape_rows, py_arrange_rows, py_control_rows,
        py_observe_rows, py_loop_rows, py_loss_rows, py_pool_rows, py_vmap_rows, py_math_rows, py_layer_rows,
        py_query_rows, py_torchvision_rows, py_mvit_rows, py_swin3d_rows, py_name_rows;

// Whether the table has every operator of a `needs` list.
bool ops_present(const char *needs);

// ---- calls ----
// Chooses among overloads as Python's arg parser does (strict first, then numbers
// in Tensor slots), binds and emits. `name` is for messages.
Status overloads_call(Emitter *emitter, const char *name, const Overload *const *overloads,
                      uint32_t n_overloads, const CallArgs *call, Value *out);
// An operator by name ("aten::add") with positional arguments.
Status aten_call(Emitter *emitter, const char *base, const Value *args, uint32_t n_args, Value *out);
#define ATEN(emitter, base, out, ...)                                                                        \
        aten_call((emitter), (base), (const Value[]){ __VA_ARGS__ },                                         \
                  (uint32_t)(sizeof((const Value[]){ __VA_ARGS__ }) / sizeof(Value)), (out))
// The first of two spellings that the table has.
const char *aten_first(const char *base, const char *alternative);

// ---- values ----
// A tensor's single element as a Python number (emits aten::item); other values as
// they are. STATUS_DYNAMIC while recording.
Status value_as_number(Emitter *emitter, Value value, Value *out);
// bool(value), tensors of one element included.
Status value_is_true(Emitter *emitter, Value value, bool *out);
// An int from an int, a bool or a one-element integer tensor; `what` names it in the failure.
Status value_as_int(Emitter *emitter, Value value, const char *what, int64_t *out);
// x.shape as torch.Size.
Status shape_value(const Tensor *tensor, Value *out);
// A Python text as a Value.
Status text_value(const char *text, Value *out);
// torch.tensor(value): nested lists of numbers; dtype DTYPE_NONE = as Python infers it.
Status tensor_from_value(Emitter *emitter, Value value, Dtype dtype, Value *out);
// Checks that argument `index`, `out`, is None: no result is written over a given tensor.
Status refuse_out(const OpCall *call, int index);
// "cpu" is the only device: others fail with what to do. None, VALUE_DEVICE or VALUE_STR.
Status check_device(Value device);
