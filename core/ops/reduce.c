// SPDX-License-Identifier: Apache-2.0
// reduce.c: sum, mean, prod, amax, amin, any, all, count_nonzero, logsumexp and nansum: rows of one
// table. Sums and products of bool and integers are int64; dtype= casts before reducing; any and
// all of uint8 are uint8. Results are contiguous.
#include "core/ops/reduce.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include <math.h>

typedef enum DimsStyle {
        DIMS_ALL,   // no dim argument
        DIMS_ONE,   // int dim, int? dim (None: all)
        DIMS_LIST,  // int[]? dim: None and [] are all
        DIMS_EXACT, // int[]? dim: None is all, [] is none
} DimsStyle;

typedef enum ResultStyle {
        RESULT_SAME,  // the input's dtype
        RESULT_SUM,   // bool and integers: int64
        RESULT_FLOAT, // bool and integers: float32
        RESULT_MEAN,  // floats only
        RESULT_BOOL,  // uint8 stays uint8
        RESULT_INT,   // int64
} ResultStyle;

typedef struct ReduceRow {
        ReduceKind kind;
        ResultStyle result;
        DimsStyle dims;
        int keepdim_arg, dtype_arg; // 0: absent
} ReduceRow;

// ---- shared ----
void reduce_meta(const TensorMeta *self, uint32_t mask, bool keepdim, Dtype dtype, TensorMeta *out_meta)
{
        int64_t size[MAX_RANK];
        int rank = 0;
        for (int d = 0; d < self->rank; d++) {
                if ((mask >> d & 1) == 0)
                        size[rank++] = self->size[d];
                else if (keepdim)
                        size[rank++] = 1;
        }
        meta_init(out_meta, dtype, rank, size);
}

Status reduce_check_identity(const OpCall *call, uint32_t mask, bool dims_given)
{
        const TensorMeta *self = arg_meta(call, SELF);
        if (meta_numel(self) != 0)
                return STATUS_OK;
        if (!dims_given)
                return fail(STATUS_VALUE,
                            "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                            "the reduction dim with the 'dim' "
                            "argument.",
                            call->schema->name);
        for (int d = 0; d < self->rank; d++) {
                if ((mask >> d & 1) != 0 && self->size[d] == 0)
                        return fail(STATUS_INDEX, "%s(): Expected reduction dim %d to have non-zero size.",
                                    call->schema->name, d);
        }
        return STATUS_OK;
}

Status reduce_input_init(ReduceInput *input, const OpRun *run, Dtype cast)
{
        *input = (ReduceInput){ .data = run->in[0], .meta = *run->in_meta[0] };
        Dtype as = dtype_compute(cast);
        // A requested narrow dtype rounds or wraps the input first.
        if (cast != as && input->meta.dtype != cast) {
                TRY(dense_init(&input->dense, run->ctx, input->data, &input->meta, cast));
                input->data = input->dense.data;
                input->meta.dtype = cast;
                meta_set_contiguous(&input->meta);
        }
        input->stored = input->meta.dtype;
        input->meta.dtype = as;
        return STATUS_OK;
}

Status reduce_input_convert(ReduceInput *input, const OpRun *run, Dtype cast)
{
        TRY(reduce_input_init(input, run, cast));
        const Dtype as = input->meta.dtype;
        if (input->stored == as)
                return STATUS_OK;
        Dense narrow = input->dense;
        input->dense = (Dense){ 0 };
        input->meta.dtype = input->stored;
        Status status = dense_init(&input->dense, run->ctx, input->data, &input->meta, as);
        dense_deinit(&narrow);
        TRY(status);
        input->data = input->dense.data;
        input->stored = input->meta.dtype = as;
        meta_set_contiguous(&input->meta);
        return STATUS_OK;
}

void reduce_input_deinit(ReduceInput *input)
{
        dense_deinit(&input->dense);
}

// ---- the table's infer and run ----
static Status reduce_dims(const OpCall *call, const ReduceRow *row, uint32_t *out_mask, bool *out_given)
{
        const TensorMeta *self = arg_meta(call, SELF);
        *out_mask = (1u << self->rank) - 1;
        *out_given = false;
        if (row->dims == DIMS_ALL || arg_is_none(call, REDUCE_DIM))
                return STATUS_OK;
        *out_given = true;
        if (row->dims != DIMS_ONE) {
                *out_given =
                        arg_list_length(call, REDUCE_DIM) > 0 || !value_is_sequence(call->args[REDUCE_DIM]);
                return arg_dims(call, REDUCE_DIM, self->rank, row->dims == DIMS_LIST, out_mask);
        }
        int dim;
        TRY(arg_dim(call, REDUCE_DIM, self->rank, &dim));
        *out_mask = self->rank == 0 ? 0 : 1u << dim;
        return STATUS_OK;
}

// The dtype the input is cast to; the result's is the same except for any, all and count.
static Status cast_dtype(const OpCall *call, const ReduceRow *row, Dtype *out_cast)
{
        Dtype self = arg_meta(call, SELF)->dtype,
              given = row->dtype_arg == 0 ? DTYPE_NONE : arg_dtype(call, row->dtype_arg, DTYPE_NONE);
        *out_cast = given != DTYPE_NONE ? given : self;
        switch (row->result) {
        case RESULT_SUM:
                if (given == DTYPE_NONE && !dtype_is_float(self))
                        *out_cast = DTYPE_I64;
                break;
        case RESULT_FLOAT:
                if (!dtype_is_float(self))
                        *out_cast = DTYPE_F32;
                break;
        case RESULT_MEAN:
                if (!dtype_is_float(*out_cast))
                        return fail_mean_dtype("mean", given != DTYPE_NONE, *out_cast);
                break;
        default:
                break;
        }
        if ((DTYPES_COMPLEX | DTYPES_UINTS | DTYPES_FLOAT8) & DTYPE_BIT(*out_cast))
                return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", call->schema->name,
                            dtype_words(*out_cast));
        return STATUS_OK;
}

static Status reduce_infer(OpCall *call)
{
        const ReduceRow *row = call->op->row;
        uint32_t mask;
        bool given;
        Dtype dtype;
        TRY(reduce_dims(call, row, &mask, &given));
        TRY(cast_dtype(call, row, &dtype));
        if (row->kind == REDUCE_MAX || row->kind == REDUCE_MIN)
                TRY(reduce_check_identity(call, mask, given));
        if (row->result == RESULT_BOOL)
                dtype = dtype == DTYPE_U8 ? DTYPE_U8 : DTYPE_BOOL;
        if (row->result == RESULT_INT)
                dtype = DTYPE_I64;
        TensorMeta meta;
        reduce_meta(arg_meta(call, SELF), mask,
                    row->keepdim_arg > 0 && arg_bool(call, row->keepdim_arg, false), dtype, &meta);
        return out_fresh(call, 0, &meta);
}

static Status reduce_op_run(const OpRun *run)
{
        const ReduceRow *row = run->call->op->row;
        uint32_t mask;
        bool given;
        Dtype cast;
        TRY(reduce_dims(run->call, row, &mask, &given));
        TRY(cast_dtype(run->call, row, &cast));
        _cleanup_(reduce_input_deinit) ReduceInput input = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        bool wide = row->result == RESULT_MEAN && (cast == DTYPE_F16 || cast == DTYPE_BF16);
        TRY(reduce_input_init(&input, run, wide ? DTYPE_F32 : cast)); // as PyTorch: rounded once, at the end
        bool counts = row->kind == REDUCE_ANY || row->kind == REDUCE_ALL || row->kind == REDUCE_NONZERO;
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0],
                           counts ? DTYPE_I64 : input.meta.dtype));
        RowPlan plan;
        row_plan(&plan, &input.meta, mask, false);
        Reduction reduction = { .dtype = input.meta.dtype,
                                .stored = input.stored,
                                .kind = row->kind,
                                .rounding = cast,
                                .data = input.data,
                                .out = out.data };
        TRY(reduce_run(run->ctx, &plan, &reduction));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

// ---- composites ----
// nansum of integers is their sum. Floats as integers: zeros where NaN and the largest number where
// infinite, then sum.
static Status nansum_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = arg_value(call, SELF);
        const Dtype dtype = arg_meta(call, SELF)->dtype;
        if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                return fail(STATUS_DTYPE, "nansum on CPU does not support complex inputs");
        if (!dtype_is_float(dtype))
                return EMIT(emitter, "aten::sum.dim_IntList", out, self, arg_value(call, NANSUM_DIM),
                            arg_value(call, NANSUM_KEEPDIM), arg_value(call, NANSUM_DTYPE));
        _cleanup_(value_clear) Value zeroed = value_none();
        TRY(EMIT(emitter, "aten::nan_to_num", &zeroed, self, value_float(0), value_none(), value_none()));
        return EMIT(emitter, "aten::sum.dim_IntList", out, zeroed, arg_value(call, NANSUM_DIM),
                    arg_value(call, NANSUM_KEEPDIM), arg_value(call, NANSUM_DTYPE));
}

static OpExpand nansum_form(const OpCall *call)
{
        Dtype self = arg_meta(call, SELF)->dtype;
        return dtype_is_float(self) && dtype_is_float(arg_dtype(call, NANSUM_DTYPE, self)) ? NULL
                                                                                           : nansum_expand;
}

enum { ABSENT = 0 }; // of keepdim_arg and dtype_arg
static const ReduceRow sum_all = { REDUCE_SUM, RESULT_SUM, DIMS_ALL, ABSENT, REDUCE_ALL_DTYPE },
                       sum_list = { REDUCE_SUM, RESULT_SUM, DIMS_LIST, REDUCE_KEEPDIM, REDUCE_DTYPE },
                       nansum_list = { REDUCE_NANSUM, RESULT_SUM, DIMS_LIST, REDUCE_KEEPDIM, REDUCE_DTYPE },
                       mean_all = { REDUCE_MEAN, RESULT_MEAN, DIMS_ALL, ABSENT, REDUCE_ALL_DTYPE },
                       mean_list = { REDUCE_MEAN, RESULT_MEAN, DIMS_LIST, REDUCE_KEEPDIM, REDUCE_DTYPE },
                       prod_all = { REDUCE_PROD, RESULT_SUM, DIMS_ALL, ABSENT, REDUCE_ALL_DTYPE },
                       prod_one = { REDUCE_PROD, RESULT_SUM, DIMS_ONE, REDUCE_KEEPDIM, REDUCE_DTYPE },
                       max_list = { REDUCE_MAX, RESULT_SAME, DIMS_LIST, REDUCE_KEEPDIM, ABSENT },
                       min_list = { REDUCE_MIN, RESULT_SAME, DIMS_LIST, REDUCE_KEEPDIM, ABSENT },
                       max_all = { REDUCE_MAX, RESULT_SAME, DIMS_ALL, ABSENT, ABSENT },
                       min_all = { REDUCE_MIN, RESULT_SAME, DIMS_ALL, ABSENT, ABSENT },
                       all_all = { REDUCE_ALL, RESULT_BOOL, DIMS_ALL, ABSENT, ABSENT },
                       all_one = { REDUCE_ALL, RESULT_BOOL, DIMS_ONE, REDUCE_KEEPDIM, ABSENT },
                       all_exact = { REDUCE_ALL, RESULT_BOOL, DIMS_EXACT, REDUCE_KEEPDIM, ABSENT },
                       any_all = { REDUCE_ANY, RESULT_BOOL, DIMS_ALL, ABSENT, ABSENT },
                       any_one = { REDUCE_ANY, RESULT_BOOL, DIMS_ONE, REDUCE_KEEPDIM, ABSENT },
                       any_exact = { REDUCE_ANY, RESULT_BOOL, DIMS_EXACT, REDUCE_KEEPDIM, ABSENT },
                       nonzero_one = { REDUCE_NONZERO, RESULT_INT, DIMS_ONE, ABSENT, ABSENT },
                       nonzero_list = { REDUCE_NONZERO, RESULT_INT, DIMS_LIST, ABSENT, ABSENT },
                       logsumexp_list = { REDUCE_LOGSUMEXP, RESULT_FLOAT, DIMS_LIST, REDUCE_KEEPDIM, ABSENT };
#define REDUCE(schema, row_) REDUCE_ROWS(schema, row_, 0, END_NONE)
// Along some dimensions: the last ones are rows.
#define REDUCE_ROWS(schema, row_, traits_, end_)                                                             \
        {                                                                                                    \
                schema, DTYPES_REAL, .infer = reduce_infer, .run = reduce_op_run, .row = &(row_),            \
                                     .traits = TRAIT_FRESH | (traits_), .row_end = end_                      \
        }

const OpDef reduce_ops[] = {
        REDUCE("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum_all),
        REDUCE_ROWS("aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
                    "dtype=None) -> Tensor",
                    sum_list, 0, END_BY_DIMS),
        REDUCE("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", mean_all),
        REDUCE_ROWS(
                "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
                "Tensor",
                mean_list, TRAIT_LAYOUT_NEAR, END_BY_DIMS),
        REDUCE("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", prod_all),
        REDUCE("aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
               "Tensor",
               prod_one),
        REDUCE_ROWS("aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", max_list,
                    TRAIT_ANY_LAYOUT, END_BY_DIMS),
        REDUCE_ROWS("aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", min_list,
                    TRAIT_ANY_LAYOUT, END_BY_DIMS),
        REDUCE("aten::max(Tensor self) -> Tensor", max_all),
        REDUCE("aten::min(Tensor self) -> Tensor", min_all),
        REDUCE("aten::all(Tensor self) -> Tensor", all_all),
        REDUCE("aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", all_one),
        REDUCE("aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", all_exact),
        REDUCE("aten::any(Tensor self) -> Tensor", any_all),
        { "aten::_is_all_true(Tensor self) -> Tensor", DTYPES_BOOL, .infer = reduce_infer,
          .run = reduce_op_run, .row = &all_all, .traits = TRAIT_FRESH },
        { "aten::_is_any_true(Tensor self) -> Tensor", DTYPES_BOOL, .infer = reduce_infer,
          .run = reduce_op_run, .row = &any_all, .traits = TRAIT_FRESH },
        REDUCE("aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", any_one),
        REDUCE("aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", any_exact),
        REDUCE("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", nonzero_one),
        REDUCE("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", nonzero_list),
        REDUCE("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp_list),
        { "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
          "Tensor",
          DTYPES_REAL, .infer = reduce_infer, .run = reduce_op_run, .form = nansum_form, .row = &nansum_list,
          .traits = TRAIT_FRESH },
};
OP_FILE(reduce_ops);
