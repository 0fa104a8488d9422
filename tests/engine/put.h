// SPDX-License-Identifier: Apache-2.0
// FX JSON as a graph of an engine.
#pragma once
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/upload.h"

// `model` may be NULL: which of several the text is.
static inline GraphVersion *put_graph(Engine *engine, const char *name, const char *text, const char *model)
{
        Storage *bytes = NULL;
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        cr_assert_eq(storage_new(strlen(text), false, NULL, &bytes), STATUS_OK);
        memcpy(bytes->data, text, strlen(text));
        UploadPart part = { .name = "", .bytes = bytes };
        cr_assert_eq(upload_identify(&part, 1, model, "fx", &identified), STATUS_OK);
        cr_assert_eq(upload_decode(&part, 1, NULL, true, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        PutRequest put = {
                .name = name, .parts = &part, .n_parts = 1, .identified = &identified, .graph = graph
        };
        cr_assert_eq(engine_put(engine, &put, &version, &created), STATUS_OK);
        graph_unref(graph);
        storage_unref(bytes);
        return version;
}
