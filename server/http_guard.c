// SPDX-License-Identifier: Apache-2.0
// Guards before routing, and one behind it. The framing of the request must be certain
// (http_raw.c). On a loopback address, Host and Origin must be this server's, so that no web page
// can drive a local server; probes may come without either.
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include "api/formats/accept.h"
#include "api/formats/inflate.h"
#include "core/base/limits.h"
#include "server/http_private.h"

typedef struct HeaderCount {
        int n_host, n_origin, n_authorization, n_content_encoding;
        const char *host, *origin, *content_encoding;
        AcceptedCodings accepted;
} HeaderCount;

static void count_header(void *context, const char *key, const char *value)
{
        HeaderCount *count = context;
        value = value == NULL ? "" : value;
        if (strcasecmp(key, "Host") == 0) {
                count->n_host++;
                count->host = value;
        } else if (strcasecmp(key, "Origin") == 0) {
                count->n_origin++;
                count->origin = value;
        } else if (strcasecmp(key, "Authorization") == 0) {
                count->n_authorization++;
        } else if (strcasecmp(key, "Accept-Encoding") == 0) {
                accept_add_codings(value, &count->accepted);
        } else if (strcasecmp(key, "Content-Encoding") == 0) {
                count->n_content_encoding++;
                count->content_encoding = value;
        }
}

static HeaderCount count_headers(const Exchange *exchange)
{
        HeaderCount count = { .n_host = 0 };
        transport_each_header(exchange->connection, count_header, &count);
        return count;
}

// host [ ":" port ] of RFC 3986, without user information: other servers may read other forms
// differently.
static bool is_authority(const char *text)
{
        size_t n = text[0] == '[' ? strspn(text + 1, "0123456789abcdefABCDEF:.") + 1
                                  : strcspn(text, ":@/?#[]\\\"<>, \t");
        if (text[0] == '[' && text[n++] != ']')
                return false;
        if (text[n] == '\0')
                return true;
        size_t digits = text[n] == ':' ? strspn(text + n + 1, "0123456789") : 0;
        return text[n] == ':' && digits <= 5 && text[n + 1 + digits] == '\0';
}

// Host without its port; "[::1]:80" gives "[::1]".
static bool host_is(const char *host, const char *name)
{
        const char *colon = host[0] == '[' ? strchr(strchr(host, ']') == NULL ? host : strchr(host, ']'), ':')
                                           : strchr(host, ':');
        size_t n = colon == NULL ? strlen(host) : (size_t)(colon - host);
        return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

static Status check_host(const Http *http, const HeaderCount *count)
{
        static const char *const ours[] = { "localhost", "127.0.0.1", "[::1]" };
        if (!http->options.is_loopback)
                return STATUS_OK;
        if (count->host == NULL && count->origin == NULL)
                return STATUS_OK; // guard_route says what it may ask
        if (count->host == NULL)
                return fail(STATUS_HOST, "a request of a page has a Host header");
        bool known = http->options.host_name[0] != '\0' && host_is(count->host, http->options.host_name);
        for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
                known |= host_is(count->host, ours[i]);
        if (!known)
                return fail(
                        STATUS_HOST,
                        "the Host header is not this server's; use localhost, or start it with --host-name");
        if (count->origin == NULL || origin_is_allowed(http, count->origin))
                return STATUS_OK;
        char own[CALL_HEADER_MAX];
        snprintf(own, sizeof(own), "%s://%.240s", http->options.tls_callback != NULL ? "https" : "http",
                 count->host);
        if (strcasecmp(own, count->origin) != 0)
                return fail(STATUS_ORIGIN, "a page of another origin may not call this server; start it with "
                                           "--allow-origin to let it");
        return STATUS_OK;
}

// libmicrohttpd and http_raw.c must have found the same requests; see http_tap.c.
static Status check_framing(const Exchange *exchange)
{
        const Conn *conn = exchange->conn;
        if (conn == NULL)
                return fail_memory();
        if (conn->raw.state == RAW_BAD && exchange->number > conn->raw.n_requests)
                return fail(conn->raw.verdict, "%s", conn->raw.words);
        return exchange->number > conn->raw.n_heads ? fail(STATUS_MALFORMED, "this is no request of RFC 9112")
                                                    : STATUS_OK;
}

Status guard_body(const Exchange *exchange)
{
        return check_framing(exchange);
}

// http://host:port/path is /path on that host; the Host header is then ignored (RFC 9112, 3.2.2).
static Status take_absolute_form(Exchange *exchange, HeaderCount *count, char host[CALL_HEADER_MAX])
{
        const char *target = exchange->target;
        size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                        : strncasecmp(target, "https://", 8) == 0 ? 8
                                                                  : 0;
        size_t n = strcspn(target + scheme, "/?");
        if (scheme == 0)
                return STATUS_OK;
        if (n == 0 || n >= CALL_HEADER_MAX)
                return fail(STATUS_MALFORMED, "the request target names no host, or one that is too long");
        memcpy(host, target + scheme, n);
        host[n] = '\0';
        count->host = host;
        exchange->target = exchange->target_memory + scheme + n;
        if (exchange->target[0] != '/')
                exchange->target = "/";
        return STATUS_OK;
}

Status guard_request(Exchange *exchange, const char *method)
{
        char host[CALL_HEADER_MAX];
        TRY(check_framing(exchange));
        if (strcmp(method, "CONNECT") == 0)
                return fail(STATUS_METHOD, "this is no proxy");
        exchange->framed = true;
        HeaderCount count = count_headers(exchange);
        if (count.n_host > 1) // none: HTTP/1.0, or http_raw.c had refused it
                return fail(STATUS_MALFORMED, "a request has exactly one Host header");
        TRY(take_absolute_form(exchange, &count, host));
        exchange->hostless = count.host == NULL;
        if (!exchange->hostless && !is_authority(count.host))
                return fail(STATUS_MALFORMED, "the host of a request is a name or an address and perhaps a "
                                              "port, without user information");
        if (count.n_origin > 1 || count.n_authorization > 1)
                return fail(STATUS_MALFORMED, "a request has one %s header at most",
                            count.n_origin > 1 ? "Origin" : "Authorization");
        exchange->job->call.takes_gzip = accept_gzip(&count.accepted);
        if (count.n_content_encoding > 1)
                return fail(STATUS_ENCODING, "a body has one Content-Encoding at most");
        TRY(encoding_named(count.content_encoding, &exchange->job->call.encoding));
        return check_host(exchange->http, &count);
}

Status guard_route(const Exchange *exchange)
{
        const Route *route = exchange->job->call.route;
        if (!exchange->hostless || !exchange->http->options.is_loopback ||
            (route != NULL && route_is(route, KIND_PROBE)))
                return STATUS_OK;
        return fail(STATUS_HOST, "without a Host header (HTTP/1.0) this server answers probes only, as it is "
                                 "bound to loopback; send Host: localhost");
}

// Request ids give access to profiles and appear in other systems' logs, so nobody may be able to
// guess one from another. Random bytes are fetched from the system many at a time.
Status random_fill(Http *http)
{
        if (getrandom(http->random, sizeof(http->random), 0) != sizeof(http->random))
                return fail(STATUS_INTERNAL, "the system gives no random numbers");
        http->n_random = ARRAY_LENGTH(http->random);
        return STATUS_OK;
}

uint64_t random_next(Http *http)
{
        if (http->n_random == 0 && random_fill(http) != STATUS_OK)
                // getrandom worked at start, and never returns fewer than 256 bytes in part
                abort();
        return http->random[--http->n_random];
}

// The client's X-Request-Id if it is well-formed, else a fresh one.
void print_hex(uint64_t id, char out[17])
{
        for (int i = 16; i-- > 0; id >>= 4)
                out[i] = "0123456789abcdef"[id & 15];
        out[16] = '\0';
}

void take_request_id(Exchange *exchange)
{
        static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        char *id = exchange->job->call.request_id;
        const char *wish = header_of(exchange, "X-Request-Id");
        size_t n = wish == NULL ? 0 : strlen(wish);
        if (n > 0 && n <= PROFILE_ID_MAX && strspn(wish, allowed) == n) {
                memcpy(id, wish, n + 1);
        } else {
                print_hex(random_next(exchange->http), id);
        }
}
