// SPDX-License-Identifier: Apache-2.0
// Graphs that run: an FX JSON document is read and resolved as an upload is; if it is accepted it
// runs eagerly, is compiled, and runs compiled three times. Both ways must end alike, with results
// of equal bits, or close where a product or a sum in another order took part. Placeholders say
// their dtype and shape under "meta"; their numbers come from a fixed pattern. The mutator
// (graph_mutate.c) knows the operators: it writes calls that fit their schemas.
#include <math.h>
#include "api/readers/fx_json.h"
#include "core/base/limits.h"
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_INPUTS = 8, DEADLINE_MS = 2000 };

// ---- inputs ----
// Ordinary numbers mostly, and the ones at which kernels differ.
static double number_at(Dtype dtype, uint32_t i, bool tame)
{
        static const double strange[] = { 0.0,  -0.0,  INFINITY, -INFINITY, NAN,    1e-40,
                                          3e38, 65504, -1,       0.5,       1e-320, 1e308 };
        static const double whole[] = { 0,   1,     -1,     2,          127,           -128,
                                        255, 32767, -32768, 2147483647, -2147483648.0, 9007199254740992.0 };
        double plain = (double)((i * 7 + 3) % 11) - 5;
        if (dtype_is_float(dtype) || dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                return tame || i % 5 != 4 ? plain / 4 : strange[(i / 5) % ARRAY_LENGTH(strange)];
        return tame || i % 5 != 4 ? plain + 5 : whole[(i / 5) % ARRAY_LENGTH(whole)];
}

static bool fits(Dtype dtype, double number)
{
        if (dtype_is_float(dtype) || dtype_info[dtype].kind == DTYPE_KIND_COMPLEX || dtype == DTYPE_I64)
                return true;
        if (dtype == DTYPE_BOOL)
                return number == 0 || number == 1;
        int bits = dtype_info[dtype].bytes * 8;
        bool is_signed = dtype == DTYPE_I8 || dtype == DTYPE_I16 || dtype == DTYPE_I32;
        return number >= (is_signed ? -ldexp(1, bits - 1) : 0) &&
               number < ldexp(1, is_signed ? bits - 1 : bits) && number < 9e15;
}

static Status input_of(const Input *input, uint32_t seed, bool tame, Value *out)
{
        int64_t size[MAX_RANK];
        TensorMeta meta;
        Tensor *tensor;
        const TensorSpec *spec = &input->spec;
        bool known = spec->rank >= 0 && spec->dtype < DTYPE_COUNT;
        for (int d = 0; known && d < spec->rank; d++)
                size[d] = spec->size[d].expr != NULL || spec->size[d].value < 0 ? 2 : spec->size[d].value;
        if (known)
                meta_init(&meta, spec->dtype, spec->rank, size);
        else
                meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 2, 3 });
        if (meta_numel(&meta) > 4096)
                return fail(STATUS_TOO_LARGE, "an input is too large here");
        TRY(tensor_new(&meta, NULL, &tensor));
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                void *at = (char *)tensor_data(tensor) + i * dtype_info[meta.dtype].bytes;
                double number = number_at(meta.dtype, (uint32_t)i + seed, tame);
                number = fits(meta.dtype, number) ? number : (double)(i % 2);
                if (dtype_is_float(meta.dtype) || dtype_info[meta.dtype].kind == DTYPE_KIND_COMPLEX)
                        element_from_f64(meta.dtype, at, number);
                else
                        element_from_i64(meta.dtype, at, (int64_t)number);
        }
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

// ---- what may differ ----
// Products and sums are added up in another order when compiled; such a
// graph gets ordinary numbers, so that rounding stays small.
static bool adds_up(const Graph *graph, int depth)
{
        static const char *const words[] = {
                "mm",     "mat",    "conv",  "linear",    "bilinear",    "einsum", "dot",     "attention",
                "mv",     "norm",   "addr",  "tensordot", "inner",       "outer",  "sum",     "mean",
                "var",    "std",    "pool",  "softmax",   "loss",        "cumsum", "cumprod", "prod",
                "trace",  "cosine", "cdist", "upsample",  "interpolate", "kron",   "rnn",     "forward",
                "interp", "trapz",  "gelu",  "inv",       "linalg",      "cov",    "corrcoef"
        };
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                if (node->op == OP_CALL_MODULE)
                        return true;
                for (size_t k = 0; k < ARRAY_LENGTH(words); k++) {
                        if (strstr(node->target, words[k]) != NULL)
                                return true;
                }
        }
        for (uint32_t i = 0; i < graph->n_modules && depth < 4; i++) {
                if (graph->modules[i]->graph != NULL && adds_up(graph->modules[i]->graph, depth + 1))
                        return true;
        }
        return false;
}

// Time and memory that only one side needs. Where both fail, a later node's shapes are looked at
// before an earlier node's numbers.
static bool is_undecided(const char *words)
{
        if (strncmp(words, "does not compile", 16) == 0 && strstr(words, "(eagerly ok)") == NULL)
                return true;
        return strstr(words, "too_large") != NULL || strstr(words, "deadline") != NULL ||
               strstr(words, "no_memory") != NULL;
}

static bool worked;

bool fuzz_keep(void)
{
        return worked;
}

static void run(const Graph *graph, const uint8_t *data, size_t n)
{
        Value inputs[MAX_INPUTS];
        char words[600];
        uint32_t n_inputs = 0;
        Status status = STATUS_OK;
        bool sums = adds_up(graph, 0);
        if (graph->signature.n_inputs > MAX_INPUTS)
                return;
        for (; n_inputs < graph->signature.n_inputs && status == STATUS_OK; n_inputs++) {
                inputs[n_inputs] = value_none();
                status = input_of(&graph->signature.inputs[n_inputs], n_inputs * 13, sums, &inputs[n_inputs]);
        }
        for (int pass = 0; pass < 2 && status == STATUS_OK; pass++) {
                CompileOptions options = { .n_threads = 1, .no_passes = pass == 1 };
                double close = sums ? 1e-2 : 0;
                BothResult result =
                        run_both(graph, (ValueSpan){ inputs, n_inputs }, &options, close, close, words);
                require(result != BOTH_DIFFER || is_undecided(words), "%s%s\n%.*s", words,
                        pass == 1 ? " (no passes)" : "", (int)n, (const char *)data);
                worked = result == BOTH_EQUAL;
                require(result != BOTH_FAIL || strstr(words, "internal error") == NULL, "%s", words);
        }
        for (uint32_t i = 0; i < n_inputs; i++)
                value_unref(inputs[i]);
}

static void start(void)
{
        require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        limits.max_run_memory = 1 << 22;
        limits.max_numel = 1 << 18;
        limits.max_nodes = 200;
        limits.max_node_flops = 50000000;
        limits.max_node_bytes = 50000000;
        both_deadline_ms = DEADLINE_MS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static bool ready;
        Graph *graph = NULL;
        CheckReport report;
        worked = false;
        if (!ready)
                start();
        ready = true;
        Status status = fx_json_read((const char *)data, n, NULL, &graph);
        if (status != STATUS_OK) {
                require_told(status);
                return 0;
        }
        status = graph_resolve(graph, &report);
        if (status == STATUS_OK) {
                status = check_report_status(&report, graph);
                check_report_deinit(&report);
        }
        if (status == STATUS_OK)
                run(graph, data, n);
        else
                require_told(status);
        graph_unref(graph);
        return 0;
}
