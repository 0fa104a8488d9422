// SPDX-License-Identifier: Apache-2.0
// saved.c: saved passes. `writing` serialises changes, `mutex` guards the map; a change is on disk
// before it is in the map.
#include "core/engine/saved.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/private.h"

typedef struct SavedPass {
        char name[STORE_NAME_MAX + 1];
        char *text;
} SavedPass;

static SavedPass *pass_free(SavedPass *pass)
{
        if (pass != NULL)
                free(pass->text);
        free(pass);
        return NULL;
}
DEFINE_CLEANUP(SavedPass, pass_free)

static Status pass_new(const char *name, ByteSpan text, SavedPass **out_pass)
{
        _cleanup_(pass_freep) SavedPass *pass = calloc(1, sizeof(*pass));
        if (pass == NULL || (pass->text = calloc(1, text.n + 1)) == NULL)
                return fail_memory();
        strncpy(pass->name, name, STORE_NAME_MAX);
        if (text.n > 0)
                memcpy(pass->text, text.data, text.n);
        *out_pass = take_ptr(pass);
        return STATUS_OK;
}

// The map's key is the name within the pass.
static Status keep(Engine *engine, SavedPass *take_pass, bool *out_created)
{
        pthread_mutex_lock(&engine->mutex);
        SavedPass *old = string_map_remove(&engine->passes, take_pass->name);
        Status status = string_map_set(&engine->passes, take_pass->name, take_pass, NULL);
        pthread_mutex_unlock(&engine->mutex);
        *out_created = old == NULL;
        pass_free(old);
        if (status != STATUS_OK)
                pass_free(take_pass);
        return status;
}

static Status restore(void *context, const char *name, ByteSpan text)
{
        SavedPass *pass;
        bool created;
        TRY(pass_new(name, text, &pass));
        return keep(context, pass, &created);
}

Status engine_load_passes(Engine *engine)
{
        return engine->store == NULL ? STATUS_OK : store_each_pass(engine->store, restore, engine);
}

void engine_free_passes(Engine *engine)
{
        for (uint32_t i = 0; i < engine->passes.n; i++) {
                if (engine->passes.entries[i].key != NULL)
                        pass_free(engine->passes.entries[i].value);
        }
        string_map_deinit(&engine->passes);
}

static bool has_pass(Engine *engine, const char *name, uint32_t *out_n)
{
        pthread_mutex_lock(&engine->mutex);
        bool has = string_map_get(&engine->passes, name) != NULL;
        *out_n = engine->passes.n_live;
        pthread_mutex_unlock(&engine->mutex);
        return has;
}

static Status put(Engine *engine, SavedPass **io_pass, ByteSpan text, bool *out_created)
{
        uint32_t n;
        if (!has_pass(engine, (*io_pass)->name, &n) && n >= limits.max_passes)
                return fail(STATUS_TOO_LARGE,
                            "%lld passes are saved, as many as may be (--max-passes, FXSERVE_MAX_PASSES)",
                            (long long)limits.max_passes);
        if (engine->store != NULL)
                TRY(store_put_pass(engine->store, (*io_pass)->name, text));
        return keep(engine, take_ptr(*io_pass), out_created);
}

Status engine_put_pass(Engine *engine, const char *name, ByteSpan text, bool *out_created)
{
        _cleanup_(pass_freep) SavedPass *pass = NULL;
        TRY(pass_new(name, text, &pass));
        engine_begin_change(engine);
        Status status = put(engine, &pass, text, out_created);
        engine_end_change(engine);
        return status;
}

static Status no_pass(const char *name)
{
        return fail(STATUS_NOT_FOUND, "there is no pass \"%.64s\"; GET /v1/passes lists them", name);
}

Status engine_get_pass(Engine *engine, const char *name, Text *out)
{
        pthread_mutex_lock(&engine->mutex);
        const SavedPass *pass = string_map_get(&engine->passes, name);
        if (pass != NULL)
                text_add(out, pass->text);
        pthread_mutex_unlock(&engine->mutex);
        return pass == NULL ? no_pass(name) : text_status(out);
}

static Status delete (Engine *engine, const char *name)
{
        uint32_t n;
        if (!has_pass(engine, name, &n))
                return no_pass(name);
        if (engine->store != NULL)
                TRY(store_remove_pass(engine->store, name));
        pthread_mutex_lock(&engine->mutex);
        SavedPass *pass = string_map_remove(&engine->passes, name);
        pthread_mutex_unlock(&engine->mutex);
        pass_free(pass);
        return STATUS_OK;
}

Status engine_delete_pass(Engine *engine, const char *name)
{
        engine_begin_change(engine);
        Status status = delete (engine, name);
        engine_end_change(engine);
        return status;
}

static int compare_names(const void *a, const void *b)
{
        const SavedPass *const *x = a, *const *y = b;
        return strcmp((*x)->name, (*y)->name);
}

static Status visit_all(const Engine *engine, const SavedPass **sorted,
                        Status (*visit)(void *context, const char *name), void *context)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < engine->passes.n; i++) {
                if (engine->passes.entries[i].key != NULL)
                        sorted[n++] = engine->passes.entries[i].value;
        }
        qsort(sorted, n, sizeof(*sorted), compare_names);
        for (uint32_t i = 0; i < n; i++)
                TRY(visit(context, sorted[i]->name));
        return STATUS_OK;
}

Status engine_each_pass(Engine *engine, Status (*visit)(void *context, const char *name), void *context)
{
        pthread_mutex_lock(&engine->mutex);
        const SavedPass **sorted = new_array(engine->passes.n + 1u, sizeof(SavedPass *));
        Status status = sorted == NULL ? fail_memory() : visit_all(engine, sorted, visit, context);
        pthread_mutex_unlock(&engine->mutex);
        free(sorted);
        return status;
}
