// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/base/status.h"

Test(status, every_status_has_a_code_of_its_own)
{
        for (int i = 0; i < STATUS_COUNT; i++) {
                cr_assert_not_null(status_code((Status)i));
                for (int j = 0; j < i; j++)
                        cr_assert_str_neq(status_code((Status)i), status_code((Status)j));
        }
        cr_assert_str_eq(status_code(STATUS_SHAPE), "shape_mismatch");
        cr_assert_str_eq(status_code((Status)999), "internal");
}

Test(status, classes_tell_what_the_caller_did_from_what_we_broke)
{
        cr_assert_eq(status_class(STATUS_OK), STATUS_CLASS_OK);
        cr_assert_eq(status_class(STATUS_MALFORMED), STATUS_CLASS_CALLER);
        cr_assert_eq(status_class(STATUS_NO_MEMORY), STATUS_CLASS_INTERNAL);
        cr_assert_eq(status_class((Status)-1), STATUS_CLASS_INTERNAL);
}

Test(status, fail_returns_the_status_and_keeps_the_message_and_the_origin)
{
        Status status = fail(STATUS_SHAPE, "size %d is not %d", 3, 4);
        int line = __LINE__ - 1;
        cr_assert_eq(status, STATUS_SHAPE);
        cr_assert_eq(failure_current()->status, STATUS_SHAPE);
        cr_assert_str_eq(failure_current()->message, "size 3 is not 4");
        cr_assert_not_null(strstr(failure_current()->file, "status.c"));
        cr_assert_eq(failure_current()->line, line);
}

Test(status, a_message_may_quote_the_message_it_replaces)
{
        (void)fail(STATUS_VALUE, "inner");
        (void)fail(STATUS_VALUE, "outer: %s", failure_current()->message);
        cr_assert_str_eq(failure_current()->message, "outer: inner");
        failure_append(" (%s)", failure_current()->message);
        cr_assert_str_eq(failure_current()->message, "outer: inner (outer: inner)");
}

Test(status, the_first_place_and_detail_win_and_a_new_failure_forgets_them)
{
        Status status = fail(STATUS_GUARD, "guard");
        cr_assert_eq(failure_at_node(status, "inner"), STATUS_GUARD);
        failure_at_node(status, "outer");
        failure_at_argument(status, "x");
        failure_at_argument(status, "y");
        failure_detail(status, "guard", "s0 <= 4");
        failure_detail(status, "range", "other");
        const Failure *failure = failure_current();
        cr_assert_str_eq(failure->node, "inner");
        cr_assert_str_eq(failure->argument, "x");
        cr_assert_str_eq(failure->detail_key, "guard");
        cr_assert_str_eq(failure->detail, "s0 <= 4");
        (void)fail_memory();
        cr_assert_str_empty(failure->node);
        cr_assert_str_empty(failure->argument);
        cr_assert_str_empty(failure->detail_key);
        cr_assert_str_empty(failure->detail);
        cr_assert_str_eq(failure->message, "out of memory");
}

Test(status, success_takes_no_place)
{
        (void)fail(STATUS_VALUE, "old");
        cr_assert_eq(failure_at_node(STATUS_OK, "node"), STATUS_OK);
        cr_assert_str_empty(failure_current()->node);
}

Test(status, long_texts_are_cut_between_characters)
{
        char text[FAILURE_MESSAGE_MAX + 100];
        memset(text, 'a', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        memcpy(text + FAILURE_MESSAGE_MAX - 2, "\xe2\x82\xac", 3);
        (void)fail(STATUS_VALUE, "%s", text);
        cr_assert_eq(strlen(failure_current()->message), FAILURE_MESSAGE_MAX - 2);
        failure_append("bc");
        cr_assert_eq(strlen(failure_current()->message), FAILURE_MESSAGE_MAX - 1);
        cr_assert_eq(failure_current()->message[FAILURE_MESSAGE_MAX - 2], 'b');
        text[FAILURE_PLACE_MAX - 1] = '\xe2';
        text[FAILURE_PLACE_MAX] = '\x82';
        failure_at_node(STATUS_VALUE, text);
        cr_assert_eq(strlen(failure_current()->node), FAILURE_PLACE_MAX - 1);
}

static void *fail_elsewhere(void *unused)
{
        (void)unused;
        (void)fail(STATUS_IO, "other thread");
        return NULL;
}

Test(status, threads_do_not_see_each_others_failures)
{
        (void)fail(STATUS_VALUE, "mine");
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
        pthread_join(thread, NULL);
        cr_assert_str_eq(failure_current()->message, "mine");
}

static Status step(Status status, int *n)
{
        TRY(status);
        ++*n;
        return STATUS_OK;
}

Test(status, try_returns_on_the_first_failure)
{
        int n = 0;
        cr_assert_eq(step(STATUS_OK, &n), STATUS_OK);
        cr_assert_eq(step(STATUS_INDEX, &n), STATUS_INDEX);
        cr_assert_eq(n, 1);
}

Test(limits, rows_describe_the_values_in_force)
{
        cr_assert_gt(n_limit_rows, 20);
        for (size_t i = 0; i < n_limit_rows; i++) {
                int64_t value;
                memcpy(&value, (const char *)&limits + limit_rows[i].offset, sizeof(value));
                cr_assert_eq(value, limit_rows[i].value, "%s", limit_rows[i].name);
                bool may_be_off = strcmp(limit_rows[i].name, "drain_delay_s") == 0 ||
                                  strcmp(limit_rows[i].name, "max_reply_cache") == 0 ||
                                  strcmp(limit_rows[i].name, "max_memory") == 0;
                cr_assert(value > 0 || (value == 0 && may_be_off), "%s", limit_rows[i].name);
                cr_assert_not_null(limit_rows[i].help);
                cr_assert_not_null(limit_rows[i].unit);
        }
        cr_assert_eq(limits.max_json_depth_run, 32);
}
