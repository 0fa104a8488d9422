// SPDX-License-Identifier: Apache-2.0
// Differences between gcc and clang in vector attributes and pragmas.
#pragma once

#ifdef __clang__
// The iterations of the following loop are independent. The compiler may ignore the hint.
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
// A function for these instruction sets, AVX-512 among them, which uses the whole width.
#define TARGET_512(features) __attribute__((target(features), min_vector_width(512)))
#else
#define INDEPENDENT_LOOP     _Pragma("GCC ivdep")
#define TARGET_512(features) __attribute__((target(features ",prefer-vector-width=512")))
#endif
