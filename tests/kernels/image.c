// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/pool/image.h"
#include <criterion/criterion.h>
#include <string.h>

enum { WIDTH = 7, HEIGHT = 5, CHANNELS = 3, N = WIDTH * HEIGHT * CHANNELS };
static uint8_t pixels[N];

static ImageView view(void)
{
        for (int i = 0; i < N; i++)
                pixels[i] = (uint8_t)(i * 37 % 256);
        return (ImageView){ .origin = pixels,
                            .width = WIDTH,
                            .height = HEIGHT,
                            .column = CHANNELS,
                            .row = WIDTH * CHANNELS,
                            .channels = CHANNELS };
}

static void resize(const ImageView *in, ImageWindow window, uint8_t *out)
{
        cr_assert_eq(image_resize(NULL, in, &window, out), STATUS_OK, "%s", failure_current()->message);
}

Test(image, is_resized_as_pillow_does_it)
{
        // Image.fromarray(pixels).resize((3, 2), Image.BILINEAR), and the first rows of (9, 8)
        static const uint8_t smaller[] = { 104, 86,  123, 146, 123, 100, 123, 160, 142,
                                           105, 104, 141, 145, 122, 118, 141, 161, 131 };
        static const uint8_t larger[] = { 0,   37,  74,  74,  111, 148, 160, 84,  121, 190, 28,
                                          65,  77,  114, 151, 163, 200, 38,  107, 144, 68,  80,
                                          117, 154, 154, 191, 228, 4,   41,  78,  78,  115, 152,
                                          164, 88,  125, 194, 32,  69,  81,  118, 155, 167, 204,
                                          42,  111, 148, 72,  84,  121, 158, 158, 195, 232 };
        uint8_t out[9 * 8 * CHANNELS];
        ImageView in = view();
        resize(&in, (ImageWindow){ .width = 3, .height = 2, .out_width = 3, .out_height = 2 }, out);
        cr_expect(memcmp(out, smaller, sizeof(smaller)) == 0);
        resize(&in, (ImageWindow){ .width = 9, .height = 8, .out_width = 9, .out_height = 8 }, out);
        cr_expect(memcmp(out, larger, sizeof(larger)) == 0);
}

Test(image, of_its_own_size_stays_as_it_is)
{
        uint8_t out[N];
        ImageView in = view();
        resize(&in,
               (ImageWindow){ .width = WIDTH, .height = HEIGHT, .out_width = WIDTH, .out_height = HEIGHT },
               out);
        cr_expect(memcmp(out, pixels, N) == 0);
}

Test(image, shows_in_a_window_what_the_whole_has_there_and_nothing_outside)
{
        uint8_t whole[9 * 8 * CHANNELS], part[6 * 10 * CHANNELS];
        ImageView in = view();
        resize(&in, (ImageWindow){ .width = 9, .height = 8, .out_width = 9, .out_height = 8 }, whole);
        resize(&in,
               (ImageWindow){
                       .width = 9, .height = 8, .left = 5, .top = -1, .out_width = 6, .out_height = 10 },
               part);
        for (int y = 0; y < 10; y++)
                for (int x = 0; x < 6; x++)
                        for (int c = 0; c < CHANNELS; c++) {
                                bool inside = x + 5 < 9 && y >= 1 && y < 9;
                                int want = inside ? whole[((y - 1) * 9 + x + 5) * CHANNELS + c] : 0;
                                cr_expect_eq(part[(y * 6 + x) * CHANNELS + c], want, "%d %d %d", y, x, c);
                        }
        resize(&in,
               (ImageWindow){
                       .width = 9, .height = 8, .left = 20, .top = 2, .out_width = 2, .out_height = 2 },
               part);
        for (int i = 0; i < 2 * 2 * CHANNELS; i++)
                cr_expect_eq(part[i], 0);
}

Test(image, is_read_backwards_where_steps_are_negative)
{
        uint8_t out[N];
        ImageView in = view();
        in.origin += N - CHANNELS;
        in.column = -in.column;
        in.row = -in.row;
        resize(&in,
               (ImageWindow){ .width = WIDTH, .height = HEIGHT, .out_width = WIDTH, .out_height = HEIGHT },
               out);
        for (int i = 0; i < WIDTH * HEIGHT; i++)
                cr_expect(memcmp(&out[i * CHANNELS], &pixels[N - (i + 1) * CHANNELS], CHANNELS) == 0);
}

Test(image, resizing_stops_with_its_run_and_counts_its_memory)
{
        RunContext ctx;
        Budget budget;
        uint8_t out[N];
        ImageView in = view();
        ImageWindow window = { .width = 1 << 20, .height = 1 << 20, .out_width = 3, .out_height = 3 };
        run_context_init(&ctx);
        budget_init(&budget, 100);
        ctx.budget = &budget;
        cr_expect_eq(image_resize(&ctx, &in, &window, out), STATUS_TOO_LARGE);
        cr_expect_eq(atomic_load(&budget.used), 0);
        budget_init(&budget, 1 << 20);
        cr_expect_eq(image_resize(&ctx, &in, &window, out), STATUS_OK);
        cr_expect_eq(atomic_load(&budget.used), 0);
}
