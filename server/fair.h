// SPDX-License-Identifier: Apache-2.0
// The queue of the workers: tasks of one kind (the runs of one graph) in the order in which they
// came, the kinds by turns, so that each gets an equal share of the workers' time. The next task is
// one of the kind that has used the least time. So a graph whose runs are slow, or many, delays its
// own runs, and those of other graphs by little more than the runs under way.
//
// Levels, 1 first, change both orders, and no task waits for ever: within a kind a task counts as
// having waited LEVEL_AGE_NS longer than one of the next level; among kinds the time of a task
// counts half of what it would at the next level. A task may be held, so that others join it, while
// other kinds go on. Not thread-safe: the pool's mutex guards it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Task Task; // workers.h

enum { FAIR_FLOWS = 256 };                // kinds that fall on the same flow share its time
enum { FAIR_LEVELS = 9, FAIR_LEVEL = 5 }; // 1 to FAIR_LEVELS; that of whatever says none
enum { FAIR_LATEST = 16 };                // tasks by which a further one's end is told
typedef struct FairLevel {
        Task *head, *tail;
        int64_t n_queued;
} FairLevel;
typedef struct FairFlow {
        FairLevel levels[FAIR_LEVELS + 1]; // [0] is unused
        int64_t n_queued, n_requests;
        int64_t used_ns; // virtual time: what its tasks took, at least what all others had at its start
        int64_t mean_ns; // of a task, of late; 0: not known
        // The mean of the latest tasks without their longest quarter: those in which something was
        // built, or the machine stood still, do not say how long the next ones take.
        int64_t usual_ns, latest_ns[FAIR_LATEST];
        uint32_t n_latest;
        struct FairFlow *next, *previous; // among those with tasks
} FairFlow;

typedef struct FairQueue {
        FairFlow flows[FAIR_FLOWS];
        FairFlow *first;          // with tasks, in no order
        int64_t now_ns;           // virtual: used_ns of the flow that was served last
        int64_t n_queued, n_held; // n_held: tasks with hold_ns, whether that is over or not
} FairQueue;

// Behind all others of its kind and level.
void fair_add(FairQueue *queue, Task *task);
void fair_remove(FairQueue *queue, Task *task);
// That is to be removed next; NULL: none waits, or all are held at this time (INT64_MAX: none is).
Task *fair_next(const FairQueue *queue, int64_t now_ns);
// The same of kinds whose tasks took at most `most_ns` of late.
Task *fair_next_short(const FairQueue *queue, int64_t most_ns, int64_t now_ns);
// When the first held one may go, and when the first of such kinds; INT64_MAX: none is held.
int64_t fair_due_ns(const FairQueue *queue);
int64_t fair_due_short_ns(const FairQueue *queue, int64_t most_ns);
// The next one of this kind in order, held or not, behind `places`, which are zeroed first. It may
// be removed before the next call.
typedef struct FairPlaces {
        bool begun;
        Task *at[FAIR_LEVELS + 1];
} FairPlaces;
Task *fair_walk(FairQueue *queue, uint64_t kind, FairPlaces *places);
// A task that fair_next gave is begun: its kind is charged what such a task took of late.
// Returns that charge, for the end.
int64_t fair_begin(FairQueue *queue, const Task *task);
// It took `took_ns`, and with it so many tasks in all; 0: it is no request, whose time would say
// when others end.
typedef struct FairDone {
        uint64_t kind;
        int level;
        int64_t charged_ns, took_ns;
        uint32_t n_tasks;
} FairDone;
void fair_end(FairQueue *queue, const FairDone *done);
FairFlow *fair_flow(FairQueue *queue, uint64_t kind);
// When a further task of this kind and level would be begun by `n_workers`, in ns from now, and
// ended; as far as is known.
int64_t fair_end_ns(const FairQueue *queue, uint64_t kind, int level, int n_workers);
