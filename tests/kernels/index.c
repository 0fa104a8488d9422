// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/index/index.h"
#include "tests/kernels/sample.h"

Test(index, rows_are_picked_in_order_and_bad_indices_refused)
{
        int32_t from[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, out[8];
        int64_t indices[] = { 2, 0 };
        IndexRows rows = { .outer = 2, .n_from = 3, .n_indices = 2, .block_bytes = 8, .indices = indices };
        cr_assert_eq(index_rows(NULL, &rows, from, out), STATUS_OK);
        static const int32_t want[] = { 4, 5, 0, 1, 10, 11, 6, 7 };
        cr_assert(memcmp(out, want, sizeof(want)) == 0);
        for (int i = 0; i < 2; i++) {
                indices[1] = i == 0 ? 3 : -1;
                cr_assert_eq(index_rows(NULL, &rows, from, out), STATUS_INDEX);
                cr_assert_str_eq(failure_current()->message, "index out of range in self");
        }
}

Test(index, gather_reads_and_scatter_writes_the_same_places)
{
        Sample sample = { 61 };
        for (int round = 0; round < 40; round++) {
                int64_t rows = sample_int(&sample, 1, 6), columns = sample_int(&sample, 1, 6);
                size_t bytes = (size_t)(rows * columns) * 8;
                double *self = guarded_new(bytes), *picked = guarded_new(bytes), *back = guarded_new(bytes);
                int64_t *index = guarded_new(bytes);
                sample_fill(&sample, DTYPE_F64, self, rows * columns);
                memset(back, 0, bytes);
                // A permutation of every column.
                for (int64_t c = 0; c < columns; c++) {
                        for (int64_t r = 0; r < rows; r++)
                                index[r * columns + c] = (r + c) % rows;
                }
                IndexWalk walk = { .rank = 2,
                                   .dim = 0,
                                   .size = { rows, columns },
                                   .indexed_stride = { columns, 1 },
                                   .plain_stride = { columns, 1 },
                                   .index_stride = { columns, 1 },
                                   .n_indexed = rows,
                                   .index = index,
                                   .dtype = DTYPE_F64 };
                cr_assert_eq(index_gather(NULL, &walk, self, picked), STATUS_OK);
                cr_assert_eq(index_scatter(NULL, &walk, SCATTER_COPY, back, picked), STATUS_OK);
                cr_assert(memcmp(self, back, bytes) == 0);
                cr_assert_eq(index_scatter(NULL, &walk, SCATTER_ADD, back, picked), STATUS_OK);
                for (int64_t i = 0; i < rows * columns; i++)
                        cr_assert_float_eq(back[i], 2 * self[i], 0);
                guarded_check(self, bytes);
                guarded_check(picked, bytes);
                guarded_check(back, bytes);
                guarded_check(index, bytes);
        }
}

Test(index, a_bad_index_is_named_with_dimension_and_size)
{
        float self[] = { 1, 2, 3 }, out[1];
        int64_t index[] = { -1 };
        IndexWalk walk = { .rank = 1,
                           .dim = 0,
                           .size = { 1 },
                           .indexed_stride = { 1 },
                           .plain_stride = { 1 },
                           .index_stride = { 1 },
                           .n_indexed = 3,
                           .index = index,
                           .dtype = DTYPE_F32 };
        cr_assert_eq(index_gather(NULL, &walk, self, out), STATUS_INDEX);
        cr_assert_str_eq(failure_current()->message, "index -1 is out of bounds for dimension 0 with size 3");
        index[0] = 3;
        cr_assert_eq(index_scatter(NULL, &walk, SCATTER_COPY, self, out), STATUS_INDEX);
}

Test(index, of_equal_indices_the_last_write_wins)
{
        float self[] = { 0, 0 }, src[] = { 1, 2, 3 };
        int64_t index[] = { 1, 0, 1 };
        IndexWalk walk = { .rank = 1,
                           .dim = 0,
                           .size = { 3 },
                           .indexed_stride = { 1 },
                           .plain_stride = { 1 },
                           .index_stride = { 1 },
                           .n_indexed = 2,
                           .index = index,
                           .dtype = DTYPE_F32 };
        cr_assert_eq(index_scatter(NULL, &walk, SCATTER_COPY, self, src), STATUS_OK);
        cr_assert(self[0] == 2 && self[1] == 3);
}

// [outer][n][inner] by one index each or one for every row of `inner`, for all dtypes and kinds.
static void compare_rows(Sample *sample, Dtype dtype, ScatterKind kind)
{
        int64_t outer = sample_int(sample, 1, 3), n = sample_int(sample, 1, 9),
                inner = sample_int(sample, 0, 37), n_indexed = sample_int(sample, 1, 5), cells = n * inner;
        size_t item = dtype_info[dtype].bytes, bytes = (size_t)(outer * n_indexed * inner) * item,
               plain_bytes = (size_t)(outer * cells) * item;
        char *rows = guarded_new(bytes), *single = guarded_new(bytes), *plain = guarded_new(plain_bytes),
             *picked[2] = { guarded_new(plain_bytes), guarded_new(plain_bytes) };
        int64_t *index = guarded_new((size_t)n * 8), *each = guarded_new((size_t)cells * 8);
        Dtype part = dtype == DTYPE_C64 ? DTYPE_F32 : dtype == DTYPE_C128 ? DTYPE_F64 : dtype;
        sample_fill(sample, part, rows, (int64_t)(bytes / dtype_info[part].bytes));
        sample_fill(sample, part, plain, (int64_t)(plain_bytes / dtype_info[part].bytes));
        memcpy(single, rows, bytes);
        for (int64_t i = 0; i < n; i++) {
                index[i] = sample_int(sample, 0, n_indexed - 1) - n_indexed * sample_int(sample, 0, 1);
                for (int64_t k = 0; k < inner; k++)
                        each[i * inner + k] = index[i];
        }
        IndexWalk walk = { .rank = 3,
                           .dim = 1,
                           .size = { outer, n, inner },
                           .indexed_stride = { n_indexed * inner, inner, 1 },
                           .plain_stride = { cells, inner, 1 },
                           .index_stride = { 0, 1, 0 },
                           .n_indexed = n_indexed,
                           .index = index,
                           .dtype = dtype,
                           .wraps = true };
        IndexWalk slow = walk;
        slow.index = each;
        slow.index_stride[1] = inner;
        slow.index_stride[2] = 1;
        cr_assert_eq(index_gather(NULL, &walk, rows, picked[0]), STATUS_OK);
        cr_assert_eq(index_gather(NULL, &slow, rows, picked[1]), STATUS_OK);
        cr_assert(memcmp(picked[0], picked[1], plain_bytes) == 0);
        cr_assert_eq(index_scatter(NULL, &walk, kind, rows, plain), STATUS_OK);
        cr_assert_eq(index_scatter(NULL, &slow, kind, single, plain), STATUS_OK);
        cr_assert(memcmp(rows, single, bytes) == 0, "%s", dtype_info[dtype].name);
        index[n - 1] = n_indexed;
        Status want = inner == 0 ? STATUS_OK : STATUS_INDEX;
        cr_assert_eq(index_scatter(NULL, &walk, kind, rows, plain), want);
        cr_assert_eq(index_gather(NULL, &walk, rows, picked[0]), want);
        guarded_check(rows, bytes);
        guarded_check(single, bytes);
        guarded_check(plain, plain_bytes);
        guarded_check(picked[0], plain_bytes);
        guarded_check(picked[1], plain_bytes);
        guarded_check(index, (size_t)n * 8);
        guarded_check(each, (size_t)cells * 8);
}

Test(index, whole_rows_have_the_bits_of_single_elements)
{
        Sample sample = { 62 };
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                for (int kind = 0; kind < 5; kind++) {
                        bool complex = dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
                        for (int round = 0; round < 12; round++)
                                compare_rows(&sample, (Dtype)dtype,
                                             complex ? SCATTER_COPY : (ScatterKind)kind);
                }
        }
}

Test(index, tables_move_blocks_of_every_element_size)
{
        static const Dtype dtypes[] = { DTYPE_U8, DTYPE_I16, DTYPE_F32, DTYPE_F64, DTYPE_C128 };
        for (size_t k = 0; k < ARRAY_LENGTH(dtypes); k++) {
                enum { ROWS = 4, INNER = 3 };
                size_t item = dtype_info[dtypes[k]].bytes, bytes = ROWS * INNER * item;
                uint8_t *from = guarded_new(bytes), *to = guarded_new(bytes);
                for (size_t i = 0; i < bytes; i++)
                        from[i] = (uint8_t)i;
                int64_t source[] = { 3 * INNER, 0, 2 * INNER, INNER },
                        target[] = { 0, INNER, 2 * INNER, 3 * INNER };
                IndexTable table = { .dtype = dtypes[k],
                                     .n_after = 1,
                                     .after_size = { INNER },
                                     .after_from = { 1 },
                                     .after_to = { 1 },
                                     .n = ROWS,
                                     .from = source,
                                     .to = target };
                cr_assert_eq(index_table(NULL, &table, false, false, from, to), STATUS_OK);
                for (int row = 0; row < ROWS; row++)
                        cr_assert(memcmp(to + (size_t)row * INNER * item, from + (size_t)source[row] * item,
                                         INNER * item) == 0);
                guarded_check(from, bytes);
                guarded_check(to, bytes);
        }
}

// [before][entries][after] from a strided side: blocks, single elements, and strides between.
Test(index, tables_move_what_single_steps_move)
{
        Sample sample = { 63 };
        for (int round = 0; round < 40 * DTYPE_COUNT; round++) {
                Dtype dtype = (Dtype)(round % DTYPE_COUNT);
                int64_t before = sample_int(&sample, 1, 4), n = sample_int(&sample, 0, 12),
                        after = sample_int(&sample, 0, 3), gap = sample_int(&sample, 1, 2), kept = 5;
                int64_t item = dtype_info[dtype].bytes, row = after * gap, n_out = before * n * after;
                size_t bytes = (size_t)(before * kept * row * item), out_bytes = (size_t)(n_out * item);
                uint8_t *from = guarded_new(bytes), *to = guarded_new(out_bytes);
                int64_t source[12], target[12];
                for (size_t i = 0; i < bytes; i++)
                        from[i] = (uint8_t)sample_int(&sample, 0, 255);
                for (int64_t i = 0; i < n; i++) {
                        source[i] = sample_int(&sample, 0, kept - 1) * row;
                        target[i] = (n - 1 - i) * after;
                }
                IndexTable table = { .dtype = dtype,
                                     .n_before = 1,
                                     .n_after = 1,
                                     .before_size = { before },
                                     .before_from = { kept * row },
                                     .before_to = { n * after },
                                     .after_size = { after },
                                     .after_from = { gap },
                                     .after_to = { 1 },
                                     .n = n,
                                     .from = source,
                                     .to = target };
                cr_assert_eq(index_table(NULL, &table, round % 2 == 0, false, from, to), STATUS_OK);
                for (int64_t i = 0; i < n_out; i++) {
                        int64_t b = i / (n * after), entry = n - 1 - i / after % n, a = i % after;
                        cr_assert(memcmp(to + i * item,
                                         from + (b * kept * row + source[entry] + a * gap) * item,
                                         (size_t)item) == 0);
                }
                guarded_check(from, bytes);
                guarded_check(to, out_bytes);
        }
}

Test(index, nonzero_lists_positions_row_major_and_counts_nan)
{
        float in[] = { 0, 1, NAN, 0, 0, -2 };
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 2, 3 });
        int64_t count;
        cr_assert_eq(index_count_nonzero(NULL, &meta, in, &count), STATUS_OK);
        cr_assert_eq(count, 3);
        int64_t out[6];
        cr_assert_eq(index_nonzero(NULL, &meta, in, 3, out), STATUS_OK);
        static const int64_t want[] = { 0, 0, 1, 1, 2, 2 };
        cr_assert(memcmp(out, want, sizeof(want)) == 0);
}

// Lines of any length, so that groups of eight, rests and the end of the room are met; strides of
// the mask and of the tensor that the offsets are for are any.
static void compare_nonzero(Sample *sample, Dtype dtype)
{
        int64_t size[3], step[3], item = dtype_info[dtype].bytes, count = 0, found = 0, counted;
        int rank = (int)sample_int(sample, 0, 3), often = (int)sample_int(sample, 1, 9);
        for (int d = 0; d < rank; d++) {
                size[d] = sample_int(sample, 1, d == rank - 1 ? 70 : 4);
                step[d] = sample_int(sample, -9, 9);
        }
        TensorMeta meta;
        meta_init(&meta, dtype, rank, size);
        int64_t n = meta_numel(&meta);
        size_t bytes = (size_t)(n * item);
        if (rank > 1 && often % 2 == 0) { // columns one after another
                meta.stride[rank - 1] = meta.size[rank - 2];
                meta.stride[rank - 2] = 1;
        }
        char *data = guarded_new(bytes);
        memset(data, 0, bytes);
        for (int64_t i = 0; i < n; i++)
                if (sample_int(sample, 0, 9) < often)
                        data[i * item + item - 1] = 1;
        for (int64_t i = 0; i < n; i++)
                count += data[i * item + item - 1];
        int64_t *place = guarded_new((size_t)(count * rank) * 8), *offset = guarded_new((size_t)count * 8);
        cr_assert_eq(index_count_nonzero(NULL, &meta, data, &counted), STATUS_OK);
        cr_assert_eq(counted, count);
        cr_assert_eq(index_nonzero(NULL, &meta, data, count, place), STATUS_OK);
        cr_assert_eq(index_mask_offsets(NULL, &meta, data, step, count, offset), STATUS_OK);
        for (int64_t i = 0; i < n; i++) {
                int64_t at[3] = { 0 }, from = 0, to = 0, left = i;
                for (int d = rank - 1; d >= 0; d--) {
                        at[d] = left % size[d];
                        left /= size[d];
                        from += at[d] * meta.stride[d];
                        to += at[d] * step[d];
                }
                if (data[from * item + item - 1] == 0)
                        continue;
                cr_assert_eq(offset[found], to);
                for (int d = 0; d < rank; d++)
                        cr_assert_eq(place[d * count + found], at[d]);
                found++;
        }
        cr_assert_eq(found, count);
        guarded_check(data, bytes);
        guarded_check(place, (size_t)(count * rank) * 8);
        guarded_check(offset, (size_t)count * 8);
}

Test(index, masks_of_every_dtype_and_layout_give_the_places_of_a_plain_loop)
{
        Sample sample = { 64 };
        for (int round = 0; round < 20 * DTYPE_COUNT; round++) {
                if (round % DTYPE_COUNT != DTYPE_F8E8M0FNU) // it has no zero
                        compare_nonzero(&sample, (Dtype)(round % DTYPE_COUNT));
        }
}

Test(index, rows_of_every_width_are_those_of_a_plain_loop)
{
        Sample sample = { 65 };
        for (int round = 0; round < 200; round++) {
                int64_t outer = sample_int(&sample, 1, 4), n_from = sample_int(&sample, 1, 9),
                        n = sample_int(&sample, 1, 12), block = sample_int(&sample, 1, 17);
                size_t bytes = (size_t)(outer * n_from * block), out_bytes = (size_t)(outer * n * block);
                char *from = guarded_new(bytes), *out = guarded_new(out_bytes);
                int64_t indices[12];
                for (size_t i = 0; i < bytes; i++)
                        from[i] = (char)sample_int(&sample, 0, 127);
                for (int64_t i = 0; i < n; i++)
                        indices[i] = sample_int(&sample, 0, n_from - 1);
                IndexRows rows = { .outer = outer,
                                   .n_from = n_from,
                                   .n_indices = n,
                                   .block_bytes = (size_t)block,
                                   .indices = indices };
                cr_assert_eq(index_rows(NULL, &rows, from, out), STATUS_OK);
                for (int64_t i = 0; i < outer * n; i++)
                        cr_assert(memcmp(out + i * block, from + (i / n * n_from + indices[i % n]) * block,
                                         (size_t)block) == 0);
                guarded_check(from, bytes);
                guarded_check(out, out_bytes);
        }
}
