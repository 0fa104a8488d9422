// SPDX-License-Identifier: Apache-2.0
// Which way a run goes. The first sight of an input signature runs eagerly; the second compiles (one thread builds, others of the same
// signature go on eagerly meanwhile: nobody waits); from then on the program runs. Signatures that cannot be planned are remembered and
// stay eager. Programs live in a registry of their own, the least recently used leave first; they are immutable and hold the graph they
// were made from.
#include <string.h>
#include "core/engine_private.h"
#include "core/eval/eager.h"

// ---- signatures seen before ----
// A small table of hashes that forgets on collision: forgetting costs one more eager run.
static uint64_t word_of(const ProgramKey *key)
{
        uint64_t word;
        memcpy(&word, key->bytes, sizeof(word));
        return word | 1;
}

static bool seen_before(SeenTable *table, const ProgramKey *key)
{
        uint64_t word = word_of(key);
        return atomic_exchange_explicit(&table->words[word % ENGINE_SEEN], word, memory_order_relaxed) == word;
}

static bool is_marked(SeenTable *table, const ProgramKey *key)
{
        uint64_t word = word_of(key);
        return atomic_load_explicit(&table->words[word % ENGINE_SEEN], memory_order_relaxed) == word;
}

// ---- programs ----
static void program_ref_object(void *object)
{
        program_ref(object);
}
static void program_unref_object(void *object)
{
        program_unref(object);
}
static size_t program_bytes_object(const void *object)
{
        return program_bytes(object);
}
const RegistryType engine_program_type = { program_ref_object, program_unref_object, program_bytes_object };

static RegistryKey registry_key(const ProgramKey *key)
{
        RegistryKey out;
        memcpy(out.bytes, key->bytes, sizeof(out.bytes));
        return out;
}

// Compiles on this thread and publishes. Failing leaves *out_program NULL: the eager run will say what is wrong, in PyTorch's words.
static void build(Engine *engine, const Graph *graph, ValueSpan inputs, const CompileOptions *options, const ProgramKey *key,
                  const RunContext *ctx, Program **out_program)
{
        RegistryKey place = registry_key(key);
        Ticket ticket;
        Acquired how;
        void *object = NULL;
        RegistryEntry *entry = NULL;
        if (registry_acquire(engine->programs, &place, &ticket, &how, &object, &entry) != STATUS_OK)
                return;
        if (how != ACQUIRE_PARKED_START) {
                if (how == ACQUIRE_READY)
                        *out_program = object;
                else if (!registry_cancel(engine->programs, &ticket)) { // published between: the ticket has it
                        *out_program = ticket.object;
                        free(ticket.failure);
                }
                return;
        }
        Program *program = NULL;
        Status status = compile_graph(graph, inputs, options, ctx, &program);
        if (status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED)
                seen_before(&engine->unplannable, key);
        if (status == STATUS_OK)
                atomic_fetch_add(&engine->n_compiles, 1u);
        registry_cancel(engine->programs, &ticket);
        if (program != NULL)
                *out_program = program_ref(program);
        registry_publish(engine->programs, entry, program);
}

void engine_choose(Engine *engine, const Graph *graph, const RunRequest *request, ValueSpan inputs, const RunContext *ctx,
                   Program **out_program)
{
        CompileOptions options = { .n_threads = MAX(ctx->n_threads, 1), .fetch = request->fetch, .n_fetch = request->n_fetch };
        ProgramKey key;
        *out_program = NULL;
        if (request->mode == RUN_MODE_EAGER || program_key(graph, inputs, &options, &key) != STATUS_OK ||
            is_marked(&engine->unplannable, &key))
                return;
        RegistryKey place = registry_key(&key);
        *out_program = registry_peek(engine->programs, &place);
        if (*out_program == NULL && (request->mode == RUN_MODE_COMPILED || seen_before(&engine->seen, &key)))
                build(engine, graph, inputs, &options, &key, ctx, out_program);
}

Program *engine_program(Engine *engine, const char *id)
{
        RegistryKey key;
        if (strlen(id) != 2 * sizeof(key.bytes) || strspn(id, "0123456789abcdef") != 2 * sizeof(key.bytes))
                return NULL;
        for (size_t i = 0; i < sizeof(key.bytes); i++) {
                int high = id[2 * i] <= '9' ? id[2 * i] - '0' : id[2 * i] - 'a' + 10,
                    low = id[2 * i + 1] <= '9' ? id[2 * i + 1] - '0' : id[2 * i + 1] - 'a' + 10;
                key.bytes[i] = (uint8_t)(high << 4 | low);
        }
        return registry_peek(engine->programs, &key);
}

void engine_note_program(Engine *engine, GraphVersion *version, const Program *program)
{
        if (version == NULL || program == NULL)
                return;
        pthread_mutex_lock(&engine->mutex);
        memcpy(version->latest_program, program->id.hex, sizeof(version->latest_program));
        pthread_mutex_unlock(&engine->mutex);
}

void engine_latest_program(Engine *engine, const GraphVersion *version, char out_id[65])
{
        pthread_mutex_lock(&engine->mutex);
        memcpy(out_id, version->latest_program, sizeof(version->latest_program));
        pthread_mutex_unlock(&engine->mutex);
}
