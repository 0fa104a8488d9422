// SPDX-License-Identifier: Apache-2.0
// libfxserve: runs PyTorch graphs (torch.export .pt2, torch.fx as JSON) in this process, on CPUs.
//
// Any thread may call any function, and any number of threads may run one model at the same time. A
// model may be closed once no call uses it any more; results outlive it. Functions that fail return
// NULL or -1 and leave a message for the thread that called (fxserve_error). Tensors are DLPack's.
#ifndef FXSERVE_H
#define FXSERVE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// DLPack's structures of version 0.x, whose layout is fixed. Include dlpack.h first to use its own.
#ifndef DLPACK_DLPACK_H_
enum { kDLCPU = 1 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };
enum {
        kDLFloat8_e4m3fn = 10,
        kDLFloat8_e4m3fnuz = 11,
        kDLFloat8_e5m2 = 12,
        kDLFloat8_e5m2fnuz = 13,
        kDLFloat8_e8m0fnu = 14
};
typedef struct DLDevice {
        int32_t device_type, device_id;
} DLDevice;
typedef struct DLDataType {
        uint8_t code, bits;
        uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
        void *data;
        DLDevice device;
        int32_t ndim;
        DLDataType dtype;
        int64_t *shape, *strides; // in elements; strides NULL: contiguous
        uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
        DLTensor dl_tensor;
        void *manager_ctx;
        void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif

typedef struct fxserve_model fxserve_model;
typedef struct fxserve_result fxserve_result;

enum { FXSERVE_MAX_RANK = 8 };
typedef struct fxserve_info {
        const char *name;                // lives as long as the model
        DLDataType dtype;                // bits 0: the file does not say
        int32_t ndim;                    // -1: the file does not say
        int64_t shape[FXSERVE_MAX_RANK]; // -1: any size, or one that depends on the inputs
} fxserve_info;

// AUTO: the first run of some input sizes goes node by node, later ones use a compiled program.
enum { FXSERVE_AUTO = 0, FXSERVE_COMPILED = 1, FXSERVE_EAGER = 2 };
// How products of float32 with constant weights are computed: as PyTorch does, with weights rounded
// to bfloat16, or with weights of 8 bits. Only compiled runs compute in less than float32: AUTO
// means COMPILED then, and EAGER fails.
enum { FXSERVE_F32 = 0, FXSERVE_BF16 = 1, FXSERVE_INT8 = 2 };
typedef struct fxserve_options { // zeroed: the defaults
        int32_t mode, precision;
        int32_t threads; // that one run may use; 0: 1
        int32_t profile; // not 0: fxserve_result_profile has the times
        int32_t seeded;  // not 0: random numbers are those of torch.manual_seed(seed)
        uint64_t seed;
} fxserve_options;

// "0.2.0"
const char *fxserve_version(void);
// What went wrong in this thread's last call that failed; "" before. Valid until the next failure.
const char *fxserve_error(void);

// The file is read as a whole and may change afterwards. NULL: it cannot be read, is no model, or
// needs what is not supported.
fxserve_model *fxserve_open(const char *path);
// The bytes are copied.
fxserve_model *fxserve_open_memory(const void *bytes, size_t n_bytes);
void fxserve_close(fxserve_model *model); // NULL: nothing

int fxserve_n_inputs(const fxserve_model *model);
int fxserve_n_outputs(const fxserve_model *model);
int fxserve_input(const fxserve_model *model, int index, fxserve_info *out_info);
int fxserve_output(const fxserve_model *model, int index, fxserve_info *out_info);

// Zeroed, contiguous memory for a tensor; its owner calls tensor->deleter(tensor).
DLManagedTensor *fxserve_tensor(DLDataType dtype, int ndim, const int64_t *shape);

// Runs the model. `inputs` in the order of fxserve_input, on the CPU, strides >= 0, copied; an
// entry may be NULL where the model has a default. Numbers are tensors of rank 0. `options` may be
// NULL. NULL: the run failed, or did not fit the model.
fxserve_result *fxserve_run(fxserve_model *model, const fxserve_options *options,
                            const DLTensor *const *inputs, int n_inputs);
int fxserve_result_n(const fxserve_result *result);
// A contiguous tensor in the order of fxserve_output, which shares its memory with the result and
// outlives it; its owner calls tensor->deleter(tensor). NULL: the output is no tensor or number.
DLManagedTensor *fxserve_result_tensor(const fxserve_result *result, int index);
// JSON as GET /v1/profiles/{id} gives it; NULL: the run was not asked for it.
const char *fxserve_result_profile(const fxserve_result *result);
void fxserve_result_free(fxserve_result *result); // NULL: nothing

#ifdef __cplusplus
}
#endif
#endif
