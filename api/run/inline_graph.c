// SPDX-License-Identifier: Apache-2.0
// POST /v1/run: the graph comes along, as a member of a JSON body or as a part of a form (with its
// weights, if it has any apart). Graphs are cached by content, so that sending one again costs a
// hash.
#include <string.h>
#include "api/run/run_private.h"
#include "api/readers/upload.h"
#include "core/base/limits.h"

// ---- the graph ----
typedef struct InlineParts {
        UploadPart parts[2];
        uint32_t n;
} InlineParts;

static void inline_parts_deinit(InlineParts *parts)
{
        for (uint32_t i = 0; i < parts->n; i++)
                storage_unref(parts->parts[i].bytes);
}

// A copy, for alignment, and because the cached graph's weights may point into it.
static Status add_part(InlineParts *parts, const char *name, ByteSpan content)
{
        Storage *bytes;
        TRY(storage_new(content.n, false, NULL, &bytes));
        if (content.n > 0)
                memcpy(bytes->data, content.data, content.n);
        bytes->readonly = true;
        parts->parts[parts->n++] = (UploadPart){ .name = name, .bytes = bytes };
        return STATUS_OK;
}

static void add_content(Sha256 *sha, ByteSpan content)
{
        uint64_t n = content.n;
        sha256_add(sha, &n, sizeof(n));
        if (n > 0)
                sha256_add(sha, content.data, content.n);
}

// `weights` has no data when there are none.
static Status take_graph(const ApiContext *context, ByteSpan graph, ByteSpan weights, RunCall *run)
{
        _cleanup_(inline_parts_deinit) InlineParts parts = { .n = 0 };
        RegistryKey key;
        Sha256 sha;
        sha256_start(&sha);
        add_content(&sha, graph);
        add_content(&sha, weights);
        sha256_digest(&sha.context, sizeof(key.bytes), key.bytes);
        run->task.graph = engine_cached_graph(context->engine, &key);
        if (run->task.graph != NULL)
                return STATUS_OK;
        TRY(add_part(&parts, weights.data == NULL ? "" : "graph", graph));
        if (weights.data != NULL)
                TRY(add_part(&parts, "weights", weights));
        TRY(run_poll(&run->task.ctx));
        TRY(upload_decode_within(parts.parts, parts.n, NULL, true, &run->task.ctx, &run->task.graph));
        return engine_cache_graph(context->engine, &key, run->task.graph);
}

// ---- JSON ----
// A deadline in the body holds for reading the graph as well.
static Status read_deadline(JsonReader *reader, RunCall *run)
{
        int64_t ms;
        TRY(run_read_integer(reader, PARAM_DEADLINE_MS, &ms));
        run->task.ctx.deadline_ns = MIN(run->task.ctx.deadline_ns, run->task.received_ns + ms * 1000000);
        return STATUS_OK;
}

static Status find_graph_member(JsonReader *reader, RunCall *run, const char **out_text, size_t *out_n)
{
        const char *key;
        bool more;
        *out_text = NULL;
        json_set_poll(reader, run_poll_callback, &run->task.ctx);
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                json_cap_values(reader, strcmp(key, "graph") == 0 ? limits.max_json_values : 0);
                if (strcmp(key, "graph") == 0)
                        TRY(json_read_raw(reader, out_text, out_n));
                else if (strcmp(key, "deadline_ms") == 0)
                        TRY(read_deadline(reader, run));
                else
                        TRY(json_skip(reader));
        }
        if (*out_text == NULL)
                return fail(STATUS_INPUT,
                            "POST /v1/run wants {\"graph\": {FX JSON}, \"inputs\": ...} in one body");
        if (*out_n > (size_t)limits.max_graph_json)
                return fail(STATUS_TOO_LARGE,
                            "the graph is %zu bytes; the limit is %lld (--max-graph-json, "
                            "FXSERVE_MAX_GRAPH_JSON)",
                            *out_n, (long long)limits.max_graph_json);
        return STATUS_OK;
}

Status json_take_graph(const ApiContext *context, RunCall *run)
{
        Arena arena;
        JsonReader *reader = NULL;
        const char *text = NULL;
        size_t n = 0;
        arena_init(&arena, (size_t)limits.max_graph_json * 4);
        const Storage *bytes = run->call->body;
        const char *body = (const char *)bytes->data;
        Status status = run_check_lists(body, bytes->n_bytes);
        if (status == STATUS_OK)
                status =
                        json_open(body, bytes->n_bytes, (int)limits.max_json_depth_model, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = find_graph_member(reader, run, &text, &n);
        if (status == STATUS_OK)
                status = take_graph(context, (ByteSpan){ (const uint8_t *)text, n }, (ByteSpan){ NULL, 0 },
                                    run);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

// ---- a form ----
static Status take_parts(const ApiContext *context, const Multipart *multipart, RunCall *run)
{
        const MultipartPart *graph = multipart_find(multipart, "graph"),
                            *weights = multipart_find(multipart, "weights");
        if (graph == NULL)
                return fail(STATUS_INPUT, "the form has no part \"graph\"; " RUN_INLINE_WANTED);
        return take_graph(context, graph->content, weights == NULL ? (ByteSpan){ NULL, 0 } : weights->content,
                          run);
}

Status form_take_graph(const ApiContext *context, RunCall *run)
{
        Multipart multipart;
        TRY(run_open_multipart(run->call, &multipart));
        Status status = take_parts(context, &multipart, run);
        multipart_deinit(&multipart);
        return status;
}
