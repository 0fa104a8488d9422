// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/conv/late_direct.h"

#include <pthread.h>
#include <stdatomic.h>
#include "core/kernels/conv/grouped.h"
#include "core/kernels/conv/volume_plane.h"
#include "core/tensor/convert.h"

struct LateDirect {
        DnnlConv conv;
        Storage *weight;   // counted: see storage_without_bytes
        int64_t weight_at; // in bytes
        int n, n_packed;
        DirectPart *parts;
        pthread_mutex_t mutex; // of packing
        atomic_bool packed;
};

void late_direct_free(LateDirect *late)
{
        if (late == NULL)
                return;
        storage_unref(late->weight);
        for (int i = 0; i < late->n; i++)
                direct_conv_free(late->parts[i].conv);
        free(late->parts);
        pthread_mutex_destroy(&late->mutex);
        free(late);
}

// Of one image: plane `k` of the taps, or group `k`.
static DnnlConv part_of(const DnnlConv *conv, int64_t k)
{
        DnnlConv part = conv->input.rank == 5 ? volume_plane(conv, 1, k)
                        : conv->groups > 1    ? grouped_part(conv, k)
                                              : *conv;
        part.input.size[0] = part.out.size[0] = 1;
        return part;
}

static Status pack_parts(LateDirect *late, const DnnlConv *conv)
{
        for (; late->n_packed < late->n; late->n_packed++) {
                DnnlConv part = part_of(conv, late->n_packed);
                TRY(direct_conv_pack(late->parts[late->n_packed].conv, &part));
        }
        atomic_store(&late->packed, true);
        return STATUS_OK;
}

Status late_direct_new(const DnnlConv *conv, const DirectClamp *clamp, LateDirect **out_late)
{
        _cleanup_(late_direct_freep) LateDirect *late = calloc(1, sizeof(*late));
        if (late == NULL)
                return fail_memory();
        pthread_mutex_init(&late->mutex, NULL);
        late->conv = *conv;
        int64_t taps = conv->input.rank == 5 ? conv->weight.size[2] : 1, n = MAX(taps, conv->groups);
        if (taps > 1)
                late->conv.bias_data = NULL;
        late->parts = calloc((size_t)n, sizeof(*late->parts));
        if (late->parts == NULL)
                return fail_memory();
        for (; late->n < n; late->n++) {
                DnnlConv part = part_of(&late->conv, late->n);
                DirectPart *to = &late->parts[late->n];
                TRY(direct_conv_plan(&part, PRECISION_F32, taps > 1 ? &(DirectClamp){ 0 } : clamp,
                                     &to->conv));
                if (to->conv == NULL)
                        return STATUS_OK;
                to->in_offset = taps > 1 ? 0 : late->n * part.weight.size[1];
                to->offset = taps > 1 ? 0 : late->n * part.weight.size[0];
        }
        late->conv.bias_data = NULL; // was copied
        if (conv->share.storage == NULL) {
                TRY(pack_parts(late, &late->conv));
        } else {
                TRY(storage_without_bytes(conv->share.storage, &late->weight));
                const void *stored = pack_source(&conv->share, conv->weight_data).data;
                late->weight_at = (const uint8_t *)stored - conv->share.storage->data;
        }
        *out_late = take_ptr(late);
        return STATUS_OK;
}

// Failures are not kept: the next run tries again.
static Status pack(LateDirect *late, const RunContext *ctx)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        _cleanup_(freep) float *widened = NULL;
        DnnlConv conv = late->conv;
        TRY(storage_with_bytes(late->weight, &bytes));
        conv.weight_data = bytes->data + late->weight_at;
        conv.share.storage = bytes;
        conv.share.poll = ctx;
        if (conv.share.copy != NULL) {
                const size_t n = (size_t)meta_numel(&conv.weight);
                widened = new_array(n, sizeof(float));
                if (widened == NULL)
                        return fail_memory();
                tile_loader(TILE_F32, conv.share.stored)(conv.weight_data,
                                                         dtype_info[conv.share.stored].bytes, n, widened);
                conv.share.original = conv.weight_data;
                conv.share.copy = conv.weight_data = widened;
        }
        return pack_parts(late, &conv);
}

size_t late_direct_scratch(const LateDirect *late)
{
        size_t most = 0;
        for (int i = 0; i < late->n; i++)
                most = MAX(most, direct_conv_scratch(late->parts[i].conv));
        return most;
}

Status late_direct_get(LateDirect *late, const RunContext *ctx, LateParts *out_parts)
{
        Status status = STATUS_OK;
        *out_parts = (LateParts){ late->n, late->parts };
        if (atomic_load(&late->packed))
                return STATUS_OK;
        TRY(run_lock(ctx, &late->mutex));
        if (!atomic_load(&late->packed))
                status = pack(late, ctx);
        pthread_mutex_unlock(&late->mutex);
        return status;
}
