// SPDX-License-Identifier: Apache-2.0
// Operators. One OpDef per overload, keyed by its schema string: argument names, types, defaults,
// aliasing, binding, printing, documentation and golden lists all come from it. An op is a few
// functions:
//   infer    dtype, shape, exact strides of every output; per output fresh | view of argument k |
//            argument k itself | a plain value. No numbers are touched.
//   prepare  shapes, strides, attributes -> POD state of at most OP_STATE_BYTES (optional)
//   run      computes outputs from data pointers; shapes and types are already proven; index values
//            are checked here
//   expand   composite: emits other ops through the Emitter; has neither infer nor run
//   cost     flops and bytes (optional)
// View = infer only. Kernel = infer (+ prepare) + run. Composite = expand. In-place twins (`add_`,
// `relu_`) are not written: OP_INPLACE on the functional row makes them (compute, cast check, write
// to self). A row whose name ends in "_" and whose first argument is written is an in-place form
// itself: infer says OUT_FRESH (computed, then written), OUT_SAME (run gets self as out[0]) or
// OUT_VIEW (self's geometry changes).
#pragma once
#include "core/kernels/numeric_policy.h"
#include "core/kernels/run_context.h"
#include "core/ops/schema.h"
#include "core/ops/tune.h"

typedef struct OpDef OpDef;
typedef struct OpCall OpCall;
typedef struct OpRun OpRun;
typedef struct Emitter Emitter;

enum { OP_STATE_BYTES = 512, OP_INLINE_OUTS = 4, OP_MAX_OUTS = 65536 };

enum OpFlags {
        // has an in-place twin `name_`, writing to the first argument, if PyTorch has one
        // (twins.def)
        OP_INPLACE = 1 << 0,
        // output element i depends on input elements i only: the twin may run straight into self
        OP_ELEMENTWISE = 1 << 1,
        OP_RANDOM = 1 << 2,
        OP_EFFECT = 1 << 3, // asserts and the like: never removed
        // numbers may stand in Tensor slots (add, mul, sub, div, where ...); all other ops refuse
        // them
        OP_NUMBERS = 1 << 4,
        OP_HIDDEN = 1 << 5, // not listed by GET /v1/ops (Python-side helpers)
        // cat: inputs side by side along the dimension in argument 1; run skips inputs that already
        // lie in out[0]
        OP_JOINS = 1 << 6,
        OP_CHECKS = 1 << 7,   // run refuses some values (indices): it runs even when nobody reads the result
        OP_INTERNAL = 1 << 8, // only nodes that core inserts may call it (Node.internal)
        OP_DROPS = 1 << 9,    // with dropout_p above 0 its form draws random numbers
};

// The body of a composite.
typedef Status (*OpExpand)(Emitter *emitter, const OpCall *call, Value *out);

// What a row claims about its results. tests/ops/traits.c tries each claim on the golden cases; a
// row that claims nothing is safe, only slower.
enum OpTraits {
        // No result ever shares bytes with an argument. emit() fails where infer says otherwise.
        TRAIT_FRESH = 1 << 0,
        // A result may be an argument or a view of one, though the schema does not say so. This is
        // the default; writing it shows that the row was considered.
        TRAIT_MAY_SHARE = 1 << 1,
        // Python's + and *: TRAIT_FRESH for tensors, but a list result holds the same tensors.
        TRAIT_KEEPS_ITEMS = 1 << 2,
        // An expansion that draws no random numbers.
        TRAIT_DRAWS_NOTHING = 1 << 3,
        // Results are laid out as the operands are (contiguous or channels_last), and their
        // elements have the same bits in both layouts.
        TRAIT_LAYOUT = 1 << 4,
        // TRAIT_LAYOUT with sums in another order: finite elements are equal within rounding.
        TRAIT_LAYOUT_NEAR = 1 << 5,
        // The one result has the elements of argument 0, cast to its dtype.
        TRAIT_COPIES = 1 << 6,
        // Writes running statistics in training mode, though the schema does not say so.
        TRAIT_STATISTICS = 1 << 7,
        // A Python row that passes numbers to operators unread: they may be runtime scalars.
        TRAIT_RUNTIME_SCALARS = 1 << 8,
        // A view of self's own geometry: the in-place twin moves nothing.
        TRAIT_SAME_GEOMETRY = 1 << 9,
        // Views of argument 0. Which elements they have follows from its shape, not from strides.
        TRAIT_BY_SHAPE = 1 << 10,
        // Results are laid out the same for every layout of the operands; finite elements are equal
        // within rounding.
        TRAIT_ANY_LAYOUT = 1 << 11,
};

// What an operator does, for code that matches patterns or builds calls.
typedef enum OpRole {
        ROLE_NONE,
        // one row each: op_for() gives it
        ROLE_CLONE,            // (self, memory_format)
        ROLE_WRITE,            // (self, src): copies into self
        ROLE_AS_STRIDED,       // (self, size, stride, offset)
        ROLE_FUSED,            // (inputs, body): pointwise operators run together
        ROLE_FUSED_CONV,       // convolution, then a residual, then an activation
        ROLE_CONV_TRANSPOSE3D, // the result lies as the input does
        ROLE_FUSED_LINEAR,     // linear, then a residual, then an activation
        ROLE_LINEAR,           // (input, weight, bias)
        ROLE_QUANTIZED_LINEAR, // linear between tensors of levels (quantized_linear.c)
        ROLE_QUANTIZED_CONV,   // likewise a convolution (quantized_conv.c)
        ROLE_QUANTIZE,         // (input, inverse, zero_point, quant_min, quant_max, dtype): 8-bit levels
        // (query, key, value, mask, scale): softmax of scaled products; key is turned already
        ROLE_FUSED_ATTENTION,
        ROLE_PAD,          // (self, pad, value): pairs of the last dimensions, the last one first
        ROLE_ADD,          // (self, other, alpha) of tensors
        ROLE_CAT,          // (tensors, dim)
        ROLE_GLU,          // (self, dim)
        ROLE_INDEX_SELECT, // (self, dim, index)
        ROLE_MAX_POOL,     // (self, ...): images
        ROLE_ADDCMUL,      // (self, tensor1, tensor2, value)
        // child graphs with programs of their own (control.c)
        ROLE_CHILD_COND,
        ROLE_CHILD_LOOP,
        ROLE_CHILD_ROWS,
        // several rows
        ROLE_CONV,            // conv_args() reads the arguments; input, weight, bias come first
        ROLE_ADDMM,           // (bias, mat1, mat2, beta, alpha)
        ROLE_MM,              // (self, mat2)
        ROLE_ADD_NUMBER,      // (self, number, alpha)
        ROLE_SUB,             // (self, other, alpha): tensors, or a tensor and a number
        ROLE_ROUND,           // (self): to whole numbers
        ROLE_BATCH_NORM_EVAL, // (input, weight, bias, mean, var, ..., eps), affine per channel
        ROLE_MUL,             // (self, other): tensors, or a tensor and a number
        ROLE_DIV,             // likewise
        ROLE_MATMUL,          // (self, other): matrices or batches of them
        ROLE_SOFTMAX,         // (self, dim, dtype or half_to_float)
        ROLE_INDEX,           // (self, indices): by tensors or None
        ROLE_RESAMPLE,        // (self, ...): images to another size, each channel by itself
} OpRole;

// How argument 1 of a row operator that may end a pointwise group gives the dimensions.
typedef enum RowEnd { END_NONE, END_BY_DIM, END_BY_DIMS, END_BY_SHAPE } RowEnd;

// ---- packing (programs only) ----
typedef struct PackCache PackCache; // kernels/pack_cache.h
typedef struct PackContext {
        int n_threads;          // threads that will run the instruction: implementations are made for it
        PackCache *cache;       // may be NULL
        TuneRecord *tune;       // may be NULL; written to while it is learning
        const RunContext *poll; // polled to stop the build, also while it learns; may be NULL
        Precision precision;    // of products with constant factors
} PackContext;
// What pack chose: an implementation with its own state, made once per program and then immutable
// and shared by all threads.
typedef struct Packed {
        // instead of the row's run, with run->state = impl; NULL: the row's own prepare and run are
        // used
        Status (*run)(const OpRun *run);
        void *impl; // owned by the program
        void (*free_impl)(void *impl);
        const char *kernel;   // the implementation's name, for profiles; lives as long as impl
        size_t scratch_bytes; // of run->scratch
        // bit i: tensor operand i was a constant and is packed inside impl; run->in[i] is NULL
        uint64_t baked;
} Packed;

typedef struct Cost {
        int64_t flops, bytes;
} Cost;

struct OpDef {
        const char *schema; // "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
        // Dtypes that Tensor arguments may have, wrapped numbers included; 0: all. Masks and
        // indices are checked by infer.
        DtypeSet dtypes;
        uint32_t flags;
        Status (*infer)(OpCall *call);
        Status (*prepare)(const OpCall *call, void *out_state);
        Status (*run)(const OpRun *run); // skipped when infer described only views, arguments and values
        Status (*pack)(const OpCall *call, const PackContext *context,
                       Packed *out_packed); // constant operands have data (arg_data), others none
        OpExpand expand;
        // Of a kernel: what is emitted in its place for arguments that it does not take; NULL, or
        // a NULL result: nothing else.
        OpExpand (*form)(const OpCall *call);
        Cost (*cost)(const OpCall *call);
        const void *row;    // data shared by generic functions: the pointwise or reduction row
        const char *kernel; // name shown in profiles; NULL: the op's own name
        uint32_t traits;    // OpTraits
        OpRole role;
        RowEnd row_end;
        // Its name in the fused products (fused_activation): "relu", "clamp" ...; NULL: none.
        const char *activation;
};

typedef enum OutKind { OUT_UNSET, OUT_FRESH, OUT_VIEW, OUT_SAME, OUT_VALUE } OutKind;
typedef struct OutSpec {
        OutKind kind;
        bool undefined;  // a Tensor output that PyTorch leaves undefined (None)
        int arg;         // VIEW, SAME: which argument
        int64_t offset;  // VIEW: absolute, in elements of the view's dtype
        TensorMeta meta; // FRESH, VIEW
        Value value;     // VALUE: owned by the call
} OutSpec;

// One call, bound: `args` holds one Value per schema argument, defaults filled in. Lives on the
// emitter's stack.
struct OpCall {
        const OpDef *op;
        const Schema *schema;
        const Value *args;
        uint32_t n_args;
        uint64_t given; // bit i: the caller gave argument i
        bool inplace;   // the in-place twin was called
        Emitter *emitter;
        OutSpec *outs; // `inline_outs` or heap
        uint32_t n_outs, outs_capacity;
        OutSpec inline_outs[OP_INLINE_OUTS];
};

// What run sees. in[]: one pointer per Tensor argument in schema order, Tensor lists flattened in
// place, absent optionals NULL. Tensors of `call` tell dtype and geometry only: in a program they
// have no bytes (tensor_is_known is false), so numbers are read through in[]. OP_ELEMENTWISE rows,
// packed ones included, may find out[0] == in[k] for an input of the same dtype and strides.
struct OpRun {
        void *const *out;
        const void *const *in;
        // actual metas (an in-place twin's output has self's strides); NULL for undefined outputs
        const TensorMeta *const *out_meta;
        const TensorMeta *const *in_meta; // NULL for absent optionals
        uint32_t n_out, n_in;
        const void *state;
        void *scratch;      // Packed.scratch_bytes, 64-byte aligned; NULL when eager
        const OpCall *call; // attributes that need no preparing; NULL never
        RunContext *ctx;
};

// ---- what an operator is ----
static inline bool op_has(const OpCall *call, enum OpTraits trait)
{
        return (call->op->traits & trait) != 0;
}
// ROLE_NONE for in-place twins: they write.
static inline OpRole op_role(const OpCall *call)
{
        return call->schema->text == call->op->schema ? call->op->role : ROLE_NONE;
}

// ---- reading arguments (index = position in the schema). Type mismatches cannot happen: the
// binder has checked. ----
const Tensor *arg_tensor(const OpCall *call, int index);   // NULL when None or absent
const TensorMeta *arg_meta(const OpCall *call, int index); // NULL when None or absent
bool arg_is_none(const OpCall *call, int index);
static inline bool arg_given(const OpCall *call, int index)
{
        return (call->given >> index & 1) != 0;
}
bool arg_bool(const OpCall *call, int index, bool if_none);
Status arg_int(const OpCall *call, int index, int64_t *out);   // STATUS_DYNAMIC if not known now
Status arg_double(const OpCall *call, int index, double *out); // any real number
Value arg_number(const OpCall *call, int index);               // borrowed number Value (bool, int, float)
Value element_number(Dtype dtype, const void *element);        // one element of a tensor as such a Value
const char *arg_text(const OpCall *call, int index);           // NULL when None
Dtype arg_dtype(const OpCall *call, int index, Dtype if_none);
// What a mean says of a dtype that has no fractions: of its dtype=, or else of its input.
Status fail_mean_dtype(const char *name, bool given, Dtype dtype);
MemoryFormat arg_memory_format(const OpCall *call, int index, MemoryFormat if_none);
// A list of ints (a single int counts as a list; a fixed-size list int[N] repeats it). At most
// `cap` (STATUS_VALUE beyond). None: *out_n = -1.
Status arg_ints(const OpCall *call, int index, int cap, int64_t *out, int *out_n);
Status arg_dim(const OpCall *call, int index, int rank, int *out_dim); // wrapped
// Dims of a reduction as a bit mask (None or empty = all when `empty_is_all`); repeated dims fail
// as in PyTorch.
Status arg_dims(const OpCall *call, int index, int rank, bool empty_is_all, uint32_t *out_mask);
uint32_t arg_list_length(const OpCall *call, int index);                     // of any list; 0 when None
const Tensor *arg_list_tensor(const OpCall *call, int index, uint32_t item); // NULL for a None item
// Data of a Tensor argument now, for ops whose shape depends on it (item, nonzero): STATUS_DYNAMIC
// while recording.
Status arg_data(const OpCall *call, int index, const Tensor **out);

// ---- describing outputs (k = 0..) ----
// for Tensor[] results; otherwise n_outs follows the schema
Status out_reserve(OpCall *call, uint32_t n_outs);
Status out_fresh(OpCall *call, uint32_t k, const TensorMeta *meta);
Status out_view(OpCall *call, uint32_t k, int arg, const TensorMeta *meta, int64_t offset);
Status out_same(OpCall *call, uint32_t k, int arg);
Status out_undefined(OpCall *call, uint32_t k);
Status out_value(OpCall *call, uint32_t k, Value take_value); // ints, bools, numbers

// ---- the table ----
typedef struct OpGroup {
        const OpDef *ops;
        uint32_t n;
} OpGroup;
#define OP_GROUP(name) extern const OpGroup name##_group;
#include "core/ops/ops.def"
#undef OP_GROUP

// An overload ready to call: a row, or the in-place twin made from it.
typedef struct Overload {
        const OpDef *op;
        Schema schema; // of the twin when `inplace`
        bool inplace;
        const struct Overload *twin_of; // the row's own overload, for twins made from it; else NULL
        char *name;                     // "aten::add_.Tensor"
        char *target;                   // "torch.ops.aten.add_.Tensor"
} Overload;
// Built once, before threads start (engine_open and tests call it; further calls do nothing). Fails
// on a schema that does not parse: a bug.
Status ops_init(void);
// Positions in arguments.def against the schemas; part of ops_init.
Status op_arguments_check(void);
// "aten::add.Tensor", "aten::relu" (= .default), or "torch.ops.aten.add.Tensor" /
// "aten.add.Tensor". NULL if the table lacks it.
const Overload *op_find(const char *name);
// All overloads of "aten::add", in table order; *out_n = 0 if none.
const Overload *const *op_overloads(const char *base_name, uint32_t *out_n);
// The row of a role that one row has; never NULL after ops_init.
const Overload *op_for(OpRole role);
// Whether results may share bytes with arguments.
typedef enum OpAlias {
        ALIAS_FRESH,     // never: the row claims so, or no result is a tensor
        ALIAS_SCHEMA,    // the schema says which: Tensor(a), Tensor(a!)
        ALIAS_MAY_SHARE, // unknown: they may
} OpAlias;
OpAlias op_alias(const Overload *overload);
// Whether a number among the arguments may be a runtime scalar: the row reads none itself.
bool op_takes_runtime_scalars(const Overload *overload);
// How many cases recorded from PyTorch test it (golden_cases.def).
uint32_t op_golden_cases(const Overload *overload);
const Overload *op_at(uint32_t index);
uint32_t n_ops(void);
// Closes an op file: OP_FILE(view_ops) makes `const OpGroup view_ops_group`; ops.def lists it.
#define OP_FILE(array) const OpGroup array##_group = { array, (uint32_t)(sizeof(array) / sizeof((array)[0])) }
