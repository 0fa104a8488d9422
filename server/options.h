// SPDX-License-Identifier: Apache-2.0
// Flags and environment variables of `fxserve serve`: one list (options.def and the limits with a
// flag). Command line wins over environment.
#pragma once
#include "core/base/text.h"

typedef struct Options {
#define OPTION(field, flag, value, fallback, help) const char *field;
#include "server/options.def"
#undef OPTION
        const char *const *files; // positional arguments, files and folders: preloaded
        int n_files;
} Options;

// Reads argv[from..) and the environment; sets the global limits, too. STATUS_USAGE names the flag.
// Strings are borrowed from argv and environ.
Status options_read(int argc, char **argv, int from, Options *out_options);
// Calls `report` for each variable FXSERVE_... that names no flag; `like` is one with a similar
// spelling, or "".
void options_unknown_variables(void (*report)(const char *name, const char *like));
// The variable of a flag: "max-run-body" is FXSERVE_MAX_RUN_BODY.
const char *options_variable(const char *flag, char out[64]);
// The list for --help, and as the table of docs/configuration.md.
void options_help(Text *out);
void options_markdown(Text *out);
