// SPDX-License-Identifier: Apache-2.0
// What the commands share: their table, flags, messages.
#pragma once
#include <stdbool.h>
#include "core/base/status.h"
#include "core/base/text.h"

typedef struct Command {
        const char *name, *arguments, *words; // as --help prints them
        const char *help;                     // further lines of `fxserve NAME --help`; may be ""
        // takes what follows the name, returns the exit code; NULL: main knows it
        int (*run)(int argc, char **argv);
        bool needs_tables; // of operators and targets
} Command;

extern const Command commands[];
extern const int n_commands;

const Command *command_named(const char *name); // NULL: there is none
// The command whose name is nearest to a misspelt one, or NULL.
const Command *command_like(const char *name);
// The list for `fxserve --help`; `fxserve NAME --help`.
void commands_help(Text *out);
void command_help(const Command *command, Text *out);

// Prints `usage: fxserve NAME ARGUMENTS`; returns exit code 2.
int command_usage(const char *name);
// Prints the current failure; returns its exit code.
int command_report(Status status);
// The value of `--flag value` or `--flag=value` at *at, which moves on; NULL if the argument is
// another one.
const char *flag_value(const char *flag, int argc, char **argv, int *at);
// Of arguments that are one file and at most that flag: the file; NULL: something else is among
// them, or no file. *inout_value stays where the flag is not given.
const char *file_and_flag(const char *flag, int argc, char **argv, const char **inout_value);
// Edits (insert, drop or replace a character) that turn one word into the other; 64 for longer
// words.
int word_distance(const char *a, const char *b);
// Exit code.
int write_text(const Text *text);
