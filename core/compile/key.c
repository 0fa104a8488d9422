// SPDX-License-Identifier: Apache-2.0
// key.c: the identity of a program: SHA-256 of everything it depends on, in a form without
// ambiguity (kinds and lengths first). Equal keys, equal programs.
#include "core/compile/compile.h"

#include <string.h>
#include "core/kernels/platform.h"

enum { KEY_FORMAT = 4 };

static void add_int(Sha256 *sha, int64_t number)
{
        sha256_add(sha, &number, sizeof(number));
}

static void add_tensor(Sha256 *sha, const TensorMeta *meta)
{
        add_int(sha, meta->dtype);
        add_int(sha, meta->rank);
        sha256_add(sha, meta->size, meta->rank * sizeof(int64_t));
        sha256_add(sha, meta->stride, meta->rank * sizeof(int64_t));
}

static void add_text(Sha256 *sha, const char *text, size_t n)
{
        add_int(sha, (int64_t)n);
        sha256_add(sha, text, n);
}

// Nesting of values is capped by whoever built them.
static Status add_value(Sha256 *sha, Value value)
{
        add_int(sha, (int64_t)value.kind);
        switch (value.kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_ABSENT:
                return STATUS_OK;
        case VALUE_BOOL:
                add_int(sha, value.b);
                return STATUS_OK;
        case VALUE_INT:
                add_int(sha, value.i);
                return STATUS_OK;
        case VALUE_FLOAT:
                sha256_add(sha, &value.f, sizeof(value.f));
                return STATUS_OK;
        case VALUE_COMPLEX:
                sha256_add(sha, &value.c, sizeof(value.c));
                return STATUS_OK;
        case VALUE_DTYPE:
                add_int(sha, value.dtype);
                return STATUS_OK;
        case VALUE_MEMORY_FORMAT:
                add_int(sha, value.memory_format);
                return STATUS_OK;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                add_text(sha, value.str->text, value.str->n);
                return STATUS_OK;
        case VALUE_TENSOR:
                add_tensor(sha, &value.tensor->meta);
                return STATUS_OK;
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                add_int(sha, value.seq->n);
                for (uint32_t i = 0; i < value.seq->n; i++)
                        TRY(add_value(sha, value.seq->items[i]));
                return STATUS_OK;
        case VALUE_DICT:
                add_int(sha, value.dict->n);
                for (uint32_t i = 0; i < value.dict->n; i++) {
                        add_text(sha, value.dict->items[i].key->text, value.dict->items[i].key->n);
                        TRY(add_value(sha, value.dict->items[i].value));
                }
                return STATUS_OK;
        default:
                return fail(STATUS_DYNAMIC, "an input of kind %s has no key", value_kind_name(value.kind));
        }
}

static Status add_tune(Sha256 *sha, const TuneRecord *record)
{
        Text text = { 0 };
        add_int(sha, tune_count(record));
        if (tune_count(record) == 0)
                return STATUS_OK;
        tune_print(record, &text);
        Status status = text_status(&text);
        if (status == STATUS_OK)
                add_text(sha, text.data, text.n);
        text_deinit(&text);
        return status;
}

// Only what decides bits, and what is said of them.
static void add_choice(Sha256 *sha, const Choice *choice)
{
        if (choice == NULL)
                return;
        add_int(sha, choice->bucket);
        add_text(sha, choice->samples, strlen(choice->samples));
        add_int(sha, choice->n);
        for (uint32_t i = 0; i < choice->n; i++) {
                add_int(sha, choice->nodes[i].node);
                add_int(sha, choice->nodes[i].precision);
        }
}

static int hex_digit(char c)
{
        return c <= '9' ? c - '0' : c - 'a' + 10;
}

// The run reads numbers that only feed Tensor slots: the key needs their kind only.
static Status add_input(Sha256 *sha, Value value, bool by_value)
{
        if (by_value || (value.kind != VALUE_FLOAT && value.kind != VALUE_INT))
                return add_value(sha, value);
        add_int(sha, -1 - (int64_t)value.kind);
        return STATUS_OK;
}

Status program_key(const Graph *graph, ValueSpan inputs, const CompileOptions *options, uint64_t by_value,
                   ProgramKey *out_key)
{
        Sha256 sha;
        sha256_start(&sha);
        add_int(&sha, KEY_FORMAT);
        sha256_add(&sha, kernel_platform()->digest.hex, sizeof(HashHex) - 1);
        sha256_add(&sha, graph->fingerprint, sizeof(graph->fingerprint));
        // programs hold weights, and what was folded from them
        sha256_add(&sha, graph->content, sizeof(graph->content));
        add_int(&sha, (int64_t)graph->generation);
        add_int(&sha, options->n_threads + ((int64_t)options->keeps_state << 32));
        add_int(&sha, options->no_passes + ((int64_t)options->precision << 8));
        add_int(&sha, options->n_fetch);
        for (uint32_t i = 0; i < options->n_fetch; i++)
                add_int(&sha, options->fetch[i]->index);
        TRY(add_tune(&sha, options->tune));
        add_int(&sha, inputs.n);
        for (uint32_t i = 0; i < inputs.n; i++)
                TRY(add_input(&sha, inputs.items[i], i >= 64 || (by_value >> i & 1) != 0));
        add_choice(&sha, options->choice);
        HashHex hex = sha256_finish(&sha);
        for (size_t i = 0; i < sizeof(out_key->bytes); i++)
                out_key->bytes[i] = (uint8_t)(hex_digit(hex.hex[2 * i]) << 4 | hex_digit(hex.hex[2 * i + 1]));
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
