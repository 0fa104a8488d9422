// SPDX-License-Identifier: Apache-2.0
// Calls through emit and the eager emitter: in-place twins, aliasing, dtype checks, wrapped
// numbers, sharing of state.
#include "tests/eval/sample.h"

static Sample sample;

static void open_sample(void)
{
        sample_open(&sample);
}

static void close_sample(void)
{
        sample_close(&sample);
}

TestSuite(emit, .init = open_sample, .fini = close_sample);

static Value call2(const char *name, Value a, Value b)
{
        return sample_call(&sample, name, VALUES(a, b));
}

static Value range(int64_t n)
{
        return F32(&sample, SIZES(n), NULL);
}

static void expect_failure(Status want, const char *message, const char *name, uint32_t n, const Value *args)
{
        Value out;
        cr_assert_eq(sample_try(&sample, name, n, args, &out), want, "%s: %s", name,
                     failure_current()->message);
        cr_assert_str_eq(failure_current()->message, message);
}

// ---- views share, copies do not ----
Test(emit, a_write_through_a_view_is_seen_by_the_base)
{
        Value base = range(6);
        Value part = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(1), value_int(3)));
        call2("aten::add_.Tensor", part, value_int(10));
        EXPECT(base, 0, 11, 12, 3, 4, 5);
}

Test(emit, a_write_to_the_base_is_seen_by_every_view)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        Value row = sample_call(&sample, "aten::select.int", VALUES(base, value_int(0), value_int(1)));
        call2("aten::mul_.Tensor", base, value_int(2));
        EXPECT(row, 6, 8, 10);
        EXPECT(turned, 0, 6, 2, 8, 4, 10);
}

Test(emit, a_chain_of_views_reaches_the_same_bytes)
{
        Value base = F32(&sample, SIZES(2, 3, 4), NULL);
        Value turned =
                sample_call(&sample, "aten::permute",
                            VALUES(base, sample_list(&sample, VALUE_LIST,
                                                     VALUES(value_int(2), value_int(0), value_int(1)))));
        Value part = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(turned, value_int(0), value_int(1), value_int(4), value_int(2)));
        Value chosen = sample_call(&sample, "aten::select.int", VALUES(part, value_int(0), value_int(-1)));
        sample_call(&sample, "aten::zero_", VALUES(chosen));
        for (int i = 0; i < 24; i++)
                cr_assert_float_eq(at(base, i), i % 4 == 3 ? 0 : i, 0);
}

Test(emit, clones_share_nothing)
{
        Value base = range(3);
        Value copy = sample_call(&sample, "aten::clone", VALUES(base));
        call2("aten::add_.Tensor", copy, value_int(1));
        EXPECT(base, 0, 1, 2);
        EXPECT(copy, 1, 2, 3);
}

Test(emit, reshape_is_a_view_exactly_where_strides_allow_it)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        Value six = sample_list(&sample, VALUE_LIST, VALUES(value_int(6)));
        Value flat = call2("aten::reshape", base, six);
        cr_assert_eq(flat.tensor->storage, base.tensor->storage);
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        Value copy = call2("aten::reshape", turned, six);
        cr_assert_neq(copy.tensor->storage, base.tensor->storage);
        EXPECT(copy, 0, 3, 1, 4, 2, 5);
        expect_failure(STATUS_SHAPE,
                       "view size is not compatible with input tensor's size and stride (at least one "
                       "dimension spans across two "
                       "contiguous subspaces). Use "
                       ".reshape(...) instead.",
                       "aten::view", VALUES(turned, six));
}

Test(emit, contiguous_and_to_give_the_tensor_itself_when_nothing_changes)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        cr_assert_eq(sample_call(&sample, "aten::contiguous", VALUES(base)).tensor, base.tensor);
        cr_assert_eq(call2("aten::to.dtype", base, value_dtype(DTYPE_F32)).tensor, base.tensor);
        cr_assert_neq(call2("aten::to.dtype", base, value_dtype(DTYPE_F64)).tensor, base.tensor);
        cr_assert_neq(sample_call(&sample, "aten::to.dtype",
                                  VALUES(base, value_dtype(DTYPE_F32), value_bool(false), value_bool(true)))
                              .tensor,
                      base.tensor);
}

Test(emit, memory_formats_move_the_strides)
{
        Value base = F32(&sample, SIZES(2, 3, 4, 5), NULL);
        Value format = { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CHANNELS_LAST };
        Value moved = sample_call(
                &sample, "aten::to.dtype",
                VALUES(base, value_dtype(DTYPE_F32), value_bool(false), value_bool(false), format));
        cr_assert_neq(moved.tensor, base.tensor);
        cr_assert_eq(moved.tensor->meta.stride[1], 1);
        cr_assert_eq(moved.tensor->meta.stride[3], 3);
        cr_assert_float_eq(at(moved, 77), 77, 0);
        cr_assert_eq(call2("aten::contiguous", moved, format).tensor, moved.tensor);
        cr_assert_eq(sample_call(&sample, "aten::clone", VALUES(moved)).tensor->meta.stride[1], 1);
        cr_assert_eq(sample_call(&sample, "aten::contiguous", VALUES(moved)).tensor->meta.stride[1], 20);
}

Test(emit, strides_of_dimensions_of_size_one_are_pytorchs)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        cr_assert_eq(call2("aten::unsqueeze", base, value_int(0)).tensor->meta.stride[0], 6);
        cr_assert_eq(call2("aten::unsqueeze", base, value_int(1)).tensor->meta.stride[1], 3);
        cr_assert_eq(call2("aten::unsqueeze", base, value_int(2)).tensor->meta.stride[2], 1);
        Value one = F32(&sample, SIZES(1), NULL);
        Value wide =
                call2("aten::expand", one,
                      sample_list(&sample, VALUE_LIST, VALUES(value_int(1), value_int(4), value_int(1))));
        cr_assert_eq(wide.tensor->meta.stride[0], 0);
        cr_assert_eq(wide.tensor->meta.stride[1], 0);
        cr_assert_eq(wide.tensor->meta.stride[2], 1);
}

// ---- twins ----
Test(emit, a_twin_returns_the_very_tensor_it_wrote)
{
        Value base = F32(&sample, SIZES(3), DOUBLES(-1, 2, -3));
        Value result = sample_call(&sample, "aten::relu_", VALUES(base));
        cr_assert_eq(result.tensor, base.tensor);
        EXPECT(base, 0, 2, 0);
}

Test(emit, a_twin_may_read_its_own_operand_twice)
{
        Value base = range(4);
        call2("aten::add_.Tensor", base, base);
        EXPECT(base, 0, 2, 4, 6);
}

Test(emit, a_twin_keeps_dtype_strides_and_storage_of_self)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        Storage *storage = base.tensor->storage;
        call2("aten::add_.Tensor", turned, sample_tensor(&sample, DTYPE_I64, SIZES(2), DOUBLES(10, 20)));
        cr_assert_eq(turned.tensor->storage, storage);
        cr_assert_eq(turned.tensor->meta.stride[0], 1);
        cr_assert_eq(turned.tensor->meta.dtype, DTYPE_F32);
        EXPECT(base, 10, 11, 12, 23, 24, 25);
}

Test(emit, a_twin_refuses_a_result_of_a_higher_kind)
{
        Value whole = sample_tensor(&sample, DTYPE_I64, SIZES(2), NULL);
        expect_failure(STATUS_DTYPE, "result type Float can't be cast to the desired output type Long",
                       "aten::add_.Tensor", VALUES(whole, value_float(1.5)));
        expect_failure(STATUS_DTYPE, "result type Float can't be cast to the desired output type Long",
                       "aten::div_.Tensor", VALUES(whole, value_int(2)));
        Value yes = sample_tensor(&sample, DTYPE_BOOL, SIZES(2), NULL);
        expect_failure(STATUS_DTYPE, "result type Long can't be cast to the desired output type Bool",
                       "aten::mul_.Tensor", VALUES(yes, value_int(2)));
        EXPECT(whole, 0, 1);
}

Test(emit, a_twin_casts_within_and_below_its_kind)
{
        Value half = sample_tensor(&sample, DTYPE_F16, SIZES(2), DOUBLES(1, 2));
        call2("aten::add_.Tensor", half, F32(&sample, SIZES(2), DOUBLES(0.5, 0.25)));
        cr_assert_eq(half.tensor->meta.dtype, DTYPE_F16);
        EXPECT(half, 1.5, 2.25);
        Value small = sample_tensor(&sample, DTYPE_I8, SIZES(2), DOUBLES(1, 2));
        call2("aten::add_.Tensor", small, value_int(300));
        EXPECT(small, 45, 46);
}

Test(emit, a_twin_refuses_to_grow)
{
        Value small = range(2), large = F32(&sample, SIZES(2, 2), NULL);
        expect_failure(STATUS_SHAPE, "output with shape [2] doesn't match the broadcast shape [2, 2]",
                       "aten::add_.Tensor", VALUES(small, large));
        expect_failure(STATUS_SHAPE, "output with shape [2] doesn't match the broadcast shape [2, 2]",
                       "aten::copy_", VALUES(small, large));
        call2("aten::add_.Tensor", large, small);
        EXPECT(large, 0, 2, 2, 4);
}

#define SELF_OVERLAP                                                                                         \
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "   \
        "location. Please clone() the "                                                                      \
        "tensor before "                                                                                     \
        "performing the operation."
#define PARTIAL_OVERLAP                                                                                      \
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "     \
        "single memory location. Please "                                                                    \
        "clone() the "                                                                                       \
        "tensor before performing the operation."

Test(emit, an_expanded_tensor_can_only_be_filled)
{
        Value one = range(1);
        Value many = sample_call(&sample, "aten::expand",
                                 VALUES(one, sample_list(&sample, VALUE_LIST, VALUES(value_int(3)))));
        expect_failure(STATUS_RUN, SELF_OVERLAP, "aten::add_.Tensor", VALUES(many, value_int(1)));
        expect_failure(STATUS_RUN, SELF_OVERLAP, "aten::neg_", VALUES(many));
        expect_failure(STATUS_RUN, SELF_OVERLAP, "aten::copy_", VALUES(many, range(3)));
        EXPECT(one, 0);
        Value filled = sample_call(&sample, "aten::fill_.Scalar", VALUES(many, value_int(7)));
        EXPECT(filled, 7, 7, 7);
        EXPECT(one, 7);
}

Test(emit, partial_overlap_of_dense_tensors_is_refused)
{
        Value base = range(4);
        Value head = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(0), value_int(3)));
        Value tail = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(1), value_int(4)));
        expect_failure(STATUS_RUN, PARTIAL_OVERLAP, "aten::add_.Tensor", VALUES(tail, head));
        EXPECT(base, 0, 1, 2, 3);
        Value end = sample_call(&sample, "aten::slice.Tensor",
                                VALUES(base, value_int(0), value_int(2), value_int(4)));
        Value start = sample_call(&sample, "aten::slice.Tensor",
                                  VALUES(base, value_int(0), value_int(0), value_int(2)));
        call2("aten::add_.Tensor", end, start);
        EXPECT(base, 0, 1, 2, 4);
}

Test(emit, crossing_strided_ranges_go_through_a_temporary)
{
        Value base = F32(&sample, SIZES(2, 2), DOUBLES(1, 2, 3, 4));
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        // 2, 4
        Value column = sample_call(&sample, "aten::select.int", VALUES(turned, value_int(0), value_int(1)));
        // 1, 2
        Value row = sample_call(&sample, "aten::select.int", VALUES(base, value_int(0), value_int(0)));
        call2("aten::add_.Tensor", row, column);
        EXPECT(base, 3, 6, 3, 4);
}

Test(emit, a_strided_write_over_a_dense_operand_reads_everything_first)
{
        enum { N = 1000 };
        Value base = range(2 * N);
        Value even = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(0), value_int(2 * N), value_int(2)));
        Value shifted = sample_call(&sample, "aten::slice.Tensor",
                                    VALUES(base, value_int(0), value_int(1), value_int(N + 1)));
        call2("aten::add_.Tensor", even, shifted);
        for (int i = 0; i < N; i++)
                cr_assert_float_eq(at(even, i), 2 * i + 1 + i, 0, "element %d", i);
}

Test(emit, a_copy_onto_its_own_transpose_is_refused)
{
        Value base = F32(&sample, SIZES(2, 2), DOUBLES(1, 2, 3, 4));
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        expect_failure(STATUS_RUN, PARTIAL_OVERLAP, "aten::copy_", VALUES(base, turned));
        EXPECT(base, 1, 2, 3, 4);
}

Test(emit, a_strided_copy_over_a_dense_operand_reads_before_it_writes)
{
        Value base = range(5);
        Value even = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(0), value_int(5), value_int(2)));
        Value head = sample_call(&sample, "aten::slice.Tensor",
                                 VALUES(base, value_int(0), value_int(0), value_int(3)));
        call2("aten::copy_", even, head);
        EXPECT(base, 0, 1, 1, 3, 2);
}

Test(emit, writes_by_index_take_nothing_of_what_they_write)
{
        Value base = range(3), indices = sample_tensor(&sample, DTYPE_I64, SIZES(3), NULL);
        expect_failure(STATUS_RUN, PARTIAL_OVERLAP, "aten::index_add_",
                       VALUES(base, value_int(0), indices, base));
        expect_failure(STATUS_RUN, PARTIAL_OVERLAP, "aten::scatter_.src",
                       VALUES(base, value_int(0), indices, base));
        expect_failure(STATUS_RUN, PARTIAL_OVERLAP, "aten::index_put_",
                       VALUES(base, sample_list(&sample, VALUE_LIST, VALUES(indices)), base));
        EXPECT(base, 0, 1, 2);
}

Test(emit, copies_broadcast_and_cast)
{
        Value base = sample_tensor(&sample, DTYPE_I64, SIZES(2, 2), NULL);
        call2("aten::copy_", base, F32(&sample, SIZES(2), DOUBLES(1.9, -2.9)));
        EXPECT(base, 1, -2, 1, -2);
}

Test(emit, twins_of_views_change_the_tensor_object_itself)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        Value result = sample_call(&sample, "aten::t_", VALUES(base));
        cr_assert_eq(result.tensor, base.tensor);
        cr_assert_eq(base.tensor->meta.size[0], 3);
        EXPECT(base, 0, 3, 1, 4, 2, 5);
        call2("aten::unsqueeze_", base, value_int(0));
        cr_assert_eq(base.tensor->meta.rank, 3);
        sample_call(&sample, "aten::squeeze_", VALUES(base));
        cr_assert_eq(base.tensor->meta.rank, 2);
        cr_assert_eq(sample_call(&sample, "aten::detach_", VALUES(base)).tensor, base.tensor);
}

Test(emit, twins_without_elementwise_meaning_compute_first)
{
        Value base = F32(&sample, SIZES(3, 3), DOUBLES(1, 2, 3, 4, 5, 6, 7, 8, 9));
        Value turned = sample_call(&sample, "aten::t", VALUES(base));
        sample_call(&sample, "aten::triu_", VALUES(turned));
        EXPECT(base, 1, 0, 0, 4, 5, 0, 7, 8, 9);
}

// ---- numbers and dtypes ----
Test(emit, a_number_takes_part_in_promotion_as_a_number)
{
        Value half = sample_tensor(&sample, DTYPE_F16, SIZES(2), DOUBLES(1, 2));
        cr_assert_eq(call2("aten::add.Tensor", half, value_float(1.5)).tensor->meta.dtype, DTYPE_F16);
        Value whole = sample_tensor(&sample, DTYPE_I32, SIZES(2), DOUBLES(1, 2));
        cr_assert_eq(call2("aten::mul.Tensor", whole, value_float(1.5)).tensor->meta.dtype, DTYPE_F32);
        cr_assert_eq(call2("aten::mul.Tensor", value_int(3), whole).tensor->meta.dtype, DTYPE_I32);
        cr_assert_eq(atomic_load(&sample.ctx.cancelled), 0);
}

Test(emit, operators_that_take_no_numbers_say_so)
{
        expect_failure(STATUS_VALUE, "relu(): argument 'input' (position 1) must be Tensor, not int",
                       "aten::relu", VALUES(value_int(1)));
        expect_failure(STATUS_VALUE, "relu_(): argument 'input' (position 1) must be Tensor, not int",
                       "aten::relu_", VALUES(value_int(1)));
        expect_failure(STATUS_VALUE, "add_(): argument 'input' (position 1) must be Tensor, not float",
                       "aten::add_.Tensor", VALUES(value_float(1), range(2)));
}

Test(emit, a_dtype_outside_the_row_is_refused_by_name)
{
        Value odd = sample_tensor(&sample, DTYPE_C64, SIZES(2), NULL);
        Value out;
        cr_assert_eq(sample_try(&sample, "aten::relu", VALUES(odd), &out), STATUS_DTYPE);
        cr_assert(strstr(failure_current()->message, "not implemented for 'ComplexFloat'") != NULL, "%s",
                  failure_current()->message);
}

Test(emit, a_number_has_no_dimension_to_keep)
{
        Value number = sample_tensor(&sample, DTYPE_F32, 0, NULL, DOUBLES(-7));
        expect_failure(STATUS_SHAPE, "Dimension specified as 0 but tensor has no dimensions",
                       "aten::norm_except_dim", VALUES(number));
        EXPECT(sample_call(&sample, "aten::norm_except_dim", VALUES(number, value_int(2), value_int(-1))), 7);
}

Test(emit, losses_are_refused_in_the_words_of_their_kernels)
{
        static const struct {
                const char *name, *words;
        } rows[] = {
                { "aten::binary_cross_entropy", "\"binary_cross_entropy\" not implemented for 'Int'" },
                { "aten::multi_margin_loss", "\"multi_margin_loss_cpu_kernel\" not implemented for 'Int'" },
                { "aten::multilabel_margin_loss",
                  "\"multilabel_margin_loss_forward_out_frame\" not implemented for 'Int'" },
                { "aten::soft_margin_loss",
                  "result type Float can't be cast to the desired output type Int" },
        };
        Value row = sample_tensor(&sample, DTYPE_I32, SIZES(1), DOUBLES(1));
        Value target = sample_tensor(&sample, DTYPE_I64, SIZES(1), DOUBLES(0));
        Value half = sample_tensor(&sample, DTYPE_F16, SIZES(1), DOUBLES(1));
        expect_failure(STATUS_DTYPE, "\"multi_margin_loss_cpu_kernel\" not implemented for 'Half'",
                       "aten::multi_margin_loss", VALUES(half, target));
        Value image = F32(&sample, SIZES(1, 1, 1, 1), NULL);
        Value bytes = sample_tensor(&sample, DTYPE_U8, SIZES(1, 1, 1), DOUBLES(0));
        expect_failure(STATUS_DTYPE, "expected scalar type Long but found Byte", "aten::nll_loss2d",
                       VALUES(image, bytes));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const bool pair = i == 0 || i == 3; // of one dtype
                expect_failure(STATUS_DTYPE, rows[i].words, rows[i].name, VALUES(row, pair ? row : target));
        }
}

Test(emit, named_results_carry_their_fields)
{
        Value base = F32(&sample, SIZES(2, 3), NULL);
        Value parts = call2("aten::split.Tensor", base, value_int(1));
        cr_assert_eq(parts.kind, VALUE_LIST);
        cr_assert_eq(parts.seq->n, 2);
        cr_assert_eq(parts.seq->items[1].tensor->storage, base.tensor->storage);
        cr_assert_eq(sample_call(&sample, "aten::unbind.int", VALUES(F32(&sample, SIZES(9, 1), NULL))).seq->n,
                     9);
}

Test(emit, items_and_asserts_read_data)
{
        Value seven = sample_tensor(&sample, DTYPE_I64, 0, NULL, DOUBLES(7));
        cr_assert_eq(sample_call(&sample, "aten::item", VALUES(seven)).i, 7);
        expect_failure(STATUS_VALUE, "a Tensor with 3 elements cannot be converted to Scalar", "aten::item",
                       VALUES(range(3)));
        expect_failure(STATUS_RUN, "no good", "aten::_assert_async.msg",
                       VALUES(range(1), sample_text(&sample, "no good")));
        sample_call(&sample, "aten::_assert_async", VALUES(seven));
        expect_failure(STATUS_RUN, "100% sure", "aten::_assert_scalar",
                       VALUES(value_bool(false), sample_text(&sample, "100% sure")));
}

// ---- memory ----
Test(emit, a_run_over_its_budget_is_refused_before_memory_is_taken)
{
        sample.budget.limit = 4096;
        Value out;
        Value size = sample_list(&sample, VALUE_LIST, VALUES(value_int(1 << 20)));
        cr_assert_eq(sample_try(&sample, "aten::zeros", VALUES(size), &out), STATUS_TOO_LARGE);
        size = sample_list(&sample, VALUE_LIST, VALUES(value_int(INT64_MAX), value_int(INT64_MAX)));
        cr_assert_eq(sample_try(&sample, "aten::zeros", VALUES(size), &out), STATUS_TOO_LARGE);
        cr_assert_eq(sample_try(&sample, "aten::expand", VALUES(range(1), size), &out), STATUS_TOO_LARGE);
        cr_assert_eq(sample_try(&sample, "aten::repeat", VALUES(range(1), size), &out), STATUS_TOO_LARGE);
        cr_assert_eq(sample_try(&sample, "aten::arange", VALUES(value_int(INT64_MAX)), &out),
                     STATUS_TOO_LARGE);
        cr_assert_eq(sample_try(&sample, "aten::constant_pad_nd", VALUES(range(1), size), &out),
                     STATUS_TOO_LARGE);
        cr_assert_eq(sample_try(&sample, "aten::split.Tensor", VALUES(range(1), value_int(-1)), &out),
                     STATUS_VALUE);
        cr_assert_eq(sample_try(&sample, "aten::chunk", VALUES(range(0), value_int(INT64_MAX)), &out),
                     STATUS_TOO_LARGE);
}

Test(emit, as_strided_stays_within_its_storage)
{
        Value base = range(6), out;
        Value three = sample_list(&sample, VALUE_LIST, VALUES(value_int(3), value_int(3))),
              steps = sample_list(&sample, VALUE_LIST, VALUES(value_int(3), value_int(1)));
        cr_assert_eq(sample_try(&sample, "aten::as_strided", VALUES(base, three, steps), &out), STATUS_VALUE);
        Value huge = sample_list(&sample, VALUE_LIST, VALUES(value_int(INT64_MAX), value_int(1)));
        cr_assert_eq(sample_try(&sample, "aten::as_strided", VALUES(base, three, huge), &out), STATUS_VALUE);
        Value two = sample_list(&sample, VALUE_LIST, VALUES(value_int(2), value_int(3)));
        EXPECT(sample_call(&sample, "aten::as_strided", VALUES(base, two, steps)), 0, 1, 2, 3, 4, 5);
        cr_assert_eq(sample_try(&sample, "aten::as_strided", VALUES(base, two, steps, value_int(1)), &out),
                     STATUS_VALUE);
        cr_assert_eq(sample_try(&sample, "aten::as_strided", VALUES(base, two, steps, value_int(-1)), &out),
                     STATUS_VALUE);
}
