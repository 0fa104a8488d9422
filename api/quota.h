// SPDX-License-Identifier: Apache-2.0
// What one token may use at most, and how much of it is in use. Shared by its requests and its line
// of the token file, which may change while requests are under way. Any thread.
#pragma once
#include "core/base/memory.h"
#include "core/base/status.h"

typedef enum QuotaKind { QUOTA_REQUESTS, QUOTA_QUEUE, QUOTA_GRAPHS, QUOTA_BYTES, QUOTA_KINDS } QuotaKind;
extern const char *const quota_names[QUOTA_KINDS]; // "requests", "queue", "graphs", "bytes"

typedef struct Quota {
        RefCount ref;
        _Atomic int64_t most[QUOTA_KINDS]; // 0: without a bound
        _Atomic int64_t n_requests;        // under way
        _Atomic int64_t n_queued;          // of them, waiting for a worker; the pool counts
        _Atomic uint64_t n_refused[QUOTA_KINDS];
} Quota;

Status quota_new(Quota **out_quota);
Quota *quota_ref(Quota *quota);
Quota *quota_unref(Quota *quota); // NULL-safe, returns NULL
// A further request; quota_leave ends it. STATUS_TOO_MANY.
Status quota_enter(Quota *quota);
void quota_leave(Quota *quota);
// Counts it and returns `status`, for a failure that names `kind`.
Status quota_refuse(Quota *quota, QuotaKind kind, Status status);
