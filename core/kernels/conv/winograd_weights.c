// SPDX-License-Identifier: Apache-2.0
// winograd_weights.c: weights are transformed once, in double. Then random input is convolved, in
// float32 by them, by a plain sum, and in double.
#include "core/kernels/conv/winograd_weights.h"
#include <math.h>
#include "core/kernels/conv/winograd_tile.h"

// The row of point p (neither 0 nor infinity): 1, p and p^2, divided by the product of the
// differences of p and the other finite points. q is the magnitude of the other pair of points.
#define POINT(p, p2, q2)                                                                                     \
        {                                                                                                    \
                1 / (2 * (p2) * ((p2) - (q2))), (p) / (2 * (p2) * ((p2) - (q2))), 1 / (2 * ((p2) - (q2)))    \
        }
static const double weight_lines_4[6][3] = { { 1 / (0.390625 * 2.25), 0, 0 }, POINT(0.625, 0.390625, 2.25),
                                             POINT(-0.625, 0.390625, 2.25),   POINT(1.5, 2.25, 0.390625),
                                             POINT(-1.5, 2.25, 0.390625),     { 0, 0, 1 } };
#undef POINT

static const double weight_lines_2[4][3] = {
        { 1, 0, 0 }, { 0.5, 0.5, 0.5 }, { 0.5, -0.5, 0.5 }, { 0, 0, 1 }
};

static void transform_weight(int step, const float *kernel, double out[MAX_POINTS])
{
        const double(*lines)[3] = step == 4 ? weight_lines_4 : weight_lines_2;
        int side = step + 2;
        double half[MAX_SIDE][3];
        for (int i = 0; i < side; i++)
                for (int j = 0; j < 3; j++)
                        half[i][j] = lines[i][0] * (double)kernel[j] + lines[i][1] * (double)kernel[3 + j] +
                                     lines[i][2] * (double)kernel[6 + j];
        for (int i = 0; i < side; i++)
                for (int j = 0; j < side; j++)
                        out[i * side + j] = half[i][0] * lines[j][0] + half[i][1] * lines[j][1] +
                                            half[i][2] * lines[j][2];
}

enum { WEIGHT_STEPS = 64 };

typedef struct Kernels { // of a convolution
        const float *data;
        DirectGroups groups;
        int64_t taps, n_k, tap_k; // rows of a point's matrix: in all, for one plane of taps
        int64_t width;            // columns of a panel
} Kernels;

static Kernels kernels_of(const DnnlConv *conv)
{
        int64_t taps = winograd_taps(conv), n_k = winograd_products(conv);
        return (Kernels){ .data = conv->weight_data,
                          .groups = winograd_groups(conv),
                          .taps = taps,
                          .n_k = n_k,
                          .tap_k = n_k / taps,
                          .width = DIRECT_VECTORS * direct_isa()->lanes };
}

// The 3x3 kernel in row `k` and column `out`: zeros where they are of two groups.
static const float *kernel_at(const Kernels *kernels, int64_t k, int64_t out)
{
        static const float zeros[9] = { 0 };
        const DirectGroups *groups = &kernels->groups;
        int64_t n_in = groups->n_in, column = out - out % kernels->width;
        int64_t group = direct_span(groups, column, kernels->width).first + k % kernels->tap_k / n_in;
        if (group != out / groups->n_out)
                return zeros;
        return kernels->data + ((out * n_in + k % n_in) * kernels->taps + k / kernels->tap_k) * 9;
}

// [point][product][column]. Incomplete when the build is stopped.
static float *transform_weights(const DnnlConv *conv, int step)
{
        const Kernels kernels = kernels_of(conv);
        int64_t n_points = (step + 2) * (step + 2), n_out = conv->weight.size[0], n_k = kernels.n_k,
                columns = winograd_columns(conv);
        float *points = new_array((size_t)(n_points * n_k * columns), sizeof(float));
        Work work = { .ctx = conv->share.poll };
        for (int64_t k = 0; k < n_k && points != NULL && !work.stops; k++) {
                for (int64_t out = 0; out < n_out && !work_stops(&work, WEIGHT_STEPS); out++) {
                        double one[MAX_POINTS];
                        transform_weight(step, kernel_at(&kernels, k, out), one);
                        for (int64_t p = 0; p < n_points; p++)
                                points[(p * n_k + k) * columns + out] = (float)one[p];
                }
        }
        return points;
}

// ---- the guard ----
enum { SAMPLES = 16 };

static float noise_at(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (float)((double)(*state >> 11) / 4503599627370496.0 - 1);
}

// Results of a tile in the midst of an image, and of one that has the image's border on all sides:
// those at a side read no input behind it, but the tile's products hold weights of such taps, too.
typedef enum Place { INSIDE, TOP, BOTTOM, LEFT, RIGHT, N_PLACES } Place;

// Of results, against sums in double.
typedef struct Errors {
        double plain, winograd; // sums of squares: of a plain sum, of Winograd's
} Errors;

typedef struct Guard {
        const DnnlConv *conv;
        Kernels kernels;
        int step;
        bool borders; // the tile is zero along its sides
        const float *points;
        float *tile, *moved; // a tile of noise; the same transformed
        Errors errors[N_PLACES];
        double most; // the largest error of Winograd's
} Guard;

static void count(Guard *guard, Place place, double plain, double winograd)
{
        guard->errors[place].plain += plain * plain;
        guard->errors[place].winograd += winograd * winograd;
}

static void count_result(Guard *guard, int i, int j, double plain, double winograd)
{
        int last = guard->step - 1;
        guard->most = winograd > guard->most ? winograd : guard->most;
        if (!guard->borders) {
                count(guard, INSIDE, plain, winograd);
                return;
        }
        if (i == 0 || i == last)
                count(guard, i == 0 ? TOP : BOTTOM, plain, winograd);
        if (j == 0 || j == last)
                count(guard, j == 0 ? LEFT : RIGHT, plain, winograd);
}

// The errors of the tile's results in output channel `out`.
static void tile_errors(Guard *guard, int64_t out)
{
        int step = guard->step, side = step + 2, n_points = side * side;
        int64_t columns = winograd_columns(guard->conv), n_k = guard->kernels.n_k;
        float products[MAX_POINTS * MOST_LANES] = { 0 }, result[MAX_STEP * MAX_STEP * MOST_LANES];
        for (int64_t p = 0; p < n_points; p++)
                for (int64_t k = 0; k < n_k; k++)
                        products[p * MOST_LANES] +=
                                guard->moved[p * n_k + k] * guard->points[(p * n_k + k) * columns + out];
        TileTask whole = { .high = { step, step },
                           .row_step = step * MOST_LANES,
                           .column_step = MOST_LANES,
                           .channels = MOST_LANES,
                           .point = MOST_LANES };
        tile_kernels_plain(step).give(&whole, products, result);
        for (int i = 0; i < step; i++) {
                for (int j = 0; j < step; j++) {
                        double exact = 0;
                        float plain = 0;
                        for (int64_t k = 0; k < n_k; k++) {
                                const float *kernel = kernel_at(&guard->kernels, k, out);
                                for (int t = 0; t < 9; t++) {
                                        float x = guard->tile[((i + t / 3) * side + j + t % 3) * n_k + k];
                                        exact += (double)x * (double)kernel[t];
                                        plain += x * kernel[t];
                                }
                        }
                        double got = result[(i * step + j) * MOST_LANES];
                        count_result(guard, i, j, fabs((double)plain - exact), fabs(got - exact));
                }
        }
}

static void fill_tile(Guard *guard)
{
        int side = guard->step + 2;
        int64_t n_k = guard->kernels.n_k;
        uint64_t state = 1;
        for (int64_t i = 0; i < side * side * n_k; i++) {
                int64_t row = i / n_k / side, column = i / n_k % side;
                bool border = row == 0 || column == 0 || row == side - 1 || column == side - 1;
                float noise = noise_at(&state);
                guard->tile[i] = guard->borders && border ? 0 : noise;
        }
        TileTask whole = { .high = { side, side },
                           .row_step = side * n_k,
                           .column_step = n_k,
                           .channels = n_k,
                           .point = n_k };
        tile_kernels_plain(guard->step).take(&whole, guard->tile, guard->moved);
}

// The output channel with the largest weights has the largest errors.
static int64_t loudest(const DnnlConv *conv)
{
        const float *weight = conv->weight_data;
        int64_t n_out = conv->weight.size[0], n = meta_numel(&conv->weight) / n_out, found = 0;
        double most = -1;
        for (int64_t out = 0; out < n_out; out++) {
                double sum = 0;
                for (int64_t i = 0; i < n; i++)
                        sum += (double)weight[out * n + i] * (double)weight[out * n + i];
                if (sum > most) {
                        most = sum;
                        found = out;
                }
        }
        return found;
}

static Status measure(Guard *guard, int64_t loud)
{
        int64_t n_out = guard->conv->weight.size[0];
        for (int borders = 0; borders < 2; borders++) {
                guard->borders = borders == 1;
                fill_tile(guard);
                for (int64_t i = 0; i <= SAMPLES; i++) {
                        // ends here, too, if transform_weights was stopped
                        TRY(run_poll(guard->conv->share.poll));
                        tile_errors(guard, i == SAMPLES ? loud : i * n_out / SAMPLES);
                }
        }
        return STATUS_OK;
}

// False for NaN. At borders of trained networks the ratio is 2 to 10.
static bool are_close(const Errors errors[N_PLACES])
{
        static const double most[N_PLACES] = { 4, 16, 16, 16, 16 };
        for (int i = 0; i < N_PLACES; i++)
                if (!(sqrt(errors[i].winograd) <= most[i] * sqrt(errors[i].plain)))
                        return false;
        return true;
}

static Status is_accurate(const DnnlConv *conv, int step, const float *points, bool *out_accurate,
                          float *out_error)
{
        const Kernels kernels = kernels_of(conv);
        int64_t side = step + 2, n = side * side * kernels.n_k;
        _cleanup_(freep) float *tile = new_array((size_t)(2 * n), sizeof(float));
        if (tile == NULL)
                return fail_memory();
        Guard guard = { .conv = conv,
                        .kernels = kernels,
                        .step = step,
                        .points = points,
                        .tile = tile,
                        .moved = tile + n };
        TRY(measure(&guard, loudest(conv)));
        *out_accurate = are_close(guard.errors);
        *out_error = (float)guard.most;
        return STATUS_OK;
}

Status winograd_weights_new(const DnnlConv *conv, int step, float **out_points, float *out_error)
{
        bool accurate;
        *out_points = NULL;
        _cleanup_(freep) float *points = transform_weights(conv, step);
        if (points == NULL)
                return fail_memory();
        TRY(is_accurate(conv, step, points, &accurate, out_error));
        if (accurate)
                *out_points = take_ptr(points);
        return STATUS_OK;
}
