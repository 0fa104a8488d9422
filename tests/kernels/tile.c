// SPDX-License-Identifier: Apache-2.0
// tile.c: tile programs on random chains, broadcasts, layouts and dtypes, against the rows run one
// by one: equal bits, and bytes between output elements survive.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/kernels/pointwise/tile.h"
#include "tests/kernels/sample.h"

enum { MAX_BYTES = 1 << 20, MAX_MADE = 24, MAX_IN = 4 };

static Sample source = { 7 };
static int64_t below(int64_t n)
{
        return sample_int(&source, 0, n - 1);
}

typedef struct Made {
        TensorMeta meta;
        uint8_t *data;
        TileValueId value;
} Made;

static uint8_t *filled_block(int byte)
{
        uint8_t *block = malloc(MAX_BYTES);
        memset(block, byte, MAX_BYTES);
        return block;
}

// Some dimensions of the shape, some of size 1, in random order of strides.
static Made random_input(Dtype dtype, int rank, const int64_t *size)
{
        Made made = { .data = filled_block(0) };
        int skip = below(3) == 0 ? (int)below(rank + 1) : 0;
        int64_t own[MAX_RANK];
        for (int d = skip; d < rank; d++)
                own[d - skip] = below(4) == 0 ? 1 : size[d];
        meta_init(&made.meta, dtype, rank - skip, own);
        if (below(3) == 0) {
                int64_t stride = 1 + below(2);
                for (int d = 0; d < made.meta.rank; d++) {
                        made.meta.stride[d] = stride;
                        stride *= made.meta.size[d];
                }
        }
        int64_t n;
        cr_assert_eq(meta_span(&made.meta, &n), STATUS_OK);
        for (int64_t i = 0; i < n; i++)
                element_from_f64(dtype, made.data + i * dtype_info[dtype].bytes,
                                 dtype == DTYPE_BOOL ? (double)below(2) : (double)(below(2000) - 900) / 128);
        return made;
}

// As ops/ decides for tensors of one dtype.
typedef struct Row {
        const PointKernel *kernel;
        bool floats_only;
} Row;
static const Row rows[] = {
        { &point_add, false },     { &point_mul, false }, { &point_sub, false },
        { &point_relu, false },    { &point_tanh, true }, { &point_sigmoid, true },
        { &point_exp, true },      { &point_neg, false }, { &point_gt, false },
        { &point_where, false },   { &point_sqrt, true }, { &point_maximum, false },
        { &point_addcmul, false }, { &point_silu, true }, { &point_logical_not, false },
};
static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F32, DTYPE_F32, DTYPE_F16, DTYPE_BF16,
                                DTYPE_F64, DTYPE_I64, DTYPE_I32, DTYPE_U8,  DTYPE_BOOL };

static Dtype common_of(const Row *row, const Made *const *in, int n)
{
        static const Dtype order[] = { DTYPE_BOOL, DTYPE_U8,   DTYPE_I32, DTYPE_I64,
                                       DTYPE_F16,  DTYPE_BF16, DTYPE_F32, DTYPE_F64 };
        size_t most = row->floats_only ? 6 : 1;
        for (int k = 0; k < n; k++) {
                for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
                        most = row->kernel->in[k] == 'x' && in[k]->meta.dtype == order[i] && i > most ? i
                                                                                                      : most;
        }
        return row->kernel->loop[point_class(order[most])] == NULL ? DTYPE_I64 : order[most];
}

static void run_alone(const Row *row, const PointParams *params, Dtype common, const Made *const *in, int n,
                      Made *out)
{
        PointOperand operands[POINT_MAX_INPUTS];
        for (int k = 0; k < n; k++)
                operands[k] = (PointOperand){ .data = in[k]->data, .meta = &in[k]->meta };
        cr_assert_eq(pointwise_run(NULL, &(PointCall){ row->kernel, common, params, operands }, out->data,
                                   &out->meta),
                     STATUS_OK);
}

// A part that begins and ends anywhere: the same elements.
static void check_part(const TileProgram *program, const void *const *in, const Made *const *wanted,
                       int n_out)
{
        void *out[TILE_MAX_OUTPUTS];
        int64_t n = meta_numel(&wanted[0]->meta), begin = below(n), end = begin + 1 + below(n - begin);
        for (int k = 0; k < n_out; k++)
                out[k] = filled_block(0xa5);
        cr_assert_eq(tile_run_part(program, in, out, begin, end), STATUS_OK);
        for (int k = 0; k < n_out; k++) {
                size_t bytes = dtype_info[wanted[k]->meta.dtype].bytes;
                cr_assert_arr_eq((char *)out[k], (char *)wanted[k]->data + (size_t)begin * bytes,
                                 (size_t)(end - begin) * bytes, "%ld to %ld of %ld", begin, end, n);
                free(out[k]);
        }
}

static void chain(int rank, const int64_t *size, int n_in, int n_ops, int n_out)
{
        Made made[MAX_MADE];
        TileProgram *program;
        const void *in[MAX_IN];
        void *out[TILE_MAX_OUTPUTS];
        TensorMeta out_meta[TILE_MAX_OUTPUTS];
        const Made *wanted[TILE_MAX_OUTPUTS];
        int n_made = 0;
        cr_assert_eq(tile_program_new(&program), STATUS_OK);
        for (; n_made < n_in; n_made++) {
                made[n_made] = random_input(dtypes[below(ARRAY_LENGTH(dtypes))], rank, size);
                in[n_made] = made[n_made].data;
                cr_assert_eq(tile_add_input(program, &made[n_made].meta, &made[n_made].value), STATUS_OK);
        }
        for (int i = 0; i < n_ops; i++, n_made++) {
                const Row *row = &rows[below(ARRAY_LENGTH(rows))];
                const Made *operands[POINT_MAX_INPUTS];
                PointParams params = { 0 };
                int n = (int)strlen(row->kernel->in);
                TileOp op = { .kernel = row->kernel, .params = &params };
                for (int k = 0; k < n; k++) {
                        operands[k] = &made[below(2) == 0 ? n_made - 1 : below(n_made)];
                        op.in[k] = operands[k]->value;
                }
                op.common = common_of(row, operands, n);
                op.out = row->kernel->mask_out ? DTYPE_BOOL : op.common;
                if (dtype_is_float(op.common))
                        params.of[0].f = 0.75;
                else
                        params.of[0].i = 3;
                made[n_made].data = filled_block(0);
                meta_init(&made[n_made].meta, op.out, rank, size);
                run_alone(row, &params, op.common, operands, n, &made[n_made]);
                cr_assert_eq(tile_add_op(program, &op, &made[n_made].value), STATUS_OK);
        }
        for (int k = 0; k < n_out; k++) {
                wanted[k] = &made[k == 0 ? n_made - 1 : n_in + below(n_ops)];
                out_meta[k] = wanted[k]->meta;
                int64_t stride = 2; // gaps, first dimension innermost
                for (int d = 0; d < rank && k % 2 == 1; d++) {
                        out_meta[k].stride[d] = stride;
                        stride *= size[d];
                }
                out[k] = filled_block(0xa5);
                cr_assert_eq(tile_add_output(program, wanted[k]->value, &out_meta[k]), STATUS_OK);
        }
        cr_assert_eq(tile_finish(program), STATUS_OK);
        cr_assert_eq(tile_run(program, in, out, NULL), STATUS_OK);
        for (int k = 0; k < n_out; k++) {
                Made expected = { .data = filled_block(0xa5) };
                PointOperand copied = { .data = wanted[k]->data, .meta = &wanted[k]->meta };
                cr_assert_eq(pointwise_run(NULL,
                                           &(PointCall){ &point_copy, wanted[k]->meta.dtype, NULL, &copied },
                                           expected.data, &out_meta[k]),
                             STATUS_OK);
                cr_assert_arr_eq(out[k], expected.data, MAX_BYTES, "output %d of %d, %d operators", k, n_out,
                                 n_ops);
                free(expected.data);
                free(out[k]);
        }
        if (tile_has_dense_outputs(program) && meta_numel(&wanted[0]->meta) > 0)
                check_part(program, in, wanted, n_out);
        for (int i = 0; i < n_made; i++)
                free(made[i].data);
        tile_program_free(program);
}

Test(tile, a_chain_gives_the_bits_of_its_rows_run_one_by_one)
{
        for (int i = 0; i < 150; i++) {
                int rank = (int)below(5);
                int64_t size[MAX_RANK];
                for (int d = 0; d < rank; d++)
                        size[d] = 1 + below(rank == 1 ? 5000 : rank == 2 ? 70 : 9);
                int n_ops = 1 + (int)below(12);
                chain(rank, size, 1 + (int)below(MAX_IN), n_ops, 1 + (int)below(3));
        }
}

Test(tile, a_group_of_no_elements_is_accepted)
{
        for (int i = 0; i < 60; i++) {
                int rank = 1 + (int)below(3);
                int64_t size[MAX_RANK] = { 4, 3, 5 };
                size[below(rank)] = 0;
                chain(rank, size, 1 + (int)below(MAX_IN), 1 + (int)below(3), 1);
        }
}

Test(tile, numbers_and_inputs_of_one_element_are_taken_as_zero_dim_tensors_are)
{
        int64_t size = 37;
        TensorMeta meta, number_meta = { .dtype = DTYPE_F64 };
        PointParam number = { .f = 0.1 };
        PointParams params = { .of[0].f = 1 };
        meta_init(&meta, DTYPE_BF16, 1, &size);
        uint8_t in[37 * 2], want[37 * 2], got[37 * 2];
        for (size_t i = 0; i < 37; i++)
                element_from_f64(DTYPE_BF16, in + 2 * i, (double)i / 7);
        PointOperand operands[] = { { .data = in, .meta = &meta },
                                    { .data = &number, .meta = &number_meta } };
        for (int round = 0; round < 4; round++) {
                int exact = round % 2, as_input = round / 2;
                operands[1].exact = exact;
                cr_assert_eq(pointwise_run(NULL, &(PointCall){ &point_mul, DTYPE_BF16, &params, operands },
                                           want, &meta),
                             STATUS_OK);
                TileProgram *program;
                TileOp op = { .kernel = &point_mul,
                              .common = DTYPE_BF16,
                              .out = DTYPE_BF16,
                              .params = &params,
                              .exact = { false, exact } };
                TileValueId value;
                cr_assert_eq(tile_program_new(&program), STATUS_OK);
                cr_assert_eq(tile_add_input(program, &meta, &op.in[0]), STATUS_OK);
                cr_assert_eq(as_input ? tile_add_input(program, &number_meta, &op.in[1])
                                      : tile_add_number(program, DTYPE_F64, number, &op.in[1]),
                             STATUS_OK);
                cr_assert_eq(tile_add_op(program, &op, &value), STATUS_OK);
                cr_assert_eq(tile_add_output(program, value, &meta), STATUS_OK);
                cr_assert_eq(tile_finish(program), STATUS_OK);
                cr_assert_eq(tile_run(program, (const void *[]){ in, &number }, (void *[]){ got }, NULL),
                             STATUS_OK);
                cr_assert_arr_eq(got, want, sizeof(want), "exact %d, as input %d", exact, as_input);
                tile_program_free(program);
        }
}

Test(tile, a_mask_is_cast_as_zero_and_one_whatever_was_compared)
{
        static const Dtype compared[] = { DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_I64 },
                           casts[] = { DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_I64,
                                       DTYPE_I32, DTYPE_U8,  DTYPE_BOOL };
        enum { N = 37 };
        int64_t size = N;
        for (size_t i = 0; i < ARRAY_LENGTH(compared); i++) {
                for (size_t k = 0; k < ARRAY_LENGTH(casts); k++) {
                        TensorMeta meta, out_meta;
                        TileProgram *program;
                        PointParams params = { 0 };
                        TileOp op = { .kernel = &point_gt,
                                      .common = compared[i],
                                      .out = DTYPE_BOOL,
                                      .params = &params };
                        TileValueId value;
                        uint8_t x[N * 8], y[N * 8], out[N * 8];
                        meta_init(&meta, compared[i], 1, &size);
                        meta_init(&out_meta, casts[k], 1, &size);
                        for (int e = 0; e < N; e++) {
                                element_from_f64(compared[i], x + e * dtype_info[compared[i]].bytes, e % 5);
                                element_from_f64(compared[i], y + e * dtype_info[compared[i]].bytes, e % 3);
                        }
                        cr_assert_eq(tile_program_new(&program), STATUS_OK);
                        cr_assert_eq(tile_add_input(program, &meta, &op.in[0]), STATUS_OK);
                        cr_assert_eq(tile_add_input(program, &meta, &op.in[1]), STATUS_OK);
                        cr_assert_eq(tile_add_op(program, &op, &value), STATUS_OK);
                        cr_assert_eq(tile_add_cast(program, value, casts[k], &value), STATUS_OK);
                        cr_assert_eq(tile_add_output(program, value, &out_meta), STATUS_OK);
                        cr_assert_eq(tile_finish(program), STATUS_OK);
                        cr_assert_eq(tile_run(program, (const void *[]){ x, y }, (void *[]){ out }, NULL),
                                     STATUS_OK);
                        for (int e = 0; e < N; e++)
                                cr_assert_eq(element_as_f64(casts[k], out + e * dtype_info[casts[k]].bytes),
                                             e % 5 > e % 3 ? 1.0 : 0.0, "%s as %s",
                                             dtype_info[compared[i]].name, dtype_info[casts[k]].name);
                        tile_program_free(program);
                }
        }
}

Test(tile, an_integer_division_by_zero_is_refused)
{
        int64_t size = 5, x[5] = { 1, 2, 3, 4, 5 }, y[5] = { 1, 1, 1, 0, 1 }, out[5];
        TensorMeta meta;
        TileProgram *program;
        PointParams params = { 0 };
        TileOp op = { .kernel = &point_div_floor, .common = DTYPE_I64, .out = DTYPE_I64, .params = &params };
        TileValueId value;
        meta_init(&meta, DTYPE_I64, 1, &size);
        cr_assert_eq(tile_program_new(&program), STATUS_OK);
        cr_assert_eq(tile_add_input(program, &meta, &op.in[0]), STATUS_OK);
        cr_assert_eq(tile_add_input(program, &meta, &op.in[1]), STATUS_OK);
        cr_assert_eq(tile_add_op(program, &op, &value), STATUS_OK);
        cr_assert_eq(tile_add_output(program, value, &meta), STATUS_OK);
        cr_assert_eq(tile_finish(program), STATUS_OK);
        cr_assert_eq(tile_run(program, (const void *[]){ x, y }, (void *[]){ out }, NULL), STATUS_RUN);
        y[3] = -2;
        cr_assert_eq(tile_run(program, (const void *[]){ x, y }, (void *[]){ out }, NULL), STATUS_OK);
        cr_assert_eq(out[3], -2);
        tile_program_free(program);
}

Test(tile, a_group_beyond_the_limits_is_refused)
{
        int64_t size = 4;
        TensorMeta meta;
        TileProgram *program;
        PointParams params = { 0 };
        TileOp op = { .kernel = &point_neg, .common = DTYPE_F32, .out = DTYPE_F32, .params = &params };
        Status status = STATUS_OK;
        meta_init(&meta, DTYPE_F32, 1, &size);
        cr_assert_eq(tile_program_new(&program), STATUS_OK);
        cr_assert_eq(tile_add_input(program, &meta, &op.in[0]), STATUS_OK);
        int n = 0;
        for (; status == STATUS_OK && n < 1000; n++)
                status = tile_add_op(program, &op, &op.in[0]);
        cr_assert_eq(status, STATUS_TOO_LARGE);
        cr_assert_gt(n, 100);
        tile_program_free(program);
}
