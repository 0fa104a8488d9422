// SPDX-License-Identifier: Apache-2.0
// pointwise.c: result dtypes and refusals of pointwise calls, against tables that PyTorch wrote,
// and what in-place twins leave behind. Values are the business of the golden cases, but for those
// of Bessel functions: PyTorch's are off by up to 8.1e-7 between 2.6 and 15.3.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/eval/eager.h"

enum { MAX_ITEMS = 8, N_REAL = 10 };

static Graph *graph;
static EagerEmitter *eager;
static RunContext ctx;

static void begin(void)
{
        run_context_init(&ctx);
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(eager_open(graph, &ctx, &eager), STATUS_OK);
}
static void end(void)
{
        eager = eager_close(eager);
        graph = graph_unref(graph);
}
TestSuite(pointwise, .init = begin, .fini = end);

// ---- calls as text ----
static const struct {
        const char *name;
        Dtype dtype;
} shorts[] = {
        { "b8", DTYPE_BOOL }, { "u8", DTYPE_U8 },   { "i8", DTYPE_I8 },   { "i16", DTYPE_I16 },
        { "i32", DTYPE_I32 }, { "i64", DTYPE_I64 }, { "f16", DTYPE_F16 }, { "bf16", DTYPE_BF16 },
        { "f32", DTYPE_F32 }, { "f64", DTYPE_F64 },
};

static Dtype find_dtype(const char *text, size_t n)
{
        for (size_t i = 0; i < ARRAY_LENGTH(shorts); i++) {
                if (strlen(shorts[i].name) == n && memcmp(shorts[i].name, text, n) == 0)
                        return shorts[i].dtype;
        }
        return DTYPE_NONE;
}

static Tensor *make_ones(Dtype dtype, int rank, const int64_t *size)
{
        TensorMeta meta;
        meta_init(&meta, dtype, rank, size);
        Tensor *tensor = NULL;
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&meta); i++)
                element_from_i64(dtype, (char *)tensor_data(tensor) + i * dtype_info[dtype].bytes, 1);
        return tensor;
}

// "f32[2,3]", "2", "2.5", "True", "None", "'floor'"
static Value parse_item(const char *text)
{
        const char *bracket = strchr(text, '[');
        if (bracket != NULL) {
                int64_t size[MAX_RANK];
                int rank = 0;
                for (const char *at = bracket + 1; *at != ']'; at += *at == ',')
                        size[rank++] = strtoll(at, (char **)&at, 10);
                return value_tensor_take(make_ones(find_dtype(text, (size_t)(bracket - text)), rank, size));
        }
        if (strcmp(text, "None") == 0)
                return value_none();
        if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
                return value_bool(text[0] == 'T');
        if (text[0] == '\'') {
                Value value;
                cr_assert_eq(value_str_new(text + 1, strlen(text) - 2, &value), STATUS_OK);
                return value;
        }
        return strpbrk(text, ".e") != NULL ? value_float(strtod(text, NULL))
                                           : value_int(strtoll(text, NULL, 10));
}

typedef struct Call {
        Value args[MAX_ITEMS];
        struct DictItem kwargs[MAX_ITEMS];
        uint32_t n_args, n_kwargs;
} Call;

static void parse_call(const char *text, Call *out)
{
        char copy[256];
        snprintf(copy, sizeof(copy), "%s", text);
        out->n_args = out->n_kwargs = 0;
        for (char *item = strtok(copy, " "); item != NULL; item = strtok(NULL, " ")) {
                char *equals = strchr(item, '=');
                if (equals == NULL) {
                        out->args[out->n_args++] = parse_item(item);
                        continue;
                }
                struct DictItem *kwarg = &out->kwargs[out->n_kwargs++];
                cr_assert_eq(str_new(item, (size_t)(equals - item), &kwarg->key), STATUS_OK);
                kwarg->value = parse_item(equals + 1);
        }
}

static void call_deinit(Call *call)
{
        for (uint32_t i = 0; i < call->n_args; i++)
                value_clear(&call->args[i]);
        for (uint32_t i = 0; i < call->n_kwargs; i++) {
                free(call->kwargs[i].key);
                value_clear(&call->kwargs[i].value);
        }
}

static Status run_call(const char *op, const Call *call, Value *out)
{
        const Overload *overload = op_find(op);
        cr_assert_not_null(overload, "%s", op);
        CallArgs args = {
                .args = call->args, .n_args = call->n_args, .kwargs = call->kwargs, .n_kwargs = call->n_kwargs
        };
        Value bound[SCHEMA_MAX_ARGS];
        uint64_t given;
        TRY(schema_bind(&overload->schema, &args, BIND_NUMBERS, bound, &given));
        return emit(eager_emitter(eager), overload, bound, given, out);
}

static Status run_text(const char *op, const char *text, Value *out)
{
        Call call;
        parse_call(text, &call);
        Status status = run_call(op, &call, out);
        call_deinit(&call);
        return status;
}

// ---- tables ----
typedef struct DtypesRow {
        const char *op, *call, *results;
} DtypesRow;
static const DtypesRow dtypes_rows[] = {
#define DTYPES(op, call, results) { op, call, results },
#include "pointwise_dtypes.def"
#undef DTYPES
};

static void put_dtype(const char *pattern, const char *name, char *out)
{
        while (*pattern != '\0') {
                if (pattern[0] == '%' && pattern[1] == 's') {
                        out = stpcpy(out, name);
                        pattern += 2;
                } else {
                        *out++ = *pattern++;
                }
        }
        *out = '\0';
}

Test(pointwise, results_have_pytorchs_dtype_or_are_refused_as_there)
{
        for (size_t i = 0; i < ARRAY_LENGTH(dtypes_rows); i++) {
                const DtypesRow *row = &dtypes_rows[i];
                const char *want = row->results;
                for (int d = 0; d < N_REAL; d++) {
                        size_t n = strcspn(want, " ");
                        char text[256];
                        put_dtype(row->call, shorts[d].name, text);
                        Value result = value_none();
                        Status status = run_text(row->op, text, &result);
                        Tensor *tensor =
                                result.kind == VALUE_TUPLE ? result.seq->items[0].tensor : result.tensor;
                        Dtype got = status == STATUS_OK ? tensor->meta.dtype : DTYPE_NONE;
                        cr_expect_eq(got, find_dtype(want, n), "%s %s: %s, expected %.*s", row->op, text,
                                     got == DTYPE_NONE ? failure_current()->message
                                                       : dtype_info[got].short_name,
                                     (int)n, want);
                        value_clear(&result);
                        want += n + (want[n] == ' ');
                }
        }
}

typedef struct ErrorRow {
        const char *op, *call, *words;
} ErrorRow;
static const ErrorRow error_rows[] = {
#define ERROR(op, call, words) { op, call, words },
#include "pointwise_errors.def"
#undef ERROR
};

Test(pointwise, refusals_use_pytorchs_words)
{
        for (size_t i = 0; i < ARRAY_LENGTH(error_rows); i++) {
                const ErrorRow *row = &error_rows[i];
                Value result = value_none();
                cr_expect_neq(run_text(row->op, row->call, &result), STATUS_OK, "%s %s is not refused",
                              row->op, row->call);
                cr_expect_str_eq(failure_current()->message, row->words, "%s %s: \"%s\", expected \"%s\"",
                                 row->op, row->call, failure_current()->message, row->words);
                value_clear(&result);
        }
}

// ---- in place ----
static float at_f32(const Tensor *tensor, int i)
{
        return ((const float *)tensor_data(tensor))[i];
}

Test(pointwise, a_twin_writes_through_views_and_returns_self)
{
        Call call;
        Value result = value_none();
        parse_call("f32[4] 2", &call);
        Tensor *whole = call.args[0].tensor, *part = NULL;
        TensorMeta meta = whole->meta;
        meta.size[0] = 2;
        cr_assert_eq(tensor_new_view(whole->storage, &meta, 1, &part), STATUS_OK);
        call.args[0] = value_tensor_take(part);
        cr_assert_eq(run_call("aten::add_.Scalar", &call, &result), STATUS_OK, "%s",
                     failure_current()->message);
        cr_expect_eq(result.tensor, part);
        cr_expect(at_f32(whole, 0) == 1 && at_f32(whole, 1) == 3 && at_f32(whole, 2) == 3 &&
                  at_f32(whole, 3) == 1);
        value_clear(&result);
        call_deinit(&call);
        tensor_unref(whole);
}

Test(pointwise, a_twin_that_reads_what_it_writes_sees_old_values)
{
        Call call;
        Value result = value_none();
        parse_call("f32[2,3]", &call);
        Tensor *self = call.args[0].tensor, *turned = NULL;
        for (int i = 0; i < 6; i++)
                ((float *)tensor_data(self))[i] = (float)i;
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 2, 2 });
        meta.stride[0] = 3;
        Tensor *square = NULL;
        cr_assert_eq(tensor_new_view(self->storage, &meta, 0, &square), STATUS_OK);
        meta.stride[0] = 1;
        meta.stride[1] = 3;
        cr_assert_eq(tensor_new_view(self->storage, &meta, 0, &turned), STATUS_OK);
        call.args[0] = value_tensor_take(square);
        call.args[call.n_args++] = value_tensor_take(turned);
        cr_assert_eq(run_call("aten::sub_.Tensor", &call, &result), STATUS_OK, "%s",
                     failure_current()->message);
        cr_expect(at_f32(self, 0) == 0 && at_f32(self, 1) == -2 && at_f32(self, 3) == 2 &&
                          at_f32(self, 4) == 0,
                  "%g %g %g %g", (double)at_f32(self, 0), (double)at_f32(self, 1), (double)at_f32(self, 3),
                  (double)at_f32(self, 4));
        cr_expect(at_f32(self, 2) == 2 && at_f32(self, 5) == 5, "outside of the view");
        value_clear(&result);
        call_deinit(&call);
        tensor_unref(self);
}

Test(pointwise, writing_to_an_expanded_tensor_is_refused)
{
        Call call;
        Value result = value_none();
        parse_call("f32[1] 2", &call);
        call.args[0].tensor->meta.size[0] = 3;
        call.args[0].tensor->meta.stride[0] = 0;
        cr_expect_neq(run_call("aten::mul_.Scalar", &call, &result), STATUS_OK);
        cr_expect_str_eq(failure_current()->message,
                         "unsupported operation: more than one element of the written-to tensor refers to a "
                         "single memory "
                         "location. Please clone() the tensor before performing the operation.");
        call_deinit(&call);
}

Test(pointwise, numbers_wrap_to_the_dtype_of_small_integers)
{
        Value result = value_none();
        cr_assert_eq(run_text("aten::add.Scalar", "i8[1] 300", &result), STATUS_OK);
        cr_expect_eq(element_as_i64(DTYPE_I8, tensor_data(result.tensor)), 45);
        value_clear(&result);
        cr_assert_eq(run_text("aten::add.Tensor", "u8[1] -2", &result), STATUS_OK);
        cr_expect_eq(element_as_i64(DTYPE_U8, tensor_data(result.tensor)), 255);
        value_clear(&result);
        cr_assert_eq(run_text("aten::clamp_min", "u8[1] -1", &result), STATUS_OK);
        cr_expect_eq(element_as_i64(DTYPE_U8, tensor_data(result.tensor)), 255);
        value_clear(&result);
}

// By mpmath with 40 digits.
static const struct {
        const char *name;
        double x, exact;
} bessel_values[] = {
        { "j0", 0.5, 0.9384698072408129 },      { "j0", 5.0625, -0.15691789894737627 },
        { "j0", 14.25, 0.13308004200167373 },   { "j0", 1e4, -7.0961603533888015e-3 },
        { "j0", 1e15, 6.1566386468850217e-9 },  { "j0", 1e30, -5.5890030166861464e-16 },
        { "j1", 0.5, 0.24226845767487389 },     { "j1", 5.0625, -0.33392472902494024 },
        { "j1", 14.25, 0.16889055348599345 },   { "j1", 1e4, 3.6474507555295803e-3 },
        { "j1", 1e15, 2.4468665123771326e-8 },  { "j1", 1e30, 5.6942973680895247e-16 },
        { "y0", 0.5, -0.44451873350670656 },    { "y0", 5.0625, -0.31709592049104042 },
        { "y0", 14.25, 0.164126464392533 },     { "y0", 1e4, 3.6478055589866059e-3 },
        { "y0", 1e15, 2.4468665123771323e-8 },  { "y0", 1e30, 5.6942973680895247e-16 },
        { "y1", 0.5, -1.4714723926702431 },     { "y1", 5.0625, 0.12660050006647899 },
        { "y1", 14.25, -0.12740950541574133 },  { "y1", 1e4, 7.0963427525364951e-3 },
        { "y1", 1e15, -6.1566386468850094e-9 }, { "y1", 1e30, 5.5890030166861464e-16 },
};

Test(pointwise, bessel_functions_have_the_digits_of_exact_arithmetic)
{
        for (size_t i = 0; i < ARRAY_LENGTH(bessel_values); i++) {
                char name[64];
                Call call;
                Value result = value_none();
                snprintf(name, sizeof(name), "aten::special_bessel_%s", bessel_values[i].name);
                parse_call("f64[1]", &call);
                *(double *)tensor_data(call.args[0].tensor) = bessel_values[i].x;
                cr_assert_eq(run_call(name, &call, &result), STATUS_OK, "%s", failure_current()->message);
                double got = *(const double *)tensor_data(result.tensor), exact = bessel_values[i].exact;
                cr_expect(fabs(got - exact) <= 4e-15 * fabs(exact), "%s(%g) is %.17g, %.17g exactly", name,
                          bessel_values[i].x, got, exact);
                value_clear(&result);
                call_deinit(&call);
        }
}
