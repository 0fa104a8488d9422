// SPDX-License-Identifier: Apache-2.0
// Heads and versions on disk. One write makes each change effective:
//
//   add a version      blobs (durable, held), then versions/<name>@N. A version file whose number
//                      the head does not know yet (from its next_version on) is newer than the
//                      head, and the newest of them is the default. So the head is written only
//                      with the first version of a name, after it: without a head there is no name.
//                      With a lower number, too, which may be one that the head lists as gone.
//   default, aliases, settings the head
//   remove a version   the head, which lists it as gone; then its file is removed
//   remove a name      the head is removed; then the files of its versions
//
// A crash in between leaves files that no head lists; the next start removes them. One thread at a
// time writes (`writing`).
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/store/store_private.h"

void store_version_file(const char *name, int64_t version, char out[STORE_FILE_NAME_MAX + 1])
{
        snprintf(out, STORE_FILE_NAME_MAX + 1, "%s@%lld", name, (long long)version);
}

// ---- single files ----
Status store_write_head(Store *store, const Head *head)
{
        _cleanup_(text_deinit) Text text = { 0 };
        TRY(record_write_head(head, &text));
        return folder_write(store->tmp, store->graphs, head->head.name,
                            (ByteSpan){ (const uint8_t *)text.data, text.n }, 0600);
}

Status store_write_version(Store *store, const Head *head, const StoreVersion *version)
{
        _cleanup_(text_deinit) Text text = { 0 };
        char file[STORE_FILE_NAME_MAX + 1];
        TRY(record_write_version(head, version, &text));
        FolderRange whole = { 0, { (const uint8_t *)text.data, text.n } };
        FolderContent content = { &whole, 1, text.n };
        store_version_file(head->head.name, version->version, file);
        return folder_write_content(store->tmp, store->versions, file, &content, 0600);
}

static void unlink_version(Store *store, const char *name, int64_t version)
{
        char file[STORE_FILE_NAME_MAX + 1];
        store_version_file(name, version, file);
        unlinkat(store->versions, file, 0);
}

// A head may have its new content although syncing the folder failed afterwards. A change that was
// answered with a failure must not be there after the next start, so the former head (`before`;
// NULL: none) is put back, if the disk allows. False: it does not.
static bool undo_head(Store *store, const char *name, const Head *before)
{
        Failure failure = *failure_current();
        bool done = before == NULL ? unlinkat(store->graphs, name, 0) == 0 || errno == ENOENT
                                   : store_write_head(store, before) == STATUS_OK;
        if (!done && before != NULL)
                store_say(store, "graph '%s' could not be put back as it was: %s", name,
                          failure_current()->message);
        *failure_current() = failure;
        return done;
}

// The same for a version's file; `before` NULL: there was none.
static void undo_version(Store *store, const Head *head, int64_t number, const StoreVersion *before)
{
        Failure failure = *failure_current();
        if (before == NULL)
                unlink_version(store, head->head.name, number);
        else if (store_write_version(store, head, before) != STATUS_OK ||
                 folder_sync(store->versions) != STATUS_OK)
                store_say(store, "graph '%s' version %lld could not be put back as it was: %s",
                          head->head.name, (long long)number, failure_current()->message);
        *failure_current() = failure;
}

// ---- heads ----
static bool same_extras(const StoreHead *a, const StoreHead *b)
{
        bool same = a->n_aliases == b->n_aliases && a->n_settings == b->n_settings;
        for (uint32_t i = 0; i < a->n_aliases && same; i++)
                same = strcmp(a->aliases[i].name, b->aliases[i].name) == 0 &&
                       a->aliases[i].version == b->aliases[i].version;
        for (uint32_t i = 0; i < a->n_settings && same; i++)
                same = strcmp(a->settings[i].text, b->settings[i].text) == 0 &&
                       a->settings[i].version == b->settings[i].version &&
                       a->settings[i].kind == b->settings[i].kind;
        return same;
}

// Whether the head on disk and the file of `version` together already say the same as `head`.
static bool follows(const Head *on_disk, const StoreHead *head, int64_t version)
{
        return version >= on_disk->head.next_version && head->next_version == version + 1 &&
               head->default_version == version && same_extras(&on_disk->head, head);
}

static Status head_alone(const StoreHead *head, Head **out_head)
{
        _cleanup_(head_freep) Head *alone = calloc(1, sizeof(*alone));
        if (alone == NULL)
                return fail_memory();
        TRY(store_head_copy(head, &alone->head));
        *out_head = take_ptr(alone);
        return STATUS_OK;
}

Status head_new(const StoreHead *head, Head **out_head)
{
        uint64_t chance;
        if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
                return fail(STATUS_IO, "the system gives no random numbers: %s", strerror(errno));
        TRY(head_alone(head, out_head));
        snprintf((*out_head)->incarnation, sizeof((*out_head)->incarnation), "%016llx",
                 (unsigned long long)chance);
        return STATUS_OK;
}

// `head`, with the other members of the file's former content, and room for one more removed
// version.
static Status head_after(const Head *before, const StoreHead *head, Head **out_head)
{
        _cleanup_(head_freep) Head *after = NULL;
        TRY(head_alone(head, &after));
        memcpy(after->incarnation, before->incarnation, sizeof(after->incarnation));
        TRY(array_reserve(&after->gone, &after->gone_capacity, before->n_gone + 1, sizeof(*after->gone)));
        if (before->n_gone > 0)
                memcpy(after->gone, before->gone, before->n_gone * sizeof(*after->gone));
        after->n_gone = before->n_gone;
        if (before->attributes != NULL) {
                after->attributes = copy_text(before->attributes, strlen(before->attributes));
                if (after->attributes == NULL)
                        return fail_memory();
        }
        *out_head = take_ptr(after);
        return STATUS_OK;
}

// `take_head` is what is on disk now; never fails, as the room was reserved.
static void set_head(Store *store, Head *take_head)
{
        void *old = NULL;
        (void)string_map_set(&store->heads, take_head->head.name, take_head, &old);
        head_free(old);
}

static Status put_head(Store *store, const StoreHead *head)
{
        const Head *before = string_map_get(&store->heads, head->name);
        _cleanup_(head_freep) Head *after = NULL;
        if (before == NULL)
                return fail(STATUS_INTERNAL, "a name that is not stored");
        TRY(head_after(before, head, &after));
        Status status = store_write_head(store, after);
        if (status == STATUS_OK)
                set_head(store, take_ptr(after));
        else
                undo_head(store, head->name, before);
        return status;
}

Status store_put_head(Store *store, const StoreHead *head)
{
        pthread_mutex_lock(&store->writing);
        Status status = put_head(store, head);
        pthread_mutex_unlock(&store->writing);
        return status;
}

// ---- add a version ----
static Status write_both(Store *store, const Head *before, const Head *after, const StoreVersion *version,
                         const StoreVersion *instead)
{
        Status status = store_write_version(store, after, version);
        if (status == STATUS_OK)
                status = folder_sync(store->versions);
        bool with_head =
                status == STATUS_OK && (before == NULL || !follows(before, &after->head, version->version));
        if (with_head)
                status = store_write_head(store, after);
        if (status == STATUS_OK)
                return STATUS_OK;
        if (!with_head || undo_head(store, after->head.name, before)) // a head that stays needs its version
                undo_version(store, after, version->version, instead);
        return status;
}

// A number that was removed may be given again when a folder of models asks for it.
static void forget_gone(Head *head, int64_t number)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < head->n_gone; i++)
                if (head->gone[i] != number)
                        head->gone[n++] = head->gone[i];
        head->n_gone = n;
}

static Status put_version(Store *store, const StoreHead *head, const StoreVersion *version,
                          const StoreVersion *instead)
{
        const Head *before = string_map_get(&store->heads, head->name);
        _cleanup_(head_freep) Head *after = NULL;
        TRY(before == NULL ? head_new(head, &after) : head_after(before, head, &after));
        forget_gone(after, version->version);
        TRY(string_map_reserve(&store->heads));
        // all memory before the disk: a change on disk is never answered with a failure
        pthread_mutex_lock(&store->mutex);
        Status status = blobs_use(store, version);
        pthread_mutex_unlock(&store->mutex);
        TRY(status);
        bool with_head = before == NULL || !follows(before, head, version->version);
        status = write_both(store, before, after, version, instead);
        const StoreVersion *gone = status == STATUS_OK ? instead : version;
        if (status == STATUS_OK && with_head)
                set_head(store, take_ptr(after));
        pthread_mutex_lock(&store->mutex);
        if (gone != NULL)
                blobs_unuse(store, gone);
        pthread_mutex_unlock(&store->mutex);
        return status;
}

Status store_put_version(Store *store, const StoreHead *head, const StoreVersion *version,
                         const StoreVersion *instead)
{
        pthread_mutex_lock(&store->writing);
        Status status = put_version(store, head, version, instead);
        pthread_mutex_unlock(&store->writing);
        return status;
}

// ---- remove ----
static void forget_blobs(Store *store, const StoreVersion *version)
{
        pthread_mutex_lock(&store->mutex);
        blobs_unuse(store, version);
        pthread_mutex_unlock(&store->mutex);
}

static Status remove_version(Store *store, const StoreHead *head, const StoreVersion *version)
{
        const Head *before = string_map_get(&store->heads, head->name);
        _cleanup_(head_freep) Head *after = NULL;
        if (before == NULL)
                return fail(STATUS_INTERNAL, "a name that is not stored");
        TRY(head_after(before, head, &after));
        after->gone[after->n_gone++] = version->version; // head_after left room
        Status status = store_write_head(store, after);
        if (status != STATUS_OK) {
                undo_head(store, head->name, before);
                return status;
        }
        char file[STORE_FILE_NAME_MAX + 1];
        store_version_file(head->name, version->version, file);
        if (folder_remove(store->versions, file) == STATUS_OK)
                after->n_gone--; // the next head need not list it
        set_head(store, take_ptr(after));
        forget_blobs(store, version);
        return STATUS_OK;
}

Status store_remove_version(Store *store, const StoreHead *head, const StoreVersion *version)
{
        pthread_mutex_lock(&store->writing);
        Status status = remove_version(store, head, version);
        pthread_mutex_unlock(&store->writing);
        return status;
}

static Status remove_name(Store *store, const char *name, const StoreVersion *const *versions,
                          uint32_t n_versions)
{
        const Head *before = string_map_get(&store->heads, name);
        if (before == NULL)
                return STATUS_OK;
        Status status = folder_remove(store->graphs, name);
        if (status != STATUS_OK) {
                undo_head(store, name, before);
                return status;
        }
        head_free(string_map_remove(&store->heads, name));
        for (uint32_t i = 0; i < n_versions; i++) {
                unlink_version(store, name, versions[i]->version);
                forget_blobs(store, versions[i]);
        }
        return STATUS_OK;
}

Status store_remove_name(Store *store, const char *name, const StoreVersion *const *versions,
                         uint32_t n_versions)
{
        pthread_mutex_lock(&store->writing);
        Status status = remove_name(store, name, versions, n_versions);
        pthread_mutex_unlock(&store->writing);
        return status;
}
