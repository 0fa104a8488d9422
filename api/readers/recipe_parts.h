// SPDX-License-Identifier: Apache-2.0
// Inside the reader of recipes: how the text of one is read again.
#pragma once
#include "api/readers/rules.h"

// The recipe's members in braces.
Status recipe_as_object(const Recipe *recipe, Text *out);
Status recipe_open(const Text *object, Arena *arena, JsonReader **out_json);
void recipe_spec_of(const TensorMeta *meta, TensorSpec *out_spec);
