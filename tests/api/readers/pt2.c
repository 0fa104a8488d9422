// SPDX-License-Identifier: Apache-2.0
// Archives made by PyTorch (tests/models, tests/print/pt2, with what PyTorch prints for them) and
// small ones made here.
#include <dirent.h>
#include <stdio.h>
#include "tests/api/readers/pt2_maker.h"
#include "core/graph/print.h"
#include "core/ops/op.h"

static Storage *load_file(const char *path)
{
        FILE *file = fopen(path, "rb");
        cr_assert_not_null(file, "%s", path);
        fseek(file, 0, SEEK_END);
        size_t n = (size_t)ftell(file);
        rewind(file);
        Storage *bytes;
        cr_assert_eq(storage_new(n, false, NULL, &bytes), STATUS_OK);
        cr_assert_eq(fread(bytes->data, 1, n, file), n);
        fclose(file);
        return bytes;
}

static Graph *load_graph(const char *folder, const char *name)
{
        char path[512];
        Graph *graph = NULL;
        snprintf(path, sizeof(path), "%s/%s/%s.pt2", TESTS_FOLDER, folder, name);
        Storage *bytes = load_file(path);
        Status status = pt2_read((ByteSpan){ bytes->data, bytes->n_bytes }, bytes, NULL, &graph);
        cr_assert_eq(status, STATUS_OK, "%s: %s", name, failure_current()->message);
        storage_unref(bytes); // the weights keep it
        return graph;
}

// ---- printing ----
static void print_children(const Graph *graph, const char *prefix, Text *out)
{
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                const Module *module = graph->modules[i];
                if (module->graph == NULL)
                        continue;
                char path[256];
                snprintf(path, sizeof(path), "%s%s", prefix, module->path);
                text_addf(out, "\n== %s\n", path);
                cr_assert_eq(graph_print(module->graph, GRAPH_FORM_GRAPH, out), STATUS_OK);
                strcat(path, ".");
                print_children(module->graph, path, out);
        }
}

static void expect_printed(const char *folder, const char *name, const char *wanted_path, bool with_children)
{
        Graph *graph = load_graph(folder, name);
        Storage *wanted = load_file(wanted_path);
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, GRAPH_FORM_GRAPH, &text), STATUS_OK);
        if (with_children)
                print_children(graph, "", &text);
        text_add_char(&text, '\n');
        cr_expect(text.n == wanted->n_bytes && memcmp(text.data, wanted->data, text.n) == 0, "%s prints\n%s",
                  name, text.data);
        text_deinit(&text);
        storage_unref(wanted);
        graph_unref(graph);
}

Test(pt2, prints_what_pytorch_prints_for_every_kind_of_node)
{
        int n = 0;
        DIR *folder = opendir(TESTS_FOLDER "/print/pt2");
        cr_assert_not_null(folder);
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
                char name[256], wanted[512];
                size_t stem = strlen(entry->d_name);
                if (stem < 4 || strcmp(entry->d_name + stem - 4, ".pt2") != 0)
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)stem - 4, entry->d_name);
                snprintf(wanted, sizeof(wanted), "%s/print/pt2/%s.graph", TESTS_FOLDER, name);
                expect_printed("print/pt2", name, wanted, true);
                n++;
        }
        closedir(folder);
        cr_expect_geq(n, 20);
}

static void expect_readable(const char *folder, const char *name, const char *wanted_path)
{
        Graph *graph = load_graph(folder, name);
        Storage *wanted = load_file(wanted_path);
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, GRAPH_FORM_READABLE, &text), STATUS_OK);
        text_add_char(&text, '\n');
        cr_expect(text.n == wanted->n_bytes && memcmp(text.data, wanted->data, text.n) == 0, "%s prints\n%s",
                  name, text.data);
        text_deinit(&text);
        storage_unref(wanted);
        graph_unref(graph);
}

Test(pt2, prints_readable_what_pytorch_prints_with_shapes_symbols_and_child_graphs)
{
        int n = 0;
        DIR *folder = opendir(TESTS_FOLDER "/print/pt2");
        cr_assert_not_null(folder);
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
                char name[256], wanted[512];
                size_t stem = strlen(entry->d_name);
                if (stem < 9 || strcmp(entry->d_name + stem - 9, ".readable") != 0)
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)stem - 9, entry->d_name);
                snprintf(wanted, sizeof(wanted), "%s/print/pt2/%s", TESTS_FOLDER, entry->d_name);
                expect_readable("print/pt2", name, wanted);
                n++;
        }
        closedir(folder);
        cr_expect_geq(n, 20);
}

Test(pt2, prints_what_pytorch_prints_for_models)
{
        static const char *const models[] = { "dev_lenet",      "dev_linear",       "dev_mlp_bn",
                                              "dev_mtcnn_pnet", "dev_relu_neg_abs", "digits" };
        for (size_t i = 0; i < ARRAY_LENGTH(models); i++) {
                char wanted[512];
                snprintf(wanted, sizeof(wanted), "%s/print/%s.pt2.graph", TESTS_FOLDER, models[i]);
                expect_printed("models", models[i], wanted, false);
                snprintf(wanted, sizeof(wanted), "%s/print/%s.pt2.readable", TESTS_FOLDER, models[i]);
                expect_readable("models", models[i], wanted);
        }
}

// ---- the small archive ----
static Graph *read_small(const Pt2Edit *edits, size_t n_edits)
{
        Graph *graph = NULL;
        Status status = read_pt2(edits, n_edits, NULL, &graph);
        cr_assert_eq(status, STATUS_OK, "%s", failure_current()->message);
        return graph;
}

static void expect_text(const Graph *graph, const char *wanted)
{
        Text text = { 0 };
        cr_assert_eq(graph_print(graph, GRAPH_FORM_GRAPH, &text), STATUS_OK);
        cr_expect_str_eq(text.data, wanted);
        text_deinit(&text);
}

static const char small_graph[] =
        "graph():\n"
        "    %p_l_w : [num_users=1] = placeholder[target=p_l_w]\n"
        "    %c_flags : [num_users=0] = placeholder[target=c_flags]\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %n : [num_users=0] = placeholder[target=n]\n"
        "    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, "
        "%p_l_w), kwargs = {})\n"
        "    %topk : [num_users=2] = call_function[target=torch.ops.aten.topk.default](args = (%linear, 1), "
        "kwargs = {})\n"
        "    %getitem : [num_users=2] = call_function[target=operator.getitem](args = (%topk, 0), kwargs = "
        "{})\n"
        "    %getitem_1 : [num_users=0] = call_function[target=operator.getitem](args = (%topk, 1), kwargs = "
        "{})\n"
        "    %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]\n"
        "    %cond : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (True, "
        "%true_graph_0, [%getitem]), kwargs = "
        "{})\n"
        "    %getitem_2 : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 0), kwargs = "
        "{})\n"
        "    return (getitem, getitem_2)";

Test(pt2, restores_getitems_and_child_graphs)
{
        Graph *graph = read_small(NULL, 0);
        expect_text(graph, small_graph);
        const Module *child = graph_module(graph, "true_graph_0");
        cr_assert_not_null(child);
        cr_assert_not_null(child->graph);
        expect_text(child->graph, "graph():\n    %y : [num_users=1] = placeholder[target=y]\n"
                                  "    %relu : [num_users=1] = "
                                  "call_function[target=torch.ops.aten.relu.default](args = (%y,), kwargs = "
                                  "{})\n    return (relu,)");
        graph_unref(graph);
}

Test(pt2, reads_signature_ranges_guards_and_modules)
{
        Graph *graph = read_small(NULL, 0);
        const Signature *signature = &graph->signature;
        cr_expect_eq(graph->format, GRAPH_PT2);
        cr_assert_eq(signature->n_inputs, 4);
        cr_expect_eq(signature->n_user_inputs, 2);
        cr_expect_eq(signature->inputs[0].kind, INPUT_STATE);
        cr_expect_str_eq(signature->inputs[0].path, "l.w");
        cr_expect_str_eq(signature->inputs[1].kind_name, "CONSTANT_TENSOR");
        cr_expect_eq(signature->inputs[2].kind, INPUT_USER);
        cr_expect_eq(signature->inputs[2].value_kind, VALUE_TENSOR);
        cr_expect_eq(signature->inputs[2].spec.dtype, DTYPE_F32);
        cr_expect_str_eq(signature->inputs[2].spec.size[0].expr, "s0");
        cr_expect_eq(signature->inputs[2].spec.size[0].value, 4);
        cr_expect_null(signature->inputs[2].spec.size[1].expr);
        cr_expect_eq(signature->inputs[3].kind, INPUT_LITERAL);
        cr_expect_eq(signature->inputs[3].literal.i, 3);
        cr_assert_eq(signature->n_outputs, 2);
        cr_expect_eq(signature->outputs[1].arg.node, graph_node(graph, "getitem_2"));
        cr_expect_eq(signature->in_tree->n_leaves, 2);
        cr_expect_eq(signature->out_tree->kind, TREE_DICT);
        cr_expect_str_eq(signature->out_tree->keys[1], "rest");
        cr_expect_eq(signature->out_tree->children[1]->first_leaf, 1);
        cr_assert_eq(signature->n_arguments, 2);
        cr_expect_str_eq(signature->argument_names[1], "n");
        cr_assert_eq(signature->n_ranges, 1);
        cr_expect_eq(signature->ranges[0].min, 2);
        cr_expect_eq(signature->ranges[0].max, INT64_MAX);
        cr_expect_str_eq(signature->guards[0], "L['x'].size()[0] <= 64");
        cr_expect_str_eq(signature->ir, "TRAINING");
        const Node *linear = graph_node(graph, "linear");
        cr_expect_str_eq(linear->module_stack->path, "l");
        cr_expect_str_eq(linear->module_stack->type, "torch.nn.Linear");
        graph_unref(graph);
}

Test(pt2, reads_state_with_tied_weights_and_constants)
{
        Graph *graph = read_small(NULL, 0);
        const State *w = graph_state(graph, "l.w"), *tied = graph_state(graph, "l.tied"),
                    *flags = graph_state(graph, "flags");
        cr_assert(w != NULL && tied != NULL && flags != NULL);
        cr_expect(w->is_parameter && w->persistent && !flags->is_parameter && !flags->persistent);
        cr_expect_eq(w->tensor->storage, tied->tensor->storage);
        cr_expect_eq(tied->tensor->meta.rank, 1);
        cr_expect_float_eq(((float *)tensor_data(w->tensor))[3], 4.0f, 0);
        cr_expect_eq(((uintptr_t)w->tensor->storage->data) % STORAGE_ALIGN, 0);
        cr_expect(w->tensor->storage->readonly);
        cr_expect_eq(flags->tensor->meta.dtype, DTYPE_BOOL);
        cr_expect(!w->written);
        graph_unref(graph);
}

Test(pt2, ignores_nulls_and_unknown_keys)
{
        static const Pt2Edit edits[] = {
                { MODEL, "{\"as_int\": 1}",
                  "{\"as_tensor\": null, \"as_prompt\": null, \"as_int\": 1, \"as_none\": false}", NULL },
                { "weights_config.json", "{\"path_name\"", "{\"future\": {\"a\": [1]}, \"path_name\"", NULL },
        };
        Graph *graph = read_small(edits, 2);
        expect_text(graph, small_graph);
        graph_unref(graph);
}

Test(pt2, takes_keys_in_any_order)
{
        // The sections of the graph and of a node turned round.
        static const char topk[] = "{\"target\": \"torch.ops.aten.topk.default\", ",
                          name[] = "\"name\": \"topk\"}", inputs[] = "\"inputs\": [" TENSOR("p_l_w");
        Text document = { 0 };
        const char *at = strstr(pt2_model, inputs), *end = strstr(at, "\"outputs\""),
                   *single = strstr(end, "\"sym_int_values\": {}");
        const char *node = strstr(end, topk), *node_end = strstr(node, name);
        text_add_n(&document, pt2_model, (size_t)(at - pt2_model));
        text_add_n(&document, end, (size_t)(node - end));
        text_add(&document, "{");
        text_add_n(&document, node + sizeof(topk) - 1, (size_t)(node_end - node) - sizeof(topk) + 1);
        text_add(&document, "\"name\": \"topk\", \"target\": \"torch.ops.aten.topk.default\"}");
        text_add_n(&document, node_end + sizeof(name) - 1, (size_t)(single - node_end) - sizeof(name) + 1);
        text_add_n(&document, at, (size_t)(end - at)); // the inputs, behind the nodes
        text_add(&document, single);
        const Pt2Edit edit = { MODEL, NULL, document.data, NULL };
        Graph *graph = read_small(&edit, 1);
        expect_text(graph, small_graph);
        graph_unref(graph);
        text_deinit(&document);
}

Test(pt2, takes_arguments_by_name_where_the_schema_is_known)
{
        static const char input[] = INPUT("input", TENSOR("x")), weight[] = INPUT("weight", TENSOR("p_l_w"));
        static const struct {
                const char *inputs, *printed;
        } cases[] = {
                { INPUT("weight", TENSOR("p_l_w")) ", " INPUT("input", TENSOR("x")),
                  "(args = (%x, %p_l_w), kwargs = {})" },
                { "{\"name\": \"weight\", \"arg\": " TENSOR(
                          "p_l_w") "}, {\"name\": \"input\", \"arg\": " TENSOR("x") "}",
                  "(args = (%x, %p_l_w), kwargs = {})" },
                { INPUT("input", TENSOR("x")) ", " INPUT(
                          "weight", TENSOR("p_l_w")) ", {\"name\": \"bias\", \"arg\": {\"as_none\": true}}",
                  "(args = (%x, %p_l_w), kwargs = {bias: None})" },
                { INPUT("input", TENSOR("x")) ", " INPUT(
                          "bias", "{\"as_none\": true}") ", {\"name\": \"weight\", "
                                                         "\"arg\": " TENSOR("p_l_w") ", "
                                                                                     "\"kind\":"
                                                                                     " 2}",
                  "(args = (%x,), kwargs = {weight: %p_l_w, bias: None})" },
        };
        cr_assert_eq(ops_init(), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text find = { 0 }, line = { 0 };
                text_addf(&find, "%s, %s", input, weight);
                const Pt2Edit edit = { MODEL, find.data, cases[i].inputs, NULL };
                Graph *graph = read_small(&edit, 1);
                node_print(graph_node(graph, "linear"), &line);
                cr_expect(strstr(line.data, cases[i].printed) != NULL, "%s", line.data);
                graph_unref(graph);
                text_deinit(&find);
                text_deinit(&line);
        }
        Graph *graph = NULL;
        const Pt2Edit twice = { MODEL, INPUT("weight", TENSOR("p_l_w")), INPUT("input", TENSOR("p_l_w")),
                                NULL };
        expect_failure("twice", read_pt2(&twice, 1, NULL, &graph), STATUS_MALFORMED,
                       "\"input\" is given twice");
}

Test(pt2, reads_deflated_archives_and_any_root_folder)
{
        Text bytes = { 0 };
        ZipPlaces places;
        Graph *graph = NULL;
        make_pt2(NULL, 0, true, &bytes, &places);
        cr_assert_eq(pt2_read(span_of(&bytes), NULL, NULL, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        expect_text(graph, small_graph);
        graph = graph_unref(graph);
        text_deinit(&bytes);
        // Without a root folder.
        Pt2Edit edits[PT2_MEMBERS];
        for (int i = 0; i < PT2_MEMBERS; i++)
                edits[i] = (Pt2Edit){ .member = pt2_members[i].name, .rename = pt2_members[i].name + 2 };
        graph = read_small(edits, PT2_MEMBERS);
        expect_text(graph, small_graph);
        graph_unref(graph);
}

Test(pt2, shares_the_bytes_of_stored_aligned_weights_and_copies_others)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(NULL, 0, false, &bytes, &places);
        for (int shift = 0; shift <= 32; shift += 32) {
                Storage *archive;
                Graph *graph = NULL;
                // The archive placed so that the first weight lies at a multiple of 64, or 32 bytes
                // beside one.
                size_t lead =
                        (STORAGE_ALIGN - places.data[0] % STORAGE_ALIGN + (size_t)shift) % STORAGE_ALIGN;
                cr_assert_eq(storage_new(lead + bytes.n, true, NULL, &archive), STATUS_OK);
                memcpy(archive->data + lead, bytes.data, bytes.n);
                ByteSpan span = { archive->data + lead, bytes.n };
                cr_assert_eq(pt2_read(span, archive, NULL, &graph), STATUS_OK);
                const uint8_t *data = graph_state(graph, "l.w")->tensor->storage->data;
                cr_expect_eq(data == archive->data + lead + places.data[0], shift == 0, "shift %d", shift);
                storage_unref(archive);
                cr_expect_float_eq(((const float *)data)[1], 2.0f, 0);
                graph_unref(graph);
        }
        text_deinit(&bytes);
}

Test(pt2, picks_one_of_several_models)
{
        static const Pt2Edit edits[] = { { .member = "byteorder", .rename = "m/models/other.json" } };
        Text bytes = { 0 };
        ZipPlaces places;
        Graph *graph = NULL;
        make_pt2(edits, 1, false, &bytes, &places);
        expect_failure("none chosen", pt2_read(span_of(&bytes), NULL, NULL, &graph), STATUS_VALUE,
                       "model, other");
        expect_failure("unknown", pt2_read(span_of(&bytes), NULL, "third", &graph), STATUS_VALUE,
                       "\"third\"");
        cr_assert_eq(pt2_read(span_of(&bytes), NULL, "model", &graph), STATUS_OK, "%s",
                     failure_current()->message);
        graph_unref(graph);
        text_deinit(&bytes);
}

// ---- archives of PyTorch ----
Test(pt2, marks_the_state_that_a_run_may_write)
{
        static const struct {
                const char *name, *path;
                bool written;
        } cases[] = {
                { "counter", "n", true },
                { "counter", "last", true },
                { "counter", "w", false },
                { "counter_decomposed", "n", true },
                { "counter_decomposed", "last", true },
                { "views_written", "left", true },
                { "views_written", "whole", true },
                { "views_written", "apart", false },
                { "batch_norm_training", "b.running_mean", true },
                { "batch_norm_training", "b.running_var", true },
                { "batch_norm_training", "b.num_batches_tracked", true },
                { "batch_norm_training", "b.weight", false },
                { "batch_norm_training", "c.running_mean", false },
                { "batch_norm_training_decomposed", "b.running_mean", true },
                { "while_loops", "lifted_tensor_0", false },
                { "regions", "a.weight", false },
                { "weights", "w", false },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Graph *graph = load_graph("print/pt2", cases[i].name);
                const State *state = graph_state(graph, cases[i].path);
                cr_assert_not_null(state, "%s has no %s", cases[i].name, cases[i].path);
                cr_expect_eq(state->written, cases[i].written, "%s: %s", cases[i].name, cases[i].path);
                graph_unref(graph);
        }
}

Test(pt2, reads_strides_views_and_dtypes_of_weights)
{
        static const struct {
                const char *path;
                Dtype dtype;
                int rank;
                int64_t size0, stride0, offset;
        } cases[] = {
                { "w", DTYPE_F32, 2, 3, 3, 0 },     { "view", DTYPE_F32, 2, 3, 8, 17 },
                { "full", DTYPE_F32, 2, 8, 8, 0 },  { "exp", DTYPE_F32, 1, 3, 0, 0 },
                { "cl", DTYPE_F32, 4, 1, 12, 0 },   { "empty", DTYPE_F32, 2, 0, 3, 0 },
                { "bf", DTYPE_BF16, 1, 3, 1, 0 },   { "h", DTYPE_F16, 1, 3, 1, 0 },
                { "c", DTYPE_C64, 1, 3, 1, 0 },     { "flags", DTYPE_BOOL, 1, 3, 1, 0 },
                { "u16", DTYPE_U16, 1, 3, 1, 0 },   { "i8", DTYPE_I8, 1, 3, 1, 0 },
                { "d", DTYPE_F64, 1, 3, 1, 0 },     { "unused", DTYPE_F32, 1, 2, 1, 0 },
                { "const", DTYPE_F32, 1, 3, 1, 0 }, { "lifted_tensor_0", DTYPE_I64, 0, 0, 0, 0 },
        };
        Graph *graph = load_graph("print/pt2", "weights");
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                const State *state = graph_state(graph, cases[i].path);
                cr_assert_not_null(state, "%s", cases[i].path);
                const TensorMeta *meta = &state->tensor->meta;
                cr_expect_eq(meta->dtype, cases[i].dtype, "%s", cases[i].path);
                cr_expect_eq(meta->rank, cases[i].rank, "%s", cases[i].path);
                cr_expect_eq(state->tensor->offset, cases[i].offset, "%s", cases[i].path);
                if (meta->rank > 0) {
                        cr_expect_eq(meta->size[0], cases[i].size0, "%s", cases[i].path);
                        cr_expect_eq(meta->stride[0], cases[i].stride0, "%s", cases[i].path);
                }
        }
        cr_expect_eq(graph_state(graph, "view")->tensor->storage,
                     graph_state(graph, "full")->tensor->storage);
        cr_expect_eq(graph_state(graph, "w")->tensor->storage, graph_state(graph, "tied")->tensor->storage);
        cr_expect_float_eq(*(float *)tensor_data(graph_state(graph, "view")->tensor), 17.0f, 0);
        graph_unref(graph);
}

static void add_tree(const Tree *tree, Text *out)
{
        static const char *const open[] = { "", "(", "[", "{", "<" }, *const close[] = { "", ")", "]", "}",
                                                                                         ">" };
        if (tree->kind == TREE_LEAF) {
                text_addf(out, "%u", tree->first_leaf);
                return;
        }
        text_add(out, open[tree->kind]);
        for (uint32_t i = 0; i < tree->n; i++) {
                text_addf(out, "%s%s%s", i == 0 ? "" : " ", tree->keys == NULL ? "" : tree->keys[i],
                          tree->keys == NULL ? "" : "=");
                add_tree(tree->children[i], out);
        }
        text_add(out, close[tree->kind]);
}

Test(pt2, reads_the_structure_of_arguments_and_results)
{
        static const struct {
                const char *name, *in, *out;
        } cases[] = {
                { "containers", "(({a=0 b=[1 (2)]} {z=3} <first=4 second=5> {a=6}) {})",
                  "{h=0 pair=<first=1 second=[2]> both={a=3 b=4} none=5 k=6}" },
                { "keywords", "((0) {c=1 b=2})", "0" },
                { "literals", "((0 1 2 3 4 5) {})", "0" },
                { "while_loops", "((0) {})", "(0 1)" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Graph *graph = load_graph("print/pt2", cases[i].name);
                Text in = { 0 }, out = { 0 };
                add_tree(graph->signature.in_tree, &in);
                add_tree(graph->signature.out_tree, &out);
                cr_expect_str_eq(in.data, cases[i].in);
                cr_expect_str_eq(out.data, cases[i].out);
                text_deinit(&in);
                text_deinit(&out);
                graph_unref(graph);
        }
}

Test(pt2, reads_literals_symbolic_inputs_and_mutations)
{
        Graph *literals = load_graph("print/pt2", "literals"),
              *symbolic = load_graph("print/pt2", "symbolic_input"),
              *mutated = load_graph("print/pt2", "counter_decomposed"),
              *written = load_graph("print/pt2", "input_written_decomposed");
        const Input *inputs = literals->signature.inputs;
        cr_expect_eq(inputs[1].literal.i, 3);
        cr_expect_float_eq(inputs[2].literal.f, 2.5, 0);
        cr_expect(inputs[3].literal.kind == VALUE_BOOL && inputs[3].literal.b);
        cr_expect_str_eq(inputs[4].literal.str->text, "mean");
        cr_expect_eq(inputs[5].kind, INPUT_LITERAL);
        cr_expect_eq(inputs[5].literal.kind, VALUE_NONE);
        cr_expect_eq(symbolic->signature.inputs[1].kind, INPUT_USER);
        cr_expect_eq(symbolic->signature.inputs[1].value_kind, VALUE_INT);
        cr_expect_not_null(symbolic->signature.inputs[1].spec.size[0].expr);
        cr_expect_eq(mutated->signature.outputs[0].kind, OUTPUT_STATE_MUTATION);
        cr_expect_str_eq(mutated->signature.outputs[0].target, "n");
        cr_expect_str_eq(mutated->signature.ir, "ATEN");
        cr_expect_eq(written->signature.outputs[0].kind, OUTPUT_INPUT_MUTATION);
        cr_expect_str_eq(written->signature.outputs[0].target, "x");
        cr_expect_eq(written->signature.outputs[1].kind, OUTPUT_USER);
        graph_unref(literals);
        graph_unref(symbolic);
        graph_unref(mutated);
        graph_unref(written);
}
