// SPDX-License-Identifier: Apache-2.0
// Request lines: a method, a blank, the raw target. What routes must have a name of the one
// pattern; what does not must say why. The same bytes are read as an Accept-Encoding field.
#include "api/formats/accept.h"
#include "api/call.h"
#include "tests/fuzz/fuzz.h"

static void try_codings(const char *field)
{
        AcceptedCodings codings = { 0, 0, 0 };
        accept_add_codings(field, &codings);
        require(codings.gzip >= 0 && codings.gzip <= 1001 && codings.identity <= 1001 && codings.any <= 1001,
                "weights beyond 1");
        accept_gzip(&codings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *line = strndup((const char *)data, n), *blank = line == NULL ? NULL : strchr(line, ' '),
             allow[64] = "";
        if (line != NULL)
                try_codings(line);
        if (blank != NULL && blank - line < 16) {
                ApiCall call;
                memset(&call, 0, sizeof(call));
                *blank = '\0';
                Status status = route_parse(line, blank + 1, &call, allow);
                size_t plain = strspn(call.name,
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
                require(call.name[plain] == '\0' && call.name[0] != '.' && call.name[0] != '-',
                        "a name like \"%s\"", call.name);
                if (status != STATUS_OK)
                        require_told(status);
                else
                        require(call.route != NULL, "no route, and no failure");
                api_call_deinit(&call);
        }
        free(line);
        return 0;
}
