// SPDX-License-Identifier: Apache-2.0
// Replies that are not specific to a route: failures and headers.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "api/call.h"

int status_http(Status status)
{
        static const int http[STATUS_COUNT] = {
                [STATUS_OK] = 200,
#define ERROR(name, http_status, cure) [STATUS_##name] = http_status,
#include "api/errors.def"
#undef ERROR
        };
        return http[status] == 0 ? 500 : http[status];
}

void api_reply_deinit(ApiReply *reply)
{
        text_deinit(&reply->body);
        *reply = (ApiReply){ .status = 0 };
}

void api_reply_header(ApiReply *reply, const char *name, const char *format, ...)
{
        if (reply->n_headers == REPLY_MAX_HEADERS)
                return;
        ReplyHeader *header = &reply->headers[reply->n_headers++];
        va_list arguments;
        header->name = name;
        va_start(arguments, format);
        vsnprintf(header->value, sizeof(header->value), format, arguments);
        va_end(arguments);
}

void reply_failure(const Failure *failure, const char *request_id, ApiReply *reply)
{
        bool ours = status_class(failure->status) == STATUS_CLASS_INTERNAL && failure->status != STATUS_NO_MEMORY;
        text_deinit(&reply->body);
        reply->status = status_http(failure->status);
        reply->content_type = "application/json";
        Text *out = &reply->body;
        text_add(out, "{\"error\": ");
        if (ours) {
                char text[160];
                snprintf(text, sizeof(text), "internal error; the server's log has more under request id %.64s", request_id);
                text_add_json(out, text);
        } else {
                text_add_json(out, failure->message);
        }
        text_add(out, ", \"code\": ");
        text_add_json(out, status_code(failure->status));
        if (!ours && failure->node[0] != '\0') {
                text_add(out, ", \"node\": ");
                text_add_json(out, failure->node);
        }
        if (!ours && (failure->argument[0] != '\0' || failure->detail_key[0] != '\0')) {
                text_add(out, ", \"details\": {");
                if (failure->argument[0] != '\0') {
                        text_add(out, "\"argument\": ");
                        text_add_json(out, failure->argument);
                }
                if (failure->detail_key[0] != '\0') {
                        text_add(out, failure->argument[0] != '\0' ? ", " : "");
                        text_add_json(out, failure->detail_key);
                        text_add(out, ": ");
                        text_add_json(out, failure->detail);
                }
                text_add_char(out, '}');
        }
        text_add(out, "}\n");
        if (reply->status == 503 || reply->status == 429)
                api_reply_header(reply, "Retry-After", "1");
}
