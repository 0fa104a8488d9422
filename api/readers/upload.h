// SPDX-License-Identifier: Apache-2.0
// Uploaded bytes -> a finished, resolved graph. The only place that knows which reader a file
// belongs to.
#pragma once
#include "core/engine/put.h"

#define UPLOAD_OPERATOR "op:" // begins the names of parts that are operators
enum { UPLOAD_OPERATOR_MAX = 127 };
typedef struct UploadOperator {
        char part[UPLOAD_OPERATOR_MAX + 1]; // "op:mylib.foo"
        Storage *bytes;                     // counted
} UploadOperator;
typedef struct Upload {
        UploadPart parts[STORE_MAX_PARTS]; // storages counted
        Pieces pieces[STORE_MAX_PARTS];    // of the parts, for engine_collect
        uint32_t n_parts;
        UploadOperator *operators; // graphs that stand for operators (operators.h); owned
        uint32_t n_operators;
        Storage *image;     // settings for images, JSON; counted, NULL: none
        const char *format; // "pt2", "fx"
} Upload;
void upload_deinit(Upload *upload);
// Splits a body by content (and multipart by its content type) and recognises it. Wrong files fail
// with STATUS_WRONG_FILE; the message says what to send instead.
Status upload_split(Storage *body, const char *content_type, Upload *out_upload);
// Before it is decoded, of an upload over HTTP: STATUS_TOO_LARGE if its archive inflates to more
// than --max-upload.
Status upload_check_inflated(const Upload *upload);
// The parts are files of this machine. After engine_collect, if that is called.
void upload_mark_local(Upload *upload);
// Reads, resolves and checks: STATUS_UNSUPPORTED / MISSING_STATE / UNKNOWN_CONFIG with the full
// list when `strict`. Not strict (printing): resolves as much as possible.
Status upload_decode(const UploadPart *parts, uint32_t n_parts, const char *model, bool strict,
                     Graph **out_graph);
// The same within a run: STATUS_CANCELLED, STATUS_DEADLINE. `poll` may be NULL.
Status upload_decode_within(const UploadPart *parts, uint32_t n_parts, const char *model, bool strict,
                            const RunContext *poll, Graph **out_graph);
// upload_decode, and it can run: when an upload is collected for the store, upload_decode's weights
// lie wherever they do in the body. Here they lie as their types want it.
Status upload_decode_to_run(const Upload *upload, const char *model, bool strict, Graph **out_graph);
// The GraphLoader of engine_open.
extern const GraphLoader upload_loader;
