// SPDX-License-Identifier: Apache-2.0
// A field is "*" or entity tags separated by commas. If-Match compares strongly (a weak tag never
// matches), If-None-Match weakly. A gzip reply's tag is the graph's tag with GZIP_TAG appended
// (gzip.h). Both name the same graph.
#include "api/run/condition.h"
#include "api/formats/gzip.h"
#include <string.h>

HashHex condition_tag(const StoreVersion *version)
{
        return store_tune_id(version);
}

static const char *skip(const char *at, const char *set)
{
        return at + strspn(at, set);
}

typedef enum Match { MATCH_NONE, MATCH_PLAIN, MATCH_GZIP } Match;

static Match tag_match(const char *tag, size_t n, const char *id)
{
        size_t n_id = id == NULL ? 0 : strlen(id);
        if (id == NULL || n < n_id || memcmp(tag, id, n_id) != 0)
                return MATCH_NONE;
        if (n == n_id)
                return MATCH_PLAIN;
        return n - n_id == strlen(GZIP_TAG) && memcmp(tag + n_id, GZIP_TAG, n - n_id) == 0 ? MATCH_GZIP
                                                                                           : MATCH_NONE;
}

static Match field_match(const char *field, const char *id, bool strong, bool with_gzip)
{
        if (strcmp(skip(field, " \t"), "*") == 0)
                return id != NULL ? MATCH_PLAIN : MATCH_NONE;
        for (const char *at = skip(field, " \t,"); *at != '\0'; at = skip(at, " \t,")) {
                bool weak = at[0] == 'W' && at[1] == '/';
                at += weak ? 2 : 0;
                bool quoted = *at == '"';
                const char *start = at + quoted;
                size_t n = strcspn(start, quoted ? "\"" : " \t,");
                Match match = weak && strong ? MATCH_NONE : tag_match(start, n, id);
                if (match == MATCH_PLAIN || (match == MATCH_GZIP && with_gzip))
                        return match;
                at = start + n;
                at += quoted && *at == '"';
        }
        return MATCH_NONE;
}

static Status check_match(const ApiCall *call, const char *id)
{
        if (call->if_match[0] == '\0' || field_match(call->if_match, id, true, true) != MATCH_NONE)
                return STATUS_OK;
        if (id == NULL)
                return fail(STATUS_PRECONDITION, "If-Match does not hold: there is nothing of this name");
        return fail(STATUS_PRECONDITION, "If-Match does not hold: the graph's ETag is \"%s\" now", id);
}

Status condition_check(const ApiCall *call, const char *id)
{
        TRY(check_match(call, id));
        if (call->if_none_match[0] != '\0' && field_match(call->if_none_match, id, false, true) != MATCH_NONE)
                return fail(STATUS_PRECONDITION,
                            "If-None-Match does not hold: the graph is there already, with ETag \"%s\"", id);
        return STATUS_OK;
}

Status condition_check_get(const ApiCall *call, const char *id, const char **out_suffix)
{
        TRY(check_match(call, id));
        Match match = call->if_none_match[0] == '\0'
                              ? MATCH_NONE
                              : field_match(call->if_none_match, id, false, call->takes_gzip);
        *out_suffix = match == MATCH_NONE ? NULL : match == MATCH_GZIP ? GZIP_TAG : "";
        return STATUS_OK;
}

Status condition_check_info(const ApiCall *call, const char *id)
{
        return check_match(call, id);
}
