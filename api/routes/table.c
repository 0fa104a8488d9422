// SPDX-License-Identifier: Apache-2.0
// The rows of routes.def and parameters.def and their parts: bodies and replies with their schemas
// for the OpenAPI document, and arrays of names.
#include "api/formats/profile_text.h"
#include "api/routes/answer.h"
#include "api/run/run.h"
#include "api/run/top.h"
#include "core/engine/batch.h"
#include "core/base/limits.h"
#include "core/graph/print.h"
#include "core/ops/int4.h"

// ---- media ----
#define OBJECT "{\"type\": \"object\"}"

static const Media json_object[] = { { "application/json", OBJECT }, { NULL, NULL } };
static const Media graph_info[] = { { "application/json", "{\"$ref\": \"#/components/schemas/GraphInfo\"}" },
                                    { NULL, NULL } };
#define ARRAY_FORMS                                                                                          \
        { "application/x-npy", "{}" }, { "application/x-npz", "{}" },                                        \
        {                                                                                                    \
                "application/x-safetensors", "{}"                                                            \
        }
#define RUN_FORMS                                                                                            \
        { "application/json", "{\"$ref\": \"#/components/schemas/RunBody\"}" }, ARRAY_FORMS,                 \
                { "multipart/form-data", OBJECT }, { "image/jpeg", "{}" },                                   \
        {                                                                                                    \
                "image/png", "{}"                                                                            \
        }
#define CSV_FORM                                                                                             \
        {                                                                                                    \
                "text/csv", "{\"type\": \"string\"}"                                                         \
        }
static const Media run_reply[] = { { "application/json", "{}" }, ARRAY_FORMS, { NULL, NULL } };
static const Media run_media[] = { RUN_FORMS, { NULL, NULL } };
static const Media invocations_reply[] = {
        { "application/json", "{}" }, ARRAY_FORMS, CSV_FORM, { NULL, NULL }
};
static const Media invocations_media[] = { RUN_FORMS, CSV_FORM, { NULL, NULL } };
static const Media inline_media[] = { { "application/json", "{\"$ref\": \"#/components/schemas/RunBody\"}" },
                                      { "multipart/form-data", OBJECT },
                                      { NULL, NULL } };
#define BINARY "{\"type\": \"string\", \"format\": \"binary\", \"description\": "
static const char upload_parts[] =
        "{\"type\": \"object\", \"required\": [\"graph\"], \"properties\": {"
        "\"image\": {\"type\": \"string\", \"description\": \"settings for images, as JSON: those of "
        "PATCH\"}, "
        "\"labels\": " BINARY "\"a text, one line for each index of the outputs' rows\"}, "
        "\"graph\": " BINARY "\"a .pt2 archive or FX JSON\"}, "
        "\"weights\": " BINARY "\"state of FX JSON as safetensors\"}, "
        "\"samples\": " BINARY
        "\"recorded values (0.inputs.x, 0.outputs.y, 0.nodes.relu) as safetensors: the graph must "
        "compute them, else 409 verification_failed\"}}}";
static const Media upload_media[] = { { "application/octet-stream", "{}" },
                                      { "application/json", OBJECT },
                                      { "multipart/form-data", upload_parts },
                                      { NULL, NULL } };
#define SIDES    "{\"type\": [\"integer\", \"array\"], \"items\": {\"type\": \"integer\"}}"
#define CHANNELS "{\"type\": [\"number\", \"array\"], \"items\": {\"type\": \"number\"}}"
static const Media change_media[] = {
        { "application/json",
          "{\"type\": \"object\", \"properties\": {\"default_version\": {\"type\": \"integer\"}, "
          "\"aliases\": "
          "{\"description\": \"null removes\", "
          "\"type\": \"object\", \"additionalProperties\": {\"type\": [\"integer\", \"null\"]}}, "
          "\"image\": {\"description\": \"how JPEG and PNG bodies become an input; null removes\", "
          "\"type\": [\"object\", \"null\"], \"properties\": {\"size\": " SIDES ", \"crop\": " SIDES
          ", \"mean\": " CHANNELS ", \"std\": " CHANNELS ", "
          "\"layout\": {\"enum\": [\"NCHW\", \"NHWC\"]}, "
          "\"colour\": {\"enum\": [\"RGB\", \"BGR\", \"grey\"]}}}, "
          "\"precision\": {\"description\": \"of runs that name none\", "
          "\"enum\": [\"f32\", \"bf16\", \"int8\"]}, "
          "\"tolerance\": {\"description\": \"of runs that name none, instead of a precision; 0: none\", "
          "\"type\": \"number\", \"minimum\": 0}, "
          "\"batching\": {\"description\": \"how runs are run as one; null removes\", "
          "\"type\": [\"object\", \"null\"], \"properties\": {"
          "\"max_size\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 128}, "
          "\"max_delay_us\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 1000000}, "
          "\"preferred\": {\"type\": \"array\", \"items\": {\"enum\": [2, 4, 8, 16, 32, 64, 128]}}, "
          "\"priority\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9}}}, "
          "\"warm_up\": {\"description\": \"shapes of inputs whose programs are built before the graph is "
          "ready; null removes\", \"type\": [\"array\", \"null\"], \"items\": {\"type\": \"string\"}}}}" },
        { NULL, NULL }
};
static const Media pass_media[] = {
        { "application/json",
          "{\"type\": \"object\", \"required\": [\"steps\"], \"properties\": {\"steps\": {\"type\": "
          "\"array\", \"items\": {\"$ref\": \"#/components/schemas/Step\"}}}}" },
        { NULL, NULL }
};
static const Media transform_media[] = {
        { "application/json",
          "{\"type\": \"object\", \"required\": [\"steps\"], \"properties\": {\"steps\": {\"type\": "
          "\"array\", \"items\": {\"$ref\": \"#/components/schemas/Step\"}}, \"dry_run\": {\"type\": "
          "\"boolean\"}, \"store_as\": {\"type\": [\"string\", \"null\"]}}}" },
        { NULL, NULL }
};
#define SIDE                                                                                                 \
        "{\"type\": \"object\", \"required\": [\"graph\"], \"properties\": {\"graph\": {\"type\": "          \
        "\"string\"}, "                                                                                      \
        "\"version\": {\"type\": [\"integer\", \"string\"], \"description\": \"a number or an alias\"}, "    \
        "\"mode\": {\"enum\": [\"eager\", \"compiled\"], \"default\": \"eager\"}, "                          \
        "\"steps\": {\"type\": \"array\", \"description\": \"of a transform; they come before rules\", "     \
        "\"items\": {\"$ref\": \"#/components/schemas/Step\"}}, "                                            \
        "\"overrides\": {\"type\": \"array\", \"description\": \"rules, as on a run\"}}}"
#define SAMPLE_SIDE                                                                                          \
        "{\"type\": \"object\", \"required\": [\"samples\"], \"properties\": {\"samples\": {\"type\": "      \
        "\"integer\", "                                                                                      \
        "\"minimum\": 0, \"description\": \"which of the samples that were uploaded with the version of "    \
        "a\"}}}"
#define COMPARE_INPUTS                                                                                       \
        "{\"description\": \"as in a run; or example: those of GET /example of a; or samples: those of "     \
        "sample 0 of a\", "                                                                                  \
        "\"default\": \"example\"}"
static const Media compare_media[] = {
        { "application/json",
          "{\"type\": \"object\", \"required\": [\"a\", \"b\"], \"properties\": {\"a\": " SIDE
          ", \"b\": {\"anyOf\": [" SIDE ", " SAMPLE_SIDE "]}, \"inputs\": " COMPARE_INPUTS
          ", \"nodes\": {\"type\": \"boolean\", \"description\": \"true: node by node; false: outputs only; "
          "left out: node by node if outputs differ\"}, \"rtol\": {\"type\": \"number\"}, \"atol\": "
          "{\"type\": \"number\"}, "
          "\"equal_nan\": {\"type\": \"boolean\"}, \"form\": {\"enum\": [\"json\", \"text\"]}, "
          "\"deadline_ms\": {\"type\": \"integer\"}, \"seed\": {\"type\": \"integer\"}, \"times\": "
          "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100, \"description\": \"runs of both sides "
          "that are timed: their medians are us of a and b\"}}}" },
        { NULL, NULL }
};
static const Media session_media[] = {
        { "application/json", "{\"type\": \"object\", \"properties\": {\"seed\": {\"type\": \"integer\"}}}" },
        { NULL, NULL }
};
static const Media restore_media[] = { { "application/x-safetensors", "{}" }, { NULL, NULL } };
static const Media session_reply[] = { { "application/x-safetensors", "{}" }, { NULL, NULL } };
static const Media oip_media[] = { { "application/json", OBJECT },
                                   { "application/octet-stream", "{}" },
                                   { NULL, NULL } };
static const Media oip_reply[] = { { "application/json", OBJECT },
                                   { "application/octet-stream", "{}" },
                                   { NULL, NULL } };
static const Media predict_media[] = {
        { "application/json",
          "{\"type\": \"object\", \"properties\": {\"signature_name\": {\"type\": \"string\"}, "
          "\"instances\": {\"type\": \"array\", \"description\": \"rows: values of the only input, or "
          "objects by name\"}, "
          "\"inputs\": {\"description\": \"columns: the value of the only input, or an object by "
          "name\"}}}" },
        { NULL, NULL }
};
static const Media options_media[] = { { "application/json", OBJECT }, { NULL, NULL } };
static const Media text_reply[] = { { "text/plain", "{\"type\": \"string\"}" },
                                    { "application/json", OBJECT },
                                    { NULL, NULL } };
static const Media profile_reply[] = { { "text/plain", "{\"type\": \"string\"}" },
                                       { "application/json", OBJECT },
                                       { "text/html", "{\"type\": \"string\"}" },
                                       { NULL, NULL } };
static const Media plain_reply[] = { { "text/plain", "{\"type\": \"string\"}" }, { NULL, NULL } };
static const Media events_reply[] = { { "text/event-stream", "{\"type\": \"string\"}" }, { NULL, NULL } };
static const Media page_reply[] = { { "text/html", "{\"type\": \"string\"}" }, { NULL, NULL } };
static const Media files_reply[] = { { "text/javascript", "{\"type\": \"string\"}" },
                                     { "text/css", "{\"type\": \"string\"}" },
                                     { NULL, NULL } };
static const Media weights_reply[] = { { "application/x-safetensors", "{}" },
                                       { "application/x-npz", "{}" },
                                       { NULL, NULL } };

// ---- bodies ----
// A run's body is held within the budget of all bodies; a larger one would never fit. Uploads go to
// disk, but inflated ones are held in memory.
#define RUN_LIMITS                                                                                           \
        { &limits.max_run_body, &limits.max_body_budget },                                                   \
        {                                                                                                    \
                &limits.max_run_body                                                                         \
        }
#define ENVELOPE_LIMITS                                                                                      \
        { &limits.max_envelope },                                                                            \
        {                                                                                                    \
                &limits.max_envelope                                                                         \
        }

static const RouteBody no_body = { NULL, ENVELOPE_LIMITS };
static const RouteBody change_body = { change_media, ENVELOPE_LIMITS };
static const RouteBody run_body = { run_media, RUN_LIMITS };
static const RouteBody invocations_body = { invocations_media, RUN_LIMITS };
static const RouteBody oip_body = { oip_media, RUN_LIMITS };
static const RouteBody oip_load = { options_media, RUN_LIMITS };
static const RouteBody oip_options = { options_media, ENVELOPE_LIMITS };
static const RouteBody predict_body = { predict_media, RUN_LIMITS };
static const RouteBody inline_body = { inline_media, RUN_LIMITS };
static const RouteBody session_body = { session_media, ENVELOPE_LIMITS };
static const RouteBody restore_body = { restore_media, RUN_LIMITS };
static const RouteBody pass_body = { pass_media, ENVELOPE_LIMITS };
static const RouteBody compare_body = { compare_media, RUN_LIMITS };
static const RouteBody transform_body = { transform_media, RUN_LIMITS };
static const RouteBody upload_body = { upload_media,
                                       { &limits.max_upload },
                                       { &limits.max_upload_in_memory, &limits.max_upload } };

// ---- names ----
static const char *const run_mode_names[] = {
        [RUN_MODE_AUTO] = "auto", [RUN_MODE_COMPILED] = "compiled", [RUN_MODE_EAGER] = "eager"
};
static const char *const run_reply_names[] = { [false] = "full", [true] = "bare" }; // RunCall.bare
static const char *const run_encoding_names[] = {
        [RUN_ENCODING_LIST] = "list", [RUN_ENCODING_FLAT] = "flat", [RUN_ENCODING_B64] = "b64"
};
// Read as an index for codec_at.
static const char *const run_as_names[] = {
#define CODEC(name, row) name,
#define OTHER_CODEC(row)
#include "api/run/codecs.def"
#undef CODEC
#undef OTHER_CODEC
};
static const char *const weights_as_names[WEIGHTS_AS_COUNT] = {
        [WEIGHTS_SAFETENSORS] = "safetensors", [WEIGHTS_NPZ] = "npz"
};
static const char *const stage_names[TEXT_STAGE_COUNT] = { [TEXT_AUTHORED] = "authored",
                                                           [TEXT_ATEN] = "aten",
                                                           [TEXT_OPTIMISED] = "optimised",
                                                           [TEXT_OF_PROGRAM] = "program" };

// ---- parameters ----
#define SCHEMA(text)            .type = TYPE_SCHEMA, .schema = (text)
#define TEXT                    .type = TYPE_TEXT
#define NAMES                   .type = TYPE_NAMES
#define BOOL(value)             .type = TYPE_BOOL, .fallback = (value)
#define INT(least, most, value) .type = TYPE_INT, .min = (least), .max = (most), .fallback = (value)
#define INT_TO(least, most)     .type = TYPE_INT, .min = (least), .limit = &(most)
#define NUMBER                  .type = TYPE_NUMBER
#define CHOICE(words, value)                                                                                 \
        .type = TYPE_CHOICE, .names = (words), .n_names = ARRAY_LENGTH(words), .fallback = (value)

const Parameter parameters[PARAM_COUNT] = {
#define PARAMETER(id, text, where, kind, does)                                                               \
        [PARAM_##id] = { .name = (text), .place = (where), kind, .words = (does) },
#include "api/parameters.def"
#undef PARAMETER
};

// ---- routes ----
#undef TEXT // is an id here
#define STATUSES(...)   (__VA_ARGS__)
#define PARAMETERS(...) (__VA_ARGS__)
#define RUN_PARAMETERS                                                                                       \
        (PARAM_PROFILE, PARAM_OUTPUTS, PARAM_MODE, PARAM_PRECISION, PARAM_RUN_TOLERANCE, PARAM_DEADLINE_MS,  \
         PARAM_SEED, PARAM_TOP, PARAM_PRIORITY, PARAM_ENCODING, PARAM_REPLY, PARAM_RUN_AS)
#define LIST(...)                                                                                            \
        {                                                                                                    \
                __VA_ARGS__                                                                                  \
        }

const Route routes[ROUTE_COUNT] = {
#define ROUTE(id, method, path, words, kind, scope, body, needs, statuses, reply, handler, parameters)       \
        [ROUTE_##id] = { #id,   method, path,  words,   kind,          scope,                                \
                         needs, body,   reply, handler, LIST statuses, LIST parameters },
#define VERSIONED_ROUTE(id, of_version, method, path, part, words, version_words, ...)                       \
        ROUTE(id, method, path part, words, __VA_ARGS__)                                                     \
        ROUTE(of_version, method, path "/versions/{v}" part, version_words, __VA_ARGS__)
#include "api/routes.def"
#undef ROUTE
#undef VERSIONED_ROUTE
};
