// SPDX-License-Identifier: Apache-2.0
// fxserve: one binary. The first argument names a command; without one it serves.
#include <stdio.h>
#include <string.h>
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "server/commands.h"
#include "server/health.h"
#include "server/server.h"
#include "server/version.h"

static const char head[] = "fxserve executes PyTorch graphs (torch.export .pt2 files, torch.fx graphs as JSON) over HTTP.\n"
                           "\n"
                           "  fxserve [serve] [FLAGS] [FILES...]   serve; FILES are loaded first\n"
                           "  fxserve run MODEL --input x='[[1,2]]' [--input y=@y.npy] [-o out.npy] [--profile]\n"
                           "  fxserve check FILE                   say what would not run; exit 1\n"
                           "  fxserve print FILE [--form graph|code|tabular|json]\n"
                           "  fxserve ops                          what runs\n"
                           "  fxserve health [URL]                 ask a server's /readyz; exit 0 if it answers 200, else 1\n"
                           "  fxserve --help | --help=markdown | --version\n"
                           "\n"
                           "Flags of serve; each is also a variable, --max-run-body is FXSERVE_MAX_RUN_BODY:\n";

static int print_help(bool markdown)
{
        Text text = { 0 };
        if (markdown) {
                options_markdown(&text);
        } else {
                text_add(&text, head);
                options_help(&text);
        }
        bool ok = text_status(&text) == STATUS_OK && fwrite(text.data, 1, text.n, stdout) == text.n && fflush(stdout) == 0;
        text_deinit(&text);
        return ok ? 0 : 1;
}

static int print_version(void)
{
        ServerFacts facts = version_facts();
        printf("fxserve %s (%s), torch %s, cpu %s\n", facts.version, facts.revision, facts.torch_level, facts.cpu_level);
        return 0;
}

static int serve(int argc, char **argv, int from)
{
        Options options;
        if (options_read(argc, argv, from, &options) != STATUS_OK) {
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                return 2;
        }
        return server_main(&options);
}

static int dispatch(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(int argc, char **argv);
        } commands[] = {
                { "run", command_run },
                { "check", command_check },
                { "print", command_print },
                { "ops", command_ops },
        };
        const char *first = argc > 1 ? argv[1] : "";
        if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "--help=markdown") == 0)
                return print_help(first[1] == '-' && strchr(first, '=') != NULL);
        if (strcmp(first, "--version") == 0)
                return print_version();
        for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
                if (strcmp(first, commands[i].name) == 0)
                        return commands[i].run(argc - 2, argv + 2);
        return serve(argc, argv, strcmp(first, "serve") == 0 ? 2 : 1);
}

int main(int argc, char **argv)
{
        if (argc > 1 && strcmp(argv[1], "health") == 0) // asked every few seconds: no tables needed
                return command_health(argc - 2, argv + 2);
        if (ops_init() != STATUS_OK || targets_init() != STATUS_OK) {
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                return 1;
        }
        return dispatch(argc, argv);
}
