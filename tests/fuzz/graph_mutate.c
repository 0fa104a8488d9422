// SPDX-License-Identifier: Apache-2.0
// The mutator of graph.c: documents of FX JSON, changed where it matters. Calls are added whose
// arguments fit the schema of an operator, arguments are replaced by others of their type, inputs
// change dtype and shape, nodes go. Bytes are changed now and then, too.
#include <jansson.h>
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t capacity) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t capacity, unsigned seed);

static uint64_t state;
static uint32_t below(uint32_t n)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return n == 0 ? 0 : (uint32_t)((state >> 11) % n);
}

#define PICK(array) ((array)[below(ARRAY_LENGTH(array))])

// ---- values ----
static const char *const dtypes[] = { "float32",  "float32", "float32",  "float64", "float16",
                                      "bfloat16", "int64",   "int32",    "int16",   "int8",
                                      "uint8",    "bool",    "complex64" };

static json_t *tagged(const char *tag, json_t *value)
{
        json_t *object = json_object();
        json_object_set_new(object, tag, value);
        return object;
}

static json_t *an_int(void)
{
        static const int64_t strange[] = { INT64_MIN, INT64_MAX, 2147483648, -2147483649, 4294967296,
                                           100,       -100,      64,         1000000,     65536 };
        return json_integer(below(16) == 0 ? PICK(strange) : (int64_t)below(6) - 1 - (below(8) == 0 ? 2 : 0));
}

static json_t *a_float(void)
{
        static const double plain[] = { 0.0,  1.0,  0.5,   -1.0,  2.0,     0.1,          3.25, -0.0,
                                        1e-5, 1e30, -1e30, 1e300, 65504.0, 2147483648.0, 1e-45 };
        static const char *const strange[] = { "inf", "-inf", "nan" };
        return below(12) == 0 ? tagged("$float", json_string(PICK(strange))) : json_real(PICK(plain));
}

static json_t *a_text(void)
{
        static const char *const texts[] = { "none",    "mean",      "sum",       "tanh",    "constant",
                                             "reflect", "replicate", "bilinear",  "nearest", "bicubic",
                                             "floor",   "trunc",     "same",      "valid",   "ij",
                                             "xy",      "ij->ji",    "ij,jk->ik", "ij,ij->", "...->...",
                                             "fro",     "ii->i",     "left",      "right",   "area",
                                             "linear",  "shape",     "T",         "dtype",   "" };
        return json_string(PICK(texts));
}

static json_t *a_dtype(void)
{
        return tagged("$dtype", json_string(PICK(dtypes)));
}

static json_t *a_shape(void)
{
        static const int sizes[] = { 1, 2, 3, 3, 2, 4, 5, 0, 7, 8, 17, 64 };
        static const int usual[][4] = {
                { 2, 3 }, { 3 }, { 2, 3, 4 }, { 1, 3, 5, 5 }, { 4, 4 }, { 2, 2, 8, 8 }
        };
        json_t *shape = json_array();
        if (below(3) != 0) {
                const int *row = PICK(usual);
                for (int d = 0; d < 4 && row[d] > 0; d++)
                        json_array_append_new(shape, json_integer(row[d]));
                return shape;
        }
        for (uint32_t rank = below(8) == 0 ? below(7) : below(5); rank > 0; rank--)
                json_array_append_new(shape, json_integer(PICK(sizes)));
        return shape;
}

// The name of some node before `end`, as a reference; nodes near the end more often.
static json_t *a_node(json_t *nodes, size_t end)
{
        char text[128];
        if (end == 0)
                return json_null();
        size_t at = below(3) == 0 ? below((uint32_t)end) : end - 1 - below((uint32_t)MIN(end, (size_t)3));
        const char *name = json_string_value(json_object_get(json_array_get(nodes, at), "name"));
        snprintf(text, sizeof(text), "%%%.100s", name == NULL ? "x" : name);
        return json_string(text);
}

static json_t *a_number(json_t *nodes, size_t end)
{
        switch (below(8)) {
        case 0:
                return json_boolean(below(2));
        case 1:
        case 2:
        case 3:
                return an_int();
        case 4:
                return below(4) == 0 ? a_node(nodes, end) : a_float();
        default:
                return a_float();
        }
}

static json_t *an_item(const SchemaArg *arg, json_t *nodes, size_t end);

// What a Python-side row takes: anything, also slices and lists.
static json_t *anything(json_t *nodes, size_t end)
{
        static const SchemaArg ints = { .type = ARG_INT, .is_list = true },
                               tensors = { .type = ARG_TENSOR, .is_list = true };
        json_t *parts;
        switch (below(12)) {
        case 0:
                return json_null();
        case 1:
                return an_item(&ints, nodes, end);
        case 2:
                return an_item(&tensors, nodes, end);
        case 3:
                return a_dtype();
        case 4:
                parts = json_array();
                for (int i = 0; i < 3; i++)
                        json_array_append_new(parts, below(2) ? an_int() : json_null());
                return tagged("$slice", parts);
        case 5:
                return a_text();
        case 6:
        case 7:
                return a_number(nodes, end);
        case 8:
                return tagged("$tuple", an_item(&ints, nodes, end));
        case 9:
                return tagged("$ellipsis", json_true());
        default:
                return a_node(nodes, end);
        }
}

static json_t *one(ArgType type, json_t *nodes, size_t end)
{
        static const char *const formats[] = { "torch.contiguous_format", "torch.channels_last",
                                               "torch.preserve_format" };
        switch (type) {
        case ARG_TENSOR:
                return below(24) == 0 ? a_number(nodes, end) : a_node(nodes, end);
        case ARG_SCALAR:
                return a_number(nodes, end);
        case ARG_INT:
                return below(24) == 0 ? a_node(nodes, end) : an_int();
        case ARG_FLOAT:
                return below(4) == 0 ? an_int() : a_float();
        case ARG_BOOL:
                return json_boolean(below(2));
        case ARG_STR:
                return a_text();
        case ARG_DTYPE:
                return a_dtype();
        case ARG_MEMORY_FORMAT:
                return tagged("$memory_format", json_string(PICK(formats)));
        case ARG_DEVICE:
                return tagged("$device", json_string("cpu"));
        case ARG_ANY:
                return anything(nodes, end);
        default:
                return json_null();
        }
}

static json_t *an_item(const SchemaArg *arg, json_t *nodes, size_t end)
{
        if (arg->optional && below(3) == 0)
                return json_null();
        if (!arg->is_list)
                return one(arg->type, nodes, end);
        json_t *list = json_array();
        for (uint32_t n = arg->list_size > 0 && below(4) != 0 ? (uint32_t)arg->list_size : below(4); n > 0;
             n--)
                json_array_append_new(list, arg->item_optional && below(3) == 0 ? json_null()
                                                                                : one(arg->type, nodes, end));
        return list;
}

// ---- calls ----
static const Schema *some_schema(const char **out_op, const char **out_target)
{
        static uint32_t n_functions, n_methods;
        while (target_name_at(TARGET_FUNCTIONS, n_functions) != NULL)
                n_functions++;
        while (target_name_at(TARGET_METHODS, n_methods) != NULL)
                n_methods++;
        uint32_t kind = below(10);
        *out_op = "call_function";
        if (kind < 7) {
                const Overload *overload = op_at(below(n_ops()));
                *out_target = overload->target;
                return &overload->schema;
        }
        const char *name = kind < 9 ? target_name_at(TARGET_FUNCTIONS, below(n_functions))
                                    : target_name_at(TARGET_METHODS, below(n_methods));
        const Target *target = kind < 9 ? target_function(name) : target_method(name);
        *out_target = name;
        if (kind == 9)
                *out_op = "call_method";
        return target == NULL || target->n_overloads == 0
                       ? NULL
                       : &target->overloads[below(target->n_overloads)]->schema;
}

static void fill_call(json_t *node, const Schema *schema, json_t *nodes, size_t end)
{
        json_t *args = json_array(), *kwargs = json_object();
        bool by_name = false;
        for (uint32_t i = 0; i < schema->n_args; i++) {
                const SchemaArg *arg = &schema->args[i];
                if (arg->has_default && below(2) == 0) {
                        by_name = true;
                        continue;
                }
                by_name |= arg->kwarg_only;
                if (by_name && arg->varargs)
                        continue;
                json_t *value = an_item(arg, nodes, end);
                if (by_name)
                        json_object_set_new(kwargs, arg->name, value);
                else
                        json_array_append_new(args, value);
        }
        json_object_set_new(node, "args", args);
        json_object_set_new(node, "kwargs", kwargs);
}

// Every result that there is: what nobody reads is computed all the same, or is not.
static void read_all(json_t *nodes)
{
        size_t end = json_array_size(nodes) - 1, k;
        json_t *output = json_array_get(nodes, end), *list = json_array(), *args = json_array(), *node;
        json_array_foreach(nodes, k, node)
        {
                const char *op = json_string_value(json_object_get(node, "op"));
                if (k == end || op == NULL || (k + 1 < end && below(4) == 0))
                        continue;
                char text[128];
                snprintf(text, sizeof(text), "%%%.100s",
                         json_string_value(json_object_get(node, "name")) == NULL
                                 ? "x"
                                 : json_string_value(json_object_get(node, "name")));
                json_array_append_new(list, json_string(text));
        }
        json_array_append_new(args, list);
        json_object_set_new(output, "args", args);
}

static void add_call(json_t *nodes)
{
        const char *op, *target;
        const Schema *schema = some_schema(&op, &target);
        size_t end = json_array_size(nodes) - 1;
        char name[32];
        if (schema == NULL || end > 24)
                return;
        json_t *node = json_object();
        snprintf(name, sizeof(name), "n%u", below(1000000));
        json_object_set_new(node, "op", json_string(op));
        json_object_set_new(node, "name", json_string(name));
        json_object_set_new(node, "target", json_string(target));
        fill_call(node, schema, nodes, end);
        json_array_insert_new(nodes, end, node);
        if (below(4) != 0)
                read_all(nodes);
}

static bool is_op(const json_t *node, const char *op)
{
        const char *text = json_string_value(json_object_get(node, "op"));
        return text != NULL && strcmp(text, op) == 0;
}

// Some argument becomes another of its kind.
static void change_argument(json_t *nodes, size_t at)
{
        json_t *node = json_array_get(nodes, at), *args = json_object_get(node, "args"),
               *kwargs = json_object_get(node, "kwargs");
        size_t n = json_array_size(args);
        if (n > 0 && below(4) != 0) {
                size_t k = below((uint32_t)n);
                const json_t *old = json_array_get(args, k);
                json_t *value = json_is_integer(old)   ? an_int()
                                : json_is_real(old)    ? a_float()
                                : json_is_boolean(old) ? json_boolean(json_is_false(old))
                                : json_is_string(old)  ? a_node(nodes, at)
                                                       : anything(nodes, at);
                json_array_set_new(args, k, value);
        } else if (json_object_size(kwargs) > 0) {
                void *item = json_object_iter(kwargs);
                for (uint32_t k = below((uint32_t)json_object_size(kwargs)); k > 0; k--)
                        item = json_object_iter_next(kwargs, item);
                if (below(3) == 0)
                        json_object_del(kwargs, json_object_iter_key(item));
                else
                        json_object_iter_set_new(kwargs, item, anything(nodes, at));
        }
}

static json_t *an_input(const char *name)
{
        json_t *node = json_object(), *meta = json_object();
        json_object_set_new(node, "op", json_string("placeholder"));
        json_object_set_new(node, "name", json_string(name));
        json_object_set_new(node, "target", json_string(name));
        json_object_set_new(meta, "dtype", json_string(PICK(dtypes)));
        json_object_set_new(meta, "shape", a_shape());
        json_object_set_new(node, "meta", meta);
        return node;
}

static json_t *fresh_document(void)
{
        json_t *document = json_object(), *nodes = json_array(), *output = json_object();
        char name[8];
        for (uint32_t i = 0, n = 1 + below(3); i < n; i++) {
                snprintf(name, sizeof(name), "x%u", i);
                json_array_append_new(nodes, an_input(name));
        }
        json_object_set_new(output, "op", json_string("output"));
        json_object_set_new(output, "name", json_string("output"));
        json_object_set_new(output, "target", json_string("output"));
        json_array_append_new(nodes, output);
        json_object_set_new(document, "format", json_string("fx/1"));
        json_object_set_new(document, "nodes", nodes);
        read_all(nodes);
        return document;
}

static void change(json_t *document)
{
        json_t *nodes = json_object_get(document, "nodes");
        size_t n = json_array_size(nodes), at = n < 2 ? 0 : below((uint32_t)n - 1);
        if (n < 2 || !is_op(json_array_get(nodes, n - 1), "output"))
                return;
        json_t *node = json_array_get(nodes, at);
        switch (below(10)) {
        case 0:
                if (is_op(node, "placeholder"))
                        json_object_set_new(json_object_get(node, "meta"), "shape", a_shape());
                break;
        case 1:
                if (is_op(node, "placeholder"))
                        json_object_set_new(json_object_get(node, "meta"), "dtype",
                                            json_string(PICK(dtypes)));
                break;
        case 2:
        case 3:
                change_argument(nodes, at);
                break;
        case 4:
                json_array_remove(nodes, at);
                read_all(nodes);
                break;
        case 5:
                read_all(nodes);
                break;
        default:
                add_call(nodes);
        }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t capacity, unsigned seed)
{
        static bool ready;
        if (!ready)
                require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        ready = true;
        state = 0x9e3779b97f4a7c15u ^ ((uint64_t)seed << 17 | n | 1);
        for (int i = 0; i < 4; i++)
                (void)below(2);
        if (LLVMFuzzerMutate != NULL && below(16) == 0)
                return LLVMFuzzerMutate(data, n, capacity);
        json_t *document = below(12) == 0 ? NULL : json_loadb((const char *)data, n, 0, NULL);
        if (!json_is_array(json_object_get(document, "nodes"))) {
                json_decref(document);
                document = fresh_document();
        }
        for (uint32_t times = 1 + below(4); times > 0; times--)
                change(document);
        size_t size = json_dumpb(document, (char *)data, capacity, JSON_COMPACT);
        json_decref(document);
        return size <= capacity ? size : n;
}
