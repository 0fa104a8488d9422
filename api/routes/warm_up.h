// SPDX-License-Identifier: Apache-2.0
// What PATCH and GET say of a graph's declared warm-ups (core/engine/declared.h).
#pragma once
#include "core/base/json.h"
#include "core/engine/declared.h"

// A list of shapes, ["x:1,3,224,224"], as the line that the store keeps; null: none.
Status warm_up_read(JsonReader *reader, Text *out_line);
// ", "warm_up": {"shapes": [...], "state": "done"}"; nothing for a line without any.
void warm_up_write(const GraphVersion *version, const char *line, Text *out);
