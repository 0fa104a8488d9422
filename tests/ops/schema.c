// SPDX-License-Identifier: Apache-2.0
// schema.c: parsing schema strings, laying arguments out, PyTorch's words when they do not fit.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/ops/op.h"

static Arena arena;
static Tensor *matrix, *scalar;
static Value kept[64]; // made by the builders below, dropped at the end
static uint32_t n_kept;

static void open_all(void)
{
        int64_t size[] = { 2, 3 };
        TensorMeta meta;
        arena_init(&arena, 0);
        meta_init(&meta, DTYPE_F32, 2, size);
        cr_assert_eq(tensor_new(&meta, NULL, &matrix), STATUS_OK);
        meta_init(&meta, DTYPE_I64, 0, NULL);
        cr_assert_eq(tensor_new(&meta, NULL, &scalar), STATUS_OK);
        *(int64_t *)tensor_data(scalar) = 7;
}

static void close_all(void)
{
        while (n_kept > 0)
                value_unref(kept[--n_kept]);
        tensor_unref(matrix);
        tensor_unref(scalar);
        arena_deinit(&arena);
}

TestSuite(schema, .init = open_all, .fini = close_all);

static Schema parsed(const char *text)
{
        Schema schema = { 0 };
        cr_assert_eq(schema_parse(text, &arena, &schema), STATUS_OK, "%s", failure_current()->message);
        return schema;
}

static Value keep(Value value)
{
        kept[n_kept++] = value;
        return value;
}

static Value tensor(void)
{
        return (Value){ .kind = VALUE_TENSOR, .tensor = matrix };
}

static Value text(const char *string)
{
        Value value;
        cr_assert_eq(value_str_new(string, strlen(string), &value), STATUS_OK);
        return keep(value);
}

static Value list(uint32_t n, const Value *items)
{
        Seq *seq;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(items[i]);
        return keep(value_seq_take(VALUE_LIST, seq));
}
#define LIST(...) list((uint32_t)(sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value)), (Value[]){ __VA_ARGS__ })

// One call: positional values, then one keyword ("" = none).
typedef struct Case {
        Value args[6];
        uint32_t n_args;
        const char *keyword;
        Value keyword_value;
} Case;
#define CALL(...)                                                                                            \
        {                                                                                                    \
                .args = { __VA_ARGS__ },                                                                     \
                .n_args = (uint32_t)(sizeof((Value[]){ __VA_ARGS__ }) / sizeof(Value))                       \
        }

static Value bound[SCHEMA_MAX_ARGS];
static uint64_t given;

static Status bind_case(const Schema *schema, const Case *call, BindMode mode)
{
        struct DictItem item = { 0 };
        CallArgs args = { .args = call->args, .n_args = call->n_args };
        if (call->keyword != NULL) {
                item.key = text(call->keyword).str;
                item.value = call->keyword_value;
                args.kwargs = &item;
                args.n_kwargs = 1;
        }
        bool fits = schema_fits(schema, &args, mode);
        Status status = schema_bind(schema, &args, mode, bound, &given);
        cr_assert_eq(fits, status == STATUS_OK, "schema_fits and schema_bind disagree on %s", schema->text);
        if (status == STATUS_OK && (given & SCHEMA_GATHERED) != 0)
                keep(value_ref(bound[schema->n_positional - 1]));
        if (status == STATUS_OK)
                schema_release(schema, bound, given & SCHEMA_GATHERED);
        if (status == STATUS_OK && (given & SCHEMA_GATHERED) != 0)
                bound[schema->n_positional - 1] = kept[n_kept - 1];
        return status;
}

static void expect_message(const char *schema_text, Case call, BindMode mode, const char *message)
{
        Schema schema = parsed(schema_text);
        cr_assert_eq(bind_case(&schema, &call, mode), STATUS_VALUE, "%s should not bind", schema_text);
        cr_assert_str_eq(failure_current()->message, message);
}

#define FLATTEN "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"
#define CONV2D                                                                                               \
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "        \
        "padding=0, SymInt[2] dilation=1, "                                                                  \
        "SymInt groups=1) -> Tensor"

// ---- parsing ----
Test(schema, a_name_has_namespace_base_and_overload)
{
        Schema schema = parsed("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
        cr_assert_str_eq(schema.ns, "aten");
        cr_assert_str_eq(schema.name, "add");
        cr_assert_str_eq(schema.overload, "Tensor");
        cr_assert_eq(schema.n_args, 3);
        cr_assert_eq(schema.n_positional, 2);
        cr_assert_eq(schema.n_tensor_args, 2);
        cr_assert(schema.args[2].kwarg_only);
        cr_assert_eq(schema.args[2].default_value.i, 1);
        cr_assert_str_eq(parsed("aten::relu(Tensor self) -> Tensor").overload, "default");
}

Test(schema, alias_marks_say_what_is_written)
{
        Schema schema =
                parsed("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)");
        cr_assert(schema.args[0].is_written);
        cr_assert(!schema.args[1].is_written);
        cr_assert_eq(schema.returns, RETURN_ONE);
        schema = parsed(
                "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
        cr_assert(!schema.args[0].is_written);
        cr_assert_eq(schema.returns, RETURN_LIST);
}

Test(schema, lists_and_optionals_nest_as_written)
{
        Schema schema = parsed("x::y(Tensor?[] indices, Tensor[]? more, int[1]? dim, float[]? scales, "
                               "SymInt[2] stride=1, bool[3] mask, "
                               "Scalar? min=None) -> ()");
        cr_assert(schema.args[0].is_list && schema.args[0].item_optional && !schema.args[0].optional);
        cr_assert(schema.args[1].is_list && !schema.args[1].item_optional && schema.args[1].optional);
        cr_assert(schema.args[2].is_list && schema.args[2].optional);
        cr_assert_eq(schema.args[2].list_size, 1);
        cr_assert_eq(schema.args[3].type, ARG_FLOAT);
        cr_assert_eq(schema.args[4].list_size, 2);
        cr_assert_eq(schema.args[4].default_value.i, 1);
        cr_assert_eq(schema.args[5].list_size, 3);
        cr_assert(schema.args[6].has_default && schema.args[6].default_value.kind == VALUE_NONE);
        cr_assert_eq(schema.returns, RETURN_NOTHING);
}

Test(schema, defaults_are_values_of_every_kind)
{
        Schema schema = parsed("x::y(str a='none', str b=\"constant\", float c=1e-05, int d=-1, int[] e=[], "
                               "int[2] f=[0,1], bool g=True, int h=Mean, "
                               "MemoryFormat i=contiguous_format, ScalarType j=long, Tensor? k=None, float "
                               "l=-inf, Scalar m=0.5) -> Tensor");
        cr_assert_str_eq(schema.args[0].default_value.str->text, "none");
        cr_assert_str_eq(schema.args[1].default_value.str->text, "constant");
        cr_assert_float_eq(schema.args[2].default_value.f, 1e-05, 0);
        cr_assert_eq(schema.args[3].default_value.i, -1);
        cr_assert_eq(schema.args[4].default_value.seq->n, 0);
        cr_assert_eq(schema.args[5].default_value.seq->items[1].i, 1);
        cr_assert(schema.args[6].default_value.b);
        cr_assert_eq(schema.args[7].default_value.i, 1);
        cr_assert_eq(schema.args[8].default_value.memory_format, MEMORY_FORMAT_CONTIGUOUS);
        cr_assert_eq(schema.args[9].default_value.dtype, DTYPE_I64);
        cr_assert_eq(schema.args[10].default_value.kind, VALUE_NONE);
        cr_assert(isinf(schema.args[11].default_value.f) && schema.args[11].default_value.f < 0);
        cr_assert_eq(schema.args[12].default_value.kind, VALUE_FLOAT);
}

Test(schema, named_returns_become_fields)
{
        Schema schema = parsed(
                "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)");
        cr_assert_eq(schema.returns, RETURN_TUPLE);
        cr_assert_eq(schema.n_returns, 2);
        cr_assert_str_eq(schema.return_names[1], "indices");
        cr_assert_null(parsed("x::y(Tensor a) -> (Tensor, Tensor)").return_names);
}

Test(schema, a_schema_that_does_not_parse_is_our_fault_and_says_where)
{
        static const char *const broken[] = { "aten",
                                              "aten::x",
                                              "aten::x(",
                                              "aten::x(Tensor)",
                                              "aten::x(Foo a) -> Tensor",
                                              "aten::x(int a=) -> Tensor",
                                              "aten::x(int a int b) -> Tensor",
                                              "aten::x(int[2 a) -> Tensor",
                                              "aten::x(str a='b) -> Tensor",
                                              "aten::x(int a)",
                                              "aten::x(int a) -> Tensor, Tensor",
                                              "aten::x(int a) -> (Tensor" };
        for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
                Schema schema;
                cr_assert_eq(schema_parse(broken[i], &arena, &schema), STATUS_INTERNAL, "%s", broken[i]);
                cr_assert(strstr(failure_current()->message, "at byte") != NULL);
        }
}

// ---- binding ----
Test(schema, missing_arguments_get_their_defaults_and_are_not_given)
{
        Schema schema = parsed(FLATTEN);
        cr_assert_eq(bind_case(&schema, &(Case)CALL(tensor(), value_int(1)), BIND_STRICT), STATUS_OK);
        cr_assert_eq(given, 3);
        cr_assert_eq(bound[1].i, 1);
        cr_assert_eq(bound[2].i, -1);
}

Test(schema, keywords_find_their_places)
{
        Schema schema = parsed(FLATTEN);
        Case call = {
                .args = { tensor() }, .n_args = 1, .keyword = "end_dim", .keyword_value = value_int(5)
        };
        cr_assert_eq(bind_case(&schema, &call, BIND_STRICT), STATUS_OK);
        cr_assert_eq(bound[1].i, 0);
        cr_assert_eq(bound[2].i, 5);
        cr_assert_eq(given, 5);
}

Test(schema, input_and_numpy_words_stand_for_schema_names)
{
        static const struct {
                const char *keyword, *schema;
        } rows[] = { { "input", "x::y(Tensor self) -> Tensor" },
                     { "x", "x::y(Tensor self) -> Tensor" },
                     { "axis", "x::y(int dim) -> Tensor" },
                     { "keepdims", "x::y(bool keepdim) -> Tensor" } };
        Value values[] = { tensor(), tensor(), value_int(1), value_bool(true) };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Schema schema = parsed(rows[i].schema);
                Case call = { .keyword = rows[i].keyword, .keyword_value = values[i] };
                cr_assert_eq(bind_case(&schema, &call, BIND_STRICT), STATUS_OK, "%s", rows[i].keyword);
        }
}

Test(schema, keywords_that_change_nothing_are_passed_over)
{
        Schema zeros = parsed(
                "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, bool? pin_memory=None) -> Tensor");
        Case call = { .args = { LIST(value_int(2)) },
                      .n_args = 1,
                      .keyword = "requires_grad",
                      .keyword_value = value_bool(false) };
        cr_assert_eq(bind_case(&zeros, &call, BIND_STRICT), STATUS_OK);
        Schema relu = parsed("aten::relu(Tensor self) -> Tensor");
        call = (Case){ .args = { tensor() }, .n_args = 1, .keyword = "out", .keyword_value = value_none() };
        cr_assert_eq(bind_case(&relu, &call, BIND_STRICT), STATUS_OK);
}

Test(schema, trailing_ints_gather_into_the_only_list)
{
        Schema view = parsed("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)");
        cr_assert_eq(bind_case(&view, &(Case)CALL(tensor(), value_int(3), value_int(2)), BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(bound[1].kind, VALUE_LIST);
        cr_assert_eq(bound[1].seq->n, 2);
        cr_assert_eq(bound[1].seq->items[0].i, 3);
        cr_assert_eq(bind_case(&view, &(Case)CALL(tensor(), value_int(-1)), BIND_STRICT), STATUS_OK);
        cr_assert_eq(bind_case(&view, &(Case)CALL(tensor(), LIST(value_int(3), value_int(2))), BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(given & SCHEMA_GATHERED, 0);
        Schema zeros = parsed("aten::zeros(SymInt[] size, *, ScalarType? dtype=None) -> Tensor");
        cr_assert_eq(bind_case(&zeros, &(Case)CALL(value_int(3), value_int(2)), BIND_STRICT), STATUS_OK);
        cr_assert_eq(bound[0].seq->n, 2);
}

Test(schema, starred_arguments_gather_whatever_follows)
{
        Schema block = parsed("py::block_diag(*Tensor[] tensors) -> Tensor");
        cr_assert_eq(bind_case(&block, &(Case)CALL(tensor(), tensor()), BIND_STRICT), STATUS_OK);
        cr_assert_eq(bound[0].seq->n, 2);
        cr_assert_eq(bind_case(&block, &(Case)CALL(LIST(tensor(), tensor(), tensor())), BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(bound[0].seq->n, 3);
        cr_assert_eq(bind_case(&block, &(Case){ 0 }, BIND_STRICT), STATUS_OK);
        cr_assert_eq(bound[0].seq->n, 0);
}

Test(schema, a_number_stands_for_a_sized_list_only)
{
        Schema conv = parsed(CONV2D);
        cr_assert_eq(
                bind_case(&conv, &(Case)CALL(tensor(), tensor(), value_none(), value_int(2)), BIND_STRICT),
                STATUS_OK);
        cr_assert_eq(bound[3].kind, VALUE_INT);
        Schema flip = parsed("x::y(Tensor a, int b, int[] dims) -> Tensor");
        cr_assert_eq(bind_case(&flip, &(Case)CALL(tensor(), value_int(1), value_int(2)), BIND_STRICT),
                     STATUS_VALUE);
}

Test(schema, numbers_stand_for_tensors_only_when_asked)
{
        Schema add = parsed("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
        Case call = CALL(tensor(), value_float(2.5));
        cr_assert_eq(bind_case(&add, &call, BIND_STRICT), STATUS_VALUE);
        cr_assert_eq(bind_case(&add, &call, BIND_NUMBERS), STATUS_OK);
        Schema cat = parsed("aten::cat(Tensor[] tensors, int dim=0) -> Tensor");
        cr_assert_eq(bind_case(&cat, &(Case)CALL(LIST(tensor(), value_int(1))), BIND_NUMBERS), STATUS_VALUE);
}

Test(schema, zero_dim_tensors_are_numbers_on_second_sight)
{
        Schema full = parsed("aten::full(SymInt[] size, Scalar fill_value) -> Tensor");
        Case call = CALL(LIST(value_int(2)), (Value){ .kind = VALUE_TENSOR, .tensor = scalar });
        cr_assert_eq(bind_case(&full, &call, BIND_STRICT), STATUS_VALUE);
        cr_assert_eq(bind_case(&full, &call, BIND_NUMBERS), STATUS_OK);
        call = (Case)CALL(LIST(value_int(2)), tensor());
        cr_assert_eq(bind_case(&full, &call, BIND_NUMBERS), STATUS_VALUE);
}

Test(schema, none_fits_optionals_and_generators_only)
{
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(Tensor? a) -> ()") }[0], &(Case)CALL(value_none()),
                               BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(Tensor a) -> ()") }[0], &(Case)CALL(value_none()),
                               BIND_STRICT),
                     STATUS_VALUE);
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(int[1]? a) -> ()") }[0], &(Case)CALL(value_none()),
                               BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(Generator? a) -> ()") }[0],
                               &(Case)CALL(value_none()), BIND_STRICT),
                     STATUS_OK);
        Case call = CALL(LIST(value_none(), tensor()));
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(Tensor?[] a) -> ()") }[0], &call, BIND_STRICT),
                     STATUS_OK);
        cr_assert_eq(bind_case(&(Schema[]){ parsed("x::y(Tensor[] a) -> ()") }[0], &call, BIND_STRICT),
                     STATUS_VALUE);
}

Test(schema, kinds_fit_as_in_python)
{
        Value device = text("cpu");
        device.kind = VALUE_DEVICE;
        const struct {
                const char *type;
                Value value;
                bool fits;
        } rows[] = {
                { "int", value_int(1), true },
                { "int", value_float(1), false },
                { "int", value_bool(true), false },
                { "int", text("a"), false },
                { "float", value_int(1), true },
                { "float", value_float(1), true },
                { "float", text("a"), false },
                { "bool", value_bool(true), true },
                { "bool", value_int(1), false },
                { "Scalar", value_bool(true), true },
                { "Scalar", value_float(2), true },
                { "Scalar", tensor(), false },
                { "str", text("a"), true },
                { "str", value_int(1), false },
                { "ScalarType", value_dtype(DTYPE_F32), true },
                { "ScalarType", value_int(6), false },
                { "Device", device, true },
                { "Device", text("cpu"), true },
                { "Device", value_int(0), false },
                { "Any", tensor(), true },
                { "Graph", tensor(), false },
                { "Tensor", tensor(), true },
                { "Tensor", text("a"), false },
                { "int[]", LIST(value_int(1)), true },
                { "int[]", LIST(value_float(1)), false },
                { "float[]", LIST(value_int(1), value_float(2)), true },
                { "Tensor", (Value){ .kind = VALUE_NODE }, true },
                { "int[]", (Value){ .kind = VALUE_NODE }, true },
                { "int", (Value){ .kind = VALUE_DYNAMIC }, true },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                Schema schema = parsed(arena_format(&arena, "x::y(int first, %s a) -> ()", rows[i].type));
                Case call = CALL(value_int(0), rows[i].value);
                cr_assert_eq(bind_case(&schema, &call, BIND_STRICT) == STATUS_OK, rows[i].fits, "%s, row %zu",
                             rows[i].type, i);
        }
}

// ---- words ----
Test(schema, failures_read_as_in_pytorch)
{
        const char *relu = "aten::relu(Tensor self) -> Tensor";
        Case keyword = { .args = { tensor() }, .n_args = 1, .keyword = "foo", .keyword_value = value_int(3) };
        expect_message(relu, (Case){ 0 }, BIND_STRICT,
                       "relu() missing 1 required positional arguments: \"input\"");
        expect_message(relu, (Case)CALL(value_int(3)), BIND_STRICT,
                       "relu(): argument 'input' (position 1) must be Tensor, not int");
        expect_message(relu, (Case)CALL(tensor(), value_int(3)), BIND_STRICT,
                       "relu() takes 1 positional argument but 2 were given");
        expect_message(relu, keyword, BIND_STRICT, "relu() got an unexpected keyword argument 'foo'");
        keyword.keyword = "input";
        keyword.keyword_value = tensor();
        expect_message(relu, keyword, BIND_STRICT, "relu() got multiple values for argument 'input'");
        expect_message(FLATTEN, (Case)CALL(tensor(), text("a")), BIND_STRICT,
                       "flatten(): argument 'start_dim' (position 2) must be int, not str");
        keyword.keyword = "start_dim";
        keyword.keyword_value = text("a");
        expect_message(FLATTEN, keyword, BIND_STRICT, "flatten(): argument 'start_dim' must be int, not str");
        expect_message(CONV2D, (Case){ 0 }, BIND_STRICT,
                       "conv2d() missing 2 required positional argument: \"input\", \"weight\"");
        expect_message(CONV2D, (Case)CALL(tensor(), tensor(), tensor(), LIST(value_int(1), text("a"))),
                       BIND_STRICT,
                       "conv2d(): argument 'stride' (position 4) must be tuple of ints, but found element of "
                       "type str at pos 1");
        expect_message("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", (Case)CALL(value_int(3)),
                       BIND_STRICT,
                       "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not int");
        expect_message(FLATTEN, (Case)CALL(tensor(), value_int(1), value_int(1), value_int(1)), BIND_STRICT,
                       "flatten() takes from 1 to 3 positional arguments but 4 were given");
}

// ---- the table ----
Test(schema, rows_are_found_by_every_spelling)
{
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        const Overload *clone = op_find("aten::clone");
        cr_assert_not_null(clone);
        static const char *const spellings[] = { "aten::clone.default", "aten.clone", "aten.clone.default",
                                                 "torch.ops.aten.clone", "torch.ops.aten.clone.default" };
        for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++)
                cr_assert_eq(op_find(spellings[i]), clone, "%s", spellings[i]);
        cr_assert_str_eq(clone->target, "torch.ops.aten.clone.default");
        cr_assert_eq(op_find("torch.ops.aten.slice.Tensor"), op_find("aten::slice.Tensor"));
        cr_assert_null(op_find("aten::no_such_operator"));
        cr_assert_null(op_find(""));
        cr_assert_null(op_find("torch.ops."));
}

Test(schema, the_flag_makes_in_place_twins)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        const Overload *twin = op_find("aten::unsqueeze_");
        cr_assert_not_null(twin);
        cr_assert(twin->inplace);
        cr_assert_eq(twin->op, op_find("aten::unsqueeze")->op);
        cr_assert_str_eq(twin->schema.text, "aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)");
        cr_assert_str_eq(op_find("aten::fill_.Scalar")->schema.text,
                         "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)");
        cr_assert(op_find("aten::transpose_")->inplace);
        cr_assert(!op_find("aten::clone")->inplace);
}

Test(schema, a_row_with_the_flag_has_no_twin_that_pytorch_lacks)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        const Overload *expit = op_find("aten::special_expit");
        cr_assert_not_null(expit);
        cr_assert_neq(expit->op->flags & OP_INPLACE, 0);
        cr_assert_null(op_find("aten::special_expit_"));
        cr_assert_not_null(op_find("aten::sigmoid_"));
}

Test(schema, overloads_of_a_base_name_come_in_table_order)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        uint32_t n;
        const Overload *const *squeeze = op_overloads("aten::squeeze", &n);
        cr_assert_eq(n, 3);
        cr_assert_str_eq(squeeze[0]->name, "aten::squeeze");
        cr_assert_str_eq(squeeze[1]->name, "aten::squeeze.dim");
        cr_assert_str_eq(squeeze[2]->name, "aten::squeeze.dims");
        cr_assert_null(op_overloads("aten::nothing", &n));
        cr_assert_eq(n, 0);
        for (uint32_t i = 0; i < n_ops(); i++)
                cr_assert_eq(op_find(op_at(i)->name), op_at(i), "%s", op_at(i)->name);
}
