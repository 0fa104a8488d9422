// SPDX-License-Identifier: Apache-2.0
// The printing corpus of tests/print, made by PyTorch (see its README): every form of every graph,
// byte for byte; and the same once more after a round trip through our own FX JSON.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "core/graph/print.h"

static const char folder[] = TESTS_FOLDER "/print";

// The whole file, NUL-terminated; NULL when it is not there.
static char *read_file(const char *name, const char *ending, size_t *out_n)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s%s", folder, name, ending);
        FILE *file = fopen(path, "rb");
        if (file == NULL)
                return NULL;
        enum { MAX = 1 << 20 };
        char *data = malloc(MAX + 1);
        *out_n = fread(data, 1, MAX, file);
        data[*out_n] = '\0';
        fclose(file);
        return data;
}

static Graph *read_graph(const char *name, const char *text, size_t n)
{
        Graph *graph = NULL;
        cr_assert_eq(fx_json_read(text, n, NULL, &graph), STATUS_OK, "%s: %s", name,
                     failure_current()->message);
        return graph;
}

static int check_forms(const char *name, const Graph *graph)
{
        int n_checked = 0;
        for (GraphForm form = GRAPH_FORM_GRAPH; form <= GRAPH_FORM_TABULAR; form++) {
                char ending[32];
                size_t n;
                snprintf(ending, sizeof(ending), ".%s", graph_form_names[form]);
                char *want = read_file(name, ending, &n);
                if (want == NULL)
                        continue;
                Text got = { 0 };
                cr_assert_eq(graph_print(graph, form, &got), STATUS_OK);
                text_add_char(&got, '\n');
                cr_assert(got.n == n && memcmp(got.data, want, n) == 0, "%s%s differs; got\n%s", name, ending,
                          got.data);
                text_deinit(&got);
                free(want);
                n_checked++;
        }
        return n_checked;
}

// Reads what we print, prints it again: nothing may have changed.
static void check_round_trip(const char *name, const Graph *graph)
{
        Text first = { 0 }, second = { 0 };
        cr_assert_eq(fx_json_write(graph, true, &first), STATUS_OK);
        Graph *again = read_graph(name, first.data, first.n);
        cr_assert_eq(memcmp(graph->fingerprint, again->fingerprint, sizeof(graph->fingerprint)), 0,
                     "%s has another fingerprint after a round trip", name);
        check_forms(name, again);
        cr_assert_eq(fx_json_write(again, true, &second), STATUS_OK);
        cr_assert_str_eq(first.data, second.data);
        graph_unref(again);
        text_deinit(&first);
        text_deinit(&second);
}

Test(fx_json_print, every_graph_of_the_corpus_prints_as_pytorch_prints_it, .timeout = 60)
{
        DIR *directory = opendir(folder);
        cr_assert_not_null(directory);
        int n_graphs = 0, n_forms = 0;
        for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
                char name[256];
                size_t n = 0, length = strlen(entry->d_name);
                if (length < 8 || length > sizeof(name) ||
                    strcmp(entry->d_name + length - 8, ".fx.json") != 0)
                        continue;
                snprintf(name, sizeof(name), "%.*s", (int)(length - 8), entry->d_name);
                char *text = read_file(name, ".fx.json", &n);
                cr_assert_not_null(text);
                Graph *graph = read_graph(name, text, n);
                int n_checked = check_forms(name, graph);
                cr_assert_geq(n_checked, 2, "%s has no printed forms", name);
                check_round_trip(name, graph);
                graph_unref(graph);
                free(text);
                n_graphs++;
                n_forms += n_checked;
        }
        closedir(directory);
        cr_assert_geq(n_graphs, 20);
        cr_assert_geq(n_forms, 40);
}
