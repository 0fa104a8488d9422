// SPDX-License-Identifier: Apache-2.0
// fx_json_state.c: modules, tensors inside the document, tensors of a separate file. A tensor of
// the file belongs to the innermost child graph whose module path is a prefix of its path.
#include <inttypes.h>
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "api/formats/tensor_json.h"
#include "core/base/hash.h"
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

static uint32_t find_entry(FxReader *reader, const Graph *graph, const char *path)
{
        const char *key = arena_format(&reader->scratch, "%p:%s", (const void *)graph, path);
        return key == NULL ? 0 : (uint32_t)(uintptr_t)string_map_get(&reader->entry_by_path, key);
}

// The entry's tensor is taken, also on failure.
static Status add_entry(FxReader *reader, Graph *graph, const char *path, const FxEntry *take_entry)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = take_entry->tensor;
        if (reader->n_entries >= limits.max_tensors)
                return fail(STATUS_TOO_LARGE,
                            "the state has more than %" PRId64 " tensors (max_tensors in GET /v1)",
                            limits.max_tensors);
        char *key = arena_format(&reader->scratch, "%p:%s", (void *)graph, path),
             *parent = arena_text(&reader->scratch, path, strlen(path));
        if (key == NULL || parent == NULL)
                return fail_memory();
        const char *copy = strchr(key, ':') + 1;
        char *dot = strrchr(parent, '.');
        Module *module;
        if (dot != NULL) { // the module around it is there, whether or not its tensors are
                *dot = '\0';
                TRY(graph_add_module(graph, parent, NULL, &module));
        }
        TRY(array_reserve(&reader->entries, &reader->entries_capacity, reader->n_entries + 1,
                          sizeof(FxEntry)));
        TRY(string_map_set(&reader->entry_by_path, key, (void *)(uintptr_t)(reader->n_entries + 1), NULL));
        FxEntry *entry = &reader->entries[reader->n_entries++];
        *entry = *take_entry;
        entry->graph = graph;
        entry->path = copy;
        entry->tensor = take_ptr(tensor);
        return STATUS_OK;
}

static Status read_strides(FxReader *reader, FxPlace *place)
{
        TRY(json_enter_array(reader->json));
        place->n_strides = 0;
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                if (place->n_strides == MAX_RANK)
                        return fail(STATUS_VALUE, "\"stride\" has more than %d dimensions", MAX_RANK);
                TRY(json_read_int(reader->json, &place->stride[place->n_strides]));
                if (place->stride[place->n_strides++] < 0)
                        return fail(STATUS_VALUE, "\"stride\" holds a negative number");
        }
}

typedef struct EntryReader {
        FxReader *reader;
        FxEntry *entry;
} EntryReader;

// What an entry says beside a tensor's own members.
static Status read_entry_member(void *context, JsonReader *json, const char *key, bool *out_known)
{
        FxReader *reader = ((EntryReader *)context)->reader;
        FxEntry *entry = ((EntryReader *)context)->entry;
        bool persistent = true, unchanged; // what a transform says of the base's own tensors
        *out_known = true;
        if (strcmp(key, "same_as") == 0)
                return json_peek(json) == JSON_STRING
                               ? json_read_string(json, &entry->same_as, NULL)
                               : fail(STATUS_MALFORMED, "\"same_as\" is the path of another tensor");
        if (strcmp(key, "stride") == 0)
                return read_strides(reader, &entry->place);
        if (strcmp(key, "storage") == 0)
                return fx_read_word(reader, &entry->place.storage);
        if (strcmp(key, "written") == 0)
                return json_read_bool(json, &entry->written);
        if (strcmp(key, "sha256") == 0)
                return fx_read_word(reader, &entry->sha256);
        if (strcmp(key, "unchanged") == 0)
                return json_read_bool(json, &unchanged);
        if (strcmp(key, "parameter") == 0) {
                entry->says_parameter = true;
                return json_read_bool(json, &entry->is_parameter);
        }
        if (strcmp(key, "persistent") == 0) {
                TRY(json_read_bool(json, &persistent));
                entry->is_transient = !persistent;
                return STATUS_OK;
        }
        if (strcmp(key, "offset") == 0) {
                TRY(json_read_int(json, &entry->place.offset));
                return entry->place.offset >= 0 ? STATUS_OK : fail(STATUS_VALUE, "\"offset\" is negative");
        }
        *out_known = false;
        return STATUS_OK;
}

static Status check_entry(FxReader *reader, const FxEntry *entry)
{
        const FxPlace *place = &entry->place;
        bool is_placed = place->storage != NULL || place->n_strides >= 0 || place->offset != 0;
        if (entry->same_as != NULL &&
            (entry->tensor != NULL || entry->dtype != DTYPE_NONE || entry->rank >= 0 || is_placed))
                return fail(
                        STATUS_UNKNOWN_MEMBER,
                        "an entry with \"same_as\" has no numbers, dtype, shape or storage of its own; it "
                        "knows same_as, parameter, persistent, written, sha256, unchanged");
        if (!is_placed)
                return STATUS_OK;
        if (place->storage == NULL)
                return fail(STATUS_MALFORMED, "\"stride\" and \"offset\" go with \"storage\"");
        if (entry->dtype == DTYPE_NONE || entry->rank < 0)
                return fail(STATUS_MALFORMED, "a tensor with \"storage\" needs \"dtype\" and \"shape\"");
        if (place->n_strides >= 0 && place->n_strides != entry->rank)
                return fail(STATUS_SHAPE, "\"stride\" has %d numbers and \"shape\" %d", place->n_strides,
                            entry->rank);
        return fx_note_storage(reader, place->storage);
}

static Status read_entry_parts(FxReader *reader, FxEntry *entry)
{
        if (json_peek(reader->json) != JSON_OBJECT)
                return tensor_json_read(reader->json, DTYPE_NONE, NULL, &entry->tensor, NULL);
        EntryReader context = { reader, entry };
        const TensorJsonMore more = { read_entry_member, &context };
        TensorJsonDescription said;
        TRY(tensor_json_read_described(reader->json, NULL, &more, &entry->tensor, &said));
        entry->dtype = said.dtype;
        entry->rank = said.rank;
        memcpy(entry->shape, said.shape, sizeof(entry->shape));
        return check_entry(reader, entry);
}

static Status read_entry(FxReader *reader, Graph *graph, const char *path)
{
        size_t start = json_tell(reader->json);
        FxEntry entry = { .rank = -1, .dtype = DTYPE_NONE, .place = { .n_strides = -1 } };
        Status status = read_entry_parts(reader, &entry);
        if (status != STATUS_OK) {
                tensor_unref(entry.tensor);
                return status;
        }
        reader->data_bytes += entry.tensor == NULL ? 0 : json_tell(reader->json) - start;
        return add_entry(reader, graph, path, &entry);
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

Status fx_check_described(const FxEntry *entry, const Tensor *tensor)
{
        bool same = entry->rank < 0 || entry->rank == tensor->meta.rank;
        for (int d = 0; same && d < entry->rank; d++)
                same = entry->shape[d] == tensor->meta.size[d];
        if (same && (entry->dtype == DTYPE_NONE || entry->dtype == tensor->meta.dtype))
                return STATUS_OK;
        char said[256], found[256];
        return fail(STATUS_SHAPE, "the graph declares %s %s, the weights hold %s %s",
                    entry->dtype == DTYPE_NONE ? "shape" : dtype_info[entry->dtype].name,
                    entry->rank < 0 ? "" : shape_text(entry->rank, entry->shape, said, sizeof(said)),
                    dtype_info[tensor->meta.dtype].name,
                    shape_text(tensor->meta.rank, tensor->meta.size, found, sizeof(found)));
}

// The entry of a tensor of the file: descends into the child graphs along the path, as long as
// there are any.
static Status give(FxReader *reader, Graph *root, const char *path, Tensor *tensor)
{
        Graph *graph = root;
        const char *rest = path;
        for (const char *dot = strchr(rest, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
                const Module *module = string_map_get_n(&graph->module_by_path, rest, (size_t)(dot - rest));
                if (module != NULL && module->graph != NULL) {
                        graph = module->graph;
                        rest = dot + 1;
                }
        }
        uint32_t found = find_entry(reader, graph, rest);
        FxEntry extra = { .rank = -1, .dtype = DTYPE_NONE, .is_extra = true, .place = { .n_strides = -1 } };
        extra.tensor = tensor_ref(tensor);
        if (found == 0)
                return add_entry(reader, graph, rest, &extra);
        FxEntry *entry = &reader->entries[found - 1];
        if (entry->tensor != NULL) {
                tensor_unref(extra.tensor);
                return fail(STATUS_MALFORMED,
                            "this tensor is in the graph's \"state\" as well; send it once");
        }
        entry->tensor = extra.tensor;
        return STATUS_OK;
}

static Status hand_out(void *visitor, const char *path, Tensor *tensor)
{
        Distribution *distribution = visitor;
        bool taken;
        size_t outer = fx_enter(distribution->reader, "weight \"%.100s\"", path);
        TRY(fx_take_storage(distribution->reader, path, tensor, &taken));
        if (!taken)
                TRY(give(distribution->reader, distribution->root, path, tensor));
        fx_leave(distribution->reader, outer);
        return STATUS_OK;
}

// A tied entry may come in the file as well, with the same numbers; then they are dropped.
static Status drop_copy(FxEntry *entry, const Tensor *other)
{
        const Tensor *own = entry->tensor;
        if (own == NULL)
                return STATUS_OK;
        bool same = other != NULL && own->meta.dtype == other->meta.dtype &&
                    meta_same_places(&own->meta, &other->meta) &&
                    own->storage->n_bytes == other->storage->n_bytes;
        if (!same || (own->storage->n_bytes > 0 &&
                      memcmp(own->storage->data, other->storage->data, own->storage->n_bytes) != 0))
                return fail(STATUS_VALUE, "\"same_as\" names \"%.100s\", and the weights hold other numbers",
                            entry->same_as);
        entry->tensor = tensor_unref(entry->tensor);
        return STATUS_OK;
}

// Before the shared storages are made, so that all tensors are as they came: dense.
static Status settle_tie(FxReader *reader, FxEntry *entry)
{
        if (strcmp(entry->same_as, entry->path) == 0)
                return fail(STATUS_MALFORMED, "\"same_as\" names the tensor itself");
        uint32_t found = find_entry(reader, entry->graph, entry->same_as);
        const FxEntry *other = found == 0 ? NULL : &reader->entries[found - 1];
        if (other != NULL && other->same_as != NULL)
                return fail(STATUS_MALFORMED,
                            "\"same_as\" names \"%.100s\", which is tied itself; name the tensor that holds "
                            "the data",
                            entry->same_as);
        if (other == NULL && reader->source != NULL)
                return fail(STATUS_MALFORMED, "\"same_as\" names \"%.100s\", which is not in the state",
                            entry->same_as);
        return drop_copy(entry, other == NULL ? NULL : other->tensor);
}

static Status settle(FxReader *reader, FxEntry *entry)
{
        if (entry->same_as != NULL)
                return settle_tie(reader, entry);
        return entry->tensor == NULL ? STATUS_OK : fx_check_described(entry, entry->tensor);
}

// The reply of a transform gives tensors by hash: other weights must not take their place.
static Status check_digest(const FxEntry *entry)
{
        if (entry->sha256 == NULL || entry->tensor == NULL)
                return STATUS_OK;
        Budget budget;
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        budget_init(&budget, (size_t)limits.max_run_memory);
        TRY(tensor_contiguous(entry->tensor, &budget, &dense));
        size_t n = (size_t)meta_numel(&dense->meta) * dtype_info[dense->meta.dtype].bytes;
        if (strcmp(sha256_of(tensor_data(dense), n).hex, entry->sha256) == 0)
                return STATUS_OK;
        return fail(STATUS_VALUE,
                    "the weights hold another tensor than the one with \"sha256\" %.64s; where a "
                    "transform changed it, store the result with \"store_as\"",
                    entry->sha256);
}

// A tensor that is nowhere stays missing: it will be reported together with all other missing ones.
static Status add_state(FxReader *reader, FxEntry *entry)
{
        State *state;
        uint32_t tied = entry->same_as == NULL ? 0 : find_entry(reader, entry->graph, entry->same_as);
        if (tied != 0 && reader->entries[tied - 1].tensor != NULL)
                entry->tensor = tensor_ref(reader->entries[tied - 1].tensor);
        if (entry->tensor == NULL)
                return STATUS_OK;
        TRY(check_digest(entry));
        bool guessed = state_looks_like_parameter(entry->path, entry->tensor->meta.dtype);
        TRY(graph_add_state(entry->graph, entry->path, tensor_ref(entry->tensor), &state));
        state->is_parameter = entry->says_parameter ? entry->is_parameter : guessed;
        state->persistent = !entry->is_transient;
        state->written = entry->written;
        return STATUS_OK;
}

static Status each_entry(FxReader *reader, Status (*visit)(FxReader *reader, FxEntry *entry))
{
        for (uint32_t i = 0; i < reader->n_entries; i++) {
                const FxEntry *entry = &reader->entries[i];
                size_t outer =
                        fx_enter(reader, "%s \"%.100s\"", entry->is_extra ? "weight" : "state", entry->path);
                TRY(visit(reader, &reader->entries[i]));
                fx_leave(reader, outer);
        }
        return STATUS_OK;
}

Status fx_complete_state(FxReader *reader, Graph *root)
{
        Distribution distribution = { .reader = reader, .root = root };
        if (reader->source != NULL)
                TRY(reader->source->each(reader->source->context, hand_out, &distribution));
        TRY(each_entry(reader, settle));
        TRY(fx_place_state(reader));
        return each_entry(reader, add_state);
}

void fx_state_deinit(FxReader *reader)
{
        for (uint32_t i = 0; i < reader->n_entries; i++)
                tensor_unref(reader->entries[i].tensor);
        for (uint32_t i = 0; i < reader->n_storages; i++) {
                tensor_unref(reader->storages[i].given);
                storage_unref(reader->storages[i].made);
        }
        free(reader->entries);
        free(reader->storages);
        string_map_deinit(&reader->entry_by_path);
        string_map_deinit(&reader->storage_by_name);
}
