// SPDX-License-Identifier: Apache-2.0
// Routes about profiles and statistics.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "api/formats/profile_text.h"
#include "api/formats/report_html.h"
#include "core/base/limits.h"
#include "core/engine/describe.h"

// ---- profiles ----
static Text *begin_form(const Answer *answer, int form)
{
        return answer_begin(answer, form == PROFILE_JSON || form == PROFILE_CHROME ? json_type : text_type);
}

static Status take_view(const ApiCall *call, int form, StatsView *out_view)
{
        int64_t slowest = 0, depth = 0;
        int by;
        TRY(param_int(call, PARAM_SLOWEST, &slowest));
        TRY(param_choice(call, PARAM_BY, &by));
        TRY(param_int(call, PARAM_DEPTH, &depth));
        if (depth > 0 && param_text(call, PARAM_BY) == NULL)
                by = PROFILE_BY_MODULE;
        if (depth > 0 && by != PROFILE_BY_MODULE)
                return fail(STATUS_VALUE, "\"depth\" goes with by=module");
        if (form != PROFILE_JSON && form != PROFILE_TABLE &&
            (param_text(call, PARAM_BY) != NULL || slowest > 0))
                return fail(STATUS_VALUE,
                            "\"by\" and \"slowest\" go with form=json and form=text; form=%s shows every row",
                            profile_form_names[form]);
        *out_view =
                (StatsView){ .by = (ProfileBy)by, .depth = (uint32_t)depth, .slowest = (uint32_t)slowest };
        return STATUS_OK;
}

// A report as a file to be saved; `name` has no characters that a header could not.
static Status send_report(const Answer *answer, const char *name, const Text *data)
{
        Text *out = answer_begin(answer, "text/html; charset=utf-8");
        api_reply_header(answer->reply, "Content-Disposition", "attachment; filename=\"%s.html\"", name);
        api_reply_header(answer->reply, "Content-Security-Policy", "%s", report_html_policy);
        return report_write_html(data, out);
}

static Status report_stats(const Answer *answer, const StatsView *view, const SignatureSummary *signatures,
                           uint32_t n)
{
        const char *name = answer->version->name;
        _cleanup_(text_deinit) Text data = { 0 }, folded = { 0 };
        text_add(&data, "{\"graph\": ");
        text_add_json(&data, name);
        text_add(&data, ", \"statistics\": ");
        TRY(stats_write_json(signatures, n, view, &data));
        TRY(stats_write_folded(name, signatures, n, &folded));
        text_add(&data, ", \"folded\": ");
        text_add_json_n(&data, folded.data, folded.n);
        text_add_char(&data, '}');
        return send_report(answer, name, &data);
}

static Status report_profile(const Answer *answer, const RunProfile *profile)
{
        _cleanup_(text_deinit) Text data = { 0 }, folded = { 0 };
        text_add(&data, "{\"profile\": ");
        profile_write_json(profile, &data);
        TRY(profile_write_folded(profile, &folded));
        text_add(&data, ", \"folded\": ");
        text_add_json_n(&data, folded.data, folded.n);
        text_add_char(&data, '}');
        return send_report(answer, profile->graph_name[0] == '\0' ? "run" : profile->graph_name, &data);
}

static Status write_stats(const Answer *answer, int form, const StatsView *view,
                          const SignatureSummary *signatures, uint32_t n)
{
        if (form == PROFILE_HTML)
                return report_stats(answer, view, signatures, n);
        Text *out = begin_form(answer, form);
        switch (form) {
        case PROFILE_TABLE:
                return stats_write_table(signatures, n, view, out);
        case PROFILE_CHROME:
                return stats_write_chrome(answer->version->name, signatures, n, out);
        case PROFILE_FOLDED:
                return stats_write_folded(answer->version->name, signatures, n, out);
        default:
                return stats_write_json(signatures, n, view, out);
        }
}

Status get_stats(const Answer *answer)
{
        SignatureSummary *signatures;
        uint32_t n;
        int form;
        StatsView view;
        TRY(param_choice(answer->call, PARAM_PROFILE_FORM, &form));
        TRY(take_view(answer->call, form, &view));
        TRY(profile_stats_read(answer->version->stats, (ProfileGrouping){ view.by, view.depth }, &signatures,
                               &n));
        Status status = write_stats(answer, form, &view, signatures, n);
        profile_summary_free(signatures, n);
        return status;
}

Status get_profiles(const Answer *answer)
{
        int64_t slowest = 0, limit;
        RunProfile *rows[LIST_MAX];
        TRY(param_int(answer->call, PARAM_SLOWEST, &slowest));
        TRY(param_int(answer->call, PARAM_LIMIT, &limit));
        if (slowest > 0) // the smaller of both; the default of "limit" does not count
                limit = param_text(answer->call, PARAM_LIMIT) == NULL ? slowest : MIN(slowest, limit);
        uint32_t n = profile_ring_list(engine_profiles(answer->context->engine), slowest > 0, (uint32_t)limit,
                                       rows);
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"profiles\": [");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ",\n");
                text_add(out, "{\"id\": ");
                text_add_json(out, rows[i]->id);
                text_add(out, ", \"graph\": ");
                text_add_json(out, rows[i]->graph_name);
                text_addf(out, ", \"version\": %lld, \"content\": \"%s\", \"signature\": ",
                          (long long)rows[i]->version, rows[i]->content_id);
                text_add_json(out, rows[i]->signature);
                text_addf(out, ", \"ended_ms\": %lld, \"run_us\": %.3f, \"total_us\": %.3f}",
                          (long long)rows[i]->wall_ms, (double)rows[i]->run_ns / 1e3,
                          (double)rows[i]->total_ns / 1e3);
                run_profile_unref(rows[i]);
        }
        text_add(out, "]}\n");
        return STATUS_OK;
}

// One run summed up, in the form of the statistics.
static Status write_sums(const Answer *answer, const RunProfile *profile, int form)
{
        StatsView view;
        StatsPool *pool;
        ProfileStats *stats;
        SignatureSummary *signatures;
        uint32_t n;
        TRY(take_view(answer->call, form, &view));
        TRY(stats_pool_open((size_t)limits.max_profile_memory, &pool));
        Status status = profile_stats_new(pool, &stats);
        if (status == STATUS_OK) {
                profile_stats_add(stats, profile);
                status = profile_stats_read(stats, (ProfileGrouping){ view.by, view.depth }, &signatures, &n);
                if (status == STATUS_OK) {
                        status = write_stats(answer, form, &view, signatures, n);
                        profile_summary_free(signatures, n);
                }
                profile_stats_free(stats);
        }
        stats_pool_close(pool);
        return status;
}

Status get_profile(const Answer *answer)
{
        int form;
        TRY(param_choice(answer->call, PARAM_PROFILE_FORM, &form));
        _cleanup_(run_profile_unrefp) RunProfile *profile =
                profile_ring_find(engine_profiles(answer->context->engine), answer->call->id);
        if (profile == NULL)
                return fail(STATUS_NOT_FOUND,
                            "there is no profile '%s'; the last %lld runs are kept (--max-profiles), GET "
                            "/v1/profiles lists them",
                            answer->call->id, (long long)limits.max_profiles);
        if (param_text(answer->call, PARAM_BY) != NULL || param_text(answer->call, PARAM_DEPTH) != NULL)
                return write_sums(answer, profile, form);
        if (form == PROFILE_HTML)
                return report_profile(answer, profile);
        Text *out = begin_form(answer, form);
        switch (form) {
        case PROFILE_TABLE:
                return profile_write_table(profile, out);
        case PROFILE_CHROME:
                return profile_write_chrome(profile, out);
        case PROFILE_FOLDED:
                return profile_write_folded(profile, out);
        default:
                profile_write_json(profile, out);
                text_add_char(out, '\n');
                return text_status(out);
        }
}
