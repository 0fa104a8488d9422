// SPDX-License-Identifier: Apache-2.0
// Flattens outputs. Two sources of structure: an export's out_tree over its flat user outputs, and
// (FX JSON) the output node's own argument, in which a node's value may again be a container. Both
// are walked recursively under the caps their readers enforced (limits.max_nested_values), twice
// that at most.
#include "api/run/outputs.h"
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 512 };

typedef struct Path {
        char text[PATH_MAX_BYTES];
        size_t n;
        bool named; // some step was a key
} Path;

void output_list_deinit(OutputList *list)
{
        free(list->leaves);
        text_deinit(&list->structure);
        string_map_deinit(&list->names);
        string_map_deinit(&list->keys);
        arena_deinit(&list->arena);
        *list = (OutputList){ .n = 0 };
}

static size_t path_push(Path *path, const char *step)
{
        size_t before = path->n;
        int n = snprintf(path->text + path->n, sizeof(path->text) - path->n, "%s%s", path->n == 0 ? "" : ".",
                         step);
        path->n = MIN(path->n + (size_t)MAX(n, 0), sizeof(path->text) - 1);
        return before;
}

static void path_pop(Path *path, size_t before)
{
        path->n = before;
        path->text[before] = '\0';
}

// `wish`, or with the first suffix _1, _2 ... that is free. A name remembers where its search
// ended: 100,000 equal ones are still found at once.
static Status free_name(OutputList *list, StringMap *names, const char *wish, const char **out_name)
{
        const char *name = arena_text(&list->arena, wish, strlen(wish)), *wished = name;
        uintptr_t next = name == NULL ? 0 : (uintptr_t)string_map_get(names, name);
        bool taken = next != 0;
        while (name != NULL && taken) {
                name = arena_format(&list->arena, "%s_%llu", wish, (unsigned long long)next++);
                taken = name != NULL && string_map_get(names, name) != NULL;
        }
        if (name == NULL)
                return fail_memory();
        if (name != wished)
                TRY(string_map_set(names, wished, (void *)next, NULL));
        *out_name = name;
        return string_map_set(names, name, (void *)(uintptr_t)1, NULL);
}

static Status add_leaf(OutputList *list, const char *wish, const Node *node, Value value)
{
        const char *name;
        TRY(array_reserve(&list->leaves, &list->capacity, list->n + 1, sizeof(*list->leaves)));
        TRY(free_name(list, &list->names, wish, &name));
        size_t at = list->structure.n;
        text_add(&list->structure, "{\"$out\": ");
        text_add_int(&list->structure, list->n);
        text_add_char(&list->structure, '}');
        list->leaves[list->n++] = (OutputLeaf){
                .name = name, .node = node, .value = value, .at = at, .end = list->structure.n
        };
        return STATUS_OK;
}

// ---- an export's tree ----
static Status add_tree(OutputList *list, const Tree *tree, const Output *outputs, const Value *values,
                       Path *path)
{
        if (tree->kind == TREE_LEAF) {
                const Output *output = &outputs[tree->first_leaf];
                const Node *node = output->arg.kind == VALUE_NODE ? output->arg.node : NULL;
                const char *name = path->named    ? path->text
                                   : node != NULL ? node->name
                                   : path->n > 0  ? path->text
                                                  : "output";
                return add_leaf(list, name, node, values == NULL ? value_none() : values[tree->first_leaf]);
        }
        bool by_key = tree->kind == TREE_DICT || tree->kind == TREE_NAMEDTUPLE;
        bool was_named = path->named;
        text_add_char(&list->structure, by_key ? '{' : '[');
        for (uint32_t i = 0; i < tree->n; i++) {
                char index[16];
                snprintf(index, sizeof(index), "%u", i);
                size_t before = path_push(path, by_key ? tree->keys[i] : index);
                path->named = was_named || by_key;
                text_add(&list->structure, i == 0 ? "" : ", ");
                if (by_key) {
                        text_add_json(&list->structure, tree->keys[i]);
                        text_add(&list->structure, ": ");
                }
                TRY(add_tree(list, tree->children[i], outputs, values, path));
                path_pop(path, before);
        }
        path->named = was_named;
        text_add_char(&list->structure, by_key ? '}' : ']');
        return STATUS_OK;
}

static bool is_flat_tree(const Tree *tree)
{
        if (tree->kind == TREE_LEAF)
                return true;
        if (tree->kind != TREE_TUPLE)
                return false;
        for (uint32_t i = 0; i < tree->n; i++)
                if (tree->children[i]->kind != TREE_LEAF)
                        return false;
        return true;
}

static Status list_export(const Graph *graph, const Value *value, OutputList *list)
{
        const Signature *signature = &graph->signature;
        uint32_t n_mutations = 0;
        Path path = { .n = 0 };
        while (n_mutations < signature->n_outputs && signature->outputs[n_mutations].kind != OUTPUT_USER)
                n_mutations++;
        const Value *values = NULL;
        if (value != NULL) {
                if (!value_is_sequence(*value) || value->seq->n != signature->n_outputs)
                        return fail(STATUS_INTERNAL,
                                    "the run gave another number of outputs than the signature has");
                values = value->seq->items + n_mutations;
        }
        TRY(add_tree(list, signature->out_tree, signature->outputs + n_mutations, values, &path));
        list->plain = is_flat_tree(signature->out_tree);
        return text_status(&list->structure);
}

// ---- the output node's own argument ----
// A place in the structure. `authored` says which node it comes from; below a node only the run's
// value has structure.
typedef struct OutputPlace {
        Value authored;
        const Node *node; // that the place is in; NULL: none yet
        Value value;      // VALUE_NONE when there was no run
        bool have_value;
} OutputPlace;

static Status add_value(OutputList *list, OutputPlace place, Path *path);

static Status add_item(OutputList *list, const char *step, bool named, OutputPlace item, Path *path)
{
        bool was_named = path->named;
        size_t before = path_push(path, step);
        path->named = was_named || named;
        TRY(add_value(list, item, path));
        path_pop(path, before);
        path->named = was_named;
        return STATUS_OK;
}

static Value item_of(Value container, uint32_t i)
{
        return container.kind == VALUE_DICT ? container.dict->items[i].value : container.seq->items[i];
}

static Status add_container(OutputList *list, const OutputPlace *place, Path *path)
{
        Value shape = place->authored;
        bool is_dict = shape.kind == VALUE_DICT;
        bool named = is_dict || shape.seq->fields != NULL;
        uint32_t n = is_dict ? shape.dict->n : shape.seq->n;
        text_add_char(&list->structure, is_dict ? '{' : '[');
        for (uint32_t i = 0; i < n; i++) {
                char index[16];
                snprintf(index, sizeof(index), "%u", i);
                const char *step = is_dict ? shape.dict->items[i].key->text
                                   : named ? shape.seq->fields[i]
                                           : index;
                OutputPlace item = *place;
                item.authored = item_of(shape, i);
                item.value = place->have_value ? item_of(place->value, i) : value_none();
                text_add(&list->structure, i == 0 ? "" : ", ");
                if (is_dict) {
                        text_add_json(&list->structure, step);
                        text_add(&list->structure, ": ");
                }
                TRY(add_item(list, step, named, item, path));
        }
        text_add_char(&list->structure, is_dict ? '}' : ']');
        return STATUS_OK;
}

static Status add_value(OutputList *list, OutputPlace place, Path *path)
{
        if (place.authored.kind == VALUE_NODE) {
                place.node = place.authored.node;
                if (place.have_value)
                        place.authored = place.value;
        }
        if (place.authored.kind == VALUE_DICT || value_is_sequence(place.authored))
                return add_container(list, &place, path);
        const char *name = path->named ? path->text : place.node != NULL ? place.node->name : "output";
        return add_leaf(list, name, place.node, place.have_value ? place.value : value_none());
}

static bool is_flat_value(Value value)
{
        if (value.kind == VALUE_DICT)
                return false;
        if (!value_is_sequence(value))
                return true;
        for (uint32_t i = 0; value.kind == VALUE_TUPLE && i < value.seq->n; i++)
                if (value_is_sequence(value.seq->items[i]) || value.seq->items[i].kind == VALUE_DICT)
                        return false;
        return value.kind == VALUE_TUPLE;
}

Status output_list_of(const Graph *graph, const Value *value, OutputList *out_list)
{
        *out_list = (OutputList){ .n = 0 };
        arena_init(&out_list->arena, 0);
        if (graph->signature.out_tree != NULL)
                return list_export(graph, value, out_list);
        Path path = { .n = 0 };
        OutputPlace place = { .authored = graph->output->args.seq->items[0],
                              .value = value == NULL ? value_none() : *value,
                              .have_value = value != NULL };
        TRY(add_value(out_list, place, &path));
        out_list->plain = is_flat_value(value == NULL ? place.authored : *value);
        return text_status(&out_list->structure);
}

Status output_list_of_nodes(const Node *const *nodes, const Value *values, uint32_t n, OutputList *out_list)
{
        *out_list = (OutputList){ .n = 0 };
        arena_init(&out_list->arena, 0);
        out_list->plain = true;
        text_add_char(&out_list->structure, '{');
        for (uint32_t i = 0; i < n; i++) {
                Path path = { .n = 0 };
                OutputPlace place = { .authored = { .kind = VALUE_NODE, .node = (Node *)(uintptr_t)nodes[i] },
                                      .node = nodes[i],
                                      .value = values[i],
                                      .have_value = true };
                const char *key;
                TRY(free_name(out_list, &out_list->keys, nodes[i]->name, &key));
                text_add(&out_list->structure, i == 0 ? "" : ", ");
                text_add_json(&out_list->structure, key);
                text_add(&out_list->structure, ": ");
                TRY(add_value(out_list, place, &path));
        }
        text_add_char(&out_list->structure, '}');
        return text_status(&out_list->structure);
}

void output_write_name(const OutputLeaf *leaf, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, leaf->name);
        text_add(out, ", \"node\": ");
        if (leaf->node == NULL)
                text_add(out, "null");
        else
                text_add_json(out, leaf->node->name);
}
