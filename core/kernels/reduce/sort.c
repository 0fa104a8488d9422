// SPDX-License-Identifier: Apache-2.0
// sort.c: values become unsigned keys whose order is the wanted one (floats: sign folded, NaN on
// top, zeros alike; descending: complemented), so that a stable sort of (key, index) is all that
// remains: insertion for very short rows, merge sort for short ones, and for others a radix sort of
// the bits that differ. Medians are selected by digits, from the highest on. The first elements of
// a row are those that PyTorch selects (select.h): where few of many are asked for, by a heap of
// that many, kept while the row goes by.
#include "core/kernels/reduce/sort.h"
#include <string.h>
#include "core/kernels/reduce/select.h"

typedef struct SortRun {
        const RunContext *ctx;
        const SortTask *task;
        _Atomic int failed;
} SortRun;

enum { INSERTION = 24, MERGE_STEPS = 4, MANY_TIMES = 64 };
// Digits of the keys, in bits; rows of at least RADIX_LEAST items are sorted by them.
enum { DIGIT = 8, WIDE_DIGIT = 11, RADIX_LEAST = 256, MANY_ITEMS = 32768, RADIX_STEPS = 4 };

static uint64_t key_f64(double value)
{
        if (value != value)
                return UINT64_MAX;
        union {
                double f;
                uint64_t u;
        } pun = { .f = value == 0 ? 0 : value };
        return (pun.u >> 63) != 0 ? ~pun.u : pun.u | (uint64_t)1 << 63;
}

static uint64_t key_of(Dtype dtype, const void *row, int64_t i)
{
        if (dtype == DTYPE_F32)
                return key_f64((double)((const float *)row)[i]);
        if (dtype == DTYPE_F64)
                return key_f64(((const double *)row)[i]);
        return (uint64_t)((const int64_t *)row)[i] ^ (uint64_t)1 << 63;
}

static void insertion_sort(SortItem *items, int64_t n)
{
        for (int64_t i = 1; i < n; i++) {
                SortItem item = items[i];
                int64_t at = i;
                for (; at > 0 && items[at - 1].key > item.key; at--)
                        items[at] = items[at - 1];
                items[at] = item;
        }
}

// Merges in blocks, so that long runs are polled; what is left of one side is copied.
static void merge(Work *work, const SortItem *left, int64_t n_left, const SortItem *right, int64_t n_right,
                  SortItem *out)
{
        const SortItem *left_end = left + n_left, *right_end = right + n_right,
                       *out_end = out + n_left + n_right;
        while (left < left_end && right < right_end) {
                int64_t n = MIN(MIN(left_end - left, right_end - right), (int64_t)WORK_BLOCK);
                if (work_stops(work, n * MERGE_STEPS))
                        return;
                for (const SortItem *stop = out + n; out < stop; out++)
                        *out = right->key < left->key ? *right++ : *left++;
        }
        const SortItem *rest = left < left_end ? left : right;
        for (int64_t at = 0, n = out_end - out, end; (end = work_end(work, at, n, 1)) > at; at = end)
                memcpy(out + at, rest + at, (size_t)(end - at) * sizeof(*out));
}

// Bottom-up: runs of INSERTION, then doubled; `other` is as large as `items`. Returns the array
// that holds the result.
static SortItem *merge_sort(Work *work, SortItem *items, SortItem *other, int64_t n)
{
        for (int64_t at = 0; at < n && !work_stops(work, INSERTION * INSERTION / 4); at += INSERTION)
                insertion_sort(items + at, MIN(n - at, (int64_t)INSERTION));
        for (int64_t width = INSERTION; width < n && !work->stops; width *= 2) {
                for (int64_t at = 0; at < n && !work->stops; at += 2 * width) {
                        int64_t left = MIN(width, n - at), right = MIN(width, n - at - left);
                        merge(work, items + at, left, items + at + left, right, other + at);
                }
                SortItem *swap = items;
                items = other;
                other = swap;
        }
        return items;
}

// ---- by digits of the keys ----
typedef struct Digit {
        uint64_t base; // subtracted from keys
        int shift, width;
} Digit;

static inline size_t digit_of(uint64_t key, const Digit *digit)
{
        return (key - digit->base) >> digit->shift & (((uint64_t)1 << digit->width) - 1);
}

// The least key, and the bits that are set in what the others are above it.
static uint64_t used_bits(Work *work, const SortItem *items, int64_t n, uint64_t *out_least)
{
        uint64_t least = UINT64_MAX, bits = 0;
        for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                for (int64_t i = at; i < end; i++)
                        least = MIN(least, items[i].key);
        for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                for (int64_t i = at; i < end; i++)
                        bits |= items[i].key - least;
        *out_least = least;
        return bits;
}

// Stable by one digit.
static void radix_pass(Work *work, const SortItem *items, int64_t n, Digit digit, SortItem *out)
{
        int64_t places[1 << WIDE_DIGIT] = { 0 }, sum = 0;
        for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                for (int64_t i = at; i < end; i++)
                        places[digit_of(items[i].key, &digit)]++;
        for (int64_t k = 0; k < (int64_t)1 << digit.width; k++) {
                int64_t count = places[k];
                places[k] = sum;
                sum += count;
        }
        if (work->stops) // counted in part
                return;
        for (int64_t at = 0, end; (end = work_end(work, at, n, RADIX_STEPS)) > at; at = end)
                for (int64_t i = at; i < end; i++)
                        out[places[digit_of(items[i].key, &digit)]++] = items[i];
}

// As merge_sort.
static SortItem *radix_sort(Work *work, SortItem *items, SortItem *other, int64_t n)
{
        Digit digit = { .width = n < MANY_ITEMS ? DIGIT : WIDE_DIGIT };
        uint64_t bits = used_bits(work, items, n, &digit.base);
        while (bits >> digit.shift != 0 && !work->stops) {
                digit.shift += __builtin_ctzll(bits >> digit.shift);
                radix_pass(work, items, n, digit, other);
                SortItem *swap = items;
                items = other;
                other = swap;
                digit.shift += digit.width;
                if (digit.shift >= 64)
                        break;
        }
        return items;
}

static SortItem *stable_sort(Work *work, SortItem *items, SortItem *other, int64_t n)
{
        return n < RADIX_LEAST ? merge_sort(work, items, other, n) : radix_sort(work, items, other, n);
}

// Key number *inout_kth of the sorted keys. The number becomes the one among those that are equal.
// Destroys the keys.
static uint64_t radix_select(Work *work, uint64_t *keys, int64_t n, int64_t *inout_kth)
{
        int64_t kth = *inout_kth;
        Digit digit = { .shift = 64 - DIGIT, .width = DIGIT };
        for (; digit.shift >= 0 && n > 1; digit.shift -= DIGIT) {
                int64_t counts[1 << DIGIT] = { 0 }, n_kept = 0;
                for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                        for (int64_t i = at; i < end; i++)
                                counts[digit_of(keys[i], &digit)]++;
                if (work->stops)
                        break;
                size_t wanted = 0;
                for (; kth >= counts[wanted]; wanted++)
                        kth -= counts[wanted];
                for (int64_t at = 0, end; (end = work_end(work, at, n, 1)) > at; at = end)
                        for (int64_t i = at; i < end; i++) {
                                keys[n_kept] = keys[i];
                                n_kept += digit_of(keys[i], &digit) == wanted;
                        }
                n = counts[wanted];
        }
        *inout_kth = kth;
        return keys[0];
}

static SortItem item_of(const SortTask *task, const void *row, int64_t i)
{
        return (SortItem){ key_of(task->dtype, row, i) ^ (task->descending ? UINT64_MAX : 0), i };
}

static void read_items(const SortTask *task, Work *work, int64_t n, const void *row, SortItem *items)
{
        for (int64_t from = 0, end; (end = work_end(work, from, n, 2)) > from; from = end) {
                for (int64_t i = from; i < end; i++)
                        items[i] = item_of(task, row, i);
        }
}

// Which of the stable sorted row the median is; NaNs are its end.
static int64_t median_place(const SortTask *task, int64_t n, int64_t n_nans)
{
        if (task->way == SORT_MEDIAN && n_nans > 0)
                return n - n_nans;
        return (MAX(n - n_nans, (int64_t)1) - 1) / 2;
}

static bool is_nan_key(const SortTask *task, uint64_t key)
{
        return key == UINT64_MAX && task->dtype != DTYPE_I64;
}

static SortItem *short_median(const SortTask *task, Work *work, int64_t n, const void *row, SortItem *items)
{
        int64_t n_nans = 0;
        read_items(task, work, n, row, items);
        items = merge_sort(work, items, items + n, n);
        while (n_nans < n && is_nan_key(task, items[n - 1 - n_nans].key))
                n_nans++;
        return items + median_place(task, n, n_nans);
}

// Selects among keys alone, then looks for the key in the row. Returns the item.
static SortItem *long_median(const SortTask *task, Work *work, int64_t n, const void *row, SortItem *items)
{
        uint64_t *keys = (uint64_t *)(void *)items;
        int64_t n_nans = 0;
        for (int64_t at = 0, end; (end = work_end(work, at, n, 2)) > at; at = end) {
                for (int64_t i = at; i < end; i++) {
                        keys[i] = key_of(task->dtype, row, i);
                        n_nans += is_nan_key(task, keys[i]);
                }
        }
        int64_t left = median_place(task, n, n_nans), found = -1;
        uint64_t key = radix_select(work, keys, n, &left);
        for (int64_t at = 0, end; found < 0 && (end = work_end(work, at, n, 2)) > at; at = end) {
                for (int64_t i = at; i < end && found < 0; i++) {
                        if (key_of(task->dtype, row, i) == key && left-- == 0)
                                found = i;
                }
        }
        items[0] = (SortItem){ key, found };
        return items;
}

static void keep_first(const SortTask *task, Work *work, int64_t n, const void *row, SortItem *heap)
{
        int64_t n_kept = task->n_out;
        read_items(task, work, n_kept, row, heap);
        select_heap(work, heap, n_kept);
        for (int64_t i = n_kept; i < n && !work_stops(work, 2); i++)
                select_heap_next(work, heap, n_kept, item_of(task, row, i));
        select_heap_sort(work, heap, n_kept);
}

// Returns the array that holds the result: `items`, or the n items behind it for SORT_STABLE.
static SortItem *sort_items(const SortTask *task, Work *work, int64_t n, SortItem *items)
{
        switch (task->way) {
        case SORT_STABLE:
                return stable_sort(work, items, items + n, n);
        case SORT_FIRST:
                select_nth(work, items, n, task->n_out - 1);
                select_sort(work, items, task->n_out - 1);
                break;
        case SORT_SELECT:
                select_nth(work, items, n, task->n_out - 1);
                break;
        case SORT_LIKE_MODE:
                select_sort(work, items, n);
                break;
        case SORT_KTH:
                select_kth(work, items, n, task->kth);
                break;
        case SORT_MEDIAN:
        case SORT_NANMEDIAN:
                break;
        }
        return items;
}

static void write_row(const SortTask *task, Work *work, int64_t index, const void *row, const SortItem *items)
{
        int64_t at = index / task->inner * task->n_out * task->inner + index % task->inner;
        for (int64_t i = 0; i < task->n_out && !work_stops(work, 8); i++, at += task->inner) {
                int64_t from = items[i].index;
                task->indices[at] = from;
                if (task->values == NULL)
                        continue;
                if (task->dtype == DTYPE_F32)
                        ((float *)task->values)[at] = ((const float *)row)[from];
                else
                        ((uint64_t *)task->values)[at] = ((const uint64_t *)row)[from];
        }
}

static void sort_row(const void *context, Work *work, int64_t index, int64_t n, const void *row)
{
        SortRun *run = (SortRun *)(uintptr_t)context;
        const SortTask *task = run->task;
        bool is_top = task->way == SORT_FIRST || task->way == SORT_SELECT;
        bool few = is_top && task->n_out <= n / MANY_TIMES,
             is_median = task->way == SORT_MEDIAN || task->way == SORT_NANMEDIAN,
             twice = task->way == SORT_STABLE || (is_median && n < RADIX_LEAST);
        int64_t n_items = few ? task->n_out : MAX(n, (int64_t)1) * (twice ? 2 : 1);
        Scratch scratch;
        if (scratch_init(&scratch, run->ctx, n_items, sizeof(SortItem)) != STATUS_OK) {
                atomic_store(&run->failed, 1);
                return;
        }
        SortItem *items = scratch.data;
        if (few) {
                keep_first(task, work, n, row, items);
        } else if (is_median) {
                items = (n < RADIX_LEAST ? short_median : long_median)(task, work, n, row, items);
        } else {
                read_items(task, work, n, row, items);
                items = sort_items(task, work, n, items);
        }
        if (!work->stops)
                write_row(task, work, index, row, items);
        scratch_deinit(&scratch);
}

Status sort_rows(const RunContext *ctx, const RowPlan *plan, const SortTask *task, const void *data)
{
        if (task->n_out == 0)
                return STATUS_OK;
        SortRun run = { .ctx = ctx, .task = task };
        TRY(rows_visit(ctx, plan, dtype_info[task->dtype].bytes, data, sort_row, &run));
        if (atomic_load(&run.failed))
                return fail(STATUS_TOO_LARGE, "sorting has no working memory left; send smaller inputs or "
                                              "start the server with a larger --max-run-memory");
        return STATUS_OK;
}
