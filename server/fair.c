// SPDX-License-Identifier: Apache-2.0
// fair.c: start-time fair queueing. A flow that gets its first task starts at the time of the flow
// served last, so that nobody saves up time while idle; nor does it start much later, however long
// its last task took.
#include "server/fair.h"
#include "server/workers.h"

static const int64_t MOST_AHEAD_NS = 50000000;

FairFlow *fair_flow(FairQueue *queue, uint64_t kind)
{
        return &queue->flows[kind % FAIR_FLOWS];
}

static void link_flow(FairQueue *queue, FairFlow *flow)
{
        flow->used_ns = MIN(MAX(flow->used_ns, queue->now_ns), queue->now_ns + MOST_AHEAD_NS);
        flow->previous = NULL;
        flow->next = queue->first;
        if (queue->first != NULL)
                queue->first->previous = flow;
        queue->first = flow;
}

static void unlink_flow(FairQueue *queue, FairFlow *flow)
{
        *(flow->previous != NULL ? &flow->previous->next : &queue->first) = flow->next;
        if (flow->next != NULL)
                flow->next->previous = flow->previous;
        flow->next = flow->previous = NULL;
}

void fair_add(FairQueue *queue, Task *task)
{
        FairFlow *flow = fair_flow(queue, task->kind);
        if (flow->head == NULL)
                link_flow(queue, flow);
        task->next = NULL;
        task->previous = flow->tail;
        *(flow->tail != NULL ? &flow->tail->next : &flow->head) = task;
        flow->tail = task;
        flow->n_queued++;
        flow->n_requests += task->is_request;
        queue->n_queued++;
}

void fair_remove(FairQueue *queue, Task *task)
{
        FairFlow *flow = fair_flow(queue, task->kind);
        *(task->previous != NULL ? &task->previous->next : &flow->head) = task->next;
        *(task->next != NULL ? &task->next->previous : &flow->tail) = task->previous;
        task->next = task->previous = NULL;
        flow->n_queued--;
        flow->n_requests -= task->is_request;
        queue->n_queued--;
        if (flow->head == NULL)
                unlink_flow(queue, flow);
}

// Of two that have used as much, the one whose task came first.
Task *fair_next(const FairQueue *queue)
{
        const FairFlow *least = queue->first;
        for (const FairFlow *flow = least; flow != NULL; flow = flow->next)
                if (flow->used_ns < least->used_ns ||
                    (flow->used_ns == least->used_ns && flow->head->queued_ns < least->head->queued_ns))
                        least = flow;
        return least == NULL ? NULL : least->head;
}

int64_t fair_begin(FairQueue *queue, uint64_t kind)
{
        FairFlow *flow = fair_flow(queue, kind);
        queue->now_ns = MAX(queue->now_ns, flow->used_ns);
        flow->used_ns += flow->mean_ns;
        return flow->mean_ns;
}

void fair_end(FairQueue *queue, uint64_t kind, int64_t charged_ns, int64_t took_ns, uint32_t n_tasks)
{
        FairFlow *flow = fair_flow(queue, kind);
        int64_t each_ns = took_ns / MAX(n_tasks, 1u);
        flow->used_ns += (n_tasks == 0 ? MIN(took_ns, MOST_AHEAD_NS) : took_ns) - charged_ns;
        if (n_tasks == 0)
                return;
        flow->mean_ns = flow->mean_ns == 0 ? each_ns : flow->mean_ns + (each_ns - flow->mean_ns) / 4;
}

int64_t fair_end_ns(const FairQueue *queue, uint64_t kind, int n_workers)
{
        const FairFlow *own = &queue->flows[kind % FAIR_FLOWS];
        int64_t own_ns, ahead_ns = 0;
        if (__builtin_mul_overflow(own->n_queued, own->mean_ns, &own_ns))
                return INT64_MAX;
        for (const FairFlow *flow = queue->first; flow != NULL; flow = flow->next) {
                int64_t ns; // others get as much time as this one, if they have work for so long
                if (__builtin_mul_overflow(flow->n_queued, flow->mean_ns, &ns) || ns > own_ns)
                        ns = own_ns;
                if (__builtin_add_overflow(ahead_ns, ns, &ahead_ns))
                        return INT64_MAX;
        }
        return ahead_ns / MAX(n_workers, 1) + own->mean_ns;
}
