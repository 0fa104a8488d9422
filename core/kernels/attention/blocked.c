// SPDX-License-Identifier: Apache-2.0
// blocked.c: pieces are groups of panels of queries of one batch item. A piece goes over its keys
// in blocks that stay in the cache while all panels of the group attend them.
#include "core/kernels/attention/blocked.h"
#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/attention/panel.h"
#include "core/kernels/dense.h"

// A panel's mask of at most MASK_FLOATS is turned once for all batch items that share it; the masks
// of all panels are kept if they are at most MASKS_FLOATS.
// Pairs of all keys and values of an item are made once for its panels if they fit PAIR_WORDS.
enum {
        MOST_KEYS = 128,
        MOST_DEPTH = 512,
        GROUP_QUERIES = 128,
        FEW_QUERIES = 4,
        MASK_FLOATS = 1 << 18,
        MASKS_FLOATS = 1 << 16,
        LEAST_MASK = 64,           // floats that a mask counts for at least: each has a KeptMask
        PREFETCH_FLOATS = 1 << 11, // of keys, and of values
        CACHE_LINE = 64,
        CACHE_LINE_FLOATS = CACHE_LINE / 4,
        PAIR_WORDS = 1 << 17
};

typedef struct BlockedRun {
        const RunContext *ctx;
        const Attention *attention;
        const AttentionPanel *panel;
        const AttentionPairs *pairs;     // NULL: products of float32
        int64_t pair_keys;               // that are kept as pairs at a time
        int64_t items, n_panels, n_keys; // n_keys: of a block
        int64_t group, n_groups;         // panels of a group; groups of an item
        bool items_first;                // neighbouring pieces are items, not panels of an item
        int64_t mask_keys;               // whose mask is kept at a time; 0: no mask
        int64_t n_masks;                 // of panels, that are kept at a time; at least a group
        _Atomic int failed;
} BlockedRun;

// A panel's mask that is kept, as it was stored at `of` from key `from` on, for so many queries.
typedef struct KeptMask {
        const void *of;
        int64_t from, n_queries;
} KeptMask;

// Working memory of a thread.
typedef struct BlockedPart {
        const BlockedRun *run;
        Work work;
        float *queries, *scores, *out, *mask; // queries and out: one panel after the other
        KeptMask *kept;                       // [n_masks], whose numbers are in `mask`
        uint32_t *key_pairs, *value_pairs;
        const void *pairs_of[2]; // keys and values that are there as pairs, from pairs_from on
        int64_t pairs_from;
} BlockedPart;

const char *attention_bf16_name(void)
{
        return kernel_variant(&attention_pairs_family, DTYPE_F32) == NULL ? NULL
                                                                          : "bf16:attention:avx512_bf16";
}

bool attention_is_blocked(const Attention *attention)
{
        return attention->dtype == DTYPE_F32 && attention->weights == DTYPE_NONE &&
               attention->l > FEW_QUERIES && attention->e <= MOST_DEPTH && attention->ev <= MOST_DEPTH;
}

static PanelRows rows_of(const Attention *attention, const GemmMatrix *matrix, int64_t item, int64_t row)
{
        return (PanelRows){ attention_row(attention, matrix, item, row, sizeof(float)), matrix->row,
                            matrix->col };
}

// Batch items that have masks of their own, up to this item.
static int64_t mask_item(const Attention *attention, int64_t item)
{
        int64_t number = 0, step = 1;
        for (int d = attention->batch_rank - 1; d >= 0; d--) {
                int64_t size = attention->mask.batch[d] == 0 ? 1 : attention->batch_size[d];
                number += item % attention->batch_size[d] % size * step;
                item /= attention->batch_size[d];
                step *= size;
        }
        return number;
}

static int64_t mask_lanes(const BlockedRun *run)
{
        return run->attention->mask.row == 0 ? 1 : run->panel->queries;
}

// The mask of keys first.. for the queries at `row`, made unless it is there.
static void find_mask(BlockedPart *part, int64_t item, int64_t row, int64_t first, PanelKeys *keys)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        if (at->mask_kind == MASK_NONE)
                return;
        bool is_bool = at->mask_kind == MASK_BOOL;
        size_t bytes = is_bool ? 1 : sizeof(float);
        const char *start = attention_row(at, &at->mask, item, row, bytes);
        int64_t from = first - first % run->mask_keys, n = MIN(run->mask_keys, at->s - from);
        PanelRows rows = { start + from * at->mask.col * (int64_t)bytes, at->mask.row, at->mask.col };
        keys->mask_is_row = at->mask.row == 0;
        int64_t panel = row / run->panel->queries, slot = panel % run->group;
        if (run->n_masks > run->group)
                slot = mask_item(at, item) * run->n_panels + panel;
        KeptMask *kept = part->kept + slot;
        float *mask = part->mask + slot * run->mask_keys * mask_lanes(run);
        if (kept->of != start || kept->from != from || kept->n_queries < keys->n_queries) {
                if (!keys->mask_is_row) {
                        (is_bool ? run->panel->pack_bool : run->panel->pack)(&rows, keys->n_queries, n, mask);
                } else {
                        for (int64_t j = 0; j < n; j++) {
                                const char *value = (const char *)rows.data + j * rows.col * (int64_t)bytes;
                                mask[j] = !is_bool      ? *(const float *)(const void *)value
                                          : *value != 0 ? 0.0F
                                                        : -INFINITY;
                        }
                }
                work_stops(&part->work, n * mask_lanes(run));
                *kept = (KeptMask){ start, from, keys->n_queries };
        }
        keys->mask = mask + (first - from) * mask_lanes(run);
}

static int64_t pairs_along(int64_t n)
{
        return (n + 1) / 2;
}

// Pairs of the keys from `first` on in place of k and v, made unless they are there.
static void find_pairs(BlockedPart *part, const PanelRows *k, const PanelRows *v, int64_t first,
                       PanelKeys *keys)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        int64_t from = first - first % run->pair_keys, n = MIN(run->pair_keys, at->s - from);
        int64_t e = pairs_along(at->e);
        if (part->pairs_of[0] != k->data || part->pairs_of[1] != v->data || part->pairs_from != from) {
                PanelRows some_k = { (const float *)k->data + from * k->row, k->row, k->col },
                          some_v = { (const float *)v->data + from * v->row, v->row, v->col };
                run->pairs->pack_keys(&some_k, n, at->e, part->key_pairs);
                run->pairs->pack_values(&some_v, n, at->ev, part->value_pairs);
                work_stops(&part->work, n * (at->e + at->ev) / 8);
                part->pairs_of[0] = k->data;
                part->pairs_of[1] = v->data;
                part->pairs_from = from;
        }
        keys->k = (PanelRows){ part->key_pairs + (first - from) * e, e, 1 };
        keys->v = (PanelRows){ part->value_pairs + (first - from) / 2 * at->ev, at->ev, 1 };
}

// Keys and values of an item that lie far apart, as heads of a window do, are asked for together.
static void prefetch_rows(const PanelRows *rows, int64_t n, int64_t n_cols)
{
        for (int64_t j = 0; j < n && n * n_cols <= PREFETCH_FLOATS && rows->col == 1; j++)
                for (int64_t c = 0; c < n_cols; c += CACHE_LINE_FLOATS)
                        __builtin_prefetch((const float *)rows->data + j * rows->row + c);
}

// A panel on its way over the keys.
typedef struct PanelState {
        PanelKeys keys;
        int64_t row, n_keys; // first query; keys that any query may attend
        float max[PANEL_MAX_QUERIES], sum[PANEL_MAX_QUERIES];
} PanelState;

static void begin_panel(BlockedPart *part, int64_t item, int64_t row, int64_t place, PanelState *state)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        int n = (int)MIN(at->l - row, (int64_t)run->panel->queries);
        state->row = row;
        state->n_keys = at->causal ? MIN(at->s, row + n) : at->s;
        for (int i = 0; i < PANEL_MAX_QUERIES; i++) {
                state->max[i] = -INFINITY;
                state->sum[i] = 0;
        }
        state->keys = (PanelKeys){ .n_queries = n,
                                   .e = at->e,
                                   .ev = at->ev,
                                   .scale = (float)at->scale,
                                   .queries = part->queries + place * at->e * run->panel->queries,
                                   .scores = part->scores,
                                   .max = state->max,
                                   .sum = state->sum,
                                   .out = part->out + place * at->ev * run->panel->queries };
        float *queries = part->queries + place * at->e * run->panel->queries;
        PanelRows q = rows_of(at, &at->q, item, row);
        run->panel->pack(&q, n, at->e, queries);
        if (run->pairs != NULL)
                run->pairs->pair_panel(queries, at->e);
        memset(state->keys.out, 0, (size_t)(at->ev * run->panel->queries) * sizeof(float));
}

static void attend_block(BlockedPart *part, int64_t item, int64_t first, PanelState *state)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        PanelKeys *keys = &state->keys;
        PanelRows k = rows_of(at, &at->k, item, 0), v = rows_of(at, &at->v, item, 0);
        keys->n_keys = MIN(run->n_keys, state->n_keys - first);
        keys->k = (PanelRows){ (const float *)k.data + first * k.row, k.row, k.col };
        keys->v = (PanelRows){ (const float *)v.data + first * v.row, v.row, v.col };
        keys->after = at->causal ? first - state->row : INT64_MIN;
        find_mask(part, item, state->row, first, keys);
        if (run->pairs != NULL)
                find_pairs(part, &k, &v, first, keys);
        (run->pairs != NULL ? run->pairs->attend : run->panel->attend)(keys);
}

static void end_panel(BlockedPart *part, int64_t item, PanelState *state)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        PanelRows out = rows_of(at, &at->out, item, state->row);
        for (int i = 0; at->nan_rows && i < state->keys.n_queries; i++)
                state->sum[i] = state->sum[i] == 0 ? NAN : state->sum[i];
        run->panel->unpack(state->keys.out, state->sum, &out, state->keys.n_queries, at->ev);
}

static void attend_group(BlockedPart *part, int64_t item, int64_t first_panel, PanelState *states)
{
        const BlockedRun *run = part->run;
        const Attention *at = run->attention;
        int64_t n = MIN(run->group, run->n_panels - first_panel), all = 0;
        if (first_panel == 0) {
                PanelRows k = rows_of(at, &at->k, item, 0), v = rows_of(at, &at->v, item, 0);
                prefetch_rows(&k, at->s, at->e);
                prefetch_rows(&v, at->s, at->ev);
        }
        for (int64_t i = 0; i < n; i++) {
                begin_panel(part, item, (first_panel + i) * run->panel->queries, i, &states[i]);
                all = MAX(all, states[i].n_keys);
        }
        for (int64_t first = 0; first < all; first += run->n_keys) {
                for (int64_t i = 0; i < n; i++) {
                        if (first >= states[i].n_keys)
                                continue;
                        const PanelKeys *keys = &states[i].keys;
                        int64_t per_key = keys->n_queries * (at->e + at->ev + 16) / 16 + 1;
                        if (work_stops(&part->work, MIN(run->n_keys, states[i].n_keys - first) * per_key))
                                return;
                        attend_block(part, item, first, &states[i]);
                }
        }
        for (int64_t i = 0; i < n; i++)
                end_panel(part, item, &states[i]);
}

static void attend_pieces(void *argument, int64_t begin, int64_t end)
{
        BlockedRun *run = argument;
        const Attention *at = run->attention;
        int64_t lanes = run->panel->queries, n_key_pairs = run->pair_keys * pairs_along(at->e),
                mask_floats = run->n_masks * run->mask_keys * mask_lanes(run),
                kept_lines = (run->n_masks * (int64_t)sizeof(KeptMask) + CACHE_LINE - 1) / CACHE_LINE,
                kept_floats = kept_lines * CACHE_LINE_FLOATS, // what follows begins at a cache line
                n = kept_floats + (run->group * (at->e + at->ev) + run->n_keys) * lanes + mask_floats +
                    n_key_pairs + pairs_along(run->pair_keys) * at->ev;
        Scratch scratch;
        if (scratch_init(&scratch, run->ctx, n, sizeof(float)) != STATUS_OK) {
                atomic_store(&run->failed, 1);
                return;
        }
        BlockedPart part = { .run = run, .work = { .ctx = run->ctx }, .kept = scratch.data };
        memset(part.kept, 0, (size_t)kept_floats * sizeof(float));
        part.queries = (float *)scratch.data + kept_floats;
        part.scores = part.queries + run->group * at->e * lanes;
        part.out = part.scores + run->n_keys * lanes;
        part.mask = part.out + run->group * at->ev * lanes;
        part.key_pairs = (uint32_t *)(void *)(part.mask + mask_floats);
        part.value_pairs = part.key_pairs + n_key_pairs;
        PanelState states[GROUP_QUERIES / PANEL_LEAST_QUERIES];
        for (int64_t piece = begin; piece < end && !part.work.stops; piece++) {
                int64_t item = run->items_first ? piece % run->items : piece / run->n_groups;
                int64_t group = run->items_first ? piece / run->items : piece % run->n_groups;
                attend_group(&part, item, group * run->group, states);
        }
        scratch_deinit(&scratch);
}

// How many masks are kept, and in which order pieces come so that one is found again.
static void plan_masks(BlockedRun *run)
{
        const Attention *at = run->attention;
        run->n_masks = run->group;
        if (at->mask_kind == MASK_NONE || at->s == 0)
                return;
        int64_t lanes = mask_lanes(run), n_masks = (mask_item(at, run->items - 1) + 1) * run->n_panels;
        bool fits = at->s * lanes <= MASK_FLOATS / run->group;
        run->mask_keys = fits ? at->s : run->n_keys;
        if (n_masks < run->items * run->n_panels && n_masks <= MASKS_FLOATS / MAX(at->s * lanes, LEAST_MASK))
                run->n_masks = MAX(n_masks, run->group);
        else
                run->items_first = fits && at->mask.row != 0 && at->batch_rank > 0 &&
                                   at->mask.batch[at->batch_rank - 1] == 0;
}

Status attention_run_blocked(const RunContext *ctx, const Attention *attention, int64_t items)
{
        BlockedRun run = { .ctx = ctx, .attention = attention, .items = items };
        run.panel = kernel_variant(&attention_family, DTYPE_F32);
        int64_t n_blocks = MAX((int64_t)1, (attention->s + MOST_KEYS - 1) / MOST_KEYS);
        run.n_keys = (attention->s + n_blocks - 1) / n_blocks;
        if (attention->bf16 && attention->e > 0)
                run.pairs = kernel_variant(&attention_pairs_family, DTYPE_F32);
        if (run.pairs != NULL) {
                run.n_keys += run.n_keys % 2; // blocks begin with whole pairs
                bool fits = attention->s * (attention->e + attention->ev) / 2 <= PAIR_WORDS;
                run.pair_keys = fits ? MAX(attention->s, (int64_t)1) : run.n_keys;
        }
        run.n_panels = (attention->l + run.panel->queries - 1) / run.panel->queries;
        int64_t n_threads = ctx == NULL ? 1 : ctx->n_threads, most = GROUP_QUERIES / run.panel->queries;
        run.group = n_blocks == 1 ? 1 : MAX(1, MIN(most, run.n_panels * items / (4 * n_threads)));
        run.n_groups = (run.n_panels + run.group - 1) / run.group;
        plan_masks(&run);
        // One call of attend_pieces for each thread: masks and pairs are kept from piece to piece.
        int64_t n_pieces = items * run.n_groups;
        TRY(parallel_for(ctx, n_pieces, (n_pieces + n_threads - 1) / n_threads, attend_pieces, &run));
        TRY(run_poll(ctx));
        return atomic_load(&run.failed) ? STATUS_NO_MEMORY : STATUS_OK;
}
