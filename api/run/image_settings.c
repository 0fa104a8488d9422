// SPDX-License-Identifier: Apache-2.0
#include "api/run/image_settings.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

#define IMAGE_MEMBERS "size, crop, mean, std, layout, colour"
enum { MAX_SIDE = 65536 };
static const char *const colour_names[IMAGE_COLOURS] = { "RGB", "BGR", "grey" };
static const char *const layout_names[] = { "NCHW", "NHWC" };

// ---- reading ----
static Status read_side(JsonReader *reader, const char *name, int64_t *out)
{
        if (json_peek(reader) != JSON_NUMBER)
                return fail(STATUS_VALUE, "\"%s\" is a number of pixels or [height, width]", name);
        TRY(json_read_int(reader, out));
        return *out >= 1 && *out <= MAX_SIDE
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"%s\" is from 1 to %d pixels", name, MAX_SIDE);
}

// *out_n: 1 or 2 numbers.
static Status read_sides(JsonReader *reader, const char *name, int64_t out[2], int *out_n)
{
        bool more = true;
        *out_n = 1;
        if (json_peek(reader) != JSON_ARRAY)
                return read_side(reader, name, &out[0]);
        TRY(json_enter_array(reader));
        for (int i = 0; i < 2; i++) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                TRY(read_side(reader, name, &out[i]));
        }
        if (more)
                TRY(json_next_item(reader, &more));
        else
                more = true;
        *out_n = 2;
        return !more ? STATUS_OK : fail(STATUS_VALUE, "\"%s\" is [height, width]", name);
}

static Status read_channel(JsonReader *reader, const char *name, double *out)
{
        NumberKind kind;
        int64_t integer;
        if (json_peek(reader) != JSON_NUMBER)
                return fail(STATUS_VALUE, "\"%s\" is a number for each channel", name);
        TRY(json_read_number(reader, &kind, &integer, out));
        *out = kind == NUMBER_INT ? (double)integer : *out;
        bool usable = fabs(*out) <= 1e6 && (strcmp(name, "mean") == 0 || *out >= 1e-6);
        return usable ? STATUS_OK : fail(STATUS_VALUE, "\"%s\" cannot be %g", name, *out);
}

// One number counts for all channels. *out_n: how many there are.
static Status read_channels(JsonReader *reader, const char *name, double out[IMAGE_SETTING_CHANNELS],
                            int *out_n)
{
        bool more = true;
        int n = 0;
        if (json_peek(reader) == JSON_NUMBER) {
                TRY(read_channel(reader, name, &out[0]));
                out[1] = out[2] = out[0];
                *out_n = 1;
                return STATUS_OK;
        }
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"%s\" is a list of one number for each channel", name);
        TRY(json_enter_array(reader));
        for (;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                if (n == IMAGE_SETTING_CHANNELS)
                        return fail(STATUS_VALUE, "\"%s\" has more than %d numbers", name, n);
                TRY(read_channel(reader, name, &out[n++]));
        }
        if (n == 1)
                out[1] = out[2] = out[0];
        *out_n = n;
        return n == 1 || n == IMAGE_SETTING_CHANNELS
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "\"%s\" has %d numbers; channels are 3, or 1", name, n);
}

static Status read_choice(JsonReader *reader, const char *name, const char *const *names, int n, int *out)
{
        const char *text;
        size_t length;
        _cleanup_(text_deinit) Text known = { 0 };
        if (json_peek(reader) == JSON_STRING) {
                TRY(json_read_string(reader, &text, &length));
                for (*out = 0; *out < n; ++*out)
                        if (strcmp(names[*out], text) == 0)
                                return STATUS_OK;
        }
        for (int i = 0; i < n; i++)
                text_addf(&known, "%s\"%s\"", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
        TRY(text_status(&known));
        return fail(STATUS_VALUE, "\"%s\" is %s", name, known.data);
}

typedef struct ImageRead {
        ImageSettings settings;
        int n_mean, n_std; // 0: not given
} ImageRead;

static Status read_member(void *context, JsonReader *reader, const char *key)
{
        ImageRead *read = context;
        ImageSettings *settings = &read->settings;
        int n;
        if (strcmp(key, "size") == 0)
                return read_sides(reader, key, settings->size, &n);
        if (strcmp(key, "crop") == 0) {
                TRY(read_sides(reader, key, settings->crop, &n));
                settings->crop[1] = n == 1 ? settings->crop[0] : settings->crop[1];
                return STATUS_OK;
        }
        if (strcmp(key, "mean") == 0)
                return read_channels(reader, key, settings->mean, &read->n_mean);
        if (strcmp(key, "std") == 0)
                return read_channels(reader, key, settings->std, &read->n_std);
        if (strcmp(key, "layout") == 0) {
                TRY(read_choice(reader, key, layout_names, 2, &n));
                settings->channels_last = n == 1;
                return STATUS_OK;
        }
        if (strcmp(key, "colour") == 0) {
                TRY(read_choice(reader, key, colour_names, IMAGE_COLOURS, &n));
                settings->colour = (ImageColour)n;
                return STATUS_OK;
        }
        return fail(STATUS_UNKNOWN_MEMBER, "\"image\" has no member \"%.64s\"; it has: " IMAGE_MEMBERS, key);
}

static Status finish_read(ImageRead *read, ImageSettings *out_settings)
{
        ImageSettings *settings = &read->settings;
        settings->normalised = read->n_mean > 0;
        if ((read->n_mean > 0) != (read->n_std > 0))
                return fail(STATUS_VALUE, "\"mean\" and \"std\" go together");
        if (settings->colour == IMAGE_GREY && MAX(read->n_mean, read->n_std) > 1)
                return fail(STATUS_VALUE, "a grey image has one channel; \"mean\" and \"std\" have three");
        *out_settings = *settings;
        return STATUS_OK;
}

Status image_settings_read(JsonReader *reader, ImageSettings *out_settings)
{
        ImageRead read = { .settings = { .std = { 1, 1, 1 } } };
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_VALUE,
                            "\"image\" is an object with " IMAGE_MEMBERS "; null takes the settings away");
        TRY(json_each_member(reader, read_member, &read));
        return finish_read(&read, out_settings);
}

Status image_settings_parse(ByteSpan json, ImageSettings *out_settings)
{
        Arena arena;
        JsonReader *reader = NULL;
        arena_init(&arena, 0);
        Status status = json_open((const char *)json.data, json.n, 4, 100, &arena, &reader);
        if (status == STATUS_OK)
                status = image_settings_read(reader, out_settings);
        if (status == STATUS_OK)
                status = json_finish(reader);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

// ---- writing ----
static void write_channels(const char *name, const double *values, int n, Text *out)
{
        text_addf(out, ", \"%s\": [", name);
        for (int i = 0; i < n; i++)
                text_addf(out, "%s%.9g", i == 0 ? "" : ", ", values[i]);
        text_add_char(out, ']');
}

void image_settings_write(const ImageSettings *settings, Text *out)
{
        text_addf(out, "{\"layout\": \"%s\", \"colour\": \"%s\"", layout_names[settings->channels_last],
                  colour_names[settings->colour]);
        if (settings->size[1] != 0)
                text_addf(out, ", \"size\": [%lld, %lld]", (long long)settings->size[0],
                          (long long)settings->size[1]);
        else if (settings->size[0] != 0)
                text_addf(out, ", \"size\": %lld", (long long)settings->size[0]);
        if (settings->crop[0] != 0)
                text_addf(out, ", \"crop\": [%lld, %lld]", (long long)settings->crop[0],
                          (long long)settings->crop[1]);
        if (settings->normalised) {
                write_channels("mean", settings->mean, image_channels(settings), out);
                write_channels("std", settings->std, image_channels(settings), out);
        }
        text_add_char(out, '}');
}

// ---- the input ----
// Whether a dimension may have this size; 0: any.
static bool may_be(const SymDim *dim, int64_t size)
{
        return dim->expr != NULL || size == 0 || dim->value == size;
}

static const char *input_text(const Input *input, char *out, size_t n)
{
        const TensorSpec *spec = &input->spec;
        size_t used = (size_t)snprintf(out, n, "\"%.40s\" (%s [", input->placeholder->name,
                                       spec->dtype == DTYPE_NONE ? "?" : dtype_info[spec->dtype].name);
        for (int i = 0; i < spec->rank && used < n; i++) {
                const char *comma = i == 0 ? "" : ", ";
                const SymDim *dim = &spec->size[i];
                used += (size_t)(dim->expr != NULL
                                         ? snprintf(out + used, n - used, "%s%.16s", comma, dim->expr)
                                         : snprintf(out + used, n - used, "%s%lld", comma,
                                                    (long long)dim->value));
        }
        if (used < n)
                snprintf(out + used, n - used, "])");
        return out;
}

static Status check_dims(const ImageSettings *settings, const Input *input)
{
        const TensorSpec *spec = &input->spec;
        const SymDim *last = &spec->size[spec->rank - 3];
        const SymDim *channel = &last[settings->channels_last ? 2 : 0];
        const SymDim *high = &last[settings->channels_last ? 0 : 1], *wide = high + 1;
        const int64_t *sides = settings->crop[0] != 0 ? settings->crop : settings->size;
        char text[160];
        input_text(input, text, sizeof(text));
        if (!may_be(channel, image_channels(settings)))
                return fail(STATUS_SHAPE,
                            "input %s has no %d channels where \"%s\" has them; \"colour\" can be \"RGB\", "
                            "\"BGR\" or \"grey\", \"layout\" \"NCHW\" or \"NHWC\"",
                            text, image_channels(settings), layout_names[settings->channels_last]);
        if (spec->rank == 4 && !may_be(&spec->size[0], 1))
                return fail(STATUS_SHAPE,
                            "input %s takes so many images at once, and a body is one; export with a "
                            "dynamic batch, or with a batch of 1",
                            text);
        if (sides[1] != 0 && (!may_be(high, sides[0]) || !may_be(wide, sides[1])))
                return fail(STATUS_SHAPE, "input %s is not %lld x %lld, which \"%s\" makes", text,
                            (long long)sides[0], (long long)sides[1],
                            settings->crop[0] != 0 ? "crop" : "size");
        return STATUS_OK;
}

static bool can_be_image(const Input *input)
{
        const TensorSpec *spec = &input->spec;
        if (input->kind != INPUT_USER || input->hidden || input->placeholder->target[0] == '*')
                return false;
        if (input->value_kind != VALUE_TENSOR && input->value_kind != VALUE_NONE)
                return false;
        bool numbers = dtype_is_float(spec->dtype) || spec->dtype == DTYPE_U8 || spec->dtype == DTYPE_NONE;
        return numbers && (spec->rank < 0 || spec->rank == 3 || spec->rank == 4);
}

Status image_settings_check(const ImageSettings *settings, const Input *input)
{
        char text[160];
        if (!can_be_image(input))
                return fail(STATUS_SHAPE,
                            "input %s cannot be an image: images are float or uint8 tensors of 3 or 4 "
                            "dimensions",
                            input_text(input, text, sizeof(text)));
        if (input->spec.dtype == DTYPE_U8 && settings->normalised)
                return fail(STATUS_SHAPE, "input %s takes bytes: leave \"mean\" and \"std\" out",
                            input_text(input, text, sizeof(text)));
        return input->spec.rank < 0 ? STATUS_OK : check_dims(settings, input);
}

Status image_settings_input(const ImageSettings *settings, const Graph *graph, const Input **out_input)
{
        const Signature *signature = &graph->signature;
        const Input *found = NULL;
        bool fits = false;
        uint32_t n = 0, n_fit = 0;
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                if (!can_be_image(input))
                        continue;
                bool fits_now = image_settings_check(settings, input) == STATUS_OK;
                n++;
                n_fit += fits_now;
                if (found == NULL || (fits_now && !fits))
                        found = input;
                fits |= fits_now;
        }
        if (n == 0)
                return fail(STATUS_SHAPE,
                            "this graph takes no image: none of its inputs is a float or uint8 tensor "
                            "of 3 or 4 dimensions");
        if (n_fit > 1)
                return fail(STATUS_SHAPE, "%u inputs of this graph can be the image; one is needed", n_fit);
        TRY(image_settings_check(settings, found));
        *out_input = found;
        return STATUS_OK;
}

Status image_settings_take(ByteSpan json, const Graph *graph, Text *out_line)
{
        ImageSettings settings;
        const Input *input;
        TRY(image_settings_parse(json, &settings));
        TRY(image_settings_input(&settings, graph, &input));
        image_settings_write(&settings, out_line);
        return text_status(out_line);
}
