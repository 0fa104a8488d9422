// SPDX-License-Identifier: Apache-2.0
// `fxserve serve`: opens the engine, preloads files, listens, serves until SIGTERM or SIGINT,
// drains.
#pragma once
#include "server/options.h"

// Returns the process's exit code: 0 drained, 1 failure, 2 usage. Messages go to standard error,
// `listening on http://...` to standard output.
int server_main(const Options *options);
