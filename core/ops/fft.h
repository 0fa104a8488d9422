// SPDX-License-Identifier: Apache-2.0
// The normalization argument of aten::_fft_c2c, _fft_r2c and _fft_c2r.
#pragma once

typedef enum FftNorm { FFT_NORM_NONE, FFT_NORM_BY_ROOT_N, FFT_NORM_BY_N } FftNorm;
