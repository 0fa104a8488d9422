// SPDX-License-Identifier: Apache-2.0
// Run bodies that are not JSON: one array (.npy), named arrays (.npz, safetensors), and multipart,
// whose parts are any of these, plain JSON values, or "request" with the members of a JSON body.
// What a body is, its first bytes say; Content-Type is a hint that nobody has to give.
#include <stdio.h>
#include <string.h>
#include "api/formats/borrow.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/readers/recognise.h"
#include "api/run/run_private.h"
#include "api/formats/safetensors.h"
#include "core/base/limits.h"

static ByteSpan span_of(const Storage *bytes)
{
        return (ByteSpan){ bytes->data, bytes->n_bytes };
}

static RunBody kind_of(ByteSpan bytes)
{
        if (npy_is(bytes))
                return RUN_BODY_NPY;
        if (npz_is(bytes))
                return RUN_BODY_NPZ;
        return recognise_kind(bytes) == FILE_SAFETENSORS ? RUN_BODY_SAFETENSORS : RUN_BODY_JSON;
}

RunBody run_body_kind(const Storage *body)
{
        ByteSpan bytes = span_of(body);
        // No JSON begins with two dashes.
        return bytes.n > 4 && bytes.data[0] == '-' && bytes.data[1] == '-' ? RUN_BODY_MULTIPART
                                                                           : kind_of(bytes);
}

// ---- arrays ----
static Status read_npy(Storage *bytes, RunCall *run)
{
        Tensor *tensor = NULL;
        if (run->n_inputs != 1)
                return fail(STATUS_INPUT,
                            "an npy body is one input, but this graph takes %u; send an .npz "
                            "(numpy.savez(\"x.npz\", name=array, ...)), "
                            "safetensors, or JSON with \"inputs\"",
                            run->n_inputs);
        TRY(npy_read(span_of(bytes), bytes, &run->budget, &tensor));
        return run_take_tensor(run, run->user[0]->placeholder->name, tensor);
}

static Status take_named(void *context, const char *name, Tensor *take_tensor)
{
        return run_take_tensor(context, name, take_tensor);
}

// The file's tensors are shared and read-only; a run wants shells of its own.
static Status take_entry(const SafetensorsEntry *entry, RunCall *run)
{
        _cleanup_(storage_unrefp) Storage *shell = NULL;
        Tensor *tensor;
        TRY(storage_shell(entry->tensor->storage, &run->budget, &shell));
        TRY(tensor_new_view(shell, &entry->tensor->meta, entry->tensor->offset, &tensor));
        return run_take_tensor(run, entry->name, tensor);
}

static Status read_safetensors(Storage *bytes, RunCall *run)
{
        Safetensors file;
        TRY(safetensors_read(span_of(bytes), bytes, &file));
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < file.n_entries && status == STATUS_OK; i++)
                status = take_entry(&file.entries[i], run);
        safetensors_deinit(&file);
        return status;
}

// ---- multipart ----
typedef Status (*ReadJson)(JsonReader *reader, ByteSpan document, const char *name, RunCall *run);

static Status read_request(JsonReader *reader, ByteSpan document, const char *name, RunCall *run)
{
        (void)name;
        return run_read_options(reader, document, run);
}

static Status read_value(JsonReader *reader, ByteSpan document, const char *name, RunCall *run)
{
        (void)document;
        TRY(run_check_value(reader));
        TRY(run_read_named(reader, name, run));
        return json_finish(reader);
}

static Status read_json_part(const MultipartPart *part, ReadJson read, RunCall *run)
{
        Arena arena;
        JsonReader *reader = NULL;
        arena_init(&arena, 0);
        const char *text = (const char *)part->content.data;
        Status status = run_check_lists(text, part->content.n);
        if (status == STATUS_OK)
                status = json_open(text, part->content.n, (int)limits.max_json_depth_run + MAX_RANK, 0,
                                   &arena, &reader);
        if (status == STATUS_OK)
                status = read(reader, part->content, part->name, run);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

// A part as bytes of its own would be a copy: arrays lie in the body where it is aligned.
static Status read_array_part(Storage *body, const MultipartPart *part, RunCall *run)
{
        Tensor *tensor = NULL;
        TRY(npy_read(part->content, body, &run->budget, &tensor));
        return run_take_tensor(run, part->name, tensor);
}

// An archive within: its arrays are named, the part's own name does not matter.
static Status read_archive_part(Storage *body, const MultipartPart *part, RunBody kind, RunCall *run)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(borrow_storage(body, part->content, &run->budget, &bytes));
        return kind == RUN_BODY_NPZ ? npz_read(bytes, &run->budget, take_named, run)
                                    : read_safetensors(bytes, run);
}

static Status read_part(Storage *body, const MultipartPart *part, RunCall *run)
{
        RunBody kind = kind_of(part->content);
        if (kind == RUN_BODY_NPY)
                return read_array_part(body, part, run);
        if (kind != RUN_BODY_JSON)
                return read_archive_part(body, part, kind, run);
        return read_json_part(part, strcmp(part->name, "request") == 0 ? read_request : read_value, run);
}

// The Content-Type's boundary, or (no header, or another one) what the body begins with.
static Status find_boundary(const ApiCall *call, char out[MULTIPART_MAX_BOUNDARY + 1])
{
        TRY(multipart_boundary(call->content_type, out));
        if (out[0] != '\0')
                return STATUS_OK;
        const uint8_t *start = call->body->data + 2;
        size_t n = call->body->n_bytes - 2;
        const uint8_t *end = memmem(start, MIN(n, (size_t)MULTIPART_MAX_BOUNDARY + 2), "\r\n", 2);
        if (end == NULL || end == start || end - start > MULTIPART_MAX_BOUNDARY ||
            memchr(start, '\0', (size_t)(end - start)) != NULL)
                return fail(STATUS_MALFORMED, "the body begins like multipart/form-data and has no usable "
                                              "boundary; let the client make it "
                                              "(curl -F does)");
        memcpy(out, start, (size_t)(end - start));
        out[end - start] = '\0';
        return STATUS_OK;
}

Status run_open_multipart(const ApiCall *call, Multipart *out_multipart)
{
        char boundary[MULTIPART_MAX_BOUNDARY + 1];
        TRY(find_boundary(call, boundary));
        return multipart_read(span_of(call->body), boundary, out_multipart);
}

// Of POST /v1/run: run_inline.c has taken them.
static bool is_graph_part(const ApiCall *call, const char *name)
{
        return route_has(call->route, BRINGS_GRAPH) &&
               (strcmp(name, "graph") == 0 || strcmp(name, "weights") == 0);
}

static Status read_multipart(const ApiCall *call, RunCall *run)
{
        Multipart multipart;
        TRY(run_open_multipart(call, &multipart));
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < multipart.n_parts && status == STATUS_OK; i++) {
                if (is_graph_part(call, multipart.parts[i].name))
                        continue;
                status = read_part(call->body, &multipart.parts[i], run);
                if (status != STATUS_OK)
                        failure_at_argument(status, multipart.parts[i].name);
        }
        multipart_deinit(&multipart);
        return status;
}

// The header of an .npy array ends in a line end, and archives hold such headers or bytes of any
// value: where there is none, `curl -d @file` took them out on the way.
static Status explain_damage(Status status, ByteSpan bytes)
{
        if ((status != STATUS_MALFORMED && status != STATUS_UNSUPPORTED) ||
            memchr(bytes.data, '\n', bytes.n) != NULL || memchr(bytes.data, '\r', bytes.n) != NULL)
                return status;
        return fail(STATUS_WRONG_FILE, "this body was damaged on its way: all its line ends are gone, as "
                                       "`curl -d @file` does; send it with "
                                       "curl --data-binary @x.npy ...");
}

Status run_read_binary(const ApiCall *call, RunBody kind, RunCall *run)
{
        switch (kind) {
        case RUN_BODY_NPY:
                return explain_damage(read_npy(call->body, run), span_of(call->body));
        case RUN_BODY_NPZ:
                return explain_damage(npz_read(call->body, &run->budget, take_named, run),
                                      span_of(call->body));
        case RUN_BODY_SAFETENSORS:
                return read_safetensors(call->body, run);
        default:
                return read_multipart(call, run);
        }
}
