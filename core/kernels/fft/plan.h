// SPDX-License-Identifier: Apache-2.0
// FftPlan: what a transform of one length needs besides the numbers: the factors of its stages and
// the roots of unity in the order in which the stages read them.
#pragma once
#include "core/kernels/run_context.h"
#include "core/tensor/convert.h"

enum { FFT_STAGES = 48, FFT_LARGEST_FACTOR = 61 };

typedef struct FftPlan {
        int64_t n;      // points of a line
        bool half;      // a line is real and n even: its pairs are transformed as complex numbers
        bool is_chirp;  // Bluestein's algorithm: a factor is too large for a stage
        int64_t points; // complex numbers that are transformed: n or n / 2
        int64_t length; // of the stages: `points`, or of the chirp's convolution
        int n_stages, factor[FFT_STAGES];
        ComplexF64 *twiddle[FFT_STAGES]; // factor - 1 for each group
        ComplexF64 *roots[FFT_STAGES];   // factor: exp(-2 pi i k / factor); NULL: the stage has its own code
        ComplexF64 *turns;               // half: n / 4 + 1: exp(-2 pi i k / n)
        ComplexF64 *chirp;               // is_chirp: points: exp(-pi i k^2 / points)
        ComplexF64 *response;            // is_chirp: length: the transformed conjugate chirp
} FftPlan;

// The plan for lines of n >= 1 points, real ones or complex. Tables are missing.
// STATUS_TOO_LARGE.
Status fft_plan_init(FftPlan *plan, int64_t n, bool is_real);
// How many numbers the tables have.
int64_t fft_plan_numbers(const FftPlan *plan);
// Fills `tables`, which the caller owns. The response is left as the conjugate chirp, to be
// transformed. The tables are incomplete if the work stops.
void fft_plan_fill(FftPlan *plan, ComplexF64 *tables, Work *work);
