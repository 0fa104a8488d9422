// SPDX-License-Identifier: Apache-2.0
// Threads store, map, read and remove graphs that share weights, as fast as they can: what is
// mapped is what was stored, nothing is removed while somebody counts on it, and nothing is left at
// the end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/store/store.h"
#include "tests/engine/scratch.h"

enum { N_THREADS = 4, N_WEIGHTS = 3, WEIGHT_BYTES = 70000, PART_BYTES = 80000, CUT_OFFSET = 1000 };

static Store *store;
static int64_t end_ns;
static _Atomic long n_puts, n_maps;

static void complain(const char *what)
{
        fprintf(stderr, "stress_store: %s: %s\n", what, failure_current()->message);
        abort();
}

static uint8_t byte_of(unsigned weight, size_t i)
{
        return (uint8_t)(i * 7 + weight * 91 + i / 253);
}

static void read_back(const StorePart *part, unsigned weight, unsigned document)
{
        Mapping *weights = NULL, *rest = NULL;
        if (store_map_hole(store, &part->holes->items[0], &weights) != STATUS_OK ||
            store_map_document(store, part, &rest) != STATUS_OK)
                complain("mapping");
        for (size_t i = 0; i < WEIGHT_BYTES; i += 97)
                if (weights->data[i] != byte_of(weight, i))
                        complain("weights that were not stored");
        if (rest->data[0] != (uint8_t)document || rest->data[PART_BYTES - 1] != (uint8_t)document)
                complain("a document that was not stored");
        mapping_unref(weights);
        mapping_unref(rest);
        atomic_fetch_add(&n_maps, 1);
}

static void round_of(unsigned thread, unsigned *seed)
{
        unsigned weight = (unsigned)rand_r(seed) % N_WEIGHTS, document = (unsigned)rand_r(seed) % 2;
        uint8_t *bytes = malloc(PART_BYTES);
        memset(bytes, (int)document, PART_BYTES);
        for (size_t i = 0; i < WEIGHT_BYTES; i++)
                bytes[CUT_OFFSET + i] = byte_of(weight, i);
        StoreVersion version = {
                .version = 1, .format = "pt2", .n_parts = 1, .id = sha256_of(bytes, PART_BYTES)
        };
        StoreCut cut = { .offset = CUT_OFFSET,
                         .n = WEIGHT_BYTES,
                         .content = { bytes + CUT_OFFSET, WEIGHT_BYTES } };
        const StoreVersion *versions[] = { &version };
        StoreHead head = { .next_version = 2, .default_version = 1 };
        snprintf(head.name, sizeof(head.name), "graph%u", thread);
        version.parts[0].digest = version.id;
        version.parts[0].n_bytes = PART_BYTES;
        if (store_hold_part(store, (ByteSpan){ bytes, PART_BYTES }, &cut, 1, &version.parts[0]) != STATUS_OK)
                complain("storing");
        read_back(&version.parts[0], weight, document);
        if (store_put_version(store, &head, &version, NULL) != STATUS_OK)
                complain("the version");
        store_release_part(store, &version.parts[0]);
        read_back(&version.parts[0], weight, document);
        if (store_put_tune(store, &version.id, (ByteSpan){ bytes, 10 }) != STATUS_OK)
                complain("the tune record");
        if (store_remove_name(store, head.name, versions, 1) != STATUS_OK)
                complain("removing");
        store_remove_tune(store, &version.id);
        store_version_unref(&version);
        free(bytes);
        atomic_fetch_add(&n_puts, 1);
}

static void *work(void *argument)
{
        unsigned thread = (unsigned)(uintptr_t)argument, seed = thread + 1;
        while (clock_ns() < end_ns)
                round_of(thread, &seed);
        return NULL;
}

int main(int argc, char **argv)
{
        double seconds = argc > 1 ? atof(argv[1]) : 2;
        char *folder = scratch_make();
        pthread_t threads[N_THREADS];
        if (store_open(folder, NULL, NULL, NULL, NULL, &store) != STATUS_OK)
                complain("opening");
        end_ns = clock_ns() + (int64_t)(seconds * 1e9);
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        int left = scratch_count(folder, "blobs") + scratch_count(folder, "tunes") +
                   scratch_count(folder, "tmp");
        store_close(store);
        scratch_remove(folder);
        printf("%ld stored, %ld mapped, %d left over\n", atomic_load(&n_puts), atomic_load(&n_maps), left);
        return left == 0 ? 0 : 1;
}
