// SPDX-License-Identifier: Apache-2.0
// refuse.c: finds calls that no run can serve, whatever the tensors are, from constant arguments
// alone. A call is emitted with its nodes as unknown values. A template's call goes on to its
// operators; every other call stops before infer.
#include "core/targets/refuse.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/int4.h"
#include "core/targets/module_table.h"

// ---- rows ----
// The position of argument `name`, which differs between the operators that share a check. -1:
// absent, None or unknown.
static int given_at(const OpCall *call, const char *name)
{
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (strcmp(call->schema->args[i].name, name) != 0)
                        continue;
                ValueKind kind = call->args[i].kind;
                bool unknown = kind == VALUE_NODE || kind == VALUE_DYNAMIC || kind == VALUE_NONE ||
                               kind == VALUE_ABSENT;
                return unknown ? -1 : (int)i;
        }
        return -1;
}

static const Value *constant_named(const OpCall *call, const char *name)
{
        int at = given_at(call, name);
        return at < 0 ? NULL : &call->args[at];
}

Status refuse_cuda(const OpCall *call)
{
        (void)call;
        return fail(STATUS_UNSUPPORTED,
                    "cuda() needs a GPU: fxserve runs on the CPU; export the graph for \"cpu\"");
}

Status effect_target(Value op, const Target **out_target)
{
        static const char *const known[] = { "aten._linalg_check_errors.default", "aten._print.default",
                                             "aten._assert_async.msg", "aten._assert_async.default" };
        char name[128];
        for (size_t i = 0; op.kind == VALUE_STR && i < ARRAY_LENGTH(known); i++) {
                if (strcmp(op.str->text, known[i]) != 0)
                        continue;
                snprintf(name, sizeof(name), "torch.ops.%s", known[i]);
                *out_target = target_function(name);
                if (*out_target != NULL)
                        return STATUS_OK;
        }
        return fail(STATUS_UNSUPPORTED, "with_effects of %.80s is not supported",
                    op.kind == VALUE_STR ? op.str->text : value_kind_name(op.kind));
}

static Status refuse_effect(const OpCall *call)
{
        const Value *op = constant_named(call, "op");
        const Target *target;
        return op == NULL ? STATUS_OK : effect_target(*op, &target);
}

static Status refuse_device(const OpCall *call)
{
        const Value *device = constant_named(call, "device"), *args = constant_named(call, "args");
        if (device != NULL)
                TRY(check_device(*device));
        for (uint32_t i = 0; args != NULL && value_is_sequence(*args) && i < args->seq->n; i++) {
                if (args->seq->items[i].kind == VALUE_DEVICE || args->seq->items[i].kind == VALUE_STR)
                        TRY(check_device(args->seq->items[i]));
        }
        return STATUS_OK;
}

static Status refuse_processor(const OpCall *call)
{
        const Value *processor = constant_named(call, "packed_on");
        for (int i = 0; processor != NULL && processor->kind == VALUE_STR && i < PACKED_ON_COUNT; i++)
                if (strcmp(processor->str->text, packed_on_names[i]) == 0)
                        return STATUS_OK;
        return processor == NULL ? STATUS_OK
                                 : fail(STATUS_UNSUPPORTED, "packed_on is a processor of ?packed_on=");
}

static const struct {
        const char *ns, *name; // of the schema
        Status (*refuse)(const OpCall *call);
} rows[] = {
        { "py", "cuda", refuse_cuda },
        { "py", "tensor", refuse_device },
        { "py", "to", refuse_device },
        { "py", "with_effects", refuse_effect },
        { "fxserve", "weight_int4pack_mm_for_cpu", refuse_processor },
        { "fxserve", "convert_weight_to_int4pack_for_cpu", refuse_processor },
};

static Status refuse_row(const OpCall *call)
{
        size_t n = strlen(call->schema->name);
        n -= n > 0 && call->schema->name[n - 1] == '_'; // in-place twins
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                if (strncmp(rows[i].name, call->schema->name, n) == 0 && rows[i].name[n] == '\0' &&
                    strcmp(rows[i].ns, call->schema->ns) == 0)
                        return rows[i].refuse(call);
        }
        return STATUS_OK;
}

const char *refused_name(const char *name)
{
        static const char *const packed[] = { "aten._weight_int4pack_mm_for_cpu",
                                              "aten._convert_weight_to_int4pack_for_cpu" };
        for (size_t i = 0; i < ARRAY_LENGTH(packed); i++) {
                size_t n = strlen(packed[i]);
                if (strncmp(name, packed[i], n) == 0 &&
                    (name[n] == '\0' || strcmp(name + n, ".default") == 0))
                        return "the order of packed weights depends on the processor that packed them: "
                               "upload with ?packed_on= (\"Weights of four bits\" in docs/api.md); calls in "
                               "child graphs have to be written as torch.ops.fxserve's";
        }
        return NULL;
}

// ---- the walk through templates ----
static Status probe_check(Emitter *emitter, const OpCall *call)
{
        (void)emitter;
        TRY(refuse_row(call));
        return op_is_template(call->op) ? STATUS_OK
                                        : fail(STATUS_DYNAMIC, "%s is not run here", call->schema->name);
}

static Emitter probe_of(void)
{
        static const EmitterVtbl vtbl = { .check = probe_check };
        return (Emitter){ .vtbl = &vtbl };
}

// Only a call that no run can serve is a failure; internal errors are passed on.
static Status judge(Status status, Value *result)
{
        value_clear(result);
        return status == STATUS_UNSUPPORTED ||
                               (status_class(status) == STATUS_CLASS_INTERNAL && status != STATUS_DYNAMIC)
                       ? status
                       : STATUS_OK;
}

// Replaces nodes by unknown values, also within lists.
static Status hide_node(void *context, const Value *leaf, Value *out)
{
        (void)context;
        *out = leaf->kind == VALUE_NODE ? (Value){ .kind = VALUE_DYNAMIC } : value_ref(*leaf);
        return STATUS_OK;
}

static Status refuse_overload(const Overload *overload, const CallArgs *call)
{
        Value args[SCHEMA_MAX_ARGS], result = value_none();
        uint64_t given;
        Emitter probe = probe_of();
        if (!schema_try_bind(&overload->schema, call, BIND_NUMBERS, args, &given))
                return STATUS_OK;
        Status status = emit(&probe, overload, args, given, &result);
        schema_release(&overload->schema, args, given);
        return judge(status, &result);
}

// Whether the overload fits for every value of the nodes: none may stand in a typed argument.
static bool fits_surely(const Overload *overload, const CallArgs *call)
{
        for (uint32_t i = 0; i < call->n_args; i++) {
                bool takes_any = i < overload->schema.n_args && overload->schema.args[i].type == ARG_ANY;
                if (call->args[i].kind == VALUE_DYNAMIC && !takes_any)
                        return false;
        }
        for (uint32_t i = 0; i < call->n_kwargs; i++) {
                if (call->kwargs[i].value.kind == VALUE_DYNAMIC)
                        return false;
        }
        return schema_fits(&overload->schema, call, BIND_STRICT);
}

// Where several overloads fit, a run chooses by its tensors. All must refuse, up to the first one
// that fits surely.
static Status refuse_hidden(const Target *target, const CallArgs *call)
{
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Overload *overload = target->overloads[i];
                if (!schema_fits(&overload->schema, call, BIND_NUMBERS))
                        continue;
                status = refuse_overload(overload, call);
                if (status == STATUS_OK || fits_surely(overload, call))
                        return status;
        }
        return status;
}

static bool may_refuse(const Target *target)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                const Schema *schema = &target->overloads[i]->schema;
                if (strcmp(schema->ns, "py") == 0)
                        return true;
                for (size_t k = 0; k < ARRAY_LENGTH(rows); k++) {
                        size_t n = strlen(rows[k].name);
                        if (strncmp(schema->name, rows[k].name, n) == 0 &&
                            (schema->name[n] == '\0' || schema->name[n] == '_'))
                                return true;
                }
        }
        return false;
}

Status target_refuse(const Target *target, const Node *node)
{
        _cleanup_(value_clear) Value args = value_none();
        _cleanup_(value_clear) Value kwargs = value_none();
        if (!may_refuse(target))
                return STATUS_OK;
        TRY(value_map(node->args, hide_node, NULL, &args));
        TRY(value_map(node->kwargs, hide_node, NULL, &kwargs));
        CallArgs call = { .args = args.seq->items, .n_args = args.seq->n };
        if (kwargs.kind == VALUE_DICT) {
                call.kwargs = kwargs.dict->items;
                call.n_kwargs = kwargs.dict->n;
        }
        return refuse_hidden(target, &call);
}

Status module_refuse(const Module *module)
{
        const ResolvedModule *resolved = module->resolved;
        const ModuleEntry *entry = resolved->entry;
        Value args[SCHEMA_MAX_ARGS], state[MODULE_MAX_STATE], result = value_none();
        ModuleCall call = { .module = module,
                            .config = resolved->config,
                            .state = state,
                            .children = resolved->children,
                            .n_children = resolved->n_children,
                            .args = args };
        for (uint32_t i = 0; i < entry->forward.n_args; i++)
                args[i].kind = VALUE_DYNAMIC;
        for (uint32_t i = 0; i < MODULE_MAX_STATE; i++)
                state[i].kind = VALUE_DYNAMIC;
        if (entry->class->refuse != NULL)
                return entry->class->refuse(&call);
        if (entry->class->run != NULL)
                return STATUS_OK;
        Emitter probe = probe_of();
        TemplateSources sources = { .args = args, .config = resolved->config, .state = state };
        return judge(template_run(&probe, &entry->emits, &sources, &result), &result);
}
