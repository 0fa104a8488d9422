// SPDX-License-Identifier: Apache-2.0
// Rows summed up by what they have in common. Sums are made run by run over the window, so that
// percentiles of a group are exact. A row of a program that computes several nodes is one
// measurement: where it must be divided among them, each gets the same part, and the groups that
// got one are marked as estimated.
#include <string.h>
#include "core/base/map.h"
#include "core/profile/stats_private.h"

const char *const profile_by_names[PROFILE_BY_COUNT] = { "instruction", "node",   "target",
                                                         "op",          "module", "kernel" };

typedef struct Groups {
        GroupSummary *items;
        Window *windows;
        uint32_t n, capacity, windows_capacity;
        StringMap by_key; // key -> index + 1
        uint32_t n_runs;  // in the window
        ProfileGrouping grouping;
} Groups;

static const char *key_of(ProfileBy by, const NodeTiming *row, const Node *node)
{
        switch (by) {
        case PROFILE_BY_NODE:
                return node_origin(node);
        case PROFILE_BY_TARGET:
                return node->target;
        case PROFILE_BY_OP:
                return opcode_names[node->op];
        case PROFILE_BY_MODULE:
                return node->op == OP_CALL_MODULE   ? node->target
                       : node->module_stack != NULL ? node->module_stack->path
                                                    : "";
        default:
                return row->kernel;
        }
}

// How much of the key counts: a path's first `depth` parts.
static size_t length_of(ProfileGrouping grouping, const char *key)
{
        size_t n = 0;
        for (uint32_t part = 0; grouping.by == PROFILE_BY_MODULE && part < grouping.depth; part++) {
                n += strcspn(key + n, ".");
                if (key[n] == '\0' || part + 1 == grouping.depth)
                        return n;
                n++;
        }
        return strlen(key);
}

static Status add_group(Groups *groups, const char *key, size_t n)
{
        TRY(array_reserve(&groups->items, &groups->capacity, groups->n + 1, sizeof(*groups->items)));
        TRY(array_reserve(&groups->windows, &groups->windows_capacity, groups->n + 1,
                          sizeof(*groups->windows)));
        GroupSummary *group = &groups->items[groups->n];
        *group = (GroupSummary){ .key = key };
        groups->windows[groups->n] = (Window){ .us = { 0 } };
        if (key[n] != '\0') {
                group->key = group->own_key = copy_text(key, n);
                if (group->key == NULL)
                        return fail_memory();
        }
        groups->n++;
        return string_map_set(&groups->by_key, group->key, (void *)(uintptr_t)groups->n, NULL);
}

static Status find_group(Groups *groups, const char *key, uint32_t *out_index)
{
        size_t n = length_of(groups->grouping, key);
        uintptr_t found = (uintptr_t)string_map_get_n(&groups->by_key, key, n);
        if (found == 0) {
                TRY(add_group(groups, key, n));
                found = groups->n;
        }
        *out_index = (uint32_t)found - 1;
        return STATUS_OK;
}

static Status add_part(Groups *groups, const char *key, const NodeTiming *row, const Window *window,
                       uint32_t n_parts)
{
        uint32_t index;
        if (key == NULL)
                return STATUS_OK;
        TRY(find_group(groups, key, &index));
        GroupSummary *group = &groups->items[index];
        group->n_rows++;
        group->bytes += row->bytes / n_parts;
        group->flops += row->flops / n_parts;
        group->estimated = group->estimated || n_parts > 1;
        for (uint32_t run = 0; run < groups->n_runs; run++)
                groups->windows[index].us[run] += window->us[run] / (float)n_parts;
        return STATUS_OK;
}

// Whether all nodes of the row count for one group.
static bool is_of_one(ProfileGrouping grouping, const NodeTiming *row)
{
        const char *first = key_of(grouping.by, row, row->nodes[0]);
        for (uint32_t i = 1; i < row->n_nodes; i++) {
                const char *key = key_of(grouping.by, row, row->nodes[i]);
                if (first == NULL || key == NULL || length_of(grouping, first) != length_of(grouping, key) ||
                    strncmp(first, key, length_of(grouping, first)) != 0)
                        return false;
        }
        return true;
}

static Status add_row(Groups *groups, const NodeTiming *row, const Window *window)
{
        ProfileBy by = groups->grouping.by;
        if (row->node == NULL || (!node_is_call(row->node) && row->node->op != OP_GET_ATTR))
                return STATUS_OK;
        if (row->nodes == NULL || row->n_nodes <= 1 || by == PROFILE_BY_KERNEL)
                return add_part(groups, key_of(by, row, row->node), row, window, 1);
        if (is_of_one(groups->grouping, row))
                return add_part(groups, key_of(by, row, row->nodes[0]), row, window, 1);
        for (uint32_t i = 0; i < row->n_nodes; i++)
                TRY(add_part(groups, key_of(by, row, row->nodes[i]), row, window, row->n_nodes));
        return STATUS_OK;
}

Status stats_group(const SignatureStats *stats, ProfileGrouping grouping, SignatureSummary *out)
{
        Groups groups = { .n_runs = (uint32_t)MIN(stats->n_runs, (uint64_t)PROFILE_WINDOW),
                          .grouping = grouping };
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < stats->n_nodes && status == STATUS_OK; i++)
                status = add_row(&groups, &stats->rows[i], &stats->nodes[i]);
        for (uint32_t i = 0; i < groups.n; i++) {
                groups.items[i].us = window_summary(&groups.windows[i], stats->n_runs);
                groups.items[i].share =
                        out->run.mean_us > 0 ? groups.items[i].us.mean_us / out->run.mean_us : 0;
        }
        out->groups = groups.items;
        out->n_groups = groups.n;
        free(groups.windows);
        string_map_deinit(&groups.by_key);
        return status;
}
