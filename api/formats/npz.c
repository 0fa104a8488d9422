// SPDX-License-Identifier: Apache-2.0
// npz.c: reading goes through zip.h, one member at a time. An inflated member becomes a storage in
// which its array lies, so that it is not copied again. Writing lays out local headers, arrays, the
// central directory and its end record (PKZIP's APPNOTE, 4.3), in the 64-bit form only where 32
// bits do not do, for members alone: an archive of more than 65,535 outputs or 4 GiB is not made.
#include "api/formats/npz.h"
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "api/formats/npy.h"
#include "api/formats/zip.h"
#include "core/base/limits.h"

enum { MEMBER_NAME_MAX = 1024 };

bool npz_is(ByteSpan bytes)
{
        return bytes.n >= 4 &&
               (memcmp(bytes.data, "PK\x03\x04", 4) == 0 || memcmp(bytes.data, "PK\x05\x06", 4) == 0);
}

// ---- reading ----
static Status adopt_content(ZipContent *content, Storage **out_storage)
{
        TRY(storage_adopt(content->owned, content->span.n, true, NULL, NULL, out_storage));
        content->owned = NULL;
        return STATUS_OK;
}

static Status read_array(Storage *bytes, const Zip *zip, const ZipEntry *entry, Budget *budget,
                         Tensor **out_tensor)
{
        _cleanup_(zip_content_deinit) ZipContent content = { .owned = NULL };
        _cleanup_(storage_unrefp) Storage *inflated = NULL;
        if (entry->deflated && !budget_take(budget, entry->n_bytes))
                return fail(STATUS_TOO_LARGE, "it is %zu bytes inflated, which goes over --max-run-memory",
                            entry->n_bytes);
        TRY(zip_read(zip, entry, SIZE_MAX, &content)); // one that is stored lies in the body
        if (content.owned == NULL)
                return npy_read(content.span, bytes, budget, out_tensor);
        TRY(adopt_content(&content, &inflated));
        return npy_read((ByteSpan){ inflated->data, inflated->n_bytes }, inflated, budget, out_tensor);
}

static Status at_member(Status status, const char *name)
{
        char message[1024];
        if (status == STATUS_OK || status_class(status) != STATUS_CLASS_CALLER)
                return status;
        snprintf(message, sizeof(message), "%.1000s", failure_current()->message);
        return fail(status, "member \"%.100s\" of the .npz body: %s", name, message);
}

static Status read_member(Storage *bytes, const Zip *zip, const ZipEntry *entry, Budget *budget,
                          TakeNamed take, void *context)
{
        char name[MEMBER_NAME_MAX];
        Tensor *tensor = NULL;
        size_t n = strlen(entry->name);
        if (n < 5 || strcmp(entry->name + n - 4, ".npy") != 0)
                return fail(STATUS_MALFORMED,
                            "the body is a zip archive with a member \"%.100s\"; an .npz archive of inputs "
                            "holds .npy arrays only: "
                            "numpy.savez(\"x.npz\", x=x)",
                            entry->name);
        if (n - 4 >= sizeof(name))
                return fail(STATUS_TOO_LARGE, "the .npz body has a member with a name of %zu bytes", n);
        memcpy(name, entry->name, n - 4);
        name[n - 4] = '\0';
        TRY(at_member(read_array(bytes, zip, entry, budget, &tensor), name));
        return take(context, name, tensor);
}

Status npz_read(Storage *bytes, Budget *budget, TakeNamed take, void *context)
{
        _cleanup_(zip_freep) Zip *zip = NULL;
        TRY(zip_open((ByteSpan){ bytes->data, bytes->n_bytes }, &zip));
        if (zip_count(zip) > (uint32_t)limits.max_tensors)
                return fail(STATUS_TOO_LARGE,
                            "the .npz body has %u members; the limit is %lld (max_tensors in GET /v1)",
                            zip_count(zip), (long long)limits.max_tensors);
        for (uint32_t i = 0; i < zip_count(zip); i++)
                TRY(read_member(bytes, zip, zip_entry(zip, i), budget, take, context));
        return STATUS_OK;
}

// ---- writing ----
typedef struct Member {
        const char *name;
        uint32_t crc, n_bytes, offset;
} Member;

static void add_u16(Text *out, uint32_t value)
{
        text_add_char(out, (char)(value & 0xff));
        text_add_char(out, (char)(value >> 8 & 0xff));
}

static void add_u32(Text *out, uint32_t value)
{
        add_u16(out, value);
        add_u16(out, value >> 16);
}

// What a local header and an entry of the directory share: version, flags (names are UTF-8), method
// stored, time (1980-01-01), CRC, sizes, the name's length and no extra field.
static void add_common(const Member *member, Text *out)
{
        add_u16(out, 20);
        add_u16(out, 1u << 11);
        add_u16(out, 0);
        add_u16(out, 0);
        add_u16(out, 1u << 5 | 1);
        add_u32(out, member->crc);
        add_u32(out, member->n_bytes);
        add_u32(out, member->n_bytes);
        add_u16(out, (uint32_t)strlen(member->name) + 4);
        add_u16(out, 0);
}

static void add_name(const Member *member, Text *out)
{
        text_add(out, member->name);
        text_add(out, ".npy");
}

static Status too_large(void)
{
        return fail(STATUS_NOT_ACCEPTABLE,
                    "these arrays are too many or too large for as=npz; use as=safetensors or ask for fewer");
}

// Names come from the graph: an unpacked archive must not write outside its folder.
static bool is_plain_name(const char *name)
{
        for (const char *at = name; *at != '\0'; at++)
                if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '\\')
                        return false;
        return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL &&
               strstr(name, "//") == NULL && strncmp(name, "./", 2) != 0 && strstr(name, "/./") == NULL;
}

// `data_bytes`: of all members so far.
static Status write_member(const NamedTensor *named, size_t *data_bytes, Member *member, ApiReply *reply)
{
        Text *out = &reply->body;
        const Tensor *tensor = named->tensor;
        size_t offset = out->n + *data_bytes,
               n_data = (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes;
        _cleanup_(text_deinit) Text header = { 0 };
        if (!is_plain_name(named->name))
                return fail(STATUS_NOT_ACCEPTABLE,
                            "an array's name is no name for a member of an archive: \"%.100s\"; use "
                            "as=safetensors",
                            named->name);
        TRY(npy_write_header(&tensor->meta, &header));
        if (strlen(named->name) > MEMBER_NAME_MAX || n_data > UINT32_MAX - header.n || offset > UINT32_MAX)
                return too_large();
        *member = (Member){ .name = named->name,
                            .n_bytes = (uint32_t)(n_data + header.n),
                            .offset = (uint32_t)offset };
        uLong crc = crc32(0, (const Bytef *)header.data, (uInt)header.n);
        member->crc = (uint32_t)(n_data == 0 ? crc : crc32_z(crc, tensor_data(tensor), n_data));
        text_add_n(out, "PK\x03\x04", 4);
        add_common(member, out);
        add_name(member, out);
        text_add_n(out, header.data, header.n);
        TRY(text_status(out));
        *data_bytes += n_data;
        return api_reply_piece(reply, tensor->storage, tensor_data(tensor), n_data);
}

static Status write_directory(const Member *members, uint32_t n, ApiReply *reply)
{
        Text *out = &reply->body;
        size_t start = api_reply_bytes(reply);
        for (uint32_t i = 0; i < n; i++) {
                text_add_n(out, "PK\x01\x02", 4);
                add_u16(out, 20);
                add_common(&members[i], out);
                add_u16(out, 0); // comment
                add_u16(out, 0); // disk
                add_u16(out, 0); // attributes
                add_u32(out, 0);
                add_u32(out, members[i].offset);
                add_name(&members[i], out);
        }
        size_t end = api_reply_bytes(reply);
        if (end > UINT32_MAX)
                return too_large();
        text_add_n(out, "PK\x05\x06", 4);
        add_u32(out, 0);
        add_u16(out, n);
        add_u16(out, n);
        add_u32(out, (uint32_t)(end - start));
        add_u32(out, (uint32_t)start);
        add_u16(out, 0);
        return text_status(out);
}

Status npz_write(const NamedTensor *tensors, uint32_t n, ApiReply *reply)
{
        if (n > UINT16_MAX)
                return too_large();
        _cleanup_(freep) Member *members = new_array(n, sizeof(*members));
        if (members == NULL)
                return fail_memory();
        size_t data_bytes = 0;
        for (uint32_t i = 0; i < n; i++)
                TRY(write_member(&tensors[i], &data_bytes, &members[i], reply));
        return write_directory(members, n, reply);
}
