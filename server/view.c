// SPDX-License-Identifier: Apache-2.0
// `fxserve view FILE`: a server in a child process, with one file, and the page that shows it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "server/child.h"
#include "server/command_line.h"
#include "server/commands.h"
#include "server/preload.h"

// On a desktop the browser is opened; what it prints does not belong here. Nothing depends on it.
static void open_browser(const char *url)
{
        bool desktop = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
        if (!desktop || !isatty(STDOUT_FILENO))
                return;
        pid_t pid = fork();
        if (pid == 0) {
                int fd = open("/dev/null", O_RDWR);
                bool ok = fd >= 0 && dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0;
                if (ok && fork() == 0) // of its own, so that nobody has to wait for it
                        execlp("xdg-open", "xdg-open", url, (char *)NULL);
                _exit(0);
        }
        if (pid > 0)
                waitpid(pid, NULL, 0);
}

int command_view(int argc, char **argv)
{
        const char *listen = NULL, *file = NULL, *value;
        for (int at = 0; at < argc; at++) {
                if ((value = flag_value("--listen", argc, argv, &at)) != NULL)
                        listen = value;
                else if (argv[at][0] == '-' || file != NULL)
                        return command_usage("view");
                else
                        file = argv[at];
        }
        if (file == NULL)
                return command_usage("view");
        ChildServer child;
        char name[65], page[400];
        fflush(stdout);
        Status status = child_start(listen == NULL ? "127.0.0.1:0" : listen, file, &child);
        if (status != STATUS_OK)
                return command_report(status);
        model_name_of(file, name);
        snprintf(page, sizeof(page), "%s/#/g/%s/graph", child.url, name);
        printf("%s\nCtrl-C ends the server.\n", page);
        fflush(stdout);
        open_browser(page);
        return child_wait(&child, false);
}
