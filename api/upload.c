// SPDX-License-Identifier: Apache-2.0
// From bytes to a graph that can run: recognise, read, resolve, check.
#include "api/upload.h"
#include <string.h>
#include "api/fx_json.h"
#include "api/multipart.h"
#include "api/pt2.h"
#include "api/recognise.h"
#include "api/safetensors.h"
#include "core/base/limits.h"
#include "core/targets/targets.h"

void upload_deinit(Upload *upload)
{
        for (uint32_t i = 0; i < upload->n_parts; i++)
                storage_unref(upload->parts[i].bytes);
        upload->n_parts = 0;
}
