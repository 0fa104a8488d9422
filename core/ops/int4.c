// SPDX-License-Identifier: Apache-2.0
// int4.c: products with weights of four bits, as PyTorch packs them for the CPU. Nothing in the
// packed bytes tells their order. It follows the instruction set of the processor that packed them,
// so these operators are PyTorch's with one more argument that names it.
//
// Rows of weights stand in blocks. The bytes of a block go column by column; each holds two rows of
// a column. These are r and r + half a block (AVX2, AVX512), or 2r and 2r + 1 (DEFAULT, and the
// last block in each order if it is not whole).
// Source: aten/src/ATen/native/cpu/int4mm_kernel.cpp of PyTorch 2.13.
#include "core/ops/int4.h"
#include <string.h>
#include "core/ops/compose.h"

enum { TILE_ROWS = 16, LEVEL_ZERO = 8, LOW_BITS = 15, NIBBLE = 4 };

typedef struct PackedOrder {
        int64_t block; // rows
        bool halves;
} PackedOrder;

const char *const packed_on_names[PACKED_ON_COUNT] = { "DEFAULT", "AVX2", "AVX512" };
static const PackedOrder orders[PACKED_ON_COUNT] = { { 32, false }, { 32, true }, { 64, true } };

static Status find_order(Compose *c, const PackedOrder **out_order)
{
        const char *name = NAMED(c, "packed_on").str->text;
        for (int i = 0; i < PACKED_ON_COUNT; i++) {
                *out_order = &orders[i];
                if (strcmp(packed_on_names[i], name) == 0)
                        return STATUS_OK;
        }
        return fail(STATUS_VALUE, "packed_on is DEFAULT, AVX2 or AVX512, not \"%.64s\"", name);
}

// Packed bytes [rows, columns / 2] -> levels [rows, columns]; all blocks have `block` rows.
static Value unpack_blocks(Compose *c, Value bytes, int64_t rows, int64_t columns, int64_t block, bool halves)
{
        int64_t n = rows / block;
        Value pairs = OP(c, "aten::reshape", bytes, INTS(c, n, columns, block / 2));
        Value both[] = { OP(c, "aten::bitwise_and.Scalar", pairs, value_int(LOW_BITS)),
                         OP(c, "aten::__rshift__.Scalar", pairs, value_int(NIBBLE)) };
        Value levels = OP(c, halves ? "aten::cat" : "aten::stack", compose_list(c, both, 2),
                          value_int(halves ? 2 : 3));
        levels = OP(c, "aten::reshape", levels, INTS(c, n, columns, block));
        levels = OP(c, "aten::permute", levels, INTS(c, 0, 2, 1));
        return OP(c, "aten::reshape", levels, INTS(c, rows, columns));
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

typedef Value (*BlocksForm)(Compose *c, Value from, int64_t rows, int64_t columns, int64_t block,
                            bool halves);

// `form` over whole blocks, then over the last one. `from` has a row for each row of weights.
static Value over_blocks(Compose *c, BlocksForm form, const PackedOrder *order, Value from, int64_t rows,
                         int64_t columns)
{
        int64_t whole = rows / order->block * order->block, rest = rows - whole;
        if (rest == 0)
                return form(c, from, rows, columns, order->block, order->halves);
        Value end = OP(c, "aten::slice.Tensor", from, value_int(0), value_int(whole));
        end = form(c, end, rest, columns, rest, false);
        if (whole == 0)
                return end;
        Value begin = OP(c, "aten::slice.Tensor", from, value_int(0), value_int(0), value_int(whole));
        begin = form(c, begin, whole, columns, order->block, order->halves);
        return OP(c, "aten::cat", compose_list(c, (Value[]){ begin, end }, 2), value_int(0));
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
        if (a->rank != 2 || b->rank != 2 || b->size[0] % TILE_ROWS != 0 || a->size[1] != 2 * b->size[1])
                return fail(STATUS_SHAPE,
                            "%s: expect A [M, K] and B [N, K / 2], N divisible by 16, got A of %d "
                            "dimensions and B of %d",
                            c->name, a->rank, b->rank);
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

// (level - 8) * scale + zero in float32, and a product that is rounded once.
static Status product_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        const PackedOrder *order;
        compose_begin(&c, emitter, call);
        TRY(find_order(&c, &order));
        TRY(check_product(&c));
        Value x = NAMED(&c, "self");
        const TensorMeta *packed = compose_meta(&c, NAMED(&c, "mat2"));
        int64_t group = compose_int(&c, "qGroupSize"), rows = packed->size[0], columns = 2 * packed->size[1];
        Value levels = over_blocks(&c, unpack_blocks, order, NAMED(&c, "mat2"), rows, columns);
        levels = OP(&c, "aten::sub.Scalar", compose_cast(&c, levels, DTYPE_F32), value_int(LEVEL_ZERO));
        levels = OP(&c, "aten::reshape", levels, INTS(&c, rows, columns / group, group));
        // [K / group, N, 2] -> [N, K / group, 1] each
        Value pair = compose_cast(&c, NAMED(&c, "qScaleAndZeros"), DTYPE_F32);
        pair = OP(&c, "aten::unsqueeze", OP(&c, "aten::permute", pair, INTS(&c, 1, 0, 2)), value_int(2));
        Value scale = OP(&c, "aten::select.int", pair, value_int(3), value_int(0));
        Value zero = OP(&c, "aten::select.int", pair, value_int(3), value_int(1));
        Value weight = OP(&c, "aten::add.Tensor", OP(&c, "aten::mul.Tensor", levels, scale), zero);
        weight = OP(&c, "aten::reshape", weight, INTS(&c, rows, columns));
        Value product = OP(&c, "aten::linear", compose_cast(&c, x, DTYPE_F32), weight);
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
        return compose_end(&c, over_blocks(&c, pack_blocks, order, levels, rows, columns), out);
}

const OpDef int4_ops[] = {
        { "fxserve::weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor "
          "qScaleAndZeros, str packed_on) -> Tensor",
          0, .expand = product_expand, .traits = TRAIT_FRESH },
        { "fxserve::convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles, str packed_on) -> "
          "Tensor",
          0, .expand = pack_expand, .traits = TRAIT_FRESH },
};
OP_FILE(int4_ops);
