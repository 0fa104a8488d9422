// SPDX-License-Identifier: Apache-2.0
// Every overload with its schema, how it runs, its dtypes and how many golden cases it has; then
// the names of torch, Tensor methods and module classes that lead to them.
#include "api/routes/ops_list.h"
#include "core/targets/targets.h"

static void write_dtypes(const OpDef *op, Text *out)
{
        bool first = true;
        text_add(out, ", \"dtypes\": ");
        if (op->dtypes == 0) {
                text_add(out, "null");
                return;
        }
        text_add_char(out, '[');
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
                if ((op->dtypes >> dtype & 1) != 0) {
                        text_addf(out, "%s\"%s\"", first ? "" : ", ", dtype_info[dtype].name);
                        first = false;
                }
        text_add_char(out, ']');
}

static void write_names(const char *member, TargetKind kind, Text *out)
{
        const char *name;
        text_addf(out, ",\n\"%s\": [", member);
        for (uint32_t i = 0; (name = target_name_at(kind, i)) != NULL; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, name);
        }
        text_add_char(out, ']');
}

Status ops_list_json(Text *out)
{
        bool first = true;
        text_add(out, "{\"ops\": [");
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                if ((overload->op->flags & OP_HIDDEN) != 0)
                        continue;
                text_add(out, first ? "\n" : ",\n");
                first = false;
                text_add(out, "{\"target\": ");
                text_add_json(out, overload->target);
                text_add(out, ", \"schema\": ");
                text_add_json(out, overload->schema.text);
                text_addf(out, ", \"runs_as\": \"%s\"",
                          overload->inplace ? "in-place twin" : op_kind(overload->op));
                write_dtypes(overload->op, out);
                text_addf(out, ", \"golden_cases\": %u}", op_golden_cases(overload));
        }
        text_add_char(out, ']');
        write_names("functions", TARGET_FUNCTIONS, out);
        write_names("methods", TARGET_METHODS, out);
        write_names("modules", TARGET_MODULES, out);
        text_add(out, "}\n");
        return text_status(out);
}

Status ops_list_text(Text *out)
{
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                if ((overload->op->flags & OP_HIDDEN) == 0)
                        text_addf(out, "%-14s %s\n",
                                  overload->inplace ? "in-place twin" : op_kind(overload->op),
                                  overload->target + sizeof("torch.ops.") - 1);
        }
        const char *name;
        for (uint32_t i = 0; (name = target_name_at(TARGET_MODULES, i)) != NULL; i++)
                text_addf(out, "%-14s %s\n", "module", name);
        return text_status(out);
}
