// SPDX-License-Identifier: Apache-2.0
// From bytes to a graph that can run: recognise, read, resolve, check.
#include "api/readers/upload.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "api/readers/fx_json.h"
#include "api/formats/multipart.h"
#include "api/readers/pt2.h"
#include "api/readers/recognise.h"
#include "api/formats/safetensors.h"
#include "api/formats/safetensors_write.h"
#include "api/formats/zip.h"
#include "core/base/limits.h"
#include "core/targets/targets.h"

void upload_deinit(Upload *upload)
{
        for (uint32_t i = 0; i < upload->n_parts; i++)
                storage_unref(upload->parts[i].bytes);
        for (uint32_t i = 0; i < STORE_MAX_PARTS; i++)
                pieces_deinit(&upload->pieces[i]);
        for (uint32_t i = 0; i < upload->n_operators; i++)
                storage_unref(upload->operators[i].bytes);
        free(upload->operators);
        upload->image = storage_unref(upload->image);
        upload->operators = NULL;
        upload->n_parts = upload->n_operators = 0;
}

static ByteSpan span_of(const Storage *bytes)
{
        return (ByteSpan){ bytes->data, bytes->n_bytes };
}

// ---- splitting ----
static void release_body(void *owner, void *data)
{
        (void)data;
        storage_unref(owner);
}

// A part as a storage of its own. From memory it is copied: the copy is aligned, and the whole body
// need not stay. From a mapped file it is borrowed: a copy would cost the memory that the file
// saves.
static Status part_bytes(Storage *body, ByteSpan content, Storage **out_bytes)
{
        Storage *bytes = NULL;
        if (body->mapped && content.n > 0) {
                Storage *owner = storage_ref(body);
                Status status = storage_adopt((void *)(uintptr_t)content.data, content.n, true, release_body,
                                              owner, &bytes);
                if (status != STATUS_OK) {
                        storage_unref(owner);
                        return status;
                }
                bytes->mapped = true;
        } else {
                TRY(storage_new(content.n, false, NULL, &bytes));
                if (content.n > 0)
                        memcpy(bytes->data, content.data, content.n);
                bytes->readonly = true;
        }
        *out_bytes = bytes;
        return STATUS_OK;
}

static Status add_part(Upload *upload, Storage *body, const char *name, ByteSpan content)
{
        Storage *bytes;
        TRY(part_bytes(body, content, &bytes));
        upload->parts[upload->n_parts++] = (UploadPart){ .name = name, .bytes = bytes };
        return STATUS_OK;
}

static bool is_operator(const char *name)
{
        return strncmp(name, UPLOAD_OPERATOR, strlen(UPLOAD_OPERATOR)) == 0;
}

// "op:" and a name as in torch.ops: "mylib.foo", "mylib.foo.default".
static Status check_operator(const char *name)
{
        const char *at = name + strlen(UPLOAD_OPERATOR);
        int dots = 0;
        bool ok = strlen(name) <= UPLOAD_OPERATOR_MAX && *at != '.' && *at != '\0';
        for (; ok && *at != '\0'; at++) {
                dots += *at == '.';
                ok = isalnum((unsigned char)*at) || *at == '_' ||
                     (*at == '.' && at[1] != '.' && at[1] != '\0');
        }
        if (ok && (dots == 1 || dots == 2))
                return STATUS_OK;
        return fail(STATUS_VALUE,
                    "the part \"%.64s\" names no operator; send it as -F op:mylib.foo=@foo.json for "
                    "torch.ops.mylib.foo",
                    name);
}

static Status add_operator(Upload *upload, Storage *body, const MultipartPart *part)
{
        TRY(check_operator(part->name));
        if (upload->n_operators == (uint32_t)limits.max_operators)
                return fail(STATUS_TOO_LARGE, "more than %lld operators (max_operators in GET /v1)",
                            (long long)limits.max_operators);
        if (upload->operators == NULL)
                upload->operators = new_array((size_t)limits.max_operators, sizeof(*upload->operators));
        if (upload->operators == NULL)
                return fail_memory();
        UploadOperator *row = &upload->operators[upload->n_operators];
        TRY(part_bytes(body, part->content, &row->bytes));
        snprintf(row->part, sizeof(row->part), "%s", part->name);
        upload->n_operators++;
        return STATUS_OK;
}

static Status split_parts(const Multipart *multipart, Storage *body, Upload *upload)
{
        const MultipartPart *graph = multipart_find(multipart, "graph"),
                            *weights = multipart_find(multipart, "weights"),
                            *samples = multipart_find(multipart, "samples"),
                            *labels = multipart_find(multipart, "labels"),
                            *image = multipart_find(multipart, "image");
        for (uint32_t i = 0; i < multipart->n_parts; i++)
                if (&multipart->parts[i] != graph && &multipart->parts[i] != weights &&
                    &multipart->parts[i] != samples && &multipart->parts[i] != labels &&
                    &multipart->parts[i] != image && !is_operator(multipart->parts[i].name))
                        return fail(STATUS_UNKNOWN_MEMBER,
                                    "unknown part \"%.64s\"; an upload has graph, weights, samples, labels, "
                                    "image and op:...: curl -F graph=@g.json -F weights=@w.safetensors",
                                    multipart->parts[i].name);
        if (graph == NULL)
                return fail(STATUS_INPUT, "the upload has no part \"graph\"; send curl -F graph=@g.json -F "
                                          "weights=@w.safetensors");
        for (uint32_t i = 0; i < multipart->n_parts; i++)
                if (is_operator(multipart->parts[i].name))
                        TRY(add_operator(upload, body, &multipart->parts[i]));
        FileKind kind;
        TRY(recognise_graph(graph->content, &kind));
        if (kind == FILE_PT2 && weights != NULL)
                return fail(STATUS_INPUT, "a .pt2 brings its own weights; leave the part \"weights\" out");
        upload->format = kind == FILE_PT2 ? "pt2" : "fx";
        TRY(add_part(upload, body, weights == NULL ? "" : "graph", graph->content));
        if (weights != NULL)
                TRY(add_part(upload, body, "weights", weights->content));
        if (samples != NULL)
                TRY(add_part(upload, body, "samples", samples->content));
        if (image != NULL)
                TRY(part_bytes(body, image->content, &upload->image));
        return labels == NULL ? STATUS_OK : add_part(upload, body, "labels", labels->content);
}

static Status split_multipart(Storage *body, const char *content_type, Upload *upload)
{
        char boundary[MULTIPART_MAX_BOUNDARY + 1];
        Multipart multipart;
        TRY(multipart_boundary(content_type, boundary));
        TRY(multipart_read(span_of(body), boundary, &multipart));
        Status status = split_parts(&multipart, body, upload);
        multipart_deinit(&multipart);
        if (status != STATUS_OK)
                upload_deinit(upload);
        return status;
}

Status upload_split(Storage *body, const char *content_type, Upload *out_upload)
{
        Upload upload = { .n_parts = 0 };
        if (strncasecmp(content_type, "multipart/form-data", 19) == 0) {
                TRY(split_multipart(body, content_type, &upload));
        } else {
                FileKind kind;
                TRY(recognise_graph(span_of(body), &kind));
                upload.format = kind == FILE_PT2 ? "pt2" : "fx";
                upload.parts[upload.n_parts++] = (UploadPart){ .name = "", .bytes = storage_ref(body) };
        }
        *out_upload = upload;
        return STATUS_OK;
}

Status upload_check_inflated(const Upload *upload)
{
        _cleanup_(zip_freep) Zip *zip = NULL;
        if (strcmp(upload->format, "pt2") != 0)
                return STATUS_OK;
        TRY(zip_open(span_of(upload->parts[0].bytes), &zip));
        return zip_inflated(zip) <= (size_t)limits.max_upload
                       ? STATUS_OK
                       : fail(STATUS_TOO_LARGE,
                              "the archive would inflate to more than %lld bytes (--max-upload)",
                              (long long)limits.max_upload);
}

void upload_mark_local(Upload *upload)
{
        for (uint32_t i = 0; i < upload->n_parts; i++) {
                upload->pieces[i].local = true;
                upload->parts[i].pieces = &upload->pieces[i];
        }
}

// ---- decoding ----
static Status visit_state(void *context, Status (*visit)(void *visitor, const char *path, Tensor *tensor),
                          void *visitor)
{
        const Safetensors *file = context;
        for (uint32_t i = 0; i < file->n_entries; i++)
                TRY(visit(visitor, file->entries[i].name, file->entries[i].tensor));
        return STATUS_OK;
}

// State inside JSON is decoded into memory, so JSON has a lower limit than files.
static Status check_json_size(const UploadPart *graph)
{
        if (!pieces_of_upload(graph->pieces) || graph->bytes->n_bytes <= (size_t)limits.max_upload_in_memory)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "FX JSON of %zu bytes; the limit is %lld (--max-upload-in-memory). Send the weights "
                    "apart: curl -F graph=@g.json -F "
                    "weights=@w.safetensors",
                    graph->bytes->n_bytes, (long long)limits.max_upload_in_memory);
}

static Status decode_json(const UploadPart *graph, const UploadPart *weights, const RunContext *poll,
                          Graph **out_graph)
{
        const char *text = (const char *)graph->bytes->data;
        TRY(check_json_size(graph));
        if (weights == NULL)
                return fx_json_read_within(text, graph->bytes->n_bytes, NULL, poll, out_graph);
        Safetensors file;
        TRY(safetensors_read_pieces(span_of(weights->bytes), weights->bytes, weights->pieces, &file));
        FxStateSource source = { .each = visit_state, .context = &file };
        Status status = fx_json_read_within(text, graph->bytes->n_bytes, &source, poll, out_graph);
        safetensors_deinit(&file);
        return status;
}

static const UploadPart *part_named(const UploadPart *parts, uint32_t n_parts, const char *name)
{
        for (uint32_t i = 0; i < n_parts; i++)
                if (strcmp(parts[i].name, name) == 0)
                        return &parts[i];
        return NULL;
}

static Status decode(const UploadPart *parts, uint32_t n_parts, const char *model, const RunContext *poll,
                     Graph **out_graph)
{
        const UploadPart *graph = part_named(parts, n_parts, "");
        graph = graph != NULL ? graph : part_named(parts, n_parts, "graph");
        if (graph == NULL)
                return fail(STATUS_INTERNAL, "an upload without its graph part");
        FileKind kind;
        TRY(recognise_graph(span_of(graph->bytes), &kind));
        if (kind == FILE_PT2)
                return pt2_read_pieces(span_of(graph->bytes), graph->bytes, graph->pieces, model, out_graph);
        if (model != NULL)
                return fail(STATUS_VALUE,
                            "?model= picks one of several models in a .pt2 archive; FX JSON holds one graph");
        return decode_json(graph, part_named(parts, n_parts, "weights"), poll, out_graph);
}

static Status resolve(Graph *graph, bool strict)
{
        CheckReport report;
        Status status = graph_resolve(graph, &report);
        if (status == STATUS_OK && strict)
                status = check_report_status(&report, graph);
        check_report_deinit(&report);
        return status;
}

Status upload_decode(const UploadPart *parts, uint32_t n_parts, const char *model, bool strict,
                     Graph **out_graph)
{
        return upload_decode_within(parts, n_parts, model, strict, NULL, out_graph);
}

Status upload_decode_within(const UploadPart *parts, uint32_t n_parts, const char *model, bool strict,
                            const RunContext *poll, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(decode(parts, n_parts, model, poll, &graph));
        TRY(run_poll(poll));
        TRY(resolve(graph, strict));
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

Status upload_decode_to_run(const Upload *upload, const char *model, bool strict, Graph **out_graph)
{
        UploadPart parts[ARRAY_LENGTH(upload->parts)];
        memcpy(parts, upload->parts, sizeof(parts));
        for (uint32_t i = 0; i < upload->n_parts; i++)
                parts[i].pieces = NULL;
        return upload_decode(parts, upload->n_parts, model, strict, out_graph);
}

static Status load(void *context, const UploadPart *parts, uint32_t n_parts, const char *model,
                   Graph **out_graph)
{
        (void)context;
        return upload_decode(parts, n_parts, model, true, out_graph);
}

static Status weights_head(const char *const *names, Tensor *const *tensors, uint32_t n, Text *out_head,
                           size_t *out_begins)
{
        _cleanup_(freep) NamedTensor *named = new_array(n, sizeof(*named));
        if (named == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                named[i] = (NamedTensor){ names[i], tensors[i] };
        return safetensors_head(named, n, out_head, out_begins);
}

const GraphLoader upload_loader = { .load = load, .weights_head = weights_head };
