// SPDX-License-Identifier: Apache-2.0
// bound_call.c: see bound_call.h.
#include "tests/ops/bound_call.h"
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static Status add_tensor(void *context, const Value *leaf)
{
        Tensors *tensors = context;
        if (leaf->kind == VALUE_TENSOR && tensors->n < MAX_TENSORS)
                tensors->items[tensors->n++] = leaf->tensor;
        return STATUS_OK;
}

Tensors tensors_of(Value value)
{
        Tensors tensors = { .n = 0 };
        (void)value_walk(value, add_tensor, &tensors);
        return tensors;
}

Tensors tensors_of_call(const Bound *bound)
{
        Tensors tensors = { .n = 0 };
        for (uint32_t i = 0; i < bound->overload->schema.n_args; i++)
                (void)value_walk(bound->args[i], add_tensor, &tensors);
        return tensors;
}

static void set_layout(TensorMeta *meta, Layout layout)
{
        if (layout == CONTIGUOUS || layout == CHANNELS_LAST)
                meta_set_contiguous(meta);
        if (layout == CHANNELS_LAST && (meta->rank == 4 || meta->rank == 5))
                meta_set_channels_last(meta);
        int64_t stride = 1;
        for (int d = 0; d < meta->rank && layout == REVERSED; d++) {
                meta->stride[d] = stride;
                stride *= MAX(meta->size[d], (int64_t)1);
        }
}

// A tensor of its own bytes with the same elements.
static Status copy_leaf(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind != VALUE_TENSOR) {
                value_ref(*out);
                return STATUS_OK;
        }
        TensorMeta meta = leaf->tensor->meta;
        Tensor *copy;
        set_layout(&meta, *(const Layout *)context);
        TRY(tensor_new(&meta, NULL, &copy));
        tensor_copy_data(leaf->tensor, copy);
        *out = value_tensor_take(copy);
        return STATUS_OK;
}

void copy_call(const Bound *bound, Layout layout, Bound *out)
{
        *out = (Bound){ .overload = bound->overload, .given = bound->given };
        for (uint32_t i = 0; i < bound->overload->schema.n_args; i++)
                cr_assert_eq(value_map(bound->args[i], copy_leaf, &layout, &out->args[i]), STATUS_OK);
}

void drop_call(Bound *bound)
{
        for (uint32_t i = 0; i < bound->overload->schema.n_args; i++)
                value_clear(&bound->args[i]);
}

bool same_elements(Dtype dtype, const char *a, const char *b, int64_t n)
{
        int64_t bytes = dtype_info[dtype].bytes;
        if (memcmp(a, b, (size_t)(n * bytes)) == 0 || !dtype_is_float(dtype))
                return memcmp(a, b, (size_t)(n * bytes)) == 0;
        for (int64_t i = 0; i < n; i++) {
                bool both_nan = isnan(element_as_f64(dtype, a + i * bytes)) &&
                                isnan(element_as_f64(dtype, b + i * bytes));
                if (memcmp(a + i * bytes, b + i * bytes, (size_t)bytes) != 0 && !both_nan)
                        return false;
        }
        return true;
}

bool near_elements(Dtype dtype, const char *a, const char *b, int64_t n)
{
        double tolerance = dtype_info[dtype].bytes <= 2 ? 1e-2 : 1e-5;
        int64_t bytes = dtype_info[dtype].bytes;
        if (!dtype_is_float(dtype))
                return same_elements(dtype, a, b, n);
        for (int64_t i = 0; i < n; i++) {
                double x = element_as_f64(dtype, a + i * bytes), y = element_as_f64(dtype, b + i * bytes);
                if (isfinite(x) && isfinite(y) && fabs(x - y) > tolerance * fmax(1, fabs(y)))
                        return false;
        }
        return true;
}

bool tensors_equal(const Tensor *a, const Tensor *b, Compare *compare)
{
        _cleanup_(tensor_unrefp) Tensor *x = NULL, *y = NULL;
        if (a->meta.dtype != b->meta.dtype || !meta_same_shape(&a->meta, &b->meta))
                return false;
        cr_assert_eq(tensor_contiguous((Tensor *)(uintptr_t)a, NULL, &x), STATUS_OK);
        cr_assert_eq(tensor_contiguous((Tensor *)(uintptr_t)b, NULL, &y), STATUS_OK);
        int64_t n = meta_numel(&x->meta);
        return n == 0 || compare(x->meta.dtype, tensor_data(x), tensor_data(y), n);
}

bool results_equal(Value a, Value b, Compare *compare)
{
        Tensors x = tensors_of(a), y = tensors_of(b);
        bool equal = x.n == y.n;
        for (uint32_t k = 0; k < x.n && equal; k++)
                equal = tensors_equal(x.items[k], y.items[k], compare);
        return equal;
}
