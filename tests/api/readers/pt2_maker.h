// SPDX-License-Identifier: Apache-2.0
// A small valid .pt2 archive in pieces, and edits of it: texts replaced within a member, members
// renamed or dropped.
#pragma once
#include "tests/api/formats/zip_maker.h"
#include "api/readers/pt2.h"

// Members of the archive.
#define MODEL     "models/model.json"
#define WEIGHTS   "weights_config.json"
#define CONSTANTS "constants_config.json"

// JSON within C strings, laid out as JSON is.
// clang-format off
#define F32_META(sizes, strides)                                                                             \
        "{\"dtype\": 7, \"sizes\": [" sizes "], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", "  \
        "\"index\": null}, \"strides\": [" strides "], "                                                     \
        "\"storage_offset\": {\"as_int\": 0}, \"layout\": 7}"
#define TENSOR(name)     "{\"as_tensor\": {\"name\": \"" name "\"}}"
#define INPUT(name, arg) "{\"name\": \"" name "\", \"arg\": " arg ", \"kind\": 1}"
#define LEAF             "{\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}"

static const char pt2_weights_config[] =
        "{\"config\": {\"l.w\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, "
        "\"tensor_meta\": "
        F32_META("{\"as_int\": 2}, {\"as_int\": 2}", "{\"as_int\": 2}, {\"as_int\": 1}") "},"
        "\"l.tied\": {\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, "
        "\"tensor_meta\": " F32_META("{\"as_int\": 2}", "{\"as_int\": 1}") "}}}";

static const char pt2_constants_config[] =
        "{\"config\": {\"flags\": {\"path_name\": \"tensor_0\", \"is_param\": false, \"use_pickle\": false, "
        "\"tensor_meta\": "
        "{\"dtype\": 12, \"sizes\": [{\"as_int\": 2}], \"requires_grad\": false, \"device\": {\"type\": "
        "\"cpu\", \"index\": null}, "
        "\"strides\": [{\"as_int\": 1}], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}}}}";

// p_l_w, c_flags, x of [s0, 2], the literal 3 -> linear, topk, cond -> (getitem, getitem_2)
static const char pt2_model[] =
        "{\"graph_module\": {\"graph\": {\"inputs\": [" TENSOR("p_l_w") ", " TENSOR("c_flags") ", "
        TENSOR("x") ", {\"as_int\": 3}],"
        "\"outputs\": [" TENSOR("getitem") ", " TENSOR("getitem_2") "],"
        "\"nodes\": [{\"target\": \"torch.ops.aten.linear.default\", "
        "\"inputs\": [" INPUT("input", TENSOR("x")) ", " INPUT("weight", TENSOR("p_l_w")) "],"
        "\"outputs\": [" TENSOR("linear") "], "
        "\"metadata\": {\"nn_module_stack\": \"L__self__,,m.M;L__self___l,l,"
        "torch.nn.modules.linear.Linear\"}, \"is_hop_single_tensor_return\": null, \"name\": "
        "\"linear\"},"
        "{\"target\": \"torch.ops.aten.topk.default\", "
        "\"inputs\": [" INPUT("self", TENSOR("linear")) ", " INPUT("k", "{\"as_int\": 1}") "],"
        "\"outputs\": [" TENSOR("getitem") ", " TENSOR("getitem_1") "], "
        "\"metadata\": {}, \"name\": \"topk\"},"
        "{\"target\": \"torch.ops.higher_order.cond\", "
        "\"inputs\": [" INPUT("", "{\"as_bool\": true}") ", "
        INPUT("", "{\"as_graph\": {\"name\": \"true_graph_0\", \"graph\": {\"inputs\": [" TENSOR("y") "], "
                  "\"outputs\": [" TENSOR("relu") "], "
                  "\"nodes\": [{\"target\": \"torch.ops.aten.relu.default\", "
                  "\"inputs\": [" INPUT("self", TENSOR("y")) "], \"outputs\": [" TENSOR("relu") "], \"name\": \"relu\"}], "
                  "\"tensor_values\": {}, \"is_single_tensor_return\": false}}}")
        ", " INPUT("", "{\"as_tensors\": [{\"name\": \"getitem\"}]}") "],"
        "\"outputs\": [" TENSOR("getitem_2") "], "
        "\"metadata\": {}, \"is_hop_single_tensor_return\": false, \"name\": \"cond\"}],"
        "\"tensor_values\": {\"x\": "
        F32_META("{\"as_expr\": {\"expr_str\": \"Symbol('s0', positive=True, integer=True)\", "
                 "\"hint\": {\"as_int\": 4}}}, {\"as_int\": 2}",
                 "{\"as_int\": 2}, {\"as_int\": 1}")
        "},"
        "\"sym_int_values\": {}, \"is_single_tensor_return\": false},"
        "\"signature\": {\"input_specs\": [{\"parameter\": {\"arg\": {\"name\": \"p_l_w\"}, "
        "\"parameter_name\": \"l.w\"}}, {\"tensor_constant\": {\"arg\": {\"name\": \"c_flags\"}, "
        "\"tensor_constant_name\": \"flags\"}}, {\"user_input\": {\"arg\": " TENSOR("x") "}}, "
        "{\"constant_input\": {\"name\": \"n\", \"value\": {\"as_int\": 3}}}],"
        "\"output_specs\": [{\"user_output\": {\"arg\": " TENSOR("getitem") "}}, {\"user_output\": "
        "{\"arg\": " TENSOR("getitem_2") "}}]},"
        "\"module_call_graph\": [{\"fqn\": \"\", "
        "\"signature\": {\"inputs\": [], "
        "\"outputs\": [], \"in_spec\": \"[1, {\\\"type\\\": \\\"builtins.tuple\\\", \\\"context\\\": "
        "\\\"null\\\", \\\"children_spec\\\": [{\\\"type\\\": \\\"builtins.tuple\\\", \\\"context\\\": "
        "\\\"null\\\", \\\"children_spec\\\": [" LEAF ", " LEAF "]}, {\\\"type\\\": "
        "\\\"builtins.dict\\\", \\\"context\\\": \\\"[]\\\", \\\"children_spec\\\": []}]}]\", "
        "\"out_spec\": \"[1, {\\\"type\\\": \\\"lib.Output\\\", \\\"context\\\": "
        "\\\"[\\\\\\\"top\\\\\\\", \\\\\\\"rest\\\\\\\"]\\\", \\\"children_spec\\\": [" LEAF ", " LEAF
        "]}]\", \"forward_arg_names\": [\"x\", \"n\"]}}], "
        "\"metadata\": {}, \"treespec_namedtuple_fields\": {}},\"opset_version\": {\"aten\": 10}, "
        "\"range_constraints\": {\"s0\": {\"min_val\": 2, \"max_val\": null}}, \"schema_version\": "
        "{\"major\": 8, \"minor\": 20}, \"verifiers\": [\"TRAINING\"], \"torch_version\": "
        "\"2.13.0+cpu\", \"guards_code\": [\"L['x'].size()[0] <= 64\"]}";
// clang-format on

enum { PT2_MEMBERS = 8 };
static const ZipMember pt2_members[PT2_MEMBERS] = {
        { .name = "m/data/weights/weight_0",
          .content = "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40",
          .n = 16,
          .padding = 7 },
        { .name = "m/data/weights/model_weights_config.json",
          .content = pt2_weights_config,
          .n = sizeof(pt2_weights_config) - 1 },
        { .name = "m/data/constants/tensor_0", .content = "\1\0", .n = 2, .padding = 11 },
        { .name = "m/data/constants/model_constants_config.json",
          .content = pt2_constants_config,
          .n = sizeof(pt2_constants_config) - 1 },
        { .name = "m/models/model.json", .content = pt2_model, .n = sizeof(pt2_model) - 1 },
        { .name = "m/archive_format", .content = "pt2", .n = 3 },
        { .name = "m/archive_version", .content = "0", .n = 1 },
        { .name = "m/byteorder", .content = "little", .n = 6 },
};

// One edit: within the member whose name ends in `member`, the first `find` becomes `replace`.
// `find` NULL: the whole content; `replace` NULL: the member is dropped. `rename` (may be NULL):
// its new name.
typedef struct Pt2Edit {
        const char *member, *find, *replace, *rename;
} Pt2Edit;

static inline bool name_ends_with(const char *name, const char *end)
{
        size_t n = strlen(name), end_n = strlen(end);
        return n >= end_n && strcmp(name + n - end_n, end) == 0;
}

// The archive with the edits done, in `out`.
static inline void make_pt2(const Pt2Edit *edits, size_t n_edits, bool deflated, Text *out, ZipPlaces *places)
{
        ZipMember members[PT2_MEMBERS];
        Text changed[PT2_MEMBERS] = { { 0 } };
        size_t n = 0;
        for (size_t i = 0; i < PT2_MEMBERS; i++) {
                ZipMember member = pt2_members[i];
                bool dropped = false;
                member.deflated = deflated;
                for (size_t k = 0; k < n_edits; k++) {
                        const Pt2Edit *edit = &edits[k];
                        if (edit->member == NULL || !name_ends_with(pt2_members[i].name, edit->member))
                                continue;
                        if (edit->rename != NULL) {
                                member.name = edit->rename;
                        } else if (edit->replace == NULL) {
                                dropped = true;
                        } else if (edit->find == NULL) {
                                member.content = edit->replace;
                                member.n = strlen(edit->replace);
                        } else {
                                const char *at =
                                        memmem(member.content, member.n, edit->find, strlen(edit->find));
                                cr_assert_not_null(at, "%s does not hold %s", member.name, edit->find);
                                Text text = { 0 };
                                text_add_n(&text, member.content, (size_t)(at - member.content));
                                text_add(&text, edit->replace);
                                at += strlen(edit->find);
                                text_add_n(&text, at, (size_t)(member.content + member.n - at));
                                text_deinit(&changed[i]);
                                changed[i] = text;
                                member.content = text.data;
                                member.n = text.n;
                        }
                }
                if (!dropped)
                        members[n++] = member;
        }
        make_zip(members, n, true, out, places);
        for (size_t i = 0; i < PT2_MEMBERS; i++)
                text_deinit(&changed[i]);
}

static inline Status read_pt2(const Pt2Edit *edits, size_t n_edits, const char *model, Graph **out_graph)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(edits, n_edits, false, &bytes, &places);
        Status status = pt2_read(span_of(&bytes), NULL, model, out_graph);
        text_deinit(&bytes);
        return status;
}
