// SPDX-License-Identifier: Apache-2.0
// Pack functions (pack.h) of products whose left factor is float16 or bfloat16.
#pragma once
#include "core/ops/op.h"

Status half_linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed);
Status half_addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);
Status half_conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed);
Status half_mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed);
