// SPDX-License-Identifier: Apache-2.0
// Values of tests/targets/cases.json: read, compared, printed.
#pragma once
#include <jansson.h>
#include "core/base/text.h"
#include "core/tensor/value.h"

// tools/generate/make_target_cases.py's encode() undone. Owned by the caller; aborts on what it
// does not know.
Value case_value(const json_t *json);
// Equal in kind, dtype and shape; floats by torch.testing.assert_close's defaults (float64 scalars:
// 1e-12 relative). What differs goes to `out_why`.
bool case_equal(Value got, const json_t *want, Text *out_why);
