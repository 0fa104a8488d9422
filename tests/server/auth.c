// SPDX-License-Identifier: Apache-2.0
#include "server/auth.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/limits.h"

static char path[] = "/tmp/fxserve-auth-XXXXXX";
static char name[AUTH_NAME_MAX + 1];
static const AuthAddress here = { .bytes = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };

static void write_tokens(const char *text, size_t n)
{
        FILE *file = fopen(path, "w");
        fwrite(text, 1, n, file);
        fclose(file);
}

static void make(void)
{
        close(mkstemp(path));
}

static void drop(void)
{
        unlink(path);
}

static Status load(Auth *auth)
{
        AuthTokens *tokens;
        TRY(auth_read(auth, &tokens));
        auth_take(auth, tokens);
        return STATUS_OK;
}

TestSuite(auth, .init = make, .fini = drop);

Test(auth, scopes_open_the_routes_they_name)
{
        static const char text[] =
                "aaaaaaaaaaaaaaaa read\nbbbbbbbbbbbbbbbb\trun,write \r\n#x\ncccccccccccccccc admin # all";
        Auth *auth;
        write_tokens(text, sizeof(text) - 1);
        cr_assert_eq(auth_new(path, &auth), STATUS_OK);
        cr_assert_eq(load(auth), STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, routes[ROUTE_RUN].scope, name),
                     STATUS_SCOPE);
        cr_assert_eq(auth_check(auth, "BEARER bbbbbbbbbbbbbbbb", &here, routes[ROUTE_RUN].scope, name),
                     STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer bbbbbbbbbbbbbbbb", &here, routes[ROUTE_GRAPH_PUT].scope, name),
                     STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer bbbbbbbbbbbbbbbb", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_SCOPE);
        cr_assert_eq(
                auth_check(auth, "Bearer cccccccccccccccc", &here, routes[ROUTE_GRAPH_DELETE].scope, name),
                STATUS_OK);
        cr_assert_eq(auth_check(auth, NULL, &here, routes[ROUTE_LIVEZ].scope, name), STATUS_OK);
        cr_assert_eq(auth_check(auth, NULL, &here, routes[ROUTE_METRICS].scope, name), STATUS_TOKEN);
        cr_assert_eq(auth_check(auth, "Bearer ", &here, routes[ROUTE_METRICS].scope, name), STATUS_TOKEN);
        auth_free(auth);
}

Test(auth, a_token_is_known_by_its_name_or_its_digest)
{
        static const char text[] = "# who\naaaaaaaaaaaaaaaa read  ci-1.a_B \nbbbbbbbbbbbbbbbb run";
        Auth *auth;
        write_tokens(text, sizeof(text) - 1);
        cr_assert_eq(auth_new(path, &auth), STATUS_OK);
        cr_assert_eq(load(auth), STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_OK);
        cr_assert_str_eq(name, "ci-1.a_B");
        cr_assert_eq(auth_check(auth, "Bearer bbbbbbbbbbbbbbbb", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_SCOPE);
        cr_assert_str_eq(name, "token-2e61afd25d");
        cr_assert_eq(auth_check(auth, "Bearer cccccccccccccccc", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_TOKEN);
        cr_assert_str_eq(name, "");
        auth_free(auth);
}

Test(auth, a_burst_is_counted_per_address_and_the_right_token_is_taken_during_it)
{
        AuthAddress other = here;
        Auth *auth;
        other.bytes[15] = 2;
        write_tokens("aaaaaaaaaaaaaaaa read\n", 22);
        cr_assert_eq(auth_new(path, &auth), STATUS_OK);
        cr_assert_eq(load(auth), STATUS_OK);
        for (int64_t i = 0; i < limits.max_wrong_tokens; i++)
                cr_assert_eq(auth_check(auth, "Bearer x", &here, routes[ROUTE_GRAPH_GET].scope, name),
                             STATUS_TOKEN);
        cr_assert_eq(auth_check(auth, "Bearer x", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_TOO_MANY);
        cr_assert_eq(auth_check(auth, "Bearer x", &other, routes[ROUTE_GRAPH_GET].scope, name), STATUS_TOKEN);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_OK);
        auth_free(auth);
}

Test(auth, what_does_not_read_well_leaves_the_tokens_as_they_were)
{
        static const char *const bad[] = { "",
                                           "#\n",
                                           "short read\n",
                                           "aaaaaaaaaaaaaaaa\n",
                                           "aaaaaaaaaaaaaaaa fly\n",
                                           "aaaaaaaaaaaaaaaa read a name\n",
                                           "aaaaaaaaaaaaaaaa read \"\n",
                                           "aaaaaaaaaaaaaaa\"a read\n",
                                           "aaaaaaaaaaaaaaaa ,\n" };
        Auth *auth;
        write_tokens("aaaaaaaaaaaaaaaa read\n", 22);
        cr_assert_eq(auth_new(path, &auth), STATUS_OK);
        cr_assert_eq(load(auth), STATUS_OK);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                write_tokens(bad[i], strlen(bad[i]));
                cr_assert_eq(load(auth), STATUS_USAGE, "%s", bad[i]);
                cr_assert_null(strstr(failure_current()->message, "aaaa"));
        }
        write_tokens("aaaaaaaaaaaaaaaa read\0x\n", 24);
        cr_assert_eq(load(auth), STATUS_USAGE);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, routes[ROUTE_GRAPH_GET].scope, name),
                     STATUS_OK);
        auth_free(auth);
}

Test(auth, quotas_follow_the_name_and_what_is_in_use_survives_a_new_file)
{
        static const char before[] = "aaaaaaaaaaaaaaaa read me requests=1 bytes=70\nbbbbbbbbbbbbbbbb read",
                          after[] = "bbbbbbbbbbbbbbbb read\naaaaaaaaaaaaaaaa read requests=2\n";
        static const char *const wrong[] = {
                "aaaaaaaaaaaaaaaa read requests=0", "aaaaaaaaaaaaaaaa read request=1",
                "aaaaaaaaaaaaaaaa read graphs=", "aaaaaaaaaaaaaaaa read bytes=1x",
                "aaaaaaaaaaaaaaaa read requests=2 me"
        };
        Auth *auth;
        uint64_t refused[QUOTA_KINDS];
        write_tokens(before, sizeof(before) - 1);
        cr_assert_eq(auth_new(path, &auth), STATUS_OK);
        cr_assert_eq(load(auth), STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer bbbbbbbbbbbbbbbb", &here, SCOPE_READ, name), STATUS_OK);
        cr_assert_null(auth_quota(auth));
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, SCOPE_READ, name), STATUS_OK);
        cr_assert_str_eq(name, "me");
        Quota *quota = quota_ref(auth_quota(auth));
        cr_assert_eq(atomic_load(&quota->most[QUOTA_BYTES]), 70);
        cr_assert_eq(quota_enter(quota), STATUS_OK);
        cr_assert_eq(quota_enter(quota), STATUS_TOO_MANY);
        write_tokens(after, sizeof(after) - 1);
        cr_assert_eq(load(auth), STATUS_OK);
        cr_assert_eq(auth_check(auth, "Bearer aaaaaaaaaaaaaaaa", &here, SCOPE_READ, name), STATUS_OK);
        cr_assert_eq(auth_quota(auth), quota);
        cr_assert_eq(atomic_load(&quota->most[QUOTA_BYTES]), 0);
        cr_assert_eq(quota_enter(quota), STATUS_OK);
        cr_assert_eq(quota_enter(quota), STATUS_TOO_MANY);
        for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
                write_tokens(wrong[i], strlen(wrong[i]));
                cr_assert_eq(load(auth), STATUS_USAGE, "%s", wrong[i]);
        }
        write_tokens("bbbbbbbbbbbbbbbb read", 21);
        cr_assert_eq(load(auth), STATUS_OK);
        auth_refusals(auth, refused); // also of tokens that are no more
        cr_assert_eq(refused[QUOTA_REQUESTS], 2);
        quota_leave(quota);
        quota_leave(quota);
        quota_unref(quota);
        auth_free(auth);
}
