// SPDX-License-Identifier: Apache-2.0
// Files that are read again when they change on disk: the tokens, the certificate with its key.
// Loop thread, unless said otherwise.
#pragma once
#include <uv.h>
#include "api/call.h"

typedef struct Reload Reload;

enum { RELOAD_MAX_SOURCES = SERVER_MAX_FILES, RELOAD_MAX_PATHS = 2 };

// Files that are read together and make one value.
typedef struct ReloadSource {
        const char *what; // for the log
        const char *paths[RELOAD_MAX_PATHS];
        const char *flags[RELOAD_MAX_PATHS];                   // that gave them
        Status (*read)(const void *context, void **out_value); // any thread
        void (*take)(void *context, void *value);              // owns the value from then on
        void (*drop)(void *value);                             // for a value that was read too late
        void *context;
} ReloadSource;

// Reads all sources; the failure of one is the caller's, and names its files. `n_sources` may be 0.
// Sources and what they point at outlive the Reload.
Status reload_open(const ReloadSource *sources, int n_sources, Reload **out_reload);
// Begins to watch for changes. A file that cannot be read is logged once and leaves the value
// unchanged.
void reload_start(Reload *reload, uv_loop_t *loop);
// Reads all of them soon, changed or not, and logs it.
void reload_now(Reload *reload);
int reload_count(const Reload *reload);
const char *reload_what(const Reload *reload, int source);
// True if the last reading of that source (its index) did not succeed.
bool reload_failing(const Reload *reload, int source);
// Closes its handles: free it when the loop has ended. NULL, or never started: nothing to do.
void reload_stop(Reload *reload);
Reload *reload_free(Reload *reload);
