// SPDX-License-Identifier: Apache-2.0
#include "server/cores.h"
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char mount[] = "/tmp/fxserve-cgroup-XXXXXX";
static const char *const made[] = { "pod/box/cpu.max",
                                    "pod/cpu.max",
                                    "cpu.max",
                                    "pod/box/memory.max",
                                    "pod/memory.max",
                                    "memory/slice/memory.limit_in_bytes",
                                    "memory/slice",
                                    "memory",
                                    "pod/box",
                                    "cpu/slice/cpu.cfs_quota_us",
                                    "cpu/slice/cpu.cfs_period_us",
                                    "cpu/slice",
                                    "cpu",
                                    "pod" };

static void start(void)
{
        char path[256];
        static const char *const folders[] = {
                "pod", "pod/box", "cpu", "cpu/slice", "memory", "memory/slice"
        };
        cr_assert_not_null(mkdtemp(mount));
        for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
                snprintf(path, sizeof(path), "%s/%s", mount, folders[i]);
                cr_assert_eq(mkdir(path, 0700), 0);
        }
}

static void stop(void)
{
        char path[256];
        for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
                snprintf(path, sizeof(path), "%s/%s", mount, made[i]);
                if (unlink(path) != 0)
                        rmdir(path);
        }
        rmdir(mount);
}

TestSuite(cores, .init = start, .fini = stop);

static void write_file(const char *name, const char *text)
{
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", mount, name);
        FILE *file = fopen(path, "we");
        cr_assert_not_null(file);
        fputs(text, file);
        fclose(file);
}

Test(cores, a_quota_of_half_a_core_is_one_core_and_none_is_no_limit)
{
        cr_assert_eq(cgroup_cores("0::/\n", mount), INT_MAX);
        write_file("cpu.max", "max 100000\n");
        cr_assert_eq(cgroup_cores("0::/\n", mount), INT_MAX);
        write_file("cpu.max", "50000 100000\n");
        cr_assert_eq(cgroup_cores("0::/\n", mount), 1);
        write_file("cpu.max", "350000 100000\n");
        cr_assert_eq(cgroup_cores("0::/\n", mount), 3);
}

Test(cores, groups_above_bind_as_well)
{
        write_file("pod/box/cpu.max", "800000 100000\n");
        cr_assert_eq(cgroup_cores("0::/pod/box\n", mount), 8);
        write_file("pod/cpu.max", "200000 100000\n");
        cr_assert_eq(cgroup_cores("0::/pod/box\n", mount), 2);
        write_file("cpu.max", "100000 100000\n");
        cr_assert_eq(cgroup_cores("0::/pod/box\n", mount), 1);
}

Test(cores, a_path_that_is_not_mounted_leaves_the_root_of_what_is)
{
        write_file("cpu.max", "200000 100000\n");
        cr_assert_eq(cgroup_cores("0::/outside/of/this/container\n", mount), 2);
}

Test(cores, version_one_has_its_own_files)
{
        write_file("cpu/slice/cpu.cfs_quota_us", "-1\n");
        write_file("cpu/slice/cpu.cfs_period_us", "100000\n");
        cr_assert_eq(cgroup_cores("4:memory:/slice\n3:cpu,cpuacct:/slice\n0::/\n", mount), INT_MAX);
        write_file("cpu/slice/cpu.cfs_quota_us", "250000\n");
        cr_assert_eq(cgroup_cores("4:memory:/slice\n3:cpu,cpuacct:/slice\n0::/\n", mount), 2);
        cr_assert_eq(cgroup_cores("4:memory:/slice\n", mount), INT_MAX);
        cr_assert_eq(cgroup_cores("nonsense\n:\n::\n", mount), INT_MAX);
}

Test(cores, the_least_limit_of_memory_of_a_group_and_those_above_binds)
{
        cr_assert_eq(cgroup_memory("0::/pod/box\n", mount), INT64_MAX);
        write_file("pod/box/memory.max", "max\n");
        write_file("pod/memory.max", "8589934592\n");
        cr_assert_eq(cgroup_memory("0::/pod/box\n", mount), 8589934592);
        write_file("pod/box/memory.max", "536870912\n");
        cr_assert_eq(cgroup_memory("0::/pod/box\n", mount), 536870912);
        write_file("memory/slice/memory.limit_in_bytes", "1073741824\n");
        cr_assert_eq(cgroup_memory("4:memory:/slice\n3:cpu,cpuacct:/slice\n0::/\n", mount), 1073741824);
        cr_assert_eq(cgroup_memory("3:cpu,cpuacct:/slice\n", mount), INT64_MAX);
}

Test(cores, workers_and_threads_together_never_exceed_the_cores_unless_workers_were_asked_for)
{
        for (int cores = 1; cores <= 16; cores++)
                for (int threads = 0; threads <= 20; threads++) {
                        WorkerPlan plan = plan_workers(cores, 0, threads);
                        cr_assert(plan.n_workers >= 1 && plan.n_wide >= 1);
                        cr_assert_leq(plan.n_workers - 1 + plan.n_wide, cores);
                }
        WorkerPlan one = plan_workers(8, 1, 0), many = plan_workers(2, 4, 2), some = plan_workers(8, 3, 4);
        cr_assert_eq(one.n_wide, 8);
        cr_assert(many.n_workers == 4 && many.n_wide == 1);
        cr_assert(some.n_workers == 3 && some.n_wide == 4);
}
