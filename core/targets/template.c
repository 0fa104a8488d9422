// SPDX-License-Identifier: Apache-2.0
// template.c: "aten::batch_norm a0 a3 a4 a1 a2 a5 a6 a7 false". Most Python functions and module
// classes only reorder arguments, which a line of text describes. It is parsed once at start. A row
// whose operator is missing is left out and reported as unsupported at upload.
#include "core/targets/py.h"
#include "core/ops/lazy.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static Status fail_template(const char *text, const char *why)
{
        return fail(STATUS_INTERNAL, "template \"%s\": %s", text, why);
}

static Status parse_constant(const char *text, const char *word, TemplateArg *out)
{
        char *end;
        out->kind = 'k';
        if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
                out->constant = value_bool(word[0] == 't');
                return STATUS_OK;
        }
        if (strcmp(word, "none") == 0) {
                out->constant = value_none();
                return STATUS_OK;
        }
        long long whole = strtoll(word, &end, 10);
        if (*end == '\0') {
                out->constant = value_int(whole);
                return STATUS_OK;
        }
        double real = strtod(word, &end);
        out->constant = value_float(real);
        return *end == '\0' ? STATUS_OK : fail_template(text, "unknown word");
}

static Status parse_word(const char *text, const char *word, TemplateArg *out)
{
        const char *at = word;
        *out = (TemplateArg){ .constant = value_none() };
        if (strchr("ezir!~", *at) != NULL && strchr("acs", at[1]) != NULL && at[1] != '\0')
                out->filter = *at++;
        if ((*at == 'a' || *at == 'c' || *at == 's') && isdigit((unsigned char)at[1])) {
                out->kind = *at;
                out->index = (uint8_t)atoi(at + 1);
                return STATUS_OK;
        }
        return parse_constant(text, word, out);
}

// The overloads of "aten::relu", or the one of "aten::to.dtype"; with `twin` those of
// "aten::relu_".
static Status find_overloads(const char *op, bool twin, Arena *arena, const Overload *const **out_list,
                             uint32_t *out_n)
{
        const char *dot = strchr(op, '.');
        size_t n_base = dot == NULL ? strlen(op) : (size_t)(dot - op);
        const char *name =
                arena_format(arena, "%.*s%s%s", (int)n_base, op, twin ? "_" : "", dot == NULL ? "" : dot);
        if (name == NULL)
                return fail_memory();
        *out_n = 0;
        *out_list = NULL;
        if (strncmp(op, "F.", 2) == 0) {
                const char *function = arena_format(arena, "torch.nn.functional.%s", op + 2);
                const Target *target = function == NULL || twin ? NULL : target_function(function);
                *out_list = target == NULL ? NULL : target->overloads;
                *out_n = target == NULL ? 0 : target->n_overloads;
                return function == NULL ? fail_memory() : STATUS_OK;
        }
        if (dot == NULL) {
                *out_list = op_overloads(name, out_n);
                return STATUS_OK;
        }
        const Overload *overload = op_find(name);
        if (overload == NULL)
                return STATUS_OK;
        const Overload **list = arena_alloc(arena, sizeof(*list));
        if (list == NULL)
                return fail_memory();
        list[0] = overload;
        *out_list = list;
        *out_n = 1;
        return STATUS_OK;
}

static Status parse_alternative(const char *text, char *part, Arena *arena, Template *out, bool *out_found)
{
        Template template = { 0 };
        char *rest, *word = strtok_r(part, " ", &rest);
        if (word == NULL)
                return fail_template(text, "empty");
        size_t n = strlen(word);
        if (n > 3 && strcmp(word + n - 3, "[0]") == 0) {
                template.first_only = true;
                word[n - 3] = '\0';
        }
        template.op = word;
        TRY(find_overloads(word, false, arena, &template.overloads, &template.n_overloads));
        TRY(find_overloads(word, true, arena, &template.twins, &template.n_twins));
        while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
                if (template.n_args == TEMPLATE_MAX_ARGS)
                        return fail_template(text, "too many arguments");
                TRY(parse_word(text, word, &template.args[template.n_args]));
                template.n_args++;
        }
        *out_found = template.n_overloads > 0;
        if (*out_found)
                *out = template;
        return STATUS_OK;
}

Status template_parse(const char *text, Arena *arena, Template *out_template, bool *out_found)
{
        char *copy = arena_text(arena, text, strlen(text));
        if (copy == NULL)
                return fail_memory();
        *out_found = false;
        while (copy != NULL && !*out_found) {
                char *bar = strchr(copy, '|');
                if (bar != NULL)
                        *bar = '\0';
                TRY(parse_alternative(text, copy, arena, out_template, out_found));
                copy = bar == NULL ? NULL : bar + 1;
        }
        return STATUS_OK;
}

// ---- running ----
Status python_reduction(Value value, Value *out)
{
        static const char *const names[] = { "none", "mean", "sum" };
        for (int i = 0; i < 3 && value.kind == VALUE_STR; i++) {
                if (strcmp(value.str->text, names[i]) == 0) {
                        *out = value_int(i);
                        return STATUS_OK;
                }
        }
        return fail(STATUS_VALUE, "%s is not a valid value for reduction",
                    value.kind == VALUE_STR ? value.str->text : value_kind_name(value.kind));
}

static Status apply_filter(const Template *template, const TemplateArg *arg, Value value, const Value *empty,
                           Value *out)
{
        bool none = value.kind == VALUE_NONE || value.kind == VALUE_ABSENT;
        switch (arg->filter) {
        case 'e':
                *out = none ? *empty : value;
                return STATUS_OK;
        case 'z':
                *out = none ? value_bool(false) : value;
                return STATUS_OK;
        case 'i':
                *out = none ? value_int(-1) : value;
                return STATUS_OK;
        case 'r':
                return python_reduction(value, out);
        case '~':
                if (none || (value.kind == VALUE_BOOL && !value.b))
                        return STATUS_OK;
                if (value.kind == VALUE_DYNAMIC)
                        return fail(STATUS_DYNAMIC,
                                    "%s: whether an argument is None is not known before the run",
                                    template->op);
                return fail(STATUS_UNSUPPORTED,
                            "%s: an argument that this version supports only as None or False was given",
                            template->op);
        default:
                *out = value.kind == VALUE_ABSENT ? value_none() : value;
                return STATUS_OK;
        }
}

static Value source_of(const TemplateArg *arg, const TemplateSources *sources)
{
        switch (arg->kind) {
        case 'a':
                return sources->args[arg->index];
        case 'c':
                return sources->config[arg->index];
        case 's':
                return sources->state[arg->index];
        default:
                return arg->constant;
        }
}

// An in-place call of an operator without a twin: compute, then write to the first argument, which
// is the result.
static Status write_back(Emitter *emitter, Value self, Value result, Value *out)
{
        if (self.kind != VALUE_TENSOR || result.kind != VALUE_TENSOR)
                return fail(STATUS_VALUE, "only a tensor can be written in place, not %s",
                            value_kind_name(self.kind));
        TRY(lazy_write(emitter, self.tensor, result.tensor));
        *out = value_ref(self);
        return STATUS_OK;
}

static Status call_template(Emitter *emitter, const Template *template, const CallArgs *call, bool inplace,
                            Value *out)
{
        if (inplace && template->n_twins > 0)
                return overloads_call(emitter, template->op, template->twins, template->n_twins, call, out);
        if (!inplace && !template->first_only)
                return overloads_call(emitter, template->op, template->overloads, template->n_overloads, call,
                                      out);
        _cleanup_(value_clear) Value result = value_none();
        TRY(overloads_call(emitter, template->op, template->overloads, template->n_overloads, call, &result));
        if (inplace)
                return write_back(emitter, call->args[SELF], result, out);
        if (!value_is_sequence(result) || result.seq->n == 0)
                return fail(STATUS_INTERNAL, "%s has one result", template->op);
        *out = value_ref(result.seq->items[0]);
        return STATUS_OK;
}

Status template_run(Emitter *emitter, const Template *template, const TemplateSources *sources, Value *out)
{
        static Seq no_items = { .ref = { 1 } }; // its one reference is never dropped
        Value args[TEMPLATE_MAX_ARGS];
        Value empty = value_seq_take(VALUE_LIST, &no_items);
        uint32_t n = 0;
        bool inplace = false;
        for (uint32_t i = 0; i < template->n_args; i++) {
                const TemplateArg *arg = &template->args[i];
                Value value = source_of(arg, sources);
                if (arg->filter == '!') {
                        inplace |= value.kind == VALUE_BOOL && value.b;
                        continue;
                }
                TRY(apply_filter(template, arg, value, &empty, &args[n]));
                n += arg->filter != '~';
        }
        CallArgs call = { .args = args, .n_args = n };
        return call_template(emitter, template, &call, inplace, out);
}
