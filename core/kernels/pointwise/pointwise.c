// SPDX-License-Identifier: Apache-2.0
// pointwise.c: the engine below all pointwise rows. Dimensions are ordered by the output's strides
// and merged where every operand allows it. The remaining ones are walked in rows, and rows in
// tiles. An operand stored as the loop reads it is passed in place; others are converted into a
// tile first. Work is split over output elements.
#include "core/kernels/pointwise/pointwise.h"

#include <string.h>
#include "core/kernels/pointwise/vector_math.h"
#include "core/tensor/convert.h"

enum {
        TILE = 512,
        GRAIN = 16384,
        OUT = POINT_MAX_INPUTS, // index of the output among the operands
        N_OPERANDS = POINT_MAX_INPUTS + 1,
};

const int32_t vm_largest = 0x7f7fffff;

typedef struct Operand {
        char *data;
        Dtype dtype;
        TileClass class;          // what the loop reads or writes
        int64_t stride[MAX_RANK]; // bytes, in plan order
        bool in_place;            // storage is what the loop reads or writes
        bool uniform;             // inputs: the loop takes one element for all of a row
        Dtype round_to; // inputs: rounded to this dtype after loading, DTYPE_NONE if there is no need
} Operand;

typedef struct Plan {
        int n_in, rank; // dimension 0 is the innermost
        int64_t size[MAX_RANK];
        Operand operands[N_OPERANDS];
        PointLoop *loop;
        int64_t tile; // elements at a time
        const PointParams *params;
        atomic_bool *zero_divisor;
} Plan;

typedef struct Tiles {
        _Alignas(64) char bytes[N_OPERANDS][TILE * sizeof(int64_t)];
        _Alignas(64) char scratch[TILE * sizeof(int64_t)];
        const char *filled[N_OPERANDS]; // a tile that already repeats the element at this address
        size_t n_filled[N_OPERANDS];
} Tiles;

PointClass point_class(Dtype common)
{
        if (common == DTYPE_BOOL)
                return POINT_BOOL;
        if (common == DTYPE_U8)
                return POINT_U8;
        if (dtype_is_int(common))
                return common == DTYPE_I64 || common == DTYPE_U32 || common == DTYPE_U64 ? POINT_I64
                                                                                         : POINT_I32;
        if (dtype_info[common].kind == DTYPE_KIND_COMPLEX)
                return common == DTYPE_C64 ? POINT_C64 : POINT_C128;
        return common == DTYPE_F64 ? POINT_F64 : POINT_F32;
}

TileClass point_tile_class(PointClass class)
{
        static const TileClass tiles[POINT_CLASS_COUNT] = {
                [POINT_F32] = TILE_F32, [POINT_F64] = TILE_F64,   [POINT_U8] = TILE_U8,
                [POINT_I32] = TILE_I32, [POINT_I64] = TILE_I64,   [POINT_BOOL] = TILE_MASK,
                [POINT_C64] = TILE_C64, [POINT_C128] = TILE_C128,
        };
        return tiles[class];
}

bool point_must_round(Dtype from, Dtype common)
{
        return from != common && tile_dtype[point_tile_class(point_class(common))] != common;
}

Dtype point_out_dtype(const PointKernel *kernel, Dtype common)
{
        if (kernel->mask_out)
                return DTYPE_BOOL;
        if (kernel->real_out && dtype_info[common].kind == DTYPE_KIND_COMPLEX)
                return common == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
        if (kernel->complex_out)
                return common == DTYPE_F64 ? DTYPE_C128 : DTYPE_C64;
        return common;
}

Isa point_isa(void)
{
        return MIN(isa_level(), (Isa)POINT_WIDEST);
}

PointLoop *point_loop(const PointKernel *kernel, PointClass class)
{
        Isa isa = point_isa();
        bool wide = isa != ISA_PORTABLE && kernel->wide[0] != NULL;
        return wide ? kernel->wide[isa - 1]->loop[class] : kernel->loop[class];
}

PointParams point_params_for(const PointParams *params, Dtype common, bool exact)
{
        PointParams sized = *params;
        sized.bits = 8 * dtype_info[common].bytes;
        sized.is_unsigned = common == DTYPE_U8 || (DTYPES_UINTS >> common & 1) != 0;
        sized.half = (DTYPES_HALFS >> common & 1) != 0 && !exact ? common : DTYPE_NONE;
        return sized;
}

// ---- plan ----
static bool goes_inside(const Plan *plan, int a, int b)
{
        for (int i = OUT; i >= 0; i--) {
                int k = i == OUT ? OUT : OUT - 1 - i; // the output first, then inputs in order
                if (k != OUT && k >= plan->n_in)
                        continue;
                int64_t stride_a = plan->operands[k].stride[a], stride_b = plan->operands[k].stride[b];
                if (stride_a != stride_b)
                        return stride_a < stride_b;
        }
        return false;
}

static void swap_dims(Plan *plan, int a, int b)
{
        int64_t size = plan->size[a];
        plan->size[a] = plan->size[b];
        plan->size[b] = size;
        for (int k = 0; k < N_OPERANDS; k++) {
                int64_t *stride = plan->operands[k].stride, swap = stride[a];
                stride[a] = stride[b];
                stride[b] = swap;
        }
}

static bool continues(const Plan *plan, int inner, int outer)
{
        for (int k = 0; k < N_OPERANDS; k++) {
                const int64_t *stride = plan->operands[k].stride;
                if ((k == OUT || k < plan->n_in) && stride[outer] != stride[inner] * plan->size[inner])
                        return false;
        }
        return true;
}

static void merge_dims(Plan *plan)
{
        int n = MIN(plan->rank, 1);
        for (int d = 1; d < plan->rank; d++) {
                if (continues(plan, n - 1, d)) {
                        plan->size[n - 1] *= plan->size[d];
                        continue;
                }
                if (n != d)
                        swap_dims(plan, n, d);
                n++;
        }
        plan->rank = n;
}

static void plan_dims(Plan *plan, const PointOperand *in, const TensorMeta *out_meta)
{
        plan->rank = 0;
        for (int d = out_meta->rank - 1; d >= 0; d--) {
                if (out_meta->size[d] == 1)
                        continue;
                int at = plan->rank++;
                plan->size[at] = out_meta->size[d];
                plan->operands[OUT].stride[at] = out_meta->stride[d] * dtype_info[out_meta->dtype].bytes;
                for (int k = 0; k < plan->n_in; k++) {
                        const TensorMeta *meta = in[k].meta;
                        int from = d - (out_meta->rank - meta->rank);
                        bool broadcast = from < 0 || meta->size[from] == 1;
                        plan->operands[k].stride[at] =
                                broadcast ? 0 : meta->stride[from] * dtype_info[meta->dtype].bytes;
                }
                for (; at > 0 && goes_inside(plan, at, at - 1); at--)
                        swap_dims(plan, at, at - 1);
        }
        merge_dims(plan);
        if (plan->rank > 0)
                return;
        plan->rank = 1;
        plan->size[0] = 1;
        for (int k = 0; k < N_OPERANDS; k++)
                plan->operands[k].stride[0] = 0;
        plan->operands[OUT].stride[0] = dtype_info[out_meta->dtype].bytes;
}

static bool reads_in_place(const Operand *operand)
{
        return operand->dtype == tile_dtype[operand->class] &&
               operand->stride[0] == dtype_info[operand->dtype].bytes;
}

static void plan_operands(Plan *plan, const PointKernel *kernel, Dtype common, const PointOperand *in,
                          const TensorMeta *out_meta)
{
        const TileClass class = point_tile_class(point_class(common));
        for (int k = 0; k < plan->n_in; k++) {
                Operand *operand = &plan->operands[k];
                operand->dtype = in[k].meta->dtype;
                operand->class = kernel->in[k] == 'm' ? TILE_MASK : class;
                bool round = operand->class != TILE_MASK && !in[k].exact &&
                             point_must_round(operand->dtype, common);
                operand->round_to = round ? common : DTYPE_NONE;
                operand->in_place = !round && reads_in_place(operand);
                // A tile has room for TILE elements of 8 bytes.
                if (dtype_info[operand->dtype].kind == DTYPE_KIND_COMPLEX)
                        plan->tile = TILE / 2;
        }
        // At most one operand of two: with two constants, both are repeated.
        const bool first = plan->operands[0].stride[0] == 0, second = plan->operands[1].stride[0] == 0;
        if (point_takes_uniform(kernel, point_class(common)) && first != second) {
                Operand *single = &plan->operands[first ? 0 : 1];
                single->uniform = true;
                single->in_place = single->dtype == DTYPE_F32 && single->round_to == DTYPE_NONE;
        }
        Operand *out = &plan->operands[OUT];
        out->dtype = out_meta->dtype;
        out->class = point_tile_class(point_class(point_out_dtype(kernel, common)));
        out->in_place = reads_in_place(out);
}

// ---- tiles ----
static const void *load_tile(const Plan *plan, int k, const char *data, size_t n, Tiles *tiles)
{
        const Operand *operand = &plan->operands[k];
        if (operand->in_place)
                return data;
        if (operand->stride[0] == 0 && tiles->filled[k] == data && tiles->n_filled[k] >= n)
                return tiles->bytes[k];
        tile_loader(operand->class, operand->dtype)(data, operand->stride[0], n, tiles->bytes[k]);
        if (operand->round_to != DTYPE_NONE) {
                const int bytes = dtype_info[operand->round_to].bytes;
                tile_storer(operand->class, operand->round_to)(tiles->bytes[k], n, tiles->scratch, bytes);
                tile_loader(operand->class, operand->round_to)(tiles->scratch, bytes, n, tiles->bytes[k]);
        }
        tiles->filled[k] = data;
        tiles->n_filled[k] = n;
        return tiles->bytes[k];
}

static void store_tile(const Plan *plan, char *data, size_t n, Tiles *tiles)
{
        const Operand *out = &plan->operands[OUT];
        tile_storer(out->class, out->dtype)(tiles->bytes[OUT], n, data, out->stride[0]);
}

static void run_row(const Plan *plan, char *const *data, int64_t n, Tiles *tiles)
{
        bool whole = plan->operands[OUT].in_place;
        for (int k = 0; k < plan->n_in; k++)
                whole &= plan->operands[k].in_place || plan->operands[k].uniform;
        int64_t step = whole ? n : plan->tile;
        for (int64_t i = 0; i < n; i += step) {
                size_t count = (size_t)MIN(n - i, step);
                const void *in[POINT_MAX_INPUTS];
                unsigned uniform = 0;
                for (int k = 0; k < plan->n_in; k++) {
                        const Operand *operand = &plan->operands[k];
                        in[k] = load_tile(plan, k, data[k] + i * operand->stride[0],
                                          operand->uniform ? 1 : count, tiles);
                        uniform |= (unsigned)operand->uniform << k;
                }
                char *out = data[OUT] + i * plan->operands[OUT].stride[0];
                bool in_place = plan->operands[OUT].in_place;
                PointTile tile = { .in = in,
                                   .out = in_place ? out : tiles->bytes[OUT],
                                   .n = count,
                                   .uniform = (uint8_t)uniform,
                                   .params = plan->params,
                                   .zero_divisor = plan->zero_divisor };
                plan->loop(&tile);
                if (!in_place)
                        store_tile(plan, out, count, tiles);
        }
}

// Output elements begin..end in the order of the plan.
static void run_range(void *argument, int64_t begin, int64_t end)
{
        const Plan *plan = argument;
        Tiles tiles;
        memset(tiles.filled, 0, sizeof(tiles.filled));
        int64_t index[MAX_RANK], left = begin;
        char *data[N_OPERANDS];
        for (int k = 0; k < N_OPERANDS; k++)
                data[k] = plan->operands[k].data;
        for (int d = 0; d < plan->rank; d++) {
                index[d] = left % plan->size[d];
                left /= plan->size[d];
                for (int k = 0; k < N_OPERANDS; k++)
                        data[k] += index[d] * plan->operands[k].stride[d];
        }
        for (int64_t at = begin; at < end;) {
                int64_t n = MIN(plan->size[0] - index[0], end - at);
                run_row(plan, data, n, &tiles);
                at += n;
                index[0] += n;
                for (int k = 0; k < N_OPERANDS; k++)
                        data[k] += n * plan->operands[k].stride[0];
                for (int d = 0; d + 1 < plan->rank && index[d] == plan->size[d]; d++) {
                        index[d] = 0;
                        index[d + 1]++;
                        for (int k = 0; k < N_OPERANDS; k++)
                                data[k] += plan->operands[k].stride[d + 1] -
                                           plan->operands[k].stride[d] * plan->size[d];
                }
        }
}

Status pointwise_run(const RunContext *ctx, const PointCall *call, void *out, const TensorMeta *out_meta)
{
        const PointKernel *kernel = call->kernel;
        const PointOperand *in = call->in;
        int64_t numel = meta_numel(out_meta);
        if (numel == 0)
                return STATUS_OK;
        PointClass class = point_class(call->common);
        if (kernel->loop[class] == NULL)
                return fail(STATUS_INTERNAL, "pointwise row %s has no loop for %s", kernel->label,
                            dtype_info[call->common].name);
        bool exact = false;
        for (size_t k = 0; kernel->in[k] != '\0'; k++)
                exact |= in[k].exact;
        static const PointParams none;
        PointParams sized =
                point_params_for(call->params == NULL ? &none : call->params, call->common, exact);
        atomic_bool zero_divisor = false;
        Plan plan = { .n_in = (int)strlen(kernel->in),
                      .loop = point_loop(kernel, class),
                      .tile = dtype_info[point_out_dtype(kernel, call->common)].bytes > 8 ? TILE / 2 : TILE,
                      .params = &sized,
                      .zero_divisor = &zero_divisor };
        for (int k = 0; k < plan.n_in; k++) {
                const void *data = in[k].data;
                memcpy(&plan.operands[k].data, &data, sizeof(data)); // inputs are only read
        }
        plan.operands[OUT].data = out;
        plan_dims(&plan, in, out_meta);
        plan_operands(&plan, kernel, call->common, in, out_meta);
        TRY(parallel_for(ctx, numel, GRAIN, run_range, &plan));
        if (atomic_load_explicit(&zero_divisor, memory_order_relaxed))
                return fail(STATUS_RUN, "ZeroDivisionError");
        return STATUS_OK;
}

void point_after(const PointAfter *after, float *results, int64_t step, int64_t n_rows, int64_t n)
{
        atomic_bool unused = false;
        for (int64_t row = 0; row < n_rows; row++, results += step) {
                const void *in[] = { results };
                after->loop(&(PointTile){ .in = in,
                                          .out = results,
                                          .n = (size_t)n,
                                          .params = &after->params,
                                          .zero_divisor = &unused });
        }
}
