// SPDX-License-Identifier: Apache-2.0
// libfxserve: eight threads run one model in every mode, ask what it has, and make mistakes; each
// answer has the bits of the first one of its mode. stress_library SECONDS
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "library/fxserve.h"

enum { N_THREADS = 8, N_IN = 64, N_OUT = 10 };

static fxserve_model *model;
static float first[3][N_OUT];
static atomic_int n_bad, n_runs;
static time_t until;

static void bad(const char *what)
{
        fprintf(stderr, "%s: %s\n", what, fxserve_error());
        atomic_fetch_add(&n_bad, 1);
}

static void run(int mode, float *out)
{
        int64_t shape[] = { 1, 1, 8, 8 };
        float image[N_IN];
        for (int i = 0; i < N_IN; i++)
                image[i] = (float)(i * 7 % 17);
        DLTensor x = { image, { kDLCPU, 0 }, 4, { kDLFloat, 32, 1 }, shape, NULL, 0 };
        const DLTensor *inputs[] = { &x };
        fxserve_options options = { .mode = mode, .profile = 1 };
        fxserve_result *result = fxserve_run(model, &options, inputs, 1);
        DLManagedTensor *y = result == NULL ? NULL : fxserve_result_tensor(result, 0);
        if (y == NULL || fxserve_result_profile(result) == NULL)
                bad("run");
        fxserve_result_free(result);
        if (y != NULL) { // outlives its result
                memcpy(out, y->dl_tensor.data, N_OUT * sizeof(*out));
                y->deleter(y);
        }
}

static void *work(void *argument)
{
        float out[N_OUT] = { 0 };
        int number = (int)(intptr_t)argument;
        for (int i = number; time(NULL) < until; i++) {
                int mode = i % 3;
                run(mode, out);
                // auto is eager or compiled
                int same = memcmp(out, first[mode], sizeof(out)) == 0 ||
                           (mode == FXSERVE_AUTO && memcmp(out, first[FXSERVE_COMPILED], sizeof(out)) == 0);
                if (!same)
                        bad("another answer");
                if (fxserve_run(model, NULL, NULL, 0) != NULL || strstr(fxserve_error(), "0 inputs") == NULL)
                        bad("a run without inputs");
                atomic_fetch_add(&n_runs, 1);
        }
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_t threads[N_THREADS];
        model = fxserve_open(LIBRARY_MODEL);
        if (model == NULL)
                return bad("open"), 1;
        run(FXSERVE_EAGER, first[FXSERVE_EAGER]);
        memcpy(first[FXSERVE_AUTO], first[FXSERVE_EAGER], sizeof(first[0]));
        run(FXSERVE_COMPILED, first[FXSERVE_COMPILED]);
        until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);
        for (int i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        fxserve_close(model);
        printf("%d runs, %d bad\n", atomic_load(&n_runs), atomic_load(&n_bad));
        return atomic_load(&n_bad) != 0 || atomic_load(&n_runs) == 0;
}
