// SPDX-License-Identifier: Apache-2.0
// The table of commands. `fxserve NAME --help` and `fxserve help NAME` print one row, `fxserve
// --help` all.
#include "server/command_line.h"
#include <stdio.h>
#include <string.h>
#include "core/base/memory.h"
#include "server/commands.h"
#include "server/health.h"

#define REMOTE                                                                                               \
        "\n  --url URL       the server; default FXSERVE_URL, else the one that FXSERVE_LISTEN names, else " \
        "http://127.0.0.1:8080"                                                                              \
        "\n  --token TOKEN   sent as `Authorization: Bearer`; default FXSERVE_TOKEN, which other users of "  \
        "the machine cannot see"                                                                             \
        "\n  --ca FILE       authorities (PEM) that may sign the server's certificate; default: the "        \
        "system's"                                                                                           \
        "\n  --insecure      do not check the certificate\n"

const Command commands[] = {
        { "serve", "[FLAGS] [FILE|FOLDER...]", "serve; files, and all models of folders, are loaded first",
          "\nFILE: .pt2 or .json. `fxserve --help` lists the flags.\n", NULL, true },
        { "demo", "[--listen HOST:PORT]",
          "serve a trained model that is part of the program, and show three requests",
          "\n  --listen HOST:PORT   default 127.0.0.1:8080, or a free port if that is taken\n"
          "\nNothing is kept. Ctrl-C ends it.\n",
          command_demo, false },
        { "view", "FILE [--listen HOST:PORT]", "show a file's graph in a browser: starts a server for it",
          "\nFILE: .pt2 or .json. The page's address is printed, and opened on a desktop.\n"
          "\n  --listen HOST:PORT   default 127.0.0.1 and a free port\n"
          "\nNothing is kept. Ctrl-C ends it.\n",
          command_view, false },
        { "push", "FILE [NAME] [--weights W.safetensors] [--url URL]",
          "upload to a server; the name defaults to the file's", REMOTE, command_push, false },
        { "list", "[--url URL]", "what a server has", REMOTE, command_list, false },
        { "show", "NAME[@VERSION] [--url URL]", "inputs, outputs and operators of one graph", REMOTE,
          command_show, false },
        { "call",
          "NAME[@VERSION] --input x='[[1,2]]' [--input y=@y.npy] [-o out.npy] [--profile] [--url URL]",
          "run on a server",
          "\n  --input NAME=JSON|@FILE.npy   one per input; without any the server's own example is run"
          "\n  -o FILE                       the outputs as a file: .npy (one output), .npz, .safetensors, "
          "else JSON"
          "\n  --profile                     print where the time went, on standard error with JSON on "
          "standard output" REMOTE,
          command_call, false },
        { "compare",
          "NAME[@VERSION] [NAME[@VERSION]] [--input x='[[1,2]]'] [--mode eager|compiled|eager,compiled] "
          "[--form text|json|--html] [-o FILE] [--url URL]",
          "two graphs of a server, or one in two modes; exit 0 equal, 1 different, 2 failed",
          "\n  --input NAME=JSON|@FILE.npy   one per input; without any the first graph's example is run"
          "\n  --mode MODE[,MODE]            eager or compiled, for both sides or each; one name is run as "
          "eager,compiled"
          "\n  --sample N                    compare one graph with what its sample N recorded"
          "\n  --rtol NUMBER                 relative tolerance; both or none, as in assert_close"
          "\n  --atol NUMBER                 absolute tolerance"
          "\n  --seed NUMBER                 of random numbers; the reply has the one that was taken"
          "\n  --nodes                       node by node even if the results are close"
          "\n  --form text|json              of what was found"
          "\n  --html                        a page of its own with what was found, node by node"
          "\n  -o FILE                       write what was found to a file"
          "\n\nThe exit code is 0 when the results are close, 1 when they differ, 2 when something "
          "failed.\n" REMOTE,
          command_compare, false },
        { "rm", "NAME[@VERSION] [--url URL]", "remove a graph, or one version of it", REMOTE, command_rm,
          false },
        { "run",
          "MODEL --input x='[[1,2]]' [--input y=@y.npy] [--weights W.safetensors] [-o out.npy] "
          "[--profile]",
          "run a file without a server",
          "\n  --input NAME=JSON|@FILE.npy   one per input"
          "\n  --weights FILE                of FX JSON, as safetensors"
          "\n  -o FILE                       the outputs as a file: .npz, .safetensors, .json, else .npy "
          "(one output)"
          "\n  --profile                     print where the time went\n",
          command_run, true },
        { "check", "FILE [--weights W.safetensors]", "say what would not run; exit 1", "", command_check,
          true },
        { "print", "FILE [--form graph|code|readable|tabular|dot|json]",
          "a file's graph, as PyTorch prints it", "", command_print, true },
        { "ops", "", "what runs", "", command_ops, true },
        { "health", "[URL]", "ask a server's /readyz; exit 0 if it answers 200, else 1", "", command_health,
          false },
        { "help", "[COMMAND]", "this list, or one command", "", NULL, false },
};
const int n_commands = ARRAY_LENGTH(commands);

const Command *command_named(const char *name)
{
        for (int i = 0; i < n_commands; i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

int word_distance(const char *a, const char *b)
{
        enum { MOST = 64 };
        int row[MOST + 1], n = (int)strlen(b);
        if (n >= MOST || strlen(a) >= MOST)
                return MOST;
        for (int j = 0; j <= n; j++)
                row[j] = j;
        for (int i = 1; a[i - 1] != '\0'; i++) {
                int corner = row[0];
                row[0] = i;
                for (int j = 1; j <= n; j++) {
                        int above = row[j];
                        row[j] = MIN(MIN(above, row[j - 1]) + 1, corner + (a[i - 1] != b[j - 1]));
                        corner = above;
                }
        }
        return row[n];
}

const Command *command_like(const char *name)
{
        const Command *best = NULL;
        int least = 3;
        for (int i = 0; i < n_commands; i++) {
                int away = word_distance(name, commands[i].name);
                if (away < least && away < (int)strlen(commands[i].name)) {
                        least = away;
                        best = &commands[i];
                }
        }
        return best;
}

void commands_help(Text *out)
{
        enum { COLUMN = 48 };
        for (int i = 0; i < n_commands; i++) {
                size_t n = strlen("  fxserve  ") + strlen(commands[i].name) + strlen(commands[i].arguments);
                text_addf(out, "  fxserve %s %s", commands[i].name, commands[i].arguments);
                if (n >= COLUMN) {
                        text_add_char(out, '\n');
                        n = 0;
                }
                text_repeat(out, ' ', COLUMN - n);
                text_addf(out, "%s\n", commands[i].words);
        }
}

void command_help(const Command *command, Text *out)
{
        text_addf(out, "usage: fxserve %s %s\n%s\n%s", command->name, command->arguments, command->words,
                  command->help);
}

int command_usage(const char *name)
{
        const Command *command = command_named(name);
        fprintf(stderr, "usage: fxserve %s %s\n", name, command->arguments);
        return 2;
}

int command_report(Status status)
{
        fprintf(stderr, "fxserve: %s\n", failure_current()->message);
        return status == STATUS_USAGE ? 2 : 1;
}

const char *flag_value(const char *flag, int argc, char **argv, int *at)
{
        size_t n = strlen(flag);
        if (strncmp(argv[*at], flag, n) != 0)
                return NULL;
        if (argv[*at][n] == '=')
                return argv[*at] + n + 1;
        if (argv[*at][n] != '\0' || *at + 1 >= argc)
                return NULL;
        return argv[++*at];
}

const char *file_and_flag(const char *flag, int argc, char **argv, const char **inout_value)
{
        const char *file = NULL;
        for (int at = 0; at < argc; at++) {
                const char *value = flag_value(flag, argc, argv, &at);
                if (value != NULL)
                        *inout_value = value;
                else if (file == NULL && argv[at][0] != '-')
                        file = argv[at];
                else
                        return NULL;
        }
        return file;
}

int write_text(const Text *text)
{
        bool ok = text_status(text) == STATUS_OK &&
                  (text->n == 0 || fwrite(text->data, 1, text->n, stdout) == text->n);
        return ok && fflush(stdout) == 0 ? 0 : 1;
}
