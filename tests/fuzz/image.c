// SPDX-License-Identifier: Apache-2.0
// JPEG and PNG files: what is read has its pixels, and can be resized.
#include "api/formats/image.h"
#include "core/base/limits.h"
#include "tests/fuzz/fuzz.h"

enum { SIDE = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        Storage *storage = fuzz_storage(data, n);
        ByteSpan bytes = { storage->data, n };
        uint8_t out[SIDE * SIDE * IMAGE_CHANNELS];
        Budget budget;
        RunContext ctx;
        Image image;
        limits.max_image_pixels = 1 << 14;
        budget_init(&budget, 1 << 22);
        run_context_init(&ctx);
        ctx.budget = &budget;
        Status status = image_is(bytes) ? image_read(bytes, &ctx, &image) : STATUS_OK;
        if (status != STATUS_OK) {
                require_told(status);
        } else if (image_is(bytes)) {
                require(image.width * image.height <= limits.max_image_pixels, "too many pixels");
                require((size_t)(image.width * image.height * IMAGE_CHANNELS) == image.bytes->n_bytes,
                        "another number of bytes");
                ImageView view = n % 2 == 0 ? image_as_rgb(&image) : image_as_grey(&image);
                ImageWindow window = { .width = SIDE + 2,
                                       .height = SIDE - 2,
                                       .left = 1,
                                       .top = -1,
                                       .out_width = SIDE,
                                       .out_height = SIDE };
                require(image_resize(&ctx, &view, &window, out) == STATUS_OK, "%s",
                        failure_current()->message);
                image_deinit(&image);
        }
        require(atomic_load(&budget.used) == 0, "memory is still counted");
        storage_unref(storage);
        return 0;
}
