// SPDX-License-Identifier: Apache-2.0
#include "server/child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/memory.h"
#include "core/engine/engine.h"
#include "server/command_line.h"
#include "server/server.h"

static volatile sig_atomic_t child_pid;

static void end_child(int signal_number)
{
        (void)signal_number;
        if (child_pid > 0)
                kill((pid_t)child_pid, SIGTERM);
}

// What is set for another server, such as its tokens, would lock this one's own user out.
static void forget_settings(void)
{
        for (char **at = environ; at != NULL && *at != NULL;) {
                char name[128];
                size_t n = strcspn(*at, "=");
                at++;
                if (n >= sizeof(name) || strncmp(at[-1], "FXSERVE_", 8) != 0)
                        continue;
                memcpy(name, at[-1], n);
                name[n] = '\0';
                if (strcmp(name, "FXSERVE_ISA") != 0 && unsetenv(name) == 0)
                        at = environ; // the array has moved
        }
}

static int serve(const char *listen, const char *file, int out_fd, pid_t parent)
{
        char *flags[] = { "--listen",  (char *)(uintptr_t)listen, "--data", "none", "--quiet", "--log-file",
                          "/dev/null", (char *)(uintptr_t)file };
        Options options;
        setpgid(0, 0); // Ctrl-C reaches the parent alone, which passes it on
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || dup2(out_fd, STDOUT_FILENO) < 0)
                return 1;
        close(out_fd);
        forget_settings();
        bool ok = engine_init() == STATUS_OK &&
                  options_read((int)ARRAY_LENGTH(flags) - (file == NULL), flags, 0, &options) == STATUS_OK;
        return ok ? server_main(&options) : command_report(STATUS_USAGE);
}

// Waits for the child's line `listening on URL`.
static Status read_url(int fd, char url[256])
{
        static const char before[] = "listening on ";
        size_t n = 0;
        while (n < 255 && (n == 0 || url[n - 1] != '\n')) {
                ssize_t got = read(fd, url + n, 1);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return fail(STATUS_IO, "the server did not start");
                n++;
        }
        url[n - 1] = '\0';
        if (strncmp(url, before, strlen(before)) != 0)
                return fail(STATUS_IO, "the server did not start: %s", url);
        memmove(url, url + strlen(before), n - strlen(before));
        return STATUS_OK;
}

Status child_start(const char *listen, const char *file, ChildServer *out_child)
{
        int fds[2];
        if (pipe(fds) != 0)
                return fail(STATUS_IO, "no pipe: %s", strerror(errno));
        pid_t parent = getpid(), pid = fork();
        if (pid == 0) {
                close(fds[0]);
                exit(serve(listen, file, fds[1], parent));
        }
        close(fds[1]);
        ChildServer child = { .pid = pid, .fd = fds[0] };
        Status status = pid < 0 ? fail(STATUS_IO, "no process: %s", strerror(errno)) : STATUS_OK;
        if (status == STATUS_OK) {
                struct sigaction on_end = { .sa_handler = end_child };
                child_pid = pid;
                sigaction(SIGINT, &on_end, NULL);
                sigaction(SIGTERM, &on_end, NULL);
                status = read_url(child.fd, child.url);
                if (status != STATUS_OK)
                        (void)child_wait(&child, true);
        } else {
                close(child.fd);
        }
        if (status == STATUS_OK)
                *out_child = child;
        return status;
}

void child_show(const char *url)
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

int child_wait(const ChildServer *child, bool stop)
{
        int state;
        if (stop)
                kill(child->pid, SIGTERM);
        while (waitpid(child->pid, &state, 0) < 0)
                if (errno != EINTR)
                        return 1;
        child_pid = 0;
        close(child->fd);
        return WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}
