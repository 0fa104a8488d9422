// SPDX-License-Identifier: Apache-2.0
// compare_value.c: values of any kind, as torch.testing.assert_close pairs them. Nesting is capped
// by whoever builds values, so recursion over containers is bounded.
#include <math.h>
#include <string.h>
#include "core/engine/compare.h"

typedef struct Comparing {
        const CloseRule *rule;
        const RunContext *ctx;
        Closeness *close;
        Text *message; // of the first difference; later ones are only counted
        Text *where;   // "[0]['k']" of the item
} Comparing;

static Status compare_items(Comparing *it, Value a, Value b);

// ---- numbers ----
static void add_class(Text *text, Value value)
{
        const char *name = value.kind == VALUE_TENSOR ? "torch.Tensor" : value_kind_name(value.kind);
        text_addf(text, "<class '%s'>", name);
}

static Scalar scalar_of(Value value)
{
        switch (value.kind) {
        case VALUE_COMPLEX:
                return (Scalar){ SCALAR_COMPLEX, 0, value.c.re, value.c.im };
        case VALUE_FLOAT:
                return (Scalar){ SCALAR_FLOAT, 0, value.f, 0 };
        default:
                return (Scalar){ value.kind == VALUE_BOOL ? SCALAR_BOOL : SCALAR_INT,
                                 value.kind == VALUE_BOOL ? value.b : value.i,
                                 value.kind == VALUE_BOOL ? (double)value.b : (double)value.i, 0 };
        }
}

static void tolerances_of(Value a, Value b, const CloseRule *rule, double *out_rtol, double *out_atol)
{
        static const Dtype dtypes[] = { [VALUE_BOOL] = DTYPE_BOOL,
                                        [VALUE_INT] = DTYPE_I64,
                                        [VALUE_FLOAT] = DTYPE_F64,
                                        [VALUE_COMPLEX] = DTYPE_C128 };
        close_tolerances(dtypes[a.kind], dtypes[b.kind], rule, out_rtol, out_atol);
}

static Closeness number_close(Value a, Value b, const CloseRule *rule, Text *message)
{
        double rtol, atol;
        Scalar actual = scalar_of(a), expected = scalar_of(b);
        tolerances_of(a, b, rule, &rtol, &atol);
        bool equal = a.kind <= VALUE_INT ? actual.i == expected.i
                                         : actual.re == expected.re && actual.im == expected.im;
        bool nans = rule->equal_nan && isnan(actual.re + actual.im) && isnan(expected.re + expected.im);
        double error = equal || nans ? 0 : hypot(actual.re - expected.re, actual.im - expected.im);
        double size = hypot(expected.re, expected.im);
        Closeness close = { .close = equal || nans || (isfinite(error) && error <= atol + rtol * size),
                            .max_abs = error,
                            .max_rel = equal || nans ? 0 : error / size,
                            .n = 1,
                            .scale = isfinite(size) ? size : 0 };
        close.n_mismatched = !close.close;
        if (!close.close)
                scalar_mismatch(&actual, &expected, rtol, atol, message);
        return close;
}

// ---- leaves ----
static void add_plain(Text *text, Value value)
{
        if (value.kind == VALUE_NONE)
                text_add(text, "None");
        else if (value.kind == VALUE_STR || value.kind == VALUE_DEVICE || value.kind == VALUE_LAYOUT)
                text_add_n(text, value.str->text, value.str->n);
        else if (value.kind == VALUE_DTYPE)
                text_add(text, dtype_info[value.dtype].torch_name);
        else
                add_class(text, value);
}

static bool same_plain(Value a, Value b)
{
        if (a.kind != b.kind)
                return false;
        if (a.kind == VALUE_STR || a.kind == VALUE_DEVICE || a.kind == VALUE_LAYOUT)
                return a.str->n == b.str->n && memcmp(a.str->text, b.str->text, a.str->n) == 0;
        if (a.kind == VALUE_DTYPE)
                return a.dtype == b.dtype;
        return a.kind != VALUE_MEMORY_FORMAT || a.memory_format == b.memory_format;
}

static Closeness plain_close(Value a, Value b, Text *message)
{
        Closeness close = { .close = same_plain(a, b), .n = 1 };
        close.n_mismatched = !close.close;
        if (close.close)
                return close;
        close.max_abs = close.max_rel = NAN;
        if (a.kind == VALUE_NONE || b.kind == VALUE_NONE) {
                text_add(message, "None mismatch: ");
                add_plain(message, a);
                text_add(message, " is not ");
                add_plain(message, b);
        } else if (a.kind == b.kind) {
                add_plain(message, a);
                text_add(message, " != ");
                add_plain(message, b);
        } else {
                text_add(message, "No comparison pair was able to handle inputs of type ");
                add_class(message, a);
                text_add(message, " and ");
                add_class(message, b);
                text_add_char(message, '.');
        }
        return close;
}

static Status leaf_close(const Comparing *it, Value a, Value b, Closeness *out_close, Text *message)
{
        if (a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR)
                return tensor_close(a.tensor, b.tensor, it->rule, it->ctx, out_close, message);
        if (a.kind == VALUE_BOOL && b.kind == VALUE_BOOL && a.b != b.b) {
                text_addf(message, "Booleans mismatch: %s is not %s", a.b ? "True" : "False",
                          b.b ? "True" : "False");
                *out_close = (Closeness){ .max_abs = 1, .max_rel = NAN, .n_mismatched = 1, .n = 1 };
        } else if (value_is_number(a) && value_is_number(b) && a.kind != b.kind) {
                text_add(message, "The (d)types do not match: ");
                add_class(message, a);
                text_add(message, " != ");
                add_class(message, b);
                text_add_char(message, '.');
                *out_close = (Closeness){ .max_abs = NAN, .max_rel = NAN, .n_mismatched = 1, .n = 1 };
        } else if (value_is_number(a) && value_is_number(b)) {
                *out_close = number_close(a, b, it->rule, message);
        } else {
                *out_close = plain_close(a, b, message);
        }
        return STATUS_OK;
}

// ---- containers ----
static double worse(double so_far, double value)
{
        return value <= so_far ? so_far : isnan(so_far) ? so_far : value;
}

static void join(Comparing *it, const Closeness *part, const Text *message)
{
        Closeness *all = it->close;
        all->max_abs = worse(all->max_abs, part->max_abs);
        all->max_rel = worse(all->max_rel, part->max_rel);
        all->n_mismatched += part->n_mismatched;
        all->n += part->n;
        all->scale = MAX(all->scale, part->scale);
        if (part->close)
                return;
        if (all->close) {
                text_add_n(it->message, message->data == NULL ? "" : message->data, message->n);
                if (it->where->n > 0)
                        text_addf(it->message, "\n\nThe failure occurred for item %.*s", (int)it->where->n,
                                  it->where->data);
        }
        all->close = false;
}

static void differ(Comparing *it, const Text *message)
{
        Closeness part = { .max_abs = NAN, .max_rel = NAN };
        join(it, &part, message);
}

static Status compare_sequences(Comparing *it, const Seq *a, const Seq *b)
{
        _cleanup_(text_deinit) Text message = { 0 };
        if (a->n != b->n) {
                text_addf(&message, "The length of the sequences mismatch: %u != %u", a->n, b->n);
                differ(it, &message);
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < a->n; i++) {
                size_t before = it->where->n;
                text_addf(it->where, "[%u]", i);
                TRY(compare_items(it, a->items[i], b->items[i]));
                it->where->n = before;
        }
        return STATUS_OK;
}

static void add_missing(Text *message, const Dict *of, const Dict *in)
{
        bool first = true;
        text_add_char(message, '[');
        for (uint32_t i = 0; i < of->n; i++) {
                if (dict_get(in, of->items[i].key->text) != NULL)
                        continue;
                text_addf(message, "%s'%s'", first ? "" : ", ", of->items[i].key->text);
                first = false;
        }
        text_add_char(message, ']');
}

static Status compare_dicts(Comparing *it, const Dict *a, const Dict *b)
{
        _cleanup_(text_deinit) Text message = { 0 };
        uint32_t n_shared = 0;
        for (uint32_t i = 0; i < a->n; i++)
                n_shared += dict_get(b, a->items[i].key->text) != NULL;
        if (n_shared < a->n || n_shared < b->n) {
                text_add(&message, "The keys of the mappings do not match:\n"
                                   "Missing keys in the actual mapping: ");
                add_missing(&message, b, a);
                text_add(&message, "\nAdditional keys in the actual mapping: ");
                add_missing(&message, a, b);
                differ(it, &message);
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < a->n; i++) {
                size_t before = it->where->n;
                text_addf(it->where, "['%s']", a->items[i].key->text);
                TRY(compare_items(it, a->items[i].value, *dict_get(b, a->items[i].key->text)));
                it->where->n = before;
        }
        return STATUS_OK;
}

static Status compare_items(Comparing *it, Value a, Value b)
{
        _cleanup_(text_deinit) Text message = { 0 };
        Closeness part;
        if (value_is_sequence(a) && value_is_sequence(b))
                return compare_sequences(it, a.seq, b.seq);
        if (a.kind == VALUE_DICT && b.kind == VALUE_DICT)
                return compare_dicts(it, a.dict, b.dict);
        TRY(leaf_close(it, a, b, &part, &message));
        TRY(text_status(&message));
        join(it, &part, &message);
        return STATUS_OK;
}

Status value_close(Value a, Value b, const CloseRule *rule, const RunContext *ctx, Closeness *out_close,
                   Text *message)
{
        _cleanup_(text_deinit) Text where = { 0 };
        Comparing it = { rule, ctx, out_close, message, &where };
        *out_close = (Closeness){ .close = true };
        TRY(compare_items(&it, a, b));
        TRY(text_status(&where));
        return text_status(message);
}
