// SPDX-License-Identifier: Apache-2.0
// Only SHA-256 digests of tokens are kept. A client's token is hashed and compared with all of
// them, every byte, so that the time taken says nothing about how much of a token was right. Wrong
// tokens are counted per address (IPv6: per /64) in a table of fixed size; an address that loses
// its slot starts again.
#include "server/auth.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/limits.h"
#include "core/base/memory.h"
#include "core/base/text.h"

enum { FILE_MAX = 1 << 20, TOKENS_MAX = 4096, TOKEN_MIN = 16, TOKEN_MAX = 512, SLOTS = 4096 };
static const int64_t WINDOW_NS = 10000000000;

static const struct {
        const char *name;
        int bits;
} scopes[] = { { "read", SCOPE_READ },
               { "run", SCOPE_RUN },
               { "write", SCOPE_WRITE },
               { "admin", SCOPE_READ | SCOPE_RUN | SCOPE_WRITE | SCOPE_ADMIN } };

typedef struct Token {
        HashHex digest;
        int scopes;
        char name[AUTH_NAME_MAX + 1]; // for the log
        Quota *quota;                 // counted; NULL: without bounds
} Token;

typedef struct Slot {
        AuthAddress address;
        int64_t since_ns;
        uint32_t n_wrong;
} Slot;

struct AuthTokens {
        uint32_t n;
        Token rows[];
};

struct Auth {
        const char *path; // borrowed
        AuthTokens *tokens;
        Quota *accepted;                 // borrowed, of the token that auth_check accepted
        uint64_t n_refused[QUOTA_KINDS]; // by quotas that are no more
        Slot slots[SLOTS];
};

// Compares every byte, wherever the first difference is.
static bool same_digest(const HashHex *a, const HashHex *b)
{
        volatile uint8_t difference = 0;
        for (size_t i = 0; i < sizeof(a->hex); i++)
                difference |= (uint8_t)(a->hex[i] ^ b->hex[i]);
        return difference == 0;
}

// ---- the file ----
#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
static const char allowed_in_tokens[] = LETTERS_AND_DIGITS "-._~+/=",
                  allowed_in_names[] = LETTERS_AND_DIGITS "-._";

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

static Status read_scopes(const char *text, size_t n, int line, int *out_scopes)
{
        int bits = 0;
        while (n > 0) {
                const char *comma = memchr(text, ',', n);
                size_t length = comma == NULL ? n : (size_t)(comma - text);
                int found = 0;
                for (size_t i = 0; i < ARRAY_LENGTH(scopes); i++)
                        if (strlen(scopes[i].name) == length && memcmp(scopes[i].name, text, length) == 0)
                                found = scopes[i].bits;
                if (found == 0)
                        return fail(
                                STATUS_USAGE,
                                "--token-file, line %d: scopes are read, run, write and admin, with commas",
                                line);
                bits |= found;
                n -= comma == NULL ? n : length + 1;
                text += length + 1;
        }
        if (bits == 0)
                return fail(STATUS_USAGE,
                            "--token-file, line %d: a token and its scopes, as in: <token> read,run name",
                            line);
        *out_scopes = bits;
        return STATUS_OK;
}

// quota=number; `text` is not terminated.
static Status read_quota(const char *text, size_t n, int line, Token *token)
{
        const char *equals = memchr(text, '=', n);
        size_t n_name = (size_t)(equals - text), at = n_name + 1;
        int64_t most = 0;
        int kind = 0;
        while (kind < QUOTA_KINDS &&
               (strlen(quota_names[kind]) != n_name || memcmp(quota_names[kind], text, n_name) != 0))
                kind++;
        for (; at < n && text[at] >= '0' && text[at] <= '9' && most < INT64_MAX / 100; at++)
                most = most * 10 + (text[at] - '0');
        if (kind == QUOTA_KINDS || at < n || most == 0)
                return fail(
                        STATUS_USAGE,
                        "--token-file, line %d: quotas are requests=N, queue=N, graphs=N and bytes=N with a "
                        "number from 1 on",
                        line);
        if (token->quota == NULL)
                TRY(quota_new(&token->quota));
        atomic_store(&token->quota->most[kind], most);
        return STATUS_OK;
}

// `text` begins at the scopes.
static Status read_rest(const char *text, size_t n, int line, Token *out_token)
{
        size_t n_scopes = 0, at, n_name;
        while (n_scopes < n && !is_blank(text[n_scopes]))
                n_scopes++;
        TRY(read_scopes(text, n_scopes, line, &out_token->scopes));
        for (at = n_scopes; at < n && is_blank(text[at]); at++) {
        }
        // Sessions and uploads belong to this name: it stays when lines before it go.
        snprintf(out_token->name, sizeof(out_token->name), "token-%.10s", out_token->digest.hex);
        for (size_t end = n; end > at; n = end) {
                size_t word = end;
                while (word > at && !is_blank(text[word - 1]))
                        word--;
                if (memchr(text + word, '=', end - word) == NULL)
                        break;
                TRY(read_quota(text + word, end - word, line, out_token));
                for (end = word; end > at && is_blank(text[end - 1]); end--) {
                }
        }
        n_name = n - at;
        if (n_name == 0)
                return STATUS_OK;
        for (size_t i = 0; i < n_name; i++)
                if (n_name > AUTH_NAME_MAX || text[at + i] == '\0' ||
                    strchr(allowed_in_names, text[at + i]) == NULL)
                        return fail(STATUS_USAGE,
                                    "--token-file, line %d: a name has up to %d letters, digits and -._ only",
                                    line, AUTH_NAME_MAX);
        memcpy(out_token->name, text + at, n_name);
        out_token->name[n_name] = '\0';
        return STATUS_OK;
}

static Status read_line(const char *text, size_t n, int line, Token *out_token)
{
        size_t n_token = 0, at, end = n;
        while (n_token < n && !is_blank(text[n_token])) {
                if (text[n_token] == '\0' || strchr(allowed_in_tokens, text[n_token]) == NULL)
                        return fail(STATUS_USAGE,
                                    "--token-file, line %d: a token has letters, digits and -._~+/= only",
                                    line);
                n_token++;
        }
        if (n_token < TOKEN_MIN || n_token > TOKEN_MAX)
                return fail(STATUS_USAGE,
                            "--token-file, line %d: a token has %d to %d characters; make one with: openssl "
                            "rand -hex 32",
                            line, TOKEN_MIN, TOKEN_MAX);
        for (at = n_token; at < n && is_blank(text[at]); at++) {
        }
        while (end > at && is_blank(text[end - 1]))
                end--;
        out_token->digest = sha256_of(text, n_token);
        return read_rest(text + at, end - at, line, out_token);
}

static Status read_tokens(const char *text, size_t n, Token *tokens, uint32_t *out_n)
{
        uint32_t n_tokens = 0;
        int line = 0;
        for (size_t at = 0; at < n;) {
                const char *end = memchr(text + at, '\n', n - at);
                size_t length = end == NULL ? n - at : (size_t)(end - (text + at)), next = at + length + 1;
                line++;
                const char *comment = memchr(text + at, '#', length);
                length = comment == NULL ? length : (size_t)(comment - (text + at));
                while (length > 0 && strchr(" \t\r", text[at + length - 1]) != NULL &&
                       text[at + length - 1] != '\0')
                        length--;
                if (length > 0) {
                        if (n_tokens == TOKENS_MAX)
                                return fail(STATUS_USAGE, "--token-file holds more than %d tokens",
                                            TOKENS_MAX);
                        *out_n = n_tokens + 1; // with what it has of its quota
                        TRY(read_line(text + at, length, line, &tokens[n_tokens]));
                        n_tokens++;
                }
                at = next;
        }
        if (n_tokens == 0)
                return fail(STATUS_USAGE, "--token-file holds no token: nobody could call");
        *out_n = n_tokens;
        return STATUS_OK;
}

static Status read_file(const char *path, char *bytes, size_t *out_n)
{
        size_t n = 0;
        ssize_t got;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fail(STATUS_USAGE, "--token-file cannot be read");
        while (n < FILE_MAX && (got = read(fd, bytes + n, FILE_MAX - n)) > 0)
                n += (size_t)got;
        close(fd);
        if (n == FILE_MAX)
                return fail(STATUS_USAGE, "--token-file is larger than %d bytes", FILE_MAX);
        *out_n = n;
        return STATUS_OK;
}

Status auth_read(const Auth *auth, AuthTokens **out_tokens)
{
        char *bytes = malloc(FILE_MAX);
        AuthTokens *tokens = calloc(1, sizeof(*tokens) + TOKENS_MAX * sizeof(tokens->rows[0]));
        size_t n = 0;
        Status status = bytes == NULL || tokens == NULL ? fail_memory() : read_file(auth->path, bytes, &n);
        if (status == STATUS_OK)
                status = read_tokens(bytes, n, tokens->rows, &tokens->n);
        if (bytes != NULL)
                explicit_bzero(bytes, n);
        free(bytes);
        if (status != STATUS_OK)
                auth_tokens_free(tokens);
        else
                *out_tokens = tokens;
        return status;
}

AuthTokens *auth_tokens_free(AuthTokens *tokens)
{
        for (uint32_t i = 0; tokens != NULL && i < tokens->n; i++)
                quota_unref(tokens->rows[i].quota);
        free(tokens);
        return NULL;
}

// The bounds are the new ones, what is in use stays.
static void keep_use(Token *token, const AuthTokens *before)
{
        for (uint32_t i = 0; i < before->n; i++) {
                Quota *quota = before->rows[i].quota;
                if (quota == NULL ||
                    memcmp(&token->digest, &before->rows[i].digest, sizeof(token->digest)) != 0)
                        continue;
                for (int kind = 0; kind < QUOTA_KINDS; kind++)
                        atomic_store(&quota->most[kind], atomic_load(&token->quota->most[kind]));
                quota_unref(token->quota);
                token->quota = quota_ref(quota);
                return;
        }
}

static void add_refusals(const AuthTokens *tokens, uint64_t refused[QUOTA_KINDS])
{
        for (uint32_t i = 0; tokens != NULL && i < tokens->n; i++)
                for (int kind = 0; tokens->rows[i].quota != NULL && kind < QUOTA_KINDS; kind++)
                        refused[kind] += atomic_load(&tokens->rows[i].quota->n_refused[kind]);
}

void auth_refusals(const Auth *auth, uint64_t out_refused[QUOTA_KINDS])
{
        memcpy(out_refused, auth->n_refused, sizeof(auth->n_refused));
        add_refusals(auth->tokens, out_refused);
}

void auth_take(Auth *auth, AuthTokens *tokens)
{
        uint64_t before[QUOTA_KINDS], after[QUOTA_KINDS] = { 0 };
        auth_refusals(auth, before);
        for (uint32_t i = 0; auth->tokens != NULL && i < tokens->n; i++)
                if (tokens->rows[i].quota != NULL)
                        keep_use(&tokens->rows[i], auth->tokens);
        add_refusals(tokens, after);
        for (int kind = 0; kind < QUOTA_KINDS; kind++)
                auth->n_refused[kind] = before[kind] - after[kind];
        auth_tokens_free(auth->tokens);
        auth->tokens = tokens;
        auth->accepted = NULL;
}

Quota *auth_quota(const Auth *auth)
{
        return auth->accepted;
}

Status auth_new(const char *path, Auth **out_auth)
{
        Auth *auth = calloc(1, sizeof(*auth));
        if (auth == NULL)
                return fail_memory();
        auth->path = path;
        *out_auth = auth;
        return STATUS_OK;
}

Auth *auth_free(Auth *auth)
{
        if (auth == NULL)
                return NULL;
        auth_tokens_free(auth->tokens);
        free(auth);
        return NULL;
}

// ---- checks ----
static const char *scope_name(int bit)
{
        for (size_t i = 0; i < ARRAY_LENGTH(scopes); i++)
                if (scopes[i].bits == bit)
                        return scopes[i].name;
        return "admin";
}

static Slot *slot_of(Auth *auth, const AuthAddress *address)
{
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
        AuthAddress key = *address;
        if (memcmp(key.bytes, mapped, sizeof(mapped)) != 0)
                memset(key.bytes + 8, 0, 8);
        uint64_t hash = 14695981039346656037u;
        for (size_t i = 0; i < sizeof(key.bytes); i++)
                hash = (hash ^ key.bytes[i]) * 1099511628211u;
        Slot *slot = &auth->slots[hash >> 32 & (SLOTS - 1)];
        if (memcmp(&slot->address, &key, sizeof(key)) != 0)
                *slot = (Slot){ .address = key };
        return slot;
}

static Status refuse_wrong(Auth *auth, const AuthAddress *address)
{
        Slot *slot = slot_of(auth, address);
        int64_t now = clock_ns();
        if (slot->n_wrong == 0 || now - slot->since_ns > WINDOW_NS)
                *slot = (Slot){ .address = slot->address, .since_ns = now };
        if (slot->n_wrong < UINT32_MAX)
                slot->n_wrong++;
        if (slot->n_wrong > (uint64_t)limits.max_wrong_tokens)
                return fail(STATUS_TOO_MANY,
                            "more than %lld wrong tokens came from this address within 10 seconds "
                            "(--max-wrong-tokens); try again later",
                            (long long)limits.max_wrong_tokens);
        return fail(STATUS_TOKEN, "this token is not known here");
}

// Of all tokens that are equal: they are compared without a shortcut.
static int scopes_of(const Auth *auth, const char *authorization, const Token **out_token)
{
        int has = 0;
        *out_token = NULL;
        const char *token = authorization + strlen("Bearer ");
        HashHex digest = sha256_of(token, strnlen(token, TOKEN_MAX + 1));
        for (uint32_t i = 0; i < auth->tokens->n; i++) {
                bool same = same_digest(&digest, &auth->tokens->rows[i].digest);
                has |= same ? auth->tokens->rows[i].scopes : 0;
                *out_token = same ? &auth->tokens->rows[i] : *out_token;
        }
        return has;
}

unsigned auth_scopes(const Auth *auth, const char *authorization)
{
        const Token *token;
        if (authorization == NULL || strncasecmp(authorization, "Bearer ", 7) != 0)
                return SCOPE_NONE;
        return (unsigned)scopes_of(auth, authorization, &token);
}

Status auth_check(Auth *auth, const char *authorization, const AuthAddress *address, Scope needed,
                  char out_name[AUTH_NAME_MAX + 1])
{
        const Token *token;
        out_name[0] = '\0';
        auth->accepted = NULL;
        if (needed == SCOPE_NONE)
                return STATUS_OK;
        if (authorization == NULL)
                return fail(STATUS_TOKEN, "this server wants a token: Authorization: Bearer <token>");
        if (strncasecmp(authorization, "Bearer ", 7) != 0)
                return fail(STATUS_TOKEN,
                            "this server takes bearer tokens only: Authorization: Bearer <token>");
        int has = scopes_of(auth, authorization, &token);
        if (has == 0)
                return refuse_wrong(auth, address);
        snprintf(out_name, AUTH_NAME_MAX + 1, "%s", token->name);
        if ((has & (int)needed) == 0)
                return fail(STATUS_SCOPE, "this token lacks the scope \"%s\"", scope_name((int)needed));
        auth->accepted = token->quota;
        return STATUS_OK;
}
