// SPDX-License-Identifier: Apache-2.0
// Replies that are not specific to a route: failures and headers.
#include <stdarg.h>
#include <stddef.h>
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

static void drop_body(ApiReply *reply)
{
        text_deinit(&reply->body);
        for (uint32_t i = 0; i < reply->n_pieces; i++)
                storage_unref(reply->pieces[i].owner);
        free(reply->pieces);
        reply->pieces = NULL;
        reply->n_pieces = reply->pieces_capacity = 0;
}

void api_reply_deinit(ApiReply *reply)
{
        drop_body(reply);
        memset(reply, 0, offsetof(ApiReply, headers));
}

// The run's budget ends with the run, but its reply may take longer to send.
static void uncharge(Storage *storage)
{
        for (; storage != NULL; storage = storage->origin) {
                if (storage->budget == NULL)
                        continue;
                if (storage->origin == NULL && storage->release == NULL)
                        budget_give(storage->budget, storage->n_bytes);
                storage->budget = NULL;
        }
}

Status api_reply_piece(ApiReply *reply, Storage *owner, const uint8_t *data, size_t n)
{
        if (n == 0)
                return STATUS_OK;
        TRY(array_reserve(&reply->pieces, &reply->pieces_capacity, reply->n_pieces + 1,
                          sizeof(*reply->pieces)));
        uncharge(owner);
        reply->pieces[reply->n_pieces++] =
                (ReplyPiece){ .after = reply->body.n, .data = data, .n = n, .owner = storage_ref(owner) };
        return STATUS_OK;
}

size_t api_reply_bytes(const ApiReply *reply)
{
        size_t total = reply->body.n;
        for (uint32_t i = 0; i < reply->n_pieces; i++)
                if (!add_size(total, reply->pieces[i].n, &total))
                        return SIZE_MAX;
        return total;
}

Status api_reply_each(const ApiReply *reply, Status (*part)(void *context, const uint8_t *data, size_t n),
                      void *context)
{
        size_t at = 0;
        for (uint32_t i = 0; i <= reply->n_pieces; i++) {
                size_t end = i == reply->n_pieces ? reply->body.n : reply->pieces[i].after;
                if (end > at)
                        TRY(part(context, (const uint8_t *)reply->body.data + at, end - at));
                at = end;
                if (i < reply->n_pieces)
                        TRY(part(context, reply->pieces[i].data, reply->pieces[i].n));
        }
        return STATUS_OK;
}

char *api_reply_header_room(ApiReply *reply, const char *name)
{
        if (reply->n_headers == REPLY_MAX_HEADERS)
                return NULL;
        ReplyHeader *header = &reply->headers[reply->n_headers++];
        header->name = name;
        return header->value;
}

void api_reply_header(ApiReply *reply, const char *name, const char *format, ...)
{
        char *value = api_reply_header_room(reply, name);
        va_list arguments;
        if (value == NULL)
                return;
        va_start(arguments, format);
        vsnprintf(value, CALL_HEADER_MAX, format, arguments);
        va_end(arguments);
}

// The Open Inference Protocol has other codes for two of them.
static int failure_http(const ApiCall *call, Status status)
{
        if (route_has(call->route, AS_OIP) && status == STATUS_DEADLINE)
                return 503;
        if (route_has(call->route, AS_OIP) && status == STATUS_UNSUPPORTED)
                return 501;
        return status_http(status);
}

// Its clients look for the words of the first; what they set is called otherwise in the second.
static void add_message(const ApiCall *call, const Failure *failure, Text *out)
{
        static const char ours[] = "\"deadline_ms\"";
        char text[FAILURE_MESSAGE_MAX];
        const char *at = strstr(failure->message, ours);
        if (route_has(call->route, AS_OIP) && failure->status == STATUS_NOT_FOUND && call->name[0] != '\0') {
                snprintf(text, sizeof(text), "Request for unknown model: '%s' is not found", call->name);
                text_add_json(out, text);
        } else if (route_has(call->route, AS_OIP) && failure->status == STATUS_DEADLINE && at != NULL) {
                snprintf(text, sizeof(text), "%.*s\"timeout\"%s", (int)(at - failure->message),
                         failure->message, at + strlen(ours));
                text_add_json(out, text);
        } else {
                text_add_json(out, failure->message);
        }
}

static long long retry_after(const Failure *failure)
{
        size_t n = strlen(RETRY_AFTER_MEMBER);
        long long seconds =
                strncmp(failure->detail, RETRY_AFTER_MEMBER, n) == 0 ? atoll(failure->detail + n) : 1;
        return MAX(seconds, 1);
}

void reply_failure(const ApiCall *call, const Failure *failure, ApiReply *reply)
{
        bool ours =
                status_class(failure->status) == STATUS_CLASS_INTERNAL && failure->status != STATUS_NO_MEMORY;
        drop_body(reply);
        reply->n_headers = 0;
        reply->status = failure_http(call, failure->status);
        reply->code = status_code(failure->status);
        if (status_class(failure->status) == STATUS_CLASS_INTERNAL)
                snprintf(reply->problem, sizeof(reply->problem), "%.180s (%s:%d)", failure->message,
                         failure->file == NULL ? "?" : failure->file, failure->line);
        reply->content_type = "application/json";
        Text *out = &reply->body;
        text_add(out, "{\"error\": ");
        if (ours) {
                char text[160];
                snprintf(text, sizeof(text),
                         "internal error; the server's log has more under request id %.64s",
                         call->request_id);
                text_add_json(out, text);
        } else {
                add_message(call, failure, out);
        }
        text_add(out, ", \"code\": ");
        text_add_json(out, status_code(failure->status));
        if (!ours && failure->node[0] != '\0') {
                text_add(out, ", \"node\": ");
                text_add_json(out, failure->node);
        }
        if (!ours && (failure->argument[0] != '\0' || failure->detail[0] != '\0')) {
                text_add(out, ", \"details\": {");
                if (failure->argument[0] != '\0') {
                        text_add(out, "\"argument\": ");
                        text_add_json(out, failure->argument);
                }
                if (failure->detail[0] != '\0')
                        text_add(out, failure->argument[0] != '\0' ? ", " : "");
                if (failure->detail_key[0] != '\0') {
                        text_add_json(out, failure->detail_key);
                        text_add(out, ": ");
                        text_add_json(out, failure->detail);
                } else {
                        text_add(out, failure->detail);
                }
                text_add_char(out, '}');
        }
        text_add(out, "}\n");
        if ((reply->status == 503 || reply->status == 429) && strcmp(failure->detail, RETRY_NEVER) != 0)
                api_reply_header(reply, "Retry-After", "%lld", retry_after(failure));
}
