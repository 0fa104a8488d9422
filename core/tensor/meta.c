// SPDX-License-Identifier: Apache-2.0
// meta.c: shapes and strides; no bytes are touched. Sizes in a TensorMeta were checked when it was
// made (shape_numel), so products of them fit.
#include "core/tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/base/number.h"

void meta_init(TensorMeta *meta, Dtype dtype, int rank, const int64_t *size)
{
        *meta = (TensorMeta){ .dtype = dtype, .rank = (uint8_t)rank };
        if (rank > 0)
                memcpy(meta->size, size, (size_t)rank * sizeof(*size));
        meta_set_contiguous(meta);
}

void meta_set_contiguous(TensorMeta *meta)
{
        uint64_t stride = 1; // wraps, as in PyTorch, where a tensor without elements has huge sizes
        for (int d = meta->rank - 1; d >= 0; d--) {
                meta->stride[d] = (int64_t)stride;
                stride *= (uint64_t)MAX(meta->size[d], 1);
        }
}

bool meta_is_contiguous(const TensorMeta *meta)
{
        uint64_t expected = 1; // wraps where a size is 0 only
        bool contiguous = true;
        for (int d = meta->rank - 1; d >= 0; d--) {
                if (meta->size[d] == 0)
                        return true;
                if (meta->size[d] != 1 && (uint64_t)meta->stride[d] != expected)
                        contiguous = false;
                expected *= (uint64_t)meta->size[d];
        }
        return contiguous;
}

bool meta_same_shape(const TensorMeta *a, const TensorMeta *b)
{
        return a->rank == b->rank &&
               (a->rank == 0 || memcmp(a->size, b->size, a->rank * sizeof(a->size[0])) == 0);
}

bool meta_same_places(const TensorMeta *a, const TensorMeta *b)
{
        bool same = meta_same_shape(a, b);
        for (int d = 0; same && d < a->rank; d++)
                same = a->size[d] <= 1 || a->stride[d] == b->stride[d];
        return same;
}

bool meta_lies_channels_last(const TensorMeta *meta)
{
        TensorMeta image = *meta;
        meta_set_channels_last(&image);
        return meta_same_places(&image, meta);
}

bool meta_lies_by_pixels(const TensorMeta *meta)
{
        const int64_t *size = meta->size, *stride = meta->stride;
        return meta->rank == 4 && stride[1] == 1 && stride[3] >= size[1] &&
               stride[2] >= size[3] * stride[3] && (size[0] == 1 || stride[0] >= size[2] * stride[2]);
}

int64_t meta_numel(const TensorMeta *meta)
{
        uint64_t numel = 1; // wraps on the way to 0 only
        for (int d = 0; d < meta->rank; d++)
                numel *= (uint64_t)meta->size[d];
        return (int64_t)numel;
}

typedef struct Strides {
        int64_t of[MAX_RANK];
} Strides;

// Which of two dimensions lies further in, decided as PyTorch does: by the first operand whose
// strides differ there. A stride of 0 (broadcast) decides nothing; equal strides put the longer
// dimension outside. Negative: a is already inside b. Positive: they should change places.
static int compare_dims(const int64_t *size, const Strides *strides, int n, int a, int b)
{
        for (int i = 0; i < n; i++) {
                int64_t stride_a = strides[i].of[a], stride_b = strides[i].of[b];
                if (stride_a == 0 || stride_b == 0)
                        continue;
                if (stride_a != stride_b)
                        return stride_a < stride_b ? -1 : 1;
                if (size[a] > size[b])
                        return 1;
        }
        return 0;
}

// Dense strides in the order that the operands' strides ask for.
static void set_ordered_strides(TensorMeta *meta, const Strides *strides, int n)
{
        int order[MAX_RANK];
        for (int i = 0; i < meta->rank; i++)
                order[i] = meta->rank - 1 - i;
        for (int i = 1; i < meta->rank; i++) {
                int at = i;
                for (int below = i - 1; below >= 0; below--) {
                        int compared = compare_dims(meta->size, strides, n, order[below], order[at]);
                        if (compared < 0)
                                break;
                        if (compared == 0)
                                continue;
                        int swap = order[below];
                        order[below] = order[at];
                        order[at] = swap;
                        at = below;
                }
        }
        int64_t stride = 1;
        for (int i = 0; i < meta->rank; i++) {
                meta->stride[order[i]] = stride;
                stride *= MAX(meta->size[order[i]], 1);
        }
}

static void channels_last_order(int rank, int out_order[5])
{
        static const int order_4[] = { 1, 3, 2, 0 }, order_5[] = { 1, 4, 3, 2, 0 };
        memcpy(out_order, rank == 4 ? order_4 : order_5, (size_t)rank * sizeof(int));
}

// Dense with channels innermost; strides of dimensions of size 1 do not matter.
static bool is_dense_channels_last(const TensorMeta *meta)
{
        int order[5];
        channels_last_order(meta->rank, order);
        int64_t expected = 1;
        for (int i = 0; i < meta->rank; i++) {
                int d = order[i];
                if (meta->size[d] != 1 && meta->stride[d] != expected)
                        return false;
                expected *= meta->size[d];
        }
        return expected > 0;
}

bool meta_is_channels_last(const TensorMeta *meta)
{
        if ((meta->rank != 4 && meta->rank != 5) || meta->stride[1] == 0 || !is_dense_channels_last(meta))
                return false;
        int order[5];
        channels_last_order(meta->rank, order);
        int64_t least = 0;
        for (int i = 0; i < meta->rank; i++) {
                int d = order[i];
                // Shapes such as [N, 1, 1, W] read both ways; PyTorch takes them as channels first.
                if (meta->stride[d] < least || (d == 0 && least == meta->stride[1]))
                        return false;
                least = meta->stride[d] * meta->size[d];
        }
        return true;
}

static bool same_strides(const TensorMeta *a, const TensorMeta *b)
{
        return memcmp(a->stride, b->stride, a->rank * sizeof(a->stride[0])) == 0;
}

// Operands of one shape whose layouts agree keep that layout.
static bool set_common_layout(TensorMeta *meta, const TensorMeta *const *operands, int n)
{
        bool contiguous = true, channels_last = true, dense = true;
        for (int i = 0; i < n; i++) {
                if (!meta_same_shape(meta, operands[i]))
                        return false;
                contiguous &= meta_is_contiguous(operands[i]);
                channels_last &= operands[i]->rank == 4 && is_dense_channels_last(operands[i]);
                dense &= same_strides(operands[0], operands[i]) &&
                         meta_is_non_overlapping_and_dense(operands[i]);
        }
        if (contiguous)
                meta_set_contiguous(meta);
        else if (channels_last)
                meta_set_channels_last(meta);
        else if (dense)
                memcpy(meta->stride, operands[0]->stride, sizeof(meta->stride));
        return contiguous || channels_last || dense;
}

void meta_set_strides_elementwise(TensorMeta *meta, const TensorMeta *const *operands, int n)
{
        enum { MAX_OPERANDS = 8 };
        if (set_common_layout(meta, operands, n))
                return;
        Strides strides[MAX_OPERANDS] = { 0 };
        for (int i = 0; i < n && i < MAX_OPERANDS; i++) {
                int lead = meta->rank - operands[i]->rank;
                for (int d = lead; d < meta->rank; d++) {
                        bool broadcast = operands[i]->size[d - lead] == 1 && meta->size[d] != 1;
                        strides[i].of[d] = broadcast ? 0 : operands[i]->stride[d - lead];
                }
        }
        set_ordered_strides(meta, strides, MIN(n, MAX_OPERANDS));
}

void meta_set_strides_like(TensorMeta *meta, const TensorMeta *like)
{
        if (!meta_same_shape(meta, like)) {
                meta_set_contiguous(meta);
                return;
        }
        if (meta_is_non_overlapping_and_dense(like)) {
                memcpy(meta->stride, like->stride, sizeof(meta->stride));
                return;
        }
        Strides strides;
        memcpy(strides.of, like->stride, sizeof(strides.of));
        set_ordered_strides(meta, &strides, 1);
}

void meta_set_channels_last(TensorMeta *meta)
{
        int order[5];
        channels_last_order(meta->rank, order);
        int64_t stride = 1;
        for (int i = 0; i < meta->rank; i++) {
                meta->stride[order[i]] = stride;
                stride *= MAX(meta->size[order[i]], 1);
        }
}

bool meta_is_non_overlapping_and_dense(const TensorMeta *meta)
{
        if (meta_is_contiguous(meta))
                return true;
        // Each dimension longer than 1 must start where the ones inside it end: look for it by its
        // stride.
        int64_t expected = 1;
        int n_left = 0;
        bool used[MAX_RANK] = { false };
        for (int d = 0; d < meta->rank; d++) {
                used[d] = meta->size[d] == 1;
                n_left += !used[d];
        }
        while (n_left > 0) {
                int found = -1;
                for (int d = 0; d < meta->rank && found < 0; d++) {
                        if (!used[d] && meta->stride[d] == expected)
                                found = d;
                }
                if (found < 0)
                        return false;
                used[found] = true;
                expected *= meta->size[found];
                n_left--;
        }
        return true;
}

Status shape_numel(int rank, const int64_t *size, int64_t *out_numel)
{
        char text[256];
        int64_t numel = 1, padded = 1; // strides are products too: bounded with sizes of 0 counted as 1
        for (int d = 0; d < rank; d++) {
                if (size[d] < 0) {
                        return fail(STATUS_VALUE,
                                    "Trying to create tensor with negative dimension %" PRId64 ": %s",
                                    size[d], shape_text(rank, size, text, sizeof(text)));
                }
                if (!mul_i64(padded, MAX(size[d], 1), &padded) || padded > limits.max_numel) {
                        return fail(STATUS_TOO_LARGE,
                                    "a tensor of shape %s has more than %" PRId64
                                    " elements (max_numel in GET /v1)",
                                    shape_text(rank, size, text, sizeof(text)), limits.max_numel);
                }
                numel *= size[d];
        }
        *out_numel = numel;
        return STATUS_OK;
}

Status meta_span(const TensorMeta *meta, int64_t *out_elements)
{
        int64_t last = 0;
        bool empty = false;
        for (int d = 0; d < meta->rank; d++) {
                int64_t step;
                if (meta->size[d] < 0 || meta->stride[d] < 0)
                        return fail(STATUS_VALUE, "sizes and strides of a tensor must not be negative");
                if (meta->size[d] == 0) {
                        empty = true;
                        continue;
                }
                if (!mul_i64(meta->size[d] - 1, meta->stride[d], &step) || !add_i64(last, step, &last))
                        return fail(STATUS_TOO_LARGE,
                                    "the strides of a tensor span more bytes than can be addressed");
        }
        if (!add_i64(last, 1, &last))
                return fail(STATUS_TOO_LARGE,
                            "the strides of a tensor span more bytes than can be addressed");
        *out_elements = empty ? 0 : last;
        return STATUS_OK;
}

Status shape_broadcast(const TensorMeta *a, const TensorMeta *b, int *out_rank, int64_t out_size[MAX_RANK])
{
        int rank = MAX(a->rank, b->rank);
        int64_t size[MAX_RANK] = { 0 };
        for (int d = rank - 1; d >= 0; d--) {
                int from_a = d - (rank - a->rank), from_b = d - (rank - b->rank);
                int64_t size_a = from_a < 0 ? 1 : a->size[from_a];
                int64_t size_b = from_b < 0 ? 1 : b->size[from_b];
                if (size_a != size_b && size_a != 1 && size_b != 1) {
                        return fail(STATUS_SHAPE,
                                    "The size of tensor a (%" PRId64
                                    ") must match the size of tensor b (%" PRId64
                                    ") at non-singleton dimension %d",
                                    size_a, size_b, d);
                }
                size[d] = size_a == 1 ? size_b : size_a;
        }
        int64_t numel;
        TRY(shape_numel(rank, size, &numel));
        if (rank > 0)
                memcpy(out_size, size, (size_t)rank * sizeof(size[0]));
        *out_rank = rank;
        return STATUS_OK;
}

// What fits of a text, behind the first `n` of `cap` characters.
static size_t append(char *out, size_t cap, size_t n, const char *text, size_t n_text)
{
        size_t fitting = MIN(n_text, cap - 1 - n);
        memcpy(out + n, text, fitting);
        return n + fitting;
}

const char *shape_text(int rank, const int64_t *size, char *out, size_t cap)
{
        size_t n = append(out, cap, 0, "[", 1);
        for (int d = 0; d < rank; d++) {
                char number[NUMBER_TEXT_MAX];
                if (d > 0)
                        n = append(out, cap, n, ", ", 2);
                n = append(out, cap, n, number, number_print_i64(size[d], number));
        }
        n = append(out, cap, n, "]", 1);
        out[n] = '\0';
        return out;
}

Status dim_wrap(int64_t dim, int rank, int *out_dim)
{
        int64_t range = MAX(rank, 1);
        if (dim < -range || dim >= range) {
                return fail(STATUS_VALUE,
                            "Dimension out of range (expected to be in range of [%" PRId64 ", %" PRId64
                            "], but got %" PRId64 ")",
                            -range, range - 1, dim);
        }
        *out_dim = (int)(dim < 0 ? dim + range : dim);
        return STATUS_OK;
}

bool meta_view_strides(const TensorMeta *meta, int rank, const int64_t *size, int64_t out_stride[MAX_RANK])
{
        TensorMeta view;
        meta_init(&view, meta->dtype, rank, size);
        if (meta_numel(meta) == 0) {
                bool same = meta_same_shape(meta, &view);
                memcpy(out_stride, same ? meta->stride : view.stride, sizeof(view.stride));
                return true;
        }
        // Runs of old dimensions that lie evenly in memory are cut at the same places by the new
        // shape, innermost first.
        int next = rank - 1;
        int64_t run = 1, filled = 1;
        int64_t base = meta->rank == 0 ? 1 : meta->stride[meta->rank - 1];
        for (int d = meta->rank - 1; d >= 0; d--) {
                run *= meta->size[d];
                bool run_ends = d == 0 || (meta->size[d - 1] != 1 && meta->stride[d - 1] != run * base);
                if (!run_ends)
                        continue;
                while (next >= 0 && (filled < run || size[next] == 1)) {
                        view.stride[next] = filled * base;
                        filled *= size[next];
                        next--;
                }
                if (filled != run)
                        return false;
                if (d > 0) {
                        base = meta->stride[d - 1];
                        run = filled = 1;
                }
        }
        for (; meta->rank == 0 && next >= 0; next--)
                view.stride[next] = 1;
        if (next >= 0)
                return false;
        memcpy(out_stride, view.stride, sizeof(view.stride));
        return true;
}
