// SPDX-License-Identifier: Apache-2.0
// What TensorFlow Serving, KServe v1, TorchServe and SageMaker say of models. A model is a graph,
// under its name.
#include <string.h>
#include "api/routes/answer.h"

static bool is_available(GraphVersion *version)
{
        return atomic_load(&version->state) != GRAPH_STATE_DAMAGED && !atomic_load(&version->unloaded);
}

static void write_version(GraphVersion *version, Text *out)
{
        bool available = is_available(version), unloaded = atomic_load(&version->unloaded);
        text_addf(out,
                  "{\"version\": \"%lld\", \"state\": \"%s\", \"status\": {\"error_code\": \"%s\", "
                  "\"error_message\": ",
                  (long long)version->stored.version, available ? "AVAILABLE" : "END",
                  available || unloaded ? "OK" : "DATA_LOSS");
        text_add_json(out, available || unloaded ? "" : graph_version_reason(version));
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
                        write_ts_name(rows[i], out);
                        text_add_char(out, '}');
                        memcpy(after, rows[i]->name, sizeof(after));
                        graph_version_unref(rows[i]);
                }
                more = more && n > 0;
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
        bool ready = answer->context->facts->ready;
        Text *out = answer_begin(answer, json_type);
        answer->reply->status = ready ? 200 : 503;
        text_add(out,
                 ready ? "{\"status\": \"Healthy\"}\n"
                       : "{\"status\": \"Unhealthy\", \"error\": \"the server is stopping, or no worker has "
                         "shown life for a second\", \"code\": \"busy\"}\n");
        return STATUS_OK;
}
