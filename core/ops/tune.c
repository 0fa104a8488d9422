// SPDX-License-Identifier: Apache-2.0
// tune.c: a sorted array of lines; keys are looked up by bisection.
#include "core/ops/tune.h"

#include <string.h>
#include "core/kernels/platform.h"

typedef struct TuneLine {
        char key[TUNE_MAX_KEY + 1], algorithm[TUNE_MAX_ALGORITHM + 1];
} TuneLine;

struct TuneRecord {
        TuneLine *lines; // by key
        uint32_t n, capacity;
        bool learning;
        HashHex digest; // of its text; "": not known
};

Status tune_new(bool learning, TuneRecord **out_record)
{
        TuneRecord *record = calloc(1, sizeof(*record));
        if (record == NULL)
                return fail_memory();
        record->learning = learning;
        *out_record = record;
        return STATUS_OK;
}

TuneRecord *tune_free(TuneRecord *record)
{
        if (record == NULL)
                return NULL;
        free(record->lines);
        free(record);
        return NULL;
}

// The first line whose key is not less.
static uint32_t find(const TuneRecord *record, const char *key)
{
        uint32_t low = 0, high = record->n;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                if (strcmp(record->lines[middle].key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool is_plain(const char *text, size_t n, size_t most)
{
        for (size_t i = 0; i < n; i++) {
                if (text[i] < ' ' || text[i] > '~')
                        return false;
        }
        return n > 0 && n <= most;
}

static Status add_line(TuneRecord *record, uint32_t at, const char *key, size_t n_key, const char *algorithm,
                       size_t n_algorithm)
{
        if (!is_plain(key, n_key, TUNE_MAX_KEY) || !is_plain(algorithm, n_algorithm, TUNE_MAX_ALGORITHM) ||
            record->n == TUNE_MAX_LINES)
                return fail(
                        STATUS_VALUE,
                        "a tune record holds a line that is too long or not plain text, or too many lines");
        TRY(array_reserve(&record->lines, &record->capacity, record->n + 1, sizeof(TuneLine)));
        memmove(record->lines + at + 1, record->lines + at, (record->n - at) * sizeof(TuneLine));
        TuneLine *line = &record->lines[at];
        memset(line, 0, sizeof(*line));
        memcpy(line->key, key, n_key);
        memcpy(line->algorithm, algorithm, n_algorithm);
        record->n++;
        return STATUS_OK;
}

Status tune_parse(const char *text, size_t n, TuneRecord **out_record)
{
        _cleanup_(tune_freep) TuneRecord *record = NULL;
        TRY(tune_new(false, &record));
        for (const char *at = text, *end = text + n; at < end;) {
                const char *stop = memchr(at, '\n', (size_t)(end - at));
                const char *tab = stop == NULL ? NULL : memchr(at, '\t', (size_t)(stop - at));
                if (tab == NULL)
                        return fail(STATUS_VALUE,
                                    "a line of a tune record is not \"key<tabulator>algorithm\"");
                TRY(add_line(record, record->n, at, (size_t)(tab - at), tab + 1, (size_t)(stop - tab - 1)));
                if (record->n > 1 &&
                    strcmp(record->lines[record->n - 2].key, record->lines[record->n - 1].key) >= 0)
                        return fail(STATUS_VALUE, "the lines of a tune record are not sorted");
                at = stop + 1;
        }
        record->digest = sha256_of(text, n);
        *out_record = take_ptr(record);
        return STATUS_OK;
}

void tune_print(const TuneRecord *record, Text *out)
{
        for (uint32_t i = 0; i < record->n; i++)
                text_addf(out, "%s\t%s\n", record->lines[i].key, record->lines[i].algorithm);
}

void tune_write(const TuneRecord *record, Text *out)
{
        text_addf(out, "platform %s\n", kernel_platform()->text);
        tune_print(record, out);
}

Status tune_read(const char *text, size_t n, TuneRecord **out_record)
{
        _cleanup_(text_deinit) Text head = { 0 };
        text_addf(&head, "platform %s\n", kernel_platform()->text);
        TRY(text_status(&head));
        if (n < head.n || memcmp(text, head.data, head.n) != 0)
                return fail(STATUS_VALUE, "a tune record of another platform");
        return tune_parse(text + head.n, n - head.n, out_record);
}

uint32_t tune_count(const TuneRecord *record)
{
        return record == NULL ? 0 : record->n;
}

void tune_line(const TuneRecord *record, uint32_t at, const char **out_key, const char **out_algorithm)
{
        *out_key = record->lines[at].key;
        *out_algorithm = record->lines[at].algorithm;
}

Status tune_digest(const TuneRecord *record, HashHex *out_digest)
{
        _cleanup_(text_deinit) Text text = { 0 };
        if (record->digest.hex[0] != '\0') {
                *out_digest = record->digest;
                return STATUS_OK;
        }
        tune_print(record, &text);
        TRY(text_status(&text));
        *out_digest = sha256_of(text.data, text.n);
        return STATUS_OK;
}

const char *tune_algorithm(const TuneRecord *record, const char *key)
{
        uint32_t at = record == NULL ? 0 : find(record, key);
        return record == NULL || at == record->n || strcmp(record->lines[at].key, key) != 0
                       ? NULL
                       : record->lines[at].algorithm;
}

bool tune_is_learning(const TuneRecord *record)
{
        return record != NULL && record->learning;
}

Status tune_learn(TuneRecord *record, const char *key, const char *algorithm)
{
        uint32_t at = find(record, key);
        if (at < record->n && strcmp(record->lines[at].key, key) == 0)
                return STATUS_OK;
        record->digest.hex[0] = '\0';
        return add_line(record, at, key, strlen(key), algorithm, strlen(algorithm));
}
