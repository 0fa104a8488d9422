// SPDX-License-Identifier: Apache-2.0
// Work belongs to the registry's entry that it fills, not to a caller: callers come and go while it
// is done. When the last one that waited has left and nobody else wanted it, its stop flag is set.
#include "core/engine/private.h"

void work_init(EngineWork *work, const EngineWorkType *type, Engine *engine)
{
        *work = (EngineWork){ .type = type, .engine = engine };
        refcount_init(&work->ref);
}

Status work_begin(EngineWork *take_work, const WorkPlace *place, Ticket *ticket, void **out_object,
                  Wait *out_wait)
{
        Acquisition got;
        Status status = registry_acquire(place->registry, &place->key,
                                         place->has_group ? &place->group : NULL, ticket, &got);
        if (status != STATUS_OK || got.how != ACQUIRE_START) {
                engine_work_unref(take_work);
                TRY(status);
        } else {
                take_work->registry = place->registry;
                take_work->entry = got.build;
                if (take_work->stop != NULL)
                        registry_watch(place->registry, got.build, take_work->stop);
                out_wait->work = take_work;
        }
        if (got.how == ACQUIRE_READY)
                *out_object = got.object;
        else
                out_wait->parked = ticket != NULL;
        return STATUS_OK;
}

Ticket *work_publish(EngineWork *work, void *take_object)
{
        return work->entry == NULL ? NULL : registry_publish(work->registry, work->entry, take_object);
}

Ticket *engine_work_do(EngineWork *take_work)
{
        return take_work->type->run(take_work);
}

Ticket *engine_work_drop(EngineWork *take_work)
{
        fail(STATUS_CANCELLED, "the build was given up");
        Ticket *tickets = work_publish(take_work, NULL);
        engine_work_unref(take_work);
        return tickets;
}

_Atomic int *engine_work_stop(EngineWork *work)
{
        return work->stop;
}

bool engine_work_insists(const EngineWork *work)
{
        return work->insists;
}

EngineWork *engine_work_ref(EngineWork *work)
{
        refcount_get(&work->ref);
        return work;
}

EngineWork *engine_work_unref(EngineWork *work)
{
        if (work != NULL && refcount_put(&work->ref))
                work->type->free(work);
        return NULL;
}
