// SPDX-License-Identifier: Apache-2.0
// Local files take the same way as uploads, so that `fxserve check` says what PUT would say.
#include "server/preload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
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
        if (info.st_size > limits.max_upload)
                return fail(STATUS_TOO_LARGE, "%s has %lld bytes; the limit is %lld (--max-upload, FXSERVE_MAX_UPLOAD)", path,
                            (long long)info.st_size, (long long)limits.max_upload);
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

static void name_of(const char *path, char out[65])
{
        const char *base = strrchr(path, '/');
        snprintf(out, 65, "%.64s", base == NULL ? path : base + 1);
        size_t n = strlen(out);
        static const char *const endings[] = { ".fx.json", ".pt2", ".json" };
        for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
                size_t length = strlen(endings[i]);
                if (n > length && strcmp(out + n - length, endings[i]) == 0) {
                        out[n - length] = '\0';
                        return;
                }
        }
}

static Status put(Engine *engine, const char *path, const Upload *upload, GraphVersion **out_version)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        StoreVersion identified;
        char name[65];
        bool created;
        name_of(path, name);
        TRY(upload_identify(upload->parts, upload->n_parts, NULL, upload->format, &identified));
        TRY(upload_decode(upload->parts, upload->n_parts, NULL, true, &graph));
        return engine_put(engine, name, upload->parts, upload->n_parts, &identified, graph, out_version, &created);
}

Status preload_file(Engine *engine, const char *path, GraphVersion **out_version)
{
        Upload upload = { .n_parts = 0 };
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(file_read(path, &bytes));
        TRY(upload_split(bytes, "", &upload));
        engine_collect(engine, upload.parts, upload.n_parts, upload.pieces);
        Status status = put(engine, path, &upload, out_version);
        upload_deinit(&upload);
        return status;
}

Status file_decode(const char *path, const char *model, bool strict, Graph **out_graph)
{
        Upload upload = { .n_parts = 0 };
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(file_read(path, &bytes));
        TRY(upload_split(bytes, "", &upload));
        Status status = upload_decode(upload.parts, upload.n_parts, model, strict, out_graph);
        upload_deinit(&upload);
        return status;
}
