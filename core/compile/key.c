// SPDX-License-Identifier: Apache-2.0
// key.c: the identity of a program: SHA-256 of everything it depends on, in a form without
// ambiguity (kinds and lengths first). Equal keys, equal programs.
//
// Every run asks for a key, and most ask for one that this thread made before. So each thread keeps
// a few keys beside the bytes that they were made of.
#include "core/compile/compile.h"

#include <string.h>
#include "core/kernels/platform.h"

enum { KEY_FORMAT = 5, KEPT_BYTES = 640, KEPT_KEYS = 16 };

typedef struct KeyBytes {
        uint8_t bytes[KEPT_BYTES];
        size_t n;
        bool is_long; // more than these: they went into `sha`
        Sha256 sha;
} KeyBytes;

typedef struct KeptKey {
        uint8_t bytes[KEPT_BYTES];
        size_t n; // 0: free
        ProgramKey key;
} KeptKey;

static _Thread_local KeptKey kept[KEPT_KEYS];

static void add(KeyBytes *key, const void *bytes, size_t n)
{
        if (n == 0)
                return;
        if (n > sizeof(key->bytes) - key->n) {
                if (!key->is_long)
                        sha256_start(&key->sha);
                sha256_add(&key->sha, key->bytes, key->n);
                key->is_long = true;
                key->n = 0;
        }
        if (n > sizeof(key->bytes)) {
                sha256_add(&key->sha, bytes, n);
                return;
        }
        memcpy(key->bytes + key->n, bytes, n);
        key->n += n;
}

static int hex_digit(char c)
{
        return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void finish_sha(KeyBytes *bytes, ProgramKey *out_key)
{
        if (!bytes->is_long)
                sha256_start(&bytes->sha);
        sha256_add(&bytes->sha, bytes->bytes, bytes->n);
        HashHex hex = sha256_finish(&bytes->sha);
        for (size_t i = 0; i < sizeof(out_key->bytes); i++)
                out_key->bytes[i] = (uint8_t)(hex_digit(hex.hex[2 * i]) << 4 | hex_digit(hex.hex[2 * i + 1]));
}

// Where the key of these bytes would be kept.
static KeptKey *place_of(const KeyBytes *bytes)
{
        uint64_t hash = bytes->n, word = 0;
        for (size_t at = 0; at < bytes->n; at += sizeof(word)) {
                memcpy(&word, bytes->bytes + at, MIN(sizeof(word), bytes->n - at));
                hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
                hash ^= hash >> 32;
        }
        return &kept[hash % KEPT_KEYS];
}

static void finish(KeyBytes *bytes, ProgramKey *out_key)
{
        if (bytes->is_long) {
                finish_sha(bytes, out_key);
                return;
        }
        KeptKey *place = place_of(bytes);
        if (place->n != bytes->n || memcmp(place->bytes, bytes->bytes, bytes->n) != 0) {
                finish_sha(bytes, &place->key);
                memcpy(place->bytes, bytes->bytes, bytes->n);
                place->n = bytes->n;
        }
        *out_key = place->key;
}

// ---- what a program depends on ----
static void add_int(KeyBytes *key, int64_t number)
{
        add(key, &number, sizeof(number));
}

static void add_tensor(KeyBytes *key, const TensorMeta *meta)
{
        add_int(key, meta->dtype);
        add_int(key, meta->rank);
        add(key, meta->size, meta->rank * sizeof(int64_t));
        add(key, meta->stride, meta->rank * sizeof(int64_t));
}

static void add_text(KeyBytes *key, const char *text, size_t n)
{
        add_int(key, (int64_t)n);
        add(key, text, n);
}

// Nesting of values is capped by whoever built them.
static Status add_value(KeyBytes *key, Value value)
{
        add_int(key, (int64_t)value.kind);
        switch (value.kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_ABSENT:
                return STATUS_OK;
        case VALUE_BOOL:
                add_int(key, value.b);
                return STATUS_OK;
        case VALUE_INT:
                add_int(key, value.i);
                return STATUS_OK;
        case VALUE_FLOAT:
                add(key, &value.f, sizeof(value.f));
                return STATUS_OK;
        case VALUE_COMPLEX:
                add(key, &value.c, sizeof(value.c));
                return STATUS_OK;
        case VALUE_DTYPE:
                add_int(key, value.dtype);
                return STATUS_OK;
        case VALUE_MEMORY_FORMAT:
                add_int(key, value.memory_format);
                return STATUS_OK;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                add_text(key, value.str->text, value.str->n);
                return STATUS_OK;
        case VALUE_TENSOR:
                add_tensor(key, &value.tensor->meta);
                return STATUS_OK;
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                add_int(key, value.seq->n);
                for (uint32_t i = 0; i < value.seq->n; i++)
                        TRY(add_value(key, value.seq->items[i]));
                return STATUS_OK;
        case VALUE_DICT:
                add_int(key, value.dict->n);
                for (uint32_t i = 0; i < value.dict->n; i++) {
                        add_text(key, value.dict->items[i].key->text, value.dict->items[i].key->n);
                        TRY(add_value(key, value.dict->items[i].value));
                }
                return STATUS_OK;
        default:
                return fail(STATUS_DYNAMIC, "an input of kind %s has no key", value_kind_name(value.kind));
        }
}

static Status add_tune(KeyBytes *key, const TuneRecord *record)
{
        add_int(key, tune_count(record));
        if (tune_count(record) == 0)
                return STATUS_OK;
        HashHex digest;
        TRY(tune_digest(record, &digest));
        add(key, digest.hex, sizeof(digest.hex) - 1);
        return STATUS_OK;
}

// Only what decides bits, and what is said of them.
static void add_choice(KeyBytes *key, const Choice *choice)
{
        if (choice == NULL)
                return;
        add_int(key, choice->bucket);
        add_text(key, choice->samples, strlen(choice->samples));
        add_int(key, choice->n);
        for (uint32_t i = 0; i < choice->n; i++) {
                add_int(key, choice->nodes[i].node);
                add_int(key, choice->nodes[i].precision);
        }
}

// The run reads numbers that only feed Tensor slots: the key needs their kind only.
static Status add_input(KeyBytes *key, Value value, bool by_value)
{
        if (by_value || (value.kind != VALUE_FLOAT && value.kind != VALUE_INT))
                return add_value(key, value);
        add_int(key, -1 - (int64_t)value.kind);
        return STATUS_OK;
}

Status program_key(const Graph *graph, ValueSpan inputs, const CompileOptions *options, uint64_t by_value,
                   ProgramKey *out_key)
{
        KeyBytes key;
        key.n = 0;
        key.is_long = false;
        add_int(&key, KEY_FORMAT);
        add(&key, kernel_platform()->digest.hex, sizeof(HashHex) - 1);
        add(&key, graph->fingerprint, sizeof(graph->fingerprint));
        // programs hold weights, and what was folded from them
        add(&key, graph->content, sizeof(graph->content));
        add_int(&key, (int64_t)graph->generation);
        add_int(&key, options->n_threads + ((int64_t)options->keeps_state << 32));
        add_int(&key, options->no_passes + ((int64_t)options->precision << 8));
        add_int(&key, options->n_fetch);
        for (uint32_t i = 0; i < options->n_fetch; i++)
                add_int(&key, options->fetch[i]->index);
        TRY(add_tune(&key, options->tune));
        add_int(&key, inputs.n);
        for (uint32_t i = 0; i < inputs.n; i++)
                TRY(add_input(&key, inputs.items[i], i >= 64 || (by_value >> i & 1) != 0));
        add_choice(&key, options->choice);
        finish(&key, out_key);
        return STATUS_OK;
}

ProgramId program_key_id(const ProgramKey *key)
{
        static const char digits[] = "0123456789abcdef";
        ProgramId id;
        for (size_t i = 0; i < sizeof(key->bytes); i++) {
                id.hex[2 * i] = digits[key->bytes[i] >> 4];
                id.hex[2 * i + 1] = digits[key->bytes[i] & 15];
        }
        id.hex[64] = '\0';
        return id;
}
