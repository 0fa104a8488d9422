// SPDX-License-Identifier: Apache-2.0
// tree.c: children of a structure by key. Large dicts get their children's numbers in the order of
// the keys, and are searched by halving.
#include <stdlib.h>
#include <string.h>
#include "core/graph/graph.h"

enum { FEW = 16 };

static int compare_keys(const void *a, const void *b, void *context)
{
        const Tree *tree = context;
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        int order = strcmp(tree->keys[x], tree->keys[y]);
        return order != 0 ? order : (x > y) - (x < y);
}

// Recursion: readers cap trees at limits.max_nested_values.
Status tree_sort_keys(Arena *arena, Tree *tree)
{
        if (tree->keys != NULL && tree->n > FEW && tree->by_key == NULL) {
                uint32_t *by_key = arena_array(arena, tree->n, sizeof(*by_key));
                if (by_key == NULL)
                        return fail_memory();
                for (uint32_t i = 0; i < tree->n; i++)
                        by_key[i] = i;
                qsort_r(by_key, tree->n, sizeof(*by_key), compare_keys, tree);
                tree->by_key = by_key;
        }
        for (uint32_t i = 0; i < tree->n; i++)
                TRY(tree_sort_keys(arena, tree->children[i]));
        return STATUS_OK;
}

static int compare(const char *key, const char *text, size_t n)
{
        int order = strncmp(key, text, n);
        return order != 0 ? order : key[n] != '\0';
}

uint32_t tree_find(const Tree *tree, const char *key, size_t n)
{
        uint32_t low = 0, high = tree->keys == NULL ? 0 : tree->n;
        if (tree->by_key == NULL) {
                while (low < high && compare(tree->keys[low], key, n) != 0)
                        low++;
                return low < high ? low : tree->n;
        }
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                if (compare(tree->keys[tree->by_key[middle]], key, n) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        bool found = low < tree->n && compare(tree->keys[tree->by_key[low]], key, n) == 0;
        return found ? tree->by_key[low] : tree->n;
}
