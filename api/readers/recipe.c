// SPDX-License-Identifier: Apache-2.0
// recipe.c: the pass over the rules that every request takes.
#include <stdio.h>
#include <string.h>
#include "api/formats/tensor_json.h"
#include "api/readers/fx_json_parts.h"
#include "api/readers/rules.h"
#include "core/base/limits.h"
#include "core/engine/kept.h"

#define RUN_VALUE_WANTED "a value of an earlier run is {\"run\": \"<X-Request-Id>\", \"node\": \"relu\"}"

typedef struct RecipeReader {
        JsonReader *json;
        Budget *budget;
        Recipe *recipe;
} RecipeReader;

void recipe_deinit(Recipe *recipe)
{
        for (uint32_t i = 0; i < recipe->n_hidden; i++)
                value_unref(recipe->hidden[i]);
        for (uint32_t i = 0; i < recipe->n_called; i++)
                free(recipe->called[i]);
        free(recipe->hidden);
        free(recipe->called);
        text_deinit(&recipe->text);
        text_deinit(&recipe->leaf);
        *recipe = (Recipe){ .n_rules = 0 };
}

// ---- parts of the text ----

// A value as it is, without the white space between its parts.
static Status keep_raw(RecipeReader *reader)
{
        const char *raw;
        size_t n, from = 0;
        bool quoted = false;
        Text *text = &reader->recipe->text;
        TRY(json_read_raw(reader->json, &raw, &n));
        for (size_t i = 0; i < n; i++) {
                if (quoted && raw[i] == '\\') {
                        i++;
                } else if (raw[i] == '"') {
                        quoted = !quoted;
                } else if (!quoted && strchr(" \t\r\n", raw[i]) != NULL) {
                        text_add_n(text, raw + from, i - from);
                        from = i + 1;
                }
        }
        text_add_n(text, raw + from, n - from);
        return STATUS_OK;
}

static Status read_kept(JsonReader *json, const Recipe *recipe, Budget *budget, Tensor **out_tensor)
{
        const char *run = NULL, *node = NULL, *key;
        TRY(json_enter_object(json));
        for (bool more;;) {
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                bool is_run = strcmp(key, "run") == 0;
                if ((!is_run && strcmp(key, "node") != 0) || json_peek(json) != JSON_STRING)
                        return fail(STATUS_VALUE, RUN_VALUE_WANTED);
                TRY(json_read_string(json, is_run ? &run : &node, NULL));
        }
        if (run == NULL || node == NULL)
                return fail(STATUS_VALUE, RUN_VALUE_WANTED);
        if (recipe->engine == NULL)
                return fail(STATUS_VALUE,
                            "a value of an earlier run is for the body of a run; send the tensor itself");
        return engine_kept(recipe->engine, recipe->caller, run, node, budget, out_tensor);
}

Status recipe_read_tensor(JsonReader *json, const Recipe *recipe, Budget *budget, Tensor **out_tensor)
{
        if (json_opens_with(json, "run") || json_opens_with(json, "node"))
                return read_kept(json, recipe, budget, out_tensor);
        return tensor_json_read(json, DTYPE_NONE, budget, out_tensor, NULL);
}

static Status add_tensor(Recipe *recipe, Tensor *take_tensor)
{
        const Tensor *tensor = take_tensor;
        Status status =
                array_reserve(&recipe->hidden, &recipe->hidden_capacity, recipe->n_hidden + 1, sizeof(Value));
        if (status != STATUS_OK) {
                tensor_unref(take_tensor);
                return status;
        }
        recipe->hidden[recipe->n_hidden++] = value_tensor_take(take_tensor);
        text_addf(&recipe->text, "{\"dtype\":\"%s\",\"shape\":[", dtype_info[tensor->meta.dtype].name);
        for (int d = 0; d < tensor->meta.rank; d++) {
                text_add(&recipe->text, d == 0 ? "" : ",");
                text_add_int(&recipe->text, tensor->meta.size[d]);
        }
        text_add(&recipe->text, "]}");
        return text_status(&recipe->text);
}

static Status keep_tensor(RecipeReader *reader)
{
        Tensor *tensor;
        TRY(recipe_read_tensor(reader->json, reader->recipe, reader->budget, &tensor));
        return add_tensor(reader->recipe, tensor);
}

// ---- partial runs ----

Status recipe_give(Recipe *given, const char *node, Tensor *take_tensor)
{
        text_add(&given->text, given->n_hidden == 0 ? "" : ",");
        text_add_json(&given->text, node);
        text_add_char(&given->text, ':');
        return add_tensor(given, take_tensor);
}

Status recipe_begin_with(Recipe *recipe, Recipe *given, const char *until)
{
        Text text = { 0 };
        uint32_t n = given->n_hidden;
        TRY(array_reserve(&recipe->hidden, &recipe->hidden_capacity, recipe->n_hidden + n, sizeof(Value)));
        if (recipe->leaf.n > 0)
                text_addf(&text, "\"leaf\":%s", recipe->leaf.data);
        if (n > 0)
                text_addf(&text, "%s\"initial_env\":{%s}", text.n == 0 ? "" : ",", given->text.data);
        if (until != NULL) {
                text_add(&text, text.n == 0 ? "\"until\":" : ",\"until\":");
                text_add_json(&text, until);
        }
        if (recipe->text.n > 0 && text.n > 0)
                text_add_char(&text, ',');
        text_add_n(&text, recipe->text.data, recipe->text.n);
        if (text_status(&text) != STATUS_OK) {
                text_deinit(&text);
                return fail_memory();
        }
        text_deinit(&recipe->text);
        recipe->text = text;
        if (n > 0) {
                memmove(recipe->hidden + n, recipe->hidden, recipe->n_hidden * sizeof(Value));
                memcpy(recipe->hidden, given->hidden, n * sizeof(Value));
        }
        recipe->n_hidden += n;
        recipe->n_given = n;
        given->n_hidden = 0;
        return STATUS_OK;
}

// ---- leaves ----

static Status read_leaf_name(JsonReader *json, const char *key, uint32_t *n, Text *out)
{
        const char *name;
        size_t n_name;
        if (json_peek(json) != JSON_STRING)
                return fail(STATUS_VALUE, "\"%s\" is a list of texts", key);
        TRY(json_read_string(json, &name, &n_name));
        if (n_name == 0)
                return fail(STATUS_VALUE, "\"%s\" holds a text that is no name", key);
        if ((*n)++ == (uint32_t)limits.max_rules)
                return fail(STATUS_TOO_LARGE,
                            "\"leaf\" names more than %lld types and paths (max_rules in "
                            "GET /v1)",
                            (long long)limits.max_rules);
        text_add_json_n(out, name, n_name);
        return text_status(out);
}

static Status read_leaf_names(JsonReader *json, const char *key, uint32_t *n, Text *out)
{
        if (json_peek(json) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"%s\" is a list of texts", key);
        TRY(json_enter_array(json));
        for (bool first = true, more;; first = false) {
                TRY(json_next_item(json, &more));
                if (!more)
                        return STATUS_OK;
                text_add(out, first ? "" : ",");
                TRY(read_leaf_name(json, key, n, out));
        }
}

static Status read_leaf_members(JsonReader *json, Text *types, Text *paths)
{
        uint32_t n = 0;
        if (json_peek(json) != JSON_OBJECT)
                return fail(STATUS_VALUE, "\"leaf\" is an object, as in {\"types\": [\"Block\"], \"paths\": "
                                          "[\"encoder.*\"]}; {} inlines every call of a child graph");
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        return STATUS_OK;
                bool is_types = strcmp(key, "types") == 0;
                if (!is_types && strcmp(key, "paths") != 0)
                        return failure_at_argument(
                                fail(STATUS_UNKNOWN_MEMBER,
                                     "\"leaf\" has no member \"%.60s\"; it knows types, paths", key),
                                key);
                TRY(failure_at_argument(read_leaf_names(json, key, &n, is_types ? types : paths), key));
        }
}

Status recipe_read_leaf(JsonReader *json, Recipe *recipe)
{
        _cleanup_(text_deinit) Text types = { 0 };
        _cleanup_(text_deinit) Text paths = { 0 };
        TRY(read_leaf_members(json, &types, &paths));
        TRY(text_status(&types));
        TRY(text_status(&paths));
        text_addf(&recipe->leaf, "{\"types\":[%s],\"paths\":[%s]}", types.n == 0 ? "" : types.data,
                  paths.n == 0 ? "" : paths.data);
        return text_status(&recipe->leaf);
}

// ---- other graphs ----

static Status keep_called(RecipeReader *reader)
{
        Recipe *recipe = reader->recipe;
        const char *name;
        size_t n;
        if (json_peek(reader->json) != JSON_STRING)
                return fail(STATUS_VALUE, "another graph is given by its name, as in {\"call\": \"other\"}");
        TRY(json_read_string(reader->json, &name, &n));
        if (recipe->n_called == (uint32_t)limits.max_called_graphs)
                return fail(STATUS_TOO_LARGE,
                            "the rules name more than %lld graphs (max_called_graphs in GET /v1)",
                            (long long)limits.max_called_graphs);
        TRY(array_reserve(&recipe->called, &recipe->called_capacity, recipe->n_called + 1, sizeof(char *)));
        recipe->called[recipe->n_called] = copy_text(name, n);
        if (recipe->called[recipe->n_called] == NULL)
                return fail_memory();
        recipe->n_called++;
        text_add_json_n(&recipe->text, name, n);
        return STATUS_OK;
}

// ---- objects ----

typedef struct RecipeMember {
        const char *key;
        Status (*keep)(RecipeReader *reader);
} RecipeMember;

static Status fail_unknown(const char *what, const char *key, const RecipeMember *members, size_t n)
{
        Status status = fail(STATUS_UNKNOWN_MEMBER, "%s has no member \"%.60s\"; it knows ", what, key);
        for (size_t i = 0; i < n; i++)
                failure_append("%s%s", i == 0 ? "" : ", ", members[i].key);
        return failure_at_argument(status, key);
}

static Status keep_object(RecipeReader *reader, const char *what, const RecipeMember *members, size_t n)
{
        Text *text = &reader->recipe->text;
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_VALUE, "%s is an object", what);
        TRY(json_enter_object(reader->json));
        text_add_char(text, '{');
        for (bool first = true;; first = false) {
                const char *key;
                bool more;
                size_t at = 0;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                while (at < n && strcmp(members[at].key, key) != 0)
                        at++;
                if (at == n)
                        return fail_unknown(what, key, members, n);
                text_add(text, first ? "" : ",");
                text_add_json(text, key);
                text_add_char(text, ':');
                TRY(failure_at_argument(members[at].keep(reader), key));
        }
        text_add_char(text, '}');
        return text_status(text);
}

static Status keep_wrap(RecipeReader *reader)
{
        static const RecipeMember members[] = { { "before", keep_called }, { "after", keep_called } };
        return keep_object(reader, "\"wrap\"", members, ARRAY_LENGTH(members));
}

static Status keep_patch(RecipeReader *reader)
{
        static const RecipeMember members[] = { { "index", keep_raw },
                                                { "set", keep_tensor },
                                                { "add", keep_tensor },
                                                { "scale", keep_tensor } };
        return keep_object(reader, "\"patch\"", members, ARRAY_LENGTH(members));
}

static Status keep_rule(RecipeReader *reader)
{
        static const RecipeMember members[] = {
                { "match", keep_raw },       { "retarget", keep_raw }, { "constant", keep_tensor },
                { "passthrough", keep_raw }, { "patch", keep_patch },  { "call", keep_called },
                { "wrap", keep_wrap },       { "observe", keep_raw },  { "halt_on", keep_raw },
                { "form", keep_raw },        { "optional", keep_raw },
        };
        return keep_object(reader, "a rule", members, ARRAY_LENGTH(members));
}

Status recipe_read_overrides(JsonReader *json, Budget *budget, Recipe *recipe)
{
        RecipeReader reader = { .json = json, .budget = budget, .recipe = recipe };
        if (json_peek(json) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"overrides\" is a list of rules, as in [{\"match\": {\"target\": "
                                          "\"torch.sigmoid\"}, \"retarget\": \"torch.neg\"}]");
        TRY(json_enter_array(json));
        text_add(&recipe->text, recipe->text.n == 0 ? "\"overrides\":[" : ",\"overrides\":[");
        for (bool more;; recipe->n_rules++) {
                char place[32];
                TRY(json_next_item(json, &more));
                if (!more)
                        break;
                if (recipe->n_rules == (uint32_t)limits.max_rules)
                        return fail(STATUS_TOO_LARGE, "more than %lld rules (max_rules in GET /v1)",
                                    (long long)limits.max_rules);
                snprintf(place, sizeof(place), "overrides[%u]", recipe->n_rules);
                text_add(&recipe->text, recipe->n_rules == 0 ? "" : ",");
                TRY(failure_at_argument(keep_rule(&reader), place));
        }
        text_add_char(&recipe->text, ']');
        return text_status(&recipe->text);
}
