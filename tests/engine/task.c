// SPDX-License-Identifier: Apache-2.0
// Runs without a wire: a task is filled in by hand, bound and executed.
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/engine/task.h"
#include "core/targets/targets.h"

// x * s, where s is 2.0 unless it is given.
static const char scale[] =
        "{\"format\": \"fx/1\", \"nodes\": ["
        "{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"},"
        "{\"op\": \"placeholder\", \"name\": \"s\", \"target\": \"s\", \"args\": [2.0]},"
        "{\"op\": \"call_function\", \"name\": \"neg\", \"target\": \"torch.neg\", \"args\": [\"%x\"]},"
        "{\"op\": \"call_function\", \"name\": \"mul\", \"target\": \"torch.mul\", \"args\": [\"%x\", "
        "\"%s\"]},"
        "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%mul\"]}]}";

static Graph *decode(void)
{
        Storage *bytes = NULL;
        Graph *graph = NULL;
        cr_assert(ops_init() == STATUS_OK && targets_init() == STATUS_OK);
        cr_assert_eq(storage_new(sizeof(scale) - 1, false, NULL, &bytes), STATUS_OK);
        memcpy(bytes->data, scale, sizeof(scale) - 1);
        UploadPart part = { .name = "", .bytes = bytes };
        cr_assert_eq(upload_decode(&part, 1, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        storage_unref(bytes);
        return graph;
}

static void open_task(RunTask *task)
{
        run_task_init(task);
        task->graph = decode();
        cr_assert_eq(run_task_open(task), STATUS_OK);
        cr_assert_eq(task->n_inputs, 2);
        cr_assert(task->inputs[0].kind == VALUE_ABSENT && task->inputs[1].kind == VALUE_ABSENT);
}

static Value number_tensor(float number, Budget *budget)
{
        TensorMeta meta;
        Tensor *tensor = NULL;
        int64_t size[1] = { 1 };
        meta_init(&meta, DTYPE_F32, 1, size);
        cr_assert_eq(tensor_new(&meta, budget, &tensor), STATUS_OK);
        *(float *)tensor_data(tensor) = number;
        return value_tensor_take(tensor);
}

static float number_of(Value value)
{
        return *(const float *)tensor_data(value.tensor);
}

Test(task, it_needs_no_request_and_what_was_not_given_takes_its_default)
{
        RunTask task;
        open_task(&task);
        task.inputs[0] = number_tensor(3.0f, &task.budget);
        cr_assert_eq(run_task_bind(&task), STATUS_OK);
        cr_assert_eq(run_task_execute(&task, NULL), STATUS_OK);
        cr_expect_eq(number_of(task.result.value), 6.0f);
        cr_expect_str_eq(task.profile->signature, "x: float32[1]");
        run_task_deinit(&task);
}

Test(task, it_fetches_nodes_and_reads_what_was_given)
{
        RunTask task;
        open_task(&task);
        task.inputs[0] = number_tensor(3.0f, &task.budget);
        task.inputs[1] = value_float(5.0);
        cr_assert_eq(run_task_fetch(&task, string_map_get(&task.graph->node_by_name, "neg")), STATUS_OK);
        cr_assert_eq(run_task_bind(&task), STATUS_OK);
        cr_assert_eq(run_task_execute(&task, NULL), STATUS_OK);
        cr_assert_eq(task.result.n_fetched, 1);
        cr_expect_eq(number_of(task.result.fetched[0]), -3.0f);
        cr_expect_eq(number_of(task.result.value), 15.0f);
        cr_expect_str_eq(task.profile->signature, "x: float32[1], s: float");
        run_task_deinit(&task);
}

Test(task, a_missing_input_shows_when_it_is_bound)
{
        RunTask task;
        open_task(&task);
        cr_assert_eq(run_task_bind(&task), STATUS_INPUT);
        cr_expect_str_eq(failure_current()->argument, "x");
        run_task_deinit(&task);
}

Test(task, emptied_it_holds_no_memory_of_the_run)
{
        RunTask task;
        open_task(&task);
        task.inputs[0] = number_tensor(3.0f, &task.budget);
        cr_assert_eq(run_task_bind(&task), STATUS_OK);
        cr_assert_eq(run_task_execute(&task, NULL), STATUS_OK);
        cr_assert_gt(atomic_load(&task.budget.used), 0);
        run_task_empty(&task);
        cr_expect_eq(atomic_load(&task.budget.used), 0);
        cr_expect_null(task.graph);
        run_task_deinit(&task);
}
