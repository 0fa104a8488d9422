// SPDX-License-Identifier: Apache-2.0
#include "api/readers/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/readers/upload.h"
#include "core/base/limits.h"

static void closep(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

Status file_read(const char *path, Storage **out_bytes)
{
        struct stat info;
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &info) != 0)
                return fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
        if (!S_ISREG(info.st_mode))
                return fail(STATUS_USAGE, "%s is not a regular file", path);
        if (limits.max_memory > 0 && info.st_size > limits.max_memory)
                return fail(STATUS_TOO_LARGE,
                            "%s has %lld bytes; the process may have %lld (--max-memory, FXSERVE_MAX_MEMORY)",
                            path, (long long)info.st_size, (long long)limits.max_memory);
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(storage_new((size_t)info.st_size, false, NULL, &bytes));
        for (size_t done = 0; done < bytes->n_bytes;) {
                ssize_t got = read(fd, bytes->data + done, bytes->n_bytes - done);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return fail(STATUS_USAGE, "%s could not be read to its end", path);
                done += (size_t)got;
        }
        bytes->readonly = true;
        *out_bytes = take_ptr(bytes);
        return STATUS_OK;
}

static Status add_weights(const char *path, Upload *upload)
{
        Storage *bytes = NULL;
        if (path == NULL)
                return STATUS_OK;
        if (strcmp(upload->format, "fx") != 0)
                return fail(STATUS_USAGE, "--weights %s: a .pt2 file has its own; FX JSON takes others",
                            path);
        TRY(file_read(path, &bytes));
        upload->parts[upload->n_parts++] = (UploadPart){ .name = "weights", .bytes = bytes };
        return STATUS_OK;
}

static Status decode(Storage *bytes, const char *weights, const char *model, bool strict, Graph **out_graph)
{
        Upload upload = { .n_parts = 0 };
        TRY(upload_split(bytes, "", &upload));
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        Status status = add_weights(weights, &upload);
        upload_mark_local(&upload);
        if (status == STATUS_OK)
                status = upload_decode(upload.parts, upload.n_parts, model, strict, &graph);
        if (status == STATUS_OK && strict)
                status = engine_check(graph);
        upload_deinit(&upload);
        TRY(status);
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

Status bytes_decode(Storage *bytes, const char *model, bool strict, Graph **out_graph)
{
        return decode(bytes, NULL, model, strict, out_graph);
}

Status file_decode(const char *path, const char *weights, bool strict, Graph **out_graph)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(file_read(path, &bytes));
        return decode(bytes, weights, NULL, strict, out_graph);
}
