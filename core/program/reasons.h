// SPDX-License-Identifier: Apache-2.0
// Why a call of a recording is not fused with its neighbours, in plain words. Reasons are derived
// from the calls as they are after the passes: the passes record none.
#pragma once
#include "core/base/text.h"
#include "core/program/recording.h"

typedef struct Reasons {
        const Recording *recording; // borrowed; must not change
        // Of buffer b: calls that read it, first[b] up to first[b + 1], in order
        uint32_t *first;
        const RecordedCall **readers;
} Reasons;

// Linear in the arguments of all calls. Deinit in any case.
Status reasons_init(Reasons *reasons, const Recording *recording);
void reasons_deinit(Reasons *reasons);

bool reasons_is_fused(const RecordedCall *call); // a group of pointwise calls
// Whether reason_add has something to say: calls that compute a tensor.
bool reasons_covers(const RecordedCall *call);
// One line without an end, as "relu has another shape".
void reason_add(const Reasons *reasons, const RecordedCall *call, Text *out);
