// SPDX-License-Identifier: Apache-2.0
// multipart/form-data: the first line is the Content-Type, the rest the body. Parts must lie within
// the body, in order, each name once.
#include "api/formats/multipart.h"
#include "tests/fuzz/fuzz.h"

static void look_at(const Multipart *form, ByteSpan body)
{
        const uint8_t *at = body.data;
        for (uint32_t i = 0; i < form->n_parts; i++) {
                const MultipartPart *part = &form->parts[i];
                require(part->content.data >= at &&
                                part->content.data + part->content.n <= body.data + body.n,
                        "part %u lies outside", i);
                require(multipart_find(form, part->name) == part, "part \"%s\" is not found", part->name);
                at = part->content.data + part->content.n;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        const uint8_t *line = n == 0 ? NULL : memchr(data, '\n', n);
        if (line == NULL)
                return 0;
        char *type = strndup((const char *)data, (size_t)(line - data)), boundary[MULTIPART_MAX_BOUNDARY + 1];
        require(type != NULL, "no memory");
        Storage *storage = fuzz_storage(line + 1, n - (size_t)(line + 1 - data));
        ByteSpan body = { storage->data, storage->n_bytes };
        Multipart form = { 0 };
        Status status = multipart_boundary(type, boundary);
        if (status == STATUS_OK && boundary[0] != '\0') {
                status = multipart_read(body, boundary, &form);
                if (status == STATUS_OK) {
                        look_at(&form, body);
                        multipart_deinit(&form);
                }
        }
        if (status != STATUS_OK)
                require_told(status);
        storage_unref(storage);
        free(type);
        return 0;
}
