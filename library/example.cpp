// SPDX-License-Identifier: Apache-2.0
// The input and the times of a run with zeros, on two samples: example MODEL
#include <fxserve.h>
#include <iostream>
#include <memory>

int main(int argc, char **argv)
{
        std::unique_ptr<fxserve_model, decltype(&fxserve_close)> model(
                fxserve_open(argc > 1 ? argv[1] : "digits.pt2"), fxserve_close);
        fxserve_info info;
        if (!model || fxserve_input(model.get(), 0, &info) != 0)
                return std::cerr << fxserve_error() << "\n", 1;
        info.shape[0] = 2; // the samples
        DLManagedTensor *x = fxserve_tensor(info.dtype, info.ndim, info.shape);
        const DLTensor *inputs[] = { &x->dl_tensor };
        fxserve_options options = {};
        options.mode = FXSERVE_COMPILED, options.profile = 1;
        fxserve_result *result = fxserve_run(model.get(), &options, inputs, 1);
        x->deleter(x);
        std::cout << info.name << "\n" << (result ? fxserve_result_profile(result) : fxserve_error()) << "\n";
        fxserve_result_free(result);
}
