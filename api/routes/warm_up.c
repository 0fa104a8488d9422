// SPDX-License-Identifier: Apache-2.0
#include "api/routes/warm_up.h"
#include <string.h>
#include "core/store/store.h"

static Status read_entry(JsonReader *reader, Text *out_line)
{
        const char *shapes;
        size_t n;
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"warm_up\" is a list of texts, as \"x:1,3,224,224\"");
        TRY(json_read_string(reader, &shapes, &n));
        for (size_t i = 0; i < n; i++)
                if (shapes[i] <= ' ' || shapes[i] > '~')
                        return fail(STATUS_VALUE, "shapes are written without spaces: \"x:1,3;y:2\"");
        text_addf(out_line, "%s%s", out_line->n == 0 ? "" : " ", n == 0 ? "-" : shapes);
        return text_status(out_line);
}

Status warm_up_read(JsonReader *reader, Text *out_line)
{
        bool more;
        if (json_peek(reader) == JSON_NULL)
                return json_read_null(reader);
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"warm_up\" is a list of shapes, [\"x:1,3,224,224\"], or null");
        TRY(json_enter_array(reader));
        for (;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_entry(reader, out_line));
                if (out_line->n > STORE_SETTING_MAX)
                        return fail(STATUS_TOO_LARGE, "\"warm_up\" has more than %d bytes of shapes",
                                    STORE_SETTING_MAX);
        }
}

static void write_entry(void *context, const char *shapes, bool is_first)
{
        Text *out = context;
        text_add(out, is_first ? "" : ", ");
        text_add_json(out, shapes);
}

void warm_up_write(const GraphVersion *version, const char *line, Text *out)
{
        if (line[0] == '\0')
                return;
        text_add(out, ", \"warm_up\": {\"shapes\": [");
        warm_up_each(line, write_entry, out);
        text_addf(out, "], \"state\": \"%s\"}", warm_up_state_names[warm_up_state(version)]);
}
