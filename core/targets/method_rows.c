// SPDX-License-Identifier: Apache-2.0
// method_rows.c: Tensor methods whose Python call forms differ from the operator's schema: to,
// float, split, item lists; and methods of Python containers.
#include "core/targets/refuse.h"

#include <string.h>

// ---- conversions ----
static Status convert(Emitter *emitter, Value self, Dtype dtype, bool copy, Value memory_format, Value *out)
{
        return EMIT(emitter, "aten::to.dtype", out, self, value_dtype(dtype), value_bool(false),
                    value_bool(copy), memory_format);
}

typedef struct ToArgs {
        Dtype dtype;
        Value memory_format;
        bool copy;
        int n_bools;
} ToArgs;

// x.to(dtype) · x.to(device, dtype) · x.to(other) · then non_blocking, copy.
static Status take_to_positional(Value value, ToArgs *to)
{
        switch (value.kind) {
        case VALUE_NONE:
                return STATUS_OK;
        case VALUE_DTYPE:
                to->dtype = value.dtype;
                return STATUS_OK;
        case VALUE_DEVICE:
        case VALUE_STR:
                return check_device(value);
        case VALUE_TENSOR:
                to->dtype = value.tensor->meta.dtype;
                return STATUS_OK;
        case VALUE_BOOL:
                to->copy |= to->n_bools == 1 && value.b;
                to->n_bools++;
                return STATUS_OK;
        case VALUE_MEMORY_FORMAT:
                to->memory_format = value;
                return STATUS_OK;
        default:
                return fail(STATUS_VALUE, "to() takes a dtype, a device or a tensor, not %s",
                            value_kind_name(value.kind));
        }
}

static Status to_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[SELF];
        if (self.kind != VALUE_TENSOR)
                return fail(STATUS_VALUE, "'%s' object has no attribute 'to'", value_kind_name(self.kind));
        ToArgs to = { .dtype = self.tensor->meta.dtype,
                      .memory_format = value_none(),
                      .copy = arg_bool(call, PY_TO_COPY, false) };
        const Seq *args = call->args[PY_TO_ARGS].seq;
        for (uint32_t i = 0; i < args->n; i++)
                TRY(take_to_positional(args->items[i], &to));
        TRY(check_device(call->args[PY_TO_DEVICE]));
        if (call->args[PY_TO_OTHER].kind == VALUE_TENSOR)
                to.dtype = call->args[PY_TO_OTHER].tensor->meta.dtype;
        to.dtype = arg_dtype(call, PY_TO_DTYPE, to.dtype);
        if (!arg_is_none(call, PY_TO_MEMORY_FORMAT))
                to.memory_format = call->args[PY_TO_MEMORY_FORMAT];
        return convert(emitter, self, to.dtype, to.copy, to.memory_format, out);
}

#define CONVERSION(name, code)                                                                               \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                return convert(emitter, call->args[SELF], code, false,                                       \
                               call->args[PY_CONVERSION_MEMORY_FORMAT], out);                                \
        }
CONVERSION(float, DTYPE_F32)
CONVERSION(double, DTYPE_F64)
CONVERSION(half, DTYPE_F16)
CONVERSION(bfloat16, DTYPE_BF16)
CONVERSION(int, DTYPE_I32)
CONVERSION(long, DTYPE_I64)
CONVERSION(short, DTYPE_I16)
CONVERSION(char, DTYPE_I8)
CONVERSION(byte, DTYPE_U8)
CONVERSION(bool, DTYPE_BOOL)
#undef CONVERSION

static Status type_as_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert(emitter, call->args[SELF], call->args[PY_TYPE_AS_OTHER].tensor->meta.dtype, false,
                       value_none(), out);
}

static Status type_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value dtype = call->args[PY_TYPE_DTYPE];
        if (dtype.kind == VALUE_NONE)
                return fail(
                        STATUS_UNSUPPORTED,
                        "type() without a dtype returns a text that graphs cannot use; read dtype instead");
        if (dtype.kind == VALUE_STR) {
                static const struct {
                        const char *name;
                        Dtype dtype;
                } legacy[] = {
                        { "torch.FloatTensor", DTYPE_F32 }, { "torch.DoubleTensor", DTYPE_F64 },
                        { "torch.HalfTensor", DTYPE_F16 },  { "torch.BFloat16Tensor", DTYPE_BF16 },
                        { "torch.LongTensor", DTYPE_I64 },  { "torch.IntTensor", DTYPE_I32 },
                        { "torch.ShortTensor", DTYPE_I16 }, { "torch.CharTensor", DTYPE_I8 },
                        { "torch.ByteTensor", DTYPE_U8 },   { "torch.BoolTensor", DTYPE_BOOL },
                };
                for (size_t i = 0; i < ARRAY_LENGTH(legacy); i++) {
                        if (strcmp(dtype.str->text, legacy[i].name) == 0)
                                return convert(emitter, call->args[SELF], legacy[i].dtype, false,
                                               value_none(), out);
                }
                return fail(STATUS_VALUE, "invalid type: '%.60s'", dtype.str->text);
        }
        if (dtype.kind != VALUE_DTYPE)
                return fail(STATUS_VALUE, "type(): argument 'dtype' must be torch.dtype, not %s",
                            value_kind_name(dtype.kind));
        return convert(emitter, call->args[SELF], dtype.dtype, false, value_none(), out);
}

static Status same_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status cuda_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        (void)out;
        return refuse_cuda(call);
}

// ---- data as Python values ----
static Status tolist_at(const Tensor *tensor, int dim, const uint8_t *data, Value *out)
{
        const TensorMeta *meta = &tensor->meta;
        if (dim == meta->rank) {
                DtypeKind kind = dtype_info[meta->dtype].kind;
                if (kind == DTYPE_KIND_COMPLEX) {
                        const Dtype part = meta->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
                        const double re = element_as_f64(part, data),
                                     im = element_as_f64(part, data + dtype_info[part].bytes);
                        *out = (Value){ .kind = VALUE_COMPLEX, .c = { re, im } };
                        return STATUS_OK;
                }
                *out = kind == DTYPE_KIND_FLOAT ? value_float(element_as_f64(meta->dtype, data))
                                                : value_int(element_as_i64(meta->dtype, data));
                if (kind == DTYPE_KIND_BOOL)
                        *out = value_bool(out->i != 0);
                return STATUS_OK;
        }
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new((uint32_t)meta->size[dim], &seq));
        for (int64_t i = 0; i < meta->size[dim]; i++)
                TRY(tolist_at(tensor, dim + 1, data + i * meta->stride[dim] * dtype_info[meta->dtype].bytes,
                              &seq->items[i])); // depth: MAX_RANK
        *out = value_seq_take(VALUE_LIST, take_ptr(seq));
        return STATUS_OK;
}

static Status tolist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { TOLIST_MAX = 65536 };
        (void)emitter;
        if (call->args[SELF].kind == VALUE_SIZE) {
                *out = value_seq_take(VALUE_LIST, value_ref(call->args[SELF]).seq);
                return STATUS_OK;
        }
        const Tensor *tensor;
        TRY(arg_data(call, SELF, &tensor));
        if (meta_numel(&tensor->meta) > TOLIST_MAX)
                return fail(STATUS_TOO_LARGE, "tolist() of %ld elements is over the limit of %d",
                            (long)meta_numel(&tensor->meta), TOLIST_MAX);
        return tolist_at(tensor, 0, tensor_data(tensor), out);
}

// ---- split, chunk ----
static Status split_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[SELF], size = call->args[PY_SPLIT_SIZE], dim = call->args[PY_SPLIT_DIM];
        if (value_is_sequence(size))
                return EMIT(emitter, "aten::split_with_sizes", out, self, size, dim);
        int64_t n;
        TRY(value_as_int(emitter, size, "split_size", &n));
        return EMIT(emitter, "aten::split.Tensor", out, self, value_int(n), dim);
}

// ---- containers ----
static Status dict_get_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Value self = call->args[SELF];
        if (self.kind != VALUE_DICT || call->args[PY_GET_KEY].kind != VALUE_STR)
                return fail(STATUS_VALUE, "get() is a dict's method with a text as key, not for %s",
                            value_kind_name(self.kind));
        const Value *found = dict_get(self.dict, call->args[PY_GET_KEY].str->text);
        *out = value_ref(found != NULL ? *found : call->args[PY_GET_DEFAULT]);
        return STATUS_OK;
}

typedef enum DictPart { DICT_KEYS, DICT_VALUES, DICT_ITEMS } DictPart;

static Status item_pair(const struct DictItem *item, Value *out)
{
        Seq *pair;
        TRY(seq_new(2, &pair));
        pair->items[0] = value_ref((Value){ .kind = VALUE_STR, .str = item->key });
        pair->items[1] = value_ref(item->value);
        *out = value_seq_take(VALUE_TUPLE, pair);
        return STATUS_OK;
}

static Status dict_part(const OpCall *call, DictPart part, Value *out)
{
        Value self = call->args[SELF];
        if (self.kind != VALUE_DICT)
                return fail(STATUS_VALUE, "'%s' object has no attribute '%s' that fxserve knows",
                            value_kind_name(self.kind), call->schema->name);
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new(self.dict->n, &seq));
        for (uint32_t i = 0; i < seq->n; i++) {
                const struct DictItem *item = &self.dict->items[i];
                if (part == DICT_ITEMS)
                        TRY(item_pair(item, &seq->items[i]));
                else
                        seq->items[i] = value_ref(part == DICT_VALUES
                                                          ? item->value
                                                          : (Value){ .kind = VALUE_STR, .str = item->key });
        }
        *out = value_seq_take(VALUE_LIST, take_ptr(seq));
        return STATUS_OK;
}

static Status keys_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return dict_part(call, DICT_KEYS, out);
}

static Status values_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return dict_part(call, DICT_VALUES, out);
}

static Status items_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return dict_part(call, DICT_ITEMS, out);
}

#define CONVERTED "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"
#define NEEDS_TO  "aten::to.dtype"
static const PyRow rows[] = {
        { ".to",
          "py::to(Any self, *Any[] args, *, ScalarType? dtype=None, Device? device=None, Tensor? other=None, "
          "bool non_blocking=False, bool "
          "copy=False, "
          "MemoryFormat? memory_format=None) -> Any",
          .expand = to_expand, .needs = NEEDS_TO },
        { ".float", "py::float" CONVERTED, .expand = float_expand, .needs = NEEDS_TO },
        { ".double", "py::double" CONVERTED, .expand = double_expand, .needs = NEEDS_TO },
        { ".half", "py::half" CONVERTED, .expand = half_expand, .needs = NEEDS_TO },
        { ".bfloat16", "py::bfloat16" CONVERTED, .expand = bfloat16_expand, .needs = NEEDS_TO },
        { ".int", "py::int" CONVERTED, .expand = int_expand, .needs = NEEDS_TO },
        { ".long", "py::long" CONVERTED, .expand = long_expand, .needs = NEEDS_TO },
        { ".short", "py::short" CONVERTED, .expand = short_expand, .needs = NEEDS_TO },
        { ".char", "py::char" CONVERTED, .expand = char_expand, .needs = NEEDS_TO },
        { ".byte", "py::byte" CONVERTED, .expand = byte_expand, .needs = NEEDS_TO },
        { ".bool", "py::bool" CONVERTED, .expand = bool_expand, .needs = NEEDS_TO },
        { ".type_as", "py::type_as(Tensor self, Tensor other) -> Tensor", .expand = type_as_expand,
          .needs = NEEDS_TO },
        { ".type", "py::type(Tensor self, Any dtype=None, bool non_blocking=False) -> Tensor",
          .expand = type_expand, .needs = NEEDS_TO },
        { ".cpu", "py::cpu" CONVERTED, .expand = same_expand },
        { ".requires_grad_", "py::requires_grad_(Tensor self, bool requires_grad=True) -> Tensor",
          .expand = same_expand },
        { ".cuda", "py::cuda(Tensor self, Any device=None, bool non_blocking=False) -> Tensor",
          .expand = cuda_expand },
        { ".tolist", "py::tolist(Any self) -> Any", .expand = tolist_expand },
        { ".split torch.split torch.functional.split",
          "py::split(Tensor tensor, Any split_size_or_sections, int dim=0) -> Tensor[]",
          .expand = split_expand, .needs = "aten::split.Tensor aten::split_with_sizes" },
        { ".split", "py::split(Tensor self, Any split_size, int dim=0) -> Tensor[]", .expand = split_expand,
          .needs = "aten::split.Tensor aten::split_with_sizes" },
        { ".get", "py::get(Any self, Any key, Any default=None) -> Any", .expand = dict_get_expand },
        { ".keys", "py::keys(Any self) -> Any", .expand = keys_expand },
        { ".items", "py::items(Any self) -> Any", .expand = items_expand },
        { ".values", "py::values(Any self) -> Any", .expand = values_expand },
};
const PyTable py_method_rows = PY_TABLE(rows);
