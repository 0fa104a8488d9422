// SPDX-License-Identifier: Apache-2.0
// "inputs" of a run request -> flat user inputs. Three forms: an object by argument name (or flat
// name), a list by position, and {"$args", "$kwargs"}. The exported signature's tree says what
// nests; its depth is capped when the graph is read, so walking it recursively is bounded. Values
// not given stay VALUE_ABSENT: binding says which are missing.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "api/run/run_private.h"
#include "api/formats/tensor_json.h"
#include "core/base/limits.h"

// An argument of forward: a subtree of the signature, or (without one) a single entry.
typedef struct Argument {
        const char *name; // NULL if unknown
        const Tree *tree; // NULL: the leaf `first_leaf`
        uint32_t first_leaf;
} Argument;

static uint32_t n_arguments(const Signature *signature, uint32_t n_user)
{
        if (signature->in_tree == NULL)
                return n_user;
        return signature->in_tree->children[0]->n + signature->in_tree->children[1]->n;
}

static Argument argument_at(const RunCall *run, uint32_t index)
{
        const Signature *signature = &run_task_authored(&run->task)->signature;
        if (signature->in_tree == NULL) {
                const Node *placeholder = run->task.user[index]->placeholder;
                return (Argument){ .name = placeholder->target + strspn(placeholder->target, "*"),
                                   .first_leaf = index };
        }
        const Tree *positional = signature->in_tree->children[0], *keyword = signature->in_tree->children[1];
        bool is_keyword = index >= positional->n;
        const Tree *tree =
                is_keyword ? keyword->children[index - positional->n] : positional->children[index];
        const char *name = is_keyword ? keyword->keys[index - positional->n] : NULL;
        if (name == NULL && signature->argument_names != NULL && index < signature->n_arguments)
                name = signature->argument_names[index];
        return (Argument){ .name = name, .tree = tree, .first_leaf = tree->first_leaf };
}

uint32_t run_n_arguments(const RunCall *run)
{
        return n_arguments(&run_task_authored(&run->task)->signature,
                           run->task.n_inputs - run->task.n_hidden);
}

const char *run_argument_name(const RunCall *run, uint32_t index)
{
        const char *name = argument_at(run, index).name;
        return name == NULL ? "?" : name;
}

static Status read_tensor(JsonReader *reader, const Input *input, RunCall *run, Value *out)
{
        Tensor *tensor = NULL;
        bool guessed;
        TRY(tensor_json_read(reader, input->spec.dtype, &run->task.budget, &tensor, &guessed));
        if (guessed && tensor->meta.dtype == DTYPE_I64 && run->guessed_int == NULL)
                run->guessed_int = input->placeholder->target;
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status read_sequence(JsonReader *reader, const Input *input, RunCall *run, Value *out);

static bool takes_number(const Input *input) // other than an int
{
        return input->value_kind == VALUE_FLOAT || input->value_kind == VALUE_BOOL;
}

// 2 is a float where one is expected.
static void fit_number(const Input *input, Value *inout)
{
        if (input->value_kind == VALUE_FLOAT && inout->kind == VALUE_INT)
                *inout = value_float((double)inout->i);
}

// One leaf: what the signature says, or (kind unknown) what the JSON looks like.
static Status read_kind(JsonReader *reader, const Input *input, RunCall *run, Value *out)
{
        const char *target = input->placeholder->target;
        JsonType type = json_peek(reader);
        if (input->kind == INPUT_LITERAL)
                return run_read_scalar(reader, input, out);
        if (input->value_kind == VALUE_INT) {
                int64_t number;
                TRY(run_read_whole(reader, &number));
                *out = value_int(number);
                return STATUS_OK;
        }
        if (takes_number(input) && type != JSON_OBJECT && type != JSON_ARRAY) {
                TRY(run_read_scalar(reader, input, out));
                fit_number(input, out);
                return STATUS_OK;
        }
        if (target[0] == '*' && target[1] != '*')
                return read_sequence(reader, input, run, out);
        if (input->value_kind == VALUE_TENSOR || (type != JSON_NULL && type != JSON_STRING))
                return read_tensor(reader, input, run, out);
        TRY(run_read_scalar(reader, input, out));
        return out->kind == VALUE_FLOAT ? run_wrap_number(run, out->f, out) : STATUS_OK;
}

enum { MAX_STARRED = 1024 };

// "*args": a list of tensors.
static Status read_sequence(JsonReader *reader, const Input *input, RunCall *run, Value *out)
{
        Value items[MAX_STARRED];
        uint32_t n = 0;
        Status status = json_enter_array(reader);
        for (bool more = true; status == STATUS_OK;) {
                status = json_next_item(reader, &more);
                if (status != STATUS_OK || !more)
                        break;
                if (n == MAX_STARRED)
                        status = fail(STATUS_TOO_LARGE, "more than %d entries for *args", MAX_STARRED);
                else if ((status = read_tensor(reader, input, run, &items[n])) == STATUS_OK)
                        n++;
        }
        Seq *seq = NULL;
        if (status == STATUS_OK)
                status = seq_new(n, &seq);
        for (uint32_t i = 0; i < n; i++) {
                if (status == STATUS_OK)
                        seq->items[i] = items[i];
                else
                        value_clear(&items[i]);
        }
        if (status == STATUS_OK)
                *out = value_seq_take(VALUE_TUPLE, seq);
        return status;
}

// ---- "**kwargs": a dict of what no other input is called ----
static bool takes_keywords(const RunCall *run, uint32_t leaf)
{
        return strncmp(run->task.user[leaf]->placeholder->target, "**", 2) == 0;
}

// Whether the dict of `leaf` holds the key.
static bool has_keyword(const RunCall *run, uint32_t leaf, const char *key)
{
        const Value *held = &run->task.inputs[leaf];
        return string_map_get(&run->keywords, key) != NULL && held->kind == VALUE_DICT &&
               dict_get(held->dict, key) != NULL;
}

// Room for one more in a dict that nobody else holds: it is full at each power of two.
static Status grow_dict(Value *held)
{
        uint32_t n = held->kind == VALUE_DICT ? held->dict->n : 0;
        Dict *more;
        if (n > 0 && (n & (n - 1)) != 0)
                return STATUS_OK;
        TRY(dict_new(MAX(1, 2 * n), &more));
        if (n > 0) {
                memcpy(more->items, held->dict->items, n * sizeof(more->items[0]));
                held->dict->n = 0;
        }
        more->n = n;
        value_clear(held);
        *held = (Value){ .kind = VALUE_DICT, .dict = more };
        return STATUS_OK;
}

// Into the dict of `leaf`, behind what it holds.
static Status add_keyword(RunCall *run, uint32_t leaf, Str *take_key, Value take_value)
{
        Value *held = &run->task.inputs[leaf];
        Status status = STATUS_OK;
        if (has_keyword(run, leaf, take_key->text))
                status = fail(STATUS_INPUT, "input \"%.64s\" is given twice", take_key->text);
        else if (held->kind == VALUE_DICT && held->dict->n == MAX_STARRED)
                status = fail(STATUS_TOO_LARGE, "more than %d keyword arguments", MAX_STARRED);
        else
                status = grow_dict(held);
        if (status == STATUS_OK)
                status = string_map_set(&run->keywords, take_key->text, run, NULL);
        if (status != STATUS_OK) {
                value_clear(&take_value);
                value_unref((Value){ .kind = VALUE_STR, .str = take_key });
                return status;
        }
        held->dict->items[held->dict->n].key = take_key;
        held->dict->items[held->dict->n++].value = take_value;
        return STATUS_OK;
}

static Status read_keyword(JsonReader *reader, uint32_t leaf, const char *key, RunCall *run)
{
        Value value;
        char name[128];
        Str *kept; // the reader's text ends with the next token
        copy_cut(name, sizeof(name), key);
        TRY(str_new(key, strlen(key), &kept));
        Status status = run_check_value(reader);
        if (status == STATUS_OK)
                status = read_kind(reader, run->task.user[leaf], run, &value);
        if (status == STATUS_OK)
                status = add_keyword(run, leaf, kept, value);
        else
                value_unref((Value){ .kind = VALUE_STR, .str = kept });
        return status == STATUS_OK ? STATUS_OK : run_name_input(status, name);
}

static Status read_keywords(JsonReader *reader, uint32_t leaf, RunCall *run)
{
        const char *key;
        bool more;
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_keyword(reader, leaf, key, run));
        }
}

// The input that takes keyword arguments, or n_inputs.
static uint32_t keywords_leaf(const RunCall *run)
{
        uint32_t leaf = 0;
        while (leaf < run->task.n_inputs && !takes_keywords(run, leaf))
                leaf++;
        return leaf;
}

static Status read_leaf(JsonReader *reader, uint32_t leaf, RunCall *run)
{
        const Input *input = run->task.user[leaf];
        TRY(run_poll(&run->task.ctx));
        if (takes_keywords(run, leaf) && json_peek(reader) == JSON_OBJECT)
                return read_keywords(reader, leaf, run);
        if (takes_keywords(run, leaf))
                return failure_at_argument(
                        fail(STATUS_INPUT,
                             "input \"%s\" takes keyword arguments: send an object, or each by its name",
                             input->placeholder->name),
                        input->placeholder->name);
        if (run->task.inputs[leaf].kind != VALUE_ABSENT)
                return failure_at_argument(
                        fail(STATUS_INPUT, "input \"%s\" is given twice", input->placeholder->name),
                        input->placeholder->name);
        Value value;
        TRY(run_check_value(reader));
        Status status = read_kind(reader, input, run, &value);
        if (status != STATUS_OK)
                return run_name_input(status, input->placeholder->name);
        run->task.inputs[leaf] = value;
        return STATUS_OK;
}

// ---- structures: run->path says where the reader is, for messages ----
static size_t path_push(RunCall *run, const char *step)
{
        size_t before = run->path_n, room = sizeof(run->path) - before;
        int n = snprintf(run->path + before, room, "%s%s", before == 0 ? "" : ".", step);
        run->path_n = MIN(before + (size_t)MAX(n, 0), sizeof(run->path) - 1);
        return before;
}

static void path_pop(RunCall *run, size_t before)
{
        run->path_n = before;
        run->path[before] = '\0';
}

static Status fail_structure(const RunCall *run, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

// "batch.b" ... in front.
static Status fail_structure(const RunCall *run, const char *format, ...)
{
        char message[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        return failure_at_argument(fail(STATUS_INPUT, "input \"%s\" %s", run->path, message), run->path);
}

// Nothing for a list or tuple, which has none.
static const char *list_keys(const Tree *tree, char *out, size_t capacity)
{
        out[0] = '\0';
        for (uint32_t i = 0, n = 0; tree->keys != NULL && i < tree->n && n < capacity; i++)
                n += (uint32_t)snprintf(out + n, capacity - n, "%s%s", i == 0 ? "" : ", ", tree->keys[i]);
        return out;
}

static Status read_tree(JsonReader *reader, const Tree *tree, RunCall *run);

static Status read_children(JsonReader *reader, const Tree *tree, RunCall *run)
{
        bool more;
        TRY(json_enter_array(reader));
        for (uint32_t i = 0;; i++) {
                char step[16];
                TRY(json_next_item(reader, &more));
                if (more != (i < tree->n))
                        return fail_structure(
                                run, "holds %s entries than the exported model's %s, which has %u",
                                more ? "more" : "fewer", tree->kind == TREE_LIST ? "list" : "tuple", tree->n);
                if (!more)
                        return STATUS_OK;
                snprintf(step, sizeof(step), "%u", i);
                size_t before = path_push(run, step);
                TRY(read_tree(reader, tree->children[i], run));
                path_pop(run, before);
        }
}

// Judged by its first leaf; an argument without leaves counts as given.
static bool was_given(const RunCall *run, const Tree *tree)
{
        while (tree->kind != TREE_LEAF && tree->n > 0)
                tree = tree->children[0];
        return tree->kind != TREE_LEAF || run->task.inputs[tree->first_leaf].kind != VALUE_ABSENT;
}

static Status read_members(JsonReader *reader, const Tree *tree, RunCall *run)
{
        const char *key;
        char keys[400];
        bool more;
        uint32_t n_read = 0;
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                uint32_t place = tree_find(tree, key, strlen(key));
                // a field that was None when the model was exported is no part of its structure
                if (place == tree->n && json_peek(reader) == JSON_NULL) {
                        TRY(json_read_null(reader));
                        continue;
                }
                if (place == tree->n)
                        return fail_structure(run,
                                              "has no key \"%.64s\" in the exported model; its keys are: %s",
                                              key, list_keys(tree, keys, sizeof(keys)));
                size_t before = path_push(run, key);
                TRY(read_tree(reader, tree->children[place], run));
                path_pop(run, before);
                n_read++;
        }
        for (uint32_t i = 0; n_read < tree->n && i < tree->n; i++)
                if (!was_given(run, tree->children[i]))
                        return fail_structure(run, "lacks the key \"%.64s\"; its keys are: %s", tree->keys[i],
                                              list_keys(tree, keys, sizeof(keys)));
        return n_read == tree->n ? STATUS_OK
                                 : fail_structure(run, "lacks a key; its keys are: %s",
                                                  list_keys(tree, keys, sizeof(keys)));
}

static Status read_tree(JsonReader *reader, const Tree *tree, RunCall *run)
{
        if (tree->kind == TREE_LEAF)
                return read_leaf(reader, tree->first_leaf, run);
        TRY(run_check_value(reader));
        JsonType type = json_peek(reader);
        bool by_key = tree->kind == TREE_DICT || (tree->kind == TREE_NAMEDTUPLE && type == JSON_OBJECT);
        if (type != (by_key ? JSON_OBJECT : JSON_ARRAY)) {
                char keys[400];
                list_keys(tree, keys, by_key ? sizeof(keys) : 1);
                return by_key ? fail_structure(
                                        run,
                                        "is a dict in the exported model: send an object with the keys %s",
                                        keys)
                              : fail_structure(run, "is a %s of %u in the exported model: send a list of %u",
                                               tree->kind == TREE_LIST ? "list" : "tuple", tree->n, tree->n);
        }
        return by_key ? read_members(reader, tree, run) : read_children(reader, tree, run);
}

static Status read_argument(JsonReader *reader, uint32_t index, RunCall *run)
{
        Argument argument = argument_at(run, index);
        if (argument.tree == NULL)
                return read_leaf(reader, argument.first_leaf, run);
        size_t before = path_push(run, run_argument_name(run, index));
        TRY(read_tree(reader, argument.tree, run));
        path_pop(run, before);
        return STATUS_OK;
}

Status run_read_only(JsonReader *reader, RunCall *run)
{
        uint32_t n = run_n_arguments(run);
        if (n != 1)
                return fail(STATUS_INPUT,
                            "this graph takes %u inputs: send them by name, as in {\"%s\": ...}", n,
                            n == 0 ? "x" : run_argument_name(run, 0));
        return read_argument(reader, 0, run);
}

// ---- the three forms ----
// An argument whose structure has `key`, for clients that left out the argument's own level.
static const char *argument_with_key(const RunCall *run, const char *key)
{
        for (uint32_t i = 0; i < run_n_arguments(run); i++) {
                Argument argument = argument_at(run, i);
                for (uint32_t k = 0;
                     argument.tree != NULL && argument.tree->keys != NULL && k < argument.tree->n; k++)
                        if (strcmp(argument.tree->keys[k], key) == 0)
                                return argument.name;
        }
        return NULL;
}

static Status unknown_name(const RunCall *run, const char *name)
{
        char known[512] = "";
        uint32_t n = run_n_arguments(run);
        for (uint32_t i = 0; i < n && strlen(known) < sizeof(known) - 140; i++) {
                strncat(known, i == 0 ? "" : ", ", 3);
                strncat(known, run_argument_name(run, i), 128);
        }
        Status status = fail(STATUS_INPUT, "there is no input \"%s\"; this graph takes: %s", name,
                             n == 0 ? "nothing" : known);
        const char *around = argument_with_key(run, name);
        if (around != NULL)
                failure_append("; \"%.64s\" is a key of %.64s: {\"%.64s\": {\"%.64s\": ...}}", name, around,
                               around, name);
        return failure_at_argument(status, name);
}

// A name stands for an argument (by index) or a flat input (by leaf). They are coded as even and
// odd numbers from 2 on, because the map's NULL means "absent".
static void *as_argument(uint32_t index)
{
        return (void *)((uintptr_t)index * 2 + 2);
}

static void *as_leaf(uint32_t leaf)
{
        return (void *)((uintptr_t)leaf * 2 + 3);
}

static Status add_name(RunCall *run, const char *name, void *meaning)
{
        if (name == NULL || string_map_get(&run->names, name) != NULL)
                return STATUS_OK;
        return string_map_set(&run->names, name, meaning, NULL);
}

// What `name` means, NULL if nothing. Arguments go before flat names.
static Status find_name(RunCall *run, const char *name, void **out_meaning)
{
        uint32_t n = run_n_arguments(run);
        if (run->names.n == 0) {
                for (uint32_t i = 0; i < n; i++)
                        TRY(add_name(run, argument_at(run, i).name, as_argument(i)));
                for (uint32_t leaf = 0; leaf < run->task.n_inputs; leaf++)
                        TRY(add_name(run, run->task.user[leaf]->placeholder->name, as_leaf(leaf)));
        }
        *out_meaning = string_map_get(&run->names, name);
        return STATUS_OK;
}

Status run_read_named(JsonReader *reader, const char *name, RunCall *run)
{
        void *meaning;
        TRY(find_name(run, name, &meaning));
        if (meaning == NULL && keywords_leaf(run) < run->task.n_inputs)
                return read_keyword(reader, keywords_leaf(run), name, run);
        if (meaning == NULL)
                return unknown_name(run, name);
        uint32_t number = (uint32_t)(((uintptr_t)meaning - 2) / 2);
        return (uintptr_t)meaning % 2 == 0 ? read_argument(reader, number, run)
                                           : read_leaf(reader, number, run);
}

static Status read_positional(JsonReader *reader, RunCall *run)
{
        uint32_t n = run_n_arguments(run);
        bool more;
        TRY(json_enter_array(reader));
        for (uint32_t i = 0;; i++) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                if (i == n)
                        return fail(STATUS_INPUT, "\"inputs\" holds more than %u entr%s", n,
                                    n == 1 ? "y" : "ies");
                TRY(read_argument(reader, i, run));
        }
}

static Status read_object(JsonReader *reader, bool dollar, RunCall *run)
{
        const char *key;
        bool more;
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        return STATUS_OK;
                if (dollar && strcmp(key, "$args") == 0)
                        TRY(read_positional(reader, run));
                else if (dollar && strcmp(key, "$kwargs") == 0)
                        TRY(read_object(reader, false, run));
                else
                        TRY(run_read_named(reader, key, run));
        }
}

Status run_read_inputs(JsonReader *reader, RunCall *run)
{
        if (json_peek(reader) == JSON_OBJECT)
                return read_object(reader, true, run);
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_INPUT,
                            "\"inputs\" is an object by name, {\"%s\": ...}, or a list with one entry per "
                            "argument",
                            run_n_arguments(run) == 0 ? "x" : run_argument_name(run, 0));
        return read_positional(reader, run);
}

// ---- tensors by name ----
enum { MOST_DOTS = 16 }; // of a name, for each of which a key is looked for

static const Tree *longest_of_all(const Tree *tree, const char *step, size_t *out_taken)
{
        const Tree *longest = NULL;
        for (uint32_t i = 0; tree->keys != NULL && i < tree->n; i++) {
                size_t n = strlen(tree->keys[i]);
                if ((longest == NULL || n > *out_taken) && strncmp(step, tree->keys[i], n) == 0 &&
                    (step[n] == '.' || step[n] == '\0')) {
                        longest = tree->children[i];
                        *out_taken = n;
                }
        }
        return longest;
}

// The child whose key begins `step` and ends where it does, or at a dot: the longest one. Names of
// very many dots are compared with every key, once: what a name costs is bounded by the keys' text.
static const Tree *longest_key(const Tree *tree, const char *step, size_t *out_taken)
{
        size_t n = strlen(step);
        for (int i = 0; i < MOST_DOTS; i++) {
                uint32_t child = tree_find(tree, step, n);
                const char *dot = memrchr(step, '.', n);
                *out_taken = n;
                if (child < tree->n || dot == NULL)
                        return child < tree->n ? tree->children[child] : NULL;
                n = (size_t)(dot - step);
        }
        return longest_of_all(tree, step, out_taken);
}

// Follows ".0.key" into a structure; false when no such path exists. A key may contain dots.
static bool follow_path(const char *path, const Tree *tree, uint32_t *out_leaf)
{
        while (*path == '.' && tree->kind != TREE_LEAF) {
                const char *step = path + 1;
                size_t taken;
                const Tree *next = longest_key(tree, step, &taken);
                size_t digits = strspn(step, "0123456789");
                if (next == NULL && digits > 0 && digits < 9 &&
                    (step[digits] == '.' || step[digits] == '\0') && strtoul(step, NULL, 10) < tree->n) {
                        next = tree->children[strtoul(step, NULL, 10)];
                        taken = digits;
                }
                if (next == NULL)
                        return false;
                tree = next;
                path = step + taken;
        }
        *out_leaf = tree->first_leaf;
        return *path == '\0' && tree->kind == TREE_LEAF;
}

// "batch.key", after find_name. The argument's name may contain a few dots, too.
static bool find_path(const RunCall *run, const char *name, uint32_t *out_leaf)
{
        const char *dot = run->task.graph->signature.in_tree == NULL ? NULL : strchr(name, '.');
        for (int i = 0; dot != NULL && i < MOST_DOTS; i++, dot = strchr(dot + 1, '.')) {
                uintptr_t meaning = (uintptr_t)string_map_get_n(&run->names, name, (size_t)(dot - name));
                if (meaning == 0 || meaning % 2 != 0)
                        continue;
                Argument argument = argument_at(run, (uint32_t)((meaning - 2) / 2));
                if (argument.tree != NULL && follow_path(dot, argument.tree, out_leaf))
                        return true;
        }
        return false;
}

// "arr_2" and "INPUT__2": the third input.
static bool find_numbered(const RunCall *run, const char *name, uint32_t *out_leaf)
{
        size_t prefix = strncmp(name, "arr_", 4) == 0 ? 4 : strncmp(name, "INPUT__", 7) == 0 ? 7 : 0;
        size_t digits = prefix == 0 ? 0 : strspn(name + prefix, "0123456789");
        if (digits == 0 || digits > 6 || name[prefix + digits] != '\0')
                return false;
        *out_leaf = (uint32_t)strtoul(name + prefix, NULL, 10);
        return *out_leaf < run->task.n_inputs;
}

static Status find_leaf(RunCall *run, const char *name, uint32_t *out_leaf)
{
        void *meaning;
        TRY(find_name(run, name, &meaning));
        uint32_t number = (uint32_t)(((uintptr_t)meaning - 2) / 2);
        if (meaning == NULL) {
                if (find_path(run, name, out_leaf) || find_numbered(run, name, out_leaf))
                        return STATUS_OK;
                return unknown_name(run, name);
        }
        *out_leaf = number;
        if ((uintptr_t)meaning % 2 != 0)
                return STATUS_OK;
        Argument argument = argument_at(run, number);
        *out_leaf = argument.first_leaf;
        if (argument.tree == NULL || argument.tree->kind == TREE_LEAF)
                return STATUS_OK;
        Status status = fail(
                STATUS_INPUT,
                "input \"%s\" is a structure of %u values; name each of them, as in \"%s.%s\", or send JSON",
                name, argument.tree->n_leaves, name,
                argument.tree->n == 0 || argument.tree->keys == NULL ? "0" : argument.tree->keys[0]);
        return failure_at_argument(status, name);
}

Status run_find_input(RunCall *run, const char *name, const Input **out_input)
{
        uint32_t leaf = 0;
        TRY(find_leaf(run, name, &leaf));
        *out_input = run->task.user[leaf];
        return STATUS_OK;
}

static Status number_of(const Tensor *tensor, Value *out)
{
        Dtype dtype = tensor->meta.dtype;
        int64_t integer;
        double number;
        if (meta_numel(&tensor->meta) != 1 || dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                return fail(STATUS_INPUT, "a single number is expected, not an array of %lld",
                            (long long)meta_numel(&tensor->meta));
        if (dtype_info[dtype].kind == DTYPE_KIND_FLOAT) {
                TRY(tensor_item_f64(tensor, &number));
                *out = value_float(number);
                return STATUS_OK;
        }
        TRY(tensor_item_i64(tensor, &integer));
        *out = dtype == DTYPE_BOOL ? value_bool(integer != 0) : value_int(integer);
        return STATUS_OK;
}

static Status check_tensor(const Input *input, const Tensor *tensor)
{
        Dtype expected = input->spec.dtype;
        if (input->placeholder->target[0] == '*')
                return fail(STATUS_INPUT, "\"%s\" takes any number of values: send JSON",
                            input->placeholder->target);
        if (expected == DTYPE_NONE || tensor->meta.dtype == expected)
                return STATUS_OK;
        return fail(STATUS_DTYPE, "the array is %s, the graph's input is %s; save it with .astype(numpy.%s)",
                    dtype_info[tensor->meta.dtype].name, dtype_info[expected].name,
                    dtype_info[expected].name);
}

static Status put_tensor(RunCall *run, uint32_t leaf, Tensor *tensor)
{
        const Input *input = run->task.user[leaf];
        if (run->task.inputs[leaf].kind != VALUE_ABSENT)
                return fail(STATUS_INPUT, "input \"%s\" is given twice", input->placeholder->name);
        if (input->value_kind == VALUE_INT && !dtype_is_int(tensor->meta.dtype))
                return fail(STATUS_INPUT,
                            "an int is expected; the array is %s: save it with .astype(numpy.int64)",
                            dtype_info[tensor->meta.dtype].name);
        if (input->kind == INPUT_LITERAL || input->value_kind == VALUE_INT || takes_number(input)) {
                TRY(number_of(tensor, &run->task.inputs[leaf]));
                fit_number(input, &run->task.inputs[leaf]);
                return STATUS_OK;
        }
        TRY(check_tensor(input, tensor));
        run->task.inputs[leaf] = value_tensor_take(tensor_ref(tensor));
        return STATUS_OK;
}

Status run_take_tensor(RunCall *run, const char *name, Tensor *take_tensor)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = take_tensor;
        uint32_t leaf = 0;
        TRY(run_poll(&run->task.ctx));
        TRY(find_leaf(run, name, &leaf));
        Status status = put_tensor(run, leaf, tensor);
        return status == STATUS_OK ? status : run_name_input(status, run->task.user[leaf]->placeholder->name);
}
