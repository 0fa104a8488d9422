// SPDX-License-Identifier: Apache-2.0
// How images become an input of a graph: declared once beside the graph, {"image": {...}}.
#pragma once
#include "core/base/json.h"
#include "core/base/span.h"
#include "core/graph/graph.h"

enum { IMAGE_SETTING_CHANNELS = 3 };
typedef enum ImageColour { IMAGE_RGB, IMAGE_BGR, IMAGE_GREY, IMAGE_COLOURS } ImageColour;

typedef struct ImageSettings {
        int64_t size[2]; // height and width; one number: {n, 0}, the shorter side; {0, 0}: as it is
        int64_t crop[2]; // height and width of the middle that is kept; {0, 0}: all
        bool normalised;
        double mean[IMAGE_SETTING_CHANNELS], std[IMAGE_SETTING_CHANNELS];
        bool channels_last;
        ImageColour colour;
} ImageSettings;

static inline int image_channels(const ImageSettings *settings)
{
        return settings->colour == IMAGE_GREY ? 1 : IMAGE_SETTING_CHANNELS;
}

// Reads the value of "image", an object. What it leaves out takes its default.
Status image_settings_read(JsonReader *reader, ImageSettings *out_settings);
// As one line that image_settings_read reads again.
void image_settings_write(const ImageSettings *settings, Text *out);
// From that line, or other JSON.
Status image_settings_parse(ByteSpan json, ImageSettings *out_settings);
// From an upload: reads the JSON, checks it against the graph, and adds the line.
Status image_settings_take(ByteSpan json, const Graph *graph, Text *out_line);
// The one input that an image can be. STATUS_SHAPE: there is none, or several, or the settings make
// another size than it has; the message says what to do.
Status image_settings_input(const ImageSettings *settings, const Graph *graph, const Input **out_input);
// Whether the input can be an image, whatever its name.
Status image_settings_check(const ImageSettings *settings, const Input *input);
