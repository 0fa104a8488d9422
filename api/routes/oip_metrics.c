// SPDX-License-Identifier: Apache-2.0
// Triton's metrics, under its names and labels, so that dashboards and autoscalers made for it work
// as they are: counts and times of the default version of each graph. It calls them counters, whose
// names would end in _total then; here they have no type.
#include "api/routes/oip_metrics.h"
#include "api/routes/metrics.h"

typedef struct Family {
        const char *name, *help;
        uint64_t (*value)(const RunSums *sums);
} Family;

static uint64_t successes(const RunSums *sums)
{
        return sums->n_runs;
}

static uint64_t failures(const RunSums *sums)
{
        return sums->n_failures;
}

static uint64_t executions(const RunSums *sums)
{
        return (uint64_t)(sums->n_executions + 0.5);
}

static uint64_t request_us(const RunSums *sums)
{
        return (uint64_t)(sums->total_ns / 1000);
}

static uint64_t queue_us(const RunSums *sums)
{
        return (uint64_t)(sums->queue_ns / 1000);
}

static uint64_t input_us(const RunSums *sums)
{
        return (uint64_t)(sums->decode_ns / 1000);
}

static uint64_t infer_us(const RunSums *sums)
{
        return (uint64_t)(sums->run_ns / 1000);
}

static uint64_t output_us(const RunSums *sums)
{
        return (uint64_t)(sums->encode_ns / 1000);
}

static const Family families[] = {
        { "nv_inference_request_success", "Runs that ended well.", successes },
        { "nv_inference_request_failure", "Runs that did not.", failures },
        { "nv_inference_count", "Runs that ended well, one per request.", successes },
        { "nv_inference_exec_count", "Executions: a batch counts once.", executions },
        { "nv_inference_request_duration_us", "From the request line to the reply.", request_us },
        { "nv_inference_queue_duration_us", "Waiting for a worker.", queue_us },
        { "nv_inference_compute_input_duration_us", "Reading the inputs.", input_us },
        { "nv_inference_compute_infer_duration_us", "The runs themselves.", infer_us },
        { "nv_inference_compute_output_duration_us", "Writing the replies.", output_us },
};

Status oip_metrics_write(Engine *engine, Text *out)
{
        GraphVersion *versions[METRICS_MAX_GRAPHS];
        RunSums sums[METRICS_MAX_GRAPHS];
        uint32_t n;
        bool more;
        TRY(engine_list(engine, NULL, METRICS_MAX_GRAPHS, versions, &n, &more));
        for (uint32_t i = 0; i < n; i++)
                sums[i] = profile_stats_sums(versions[i]->stats);
        for (size_t f = 0; f < ARRAY_LENGTH(families); f++) {
                text_addf(out, "# HELP %s %s\n# TYPE %s untyped\n", families[f].name, families[f].help,
                          families[f].name);
                // names of graphs need no escapes
                for (uint32_t i = 0; i < n; i++)
                        text_addf(out, "%s{model=\"%s\",version=\"%lld\"} %llu\n", families[f].name,
                                  versions[i]->name, (long long)versions[i]->stored.version,
                                  (unsigned long long)families[f].value(&sums[i]));
        }
        for (uint32_t i = 0; i < n; i++)
                graph_version_unref(versions[i]);
        return STATUS_OK;
}
