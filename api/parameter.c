// SPDX-License-Identifier: Apache-2.0
// Values of query parameters, read by their rows in parameters.def.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "api/call.h"

const char *param_text(const ApiCall *call, ParameterId id)
{
        const uint8_t *ids = call->route == NULL ? NULL : call->route->parameters;
        for (int i = 0; ids != NULL && ids[i] != PARAM_NONE; i++)
                if (ids[i] == id)
                        return call->query[i];
        return NULL;
}

int64_t parameter_max(const Parameter *row)
{
        return row->limit != NULL ? *row->limit : row->max;
}

int64_t parameter_default(const Parameter *row)
{
        return row->limit != NULL ? *row->limit : row->fallback;
}

Status param_bool(const ApiCall *call, ParameterId id, bool *out)
{
        const char *text = param_text(call, id), *name = parameters[id].name;
        bool yes = text == NULL ? parameters[id].fallback != 0
                                : strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || text[0] == '\0';
        if (text != NULL && !yes && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
                return fail(STATUS_VALUE, "query parameter \"%s\" is true or false, not \"%s\"", name, text);
        *out = yes;
        return STATUS_OK;
}

Status param_int(const ApiCall *call, ParameterId id, int64_t *out)
{
        const Parameter *row = &parameters[id];
        const char *text = param_text(call, id);
        int64_t most = parameter_max(row), value = parameter_default(row);
        if (text != NULL) {
                size_t n = strspn(text, "0123456789");
                value = n == 0 || n > 18 || text[n] != '\0' ? -1 : strtoll(text, NULL, 10);
                if (value < row->min || value > most)
                        return fail(STATUS_VALUE,
                                    "query parameter \"%s\" is a number from %lld to %lld, not \"%s\"",
                                    row->name, (long long)row->min, (long long)most, text);
        }
        if (value != NO_DEFAULT)
                *out = value;
        return STATUS_OK;
}

Status param_number(const ApiCall *call, ParameterId id, double *out)
{
        const char *text = param_text(call, id);
        char *end = NULL;
        double value = text == NULL ? 0 : strtod(text, &end);
        if (text == NULL)
                return STATUS_OK;
        // as numbers in JSON begin: no blanks, signs, "inf" or "nan"
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || strpbrk(text, "xX") != NULL || !isfinite(value))
                return fail(STATUS_VALUE, "query parameter \"%s\" is a number from 0 on, not \"%.64s\"",
                            parameters[id].name, text);
        *out = value;
        return STATUS_OK;
}

// Spelt as in JSON where the parameter is a member of bodies, too.
static Status fail_choice(const Parameter *row, const char *text)
{
        const char *quote = row->place == IN_BOTH ? "\"" : "";
        Status status = fail(STATUS_VALUE, "\"%s\" is ", row->name);
        for (int i = 0; i < row->n_names; i++)
                failure_append("%s%s%s%s",
                               i == 0                 ? ""
                               : i + 1 < row->n_names ? ", "
                                                      : " or ",
                               quote, row->names[i], quote);
        failure_append(", not \"%s\"", text);
        return status;
}

Status param_choose(ParameterId id, const char *name, int *out)
{
        const Parameter *row = &parameters[id];
        for (int i = 0; i < row->n_names; i++)
                if (strcmp(row->names[i], name) == 0) {
                        *out = i;
                        return STATUS_OK;
                }
        return fail_choice(row, name);
}

Status param_choice(const ApiCall *call, ParameterId id, int *out)
{
        const char *text = param_text(call, id);
        if (text != NULL)
                return param_choose(id, text, out);
        if (parameters[id].fallback != NO_DEFAULT)
                *out = (int)parameters[id].fallback;
        return STATUS_OK;
}
