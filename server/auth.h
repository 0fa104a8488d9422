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

// `path` is borrowed; nothing is read yet, and nobody may call until tokens are taken.
Status auth_new(const char *path, Auth **out_auth);
Auth *auth_free(Auth *auth);
// Lines of the file: `token scope[,scope] [name]`, scopes read, run, write, admin (all of them);
// `#` begins a comment. STATUS_USAGE names the line, never what is in it. Any thread.
Status auth_read(const Auth *auth, AuthTokens **out_tokens);
AuthTokens *auth_tokens_free(AuthTokens *tokens);
// These may call from now on, and nobody else.
void auth_take(Auth *auth, AuthTokens *tokens);
// `authorization` is the header's value or NULL. STATUS_TOKEN, STATUS_SCOPE naming what is missing,
// STATUS_TOO_MANY after many wrong tokens from one address; a right one is taken even then.
// `out_name`: of the token, for the log, `line-N` if it has none; "" if it is not known or not
// needed.
Status auth_check(Auth *auth, const char *authorization, const AuthAddress *address, RouteId route,
                  char out_name[AUTH_NAME_MAX + 1]);
