// SPDX-License-Identifier: Apache-2.0
// Replies of the server as text for people: the output of the commands `list`, `show` and `push`.
// STATUS_MALFORMED: not such a reply.
#pragma once
#include "core/base/span.h"
#include "core/base/text.h"

// One row for each graph of a page of GET /v1/graphs; `heading`: a line with the columns' names
// comes first. *out_next: the name after which the next page begins, or "" on the last page;
// capacity SUMMARY_NAME.
enum { SUMMARY_NAME = 65 };
Status summary_of_list(ByteSpan reply, bool heading, Text *out, char out_next[SUMMARY_NAME]);
// For GET /v1/graphs/{name}, or the reply of an upload.
Status summary_of_graph(ByteSpan reply, Text *out);
// The version of the jansson that is loaded.
const char *summary_json_version(void);
// The member "error" of a failed request; false: there is none.
bool summary_of_error(ByteSpan reply, Text *out);
