// SPDX-License-Identifier: Apache-2.0
// Status: the one way a function says that it failed. OK is zero and free.
//
// Two classes (status.def): CALLER failures carry a code, a message and a place (node, argument)
// and travel to the client; INTERNAL failures are logged in full and shown as "internal error". The
// text lives in one fixed-size, thread-local Failure, so that it survives out-of-memory; whoever
// hands work to another thread copies it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Status {
#define STATUS(name, code, class) STATUS_##name,
#include "core/base/status.def"
#undef STATUS
        STATUS_COUNT
} Status;

typedef enum StatusClass { STATUS_CLASS_OK, STATUS_CLASS_CALLER, STATUS_CLASS_INTERNAL } StatusClass;

enum { FAILURE_MESSAGE_MAX = 8192, FAILURE_PLACE_MAX = 160, FAILURE_DETAIL_MAX = 4096 };

// The last failure of a thread. Strings are NUL-terminated, cut when too long. Empty string = not
// known.
typedef struct Failure {
        Status status;
        // first line: one sentence; run failures go on with "While executing ..."
        char message[FAILURE_MESSAGE_MAX];
        char node[FAILURE_PLACE_MAX];     // name of the authored node
        char argument[FAILURE_PLACE_MAX]; // argument, input or field
        char detail_key[32];              // member of the reply's "details", e.g. "guard"
        // its text value; without a key: JSON members of "details"
        char detail[FAILURE_DETAIL_MAX];
        const char *file; // origin, for INTERNAL failures
        int line;
} Failure;

// The machine-readable code on the wire ("shape_mismatch"). Static string.
const char *status_code(Status status);
StatusClass status_class(Status status);

// Records a failure for this thread (place and details are cleared) and returns `status`, for
// `return fail(...)`.
#define fail(status, ...) failure_returned(failure_record(__FILE__, __LINE__, (status), __VA_ARGS__))
Status failure_record(const char *file, int line, Status status, const char *format, ...)
        __attribute__((format(printf, 4, 5), cold));

// Out of memory: message fixed, nothing formatted from the heap.
#define fail_memory() failure_returned(failure_record(__FILE__, __LINE__, STATUS_NO_MEMORY, "out of memory"))
// Tells the compiler that a failure is never OK (failure_record makes STATUS_OK an internal error),
// so that it can follow what TRY skips.
static inline Status failure_returned(Status status)
{
        if (status == STATUS_OK)
                __builtin_unreachable();
        return status;
}

// This thread's last failure; never NULL. Valid until the next fail() on this thread.
Failure *failure_current(void);
// Fill in what deeper code could not know. Each keeps an earlier, more precise value. Return
// `status` unchanged.
Status failure_at_node(Status status, const char *node);
Status failure_at_argument(Status status, const char *argument);
Status failure_detail(Status status, const char *key, const char *text);
// `n` bytes of JSON members ("a": 1, "b": []), shorter than FAILURE_DETAIL_MAX, in the place of one
// text.
Status failure_members(Status status, const char *members, size_t n);
// Appends to the message (for "While executing ..."); cut at the cap.
void failure_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define TRY(expression)                                                                                      \
        do {                                                                                                 \
                Status try_status_ = (expression);                                                           \
                if (__builtin_expect(try_status_ != STATUS_OK, 0))                                           \
                        return try_status_;                                                                  \
        } while (0)
