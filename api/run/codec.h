// SPDX-License-Identifier: Apache-2.0
// Codecs: the wire forms of runs. A codec turns a request body into a RunTask, and the task's
// result into a reply body. Each codec is one object and one row of codecs.def. A request may come
// in one form and ask for its reply in another.
#pragma once
#include "api/formats/multipart.h"
#include "api/formats/named.h"
#include "api/run/outputs.h"
#include "api/run/run.h"

enum { CODEC_MAX_TYPES = 3 };

struct Codec {
        // Media types in Accept that choose this codec; the first is the Content-Type of its
        // replies.
        const char *types[CODEC_MAX_TYPES];
        // Whether the codec reads this body, by its first bytes. NULL: the default reader.
        bool (*reads)(const ApiCall *call, ByteSpan body);
        // A small body may take long to decode: no thread that others wait for may do it.
        bool grows;
        // POST /v1/run: sets the task's graph from the body. NULL: the form cannot carry a graph.
        Status (*take_graph)(const ApiContext *context, RunCall *run);
        // Decodes the body into the task's inputs, fetches and options. Charges the task's budget.
        // Tensors may point into the body and then hold a reference to it.
        Status (*decode)(RunCall *run);
        // Decodes one part of a form, which names an input. NULL: the codec reads no parts.
        Status (*decode_part)(RunCall *run, const MultipartPart *part);
        // Encodes the task's result as the reply. NULL: the codec only reads.
        Status (*encode)(RunCall *run, const OutputList *outputs, ApiReply *reply);
        // Writes contiguous named tensors as one file. NULL: the form is no file of arrays.
        Status (*write)(const NamedTensor *arrays, uint32_t n, ApiReply *reply);
};

#define CODEC(name, row) extern const Codec row;
#define OTHER_CODEC(row) extern const Codec row;
#include "api/run/codecs.def"
#undef CODEC
#undef OTHER_CODEC

// The codec that a route prescribes for body and reply; NULL: the request chooses.
const Codec *codec_of_route(const Route *route);
// Whether the route takes bodies of any form and replies with plain lists: TorchServe's and
// SageMaker's. Their JSON is that of predictions: codec_for_route puts that codec in place of the
// default one.
bool codec_is_bare(const Route *route);
const Codec *codec_for_route(const Route *route, const Codec *codec);
// The codec that reads the call's body.
const Codec *codec_of(const ApiCall *call);
// The codec that reads one part of the call's form.
const Codec *codec_of_part(const ApiCall *call, const MultipartPart *part);
// The codec that writes the reply: by index in codecs.def, or by Accept header (the first row
// where the header names none).
const Codec *codec_at(int index);
const Codec *codec_accepted(const char *accept);
// Writes arrays as the whole reply.
Status codec_write(const Codec *codec, const NamedTensor *arrays, uint32_t n, ApiReply *reply);
