// SPDX-License-Identifier: Apache-2.0
// run_partial.c: "initial_env", "until", "leaf" and "keep" of a run body. Values of nodes, the
// last node and leaves become edits in front of the rules; a value for one of the graph's inputs is
// that input.
#include <string.h>
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/engine/kept.h"

static Status find_node(const RunCall *run, const char *member, const char *name, const Node **out_node)
{
        *out_node = graph_node(run->task.graph, name);
        if (*out_node == NULL)
                return fail(STATUS_VALUE,
                            "\"%s\" names \"%.64s\", but the graph has no such node; GET "
                            ".../text?form=graph prints them",
                            member, name);
        if ((*out_node)->op == OP_OUTPUT)
                return fail(STATUS_VALUE, "\"%s\" names the output node; name the node whose value is meant",
                            member);
        return STATUS_OK;
}

static bool is_input(const RunCall *run, const Node *node)
{
        for (uint32_t i = 0; i < run->task.n_inputs; i++)
                if (run->task.user[i]->placeholder == node)
                        return true;
        return false;
}

static Status read_value(JsonReader *reader, const char *name, RunCall *run)
{
        const Node *node;
        Tensor *tensor;
        TRY(find_node(run, "initial_env", name, &node));
        bool kept = json_opens_with(reader, "run") || json_opens_with(reader, "node");
        if (is_input(run, node) && !kept)
                return run_read_named(reader, name, run);
        TRY(recipe_read_tensor(reader, &run->recipe, &run->task.budget, &tensor));
        return is_input(run, node) ? run_take_tensor(run, name, tensor)
                                   : recipe_give(&run->given, name, tensor);
}

static Status read_initial_env(JsonReader *reader, RunCall *run)
{
        bool more;
        run->has_initial_env = true;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_VALUE, "\"initial_env\" is an object of values by node, as in {\"relu\": "
                                          "[[0.0, 1.0]]}");
        TRY(json_enter_object(reader));
        for (;;) {
                const char *name;
                TRY(json_next_key(reader, &name, &more));
                if (!more)
                        return STATUS_OK;
                TRY(run_check_value(reader));
                TRY(failure_at_argument(read_value(reader, name, run), name));
        }
}

static Status read_until(JsonReader *reader, RunCall *run)
{
        const char *name = NULL;
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"until\" is the name of the last node to run");
        TRY(json_read_string(reader, &name, NULL));
        return find_node(run, "until", name, &run->until);
}

static Status read_leaf(JsonReader *reader, RunCall *run)
{
        return recipe_read_leaf(reader, &run->recipe);
}

static Status read_keep(JsonReader *reader, RunCall *run)
{
        const char *word = "";
        if (json_peek(reader) == JSON_STRING)
                TRY(json_read_string(reader, &word, NULL));
        run->keep = strcmp(word, "all") == 0;
        return run->keep ? STATUS_OK : fail(STATUS_VALUE, "\"keep\" is \"all\"");
}

static Status read_mutations(JsonReader *reader, RunCall *run)
{
        if (json_peek(reader) != JSON_TRUE && json_peek(reader) != JSON_FALSE)
                return fail(STATUS_VALUE, "\"mutations\" is true or false");
        return json_read_bool(reader, &run->mutations);
}

Status run_read_partial(JsonReader *reader, const char *key, RunCall *run, bool *out_known)
{
        static const struct {
                const char *key;
                Status (*read)(JsonReader *reader, RunCall *run);
        } members[] = { { "initial_env", read_initial_env },
                        { "until", read_until },
                        { "leaf", read_leaf },
                        { "keep", read_keep },
                        { "mutations", read_mutations } };
        *out_known = false;
        for (size_t i = 0; i < ARRAY_LENGTH(members) && !*out_known; i++) {
                if (strcmp(members[i].key, key) != 0)
                        continue;
                *out_known = true;
                TRY(failure_at_argument(members[i].read(reader, run), key));
        }
        return STATUS_OK;
}

Status run_settle_partial(RunCall *run)
{
        RunTask *task = &run->task;
        for (uint32_t i = 0; run->until != NULL && i < task->n_fetch; i++) {
                if (task->fetch[i]->index > run->until->index && task->fetch[i]->op != OP_PLACEHOLDER)
                        return fail(STATUS_VALUE,
                                    "\"outputs\" names \"%.64s\", which stands behind \"until\"",
                                    task->fetch[i]->name);
        }
        if (run->mutations && (run->until != NULL || run->given.n_hidden > 0))
                return fail(STATUS_VALUE, "\"mutations\" are those of a whole run: neither \"until\" nor "
                                          "\"initial_env\" goes with them");
        if (run->mutations && (run->bare || run->replies->write != NULL))
                return fail(STATUS_NOT_ACCEPTABLE, "only a JSON reply of the full form has a place for "
                                                   "\"mutations\"");
        if (run->until != NULL && task->n_fetch == 0)
                TRY(run_task_fetch(task, run->until));
        if (run->until == NULL && run->given.n_hidden == 0 && run->recipe.leaf.n == 0)
                return STATUS_OK;
        return recipe_begin_with(&run->recipe, &run->given, run->until == NULL ? NULL : run->until->name);
}

Status run_keep(const ApiContext *context, const RunCall *run)
{
        return run->keep ? engine_keep(context->engine, run->call->caller, &run->task) : STATUS_OK;
}

void run_write_kept(const RunCall *run, Text *out)
{
        uint32_t n = 0;
        const RunTask *task = &run->task;
        const Value *values = task->result.fetched + task->n_fetch + task->n_watched;
        if (!run->keep)
                return;
        text_add(out, ", \"kept\": {\"run\": ");
        text_add_json(out, task->profile->id);
        text_add(out, ", \"nodes\": [");
        for (uint32_t i = 0; i < task->n_kept; i++) {
                if (values[i].kind != VALUE_TENSOR)
                        continue;
                text_add(out, n++ == 0 ? "" : ", ");
                text_add_json(out, task->kept[i]->name);
        }
        text_add(out, "]}");
}
