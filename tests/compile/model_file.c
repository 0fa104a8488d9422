// SPDX-License-Identifier: Apache-2.0
#include "tests/compile/model_file.h"

#include <stdio.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/eval/bind.h"

enum { MAX_LEAVES = 64 };

static Status read_bytes(const char *file, Storage **out_bytes)
{
        char path[512];
        snprintf(path, sizeof(path), "%s%s", file[0] == '/' ? "" : MODELS_DIR "/", file);
        FILE *stream = fopen(path, "rb");
        if (stream == NULL)
                return fail(STATUS_NOT_FOUND, "no file %s", file);
        fseek(stream, 0, SEEK_END);
        long n = ftell(stream);
        rewind(stream);
        Status status = storage_new((size_t)n, false, NULL, out_bytes);
        if (status == STATUS_OK && fread((*out_bytes)->data, 1, (size_t)n, stream) != (size_t)n)
                status = fail(STATUS_IO, "cannot read %s", file);
        fclose(stream);
        return status;
}

Status model_read(const char *file, const char *weights, Graph **out_graph)
{
        UploadPart parts[2] = { { .name = weights == NULL ? "" : "graph" }, { .name = "weights" } };
        TRY(read_bytes(file, &parts[0].bytes));
        Status status = weights == NULL ? STATUS_OK : read_bytes(weights, &parts[1].bytes);
        if (status == STATUS_OK)
                status = upload_decode(parts, weights == NULL ? 1 : 2, NULL, true, out_graph);
        storage_unref(parts[0].bytes);
        storage_unref(parts[1].bytes);
        return status;
}

Status model_inputs(const Graph *graph, const char *stem, int set, Value *out_inputs, bool *out_found)
{
        char name[128];
        Safetensors tensors;
        Value user[MAX_LEAVES];
        uint32_t n = 0;
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        snprintf(name, sizeof(name), "%s.safetensors", stem);
        TRY(read_bytes(name, &bytes));
        TRY(safetensors_read((ByteSpan){ bytes->data, bytes->n_bytes }, NULL, &tensors));
        for (; n < MAX_LEAVES && n < graph->signature.n_user_inputs; n++) {
                snprintf(name, sizeof(name), "in%d.%u", set, n);
                Tensor *tensor = safetensors_find(&tensors, name);
                if (tensor == NULL)
                        break;
                user[n] = (Value){ .kind = VALUE_TENSOR, .tensor = tensor };
        }
        *out_found = n > 0 && n == graph->signature.n_user_inputs;
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                out_inputs[i] = (Value){ .kind = VALUE_ABSENT };
        Status status = *out_found ? bind_inputs(graph, (ValueSpan){ user, n }, NULL, out_inputs) : STATUS_OK;
        safetensors_deinit(&tensors);
        return status;
}

void model_inputs_free(const Graph *graph, Value *inputs)
{
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                value_unref(inputs[i]);
}
