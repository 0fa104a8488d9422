// SPDX-License-Identifier: Apache-2.0
// Documents that must be refused: status and the words that name the culprit.
#include <criterion/criterion.h>
#include <string.h>
#include "api/readers/fx_json.h"

#define OUT          "{\"op\": \"output\", \"args\": [null]}"
#define X            "{\"op\": \"placeholder\", \"target\": \"x\"}"
#define NODES(nodes) "{\"nodes\": [" nodes "]}"
#define ARG(arg)                                                                                             \
        NODES(X ", {\"op\": \"call_method\", \"name\": \"f\", \"target\": \"add\", \"args\": [\"%x\", " arg  \
                "]}, " OUT)
#define META(meta)                                                                                           \
        NODES("{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\", \"meta\": " meta "}, " OUT)
#define MODULES(m) "{\"nodes\": [" OUT "], \"modules\": {" m "}}"
#define STATE(s)   "{\"nodes\": [" OUT "], \"state\": {" s "}}"

typedef struct Bad {
        const char *text;
        Status status;
        const char *words, *node;
} Bad;

static const Bad bad[] = {
        // the document
        { "", STATUS_MALFORMED, "a graph is an object", "" },
        { "[]", STATUS_MALFORMED, "a graph is an object", "" },
        { "3", STATUS_MALFORMED, "a graph is an object", "" },
        { "{}", STATUS_MALFORMED, "needs \"nodes\"", "" },
        { "{\"format\": \"fx/1\"}", STATUS_MALFORMED, "needs \"nodes\"", "" },
        { "{\"format\": \"fx/2\", \"nodes\": []}", STATUS_MALFORMED, "unknown format \"fx/2\"", "" },
        { "{\"format\": 1, \"nodes\": []}", STATUS_MALFORMED, "a text is expected", "" },
        { "{\"format\": \"fx-variant/1\", \"base\": \"m\"}", STATUS_MALFORMED, "a variant", "" },
        { "{\"nodes\": [" OUT "], \"weights\": {}}", STATUS_UNKNOWN_MEMBER,
          "\"weights\"; it knows format, nodes, modules, state", "" },
        { "{\"nodes\": [" OUT "]} x", STATUS_MALFORMED, "line 1", "" },
        { "{\"nodes\": [" OUT "], \"nodes\": [" OUT "]}", STATUS_MALFORMED, "nodes", "" },
        { "{\"nodes\": {}}", STATUS_MALFORMED, "line 1", "" },
        { "{\"nodes\": [" OUT "],}", STATUS_MALFORMED, "line 1", "" },
        { "{\"nodes\": [\xff]}", STATUS_MALFORMED, "line 1", "" },
        // nodes
        { NODES(""), STATUS_LINT, "no output node", "" },
        { NODES(X), STATUS_LINT, "no output node", "" },
        { NODES(OUT ", " X), STATUS_LINT, "output node 'output' is not the last node", "output" },
        { NODES(OUT ", " OUT), STATUS_LINT, "output node 'output' is not the last node", "output" },
        { NODES("3"), STATUS_MALFORMED, "nodes[0]", "" },
        { NODES("{\"target\": \"x\"}, " OUT), STATUS_MALFORMED, "nodes[0]: a node needs \"op\"", "" },
        { NODES("{\"op\": \"placeholder\", \"name\": \"a\"}, " OUT), STATUS_MALFORMED,
          "node \"a\": a node needs \"target\"", "a" },
        { NODES("{\"op\": \"call_funktion\", \"target\": \"x\"}, " OUT), STATUS_LINT,
          "unknown opcode \"call_funktion\"", "" },
        { NODES("{\"op\": 3, \"target\": \"x\"}, " OUT), STATUS_MALFORMED, "nodes[0], op: a text is expected",
          "" },
        { NODES("{\"op\": \"placeholder\", \"target\": 3}, " OUT), STATUS_MALFORMED, "nodes[0], target", "" },
        { NODES("{\"op\": \"placeholder\", \"target\": \"\"}, " OUT), STATUS_LINT,
          "_unnamed has an empty target", "_unnamed" },
        { NODES("{\"op\": \"placeholder\", \"name\": \"a b\", \"target\": \"x\"}, " OUT), STATUS_LINT,
          "\"a b\" is not a Python identifier", "a b" },
        { NODES("{\"op\": \"placeholder\", \"name\": \"\", \"target\": \"x\"}, " OUT), STATUS_LINT,
          "not a Python identifier", "" },
        { NODES("{\"op\": \"placeholder\", \"name\": null, \"target\": \"x\"}, " OUT), STATUS_MALFORMED,
          "nodes[0], name", "" },
        { NODES(X ", {\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"y\"}, " OUT), STATUS_LINT,
          "Node redefined name x!", "x" },
        { NODES(X ", " X ", " OUT), STATUS_LINT, "duplicate argument 'x'", "x_1" },
        { NODES("{\"op\": \"placeholder\", \"target\": \"x\", \"arg\": []}, " OUT), STATUS_UNKNOWN_MEMBER,
          "\"arg\"; it knows op, name, target, args, kwargs, type, meta", "" },
        { NODES("{\"op\": \"placeholder\", \"target\": \"x\", \"args\": [1, 2]}, " OUT), STATUS_LINT,
          "placeholder 'x' has 2 arguments", "x" },
        { NODES("{\"op\": \"call_method\", \"target\": \"relu\"}, " OUT), STATUS_LINT,
          "'relu' has no arguments", "relu" },
        { NODES("{\"op\": \"output\"}"), STATUS_LINT, "output node 'output' has 0 arguments", "output" },
        { NODES("{\"op\": \"output\", \"args\": [1, 2]}"), STATUS_LINT,
          "output node 'output' has 2 arguments", "output" },
        { NODES("{\"op\": \"output\", \"target\": \"out\", \"args\": [1]}"), STATUS_LINT,
          "the target of an output node is \"output\"", "" },
        { NODES("{\"op\": \"call_function\", \"name\": \"f\", \"target\": \"torch.relu\", \"args\": "
                "\"%x\"}, " OUT),
          STATUS_MALFORMED, "node \"f\", args: \"args\" is a list", "f" },
        { NODES("{\"op\": \"call_function\", \"name\": \"f\", \"target\": \"torch.relu\", \"args\": "
                "null}, " OUT),
          STATUS_MALFORMED, "\"args\" is a list", "f" },
        { NODES("{\"op\": \"call_function\", \"name\": \"f\", \"target\": \"torch.relu\", \"kwargs\": "
                "[]}, " OUT),
          STATUS_MALFORMED, "\"kwargs\" is an object", "f" },
        { NODES("{\"op\": \"call_function\", \"name\": \"f\", \"target\": \"torch.relu\", \"kwargs\": "
                "{\"$tuple\": []}}, " OUT),
          STATUS_MALFORMED, "no \"$\" form", "f" },
        { NODES("{\"op\": \"call_module\", \"name\": \"f\", \"target\": \"conv.1\"}, " OUT), STATUS_LINT,
          "Node f target conv.1 references nonexistent attribute conv of", "f" },
        { NODES("{\"op\": \"placeholder\", \"target\": \"x\", \"type\": 3}, " OUT), STATUS_MALFORMED,
          "nodes[0], type", "" },
        { NODES("{\"op\": \"placeholder\", \"target\": \"x\", \"type\": \"a\\nb\"}, " OUT), STATUS_VALUE,
          "a type is one line", "" },
        // arguments
        { ARG("\"%y\""), STATUS_LINT, "node \"f\", args[1]: \"%y\" names no node of this graph", "f" },
        { ARG("\"%\""), STATUS_LINT, "names no node", "f" },
        { ARG("\"%f\""), STATUS_LINT, "\"%f\" names no node", "f" },
        { NODES("{\"op\": \"call_method\", \"name\": \"f\", \"target\": \"neg\", \"args\": [\"%x\"]}, "
                "{\"op\": \"placeholder\", \"name\": "
                "\"x\", \"target\": \"x\"}, " OUT),
          STATUS_LINT,
          "Argument 'x' was used before it has been defined! Please check that Nodes in the graph are "
          "topologically ordered",
          "f" },
        { "{\"nodes\": [{\"op\": \"call_method\", \"target\": \"neg\", \"args\": [\"%m\"]}, " OUT
          "], \"modules\": {\"m\": {\"type\": \"nn.ReLU\"}}}",
          STATUS_LINT, "\"%m\" names no node of this graph", "" },
        { ARG("{\"k\": [0, \"%y\"]}"), STATUS_LINT, "args[1].k[1]: \"%y\"", "f" },
        { ARG("\"$y\""), STATUS_MALFORMED, "\"$y\": a text that begins with $ doubles it", "f" },
        { ARG("{\"$dict\": {}}"), STATUS_UNKNOWN_MEMBER, "\"$dict\" is no form of FX JSON; it knows $tuple",
          "f" },
        { ARG("{\"$tuple\": [], \"a\": 1}"), STATUS_MALFORMED, "no other members, here \"a\"", "f" },
        { ARG("{\"a\": 1, \"$tuple\": []}"), STATUS_MALFORMED, "key \"$tuple\"", "f" },
        { ARG("{\"%k\": 1}"), STATUS_MALFORMED, "key \"%k\": a key that begins with % doubles it", "f" },
        { ARG("{\"$tuple\": 3}"), STATUS_MALFORMED, "args[1].$tuple", "f" },
        { ARG("{\"$slice\": [1, 2]}"), STATUS_MALFORMED, "has three members", "f" },
        { ARG("{\"$dtype\": \"float33\"}"), STATUS_VALUE, "unknown dtype \"float33\"", "f" },
        { ARG("{\"$dtype\": 3}"), STATUS_MALFORMED, "$dtype: a text is expected", "f" },
        { ARG("{\"$device\": \"CPU 0\"}"), STATUS_VALUE, "\"CPU 0\" is no device", "f" },
        { ARG("{\"$device\": \"cpu:\"}"), STATUS_VALUE, "\"cpu:\" is no device", "f" },
        { ARG("{\"$layout\": \"dense\"}"), STATUS_VALUE, "unknown layout \"dense\"", "f" },
        { ARG("{\"$memory_format\": \"nhwc\"}"), STATUS_VALUE, "unknown memory format \"nhwc\"", "f" },
        { ARG("{\"$ellipsis\": false}"), STATUS_MALFORMED, "{\"$ellipsis\": true}", "f" },
        { ARG("{\"$float\": \"1.5\"}"), STATUS_VALUE, "none of inf, -inf, nan", "f" },
        { ARG("{\"$complex\": [1]}"), STATUS_MALFORMED, "holds two numbers", "f" },
        { ARG("{\"$complex\": [1, \"a\"]}"), STATUS_MALFORMED, "holds two numbers", "f" },
        { ARG("9223372036854775808"), STATUS_VALUE, "9223372036854775808 does not fit int64", "f" },
        { ARG("1e999"), STATUS_VALUE, "1e999 does not fit float64", "f" },
        { ARG("NaN"), STATUS_MALFORMED, "line 1", "f" },
        { ARG("01"), STATUS_MALFORMED, "line 1", "f" },
        { ARG("{\"a\": 1, \"a\": 2}"), STATUS_MALFORMED, "a", "f" },
        // meta
        { META("[]"), STATUS_MALFORMED, "node \"x\", meta", "x" },
        { META("{\"dtype\": \"f99\"}"), STATUS_VALUE, "meta.dtype: unknown dtype \"f99\"", "x" },
        { META("{\"shape\": [-1]}"), STATUS_VALUE, "meta.shape: a size is negative", "x" },
        { META("{\"shape\": [1.5]}"), STATUS_MALFORMED, "meta.shape", "x" },
        { META("{\"shape\": [\"\"]}"), STATUS_VALUE, "the name of a dimension", "x" },
        { META("{\"shape\": [\"2*\"]}"), STATUS_MALFORMED, "expression \"2*\"", "x" },
        { META("{\"shape\": [1, 1, 1, 1, 1, 1, 1, 1, 1]}"), STATUS_VALUE, "more than 8 dimensions", "x" },
        { META("{\"shape\": 3}"), STATUS_MALFORMED, "meta.shape", "x" },
        // modules
        { "{\"nodes\": [" OUT "], \"modules\": []}", STATUS_MALFORMED, "\"modules\" is an object", "" },
        { MODULES("\"m\": 3"), STATUS_MALFORMED, "module \"m\"", "" },
        { MODULES("\"m\": {}"), STATUS_MALFORMED, "module \"m\": a module needs \"type\"", "" },
        { MODULES("\"\": {\"type\": \"nn.ReLU\"}"), STATUS_MALFORMED, "path is empty", "" },
        { MODULES("\"a..b\": {\"type\": \"nn.ReLU\"}"), STATUS_LINT, "\"a..b\" has an empty part", "" },
        { MODULES("\"m\": {\"type\": 3}"), STATUS_MALFORMED, "module \"m\", type: \"type\" is a text", "" },
        { MODULES("\"m\": {\"type\": \"nn.ReLU\", \"configs\": {}}"), STATUS_UNKNOWN_MEMBER,
          "\"configs\"; it knows type, config, training, graph", "" },
        { MODULES("\"m\": {\"type\": \"nn.ReLU\", \"config\": []}"), STATUS_MALFORMED,
          "\"config\" is an object", "" },
        { MODULES("\"m\": {\"type\": \"nn.ReLU\", \"config\": {\"p\": \"%x\"}}"), STATUS_MALFORMED,
          "module \"m\", config.p: \"%x\" names a node", "" },
        { MODULES("\"m\": {\"type\": \"nn.ReLU\", \"training\": 1}"), STATUS_MALFORMED,
          "module \"m\", training", "" },
        { MODULES("\"m\": {\"type\": \"torch.fx.GraphModule\"}"), STATUS_MALFORMED,
          "a torch.fx.GraphModule needs \"graph\"", "" },
        { MODULES("\"m\": {\"type\": \"nn.ReLU\", \"graph\": {\"nodes\": [" OUT "]}}"), STATUS_MALFORMED,
          "is a torch.fx.GraphModule, not a torch.nn.ReLU", "" },
        { MODULES("\"m\": {\"graph\": {\"nodes\": [" X "]}}"), STATUS_LINT,
          "module \"m\", graph: the graph has no output node", "" },
        { MODULES("\"m\": {\"graph\": {\"nodes\": [{\"op\": \"output\", \"name\": \"o\", \"args\": "
                  "[\"%q\"]}]}}"),
          STATUS_LINT, "module \"m\", graph, node \"o\", args[0]: \"%q\"", "o" },
        { MODULES("\"m\": {\"graph\": []}"), STATUS_MALFORMED, "module \"m\", graph: a graph is an object",
          "" },
        // state
        { "{\"nodes\": [" OUT "], \"state\": []}", STATUS_MALFORMED, "\"state\" is an object", "" },
        { STATE("\"\": [1]"), STATUS_LINT, "empty path", "" },
        { STATE("\"w\": [1], \"w.x\": [2]"), STATUS_LINT, "\"w\" is both a module and a tensor", "" },
        { STATE("\"w\": \"x\""), STATUS_VALUE, "state \"w\": expected a number", "" },
        { STATE("\"w\": null"), STATUS_VALUE, "state \"w\"", "" },
        { STATE("\"w\": [[1, 2], [3]]"), STATUS_VALUE,
          "state \"w\": expected sequence of length 2 at dim 1 (got 1)", "" },
        { STATE("\"w\": {\"dtype\": \"float32\", \"shape\": [3], \"data\": [1, 2]}"), STATUS_SHAPE,
          "state \"w\": \"data\" has 2 values, but \"shape\" [3] needs 3", "" },
        { STATE("\"w\": {\"dtype\": \"float32\", \"shape\": [-1], \"data\": [1]}"), STATUS_VALUE,
          "negative size -1", "" },
        { STATE("\"w\": {\"dtype\": \"float32\", \"shape\": [4294967296, 4294967296], \"data\": []}"),
          STATUS_TOO_LARGE, "elements", "" },
        { STATE("\"w\": {\"dtype\": \"float32\", \"shape\": [1], \"b64\": \"AAA\"}"), STATUS_MALFORMED,
          "base64", "" },
        { STATE("\"w\": {\"dtype\": \"float32\", \"shape\": [2], \"b64\": \"AAAAAA==\"}"), STATUS_SHAPE,
          "\"b64\" holds 4 bytes, but shape [2] of float32 needs 8", "" },
        { STATE("\"w\": {\"dtype\": \"float31\", \"shape\": [2]}"), STATUS_VALUE, "unknown dtype \"float31\"",
          "" },
        { STATE("\"w\": {\"shape\": [1], \"values\": [1]}"), STATUS_UNKNOWN_MEMBER,
          "\"values\"; it knows dtype, shape, data, b64", "" },
        { STATE("\"w\": {\"same_as\": 3}"), STATUS_MALFORMED, "\"same_as\" is the path", "" },
        { STATE("\"w\": {\"same_as\": \"w\"}"), STATUS_MALFORMED, "names the tensor itself", "" },
        { STATE("\"a\": {\"same_as\": \"b\"}, \"b\": {\"same_as\": \"a\"}"), STATUS_MALFORMED,
          "which is tied itself", "" },
        { STATE("\"w\": {\"same_as\": \"v\", \"dtype\": \"float32\"}"), STATUS_UNKNOWN_MEMBER,
          "has no numbers, dtype, shape or storage of its own", "" },
        { STATE("\"w\": {\"dtype\": \"int8\", \"shape\": [1], \"data\": [300]}"), STATUS_VALUE,
          "300 at [0] is out of range for int8", "" },
        { STATE("\"w\": {\"dtype\": \"int64\", \"shape\": [1], \"data\": [1.5]}"), STATUS_VALUE,
          "expected an integer at [0], got 1.5", "" },
};

static void check(const Bad *row)
{
        Graph *graph = NULL;
        // On the heap and without a NUL, so that reading past the end shows.
        size_t n = strlen(row->text);
        char *text = malloc(n == 0 ? 1 : n);
        memcpy(text, row->text, n);
        Status status = fx_json_read(text, n, NULL, &graph);
        free(text);
        cr_expect_null(graph);
        cr_expect_eq(status, row->status, "%s: got %s: %s", row->text, status_code(status),
                     failure_current()->message);
        cr_expect(strstr(failure_current()->message, row->words) != NULL, "%s: \"%s\" does not hold \"%s\"",
                  row->text, failure_current()->message, row->words);
        cr_expect_str_eq(failure_current()->node, row->node, "%s: node is \"%s\"", row->text,
                         failure_current()->node);
}

Test(fx_json_bad, documents_are_refused_with_the_culprit_named)
{
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                check(&bad[i]);
}

Test(fx_json_bad, there_are_at_least_sixty_of_them)
{
        cr_assert_geq(sizeof(bad) / sizeof(bad[0]), 60);
}
