// SPDX-License-Identifier: Apache-2.0
// Reads the folder at start: heads, then their versions. Manifests of FORMAT 1 and 2 become both. A
// damaged head and anything that is not a regular file moves to quarantine/. A version's file of
// either kind stays where it is: the version exists, damaged, until it is deleted.
//
// A conversion writes the version files first and the head last, in place of the manifest. When it
// is interrupted, the manifest and some files are left, and the next start writes them again.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/store/store_private.h"

enum { HEAD_MAX_BYTES = 64 << 20 }; // a manifest counts as one, too

typedef struct Loaded {
        Head *head;
        bool is_converted; // in this start
        uint32_t n, capacity;
        StoreVersion *versions;
} Loaded;

typedef struct Loading {
        Store *store;
        StringMap graphs; // name -> Loaded *
        StringMap tunes;  // ids, in `tune_ids`
        HashHex *tune_ids;
} Loading;

static void loading_deinit(Loading *loading)
{
        for (uint32_t i = 0; i < loading->graphs.n; i++) {
                Loaded *loaded =
                        loading->graphs.entries[i].key == NULL ? NULL : loading->graphs.entries[i].value;
                for (uint32_t v = 0; loaded != NULL && v < loaded->n; v++)
                        store_version_unref(&loaded->versions[v]);
                if (loaded != NULL)
                        free(loaded->versions);
                free(loaded);
        }
        string_map_deinit(&loading->graphs);
        string_map_deinit(&loading->tunes);
        free(loading->tune_ids);
}

// ---- quarantine ----
static Status see_quarantined(void *context, const char *name)
{
        (void)name;
        ((Store *)context)->keep_orphans = true;
        return STATUS_OK;
}

// Moves it to quarantine/ under a new unique name, so that nothing is overwritten.
static bool set_aside(Store *store, int folder, const char *name)
{
        char target[320];
        store->keep_orphans = true;
        for (int i = 0; i < 1000; i++) {
                snprintf(target, sizeof(target), "%.220s.%lld.%d", name, (long long)time(NULL), i);
                if (faccessat(store->quarantine, target, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
                        return renameat(folder, name, store->quarantine, target) == 0;
        }
        return false;
}

static void move_to_quarantine(Store *store, int folder, const char *name, const char *what, const char *why)
{
        bool moved = set_aside(store, folder, name);
        store_say(store, "%s is damaged and %s moved to quarantine: %s", what, moved ? "was" : "could not be",
                  why);
}

// The start ends here; the message has to name the file.
static Status not_read(Status status, const char *folder, const char *name)
{
        failure_append(" (%s/%.90s)", folder, name);
        return status;
}

// ---- heads ----
static Status add_loaded(Loading *loading, Head *take_head, Loaded **out_loaded)
{
        _cleanup_(head_freep) Head *head = take_head;
        _cleanup_(freep) Loaded *loaded = calloc(1, sizeof(*loaded));
        if (loaded == NULL)
                return fail_memory();
        TRY(string_map_reserve(&loading->graphs));
        TRY(string_map_set(&loading->store->heads, head->head.name, head, NULL));
        loaded->head = take_ptr(head); // the store's
        *out_loaded = take_ptr(loaded);
        // there is room
        return string_map_set(&loading->graphs, (*out_loaded)->head->head.name, *out_loaded, NULL);
}

static Status write_converted(Store *store, const Head *head, const Manifest *manifest)
{
        for (uint32_t i = 0; i < manifest->n_versions; i++)
                TRY(store_write_version(store, head, &manifest->versions[i]));
        TRY(folder_sync(store->versions));
        return store_write_head(store, head);
}

static Status convert(Loading *loading, Manifest *manifest)
{
        Store *store = loading->store;
        _cleanup_(head_freep) Head *head = NULL;
        Loaded *loaded;
        TRY(head_new(&manifest->head, &head));
        Status status = write_converted(store, head, manifest);
        if (status != STATUS_OK) {
                Failure why = *failure_current();
                return fail(status,
                            "the data folder is being converted to format %d, which goes on at the next "
                            "start: %s",
                            STORE_FORMAT, why.message);
        }
        TRY(add_loaded(loading, take_ptr(head), &loaded));
        loaded->is_converted = true;
        loaded->versions = take_ptr(manifest->versions);
        loaded->n = manifest->n_versions;
        loaded->capacity = manifest->capacity;
        manifest->n_versions = 0;
        return STATUS_OK;
}

static Status check_name(const StoreHead *head, const char *name)
{
        return strcmp(head->name, name) == 0 ? STATUS_OK : fail(STATUS_DAMAGED, "it belongs to another name");
}

static Status load_head(Loading *loading, const char *name)
{
        _cleanup_(freep) char *text = NULL;
        _cleanup_(head_freep) Head *head = NULL;
        _cleanup_(manifest_deinit) Manifest manifest = { .n_versions = 0 };
        Loaded *loaded;
        size_t n;
        bool missing;
        TRY(folder_read(loading->store->graphs, name, HEAD_MAX_BYTES, &text, &n, &missing));
        if (missing)
                return fail(STATUS_DAMAGED, "it is gone");
        if (record_is_head(text, n)) {
                TRY(record_read_head(text, n, &head));
                TRY(check_name(&head->head, name));
                return add_loaded(loading, take_ptr(head), &loaded);
        }
        TRY(manifest_read(text, n, &manifest));
        TRY(check_name(&manifest.head, name));
        return convert(loading, &manifest);
}

static Status see_head(void *context, const char *name)
{
        Loading *loading = context;
        // listed twice, because its file was replaced meanwhile
        if (string_map_get(&loading->graphs, name) != NULL)
                return STATUS_OK;
        Status status = load_head(loading, name);
        if (status != STATUS_DAMAGED && status != STATUS_TOO_LARGE)
                return not_read(status, "graphs", name);
        char what[300];
        snprintf(what, sizeof(what), "graph '%.255s'", name);
        move_to_quarantine(loading->store, loading->store->graphs, name, what, failure_current()->message);
        return STATUS_OK;
}

// ---- versions ----
// "digits@7" -> "digits", 7. False: not a name of fxserve's.
static bool split_name(const char *file, char out_name[STORE_NAME_MAX + 1], int64_t *out_number)
{
        const char *at = strrchr(file, '@');
        char again[STORE_FILE_NAME_MAX + 1];
        if (at == NULL || at - file > STORE_NAME_MAX || strlen(at) > 18)
                return false;
        memcpy(out_name, file, (size_t)(at - file));
        out_name[at - file] = '\0';
        *out_number = strtoll(at + 1, NULL, 10);
        store_version_file(out_name, *out_number, again);
        return *out_number > 0 && strcmp(again, file) == 0;
}

static bool is_gone(const Head *head, int64_t number)
{
        for (uint32_t i = 0; i < head->n_gone; i++)
                if (head->gone[i] == number)
                        return true;
        return false;
}

static Status add_version(Loaded *loaded, const StoreVersion *version)
{
        TRY(array_reserve(&loaded->versions, &loaded->capacity, loaded->n + 1, sizeof(*loaded->versions)));
        loaded->versions[loaded->n++] = *version;
        return STATUS_OK;
}

static StoreVersion *version_of(const Loaded *loaded, int64_t number)
{
        for (uint32_t i = 0; i < loaded->n; i++)
                if (loaded->versions[i].version == number)
                        return &loaded->versions[i];
        return NULL;
}

// Removes a file that no head lists: an unfinished write from before the server ended. It is kept
// when a head in quarantine may refer to it.
static Status remove_version_file(Store *store, const char *file)
{
        if (!store->keep_orphans)
                unlinkat(store->versions, file, 0);
        else if (set_aside(store, store->versions, file))
                store_say(store, "%s is no graph's version and was moved to quarantine", file);
        return STATUS_OK;
}

static Status load_version(Loading *loading, Loaded *loaded, const char *file, int64_t number)
{
        Store *store = loading->store;
        _cleanup_(freep) char *text = NULL;
        StoreVersion version = { .version = number };
        size_t n;
        bool missing, foreign = false;
        Status status = folder_read(store->versions, file, HEAD_MAX_BYTES, &text, &n, &missing);
        if (status == STATUS_OK && missing)
                return STATUS_OK;
        if (status == STATUS_OK)
                status = record_read_version(text, n, loaded->head, number, &version, &foreign);
        if (status == STATUS_OK && foreign)
                return remove_version_file(store, file);
        if (status == STATUS_DAMAGED || status == STATUS_TOO_LARGE) {
                store_say(store, "the entry of graph '%s' version %lld is damaged: %s",
                          loaded->head->head.name, (long long)number, failure_current()->message);
                store->keep_orphans = true; // unknown which blobs it names
                version = (StoreVersion){ .version = number };
                status = STATUS_OK;
        }
        if (status != STATUS_OK)
                return not_read(status, "versions", file);
        status = add_version(loaded, &version);
        if (status != STATUS_OK)
                store_version_unref(&version);
        return status;
}

// Something that is not a regular file in the place of a version: that version exists and is
// damaged. Like any damaged version it stays, so that no run is answered by an older version and
// its number is not given again. It is never opened.
static bool is_strayed(const Loading *loading, const Loaded *loaded, const char *file, int64_t number)
{
        return folder_is_irregular(loading->store->versions, file) &&
               (loaded == NULL || loaded->is_converted || is_gone(loaded->head, number));
}

static Status see_version(void *context, const char *file)
{
        Loading *loading = context;
        Store *store = loading->store;
        char name[STORE_NAME_MAX + 1], what[300];
        int64_t number = 0;
        Loaded *loaded = split_name(file, name, &number) ? string_map_get(&loading->graphs, name) : NULL;
        if (is_strayed(loading, loaded, file, number)) {
                snprintf(what, sizeof(what), "what stands for version '%.255s'", file);
                move_to_quarantine(store, store->versions, file, what, "it is no regular file");
                return STATUS_OK;
        }
        if (loaded == NULL)
                return remove_version_file(store, file);
        // known from the manifest; others are left from an earlier attempt
        if (loaded->is_converted)
                return version_of(loaded, number) == NULL ? remove_version_file(store, file) : STATUS_OK;
        if (is_gone(loaded->head, number)) {
                unlinkat(store->versions, file, 0);
                return STATUS_OK;
        }
        return load_version(loading, loaded, file, number);
}

static int by_number(const void *a, const void *b)
{
        int64_t left = ((const StoreVersion *)a)->version, right = ((const StoreVersion *)b)->version;
        return left < right ? -1 : left > right;
}

// A version that the head lists must exist: without its file, runs are refused instead of being
// answered by another version.
static Status add_missing(Store *store, Loaded *loaded, int64_t number)
{
        StoreVersion version = { .version = number };
        if (version_of(loaded, number) != NULL)
                return STATUS_OK;
        store_say(store, "the entry of graph '%s' version %lld is missing", loaded->head->head.name,
                  (long long)number);
        return add_version(loaded, &version);
}

// The head as it was last written, plus the versions that are newer than it. *out_head borrows the
// aliases.
static Status settle(Store *store, Loaded *loaded, StoreHead *out_head)
{
        StoreHead *head = &loaded->head->head;
        *out_head = *head;
        for (uint32_t i = 0; i < loaded->n; i++)
                if (loaded->versions[i].version >= out_head->next_version) {
                        out_head->default_version = loaded->versions[i].version;
                        out_head->next_version = loaded->versions[i].version + 1;
                }
        TRY(add_missing(store, loaded, out_head->default_version));
        for (uint32_t i = 0; i < head->n_aliases; i++)
                TRY(add_missing(store, loaded, head->aliases[i].version));
        qsort(loaded->versions, loaded->n, sizeof(*loaded->versions), by_number);
        return STATUS_OK;
}

// ---- the rest ----
static Status remove_blob(void *context, const char *name)
{
        Store *store = context;
        if (string_map_get(&store->users, name) == NULL && unlinkat(store->blobs, name, 0) == 0)
                store_say(store, "removed the bytes of an upload that never finished");
        return STATUS_OK;
}

static Status remove_tune(void *context, const char *name)
{
        Loading *loading = context;
        if (string_map_get(&loading->tunes, name) == NULL)
                unlinkat(loading->store->tunes, name, 0);
        return STATUS_OK;
}

// A link or pipe in the place of a blob or record would block the upload that repairs it.
static Status see_irregular_blob(void *context, const char *name)
{
        Store *store = context;
        if (folder_is_irregular(store->blobs, name))
                move_to_quarantine(store, store->blobs, name, "what stands for uploaded bytes",
                                   "it is no regular file");
        return STATUS_OK;
}

static Status see_irregular_tune(void *context, const char *name)
{
        Store *store = context;
        if (folder_is_irregular(store->tunes, name))
                move_to_quarantine(store, store->tunes, name, "what stands for a tune record",
                                   "it is no regular file");
        return STATUS_OK;
}

static Status see_irregular_pass(void *context, const char *name)
{
        Store *store = context;
        if (folder_is_irregular(store->passes, name))
                move_to_quarantine(store, store->passes, name, "what stands for a saved pass",
                                   "it is no regular file");
        return STATUS_OK;
}

// An entry in quarantine may name any blob, and cannot be read. So all blobs that are here now
// stay.
static Status remove_orphans(Loading *loading)
{
        Store *store = loading->store;
        TRY(folder_each(store->blobs, see_irregular_blob, store));
        TRY(folder_each(store->tunes, see_irregular_tune, store));
        TRY(folder_each(store->passes, see_irregular_pass, store));
        if (store->keep_orphans) {
                store_say(store, "uploaded bytes that no graph uses are kept as long as quarantine/ holds "
                                 "something or an entry is damaged");
                return folder_each(store->blobs, blobs_keep, store);
        }
        TRY(folder_each(store->blobs, remove_blob, store));
        return folder_each(store->tunes, remove_tune, loading);
}

static Status use_versions(Loading *loading, const Loaded *loaded, uint32_t *n_ids)
{
        for (uint32_t v = 0; v < loaded->n; v++) {
                HashHex *id = &loading->tune_ids[(*n_ids)++];
                TRY(blobs_use(loading->store, &loaded->versions[v]));
                *id = store_tune_id(&loaded->versions[v]);
                TRY(string_map_set(&loading->tunes, id->hex, id, NULL));
        }
        return STATUS_OK;
}

static Status settle_all(Loading *loading, StoreVisit visit, void *context)
{
        uint32_t n = 0, n_ids = 0;
        for (uint32_t i = 0; i < loading->graphs.n; i++)
                n += ((Loaded *)loading->graphs.entries[i].value)->n + 1 +
                     ((Loaded *)loading->graphs.entries[i].value)->head->head.n_aliases;
        loading->tune_ids = new_array(n, sizeof(*loading->tune_ids));
        if (loading->tune_ids == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < loading->graphs.n; i++) {
                Loaded *loaded = loading->graphs.entries[i].value;
                StoreHead head;
                TRY(settle(loading->store, loaded, &head));
                TRY(use_versions(loading, loaded, &n_ids));
                if (visit != NULL)
                        TRY(visit(context, loading->store, &head, loaded->versions, loaded->n));
        }
        return STATUS_OK;
}

Status store_load(Store *store, StoreVisit visit, void *context)
{
        _cleanup_(loading_deinit) Loading loading = { .store = store };
        TRY(folder_each(store->quarantine, see_quarantined, store));
        TRY(folder_each(store->graphs, see_head, &loading));
        TRY(folder_each(store->versions, see_version, &loading));
        TRY(settle_all(&loading, visit, context));
        return remove_orphans(&loading);
}
