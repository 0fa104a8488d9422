// SPDX-License-Identifier: Apache-2.0
// variant.c: PUT of {"format": "fx-variant/1", "base": "m", "overrides": [...]}: a graph that is
// another graph with rules carried out. The result is stored. Tensors of the rules are state of it.
#include <string.h>
#include "api/readers/rules.h"
#include "api/routes/answer.h"
#include "api/routes/code_diff.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/engine/plan.h"
#include "core/engine/put.h"

typedef struct Variant {
        const char *base; // name
        int64_t version;  // of the base; 0: the default one
        bool dry_run;     // nothing is stored
        Recipe recipe;
        Budget budget; // of the rules' tensors
        // the base, then the graphs that the rules name
        GraphVersion **versions; // counted
        Graph **graphs;          // counted
        uint32_t n;
} Variant;

static void variant_deinit(Variant *variant)
{
        for (uint32_t i = 0; i < variant->n; i++) {
                graph_version_unref(variant->versions[i]);
                graph_unref(variant->graphs[i]);
        }
        free(variant->versions);
        free(variant->graphs);
        recipe_deinit(&variant->recipe);
}

// ---- the body ----
static Status read_member(JsonReader *json, const char *key, Variant *variant)
{
        const char *format;
        if (strcmp(key, "format") == 0)
                return json_read_string(json, &format, NULL);
        if (strcmp(key, "base") == 0)
                return json_peek(json) == JSON_STRING
                               ? json_read_string(json, &variant->base, NULL)
                               : fail(STATUS_VALUE, "\"base\" is the name of an uploaded graph");
        if (strcmp(key, "version") == 0) {
                TRY(json_read_int(json, &variant->version));
                return variant->version > 0 ? STATUS_OK
                                            : fail(STATUS_VALUE, "\"version\" is a number from 1 on");
        }
        if (strcmp(key, "overrides") == 0)
                return recipe_read_overrides(json, &variant->budget, &variant->recipe);
        if (strcmp(key, "leaf") == 0)
                return recipe_read_leaf(json, &variant->recipe);
        if (strcmp(key, "dry_run") == 0)
                return json_peek(json) == JSON_TRUE || json_peek(json) == JSON_FALSE
                               ? json_read_bool(json, &variant->dry_run)
                               : fail(STATUS_VALUE, "\"dry_run\" is true or false");
        return fail(STATUS_UNKNOWN_MEMBER,
                    "a variant has no member \"%.60s\"; it knows format, base, version, overrides, leaf, "
                    "dry_run",
                    key);
}

static Status read_variant(JsonReader *json, Variant *variant)
{
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                TRY(failure_at_argument(read_member(json, key, variant), key));
        }
        TRY(json_finish(json));
        if (variant->base == NULL)
                return fail(STATUS_MALFORMED, "a variant needs \"base\", the name of an uploaded graph");
        if (variant->recipe.n_rules == 0 && variant->recipe.leaf.n == 0)
                return fail(STATUS_MALFORMED, "a variant needs \"overrides\", a list of rules, or \"leaf\"");
        Recipe nothing = { .n_hidden = 0 };
        return recipe_begin_with(&variant->recipe, &nothing, NULL);
}

// ---- the graphs ----
static Status take_graph(Engine *engine, Variant *variant)
{
        variant->n++;
        return engine_graph(engine, variant->versions[variant->n - 1], &variant->graphs[variant->n - 1]);
}

static Status find_graphs(Engine *engine, Variant *variant)
{
        variant->versions = new_array(variant->recipe.n_called + 1, sizeof(GraphVersion *));
        variant->graphs = new_array(variant->recipe.n_called + 1, sizeof(Graph *));
        if (variant->versions == NULL || variant->graphs == NULL)
                return fail_memory();
        Status status = engine_find(engine, variant->base, variant->version, &variant->versions[0]);
        if (status == STATUS_OK)
                status = take_graph(engine, variant);
        TRY(failure_at_argument(status, "base"));
        for (uint32_t i = 0; i < variant->recipe.n_called && status == STATUS_OK; i++) {
                status = engine_find_named(engine, variant->recipe.called[i], &variant->versions[1 + i]);
                if (status == STATUS_OK)
                        status = take_graph(engine, variant);
        }
        return failure_at_argument(status, "overrides");
}

// The rules in canonical text, with the digests of their tensors.
static Status canonical(const Recipe *recipe, Text *out)
{
        text_addf(out, "{\"format\": \"fx-variant/1\", %s, \"constants\": [", recipe->text.data);
        for (uint32_t i = 0; i < recipe->n_hidden; i++) {
                const Tensor *tensor = recipe->hidden[i].tensor;
                HashHex digest = sha256_of(tensor_data(tensor), tensor->storage->n_bytes);
                text_addf(out, "%s\"%s\"", i == 0 ? "" : ", ", digest.hex);
        }
        text_add(out, "]}");
        return text_status(out);
}

// What a transform answers, without the graph.
static Status write_diff(const Answer *answer, const Text *diff)
{
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"diff\": ");
        text_add_json_n(out, diff->data, diff->n);
        text_add(out, ", \"stored\": null}\n");
        return text_status(out);
}

static Status store_variant(const Answer *answer, Variant *variant)
{
        Engine *engine = answer->context->engine;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(text_deinit) Text recipe = { 0 };
        _cleanup_(text_deinit) Text diff = { 0 };
        RunContext bounds;
        bool created;
        answer_bounds(answer, &bounds);
        TRY(find_graphs(engine, variant));
        TRY(recipe_derive(&variant->recipe, variant->graphs[0], (const Graph *const *)&variant->graphs[1],
                          true, &bounds, &graph));
        TRY(engine_check(graph));
        TRY(code_diff(variant->versions[0], variant->graphs[0], graph, &diff));
        if (variant->dry_run)
                return write_diff(answer, &diff);
        TRY(canonical(&variant->recipe, &recipe));
        NamedAnswer named = { answer, answer->call->name, answer->call->body->n_bytes, NULL };
        PutCondition condition = { answer_check_named, &named };
        DerivedPut put = { .name = answer->call->name,
                           .graph = graph,
                           .base = variant->versions[0],
                           .recipe = { (const uint8_t *)recipe.data, recipe.n },
                           .called = &variant->versions[1],
                           .n_called = variant->recipe.n_called,
                           .diff = diff.data,
                           .owner = answer->call->caller,
                           .only_if = answer_is_conditional(answer) ? &condition : NULL };
        TRY(engine_put_derived(engine, &put, &version, &created));
        return answer_put(answer, version, graph, created);
}

Status put_variant(const Answer *answer)
{
        Arena arena;
        JsonReader *json = NULL;
        Variant variant = { .n = 0 };
        const Storage *body = answer->call->body;
        arena_init(&arena, 0);
        budget_init(&variant.budget, (size_t)limits.max_upload_in_memory);
        Status status = json_open((const char *)body->data, body->n_bytes, (int)limits.max_json_depth_model,
                                  limits.max_json_values, &arena, &json);
        if (status == STATUS_OK)
                status = read_variant(json, &variant);
        if (status == STATUS_OK)
                status = store_variant(answer, &variant);
        variant_deinit(&variant);
        json_close(json);
        arena_deinit(&arena);
        return status;
}
