// SPDX-License-Identifier: Apache-2.0
// Samples: recorded inputs, outputs and values of nodes of a graph, uploaded with a version as
// safetensors with names like "0.inputs.x", "0.outputs.logits", "0.nodes.relu".
#pragma once
#include "api/formats/safetensors.h"
#include "api/run/run.h"
#include "core/engine/compare.h"

enum { SAMPLES_SEED = 0 }; // of the random numbers that recorded values were made with

typedef struct Samples {
        Safetensors file;
        int64_t n; // numbered from 0 on
} Samples;

// STATUS_MALFORMED: a name is none of these, or numbers are left out.
Status samples_read(Storage *bytes, Samples *out_samples);
void samples_deinit(Samples *samples);
// Gives the inputs of sample `at` to a run whose task is open.
Status samples_give_inputs(const Samples *samples, int64_t at, RunCall *run);
typedef enum SampleKind { SAMPLE_INPUTS, SAMPLE_OUTPUTS, SAMPLE_NODES } SampleKind;
// Those of one kind, named without their prefix. The array is the caller's to free.
Status samples_list(const Samples *samples, int64_t at, SampleKind kind, CompareSample **out_list,
                    uint32_t *out_n);

extern const SampleReader sample_reader; // of engine_open

// Runs all samples eagerly and compiled. STATUS_VERIFICATION names the first node whose values
// differ by more than tolerance * max(1, greatest absolute value of the sample).
Status samples_verify(const ApiContext *context, Graph *graph, const Samples *samples, double tolerance);
