// SPDX-License-Identifier: Apache-2.0
// The protocol is one datagram per message. A manager that cannot be reached is not a failure.
#include "server/notify.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_manager(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t n = path == NULL ? 0 : strlen(path);
        if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
                return;
        memcpy(address.sun_path, path, n);
        if (path[0] == '@') // an abstract name
                address.sun_path[0] = '\0';
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)(const void *)&address,
                      length);
        close(fd);
}
