// SPDX-License-Identifier: Apache-2.0
// Infer replies of the Open Inference Protocol: JSON, then the bytes of the outputs that are asked
// for as bytes, in their order. A number or flag is a tensor without dimensions; None is left out.
#include <string.h>
#include "api/formats/profile_text.h"
#include "api/formats/tensor_json.h"
#include "api/run/oip.h"
#include "api/run/run_private.h"
#include "api/run/top.h"
#include "core/base/limits.h"

static Status check_size(const Text *out)
{
        TRY(text_status(out));
        return run_check_reply(out->n);
}

// Numbers are the only content of the text, so a quotation mark stands around NaN or Infinity.
static Status write_data(RunCall *run, const Tensor *tensor, const char *name, Text *out)
{
        size_t before;
        text_add(out, ", \"data\": ");
        before = out->n;
        TRY(run_check_reply(out->n + (size_t)tensor_json_least(&tensor->meta, TENSOR_JSON_FLAT)));
        TRY(tensor_json_write(tensor, TENSOR_JSON_FLAT, &run->task.budget, (size_t)limits.max_response, out));
        if (memchr(out->data + before, '"', out->n - before) != NULL)
                return fail(
                        STATUS_RUN,
                        "output \"%.64s\" holds NaN or infinity, which JSON has no number for; ask for it "
                        "with \"binary_data\": true",
                        name);
        return check_size(out);
}

typedef struct Blobs {
        Tensor **tensors; // counted, contiguous; at most one for each output
        uint32_t n;
} Blobs;

static void write_head(const char *name, const char *datatype, const TensorMeta *meta, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, name);
        text_addf(out, ", \"datatype\": \"%s\", \"shape\": [", datatype);
        for (int d = 0; d < meta->rank; d++) {
                text_add(out, d == 0 ? "" : ", ");
                text_add_int(out, meta->size[d]);
        }
        text_add_char(out, ']');
}

static bool is_binary(const RunCall *run, const OipWanted *wanted)
{
        return wanted->says_binary ? wanted->binary : run->oip->binary;
}

static void write_size(size_t n_bytes, Text *out)
{
        text_addf(out, ", \"parameters\": {\"binary_data_size\": %zu}", n_bytes);
}

// ---- classification: texts "value:index:label" ----
// One more text: with its length in front, or as an item of a JSON list.
static void add_class(Dtype dtype, const TopValue *top, const Labels *labels, bool binary, Text *out)
{
        _cleanup_(text_deinit) Text text = { 0 };
        if (dtype_info[dtype].kind == DTYPE_KIND_FLOAT) {
                text_addf(&text, "%f", top->value);
        } else {
                top_write_integer(dtype, top, &text);
                text_add(&text, ".000000");
        }
        text_addf(&text, ":%lld", (long long)top->index);
        if (top->index < labels->n) {
                text_add_char(&text, ':');
                text_add_n(&text, (const char *)labels->lines[top->index].data, labels->lines[top->index].n);
        }
        if (!binary) {
                text_add(out, out->n == 0 ? "" : ", ");
                text_add_json_n(out, text.data, text.n);
                return;
        }
        uint32_t length = (uint32_t)text.n;
        text_add_n(out, (const char *)&length, sizeof(length));
        text_add_n(out, text.data, text.n);
}

// Of all rows; *out_k: how many each of them has.
static Status add_classes(RunCall *run, const Tensor *tensor, const OipWanted *wanted, Text *out,
                          int64_t *out_k)
{
        _cleanup_(labels_deinit) Labels labels;
        const TensorMeta *meta = &tensor->meta;
        int64_t n = meta->size[meta->rank - 1], n_rows = n == 0 ? 0 : meta_numel(meta) / n;
        size_t bytes = (size_t)n * dtype_info[meta->dtype].bytes;
        TopValue top[TOP_MAX];
        *out_k = MIN(MIN(wanted->classes, n), TOP_MAX);
        TRY(labels_open(run, &labels));
        for (int64_t row = 0; row < n_rows; row++) {
                TopRow values = { meta->dtype, (const uint8_t *)tensor_data(tensor) + (size_t)row * bytes,
                                  n };
                int64_t n_top;
                TRY(top_of_row(run, &values, wanted->classes, top, &n_top));
                for (int64_t i = 0; i < n_top; i++)
                        add_class(meta->dtype, &top[i], &labels, is_binary(run, wanted), out);
                TRY(check_size(out));
        }
        return text_status(out);
}

static Status tensor_of_text(const Text *text, Tensor **out)
{
        TensorMeta meta;
        int64_t n = (int64_t)text->n;
        meta_init(&meta, DTYPE_U8, 1, &n);
        TRY(tensor_new(&meta, NULL, out));
        if (text->n > 0)
                memcpy(tensor_data(*out), text->data, text->n);
        return STATUS_OK;
}

static Status write_classes(RunCall *run, const Tensor *tensor, const OipWanted *wanted, Blobs *blobs,
                            Text *out)
{
        _cleanup_(text_deinit) Text texts = { 0 };
        TensorMeta meta = tensor->meta;
        if (!top_applies(tensor))
                return fail(STATUS_VALUE, "output \"%.64s\" has no rows of numbers to classify",
                            wanted->name);
        TRY(add_classes(run, tensor, wanted, &texts, &meta.size[meta.rank - 1]));
        write_head(wanted->name, "BYTES", &meta, out);
        if (is_binary(run, wanted)) {
                write_size(texts.n, out);
                TRY(tensor_of_text(&texts, &blobs->tensors[blobs->n]));
                blobs->n++;
        } else {
                text_add(out, ", \"data\": [");
                text_add_n(out, texts.data, texts.n);
                text_add_char(out, ']');
        }
        text_add_char(out, '}');
        return check_size(out);
}

static Status write_output(RunCall *run, const OutputLeaf *leaf, const OipWanted *wanted, Blobs *blobs,
                           ApiReply *reply)
{
        Text *out = &reply->body;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(run_output_array(leaf, &run->task.budget, &tensor));
        const DtypeInfo *info = &dtype_info[tensor->meta.dtype];
        if (wanted->classes > 0)
                return write_classes(run, tensor, wanted, blobs, out);
        if (info->oip == NULL)
                return fail(STATUS_NOT_ACCEPTABLE,
                            "output \"%.64s\" is %s, which this protocol has no datatype for", wanted->name,
                            info->name);
        write_head(wanted->name, info->oip, &tensor->meta, out);
        if (is_binary(run, wanted)) {
                write_size((size_t)meta_numel(&tensor->meta) * info->bytes, out);
                blobs->tensors[blobs->n++] = take_ptr(tensor);
        } else {
                TRY(write_data(run, tensor, wanted->name, out));
        }
        text_add_char(out, '}');
        return STATUS_OK;
}

// "OUTPUT__0" is the first, whatever its name.
static const OutputLeaf *find_output(const OutputList *list, const char *name)
{
        static const char numbered[] = "OUTPUT__";
        size_t n = sizeof(numbered) - 1;
        for (uint32_t i = 0; i < list->n; i++)
                if (strcmp(list->leaves[i].name, name) == 0)
                        return &list->leaves[i];
        if (strncmp(name, numbered, n) != 0 || name[n] == '\0' || strlen(name) > n + 6 ||
            name[n + strspn(name + n, "0123456789")] != '\0')
                return NULL;
        uint32_t index = (uint32_t)strtoul(name + n, NULL, 10);
        return index < list->n ? &list->leaves[index] : NULL;
}

static Status fail_output(const OutputList *list, const char *name)
{
        Status status = fail(STATUS_VALUE, "there is no output \"%.64s\"; this graph has:", name);
        for (uint32_t i = 0; i < list->n && i < 16; i++)
                failure_append("%s %.64s", i == 0 ? "" : ",", list->leaves[i].name);
        return status;
}

static Status write_outputs(RunCall *run, const OutputList *list, Blobs *blobs, ApiReply *reply)
{
        const OipRun *oip = run->oip;
        uint32_t n = oip->n_wanted > 0 ? oip->n_wanted : list->n, n_written = 0;
        text_add(&reply->body, "\"outputs\": [");
        for (uint32_t i = 0; i < n; i++) {
                OipWanted wanted = { .name = NULL };
                const OutputLeaf *leaf = &list->leaves[i];
                if (oip->n_wanted > 0) {
                        wanted = oip->wanted[i];
                        leaf = find_output(list, wanted.name);
                        if (leaf == NULL)
                                return fail_output(list, wanted.name);
                } else {
                        wanted.name = leaf->name;
                        if (leaf->value.kind == VALUE_NONE)
                                continue;
                }
                text_add(&reply->body, n_written++ == 0 ? "" : ", ");
                TRY(write_output(run, leaf, &wanted, blobs, reply));
        }
        text_add_char(&reply->body, ']');
        return STATUS_OK;
}

static Status write_reply(RunCall *run, const OutputList *list, Blobs *blobs, ApiReply *reply)
{
        Text *out = &reply->body;
        const GraphVersion *version = run->task.version;
        text_add(out, "{\"model_name\": ");
        text_add_json(out, run->call->name);
        text_addf(out, ", \"model_version\": \"%lld\", ",
                  version == NULL ? 0LL : (long long)version->stored.version);
        if (run->oip->id != NULL) {
                text_add(out, "\"id\": ");
                text_add_json(out, run->oip->id);
                text_add(out, ", ");
        }
        TRY(write_outputs(run, list, blobs, reply));
        run_stamp(run);
        if (run->profile_in_reply) {
                text_add(out, ", \"profile\": ");
                profile_write_json(run->task.profile, out);
        }
        text_add_char(out, '}');
        run_add_headers(run, reply);
        return check_size(out);
}

// Smaller ones are copied: that takes less time than sending them from where they lie.
enum { COPIED_BYTES = 16384 };

static Status add_blobs(const Blobs *blobs, ApiReply *reply)
{
        reply->content_type = "application/octet-stream";
        api_reply_header(reply, "Inference-Header-Content-Length", "%zu", reply->body.n);
        for (uint32_t i = 0; i < blobs->n; i++) {
                const Tensor *tensor = blobs->tensors[i];
                size_t n = (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes;
                if (n <= COPIED_BYTES)
                        text_add_n(&reply->body, (const char *)tensor_data(tensor), n);
                else
                        TRY(api_reply_piece(reply, tensor->storage, tensor_data(tensor), n));
        }
        TRY(text_status(&reply->body));
        return run_check_reply(api_reply_bytes(reply));
}

Status oip_encode(RunCall *run, const OutputList *list, ApiReply *reply)
{
        Blobs blobs = { new_array(MAX(list->n, run->oip->n_wanted) + 1, sizeof(*blobs.tensors)), 0 };
        if (blobs.tensors == NULL)
                return fail_memory();
        reply->content_type = "application/json";
        Status status = write_reply(run, list, &blobs, reply);
        if (status == STATUS_OK && blobs.n > 0)
                status = add_blobs(&blobs, reply);
        for (uint32_t i = 0; i < blobs.n; i++)
                tensor_unref(blobs.tensors[i]);
        free(blobs.tensors);
        return status;
}
