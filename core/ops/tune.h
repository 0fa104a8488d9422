// SPDX-License-Identifier: Apache-2.0
// TuneRecord: which algorithm each convolution or product of a program takes. Text, one line per
// call, sorted: the call's key, a tabulator, the algorithm's name. It is given through
// CompileOptions.tune:
//   none      the deterministic rule of sizes and weights decides
//   a record  it decides; calls it does not name, and names that do not fit the call, take the rule
//   learning  calls it does not name are timed once, on the shape they have, and written into it
// Same record, same bits: what a record says is part of a program's key. Algorithms whose error
// against float64 is more than four times that of a direct sum are never taken, whatever a record
// says.
//
// A learning record belongs to the one build that holds it. Otherwise it is immutable and may be
// shared by any number of builds.
#pragma once
#include "core/base/hash.h"
#include "core/base/text.h"

enum { TUNE_MAX_KEY = 240, TUNE_MAX_ALGORITHM = 32, TUNE_MAX_LINES = 65536 };

typedef struct TuneRecord TuneRecord;

Status tune_new(bool learning, TuneRecord **out_record);
// Reads the text of tune_print. STATUS_VALUE for anything else: too long, unsorted, doubled or
// malformed lines. The record is not learning.
Status tune_parse(const char *text, size_t n, TuneRecord **out_record);
TuneRecord *tune_free(TuneRecord *record); // NULL-safe, returns NULL
DEFINE_CLEANUP(TuneRecord, tune_free)

void tune_print(const TuneRecord *record, Text *out); // nothing for an empty record
// The stored form: tune_print behind a line that names the platform (core/kernels/platform.h).
// Speeds and the meaning of algorithm names need not hold on another platform: tune_read refuses
// its records (STATUS_VALUE).
void tune_write(const TuneRecord *record, Text *out);
Status tune_read(const char *text, size_t n, TuneRecord **out_record);
uint32_t tune_count(const TuneRecord *record); // lines; NULL: 0
// The SHA-256 of what tune_print prints. Known already for a record that was read.
Status tune_digest(const TuneRecord *record, HashHex *out_digest);
void tune_line(const TuneRecord *record, uint32_t at, const char **out_key, const char **out_algorithm);

// For pack functions. `record` may be NULL: no algorithm, not learning.
const char *tune_algorithm(const TuneRecord *record, const char *key); // NULL: not named
bool tune_is_learning(const TuneRecord *record);
Status tune_learn(TuneRecord *record, const char *key, const char *algorithm);
