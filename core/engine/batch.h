// SPDX-License-Identifier: Apache-2.0
// Runs of one program that are run as one: their inputs lie one after the other along dimension 0,
// the results are taken apart again. Every run keeps its own id, deadline, budget and profile, and
// has the bits that it would have alone:
//   - a proof over the recordings says that no result of one run depends on the others'
//     (core/compile/samples.h);
//   - the first batches of each size are run both ways, and compared bit for bit.
// Batches have 2, 4, 8 ... places; those that are left over repeat the first run. A size is built
// when it was first wanted, and used while it takes less time than its runs one by one.
// Runs that differ in dimension 0 only are joined as well, if each is that many runs of one row:
// it has as many places as it has rows. Any thread.
#pragma once
#include "core/engine/task.h"

enum {
        BATCH_SIZES = 7,
        BATCH_LARGEST = 1 << BATCH_SIZES,
        BATCH_MAX_DELAY_US = 1000000,
        BATCH_PRIORITIES = 9
};

// What PATCH says of a version's batches; zeroed: nothing.
typedef struct BatchPolicy {
        uint32_t max_size;    // 0: --max-batch, which it cannot exceed; 1: no batches
        uint32_t preferred;   // bit k: 2^k runs, and no other sizes; 0: all
        uint32_t priority;    // of its runs that name none, 1 first; 0: the usual one
        int64_t max_delay_us; // a run may wait so long for others to join it
} BatchPolicy;
BatchPolicy batch_policy(const GraphVersion *version);
uint32_t batch_policy_sizes(const BatchPolicy *policy); // bit k: batches of 2^k runs may be used
// So many waiting runs need not wait for others: the smallest size that is preferred, or the
// largest.
uint32_t batch_policy_enough(const BatchPolicy *policy);
// As the text of SETTING_BATCHING; "" for a zeroed one.
void batch_policy_write(const BatchPolicy *policy, Text *out);
void batch_policy_take(GraphVersion *version, const char *line); // that text

// How many runs like this one, which is bound and planned, may be one; 1: it runs alone.
uint32_t batch_most(const RunTask *task);
// They have one program, or programs that differ in the number of rows only.
bool batch_alike(const RunTask *a, const RunTask *b);
// Runs as many of the tasks together as pays, on the calling thread. They are alike; those that
// have run say so (RunTask.ran). All others are left to run alone: whatever fails here, fails for
// nobody. *out_work: a size to be built, for which nobody waits; or NULL.
void batch_run(Engine *engine, RunTask *const *tasks, uint32_t n, Frame *frame, EngineWork **out_work);

// Of the programs of a version's graph, for whoever asks about batching.
typedef struct BatchFacts {
        uint32_t sizes; // bit k: batches of 2^k runs are used
        char why[160];  // why there is none; "": not known, or there is one
} BatchFacts;
void engine_batch_facts(Engine *engine, const GraphVersion *version, BatchFacts *out_facts);
