// SPDX-License-Identifier: Apache-2.0
// Graph info.
#include "api/formats/choice_text.h"
#include "api/routes/info.h"
#include "api/routes/warm_up.h"
#include <string.h>
#include <time.h>
#include "api/routes/facts.h"

static void write_spec(const TensorSpec *spec, Text *out)
{
        text_add(out, "\"dtype\": ");
        if (spec->dtype != DTYPE_NONE)
                text_add_json(out, dtype_info[spec->dtype].name);
        else
                text_add(out, "null");
        text_add(out, ", \"shape\": ");
        if (spec->rank < 0) {
                text_add(out, "null");
                return;
        }
        text_add_char(out, '[');
        for (int i = 0; i < spec->rank; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (spec->size[i].expr != NULL)
                        text_add_json(out, spec->size[i].expr);
                else
                        text_add_int(out, spec->size[i].value);
        }
        text_add_char(out, ']');
}

// {"s31": [0, 64]} for the symbols of this spec that have a range; a minimum <= 2 is not enforced
// and shows as 0.
static void write_dims(const Signature *signature, const TensorSpec *spec, Text *out)
{
        bool any = false;
        for (int i = 0; i < spec->rank; i++) {
                const char *symbol = spec->size[i].expr;
                bool repeated = false;
                for (int earlier = 0; earlier < i && symbol != NULL; earlier++)
                        repeated |= spec->size[earlier].expr != NULL &&
                                    strcmp(spec->size[earlier].expr, symbol) == 0;
                for (uint32_t range = 0; symbol != NULL && !repeated && range < signature->n_ranges;
                     range++) {
                        const SymbolRange *known = &signature->ranges[range];
                        if (strcmp(known->symbol, symbol) != 0)
                                continue;
                        text_add(out, any ? ", " : ", \"dims\": {");
                        any = true;
                        text_add_json(out, symbol);
                        text_addf(out, ": [%lld, ", (long long)(known->min <= 2 ? 0 : known->min));
                        if (known->max == INT64_MAX)
                                text_add(out, "null]");
                        else
                                text_addf(out, "%lld]", (long long)known->max);
                        break;
                }
        }
        if (any)
                text_add_char(out, '}');
}

static void write_input(const Signature *signature, const TensorFact *input, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, input->name);
        text_add(out, ", ");
        if (input->kind == FACT_LITERAL) {
                text_add(out, "\"value\": ");
                value_add_literal(input->literal, UINT32_MAX, out);
        } else if (input->kind == FACT_INT) {
                text_add(out, "\"type\": \"int\"");
        } else {
                write_spec(&input->spec, out);
                write_dims(signature, &input->spec, out);
        }
        text_add_char(out, '}');
}

static void write_tensors(const Graph *graph, const GraphFacts *facts, Text *out)
{
        text_add(out, "\"inputs\": [");
        for (uint32_t i = 0; i < facts->n_inputs; i++) {
                text_add(out, i == 0 ? "" : ", ");
                write_input(&graph->signature, &facts->inputs[i], out);
        }
        text_add(out, "], \"outputs\": [");
        for (uint32_t i = 0; i < facts->list.n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                output_write_name(&facts->list.leaves[i], out);
                text_add(out, ", ");
                write_spec(&facts->outputs[i].spec, out);
                text_add_char(out, '}');
        }
        text_add_char(out, ']');
}

typedef struct OpCount {
        const char *target;
        uint32_t n;
} OpCount;

static int by_count(const void *a, const void *b)
{
        const OpCount *left = a, *right = b;
        if (left->n != right->n)
                return left->n < right->n ? 1 : -1;
        return strcmp(left->target, right->target);
}

// "torch.ops.aten.conv2d.default" is shown as aten.conv2d.default.
static const char *short_target(const Node *node, const Graph *graph)
{
        static const char prefix[] = "torch.ops.";
        if (node->op == OP_CALL_MODULE) {
                const Module *module = graph_module(graph, node->target);
                return module != NULL && module->type != NULL ? module->type : node->target;
        }
        return strncmp(node->target, prefix, sizeof(prefix) - 1) == 0 ? node->target + sizeof(prefix) - 1
                                                                      : node->target;
}

static Status write_ops(const Graph *graph, Text *out)
{
        _cleanup_(freep) OpCount *counts = new_array(graph->n_nodes, sizeof(*counts));
        StringMap places = { 0 };
        uint32_t n = 0;
        Status status = counts == NULL ? fail_memory() : STATUS_OK;
        for (uint32_t i = 0; status == STATUS_OK && i < graph->n_nodes; i++) {
                if (!node_is_call(graph->nodes[i]))
                        continue;
                const char *target = short_target(graph->nodes[i], graph);
                OpCount *count = string_map_get(&places, target);
                if (count == NULL) {
                        count = &counts[n++];
                        count->target = target;
                        status = string_map_set(&places, target, count, NULL);
                }
                count->n++;
        }
        string_map_deinit(&places);
        TRY(status);
        qsort(counts, n, sizeof(*counts), by_count);
        text_add(out, ", \"ops\": {");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, counts[i].target);
                text_addf(out, ": %u", counts[i].n);
        }
        text_add_char(out, '}');
        return STATUS_OK;
}

static const char *node_name(const void *graph, uint32_t index)
{
        const Graph *of = graph;
        return index < of->n_nodes ? of->nodes[index]->name : "?";
}

// {"id", "inputs": "x: float32[1, 10]", "instructions", "arena_bytes", "runs", "precision",
// "tolerance", "batch", "run_us"}; the program that ran last comes first. "precision" stands where
// it is not f32, "tolerance" where precisions were chosen, "batch" where several runs are one.
static void write_programs(const ProgramInfo *programs, uint32_t n, const Graph *graph, Text *out)
{
        text_add(out, ", \"programs\": [");
        for (uint32_t i = 0; i < n; i++) {
                const ProgramInfo *program = &programs[i];
                _cleanup_(text_deinit) Text inputs = { 0 };
                for (uint32_t k = 0; k < MIN(program->signature.n, graph->signature.n_inputs); k++) {
                        const Value *value = &program->signature.items[k];
                        char shape[128];
                        if (value->kind != VALUE_TENSOR || graph->signature.inputs[k].kind != INPUT_USER)
                                continue;
                        text_addf(&inputs, "%s%s: %s%s", inputs.n == 0 ? "" : ", ",
                                  graph->signature.inputs[k].placeholder->name,
                                  dtype_info[value->tensor->meta.dtype].name,
                                  shape_text(value->tensor->meta.rank, value->tensor->meta.size, shape,
                                             sizeof(shape)));
                }
                text_addf(out, "%s{\"id\": \"%s\", \"inputs\": ", i == 0 ? "" : ", ", program->id);
                text_add_json_n(out, inputs.data, inputs.n);
                text_addf(out, ", \"instructions\": %u, \"arena_bytes\": %zu, \"runs\": %llu",
                          program->n_instructions, program->arena_bytes, (unsigned long long)program->n_runs);
                if (program->precision != PRECISION_F32)
                        text_addf(out, ", \"precision\": \"%s\"", precision_names[program->precision]);
                if (program->choice != NULL) {
                        text_add(out, ", \"tolerance\": ");
                        choice_write_json(program->choice, node_name, graph, out);
                }
                if (program->batch > 0)
                        text_addf(out, ", \"batch\": %u", program->batch);
                text_add(out, ", \"run_us\": ");
                if (program->run_ns < 0)
                        text_add(out, "null}");
                else
                        text_addf(out, "%.3f}", (double)program->run_ns / 1e3);
        }
        text_add_char(out, ']');
}

// 2026-11-22T13:50:00Z
static void write_time(int64_t wall_ms, Text *out)
{
        time_t seconds = (time_t)(wall_ms / 1000);
        struct tm parts;
        char text[32];
        if (gmtime_r(&seconds, &parts) == NULL ||
            strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
                text[0] = '\0';
        text_add_json(out, text);
}

// Of a version with a damaged entry only the number is known.
static void write_upload(const GraphVersion *version, Text *out)
{
        const StoreVersion *stored = &version->stored;
        uint64_t n_bytes = 0;
        if (stored->n_parts == 0) {
                text_add(out, ", \"id\": null, \"format\": null, \"created\": null, \"upload_bytes\": null");
                return;
        }
        for (uint32_t i = 0; i < stored->n_parts; i++)
                n_bytes += stored->parts[i].n_bytes;
        text_addf(out, ", \"id\": \"%s\", \"format\": \"%s\", \"created\": ", stored->id.hex, stored->format);
        write_time(stored->created_ms, out);
        text_addf(out, ", \"upload_bytes\": %llu", (unsigned long long)n_bytes);
}

static void write_state(const GraphVersion *version, bool is_resident, Text *out)
{
        GraphState state = (GraphState)atomic_load(&((GraphVersion *)(uintptr_t)version)->state);
        text_addf(out, ", \"state\": \"%s\", \"resident\": %s", graph_state_names[state],
                  is_resident ? "true" : "false");
        if (state == GRAPH_STATE_DAMAGED) {
                text_add(out, ", \"reason\": ");
                text_add_json(out, graph_version_reason(version));
        }
}

static void write_head(const GraphVersion *version, bool is_resident, Text *out)
{
        text_add(out, "{\"name\": ");
        text_add_json(out, version->name);
        text_addf(out, ", \"version\": %lld", (long long)version->stored.version);
        write_upload(version, out);
        write_state(version, is_resident, out);
}

static void write_run(const GraphVersion *version, Text *out)
{
        text_addf(out, ", \"run\": \"/v1/graphs/%s/run\"}", version->name);
}

void info_write_row(const GraphVersion *version, bool is_resident, Text *out)
{
        write_head(version, is_resident, out);
        write_run(version, out);
}

void info_write_version(const VersionList *list, const GraphVersion *version, bool is_resident, Text *out)
{
        bool first = true;
        text_addf(out, "{\"version\": %lld", (long long)version->stored.version);
        write_upload(version, out);
        write_state(version, is_resident, out);
        text_addf(out, ", \"default\": %s, \"aliases\": [",
                  version->stored.version == list->head.default_version ? "true" : "false");
        for (uint32_t i = 0; i < list->head.n_aliases; i++) {
                if (list->head.aliases[i].version != version->stored.version)
                        continue;
                text_add(out, first ? "" : ", ");
                first = false;
                text_add_json(out, list->head.aliases[i].name);
        }
        text_add(out, "]}");
}

static void write_settings(const VersionList *list, const GraphVersion *version, Text *out)
{
        int64_t number = version->stored.version;
        const char *image = store_head_setting(&list->head, SETTING_IMAGE, number),
                   *precision = store_head_setting(&list->head, SETTING_PRECISION, number),
                   *tolerance = store_head_setting(&list->head, SETTING_TOLERANCE, number);
        if (image[0] != '\0')
                text_addf(out, ", \"image\": %s", image);
        if (precision[0] != '\0')
                text_addf(out, ", \"precision\": \"%s\"", precision);
        if (tolerance[0] != '\0')
                text_addf(out, ", \"tolerance\": %s", tolerance);
        warm_up_write(version, store_head_setting(&list->head, SETTING_WARM_UP, number), out);
}

static void write_versions(const VersionList *list, Text *out)
{
        text_add(out, ", \"versions\": [");
        for (uint32_t i = 0; i < list->n; i++)
                text_addf(out, "%s%lld", i == 0 ? "" : ", ", (long long)list->versions[i]->stored.version);
        text_addf(out, "], \"default_version\": %lld, \"aliases\": {", (long long)list->head.default_version);
        for (uint32_t i = 0; i < list->head.n_aliases; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, list->head.aliases[i].name);
                text_addf(out, ": %lld", (long long)list->head.aliases[i].version);
        }
        text_add_char(out, '}');
}

static void write_sizes(uint32_t sizes, const char *name, Text *out)
{
        bool first = true;
        text_addf(out, "\"%s\": [", name);
        for (uint32_t k = 1; k <= BATCH_SIZES; k++) {
                if ((sizes >> k & 1) == 0)
                        continue;
                text_addf(out, "%s%u", first ? "" : ", ", 1u << k);
                first = false;
        }
        text_add_char(out, ']');
}

// {"sizes": [2, 4]}, {"sizes": [], "why": "..."}, and what PATCH said; nothing as long as no two
// runs met and nothing was said.
static void write_batching(const BatchFacts *facts, const BatchPolicy *policy, Text *out)
{
        _cleanup_(text_deinit) Text said = { 0 };
        batch_policy_write(policy, &said);
        if (facts->sizes == 0 && facts->why[0] == '\0' && said.n == 0)
                return;
        text_add(out, ", \"batching\": {");
        write_sizes(facts->sizes, "sizes", out);
        if (facts->why[0] != '\0') {
                text_add(out, ", \"why\": ");
                text_add_json(out, facts->why);
        }
        if (policy->max_size != 0)
                text_addf(out, ", \"max_size\": %u", policy->max_size);
        if (policy->max_delay_us != 0)
                text_addf(out, ", \"max_delay_us\": %lld", (long long)policy->max_delay_us);
        if (policy->preferred != 0) {
                text_add(out, ", ");
                write_sizes(policy->preferred, "preferred", out);
        }
        if (policy->priority != 0)
                text_addf(out, ", \"priority\": %u", policy->priority);
        text_add_char(out, '}');
}

Status info_write(const InfoOf *of, Text *out)
{
        const Graph *graph = of->graph;
        write_head(of->version, of->is_resident, out);
        if (graph != NULL) {
                _cleanup_(graph_facts_deinit) GraphFacts facts;
                TRY(graph_facts(of->version, graph, of->programs, of->n_programs, &facts));
                text_add(out, ", ");
                write_tensors(graph, &facts, out);
                text_addf(out, ", \"nodes\": %u, \"weights_bytes\": %zu", graph->n_nodes,
                          graph->weights_bytes);
                TRY(write_ops(graph, out));
                write_programs(of->programs, of->n_programs, graph, out);
        }
        BatchPolicy policy = batch_policy(of->version);
        write_batching(&of->batching, &policy, out);
        if (of->derivation != NULL) {
                text_add(out, ", \"derived\": ");
                text_add_n(out, of->derivation->data, of->derivation->n);
        }
        if (of->list != NULL) {
                write_settings(of->list, of->version, out);
                write_versions(of->list, out);
        }
        write_run(of->version, out);
        return text_status(out);
}
