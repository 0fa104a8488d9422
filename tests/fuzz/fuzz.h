// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. A target defines fuzz_one; libFuzzer drives it (fuzz_NAME, clang
// only), or replay.c does over the committed corpus (replay_NAME). A property that does not hold
// ends the process, so that both count it as a crash.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/span.h"
#include "core/tensor/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

// A target may say of its last input that mutants of it are worth more than those of other ones:
// what it describes works. Replays only.
bool fuzz_keep(void) __attribute__((weak));

#define require(condition, ...)                                                                              \
        do {                                                                                                 \
                if (!(condition)) {                                                                          \
                        fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #condition);       \
                        fprintf(stderr, __VA_ARGS__);                                                        \
                        fputc('\n', stderr);                                                                 \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

// A failure must be one: a status with its code and a message.
static inline void require_told(Status status)
{
        require(failure_current()->status == status, "%s is returned, %s is recorded", status_code(status),
                status_code(failure_current()->status));
        require(failure_current()->message[0] != '\0', "%s without a message", status_code(status));
        require(status_class(status) == STATUS_CLASS_CALLER, "an internal error from input: %s",
                failure_current()->message);
}

// A copy of exactly n bytes on the heap, so that a read beyond it is seen.
static inline Storage *fuzz_storage(const uint8_t *data, size_t n)
{
        Storage *storage = NULL;
        require(storage_new(n, false, NULL, &storage) == STATUS_OK, "no memory");
        if (n > 0)
                memcpy(storage->data, data, n);
        return storage;
}
