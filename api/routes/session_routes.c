// SPDX-License-Identifier: Apache-2.0
// session_routes.c: sessions opened, looked at, put back and ended. Their runs are jobs.
//
// A snapshot has each entry of the state that runs have written, by its path (entries of child
// graphs: their number, a colon, the path), and the state of the random numbers.
#include <stdio.h>
#include <string.h>
#include "api/formats/safetensors.h"
#include "api/formats/safetensors_write.h"
#include "api/routes/answer.h"
#include "core/base/json.h"
#include "core/base/limits.h"

static const char generator_name[] = "__generator__";
enum { GENERATOR_HEAD = 4, GENERATOR_BYTES = GENERATOR_HEAD * 8 + GENERATOR_WORDS * 4 };

static void write_session(const Answer *answer, Session *session)
{
        SessionFigures figures;
        const GraphVersion *version = session_version(session);
        session_look(session, NULL, NULL, &figures);
        text_addf(answer_begin(answer, json_type),
                  "{\"id\": \"%s\", \"graph\": \"%s\", \"version\": %lld, \"run\": \"/v1/sessions/%s/run\", "
                  "\"runs\": %llu, \"bytes\": %zu, \"idle_s\": %lld}\n",
                  session_id(session), version->name, (long long)version->stored.version, session_id(session),
                  (unsigned long long)figures.runs, figures.bytes, (long long)limits.session_idle_s);
}

// ---- opening and ending ----
static Status read_member(void *context, JsonReader *json, const char *key)
{
        SessionSubject *subject = context;
        int64_t seed;
        if (strcmp(key, "seed") != 0)
                return failure_at_argument(
                        fail(STATUS_UNKNOWN_MEMBER, "unknown member \"%.64s\"; it knows seed", key), key);
        TRY(failure_at_argument(json_read_int(json, &seed), key));
        if (seed < 0)
                return failure_at_argument(fail(STATUS_VALUE, "\"seed\" is not negative"), key);
        subject->seeded = true;
        subject->seed = (uint64_t)seed;
        return STATUS_OK;
}

static Status read_members(JsonReader *json, SessionSubject *subject)
{
        if (json_peek(json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "the body is empty, or an object: {\"seed\": 0}");
        TRY(json_each_member(json, read_member, subject));
        return json_finish(json);
}

static Status read_wishes(const Answer *answer, SessionSubject *subject)
{
        Arena arena;
        JsonReader *json = NULL;
        const Storage *bytes = answer->call->body;
        if (bytes == NULL || bytes->n_bytes == 0)
                return STATUS_OK;
        arena_init(&arena, 0);
        Status status = json_open((const char *)bytes->data, bytes->n_bytes, (int)limits.max_json_depth_run,
                                  limits.max_json_values, &arena, &json);
        if (status == STATUS_OK)
                status = read_members(json, subject);
        json_close(json);
        arena_deinit(&arena);
        return status;
}

static void unref_version(void *version)
{
        graph_version_unref(version);
}

Status post_session(const Answer *answer)
{
        _cleanup_(session_unrefp) Session *session = NULL;
        SessionSubject subject = { .graph = answer->graph, .unref = unref_version };
        TRY(read_wishes(answer, &subject));
        snprintf(subject.owner, sizeof(subject.owner), "%s", answer->call->caller);
        subject.version = graph_version_ref(answer->version);
        TRY(sessions_add(engine_sessions(answer->context->engine), &subject, &session));
        write_session(answer, session);
        answer->reply->status = 201;
        api_reply_header(answer->reply, "Location", "/v1/sessions/%s", session_id(session));
        return STATUS_OK;
}

static Status find(const Answer *answer, Session **out_session)
{
        return sessions_find(engine_sessions(answer->context->engine), answer->call->id, answer->call->caller,
                             out_session);
}

Status delete_session(const Answer *answer)
{
        _cleanup_(session_unrefp) Session *session = NULL;
        TRY(find(answer, &session));
        sessions_remove(engine_sessions(answer->context->engine), session);
        answer->reply->status = 204;
        return STATUS_OK;
}

// ---- snapshots ----
typedef struct Snapshot {
        const Graph *graph;
        Storage **now; // n, counted
        uint32_t n;
        NamedTensor *tensors;
        uint32_t n_tensors, capacity;
        Generator generator;
        Budget budget;
        Arena names;
} Snapshot;

static void snapshot_deinit(Snapshot *snapshot)
{
        for (uint32_t i = 0; i < snapshot->n_tensors; i++)
                tensor_unref(snapshot->tensors[i].tensor);
        for (uint32_t i = 0; i < snapshot->n && snapshot->now != NULL; i++)
                storage_unref(snapshot->now[i]);
        free(snapshot->tensors);
        free(snapshot->now);
        arena_deinit(&snapshot->names);
}

static const State *entry_at(const Graph *graph, uint32_t number)
{
        return number < graph->n_state ? &graph->state[number] : state_at(graph, number);
}

static const char *entry_name(const Graph *graph, const State *entry, uint32_t number, Arena *arena)
{
        return number < graph->n_state ? entry->path : arena_format(arena, "%u:%s", number, entry->path);
}

static Status add_tensor(Snapshot *snapshot, const char *name, Tensor *take_tensor)
{
        _cleanup_(tensor_unrefp) Tensor *tensor = take_tensor;
        if (name == NULL)
                return fail_memory();
        TRY(array_reserve(&snapshot->tensors, &snapshot->capacity, snapshot->n_tensors + 1,
                          sizeof(*snapshot->tensors)));
        snapshot->tensors[snapshot->n_tensors++] = (NamedTensor){ .name = name, .tensor = take_ptr(tensor) };
        return STATUS_OK;
}

static Status add_entry(Snapshot *snapshot, uint32_t number)
{
        const State *entry = entry_at(snapshot->graph, number);
        uint32_t shared =
                entry->written ? state_number(snapshot->graph, entry->tensor->storage) : snapshot->n;
        _cleanup_(tensor_unrefp) Tensor *seen = NULL;
        Tensor *dense;
        if (shared >= snapshot->n || snapshot->now[shared] == NULL)
                return STATUS_OK;
        TRY(tensor_new_view(snapshot->now[shared], &entry->tensor->meta, entry->tensor->offset, &seen));
        TRY(tensor_contiguous(seen, &snapshot->budget, &dense));
        return add_tensor(snapshot, entry_name(snapshot->graph, entry, number, &snapshot->names), dense);
}

static Status add_generator(Snapshot *snapshot)
{
        const Generator *generator = &snapshot->generator;
        int64_t size = GENERATOR_BYTES;
        TensorMeta meta;
        Tensor *tensor;
        if (!generator->seeded)
                return STATUS_OK;
        uint64_t head[GENERATOR_HEAD] = { generator->seed,
                                          (uint64_t)generator->started | (uint64_t)generator->has_normal << 1,
                                          generator->next };
        memcpy(&head[3], &generator->normal, sizeof(head[3]));
        meta_init(&meta, DTYPE_U8, 1, &size);
        TRY(tensor_new(&meta, NULL, &tensor));
        uint8_t *bytes = tensor_data(tensor);
        memcpy(bytes, head, sizeof(head));
        memcpy(bytes + sizeof(head), generator->state, sizeof(generator->state));
        return add_tensor(snapshot, generator_name, tensor);
}

Status get_session(const Answer *answer)
{
        _cleanup_(session_unrefp) Session *session = NULL;
        _cleanup_(snapshot_deinit) Snapshot snapshot = { .n = 0 };
        SessionFigures figures;
        arena_init(&snapshot.names, 0);
        budget_init(&snapshot.budget, (size_t)limits.max_run_memory);
        TRY(find(answer, &session));
        snapshot.graph = session_graph(session);
        snapshot.now = new_array(session_n(session), sizeof(*snapshot.now));
        if (snapshot.now == NULL)
                return fail_memory();
        snapshot.n = session_n(session);
        session_look(session, snapshot.now, &snapshot.generator, &figures);
        for (uint32_t i = 0; i < snapshot.n; i++)
                TRY(add_entry(&snapshot, i));
        TRY(add_generator(&snapshot));
        answer->reply->status = 200;
        answer->reply->content_type = "application/x-safetensors";
        return safetensors_write(snapshot.tensors, snapshot.n_tensors, answer->reply);
}

// ---- restoring ----
static Status read_generator(const Tensor *tensor, Generator *out)
{
        uint64_t head[GENERATOR_HEAD];
        if (tensor->meta.dtype != DTYPE_U8 || meta_numel(&tensor->meta) != GENERATOR_BYTES)
                return fail(STATUS_INPUT, "\"%s\" is no state of random numbers", generator_name);
        const uint8_t *bytes = tensor_data(tensor);
        memcpy(head, bytes, sizeof(head));
        if (head[1] > 3 || head[2] > GENERATOR_WORDS)
                return fail(STATUS_INPUT, "\"%s\" is no state of random numbers", generator_name);
        *out = (Generator){ .seed = head[0],
                            .seeded = true,
                            .started = (head[1] & 1) != 0,
                            .has_normal = (head[1] & 2) != 0,
                            .next = (uint32_t)head[2] };
        memcpy(&out->normal, &head[3], sizeof(out->normal));
        memcpy(out->state, bytes + sizeof(head), sizeof(out->state));
        return STATUS_OK;
}

static Status put_entry(const Graph *graph, uint32_t number, const Tensor *sent, RunState *state)
{
        const State *entry = entry_at(graph, number);
        const Tensor *tensor = entry->tensor;
        uint32_t shared = state_number(graph, tensor->storage);
        _cleanup_(tensor_unrefp) Tensor *target = NULL;
        if (!entry->written || shared >= state->n)
                return fail(STATUS_INPUT, "no run writes to %.100s", entry->path);
        if (sent->meta.dtype != tensor->meta.dtype || !meta_same_shape(&sent->meta, &tensor->meta))
                return fail(STATUS_INPUT, "%.100s has another shape or dtype in this graph", entry->path);
        if (state->after[shared] == NULL) {
                TRY(storage_new(tensor->storage->n_bytes, false, NULL, &state->after[shared]));
                if (tensor->storage->n_bytes > 0)
                        memcpy(state->after[shared]->data, tensor->storage->data, tensor->storage->n_bytes);
        }
        TRY(tensor_new_view(state->after[shared], &tensor->meta, tensor->offset, &target));
        tensor_copy_data(sent, target);
        return STATUS_OK;
}

static Status put_entries(const Graph *graph, const Safetensors *file, RunState *state, Generator *generator)
{
        uint32_t n_known = 0;
        _cleanup_(arena_deinit) Arena arena;
        arena_init(&arena, 0);
        const Tensor *random = safetensors_find(file, generator_name);
        for (uint32_t i = 0; i < state->n; i++) {
                const State *entry = entry_at(graph, i);
                const char *name = entry->written ? entry_name(graph, entry, i, &arena) : NULL;
                const Tensor *sent = name == NULL ? NULL : safetensors_find(file, name);
                n_known += sent != NULL;
                if (sent != NULL)
                        TRY(put_entry(graph, i, sent, state));
        }
        if (random != NULL)
                TRY(read_generator(random, generator));
        if (n_known + (random != NULL) != file->n_entries)
                return fail(STATUS_INPUT,
                            "%u of the file's %u tensors are no state that runs of this graph write",
                            file->n_entries - n_known - (random != NULL), file->n_entries);
        return STATUS_OK;
}

static Status restore(const Answer *answer, Session *session, const Safetensors *file)
{
        _cleanup_(run_state_clear) RunState state = { .n = session_n(session) };
        Generator generator;
        generator_init(&generator);
        state.after = new_array(state.n, sizeof(*state.after));
        if (state.after == NULL)
                return fail_memory();
        TRY(put_entries(session_graph(session), file, &state, &generator));
        TRY(session_restore(session, &state, &generator));
        write_session(answer, session);
        return STATUS_OK;
}

Status put_session(const Answer *answer)
{
        _cleanup_(session_unrefp) Session *session = NULL;
        const Storage *body = answer->call->body;
        Safetensors file;
        TRY(find(answer, &session));
        if (body == NULL || body->n_bytes == 0)
                return fail(STATUS_MALFORMED, "the body is empty; it is what GET of a session gives");
        TRY(safetensors_read((ByteSpan){ body->data, body->n_bytes }, answer->call->body, &file));
        Status status = restore(answer, session, &file);
        safetensors_deinit(&file);
        return status;
}
