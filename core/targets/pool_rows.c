// SPDX-License-Identifier: Apache-2.0
// pool_rows.c: power-average and fractional pooling and unpooling, which torch.nn.functional
// writes in Python.
#include <math.h>
#include <stdio.h>
#include "core/ops/compose.h"
#include "core/targets/py.h"

// ---- power average ----
// Infinite norms: the largest (smallest) magnitude.
static Value extreme(Compose *c, const char *base, double norm)
{
        char op[32];
        snprintf(op, sizeof(op), "aten::max_pool%s", base);
        Value size = OP(c, "aten::abs", NAMED(c, "input"));
        if (norm < 0)
                size = OP(c, "aten::neg", size);
        Value stride = compose_has(c, "stride") ? NAMED(c, "stride") : NAMED(c, "kernel_size");
        Value largest = OP(c, op, size, NAMED(c, "kernel_size"), stride, value_int(0), value_int(1),
                           NAMED(c, "ceil_mode"));
        return norm < 0 ? OP(c, "aten::neg", largest) : largest;
}

static Value power_average(Compose *c, const char *base, int n_spatial)
{
        char op[32];
        int64_t kernel[MAX_RANK], n = 1;
        int given = compose_int_list(c, "kernel_size", kernel);
        for (int d = 0; d < n_spatial; d++)
                n *= given == 0 ? 1 : kernel[given == 1 ? 0 : MIN(d, given - 1)];
        Value norm = NAMED(c, "norm_type");
        snprintf(op, sizeof(op), "aten::avg_pool%s", base);
        Value stride = compose_has(c, "stride") ? NAMED(c, "stride") : compose_ints(c, NULL, 0);
        Value mean = OP(c, op, OP(c, "aten::pow.Tensor_Scalar", NAMED(c, "input"), norm),
                        NAMED(c, "kernel_size"), stride, value_int(0), NAMED(c, "ceil_mode"));
        Value positive = OP(c, "aten::mul.Tensor", OP(c, "aten::sign", mean),
                            OP(c, "aten::relu", OP(c, "aten::abs", mean)));
        return OP(c, "aten::pow.Tensor_Scalar", OP(c, "aten::mul.Scalar", positive, value_int(n)),
                  value_float(1 / python_float(norm)));
}

static Status lp_pool(Emitter *emitter, const OpCall *call, const char *base, int n_spatial, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const double norm = compose_double(&c, "norm_type");
        if (norm == 0)
                compose_check(&c, fail(STATUS_VALUE, "float division by zero"));
        return compose_end(&c, isinf(norm) ? extreme(&c, base, norm) : power_average(&c, base, n_spatial),
                           out);
}

static Status lp_pool1d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return lp_pool(emitter, call, "1d", 1, out);
}

static Status lp_pool2d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return lp_pool(emitter, call, "2d", 2, out);
}

static Status lp_pool3d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return lp_pool(emitter, call, "3d", 3, out);
}

// ---- unpooling ----
typedef struct Window {
        int n; // dimensions
        int64_t kernel[3], stride[3], padding[3];
} Window;

static void read_sizes(Compose *c, const char *name, int n, int64_t out[3])
{
        int64_t given[MAX_RANK];
        int count = compose_int_list(c, name, given);
        for (int d = 0; d < n; d++)
                out[d] = count == 0 ? 0 : given[MIN(d, count - 1)];
}

static int64_t least_size(const Window *window, const TensorMeta *input, int d)
{
        int64_t size = input->size[input->rank - window->n + d] - 1, wanted, both;
        bool fits = !__builtin_mul_overflow(size, window->stride[d], &wanted) &&
                    !__builtin_add_overflow(wanted, window->kernel[d], &wanted) &&
                    !__builtin_mul_overflow(window->padding[d], 2, &both) &&
                    !__builtin_sub_overflow(wanted, both, &wanted);
        return fits ? wanted : -1;
}

// The sizes that the pooling had, as `output_size` says or the window implies.
static Value unpooled_sizes(Compose *c, const Window *window, const TensorMeta *input)
{
        int64_t sizes[3], given[MAX_RANK];
        int n = compose_has(c, "output_size") ? compose_int_list(c, "output_size", given) : 0;
        const int skip = n == window->n + 2 ? 2 : 0;
        if (compose_has(c, "output_size") && n != window->n + skip)
                compose_check(
                        c, fail(STATUS_VALUE,
                                "output_size should be a sequence containing %d or %d elements, but it has a "
                                "length of '%d'",
                                window->n, window->n + 2, n));
        for (int d = 0; d < window->n && !compose_failed(c); d++) {
                const int64_t least = least_size(window, input, d);
                // as numbers of a size that adds without overflow
                const int64_t step = MAX(MIN(window->stride[d], INT32_MAX), -INT32_MAX),
                              middle = MAX(MIN(least, INT64_MAX / 2), -1);
                sizes[d] = n > 0 ? given[skip + d] : least;
                if (n > 0 && (sizes[d] <= middle - step || sizes[d] >= middle + step))
                        compose_check(c, fail(STATUS_VALUE,
                                              "invalid output_size (dim %d must be between %ld and %ld)", d,
                                              (long)(middle - step), (long)(middle + step)));
                else if (sizes[d] < 0)
                        compose_check(c, fail(STATUS_VALUE,
                                              "max_unpooling: output_size must contain non-negative spatial "
                                              "dimensions, but got output_size[%d]=%ld",
                                              d, (long)sizes[d]));
        }
        return compose_ints(c, sizes, window->n);
}

static Status max_unpool(Emitter *emitter, const OpCall *call, int n, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Window window = { .n = n };
        Value input = NAMED(&c, "input"), indices = NAMED(&c, "indices");
        const TensorMeta *meta = compose_meta(&c, input);
        if (!compose_failed(&c) && meta->rank <= n)
                compose_check(
                        &c, fail(STATUS_SHAPE, "max_unpool%dd: the input has %d dimensions", n, meta->rank));
        read_sizes(&c, "kernel_size", n, window.kernel);
        read_sizes(&c, compose_has(&c, "stride") ? "stride" : "kernel_size", n, window.stride);
        read_sizes(&c, "padding", n, window.padding);
        Value sizes = unpooled_sizes(&c, &window, meta);
        if (n == 3)
                return compose_end(&c,
                                   OP(&c, "aten::max_unpool3d", input, indices, sizes,
                                      compose_ints(&c, window.stride, 3),
                                      compose_ints(&c, window.padding, 3)),
                                   out);
        if (n == 2)
                return compose_end(&c, OP(&c, "aten::max_unpool2d", input, indices, sizes), out);
        Value line[] = { compose_item(&c, sizes, 0), value_int(1) };
        Value made = OP(&c, "aten::max_unpool2d", OP(&c, "aten::unsqueeze", input, value_int(-1)),
                        OP(&c, "aten::unsqueeze", indices, value_int(-1)), compose_list(&c, line, 2));
        return compose_end(&c, OP(&c, "aten::squeeze.dim", made, value_int(-1)), out);
}

static Status max_unpool1d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return max_unpool(emitter, call, 1, out);
}

static Status max_unpool2d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return max_unpool(emitter, call, 2, out);
}

static Status max_unpool3d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return max_unpool(emitter, call, 3, out);
}

// ---- fractional ----
// The sizes that are asked for: output_size, or the ratio's part of the input.
static Value fractional_sizes(Compose *c, int n)
{
        const TensorMeta *input = compose_meta(c, NAMED(c, "input"));
        int64_t sizes[3];
        Value ratio = NAMED(c, "output_ratio");
        if (compose_has(c, "output_size"))
                return NAMED(c, "output_size");
        if (ratio.kind == VALUE_NONE)
                compose_check(c,
                              fail(STATUS_VALUE,
                                   "fractional_max_pool%dd requires specifying either an output_size or an "
                                   "output_ratio",
                                   n));
        for (int d = 0; d < n && !compose_failed(c); d++) {
                const Value one =
                        value_is_sequence(ratio) && (int)ratio.seq->n == n ? ratio.seq->items[d] : ratio;
                if (!value_is_number(one) || one.kind == VALUE_COMPLEX || input->rank < n)
                        compose_check(c, fail(STATUS_VALUE, "output_ratio must be a number, or %d", n));
                else
                        sizes[d] = (int64_t)fmax(
                                fmin((double)input->size[input->rank - n + d] * python_float(one), 0x1p53),
                                -1);
        }
        return compose_failed(c) ? value_none() : compose_ints(c, sizes, n);
}

static Status fractional(Emitter *emitter, const OpCall *call, int n, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), samples = NAMED(&c, "_random_samples");
        const TensorMeta *meta = compose_meta(&c, input);
        Value sizes = fractional_sizes(&c, n);
        if (samples.kind == VALUE_NONE && meta->rank > n)
                samples = OP(
                        &c, "aten::rand",
                        INTS(&c, meta->rank == n + 1 ? 1 : meta->size[0], meta->size[meta->rank - n - 1], n),
                        value_dtype(meta->dtype));
        if (samples.kind == VALUE_NONE)
                compose_check(&c, fail(STATUS_SHAPE,
                                       "fractional_max_pool%dd(): Expected %dD or %dD tensor, but got %d "
                                       "dimensions",
                                       n, n + 1, n + 2, meta->rank));
        Value both = OP(&c, n == 2 ? "aten::fractional_max_pool2d" : "aten::fractional_max_pool3d", input,
                        NAMED(&c, "kernel_size"), sizes, samples);
        return compose_end(&c, compose_bool(&c, "return_indices") ? both : compose_item(&c, both, 0), out);
}

static Status fractional_2d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return fractional(emitter, call, 2, out);
}

static Status fractional_3d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return fractional(emitter, call, 3, out);
}

#define FRACTIONAL(n, indices)                                                                               \
        "(Tensor input, int[" n "] kernel_size, int[" n                                                      \
        "]? output_size=None, Any output_ratio=None, bool return_indices=" indices                           \
        ", Tensor? _random_samples=None) -> Any"
#define LP_POOL(n)                                                                                           \
        "(Tensor input, Scalar norm_type, int[" n "] kernel_size, int[" n                                    \
        "]? stride=None, bool ceil_mode=False) -> Tensor"
#define UNPOOL(n)                                                                                            \
        "(Tensor input, Tensor indices, int[" n "] kernel_size, int[" n "]? stride=None, int[" n             \
        "] padding=0, int[]? output_size=None) -> Tensor"
#define AVERAGES(n) "aten::avg_pool" n " aten::max_pool" n
static const PyRow rows[] = {
        { "F.lp_pool1d", "py::lp_pool1d" LP_POOL("1"), .expand = lp_pool1d_expand, .needs = AVERAGES("1d") },
        { "F.lp_pool2d", "py::lp_pool2d" LP_POOL("2"), .expand = lp_pool2d_expand, .needs = AVERAGES("2d") },
        { "F.lp_pool3d", "py::lp_pool3d" LP_POOL("3"), .expand = lp_pool3d_expand, .needs = AVERAGES("3d") },
        { "F.max_unpool1d", "py::max_unpool1d" UNPOOL("1"), .expand = max_unpool1d_expand,
          .needs = "aten::max_unpool2d" },
        { "F.max_unpool2d", "py::max_unpool2d" UNPOOL("2"), .expand = max_unpool2d_expand,
          .needs = "aten::max_unpool2d" },
        { "F.max_unpool3d", "py::max_unpool3d" UNPOOL("3"), .expand = max_unpool3d_expand,
          .needs = "aten::max_unpool3d" },
        { "F.fractional_max_pool2d", "py::fractional_max_pool2d" FRACTIONAL("2", "False"),
          .expand = fractional_2d_expand, .needs = "aten::fractional_max_pool2d aten::rand" },
        { "F.fractional_max_pool3d", "py::fractional_max_pool3d" FRACTIONAL("3", "False"),
          .expand = fractional_3d_expand, .needs = "aten::fractional_max_pool3d aten::rand" },
        { "F.fractional_max_pool2d_with_indices",
          "py::fractional_max_pool2d_with_indices" FRACTIONAL("2", "True"), .expand = fractional_2d_expand,
          .needs = "aten::fractional_max_pool2d aten::rand" },
        { "F.fractional_max_pool3d_with_indices",
          "py::fractional_max_pool3d_with_indices" FRACTIONAL("3", "True"), .expand = fractional_3d_expand,
          .needs = "aten::fractional_max_pool3d aten::rand" },
};
const PyTable py_pool_rows = PY_TABLE(rows);
