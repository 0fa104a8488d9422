// SPDX-License-Identifier: Apache-2.0
// oneDNN's calls may set how many threads the calling thread's OpenMP regions have. Who runs on
// threads that are not ours puts that back.
#pragma once
int caller_threads(void);
void caller_threads_restore(int n_threads);
