// SPDX-License-Identifier: Apache-2.0
// Run bodies that are JPEG or PNG files, alone or as parts of a form. The settings beside the graph
// say how one becomes an input: as torchvision's Resize(antialias=True), CenterCrop, ToTensor and
// Normalize make it of a Pillow image.
#include <math.h>
#include <string.h>
#include "api/formats/image.h"
#include "api/run/image_settings.h"
#include "api/run/run_private.h"
#include "core/engine/engine.h"

static bool image_reads(const ApiCall *call, ByteSpan body)
{
        (void)call;
        return image_is(body);
}

#define IMAGE_WANTED                                                                                         \
        "{\"image\": {\"size\": 256, \"crop\": 224, \"mean\": [0.485, 0.456, 0.406], "                       \
        "\"std\": [0.229, 0.224, 0.225]}}"

static Status find_settings(const RunCall *run, ImageSettings *out)
{
        const GraphVersion *version = run->task.version;
        _cleanup_(text_deinit) Text line = { 0 };
        if (version == NULL)
                return fail(STATUS_INPUT,
                            "images go to graphs that are stored, with settings that say how one "
                            "becomes an input; this graph came with the request: send arrays");
        TRY(engine_setting(run->recipe.engine, version, SETTING_IMAGE, &line));
        if (line.n == 0)
                return fail(STATUS_INPUT,
                            "graph '%s' has no settings for images yet: PATCH /v1/graphs/%s with how one "
                            "becomes its input, such as " IMAGE_WANTED ", and send the image again",
                            version->name, version->name);
        return image_settings_parse((ByteSpan){ (const uint8_t *)line.data, line.n }, out);
}

// ---- places ----
// Half to even, as Python rounds.
static int64_t half_of(int64_t n)
{
        return (int64_t)nearbyint((double)n / 2);
}

// What a side of the middle begins with, as torchvision's center_crop pads and cuts.
static int64_t crop_begin(int64_t size, int64_t crop)
{
        return crop > size ? -((crop - size) / 2) : half_of(size - crop);
}

static ImageWindow window_of(const ImageSettings *settings, const ImageView *view)
{
        ImageWindow window = { .width = view->width, .height = view->height };
        int64_t shorter = MIN(view->width, view->height), to = settings->size[0];
        if (settings->size[1] != 0) {
                window.height = settings->size[0];
                window.width = settings->size[1];
        } else if (to != 0) {
                window.width = view->width <= view->height ? to : to * view->width / shorter;
                window.height = view->width <= view->height ? to * view->height / shorter : to;
        }
        window.out_width = settings->crop[0] != 0 ? settings->crop[1] : window.width;
        window.out_height = settings->crop[0] != 0 ? settings->crop[0] : window.height;
        window.left = crop_begin(window.width, window.out_width);
        window.top = crop_begin(window.height, window.out_height);
        return window;
}

// ---- numbers ----
// A byte has one value in each channel.
static void fill_values(const ImageSettings *settings, int channel, float values[256])
{
        float mean = (float)settings->mean[channel], std = (float)settings->std[channel];
        for (int i = 0; i < 256; i++) {
                values[i] = (float)i / 255;
                values[i] = settings->normalised ? (values[i] - mean) / std : values[i];
        }
}

// `n` pixels of one channel; steps in elements.
typedef struct Channel {
        const uint8_t *from;
        int64_t from_step, at, step, n;
} Channel;

static void put_floats(const Channel *channel, const float values[256], Dtype dtype, uint8_t *data)
{
        size_t bytes = dtype_info[dtype].bytes;
        uint8_t *to = data + (size_t)channel->at * bytes;
        uint64_t held[256];
        for (int i = 0; i < 256; i++)
                element_from_f64(dtype, &held[i], values[i]);
        for (int64_t i = 0; i < channel->n; i++)
                memcpy(to + (size_t)(i * channel->step) * bytes, &held[channel->from[i * channel->from_step]],
                       bytes);
}

static void put_bytes(const Channel *channel, uint8_t *data)
{
        for (int64_t i = 0; i < channel->n; i++)
                data[channel->at + i * channel->step] = channel->from[i * channel->from_step];
}

static void fill_tensor(const ImageSettings *settings, const uint8_t *pixels, int64_t n, Tensor *tensor)
{
        int channels = image_channels(settings);
        uint8_t *data = tensor->storage->data;
        float values[256];
        for (int c = 0; c < channels; c++) {
                Channel channel = { .from = pixels + (settings->colour == IMAGE_BGR ? channels - 1 - c : c),
                                    .from_step = channels,
                                    .at = settings->channels_last ? c : c * n,
                                    .step = settings->channels_last ? channels : 1,
                                    .n = n };
                fill_values(settings, c, values);
                if (tensor->meta.dtype == DTYPE_U8)
                        put_bytes(&channel, data);
                else
                        put_floats(&channel, values, tensor->meta.dtype, data);
        }
}

static Status new_tensor(const ImageSettings *settings, const Input *input, const ImageWindow *window,
                         Budget *budget, Tensor **out)
{
        TensorMeta meta;
        Dtype dtype = input->spec.dtype == DTYPE_NONE ? DTYPE_F32 : input->spec.dtype;
        int64_t n_channels = image_channels(settings);
        int64_t first[] = { 1, n_channels, window->out_height, window->out_width };
        int64_t last[] = { 1, window->out_height, window->out_width, n_channels };
        const int64_t *size = settings->channels_last ? last : first;
        bool alone = input->spec.rank == 3;
        int64_t numel;
        TRY(shape_numel(4, size, &numel));
        meta_init(&meta, dtype, alone ? 3 : 4, alone ? size + 1 : size);
        return tensor_new(&meta, budget, out);
}

// ---- the whole ----
static Status resize_into(const ImageSettings *settings, const Input *input, const RunContext *ctx,
                          const ImageView *view, Tensor **out_tensor)
{
        ImageWindow window = window_of(settings, view);
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        _cleanup_(storage_unrefp) Storage *pixels = NULL;
        TRY(new_tensor(settings, input, &window, ctx->budget, &tensor));
        int64_t n = window.out_width * window.out_height;
        TRY(storage_new((size_t)(n * view->channels), false, ctx->budget, &pixels));
        TRY(image_resize(ctx, view, &window, pixels->data));
        fill_tensor(settings, pixels->data, n, tensor);
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

static Status image_tensor(const ImageSettings *settings, const Input *input, ByteSpan bytes,
                           const RunContext *ctx, Tensor **out_tensor)
{
        Image image;
        TRY(image_read(bytes, ctx, &image));
        ImageView view = settings->colour == IMAGE_GREY ? image_as_grey(&image) : image_as_rgb(&image);
        Status status = resize_into(settings, input, ctx, &view, out_tensor);
        image_deinit(&image);
        return status;
}

static Status take_image(RunCall *run, const ImageSettings *settings, const Input *input, ByteSpan bytes)
{
        Tensor *tensor = NULL;
        RunContext ctx;
        run_context_within(&ctx, &run->task.ctx);
        ctx.budget = &run->task.budget;
        ctx.deadline_ns = run->task.received_ns + run->task.deadline_ms * 1000000;
        TRY(image_tensor(settings, input, bytes, &ctx, &tensor));
        run->sent = RUN_SENT_INPUTS;
        return run_take_tensor(run, input->placeholder->name, tensor);
}

static Status image_decode(RunCall *run)
{
        ImageSettings settings;
        const Input *input;
        TRY(find_settings(run, &settings));
        TRY(image_settings_input(&settings, run_task_authored(&run->task), &input));
        return take_image(run, &settings, input, body_span(run->call->body));
}

static Status image_decode_part(RunCall *run, const MultipartPart *part)
{
        ImageSettings settings;
        const Input *input = NULL;
        TRY(find_settings(run, &settings));
        for (uint32_t i = 0; i < run->task.n_inputs; i++)
                if (strcmp(run->task.user[i]->placeholder->name, part->name) == 0)
                        input = run->task.user[i];
        if (input == NULL)
                return fail(STATUS_INPUT, "the graph has no input \"%.64s\" for this image", part->name);
        TRY(image_settings_check(&settings, input));
        return take_image(run, &settings, input, part->content);
}

const Codec image_codec = {
        .reads = image_reads, .grows = true, .decode = image_decode, .decode_part = image_decode_part
};
