// SPDX-License-Identifier: Apache-2.0
// Codecs: how runs look on the wire. A codec turns a request body into a RunTask, and the task's
// result into a reply body; nothing else looks at either. Each is one object and one row of
// codecs.def. A request may come in one form and ask for its reply in another.
#pragma once
#include "api/formats/multipart.h"
#include "api/formats/named.h"
#include "api/run/outputs.h"
#include "api/run/run.h"

enum { CODEC_MAX_TYPES = 3 };

struct Codec {
        // Media types that ask for it in Accept; the first one is what replies say they are.
        const char *types[CODEC_MAX_TYPES];
        // Whether it reads this body, told by the first bytes. NULL: it reads what no other does.
        bool (*reads)(const ApiCall *call, ByteSpan body);
        // POST /v1/run: sets the task's graph from the body. NULL: the form has no place for one.
        Status (*take_graph)(const ApiContext *context, RunCall *run);
        // The body into the task's inputs, what it fetches, and options. Charges the task's budget;
        // tensors may lie in the body and hold a reference to it.
        Status (*decode)(RunCall *run);
        // The same of one part of a form, which names an input. NULL: no part is read so.
        Status (*decode_part)(RunCall *run, const MultipartPart *part);
        // The task's result into the reply. NULL: for requests only.
        Status (*encode)(RunCall *run, const OutputList *outputs, ApiReply *reply);
        // Contiguous tensors by name as one file; NULL: the form is no file of arrays.
        Status (*write)(const NamedTensor *arrays, uint32_t n, ApiReply *reply);
        // A failed run as a reply.
        void (*error)(const Failure *failure, const char *request_id, ApiReply *reply);
};

#define CODEC(name, row) extern const Codec row;
#define OTHER_CODEC(row) extern const Codec row;
#include "api/run/codecs.def"
#undef CODEC
#undef OTHER_CODEC

// What reads the call's body.
const Codec *codec_of(const ApiCall *call);
// What reads a part of its form.
const Codec *codec_of_part(const ApiCall *call, const MultipartPart *part);
// What writes the reply: the row of codecs.def with this index, and by an Accept header; the first
// one where that names none.
const Codec *codec_at(int index);
const Codec *codec_accepted(const char *accept);
// Writes arrays as the whole reply.
Status codec_write(const Codec *codec, const NamedTensor *arrays, uint32_t n, ApiReply *reply);
