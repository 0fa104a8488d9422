// SPDX-License-Identifier: Apache-2.0
// `--flag value`, `--flag=value`; switches take no value. A variable is the flag in capitals:
// --max-run-body is FXSERVE_MAX_RUN_BODY. A switch's variable says yes or no. An empty variable is
// as one that is not set.
#include "server/options.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/command_line.h"

typedef struct OptionRow {
        const char *flag, *value, *fallback, *help;
        size_t offset;
} OptionRow;

static const OptionRow rows[] = {
#define OPTION(field, flag, value, fallback, help) { flag, value, fallback, help, offsetof(Options, field) },
#include "server/options.def"
#undef OPTION
};

const char *options_variable(const char *flag, char out[64])
{
        size_t n = (size_t)snprintf(out, 64, "FXSERVE_%s", flag);
        for (size_t i = 0; i < n && i < 63; i++)
                out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
        return out;
}

// Largest values: thirty years in nanoseconds can be added to any time; libmicrohttpd and the rings
// take counts of 32 bits.
static long long most_of(const char *unit)
{
        static const struct {
                const char *unit;
                long long most;
        } rows_of_units[] = { { "s", 1000000000 },
                              { "ms", 1000000000000 },
                              { "connections", INT32_MAX },
                              { "profiles", INT32_MAX } };
        for (size_t i = 0; i < ARRAY_LENGTH(rows_of_units); i++)
                if (strcmp(rows_of_units[i].unit, unit) == 0)
                        return rows_of_units[i].most;
        return INT64_MAX;
}

// Limits of which 0 leaves a server that answers nothing, or no run.
static int64_t least_of(const LimitRow *row)
{
        static const int64_t *const fields[] = { &limits.max_connections, &limits.max_queue,
                                                 &limits.run_deadline_ms };
        for (size_t i = 0; i < ARRAY_LENGTH(fields); i++)
                if (limit_row(fields[i]) == row)
                        return 1;
        return 0;
}

// "64MB", "1GiB", "4096": the factor behind a number of bytes, or 0.
static long long factor_of(const char *suffix)
{
        static const char letters[] = "KMGT";
        const char *at = suffix[0] == '\0' ? NULL : strchr(letters, toupper((unsigned char)suffix[0]));
        if (suffix[0] == '\0' || strcasecmp(suffix, "B") == 0)
                return 1;
        if (at == NULL || (strcasecmp(suffix + 1, "B") != 0 && strcasecmp(suffix + 1, "iB") != 0))
                return 0;
        long long factor = 1, step = strlen(suffix) == 2 ? 1000 : 1024;
        for (const char *letter = letters; letter <= at; letter++)
                factor *= step;
        return factor;
}

static Status set_limit(const LimitRow *row, const char *text, const char *from)
{
        char *end;
        bool is_bytes = strncmp(row->unit, "bytes", 5) == 0;
        long long most = most_of(row->unit), value;
        errno = 0;
        value = strtoll(text, &end, 10);
        long long factor = is_bytes ? factor_of(end) : *end == '\0';
        if (end == text || factor == 0 || errno != 0 || value < 0)
                return fail(STATUS_USAGE, "%s wants a number of %s%s, not \"%s\"", from, row->unit,
                            is_bytes ? " such as 67108864, 64MB or 1GiB" : "", text);
        if (__builtin_mul_overflow(value, factor, &value) || value > most)
                return fail(STATUS_USAGE, "%s is at most %lld %s, not %s", from, most, row->unit, text);
        if (value < least_of(row))
                return fail(STATUS_USAGE, "%s is at least %lld", from, (long long)least_of(row));
        *(int64_t *)((char *)&limits + row->offset) = value;
        return STATUS_OK;
}

static void set_option(const OptionRow *row, const char *text, Options *options)
{
        *(const char **)((char *)options + row->offset) = text;
}

static bool is_one_of(const char *text, const char *const words[], size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

// The value of a switch that its variable says: "1", or "".
static Status read_switch(const char *variable, const char *text, const char **out_value)
{
        static const char *const yes[] = { "1", "true", "yes", "on" }, *const no[] = { "0", "false", "no",
                                                                                       "off" };
        bool is_on = is_one_of(text, yes, ARRAY_LENGTH(yes));
        if (!is_on && !is_one_of(text, no, ARRAY_LENGTH(no)))
                return fail(STATUS_USAGE, "%s is 1, true, yes or on, or 0, false, no or off, not \"%s\"",
                            variable, text);
        *out_value = is_on ? "1" : "";
        return STATUS_OK;
}

// NULL: not set, or empty.
static const char *variable_value(const char *variable)
{
        const char *text = getenv(variable);
        return text == NULL || text[0] == '\0' ? NULL : text;
}

static Status read_environment(Options *options)
{
        char name[64];
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *text = variable_value(options_variable(rows[i].flag, name));
                if (text != NULL && rows[i].value == NULL)
                        TRY(read_switch(name, text, &text));
                set_option(&rows[i], text != NULL ? text : rows[i].fallback, options);
        }
        for (size_t i = 0; i < n_limit_rows; i++) {
                const char *text = limit_rows[i].flag == NULL
                                           ? NULL
                                           : variable_value(options_variable(limit_rows[i].flag, name));
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
                if (limit_rows[i].flag != NULL && strlen(limit_rows[i].flag) == n &&
                    memcmp(limit_rows[i].flag, name, n) == 0)
                        return &limit_rows[i];
        return NULL;
}

// The flag with a spelling near `name`, or NULL.
static const char *flag_like(const char *name)
{
        const char *best = NULL;
        int least = 4;
        for (size_t i = 0; i < ARRAY_LENGTH(rows) + n_limit_rows; i++) {
                const char *flag =
                        i < ARRAY_LENGTH(rows) ? rows[i].flag : limit_rows[i - ARRAY_LENGTH(rows)].flag;
                int away = flag == NULL ? least : word_distance(name, flag);
                if (away < least && away < (int)strlen(flag)) {
                        least = away;
                        best = flag;
                }
        }
        return best;
}

static Status unknown_flag(const char *name, size_t n)
{
        char flag[64];
        snprintf(flag, sizeof(flag), "%.*s", (int)MIN(n, sizeof(flag) - 1), name);
        const char *like = flag_like(flag);
        return fail(STATUS_USAGE, "unknown flag --%s%s%s%s; fxserve --help lists them", flag,
                    like == NULL ? "" : "; did you mean --", like == NULL ? "" : like,
                    like == NULL ? "" : "?");
}

// Variables of the commands that ask a server, the instruction set (core/base/isa.h), and those
// that Kubernetes sets for a service called fxserve.
static bool is_others_variable(const char *name)
{
        static const char *const known[] = { "FXSERVE_URL", "FXSERVE_TOKEN", "FXSERVE_ISA" };
        for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
                if (strcmp(name, known[i]) == 0)
                        return true;
        return strncmp(name, "FXSERVE_SERVICE_", 16) == 0 || strncmp(name, "FXSERVE_PORT", 12) == 0;
}

void options_unknown_variables(void (*report)(const char *name, const char *like))
{
        for (char **at = environ; *at != NULL; at++) {
                char name[64], flag[64], like[64] = "";
                size_t n = strcspn(*at, "="), i = 0;
                if (strncmp(*at, "FXSERVE_", 8) != 0 || n >= sizeof(name))
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)n, *at);
                for (; i + 8 < n; i++)
                        flag[i] = name[i + 8] == '_' ? '-' : (char)tolower((unsigned char)name[i + 8]);
                flag[i] = '\0';
                if (option_named(flag, i) != NULL || limit_named(flag, i) != NULL || is_others_variable(name))
                        continue;
                const char *near = flag_like(flag);
                report(name, near == NULL ? like : options_variable(near, like));
        }
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
                        return unknown_flag(name, n);
                if (option != NULL && option->value == NULL) {
                        if (equals != NULL)
                                return fail(STATUS_USAGE, "--%s takes no value", option->flag);
                        set_option(option, "1", &options);
                        continue;
                }
                char flag[64];
                snprintf(flag, sizeof(flag), "--%.*s", (int)MIN(n, 60), name);
                const char *value = equals != NULL ? equals + 1 : at + 1 < argc ? argv[++at] : NULL;
                if (value == NULL || value[0] == '\0') // "$UNSET" in a script
                        return fail(STATUS_USAGE, "--%.*s wants a value%s", (int)n, name,
                                    value == NULL ? "" : ", not an empty one");
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
                snprintf(flag, sizeof(flag), "--%s %s", rows[i].flag,
                         rows[i].value == NULL ? "" : rows[i].value);
                text_addf(out, "  %-28s %s%s%s%s\n", flag, rows[i].help,
                          rows[i].fallback[0] == '\0' ? "" : " (", rows[i].fallback,
                          rows[i].fallback[0] == '\0' ? "" : ")");
        }
        for (size_t i = 0; i < n_limit_rows; i++) {
                char flag[64];
                if (limit_rows[i].flag == NULL)
                        continue;
                snprintf(flag, sizeof(flag), "--%s N", limit_rows[i].flag);
                text_addf(out, "  %-28s %s, in %s (%lld)\n", flag, limit_rows[i].help, limit_rows[i].unit,
                          (long long)limit_rows[i].value);
        }
}

// In a table of Markdown "|" ends a cell, also between backquotes.
static void add_cell(Text *out, const char *words)
{
        for (; *words != '\0'; words++) {
                if (*words == '|')
                        text_add_char(out, '\\');
                text_add_char(out, *words);
        }
}

void options_markdown(Text *out)
{
        char name[64];
        text_add(out, "| flag | variable | default | what |\n|---|---|---|---|\n");
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                const char *quote = rows[i].fallback[0] == '\0' ? "" : "`";
                text_addf(out, "| `--%s%s", rows[i].flag, rows[i].value == NULL ? "" : " ");
                add_cell(out, rows[i].value == NULL ? "" : rows[i].value);
                text_addf(out, "` | `%s` | %s%s%s | ", options_variable(rows[i].flag, name), quote,
                          rows[i].fallback, quote);
                add_cell(out, rows[i].help);
                text_add(out, " |\n");
        }
        for (size_t i = 0; i < n_limit_rows; i++)
                if (limit_rows[i].flag != NULL)
                        text_addf(out, "| `--%s N` | `%s` | %lld | %s (%s) |\n", limit_rows[i].flag,
                                  options_variable(limit_rows[i].flag, name), (long long)limit_rows[i].value,
                                  limit_rows[i].help, limit_rows[i].unit);
}
