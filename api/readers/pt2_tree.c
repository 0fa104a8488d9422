// SPDX-License-Identifier: Apache-2.0
// pt2_tree.c: treespec strings of torch.utils._pytree, protocol 1: `[1, {"type": ..., "context":
// ..., "children_spec": [...]}]`. Recursion is capped at limits.max_nested_values. Known containers
// keep their kind; any other whose context lists keys (model outputs, dataclasses) reads as a dict.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "core/base/limits.h"

typedef struct TreeReader {
        Arena *scratch, *arena;
        JsonText namedtuple_fields;
        uint32_t n_leaves;
} TreeReader;

typedef struct Keys {
        const char **items;
        uint32_t n, capacity;
        bool are_keys; // false: the text is no list of keys
} Keys;

static void keys_deinit(Keys *keys)
{
        free(keys->items);
}

// ["a", 0, ...]: keys are texts, or numbers, which are kept as Python prints them.
static Status read_key_list(TreeReader *tree, JsonReader *reader, Keys *keys)
{
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                const char *key;
                TRY(json_next_item(reader, &more));
                if (!more) {
                        keys->are_keys = true;
                        return STATUS_OK;
                }
                JsonType type = json_peek(reader);
                if (type == JSON_STRING) {
                        TRY(json_read_string(reader, &key, NULL));
                } else if (type == JSON_NUMBER) {
                        JsonText number;
                        TRY(json_read_raw(reader, &number.text, &number.n));
                        key = arena_text(tree->scratch, number.text, number.n);
                } else {
                        return STATUS_OK;
                }
                char *copy = key == NULL ? NULL : arena_text(tree->arena, key, strlen(key));
                if (copy == NULL)
                        return fail_memory();
                TRY(array_reserve(&keys->items, &keys->capacity, keys->n + 1, sizeof(*keys->items)));
                keys->items[keys->n++] = copy;
        }
}

// Keys from a context: a list, or (dataclasses) a list whose first item is that list.
static Status read_keys(TreeReader *tree, JsonText text, Keys *keys)
{
        bool more;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, tree->scratch, &reader));
        if (json_peek(reader) != JSON_ARRAY)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *probe = NULL;
        TRY(json_text_open(text, tree->scratch, &probe));
        TRY(json_enter_array(probe));
        TRY(json_next_item(probe, &more));
        if (more && json_peek(probe) == JSON_ARRAY)
                return read_key_list(tree, probe, keys);
        return read_key_list(tree, reader, keys);
}

// The context as JSON of its own: most containers write it as text within the text.
static Status open_context(TreeReader *tree, JsonText context, JsonText *out_inner)
{
        *out_inner = context;
        if (context.n == 0 || context.text[0] != '"')
                return STATUS_OK;
        const char *inner;
        TRY(json_text_string(context, tree->scratch, &inner));
        *out_inner = (JsonText){ inner, strlen(inner) };
        return STATUS_OK;
}

static Status default_dict_keys(TreeReader *tree, JsonText context, Keys *keys)
{
        static const char *const names[] = { "dict_context" };
        JsonText field, inner;
        TRY(json_text_fields(context, "the context of a defaultdict", tree->scratch, names, 1, &field));
        TRY(open_context(tree, field, &inner));
        return inner.n == 0 ? STATUS_OK : read_keys(tree, inner, keys);
}

// Field names of a registered namedtuple: namedtuple_fields[type]["field_names"].
static Status namedtuple_keys(TreeReader *tree, const char *type, Keys *keys)
{
        static const char *const names[] = { "field_names" };
        JsonText entry, field;
        if (tree->namedtuple_fields.n == 0)
                return STATUS_OK;
        TRY(json_text_fields(tree->namedtuple_fields, "\"treespec_namedtuple_fields\"", tree->scratch, &type,
                             1, &entry));
        if (entry.n == 0)
                return STATUS_OK;
        TRY(json_text_fields(entry, "an entry of \"treespec_namedtuple_fields\"", tree->scratch, names, 1,
                             &field));
        return field.n == 0 ? STATUS_OK : read_keys(tree, field, keys);
}

static bool is_one_of(const char *type, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(names[i], type) == 0)
                        return true;
        }
        return false;
}

static Status set_kind(TreeReader *tree, const char *type, JsonText context, Keys *keys, Tree *node)
{
        static const char *const tuples[] = { "builtins.tuple", "torch.Size" };
        static const char *const lists[] = { "builtins.list", "collections.deque",
                                             "torch.fx.immutable_collections.immutable_list" };
        static const char *const dicts[] = { "builtins.dict", "collections.OrderedDict",
                                             "torch.fx.immutable_collections.immutable_dict" };
        JsonText inner;
        if (is_one_of(type, tuples, ARRAY_LENGTH(tuples)) || strncmp(type, "torch.return_types.", 19) == 0) {
                node->kind = TREE_TUPLE;
                return STATUS_OK;
        }
        if (is_one_of(type, lists, ARRAY_LENGTH(lists))) {
                node->kind = TREE_LIST;
                return STATUS_OK;
        }
        TRY(open_context(tree, context, &inner));
        node->kind = TREE_DICT;
        if (strcmp(type, "collections.namedtuple") == 0) {
                // Here the context is the name of the registered type.
                const char *name = NULL;
                if (inner.n > 0 && inner.text[0] == '"')
                        TRY(json_text_string(inner, tree->scratch, &name));
                else if (inner.n > 0)
                        name = arena_text(tree->scratch, inner.text, inner.n);
                node->kind = TREE_NAMEDTUPLE;
                if (name != NULL)
                        TRY(namedtuple_keys(tree, name, keys));
        } else if (strcmp(type, "collections.defaultdict") == 0) {
                TRY(default_dict_keys(tree, inner, keys));
        } else if (inner.n > 0) {
                TRY(read_keys(tree, inner, keys));
                if (!keys->are_keys && !is_one_of(type, dicts, ARRAY_LENGTH(dicts))) {
                        TRY(namedtuple_keys(tree, type, keys));
                        node->kind = TREE_NAMEDTUPLE;
                }
        }
        if (!keys->are_keys)
                return fail(STATUS_UNSUPPORTED,
                            "the structure of the inputs or outputs holds a \"%s\", whose members have no "
                            "names here; use tuples, lists or "
                            "dicts",
                            type);
        return STATUS_OK;
}

static Status read_tree(TreeReader *tree, JsonText text, int level, Tree **out_tree);

typedef struct Children {
        Tree **items;
        uint32_t n, capacity;
} Children;

static void children_deinit(Children *children)
{
        free(children->items);
}

static Status read_children(TreeReader *tree, JsonText text, int level, Children *children)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        if (text.n == 0)
                return STATUS_OK;
        TRY(json_text_open(text, tree->scratch, &reader));
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                JsonText raw;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(json_read_raw(reader, &raw.text, &raw.n));
                TRY(array_reserve(&children->items, &children->capacity, children->n + 1,
                                  sizeof(*children->items)));
                TRY(read_tree(tree, raw, level + 1, &children->items[children->n]));
                children->n++;
        }
}

static Status read_tree(TreeReader *tree, JsonText text, int level, Tree **out_tree)
{
        static const char *const names[] = { "type", "context", "children_spec" };
        JsonText fields[3];
        const char *type;
        if (level > limits.max_nested_values)
                return fail(STATUS_TOO_LARGE,
                            "the structure of the inputs or outputs is nested deeper than %lld levels "
                            "(max_nested_values in GET /v1)",
                            (long long)limits.max_nested_values);
        TRY(json_text_fields(text, "a treespec", tree->scratch, names, 3, fields));
        TRY(json_text_string(fields[0], tree->scratch, &type));
        Tree *node = arena_alloc(tree->arena, sizeof(*node));
        if (node == NULL)
                return fail_memory();
        node->first_leaf = tree->n_leaves;
        *out_tree = node;
        if (type == NULL) {
                node->kind = TREE_LEAF;
                node->n_leaves = 1;
                tree->n_leaves++;
                return STATUS_OK;
        }
        _cleanup_(keys_deinit) Keys keys = { 0 };
        _cleanup_(children_deinit) Children children = { 0 };
        TRY(set_kind(tree, type, fields[1], &keys, node));
        TRY(read_children(tree, fields[2], level, &children));
        if (keys.are_keys && keys.n != children.n)
                return fail(STATUS_MALFORMED, "a treespec has %u keys and %u children", keys.n, children.n);
        node->n = children.n;
        node->n_leaves = tree->n_leaves - node->first_leaf;
        node->children = arena_array(tree->arena, children.n + 1, sizeof(*node->children));
        const char **names_copy =
                keys.are_keys ? arena_array(tree->arena, keys.n + 1, sizeof(*names_copy)) : NULL;
        if (node->children == NULL || (keys.are_keys && names_copy == NULL))
                return fail_memory();
        if (children.n > 0)
                memcpy(node->children, children.items, children.n * sizeof(*node->children));
        if (keys.are_keys && keys.n > 0)
                memcpy(names_copy, keys.items, keys.n * sizeof(*names_copy));
        node->keys = names_copy;
        return STATUS_OK;
}

Status pt2_tree_read(const char *treespec, JsonText namedtuple_fields, Arena *scratch, Arena *arena,
                     Tree **out_tree)
{
        TreeReader tree = { .scratch = scratch, .arena = arena, .namedtuple_fields = namedtuple_fields };
        bool more;
        int64_t protocol;
        JsonText raw;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open((JsonText){ treespec, strlen(treespec) }, scratch, &reader));
        TRY(json_enter_array(reader));
        TRY(json_next_item(reader, &more));
        if (!more)
                return fail(STATUS_MALFORMED, "a treespec is empty");
        TRY(json_read_int(reader, &protocol));
        if (protocol != 1)
                return fail(STATUS_UNSUPPORTED, "treespec protocol %lld is not known; 1 is",
                            (long long)protocol);
        TRY(json_next_item(reader, &more));
        if (!more)
                return fail(STATUS_MALFORMED, "a treespec ends after its protocol");
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_next_item(reader, &more));
        if (more)
                return fail(STATUS_MALFORMED, "a treespec has more than two items");
        TRY(json_finish(reader));
        return read_tree(&tree, raw, 0, out_tree);
}

static Status check_keys(const Tree *tree)
{
        StringMap seen = { 0 };
        Status status = STATUS_OK;
        void *before = NULL;
        for (uint32_t i = 0; tree->keys != NULL && i < tree->n && status == STATUS_OK; i++) {
                status = string_map_set(&seen, tree->keys[i], &seen, &before);
                if (status == STATUS_OK && before != NULL)
                        status = fail(
                                STATUS_UNSUPPORTED,
                                "a dict of the inputs has two keys %.100s, which JSON cannot tell apart; "
                                "give one of them another name",
                                tree->keys[i]);
        }
        string_map_deinit(&seen);
        return status;
}

// Recursion: read_tree has capped the levels.
Status pt2_tree_check_keys(const Tree *tree)
{
        TRY(check_keys(tree));
        for (uint32_t i = 0; i < tree->n; i++)
                TRY(pt2_tree_check_keys(tree->children[i]));
        return STATUS_OK;
}
