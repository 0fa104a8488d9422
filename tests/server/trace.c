// SPDX-License-Identifier: Apache-2.0
#include "server/trace.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Test(trace, ids_of_a_good_header_are_taken)
{
        TraceIds trace = { .span_id = "1" };
        cr_assert(trace_parse(good, &trace));
        cr_assert_str_eq(trace.trace_id, "0af7651916cd43dd8448eb211c80319c");
        cr_assert_str_eq(trace.parent_id, "b7ad6b7169203331");
        cr_assert_str_eq(trace.span_id, "1");
}

Test(trace, the_lowest_bit_of_the_flags_says_whether_it_is_sampled)
{
        static const struct {
                const char *flags;
                bool sampled;
        } rows[] = { { "00", false }, { "01", true }, { "02", false }, { "03", true }, { "fe", false } };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char header[sizeof(good)];
                TraceIds trace = { .sampled = !rows[i].sampled };
                snprintf(header, sizeof(header), "%.53s%s", good, rows[i].flags);
                cr_assert(trace_parse(header, &trace));
                cr_assert_eq(trace.sampled, rows[i].sampled, "flags %s", rows[i].flags);
        }
}

Test(trace, later_versions_may_go_on_after_a_dash)
{
        TraceIds trace = { .trace_id = "" };
        cr_assert(trace_parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", &trace));
        cr_assert(trace_parse("fe-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-what-ever", &trace));
        cr_assert(!trace_parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more", &trace));
}

Test(trace, malformed_headers_change_nothing)
{
        static const char *const bad[] = {
                "",
                "00",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
                "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
                "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
                "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
                "0-00af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                TraceIds trace = { .trace_id = "" };
                cr_assert(!trace_parse(bad[i], &trace), "%s", bad[i]);
                cr_assert_str_empty(trace.trace_id);
                cr_assert_str_empty(trace.parent_id);
        }
}

Test(trace, every_truncation_and_every_changed_dash_is_refused)
{
        for (size_t n = 0; n < strlen(good); n++) {
                char cut[sizeof(good)];
                TraceIds trace = { .trace_id = "" };
                snprintf(cut, sizeof(cut), "%.*s", (int)n, good);
                cr_assert(!trace_parse(cut, &trace), "%s", cut);
        }
}
