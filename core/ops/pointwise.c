// SPDX-License-Identifier: Apache-2.0
// pointwise.c: what all pointwise overloads share. point_bind reads a call by its description:
// operands, promotion, parameters in the class that will be computed. infer adds shape and strides,
// prepare keeps the bound call as state, run hands pointers to the engine.
#include "core/ops/pointwise.h"
#include "core/ops/arguments.h"

#include <string.h>

_Static_assert(sizeof(PointBound) <= OP_STATE_BYTES, "a bound pointwise call is the state of a run");

static bool is_operand(char letter)
{
        return letter != '\0' && strchr("tfmsSv", letter) != NULL;
}

// ---- binding ----
static void number_as_input(Value number, PointInput *out)
{
        out->tensor = -1;
        out->dtype = number.kind == VALUE_BOOL    ? DTYPE_BOOL
                     : number.kind == VALUE_INT   ? DTYPE_I64
                     : number.kind == VALUE_FLOAT ? DTYPE_F64
                                                  : DTYPE_C128;
        if (number.kind == VALUE_COMPLEX)
                out->number.c = (ComplexF64){ number.c.re, number.c.im };
        else if (number.kind == VALUE_FLOAT)
                out->number.f = number.f;
        else if (number.kind == VALUE_INT)
                out->number.i = number.i;
        else
                memcpy(&out->number, &number.b, sizeof(number.b));
}

static Status bind_operands(const OpCall *call, PointBound *bound, Promotion *promotion)
{
        int tensor = 0;
        for (int i = 0; bound->op->args[i] != '\0'; i++) {
                char letter = bound->op->args[i];
                bool tensor_slot = call->schema->args[i].type == ARG_TENSOR;
                int at = tensor_slot ? tensor++ : -1;
                if (!is_operand(letter)) {
                        if (letter == 'q')
                                TRY(promotion_add_number(promotion, arg_number(call, i)));
                        continue;
                }
                PointInput *input = &bound->inputs[bound->n_inputs++];
                *input = (PointInput){ .tensor = (int8_t)at, .arg = (uint8_t)i };
                if (!tensor_slot)
                        number_as_input(arg_number(call, i), input);
                if (letter == 't')
                        TRY(promotion_add(promotion, arg_meta(call, i)));
                else if (letter == 's' || letter == 'S')
                        TRY(promotion_add_number(promotion, arg_number(call, i)));
        }
        return STATUS_OK;
}

static Status check_equal_dtypes(const OpCall *call, const PointBound *bound)
{
        Dtype dtype = arg_meta(call, bound->inputs[0].arg)->dtype;
        for (int k = 1; k < bound->n_inputs; k++) {
                int arg = bound->inputs[k].arg;
                const TensorMeta *meta = bound->inputs[k].tensor < 0 ? NULL : arg_meta(call, arg);
                bool is_number = k == 2 && meta != NULL && meta->rank == 0; // the weight of lerp
                if (meta != NULL && meta->dtype != dtype && !is_number) {
                        return fail(STATUS_DTYPE, "expected dtype %s for `%s` but got dtype %s",
                                    dtype_c_name(dtype), call->schema->args[arg].name,
                                    dtype_c_name(meta->dtype));
                }
        }
        return STATUS_OK;
}

Status point_check_cast(const OpCall *call, const PointBound *bound)
{
        if (!call->inplace || bound->op->kernel->mask_out)
                return STATUS_OK;
        Dtype self = arg_meta(call, SELF)->dtype;
        if (point_is_complex(bound->common) && point_complex_of(bound->op->kernel)->real_out)
                return fail(STATUS_DTYPE, "In-place %.*s is not supported for complex tensors.",
                            (int)strlen(call->schema->name) - 1, call->schema->name);
        if (dtype_can_cast(bound->common, self))
                return STATUS_OK;
        return fail(STATUS_DTYPE, "result type %s can't be cast to the desired output type %s",
                    dtype_words(bound->common), dtype_words(self));
}

// Only rows that know complex numbers see some.
static Status check_complex(const OpCall *call, const PointBound *bound)
{
        bool any = point_is_complex(bound->common);
        Dtype seen = bound->common;
        for (int k = 0; k < bound->n_inputs; k++) {
                const PointInput *input = &bound->inputs[k];
                Dtype dtype = input->tensor < 0 ? input->dtype : arg_meta(call, input->arg)->dtype;
                if (bound->op->kernel->in[k] == 'm' || !point_is_complex(dtype))
                        continue;
                any = true;
                seen = dtype;
        }
        if (!any || (point_is_complex(bound->common) && point_complex_of(bound->op->kernel) != NULL))
                return STATUS_OK;
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", bound->op->kernel->label,
                    dtype_words(seen));
}

static Status bind_dtypes(const OpCall *call, const Promotion *promotion, PointBound *bound)
{
        const PointOp *op = bound->op;
        Dtype common = DTYPE_BOOL;
        if (op->typing == TYPE_EQUAL)
                TRY(check_equal_dtypes(call, bound));
        if (op->typing == TYPE_SELF)
                common = arg_meta(call, SELF)->dtype;
        else if (op->typing != TYPE_MASK)
                TRY(promotion_result(promotion, &common));
        if (op->typing == TYPE_FLOAT && !dtype_is_float(common) &&
            dtype_info[common].kind != DTYPE_KIND_COMPLEX)
                common = DTYPE_F32;
        if (op->typing == TYPE_INT && common == DTYPE_BOOL)
                common = DTYPE_I64;
        bound->common = common;
        TRY(check_complex(call, bound));
        if (op->check != NULL)
                TRY(op->check(call, bound));
        TRY(point_check_cast(call, bound));
        if (point_is_complex(common))
                return STATUS_OK;
        if ((DTYPES_REAL >> common & 1) != 0 && op->kernel->loop[point_class(common)] != NULL)
                return STATUS_OK;
        if (common == DTYPE_BOOL && op->bool_words != NULL)
                return fail(STATUS_DTYPE, "%s", op->bool_words);
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", op->kernel->label, dtype_words(common));
}

// -1 as uint8 is 255.
static void wrap_to(Dtype dtype, int64_t *value)
{
        int64_t element = 0;
        element_from_i64(dtype, &element, *value);
        *value = element_as_i64(dtype, &element);
}

static void set_param(Dtype common, Value number, PointParam *out)
{
        PointClass class = point_class(common);
        double real = number.kind == VALUE_FLOAT     ? number.f
                      : number.kind == VALUE_INT     ? (double)number.i
                      : number.kind == VALUE_COMPLEX ? number.c.re
                                                     : number.b;
        int64_t whole = number.kind == VALUE_INT ? number.i : number.kind == VALUE_BOOL ? number.b : 0;
        if (class == POINT_C64 || class == POINT_C128) {
                bool is_complex = number.kind == VALUE_COMPLEX;
                out->c = (ComplexF64){ is_complex ? number.c.re : real, is_complex ? number.c.im : 0 };
        } else if (class == POINT_F32 || class == POINT_F64) {
                out->f = real;
        } else if (class == POINT_BOOL) {
                out->i = real != 0;
        } else if (number.kind == VALUE_FLOAT) {
                element_from_f64(DTYPE_I64, &out->i, real);
                wrap_to(common, &out->i);
        } else {
                out->i = whole;
                wrap_to(common, &out->i);
        }
}

static Status bind_params(const OpCall *call, PointBound *bound)
{
        int n = 0;
        for (int k = 0; k < POINT_PARAMS; k++)
                set_param(bound->common, value_float(bound->op->constants[k]), &bound->params.of[k]);
        for (int i = 0; bound->op->args[i] != '\0'; i++) {
                char letter = bound->op->args[i];
                if (letter == 'a') {
                        set_param(bound->common, arg_number(call, i), &bound->params.of[n++]);
                } else if (letter == 'p' || letter == 'q' || letter == 'c') {
                        // Plain parameters of half kernels are kept in float.
                        bool half = (DTYPES_HALFS >> bound->common & 1) != 0;
                        TRY(number_check_fits(arg_number(call, i),
                                              letter == 'p' && half ? DTYPE_F32 : bound->common));
                        set_param(bound->common, arg_number(call, i), &bound->params.of[n++]);
                } else if (letter == 'v' || (letter == 'S' && (DTYPES_HALFS >> bound->common & 1) == 0)) {
                        TRY(number_check_fits(arg_number(call, i), bound->common));
                }
        }
        return STATUS_OK;
}

Status point_bind(const OpCall *call, PointBound *out_bound)
{
        const PointOp *op = call->op->row;
        if (op->select != NULL) {
                op = op->select(call);
                if (op == NULL)
                        return failure_current()->status;
        }
        *out_bound = (PointBound){ .op = op };
        Promotion promotion = PROMOTION_INIT;
        TRY(bind_operands(call, out_bound, &promotion));
        TRY(bind_dtypes(call, &promotion, out_bound));
        TRY(bind_params(call, out_bound));
        out_bound->kernel = op->kernel;
        if (op->adjust != NULL)
                TRY(op->adjust(call, out_bound));
        if (point_is_complex(out_bound->common))
                out_bound->kernel = point_complex_of(out_bound->kernel);
        out_bound->out = point_out_dtype(out_bound->kernel, out_bound->common);
        return STATUS_OK;
}

// ---- the functions of every row ----
static Status infer_layout(const OpCall *call, const PointBound *bound, TensorMeta *meta)
{
        static const TensorMeta number = { .dtype = DTYPE_F64, .wrapped = true };
        const TensorMeta *metas[POINT_MAX_INPUTS];
        int n = 0;
        meta->rank = 0;
        for (int k = 0; k < bound->n_inputs; k++) {
                const PointInput *input = &bound->inputs[k];
                metas[n] = input->tensor < 0 ? &number : arg_meta(call, input->arg);
                int rank;
                TRY(shape_broadcast(meta, metas[n++], &rank, meta->size));
                meta->rank = (uint8_t)rank;
        }
        if (bound->op->layout == LAYOUT_LAST_FIRST) {
                const TensorMeta *first = metas[0];
                metas[0] = metas[n - 1];
                metas[n - 1] = first;
        }
        if (bound->op->layout == LAYOUT_CONTIGUOUS)
                meta_set_contiguous(meta);
        else
                meta_set_strides_elementwise(meta, metas, n);
        return STATUS_OK;
}

Status pointwise_infer(OpCall *call)
{
        PointBound bound;
        TRY(point_bind(call, &bound));
        TensorMeta meta = { .dtype = bound.out };
        TRY(infer_layout(call, &bound, &meta));
        return out_fresh(call, 0, &meta);
}

bool pointwise_may_fail(const OpCall *call)
{
        PointBound bound;
        if (call->op->run != pointwise_run_op || point_bind(call, &bound) != STATUS_OK)
                return false;
        bool divides = bound.kernel == &point_div_trunc || bound.kernel == &point_div_floor ||
                       bound.kernel == &point_remainder || bound.kernel == &point_fmod;
        return strchr(bound.op->args, 'f') != NULL ||
               (divides && !dtype_is_float(bound.common) &&
                (bound.inputs[1].tensor >= 0 || bound.inputs[1].number.i == 0));
}

Status pointwise_prepare(const OpCall *call, void *out_state)
{
        return point_bind(call, out_state);
}

// masked_fill treats a 0-dim value tensor like a number.
static Status check_values(const OpRun *run, const PointBound *bound)
{
        for (int k = 0; k < bound->n_inputs; k++) {
                const PointInput *input = &bound->inputs[k];
                if (bound->op->args[input->arg] != 'f' || point_is_complex(bound->common))
                        continue;
                Dtype dtype = run->in_meta[input->tensor]->dtype;
                const void *data = run->in[input->tensor];
                bool is_float = dtype_is_float(dtype);
                TRY(number_check_fits(is_float ? value_float(element_as_f64(dtype, data))
                                               : value_int(element_as_i64(dtype, data)),
                                      bound->common));
        }
        return STATUS_OK;
}

Status pointwise_run_op(const OpRun *run)
{
        const PointBound *bound = run->state;
        TRY(check_values(run, bound));
        PointOperand operands[POINT_MAX_INPUTS];
        TensorMeta numbers[POINT_MAX_INPUTS];
        for (int k = 0; k < bound->n_inputs; k++) {
                const PointInput *input = &bound->inputs[k];
                PointOperand *operand = &operands[k];
                if (input->tensor >= 0) {
                        operand->data = run->in[input->tensor];
                        operand->meta = run->in_meta[input->tensor];
                } else {
                        numbers[k] = (TensorMeta){ .dtype = input->dtype };
                        operand->data = &input->number;
                        operand->meta = &numbers[k];
                }
                operand->exact = k == 1 && bound->op->exact_scalar && meta_numel(operand->meta) == 1 &&
                                 dtype_is_float(bound->common);
        }
        return pointwise_run(run->ctx, &(PointCall){ bound->kernel, bound->common, &bound->params, operands },
                             run->out[0], run->out_meta[0]);
}

Cost pointwise_cost(const OpCall *call)
{
        const TensorMeta *out = &call->outs[0].meta;
        int64_t numel = meta_numel(out), bytes = numel * dtype_info[out->dtype].bytes;
        for (uint32_t i = 0; i < call->n_args; i++) {
                const TensorMeta *meta =
                        call->schema->args[i].type == ARG_TENSOR && !call->schema->args[i].is_list
                                ? arg_meta(call, (int)i)
                                : NULL;
                if (meta != NULL)
                        bytes += meta_numel(meta) * dtype_info[meta->dtype].bytes;
        }
        return (Cost){ .flops = numel, .bytes = bytes };
}
