// SPDX-License-Identifier: Apache-2.0
// Who may call, and how their bytes are protected: the tokens and the certificate, read now and
// again whenever their files change. Loop thread.
#pragma once
#include "server/auth.h"
#include "server/options.h"
#include "server/reload.h"
#include "server/tls.h"

typedef struct Door {
        Auth *auth; // NULL: no tokens
        Tls *tls;   // NULL: plain HTTP
        Reload *reload;
} Door;

// STATUS_USAGE says what is wrong with which flag. `host` is what is listened on, for the message.
Status door_open(const Options *options, const char *host, bool is_loopback, Door *door);
// Begins to look for changed files.
void door_watch(Door *door, uv_loop_t *loop);
// Reads all files again soon, changed or not.
void door_reload(Door *door);
// Before the loop can end. A Door that is all zeros, or was never watched: nothing to do.
void door_stop(Door *door);
void door_deinit(Door *door);
// Its part of /metrics.
void door_facts(const Door *door, ServerFacts *facts);
