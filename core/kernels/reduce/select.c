// SPDX-License-Identifier: Apache-2.0
// select.c: heaps whose root is the largest; quicksort by the median of three, which falls back to
// a heap after 2 log2(n) partitions that were uneven, and leaves ranges of 16 to an insertion sort.
#include "core/kernels/reduce/select.h"

enum { SHORT = 16, SHORTEST = 3, HEAP_STEPS = 128 };

static void swap(SortItem *a, SortItem *b)
{
        SortItem item = *a;
        *a = *b;
        *b = item;
}

static int64_t partitions_allowed(int64_t n)
{
        return 2 * (63 - __builtin_clzll((unsigned long long)n));
}

// ---- heaps ----
// The hole moves down to a leaf, then `item` up from there.
static void fill_hole(SortItem *heap, int64_t hole, int64_t n, SortItem item)
{
        int64_t top = hole, child = hole;
        while (child < (n - 1) / 2) {
                child = 2 * child + 2;
                if (heap[child].key < heap[child - 1].key)
                        child--;
                heap[hole] = heap[child];
                hole = child;
        }
        if (n % 2 == 0 && child == (n - 2) / 2) { // that has one child
                heap[hole] = heap[2 * child + 1];
                hole = 2 * child + 1;
        }
        for (; hole > top && heap[(hole - 1) / 2].key < item.key; hole = (hole - 1) / 2)
                heap[hole] = heap[(hole - 1) / 2];
        heap[hole] = item;
}

void select_heap(Work *work, SortItem *heap, int64_t n)
{
        for (int64_t parent = n / 2 - 1; parent >= 0 && !work_stops(work, HEAP_STEPS); parent--)
                fill_hole(heap, parent, n, heap[parent]);
}

void select_heap_next(Work *work, SortItem *heap, int64_t n, SortItem item)
{
        if (item.key >= heap[0].key)
                return;
        fill_hole(heap, 0, n, item);
        work->steps += HEAP_STEPS;
}

void select_heap_sort(Work *work, SortItem *heap, int64_t n)
{
        for (int64_t last = n - 1; last > 0 && !work_stops(work, HEAP_STEPS); last--) {
                SortItem item = heap[last];
                heap[last] = heap[0];
                fill_hole(heap, 0, last, item);
        }
}

// items[n_kept - 1] becomes that of the sorted row.
static void select_by_heap(Work *work, SortItem *items, int64_t n, int64_t n_kept)
{
        select_heap(work, items, n_kept);
        for (int64_t i = n_kept; i < n && !work_stops(work, 2); i++)
                select_heap_next(work, items, n_kept, items[i]);
        swap(&items[0], &items[n_kept - 1]);
}

// ---- partitions ----
// The median of the second, the middle and the last item becomes the first.
static void choose_pivot(SortItem *items, int64_t n)
{
        SortItem *a = &items[1], *b = &items[n / 2], *c = &items[n - 1];
        SortItem *low = a->key < b->key ? a : b, *high = low == a ? b : a;
        swap(&items[0], high->key < c->key ? high : low->key < c->key ? c : low);
}

// Returns where the part that is not before the pivot begins, which is items[0].
static int64_t partition(Work *work, SortItem *items, int64_t n)
{
        choose_pivot(items, n);
        uint64_t pivot = items[0].key;
        int64_t first = 1, last = n;
        for (;; first++) {
                while (items[first].key < pivot && !work_stops(work, 1))
                        first++;
                last--;
                while (pivot < items[last].key && !work_stops(work, 1))
                        last--;
                if (first >= last || work_stops(work, 2))
                        return first;
                swap(&items[first], &items[last]);
        }
}

static void insert(SortItem *items, int64_t n_sorted)
{
        SortItem item = items[n_sorted];
        int64_t at = n_sorted;
        for (; at > 0 && item.key < items[at - 1].key; at--)
                items[at] = items[at - 1];
        items[at] = item;
}

void select_nth(Work *work, SortItem *items, int64_t n, int64_t nth)
{
        for (int64_t left = partitions_allowed(n); n > SHORTEST && !work->stops; left--) {
                if (left == 0) {
                        select_by_heap(work, items, n, nth + 1);
                        return;
                }
                int64_t cut = partition(work, items, n);
                bool after = cut <= nth;
                items += after ? cut : 0;
                nth -= after ? cut : 0;
                n = after ? n - cut : cut;
        }
        for (int64_t i = 1; i < n && !work->stops; i++) // else up to n are left
                insert(items, i);
}

static void order(SortItem *low, SortItem *high)
{
        if (low->key > high->key)
                swap(low, high);
}

void select_kth(Work *work, SortItem *items, int64_t n, int64_t kth)
{
        int64_t first = 0, last = n - 1;
        while (last > first + 1 && !work->stops) {
                // The median of the first, the middle and the last item becomes the first.
                swap(&items[first + (last - first) / 2], &items[first + 1]);
                order(&items[first + 1], &items[last]);
                order(&items[first], &items[last]);
                order(&items[first + 1], &items[first]);
                uint64_t pivot = items[first].key;
                int64_t low = first + 1, high = last;
                for (;;) {
                        do
                                low++;
                        while (pivot > items[low].key && !work_stops(work, 1));
                        do
                                high--;
                        while (items[high].key > pivot && !work_stops(work, 1));
                        if (high < low || work_stops(work, 2))
                                break;
                        swap(&items[low], &items[high]);
                }
                swap(&items[first], &items[high]);
                if (high <= kth)
                        first = low;
                if (high >= kth)
                        last = high - 1;
        }
        if (last == first + 1)
                order(&items[first], &items[last]);
}

// Ranges of at most SHORT items are left unsorted, each behind those with smaller keys. Recurses at
// most `left` times.
static void sort_roughly(Work *work, SortItem *items, int64_t n, int64_t left)
{
        for (; n > SHORT && !work->stops; left--) {
                if (left == 0) {
                        select_heap(work, items, n);
                        select_heap_sort(work, items, n);
                        return;
                }
                int64_t cut = partition(work, items, n);
                sort_roughly(work, items + cut, n - cut, left - 1);
                n = cut;
        }
}

void select_sort(Work *work, SortItem *items, int64_t n)
{
        if (n > 1)
                sort_roughly(work, items, n, partitions_allowed(n));
        for (int64_t i = 1; i < n && !work_stops(work, SHORT); i++)
                insert(items, i);
}
