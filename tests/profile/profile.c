// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/profile/profile.h"

static StatsPool *pool;

static void start(void)
{
        cr_assert_eq(stats_pool_open(1 << 20, &pool), STATUS_OK);
}

static void stop(void)
{
        cr_assert_eq(stats_pool_use(pool).bytes, 0);
        stats_pool_close(pool);
}

TestSuite(profile, .init = start, .fini = stop);

static Graph *small_graph(void)
{
        Graph *graph = NULL;
        cr_assert_eq(graph_new(GRAPH_FX_JSON, &graph), STATUS_OK);
        return graph;
}

static RunProfile *profile_of(Graph *graph, const char *id, const char *signature, int64_t run_ns,
                              uint32_t n_rows)
{
        RunProfile *profile = NULL;
        cr_assert_eq(run_profile_new(graph, n_rows, &profile), STATUS_OK);
        snprintf(profile->id, sizeof(profile->id), "%s", id);
        snprintf(profile->signature, sizeof(profile->signature), "%s", signature);
        profile->run_ns = profile->total_ns = run_ns;
        profile->n_rows = n_rows;
        for (uint32_t i = 0; i < n_rows; i++)
                profile->rows[i] =
                        (NodeTiming){ .start_ns = 0, .end_ns = run_ns / (n_rows + 1), .kernel = "relu" };
        return profile;
}

Test(profile, the_ring_keeps_the_last_runs_and_finds_them_by_id)
{
        ProfileRing *ring = NULL;
        Graph *graph = small_graph();
        RunProfile *rows[8];
        cr_assert_eq(profile_ring_open(3, 1 << 20, &ring), STATUS_OK);
        for (int i = 0; i < 5; i++) {
                char id[8];
                snprintf(id, sizeof(id), "r%d", i);
                RunProfile *profile = profile_of(graph, id, "x", 100 * (i == 2 ? 50 : i), 1);
                profile_ring_add(ring, profile);
                run_profile_unref(profile);
        }
        cr_assert_null(profile_ring_find(ring, "r1"));
        RunProfile *found = profile_ring_find(ring, "r3");
        cr_assert_str_eq(found->id, "r3");
        run_profile_unref(found);
        cr_assert_eq(profile_ring_list(ring, false, 2, rows), 2);
        cr_assert_str_eq(rows[0]->id, "r4");
        cr_assert_str_eq(rows[1]->id, "r3");
        run_profile_unref(rows[0]);
        run_profile_unref(rows[1]);
        cr_assert_eq(profile_ring_list(ring, true, 1, rows), 1);
        cr_assert_str_eq(rows[0]->id, "r2", "the slowest that is left");
        run_profile_unref(rows[0]);
        profile_ring_close(ring);
        cr_assert_eq(atomic_load(&graph->ref.count), 1, "no profile is left");
        graph_unref(graph);
}

Test(profile, a_repeated_id_replaces_the_older_profile)
{
        ProfileRing *ring = NULL;
        Graph *graph = small_graph();
        RunProfile *rows[4];
        profile_ring_open(3, 1 << 20, &ring);
        for (int i = 1; i <= 2; i++) {
                RunProfile *profile = profile_of(graph, "same", "x", i, 0);
                profile_ring_add(ring, profile);
                run_profile_unref(profile);
        }
        cr_assert_eq(profile_ring_list(ring, false, 4, rows), 1);
        cr_assert_eq(rows[0]->run_ns, 2);
        run_profile_unref(rows[0]);
        profile_ring_close(ring);
        graph_unref(graph);
}

Test(profile, a_list_is_newest_first_also_when_an_id_was_repeated)
{
        ProfileRing *ring = NULL;
        Graph *graph = small_graph();
        RunProfile *rows[4];
        static const char *const ids[] = { "a", "b", "a", "c", "d" }, *const want[] = { "d", "c", "a" };
        profile_ring_open(3, 1 << 20, &ring);
        for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
                RunProfile *profile = profile_of(graph, ids[i], "x", 1, 0);
                profile_ring_add(ring, profile);
                run_profile_unref(profile);
                if (i == 2) {
                        cr_assert_eq(profile_ring_list(ring, false, 4, rows), 2);
                        cr_expect_str_eq(rows[0]->id, "a");
                        cr_expect_str_eq(rows[1]->id, "b");
                        run_profile_unref(rows[0]);
                        run_profile_unref(rows[1]);
                }
        }
        cr_assert_eq(profile_ring_list(ring, false, 4, rows), 3);
        for (int i = 0; i < 3; i++) {
                cr_expect_str_eq(rows[i]->id, want[i]);
                run_profile_unref(rows[i]);
        }
        profile_ring_close(ring);
        graph_unref(graph);
}

Test(profile, the_oldest_runs_leave_when_bytes_are_short_and_shared_labels_count_once)
{
        ProfileRing *ring = NULL;
        Graph *graph = small_graph();
        RunProfile *first = profile_of(graph, "r", "x", 1, 1);
        cr_assert(run_profile_detach(first));
        profile_ring_open(3, 2 * (sizeof(RunProfile) + sizeof(NodeTiming)) + run_labels_bytes(first->labels),
                          &ring);
        for (int i = 0; i < 3; i++) {
                char id[8];
                snprintf(id, sizeof(id), "r%d", i);
                RunProfile *profile = profile_of(graph, id, "x", 1, 1);
                cr_assert(run_profile_detach(profile));
                cr_assert_null(profile->graph);
                profile_ring_add(ring, profile);
                run_profile_unref(profile);
        }
        cr_assert_eq(profile_ring_use(ring).evictions, 1);
        cr_assert_null(profile_ring_find(ring, "r0"));
        run_profile_unref(first);
        cr_assert_eq(atomic_load(&graph->ref.count), 1, "a kept run does not keep its graph");
        graph_unref(graph);
        profile_ring_close(ring);
}

static void add(ProfileStats *stats, Graph *graph, const char *signature, int64_t run_ns)
{
        RunProfile *profile = profile_of(graph, "r", signature, run_ns, 2);
        profile_stats_add(stats, profile);
        run_profile_unref(profile);
}

Test(profile, percentiles_are_nearest_rank_over_the_window_and_counts_go_on)
{
        ProfileStats *stats = NULL;
        SignatureSummary *summary;
        uint32_t n;
        Graph *graph = small_graph();
        profile_stats_new(pool, &stats);
        for (int i = 1; i <= 200; i++)
                add(stats, graph, "x: float32[1]", i * 1000);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_INSTRUCTION, 0 }, &summary, &n),
                     STATUS_OK);
        cr_assert_eq(n, 1);
        cr_assert_eq(summary[0].run.count, 200);
        // The window holds 73 ... 200 us.
        cr_assert_float_eq(summary[0].run.mean_us, 136.5, 1e-6);
        cr_assert_float_eq(summary[0].run.p50_us, 136, 1e-6);
        cr_assert_float_eq(summary[0].run.p90_us, 188, 1e-6);
        cr_assert_float_eq(summary[0].run.p99_us, 199, 1e-6);
        cr_assert_float_eq(summary[0].run.max_us, 200, 1e-6);
        cr_assert_eq(summary[0].n_nodes, 2);
        cr_assert_float_eq(summary[0].nodes[0].share, 1.0 / 3, 0.01);
        cr_assert_float_eq(summary[0].nodes[0].us.mean_us + summary[0].nodes[1].us.mean_us +
                                   summary[0].other_us,
                           136.5, 1e-3);
        profile_summary_free(summary, n);
        profile_stats_free(stats);
        graph_unref(graph);
}

Test(profile, input_signatures_are_never_mixed_and_the_least_recently_used_makes_room)
{
        ProfileStats *stats = NULL;
        SignatureSummary *summary;
        uint32_t n;
        bool first_is_there = false;
        Graph *graph = small_graph();
        profile_stats_new(pool, &stats);
        for (int i = 0; i < PROFILE_MAX_SIGNATURES; i++) {
                char signature[32];
                snprintf(signature, sizeof(signature), "x: float32[%d]", i);
                add(stats, graph, signature, 1000 * (i + 1));
        }
        add(stats, graph, "x: float32[0]", 9000);
        add(stats, graph, "one more", 1);
        profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_INSTRUCTION, 0 }, &summary, &n);
        cr_assert_eq(n, PROFILE_MAX_SIGNATURES);
        for (uint32_t i = 0; i < n; i++) {
                cr_assert_str_neq(summary[i].signature, "x: float32[1]",
                                  "the least recently used one is gone");
                if (strcmp(summary[i].signature, "x: float32[0]") == 0) {
                        first_is_there = true;
                        cr_assert_eq(summary[i].run.count, 2);
                        cr_assert_float_eq(summary[i].run.mean_us, 5, 1e-6);
                }
        }
        cr_assert(first_is_there);
        profile_summary_free(summary, n);
        profile_stats_free(stats);
        graph_unref(graph);
}

Test(profile, shapes_are_those_of_the_runs_that_were_last)
{
        static const char *const signatures[] = { "a", "b", "c", "a" }, *const want[] = { "a", "c", "b" };
        ProfileStats *stats = NULL;
        SignatureSummary *summary;
        uint32_t n;
        Graph *graph = small_graph();
        profile_stats_new(pool, &stats);
        cr_assert_eq(profile_stats_shapes(stats, 1, &summary, &n), STATUS_OK);
        cr_expect_eq(n, 0);
        profile_summary_free(summary, n);
        for (int64_t i = 0; i < 4; i++) {
                RunProfile *profile = profile_of(graph, "r", signatures[i], 1, 2);
                profile->rows[1].has_tensor = true;
                meta_init(&profile->rows[1].meta, DTYPE_F32, 1, &i);
                profile_stats_add(stats, profile);
                run_profile_unref(profile);
        }
        for (uint32_t most = 1; most <= 4; most++) {
                cr_assert_eq(profile_stats_shapes(stats, most, &summary, &n), STATUS_OK);
                cr_assert_eq(n, MIN(most, 3u));
                for (uint32_t i = 0; i < n; i++)
                        cr_expect_str_eq(summary[i].signature, want[i]);
                cr_expect_eq(summary[0].n_nodes, 2);
                cr_expect_eq(summary[0].nodes[1].meta.size[0], 3);
                profile_summary_free(summary, n);
        }
        profile_stats_free(stats);
        graph_unref(graph);
}

Test(profile, a_version_that_has_gone_longest_without_a_run_makes_room_for_others)
{
        ProfileStats *stats[3];
        SignatureSummary *summary;
        uint32_t n;
        StatsPool *small = NULL;
        Graph *graph = small_graph();
        cr_assert_eq(stats_pool_open(2 * (sizeof(float) * PROFILE_WINDOW * 3 + 2 * sizeof(NodeTiming)) + 2048,
                                     &small),
                     STATUS_OK);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(profile_stats_new(small, &stats[i]), STATUS_OK);
                add(stats[i], graph, "x", 1000);
                if (i == 1)
                        add(stats[0], graph, "x", 1000);
        }
        cr_assert_eq(stats_pool_use(small).evictions, 1);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(profile_stats_read(stats[i], (ProfileGrouping){ PROFILE_BY_INSTRUCTION, 0 },
                                                &summary, &n),
                             STATUS_OK);
                cr_expect_eq(n, i != 1, "version %d", i);
                profile_summary_free(summary, n);
                profile_stats_free(stats[i]);
        }
        cr_assert_eq(stats_pool_use(small).bytes, 0);
        stats_pool_close(small);
        graph_unref(graph);
}

// Two rows: `a` alone, and one that computes `a` and `b` in twice the time.
static void add_fused(ProfileStats *stats, Graph *graph, const Node *const nodes[2], int64_t unit_us)
{
        RunProfile *profile = profile_of(graph, "r", "x", 4000 * unit_us, 2);
        profile->rows[0] =
                (NodeTiming){ .node = nodes[0], .end_ns = 1000 * unit_us, .kernel = "one", .flops = 10 };
        profile->rows[1] = (NodeTiming){ .node = nodes[0],
                                         .nodes = nodes,
                                         .n_nodes = 2,
                                         .end_ns = 2000 * unit_us,
                                         .kernel = "two",
                                         .flops = 8 };
        profile_stats_add(stats, profile);
        run_profile_unref(profile);
}

static const GroupSummary *group_named(const SignatureSummary *summary, const char *key)
{
        for (uint32_t i = 0; i < summary->n_groups; i++)
                if (strcmp(summary->groups[i].key, key) == 0)
                        return &summary->groups[i];
        return NULL;
}

Test(profile, groups_are_summed_run_by_run_and_shared_rows_are_marked_as_estimated)
{
        ProfileStats *stats = NULL;
        SignatureSummary *summary;
        uint32_t n;
        Graph *graph = small_graph();
        const StackEntry head = { .key = "head", .path = "head", .type = "Head" };
        const Node a = { .op = OP_CALL_FUNCTION, .name = "a", .target = "torch.relu" },
                   b = { .op = OP_CALL_METHOD, .name = "b", .target = "view", .module_stack = &head };
        const Node *const nodes[2] = { &a, &b };
        profile_stats_new(pool, &stats);
        for (int unit = 1; unit <= 10; unit++)
                add_fused(stats, graph, nodes, unit);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_NODE, 0 }, &summary, &n),
                     STATUS_OK);
        cr_assert_eq(summary[0].n_groups, 2);
        const GroupSummary *of_a = group_named(&summary[0], "a"), *of_b = group_named(&summary[0], "b");
        cr_assert(of_a != NULL && of_b != NULL);
        cr_expect_eq(of_a->n_rows, 2);
        cr_expect(of_a->estimated && of_b->estimated);
        cr_expect_float_eq(of_a->us.mean_us, 11, 1e-4); // (1 + 2 / 2) * 5.5
        cr_expect_float_eq(of_a->us.p90_us, 18, 1e-4);
        cr_expect_float_eq(of_b->us.max_us, 10, 1e-4);
        cr_expect_float_eq(of_a->share, 0.5, 1e-4);
        cr_expect_eq(of_a->flops, 14);
        profile_summary_free(summary, n);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_KERNEL, 0 }, &summary, &n),
                     STATUS_OK);
        const GroupSummary *two = group_named(&summary[0], "two");
        cr_assert_not_null(two);
        cr_expect(!two->estimated);
        cr_expect_float_eq(two->us.max_us, 20, 1e-4);
        profile_summary_free(summary, n);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_MODULE, 0 }, &summary, &n),
                     STATUS_OK);
        cr_expect(group_named(&summary[0], "") != NULL && group_named(&summary[0], "head") != NULL);
        profile_summary_free(summary, n);
        profile_stats_free(stats);
        graph_unref(graph);
}

Test(profile, modules_are_summed_up_to_a_depth_and_a_row_within_one_is_not_estimated)
{
        ProfileStats *stats = NULL;
        SignatureSummary *summary;
        uint32_t n;
        Graph *graph = small_graph();
        const StackEntry one = { .path = "layer1.0.conv1" }, two = { .path = "layer1.0" };
        const StackEntry three = { .path = "layer1.01" };
        const Node a = { .op = OP_CALL_FUNCTION, .name = "a", .target = "f", .module_stack = &one },
                   b = { .op = OP_CALL_FUNCTION, .name = "b", .target = "f", .module_stack = &two },
                   c = { .op = OP_CALL_FUNCTION, .name = "c", .target = "f", .module_stack = &three };
        const Node *const within[2] = { &a, &b }, *const across[2] = { &a, &c };
        profile_stats_new(pool, &stats);
        add_fused(stats, graph, within, 1);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_MODULE, 2 }, &summary, &n),
                     STATUS_OK);
        const GroupSummary *of_block = group_named(&summary[0], "layer1.0");
        cr_assert_not_null(of_block);
        cr_expect(!of_block->estimated);
        profile_summary_free(summary, n);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_MODULE, 3 }, &summary, &n),
                     STATUS_OK);
        cr_assert_not_null(group_named(&summary[0], "layer1.0.conv1"));
        cr_expect(group_named(&summary[0], "layer1.0")->estimated);
        profile_summary_free(summary, n);
        profile_stats_free(stats);
        profile_stats_new(pool, &stats);
        add_fused(stats, graph, across, 1);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_MODULE, 2 }, &summary, &n),
                     STATUS_OK);
        cr_assert_not_null(group_named(&summary[0], "layer1.01"));
        cr_expect(group_named(&summary[0], "layer1.0")->estimated);
        profile_summary_free(summary, n);
        cr_assert_eq(profile_stats_read(stats, (ProfileGrouping){ PROFILE_BY_MODULE, 1 }, &summary, &n),
                     STATUS_OK);
        cr_expect(!group_named(&summary[0], "layer1")->estimated);
        profile_summary_free(summary, n);
        profile_stats_free(stats);
        graph_unref(graph);
}
