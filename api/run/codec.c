// SPDX-License-Identifier: Apache-2.0
#include "api/run/codec.h"
#include "api/formats/accept.h"

static const Codec *const codecs[] = {
#define CODEC(name, row) &row,
#define OTHER_CODEC(row) &row,
#include "api/run/codecs.def"
#undef CODEC
#undef OTHER_CODEC
};

static const Codec *reader_of(const ApiCall *call, ByteSpan body)
{
        for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
                if (codecs[i]->reads != NULL && codecs[i]->reads(call, body))
                        return codecs[i];
        return codecs[0];
}

const Codec *codec_of_route(const Route *route)
{
        if (route_has(route, AS_OIP))
                return &oip_codec;
        return route_has(route, AS_TFSERVING) ? &predict_codec : NULL;
}

bool codec_is_bare(const Route *route)
{
        return route_has(route, AS_TORCHSERVE) || route_has(route, AS_SAGEMAKER);
}

const Codec *codec_for_route(const Route *route, const Codec *codec)
{
        return codec == codecs[0] && codec_is_bare(route) ? &predict_codec : codec;
}

const Codec *codec_of(const ApiCall *call)
{
        ByteSpan none = { NULL, 0 };
        if (codec_of_route(call->route) != NULL)
                return codec_of_route(call->route);
        return codec_for_route(
                call->route,
                reader_of(call,
                          call->body == NULL ? none : (ByteSpan){ call->body->data, call->body->n_bytes }));
}

const Codec *codec_of_part(const ApiCall *call, const MultipartPart *part)
{
        const Codec *codec = reader_of(call, part->content);
        return codec->decode_part == NULL ? codecs[0] : codec;
}

const Codec *codec_at(int index)
{
        return codecs[index];
}

static bool is_accepted(const Codec *codec, const AcceptItem *item)
{
        for (int i = 0; codec->encode != NULL && i < CODEC_MAX_TYPES && codec->types[i] != NULL; i++)
                if (accept_is(item, codec->types[i]))
                        return true;
        return false;
}

const Codec *codec_accepted(const char *accept)
{
        const Codec *best = codecs[0];
        int best_quality = 0;
        AcceptItem item;
        while (accept_next(&accept, &item))
                for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
                        if (item.quality > best_quality && is_accepted(codecs[i], &item)) {
                                best = codecs[i];
                                best_quality = item.quality;
                        }
        return best;
}

Status codec_write(const Codec *codec, const NamedTensor *arrays, uint32_t n, ApiReply *reply)
{
        reply->content_type = codec->types[0];
        return codec->write(arrays, n, reply);
}
