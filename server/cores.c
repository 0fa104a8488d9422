// SPDX-License-Identifier: Apache-2.0
// Quotas are read from the process's own group and every group above it, since each of them binds.
// In a container the path in /proc/self/cgroup may lie outside of the mount: missing files are
// skipped, and the root of the mount is read in any case.
#include "server/cores.h"
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static int64_t least(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

// The number in a file; 0 when there is none ("max", -1, no such file).
static long long read_number(const char *folder, const char *name)
{
        char path[2 * PATH_BYTES + 32];
        long long number = 0;
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
                return 0;
        if (fscanf(file, "%lld", &number) != 1)
                number = 0;
        fclose(file);
        return number;
}

// ---- what one group says; INT64_MAX: nothing ----
static int64_t cores_of(long long quota, long long period)
{
        return quota <= 0 || period <= 0 ? INT64_MAX : MAX(quota / period, 1);
}

static int64_t cores_of_folder(const char *folder, bool is_v2)
{
        char path[2 * PATH_BYTES];
        long long quota = 0, period = 0;
        if (!is_v2)
                return cores_of(read_number(folder, "cpu.cfs_quota_us"),
                                read_number(folder, "cpu.cfs_period_us"));
        snprintf(path, sizeof(path), "%s/cpu.max", folder);
        FILE *file = fopen(path, "re");
        if (file == NULL)
                return INT64_MAX;
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
                quota = 0; // "max 100000"
        fclose(file);
        return cores_of(quota, period);
}

static int64_t memory_of_folder(const char *folder, bool is_v2)
{
        long long bytes = read_number(folder, is_v2 ? "memory.max" : "memory.limit_in_bytes");
        return bytes <= 0 ? INT64_MAX : bytes;
}

typedef struct Controller {
        const char *name;
        int64_t (*of_folder)(const char *folder, bool is_v2);
} Controller;
static const Controller cpu = { "cpu", cores_of_folder }, memory = { "memory", memory_of_folder };

// ---- of all groups that bind ----
// The group `path` below `root`, and all above it.
static int64_t limit_of_path(const Controller *controller, const char *root, const char *path, bool is_v2)
{
        char folder[2 * PATH_BYTES];
        int n = snprintf(folder, sizeof(folder), "%s%s", root, path);
        int64_t limit = INT64_MAX;
        if (n < 0 || (size_t)n >= sizeof(folder))
                return controller->of_folder(root, is_v2);
        size_t root_n = strlen(root);
        for (;;) {
                limit = least(limit, controller->of_folder(folder, is_v2));
                char *slash = strrchr(folder, '/');
                if (strlen(folder) <= root_n || slash == NULL || slash < folder + root_n)
                        return limit;
                *slash = '\0';
        }
}

static bool lists(const char *controllers, const char *wanted)
{
        char list[PATH_BYTES], *rest = list;
        snprintf(list, sizeof(list), "%s", controllers);
        for (const char *name; (name = strsep(&rest, ",")) != NULL;)
                if (strcmp(name, wanted) == 0)
                        return true;
        return false;
}

// One line: hierarchy:controllers:path. Version 2 has hierarchy 0 and no controllers.
static int64_t limit_of_line(const Controller *controller, char *line, const char *mount)
{
        char root[2 * PATH_BYTES];
        char *controllers = strchr(line, ':'),
             *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
                return INT64_MAX;
        *controllers++ = '\0';
        *path++ = '\0';
        if (*controllers == '\0') {
                int64_t unified = limit_of_path(controller, mount, path, true);
                snprintf(root, sizeof(root), "%s/unified", mount); // beside version 1
                return least(unified, limit_of_path(controller, root, path, true));
        }
        if (!lists(controllers, controller->name))
                return INT64_MAX;
        snprintf(root, sizeof(root), "%s/%s", mount, controllers);
        int64_t limit = limit_of_path(controller, root, path, false);
        snprintf(root, sizeof(root), "%s/%s", mount, controller->name);
        return least(limit, limit_of_path(controller, root, path, false));
}

static int64_t limit_of(const Controller *controller, const char *memberships, const char *mount)
{
        char *copy = strdup(memberships), *rest = copy;
        int64_t limit = INT64_MAX;
        for (char *line; copy != NULL && (line = strsep(&rest, "\n")) != NULL;)
                limit = least(limit, limit_of_line(controller, line, mount));
        free(copy);
        return limit;
}

int cgroup_cores(const char *memberships, const char *mount)
{
        return (int)least(limit_of(&cpu, memberships, mount), INT_MAX);
}

int64_t cgroup_memory(const char *memberships, const char *mount)
{
        return limit_of(&memory, memberships, mount);
}

// ---- of this process ----
static void read_memberships(char out[8192])
{
        FILE *file = fopen("/proc/self/cgroup", "re");
        size_t n = file == NULL ? 0 : fread(out, 1, 8191, file);
        out[n] = '\0';
        if (file != NULL)
                fclose(file);
}

int granted_cores(void)
{
        char memberships[8192];
        cpu_set_t mask;
        int n = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
        read_memberships(memberships);
        n = (int)least(n, cgroup_cores(memberships, "/sys/fs/cgroup"));
        return MAX(n, 1);
}

int64_t granted_memory(void)
{
        char memberships[8192];
        int64_t there = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
        read_memberships(memberships);
        int64_t limit = cgroup_memory(memberships, "/sys/fs/cgroup");
        return limit < there ? limit : 0;
}

WorkerPlan plan_workers(int n_cores, int n_workers, int n_threads)
{
        WorkerPlan plan = { .n_workers = n_workers };
        n_threads = MIN(n_threads, n_cores);
        if (n_workers <= 0)
                plan.n_workers = MAX(n_cores - MAX(n_threads - 1, 0), 1);
        int left = MAX(n_cores - (plan.n_workers - 1), 1); // for the wide worker
        if (n_threads <= 0)
                n_threads = plan.n_workers == 1 ? n_cores : 1;
        plan.n_wide = MIN(n_threads, left);
        return plan;
}
