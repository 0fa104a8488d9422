// SPDX-License-Identifier: Apache-2.0
// Settings of logs and traces, as Triton has them. They can be read. What the server was started
// with cannot be changed by a request; one that asks for what holds anyway succeeds.
#include <string.h>
#include "api/routes/answer.h"
#include "core/base/json.h"
#include "core/base/limits.h"

typedef struct Setting {
        const char *name, *value; // JSON
} Setting;
static const Setting log_settings[] = {
        { "log_file", "\"\"" },  { "log_info", "true" },       { "log_warning", "true" },
        { "log_error", "true" }, { "log_verbose_level", "0" }, { "log_format", "\"default\"" },
        { NULL, NULL }
};
static const Setting trace_settings[] = { { "trace_file", "\"\"" },
                                          { "trace_level", "[\"OFF\"]" },
                                          { "trace_rate", "\"1000\"" },
                                          { "trace_count", "\"-1\"" },
                                          { "log_frequency", "\"0\"" },
                                          { "trace_mode", "\"triton\"" },
                                          { NULL, NULL } };

static Status write_settings(const Answer *answer, const Setting *settings)
{
        Text *out = answer_begin(answer, json_type);
        for (const Setting *row = settings; row->name != NULL; row++)
                text_addf(out, "%s\"%s\": %s", row == settings ? "{" : ", ", row->name, row->value);
        text_add(out, "}\n");
        return STATUS_OK;
}

static Status check_setting(JsonReader *reader, const char *name, const Setting *settings)
{
        const Setting *row = settings;
        const char *raw;
        size_t n;
        while (row->name != NULL && strcmp(row->name, name) != 0)
                row++;
        TRY(json_read_raw(reader, &raw, &n));
        if (row->name == NULL)
                return fail(STATUS_VALUE, "there is no setting \"%.64s\"", name);
        bool holds = n == strlen(row->value) && memcmp(raw, row->value, n) == 0;
        if (holds || (n == 4 && memcmp(raw, "null", 4) == 0))
                return STATUS_OK;
        return fail(STATUS_UNSUPPORTED, "\"%s\" is %s and cannot be changed while the server runs", name,
                    row->value);
}

static Status check_settings(JsonReader *reader, const Setting *settings)
{
        bool more;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "settings are an object");
        TRY(json_enter_object(reader));
        for (;;) {
                const char *name;
                TRY(json_next_key(reader, &name, &more));
                if (!more)
                        return json_finish(reader);
                TRY(failure_at_argument(check_setting(reader, name, settings), name));
        }
}

static Status change_settings(const Answer *answer, const Setting *settings)
{
        Arena arena;
        JsonReader *reader = NULL;
        const Storage *body = answer->call->body;
        if (body == NULL || body->n_bytes == 0)
                return write_settings(answer, settings);
        arena_init(&arena, 0);
        Status status = json_open((const char *)body->data, body->n_bytes, (int)limits.max_json_depth_run, 0,
                                  &arena, &reader);
        if (status == STATUS_OK)
                status = check_settings(reader, settings);
        json_close(reader);
        arena_deinit(&arena);
        return status == STATUS_OK ? write_settings(answer, settings) : status;
}

Status get_oip_logging(const Answer *answer)
{
        return write_settings(answer, log_settings);
}

Status post_oip_logging(const Answer *answer)
{
        return change_settings(answer, log_settings);
}

Status get_oip_tracing(const Answer *answer)
{
        return write_settings(answer, trace_settings);
}

Status post_oip_tracing(const Answer *answer)
{
        return change_settings(answer, trace_settings);
}
