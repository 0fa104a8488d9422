// SPDX-License-Identifier: Apache-2.0
// Reading the dataclasses of torch.export's documents: objects whose keys may come in any order,
// where null means absent and unknown keys are ignored, and unions (`{"as_int": 3}`), of which one
// member is not null.
#pragma once
#include "core/base/json.h"

// The raw text of one value; validated. n == 0: absent or null.
typedef struct JsonText {
        const char *text;
        size_t n;
} JsonText;

// A reader over `text` with the limits of model documents.
Status json_text_open(JsonText text, Arena *arena, JsonReader **out_reader);
// Picks the members called names[0..n) out of an object. `what` names the object in failures.
Status json_text_fields(JsonText object, const char *what, Arena *arena, const char *const *names, uint32_t n,
                        JsonText *out_fields);
Status json_text_string(JsonText text, Arena *arena, const char **out_string); // NULL when absent
Status json_text_int(JsonText text, Arena *arena, int64_t if_absent, int64_t *out_value);
Status json_text_bool(JsonText text, Arena *arena, bool if_absent, bool *out_value);

// Enters a union and stops before the value of its first member that is not null (nor `"as_none":
// false`). The caller reads that value, then leaves; leaving refuses a second value.
Status json_union_enter(JsonReader *reader, const char **out_tag);
Status json_union_leave(JsonReader *reader, const char *tag);
// A number, or one of the strings "Infinity", "-Infinity", "NaN".
Status json_read_float(JsonReader *reader, double *out_value);
