// SPDX-License-Identifier: Apache-2.0
// Memory that requests have freed: kept while they go on, given back when they pause. Loop thread.
#pragma once
#include <uv.h>

// Before the first thread is started; `loop` calls back. Free of errors: without it memory is merely given back at other times.
void memory_start(uv_loop_t *loop);
// Something was freed that may have been large.
void memory_freed(void);
void memory_stop(void); // closes what `loop` knows of
