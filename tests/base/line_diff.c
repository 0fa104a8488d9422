// SPDX-License-Identifier: Apache-2.0
// line_diff.c: differences as `diff -u` prints them, and random ones carried out again.
#include "core/base/line_diff.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char *difference(const char *from, const char *to, int64_t max_steps)
{
        Text text = { 0 };
        cr_assert_eq(line_diff(&(DiffSide){ "a", from, strlen(from) }, &(DiffSide){ "b", to, strlen(to) },
                               max_steps, &text),
                     STATUS_OK);
        return text_take(&text);
}

static void prints(const char *from, const char *to, const char *want)
{
        char *got = difference(from, to, 1000000);
        cr_expect_str_eq(got, want, "%s\nnot\n%s", got, want);
        free(got);
}

Test(line_diff, is_what_diff_prints)
{
        prints("", "", "");
        prints("a\nb\n", "a\nb\n", "");
        prints("", "a\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+a\n");
        prints("a\n", "", "--- a\n+++ b\n@@ -1 +0,0 @@\n-a\n");
        prints("a\nb\nc\n", "a\nx\nc\n", "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        prints("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n9\n",
               "--- a\n+++ b\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n");
        prints("a", "a\n", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
        // the run of equal lines ends as late as it can
        prints("a\nb\nb\nc\n", "a\nb\nb\nb\nc\n", "--- a\n+++ b\n@@ -1,4 +1,5 @@\n a\n b\n b\n+b\n c\n");
        // six quiet lines join two changes, seven part them
        prints("x\n1\n2\n3\n4\n5\n6\ny\n", "1\n2\n3\n4\n5\n6\n",
               "--- a\n+++ b\n@@ -1,8 +1,6 @@\n-x\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n");
        prints("x\n1\n2\n3\n4\n5\n6\n7\ny\n", "1\n2\n3\n4\n5\n6\n7\n",
               "--- a\n+++ b\n@@ -1,4 +1,3 @@\n-x\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-y\n");
}

static uint32_t next_random(uint32_t *state)
{
        *state = *state * 1664525u + 1013904223u;
        return *state >> 8;
}

static void random_text(uint32_t *state, char *out)
{
        uint32_t n = next_random(state) % 40, kinds = 1 + next_random(state) % 6;
        for (uint32_t i = 0; i < n; i++)
                out += sprintf(out, "%u\n", next_random(state) % kinds);
        *out = '\0';
}

// Carries out the difference on `from`.
static void carry_out(const char *from, const char *diff, char *out)
{
        int line = 1;
        for (const char *at = strstr(diff, "@@ "); at != NULL && *at != '\0';) {
                const char *end = strchr(at, '\n') + 1;
                if (at[0] == '@') {
                        int start = 0, n = 1;
                        sscanf(at, "@@ -%d,%d", &start, &n);
                        for (start += n == 0; line < start; line++) {
                                const char *stop = strchr(from, '\n') + 1;
                                out = mempcpy(out, from, (size_t)(stop - from));
                                from = stop;
                        }
                } else {
                        if (at[0] != '+') {
                                cr_assert_eq(strncmp(from, at + 1, (size_t)(end - at - 1)), 0);
                                from += end - at - 1;
                                line++;
                        }
                        if (at[0] != '-')
                                out = mempcpy(out, at + 1, (size_t)(end - at - 1));
                }
                at = end;
        }
        strcpy(out, from);
}

Test(line_diff, carried_out_gives_the_other_text)
{
        char from[512], to[512], got[1024];
        uint32_t state = 7;
        for (int i = 0; i < 3000; i++) {
                random_text(&state, from);
                random_text(&state, to);
                char *diff = difference(from, to, i % 3 == 0 ? 30 : 1000000); // also with too few steps
                carry_out(from, diff, got);
                cr_assert_str_eq(got, to, "%s", diff);
                free(diff);
        }
}
