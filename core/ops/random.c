// SPDX-License-Identifier: Apache-2.0
// random.c: tensors filled with random numbers, as results and in place. OP_RANDOM keeps the calls
// of a recording in authored order, none of them merged, folded or left out. Checks and their words
// are PyTorch's; those that it does not make for empty tensors are not made here.
#include "core/kernels/random/draw.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/factory.h"
#include "core/ops/view.h"

// The numbers of a row; those at an argument's position are read there.
typedef struct RandomRow {
        Draw draw;
        int8_t a_at, b_at; // of integers: the first one, and the one behind the last; -1: as in `draw`
} RandomRow;

static int position_of(const OpCall *call, ArgType type)
{
        int at = 0;
        while (call->schema->args[at].type != type)
                at++;
        return at;
}

static const TensorMeta *result_of(const OpCall *call)
{
        return call->outs[0].kind == OUT_SAME ? arg_meta(call, SELF) : &call->outs[0].meta;
}

// ---- checks ----
// Complex numbers are pairs of real ones.
static Dtype part_dtype(Dtype dtype)
{
        return dtype == DTYPE_C64 ? DTYPE_F32 : dtype == DTYPE_C128 ? DTYPE_F64 : dtype;
}

static bool is_complex(Dtype dtype)
{
        return dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
}

static Status fail_dtype(const char *kernel, Dtype dtype)
{
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", kernel, dtype_words(dtype));
}

// What C++ calls the type of an element.
static const char *c_name(Dtype dtype)
{
        static const char *const names[DTYPE_COUNT] = {
                [DTYPE_BOOL] = "bool",
                [DTYPE_U8] = "unsigned char",
                [DTYPE_I8] = "signed char",
                [DTYPE_I16] = "short",
                [DTYPE_I32] = "int",
                [DTYPE_I64] = "long",
                [DTYPE_F16] = "c10::Half",
                [DTYPE_BF16] = "c10::BFloat16",
                [DTYPE_F32] = "float",
                [DTYPE_F64] = "double",
                [DTYPE_U16] = "short unsigned int",
                [DTYPE_U32] = "unsigned int",
                [DTYPE_U64] = "long unsigned int",
        };
        return names[dtype] == NULL ? dtype_info[dtype].name : names[dtype];
}

static double largest_of(Dtype dtype)
{
        return dtype == DTYPE_F16    ? 65504
               : dtype == DTYPE_BF16 ? 0x1.fep127
               : dtype == DTYPE_F32  ? FLT_MAX
                                     : DBL_MAX;
}

static Status check_uniform(const Draw *draw, Dtype dtype)
{
        double most = largest_of(dtype);
        if (!dtype_is_float(dtype))
                return fail_dtype("check_uniform_bounds", dtype);
        if (!(draw->a >= -most && draw->a <= most))
                return fail(STATUS_VALUE, "from is out of bounds for %s", c_name(dtype));
        if (!(draw->b >= -most && draw->b <= most))
                return fail(STATUS_VALUE, "to is out of bounds for %s", c_name(dtype));
        if (!(draw->a <= draw->b))
                return fail(STATUS_VALUE,
                            "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                            draw->a, draw->b);
        if (!(draw->b - draw->a <= most))
                return fail(STATUS_VALUE,
                            "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and "
                            "from=%g which result in to-from to exceed the limit",
                            dtype_words(dtype), draw->b, draw->a);
        return STATUS_OK;
}

static Status check_parameters(const Draw *draw)
{
        double a = draw->a, b = draw->b;
        switch (draw->kind) {
        case DRAW_NORMAL:
                return b >= 0 ? STATUS_OK
                              : fail(STATUS_VALUE, "normal expects std >= 0.0, but found std %g", b);
        case DRAW_LOG_NORMAL:
                return b > 0 ? STATUS_OK
                             : fail(STATUS_VALUE, "log_normal_ expects std > 0.0, but found std=%g", b);
        case DRAW_EXPONENTIAL:
                return a > 0 ? STATUS_OK
                             : fail(STATUS_VALUE, "exponential_ expects lambda > 0.0, but found lambda=%g",
                                    a);
        case DRAW_CAUCHY:
                return b > 0 ? STATUS_OK
                             : fail(STATUS_VALUE, "cauchy_ expects sigma > 0.0, but found sigma=%g", b);
        case DRAW_GEOMETRIC:
                return a > 0 && a < 1
                               ? STATUS_OK
                               : fail(STATUS_VALUE, "geometric_ expects p to be in (0, 1), but got p=%g", a);
        case DRAW_BERNOULLI:
                return a >= 0 && a <= 1
                               ? STATUS_OK
                               : fail(STATUS_VALUE, "bernoulli_ expects p to be in [0, 1], but got p=%g", a);
        default:
                return STATUS_OK;
        }
}

static Status fail_continuous(const char *name, const char *dtype)
{
        return fail(STATUS_DTYPE,
                    "%s distribution is a continuous probability distribution. dtype must be a floating "
                    "point but you specified %s",
                    name, dtype);
}

static Status check_kernel_dtype(DrawKind kind, Dtype dtype)
{
        bool is_float = dtype_is_float(dtype), is_real = (DTYPES_REAL >> dtype & 1) != 0;
        switch (kind) {
        case DRAW_NORMAL:
                return is_float ? STATUS_OK : fail_dtype("normal_kernel_cpu", dtype);
        case DRAW_LOG_NORMAL:
                return is_float ? STATUS_OK : fail_dtype("log_normal_cpu", dtype);
        case DRAW_EXPONENTIAL:
                return is_float ? STATUS_OK : fail_continuous("Exponential", dtype_words(dtype));
        case DRAW_CAUCHY:
                return is_float ? STATUS_OK : fail_continuous("Cauchy", c_name(dtype));
        case DRAW_GEOMETRIC:
                return is_real && dtype != DTYPE_BOOL ? STATUS_OK : fail_dtype("geometric_cpu", dtype);
        case DRAW_BERNOULLI:
                return is_real ? STATUS_OK : fail_dtype("bernoulli_scalar_cpu_", dtype);
        case DRAW_INTEGER:
                return STATUS_OK; // check_integer_bounds looked
        default:
                return is_real ? STATUS_OK : fail_dtype("random_kernel_cpu", dtype);
        }
}

// ---- ranges of integers ----
static int digits_of(Dtype dtype)
{
        return dtype == DTYPE_F16    ? 11
               : dtype == DTYPE_BF16 ? 8
               : dtype == DTYPE_F32  ? FLT_MANT_DIG
                                     : DBL_MANT_DIG;
}

// The integer as the dtype rounds it.
static int64_t rounded(Dtype dtype, int64_t value)
{
        uint64_t element = 0;
        element_from_i64(dtype, &element, value);
        double number = element_as_f64(dtype, &element);
        return fabs(number) < 0x1p63 ? (int64_t)number : INT64_MIN;
}

// The distance of the floats around `value`.
static int64_t gap_at(Dtype dtype, int64_t value)
{
        uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
        int shift = (size == 0 ? 0 : 63 - __builtin_clzll(size)) - digits_of(dtype) + 1;
        return shift < 0 || shift > 62 ? 0 : (int64_t)1 << shift;
}

// A first number that the dtype rounds down moves up to the next float, and the end moves down.
static int64_t move_up(Dtype dtype, int64_t from)
{
        int64_t next = (int64_t)((uint64_t)from + 1), there = rounded(dtype, next);
        return there < from ? there + gap_at(dtype, next) : from;
}

static int64_t move_down(Dtype dtype, int64_t to)
{
        int64_t last = (int64_t)((uint64_t)to - 1), there = rounded(dtype, last);
        return there >= to ? there - gap_at(dtype, last) : to;
}

static bool is_unsigned(Dtype dtype)
{
        return ((DTYPES_UINTS | DTYPE_BIT(DTYPE_U8)) & DTYPE_BIT(dtype)) != 0;
}

// As PyTorch holds it in an int64: that of uint64 is -1.
static int64_t largest_whole(Dtype dtype)
{
        if (dtype == DTYPE_BOOL)
                return 1;
        return (int64_t)(UINT64_MAX >> (64 + !is_unsigned(dtype) - 8 * dtype_info[dtype].bytes));
}

static Status check_integer_bounds(Dtype dtype, int64_t from, int64_t last)
{
        int64_t low = INT64_MIN, high = INT64_MAX;
        if (((DTYPES_REAL | DTYPES_UINTS) >> dtype & 1) == 0)
                return fail(STATUS_DTYPE, "check_random_bounds handles only integral, floating-point and "
                                          "boolean types");
        if (dtype == DTYPE_F16) {
                low = -65504;
                high = 65504;
        } else if (!dtype_is_float(dtype)) {
                high = dtype == DTYPE_U64 ? INT64_MAX : largest_whole(dtype);
                low = dtype == DTYPE_BOOL || is_unsigned(dtype) ? 0 : -high - 1;
        }
        if (from < low || from > high)
                return fail(STATUS_VALUE, "from is out of bounds for %s", c_name(dtype));
        if (last < low || last > high)
                return fail(STATUS_VALUE, "to - 1 is out of bounds for %s", c_name(dtype));
        return STATUS_OK;
}

static Status set_range(Draw *draw, Dtype dtype, int64_t from, int64_t to)
{
        if (from >= to)
                return fail(STATUS_VALUE,
                            "random_ expects 'from' to be less than 'to', but got from=%" PRId64
                            " >= to=%" PRId64,
                            from, to);
        if (dtype_is_float(dtype)) {
                from = move_up(dtype, from);
                to = move_down(dtype, to);
                if (from >= to)
                        return fail(STATUS_VALUE,
                                    "random_ expects 'from' casted to dtype to be less than 'to' casted to "
                                    "dtype, but got from=%" PRId64 " >= to=%" PRId64,
                                    from, to);
        }
        draw->base = from;
        draw->range = (uint64_t)to - (uint64_t)from;
        return check_integer_bounds(dtype, from, to - 1);
}

// From `from` to the largest number of the dtype; of floats: to the end of those without a gap.
static Status set_open_range(Draw *draw, Dtype dtype, int64_t from)
{
        int64_t last = dtype_is_int(dtype) || dtype == DTYPE_BOOL ? largest_whole(dtype) : INT64_MAX;
        if (dtype_is_float(dtype)) {
                last = (int64_t)1 << digits_of(dtype);
                from = move_up(dtype, from);
                if (from >= last)
                        return fail(STATUS_VALUE,
                                    "random_ expects 'from' casted to dtype to be less than or equal to "
                                    "'to_inc' casted to dtype, but got from=%" PRId64 " > to_inc=%" PRId64,
                                    from, last);
        }
        draw->base = from;
        draw->range = (uint64_t)last - (uint64_t)from + 1;
        return check_integer_bounds(dtype, from, last);
}

static Status set_all_bits(Draw *draw, Dtype dtype)
{
        draw->kind = DRAW_ANY_INT64;
        if (dtype == DTYPE_I64 || (dtype_is_float(dtype) && dtype != DTYPE_F16))
                return STATUS_OK;
        if (((DTYPES_UINTS | DTYPES_BOOL) & DTYPE_BIT(dtype)) != 0 || dtype == DTYPE_F16)
                return fail_dtype("random_full_64_bits_range_kernel_cpu", dtype);
        return fail(STATUS_DTYPE,
                    "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
}

static Status integers_of(const OpCall *call, const RandomRow *row, Draw *out)
{
        Dtype dtype = result_of(call)->dtype;
        int64_t from = 0, to;
        if (row->a_at >= 0)
                TRY(arg_int(call, row->a_at, &from));
        if (!arg_is_none(call, row->b_at)) {
                TRY(arg_int(call, row->b_at, &to));
                return set_range(out, dtype, from, to);
        }
        return from == INT64_MIN ? set_all_bits(out, dtype) : set_open_range(out, dtype, from);
}

// ---- calls ----
static Status draw_of(const OpCall *call, Draw *out)
{
        const RandomRow *row = call->op->row;
        *out = row->draw;
        if (out->kind == DRAW_INTEGER)
                return integers_of(call, row, out);
        if (row->a_at >= 0)
                TRY(arg_double(call, row->a_at, &out->a));
        if (row->b_at >= 0)
                TRY(arg_double(call, row->b_at, &out->b));
        return STATUS_OK;
}

static Status check_call(const OpCall *call)
{
        Draw draw;
        const TensorMeta *meta = result_of(call);
        TRY(draw_of(call, &draw));
        if (draw.kind == DRAW_UNIFORM)
                TRY(check_uniform(&draw, part_dtype(meta->dtype)));
        TRY(check_parameters(&draw));
        bool paired = draw.kind == DRAW_UNIFORM || draw.kind == DRAW_NORMAL;
        if (paired && is_complex(meta->dtype) && meta->rank == MAX_RANK)
                return fail(STATUS_UNSUPPORTED, "%s: complex tensors of %d dimensions are not supported",
                            call->schema->name, MAX_RANK);
        return draw.kind == DRAW_UNIFORM || meta_numel(meta) == 0
                       ? STATUS_OK
                       : check_kernel_dtype(draw.kind, paired ? part_dtype(meta->dtype) : meta->dtype);
}

static Status draw_prepare(const OpCall *call, void *out_state)
{
        return draw_of(call, out_state);
}

// Complex tensors as real ones of one more dimension.
static TensorMeta parts_of(const TensorMeta *meta)
{
        TensorMeta parts = *meta;
        if (!is_complex(meta->dtype))
                return parts;
        parts.dtype = part_dtype(meta->dtype);
        for (int d = 0; d < meta->rank; d++)
                parts.stride[d] = 2 * meta->stride[d];
        parts.size[parts.rank] = 2;
        parts.stride[parts.rank++] = 1;
        return parts;
}

static Status draw_run(const OpRun *run)
{
        TensorMeta parts = parts_of(run->out_meta[0]);
        Draw draw = *(const Draw *)run->state;
        // Both parts of a normal number are normal, each with half the variance.
        if (parts.dtype != run->out_meta[0]->dtype && draw.kind == DRAW_NORMAL)
                draw.b /= sqrt(2);
        return draw_fill(run->ctx, &draw, &parts, run->out[0]);
}

static Cost draw_cost(const OpCall *call)
{
        const RandomRow *row = call->op->row;
        const TensorMeta *meta = result_of(call);
        const int64_t numel = meta_numel(meta);
        return (Cost){ .flops = numel * draw_steps(row->draw.kind),
                       .bytes = numel * dtype_info[meta->dtype].bytes };
}

// ---- shapes ----
static Status sized_infer(OpCall *call)
{
        DrawKind kind = ((const RandomRow *)call->op->row)->draw.kind;
        int size_at = 0;
        while (!call->schema->args[size_at].is_list)
                size_at++;
        TRY(factory_sized(
                call, size_at,
                arg_dtype(call, position_of(call, ARG_DTYPE), kind == DRAW_INTEGER ? DTYPE_I64 : DTYPE_F32)));
        return check_call(call);
}

static Status like_infer(OpCall *call)
{
        TRY(factory_like(
                call, arg_dtype(call, position_of(call, ARG_DTYPE), arg_meta(call, SELF)->dtype),
                arg_memory_format(call, position_of(call, ARG_MEMORY_FORMAT), MEMORY_FORMAT_PRESERVE)));
        return check_call(call);
}

static Status inplace_infer(OpCall *call)
{
        TRY(out_same(call, 0, SELF));
        return check_call(call);
}

// The functional forms: a copy of self that is then filled.
static Status copy_infer(OpCall *call)
{
        TRY(factory_like(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_PRESERVE));
        return check_call(call);
}

static Status contiguous_infer(OpCall *call)
{
        TRY(factory_like(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_CONTIGUOUS));
        return check_call(call);
}

// ---- a probability for each element ----
static Status spread_p(const TensorMeta *p, const TensorMeta *to, TensorMeta *out)
{
        if (p->rank > to->rank)
                return fail(
                        STATUS_SHAPE,
                        "expand: the number of sizes provided (%d) must be greater or equal to the number "
                        "of dimensions in the tensor (%d)",
                        to->rank, p->rank);
        *out = *to;
        out->dtype = p->dtype;
        for (int d = 0, shift = to->rank - p->rank; d < to->rank; d++) {
                bool repeats = d < shift || (p->size[d - shift] == 1 && to->size[d] != 1);
                if (!repeats && p->size[d - shift] != to->size[d])
                        return fail(STATUS_SHAPE,
                                    "The expanded size of the tensor (%" PRId64
                                    ") must match the existing size (%" PRId64
                                    ") at non-singleton dimension %d",
                                    to->size[d], p->size[d - shift], d);
                out->stride[d] = repeats ? 0 : p->stride[d - shift];
        }
        return STATUS_OK;
}

static Status check_each(OpCall *call, const TensorMeta *p)
{
        TensorMeta spread;
        const TensorMeta *meta = result_of(call);
        if (meta_numel(meta) == 0)
                return STATUS_OK;
        if ((DTYPES_REAL >> meta->dtype & 1) == 0)
                return fail_dtype("bernoulli_tensor_cpu_self_", meta->dtype);
        TRY(spread_p(p, meta, &spread));
        return dtype_is_float(p->dtype) ? STATUS_OK : fail_dtype("bernoulli_tensor_cpu_p_", p->dtype);
}

static Status bernoulli_infer(OpCall *call)
{
        TRY(factory_like(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_CONTIGUOUS));
        return check_each(call, arg_meta(call, SELF));
}

static Status bernoulli_each_infer(OpCall *call)
{
        TRY(factory_like(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_PRESERVE));
        return check_each(call, arg_meta(call, BERNOULLI_P));
}

static Status bernoulli_inplace_infer(OpCall *call)
{
        TRY(out_same(call, 0, SELF));
        return check_each(call, arg_meta(call, BERNOULLI_P));
}

// The probabilities are the last tensor: argument 0, or 1 if there is one.
static Status bernoulli_run(const OpRun *run)
{
        TensorMeta spread;
        uint32_t last = run->n_in - 1;
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        TRY(spread_p(run->in_meta[last], run->out_meta[0], &spread));
        return draw_bernoulli(run->ctx, &spread, run->in[last], run->out_meta[0], run->out[0]);
}

static Cost bernoulli_cost(const OpCall *call)
{
        const TensorMeta *meta = result_of(call);
        const int64_t numel = meta_numel(meta);
        return (Cost){ .flops = numel * draw_steps(DRAW_BERNOULLI),
                       .bytes = 2 * numel * dtype_info[meta->dtype].bytes };
}

#define GENERATOR "*, Generator? generator=None) -> Tensor"
#define GIVEN     "Generator? generator, "
#define OPTIONS   "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define WHOLE     "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define FORMAT    ", MemoryFormat? memory_format=None) -> Tensor"
// `a_at_` and `b_at_`: positions of the two numbers, -1: as given
#define RANDOM(schema_, infer_, kind_, a_, a_at_, b_, b_at_)                                                 \
        {                                                                                                    \
                .schema = "aten::" schema_, .flags = OP_RANDOM, .infer = infer_, .prepare = draw_prepare,    \
                .run = draw_run, .cost = draw_cost, .traits = infer_ == inplace_infer ? 0 : TRAIT_FRESH,     \
                .row = &(const RandomRow)                                                                    \
                {                                                                                            \
                        .draw = { .kind = kind_, .a = a_, .b = b_ }, .a_at = a_at_, .b_at = b_at_            \
                }                                                                                            \
        }
// name_(self, numbers ...) and its functional form.
#define BOTH(name, functional, numbers, kind, a_at, b_at)                                                    \
        RANDOM(name "(Tensor(a!) self, " numbers GENERATOR "(a!)", inplace_infer, kind, 0, a_at, 0, b_at),   \
                RANDOM(functional "(Tensor self, " numbers GENERATOR, copy_infer, kind, 0, a_at, 0, b_at)
#define EACH(schema_, infer_, traits_)                                                                       \
        {                                                                                                    \
                .schema = "aten::" schema_, .flags = OP_RANDOM | OP_CHECKS, .infer = infer_,                 \
                .run = bernoulli_run, .cost = bernoulli_cost, .traits = traits_                              \
        }

const OpDef random_ops[] = {
        RANDOM("rand(SymInt[] size, *, " OPTIONS ") -> Tensor", sized_infer, DRAW_UNIFORM, 0, -1, 1, -1),
        RANDOM("rand.generator(SymInt[] size, *, " GIVEN OPTIONS ") -> Tensor", sized_infer, DRAW_UNIFORM, 0,
               -1, 1, -1),
        RANDOM("randn(SymInt[] size, *, " OPTIONS ") -> Tensor", sized_infer, DRAW_NORMAL, 0, -1, 1, -1),
        RANDOM("randn.generator(SymInt[] size, *, " GIVEN OPTIONS ") -> Tensor", sized_infer, DRAW_NORMAL, 0,
               -1, 1, -1),
        RANDOM("rand_like(Tensor self, *, " OPTIONS FORMAT, like_infer, DRAW_UNIFORM, 0, -1, 1, -1),
        RANDOM("rand_like.generator(Tensor self, *, " GIVEN OPTIONS FORMAT, like_infer, DRAW_UNIFORM, 0, -1,
               1, -1),
        RANDOM("randn_like(Tensor self, *, " OPTIONS FORMAT, like_infer, DRAW_NORMAL, 0, -1, 1, -1),
        RANDOM("randn_like.generator(Tensor self, *, " GIVEN OPTIONS FORMAT, like_infer, DRAW_NORMAL, 0, -1,
               1, -1),
        RANDOM("randint(SymInt high, SymInt[] size, *, " WHOLE ") -> Tensor", sized_infer, DRAW_INTEGER, 0,
               -1, 0, 0),
        RANDOM("randint.generator(SymInt high, SymInt[] size, *, " GIVEN WHOLE ") -> Tensor", sized_infer,
               DRAW_INTEGER, 0, -1, 0, 0),
        RANDOM("randint.low(SymInt low, SymInt high, SymInt[] size, *, " WHOLE ") -> Tensor", sized_infer,
               DRAW_INTEGER, 0, 0, 0, 1),
        RANDOM("randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, " GIVEN WHOLE ") -> Tensor",
               sized_infer, DRAW_INTEGER, 0, 0, 0, 1),
        RANDOM("randint_like(Tensor self, SymInt high, *, " OPTIONS FORMAT, like_infer, DRAW_INTEGER, 0, -1,
               0, 1),
        RANDOM("randint_like.generator(Tensor self, SymInt high, *, " GIVEN OPTIONS FORMAT, like_infer,
               DRAW_INTEGER, 0, -1, 0, 1),
        RANDOM("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " OPTIONS FORMAT, like_infer,
               DRAW_INTEGER, 0, 1, 0, 2),
        RANDOM("randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, " GIVEN OPTIONS
                       FORMAT,
               like_infer, DRAW_INTEGER, 0, 1, 0, 2),
        RANDOM("normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
               "generator=None, " OPTIONS ") -> Tensor",
               sized_infer, DRAW_NORMAL, 0, 0, 0, 1),
        BOTH("uniform_", "uniform", "float from=0., float to=1., ", DRAW_UNIFORM, 1, 2),
        BOTH("normal_", "normal_functional", "float mean=0., float std=1., ", DRAW_NORMAL, 1, 2),
        BOTH("log_normal_", "log_normal", "float mean=1., float std=2., ", DRAW_LOG_NORMAL, 1, 2),
        BOTH("exponential_", "exponential", "float lambd=1., ", DRAW_EXPONENTIAL, 1, -1),
        BOTH("cauchy_", "cauchy", "float median=0., float sigma=1., ", DRAW_CAUCHY, 1, 2),
        BOTH("geometric_", "geometric", "float p, ", DRAW_GEOMETRIC, 1, -1),
        BOTH("random_", "random", "", DRAW_ANY, -1, -1),
        BOTH("random_.from", "random.from", "int from, int? to, ", DRAW_INTEGER, 1, 2),
        BOTH("random_.to", "random.to", "int to, ", DRAW_INTEGER, -1, 1),
        RANDOM("bernoulli_.float(Tensor(a!) self, float p=0.5, " GENERATOR "(a!)", inplace_infer,
               DRAW_BERNOULLI, 0, 1, 0, -1),
        RANDOM("bernoulli.p(Tensor self, float p, " GENERATOR, contiguous_infer, DRAW_BERNOULLI, 0, 1, 0, -1),
        EACH("bernoulli(Tensor self, " GENERATOR, bernoulli_infer, TRAIT_FRESH),
        EACH("bernoulli.Tensor(Tensor self, Tensor p, " GENERATOR, bernoulli_each_infer, TRAIT_FRESH),
        EACH("bernoulli_.Tensor(Tensor(a!) self, Tensor p, " GENERATOR "(a!)", bernoulli_inplace_infer, 0),
};
OP_FILE(random_ops);
