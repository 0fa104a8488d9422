// SPDX-License-Identifier: Apache-2.0
// apart.c: which graphs may have several runs as one (core/compile/samples.h). Those that are
// refused mix samples, or tell how many there are. Those that are taken are run: their results, and
// those of runs one by one, have the same numbers.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/compile/compile.h"
#include "core/compile/samples.h"
#include "core/kernels/copy.h"
#include "core/ops/apart.h"
#include "core/eval/eager.h"
#include "tests/passes/made_graph.h"

TestSuite(apart, .init = made_start, .timeout = 120);

enum { RUNS = 4, MAX_STATES = 4 };

static const char *const names[] = {
#define APART(overload, rule, which) overload,
#include "core/ops/apart.def"
#undef APART
};

Test(apart, rows_name_operators_with_a_kernel_in_order)
{
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                const Overload *overload = op_find(names[i]);
                cr_expect_not_null(overload, "%s", names[i]);
                cr_expect(overload == NULL || overload->op->expand == NULL, "%s is a composite", names[i]);
                cr_expect(i == 0 || strcmp(names[i - 1], names[i]) < 0, "%s is out of order", names[i]);
        }
}

typedef struct Case {
        const char *input, *nodes; // of one run
        const char *states[MAX_STATES];
        const char *why; // part of the message; NULL: taken
} Case;

#define ONE(target, ...) CALL("c", target, "\"%x0\"" __VA_OPT__(", ") __VA_ARGS__) OUTPUT("\"%c\"")
#define METHOD(name, target, ...)                                                                            \
        "{\"name\": \"" name "\", \"op\": \"call_method\", \"target\": \"" target                            \
        "\", \"args\": [" __VA_ARGS__ "]},"
#define PYTHON(name, target, ...)                                                                            \
        "{\"name\": \"" name "\", \"op\": \"call_function\", \"target\": \"" target                          \
        "\", \"args\": [" __VA_ARGS__ "]},"

static const Case cases[] = {
        { "1,7", ONE("relu.default"), { NULL }, NULL },
        { "3,7", ONE("gelu.default"), { NULL }, NULL },
        { "1,7",
          CALL("l", "linear.default", "\"%x0\", \"%w\", \"%b\"") OUTPUT("\"%l\""),
          { "w:5,7", "b:5" },
          NULL },
        { "2,3,7", CALL("l", "linear.default", "\"%x0\", \"%w\"") OUTPUT("\"%l\""), { "w:5,7" }, NULL },
        { "1,7",
          CALL("l", "addmm.default", "\"%b\", \"%x0\", \"%w\"") OUTPUT("\"%l\""),
          { "w:7,5", "b:5" },
          NULL },
        { "1,3,9,9",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", null, [2, 2]") OUTPUT("\"%c\""),
          { "w:4,3,3,3" },
          NULL },
        { "1,3,8,8", ONE("max_pool2d.default", "[2, 2]"), { NULL }, NULL },
        { "1,6,5", ONE("softmax.int", "-1"), { NULL }, NULL },
        { "1,6,5", ONE("layer_norm.default", "[6, 5]"), { NULL }, NULL },
        { "1,4,5", ONE("group_norm.default", "2"), { NULL }, NULL },
        { "2,6,5", ONE("sum.dim_IntList", "[1]"), { NULL }, NULL },
        { "2,6,5", ONE("mean.dim", "[-1], true"), { NULL }, NULL },
        { "2,6,5", ONE("cumsum.default", "1"), { NULL }, NULL },
        { "2,6", ONE("flip.default", "[1]"), { NULL }, NULL },
        { "2,6,5", ONE("select.int", "1, 2"), { NULL }, NULL },
        { "2,6,5", ONE("slice.Tensor", "1, 1, 4"), { NULL }, NULL },
        { "2,6,5",
          CALL("t", "transpose.int", "\"%x0\", 0, 2") CALL("c", "softmax.int", "\"%t\", 0") OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6,5",
          CALL("t", "permute.default", "\"%x0\", [1, 0, 2]") CALL("c", "clone.default", "\"%t\"")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6", CALL("c", "cat.default", "[\"%x0\", \"%x0\"], 1") OUTPUT("\"%c\""), { NULL }, NULL },
        { "2,6", CALL("c", "stack.default", "[\"%x0\", \"%x0\"], 0") OUTPUT("\"%c\""), { NULL }, NULL },
        { "1,4,6",
          CALL("t", "transpose.int", "\"%x0\", 1, 2") CALL("c", "matmul.default", "\"%x0\", \"%t\"")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "1,2,9,8", ONE("scaled_dot_product_attention.default", "\"%x0\", \"%x0\""), { NULL }, NULL },
        // rows of tokens and back; sizes from the shape
        { "2,3,4",
          METHOD("s", "size", "\"%x0\", 0") METHOD("v", "reshape", "\"%x0\", -1, 4")
                  CALL("l", "linear.default", "\"%v\", \"%w\"") METHOD("r", "view", "\"%l\", \"%s\", 3, 5")
                          OUTPUT("\"%r\""),
          { "w:5,4" },
          NULL },
        // a token before all others
        { "2,3,4",
          METHOD("s", "size", "\"%x0\", 0") METHOD("e", "expand", "\"%t\", \"%s\", -1, -1")
                  CALL("c", "cat.default", "[\"%e\", \"%x0\"], 1") OUTPUT("\"%c\""),
          { "t:1,1,4" },
          NULL },
        // heads of attention with the batch inside
        { "2,3,8",
          CALL("t", "transpose.int", "\"%x0\", 0, 1") METHOD("c", "contiguous", "\"%t\"")
                  METHOD("v", "view", "\"%c\", 3, -1, 4") CALL("h", "transpose.int", "\"%v\", 0, 1")
                          CALL("k", "transpose.int", "\"%h\", 1, 2")
                                  CALL("p", "bmm.default", "\"%h\", \"%k\"") OUTPUT("\"%p\""),
          { NULL },
          NULL },
        // views of all samples that name their number
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("v", "slice.Tensor", "\"%x0\", 0, 0, \"%s\"")
                  CALL("n", "narrow.default", "\"%v\", 0, 0, \"%s\"") OUTPUT("\"%n\""),
          { NULL },
          NULL },
        { "2,6", PYTHON("a", "_operator.add", "\"%x0\", \"%b\"") OUTPUT("\"%a\""), { "b:6" }, NULL },
        { "2,6", OUTPUT("[\"%x0\", \"%b\"]"), { "b:6" }, NULL },
        { "2,6",
          METHOD("z", "new_zeros", "\"%x0\", 6") PYTHON("a", "_operator.add", "\"%x0\", \"%z\"")
                  OUTPUT("\"%a\""),
          { NULL },
          NULL },
        { "2,6",
          METHOD("c", "clone", "\"%x0\"") METHOD("r", "relu_", "\"%c\"") OUTPUT("\"%r\""),
          { NULL },
          NULL },
        { "2,6", ONE("glu.default", "1"), { NULL }, NULL },
        { "2,6", ONE("roll.default", "[2], [1]"), { NULL }, NULL },
        { "2,3,4", ONE("repeat.default", "[1, 2, 1]"), { NULL }, NULL },
        { "2,3,4", ONE("repeat.default", "[2, 1, 1, 1]"), { NULL }, NULL },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") METHOD("r", "repeat", "\"%w\", \"%s\", 1")
                  CALL("c", "add.Tensor", "\"%x0\", \"%r\"") OUTPUT("\"%c\""),
          { "w:1,6" },
          NULL },
        { "2,3,4",
          CALL("m", "sum.dim_IntList", "\"%x0\", [1], true") CALL("c", "expand_as.default", "\"%m\", \"%x0\"")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,3,6,5", ONE("reflection_pad2d.default", "[1, 1, 2, 1]"), { NULL }, NULL },
        { "2,3,6,5", ONE("replication_pad2d.default", "[1, 1, 2, 1]"), { NULL }, NULL },
        { "2,6", ONE("bucketize.Tensor", "\"%w\""), { "w:5" }, NULL },
        { "2,6", ONE("_fft_r2c.default", "[1], 0, true"), { NULL }, NULL },
        { "2,6,5",
          CALL("i", "arange.default", "3") CALL("c", "index.Tensor", "\"%x0\", [null, \"%i\"]")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,4,5,6",
          CALL("i", "arange.default", "3") CALL("c", "index.Tensor", "\"%x0\", [null, \"%i\", null, \"%i\"]")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,4,5",
          CALL("t", "transpose.int", "\"%x0\", 0, 2") CALL("i", "arange.default", "3")
                  CALL("c", "index.Tensor", "\"%t\", [\"%i\"]") OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6",
          CALL("a", "argmax.default", "\"%x0\", 1") CALL("c", "index.Tensor", "\"%w\", [\"%a\"]")
                  OUTPUT("\"%c\""),
          { "w:8,3" },
          NULL },
        { "2,6",
          CALL("a", "argmax.default", "\"%x0\", 1") CALL("c", "one_hot.default", "\"%a\", 6")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6",
          CALL("a", "argmax.default", "\"%x0\", 1, true") CALL("c", "scatter.value", "\"%x0\", 1, \"%a\", 0")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6",
          CALL("a", "argsort.default", "\"%x0\", 1") CALL("c", "scatter.value", "\"%x0\", 1, \"%a\", 0")
                  OUTPUT("\"%c\""),
          { NULL },
          NULL },
        // each run's own rows by their places
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  CALL("a", "argmax.default", "\"%x0\", 1")
                          CALL("c", "index.Tensor", "\"%x0\", [\"%p\", \"%a\"]") OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.start_step", "0, \"%s\"")
                  CALL("u", "unsqueeze.default", "\"%p\", 1") CALL("i", "arange.default", "4")
                          CALL("c", "index.Tensor", "\"%x0\", [\"%u\", \"%i\"]") OUTPUT("\"%c\""),
          { NULL },
          NULL },
        { "2,3,4,4",
          ONE("instance_norm.default", "\"%w\", \"%b\", null, null, true, 0.1, 1e-5, false"),
          { "w:3", "b:3" },
          NULL },
        { "2,3,4,4",
          ONE("instance_norm.default", "null, null, null, null, true, 0.1, 1e-5, false"),
          { NULL },
          NULL },
        { "2,4,3",
          CALL("v", "abs.default", "\"%w\"")
                  CALL("c", "batch_norm.default",
                       "\"%x0\", \"%w\", \"%b\", \"%b\", \"%v\", false, 0.1, 1e-5, false") OUTPUT("\"%c\""),
          { "w:4", "b:4" },
          NULL },
        { "2,3,4",
          METHOD("s", "size", "\"%x0\", 0") CALL("z", "zeros.default", "[1, \"%s\", 2]")
                  CALL("l", "lstm.input",
                       "\"%x0\", [\"%z\", \"%z\"], [\"%i\", \"%h\"], false, 1, 0.0, false, false, true")
                          PYTHON("o", "_operator.getitem", "\"%l\", 0") OUTPUT("\"%o\""),
          { "i:8,4", "h:8,2" },
          NULL },
        { "2,3,4",
          METHOD("s", "size", "\"%x0\", 0") CALL("z", "zeros.default", "[2, \"%s\", 2]")
                  CALL("l", "gru.input",
                       "\"%x0\", \"%z\", [\"%i\", \"%h\", \"%i\", \"%h\"], false, 1, 0.0, false, true, true")
                          PYTHON("o", "_operator.getitem", "\"%l\", 0") OUTPUT("\"%o\""),
          { "i:6,4", "h:6,2" },
          NULL },
        // what mixes is of no consequence when no result reads it
        { "2,6",
          CALL("s", "sum.default", "\"%x0\"") CALL("r", "relu.default", "\"%x0\"") OUTPUT("\"%r\""),
          { NULL },
          NULL },

        // but a call that refuses values of one run by what all bring
        { "2,6",
          CALL("s", "sum.default", "\"%x0\"") CALL("a", "_assert_async.default", "\"%s\"")
                  CALL("r", "relu.default", "\"%x0\"") OUTPUT("\"%r\""),
          { NULL },
          "'s' (aten::sum) may mix" },
        { "2,6",
          METHOD("l", "long", "\"%x0\"") CALL("m", "index.Tensor", "\"%x0\", [\"%l\"]")
                  CALL("r", "relu.default", "\"%x0\"") OUTPUT("\"%r\""),
          { NULL },
          "'m' (aten::index.Tensor) may mix" },
        { "2,6",
          METHOD("l", "long", "\"%x0\"") CALL("s", "sum.dim_IntList", "\"%l\", [0], true")
                  CALL("d", "floor_divide.default", "\"%l\", \"%s\"") CALL("r", "relu.default", "\"%x0\"")
                          OUTPUT("\"%r\""),
          { NULL },
          "'s' (aten::sum.dim_IntList) may mix" },

        { "2,6", ONE("sum.default"), { NULL }, "mix" },
        { "2,6", ONE("sum.dim_IntList", "[0]"), { NULL }, "mix" },
        { "2,6", ONE("softmax.int", "0"), { NULL }, "mix" },
        { "2,6", ONE("cumsum.default", "0"), { NULL }, "mix" },
        { "2,6", ONE("flip.default", "[0]"), { NULL }, "mix" },
        { "2,6", ONE("roll.default", "[1], [0]"), { NULL }, "mix" },
        { "2,6", ONE("roll.default", "[1]"), { NULL }, "mix" },
        { "2,6", ONE("repeat.default", "[2, 1]"), { NULL }, "mix" },
        { "2,6", ONE("_fft_r2c.default", "[0], 0, false"), { NULL }, "mix" },
        { "2,6",
          CALL("n", "_native_batch_norm_legit.no_stats", "\"%x0\", null, null, true, 0.1, 1e-5")
                  PYTHON("o", "_operator.getitem", "\"%n\", 0") OUTPUT("\"%o\""),
          { NULL },
          "mix" },
        { "2,6",
          CALL("i", "arange.default", "2") CALL("c", "index.Tensor", "\"%x0\", [\"%i\"]") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        // fewer rows of indices than of numbers: those of the next run would meet this one's
        { "2,6",
          METHOD("v", "view", "\"%x0\", -1, 3") CALL("a", "argmax.default", "\"%x0\", 1, true")
                  METHOD("r", "remainder", "\"%a\", 3") CALL("c", "gather.default", "\"%v\", 1, \"%r\"")
                          OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        // places that are numbers, of another table, or elsewhere
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  CALL("u", "unsqueeze.default", "\"%p\", 1") CALL("c", "add.Tensor", "\"%x0\", \"%u\"")
                          OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"") OUTPUT("\"%p\""),
          { NULL },
          "all samples" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  CALL("c", "index.Tensor", "\"%w\", [\"%p\"]") OUTPUT("\"%c\""),
          { "w:40,3" },
          "mix" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  CALL("f", "flip.default", "\"%p\", [0]") CALL("c", "index.Tensor", "\"%x0\", [\"%f\"]")
                          OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  METHOD("v", "view", "\"%x0\", -1, 3") CALL("c", "index.Tensor", "\"%v\", [\"%p\"]")
                          OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,40",
          METHOD("s", "size", "\"%x0\", 0") CALL("p", "arange.default", "\"%s\"")
                  CALL("c", "index.Tensor", "\"%x0\", [null, \"%p\"]") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6", ONE("sort.default", "0"), { NULL }, "mix" },
        { "2,6", ONE("select.int", "0, 0"), { NULL }, "mix" },
        { "2,6", ONE("slice.Tensor", "0, 1"), { NULL }, "mix" },
        { "2,6", CALL("c", "cat.default", "[\"%x0\", \"%x0\"], 0") OUTPUT("\"%c\""), { NULL }, "mix" },
        { "2,6",
          CALL("t", "t.default", "\"%x0\"") CALL("c", "mm.default", "\"%x0\", \"%t\"") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6",
          CALL("m", "mean.dim", "\"%x0\", [0], true") CALL("c", "sub.Tensor", "\"%x0\", \"%m\"")
                  OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "1,6",
          CALL("s", "select.int", "\"%x0\", 0, 0") CALL("c", "add.Tensor", "\"%x0\", \"%s\"")
                  OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        // a batch of one lies as rows, others do not: another kernel, other bits
        { "1,3,7",
          CALL("t", "transpose.int", "\"%x0\", 0, 1") CALL("c", "linear.default", "\"%t\", \"%w\"")
                  OUTPUT("\"%c\""),
          { "w:5,7" },
          "mix" },
        // views of the same shape that begin elsewhere
        { "2,9",
          METHOD("s", "size", "\"%x0\", 0") CALL("c", "select.int", "\"%x0\", 1, \"%s\"") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,19",
          METHOD("s", "size", "\"%x0\", 0") PYTHON("e", "_operator.add", "\"%s\", 3")
                  CALL("c", "slice.Tensor", "\"%x0\", 1, \"%s\", \"%e\"") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,19",
          METHOD("s", "size", "\"%x0\", 0") PYTHON("e", "_operator.sub", "17, \"%s\"")
                  CALL("p", "split_with_sizes.default", "\"%x0\", [\"%s\", 2, \"%e\"], 1")
                          PYTHON("c", "_operator.getitem", "\"%p\", 1") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") PYTHON("c", "_operator.truediv", "\"%x0\", \"%s\"")
                  OUTPUT("\"%c\""),
          { NULL },
          "" },
        { "2,6",
          METHOD("s", "size", "\"%x0\", 0") CALL("f", "full.default", "[\"%s\", 6], \"%s\"")
                  CALL("c", "add.Tensor", "\"%x0\", \"%f\"") OUTPUT("\"%c\""),
          { NULL },
          "" },
        { "2,6", METHOD("s", "size", "\"%x0\", 0") OUTPUT("[\"%x0\", \"%s\"]"), { NULL }, "how many" },
        { "2,6",
          METHOD("v", "reshape", "\"%x0\", 3, -1") CALL("c", "softmax.int", "\"%v\", 1") OUTPUT("\"%c\""),
          { NULL },
          "mix" },
        { "2,6",
          CALL("t", "t.default", "\"%x0\"") METHOD("v", "reshape", "\"%t\", -1") OUTPUT("\"%v\""),
          { NULL },
          "mix" },
        { "2,6", CALL("d", "dropout.default", "\"%x0\", 0.5, true") OUTPUT("\"%d\""), { NULL }, "random" },
        { "2,6",
          CALL("c", "add.Tensor", "\"%x0\", \"%x0\"") METHOD("l", "long", "\"%c\"")
                  PYTHON("m", "_operator.mul", "\"%l\", 0") CALL("p", "gather.default", "\"%w\", 1, \"%m\"")
                          OUTPUT("\"%p\""),
          { "w:8,6" },
          "" },
        { "2,6", METHOD("a", "add_", "\"%x0\", 1") OUTPUT("\"%a\""), { NULL }, "writes to an input" },
        { "2,6", METHOD("z", "nonzero", "\"%x0\"") OUTPUT("\"%z\""), { NULL }, "eagerly" },
};

static Value many_of(Value one, int64_t n, float neighbours)
{
        TensorMeta meta = one.tensor->meta;
        Tensor *tensor;
        size_t count = (size_t)meta_numel(&meta);
        meta.size[0] *= n;
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        float *to = tensor_data(tensor);
        for (size_t i = 0; i < count * (size_t)n; i++)
                to[i] = neighbours;
        memcpy(to + count, tensor_data(one.tensor), count * sizeof(float)); // the second run's place
        return value_tensor_take(tensor);
}

static Status check(const Made *made, SampleDims *out_dims)
{
        _cleanup_(recording_freep) Recording *one = NULL, *many = NULL;
        _cleanup_(value_clear) Value joined = many_of(made->inputs[0], RUNS, 0);
        RecordOptions options = { .inputs = { made->inputs, 1 } };
        TRY(record_graph(made->graph, &options, NULL, &one));
        options.inputs = (ValueSpan){ &joined, 1 };
        TRY(record_graph(made->graph, &options, NULL, &many));
        return samples_check(one, many, RUNS, out_dims);
}

static Value run(const Made *made, Value input)
{
        RunContext ctx;
        Value out = value_none();
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        WalkOptions options = { .inputs = { &input, 1 } };
        run_context_init(&ctx);
        cr_assert_eq(eager_open(made->graph, &ctx, &eager), STATUS_OK);
        cr_assert_eq(walk_graph(eager_emitter(eager), made->graph, &options, &out, NULL), STATUS_OK, "%s",
                     failure_current()->message);
        return out;
}

static const Tensor *leaf_of(Value value, uint32_t i)
{
        return value.kind == VALUE_TENSOR ? value.tensor : value.seq->items[i].tensor;
}

// The second run's part of each result of `all` has the bits of `alone`.
static void compare(const char *nodes, Value alone, Value all, const SampleDims *dims)
{
        for (uint32_t i = 0; i < dims->n; i++) {
                const Tensor *one = leaf_of(alone, i), *many = leaf_of(all, i);
                Region part = region_of(&many->meta, tensor_data(many));
                int d = dims->dims[i];
                Tensor *copies[2];
                TensorMeta meta = one->meta;
                if (d >= 0)
                        part = region_part(&part, d, one->meta.size[d], one->meta.size[d]);
                meta_set_contiguous(&meta);
                cr_assert_eq(tensor_new(&meta, NULL, &copies[0]), STATUS_OK);
                cr_assert_eq(tensor_new(&meta, NULL, &copies[1]), STATUS_OK);
                Region to[2] = { region_of(&meta, tensor_data(copies[0])),
                                 region_of(&meta, tensor_data(copies[1])) },
                       from = region_of(&one->meta, tensor_data(one));
                cr_assert_eq(copy_region(NULL, &from, &to[0]), STATUS_OK);
                cr_assert_eq(copy_region(NULL, &part, &to[1]), STATUS_OK);
                cr_expect_eq(memcmp(to[0].data, to[1].data,
                                    (size_t)meta_numel(&meta) * dtype_info[meta.dtype].bytes),
                             0, "result %u has other bits: %s", i, nodes);
                tensor_unref(copies[0]);
                tensor_unref(copies[1]);
        }
}

static void try_runs(const Case *it, const Made *made, const SampleDims *dims)
{
        const float neighbours[] = { 0, NAN, 1e30f };
        _cleanup_(value_clear) Value alone = run(made, made->inputs[0]);
        for (size_t k = 0; k < ARRAY_LENGTH(neighbours); k++) {
                _cleanup_(value_clear) Value joined = many_of(made->inputs[0], RUNS, neighbours[k]);
                _cleanup_(value_clear) Value all = run(made, joined);
                compare(it->nodes, alone, all, dims);
        }
}

Test(apart, graphs_that_keep_samples_apart_are_taken_and_others_refused)
{
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                const Case *it = &cases[i];
                Made made = made_graph(LIST(it->input), it->states, it->nodes);
                SampleDims dims = { .n = 0 };
                Status status = check(&made, &dims);
                if (it->why == NULL)
                        cr_expect_eq(status, STATUS_OK, "%s: %s", it->nodes, failure_current()->message);
                else
                        cr_expect(status != STATUS_OK && strstr(failure_current()->message, it->why) != NULL,
                                  "%s: %s", it->nodes,
                                  status == STATUS_OK ? "taken" : failure_current()->message);
                if (status == STATUS_OK && it->why == NULL)
                        try_runs(it, &made, &dims);
                sample_dims_deinit(&dims);
                made_deinit(&made);
        }
}
