// SPDX-License-Identifier: Apache-2.0
// npy.c: magic, version, header length, a Python dict literal with exactly the keys descr,
// fortran_order and shape, then the elements. The literal is read by a small scanner of just these
// forms; nothing is evaluated. Foreign byte order is swapped per element (per half of complex ones)
// after copying.
#include "api/formats/npy.h"

#include <string.h>
#include "api/formats/borrow.h"

enum { MAGIC_BYTES = 6, MAX_HEADER = 65536, HEADER_ALIGN = 64 };
static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

typedef struct Header {
        Dtype dtype;
        bool swapped, fortran_order;
        int rank;
        int64_t size[MAX_RANK];
        bool has_descr, has_order, has_shape;
} Header;

typedef struct Scanner {
        const char *at, *end;
} Scanner;

bool npy_is(ByteSpan bytes)
{
        return bytes.n >= MAGIC_BYTES && memcmp(bytes.data, magic, MAGIC_BYTES) == 0;
}

static Status fail_header(const char *what)
{
        return fail(STATUS_MALFORMED, "the header of the .npy file is damaged: %s", what);
}

static void skip_space(Scanner *scanner)
{
        while (scanner->at < scanner->end &&
               (*scanner->at == ' ' || *scanner->at == '\n' || *scanner->at == '\t'))
                scanner->at++;
}

static bool skip_char(Scanner *scanner, char c)
{
        skip_space(scanner);
        if (scanner->at == scanner->end || *scanner->at != c)
                return false;
        scanner->at++;
        return true;
}

static bool skip_word(Scanner *scanner, const char *word)
{
        size_t n = strlen(word);
        skip_space(scanner);
        if ((size_t)(scanner->end - scanner->at) < n || memcmp(scanner->at, word, n) != 0)
                return false;
        scanner->at += n;
        return true;
}

// A quoted text without escapes, at most `cap` - 1 bytes.
static bool scan_text(Scanner *scanner, char *out, size_t cap)
{
        skip_space(scanner);
        if (scanner->at == scanner->end || (*scanner->at != '\'' && *scanner->at != '"'))
                return false;
        char quote = *scanner->at++;
        size_t n = 0;
        for (; scanner->at < scanner->end && *scanner->at != quote; scanner->at++) {
                if (*scanner->at == '\\' || n + 1 >= cap)
                        return false;
                out[n++] = *scanner->at;
        }
        if (scanner->at == scanner->end)
                return false;
        scanner->at++;
        out[n] = '\0';
        return true;
}

static bool scan_size(Scanner *scanner, int64_t *out_size)
{
        skip_space(scanner);
        const char *start = scanner->at;
        int64_t size = 0;
        for (; scanner->at < scanner->end && *scanner->at >= '0' && *scanner->at <= '9'; scanner->at++) {
                if (!mul_i64(size, 10, &size) || !add_i64(size, *scanner->at - '0', &size))
                        return false;
        }
        if (scanner->at == start)
                return false;
        if (scanner->at < scanner->end && *scanner->at == 'L')
                scanner->at++; // Python 2 wrote the L of long integers
        *out_size = size;
        return true;
}

static Status scan_shape(Scanner *scanner, Header *header)
{
        if (!skip_char(scanner, '('))
                return fail_header("the shape is no tuple");
        for (;;) {
                if (skip_char(scanner, ')'))
                        return STATUS_OK;
                int64_t size;
                if (!scan_size(scanner, &size))
                        return fail_header("the shape holds something that is no size");
                if (header->rank == MAX_RANK)
                        return fail(STATUS_TOO_LARGE, "the .npy file has more than %d dimensions", MAX_RANK);
                header->size[header->rank++] = size;
                if (skip_char(scanner, ','))
                        continue;
                if (!skip_char(scanner, ')') || header->rank == 1)
                        return fail_header("the shape is no tuple");
                return STATUS_OK;
        }
}

static Status set_dtype(const char *descr, Header *header)
{
        char order = descr[0];
        if (order != '<' && order != '>' && order != '|' && order != '=')
                return fail(STATUS_UNSUPPORTED, "dtype %s of the .npy file is not supported", descr);
        if (descr[1] == 'O')
                return fail(STATUS_UNSUPPORTED, "the .npy file holds Python objects (a pickle), which are "
                                                "code and are never loaded; save a numeric array");
        for (Dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                const char *name = dtype_info[dtype].numpy;
                if (name == NULL || strcmp(name + 1, descr + 1) != 0)
                        continue;
                header->dtype = dtype;
                header->swapped = order == '>' && dtype_info[dtype].bytes > 1;
                return STATUS_OK;
        }
        return fail(STATUS_UNSUPPORTED, "dtype %s of the .npy file is not supported", descr);
}

static Status scan_entry(Scanner *scanner, Header *header)
{
        char key[16], descr[32];
        if (!scan_text(scanner, key, sizeof(key)) || !skip_char(scanner, ':'))
                return fail_header("it is no Python dict");
        if (strcmp(key, "descr") == 0 && !header->has_descr) {
                header->has_descr = true;
                skip_space(scanner);
                if (scanner->at < scanner->end && *scanner->at == '[')
                        return fail(
                                STATUS_UNSUPPORTED,
                                "the .npy file holds a structured array; save its fields as plain arrays");
                if (!scan_text(scanner, descr, sizeof(descr)) || descr[0] == '\0')
                        return fail_header("its descr is no dtype");
                return set_dtype(descr, header);
        }
        if (strcmp(key, "fortran_order") == 0 && !header->has_order) {
                header->has_order = true;
                header->fortran_order = skip_word(scanner, "True");
                return header->fortran_order || skip_word(scanner, "False")
                               ? STATUS_OK
                               : fail_header("its fortran_order is neither True nor False");
        }
        if (strcmp(key, "shape") == 0 && !header->has_shape) {
                header->has_shape = true;
                return scan_shape(scanner, header);
        }
        return fail_header("it has an unknown or repeated key");
}

static Status read_header(const char *text, size_t n, Header *out_header)
{
        Scanner scanner = { text, text + n };
        Header header = { .dtype = DTYPE_NONE };
        if (!skip_char(&scanner, '{'))
                return fail_header("it is no Python dict");
        while (!skip_char(&scanner, '}')) {
                TRY(scan_entry(&scanner, &header));
                if (!skip_char(&scanner, ',')) {
                        if (!skip_char(&scanner, '}'))
                                return fail_header("it is no Python dict");
                        break;
                }
        }
        skip_space(&scanner);
        if (scanner.at != scanner.end || !header.has_descr || !header.has_order || !header.has_shape)
                return fail_header("it does not consist of descr, fortran_order and shape");
        *out_header = header;
        return STATUS_OK;
}

static Status find_header(ByteSpan bytes, size_t *out_start, size_t *out_n)
{
        if (!npy_is(bytes) || bytes.n < MAGIC_BYTES + 4)
                return fail(STATUS_MALFORMED,
                            "the bytes are no .npy file: its magic \"\\x93NUMPY\" is missing");
        const uint8_t *at = bytes.data + MAGIC_BYTES;
        size_t length_bytes = at[0] == 1 ? 2 : 4, start = MAGIC_BYTES + 2 + length_bytes, n = 0;
        if (at[0] < 1 || at[0] > 3 || at[1] != 0)
                return fail(STATUS_UNSUPPORTED, ".npy version %u.%u is not known; 1.0, 2.0 and 3.0 are",
                            at[0], at[1]);
        if (bytes.n < start)
                return fail_header("the file ends within it");
        for (size_t i = 0; i < length_bytes; i++)
                n |= (size_t)at[2 + i] << (8 * i);
        if (n > MAX_HEADER)
                return fail(STATUS_TOO_LARGE, "the header of the .npy file has %zu bytes; the limit is %d", n,
                            MAX_HEADER);
        if (n > bytes.n - start)
                return fail_header("the file ends within it");
        *out_start = start;
        *out_n = n;
        return STATUS_OK;
}

static void swap_bytes(uint8_t *data, size_t n_bytes, size_t unit)
{
        for (size_t at = 0; at + unit <= n_bytes; at += unit) {
                for (size_t i = 0; i < unit / 2; i++) {
                        uint8_t held = data[at + i];
                        data[at + i] = data[at + unit - 1 - i];
                        data[at + unit - 1 - i] = held;
                }
        }
}

static Status fill_tensor(const Header *header, ByteSpan content, Tensor *tensor)
{
        if (content.n == 0)
                return STATUS_OK;
        uint8_t *data = tensor_data(tensor);
        memcpy(data, content.data, content.n);
        const DtypeInfo *info = &dtype_info[header->dtype];
        if (header->swapped)
                swap_bytes(data, content.n, info->kind == DTYPE_KIND_COMPLEX ? info->bytes / 2 : info->bytes);
        for (size_t i = 0; header->dtype == DTYPE_BOOL && i < content.n; i++) {
                if (data[i] > 1)
                        return fail(STATUS_MALFORMED, "the .npy file is bool and holds a byte %u", data[i]);
        }
        return STATUS_OK;
}

static bool can_borrow(const Header *header)
{
        bool in_order = !header->fortran_order || header->rank <= 1;
        return in_order && !header->swapped && header->dtype != DTYPE_BOOL;
}

Status npy_read(ByteSpan bytes, Storage *borrow_bytes, Budget *budget, Tensor **out_tensor)
{
        size_t start = 0, n = 0, n_bytes;
        int64_t numel;
        Header header;
        TRY(find_header(bytes, &start, &n));
        TRY(read_header((const char *)bytes.data + start, n, &header));
        TRY(shape_numel(header.rank, header.size, &numel));
        ByteSpan content = { bytes.data + start + n, bytes.n - start - n };
        if (!mul_size((size_t)numel, dtype_info[header.dtype].bytes, &n_bytes) || n_bytes != content.n) {
                char shape[256];
                return fail(STATUS_MALFORMED, "the .npy file has %zu bytes of data; shape %s of %s needs %zu",
                            content.n, shape_text(header.rank, header.size, shape, sizeof(shape)),
                            dtype_info[header.dtype].name, n_bytes);
        }
        TensorMeta meta;
        meta_init(&meta, header.dtype, header.rank, header.size);
        if (borrow_bytes != NULL && can_borrow(&header))
                return borrow_tensor(borrow_bytes, content, &meta, budget, out_tensor);
        if (header.fortran_order) {
                int64_t stride = 1;
                for (int d = 0; d < header.rank; d++) {
                        meta.stride[d] = stride;
                        stride *= MAX(header.size[d], 1);
                }
        }
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(tensor_new(&meta, budget, &tensor));
        TRY(fill_tensor(&header, content, tensor));
        return tensor_contiguous(tensor, budget, out_tensor);
}

Status npy_write_header(const TensorMeta *meta, Text *out)
{
        const char *descr = dtype_info[meta->dtype].numpy;
        if (descr == NULL)
                return fail(STATUS_NOT_ACCEPTABLE,
                            "NumPy has no dtype %s; ask for JSON or as=safetensors, or convert the output to "
                            "float32 in the graph",
                            dtype_info[meta->dtype].name);
        _cleanup_(text_deinit) Text header = { 0 };
        text_addf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
        for (int d = 0; d < meta->rank; d++)
                text_addf(&header, "%s%lld%s", d == 0 ? "" : ", ", (long long)meta->size[d],
                          meta->rank == 1 ? "," : "");
        text_add(&header, "), }");
        size_t n = MAGIC_BYTES + 4 + header.n + 1;
        text_repeat(&header, ' ', (HEADER_ALIGN - n % HEADER_ALIGN) % HEADER_ALIGN);
        text_add_char(&header, '\n');
        TRY(text_status(&header));
        char prefix[MAGIC_BYTES + 4];
        memcpy(prefix, magic, MAGIC_BYTES);
        prefix[6] = 1;
        prefix[7] = 0;
        prefix[8] = (char)(header.n & 0xff);
        prefix[9] = (char)(header.n >> 8);
        text_add_n(out, prefix, sizeof(prefix));
        text_add_n(out, header.data, header.n);
        return text_status(out);
}
