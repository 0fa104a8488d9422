// SPDX-License-Identifier: Apache-2.0
// golden.c: every case of tests/golden through the eager emitter: dtype, shape, strides, sharing,
// values, writes. One test per group; failures are listed by operator with their counts and the
// first of each in words.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/eval/eager.h"
#include "core/kernels/random/generator.h"
#include "tests/ops/golden_file.h"

typedef struct Tally {
        uint32_t n_cases, n_failed;
        char first[700];
} Tally;

typedef struct Report {
        StringMap by_op; // op -> Tally
        Arena arena;
        uint32_t n_cases, n_failed;
} Report;

static char words[600];

#define differs(...) (snprintf(words, sizeof(words), __VA_ARGS__), false)

// ---- comparing ----
static bool is_close(double got, double want, const GoldenCase *golden)
{
        if (isnan(want) || isinf(want))
                return isnan(want) ? isnan(got) : got == want;
        return fabs(got - want) <= golden->atol + golden->rtol * fabs(want);
}

static bool elements_match(const GoldenCase *golden, Dtype dtype, const char *got, const char *want,
                           int64_t n)
{
        int64_t bytes = dtype_info[dtype].bytes;
        bool is_complex = dtype_info[dtype].kind == DTYPE_KIND_COMPLEX,
             is_float = is_complex || dtype_is_float(dtype);
        if (is_complex) {
                dtype = dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
                bytes /= 2;
                n *= 2;
        }
        for (int64_t i = 0; i < n; i++) {
                double a = element_as_f64(dtype, got + i * bytes),
                       b = element_as_f64(dtype, want + i * bytes);
                bool same = is_float || golden->atol > 0
                                    ? is_close(a, b, golden)
                                    : memcmp(got + i * bytes, want + i * bytes, (size_t)bytes) == 0;
                if (!same)
                        return differs("element %ld is %.9g, expected %.9g", (long)i, a, b);
        }
        return true;
}

static bool values_match(const GoldenCase *golden, const Tensor *got, const Tensor *want)
{
        char got_text[200], want_text[200];
        if (got->meta.dtype != want->meta.dtype)
                return differs("dtype is %s, expected %s", dtype_info[got->meta.dtype].name,
                               dtype_info[want->meta.dtype].name);
        if (!meta_same_shape(&got->meta, &want->meta))
                return differs("shape is %s, expected %s",
                               shape_text(got->meta.rank, got->meta.size, got_text, sizeof(got_text)),
                               shape_text(want->meta.rank, want->meta.size, want_text, sizeof(want_text)));
        _cleanup_(tensor_unrefp) Tensor *a = NULL, *b = NULL;
        if (tensor_contiguous((Tensor *)(uintptr_t)got, NULL, &a) != STATUS_OK ||
            tensor_contiguous((Tensor *)(uintptr_t)want, NULL, &b) != STATUS_OK)
                return differs("out of memory");
        return elements_match(golden, a->meta.dtype, tensor_data(a), tensor_data(b), meta_numel(&a->meta));
}

static bool hash_matches(const char *want, const Tensor *got)
{
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        if (tensor_contiguous((Tensor *)(uintptr_t)got, NULL, &dense) != STATUS_OK)
                return differs("out of memory");
        HashHex hash = sha256_of(tensor_data(dense),
                                 (size_t)meta_numel(&dense->meta) * dtype_info[dense->meta.dtype].bytes);
        return strcmp(hash.hex, want) == 0 ? true : differs("the elements' hash is %s", hash.hex);
}

static bool strides_match(const TensorMeta *got, const TensorMeta *want)
{
        char got_text[200], want_text[200];
        if (meta_numel(want) == 0)
                return true;
        for (int d = 0; d < want->rank; d++) {
                if (want->size[d] > 1 && got->stride[d] != want->stride[d])
                        return differs("strides are %s, expected %s",
                                       shape_text(got->rank, got->stride, got_text, sizeof(got_text)),
                                       shape_text(want->rank, want->stride, want_text, sizeof(want_text)));
        }
        return true;
}

static bool sharing_matches(const Want *want, const Tensor *got, const Value *args, uint32_t n_args)
{
        if (want->alias >= 0 && (uint32_t)want->alias < n_args) {
                const Value *arg = &args[want->alias];
                if (arg->kind == VALUE_TENSOR && arg->tensor->storage != got->storage)
                        return differs("shares no storage with argument %d, but should", want->alias);
                if (arg->kind == VALUE_TENSOR && got->offset != want->offset)
                        return differs("offset is %ld, expected %ld", (long)got->offset, (long)want->offset);
                return true;
        }
        // Whether empty tensors share a storage is not recorded.
        for (uint32_t i = 0; i < n_args && meta_numel(&got->meta) > 0; i++) {
                if (args[i].kind == VALUE_TENSOR && args[i].tensor->storage == got->storage)
                        return differs("shares storage with argument %u, but should not", i);
        }
        return true;
}

static bool plain_matches(const GoldenCase *golden, Value got, Value want)
{
        if (got.kind != want.kind)
                return differs("is %s, expected %s", value_kind_name(got.kind), value_kind_name(want.kind));
        switch (want.kind) {
        case VALUE_BOOL:
                return got.b == want.b ? true : differs("is %d, expected %d", got.b, want.b);
        case VALUE_INT:
                return got.i == want.i ? true : differs("is %ld, expected %ld", (long)got.i, (long)want.i);
        case VALUE_FLOAT:
                return is_close(got.f, want.f, golden) ? true
                                                       : differs("is %.17g, expected %.17g", got.f, want.f);
        default:
                return true;
        }
}

static bool matches(const GoldenCase *golden, const Want *want, Value got, const Value *args, uint32_t n_args)
{
        switch (want->kind) {
        case WANT_VALUE:
                return plain_matches(golden, got, want->value);
        case WANT_ARG:
                return got.kind == VALUE_TENSOR && got.tensor == args[want->arg].tensor
                               ? true
                               : differs("is not argument %d itself, but should be", want->arg);
        case WANT_LIST:
                if (!value_is_sequence(got) || got.seq->n != want->n)
                        return differs("is %s of %u, expected %u values", value_kind_name(got.kind),
                                       value_is_sequence(got) ? got.seq->n : 1, want->n);
                for (uint32_t i = 0; i < want->n; i++) {
                        if (!matches(golden, &want->items[i], got.seq->items[i], args, n_args))
                                return false;
                }
                return true;
        case WANT_HASH:
                return got.kind == VALUE_TENSOR ? hash_matches(want->hash, got.tensor)
                                                : differs("is no Tensor");
        case WANT_TENSOR:
                break;
        }
        if (got.kind != VALUE_TENSOR)
                return differs("is %s, expected a Tensor", value_kind_name(got.kind));
        return values_match(golden, got.tensor, want->tensor) &&
               strides_match(&got.tensor->meta, &want->tensor->meta) &&
               sharing_matches(want, got.tensor, args, n_args);
}

static bool outs_match(const GoldenCase *golden, const Schema *schema, Value got, const Value *args)
{
        const Want *outs = &golden->outs;
        if (schema->returns == RETURN_NOTHING)
                return got.kind == VALUE_NONE;
        if (schema->returns == RETURN_TUPLE)
                return matches(golden, outs, got, args, schema->n_args);
        return outs->n == 1 ? matches(golden, &outs->items[0], got, args, schema->n_args)
                            : differs("one result, expected %u", outs->n);
}

static bool mutations_match(const GoldenCase *golden, const Schema *schema, const Value *args)
{
        for (uint32_t k = 0; k < golden->mutated.n; k++) {
                const Want *want = &golden->mutated.items[k];
                uint32_t i = 0;
                while (i < schema->n_args && strcmp(schema->args[i].name, want->name) != 0)
                        i++;
                if (i == schema->n_args || args[i].kind != VALUE_TENSOR)
                        return differs("no tensor argument %s", want->name);
                if (want->kind == WANT_HASH ? !hash_matches(want->hash, args[i].tensor)
                                            : !values_match(golden, args[i].tensor, want->tensor))
                        return false;
        }
        return true;
}

// ---- running ----
static bool run_case(Emitter *emitter, const GoldenCase *golden)
{
        const Overload *overload = op_find(golden->op);
        if (overload == NULL)
                return differs("not in the table");
        CallArgs call = { .args = golden->args.seq->items, .n_args = golden->args.seq->n };
        if (golden->kwargs.kind == VALUE_DICT) {
                call.kwargs = golden->kwargs.dict->items;
                call.n_kwargs = golden->kwargs.dict->n;
        }
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given = 0;
        if (schema_bind(&overload->schema, &call, BIND_NUMBERS, args, &given) != STATUS_OK)
                return differs("does not bind: %.400s", failure_current()->message);
        Value result = value_none();
        generator_seed(emitter->ctx->generator, (uint64_t)golden->seed);
        Status status = emit(emitter, overload, args, given, &result);
        bool good = status == STATUS_OK ? outs_match(golden, &overload->schema, result, args) &&
                                                  mutations_match(golden, &overload->schema, args)
                                        : differs("fails: %.400s", failure_current()->message);
        value_clear(&result);
        schema_release(&overload->schema, args, given);
        return good;
}

static void tally(Report *report, const GoldenCase *golden, bool good)
{
        Tally *row = string_map_get(&report->by_op, golden->op);
        if (row == NULL) {
                row = arena_alloc(&report->arena, sizeof(*row));
                string_map_set(&report->by_op, arena_text(&report->arena, golden->op, strlen(golden->op)),
                               row, NULL);
        }
        row->n_cases++;
        report->n_cases++;
        if (good)
                return;
        if (row->n_failed++ == 0)
                snprintf(row->first, sizeof(row->first), "line %d (%.60s): %s", golden->line, golden->opinfo,
                         words);
        report->n_failed++;
}

static void print_report(const char *group, const Report *report)
{
        fprintf(stderr, "%s: %u of %u cases fail\n", group, report->n_failed, report->n_cases);
        for (uint32_t i = 0; i < report->by_op.n; i++) {
                const Tally *row = report->by_op.entries[i].value;
                if (row->n_failed > 0)
                        fprintf(stderr, "  %s: %u of %u; %s\n", report->by_op.entries[i].key, row->n_failed,
                                row->n_cases, row->first);
        }
}

static void run_group(const char *group, Report *report)
{
        char path[512];
        GoldenFile file;
        GoldenCase golden;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        RunContext ctx;
        bool more = true;
        Generator generator;
        run_context_init(&ctx);
        ctx.generator = &generator;
        snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, group);
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        cr_assert_eq(eager_open(graph, &ctx, &eager), STATUS_OK);
        cr_assert_eq(golden_open(path, &file), STATUS_OK, "%s", failure_current()->message);
        for (;;) {
                cr_assert_eq(golden_next(&file, &golden, &more), STATUS_OK, "%s line %d: %s", group,
                             file.line, failure_current()->message);
                if (!more)
                        break;
                tally(report, &golden, run_case(eager_emitter(eager), &golden));
                golden_case_deinit(&golden);
        }
        golden_close(&file);
}

static void report_deinit(Report *report)
{
        string_map_deinit(&report->by_op);
        arena_deinit(&report->arena);
}

#define GOLDEN_GROUP(group)                                                                                  \
        Test(golden, group##_gives_what_pytorch_gives, .timeout = 120)                                       \
        {                                                                                                    \
                Report report = { 0 };                                                                       \
                arena_init(&report.arena, 0);                                                                \
                run_group(#group, &report);                                                                  \
                print_report(#group, &report);                                                               \
                uint32_t n_failed = report.n_failed, n_cases = report.n_cases;                               \
                report_deinit(&report);                                                                      \
                cr_assert_gt(n_cases, 0);                                                                    \
                cr_assert_eq(n_failed, 0, "%u cases fail", n_failed);                                        \
        }
#include "golden_groups.def"
#undef GOLDEN_GROUP

// ---- coverage ----
static bool listed(const char *text, const char *name)
{
        size_t n = strlen(name);
        for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
                if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0' || at[n] == ' '))
                        return true;
        }
        return false;
}

static char *read_text(const char *name)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, name);
        FILE *stream = fopen(path, "rb");
        if (stream == NULL)
                return calloc(1, 1);
        fseek(stream, 0, SEEK_END);
        size_t n = (size_t)ftell(stream);
        rewind(stream);
        char *text = calloc(1, n + 1);
        n = fread(text, 1, n, stream);
        text[n] = '\0';
        fclose(stream);
        return text;
}

static bool has_case(const char *cases, const char *target)
{
        char pattern[200];
        snprintf(pattern, sizeof(pattern), "{\"op\":\"%s\"", target + strlen("torch.ops."));
        return strstr(cases, pattern) != NULL;
}

enum { LEAST_CASES = 8 };

Test(golden, overloads_have_eight_cases_or_are_listed_as_having_none)
{
        static const char *const groups[] = {
#define GOLDEN_GROUP(group) #group ".jsonl",
#include "golden_groups.def"
#undef GOLDEN_GROUP
        };
        char *cases[ARRAY_LENGTH(groups)];
        char *exceptions = read_text("without_cases.txt");
        uint32_t n_wrong = 0;
        cr_assert_eq(ops_init(), STATUS_OK, "%s", failure_current()->message);
        for (size_t g = 0; g < ARRAY_LENGTH(groups); g++)
                cases[g] = read_text(groups[g]);
        for (uint32_t i = 0; i < n_ops(); i++) {
                const Overload *overload = op_at(i);
                if ((overload->op->flags & OP_HIDDEN) != 0)
                        continue;
                bool found = false;
                for (size_t g = 0; g < ARRAY_LENGTH(groups) && !found; g++)
                        found = has_case(cases[g], overload->target);
                if (found == listed(exceptions, overload->target + strlen("torch.ops."))) {
                        fprintf(stderr, "%s %s\n", overload->target + strlen("torch.ops."),
                                found ? "has cases: take it off the list" : "has no cases and is not listed");
                        n_wrong++;
                } else if (found && op_golden_cases(overload) < LEAST_CASES) {
                        fprintf(stderr, "%s has %u cases, less than %d\n",
                                overload->target + strlen("torch.ops."), op_golden_cases(overload),
                                LEAST_CASES);
                        n_wrong++;
                }
        }
        for (size_t g = 0; g < ARRAY_LENGTH(groups); g++)
                free(cases[g]);
        free(exceptions);
        cr_assert_eq(n_wrong, 0, "%u overloads; tests/golden/without_cases.txt lists those without cases",
                     n_wrong);
}
