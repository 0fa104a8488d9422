// SPDX-License-Identifier: Apache-2.0
// Choice: the precision of each node's products, found by a search (engine/choose.c) so that the
// graph's outputs stay within a tolerance. Immutable and refcounted. Programs of every shape of one
// graph share it; it is part of their keys.
//
// Tolerances come in buckets of 1, 2 and 5 times a power of ten: a tolerance is served by the
// greatest bucket that is not above it. Bucket 0 is float32.
#pragma once
#include "core/base/memory.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/tune.h"

enum { TOLERANCE_BUCKETS = 19, CHOICE_SAMPLES = 16 };

typedef enum ChoiceOutcome {
        CHOICE_HOLDS,      // on the samples that verified it
        CHOICE_NO_SAMPLES, // fewer than two came with the version: nothing could be verified
        CHOICE_NO_FORMS,   // no node has a form that is not slower
        CHOICE_NONE_HOLDS, // every choice that was tried missed the tolerance
        CHOICE_NO_TIME,    // limits.search_deadline_ms was over
        CHOICE_OUTCOMES
} ChoiceOutcome;

typedef struct ChosenNode {
        uint32_t node; // index in the authored graph
        Precision precision;
        double error; // that it alone brings
} ChosenNode;

typedef struct Choice {
        RefCount ref;
        int bucket;                       // not 0
        char samples[CHOICE_SAMPLES + 1]; // which ones: the first digits of their digest; "none"
        ChoiceOutcome outcome;            // all but CHOICE_HOLDS: every node is float32
        uint32_t n_choose, n_verify;      // samples
        double error;                     // of the whole graph, on those that verified it
        uint32_t n;
        ChosenNode nodes[]; // that have cheaper forms, by index; those left in float32, too
} Choice;

// 0: below the least bucket. `tolerance` is 0 or more.
int tolerance_bucket(double tolerance);
double bucket_tolerance(int bucket); // 0: 0

// With room for `n` nodes.
Status choice_new(uint32_t n, Choice **out_choice);
Choice *choice_ref(const Choice *choice); // NULL-safe
Choice *choice_unref(Choice *choice);     // NULL-safe, returns NULL
DEFINE_CLEANUP(Choice, choice_unref)
// PRECISION_COUNT: the choice does not name the node.
Precision choice_precision(const Choice *choice, uint32_t node);
// Numbers of a choice have the digits that its lines hold, so that a restart says the same.
double choice_rounded(double error);
// "no node has a cheaper form" ...; NULL: it holds.
const char *choice_reason(const Choice *choice);

// ---- as lines of a tune record ----
//     tolerance 0.01 SAMPLES          outcome, error, samples that chose and that verified
//     tolerance 0.01 SAMPLES 000017   precision of the node, error
Status choice_learn(const Choice *choice, TuneRecord *record);
uint32_t choice_lines(const Choice *choice);
// As strcmp: of their lines. A record that learns choices in this order only appends.
int choice_order(const Choice *a, const Choice *b);
// Takes a record apart: *out_rest has all other lines, the array the choices, which are counted.
// STATUS_VALUE: some line of a choice says nothing sensible.
Status choices_read(const TuneRecord *record, TuneRecord **out_rest, Choice ***out_choices, uint32_t *out_n);
