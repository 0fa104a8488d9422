// SPDX-License-Identifier: Apache-2.0
// A field is "*" or entity tags separated by commas. If-Match compares strongly (a weak tag never matches), If-None-Match weakly.
#include "api/condition.h"
#include <string.h>

static const char *skip(const char *at, const char *set)
{
        return at + strspn(at, set);
}

static bool field_matches(const char *field, const char *id, bool strong)
{
        if (strcmp(skip(field, " \t"), "*") == 0)
                return id != NULL;
        for (const char *at = skip(field, " \t,"); *at != '\0'; at = skip(at, " \t,")) {
                bool weak = at[0] == 'W' && at[1] == '/';
                at += weak ? 2 : 0;
                bool quoted = *at == '"';
                const char *start = at + quoted;
                size_t n = strcspn(start, quoted ? "\"" : " \t,");
                if (id != NULL && !(weak && strong) && n == strlen(id) && memcmp(start, id, n) == 0)
                        return true;
                at = start + n;
                at += quoted && *at == '"';
        }
        return false;
}

static Status check_match(const ApiCall *call, const char *id)
{
        if (call->if_match[0] == '\0' || field_matches(call->if_match, id, true))
                return STATUS_OK;
        if (id == NULL)
                return fail(STATUS_PRECONDITION, "If-Match does not hold: there is nothing of this name");
        return fail(STATUS_PRECONDITION, "If-Match does not hold: the graph's ETag is \"%s\" now", id);
}

static bool has_it(const ApiCall *call, const char *id)
{
        return call->if_none_match[0] != '\0' && field_matches(call->if_none_match, id, false);
}

Status condition_check(const ApiCall *call, const char *id)
{
        TRY(check_match(call, id));
        if (has_it(call, id))
                return fail(STATUS_PRECONDITION, "If-None-Match does not hold: the graph is there already, with ETag \"%s\"", id);
        return STATUS_OK;
}

Status condition_check_get(const ApiCall *call, const char *id, bool *out_unchanged)
{
        TRY(check_match(call, id));
        *out_unchanged = has_it(call, id);
        return STATUS_OK;
}
