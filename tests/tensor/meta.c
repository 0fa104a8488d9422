// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/tensor/tensor.h"

#define LIST(...)                                                                                            \
        {                                                                                                    \
                __VA_ARGS__                                                                                  \
        }
#define NO_LIST                                                                                              \
        {                                                                                                    \
                0                                                                                            \
        }
#define NO_VIEW                                                                                              \
        {                                                                                                    \
                -1                                                                                           \
        }

typedef struct ViewRow {
        int rank;
        int64_t size[MAX_RANK], stride[MAX_RANK];
        int new_rank;
        int64_t new_size[MAX_RANK], new_stride[MAX_RANK];
} ViewRow;
static const ViewRow view_rows[] = {
#define VIEW(...) { __VA_ARGS__ },
#include "views.def"
#undef VIEW
};

typedef struct LayoutRow {
        int rank_a;
        int64_t size_a[MAX_RANK], stride_a[MAX_RANK];
        int rank_b;
        int64_t size_b[MAX_RANK], stride_b[MAX_RANK];
        int rank;
        int64_t size[MAX_RANK], stride[MAX_RANK], like[MAX_RANK];
} LayoutRow;
static const LayoutRow layout_rows[] = {
#define LAYOUT(...) { __VA_ARGS__ },
#include "layouts.def"
#undef LAYOUT
};

static TensorMeta make_meta(int rank, const int64_t *size, const int64_t *stride)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, rank, size);
        if (stride != NULL)
                memcpy(meta.stride, stride, sizeof(meta.stride));
        return meta;
}

static bool same_list(int n, const int64_t *a, const int64_t *b)
{
        return n == 0 || memcmp(a, b, (size_t)n * sizeof(*a)) == 0;
}

Test(meta, views_exist_and_lie_where_pytorch_says)
{
        for (size_t i = 0; i < ARRAY_LENGTH(view_rows); i++) {
                const ViewRow *row = &view_rows[i];
                TensorMeta meta = make_meta(row->rank, row->size, row->stride);
                int64_t stride[MAX_RANK] = { 0 };
                bool exists = meta_view_strides(&meta, row->new_rank, row->new_size, stride);
                cr_expect_eq(exists, row->new_stride[0] != -1, "row %zu", i);
                if (exists)
                        cr_expect(same_list(row->new_rank, stride, row->new_stride), "row %zu", i);
        }
}

Test(meta, elementwise_results_have_pytorchs_shape_and_strides)
{
        for (size_t i = 0; i < ARRAY_LENGTH(layout_rows); i++) {
                const LayoutRow *row = &layout_rows[i];
                TensorMeta a = make_meta(row->rank_a, row->size_a, row->stride_a),
                           b = make_meta(row->rank_b, row->size_b, row->stride_b), sum = { 0 };
                int rank;
                cr_assert_eq(shape_broadcast(&a, &b, &rank, sum.size), STATUS_OK);
                sum.rank = (uint8_t)rank;
                meta_set_strides_elementwise(&sum, (const TensorMeta *[]){ &a, &b }, 2);
                cr_expect_eq(rank, row->rank, "row %zu", i);
                cr_expect(same_list(rank, sum.size, row->size), "row %zu", i);
                cr_expect(same_list(rank, sum.stride, row->stride), "strides of row %zu", i);
                TensorMeta like = a;
                meta_set_strides_like(&like, &a);
                cr_expect(same_list(a.rank, like.stride, row->like), "empty_like of row %zu", i);
        }
}

Test(meta, an_empty_tensor_views_as_any_empty_shape)
{
        TensorMeta meta = make_meta(2, (int64_t[]){ 0, 3 }, NULL);
        int64_t stride[MAX_RANK];
        cr_assert(meta_view_strides(&meta, 3, (int64_t[]){ 2, 0, 5 }, stride));
        cr_expect(same_list(3, stride, (int64_t[]){ 5, 5, 1 }));
        TensorMeta scalar = make_meta(0, NULL, NULL);
        cr_assert(meta_view_strides(&scalar, 2, (int64_t[]){ 1, 1 }, stride));
        cr_expect(same_list(2, stride, (int64_t[]){ 1, 1 }));
}

Test(meta, shapes_that_do_not_broadcast_fail_in_pytorchs_words)
{
        TensorMeta a = make_meta(2, (int64_t[]){ 2, 9 }, NULL), b = make_meta(1, (int64_t[]){ 4 }, NULL);
        int rank = -1;
        int64_t size[MAX_RANK];
        cr_expect_eq(shape_broadcast(&a, &b, &rank, size), STATUS_SHAPE);
        cr_expect_str_eq(
                failure_current()->message,
                "The size of tensor a (9) must match the size of tensor b (4) at non-singleton dimension 1");
        cr_expect_eq(rank, -1);
}

Test(meta, broadcasting_keeps_dimensions_of_size_zero)
{
        TensorMeta a = make_meta(2, (int64_t[]){ 1, 3 }, NULL), b = make_meta(2, (int64_t[]){ 0, 1 }, NULL);
        int rank;
        int64_t size[MAX_RANK];
        cr_assert_eq(shape_broadcast(&a, &b, &rank, size), STATUS_OK);
        cr_expect(same_list(2, size, (int64_t[]){ 0, 3 }));
}

Test(meta, a_broadcast_that_would_explode_is_refused)
{
        TensorMeta a = make_meta(2, (int64_t[]){ 1000000, 1 }, NULL),
                   b = make_meta(2, (int64_t[]){ 1, 1000000 }, NULL);
        int rank;
        int64_t size[MAX_RANK];
        cr_expect_eq(shape_broadcast(&a, &b, &rank, size), STATUS_TOO_LARGE);
}

Test(meta, numel_is_checked_against_signs_overflow_and_the_limit)
{
        int64_t n = -1;
        cr_expect_eq(shape_numel(2, (int64_t[]){ 2, -1 }, &n), STATUS_VALUE);
        cr_expect_str_eq(failure_current()->message,
                         "Trying to create tensor with negative dimension -1: [2, -1]");
        cr_expect_eq(shape_numel(2, (int64_t[]){ INT64_MAX, 2 }, &n), STATUS_TOO_LARGE);
        cr_expect_eq(shape_numel(1, (int64_t[]){ limits.max_numel + 1 }, &n), STATUS_TOO_LARGE);
        cr_expect_eq(n, -1);
        cr_expect_eq(shape_numel(3, (int64_t[]){ INT64_MAX, INT64_MAX, 0 }, &n), STATUS_TOO_LARGE,
                     "its strides would overflow");
        cr_assert_eq(shape_numel(0, NULL, &n), STATUS_OK);
        cr_expect_eq(n, 1);
        cr_assert_eq(shape_numel(2, (int64_t[]){ 7, 0 }, &n), STATUS_OK);
        cr_expect_eq(n, 0);
}

Test(meta, the_span_of_strides_is_checked)
{
        int64_t n = -1;
        TensorMeta meta = make_meta(2, (int64_t[]){ 3, 4 }, (int64_t[MAX_RANK]){ 10, 2 });
        cr_assert_eq(meta_span(&meta, &n), STATUS_OK);
        cr_expect_eq(n, 27);
        meta = make_meta(2, (int64_t[]){ 3, 0 }, (int64_t[MAX_RANK]){ INT64_MAX, 1 });
        cr_expect_eq(meta_span(&meta, &n), STATUS_TOO_LARGE);
        meta = make_meta(1, (int64_t[]){ 3 }, (int64_t[MAX_RANK]){ -1 });
        cr_expect_eq(meta_span(&meta, &n), STATUS_VALUE);
        meta = make_meta(1, (int64_t[]){ INT64_MAX }, (int64_t[MAX_RANK]){ 2 });
        cr_expect_eq(meta_span(&meta, &n), STATUS_TOO_LARGE);
        cr_expect_eq(n, 27);
}

Test(meta, a_view_must_lie_within_its_storage)
{
        TensorMeta meta = make_meta(2, (int64_t[]){ 2, 3 }, NULL);
        cr_expect_eq(tensor_check_bounds(&meta, 0, 24), STATUS_OK);
        cr_expect_eq(tensor_check_bounds(&meta, 0, 23), STATUS_MALFORMED);
        cr_expect_eq(tensor_check_bounds(&meta, 1, 28), STATUS_OK);
        cr_expect_eq(tensor_check_bounds(&meta, 2, 28), STATUS_MALFORMED);
        cr_expect_eq(tensor_check_bounds(&meta, -1, 1000), STATUS_MALFORMED);
        cr_expect_eq(tensor_check_bounds(&meta, INT64_MAX, 1000), STATUS_MALFORMED);
        meta = make_meta(1, (int64_t[]){ INT64_MAX / 2 }, (int64_t[MAX_RANK]){ 1 });
        cr_expect_eq(tensor_check_bounds(&meta, 0, SIZE_MAX), STATUS_MALFORMED, "bytes overflow");
}

Test(meta, dimensions_wrap_once)
{
        int dim = -9;
        cr_assert_eq(dim_wrap(-2, 2, &dim), STATUS_OK);
        cr_expect_eq(dim, 0);
        cr_assert_eq(dim_wrap(-1, 0, &dim), STATUS_OK);
        cr_expect_eq(dim, 0);
        cr_expect_neq(dim_wrap(2, 2, &dim), STATUS_OK);
        cr_expect_str_eq(failure_current()->message,
                         "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
        cr_expect_neq(dim_wrap(INT64_MIN, 2, &dim), STATUS_OK);
}

Test(meta, channels_last_is_told_from_contiguous)
{
        TensorMeta meta = make_meta(4, (int64_t[]){ 2, 3, 4, 5 }, NULL);
        cr_expect(meta_is_contiguous(&meta) && !meta_is_channels_last(&meta));
        meta_set_channels_last(&meta);
        cr_expect(same_list(4, meta.stride, (int64_t[]){ 60, 1, 15, 3 }));
        cr_expect(!meta_is_contiguous(&meta) && meta_is_channels_last(&meta) &&
                  meta_is_non_overlapping_and_dense(&meta));
        meta = make_meta(4, (int64_t[]){ 2, 1, 4, 5 }, NULL);
        cr_expect(!meta_is_channels_last(&meta), "one channel reads as channels first");
        cr_expect(meta_lies_channels_last(&meta), "and lies as channels last, too");
        meta = make_meta(4, (int64_t[]){ 2, 3, 4, 5 }, NULL);
        cr_expect(!meta_lies_channels_last(&meta));
        meta = make_meta(3, (int64_t[]){ 2, 3, 4 }, NULL);
        cr_expect(!meta_is_channels_last(&meta));
}

Test(meta, an_expanded_dimension_overlaps)
{
        TensorMeta meta = make_meta(2, (int64_t[]){ 3, 4 }, (int64_t[MAX_RANK]){ 0, 1 });
        cr_expect(!meta_is_non_overlapping_and_dense(&meta));
        meta = make_meta(2, (int64_t[]){ 3, 4 }, (int64_t[MAX_RANK]){ 1, 3 });
        cr_expect(meta_is_non_overlapping_and_dense(&meta));
        meta = make_meta(2, (int64_t[]){ 3, 4 }, (int64_t[MAX_RANK]){ 1, 4 });
        cr_expect(!meta_is_non_overlapping_and_dense(&meta), "a gap");
        meta = make_meta(1, (int64_t[]){ 1 }, (int64_t[MAX_RANK]){ 7 });
        cr_expect(meta_is_contiguous(&meta), "one element");
}

Test(meta, shape_text_is_cut_but_terminated)
{
        char text[8];
        cr_expect_str_eq(shape_text(3, (int64_t[]){ 1, 2, 3 }, (char[32]){ 0 }, 32), "[1, 2, 3]");
        shape_text(3, (int64_t[]){ 1000, 2000, 3000 }, text, sizeof(text));
        cr_expect_eq(strlen(text), sizeof(text) - 1);
}
