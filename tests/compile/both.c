// SPDX-License-Identifier: Apache-2.0
#include "tests/compile/both.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/kernels/pack_cache.h"
#include "core/kernels/random/generator.h"
#include "core/tensor/convert.h"

#define differs(...) (snprintf(words, 600, __VA_ARGS__), false)

typedef struct Pairs { // storages that stand for each other on the two sides
        const Storage *eager[256], *compiled[256];
        int n;
        double rtol, atol;
} Pairs;

static bool same_sharing(Pairs *pairs, const Tensor *eager, const Tensor *compiled, char *words)
{
        for (int i = 0; i < pairs->n; i++) {
                if ((pairs->eager[i] == eager->storage) != (pairs->compiled[i] == compiled->storage) &&
                    meta_numel(&eager->meta) > 0)
                        return differs("shares its storage with another result on one side only");
        }
        if (pairs->n < 256 && meta_numel(&eager->meta) > 0) {
                pairs->eager[pairs->n] = eager->storage;
                pairs->compiled[pairs->n++] = compiled->storage;
        }
        return true;
}

static bool same_elements(const Pairs *pairs, const Tensor *eager, const Tensor *compiled, char *words)
{
        _cleanup_(tensor_unrefp) Tensor *a = NULL, *b = NULL;
        if (tensor_contiguous((Tensor *)(uintptr_t)eager, NULL, &a) != STATUS_OK ||
            tensor_contiguous((Tensor *)(uintptr_t)compiled, NULL, &b) != STATUS_OK)
                return differs("out of memory");
        Dtype dtype = a->meta.dtype;
        const bool is_complex = dtype == DTYPE_C64 || dtype == DTYPE_C128;
        if (is_complex) // by parts
                dtype = dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
        int64_t n = meta_numel(&a->meta) * (is_complex ? 2 : 1), bytes = dtype_info[dtype].bytes;
        const char *x = tensor_data(a), *y = tensor_data(b);
        for (int64_t i = 0; i < n; i++) {
                if (memcmp(x + i * bytes, y + i * bytes, (size_t)bytes) == 0)
                        continue;
                double want = element_as_f64(dtype, x + i * bytes),
                       have = element_as_f64(dtype, y + i * bytes);
                bool close =
                        dtype_is_float(dtype) && fabs(have - want) <= pairs->atol + pairs->rtol * fabs(want);
                if ((isnan(want) && isnan(have)) || close)
                        continue;
                return differs("element %ld is %.9g, eagerly %.9g", (long)i, have, want);
        }
        return true;
}

static bool same_tensor(Pairs *pairs, const Tensor *eager, const Tensor *compiled, char *words)
{
        if (eager->meta.dtype != compiled->meta.dtype || !meta_same_shape(&eager->meta, &compiled->meta))
                return differs("dtype or shape differ");
        for (int i = 0; i < eager->meta.rank; i++) {
                if (eager->meta.size[i] > 1 && eager->meta.stride[i] != compiled->meta.stride[i])
                        return differs("stride %d is %ld, eagerly %ld", i, (long)compiled->meta.stride[i],
                                       (long)eager->meta.stride[i]);
        }
        if (!tensor_is_known(compiled))
                return differs("a result without bytes");
        if (tensor_check_bounds(&compiled->meta, compiled->offset, compiled->storage->n_bytes) != STATUS_OK)
                return differs("a result beyond its storage");
        return same_sharing(pairs, eager, compiled, words) && same_elements(pairs, eager, compiled, words);
}

static bool same(Pairs *pairs, Value eager, Value compiled, char *words)
{
        if (eager.kind != compiled.kind)
                return differs("is %s, eagerly %s", value_kind_name(compiled.kind),
                               value_kind_name(eager.kind));
        switch (eager.kind) {
        case VALUE_TENSOR:
                return same_tensor(pairs, eager.tensor, compiled.tensor, words);
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                if (eager.seq->n != compiled.seq->n)
                        return differs("%u items, eagerly %u", compiled.seq->n, eager.seq->n);
                for (uint32_t i = 0; i < eager.seq->n; i++) {
                        if (!same(pairs, eager.seq->items[i], compiled.seq->items[i], words))
                                return false;
                }
                return true;
        case VALUE_DICT:
                for (uint32_t i = 0; i < eager.dict->n; i++) {
                        if (!same(pairs, eager.dict->items[i].value, compiled.dict->items[i].value, words))
                                return false;
                }
                return true;
        case VALUE_INT:
                return eager.i == compiled.i ||
                       differs("is %ld, eagerly %ld", (long)compiled.i, (long)eager.i);
        case VALUE_BOOL:
                return eager.b == compiled.b || differs("is %d, eagerly %d", compiled.b, eager.b);
        case VALUE_FLOAT:
                return memcmp(&eager.f, &compiled.f, sizeof(double)) == 0 ||
                       differs("is %g, eagerly %g", compiled.f, eager.f);
        default:
                return true;
        }
}

// ---- copies of inputs, strides kept ----
static Status copy_leaf(void *context, const Value *leaf, Value *out)
{
        (void)context;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        const Tensor *from = leaf->tensor;
        Tensor *copy;
        int64_t span;
        TRY(tensor_new(&from->meta, NULL, &copy));
        TRY(meta_span(&from->meta, &span));
        if (span > 0)
                memcpy(tensor_data(copy), tensor_data(from),
                       (size_t)(span * dtype_info[from->meta.dtype].bytes));
        *out = value_tensor_take(copy);
        return STATUS_OK;
}

static Value *copy_inputs(ValueSpan inputs)
{
        Value *copies = new_array(inputs.n, sizeof(Value));
        for (uint32_t i = 0; i < inputs.n; i++)
                (void)value_map(inputs.items[i], copy_leaf, NULL, &copies[i]);
        return copies;
}

static void free_inputs(Value *inputs, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                value_unref(inputs[i]);
        free(inputs);
}

int64_t both_deadline_ms;

static void open_context(RunContext *ctx, Generator *generator)
{
        run_context_init(ctx);
        generator_seed(generator, 1);
        ctx->generator = generator;
        if (both_deadline_ms > 0)
                ctx->deadline_ns = clock_ns() + both_deadline_ms * 1000000;
}

static Status run_eager(const Graph *graph, ValueSpan inputs, Value *out)
{
        RunContext ctx;
        Generator generator;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        open_context(&ctx, &generator);
        TRY(eager_open(graph, &ctx, &eager));
        Value *copies = copy_inputs(inputs);
        WalkOptions options = { .inputs = { copies, inputs.n } };
        Status status = walk_graph(eager_emitter(eager), graph, &options, out, NULL);
        free_inputs(copies, inputs.n);
        return status;
}

static Status run_compiled(const Program *program, Frame *frame, ValueSpan inputs, Value *out)
{
        RunContext ctx;
        Generator generator;
        open_context(&ctx, &generator);
        Value *copies = copy_inputs(inputs);
        if (frame->arena != NULL)
                memset(frame->arena, 0xa5, frame->arena_bytes);
        Status status =
                program_run(program, frame, &(ProgramRun){ .inputs = { copies, inputs.n } }, &ctx, out, NULL);
        free_inputs(copies, inputs.n);
        return status;
}

static BothResult compare_runs(const Program *program, ValueSpan inputs, Status eager, Value want,
                               Pairs *pairs, char *words)
{
        Frame frame;
        BothResult result = BOTH_EQUAL;
        frame_init(&frame);
        for (int i = 0; i < 3 && result == BOTH_EQUAL; i++) {
                _cleanup_(value_clear) Value have = value_none();
                Status status = run_compiled(program, &frame, inputs, &have);
                pairs->n = 0;
                if (status != eager && status != STATUS_OK && eager != STATUS_OK &&
                    program->recording->tail != NULL)
                        // of a call and an earlier node of the rest, the call's failure is seen
                        return BOTH_FAIL;
                if (status != eager)
                        (void)differs("run %d: compiled says %s (%.300s), eager %s", i, status_code(status),
                                      failure_current()->message, status_code(eager));
                if (status != eager || (status == STATUS_OK && !same(pairs, want, have, words)))
                        result = BOTH_DIFFER;
                else if (status != STATUS_OK)
                        result = BOTH_FAIL;
        }
        frame_deinit(&frame);
        return result;
}

// Compiled for `other` where the program then fits `inputs`, too.
static Status compile_open(const Graph *graph, ValueSpan inputs, ValueSpan other,
                           const CompileOptions *options, Program **out_program)
{
        ProgramKey key;
        if (other.items == inputs.items ||
            compile_graph(graph, other, options, NULL, out_program) != STATUS_OK)
                // other sizes, say, may not do
                return compile_graph(graph, inputs, options, NULL, out_program);
        if (program_key(graph, inputs, options, (*out_program)->by_value, &key) == STATUS_OK &&
            strcmp(program_key_id(&key).hex, (*out_program)->id.hex) == 0)
                return STATUS_OK;
        *out_program = program_unref(*out_program);
        return compile_graph(graph, inputs, options, NULL, out_program);
}

BothResult run_both(const Graph *graph, ValueSpan inputs, const CompileOptions *options, double rtol,
                    double atol, char words[600])
{
        return run_both_open(graph, inputs, inputs, options, (Tolerance){ rtol, atol }, words);
}

// Constants of the graph share what is packed from them, as on a server.
static Status compile_sharing(const Graph *graph, ValueSpan inputs, ValueSpan other,
                              const CompileOptions *options, Program **out_program)
{
        CompileOptions sharing = *options;
        if (options->cache == NULL)
                TRY(pack_cache_open(&sharing.cache));
        Status status = compile_open(graph, inputs, other, &sharing, out_program);
        if (options->cache == NULL)
                pack_cache_close(sharing.cache);
        return status;
}

BothResult run_both_open(const Graph *graph, ValueSpan inputs, ValueSpan other, const CompileOptions *options,
                         Tolerance tolerance, char words[600])
{
        _cleanup_(value_clear) Value want = value_none();
        _cleanup_(program_unrefp) Program *program = NULL;
        Pairs pairs = { .rtol = tolerance.rtol, .atol = tolerance.atol };
        words[0] = '\0';
        Status eager = run_eager(graph, inputs, &want);
        Status compiled = compile_sharing(graph, inputs, other, options, &program);
        if (compiled == STATUS_DYNAMIC)
                return snprintf(words, 600, "%.500s", failure_current()->message), BOTH_DYNAMIC;
        if (compiled != STATUS_OK && eager == compiled) {
                snprintf(words, 600, "both fail: %.500s", failure_current()->message);
                return BOTH_FAIL;
        }
        if (compiled != STATUS_OK) {
                snprintf(words, 600, "does not compile (eagerly %s): %s: %.400s", status_code(eager),
                         status_code(compiled), failure_current()->message);
                return BOTH_DIFFER;
        }
        return compare_runs(program, inputs, eager, want, &pairs, words);
}
