// SPDX-License-Identifier: Apache-2.0
// Statistics of one graph version. For each input signature the last PROFILE_WINDOW times of the whole run and of every node are kept, so
// that percentiles are exact over that window; counts go on for ever. Beyond PROFILE_MAX_SIGNATURES the least recently used signature makes
// room.
#include "core/profile/stats_private.h"
#include <string.h>

static SignatureStats *signature_free(SignatureStats *stats)
{
        if (stats == NULL)
                return NULL;
        program_unref(stats->program);
        graph_unref(stats->graph);
        free(stats->rows);
        free(stats->nodes);
        free(stats);
        return NULL;
}
DEFINE_CLEANUP(SignatureStats, signature_free)

Status profile_stats_new(ProfileStats **out_stats)
{
        ProfileStats *stats = calloc(1, sizeof(*stats));
        if (stats == NULL)
                return fail_memory();
        pthread_mutex_init(&stats->mutex, NULL);
        *out_stats = stats;
        return STATUS_OK;
}

ProfileStats *profile_stats_free(ProfileStats *stats)
{
        if (stats == NULL)
                return NULL;
        for (uint32_t i = 0; i < stats->n; i++)
                signature_free(stats->items[i]);
        pthread_mutex_destroy(&stats->mutex);
        free(stats);
        return NULL;
}

static SignatureStats *signature_new(const RunProfile *profile)
{
        _cleanup_(signature_freep) SignatureStats *stats = calloc(1, sizeof(*stats));
        if (stats == NULL)
                return NULL;
        memcpy(stats->signature, profile->signature, sizeof(stats->signature));
        stats->graph = graph_ref(profile->graph);
        stats->program = profile->program == NULL ? NULL : program_ref(profile->program);
        stats->n_nodes = profile->n_rows;
        stats->rows = new_array(profile->n_rows, sizeof(*stats->rows));
        stats->nodes = new_array(profile->n_rows, sizeof(*stats->nodes));
        if (stats->rows == NULL || stats->nodes == NULL)
                return NULL;
        return take_ptr(stats);
}

// The entry for this profile's signature; one with other rows (the graph was decoded anew) starts over. NULL when out of memory: statistics
// are lost, the run is not.
static SignatureStats *find_or_add(ProfileStats *stats, const RunProfile *profile)
{
        uint32_t place = 0;
        for (; place < stats->n; place++)
                if (strcmp(stats->items[place]->signature, profile->signature) == 0)
                        break;
        if (place < stats->n && stats->items[place]->graph == profile->graph && stats->items[place]->program == profile->program &&
            stats->items[place]->n_nodes == profile->n_rows)
                return stats->items[place];
        SignatureStats *fresh = signature_new(profile);
        if (fresh == NULL)
                return NULL;
        if (place == stats->n && stats->n == PROFILE_MAX_SIGNATURES) {
                place = 0;
                for (uint32_t i = 1; i < stats->n; i++)
                        if (stats->items[i]->last_use < stats->items[place]->last_use)
                                place = i;
        }
        if (place == stats->n)
                stats->n++;
        else
                signature_free(stats->items[place]);
        stats->items[place] = fresh;
        return fresh;
}

void profile_stats_add(ProfileStats *stats, const RunProfile *profile)
{
        pthread_mutex_lock(&stats->mutex);
        SignatureStats *entry = find_or_add(stats, profile);
        if (entry != NULL) {
                uint32_t place = (uint32_t)(entry->n_runs % PROFILE_WINDOW);
                entry->run.us[place] = (float)profile->run_ns / 1000.0f;
                for (uint32_t i = 0; i < entry->n_nodes; i++)
                        entry->nodes[i].us[place] = (float)(profile->rows[i].end_ns - profile->rows[i].start_ns) / 1000.0f;
                memcpy(entry->rows, profile->rows, entry->n_nodes * sizeof(*entry->rows));
                entry->n_runs++;
                entry->last_use = ++stats->clock;
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

static Status snapshot(const SignatureStats *stats, SignatureSummary *out)
{
        out->nodes = new_array(stats->n_nodes, sizeof(*out->nodes));
        if (out->nodes == NULL)
                return fail_memory();
        memcpy(out->signature, stats->signature, sizeof(out->signature));
        out->graph = graph_ref(stats->graph);
        out->program = stats->program == NULL ? NULL : program_ref(stats->program);
        out->run = window_summary(&stats->run, stats->n_runs);
        out->n_nodes = stats->n_nodes;
        double in_nodes = 0;
        for (uint32_t i = 0; i < stats->n_nodes; i++) {
                const NodeTiming *row = &stats->rows[i];
                TimeSummary us = window_summary(&stats->nodes[i], stats->n_runs);
                double share = out->run.mean_us > 0 ? us.mean_us / out->run.mean_us : 0;
                out->nodes[i] = (NodeSummary){ .node = row->node,
                                               .nodes = row->nodes,
                                               .n_nodes = row->n_nodes,
                                               .why = row->why,
                                               .kernel = row->kernel,
                                               .us = us,
                                               .share = share,
                                               .bytes = row->bytes,
                                               .flops = row->flops,
                                               .has_tensor = row->has_tensor,
                                               .meta = row->meta };
                in_nodes += us.mean_us;
        }
        out->other_us = MAX(out->run.mean_us - in_nodes, 0.0);
        return STATUS_OK;
}

Status profile_stats_read(ProfileStats *stats, ProfileBy by, SignatureSummary **out_signatures, uint32_t *out_n)
{
        Status status = STATUS_OK;
        pthread_mutex_lock(&stats->mutex);
        uint32_t n = stats->n;
        SignatureSummary *all = new_array(n, sizeof(*all));
        if (all == NULL)
                status = fail_memory();
        for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
                status = snapshot(stats->items[i], &all[i]);
                if (status == STATUS_OK && by != PROFILE_BY_INSTRUCTION)
                        status = stats_group(stats->items[i], by, &all[i]);
        }
        pthread_mutex_unlock(&stats->mutex);
        if (status != STATUS_OK) {
                if (all != NULL)
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
                program_unref(signatures[i].program);
                graph_unref(signatures[i].graph);
                free(signatures[i].nodes);
                free(signatures[i].groups);
        }
        free(signatures);
}
