// SPDX-License-Identifier: Apache-2.0
// program.c: life and listing of programs.
#include "core/program/program.h"

#include <inttypes.h>

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
        return sizeof(*program) + program->arena.total_bytes + program->recording->arena.total_bytes + program->figures.constant_bytes;
}

static void print_operand(const Program *program, const Operand *operand, const TensorMeta *meta, Text *out)
{
        char shape[160];
        if (meta == NULL) {
                text_add(out, "None");
                return;
        }
        text_addf(out, "%s%s ", dtype_info[meta->dtype].name, shape_text(meta->rank, meta->size, shape, sizeof(shape)));
        if (operand->slot == SLOT_CONSTANT)
                text_add(out, "constant");
        else if (operand->slot == SLOT_ARENA)
                text_addf(out, "arena+%zu", (size_t)operand->offset);
        else if (operand->slot < SLOT_FIRST_INPUT + program->n_inputs)
                text_addf(out, "input %u", operand->slot - SLOT_FIRST_INPUT);
        else
                text_addf(out, "output %u", operand->slot - SLOT_FIRST_INPUT - program->n_inputs);
        if (operand->slot >= SLOT_FIRST_INPUT && operand->offset != 0)
                text_addf(out, "+%zu", (size_t)operand->offset);
}

static void print_instruction(const Program *program, uint32_t i, Text *out)
{
        const Instruction *instruction = &program->code[i];
        const Operand *operands = &program->operands[instruction->first_operand];
        uint32_t n_out = instruction->run.n_out, n_in = instruction->run.n_in;
        text_addf(out, "%4u  %-28s ", i, instruction->name);
        for (uint32_t k = 0; k < n_out; k++) {
                text_add(out, k > 0 ? ", " : "");
                print_operand(program, &operands[k], instruction->run.out_meta[k], out);
        }
        text_add(out, n_out > 0 ? " = (" : "(");
        for (uint32_t k = 0; k < n_in; k++) {
                text_add(out, k > 0 ? ", " : "");
                print_operand(program, &operands[n_out + k], instruction->run.in_meta[k], out);
        }
        text_add(out, ")");
        for (uint32_t k = 0; instruction->call != NULL && k < instruction->call->n_nodes; k++)
                text_addf(out, "%s%s", k == 0 ? "  # " : ", ", instruction->call->nodes[k]->name);
        text_add_char(out, '\n');
}

void program_print(const Program *program, Text *out)
{
        const PlanFigures *figures = &program->figures;
        text_addf(out, "program %s, %u instructions, %d thread%s\n", program->id.hex, program->n_code, program->n_threads,
                  program->n_threads == 1 ? "" : "s");
        for (uint32_t i = 0; i < program->n_code; i++)
                print_instruction(program, i, out);
        text_addf(out, "arena %zu bytes (without reuse %zu, lower bound %zu), outputs %zu, constants made here %zu", figures->arena_bytes,
                  figures->naive_bytes, figures->lower_bound_bytes, figures->output_bytes, figures->constant_bytes);
}
