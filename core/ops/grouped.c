// SPDX-License-Identifier: Apache-2.0
// grouped.c: products of groups, as layers of experts have them: `offs` says where each group of
// rows (or columns, or of the depth) ends, and each group meets a matrix of its own.
#include "core/kernels/product/matmul.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/view.h"
#include <string.h>

typedef struct Range {
        int64_t from, to;
} Range;

// ---- the kernel: a[s, k] with b[groups, k, n] by rows, or a[m, s] with b[s, n] by depth ----
static Status grouped_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, GROUPED_A), *b = arg_meta(call, GROUPED_B),
                         *offs = arg_meta(call, GROUPED_OFFS);
        const bool by_rows = b->rank == 3;
        const int64_t size[] = { offs->size[0], a->size[0], b->size[b->rank - 1] };
        TensorMeta meta;
        int64_t numel;
        TRY(shape_numel(by_rows ? 2 : 3, size + by_rows, &numel));
        meta_init(&meta, a->dtype, by_rows ? 2 : 3, size + by_rows);
        return out_fresh(call, 0, &meta);
}

// Offsets may lie outside of the matrix: PyTorch slices with them.
static Range range_of(int64_t from, int64_t to, int64_t size)
{
        Range range = { from, to };
        view_clamp_slice(size, &range.from, &range.to);
        return range;
}

// Rows or columns of a matrix.
static Operand part(const OpRun *run, uint32_t index, int dim, Range range)
{
        Operand all = { run->in[index], *run->in_meta[index] };
        all.data =
                (const char *)all.data + range.from * all.meta.stride[dim] * dtype_info[all.meta.dtype].bytes;
        all.meta.size[dim] = range.to - range.from;
        return all;
}

static Operand matrix_of(const OpRun *run, uint32_t index, int64_t group)
{
        Operand one = { run->in[index], *run->in_meta[index] };
        one.data = (const char *)one.data + group * one.meta.stride[0] * dtype_info[one.meta.dtype].bytes;
        memmove(one.meta.size, one.meta.size + 1, 2 * sizeof(int64_t));
        memmove(one.meta.stride, one.meta.stride + 1, 2 * sizeof(int64_t));
        one.meta.rank = 2;
        return one;
}

static int64_t end_of_group(const OpRun *run, int64_t group)
{
        const TensorMeta *offs = run->in_meta[2];
        const char *ends = run->in[2];
        return element_as_i64(offs->dtype, ends + group * offs->stride[0] * dtype_info[offs->dtype].bytes);
}

static Status grouped_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0], *b = run->in_meta[1], *out = run->out_meta[0];
        const bool by_rows = b->rank == 3;
        const int64_t n_columns = out->size[out->rank - 1], n_groups = run->in_meta[2]->size[0];
        const int64_t width = dtype_info[out->dtype].bytes;
        memset(run->out[0], 0, (size_t)(meta_numel(out) * width)); // rows of no group
        for (int64_t group = 0, from = 0, to; group < n_groups; group++, from = to) {
                to = end_of_group(run, group);
                Range range = range_of(from, to, a->size[by_rows ? 0 : 1]);
                Operand left = part(run, 0, by_rows ? 0 : 1, range),
                        right = by_rows ? matrix_of(run, 1, group)
                                        : part(run, 1, 0, range_of(from, to, b->size[0]));
                if (left.meta.size[1] != right.meta.size[0])
                        return fail(STATUS_SHAPE,
                                    "grouped_mm: mat1 and mat2 shapes cannot be multiplied (%ldx%ld and "
                                    "%ldx%ld): group %ld ends at %ld",
                                    (long)left.meta.size[0], (long)left.meta.size[1],
                                    (long)right.meta.size[0], (long)n_columns, (long)group, (long)to);
                const int64_t size[] = { left.meta.size[0], n_columns };
                TensorMeta meta;
                meta_init(&meta, out->dtype, 2, size);
                char *at =
                        (char *)run->out[0] + (by_rows ? range.from : group * a->size[0]) * n_columns * width;
                TRY(matmul_tensors(run->ctx, &(MatmulTensors){ &left, &right, NULL, 1, 0 }, at, &meta));
        }
        return STATUS_OK;
}

static Cost grouped_cost(const OpCall *call)
{
        const TensorMeta *a = arg_meta(call, GROUPED_A), *b = arg_meta(call, GROUPED_B);
        int64_t numel = meta_numel(a);
        return (Cost){ .flops = saturating_product(2 * numel, b->size[b->rank - 1]),
                       .bytes = (numel + meta_numel(b)) * dtype_info[a->dtype].bytes };
}

// ---- PyTorch's forms ----
static Status check_grouped(Compose *c, const TensorMeta *a, const TensorMeta *b)
{
        const TensorMeta *pair[] = { a, b };
        for (int i = 0; i < 2; i++) {
                if (pair[i]->dtype != DTYPE_F32 && (DTYPES_HALFS >> pair[i]->dtype & 1) == 0)
                        return fail(STATUS_DTYPE,
                                    "Expected mat_%c to be Float32, BFloat16 or Float16 matrix, got %s",
                                    "ab"[i], dtype_words(pair[i]->dtype));
                if (pair[i]->rank != 2 && pair[i]->rank != 3)
                        return fail(STATUS_SHAPE, "mat_%c has to be 2 or 3d", "ab"[i]);
        }
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE,
                            "expected mat_a and mat_b to have the same dtype, but got: %s != %s",
                            dtype_words(a->dtype), dtype_words(b->dtype));
        if (compose_has(c, "bias"))
                return fail(STATUS_UNSUPPORTED, "Bias not supported yet");
        if (compose_has(c, "out_dtype") && NAMED(c, "out_dtype").dtype != a->dtype)
                return fail(STATUS_DTYPE, "Grouped gemm output dtype must match `mat_a` dtype");
        if (compose_has(c, "offs") == (a->rank == 3 && b->rank == 3))
                return fail(STATUS_VALUE,
                            "Have to provide offsets if there is a 2d matrix, or no offset if both "
                            "matrices are 3d");
        if ((a->rank == 3 || b->rank == 3) && a->size[a->rank - 1] != b->size[b->rank - 2])
                return fail(STATUS_SHAPE, "contraction dimension of mat_a and mat_b must match");
        return STATUS_OK;
}

// `n_groups`: -1 if the matrices do not say it.
static Status check_offsets(const TensorMeta *offs, int64_t n_groups)
{
        if (offs->rank != 1)
                return fail(STATUS_SHAPE, "offs has to be 1D");
        if (n_groups >= 0 && offs->size[0] != n_groups)
                return fail(STATUS_SHAPE, "matrix batch sizes have to match: %ld offsets for %ld matrices",
                            (long)offs->size[0], (long)n_groups);
        return STATUS_OK;
}

static Status grouped_mm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "mat2"), offs = NAMED(&c, "offs");
        const TensorMeta *am = compose_meta(&c, a), *bm = compose_meta(&c, b);
        TRY(check_grouped(&c, am, bm));
        if (offs.kind == VALUE_NONE)
                return compose_end(&c, OP(&c, "aten::bmm", a, b), out);
        if (compose_meta(&c, offs)->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE, "Offsets have to be int32");
        TRY(check_offsets(compose_meta(&c, offs), bm->rank == 3   ? bm->size[0]
                                                  : am->rank == 3 ? am->size[0]
                                                                  : -1));
        if (am->rank == 2)
                return compose_end(&c, OP(&c, "fxserve::grouped_mm", a, b, offs), out);
        // Groups of b's columns are groups of rows of the transposed product.
        Value turned = OP(&c, "fxserve::grouped_mm", OP(&c, "aten::mT", b), OP(&c, "aten::mT", a), offs);
        return compose_end(&c, OP(&c, "aten::contiguous", OP(&c, "aten::mT", turned)), out);
}

// What transformers registers for its layers of experts.
static Status fallback_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), weight = NAMED(&c, "weight"), offs = NAMED(&c, "offs");
        const TensorMeta *a = compose_meta(&c, input), *b = compose_meta(&c, weight);
        if (a->rank != 2 || b->rank != 3 || a->size[1] != b->size[1])
                return fail(STATUS_SHAPE,
                            "grouped_mm_fallback: expected input of [S, K] and weight of [E, K, N]");
        if (a->dtype != b->dtype || !dtype_is_float(a->dtype))
                return fail(STATUS_DTYPE,
                            "grouped_mm_fallback: expected floats of one dtype, but got %s and %s",
                            dtype_words(a->dtype), dtype_words(b->dtype));
        if (!dtype_is_int(compose_meta(&c, offs)->dtype))
                return fail(STATUS_DTYPE, "offs must be an integer tensor, got %s",
                            dtype_words(compose_meta(&c, offs)->dtype));
        TRY(check_offsets(compose_meta(&c, offs), b->size[0]));
        return compose_end(&c, OP(&c, "fxserve::grouped_mm", input, weight, offs), out);
}

const OpDef grouped_ops[] = {
        { "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
          "out_dtype=None) -> Tensor",
          0, .expand = grouped_mm_expand, .traits = TRAIT_FRESH },
        { "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", 0,
          .expand = fallback_expand, .traits = TRAIT_FRESH },
        { "fxserve::grouped_mm(Tensor a, Tensor b, Tensor offs) -> Tensor", 0,
          OP_HIDDEN | OP_INTERNAL | OP_CHECKS, .infer = grouped_infer, .run = grouped_run,
          .cost = grouped_cost, .traits = TRAIT_FRESH },
};
OP_FILE(grouped_ops);
