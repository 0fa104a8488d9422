// SPDX-License-Identifier: Apache-2.0
#include "server/door.h"

// ---- files ----
static Status read_tokens(const void *auth, void **out_tokens)
{
        AuthTokens *tokens;
        TRY(auth_read(auth, &tokens));
        *out_tokens = tokens;
        return STATUS_OK;
}

static void take_tokens(void *auth, void *tokens)
{
        auth_take(auth, tokens);
}

static void drop_tokens(void *tokens)
{
        auth_tokens_free(tokens);
}

static Status read_pair(const void *tls, void **out_pair)
{
        TlsPair *pair;
        TRY(tls_read(tls, &pair));
        *out_pair = pair;
        return STATUS_OK;
}

static void take_pair(void *tls, void *pair)
{
        tls_take(tls, pair);
}

static void drop_pair(void *pair)
{
        tls_pair_free(pair);
}

static Status open_files(const Options *options, Door *door)
{
        ReloadSource sources[RELOAD_MAX_SOURCES];
        int n = 0;
        if (door->auth != NULL)
                sources[n++] = (ReloadSource){ .what = "tokens",
                                               .paths = { options->token_file },
                                               .flags = { "--token-file" },
                                               .read = read_tokens,
                                               .take = take_tokens,
                                               .drop = drop_tokens,
                                               .context = door->auth };
        if (door->tls != NULL)
                sources[n++] = (ReloadSource){ .what = "certificate",
                                               .paths = { options->tls_cert, options->tls_key },
                                               .flags = { "--tls-cert", "--tls-key" },
                                               .read = read_pair,
                                               .take = take_pair,
                                               .drop = drop_pair,
                                               .context = door->tls };
        return reload_open(sources, n, &door->reload);
}

// ---- the door ----
Status door_open(const Options *options, const char *host, bool is_loopback, Door *door)
{
        bool open_to_all = options->no_auth[0] != '\0', with_tokens = options->token_file[0] != '\0';
        if (with_tokens && open_to_all)
                return fail(STATUS_USAGE, "--token-file and --no-auth contradict each other");
        if (!is_loopback && !with_tokens && !open_to_all)
                return fail(STATUS_USAGE,
                            "%s is reachable from other machines and nothing checks who calls: listen on "
                            "127.0.0.1, give a --token-file, or "
                            "say --no-auth",
                            host);
        TRY(tls_new(options->tls_cert, options->tls_key, &door->tls));
        if (with_tokens)
                TRY(auth_new(options->token_file, &door->auth));
        return open_files(options, door);
}

void door_watch(Door *door, uv_loop_t *loop)
{
        reload_start(door->reload, loop);
}

void door_reload(Door *door)
{
        if (door->reload != NULL)
                reload_now(door->reload);
}

void door_stop(Door *door)
{
        reload_stop(door->reload);
}

void door_deinit(Door *door)
{
        door->reload = reload_free(door->reload);
        door->auth = auth_free(door->auth);
        door->tls = tls_free(door->tls);
}

void door_facts(const Door *door, ServerFacts *facts)
{
        if (door->auth != NULL)
                auth_refusals(door->auth, facts->n_refused);
        facts->certificate_expires_s = tls_expires(door->tls);
        facts->n_files = reload_count(door->reload);
        for (int i = 0; i < facts->n_files; i++) {
                facts->files[i].what = reload_what(door->reload, i);
                facts->files[i].stale = reload_failing(door->reload, i);
        }
}
