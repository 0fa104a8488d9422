// SPDX-License-Identifier: Apache-2.0
// Accept and Accept-Encoding: lists of names with weights.
#pragma once
#include "core/base/status.h"

typedef struct AcceptItem {
        const char *name; // not terminated
        size_t n;
        int quality; // thousandths; 1000 without ";q="
} AcceptItem;

// The next item of the list at *at, which is moved behind it. False: there is none.
bool accept_next(const char **at, AcceptItem *out_item);
bool accept_is(const AcceptItem *item, const char *name);

// What a request says about codings of the reply, over all its Accept-Encoding fields.
typedef struct AcceptedCodings {
        int gzip, identity, any; // 1 + thousandths; 0: not named
} AcceptedCodings;
void accept_add_codings(const char *field, AcceptedCodings *codings);
// Whether gzip is accepted, and not less than the unpacked reply.
bool accept_gzip(const AcceptedCodings *codings);
