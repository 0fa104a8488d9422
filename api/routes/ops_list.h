// SPDX-License-Identifier: Apache-2.0
// The list of operators: GET /v1/ops and `fxserve ops`.
#pragma once
#include "core/base/text.h"

Status ops_list_json(Text *out);
Status ops_list_text(Text *out);
