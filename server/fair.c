// SPDX-License-Identifier: Apache-2.0
// fair.c: start-time fair queueing. A flow that gets its first task starts at the time of the flow
// served last, so that nobody saves up time while idle; nor does it start much later, however long
// its last task took.
#include "server/fair.h"
#include "server/workers.h"

static const int64_t MOST_AHEAD_NS = 50000000, LEVEL_AGE_NS = 1000000000;

static int level_of(const Task *task)
{
        return task->level == 0 ? FAIR_LEVEL : task->level;
}

// What the flow is charged for such a time.
static int64_t weighed(int64_t ns, int level)
{
        return level >= FAIR_LEVEL ? ns << (level - FAIR_LEVEL) : ns >> (FAIR_LEVEL - level);
}

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
        FairLevel *level = &flow->levels[level_of(task)];
        if (flow->n_queued == 0)
                link_flow(queue, flow);
        task->next = NULL;
        task->previous = level->tail;
        *(level->tail != NULL ? &level->tail->next : &level->head) = task;
        level->tail = task;
        level->n_queued++;
        flow->n_queued++;
        flow->n_requests += task->is_request;
        queue->n_queued++;
        queue->n_held += task->hold_ns != 0;
}

void fair_remove(FairQueue *queue, Task *task)
{
        FairFlow *flow = fair_flow(queue, task->kind);
        FairLevel *level = &flow->levels[level_of(task)];
        *(task->previous != NULL ? &task->previous->next : &level->head) = task->next;
        *(task->next != NULL ? &task->next->previous : &level->tail) = task->previous;
        task->next = task->previous = NULL;
        level->n_queued--;
        flow->n_queued--;
        flow->n_requests -= task->is_request;
        queue->n_queued--;
        queue->n_held -= task->hold_ns != 0;
        if (flow->n_queued == 0)
                unlink_flow(queue, flow);
}

// ---- the next one ----
// As if it had come at this time.
static int64_t order_of(const Task *task)
{
        return task->queued_ns + (level_of(task) - FAIR_LEVEL) * LEVEL_AGE_NS;
}

static bool is_held(const FairFlow *flow, const Task *task, int64_t now_ns)
{
        return task->hold_ns > now_ns && flow->n_requests < task->hold_for;
}

// A held one keeps nobody back: the next one's deadline may be near, or it is another graph's whose
// kind falls on the same flow. Those that are held are fewer than `hold_for`.
static Task *first_of(const FairFlow *flow, int64_t now_ns)
{
        Task *first = NULL;
        for (int i = 1; i <= FAIR_LEVELS; i++) {
                Task *task = flow->levels[i].head;
                while (task != NULL && is_held(flow, task, now_ns))
                        task = task->next;
                if (task != NULL && (first == NULL || order_of(task) < order_of(first)))
                        first = task;
        }
        return first;
}

// Of two that have used as much, the one whose task came first.
static Task *next_within(const FairQueue *queue, int64_t least_ns, int64_t most_ns, int64_t now_ns)
{
        const FairFlow *least = NULL;
        Task *next = NULL;
        for (const FairFlow *flow = queue->first; flow != NULL; flow = flow->next) {
                if (flow->mean_ns < least_ns || flow->mean_ns > most_ns ||
                    (least != NULL && flow->used_ns > least->used_ns))
                        continue;
                Task *task = first_of(flow, now_ns);
                if (task == NULL ||
                    (least != NULL && flow->used_ns == least->used_ns && order_of(task) >= order_of(next)))
                        continue;
                least = flow;
                next = task;
        }
        return next;
}

Task *fair_next(const FairQueue *queue, int64_t now_ns)
{
        return next_within(queue, 0, INT64_MAX, now_ns);
}

Task *fair_next_short(const FairQueue *queue, int64_t most_ns, int64_t now_ns)
{
        return next_within(queue, 1, most_ns, now_ns); // 0: not known
}

static int64_t due_within(const FairQueue *queue, int64_t least_ns, int64_t most_ns)
{
        int64_t due_ns = INT64_MAX;
        for (const FairFlow *flow = queue->n_held == 0 ? NULL : queue->first; flow != NULL;
             flow = flow->next) {
                if (flow->mean_ns < least_ns || flow->mean_ns > most_ns)
                        continue;
                for (int i = 1; i <= FAIR_LEVELS; i++)
                        for (const Task *task = flow->levels[i].head; task != NULL; task = task->next)
                                due_ns = MIN(due_ns, task->hold_ns);
        }
        return due_ns;
}

int64_t fair_due_ns(const FairQueue *queue)
{
        return due_within(queue, 0, INT64_MAX);
}

int64_t fair_due_short_ns(const FairQueue *queue, int64_t most_ns)
{
        return due_within(queue, 1, most_ns);
}

Task *fair_walk(FairQueue *queue, uint64_t kind, FairPlaces *places)
{
        const FairFlow *flow = fair_flow(queue, kind);
        int first = 0;
        for (int i = 1; i <= FAIR_LEVELS; i++) {
                if (!places->begun)
                        places->at[i] = flow->levels[i].head;
                if (places->at[i] != NULL &&
                    (first == 0 || order_of(places->at[i]) < order_of(places->at[first])))
                        first = i;
        }
        places->begun = true;
        Task *task = places->at[first];
        if (task != NULL)
                places->at[first] = task->next;
        return task;
}

// ---- time ----
// The level by which a kind is charged: others of it that wait do not pay for one that has time.
static int charged_level(const FairFlow *flow, int level)
{
        for (int i = FAIR_LEVEL; i < level; i++)
                for (int k = 1; k <= i; k++)
                        if (flow->levels[k].n_queued > 0)
                                return i;
        return level;
}

int64_t fair_begin(FairQueue *queue, const Task *task)
{
        FairFlow *flow = fair_flow(queue, task->kind);
        int64_t charge_ns = weighed(flow->mean_ns, charged_level(flow, level_of(task)));
        queue->now_ns = MAX(queue->now_ns, flow->used_ns);
        flow->used_ns += charge_ns;
        return charge_ns;
}

static int64_t usual_of(const FairFlow *flow)
{
        int64_t sorted[FAIR_LATEST], sum_ns = 0;
        uint32_t n = MIN(flow->n_latest, (uint32_t)FAIR_LATEST), n_usual = n == 1 ? 1 : n - (n + 3) / 4;
        for (uint32_t i = 0, at; i < n; i++) {
                for (at = i; at > 0 && sorted[at - 1] > flow->latest_ns[i]; at--)
                        sorted[at] = sorted[at - 1];
                sorted[at] = flow->latest_ns[i];
        }
        for (uint32_t i = 0; i < n_usual; i++)
                sum_ns += sorted[i];
        return n_usual == 0 ? 0 : sum_ns / n_usual;
}

void fair_end(FairQueue *queue, const FairDone *done)
{
        FairFlow *flow = fair_flow(queue, done->kind);
        int64_t took_ns = done->n_tasks == 0 ? MIN(done->took_ns, MOST_AHEAD_NS) : done->took_ns;
        int64_t each_ns = done->took_ns / MAX(done->n_tasks, 1u);
        int level = charged_level(flow, done->level == 0 ? FAIR_LEVEL : done->level);
        flow->used_ns += weighed(took_ns, level) - done->charged_ns;
        if (done->n_tasks == 0)
                return;
        flow->mean_ns = flow->mean_ns == 0 ? each_ns : flow->mean_ns + (each_ns - flow->mean_ns) / 4;
        flow->latest_ns[flow->n_latest % FAIR_LATEST] = each_ns;
        flow->n_latest = flow->n_latest + 1 == 2 * FAIR_LATEST ? FAIR_LATEST : flow->n_latest + 1;
        flow->usual_ns = usual_of(flow);
}

int64_t fair_end_ns(const FairQueue *queue, uint64_t kind, int level, int n_workers)
{
        const FairFlow *own = &queue->flows[kind % FAIR_FLOWS];
        int64_t own_ns, ahead_ns = 0, n_before = 0;
        for (int i = 1; i <= (level == 0 ? FAIR_LEVEL : level); i++)
                n_before += own->levels[i].n_queued;
        if (__builtin_mul_overflow(n_before, own->usual_ns, &own_ns))
                return INT64_MAX;
        for (const FairFlow *flow = queue->first; flow != NULL; flow = flow->next) {
                int64_t ns; // others get as much time as this one, if they have work for so long
                if (__builtin_mul_overflow(flow->n_queued, flow->usual_ns, &ns) || ns > own_ns)
                        ns = own_ns;
                if (__builtin_add_overflow(ahead_ns, ns, &ahead_ns))
                        return INT64_MAX;
        }
        return ahead_ns / MAX(n_workers, 1) + own->usual_ns;
}
