// SPDX-License-Identifier: Apache-2.0
// decompose.c: which operators are written with others, and the decompositions that are views,
// products, normalisations and reductions. Pointwise ones are in decompose_pointwise.c. The calls
// are those that PyTorch's own decompositions make, in their order.
#include "core/ops/decompose_parts.h"

#include <string.h>
#include "core/ops/arguments.h"

// ---- views ----

// The same bytes in the sizes that infer has found.
static Status as_view(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = &call->outs[0].meta;
        return compose_end(
                &c, OP(&c, "aten::view", arg_value(call, SELF), compose_ints(&c, meta->size, meta->rank)),
                out);
}

static Status as_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = &call->outs[0].meta;
        return compose_end(
                &c, OP(&c, "aten::expand", arg_value(call, SELF), compose_ints(&c, meta->size, meta->rank)),
                out);
}

static Status as_self(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_ref(arg_value(call, SELF));
        return STATUS_OK;
}

static Value swapped(Compose *c, Value self, int a, int b)
{
        int rank = compose_meta(c, self)->rank;
        int64_t dims[MAX_RANK];
        if (rank < 2)
                return self;
        for (int i = 0; i < rank; i++)
                dims[i] = i == a ? b : i == b ? a : i;
        return OP(c, "aten::permute", self, compose_ints(c, dims, rank));
}

static Status t_permute(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, swapped(&c, arg_value(call, SELF), 0, 1), out);
}

static Status mt_permute(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int rank = compose_meta(&c, arg_value(call, SELF))->rank;
        return compose_end(&c, swapped(&c, arg_value(call, SELF), rank - 2, rank - 1), out);
}

// transpose, swapaxes and swapdims name their dimensions differently.
static Status transpose_permute(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int a, b;
        compose_begin(&c, emitter, call);
        int rank = compose_meta(&c, arg_value(call, SELF))->rank;
        compose_check(&c, arg_dim(call, TRANSPOSE_DIM0, rank, &a));
        compose_check(&c, arg_dim(call, TRANSPOSE_DIM1, rank, &b));
        if (compose_failed(&c))
                return c.status;
        return compose_end(&c, swapped(&c, arg_value(call, SELF), a, b), out);
}

// The dimensions by their strides and sizes would be ambiguous, so they are moved as the call says.
static Status movedim_permute(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t from[MAX_RANK], to[MAX_RANK], dims[MAX_RANK];
        bool moved[MAX_RANK] = { false };
        int n, m;
        compose_begin(&c, emitter, call);
        int rank = compose_meta(&c, arg_value(call, SELF))->rank;
        TRY(arg_ints(call, MOVEDIM_SOURCE, MAX_RANK, from, &n));
        TRY(arg_ints(call, MOVEDIM_DESTINATION, MAX_RANK, to, &m));
        memset(dims, -1, sizeof(dims));
        for (int i = 0; i < n && i < m; i++) {
                from[i] += from[i] < 0 ? rank : 0;
                dims[to[i] + (to[i] < 0 ? rank : 0)] = from[i];
                moved[from[i]] = true;
        }
        for (int i = 0, next = 0; i < rank; i++) {
                if (dims[i] >= 0)
                        continue;
                while (moved[next])
                        next++;
                dims[i] = next++;
        }
        return compose_end(&c, OP(&c, "aten::permute", arg_value(call, SELF), compose_ints(&c, dims, rank)),
                           out);
}

static Status narrow_slice(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = compose_meta(&c, NAMED(&c, "self"));
        int dim = compose_dim(&c, "dim", meta->rank);
        int64_t start = compose_int(&c, "start");
        if (!compose_failed(&c) && start < 0)
                start += meta->size[dim];
        return compose_end(&c,
                           OP(&c, "aten::slice.Tensor", NAMED(&c, "self"), NAMED(&c, "dim"), value_int(start),
                              value_int(start + compose_int(&c, "length"))),
                           out);
}

static Status squeeze_dims(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t dims[MAX_RANK];
        compose_begin(&c, emitter, call);
        int rank = compose_meta(&c, NAMED(&c, "self"))->rank;
        for (int i = 0; i < rank; i++)
                dims[i] = i;
        Value which = call->n_args > 1 ? compose_list(&c, &call->args[SQUEEZE_DIM_DIM], 1)
                                       : compose_ints(&c, dims, rank);
        return compose_end(&c, OP(&c, "aten::squeeze.dims", NAMED(&c, "self"), which), out);
}

static int split_dim(Compose *c)
{
        return compose_dim(c, "dim", compose_meta(c, NAMED(c, "self"))->rank);
}

// split, chunk: the sizes are those that infer has found.
static Status split_sizes(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int dim = split_dim(&c);
        _cleanup_(freep) int64_t *sizes = new_array(call->n_outs, sizeof(int64_t));
        if (sizes == NULL)
                return fail_memory();
        for (uint32_t k = 0; k < call->n_outs; k++)
                sizes[k] = call->outs[k].meta.size[dim];
        return compose_end(&c,
                           OP(&c, "aten::split_with_sizes", NAMED(&c, "self"),
                              compose_ints(&c, sizes, (int)call->n_outs), NAMED(&c, "dim")),
                           out);
}

static Status split_slices(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int dim = split_dim(&c);
        int64_t at = 0;
        _cleanup_(freep) Value *parts = new_array(call->n_outs, sizeof(Value));
        if (parts == NULL)
                return fail_memory();
        for (uint32_t k = 0; k < call->n_outs; k++) {
                int64_t end = at + call->outs[k].meta.size[dim];
                parts[k] = OP(&c, "aten::slice.Tensor", NAMED(&c, "self"), NAMED(&c, "dim"), value_int(at),
                              value_int(end));
                at = end;
        }
        return compose_end(&c, compose_list(&c, parts, call->n_outs), out);
}

static Status unbind_slices(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value dim = value_int(split_dim(&c));
        _cleanup_(freep) Value *parts = new_array(call->n_outs, sizeof(Value));
        if (parts == NULL)
                return fail_memory();
        for (uint32_t k = 0; k < call->n_outs; k++)
                parts[k] = OP(&c, "aten::slice.Tensor", NAMED(&c, "self"), dim, value_int(k),
                              value_int((int64_t)k + 1));
        for (uint32_t k = 0; k < call->n_outs; k++)
                parts[k] = OP(&c, "aten::squeeze.dims", parts[k], compose_list(&c, &dim, 1));
        return compose_end(&c, compose_list(&c, parts, call->n_outs), out);
}

static Status stack_cat(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *result = &call->outs[0].meta;
        int dim = compose_dim(&c, "dim", result->rank);
        Value tensors = NAMED(&c, "tensors"), joined;
        if (dim + 1 == result->rank) { // the parts have no such dimension to be joined along
                uint32_t n = compose_length(tensors);
                _cleanup_(freep) Value *parts = new_array(n, sizeof(Value));
                if (parts == NULL)
                        return fail_memory();
                for (uint32_t k = 0; k < n; k++)
                        parts[k] = OP(&c, "aten::unsqueeze", compose_item(&c, tensors, k), value_int(dim));
                joined = OP(&c, "aten::cat", compose_list(&c, parts, n), value_int(dim));
        } else {
                joined = OP(&c, "aten::cat", tensors, value_int(dim));
                joined = OP(&c, "aten::view", joined, compose_ints(&c, result->size, result->rank));
        }
        return compose_end(&c, joined, out);
}

// ---- products ----

static int64_t product_of(const int64_t *sizes, int n)
{
        int64_t product = 1;
        for (int i = 0; i < n; i++)
                product *= sizes[i];
        return product;
}

// As rows of a matrix. `reshape` copies where a view cannot do it.
static Value as_rows(Compose *c, Value x)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (compose_failed(c) || meta->rank == 2)
                return x;
        int64_t last = meta->rank == 0 ? 1 : meta->size[meta->rank - 1];
        return OP(c, "aten::reshape", x, INTS(c, product_of(meta->size, meta->rank - 1), last));
}

static Status linear_mm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *result = &call->outs[0].meta;
        Value input = NAMED(&c, "input"), weight = NAMED(&c, "weight"), rows, across, product;
        if (compose_meta(&c, weight)->rank == 1)
                return compose_end(&c, OP(&c, "aten::matmul", input, weight), out);
        if (compose_has(&c, "bias")) {
                rows = as_rows(&c, input);
                across = swapped(&c, weight, 0, 1);
                product = OP(&c, "aten::addmm", NAMED(&c, "bias"), rows, across);
        } else {
                across = swapped(&c, weight, 0, 1);
                rows = as_rows(&c, input);
                product = OP(&c, "aten::mm", rows, across);
        }
        if (result->rank != 2)
                product = OP(&c, "aten::view", product, compose_ints(&c, result->size, result->rank));
        return compose_end(&c, product, out);
}

static Value sum_of_products(Compose *c, Value a, Value b, Value dims)
{
        return OP(c, "aten::sum.dim_IntList", OP(c, "aten::mul.Tensor", a, b), dims);
}

static Value batch_of(Compose *c, Value x, const TensorMeta *result)
{
        int64_t size[MAX_RANK];
        const TensorMeta *meta = compose_meta(c, x);
        int n = result->rank;
        memcpy(size, result->size, sizeof(size));
        size[n - 2] = meta->size[meta->rank - 2];
        size[n - 1] = meta->size[meta->rank - 1];
        Value wide = OP(c, "aten::expand", x, compose_ints(c, size, n));
        return OP(c, "aten::reshape", wide, INTS(c, product_of(size, n - 2), size[n - 2], size[n - 1]));
}

static Value batched(Compose *c, Value a, Value b, const TensorMeta *result)
{
        Value left = batch_of(c, a, result), right = batch_of(c, b, result);
        return OP(c, "aten::view", OP(c, "aten::bmm", left, right),
                  compose_ints(c, result->size, result->rank));
}

static Value rows_by(Compose *c, Value a, Value b, const TensorMeta *result)
{
        Value rows = as_rows(c, a);
        Value product = compose_meta(c, b)->rank == 1 ? sum_of_products(c, rows, b, INTS(c, 1))
                                                      : OP(c, "aten::mm", rows, b);
        return OP(c, "aten::view", product, compose_ints(c, result->size, result->rank));
}

static Value matmul_of(Compose *c, Value a, Value b, const TensorMeta *result)
{
        int m = compose_meta(c, a)->rank, n = compose_meta(c, b)->rank;
        if (m == 1 && n == 1)
                return sum_of_products(c, a, b, compose_ints(c, NULL, 0));
        if (m == 2 && n == 1)
                return sum_of_products(c, a, b, INTS(c, 1));
        if (m == 1 && n == 2)
                return OP(c, "aten::squeeze.dims",
                          OP(c, "aten::mm", OP(c, "aten::unsqueeze", a, value_int(0)), b), INTS(c, 0));
        if (m == 2 && n == 2)
                return OP(c, "aten::mm", a, b);
        if (m >= 3 && n <= 2)
                return rows_by(c, a, b, result);
        if (m == 1)
                return rows_by(c, swapped(c, b, n - 2, n - 1), a, result);
        return batched(c, a, b, result);
}

static Status matmul_mm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(
                &c, matmul_of(&c, arg_value(call, SELF), arg_value(call, MATMUL_OTHER), &call->outs[0].meta),
                out);
}

static Status baddbmm_bmm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"),
              product = OP(&c, "aten::bmm", NAMED(&c, "batch1"), NAMED(&c, "batch2"));
        double alpha = compose_double(&c, "alpha"), beta = compose_double(&c, "beta");
        if (alpha < 1 || alpha > 1)
                product = OP(&c, "aten::mul.Tensor", product, NAMED(&c, "alpha"));
        if (beta > 0 || beta < 0) {
                if (beta < 1 || beta > 1)
                        self = OP(&c, "aten::mul.Tensor", self, NAMED(&c, "beta"));
                product = OP(&c, "aten::add.Tensor", self, product);
        }
        return compose_end(&c, product, out);
}

// ---- convolutions ----

static Value repeated(Compose *c, int64_t value, int n)
{
        int64_t items[MAX_RANK];
        for (int i = 0; i < n; i++)
                items[i] = value;
        return compose_ints(c, items, n);
}

// A list of `n`, which the call may give as one number.
static Value spatial(Compose *c, const char *name, int n)
{
        int64_t items[MAX_RANK];
        int given = compose_int_list(c, name, items);
        if (given == 1)
                return repeated(c, items[0], n);
        return compose_ints(c, items, compose_failed(c) ? 0 : given);
}

static Status convolution(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), weight = NAMED(&c, "weight");
        int n = compose_meta(&c, weight)->rank - 2;
        bool transposed = strstr(call->schema->name, "transpose") != NULL;
        bool single = compose_meta(&c, input)->rank == n + 1;
        Value output_padding = transposed ? spatial(&c, "output_padding", n) : repeated(&c, 0, n);
        Value x = single ? OP(&c, "aten::unsqueeze", input, value_int(0)) : input;
        Value y = OP(&c, "aten::convolution", x, weight, NAMED(&c, "bias"), spatial(&c, "stride", n),
                     spatial(&c, "padding", n), spatial(&c, "dilation", n), value_bool(transposed),
                     output_padding, NAMED(&c, "groups"));
        if (single)
                y = OP(&c, "aten::squeeze.dims", y, INTS(&c, 0));
        return compose_end(&c, y, out);
}

// ---- normalisation ----

static Status native_layer_norm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value all = OP(&c, "aten::native_layer_norm", NAMED(&c, "input"), NAMED(&c, "normalized_shape"),
                       NAMED(&c, "weight"), NAMED(&c, "bias"), NAMED(&c, "eps"));
        return compose_end(&c, compose_item(&c, all, 0), out);
}

static Status native_group_norm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = compose_meta(&c, NAMED(&c, "input"));
        Value all = OP(&c, "aten::native_group_norm", NAMED(&c, "input"), NAMED(&c, "weight"),
                       NAMED(&c, "bias"), value_int(meta->size[0]), value_int(meta->size[1]),
                       value_int(product_of(meta->size + 2, meta->rank - 2)), NAMED(&c, "num_groups"),
                       NAMED(&c, "eps"));
        return compose_end(&c, compose_item(&c, all, 0), out);
}

static Status native_batch_norm(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value all = OP(&c, "aten::_native_batch_norm_legit_no_training", NAMED(&c, "input"),
                       NAMED(&c, "weight"), NAMED(&c, "bias"), NAMED(&c, "running_mean"),
                       NAMED(&c, "running_var"), NAMED(&c, "momentum"), NAMED(&c, "eps"));
        return compose_end(&c, compose_item(&c, all, 0), out);
}

static Value softmax_of(Compose *c, const char *name)
{
        Value x = NAMED(c, "self");
        Dtype dtype = arg_dtype(c->call, SOFTMAX_INT_DTYPE, compose_meta(c, x)->dtype);
        return OP(c, name, dtype == compose_meta(c, x)->dtype ? x : compose_cast(c, x, dtype),
                  NAMED(c, "dim"), value_bool(false));
}

static Status softmax_int(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, softmax_of(&c, "aten::_softmax"), out);
}

static Status log_softmax_int(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, softmax_of(&c, "aten::_log_softmax"), out);
}

// ---- reductions ----

static Status sum_all(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::sum.dim_IntList", NAMED(&c, "self"), compose_ints(&c, NULL, 0),
                              value_bool(false), NAMED(&c, "dtype")),
                           out);
}

// The forms of var and std differ in their arguments.
static Value variance(Compose *c, bool as_float)
{
        const Schema *schema = c->call->schema;
        Value dim = value_none(), correction = value_none(), keepdim = value_bool(false);
        for (uint32_t i = 1; i < schema->n_args; i++) {
                Value value = arg_value(c->call, (int)i);
                if (strcmp(schema->args[i].name, "dim") == 0)
                        dim = value;
                else if (strcmp(schema->args[i].name, "unbiased") == 0)
                        correction = value_int(value.b);
                else if (strcmp(schema->args[i].name, "correction") == 0)
                        correction = value;
                else
                        keepdim = value;
        }
        if (as_float)
                correction = value_float(correction.kind == VALUE_INT     ? (double)correction.i
                                         : correction.kind == VALUE_FLOAT ? correction.f
                                                                          : 1);
        return OP(c, "aten::var.correction", NAMED(c, "self"), dim, correction, keepdim);
}

static Status var_correction(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, variance(&c, false), out);
}

static Status std_sqrt(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, OP(&c, "aten::sqrt", variance(&c, true)), out);
}

static Status not_any_not(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value none = OP(&c, "aten::logical_not", NAMED(&c, "self"));
        Value any = call->n_args == 1 ? OP(&c, "aten::any", none)
                                      : OP(&c, "aten::any.dim", none, NAMED(&c, "dim"), NAMED(&c, "keepdim"));
        return compose_end(&c, OP(&c, "aten::logical_not", any), out);
}

static Status pool_indices(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value both =
                OP(&c, "aten::max_pool2d_with_indices", NAMED(&c, "self"), NAMED(&c, "kernel_size"),
                   NAMED(&c, "stride"), NAMED(&c, "padding"), NAMED(&c, "dilation"), NAMED(&c, "ceil_mode"));
        return compose_end(&c, compose_item(&c, both, 0), out);
}

static Status pool_adaptive(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        int64_t size[MAX_RANK];
        compose_begin(&c, emitter, call);
        int n = compose_int_list(&c, "output_size", size);
        bool whole = n == 2 && size[0] == 1 && size[1] == 1;
        Value y = whole ? OP(&c, "aten::mean.dim", NAMED(&c, "self"), INTS(&c, -1, -2), value_bool(true))
                        : OP(&c, "aten::_adaptive_avg_pool2d", NAMED(&c, "self"), NAMED(&c, "output_size"));
        return compose_end(&c, y, out);
}

// ---- the table ----

static const Decomposition views[] = {
        { "view_as", as_view },
        { "unflatten.int", as_view },
        { "_reshape_alias", as_view },
        { "_unsafe_view", as_view },
        { "expand_as", as_expand },
        { "broadcast_to", as_expand },
        { "mT", mt_permute },
        { "adjoint", mt_permute },
        { "numpy_T", t_permute },
        { "swapaxes", transpose_permute },
        { "swapdims", transpose_permute },
        { "movedim.int", movedim_permute },
        { "movedim.intlist", movedim_permute },
        { "moveaxis.int", movedim_permute },
        { "moveaxis.intlist", movedim_permute },
        { "narrow", narrow_slice },
        { "chunk", split_sizes },
        { "split.sizes", split_sizes },
        { "tensor_split.indices", split_slices },
        { "tensor_split.sections", split_slices },
        { "fxserve::batch_norm_eval", native_batch_norm },
        { "detach", as_self },
        { "alias", as_self },
        { "lift_fresh", as_self },
        { "resolve_conj", as_self },
        { "resolve_neg", as_self },
        { "positive", as_self },
};

static const Decomposition others[] = {
        { "t", t_permute },
        { "transpose.int", transpose_permute },
        { "squeeze", squeeze_dims },
        { "squeeze.dim", squeeze_dims },
        { "split.Tensor", split_sizes },
        { "unsafe_split.Tensor", split_sizes },
        { "unbind.int", unbind_slices },
        { "stack", stack_cat },
        { "linear", linear_mm },
        { "matmul", matmul_mm },
        { "mv", matmul_mm },
        { "dot", matmul_mm },
        { "baddbmm", baddbmm_bmm },
        { "conv1d", convolution },
        { "conv2d", convolution },
        { "conv3d", convolution },
        { "conv_transpose1d", convolution },
        { "conv_transpose2d.input", convolution },
        { "conv_transpose3d.input", convolution },
        { "layer_norm", native_layer_norm },
        { "group_norm", native_group_norm },
        { "softmax.int", softmax_int },
        { "log_softmax.int", log_softmax_int },
        { "sum", sum_all },
        { "var", var_correction },
        { "var.dim", var_correction },
        { "std", std_sqrt },
        { "std.dim", std_sqrt },
        { "std.correction", std_sqrt },
        { "all", not_any_not },
        { "all.dim", not_any_not },
        { "max_pool2d", pool_indices },
        { "adaptive_avg_pool2d", pool_adaptive },
};

OpDecompose decomposition_in(const Decomposition *rows, size_t n, const OpDef *op)
{
        const char *name = op->schema + (strncmp(op->schema, "aten::", 6) == 0 ? 6 : 0);
        size_t length = strcspn(name, "(");
        for (size_t i = 0; i < n; i++) {
                if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
                        return rows[i].decompose;
        }
        return NULL;
}

OpDecompose op_decomposition(const OpDef *op, Decompositions decompositions)
{
        OpDecompose found = NULL;
        if (decompositions >= DECOMPOSE_VIEWS)
                found = decomposition_in(views, ARRAY_LENGTH(views), op);
        if (found == NULL && decompositions == DECOMPOSE_ALL)
                found = decomposition_in(others, ARRAY_LENGTH(others), op);
        if (found == NULL && decompositions == DECOMPOSE_ALL)
                found = pointwise_decomposition(op);
        return found;
}

// ---- what functional graphs need to know of operators ----

const char target_copy[] = "torch.ops.aten.copy.default";
const char target_fill[] = "torch.ops.aten.fill.Scalar";
const char target_full_like[] = "torch.ops.aten.full_like.default";

static bool is_named(const Overload *overload, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(overload->schema.name, names[i]) == 0)
                        return true;
        }
        return false;
}

bool op_is_named_view(const Overload *overload)
{
        const Schema *schema = &overload->schema;
        return !overload->inplace && schema->n_returns > 0 && schema->return_types[0].is_alias &&
               (overload->op->expand != NULL || op_decomposition(overload->op, DECOMPOSE_VIEWS) != NULL);
}

bool op_is_core_composite(const Overload *overload)
{
        static const char *const names[] = { "copy",           "index_put",     "masked_scatter",
                                             "select_scatter", "slice_scatter", "diagonal_scatter",
                                             "_cdist_forward", "_pdist_forward" };
        return !overload->inplace && overload->op->expand != NULL &&
               is_named(overload, names, ARRAY_LENGTH(names));
}

static const struct {
        const char *name; // of the view, any overload
        ViewInverse inverse;
        const char *target;
} inverses[] = {
        { "view", INVERSE_SIZES, "torch.ops.aten.view.default" },
        { "squeeze", INVERSE_SIZES, "torch.ops.aten.view.default" },
        { "unsqueeze", INVERSE_DIM, "torch.ops.aten.squeeze.dim" },
        { "transpose", INVERSE_DIMS, "torch.ops.aten.transpose.int" },
        { "t", INVERSE_ITSELF, "torch.ops.aten.t.default" },
        { "permute", INVERSE_ORDER, "torch.ops.aten.permute.default" },
        { "select", INVERSE_SELECT, "torch.ops.aten.select_scatter.default" },
        { "slice", INVERSE_SLICE, "torch.ops.aten.slice_scatter.default" },
        { "diagonal", INVERSE_DIAGONAL, "torch.ops.aten.diagonal_scatter.default" },
        { "unbind", INVERSE_ROW, "torch.ops.aten.select_scatter.default" },
        { "split", INVERSE_PART, "torch.ops.aten.slice_scatter.default" },
        { "split_with_sizes", INVERSE_PART, "torch.ops.aten.slice_scatter.default" },
};

ViewInverse op_view_inverse(const Overload *overload, const char **out_target)
{
        for (size_t i = 0; i < ARRAY_LENGTH(inverses); i++) {
                if (strcmp(inverses[i].name, overload->schema.name) != 0)
                        continue;
                *out_target = inverses[i].target;
                return inverses[i].inverse;
        }
        return INVERSE_NONE;
}
