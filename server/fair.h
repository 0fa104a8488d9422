// SPDX-License-Identifier: Apache-2.0
// The queue of the workers: tasks of one kind (the runs of one graph) in the order in which they
// came, the kinds by turns, so that each gets an equal share of the workers' time. The next task is
// one of the kind that has used the least time. So a graph whose runs are slow, or many, delays its
// own runs, and those of other graphs by little more than the runs under way. Not thread-safe: the
// pool's mutex guards it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Task Task; // workers.h

enum { FAIR_FLOWS = 256 }; // kinds that fall on the same flow share its time
typedef struct FairFlow {
        Task *head, *tail;
        int64_t n_queued, n_requests;
        int64_t used_ns; // virtual time: what its tasks took, at least what all others had at its start
        int64_t mean_ns; // of a task, of late; 0: not known
        struct FairFlow *next, *previous; // among those with tasks
} FairFlow;

typedef struct FairQueue {
        FairFlow flows[FAIR_FLOWS];
        FairFlow *first; // with tasks, in no order
        int64_t now_ns;  // virtual: used_ns of the flow that was served last
        int64_t n_queued;
} FairQueue;

// Behind all others of its kind.
void fair_add(FairQueue *queue, Task *task);
void fair_remove(FairQueue *queue, Task *task);
Task *fair_next(const FairQueue *queue); // that is to be removed next; NULL: none waits
// A task that was removed by fair_next is begun: its kind is charged what such a task took of late.
// Returns that charge, for the end.
int64_t fair_begin(FairQueue *queue, uint64_t kind);
// It took `took_ns`, and with it so many tasks in all; 0: it is no request, whose time would say
// when others end.
void fair_end(FairQueue *queue, uint64_t kind, int64_t charged_ns, int64_t took_ns, uint32_t n_tasks);
FairFlow *fair_flow(FairQueue *queue, uint64_t kind);
// When a further task of this kind would be begun by `n_workers`, in ns from now, and ended; as far
// as is known.
int64_t fair_end_ns(const FairQueue *queue, uint64_t kind, int n_workers);
