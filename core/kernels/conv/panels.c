// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/conv/panels.h"

#include <stdio.h>
#include <string.h>

static int64_t panels_at(const Panels *panels, int64_t panel)
{
        return panel * panels_width(panels) * panels->n_k;
}

float *panels_start(const Panels *panels, float *weights, int64_t panel)
{
        return weights + panels_at(panels, panel);
}

void panels_deinit(Panels *panels)
{
        storage_unref(panels->storage);
        free(panels->bias);
}

static void *aligned_floats(int64_t n)
{
        size_t n_bytes = storage_padded((size_t)n * sizeof(float));
        void *floats = aligned_alloc(STORAGE_ALIGN, MAX(n_bytes, (size_t)STORAGE_ALIGN));
        if (floats != NULL)
                memset(floats, 0, n_bytes);
        return floats;
}

Status panels_init(Panels *panels, const DirectIsa *isa, int64_t n_k, int64_t n_columns, int64_t block)
{
        *panels = (Panels){ .isa = isa, .n_k = n_k, .n_columns = n_columns };
        panels->n_blocks = MAX((n_k + block - 1) / block, (int64_t)1);
        panels->n_panels = (n_columns + panels_width(panels) - 1) / panels_width(panels);
        int64_t width = panels->n_panels * panels_width(panels);
        panels->bias = aligned_floats(width);
        return panels->bias == NULL ? fail_memory() : STATUS_OK;
}

static Status make_weights(void *context, Storage **out_storage)
{
        const PanelFill *fill = context;
        const Panels *panels = fill->panels;
        size_t n = (size_t)(panels->n_panels * panels_width(panels) * panels->n_k + panels->n_behind);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new(n * sizeof(float), true, NULL, &storage));
        Work work = { .ctx = fill->poll };
        for (int64_t panel = 0;
             panel < panels->n_panels && !work_stops(&work, panels_width(panels) * panels->n_k); panel++)
                fill->fill(fill->context, panels, panel, (float *)storage->data);
        if (work.stops)
                return run_poll(fill->poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

Status panels_fill(Panels *panels, const DirectSource *from, const char *format, PanelFill fill)
{
        char name[160];
        snprintf(name, sizeof(name), "panels %s %ldx%ld %s", isa_name(panels->isa->isa), (long)panels->n_k,
                 (long)panels->n_columns, format);
        PackSource source = pack_source(&from->share, from->data);
        fill.panels = panels;
        fill.poll = from->share.poll;
        TRY(pack_cache_get(from->share.storage == NULL ? NULL : from->share.cache, name, &source, 1,
                           (PackMaker){ make_weights, &fill, fill.poll }, &panels->storage));
        panels->weights = (const float *)panels->storage->data;
        return STATUS_OK;
}

void panels_set(const Panels *panels, float *weights, int64_t panel, int64_t k, const float *from,
                int64_t step)
{
        int64_t column = panel * panels_width(panels),
                lanes = panels_vectors(panels, panel) * panels->isa->lanes;
        int64_t n = MIN(panels->n_columns - column, lanes);
        float *to = weights + panels_at(panels, panel) + k * lanes;
        for (int64_t c = 0; c < n; c++)
                to[c] = from[c * step];
}

void panels_use(const Panels *panels, int64_t panel, int64_t block, DirectTile *tile)
{
        static const float no_bias[DIRECT_WIDE_PANELS * DIRECT_VECTORS * DIRECT_MAX_LANES];
        int64_t column = panel * panels_width(panels),
                row = panels_vectors(panels, panel) * panels->isa->lanes;
        tile->weights = panels->weights + panels_at(panels, panel) + panels_block_at(panels, block) * row;
        tile->panel_step = panels_at(panels, 1);
        tile->bias = block == 0 ? panels->bias + column : no_bias;
        tile->n_valid = (int)MIN(panels->n_columns - column, (int64_t)panels_width(panels));
}

// Rows that lie a multiple of 4 KiB apart share one set of the first-level cache, which has room
// for eight.
int64_t panels_most_pixels(const DirectIsa *isa, int64_t pixel_step)
{
        return pixel_step % 1024 == 0 ? MIN(isa->max_pixels, 7) : isa->max_pixels;
}
