// SPDX-License-Identifier: Apache-2.0
// python_text.c: Python's view of characters (tables of ranges beyond ASCII, searched by halving)
// and the literal forms of texts and values.
#include "core/graph/python_text.h"

#include <math.h>
#include <string.h>
#include "core/base/number.h"
#include "core/base/utf8.h"

typedef struct Range {
        uint32_t first, last;
} Range;

static const Range printable[] = {
#define PRINTABLE(first, last) { first, last },
#include "core/graph/unicode.def"
#undef PRINTABLE
};
static const Range id_start[] = {
#define ID_START(first, last) { first, last },
#include "core/graph/unicode.def"
#undef ID_START
};
static const Range id_continue[] = {
#define ID_CONTINUE(first, last) { first, last },
#include "core/graph/unicode.def"
#undef ID_CONTINUE
};

static bool in_ranges(uint32_t code, const Range *ranges, size_t n)
{
        size_t low = 0, high = n;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (code > ranges[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < n && code >= ranges[low].first;
}

// The character at `text` (< end) and its bytes. Malformed bytes come out one by one as U+DC80..,
// the way Python's surrogateescape shows them.
static uint32_t next_character(const char *text, const char *end, size_t *out_n)
{
        const unsigned char *at = (const unsigned char *)text;
        size_t n = utf8_length(text, end);
        *out_n = n == 0 ? 1 : n;
        switch (n) {
        case 1:
                return at[0];
        case 2:
                return (uint32_t)(at[0] & 0x1f) << 6 | (at[1] & 0x3f);
        case 3:
                return (uint32_t)(at[0] & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 | (at[2] & 0x3f);
        case 4:
                return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3f) << 12 |
                       (uint32_t)(at[2] & 0x3f) << 6 | (at[3] & 0x3f);
        default:
                return 0xdc00u | at[0];
        }
}

static bool is_ascii_word(uint32_t code)
{
        return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
               code == '_';
}

bool python_is_identifier(const char *text, size_t n)
{
        if (n == 0 || (text[0] >= '0' && text[0] <= '9'))
                return false;
        size_t length;
        for (size_t i = 0; i < n; i += length) {
                uint32_t code = next_character(text + i, text + n, &length);
                bool word = code < 0x80 ? is_ascii_word(code)
                            : i == 0    ? in_ranges(code, id_start, ARRAY_LENGTH(id_start))
                                        : in_ranges(code, id_continue, ARRAY_LENGTH(id_continue));
                if (!word)
                        return false;
        }
        return true;
}

size_t python_length(const char *text, size_t n)
{
        size_t count = 0, length;
        for (size_t i = 0; i < n; i += length, count++)
                next_character(text + i, text + n, &length);
        return count;
}

static void escape(uint32_t code, Text *out)
{
        switch (code) {
        case '\n':
                text_add(out, "\\n");
                break;
        case '\r':
                text_add(out, "\\r");
                break;
        case '\t':
                text_add(out, "\\t");
                break;
        default:
                text_addf(out,
                          code < 0x100     ? "\\x%02x"
                          : code < 0x10000 ? "\\u%04x"
                                           : "\\U%08x",
                          (unsigned)code);
        }
}

void python_repr_text(const char *text, size_t n, Text *out)
{
        char quote = memchr(text, '\'', n) != NULL && memchr(text, '"', n) == NULL ? '"' : '\'';
        text_add_char(out, quote);
        size_t length;
        for (size_t i = 0; i < n; i += length) {
                uint32_t code = next_character(text + i, text + n, &length);
                if (code == (uint32_t)quote || code == '\\') {
                        text_add_char(out, '\\');
                        text_add_char(out, (char)code);
                } else if (code < 0x80 ? code >= 0x20 && code < 0x7f
                                       : in_ranges(code, printable, ARRAY_LENGTH(printable))) {
                        text_add_n(out, text + i, length);
                } else {
                        escape(code, out);
                }
        }
        text_add_char(out, quote);
}

static void add_float(double value, Text *out)
{
        char digits[NUMBER_TEXT_MAX];
        text_add_n(out, digits, number_print_python(value, digits));
}

// A part of a complex number: repr(float) without a trailing ".0".
static void add_part(double value, bool sign, Text *out)
{
        char digits[NUMBER_TEXT_MAX];
        size_t n = number_print_python(value, digits);
        if (n > 2 && memcmp(digits + n - 2, ".0", 2) == 0)
                n -= 2;
        if (sign && digits[0] != '-')
                text_add_char(out, '+');
        text_add_n(out, digits, n);
}

static void add_complex(double re, double im, Text *out)
{
        bool pure = re == 0 && !signbit(re);
        if (!pure) {
                text_add_char(out, '(');
                add_part(re, false, out);
        }
        add_part(im, !pure, out);
        text_add(out, pure ? "j" : "j)");
}

static void add_device(const Str *device, Text *out)
{
        const char *colon = strchr(device->text, ':');
        size_t n = colon == NULL ? device->n : (size_t)(colon - device->text);
        text_add(out, "device(type=");
        python_repr_text(device->text, n, out);
        if (colon != NULL)
                text_addf(out, ", index=%s", colon + 1);
        text_add_char(out, ')');
}

static const char *const memory_formats[] = {
        [MEMORY_FORMAT_CONTIGUOUS] = "torch.contiguous_format",
        [MEMORY_FORMAT_CHANNELS_LAST] = "torch.channels_last",
        [MEMORY_FORMAT_CHANNELS_LAST_3D] = "torch.channels_last_3d",
        [MEMORY_FORMAT_PRESERVE] = "torch.preserve_format",
};

static void add_items(const Seq *seq, const Naming *naming, Text *out)
{
        for (uint32_t i = 0; i < seq->n; i++) {
                if (i > 0)
                        text_add(out, ", ");
                python_repr(seq->items[i], naming, out);
        }
}

static void add_sequence(Value value, const Naming *naming, Text *out)
{
        static const char *const open[] = { [VALUE_LIST] = "[",
                                            [VALUE_TUPLE] = "(",
                                            [VALUE_SIZE] = "torch.Size([",
                                            [VALUE_SLICE] = "slice(" };
        static const char *const close[] = {
                [VALUE_LIST] = "]", [VALUE_TUPLE] = ")", [VALUE_SIZE] = "])", [VALUE_SLICE] = ")"
        };
        text_add(out, open[value.kind]);
        add_items(value.seq, naming, out);
        if (value.kind == VALUE_TUPLE && value.seq->n == 1)
                text_add_char(out, ',');
        text_add(out, close[value.kind]);
}

static void add_dict(const Dict *dict, const Naming *naming, Text *out)
{
        text_add_char(out, '{');
        for (uint32_t i = 0; i < dict->n; i++) {
                if (i > 0)
                        text_add(out, ", ");
                python_repr_text(dict->items[i].key->text, dict->items[i].key->n, out);
                text_add(out, ": ");
                python_repr(dict->items[i].value, naming, out);
        }
        text_add_char(out, '}');
}

// As generated code shows tensors that stand among the arguments.
static void add_tensor(const Tensor *tensor, Text *out)
{
        char shape[256];
        text_addf(out, "torch.Tensor(size=%s, dtype=%s)",
                  shape_text(tensor->meta.rank, tensor->meta.size, shape, sizeof(shape)),
                  dtype_info[tensor->meta.dtype].name);
}

void python_repr(Value value, const Naming *naming, Text *out)
{
        switch (value.kind) {
        case VALUE_NONE:
        case VALUE_ABSENT:
                text_add(out, "None");
                break;
        case VALUE_BOOL:
                text_add(out, value.b ? "True" : "False");
                break;
        case VALUE_INT:
                text_add_int(out, value.i);
                break;
        case VALUE_FLOAT:
                add_float(value.f, out);
                break;
        case VALUE_COMPLEX:
                add_complex(value.c.re, value.c.im, out);
                break;
        case VALUE_STR:
                python_repr_text(value.str->text, value.str->n, out);
                break;
        case VALUE_DTYPE:
                text_add(out, dtype_info[value.dtype].torch_name);
                break;
        case VALUE_DEVICE:
                add_device(value.str, out);
                break;
        case VALUE_LAYOUT:
                text_add(out, value.str->text);
                break;
        case VALUE_MEMORY_FORMAT:
                text_add(out, memory_formats[value.memory_format]);
                break;
        case VALUE_ELLIPSIS:
                text_add(out, "Ellipsis");
                break;
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                add_sequence(value, naming, out);
                break;
        case VALUE_DICT:
                add_dict(value.dict, naming, out);
                break;
        case VALUE_TENSOR:
                add_tensor(value.tensor, out);
                break;
        case VALUE_GRAPH:
                text_add(out, "GraphModule()");
                break;
        case VALUE_NODE:
                text_add(out, naming == NULL ? value.node->name : naming->name(naming->context, value.node));
                break;
        case VALUE_DYNAMIC:
        case VALUE_BATCH:
                text_add(out, "...");
                break;
        }
}

void python_str(Value value, Text *out)
{
        if (value.kind == VALUE_STR || value.kind == VALUE_DEVICE)
                text_add_n(out, value.str->text, value.str->n);
        else
                python_repr(value, NULL, out);
}
