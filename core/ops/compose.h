// SPDX-License-Identifier: Apache-2.0
// Composites written as expressions: the body of an expand function, in which each emitted call
// gives a value for the next.
//
//     Compose c;
//     compose_begin(&c, emitter, call);
//     Value gap = OP(&c, "aten::sub.Tensor", NAMED(&c, "self"), NAMED(&c, "target"));
//     return compose_end(&c, OP(&c, "aten::abs", gap), out);
//
// After a failure all further calls do nothing and give None; compose_end returns the failure.
// Every function with `Compose *c` may be called then. Values that the functions return are
// borrowed: they live until compose_end.
//
// A body that has made values ends by compose_end only: `return fail(...)` and TRY would leak them.
// Arguments are checked before the first value is made; what only a made value tells is checked by
// compose_check. tests/layering/house.py looks for other ends.
#pragma once
#include "core/ops/emitter.h"

enum { COMPOSE_INLINE = 32 }; // values that a body makes before it needs the heap

typedef struct Compose {
        Emitter *emitter;
        const OpCall *call; // NULL: the body has no call, NAMED and its like are not for it
        const char *name;   // for messages
        Status status;
        uint32_t n_made, capacity;
        Value *made; // `few` or heap
        Value few[COMPOSE_INLINE];
} Compose;

void compose_begin(Compose *c, Emitter *emitter, const OpCall *call);
// A body that is no call of an operator: no argument is read by name.
void compose_begin_bare(Compose *c, Emitter *emitter, const char *name);
// *out = `result`, counted. Drops all that was made.
Status compose_end(Compose *c, Value result, Value *out);
// The status of a check made by hand: the first failure counts.
void compose_check(Compose *c, Status status);
static inline bool compose_failed(const Compose *c)
{
        return c->status != STATUS_OK;
}
// Keeps a value until the end (taken).
Value compose_keep(Compose *c, Value take_value);

// Emits "aten::add.Tensor" with positional arguments; trailing defaults may be left out.
Value compose_emit(Compose *c, const char *name, const Value *args, uint32_t n_args);
#define OP(c, name, ...)                                                                                     \
        compose_emit((c), (name), (const Value[]){ __VA_ARGS__ },                                            \
                     (uint32_t)(sizeof((const Value[]){ __VA_ARGS__ }) / sizeof(Value)))

// ---- the call's arguments, by the name that the schema gives them ----
#define NAMED(c, name) compose_arg((c), (name))
Value compose_arg(Compose *c, const char *name);
bool compose_has(Compose *c, const char *name); // given, and not None
int64_t compose_int(Compose *c, const char *name);
double compose_double(Compose *c, const char *name);
bool compose_bool(Compose *c, const char *name);
// Of a list of ints, at most MAX_RANK.
int compose_int_list(Compose *c, const char *name, int64_t out[MAX_RANK]);
// A dimension of a tensor of that rank, wrapped; 0 after a failure.
int compose_dim(Compose *c, const char *name, int rank);

// ---- values ----
// Of a tensor; an empty one (rank 0, float32) after a failure. Valid until compose_end.
const TensorMeta *compose_meta(Compose *c, Value tensor);
Value compose_ints(Compose *c, const int64_t *items, int n); // a list
#define INTS(c, ...)                                                                                         \
        compose_ints((c), (const int64_t[]){ __VA_ARGS__ },                                                  \
                     (int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))
Value compose_list(Compose *c, const Value *items, uint32_t n); // of borrowed values
Value compose_tuple(Compose *c, const Value *items, uint32_t n);
Value compose_text(Compose *c, const char *text);
uint32_t compose_length(Value list); // of a list or tuple; else 0
// Item k of a list or tuple.
Value compose_item(Compose *c, Value list, uint32_t k);
// The tensor cast to float32 if it has a half type, so that a chain of calls rounds once at its
// end. None stays None.
Value compose_wide(Compose *c, Value tensor);
Value compose_cast(Compose *c, Value tensor, Dtype dtype);
// The dtype that an elementwise operator computes with: torch.result_type(a, b).
Dtype compose_common_dtype(Compose *c, Value a, Value b);
