// SPDX-License-Identifier: Apache-2.0
// Who may call: bearer tokens with scopes, from a file. Loop thread, unless said otherwise.
#pragma once
#include "api/call.h"

typedef struct Auth Auth;
typedef struct AuthTokens AuthTokens; // as read from the file

enum { AUTH_NAME_MAX = 64 };

// The caller's address: 16 bytes, IPv4 mapped into IPv6.
typedef struct AuthAddress {
        uint8_t bytes[16];
} AuthAddress;

// `path` is borrowed. Nothing is read yet; until tokens are taken, every call is refused.
Status auth_new(const char *path, Auth **out_auth);
Auth *auth_free(Auth *auth);
// Lines of the file: `token scope[,scope] [name] [quota=number ...]`, scopes read, run, write,
// admin (all of them), quotas as in quota_names; `#` begins a comment. STATUS_USAGE names the line,
// never what is in it. Any thread.
Status auth_read(const Auth *auth, AuthTokens **out_tokens);
AuthTokens *auth_tokens_free(AuthTokens *tokens);
// Replaces the tokens: only these may call from now on. Those that were there keep what their
// requests use of their quotas.
void auth_take(Auth *auth, AuthTokens *tokens);
// `authorization` is the header's value or NULL. STATUS_TOKEN. STATUS_SCOPE names the missing
// scope. STATUS_TOO_MANY after many wrong tokens from one address; a right token is accepted even
// then. `out_name`: the token's name, `token-` and the begin of its SHA-256 if it has none; "" if
// it is unknown or not needed.
Status auth_check(Auth *auth, const char *authorization, const AuthAddress *address, Scope needed,
                  char out_name[AUTH_NAME_MAX + 1]);
// Of the token that auth_check accepted last; borrowed, NULL: it has none.
Quota *auth_quota(const Auth *auth);
// How often each quota refused, of all tokens since the start.
void auth_refusals(const Auth *auth, uint64_t out_refused[QUOTA_KINDS]);
// All that the token allows, as a sum of Scope; SCOPE_NONE for one that is unknown.
unsigned auth_scopes(const Auth *auth, const char *authorization);
