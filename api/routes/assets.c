// SPDX-License-Identifier: Apache-2.0
// The page for browsers and its files, embedded in the program. Their bytes never change while the
// server runs, so a browser asks with their tags and gets 304. On the loop thread: nothing here
// waits, and without gzip a file is inflated in well under a millisecond.
#include "api/formats/assets.h"
#include <string.h>
#include "api/formats/accept.h"
#include "api/formats/gzip.h"
#include "api/formats/inflate.h"
#include "api/routes/answer.h"
#include "api/run/condition.h"

// What the page may do: its own files, its own server. Texts of graphs cannot become scripts.
static const char policy[] =
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
_Static_assert(sizeof(policy) <= CALL_HEADER_MAX, "a header's value is cut");

static const Asset *find_asset(const char *name)
{
        for (size_t i = 0; i < n_assets; i++)
                if (strcmp(assets[i].name, name) == 0)
                        return &assets[i];
        return NULL;
}

static Status add_bytes(const ApiCall *call, const Asset *asset, ApiReply *reply)
{
        if (call->takes_gzip) {
                text_add_n(&reply->body, (const char *)asset->gzip, asset->n_gzip);
                api_reply_header(reply, "Content-Encoding", "gzip");
                return STATUS_OK;
        }
        char *room = text_reserve(&reply->body, asset->n_plain);
        if (room == NULL)
                return fail_memory();
        TRY(inflate_whole(asset->gzip, asset->n_gzip, (uint8_t *)room, asset->n_plain));
        reply->body.n += asset->n_plain;
        return STATUS_OK;
}

static Status answer_asset(const Answer *answer, const Asset *asset)
{
        const ApiCall *call = answer->call;
        ApiReply *reply = answer->reply;
        const char *suffix;
        TRY(condition_check_get(call, asset->tag.hex, &suffix));
        api_reply_header(reply, "ETag", "\"%s%s\"", asset->tag.hex,
                         suffix != NULL     ? suffix
                         : call->takes_gzip ? GZIP_TAG
                                            : "");
        api_reply_header(reply, "Vary", "Accept, Accept-Encoding");
        api_reply_header(reply, "Cache-Control", "no-cache");
        api_reply_header(reply, "Content-Security-Policy", "%s", policy);
        api_reply_header(reply, "Referrer-Policy", "no-referrer");
        reply->status = suffix != NULL ? 304 : 200;
        if (suffix != NULL)
                return STATUS_OK;
        reply->content_type = asset->type;
        return add_bytes(call, asset, reply);
}

// Browsers name text/html; curl and libraries accept anything, and are told where the API is.
static bool wants_html(const char *accept)
{
        AcceptItem item;
        while (accept_next(&accept, &item))
                if (accept_is(&item, "text/html") && item.quality > 0)
                        return true;
        return false;
}

Status get_page(const Answer *answer)
{
        if (!wants_html(answer->call->accept))
                return fail(STATUS_NOT_FOUND,
                            "there is nothing at this path but a page for browsers; GET /v1 "
                            "lists the paths, a run is POST /v1/graphs/NAME/run");
        return answer_asset(answer, find_asset("index.html"));
}

Status get_asset(const Answer *answer)
{
        const Asset *asset = find_asset(answer->call->id);
        if (asset == NULL)
                return fail(STATUS_NOT_FOUND, "the page has no file of this name");
        return answer_asset(answer, asset);
}
