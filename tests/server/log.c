// SPDX-License-Identifier: Apache-2.0
#include "server/log.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char path[64];

static void make_path(void)
{
        snprintf(path, sizeof(path), "/tmp/fxserve-log-XXXXXX");
        int fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        close(fd);
}

static void remove_path(void)
{
        unlink(path);
}

static char *content(const char *file)
{
        static char text[1 << 16];
        FILE *from = fopen(file, "re");
        cr_assert_not_null(from);
        text[fread(text, 1, sizeof(text) - 1, from)] = '\0';
        fclose(from);
        return text;
}

TestSuite(log, .init = make_path, .fini = remove_path);

Test(log, json_lines_escape_what_a_client_sent)
{
        cr_assert_eq(log_start(&(LogOptions){ .format = "json", .file = path }), STATUS_OK);
        log_line("a \"quote\", a\nline, \x1b, bad UTF-8 \xff and good \xc3\xa4");
        log_stop();
        char *text = content(path);
        cr_assert_not_null(strstr(text, "\"level\": \"info\", \"message\": \"a \\\"quote\\\", a\\nline, "
                                        "\\u001b, bad UTF-8 \xef\xbf\xbd "
                                        "and good \xc3\xa4\"}\n"),
                           "%s", text);
        cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

Test(log, text_lines_stay_one_line)
{
        cr_assert_eq(log_start(&(LogOptions){ .format = "text", .file = path }), STATUS_OK);
        log_error("one\ntwo\rthree\x1b[31m");
        log_stop();
        char *text = content(path);
        cr_assert_not_null(strstr(text, "one two three [31m\n"), "%s", text);
}

Test(log, a_request_shows_what_is_known_and_nothing_else)
{
        cr_assert_eq(log_start(&(LogOptions){ .format = "auto", .file = path }), STATUS_OK);
        log_request(&(LogRequest){ .method = "GET",
                                   .route = "/v1",
                                   .id = "abc",
                                   .status = 200,
                                   .total_ms = 1.5,
                                   .response_bytes = 7 });
        log_request(&(LogRequest){ .method = "POST",
                                   .route = "/v1/graphs/{name}/run",
                                   .id = "abd",
                                   .graph = "m",
                                   .version = 2,
                                   .status = 503,
                                   .code = "busy",
                                   .is_run = true,
                                   .queue_ms = 0.25,
                                   .client = "::1",
                                   .token = "ci",
                                   .trace_id = "t",
                                   .parent_id = "p",
                                   .span_id = "s" });
        log_stop();
        char *text = content(path);
        cr_assert_not_null(strstr(text, "Z\", \"level\": \"info\", \"request_id\": \"abc\", \"method\": "
                                        "\"GET\", \"route\": \"/v1\", "
                                        "\"status\": 200, \"duration_ms\": 1.500, \"request_bytes\": 0, "
                                        "\"response_bytes\": 7}\n"),
                           "%s", text);
        cr_assert_not_null(
                strstr(text,
                       "\"level\": \"warning\", \"request_id\": \"abd\", \"method\": \"POST\", \"route\": "
                       "\"/v1/graphs/{name}/run\", \"graph\": \"m\", \"version\": 2, \"status\": 503, "
                       "\"code\": \"busy\", \"duration_ms\": 0.000, \"queue_ms\": 0.250, \"run_ms\": 0.000, "
                       "\"request_bytes\": 0, \"response_bytes\": 0, \"client\": \"::1\", \"token\": \"ci\", "
                       "\"trace_id\": \"t\", \"parent_id\": \"p\", \"span_id\": \"s\"}\n"),
                "%s", text);
}

Test(log, what_went_wrong_inside_is_an_error_and_too_much_or_too_long_is_not)
{
        static const struct {
                int status;
                const char *level;
        } rows[] = { { 200, "info" },    { 404, "info" },    { 499, "info" }, { 500, "error" },
                     { 503, "warning" }, { 504, "warning" }, { 507, "error" } };
        cr_assert_eq(log_start(&(LogOptions){ .format = "json", .file = path }), STATUS_OK);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                log_request(&(LogRequest){
                        .method = "GET", .route = "/v1", .id = "a", .status = rows[i].status });
        log_stop();
        const char *text = content(path);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char level[40], status[40];
                snprintf(level, sizeof(level), "\"level\": \"%s\"", rows[i].level);
                snprintf(status, sizeof(status), "\"status\": %d,", rows[i].status);
                const char *line = strstr(text, status);
                cr_assert_not_null(line);
                while (line > text && line[-1] != '\n')
                        line--;
                cr_assert(strstr(line, level) != NULL && strstr(line, level) < strstr(line, status), "%d: %s",
                          rows[i].status, line);
        }
}

Test(log, a_record_has_its_fields_in_both_forms)
{
        const LogField members[] = { { .key = "max_queue", .number = 5 } };
        const LogField fields[] = { { .key = "listen", .text = "a \"b\"" },
                                    { .key = "workers", .number = 2 },
                                    { .key = "limits", .members = members, .n_members = 1 },
                                    { .key = "none", .members = members, .n_members = 0 } };
        cr_assert_eq(log_start(&(LogOptions){ .format = "json", .file = path }), STATUS_OK);
        log_record("started", fields, 4);
        log_stop();
        cr_assert_eq(log_start(&(LogOptions){ .format = "text", .file = path }), STATUS_OK);
        log_record("started", fields, 4);
        log_stop();
        char *text = content(path);
        cr_assert_not_null(strstr(text, "\"level\": \"info\", \"message\": \"started\", \"listen\": \"a "
                                        "\\\"b\\\"\", \"workers\": 2, \"limits\": "
                                        "{\"max_queue\": 5}, \"none\": {}}\n"),
                           "%s", text);
        cr_assert_not_null(strstr(text, " started: listen=a \"b\" workers=2 limits={max_queue=5} none={}\n"),
                           "%s", text);
}

Test(log, a_renamed_file_is_opened_anew)
{
        char old[80];
        snprintf(old, sizeof(old), "%s.1", path);
        cr_assert_eq(log_start(&(LogOptions){ .format = "text", .file = path }), STATUS_OK);
        log_line("before");
        cr_assert_eq(rename(path, old), 0);
        log_reopen();
        for (int i = 0; i < 1000 && access(path, F_OK) != 0; i++)
                nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        log_line("after");
        log_stop();
        cr_assert_not_null(strstr(content(old), "before"));
        cr_assert_null(strstr(content(old), "after"));
        cr_assert_not_null(strstr(content(path), "after"));
        unlink(old);
}

Test(log, unknown_formats_and_files_that_cannot_be_opened_are_refused)
{
        cr_assert_eq(log_start(&(LogOptions){ .format = "xml", .file = "" }), STATUS_USAGE);
        cr_assert_eq(log_start(&(LogOptions){ .format = "text", .file = "/nonexistent/file" }), STATUS_USAGE);
}

// Standard error is a pipe that nobody reads: lines are dropped and counted, nobody waits, and the
// end comes all the same. Once somebody reads, the number is told.
static void fill(int n)
{
        for (int i = 0; i < n; i++)
                log_line("%0200d", i);
}

Test(log, a_reader_that_stopped_reading_costs_lines_and_no_time, .timeout = 60)
{
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
        cr_assert_eq(log_start(&(LogOptions){ .format = "json", .file = "" }), STATUS_OK);
        fill(20000);
        cr_assert_gt(log_dropped(), 10000);
        log_stop();
}

Test(log, dropped_lines_are_told_once_there_is_a_reader, .timeout = 60)
{
        int ends[2];
        static char text[4 << 20];
        size_t n = 0;
        cr_assert_eq(pipe(ends), 0);
        cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
        close(ends[1]);
        cr_assert_eq(log_start(&(LogOptions){ .format = "text", .file = "" }), STATUS_OK);
        fill(20000);
        cr_assert_gt(log_dropped(), 10000);
        while (n < sizeof(text) - 1) {
                ssize_t got = read(ends[0], text + n, sizeof(text) - 1 - n);
                cr_assert_gt(got, 0);
                n += (size_t)got;
                text[n] = '\0';
                if (strstr(text, "log lines were dropped\n") != NULL)
                        break;
        }
        log_stop();
}
