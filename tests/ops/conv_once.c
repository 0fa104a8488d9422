// SPDX-License-Identifier: Apache-2.0
// conv_once.c: eager convolutions by packed kernels against the plain kernel, over random shapes,
// layouts and arguments, on each instruction set. A run with a scratch pool takes the plain one.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/kernels/dense.h"
#include "core/ops/conv.h"
#include "tests/kernels/sample.h"

static Graph *graph;
static EagerEmitter *eager;
static RunContext ctx;
static ScratchPool no_pool; // of no bytes: scratch comes from the heap

static void begin(void)
{
        run_context_init(&ctx);
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(eager_open(graph, &ctx, &eager), STATUS_OK);
}
static void end(void)
{
        eager = eager_close(eager);
        graph = graph_unref(graph);
}
TestSuite(conv_once, .init = begin, .fini = end);

// ---- tensors ----
typedef enum Layout { CONTIGUOUS, CHANNELS_LAST, EVERY_SECOND, GAPS, TURNED, N_LAYOUTS } Layout;

// A view of random numbers in one of the layouts; among them every second one of channels_last
// images, rows with gaps between them, dimensions in reverse.
static Tensor *random_tensor(Sample *sample, int rank, const int64_t *size, Layout layout)
{
        TensorMeta meta;
        Tensor *tensor = NULL;
        int64_t larger[5], step = 1;
        memcpy(larger, size, (size_t)rank * sizeof(int64_t));
        if (layout == GAPS && rank > 0)
                larger[rank - 1] += 3;
        if (layout == EVERY_SECOND)
                larger[0] *= 2;
        meta_init(&meta, DTYPE_F32, rank, larger);
        if ((layout == CHANNELS_LAST || layout == EVERY_SECOND) && rank >= 4)
                meta_set_channels_last(&meta);
        for (int d = 0; layout == TURNED && d < rank; step *= meta.size[d++])
                meta.stride[d] = step;
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        sample_fill(sample, DTYPE_F32, tensor_data(tensor), meta_numel(&meta));
        memcpy(tensor->meta.size, size, (size_t)rank * sizeof(int64_t));
        tensor->meta.stride[0] *= layout == EVERY_SECOND ? 2 : 1;
        return tensor;
}

// `n` samples from `first` on, of the same bytes.
static Tensor *part_of(const Tensor *tensor, int64_t first, int64_t n)
{
        Tensor *part = NULL;
        TensorMeta meta = tensor->meta;
        meta.size[0] = n;
        cr_assert_eq(tensor_new(&meta, NULL, &part), STATUS_OK);
        Tensor from = *tensor;
        from.meta.size[0] = n;
        from.offset += first * tensor->meta.stride[0];
        tensor_copy_data(&from, part);
        return part;
}

// ---- calls ----
typedef struct Call {
        Tensor *input, *weight, *bias; // bias NULL: none
        int spatial;                   // dimensions: 2, or 3 of depthwise ones
        int64_t stride[3], padding[3], dilation[3], groups;
        bool same; // padding="same", which may be asymmetric
} Call;

static Value ints_of(const Call *call, const int64_t *ints)
{
        Seq *seq = NULL;
        cr_assert_eq(seq_new((uint32_t)call->spatial, &seq), STATUS_OK);
        for (int i = 0; i < call->spatial; i++)
                seq->items[i] = value_int(ints[i]);
        return value_seq_take(VALUE_LIST, seq);
}

static Status call_on(const Call *call, Tensor *input, Tensor **out)
{
        const Overload *overload = call->spatial == 2
                                           ? op_find(call->same ? "aten::conv2d.padding" : "aten::conv2d")
                                           : op_find(call->same ? "aten::conv3d.padding" : "aten::conv3d");
        cr_assert_not_null(overload);
        Value padding = ints_of(call, call->padding), result = value_none();
        if (call->same) {
                value_clear(&padding);
                cr_assert_eq(value_str_new("same", 4, &padding), STATUS_OK);
        }
        Value args[] = { value_tensor_take(tensor_ref(input)),
                         value_tensor_take(tensor_ref(call->weight)),
                         call->bias == NULL ? value_none() : value_tensor_take(tensor_ref(call->bias)),
                         ints_of(call, call->stride),
                         padding,
                         ints_of(call, call->dilation),
                         value_int(call->groups) };
        Status status = emit(eager_emitter(eager), overload, args, 0x7f, &result);
        for (size_t i = 0; i < ARRAY_LENGTH(args); i++)
                value_clear(&args[i]);
        *out = status == STATUS_OK ? tensor_ref(result.tensor) : NULL;
        value_clear(&result);
        return status;
}

static Tensor *result_on(const Call *call, Tensor *input, bool plain)
{
        Tensor *out = NULL;
        ctx.pool = plain ? &no_pool : NULL;
        cr_assert_eq(call_on(call, input, &out), STATUS_OK, "%s", failure_current()->message);
        ctx.pool = NULL;
        return out;
}

static void drop(Call *call)
{
        tensor_unref(call->input);
        tensor_unref(call->weight);
        tensor_unref(call->bias);
}

static Call random_call(Sample *sample)
{
        bool depthwise = sample_int(sample, 0, 2) == 0;
        int spatial = depthwise && sample_int(sample, 0, 1) == 0 ? 3 : 2;
        Call call = { .spatial = spatial, .groups = 1, .same = sample_int(sample, 0, 4) == 0 };
        int64_t n_in = sample_int(sample, 1, 40), n_out = depthwise ? n_in : sample_int(sample, 1, 70),
                size[5] = { sample_int(sample, 1, 3), n_in }, kernel[5] = { n_out, n_in };
        if (depthwise)
                kernel[1] = 1, call.groups = n_in;
        else if (sample_int(sample, 0, 5) == 0 && n_in % 2 == 0 && n_out % 2 == 0)
                kernel[1] = n_in / 2, call.groups = 2;
        for (int i = 0; i < spatial; i++) {
                kernel[2 + i] = sample_int(sample, 1, 5);
                call.dilation[i] = sample_int(sample, 1, 2);
                call.stride[i] = call.same ? 1 : sample_int(sample, 1, 3);
                call.padding[i] = sample_int(sample, 0, 3);
                size[2 + i] = spatial == 3 ? sample_int(sample, 9, 12) : sample_int(sample, 9, 30);
        }
        call.input = random_tensor(sample, 2 + spatial, size, (Layout)sample_int(sample, 0, N_LAYOUTS - 1));
        call.weight =
                random_tensor(sample, 2 + spatial, kernel, (Layout)sample_int(sample, 0, N_LAYOUTS - 1));
        if (sample_int(sample, 0, 1) == 0)
                call.bias = random_tensor(sample, 1, &n_out, (Layout)sample_int(sample, 0, N_LAYOUTS - 1));
        return call;
}

// ---- comparisons ----
static float element(const Tensor *tensor, int64_t i)
{
        const TensorMeta *meta = &tensor->meta;
        int64_t at = 0;
        for (int d = meta->rank - 1; d >= 0; i /= meta->size[d--])
                at += i % meta->size[d] * meta->stride[d];
        return ((const float *)tensor_data(tensor))[at];
}

static void check_near(const Call *call, const Tensor *got, const Tensor *want)
{
        int64_t n = meta_numel(&want->meta),
                terms = meta_numel(&call->weight->meta) / call->weight->meta.size[0];
        cr_assert(meta_same_shape(&got->meta, &want->meta) && meta_same_places(&got->meta, &want->meta));
        for (int64_t i = 0; i < n; i++)
                cr_assert(
                        close_enough_sum(DTYPE_F32, (double)element(got, i), (double)element(want, i), terms),
                        "%.9g instead of %.9g at %ld", (double)element(got, i), (double)element(want, i),
                        (long)i);
}

static bool bits_differ(const Tensor *a, int64_t from, const Tensor *b)
{
        int64_t n = meta_numel(&b->meta);
        for (int64_t i = 0; i < n; i++) {
                float x = element(a, from + i), y = element(b, i);
                if (memcmp(&x, &y, sizeof(x)) != 0)
                        return true;
        }
        return false;
}

static void compare_with_plain(const Call *call, uint32_t *n_packed)
{
        Tensor *got = result_on(call, call->input, false), *want = result_on(call, call->input, true);
        check_near(call, got, want);
        *n_packed += bits_differ(got, 0, want);
        tensor_unref(got);
        tensor_unref(want);
}

Test(conv_once, random_convolutions_agree_with_the_plain_kernel_on_each_instruction_set)
{
        Sample sample = { 61 };
        uint32_t n_packed[ISA_COUNT] = { 0 };
        for (int round = 0; round < 160; round++) {
                Call call = random_call(&sample);
                ctx.n_threads = 1 + round % 2;
                FOR_EACH_ISA(isa) compare_with_plain(&call, &n_packed[isa]);
                drop(&call);
        }
        cr_assert_eq(n_packed[ISA_PORTABLE], 0, "there is no packed kernel");
        for (Isa isa = ISA_AVX2; isa <= isa_machine(); isa++)
                // small sums often have the same bits
                cr_assert_gt(n_packed[isa], 20, "packed kernels were hardly tried: %u", n_packed[isa]);
}

// ---- what a result may depend on ----
static void check_sample(const Call *call, const Tensor *all, int64_t first, int64_t n)
{
        Tensor *input = part_of(call->input, first, n), *got = result_on(call, input, false);
        int64_t each = meta_numel(&all->meta) / all->meta.size[0];
        cr_assert(!bits_differ(all, first * each, got), "%ld from %ld on", (long)n, (long)first);
        tensor_unref(got);
        tensor_unref(input);
}

Test(conv_once, bits_of_a_sample_depend_neither_on_the_batch_nor_on_neighbours_that_are_not_finite)
{
        static const int64_t sizes[][4] = { { 5, 7, 20, 3 },   { 4, 4, 12, 3 },   { 9, 9, 40, 1 },
                                            { 13, 13, 24, 1 }, { 20, 17, 33, 3 }, { 6, 6, 16, 5 } };
        Sample sample = { 62 };
        for (size_t k = 0; k < 2 * N_LAYOUTS * ARRAY_LENGTH(sizes); k++) {
                const int64_t *of = sizes[k % ARRAY_LENGTH(sizes)];
                const bool depthwise = k / ARRAY_LENGTH(sizes) % 2 == 1;
                int64_t input[] = { 8, of[2], of[0], of[1] },
                        weight[] = { depthwise ? of[2] : 19, depthwise ? 1 : of[2], of[3], of[3] };
                Call call = { .spatial = 2,
                              .stride = { 1, 1 },
                              .padding = { of[3] / 2, of[3] / 2 },
                              .dilation = { 1, 1 },
                              .groups = depthwise ? of[2] : 1 };
                call.input = random_tensor(&sample, 4, input, (Layout)(k / ARRAY_LENGTH(sizes) / 2));
                call.weight = random_tensor(&sample, 4, weight, CONTIGUOUS);
                float *bad = (float *)tensor_data(call.input) + 2 * call.input->meta.stride[0];
                bad[call.input->meta.stride[1]] = NAN;
                bad[call.input->meta.stride[3]] = INFINITY;
                Tensor *all = result_on(&call, call.input, false);
                for (int64_t i = 0; i < 8; i++)
                        check_sample(&call, all, i, 1);
                check_sample(&call, all, 3, 2);
                check_sample(&call, all, 1, 3);
                tensor_unref(all);
                drop(&call);
        }
}

static Call plain_call(Sample *sample, const int64_t *input, const int64_t *weight, Layout layout)
{
        return (Call){ .spatial = 2,
                       .stride = { 1, 1 },
                       .padding = { 1, 1 },
                       .dilation = { 1, 1 },
                       .groups = 1,
                       .input = random_tensor(sample, 4, input, layout),
                       .weight = random_tensor(sample, 4, weight, CONTIGUOUS) };
}

Test(conv_once, padding_meets_a_weight_that_is_not_finite_as_in_the_plain_kernel)
{
        Sample sample = { 63 };
        for (int what = 0; what < 12; what++) {
                bool depthwise = what >= 4;
                int64_t input[] = { 1, 6, 12, 12, 12 }, weights[] = { 6, depthwise ? 1 : 6, 3, 3, 3 };
                Call call = { .spatial = what >= 8 ? 3 : 2,
                              .stride = { 1, 1, 1 },
                              .padding = { 1, 1, 1 },
                              .dilation = { 1, 1, 1 },
                              .groups = depthwise ? 6 : 1 };
                call.input = random_tensor(&sample, 2 + call.spatial, input, CONTIGUOUS);
                call.weight = random_tensor(&sample, 2 + call.spatial, weights, CONTIGUOUS);
                float *weight = tensor_data(call.weight);
                weight[what % 2 == 0 ? 0 : meta_numel(&call.weight->meta) - 1] =
                        what % 4 < 2 ? INFINITY : NAN;
                Tensor *got = result_on(&call, call.input, false), *want = result_on(&call, call.input, true);
                int64_t corner = what % 2 == 0 ? 0 : meta_numel(&want->meta) - 1;
                cr_assert_eq(isnan(element(want, corner)) != 0, !depthwise, "case %d", what);
                check_near(&call, got, want);
                tensor_unref(got);
                tensor_unref(want);
                drop(&call);
        }
}

// The largest distance of results from sums in double; three by three taps, padded by none.
static double error_of(const Call *call, const Tensor *got)
{
        const TensorMeta *out = &got->meta, *weight = &call->weight->meta;
        int64_t taps = weight->size[1] * 9, width = call->input->meta.size[3];
        double error = 0;
        for (int64_t i = 0; i < meta_numel(out); i++) {
                int64_t x = i % out->size[3], y = i / out->size[3] % out->size[2],
                        channel = i / out->size[3] / out->size[2];
                double sum = 0;
                for (int64_t k = 0; k < taps; k++)
                        sum += (double)element(call->weight, channel * taps + k) *
                               (double)element(call->input,
                                               (k / 9 * width + y + k / 3 % 3) * width + x + k % 3);
                error = fmax(error, fabs(sum - (double)element(got, i)));
        }
        return error;
}

Test(conv_once, long_sums_are_hardly_rougher_than_those_of_the_plain_kernel)
{
        Sample sample = { 66 };
        Call call = plain_call(&sample, (int64_t[]){ 1, 1800, 9, 9 }, (int64_t[]){ 8, 1800, 3, 3 },
                               CHANNELS_LAST);
        for (int i = 0; i < 2; i++)
                call.padding[i] = 0;
        Tensor *got = result_on(&call, call.input, false), *want = result_on(&call, call.input, true);
        cr_assert_eq(bits_differ(got, 0, want), isa_level() != ISA_PORTABLE);
        double error = error_of(&call, got), plain = error_of(&call, want);
        cr_assert(plain > 0 && error < 4 * plain, "%g, the plain kernel's %g", error, plain);
        tensor_unref(got);
        tensor_unref(want);
        drop(&call);
}

Test(conv_once, a_run_whose_budget_has_no_room_for_packing_takes_the_plain_kernel)
{
        Sample sample = { 64 };
        Call call =
                plain_call(&sample, (int64_t[]){ 2, 40, 40, 40 }, (int64_t[]){ 64, 40, 3, 3 }, CHANNELS_LAST);
        Tensor *packed = result_on(&call, call.input, false), *plain = result_on(&call, call.input, true);
        uint32_t n_packed = 0, n_plain = 0;
        Budget budget;
        budget_init(&budget, SIZE_MAX);
        ctx.budget = &budget;
        tensor_unref(result_on(&call, call.input, true));
        ctx.budget = NULL;
        size_t least = atomic_load(&budget.peak), step = (size_t)meta_numel(&plain->meta);
        for (size_t room = 0; room < 10 * step; room += step) {
                budget_init(&budget, least + room);
                ctx.budget = &budget;
                Tensor *got = result_on(&call, call.input, false);
                ctx.budget = NULL;
                bool is_plain = !bits_differ(got, 0, plain);
                cr_assert(is_plain || !bits_differ(got, 0, packed));
                n_plain += is_plain;
                n_packed += !is_plain;
                tensor_unref(got);
                cr_assert_eq(atomic_load(&budget.used), 0);
        }
        cr_assert(isa_level() == ISA_PORTABLE || (n_plain > 0 && n_packed > 0), "%u %u", n_plain, n_packed);
        tensor_unref(packed);
        tensor_unref(plain);
        drop(&call);
}
