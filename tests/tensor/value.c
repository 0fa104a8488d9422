// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/tensor/value.h"

static Value make_text(const char *text)
{
        Value value;
        cr_assert_eq(value_str_new(text, strlen(text), &value), STATUS_OK);
        return value;
}

// (1, [2.5, "a"], {"k": slice(None, 3, None)})
static Value make_nested(void)
{
        Seq *outer = NULL, *list = NULL, *slice = NULL;
        Dict *dict = NULL;
        cr_assert_eq(seq_new(3, &outer), STATUS_OK);
        cr_assert_eq(seq_new(2, &list), STATUS_OK);
        cr_assert_eq(seq_new(3, &slice), STATUS_OK);
        cr_assert_eq(dict_new(1, &dict), STATUS_OK);
        list->items[0] = value_float(2.5);
        list->items[1] = make_text("a");
        slice->items[1] = value_int(3);
        cr_assert_eq(str_new("k", 1, &dict->items[0].key), STATUS_OK);
        dict->items[0].value = value_seq_take(VALUE_SLICE, slice);
        outer->items[0] = value_int(1);
        outer->items[1] = value_seq_take(VALUE_LIST, list);
        outer->items[2] = (Value){ .kind = VALUE_DICT, .dict = dict };
        return value_seq_take(VALUE_TUPLE, outer);
}

typedef struct Seen {
        ValueKind kinds[16];
        int n;
} Seen;

static Status note(void *context, const Value *leaf)
{
        Seen *seen = context;
        seen->kinds[seen->n++] = leaf->kind;
        return leaf->kind == VALUE_ELLIPSIS ? fail(STATUS_VALUE, "ellipsis") : STATUS_OK;
}

static Status keep(void *context, const Value *leaf, Value *out)
{
        (void)context;
        *out = value_ref(*leaf);
        return STATUS_OK;
}

static Status add_one(void *context, const Value *leaf, Value *out)
{
        int *left = context;
        if ((*left)-- == 0)
                return fail(STATUS_VALUE, "enough");
        *out = leaf->kind == VALUE_INT ? value_int(leaf->i + 1) : value_ref(*leaf);
        return STATUS_OK;
}

Test(value, walking_visits_leaves_in_order)
{
        _cleanup_(value_clear) Value value = make_nested();
        Seen seen = { .n = 0 };
        cr_assert_eq(value_walk(value, note, &seen), STATUS_OK);
        const ValueKind want[] = { VALUE_INT, VALUE_FLOAT, VALUE_STR, VALUE_NONE, VALUE_INT, VALUE_NONE };
        cr_assert_eq(seen.n, 6);
        cr_expect_arr_eq(seen.kinds, want, sizeof(want));
}

Test(value, walking_stops_at_the_first_failure)
{
        Seq *seq = NULL;
        cr_assert_eq(seq_new(3, &seq), STATUS_OK);
        seq->items[1] = (Value){ .kind = VALUE_ELLIPSIS };
        Seen seen = { .n = 0 };
        cr_expect_eq(value_walk(value_seq_take(VALUE_LIST, seq), note, &seen), STATUS_VALUE);
        cr_expect_eq(seen.n, 2);
        seq_unref(seq);
}

Test(value, mapping_nothing_gives_the_same_containers)
{
        Value value = make_nested(), same = value_none();
        cr_assert_eq(value_map(value, keep, NULL, &same), STATUS_OK);
        cr_expect_eq(same.seq, value.seq);
        value_clear(&same);
        cr_expect_eq(value.seq->items[1].seq->n, 2, "still alive");
        value_clear(&value);
}

Test(value, mapping_rebuilds_what_holds_a_changed_leaf_and_shares_the_rest)
{
        Value value = make_nested(), mapped = value_none();
        int left = 100;
        cr_assert_eq(value_map(value, add_one, &left, &mapped), STATUS_OK);
        cr_expect_neq(mapped.seq, value.seq);
        cr_expect_eq(mapped.kind, VALUE_TUPLE);
        cr_expect_eq(mapped.seq->items[0].i, 2);
        cr_expect_eq(mapped.seq->items[1].seq, value.seq->items[1].seq);
        const Value *slice = dict_get(mapped.seq->items[2].dict, "k");
        cr_assert_not_null(slice);
        cr_expect_eq(slice->kind, VALUE_SLICE);
        cr_expect_eq(slice->seq->items[1].i, 4);
        cr_expect_eq(dict_get(value.seq->items[2].dict, "k")->seq->items[1].i, 3,
                     "the old value is as it was");
        value_clear(&mapped);
        value_clear(&value);
}

Test(value, a_failing_map_leaks_nothing_and_writes_nothing)
{
        Value value = make_nested();
        for (int stop = 0; stop < 6; stop++) {
                Value mapped = value_none();
                int left = stop;
                cr_expect_eq(value_map(value, add_one, &left, &mapped), STATUS_VALUE);
                cr_expect_eq(mapped.kind, VALUE_NONE);
        }
        value_clear(&value);
        cr_expect_eq(value.kind, VALUE_NONE);
}

Test(value, deep_nesting_to_the_cap_is_freed)
{
        Value value = make_text("core");
        for (int depth = 0; depth < 32; depth++) {
                Seq *seq = NULL;
                cr_assert_eq(seq_new(1, &seq), STATUS_OK);
                seq->items[0] = value;
                value = value_seq_take(VALUE_LIST, seq);
        }
        Seen seen = { .n = 0 };
        cr_expect_eq(value_walk(value, note, &seen), STATUS_OK);
        cr_expect_eq(seen.n, 1);
        value_clear(&value);
}

Test(value, text_with_embedded_zero_bytes_is_a_key_of_its_own)
{
        Dict *dict = NULL;
        cr_assert_eq(dict_new(2, &dict), STATUS_OK);
        cr_assert_eq(str_new("a\0b", 3, &dict->items[0].key), STATUS_OK);
        cr_assert_eq(str_new("a", 1, &dict->items[1].key), STATUS_OK);
        dict->items[0].value = value_int(1);
        dict->items[1].value = value_int(2);
        cr_expect_eq(dict_get(dict, "a")->i, 2);
        cr_expect_null(dict_get(dict, "b"));
        dict_unref(dict);
}

Test(value, numbers_are_wrapped_as_zero_dimensional_tensors)
{
        static const struct {
                Value number;
                Dtype dtype;
        } cases[] = {
                { { .kind = VALUE_BOOL, .b = true }, DTYPE_BOOL },
                { { .kind = VALUE_INT, .i = 1 }, DTYPE_I64 },
                { { .kind = VALUE_FLOAT, .f = 1 }, DTYPE_F64 },
                { { .kind = VALUE_COMPLEX, .c = { 1, 2 } }, DTYPE_C128 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Tensor *tensor = NULL;
                cr_assert_eq(value_wrap_number(cases[i].number, NULL, &tensor), STATUS_OK);
                cr_expect(tensor->meta.wrapped && tensor->meta.rank == 0);
                cr_expect_eq(tensor->meta.dtype, cases[i].dtype);
                double real;
                cr_expect(tensor_item_f64(tensor, &real) == STATUS_OK && real == 1.0);
                tensor_unref(tensor);
        }
        Tensor *tensor = NULL;
        cr_expect_neq(value_wrap_number(value_none(), NULL, &tensor), STATUS_OK);
}

Test(value, lists_of_ints_and_kind_names_are_pythons)
{
        Value sizes = value_none();
        cr_assert_eq(value_ints_new(VALUE_SIZE, (int64_t[]){ 2, 3 }, 2, &sizes), STATUS_OK);
        cr_expect(sizes.kind == VALUE_SIZE && sizes.seq->n == 2 && sizes.seq->items[1].i == 3);
        value_clear(&sizes);
        cr_expect_str_eq(value_kind_name(VALUE_NONE), "NoneType");
        cr_expect_str_eq(value_kind_name(VALUE_TENSOR), "Tensor");
}

Test(value, literals_are_json)
{
        _cleanup_(text_deinit) Text text = { 0 };
        const Value literals[] = { value_none(), value_bool(true), value_int(-3), value_float(INFINITY),
                                   value_float(0.5) };
        for (size_t i = 0; i < ARRAY_LENGTH(literals); i++) {
                value_add_literal(literals[i], 80, &text);
                text_add_char(&text, ' ');
        }
        cr_assert_str_eq(text.data, "null true -3 \"Infinity\" 0.5 ");
}
