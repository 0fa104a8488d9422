// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/product/levels_panels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t header_bytes(const LevelsPanels *panels)
{
        return (size_t)(panels->n_panels * panels->width) * sizeof(int32_t);
}

static int64_t panel_bytes(const LevelsPanels *panels)
{
        return panels->n_steps * panels->width * panels->isa->terms;
}

int64_t levels_panels_columns(const LevelsPanels *panels, int64_t panel)
{
        int64_t left = panels->n_columns - panel * panels->width;
        return left <= panels->isa->lanes ? panels->isa->lanes : panels->width;
}

Status levels_panels_init(LevelsPanels *panels, const LevelsIsa *isa, int64_t n_columns, int64_t n_steps)
{
        int64_t width = LEVELS_VECTORS * isa->lanes;
        *panels = (LevelsPanels){ .isa = isa,
                                  .n_columns = n_columns,
                                  .n_steps = n_steps,
                                  .n_panels = (n_columns + width - 1) / width,
                                  .width = width };
        size_t n = (size_t)(panels->n_panels * width);
        panels->scales = new_array(n, sizeof(float));
        panels->bias = new_array(n, sizeof(float));
        if (panels->scales == NULL || panels->bias == NULL)
                return fail_memory();
        memset(panels->scales, 0, n * sizeof(float));
        memset(panels->bias, 0, n * sizeof(float));
        return STATUS_OK;
}

void levels_panels_deinit(LevelsPanels *panels)
{
        storage_unref(panels->storage);
        free(panels->scales);
        free(panels->bias);
}

typedef struct Making {
        const LevelsPanels *panels;
        const LevelsFactor *factor;
} Making;

static Status make_panels(void *context, Storage **out_storage)
{
        const Making *making = context;
        const LevelsPanels *panels = making->panels;
        const RunContext *poll = making->factor->share.poll;
        int64_t terms = panels->isa->terms;
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new(header_bytes(panels) + (size_t)(panels->n_panels * panel_bytes(panels)), true, NULL,
                        &storage));
        int32_t *sums = (int32_t *)(void *)storage->data;
        uint8_t *data = storage->data + header_bytes(panels);
        Work work = { .ctx = poll };
        for (int64_t column = 0; column < panels->n_columns && !work_stops(&work, panels->n_steps * terms);
             column++) {
                int64_t panel = column / panels->width, at = column % panels->width;
                sums[column] = making->factor->pack(making->factor->context, column, panels,
                                                    terms * levels_panels_columns(panels, panel),
                                                    data + panel * panel_bytes(panels) + at * terms);
        }
        if (work.stops)
                return run_poll(poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

Status levels_panels_fill(LevelsPanels *panels, const LevelsFactor *factor)
{
        Making making = { panels, factor };
        size_t n = (size_t)panels->n_columns;
        char format[256];
        memcpy(panels->scales, factor->column_scale, n * sizeof(float));
        if (factor->bias != NULL)
                memcpy(panels->bias, factor->bias, n * sizeof(float));
        panels->is_finite = true;
        for (size_t i = 0; i < n; i++)
                panels->is_finite &= isfinite(panels->scales[i]) && isfinite(panels->bias[i]);
        snprintf(format, sizeof(format), "levels %s %ldx%ld %s", panels->isa->name, (long)panels->n_steps,
                 (long)panels->n_columns, factor->format);
        PackSource source = { .storage = factor->share.storage, .data = factor->data };
        return pack_cache_get(factor->share.storage == NULL ? NULL : factor->share.cache, format, &source, 1,
                              (PackMaker){ make_panels, &making, factor->share.poll }, &panels->storage);
}

void levels_panels_use(const LevelsPanels *panels, int64_t panel, LevelsTile *tile)
{
        int64_t column = panel * panels->width;
        tile->column_sum = (const int32_t *)(const void *)panels->storage->data + column;
        tile->column_scale = panels->scales + column;
        tile->bias = panels->bias + column;
        tile->weights = panels->storage->data + header_bytes(panels) + panel * panel_bytes(panels);
        tile->n_valid = (int)MIN(panels->n_columns - column, panels->width);
}

// Rounding is monotone: bounds of floats are bounds of levels.
static LevelsSteps bounded_steps(const LevelsOut *out)
{
        LevelsSteps steps = out->steps;
        const float bounds[] = { out->low, out->high };
        float ends[2];
        for (int i = 0; i < 2; i++)
                ends[i] = fminf(fmaxf(rintf(bounds[i] * steps.inverse) + steps.zero, out->steps.least),
                                out->steps.most);
        steps.least = ends[0];
        steps.most = ends[1];
        return steps;
}

void levels_panels_finish(const LevelsPanels *panels, const LevelsOut *out, bool residual, LevelsTile *tile)
{
        const LevelsSteps *steps = &out->steps;
        tile->bytes = out->bytes;
        tile->low = out->low;
        tile->high = out->high;
        tile->plain = out->bytes && !residual && panels->is_finite && steps->inverse > 0 &&
                      isfinite(steps->inverse) && steps->zero == rintf(steps->zero) &&
                      fabsf(steps->zero) <= UINT8_MAX && !isnan(out->low) && !isnan(out->high);
        tile->steps = tile->plain ? bounded_steps(out) : *steps;
}

LevelsAhead levels_look_ahead(const LevelsPanels *panels, int64_t panel, int64_t n_parts, bool again,
                              const LevelsTile *tile)
{
        bool is_last = panel + 1 == panels->n_panels;
        int64_t bytes = panel_bytes(panels);
        const uint8_t *next = is_last ? panels->storage->data + header_bytes(panels) : tile->weights + bytes;
        if (n_parts == 1 || (is_last && !again))
                return (LevelsAhead){ .from = tile->weights };
        return (LevelsAhead){ .from = next,
                              .part_bytes = bytes / n_parts,
                              .step = bytes / panels->n_steps / n_parts + 1 };
}
