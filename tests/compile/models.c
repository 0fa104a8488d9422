// SPDX-License-Identifier: Apache-2.0
// models.c: every model of tests/models on every input set it comes with, eager and compiled.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/targets/targets.h"
#include "tests/compile/both.h"
#include "tests/compile/model_file.h"

static void start(void)
{
        cr_assert_eq(ops_init(), STATUS_OK);
        cr_assert_eq(targets_init(), STATUS_OK);
}

TestSuite(models, .init = start, .timeout = 120);

static int check_sets(const Graph *graph, const char *stem, BothResult wanted)
{
        char words[600];
        int set = 0;
        for (;; set++) {
                Value inputs[256];
                bool found = false;
                cr_assert_leq(graph->signature.n_inputs, 256);
                cr_assert_eq(model_inputs(graph, stem, set, inputs, &found), STATUS_OK, "%s: %s", stem,
                             failure_current()->message);
                if (!found)
                        break;
                CompileOptions options = { .n_threads = 1 };
                ValueSpan span = { inputs, graph->signature.n_inputs };
                cr_expect_eq(run_both(graph, span, &options, 1e-4, 1e-4, words), wanted, "%s set %d: %s",
                             stem, set, words);
                options.no_passes = true;
                cr_expect_eq(run_both(graph, span, &options, 1e-4, 1e-4, words), wanted,
                             "%s set %d without passes: %s", stem, set, words);
                model_inputs_free(graph, inputs);
        }
        return set;
}

Test(models, give_compiled_what_they_give_eagerly)
{
        static const char *const files[] = { "dev_lenet.pt2",
                                             "dev_linear.pt2",
                                             "dev_mlp_bn.pt2",
                                             "dev_mtcnn_pnet.pt2",
                                             "dev_relu_neg_abs.pt2",
                                             "dev_resnet_hf.pt2",
                                             "digits.pt2",
                                             "linear_module.fx.json",
                                             "neg_sigmoid.fx.json",
                                             "nested_conv.fx.json",
                                             "relu_neg_abs.fx.json",
                                             "neg_sigmoid_methods.fx.json",
                                             "relu_neg_abs_methods.fx.json" };
        for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
                char stem[64];
                _cleanup_(graph_unrefp) Graph *graph = NULL;
                snprintf(stem, sizeof(stem), "%.*s", (int)strcspn(files[i], "."), files[i]);
                cr_assert_eq(model_read(files[i], NULL, &graph), STATUS_OK, "%s: %s", files[i],
                             failure_current()->message);
                cr_assert_gt(check_sets(graph, stem, BOTH_EQUAL), 0, "%s has no inputs", stem);
        }
}

// MORE_MODELS: a folder of further .pt2 files with inputs beside them; by hand.
Test(models, of_another_folder_give_compiled_what_they_give_eagerly)
{
        const char *list = getenv("MORE_MODELS");
        if (list == NULL)
                cr_skip_test("MORE_MODELS names stems of .pt2 files, separated by spaces");
        char *names = strdup(list), *rest = NULL;
        for (char *stem = strtok_r(names, " ", &rest); stem != NULL; stem = strtok_r(NULL, " ", &rest)) {
                char path[300];
                _cleanup_(graph_unrefp) Graph *graph = NULL;
                snprintf(path, sizeof(path), "%.250s.pt2", stem);
                Status status = model_read(path, NULL, &graph);
                fprintf(stderr, "%s: %s\n", stem, status == STATUS_OK ? "read" : failure_current()->message);
                if (status == STATUS_OK)
                        fprintf(stderr, "%s: %d sets\n", stem, check_sets(graph, stem, BOTH_EQUAL));
        }
        free(names);
}
