// SPDX-License-Identifier: Apache-2.0
// fold_batch_norm.c. Match: a convolution or linear layer with constant weights whose only reader
// scales and shifts its channels by constants (batch norm with running statistics, mul, add).
// Rewrite: the same product with other constants. Scale and shift are computed in double and
// rounded once, into weight and bias.
#include "core/passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/hash.h"
#include "core/kernels/copy.h"
#include "core/kernels/numeric_policy.h"
#include "core/kernels/pack_cache.h"
#include "core/ops/arguments.h"
#include "core/ops/conv.h"
#include "core/kernels/dense.h"
#include "core/passes/rewrite.h"

// The call that makes the product, and where its constants stand.
typedef struct Product {
        RecordedCall *call;
        int weight_arg, bias_arg;
        int weight_dim; // of the weight: output channels
        int out_dim;    // of the result: channels
        int64_t n_channels;
        Recorded *weight, *bias;
} Product;

// out = scale * in + shift, per channel.
typedef struct Affine {
        double *scale, *shift; // n_channels each
} Affine;

static bool is_known(const Recorded *value)
{
        return value != NULL && recorded_is_constant(value) && value->tensor.storage->data != NULL &&
               is_packed_type(&value->tensor.meta);
}

// ---- the product ----
static bool conv_product(const RecordedCall *call, Product *product)
{
        ConvArgs args;
        const Recorded *weight = rewrite_arg(call, CONV_WEIGHT);
        if (conv_args(&call->call, &args) != STATUS_OK || (args.transposed && args.groups != 1))
                return false;
        // how volumes lie depends on the batch there, and so would whether results lie otherwise
        if (args.spatial == 3 && weight != NULL &&
            (!meta_is_contiguous(&weight->tensor.meta) || meta_suggests_channels_last(&weight->tensor.meta)))
                return false;
        product->weight_arg = CONV_WEIGHT;
        product->bias_arg = CONV_BIAS;
        product->weight_dim = args.transposed ? 1 : 0;
        product->out_dim = args.batched ? 1 : 0;
        return true;
}

static bool find_product(RecordedCall *call, Product *out)
{
        Product product = { .call = call };
        if (call == NULL || call->removed || call->call.inplace || call->call.n_outs != 1 ||
            call->outs[0] == NULL || !call_is_movable(call))
                return false;
        int rank = call->outs[0]->tensor.meta.rank;
        OpRole role = op_role(&call->call);
        if (role == ROLE_CONV) {
                if (!conv_product(call, &product))
                        return false;
        } else if (role == ROLE_LINEAR && rank > 0) {
                product.weight_arg = LINEAR_WEIGHT;
                product.bias_arg = LINEAR_BIAS;
                product.out_dim = rank - 1;
        } else {
                return false;
        }
        product.weight = rewrite_arg(call, product.weight_arg);
        product.bias = rewrite_arg(call, product.bias_arg);
        product.n_channels = call->outs[0]->tensor.meta.size[product.out_dim];
        if (!is_known(product.weight) || product.weight->tensor.meta.rank < 2 ||
            product.weight->tensor.meta.size[product.weight_dim] != product.n_channels)
                return false;
        if (product.bias != NULL && (!is_known(product.bias) || product.bias->tensor.meta.rank != 1 ||
                                     product.bias->tensor.meta.size[0] != product.n_channels))
                return false;
        *out = product;
        return true;
}

// ---- scale and shift ----
static double element(const Recorded *vector, int64_t i)
{
        return (double)((const float *)tensor_data(&vector->tensor))[i * vector->tensor.meta.stride[0]];
}

static bool norm_affine(const RecordedCall *call, const Product *product, Affine *affine)
{
        double eps;
        Recorded *params[4];
        if (product->out_dim != 1 || arg_double(&call->call, (int)call->call.n_args - 1, &eps) != STATUS_OK)
                return false;
        for (int i = 0; i < 4; i++) {
                params[i] = rewrite_arg(call, FUNCTIONAL_BATCH_NORM_WEIGHT + i);
                if (params[i] == NULL ? i >= 2
                                      : !is_known(params[i]) || params[i]->tensor.meta.rank != 1 ||
                                                params[i]->tensor.meta.size[0] != product->n_channels)
                        return false;
        }
        for (int64_t c = 0; c < product->n_channels; c++) {
                affine->scale[c] =
                        (params[0] == NULL ? 1 : element(params[0], c)) / sqrt(element(params[3], c) + eps);
                affine->shift[c] = (params[1] == NULL ? 0 : element(params[1], c)) -
                                   element(params[2], c) * affine->scale[c];
        }
        return true;
}

// Elements of a constant that varies along the channels only.
static bool channel_values(const Recorded *value, const Product *product, double *out)
{
        const Tensor *tensor = &value->tensor;
        const TensorMeta *meta = &tensor->meta, *result = &product->call->outs[0]->tensor.meta;
        if (!recorded_is_constant(value) || tensor->storage->data == NULL ||
            (!is_packed_type(meta) && !meta->wrapped) || meta->rank > result->rank ||
            (!is_packed_type(meta) && meta->dtype != DTYPE_F64 && meta->dtype != DTYPE_I64))
                return false;
        int channel = product->out_dim - (result->rank - meta->rank);
        for (int d = 0; d < meta->rank; d++) {
                if (meta->size[d] != 1 && (d != channel || meta->size[d] != product->n_channels))
                        return false;
        }
        for (int64_t c = 0; c < product->n_channels; c++) {
                int64_t at = channel < 0 || meta->size[channel] == 1 ? 0 : c * meta->stride[channel];
                const char *data = (const char *)tensor_data(tensor) + at * dtype_info[meta->dtype].bytes;
                out[c] = meta->dtype == DTYPE_I64 ? (double)element_as_i64(DTYPE_I64, data)
                                                  : element_as_f64(meta->dtype, data);
        }
        return true;
}

// x * c, c * x, x + alpha * c, c + alpha * x; `at` is where x stands.
static bool pointwise_affine(const RecordedCall *call, const Product *product, int at, Affine *affine)
{
        bool adds = op_role(&call->call) == ROLE_ADD;
        const Recorded *other = rewrite_arg(call, SELF + BINARY_OTHER - at);
        double alpha = 1;
        if (other == NULL || (adds && arg_double(&call->call, ADD_ALPHA, &alpha) != STATUS_OK) ||
            !channel_values(other, product, adds ? affine->shift : affine->scale))
                return false;
        for (int64_t c = 0; c < product->n_channels; c++) {
                if (!adds) {
                        affine->shift[c] = 0;
                } else {
                        affine->scale[c] = at == SELF ? 1 : alpha;
                        affine->shift[c] *= at == SELF ? alpha : 1;
                }
        }
        return true;
}

static bool is_norm(const RecordedCall *call)
{
        return op_role(&call->call) == ROLE_BATCH_NORM_EVAL;
}

static bool is_affine(const RecordedCall *call)
{
        OpRole role = op_role(&call->call);
        return role == ROLE_BATCH_NORM_EVAL || role == ROLE_MUL || role == ROLE_ADD;
}

// ---- new constants ----
// data[i] times `scale`, in double; whether any result is infinite or not a number, or so small
// that it has fewer digits than the weight had.
static bool scale_row(float *data, int64_t n, double scale)
{
        const uint32_t exponent = 0x7f800000u, shrinks = scale == 0 ? 0 : exponent;
        uint32_t odd = 0;
        for (int64_t i = 0; i < n; i++) {
                uint32_t before, after;
                memcpy(&before, &data[i], sizeof(before));
                data[i] = (float)((double)data[i] * scale);
                memcpy(&after, &data[i], sizeof(after));
                // this form vectorises
                odd |= (after & exponent) == exponent;
                odd |= ((after & exponent) == 0) & ((before & shrinks) != 0);
        }
        return odd != 0;
}

// A weight as it was, and the factors of its channels along `dim`.
typedef struct Scaling {
        TensorMeta meta;
        int64_t offset, n_channels;
        int dim;
        double scale[];
} Scaling;

static Scaling *scaling_new(const Product *product, const double *scale)
{
        size_t n_bytes = (size_t)product->n_channels * sizeof(double);
        Scaling *scaling = malloc(sizeof(*scaling) + n_bytes);
        if (scaling == NULL)
                return NULL;
        *scaling = (Scaling){ .meta = product->weight->tensor.meta,
                              .offset = product->weight->tensor.offset,
                              .n_channels = product->n_channels,
                              .dim = product->weight_dim };
        memcpy(scaling->scale, scale, n_bytes);
        return scaling;
}

// *out_storage stays NULL when an element cannot be scaled (scale_row).
static Status scaled(const Scaling *scaling, Storage *root, const RunContext *poll, Storage **out_storage)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        const Tensor old = { .meta = scaling->meta, .storage = root, .offset = scaling->offset };
        Tensor scaled = { .meta = old.meta };
        meta_set_contiguous(&scaled.meta);
        TRY(storage_new((size_t)meta_numel(&scaled.meta) * sizeof(float), false, NULL, &storage));
        scaled.storage = storage;
        Region from = region_of(&old.meta, tensor_data(&old)), to = region_of(&scaled.meta, storage->data);
        TRY(copy_region(poll, &from, &to));
        storage_rest(root);
        float *data = tensor_data(&scaled);
        int64_t inner = scaled.meta.stride[scaling->dim],
                n_rows = inner == 0 ? 0 : meta_numel(&scaled.meta) / inner;
        bool odd = false;
        Work work = { .ctx = poll };
        for (int64_t row = 0; row < n_rows && !work_stops(&work, inner); row++)
                odd |= scale_row(data + row * inner, inner, scaling->scale[row % scaling->n_channels]);
        if (work.stops)
                return run_poll(poll);
        storage->readonly = true;
        *out_storage = odd ? NULL : take_ptr(storage);
        return STATUS_OK;
}

static Status scale_again(const StorageSource *source, Storage **out_storage)
{
        return scaled(source->recipe, source->root, NULL, out_storage);
}

// The weight of one product, folded.
typedef struct Folding {
        const Product *product;
        Scaling *scaling; // owned
        const RunContext *poll;
        const HashHex *source; // its key; NULL: none
        bool odd;
} Folding;

static Status make_folded(void *context, Storage **out_storage)
{
        Folding *folding = context;
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        Storage *root = folding->product->weight->tensor.storage;
        TRY(scaled(folding->scaling, root, folding->poll, &storage));
        folding->odd = storage == NULL;
        if (folding->odd)
                return fail(STATUS_RUN, "a scaled weight is not finite");
        if (folding->source != NULL)
                TRY(storage_source_new(folding->source, root, scale_again, take_ptr(folding->scaling),
                                       &storage->source));
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

// Builds that need it at the same time share it; forms packed from it are shared between the
// programs of one graph, which know it by its source. Constants made by an earlier fold have none:
// sharing would keep unread intermediates alive. *out_storage stays NULL when it cannot be scaled
// or there is no room for it.
static Status fold_weight(const Recording *recording, const Product *product, const double *scale,
                          PassContext *context, Storage **out_storage)
{
        const Tensor *old = &product->weight->tensor;
        bool has_source = product->weight->from == FROM_STATE && old->storage->source == NULL;
        size_t *made = has_source ? &context->scaled_bytes : &context->folded_bytes,
               n_bytes = (size_t)meta_numel(&old->meta) * sizeof(float);
        if (!passes_may_add(recording, *made, n_bytes))
                return STATUS_OK;
        PackSource from = { .storage = old->storage, .data = tensor_data(old), .meta = &old->meta };
        HashHex factors = sha256_of(scale, (size_t)product->n_channels * sizeof(double));
        char format[HASH_HEX_BYTES + 24];
        snprintf(format, sizeof(format), "scaled %d %s", product->weight_dim, factors.hex);
        HashHex key = pack_cache_key(format, &from, 1);
        Folding folding = { .product = product,
                            .scaling = scaling_new(product, scale),
                            .poll = context->poll,
                            .source = has_source ? &key : NULL };
        if (folding.scaling == NULL)
                return fail_memory();
        Status status = pack_cache_get(has_source ? context->cache : NULL, format, &from, 1,
                                       (PackMaker){ make_folded, &folding, context->poll }, out_storage);
        free(folding.scaling);
        if (status == STATUS_OK)
                *made += n_bytes;
        return folding.odd ? STATUS_OK : status;
}

// *out_weight stays NULL when there is no such weight (fold_weight).
static Status new_weight(Recording *recording, const Product *product, const double *scale,
                         PassContext *context, Recorded **out_weight)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TensorMeta meta = product->weight->tensor.meta;
        TRY(fold_weight(recording, product, scale, context, &storage));
        if (storage == NULL)
                return STATUS_OK;
        meta_set_contiguous(&meta);
        return recording_add_value(recording, FROM_LITERAL, storage, &meta, 0, out_weight);
}

static Status new_bias(Recording *recording, const Product *product, const Affine *affine,
                       Recorded **out_bias, bool *inout_finite)
{
        TensorMeta meta;
        meta_init(&meta, PACKED_DTYPE, 1, &product->n_channels);
        TRY(rewrite_constant(recording, &meta, out_bias));
        float *data = tensor_data(&(*out_bias)->tensor);
        for (int64_t c = 0; c < product->n_channels; c++) {
                data[c] = (float)((product->bias == NULL ? 0 : element(product->bias, c)) * affine->scale[c] +
                                  affine->shift[c]);
                *inout_finite &= isfinite(data[c]) != 0;
        }
        return STATUS_OK;
}

// `reader` is what scales and shifts the product's channels.
static Status fold(Recording *recording, Uses *uses, RecordedCall *reader, const Product *product,
                   const Affine *affine, PassContext *context)
{
        Recorded *weight = NULL, *bias;
        RecordedCall *call = product->call, *both[] = { reader, call }, *folded;
        Value args[SCHEMA_MAX_ARGS];
        bool finite = true;
        TRY(new_bias(recording, product, affine, &bias, &finite));
        if (finite)
                TRY(new_weight(recording, product, affine->scale, context, &weight));
        if (weight == NULL) // leave the calls as they are
                return STATUS_OK;
        for (uint32_t i = 0; i < call->call.n_args; i++)
                args[i] = (int)i == product->weight_arg ? rewrite_tensor(weight)
                          : (int)i == product->bias_arg ? rewrite_tensor(bias)
                                                        : value_ref(call->call.args[i]);
        NewCall new_call = { .overload = call->overload,
                             .take_args = args,
                             .outs = reader->outs,
                             .n_outs = 1,
                             .stands_for = both,
                             .n_stands_for = 2,
                             .replaces = true };
        TRY(recording_insert(recording, reader, &new_call, &folded));
        if (folded == NULL)
                return STATUS_OK;
        uses_moved(uses, folded);
        context->folded_bytes += bias->tensor.storage->n_bytes;
        return STATUS_OK;
}

static Status try_fold(Recording *recording, Uses *uses, RecordedCall *call, int position,
                       PassContext *context)
{
        Recorded *input = rewrite_arg(call, position);
        Product product;
        if (input == NULL || uses_only_reader(uses, input) != call || input->from != FROM_CALL ||
            !find_product(input->call, &product) ||
            !meta_same_shape(&input->tensor.meta, &call->outs[0]->tensor.meta) ||
            !is_packed_type(&call->outs[0]->tensor.meta))
                return STATUS_OK;
        _cleanup_(freep) double *both = new_array((size_t)product.n_channels, 2 * sizeof(double));
        if (both == NULL)
                return fail_memory();
        Affine affine = { .scale = both, .shift = both + product.n_channels };
        bool found = is_norm(call) ? norm_affine(call, &product, &affine)
                                   : pointwise_affine(call, &product, position, &affine);
        return found ? fold(recording, uses, call, &product, &affine, context) : STATUS_OK;
}

Status pass_fold_batch_norm(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (call->removed || call->call.inplace || !call->computes || !is_affine(call) ||
                    recorded_is_constant(call->outs[0]) || !uses_first_result_only(&uses, call))
                        continue;
                TRY(run_poll(context->poll));
                TRY(try_fold(recording, &uses, call, SELF, context));
                if (!call->removed && !is_norm(call))
                        TRY(try_fold(recording, &uses, call, BINARY_OTHER, context));
        }
        recording_compact(recording);
        return STATUS_OK;
}
