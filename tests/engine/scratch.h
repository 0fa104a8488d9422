// SPDX-License-Identifier: Apache-2.0
// A temporary folder that goes away with what is in it (three levels, as a store has).
#pragma once
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline char *scratch_make(void)
{
        char *folder = strdup("/tmp/fxserve-test-XXXXXX");
        return mkdtemp(folder);
}

static inline int scratch_empty(const char *folder, int depth)
{
        DIR *directory = opendir(folder);
        int n = 0;
        for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
                char path[1024];
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                n++;
                snprintf(path, sizeof(path), "%.500s/%.255s", folder, entry->d_name);
                if (unlink(path) != 0 && depth > 0) {
                        scratch_empty(path, depth - 1);
                        rmdir(path);
                }
        }
        if (directory != NULL)
                closedir(directory);
        return n;
}

static inline void scratch_remove(char *folder)
{
        scratch_empty(folder, 3);
        rmdir(folder);
        free(folder);
}

// How many entries a folder of the store holds.
static inline int scratch_count(const char *folder, const char *below)
{
        char path[512];
        int n = 0;
        snprintf(path, sizeof(path), "%s/%s", folder, below);
        DIR *directory = opendir(path);
        for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
                n += entry->d_name[0] != '.';
        if (directory != NULL)
                closedir(directory);
        return n;
}

static inline void scratch_write(const char *folder, const char *name, const char *text)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        unlink(path);
        FILE *file = fopen(path, "w");
        fwrite(text, 1, strlen(text), file);
        fclose(file);
}

static inline char *scratch_read(const char *folder, const char *name)
{
        char path[512];
        char *text = calloc(1, 65536);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "r");
        if (file != NULL) {
                size_t n = fread(text, 1, 65535, file);
                text[n] = '\0';
                fclose(file);
        }
        return text;
}
