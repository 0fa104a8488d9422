// SPDX-License-Identifier: Apache-2.0
// ?packed_on= of an upload: which processor packed its weights of four bits (core/ops/int4.c).
#pragma once
#include "core/edit/edit.h"

// Calls of PyTorch's operators with such weights become calls of those that are told the processor.
// STATUS_INPUT: the graph has no such call; those in child graphs do not count.
Status packed_on_tell(Edit *edit, const char *packed_on);
