// SPDX-License-Identifier: Apache-2.0
// volume.c: planes lie one after another in channels_last, so that a plane of taps convolves
// neighbouring ones as a batch of images. With a stride along the depth, and where a plane of
// results nearly fills a cache, each of these is convolved by all planes of taps before the next
// one. A plane of taps that meets a plane of the input for every result comes first and begins
// the sums; where there is none, the bias does. Kernels of one plane convolve all planes of all
// samples as images, and those of one column see a volume as an image of as many rows as it has
// planes. Planes of convolutions in groups take the kernels that images in groups have. Of a
// transposed convolution each plane of taps is one of images; the planes of results that leave the
// same remainder by the stride are a phase, whose sums begin as above.
#include "core/kernels/conv/volume.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/grouped.h"
#include "core/kernels/conv/phased.h"
#include "core/kernels/conv/tap_by_tap.h"
#include "core/kernels/conv/volume_plane.h"
#include "core/kernels/conv/winograd.h"
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"

enum {
        MOST_PLANES = 64,        // of taps
        LARGE_PLANE = 128 << 10, // bytes of results
};

// One plane of taps, and which planes of results it meets planes of the input for. One of the
// kernels is not NULL.
typedef struct Plane {
        DirectConv *conv;
        Depthwise *depthwise;
        Grouped *grouped;
        Phased *phased; // of a transposed convolution
        Inside meets;
        bool begins; // the sums
} Plane;

struct Volume {
        TensorMeta given_in, in, given_out, out; // as they are given, in channels_last
        size_t in_bytes, out_bytes;              // of copies in channels_last; 0: none is made
        int64_t n_samples;                       // that are convolved one by one; 1: all at once
        int64_t step, at_once;                   // from plane to plane of the input; planes of a run
        Winograd *winograd;                      // does it all; NULL: planes of taps do
        float *bias; // what begins the sums of each channel; NULL: the first plane does
        int n;
        Plane planes[MOST_PLANES]; // one that begins sums comes before those that add to them
        char name[40];
};

static bool fits(const DnnlConv *conv, bool transposed)
{
        return conv->input.rank == 5 && (conv->groups == 1 || !transposed) &&
               conv->weight.size[2] <= MOST_PLANES && !conv->epilogue.add_out &&
               conv->epilogue.activation == DNNL_NOTHING && meta_numel(&conv->input) > 0 &&
               meta_numel(&conv->out) > 0 && conv->weight.size[1] > 0;
}

static void lay_out(const DnnlConv *conv, Volume *volume)
{
        volume->given_in = volume->in = conv->input;
        volume->given_out = volume->out = conv->out;
        meta_set_channels_last(&volume->in);
        meta_set_channels_last(&volume->out);
        if (!meta_same_places(&volume->in, &conv->input))
                volume->in_bytes = storage_padded((size_t)meta_numel(&volume->in) * sizeof(float));
        if (!meta_same_places(&volume->out, &conv->out))
                volume->out_bytes = storage_padded((size_t)meta_numel(&volume->out) * sizeof(float));
}

// ---- planes of taps ----
// The convolution of `n` images by one plane of taps.
static DnnlConv conv_of_plane(const DnnlConv *conv, int64_t n, int64_t k, bool begins)
{
        DnnlConv part = volume_plane(conv, n, k);
        if (!begins)
                part.bias_data = NULL;
        return part;
}

// *out_made false: there is no kernel for the images of `part`.
static Status make_images(const DnnlConv *part, Plane *plane, bool *out_made)
{
        const DirectClamp none = { 0 };
        if (part->groups == 1)
                TRY(direct_conv_new(part, PRECISION_F32, &none, &plane->conv));
        else
                TRY(depthwise_new(part, &none, &plane->depthwise));
        if (part->groups > 1 && plane->depthwise == NULL)
                TRY(grouped_new(part, &none, &plane->grouped));
        *out_made = plane->conv != NULL || plane->depthwise != NULL || plane->grouped != NULL;
        return STATUS_OK;
}

static Status make_plane(const DnnlConv *conv, const Volume *volume, int64_t k, Plane *plane, bool *out_made)
{
        int64_t n = volume->at_once == 1 ? 1 : plane->meets.n;
        DnnlConv part = conv_of_plane(conv, n, k, plane->begins);
        return make_images(&part, plane, out_made);
}

static bool is_one(const DnnlConv *conv, int axis)
{
        return conv->weight.size[2 + axis] == 1 && conv->stride[axis] == 1 && conv->padding[axis] == 0;
}

// Kernels of one plane or one column: one convolution of images, `part`.
static bool as_images(const DnnlConv *conv, const Volume *volume, DnnlConv *part)
{
        const TensorMeta *in = &volume->in, *out = &volume->out, *weight = &conv->weight;
        bool plane = is_one(conv, 0), column = is_one(conv, 1) && is_one(conv, 2);
        if (!plane && !column)
                return false;
        int64_t n = in->size[0];
        if (plane) {
                *part = volume_plane(conv, n * in->size[2], 0);
                return true;
        }
        *part = *conv;
        part->input = volume_images(in, n, in->size[2], in->size[3] * in->size[4]);
        part->out = volume_images(out, n, out->size[2], out->size[3] * out->size[4]);
        part->weight.rank = 4;
        for (int i = 0; i < 2; i++) {
                int axis = 2 * i; // the depth, then one that does nothing
                part->weight.size[2 + i] = weight->size[2 + axis];
                part->weight.stride[2 + i] = weight->stride[2 + axis];
                part->stride[i] = conv->stride[axis];
                part->padding[i] = conv->padding[axis];
                part->dilation[i] = conv->dilation[axis];
        }
        return true;
}

static Status begin_with_bias(const DnnlConv *conv, Volume *volume)
{
        size_t n = (size_t)conv->out.size[1];
        volume->bias = new_array(n, sizeof(float));
        if (volume->bias == NULL)
                return fail_memory();
        if (conv->bias_data != NULL)
                memcpy(volume->bias, conv->bias_data, n * sizeof(float));
        return STATUS_OK;
}

static Status add_planes(const DnnlConv *conv, Volume *volume, bool *out_made)
{
        int64_t begins = -1;
        DnnlConv images;
        *out_made = as_images(conv, volume, &images);
        if (*out_made) {
                volume->n = 1;
                volume->n_samples = volume->at_once = volume->planes[0].meets.n = 1;
                volume->planes[0].begins = true;
                return make_images(&images, &volume->planes[0], out_made);
        }
        for (int64_t k = 0; k < conv->weight.size[2] && begins < 0; k++)
                begins = tap_inside(conv, 0, k).n == conv->out.size[2] ? k : -1;
        if (begins < 0)
                TRY(begin_with_bias(conv, volume));
        for (int64_t i = 0; i < conv->weight.size[2]; i++) {
                int64_t k = tap_in_turn(i, begins);
                Plane *plane = &volume->planes[volume->n];
                *plane = (Plane){ .meets = tap_inside(conv, 0, k), .begins = k == begins };
                if (plane->meets.n == 0)
                        continue;
                TRY(run_poll(conv->share.poll));
                TRY(make_plane(conv, volume, k, plane, out_made));
                if (!*out_made)
                        return STATUS_OK;
                volume->n++;
        }
        *out_made = volume->n > 0;
        return STATUS_OK;
}

// *out_made false: there is none, or it is slower.
static Status make_winograd(const DnnlConv *conv, Volume *volume, bool *out_made)
{
        DnnlConv laid = *conv;
        laid.input = volume->in;
        laid.out = volume->out;
        int step = winograd_rule(&laid);
        if (step != 0)
                TRY(winograd_new(&laid, &(DirectClamp){ 0 }, step, &volume->winograd));
        *out_made = volume->winograd != NULL;
        return STATUS_OK;
}

// ---- transposed ones ----
// The planes of results of one phase.
typedef struct DepthPhase {
        PhaseAxis axis;
        DnnlConv taps; // with the phase's taps, from the last one on, and results along the depth
} DepthPhase;

static DepthPhase depth_phase(const DnnlConv *conv, int64_t rest)
{
        const PhasedAxis of = { conv->stride[0], conv->dilation[0], conv->padding[0], conv->weight.size[2],
                                conv->out.size[2] };
        DepthPhase phase = { .axis = phase_axis(&of, rest), .taps = *conv };
        phase.taps.stride[0] = 1;
        phase.taps.padding[0] = phase.axis.pad;
        phase.taps.dilation[0] = phase.axis.dilation;
        phase.taps.out.size[2] = phase.axis.n_out;
        return phase;
}

// The tap, counted from the last one, that meets an input for every result; -1: none does.
static int64_t begins_phase(const DepthPhase *phase)
{
        for (int64_t t = 0; t < phase->axis.n; t++)
                if (tap_inside(&phase->taps, 0, t).n == phase->axis.n_out)
                        return t;
        return -1;
}

// Tap `t` of the phase. *out_made false: there is no convolution of images for it.
static Status add_transposed(const DnnlConv *conv, Volume *volume, const DepthPhase *phase, int64_t t,
                             bool *out_made)
{
        Plane *plane = &volume->planes[volume->n];
        *plane = (Plane){ .meets = tap_inside(&phase->taps, 0, t),
                          .begins = volume->bias == NULL && t == begins_phase(phase) };
        *out_made = true;
        if (plane->meets.n == 0)
                return STATUS_OK;
        int64_t k = phase->axis.first + (phase->axis.n - 1 - t) * phase->axis.step;
        DnnlConv part = conv_of_plane(conv, plane->meets.n, k, plane->begins);
        part.out.stride[0] *= conv->stride[0];
        plane->meets.first = phase->axis.first_out + plane->meets.first * conv->stride[0];
        TRY(run_poll(conv->share.poll));
        TRY(phased_new(&part, PRECISION_F32, &plane->phased));
        *out_made = plane->phased != NULL;
        volume->n += *out_made;
        return STATUS_OK;
}

static Status add_transposed_planes(const DnnlConv *conv, Volume *volume, bool *out_made)
{
        int64_t n_phases = MIN(conv->stride[0], conv->out.size[2]);
        bool all_begin = true;
        *out_made = true;
        for (int64_t rest = 0; rest < n_phases && all_begin; rest++) {
                DepthPhase phase = depth_phase(conv, rest);
                all_begin = begins_phase(&phase) >= 0;
        }
        if (!all_begin)
                TRY(begin_with_bias(conv, volume));
        for (int64_t rest = 0; rest < n_phases; rest++) {
                DepthPhase phase = depth_phase(conv, rest);
                int64_t begins = begins_phase(&phase);
                for (int64_t i = 0; i < phase.axis.n && *out_made; i++)
                        TRY(add_transposed(conv, volume, &phase, tap_in_turn(i, begins), out_made));
        }
        *out_made = *out_made && volume->n > 0;
        return STATUS_OK;
}

static Status make_planes(const DnnlConv *conv, bool transposed, Volume *volume, bool *out_made)
{
        *out_made = false;
        if (transposed)
                return add_transposed_planes(conv, volume, out_made);
        TRY(make_winograd(conv, volume, out_made));
        return *out_made ? STATUS_OK : add_planes(conv, volume, out_made);
}

static const char *name_of(const Volume *volume)
{
        const Plane *first = &volume->planes[0];
        if (volume->winograd != NULL)
                return winograd_name(volume->winograd);
        return first->phased != NULL      ? phased_name(first->phased)
               : first->depthwise != NULL ? depthwise_name(first->depthwise)
               : first->grouped != NULL   ? grouped_name(first->grouped)
                                          : direct_conv_name(first->conv);
}

Status volume_new(const DnnlConv *conv, bool transposed, Volume **out_volume)
{
        bool made;
        *out_volume = NULL;
        if (!fits(conv, transposed))
                return STATUS_OK;
        Volume *volume = calloc(1, sizeof(*volume));
        if (volume == NULL)
                return fail_memory();
        lay_out(conv, volume);
        volume->n_samples = conv->input.size[0];
        volume->step = transposed ? 1 : conv->stride[0];
        size_t plane = (size_t)volume->out.stride[2] * sizeof(float);
        volume->at_once = transposed || (volume->step == 1 && plane < LARGE_PLANE) ? conv->out.size[2] : 1;
        Status status = make_planes(conv, transposed, volume, &made);
        if (status != STATUS_OK || !made) {
                volume_free(volume);
                return status;
        }
        snprintf(volume->name, sizeof(volume->name), "volume:%s", name_of(volume));
        *out_volume = volume;
        return STATUS_OK;
}

void volume_free(Volume *volume)
{
        if (volume == NULL)
                return;
        for (int i = 0; i < volume->n; i++) {
                direct_conv_free(volume->planes[i].conv);
                depthwise_free(volume->planes[i].depthwise);
                grouped_free(volume->planes[i].grouped);
                phased_free(volume->planes[i].phased);
        }
        winograd_free(volume->winograd);
        free(volume->bias);
        free(volume);
}

const char *volume_name(const Volume *volume)
{
        return volume->name;
}

size_t volume_scratch(const Volume *volume)
{
        size_t most = volume->winograd == NULL ? 0 : winograd_scratch(volume->winograd);
        for (int i = 0; i < volume->n; i++) {
                const Plane *plane = &volume->planes[i];
                most = MAX(most, plane->phased != NULL      ? phased_scratch(plane->phased)
                                 : plane->grouped != NULL   ? grouped_scratch(plane->grouped)
                                 : plane->depthwise != NULL ? 0
                                                            : direct_conv_scratch(plane->conv));
        }
        return volume->in_bytes + volume->out_bytes + most;
}

// ---- running ----
static Status fill_bias(const Volume *volume, const RunContext *ctx, float *out)
{
        int64_t channels = volume->out.size[1], n = meta_numel(&volume->out);
        Work work = { .ctx = ctx };
        for (int64_t at = 0; at < n && !work_stops(&work, channels); at += channels)
                memcpy(out + at, volume->bias, (size_t)channels * sizeof(float));
        return run_poll(ctx);
}

// One sample. Results of a plane of taps are added to what stands there, unless it begins the sums.
typedef struct VolumeSample {
        const Volume *volume;
        const RunContext *ctx;
        const float *in;
        float *out;
        void *scratch;
} VolumeSample;

// All planes of results that the plane of taps meets; where they are taken one by one, the one at
// `at` among them.
static Status run_plane(const VolumeSample *sample, const Plane *plane, int64_t at)
{
        const Volume *volume = sample->volume;
        const float *in = sample->in + (plane->meets.in + at * volume->step) * volume->in.stride[2];
        float *out = sample->out + (plane->meets.first + at) * volume->out.stride[2],
              *residual = plane->begins ? NULL : out;
        const DirectImages images = { in, residual, out, sample->scratch };
        if (plane->phased != NULL)
                return phased_run(plane->phased, sample->ctx, &images);
        if (plane->grouped != NULL)
                return grouped_run(plane->grouped, sample->ctx, &images);
        if (plane->depthwise != NULL)
                return depthwise_run(plane->depthwise, sample->ctx, in, residual, out);
        return direct_conv_run(plane->conv, sample->ctx, in, residual, out, sample->scratch);
}

static Status run_sample(const VolumeSample *sample)
{
        const Volume *volume = sample->volume;
        int64_t n = volume->at_once == 1 ? volume->out.size[2] : 1;
        for (int64_t o = 0; o < n; o++) {
                for (int i = 0; i < volume->n; i++) {
                        const Plane *plane = &volume->planes[i];
                        int64_t at = volume->at_once == 1 ? o - plane->meets.first : 0;
                        if (at >= 0 && at < plane->meets.n)
                                TRY(run_plane(sample, plane, at));
                }
        }
        return STATUS_OK;
}

static Status run_samples(const Volume *volume, const RunContext *ctx, const float *in, float *out,
                          void *scratch)
{
        if (volume->winograd != NULL)
                return winograd_run(volume->winograd, ctx, in, NULL, out, scratch);
        if (volume->bias != NULL)
                TRY(fill_bias(volume, ctx, out));
        for (int64_t i = 0; i < volume->n_samples; i++)
                TRY(run_sample(&(VolumeSample){ volume, ctx, in + i * volume->in.stride[0],
                                                out + i * volume->out.stride[0], scratch }));
        return STATUS_OK;
}

Status volume_run(const Volume *volume, const RunContext *ctx, const float *in, float *out, void *scratch)
{
        char *laid_in = scratch, *laid_out = laid_in + volume->in_bytes, *rest = laid_out + volume->out_bytes;
        float *results = volume->out_bytes > 0 ? (float *)(void *)laid_out : out;
        if (volume->in_bytes > 0) {
                Region from = region_of(&volume->given_in, in), to = region_of(&volume->in, laid_in);
                TRY(copy_region(ctx, &from, &to));
                in = (const float *)(const void *)laid_in;
        }
        TRY(run_samples(volume, ctx, in, results, rest));
        if (volume->out_bytes == 0)
                return STATUS_OK;
        Region from = region_of(&volume->out, results), to = region_of(&volume->given_out, out);
        return copy_region(ctx, &from, &to);
}
