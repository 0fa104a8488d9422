// SPDX-License-Identifier: Apache-2.0
// recipe.c: JSON -> values and steps, trusting what the generator wrote.
#include "tests/edit/recipe.h"

#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "core/edit/passes.h"
#include "core/edit/pattern.h"
#include "core/targets/targets.h"

static void must(Status status)
{
        if (status != STATUS_OK) {
                fprintf(stderr, "%s\n", failure_current()->message);
                abort();
        }
}

static Node *node_named(const Edit *edit, const char *name)
{
        Node *node = edit_node(edit, name);
        if (node == NULL) {
                fprintf(stderr, "no node %s\n", name);
                abort();
        }
        return node;
}

static Value items_value(const Edit *edit, ValueKind kind, const json_t *json)
{
        Seq *seq;
        must(seq_new((uint32_t)json_array_size(json), &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = recipe_value(edit, json_array_get(json, i));
        return value_seq_take(kind, seq);
}

static Value object_value(const Edit *edit, const json_t *json)
{
        const json_t *tuple = json_object_get(json, "$tuple"), *slice = json_object_get(json, "$slice");
        if (tuple != NULL || slice != NULL)
                return items_value(edit, tuple != NULL ? VALUE_TUPLE : VALUE_SLICE,
                                   tuple != NULL ? tuple : slice);
        Dict *dict;
        must(dict_new((uint32_t)json_object_size(json), &dict));
        uint32_t n = 0;
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)json, key, item)
        {
                must(str_new(key, strlen(key), &dict->items[n].key));
                dict->items[n++].value = recipe_value(edit, item);
        }
        return (Value){ .kind = VALUE_DICT, .dict = dict };
}

Value recipe_value(const Edit *edit, const json_t *json)
{
        const char *text = json_string_value(json);
        Value value = value_none();
        if (text != NULL && text[0] == '%')
                return (Value){ .kind = VALUE_NODE, .node = node_named(edit, text + 1) };
        switch (json == NULL ? JSON_NULL : json_typeof(json)) {
        case JSON_STRING:
                must(value_str_new(text, strlen(text), &value));
                return value;
        case JSON_INTEGER:
                return value_int(json_integer_value(json));
        case JSON_REAL:
                return value_float(json_real_value(json));
        case JSON_ARRAY:
                return items_value(edit, VALUE_LIST, json);
        case JSON_OBJECT:
                return object_value(edit, json);
        case JSON_NULL:
                return value;
        default:
                return value_bool(json_is_true(json));
        }
}

Graph *recipe_graph(const json_t *document)
{
        char *text = json_dumps(document, 0);
        Graph *graph;
        CheckReport report;
        must(targets_init());
        must(fx_json_read(text, strlen(text), NULL, &graph));
        free(text);
        must(graph_resolve(graph, &report));
        must(check_report_status(&report, graph));
        check_report_deinit(&report);
        return graph;
}

static const char *word(const json_t *json, const char *key)
{
        return json_string_value(json_object_get(json, key));
}

static Value args_of(const Edit *edit, const json_t *json)
{
        const json_t *args = json_object_get(json, "args");
        return args == NULL ? value_none() : items_value(edit, VALUE_TUPLE, args);
}

static Opcode opcode(const char *name)
{
        Opcode op = OP_PLACEHOLDER;
        while (strcmp(opcode_names[op], name) != 0)
                op++;
        return op;
}

static EditNew new_node(const Edit *edit, const json_t *json)
{
        return (EditNew){ .op = opcode(word(json, "op")),
                          .name = word(json, "name"),
                          .target = word(json, "target"),
                          .args = args_of(edit, json),
                          .kwargs = recipe_value(edit, json_object_get(json, "kwargs")) };
}

static Status set_args(Edit *edit, Node *node, const json_t *json)
{
        Value args = args_of(edit, json), kwargs = recipe_value(edit, json_object_get(json, "kwargs"));
        return edit_set_args(edit, node, args.kind == VALUE_NONE ? value_ref(node->args) : args,
                             kwargs.kind == VALUE_NONE ? value_ref(node->kwargs) : kwargs);
}

static Node *other(const Edit *edit, const json_t *json, const char *key)
{
        return word(json, key) == NULL ? NULL : node_named(edit, word(json, key));
}

static Value with(const Edit *edit, const json_t *json)
{
        return (Value){ .kind = VALUE_NODE, .node = other(edit, json, "with") };
}

static Status run_pass(Edit *edit, const char *name)
{
        uint32_t n;
        for (uint32_t i = 0; i < n_edit_passes; i++) {
                if (strcmp(edit_passes[i].name, name) == 0)
                        return edit_passes[i].run(edit, &n);
        }
        fprintf(stderr, "no pass %s\n", name);
        abort();
}

static Status rewrite(Edit *edit, const json_t *json)
{
        Graph *pattern = recipe_graph(json_object_get(json, "pattern"));
        Graph *replacement = recipe_graph(json_object_get(json, "replacement"));
        EditPattern what = { .graph = pattern,
                             .ignore_literals = json_is_true(json_object_get(json, "ignore_literals")) };
        EditFinds finds = { 0 };
        Status status = edit_rewrite(edit, &what, replacement, &finds);
        edit_finds_deinit(&finds);
        graph_unref(pattern);
        graph_unref(replacement);
        return status;
}

Status recipe_step(Edit *edit, const json_t *json)
{
        const char *kind = word(json, "edit");
        if (json_object_get(json, "rewrite") != NULL)
                return rewrite(edit, json_object_get(json, "rewrite"));
        if (kind == NULL)
                return run_pass(edit, word(json, "pass"));
        Node *node = other(edit, json, "node"), *made;
        EditNew new = { .op = OP_OUTPUT };
        if (json_object_get(json, "new") != NULL)
                new = new_node(edit, json_object_get(json, "new"));
        if (strcmp(kind, "insert_before") == 0)
                return edit_insert_before(edit, node, &new, &made);
        if (strcmp(kind, "insert_after") == 0)
                return edit_insert_after(edit, node, &new, &made);
        if (strcmp(kind, "replace") == 0)
                return edit_replace(edit, node, &new, &made);
        if (strcmp(kind, "erase") == 0)
                return edit_erase(edit, node);
        if (strcmp(kind, "move_before") == 0)
                return edit_move_before(edit, node, other(edit, json, "at"));
        if (strcmp(kind, "move_after") == 0)
                return edit_move_after(edit, node, other(edit, json, "at"));
        if (strcmp(kind, "rename") == 0)
                return edit_rename(edit, node, word(json, "name"));
        if (strcmp(kind, "set_target") == 0)
                return edit_set_target(edit, node, word(json, "target"));
        if (strcmp(kind, "set_args") == 0)
                return set_args(edit, node, json);
        if (strcmp(kind, "replace_input") == 0)
                return edit_replace_input(edit, node, other(edit, json, "from"), with(edit, json));
        if (strcmp(kind, "replace_all_uses") == 0)
                return edit_replace_all_uses(edit, node, with(edit, json), NULL);
        if (strcmp(kind, "inline") == 0)
                return edit_inline(edit, node);
        if (strcmp(kind, "lint") == 0)
                return edit_lint(edit);
        fprintf(stderr, "unknown step %s\n", kind);
        abort();
}
