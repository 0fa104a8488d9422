// SPDX-License-Identifier: Apache-2.0
// Files inside one folder, by descriptor: no path is ever joined, links are not followed.
#pragma once
#include "core/base/span.h"
#include "core/base/status.h"

// Opens (creating if `create`) the folder `name` below `parent` (AT_FDCWD for the top one, which
// alone may be a link). Returns its descriptor in *out_fd. STATUS_USAGE: it is no folder.
Status folder_open(int parent, const char *name, bool create, int *out_fd);
// A file's content as ascending ranges. Bytes outside of the ranges read as zeros and take no space
// on disk.
typedef struct FolderRange {
        uint64_t offset;
        ByteSpan bytes;
} FolderRange;
// All of it; errno, or 0.
int folder_write_range(int fd, const FolderRange *range);
typedef struct FolderContent {
        const FolderRange *ranges;
        uint32_t n_ranges;
        uint64_t n_bytes;
} FolderContent;

// Writes the whole file durably: tmp/<unique>, fsync, rename into `folder` as `name`, fsync the
// folder.
Status folder_write(int tmp, int folder, const char *name, ByteSpan bytes, unsigned mode);
// The same without the last step: folder_sync once for many files.
Status folder_write_content(int tmp, int folder, const char *name, const FolderContent *content,
                            unsigned mode);
Status folder_sync(int folder);
// Whether it is a name that the two above give to a file in `tmp`.
bool folder_is_unfinished(const char *name);
// Whether the file `name` is there and its ranges and size are those of `content`.
bool folder_has_content(int folder, const char *name, const FolderContent *content);
// A file without a name, for reading and writing. It is gone when its descriptor and all mappings
// are closed, even after a crash.
Status folder_unnamed(int folder, int *out_fd);
// Opens a file to read. *out_missing: there is none (STATUS_OK). STATUS_DAMAGED: it is a link,
// pipe, device or folder. Such a file is not opened, because that could block.
Status folder_open_file(int folder, const char *name, int *out_fd, bool *out_missing);
// Whether it is there as anything but a regular file.
bool folder_is_irregular(int folder, const char *name);
// Reads at most `max_bytes` (STATUS_TOO_LARGE beyond); caller frees. *out_missing as above.
Status folder_read(int folder, const char *name, size_t max_bytes, char **out_text, size_t *out_n,
                   bool *out_missing);
// Unlinks and fsyncs the folder; a missing file is fine.
Status folder_remove(int folder, const char *name);
// Calls visit with every regular entry's name ("." files skipped).
Status folder_each(int folder, Status (*visit)(void *context, const char *name), void *context);
// errno as a Status with a message that names `what`, never a path.
Status folder_fail(const char *what, int error);
Status folder_fail_reading(int error);
