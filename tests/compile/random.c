// SPDX-License-Identifier: Apache-2.0
// random.c: random graphs over all kinds of operators, run eagerly and compiled. Dtypes are mixed,
// shapes cross the limits of tiles and of blocks of rows, tensors are views of each other and are
// written in place. Each call is tried on real tensors while the graph grows, so that what stands
// in it is valid. Results must have equal bits; where products (sums in another order) took part,
// floats may differ by what rounding explains, and nothing that turns a rounding into a step
// (comparisons, casts to integers) reads them. RANDOM_GRAPHS and RANDOM_SEED: how many, from where.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/graph/print.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/compile/growth.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(random, .init = start, .timeout = 0);

// ---- operators ----
static const struct Row {
        const char *name, *codes;
        int flags;
} rows[] = {
        { "add.Tensor", "tt", 0 },
        { "add.Tensor", "tt", 0 },
        { "add.Tensor", "tn", 0 },
        { "sub.Tensor", "tt", 0 },
        { "rsub.Scalar", "tn", 0 },
        { "mul.Tensor", "tt", 0 },
        { "mul.Tensor", "tt", 0 },
        { "mul.Tensor", "tn", 0 },
        { "div.Tensor", "tp", 0 },
        { "div.Tensor", "tt", EXACT },
        { "floor_divide", "it", EXACT },
        { "remainder.Tensor", "ti", EXACT },
        { "remainder.Scalar", "tp", EXACT },
        { "fmod.Scalar", "tp", EXACT },
        { "div.Tensor_mode", "tt", EXACT },
        { "bitwise_and.Tensor", "ii", 0 },
        { "bitwise_xor.Tensor", "mm", 0 },
        { "bitwise_not", "i", 0 },
        { "bitwise_left_shift.Tensor_Scalar", "ik", 0 },
        { "logical_and", "tt", EXACT },
        { "logical_or", "mt", EXACT },
        { "logical_not", "t", EXACT },
        { "gt.Tensor", "tt", EXACT },
        { "gt.Tensor", "ft", EXACT },
        { "lt.Scalar", "tn", EXACT },
        { "le.Tensor", "tt", EXACT },
        { "eq.Tensor", "tt", EXACT },
        { "ne.Scalar", "tn", EXACT },
        { "ge.Scalar", "fn", EXACT },
        { "isnan", "f", EXACT },
        { "where.self", "mtt", 0 },
        { "where.self", "mtt", 0 },
        { "masked_fill.Scalar", "tmn", 0 },
        { "masked_fill.Scalar", "fmn", 0 },
        { "masked_fill_.Scalar", "fmn", 0 },
        { "masked_fill_.Scalar", "tmn", 0 },
        { "relu", "t", 0 },
        { "neg", "t", 0 },
        { "abs", "t", 0 },
        { "sign", "t", EXACT },
        { "square", "f", 0 },
        { "tanh", "t", 0 },
        { "sigmoid", "t", 0 },
        { "sin", "t", EXACT },
        { "cos", "f", EXACT },
        { "sqrt", "f", EXACT },
        { "gelu", "f", 0 },
        { "silu", "f", 0 },
        { "hardswish", "f", 0 },
        { "softplus", "f", 0 },
        { "leaky_relu", "f", 0 },
        { "floor", "f", EXACT },
        { "round", "t", EXACT },
        { "trunc", "f", EXACT },
        { "clamp", "tkp", 0 },
        { "clamp", "fnp", 0 },
        { "clamp_min", "tn", 0 },
        { "clamp.Tensor", "ttt", 0 },
        { "maximum", "tt", 0 },
        { "minimum", "tt", 0 },
        { "pow.Tensor_Scalar", "tk", 0 },
        { "addcmul", "ttt", 0 },
        { "lerp.Scalar", "ffn", 0 },
        { "atan2", "ff", EXACT },
        { "relu_", "t", 0 },
        { "add_.Tensor", "tt", 0 },
        { "mul_.Tensor", "tt", 0 },
        { "sub_.Tensor", "fn", 0 },
        { "neg_", "t", 0 },
        { "tanh_", "f", 0 },
        { "sigmoid_", "f", 0 },
        { "clamp_", "tkp", 0 },
        { "gt_.Tensor", "tt", EXACT },
        { "logical_not_", "t", EXACT },
        { "zero_", "t", 0 },
        { "fill_.Scalar", "tk", 0 },
        { "copy_", "tt", 0 },
        { "clone", "t", 0 },
        { "contiguous", "t", 0 },
        { "detach", "t", 0 },
        { "t", "t", 0 },
        { "transpose.int", "tdd", 0 },
        { "unsqueeze", "td", 0 },
        { "squeeze", "t", 0 },
        { "select.int", "tdk", 0 },
        { "flip", "tD", 0 },
        { "tril", "tk", 0 },
        { "chunk", "tkd", 0 },
        { "unbind.int", "td", 0 },
        { "sum", "t", 0 },
        { "sum.dim_IntList", "tDy", 0 },
        { "sum.dim_IntList", "fDy", 0 },
        { "mean.dim", "fDy", 0 },
        { "amax", "tDy", 0 },
        { "amin", "fDy", 0 },
        { "max.dim", "tdy", EXACT },
        { "argmax", "tdy", EXACT },
        { "any.dim", "tdy", EXACT },
        { "all.dim", "mdy", EXACT },
        { "prod.dim_int", "mdy", EXACT },
        { "cumsum", "td", 0 },
        { "var.correction", "fD", 0 },
        { "softmax.int", "fl", 0 },
        { "softmax.int", "fl", 0 },
        { "log_softmax.int", "fl", 0 },
        { "_softmax", "fl0", 0 },
        { "sort", "tdy", EXACT },
        { "cat", "Ld", 0 },
        { "cat", "Ld", 0 },
        { "stack", "Ld", 0 },
};

static Value some_list(Growth *growth)
{
        Seq *seq;
        const Made *first = any_of(growth, any_dtype, NULL);
        uint32_t n = (uint32_t)pick(growth, 1, 3);
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = argument(growth, 't', first);
        return value_seq_take(VALUE_LIST, seq);
}

static void remember(Growth *growth, const char *name, int flags, const Value *args, uint32_t n)
{
        Said *said = &growth->said[growth->n_said++ % MAX_SAID];
        for (uint32_t i = 0; i < said->n; i++)
                value_unref(said->args[i]);
        *said = (Said){ .name = name, .flags = flags, .n = n };
        for (uint32_t i = 0; i < n; i++)
                said->args[i] = value_ref(args[i]);
}

static void add_row(Growth *growth)
{
        const struct Row *row = &rows[pick(growth, 0, ARRAY_LENGTH(rows) - 1)];
        Value args[4] = { 0 };
        const Made *first = NULL;
        uint32_t n = (uint32_t)strlen(row->codes);
        for (uint32_t i = 0; i < n; i++) {
                args[i] = row->codes[i] == 'L'   ? some_list(growth)
                          : row->codes[i] == '0' ? value_bool(false)
                                                 : argument(growth, row->codes[i], first);
                if (i == 0)
                        first = made_of(growth,
                                        (args[0].kind == VALUE_LIST ? args[0].seq->items[0] : args[0]).node);
        }
        if (call(growth, row->name, row->flags, args, n) != NULL)
                remember(growth, row->name, row->flags, args, n);
        for (uint32_t i = 0; i < n; i++)
                value_unref(args[i]);
}

// A call once more, perhaps as its in-place twin or as what that is the twin of.
static void add_again(Growth *growth)
{
        if (growth->n_said == 0)
                return;
        const Said *said = &growth->said[pick(growth, 0, MIN(growth->n_said, (uint32_t)MAX_SAID) - 1)];
        char name[64];
        size_t n = strcspn(said->name, "."), n_plain = n - (said->name[n - 1] == '_');
        bool twin = pick(growth, 0, 1) == 0;
        snprintf(name, sizeof(name), "%.*s%s%s", (int)(twin ? n_plain : n), said->name,
                 twin && n == n_plain ? "_" : "", said->name + n);
        call(growth, name, said->flags, said->args, said->n);
}

static void add_cast(Growth *growth)
{
        const Made *from = any_of(growth, any_dtype, NULL);
        Value dtype = argument(growth, 'T', NULL);
        // whole numbers hold it on all machines
        if (dtype_is_float(from->tensor->meta.dtype) && !dtype_is_float(dtype.dtype)) {
                from = CALL(growth, "nan_to_num", EXACT, of(from));
                from = from == NULL ? NULL
                                    : CALL(growth, "clamp", EXACT, of(from), value_int(0), value_int(100));
        }
        if (from != NULL)
                CALL(growth, "to.dtype", 0, of(from), dtype);
}

static void add_slice(Growth *growth)
{
        const Made *from = any_of(growth, any_dtype, NULL);
        int rank = from->tensor->meta.rank;
        if (rank == 0)
                return;
        int64_t d = pick(growth, 0, rank - 1), size = from->tensor->meta.size[d],
                begin = pick(growth, 0, size / 2);
        CALL(growth, "slice.Tensor", 0, of(from), value_int(d), value_int(begin),
             value_int(pick(growth, begin + 1, size + 1)), value_int(pick(growth, 1, 2)));
}

static void add_shape(Growth *growth)
{
        static const char *const names[] = { "reshape", "expand", "permute", "view" };
        const Made *from = any_of(growth, any_dtype, NULL);
        const TensorMeta *meta = &from->tensor->meta;
        const char *name = names[pick(growth, 0, 3)];
        int64_t size[8] = { -1 };
        uint32_t n = 0;
        if (strcmp(name, "expand") == 0) {
                n = (uint32_t)growth->rank;
                memcpy(size, growth->size, sizeof(growth->size));
        } else if (strcmp(name, "permute") == 0) {
                n = (uint32_t)meta->rank;
                int64_t turn = pick(growth, 0, 4);
                for (uint32_t d = 0; d < n; d++)
                        size[d] = (d + turn) % n;
        } else if (meta->rank > 0) { // one dimension joined with the rest
                int keep = (int)pick(growth, 0, meta->rank - 1);
                bool front = pick(growth, 0, 1) == 0;
                size[front ? 0 : 1] = meta->size[keep];
                size[front ? 1 : 0] = -1;
                n = 2;
        }
        Value list = list_of(size, n);
        CALL(growth, name, 0, of(from), list);
        value_unref(list);
}

// Rows of a table, by places that are known to exist.
static void add_index(Growth *growth)
{
        const Made *table = any_of(growth, any_dtype, NULL);
        int rank = table->tensor->meta.rank, d = rank == 0 ? 0 : (int)pick(growth, 0, rank - 1);
        int64_t n = pick(growth, 1, 40), size = rank == 0 ? 1 : table->tensor->meta.size[d];
        Value from = of(table);
        if (size == 0 || growth->n_made + 4 > MAX_MADE)
                return;
        Tensor *places = random_tensor(growth, DTYPE_I64, 1, &n, 1);
        for (int64_t i = 0; i < n; i++)
                ((int64_t *)tensor_data(places))[i] = pick(growth, 0, size - 1);
        const Made *index = hidden_state(growth, places);
        if (rank == 2 && d == 0 && dtype_is_float(table->tensor->meta.dtype))
                CALL(growth, "embedding", 0, from, of(index));
        else
                CALL(growth, "index_select", 0, from, value_int(d), of(index));
}

// What a product may take: its errors are measured by what it adds up, so that has to be of the
// size of what comes out.
static const Made *small(Growth *growth, const Made *made)
{
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        Dtype dtype = made->tensor->meta.dtype;
        cr_assert_eq(tensor_contiguous(made->tensor, NULL, &dense), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&dense->meta); i++) {
                double value =
                        element_as_f64(dtype, (char *)tensor_data(dense) + i * dtype_info[dtype].bytes);
                if (!(fabs(value) <= 8))
                        return CALL(growth, "tanh", 0, of(made));
        }
        return made;
}

static void add_product(Growth *growth)
{
        const Made *a = small(growth, any_of(growth, dtype_is_float, NULL)),
                   *b = small(growth, any_of(growth, dtype_is_float, a));
        if (a == NULL || b == NULL)
                return;
        const TensorMeta *meta = &a->tensor->meta;
        Value from = of(a), other = of(b);
        if (meta->dtype != DTYPE_F32 || meta->rank == 0) {
                CALL(growth, "matmul", 0, from, other); // one kernel on both sides
                return;
        }
        if (pick(growth, 0, 1) == 0 || meta->size[meta->rank - 1] == 0) {
                CALL(growth, "matmul", PRODUCT, from, other);
                return;
        }
        int64_t n_out = pick(growth, 1, 40), n_in = meta->size[meta->rank - 1];
        Value weight = of(state_of(growth, 2, (int64_t[]){ n_out, n_in }, 2 / sqrt((double)n_in)));
        const Made *made = CALL(growth, "linear", PRODUCT, from, weight, of(state_of(growth, 1, &n_out, 1)));
        if (made != NULL && pick(growth, 0, 1) == 0)
                CALL(growth, "relu", 0, of(made));
}

static Tensor *positive(Tensor *tensor)
{
        float *data = tensor_data(tensor);
        for (int64_t i = 0; i < meta_numel(&tensor->meta); i++)
                data[i] = fabsf(data[i]) + 0.5f;
        return tensor;
}

static const Made *add_norm(Growth *growth, const Made *image, int64_t channels)
{
        Value from = of(image), mean = of(state_of(growth, 1, &channels, 1)),
              variance =
                      of(hidden_state(growth, positive(random_tensor(growth, DTYPE_F32, 1, &channels, 1))));
        Value scale = of(state_of(growth, 1, &channels, 1)), shift = of(state_of(growth, 1, &channels, 1));
        return CALL(growth, "batch_norm", PRODUCT, from, scale, shift, mean, variance, value_bool(false),
                    value_float(0.1), value_float(1e-5));
}

static void add_pool(Growth *growth, const Made *image)
{
        Value kernel = list_of((int64_t[]){ 2, 3 }, 2), stride = list_of((int64_t[]){ 2, 1 }, 2);
        CALL(growth, pick(growth, 0, 1) == 0 ? "max_pool2d" : "avg_pool2d", 0, of(image), kernel, stride);
        value_unref(kernel);
        value_unref(stride);
}

// A convolution, perhaps with a norm, a residual, an activation and a pool behind it.
static void add_conv(Growth *growth)
{
        static const int64_t widths[] = { 1, 3, 8, 16, 32, 33, 64 };
        const Made *image = small(growth, any_of(growth, dtype_is_float, NULL));
        const TensorMeta meta = image == NULL ? (TensorMeta){ 0 } : image->tensor->meta;
        if (meta.rank != 4 || meta.dtype != DTYPE_F32 || meta_numel(&meta) == 0 ||
            growth->n_made + 14 > MAX_MADE)
                return;
        Value from = of(image);
        int64_t side = pick(growth, 0, 2) == 0 ? 1 : 3, channels = meta.size[1];
        int64_t groups = pick(growth, 0, 4) == 0 ? channels : 1,
                n_out = groups > 1 ? groups : widths[pick(growth, 0, 6)];
        int64_t stride = pick(growth, 0, 3) == 0 ? 2 : 1, padding = pick(growth, 0, side / 2),
                apart = pick(growth, 0, 4) == 0 ? 2 : 1;
        Value weight = of(state_of(growth, 4, (int64_t[]){ n_out, channels / groups, side, side },
                                   2 / sqrt((double)(channels / groups * side * side))));
        Value bias = pick(growth, 0, 1) == 0 ? value_none() : of(state_of(growth, 1, &n_out, 1));
        Value lists[] = { list_of((int64_t[]){ stride, stride }, 2),
                          list_of((int64_t[]){ padding, padding }, 2),
                          list_of((int64_t[]){ apart, apart }, 2) };
        const Made *made = CALL(growth, "conv2d", PRODUCT, from, weight, bias, lists[0], lists[1], lists[2],
                                value_int(groups));
        for (size_t i = 0; i < ARRAY_LENGTH(lists); i++)
                value_unref(lists[i]);
        if (made != NULL && pick(growth, 0, 1) == 0)
                made = add_norm(growth, made, n_out);
        if (made != NULL && pick(growth, 0, 2) == 0)
                made = CALL(growth, "add.Tensor", 0, of(made), from);
        if (made != NULL && pick(growth, 0, 1) == 0)
                made = CALL(growth, pick(growth, 0, 1) == 0 ? "relu" : "relu_", 0, of(made));
        if (made != NULL && pick(growth, 0, 2) == 0)
                add_pool(growth, made);
}

static void add_layer_norm(Growth *growth)
{
        const Made *from = any_of(growth, dtype_is_float, NULL);
        const TensorMeta *meta = &from->tensor->meta;
        if (meta->rank == 0 || meta->dtype != DTYPE_F32 || from->rounded)
                return;
        Value rows_of = of(from);
        int64_t n = meta->size[meta->rank - 1];
        Value shape = list_of(&n, 1);
        CALL(growth, "layer_norm", 0, rows_of, shape, of(state_of(growth, 1, &n, 1)),
             of(state_of(growth, 1, &n, 1)));
        value_unref(shape);
}

// A row of statistics, applied to all rows; then something along each of them.
static void add_statistics(Growth *growth)
{
        static const char *const along[] = { "sum.dim_IntList", "mean.dim", "amax", "amin" },
                                 *const with[] = { "add.Tensor", "sub.Tensor", "mul.Tensor" };
        const Made *from = any_of(growth, dtype_is_float, NULL),
                   *rows_of = any_of(growth, dtype_is_float, from);
        int rank = from->tensor->meta.rank;
        if (rank < 2)
                return;
        Value first = list_of((int64_t[]){ 0 }, 1), last = list_of((int64_t[]){ rank - 1 }, 1);
        const Made *row = CALL(growth, along[pick(growth, 0, 3)], 0, of(from), first,
                               value_bool(pick(growth, 0, 1) == 1));
        const Made *made =
                row == NULL ? NULL : CALL(growth, with[pick(growth, 0, 2)], 0, of(rows_of), of(row));
        if (made != NULL && made->tensor->meta.rank == rank)
                CALL(growth, along[pick(growth, 0, 3)], 0, of(made), last);
        value_unref(first);
        value_unref(last);
}

// What is made in another order than rows first, then masked, in place or not.
static void add_masked(Growth *growth)
{
        static const char *const fresh[] = { "neg", "sin", "clone" };
        const Made *from = any_of(growth, dtype_is_float, NULL);
        const Made *turned = CALL(growth, "transpose.int", 0, of(from), value_int(-1), value_int(0));
        const Made *made = turned == NULL ? NULL : CALL(growth, fresh[pick(growth, 0, 2)], 0, of(turned));
        const Made *mask =
                made == NULL ? NULL : CALL(growth, "gt.Scalar", EXACT, of(turned), value_float(0.5));
        if (mask == NULL)
                return;
        Value args[] = { of(made), of(mask), value_int(2) };
        for (int64_t left = pick(growth, 1, 2); left > 0; left--) {
                call(growth, "masked_fill.Scalar", 0, args, 3);
                call(growth, pick(growth, 0, 2) == 0 ? "masked_fill.Scalar" : "masked_fill_.Scalar", 0, args,
                     3);
        }
}

// ---- graphs ----
static void choose_size(Growth *growth)
{
        static const int64_t sizes[] = { 1, 2, 3, 5, 8, 16, 17, 33, 64, 130, 256, 1500, 5000 },
                             squares[] = { 3, 17, 67, 140, 200 };
        int64_t most = pick(growth, 0, 2) == 0 ? 60000 : 2000, n = 1;
        int kind = (int)pick(growth, 0, 5);
        growth->rank = kind < 2 ? 2 : kind == 5 ? 4 : (int)pick(growth, 1, 4);
        for (int d = 0; d < growth->rank; d++) {
                do
                        growth->size[d] = sizes[pick(growth, 0, ARRAY_LENGTH(sizes) - 1)];
                while (n * growth->size[d] > most);
                n *= growth->size[d];
        }
        if (kind == 0) // transposes broadcast with what they are of
                growth->size[0] = growth->size[1] = squares[pick(growth, 0, ARRAY_LENGTH(squares) - 1)];
        if (kind == 5) // images
                memcpy(growth->size,
                       (int64_t[]){ pick(growth, 1, 2), pick(growth, 0, 1) == 0 ? 3 : 32, pick(growth, 4, 17),
                                    pick(growth, 4, 17) },
                       sizeof(growth->size));
}

static Tensor *source(Growth *growth, bool whole)
{
        Dtype dtype = whole || pick(growth, 0, 1) == 0 ? DTYPE_F32 : argument(growth, 'T', NULL).dtype;
        int skip = !whole && pick(growth, 0, 3) == 0 ? (int)pick(growth, 0, growth->rank - 1) : 0;
        int64_t size[4] = { 0 };
        for (int d = skip; d < growth->rank; d++)
                size[d - skip] = !whole && pick(growth, 0, 4) == 0 ? 1 : growth->size[d];
        return random_tensor(growth, dtype, growth->rank - skip, size, 3);
}

static void add_sources(Growth *growth)
{
        int64_t n = pick(growth, 2, MAX_INPUTS), n_states = pick(growth, -2, 2);
        for (int64_t i = 0; i < n; i++)
                add_input(growth, source(growth, i == 0));
        for (int64_t i = 0; i < n_states; i++)
                add_state(growth, source(growth, i == 0));
}

static void grow(Growth *growth)
{
        bool products = pick(growth, 0, 2) == 0;
        for (int64_t left = pick(growth, 2, 40); left > 0 && growth->n_made < MAX_MADE - 16; left--) {
                int64_t kind = pick(growth, 0, 19);
                if (kind < 11)
                        add_row(growth);
                else if (kind < 12)
                        add_again(growth);
                else if (kind < 14)
                        add_cast(growth);
                else if (kind < 15)
                        add_slice(growth);
                else if (kind < 16)
                        add_shape(growth);
                else if (kind < 17)
                        add_index(growth);
                else if (kind < 18)
                        (left % 3 == 0   ? add_layer_norm
                         : left % 3 == 1 ? add_statistics
                                         : add_masked)(growth);
                else if (products)
                        (growth->rank == 4 ? add_conv : add_product)(growth);
        }
}

// *out_rounded: a result depends on a product.
static void close_graph(Growth *growth, bool *out_rounded)
{
        Seq *seq, *args;
        Node *node;
        CheckReport report;
        uint32_t n = (uint32_t)pick(growth, 1, MAX_RESULTS);
        *out_rounded = false;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++) {
                const Made *made =
                        i == 0 ? &growth->made[growth->n_made - 1] : any_of(growth, any_dtype, NULL);
                seq->items[i] = of(made);
                *out_rounded |= made->rounded;
        }
        cr_assert_eq(seq_new(1, &args), STATUS_OK);
        args->items[0] = value_seq_take(VALUE_TUPLE, seq);
        cr_assert_eq(graph_add_node(growth->graph,
                                    &(NodeSpec){ .op = OP_OUTPUT,
                                                 .target = "output",
                                                 .args = value_seq_take(VALUE_TUPLE, args) },
                                    &node),
                     STATUS_OK);
        cr_assert_eq(graph_finish(growth->graph), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_resolve(growth->graph, &report), STATUS_OK, "%s", failure_current()->message);
        check_report_deinit(&report);
}

static void show(const Growth *growth)
{
        Text text = { 0 };
        cr_assert_eq(graph_print(growth->graph, GRAPH_FORM_GRAPH, &text), STATUS_OK);
        fprintf(stderr, "%s\n", text.data);
        for (int i = 0; i < growth->n_made; i++) {
                char shape[128];
                const TensorMeta *meta = &growth->made[i].tensor->meta;
                fprintf(stderr, "%s: %s %s\n", growth->made[i].node->name, dtype_info[meta->dtype].name,
                        shape_text(meta->rank, meta->size, shape, sizeof(shape)));
        }
        text_deinit(&text);
}

static BothResult try_graph(uint64_t seed)
{
        Growth growth = { .sample = { seed } };
        RunContext ctx;
        bool rounded;
        char words[600];
        run_context_init(&ctx);
        (void)sample_bits(&growth.sample);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &growth.graph), STATUS_OK);
        cr_assert_eq(eager_open(growth.graph, &ctx, &growth.eager), STATUS_OK);
        choose_size(&growth);
        add_sources(&growth);
        grow(&growth);
        close_graph(&growth, &rounded);
        CompileOptions options = { .n_threads = 1 };
        BothResult result = run_both(growth.graph, (ValueSpan){ growth.inputs, (uint32_t)growth.n_inputs },
                                     &options, rounded ? 1e-3 : 0, rounded ? 1e-3 : 0, words);
        if (result == BOTH_DIFFER) {
                fprintf(stderr, "seed %lu, %s: %s\n", (unsigned long)seed,
                        rounded ? "with products" : "equal bits wanted", words);
                if (getenv("RANDOM_SHOW") != NULL)
                        show(&growth);
        }
        eager_close(growth.eager);
        for (uint32_t i = 0; i < MAX_SAID; i++) {
                for (uint32_t k = 0; k < growth.said[i].n; k++)
                        value_unref(growth.said[i].args[k]);
        }
        for (int i = 0; i < growth.n_made; i++)
                tensor_unref(growth.made[i].tensor);
        for (int i = 0; i < growth.n_inputs; i++)
                value_clear(&growth.inputs[i]);
        graph_unref(growth.graph);
        return result;
}

Test(random, graphs_give_compiled_what_they_give_eagerly)
{
        const char *graphs = getenv("RANDOM_GRAPHS"), *seed = getenv("RANDOM_SEED");
        uint64_t n = graphs == NULL ? 600 : strtoull(graphs, NULL, 10),
                 first = seed == NULL ? 600 : strtoull(seed, NULL, 10);
        uint64_t n_of[4] = { 0 };
        for (uint64_t i = 0; i < n; i++)
                n_of[try_graph((first + i) * 7919)]++;
        cr_assert_eq(n_of[BOTH_DIFFER], 0, "%lu of %lu graphs differ", (unsigned long)n_of[BOTH_DIFFER],
                     (unsigned long)n);
        cr_assert_geq(n_of[BOTH_EQUAL] * 10, n * 9, "%lu of %lu graphs ran", (unsigned long)n_of[BOTH_EQUAL],
                      (unsigned long)n);
}
