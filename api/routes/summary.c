// SPDX-License-Identifier: Apache-2.0
// Missing members are left out: the server may be older or newer than this program.
#include "api/routes/summary.h"
#include <jansson.h>
#include <string.h>
#include "core/base/memory.h"

static void json_unrefp(json_t **value)
{
        json_decref(*value);
}

static json_t *parse(ByteSpan reply)
{
        return json_loadb((const char *)reply.data, reply.n, JSON_REJECT_DUPLICATES, NULL);
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));
        return text == NULL ? "" : text;
}

static long long int_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

static Status no_reply(void)
{
        return fail(STATUS_MALFORMED, "the reply is not what fxserve sends; is the URL right?");
}

Status summary_of_list(ByteSpan reply, bool heading, Text *out, char out_next[SUMMARY_NAME])
{
        _cleanup_(json_unrefp) json_t *root = parse(reply);
        const json_t *graphs = json_object_get(root, "graphs"), *row;
        size_t i;
        if (!json_is_array(graphs))
                return no_reply();
        if (heading)
                text_addf(out, "%-32s %7s  %-8s %-6s %s\n", "name", "version", "state", "format", "id");
        json_array_foreach(graphs, i, row)
        {
                text_addf(out, "%-32s %7lld  %-8s %-6s %.12s\n", text_of(row, "name"), int_of(row, "version"),
                          text_of(row, "state"), text_of(row, "format"), text_of(row, "id"));
        }
        snprintf(out_next, SUMMARY_NAME, "%s", text_of(root, "next"));
        return text_status(out);
}

// "x: float32[batch, 1, 8, 8]"
static void add_tensor(const json_t *tensor, Text *out)
{
        const json_t *shape = json_object_get(tensor, "shape"), *size;
        const char *dtype = text_of(tensor, "dtype");
        size_t i;
        text_addf(out, "%s: %s", text_of(tensor, "name"), dtype[0] == '\0' ? "any" : dtype);
        if (!json_is_array(shape))
                return;
        text_add_char(out, '[');
        json_array_foreach(shape, i, size)
        {
                text_add(out, i == 0 ? "" : ", ");
                if (json_is_integer(size))
                        text_add_int(out, json_integer_value(size));
                else
                        text_add(out, json_is_string(size) ? json_string_value(size) : "?");
        }
        text_add_char(out, ']');
}

static void add_tensors(const json_t *info, const char *key, Text *out)
{
        const json_t *tensor;
        size_t i;
        json_array_foreach(json_object_get(info, key), i, tensor)
        {
                text_addf(out, "%-10s", i == 0 ? key : "");
                add_tensor(tensor, out);
                text_add_char(out, '\n');
        }
}

static void add_operators(json_t *info, Text *out)
{
        const char *name;
        json_t *count;
        bool first = true;
        json_object_foreach(json_object_get(info, "ops"), name, count)
        {
                text_addf(out, "%-10s%s ×%lld\n", first ? "operators" : "", name,
                          (long long)json_integer_value(count));
                first = false;
        }
}

Status summary_of_graph(ByteSpan reply, Text *out)
{
        _cleanup_(json_unrefp) json_t *info = parse(reply);
        if (text_of(info, "name")[0] == '\0')
                return no_reply();
        size_t n_versions = json_array_size(json_object_get(info, "versions"));
        text_addf(out, "%-10s%s version %lld", "graph", text_of(info, "name"), int_of(info, "version"));
        if (n_versions > 1)
                text_addf(out, " of %zu (default %lld)", n_versions, int_of(info, "default_version"));
        text_addf(out, ", %s, %s\n", text_of(info, "format"), text_of(info, "state"));
        if (text_of(info, "reason")[0] != '\0')
                text_addf(out, "%-10s%s\n", "reason", text_of(info, "reason"));
        text_addf(out, "%-10s%s\n", "id", text_of(info, "id"));
        add_tensors(info, "inputs", out);
        add_tensors(info, "outputs", out);
        if (json_object_get(info, "nodes") != NULL)
                text_addf(out, "%-10s%lld, weights %lld bytes\n", "nodes", int_of(info, "nodes"),
                          int_of(info, "weights_bytes"));
        add_operators(info, out);
        return text_status(out);
}

bool summary_of_error(ByteSpan reply, Text *out)
{
        _cleanup_(json_unrefp) json_t *root = parse(reply);
        const char *error = text_of(root, "error");
        text_add(out, error);
        return error[0] != '\0';
}

const char *summary_json_version(void)
{
        return jansson_version_str();
}
