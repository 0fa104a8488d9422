// SPDX-License-Identifier: Apache-2.0
// A server in a child process, which keeps nothing on the disk, for the commands demo and view. It
// ends with this process, and at Ctrl-C or SIGTERM to it. One per process; on the main thread.
#pragma once
#include <sys/types.h>
#include "core/base/status.h"

typedef struct ChildServer {
        pid_t pid;
        int fd;        // its standard output
        char url[256]; // http://127.0.0.1:PORT
} ChildServer;

// Starts it and waits until it listens; `file` (NULL: none) is loaded before. Settings in the
// environment do not count: it has no tokens and no certificate. STATUS_IO: it did not start; it
// has said why.
Status child_start(const char *listen, const char *file, ChildServer *out_child);
// On a desktop, with a terminal, a page of it is opened in the browser; else nothing happens.
void child_show(const char *url);
// Waits for its end; `stop` asks it to end. Returns its exit code.
int child_wait(const ChildServer *child, bool stop);
