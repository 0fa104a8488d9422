// SPDX-License-Identifier: Apache-2.0
// version "-" trace-id "-" parent-id "-" flags, in lower-case hex digits. Version ff is invalid.
// Version 00 has exactly this length; later versions may continue after a further "-". Ids of zeros
// only are invalid.
#include "server/trace.h"
#include <stdlib.h>
#include <string.h>

enum { VERSION_DIGITS = 2, TRACE_DIGITS = 32, PARENT_DIGITS = 16, FLAG_DIGITS = 2 };
enum { HEADER_DIGITS = VERSION_DIGITS + TRACE_DIGITS + PARENT_DIGITS + FLAG_DIGITS + 3 };
enum { SAMPLED = 1 };

static bool take(const char **at, size_t n, char *out_digits)
{
        if (strspn(*at, "0123456789abcdef") < n)
                return false;
        memcpy(out_digits, *at, n);
        out_digits[n] = '\0';
        *at += n;
        return true;
}

static bool dash(const char **at)
{
        return *(*at)++ == '-';
}

static bool zeros_only(const char *digits)
{
        return strspn(digits, "0") == strlen(digits);
}

bool trace_parse(const char *header, TraceIds *out_trace)
{
        TraceIds trace = *out_trace;
        char version[VERSION_DIGITS + 1], flags[FLAG_DIGITS + 1];
        const char *at = header;
        if (strlen(header) < HEADER_DIGITS)
                return false;
        if (!take(&at, VERSION_DIGITS, version) || !dash(&at) || !take(&at, TRACE_DIGITS, trace.trace_id) ||
            !dash(&at) || !take(&at, PARENT_DIGITS, trace.parent_id) || !dash(&at) ||
            !take(&at, FLAG_DIGITS, flags))
                return false;
        bool ends_well = *at == '\0' || (*at == '-' && strcmp(version, "00") != 0);
        if (strcmp(version, "ff") == 0 || !ends_well || zeros_only(trace.trace_id) ||
            zeros_only(trace.parent_id))
                return false;
        trace.sampled = (strtoul(flags, NULL, 16) & SAMPLED) != 0;
        *out_trace = trace;
        return true;
}
