// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>
#include "api/call.h"
#include "api/readers/upload.h"

static void expect_readyz(ServerFacts facts, int status, const char *body)
{
        EngineOptions options = { .loader = upload_loader };
        _cleanup_(engine_closep) Engine *engine = NULL;
        cr_assert_eq(engine_open(&options, &engine), STATUS_OK, "%s", failure_current()->message);
        ApiContext context = { .engine = engine, .facts = &facts };
        ApiCall call = { .route = &routes[ROUTE_READYZ] };
        ApiReply reply = { 0 };
        api_answer(&context, &call, NULL, NULL, &reply);
        cr_assert_eq(reply.status, status);
        cr_assert_eq(reply.body.n, strlen(body), "%.*s", (int)reply.body.n, reply.body.data);
        cr_assert_arr_eq(reply.body.data, body, strlen(body));
        api_reply_deinit(&reply);
}

Test(probes, readyz_says_why_it_is_not)
{
        expect_readyz((ServerFacts){ .n_workers = 2, .n_stalled = 1, .ready = true }, 200,
                      "{\"ready\": true}\n");
        expect_readyz((ServerFacts){ .n_workers = 2, .n_stalled = 1 }, 503,
                      "{\"ready\": false, \"error\": \"the server is stopping\", \"code\": \"busy\"}\n");
        expect_readyz((ServerFacts){ .n_workers = 2, .n_stalled = 2 }, 503,
                      "{\"ready\": false, \"error\": \"no worker has shown life for a second: each is in a "
                      "long operation, or stuck\", "
                      "\"code\": \"busy\"}\n");
}
