// SPDX-License-Identifier: Apache-2.0
// reply_cache.c: a registry of replies by a SHA-256 of all that they follow from. What is found is
// copied: replies are small beside the runs that are worth keeping.
#include "api/run/reply_cache.h"
#include <string.h>
#include "api/run/oip.h"
#include "core/base/hash.h"

struct ReplyCache {
        Registry *replies;
        size_t max_bytes;
        _Atomic uint64_t n_hits, n_misses;
};

typedef struct KeptReply {
        RefCount ref;
        const char *content_type; // static
        Text body;
        ReplyHeader headers[REPLY_MAX_HEADERS];
        uint32_t n_headers;
} KeptReply;

static void ref_reply(void *object)
{
        refcount_get(&((KeptReply *)object)->ref);
}

static void unref_reply(void *object)
{
        KeptReply *kept = object;
        if (kept == NULL || !refcount_put(&kept->ref))
                return;
        text_deinit(&kept->body);
        free(kept);
}

static size_t bytes_of(const void *object)
{
        return sizeof(KeptReply) + ((const KeptReply *)object)->body.capacity;
}

Status reply_cache_open(size_t max_bytes, ReplyCache **out_cache)
{
        static const RegistryType type = { .ref = ref_reply, .unref = unref_reply, .bytes = bytes_of };
        ReplyCache *cache = calloc(1, sizeof(*cache));
        if (cache == NULL)
                return fail_memory();
        cache->max_bytes = max_bytes;
        Status status = registry_open(&type, max_bytes, &cache->replies);
        if (status != STATUS_OK)
                free(cache);
        else
                *out_cache = cache;
        return status;
}

ReplyCache *reply_cache_close(ReplyCache *cache)
{
        if (cache != NULL)
                registry_close(cache->replies);
        free(cache);
        return NULL;
}

void reply_cache_clear(ReplyCache *cache)
{
        registry_age(cache->replies);
        registry_age(cache->replies);
        registry_drop_unused(cache->replies);
}

RegistryStats reply_cache_stats(ReplyCache *cache)
{
        RegistryStats stats = registry_stats(cache->replies);
        stats.hits = atomic_load(&cache->n_hits);
        stats.misses = atomic_load(&cache->n_misses);
        return stats;
}

// ---- the key ----
// With its end, so that two texts in a row cannot be two others.
static void add_text(Sha256 *sha, const char *text)
{
        sha256_add(sha, text, strlen(text) + 1);
}

static void add_number(Sha256 *sha, uint64_t number)
{
        sha256_add(sha, &number, sizeof(number));
}

static void add_version(Sha256 *sha, const GraphVersion *version)
{
        add_text(sha, version->name);
        sha256_add(sha, &version->key, sizeof(version->key));
        add_number(sha, (uint64_t)version->stored.version);
        add_number(sha, atomic_load(&version->settings_read));
        for (uint32_t i = 0; i < version->stored.n_parts; i++) // labels are no part of the id
                add_text(sha, version->stored.parts[i].digest.hex);
}

bool reply_cache_key(const ApiCall *call, const GraphVersion *version, RegistryKey *out_key)
{
        Sha256 sha;
        if (version == NULL || call->body == NULL || call->if_match[0] != '\0' ||
            call->if_none_match[0] != '\0')
                return false;
        sha256_start(&sha);
        add_version(&sha, version);
        add_number(&sha, (uint64_t)(call->route - routes));
        for (int i = 0; i < ROUTE_MAX_PARAMETERS; i++) {
                add_number(&sha, call->query[i] != NULL);
                add_text(&sha, call->query[i] == NULL ? "" : call->query[i]);
        }
        add_text(&sha, call->content_type);
        add_text(&sha, call->accept);
        add_text(&sha, call->header_length);
        add_number(&sha, call->takes_gzip);
        sha256_add(&sha, call->body->data, call->body->n_bytes);
        HashHex hex = sha256_finish(&sha);
        for (size_t i = 0; i < sizeof(out_key->bytes); i++) {
                unsigned byte = 0;
                for (int half = 0; half < 2; half++) {
                        char digit = hex.hex[2 * i + (size_t)half];
                        byte = byte << 4 | (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
                }
                out_key->bytes[i] = (uint8_t)byte;
        }
        return true;
}

// ---- replies ----
bool reply_cache_find(ReplyCache *cache, const RegistryKey *key, ApiReply *reply)
{
        KeptReply *kept = registry_peek(cache->replies, key);
        atomic_fetch_add(kept != NULL ? &cache->n_hits : &cache->n_misses, 1);
        if (kept == NULL)
                return false;
        text_add_n(&reply->body, kept->body.data, kept->body.n);
        bool whole = text_status(&reply->body) == STATUS_OK;
        if (whole) {
                reply->status = 200;
                reply->content_type = kept->content_type;
                memcpy(reply->headers, kept->headers, sizeof(kept->headers));
                reply->n_headers = kept->n_headers;
                api_reply_header(reply, "Fxserve-Cache", "hit");
        } else {
                text_deinit(&reply->body);
        }
        unref_reply(kept);
        return whole;
}

static bool may_be_kept(const RunCall *run, const ApiReply *reply)
{
        const RunTask *task = &run->task;
        return reply->status == 200 && run->session == NULL && !run->mutations && !run->keep &&
               !run->has_initial_env && !run->profile_in_reply && task->authored == NULL &&
               !run_has_recipe(run) && !task->generator.started && !task->generator.seeded &&
               reply->n_headers < REPLY_MAX_HEADERS;
}

static Status add_part(void *context, const uint8_t *data, size_t n)
{
        text_add_n(context, (const char *)data, n);
        return text_status(context);
}

void reply_cache_keep(ReplyCache *cache, const RegistryKey *key, const RunCall *run, const ApiReply *reply)
{
        bool fits = sizeof(KeptReply) + api_reply_bytes(reply) <= cache->max_bytes;
        KeptReply *kept = fits && may_be_kept(run, reply) ? calloc(1, sizeof(*kept)) : NULL;
        if (kept == NULL)
                return;
        refcount_init(&kept->ref);
        kept->content_type = reply->content_type;
        memcpy(kept->headers, reply->headers, sizeof(kept->headers));
        kept->n_headers = reply->n_headers;
        // as one block, which holds no more than it needs
        if (text_reserve(&kept->body, api_reply_bytes(reply)) != NULL &&
            api_reply_each(reply, add_part, &kept->body) == STATUS_OK && bytes_of(kept) <= cache->max_bytes)
                (void)registry_put(cache->replies, key, kept);
        unref_reply(kept);
}
