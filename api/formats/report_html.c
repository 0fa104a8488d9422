// SPDX-License-Identifier: Apache-2.0
// The report of the build with data in it.
#include "api/formats/report_html.h"
#include <string.h>
#include "api/formats/inflate.h"
#include "api/formats/assets.h"

const char report_html_policy[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

static void add_data(const Text *data, Text *out)
{
        const char *at = data->data, *end = data->data + data->n, *next;
        while ((next = memchr(at, '<', (size_t)(end - at))) != NULL) {
                text_add_n(out, at, (size_t)(next - at));
                text_add(out, "\\u003c");
                at = next + 1;
        }
        text_add_n(out, at, (size_t)(end - at));
}

Status report_write_html(const Text *data, Text *out)
{
        static const char mark[] = "{DATA}";
        _cleanup_(text_deinit) Text page = { 0 };
        TRY(text_status(data));
        char *room = text_reserve(&page, report_asset.n_plain);
        if (room == NULL)
                return fail_memory();
        TRY(inflate_whole(report_asset.gzip, report_asset.n_gzip, (uint8_t *)room, report_asset.n_plain));
        page.n = report_asset.n_plain;
        const char *at = memmem(page.data, page.n, mark, strlen(mark));
        if (at == NULL || data->n == 0)
                return fail(STATUS_INTERNAL, "a report has no place for its data, or no data");
        text_add_n(out, page.data, (size_t)(at - page.data));
        add_data(data, out);
        at += strlen(mark);
        text_add_n(out, at, (size_t)(page.data + page.n - at));
        return text_status(out);
}
