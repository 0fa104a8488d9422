// SPDX-License-Identifier: Apache-2.0
// golden_file.c: a reader for files that this repository made itself; it trusts them to be well
// formed and says where they are not.
#include "tests/ops/golden_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct GoldenTensor {
        Dtype dtype;
        int rank;
        int64_t size[MAX_RANK];
        const uint8_t *data;
} GoldenTensor;

static Status read_whole(const char *path, const char *suffix, uint8_t **out_bytes, size_t *out_n)
{
        char name[512];
        snprintf(name, sizeof(name), "%s%s", path, suffix);
        FILE *stream = fopen(name, "rb");
        if (stream == NULL)
                return fail(STATUS_IO, "cannot open %s", name);
        fseek(stream, 0, SEEK_END);
        long n = ftell(stream);
        rewind(stream);
        uint8_t *bytes = malloc((size_t)n + 1);
        bool complete = bytes != NULL && fread(bytes, 1, (size_t)n, stream) == (size_t)n;
        fclose(stream);
        if (!complete) {
                free(bytes);
                return fail(STATUS_IO, "cannot read %s", name);
        }
        bytes[n] = 0;
        *out_bytes = bytes;
        *out_n = (size_t)n;
        return STATUS_OK;
}

// ---- safetensors ----
static Status read_ints(JsonReader *json, int64_t *out, int cap, int *out_n)
{
        bool more;
        int n = 0;
        TRY(json_enter_array(json));
        for (;;) {
                TRY(json_next_item(json, &more));
                if (!more)
                        break;
                if (n == cap)
                        return fail(STATUS_MALFORMED, "more than %d numbers", cap);
                TRY(json_read_int(json, &out[n++]));
        }
        *out_n = n;
        return STATUS_OK;
}

static Dtype dtype_of_safetensors(const char *name)
{
        if (strcmp(name, "C64") == 0)
                return DTYPE_C64;
        for (int d = 0; d < DTYPE_COUNT; d++) {
                if (dtype_info[d].safetensors != NULL && strcmp(dtype_info[d].safetensors, name) == 0)
                        return (Dtype)d;
        }
        return DTYPE_NONE;
}

static Status read_entry(GoldenFile *file, JsonReader *json, const uint8_t *data, GoldenTensor *out)
{
        const char *key, *text;
        bool more;
        int64_t offsets[2] = { 0 };
        int n;
        TRY(json_enter_object(json));
        for (;;) {
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                if (strcmp(key, "dtype") == 0) {
                        TRY(json_read_string(json, &text, NULL));
                        out->dtype = dtype_of_safetensors(text);
                } else if (strcmp(key, "shape") == 0) {
                        TRY(read_ints(json, out->size, MAX_RANK, &out->rank));
                } else if (strcmp(key, "data_offsets") == 0) {
                        TRY(read_ints(json, offsets, 2, &n));
                } else {
                        TRY(json_skip(json));
                }
        }
        out->data = data + offsets[0];
        return data + offsets[1] <= file->bytes + file->n_bytes
                       ? STATUS_OK
                       : fail(STATUS_MALFORMED, "a tensor ends behind the file");
}

static Status read_header(GoldenFile *file)
{
        uint64_t n_header;
        memcpy(&n_header, file->bytes, 8);
        const uint8_t *data = file->bytes + 8 + n_header;
        _cleanup_(json_closep) JsonReader *json = NULL;
        TRY(json_open((const char *)file->bytes + 8, n_header, 16, 0, &file->arena, &json));
        TRY(json_enter_object(json));
        for (;;) {
                const char *key;
                bool more;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        return STATUS_OK;
                if (strcmp(key, "__metadata__") == 0) {
                        TRY(json_skip(json));
                        continue;
                }
                GoldenTensor *tensor = arena_alloc(&file->arena, sizeof(*tensor));
                TRY(read_entry(file, json, data, tensor));
                TRY(string_map_set(&file->tensors, arena_text(&file->arena, key, strlen(key)), tensor, NULL));
        }
}

Status golden_open(const char *path, GoldenFile *out_file)
{
        *out_file = (GoldenFile){ 0 };
        arena_init(&out_file->arena, 0);
        TRY(read_whole(path, ".jsonl", (uint8_t **)&out_file->text, &out_file->n_text));
        TRY(read_whole(path, ".safetensors", &out_file->bytes, &out_file->n_bytes));
        out_file->next = out_file->text;
        return read_header(out_file);
}

void golden_close(GoldenFile *file)
{
        string_map_deinit(&file->tensors);
        free(file->text);
        free(file->bytes);
        arena_deinit(&file->arena);
}

// ---- values ----
typedef struct TensorNote {
        const char *key;
        int64_t stride[MAX_RANK], offset;
        int n_stride, alias;
        bool is_complex;         // complex128, kept as pairs of float64
        int64_t tiled[MAX_RANK]; // the shape that repeated values fill
        int n_tiled;
} TensorNote;

static Status make_tensor(GoldenFile *file, const TensorNote *note, Tensor **out_tensor)
{
        const GoldenTensor *entry = string_map_get(&file->tensors, note->key);
        if (entry == NULL || entry->dtype == DTYPE_NONE)
                return fail(STATUS_MALFORMED, "tensor %s is missing or of a strange dtype", note->key);
        TensorMeta dense, meta;
        int64_t span;
        meta_init(&dense, note->is_complex ? DTYPE_C128 : entry->dtype, entry->rank - note->is_complex,
                  entry->size);
        const size_t n_tile = (size_t)meta_numel(&dense) * dtype_info[dense.dtype].bytes;
        if (note->n_tiled >= 0)
                meta_init(&dense, dense.dtype, note->n_tiled, note->tiled);
        meta = dense;
        if (note->n_stride >= 0)
                memcpy(meta.stride, note->stride, sizeof(meta.stride));
        TRY(meta_span(&meta, &span));
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new((size_t)(note->offset + span) * dtype_info[dense.dtype].bytes, true, NULL, &storage));
        TRY(tensor_new_view(storage, &meta, note->offset, out_tensor));
        Storage plain = { .data = (uint8_t *)(uintptr_t)entry->data };
        Tensor source = { .meta = dense, .storage = &plain };
        // The file's bytes lie as they come: an unaligned tensor is copied into place first.
        size_t n_bytes = (size_t)meta_numel(&dense) * dtype_info[dense.dtype].bytes;
        _cleanup_(freep) uint8_t *aligned = malloc(n_bytes + 1);
        for (size_t at = 0; at < n_bytes; at += n_tile)
                memcpy(aligned + at, entry->data, MIN(n_tile, n_bytes - at));
        plain.data = aligned;
        tensor_copy_data(&source, *out_tensor);
        return STATUS_OK;
}

static Status read_value(GoldenFile *file, JsonReader *json, Value *out);

// Behind "$tensor" was read.
static Status read_note(JsonReader *json, TensorNote *note)
{
        const char *key;
        bool more;
        int64_t alias;
        note->n_stride = -1;
        note->n_tiled = -1;
        note->alias = -1;
        note->offset = 0;
        note->is_complex = false;
        TRY(json_read_string(json, &note->key, NULL));
        for (;;) {
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        return STATUS_OK;
                if (strcmp(key, "stride") == 0) {
                        TRY(read_ints(json, note->stride, MAX_RANK, &note->n_stride));
                } else if (strcmp(key, "offset") == 0) {
                        TRY(json_read_int(json, &note->offset));
                } else if (strcmp(key, "complex") == 0) {
                        TRY(json_read_bool(json, &note->is_complex));
                } else if (strcmp(key, "tiled") == 0) {
                        TRY(read_ints(json, note->tiled, MAX_RANK, &note->n_tiled));
                } else if (strcmp(key, "alias") == 0) {
                        TRY(json_read_int(json, &alias));
                        note->alias = (int)alias;
                } else {
                        return fail(STATUS_MALFORMED, "a tensor has no member %s", key);
                }
        }
}

static Status read_tagged_text(const char *key, const char *text, Value *out)
{
        if (strcmp(key, "$float") == 0) {
                *out = value_float(strtod(text, NULL));
        } else if (strcmp(key, "$dtype") == 0) {
                *out = value_dtype(dtype_from_name(text));
                if (out->dtype == DTYPE_NONE)
                        return fail(STATUS_MALFORMED, "unknown dtype %s", text);
        } else if (strcmp(key, "$memory_format") == 0) {
                out->kind = VALUE_MEMORY_FORMAT;
                out->memory_format = strstr(text, "channels_last_3d") != NULL ? MEMORY_FORMAT_CHANNELS_LAST_3D
                                     : strstr(text, "channels_last") != NULL  ? MEMORY_FORMAT_CHANNELS_LAST
                                     : strstr(text, "preserve") != NULL       ? MEMORY_FORMAT_PRESERVE
                                                                              : MEMORY_FORMAT_CONTIGUOUS;
        } else if (strcmp(key, "$device") == 0 || strcmp(key, "$layout") == 0) {
                TRY(value_str_new(text, strlen(text), out));
                out->kind = key[1] == 'd' ? VALUE_DEVICE : VALUE_LAYOUT;
        } else {
                return fail(STATUS_MALFORMED, "unknown tag %s", key);
        }
        return STATUS_OK;
}

static Status read_complex(JsonReader *json, Value *out)
{
        bool more;
        NumberKind kind;
        int64_t whole;
        out->kind = VALUE_COMPLEX;
        TRY(json_enter_array(json));
        TRY(json_next_item(json, &more));
        TRY(json_read_number(json, &kind, &whole, &out->c.re));
        TRY(json_next_item(json, &more));
        TRY(json_read_number(json, &kind, &whole, &out->c.im));
        return json_next_item(json, &more);
}

static Status read_tagged(GoldenFile *file, JsonReader *json, Value *out)
{
        const char *key, *text;
        bool more;
        TRY(json_enter_object(json));
        TRY(json_next_key(json, &key, &more));
        if (strcmp(key, "$tensor") == 0) {
                TensorNote note;
                Tensor *tensor;
                TRY(read_note(json, &note));
                TRY(make_tensor(file, &note, &tensor));
                *out = value_tensor_take(tensor);
                return STATUS_OK;
        }
        if (strcmp(key, "$complex") == 0) {
                TRY(read_complex(json, out));
        } else {
                TRY(json_read_string(json, &text, NULL));
                TRY(read_tagged_text(key, text, out));
        }
        return json_next_key(json, &key, &more);
}

static Status read_list(GoldenFile *file, JsonReader *json, ValueKind kind, Value *out)
{
        enum { CAP = 512 };
        Value items[CAP];
        uint32_t n = 0;
        bool more;
        TRY(json_enter_array(json));
        for (;;) {
                TRY(json_next_item(json, &more));
                if (!more)
                        break;
                if (n == CAP)
                        return fail(STATUS_MALFORMED, "a list is too long");
                TRY(read_value(file, json, &items[n++]));
        }
        Seq *seq;
        TRY(seq_new(n, &seq));
        memcpy(seq->items, items, n * sizeof(Value));
        *out = value_seq_take(kind, seq);
        return STATUS_OK;
}

static Status read_value(GoldenFile *file, JsonReader *json, Value *out)
{
        NumberKind kind;
        const char *text;
        int64_t whole;
        double real;
        *out = value_none();
        switch (json_peek(json)) {
        case JSON_NULL:
                return json_read_null(json);
        case JSON_TRUE:
        case JSON_FALSE:
                out->kind = VALUE_BOOL;
                return json_read_bool(json, &out->b);
        case JSON_NUMBER:
                TRY(json_read_number(json, &kind, &whole, &real));
                *out = kind == NUMBER_INT ? value_int(whole) : value_float(real);
                return STATUS_OK;
        case JSON_STRING:
                TRY(json_read_string(json, &text, NULL));
                return value_str_new(text, strlen(text), out);
        case JSON_ARRAY:
                return read_list(file, json, VALUE_LIST, out);
        default:
                return read_tagged(file, json, out);
        }
}

// ---- what is wanted ----
static Status read_want(GoldenFile *file, JsonReader *json, Want *out);

static Status read_wants(GoldenFile *file, JsonReader *json, Want *out)
{
        enum { CAP = 256 };
        Want items[CAP];
        uint32_t n = 0;
        bool more;
        TRY(json_enter_array(json));
        for (;;) {
                TRY(json_next_item(json, &more));
                if (!more)
                        break;
                if (n == CAP)
                        return fail(STATUS_MALFORMED, "a list is too long");
                TRY(read_want(file, json, &items[n++]));
        }
        *out = (Want){ .kind = WANT_LIST, .n = n, .items = arena_array(&file->arena, n + 1, sizeof(Want)) };
        memcpy(out->items, items, n * sizeof(Want));
        return STATUS_OK;
}

static Status read_want_object(GoldenFile *file, JsonReader *json, Want *out)
{
        const char *key, *text;
        bool more;
        int64_t arg;
        TensorNote note;
        TRY(json_enter_object(json));
        TRY(json_next_key(json, &key, &more));
        if (strcmp(key, "$tensor") == 0) {
                TRY(read_note(json, &note));
                out->kind = WANT_TENSOR;
                out->offset = note.offset;
                out->alias = note.alias;
                return make_tensor(file, &note, &out->tensor);
        }
        if (strcmp(key, "$arg") == 0) {
                TRY(json_read_int(json, &arg));
                out->kind = WANT_ARG;
                out->arg = (int)arg;
        } else if (strcmp(key, "$sha256") == 0) {
                out->kind = WANT_HASH;
                TRY(json_read_string(json, &out->hash, NULL));
        } else if (strcmp(key, "$complex") == 0) {
                TRY(read_complex(json, &out->value));
        } else {
                TRY(json_read_string(json, &text, NULL));
                TRY(read_tagged_text(key, text, &out->value));
        }
        return json_next_key(json, &key, &more);
}

static Status read_want(GoldenFile *file, JsonReader *json, Want *out)
{
        *out = (Want){ .kind = WANT_VALUE, .alias = -1 };
        switch (json_peek(json)) {
        case JSON_ARRAY:
                return read_wants(file, json, out);
        case JSON_OBJECT:
                return read_want_object(file, json, out);
        default:
                return read_value(file, json, &out->value);
        }
}

static Status read_mutated(GoldenFile *file, JsonReader *json, Want *out)
{
        enum { CAP = 16 };
        const char *key;
        bool more;
        *out = (Want){ .kind = WANT_LIST, .items = arena_array(&file->arena, CAP, sizeof(Want)) };
        TRY(json_enter_object(json));
        for (;;) {
                TRY(json_next_key(json, &key, &more));
                if (!more || out->n == CAP)
                        return STATUS_OK;
                TRY(read_want(file, json, &out->items[out->n]));
                out->items[out->n++].name = key;
        }
}

static Status read_kwargs(GoldenFile *file, JsonReader *json, Value *out)
{
        enum { CAP = 32 };
        struct DictItem items[CAP];
        uint32_t n = 0;
        const char *key;
        bool more;
        TRY(json_enter_object(json));
        for (;;) {
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                if (n == CAP)
                        return fail(STATUS_MALFORMED, "too many keyword arguments");
                TRY(str_new(key, strlen(key), &items[n].key));
                TRY(read_value(file, json, &items[n++].value));
        }
        Dict *dict;
        TRY(dict_new(n, &dict));
        memcpy(dict->items, items, n * sizeof(items[0]));
        *out = (Value){ .kind = VALUE_DICT, .dict = dict };
        return STATUS_OK;
}

static Status read_member(GoldenFile *file, JsonReader *json, const char *key, GoldenCase *golden)
{
        NumberKind kind;
        int64_t whole;
        if (strcmp(key, "op") == 0)
                return json_read_string(json, &golden->op, NULL);
        if (strcmp(key, "opinfo") == 0)
                return json_read_string(json, &golden->opinfo, NULL);
        if (strcmp(key, "args") == 0)
                return read_list(file, json, VALUE_TUPLE, &golden->args);
        if (strcmp(key, "kwargs") == 0)
                return read_kwargs(file, json, &golden->kwargs);
        if (strcmp(key, "outs") == 0)
                return read_wants(file, json, &golden->outs);
        if (strcmp(key, "mutated") == 0)
                return read_mutated(file, json, &golden->mutated);
        if (strcmp(key, "rtol") == 0)
                return json_read_number(json, &kind, &whole, &golden->rtol);
        if (strcmp(key, "seed") == 0)
                return json_read_int(json, &golden->seed);
        if (strcmp(key, "atol") == 0)
                return json_read_number(json, &kind, &whole, &golden->atol);
        return json_skip(json);
}

Status golden_next(GoldenFile *file, GoldenCase *out_case, bool *out_more)
{
        *out_more = false;
        if (file->next >= file->text + file->n_text)
                return STATUS_OK;
        const char *end = strchr(file->next, '\n');
        size_t n = end == NULL ? strlen(file->next) : (size_t)(end - file->next);
        const char *line = file->next;
        file->next += n + 1;
        *out_case = (GoldenCase){ .line = ++file->line, .op = "", .opinfo = "" };
        _cleanup_(json_closep) JsonReader *json = NULL;
        TRY(json_open(line, n, 32, 0, &file->arena, &json));
        TRY(json_enter_object(json));
        for (;;) {
                const char *key;
                TRY(json_next_key(json, &key, out_more));
                if (!*out_more)
                        break;
                TRY(read_member(file, json, key, out_case));
        }
        *out_more = true;
        return json_finish(json);
}

static void want_deinit(Want *want)
{
        tensor_unref(want->tensor);
        value_unref(want->value);
        for (uint32_t i = 0; i < want->n; i++)
                want_deinit(&want->items[i]);
}

void golden_case_deinit(GoldenCase *golden)
{
        value_unref(golden->args);
        value_unref(golden->kwargs);
        want_deinit(&golden->outs);
        want_deinit(&golden->mutated);
}
