// SPDX-License-Identifier: Apache-2.0
// recipe_derive.c: a recipe carried out. What comes before the rules is read and done first: the
// rules name, and match, what is left to run then.
#include <string.h>
#include "api/readers/recipe_parts.h"
#include "core/base/limits.h"
#include "core/edit/leaf.h"
#include "core/edit/partial.h"

// What comes before the rules.
typedef struct Beginning {
        Arena arena;
        bool inlines;
        EditLeaves leaves;
        const char **given; // names of the nodes whose values are given, one per value
        uint32_t n_given;
        const char *until; // NULL: the run goes to its end
} Beginning;

// ---- the text ----

Status recipe_as_object(const Recipe *recipe, Text *out)
{
        text_add_char(out, '{');
        text_add_n(out, recipe->text.data, recipe->text.n);
        text_add_char(out, '}');
        return text_status(out);
}

Status recipe_open(const Text *object, Arena *arena, JsonReader **out_json)
{
        int depth = (int)limits.max_json_depth_run + 2;
        return json_open(object->data, object->n, depth, limits.max_json_values, arena, out_json);
}

void recipe_spec_of(const TensorMeta *meta, TensorSpec *out_spec)
{
        *out_spec = (TensorSpec){ .dtype = meta->dtype, .rank = meta->rank };
        for (int d = 0; d < meta->rank; d++)
                out_spec->size[d].value = meta->size[d];
}

// ---- reading ----

static Status read_given(JsonReader *json, Beginning *out)
{
        bool more;
        TRY(json_enter_object(json));
        for (;; out->n_given++) {
                TRY(json_next_key(json, &out->given[out->n_given], &more));
                if (!more)
                        return STATUS_OK;
                TRY(json_skip(json));
        }
}

static Status read_names(JsonReader *json, const char **names, uint32_t *n)
{
        bool more;
        TRY(json_enter_array(json));
        for (;; (*n)++) {
                TRY(json_next_item(json, &more));
                if (!more)
                        return STATUS_OK;
                TRY(json_read_string(json, &names[*n], NULL));
        }
}

static Status read_leaf_member(void *context, JsonReader *json, const char *key)
{
        EditLeaves *leaves = context;
        return strcmp(key, "types") == 0 ? read_names(json, leaves->types, &leaves->n_types)
                                         : read_names(json, leaves->paths, &leaves->n_paths);
}

static Status read_leaf(JsonReader *json, Beginning *out)
{
        EditLeaves *leaves = &out->leaves;
        out->inlines = true;
        leaves->types = arena_array(&out->arena, (size_t)limits.max_rules + 1, sizeof(char *));
        leaves->paths = arena_array(&out->arena, (size_t)limits.max_rules + 1, sizeof(char *));
        if (leaves->types == NULL || leaves->paths == NULL)
                return fail_memory();
        return json_each_member(json, read_leaf_member, leaves);
}

static Status read_members(JsonReader *json, Beginning *out)
{
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        return STATUS_OK;
                if (strcmp(key, "leaf") == 0)
                        TRY(read_leaf(json, out));
                else if (strcmp(key, "initial_env") == 0)
                        TRY(read_given(json, out));
                else if (strcmp(key, "until") == 0)
                        TRY(json_read_string(json, &out->until, NULL));
                else
                        return STATUS_OK; // the rules come last
        }
}

static Status read_beginning(const Recipe *recipe, Beginning *out)
{
        _cleanup_(text_deinit) Text text = { 0 };
        JsonReader *json = NULL;
        out->given = arena_array(&out->arena, recipe->n_given + 1, sizeof(char *));
        if (out->given == NULL)
                return fail_memory();
        TRY(recipe_as_object(recipe, &text));
        Status status = recipe_open(&text, &out->arena, &json);
        if (status == STATUS_OK)
                status = read_members(json, out);
        json_close(json);
        return status;
}

// ---- carrying out ----

// The partial run first: it names nodes as they were authored.
static Status begin(Edit *edit, const Beginning *with, const Recipe *recipe)
{
        if (with->until != NULL)
                TRY(failure_at_argument(edit_stop_after(edit, with->until), "until"));
        for (uint32_t i = 0; i < with->n_given; i++) {
                TensorSpec spec;
                recipe_spec_of(&recipe->hidden[i].tensor->meta, &spec);
                TRY(failure_at_argument(edit_give_value(edit, with->given[i], &spec), "initial_env"));
        }
        return with->inlines ? failure_at_argument(edit_inline_calls(edit, &with->leaves), "leaf")
                             : STATUS_OK;
}

static Status derive(const Recipe *recipe, const Graph *const *called, bool as_state, Edit *edit,
                     const Beginning *with)
{
        _cleanup_(rule_list_deinit) RuleList rules = { .n = 0 };
        uint32_t n_values = 0;
        TRY(begin(edit, with, recipe));
        TRY(rules_read(recipe, with->inlines ? edit_work(edit) : edit_base(edit), called, &rules));
        for (uint32_t i = 0; as_state && i < rules.n; i++) {
                EditRule *rule = &rules.items[i];
                if (rule->action == EDIT_CONSTANT || rule->action == EDIT_PATCH)
                        rule->state = recipe->hidden[n_values++].tensor;
        }
        return edit_apply_rules(edit, rules.items, rules.n);
}

Status recipe_derive(const Recipe *recipe, const Graph *base, const Graph *const *called, bool as_state,
                     const RunContext *poll, Graph **out_graph)
{
        _cleanup_(edit_freep) Edit *edit = NULL;
        Beginning with = { .inlines = false };
        arena_init(&with.arena, (size_t)limits.max_envelope * 4);
        Status status = edit_new(base, &edit);
        if (status == STATUS_OK) {
                edit_set_poll(edit, poll);
                status = read_beginning(recipe, &with);
        }
        if (status == STATUS_OK)
                status = derive(recipe, called, as_state, edit, &with);
        arena_deinit(&with.arena);
        TRY(status);
        return edit_finish(edit, out_graph);
}
