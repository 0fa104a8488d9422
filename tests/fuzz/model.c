// SPDX-License-Identifier: Apache-2.0
// Model documents of torch.export: the model, the weights' and the constants' configurations, with
// a line of three dashes between them, put into an archive with fixed bytes for weights. A graph
// that is read is resolved, printed, and written as FX JSON, which must read back.
#include "api/readers/fx_json.h"
#include "api/readers/pt2.h"
#include "core/graph/print.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/zip_writer.h"

static const char mark[] = "\n---\n";

static ByteSpan next_part(ByteSpan *rest)
{
        const uint8_t *end = rest->n == 0 ? NULL : memmem(rest->data, rest->n, mark, sizeof(mark) - 1);
        ByteSpan part = { rest->data, end == NULL ? rest->n : (size_t)(end - rest->data) };
        size_t used = end == NULL ? rest->n : part.n + sizeof(mark) - 1;
        *rest = (ByteSpan){ rest->data + used, rest->n - used };
        return part;
}

static void use(Graph *graph)
{
        CheckReport report;
        Text text = { 0 };
        Status status = graph_resolve(graph, &report);
        if (status == STATUS_OK)
                check_report_deinit(&report);
        else
                require_told(status);
        if ((status = graph_print(graph, GRAPH_FORM_GRAPH, &text)) != STATUS_OK ||
            (status = graph_print(graph, GRAPH_FORM_CODE, &text)) != STATUS_OK)
                require_told(status);
        text_deinit(&text);
        Graph *again = NULL;
        text = (Text){ 0 };
        status = fx_json_write(graph, true, &text);
        if (status == STATUS_OK)
                status = fx_json_read(text.data, text.n, NULL, &again);
        if (status != STATUS_OK)
                require_told(status);
        text_deinit(&text);
        graph_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static bool ready;
        static uint8_t zeros[4096];
        if (!ready)
                require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        ready = true;
        ByteSpan rest = { data, n }, model = next_part(&rest), weights = next_part(&rest), constants = rest;
        ZipPart parts[] = {
                { "m/data/weights/model_weights_config.json", weights.data, weights.n },
                { "m/data/constants/model_constants_config.json", constants.data, constants.n },
                { "m/models/model.json", model.data, model.n },
                { "m/data/weights/weight_0", zeros, 4096 },
                { "m/data/weights/weight_1", zeros, 256 },
                { "m/data/weights/weight_2", zeros, 64 },
                { "m/data/weights/weight_3", zeros, 4 },
                { "m/data/constants/tensor_0", zeros, 16 },
                { "m/data/constants/tensor_1", zeros, 2 },
                { "m/archive_format", "pt2", 3 },
                { "m/archive_version", "0", 1 },
                { "m/byteorder", "little", 6 },
        };
        Text archive = { 0 };
        zip_write(parts, ARRAY_LENGTH(parts), &archive);
        require(text_status(&archive) == STATUS_OK, "no memory");
        Graph *graph = NULL;
        Status status = pt2_read((ByteSpan){ (const uint8_t *)archive.data, archive.n }, NULL, NULL, &graph);
        if (status == STATUS_OK)
                use(graph);
        else
                require_told(status);
        graph_unref(graph);
        text_deinit(&archive);
        return 0;
}
