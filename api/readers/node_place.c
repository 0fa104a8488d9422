// SPDX-License-Identifier: Apache-2.0
// node_place.c: the two forms in which documents give a node's nn_module_stack.
#include "api/readers/node_place.h"

#include <string.h>
#include "core/base/json.h"

// ---- archives ----

// The end of a part: the first `end` or semicolon that stands in no brackets.
static const char *part_end(const char *at, char end)
{
        int level = 0;
        for (; *at != '\0' && !(level <= 0 && (*at == end || *at == ';')); at++)
                level += *at == '[' || *at == '(' ? 1 : *at == ']' || *at == ')' ? -1 : 0;
        return at;
}

// One "key,path,type". An entry with fewer parts says nothing.
static Status read_entry(Graph *graph, Arena *scratch, const char **at, Node *node)
{
        char *part[3] = { NULL };
        for (int i = 0; i < 3; i++) {
                const char *end = part_end(*at, i < 2 ? ',' : ';');
                part[i] = arena_text(scratch, *at, (size_t)(end - *at));
                if (part[i] == NULL)
                        return fail_memory();
                *at = end + (*end == ',');
                if (i < 2 && *end != ',')
                        return STATUS_OK;
        }
        if (strncmp(part[0], "_empty_nn_module_stack", 22) == 0)
                return STATUS_OK;
        const StackEntrySpec spec = { part[0], part[1], part[2] };
        return graph_stack_entry(graph, node->module_stack, &spec, &node->module_stack);
}

Status read_module_stack(Graph *graph, const char *text, Node *node)
{
        Arena scratch;
        Status status = STATUS_OK;
        arena_init(&scratch, 0);
        for (const char *at = text; *at != '\0' && status == STATUS_OK; at += *at == ';')
                status = read_entry(graph, &scratch, &at, node);
        arena_deinit(&scratch);
        return status;
}

// ---- FX JSON ----

// ["path", "type"]
static Status read_pair(JsonReader *reader, const char *out_pair[2])
{
        bool more;
        TRY(json_enter_array(reader));
        for (int i = 0; i < 2; i++) {
                TRY(json_next_item(reader, &more));
                if (!more || json_peek(reader) != JSON_STRING)
                        return fail(STATUS_MALFORMED, "an entry is [path, type]");
                TRY(json_read_string(reader, &out_pair[i], NULL));
        }
        TRY(json_next_item(reader, &more));
        return more ? fail(STATUS_MALFORMED, "an entry is [path, type]") : STATUS_OK;
}

// `graph` NULL: only checks the form.
static Status read_stack(JsonReader *reader, Graph *graph, Node *node)
{
        TRY(json_enter_object(reader));
        for (uint32_t n = 0;; n++) {
                StackEntrySpec spec;
                const char *pair[2];
                bool more;
                TRY(json_next_key(reader, &spec.key, &more));
                if (!more)
                        return n == 0 ? fail(STATUS_MALFORMED, "no entries") : STATUS_OK;
                TRY(read_pair(reader, pair));
                spec.path = pair[0];
                spec.type = pair[1];
                if (graph != NULL)
                        TRY(graph_stack_entry(graph, node->module_stack, &spec, &node->module_stack));
        }
}

static Status open_stack(const char *json, size_t n, Graph *graph, Node *node)
{
        Arena scratch;
        arena_init(&scratch, 0);
        JsonReader *reader = NULL;
        Status status = json_open(json, n, 4, 0, &scratch, &reader);
        if (status == STATUS_OK)
                status = read_stack(reader, graph, node);
        json_close(reader);
        arena_deinit(&scratch);
        return status;
}

bool is_module_stack(const char *json, size_t n)
{
        return open_stack(json, n, NULL, NULL) == STATUS_OK;
}

Status read_module_stack_json(Graph *graph, const char *json, size_t n, Node *node)
{
        return open_stack(json, n, graph, node);
}
