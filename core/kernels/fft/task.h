// SPDX-License-Identifier: Apache-2.0
// What the variants of the family of Fourier transforms are given.
#pragma once
#include "core/kernels/dense.h"
#include "core/kernels/fft/fft.h"
#include "core/kernels/fft/plan.h"

// How numbers of a line lie in a tensor, in units of its real numbers.
typedef struct FftView {
        bool single;    // real numbers are float32, else float64
        int64_t step;   // between complex numbers
        int64_t im;     // from a real part to its imaginary part; 0: all are real
        int64_t beside; // between numbers of neighbouring lines, where they lie side by side
} FftView;

// A group of lines goes through the stages together: element k of lane l is at k * lanes + l.
typedef struct FftTask {
        const RunContext *ctx;
        const FftLines *lines;
        const FftPlan *plan;
        FftView from, to;
        bool from_real, to_real;
        const char *in;
        char *out;
        int64_t n_lines, rows; // rows: complex numbers that a line needs room for
        int lanes, rank;
        int64_t size[MAX_RANK], in_bytes[MAX_RANK], out_bytes[MAX_RANK]; // the other dimensions
        _Atomic bool failed;                                             // no memory
} FftTask;

typedef struct FftKernels {
        int lanes; // the task's are as many, or 1
        ParallelBody run;
        // Transforms plan->response and divides it by plan->length. `planes`: 4 * length numbers.
        void (*respond)(Work *work, const FftPlan *plan, double *planes);
} FftKernels;

enum { FFT_MOST_LANES = 8 };
typedef struct FftPlace { // of the lines of a group
        const char *in[FFT_MOST_LANES];
        char *out[FFT_MOST_LANES];
        int count;                  // the lanes after it repeat line 0
        bool in_beside, out_beside; // lines are neighbours
} FftPlace;
// Lines lanes * group and on.
void fft_place(const FftTask *task, int64_t group, FftPlace *out);
