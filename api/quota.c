// SPDX-License-Identifier: Apache-2.0
#include "api/quota.h"

const char *const quota_names[QUOTA_KINDS] = { "requests", "queue", "graphs", "bytes" };

Status quota_new(Quota **out_quota)
{
        Quota *quota = calloc(1, sizeof(*quota));
        if (quota == NULL)
                return fail_memory();
        refcount_init(&quota->ref);
        *out_quota = quota;
        return STATUS_OK;
}

Quota *quota_ref(Quota *quota)
{
        refcount_get(&quota->ref);
        return quota;
}

Quota *quota_unref(Quota *quota)
{
        if (quota != NULL && refcount_put(&quota->ref))
                free(quota);
        return NULL;
}

Status quota_refuse(Quota *quota, QuotaKind kind, Status status)
{
        atomic_fetch_add(&quota->n_refused[kind], 1);
        return status;
}

Status quota_enter(Quota *quota)
{
        int64_t most = atomic_load(&quota->most[QUOTA_REQUESTS]);
        if (atomic_fetch_add(&quota->n_requests, 1) < most || most == 0)
                return STATUS_OK;
        quota_leave(quota);
        return quota_refuse(quota, QUOTA_REQUESTS,
                            fail(STATUS_TOO_MANY,
                                 "%lld requests of this token are under way, as many as there may be "
                                 "(requests=%lld in the token file); try again",
                                 (long long)most, (long long)most));
}

void quota_leave(Quota *quota)
{
        atomic_fetch_sub(&quota->n_requests, 1);
}
