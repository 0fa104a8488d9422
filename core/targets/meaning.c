// SPDX-License-Identifier: Apache-2.0
// meaning.c: the operators that a name, a call or a module class stands for, if it is one call. An
// operator's name stands for itself, a template for the operator it forwards to, and a row with
// code of its own for the first operator that it needs. Everything else has no meaning.
#include "core/targets/refuse.h"

#include <string.h>
#include "core/targets/module_table.h"
#include "core/targets/operators.h"

static void add_overload(Meaning *meaning, const Overload *overload)
{
        for (uint32_t i = 0; i < meaning->n; i++) {
                if (meaning->items[i] == overload)
                        return;
        }
        if (meaning->n < MEANING_MAX)
                meaning->items[meaning->n++] = overload;
}

static void add_all(Meaning *meaning, const Overload *const *overloads, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                add_overload(meaning, overloads[i]);
}

// "aten::pad|aten::constant_pad_nd aten::add": overloads of the first word's first alternative that
// the table has; with `name` only if the operator has it.
static void add_needed(Meaning *meaning, const char *needs, const char *name)
{
        char base[96];
        size_t n = strcspn(needs, " |.");
        if (n >= sizeof(base) || n < 6 || strncmp(needs, "aten::", 6) != 0)
                return;
        memcpy(base, needs, n);
        base[n] = '\0';
        uint32_t n_overloads;
        const Overload *const *overloads = op_overloads(base, &n_overloads);
        if (overloads != NULL && (name == NULL || strcmp(base + 6, name) == 0))
                add_all(meaning, overloads, n_overloads);
}

// Python's operators on tensors.
static void add_python_operator(Meaning *meaning, const char *name)
{
        const char *base = operator_base(name);
        uint32_t n;
        const Overload *const *overloads = base == NULL ? NULL : op_overloads(base, &n);
        if (overloads != NULL)
                add_all(meaning, overloads, n);
}

static void add_row_meaning(Meaning *meaning, const Overload *overload)
{
        const Schema *schema = &overload->schema;
        const OpDef *op = overload->op;
        bool on_anything = schema->n_args > 0 && schema->args[SELF].type == ARG_ANY;
        if (strcmp(schema->ns, "py") != 0) {
                add_overload(meaning, overload);
        } else if (op_is_template(op)) {
                const Template *template = op->row;
                add_all(meaning, template->overloads, template->n_overloads);
        } else if (op->row != NULL) {
                add_needed(meaning, op->row, schema->name);
        } else if (on_anything && schema->n_args <= 2) {
                add_python_operator(meaning, schema->name);
        }
}

void target_meaning(const Target *target, Meaning *out_meaning)
{
        *out_meaning = (Meaning){ 0 };
        for (uint32_t i = 0; i < target->n_overloads; i++)
                add_row_meaning(out_meaning, target->overloads[i]);
}

void overload_meaning(const Overload *overload, Meaning *out_meaning)
{
        *out_meaning = (Meaning){ 0 };
        add_row_meaning(out_meaning, overload);
}

void module_meaning(const char *type, Meaning *out_meaning)
{
        const ModuleEntry *entry = module_entry(type);
        *out_meaning = (Meaning){ 0 };
        if (entry == NULL)
                return;
        const char *needs = entry->class->needs;
        if (entry->class->run == NULL) {
                for (uint32_t i = 0; i < entry->emits.n_overloads; i++)
                        add_row_meaning(out_meaning, entry->emits.overloads[i]);
        } else if (needs != NULL && (strchr(needs, ' ') == NULL || strstr(needs, "_norm ") != NULL)) {
                add_needed(out_meaning, needs, NULL); // the second operator of a norm counts batches
        }
}

bool node_is_getitem(const Node *node)
{
        return node->op == OP_CALL_FUNCTION && strcmp(node->target, "_operator.getitem") == 0;
}

bool module_is_dropout(const char *type)
{
        return strcmp(type, "torch.nn.Dropout") == 0;
}

bool meaning_meets(const Meaning *a, const Meaning *b)
{
        for (uint32_t i = 0; i < a->n; i++) {
                for (uint32_t k = 0; k < b->n; k++) {
                        if (a->items[i] == b->items[k])
                                return true;
                }
        }
        return false;
}
