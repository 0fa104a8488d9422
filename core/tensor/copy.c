// SPDX-License-Identifier: Apache-2.0
// copy.c: strided copy with conversion. Dimensions are put in the order of the destination's
// strides and merged where both sides allow it; what is left is a short loop nest over rows. Rows
// of equal dtype are moved as bytes, others go through tiles of a class that holds the source
// exactly.
#include "core/tensor/tensor.h"

#include <math.h>
#include <string.h>
#include "core/tensor/convert.h"

enum { TILE = 512 };

typedef struct CopyPlan {
        int rank;                                                           // dimension 0 is the innermost
        int64_t size[MAX_RANK], from_stride[MAX_RANK], to_stride[MAX_RANK]; // bytes
} CopyPlan;

static bool goes_inside(const CopyPlan *plan, int a, int b)
{
        if (plan->to_stride[a] != plan->to_stride[b])
                return plan->to_stride[a] < plan->to_stride[b];
        return plan->from_stride[a] < plan->from_stride[b];
}

// With only a few elements per row, the cost per row dominates (an image of three channels becoming
// channels_last). So the longer dimension goes inside.
static void swap_inner(CopyPlan *plan)
{
        CopyPlan old = *plan;
        for (int d = 0; d < 2; d++) {
                plan->size[d] = old.size[1 - d];
                plan->from_stride[d] = old.from_stride[1 - d];
                plan->to_stride[d] = old.to_stride[1 - d];
        }
}

static void plan_copy(const Tensor *from, const Tensor *to, CopyPlan *out_plan)
{
        CopyPlan plan = { 0 };
        int64_t from_bytes = dtype_info[from->meta.dtype].bytes, to_bytes = dtype_info[to->meta.dtype].bytes;
        for (int d = to->meta.rank - 1; d >= 0; d--) {
                if (to->meta.size[d] == 1)
                        continue;
                int at = plan.rank++;
                plan.size[at] = to->meta.size[d];
                plan.from_stride[at] = from->meta.stride[d] * from_bytes;
                plan.to_stride[at] = to->meta.stride[d] * to_bytes;
                for (; at > 0 && goes_inside(&plan, at, at - 1); at--) {
                        CopyPlan old = plan;
                        plan.size[at] = old.size[at - 1], plan.size[at - 1] = old.size[at];
                        plan.from_stride[at] = old.from_stride[at - 1],
                        plan.from_stride[at - 1] = old.from_stride[at];
                        plan.to_stride[at] = old.to_stride[at - 1],
                        plan.to_stride[at - 1] = old.to_stride[at];
                }
        }
        int n = 0; // merged so far
        for (int d = 0; d < plan.rank; d++) {
                int last = n - 1;
                if (n > 0 && plan.from_stride[d] == plan.from_stride[last] * plan.size[last] &&
                    plan.to_stride[d] == plan.to_stride[last] * plan.size[last]) {
                        plan.size[last] *= plan.size[d];
                        continue;
                }
                plan.size[n] = plan.size[d];
                plan.from_stride[n] = plan.from_stride[d];
                plan.to_stride[n] = plan.to_stride[d];
                n++;
        }
        if (n == 0) {
                plan.size[0] = 1;
                plan.from_stride[0] = from_bytes;
                plan.to_stride[0] = to_bytes;
                n = 1;
        }
        plan.rank = n;
        if (n >= 2 && plan.size[0] < 8 && plan.size[1] >= 4 * plan.size[0])
                swap_inner(&plan);
        *out_plan = plan;
}

// Dense rows of one repeated element, or of elements in reverse order, have loops that vectorise.
#define DEFINE_MOVE(name, type)                                                                              \
        static void name(const char *from, int64_t from_stride, char *to, int64_t to_stride, int64_t n)      \
        {                                                                                                    \
                const type *restrict in = (const void *)from;                                                \
                type *restrict out = (void *)to;                                                             \
                const type first = *in;                                                                      \
                if (to_stride == sizeof(type) && from_stride == 0) {                                         \
                        for (int64_t i = 0; i < n; i++)                                                      \
                                out[i] = first;                                                              \
                        return;                                                                              \
                }                                                                                            \
                if (to_stride == sizeof(type) && from_stride == -(int64_t)sizeof(type)) {                    \
                        for (int64_t i = 0; i < n; i++)                                                      \
                                out[i] = in[-i];                                                             \
                        return;                                                                              \
                }                                                                                            \
                for (int64_t i = 0; i < n; i++)                                                              \
                        *(type *)(void *)(to + i * to_stride) =                                              \
                                *(const type *)(const void *)(from + i * from_stride);                       \
        }
// Elements of one or two bytes in reverse order, eight bytes at a time. Returns how many it moved.
static int64_t reverse_words(int n_bytes, const char *from, char *to, int64_t n)
{
        const uint64_t low = 0x00ff00ff00ff00ff;
        const int64_t step = 8 / n_bytes;
        int64_t i = 0;
        for (; i + step <= n; i += step) {
                uint64_t word;
                memcpy(&word, from - (i + step - 1) * n_bytes, sizeof(word));
                word = __builtin_bswap64(word);
                if (n_bytes == 2)
                        word = (word & low) << 8 | (word >> 8 & low);
                memcpy(to + i * n_bytes, &word, sizeof(word));
        }
        return i;
}

DEFINE_MOVE(move_1, uint8_t)
DEFINE_MOVE(move_2, uint16_t)
DEFINE_MOVE(move_4, uint32_t)
DEFINE_MOVE(move_8, uint64_t)
DEFINE_MOVE(move_16, ComplexF64)

static void move_row(int n_bytes, const char *from, int64_t from_stride, char *to, int64_t to_stride,
                     int64_t n)
{
        if (from_stride == n_bytes && to_stride == n_bytes) {
                memcpy(to, from, (size_t)(n * n_bytes));
                return;
        }
        if (n_bytes <= 2 && to_stride == n_bytes && from_stride == -n_bytes) {
                int64_t done = reverse_words(n_bytes, from, to, n);
                if (done == n)
                        return;
                from -= done * n_bytes;
                to += done * n_bytes;
                n -= done;
        }
        switch (n_bytes) {
        case 1:
                move_1(from, from_stride, to, to_stride, n);
                break;
        case 2:
                move_2(from, from_stride, to, to_stride, n);
                break;
        case 4:
                move_4(from, from_stride, to, to_stride, n);
                break;
        case 8:
                move_8(from, from_stride, to, to_stride, n);
                break;
        default:
                move_16(from, from_stride, to, to_stride, n);
                break;
        }
}

// Integers become floats as they are; on the way through 64 bits their loops would not vectorise.
static TileClass copy_class(Dtype from, Dtype to)
{
        if (from == DTYPE_BOOL || to == DTYPE_BOOL)
                return TILE_MASK;
        switch (dtype_info[from].kind) {
        case DTYPE_KIND_INT:
                if (dtype_is_float(to))
                        return to == DTYPE_F64 ? TILE_F64 : TILE_F32;
                return from == DTYPE_U64                        ? TILE_U64
                       : from == DTYPE_I64 || from == DTYPE_U32 ? TILE_I64
                       : from == DTYPE_U8                       ? TILE_U8
                                                                : TILE_I32;
        case DTYPE_KIND_FLOAT:
                return from == DTYPE_F64 ? TILE_F64 : TILE_F32;
        default:
                return dtype_info[to].kind == DTYPE_KIND_COMPLEX ? TILE_C128 : TILE_F64;
        }
}

// PyTorch converts these three to integers by code of its own, in which NaN is 0.
static bool nan_is_zero(Dtype from, Dtype to)
{
        return (from == DTYPE_F8E4M3FNUZ || from == DTYPE_F8E5M2FNUZ || from == DTYPE_F8E8M0FNU) &&
               dtype_is_int(to);
}

static void clear_nans(float *tile, size_t n)
{
        for (size_t i = 0; i < n; i++)
                tile[i] = isnan(tile[i]) ? 0 : tile[i];
}

typedef struct RowCopy {
        TileLoad load; // NULL: same dtype, bytes are moved
        TileStore store;
        int n_bytes;
        bool clears_nans; // the class is TILE_F32
} RowCopy;

static void copy_row(const RowCopy *row, const char *from, int64_t from_stride, char *to, int64_t to_stride,
                     int64_t n)
{
        if (row->load == NULL) {
                move_row(row->n_bytes, from, from_stride, to, to_stride, n);
                return;
        }
        _Alignas(64) char tile[TILE * sizeof(ComplexF64)];
        for (int64_t i = 0; i < n; i += TILE) {
                size_t count = (size_t)MIN(n - i, TILE);
                row->load(from + i * from_stride, from_stride, count, tile);
                if (row->clears_nans)
                        clear_nans((float *)tile, count);
                row->store(tile, count, to + i * to_stride, to_stride);
        }
}

// Same dtype, destination rows dense, source columns dense: go through square blocks so that each
// cache line is used while it is there.
static bool is_transpose(const RowCopy *row, const CopyPlan *plan)
{
        return row->load == NULL && plan->rank >= 2 && plan->to_stride[0] == row->n_bytes &&
               plan->from_stride[1] == row->n_bytes && plan->size[0] >= 16 && plan->size[1] >= 16;
}

static void copy_transposed(const RowCopy *row, const CopyPlan *plan, const char *from, char *to)
{
        enum { BLOCK = 16 };
        for (int64_t j = 0; j < plan->size[1]; j += BLOCK) {
                int64_t rows = MIN(plan->size[1] - j, BLOCK);
                for (int64_t i = 0; i < plan->size[0]; i += BLOCK) {
                        int64_t columns = MIN(plan->size[0] - i, BLOCK);
                        for (int64_t k = j; k < j + rows; k++) {
                                move_row(row->n_bytes,
                                         from + i * plan->from_stride[0] + k * plan->from_stride[1],
                                         plan->from_stride[0],
                                         to + i * plan->to_stride[0] + k * plan->to_stride[1],
                                         plan->to_stride[0], columns);
                        }
                }
        }
}

void tensor_copy_data(const Tensor *from, Tensor *to)
{
        if (meta_numel(&to->meta) == 0)
                return;
        CopyPlan plan;
        plan_copy(from, to, &plan);
        Dtype from_dtype = from->meta.dtype, to_dtype = to->meta.dtype;
        RowCopy row = { .n_bytes = dtype_info[to_dtype].bytes };
        if (from_dtype != to_dtype) {
                TileClass class = copy_class(from_dtype, to_dtype);
                row.load = tile_loader(class, from_dtype);
                row.store = tile_storer(class, to_dtype);
                row.clears_nans = nan_is_zero(from_dtype, to_dtype);
        }
        const char *source = tensor_data(from);
        char *target = tensor_data(to);
        bool transposed = is_transpose(&row, &plan);
        int first = transposed ? 2 : 1;
        int64_t index[MAX_RANK] = { 0 };
        for (;;) {
                if (transposed)
                        copy_transposed(&row, &plan, source, target);
                else
                        copy_row(&row, source, plan.from_stride[0], target, plan.to_stride[0], plan.size[0]);
                int d = first;
                for (; d < plan.rank; d++) {
                        source += plan.from_stride[d];
                        target += plan.to_stride[d];
                        if (++index[d] < plan.size[d])
                                break;
                        source -= plan.from_stride[d] * plan.size[d];
                        target -= plan.to_stride[d] * plan.size[d];
                        index[d] = 0;
                }
                if (d >= plan.rank)
                        return;
        }
}
