// SPDX-License-Identifier: Apache-2.0
// view_sym.c: what a graph asks about its tensors: sizes and strides, single elements, and the
// asserts that exporters leave behind.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/view.h"

static Status size_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int dim;
        if (self->rank == 0)
                return fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions");
        TRY(arg_dim(call, SYM_SIZE_INT_DIM, self->rank, &dim));
        return out_value(call, 0, value_int(self->size[dim]));
}

static Status stride_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int dim;
        if (self->rank == 0)
                return fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions");
        TRY(arg_dim(call, SYM_STRIDE_INT_DIM, self->rank, &dim));
        return out_value(call, 0, value_int(self->stride[dim]));
}

static Status contiguous_infer(OpCall *call)
{
        MemoryFormat format = arg_memory_format(call, CONTIGUOUS_MEMORY_FORMAT, MEMORY_FORMAT_CONTIGUOUS);
        return out_value(call, 0, value_bool(view_is_contiguous_as(arg_meta(call, SELF), format)));
}

static Status numel_infer(OpCall *call)
{
        return out_value(call, 0, value_int(meta_numel(arg_meta(call, SELF))));
}

static Status offset_infer(OpCall *call)
{
        return out_value(call, 0, value_int(arg_tensor(call, SELF)->offset));
}

static Status item_infer(OpCall *call)
{
        const Tensor *self;
        int64_t numel = meta_numel(arg_meta(call, SELF));
        if (numel != 1)
                return fail(STATUS_VALUE, "a Tensor with %" PRId64 " elements cannot be converted to Scalar",
                            numel);
        TRY(arg_data(call, SELF, &self));
        return out_value(call, 0, arg_number(call, SELF));
}

// ---- dtypes ----
// As a number: c10::ScalarType. Exports of torch.tensor([x.shape[0], …]) ask and read nothing.
static Status promote_types_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const uint8_t numbers[DTYPE_COUNT] = {
                [DTYPE_U8] = 0,      [DTYPE_I8] = 1,        [DTYPE_I16] = 2,         [DTYPE_I32] = 3,
                [DTYPE_I64] = 4,     [DTYPE_F16] = 5,       [DTYPE_F32] = 6,         [DTYPE_F64] = 7,
                [DTYPE_C64] = 9,     [DTYPE_C128] = 10,     [DTYPE_BOOL] = 11,       [DTYPE_BF16] = 15,
                [DTYPE_F8E5M2] = 23, [DTYPE_F8E4M3FN] = 24, [DTYPE_F8E5M2FNUZ] = 25, [DTYPE_F8E4M3FNUZ] = 26,
                [DTYPE_U16] = 27,    [DTYPE_U32] = 28,      [DTYPE_U64] = 29,        [DTYPE_F8E8M0FNU] = 44,
        };
        Compose c;
        compose_begin(&c, emitter, call);
        Value one = NAMED(&c, "type1"), other = NAMED(&c, "type2");
        Dtype dtype = DTYPE_BOOL;
        if (!compose_failed(&c))
                compose_check(&c, dtype_promote(one.dtype, other.dtype, &dtype));
        return compose_end(&c, value_int(numbers[dtype]), out);
}

// ---- asserts ----
static bool number_is_true(Value value)
{
        switch (value.kind) {
        case VALUE_BOOL:
                return value.b;
        case VALUE_INT:
                return value.i != 0;
        case VALUE_FLOAT:
                return value.f != 0;
        case VALUE_COMPLEX:
                return value.c.re != 0 || value.c.im != 0;
        default:
                return true;
        }
}

static Status assert_scalar_infer(OpCall *call)
{
        if (call->args[SELF].kind == VALUE_DYNAMIC)
                return STATUS_OK;
        const char *message = arg_text(call, ASSERT_SCALAR_ASSERT_MSG);
        return number_is_true(arg_number(call, SELF)) ? STATUS_OK : fail(STATUS_RUN, "%s", message);
}

static Status assert_async_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[0];
        if (meta_numel(self) != 1)
                return fail(STATUS_VALUE, "Boolean value of Tensor with more than one value is ambiguous");
        // In a program the argument itself has no bytes: read run->in.
        Storage storage = { .data = (uint8_t *)(uintptr_t)run->in[0] };
        Tensor element = { .meta = *self, .storage = &storage };
        Value value = value_tensor_take(&element);
        OpCall call = { .args = &value };
        if (number_is_true(arg_number(&call, SELF)))
                return STATUS_OK;
        const char *message = run->call->n_args > 1
                                      ? arg_text(run->call, ASSERT_ASYNC_ASSERT_MSG)
                                      : "Expected Tensor with single nonzero value, but got zero";
        return fail(STATUS_RUN, "%s", message);
}

static Status nothing_infer(OpCall *call)
{
        (void)call;
        return STATUS_OK;
}

static Status check_list(const OpCall *call, int index, const char *what, const int64_t *have)
{
        const TensorMeta *self = arg_meta(call, ASSERT_METADATA_A);
        int64_t want[MAX_RANK];
        char want_text[256], have_text[256];
        int n = 0;
        if (arg_is_none(call, index))
                return STATUS_OK;
        TRY(view_arg_shape(call, index, want, &n));
        if (n == self->rank && memcmp(want, have, (size_t)n * sizeof(*want)) == 0)
                return STATUS_OK;
        return fail(STATUS_RUN, "Tensor %s mismatch! Expected: %s, Got: %s", what,
                    shape_text(n, want, want_text, sizeof(want_text)),
                    shape_text(self->rank, have, have_text, sizeof(have_text)));
}

// Devices and layouts: everything here is a strided tensor in main memory, whatever the exporting
// machine had.
static Status assert_metadata_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, ASSERT_METADATA_A);
        TRY(check_list(call, ASSERT_METADATA_SIZE, "sizes", self->size));
        TRY(check_list(call, ASSERT_METADATA_STRIDE, "strides", self->stride));
        Dtype want = arg_dtype(call, ASSERT_METADATA_DTYPE, self->dtype);
        if (want != self->dtype)
                return fail(STATUS_RUN, "Tensor dtype mismatch! Expected: %s, Got: %s", dtype_words(want),
                            dtype_words(self->dtype));
        return STATUS_OK;
}

static Status constrain_infer(OpCall *call)
{
        int64_t size = 0, min = INT64_MIN, max = INT64_MAX;
        if (call->args[SYM_CONSTRAIN_RANGE_SIZE].kind == VALUE_DYNAMIC)
                return STATUS_OK;
        TRY(arg_int(call, SYM_CONSTRAIN_RANGE_SIZE, &size));
        if (!arg_is_none(call, SYM_CONSTRAIN_RANGE_MIN))
                TRY(arg_int(call, SYM_CONSTRAIN_RANGE_MIN, &min));
        if (!arg_is_none(call, SYM_CONSTRAIN_RANGE_MAX))
                TRY(arg_int(call, SYM_CONSTRAIN_RANGE_MAX, &max));
        if (strcmp(call->schema->name, "sym_constrain_range_for_size") == 0) {
                if (max <= 2)
                        return fail(
                                STATUS_VALUE,
                                "Max value to constrain_range_for_size must be greater than 2. got: %" PRId64,
                                max);
                if (arg_is_none(call, SYM_CONSTRAIN_RANGE_MIN))
                        min = 0;
        }
        if (max < min)
                return fail(STATUS_VALUE,
                            "Max must be greater than or equal to min. Got min=%" PRId64 " max=%" PRId64, min,
                            max);
        if (size < min || size > max)
                return fail(STATUS_RUN,
                            "Invalid value range for %" PRId64 " between [%" PRId64 ", %" PRId64 "].", size,
                            min, max);
        return STATUS_OK;
}

const OpDef view_sym_ops[] = {
        { "aten::sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool",
          .infer = contiguous_infer },
        { "aten::sym_size.int(Tensor self, int dim) -> SymInt", .infer = size_infer },
        { "aten::sym_stride.int(Tensor self, int dim) -> SymInt", .infer = stride_infer },
        { "aten::sym_numel(Tensor self) -> SymInt", .infer = numel_infer },
        { "aten::sym_storage_offset(Tensor self) -> SymInt", .infer = offset_infer },
        { "aten::item(Tensor self) -> Scalar", .infer = item_infer },
        { "aten::_local_scalar_dense(Tensor self) -> Scalar", .infer = item_infer },
        { "aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
          .expand = promote_types_expand, .traits = TRAIT_FRESH },
        { "aten::_assert_scalar(Scalar self, str assert_msg) -> ()", .flags = OP_EFFECT,
          .infer = assert_scalar_infer },
        { "aten::_assert_async(Tensor self) -> ()", .flags = OP_EFFECT, .infer = nothing_infer,
          .run = assert_async_run },
        { "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", .flags = OP_EFFECT,
          .infer = nothing_infer, .run = assert_async_run },
        { "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
          "dtype=None, *, Device? "
          "device=None, "
          "Layout? layout=None) -> ()",
          .flags = OP_EFFECT, .infer = assert_metadata_infer },
        { "aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", .flags = OP_EFFECT,
          .infer = constrain_infer },
        { "aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
          .flags = OP_EFFECT, .infer = constrain_infer },
};
OP_FILE(view_sym_ops);
