// SPDX-License-Identifier: Apache-2.0
// What TensorFlow Serving and KServe v1 say of a model. A model is a graph, under its name.
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
