// SPDX-License-Identifier: Apache-2.0
// Pages of other origins (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol), on the loop
// thread. --allow-origin lists the origins whose pages may call this server and read its replies.
// Tokens travel in Authorization, which a page has to set itself; there are no cookies, so
// credentials are never allowed.
//
// A browser sends a preflight first (OPTIONS with Access-Control-Request-Method) for a request that
// an HTML form could not send: another method than GET, HEAD or POST, another Content-Type than a
// form's, or an Authorization. A preflight carries no token and is answered here, with the methods
// of the path. Every reply to an allowed origin, refusals too, says that its page may read it. With
// --allow-origin all replies carry `Vary: Origin`, because they differ by it.
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "server/http_private.h"

// How long a browser may remember a preflight, in seconds: as long as Chromium does at most.
#define MAX_AGE "7200"
// The headers of a reply that a page may read.
#define EXPOSED                                                                                              \
        "X-Request-Id, ETag, Location, Retry-After, Server-Timing, Allow, WWW-Authenticate, "                \
        "Fxserve-Program, Fxserve-Profile, Fxserve-Seed"
// `*` stands for every header but Authorization; unknown ones are ignored by this server anyway.
#define ALLOWED_HEADERS "Authorization, *"
// For a path that is no route, so that the page sees the 404 of its request.
#define ANY_METHOD "GET, HEAD, POST, PUT, PATCH, DELETE"

// Whether `word` is in `list`, separated by commas and blanks.
static bool list_has(const char *list, const char *word)
{
        size_t n = strlen(word);
        for (const char *at = list + strspn(list, ", "); *at != '\0'; at += strspn(at, ", ")) {
                size_t length = strcspn(at, ", ");
                if (length == n && strncasecmp(at, word, n) == 0)
                        return true;
                at += length;
        }
        return false;
}

bool origin_is_allowed(const Http *http, const char *origin)
{
        return list_has(http->options.allow_origin, origin);
}

// scheme "://" host [":" port], as browsers write it: no path, no slash at the end.
static bool is_origin(const char *text, size_t n)
{
        const char *mark = memmem(text, n, "://", 3);
        if (mark == NULL || mark == text)
                return false;
        size_t scheme = (size_t)(mark - text), host = n - scheme - 3;
        return host > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz+-.0123456789") == scheme &&
               strcspn(mark + 3, "/?#@*\\\"") >= host;
}

Status cors_check(const char *list)
{
        for (const char *at = list + strspn(list, ", "); *at != '\0'; at += strspn(at, ", ")) {
                size_t n = strcspn(at, ", ");
                if (!is_origin(at, n))
                        return fail(STATUS_USAGE,
                                    "--allow-origin wants origins as browsers send them, SCHEME://HOST or "
                                    "SCHEME://HOST:PORT, separated by "
                                    "commas, not \"%.*s\"",
                                    (int)MIN(n, (size_t)200), at);
                at += n;
        }
        return STATUS_OK;
}

Status cors_preflight(Exchange *exchange, const char *method, bool *out_answered)
{
        const char *wanted = header_of(exchange, "Access-Control-Request-Method"),
                   *origin = header_of(exchange, "Origin");
        ApiReply *reply = &exchange->job->reply;
        ApiCall call = { .route = NULL };
        *out_answered = false;
        if (strcmp(method, "OPTIONS") != 0 || wanted == NULL || origin == NULL ||
            exchange->http->options.allow_origin[0] == '\0')
                return STATUS_OK;
        if (!origin_is_allowed(exchange->http, origin))
                return fail(STATUS_ORIGIN, "a page of another origin may not call this server; start it with "
                                           "--allow-origin to let it");
        char methods[64];
        route_parse(method, exchange->target, &call, methods); // always a failure: no route has this method
        api_call_deinit(&call);
        reply->status = 204;
        api_reply_header(reply, "Access-Control-Allow-Methods", "%s",
                         methods[0] == '\0' ? ANY_METHOD : methods);
        api_reply_header(reply, "Access-Control-Allow-Headers", ALLOWED_HEADERS);
        api_reply_header(reply, "Access-Control-Max-Age", MAX_AGE);
        if (header_of(exchange, "Access-Control-Request-Private-Network") != NULL)
                api_reply_header(reply, "Access-Control-Allow-Private-Network", "true");
        *out_answered = true;
        return STATUS_OK;
}

void cors_add_headers(Exchange *exchange, TransportReply *out)
{
        const Http *http = exchange->http;
        if (http->options.allow_origin[0] == '\0')
                return;
        transport_reply_header(out, "Vary", "Origin");
        const char *origin = header_of(exchange, "Origin");
        if (origin == NULL || !origin_is_allowed(http, origin))
                return;
        transport_reply_header(out, "Access-Control-Allow-Origin", origin);
        transport_reply_header(out, "Access-Control-Expose-Headers", EXPOSED);
        // performance.getEntries() shows Server-Timing
        transport_reply_header(out, "Timing-Allow-Origin", origin);
}
