// SPDX-License-Identifier: Apache-2.0
// One byte at a time through RFC 9112, without leniency: CRLF ends lines, fields are not folded, no
// blank before ':', no control characters, one Content-Length of digits only or one
// `Transfer-Encoding: chunked` (HTTP/1.1 only), one Host (in HTTP/1.0 perhaps none). Bytes of
// bodies are skipped in one step.
// Where the RFC lets a server choose between repairing and refusing, this reader refuses.
#include "server/http_raw.h"
#include <string.h>
#include <strings.h>
#include "core/base/limits.h"
#include "core/base/memory.h"

enum { MAX_FIELDS = 128, MAX_METHOD = 16, MAX_EMPTY_LINES = 2, MAX_SIZE_LINE = 256, MAX_TRAILERS = 4096 };

static const char two_lengths[] = "a request has one Content-Length, or Transfer-Encoding: chunked, not both";

void raw_init(RawReader *raw)
{
        *raw = (RawReader){ .state = RAW_START };
}

bool raw_in_head(const RawReader *raw)
{
        return raw->state > RAW_START_LF && raw->state < RAW_BODY && !raw->in_trailers;
}

bool raw_in_body(const RawReader *raw)
{
        return (raw->state >= RAW_BODY && raw->state < RAW_BAD) || raw->in_trailers;
}

static RawState bad(RawReader *raw, Status verdict, const char *words)
{
        raw->bad_in = raw->state;
        raw->verdict = verdict;
        raw->words = words;
        return RAW_BAD;
}

static RawState malformed(RawReader *raw, const char *words)
{
        return bad(raw, STATUS_MALFORMED, words);
}

// token of RFC 9110: names of methods and fields.
static bool is_token(uint8_t c)
{
        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
               (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int hex_digit(uint8_t c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static RawState end_request(RawReader *raw)
{
        raw->n_requests++;
        raw->n_line = 0;
        return RAW_START;
}

static RawState start_request(RawReader *raw, uint8_t c)
{
        if (c == '\r')
                return raw->n_line < MAX_EMPTY_LINES ? RAW_START_LF
                                                     : malformed(raw, "a request begins with a request line");
        if (!is_token(c))
                return malformed(raw, c == '\n' ? "lines end in CR LF" : "a request begins with a method");
        raw->n_line = raw->n_head = 1;
        raw->n_fields = raw->n_host = raw->n_length = raw->n_coding = raw->minor = 0;
        raw->chunked = raw->in_trailers = false;
        raw->left = 0;
        return RAW_METHOD;
}

static RawState in_method(RawReader *raw, uint8_t c)
{
        if (c == ' ') {
                raw->n_line = 0;
                return RAW_TARGET;
        }
        if (!is_token(c) || ++raw->n_line > MAX_METHOD)
                return malformed(raw, "a request begins with a method and one blank");
        return RAW_METHOD;
}

static RawState in_target(RawReader *raw, uint8_t c)
{
        if (c == ' ' && raw->n_line > 0) {
                raw->n_line = 0;
                return RAW_VERSION;
        }
        if (c <= 0x20 || c >= 0x7f)
                return malformed(raw, "the request target holds a character that must be percent-encoded");
        if (++raw->n_line > (uint64_t)limits.max_uri)
                return bad(raw, STATUS_URI, "the request target is too long (max_uri in GET /v1)");
        return RAW_TARGET;
}

static RawState in_version(RawReader *raw, uint8_t c)
{
        static const char version[] = "HTTP/1.";
        uint32_t at = raw->n_line++;
        if (at < sizeof(version) - 1)
                return c == (uint8_t)version[at] ? RAW_VERSION
                                                 : malformed(raw, "a request line ends in HTTP/1.1");
        if (at == sizeof(version) - 1 && (c == '0' || c == '1')) {
                raw->minor = (uint8_t)(c - '0');
                return RAW_VERSION;
        }
        return at == sizeof(version) && c == '\r'
                       ? RAW_LINE_LF
                       : malformed(raw, "a request line ends in HTTP/1.1 and CR LF");
}

// ---- fields ----
static bool is_named(const RawReader *raw, const char *name)
{
        return raw->n_line == strlen(name) && strncasecmp(raw->name, name, raw->n_line) == 0;
}

static RawState in_name(RawReader *raw, uint8_t c)
{
        if (raw->n_line == 0 && c == '\r')
                return RAW_END_LF;
        if (raw->n_line == 0 && (c == ' ' || c == '\t'))
                return malformed(raw, "a header may not be folded onto a second line");
        if (raw->n_line == 0 && ++raw->n_fields > MAX_FIELDS)
                return bad(raw, STATUS_HEADERS, "a request has at most 128 headers");
        if (c == ':' && raw->n_line > 0) {
                raw->n_value = 0;
                return RAW_VALUE_START;
        }
        if (!is_token(c))
                return malformed(raw, c == '\n'
                                              ? "lines end in CR LF"
                                              : "a header's name is a token, with the colon right behind it");
        if (raw->n_line < RAW_NAME_MAX)
                raw->name[raw->n_line] = (char)c;
        raw->n_line++;
        return RAW_NAME;
}

static RawState in_value(RawReader *raw, uint8_t c)
{
        if (c == '\r')
                return RAW_FIELD_LF;
        if ((c < 0x20 && c != '\t') || c == 0x7f)
                return malformed(raw,
                                 c == '\n' ? "lines end in CR LF" : "a header holds a control character");
        if (raw->state == RAW_VALUE_START && (c == ' ' || c == '\t'))
                return RAW_VALUE_START;
        if (raw->n_value < RAW_VALUE_MAX)
                raw->value[raw->n_value] = (char)c;
        raw->n_value++;
        // The characters of a host and its port. Others belong to another syntax, which another
        // server may accept.
        if (is_named(raw, "host") && (c <= ' ' || strchr(",/@?#\\\"<>", c) != NULL || c >= 0x7f))
                return malformed(raw, "the Host header is a host and perhaps a port");
        return RAW_VALUE;
}

static RawState take_length(RawReader *raw)
{
        uint64_t length = 0;
        if (++raw->n_length + raw->n_coding > 1)
                return malformed(raw, two_lengths);
        if (raw->n_value == 0)
                return malformed(raw, "Content-Length is a number of bytes");
        for (uint32_t i = 0; i < raw->n_value; i++) {
                if (i >= RAW_VALUE_MAX || raw->value[i] < '0' || raw->value[i] > '9')
                        return malformed(raw, "Content-Length is a number of bytes");
                if (__builtin_mul_overflow(length, 10u, &length) ||
                    __builtin_add_overflow(length, (uint64_t)(raw->value[i] - '0'), &length) ||
                    length > INT64_MAX)
                        return bad(raw, STATUS_TOO_LARGE,
                                   "Content-Length is beyond any body this server takes");
        }
        raw->left = raw->length = length;
        return RAW_NAME;
}

static RawState take_coding(RawReader *raw)
{
        if (++raw->n_coding + raw->n_length > 1)
                return malformed(raw, two_lengths);
        if (raw->minor == 0)
                return malformed(raw, "HTTP/1.0 has no Transfer-Encoding");
        if (raw->n_value != 7 || strncasecmp(raw->value, "chunked", 7) != 0)
                return malformed(raw, "the Transfer-Encoding this server knows is chunked, alone: a request "
                                      "has one Content-Length, or "
                                      "Transfer-Encoding: chunked, not both");
        raw->chunked = true;
        return RAW_NAME;
}

static RawState end_field(RawReader *raw)
{
        RawState next = RAW_NAME;
        if (!raw->in_trailers && is_named(raw, "content-length"))
                next = take_length(raw);
        else if (!raw->in_trailers && is_named(raw, "transfer-encoding"))
                next = take_coding(raw);
        else if (!raw->in_trailers && is_named(raw, "host") && ++raw->n_host > 1)
                next = malformed(raw, "a request has exactly one Host header");
        raw->n_line = 0;
        return next;
}

static RawState end_head(RawReader *raw)
{
        if (raw->in_trailers) {
                raw->in_trailers = false;
                return end_request(raw);
        }
        if (raw->n_host == 0 && raw->minor > 0) // HTTP/1.0 knows no Host: checks of load balancers
                return malformed(raw, "a request has exactly one Host header");
        raw->n_heads++;
        raw->n_digits = 0;
        if (raw->chunked)
                return RAW_SIZE;
        return raw->left > 0 ? RAW_BODY : end_request(raw);
}

// ---- chunks ----
static RawState in_size(RawReader *raw, uint8_t c)
{
        int digit = hex_digit(c);
        if (digit >= 0) {
                if (++raw->n_digits > 15)
                        return malformed(raw, "a chunk's size is beyond any body");
                raw->left = (raw->n_digits == 1 ? 0 : raw->left) * 16 + (uint64_t)digit;
                return RAW_SIZE;
        }
        raw->n_line = 0;
        if (raw->n_digits > 0 && c == ';')
                return RAW_EXTENSION;
        return raw->n_digits > 0 && c == '\r'
                       ? RAW_SIZE_LF
                       : malformed(raw, "a chunk begins with its size in hexadecimal digits and CR LF");
}

static RawState in_extension(RawReader *raw, uint8_t c)
{
        if (c == '\r')
                return RAW_SIZE_LF;
        if ((c < 0x20 && c != '\t') || c == 0x7f || ++raw->n_line > MAX_SIZE_LINE)
                return malformed(raw, "a chunk's extension is too long, or holds a control character");
        return RAW_EXTENSION;
}

static RawState start_chunk(RawReader *raw)
{
        raw->n_digits = 0;
        if (raw->left > 0)
                return RAW_CHUNK;
        raw->in_trailers = true;
        raw->n_line = raw->n_fields = raw->n_head = 0;
        return RAW_NAME;
}

static RawState expect(RawReader *raw, uint8_t c, uint8_t wanted, RawState next)
{
        return c == wanted ? next : malformed(raw, "lines end in CR LF, and nothing else does");
}

static RawState step(RawReader *raw, uint8_t c)
{
        switch (raw->state) {
        case RAW_START:
                return start_request(raw, c);
        case RAW_START_LF:
                raw->n_line++;
                return expect(raw, c, '\n', RAW_START);
        case RAW_METHOD:
                return in_method(raw, c);
        case RAW_TARGET:
                return in_target(raw, c);
        case RAW_VERSION:
                return in_version(raw, c);
        case RAW_LINE_LF:
                raw->n_line = 0;
                return expect(raw, c, '\n', RAW_NAME);
        case RAW_NAME:
                return in_name(raw, c);
        case RAW_VALUE_START:
        case RAW_VALUE:
                return in_value(raw, c);
        case RAW_FIELD_LF:
                return c == '\n' ? end_field(raw)
                                 : malformed(raw, "lines end in CR LF, and nothing else does");
        case RAW_END_LF:
                return c == '\n' ? end_head(raw)
                                 : malformed(raw, "lines end in CR LF, and nothing else does");
        case RAW_SIZE:
                return in_size(raw, c);
        case RAW_EXTENSION:
                return in_extension(raw, c);
        case RAW_SIZE_LF:
                return c == '\n' ? start_chunk(raw)
                                 : malformed(raw, "lines end in CR LF, and nothing else does");
        case RAW_CHUNK_CR:
                return expect(raw, c, '\r', RAW_CHUNK_LF);
        case RAW_CHUNK_LF:
                return expect(raw, c, '\n', RAW_SIZE);
        default:
                return RAW_BAD;
        }
}

// The CR behind a field's value stands at `at`.
static void note_length(RawReader *raw, size_t at)
{
        if (!raw->in_trailers && is_named(raw, "content-length") && raw->n_value <= at) {
                raw->length_at = at - raw->n_value;
                raw->n_length_digits = raw->n_value;
        }
}

void raw_skip(RawReader *raw, uint64_t n)
{
        raw->left -= n;
}

size_t raw_read(RawReader *raw, uint8_t *bytes, size_t n, int64_t *out_start)
{
        int64_t start = raw->state == RAW_START ? 0 : -1;
        size_t at = 0, kept = 0;
        raw->n_length_digits = 0;
        while (at < n && raw->state != RAW_BAD) {
                if (raw->state == RAW_BODY || raw->state == RAW_CHUNK) {
                        size_t skip = (size_t)MIN(raw->left, (uint64_t)(n - at));
                        if (kept < at)
                                memmove(bytes + kept, bytes + at, skip);
                        raw->left -= skip;
                        at += skip;
                        kept += skip;
                        if (raw->left == 0)
                                raw->state = raw->state == RAW_CHUNK ? RAW_CHUNK_CR : end_request(raw);
                } else {
                        bool in_lines = raw->state < RAW_BODY && raw->state != RAW_START;
                        if (in_lines &&
                            ++raw->n_head > (raw->in_trailers ? MAX_TRAILERS : (uint64_t)limits.max_headers))
                                raw->state = bad(raw, STATUS_HEADERS,
                                                 "the request's head is larger than this server takes "
                                                 "(max_headers in GET /v1)");
                        else
                                raw->state = step(raw, bytes[at]);
                        if (raw->state == RAW_BAD)
                                break;
                        if (raw->state == RAW_FIELD_LF)
                                note_length(raw, kept);
                        if (kept < at)
                                bytes[kept] = bytes[at];
                        at++;
                        kept += raw->state != RAW_EXTENSION; // its ';' and what follows, but not the CR
                }
                if (raw->state == RAW_START)
                        start = (int64_t)kept;
        }
        *out_start = start;
        return kept;
}
