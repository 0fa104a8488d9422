// SPDX-License-Identifier: Apache-2.0
// The request says `Connection: close`, so the reply is everything until the end of the connection.
// Its length is then checked against Content-Length or the chunks. A server may answer before it
// has taken the whole body (401, 413): the reply is read even when sending fails.
#include "server/client.h"
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/memory.h"

enum { SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) };

// ---- addresses ----
static Status parse_authority(const char *what, const char *text, size_t n, const char *whole, ClientUrl *out)
{
        const char *colon = memrchr(text, ':', n), *end = text + n;
        if (n > 0 && text[n - 1] == ']')
                colon = NULL;
        const char *host_end = colon == NULL ? end : colon;
        out->in_brackets = host_end - text >= 2 && text[0] == '[' && host_end[-1] == ']';
        const char *host = text + out->in_brackets;
        size_t n_host = (size_t)(host_end - text) - 2 * out->in_brackets,
               n_port = colon == NULL ? 0 : (size_t)(end - colon) - 1;
        if (n_host == 0 || n_host >= sizeof(out->host) || n_port >= sizeof(out->port) ||
            (colon != NULL && n_port == 0) || (colon != NULL && strspn(colon + 1, "0123456789") < n_port))
                return fail(STATUS_USAGE, "%s wants a URL like http://127.0.0.1:8080, not \"%.200s\"", what,
                            whole);
        snprintf(out->host, sizeof(out->host), "%.*s", (int)n_host, host);
        snprintf(out->port, sizeof(out->port), "%.*s", (int)n_port, colon == NULL ? "" : colon + 1);
        if (n_port == 0)
                snprintf(out->port, sizeof(out->port), out->tls ? "443" : "80");
        return STATUS_OK;
}

Status client_url_parse(const char *what, const char *text, ClientUrl *out_url)
{
        ClientUrl url = { .tls = strncmp(text, "https://", 8) == 0, .port = "80" };
        if (strncmp(text, "unix:", 5) == 0) {
                if (text[5] == '\0' || strlen(text + 5) >= SOCKET_PATH_MAX)
                        return fail(STATUS_USAGE, "%s: unix:PATH wants a path of 1 to %d bytes", what,
                                    SOCKET_PATH_MAX - 1);
                snprintf(url.host, sizeof(url.host), "%s", text + 5);
                url.is_file = true;
                *out_url = url;
                return STATUS_OK;
        }
        if (!url.tls && strncmp(text, "http://", 7) != 0)
                return fail(STATUS_USAGE, "%s wants a URL like http://127.0.0.1:8080, not \"%.200s\"", what,
                            text);
        const char *authority = text + (url.tls ? 8 : 7);
        size_t n = strcspn(authority, "/?#");
        const char *path = authority[n] == '/' && authority[n + 1] != '\0' ? authority + n : "";
        for (const char *at = path; *at != '\0'; at++)
                if ((unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
                        return fail(STATUS_USAGE,
                                    "the URL's path holds a character that must be percent-encoded");
        if (strlen(path) >= sizeof(url.path))
                return fail(STATUS_USAGE, "the URL is too long");
        snprintf(url.path, sizeof(url.path), "%s", path);
        TRY(parse_authority(what, authority, n, text, &url));
        *out_url = url;
        return STATUS_OK;
}

Status client_url_own(ClientUrl *out_url)
{
        const char *listen = getenv("FXSERVE_LISTEN"), *cert = getenv("FXSERVE_TLS_CERT");
        char text[300];
        if (listen != NULL && strncmp(listen, "unix:", 5) == 0)
                return client_url_parse("FXSERVE_LISTEN", listen, out_url);
        snprintf(text, sizeof(text), "%s://%.280s", cert == NULL || cert[0] == '\0' ? "http" : "https",
                 listen == NULL || listen[0] == '\0' ? "127.0.0.1:8080" : listen);
        TRY(client_url_parse("FXSERVE_LISTEN", text, out_url));
        if (strcmp(out_url->host, "0.0.0.0") == 0)
                snprintf(out_url->host, sizeof(out_url->host), "127.0.0.1");
        else if (strcmp(out_url->host, "::") == 0)
                snprintf(out_url->host, sizeof(out_url->host), "::1");
        return STATUS_OK;
}

// ---- the connection ----
// Reads or writes on the non-blocking socket, or through TLS.
typedef struct Stream {
        int fd;
        gnutls_session_t tls; // NULL: none
        int64_t idle_ms, deadline_ns;
} Stream;

// Waits until the socket is ready for `events`; false on a timeout.
static bool wait_for(const Stream *stream, short events)
{
        struct pollfd entry = { .fd = stream->fd, .events = events };
        int64_t until_ns = MIN(clock_ns() + stream->idle_ms * 1000000, stream->deadline_ns);
        for (;;) {
                int64_t left_ms = (until_ns - clock_ns()) / 1000000;
                if (left_ms <= 0)
                        return false;
                if (poll(&entry, 1, (int)MIN(left_ms, INT32_MAX)) > 0)
                        return true;
        }
}

static Status connect_to(const struct addrinfo *address, Stream *stream)
{
        int error = 0;
        socklen_t n = sizeof(error);
        stream->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (stream->fd < 0)
                return fail(STATUS_IO, "no socket: %s", strerror(errno));
        if (connect(stream->fd, address->ai_addr, address->ai_addrlen) != 0) {
                error = errno;
                if (error == EINPROGRESS && !(wait_for(stream, POLLOUT) &&
                                              getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0))
                        error = ETIMEDOUT;
        }
        if (error == 0)
                return STATUS_OK;
        close(stream->fd);
        stream->fd = -1;
        return fail(STATUS_IO, "no connection: %s", strerror(error));
}

// Waits for the direction that GnuTLS needs.
static bool tls_wait(const Stream *stream, ssize_t result)
{
        if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED)
                return false;
        return wait_for(stream, gnutls_record_get_direction(stream->tls) == 1 ? POLLOUT : POLLIN);
}

static int tls_shake_hands(const Stream *stream)
{
        int result;
        do {
                result = gnutls_handshake(stream->tls);
        } while (result < 0 && !gnutls_error_is_fatal(result) && tls_wait(stream, result));
        return result;
}

static ssize_t stream_send(const Stream *stream, const uint8_t *bytes, size_t n)
{
        ssize_t sent;
        if (stream->tls == NULL)
                return wait_for(stream, POLLOUT) ? send(stream->fd, bytes, n, MSG_NOSIGNAL) : -1;
        do {
                sent = gnutls_record_send(stream->tls, bytes, n);
        } while (sent < 0 && tls_wait(stream, sent));
        return sent;
}

// 0: the end of the connection; < 0: an error or a timeout.
static ssize_t stream_receive(const Stream *stream, char *bytes, size_t capacity)
{
        ssize_t got;
        if (stream->tls == NULL)
                return wait_for(stream, POLLIN) ? recv(stream->fd, bytes, capacity, 0) : -1;
        do {
                got = gnutls_record_recv(stream->tls, bytes, capacity);
        } while (got < 0 && tls_wait(stream, got));
        return got == GNUTLS_E_PREMATURE_TERMINATION ? 0 : got;
}

// ---- the exchange ----
static Status write_head(const ClientUrl *url, const ClientRequest *request, Text *out)
{
        uint64_t n_body = 0;
        for (int i = 0; i < request->n_parts; i++)
                n_body += request->parts[i].n;
        text_addf(out, "%s %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n", request->method,
                  request->target, url->in_brackets ? "[" : "", url->is_file ? "localhost" : url->host,
                  url->in_brackets ? "]" : "", url->port);
        if (request->token != NULL)
                text_addf(out, "Authorization: Bearer %s\r\n", request->token);
        if (request->request_id != NULL)
                text_addf(out, "X-Request-Id: %s\r\n", request->request_id);
        if (request->content_type != NULL)
                text_addf(out, "Content-Type: %s\r\n", request->content_type);
        if (request->n_parts > 0)
                text_addf(out, "Content-Length: %llu\r\n", (unsigned long long)n_body);
        text_add(out, "\r\n");
        return text_status(out);
}

static bool send_all(const Stream *stream, const uint8_t *bytes, size_t n)
{
        enum { PIECE = 1 << 20 };
        for (size_t done = 0; done < n;) {
                ssize_t sent = stream_send(stream, bytes + done, MIN(n - done, (size_t)PIECE));
                if (sent < 0)
                        return false;
                done += (size_t)sent;
        }
        return true;
}

static Status receive_all(const Stream *stream, size_t most, Text *out)
{
        enum { PIECE = 64 << 10 };
        for (;;) {
                char *place = text_reserve(out, PIECE);
                if (place == NULL)
                        return fail_memory();
                ssize_t got = stream_receive(stream, place, PIECE);
                if (got < 0)
                        return fail(STATUS_IO, out->n == 0 ? "no reply in time" : "the reply broke off");
                if (got == 0)
                        return out->n > 0
                                       ? STATUS_OK
                                       : fail(STATUS_IO, "the server closed the connection without a reply");
                out->n += (size_t)got;
                out->data[out->n] = '\0';
                if (out->n > most)
                        return fail(STATUS_IO, "the reply is larger than %zu bytes", most);
        }
}

// The value of a header in the head's lines, trimmed; n 0 when it is not there.
static ByteSpan header(const char *head, size_t n_head, const char *name)
{
        size_t n_name = strlen(name);
        const char *end = head + n_head;
        for (const char *line = memchr(head, '\n', n_head); line != NULL;
             line = memchr(line, '\n', (size_t)(end - line))) {
                line++;
                if ((size_t)(end - line) <= n_name || strncasecmp(line, name, n_name) != 0 ||
                    line[n_name] != ':')
                        continue;
                const char *from = line + n_name + 1, *to = memchr(from, '\n', (size_t)(end - from));
                to = to == NULL ? end : to;
                while (from < to && (*from == ' ' || *from == '\t'))
                        from++;
                while (to > from && (to[-1] == '\r' || to[-1] == ' '))
                        to--;
                return (ByteSpan){ (const uint8_t *)from, (size_t)(to - from) };
        }
        return (ByteSpan){ NULL, 0 };
}

static Status unchunk(const char *from, const char *end, Text *out)
{
        for (;;) {
                char *after;
                const char *line = memchr(from, '\n', (size_t)(end - from));
                unsigned long long n = line == NULL ? 0 : strtoull(from, &after, 16);
                if (line == NULL || after == from || n > (size_t)(end - line - 1))
                        return fail(STATUS_IO, "the reply broke off");
                if (n == 0)
                        return STATUS_OK;
                text_add_n(out, line + 1, (size_t)n);
                from = line + 1 + n;
                if (end - from < 2)
                        return fail(STATUS_IO, "the reply broke off");
                from += 2; // CR LF
        }
}

static Status read_reply(const Text *bytes, ClientReply *out)
{
        const char *blank = bytes->n == 0 ? NULL : memmem(bytes->data, bytes->n, "\r\n\r\n", 4);
        if (blank == NULL || sscanf(bytes->data, "HTTP/1.%*1[01] %3d", &out->status) != 1)
                return fail(STATUS_IO, "the reply is no HTTP");
        size_t n_head = (size_t)(blank - bytes->data) + 2, n_body = bytes->n - n_head - 2;
        ByteSpan type = header(bytes->data, n_head, "Content-Type"),
                 length = header(bytes->data, n_head, "Content-Length"),
                 coding = header(bytes->data, n_head, "Transfer-Encoding");
        snprintf(out->content_type, sizeof(out->content_type), "%.*s", (int)MIN(type.n, (size_t)100),
                 type.data == NULL ? "" : (const char *)type.data);
        if (coding.n == 7 && strncasecmp((const char *)coding.data, "chunked", 7) == 0) {
                TRY(unchunk(blank + 4, bytes->data + bytes->n, &out->body));
        } else {
                if (length.n > 0 && strtoull((const char *)length.data, NULL, 10) != n_body)
                        return fail(STATUS_IO, "the reply broke off");
                text_add_n(&out->body, blank + 4, n_body);
        }
        return text_status(&out->body);
}

static Status exchange_on(const Stream *stream, const ClientUrl *url, const ClientRequest *request,
                          ClientReply *out)
{
        Text head = { 0 }, bytes = { 0 };
        Status status = write_head(url, request, &head);
        bool sent = status == STATUS_OK && send_all(stream, (const uint8_t *)head.data, head.n);
        for (int i = 0; i < request->n_parts && sent; i++)
                sent = send_all(stream, request->parts[i].data, request->parts[i].n);
        if (status == STATUS_OK)
                status = receive_all(stream, request->max_reply, &bytes);
        if (status == STATUS_OK)
                status = read_reply(&bytes, out);
        else if (status == STATUS_IO && !sent && bytes.n == 0)
                status = fail(STATUS_IO, "the request could not be sent");
        text_deinit(&head);
        text_deinit(&bytes);
        return status;
}

static Status tls_failure(gnutls_session_t session, int result)
{
        gnutls_datum_t words = { NULL, 0 };
        if (result != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
                return fail(STATUS_IO, "no TLS: %s", gnutls_strerror(result));
        unsigned why = gnutls_session_get_verify_cert_status(session);
        gnutls_certificate_verification_status_print(why, GNUTLS_CRT_X509, &words, 0);
        Status status =
                fail(STATUS_IO, "the server's certificate is not trusted: %s%s",
                     words.data == NULL ? "" : (const char *)words.data,
                     (why & GNUTLS_CERT_SIGNER_NOT_FOUND) == 0 ? "" : "(--ca FILE names its authority)");
        gnutls_free(words.data);
        return status;
}

// The authorities to trust.
static Status trust(gnutls_certificate_credentials_t credentials, const ClientRequest *request)
{
        if (request->insecure)
                return STATUS_OK;
        if (request->ca_file == NULL)
                return gnutls_certificate_set_x509_system_trust(credentials) >= 0
                               ? STATUS_OK
                               : fail(STATUS_IO, "the system's certificate authorities cannot be read; name "
                                                 "a file with --ca");
        int n = gnutls_certificate_set_x509_trust_file(credentials, request->ca_file, GNUTLS_X509_FMT_PEM);
        return n > 0 ? STATUS_OK
                     : fail(STATUS_USAGE, "--ca %s: no certificate in it that can be read", request->ca_file);
}

static Status exchange_tls(Stream *stream, const ClientUrl *url, const ClientRequest *request,
                           ClientReply *out)
{
        gnutls_certificate_credentials_t credentials;
        if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS)
                return fail_memory();
        if (gnutls_init(&stream->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) !=
            GNUTLS_E_SUCCESS) {
                gnutls_certificate_free_credentials(credentials);
                return fail_memory();
        }
        Status status = trust(credentials, request);
        int result = gnutls_set_default_priority(stream->tls);
        if (result == GNUTLS_E_SUCCESS)
                result = gnutls_credentials_set(stream->tls, GNUTLS_CRD_CERTIFICATE, credentials);
        if (!request->insecure)
                gnutls_session_set_verify_cert(stream->tls, url->host, 0);
        gnutls_transport_set_int(stream->tls, stream->fd);
        if (status == STATUS_OK && result == GNUTLS_E_SUCCESS)
                result = tls_shake_hands(stream);
        if (status == STATUS_OK)
                status = result < 0 ? tls_failure(stream->tls, result)
                                    : exchange_on(stream, url, request, out);
        gnutls_deinit(stream->tls);
        gnutls_certificate_free_credentials(credentials);
        return status;
}

static Status connect_file(const char *path, Stream *stream)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct addrinfo info = { .ai_family = AF_UNIX,
                                 .ai_addr = (struct sockaddr *)(void *)&address,
                                 .ai_addrlen = sizeof(address) };
        memcpy(address.sun_path, path, MIN(strlen(path) + 1, sizeof(address.sun_path)));
        return connect_to(&info, stream);
}

static Status connect_name(const ClientUrl *url, Stream *stream)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
        int error = getaddrinfo(url->host, url->port, &hints, &found);
        if (error != 0)
                return fail(STATUS_IO, "%s: %s", url->host, gai_strerror(error));
        Status status = STATUS_OK;
        for (const struct addrinfo *at = found; at != NULL && stream->fd < 0; at = at->ai_next)
                status = connect_to(at, stream);
        freeaddrinfo(found);
        return status;
}

Status client_ask(const ClientUrl *url, const ClientRequest *request, ClientReply *out_reply)
{
        Stream stream = { .fd = -1,
                          .idle_ms = request->idle_ms,
                          .deadline_ns = request->total_ms == 0 ? INT64_MAX
                                                                : clock_ns() + request->total_ms * 1000000 };
        ClientReply reply = { .status = 0 };
        TRY(url->is_file ? connect_file(url->host, &stream) : connect_name(url, &stream));
        Status status = url->tls ? exchange_tls(&stream, url, request, &reply)
                                 : exchange_on(&stream, url, request, &reply);
        close(stream.fd);
        if (status == STATUS_OK)
                *out_reply = reply;
        else
                client_reply_deinit(&reply);
        return status;
}

void client_reply_deinit(ClientReply *reply)
{
        text_deinit(&reply->body);
}
