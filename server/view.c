// SPDX-License-Identifier: Apache-2.0
// `fxserve view FILE`: a server in a child process, with one file, and the page that shows it.
#include <stdio.h>
#include "server/child.h"
#include "server/command_line.h"
#include "server/commands.h"
#include "server/preload.h"

int command_view(int argc, char **argv)
{
        const char *listen = "127.0.0.1:0", *file = file_and_flag("--listen", argc, argv, &listen);
        if (file == NULL)
                return command_usage("view");
        ChildServer child;
        char name[65], page[400];
        fflush(stdout);
        Status status = child_start(listen, file, &child);
        if (status != STATUS_OK)
                return command_report(status);
        model_name_of(file, name);
        snprintf(page, sizeof(page), "%s/#/g/%s/graph", child.url, name);
        printf("%s\nCtrl-C ends the server.\n", page);
        fflush(stdout);
        child_show(page);
        return child_wait(&child, false);
}
