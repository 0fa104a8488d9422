// SPDX-License-Identifier: Apache-2.0
// Inside compile/: the recording emitter, shared by record.c (recordings for programs) and check.c
// (a recording that is thrown away).
#pragma once
#include "core/compile/open_numbers.h"
#include "core/compile/record.h"

typedef struct StateView { // one state entry as the recording sees it
        const Tensor *entry;
        Tensor *seen; // counted
} StateView;

typedef struct Recorder {
        Emitter base;
        RunContext ctx; // of our own: literals outlive the request that compiles, they are not charged to it
        const RunContext *poll;
        Recording *recording;
        StateView *views;
        uint32_t n_views, views_capacity;
        uint32_t max_calls, max_values;
        bool state_unknown;        // the state's bytes are not looked at
        uint64_t open;             // bit i: placeholder i is a number whose value is left open ...
        uint64_t read;             // ... but was looked at all the same
        Tensor *numbers[OPEN_MAX]; // live, counted: by placeholder
} Recorder;

static inline Recorder *recorder_of(Emitter *emitter)
{
        return (Recorder *)emitter;
}

// Caller's storage; the recording is borrowed.
void recorder_init(Recorder *recorder, Recording *recording, const RunContext *poll);
void recorder_deinit(Recorder *recorder);
// A live tensor (counted) on a buffer of its own whose numbers nobody knows. STATUS_TOO_LARGE over
// --max-run-memory.
Status recorder_unknown(Recorder *recorder, const TensorMeta *meta, Tensor **out_tensor);
// A live tensor (counted) with the geometry of `value`, on its buffer's storage.
Status recorder_live_tensor(const Recorded *value, Tensor **out_tensor);

// record_number.c: EmitterVtbl.number and .number_read.
Status record_number(Emitter *emitter, Value number, Tensor **out_tensor);
void record_number_read(Emitter *emitter, Value number);
