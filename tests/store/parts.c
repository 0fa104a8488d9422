// SPDX-License-Identifier: Apache-2.0
// Documents with holes, blobs, mappings.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "core/store/mapping.h"
#include "core/store/store.h"
#include "tests/engine/scratch.h"

static void (*before_map)(void);

// In place of libc's: the store asks for the size of a file between opening and mapping it.
int fstat(int fd, struct stat *out)
{
        void (*act)(void) = before_map;
        before_map = NULL;
        if (act != NULL)
                act();
        return fstatat(fd, "", out, AT_EMPTY_PATH);
}

static void (*after_rename)(void);

// In place of libc's: the old file's mapping is forgotten after it.
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
        int result = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
        void (*act)(void) = after_rename;
        after_rename = NULL;
        if (act != NULL)
                act();
        return result;
}

enum { PART_BYTES = 300000, CUT_OFFSET = 70001, CUT_BYTES = 100000 };

static uint8_t part_bytes[PART_BYTES];

static void fill(uint8_t seed)
{
        for (size_t i = 0; i < PART_BYTES; i++)
                part_bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
}

static Store *open_store(const char *folder)
{
        Store *store = NULL;
        cr_assert_eq(store_open(folder, NULL, NULL, NULL, NULL, &store), STATUS_OK, "%s",
                     failure_current()->message);
        return store;
}

// The part as version 1 of `name`; `weights` are what its hole stands for.
static StoreVersion put(Store *store, const char *name, ByteSpan weights)
{
        StoreVersion version = {
                .version = 1, .format = "pt2", .n_parts = 1, .id = sha256_of(part_bytes, PART_BYTES)
        };
        StoreCut cut = { .offset = CUT_OFFSET, .n = CUT_BYTES, .content = weights };
        StoreHead head = { .next_version = 2, .default_version = 1 };
        snprintf(head.name, sizeof(head.name), "%s", name);
        version.parts[0].digest = version.id;
        version.parts[0].n_bytes = PART_BYTES;
        cr_assert_eq(store_hold_part(store, (ByteSpan){ part_bytes, PART_BYTES }, &cut, 1, &version.parts[0]),
                     STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(store_put_version(store, &head, &version, NULL), STATUS_OK);
        store_release_part(store, &version.parts[0]);
        return version;
}

static ByteSpan same_bytes(void)
{
        return (ByteSpan){ part_bytes + CUT_OFFSET, CUT_BYTES };
}

static void remove_graph(Store *store, const char *name, const StoreVersion *version)
{
        cr_assert_eq(store_remove_name(store, name, &version, 1), STATUS_OK);
}

static void change(const char *folder, const char *digest, off_t offset)
{
        char path[256];
        uint8_t byte;
        snprintf(path, sizeof(path), "%s/blobs/%s", folder, digest);
        chmod(path, 0600);
        int fd = open(path, O_RDWR);
        cr_assert_eq(pread(fd, &byte, 1, offset), 1);
        byte ^= 1;
        cr_assert_eq(pwrite(fd, &byte, 1, offset), 1);
        close(fd);
}

Test(parts, what_the_holes_leave_and_what_they_stand_for_come_back_after_opening_again)
{
        char *folder = scratch_make();
        fill(1);
        Store *store = open_store(folder);
        StoreVersion version = put(store, "m", same_bytes());
        cr_assert_eq(scratch_count(folder, "blobs"), 2);
        store_close(store);
        store = open_store(folder);
        Mapping *document = NULL, *weights = NULL;
        cr_assert_eq(store_map_document(store, &version.parts[0], &document), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(document->n_bytes, PART_BYTES);
        cr_assert_arr_eq(document->data, part_bytes, CUT_OFFSET);
        cr_assert_arr_eq(document->data + CUT_OFFSET + CUT_BYTES, part_bytes + CUT_OFFSET + CUT_BYTES,
                         PART_BYTES - CUT_OFFSET - CUT_BYTES);
        cr_assert_eq(document->data[CUT_OFFSET + CUT_BYTES / 2], 0);
        cr_assert_eq(store_map_hole(store, &version.parts[0].holes->items[0], &weights), STATUS_OK);
        cr_assert_arr_eq(weights->data, part_bytes + CUT_OFFSET, CUT_BYTES);
        mapping_unref(document);
        mapping_unref(weights);
        store_version_unref(&version);
        store_close(store);
        scratch_remove(folder);
}

Test(parts, equal_weights_are_one_blob_and_one_mapping_and_go_with_the_last_graph)
{
        char *folder = scratch_make();
        Mapping *first = NULL, *second = NULL;
        Store *store = open_store(folder);
        uint8_t *weights = malloc(CUT_BYTES);
        fill(1);
        memcpy(weights, part_bytes + CUT_OFFSET, CUT_BYTES);
        StoreVersion a = put(store, "a", (ByteSpan){ weights, CUT_BYTES });
        fill(2);
        StoreVersion b = put(store, "b", (ByteSpan){ weights, CUT_BYTES });
        cr_assert_eq(scratch_count(folder, "blobs"), 3, "two documents, one blob");
        cr_assert_eq(store_map_hole(store, &a.parts[0].holes->items[0], &first), STATUS_OK);
        cr_assert_eq(store_map_hole(store, &b.parts[0].holes->items[0], &second), STATUS_OK);
        cr_assert_eq(first, second);
        remove_graph(store, "a", &a);
        cr_assert_eq(scratch_count(folder, "blobs"), 2);
        remove_graph(store, "b", &b);
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        cr_assert_arr_eq(first->data, weights, CUT_BYTES, "open mappings live on");
        mapping_unref(first);
        mapping_unref(second);
        store_version_unref(&a);
        store_version_unref(&b);
        store_close(store);
        free(weights);
        scratch_remove(folder);
}

Test(parts, damage_is_found_before_the_first_use_and_by_scrubbing_and_mended_by_the_same_upload)
{
        static const _Atomic bool go_on = false, stop = true;
        char *folder = scratch_make();
        fill(1);
        Store *store = open_store(folder);
        StoreVersion version = put(store, "m", same_bytes());
        StorePart *part = &version.parts[0];
        Mapping *mapping = NULL;
        store_close(store);
        change(folder, part->document.hex, 100);
        change(folder, part->holes->items[0].digest.hex, 5000);
        store = open_store(folder);
        cr_assert_eq(store_scrub_part(store, part, &stop), STATUS_CANCELLED);
        cr_assert_eq(store_scrub_part(store, part, &go_on), STATUS_DAMAGED);
        cr_assert_eq(store_map_document(store, part, &mapping), STATUS_DAMAGED);
        cr_assert_eq(store_map_hole(store, &part->holes->items[0], &mapping), STATUS_DAMAGED);
        StoreVersion again = put(store, "m", same_bytes());
        cr_assert_str_eq(again.parts[0].document.hex, part->document.hex);
        cr_assert_eq(store_map_document(store, part, &mapping), STATUS_OK);
        mapping_unref(mapping);
        cr_assert_eq(store_map_hole(store, &part->holes->items[0], &mapping), STATUS_OK);
        mapping_unref(mapping);
        store_close(store);
        store = open_store(folder);
        cr_assert_eq(store_scrub_part(store, part, &go_on), STATUS_OK);
        store_close(store);
        // What lies in the hole of a document is nobody's.
        change(folder, part->document.hex, CUT_OFFSET + CUT_BYTES / 2);
        store = open_store(folder);
        cr_assert_eq(store_map_document(store, part, &mapping), STATUS_OK);
        mapping_unref(mapping);
        store_version_unref(&version);
        store_version_unref(&again);
        store_close(store);
        scratch_remove(folder);
}

static Store *busy_store;

static void put_again(void)
{
        StoreVersion version = put(busy_store, "n", same_bytes());
        store_version_unref(&version);
}

Test(parts, a_damaged_file_that_is_replaced_while_somebody_maps_it_is_nobodys)
{
        char *folder = scratch_make();
        fill(1);
        Store *store = open_store(folder);
        StoreVersion version = put(store, "m", same_bytes());
        const StoreHole *hole = &version.parts[0].holes->items[0];
        store_close(store);
        change(folder, hole->digest.hex, 5000);
        busy_store = open_store(folder);
        for (int i = 0; i < 2; i++) {
                Mapping *mapping = NULL;
                before_map = i == 0 ? put_again : NULL;
                Status status = store_map_hole(busy_store, hole, &mapping);
                cr_assert(i == 0 ? status == STATUS_DAMAGED || status == STATUS_OK : status == STATUS_OK);
                if (status == STATUS_OK)
                        cr_assert_arr_eq(mapping->data, part_bytes + CUT_OFFSET, CUT_BYTES);
                mapping_unref(mapping);
        }
        store_version_unref(&version);
        store_close(busy_store);
        scratch_remove(folder);
}

static StoreVersion held_between;
static Mapping *mapped_between;

static void hold_and_map(void)
{
        StorePart *part = &held_between.parts[0];
        StoreCut cut = { .offset = CUT_OFFSET, .n = CUT_BYTES, .content = same_bytes() };
        part->n_bytes = PART_BYTES;
        cr_assert_eq(store_hold_part(busy_store, (ByteSpan){ part_bytes, PART_BYTES }, &cut, 1, part),
                     STATUS_OK);
        cr_assert_eq(store_map_hole(busy_store, &part->holes->items[0], &mapped_between), STATUS_OK);
}

Test(parts, who_uploads_what_another_is_just_replacing_gets_the_new_bytes)
{
        char *folder = scratch_make();
        Mapping *old = NULL;
        fill(1);
        busy_store = open_store(folder);
        StoreVersion version = put(busy_store, "m", same_bytes());
        const StoreHole *hole = &version.parts[0].holes->items[0];
        cr_assert_eq(store_map_hole(busy_store, hole, &old), STATUS_OK);
        change(folder, hole->digest.hex, 5000);
        cr_assert_neq(old->data[5000], same_bytes().data[5000]);
        after_rename = hold_and_map;
        StoreVersion again = put(busy_store, "m", same_bytes());
        cr_assert_neq(mapped_between, old);
        cr_assert_arr_eq(mapped_between->data, part_bytes + CUT_OFFSET, CUT_BYTES);
        mapping_unref(old);
        mapping_unref(mapped_between);
        store_release_part(busy_store, &held_between.parts[0]);
        held_between.n_parts = 1;
        store_version_unref(&held_between);
        store_version_unref(&version);
        store_version_unref(&again);
        store_close(busy_store);
        scratch_remove(folder);
}

Test(parts, bytes_that_were_in_use_and_are_written_anew_are_counted)
{
        char *folder = scratch_make();
        fill(1);
        Store *store = open_store(folder);
        StoreVersion a = put(store, "a", same_bytes());
        StoreVersion b = put(store, "b", same_bytes());
        cr_assert_eq(store_n_rewrites(store), 0, "what is there and sound is not written again");
        change(folder, a.parts[0].holes->items[0].digest.hex, 5000);
        StoreVersion c = put(store, "c", same_bytes());
        cr_assert_eq(store_n_rewrites(store), 1);
        store_version_unref(&a);
        store_version_unref(&b);
        store_version_unref(&c);
        store_close(store);
        scratch_remove(folder);
}

Test(parts, cuts_that_overlap_or_reach_beyond_the_part_are_refused_and_hold_nothing)
{
        char *folder = scratch_make();
        fill(1);
        Store *store = open_store(folder);
        StoreCut overlapping[] = { { 0, 100, { part_bytes, 100 } }, { 99, 100, { part_bytes, 100 } } };
        StoreCut beyond[] = { { PART_BYTES - 10, 11, { part_bytes, 11 } } };
        StorePart part = { .n_bytes = PART_BYTES };
        ByteSpan bytes = { part_bytes, PART_BYTES };
        cr_assert_eq(store_hold_part(store, bytes, overlapping, 2, &part), STATUS_INTERNAL);
        cr_assert_null(part.holes);
        cr_assert_eq(store_hold_part(store, bytes, beyond, 1, &part), STATUS_INTERNAL);
        cr_assert_eq(scratch_count(folder, "blobs"), 0);
        store_close(store);
        scratch_remove(folder);
}

Test(parts, a_file_that_is_cut_under_its_mapping_reads_as_zeros_and_counts_as_damaged)
{
        char *folder = scratch_make(), path[256];
        fill(1);
        Store *store = open_store(folder);
        StoreVersion version = put(store, "m", same_bytes());
        const StoreHole *hole = &version.parts[0].holes->items[0];
        Mapping *weights = NULL, *document = NULL, *again = NULL;
        cr_assert_eq(store_map_hole(store, hole, &weights), STATUS_OK);
        cr_assert_eq(store_map_document(store, &version.parts[0], &document), STATUS_OK);
        cr_assert_not(mapping_damaged_at(weights->data));
        snprintf(path, sizeof(path), "%s/blobs/%s", folder, hole->digest.hex);
        chmod(path, 0600);
        cr_assert_eq(truncate(path, 4096), 0);
        const volatile uint8_t *data = weights->data;
        cr_assert_eq(data[100], part_bytes[CUT_OFFSET + 100], "the page that is left");
        cr_assert_eq(data[CUT_BYTES - 1], 0);
        cr_assert_eq(data[50000], 0);
        cr_assert(mapping_faulted());
        cr_assert(mapping_damaged_at(weights->data));
        cr_assert(mapping_damaged_at(weights->data + CUT_BYTES - 1));
        cr_assert_not(mapping_damaged_at(document->data));
        cr_assert_not(mapping_damaged_at(&version));
        cr_assert_eq(store_map_hole(store, hole, &again), STATUS_DAMAGED);
        mapping_unref(weights);
        mapping_unref(document);
        store_version_unref(&version);
        store_close(store);
        scratch_remove(folder);
}

Test(parts, damage_is_known_of_each_mapping_by_itself)
{
        enum { N = 5, BYTES = 3 * 4096 };
        Mapping *mappings[N];
        int fds[N];
        mapping_catch_faults();
        for (int i = 0; i < N; i++) {
                fds[i] = memfd_create("bytes", 0);
                cr_assert_eq(ftruncate(fds[i], BYTES), 0);
                cr_assert_eq(mapping_new(fds[i], BYTES, &mappings[i]), STATUS_OK);
        }
        static const int order[] = { 3, 1 };
        for (int k = 0; k < 2; k++) {
                const volatile uint8_t *data = mappings[order[k]]->data;
                cr_assert_eq(ftruncate(fds[order[k]], 0), 0);
                cr_assert_eq(data[BYTES - 1], 0);
        }
        for (int i = 0; i < N; i++)
                cr_assert_eq(mapping_damaged_at(mappings[i]->data + 1), i == 1 || i == 3, "mapping %d", i);
        for (int i = 0; i < N; i++) {
                mapping_unref(mappings[i]);
                close(fds[i]);
        }
}

Test(parts, a_fault_outside_of_mappings_still_ends_the_process)
{
        mapping_catch_faults();
        int status;
        pid_t child = fork();
        if (child == 0) {
                int fd = memfd_create("empty", 0);
                volatile uint8_t *data = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
                _exit(data[0] == 0 ? 70 : 71);
        }
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) < 70,
                  "a sanitizer may turn the signal into an exit code");
}

Test(parts, temporary_files_have_no_name)
{
        char *folder = scratch_make(), byte = 0;
        Store *store = open_store(folder);
        Mapping *mapping = NULL;
        int fd;
        cr_assert_eq(store_temporary(store, &fd), STATUS_OK);
        cr_assert_eq(scratch_count(folder, "tmp"), 0);
        cr_assert_eq(mapping_new_writable(fd, 100000, &mapping), STATUS_OK);
        mapping->data[99999] = 7;
        cr_assert_eq(pread(fd, &byte, 1, 99999), 1);
        cr_assert_eq(byte, 7);
        close(fd);
        mapping_unref(mapping);
        store_close(store);
        scratch_remove(folder);
}
