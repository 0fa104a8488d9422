// SPDX-License-Identifier: Apache-2.0
// A look lists all graphs of the folder, sorted by name and number, and compares the state of each
// one's files with what was seen before. One look at a time: the first on the main thread, the
// others as a task of the workers, begun by a timer of the loop.
#include "server/models.h"
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/base/limits.h"
#include "core/base/map.h"
#include "server/log.h"
#include "server/preload.h"

enum { LOOK_MS = 2000, PATH_BYTES = 4096, N_FILES = 4 }; // graph, weights, labels, image

// One state of a file; all zeros if there is none.
typedef struct FileState {
        ino_t inode;
        off_t size;
        struct timespec modified, changed; // changed: also where a copy keeps the time
} FileState;

typedef struct Seen {
        char *path;
        int64_t version;                         // that was made of it; 0: none
        bool displaced;                          // its number has other content
        FileState last[N_FILES], taken[N_FILES]; // when last looked at, and when last taken or refused
} Seen;

// A graph's number is its version, from 1 on, or:
enum {
        NUMBER_NONE = 0,  // NAME/FILE: any
        NUMBER_FLAT = -1, // NAME.pt2: any, and nothing lies beside the graph
        NUMBER_WRONG = -2 // NAME/0/FILE
};

// A graph and its number; the paths are the arena's, NULL: no such file.
typedef struct Found {
        const char *name, *files[N_FILES];
        int64_t number;
        bool created; // by this look
} Found;

struct Models {
        Engine *engine;
        char *folder, *name;
        StringMap seen; // Seen by the path of the graph
        uv_timer_t timer;
        Workers *workers;
        Task task;
        _Atomic bool looking;
        bool started;
};

typedef struct Look {
        Models *models;
        Arena arena;
        Found *found;
        uint32_t n, capacity;
} Look;

// ---- listing ----
#define IMAGE_FILE "image.json" // in a folder of its own; NAME.json else

static bool is_graph(const char *file)
{
        size_t n = strlen(file);
        return (n > 4 && strcmp(file + n - 4, ".pt2") == 0) || (n > 5 && strcmp(file + n - 5, ".json") == 0);
}

static const char *path_of(Look *look, const char *folder, const char *file)
{
        return arena_format(&look->arena, "%s/%s", folder, file);
}

static bool is_there(const char *path, bool folder)
{
        struct stat info;
        return path != NULL && stat(path, &info) == 0 &&
               (folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode));
}

static const char *companion(Look *look, const char *folder, const char *file)
{
        const char *path = path_of(look, folder, file);
        return is_there(path, false) ? path : NULL;
}

static Status add_graph(Look *look, const char *name, int64_t number, const char *folder, const char *file)
{
        Found found = { .name = arena_text(&look->arena, name, strlen(name)),
                        .files = { path_of(look, folder, file) },
                        .number = number };
        if (found.name == NULL || found.files[0] == NULL)
                return fail_memory();
        if (!is_there(found.files[0], false) || (number != NUMBER_FLAT && strcmp(file, IMAGE_FILE) == 0))
                return STATUS_OK;
        if (number != NUMBER_FLAT) { // has a folder of its own
                found.files[1] = companion(look, folder, "weights.safetensors");
                found.files[2] = companion(look, folder, "labels.txt");
                found.files[3] = companion(look, folder, IMAGE_FILE);
        }
        if (look->n == (uint32_t)limits.max_graphs)
                return fail(STATUS_TOO_LARGE, "more than %lld graphs (--max-graphs)",
                            (long long)limits.max_graphs);
        TRY(array_reserve(&look->found, &look->capacity, look->n + 1, sizeof(*look->found)));
        look->found[look->n++] = found;
        return STATUS_OK;
}

// Calls `visit` for each entry that no dot begins, in the order of their names.
typedef Status (*Visit)(Look *look, const char *folder, const char *entry, const char *name);
static Status each_entry(Look *look, const char *folder, const char *name, Visit visit)
{
        struct dirent **entries = NULL;
        int n = scandir(folder, &entries, NULL, alphasort);
        if (n < 0)
                return fail(STATUS_USAGE, "%s: %s", folder, strerror(errno));
        Status status = STATUS_OK;
        for (int i = 0; i < n; i++) {
                if (status == STATUS_OK && entries[i]->d_name[0] != '.')
                        status = visit(look, folder, entries[i]->d_name, name);
                free(entries[i]);
        }
        free(entries);
        return status;
}

static int64_t version_number(const char *text)
{
        size_t n = strspn(text, "0123456789");
        return n == 0 || n > 15 || text[n] != '\0' ? -1 : strtoll(text, NULL, 10);
}

static Status visit_version_file(Look *look, const char *folder, const char *entry, const char *name)
{
        int64_t number = version_number(strrchr(folder, '/') + 1);
        return is_graph(entry) ? add_graph(look, name, number > 0 ? number : NUMBER_WRONG, folder, entry)
                               : STATUS_OK;
}

// NAME/FILE or NAME/VERSION.
static Status visit_model_entry(Look *look, const char *folder, const char *entry, const char *name)
{
        const char *path = path_of(look, folder, entry);
        if (path == NULL)
                return fail_memory();
        if (is_graph(entry))
                return add_graph(look, name, NUMBER_NONE, folder, entry);
        return version_number(entry) >= 0 && is_there(path, true)
                       ? each_entry(look, path, name, visit_version_file)
                       : STATUS_OK;
}

static Status visit_root_entry(Look *look, const char *folder, const char *entry, const char *name)
{
        char stem[65];
        const char *path = path_of(look, folder, entry);
        if (path == NULL)
                return fail_memory();
        if (is_graph(entry)) {
                model_name_of(entry, stem);
                return add_graph(look, name[0] != '\0' ? name : stem,
                                 name[0] != '\0' ? NUMBER_NONE : NUMBER_FLAT, folder, entry);
        }
        return is_there(path, true) ? each_entry(look, path, entry, visit_model_entry) : STATUS_OK;
}

static int by_name_and_number(const void *a, const void *b)
{
        const Found *left = a, *right = b;
        int order = strcmp(left->name, right->name);
        return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

// ---- taking ----
static void states_of(const Found *found, FileState out[N_FILES])
{
        memset(out, 0, N_FILES * sizeof(*out)); // padding is compared, too
        for (int i = 0; i < N_FILES; i++) {
                struct stat info;
                if (found->files[i] == NULL || stat(found->files[i], &info) != 0)
                        continue;
                out[i].inode = info.st_ino;
                out[i].size = info.st_size;
                out[i].modified = info.st_mtim;
                out[i].changed = info.st_ctim;
        }
}

static Status seen_of(Models *models, const char *path, Seen **out)
{
        *out = string_map_get(&models->seen, path);
        if (*out != NULL)
                return STATUS_OK;
        Seen *seen = calloc(1, sizeof(*seen));
        if (seen == NULL)
                return fail_memory();
        seen->path = copy_text(path, strlen(path));
        Status status =
                seen->path == NULL ? fail_memory() : string_map_set(&models->seen, seen->path, seen, NULL);
        if (status != STATUS_OK) {
                free(seen->path);
                free(seen);
                return status;
        }
        *out = seen;
        return STATUS_OK;
}

static Status put(Models *models, Found *found, const Seen *seen, GraphVersion **out_version)
{
        PreloadParts parts = { .graph = found->files[0],
                               .weights = found->files[1],
                               .labels = found->files[2],
                               .image = found->files[3],
                               .version = seen->version,
                               .number = MAX(found->number, 0) };
        if (found->number == NUMBER_WRONG)
                return fail(STATUS_VALUE, "the number of a version is 1 or more");
        return preload_parts(models->engine, found->name, &parts, out_version, &found->created);
}

static void take(Models *models, Found *found, Seen *seen)
{
        GraphVersion *version = NULL;
        Status status = put(models, found, seen, &version);
        seen->displaced = status == STATUS_CONFLICT && found->number > 0;
        if (status != STATUS_OK) {
                const char *path = found->files[0], *why = failure_current()->message;
                bool is_named = strstr(why, path) != NULL;
                log_error("not loaded: %s%s%s", is_named ? "" : path, is_named ? "" : ": ", why);
                return;
        }
        seen->version = version->stored.version;
        if (found->created)
                log_line("loaded %s version %lld from %s", found->name, (long long)seen->version,
                         found->files[0]);
        graph_version_unref(version);
}

// What had its number was deleted.
static bool has_place_now(Models *models, const Found *found, const Seen *seen)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        return seen->displaced &&
               engine_find(models->engine, found->name, found->number, &version) == STATUS_NOT_FOUND;
}

// `settled`: what is there now counts as complete.
static Status see(Models *models, Found *found, bool settled)
{
        Seen *seen;
        FileState now[N_FILES];
        states_of(found, now);
        TRY(seen_of(models, found->files[0], &seen));
        settled |= memcmp(now, seen->last, sizeof(now)) == 0;
        memcpy(seen->last, now, sizeof(now));
        if (!settled || (memcmp(now, seen->taken, sizeof(now)) == 0 && !has_place_now(models, found, seen)))
                return STATUS_OK;
        memcpy(seen->taken, now, sizeof(now));
        take(models, found, seen);
        return STATUS_OK;
}

// A graph without a number that has just come takes the next number and is the default. Beside
// numbers it is not.
static Status choose_default(Models *models, const Found *first, const Found *last)
{
        bool created = false;
        for (const Found *at = first; at <= last; at++)
                created |= at->created && at->number <= 0;
        for (const Found *at = last; created && at >= first && at->number > 0; at--) {
                const Seen *seen = string_map_get(&models->seen, at->files[0]);
                if (seen != NULL && seen->version != 0)
                        return engine_change(models->engine, at->name,
                                             &(HeadChange){ .default_version = seen->version });
        }
        return STATUS_OK;
}

// Those with a number first: it must not be taken by one that may have any.
static Status see_all(Look *look, bool settled)
{
        Models *models = look->models;
        for (int numbered = 1; numbered >= 0; numbered--)
                for (uint32_t i = 0; i < look->n; i++)
                        if ((look->found[i].number > 0) == numbered)
                                TRY(see(models, &look->found[i], settled));
        for (uint32_t from = 0, to; from < look->n; from = to) {
                for (to = from + 1;
                     to < look->n && strcmp(look->found[to].name, look->found[from].name) == 0;)
                        to++;
                if (choose_default(models, &look->found[from], &look->found[to - 1]) != STATUS_OK)
                        log_error("%s: %s", look->found[from].name, failure_current()->message);
        }
        return STATUS_OK;
}

static Status look_at(Models *models, bool settled)
{
        Look look = { .models = models };
        arena_init(&look.arena, 0);
        Status status = each_entry(&look, models->folder, models->name, visit_root_entry);
        if (look.n > 1)
                qsort(look.found, look.n, sizeof(*look.found), by_name_and_number);
        if (status == STATUS_OK)
                status = see_all(&look, settled);
        free(look.found);
        arena_deinit(&look.arena);
        return status;
}

// ---- looking again ----
static Models *models_of_task(Task *task)
{
        return (Models *)(void *)((char *)task - offsetof(Models, task));
}

static void run_look(Task *task, Worker *worker)
{
        Models *models = models_of_task(task);
        (void)worker;
        if (look_at(models, false) != STATUS_OK)
                log_error("the folder of models: %s", failure_current()->message);
        atomic_store(&models->looking, false);
}

static void drop_look(Task *task)
{
        atomic_store(&models_of_task(task)->looking, false);
}

static void on_timer(uv_timer_t *timer)
{
        Models *models = timer->data;
        if (!atomic_exchange(&models->looking, true))
                workers_resubmit(models->workers, &models->task);
}

Status models_open(Engine *engine, const char *folder, const char *name, Models **out_models)
{
        Models *models = calloc(1, sizeof(*models));
        if (models == NULL)
                return fail_memory();
        models->engine = engine;
        models->task = (Task){ .run = run_look, .drop = drop_look };
        models->folder = copy_text(folder, strlen(folder));
        models->name = copy_text(name, strlen(name));
        Status status =
                models->folder == NULL || models->name == NULL ? fail_memory() : look_at(models, true);
        if (status != STATUS_OK) {
                models_free(models);
                return status;
        }
        *out_models = models;
        return STATUS_OK;
}

void models_start(Models *models, uv_loop_t *loop, Workers *workers)
{
        if (models == NULL)
                return;
        models->workers = workers;
        models->started = true;
        uv_timer_init(loop, &models->timer);
        models->timer.data = models;
        uv_timer_start(&models->timer, on_timer, LOOK_MS, LOOK_MS);
}

void models_stop(Models *models)
{
        if (models != NULL && models->started)
                uv_close((uv_handle_t *)&models->timer, NULL);
}

Models *models_free(Models *models)
{
        if (models == NULL)
                return NULL;
        for (uint32_t i = 0; i < models->seen.n; i++) {
                Seen *seen = models->seen.entries[i].value;
                free(seen->path);
                free(seen);
        }
        string_map_deinit(&models->seen);
        free(models->folder);
        free(models->name);
        free(models);
        return NULL;
}
