// SPDX-License-Identifier: Apache-2.0
// module_call.c: the table of module classes, and module.forward(*args). Configuration and state
// paths are resolved once per graph (resolve.c). A call looks the run's state up, binds forward's
// arguments and runs.
#include <string.h>
#include "core/base/map.h"
#include "core/targets/module_table.h"

static const ModuleTable *const tables[] = { &layer_classes,   &activation_classes, &attention_classes,
                                             &pooling_classes, &recurrent_classes,  &shape_classes,
                                             &loss_classes,    &transformer_classes };

static struct {
        Arena arena;
        StringMap by_type; // "torch.nn.Linear" -> ModuleEntry
} classes;

// "bias?affine,bias" -> a name and the configuration flags it depends on.
static Status parse_state_word(const char *word, size_t n, ModuleEntry *entry)
{
        if (entry->n_state == MODULE_MAX_STATE)
                return fail(STATUS_INTERNAL, "%s has too many state names", entry->class->type);
        struct ModuleState *state = &entry->state[entry->n_state++];
        state->optional = word[n - 1] == '?';
        size_t n_name = 0;
        while (n_name < n && word[n_name] != '?')
                n_name++;
        state->name = arena_text(&classes.arena, word, n_name);
        if (state->name == NULL)
                return fail_memory();
        for (const char *at = word + n_name; at < word + n && *at != ' '; at++) {
                size_t n_flag = strcspn(at + 1, ",? ");
                for (uint32_t i = 0; i < entry->config.n_args; i++) {
                        const char *flag = entry->config.args[i].name;
                        if (strlen(flag) == n_flag && memcmp(flag, at + 1, n_flag) == 0)
                                state->flags |= (uint64_t)1 << i;
                }
                at += n_flag;
        }
        return STATUS_OK;
}

static Status parse_state(const ModuleClass *class, ModuleEntry *entry)
{
        for (const char *at = class->state; *at != '\0';) {
                size_t n = strcspn(at, " ");
                TRY(parse_state_word(at, n, entry));
                at += n + (at[n] == ' ');
        }
        return STATUS_OK;
}

static Status add_class(const ModuleClass *class)
{
        ModuleEntry *entry = arena_alloc(&classes.arena, sizeof(*entry));
        if (entry == NULL)
                return fail_memory();
        bool found = true;
        entry->class = class;
        if (class->emits != NULL)
                TRY(template_parse(class->emits, &classes.arena, &entry->emits, &found));
        if (!found || !ops_present(class->needs))
                return STATUS_OK;
        TRY(schema_parse(class->config, &classes.arena, &entry->config));
        TRY(schema_parse(class->forward, &classes.arena, &entry->forward));
        TRY(parse_state(class, entry));
        return string_map_set(&classes.by_type, class->type, entry, NULL);
}

Status module_classes_init(void)
{
        arena_init(&classes.arena, 0);
        for (size_t t = 0; t < ARRAY_LENGTH(tables); t++) {
                for (uint32_t i = 0; i < tables[t]->n; i++)
                        TRY(add_class(&tables[t]->rows[i]));
        }
        return STATUS_OK;
}

const ModuleEntry *module_entry(const char *type)
{
        return type == NULL ? NULL : string_map_get(&classes.by_type, type);
}

const ModuleClass *module_class(const char *type)
{
        const ModuleEntry *entry = module_entry(type);
        return entry == NULL ? NULL : entry->class;
}

const char *module_type_at(uint32_t index)
{
        return index < classes.by_type.n ? classes.by_type.entries[index].key : NULL;
}

// ---- calls ----
static Status run_class(Emitter *emitter, const ModuleEntry *entry, const ModuleCall *call, Value *out)
{
        if (entry->class->run != NULL)
                return entry->class->run(emitter, call, out);
        TemplateSources sources = { .args = call->args, .config = call->config, .state = call->state };
        return template_run(emitter, &entry->emits, &sources, out);
}

Status module_call(Emitter *emitter, const Module *module, const CallArgs *call, Value *out)
{
        const ResolvedModule *resolved = module->resolved;
        if (resolved == NULL)
                return fail(STATUS_UNSUPPORTED, "the module \"%s\" is a %s, which this version lacks",
                            module->path, module->type == NULL ? "torch.nn.Module" : module->type);
        const ModuleEntry *entry = resolved->entry;
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        _cleanup_(freep) Value *state = new_array(resolved->n_state, sizeof(*state));
        if (state == NULL)
                return fail_memory();
        TRY(schema_bind(&entry->forward, call, BIND_STRICT, args, &given));
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (; n < resolved->n_state && status == STATUS_OK; n++) {
                state[n] = value_none();
                if (resolved->state_paths[n] != NULL)
                        status = emitter->vtbl->state(emitter, emitter->graph, resolved->state_paths[n],
                                                      &state[n]);
        }
        if (status == STATUS_OK) {
                ModuleCall bound = { .module = module,
                                     .config = resolved->config,
                                     .state = state,
                                     .n_state = n,
                                     .children = resolved->children,
                                     .n_children = resolved->n_children,
                                     .args = args };
                status = run_class(emitter, entry, &bound, out);
        }
        while (n > 0)
                value_clear(&state[--n]);
        schema_release(&entry->forward, args, given);
        return status;
}
