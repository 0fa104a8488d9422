// SPDX-License-Identifier: Apache-2.0
// int4.c: products with weights of four bits, as PyTorch packs them for the CPU. Nothing in the
// packed bytes tells their order. It follows the instruction set of the processor that packed them,
// so these operators are PyTorch's with one more argument that names it.
//
// Rows of weights stand in blocks, the last of which may be shorter. The bytes of a block go column
// by column; each holds two rows of a column: r and r + half a block in whole blocks of AVX2 and
// AVX512, else 2r and 2r + 1.
// Source: aten/src/ATen/native/cpu/int4mm_kernel.cpp of PyTorch 2.13.
#include "core/ops/int4.h"
#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/product/int4.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

enum { TILE_ROWS = 16, NIBBLE = 4 };

typedef struct PackedOrder {
        int64_t block; // rows
        bool halves;
} PackedOrder;

const char *const packed_on_names[PACKED_ON_COUNT] = { "DEFAULT", "AVX2", "AVX512", "SVE256", "NEON" };
static const PackedOrder orders[PACKED_ON_COUNT] = {
        { 32, false }, { 32, true }, { 64, true }, { 32, false }, { 16, false }
};

static Status find_order(Compose *c, const PackedOrder **out_order)
{
        const char *name = NAMED(c, "packed_on").str->text;
        for (int i = 0; i < PACKED_ON_COUNT; i++) {
                *out_order = &orders[i];
                if (strcmp(packed_on_names[i], name) == 0)
                        return STATUS_OK;
        }
        char names[PACKED_ON_COUNT * 24];
        size_t n = 0;
        for (int i = 0; i < PACKED_ON_COUNT && n < sizeof(names); i++)
                n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
                                      i == 0                     ? ""
                                      : i == PACKED_ON_COUNT - 1 ? " or "
                                                                 : ", ",
                                      packed_on_names[i]);
        return fail(STATUS_VALUE, "packed_on is %s, not \"%.64s\"", names, name);
}

static Value pack_blocks(Compose *c, Value levels, int64_t rows, int64_t columns, int64_t block, bool halves)
{
        int64_t n = rows / block;
        Value blocks = OP(c, "aten::reshape", levels, INTS(c, n, block, columns));
        blocks = OP(c, "aten::permute", blocks, INTS(c, 0, 2, 1));
        blocks = OP(c, "aten::reshape", blocks,
                    halves ? INTS(c, n, columns, 2, block / 2) : INTS(c, n, columns, block / 2, 2));
        int64_t dim = halves ? 2 : 3;
        Value low = OP(c, "aten::select.int", blocks, value_int(dim), value_int(0));
        Value high = OP(c, "aten::select.int", blocks, value_int(dim), value_int(1));
        high = OP(c, "aten::__lshift__.Scalar", high, value_int(NIBBLE));
        Value bytes = OP(c, "aten::bitwise_or.Tensor", high, low);
        return OP(c, "aten::reshape", bytes, INTS(c, rows, columns / 2));
}

// Whole blocks, then the last one.
static Value pack_weight(Compose *c, const PackedOrder *order, Value levels, int64_t rows, int64_t columns)
{
        int64_t whole = rows / order->block * order->block, rest = rows - whole;
        if (rest == 0)
                return pack_blocks(c, levels, rows, columns, order->block, order->halves);
        Value end = OP(c, "aten::slice.Tensor", levels, value_int(0), value_int(whole));
        end = pack_blocks(c, end, rest, columns, rest, false);
        if (whole == 0)
                return end;
        Value begin = OP(c, "aten::slice.Tensor", levels, value_int(0), value_int(0), value_int(whole));
        begin = pack_blocks(c, begin, whole, columns, order->block, order->halves);
        return OP(c, "aten::cat", compose_list(c, (Value[]){ begin, end }, 2), value_int(0));
}

// ---- the product: self[m, k] times packed weights [n, k / 2], in float32 ----
static Status int4_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, INT4_SELF), *packed = arg_meta(call, INT4_PACKED);
        TensorMeta meta;
        if (!meta_is_contiguous(packed))
                return fail(STATUS_INTERNAL, "packed weights with gaps");
        meta_init(&meta, DTYPE_F32, 2, (const int64_t[]){ self->size[0], packed->size[0] });
        return out_fresh(call, 0, &meta);
}

static Status int4_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[INT4_SELF], *packed = run->in_meta[INT4_PACKED];
        Int4Weights weights = { .bytes = run->in[INT4_PACKED],
                                .rows = packed->size[0],
                                .columns = self->size[1],
                                .halves = arg_bool(run->call, INT4_HALVES, false) };
        _cleanup_(dense_deinit) Dense x = { 0 }, affine = { 0 };
        TRY(dense_init(&x, run->ctx, run->in[INT4_SELF], self, DTYPE_F32));
        TRY(dense_init(&affine, run->ctx, run->in[INT4_AFFINE], run->in_meta[INT4_AFFINE], DTYPE_F32));
        TRY(arg_int(run->call, INT4_GROUP, &weights.group));
        TRY(arg_int(run->call, INT4_BLOCK, &weights.block));
        weights.affine = affine.data;
        return int4_product(run->ctx, &weights, self->size[0], x.data, run->out[0]);
}

static Cost int4_cost(const OpCall *call)
{
        int64_t self = meta_numel(arg_meta(call, INT4_SELF)),
                packed = meta_numel(arg_meta(call, INT4_PACKED)), rows = arg_meta(call, INT4_PACKED)->size[0];
        return (Cost){ .flops = saturating_product(2 * self, rows), .bytes = 4 * self + packed };
}

static Status check_product(Compose *c)
{
        const TensorMeta *a = compose_meta(c, NAMED(c, "self")), *b = compose_meta(c, NAMED(c, "mat2")),
                         *s = compose_meta(c, NAMED(c, "qScaleAndZeros"));
        int64_t group = compose_int(c, "qGroupSize");
        TRY(c->status);
        if (a->dtype != DTYPE_F32 && a->dtype != DTYPE_F16 && a->dtype != DTYPE_BF16)
                return fail(STATUS_DTYPE, "%s: expect A to be either 32-bit or 16-bit float tensor", c->name);
        if (b->dtype != DTYPE_U8 || s->dtype != a->dtype)
                return fail(STATUS_DTYPE, "%s: expect B to be uint8 tensor, and scales of A's dtype",
                            c->name);
        if (a->rank != 2 || b->rank != 2)
                return fail(STATUS_SHAPE, "%s: expect A and B to be 2D tensors, got %dD and %dD", c->name,
                            a->rank, b->rank);
        if (b->size[0] % TILE_ROWS != 0 || a->size[1] != 2 * b->size[1])
                return fail(STATUS_SHAPE,
                            "%s: expect A [M, K] and B [N, K / 2], N divisible by 16, got [%ld, %ld] and "
                            "[%ld, %ld]",
                            c->name, (long)a->size[0], (long)a->size[1], (long)b->size[0], (long)b->size[1]);
        if (group != 32 && group != 64 && group != 128 && group != 256)
                return fail(STATUS_VALUE, "%s: expect qGroupSize to be 32, 64, 128 or 256, got %ld", c->name,
                            (long)group);
        if (a->size[1] % group != 0 || s->rank != 3 || s->size[0] != a->size[1] / group ||
            s->size[1] != b->size[0] || s->size[2] != 2)
                return fail(STATUS_SHAPE,
                            "%s: expect qScaleAndZeros to be 3d tensor with sizes [K / qGroupSize, N, 2]",
                            c->name);
        return STATUS_OK;
}

static Status product_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        const PackedOrder *order;
        compose_begin(&c, emitter, call);
        TRY(find_order(&c, &order));
        TRY(check_product(&c));
        Value x = NAMED(&c, "self"), bytes = OP(&c, "aten::contiguous", NAMED(&c, "mat2"));
        // constants: what is done to them is done once
        Value affine = compose_cast(&c, NAMED(&c, "qScaleAndZeros"), DTYPE_F32);
        affine = OP(&c, "aten::contiguous", affine);
        Value product = OP(&c, "fxserve::int4_product", x, bytes, affine, NAMED(&c, "qGroupSize"),
                           value_int(order->block), value_bool(order->halves));
        return compose_end(&c, compose_cast(&c, product, compose_meta(&c, x)->dtype), out);
}

static Status check_weight(Compose *c)
{
        const TensorMeta *weight = compose_meta(c, NAMED(c, "self"));
        TRY(c->status);
        if (weight->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE, "%s: expect weight to be int32", c->name);
        if (weight->rank != 2 || weight->size[0] % TILE_ROWS != 0 || weight->size[1] % 2 != 0)
                return fail(STATUS_SHAPE, "%s: expect weight [N, K], N divisible by 16, K by 2", c->name);
        return STATUS_OK;
}

static Status pack_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        const PackedOrder *order;
        compose_begin(&c, emitter, call);
        TRY(find_order(&c, &order));
        TRY(check_weight(&c));
        const TensorMeta *weight = compose_meta(&c, NAMED(&c, "self"));
        int64_t rows = weight->size[0], columns = weight->size[1];
        Value levels = compose_cast(&c, NAMED(&c, "self"), DTYPE_U8);
        return compose_end(&c, pack_weight(&c, order, levels, rows, columns), out);
}

const OpDef int4_ops[] = {
        { "fxserve::weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor "
          "qScaleAndZeros, str packed_on) -> Tensor",
          0, .expand = product_expand, .traits = TRAIT_FRESH },
        { "fxserve::convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles, str packed_on) -> "
          "Tensor",
          0, .expand = pack_expand, .traits = TRAIT_FRESH },
        { "fxserve::int4_product(Tensor self, Tensor packed, Tensor affine, int group, int block, bool "
          "halves) -> Tensor",
          0, OP_HIDDEN | OP_INTERNAL, .infer = int4_infer, .run = int4_run, .cost = int4_cost,
          .traits = TRAIT_FRESH },
};
OP_FILE(int4_ops);
