// SPDX-License-Identifier: Apache-2.0
// What a request of the Open Inference Protocol says of its reply.
#pragma once
#include "core/base/arena.h"

enum { OIP_MAX_OUTPUTS = 1024, OIP_SEQUENCE_MAX = 128 };

typedef struct OipWanted {
        const char *name;
        bool binary;
        bool says_binary; // else OipRun.binary holds
        int64_t classes;  // the so many greatest values of each row as texts; 0: the data
} OipWanted;

typedef struct OipRun {
        Arena arena;
        const char *id;    // NULL: none
        bool binary;       // outputs are bytes unless they say otherwise
        OipWanted *wanted; // the outputs asked for, in this order
        uint32_t n_wanted, capacity;
        size_t blob_at;  // where the bytes of the next binary input begin in the body
        bool has_header; // the body is not JSON alone
        bool has_inputs; // even if the list is empty
        // "i" or "s", which tells numbers from texts, and sequence_id; NULL: none
        const char *sequence;
        bool starts, ends;
} OipRun;

OipRun *oip_run_free(OipRun *oip); // NULL-safe, returns NULL
