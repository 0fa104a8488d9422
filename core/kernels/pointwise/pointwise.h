// SPDX-License-Identifier: Apache-2.0
// Pointwise kernels. A row (pointwise_*.def) has a formula per compute class; the engine in
// pointwise.c walks broadcast, strided operands in tiles and converts between storage dtypes and
// the class, so that no row knows about either. f16 and bf16 are computed as f32 and rounded when
// stored; integers are computed in 8, 32 or 64 bits and wrap when stored. Complex classes have rows
// of their own (pointwise_complex.def).
#pragma once
#include <stdatomic.h>
#include "core/kernels/isa.h"
#include "core/kernels/run_context.h"
#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"

typedef enum PointClass {
        POINT_F32,
        POINT_F64,
        POINT_U8,
        POINT_I32, // other integers of up to 32 bits, unsigned ones up to 16
        POINT_I64,
        POINT_BOOL,
        POINT_C64,
        POINT_C128,
        POINT_CLASS_COUNT
} PointClass;

enum { POINT_MAX_INPUTS = 3, POINT_PARAMS = 4 };

typedef union PointParam {
        double f;     // classes F32, F64
        int64_t i;    // classes U8, I32, I64, BOOL
        ComplexF64 c; // classes C64, C128
} PointParam;

typedef struct PointParams {
        PointParam of[POINT_PARAMS];
        int bits;         // width of the integer dtype computed, for shifts; set by the engine
        bool is_unsigned; // the same dtype
        // DTYPE_F16 or DTYPE_BF16 when that is computed in class F32, else DTYPE_NONE; set by the
        // engine
        Dtype half;
} PointParams;

// The operands of a loop. in[]: dense tiles; out: a dense tile, may be one of in[]. Division by an
// integer zero sets *zero_divisor and gives 0.
typedef struct PointTile {
        const void *const *in;
        void *out;
        size_t n;
        // bit k: in[k] is one element that counts for all; at most one bit, rows with
        // point_takes_uniform only
        uint8_t uniform;
        const PointParams *params;
        atomic_bool *zero_divisor;
} PointTile;
typedef void PointLoop(const PointTile *tile);

// The widest instruction set that all loops are compiled for. A loop's results depend on the set
// only (libm's float functions in ISA_PORTABLE, vector_math.h's in the others).
enum { POINT_WIDEST = ISA_AVX512 };

typedef struct PointKernel PointKernel;
struct PointKernel {
        // PyTorch's kernel name, for `"abs_cpu" not implemented for 'Bool'`
        const char *label;
        // one letter per operand: x = compute class, m = mask (uint8_t, 0 or 1, from any dtype)
        const char *in;
        bool mask_out;                      // the result is a mask
        bool real_out;                      // of complex classes: the result is real
        bool complex_out;                   // of float classes: the result is complex
        bool takes_uniform;                 // in class F32
        PointLoop *loop[POINT_CLASS_COUNT]; // ISA_PORTABLE's; NULL: not implemented
        // the same row compiled for ISA_AVX2 and up; NULL where the compiler's target lacks them
        const PointKernel *wide[POINT_WIDEST];
};

#define POINT1(name, ...)   extern const PointKernel point_##name;
#define POINT1VV(name, ...) extern const PointKernel point_##name;
#define POINT1V(name, ...)  extern const PointKernel point_##name;
#define POINT2V(name, ...)  extern const PointKernel point_##name;
#define POINT2VV(name, ...) extern const PointKernel point_##name;
#define POINT1M(name, ...)  extern const PointKernel point_##name;
#define POINT2(name, ...)   extern const PointKernel point_##name;
#define POINT2M(name, ...)  extern const PointKernel point_##name;
#define POINT3(name, ...)   extern const PointKernel point_##name;
#include "core/kernels/pointwise/pointwise_unary.def"
#include "core/kernels/pointwise/pointwise_activation.def"
#include "core/kernels/pointwise/pointwise_binary.def"
#undef POINT1
#undef POINT1V
#undef POINT1VV
#undef POINT2V
#undef POINT2VV
#undef POINT1M
#undef POINT2
#undef POINT2M
#undef POINT3
extern const PointKernel point_logical_not, point_logical_and, point_logical_or, point_logical_xor;
#define POINT_C(name, ...)  extern const PointKernel point_complex_##name;
#define POINT_CN(name, ...) extern const PointKernel point_complex_##name;
#define POINT_R(name, ...)  extern const PointKernel point_complex_##name;
#include "core/kernels/pointwise/pointwise_complex.def"
#undef POINT_C
#undef POINT_CN
#undef POINT_R
extern const PointKernel point_where;       // m, x, x
extern const PointKernel point_masked_fill; // x, m, x

typedef struct PointOperand {
        const void *data;
        const TensorMeta *meta; // broadcastable to the output's shape; any dtype
        // not rounded to the common dtype before use (PyTorch's scalars of mul and div)
        bool exact;
} PointOperand;

typedef struct PointCall {
        const PointKernel *kernel;
        Dtype common;              // computed in
        const PointParams *params; // NULL: the row has none
        const PointOperand *in;    // as many as kernel->in has letters
} PointCall;

PointClass point_class(Dtype common);
// What tiles of the class's operands hold; masks are TILE_MASK in every class.
TileClass point_tile_class(PointClass class);
// Whether a tile of the class of `common` may hold values that `common` lacks, when its elements
// are converted from `from`.
bool point_must_round(Dtype from, Dtype common);
// The dtype of a row's results when it computes in `common`.
Dtype point_out_dtype(const PointKernel *kernel, Dtype common);
// The row that computes the same of complex numbers; NULL: there is none.
const PointKernel *point_complex_of(const PointKernel *kernel);
// The set whose loops this process takes: isa_level(), at most POINT_WIDEST.
Isa point_isa(void);
// NULL: the row lacks the class.
PointLoop *point_loop(const PointKernel *kernel, PointClass class);
static inline bool point_takes_uniform(const PointKernel *kernel, PointClass class)
{
        return kernel->takes_uniform && class == POINT_F32;
}
// What `params` become in `common`: width and signedness filled in. `exact`: an operand is not
// rounded to f16 or bf16.
PointParams point_params_for(const PointParams *params, Dtype common, bool exact);
// out[i] = formula(in...[i]) in the class of `call->common`. `out` is writable, of any dtype
// and strides (no element twice); it may be the very same tensor as an input, but must not overlap
// one otherwise. Fails with "ZeroDivisionError", a cancelled run, or STATUS_INTERNAL when the row
// lacks the class.
Status pointwise_run(const RunContext *ctx, const PointCall *call, void *out, const TensorMeta *out_meta);

// A row of one operand for the float32 results of another kernel; loop NULL: none.
typedef struct PointAfter {
        PointLoop *loop;
        PointParams params; // by point_params_for
} PointAfter;
// In place, over `n_rows` rows of `n` results each, `step` apart.
void point_after(const PointAfter *after, float *results, int64_t step, int64_t n_rows, int64_t n);
