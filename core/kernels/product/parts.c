// SPDX-License-Identifier: Apache-2.0
// parts.c: a product's axes (batch dimensions, rows, columns; or images and output channels) each
// have a step, which makes a grid of parts. Parts of one size share a primitive, unless they hold a
// constant operand of their own. Primitives whose sums depend on their number of threads have one,
// and threads take parts.
#include "core/kernels/product/parts.h"
#include "core/base/isa.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_AXES = MAX_RANK, ROUND = 16, MOST_PARTS = 1 << 20 };

// Elements from one index to the next in each operand; 0: the operand does not have the axis.
typedef struct Axis {
        int64_t size, step, a, b, out;
} Axis;

typedef struct Part {
        DnnlPrimitive *primitive; // borrowed from `made`
        int64_t a, b, out;        // floats
} Part;

typedef struct Made {
        DnnlPrimitive *primitive;
        int64_t size[MAX_AXES], b, bias;
} Made;

struct Parts {
        Made *made;
        uint32_t n_made, made_capacity;
        Part *parts;
        int64_t n;
        size_t scratch_bytes; // of one primitive
        int n_threads;        // that take parts
};

// What is being cut, and how a part of it is made: sizes[] along the axes from at[] on.
typedef struct Cutting {
        int n_axes;
        Axis axis[MAX_AXES];
        bool constant;          // b is packed: a part of b is a primitive of its own
        bool biased;            // likewise for a part of the bias, which lies along the last axis
        int n_threads;          // that take parts
        const RunContext *poll; // of the packing thread
        const void *task;
        Status (*make)(const void *task, const int64_t *at, const int64_t *size,
                       DnnlPrimitive **out_primitive);
} Cutting;

void parts_free(void *pointer)
{
        Parts *parts = pointer;
        if (parts == NULL)
                return;
        for (uint32_t i = 0; i < parts->n_made; i++)
                dnnl_primitive_free(parts->made[i].primitive);
        free(parts->made);
        free(parts->parts);
        free(parts);
}

const char *parts_name(const Parts *parts)
{
        return dnnl_primitive_name(parts->made[0].primitive);
}

size_t parts_scratch(const Parts *parts)
{
        return (size_t)parts->n_threads * parts->scratch_bytes;
}

int64_t parts_count(const Parts *parts)
{
        return parts->n;
}

// The primitive for a part, made unless there is one; NULL where the library has none.
static Status primitive_for(Parts *parts, const Cutting *cutting, const int64_t *at, const Made *wanted,
                            DnnlPrimitive **out_primitive)
{
        for (uint32_t i = 0; i < parts->n_made; i++) {
                const Made *made = &parts->made[i];
                if ((!cutting->constant || made->b == wanted->b) && made->bias == wanted->bias &&
                    memcmp(made->size, wanted->size, sizeof(made->size)) == 0) {
                        *out_primitive = made->primitive;
                        return STATUS_OK;
                }
        }
        TRY(array_reserve(&parts->made, &parts->made_capacity, parts->n_made + 1, sizeof(*parts->made)));
        TRY(cutting->make(cutting->task, at, wanted->size, out_primitive));
        if (*out_primitive == NULL)
                return STATUS_OK;
        parts->made[parts->n_made] = *wanted;
        parts->made[parts->n_made++].primitive = *out_primitive;
        parts->scratch_bytes =
                MAX(parts->scratch_bytes, storage_padded(dnnl_primitive_scratch(*out_primitive)));
        return STATUS_OK;
}

// Part `index` of the grid, the last axis fastest. *out_found: false where the library has no
// primitive.
static Status add_part(Parts *parts, const Cutting *cutting, int64_t index, bool *out_found)
{
        int64_t at[MAX_AXES] = { 0 };
        Made wanted = { 0 };
        Part part = { 0 };
        for (int d = cutting->n_axes - 1; d >= 0; d--) {
                const Axis *axis = &cutting->axis[d];
                int64_t n = (axis->size + axis->step - 1) / axis->step;
                at[d] = index % n * axis->step;
                index /= n;
                wanted.size[d] = MIN(axis->step, axis->size - at[d]);
                part.a += at[d] * axis->a;
                part.b += at[d] * axis->b;
                part.out += at[d] * axis->out;
        }
        wanted.b = part.b;
        wanted.bias = cutting->biased ? at[cutting->n_axes - 1] : 0;
        TRY(primitive_for(parts, cutting, at, &wanted, &part.primitive));
        *out_found = part.primitive != NULL;
        if (*out_found)
                parts->parts[parts->n++] = part;
        return STATUS_OK;
}

DEFINE_CLEANUP(Parts, parts_free)

static Status cut(const Cutting *cutting, Parts **out_parts)
{
        int64_t n = 1;
        bool found = true;
        *out_parts = NULL;
        for (int d = 0; d < cutting->n_axes; d++)
                if (!mul_i64(n, (cutting->axis[d].size + cutting->axis[d].step - 1) / cutting->axis[d].step,
                             &n) ||
                    n > MOST_PARTS)
                        return STATUS_OK;
        if (n == 0)
                return STATUS_OK;
        _cleanup_(parts_freep) Parts *parts = calloc(1, sizeof(*parts));
        if (parts == NULL || (parts->parts = new_array((size_t)n, sizeof(Part))) == NULL)
                return fail_memory();
        parts->n_threads = (int)MIN((int64_t)cutting->n_threads, n);
        for (int64_t i = 0; i < n && found; i++) {
                TRY(run_poll(cutting->poll));
                TRY(add_part(parts, cutting, i, &found));
        }
        if (found)
                *out_parts = take_ptr(parts);
        return STATUS_OK;
}

typedef struct PartsRun {
        const Parts *parts;
        const RunContext *ctx;
        const float *a, *b; // b NULL: packed
        float *out;
        char *scratch;
        _Atomic Status failed; // of a thread
} PartsRun;

// The parts of one thread.
static Status run_range(const PartsRun *run, const RunContext *ctx, int64_t thread)
{
        const Parts *parts = run->parts;
        int64_t first = thread * parts->n / parts->n_threads,
                last = (thread + 1) * parts->n / parts->n_threads;
        for (int64_t i = first; i < last; i++) {
                const Part *part = &parts->parts[i];
                if (i > first)
                        TRY(run_poll(ctx));
                TRY(dnnl_primitive_run(part->primitive, run->a + part->a,
                                       run->b == NULL ? NULL : run->b + part->b, run->out + part->out,
                                       run->scratch + (size_t)thread * parts->scratch_bytes));
        }
        return STATUS_OK;
}

static void run_ranges(void *argument, int64_t begin, int64_t end)
{
        PartsRun *run = argument;
        RunContext ctx;
        run_context_within(&ctx, run->ctx);
        for (int64_t thread = begin; thread < end; thread++) {
                Status status = run_range(run, &ctx, thread);
                if (status != STATUS_OK)
                        atomic_store(&run->failed, status);
        }
}

Status parts_run(const Parts *parts, const RunContext *ctx, const void *a, const void *b, void *out,
                 void *scratch)
{
        PartsRun run = { .parts = parts,
                         .ctx = ctx,
                         .a = a,
                         .b = b,
                         .out = out,
                         .scratch = scratch,
                         .failed = STATUS_OK };
        if (parts->n_threads == 1)
                return run_range(&run, ctx, 0);
        TRY(parallel_for(ctx, parts->n_threads, 1, run_ranges, &run));
        TRY(run_poll(ctx)); // what ended a thread's range
        Status failed = atomic_load(&run.failed);
        if (failed == STATUS_NO_MEMORY)
                return fail_memory();
        return failed == STATUS_OK ? STATUS_OK : fail(failed, "oneDNN failed in %s", parts_name(parts));
}

// ---- steps ----
// The largest step of at most `most`, a multiple of ROUND if it may be, that cuts
// `size` evenly but for rounding.
static int64_t even_step(int64_t size, int64_t most)
{
        if (most >= size)
                return size;
        most = MAX(most, (int64_t)1);
        if (most >= ROUND)
                most -= most % ROUND;
        int64_t n = (size + most - 1) / most, step = (size + n - 1) / n;
        return most >= ROUND ? MIN((step + ROUND - 1) / ROUND * ROUND, most) : step;
}

// ---- products of matrices ----
// Without AVX-512 the library splits sums among its threads.
static bool splits_sums(void)
{
        return isa_level() < ISA_AVX512;
}

static Status make_matmul(const void *task, const int64_t *at, const int64_t *size,
                          DnnlPrimitive **out_primitive)
{
        DnnlMatmul matmul = *(const DnnlMatmul *)task;
        if (splits_sums())
                matmul.n_threads = 1;
        int rank = matmul.a.rank, rows = rank - 2, columns = rank - 1;
        int64_t b = 0;
        for (int d = 0; d < rank; d++) {
                if (d != columns)
                        matmul.a.size[d] = size[d];
                if (d != rows) {
                        matmul.b.size[d] = size[d];
                        b += at[d] * matmul.b.stride[d];
                }
                matmul.out.size[d] = size[d];
        }
        if (matmul.b_data != NULL)
                matmul.b_data = (const float *)matmul.b_data + b;
        if (matmul.bias_data != NULL)
                matmul.bias_data = (const float *)matmul.bias_data + at[columns];
        return dnnl_matmul_new(&matmul, out_primitive);
}

// Rows and columns of a part: about a square, where b is not constant, so that little is read
// twice.
static void matmul_steps(const DnnlMatmul *matmul, int64_t depth, Axis *rows, Axis *columns)
{
        int64_t area = MAX(PART_FLOPS / (2 * depth), (int64_t)1);
        if (matmul->b_data != NULL)
                columns->step = even_step(columns->size, PART_WEIGHTS / depth);
        else if (rows->size <= area / columns->size)
                columns->step = columns->size;
        else
                columns->step = even_step(columns->size, MAX((int64_t)sqrt((double)area), area / rows->size));
        rows->step = even_step(rows->size, area / columns->step);
}

Status parts_matmul_new(const DnnlMatmul *matmul, Parts **out_parts)
{
        int rank = matmul->a.rank;
        Cutting cutting = { .n_axes = rank,
                            .constant = matmul->b_data != NULL,
                            .biased = matmul->bias_data != NULL,
                            .n_threads = splits_sums() ? matmul->n_threads : 1,
                            .poll = matmul->share.poll,
                            .task = matmul,
                            .make = make_matmul };
        int64_t depth = MAX(matmul->a.size[rank - 1], (int64_t)1);
        for (int d = 0; d < rank; d++)
                cutting.axis[d] = (Axis){ .size = matmul->out.size[d],
                                          .a = d == rank - 1 ? 0 : matmul->a.stride[d],
                                          .b = d == rank - 2 ? 0 : matmul->b.stride[d],
                                          .out = matmul->out.stride[d] };
        matmul_steps(matmul, depth, &cutting.axis[rank - 2], &cutting.axis[rank - 1]);
        // Whole matrices, as many as make a part; of the dimension before, if all of this one does.
        int64_t flops = 2 * depth * cutting.axis[rank - 2].step * cutting.axis[rank - 1].step;
        bool whole = cutting.axis[rank - 2].step == cutting.axis[rank - 2].size &&
                     cutting.axis[rank - 1].step == cutting.axis[rank - 1].size && cutting.n_threads == 1;
        for (int d = rank - 3; d >= 0; d--) {
                Axis *axis = &cutting.axis[d];
                axis->step = whole ? MIN(axis->size, MAX(PART_FLOPS / flops, (int64_t)1)) : 1;
                whole = whole && axis->step == axis->size;
                flops *= axis->step;
        }
        return cut(&cutting, out_parts);
}

// ---- convolutions ----
static Status make_conv(const void *task, const int64_t *at, const int64_t *size,
                        DnnlPrimitive **out_primitive)
{
        DnnlConv conv = *(const DnnlConv *)task;
        conv.input.size[0] = conv.out.size[0] = size[0];
        conv.out.size[1] = conv.weight.size[0] = size[1];
        if (size[0] == 1 && conv.out.stride[1] != 1)
                // of channels before pixels a part is dense
                conv.out.stride[0] = size[1] * conv.out.stride[1];
        conv.weight_data = (const float *)conv.weight_data + at[1] * conv.weight.stride[0];
        if (conv.bias_data != NULL)
                conv.bias_data = (const float *)conv.bias_data + at[1];
        return dnnl_conv_new(&conv, out_primitive);
}

Status parts_conv_new(const DnnlConv *conv, Parts **out_parts)
{
        Cutting cutting = { .n_axes = 2,
                            .constant = true,
                            .n_threads = 1,
                            .poll = conv->share.poll,
                            .task = conv,
                            .make = make_conv };
        DnnlConv alone = *conv;
        alone.n_threads = 1;
        int64_t channels = conv->out.size[1], images = conv->out.size[0], of_image;
        *out_parts = NULL;
        if (!mul_i64(2 * (meta_numel(&conv->out) / images), meta_numel(&conv->weight) / conv->weight.size[0],
                     &of_image))
                return STATUS_OK;
        of_image = MAX(of_image, (int64_t)1);
        cutting.axis[0] = (Axis){ .size = images, .a = conv->input.stride[0], .out = conv->out.stride[0] };
        cutting.axis[1] = (Axis){
                .size = channels, .step = channels, .b = conv->weight.stride[0], .out = conv->out.stride[1]
        };
        cutting.axis[0].step = even_step(images, MAX(PART_FLOPS / of_image, (int64_t)1));
        if (of_image > PART_FLOPS)
                cutting.axis[1].step = even_step(
                        channels, MAX(PART_FLOPS / MAX(of_image / channels, (int64_t)1), (int64_t)ROUND));
        // Groups are not cut, nor images of which a few channels are too much: kernels that poll
        // take those.
        int64_t part = of_image / channels * cutting.axis[1].step;
        if (of_image > PART_FLOPS && (conv->groups > 1 || part > 2 * PART_FLOPS))
                return STATUS_OK;
        TRY(cut(&cutting, out_parts));
        // Convolutions by products of matrices add up in another order where there are more images,
        // or threads.
        if (*out_parts == NULL || strstr(parts_name(*out_parts), "gemm") == NULL ||
            (cutting.axis[0].step == 1 && conv->n_threads == 1))
                return STATUS_OK;
        parts_free(*out_parts);
        cutting.axis[0].step = 1;
        cutting.n_threads = conv->n_threads;
        cutting.task = &alone;
        return cut(&cutting, out_parts);
}
