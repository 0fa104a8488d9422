// SPDX-License-Identifier: Apache-2.0
// status.c: one Failure per thread, in thread-local storage, so that recording one needs no memory.
// Messages are formatted aside first: their arguments may point into the Failure that is being
// replaced.
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local Failure current;

static const char *const codes[] = {
#define STATUS(name, code, class) [STATUS_##name] = (code),
#include "core/base/status.def"
#undef STATUS
};

static const StatusClass classes[] = {
#define STATUS(name, code, class) [STATUS_##name] = STATUS_CLASS_##class,
#include "core/base/status.def"
#undef STATUS
};

const char *status_code(Status status)
{
        return (unsigned)status < STATUS_COUNT ? codes[status] : "internal";
}

StatusClass status_class(Status status)
{
        return (unsigned)status < STATUS_COUNT ? classes[status] : STATUS_CLASS_INTERNAL;
}

// Copies at most size - 1 bytes and never leaves half a UTF-8 character behind.
static void copy_cut(char *out, size_t size, const char *text)
{
        size_t n = strnlen(text, size);
        if (n == size) {
                n = size - 1;
                while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
                        n--;
        }
        memcpy(out, text, n);
        out[n] = '\0';
}

Status failure_record(const char *file, int line, Status status, const char *format, ...)
{
        char message[FAILURE_MESSAGE_MAX + 8];
        va_list args;
        if (status == STATUS_OK)
                status = STATUS_INTERNAL;
        va_start(args, format);
        if (vsnprintf(message, sizeof(message), format, args) < 0)
                copy_cut(message, sizeof(message), format);
        va_end(args);
        current.status = status;
        copy_cut(current.message, sizeof(current.message), message);
        current.node[0] = current.argument[0] = current.detail_key[0] = current.detail[0] = '\0';
        current.file = file;
        current.line = line;
        return status;
}

Failure *failure_current(void)
{
        return &current;
}

Status failure_at_node(Status status, const char *node)
{
        if (status != STATUS_OK && current.node[0] == '\0' && node != NULL)
                copy_cut(current.node, sizeof(current.node), node);
        return status;
}

Status failure_at_argument(Status status, const char *argument)
{
        if (status != STATUS_OK && current.argument[0] == '\0' && argument != NULL)
                copy_cut(current.argument, sizeof(current.argument), argument);
        return status;
}

Status failure_detail(Status status, const char *key, const char *text)
{
        if (status != STATUS_OK && current.detail_key[0] == '\0' && key != NULL && text != NULL) {
                copy_cut(current.detail_key, sizeof(current.detail_key), key);
                copy_cut(current.detail, sizeof(current.detail), text);
        }
        return status;
}

Status failure_members(Status status, const char *members, size_t n)
{
        if (status == STATUS_OK || n >= sizeof(current.detail))
                return status;
        memcpy(current.detail, members, n);
        current.detail[n] = current.detail_key[0] = '\0';
        return status;
}

void failure_append(const char *format, ...)
{
        char more[FAILURE_MESSAGE_MAX + 8];
        va_list args;
        va_start(args, format);
        if (vsnprintf(more, sizeof(more), format, args) < 0)
                more[0] = '\0';
        va_end(args);
        size_t n = strlen(current.message);
        copy_cut(current.message + n, sizeof(current.message) - n, more);
}
