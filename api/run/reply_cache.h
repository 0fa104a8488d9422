// SPDX-License-Identifier: Apache-2.0
// Replies of runs, kept for requests that are equal byte for byte: the same version of a graph with
// the same settings, the same body, query and headers. Only runs whose reply follows from these are
// kept: no rules, no session, no random numbers, no kept values, no profile in the reply. Any
// thread.
#pragma once
#include "api/run/run.h"
#include "core/registry/registry.h"

typedef struct ReplyCache ReplyCache;

Status reply_cache_open(size_t max_bytes, ReplyCache **out_cache);
ReplyCache *reply_cache_close(ReplyCache *cache); // NULL-safe, returns NULL
// Of a run whose body is there and plain. False: its reply is not to be kept.
bool reply_cache_key(const ApiCall *call, const GraphVersion *version, RegistryKey *out_key);
// True: the reply is complete.
bool reply_cache_find(ReplyCache *cache, const RegistryKey *key, ApiReply *reply);
// After the run; does nothing for one that is not to be kept.
void reply_cache_keep(ReplyCache *cache, const RegistryKey *key, const RunCall *run, const ApiReply *reply);
void reply_cache_clear(ReplyCache *cache);
RegistryStats reply_cache_stats(ReplyCache *cache);
