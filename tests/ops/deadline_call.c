// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/deadline_call.h"
#include <stdlib.h>
#include <string.h>

static const struct {
        const char *word;
        Dtype dtype;
} words[] = { { "f16", DTYPE_F16 },   { "bf16", DTYPE_BF16 }, { "f32", DTYPE_F32 }, { "f64", DTYPE_F64 },
              { "i64", DTYPE_I64 },   { "i32", DTYPE_I32 },   { "u8", DTYPE_U8 },   { "i8", DTYPE_I8 },
              { "bool", DTYPE_BOOL }, { "c64", DTYPE_C64 } };

typedef struct Reader {
        const char *at;
        int64_t n;
} Reader;

enum { MOST_ITEMS = 16 };

static bool take(Reader *reader, const char *word)
{
        while (*reader->at == ' ')
                reader->at++;
        if (strncmp(reader->at, word, strlen(word)) != 0)
                return false;
        reader->at += strlen(word);
        return true;
}

static bool read_int(Reader *reader, int64_t *out)
{
        if (take(reader, "N")) {
                *out = reader->n;
                return true;
        }
        char *end;
        *out = strtoll(reader->at, &end, 10);
        bool some = end != reader->at;
        reader->at = end;
        return some;
}

// A pattern of a few thousand elements, then copies of what is there.
static void fill(Tensor *tensor, int64_t below)
{
        enum { PATTERN = 4093 };
        Dtype dtype = tensor->meta.dtype;
        int64_t n = meta_numel(&tensor->meta), bytes = dtype_info[dtype].bytes,
                have = MIN(n, (int64_t)PATTERN);
        char *data = (char *)tensor->storage->data;
        for (int64_t i = 0; i < have; i++) {
                uint32_t noise = (uint32_t)i * 2654435761u;
                noise ^= noise >> 15;
                if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                        memset(data + i * bytes, 0, (size_t)bytes);
                else if (dtype == DTYPE_BOOL)
                        data[i] = (char)(noise >> 3 & 1);
                else if (dtype_is_float(dtype))
                        element_from_f64(dtype, data + i * bytes,
                                         below > 0 ? (double)below * (noise % 20011) / 20011.0
                                                   : (double)(noise % 20011) / 10000.0 - 1.0);
                else
                        element_from_i64(dtype, data + i * bytes,
                                         (int64_t)(noise % (uint32_t)(below > 0 ? below : 100)));
        }
        while (have < n) {
                int64_t more = MIN(have, n - have);
                memcpy(data + have * bytes, data, (size_t)(more * bytes));
                have += more;
        }
}

static bool read_tensor(Reader *reader, Dtype dtype, Value *out)
{
        int64_t size[MAX_RANK], below = 0;
        int rank = 0;
        while (!take(reader, "]")) {
                if (rank == MAX_RANK || !read_int(reader, &size[rank++]))
                        return false;
                take(reader, ",");
        }
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, rank, size);
        if (*reader->at == 'L')
                meta_set_channels_last(&meta);
        if (tensor_new(&meta, NULL, &tensor) != STATUS_OK)
                return false;
        *out = value_tensor_take(tensor);
        bool turned = *reader->at == 'T';
        reader->at += turned || *reader->at == 'L';
        if (take(reader, "<") && !read_int(reader, &below))
                return false;
        fill(tensor, below);
        if (turned) {
                TensorMeta *own = &tensor->meta;
                int64_t rows = own->size[rank - 2], step = own->stride[rank - 2];
                own->size[rank - 2] = own->size[rank - 1];
                own->stride[rank - 2] = own->stride[rank - 1];
                own->size[rank - 1] = rows;
                own->stride[rank - 1] = step;
        }
        return true;
}

static bool read_value(Reader *reader, Value *out);

static bool read_items(Reader *reader, const char *end, ValueKind kind, Value *out)
{
        Value items[MOST_ITEMS];
        uint32_t n = 0;
        bool good = true;
        while (good && !(*end == '\0' ? *reader->at == '\0' : take(reader, end))) {
                items[n] = value_none();
                good = n < MOST_ITEMS - 1 && read_value(reader, &items[n]);
                n++;
                take(reader, ",");
        }
        Seq *seq = NULL;
        good = good && seq_new(n, &seq) == STATUS_OK;
        for (uint32_t i = 0; i < n; i++) {
                if (good)
                        seq->items[i] = items[i];
                else
                        value_clear(&items[i]);
        }
        *out = good ? value_seq_take(kind, seq) : value_none();
        return good;
}

static bool read_number(Reader *reader, Value *out)
{
        int64_t whole;
        const char *start = reader->at;
        if (!read_int(reader, &whole))
                return false;
        *out = value_int(whole);
        if (*reader->at == '.') {
                char *end;
                *out = value_float(strtod(start, &end));
                reader->at = end;
        }
        return true;
}

static bool read_value(Reader *reader, Value *out)
{
        *out = value_none();
        if (take(reader, "None"))
                return true;
        if (take(reader, "["))
                return read_items(reader, "]", VALUE_LIST, out);
        if (take(reader, "'")) {
                size_t n = strcspn(reader->at, "'");
                bool good = value_str_new(reader->at, n, out) == STATUS_OK;
                reader->at += n + 1;
                return good;
        }
        bool is_true = take(reader, "True");
        if (is_true || take(reader, "False")) {
                *out = value_bool(is_true);
                return true;
        }
        bool plain = take(reader, "dtype:");
        for (size_t d = 0; d < ARRAY_LENGTH(words); d++) {
                if (!take(reader, words[d].word))
                        continue;
                if (take(reader, "["))
                        return read_tensor(reader, words[d].dtype, out);
                *out = value_dtype(words[d].dtype);
                return plain;
        }
        return read_number(reader, out);
}

// name=value pairs at the end.
static bool read_kwargs(Reader *reader, Value *out)
{
        struct DictItem items[MOST_ITEMS];
        uint32_t n = 0;
        Dict *dict;
        while (*reader->at != '\0') {
                size_t length = strcspn(reader->at, "=");
                Value name;
                if (n == MOST_ITEMS || reader->at[length] != '=' ||
                    value_str_new(reader->at, length, &name) != STATUS_OK)
                        return false;
                items[n].key = name.str;
                reader->at += length + 1;
                if (!read_value(reader, &items[n++].value))
                        return false;
                take(reader, ",");
                while (*reader->at == ' ')
                        reader->at++;
        }
        if (dict_new(n, &dict) != STATUS_OK)
                return false;
        memcpy(dict->items, items, n * sizeof(*items));
        *out = (Value){ .kind = VALUE_DICT, .dict = dict };
        return true;
}

bool deadline_call_open(const char *text, int64_t n, DeadlineCall *out_call)
{
        Reader reader = { text, n };
        *out_call = (DeadlineCall){ value_none(), value_none() };
        const char *bar = strchr(text, '|'); // keywords stand behind it
        return read_items(&reader, bar == NULL ? "" : "|", VALUE_TUPLE, &out_call->args) &&
               (bar == NULL || read_kwargs(&reader, &out_call->kwargs));
}

void deadline_call_close(DeadlineCall *call)
{
        value_clear(&call->args);
        value_clear(&call->kwargs);
}
