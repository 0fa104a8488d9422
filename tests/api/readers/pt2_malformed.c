// SPDX-License-Identifier: Apache-2.0
// One valid archive, one edit per case: the status and the word that names the culprit.
#include "tests/api/readers/pt2_maker.h"
#include "core/base/limits.h"
#include "core/ops/op.h"

typedef struct Case {
        const char *what;
        Pt2Edit edits[3];
        Status status;
        const char *word;
} Case;

#define MODEL     "models/model.json"
#define WEIGHTS   "weights_config.json"
#define CONSTANTS "constants_config.json"
#define TREE(type, context, children)                                                                        \
        "\\\"type\\\": \\\"" type "\\\", \\\"context\\\": \\\"" context                                      \
        "\\\", \\\"children_spec\\\": [" children "]"

static const Case cases[] = {
        // ---- the archive ----
        { "no model", { { MODEL, NULL, NULL, NULL } }, STATUS_WRONG_FILE, "models/*.json" },
        { "other format", { { "archive_format", NULL, "onnx", NULL } }, STATUS_WRONG_FILE, "\"onnx\"" },
        { "other version", { { "archive_version", NULL, "1", NULL } }, STATUS_WRONG_FILE, "version \"1\"" },
        { "big-endian", { { "byteorder", NULL, "big", NULL } }, STATUS_UNSUPPORTED, "big-endian" },
        { "a version of 300 bytes",
          { { "archive_version", NULL,
              "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
              "000000000000"
              "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
              "000000000000000000000000000000"
              "00000000000000000000000000000000000000000000000000000000000000000000000000",
              NULL } },
          STATUS_TOO_LARGE,
          "archive_version" },
        { "torch 2.7",
          { { "archive_format", NULL, NULL, "m/serialized_exported_program.json" } },
          STATUS_WRONG_FILE,
          "2.7" },
        { "torch 2.8",
          { { WEIGHTS, NULL, NULL, NULL }, { "tensor_0", NULL, NULL, "m/data/weights/model.pt" } },
          STATUS_WRONG_FILE,
          "torch 2.8" },
        { "no weights config",
          { { WEIGHTS, NULL, NULL, NULL } },
          STATUS_MALFORMED,
          "model_weights_config.json" },
        { "no constants config",
          { { CONSTANTS, NULL, NULL, NULL } },
          STATUS_MALFORMED,
          "model_constants_config.json" },
        { "weights of another model",
          { { WEIGHTS, NULL, NULL, "m/data/weights/other_weights_config.json" } },
          STATUS_MALFORMED,
          "model_weights_config.json" },
        // ---- weights ----
        { "weights config is no JSON",
          { { WEIGHTS, NULL, "config", NULL } },
          STATUS_MALFORMED,
          "weights config is not an object" },
        { "weights config is a list", { { WEIGHTS, NULL, "[]", NULL } }, STATUS_MALFORMED, "weights config" },
        { "weights config without config",
          { { WEIGHTS, NULL, "{}", NULL } },
          STATUS_MALFORMED,
          "\"config\"" },
        { "member missing", { { "weight_0", NULL, NULL, NULL } }, STATUS_MALFORMED, "weight_0" },
        { "member too short",
          { { "weight_0", NULL, "123456789012", NULL } },
          STATUS_MALFORMED,
          "\"l.w\" reaches beyond" },
        { "member empty", { { "weight_0", NULL, "", NULL } }, STATUS_MISSING_STATE, "without data" },
        { "pickled weight",
          { { WEIGHTS, "\"use_pickle\": false", "\"use_pickle\": true", NULL } },
          STATUS_UNSUPPORTED,
          "\"l.w\"" },
        { "pickled constant",
          { { CONSTANTS, "\"use_pickle\": false", "\"use_pickle\": true", NULL } },
          STATUS_UNSUPPORTED,
          "\"flags\"" },
        { "custom object",
          { { CONSTANTS, "tensor_0", "custom_obj_0", NULL } },
          STATUS_UNSUPPORTED,
          "\"flags\"" },
        { "opaque object",
          { { CONSTANTS, "tensor_0", "opaque_obj_0", NULL } },
          STATUS_UNSUPPORTED,
          "\"flags\"" },
        { "no path_name", { { WEIGHTS, "path_name", "path", NULL } }, STATUS_MALFORMED, "path_name" },
        { "no tensor_meta", { { WEIGHTS, "tensor_meta", "meta", NULL } }, STATUS_MALFORMED, "tensor_meta" },
        { "no sizes", { { WEIGHTS, "sizes", "shape", NULL } }, STATUS_MALFORMED, "sizes" },
        { "dtype unknown",
          { { WEIGHTS, "\"dtype\": 7", "\"dtype\": 99", NULL } },
          STATUS_MALFORMED,
          "scalar type 99" },
        { "dtype we lack",
          { { WEIGHTS, "\"dtype\": 7", "\"dtype\": 29", NULL } },
          STATUS_UNSUPPORTED,
          "float8_e4m3fn" },
        { "dtype that is wider",
          { { WEIGHTS, "\"dtype\": 7", "\"dtype\": 8", NULL } },
          STATUS_MALFORMED,
          "reaches beyond" },
        { "sparse layout",
          { { WEIGHTS, "\"layout\": 7", "\"layout\": 1", NULL } },
          STATUS_UNSUPPORTED,
          "dense" },
        { "negative size",
          { { WEIGHTS, "\"as_int\": 2", "\"as_int\": -2", NULL } },
          STATUS_MALFORMED,
          "negative" },
        { "size of 2^31",
          { { WEIGHTS, "\"as_int\": 2", "\"as_int\": 2147483648", NULL } },
          STATUS_TOO_LARGE,
          "" },
        { "size of 2^63",
          { { WEIGHTS, "\"as_int\": 2", "\"as_int\": 9223372036854775808", NULL } },
          STATUS_MALFORMED,
          "integer" },
        { "sizes that wrap",
          { { WEIGHTS, "{\"as_int\": 2}, {\"as_int\": 2}",
              "{\"as_int\": 4294967296}, {\"as_int\": 4294967296}", NULL } },
          STATUS_TOO_LARGE,
          "" },
        { "stride of 2^62",
          { { WEIGHTS, "\"strides\": [{\"as_int\": 2}", "\"strides\": [{\"as_int\": 4611686018427387904}",
              NULL } },
          STATUS_MALFORMED,
          "beyond" },
        { "negative stride",
          { { WEIGHTS, "\"strides\": [{\"as_int\": 2}", "\"strides\": [{\"as_int\": -2}", NULL } },
          STATUS_MALFORMED,
          "negative" },
        { "one stride too few",
          { { WEIGHTS, "\"strides\": [{\"as_int\": 2}, ", "\"strides\": [", NULL } },
          STATUS_MALFORMED,
          "strides" },
        { "offset beyond",
          { { WEIGHTS, "\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 1}", NULL } },
          STATUS_MALFORMED,
          "beyond" },
        { "negative offset",
          { { WEIGHTS, "\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": -1}",
              NULL } },
          STATUS_MALFORMED,
          "offset" },
        { "offset of 2^62",
          { { WEIGHTS, "\"storage_offset\": {\"as_int\": 0}",
              "\"storage_offset\": {\"as_int\": 4611686018427387904}", NULL } },
          STATUS_MALFORMED,
          "beyond" },
        { "symbolic size of a weight",
          { { WEIGHTS, "{\"as_int\": 2}", "{\"as_expr\": {\"expr_str\": \"s0\"}}", NULL } },
          STATUS_MALFORMED,
          "as_expr" },
        { "rank 9",
          { { WEIGHTS, "\"sizes\": [{\"as_int\": 2}, {\"as_int\": 2}",
              "\"sizes\": [{\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": "
              "1}, {\"as_int\": 1}, "
              "{\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}",
              NULL },
            { WEIGHTS, "\"strides\": [{\"as_int\": 2}, {\"as_int\": 1}",
              "\"strides\": [{\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}, "
              "{\"as_int\": 1}, {\"as_int\": 1}, "
              "{\"as_int\": 1}, {\"as_int\": 1}, {\"as_int\": 1}",
              NULL } },
          STATUS_UNSUPPORTED,
          "dimensions" },
        { "the same path twice", { { WEIGHTS, "l.tied", "l.w", NULL } }, STATUS_MALFORMED, "l.w" },
        { "a weight and a constant of one path",
          { { CONSTANTS, "flags", "l.w", NULL } },
          STATUS_MALFORMED,
          "l.w" },
        { "a path with an empty part",
          { { WEIGHTS, "l.tied", "l..tied", NULL } },
          STATUS_LINT,
          "empty part" },
        { "bool byte 2", { { "tensor_0", NULL, "\1\2", NULL } }, STATUS_MALFORMED, "byte 2" },
        { "member that climbs out",
          { { WEIGHTS, "weight_0", "../../models/model.json", NULL } },
          STATUS_MALFORMED,
          "no member" },
        // ---- the model document ----
        { "no JSON", { { MODEL, NULL, "graph():", NULL } }, STATUS_MALFORMED, "not an object" },
        { "JSON list", { { MODEL, NULL, "[]", NULL } }, STATUS_MALFORMED, "model document" },
        { "cut off",
          { { MODEL, "\"guards_code\": [\"L['x'].size()[0] <= 64\"]}", "", NULL } },
          STATUS_MALFORMED,
          "line 1" },
        { "schema 7",
          { { MODEL, "\"major\": 8", "\"major\": 7", NULL } },
          STATUS_WRONG_FILE,
          "schema version 7.20" },
        { "schema 9", { { MODEL, "\"major\": 8", "\"major\": 9", NULL } }, STATUS_WRONG_FILE, "torch 2.13" },
        { "no schema", { { MODEL, "schema_version", "schema", NULL } }, STATUS_MALFORMED, "schema_version" },
        { "no graph_module",
          { { MODEL, "graph_module", "module", NULL } },
          STATUS_MALFORMED,
          "graph_module" },
        { "no graph",
          { { MODEL, "\"graph\": {\"inputs\"", "\"graphs\": {\"inputs\"", NULL } },
          STATUS_MALFORMED,
          "\"graph\"" },
        { "no signature",
          { { MODEL, "\"signature\": {\"input_specs\"", "\"sig\": {\"input_specs\"", NULL } },
          STATUS_MALFORMED,
          "\"signature\"" },
        { "no nodes",
          { { MODEL, "\"nodes\": [{\"target\": \"torch.ops.aten.linear",
              "\"knots\": [{\"target\": \"torch.ops.aten.linear", NULL } },
          STATUS_MALFORMED,
          "\"nodes\"" },
        { "nodes is no list",
          { { MODEL, "\"inputs\": [" TENSOR("p_l_w"), "\"nodes\": {}, \"inputs\": [" TENSOR("p_l_w"),
              NULL } },
          STATUS_MALFORMED,
          "nodes" },
        // ---- inputs ----
        { "two inputs of one name",
          { { MODEL, TENSOR("c_flags") ", " TENSOR("x"), TENSOR("x") ", " TENSOR("x"), NULL } },
          STATUS_MALFORMED,
          "\"x\"" },
        { "input of a strange kind",
          { { MODEL, "{\"as_int\": 3}]", "{\"as_ints\": [3]}]", NULL } },
          STATUS_MALFORMED,
          "as_ints" },
        { "input that is no identifier",
          { { MODEL, TENSOR("x") ", {\"as_int\": 3}", TENSOR("x y") ", {\"as_int\": 3}", NULL } },
          STATUS_LINT,
          "x y" },
        { "input that is a custom object",
          { { MODEL, "{\"as_int\": 3}]", "{\"as_custom_obj\": {\"name\": \"q\", \"class_fqn\": \"z\"}}]",
              NULL } },
          STATUS_UNSUPPORTED,
          "\"q\"" },
        // ---- nodes ----
        { "no target",
          { { MODEL, "\"target\": \"torch.ops.aten.topk.default\", ", "", NULL } },
          STATUS_MALFORMED,
          "target" },
        { "extension operator",
          { { MODEL, "torch.ops.aten.topk.default", "#ext:topk", NULL } },
          STATUS_UNSUPPORTED,
          "#ext:topk" },
        { "value used before it is made",
          { { MODEL, INPUT("self", TENSOR("linear")), INPUT("self", TENSOR("getitem_2")), NULL } },
          STATUS_MALFORMED,
          "\"getitem_2\"" },
        { "value that nobody makes",
          { { MODEL, INPUT("self", TENSOR("linear")), INPUT("self", TENSOR("nobody")), NULL } },
          STATUS_MALFORMED,
          "\"nobody\"" },
        { "value used by its own node",
          { { MODEL, INPUT("self", TENSOR("linear")), INPUT("self", TENSOR("getitem")), NULL } },
          STATUS_MALFORMED,
          "\"getitem\"" },
        { "value made twice",
          { { MODEL, TENSOR("getitem_1") "], \"metadata\"", TENSOR("linear") "], \"metadata\"", NULL } },
          STATUS_MALFORMED,
          "\"linear\"" },
        { "value named like an input",
          { { MODEL, "[" TENSOR("linear") "]", "[" TENSOR("x") "]", NULL } },
          STATUS_MALFORMED,
          "\"x\"" },
        { "result that is no identifier",
          { { MODEL, "[" TENSOR("linear") "]", "[" TENSOR("a;b") "]", NULL } },
          STATUS_LINT,
          "a;b" },
        { "input without arg",
          { { MODEL, INPUT("k", "{\"as_int\": 1}"), "{\"name\": \"k\"}", NULL } },
          STATUS_MALFORMED,
          "\"arg\"" },
        { "argument without value",
          { { MODEL, "{\"as_int\": 1}", "{}", NULL } },
          STATUS_MALFORMED,
          "no value" },
        { "argument of nulls",
          { { MODEL, "{\"as_int\": 1}", "{\"as_int\": null, \"as_none\": false}", NULL } },
          STATUS_MALFORMED,
          "no value" },
        { "argument of two values",
          { { MODEL, "{\"as_int\": 1}", "{\"as_int\": 1, \"as_float\": 2.0}", NULL } },
          STATUS_MALFORMED,
          "two values" },
        { "argument of an unknown kind",
          { { MODEL, "{\"as_int\": 1}", "{\"as_prompt\": 1}", NULL } },
          STATUS_UNSUPPORTED,
          "as_prompt" },
        { "int that is a float",
          { { MODEL, "{\"as_int\": 1}", "{\"as_int\": 1.5}", NULL } },
          STATUS_MALFORMED,
          "integer" },
        { "int that is a text",
          { { MODEL, "{\"as_int\": 1}", "{\"as_int\": \"1\"}", NULL } },
          STATUS_MALFORMED,
          "integer" },
        { "float that is a word",
          { { MODEL, "{\"as_int\": 1}", "{\"as_float\": \"inf\"}", NULL } },
          STATUS_MALFORMED,
          "inf" },
        { "memory format 9",
          { { MODEL, "{\"as_int\": 1}", "{\"as_memory_format\": 9}", NULL } },
          STATUS_MALFORMED,
          "memory format 9" },
        { "layout 0",
          { { MODEL, "{\"as_int\": 1}", "{\"as_layout\": 0}", NULL } },
          STATUS_MALFORMED,
          "layout 0" },
        { "scalar type 14",
          { { MODEL, "{\"as_int\": 1}", "{\"as_scalar_type\": 14}", NULL } },
          STATUS_MALFORMED,
          "scalar type 14" },
        { "scalar type we lack",
          { { MODEL, "{\"as_int\": 1}", "{\"as_scalar_type\": 9}", NULL } },
          STATUS_UNSUPPORTED,
          "complex32" },
        { "device without type",
          { { MODEL, "{\"as_int\": 1}", "{\"as_device\": {\"index\": 0}}", NULL } },
          STATUS_MALFORMED,
          "device" },
        { "complex without imag",
          { { MODEL, "{\"as_int\": 1}", "{\"as_complex\": {\"real\": 0}}", NULL } },
          STATUS_MALFORMED,
          "imag" },
        { "symbol of a strange kind",
          { { MODEL, "{\"as_int\": 1}", "{\"as_sym_int\": {\"as_text\": \"s\"}}", NULL } },
          STATUS_MALFORMED,
          "as_text" },
        { "symbol that nobody makes",
          { { MODEL, "{\"as_int\": 1}", "{\"as_sym_int\": {\"as_name\": \"s9\"}}", NULL } },
          STATUS_MALFORMED,
          "\"s9\"" },
        { "optional tensor of a strange kind",
          { { MODEL, "{\"as_int\": 1}", "{\"as_optional_tensor\": {\"as_int\": 1}}", NULL } },
          STATUS_MALFORMED,
          "as_int" },
        { "custom object as argument",
          { { MODEL, "{\"as_int\": 1}", "{\"as_custom_obj\": {\"name\": \"q\", \"class_fqn\": \"z\"}}",
              NULL } },
          STATUS_UNSUPPORTED,
          "\"q\"" },
        { "result of an unknown kind",
          { { MODEL, "[" TENSOR("linear") "]", "[{\"as_ints\": [1]}]", NULL } },
          STATUS_UNSUPPORTED,
          "as_ints" },
        { "result that is a constant",
          { { MODEL, "[" TENSOR("linear") "]", "[{\"as_sym_int\": {\"as_int\": 1}}]", NULL } },
          STATUS_MALFORMED,
          "constant" },
        { "named argument given twice",
          { { MODEL, INPUT("self", TENSOR("linear")) ", " INPUT("k", "{\"as_int\": 1}"),
              "{\"name\": \"k\", \"arg\": {\"as_int\": 1}, \"kind\": 2}, {\"name\": \"k\", \"arg\": "
              "{\"as_int\": 1}, \"kind\": 2}",
              NULL } },
          STATUS_MALFORMED,
          "twice" },
        // ---- child graphs ----
        { "child without name",
          { { MODEL, "\"name\": \"true_graph_0\", ", "", NULL } },
          STATUS_MALFORMED,
          "name" },
        { "child with a dotted name", { { MODEL, "true_graph_0", "a.b", NULL } }, STATUS_MALFORMED, "a.b" },
        { "child that reads its parent's values",
          { { MODEL, INPUT("self", TENSOR("y")), INPUT("self", TENSOR("linear")), NULL } },
          STATUS_MALFORMED,
          "\"linear\"" },
        { "child without outputs",
          { { MODEL, "\"outputs\": [" TENSOR("relu") "], \"nodes\"", "\"nodes\"", NULL } },
          STATUS_MALFORMED,
          "outputs" },
        { "single return of none",
          { { MODEL, "\"outputs\": [" TENSOR("relu") "], \"nodes\"", "\"outputs\": [], \"nodes\"", NULL },
            { MODEL, "\"is_single_tensor_return\": false", "\"is_single_tensor_return\": true", NULL } },
          STATUS_MALFORMED,
          "is_single_tensor_return" },
        // ---- metas ----
        { "meta without dtype",
          { { MODEL, "\"dtype\": 7", "\"type\": 7", NULL } },
          STATUS_MALFORMED,
          "dtype" },
        { "size without expression", { { MODEL, "expr_str", "expr", NULL } }, STATUS_MALFORMED, "expr_str" },
        // ---- outputs and signature ----
        { "output that nobody makes",
          { { MODEL, "\"outputs\": [" TENSOR("getitem") ", " TENSOR("getitem_2"),
              "\"outputs\": [" TENSOR("getitem") ", " TENSOR("getitem_9"), NULL } },
          STATUS_MALFORMED,
          "getitem_9" },
        { "one output spec too few",
          { { MODEL, ", {\"user_output\": {\"arg\": " TENSOR("getitem_2") "}}", "", NULL } },
          STATUS_MALFORMED,
          "1 outputs and the graph 2" },
        { "output spec of another value",
          { { MODEL, "{\"user_output\": {\"arg\": " TENSOR("getitem_2") "}}",
              "{\"user_output\": {\"arg\": " TENSOR("linear") "}}", NULL } },
          STATUS_MALFORMED,
          "\"linear\"" },
        { "gradient output",
          { { MODEL, "{\"user_output\": {\"arg\": " TENSOR("getitem_2") "}}",
              "{\"gradient_to_parameter\": {\"arg\": {\"name\": \"getitem_2\"}, \"parameter_name\": "
              "\"l.w\"}}",
              NULL } },
          STATUS_UNSUPPORTED,
          "gradient_to_parameter" },
        { "mutation of nothing",
          { { MODEL, "{\"user_output\": {\"arg\": " TENSOR("getitem") "}}",
              "{\"buffer_mutation\": {\"arg\": {\"name\": \"getitem\"}, \"buffer_name\": \"no\"}}", NULL } },
          STATUS_MALFORMED,
          "\"no\"" },
        { "mutation of a node",
          { { MODEL, "{\"user_output\": {\"arg\": " TENSOR("getitem") "}}",
              "{\"user_input_mutation\": {\"arg\": {\"name\": \"getitem\"}, \"user_input_name\": "
              "\"linear\"}}",
              NULL } },
          STATUS_MALFORMED,
          "no input" },
        { "one input spec too few",
          { { MODEL, "{\"user_input\": {\"arg\": " TENSOR("x") "}}, ", "", NULL } },
          STATUS_MALFORMED,
          "3 inputs and the graph 4" },
        { "input spec of another input",
          { { MODEL, "{\"user_input\": {\"arg\": " TENSOR("x") "}}",
              "{\"user_input\": {\"arg\": " TENSOR("c_flags") "}}", NULL } },
          STATUS_MALFORMED,
          "c_flags" },
        { "parameter without its name",
          { { MODEL, "parameter_name", "name", NULL } },
          STATUS_MALFORMED,
          "parameter_name" },
        { "parameter without weights",
          { { MODEL, "\"parameter_name\": \"l.w\"", "\"parameter_name\": \"l.q\"", NULL } },
          STATUS_MISSING_STATE,
          "l.q" },
        { "token input",
          { { MODEL, "{\"user_input\": {\"arg\": " TENSOR("x") "}}",
              "{\"token\": {\"arg\": {\"name\": \"x\"}}}", NULL } },
          STATUS_UNSUPPORTED,
          "token" },
        { "constant that is a value",
          { { MODEL, "{\"user_input\": {\"arg\": " TENSOR("x") "}}",
              "{\"constant_input\": {\"name\": \"x\", \"value\": {\"as_int\": 1}}}", NULL } },
          STATUS_MALFORMED,
          "\"x\"" },
        { "literal as a parameter",
          { { MODEL, "{\"constant_input\": {\"name\": \"n\", \"value\": {\"as_int\": 3}}}",
              "{\"parameter\": {\"arg\": {\"name\": \"arg3\"}, \"parameter_name\": \"l.w\"}}", NULL } },
          STATUS_MALFORMED,
          "must be a tensor" },
        // ---- what is said twice ----
        { "model that returns one bare value",
          { { MODEL, "\"sym_int_values\": {}, \"is_single_tensor_return\": false",
              "\"sym_int_values\": {}, \"is_single_tensor_return\": true", NULL } },
          STATUS_MALFORMED,
          "a model returns a tuple" },
        { "operator with a result too few",
          { { MODEL, "\"outputs\": [" TENSOR("getitem") ", " TENSOR("getitem_1") "]",
              "\"outputs\": [" TENSOR("getitem") "]", NULL } },
          STATUS_MALFORMED,
          "lists 1 results, but torch.ops.aten.topk.default returns 2" },
        { "operator with a result too many",
          { { MODEL, "\"outputs\": [" TENSOR("linear") "]",
              "\"outputs\": [" TENSOR("linear") ", " TENSOR("more") "]", NULL } },
          STATUS_MALFORMED,
          "lists 2 results, but torch.ops.aten.linear.default returns 1" },
        { "tensor as a list of results",
          { { MODEL, "\"outputs\": [" TENSOR("linear") "]",
              "\"outputs\": [{\"as_tensors\": [{\"name\": \"linear\"}]}]", NULL } },
          STATUS_MALFORMED,
          "is a list, but torch.ops.aten.linear.default returns one value" },
        { "branch that returns one bare value",
          { { MODEL, "\"tensor_values\": {}, \"is_single_tensor_return\": false",
              "\"is_single_tensor_return\": true", NULL } },
          STATUS_MALFORMED,
          "\"true_graph_0\" returns one value" },
        { "branches said to return a bare value",
          { { MODEL, "\"is_hop_single_tensor_return\": false", "\"is_hop_single_tensor_return\": true",
              NULL } },
          STATUS_MALFORMED,
          "\"true_graph_0\" returns a tuple" },
        { "branches with a result too many",
          { { MODEL, "\"outputs\": [" TENSOR("getitem_2") "]",
              "\"outputs\": [" TENSOR("getitem_2") ", " TENSOR("more") "]", NULL } },
          STATUS_MALFORMED,
          "\"true_graph_0\" returns 1" },
        { "result without a kind",
          { { MODEL, "\"outputs\": [" TENSOR("linear"), "\"outputs\": [{\"\": {\"name\": \"linear\"}}",
              NULL } },
          STATUS_UNSUPPORTED,
          "kind \"\"" },
        // ---- structure ----
        { "no root entry", { { MODEL, "\"fqn\": \"\"", "\"fqn\": \"l\"", NULL } }, STATUS_MALFORMED, "fqn" },
        { "no in_spec", { { MODEL, "\"in_spec\"", "\"spec\"", NULL } }, STATUS_MALFORMED, "in_spec" },
        { "in_spec is no JSON",
          { { MODEL, "\"in_spec\": \"[1", "\"in_spec\": \"(1", NULL } },
          STATUS_MALFORMED,
          "line 1" },
        { "treespec protocol 2",
          { { MODEL, "\"in_spec\": \"[1", "\"in_spec\": \"[2", NULL } },
          STATUS_UNSUPPORTED,
          "protocol 2" },
        { "in_spec with a leaf too few",
          { { MODEL, LEAF ", " LEAF, LEAF, NULL } },
          STATUS_MALFORMED,
          "leaves" },
        { "in_spec that is no pair",
          { { MODEL,
              "\\\"children_spec\\\": ["
              "{\\\"type\\\": \\\"builtins.tuple\\\"",
              "\\\"children_spec\\\": [" LEAF ", {\\\"type\\\": \\\"builtins.tuple\\\"", NULL } },
          STATUS_MALFORMED,
          "pair" },
        { "keyword arguments in a tuple",
          { { MODEL, LEAF ", " LEAF "]}, {" TREE("builtins.dict", "[]", ""),
              LEAF "]}, {" TREE("builtins.tuple", "null", LEAF), NULL } },
          STATUS_MALFORMED,
          "a tuple and a dict" },
        { "keyword arguments that are a leaf",
          { { MODEL, LEAF ", " LEAF "]}, {" TREE("builtins.dict", "[]", "") "}", LEAF "]}, " LEAF, NULL } },
          STATUS_MALFORMED,
          "a tuple and a dict" },
        { "positional arguments in a list",
          { { MODEL, TREE("builtins.tuple", "null", LEAF ", " LEAF),
              TREE("builtins.list", "null", LEAF ", " LEAF), NULL } },
          STATUS_MALFORMED,
          "a tuple and a dict" },
        { "keys without children",
          { { MODEL, TREE("builtins.dict", "[]", ""), TREE("builtins.dict", "[\\\\\\\"a\\\\\\\"]", ""),
              NULL } },
          STATUS_MALFORMED,
          "1 keys and 0" },
        { "container whose members have no names",
          { { MODEL, "\\\"[\\\\\\\"top\\\\\\\", \\\\\\\"rest\\\\\\\"]\\\"", "\\\"7\\\"", NULL } },
          STATUS_UNSUPPORTED,
          "lib.Output" },
        { "out_spec with a leaf too many",
          { { MODEL, "\\\"rest\\\\\\\"]\\\", \\\"children_spec\\\": [" LEAF,
              "\\\"rest\\\\\\\", 3]\\\", \\\"children_spec\\\": [" LEAF ", " LEAF, NULL } },
          STATUS_MALFORMED,
          "leaves" },
        { "range that is no integer",
          { { MODEL, "\"min_val\": 2", "\"min_val\": \"two\"", NULL } },
          STATUS_MALFORMED,
          "integer" },
        { "guards that are no texts",
          { { MODEL, "\"guards_code\": [", "\"guards_code\": [1, ", NULL } },
          STATUS_MALFORMED,
          "string" },
};

Test(pt2_malformed, names_the_culprit)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Graph *graph = NULL;
                expect_failure(cases[i].what, read_pt2(cases[i].edits, 3, NULL, &graph), cases[i].status,
                               cases[i].word);
                graph_unref(graph);
        }
}

Test(pt2_malformed, names_the_node_and_the_argument)
{
        const Pt2Edit edit = { MODEL, "{\"as_int\": 1}", "{\"as_int\": 1.5}", NULL };
        Graph *graph = NULL;
        cr_assert_eq(read_pt2(&edit, 1, NULL, &graph), STATUS_MALFORMED);
        cr_expect_str_eq(failure_current()->node, "torch.ops.aten.topk.default");
        cr_expect_str_eq(failure_current()->argument, "k");
}

// A model document with `n` more levels of `open` ... `close` around an argument.
static Status read_nested(const char *open, const char *inner, const char *close, int n, Graph **out_graph)
{
        Text text = { 0 };
        for (int i = 0; i < n; i++)
                text_add(&text, open);
        text_add(&text, inner);
        for (int i = 0; i < n; i++)
                text_add(&text, close);
        const Pt2Edit edit = { MODEL, "{\"as_int\": 1}", text.data, NULL };
        Status status = read_pt2(&edit, 1, NULL, out_graph);
        text_deinit(&text);
        return status;
}

Test(pt2_malformed, caps_nesting_of_arguments)
{
        static const char open[] = "{\"as_string_to_argument\": {\"a\": ", close[] = "}}";
        Graph *graph = NULL;
        limits.max_nested_values = 8;
        cr_expect_eq(read_nested(open, "{\"as_int\": 1}", close, 8, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        graph = graph_unref(graph);
        expect_failure("9 levels", read_nested(open, "{\"as_int\": 1}", close, 9, &graph), STATUS_TOO_LARGE,
                       "nested");
        expect_failure("1000 levels", read_nested(open, "{\"as_int\": 1}", close, 1000, &graph),
                       STATUS_TOO_LARGE, "nesting");
        expect_failure("lists", read_nested("{\"as_ints\": [", "1", "]}", 2, &graph), STATUS_MALFORMED,
                       "integer");
}

Test(pt2_malformed, caps_graphs_within_graphs)
{
        static const char open[] = "{\"as_graph\": {\"name\": \"g\", \"graph\": {\"inputs\": [], "
                                   "\"outputs\": [], \"nodes\": [{\"target\": "
                                   "\"torch.ops.higher_order.cond\", "
                                   "\"outputs\": [], \"inputs\": [{\"name\": \"\", \"kind\": 1, \"arg\": ";
        static const char close[] = "}]}]}}}";
        Graph *graph = NULL;
        cr_expect_eq(read_nested(open, "{\"as_int\": 1}", close, 16, &graph), STATUS_OK, "%s",
                     failure_current()->message);
        graph = graph_unref(graph);
        expect_failure("17 graphs", read_nested(open, "{\"as_int\": 1}", close, 17, &graph), STATUS_TOO_LARGE,
                       "nest");
        expect_failure("100 graphs", read_nested(open, "{\"as_int\": 1}", close, 100, &graph),
                       STATUS_TOO_LARGE, "nest");
}

Test(pt2_malformed, caps_documents_values_nodes_and_weights)
{
        Graph *graph = NULL;
        limits.max_graph_json = (int64_t)sizeof(pt2_model) - 2;
        expect_failure("document", read_pt2(NULL, 0, NULL, &graph), STATUS_TOO_LARGE, "--max-graph-json");
        limits.max_graph_json = 1 << 24;
        limits.max_json_values = 100;
        expect_failure("values", read_pt2(NULL, 0, NULL, &graph), STATUS_TOO_LARGE, "100 values");
        limits.max_json_values = 2000000;
        limits.max_nodes = 6;
        expect_failure("nodes", read_pt2(NULL, 0, NULL, &graph), STATUS_TOO_LARGE, "6 nodes");
        limits.max_nodes = 100000;
        limits.max_tensors = 1;
        expect_failure("tensors", read_pt2(NULL, 0, NULL, &graph), STATUS_TOO_LARGE, "1 tensors");
}

Test(pt2_malformed, survives_truncation_at_every_byte)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(NULL, 0, true, &bytes, &places);
        for (size_t n = 0; n < bytes.n; n++) {
                Graph *graph = NULL;
                uint8_t *cut = malloc(n == 0 ? 1 : n);
                memcpy(cut, bytes.data, n);
                cr_expect_eq(pt2_read((ByteSpan){ cut, n }, NULL, NULL, &graph), STATUS_MALFORMED,
                             "cut at %zu", n);
                free(cut);
        }
        text_deinit(&bytes);
}

// The same for the document alone, whose archive stays whole.
Test(pt2_malformed, survives_a_document_cut_at_every_byte)
{
        for (size_t n = 0; n + 1 < sizeof(pt2_model); n++) {
                Graph *graph = NULL;
                char *cut = strndup(pt2_model, n);
                const Pt2Edit edit = { MODEL, NULL, cut, NULL };
                cr_expect_eq(read_pt2(&edit, 1, NULL, &graph), STATUS_MALFORMED, "cut at %zu", n);
                free(cut);
        }
}

// Every byte of a document changed in a few ways: whatever is still valid is read and freed,
// nothing crashes or hangs.
static void change_every_byte(const char *member, const char *document, size_t n_document)
{
        static const char values[] = "0\"{]a";
        char *text = strndup(document, n_document);
        for (size_t at = 0; at < n_document; at++) {
                char held = text[at];
                for (size_t k = 0; k < sizeof(values) - 1; k++) {
                        Graph *graph = NULL;
                        const Pt2Edit edit = { member, NULL, text, NULL };
                        text[at] = values[k];
                        if (read_pt2(&edit, 1, NULL, &graph) == STATUS_OK)
                                graph_unref(graph);
                        else
                                cr_expect_eq(status_class(failure_current()->status), STATUS_CLASS_CALLER,
                                             "byte %zu: %s", at, failure_current()->message);
                }
                text[at] = held;
        }
        free(text);
}

Test(pt2_malformed, survives_any_changed_byte_of_its_documents)
{
        change_every_byte(MODEL, pt2_model, sizeof(pt2_model) - 1);
        change_every_byte(WEIGHTS, pt2_weights_config, sizeof(pt2_weights_config) - 1);
        change_every_byte(CONSTANTS, pt2_constants_config, sizeof(pt2_constants_config) - 1);
}

Test(pt2_malformed, survives_any_flipped_bit_of_its_archive)
{
        Text bytes = { 0 };
        ZipPlaces places;
        make_pt2(NULL, 0, true, &bytes, &places);
        for (size_t at = 0; at < bytes.n; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        Graph *graph = NULL;
                        bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
                        if (pt2_read(span_of(&bytes), NULL, NULL, &graph) == STATUS_OK)
                                graph_unref(graph);
                        bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
                }
        }
        text_deinit(&bytes);
}
