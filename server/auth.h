// SPDX-License-Identifier: Apache-2.0
// Who may call: bearer tokens with scopes, from a file. Loop thread only.
#pragma once
#include "api/call.h"

typedef struct Auth Auth;

// The caller's address: 16 bytes, IPv4 mapped into IPv6.
typedef struct AuthAddress {
        uint8_t bytes[16];
} AuthAddress;

// Lines of the file: `token scope[,scope]`, scopes read, run, write, admin (all of them); `#` begins a comment. STATUS_USAGE names the
// line, never what is in it.
Status auth_open(const char *path, Auth **out_auth);
// Reads the file again. What does not read well leaves the tokens as they were.
Status auth_reload(Auth *auth);
Auth *auth_close(Auth *auth);
// `authorization` is the header's value or NULL. STATUS_TOKEN, STATUS_SCOPE naming what is missing, STATUS_TOO_MANY after many wrong tokens
// from one address; a right one is taken even then.
Status auth_check(Auth *auth, const char *authorization, const AuthAddress *address, RouteId route);
