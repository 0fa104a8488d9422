// SPDX-License-Identifier: Apache-2.0
// program_print.c: the listing. One line per instruction: implementation, places of operands,
// authored nodes; below it the fused calls, or why a pointwise call was not fused.
#include "core/program/program.h"

#include "core/graph/print.h"
#include "core/ops/arguments.h"
#include "core/ops/fused.h"
#include "core/program/reasons.h"

static void print_operand(const Program *program, const Operand *operand, const TensorMeta *meta, Text *out)
{
        char shape[160];
        if (meta == NULL) {
                text_add(out, "None");
                return;
        }
        text_addf(out, "%s%s ", dtype_info[meta->dtype].name,
                  shape_text(meta->rank, meta->size, shape, sizeof(shape)));
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

// ---- why ----
static bool is_pointwise(const RecordedCall *call)
{
        return (call->call.op->flags & OP_ELEMENTWISE) != 0 || call->call.op->expand != NULL ||
               fused_takes(&call->call);
}

// `reasons` NULL: there is no memory for them.
static void print_why(const Reasons *reasons, const Instruction *instruction, Text *out)
{
        const RecordedCall *call = instruction->call;
        if (call == NULL || call->call.n_outs == 0 || call->outs[0] == NULL)
                return;
        if (reasons_is_fused(call)) {
                const Graph *body = call->call.args[FUSED_BODY].graph;
                uint32_t n = 0;
                for (uint32_t i = 0; i < body->n_nodes; i++)
                        n += node_is_call(body->nodes[i]);
                text_addf(out, "        fused: %u call%s in one pass over memory\n", n, n == 1 ? "" : "s");
        } else if (call->n_nodes > 1) {
                text_addf(out, "        joined: %u nodes in one call\n", call->n_nodes);
        } else if (reasons != NULL && is_pointwise(call) && reasons_covers(call)) {
                text_add(out, "        alone: ");
                reason_add(reasons, call, out);
                text_add_char(out, '\n');
        }
}

static void print_tail(const Program *program, Text *out)
{
        const EagerTail *tail = program->recording->tail;
        text_addf(out,
                  "eager tail: %u node%s on real tensors, after the instructions; from them:", tail->n_nodes,
                  tail->n_nodes == 1 ? "" : "s");
        for (uint32_t i = 0; i < tail->n_known; i++)
                text_addf(out, "%s %s", i == 0 ? "" : ",", tail->known[i]->name);
        text_add(out, tail->n_known == 0 ? " nothing\n" : "\n");
        for (uint32_t i = 0; i < tail->n_nodes; i++) {
                text_add(out, "      ");
                node_print(tail->nodes[i], out);
                text_add_char(out, '\n');
        }
}

void program_print(const Program *program, Text *out)
{
        const PlanFigures *figures = &program->figures;
        Reasons reasons;
        bool explained = reasons_init(&reasons, program->recording) == STATUS_OK;
        text_addf(out, "program %s, %u instructions, %d thread%s\n", program->id.hex, program->n_code,
                  program->n_threads, program->n_threads == 1 ? "" : "s");
        for (uint32_t i = 0; i < program->n_code; i++) {
                print_instruction(program, i, out);
                print_why(explained ? &reasons : NULL, &program->code[i], out);
        }
        reasons_deinit(&reasons);
        if (program->recording->tail != NULL)
                print_tail(program, out);
        text_addf(
                out,
                "arena %zu bytes (without reuse %zu, lower bound %zu), outputs %zu, constants made here %zu",
                figures->arena_bytes, figures->naive_bytes, figures->lower_bound_bytes, figures->output_bytes,
                figures->constant_bytes);
}
