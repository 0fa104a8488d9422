// SPDX-License-Identifier: Apache-2.0
// What TensorFlow Serving, KServe v1, TorchServe and SageMaker say of models. A model is a graph,
// under its name.
#include <string.h>
#include "api/routes/answer.h"
#include "core/engine/declared.h"
#include "api/routes/facts.h"

static bool is_available(GraphVersion *version)
{
        return atomic_load(&version->state) != GRAPH_STATE_DAMAGED && !atomic_load(&version->unloaded) &&
               warm_up_state(version) != WARM_UP_WAITING;
}

// ---- TensorFlow Serving and KServe v1 ----
// KServe's: TensorFlow Serving has no list.
Status get_tf_models(const Answer *answer)
{
        char after[STORE_NAME_MAX + 1] = "";
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"models\": [");
        for (bool more = true, any = false; more;) {
                GraphVersion *rows[LIST_MAX];
                uint32_t n;
                TRY(engine_list(answer->context->engine, after[0] == '\0' ? NULL : after, LIST_MAX, rows, &n,
                                &more));
                for (uint32_t i = 0; i < n; i++) {
                        text_add(out, any ? ", " : "");
                        any = true;
                        text_add_json(out, rows[i]->name);
                        memcpy(after, rows[i]->name, sizeof(after));
                        graph_version_unref(rows[i]);
                }
                more = more && n > 0;
        }
        text_add(out, "]}\n");
        return STATUS_OK;
}

static void write_version(GraphVersion *version, Text *out)
{
        bool available = is_available(version), unloaded = atomic_load(&version->unloaded),
             loading = warm_up_state(version) == WARM_UP_WAITING, is_fine = available || unloaded || loading;
        text_addf(out,
                  "{\"version\": \"%lld\", \"state\": \"%s\", \"status\": {\"error_code\": \"%s\", "
                  "\"error_message\": ",
                  (long long)version->stored.version,
                  available ? "AVAILABLE"
                  : loading ? "LOADING"
                            : "END",
                  is_fine ? "OK" : "DATA_LOSS");
        text_add_json(out, is_fine ? "" : graph_version_reason(version));
        text_add(out, "}}");
}

// The newest first. KServe reads "name" and "ready", TensorFlow Serving's clients the rest.
Status get_tf_model(const Answer *answer)
{
        _cleanup_(version_list_deinit) VersionList list = { .n = 0 };
        TRY(engine_versions(answer->context->engine, answer->version->name, &list));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"name\": ");
        text_add_json(out, answer->version->name);
        text_addf(out, ", \"ready\": %s, \"model_version_status\": [",
                  is_available(answer->version) ? "true" : "false");
        bool all = answer->call->version == 0, any = false;
        for (uint32_t i = list.n; i-- > 0;) {
                GraphVersion *version = list.versions[i];
                if (!all && version->stored.version != answer->version->stored.version)
                        continue;
                text_add(out, any ? ", " : "");
                any = true;
                write_version(version, out);
        }
        text_add(out, "]}\n");
        return STATUS_OK;
}

// TensorFlow's names of dtypes; all of core's have one.
static const char *const tf_dtypes[DTYPE_COUNT] = {
        [DTYPE_BOOL] = "DT_BOOL",  [DTYPE_U8] = "DT_UINT8",      [DTYPE_I8] = "DT_INT8",
        [DTYPE_I16] = "DT_INT16",  [DTYPE_I32] = "DT_INT32",     [DTYPE_I64] = "DT_INT64",
        [DTYPE_U16] = "DT_UINT16", [DTYPE_U32] = "DT_UINT32",    [DTYPE_U64] = "DT_UINT64",
        [DTYPE_F16] = "DT_HALF",   [DTYPE_BF16] = "DT_BFLOAT16", [DTYPE_F32] = "DT_FLOAT",
        [DTYPE_F64] = "DT_DOUBLE", [DTYPE_C64] = "DT_COMPLEX64", [DTYPE_C128] = "DT_COMPLEX128",
};

// A TensorInfo. Sizes are texts, as protobuf writes 64 bits in JSON; open ones are "-1".
static void write_tensor_info(const TensorFact *fact, Text *out)
{
        int rank = fact->kind == FACT_TENSOR ? fact->spec.rank : 0;
        text_add_json(out, fact->name);
        text_addf(out, ": {\"dtype\": \"%s\", \"tensor_shape\": {\"dim\": [", tf_dtypes[fact_dtype(fact)]);
        for (int d = 0; d < rank; d++) {
                const SymDim *size = &fact->spec.size[d];
                text_addf(out, "%s{\"size\": \"%lld\", \"name\": \"\"}", d == 0 ? "" : ", ",
                          size->expr != NULL ? -1LL : (long long)size->value);
        }
        text_addf(out, "], \"unknown_rank\": %s}, \"name\": ", rank < 0 ? "true" : "false");
        text_add_json(out, fact->name);
        text_add_char(out, '}');
}

static void write_tensor_infos(const char *name, const TensorFact *facts, uint32_t n, Text *out)
{
        text_addf(out, "\"%s\": {", name);
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                write_tensor_info(&facts[i], out);
        }
        text_add(out, "}, ");
}

Status get_tf_metadata(const Answer *answer)
{
        _cleanup_(graph_facts_deinit) GraphFacts facts = { .n_inputs = 0 };
        TRY(graph_facts_now(answer->context->engine, answer->version, answer->graph, &facts));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"model_spec\": {\"name\": ");
        text_add_json(out, answer->version->name);
        text_addf(out,
                  ", \"signature_name\": \"\", \"version\": \"%lld\"}, \"metadata\": {\"signature_def\": "
                  "{\"signature_def\": {\"serving_default\": {",
                  (long long)answer->version->stored.version);
        write_tensor_infos("inputs", facts.inputs, facts.n_inputs, out);
        write_tensor_infos("outputs", facts.outputs, facts.list.n, out);
        text_add(out, "\"method_name\": \"tensorflow/serving/predict\"}}}}}\n");
        return STATUS_OK;
}

// ---- TorchServe ----
static void write_ts_name(const GraphVersion *version, Text *out)
{
        text_add(out, "{\"modelName\": ");
        text_add_json(out, version->name);
        text_addf(out, ", \"modelVersion\": \"%lld\", \"modelUrl\": \"/v1/graphs/%s\"",
                  (long long)version->stored.version, version->name);
}

Status get_ts_models(const Answer *answer)
{
        int64_t limit;
        GraphVersion *rows[LIST_MAX];
        uint32_t n;
        bool more;
        TRY(param_int(answer->call, PARAM_LIMIT, &limit));
        TRY(engine_list(answer->context->engine, param_text(answer->call, PARAM_PAGE_TOKEN), (uint32_t)limit,
                        rows, &n, &more));
        Text *out = answer_begin(answer, json_type);
        text_add_char(out, '{');
        if (more) {
                text_add(out, "\"nextPageToken\": ");
                text_add_json(out, rows[n - 1]->name);
                text_add(out, ", ");
        }
        text_add(out, "\"models\": [");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                write_ts_name(rows[i], out);
                text_add_char(out, '}');
                graph_version_unref(rows[i]);
        }
        text_add(out, "]}\n");
        return STATUS_OK;
}

// Every worker runs every model.
Status get_ts_model(const Answer *answer)
{
        int n = answer->context->facts->n_workers;
        const char *state = is_available(answer->version) ? "READY" : "UNLOADED";
        Text *out = answer_begin(answer, json_type);
        text_add_char(out, '[');
        write_ts_name(answer->version, out);
        text_addf(out,
                  ", \"minWorkers\": %d, \"maxWorkers\": %d, \"batchSize\": 1, \"maxBatchDelay\": 0, "
                  "\"workers\": [",
                  n, n);
        for (int i = 0; i < n; i++)
                text_addf(out, "%s{\"id\": \"%d\", \"status\": \"%s\", \"gpu\": false}", i == 0 ? "" : ", ",
                          i, state);
        text_add(out, "]}]\n");
        return STATUS_OK;
}

Status get_ping(const Answer *answer)
{
        const char *why = api_unready(answer->context);
        Text *out = answer_begin(answer, json_type);
        answer->reply->status = why == NULL ? 200 : 503;
        if (why == NULL)
                text_add(out, "{\"status\": \"Healthy\"}\n");
        else
                text_addf(out, "{\"status\": \"Unhealthy\", \"error\": \"%s\", \"code\": \"busy\"}\n", why);
        return STATUS_OK;
}
