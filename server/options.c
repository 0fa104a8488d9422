// SPDX-License-Identifier: Apache-2.0
// `--flag value`, `--flag=value`; switches take no value. A variable is the flag in capitals: --max-run-body is FXSERVE_MAX_RUN_BODY.
#include "server/options.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

typedef struct OptionRow {
        const char *flag, *value, *fallback, *help;
        size_t offset;
} OptionRow;

static const OptionRow rows[] = {
#define OPTION(field, flag, value, fallback, help) { flag, value, fallback, help, offsetof(Options, field) },
#include "server/options.def"
#undef OPTION
};

static const char *variable_of(const char *flag, char out[64])
{
        size_t n = (size_t)snprintf(out, 64, "FXSERVE_%s", flag);
        for (size_t i = 0; i < n && i < 63; i++)
                out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
        return out;
}

// Thirty years in nanoseconds can be added to any time; libmicrohttpd and the rings take counts as 32 bits.
static long long most_of(const char *unit)
{
        static const struct {
                const char *unit;
                long long most;
        } rows_of_units[] = { { "s", 1000000000 }, { "ms", 1000000000000 }, { "connections", INT32_MAX }, { "profiles", INT32_MAX } };
        for (size_t i = 0; i < ARRAY_LENGTH(rows_of_units); i++)
                if (strcmp(rows_of_units[i].unit, unit) == 0)
                        return rows_of_units[i].most;
        return INT64_MAX;
}

static Status set_limit(const LimitRow *row, const char *text, const char *from)
{
        char *end;
        long long most = most_of(row->unit);
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || errno != 0 || value < 0)
                return fail(STATUS_USAGE, "%s wants a number of %s, not \"%s\"", from, row->unit, text);
        if (value > most)
                return fail(STATUS_USAGE, "%s is at most %lld %s, not %s", from, most, row->unit, text);
        *(int64_t *)((char *)&limits + row->offset) = value;
        return STATUS_OK;
}

static void set_option(const OptionRow *row, const char *text, Options *options)
{
        *(const char **)((char *)options + row->offset) = text;
}

static Status read_environment(Options *options)
{
        char name[64];
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *text = getenv(variable_of(rows[i].flag, name));
                set_option(&rows[i], text != NULL ? text : rows[i].fallback, options);
        }
        for (size_t i = 0; i < n_limit_rows; i++) {
                const char *text = limit_rows[i].flag == NULL ? NULL : getenv(variable_of(limit_rows[i].flag, name));
                if (text != NULL)
                        TRY(set_limit(&limit_rows[i], text, name));
        }
        return STATUS_OK;
}

static const OptionRow *option_named(const char *name, size_t n)
{
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                if (strlen(rows[i].flag) == n && memcmp(rows[i].flag, name, n) == 0)
                        return &rows[i];
        return NULL;
}

static const LimitRow *limit_named(const char *name, size_t n)
{
        for (size_t i = 0; i < n_limit_rows; i++)
                if (limit_rows[i].flag != NULL && strlen(limit_rows[i].flag) == n && memcmp(limit_rows[i].flag, name, n) == 0)
                        return &limit_rows[i];
        return NULL;
}

Status options_read(int argc, char **argv, int from, Options *out_options)
{
        Options options = { .n_files = 0 };
        TRY(read_environment(&options));
        int at = from;
        for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
                const char *name = argv[at] + 2, *equals = strchr(name, '=');
                size_t n = equals == NULL ? strlen(name) : (size_t)(equals - name);
                const OptionRow *option = option_named(name, n);
                const LimitRow *limit = limit_named(name, n);
                if (option == NULL && limit == NULL)
                        return fail(STATUS_USAGE, "unknown flag --%.*s; fxserve --help lists them", (int)n, name);
                if (option != NULL && option->value == NULL) {
                        if (equals != NULL)
                                return fail(STATUS_USAGE, "--%s takes no value", option->flag);
                        set_option(option, "1", &options);
                        continue;
                }
                char flag[64];
                snprintf(flag, sizeof(flag), "--%.*s", (int)MIN(n, 60), name);
                const char *value = equals != NULL ? equals + 1 : at + 1 < argc ? argv[++at] : NULL;
                if (value == NULL)
                        return fail(STATUS_USAGE, "--%.*s wants a value", (int)n, name);
                if (option != NULL)
                        set_option(option, value, &options);
                else
                        TRY(set_limit(limit, value, flag));
        }
        for (int i = at; i < argc; i++)
                if (argv[i][0] == '-')
                        return fail(STATUS_USAGE, "flags come before files: %s", argv[i]);
        options.files = (const char *const *)argv + at;
        options.n_files = argc - at;
        *out_options = options;
        return STATUS_OK;
}

void options_help(Text *out)
{
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                char flag[64];
                snprintf(flag, sizeof(flag), "--%s %s", rows[i].flag, rows[i].value == NULL ? "" : rows[i].value);
                text_addf(out, "  %-28s %s%s%s%s\n", flag, rows[i].help, rows[i].fallback[0] == '\0' ? "" : " (", rows[i].fallback,
                          rows[i].fallback[0] == '\0' ? "" : ")");
        }
        for (size_t i = 0; i < n_limit_rows; i++) {
                char flag[64];
                if (limit_rows[i].flag == NULL)
                        continue;
                snprintf(flag, sizeof(flag), "--%s N", limit_rows[i].flag);
                text_addf(out, "  %-28s %s, in %s (%lld)\n", flag, limit_rows[i].help, limit_rows[i].unit, (long long)limit_rows[i].value);
        }
}

void options_markdown(Text *out)
{
        char name[64];
        text_add(out, "| flag | variable | default | what |\n|---|---|---|---|\n");
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                text_addf(out, "| `--%s%s%s` | `%s` | %s%s%s | %s |\n", rows[i].flag, rows[i].value == NULL ? "" : " ",
                          rows[i].value == NULL ? "" : rows[i].value, variable_of(rows[i].flag, name),
                          rows[i].fallback[0] == '\0' ? "" : "`", rows[i].fallback, rows[i].fallback[0] == '\0' ? "" : "`", rows[i].help);
        for (size_t i = 0; i < n_limit_rows; i++)
                if (limit_rows[i].flag != NULL)
                        text_addf(out, "| `--%s N` | `%s` | %lld | %s (%s) |\n", limit_rows[i].flag, variable_of(limit_rows[i].flag, name),
                                  (long long)limit_rows[i].value, limit_rows[i].help, limit_rows[i].unit);
}
