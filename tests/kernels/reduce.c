// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/reduce/columns.h"
#include "core/kernels/reduce/reduce.h"
#include "core/kernels/reduce/reduce_scan.h"
#include "tests/kernels/sample.h"

// A strided array of random rank, with its dimensions permuted and possibly gaps.
typedef struct Strided {
        TensorMeta meta;
        void *data;
        size_t n_bytes;
} Strided;

static Strided strided_new(Sample *sample, Dtype dtype)
{
        Strided out = { 0 };
        int64_t size[MAX_RANK], order[MAX_RANK], step = 1;
        int rank = (int)sample_int(sample, 1, 4);
        for (int d = 0; d < rank; d++) {
                size[d] = sample_int(sample, 1, sample_int(sample, 0, 6) == 0 ? 70 : 9);
                order[d] = d;
        }
        for (int d = rank - 1; d > 0; d--) {
                int64_t other = sample_int(sample, 0, d), swap = order[d];
                order[d] = order[other];
                order[other] = swap;
        }
        meta_init(&out.meta, dtype, rank, size);
        for (int d = 0; d < rank; d++) {
                out.meta.stride[order[d]] = step;
                step *= size[order[d]] + (sample_int(sample, 0, 3) == 0 ? 1 : 0);
        }
        out.n_bytes = (size_t)step * dtype_info[dtype].bytes;
        out.data = guarded_new(out.n_bytes);
        sample_fill(sample, dtype, out.data, step);
        return out;
}

static int64_t offset_at(const TensorMeta *meta, int64_t index)
{
        int64_t offset = 0;
        for (int d = meta->rank - 1; d >= 0; d--) {
                offset += index % meta->size[d] * meta->stride[d];
                index /= meta->size[d];
        }
        return offset;
}

// Row and place in the row of element `index`, for the dimensions in `mask`.
static void split(const TensorMeta *meta, uint32_t mask, int64_t index, int64_t *out_row, int64_t *out_place)
{
        int64_t at[MAX_RANK];
        for (int d = meta->rank - 1; d >= 0; d--) {
                at[d] = index % meta->size[d];
                index /= meta->size[d];
        }
        *out_row = *out_place = 0;
        for (int d = 0; d < meta->rank; d++) {
                int64_t *to = (mask >> d & 1) != 0 ? out_place : out_row;
                *to = *to * meta->size[d] + at[d];
        }
}

static double reference(ReduceKind kind, double p, const double *row, int64_t n)
{
        double sum = 0, product = 1, max = -INFINITY, min = INFINITY, squares = 0, nonzero = 0, powers = 0;
        for (int64_t i = 0; i < n; i++) {
                sum += row[i];
                product *= row[i];
                max = MAX(max, row[i]);
                min = MIN(min, row[i]);
                nonzero += row[i] != 0;
                powers += pow(fabs(row[i]), p);
        }
        for (int64_t i = 0; i < n; i++)
                squares += (row[i] - sum / (double)n) * (row[i] - sum / (double)n);
        double exponentials = 0;
        for (int64_t i = 0; i < n; i++)
                exponentials += exp(row[i] - max);
        switch (kind) {
        case REDUCE_SUM:
        case REDUCE_NANSUM: // there is no NaN in the samples
                return sum;
        case REDUCE_MEAN:
                return sum / (double)n;
        case REDUCE_PROD:
                return product;
        case REDUCE_MAX:
                return max;
        case REDUCE_MIN:
                return min;
        case REDUCE_ANY:
                return nonzero > 0;
        case REDUCE_ALL:
                return nonzero == (double)n;
        case REDUCE_NONZERO:
                return nonzero;
        case REDUCE_LOGSUMEXP:
                return max + log(exponentials);
        case REDUCE_NORM:
                return pow(powers, 1 / p);
        case REDUCE_VAR:
                return squares / MAX((double)n - p, 0);
        case REDUCE_STD:
                return sqrt(squares / MAX((double)n - p, 0));
        }
        return NAN;
}

static void check_reduce(Sample *sample, Dtype dtype, ReduceKind kind)
{
        Strided in = strided_new(sample, dtype);
        uint32_t mask = (uint32_t)sample_int(sample, 0, (1 << in.meta.rank) - 1);
        RowPlan plan;
        row_plan(&plan, &in.meta, mask, false);
        bool counts = kind == REDUCE_ANY || kind == REDUCE_ALL || kind == REDUCE_NONZERO;
        Dtype out_dtype = counts ? DTYPE_I64 : dtype;
        size_t out_bytes = (size_t)plan.n_rows * dtype_info[out_dtype].bytes;
        void *out = guarded_new(out_bytes);
        double p = kind == REDUCE_NORM ? (double)sample_int(sample, 1, 3) : 1;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        Reduction reduction = { .dtype = dtype,
                                .stored = dtype,
                                .kind = kind,
                                .p = p,
                                .rounding = DTYPE_NONE,
                                .data = in.data,
                                .out = out };
        cr_assert_eq(reduce_run(&ctx, &plan, &reduction), STATUS_OK);
        _cleanup_(freep) double *rows = malloc((size_t)(plan.n_rows * plan.row_length) * sizeof(double));
        for (int64_t i = 0; i < plan.n_rows * plan.row_length; i++) {
                int64_t row, place;
                split(&in.meta, mask, i, &row, &place);
                rows[row * plan.row_length + place] = compute_as_f64(dtype, in.data, offset_at(&in.meta, i));
        }
        for (int64_t row = 0; row < plan.n_rows; row++) {
                double want = reference(kind, p, rows + row * plan.row_length, plan.row_length),
                       got = compute_as_f64(out_dtype, out, row);
                bool wraps = dtype == DTYPE_I64 && kind == REDUCE_PROD && !(fabs(want) < 4e15);
                cr_assert(wraps || close_enough(out_dtype, got, want),
                          "kind %d of %ld elements: %.9g instead of %.9g", (int)kind, (long)plan.row_length,
                          got, want);
        }
        guarded_check(in.data, in.n_bytes);
        guarded_check(out, out_bytes);
}

Test(reduce, agrees_with_plain_loops_on_random_shapes_strides_and_dimensions)
{
        Sample sample = { 41 };
        for (int round = 0; round < 40; round++) {
                for (ReduceKind kind = REDUCE_SUM; kind <= REDUCE_STD; kind++) {
                        check_reduce(&sample, DTYPE_F32, kind);
                        check_reduce(&sample, DTYPE_F64, kind);
                }
                for (ReduceKind kind = REDUCE_SUM; kind <= REDUCE_NONZERO; kind++) {
                        if (kind != REDUCE_MEAN)
                                check_reduce(&sample, DTYPE_I64, kind);
                }
        }
}

// A long contiguous array instead.
static Strided long_new(Sample *sample, Dtype dtype)
{
        static const int64_t lengths[] = { 4095, 4096, 4097, 9001, 10240 };
        Strided out = { 0 };
        meta_init(&out.meta, dtype, 2,
                  (int64_t[]){ sample_int(sample, 1, 3), lengths[sample_int(sample, 0, 4)] });
        out.n_bytes = (size_t)meta_numel(&out.meta) * dtype_info[dtype].bytes;
        out.data = guarded_new(out.n_bytes);
        sample_fill(sample, dtype, out.data, meta_numel(&out.meta));
        return out;
}

static void reduce_into(const Strided *in, Dtype dtype, uint32_t mask, ReduceKind kind, void *out)
{
        RowPlan plan;
        row_plan(&plan, &in->meta, mask, false);
        Reduction reduction = { .dtype = dtype,
                                .stored = in->meta.dtype,
                                .kind = kind,
                                .p = kind == REDUCE_NORM ? 2 : 1,
                                .rounding = DTYPE_NONE,
                                .data = in->data,
                                .out = out };
        cr_assert_eq(reduce_run(NULL, &plan, &reduction), STATUS_OK);
}

// As of an array of the other dtype that has the same numbers at the same places.
static void check_converted(Sample *sample, Dtype stored, ReduceKind kind)
{
        Strided in = sample_int(sample, 0, 2) == 0 ? long_new(sample, stored) : strided_new(sample, stored);
        uint32_t mask = (uint32_t)sample_int(sample, 0, (1 << in.meta.rank) - 1);
        Dtype dtype = stored == DTYPE_F32 ? DTYPE_F64 : dtype_compute(stored);
        int64_t n = (int64_t)(in.n_bytes / dtype_info[stored].bytes), n_rows = 1;
        for (int d = 0; d < in.meta.rank; d++)
                n_rows *= (mask >> d & 1) != 0 ? 1 : in.meta.size[d];
        Strided wide = { .meta = in.meta, .n_bytes = (size_t)n * dtype_info[dtype].bytes };
        wide.meta.dtype = dtype;
        wide.data = guarded_new(wide.n_bytes);
        TileClass class = dtype == DTYPE_F32 ? TILE_F32 : dtype == DTYPE_F64 ? TILE_F64 : TILE_I64;
        tile_loader(class, stored)(in.data, dtype_info[stored].bytes, (size_t)n, wide.data);
        size_t bytes = (size_t)n_rows * (reduce_counts(kind) ? 8 : dtype_info[dtype].bytes);
        void *got = guarded_new(bytes), *want = guarded_new(bytes);
        reduce_into(&in, dtype, mask, kind, got);
        reduce_into(&wide, dtype, mask, kind, want);
        cr_assert_arr_eq(got, want, bytes, "kind %d of %s", (int)kind, dtype_info[stored].name);
        guarded_check(in.data, in.n_bytes);
        guarded_check(wide.data, wide.n_bytes);
        guarded_check(got, bytes);
        guarded_check(want, bytes);
}

Test(reduce, converts_elements_on_the_way_with_the_bits_of_a_converted_array)
{
        static const Dtype dtypes[] = { DTYPE_BOOL, DTYPE_U8,  DTYPE_I8,   DTYPE_I16, DTYPE_I32,
                                        DTYPE_U16,  DTYPE_F16, DTYPE_BF16, DTYPE_F32 };
        Sample sample = { 47 };
        for (int round = 0; round < 12; round++) {
                for (size_t i = 0; i < ARRAY_LENGTH(dtypes); i++) {
                        bool floats = dtype_is_float(dtypes[i]);
                        for (ReduceKind kind = REDUCE_SUM; kind <= REDUCE_NANSUM; kind++)
                                if (floats || (kind <= REDUCE_NONZERO && kind != REDUCE_MEAN))
                                        check_converted(&sample, dtypes[i], kind);
                }
        }
}

static Status reduce_floats(const RowPlan *plan, ReduceKind kind, double p, const float *in, float *out,
                            int64_t *extra)
{
        Reduction reduction = { .dtype = DTYPE_F32,
                                .stored = DTYPE_F32,
                                .kind = kind,
                                .p = p,
                                .rounding = DTYPE_NONE,
                                .data = in,
                                .out = out,
                                .extra = extra };
        return reduce_run(NULL, plan, &reduction);
}

Test(reduce, sums_of_a_million_floats_stay_exact_to_a_few_ulp)
{
        enum { N = 1000000 };
        _cleanup_(freep) float *in = malloc(N * 4);
        double want = 0;
        Sample sample = { 42 };
        for (int i = 0; i < N; i++) {
                in[i] = (float)(1 + 0.5 * sample_double(&sample));
                want += (double)in[i];
        }
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ N });
        RowPlan plan;
        row_plan(&plan, &meta, 1, false);
        float got;
        cr_assert_eq(reduce_floats(&plan, REDUCE_SUM, 0, in, &got, NULL), STATUS_OK);
        cr_assert(fabs((double)got - want) / want < 5e-7, "%.9g instead of %.9g", (double)got, want);
}

// Random numbers, with zeros of both signs, infinities and NaN among them now and then.
static void fill_oddly(Sample *sample, Dtype dtype, void *data, int64_t n)
{
        static const double odd[] = { -0.0, 0, INFINITY, -INFINITY, NAN };
        int kinds = (int)sample_int(sample, 0, 5);
        sample_fill(sample, dtype, data, n);
        for (int64_t i = 0; i < n && dtype != DTYPE_I64 && kinds > 0; i += sample_int(sample, 1, 9)) {
                double value = odd[sample_int(sample, 0, kinds - 1)];
                if (dtype == DTYPE_F32)
                        ((float *)data)[i] = (float)value;
                else
                        ((double *)data)[i] = value;
        }
}

// So that zeros of both signs are the extremes.
static void keep_one_side(Dtype dtype, ReduceKind kind, void *data, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                float *single = (float *)data + i;
                double *wide = (double *)data + i, sign = kind == REDUCE_MAX ? -1 : 1;
                if (dtype == DTYPE_F32 && *single != 0)
                        *single = (float)copysign((double)*single, sign);
                else if (dtype == DTYPE_F64 && *wide != 0)
                        *wide = copysign(*wide, sign);
        }
}

// [outer][n][inner] along n, and the same numbers as [outer][inner][n].
static void check_columns(Sample *sample, Dtype dtype, ReduceKind kind)
{
        int64_t outer = sample_int(sample, 1, 3),
                n = sample_int(sample, 1, sample_int(sample, 0, 1) != 0 ? 40 : 1700),
                inner = sample_int(sample, 4, sample_int(sample, 0, 1) != 0 ? 12 : 300),
                all = outer * n * inner;
        size_t item = dtype_info[dtype].bytes, bytes = (size_t)(outer * inner) * item;
        char *in = guarded_new((size_t)all * item), *turned = guarded_new((size_t)all * item),
             *got = guarded_new(bytes), *want = guarded_new(bytes);
        fill_oddly(sample, dtype, in, all);
        if ((kind == REDUCE_MAX || kind == REDUCE_MIN) && sample_int(sample, 0, 1) == 0)
                keep_one_side(dtype, kind, in, all);
        for (int64_t o = 0; o < outer; o++)
                for (int64_t i = 0; i < n * inner; i++)
                        memcpy(turned + (size_t)((o * inner + i % inner) * n + i / inner) * item,
                               in + (size_t)(o * n * inner + i) * item, item);
        TensorMeta meta;
        RowPlan columns, rows;
        meta_init(&meta, dtype, 3, (int64_t[]){ outer, n, inner });
        row_plan(&columns, &meta, 2, false);
        meta_init(&meta, dtype, 3, (int64_t[]){ outer, inner, n });
        row_plan(&rows, &meta, 4, false);
        Reduction reduction = {
                .dtype = dtype, .stored = dtype, .kind = kind, .rounding = DTYPE_NONE, .data = in, .out = got
        };
        reduction.p = 2;
        cr_assert(n == 1 || columns_fit(&columns, &reduction));
        cr_assert(n == 1 || !columns_fit(&rows, &reduction));
        cr_assert_eq(reduce_run(NULL, &columns, &reduction), STATUS_OK);
        reduction.data = turned;
        reduction.out = want;
        cr_assert_eq(reduce_run(NULL, &rows, &reduction), STATUS_OK);
        for (int64_t i = 0; i < outer * inner; i++) {
                double a = compute_as_f64(dtype, got, i), b = compute_as_f64(dtype, want, i);
                bool same = memcmp(got + (size_t)i * item, want + (size_t)i * item, item) == 0;
                cr_assert(same || (isnan(a) && isnan(b)), "kind %d of %ld elements: %.17g instead of %.17g",
                          (int)kind, (long)n, a, b);
        }
        guarded_check(in, (size_t)all * item);
        guarded_check(turned, (size_t)all * item);
        guarded_check(got, bytes);
        guarded_check(want, bytes);
}

Test(reduce, neighbouring_columns_have_the_bits_of_rows)
{
        Sample sample = { 44 };
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 30; round++) {
                        for (ReduceKind kind = REDUCE_SUM; kind <= REDUCE_MIN; kind++) {
                                check_columns(&sample, DTYPE_F32, kind);
                                check_columns(&sample, DTYPE_F64, kind);
                                if (kind != REDUCE_MEAN)
                                        check_columns(&sample, DTYPE_I64, kind);
                        }
                        check_columns(&sample, DTYPE_F32, REDUCE_NORM);
                        check_columns(&sample, DTYPE_F64, REDUCE_NORM);
                }
        }
}

Test(reduce, the_first_extreme_wins_and_nan_is_the_extreme)
{
        float in[] = { 1, 7, 7, 2, NAN, 9, NAN, 3 };
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 2, 4 });
        RowPlan plan;
        row_plan(&plan, &meta, 2, true);
        float values[2];
        int64_t indices[2];
        cr_assert_eq(reduce_floats(&plan, REDUCE_MAX, 0, in, values, indices), STATUS_OK);
        cr_assert(values[0] == 7 && indices[0] == 1);
        cr_assert(isnan(values[1]) && indices[1] == 0);
        cr_assert_eq(reduce_floats(&plan, REDUCE_MAX, 0, in, values, NULL), STATUS_OK);
        cr_assert(isnan(values[1]));
}

Test(reduce, one_element_has_no_variance_and_an_empty_row_neither)
{
        float in[] = { 5 }, out;
        TensorMeta meta;
        RowPlan plan;
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 1 });
        row_plan(&plan, &meta, 1, false);
        cr_assert_eq(reduce_floats(&plan, REDUCE_VAR, 1, in, &out, NULL), STATUS_OK);
        cr_assert(isnan(out));
        meta.size[0] = 0;
        row_plan(&plan, &meta, 1, false);
        cr_assert_eq(reduce_floats(&plan, REDUCE_VAR, 1, in, &out, NULL), STATUS_OK);
        cr_assert(isnan(out));
        cr_assert_eq(reduce_floats(&plan, REDUCE_SUM, 1, in, &out, NULL), STATUS_OK);
        cr_assert_float_eq(out, 0, 0);
}

Test(reduce, scans_run_along_any_dimension)
{
        Sample sample = { 43 };
        for (int round = 0; round < 60; round++) {
                Strided in = strided_new(&sample, DTYPE_F32);
                int dim = (int)sample_int(&sample, 0, in.meta.rank - 1);
                RowPlan plan;
                row_plan(&plan, &in.meta, 1u << dim, true);
                int64_t inner = 1, n = plan.n_rows * plan.row_length;
                for (int d = dim + 1; d < in.meta.rank; d++)
                        inner *= in.meta.size[d];
                size_t bytes = (size_t)n * 4;
                float *out = guarded_new(bytes);
                Scan scan = { .dtype = DTYPE_F32, .kind = SCAN_SUM, .inner = inner, .out = out };
                cr_assert_eq(scan_run(NULL, &plan, &scan, in.data), STATUS_OK);
                for (int64_t i = 0; i < n; i++) {
                        double before = i / inner % plan.row_length == 0 ? 0 : (double)out[i - inner];
                        double want = before + (double)((const float *)in.data)[offset_at(&in.meta, i)];
                        cr_assert(close_enough(DTYPE_F32, (double)out[i], want));
                }
                guarded_check(out, bytes);
                guarded_check(in.data, in.n_bytes);
        }
}

// [outer][n][inner], and the same rows one after another: by columns, and one by one.
static void compare_scans(Sample *sample, Dtype dtype, ScanKind kind)
{
        int64_t outer = sample_int(sample, 1, 3), n = sample_int(sample, 2, 9),
                inner = sample_int(sample, 14, 300), total = outer * n * inner,
                item = dtype_info[dtype].bytes;
        size_t bytes = (size_t)(total * item);
        char *data = guarded_new(bytes), *row = guarded_new((size_t)(n * item)), *out = guarded_new(bytes),
             *want = guarded_new((size_t)(n * item));
        int64_t *indices = guarded_new((size_t)total * 8), *want_indices = guarded_new((size_t)n * 8);
        bool single = sample_int(sample, 0, 1) != 0;
        sample_fill(sample, dtype, data, total);
        for (int64_t i = 0; i < total && dtype == DTYPE_F32; i += 31)
                ((float *)(void *)data)[i] = i % 3 == 0 ? NAN : -0.0f;
        TensorMeta meta;
        RowPlan plan;
        meta_init(&meta, dtype, 3, (int64_t[]){ outer, n, inner });
        row_plan(&plan, &meta, 2, true);
        Scan scan = { dtype, kind, single, inner, out, indices };
        cr_assert_eq(scan_run(NULL, &plan, &scan, data), STATUS_OK);
        meta_init(&meta, dtype, 1, &n);
        row_plan(&plan, &meta, 1, true);
        for (int64_t k = 0; k < outer * inner; k++) {
                int64_t first = k / inner * n * inner + k % inner;
                for (int64_t i = 0; i < n; i++)
                        memcpy(row + i * item, data + (first + i * inner) * item, (size_t)item);
                Scan one = { dtype, kind, single, 1, want, want_indices };
                cr_assert_eq(scan_run(NULL, &plan, &one, row), STATUS_OK);
                for (int64_t i = 0; i < n; i++) {
                        int64_t at = first + i * inner;
                        cr_assert(memcmp(out + at * item, want + i * item, (size_t)item) == 0);
                        cr_assert(kind < SCAN_MAX || indices[at] == want_indices[i]);
                }
        }
        guarded_check(data, bytes);
        guarded_check(row, (size_t)(n * item));
        guarded_check(out, bytes);
        guarded_check(want, (size_t)(n * item));
        guarded_check(indices, (size_t)total * 8);
        guarded_check(want_indices, (size_t)n * 8);
}

Test(reduce, scans_of_columns_have_the_bits_of_single_rows)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F64, DTYPE_I64 };
        Sample sample = { 44 };
        for (int round = 0; round < 96; round++)
                compare_scans(&sample, dtypes[round % 3], (ScanKind)(round / 3 % 4));
}
