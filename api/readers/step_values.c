// SPDX-License-Identifier: Apache-2.0
// step_values.c: the members of one step, read by their types.
#include <string.h>
#include "api/formats/tensor_json.h"
#include "api/readers/steps_parts.h"
#include "core/base/limits.h"

void step_deinit(Step *step)
{
        for (int i = 0; i < MEMBER_COUNT; i++) {
                StepValue *value = &step->values[i];
                free(value->nodes);
                free(value->texts);
                free(value->shapes);
                value_unref(value->value);
                fx_node_deinit(&value->new);
                graph_unref(value->graph);
                tensor_unref(value->tensor);
        }
        arena_deinit(&step->scratch);
}

static Status find_node(const Step *step, const char *name, Node **out_node)
{
        name += name[0] == '%';
        *out_node = edit_node(step->edit, name);
        if (*out_node == NULL)
                return failure_at_node(fail(STATUS_LINT, "the graph has no node \"%.100s\"", name), name);
        return STATUS_OK;
}

static Status read_word(FxReader *reader, const char *what, const char **out_text)
{
        if (json_peek(reader->json) != JSON_STRING)
                return fail(STATUS_MALFORMED, "%s is expected here", what);
        return json_read_string(reader->json, out_text, NULL);
}

static Status read_node(Step *step, FxReader *reader, Node **out_node)
{
        const char *name;
        TRY(read_word(reader, "the name of a node", &name));
        return find_node(step, name, out_node);
}

// ---- lists ----

static Status read_texts(FxReader *reader, StepValue *value)
{
        uint32_t capacity = 0;
        if (json_peek(reader->json) != JSON_ARRAY)
                return fail(STATUS_MALFORMED, "a list of texts is expected here");
        TRY(json_enter_array(reader->json));
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                TRY(array_reserve(&value->texts, &capacity, value->n + 1, sizeof(*value->texts)));
                TRY(read_word(reader, "a text", &value->texts[value->n]));
                value->n++;
        }
}

static Status read_nodes(Step *step, FxReader *reader, StepValue *value)
{
        TRY(read_texts(reader, value));
        value->nodes = new_array(value->n, sizeof(Node *));
        if (value->nodes == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < value->n; i++)
                TRY(find_node(step, value->texts[i], &value->nodes[i]));
        return STATUS_OK;
}

// ---- graphs, modules, tensors ----

static Status read_graph(const StepValue *from, Graph **out_graph)
{
        return fx_json_read(from->raw, from->n_raw, NULL, out_graph);
}

// In a document of its own, as module "module".
static Status read_module(StepValue *value)
{
        _cleanup_(text_deinit) Text text = { 0 };
        text_add(&text, "{\"nodes\": [{\"op\": \"output\", \"name\": \"output\", \"args\": [null]}], "
                        "\"modules\": {\"module\": ");
        text_add_n(&text, value->raw, value->n_raw);
        text_add(&text, "}}");
        TRY(text_status(&text));
        return fx_json_read(text.data, text.n, NULL, &value->graph);
}

// ---- shapes ----

static Status read_size(FxReader *reader, EditShape *shape)
{
        int64_t size = -1;
        if (json_peek(reader->json) == JSON_NUMBER)
                TRY(json_read_int(reader->json, &size));
        if (size < 0 || size > limits.max_numel)
                return fail(STATUS_VALUE, "a size is a whole number from 0 to %lld",
                            (long long)limits.max_numel);
        if (shape->rank == MAX_RANK)
                return fail(STATUS_VALUE, "a shape has more than %d dimensions", MAX_RANK);
        shape->size[shape->rank++] = size;
        return STATUS_OK;
}

static Status read_sizes(FxReader *reader, EditShape *shape)
{
        if (json_peek(reader->json) != JSON_ARRAY)
                return fail(STATUS_MALFORMED, "a list of sizes is expected here, as in [1, 3, 224, 224]");
        TRY(json_enter_array(reader->json));
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_size(reader, shape));
        }
}

static Status read_described(FxReader *reader, EditShape *shape)
{
        bool has_shape = false;
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key, *name;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                if (strcmp(key, "shape") == 0) {
                        has_shape = true;
                        TRY(read_sizes(reader, shape));
                } else if (strcmp(key, "dtype") == 0) {
                        TRY(read_word(reader, "a dtype", &name));
                        shape->dtype = dtype_from_name(name);
                        if (shape->dtype == DTYPE_NONE)
                                return fail(STATUS_VALUE, "unknown dtype \"%.60s\"", name);
                } else {
                        return fx_unknown_member("an input's shape", key, "dtype, shape");
                }
        }
        return has_shape ? STATUS_OK : fail(STATUS_MALFORMED, "an input's \"shape\" is missing");
}

static Status read_shapes(const Step *step, FxReader *reader, StepValue *value)
{
        uint32_t capacity = 0;
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "shapes are an object: {\"x\": [1, 3, 224, 224]}");
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                Node *node;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        return STATUS_OK;
                TRY(find_node(step, key, &node));
                if (node->op != OP_PLACEHOLDER)
                        return failure_at_node(fail(STATUS_VALUE, "Node %s is no input", node->name),
                                               node->name);
                TRY(array_reserve(&value->shapes, &capacity, value->n + 1, sizeof(EditShape)));
                EditShape *shape = &value->shapes[value->n++];
                *shape = (EditShape){ .placeholder = node, .dtype = DTYPE_NONE };
                size_t outer = fx_enter(reader, ".%.60s", key);
                TRY(json_peek(reader->json) == JSON_OBJECT ? read_described(reader, shape)
                                                           : read_sizes(reader, shape));
                fx_leave(reader, outer);
        }
}

// ---- values ----

// A text without % that names a node is that node.
static Status read_operand(const Step *step, FxReader *reader, Value *out_value)
{
        const Graph *graph = edit_work(step->edit);
        TRY(fx_read_value(reader, graph, 0, out_value));
        if (out_value->kind != VALUE_STR)
                return STATUS_OK;
        Node *node;
        TRY(find_node(step, out_value->str->text, &node));
        value_unref(*out_value);
        *out_value = (Value){ .kind = VALUE_NODE, .node = node };
        return STATUS_OK;
}

static Status read_args(const Step *step, FxReader *reader, Value *out_value)
{
        if (json_peek(reader->json) != JSON_ARRAY)
                return fail(STATUS_MALFORMED, "a list of arguments is expected here");
        TRY(fx_read_value(reader, edit_work(step->edit), 0, out_value));
        out_value->kind = VALUE_TUPLE;
        return STATUS_OK;
}

static Status read_kwargs(const Step *step, FxReader *reader, Value *out_value)
{
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "an object of arguments by name is expected here");
        TRY(fx_read_value(reader, edit_work(step->edit), 0, out_value));
        return out_value->kind == VALUE_DICT ? STATUS_OK
                                             : fail(STATUS_MALFORMED, "arguments by name are no \"$\" form");
}

static Status read_index(FxReader *reader, int64_t *out_index)
{
        *out_index = -1;
        if (json_peek(reader->json) == JSON_NUMBER)
                TRY(json_read_int(reader->json, out_index));
        return *out_index >= 0 && *out_index <= UINT32_MAX
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "a whole number from 0 is expected here");
}

static Status read_flag(FxReader *reader, bool only_true, bool *out_flag)
{
        JsonType type = json_peek(reader->json);
        if (type != JSON_TRUE && (only_true || type != JSON_FALSE))
                return fail(STATUS_MALFORMED,
                            only_true ? "true is expected here" : "true or false is expected here");
        return json_read_bool(reader->json, out_flag);
}

// ---- one member ----

static Status read_plain(Step *step, FxReader *reader, StepType type, StepValue *value)
{
        switch (type) {
        case STEP_TYPE_NODE:
                return read_node(step, reader, &value->node);
        case STEP_TYPE_NODES:
                return read_nodes(step, reader, value);
        case STEP_TYPE_TEXT:
                return read_word(reader, "a text", &value->text);
        case STEP_TYPE_TEXTS:
                return read_texts(reader, value);
        case STEP_TYPE_OPCODE:
                return fx_read_opcode(reader, &value->op);
        case STEP_TYPE_INDEX:
                return read_index(reader, &value->index);
        case STEP_TYPE_SHAPES:
                return read_shapes(step, reader, value);
        case STEP_TYPE_TENSOR:
                return tensor_json_read(reader->json, DTYPE_NONE, NULL, &value->tensor, NULL);
        default:
                return read_flag(reader, type == STEP_TYPE_YES, &value->flag);
        }
}

static Status read_value(Step *step, FxReader *reader, StepType type, StepValue *value)
{
        switch (type) {
        case STEP_TYPE_VALUE:
                return read_operand(step, reader, &value->value);
        case STEP_TYPE_ARGS:
                return read_args(step, reader, &value->value);
        case STEP_TYPE_KWARGS:
                return read_kwargs(step, reader, &value->value);
        case STEP_TYPE_NEW:
                return fx_read_node(reader, edit_work(step->edit), "", &value->new);
        default:
                return read_plain(step, reader, type, value);
        }
}

static Status read_member(Step *step, const StepMemberRow *row, StepValue *value)
{
        if (row->type == STEP_TYPE_GRAPH)
                return read_graph(value, &value->graph);
        if (row->type == STEP_TYPE_MODULE)
                return read_module(value);
        FxReader reader = { .text = value->raw, .n = value->n_raw };
        arena_init(&reader.scratch, 0);
        Status status = json_open(value->raw, value->n_raw, (int)limits.max_json_depth_model,
                                  limits.max_json_values, &step->scratch, &reader.json);
        if (status == STATUS_OK)
                status = read_value(step, &reader, row->type, value);
        if (status != STATUS_OK)
                fx_put_in_front(reader.place);
        json_close(reader.json);
        arena_deinit(&reader.scratch);
        return status;
}

Status step_read_values(Step *step)
{
        for (int i = 1; i < MEMBER_COUNT; i++) {
                if (step->values[i].raw == NULL)
                        continue;
                Status status = read_member(step, &step_members[i], &step->values[i]);
                if (status != STATUS_OK)
                        fx_put_in_front(step_members[i].name);
                TRY(failure_at_argument(status, step_members[i].name));
        }
        return STATUS_OK;
}
