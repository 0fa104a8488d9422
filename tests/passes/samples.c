// SPDX-License-Identifier: Apache-2.0
// samples.c: a sample's result has the same bits in every batch, at every place, whatever its
// neighbours hold: compiled with one thread and with two, and eagerly.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/compile/compile.h"
#include "core/eval/bind.h"
#include "core/eval/eager.h"
#include "tests/passes/made_graph.h"

TestSuite(samples, .init = made_start, .timeout = 120);

enum { MAX_STATES = 8 };

typedef struct Batch {
        const Graph *graph;
        const Program *program; // NULL: eagerly
        const Tensor *sample;   // a batch of one
        int64_t n;
} Batch;

static Tensor *make_batch(const Batch *batch, int64_t place, float neighbours)
{
        TensorMeta meta = batch->sample->meta;
        Tensor *tensor;
        size_t n = (size_t)meta_numel(&meta);
        meta.size[0] = batch->n;
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        float *to = tensor_data(tensor);
        uint32_t noise = 1;
        for (size_t i = 0; i < n * (size_t)batch->n; i++) {
                noise = noise * 1664525u + 1013904223u;
                to[i] = neighbours == 0 ? (float)(noise >> 8) * 0x1p-23f - 1 : neighbours;
        }
        memcpy(to + (size_t)place * n, tensor_data(batch->sample), n * sizeof(float));
        return tensor;
}

static Status run_batch(const Batch *batch, Value *input, Value *out)
{
        RunContext ctx;
        run_context_init(&ctx);
        if (batch->program == NULL) {
                _cleanup_(eager_closep) EagerEmitter *eager = NULL;
                WalkOptions options = { .inputs = { input, 1 } };
                TRY(eager_open((Graph *)(uintptr_t)batch->graph, &ctx, &eager));
                return walk_graph(eager_emitter(eager), (Graph *)(uintptr_t)batch->graph, &options, out,
                                  NULL);
        }
        Frame frame;
        frame_init(&frame);
        Status status =
                program_run(batch->program, &frame, &(ProgramRun){ .inputs = { input, 1 } }, &ctx, out, NULL);
        frame_deinit(&frame);
        return status;
}

// The result of the sample at `place`, contiguous.
static float *result_of(const Batch *batch, int64_t place, float neighbours, size_t *out_n)
{
        Value input = value_tensor_take(make_batch(batch, place, neighbours)), out = value_none();
        cr_assert_eq(run_batch(batch, &input, &out), STATUS_OK, "%s", failure_current()->message);
        const Tensor *result = out.kind == VALUE_TENSOR ? out.tensor : out.seq->items[0].tensor;
        cr_assert(meta_is_contiguous(&result->meta) && result->meta.size[0] == batch->n);
        *out_n = (size_t)(meta_numel(&result->meta) / batch->n);
        float *copy = new_array(*out_n, sizeof(float));
        memcpy(copy, (const float *)tensor_data(result) + (size_t)place * *out_n, *out_n * sizeof(float));
        value_clear(&out);
        value_clear(&input);
        return copy;
}

static void try_batch(const Batch *batch, const char *what, const float *want)
{
        const float neighbours[] = { 0, NAN, 1e30f, INFINITY };
        for (size_t k = 0; k < ARRAY_LENGTH(neighbours); k++) {
                for (int64_t place = 0; place < batch->n; place += MAX((int64_t)1, batch->n / 2)) {
                        size_t n;
                        float *got = result_of(batch, place, neighbours[k], &n);
                        cr_expect_eq(memcmp(got, want, n * sizeof(float)), 0,
                                     "%s: other bits at %ld of %ld beside %g", what, (long)place,
                                     (long)batch->n, (double)neighbours[k]);
                        free(got);
                }
        }
}

// `n_threads` 0: eagerly. Small inputs run on one thread on a server that has more (engine_width):
// so does the sample alone.
static void try_batches(const Made *made, const char *what, int n_threads)
{
        static const int64_t counts[] = { 1, 2, 3, 8 };
        float *want = NULL;
        for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
                Batch batch = { .graph = made->graph, .sample = made->inputs[0].tensor, .n = counts[i] };
                CompileOptions options = { .n_threads = counts[i] == 1 ? 1 : n_threads };
                Program *program = NULL;
                Value input = value_tensor_take(make_batch(&batch, 0, 0));
                size_t n;
                if (n_threads > 0)
                        cr_assert_eq(compile_graph(made->graph, (ValueSpan){ &input, 1 }, &options, NULL,
                                                   &program),
                                     STATUS_OK, "%s: %s", what, failure_current()->message);
                value_clear(&input);
                batch.program = program;
                if (want == NULL)
                        want = result_of(&batch, 0, 0, &n);
                try_batch(&batch, what, want);
                program_unref(program);
        }
        free(want);
}

typedef struct Case {
        const char *what, *sample, *nodes;
        const char *states[MAX_STATES]; // ends with NULL
        bool only_compiled;
} Case;

#define CONV(weight, ...)                                                                                    \
        CALL("c", "conv2d.default", "\"%x0\", \"%" weight "\", null, " __VA_ARGS__) OUTPUT("\"%c\"")
#define HALF(name, from, dtype) CALL(name, "to.dtype", "\"%" from "\", {\"$dtype\": \"" dtype "\"}")
#define ONE(target, ...)        CALL("c", target, "\"%x0\"" __VA_OPT__(", ") __VA_ARGS__) OUTPUT("\"%c\"")

static const Case cases[] = {
        { "long sums of the library's",
          "1,8,2048",
          CALL("t", "transpose.int", "\"%x0\", 1, 2") CALL("c", "matmul.default", "\"%x0\", \"%t\"")
                  OUTPUT("\"%c\""),
          { NULL },
          false },
        { "few results of the library's", "1,512,8,8", CONV("w", "[2, 2]"), { "w:5,512,1,1" }, false },
        { "winograd", "1,32,20,28", CONV("w", "[1, 1], [1, 1]"), { "w:32,32,3,3" }, false },
        { "winograd of few tiles", "1,64,7,7", CONV("w", "[1, 1], [1, 1]"), { "w:64,64,3,3" }, false },
        { "few channels", "1,3,12,12", CONV("w", "[1, 1], [0, 0]"), { "w:16,3,3,3" }, false },
        { "a line",
          "1,3,50",
          CALL("c", "conv1d.default", "\"%x0\", \"%w\", null, [1], [1]") OUTPUT("\"%c\""),
          { "w:16,3,3" },
          false },
        { "kernels of one tap with many weights",
          "1,300,5,7",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", \"%b\"")
                  CALL("d", "conv2d.default", "\"%c\", \"%w\", \"%b\"") OUTPUT("\"%d\""),
          { "w:300,300,1,1", "b:300" },
          false },
        { "images of one place",
          "1,96,1,1",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", \"%b\"") CALL("d", "conv2d.default", "\"%c\", \"%v\"")
                  OUTPUT("\"%d\""),
          { "w:24,96,1,1", "b:24", "v:96,24,1,1" },
          false },
        { "some channels of images of one place",
          "1,130,1,1",
          CALL("s", "slice.Tensor", "\"%x0\", 1, 3, 99") CALL("c", "conv2d.default", "\"%s\", \"%w\", \"%b\"")
                  OUTPUT("\"%c\""),
          { "w:24,96,1,1", "b:24" },
          false },
        { "a line of rows",
          "1,37,48",
          CALL("s", "slice.Tensor", "\"%x0\", 1, 3, 37") CALL("t", "transpose.int", "\"%s\", 1, 2")
                  CALL("c", "conv1d.default", "\"%t\", \"%w\", \"%b\"") OUTPUT("\"%c\""),
          { "w:40,48,1", "b:40" },
          false },
        { "one place of a line of rows",
          "1,37,48",
          CALL("s", "slice.Tensor", "\"%x0\", 1, 3, 4") CALL("t", "transpose.int", "\"%s\", 1, 2")
                  CALL("c", "conv1d.default", "\"%t\", \"%w\", \"%b\"") OUTPUT("\"%c\""),
          { "w:40,48,1", "b:40" },
          false },
        { "a volume",
          "1,3,8,9,10",
          CALL("c", "conv3d.default", "\"%x0\", \"%w\", null, [1, 1, 1], [1, 1, 1]") OUTPUT("\"%c\""),
          { "w:16,3,3,3,3" },
          false },
        { "7x7 by two", "1,3,40,40", CONV("w", "[2, 2], [3, 3]"), { "w:64,3,7,7" }, false },
        { "1x1", "1,64,9,9", CONV("w", "[1, 1], [0, 0]"), { "w:48,64,1,1" }, false },
        { "depthwise", "1,32,14,14", CONV("w", "[1, 1], [1, 1], [1, 1], 32"), { "w:32,1,3,3" }, false },
        { "grouped", "1,32,14,14", CONV("w", "[1, 1], [1, 1], [1, 1], 4"), { "w:32,8,3,3" }, false },
        { "the whole image", "1,32,7,7", CONV("w", "[1, 1], [0, 0]"), { "w:16,32,7,7" }, false },
        { "transposed",
          "1,16,9,9",
          CALL("c", "conv_transpose2d.input", "\"%x0\", \"%w\", null, [2, 2], [1, 1], [1, 1]")
                  OUTPUT("\"%c\""),
          { "w:16,8,3,3" },
          false },
        { "transposed, from images of one place",
          "1,24,1,1",
          CALL("c", "conv_transpose2d.input", "\"%x0\", \"%w\", \"%b\"") OUTPUT("\"%c\""),
          { "w:24,16,4,4", "b:16" },
          false },
        { "transposed, of a line",
          "1,24,33",
          CALL("c", "conv_transpose1d.default", "\"%x0\", \"%w\", \"%b\", [4], [2]") OUTPUT("\"%c\""),
          { "w:24,16,8", "b:16" },
          false },
        { "convolutions around an image seen as another one",
          "1,16,12,11",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", null, [1, 1], [1, 1]")
                  CALL("r", "reshape.default", "\"%c\", [-1, 16, 11, 12]") CALL(
                          "d", "conv2d.default", "\"%r\", \"%w\", null, [1, 1], [1, 1]") OUTPUT("\"%d\""),
          { "w:16,16,3,3" },
          false },
        { "tokens seen as an image, which the convolution is added to",
          "1,196,24",
          CALL("t", "transpose.int", "\"%x0\", 1, 2") CALL("f", "reshape.default", "\"%t\", [-1, 24, 14, 14]")
                  CALL("c", "conv2d.default", "\"%f\", \"%w\", null, [1, 1], [1, 1], [1, 1], 24")
                          CALL("a", "add.Tensor", "\"%f\", \"%c\"") CALL("z", "contiguous.default", "\"%a\"")
                                  OUTPUT("\"%z\""),
          { "w:24,1,3,3" },
          false },
        { "batch norm of some channels",
          "1,16,8,10",
          CALL("s", "slice.Tensor", "\"%x0\", 1, 8, 16")
                  CALL("n", "batch_norm.default",
                       "\"%s\", \"%g\", \"%b\", \"%mean\", \"%var\", false, 0.1, 1e-05, true")
                          CALL("z", "contiguous.default", "\"%n\"") OUTPUT("\"%z\""),
          { "g:8", "b:8", "mean:8", "var:8" },
          false },
        { "parts of an image",
          "1,8,14,14",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", null, [1, 1], [1, 1]")
                  CALL("p", "slice.Tensor", "\"%c\", 1, 0, 8") CALL("q", "slice.Tensor", "\"%c\", 1, 8, 16")
                          CALL("d", "conv2d.default", "\"%p\", \"%v\", null, [1, 1], [1, 1]")
                                  CALL("a", "add.Tensor", "\"%d\", \"%q\"")
                                          CALL("z", "contiguous.default", "\"%a\"") OUTPUT("\"%z\""),
          { "w:16,8,3,3", "v:8,8,3,3" },
          false },
        { "transposed around an image seen as another one",
          "1,16,12,11",
          CALL("c", "conv_transpose2d.input", "\"%x0\", \"%w\", null, [1, 1], [1, 1]")
                  CALL("r", "reshape.default", "\"%c\", [-1, 16, 11, 12]") CALL(
                          "d", "conv2d.default", "\"%r\", \"%w\", null, [1, 1], [1, 1]") OUTPUT("\"%d\""),
          { "w:16,16,3,3" },
          false },
        { "transposed, of images between whose rows those of the others lie",
          "1,6,5,16",
          CALL("t", "transpose.int", "\"%x0\", 0, 1") CALL("k", "contiguous.default", "\"%t\"") CALL(
                  "u", "transpose.int", "\"%k\", 0, 1") CALL("p", "permute.default", "\"%u\", [0, 3, 1, 2]")
                  CALL("c", "conv_transpose2d.input", "\"%p\", \"%w\", null, [2, 2]")
                          CALL("z", "contiguous.default", "\"%c\"") OUTPUT("\"%z\""),
          { "w:16,4,3,3" },
          false },
        { "one channel out of some channels",
          "1,33,5,8",
          CALL("s", "slice.Tensor", "\"%x0\", 1, 1, 33")
                  CALL("c", "conv2d.default", "\"%s\", \"%w\", null, [1, 1], [1, 1]") OUTPUT("\"%c\""),
          { "w:1,32,3,3" },
          false },
        { "two convolutions and a norm",
          "1,32,20,20",
          CALL("c", "conv2d.default", "\"%x0\", \"%w\", null, [1, 1], [1, 1]")
                  CALL("n", "batch_norm.default",
                       "\"%c\", \"%g\", \"%b\", \"%mean\", \"%var\", false, 0.1, 1e-05, true")
                          CALL("r", "relu.default", "\"%n\"")
                                  CALL("d", "conv2d.default", "\"%r\", \"%w\", null, [1, 1], [1, 1]")
                                          CALL("p", "mean.dim", "\"%d\", [2, 3]") OUTPUT("\"%p\""),
          { "w:32,32,3,3", "g:32", "b:32", "mean:32", "var:32" },
          false },
        { "tokens to linear",
          "1,784",
          CALL("l", "linear.default", "\"%x0\", \"%w\", \"%b\"") CALL("g", "gelu.default", "\"%l\"")
                  CALL("m", "linear.default", "\"%g\", \"%v\"") OUTPUT("\"%m\""),
          { "w:96,784", "b:96", "v:10,96" },
          false },
        { "a long row",
          "1,1568",
          CALL("l", "linear.default", "\"%x0\", \"%w\", \"%b\"") CALL("g", "gelu.default", "\"%l\"")
                  OUTPUT("\"%g\""),
          { "w:40,1568", "b:40" },
          false },
        { "a row by a matrix",
          "1,700",
          CALL("l", "mm.default", "\"%x0\", \"%w\"") OUTPUT("\"%l\""),
          { "w:700,75" },
          false },
        { "a row by few columns",
          "1,700",
          CALL("l", "addmm.default", "\"%b\", \"%x0\", \"%w\"") OUTPUT("\"%l\""),
          { "w:700,2", "b:2" },
          false },
        { "rows of tokens",
          "1,17,96",
          CALL("l", "linear.default", "\"%x0\", \"%w\", \"%b\"") OUTPUT("\"%l\""),
          { "w:200,96", "b:200" },
          false },
        { "bfloat16 tokens to linear",
          "1,17,96",
          HALF("h", "x0", "bfloat16") CALL("l", "linear.default", "\"%h\", \"%bf16_w\", \"%bf16_b\"")
                  CALL("g", "gelu.default", "\"%l\"") HALF("f", "g", "float32") OUTPUT("\"%f\""),
          { "bf16_w:200,96", "bf16_b:200" },
          false },
        { "a row of float16 by a matrix",
          "1,300",
          HALF("h", "x0", "float16") CALL("l", "addmm.default", "\"%f16_b\", \"%h\", \"%f16_w\"")
                  HALF("f", "l", "float32") OUTPUT("\"%f\""),
          { "f16_w:300,75", "f16_b:75" },
          false },
        { "bfloat16 convolutions, Winograd's and of one tap",
          "1,32,20,28",
          HALF("h", "x0", "bfloat16")
                  CALL("c", "conv2d.default", "\"%h\", \"%bf16_w\", \"%bf16_b\", [1, 1], [1, 1]")
                          CALL("d", "conv2d.default", "\"%c\", \"%bf16_v\"") HALF("f", "d", "float32")
                                  OUTPUT("\"%f\""),
          { "bf16_w:32,32,3,3", "bf16_b:32", "bf16_v:48,32,1,1" },
          false },
        { "bfloat16 attention",
          "1,2,70,32",
          HALF("h", "x0", "bfloat16")
                  CALL("c", "scaled_dot_product_attention.default", "\"%h\", \"%h\", \"%h\"")
                          HALF("f", "c", "float32") OUTPUT("\"%f\""),
          { NULL },
          false },
        { "a float16 convolution of a line",
          "1,3,50",
          HALF("h", "x0", "float16") CALL("c", "conv1d.default", "\"%h\", \"%f16_w\", null, [1], [1]")
                  HALF("f", "c", "float32") OUTPUT("\"%f\""),
          { "f16_w:16,3,3" },
          false },
        { "product of the batch",
          "1,33,47",
          CALL("t", "transpose.int", "\"%x0\", 1, 2") CALL("c", "matmul.default", "\"%x0\", \"%t\"")
                  OUTPUT("\"%c\""),
          { NULL },
          false },
        { "product of the batch, aligned",
          "1,32,48",
          CALL("t", "transpose.int", "\"%x0\", 1, 2") CALL("c", "matmul.default", "\"%x0\", \"%t\"")
                  OUTPUT("\"%c\""),
          { NULL },
          false },
        { "attention",
          "1,2,70,32",
          ONE("scaled_dot_product_attention.default", "\"%x0\", \"%x0\""),
          { NULL },
          false },
        { "causal attention",
          "1,2,70,32",
          ONE("scaled_dot_product_attention.default", "\"%x0\", \"%x0\", null, 0.0, true"),
          { NULL },
          false },
        { "layer norm", "1,11,37", ONE("layer_norm.default", "[37], \"%g\""), { "g:37" }, false },
        { "group norm", "1,16,9,9", ONE("group_norm.default", "4, \"%g\""), { "g:16" }, false },
        { "softmax", "1,5,67", ONE("softmax.int", "-1"), { NULL }, false },
        { "softmax of columns", "1,67,5", ONE("softmax.int", "1"), { NULL }, false },
        { "mean", "1,16,15,15", ONE("mean.dim", "[2, 3]"), { NULL }, false },
        { "sum", "1,1000", ONE("sum.dim_IntList", "[1]"), { NULL }, false },
        { "average pool",
          "1,16,15,15",
          ONE("avg_pool2d.default", "[3, 3], [2, 2], [1, 1]"),
          { NULL },
          false },
        { "resize", "1,8,7,7", ONE("upsample_bilinear2d.default", "[14, 14], false"), { NULL }, false },
        { "recurrent",
          "1,9,24",
          CALL("s", "select.int", "\"%x0\", 1, 0") CALL("h", "unsqueeze.default", "\"%s\", 0") CALL(
                  "l", "lstm.input",
                  "\"%x0\", [\"%h\", \"%h\"], [\"%w\", \"%v\", \"%b\", \"%b\"], true, 1, 0.0, false, false, "
                  "true") "{\"name\": \"i\", \"op\": \"call_function\", \"target\": \"_operator.getitem\", "
                          "\"args\": [\"%l\", 0]}," CALL("r", "reshape.default", "\"%i\", [-1, 216]")
                                  OUTPUT("\"%r\""),
          { "w:96,24", "v:96,24", "b:96" },
          false },
        { "pointwise",
          "1,37",
          CALL("t", "tanh.default", "\"%x0\"") CALL("g", "gelu.default", "\"%t\"") OUTPUT("\"%g\""),
          { NULL },
          false },
};

Test(samples, have_the_same_bits_in_every_batch)
{
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Made made = made_graph(LIST(cases[i].sample), cases[i].states, cases[i].nodes);
                try_batches(&made, cases[i].what, 1);
                try_batches(&made, cases[i].what, 2);
                if (!cases[i].only_compiled)
                        try_batches(&made, cases[i].what, 0);
                made_deinit(&made);
        }
}
