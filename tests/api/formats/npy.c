// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/npy.h"

static void add_file(Text *out, int version, const char *header, const void *data, size_t n)
{
        size_t header_n = strlen(header);
        text_add_n(out, "\x93NUMPY", 6);
        text_add_char(out, (char)version);
        text_add_char(out, 0);
        for (int i = 0; i < (version == 1 ? 2 : 4); i++)
                text_add_char(out, (char)(header_n >> (8 * i)));
        text_add(out, header);
        if (n > 0)
                text_add_n(out, data, n);
}

static Status write_npy(const Tensor *tensor, Text *out)
{
        Status status = npy_write_header(&tensor->meta, out);
        if (status == STATUS_OK)
                text_add_n(out, tensor_data(tensor),
                           (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes);
        return status;
}

static Status read_npy(int version, const char *header, const void *data, size_t n, Tensor **out)
{
        Text text = { 0 };
        add_file(&text, version, header, data, n);
        Status status = npy_read((ByteSpan){ (uint8_t *)text.data, text.n }, NULL, NULL, out);
        text_deinit(&text);
        return status;
}

Test(npy, reads_all_three_versions)
{
        const float data[] = { 1, 2, 3, 4, 5, 6 };
        for (int version = 1; version <= 3; version++) {
                Tensor *tensor = NULL;
                Status status = read_npy(
                        version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", data,
                        sizeof(data), &tensor);
                cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
                cr_expect_eq(tensor->meta.rank, 2);
                cr_expect_eq(tensor->meta.size[1], 3);
                cr_expect(memcmp(tensor_data(tensor), data, sizeof(data)) == 0);
                tensor_unref(tensor);
        }
}

Test(npy, turns_fortran_order_into_c_order)
{
        const float data[] = { 1, 4, 2, 5, 3, 6 }, wanted[] = { 1, 2, 3, 4, 5, 6 };
        Tensor *tensor = NULL;
        cr_assert_eq(read_npy(1, "{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}\n", data,
                              sizeof(data), &tensor),
                     STATUS_OK);
        cr_expect(meta_is_contiguous(&tensor->meta));
        cr_expect(memcmp(tensor_data(tensor), wanted, sizeof(wanted)) == 0);
        tensor_unref(tensor);
}

Test(npy, swaps_big_endian_elements_and_the_halves_of_complex_ones)
{
        static const struct {
                const char *descr;
                Dtype dtype;
                size_t n;
                const char *big, *little;
        } cases[] = {
                { ">i2", DTYPE_I16, 2, "\x01\x02", "\x02\x01" },
                { ">f4", DTYPE_F32, 4, "\x3f\x80\x00\x00", "\x00\x00\x80\x3f" },
                { ">i8", DTYPE_I64, 8, "\x01\x02\x03\x04\x05\x06\x07\x08",
                  "\x08\x07\x06\x05\x04\x03\x02\x01" },
                { ">c8", DTYPE_C64, 8, "\x01\x02\x03\x04\x05\x06\x07\x08",
                  "\x04\x03\x02\x01\x08\x07\x06\x05" },
                { ">u1", DTYPE_U8, 1, "\x07", "\x07" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                char header[100];
                Tensor *tensor = NULL;
                snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': ()}\n",
                         cases[i].descr);
                cr_assert_eq(read_npy(1, header, cases[i].big, cases[i].n, &tensor), STATUS_OK, "%s",
                             failure_current()->message);
                cr_expect_eq(tensor->meta.dtype, cases[i].dtype);
                cr_expect(memcmp(tensor_data(tensor), cases[i].little, cases[i].n) == 0, "%s",
                          cases[i].descr);
                tensor_unref(tensor);
        }
}

Test(npy, round_trips_every_dtype_numpy_has)
{
        for (Dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                TensorMeta meta;
                const int64_t size[] = { 2, 3 };
                Tensor *tensor, *back = NULL;
                Text text = { 0 };
                meta_init(&meta, dtype, 2, size);
                cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
                memset(tensor_data(tensor), 1, 6u * dtype_info[dtype].bytes);
                Status status = write_npy(tensor, &text);
                if (dtype_info[dtype].numpy == NULL) {
                        cr_expect_eq(status, STATUS_NOT_ACCEPTABLE);
                } else {
                        cr_assert_eq(status, STATUS_OK);
                        cr_expect_eq((text.n - 6u * dtype_info[dtype].bytes) % 64, 0);
                        cr_assert_eq(npy_read((ByteSpan){ (uint8_t *)text.data, text.n }, NULL, NULL, &back),
                                     STATUS_OK, "%s", failure_current()->message);
                        cr_expect_eq(back->meta.dtype, dtype);
                        cr_expect(memcmp(tensor_data(back), tensor_data(tensor),
                                         6u * dtype_info[dtype].bytes) == 0);
                }
                tensor_unref(back);
                tensor_unref(tensor);
                text_deinit(&text);
        }
}

Test(npy, writes_what_numpy_writes)
{
        const int64_t sizes[][3] = { { 0 }, { 4 }, { 2, 2 } };
        static const char *const shapes[] = { "()", "(4,)", "(2, 2)" };
        for (int rank = 0; rank < 3; rank++) {
                TensorMeta meta;
                Tensor *tensor;
                Text text = { 0 };
                char wanted[128];
                meta_init(&meta, DTYPE_F32, rank, sizes[rank]);
                cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
                memset(tensor_data(tensor), 0, tensor->storage->n_bytes);
                cr_assert_eq(write_npy(tensor, &text), STATUS_OK);
                snprintf(wanted, sizeof(wanted), "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                         shapes[rank]);
                cr_expect(memcmp(text.data, "\x93NUMPY\x01\x00\x76\x00", 10) == 0);
                cr_expect(memcmp(text.data + 10, wanted, strlen(wanted)) == 0, "%s", text.data + 10);
                cr_expect_eq(text.data[127], '\n');
                tensor_unref(tensor);
                text_deinit(&text);
        }
}

Test(npy, refuses_malformed_files)
{
#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
        static const struct {
                const char *header;
                size_t n;
                Status status;
                const char *word;
        } cases[] = {
                { HEADER("'<f4'", "False", "(2,)"), 7, STATUS_MALFORMED, "needs 8" },
                { HEADER("'<f4'", "False", "(2,)"), 9, STATUS_MALFORMED, "needs 8" },
                { HEADER("'<f4'", "False", "(2)"), 8, STATUS_MALFORMED, "tuple" },
                { HEADER("'<f4'", "False", "[2]"), 8, STATUS_MALFORMED, "tuple" },
                { HEADER("'<f4'", "False", "(-2,)"), 8, STATUS_MALFORMED, "size" },
                { HEADER("'<f4'", "False", "(2.0,)"), 8, STATUS_MALFORMED, "tuple" },
                { HEADER("'<f4'", "False", "(99999999999999999999,)"), 8, STATUS_MALFORMED, "size" },
                { HEADER("'<f4'", "False", "(4294967296, 4294967296)"), 8, STATUS_TOO_LARGE, "" },
                { HEADER("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, STATUS_TOO_LARGE,
                  "dimensions" },
                { HEADER("'<f4'", "0", "(2,)"), 8, STATUS_MALFORMED, "fortran_order" },
                { HEADER("'|O'", "False", "(1,)"), 8, STATUS_UNSUPPORTED, "pickle" },
                { HEADER("'<U3'", "False", "(1,)"), 12, STATUS_UNSUPPORTED, "<U3" },
                { HEADER("'<M8[ns]'", "False", "(1,)"), 8, STATUS_UNSUPPORTED, "<M8" },
                { HEADER("[('a', '<f4')]", "False", "(1,)"), 4, STATUS_UNSUPPORTED, "structured" },
                { HEADER("'f4'", "False", "(1,)"), 4, STATUS_UNSUPPORTED, "f4" },
                { HEADER("<f4", "False", "(1,)"), 4, STATUS_MALFORMED, "descr" },
                { HEADER("'|b1'", "False", "(3,)"), 3, STATUS_MALFORMED, "byte 2" },
                { "{'descr': '<f4', 'shape': (1,)}\n", 4, STATUS_MALFORMED, "consist" },
                { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4,
                  STATUS_MALFORMED, "repeated" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}\n", 4, STATUS_MALFORMED,
                  "unknown" },
                { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} __import__('os')\n", 4,
                  STATUS_MALFORMED, "consist" },
                { "__import__('os').system('true')\n", 4, STATUS_MALFORMED, "dict" },
                { "", 4, STATUS_MALFORMED, "dict" },
        };
        const char data[] = "\0\1\2\3\4\5\6\7\0\1\2\3\4\5";
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Tensor *tensor = NULL;
                Status status = read_npy(1, cases[i].header, data, cases[i].n, &tensor);
                cr_expect_eq(status, cases[i].status, "%s gives %s: %s", cases[i].header, status_code(status),
                             failure_current()->message);
                if (status != STATUS_OK)
                        cr_expect(strstr(failure_current()->message, cases[i].word) != NULL, "%s: %s",
                                  cases[i].header, failure_current()->message);
                tensor_unref(tensor);
        }
}

Test(npy, refuses_other_versions_and_lying_header_lengths)
{
        Tensor *tensor = NULL;
        cr_expect_eq(read_npy(4, HEADER("'<f4'", "False", "(1,)"), "\0\0\0\0", 4, &tensor),
                     STATUS_UNSUPPORTED);
        cr_expect_eq(npy_read((ByteSpan){ (const uint8_t *)"\x93NUMPY\x01\x00\xff\xff{}", 12 }, NULL, NULL,
                              &tensor),
                     STATUS_MALFORMED);
        cr_expect_eq(npy_read((ByteSpan){ (const uint8_t *)"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14 }, NULL,
                              NULL, &tensor),
                     STATUS_TOO_LARGE);
        cr_expect_eq(npy_read((ByteSpan){ (const uint8_t *)"PK\x03\x04", 4 }, NULL, NULL, &tensor),
                     STATUS_MALFORMED);
}

Test(npy, survives_truncation_at_every_byte_and_any_changed_byte)
{
        Text text = { 0 };
        add_file(&text, 1, HEADER("'<i2'", "True", "(2, 2)"), "abcdefgh", 8);
        for (size_t n = 0; n < text.n; n++) {
                Tensor *tensor = NULL;
                uint8_t *cut = malloc(n == 0 ? 1 : n);
                memcpy(cut, text.data, n);
                cr_expect_neq(npy_read((ByteSpan){ cut, n }, NULL, NULL, &tensor), STATUS_OK, "cut at %zu",
                              n);
                free(cut);
        }
        for (size_t at = 0; at < text.n; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        Tensor *tensor = NULL;
                        text.data[at] = (char)(text.data[at] ^ 1 << bit);
                        if (npy_read((ByteSpan){ (uint8_t *)text.data, text.n }, NULL, NULL, &tensor) ==
                            STATUS_OK)
                                tensor_unref(tensor);
                        text.data[at] = (char)(text.data[at] ^ 1 << bit);
                }
        }
        text_deinit(&text);
}
