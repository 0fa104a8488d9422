// SPDX-License-Identifier: Apache-2.0
// Run bodies that are not JSON: one array (.npy), named arrays (.npz, safetensors), and multipart,
// whose parts are any of these, plain JSON values, or "request" with the members of a JSON body.
// The first bytes tell the form; clients need not send Content-Type.
#include <stdio.h>
#include <string.h>
#include "api/formats/borrow.h"
#include "api/formats/npy.h"
#include "api/formats/npz.h"
#include "api/readers/recognise.h"
#include "api/run/run_private.h"
#include "api/formats/safetensors.h"
#include "api/formats/safetensors_write.h"
#include "core/base/limits.h"

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

static Status explain(const RunCall *run, Status status)
{
        return status == STATUS_OK ? status : recognise_run_body(body_span(run->call->body), status);
}

// ---- one array ----
static bool npy_reads(const ApiCall *call, ByteSpan body)
{
        (void)call;
        return npy_is(body);
}

static Status read_npy(RunCall *run)
{
        Storage *body = run->call->body;
        Tensor *tensor = NULL;
        if (run->task.n_inputs != 1)
                return fail(STATUS_INPUT,
                            "an npy body is one input, but this graph takes %u; send an .npz "
                            "(numpy.savez(\"x.npz\", name=array, ...)), "
                            "safetensors, or JSON with \"inputs\"",
                            run->task.n_inputs);
        TRY(npy_read(body_span(body), body, &run->task.budget, &tensor));
        return run_take_tensor(run, run->task.user[0]->placeholder->name, tensor);
}

static Status npy_decode(RunCall *run)
{
        return explain(run, explain_damage(read_npy(run), body_span(run->call->body)));
}

// A part as bytes of its own would be a copy: arrays lie in the body where it is aligned.
static Status npy_decode_part(RunCall *run, const MultipartPart *part)
{
        Tensor *tensor = NULL;
        TRY(npy_read(part->content, run->call->body, &run->task.budget, &tensor));
        return run_take_tensor(run, part->name, tensor);
}

const Codec npy_codec = { .types = { "application/x-npy" },
                          .reads = npy_reads,
                          .decode = npy_decode,
                          .decode_part = npy_decode_part,
                          .encode = arrays_encode,
                          .write = npy_write };

// ---- named arrays: of a part that is an archive, the part's own name does not matter ----
static Status take_named(void *context, const char *name, Tensor *take_tensor)
{
        return run_take_tensor(context, name, take_tensor);
}

static bool npz_reads(const ApiCall *call, ByteSpan body)
{
        (void)call;
        return npz_is(body);
}

static Status npz_decode(RunCall *run)
{
        Storage *body = run->call->body;
        Status status = npz_read(body, &run->task.budget, take_named, run);
        return explain(run, explain_damage(status, body_span(body)));
}

static Status npz_decode_part(RunCall *run, const MultipartPart *part)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(borrow_storage(run->call->body, part->content, &run->task.budget, &bytes));
        return npz_read(bytes, &run->task.budget, take_named, run);
}

const Codec npz_codec = { .types = { "application/x-npz" },
                          .reads = npz_reads,
                          .decode = npz_decode,
                          .decode_part = npz_decode_part,
                          .encode = arrays_encode,
                          .write = npz_write };

static bool safetensors_reads(const ApiCall *call, ByteSpan body)
{
        (void)call;
        return recognise_kind(body) == FILE_SAFETENSORS;
}

// The file's tensors are shared and read-only; a run wants shells of its own.
static Status take_entry(const SafetensorsEntry *entry, RunCall *run)
{
        Tensor *tensor;
        TRY(tensor_new_shell(entry->tensor, &run->task.budget, &tensor));
        return run_take_tensor(run, entry->name, tensor);
}

static Status read_safetensors(Storage *bytes, RunCall *run)
{
        Safetensors file;
        TRY(safetensors_read(body_span(bytes), bytes, &file));
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < file.n_entries && status == STATUS_OK; i++)
                status = take_entry(&file.entries[i], run);
        safetensors_deinit(&file);
        return status;
}

static Status safetensors_decode(RunCall *run)
{
        return explain(run, read_safetensors(run->call->body, run));
}

static Status safetensors_decode_part(RunCall *run, const MultipartPart *part)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(borrow_storage(run->call->body, part->content, &run->task.budget, &bytes));
        return read_safetensors(bytes, run);
}

const Codec safetensors_codec = { .types = { "application/x-safetensors", "application/vnd.safetensors" },
                                  .reads = safetensors_reads,
                                  .decode = safetensors_decode,
                                  .decode_part = safetensors_decode_part,
                                  .encode = arrays_encode,
                                  .write = safetensors_write };

// ---- forms ----
// No JSON begins with two dashes.
static bool form_reads(const ApiCall *call, ByteSpan body)
{
        (void)call;
        return body.n > 4 && body.data[0] == '-' && body.data[1] == '-';
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
        return multipart_read(body_span(call->body), boundary, out_multipart);
}

// Of POST /v1/run: form_take_graph has taken them.
static bool is_graph_part(const ApiCall *call, const char *name)
{
        return route_has(call->route, BRINGS_GRAPH) &&
               (strcmp(name, "graph") == 0 || strcmp(name, "weights") == 0);
}

// TorchServe calls a picture or an array "data" or "body", whatever the input is called.
static MultipartPart named_part(const RunCall *run, const MultipartPart *part)
{
        MultipartPart named = *part;
        if (codec_is_bare(run->call->route) && run->task.n_inputs == 1 &&
            (strcmp(part->name, "data") == 0 || strcmp(part->name, "body") == 0))
                named.name = run->task.user[0]->placeholder->name;
        return named;
}

static Status form_decode(RunCall *run)
{
        Multipart multipart;
        TRY(run_open_multipart(run->call, &multipart));
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < multipart.n_parts && status == STATUS_OK; i++) {
                const MultipartPart *part = &multipart.parts[i];
                if (is_graph_part(run->call, part->name))
                        continue;
                MultipartPart named = named_part(run, part);
                status = codec_of_part(run->call, &named)->decode_part(run, &named);
                if (status != STATUS_OK)
                        failure_at_argument(status, part->name);
        }
        multipart_deinit(&multipart);
        return status;
}

const Codec form_codec = {
        .reads = form_reads, .grows = true, .take_graph = form_take_graph, .decode = form_decode
};
