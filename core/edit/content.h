// SPDX-License-Identifier: Apache-2.0
// Identity of derived graphs.
#pragma once
#include "core/base/hash.h"
#include "core/base/span.h"
#include "core/graph/graph.h"

// The content of a graph derived from one with content `base` by a recipe in canonical text that
// calls graphs with the contents `called`. The names of these graphs do not count.
void edit_content(const uint64_t base[4], const char *recipe, size_t n_recipe, const uint64_t (*called)[4],
                  uint32_t n_called, uint64_t out_content[4]);
// As ids are written.
HashHex content_hex(const uint64_t content[4]);
