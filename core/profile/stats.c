// SPDX-License-Identifier: Apache-2.0
// Statistics of one graph version. For each input signature and program (or none) the last
// PROFILE_WINDOW times of the whole run and of every node are kept, so that percentiles are exact
// over that window; counts go on for ever. Beyond PROFILE_MAX_SIGNATURES of them the least recently
// used one makes room.
#include "core/profile/stats_private.h"
#include <string.h>

static SignatureStats *signature_free(SignatureStats *stats)
{
        if (stats == NULL)
                return NULL;
        run_labels_unref(stats->labels);
        free(stats->rows);
        free(stats->nodes);
        free(stats);
        return NULL;
}
DEFINE_CLEANUP(SignatureStats, signature_free)

// ---- the pool ----
Status stats_pool_open(size_t max_bytes, StatsPool **out_pool)
{
        StatsPool *pool = calloc(1, sizeof(*pool));
        if (pool == NULL)
                return fail_memory();
        pthread_mutex_init(&pool->mutex, NULL);
        pool->max_bytes = max_bytes;
        *out_pool = pool;
        return STATUS_OK;
}

StatsPool *stats_pool_close(StatsPool *pool)
{
        if (pool == NULL)
                return NULL;
        pthread_mutex_destroy(&pool->mutex);
        free(pool);
        return NULL;
}

ProfileUse stats_pool_use(StatsPool *pool)
{
        return (ProfileUse){ .bytes = atomic_load(&pool->bytes), .evictions = atomic_load(&pool->evictions) };
}

static bool is_short(const StatsPool *pool, size_t n_bytes)
{
        return n_bytes > pool->max_bytes || atomic_load(&pool->bytes) > pool->max_bytes - n_bytes;
}

static void drop(ProfileStats *stats, uint32_t place)
{
        SignatureStats *gone = stats->items[place];
        atomic_fetch_sub(&stats->pool->bytes, gone->n_bytes);
        stats->items[place] = stats->items[--stats->n];
        signature_free(gone);
}

// Under the pool's mutex; sums stay.
static void drop_all(ProfileStats *stats)
{
        pthread_mutex_lock(&stats->mutex);
        atomic_fetch_add(&stats->pool->evictions, stats->n);
        while (stats->n > 0)
                drop(stats, 0);
        atomic_store(&stats->last_use, 0);
        pthread_mutex_unlock(&stats->mutex);
}

void stats_pool_clear(StatsPool *pool)
{
        pthread_mutex_lock(&pool->mutex);
        for (ProfileStats *stats = pool->first; stats != NULL; stats = stats->next)
                drop_all(stats);
        pthread_mutex_unlock(&pool->mutex);
}

// From other versions, the longest unused first; rarely, since it is asked for new signatures only.
static void make_room(StatsPool *pool, const ProfileStats *keep, size_t n_bytes)
{
        pthread_mutex_lock(&pool->mutex);
        while (n_bytes <= pool->max_bytes && is_short(pool, n_bytes)) {
                ProfileStats *oldest = NULL;
                for (ProfileStats *stats = pool->first; stats != NULL; stats = stats->next) {
                        uint64_t use = atomic_load(&stats->last_use); // 0: holds nothing
                        if (stats != keep && use > 0 &&
                            (oldest == NULL || use < atomic_load(&oldest->last_use)))
                                oldest = stats;
                }
                if (oldest == NULL)
                        break;
                drop_all(oldest);
        }
        pthread_mutex_unlock(&pool->mutex);
}

// ---- one version ----
Status profile_stats_new(StatsPool *pool, ProfileStats **out_stats)
{
        ProfileStats *stats = calloc(1, sizeof(*stats));
        if (stats == NULL)
                return fail_memory();
        pthread_mutex_init(&stats->mutex, NULL);
        stats->pool = pool;
        pthread_mutex_lock(&pool->mutex);
        stats->next = pool->first;
        if (pool->first != NULL)
                pool->first->previous = stats;
        pool->first = stats;
        pthread_mutex_unlock(&pool->mutex);
        *out_stats = stats;
        return STATUS_OK;
}

ProfileStats *profile_stats_free(ProfileStats *stats)
{
        if (stats == NULL)
                return NULL;
        StatsPool *pool = stats->pool;
        pthread_mutex_lock(&pool->mutex);
        *(stats->previous != NULL ? &stats->previous->next : &pool->first) = stats->next;
        if (stats->next != NULL)
                stats->next->previous = stats->previous;
        pthread_mutex_unlock(&pool->mutex);
        while (stats->n > 0)
                drop(stats, 0);
        pthread_mutex_destroy(&stats->mutex);
        free(stats);
        return NULL;
}

static size_t bytes_for(const RunProfile *profile)
{
        return sizeof(SignatureStats) + run_labels_bytes(profile->labels) +
               profile->n_rows * (sizeof(NodeTiming) + sizeof(Window));
}

static SignatureStats *signature_new(const RunProfile *profile)
{
        _cleanup_(signature_freep) SignatureStats *stats = calloc(1, sizeof(*stats));
        if (stats == NULL)
                return NULL;
        memcpy(stats->signature, profile->signature, sizeof(stats->signature));
        stats->labels = profile->labels == NULL ? NULL : run_labels_ref(profile->labels);
        stats->n_bytes = bytes_for(profile);
        stats->n_nodes = profile->n_rows;
        stats->rows = new_array(profile->n_rows, sizeof(*stats->rows));
        stats->nodes = new_array(profile->n_rows, sizeof(*stats->nodes));
        if (stats->rows == NULL || stats->nodes == NULL)
                return NULL;
        return take_ptr(stats);
}

static bool same_program(const RunLabels *a, const RunLabels *b)
{
        const char *left = run_program_id(a), *right = run_program_id(b);
        return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

// The entry for this profile's signature and program; one with other rows (the graph was decoded
// anew) goes: it starts over.
static SignatureStats *find(ProfileStats *stats, const RunProfile *profile)
{
        for (uint32_t i = 0; i < stats->n; i++) {
                SignatureStats *entry = stats->items[i];
                if (strcmp(entry->signature, profile->signature) != 0)
                        continue;
                if (entry->labels == profile->labels && entry->n_nodes == profile->n_rows)
                        return entry;
                if (same_program(entry->labels, profile->labels)) {
                        drop(stats, i);
                        break;
                }
        }
        return NULL;
}

static void drop_oldest(ProfileStats *stats)
{
        uint32_t place = 0;
        for (uint32_t i = 1; i < stats->n; i++)
                if (stats->items[i]->last_use < stats->items[place]->last_use)
                        place = i;
        drop(stats, place);
}

// NULL when there are no bytes for it: statistics are lost, the run is not.
static SignatureStats *add(ProfileStats *stats, const RunProfile *profile)
{
        StatsPool *pool = stats->pool;
        size_t n_bytes = bytes_for(profile);
        if (stats->n == PROFILE_MAX_SIGNATURES)
                drop_oldest(stats);
        for (; stats->n > 0 && n_bytes <= pool->max_bytes && is_short(pool, n_bytes);
             atomic_fetch_add(&pool->evictions, 1))
                drop_oldest(stats);
        SignatureStats *fresh = is_short(pool, n_bytes) ? NULL : signature_new(profile);
        if (fresh == NULL)
                return NULL;
        atomic_fetch_add(&pool->bytes, n_bytes);
        fresh->number = atomic_fetch_add(&pool->clock, 1) + 1;
        stats->items[stats->n++] = fresh;
        return fresh;
}

static void add_sums(RunSums *sums, const RunProfile *profile)
{
        sums->n_runs++;
        sums->n_executions += profile->batch == 0 ? 1 : 1.0 / profile->batch;
        sums->total_ns += profile->total_ns;
        sums->queue_ns += profile->queue_ns;
        sums->decode_ns += profile->decode_ns;
        sums->run_ns += profile->run_ns;
        sums->encode_ns += profile->encode_ns;
        sums->last_ms = profile->wall_ms;
}

void profile_stats_add_kept(ProfileStats *stats, int64_t took_ns)
{
        pthread_mutex_lock(&stats->mutex);
        stats->sums.n_kept++;
        stats->sums.kept_ns += took_ns;
        pthread_mutex_unlock(&stats->mutex);
}

void profile_stats_add_failure(ProfileStats *stats, int64_t took_ns)
{
        pthread_mutex_lock(&stats->mutex);
        stats->sums.n_failures++;
        stats->sums.failed_ns += took_ns;
        pthread_mutex_unlock(&stats->mutex);
}

RunSums profile_stats_sums(ProfileStats *stats)
{
        pthread_mutex_lock(&stats->mutex);
        RunSums sums = stats->sums;
        pthread_mutex_unlock(&stats->mutex);
        return sums;
}

void profile_stats_add(ProfileStats *stats, const RunProfile *profile)
{
        pthread_mutex_lock(&stats->mutex);
        add_sums(&stats->sums, profile);
        SignatureStats *entry = find(stats, profile);
        if (entry == NULL) {
                pthread_mutex_unlock(&stats->mutex); // the pool's comes first
                make_room(stats->pool, stats, bytes_for(profile));
                pthread_mutex_lock(&stats->mutex);
                entry = find(stats, profile);
                if (entry == NULL)
                        entry = add(stats, profile);
        }
        if (entry != NULL) {
                uint32_t place = (uint32_t)(entry->n_runs % PROFILE_WINDOW);
                entry->run.us[place] = (float)profile->run_ns / 1000.0f;
                for (uint32_t i = 0; i < entry->n_nodes; i++)
                        entry->nodes[i].us[place] =
                                (float)(profile->rows[i].end_ns - profile->rows[i].start_ns) / 1000.0f;
                memcpy(entry->rows, profile->rows, entry->n_nodes * sizeof(*entry->rows));
                entry->n_runs++;
                entry->last_use = atomic_fetch_add(&stats->pool->clock, 1) + 1;
                atomic_store(&stats->last_use, entry->last_use);
        }
        pthread_mutex_unlock(&stats->mutex);
}

static int ascending(const void *a, const void *b)
{
        float left = *(const float *)a, right = *(const float *)b;
        return (left > right) - (left < right);
}

// Nearest-rank percentile of sorted values.
static double percentile(const float *sorted, uint32_t n, uint32_t percent)
{
        uint32_t rank = (n * percent + 99) / 100;
        return (double)sorted[rank == 0 ? 0 : rank - 1];
}

TimeSummary window_summary(const Window *window, uint64_t n_runs)
{
        float sorted[PROFILE_WINDOW];
        uint32_t n = (uint32_t)MIN(n_runs, (uint64_t)PROFILE_WINDOW);
        TimeSummary summary = { .count = n_runs };
        if (n == 0)
                return summary;
        memcpy(sorted, window->us, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), ascending);
        double sum = 0;
        for (uint32_t i = 0; i < n; i++)
                sum += (double)sorted[i];
        summary.mean_us = sum / n;
        summary.p50_us = percentile(sorted, n, 50);
        summary.p90_us = percentile(sorted, n, 90);
        summary.p99_us = percentile(sorted, n, 99);
        summary.max_us = (double)sorted[n - 1];
        return summary;
}

// ---- reading ----
// What a run showed, without times.
static Status shapes(const SignatureStats *stats, SignatureSummary *out)
{
        out->nodes = new_array(stats->n_nodes, sizeof(*out->nodes));
        if (out->nodes == NULL)
                return fail_memory();
        memcpy(out->signature, stats->signature, sizeof(out->signature));
        out->labels = stats->labels == NULL ? NULL : run_labels_ref(stats->labels);
        out->n_nodes = stats->n_nodes;
        for (uint32_t i = 0; i < stats->n_nodes; i++) {
                const NodeTiming *row = &stats->rows[i];
                out->nodes[i] = (NodeSummary){ .node = row->node,
                                               .nodes = row->nodes,
                                               .n_nodes = row->n_nodes,
                                               .why = row->why,
                                               .kernel = row->kernel,
                                               .bytes = row->bytes,
                                               .flops = row->flops,
                                               .has_tensor = row->has_tensor,
                                               .meta = row->meta };
        }
        return STATUS_OK;
}

static Status summarise(const SignatureStats *stats, ProfileGrouping grouping, SignatureSummary *out)
{
        TRY(shapes(stats, out));
        out->run = window_summary(&stats->run, stats->n_runs);
        double in_nodes = 0;
        for (uint32_t i = 0; i < stats->n_nodes; i++) {
                NodeSummary *node = &out->nodes[i];
                node->us = window_summary(&stats->nodes[i], stats->n_runs);
                node->share = out->run.mean_us > 0 ? node->us.mean_us / out->run.mean_us : 0;
                in_nodes += node->us.mean_us;
        }
        out->other_us = MAX(out->run.mean_us - in_nodes, 0.0);
        return grouping.by == PROFILE_BY_INSTRUCTION ? STATUS_OK : stats_group(stats, grouping, out);
}

static SignatureStats *copy_of(const SignatureStats *stats)
{
        _cleanup_(signature_freep) SignatureStats *copy = malloc(sizeof(*copy));
        if (copy == NULL)
                return NULL;
        *copy = *stats;
        copy->labels = stats->labels == NULL ? NULL : run_labels_ref(stats->labels);
        copy->rows = new_array(stats->n_nodes, sizeof(*copy->rows));
        copy->nodes = new_array(stats->n_nodes, sizeof(*copy->nodes));
        if (copy->rows == NULL || copy->nodes == NULL)
                return NULL;
        memcpy(copy->rows, stats->rows, stats->n_nodes * sizeof(*copy->rows));
        memcpy(copy->nodes, stats->nodes, stats->n_nodes * sizeof(*copy->nodes));
        return take_ptr(copy);
}

// Summed up outside of the mutex: a run that has ended waits for a copy of one signature at most.
static Status read_one(ProfileStats *stats, uint64_t number, ProfileGrouping grouping, SignatureSummary *out,
                       bool *out_there)
{
        _cleanup_(signature_freep) SignatureStats *copy = NULL;
        *out_there = false;
        pthread_mutex_lock(&stats->mutex);
        for (uint32_t i = 0; i < stats->n && !*out_there; i++) {
                *out_there = stats->items[i]->number == number;
                if (*out_there)
                        copy = copy_of(stats->items[i]);
        }
        pthread_mutex_unlock(&stats->mutex);
        if (!*out_there)
                return STATUS_OK; // made room meanwhile
        return copy == NULL ? fail_memory() : summarise(copy, grouping, out);
}

Status profile_stats_read(ProfileStats *stats, ProfileGrouping grouping, SignatureSummary **out_signatures,
                          uint32_t *out_n)
{
        SignatureSummary *all = new_array(PROFILE_MAX_SIGNATURES, sizeof(*all));
        if (all == NULL)
                return fail_memory();
        uint64_t numbers[PROFILE_MAX_SIGNATURES];
        pthread_mutex_lock(&stats->mutex);
        uint32_t n_listed = stats->n, n = 0;
        for (uint32_t i = 0; i < n_listed; i++)
                numbers[i] = stats->items[i]->number;
        pthread_mutex_unlock(&stats->mutex);
        for (uint32_t i = 0; i < n_listed; i++) {
                bool there;
                Status status = read_one(stats, numbers[i], grouping, &all[n], &there);
                n += there;
                if (status != STATUS_OK) {
                        profile_summary_free(all, n);
                        return status;
                }
        }
        *out_signatures = all;
        *out_n = n;
        return STATUS_OK;
}

static int latest_first(const void *a, const void *b)
{
        const SignatureStats *left = *(SignatureStats *const *)a, *right = *(SignatureStats *const *)b;
        return (left->last_use < right->last_use) - (left->last_use > right->last_use);
}

Status profile_stats_shapes(ProfileStats *stats, uint32_t most, SignatureSummary **out_signatures,
                            uint32_t *out_n)
{
        SignatureStats *sorted[PROFILE_MAX_SIGNATURES];
        Status status = STATUS_OK;
        SignatureSummary *all = new_array(PROFILE_MAX_SIGNATURES, sizeof(*all));
        if (all == NULL)
                return fail_memory();
        pthread_mutex_lock(&stats->mutex);
        uint32_t n = MIN(stats->n, most);
        memcpy(sorted, stats->items, stats->n * sizeof(*sorted));
        qsort(sorted, stats->n, sizeof(*sorted), latest_first);
        for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
                status = shapes(sorted[i], &all[i]);
        pthread_mutex_unlock(&stats->mutex);
        if (status != STATUS_OK) {
                profile_summary_free(all, n);
                return status;
        }
        *out_signatures = all;
        *out_n = n;
        return STATUS_OK;
}

void profile_summary_free(SignatureSummary *signatures, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                run_labels_unref(signatures[i].labels);
                free(signatures[i].nodes);
                for (uint32_t k = 0; k < signatures[i].n_groups; k++)
                        free(signatures[i].groups[k].own_key);
                free(signatures[i].groups);
        }
        free(signatures);
}
