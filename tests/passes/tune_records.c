// SPDX-License-Identifier: Apache-2.0
// tune_records.c: a record of measured algorithms decides what a program runs, and its id.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "tests/compile/both.h"
#include "tests/passes/made_graph.h"

TestSuite(tune_records, .init = made_start, .timeout = 60);

// A convolution that every algorithm but depthwise can take.
static const char *const tuned_inputs[] = { "1,32,14,14", NULL }, *const tuned_states[] = { "w:32,32,3,3",
                                                                                            "b:32", NULL };
static const char tuned_nodes[] =
        "{\"op\": \"call_function\", \"name\": \"c\", \"target\": \"torch.ops.aten.conv2d.default\", "
        "\"args\": [\"%x0\", \"%w\", \"%b\", "
        "[1, 1], [1, 1]]},"
        "{\"op\": \"call_function\", \"name\": \"r\", \"target\": \"torch.ops.aten.relu.default\", \"args\": "
        "[\"%c\"]},"
        "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%r\"]}";

static Value tuned_run(const Made *made, TuneRecord *record, ProgramId *out_id, char kernel[64])
{
        Program *program;
        Frame frame;
        RunContext ctx;
        Value out = value_none();
        CompileOptions options = { .n_threads = 1, .tune = record };
        ValueSpan inputs = { made->inputs, made->n_inputs };
        cr_assert_eq(compile_graph(made->graph, inputs, &options, NULL, &program), STATUS_OK, "%s",
                     failure_current()->message);
        *out_id = program->id;
        kernel[0] = '\0';
        for (uint32_t i = 0; i < program->n_code; i++) {
                if (program->code[i].call != NULL &&
                    strstr(program->code[i].call->overload->name, "conv") != NULL)
                        snprintf(kernel, 64, "%s", program->code[i].name);
        }
        frame_init(&frame);
        run_context_init(&ctx);
        cr_assert_eq(program_run(program, &frame, &(ProgramRun){ .inputs = inputs }, &ctx, &out, NULL),
                     STATUS_OK);
        frame_deinit(&frame);
        program_unref(program);
        return out;
}

static bool equal_bits(Value a, Value b)
{
        return memcmp(tensor_data(a.tensor), tensor_data(b.tensor),
                      (size_t)meta_numel(&a.tensor->meta) * sizeof(float)) == 0;
}

static TuneRecord *record_for(const char *key, const char *algorithm)
{
        char text[400];
        TuneRecord *record = NULL;
        int n = snprintf(text, sizeof(text), "%s\t%s\n", key, algorithm);
        cr_assert_eq(tune_parse(text, (size_t)n, &record), STATUS_OK);
        return record;
}

// The key of the one convolution, as learning writes it.
static void learn_key(const Made *made, char key[300])
{
        TuneRecord *record;
        Text text = { 0 };
        ProgramId id;
        char kernel[64];
        cr_assert_eq(tune_new(true, &record), STATUS_OK);
        value_unref(tuned_run(made, record, &id, kernel));
        tune_print(record, &text);
        cr_assert_eq(tune_count(record), 1, "%s", text.data);
        snprintf(key, 300, "%.*s", (int)strcspn(text.data, "\t"), text.data);
        text_deinit(&text);
        tune_free(record);
}

Test(tune_records, a_tune_record_decides_the_algorithm_and_the_id)
{
        static const struct {
                const char *algorithm, *kernel;
        } cases[] = { { "direct", "direct:" },
                      { "winograd_4x4", "winograd_4x4:" },
                      { "winograd_2x2", "winograd_2x2:" },
                      { "onednn", "" } };
        Made made = made_graph(tuned_inputs, tuned_states, tuned_nodes);
        ProgramId plain_id, id;
        char key[300], kernel[64];
        learn_key(&made, key);
        Value plain = tuned_run(&made, NULL, &plain_id, kernel);
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                TuneRecord *record = record_for(key, cases[i].algorithm);
                Value out = tuned_run(&made, record, &id, kernel),
                      again = tuned_run(&made, record, &id, kernel);
                cr_expect_eq(strncmp(kernel, cases[i].kernel, strlen(cases[i].kernel)), 0, "%s ran %s",
                             cases[i].algorithm, kernel);
                cr_expect(strcmp(cases[i].algorithm, "onednn") != 0 ||
                                  (strstr(kernel, "direct") == NULL && strstr(kernel, "winograd") == NULL),
                          "%s ran %s", cases[i].algorithm, kernel);
                cr_expect_str_neq(id.hex, plain_id.hex);
                cr_expect(equal_bits(out, again));
                for (int64_t k = 0; k < meta_numel(&out.tensor->meta); k++) {
                        float a = ((float *)tensor_data(out.tensor))[k],
                              b = ((float *)tensor_data(plain.tensor))[k];
                        cr_assert_leq(fabsf(a - b), 1e-5f + 1e-4f * fabsf(b), "%s", cases[i].algorithm);
                }
                value_unref(out);
                value_unref(again);
                tune_free(record);
        }
        value_unref(plain);
        made_deinit(&made);
}

Test(tune_records, what_was_learnt_gives_the_same_program_when_given_back)
{
        Made made = made_graph(tuned_inputs, tuned_states, tuned_nodes);
        TuneRecord *learning, *record;
        Text text = { 0 };
        ProgramId id, again_id;
        char kernel[64], again_kernel[64];
        cr_assert_eq(tune_new(true, &learning), STATUS_OK);
        Value out = tuned_run(&made, learning, &id, kernel);
        tune_print(learning, &text);
        cr_assert_eq(tune_parse(text.data, text.n, &record), STATUS_OK);
        Value again = tuned_run(&made, record, &again_id, again_kernel);
        cr_expect_str_eq(id.hex, again_id.hex);
        cr_expect_str_eq(kernel, again_kernel);
        cr_expect(equal_bits(out, again));
        value_unref(out);
        value_unref(again);
        text_deinit(&text);
        tune_free(learning);
        tune_free(record);
        made_deinit(&made);
}

Test(tune_records, what_one_node_may_not_cost_is_not_timed)
{
        Made made = made_graph(tuned_inputs, tuned_states, tuned_nodes);
        const Limits usual = limits;
        ProgramId id;
        char kernel[64];
        for (int i = 0; i < 3; i++) {
                TuneRecord *record;
                limits = usual;
                *(i == 0   ? &limits.max_node_bytes
                  : i == 1 ? &limits.max_node_flops
                           : &limits.max_run_memory) = 80000;
                cr_assert_eq(tune_new(true, &record), STATUS_OK);
                value_unref(tuned_run(&made, record, &id, kernel));
                cr_expect_eq(tune_count(record), 0, "case %d", i);
                tune_free(record);
        }
        limits = usual;
        made_deinit(&made);
}

Test(tune_records, a_record_that_does_not_fit_leaves_the_rule)
{
        Made made = made_graph(tuned_inputs, tuned_states, tuned_nodes);
        ProgramId id;
        char key[300], kernel[64], plain_kernel[64];
        learn_key(&made, key);
        Value plain = tuned_run(&made, NULL, &id, plain_kernel);
        static const char *const names[] = { "depthwise", "no_such_algorithm" };
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                TuneRecord *record = record_for(key, names[i]);
                Value out = tuned_run(&made, record, &id, kernel);
                cr_expect_str_eq(kernel, plain_kernel);
                cr_expect(equal_bits(out, plain));
                value_unref(out);
                tune_free(record);
        }
        value_unref(plain);
        made_deinit(&made);
}
