// SPDX-License-Identifier: Apache-2.0
// /proc/self is in the kernel's memory: reading it does not wait. Before kernel 6.2 the descriptors
// have to be counted one by one; later kernels give their number as the folder's size.
#include "server/process.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Fields of /proc/self/stat after the program's name, which may hold anything.
enum {
        FIELD_THREADS = 20 - 3,
        FIELD_START = 22 - 3,
        FIELD_VIRTUAL = 23 - 3,
        FIELD_RESIDENT = 24 - 3,
        N_FIELDS = 22
};

static bool read_stat(int64_t fields[N_FIELDS])
{
        char text[1024];
        FILE *file = fopen("/proc/self/stat", "re");
        if (file == NULL)
                return false;
        size_t n = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[n] = '\0';
        char *at = strrchr(text, ')');
        if (at == NULL)
                return false;
        at += 2; // a blank, then the state's letter, which reads as 0
        for (int i = 0; i < N_FIELDS; i++) {
                fields[i] = strtoll(at, NULL, 10);
                at += strcspn(at, " ");
                at += *at == ' ';
        }
        return *at != '\0';
}

static int64_t count_fds(void)
{
        struct stat info;
        if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
                return info.st_size;
        DIR *folder = opendir("/proc/self/fd");
        int64_t n = -3; // "." and ".." and the folder itself
        if (folder == NULL)
                return -1;
        while (readdir(folder) != NULL)
                n++;
        closedir(folder);
        return n;
}

static double seconds_of(struct timeval time)
{
        return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double start_seconds(int64_t start_ticks)
{
        struct timespec now, since_boot;
        clock_gettime(CLOCK_REALTIME, &now);
        clock_gettime(CLOCK_BOOTTIME, &since_boot);
        double boot =
                (double)(now.tv_sec - since_boot.tv_sec) + (double)(now.tv_nsec - since_boot.tv_nsec) / 1e9;
        return boot + (double)start_ticks / (double)sysconf(_SC_CLK_TCK);
}

void process_read(ProcessFacts *out_facts)
{
        struct rusage usage;
        struct rlimit files;
        int64_t fields[N_FIELDS];
        bool known = read_stat(fields);
        bool counted = getrusage(RUSAGE_SELF, &usage) == 0;
        bool limited = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
        *out_facts = (ProcessFacts){
                .cpu_seconds = counted ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : -1,
                .start_seconds = known ? start_seconds(fields[FIELD_START]) : -1,
                .resident_bytes = known ? fields[FIELD_RESIDENT] * sysconf(_SC_PAGESIZE) : -1,
                .virtual_bytes = known ? fields[FIELD_VIRTUAL] : -1,
                .n_threads = known ? fields[FIELD_THREADS] : -1,
                .n_fds = count_fds(),
                .max_fds = limited ? (int64_t)files.rlim_cur : -1
        };
}
