// SPDX-License-Identifier: Apache-2.0
// Stands for Criterion where its processes cannot start: under qemu-user, which runs one program
// but not what that program executes (meson's option plain_criterion). The part of it that our
// tests use; every test runs in a forked process. The last line is Criterion's.
#pragma once
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct PlainOptions {
        double timeout; // heeded by whoever runs the program
        void (*init)(void);
        void (*fini)(void);
} PlainOptions;

typedef struct PlainTest {
        const char *suite, *name;
        void (*run)(void);
        PlainOptions options;
        struct PlainTest *next;
} PlainTest;

typedef struct PlainSuite {
        const char *name;
        PlainOptions options; // of its tests
        struct PlainSuite *next;
} PlainSuite;

// Weak: one of each per program, however many of its files include this.
__attribute__((weak)) PlainTest *plain_tests;
__attribute__((weak)) PlainSuite *plain_suites;
__attribute__((weak)) bool plain_failed;

#define Test(suite_, name_, ...)                                                                             \
        static void suite_##_##name_##_run(void);                                                            \
        __attribute__((constructor)) static void suite_##_##name_##_add(void)                                \
        {                                                                                                    \
                static PlainTest test = { .suite = #suite_,                                                  \
                                          .name = #name_,                                                    \
                                          .run = suite_##_##name_##_run,                                     \
                                          .options = { __VA_ARGS__ } };                                      \
                test.next = plain_tests;                                                                     \
                plain_tests = &test;                                                                         \
        }                                                                                                    \
        static void suite_##_##name_##_run(void)

#define TestSuite(name_, ...)                                                                                \
        __attribute__((constructor)) static void name_##_suite_add(void)                                     \
        {                                                                                                    \
                static PlainSuite suite = { .name = #name_, .options = { __VA_ARGS__ } };                    \
                suite.next = plain_suites;                                                                   \
                plain_suites = &suite;                                                                       \
        }                                                                                                    \
        struct name_##_suite_ends_with_a_semicolon

__attribute__((format(printf, 5, 6))) static inline void plain_check(bool holds, bool ends, const char *where,
                                                                     const char *condition, const char *words,
                                                                     ...)
{
        va_list args;
        if (holds)
                return;
        printf("%s: %s: ", where, condition);
        va_start(args, words);
        vprintf(words, args);
        va_end(args);
        printf("\n");
        plain_failed = true;
        if (ends) {
                fflush(stdout);
                _exit(1);
        }
}

#define PLAIN_TEXT(x)                #x
#define PLAIN_LINE(x)                PLAIN_TEXT(x)
#define PLAIN_WHERE                  __FILE__ ":" PLAIN_LINE(__LINE__)
#define PLAIN_MUST(condition, ...)   plain_check((condition), true, PLAIN_WHERE, #condition, " " __VA_ARGS__)
#define PLAIN_SHOULD(condition, ...) plain_check((condition), false, PLAIN_WHERE, #condition, " " __VA_ARGS__)

#define cr_assert(condition, ...)      PLAIN_MUST(condition, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)        PLAIN_MUST((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)       PLAIN_MUST((a) != (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)        PLAIN_MUST((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)       PLAIN_MUST((a) >= (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)        PLAIN_MUST((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)       PLAIN_MUST((a) <= (b), __VA_ARGS__)
#define cr_assert_null(a, ...)         PLAIN_MUST((a) == NULL, __VA_ARGS__)
#define cr_assert_not_null(a, ...)     PLAIN_MUST((a) != NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)    PLAIN_MUST(strcmp((a), (b)) == 0, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) PLAIN_MUST(memcmp((a), (b), (n)) == 0, __VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...)                                                               \
        PLAIN_MUST(fabs((double)(a) - (double)(b)) <= (epsilon), __VA_ARGS__)
#define cr_assert_fail(...)            PLAIN_MUST(false, __VA_ARGS__)
#define cr_expect(condition, ...)      PLAIN_SHOULD(condition, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)        PLAIN_SHOULD((a) == (b), __VA_ARGS__)
#define cr_expect_neq(a, b, ...)       PLAIN_SHOULD((a) != (b), __VA_ARGS__)
#define cr_expect_geq(a, b, ...)       PLAIN_SHOULD((a) >= (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...)       PLAIN_SHOULD((a) <= (b), __VA_ARGS__)
#define cr_expect_null(a, ...)         PLAIN_SHOULD((a) == NULL, __VA_ARGS__)
#define cr_expect_not_null(a, ...)     PLAIN_SHOULD((a) != NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)    PLAIN_SHOULD(strcmp((a), (b)) == 0, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) PLAIN_SHOULD(memcmp((a), (b), (n)) == 0, __VA_ARGS__)

// What a suite and a test want done before (init) or after (fini) it.
static inline void plain_around(const PlainTest *test, bool after)
{
        for (const PlainSuite *suite = plain_suites; suite != NULL; suite = suite->next) {
                void (*wanted)(void) = after ? suite->options.fini : suite->options.init;
                if (strcmp(suite->name, test->suite) == 0 && wanted != NULL)
                        wanted();
        }
        void (*own)(void) = after ? test->options.fini : test->options.init;
        if (own != NULL)
                own();
}

// The exit status of one test, in a process of its own.
static inline int plain_run(const PlainTest *test)
{
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
                plain_around(test, false);
                test->run();
                plain_around(test, true);
                fflush(stdout);
                _exit(plain_failed);
        }
        return child > 0 && waitpid(child, &status, 0) == child ? status : 1;
}

__attribute__((weak)) int main(void)
{
        int tested = 0, failing = 0, crashing = 0;
        for (const PlainTest *test = plain_tests; test != NULL; test = test->next, tested++) {
                int status = plain_run(test);
                if (status != 0)
                        printf("[FAIL] %s::%s\n", test->suite, test->name);
                failing += WIFEXITED(status) && status != 0;
                crashing += !WIFEXITED(status);
        }
        printf("[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d\n", tested,
               tested - failing - crashing, failing, crashing);
        return failing + crashing > 0 || tested == 0;
}
