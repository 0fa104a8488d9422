// SPDX-License-Identifier: Apache-2.0
#include "core/ops/choice.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"

#define CHOICE_PREFIX "tolerance "

// ---- buckets ----
static const struct {
        double tolerance;
        const char *name; // as lines have it
} buckets[TOLERANCE_BUCKETS] = {
        { 1e-6, "1e-06" }, { 2e-6, "2e-06" },  { 5e-6, "5e-06" },  { 1e-5, "1e-05" },  { 2e-5, "2e-05" },
        { 5e-5, "5e-05" }, { 1e-4, "0.0001" }, { 2e-4, "0.0002" }, { 5e-4, "0.0005" }, { 1e-3, "0.001" },
        { 2e-3, "0.002" }, { 5e-3, "0.005" },  { 1e-2, "0.01" },   { 2e-2, "0.02" },   { 5e-2, "0.05" },
        { 0.1, "0.1" },    { 0.2, "0.2" },     { 0.5, "0.5" },     { 1, "1" },
};

double bucket_tolerance(int bucket)
{
        return bucket == 0 ? 0 : buckets[bucket - 1].tolerance;
}

int tolerance_bucket(double tolerance)
{
        int bucket = 0;
        while (bucket < TOLERANCE_BUCKETS && bucket_tolerance(bucket + 1) <= tolerance)
                bucket++;
        return bucket;
}

// ---- choices ----
Status choice_new(uint32_t n, Choice **out_choice)
{
        Choice *choice = calloc(1, sizeof(*choice) + n * sizeof(ChosenNode));
        if (choice == NULL)
                return fail_memory();
        refcount_init(&choice->ref);
        *out_choice = choice;
        return STATUS_OK;
}

Choice *choice_ref(const Choice *choice)
{
        Choice *counted = (Choice *)(uintptr_t)choice;
        if (counted != NULL)
                refcount_get(&counted->ref);
        return counted;
}

Choice *choice_unref(Choice *choice)
{
        if (choice != NULL && refcount_put(&choice->ref))
                free(choice);
        return NULL;
}

static const ChosenNode *find(const Choice *choice, uint32_t node)
{
        uint32_t low = 0, high = choice->n;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                if (choice->nodes[middle].node < node)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < choice->n && choice->nodes[low].node == node ? &choice->nodes[low] : NULL;
}

Precision choice_precision(const Choice *choice, uint32_t node)
{
        const ChosenNode *chosen = find(choice, node);
        return chosen == NULL ? PRECISION_COUNT : chosen->precision;
}

const char *choice_reason(const Choice *choice)
{
        static const char *const reasons[CHOICE_OUTCOMES] = {
                [CHOICE_NO_SAMPLES] = "float32: fewer than two samples came with this version",
                [CHOICE_NO_FORMS] = "float32: no node has a cheaper form",
                [CHOICE_NONE_HOLDS] = "float32: no choice holds the tolerance",
                [CHOICE_NO_TIME] = "float32: the search took too long",
        };
        return reasons[choice->outcome];
}

// ---- lines ----
static const char *const outcome_names[CHOICE_OUTCOMES] = { [CHOICE_HOLDS] = "holds",
                                                            [CHOICE_NO_SAMPLES] = "no-samples",
                                                            [CHOICE_NO_FORMS] = "no-forms",
                                                            [CHOICE_NONE_HOLDS] = "none-holds",
                                                            [CHOICE_NO_TIME] = "no-time" };

double choice_rounded(double error)
{
        char text[32];
        snprintf(text, sizeof(text), "%.6e", error);
        return strtod(text, NULL);
}

int choice_order(const Choice *a, const Choice *b)
{
        int order = strcmp(buckets[a->bucket - 1].name, buckets[b->bucket - 1].name);
        return order != 0 ? order : strcmp(a->samples, b->samples);
}

uint32_t choice_lines(const Choice *choice)
{
        return choice->n + 1;
}

Status choice_learn(const Choice *choice, TuneRecord *record)
{
        char key[TUNE_MAX_KEY + 1], line[TUNE_MAX_ALGORITHM + 1];
        int n = snprintf(key, sizeof(key), CHOICE_PREFIX "%s %s", buckets[choice->bucket - 1].name,
                         choice->samples);
        snprintf(line, sizeof(line), "%s %.6e %u %u", outcome_names[choice->outcome], choice->error,
                 choice->n_choose, choice->n_verify);
        TRY(tune_learn(record, key, line));
        for (uint32_t i = 0; i < choice->n; i++) {
                const ChosenNode *node = &choice->nodes[i];
                snprintf(key + n, sizeof(key) - (size_t)n, " %06u", node->node);
                snprintf(line, sizeof(line), "%s %.6e", precision_names[node->precision], node->error);
                TRY(tune_learn(record, key, line));
        }
        return STATUS_OK;
}

static Status malformed(void)
{
        return fail(STATUS_VALUE, "a tune record holds a choice that is not understood");
}

static Status read_head(const char *key, const char *line, Choice *choice)
{
        char outcome[16];
        double tolerance;
        int n = 0, m = 0;
        if (sscanf(key, CHOICE_PREFIX "%lf %16[0-9a-z]%n", &tolerance, choice->samples, &n) != 2 ||
            key[n] != '\0' ||
            sscanf(line, "%15s %lf %u %u%n", outcome, &choice->error, &choice->n_choose, &choice->n_verify,
                   &m) != 4 ||
            line[m] != '\0' || !isfinite(choice->error) || !isfinite(tolerance))
                return malformed();
        choice->bucket = tolerance_bucket(tolerance);
        for (int i = 0; i < CHOICE_OUTCOMES; i++)
                if (strcmp(outcome, outcome_names[i]) == 0) {
                        choice->outcome = (ChoiceOutcome)i;
                        return choice->bucket > 0 ? STATUS_OK : malformed();
                }
        return malformed();
}

static Status read_node(const char *index, const char *line, Choice *choice)
{
        ChosenNode *node = &choice->nodes[choice->n];
        char precision[8];
        int n = 0, m = 0;
        if (sscanf(index, " %6u%n", &node->node, &n) != 1 || index[n] != '\0' ||
            sscanf(line, "%7s %lf%n", precision, &node->error, &m) != 2 || line[m] != '\0' ||
            !isfinite(node->error) || (choice->n > 0 && choice->nodes[choice->n - 1].node >= node->node))
                return malformed();
        node->precision = precision_named(precision);
        if (strcmp(precision_names[node->precision], precision) != 0)
                return malformed();
        choice->n++;
        return STATUS_OK;
}

static bool is_choice(const char *key)
{
        return strncmp(key, CHOICE_PREFIX, sizeof(CHOICE_PREFIX) - 1) == 0;
}

// How many lines from `at` on are of the nodes of the choice whose head is there.
static uint32_t n_nodes_at(const TuneRecord *record, uint32_t at, const char *head)
{
        uint32_t n = 0;
        size_t n_head = strlen(head);
        const char *key, *line;
        for (uint32_t i = at + 1; i < tune_count(record); i++, n++) {
                tune_line(record, i, &key, &line);
                if (strncmp(key, head, n_head) != 0 || key[n_head] != ' ')
                        break;
        }
        return n;
}

static Status read_choice(const TuneRecord *record, uint32_t at, Choice **out_choice)
{
        _cleanup_(choice_unrefp) Choice *choice = NULL;
        const char *head, *key, *line;
        tune_line(record, at, &head, &line);
        uint32_t n = n_nodes_at(record, at, head);
        TRY(choice_new(n, &choice));
        TRY(read_head(head, line, choice));
        for (uint32_t i = 0; i < n; i++) {
                tune_line(record, at + 1 + i, &key, &line);
                TRY(read_node(key + strlen(head), line, choice));
        }
        *out_choice = take_ptr(choice);
        return STATUS_OK;
}

static Status read_lines(const TuneRecord *record, TuneRecord *rest, Choice **choices, uint32_t *inout_n)
{
        for (uint32_t i = 0; i < tune_count(record); i++) {
                const char *key, *line;
                tune_line(record, i, &key, &line);
                if (!is_choice(key)) {
                        TRY(tune_learn(rest, key, line));
                        continue;
                }
                TRY(read_choice(record, i, &choices[*inout_n]));
                i += choices[(*inout_n)++]->n;
        }
        return STATUS_OK;
}

Status choices_read(const TuneRecord *record, TuneRecord **out_rest, Choice ***out_choices, uint32_t *out_n)
{
        _cleanup_(tune_freep) TuneRecord *rest = NULL;
        _cleanup_(freep) Choice **choices = new_array(tune_count(record), sizeof(*choices));
        uint32_t n = 0;
        if (choices == NULL)
                return fail_memory();
        TRY(tune_new(false, &rest));
        Status status = read_lines(record, rest, choices, &n);
        if (status != STATUS_OK) {
                for (uint32_t i = 0; i < n; i++)
                        choice_unref(choices[i]);
                return status;
        }
        *out_rest = take_ptr(rest);
        *out_choices = take_ptr(choices);
        *out_n = n;
        return STATUS_OK;
}
