// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/caller_threads.h"
#ifdef _OPENMP
#include <omp.h>
#endif

int caller_threads(void)
{
#ifdef _OPENMP
        return omp_get_max_threads();
#else
        return 1;
#endif
}

void caller_threads_restore(int n_threads)
{
#ifdef _OPENMP
        if (omp_get_max_threads() != n_threads)
                omp_set_num_threads(n_threads);
#else
        (void)n_threads;
#endif
}
