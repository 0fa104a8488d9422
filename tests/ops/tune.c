// SPDX-License-Identifier: Apache-2.0
// Tune records as text: what is printed reads back; anything else is refused.
#include "core/ops/tune.h"

#include <criterion/criterion.h>
#include <string.h>
#include "core/kernels/platform.h"

static TuneRecord *parsed(const char *text)
{
        TuneRecord *record = NULL;
        return tune_parse(text, strlen(text), &record) == STATUS_OK ? record : NULL;
}

Test(tune, prints_sorted_lines_that_read_back)
{
        _cleanup_(tune_freep) TuneRecord *record = NULL, *again = NULL;
        Text text = { 0 }, second = { 0 };
        cr_assert_eq(tune_new(true, &record), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 2", "direct"), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 1", "winograd_4x4"), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 1", "direct"), STATUS_OK); // what is decided stays
        tune_print(record, &text);
        cr_assert_str_eq(text.data, "conv 1\twinograd_4x4\nconv 2\tdirect\n");
        cr_assert_eq(tune_parse(text.data, text.n, &again), STATUS_OK);
        cr_assert(tune_is_learning(record) && !tune_is_learning(again) && !tune_is_learning(NULL));
        tune_print(again, &second);
        cr_assert_str_eq(second.data, text.data);
        cr_assert_str_eq(tune_algorithm(again, "conv 2"), "direct");
        cr_assert_null(tune_algorithm(again, "conv 3"));
        cr_assert_null(tune_algorithm(NULL, "conv 1"));
        cr_assert(tune_count(again) == 2 && tune_count(NULL) == 0);
        text_deinit(&text);
        text_deinit(&second);
}

Test(tune, the_digest_is_of_the_text)
{
        _cleanup_(tune_freep) TuneRecord *record = NULL, *again = NULL;
        static const char text[] = "conv 1\tdirect\n", longer[] = "conv 1\tdirect\nconv 2\tdirect\n";
        HashHex learnt, read;
        cr_assert_eq(tune_new(true, &record), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 1", "direct"), STATUS_OK);
        cr_assert_eq(tune_parse(text, strlen(text), &again), STATUS_OK);
        cr_assert(tune_digest(record, &learnt) == STATUS_OK && tune_digest(again, &read) == STATUS_OK);
        cr_assert_str_eq(learnt.hex, read.hex);
        cr_assert_str_eq(learnt.hex, sha256_of(text, strlen(text)).hex);
        cr_assert(tune_learn(again, "conv 2", "direct") == STATUS_OK &&
                  tune_digest(again, &read) == STATUS_OK);
        cr_assert_str_eq(read.hex, sha256_of(longer, strlen(longer)).hex);
}

Test(tune, what_was_kept_on_another_platform_is_refused)
{
        _cleanup_(tune_freep) TuneRecord *record = NULL, *again = NULL, *other = NULL;
        Text text = { 0 };
        cr_assert_eq(tune_new(true, &record), STATUS_OK);
        cr_assert_eq(tune_learn(record, "conv 1", "direct"), STATUS_OK);
        tune_write(record, &text);
        cr_assert_not_null(strstr(text.data, kernel_platform()->dnnl));
        cr_assert_not_null(strstr(text.data, kernel_platform()->dnnl_isa));
        cr_assert_eq(tune_read(text.data, text.n, &again), STATUS_OK);
        cr_assert_eq(tune_count(again), 1);
        strstr(text.data, kernel_platform()->dnnl)[0]++; // 3.7.2 becomes 4.7.2
        cr_assert_eq(tune_read(text.data, text.n, &other), STATUS_VALUE);
        cr_assert_null(other);
        for (size_t n = 0; n < strcspn(text.data, "\n") + 1; n++)
                cr_assert_eq(tune_read(text.data, n, &other), STATUS_VALUE, "cut at %zu", n);
        cr_assert_eq(tune_read("conv 1\tdirect\n", 14, &other), STATUS_VALUE,
                     "from before there was a platform");
        text_deinit(&text);
}

Test(tune, refuses_what_it_would_not_print)
{
        static const char *const bad[] = { "a",
                                           "a\n",
                                           "a\tb",
                                           "\tb\n",
                                           "a\t\n",
                                           "b\tx\na\tx\n",
                                           "a\tx\na\ty\n",
                                           "a\tb\tc\n\n",
                                           "a\x01\tb\n",
                                           "a\tb\xff\n",
                                           "a\taaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" };
        for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
                cr_expect_null(parsed(bad[i]), "case %zu", i);
        char long_key[TUNE_MAX_KEY + 8];
        memset(long_key, 'k', sizeof(long_key));
        memcpy(long_key + TUNE_MAX_KEY + 1, "\ta\n", 4);
        cr_expect_null(parsed(long_key));
        TuneRecord *empty = parsed("");
        cr_assert_not_null(empty);
        cr_assert_eq(tune_count(empty), 0);
        tune_free(empty);
}
