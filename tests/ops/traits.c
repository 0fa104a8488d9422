// SPDX-License-Identifier: Apache-2.0
// traits.c: what rows claim about themselves (OpTraits, OP_ELEMENTWISE, RowEnd, activations), tried
// on every golden case: as it stands, with the same tensor in several places, with operands laid
// out otherwise, computed in place, and cut into rows.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/eval/eager.h"
#include "core/kernels/random/generator.h"
#include "core/ops/fused_conv.h"
#include "core/ops/fused_tail.h"
#include "tests/ops/bound_call.h"
#include "tests/ops/golden_file.h"

typedef struct Trial {
        Emitter *emitter;
        const GoldenCase *golden;
        const Bound *bound;
        uint32_t n_wrong;
        // how often each was tried
        uint32_t n_fresh, n_aliased, n_layout, n_near, n_in_place, n_copies, n_views, n_rows, n_activations,
                n_unwritten, n_statistics, n_draws, n_by_shape, n_any_layout;
        StringMap layouts; // overloads whose layout was tried
} Trial;

#define wrong(trial, ...)                                                                                    \
        do {                                                                                                 \
                (trial)->n_wrong++;                                                                          \
                fprintf(stderr, "%s (case at line %d): ", (trial)->bound->overload->name,                    \
                        (trial)->golden->line);                                                              \
                fprintf(stderr, __VA_ARGS__);                                                                \
                fputc('\n', stderr);                                                                         \
        } while (0)

static Status run(Trial *trial, const Bound *bound, Value *out)
{
        *out = value_none();
        // Each call draws the same numbers.
        Generator *generator = trial->emitter->ctx->generator;
        const OpDef *op = bound->overload->op;
        generator_seed(generator, 5);
        Status status = emit(trial->emitter, bound->overload, bound->args, bound->given, out);
        if (generator->started && (op->flags & (OP_RANDOM | OP_DROPS)) == 0)
                wrong(trial, "draws random numbers without OP_RANDOM");
        if (generator->started && (op->traits & TRAIT_DRAWS_NOTHING) != 0)
                wrong(trial, "draws random numbers and claims to draw none");
        trial->n_draws += generator->started;
        return status;
}

// ---- bytes of their own ----
static bool shares(Value result, const Bound *bound)
{
        Tensors outs = tensors_of(result), ins = tensors_of_call(bound);
        for (uint32_t k = 0; k < outs.n; k++) {
                for (uint32_t i = 0; i < ins.n; i++) {
                        if (outs.items[k]->storage == ins.items[i]->storage)
                                return true;
                }
        }
        return false;
}

static void try_fresh(Trial *trial, Layout layout)
{
        Bound copy;
        Value result;
        copy_call(trial->bound, layout, &copy);
        if (run(trial, &copy, &result) == STATUS_OK) {
                trial->n_fresh++;
                if (shares(result, &copy))
                        wrong(trial, "claims fresh results, but one shares bytes with an argument");
        } else if (layout == AS_IT_IS) {
                wrong(trial, "fails: %s", failure_current()->message);
        }
        value_clear(&result);
        drop_call(&copy);
}

// One tensor in all places that take it.
static void try_aliased(Trial *trial)
{
        Bound apart, together;
        Value want, got;
        const Tensor *first = NULL;
        uint32_t n_replaced = 0;
        copy_call(trial->bound, AS_IT_IS, &together);
        for (uint32_t i = 0; i < together.overload->schema.n_args; i++) {
                if (together.args[i].kind != VALUE_TENSOR)
                        continue;
                Tensor *tensor = together.args[i].tensor;
                if (first == NULL) {
                        first = tensor;
                } else if (tensor->meta.dtype == first->meta.dtype &&
                           meta_same_shape(&tensor->meta, &first->meta)) {
                        tensor_unref(tensor);
                        together.args[i].tensor = tensor_ref((Tensor *)(uintptr_t)first);
                        n_replaced++;
                }
        }
        copy_call(&together, AS_IT_IS, &apart);
        if (n_replaced > 0 && run(trial, &apart, &want) == STATUS_OK) {
                trial->n_aliased++;
                if (run(trial, &together, &got) != STATUS_OK || !results_equal(got, want, same_elements))
                        wrong(trial, "gives something else when one tensor is given twice");
                else if (shares(got, &together))
                        wrong(trial, "shares bytes with a tensor that is given twice");
                value_clear(&got);
                value_clear(&want);
        }
        drop_call(&together);
        drop_call(&apart);
}

// ---- layouts ----
static bool is_dense(Value result)
{
        Tensors tensors = tensors_of(result);
        bool dense = true;
        for (uint32_t k = 0; k < tensors.n; k++)
                dense &= (tensors.items[k]->meta.rank != 4 && tensors.items[k]->meta.rank != 5) ||
                         meta_is_non_overlapping_and_dense(&tensors.items[k]->meta);
        return dense;
}

// Numbers whose sums are rounded: small cases hold few of them.
static void fill_with_noise(const Bound *bound)
{
        Tensors tensors = tensors_of_call(bound);
        uint32_t state = 1;
        for (uint32_t i = 0; i < tensors.n; i++) {
                const Tensor *tensor = tensors.items[i];
                int64_t n = meta_numel(&tensor->meta);
                for (int64_t k = 0; k < n && dtype_is_float(tensor->meta.dtype); k++) {
                        state = state * 1664525u + 1013904223u;
                        element_from_f64(tensor->meta.dtype,
                                         (char *)tensor_data(tensor) +
                                                 k * dtype_info[tensor->meta.dtype].bytes,
                                         0.1 + (state >> 8) * 0x1p-24);
                }
        }
}

static void try_layout(Trial *trial, Layout layout, bool noise)
{
        const OpDef *op = trial->bound->overload->op;
        bool exact = (op->traits & TRAIT_LAYOUT) != 0;
        Bound plain, turned;
        Value want, got;
        copy_call(trial->bound, CONTIGUOUS, &plain);
        if (noise)
                fill_with_noise(&plain);
        copy_call(&plain, layout, &turned);
        if (run(trial, &plain, &want) == STATUS_OK) {
                exact ? trial->n_layout++ : trial->n_near++;
                string_map_set(&trial->layouts, trial->bound->overload->name, trial, NULL);
                if (run(trial, &turned, &got) != STATUS_OK)
                        wrong(trial, "refuses operands in another layout: %s", failure_current()->message);
                else if (!results_equal(got, want, exact ? same_elements : near_elements))
                        wrong(trial, "gives something else for %s operands",
                              layout == CHANNELS_LAST ? "channels_last" : "permuted");
                else if (layout == CHANNELS_LAST && !is_dense(got))
                        wrong(trial, "gives a result that is not dense for channels_last operands");
                value_clear(&got);
        }
        value_clear(&want);
        drop_call(&plain);
        drop_call(&turned);
}

static bool same_strides(Value a, Value b)
{
        Tensors x = tensors_of(a), y = tensors_of(b);
        for (uint32_t k = 0; k < x.n && k < y.n; k++) {
                if (!meta_same_places(&x.items[k]->meta, &y.items[k]->meta))
                        return false;
        }
        return x.n == y.n;
}

// Views may be refused: what is a view in one layout may be none in another.
static void try_any_layout(Trial *trial, Layout layout)
{
        const OpDef *op = trial->bound->overload->op;
        bool view = (op->traits & TRAIT_BY_SHAPE) != 0;
        Bound plain, turned;
        Value want, got;
        copy_call(trial->bound, CONTIGUOUS, &plain);
        if (!view)
                fill_with_noise(&plain);
        copy_call(&plain, layout, &turned);
        if (run(trial, &plain, &want) == STATUS_OK) {
                bool ran = run(trial, &turned, &got) == STATUS_OK;
                view ? (trial->n_by_shape += ran) : trial->n_any_layout++;
                if (!ran && !view)
                        wrong(trial, "refuses operands in another layout: %s", failure_current()->message);
                else if (ran && !results_equal(got, want, view ? same_elements : near_elements))
                        wrong(trial, "gives other elements for operands in another layout");
                else if (ran && !view && !same_strides(got, want))
                        wrong(trial, "lays its results out as its operands are");
                else if (ran && view && !shares(got, &turned))
                        wrong(trial, "gives no view of argument 0");
                value_clear(&got);
        }
        value_clear(&want);
        drop_call(&plain);
        drop_call(&turned);
}

static void try_layouts(Trial *trial)
{
        Tensors tensors = tensors_of_call(trial->bound);
        bool image = false, several = false;
        for (uint32_t i = 0; i < tensors.n; i++) {
                image |= tensors.items[i]->meta.rank == 4 || tensors.items[i]->meta.rank == 5;
                several |= tensors.items[i]->meta.rank > 1;
        }
        bool elementwise = (trial->bound->overload->op->flags & OP_ELEMENTWISE) != 0;
        if (image)
                try_layout(trial, CHANNELS_LAST, false);
        if (image)
                try_layout(trial, CHANNELS_LAST, true);
        if (elementwise && several)
                try_layout(trial, REVERSED, false);
}

// ---- out == in ----
static Status run_over(Trial *trial, const Bound *bound, uint32_t over, Tensor **out_result)
{
        _Alignas(64) uint8_t state[OP_STATE_BYTES];
        const void *in[SCHEMA_MAX_ARGS];
        const TensorMeta *in_meta[SCHEMA_MAX_ARGS];
        uint32_t n_in = 0;
        OpCall call;
        *out_result = NULL;
        Status status = call_open(trial->emitter, bound->overload, bound->args, bound->given, &call);
        if (status == STATUS_OK)
                status = call.op->infer(&call);
        Tensor *self = bound->args[over].tensor;
        if (status != STATUS_OK || call.n_outs != 1 || call.outs[0].kind != OUT_FRESH ||
            call.outs[0].meta.dtype != self->meta.dtype ||
            !meta_same_places(&call.outs[0].meta, &self->meta)) {
                call_close(&call);
                return status;
        }
        if (call.op->prepare != NULL)
                status = call.op->prepare(&call, state);
        for (uint32_t i = 0; i < call.n_args; i++) {
                if (call.schema->args[i].type != ARG_TENSOR)
                        continue;
                const Tensor *tensor = arg_tensor(&call, (int)i);
                in[n_in] = tensor == NULL ? NULL : tensor_data(tensor);
                in_meta[n_in++] = tensor == NULL ? NULL : &tensor->meta;
        }
        const TensorMeta *out_meta[] = { &call.outs[0].meta };
        void *out[] = { tensor_data(self) };
        OpRun op_run = { .out = out,
                         .in = in,
                         .out_meta = out_meta,
                         .in_meta = in_meta,
                         .n_out = 1,
                         .n_in = n_in,
                         .state = state,
                         .call = &call,
                         .ctx = trial->emitter->ctx };
        if (status == STATUS_OK)
                status = call.op->run(&op_run);
        if (status == STATUS_OK)
                *out_result = self;
        call_close(&call);
        return status;
}

static bool takes_tensors_only(const Bound *bound)
{
        for (uint32_t i = 0; i < bound->overload->schema.n_args; i++) {
                const SchemaArg *arg = &bound->overload->schema.args[i];
                if (arg->type == ARG_TENSOR && bound->args[i].kind != VALUE_TENSOR &&
                    bound->args[i].kind != VALUE_NONE)
                        return false;
        }
        return true;
}

static void try_in_place(Trial *trial)
{
        if (!takes_tensors_only(trial->bound))
                return;
        for (uint32_t i = 0; i < trial->bound->overload->schema.n_args; i++) {
                if (trial->bound->args[i].kind != VALUE_TENSOR)
                        continue;
                Bound apart, over;
                Value want;
                Tensor *got;
                copy_call(trial->bound, CONTIGUOUS, &apart);
                copy_call(trial->bound, CONTIGUOUS, &over);
                if (run(trial, &apart, &want) == STATUS_OK && want.kind == VALUE_TENSOR) {
                        if (run_over(trial, &over, i, &got) != STATUS_OK)
                                wrong(trial, "fails when it computes over argument %u", i);
                        else if (got != NULL && !tensors_equal(got, want.tensor, same_elements))
                                wrong(trial, "gives something else when it computes over argument %u", i);
                        trial->n_in_place += got != NULL;
                }
                value_clear(&want);
                drop_call(&apart);
                drop_call(&over);
        }
}

// ---- copies, views ----
static void try_copies(Trial *trial)
{
        Bound copy;
        Value result;
        copy_call(trial->bound, AS_IT_IS, &copy);
        if (copy.args[0].kind == VALUE_TENSOR && run(trial, &copy, &result) == STATUS_OK) {
                Tensor *cast;
                TensorMeta meta = copy.args[0].tensor->meta;
                trial->n_copies++;
                if (result.kind == VALUE_TENSOR) {
                        meta.dtype = result.tensor->meta.dtype;
                        meta_set_contiguous(&meta);
                        cr_assert_eq(tensor_new(&meta, NULL, &cast), STATUS_OK);
                        tensor_copy_data(copy.args[0].tensor, cast);
                        if (!tensors_equal(result.tensor, cast, same_elements))
                                wrong(trial, "claims to copy, but gives something else");
                        tensor_unref(cast);
                }
                value_clear(&result);
        }
        drop_call(&copy);
}

static void try_same_geometry(Trial *trial)
{
        Bound copy;
        Value result;
        copy_call(trial->bound, AS_IT_IS, &copy);
        if (run(trial, &copy, &result) == STATUS_OK) {
                const Tensor *self = copy.args[0].tensor;
                trial->n_views++;
                if (result.kind != VALUE_TENSOR || result.tensor->storage != self->storage ||
                    result.tensor->offset != self->offset ||
                    !meta_same_places(&result.tensor->meta, &self->meta))
                        wrong(trial, "claims self's geometry, but gives another view");
                value_clear(&result);
        }
        drop_call(&copy);
}

// ---- writes ----
static const Value *argument(const Bound *bound, const char *name)
{
        for (uint32_t i = 0; i < bound->overload->schema.n_args; i++) {
                if (strcmp(bound->overload->schema.args[i].name, name) == 0)
                        return &bound->args[i];
        }
        return NULL;
}

static bool asks_for_statistics(const Bound *bound)
{
        const Value *training = argument(bound, "training"), *input = argument(bound, "use_input_stats"),
                    *mean = argument(bound, "running_mean");
        return ((training != NULL && training->b) || (input != NULL && input->b)) && mean != NULL &&
               mean->kind == VALUE_TENSOR && meta_numel(&mean->tensor->meta) > 0;
}

// Only what the schema or the row says is written changes.
static void try_writes(Trial *trial)
{
        const Schema *schema = &trial->bound->overload->schema;
        bool statistics = (trial->bound->overload->op->traits & TRAIT_STATISTICS) != 0;
        Bound copy;
        Value result;
        bool changed = false;
        copy_call(trial->bound, AS_IT_IS, &copy);
        bool good = run(trial, &copy, &result) == STATUS_OK;
        for (uint32_t i = 0; i < schema->n_args && good; i++) {
                if (schema->args[i].is_written)
                        continue;
                bool same = results_equal(copy.args[i], trial->bound->args[i], same_elements);
                changed |= !same;
                trial->n_unwritten++;
                if (!same && !statistics)
                        wrong(trial, "writes to argument %s, but nothing says so", schema->args[i].name);
        }
        if (good && statistics && op_alias(copy.overload) != ALIAS_SCHEMA && asks_for_statistics(&copy))
                trial->n_statistics += changed;
        value_clear(&result);
        drop_call(&copy);
}

// ---- rows ----
static void compare_rows(Trial *trial, const FusedTail *tail, Bound *part, const Tensor *whole)
{
        Tensor *rows = part->args[0].tensor;
        for (int64_t begin = 0, end; begin < tail->n_rows; begin = end) {
                end = MIN(begin + (tail->n_rows + 1) / 2, tail->n_rows);
                TensorMeta meta = rows->meta;
                for (int d = 0; d < tail->lead; d++)
                        meta.size[d] = d == 0 ? end - begin : 1;
                meta_set_contiguous(&meta);
                Tensor *block;
                Value result;
                cr_assert_eq(tensor_new_view(rows->storage, &meta, rows->offset + begin * tail->n_in, &block),
                             STATUS_OK);
                part->args[0].tensor = block;
                const char *want = (const char *)tensor_data(whole) +
                                   begin * tail->n_out * dtype_info[whole->meta.dtype].bytes;
                if (run(trial, part, &result) != STATUS_OK || result.kind != VALUE_TENSOR ||
                    meta_numel(&result.tensor->meta) != (end - begin) * tail->n_out ||
                    !same_elements(whole->meta.dtype, tensor_data(result.tensor), want,
                                   (end - begin) * tail->n_out))
                        wrong(trial, "rows %ld to %ld alone give something else", (long)begin, (long)end);
                value_clear(&result);
                tensor_unref(block);
        }
        part->args[0].tensor = rows;
}

static void try_rows(Trial *trial)
{
        Bound copy;
        Value whole = value_none();
        OpCall call;
        FusedTail tail;
        int operand[SCHEMA_MAX_ARGS];
        copy_call(trial->bound, CONTIGUOUS, &copy);
        memset(operand, -1, sizeof(operand));
        bool opened = call_open(trial->emitter, copy.overload, copy.args, copy.given, &call) == STATUS_OK;
        if (opened && call.op->infer(&call) == STATUS_OK && fused_takes_tail(&call) &&
            fused_tail_init(&tail, &call, operand) == STATUS_OK) {
                trial->n_rows++;
                cr_assert_eq(run(trial, &copy, &whole), STATUS_OK);
                if ((tail.n_out < tail.n_in) != (call.op->row_end == END_BY_DIMS) && tail.n_in > 1)
                        wrong(trial, "is said to %s, but does not",
                              call.op->row_end == END_BY_DIMS ? "reduce rows" : "keep the size of rows");
                compare_rows(trial, &tail, &copy, whole.tensor);
                value_clear(&whole);
                fused_tail_deinit(&tail);
        }
        if (opened)
                call_close(&call);
        drop_call(&copy);
}

// ---- activations: those of the fused products are those of the rows ----
static void compare_activation(Trial *trial, const Tensor *x, const FusedActivation *activation,
                               const Tensor *want)
{
        int64_t size[] = { meta_numel(&x->meta), 1 }, one[] = { 1, 1 };
        TensorMeta meta;
        Tensor *column, *weight;
        meta_init(&meta, DTYPE_F32, 2, one);
        cr_assert_eq(tensor_new(&meta, NULL, &weight), STATUS_OK);
        *(float *)tensor_data(weight) = 1;
        meta_init(&meta, DTYPE_F32, 2, size);
        cr_assert_eq(tensor_new_view(x->storage, &meta, x->offset, &column), STATUS_OK);
        Value name, result = value_none();
        cr_assert_eq(value_str_new(activation->name, strlen(activation->name), &name), STATUS_OK);
        Value args[] = { { .kind = VALUE_TENSOR, .tensor = column },
                         { .kind = VALUE_TENSOR, .tensor = weight },
                         value_none(),
                         name,
                         value_float(activation->alpha),
                         value_float(activation->beta),
                         value_none() };
        cr_assert_eq(emit(trial->emitter, op_for(ROLE_FUSED_LINEAR), args, 127, &result), STATUS_OK, "%s",
                     failure_current()->message);
        const float *a = tensor_data(result.tensor), *b = tensor_data(want), *in = tensor_data(x);
        for (int64_t i = 0; i < size[0]; i++) {
                if (isfinite(in[i]) && a[i] != b[i] && !(isnan(a[i]) && isnan(b[i]))) {
                        wrong(trial, "is no %s: of %.9g it gives %.9g, not %.9g", activation->name, in[i],
                              b[i], a[i]);
                        break;
                }
        }
        value_clear(&result);
        value_clear(&name);
        tensor_unref(column);
        tensor_unref(weight);
}

static void try_activation(Trial *trial)
{
        Bound copy;
        Value want;
        OpCall call;
        FusedActivation activation;
        copy_call(trial->bound, CONTIGUOUS, &copy);
        const TensorMeta *x = copy.args[0].kind == VALUE_TENSOR ? &copy.args[0].tensor->meta : NULL;
        if (x != NULL && x->dtype == DTYPE_F32 && meta_numel(x) > 0 &&
            run(trial, &copy, &want) == STATUS_OK) {
                cr_assert_eq(call_open(trial->emitter, copy.overload, copy.args, copy.given, &call),
                             STATUS_OK);
                if (want.tensor->meta.dtype == DTYPE_F32 && fused_activation(&call, &activation)) {
                        trial->n_activations++;
                        compare_activation(trial, copy.args[0].tensor, &activation, want.tensor);
                }
                call_close(&call);
                value_clear(&want);
        }
        drop_call(&copy);
}

// ---- all of them ----
static void try_case(Trial *trial)
{
        const Overload *overload = trial->bound->overload;
        const OpDef *op = overload->op;
        try_writes(trial);
        if (overload->schema.text != op->schema) // a twin
                return;
        if (op_alias(overload) == ALIAS_FRESH) {
                try_fresh(trial, AS_IT_IS);
                try_fresh(trial, CONTIGUOUS);
                try_fresh(trial, CHANNELS_LAST);
                try_fresh(trial, REVERSED);
                try_aliased(trial);
        }
        if ((op->traits & (TRAIT_LAYOUT | TRAIT_LAYOUT_NEAR)) != 0)
                try_layouts(trial);
        if ((op->traits & (TRAIT_BY_SHAPE | TRAIT_ANY_LAYOUT)) != 0) {
                try_any_layout(trial, CHANNELS_LAST);
                try_any_layout(trial, REVERSED);
        }
        if ((op->flags & OP_ELEMENTWISE) != 0)
                try_in_place(trial);
        if ((op->traits & TRAIT_COPIES) != 0)
                try_copies(trial);
        if ((op->traits & TRAIT_SAME_GEOMETRY) != 0)
                try_same_geometry(trial);
        if (op->row_end != END_NONE)
                try_rows(trial);
        if (op->activation != NULL)
                try_activation(trial);
}

static void try_call(Trial *trial, const char *name, const CallArgs *call)
{
        Bound bound = { .overload = op_find(name) };
        if (bound.overload == NULL ||
            schema_bind(&bound.overload->schema, call, BIND_NUMBERS, bound.args, &bound.given) != STATUS_OK)
                return;
        trial->bound = &bound;
        try_case(trial);
        schema_release(&bound.overload->schema, bound.args, bound.given);
}

static void bind_case(Trial *trial, const char *name)
{
        const GoldenCase *golden = trial->golden;
        CallArgs call = { .args = golden->args.seq->items, .n_args = golden->args.seq->n };
        if (golden->kwargs.kind == VALUE_DICT) {
                call.kwargs = golden->kwargs.dict->items;
                call.n_kwargs = golden->kwargs.dict->n;
        }
        try_call(trial, name, &call);
}

static void try_group(Trial *trial, const char *group)
{
        char path[512];
        GoldenFile file;
        GoldenCase golden;
        bool more = true;
        snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, group);
        cr_assert_eq(golden_open(path, &file), STATUS_OK, "%s", failure_current()->message);
        trial->golden = &golden;
        for (;;) {
                cr_assert_eq(golden_next(&file, &golden, &more), STATUS_OK);
                if (!more)
                        break;
                bind_case(trial, golden.op);
                // The row of ours has the arguments of this one.
                if (strcmp(golden.op, "aten._native_batch_norm_legit_no_training.default") == 0)
                        bind_case(trial, "fxserve::batch_norm_eval");
                golden_case_deinit(&golden);
        }
        golden_close(&file);
}

// The golden cases of these rows hold no images.
static void try_along_channels(Trial *trial)
{
        static const char *const names[] = { "aten::var.dim",           "aten::var.correction",
                                             "aten::std.dim",           "aten::std.correction",
                                             "aten::var_mean.dim",      "aten::var_mean.correction",
                                             "aten::std_mean.dim",      "aten::std_mean.correction",
                                             "aten::norm.ScalarOpt_dim" };
        TensorMeta meta;
        Tensor *image;
        Value dim, keys[2];
        meta_init(&meta, DTYPE_F32, 4, (int64_t[]){ 2, 3, 4, 5 });
        cr_assert_eq(tensor_new(&meta, NULL, &image), STATUS_OK);
        cr_assert_eq(value_ints_new(VALUE_LIST, (int64_t[]){ 1 }, 1, &dim), STATUS_OK);
        cr_assert_eq(value_str_new("dim", strlen("dim"), &keys[0]), STATUS_OK);
        cr_assert_eq(value_str_new("keepdim", strlen("keepdim"), &keys[1]), STATUS_OK);
        Value self = value_tensor_take(image);
        const Value args[] = { self, value_float(2) };
        GoldenCase none = { .op = "channels" }; // named where something is wrong
        trial->golden = &none;
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                const struct DictItem with[] = { { keys[0].str, dim }, { keys[1].str, value_bool(true) } };
                CallArgs call = { .args = args,
                                  .n_args = strstr(names[i], "norm") != NULL ? 2 : 1,
                                  .kwargs = with,
                                  .n_kwargs = 2 };
                try_call(trial, names[i], &call);
        }
        value_unref(keys[0]);
        value_unref(keys[1]);
        value_unref(dim);
        value_unref(self);
}

static uint32_t n_layouts_untried(const Trial *trial)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                bool claims = (overload->op->traits & (TRAIT_LAYOUT | TRAIT_LAYOUT_NEAR)) != 0 &&
                              (overload->op->flags & OP_INTERNAL) == 0 && // the passes' tests run these
                              overload->schema.text == overload->op->schema;
                if (!claims || string_map_get(&trial->layouts, overload->name) != NULL)
                        continue;
                fprintf(stderr, "%s claims to follow layouts, which no case tries\n", overload->name);
                n++;
        }
        return n;
}

Test(traits, of_every_row_hold_on_its_golden_cases, .timeout = 300)
{
        static const char *const groups[] = {
#define GOLDEN_GROUP(group) #group,
#include "golden_groups.def"
#undef GOLDEN_GROUP
        };
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        RunContext ctx;
        Generator generator;
        run_context_init(&ctx);
        ctx.generator = &generator;
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(eager_open(graph, &ctx, &eager), STATUS_OK);
        Trial trial = { .emitter = eager_emitter(eager) };
        for (size_t g = 0; g < ARRAY_LENGTH(groups); g++)
                try_group(&trial, groups[g]);
        try_along_channels(&trial);
        fprintf(stderr,
                "tried: fresh %u, aliased %u, layout %u, near %u, in place %u, copies %u, views %u, rows %u, "
                "activations %u, unwritten %u, statistics %u, draws %u, by shape %u, any layout %u\n",
                trial.n_fresh, trial.n_aliased, trial.n_layout, trial.n_near, trial.n_in_place,
                trial.n_copies, trial.n_views, trial.n_rows, trial.n_activations, trial.n_unwritten,
                trial.n_statistics, trial.n_draws, trial.n_by_shape, trial.n_any_layout);
        cr_expect(trial.n_fresh > 0 && trial.n_aliased > 0 && trial.n_layout > 0 && trial.n_near > 0 &&
                  trial.n_in_place > 0 && trial.n_copies > 0 && trial.n_views > 0 && trial.n_rows > 0 &&
                  trial.n_activations > 0 && trial.n_unwritten > 0 && trial.n_statistics > 0 &&
                  trial.n_draws > 0 && trial.n_by_shape > 0 && trial.n_any_layout > 0);
        cr_expect_eq(n_layouts_untried(&trial), 0);
        string_map_deinit(&trial.layouts);
        cr_assert_eq(trial.n_wrong, 0, "%u claims do not hold", trial.n_wrong);
}

Test(traits, every_row_says_what_its_results_share)
{
        uint32_t n_wrong = 0;
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                uint32_t traits = overload->op->traits;
                bool fresh = (traits & TRAIT_FRESH) != 0, may_share = (traits & TRAIT_MAY_SHARE) != 0;
                bool twin = overload->schema.text != overload->op->schema;
                OpAlias alias = op_alias(overload);
                if ((alias == ALIAS_MAY_SHARE) == may_share && !(fresh && may_share) &&
                    (twin || !(fresh && alias == ALIAS_SCHEMA)))
                        continue;
                if (twin && alias == ALIAS_SCHEMA)
                        continue;
                fprintf(stderr, "%s: say TRAIT_FRESH, or TRAIT_MAY_SHARE, or Tensor(a) in the schema\n",
                        overload->name);
                n_wrong++;
        }
        cr_assert_eq(n_wrong, 0);
}
