// SPDX-License-Identifier: Apache-2.0
// Routes about stored graphs. A change checks its preconditions and is made within one engine
// change, so that no other change comes between.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "api/run/condition.h"
#include "api/run/example.h"
#include "api/routes/batching.h"
#include "api/routes/warm_up.h"
#include "api/run/image_settings.h"
#include "api/routes/info.h"
#include "api/run/samples.h"
#include "api/run/top.h"
#include "api/run/run_private.h"
#include "api/readers/operators.h"
#include "api/readers/recognise.h"
#include "api/readers/upload.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/edit/content.h"

// ---- uploads ----
static Status reply_info(const Answer *answer, GraphVersion *version, const Graph *graph)
{
        Engine *engine = answer->context->engine;
        _cleanup_(version_list_deinit) VersionList list = { .n = 0 };
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        InfoOf of = { .version = version,
                      .is_resident = engine_is_resident(engine, version),
                      .graph = graph,
                      .programs = programs };
        Status status = engine_versions(engine, version->name, &list);
        // deleted meanwhile: answer all the same
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
                return status;
        of.list = status == STATUS_OK ? &list : NULL;
        _cleanup_(text_deinit) Text derivation = { 0 };
        TRY(engine_derivation(engine, version, &derivation));
        of.derivation = derivation.n == 0 ? NULL : &derivation;
        of.n_programs = engine_programs(engine, version, programs);
        engine_batch_facts(engine, version, &of.batching);
        Text *out = answer_begin(answer, json_type);
        status = info_write(&of, out);
        for (uint32_t i = 0; i < of.n_programs; i++)
                program_info_deinit(&programs[i]);
        text_add_char(out, '\n');
        return status;
}

static void add_tag(const Answer *answer, const GraphVersion *version, const char *suffix)
{
        api_reply_header(answer->reply, "ETag", "\"%s%s\"", condition_tag(&version->stored).hex, suffix);
}

Status answer_unchanged(const Answer *answer, bool *out_unchanged)
{
        const char *suffix;
        TRY(condition_check_get(answer->call, condition_tag(&answer->version->stored).hex, &suffix));
        *out_unchanged = suffix != NULL;
        // a large reply gets its own tag in gzip.c
        add_tag(answer, answer->version, *out_unchanged ? suffix : "");
        if (!*out_unchanged)
                return STATUS_OK;
        answer->reply->status = 304;
        api_reply_header(answer->reply, "Vary", "Accept-Encoding");
        return STATUS_OK;
}

// Preconditions against the current version of the name. Within an engine change.
static Status check_current(const Answer *answer, const char *name, int64_t number)
{
        _cleanup_(graph_version_unrefp) GraphVersion *current = NULL;
        if (answer->call->if_match[0] == '\0' && answer->call->if_none_match[0] == '\0')
                return STATUS_OK;
        Status status = engine_find(answer->context->engine, name, number, &current);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
                return status;
        return condition_check(answer->call, current == NULL ? NULL : condition_tag(&current->stored).hex);
}

// Only a delete helps.
static Status refuse_upload(Quota *quota, QuotaKind kind, Status status)
{
        return quota_refuse(quota, kind, failure_members(status, RETRY_NEVER, strlen(RETRY_NEVER)));
}

static Status check_quota(const NamedAnswer *named)
{
        const ApiCall *call = named->answer->call;
        int64_t graphs = call->quota == NULL ? 0 : atomic_load(&call->quota->most[QUOTA_GRAPHS]),
                bytes = call->quota == NULL ? 0 : atomic_load(&call->quota->most[QUOTA_BYTES]);
        OwnedUse use;
        if (graphs == 0 && bytes == 0)
                return STATUS_OK;
        engine_owned(named->answer->context->engine, call->caller, named->name, named->content, &use);
        if (use.has_content)
                return STATUS_OK;
        if (graphs > 0 && use.n_graphs + !use.has_name > graphs)
                return refuse_upload(
                        call->quota, QUOTA_GRAPHS,
                        fail(STATUS_TOO_MANY,
                             "this token has %u graphs, as many as it may have (graphs=%lld in the "
                             "token file); delete some of them",
                             use.n_graphs, (long long)graphs));
        if (bytes > 0 && use.bytes + (int64_t)named->n_bytes > bytes)
                return refuse_upload(
                        call->quota, QUOTA_BYTES,
                        fail(STATUS_TOO_MANY,
                             "this token's uploads take %lld bytes and may take %lld (bytes=%lld in "
                             "the token file); delete some of them",
                             (long long)use.bytes, (long long)bytes, (long long)bytes));
        return STATUS_OK;
}

Status answer_check_named(void *context)
{
        const NamedAnswer *named = context;
        TRY(check_current(named->answer, named->name, 0));
        return check_quota(named);
}

bool answer_is_conditional(const Answer *answer)
{
        Quota *quota = answer->call->quota;
        return (quota != NULL &&
                atomic_load(&quota->most[QUOTA_GRAPHS]) + atomic_load(&quota->most[QUOTA_BYTES]) > 0) ||
               answer->call->if_match[0] != '\0' || answer->call->if_none_match[0] != '\0';
}

Status answer_put(const Answer *answer, GraphVersion *version, const Graph *graph, bool created)
{
        TRY(reply_info(answer, version, graph));
        add_tag(answer, version, "");
        answer->reply->status = created ? 201 : 200;
        if (created)
                api_reply_header(answer->reply, "Location", "/v1/graphs/%s", version->name);
        return STATUS_OK;
}

// Samples that came along must come out before the graph may be served.
static Status verify(const Answer *answer, const Upload *upload, Graph *graph)
{
        const char *text = param_text(answer->call, PARAM_TOLERANCE);
        double tolerance = 1e-4;
        char *end = NULL;
        Samples samples;
        if (text != NULL)
                tolerance = strtod(text, &end);
        if (text != NULL && (end == text || *end != '\0' || !(tolerance >= 0) || tolerance > 1e30))
                return fail(STATUS_VALUE, "\"tolerance\" is a number from 0 on, not \"%.64s\"", text);
        for (uint32_t i = 0; i < upload->n_parts; i++) {
                if (strcmp(upload->parts[i].name, "samples") != 0)
                        continue;
                TRY(failure_at_argument(samples_read(upload->parts[i].bytes, &samples), "samples"));
                Status status = samples_verify(answer->context, graph, &samples, tolerance);
                samples_deinit(&samples);
                return failure_at_argument(status, "samples");
        }
        return STATUS_OK;
}

static Storage *part_of(const Upload *upload, const char *name) // borrowed; NULL: there is none
{
        for (uint32_t i = 0; i < upload->n_parts; i++)
                if (strcmp(upload->parts[i].name, name) == 0)
                        return upload->parts[i].bytes;
        return NULL;
}

static Status check_labels(const Upload *upload)
{
        for (uint32_t i = 0; i < upload->n_parts; i++)
                if (strcmp(upload->parts[i].name, "labels") == 0)
                        return failure_at_argument(labels_check(body_span(upload->parts[i].bytes)), "labels");
        return STATUS_OK;
}

// What is stored is the graph with what came along, as a result of its own.
static Status store_completed(const Answer *answer, const Upload *upload, const StoreVersion *identified)
{
        const char *packed_on = param_text(answer->call, PARAM_PACKED_ON);
        int processor;
        _cleanup_(graph_unrefp) Graph *base = NULL;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(text_deinit) Text recipe = { 0 };
        uint64_t content[4];
        RunContext bounds;
        bool created;
        TRY(param_choice(answer->call, PARAM_PACKED_ON, &processor));
        if (part_of(upload, "labels") != NULL || upload->image != NULL)
                return fail(
                        STATUS_INPUT,
                        "labels and image settings do not come along with operators or ?packed_on=; upload "
                        "the graph that "
                        "GET .../text?form=json gives with them");
        answer_bounds(answer, &bounds);
        TRY(upload_decode_to_run(upload, param_text(answer->call, PARAM_MODEL), false, &base));
        TRY(operators_inline(upload, base, packed_on, &bounds, &graph));
        TRY(engine_check(graph));
        TRY(verify(answer, upload, graph));
        TRY(operators_content(upload, identified, packed_on, content, &recipe));
        const StoreVersion derived = { .id = content_hex(content) };
        NamedAnswer named = { answer, answer->call->name[0] == '\0' ? derived.id.hex : answer->call->name,
                              answer->call->body->n_bytes, &derived };
        PutCondition condition = { answer_check_named, &named };
        DerivedPut put = { .name = answer->call->name,
                           .graph = graph,
                           .content = content,
                           .recipe = { (const uint8_t *)recipe.data, recipe.n },
                           .owner = answer->call->caller,
                           .samples = part_of(upload, "samples"),
                           .only_if = answer_is_conditional(answer) ? &condition : NULL };
        TRY(engine_put_derived(answer->context->engine, &put, &version, &created));
        return answer_put(answer, version, graph, created);
}

static Status store_upload(const Answer *answer, const Upload *upload)
{
        const char *model = param_text(answer->call, PARAM_MODEL);
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(graph_unrefp) Graph *runs = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(text_deinit) Text image = { 0 };
        StoreVersion identified;
        bool created;
        TRY(check_labels(upload));
        TRY(upload_identify(upload->parts, upload->n_parts, model, upload->format, &identified));
        if (upload->n_operators > 0 || param_text(answer->call, PARAM_PACKED_ON) != NULL)
                return store_completed(answer, upload, &identified);
        TRY(upload_decode(upload->parts, upload->n_parts, model, true, &graph));
        TRY(engine_check(graph));
        if (part_of(upload, "samples") != NULL)
                TRY(upload_decode_to_run(upload, model, true, &runs));
        TRY(verify(answer, upload, runs));
        if (upload->image != NULL)
                TRY(failure_at_argument(image_settings_take(body_span(upload->image), graph, &image),
                                        "image"));
        NamedAnswer named = { answer, answer->call->name[0] == '\0' ? identified.id.hex : answer->call->name,
                              answer->call->body->n_bytes, &identified };
        PutCondition condition = { answer_check_named, &named };
        PutRequest put = { .name = answer->call->name,
                           .parts = upload->parts,
                           .n_parts = upload->n_parts,
                           .identified = &identified,
                           .graph = graph,
                           .image = image.data,
                           .owner = answer->call->caller,
                           .only_if = answer_is_conditional(answer) ? &condition : NULL };
        TRY(engine_put(answer->context->engine, &put, &version, &created));
        return answer_put(answer, version, graph, created);
}

Status put_graph(const Answer *answer)
{
        Upload upload = { .n_parts = 0 };
        if (answer->call->body == NULL || answer->call->body->n_bytes == 0)
                return fail(STATUS_WRONG_FILE,
                            "the body is empty; send the file with curl -T model.pt2 .../v1/graphs/model");
        // checked again within the change; a refused upload need not be decoded
        if (answer->call->name[0] != '\0')
                TRY(check_current(answer, answer->call->name, 0));
        if (recognise_variant((ByteSpan){ answer->call->body->data, answer->call->body->n_bytes }))
                return put_variant(answer);
        TRY(upload_split(answer->call->body, answer->call->content_type, &upload));
        if (upload.parts[0].bytes == answer->call->body)
                upload.parts[0].digest = answer->call->body_digest;
        engine_collect(answer->context->engine, upload.parts, upload.n_parts, upload.pieces);
        Status status = upload_check_inflated(&upload);
        if (status == STATUS_OK)
                status = store_upload(answer, &upload);
        upload_deinit(&upload);
        return status;
}

// ---- graphs ----
Status get_list(const Answer *answer)
{
        int64_t limit;
        GraphVersion *rows[LIST_MAX];
        uint32_t n;
        bool more;
        TRY(param_int(answer->call, PARAM_LIMIT, &limit));
        TRY(engine_list(answer->context->engine, param_text(answer->call, PARAM_AFTER_NAME), (uint32_t)limit,
                        rows, &n, &more));
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"graphs\": [");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ",\n");
                info_write_row(rows[i], engine_is_resident(answer->context->engine, rows[i]), out);
        }
        text_add(out, "], \"next\": ");
        if (more)
                text_add_json(out, rows[n - 1]->name);
        else
                text_add(out, "null");
        text_add(out, "}\n");
        for (uint32_t i = 0; i < n; i++)
                graph_version_unref(rows[i]);
        return STATUS_OK;
}

// Never 304: the tag identifies the content, but aliases, versions, programs and residency change
// without it.
Status get_graph(const Answer *answer)
{
        TRY(condition_check_info(answer->call, condition_tag(&answer->version->stored).hex));
        add_tag(answer, answer->version, "");
        return reply_info(answer, answer->version, answer->graph);
}

// The versions after ?after=N, oldest first.
Status get_versions(const Answer *answer)
{
        Engine *engine = answer->context->engine;
        _cleanup_(version_list_deinit) VersionList list = { .n = 0 };
        int64_t limit, after;
        uint32_t i = 0;
        TRY(param_int(answer->call, PARAM_LIMIT, &limit));
        TRY(param_int(answer->call, PARAM_AFTER_VERSION, &after));
        TRY(engine_versions(engine, answer->call->name, &list));
        while (i < list.n && list.versions[i]->stored.version <= after)
                i++;
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"versions\": [");
        uint32_t first = i, end = (uint32_t)MIN((int64_t)list.n, first + limit);
        for (; i < end; i++) {
                text_add(out, i == first ? "" : ",\n");
                info_write_version(&list, list.versions[i], engine_is_resident(engine, list.versions[i]),
                                   out);
        }
        if (end < list.n)
                text_addf(out, "], \"next\": %lld}\n", (long long)list.versions[end - 1]->stored.version);
        else
                text_add(out, "], \"next\": null}\n");
        return STATUS_OK;
}

// Resolves an alias in the path to the version it names now. Within an engine change.
static Status find_number(const Answer *answer)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        return answer->call->alias[0] == '\0'
                       ? STATUS_OK
                       : api_find_version(answer->context->engine, answer->call, &version);
}

Status delete_graph(const Answer *answer)
{
        const ApiCall *call = answer->call;
        engine_begin_change(answer->context->engine);
        Status status = find_number(answer);
        if (status == STATUS_OK)
                status = check_current(answer, call->name, call->version);
        if (status == STATUS_OK)
                status = engine_delete(answer->context->engine, call->name, call->version);
        engine_end_change(answer->context->engine);
        TRY(status);
        answer->reply->status = 204;
        return STATUS_OK;
}

// ---- the default version, aliases ----
#define CHANGE_FORM                                                                                          \
        "{\"default_version\": 2}, {\"aliases\": {\"prod\": 3}}, {\"image\": {...}}, {\"precision\": "       \
        "\"int8\"}, {\"tolerance\": 0.01}, {\"batching\": {...}} or {\"warm_up\": [\"x:1,3\"]}"

typedef struct Change {
        HeadChange head;
        AliasChange *aliases;
        uint32_t capacity;
        bool has_precision, has_tolerance;
        bool has_image;
        bool takes_images; // `image` says how; else they are taken no more
        ImageSettings image;
        Text image_text, batching_text, warm_up_text;
        char tolerance_text[NUMBER_TEXT_MAX + 1];
        bool has_batching, has_warm_up;
} Change;

static bool has_settings(const Change *change)
{
        return change->has_image || change->has_precision || change->has_tolerance || change->has_batching ||
               change->has_warm_up;
}

static Status read_version(JsonReader *reader, const char *what, int64_t *out_version)
{
        if (json_peek(reader) != JSON_NUMBER)
                return fail(STATUS_VALUE, "\"%s\" is the number of a version", what);
        TRY(json_read_int(reader, out_version));
        return *out_version > 0 ? STATUS_OK : fail(STATUS_VALUE, "\"%s\" is a number from 1 on", what);
}

static Status read_alias(void *context, JsonReader *reader, const char *name)
{
        Change *change = context;
        AliasChange alias = { .version = 0 };
        if (!route_is_alias(name))
                return fail(STATUS_VALUE,
                            "an alias has 1 to %d letters, digits, '_', '.' or '-' and begins with a letter "
                            "or '_'; \"%.64s\" does not",
                            (int)limits.max_name, name);
        snprintf(alias.name, sizeof(alias.name), "%s", name);
        if (json_peek(reader) == JSON_NULL)
                TRY(json_read_null(reader));
        else
                TRY(read_version(reader, name, &alias.version));
        TRY(array_reserve(&change->aliases, &change->capacity, change->head.n_aliases + 1, sizeof(alias)));
        change->aliases[change->head.n_aliases++] = alias;
        return STATUS_OK;
}

static Status read_aliases(JsonReader *reader, Change *change)
{
        return json_peek(reader) == JSON_OBJECT
                       ? json_each_member(reader, read_alias, change)
                       : fail(STATUS_VALUE, "\"aliases\" is an object: {\"prod\": 3, \"old\": null}");
}

// f32 is what there is without a setting.
static Status read_precision(JsonReader *reader, Change *change)
{
        const char *name;
        int choice;
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"precision\" is a text");
        TRY(json_read_string(reader, &name, NULL));
        TRY(param_choose(PARAM_PRECISION, name, &choice));
        change->has_precision = true;
        change->head.settings[SETTING_PRECISION] = choice == PRECISION_F32 ? "" : precision_names[choice];
        return STATUS_OK;
}

// 0 is none: the precision holds. The text that is kept reads back equal, so it is of the same
// bucket.
static Status read_tolerance(JsonReader *reader, Change *change)
{
        double number;
        TRY(run_read_nonnegative(reader, "tolerance", &number));
        change->tolerance_text[number_print_f64(number, change->tolerance_text)] = '\0';
        change->has_tolerance = true;
        change->head.settings[SETTING_TOLERANCE] = number == 0 ? "" : change->tolerance_text;
        return STATUS_OK;
}

static Status read_image(JsonReader *reader, Change *change)
{
        change->has_image = true;
        change->takes_images = json_peek(reader) != JSON_NULL;
        return change->takes_images
                       ? failure_at_argument(image_settings_read(reader, &change->image), "image")
                       : json_read_null(reader);
}

static Status read_batching(JsonReader *reader, Change *change)
{
        BatchPolicy policy = { .max_size = 0 };
        if (json_peek(reader) == JSON_NULL)
                TRY(json_read_null(reader));
        else
                TRY(failure_at_argument(batching_read(reader, &policy), "batching"));
        batch_policy_write(&policy, &change->batching_text);
        TRY(text_status(&change->batching_text));
        change->has_batching = true;
        change->head.settings[SETTING_BATCHING] =
                change->batching_text.n == 0 ? "" : change->batching_text.data;
        return STATUS_OK;
}

static Status read_warm_up(JsonReader *reader, Change *change)
{
        TRY(failure_at_argument(warm_up_read(reader, &change->warm_up_text), "warm_up"));
        change->has_warm_up = true;
        change->head.settings[SETTING_WARM_UP] = change->warm_up_text.n == 0 ? "" : change->warm_up_text.data;
        return STATUS_OK;
}

static Status read_member(void *context, JsonReader *reader, const char *key)
{
        Change *change = context;
        if (strcmp(key, "default_version") == 0)
                return read_version(reader, key, &change->head.default_version);
        if (strcmp(key, "aliases") == 0)
                return read_aliases(reader, change);
        if (strcmp(key, "image") == 0)
                return read_image(reader, change);
        if (strcmp(key, "precision") == 0)
                return read_precision(reader, change);
        if (strcmp(key, "tolerance") == 0)
                return read_tolerance(reader, change);
        if (strcmp(key, "batching") == 0)
                return read_batching(reader, change);
        if (strcmp(key, "warm_up") == 0)
                return read_warm_up(reader, change);
        return fail(STATUS_UNKNOWN_MEMBER,
                    "unknown member \"%.64s\"; what can be changed is: default_version, aliases, image, "
                    "precision, tolerance, batching, warm_up",
                    key);
}

static Status read_change(JsonReader *reader, Change *change)
{
        TRY(json_each_member(reader, read_member, change));
        if (change->head.default_version == 0 && change->head.n_aliases == 0 && !has_settings(change))
                return fail(STATUS_INPUT, "there is nothing to change; send " CHANGE_FORM);
        if (change->has_precision && change->has_tolerance)
                return fail(STATUS_VALUE, "\"precision\" and \"tolerance\" exclude each other");
        // of the two the one that was set last holds
        if (change->has_tolerance)
                change->head.settings[SETTING_PRECISION] = "";
        if (change->has_precision)
                change->head.settings[SETTING_TOLERANCE] = "";
        return json_finish(reader);
}

static Status parse_change(const ApiCall *call, Change *change)
{
        Arena arena;
        JsonReader *reader = NULL;
        if (call->body == NULL || call->body->n_bytes == 0)
                return fail(STATUS_INPUT, "the body is empty; send " CHANGE_FORM);
        arena_init(&arena, 0);
        Status status =
                json_open((const char *)call->body->data, call->body->n_bytes, 4, 1000, &arena, &reader);
        if (status == STATUS_OK)
                status = read_change(reader, change);
        json_close(reader);
        arena_deinit(&arena);
        change->head.aliases = change->aliases;
        return status;
}

static Status check_settings(const Graph *graph, Change *change)
{
        const Input *input;
        if (change->warm_up_text.n > 0)
                TRY(failure_at_argument(warm_up_check(graph, change->warm_up_text.data), "warm_up"));
        if (!change->takes_images)
                return STATUS_OK;
        TRY(failure_at_argument(image_settings_input(&change->image, graph, &input), "image"));
        image_settings_write(&change->image, &change->image_text);
        TRY(text_status(&change->image_text));
        change->head.settings[SETTING_IMAGE] = change->image_text.data;
        return STATUS_OK;
}

// The settings go to the version that the name has from then on, which has to go with them.
static Status settle_settings(const Answer *answer, Change *change)
{
        Engine *engine = answer->context->engine;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        if (!has_settings(change))
                return STATUS_OK;
        TRY(engine_find(engine, answer->call->name, change->head.default_version, &version));
        change->head.set_version = version->stored.version;
        if (change->has_image)
                change->head.settings[SETTING_IMAGE] = "";
        if (!change->takes_images && change->warm_up_text.n == 0)
                return STATUS_OK;
        TRY(engine_graph(engine, version, &graph));
        return check_settings(graph, change);
}

static Status apply_change(const Answer *answer, const HeadChange *change)
{
        const ApiCall *call = answer->call;
        Engine *engine = answer->context->engine;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        engine_begin_change(engine);
        Status status = check_current(answer, call->name, 0);
        if (status == STATUS_OK)
                status = engine_change(engine, call->name, change);
        if (status == STATUS_OK)
                status = engine_find(engine, call->name, 0, &version);
        engine_end_change(engine);
        TRY(status);
        add_tag(answer, version, "");
        return reply_info(answer, version, NULL);
}

Status patch_graph(const Answer *answer)
{
        Change change = { .capacity = 0 };
        Status status = parse_change(answer->call, &change);
        if (status == STATUS_OK)
                status = settle_settings(answer, &change);
        if (status == STATUS_OK)
                status = apply_change(answer, &change.head);
        free(change.aliases);
        text_deinit(&change.image_text);
        text_deinit(&change.batching_text);
        text_deinit(&change.warm_up_text);
        return status;
}

// ---- example ----
Status get_example(const Answer *answer)
{
        bool unchanged;
        TRY(answer_unchanged(answer, &unchanged));
        if (unchanged)
                return STATUS_OK;
        return example_write(answer->graph, answer->version->stats, answer_begin(answer, json_type));
}
