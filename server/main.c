// SPDX-License-Identifier: Apache-2.0
// fxserve: one binary. The first argument names a command; without one it serves.
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/isa.h"
#include "core/engine/engine.h"
#include "server/command_line.h"
#include "server/server.h"
#include "server/version.h"

static const char head[] =
        "fxserve executes PyTorch graphs (torch.export .pt2 files, torch.fx graphs as JSON) over HTTP.\n\n",
                  tail[] = "  fxserve --help | --help=markdown | --version\n\n"
                           "FXSERVE_ISA=portable|avx2|avx512|avx512_vnni|avx512_bf16 limits the instruction "
                           "set that results are computed with.\n"
                           "Flags of serve; each is also a variable, --max-run-body is FXSERVE_MAX_RUN_BODY. "
                           "Sizes take 64MB, 1GiB:\n";

static int print_and_free(Text *text)
{
        int code = write_text(text);
        text_deinit(text);
        return code;
}

static int print_help(bool markdown)
{
        Text text = { 0 };
        if (markdown) {
                options_markdown(&text);
        } else {
                text_add(&text, head);
                commands_help(&text);
                text_add(&text, tail);
                options_help(&text);
        }
        return print_and_free(&text);
}

static int unknown_command(const char *name)
{
        const Command *like = command_like(name);
        fprintf(stderr,
                "fxserve: there is no command and no file \"%s\"%s%s%s; fxserve help lists the commands\n",
                name, like == NULL ? "" : "; did you mean ", like == NULL ? "" : like->name,
                like == NULL ? "" : "?");
        return 2;
}

static int print_command_help(const char *name)
{
        const Command *command = command_named(name);
        Text text = { 0 };
        if (command == NULL)
                return unknown_command(name);
        if (command->run == NULL)
                return print_help(false);
        command_help(command, &text);
        return print_and_free(&text);
}

static int print_version(void)
{
        ServerFacts facts = version_facts();
        printf("fxserve %s (%s), torch %s, cpu %s\n", facts.version, facts.revision, facts.torch_level,
               facts.cpu_level);
        Text libraries = { 0 };
        version_libraries(&libraries);
        bool ok = text_status(&libraries) == STATUS_OK &&
                  fwrite(libraries.data, 1, libraries.n, stdout) == libraries.n;
        text_deinit(&libraries);
        return ok && fflush(stdout) == 0 ? 0 : 1;
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

static int init_tables(void)
{
        if (engine_init() == STATUS_OK)
                return 0;
        fprintf(stderr, "fxserve: %s\n", failure_current()->message);
        return 1;
}

static bool is_word(const char *text, const char *a, const char *b)
{
        return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

// Only a word that can be a misspelt command: `fxserve m.pt2` and `fxserve models/` serve.
static bool is_bare_word(const char *text)
{
        return text[0] != '-' && strpbrk(text, "./") == NULL && access(text, F_OK) != 0;
}

int main(int argc, char **argv)
{
        const char *first = argc > 1 ? argv[1] : "serve";
        const Command *command = command_named(first);
        if (is_word(first, "--help", "-h") || (strcmp(first, "help") == 0 && argc == 2))
                return print_help(false);
        if (strcmp(first, "--help=markdown") == 0)
                return print_help(true);
        if (isa_check() != STATUS_OK) {
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                return 2;
        }
        if (strcmp(first, "--version") == 0)
                return print_version();
        if (strcmp(first, "help") == 0)
                return print_command_help(argv[2]);
        if (command != NULL && argc > 2 && is_word(argv[2], "--help", "-h"))
                return print_command_help(first);
        if (command == NULL && is_bare_word(first))
                return unknown_command(first);
        bool serves = command == NULL || command->run == NULL;
        if ((serves || command->needs_tables) && init_tables() != 0)
                return 1;
        return serves ? serve(argc, argv, command == NULL ? 1 : MIN(2, argc))
                      : command->run(argc - 2, argv + 2);
}
