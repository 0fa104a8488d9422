// SPDX-License-Identifier: Apache-2.0
// Local files take the same path as uploads, so `fxserve check` says what PUT would say.
#include "server/preload.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "api/call.h"
#include "api/run/image_settings.h"
#include "api/run/top.h"
#include "core/base/limits.h"

void model_name_of(const char *path, char out_name[65])
{
        const char *base = strrchr(path, '/');
        snprintf(out_name, 65, "%.64s", base == NULL ? path : base + 1);
        size_t n = strlen(out_name);
        static const char *const endings[] = { ".fx.json", ".pt2", ".json" };
        for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
                size_t length = strlen(endings[i]);
                if (n > length && strcmp(out_name + n - length, endings[i]) == 0) {
                        out_name[n - length] = '\0';
                        return;
                }
        }
}

// A version of the name with this content, counted; NULL: there is none, or it has other labels and
// is the latest or `only`. With `only` (0: none) no other version will do.
static Status find_content(Engine *engine, const char *name, const StoreVersion *wanted, int64_t only,
                           GraphVersion **out)
{
        VersionList list = { .n = 0 };
        Status status = engine_versions(engine, name, &list);
        *out = NULL;
        for (uint32_t i = 0; status == STATUS_OK && i < list.n && *out == NULL; i++) {
                const StoreVersion *stored = &list.versions[i]->stored;
                bool settles = only != 0 || i + 1 == list.n;
                if (strcmp(stored->id.hex, wanted->id.hex) == 0 && (only == 0 || stored->version == only) &&
                    !(settles && engine_brings_others(wanted, stored)))
                        *out = graph_version_ref(list.versions[i]);
        }
        version_list_deinit(&list);
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

// `only` has this content and these settings: *out_version, counted; NULL: it has not.
static Status find_settings(Engine *engine, const char *name, const StoreVersion *wanted, int64_t only,
                            const Text *image, GraphVersion **out_version)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        _cleanup_(text_deinit) Text line = { 0 };
        TRY(find_content(engine, name, wanted, only, &version));
        if (version == NULL)
                return STATUS_OK;
        TRY(engine_setting(engine, version, SETTING_IMAGE, &line));
        if (line.n == image->n && memcmp(line.data, image->data, line.n) == 0)
                *out_version = take_ptr(version);
        return STATUS_OK;
}

// Whether the version has the settings for images of this file; NULL: there is none.
static bool has_image(Engine *engine, const GraphVersion *version, const Storage *file)
{
        _cleanup_(text_deinit) Text has = { 0 }, wanted = { 0 };
        ImageSettings settings;
        if (file == NULL)
                return true;
        if (image_settings_parse((ByteSpan){ file->data, file->n_bytes }, &settings) != STATUS_OK ||
            engine_setting(engine, version, SETTING_IMAGE, &has) != STATUS_OK)
                return false;
        image_settings_write(&settings, &wanted);
        return text_status(&wanted) == STATUS_OK && has.n == wanted.n &&
               memcmp(has.data, wanted.data, has.n) == 0;
}

// The version of the number, counted, if nothing has to be stored for it; else NULL.
static Status find_number(Engine *engine, const char *name, int64_t number, const StoreVersion *wanted,
                          const Storage *image, GraphVersion **out)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        Status status = engine_find(engine, name, number, &version);
        if (status == STATUS_OK && strcmp(version->stored.id.hex, wanted->id.hex) == 0 &&
            !engine_brings_others(wanted, &version->stored) &&
            atomic_load(&version->state) != GRAPH_STATE_DAMAGED && has_image(engine, version, image))
                *out = take_ptr(version);
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static Status put(Engine *engine, const char *name, const Upload *upload, const PreloadParts *parts,
                  GraphVersion **out_version, bool *out_created)
{
        int64_t only = parts->version;
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(text_deinit) Text image = { 0 };
        StoreVersion identified;
        TRY(upload_identify(upload->parts, upload->n_parts, NULL, upload->format, &identified));
        *out_version = NULL;
        *out_created = false;
        if (parts->number != 0)
                TRY(find_number(engine, name, parts->number, &identified, upload->image, out_version));
        else if (only == 0 || upload->image == NULL) // else settings for images are compared, too
                TRY(find_content(engine, name, &identified, only, out_version));
        if (*out_version != NULL)
                return STATUS_OK;
        TRY(upload_decode(upload->parts, upload->n_parts, NULL, true, &graph));
        TRY(engine_check(graph));
        if (upload->image != NULL)
                TRY(failure_at_argument(
                        image_settings_take((ByteSpan){ upload->image->data, upload->image->n_bytes }, graph,
                                            &image),
                        "image"));
        if (parts->number == 0 && only != 0 && upload->image != NULL)
                TRY(find_settings(engine, name, &identified, only, &image, out_version));
        if (*out_version != NULL)
                return STATUS_OK;
        PutRequest put = { .name = name,
                           .parts = upload->parts,
                           .n_parts = upload->n_parts,
                           .identified = &identified,
                           .graph = graph,
                           .image = image.data,
                           .number = parts->number };
        return engine_put(engine, &put, out_version, out_created);
}

// The file as one more part; nothing for NULL.
static Status add_file(const char *path, const char *name, Upload *upload)
{
        Storage *bytes = NULL;
        if (path == NULL)
                return STATUS_OK;
        TRY(file_read(path, &bytes));
        upload->parts[upload->n_parts++] = (UploadPart){ .name = name, .bytes = bytes };
        return STATUS_OK;
}

static Status read_parts(const PreloadParts *parts, Upload *upload)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(file_read(parts->graph, &bytes));
        TRY(upload_split(bytes, "", upload));
        bool is_json = strcmp(upload->format, "fx") == 0;
        if (is_json && parts->weights != NULL)
                upload->parts[0].name = "graph";
        TRY(add_file(is_json ? parts->weights : NULL, "weights", upload));
        if (parts->image != NULL)
                TRY(file_read(parts->image, &upload->image));
        TRY(add_file(parts->labels, "labels", upload));
        UploadPart *last = &upload->parts[upload->n_parts - 1];
        return parts->labels == NULL ? STATUS_OK
                                     : labels_check((ByteSpan){ last->bytes->data, last->bytes->n_bytes });
}

Status preload_parts(Engine *engine, const char *name, const PreloadParts *parts, GraphVersion **out_version,
                     bool *out_created)
{
        Upload upload = { .n_parts = 0 };
        if (!route_is_name(name))
                return fail(STATUS_VALUE, "\"%.80s\" cannot be the name of a graph", name);
        Status status = read_parts(parts, &upload);
        if (status == STATUS_OK) {
                engine_collect(engine, upload.parts, upload.n_parts, upload.pieces);
                upload_mark_local(&upload);
                status = put(engine, name, &upload, parts, out_version, out_created);
        }
        upload_deinit(&upload);
        return status;
}

static Status preload_file(Engine *engine, const char *path, void (*report)(const GraphVersion *version))
{
        PreloadParts parts = { .graph = path };
        GraphVersion *version = NULL;
        char name[65];
        bool created;
        model_name_of(path, name);
        if (preload_parts(engine, name, &parts, &version, &created) != STATUS_OK) {
                if (strstr(failure_current()->message, path) == NULL)
                        failure_append(" (%s)", path);
                return failure_current()->status;
        }
        report(version);
        graph_version_unref(version);
        return STATUS_OK;
}

static bool ends_in(const char *text, const char *ending)
{
        size_t n = strlen(text), n_ending = strlen(ending);
        return n > n_ending && strcmp(text + n - n_ending, ending) == 0;
}

static int is_model(const struct dirent *entry)
{
        return entry->d_name[0] != '.' && (ends_in(entry->d_name, ".pt2") || ends_in(entry->d_name, ".json"));
}

Status preload_path(Engine *engine, const char *path, void (*report)(const GraphVersion *version))
{
        struct stat info;
        struct dirent **entries = NULL;
        if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
                return preload_file(engine, path, report);
        int n = scandir(path, &entries, is_model, alphasort);
        if (n < 0)
                return fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
        Status status = n > 0 ? STATUS_OK : fail(STATUS_USAGE, "%s holds no .pt2 and no .json file", path);
        for (int i = 0; i < n; i++) {
                char file[4096];
                if (status == STATUS_OK &&
                    snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) < (int)sizeof(file))
                        status = preload_file(engine, file, report);
                free(entries[i]);
        }
        free(entries);
        return status;
}
