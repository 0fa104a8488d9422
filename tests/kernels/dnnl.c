// SPDX-License-Identifier: Apache-2.0
// oneDNN primitives against plain sums in double, on random shapes and layouts.
#include "core/kernels/dnnl/primitive.h"
#include <pthread.h>
#include "tests/kernels/sample.h"

// ---- what is wanted ----
static double activated(const DnnlEpilogue *epilogue, double x)
{
        switch (epilogue->activation) {
        case DNNL_RELU:
                return x > 0 ? x : 0;
        case DNNL_CLIP:
                return fmin(fmax(x, (double)epilogue->alpha), (double)epilogue->beta);
        case DNNL_SWISH:
                return x / (1 + exp(-x));
        case DNNL_GELU_ERF:
                return 0.5 * x * (1 + erf(x / sqrt(2)));
        case DNNL_GELU_TANH:
                return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
        case DNNL_HARDSWISH:
                return x * fmin(fmax(x + 3, 0), 6) / 6;
        case DNNL_TANH:
                return tanh(x);
        case DNNL_SIGMOID:
                return 1 / (1 + exp(-x));
        default:
                return x;
        }
}

static DnnlEpilogue random_epilogue(Sample *sample)
{
        DnnlEpilogue epilogue = { .add_out = sample_int(sample, 0, 2) == 0,
                                  .activation = (DnnlActivation)sample_int(sample, 0, DNNL_SIGMOID) };
        if (epilogue.activation == DNNL_CLIP) {
                epilogue.alpha = -0.5f;
                epilogue.beta = 0.25f;
        }
        if (epilogue.activation == DNNL_SWISH)
                epilogue.alpha = 1;
        return epilogue;
}

static float *random_floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

static TensorMeta dense_meta(int rank, const int64_t *size, bool channels_last)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, rank, size);
        if (channels_last) {
                int64_t step = size[1];
                meta.stride[1] = 1;
                for (int d = rank - 1; d >= 2; d--) {
                        meta.stride[d] = step;
                        step *= size[d];
                }
                meta.stride[0] = step;
        }
        return meta;
}

// ---- convolution ----
typedef struct Case {
        DnnlConv conv;
        float *input, *weight, *bias, *before, *out;
} Case;

static Case random_conv(Sample *sample, int spatial)
{
        Case made = { 0 };
        DnnlConv *conv = &made.conv;
        conv->groups = sample_int(sample, 0, 3) == 0 ? sample_int(sample, 1, 4) : 1;
        bool depthwise = sample_int(sample, 0, 4) == 0, last = sample_int(sample, 0, 3) != 0;
        int64_t group_in = depthwise ? 1 : sample_int(sample, 1, 20),
                group_out = depthwise ? 1 : sample_int(sample, 1, 20);
        if (depthwise)
                conv->groups = sample_int(sample, 1, 40);
        int64_t in[5] = { sample_int(sample, 1, 2), conv->groups * group_in },
                out[5] = { in[0], conv->groups * group_out };
        int64_t weight[5] = { conv->groups * group_out, group_in };
        for (int i = 0; i < spatial; i++) {
                conv->stride[i] = sample_int(sample, 1, 2);
                conv->dilation[i] = sample_int(sample, 1, 2);
                conv->padding[i] = sample_int(sample, 0, 2);
                weight[2 + i] = sample_int(sample, 1, 3);
                int64_t reach = (weight[2 + i] - 1) * conv->dilation[i] + 1,
                        after = sample_int(sample, 0, 1) == 0 ? conv->padding[i] : conv->padding[i] + 1;
                in[2 + i] = reach + sample_int(sample, 0, spatial == 3 ? 4 : 11);
                out[2 + i] = (in[2 + i] + conv->padding[i] + after - reach) / conv->stride[i] + 1;
        }
        conv->input = dense_meta(spatial + 2, in, last);
        conv->out = dense_meta(spatial + 2, out, last);
        conv->weight = dense_meta(spatial + 2, weight, false);
        conv->n_threads = (int)sample_int(sample, 1, 2);
        conv->epilogue = random_epilogue(sample);
        made.input = random_floats(sample, meta_numel(&conv->input));
        made.weight = random_floats(sample, meta_numel(&conv->weight));
        made.before = random_floats(sample, meta_numel(&conv->out));
        made.out = guarded_new((size_t)meta_numel(&conv->out) * sizeof(float));
        conv->weight_data = made.weight;
        if (sample_int(sample, 0, 1) == 0)
                conv->bias_data = made.bias = random_floats(sample, weight[0]);
        return made;
}

static void free_case(Case *made)
{
        guarded_check(made->input, (size_t)meta_numel(&made->conv.input) * sizeof(float));
        guarded_check(made->weight, (size_t)meta_numel(&made->conv.weight) * sizeof(float));
        guarded_check(made->before, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        guarded_check(made->out, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        if (made->bias != NULL)
                guarded_check(made->bias, (size_t)made->conv.out.size[1] * sizeof(float));
}

static int64_t offset_at(const TensorMeta *meta, const int64_t *at)
{
        int64_t offset = 0;
        for (int d = 0; d < meta->rank; d++)
                offset += at[d] * meta->stride[d];
        return offset;
}

static bool next(const TensorMeta *meta, int64_t *at)
{
        for (int d = meta->rank - 1; d >= 0; d--) {
                if (++at[d] < meta->size[d])
                        return true;
                at[d] = 0;
        }
        return false;
}

static double wanted_at(const Case *made, const int64_t *at)
{
        const DnnlConv *conv = &made->conv;
        int64_t group_in = conv->weight.size[1], group = at[1] / (conv->out.size[1] / conv->groups),
                tap[MAX_RANK] = { at[1] };
        double sum = made->bias == NULL ? 0 : (double)made->bias[at[1]];
        TensorMeta taps = conv->weight;
        taps.size[0] = 1;
        tap[0] = 0;
        do {
                int64_t from[MAX_RANK] = { at[0], group * group_in + tap[1] }, weight[MAX_RANK];
                memcpy(weight, tap, sizeof(weight));
                weight[0] = at[1];
                bool inside = true;
                for (int d = 2; d < conv->input.rank; d++) {
                        from[d] = at[d] * conv->stride[d - 2] - conv->padding[d - 2] +
                                  tap[d] * conv->dilation[d - 2];
                        inside &= from[d] >= 0 && from[d] < conv->input.size[d];
                }
                if (inside)
                        sum += (double)made->input[offset_at(&conv->input, from)] *
                               (double)made->weight[offset_at(&conv->weight, weight)];
        } while (next(&taps, tap));
        if (conv->epilogue.add_out)
                sum += (double)made->before[offset_at(&conv->out, at)];
        return activated(&conv->epilogue, sum);
}

static void check_conv(const Case *made, const float *out, const char *name)
{
        const DnnlConv *conv = &made->conv;
        int64_t at[MAX_RANK] = { 0 }, terms = meta_numel(&conv->weight) / conv->weight.size[0];
        do {
                double got = (double)out[offset_at(&conv->out, at)], want = wanted_at(made, at);
                cr_assert(close_enough_sum(DTYPE_F32, got, want, terms),
                          "%s rank %d groups %ld activation %d: %.9g instead of %.9g", name, conv->input.rank,
                          (long)conv->groups, (int)conv->epilogue.activation, got, want);
        } while (next(&conv->out, at));
}

static void *scratch_for(const DnnlPrimitive *primitive)
{
        return aligned_alloc(64, (dnnl_primitive_scratch(primitive) + 127) / 64 * 64);
}

Test(dnnl, convolutions_agree_with_plain_sums_on_random_shapes_layouts_and_epilogues)
{
        Sample sample = { 11 };
        int n_made = 0;
        for (int round = 0; round < 240; round++) {
                Case made = random_conv(&sample, 1 + round % 3);
                DnnlPrimitive *primitive;
                cr_assert_eq(dnnl_conv_new(&made.conv, &primitive), STATUS_OK);
                if (primitive != NULL) {
                        void *scratch = scratch_for(primitive);
                        memcpy(made.out, made.before, (size_t)meta_numel(&made.conv.out) * sizeof(float));

                        cr_assert_eq(dnnl_primitive_run(primitive, made.input, NULL, made.out, scratch),
                                     STATUS_OK);
                        check_conv(&made, made.out, dnnl_primitive_name(primitive));
                        cr_assert_null(strstr(dnnl_primitive_name(primitive), "ref"));
                        free(scratch);
                        n_made++;
                }
                dnnl_primitive_free(primitive);
                free_case(&made);
        }
        cr_assert(dnnl_is_used() ? n_made > 60 : n_made == 0);
}

// ---- products ----
// Vectors and matrices.
static int64_t one_or(Sample *sample, int64_t most)
{
        return sample_int(sample, 0, 3) == 0 ? 1 : sample_int(sample, 1, most);
}

// Elements apart, rows or columns along memory; the number of elements it spans.
static int64_t spread(Sample *sample, TensorMeta *meta)
{
        int row = meta->rank - 2, column = meta->rank - 1, far = sample_int(sample, 0, 1) == 0 ? row : column,
            near = row + column - far;
        meta->stride[near] = 1;
        meta->stride[far] = meta->size[near] + (sample_int(sample, 0, 1) == 0 ? 0 : sample_int(sample, 1, 4));
        int64_t n = meta->stride[far] * meta->size[far];
        if (meta->rank == 3)
                meta->stride[0] = n;
        return meta->rank == 3 ? n * meta->size[0] : n;
}

static void check_matmul(Sample *sample, bool constant)
{
        int64_t batch = sample_int(sample, 1, 3), m = one_or(sample, 33), n = one_or(sample, 50),
                k = one_or(sample, 70);
        int rank = constant ? 2 : 3;
        batch = constant ? 1 : batch;
        bool turned = sample_int(sample, 0, 1) == 0, biased = constant && sample_int(sample, 0, 1) == 0;
        int64_t a_size[] = { batch, m, k }, b_size[] = { batch, k, n }, out_size[] = { batch, m, n };
        DnnlMatmul matmul = { .epilogue = random_epilogue(sample), .n_threads = 1 };
        meta_init(&matmul.a, DTYPE_F32, rank, a_size + 3 - rank);
        meta_init(&matmul.b, DTYPE_F32, rank, b_size + 3 - rank);
        meta_init(&matmul.out, DTYPE_F32, rank, out_size + 3 - rank);
        if (turned) {
                matmul.b.stride[rank - 1] = k;
                matmul.b.stride[rank - 2] = 1;
        }
        int64_t n_a = spread(sample, &matmul.a), n_out = spread(sample, &matmul.out);
        if (k == 1) // says nothing
                matmul.a.stride[rank - 1] = sample_int(sample, 0, 5);
        if (m == 1)
                matmul.a.stride[rank - 2] = sample_int(sample, 0, 5);
        float *a = random_floats(sample, n_a), *b = random_floats(sample, batch * k * n),
              *bias = random_floats(sample, n), *before = random_floats(sample, n_out),
              *out = guarded_new((size_t)n_out * sizeof(float));
        matmul.b_data = constant ? b : NULL;
        matmul.bias_data = biased ? bias : NULL;
        memcpy(out, before, (size_t)n_out * sizeof(float));
        DnnlPrimitive *primitive;
        cr_assert_eq(dnnl_matmul_new(&matmul, &primitive), STATUS_OK);
        if (primitive != NULL) {
                void *scratch = scratch_for(primitive);
                cr_assert_eq(dnnl_primitive_run(primitive, a, constant ? NULL : b, out, scratch), STATUS_OK);
                for (int64_t i = 0; i < batch * m * n; i++) {
                        int64_t item = i / (m * n), row = i / n % m, col = i % n, at[] = { item, row, col };
                        int64_t to = offset_at(&matmul.out, at + 3 - rank);
                        double sum = biased ? (double)bias[col] : 0;
                        for (int64_t p = 0; p < k; p++)
                                sum += (double)a[offset_at(&matmul.a,
                                                           (int64_t[]){ item, row, p } + 3 - rank)] *
                                       (double)b[item * k * n + (turned ? col * k + p : p * n + col)];
                        double want = activated(&matmul.epilogue,
                                                sum + (matmul.epilogue.add_out ? (double)before[to] : 0));
                        cr_assert(close_enough_sum(DTYPE_F32, (double)out[to], want, k),
                                  "%s %ldx%ldx%ld activation %d: %.9g instead of %.9g",
                                  dnnl_primitive_name(primitive), (long)m, (long)n, (long)k,
                                  (int)matmul.epilogue.activation, (double)out[to], want);
                }
                free(scratch);
        }
        dnnl_primitive_free(primitive);
        guarded_check(a, (size_t)n_a * sizeof(float));
        guarded_check(b, (size_t)(batch * k * n) * sizeof(float));
        guarded_check(bias, (size_t)n * sizeof(float));
        guarded_check(before, (size_t)n_out * sizeof(float));
        guarded_check(out, (size_t)n_out * sizeof(float));
}

Test(dnnl, products_agree_with_plain_sums_packed_or_not_turned_or_not)
{
        Sample sample = { 12 };
        for (int round = 0; round < 1000; round++)
                check_matmul(&sample, round % 2 == 0);
}

Test(dnnl, a_layout_whose_elements_overlap_has_no_primitive)
{
        int64_t size[] = { 4, 4 };
        float weight[16] = { 0 };
        DnnlMatmul matmul = { .b_data = weight, .n_threads = 1 };
        meta_init(&matmul.a, DTYPE_F32, 2, size);
        meta_init(&matmul.b, DTYPE_F32, 2, size);
        meta_init(&matmul.out, DTYPE_F32, 2, size);
        matmul.a.stride[0] = 1;
        DnnlPrimitive *primitive = NULL;
        cr_assert_eq(dnnl_matmul_new(&matmul, &primitive), STATUS_OK);
        cr_assert_null(primitive);
}

// ---- threads ----
enum { N_THREADS = 2, N_RUNS = 200 };
typedef struct Runner {
        DnnlPrimitive *primitive;
        const float *input, *want;
        int64_t n;
        int n_wrong;
} Runner;

static void *run_often(void *argument)
{
        Runner *runner = argument;
        float *out = malloc((size_t)runner->n * sizeof(float));
        void *scratch = scratch_for(runner->primitive);
        for (int i = 0; i < N_RUNS; i++) {
                memset(out, 0, (size_t)runner->n * sizeof(float));
                if (dnnl_primitive_run(runner->primitive, runner->input, NULL, out, scratch) != STATUS_OK ||
                    memcmp(out, runner->want, (size_t)runner->n * sizeof(float)) != 0)
                        runner->n_wrong++;
        }
        free(scratch);
        free(out);
        return NULL;
}

Test(dnnl, two_threads_run_one_primitive_on_inputs_of_their_own)
{
        Sample sample = { 13 };
        int64_t in[] = { 1, 16, 12, 12 }, weight[] = { 16, 16, 3, 3 };
        float *kernel = random_floats(&sample, 16 * 16 * 9), *inputs[N_THREADS], *wants[N_THREADS];
        DnnlConv conv = { .input = dense_meta(4, in, true),
                          .out = dense_meta(4, in, true),
                          .weight = dense_meta(4, weight, false),
                          .weight_data = kernel,
                          .groups = 1,
                          .stride = { 1, 1 },
                          .padding = { 1, 1 },
                          .dilation = { 1, 1 },
                          .n_threads = 1 };
        DnnlPrimitive *primitive;
        cr_assert_eq(dnnl_conv_new(&conv, &primitive), STATUS_OK);
        cr_assert_eq(primitive != NULL, dnnl_is_used());
        if (primitive == NULL)
                return;
        int64_t n = meta_numel(&conv.out);
        Runner runners[N_THREADS];
        pthread_t threads[N_THREADS];
        void *scratch = scratch_for(primitive);
        for (int i = 0; i < N_THREADS; i++) {
                inputs[i] = random_floats(&sample, n);
                wants[i] = guarded_new((size_t)n * sizeof(float));
                cr_assert_eq(dnnl_primitive_run(primitive, inputs[i], NULL, wants[i], scratch), STATUS_OK);
                runners[i] = (Runner){ .primitive = primitive, .input = inputs[i], .want = wants[i], .n = n };
        }
        for (int i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, run_often, &runners[i]);
        for (int i = 0; i < N_THREADS; i++) {
                pthread_join(threads[i], NULL);
                cr_assert_eq(runners[i].n_wrong, 0);
                guarded_check(inputs[i], (size_t)n * sizeof(float));
                guarded_check(wants[i], (size_t)n * sizeof(float));
        }
        free(scratch);
        guarded_check(kernel, 16 * 16 * 9 * sizeof(float));
        dnnl_primitive_free(primitive);
}
