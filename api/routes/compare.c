// SPDX-License-Identifier: Apache-2.0
// compare.c: POST /v1/compare.
#include "api/run/compare.h"
#include "api/routes/answer.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

static Status compare(const Answer *answer, const CompareBody *body)
{
        CompareRun run;
        compare_run_init(&run, answer->context, body);
        Status status = compare_run(&run);
        if (status == STATUS_OK && body->as_text)
                status = compare_write_text(&run, answer_begin(answer, text_type));
        else if (status == STATUS_OK)
                status = compare_write_json(&run, answer_begin(answer, json_type));
        compare_run_deinit(&run);
        return status;
}

Status post_compare(const Answer *answer)
{
        Arena arena;
        JsonReader *json = NULL;
        CompareBody body;
        const Storage *bytes = answer->call->body;
        if (bytes == NULL || bytes->n_bytes == 0)
                return fail(STATUS_MALFORMED,
                            "the body is empty; it is {\"a\": {\"graph\": \"m\"}, \"b\": {...}}");
        TRY(run_check_lists((const char *)bytes->data, bytes->n_bytes));
        arena_init(&arena, (size_t)limits.max_envelope * 4);
        Status status = json_open((const char *)bytes->data, bytes->n_bytes,
                                  (int)limits.max_json_depth_run + MAX_RANK, 0, &arena, &json);
        if (status == STATUS_OK)
                status = compare_read_body(json, &body);
        if (status == STATUS_OK)
                status = compare(answer, &body);
        json_close(json);
        arena_deinit(&arena);
        return status;
}
