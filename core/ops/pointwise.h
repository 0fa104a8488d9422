// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: one description per overload, one infer / prepare / run / cost for all of
// them. Files pointwise_*.c are tables of these.
#pragma once
#include "core/kernels/pointwise/pointwise.h"
#include "core/ops/op.h"

typedef enum PointTyping {
        TYPE_PROMOTE, // torch.result_type of the operands
        TYPE_FLOAT,   // the same, bool and integers becoming float32
        TYPE_INT,     // the same, bool becoming int64
        TYPE_SELF,    // dtype of the first tensor; others are cast to it
        TYPE_EQUAL,   // all tensors have one dtype (a failure otherwise), but for a third one of rank 0
        TYPE_MASK,    // operands keep their dtypes: the row works on masks
} PointTyping;

typedef enum PointLayout {
        LAYOUT_ITERATED, // strides as TensorIterator chooses them
        LAYOUT_CONTIGUOUS,
        LAYOUT_LAST_FIRST, // the last operand is asked first (rsub)
} PointLayout;

typedef struct PointBound PointBound;
typedef struct PointOp PointOp;
struct PointOp {
        const PointKernel *kernel;
        // One letter per schema argument, in order; operands and parameters take their positions
        // from it:
        //   t tensor operand               f tensor operand that takes no part in promotion
        //   m mask operand                 s Scalar operand, promotes as a Python number, wraps
        //   S as s, but must fit, save f16/bf16
        //   v Scalar operand without promotion that must fit
        //   p Scalar parameter             q Scalar parameter that promotes and must fit
        //   c Scalar parameter that must fit the dtype (p of a half kernel only has to fit float)
        //   a Scalar parameter whose range a hook has checked
        //   . not used here (None, or read by a hook)
        const char *args;
        PointTyping typing;
        bool exact_scalar; // a second operand of one element is not rounded to f16 or bf16 first (mul, div)
        PointLayout layout;
        // The message when the result would be bool and the row has no bool formula; NULL: "... not
        // implemented for 'Bool'".
        const char *bool_words;
        // parameters before those of `args` are filled in
        double constants[POINT_PARAMS];
        // another description, chosen by the arguments; NULL after fail()
        const PointOp *(*select)(const OpCall *call);
        Status (*check)(const OpCall *call, const PointBound *bound); // dtypes known, parameters not yet
        // parameters known: may change them and the kernel
        Status (*adjust)(const OpCall *call, PointBound *bound);
};

typedef struct PointInput {
        int8_t tensor; // index among the Tensor arguments, -1: the number below
        uint8_t arg;   // schema position
        Dtype dtype;   // of the number
        PointParam number;
} PointInput;

// A call with everything decided; doubles as the state of a run.
struct PointBound {
        const PointOp *op;
        const PointKernel *kernel;
        Dtype common, out;
        int n_inputs;
        PointInput inputs[POINT_MAX_INPUTS];
        PointParams params;
};

static inline bool point_is_complex(Dtype dtype)
{
        return dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
}
Status point_bind(const OpCall *call, PointBound *out_bound);
// An in-place twin's result must be castable to self: `result type Float can't be cast to the
// desired output type Long`.
Status point_check_cast(const OpCall *call, const PointBound *bound);
// Whether the run of a call may refuse values: whole numbers divided by what may be 0, a number
// that has to fit the dtype. False for calls of other rows.
bool pointwise_may_fail(const OpCall *call);
Status pointwise_infer(OpCall *call);
Status pointwise_prepare(const OpCall *call, void *out_state);
Status pointwise_run_op(const OpRun *run);
Cost pointwise_cost(const OpCall *call);
// The call as a tile program of one row, so that nothing is planned in a run (fused.c).
Status pointwise_pack(const OpCall *call, const PackContext *context, Packed *out_packed);

// ---- shared with other op files ----
// torch.result_type over tensors and numbers, one at a time.
typedef struct Promotion {
        Dtype tensors, zero_dims, numbers; // DTYPE_NONE until seen
} Promotion;
#define PROMOTION_INIT                                                                                       \
        {                                                                                                    \
                DTYPE_NONE, DTYPE_NONE, DTYPE_NONE                                                           \
        }
Status promotion_add(Promotion *promotion, const TensorMeta *meta);
Status promotion_add_number(Promotion *promotion, Value number);
Status promotion_result(const Promotion *promotion, Dtype *out_dtype);
// `value cannot be converted to type uint8_t without overflow`; the range of `dtype` as
// c10::overflows has it.
Status number_check_fits(Value number, Dtype dtype);
// Largest finite value of a real dtype.
double dtype_largest(Dtype dtype);
// A NaN bound of a clamp makes every element NaN.
Status point_adjust_clamp(const OpCall *call, PointBound *bound);
// C++'s name of a dtype, as some of PyTorch's messages have it: "long int".
const char *dtype_c_name(Dtype dtype);

// Rows of the tables. `description` is the initialiser of a PointOp.
#define POINT_OP(schema_, flags_, ...) POINT_AS(.role = ROLE_NONE, schema_, flags_, __VA_ARGS__)
// `as_`: the row's role or activation.
#define POINT_AS(as_, schema_, flags_, ...) POINT_ROW(as_, TRAIT_LAYOUT, schema_, flags_, __VA_ARGS__)
// `layout_`: TRAIT_LAYOUT or TRAIT_LAYOUT_NEAR.
#define POINT_ROW(as_, layout_, schema_, flags_, ...)                                                        \
        {                                                                                                    \
                as_, .schema = "aten::" schema_, .dtypes = DTYPES_REAL | DTYPES_COMPLEX,                     \
                     .flags = OP_ELEMENTWISE | (flags_), .traits = TRAIT_FRESH | (layout_),                  \
                     .infer = pointwise_infer, .prepare = pointwise_prepare, .run = pointwise_run_op,        \
                     .pack = pointwise_pack, .cost = pointwise_cost, .row = &(const PointOp)                 \
                {                                                                                            \
                        __VA_ARGS__                                                                          \
                }                                                                                            \
        }
