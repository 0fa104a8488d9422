// SPDX-License-Identifier: Apache-2.0
// Routes of the Open Inference Protocol but for runs (api/run/oip_decode.c): health, metadata,
// configuration, statistics, and the repository. A model is a graph, under its name.
#include <stdio.h>
#include <string.h>
#include "api/formats/base64.h"
#include "api/routes/answer.h"
#include "api/routes/facts.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/engine/batch.h"
#include "core/engine/declared.h"
#include "core/engine/plan.h"

// ---- server ----
Status get_oip_server(const Answer *answer)
{
        text_addf(answer_begin(answer, json_type),
                  "{\"name\": \"fxserve\", \"version\": \"%s\", \"extensions\": [\"binary_tensor_data\", "
                  "\"model_configuration\", \"model_repository\", \"parameters\", \"sequence\", "
                  "\"statistics\"]}\n",
                  answer->context->facts->version);
        return STATUS_OK;
}

Status get_oip_ready(const Answer *answer)
{
        const char *why = api_unready(answer->context);
        Text *out = answer_begin(answer, json_type);
        answer->reply->status = why == NULL ? 200 : 400;
        if (why == NULL)
                text_add(out, "{\"live\": true, \"ready\": true}\n");
        else
                text_addf(out, "{\"error\": \"%s\"}\n", why);
        return STATUS_OK;
}

// ---- one model ----
static const char *datatype_of(const TensorFact *fact)
{
        const char *name = dtype_info[fact_dtype(fact)].oip;
        return name == NULL ? "FP32" : name;
}

// Open sizes are -1, and so is a shape that nobody knows.
static void write_dims(const TensorFact *fact, Text *out)
{
        text_add_char(out, '[');
        if (fact->kind != FACT_TENSOR)
                text_add(out, "1");
        else if (fact->spec.rank < 0)
                text_add(out, "-1");
        for (int d = 0; fact->kind == FACT_TENSOR && d < fact->spec.rank; d++) {
                text_add(out, d == 0 ? "" : ", ");
                text_add_int(out, fact->spec.size[d].expr != NULL ? -1 : fact->spec.size[d].value);
        }
        text_add_char(out, ']');
}

static void write_metadata(const TensorFact *fact, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, fact->name);
        text_addf(out, ", \"datatype\": \"%s\", \"shape\": ", datatype_of(fact));
        write_dims(fact, out);
        text_add_char(out, '}');
}

static void write_config(const TensorFact *fact, Text *out)
{
        const char *type = datatype_of(fact);
        text_add(out, "{\"name\": ");
        text_add_json(out, fact->name);
        text_addf(out, ", \"data_type\": \"TYPE_%s\", \"dims\": ", type);
        write_dims(fact, out);
        text_add_char(out, '}');
}

static void write_list(const char *name, const TensorFact *facts, uint32_t n,
                       void (*write)(const TensorFact *fact, Text *out), Text *out)
{
        text_addf(out, ", \"%s\": [", name);
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                write(&facts[i], out);
        }
        text_add_char(out, ']');
}

static const char *platform_of(const Graph *graph)
{
        return graph->format == GRAPH_FX_JSON ? "pytorch_fx" : "pytorch_pt2";
}

static void write_versions(const VersionList *list, Text *out)
{
        text_add(out, ", \"versions\": [");
        for (uint32_t i = 0; i < list->n; i++)
                text_addf(out, "%s\"%lld\"", i == 0 ? "" : ", ",
                          (long long)list->versions[i]->stored.version);
        text_add_char(out, ']');
}

Status get_oip_model(const Answer *answer)
{
        _cleanup_(graph_facts_deinit) GraphFacts facts = { .n_inputs = 0 };
        _cleanup_(version_list_deinit) VersionList list = { .n = 0 };
        TRY(engine_versions(answer->context->engine, answer->version->name, &list));
        TRY(graph_facts_now(answer->context->engine, answer->version, answer->graph, &facts));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"name\": ");
        text_add_json(out, answer->version->name);
        write_versions(&list, out);
        text_addf(out, ", \"platform\": \"%s\"", platform_of(answer->graph));
        write_list("inputs", facts.inputs, facts.n_inputs, write_metadata, out);
        write_list("outputs", facts.outputs, facts.list.n, write_metadata, out);
        text_add(out, "}\n");
        return STATUS_OK;
}

// Of graphs whose runs are joined, or are to be: what PATCH says of it, in Triton's words.
static void write_dynamic_batching(const Answer *answer, Text *out)
{
        BatchPolicy policy = batch_policy(answer->version);
        BatchFacts facts;
        engine_batch_facts(answer->context->engine, answer->version, &facts);
        bool is_asked = policy.preferred != 0 || policy.max_delay_us != 0;
        if (policy.max_size == 1 || limits.max_batch == 1 || (facts.sizes == 0 && !is_asked))
                return;
        text_add(out, ", \"dynamic_batching\": {\"preferred_batch_size\": [");
        const char *separator = "";
        for (uint32_t size = 2; size <= BATCH_LARGEST; size *= 2) {
                if ((policy.preferred & size) == 0)
                        continue;
                text_addf(out, "%s%u", separator, size);
                separator = ", ";
        }
        text_addf(out, "], \"max_queue_delay_microseconds\": %lld", (long long)policy.max_delay_us);
        if (policy.priority != 0)
                text_addf(out, ", \"priority_levels\": %d, \"default_priority_level\": %u", BATCH_PRIORITIES,
                          policy.priority);
        text_add_char(out, '}');
}

// No dimension is taken for that of the batch here: a symbolic size is a size like any other.
Status get_oip_config(const Answer *answer)
{
        _cleanup_(graph_facts_deinit) GraphFacts facts = { .n_inputs = 0 };
        TRY(graph_facts_now(answer->context->engine, answer->version, answer->graph, &facts));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"name\": ");
        text_add_json(out, answer->version->name);
        text_addf(out, ", \"platform\": \"%s\", \"backend\": \"fxserve\", \"max_batch_size\": 0",
                  platform_of(answer->graph));
        write_list("input", facts.inputs, facts.n_inputs, write_config, out);
        write_list("output", facts.outputs, facts.list.n, write_config, out);
        write_dynamic_batching(answer, out);
        text_add(out, "}\n");
        return STATUS_OK;
}

static bool is_ready(GraphVersion *version)
{
        return atomic_load(&version->state) != GRAPH_STATE_DAMAGED && !atomic_load(&version->unloaded) &&
               warm_up_state(version) != WARM_UP_WAITING;
}

static const char *why_not_ready(GraphVersion *version)
{
        return atomic_load(&version->unloaded)             ? "unloaded"
               : warm_up_state(version) == WARM_UP_WAITING ? "its warm-ups are under way"
                                                           : graph_version_reason(version);
}

Status get_oip_model_ready(const Answer *answer)
{
        if (!is_ready(answer->version))
                return fail(STATUS_VALUE, "model '%s' is not ready: %s", answer->version->name,
                            why_not_ready(answer->version));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"name\": ");
        text_add_json(out, answer->version->name);
        text_add(out, ", \"ready\": true}\n");
        return STATUS_OK;
}

// ---- statistics ----
static void write_duration(const char *name, uint64_t count, int64_t ns, Text *out)
{
        text_addf(out, "\"%s\": {\"count\": %llu, \"ns\": %lld}", name, (unsigned long long)count,
                  (long long)ns);
}

static void write_stats(GraphVersion *version, bool has_cache, Text *out)
{
        RunSums sums = profile_stats_sums(version->stats);
        uint64_t n = sums.n_runs, n_all = n + sums.n_kept, n_executions = (uint64_t)(sums.n_executions + 0.5);
        text_add(out, "{\"name\": ");
        text_add_json(out, version->name);
        text_addf(out,
                  ", \"version\": \"%lld\", \"last_inference\": %lld, \"inference_count\": %llu, "
                  "\"execution_count\": %llu, \"inference_stats\": {",
                  (long long)version->stored.version, (long long)sums.last_ms, (unsigned long long)n_all,
                  (unsigned long long)n_executions);
        write_duration("success", n_all, sums.total_ns + sums.kept_ns, out);
        text_add(out, ", ");
        write_duration("fail", sums.n_failures, sums.failed_ns, out);
        text_add(out, ", ");
        write_duration("queue", n, sums.queue_ns, out);
        text_add(out, ", ");
        write_duration("compute_input", n, sums.decode_ns, out);
        text_add(out, ", ");
        write_duration("compute_infer", n, sums.run_ns, out);
        text_add(out, ", ");
        write_duration("compute_output", n, sums.encode_ns, out);
        text_add(out, ", ");
        write_duration("cache_hit", sums.n_kept, sums.kept_ns, out);
        text_add(out, ", ");
        write_duration("cache_miss", has_cache ? n : 0, 0, out);
        text_add(out, "}, \"batch_stats\": [], \"memory_usage\": []}");
}

Status get_oip_stats(const Answer *answer)
{
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"model_stats\": [");
        write_stats(answer->version, answer->context->replies != NULL, out);
        text_add(out, "]}\n");
        return STATUS_OK;
}

// Calls `write` for each version of each graph, by name.
static Status each_version(Engine *engine, void (*write)(GraphVersion *version, void *context), void *context)
{
        char after[STORE_NAME_MAX + 1] = "";
        for (bool more = true; more;) {
                GraphVersion *rows[LIST_MAX];
                uint32_t n;
                TRY(engine_list(engine, after[0] == '\0' ? NULL : after, LIST_MAX, rows, &n, &more));
                for (uint32_t i = 0; i < n; i++) {
                        VersionList list = { .n = 0 };
                        if (engine_versions(engine, rows[i]->name, &list) == STATUS_OK) // else it has gone
                                for (uint32_t v = 0; v < list.n; v++)
                                        write(list.versions[v], context);
                        version_list_deinit(&list);
                        memcpy(after, rows[i]->name, sizeof(after));
                        graph_version_unref(rows[i]);
                }
                more = more && n > 0;
        }
        return STATUS_OK;
}

typedef struct Listing {
        Text *out;
        bool any, only_ready, has_cache;
} Listing;

static void list_stats(GraphVersion *version, void *context)
{
        Listing *listing = context;
        text_add(listing->out, listing->any ? ",\n" : "");
        listing->any = true;
        write_stats(version, listing->has_cache, listing->out);
}

Status get_oip_all_stats(const Answer *answer)
{
        Listing listing = { .out = answer_begin(answer, json_type),
                            .has_cache = answer->context->replies != NULL };
        text_add(listing.out, "{\"model_stats\": [");
        TRY(each_version(answer->context->engine, list_stats, &listing));
        text_add(listing.out, "]}\n");
        return STATUS_OK;
}

// ---- the repository ----
static void list_model(GraphVersion *version, void *context)
{
        Listing *listing = context;
        bool ready = is_ready(version);
        if (listing->only_ready && !ready)
                return;
        text_add(listing->out, listing->any ? ",\n" : "");
        listing->any = true;
        text_add(listing->out, "{\"name\": ");
        text_add_json(listing->out, version->name);
        text_addf(listing->out, ", \"version\": \"%lld\", \"state\": \"%s\", \"reason\": ",
                  (long long)version->stored.version, ready ? "READY" : "UNAVAILABLE");
        text_add_json(listing->out, ready ? "" : why_not_ready(version));
        text_add_char(listing->out, '}');
}

static Status read_index_member(void *context, JsonReader *reader, const char *key)
{
        bool *only_ready = context;
        if (strcmp(key, "ready") != 0)
                return json_skip(reader);
        if (json_peek(reader) != JSON_TRUE && json_peek(reader) != JSON_FALSE)
                return fail(STATUS_VALUE, "\"ready\" is true or false");
        return json_read_bool(reader, only_ready);
}

typedef Status (*ReadMember)(void *context, JsonReader *reader, const char *key);
typedef struct NotNull {
        ReadMember read;
        void *context;
} NotNull;

static Status read_not_null(void *context, JsonReader *reader, const char *key)
{
        const NotNull *members = context;
        return json_peek(reader) == JSON_NULL ? json_read_null(reader)
                                              : members->read(members->context, reader, key);
}

// A body may be empty, or an object, whose members `read` takes.
static Status read_object(JsonReader *reader, ReadMember read, void *context)
{
        NotNull members = { read, context };
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "the body is an object, or empty");
        TRY(json_each_member(reader, read_not_null, &members));
        return json_finish(reader);
}

static Status read_body(const ApiCall *call, ReadMember read, void *context)
{
        Arena arena;
        JsonReader *reader = NULL;
        if (call->body == NULL || call->body->n_bytes == 0)
                return STATUS_OK;
        arena_init(&arena, 0);
        Status status = json_open((const char *)call->body->data, call->body->n_bytes,
                                  (int)limits.max_json_depth_run, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = read_object(reader, read, context);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

Status post_oip_index(const Answer *answer)
{
        Listing listing = { .any = false };
        TRY(read_body(answer->call, read_index_member, &listing.only_ready));
        listing.out = answer_begin(answer, json_type);
        text_add_char(listing.out, '[');
        TRY(each_version(answer->context->engine, list_model, &listing));
        text_add(listing.out, "]\n");
        return STATUS_OK;
}

// What load was told.
typedef struct Load {
        const Answer *answer;
        bool loads;
        char path[128]; // of the file; "": none came
} Load;

// Base64 text as it stands in the document.
static Status decode_file(const char *raw, size_t n, Storage **out_bytes)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        size_t n_bytes;
        if (n < 2 || raw[0] != '"' || memchr(raw, '\\', n) != NULL)
                return fail(STATUS_MALFORMED, "a file is a text in base64");
        TRY(base64_bytes(raw + 1, n - 2, &n_bytes));
        TRY(storage_new(n_bytes, false, NULL, &bytes));
        if (n_bytes > 0)
                TRY(base64_decode(raw + 1, n - 2, bytes->data));
        bytes->readonly = true;
        *out_bytes = take_ptr(bytes);
        return STATUS_OK;
}

// As if the file were the body of PUT /v1/graphs/{name}.
static Status put_file(const Answer *answer, Storage *bytes)
{
        ApiCall call = *answer->call;
        ApiReply reply = { .status = 0 };
        call.body = bytes;
        call.content_type[0] = call.body_digest.hex[0] = '\0';
        Answer put = { answer->context, &call, NULL, NULL, &reply };
        Status status = put_graph(&put);
        api_reply_deinit(&reply);
        return status;
}

static Status take_file(JsonReader *reader, const char *path, Load *load)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        const char *raw;
        size_t n;
        if (!load->loads)
                return json_skip(reader);
        if (load->path[0] != '\0')
                return fail(STATUS_INPUT, "a model is one file; %.64s comes beside %.64s", path, load->path);
        snprintf(load->path, sizeof(load->path), "%s", path);
        TRY(json_read_raw(reader, &raw, &n));
        TRY(decode_file(raw, n, &bytes));
        return put_file(load->answer, bytes);
}

// A configuration says nothing that the graph does not.
static Status read_load_parameter(void *load, JsonReader *reader, const char *key)
{
        return strncmp(key, "file:", 5) == 0 ? failure_at_argument(take_file(reader, key, load), key)
                                             : json_skip(reader);
}

static Status read_load_member(void *load, JsonReader *reader, const char *key)
{
        if (strcmp(key, "parameters") != 0)
                return json_skip(reader);
        return json_peek(reader) == JSON_OBJECT ? json_each_member(reader, read_load_parameter, load)
                                                : fail(STATUS_VALUE, "\"parameters\" is an object");
}

static Status load(const Answer *answer)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        Engine *engine = answer->context->engine;
        Load what = { .answer = answer, .loads = true };
        TRY(read_body(answer->call, read_load_member, &what));
        TRY(engine_find(engine, answer->call->name, 0, &version));
        TRY(engine_graph(engine, version, &graph));
        return engine_set_loaded(engine, answer->call->name, true);
}

Status post_oip_load(const Answer *answer)
{
        Status status = load(answer);
        if (status != STATUS_OK) {
                Failure failure = *failure_current();
                if (status == STATUS_NOT_FOUND)
                        status = STATUS_VALUE; // a path that exists; the model does not
                return fail(status, "failed to load '%s': %.400s", answer->call->name, failure.message);
        }
        text_add(answer_begin(answer, json_type), "{}\n");
        return STATUS_OK;
}

Status post_oip_unload(const Answer *answer)
{
        Load nothing = { .answer = answer };
        TRY(read_body(answer->call, read_load_member, &nothing));
        TRY(engine_set_loaded(answer->context->engine, answer->call->name, false));
        text_add(answer_begin(answer, json_type), "{}\n");
        return STATUS_OK;
}
