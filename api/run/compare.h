// SPDX-License-Identifier: Apache-2.0
// POST /v1/compare: its body, the two sides that it names, the reply.
#pragma once
#include "api/run/outputs.h"
#include "api/run/run.h"
#include "api/run/samples.h"
#include "core/base/json.h"
#include "core/engine/compare.h"

typedef enum CompareInputs { COMPARE_GIVEN, COMPARE_EXAMPLE, COMPARE_SAMPLES } CompareInputs;

// One side, as the body has it. Texts lie in the reader's arena and in the body.
typedef struct CompareWish {
        const char *graph; // NULL: samples
        int64_t version;   // 0: the default one, or the alias
        const char *alias; // NULL: none
        RunMode mode;
        Precision precision;
        double tolerance;      // -1: none
        const char *overrides; // raw JSON; NULL: none
        size_t n_overrides;
        const char *leaf; // raw JSON; NULL: none
        size_t n_leaf;
        const char *steps; // raw JSON; NULL: none. They come before the rules
        size_t n_steps;
        int64_t sample;
} CompareWish;

enum { COMPARE_TIMES_MAX = 100 };

typedef struct CompareBody {
        CompareWish sides[2]; // a, b
        bool has_side[2];
        CompareInputs source;
        const char *inputs; // raw JSON of COMPARE_GIVEN
        size_t n_inputs;
        CloseRule rule;
        bool nodes, no_nodes; // neither: node by node if the results differ
        bool as_text;
        int64_t deadline_ms, seed; // seed -1: none
        int64_t n_times;           // runs of both sides that are timed; 0: none
} CompareBody;

// Checks what can be said without a graph. STATUS_UNKNOWN_MEMBER, STATUS_VALUE, STATUS_MALFORMED.
Status compare_read_body(JsonReader *reader, CompareBody *out_body);

typedef struct CompareRun {
        const ApiContext *context;
        const CompareBody *body;
        RunCall calls[2];
        ApiCall bodies[2]; // what the calls decode: run bodies made of the request's
        CompareSide sides[2];
        Value results[2];
        OutputList outputs[2];
        CompareRow *output_rows;
        uint32_t n_output_rows;
        Comparison nodes;
        bool walked;      // node by node
        int64_t times[2]; // ns, of body->n_times runs
        bool drew;        // random numbers, with the seed of side a
        bool has_samples;
        Samples samples;            // of a's version
        CompareSample *recorded[2]; // outputs and nodes of the sample that is side b
        uint32_t n_recorded;        // outputs
} CompareRun;

void compare_run_init(CompareRun *run, const ApiContext *context, const CompareBody *body);
void compare_run_deinit(CompareRun *run);
// Finds the graphs, runs both and compares. Failures name the side ("a" or "b") as argument.
Status compare_run(CompareRun *run);
Status compare_write_json(const CompareRun *run, Text *out);
Status compare_write_text(const CompareRun *run, Text *out);
