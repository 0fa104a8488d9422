// SPDX-License-Identifier: Apache-2.0
// program.c: life of programs.
#include "core/program/program.h"

Program *program_ref(const Program *program)
{
        Program *shared = (Program *)(uintptr_t)program;
        refcount_get(&shared->ref);
        return shared;
}

Program *program_unref(Program *program)
{
        if (program == NULL || !refcount_put(&program->ref))
                return NULL;
        for (uint32_t i = 0; i < program->n_packed; i++) {
                if (program->packed[i].free_impl != NULL)
                        program->packed[i].free_impl(program->packed[i].impl);
        }
        for (uint32_t i = 0; i < program->n_signature; i++)
                value_unref(program->signature[i]);
        choice_unref(program->choice);
        recording_free(program->recording);
        arena_deinit(&program->arena);
        free(program);
        return NULL;
}

static Status forget_bytes(void *context, const Value *leaf, Value *out)
{
        (void)context;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        Tensor *tensor;
        TRY(tensor_new_view(NULL, &leaf->tensor->meta, 0, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

Status signature_value(Value value, Value *out_value)
{
        return value_map(value, forget_bytes, NULL, out_value);
}

size_t program_bytes(const Program *program)
{
        return sizeof(*program) + program->arena.total_bytes + program->recording->arena.total_bytes +
               program->figures.constant_bytes + program->child_bytes;
}
