// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/conv/late_direct.h"

#include <pthread.h>
#include <stdatomic.h>
#include "core/tensor/convert.h"

struct LateDirect {
        DnnlConv conv;
        Storage *weight;   // counted: see storage_without_bytes
        int64_t weight_at; // in bytes
        DirectConv *direct;
        pthread_mutex_t mutex; // of packing
        atomic_bool packed;
};

void late_direct_free(LateDirect *late)
{
        if (late == NULL)
                return;
        storage_unref(late->weight);
        direct_conv_free(late->direct);
        pthread_mutex_destroy(&late->mutex);
        free(late);
}

Status late_direct_new(const DnnlConv *conv, const DirectClamp *clamp, LateDirect **out_late)
{
        _cleanup_(late_direct_freep) LateDirect *late = calloc(1, sizeof(*late));
        if (late == NULL)
                return fail_memory();
        pthread_mutex_init(&late->mutex, NULL);
        late->conv = *conv;
        late->conv.input.size[0] = late->conv.out.size[0] = 1;
        TRY(direct_conv_plan(&late->conv, PRECISION_F32, clamp, &late->direct));
        if (late->direct == NULL)
                return STATUS_OK;
        late->conv.bias_data = NULL; // was copied
        if (conv->share.storage == NULL) {
                TRY(direct_conv_pack(late->direct, &late->conv));
                atomic_init(&late->packed, true);
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
        TRY(direct_conv_pack(late->direct, &conv));
        atomic_store(&late->packed, true);
        return STATUS_OK;
}

size_t late_direct_scratch(const LateDirect *late)
{
        return direct_conv_scratch(late->direct);
}

Status late_direct_get(LateDirect *late, const RunContext *ctx, const DirectConv **out_direct)
{
        Status status = STATUS_OK;
        *out_direct = late->direct;
        if (atomic_load(&late->packed))
                return STATUS_OK;
        TRY(run_lock(ctx, &late->mutex));
        if (!atomic_load(&late->packed))
                status = pack(late, ctx);
        pthread_mutex_unlock(&late->mutex);
        return status;
}
