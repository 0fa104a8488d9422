// SPDX-License-Identifier: Apache-2.0
#include "api/formats/accept.h"
#include <string.h>
#include <strings.h>

static const char *skip_blanks(const char *at)
{
        return at + strspn(at, " \t");
}

// "0.25" up to `end` in thousandths; 1 gives 1000, anything that is not a number gives 0.
static int thousandths(const char *at, const char *end)
{
        int value = at < end && *at == '1' ? 1000 : 0;
        if (value == 0 && end - at > 2 && at[1] == '.') {
                at += 2;
                for (int place = 100; place > 0 && at < end && *at >= '0' && *at <= '9'; place /= 10)
                        value += (*at++ - '0') * place;
        }
        return value;
}

// The value of ";q=" among the parameters in [at, end) in thousandths; 1000 when there is none.
static int quality(const char *at, const char *end)
{
        for (; at < end; at++) {
                const char *name = *at == ';' ? skip_blanks(at + 1) : end;
                if (end - name >= 2 && (name[0] == 'q' || name[0] == 'Q') && name[1] == '=')
                        return thousandths(name + 2, end);
        }
        return 1000;
}

bool accept_next(const char **at, AcceptItem *out_item)
{
        const char *start = *at + strspn(*at, " \t,"), *end = start + strcspn(start, ",");
        if (*start == '\0')
                return false;
        size_t n = strcspn(start, " \t;,");
        *out_item = (AcceptItem){ .name = start, .n = n, .quality = quality(start + n, end) };
        *at = end;
        return true;
}

bool accept_is(const AcceptItem *item, const char *name)
{
        return strlen(name) == item->n && strncasecmp(item->name, name, item->n) == 0;
}

void accept_add_codings(const char *field, AcceptedCodings *codings)
{
        AcceptItem item;
        while (accept_next(&field, &item)) {
                if (accept_is(&item, "gzip") || accept_is(&item, "x-gzip"))
                        codings->gzip = 1 + item.quality;
                else if (accept_is(&item, "identity"))
                        codings->identity = 1 + item.quality;
                else if (accept_is(&item, "*"))
                        codings->any = 1 + item.quality;
        }
}

bool accept_gzip(const AcceptedCodings *codings)
{
        int gzip = codings->gzip != 0 ? codings->gzip : codings->any;
        // "identity" without a weight of its own is the fallback, so any welcome gzip beats it
        return gzip > 1 && gzip >= codings->identity;
}
