// SPDX-License-Identifier: Apache-2.0
// Inputs, outputs and the slowest part of a run with zeros: example MODEL
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
        for (int i = 0; i < info.ndim; i++)
                info.shape[i] = info.shape[i] < 0 ? 2 : info.shape[i]; // any size: two samples
        DLManagedTensor *x = fxserve_tensor(info.dtype, info.ndim, info.shape);
        const DLTensor *inputs[] = { &x->dl_tensor };
        fxserve_options options = {};
        options.mode = FXSERVE_COMPILED, options.profile = 1;
        std::unique_ptr<fxserve_result, decltype(&fxserve_result_free)> result(
                fxserve_run(model.get(), &options, inputs, 1), fxserve_result_free);
        x->deleter(x);
        if (!result)
                return std::cerr << fxserve_error() << "\n", 1;
        std::cout << info.name << " -> " << fxserve_result_n(result.get()) << " output\n"
                  << fxserve_result_profile(result.get()) << "\n";
}
