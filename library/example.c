// SPDX-License-Identifier: Apache-2.0
// The digit in an image of 8x8 numbers: example MODEL
#include <stdio.h>
#include <fxserve.h>

int main(int argc, char **argv)
{
        int64_t shape[] = { 1, 1, 8, 8 };
        float image[64] = { [3] = 9, [11] = 13, [19] = 15, [27] = 16, [35] = 15, [43] = 14, [51] = 13 };
        DLTensor x = { image, { kDLCPU, 0 }, 4, { kDLFloat, 32, 1 }, shape, NULL, 0 };
        const DLTensor *inputs[] = { &x };
        fxserve_model *model = fxserve_open(argc > 1 ? argv[1] : "digits.pt2");
        fxserve_result *result = model == NULL ? NULL : fxserve_run(model, NULL, inputs, 1);
        DLManagedTensor *logits = result == NULL ? NULL : fxserve_result_tensor(result, 0);
        if (logits == NULL)
                return fprintf(stderr, "%s\n", fxserve_error()), 1;
        for (int64_t i = 0; i < logits->dl_tensor.shape[1]; i++)
                printf("%d: %.3f\n", (int)i, ((float *)logits->dl_tensor.data)[i]);
        logits->deleter(logits);
        fxserve_result_free(result);
        fxserve_close(model);
}
