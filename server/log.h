// SPDX-License-Identifier: Apache-2.0
// Log lines through a bounded ring and a writer thread: nobody waits for a slow terminal or pipe. Lines that do not fit are counted, and
// the count is written once there is room. Any thread.
#pragma once

#include <stdbool.h>

// Starts the writer thread (to standard error).
bool log_start(void);
// Writes what is left and ends the thread.
void log_stop(void);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
