// SPDX-License-Identifier: Apache-2.0
#include "api/routes/batching.h"
#include <string.h>

static Status read_whole(JsonReader *reader, const char *name, int64_t least, int64_t most, int64_t *out)
{
        NumberKind kind = NUMBER_NONE;
        double number;
        if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_number(reader, &kind, out, &number));
        if (kind != NUMBER_INT || *out < least || *out > most)
                return fail(STATUS_VALUE, "\"%s\" is a whole number from %lld to %lld", name,
                            (long long)least, (long long)most);
        return STATUS_OK;
}

static Status read_preferred(JsonReader *reader, BatchPolicy *policy)
{
        bool more;
        int64_t size;
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"preferred\" is a list of sizes: [4, 8]");
        TRY(json_enter_array(reader));
        for (;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_whole(reader, "preferred", 2, BATCH_LARGEST, &size));
                if ((size & (size - 1)) != 0)
                        return fail(STATUS_VALUE,
                                    "batches have 2, 4, 8 and so on to %d places; \"preferred\" has %lld",
                                    BATCH_LARGEST, (long long)size);
                policy->preferred |= (uint32_t)size;
        }
}

static Status read_known(JsonReader *reader, const char *key, BatchPolicy *policy)
{
        int64_t number = 0;
        if (strcmp(key, "preferred") == 0)
                return read_preferred(reader, policy);
        if (strcmp(key, "max_delay_us") == 0)
                return read_whole(reader, key, 0, BATCH_MAX_DELAY_US, &policy->max_delay_us);
        if (strcmp(key, "max_size") == 0) {
                TRY(read_whole(reader, key, 1, BATCH_LARGEST, &number));
                policy->max_size = (uint32_t)number;
                return STATUS_OK;
        }
        if (strcmp(key, "priority") != 0)
                return fail(STATUS_UNKNOWN_MEMBER,
                            "unknown member \"%.64s\"; \"batching\" has: max_size, max_delay_us, preferred, "
                            "priority",
                            key);
        TRY(read_whole(reader, key, 0, BATCH_PRIORITIES, &number));
        policy->priority = (uint32_t)number;
        return STATUS_OK;
}

static Status read_member(void *policy, JsonReader *reader, const char *key)
{
        return failure_at_argument(read_known(reader, key, policy), key);
}

static uint32_t largest(uint32_t sizes)
{
        while ((sizes & (sizes - 1)) != 0)
                sizes &= sizes - 1;
        return sizes;
}

Status batching_read(JsonReader *reader, BatchPolicy *out_policy)
{
        BatchPolicy policy = { .max_size = 0 };
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_VALUE,
                            "\"batching\" is an object, {\"max_size\": 8, \"max_delay_us\": 500, "
                            "\"preferred\": [4, 8], \"priority\": 3}, or null");
        TRY(json_each_member(reader, read_member, &policy));
        if (policy.max_size != 0 && largest(policy.preferred) > policy.max_size)
                return fail(STATUS_VALUE, "\"preferred\" has a size above \"max_size\", which is %u",
                            policy.max_size);
        *out_policy = policy;
        return STATUS_OK;
}
