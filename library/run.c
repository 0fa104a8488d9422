// SPDX-License-Identifier: Apache-2.0
// One run on the calling thread: the server's steps (core/engine/task.h) without queues.
#include <stdio.h>
#include "api/formats/profile_text.h"
#include "library/model.h"
#include "library/tensors.h"

enum { MAX_THREADS = 256 };

struct fxserve_result {
        Value *values; // contiguous tensors of their own memory, or what is no tensor
        uint32_t n;
        Text profile;
};

void fxserve_result_free(fxserve_result *result)
{
        if (result == NULL)
                return;
        for (uint32_t i = 0; i < result->n; i++)
                value_clear(&result->values[i]);
        free(result->values);
        text_deinit(&result->profile);
        free(result);
}
DEFINE_CLEANUP(fxserve_result, fxserve_result_free)

// ---- inputs ----
static Status take_input(const DLTensor *from, const Input *input, Budget *budget, Value *out)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(tensor_from_dl(from, budget, &tensor));
        if (input->value_kind == VALUE_INT && tensor->meta.rank == 0) {
                out->kind = VALUE_INT;
                return tensor_item_i64(tensor, &out->i);
        }
        *out = value_tensor_take(take_ptr(tensor));
        return STATUS_OK;
}

static Status take_inputs(const fxserve_model *model, const DLTensor *const *inputs, int n, RunTask *task)
{
        if (n < 0 || (uint32_t)n != model->n_inputs)
                return fail(STATUS_INPUT, "%d inputs were given; the model has %u", n, model->n_inputs);
        TRY(run_task_open(task));
        for (uint32_t i = 0, next = 0; i < task->n_inputs; i++) {
                const Input *input = task->user[i];
                const DLTensor *from = input->kind == INPUT_USER ? inputs[next++] : NULL;
                if (from != NULL)
                        TRY(failure_at_argument(take_input(from, input, &task->budget, &task->inputs[i]),
                                                input->placeholder->target));
        }
        return STATUS_OK;
}

static Status take_options(const fxserve_options *options, RunTask *task)
{
        static const RunMode modes[] = { [FXSERVE_AUTO] = RUN_MODE_AUTO,
                                         [FXSERVE_COMPILED] = RUN_MODE_COMPILED,
                                         [FXSERVE_EAGER] = RUN_MODE_EAGER };
        static const Precision precisions[] = { [FXSERVE_F32] = PRECISION_F32,
                                                [FXSERVE_BF16] = PRECISION_BF16,
                                                [FXSERVE_INT8] = PRECISION_INT8 };
        if (options->mode < 0 || options->mode > FXSERVE_EAGER)
                return fail(STATUS_VALUE, "there is no mode %d", (int)options->mode);
        if (options->precision < 0 || options->precision > FXSERVE_INT8)
                return fail(STATUS_VALUE, "there is no precision %d", (int)options->precision);
        if (options->precision != FXSERVE_F32 && options->mode == FXSERVE_EAGER)
                return fail(STATUS_VALUE,
                            "an eager run computes in float32: mode COMPILED takes a precision");
        if (options->threads < 0 || options->threads > MAX_THREADS)
                return fail(STATUS_VALUE, "%d threads: 1 to %d are possible", (int)options->threads,
                            MAX_THREADS);
        task->precision = precisions[options->precision];
        task->mode = options->precision == FXSERVE_F32 ? modes[options->mode] : RUN_MODE_COMPILED;
        task->ctx.n_threads = MAX(1, options->threads);
        if (options->seeded != 0)
                generator_seed(&task->generator, options->seed);
        return STATUS_OK;
}

// ---- outputs ----
// A copy of its own: results may be views of weights, of inputs, or of each other.
static Status own_value(Value value, Value *out)
{
        _cleanup_(tensor_unrefp) Tensor *copy = NULL;
        if (value.kind != VALUE_TENSOR) {
                *out = value_ref(value);
                return STATUS_OK;
        }
        TensorMeta meta = value.tensor->meta;
        meta_set_contiguous(&meta);
        TRY(tensor_new(&meta, NULL, &copy));
        if (meta_numel(&meta) > 0)
                tensor_copy_data(value.tensor, copy);
        *out = value_tensor_take(take_ptr(copy));
        return STATUS_OK;
}

static Status read_result(const RunTask *task, fxserve_result *result)
{
        OutputList list = { .n = 0 };
        Status status = output_list_of(task->graph, &task->result.value, &list);
        if (status == STATUS_OK && (result->values = new_array(list.n, sizeof(*result->values))) == NULL)
                status = fail_memory();
        for (uint32_t i = 0; status == STATUS_OK && i < list.n; i++, result->n++)
                status = own_value(list.leaves[i].value, &result->values[i]);
        output_list_deinit(&list);
        return status;
}

// ---- the run ----
static Status execute(fxserve_model *model, RunTask *task)
{
        IdleFrame *frame = model_take_frame(model);
        if (frame == NULL)
                return fail_memory();
        int threads = caller_threads();
        Status status = run_task_bind(task);
        if (status == STATUS_OK)
                status = engine_plan_here(model->engine, &task->plan);
        if (status == STATUS_OK)
                status = run_task_execute(task, &frame->frame);
        caller_threads_restore(threads);
        model_give_frame(model, frame);
        return status;
}

static Status run(fxserve_model *model, const fxserve_options *options, RunTask *task, fxserve_result *result)
{
        TRY(execute(model, task));
        TRY(read_result(task, result));
        if (options == NULL || options->profile == 0)
                return STATUS_OK;
        snprintf(task->profile->id, sizeof(task->profile->id), "local");
        task->profile->total_ns = clock_ns() - task->received_ns;
        profile_write_json(task->profile, &result->profile);
        return text_status(&result->profile);
}

fxserve_result *fxserve_run(fxserve_model *model, const fxserve_options *options,
                            const DLTensor *const *inputs, int n_inputs)
{
        _cleanup_(fxserve_result_freep) fxserve_result *result = calloc(1, sizeof(*result));
        RunTask task;
        run_task_init(&task);
        task.received_ns = clock_ns();
        task.ctx.n_threads = 1;
        task.graph = graph_ref(model->graph);
        Status status = result == NULL ? fail_memory() : STATUS_OK;
        if (status == STATUS_OK && options != NULL)
                status = take_options(options, &task);
        if (status == STATUS_OK)
                status = take_inputs(model, inputs, n_inputs, &task);
        if (status == STATUS_OK)
                status = run(model, options, &task, result);
        run_task_deinit(&task);
        return status == STATUS_OK ? take_ptr(result) : NULL;
}

// ---- the result ----
int fxserve_result_n(const fxserve_result *result)
{
        return (int)result->n;
}

const char *fxserve_result_profile(const fxserve_result *result)
{
        if (result->profile.data == NULL)
                (void)fail(STATUS_VALUE, "the run was not asked for a profile (fxserve_options.profile)");
        return result->profile.data;
}

DLManagedTensor *fxserve_result_tensor(const fxserve_result *result, int index)
{
        DLManagedTensor *managed = NULL;
        _cleanup_(tensor_unrefp) Tensor *number = NULL;
        if (index < 0 || (uint32_t)index >= result->n) {
                (void)fail(STATUS_VALUE, "there is no output %d; the result has %u", index, result->n);
                return NULL;
        }
        Value value = result->values[index];
        if (value.kind == VALUE_TENSOR)
                (void)tensor_to_dl(value.tensor, &managed);
        else if (!value_is_number(value))
                (void)fail(STATUS_VALUE, "output %d is of type %s, no tensor or number", index,
                           value_kind_name(value.kind));
        else if (value_wrap_number(value, NULL, &number) == STATUS_OK)
                (void)tensor_to_dl(number, &managed);
        return managed;
}
