// SPDX-License-Identifier: Apache-2.0
// multipart.c: the body is cut at "\r\n--boundary"; a part is its header lines up to an empty line,
// then its content. Scanning is linear: each delimiter is searched once, from where the last one
// ended. Contents are never copied.
#include "api/formats/multipart.h"

#include <string.h>
#include <strings.h>

enum { MAX_PARAMETERS = 16 }; // of one header line

typedef struct PartText {
        char *name, *filename, *content_type;
} PartText;

void multipart_deinit(Multipart *multipart)
{
        free(multipart->parts);
        arena_deinit(&multipart->arena);
        *multipart = (Multipart){ 0 };
}

const MultipartPart *multipart_find(const Multipart *multipart, const char *name)
{
        for (uint32_t i = 0; i < multipart->n_parts; i++) {
                if (strcmp(multipart->parts[i].name, name) == 0)
                        return &multipart->parts[i];
        }
        return NULL;
}

// ---- header parameters ----
static const char *skip_blank(const char *at, const char *end)
{
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        return at;
}

static bool is_token_char(char c)
{
        return (unsigned char)c > 0x20 && (unsigned char)c != 0x7f &&
               strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

// Reads `token` or `"quoted"` into `out`, which has room for the rest of the text. In quotes only
// \" and \\ are escapes: file names come with bare ones.
static const char *scan_parameter(const char *at, const char *end, char *out)
{
        if (at == end || *at != '"') {
                const char *start = at;
                for (; at < end && (is_token_char(*at) || *at == '/' || *at == ':' || *at == '='); at++)
                        *out++ = *at;
                *out = '\0';
                return at == start ? NULL : at;
        }
        for (at++; at < end && *at != '"'; at++) {
                if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
                        at++;
                *out++ = *at;
        }
        *out = '\0';
        return at == end ? NULL : at + 1;
}

// Finds `; key=value` in the parameters of a header; *out_value is NULL when it is absent.
// STATUS_MALFORMED, which the caller words, when the parameters do not parse or repeat the key.
static Status find_parameter(const char *at, const char *end, const char *key, Arena *arena, char **out_value)
{
        size_t key_n = strlen(key);
        *out_value = NULL;
        for (int n_parameters = 0; n_parameters < MAX_PARAMETERS; n_parameters++) {
                at = skip_blank(at, end);
                if (at == end)
                        return STATUS_OK;
                if (*at != ';')
                        return STATUS_MALFORMED;
                at = skip_blank(at + 1, end);
                const char *name = at;
                while (at < end && is_token_char(*at))
                        at++;
                size_t n = (size_t)(at - name);
                if (n == 0)
                        return at == end ? STATUS_OK : STATUS_MALFORMED; // a trailing semicolon
                if (at == end || *at != '=')
                        return STATUS_MALFORMED;
                char *value = arena_alloc(arena, (size_t)(end - at) + 1);
                if (value == NULL)
                        return fail_memory();
                at = scan_parameter(at + 1, end, value);
                if (at == NULL)
                        return STATUS_MALFORMED;
                if (n == key_n && strncasecmp(name, key, n) == 0) {
                        if (*out_value != NULL)
                                return STATUS_MALFORMED;
                        *out_value = value;
                }
        }
        return STATUS_MALFORMED;
}

Status multipart_boundary(const char *content_type, char out_boundary[MULTIPART_MAX_BOUNDARY + 1])
{
        static const char type[] = "multipart/form-data";
        out_boundary[0] = '\0';
        if (content_type == NULL)
                return STATUS_OK;
        const char *end = content_type + strlen(content_type), *at = skip_blank(content_type, end);
        if (strncasecmp(at, type, sizeof(type) - 1) != 0)
                return STATUS_OK;
        at += sizeof(type) - 1;
        if (at < end && is_token_char(*at))
                return STATUS_OK;
        Arena arena;
        char *boundary;
        arena_init(&arena, 0);
        Status status = find_parameter(at, end, "boundary", &arena, &boundary);
        bool good = status == STATUS_OK && boundary != NULL;
        size_t n = good ? strlen(boundary) : 0;
        good = good && n > 0 && n <= MULTIPART_MAX_BOUNDARY && boundary[n - 1] != ' ' &&
               strpbrk(boundary, "\r\n") == NULL;
        if (good)
                memcpy(out_boundary, boundary, n + 1);
        arena_deinit(&arena);
        if (status == STATUS_NO_MEMORY)
                return status;
        return good ? STATUS_OK
                    : fail(STATUS_MALFORMED, "Content-Type multipart/form-data has no usable boundary; let "
                                             "the client set it (curl -F does)");
}

// ---- part headers ----
static bool header_is(const char *line, size_t n, const char *name, const char **out_value)
{
        size_t name_n = strlen(name);
        if (n <= name_n || line[name_n] != ':' || strncasecmp(line, name, name_n) != 0)
                return false;
        *out_value = line + name_n + 1;
        return true;
}

static Status read_disposition(const char *value, const char *end, Arena *arena, PartText *part)
{
        static const char type[] = "form-data";
        value = skip_blank(value, end);
        size_t n = sizeof(type) - 1;
        if (part->name != NULL)
                return fail(STATUS_MALFORMED,
                            "a part of the multipart body has two Content-Disposition lines");
        Status status =
                (size_t)(end - value) < n || strncasecmp(value, type, n) != 0 ? STATUS_MALFORMED : STATUS_OK;
        if (status == STATUS_OK)
                status = find_parameter(value + n, end, "name", arena, &part->name);
        if (status == STATUS_OK)
                status = find_parameter(value + n, end, "filename", arena, &part->filename);
        if (status == STATUS_MALFORMED)
                return fail(STATUS_MALFORMED, "a part of the multipart body has a Content-Disposition that "
                                              "is not `form-data; name=\"...\"`");
        return status;
}

static Status read_part_header(const char *line, size_t n, Arena *arena, PartText *part)
{
        const char *value, *end = line + n;
        for (size_t i = 0; i < n; i++) {
                if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
                        return fail(STATUS_MALFORMED,
                                    "a header of a part of the multipart body holds a control character");
        }
        if (header_is(line, n, "Content-Disposition", &value))
                return read_disposition(value, end, arena, part);
        if (header_is(line, n, "Content-Type", &value)) {
                value = skip_blank(value, end);
                part->content_type = arena_text(arena, value, (size_t)(end - value));
                return part->content_type == NULL ? fail_memory() : STATUS_OK;
        }
        if (header_is(line, n, "Content-Transfer-Encoding", &value)) {
                value = skip_blank(value, end);
                size_t value_n = (size_t)(end - value);
                if ((value_n == 6 && strncasecmp(value, "binary", 6) == 0) ||
                    (value_n == 4 &&
                     (strncasecmp(value, "8bit", 4) == 0 || strncasecmp(value, "7bit", 4) == 0)))
                        return STATUS_OK;
                return fail(STATUS_MALFORMED,
                            "a part of the multipart body is encoded (%.*s); send it as it is",
                            (int)MIN(value_n, 40), value);
        }
        if (memchr(line, ':', n) == NULL)
                return fail(STATUS_MALFORMED, "a header of a part of the multipart body has no colon");
        return STATUS_OK;
}

// The header lines of the part at `*at`, which is left at its content.
static Status read_part_headers(ByteSpan body, size_t *at, Arena *arena, PartText *part)
{
        size_t start = *at;
        for (;;) {
                const char *line = (const char *)body.data + *at;
                size_t left = MIN(body.n - *at, (size_t)MULTIPART_MAX_HEADERS - (*at - start));
                const char *line_end = left == 0 ? NULL : memmem(line, left, "\r\n", 2);
                if (line_end == NULL && left < body.n - *at)
                        return fail(STATUS_TOO_LARGE,
                                    "the headers of a part of the multipart body have more than %d bytes",
                                    MULTIPART_MAX_HEADERS);
                if (line_end == NULL)
                        return fail(STATUS_MALFORMED, "the multipart body ends within the headers of a part");
                size_t n = (size_t)(line_end - line);
                *at += n + 2;
                if (n == 0)
                        return STATUS_OK;
                TRY(read_part_header(line, n, arena, part));
        }
}

// ---- the body ----
typedef struct Delimiter {
        char text[MULTIPART_MAX_BOUNDARY + 5]; // "\r\n--boundary"
        size_t n;
} Delimiter;

// Behind a delimiter: "--" and the end of the body, or a line end and another part.
static Status after_delimiter(ByteSpan body, size_t *at, bool *out_last)
{
        const char *text = (const char *)body.data + *at;
        size_t left = body.n - *at;
        *out_last = left >= 2 && memcmp(text, "--", 2) == 0;
        if (*out_last) {
                bool clean = left == 2 || (left == 4 && memcmp(text + 2, "\r\n", 2) == 0);
                return clean ? STATUS_OK
                             : fail(STATUS_MALFORMED, "bytes follow the end of the multipart body");
        }
        size_t blank = (size_t)(skip_blank(text, text + left) - text);
        if (left < blank + 2 || memcmp(text + blank, "\r\n", 2) != 0)
                return fail(STATUS_MALFORMED,
                            "a delimiter of the multipart body is not followed by a line end");
        *at += blank + 2;
        return STATUS_OK;
}

static Status read_part(ByteSpan body, const Delimiter *delimiter, size_t *at, Multipart *multipart,
                        uint32_t *capacity)
{
        PartText text = { 0 };
        if (multipart->n_parts == MULTIPART_MAX_PARTS)
                return fail(STATUS_TOO_LARGE, "the multipart body has more than %d parts",
                            MULTIPART_MAX_PARTS);
        TRY(read_part_headers(body, at, &multipart->arena, &text));
        if (text.name == NULL || text.name[0] == '\0')
                return fail(STATUS_MALFORMED, "a part of the multipart body has no name");
        if (multipart_find(multipart, text.name) != NULL)
                return fail(STATUS_MALFORMED, "the multipart body has two parts called \"%.100s\"",
                            text.name);
        // The CRLF of the empty line may already begin the delimiter: empty content.
        const uint8_t *content = body.data + *at;
        const uint8_t *from = content - 2;
        const uint8_t *found = memmem(from, body.n - *at + 2, delimiter->text, delimiter->n);
        if (found == NULL)
                return fail(STATUS_MALFORMED,
                            "part \"%.100s\" of the multipart body does not end: the closing delimiter is "
                            "missing",
                            text.name);
        size_t n = found < content ? 0 : (size_t)(found - content);
        TRY(array_reserve(&multipart->parts, capacity, multipart->n_parts + 1, sizeof(*multipart->parts)));
        multipart->parts[multipart->n_parts++] = (MultipartPart){ .name = text.name,
                                                                  .filename = text.filename,
                                                                  .content_type = text.content_type,
                                                                  .content = { content, n } };
        *at = (size_t)(found - body.data) + delimiter->n;
        return STATUS_OK;
}

static Status read_parts(ByteSpan body, const char *boundary, Multipart *multipart)
{
        Delimiter delimiter = { .n = strlen(boundary) + 4 };
        uint32_t capacity = 0;
        if (delimiter.n == 4 || delimiter.n > MULTIPART_MAX_BOUNDARY + 4)
                return fail(STATUS_MALFORMED, "a multipart boundary has 1 to %d characters",
                            MULTIPART_MAX_BOUNDARY);
        memcpy(delimiter.text, "\r\n--", 4);
        memcpy(delimiter.text + 4, boundary, delimiter.n - 3);
        size_t at = delimiter.n - 2;
        if (body.n < at || memcmp(body.data, delimiter.text + 2, at) != 0)
                return fail(STATUS_MALFORMED, "the multipart body does not begin with its boundary");
        for (;;) {
                bool last;
                TRY(after_delimiter(body, &at, &last));
                if (last)
                        return STATUS_OK;
                TRY(read_part(body, &delimiter, &at, multipart, &capacity));
        }
}

Status multipart_read(ByteSpan body, const char *boundary, Multipart *out_multipart)
{
        Multipart multipart = { 0 };
        arena_init(&multipart.arena, 0);
        Status status = read_parts(body, boundary, &multipart);
        if (status != STATUS_OK) {
                multipart_deinit(&multipart);
                return status;
        }
        *out_multipart = multipart;
        return STATUS_OK;
}
