// SPDX-License-Identifier: Apache-2.0
// The trained model that `fxserve demo` serves: digits of 8 by 8 pixels, a .pt2 archive. The build
// makes the bytes of tests/models/digits.pt2.
#pragma once
#include <stddef.h>
#include <stdint.h>

extern const uint8_t demo_model[];
extern const size_t n_demo_model;
