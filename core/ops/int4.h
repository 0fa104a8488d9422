// SPDX-License-Identifier: Apache-2.0
// Weights of four bits, packed by PyTorch for the CPU (int4.c).
#pragma once

// Processors that pack them, as torch.backends.cpu.get_cpu_capability() names them; NEON is an ARM
// processor for which that says DEFAULT.
enum { PACKED_ON_COUNT = 5 };
extern const char *const packed_on_names[PACKED_ON_COUNT];
