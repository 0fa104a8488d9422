// SPDX-License-Identifier: Apache-2.0
// make_linear.c. Match: a product with a constant matrix on the right (`x @ w`, mm, addmm).
// Rewrite: a linear layer, which later passes and kernels know.
#include "core/passes/passes.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/passes/rewrite.h"

typedef struct Product {
        Recorded *left, *right, *bias; // bias NULL: none
} Product;

// One of a batch of one, too.
static bool is_matrix(const Recorded *value)
{
        return value != NULL && recorded_is_constant(value) && value->tensor.storage->data != NULL &&
               (value->tensor.meta.rank == 2 ||
                (value->tensor.meta.rank == 3 && value->tensor.meta.size[0] == 1)) &&
               meta_numel(&value->tensor.meta) > 0;
}

static bool is_bias(const Recorded *value, int64_t n)
{
        return value != NULL && recorded_is_constant(value) && value->tensor.storage->data != NULL &&
               is_packed_type(&value->tensor.meta) && value->tensor.meta.rank == 1 &&
               value->tensor.meta.size[0] == n && meta_is_contiguous(&value->tensor.meta);
}

static bool find_product(const RecordedCall *call, Product *out)
{
        OpRole role = op_role(&call->call);
        if (role == ROLE_MM || role == ROLE_MATMUL) {
                *out = (Product){ rewrite_arg(call, SELF), rewrite_arg(call, MATMUL_OTHER), NULL };
        } else if (role == ROLE_ADDMM && value_is_one(call->call.args[ADDMM_BETA]) &&
                   value_is_one(call->call.args[ADDMM_ALPHA])) {
                *out = (Product){ rewrite_arg(call, ADDMM_MAT1), rewrite_arg(call, ADDMM_MAT2),
                                  rewrite_arg(call, SELF) };
                if (!is_matrix(out->right) || !is_bias(out->bias, out->right->tensor.meta.size[1]))
                        return false; // of halves, too: linear layers add their bias elsewhere
        } else {
                return false;
        }
        return out->left != NULL && is_matrix(out->right) &&
               out->left->tensor.meta.rank >= out->right->tensor.meta.rank &&
               (is_packed_type(&out->left->tensor.meta) || is_half_type(&out->left->tensor.meta));
}

// [in, out] seen as [out, in].
static Status turn(Recording *recording, const Recorded *matrix, Recorded **out_weight)
{
        const TensorMeta *meta = &matrix->tensor.meta;
        TensorMeta turned = *meta;
        int row = meta->rank - 2;
        turned.rank = 2;
        turned.size[0] = meta->size[row + 1];
        turned.size[1] = meta->size[row];
        turned.stride[0] = meta->stride[row + 1];
        turned.stride[1] = meta->stride[row];
        return recording_add_value(recording, FROM_LITERAL, matrix->tensor.storage, &turned,
                                   matrix->tensor.offset, out_weight);
}

static Status make_linear(Recording *recording, RecordedCall *call, const Product *product)
{
        Recorded *weight;
        RecordedCall *made;
        TRY(turn(recording, product->right, &weight));
        Value args[] = { rewrite_tensor(product->left), rewrite_tensor(weight),
                         rewrite_tensor(product->bias) };
        NewCall new_call = { .overload = op_for(ROLE_LINEAR),
                             .take_args = args,
                             .outs = call->outs,
                             .n_outs = 1,
                             .stands_for = &call,
                             .n_stands_for = 1,
                             .replaces = true };
        return recording_insert(recording, call, &new_call, &made);
}

Status pass_make_linear(Recording *recording, PassContext *context)
{
        uint32_t n = recording->n_calls;
        for (uint32_t i = 0; i < n; i++) {
                RecordedCall *call = recording->calls[i];
                Product product;
                if (call->removed || call->call.inplace || call->call.n_outs != 1 ||
                    !find_product(call, &product))
                        continue;
                TRY(run_poll(context->poll));
                TRY(make_linear(recording, call, &product));
        }
        recording_compact(recording);
        return STATUS_OK;
}
