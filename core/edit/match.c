// SPDX-License-Identifier: Apache-2.0
// match.c: nodes of a working copy by what they are and what they mean.
#include "core/edit/match.h"

#include <stdio.h>
#include <string.h>
#include "core/base/text.h"
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

bool glob_matches(const char *pattern, const char *text)
{
        const char *star = NULL, *resume = NULL;
        while (*text != '\0') {
                if (*pattern == '*') {
                        star = pattern++;
                        resume = text;
                } else if (*pattern == *text) {
                        pattern++;
                        text++;
                } else if (star != NULL) { // the last star takes one character more
                        pattern = star + 1;
                        text = ++resume;
                } else {
                        return false;
                }
        }
        return pattern[strspn(pattern, "*")] == '\0';
}

// ---- meaning ----

static const Target *target_of(Opcode op, const char *target)
{
        return op == OP_CALL_FUNCTION ? target_function(target) : target_method(target);
}

void graph_node_meaning(const Graph *graph, const Node *node, Meaning *out_meaning)
{
        *out_meaning = (Meaning){ 0 };
        if (node->op == OP_CALL_MODULE) {
                const Module *module = graph_module(graph, node->target);
                if (module != NULL && module->type != NULL)
                        module_meaning(module->type, out_meaning);
                return;
        }
        const Target *target = target_of(node->op, node->target);
        CallArgs call = { .args = node->args.seq->items,
                          .n_args = node->args.seq->n,
                          .kwargs = node->kwargs.dict->items,
                          .n_kwargs = node->kwargs.dict->n };
        const Overload *overload = target == NULL ? NULL : target_choose(target, &call);
        if (overload != NULL)
                overload_meaning(overload, out_meaning);
}

// Targets as people write them: a function's name, "Tensor.sigmoid", ".sigmoid", a module class.
static Status wanted_meaning(Edit *edit, const char *text, Meaning *out_meaning)
{
        *out_meaning = (Meaning){ 0 };
        const char *function = graph_normalise_target(edit->work, text);
        const char *type = graph_normalise_module_type(edit->work, text);
        if (function == NULL || type == NULL)
                return fail_memory();
        const Target *target = target_function(function);
        if (target == NULL && strchr(text, '.') == NULL)
                target = target_method(text);
        if (target != NULL)
                target_meaning(target, out_meaning);
        else
                module_meaning(type, out_meaning);
        return STATUS_OK;
}

// ---- matching ----

typedef struct Wanted {
        const Edit *edit;
        const EditMatch *match;
        const char *function, *type; // the target as PyTorch prints it
        const char *module_type;
        Meaning meaning;
} Wanted;

// The class of the module that a call_module node calls.
static const char *class_of(const Wanted *wanted, const Node *node)
{
        const Module *module = graph_module(wanted->edit->work, node->target);
        return module == NULL ? NULL : module->type;
}

static bool target_matches(const Wanted *wanted, const Node *node)
{
        const EditMatch *match = wanted->match;
        if (strcmp(match->target, node->target) == 0)
                return true;
        if (!node_is_call(node))
                return false;
        if (node->op == OP_CALL_FUNCTION && strcmp(wanted->function, node->target) == 0)
                return true;
        const char *class = node->op == OP_CALL_MODULE ? class_of(wanted, node) : NULL;
        if (class != NULL && strcmp(wanted->type, class) == 0)
                return true;
        Meaning meaning;
        graph_node_meaning(wanted->edit->work, node, &meaning);
        return meaning_meets(&wanted->meaning, &meaning);
}

const char *edit_call_suffix(const StackEntry *call)
{
        const char *again = strrchr(call->key, '@');
        size_t n = again == NULL ? 0 : strspn(again + 1, "0123456789");
        return n > 0 && again[n + 1] == '\0' ? again : "";
}

bool edit_call_fits(const char *pattern, const StackEntry *call)
{
        char name[512];
        const char *suffix = edit_call_suffix(call);
        if (glob_matches(pattern, call->path))
                return true;
        int n = snprintf(name, sizeof(name), "%s%s", call->path, suffix);
        return suffix[0] != '\0' && n < (int)sizeof(name) && glob_matches(pattern, name);
}

static bool class_fits(const Wanted *wanted, const char *class)
{
        return wanted->match->module_type == NULL ||
               (class != NULL && strcmp(class, wanted->module_type) == 0);
}

// The called module or, in an export, one of the calls around the node.
static bool module_matches(const Wanted *wanted, const Node *node)
{
        const char *pattern = wanted->match->module;
        if (pattern == NULL && wanted->match->module_type == NULL)
                return true;
        if (node->op == OP_CALL_MODULE)
                return (pattern == NULL || glob_matches(pattern, node->target)) &&
                       class_fits(wanted, class_of(wanted, node));
        // a rule that names nothing but a module means its calls
        if (!wanted->match->has_op && wanted->match->target == NULL && wanted->match->name == NULL)
                return false;
        for (const StackEntry *call = node->module_stack; call != NULL; call = call->outer) {
                if ((pattern == NULL || edit_call_fits(pattern, call)) && class_fits(wanted, call->type))
                        return true;
        }
        return false;
}

static bool matches(const Wanted *wanted, const Node *node)
{
        const EditMatch *match = wanted->match;
        if (edit_node_of(node)->hidden) // a value that was given: no node runs for it
                return false;
        if (match->has_op && node->op != match->op)
                return false;
        if (match->name != NULL && !glob_matches(match->name, node->name))
                return false;
        return module_matches(wanted, node) && (match->target == NULL || target_matches(wanted, node));
}

static Status prepare(Edit *edit, const EditMatch *match, Wanted *out_wanted)
{
        *out_wanted = (Wanted){ .edit = edit, .match = match };
        if (match->target != NULL) {
                out_wanted->function = graph_normalise_target(edit->work, match->target);
                out_wanted->type = graph_normalise_module_type(edit->work, match->target);
                if (out_wanted->function == NULL || out_wanted->type == NULL)
                        return fail_memory();
                TRY(wanted_meaning(edit, match->target, &out_wanted->meaning));
        }
        if (match->module_type != NULL) {
                out_wanted->module_type = graph_normalise_module_type(edit->work, match->module_type);
                if (out_wanted->module_type == NULL)
                        return fail_memory();
        }
        return STATUS_OK;
}

int64_t glob_cost(const char *pattern, const char *text)
{
        enum { STEPS_PER_VISIT = 256 };
        return pattern == NULL || text == NULL ? 0
                                               : (int64_t)(strlen(pattern) * strlen(text) / STEPS_PER_VISIT);
}

// What looking at a node takes, as a number of nodes (edit_visit).
static int64_t cost_of(const EditMatch *match, const Node *node)
{
        enum { MEANING = 4 };
        int64_t cost = 1 + glob_cost(match->name, node->name) + glob_cost(match->module, node->target);
        for (const StackEntry *call = node->module_stack; match->module != NULL && call != NULL;
             call = call->outer)
                cost += 1 + 2 * glob_cost(match->module, call->path);
        return match->target == NULL ? cost : cost + MEANING;
}

Status edit_match(Edit *edit, const EditMatch *match, Node ***out_nodes, uint32_t *out_n)
{
        Wanted wanted;
        TRY(prepare(edit, match, &wanted));
        _cleanup_(freep) Node **nodes = new_array(edit->n_nodes, sizeof(Node *));
        if (nodes == NULL)
                return fail_memory();
        uint32_t n = 0;
        int64_t hits = 0;
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node)) {
                TRY(edit_visit(edit, cost_of(match, node)));
                if (matches(&wanted, node) && (match->nth < 0 || hits++ == match->nth))
                        nodes[n++] = node;
        }
        *out_nodes = take_ptr(nodes);
        *out_n = n;
        return STATUS_OK;
}

// ---- no hit ----

static void add_condition(Text *out, const char *what, const char *text)
{
        if (text != NULL)
                text_addf(out, "%s%s %.100s", out->n == 0 ? "" : " and ", what, text);
}

enum { MOST_SHOWN = 24 };

static Status count_module(StringMap *names, const EditMatch *match, const char *path, const char *type)
{
        const char *name = match->module_type != NULL && type != NULL ? type : path;
        return name[0] == '\0' ? STATUS_OK : string_map_set(names, name, names, NULL);
}

// The calls that a node was made in, the outermost first.
static Status count_stack(StringMap *names, const EditMatch *match, const StackEntry *innermost)
{
        uint32_t n = 0;
        for (const StackEntry *call = innermost; call != NULL; call = call->outer)
                n++;
        _cleanup_(freep) const StackEntry **calls = new_array(n, sizeof(StackEntry *));
        if (calls == NULL)
                return fail_memory();
        uint32_t at = n;
        for (const StackEntry *call = innermost; call != NULL; call = call->outer)
                calls[--at] = call;
        for (; at < n; at++)
                TRY(count_module(names, match, calls[at]->path, calls[at]->type));
        return STATUS_OK;
}

// "encoder, encoder.0, ...": paths of the modules that are called, or their classes if a class was
// looked for.
static Status add_modules(const Edit *edit, const EditMatch *match, Text *out)
{
        _cleanup_(string_map_deinit) StringMap names = { 0 };
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                const Module *module =
                        node->node.op == OP_CALL_MODULE ? edit_module(edit, node->node.target) : NULL;
                if (node->node.op == OP_CALL_MODULE)
                        TRY(count_module(&names, match, node->node.target,
                                         module == NULL ? NULL : module->type));
                TRY(count_stack(&names, match, node->node.module_stack));
        }
        text_add(out, names.n == 0 ? "; this graph calls no modules" : "; this graph calls the modules: ");
        for (uint32_t i = 0; i < names.n && i < MOST_SHOWN; i++)
                text_addf(out, "%s%.100s", i == 0 ? "" : ", ", names.entries[i].key);
        if (names.n > MOST_SHOWN)
                text_addf(out, " and %u more", names.n - MOST_SHOWN);
        return STATUS_OK;
}

// "aten.sigmoid.default ×2, ...": what is called, in order of first appearance.
static Status add_calls(const Edit *edit, Text *out)
{
        _cleanup_(string_map_deinit) StringMap counts = { 0 };
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                if (!node_is_call(&node->node))
                        continue;
                uintptr_t count = (uintptr_t)string_map_get(&counts, node->node.target);
                TRY(string_map_set(&counts, node->node.target, (void *)(count + 1), NULL));
        }
        text_add(out, counts.n == 0 ? "; this graph calls nothing" : "; this graph calls: ");
        for (uint32_t i = 0; i < counts.n && i < MOST_SHOWN; i++) {
                const char *name = counts.entries[i].key;
                uint32_t count = (uint32_t)(uintptr_t)counts.entries[i].value;
                name += strncmp(name, "torch.ops.", 10) == 0 ? 10 : 0;
                text_addf(out, "%s%.100s", i == 0 ? "" : ", ", name);
                if (count > 1)
                        text_addf(out, " \xC3\x97%u", count);
        }
        if (counts.n > MOST_SHOWN)
                text_addf(out, " and %u more", counts.n - MOST_SHOWN);
        return STATUS_OK;
}

Status edit_no_match(const Edit *edit, const EditMatch *match)
{
        _cleanup_(text_deinit) Text text = { 0 };
        add_condition(&text, "op", match->has_op ? opcode_names[match->op] : NULL);
        add_condition(&text, "target", match->target);
        add_condition(&text, "name", match->name);
        add_condition(&text, "module", match->module);
        add_condition(&text, "module_type", match->module_type);
        if (match->nth > 0)
                text_addf(&text, "%snth %lld", text.n == 0 ? "" : " and ", (long long)match->nth);
        if (match->module != NULL || match->module_type != NULL)
                TRY(add_modules(edit, match, &text));
        else
                TRY(add_calls(edit, &text));
        TRY(text_status(&text));
        return fail(STATUS_VALUE, "no node has %s", text.data);
}
