// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>
#include "api/formats/safetensors.h"
#include "core/base/limits.h"
#include "core/base/text.h"

// The file with this header and `n_data` bytes of data 0, 1, 2, ... in a storage of its own.
static Storage *make_file(const char *header, size_t n_data)
{
        Storage *file;
        size_t n = strlen(header);
        cr_assert_eq(storage_new(8 + n + n_data, true, NULL, &file), STATUS_OK);
        for (int i = 0; i < 8; i++)
                file->data[i] = (uint8_t)((uint64_t)n >> (8 * i));
        memcpy(file->data + 8, header, n);
        for (size_t i = 0; i < n_data; i++)
                file->data[8 + n + i] = (uint8_t)i;
        return file;
}

static Status read_file(Storage *file, bool borrow, Safetensors *out)
{
        return safetensors_read((ByteSpan){ file->data, file->n_bytes }, borrow ? file : NULL, out);
}

static void expect_failure(const char *what, Status got, Status wanted, const char *word)
{
        cr_expect_eq(got, wanted, "%s: got %s (%s)", what, status_code(got), failure_current()->message);
        if (got == wanted)
                cr_expect(strstr(failure_current()->message, word) != NULL, "%s: \"%s\" does not say \"%s\"",
                          what, failure_current()->message, word);
}

static const char two[] = "{\"__metadata__\":{\"format\":\"pt\",\"a\":\"b\"},\"w\":{\"dtype\":\"F32\","
                          "\"shape\":[2,2],\"data_offsets\":[0,16]},"
                          "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[16,24]},\"e\":{\"dtype\":"
                          "\"BF16\",\"shape\":[0,3],\"data_offsets\":[24,24]"
                          "}}   ";

Test(safetensors, gives_tensors_and_metadata_by_name)
{
        Storage *file = make_file(two, 24);
        Safetensors tensors;
        Status status = read_file(file, false, &tensors);
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
        cr_expect_eq(tensors.n_entries, 3);
        cr_expect_str_eq(tensors.entries[0].name, "w");
        cr_expect_str_eq(safetensors_metadata(&tensors, "format"), "pt");
        cr_expect_null(safetensors_metadata(&tensors, "c"));
        cr_expect_null(safetensors_find(&tensors, "x"));
        const Tensor *w = safetensors_find(&tensors, "w"), *n = safetensors_find(&tensors, "n"),
                     *e = safetensors_find(&tensors, "e");
        cr_expect_eq(w->meta.dtype, DTYPE_F32);
        cr_expect_eq(w->meta.rank, 2);
        cr_expect_eq(((uint8_t *)tensor_data(w))[15], 15);
        cr_expect_eq(n->meta.rank, 0);
        cr_expect_eq(((uint8_t *)tensor_data(n))[0], 16);
        cr_expect_eq(meta_numel(&e->meta), 0);
        cr_expect(w->storage->readonly);
        safetensors_deinit(&tensors);
        storage_unref(file);
}

Test(safetensors, shares_the_files_bytes_when_they_are_aligned_and_copies_them_otherwise)
{
        // Headers padded so that the data starts 0 and 2 bytes after a multiple of 8.
        for (int shift = 0; shift <= 2; shift += 2) {
                char header[512];
                strcpy(header, two);
                while ((8 + strlen(header)) % 8 != (size_t)shift)
                        strcat(header, " ");
                Storage *file = make_file(header, 24);
                Safetensors tensors;
                cr_assert_eq(read_file(file, true, &tensors), STATUS_OK);
                const Tensor *w = safetensors_find(&tensors, "w");
                const uint8_t *data = tensor_data(w);
                cr_expect_eq(data >= file->data && data < file->data + file->n_bytes, shift == 0, "shift %d",
                             shift);
                cr_expect_eq((uintptr_t)data % 4, 0);
                cr_expect_eq(data[5], 5);
                // The tensors keep the bytes alive.
                storage_unref(file);
                cr_expect_eq(data[6], 6);
                safetensors_deinit(&tensors);
        }
}

Test(safetensors, gives_every_tensor_a_storage_of_its_own)
{
        Storage *file = make_file(two, 24);
        Safetensors tensors;
        cr_assert_eq(read_file(file, true, &tensors), STATUS_OK);
        cr_expect_neq(tensors.entries[0].tensor->storage, tensors.entries[1].tensor->storage);
        cr_expect_eq(tensors.entries[0].tensor->storage->n_bytes, 16);
        safetensors_deinit(&tensors);
        storage_unref(file);
}

#define ONE(dtype, shape, begin, end)                                                                        \
        "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}}"
#define PAIR(b0, e0, b1, e1)                                                                                 \
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" b0 "," e0                                \
        "]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" b1 "," e1 "]}}"

static const struct {
        const char *what, *header;
        size_t n_data;
        Status status;
        const char *word;
} malformed[] = {
        { "no object", "[]", 0, STATUS_MALFORMED, "no JSON object" },
        { "leading space", " {}", 0, STATUS_MALFORMED, "no JSON object" },
        { "bad JSON", "{\"w\"", 0, STATUS_MALFORMED, "line 1" },
        { "text after the object", "{} x", 0, STATUS_MALFORMED, "end of the text" },
        { "same name twice",
          "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"w\":{\"dtype\":\"U8\",\"shape\":["
          "1],\"data_offsets\":[1,2]}}",
          2, STATUS_MALFORMED, "\"w\"" },
        { "trailing bytes", ONE("F32", "[2]", "0", "8"), 9, STATUS_MALFORMED, "after its last tensor" },
        { "bytes without tensors", "{}", 3, STATUS_MALFORMED, "after its last tensor" },
        { "truncated data", ONE("F32", "[2]", "0", "8"), 7, STATUS_MALFORMED, "cut off" },
        { "offset beyond 2^62", ONE("U8", "[4611686018427387904]", "0", "4611686018427387904"), 8,
          STATUS_TOO_LARGE, "\"w\"" },
        { "gap before the first", ONE("F32", "[1]", "4", "8"), 8, STATUS_MALFORMED, "gap" },
        { "gap between", PAIR("0", "4", "5", "9"), 9, STATUS_MALFORMED, "gap" },
        { "overlap", PAIR("0", "4", "3", "7"), 7, STATUS_MALFORMED, "overlap" },
        { "same span twice", PAIR("0", "4", "0", "4"), 4, STATUS_MALFORMED, "overlap" },
        { "span longer than the dtype wants", ONE("F32", "[2]", "0", "12"), 12, STATUS_MALFORMED, "need 8" },
        { "span shorter than the dtype wants", ONE("F64", "[2]", "0", "8"), 8, STATUS_MALFORMED, "need 16" },
        { "offsets descend", ONE("U8", "[1]", "1", "0"), 1, STATUS_MALFORMED, "ascending" },
        { "negative offset", ONE("U8", "[1]", "-1", "0"), 1, STATUS_MALFORMED, "ascending" },
        { "three offsets", ONE("U8", "[1]", "0", "1,2"), 1, STATUS_MALFORMED, "more than two" },
        { "one offset", "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, STATUS_MALFORMED,
          "ascending" },
        { "fractional offset", ONE("U8", "[1]", "0", "1.0"), 1, STATUS_MALFORMED, "integer" },
        { "offset as text", ONE("U8", "[1]", "0", "\"1\""), 1, STATUS_MALFORMED, "integer" },
        { "negative size", ONE("U8", "[-1]", "0", "1"), 1, STATUS_MALFORMED, "negative" },
        { "sizes that wrap to a small product", ONE("U8", "[4294967296,4294967296]", "0", "0"), 0,
          STATUS_TOO_LARGE, "\"w\"" },
        { "rank 9", ONE("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1"), 1, STATUS_UNSUPPORTED, "dimensions" },
        { "unknown dtype", ONE("F4", "[1]", "0", "1"), 1, STATUS_UNSUPPORTED, "F4" },
        { "no dtype", "{\"w\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, STATUS_MALFORMED, "no dtype" },
        { "no shape", "{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, STATUS_MALFORMED, "shape" },
        { "no offsets", "{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, STATUS_MALFORMED, "data_offsets" },
        { "unknown member", "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
          STATUS_MALFORMED, "\"x\"" },
        { "tensor that is no object", "{\"w\":3}", 0, STATUS_MALFORMED, "\"w\"" },
        { "metadata that is no text", "{\"__metadata__\":{\"a\":1}}", 0, STATUS_MALFORMED, "string" },
        { "bool byte 2", ONE("BOOL", "[3]", "0", "3"), 3, STATUS_MALFORMED, "byte 2" },
        { "nested too deep", "{\"w\":{\"dtype\":\"U8\",\"shape\":[[[1]]],\"data_offsets\":[0,1]}}", 1,
          STATUS_MALFORMED, "\"w\"" },
};

Test(safetensors, refuses_malformed_files_and_names_the_tensor)
{
        for (size_t i = 0; i < ARRAY_LENGTH(malformed); i++) {
                Storage *file = make_file(malformed[i].header, malformed[i].n_data);
                Safetensors tensors;
                expect_failure(malformed[i].what, read_file(file, true, &tensors), malformed[i].status,
                               malformed[i].word);
                storage_unref(file);
        }
}

Test(safetensors, refuses_header_lengths_that_lie)
{
        static const struct {
                uint64_t n;
                Status status;
        } cases[] = { { 0, STATUS_MALFORMED },
                      { 1, STATUS_MALFORMED },
                      { 3, STATUS_MALFORMED },
                      { 1000, STATUS_MALFORMED },
                      { 10485760, STATUS_MALFORMED },
                      { 10485761, STATUS_TOO_LARGE },
                      { UINT64_C(1) << 63, STATUS_TOO_LARGE },
                      { UINT64_MAX, STATUS_TOO_LARGE } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Storage *file = make_file("{}", 0);
                Safetensors tensors;
                for (int k = 0; k < 8; k++)
                        file->data[k] = (uint8_t)(cases[i].n >> (8 * k));
                Status status = read_file(file, false, &tensors);
                cr_expect_eq(status, cases[i].status, "length %llu gives %s", (unsigned long long)cases[i].n,
                             status_code(status));
                storage_unref(file);
        }
}

Test(safetensors, caps_the_number_of_tensors)
{
        Text header = { 0 };
        limits.max_tensors = 100;
        text_add(&header, "{");
        for (int i = 0; i < 101; i++)
                text_addf(&header, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                          i == 0 ? "" : ",", i);
        text_add(&header, "}");
        Storage *file = make_file(header.data, 0);
        Safetensors tensors;
        expect_failure("101 tensors", read_file(file, false, &tensors), STATUS_TOO_LARGE, "100 tensors");
        storage_unref(file);
        text_deinit(&header);
}

Test(safetensors, survives_truncation_at_every_byte_and_any_changed_byte)
{
        Storage *file = make_file(two, 24);
        Safetensors tensors;
        for (size_t n = 0; n < file->n_bytes; n++) {
                uint8_t *cut = malloc(n == 0 ? 1 : n);
                memcpy(cut, file->data, n);
                cr_expect_neq(safetensors_read((ByteSpan){ cut, n }, NULL, &tensors), STATUS_OK, "cut at %zu",
                              n);
                free(cut);
        }
        for (size_t at = 0; at < file->n_bytes; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        file->data[at] = (uint8_t)(file->data[at] ^ 1 << bit);
                        if (read_file(file, false, &tensors) == STATUS_OK)
                                safetensors_deinit(&tensors);
                        file->data[at] = (uint8_t)(file->data[at] ^ 1 << bit);
                }
        }
        storage_unref(file);
}
