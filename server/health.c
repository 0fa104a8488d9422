// SPDX-License-Identifier: Apache-2.0
// The certificate is not checked: nothing secret is sent, and what counts is whether there is an
// answer.
#include "server/health.h"
#include <stdio.h>
#include "server/client.h"

enum { DEADLINE_MS = 3000, MAX_REPLY = 1 << 20 };

int command_health(int argc, char **argv)
{
        ClientUrl url;
        ClientReply reply = { .status = 0 };
        Status status = argc == 1 ? client_url_parse("health", argv[0], &url) : client_url_own(&url);
        if (argc > 1)
                status = fail(STATUS_USAGE, "usage: fxserve health [URL]");
        const char *target = status == STATUS_OK && url.path[0] != '\0' ? url.path : "/readyz";
        ClientRequest request = { .method = "GET",
                                  .target = target,
                                  .insecure = true,
                                  .idle_ms = DEADLINE_MS,
                                  .total_ms = DEADLINE_MS,
                                  .max_reply = MAX_REPLY };
        if (status == STATUS_OK)
                status = client_ask(&url, &request, &reply);
        client_reply_deinit(&reply);
        if (status != STATUS_OK) {
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                return status == STATUS_USAGE ? 2 : 1;
        }
        if (reply.status != 200) {
                fprintf(stderr, "fxserve: %s answered %d\n", target, reply.status);
                return 1;
        }
        printf("ok\n");
        return 0;
}
