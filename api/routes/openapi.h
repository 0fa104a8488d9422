// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 document, from routes.def and errors.def.
#pragma once
#include "api/call.h"

Status openapi_write(const char *version, Text *out);
