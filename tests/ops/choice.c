// SPDX-License-Identifier: Apache-2.0
// choice.c: choices of precisions as lines of a tune record.
#include "core/ops/choice.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Choice *example(int bucket, const char *samples)
{
        Choice *choice;
        cr_assert_eq(choice_new(2, &choice), STATUS_OK);
        choice->bucket = bucket;
        snprintf(choice->samples, sizeof(choice->samples), "%s", samples);
        choice->n_choose = choice->n_verify = 8;
        choice->error = choice_rounded(0.00123456789);
        choice->nodes[0] = (ChosenNode){ 17, PRECISION_INT8, choice_rounded(1.0 / 3) };
        choice->nodes[1] = (ChosenNode){ 99999, PRECISION_F32, 0 };
        choice->n = 2;
        return choice;
}

static void assert_same(const Choice *a, const Choice *b)
{
        cr_assert_eq(a->bucket, b->bucket);
        cr_assert_str_eq(a->samples, b->samples);
        cr_assert_eq(a->error, b->error);
        cr_assert_eq(a->n, b->n);
        for (uint32_t i = 0; i < a->n; i++) {
                cr_assert_eq(a->nodes[i].node, b->nodes[i].node);
                cr_assert_eq(a->nodes[i].precision, b->nodes[i].precision);
                cr_assert_eq(a->nodes[i].error, b->nodes[i].error);
        }
}

Test(choice, lines_hold_choices_and_leave_the_rest_of_the_record_as_it_is)
{
        Choice *choices[] = { example(13, "0123456789abcdef"), example(14, "none") }, **read;
        _cleanup_(tune_freep) TuneRecord *record = NULL, *rest = NULL;
        _cleanup_(text_deinit) Text before = { 0 }, after = { 0 };
        uint32_t n;
        cr_assert_eq(tune_new(false, &record), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 1", "direct"), STATUS_OK);
        cr_assert_eq(tune_learn(record, "winograd", "4x4"), STATUS_OK);
        tune_print(record, &before);
        for (int i = 0; i < 2; i++)
                cr_assert_eq(choice_learn(choices[i], record), STATUS_OK);
        cr_assert_eq(tune_count(record), 8);
        cr_assert_eq(choices_read(record, &rest, &read, &n), STATUS_OK);
        tune_print(rest, &after);
        cr_assert_str_eq(before.data, after.data);
        cr_assert_eq(n, 2);
        for (int i = 0; i < 2; i++) {
                assert_same(choices[i], read[i]);
                choice_unref(read[i]);
                choice_unref(choices[i]);
        }
        free(read);
}

Test(choice, lines_that_are_learnt_in_order_are_appended)
{
        Choice *choices[TOLERANCE_BUCKETS + 1];
        for (int i = 0; i < TOLERANCE_BUCKETS; i++)
                choices[i] = example(i + 1, "0123456789abcdef");
        choices[TOLERANCE_BUCKETS] = example(1, "none");
        for (int i = 0; i <= TOLERANCE_BUCKETS; i++) {
                for (int j = 0; j <= TOLERANCE_BUCKETS; j++) {
                        _cleanup_(tune_freep) TuneRecord *record = NULL;
                        const char *key, *line;
                        cr_assert_eq(tune_new(false, &record), STATUS_OK);
                        cr_assert_eq(choice_learn(choices[i], record), STATUS_OK);
                        cr_assert_eq(tune_count(record), choice_lines(choices[i]));
                        cr_assert_eq(choice_learn(choices[j], record), STATUS_OK);
                        tune_line(record, tune_count(record) - 1, &key, &line);
                        cr_assert_eq(choice_order(choices[i], choices[j]) <= 0,
                                     strstr(key, choices[j]->samples) != NULL &&
                                             tolerance_bucket(atof(key + strlen("tolerance "))) ==
                                                     choices[j]->bucket);
                }
        }
        for (int i = 0; i <= TOLERANCE_BUCKETS; i++)
                choice_unref(choices[i]);
}

Test(choice, lines_that_say_nothing_sensible_make_no_choice)
{
        static const char *const lines[][2] = {
                { "tolerance 0.01", "holds 1e-3 8 8" },        { "tolerance x none", "holds 1e-3 8 8" },
                { "tolerance 0.01 none", "hold 1e-3 8 8" },    { "tolerance 0.01 none", "holds nan 8 8" },
                { "tolerance 0.01 none", "holds 1e-3 8" },     { "tolerance 0.01 none", "holds 1e-3 8 8 8" },
                { "tolerance 1e-9 none", "holds 1e-3 8 8" },   { "tolerance 0.01 none 000001", "int8 1e-3" },
                { "tolerance 0.01 none more 1", "int8 1e-3" },
        };
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                _cleanup_(tune_freep) TuneRecord *record = NULL, *rest = NULL;
                Choice **read;
                uint32_t n;
                cr_assert_eq(tune_new(false, &record), STATUS_OK);
                cr_assert_eq(tune_learn(record, lines[i][0], lines[i][1]), STATUS_OK);
                cr_assert_eq(choices_read(record, &rest, &read, &n), STATUS_VALUE, "%s", lines[i][0]);
        }
}

Test(choice, nodes_of_a_choice_are_checked_like_its_head)
{
        static const char *const nodes[][2] = { { " 00001x", "int8 1e-3" },
                                                { " 000001", "int4 1e-3" },
                                                { " 000001", "int8" },
                                                { " 000001", "int8 inf" },
                                                { " 0000001", "int8 1e-3" } };
        for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
                _cleanup_(tune_freep) TuneRecord *record = NULL, *rest = NULL;
                char key[64];
                Choice **read;
                uint32_t n;
                snprintf(key, sizeof(key), "tolerance 0.01 none%s", nodes[i][0]);
                cr_assert_eq(tune_new(false, &record), STATUS_OK);
                cr_assert_eq(tune_learn(record, "tolerance 0.01 none", "holds 1e-3 8 8"), STATUS_OK);
                cr_assert_eq(tune_learn(record, key, nodes[i][1]), STATUS_OK);
                cr_assert_eq(choices_read(record, &rest, &read, &n), STATUS_VALUE, "%s", key);
        }
}

Test(choice, a_tolerance_counts_as_the_bucket_below_it)
{
        cr_assert_eq(tolerance_bucket(0), 0);
        cr_assert_eq(tolerance_bucket(9.9e-7), 0);
        cr_assert_eq(bucket_tolerance(tolerance_bucket(0.01)), 0.01);
        cr_assert_eq(bucket_tolerance(tolerance_bucket(0.019)), 0.01);
        cr_assert_eq(bucket_tolerance(tolerance_bucket(1e9)), 1);
        cr_assert_eq(bucket_tolerance(0), 0);
}
