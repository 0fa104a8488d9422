// SPDX-License-Identifier: Apache-2.0
// Selection and unstable sorting by the algorithms that PyTorch's CPU kernels use, most of them of
// the C++ library that its wheels are built with (libstdc++). They are written out here because
// which of two equal elements is chosen, and in which order they come, depends on every step. Keys
// ascend. When the run stops (Work), items are left in any order.
#pragma once
#include "core/kernels/run_context.h"

typedef struct SortItem {
        uint64_t key;
        int64_t index;
} SortItem;

// std::nth_element: items[nth] is the one of the sorted row, those before it have no larger keys.
// 0 <= nth < n.
void select_nth(Work *work, SortItem *items, int64_t n, int64_t nth);
// The same for kthvalue, by partitions alone: of the square of n steps if rows are made for that.
void select_kth(Work *work, SortItem *items, int64_t n, int64_t kth);
// std::sort.
void select_sort(Work *work, SortItem *items, int64_t n);
// std::partial_sort in parts: a heap of the first n >= 1 items, all further items one by one, the
// heap sorted at the end.
void select_heap(Work *work, SortItem *heap, int64_t n);
void select_heap_next(Work *work, SortItem *heap, int64_t n, SortItem item);
void select_heap_sort(Work *work, SortItem *heap, int64_t n);
