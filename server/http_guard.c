// SPDX-License-Identifier: Apache-2.0
// Guards at the door, before routing. libmicrohttpd accepts requests that two servers would split differently (Content-Length beside
// Transfer-Encoding, two lengths, two Hosts): they are refused here and the connection is closed, so that nothing after them is read as a
// request. Bound to loopback, Host and Origin must be ours, so that no web page can drive a local server.
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/base/limits.h"
#include "server/http_private.h"

typedef struct HeaderCount {
        int n_host, n_length, n_encoding;
        bool bad_encoding;
        const char *host, *origin, *length, *content_encoding;
} HeaderCount;

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
        HeaderCount *count = context;
        (void)kind;
        value = value == NULL ? "" : value;
        if (strcasecmp(key, "Host") == 0) {
                count->n_host++;
                count->host = value;
        } else if (strcasecmp(key, "Content-Length") == 0) {
                count->n_length++;
                count->length = value;
        } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
                count->n_encoding++;
                count->bad_encoding |= strcasecmp(value, "chunked") != 0;
        } else if (strcasecmp(key, "Origin") == 0) {
                count->origin = value;
        } else if (strcasecmp(key, "Content-Encoding") == 0) {
                count->content_encoding = value;
        }
        return MHD_YES;
}

static HeaderCount count_headers(const Exchange *exchange)
{
        HeaderCount count = { .n_host = 0 };
        MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, count_header, &count);
        return count;
}

// Host without its port; "[::1]:80" gives "[::1]".
static bool host_is(const char *host, const char *name)
{
        const char *colon = host[0] == '[' ? strchr(strchr(host, ']') == NULL ? host : strchr(host, ']'), ':') : strchr(host, ':');
        size_t n = colon == NULL ? strlen(host) : (size_t)(colon - host);
        return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

static Status check_host(const Http *http, const HeaderCount *count)
{
        static const char *const ours[] = { "localhost", "127.0.0.1", "[::1]" };
        if (!http->options.is_loopback)
                return STATUS_OK;
        bool known = http->options.host_name[0] != '\0' && host_is(count->host, http->options.host_name);
        for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
                known |= host_is(count->host, ours[i]);
        if (!known)
                return fail(STATUS_HOST, "the Host header is not this server's; use localhost, or start it with --host-name");
        if (count->origin == NULL || (http->options.allow_origin[0] != '\0' && strcmp(count->origin, http->options.allow_origin) == 0))
                return STATUS_OK;
        char own[CALL_HEADER_MAX];
        snprintf(own, sizeof(own), "http://%.240s", count->host);
        if (strcasecmp(own, count->origin) != 0)
                return fail(STATUS_ORIGIN, "a page of another origin may not call this server; start it with --allow-origin to let it");
        return STATUS_OK;
}

Status guard_request(Exchange *exchange)
{
        HeaderCount count = count_headers(exchange);
        if (count.n_length + count.n_encoding > 1 || count.bad_encoding)
                return fail(STATUS_MALFORMED, "a request has one Content-Length, or Transfer-Encoding: chunked, not both");
        if (count.n_host != 1)
                return fail(STATUS_MALFORMED, "a request has exactly one Host header");
        for (const char *at = exchange->target; *at != '\0'; at++)
                if ((unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
                        return fail(STATUS_MALFORMED, "the request target holds a character that must be percent-encoded");
        exchange->framed = true;
        if (count.content_encoding != NULL && strcasecmp(count.content_encoding, "identity") != 0)
                return fail(STATUS_WRONG_FILE, "Content-Encoding is not taken yet; send the body as it is");
        return check_host(exchange->http, &count);
}

size_t guard_body_limit(const Exchange *exchange)
{
        switch (exchange->job->call.route) {
        case ROUTE_GRAPH_PUT:
        case ROUTE_GRAPH_POST:
                return (size_t)limits.max_upload;
        case ROUTE_RUN:
        case ROUTE_VERSION_RUN:
        case ROUTE_RUN_INLINE:
                return (size_t)limits.max_run_body;
        default:
                return (size_t)limits.max_envelope;
        }
}

static const char *limit_flag(size_t limit, const char **out_variable)
{
        bool upload = limit == (size_t)limits.max_upload;
        *out_variable = upload ? "FXSERVE_MAX_UPLOAD" : "FXSERVE_MAX_RUN_BODY";
        return upload ? "--max-upload" : "--max-run-body";
}

// 71,303,168
static const char *with_commas(uint64_t value, char out[32])
{
        char digits[24];
        int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), at = 0;
        for (int i = 0; i < n; i++) {
                if (i > 0 && (n - i) % 3 == 0)
                        out[at++] = ',';
                out[at++] = digits[i];
        }
        out[at] = '\0';
        return out;
}

Status guard_length(Exchange *exchange)
{
        HeaderCount count = count_headers(exchange);
        size_t limit = guard_body_limit(exchange);
        char left[32], right[32];
        const char *variable, *flag = limit_flag(limit, &variable);
        uint64_t declared = count.length == NULL ? 0 : strtoull(count.length, NULL, 10);
        uint64_t n = MAX(declared, (uint64_t)exchange->n_body);
        if (n <= limit)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE, "the body is %s%s bytes; the limit is %s (%s, %s)", declared == 0 ? "over " : "",
                    with_commas(n, left), with_commas(limit, right), flag, variable);
}

// The client's X-Request-Id if it is well-formed, else a fresh one.
void take_request_id(Exchange *exchange)
{
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        Http *http = exchange->http;
        char *id = exchange->job->call.request_id;
        const char *wish = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "X-Request-Id");
        size_t n = wish == NULL ? 0 : strlen(wish);
        if (n > 0 && n <= PROFILE_ID_MAX && strspn(wish, allowed) == n) {
                memcpy(id, wish, n + 1);
        } else {
                uint64_t number = ++http->next_id * 0x9e3779b97f4a7c15u ^ http->id_seed;
                snprintf(id, PROFILE_ID_MAX + 1, "%016llx", (unsigned long long)number);
        }
}
