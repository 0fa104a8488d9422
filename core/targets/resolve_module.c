// SPDX-License-Identifier: Apache-2.0
// resolve_module.c: one called module of a graph: its class, its configuration laid out as the
// class's constructor has it, the paths of its state, and whether the state's shapes are those the
// configuration asks for.
#include "core/targets/resolve.h"

#include <stdio.h>
#include <string.h>

// ---- configuration ----
static Status report_config(CheckReport *report, const Module *module, const ModuleEntry *entry,
                            const char *problem)
{
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text, "%s: %s (%s knows ", module->path, problem, entry->class->type);
        for (uint32_t i = 0; i < entry->config.n_args; i++)
                text_addf(&text, "%s%s", i == 0 ? "" : ", ", entry->config.args[i].name);
        text_add(&text, entry->config.n_args == 0 ? "no arguments)" : ")");
        TRY(text_status(&text));
        return report_unknown_config(report, text.data);
}

static const Value *config_value(const Module *module, const char *key)
{
        for (uint32_t i = 0; i < module->n_config; i++) {
                if (strcmp(module->config[i].key, key) == 0)
                        return &module->config[i].value;
        }
        return NULL;
}

static bool knows(const ModuleEntry *entry, const char *key)
{
        for (uint32_t i = 0; i < entry->config.n_args; i++) {
                if (strcmp(entry->config.args[i].name, key) == 0)
                        return true;
        }
        return false;
}

// *out_config = NULL when something was added to the report.
static Status resolve_config(Graph *graph, const Module *module, const ModuleEntry *entry,
                             CheckReport *report, const Value **out_config)
{
        uint32_t n = entry->config.n_args;
        bool complete = true;
        char problem[512];
        Value *config = arena_array(&graph->arena, n == 0 ? 1 : n, sizeof(*config));
        if (config == NULL)
                return fail_memory();
        *out_config = NULL;
        for (uint32_t i = 0; i < module->n_config; i++) {
                if (knows(entry, module->config[i].key))
                        continue;
                complete = false;
                TRY(report_config(report, module, entry, module->config[i].key));
        }
        for (uint32_t i = 0; i < n; i++) {
                const SchemaArg *arg = &entry->config.args[i];
                const Value *given = config_value(module, arg->name);
                config[i] = given != NULL ? *given : arg->default_value;
                if (given != NULL || arg->has_default)
                        continue;
                complete = false;
                snprintf(problem, sizeof(problem), "%s is missing", arg->name);
                TRY(report_config(report, module, entry, problem));
        }
        if (!complete)
                return STATUS_OK;
        // Types, as if the constructor had been called with everything by position.
        Value bound[SCHEMA_MAX_ARGS];
        uint64_t given_mask;
        CallArgs call = { .args = config, .n_args = n };
        Status status = schema_bind(&entry->config, &call, BIND_STRICT, bound, &given_mask);
        if (status != STATUS_OK && status_class(status) != STATUS_CLASS_CALLER)
                return status;
        if (status != STATUS_OK) {
                snprintf(problem, sizeof(problem), "%.400s", failure_current()->message);
                return report_config(report, module, entry, problem);
        }
        schema_release(&entry->config, bound, given_mask);
        *out_config = config;
        return STATUS_OK;
}

// ---- state ----
static bool state_wanted(const struct ModuleState *state, const ModuleEntry *entry, const Value *config)
{
        for (uint32_t i = 0; i < entry->config.n_args; i++) {
                if ((state->flags >> i & 1) != 0 && !python_truth(config[i]))
                        return false;
        }
        return true;
}

static Status add_path(Graph *graph, const Module *module, const char *name, bool optional,
                       CheckReport *report, const char **out_path)
{
        const char *path = arena_format(&graph->arena, "%s.%s", module->path, name);
        if (path == NULL)
                return fail_memory();
        if (graph_state(graph, path) != NULL)
                *out_path = path;
        else if (!optional)
                TRY(report_missing_state(report, path));
        return STATUS_OK;
}

static Status resolve_state(Graph *graph, const Module *module, CheckReport *report, ResolvedModule *resolved)
{
        const ModuleEntry *entry = resolved->entry;
        const char **paths = arena_array(&graph->arena, MODULE_MAX_STATE, sizeof(*paths));
        if (paths == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < entry->n_state; i++) {
                const struct ModuleState *state = &entry->state[i];
                if (state_wanted(state, entry, resolved->config))
                        TRY(add_path(graph, module, state->name, state->optional, report, &paths[i]));
        }
        resolved->state_paths = paths;
        resolved->n_state = entry->n_state;
        return STATUS_OK;
}

// ---- shapes ----
typedef struct ShapeText {
        int rank;
        int64_t size[MAX_RANK];
} ShapeText;

static const Value *config_named(const ModuleEntry *entry, const Value *config, const char *name, size_t n,
                                 uint32_t *out_index)
{
        for (uint32_t i = 0; i < entry->config.n_args; i++) {
                if (strlen(entry->config.args[i].name) == n &&
                    memcmp(entry->config.args[i].name, name, n) == 0) {
                        *out_index = i;
                        return &config[i];
                }
        }
        return NULL;
}

static bool append_term(ShapeText *shape, const ModuleEntry *entry, const Value *config, const char *term,
                        size_t n)
{
        uint32_t index = 0, divisor_index = 0;
        const char *slash = memchr(term, '/', n);
        const Value *value =
                config_named(entry, config, term, slash == NULL ? n : (size_t)(slash - term), &index);
        if (value == NULL)
                return false;
        bool list = value_is_sequence(*value);
        int repeat = list ? (int)MIN(value->seq->n, MAX_RANK) : MAX(entry->config.args[index].list_size, 1);
        int64_t divisor = 1;
        if (slash != NULL) {
                const Value *by = config_named(entry, config, slash + 1, n - (size_t)(slash - term) - 1,
                                               &divisor_index);
                divisor = by == NULL || !python_is_integral(*by) ? 0 : python_int(*by);
        }
        for (int i = 0; i < repeat; i++) {
                Value item = list ? value->seq->items[i] : *value;
                if (shape->rank == MAX_RANK || divisor < 1 || !python_is_integral(item))
                        return false;
                shape->size[shape->rank++] = python_int(item) / divisor;
        }
        return true;
}

// "out_channels,in_channels/groups,kernel_size" -> [16, 3, 3, 3]; false where the configuration
// does not say.
static bool wanted_shape(const ModuleEntry *entry, const Value *config, const char *text, size_t n,
                         ShapeText *out)
{
        *out = (ShapeText){ 0 };
        for (size_t at = 0; at < n;) {
                size_t length = strcspn(text + at, ", ");
                if (!append_term(out, entry, config, text + at, length))
                        return false;
                at += length + 1;
        }
        return true;
}

static Status check_shape(const Module *module, const State *state, const ShapeText *wanted)
{
        const TensorMeta *meta = &state->tensor->meta;
        if (meta->rank == wanted->rank &&
            memcmp(meta->size, wanted->size, (size_t)wanted->rank * sizeof(int64_t)) == 0)
                return STATUS_OK;
        char found_text[160], wanted_text[160];
        return fail(
                STATUS_SHAPE,
                "size mismatch for %s: the state has shape %s, but the configuration of \"%s\" (%s) makes "
                "it %s",
                state->path, shape_text(meta->rank, meta->size, found_text, sizeof(found_text)), module->path,
                module->type, shape_text(wanted->rank, wanted->size, wanted_text, sizeof(wanted_text)));
}

static Status check_shapes(const Graph *graph, const Module *module, const ResolvedModule *resolved)
{
        const ModuleEntry *entry = resolved->entry;
        const char *at = entry->class->shapes;
        for (uint32_t i = 0; at != NULL && *at != '\0' && i < entry->n_state; i++) {
                size_t n = strcspn(at, " ");
                ShapeText wanted;
                const char *path = resolved->state_paths[i];
                const State *state = path == NULL ? NULL : graph_state(graph, path);
                if (state != NULL && at[0] != '-' && wanted_shape(entry, resolved->config, at, n, &wanted))
                        TRY(check_shape(module, state, &wanted));
                at += n + (at[n] == ' ');
        }
        return STATUS_OK;
}

// ---- state that depends on the configuration ----
static Status resolve_state_at(Graph *graph, const Module *module, CheckReport *report,
                               ResolvedModule *resolved)
{
        bool (*state_at)(const Value *, uint32_t, ModuleStateEntry *) = resolved->entry->class->state_at;
        ModuleStateEntry wanted;
        while (state_at(resolved->config, resolved->n_state, &wanted))
                resolved->n_state++;
        const char **paths = arena_array(&graph->arena, MAX(resolved->n_state, 1), sizeof(*paths));
        if (paths == NULL)
                return fail_memory();
        for (uint32_t i = 0; state_at(resolved->config, i, &wanted); i++) {
                if (!wanted.absent)
                        TRY(add_path(graph, module, wanted.name, false, report, &paths[i]));
                const State *state = paths[i] == NULL ? NULL : graph_state(graph, paths[i]);
                ShapeText shape = { .rank = wanted.rank };
                memcpy(shape.size, wanted.size, sizeof(shape.size));
                if (state != NULL)
                        TRY(check_shape(module, state, &shape));
        }
        resolved->state_paths = paths;
        return STATUS_OK;
}

// ---- modules that it calls ----
typedef struct ChildWord {
        char name[64], type[96]; // type: "" for any
        bool optional, many;
} ChildWord;

// "layers.*:torch.nn.TransformerEncoderLayer"; returns what follows.
static const char *next_child(const char *at, ChildWord *out)
{
        size_t n = strcspn(at, " "), n_name = strcspn(at, " :?.");
        const char *colon = memchr(at, ':', n);
        *out = (ChildWord){ .optional = at[n_name] == '?', .many = at[n_name] == '.' };
        snprintf(out->name, sizeof(out->name), "%.*s", (int)n_name, at);
        if (colon != NULL)
                snprintf(out->type, sizeof(out->type), "%.*s", (int)(at + n - colon - 1), colon + 1);
        return at + n + (at[n] == ' ');
}

static Module *child_at(const Graph *graph, const Module *module, const ChildWord *word, uint32_t index)
{
        char path[1024];
        int n = word->many ? snprintf(path, sizeof(path), "%s.%s.%u", module->path, word->name, index)
                           : snprintf(path, sizeof(path), "%s.%s", module->path, word->name);
        return n >= (int)sizeof(path) || (index > 0 && !word->many) ? NULL : graph_module(graph, path);
}

// Any class will do only if it calls no modules itself. So the table bounds how deep modules call
// each other.
static Status resolve_child(Graph *graph, Module *child, const ChildWord *word, const Node *node,
                            CheckReport *report)
{
        const char *type = child->type == NULL ? "a module without a type" : child->type;
        const ModuleEntry *entry = module_entry(type);
        const bool any = word->type[0] == '\0';
        if (any ? entry != NULL && entry->class->children != NULL : strcmp(type, word->type) != 0) {
                char reason[320];
                snprintf(reason, sizeof(reason), "\"%.150s\" should be a %s", child->path,
                         any ? "class that calls no modules" : word->type);
                return report_unsupported(report, type, reason, node);
        }
        TRY(resolve_module(graph, child, node, report)); // depth: the table of classes
        return child->resolved == NULL ? STATUS_OK : report_refusal(report, node, type, module_refuse(child));
}

static uint32_t count_children(const Graph *graph, const Module *module, const char *words)
{
        uint32_t n = 0;
        ChildWord word;
        for (const char *at = words; at != NULL && *at != '\0'; n++) {
                at = next_child(at, &word);
                for (uint32_t i = 1; child_at(graph, module, &word, i) != NULL; i++)
                        n++;
        }
        return n;
}

static Status report_no_child(CheckReport *report, const Module *module, const ChildWord *word,
                              const Node *node)
{
        char reason[320];
        snprintf(reason, sizeof(reason), "it needs the module \"%.150s.%s%s\" in \"modules\"", module->path,
                 word->name, word->many ? ".0" : "");
        return report_unsupported(report, module->type, reason, node);
}

static Status resolve_children(Graph *graph, const Module *module, const Node *node, CheckReport *report,
                               ResolvedModule *resolved)
{
        const char *words = resolved->entry->class->children;
        ChildWord word;
        uint32_t n = count_children(graph, module, words);
        resolved->children = arena_array(&graph->arena, MAX(n, 1), sizeof(*resolved->children));
        if (resolved->children == NULL)
                return fail_memory();
        for (const char *at = words; at != NULL && *at != '\0';) {
                at = next_child(at, &word);
                Module *child = child_at(graph, module, &word, 0);
                if (child == NULL && !word.optional)
                        return report_no_child(report, module, &word, node);
                for (uint32_t i = 1; i == 1 || child != NULL; i++) {
                        if (child != NULL)
                                TRY(resolve_child(graph, child, &word, node, report));
                        resolved->children[resolved->n_children++] = child;
                        child = child_at(graph, module, &word, i);
                }
        }
        return STATUS_OK;
}

// ---- the whole ----
Status resolve_module(Graph *graph, Module *module, const Node *node, CheckReport *report)
{
        if (module->resolved != NULL)
                return STATUS_OK;
        const ModuleEntry *entry = module_entry(module->type);
        if (entry == NULL)
                return report_unsupported(
                        report, module->type == NULL ? "a module without a type" : module->type, NULL, node);
        const Value *config;
        ResolvedModule *resolved = arena_alloc(&graph->arena, sizeof(*resolved));
        if (resolved == NULL)
                return fail_memory();
        TRY(resolve_config(graph, module, entry, report, &config));
        if (config == NULL)
                return STATUS_OK;
        resolved->entry = entry;
        resolved->config = config;
        if (entry->class->state_at != NULL) {
                TRY(resolve_state_at(graph, module, report, resolved));
        } else {
                TRY(resolve_state(graph, module, report, resolved));
                TRY(check_shapes(graph, module, resolved));
        }
        TRY(resolve_children(graph, module, node, report, resolved));
        module->resolved = resolved;
        return STATUS_OK;
}
