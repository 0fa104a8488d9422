// SPDX-License-Identifier: Apache-2.0
// targets.c: the map from names to overloads. Built once from the operator table and the Python
// rows, read-only afterwards. A row with the name comes first, then derived names: torch.relu,
// torch._C._nn.relu and Tensor.relu are all overloads of aten::relu (a method only those whose
// first argument is `self`). torch.nn.functional.* is never derived: its functions have signatures
// of their own.
#include "core/targets/refuse.h"

#include <stdio.h>
#include <string.h>
#include "core/base/map.h"
#include "core/ops/arguments_check.h"
#include "core/targets/module_table.h"

static const PyTable *const tables[] = {
        &py_operator_rows, &py_builtin_rows,    &py_attribute_rows, &py_method_rows,      &py_index_rows,
        &py_function_rows, &py_functional_rows, &py_shape_rows,     &py_arrange_rows,     &py_control_rows,
        &py_observe_rows,  &py_loop_rows,       &py_loss_rows,      &py_pool_rows,        &py_vmap_rows,
        &py_math_rows,     &py_layer_rows,      &py_query_rows,     &py_torchvision_rows, &py_mvit_rows,
        &py_swin3d_rows,   &py_name_rows
};

typedef struct TargetEntry {
        Target target;
        const Overload **list;
        uint32_t capacity;
} TargetEntry;

static struct {
        bool ready;
        Arena arena;
        StringMap functions; // "torch.nn.functional.relu", "torch.ops.aten.relu" -> TargetEntry
        StringMap methods;   // "relu"
        StringMap derived;   // "relu": overloads of aten::relu; "torchvision.nms"
        StringMap overloads; // "torch.ops.aten.relu.default"
        StringMap internal;  // "fxserve.stats": not listed
        StringMap rows;      // "py::relu": all rows of PyRow by schema, left out or not
} names;

// ---- building ----
static Status entry_of(StringMap *map, const char *name, TargetEntry **out_entry)
{
        TargetEntry *entry = string_map_get(map, name);
        if (entry == NULL) {
                entry = arena_alloc(&names.arena, sizeof(*entry));
                if (entry == NULL ||
                    (entry->target.name = arena_text(&names.arena, name, strlen(name))) == NULL)
                        return fail_memory();
                TRY(string_map_set(map, entry->target.name, entry, NULL));
        }
        *out_entry = entry;
        return STATUS_OK;
}

static Status entry_add(StringMap *map, const char *name, const Overload *overload)
{
        TargetEntry *entry = NULL;
        TRY(entry_of(map, name, &entry));
        uint32_t n = entry->target.n_overloads;
        TRY(array_reserve(&entry->list, &entry->capacity, n + 1, sizeof(*entry->list)));
        entry->list[n] = overload;
        entry->target.overloads = entry->list;
        entry->target.n_overloads = n + 1;
        entry->target.gives_lists = map == &names.overloads;
        return STATUS_OK;
}

bool ops_present(const char *needs)
{
        while (needs != NULL && *needs != '\0') {
                size_t n = strcspn(needs, " ");
                bool found = false;
                for (const char *at = needs; at < needs + n;) {
                        char name[96];
                        size_t n_name = strcspn(at, "| ");
                        snprintf(name, sizeof(name), "%.*s", (int)n_name, at);
                        uint32_t n_overloads;
                        found |= op_find(name) != NULL || op_overloads(name, &n_overloads) != NULL;
                        at += n_name + (at[n_name] == '|');
                        if (n_name == 0)
                                break;
                }
                if (!found)
                        return false;
                needs += n + (needs[n] == ' ');
        }
        return true;
}

static Status template_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        TemplateSources sources = { .args = call->args };
        return template_run(emitter, call->op->row, &sources, out);
}

bool op_is_template(const OpDef *op)
{
        return op->expand == template_expand;
}

static bool is_internal(const PyRow *row)
{
        return strncmp(row->schema, "fxserve::", 9) == 0;
}

// The OpDef and Overload of a row; *out_overload = NULL when an operator it needs is missing.
static Status row_overload(const PyRow *row, const Overload **out_overload)
{
        Overload *overload = arena_alloc(&names.arena, sizeof(*overload));
        OpDef *op = arena_alloc(&names.arena, sizeof(*op));
        Template *template = arena_alloc(&names.arena, sizeof(*template));
        if (overload == NULL || op == NULL || template == NULL)
                return fail_memory();
        // `row`: the template for template_expand, else the needed operators (meaning.c).
        *op = (OpDef){ .schema = row->schema,
                       .flags = OP_HIDDEN | (is_internal(row) ? OP_INTERNAL : 0),
                       .traits = row->traits,
                       .expand = row->expand,
                       .row = row->needs };
        bool found = true;
        if (row->emits != NULL) {
                TRY(template_parse(row->emits, &names.arena, template, &found));
                op->expand = template_expand;
                op->row = template;
        }
        TRY(schema_parse(row->schema, &names.arena, &overload->schema));
        overload->op = op;
        const Schema *schema = &overload->schema;
        bool is_default = strcmp(schema->overload, "default") == 0;
        overload->name = arena_format(&names.arena, "%s::%s%s%s", schema->ns, schema->name,
                                      is_default ? "" : ".", is_default ? "" : schema->overload);
        overload->target = overload->name;
        if (overload->name == NULL)
                return fail_memory();
        *out_overload = found && ops_present(row->needs) ? overload : NULL;
        return entry_add(&names.rows, overload->name, overload);
}

static Status add_row(const PyRow *row)
{
        const Overload *overload;
        TRY(row_overload(row, &overload));
        for (const char *at = row->names; overload != NULL && *at != '\0';) {
                size_t n = strcspn(at, " ");
                char name[128];
                bool functional = strncmp(at, "F.", 2) == 0, method = *at == '.';
                size_t skip = functional ? 2 : method;
                snprintf(name, sizeof(name), "%s%.*s", functional ? "torch.nn.functional." : "",
                         (int)(n - skip), at + skip);
                StringMap *map = method             ? &names.methods
                                 : is_internal(row) ? &names.internal
                                                    : &names.functions;
                TRY(entry_add(map, name, overload));
                at += n + (at[n] == ' ');
        }
        return STATUS_OK;
}

static Status add_operator(const Overload *overload)
{
        const Schema *schema = &overload->schema;
        TRY(entry_add(&names.overloads, overload->target, overload));
        if (strcmp(schema->ns, "aten") != 0) {
                const char *packet = arena_format(&names.arena, "%s.%s", schema->ns, schema->name);
                if (packet == NULL)
                        return fail_memory();
                return (overload->op->flags & OP_HIDDEN) != 0 ? STATUS_OK
                                                              : entry_add(&names.derived, packet, overload);
        }
        TRY(entry_add(&names.derived, schema->name, overload));
        if (schema->n_args > 0 && strcmp(schema->args[SELF].name, "self") == 0)
                TRY(entry_add(&names.methods, schema->name, overload));
        return STATUS_OK;
}

// torch.max -> rows of torch.max, then overloads of aten::max.
static Status append_derived(void)
{
        for (uint32_t i = 0; i < names.functions.n; i++) {
                TargetEntry *entry = names.functions.entries[i].value;
                const char *name = entry->target.name;
                const char *base =
                        strncmp(name, "torch.", 6) == 0 && strrchr(name, '.') == name + 5 ? name + 6 : NULL;
                if (strncmp(name, "torch._C._nn.", 13) == 0)
                        base = name + 13;
                TargetEntry *derived = base == NULL ? NULL : string_map_get(&names.derived, base);
                for (uint32_t k = 0; derived != NULL && k < derived->target.n_overloads; k++)
                        TRY(entry_add(&names.functions, name, derived->target.overloads[k]));
        }
        return STATUS_OK;
}

static Status add_alias(StringMap *map, const char *alias, const char *of, const char *suffix)
{
        char name[96], source[96];
        snprintf(name, sizeof(name), "%s%s", alias, suffix);
        snprintf(source, sizeof(source), "%s%s", of, suffix);
        const TargetEntry *entry = string_map_get(map, source);
        if (entry == NULL || string_map_get(map, name) != NULL)
                return STATUS_OK;
        for (uint32_t i = 0; i < entry->target.n_overloads; i++)
                TRY(entry_add(map, name, entry->target.overloads[i]));
        return STATUS_OK;
}

static Status add_aliases(void)
{
        static const struct {
                const char *name, *of;
        } aliases[] = {
#define ALIAS(name, of) { #name, #of },
#include "core/targets/aliases.def"
#undef ALIAS
        };
        for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++) {
                TRY(add_alias(&names.derived, aliases[i].name, aliases[i].of, ""));
                TRY(add_alias(&names.derived, aliases[i].name, aliases[i].of, "_"));
                TRY(add_alias(&names.methods, aliases[i].name, aliases[i].of, ""));
                TRY(add_alias(&names.methods, aliases[i].name, aliases[i].of, "_"));
        }
        return STATUS_OK;
}

// "nn::Conv2d": the constructor's arguments of torch.nn.Conv2d.
static const Schema *find_schema(const char *name, uint32_t index)
{
        if (strncmp(name, "nn::", 4) == 0) {
                char type[96];
                snprintf(type, sizeof(type), "torch.nn.%s", name + 4);
                const ModuleEntry *entry = index == 0 ? module_entry(type) : NULL;
                return entry == NULL ? NULL : &entry->config;
        }
        const TargetEntry *entry = string_map_get(&names.rows, name);
        return entry == NULL || index >= entry->target.n_overloads ? NULL
                                                                   : &entry->target.overloads[index]->schema;
}

static const ArgumentRow arguments[] = {
#define FAMILY(schemas_)                 { .schemas = schemas_ },
#define ARG(constant, position_, names_) { .position = position_, .names = names_ },
#define OPTIONAL_ARG(constant, position_, names_)                                                            \
        { .position = position_, .names = names_, .optional = true },
#include "core/targets/arguments.def"
#undef FAMILY
#undef ARG
#undef OPTIONAL_ARG
};

Status targets_init(void)
{
        if (names.ready)
                return STATUS_OK;
        TRY(ops_init());
        arena_init(&names.arena, 0);
        for (size_t t = 0; t < ARRAY_LENGTH(tables); t++) {
                for (uint32_t i = 0; i < tables[t]->n; i++)
                        TRY(add_row(&tables[t]->rows[i]));
        }
        for (uint32_t i = 0; i < n_ops(); i++)
                TRY(add_operator(op_at(i)));
        TRY(add_aliases());
        TRY(append_derived());
        TRY(module_classes_init());
        TRY(arguments_check("core/targets/arguments.def", arguments, ARRAY_LENGTH(arguments), find_schema));
        names.ready = true;
        return STATUS_OK;
}

// ---- finding ----
static const Target *find_in(const StringMap *map, const char *name)
{
        const TargetEntry *entry = string_map_get(map, name);
        return entry == NULL ? NULL : &entry->target;
}

// torch.fft.rfft is aten::fft_rfft.
static const Target *find_in_modules(const char *name)
{
        static const char *const modules[] = { "fft", "linalg", "special" };
        char derived[96];
        for (size_t i = 0; i < ARRAY_LENGTH(modules); i++) {
                size_t n = strlen(modules[i]);
                if (strncmp(name, "torch.", 6) != 0 || strncmp(name + 6, modules[i], n) != 0 ||
                    name[6 + n] != '.')
                        continue;
                snprintf(derived, sizeof(derived), "%s_%.64s", modules[i], name + 7 + n);
                return find_in(&names.derived, derived);
        }
        return NULL;
}

const Target *target_function(const char *name)
{
        static const char *const derived_prefixes[] = { "torch._C._nn.",      "torch._C._linalg.",
                                                        "torch._C._special.", "torch._C._fft.",
                                                        "torch._VF.",         "torch.ops.aten.",
                                                        "torch.ops.",         "torch." };
        const Target *target = find_in(&names.functions, name);
        if (target == NULL && strncmp(name, "torch.ops.", 10) == 0)
                target = find_in(&names.overloads, name);
        if (target == NULL && strncmp(name, "fxserve.", 8) == 0)
                target = find_in(&names.internal, name);
        if (target != NULL)
                return target;
        if (strncmp(name, "torch.Tensor.", 13) == 0)
                return target_method(name + 13);
        if (strncmp(name, "torch._tensor.", 14) == 0)
                return target_method(name + 14);
        target = find_in_modules(name);
        for (size_t i = 0; target == NULL && i < ARRAY_LENGTH(derived_prefixes); i++) {
                size_t n = strlen(derived_prefixes[i]);
                if (strncmp(name, derived_prefixes[i], n) == 0)
                        return find_in(&names.derived, name + n);
        }
        return target;
}

const Target *target_method(const char *name)
{
        return find_in(&names.methods, name);
}

const char *op_kind(const OpDef *op)
{
        return op->run != NULL ? "kernel" : op->expand != NULL ? "expansion" : "view";
}

const char *target_name_at(TargetKind kind, uint32_t index)
{
        const StringMap *map = kind == TARGET_METHODS ? &names.methods : &names.functions;
        if (kind == TARGET_MODULES)
                return module_type_at(index);
        if (index < map->n)
                return map->entries[index].key;
        index -= map->n;
        return kind == TARGET_FUNCTIONS && index < names.derived.n ? names.derived.entries[index].key : NULL;
}

// ---- calls ----
static Status fail_no_overload(const char *name, const Overload *const *overloads, uint32_t n_overloads,
                               const CallArgs *call)
{
        char got[512] = "", known[2048] = "";
        size_t used = 0;
        for (uint32_t i = 0; i < call->n_args + call->n_kwargs && used < sizeof(got) - 96; i++) {
                bool keyword = i >= call->n_args;
                const struct DictItem *item = keyword ? &call->kwargs[i - call->n_args] : NULL;
                used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%.40s%s%s", i == 0 ? "" : ", ",
                                         keyword ? item->key->text : "", keyword ? "=" : "",
                                         value_kind_name(keyword ? item->value.kind : call->args[i].kind));
        }
        used = 0;
        for (uint32_t i = 0; i < n_overloads && used < sizeof(known) - 300; i++)
                used += (size_t)snprintf(known + used, sizeof(known) - used, "\n * %.280s",
                                         overloads[i]->schema.text);
        return fail(STATUS_VALUE,
                    "%s received an invalid combination of arguments - got (%s), but expected one of:%s",
                    name, got, known);
}

// Binds the first overload that fits; NULL when none does. The caller releases the arguments.
static const Overload *choose(const Overload *const *overloads, uint32_t n_overloads, const CallArgs *call,
                              Value *out_args, uint64_t *out_given)
{
        for (BindMode mode = BIND_STRICT; mode <= BIND_NUMBERS; mode++) {
                for (uint32_t i = 0; i < n_overloads; i++) {
                        if (schema_try_bind(&overloads[i]->schema, call, mode, out_args, out_given))
                                return overloads[i];
                }
        }
        return NULL;
}

const Overload *target_choose(const Target *target, const CallArgs *call)
{
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        const Overload *overload = choose(target->overloads, target->n_overloads, call, args, &given);
        if (overload != NULL)
                schema_release(&overload->schema, args, given);
        return overload;
}

static Status call_chosen(Emitter *emitter, const Target *target, const CallArgs *call,
                          const Overload **out_overload, Value *out)
{
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        const Overload *overload;
        if (target->n_overloads == 1) {
                overload = target->overloads[0];
                TRY(schema_bind(&overload->schema, call, BIND_NUMBERS, args, &given));
        } else {
                overload = choose(target->overloads, target->n_overloads, call, args, &given);
                if (overload == NULL)
                        return fail_no_overload(target->name, target->overloads, target->n_overloads, call);
        }
        *out_overload = overload;
        Status status = emit(emitter, overload, args, given, out);
        schema_release(&overload->schema, args, given);
        return status;
}

Status overloads_call(Emitter *emitter, const char *name, const Overload *const *overloads,
                      uint32_t n_overloads, const CallArgs *call, Value *out)
{
        const Target target = { .name = name, .overloads = overloads, .n_overloads = n_overloads };
        const Overload *overload = NULL;
        return call_chosen(emitter, &target, call, &overload, out);
}

Status target_call(Emitter *emitter, const Target *target, const CallArgs *call, Value *out)
{
        const Overload *overload = NULL;
        TRY(call_chosen(emitter, target, call, &overload, out));
        if (overload->schema.returns == RETURN_LIST && out->kind == VALUE_LIST && !target->gives_lists)
                out->kind = VALUE_TUPLE;
        if (!value_is_sequence(*out) && out->kind != VALUE_DICT && out->kind != VALUE_SLICE)
                return STATUS_OK;
        Status status = value_check_nesting(*out);
        if (status != STATUS_OK)
                value_clear(out);
        return status;
}

Status target_check(const Target *target, const CallArgs *call)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                if (schema_fits(&target->overloads[i]->schema, call, BIND_NUMBERS))
                        return STATUS_OK;
        }
        if (target->n_overloads != 1)
                return fail_no_overload(target->name, target->overloads, target->n_overloads, call);
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        TRY(schema_bind(&target->overloads[0]->schema, call, BIND_NUMBERS, args, &given));
        schema_release(&target->overloads[0]->schema, args, given);
        return STATUS_OK;
}

Status aten_call(Emitter *emitter, const char *base, const Value *args, uint32_t n_args, Value *out)
{
        uint32_t n_overloads;
        const Overload *const *overloads = op_overloads(base, &n_overloads);
        if (overloads == NULL)
                return fail(STATUS_UNSUPPORTED, "this build lacks the operator %s", base);
        CallArgs call = { .args = args, .n_args = n_args };
        return overloads_call(emitter, base, overloads, n_overloads, &call, out);
}

const char *aten_first(const char *base, const char *alternative)
{
        uint32_t n;
        return op_overloads(base, &n) != NULL ? base : alternative;
}
