// SPDX-License-Identifier: Apache-2.0
#include "api/readers/operators.h"
#include <string.h>
#include "api/readers/packed_on.h"
#include "core/base/limits.h"
#include "core/edit/actions.h"
#include "core/edit/content.h"

typedef struct Operators {
        const Upload *upload;
        Graph **graphs; // counted
        bool *called;
} Operators;

// "mylib.foo" names every overload of it, "mylib.foo.default" one.
static bool is_call_of(const Node *node, const char *name)
{
        static const char prefix[] = "torch.ops.";
        size_t n = strlen(name);
        if (node->op != OP_CALL_FUNCTION)
                return false;
        const char *target = node->target;
        if (strncmp(target, prefix, sizeof(prefix) - 1) == 0)
                target += sizeof(prefix) - 1;
        return strncmp(target, name, n) == 0 && (target[n] == '\0' || target[n] == '.');
}

static Status read_graphs(Operators *operators)
{
        const Upload *upload = operators->upload;
        for (uint32_t i = 0; i < upload->n_operators; i++) {
                Upload one = { .n_parts = 0 };
                Status status = upload_split(upload->operators[i].bytes, "", &one);
                if (status == STATUS_OK)
                        status = upload_decode(one.parts, one.n_parts, NULL, false, &operators->graphs[i]);
                upload_deinit(&one);
                if (status != STATUS_OK)
                        return failure_at_argument(status, upload->operators[i].part);
        }
        return STATUS_OK;
}

static Status replace_call(Operators *operators, Edit *edit, Node *node, uint32_t i)
{
        const char *name = operators->upload->operators[i].part + strlen(UPLOAD_OPERATOR);
        Value value = value_none();
        TRY(edit_step(edit));
        Status status = edit_call_graph(edit, node, operators->graphs[i], name, &value);
        value_clear(&value);
        operators->called[i] = true;
        return failure_at_argument(status, operators->upload->operators[i].part);
}

// Every call that is there now; *out_any: there were some.
static Status replace_calls(Operators *operators, Edit *edit, bool *out_any)
{
        *out_any = false;
        for (Node *node = edit_first(edit), *next; node != NULL; node = next) {
                next = edit_next(node);
                for (uint32_t i = 0; i < operators->upload->n_operators; i++) {
                        const char *name = operators->upload->operators[i].part + strlen(UPLOAD_OPERATOR);
                        if (!is_call_of(node, name))
                                continue;
                        *out_any = true;
                        TRY(replace_call(operators, edit, node, i));
                        break;
                }
        }
        return STATUS_OK;
}

static Status replace_all(Operators *operators, Edit *edit)
{
        bool any = operators->upload->n_operators > 0;
        TRY(read_graphs(operators));
        for (int64_t round = 0; any; round++) {
                if (round == limits.max_child_graphs)
                        return fail(
                                STATUS_TOO_LARGE,
                                "operators call each other more than %lld deep (max_child_graphs in GET /v1)",
                                (long long)limits.max_child_graphs);
                TRY(replace_calls(operators, edit, &any));
        }
        for (uint32_t i = 0; i < operators->upload->n_operators; i++)
                if (!operators->called[i])
                        return failure_at_argument(
                                fail(STATUS_INPUT, "the graph does not call %s",
                                     operators->upload->operators[i].part + strlen(UPLOAD_OPERATOR)),
                                operators->upload->operators[i].part);
        return STATUS_OK;
}

Status operators_inline(const Upload *upload, const Graph *base, const char *packed_on,
                        const RunContext *poll, Graph **out_graph)
{
        Operators operators = { .upload = upload };
        _cleanup_(edit_freep) Edit *edit = NULL;
        TRY(edit_new(base, &edit));
        edit_set_poll(edit, poll);
        operators.graphs = new_array(upload->n_operators, sizeof(Graph *));
        operators.called = new_array(upload->n_operators, sizeof(bool));
        Status status = operators.graphs == NULL || operators.called == NULL ? fail_memory()
                                                                             : replace_all(&operators, edit);
        if (status == STATUS_OK && packed_on != NULL)
                status = packed_on_tell(edit, packed_on);
        if (status == STATUS_OK)
                status = edit_finish(edit, out_graph);
        for (uint32_t i = 0; operators.graphs != NULL && i < upload->n_operators; i++)
                graph_unref(operators.graphs[i]);
        free(operators.graphs);
        free(operators.called);
        return status;
}

static void add_member(Text *recipe, const char *name, const char *text)
{
        if (text == NULL || text[0] == '\0')
                return;
        text_addf(recipe, "\"%s\": ", name);
        text_add_json(recipe, text);
        text_add(recipe, ", ");
}

Status operators_content(const Upload *upload, const StoreVersion *identified, const char *packed_on,
                         uint64_t out_content[4], Text *out_recipe)
{
        const uint64_t none[4] = { 0 };
        text_addf(out_recipe, "{\"upload\": \"%s\", ", identified->id.hex);
        add_member(out_recipe, "model", identified->model);
        add_member(out_recipe, "packed_on", packed_on);
        text_add(out_recipe, "\"operators\": {");
        for (uint32_t i = 0; i < upload->n_operators; i++) {
                const UploadOperator *row = &upload->operators[i];
                HashHex digest = sha256_of(row->bytes->data, row->bytes->n_bytes);
                text_add(out_recipe, i == 0 ? "" : ", ");
                text_add_json(out_recipe, row->part + strlen(UPLOAD_OPERATOR));
                text_addf(out_recipe, ": \"%s\"", digest.hex);
        }
        text_add(out_recipe, "}}");
        TRY(text_status(out_recipe));
        edit_content(none, out_recipe->data, out_recipe->n, NULL, 0, out_content);
        return STATUS_OK;
}
