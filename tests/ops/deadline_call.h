// SPDX-License-Identifier: Apache-2.0
// A call written as text, with one size N: "f32[N,64], i64[N]<64, -1, True, [1,2], 'mean', dim=0".
#pragma once
#include "core/ops/emitter.h"

// "f32[4,N]": dense noise; a letter behind it: T the last two dimensions exchanged, L
// channels_last; "i64[N]<9": 0..8, floats: from 0 to below 9. `dtype:f64` is a dtype. Tensors hold
// real bytes.
typedef struct DeadlineCall {
        Value args, kwargs; // tuple, dict
} DeadlineCall;

// False: the text is not understood, or memory is short.
bool deadline_call_open(const char *text, int64_t n, DeadlineCall *out_call);
void deadline_call_close(DeadlineCall *call);
