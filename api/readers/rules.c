// SPDX-License-Identifier: Apache-2.0
// rules.c: a recipe's text into rules. Its keys are known ones already.
#include "api/readers/recipe_parts.h"

#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "core/base/limits.h"

typedef struct RuleReader {
        FxReader fx;
        const Graph *base;
        const Graph *const *called;
        const Recipe *recipe;
        uint32_t n_called, n_constants; // read so far
        Arena *names;                   // lives as long as the rules
        EditRule *rule;
        bool has_match, has_patch;
} RuleReader;

typedef struct RuleMember {
        const char *key;
        Status (*read)(RuleReader *reader);
} RuleMember;

void rule_list_deinit(RuleList *list)
{
        for (uint32_t i = 0; i < list->n; i++) {
                value_unref(list->items[i].call.args);
                value_unref(list->items[i].call.kwargs);
                value_unref(list->items[i].index);
        }
        arena_deinit(&list->arena);
        *list = (RuleList){ .n = 0 };
}

// ---- plain members ----

static Status read_object(RuleReader *reader, const char *what, const RuleMember *members, size_t n)
{
        if (json_peek(reader->fx.json) != JSON_OBJECT)
                return fail(STATUS_VALUE, "%s is an object", what);
        TRY(json_enter_object(reader->fx.json));
        for (;;) {
                const char *key;
                bool more;
                size_t at = 0;
                TRY(json_next_key(reader->fx.json, &key, &more));
                if (!more)
                        return STATUS_OK;
                while (at < n && strcmp(members[at].key, key) != 0)
                        at++;
                if (at < n) {
                        TRY(failure_at_argument(members[at].read(reader), key));
                        continue;
                }
                Status status =
                        fail(STATUS_UNKNOWN_MEMBER, "%s has no member \"%.60s\"; it knows ", what, key);
                for (size_t i = 0; i < n; i++)
                        failure_append("%s%s", i == 0 ? "" : ", ", members[i].key);
                return failure_at_argument(status, key);
        }
}

static Status read_word(RuleReader *reader, const char *what, const char **out_word)
{
        if (json_peek(reader->fx.json) != JSON_STRING)
                return fail(STATUS_VALUE, "\"%s\" is a text", what);
        TRY(json_read_string(reader->fx.json, out_word, NULL));
        return **out_word != '\0' ? STATUS_OK : fail(STATUS_VALUE, "\"%s\" is empty", what);
}

static Status read_count(RuleReader *reader, const char *what, int64_t *out_count)
{
        NumberKind kind = NUMBER_NONE;
        double number;
        if (json_peek(reader->fx.json) == JSON_NUMBER)
                TRY(json_read_number(reader->fx.json, &kind, out_count, &number));
        if (kind != NUMBER_INT || *out_count < 0 || *out_count > VALUE_MAX_ITEMS)
                return fail(STATUS_VALUE, "\"%s\" is a whole number, 0 or more", what);
        return STATUS_OK;
}

// ---- match ----

static Status read_match_op(RuleReader *reader)
{
        reader->rule->match.has_op = true;
        return fx_read_opcode(&reader->fx, &reader->rule->match.op);
}

static Status read_match_target(RuleReader *reader)
{
        return read_word(reader, "target", &reader->rule->match.target);
}

static Status read_match_name(RuleReader *reader)
{
        return read_word(reader, "name", &reader->rule->match.name);
}

static Status read_match_module(RuleReader *reader)
{
        return read_word(reader, "module", &reader->rule->match.module);
}

static Status read_match_type(RuleReader *reader)
{
        return read_word(reader, "module_type", &reader->rule->match.module_type);
}

static Status read_match_nth(RuleReader *reader)
{
        return read_count(reader, "nth", &reader->rule->match.nth);
}

static Status read_match(RuleReader *reader)
{
        static const RuleMember members[] = {
                { "op", read_match_op },
                { "target", read_match_target },
                { "name", read_match_name },
                { "module", read_match_module },
                { "module_type", read_match_type },
                { "nth", read_match_nth },
        };
        reader->has_match = true;
        return read_object(reader, "\"match\"", members, ARRAY_LENGTH(members));
}

// ---- actions ----

static Status take_action(RuleReader *reader, EditAction action)
{
        if (reader->rule->action != EDIT_NO_ACTION)
                return fail(STATUS_VALUE, "a rule has one action at most; write a second rule with the same "
                                          "\"match\" for another one");
        reader->rule->action = action;
        return STATUS_OK;
}

static Status read_new_op(RuleReader *reader)
{
        TRY(fx_read_opcode(&reader->fx, &reader->rule->call.op));
        if (reader->rule->call.op >= OP_CALL_FUNCTION && reader->rule->call.op <= OP_CALL_MODULE)
                return STATUS_OK;
        return fail(STATUS_VALUE, "a call is replaced by a call_function, call_method or call_module");
}

static Status read_new_target(RuleReader *reader)
{
        return read_word(reader, "target", &reader->rule->call.target);
}

static Status read_new_name(RuleReader *reader)
{
        return read_word(reader, "name", &reader->rule->call.name);
}

static Status read_new_args(RuleReader *reader)
{
        EditNew *call = &reader->rule->call;
        if (json_peek(reader->fx.json) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"args\" is a list, as in [\"$0\", 2]");
        TRY(fx_read_value(&reader->fx, reader->base, 0, &call->args));
        call->args.kind = VALUE_TUPLE;
        return STATUS_OK;
}

static Status read_new_kwargs(RuleReader *reader)
{
        if (json_peek(reader->fx.json) == JSON_OBJECT)
                TRY(fx_read_value(&reader->fx, reader->base, 0, &reader->rule->call.kwargs));
        return reader->rule->call.kwargs.kind == VALUE_DICT
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"kwargs\" is an object, as in {\"min\": 0}");
}

static Status all_arguments(Value *out_args)
{
        Seq *args;
        TRY(seq_new(1, &args));
        *out_args = value_seq_take(VALUE_TUPLE, args);
        return value_str_new("$args", 5, &args->items[0]);
}

static Status read_retarget(RuleReader *reader)
{
        static const RuleMember members[] = { { "op", read_new_op },
                                              { "target", read_new_target },
                                              { "args", read_new_args },
                                              { "kwargs", read_new_kwargs },
                                              { "name", read_new_name } };
        EditRule *rule = reader->rule;
        if (json_peek(reader->fx.json) != JSON_OBJECT) {
                TRY(take_action(reader, EDIT_RETARGET));
                return read_word(reader, "retarget", &rule->target);
        }
        TRY(take_action(reader, EDIT_RETARGET_CALL));
        rule->call.op = OP_CALL_FUNCTION;
        TRY(read_object(reader, "\"retarget\"", members, ARRAY_LENGTH(members)));
        if (rule->call.target == NULL)
                return fail(STATUS_VALUE, "\"retarget\" has no \"target\"");
        bool own_args = rule->call.args.kind == VALUE_NONE && rule->call.kwargs.kind != VALUE_NONE;
        return own_args ? all_arguments(&rule->call.args) : STATUS_OK;
}

static Status read_passthrough(RuleReader *reader)
{
        int64_t index = 0;
        TRY(take_action(reader, EDIT_PASSTHROUGH));
        TRY(read_count(reader, "passthrough", &index));
        reader->rule->argument = (uint32_t)index;
        return STATUS_OK;
}

// The text holds what the pass before wrote: dtype and shape of a tensor.
static Status read_hidden(RuleReader *reader)
{
        if (reader->n_constants >= reader->recipe->n_hidden)
                return fail(STATUS_INTERNAL, "a recipe with fewer tensors than its text says");
        const TensorMeta *meta = &reader->recipe->hidden[reader->n_constants++].tensor->meta;
        recipe_spec_of(meta, &reader->rule->constant);
        return json_skip(reader->fx.json);
}

static Status read_constant(RuleReader *reader)
{
        TRY(take_action(reader, EDIT_CONSTANT));
        return read_hidden(reader);
}

// ":", "1:", "::2", "...", "null" or an int.
static Status parse_slice(const char *text, Value *out_value)
{
        Value parts[3] = { value_none(), value_none(), value_none() };
        const char *at = text;
        uint32_t n = 0;
        if (strcmp(text, "...") == 0) {
                *out_value = (Value){ .kind = VALUE_ELLIPSIS };
                return STATUS_OK;
        }
        for (bool more = true; more && n < 3; n++) {
                char *end;
                long long number = strtoll(at, &end, 10);
                if (end != at)
                        parts[n] = value_int(number);
                more = *end == ':';
                at = end + more;
        }
        if (*at != '\0' || n < 2)
                return fail(STATUS_VALUE,
                            "\"%.60s\" is no index; write ints, texts such as \":\", \"1:-1\", \"::2\" and "
                            "\"...\", null for a new dimension, lists of ints",
                            text);
        Seq *seq;
        TRY(seq_new(3, &seq));
        memcpy(seq->items, parts, sizeof(parts));
        *out_value = value_seq_take(VALUE_SLICE, seq);
        return STATUS_OK;
}

static Status index_leaf(void *context, const Value *leaf, Value *out)
{
        (void)context;
        if (leaf->kind == VALUE_STR)
                return parse_slice(leaf->str->text, out);
        if (leaf->kind != VALUE_INT && leaf->kind != VALUE_NONE && leaf->kind != VALUE_BOOL)
                return fail(STATUS_VALUE,
                            "an index holds ints, texts such as \"1:\", null and lists of ints");
        *out = *leaf;
        return STATUS_OK;
}

static Status read_index(RuleReader *reader)
{
        _cleanup_(value_clear) Value index = value_none();
        if (json_peek(reader->fx.json) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"index\" is a list, as in [\":\", -1]");
        TRY(fx_read_value(&reader->fx, NULL, 0, &index));
        TRY(value_map(index, index_leaf, NULL, &reader->rule->index));
        reader->rule->index.kind = VALUE_TUPLE;
        return STATUS_OK;
}

static Status read_patch_value(RuleReader *reader, EditPatchKind kind)
{
        if (reader->has_patch)
                return fail(STATUS_VALUE, "\"patch\" has one of set, add and scale");
        reader->has_patch = true;
        reader->rule->patch = kind;
        return read_hidden(reader);
}

static Status read_set(RuleReader *reader)
{
        return read_patch_value(reader, PATCH_SET);
}

static Status read_add(RuleReader *reader)
{
        return read_patch_value(reader, PATCH_ADD);
}

static Status read_scale(RuleReader *reader)
{
        return read_patch_value(reader, PATCH_SCALE);
}

static Status read_patch(RuleReader *reader)
{
        static const RuleMember members[] = {
                { "index", read_index }, { "set", read_set }, { "add", read_add }, { "scale", read_scale }
        };
        TRY(take_action(reader, EDIT_PATCH));
        TRY(read_object(reader, "\"patch\"", members, ARRAY_LENGTH(members)));
        if (!reader->has_patch || reader->rule->index.kind == VALUE_NONE)
                return fail(STATUS_VALUE, "\"patch\" has an \"index\" and one of set, add and scale");
        return STATUS_OK;
}

static Status read_called(RuleReader *reader, const Graph **out_graph, const char **out_name)
{
        if (reader->n_called >= reader->recipe->n_called)
                return fail(STATUS_INTERNAL, "a recipe with fewer graphs than its text names");
        const char *name;
        *out_graph = reader->called[reader->n_called++];
        TRY(json_read_string(reader->fx.json, &name, NULL));
        *out_name = arena_text(reader->names, name, strcspn(name, "@")); // without the version
        return *out_name == NULL ? fail_memory() : STATUS_OK;
}

static Status read_after(RuleReader *reader)
{
        return read_called(reader, &reader->rule->after, &reader->rule->after_name);
}

static Status read_before(RuleReader *reader)
{
        return read_called(reader, &reader->rule->before, &reader->rule->before_name);
}

static Status read_call(RuleReader *reader)
{
        TRY(take_action(reader, EDIT_CALL));
        return read_after(reader);
}

static Status read_wrap(RuleReader *reader)
{
        static const RuleMember members[] = { { "before", read_before }, { "after", read_after } };
        TRY(take_action(reader, EDIT_WRAP));
        TRY(read_object(reader, "\"wrap\"", members, ARRAY_LENGTH(members)));
        return reader->rule->before != NULL || reader->rule->after != NULL
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"wrap\" names a graph before or after the call");
}

// ---- a rule ----

static Status fail_words(const char *what, const char *const *words)
{
        Status status = fail(STATUS_VALUE, "\"%s\" is a list of one or more of ", what);
        for (int i = 0; words[i] != NULL; i++)
                failure_append("%s\"%s\"", i == 0 ? "" : ", ", words[i]);
        return status;
}

// A list of words, each of which sets its bit: the first word is bit 0.
static Status read_words(RuleReader *reader, const char *what, const char *const *words, uint8_t *out_bits)
{
        JsonReader *json = reader->fx.json;
        bool more = json_peek(json) == JSON_ARRAY;
        *out_bits = 0;
        if (more)
                TRY(json_enter_array(json));
        while (more) {
                const char *word = "";
                int at = 0;
                TRY(json_next_item(json, &more));
                if (!more)
                        break;
                if (json_peek(json) != JSON_STRING)
                        return fail_words(what, words);
                TRY(json_read_string(json, &word, NULL));
                while (words[at] != NULL && strcmp(words[at], word) != 0)
                        at++;
                if (words[at] == NULL)
                        return fail_words(what, words);
                *out_bits |= (uint8_t)(1 << at);
        }
        return *out_bits == 0 ? fail_words(what, words) : STATUS_OK;
}

static Status read_observe(RuleReader *reader)
{
        static const char *const words[] = { "call", "stats", "tensor", NULL }; // EditObserve
        return read_words(reader, "observe", words, &reader->rule->observe);
}

static Status read_halt_on(RuleReader *reader)
{
        static const char *const words[] = { "nan", "inf", NULL }; // EditHalt
        return read_words(reader, "halt_on", words, &reader->rule->halt_on);
}

static Status read_form(RuleReader *reader)
{
        const char *form = "";
        if (json_peek(reader->fx.json) == JSON_STRING)
                TRY(json_read_string(reader->fx.json, &form, NULL));
        reader->rule->as_text = strcmp(form, "text") == 0;
        if (reader->rule->as_text || strcmp(form, "json") == 0)
                return STATUS_OK;
        return fail(STATUS_VALUE, "\"form\" is \"json\" or \"text\"");
}

static Status read_optional(RuleReader *reader)
{
        if (json_peek(reader->fx.json) != JSON_TRUE && json_peek(reader->fx.json) != JSON_FALSE)
                return fail(STATUS_VALUE, "\"optional\" is true or false");
        return json_read_bool(reader->fx.json, &reader->rule->optional);
}

static Status read_rule(RuleReader *reader, EditRule *rule)
{
        static const RuleMember members[] = {
                { "match", read_match },       { "retarget", read_retarget },
                { "constant", read_constant }, { "passthrough", read_passthrough },
                { "patch", read_patch },       { "call", read_call },
                { "wrap", read_wrap },         { "observe", read_observe },
                { "halt_on", read_halt_on },   { "form", read_form },
                { "optional", read_optional },
        };
        reader->rule = rule;
        reader->has_match = reader->has_patch = false;
        rule->match.nth = -1;
        TRY(read_object(reader, "a rule", members, ARRAY_LENGTH(members)));
        if (!reader->has_match)
                return fail(STATUS_VALUE, "a rule needs \"match\", as in {\"match\": {\"target\": "
                                          "\"torch.sigmoid\"}, \"retarget\": \"torch.neg\"}");
        return STATUS_OK;
}

static Status read_rules(RuleReader *reader, RuleList *list)
{
        bool more;
        TRY(json_enter_array(reader->fx.json));
        for (;;) {
                char place[32];
                TRY(json_next_item(reader->fx.json, &more));
                if (!more)
                        return STATUS_OK;
                snprintf(place, sizeof(place), "overrides[%u]", list->n);
                list->n++;
                TRY(failure_at_argument(read_rule(reader, &list->items[list->n - 1]), place));
        }
}

// Only the rules: the rest is read first (recipe_derive.c).
static Status read_members(RuleReader *reader, RuleList *list)
{
        const char *key;
        bool more;
        TRY(json_enter_object(reader->fx.json));
        for (;;) {
                TRY(json_next_key(reader->fx.json, &key, &more));
                if (!more)
                        return STATUS_OK;
                if (strcmp(key, "overrides") == 0)
                        TRY(read_rules(reader, list));
                else
                        TRY(json_skip(reader->fx.json));
        }
}

static Status read_text(const Text *text, RuleReader *reader, RuleList *list)
{
        reader->fx.text = text->data;
        reader->fx.n = text->n;
        TRY(recipe_open(text, &list->arena, &reader->fx.json));
        reader->names = &list->arena;
        Status status = read_members(reader, list);
        json_close(reader->fx.json);
        return status;
}

Status rules_read(const Recipe *recipe, const Graph *graph, const Graph *const *called, RuleList *out_list)
{
        RuleReader reader = {
                .base = graph, .called = called, .recipe = recipe, .n_constants = recipe->n_given
        };
        _cleanup_(rule_list_deinit) RuleList list = { .n = 0 };
        _cleanup_(text_deinit) Text text = { 0 };
        arena_init(&list.arena, (size_t)limits.max_envelope * 4);
        reader.fx.templates = true;
        arena_init(&reader.fx.scratch, (size_t)limits.max_envelope * 4);
        list.items = arena_array(&list.arena, recipe->n_rules + 1, sizeof(EditRule));
        Status status = list.items == NULL ? fail_memory() : recipe_as_object(recipe, &text);
        if (status == STATUS_OK)
                status = read_text(&text, &reader, &list);
        arena_deinit(&reader.fx.scratch);
        TRY(status);
        *out_list = list;
        list = (RuleList){ .n = 0 };
        arena_init(&list.arena, 0);
        return STATUS_OK;
}
