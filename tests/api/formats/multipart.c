// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>
#include "api/formats/multipart.h"
#include "core/base/text.h"

static Status read_text(const char *body, size_t n, Multipart *out)
{
        return multipart_read((ByteSpan){ (const uint8_t *)body, n }, "XyZ", out);
}

static void expect_part(const Multipart *multipart, const char *name, const char *filename,
                        const char *content)
{
        const MultipartPart *part = multipart_find(multipart, name);
        cr_assert_not_null(part, "%s is missing", name);
        cr_expect(filename == NULL ? part->filename == NULL
                                   : part->filename != NULL && strcmp(filename, part->filename) == 0,
                  "%s: filename %s", name, part->filename);
        cr_expect(part->content.n == strlen(content) &&
                          memcmp(part->content.data, content, part->content.n) == 0,
                  "%s: %.*s", name, (int)part->content.n, (const char *)part->content.data);
}

Test(multipart, reads_what_curl_sends)
{
        static const char body[] = "--XyZ\r\nContent-Disposition: form-data; name=\"graph\"; "
                                   "filename=\"g.json\"\r\nContent-Type: "
                                   "application/octet-stream\r\n\r\n{\"a\": 1}\n\r\n"
                                   "--XyZ\r\ncontent-disposition:form-data;name=request\r\n\r\n{}\r\n"
                                   "--XyZ\r\nContent-Disposition: form-data; name=\"quo\\\"te\"; "
                                   "filename=\"C:\\dir\\f\"\r\n\r\n\r\n"
                                   "--XyZ  \r\nContent-Disposition: form-data; "
                                   "name=\"dashes\"\r\n\r\n\r\n--Xy\r\n--\r\n-XyZ\r\n--XyZ--\r\n";
        Multipart multipart;
        Status status = read_text(body, sizeof(body) - 1, &multipart);
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
        cr_expect_eq(multipart.n_parts, 4);
        expect_part(&multipart, "graph", "g.json", "{\"a\": 1}\n");
        cr_expect_str_eq(multipart.parts[0].content_type, "application/octet-stream");
        expect_part(&multipart, "request", NULL, "{}");
        cr_expect_null(multipart.parts[1].content_type);
        expect_part(&multipart, "quo\"te", "C:\\dir\\f", "");
        expect_part(&multipart, "dashes", NULL, "\r\n--Xy\r\n--\r\n-XyZ");
        cr_expect_null(multipart_find(&multipart, "other"));
        multipart_deinit(&multipart);
}

Test(multipart, reads_a_part_without_content_and_an_empty_form)
{
        static const char empty_part[] = "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n--XyZ--",
                          no_parts[] = "--XyZ--\r\n";
        Multipart multipart;
        cr_assert_eq(read_text(empty_part, sizeof(empty_part) - 1, &multipart), STATUS_OK, "%s",
                     failure_current()->message);
        expect_part(&multipart, "a", NULL, "");
        multipart_deinit(&multipart);
        cr_assert_eq(read_text(no_parts, sizeof(no_parts) - 1, &multipart), STATUS_OK);
        cr_expect_eq(multipart.n_parts, 0);
        multipart_deinit(&multipart);
}

Test(multipart, finds_the_boundary_in_the_content_type)
{
        static const struct {
                const char *type, *boundary; // NULL: refused
        } cases[] = {
                { "multipart/form-data; boundary=XyZ", "XyZ" },
                { "Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b'c\"", "a b'c" },
                { "multipart/form-data; boundary=----WebKitFormBoundaryABC/:=1",
                  "----WebKitFormBoundaryABC/:=1" },
                { "application/json", "" },
                { "multipart/form-data2; boundary=x", "" },
                { "", "" },
                { "multipart/form-data", NULL },
                { "multipart/form-data; boundary=", NULL },
                { "multipart/form-data; boundary=\"\"", NULL },
                { "multipart/form-data; boundary=\"abc", NULL },
                { "multipart/form-data; boundary=\"abc \"", NULL },
                { "multipart/form-data; boundary=a; boundary=b", NULL },
                { "multipart/form-data, boundary=a", NULL },
                { "multipart/form-data; "
                  "boundary=12345678901234567890123456789012345678901234567890123456789012345678901",
                  NULL },
        };
        char boundary[MULTIPART_MAX_BOUNDARY + 1];
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Status status = multipart_boundary(cases[i].type, boundary);
                cr_expect_eq(status, cases[i].boundary == NULL ? STATUS_MALFORMED : STATUS_OK, "%s",
                             cases[i].type);
                if (cases[i].boundary != NULL)
                        cr_expect_str_eq(boundary, cases[i].boundary);
        }
        cr_expect_eq(multipart_boundary(NULL, boundary), STATUS_OK);
        cr_expect_str_eq(boundary, "");
}

#define PART(name) "--XyZ\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

Test(multipart, refuses_malformed_bodies)
{
        static const struct {
                const char *body, *word;
        } cases[] = {
                { "", "begin" },
                { "preamble\r\n" PART("a") "x\r\n--XyZ--", "begin" },
                { "--Xy", "begin" },
                { "--XyZ", "line end" },
                { "--XyZA\r\n", "line end" },
                { "--XyZ\n", "line end" },
                { "--XyZ-", "line end" },
                { "--XyZ\r\n", "headers" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"", "headers" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\n", "headers" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\n\nx\r\n--XyZ--", "control" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\nX: y\r\n\r\nx\r\n--XyZ--",
                  "control" },
                { PART("a") "x", "does not end" },
                { PART("a") "x\n--XyZ--", "does not end" },
                { PART("a") "x\r\n--XyZ", "line end" },
                { PART("a") "x\r\n--XyZ--more", "follow" },
                { PART("a") "x\r\n--XyZ--\r\n\r\n", "follow" },
                { PART("a") "x\r\n" PART("a") "y\r\n--XyZ--", "two parts" },
                { PART("") "x\r\n--XyZ--", "no name" },
                { "--XyZ\r\n\r\nx\r\n--XyZ--", "no name" },
                { "--XyZ\r\nContent-Disposition: form-data\r\n\r\nx\r\n--XyZ--", "no name" },
                { "--XyZ\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nx\r\n--XyZ--", "form-data" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--XyZ--", "form-data" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\r\n\r\nx\r\n--XyZ--",
                  "form-data" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; "
                  "name=\"b\"\r\n\r\nx\r\n--XyZ--",
                  "two Content" },
                { "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: "
                  "base64\r\n\r\nx\r\n--XyZ--",
                  "encoded" },
                { "--XyZ\r\nno colon here\r\n\r\nx\r\n--XyZ--", "colon" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Multipart multipart;
                size_t n = strlen(cases[i].body);
                char *body = malloc(n == 0 ? 1 : n); // without its NUL, so that reading past the end is seen
                memcpy(body, cases[i].body, n);
                Status status = read_text(body, n, &multipart);
                cr_expect_eq(status, STATUS_MALFORMED, "%s", cases[i].body);
                cr_expect(strstr(failure_current()->message, cases[i].word) != NULL, "%s: %s", cases[i].body,
                          failure_current()->message);
                if (status == STATUS_OK)
                        multipart_deinit(&multipart);
                free(body);
        }
}

Test(multipart, caps_headers_and_parts)
{
        Multipart multipart;
        Text body = { 0 };
        text_add(&body, "--XyZ\r\nX: ");
        text_repeat(&body, 'a', MULTIPART_MAX_HEADERS);
        text_add(&body, "\r\n\r\nx\r\n--XyZ--");
        cr_expect_eq(read_text(body.data, body.n, &multipart), STATUS_TOO_LARGE);
        text_deinit(&body);
        for (int i = 0; i <= MULTIPART_MAX_PARTS; i++)
                text_addf(&body, "--XyZ\r\nContent-Disposition: form-data; name=\"p%d\"\r\n\r\nx\r\n", i);
        text_add(&body, "--XyZ--");
        cr_expect_eq(read_text(body.data, body.n, &multipart), STATUS_TOO_LARGE);
        text_deinit(&body);
        text_add(&body, "--XyZ\r\nContent-Disposition: form-data; name=\"a\"");
        for (int i = 0; i < 2000; i++)
                text_add(&body, ";a=");
        text_add(&body, "\r\n\r\nx\r\n--XyZ--");
        cr_expect_eq(read_text(body.data, body.n, &multipart), STATUS_MALFORMED);
        text_deinit(&body);
}

Test(multipart, survives_truncation_at_every_byte)
{
        static const char body[] = PART("a") "xyz\r\n" PART("b") "\r\n--XyZ--\r\n";
        for (size_t n = 0; n < sizeof(body) - 3; n++) {
                Multipart multipart;
                char *cut = malloc(n == 0 ? 1 : n);
                memcpy(cut, body, n);
                cr_expect_eq(read_text(cut, n, &multipart), STATUS_MALFORMED, "cut at %zu", n);
                free(cut);
        }
}
