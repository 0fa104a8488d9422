// SPDX-License-Identifier: Apache-2.0
// fx_json_state.c: modules, tensors inside the document, tensors of a separate file. A tensor of
// the file belongs to the innermost child graph whose module path is a prefix of its path.
#include <inttypes.h>
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "api/formats/tensor_json.h"
#include "core/base/limits.h"

// ---- modules ----

static Status read_config(FxReader *reader, Graph *graph, Module *module)
{
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "\"config\" is an object: {\"in_features\": 10, ...}");
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        return STATUS_OK;
                size_t outer = fx_enter(reader, ".%.60s", key);
                char *copy = arena_text(&graph->arena, key, strlen(key));
                if (copy == NULL)
                        return fail_memory();
                Value value;
                TRY(fx_read_value(reader, NULL, 0, &value));
                TRY(module_add_config(module, copy, value));
                fx_leave(reader, outer);
        }
}

static Status read_child(FxReader *reader, Module *module)
{
        if (reader->depth + 1 >= limits.max_child_graphs)
                return fail(STATUS_TOO_LARGE,
                            "graphs are nested more than %d deep (max_child_graphs in GET /v1)",
                            (int)limits.max_child_graphs);
        reader->depth++;
        size_t outer = fx_enter(reader, ", ");
        TRY(fx_read_graph(reader, &module->graph));
        fx_leave(reader, outer);
        reader->depth--;
        return STATUS_OK;
}

static Status read_module_member(FxReader *reader, Graph *graph, const char *key, Module *module,
                                 const char **type)
{
        if (strcmp(key, "type") == 0) {
                if (json_peek(reader->json) != JSON_STRING)
                        return fail(STATUS_MALFORMED, "\"type\" is a text, for example \"torch.nn.Linear\"");
                return json_read_string(reader->json, type, NULL);
        }
        if (strcmp(key, "config") == 0)
                return read_config(reader, graph, module);
        if (strcmp(key, "training") == 0)
                return json_read_bool(reader->json, &module->training);
        if (strcmp(key, "graph") == 0)
                return read_child(reader, module);
        return fx_unknown_member("a module", key, "type, config, training, graph");
}

static Status check_module(const Module *module)
{
        bool is_graph = module->type != NULL && strcmp(module->type, "torch.fx.GraphModule") == 0;
        if (module->type == NULL)
                return fail(STATUS_MALFORMED, "a module needs \"type\"");
        if (is_graph && module->graph == NULL)
                return fail(STATUS_MALFORMED, "a torch.fx.GraphModule needs \"graph\"");
        if (!is_graph && module->graph != NULL)
                return fail(STATUS_MALFORMED,
                            "a module with \"graph\" is a torch.fx.GraphModule, not a %.100s", module->type);
        return STATUS_OK;
}

static Status read_module(FxReader *reader, Graph *graph, const char *path)
{
        const char *type = NULL;
        Module *module;
        if (path[0] == '\0')
                return fail(STATUS_MALFORMED,
                            "a module's path is empty; the graph itself is described by \"nodes\"");
        TRY(graph_add_module(graph, path, NULL, &module));
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                size_t outer = fx_enter(reader, ", %.60s", key);
                TRY(failure_at_argument(read_module_member(reader, graph, key, module, &type), key));
                fx_leave(reader, outer);
        }
        if (type == NULL && module->graph != NULL)
                type = "torch.fx.GraphModule";
        if (type != NULL)
                TRY(graph_add_module(graph, path, type, &module));
        return check_module(module);
}

Status fx_read_modules(FxReader *reader, Graph *graph)
{
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "\"modules\" is an object: {\"linear\": {\"type\": "
                                              "\"torch.nn.Linear\", \"config\": {...}}}");
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *path;
                TRY(json_next_key(reader->json, &path, &more));
                if (!more)
                        return STATUS_OK;
                size_t outer = fx_enter(reader, "module \"%.100s\"", path);
                TRY(read_module(reader, graph, path));
                TRY(fx_check_size(reader));
                fx_leave(reader, outer);
        }
}

// ---- tensors in the document ----

// Guesses by name whether it is a parameter; only the listing of modules depends on it.
static bool looks_like_parameter(const char *path, const Tensor *tensor)
{
        const char *dot = strrchr(path, '.'), *name = dot == NULL ? path : dot + 1;
        return dtype_is_float(tensor->meta.dtype) && strncmp(name, "running_", 8) != 0 &&
               strncmp(name, "_tensor_constant", 16) != 0;
}

static Status add_state(Graph *graph, const char *path, Tensor *take_tensor)
{
        bool parameter = looks_like_parameter(path, take_tensor);
        State *state;
        TRY(graph_add_state(graph, path, take_tensor, &state));
        state->is_parameter = parameter;
        return STATUS_OK;
}

static Status add_later(FxReader *reader, Graph *graph, const char *path, FxLaterState later)
{
        if (reader->n_later >= limits.max_tensors)
                return fail(STATUS_TOO_LARGE,
                            "the state has more than %" PRId64 " tensors (max_tensors in GET /v1)",
                            limits.max_tensors);
        char *key = arena_format(&reader->scratch, "%p:%s", (void *)graph, path),
             *parent = arena_text(&reader->scratch, path, strlen(path));
        if (key == NULL || parent == NULL)
                return fail_memory();
        char *dot = strrchr(parent, '.');
        Module *module;
        if (dot != NULL) { // the module around it is there, whether or not its tensors are
                *dot = '\0';
                TRY(graph_add_module(graph, parent, NULL, &module));
        }
        TRY(string_map_set(&reader->later_by_path, key, (void *)(uintptr_t)(reader->n_later + 1), NULL));
        TRY(array_reserve(&reader->later, &reader->later_capacity, reader->n_later + 1,
                          sizeof(FxLaterState)));
        later.graph = graph;
        later.path = path;
        reader->later[reader->n_later++] = later;
        return STATUS_OK;
}

// Whether the object that comes next begins with "same_as".
static bool is_tie(const FxReader *reader)
{
        static const char key[] = "\"same_as\"";
        const char *at = reader->text + json_tell(reader->json), *end = reader->text + reader->n;
        at++;
        while (at < end && strchr(" \t\r\n", *at) != NULL && *at != '\0')
                at++;
        return (size_t)(end - at) > sizeof(key) && memcmp(at, key, sizeof(key) - 1) == 0;
}

static Status read_tie(FxReader *reader, Graph *graph, const char *path)
{
        const char *key;
        bool more;
        FxLaterState later = { 0 };
        TRY(json_enter_object(reader->json));
        TRY(json_next_key(reader->json, &key, &more));
        if (json_peek(reader->json) != JSON_STRING)
                return fail(STATUS_MALFORMED, "\"same_as\" is the path of another tensor");
        TRY(json_read_string(reader->json, &later.same_as, NULL));
        TRY(json_next_key(reader->json, &key, &more));
        if (more)
                return fx_unknown_member("an entry with \"same_as\"", key, "same_as alone");
        return add_later(reader, graph, path, later);
}

static Status read_entry(FxReader *reader, Graph *graph, const char *path)
{
        if (json_peek(reader->json) == JSON_OBJECT && is_tie(reader))
                return read_tie(reader, graph, path);
        size_t start = json_tell(reader->json);
        Tensor *tensor = NULL;
        TensorJsonDescription said = { .rank = -1 };
        if (json_peek(reader->json) == JSON_OBJECT)
                TRY(tensor_json_read_described(reader->json, NULL, &tensor, &said));
        else
                TRY(tensor_json_read(reader->json, DTYPE_NONE, NULL, &tensor, NULL));
        reader->data_bytes += tensor == NULL ? 0 : json_tell(reader->json) - start;
        if (tensor != NULL)
                return add_state(graph, path, tensor);
        FxLaterState later = { .dtype = said.dtype, .rank = said.rank };
        memcpy(later.shape, said.shape, sizeof(later.shape));
        return add_later(reader, graph, path, later);
}

Status fx_read_state(FxReader *reader, Graph *graph)
{
        if (json_peek(reader->json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "\"state\" is an object: {\"linear.weight\": {\"dtype\": "
                                              "\"float32\", \"shape\": [20, 10], \"data\": [...]}}");
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *path;
                TRY(json_next_key(reader->json, &path, &more));
                if (!more)
                        return STATUS_OK;
                size_t outer = fx_enter(reader, "state \"%.100s\"", path);
                TRY(read_entry(reader, graph, path));
                TRY(fx_check_size(reader));
                fx_leave(reader, outer);
        }
}

// ---- tensors of a separate file ----

typedef struct Distribution {
        FxReader *reader;
        Graph *root;
} Distribution;

// Descends into the child graphs along the path, as long as there are any.
static Status hand_out(void *visitor, const char *path, Tensor *tensor)
{
        Distribution *distribution = visitor;
        Graph *graph = distribution->root;
        const char *rest = path;
        size_t outer = fx_enter(distribution->reader, "weight \"%.100s\"", path);
        for (const char *dot = strchr(rest, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
                const Module *module = string_map_get_n(&graph->module_by_path, rest, (size_t)(dot - rest));
                if (module != NULL && module->graph != NULL) {
                        graph = module->graph;
                        rest = dot + 1;
                }
        }
        if (graph_state(graph, rest) != NULL)
                return fail(STATUS_MALFORMED,
                            "this tensor is in the graph's \"state\" as well; send it once");
        TRY(add_state(graph, rest, tensor_ref(tensor)));
        fx_leave(distribution->reader, outer);
        return STATUS_OK;
}

static Status check_described(const FxLaterState *later, const Tensor *tensor)
{
        bool same = later->rank < 0 || later->rank == tensor->meta.rank;
        for (int d = 0; same && d < later->rank; d++)
                same = later->shape[d] == tensor->meta.size[d];
        if (same && (later->dtype == DTYPE_NONE || later->dtype == tensor->meta.dtype))
                return STATUS_OK;
        char said[256], found[256];
        return fail(STATUS_SHAPE, "the graph declares %s %s, the weights hold %s %s",
                    later->dtype == DTYPE_NONE ? "shape" : dtype_info[later->dtype].name,
                    later->rank < 0 ? "" : shape_text(later->rank, later->shape, said, sizeof(said)),
                    dtype_info[tensor->meta.dtype].name,
                    shape_text(tensor->meta.rank, tensor->meta.size, found, sizeof(found)));
}

static const FxLaterState *find_later(FxReader *reader, const Graph *graph, const char *path)
{
        const char *key = arena_format(&reader->scratch, "%p:%s", (const void *)graph, path);
        uintptr_t stored = key == NULL ? 0 : (uintptr_t)string_map_get(&reader->later_by_path, key);
        return stored == 0 ? NULL : &reader->later[stored - 1];
}

// A tensor that is nowhere stays missing: it will be reported together with all other missing ones.
static Status settle(FxReader *reader, const FxLaterState *later)
{
        const State *state = graph_state(later->graph, later->same_as == NULL ? later->path : later->same_as);
        if (later->same_as == NULL)
                return state == NULL ? STATUS_OK : check_described(later, state->tensor);
        if (strcmp(later->same_as, later->path) == 0)
                return fail(STATUS_MALFORMED, "\"same_as\" names the tensor itself");
        const FxLaterState *other = find_later(reader, later->graph, later->same_as);
        if (other != NULL && other->same_as != NULL)
                return fail(STATUS_MALFORMED,
                            "\"same_as\" names \"%.100s\", which is tied itself; name the tensor that holds "
                            "the data",
                            later->same_as);
        if (state != NULL)
                return add_state(later->graph, later->path, tensor_ref(state->tensor));
        if (other == NULL && reader->source != NULL)
                return fail(STATUS_MALFORMED, "\"same_as\" names \"%.100s\", which is not in the state",
                            later->same_as);
        return STATUS_OK;
}

Status fx_complete_state(FxReader *reader, Graph *root)
{
        Distribution distribution = { .reader = reader, .root = root };
        if (reader->source != NULL)
                TRY(reader->source->each(reader->source->context, hand_out, &distribution));
        for (uint32_t i = 0; i < reader->n_later; i++) {
                size_t outer = fx_enter(reader, "state \"%.100s\"", reader->later[i].path);
                TRY(settle(reader, &reader->later[i]));
                fx_leave(reader, outer);
        }
        return STATUS_OK;
}
